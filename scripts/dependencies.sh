#!/usr/bin/env bash
# What the crates depend on: nothing unused, one place it comes from, licences that deny.toml names.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
cargo shear || { echo "dependencies: 'cargo shear --fix' removes what is not used"; exit 1; }
cargo deny --workspace --log-level error check --hide-inclusion-graph bans licenses sources
