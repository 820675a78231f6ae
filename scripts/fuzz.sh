#!/usr/bin/env bash
# Searches for bytes that a decoder does not survive, with libFuzzer: a panic, a hang, or memory out of
# proportion. Needs a C++ compiler, no nightly Rust.
#
#   scripts/fuzz.sh [--minutes N] [--keep] [TARGET…]
#
# N minutes of a processor in all (default 1), shared by the targets (default: all of them), of which as many run at
# once as there are processors. With --keep what reached code that nothing in fuzz/corpus reaches is added to it, as far
# as there is room. An input that fails is kept in fuzz/failed, printed at the end in hex with how to repeat it, and
# makes this end with 1.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
command -v cargo >/dev/null || . "$HOME/.cargo/env"

minutes=1 keep= targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --minutes) minutes=$2; shift ;;
    --keep) keep=1 ;;
    -*) echo "usage: scripts/fuzz.sh [--minutes N] [--keep] [TARGET…]" >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if ! command -v c++ >/dev/null; then
  echo "left out: libFuzzer needs a C++ compiler (g++); the corpus alone: cargo test -p offshoot-fuzz"
  exit 0
fi

# --workspace only so that dependencies are those of every other build.
cargo build -q --workspace --bin offshoot-fuzz || exit 1
RUSTC_WORKSPACE_WRAPPER=$PWD/fuzz/rustc.sh \
  cargo build -q --workspace --bin offshoot-libfuzzer --features offshoot-fuzz/libfuzzer || exit 1
built=${CARGO_TARGET_DIR:-target}/debug
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <("$built/offshoot-fuzz" list)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seconds=$((minutes * 60 / ${#targets[@]}))
[ "$seconds" -ge 1 ] || seconds=1

stat_of() { sed -n "s/^stat::$1: *//p" "$work/$target.log"; }
libfuzzer() { # ARGUMENT…: of the target
  OFFSHOOT_FUZZ_TARGET=$target "$built/offshoot-libfuzzer" \
    -artifact_prefix="fuzz/failed/$target-" -max_len=4096 -timeout=60 "$@" 2>&1
}

fuzz() { # of $target
  mkdir -p "$work/$target" "$work/$target.least" fuzz/failed
  if ! "$built/offshoot-fuzz" unpack "$target" "$work/$target"; then
    echo "$target: its corpus cannot be unpacked" >"$work/$target.failed"
    return
  fi
  if libfuzzer -max_total_time="$seconds" -print_final_stats=1 "$work/$target" >"$work/$target.log"; then
    printf '%-16s %12s inputs, %8s/s, %5s of them new\n' "$target" \
      "$(stat_of number_of_executed_units)" "$(stat_of average_exec_per_sec)" "$(stat_of new_units_added)"
  else
    echo "$target FAILED"
    # At the end, where whoever reads only the last lines of a log finds it.
    input=$(sed -n 's/.*Test unit written to //p' "$work/$target.log" | tail -n 1)
    {
      echo "$target FAILED${input:+; repeat: cargo run -p offshoot-fuzz -- replay $target $input}"
      grep -E "panicked|^  *(left|right):|ERROR|SUMMARY|src/" "$work/$target.log" | grep -v "/rustc/\|libfuzzer" | head -n 30
      [ -z "$input" ] || od -An -v -tx1 "$input" | tr -d ' \n'
      echo
    } >"$work/$target.failed"
  fi
  [ -z "$keep" ] || {
    libfuzzer -set_cover_merge=1 "$work/$target.least" "$work/$target" >/dev/null &&
      "$built/offshoot-fuzz" pack "$target" "$work/$target.least"
  }
}

running=0
for target in "${targets[@]}"; do
  [ "$running" -lt "$(nproc)" ] || { wait -n; running=$((running - 1)); }
  fuzz &
  running=$((running + 1))
done
wait
rmdir fuzz/failed 2>/dev/null
cat "$work"/*.failed 2>/dev/null && exit 1
exit 0
