"""What is known of a rule beside its wording: each property is in the file of the rule."""

from enum import Enum


class Once(str, Enum):
    """Within what further findings of a rule say nothing new."""

    FILE = "file"
    PROJECT = "project"


class SettledBy(str, Enum):
    """What else than a condition around it settles a finding of a rule.

    Attributes:
        TESTS: The file is one of a test, and there is nothing to use instead.
        HOST_CODE: The file prepares data on the host, where PyTorch has all APIs.
        TYPE_ONLY: What an import names is only in annotations and questions for types.
        OTHER_WAY: It is missing, and the code has another way where an import fails.
    """

    TESTS = "tests"
    HOST_CODE = "host-code"
    TYPE_ONLY = "type-only"
    OTHER_WAY = "other-way"


class LibraryState(str, Enum):
    """What a rule says of a library.

    Attributes:
        ABSENT: No build of it runs on the NPU.
        ABSENT_NAME: The same of a name in it.
        NEEDS_BUILD: Another build has to be installed.
        UNPORTED_PART: It runs, but for this part.
        UNVERIFIED: Nobody is known to have tried it.
        OPTIONAL: The code does without it.
    """

    ABSENT = "absent"
    ABSENT_NAME = "absent-name"
    NEEDS_BUILD = "needs-build"
    UNPORTED_PART = "unported-part"
    UNVERIFIED = "unverified"
    OPTIONAL = "optional"


class Absent(str, Enum):
    """When code stops for which the NPU has nothing in place of what is found."""

    AT_IMPORT = "at-import"
    AT_USE = "at-use"


WITHOUT_BUILD = frozenset({LibraryState.ABSENT, LibraryState.ABSENT_NAME})
"""There is nothing to install."""
WITH_OTHER_WAYS = frozenset({LibraryState.NEEDS_BUILD, LibraryState.UNVERIFIED})
"""It may run after something was installed."""


class ReportTable(str, Enum):
    """In which table of a report of a migration findings are listed."""

    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"
    PRECISION = "precision"
    PERFORMANCE = "performance"
    CUDA_OPERATORS = "cuda-operators"
    AFFINITY = "affinity"


class Tag(str, Enum):
    """How an editor draws what is found."""

    UNNECESSARY = "unnecessary"
    DEPRECATED = "deprecated"
