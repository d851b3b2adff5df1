#!/usr/bin/env bash
# What must pass before a change of the extension is accepted: style, types, unit tests, and
# packages that hold what they should, whose servers run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}

npm ci --no-audit --no-fund --loglevel=error
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
        l10n/bundle.l10n.zh-cn.json resources/report.js bundled/common/npulens/rules/device.json \
        "$@"; do
        grep -q "^extension/$name" "$work/files" || fail "$name is not in $package"
    done
    if grep -E '\.map$|\.ts$|__pycache__|node_modules|/tests?/|/(libcst|jedi)/' "$work/files"; then
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

# The same package works with the server in it and with that of an environment.
"$python" -m venv "$work/environment"
UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1 build/venv/bin/python -m uv pip install --quiet --python "$work/environment" ..
for package in "$universal" "$linux"; do
    rm -rf "$work/unpacked"
    "$python" -m zipfile --extract "$package" "$work/unpacked"
    node scripts/activation-test.mjs "$work/unpacked/extension"
    node scripts/servers-test.mjs "$work/unpacked/extension" "$work/environment/bin/python"
done
echo "extension check: passed, universal $(stat -c %s "$universal") bytes," \
    "linux-x64 $(stat -c %s "$linux") bytes"
