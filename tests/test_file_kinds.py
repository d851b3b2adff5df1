"""Which kind of file is which, and that all which is known of a kind comes from its record."""

import importlib.util
from pathlib import Path

import pytest

from npulens.checks.other_files.configuration_files import SETTINGS
from npulens.checks.other_files.launch_files import READERS
from npulens.text.kinds import KINDS, Comments, Kind, kind_by_language, kind_by_name, kind_of

ROOT = Path(__file__).resolve().parents[1]
NAMES = {
    "train.py": Kind.PYTHON,
    "a/TRAIN.PY": Kind.PYTHON,
    "run.slurm": Kind.SHELL,
    "Dockerfile": Kind.DOCKERFILE,
    "docker/dockerfile.gpu": Kind.DOCKERFILE,
    "gpu.dockerfile": Kind.DOCKERFILE,
    "Dockerfiles": None,
    "Pipfile": Kind.TOML,
    "pipfile": None,
    "CMakeLists.txt": Kind.CMAKE,
    "cmakelists.txt": None,
    "GNUmakefile": Kind.MAKE,
    "rules.mk": Kind.MAKE,
    "requirements.txt": Kind.REQUIREMENTS,
    "requirements-gpu.in": Kind.REQUIREMENTS,
    "file:///a/requirements/base.txt": Kind.REQUIREMENTS,
    "C:\\a\\requirements\\base.txt": Kind.REQUIREMENTS,
    "notes/base.txt": None,
    ".env": Kind.ENVIRONMENT,
    "prod.env.local": Kind.ENVIRONMENT,
    "environment": None,
    "kernel.cu": Kind.NATIVE,
    "jobs/train.sub": Kind.INI,
    "run.submit_file": Kind.INI,
    "a.ipynb": Kind.NOTEBOOK,
    "README.md": None,
}


@pytest.mark.parametrize(("path", "kind"), NAMES.items())
def test_a_name_tells_the_kind(path: str, kind: Kind | None) -> None:
    assert kind_by_name(path) is kind


def test_a_first_line_tells_where_the_name_is_silent() -> None:
    assert kind_of("run", "#!/usr/bin/env bash\n") is Kind.SHELL
    assert kind_of("run", "#!/usr/bin/env python3\n") is Kind.PYTHON
    assert kind_of("run.yaml", "#!/bin/bash\n") is Kind.YAML


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_a_record_and_a_reader(kind: Kind) -> None:
    record = KINDS[kind]
    assert record.suffixes or record.names
    assert all(kind_by_language(language) is kind for language in record.languages)
    assert all(kind_by_name(f"a{suffix}") is kind for suffix in record.suffixes)
    assert kind in READERS or kind in SETTINGS or kind in (Kind.PYTHON, Kind.NOTEBOOK, Kind.NATIVE)
    assert isinstance(kind.comments, Comments)


def test_no_suffix_or_language_is_of_two_kinds() -> None:
    for names in ("suffixes", "languages"):
        all_names = [name for record in KINDS.values() for name in getattr(record, names)]
        assert len(all_names) == len(set(all_names))


def test_the_extension_knows_the_same_languages() -> None:
    spec = importlib.util.spec_from_file_location("languages", ROOT / "scripts/make_languages.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.FILE.read_text(encoding="utf-8") == script.languages(), (
        "run scripts/make_languages.py"
    )
