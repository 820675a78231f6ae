#!/usr/bin/env bash
# Builds a container image of a binary, with podman or docker: `offshoot`, an engine, or `offshoot-vdb`, whose containers are VDBs.
#
#   scripts/image.sh [--vdb] [--binary BINARY] [--tag NAME] [OPTION OF build…]
#
# BINARY is target/release/offshoot unless another is named.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=target/release/offshoot tag='' vdb='' options=()
while [ $# -gt 0 ]; do
  case $1 in
    --vdb) vdb=yes ;;
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
if [ "$vdb" ]; then
  tag=${tag:-offshoot-vdb}
  cp packaging/container/vdb/* "$context"
  install -m 755 "$binary" "$context/offshoot"
  ! command -v strip >/dev/null || strip --strip-debug "$context/offshoot"
else
  tag=${tag:-offshoot}
  # It is unpacked at once: to compress it would take a minute.
  package=$(scripts/package.sh "$binary" "$context" -Znone)
  mv "$package" "$context/offshoot.deb"
  cp packaging/container/Containerfile "$context"
fi
"$program" build --tag "$tag" "${options[@]}" --file "$context/Containerfile" "$context"
