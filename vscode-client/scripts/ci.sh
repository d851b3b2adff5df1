#!/usr/bin/env bash
# What must pass before a change of the extension is accepted: style, types, unit tests, and a
# package that holds what it should and whose server runs.
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
node scripts/package.mjs linux-x64
package=$(echo build/npulens-linux-x64-*.vsix)
"$python" -m zipfile --list "$package" | awk '{print $1}' >"$work/files"
for name in LICENSE.txt readme.md dist/extension.js dist/THIRD-PARTY-NOTICES.txt l10n/bundle.l10n.zh-cn.json \
    bundled/common/npulens/rules/device.json bundled/cp310/libcst/native; do
    grep -q "^extension/$name" "$work/files" || fail "$name is not in it"
done
if grep -E '\.map$|\.ts$|__pycache__|node_modules|/tests/' "$work/files"; then
    fail "this should not be in it"
fi
[ "$(stat -c %s "$package")" -lt 40000000 ] || fail "it is larger than 40 MB"

"$python" -m zipfile --extract "$package" "$work/unpacked"
printf 'import torch\nx = torch.ones(2).cuda()\n' >"$work/two_lines.py"
code=0
"$python" "$work/unpacked/extension/bundled/npulens_server.py" check --no-cache "$work/two_lines.py" \
    >"$work/findings" || code=$?
[ "$code" -eq 1 ] && grep -q 'NPU105' "$work/findings" || fail "its server does not find .cuda()"
echo "extension check: passed, $(stat -c %s "$package") bytes"
