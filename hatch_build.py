"""Puts the rules into the wheel, those in TOML compiled into one file that loads quickly."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledRules(BuildHookInterface):  # type: ignore[type-arg]
    """The hook of the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the rules, and say where they and the other files of `rules/` go."""
        root = Path(self.root)
        sys.path.insert(0, str(root / "server"))
        from npulens.catalog.shipped_rules import COMPILED, compiled

        rules = root / "rules"
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / COMPILED
        file.write_text(compiled(rules), encoding="utf-8")
        others = [*rules.glob("fused/*.py"), *rules.glob("*/*.json")]
        places = {path: path.relative_to(rules).as_posix() for path in others}
        for path, place in {**places, file: COMPILED}.items():
            build_data["force_include"][str(path)] = f"npulens/rules/{place}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the compiled file."""
        self._folder.cleanup()
