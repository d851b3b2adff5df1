"""Names that differ by one slip of the hand."""


def is_one_slip(name: str, known: str) -> bool:
    """Whether one character is too much, missing or another, or two have changed places.

    Another number is another thing and no slip.
    """
    if abs(len(name) - len(known)) > 1:
        return False
    shortest = min(len(name), len(known))
    start = next((i for i in range(shortest) if name[i] != known[i]), shortest)
    end = 0
    while end < shortest - start and name[-1 - end] == known[-1 - end]:
        end += 1
    first, second = name[start : len(name) - end], known[start : len(known) - end]
    if any(map(str.isdigit, first + second)):
        return False
    return max(len(first), len(second)) <= 1 or (len(first) == 2 and first == second[::-1])
