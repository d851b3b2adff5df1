"""Runs the cells of a notebook one after the other, without Jupyter."""

import __future__

import linecache
import sys
from collections.abc import Sequence
from types import ModuleType

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def run_cells(path: str, cells: Sequence[tuple[int, str]]) -> None:
    """Run cells in one namespace, as a kernel does: `__main__`, without `__file__`.

    Args:
        path: The notebook, which frames and errors name.
        cells: The line of the text of all cells in which each starts, and its Python.
    """
    main = ModuleType("__main__")
    main.__dict__["display"] = print
    sys.modules["__main__"] = main
    text = "".join(source for _, source in cells)
    # For tracebacks and for what reads the source of functions; the file itself is JSON.
    lines = [f"{line}\n" for line in text.split("\n")]
    linecache.cache[path] = (len(text), None, lines, path)
    flags = 0
    for line, source in cells:
        code = compile("\n" * (line - 1) + source, path, "exec", flags, dont_inherit=True)
        flags |= code.co_flags & _FUTURE  # such an import counts for the cells after it, too
        exec(code, main.__dict__)
