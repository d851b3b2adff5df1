"""Starts npulens for the extension: what it brings along, or what the environment of Python has."""

import os
import sys
from pathlib import Path

_BUNDLED = Path(__file__).resolve().parent.parent / "bundled"
_EMULATOR = str(_BUNDLED / "emulator")

# All this stands at the top level, because the processes that the server starts need it, too.
# Compiled modules go where the editor wants them. Python has a variable for that, but scripts that
# are run on the emulated NPU would get it as well.
sys.pycache_prefix = os.environ.get("NPULENS_PYCACHE")
_is_bundled = os.environ.get("NPULENS_SERVER") != "environment"
if _is_bundled:
    # First of all, so that nothing of the user's environment comes in between.
    sys.path[:0] = [
        str(_BUNDLED / "common"),
        str(_BUNDLED / f"cp{sys.version_info.major}{sys.version_info.minor}"),
        _EMULATOR,
    ]

if __name__ == "__main__":
    if _is_bundled:
        # Scripts that are run get the emulator, and none of the packages of npulens. They write no
        # compiled modules, since those of the emulator would come to lie in the extension.
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        given = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([_EMULATOR, *([given] if given else [])])

    from npulens.cli.main import main

    main()
