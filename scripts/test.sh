#!/usr/bin/env bash
# Everything that must hold before a change lands, phase by phase. `make test` runs it.
#
# It ends by itself: every phase has a limit and all of them together a budget
# (OFFSHOOT_TEST_BUDGET_SECONDS, 2,640 by default). A phase is a process group of its own, reads from
# /dev/null and writes into a file that is copied here, so that a process it leaves behind can
# neither wait for input nor keep our output open. What is left at the end is removed.
#
#   scripts/test.sh [PHASE…]     only these phases: fmt tidy clippy build unit simulation fuzz filesystem testbed
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
command -v cargo >/dev/null || . "$HOME/.cargo/env"

began=$SECONDS
budget=${OFFSHOOT_TEST_BUDGET_SECONDS:-2640}
target=${CARGO_TARGET_DIR:-$PWD/target}
# Short, so that sockets of servers fit below it and none of their directories lies elsewhere.
scratch=$(mktemp -d /var/tmp/ot-XXXXXX)
chmod 755 "$scratch"
mkdir -m 1777 "$scratch/tmp"
logs=$(mktemp -d /tmp/offshoot-test-logs-XXXXXX)
phase_pid=
report=()

finish() {
  local status=$?
  trap - EXIT INT TERM
  [ -z "$phase_pid" ] || kill -KILL -- "-$phase_pid" 2>/dev/null
  timeout --kill-after=5 60 scripts/clean-scratch.sh "$scratch" </dev/null >/dev/null 2>&1
  rm -rf "$logs"
  printf '\n'
  [ ${#report[@]} -eq 0 ] || printf '  %s\n' "${report[@]}"
  printf '== total: %s s, %s\n' $((SECONDS - began)) "$([ "$status" = 0 ] && echo ok || echo "FAILED ($status)")"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

phase() { # NAME LIMIT_SECONDS COMMAND…
  local name=$1 limit=$2 from=$SECONDS left shown=0 size status log
  shift 2
  left=$((budget - (SECONDS - began)))
  [ "$left" -ge 5 ] || { echo "== $name: the budget of $budget s is used up"; report+=("$name: not run"); exit 1; }
  [ "$limit" -le "$left" ] || limit=$left
  echo "== $name: begins at $((SECONDS - began)) s, limit $limit s"
  log=$logs/$name.log
  : >"$log"
  timeout --kill-after=20 "$limit" "$@" </dev/null >"$log" 2>&1 &
  phase_pid=$!
  while :; do
    kill -0 "$phase_pid" 2>/dev/null; status=$?
    size=$(stat -c %s "$log")
    if [ "$size" -gt "$shown" ]; then
      tail -c "+$((shown + 1))" "$log" | head -c $((size - shown))
      shown=$size
    fi
    [ "$status" = 0 ] || break
    sleep 0.5
  done
  wait "$phase_pid"; status=$?
  kill -KILL -- "-$phase_pid" 2>/dev/null
  phase_pid=
  case $status in
    0) echo "== $name: ok in $((SECONDS - from)) s"; report+=("$name: ok in $((SECONDS - from)) s") ;;
    124 | 137)
      echo "== $name: FAILED, stopped after $((SECONDS - from)) s"
      report+=("$name: stopped after $((SECONDS - from)) s"); exit 1 ;;
    *)
      echo "== $name: FAILED with $status after $((SECONDS - from)) s"
      report+=("$name: FAILED after $((SECONDS - from)) s"); exit 1 ;;
  esac
}

wanted() { # whether a phase was asked for: all of them where none is named
  local one
  [ ${#only[@]} -gt 0 ] || return 0
  for one in "${only[@]}"; do [ "$one" != "$1" ] || return 0; done
  return 1
}
only=("$@")

export OFFSHOOT_SCRATCH_DIR=$scratch TMPDIR=$scratch/tmp RUST_BACKTRACE=1 RUST_LIB_BACKTRACE=0 CARGO_TERM_COLOR=never
export OFFSHOOT_BIN=$target/debug/offshoot
if [ -z "${OFFSHOOT_TEST_PG_BINS+set}" ] && { wanted unit || wanted testbed; }; then
  OFFSHOOT_TEST_PG_BINS=$(timeout --kill-after=5 300 scripts/test-postgres.sh </dev/null)
fi
export OFFSHOOT_TEST_PG_BINS=${OFFSHOOT_TEST_PG_BINS-}

wanted fmt && phase fmt 60 cargo fmt --all -- --check
wanted tidy && phase tidy 240 cargo xtask tidy
wanted clippy && phase clippy 720 cargo clippy --workspace --all-targets -- -D warnings
wanted build && phase build 900 cargo build --workspace --bins --tests
wanted unit && phase unit 600 cargo test --no-fail-fast --workspace --exclude offshoot-testbed
# The seeds that ever failed, and fresh ones; a failing one is printed with how to repeat it.
wanted simulation && phase simulation 300 cargo run -p offshoot-sim -- \
  --seeds sim/failed-seeds.txt --minutes 1 --crashes 24 --jobs 2
# Fresh inputs for every decoder; one that fails is printed in hex.
wanted fuzz && phase fuzz 600 scripts/fuzz.sh --minutes 1
wanted filesystem && phase filesystem 600 scripts/test-filesystem.sh
wanted testbed && phase testbed 1500 cargo test --no-fail-fast -p offshoot-testbed -- --test-threads=1
exit 0
