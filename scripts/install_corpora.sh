#!/usr/bin/env bash
# Unpacks released packages of code for GPUs into .corpora, for tests of what holds for any code.
# Nothing of them is installed or run. PYTHON names the interpreter whose pip downloads them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages="accelerate==1.15.0 diffusers==0.42.1 fschat==0.2.36 mmdet==3.3.0 ms-swift==4.6.0
    pytorch-lightning==2.6.6 salesforce-lavis==1.0.2 speechbrain==1.1.2 timm==1.0.31 trl==1.16.0
    verl==0.9.1"
python=${PYTHON:-python3}
[ -x .venv/bin/python ] && python=.venv/bin/python

mkdir -p .corpora
missing=()
for package in $packages; do
    [ -d ".corpora/${package%%==*}" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --no-deps --only-binary :all: --dest "$work" "${missing[@]}"
for package in "${missing[@]}"; do
    name=${package%%==*}
    "$python" -m zipfile -e "$work/${name//-/_}"-*.whl "$work/unpacked"
    mv "$work/unpacked" ".corpora/$name"
done
