#!/usr/bin/env bash
# Installs npulens for development into .venv and runs everything that must pass.
# PYTHON names the interpreter that .venv is made with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    "${PYTHON:-python3}" -m venv --clear .venv
fi
python=.venv/bin/python
# hatchling lets the tests build the wheel; older versions of pip cannot install in place.
"$python" -m pip install --quiet "pip>=21.3" "hatchling>=1.26"
"$python" -m pip install --quiet --editable ".[dev]"

"$python" -m ruff format --check .
"$python" -m ruff check .
"$python" -m mypy
"$python" -m pytest "$@"
