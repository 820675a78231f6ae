#!/usr/bin/env bash
# Builds the container image `offshoot` of a binary, with podman or docker.
#
#   scripts/image.sh [--binary BINARY] [--tag NAME] [OPTION OF build…]
#
# BINARY is target/release/offshoot unless another is named.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=target/release/offshoot tag=offshoot options=()
while [ $# -gt 0 ]; do
  case $1 in
    --binary) binary=$2; shift ;;
    --tag) tag=$2; shift ;;
    *) options+=("$1") ;;
  esac
  shift
done
program=$(command -v podman || command -v docker) ||
  { echo "image: neither podman nor docker is here: apt-get install podman" >&2; exit 1; }
context=$(mktemp -d "${TMPDIR:-/tmp}/offshoot-image-XXXXXX")
trap 'rm -rf "$context"' EXIT
package=$(scripts/package.sh "$binary" "$context")
mv "$package" "$context/offshoot.deb"
cp packaging/container/Containerfile "$context"
"$program" build --tag "$tag" "${options[@]}" --file "$context/Containerfile" "$context"
