#!/usr/bin/env bash
# Installs a real VS Code workbench to test in: code-server, Chromium to show it, and Node 24, which
# code-server needs. Debian; takes some minutes the first time.
# Usage: install-workbench.sh FOLDER
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)

if ! command -v chromium >/dev/null || ! dpkg -s libkrb5-dev libxkbfile-dev libsecret-1-dev >/dev/null 2>&1; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends \
        chromium fonts-noto-cjk libkrb5-dev libxkbfile-dev libsecret-1-dev libx11-dev
fi

install() { # FOLDER PACKAGE...
    local place=$folder/$1
    shift
    mkdir -p "$place"
    [ -f "$place/package.json" ] || echo '{"private": true}' >"$place/package.json"
    npm install --prefix "$place" --no-audit --no-fund --silent "$@"
}

[ -d "$folder/node24/node_modules/node" ] || install node24 node@24
export PATH=$folder/node24/node_modules/node/bin:$PATH
# The headers for native modules have to be those of Node 24, too.
export npm_config_nodedir
npm_config_nodedir=$(echo "$folder"/node24/node_modules/node/node_modules/node-linux-*)
[ -d "$folder/server/node_modules/code-server/out" ] || install server code-server@4.139.1
[ -d "$folder/browser/node_modules/playwright-core" ] || install browser playwright-core@1.65.1
