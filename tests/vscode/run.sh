#!/usr/bin/env bash
# Builds the .vsix and tests it in a real VS Code: bash tests/vscode/run.sh [SCENARIO ...]
# With GRADGUARD_SHOTS=docs/images the six pictures of the documentation are written there.
# Needs tests/vscode/setup.sh and `npm ci` before.
set -euo pipefail
cd "$(dirname "$0")/../.."
vsix=build/editor/gradguard.vsix
mkdir -p build/editor
browser=--browser  # what only one of the scenarios needs takes a minute
case " ${*:-web} " in *" web "*) ;; *) browser= ;; esac
node client/scripts/package.mjs --quick $browser --out "$vsix"
exec node tests/vscode/run.mjs --vsix "$vsix" ${GRADGUARD_SHOTS:+--shots "$GRADGUARD_SHOTS"} "$@"
