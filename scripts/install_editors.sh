#!/usr/bin/env bash
# Installs the editors that tests/test_editors.py drives, and the browser of
# tests/test_report_page.py, where the system's packages have them.
# Says why if it cannot; the tests then skip, unless NPULENS_EDITORS=required.
set -euo pipefail

wanted=()
command -v chromium >/dev/null || wanted+=(chromium)
command -v nvim >/dev/null || wanted+=(neovim)
command -v emacs >/dev/null || wanted+=(emacs-nox)
dpkg -s elpa-eglot >/dev/null 2>&1 || wanted+=(elpa-eglot)
if [ ${#wanted[@]} -eq 0 ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "install_editors: no apt-get here; install by hand: ${wanted[*]}" >&2
    exit 1
fi
run=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install_editors: neither root nor sudo; install by hand: ${wanted[*]}" >&2
        exit 1
    fi
    run=(sudo)
fi
"${run[@]}" apt-get update --quiet >/dev/null
DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install --yes --quiet \
    --no-install-recommends "${wanted[@]}" >/dev/null
