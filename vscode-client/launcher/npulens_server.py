"""Starts the server that the extension brings along, with the packages for this Python."""

import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
# First of all, so that nothing of the user's environment comes in between. At the top level,
# because the processes that the server starts need it, too.
sys.path[:0] = [
    str(_FOLDER / "common"),
    str(_FOLDER / f"cp{sys.version_info.major}{sys.version_info.minor}"),
]

if __name__ == "__main__":
    from npulens.cli.main import main

    main()
