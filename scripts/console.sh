#!/usr/bin/env bash
# Builds the console from its sources in `console/` into `console/dist`, which the engine embeds. Does nothing where that
# is newer than every source.
set -euo pipefail
cd "$(dirname "$0")/../console"

say() { printf 'console: %s\n' "$*"; }
if [ -f dist/index.html ] && [ -z "$(find build.mjs package.json package-lock.json src ../openapi/offshoot.json -newer dist/index.html -print -quit)" ]; then
  say "nothing has changed"
  exit 0
fi
command -v npm >/dev/null || { say "npm is missing: apt-get install nodejs npm"; exit 1; }
# No package needs to run a program of its own to be installed.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm run --silent build
