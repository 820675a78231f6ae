#!/usr/bin/env bash
# Builds the console anew, checks its types against the API's document, and installs what opens it in a browser:
# tests/testbed/tests/console.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -f console/dist/index.html
scripts/console.sh
cd console
npm run --silent check
cd tests
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
