"""What is wrong with a file, by name: the words for it are known above."""


class Unreadable(Exception):  # noqa: N818
    """A file is not what it should be.

    Attributes:
        problem: Why: the key of a text in the table `unreadable` of `messages/`.
        values: What is put into that text.
    """

    def __init__(self, problem: str, /, **values: object) -> None:
        super().__init__(problem, values)
        self.problem = problem
        self.values = values


class UnsuitableFile(Unreadable, OSError):  # noqa: N818
    """A file is not opened, or not read to its end."""
