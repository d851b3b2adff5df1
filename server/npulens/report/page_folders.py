"""The folders of a project with what is to be done in them."""

from collections.abc import Iterable, Mapping, Sequence

from npulens.report.page_model import FileRow, Folder


def folder_tree(files: Iterable[FileRow]) -> Folder:
    """The folder that all files are in."""
    root = Folder("", "")
    known = {"": root}
    children: dict[str, list[Folder]] = {"": []}
    for file in files:
        _count(root, file)
        path = ""
        for part in file.name.split("/")[:-1]:
            above, path = path, f"{path}/{part}" if path else part
            if path not in known:
                known[path] = Folder(part, path)
                children[path] = []
                children[above].append(known[path])
            _count(known[path], file)
    return _arranged(root, children)


def _count(folder: Folder, file: FileRow) -> None:
    folder.shares[file.readiness] += 1
    folder.findings += file.findings
    folder.work += file.work


def _arranged(root: Folder, children: Mapping[str, Sequence[Folder]]) -> Folder:
    """The tree below a folder; one that holds a single folder and no file is one with it."""
    pending = [root]
    while pending:
        folder = pending.pop()
        inside = children[folder.path]
        while folder is not root and len(inside) == 1 and inside[0].files == folder.files:
            folder.name, folder.path = f"{folder.name}/{inside[0].name}", inside[0].path
            inside = children[folder.path]
        loud = [each for each in inside if each.findings]
        folder.folders = tuple(
            sorted(loud, key=lambda each: (-each.work, -each.findings, each.path))
        )
        folder.silent = len(inside) - len(loud)
        pending += folder.folders
    return root
