#!/usr/bin/env bash
# Unpacks promtool, and Prometheus beside it, for the tests of metrics and alerts, and prints the path of promtool. Nothing is
# installed: Debian's package would start a server.
# Where it cannot be had this says so on stderr and prints an empty line.
set -euo pipefail
cd "$(dirname "$0")/.."
place=${CARGO_TARGET_DIR:-$PWD/target}/test-promtool
give_up() { printf 'test-promtool: %s\n' "$*" >&2; echo; exit 0; }

if [ ! -x "$place/usr/bin/promtool" ] || [ ! -x "$place/usr/bin/prometheus" ]; then
  command -v apt-get >/dev/null || give_up "there is no apt here"
  mkdir -p "$place"
  (cd "$place" && timeout --kill-after=5 180 apt-get -q download prometheus >&2) </dev/null || give_up "the package 'prometheus' could not be downloaded"
  dpkg-deb -x "$place"/prometheus_*.deb "$place" || give_up "the package cannot be unpacked"
  rm -f "$place"/prometheus_*.deb
fi
printf '%s\n' "$place/usr/bin/promtool"
