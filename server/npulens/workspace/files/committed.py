"""Whether a working tree is as it was committed, found out without what its repository names.

A repository may come with a project, and its configuration, attributes and hooks name programs. So
git is never started in it: the index is read here, files are compared with it here, and git only
lists the files of the commit, in an empty repository that borrows the objects.
"""

import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from npulens.catalog.messages import LocalizedError, message, os_error
from npulens.workspace.files.folders import STATE_FILE
from npulens.workspace.files.git_index import Entry, Index
from npulens.workspace.files.repository import (
    Repository,
    head_commit,
    read_plain,
    repository_at,
)

_LONGEST_RUN = 120
"""In seconds; git takes one for a hundred thousand files."""
_MOST_IN_MEMORY = 20_000_000
_CHUNK = 1 << 20
_MOST_ATTRIBUTES = 1_000_000
_LINK = 0o120000
_UNTRANSLATED = (b"unspecified", b"unset")
_SETTINGS = {
    "sha1": "[core]\n\trepositoryformatversion = 0\n",
    "sha256": "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n",
}

_Content = tuple[int, str]
"""The mode and the name of a content."""
_Git = Callable[..., bytes]


class CommittedError(LocalizedError):
    """It cannot be known; the text says why, in a part of a sentence."""


def first_change(repository: Repository, index: Index) -> str | None:
    """The path of something that is not as in the commit that is checked out, `None` if all is.

    Both the index and the working tree count; whether a file may be executed counts in the index
    alone. Files that differ in their line ends alone, or of which Git LFS keeps a pointer, are as
    they were committed. So is the state of the migration guide, which nothing fixes: whoever ticks
    a point goes on without a commit.

    Raises:
        CommittedError: It cannot be known.
        RepositoryError: It is not known what is checked out.
    """
    with _borrowed(repository, index.hash_name) as git:
        staged = _staged(index, _committed(repository, git))
        if staged is not None:
            return staged
        written = _written(repository.index_file)
        changed = [
            entry.path
            for entry in index.entries
            if os.path.basename(entry.path) != STATE_FILE  # noqa: PTH119
            and not _is_as_in_index(repository.root, entry, written, index.hash_name)
        ]
        if not changed:
            return None
        translated = _translated(repository, changed, git)
    for path in changed:
        if path not in translated:
            return path
    place = f"{repository.root}/{changed[0]}"
    raise CommittedError(message("git.needs-filter", path=place))


def _staged(index: Index, committed: dict[str, _Content]) -> str | None:
    """The first path of which the index has something else than the commit."""
    listed = {entry.path.rstrip("/"): (entry.mode, entry.content) for entry in index.entries}
    sparse = tuple(e.path for e in index.entries if e.is_folder and not e.is_submodule) or "\0"
    merging = (entry.path for entry in index.entries if entry.is_merging)
    other = (path for path, content in listed.items() if committed.get(path) != content)
    files = (path for path, (mode, _) in committed.items() if not stat.S_ISDIR(mode))
    gone = (path for path in files if path not in listed and not path.startswith(sparse))
    return next(chain(merging, other, gone), None)


def _committed(repository: Repository, git: _Git) -> dict[str, _Content]:
    """All files and folders of the commit that is checked out."""
    commit = head_commit(repository)
    if commit is None:
        return {}
    found: dict[str, _Content] = {}
    for line in git("ls-tree", "-r", "-t", "-z", "--full-tree", commit).split(b"\0"):
        described, _, path = line.partition(b"\t")
        if path:
            mode, _, name = described.split(b" ")
            found[os.fsdecode(path)] = int(mode, 8), name.decode()
    return found


def _written(file: str) -> tuple[int, int]:
    """When an index was written."""
    try:
        return divmod(os.lstat(file).st_mtime_ns, 1_000_000_000)
    except OSError:
        return 0, 0


def _is_as_in_index(root: str, entry: Entry, written: tuple[int, int], hash_name: str) -> bool:
    path = f"{root}/{entry.path}"
    if entry.is_trusted:
        return True
    if entry.is_submodule:
        inner = repository_at(path)
        return inner is None or head_commit(inner) in (None, entry.content)
    if entry.is_folder:  # nothing of it is checked out
        return True
    try:
        status = os.lstat(path)
        if entry.modified < written and _has_same_status(entry, status):
            return True
        return entry.content in _contents(path, entry, status, hash_name)
    except OSError:
        return False


def _has_same_status(entry: Entry, status: os.stat_result) -> bool:
    """Whether a file was not written since git looked at it, as git itself decides."""
    kind = _LINK if stat.S_ISLNK(status.st_mode) else stat.S_IFREG
    times = [(entry.modified, status.st_mtime_ns)]
    if os.name != "nt":
        times.append((entry.changed, status.st_ctime_ns))
    return (
        stat.S_IFMT(entry.mode) == kind
        and stat.S_IFMT(status.st_mode) == kind
        and entry.size == status.st_size & 0xFFFFFFFF
        and all(_is_same_time(*pair) for pair in times)
    )


def _is_same_time(listed: tuple[int, int], time: int) -> bool:
    seconds, rest = divmod(time, 1_000_000_000)
    return listed[0] == seconds & 0xFFFFFFFF and listed[1] in (0, rest)


def _contents(path: str, entry: Entry, status: os.stat_result, hash_name: str) -> Iterator[str]:
    """The names of what git may have stored of a file that is as it was committed."""

    def name_of(data: bytes) -> str:
        return hashlib.new(hash_name, b"blob %d\0" % len(data) + data).hexdigest()

    if stat.S_ISLNK(status.st_mode):
        if stat.S_IFMT(entry.mode) == _LINK:
            yield name_of(os.fsencode(os.readlink(path)))  # noqa: PTH115
        return
    if not stat.S_ISREG(status.st_mode):
        return
    size = status.st_size
    if size <= _MOST_IN_MEMORY:
        data = read_plain(path, _MOST_IN_MEMORY)
        if data is None:
            return
        yield name_of(data)
        yield name_of(data.replace(b"\r\n", b"\n"))
        yield name_of(_lfs_pointer(hashlib.sha256(data).hexdigest(), size))
        return
    plain, pointed = hashlib.new(hash_name, b"blob %d\0" % size), hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            plain.update(chunk)
            pointed.update(chunk)
    yield plain.hexdigest()
    yield name_of(_lfs_pointer(pointed.hexdigest(), size))


def _lfs_pointer(digest: str, size: int) -> bytes:
    """What Git LFS commits in place of a file."""
    lines = ("version https://git-lfs.github.com/spec/v1", f"oid sha256:{digest}", f"size {size}")
    return "".join(f"{line}\n" for line in lines).encode()


def _translated(repository: Repository, paths: Sequence[str], git: _Git) -> set[str]:
    """The files among these whose attributes let git store something else than they hold."""
    query = b"".join(os.fsencode(path) + b"\0" for path in paths)
    names = ("filter", "ident", "working-tree-encoding")
    output = git("check-attr", "-z", "--stdin", *names, given=query)
    words = output.split(b"\0")
    answers = zip(words[::3], words[2::3], strict=False)
    return {os.fsdecode(path) for path, value in answers if value not in _UNTRANSLATED}


@contextmanager
def _borrowed(repository: Repository, hash_name: str) -> Iterator[_Git]:
    """Git in an empty repository with the objects of another one, and no settings of anybody."""
    with TemporaryDirectory(prefix="npulens-git-") as folder:
        place = Path(folder)
        (place / "refs").mkdir()
        (place / "info").mkdir()
        (place / "HEAD").write_text("ref: refs/heads/none\n")
        (place / "config").write_text(_SETTINGS[hash_name])
        attributes = read_plain(f"{repository.common}/info/attributes", _MOST_ATTRIBUTES)
        (place / "info" / "attributes").write_bytes(attributes or b"")
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("GIT_")},
            **dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "GIT_DIR"), folder),
            **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
            **dict.fromkeys(("GIT_CONFIG_NOSYSTEM", "GIT_NO_REPLACE_OBJECTS"), "1"),
            **dict.fromkeys(("GIT_NO_LAZY_FETCH", "GIT_ATTR_NOSYSTEM"), "1"),
            **dict.fromkeys(("GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT"), "0"),
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_WORK_TREE": repository.root,
            "GIT_OBJECT_DIRECTORY": os.path.abspath(f"{repository.common}/objects"),  # noqa: PTH100
        }

        def git(*words: str, given: bytes = b"") -> bytes:
            # Started where nobody else puts files: the search for programs may begin there.
            return _run(["-C", repository.root, *words], given, folder, environment)

        yield git


def _run(words: Sequence[str], given: bytes, folder: str, environment: dict[str, str]) -> bytes:
    try:
        result = subprocess.run(
            ["git", "--no-pager", *words],
            input=given,
            capture_output=True,
            cwd=folder,
            env=environment,
            timeout=_LONGEST_RUN,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommittedError(message("git.never-ends")) from error
    except OSError as error:
        raise CommittedError(message("git.cannot-be-run", reason=os_error(error))) from error
    if result.returncode:
        lines = result.stderr.decode("utf-8", "replace").splitlines() or ["no reason given"]
        raise CommittedError(message("git.refuses", reason=lines[0]))
    return result.stdout
