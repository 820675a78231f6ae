#!/usr/bin/env bash
# Builds the binary of an older version for the tests of upgrades, and prints its path.
#
#   scripts/test-older.sh [COMMIT]
#
# COMMIT is the newest tag before this commit; before the first release, the last commit of an earlier day (UTC) than this one's.
# Where neither is there, as in a clone without history, this says so on stderr and prints an empty line.
set -euo pipefail
cd "$(dirname "$0")/.."
give_up() { printf 'test-older: %s\n' "$*" >&2; echo; exit 0; }
midnight=$(($(git log -1 --format=%ct) / 86400 * 86400))
commit=${1:-$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null || git log -1 --before="@$((midnight - 1)) +0000" --format=%H)}
[ -n "$commit" ] || give_up "there is no older commit here"
commit=$(git rev-parse --short=12 "$commit^{commit}") || give_up "there is no such commit here"

place=${CARGO_TARGET_DIR:-$PWD/target}/test-older
binary=$place/offshoot-$commit
if [ ! -x "$binary" ]; then
  rm -rf "$place/source"
  mkdir -p "$place/source"
  git archive "$commit" | tar -x -C "$place/source"
  printf 'test-older: building %s\n' "$(git log -1 --format='%h of %ci' "$commit")" >&2
  # With what this checkout was built with, but for its own lints.
  (cd "$place/source" && env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS CARGO_TARGET_DIR="$place/target" \
    cargo build --quiet --workspace --bin offshoot) </dev/null >&2
  mv "$place/target/debug/offshoot" "$binary"
  rm -rf "$place/source" "$place/target"
fi
printf '%s\n' "$binary"
