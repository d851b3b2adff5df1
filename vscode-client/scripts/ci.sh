#!/usr/bin/env bash
# What must pass before a change of the extension is accepted: style, types, unit tests, packages
# that hold what they should, whose servers run on all Pythons that are found, and a real workbench.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}

if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
    npm ci --no-audit --no-fund --loglevel=error
fi
npm run --silent check
npm test --silent

fail() {
    echo "extension check: $1" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check_content() { # PACKAGE FILE...
    local package=$1
    shift
    "$python" -m zipfile --list "$package" | awk '{print $1}' >"$work/files"
    for name in LICENSE.txt readme.md dist/extension.js dist/client.js dist/THIRD-PARTY-NOTICES.txt \
        l10n/bundle.l10n.zh-cn.json resources/report.js bundled/common/npulens/rules/compiled.json \
        launcher/npulens_server.py bundled/emulator/npulens_emulator/run.py "$@"; do
        grep -q "^extension/$name" "$work/files" || fail "$name is not in $package"
    done
    if grep -E '\.map$|\.ts$|__pycache__|node_modules|/tests?/' "$work/files"; then
        fail "this should not be in $package"
    fi
    [ "$(stat -c %s "$package")" -lt 40000000 ] || fail "$package is larger than 40 MB"
}

node scripts/package.mjs universal
node scripts/package.mjs linux-x64
universal=$(echo build/npulens-universal-*.vsix)
linux=$(echo build/npulens-linux-x64-*.vsix)
check_content "$linux" bundled/cp310/markupsafe/_speedups bundled/cp314/markupsafe/_speedups
check_content "$universal"
if grep -E '\.(so|pyd|dll|dylib)$' "$work/files"; then
    fail "the universal build has compiled files"
fi

# The same package works with the server in it and with that of an environment: the one of the
# tests, which has PyTorch, or one made here. Of other Pythons those are taken that are found.
environment=../.venv
if [ ! -x "$environment/bin/python" ]; then
    environment=$work/environment
    "$python" -m venv "$environment"
    UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1 build/venv/bin/python -m uv pip install --quiet --python "$environment" ..
fi
others=()
for minor in 9 10 11 12 13 14; do
    for each in "$(command -v "python3.$minor")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
        if [ -x "$each" ] && "$each" -c pass 2>/dev/null; then
            others+=("$each")
            break
        fi
    done
done
check_servers() { # PACKAGE
    local place=$work/unpacked-${1##*/}
    "$python" -m zipfile --extract "$1" "$place"
    node scripts/activation-test.mjs "$place/extension"
    node scripts/servers-test.mjs "$place/extension" "$environment/bin/python" "${others[@]}"
}
check_servers "$universal" & # most of it is waiting for servers, so both go on at once
universal_servers=$!
check_servers "$linux"
wait "$universal_servers"

left=$((${NPULENS_CI_ENDS:-$(date +%s) + 3600} - $(date +%s)))
needed=420 # it takes five minutes where nothing is installed, and a slow machine more
[ -f build/workbench/server/ready ] && needed=240
if [ "$left" -lt "$needed" ]; then
    echo "extension check: no time is left for a workbench, its test is left out" >&2
elif bash scripts/install-workbench.sh build/workbench; then
    node scripts/workbench-test.mjs build/workbench "$universal" build/pictures "$environment/bin/python"
else
    echo "extension check: no workbench can be installed here, its test is left out" >&2
fi
echo "extension check: passed, universal $(stat -c %s "$universal") bytes," \
    "linux-x64 $(stat -c %s "$linux") bytes"
