#!/bin/sh
# Installs what JupyterLab talks to language servers through into .venvs/jupyter of this checkout.
# Usage: tests/editors/setup_jupyter.sh [PYTHON]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${1:-python3}
venv="$root/.venvs/jupyter"
version=2.3.1
if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c "import jupyter_lsp as j; assert j.__version__ == '$version'" 2>/dev/null; then
    exit 0
fi
"$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "jupyter-lsp==$version"
