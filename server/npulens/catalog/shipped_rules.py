"""The shipped rules: written in TOML, a file for each rule, and loaded in one compiled file."""

from pathlib import Path

from npulens.catalog.compiled_tables import CompiledTables, data_folder
from npulens.catalog.messages import message
from npulens.catalog.rule_file import CatalogueError, RuleFile, read_content

_GENERATED = ("native/limits.json", "native/npu_names.json")
"""What PyTorch's own APIs do on the NPU, and what torch_npu has; JSON for its size."""


def rules_folder() -> Path:
    """Where the shipped rules are."""
    return data_folder("rules")


def rule_tables(folder: Path) -> CompiledTables:
    """All rule files in TOML."""
    return CompiledTables(folder, "*/*.toml", read_content)


def shipped_rules(folder: Path) -> list[RuleFile]:
    """All shipped rule files.

    Raises:
        CatalogueError: One cannot be read or breaks the format.
    """
    try:
        contents = rule_tables(folder).contents()
    except (OSError, ValueError) as error:
        raise CatalogueError(message("error.no-rule-files", folder=folder)) from error
    files = [RuleFile.of(content, label) for label, content in contents]
    return files + [RuleFile.read(folder / name, f"rules/{name}") for name in _GENERATED]
