"""Puts rules and messages into the wheel, those in TOML compiled into files that load quickly."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledTables(BuildHookInterface):  # type: ignore[type-arg]
    """The hook of the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile rules and messages, and say where they and the rest of `rules/` go."""
        root = Path(self.root)
        sys.path.insert(0, str(root / "server"))
        from npulens.catalog.compiled_tables import COMPILED
        from npulens.catalog.messages import messages
        from npulens.catalog.shipped_rules import rule_tables
        from npulens.fused.known_patterns import pattern_tables

        rules = root / "rules"
        others = [*rules.glob("fused/*.py"), *rules.glob("*/*.json"), rules / "guide.toml"]
        kept = (path for path in others if path.name != COMPILED)
        places = {path: path.relative_to(root).as_posix() for path in kept}
        self._folder = tempfile.TemporaryDirectory()
        for name, tables in (
            ("rules", rule_tables(rules)),
            ("rules/fused", pattern_tables(rules / "fused")),
            ("messages", messages()),
        ):
            file = Path(self._folder.name) / f"{tables.folder.name}.json"
            file.write_text(tables.compiled(), encoding="utf-8")
            places[file] = f"{name}/{COMPILED}"
        for path, place in places.items():
            build_data["force_include"][str(path)] = f"npulens/{place}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the compiled files."""
        self._folder.cleanup()
