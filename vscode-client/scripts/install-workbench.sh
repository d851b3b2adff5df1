#!/usr/bin/env bash
# Installs a real VS Code workbench to test in: code-server, Chromium to show it, and Node 24, which
# code-server needs. Debian; takes a minute or two the first time.
# Usage: install-workbench.sh FOLDER
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)

if ! command -v chromium >/dev/null || ! fc-list :lang=zh-cn 2>/dev/null | grep -q .; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends chromium fontconfig fonts-noto-cjk
fi

install() { # FOLDER PACKAGE
    local place=$folder/$1
    mkdir -p "$place"
    [ -f "$place/package.json" ] || echo '{"private": true}' >"$place/package.json"
    npm install --prefix "$place" --no-audit --no-fund --silent "${@:2}"
}

[ -d "$folder/node24/node_modules/node" ] || install node24 node@24
export PATH=$folder/node24/node_modules/node/bin:$PATH
# The headers for native modules have to be those of Node 24, too.
export npm_config_nodedir
npm_config_nodedir=$(echo "$folder"/node24/node_modules/node/node_modules/node-linux-*)
if [ ! -f "$folder/server/ready" ]; then
    # Without its scripts, which compile for minutes; of all that, the log alone is needed here.
    install server --ignore-scripts code-server@4.139.1
    cd "$folder/server/node_modules/code-server/lib/vscode"
    npm install --ignore-scripts --omit=dev --no-audit --no-fund --silent
    npm rebuild --silent @vscode/spdlog @vscode/native-watchdog
    touch "$folder/server/ready"
fi
[ -d "$folder/browser/node_modules/playwright-core" ] || install browser playwright-core@1.65.1
