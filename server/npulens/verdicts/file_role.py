"""What the path of a file says it is for. Weak evidence: it settles no finding about a device."""

import re
from enum import Flag, auto
from functools import lru_cache

_COLD = re.compile(
    r"(?:^|/)(?:[\w-]*(?:(?<![a-z])(?:metric|plot|eval|bench|test|export|convert|logger|calibrat"
    r"|loaders?|debug|results)|visuali[sz])[\w-]*|val)(?:\.py$|/)"
)
_HOST = re.compile(
    r"(?:^|/)(?:data|datasets?|transforms|pipelines_data|samplers)/|(?:^|/)"
    r"(?:image_processing|processing|feature_extraction|tokenization|augment|dataset)\w*\.py$"
)


class FileRole(Flag):
    """What a file is for; of none of these it is code of the project itself.

    Attributes:
        IN_TESTS: It is below a folder of tests.
        TEST: It is a test by its folder or its name.
        COLD: It evaluates, draws, exports or converts, and what is slow in it costs little.
        HOST: It prepares data on the host.
    """

    IN_TESTS = auto()
    TEST = auto()
    COLD = auto()
    HOST = auto()


_TRAINS = re.compile(r"(?<![a-z])train(?:ing)?_(?:and|n)_(?:test|eval|val)")
"""`train_and_test.py` does not only evaluate."""
_TABLE = (
    (
        FileRole.IN_TESTS | FileRole.TEST,
        re.compile(r"(?:^|/)(?:tests?|testing|testdata|test_utils)/"),
    ),
    (FileRole.TEST, re.compile(r"(?:^|/)(?:test_\w+|\w+_test)\.py\Z")),
)
_NEAR_TABLE = ((FileRole.COLD, _COLD), (FileRole.HOST, _HOST))
"""Checked in the last folder alone: whole projects are in `/data` and `tests`."""
_BY_NAME = FileRole.TEST | FileRole.COLD
_OUTER_FOLDERS = {
    "evaluation": FileRole.COLD,
    "metrics": FileRole.COLD,
    "datasets": FileRole.HOST,
}
"""These say what they hold from one folder further out, too."""


@lru_cache(maxsize=4096)
def file_role(path: str) -> FileRole:
    """What a file is for, by its path within the project."""
    path = path.replace("\\", "/")
    *_, outer, folder, name = ("", "", *path.split("/"))
    found = _OUTER_FOLDERS.get(outer, FileRole(0))
    for role, pattern in _TABLE:
        if pattern.search(path) is not None:
            found |= role
    for role, pattern in _NEAR_TABLE:
        if pattern.search(f"{folder}/{name}") is not None:
            found |= role
    if found & _BY_NAME and _TRAINS.search(name) is not None:
        return file_role(f"{path.removesuffix(name)}main.py")
    return found
