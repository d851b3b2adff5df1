"""Files as services name them that know a repository and not this machine."""

import os
from pathlib import Path
from urllib.parse import quote


def relative_path(path: str) -> str:
    """The path from the current folder with slashes, absolute where it leads out of there."""
    relative = os.path.relpath(path)
    if relative.startswith(os.pardir):
        return Path(os.path.abspath(path)).as_posix()  # noqa: PTH100
    return relative.replace(os.sep, "/")


def uri_reference(path: str) -> str:
    """The same as a reference in the sense of RFC 3986."""
    name = relative_path(path)
    reference = quote(os.fsencode(name), safe="/")
    return f"file://{reference}" if name.startswith("/") else reference
