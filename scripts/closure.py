"""Prints for how many places of NVIDIA's world npulens has an answer.

    python scripts/closure.py [--unexplained] [--kinds] [--json FILE] FOLDER...

Each folder is a checkout of a repository, or a package as it is installed. The places are listed
from the syntax tree and the text alone, with none of npulens' tables or code (`measure/`). A place
is found if a finding covers its line, or names it as related; it is settled if a settled place
covers its line; else it is unexplained. `--unexplained` lists those, `--kinds` counts them by kind.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure.listing import Closure, closure


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--unexplained", action="store_true", help="list what has no answer")
    parser.add_argument("--kinds", action="store_true", help="count what has no answer by kind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to a file")
    asked = parser.parse_args()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(closure, asked.folders))
    print(table(results))
    if asked.kinds:
        kinds = Counter(place.kind for each in results for place in each.unexplained)
        print("\n".join(f"{count:6} {kind}" for kind, count in kinds.most_common()))
    if asked.unexplained:
        for each in results:
            for place in each.unexplained:
                print(f"{each.name}/{place.path}:{place.line}: {place.kind}: {place.text}")
    if asked.json is not None:
        numbers = {each.name: numbers_of(each) for each in results}
        asked.json.write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")


def numbers_of(result: Closure) -> dict[str, object]:
    """The numbers of one checkout, for programs."""
    return {
        "places": result.places,
        "found": result.found,
        "settled": dict(sorted(result.settled.items())),
        "unexplained": len(result.unexplained),
    }


def table(results: Sequence[Closure]) -> str:
    """A row for each checkout, and one for all."""
    rows = [_row(each) for each in results]
    reasons: Counter[str] = Counter()
    for each in results:
        reasons.update(each.settled)
    unexplained = [place for each in results for place in each.unexplained]
    rows.append(_row(Closure("all", sum(r.found for r in results), reasons, unexplained)))
    head = f"{'':28} {'places':>7} {'found':>7} {'settled':>7} {'unexplained':>11}"
    return "\n".join([head, *rows])


def _row(result: Closure) -> str:
    numbers = f"{result.places:7} {result.found:7} {result.settled.total():7}"
    counts = sorted(result.settled.items(), key=lambda item: (-item[1], item[0]))
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts)
    return f"{result.name:28} {numbers} {len(result.unexplained):11}  {reasons}"


if __name__ == "__main__":
    main()
