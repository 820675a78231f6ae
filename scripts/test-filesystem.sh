#!/usr/bin/env bash
# pjdfstest and fsx on delivered datasets: what POSIX promises, checked by programs of others.
#
#   scripts/test-filesystem.sh [pjdfstest|fsx]…     only these; both otherwise
#   OFFSHOOT_TEST_DELIVERY=NAME scripts/…           by this delivery; FUSE otherwise
#
# Installs the two suites into target/tools when they are not on PATH. Every step has a time limit;
# the servers it started and their mounts are gone when it ends, whatever happened. Without root fsx
# runs alone: pjdfstest changes users.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
command -v cargo >/dev/null || . "$HOME/.cargo/env"

config=tests/filesystem
target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/tools
export PATH=$PATH:$tools/bin
only=("$@")

suites=(pjdfstest fsx)
if [ "$(id -u)" != 0 ]; then
  suites=(fsx)
  echo "== pjdfstest: skipped, as it changes users and needs root"
fi
[ -e /dev/fuse ] || { echo "test-filesystem: no /dev/fuse; install fuse3, run modprobe fuse" >&2; exit 2; }

for suite in "${suites[@]}"; do
  command -v "$suite" >/dev/null && continue
  case $suite in pjdfstest) version=0.2.2 ;; fsx) version=0.3.2 ;; esac
  # They wait for the files they test: unoptimised they are built in half the time.
  timeout --kill-after=10 600 env -u RUSTC_WORKSPACE_WRAPPER cargo install --quiet --locked --debug --root "$tools" \
    --target-dir "$target/tools-build" "$suite@$version" || exit 1
done

serve=$target/debug/serve_mount
timeout --kill-after=10 900 cargo build --quiet --workspace --bin serve_mount || exit 1

work=$(mktemp -d "${TMPDIR:-/var/tmp}/offshoot-filesystem-XXXXXX")
chmod 755 "$work"
# The suite binds sockets, whose paths may have 107 bytes: reach the mounts by a short way.
short=$(mktemp -u /tmp/ofs-XXXXXX)
ln -s "$work" "$short"
servers=()

finish() {
  local status=$? pid
  trap - EXIT INT TERM
  for pid in "${servers[@]}"; do kill -TERM "$pid" 2>/dev/null; done
  for pid in "${servers[@]}"; do
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null
  done
  for mount in "$work"/*/mount; do
    umount -l "$mount" 2>/dev/null || fusermount3 -u -z "$mount" 2>/dev/null
  done
  rm -f "$short"
  rm -rf --one-file-system "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mounted() { # NAME [OPTION…]: serves a new pool; sets $mount
  local name=$1
  shift
  mount=$work/$name/mount
  mkdir -p "$mount" "$work/$name/pool"
  : >"$work/$name/log"
  # What other users may is for pjdfstest alone.
  [ "$name" != pjdfstest ] || set -- --allow-other "$@"
  "$serve" "$work/$name/pool" "$mount" --delivery="${OFFSHOOT_TEST_DELIVERY:-fuse}" "$@" </dev/null >"$work/$name/log" 2>&1 &
  servers+=("$!")
  for _ in $(seq 1200); do
    grep -q '^ready' "$work/$name/log" && return 0
    kill -0 "${servers[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  echo "test-filesystem: the server of $name did not come up:"
  cat "$work/$name/log"
  exit 1
}

wanted() {
  local one
  case " ${suites[*]} " in *" $1 "*) ;; *) return 1 ;; esac
  [ ${#only[@]} -gt 0 ] || return 0
  for one in "${only[@]}"; do [ "$one" != "$1" ] || return 0; done
  return 1
}

failed=0
run_pjdfstest() {
  mounted pjdfstest
  mkdir "$work/second"
  timeout --kill-after=5 300 pjdfstest -c "$config/pjdfstest.toml" --secondary-fs "$work/second" \
    -p "$short/pjdfstest/mount" >"$work/pjdfstest.out" 2>&1 </dev/null
  local status=$?
  grep -A3 'FAILED' "$work/pjdfstest.out" | head -200
  grep '^Summary' "$work/pjdfstest.out" || status=1
  if [ "$status" = 0 ]; then
    echo "== pjdfstest: ok"
  else
    echo "== pjdfstest: failed with $status"
    grep -q '^Summary' "$work/pjdfstest.out" || tail -20 "$work/pjdfstest.out"
    failed=1
  fi
}

run_fsx() { # NAME CONFIG OPERATIONS SEED [MOUNT OPTION…]
  local name=$1 conf=$2 operations=$3 seed=$4
  shift 4
  mounted "$name" "$@"
  timeout --kill-after=5 240 fsx -q -f "$config/$conf" -N "$operations" -S "$seed" -P "$work" "$mount/file" \
    >"$work/$name.out" 2>&1 </dev/null
  local status=$?
  if [ "$status" = 0 ]; then
    echo "== fsx $name: $operations operations, seed $seed: ok"
  else
    echo "== fsx $name (seed $seed): failed with $status"
    tail -60 "$work/$name.out"
    failed=1
  fi
}

seed=${OFFSHOOT_FSX_SEED:-$(($(date +%s) % 1000000))}
if wanted pjdfstest; then run_pjdfstest; fi
if wanted fsx; then
  run_fsx bytes fsx.toml 20000 "$seed"
  run_fsx pages fsx-pages.toml 10000 "$seed"
  run_fsx direct fsx.toml 10000 "$seed" --direct-io
  run_fsx committing fsx.toml 10000 "$seed" --snapshots
fi
exit "$failed"
