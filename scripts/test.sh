#!/usr/bin/env bash
# Everything that must hold before a change lands, phase by phase. `make test` runs it.
#
# It always ends: every phase has a limit and all of them together a budget
# (OFFSHOOT_TEST_BUDGET_SECONDS, 4,800 by default). Two cores need 29 minutes; hosts that share theirs were seen to need twice as
# long, and what the limits are for is what hangs. A phase is a process group of its own, reads from
# /dev/null and writes into a file that is copied here, so that a process it leaves behind can
# neither wait for input nor keep our output open. What is left at the end is removed.
#
#   scripts/test.sh [PHASE…]     only these phases: fmt console tidy dependencies clippy build tests needs
#                                simulation fuzz image filesystem; in CI also advisories
#   scripts/test.sh attack       the attacks of docs/security.md alone
#   scripts/test.sh --quick      what `make quick` runs: fmt tidy clippy, and the unit tests in crates
#   scripts/test.sh --full       what `make test-full` runs: the long forms, hours of them
#
# A test that needs what not every machine has lies in a module `needs_WHAT` and is ignored by a plain
# `cargo test`. Here it runs, and fails where WHAT is missing, unless this machine is known to lack it:
# without root, without PostgreSQL 16 and 18, or as OFFSHOOT_TEST_LACKS says (`loop_devices memory_groups process_groups`).
# Those count as skipped, and in CI none may be. `containers` leaves out the phase `image`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
command -v cargo >/dev/null || . "$HOME/.cargo/env"

extent=usual
case ${1-} in --quick | --full) extent=${1#--}; shift ;; esac
only=("$@")

began=$SECONDS
case $extent in full) budget=36000 ;; *) budget=4800 ;; esac
budget=${OFFSHOOT_TEST_BUDGET_SECONDS:-$budget}
target=${CARGO_TARGET_DIR:-$PWD/target}
# Short, so that sockets of servers fit below it and none of their directories lies elsewhere.
scratch=$(mktemp -d /var/tmp/ot-XXXXXX)
chmod 755 "$scratch"
mkdir -m 1777 "$scratch/tmp"
# An ext4 without a journal looks for a new file's inode past each that was deleted in the last half minute, one by one, and
# tests delete a thousand files each. So the directories of tests lie far from each other on the disk (a test: 1.4 s instead of 5 s).
chattr +T "$scratch" "$scratch/tmp" 2>/dev/null || true
logs=$(mktemp -d /tmp/offshoot-test-logs-XXXXXX)
phase_pid=
autogroups=
report=()
passed=0 failed=0 skipped=0

finish() {
  local status=$?
  trap - EXIT INT TERM
  [ -z "$phase_pid" ] || kill -KILL -- "-$phase_pid" 2>/dev/null
  timeout --kill-after=5 60 scripts/clean-scratch.sh "$scratch" </dev/null >/dev/null 2>&1
  [ -z "$autogroups" ] || echo 1 >"$autogroups"
  rm -rf "$logs"
  printf '\n'
  [ ${#report[@]} -eq 0 ] || printf '  %s\n' "${report[@]}"
  printf '== total: %s s, %s\n' $((SECONDS - began)) "$([ "$status" = 0 ] && echo ok || echo "FAILED ($status)")"
  [ $((passed + failed)) = 0 ] || printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

count_processor() { # sets $processor: seconds that every process took that was waited for so far
  times >"$logs/times"
  processor=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$logs/times")
}

count_tests() { # PHASE LOG: adds what the test runner's closing line says
  local number what
  while read -r number what; do
    case $1/$what in
      */passed) passed=$((passed + number)) ;;
      */failed | */timed*) failed=$((failed + number)) ;;
      # Those that need something are not in the first run, so that it counts them as skipped.
      needs/run*) skipped=$((skipped - number)) ;;
      needs/skipped) ;;
      */skipped) skipped=$((skipped + number)) ;;
    esac
  done < <(sed -nE 's/^ *Summary \[[^]]*\] *//; T; s/\([^)]*\)//g; s/ tests? run:/ run\n/; s/, */\n/g; p' "$2" | sed -E 's/^ +| +$//g')
}

phase() { # NAME LIMIT_SECONDS COMMAND…
  local name=$1 limit=$2 from=$SECONDS left shown=0 size status log processor processor_before took
  shift 2
  left=$((budget - (SECONDS - began)))
  [ "$left" -ge 5 ] || { echo "== $name: the budget of $budget s is used up"; report+=("$name: not run"); exit 1; }
  [ "$limit" -le "$left" ] || limit=$left
  echo "== $name: begins at $((SECONDS - began)) s, limit $limit s"
  log=$logs/$name.log
  : >"$log"
  count_processor
  processor_before=$processor
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
  count_tests "$name" "$log"
  count_processor
  took="$((SECONDS - from)) s ($((processor - processor_before)) s of processor time)"
  case $status in
    0) echo "== $name: ok in $took"; report+=("$name: ok in $took") ;;
    124 | 137)
      echo "== $name: FAILED, stopped after $took"
      report+=("$name: stopped after $took"); exit 1 ;;
    *)
      echo "== $name: FAILED with $status after $took"
      report+=("$name: FAILED after $took"); exit 1 ;;
  esac
}

wanted() { # whether a phase was asked for: all of them where none is named
  local one
  [ ${#only[@]} -gt 0 ] || return 0
  for one in "${only[@]}"; do [ "$one" != "$1" ] || return 0; done
  return 1
}

server_versions() { # the major versions of the servers that tests are given
  local bin
  while read -r bin; do
    "$bin/postgres" --version 2>/dev/null | sed -E 's/.*\) ([0-9]+).*/\1/'
  done < <(tr : '\n' <<<"$OFFSHOOT_TEST_PG_BINS") | tr '\n' ' '
}

with_needs() { # a filter of the tests that need something, without those this machine lacks it for
  local lacks=${OFFSHOOT_TEST_LACKS-} major what filter='test(/\bneeds_/)'
  if [ "$(id -u)" != 0 ]; then
    lacks+=" root loop_devices memory_groups process_groups"
    [ -n "$(ls /sys/fs/fuse/connections 2>/dev/null)" ] || lacks+=" fuse_connections"
  fi
  for major in 16 18; do
    [[ " $(server_versions) " == *" $major "* ]] || lacks+=" postgres_$major"
  done
  [ -z "${CI:-}" ] || [ -z "${lacks// /}" ] || return 1
  # Versions that few machines have: tests on them run where they can.
  for major in 13 14 17; do
    [[ " $(server_versions) " == *" $major "* ]] || filter+=" & not test(/\\bneeds_postgres_$major::/)"
  done
  # It takes minutes to build: for the full extent.
  [ -n "${OFFSHOOT_TEST_OLDER-}" ] || filter+=' & not test(/\bneeds_older_binary::/)'
  # Not everywhere can it be installed: see scripts/setup.sh.
  command -v chromium chromium-browser google-chrome >/dev/null && command -v node >/dev/null || lacks+=" browser"
  /usr/bin/python3 -c 'import pytest, psycopg2' 2>/dev/null || lacks+=" pytest"
  [ -n "$OFFSHOOT_TEST_PROMTOOL" ] || lacks+=" promtool"
  command -v socat >/dev/null || lacks+=" socat"
  # Distributions have older ones.
  (cd integrations/go && GOTOOLCHAIN=local timeout 120 go mod download) >/dev/null 2>&1 || lacks+=" go"
  { python3 -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' && /usr/bin/python3 -c 'import ensurepip' &&
    timeout 60 python3 -m pip download --quiet --no-deps --dest "$scratch/pip" openapi-python-client==0.29.1; } >/dev/null 2>&1 || lacks+=" pip"
  for what in $lacks; do
    echo "tests left out: this machine lacks $what" >&2
    filter+=" & not test(/\\bneeds_$what::/)"
  done
  printf '%s\n' "$filter"
}

export OFFSHOOT_SCRATCH_DIR=$scratch TMPDIR=$scratch/tmp RUST_BACKTRACE=1 RUST_LIB_BACKTRACE=0 CARGO_TERM_COLOR=never
export OFFSHOOT_BIN=$target/debug/offshoot
# Fresh clusters of PostgreSQL are made once, and copied by each test that wants one.
export OFFSHOOT_TEST_CLUSTERS=$scratch/clusters
mkdir "$OFFSHOOT_TEST_CLUSTERS"
# Linux 6.18 lets a group of two processes that wake each other run alone for seconds, and gives every session a group: each
# backend of each server here. Tests of the same minute then stall each other (docs/operations.md). Services have no such groups.
setting=/proc/sys/kernel/sched_autogroup_enabled
if [ -n "${CI:-}" ] && [ "$(cat $setting 2>/dev/null)" = 1 ] && echo 0 2>/dev/null >$setting; then autogroups=$setting; fi
lint=(cargo clippy --workspace --all-targets -- -D warnings)
if [ -n "${CI:-}" ] && [ "$extent" != quick ]; then
  # What is built once and thrown away needs no records for the next build nor for debuggers, and as few pieces as processors:
  # a quarter of the compiler's time.
  export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_CODEGEN_UNITS=4
  # Clippy is a compiler with more to say: here it compiles what is tested, too, rather than read all of it, and every
  # dependency, once more. What it makes runs as fast (the simulation: 2.4 s of processor time either way). These two
  # variables are what `cargo clippy` gives to cargo, which passes the compiler the first one names our own crates alone.
  export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
  # So nothing is left of it but to see that it speaks: of this it must.
  lint=(sh -c '! echo "pub fn f(x: u8) -> bool { x == x }" | clippy-driver rustc - --crate-type lib --emit metadata -o "$0" 2>/dev/null' "$logs/lint")
  # The heap's library as the distribution built it: its own build takes a minute and a half.
  heap=/usr/lib/$(uname -m)-linux-gnu/libjemalloc_pic.a
  [ ! -e "$heap" ] || export JEMALLOC_OVERRIDE=$heap
fi
PATH=$PATH:$(timeout --kill-after=5 2000 scripts/test-tools.sh) || exit 1

wanted fmt && phase fmt 60 cargo fmt --all -- --check
[ "$extent" = quick ] || { wanted console && phase console 180 scripts/test-console.sh; }
wanted tidy && phase tidy 240 cargo xtask tidy
if [ "$extent" = quick ]; then
  phase clippy 720 "${lint[@]}"
  phase tests 900 cargo nextest run --workspace --lib --bins --profile quick
  exit 0
fi
wanted dependencies && phase dependencies 240 scripts/dependencies.sh
# Their list changes every day and says nothing about a change: it is asked for where nobody waits.
if [ "$extent" = full ] || [ -n "${CI:-}" ]; then
  wanted advisories && phase advisories 300 scripts/advisories.sh
fi
wanted clippy && phase clippy 1200 "${lint[@]}"
# Always the whole workspace: another selection would have other features, and rebuild dependencies.
wanted build && phase build 2400 cargo build --workspace --bins --tests

attacks='binary(attacks) | binary(hostile) | binary(hostile_files) | binary(hook_programs) | binary(tablespaces) | binary(api) | binary(limits) | binary(roles) | binary(network) | binary(users) | binary(exposed) | binary(encryption) | binary(secrets) | (binary(console) & package(offshoot-server)) | test(/^access::/) | test(/^rights::/) | test(ties_are_cut) | binary(descriptors)'
attacks+=' | test(/^ground::(paths|pool_dir)::/) | test(the_data_directory_of_a_database_is_not) | test(a_program_on_the_port) | test(a_server_s_log_is_in_the_quota)'
attacks+=' | (package(offshoot-os) & test(/^(files|local_socket|process|cgroup)::/)) | (package(offshoot-client) & test(/^local::/))'
attacks+=' | (package(offshoot-server) & test(/^(listen|secret_keys)::/)) | (package(offshoot-catalog) & test(/^(audit|secret)::/))'
attacks+=' | (package(offshoot-engine) & test(/^core::(secret_keys|encryption)::/)) | (package(offshoot-dataset) & test(/^(share|dataset::logged|logged)::/))'
if wanted tests || wanted needs || wanted attack; then
  if [ -z "${OFFSHOOT_TEST_PG_BINS+set}" ]; then
    more=()
    [ "$extent" != full ] || more=(--full)
    OFFSHOOT_TEST_PG_BINS=$(timeout --kill-after=5 600 scripts/test-postgres.sh "${more[@]}" </dev/null)
  fi
  export OFFSHOOT_TEST_PG_BINS=${OFFSHOOT_TEST_PG_BINS-}
  OFFSHOOT_TEST_PROMTOOL=$(timeout --kill-after=5 200 scripts/test-promtool.sh </dev/null)
  export OFFSHOOT_TEST_PROMTOOL
  [ "$extent" != full ] || OFFSHOOT_TEST_OLDER=$(timeout --kill-after=5 2400 scripts/test-older.sh </dev/null)
  export OFFSHOOT_TEST_OLDER=${OFFSHOOT_TEST_OLDER-}
  needs=$(with_needs) || { echo "in CI nothing may be left out"; exit 1; }
fi
# More than there are processors: the black-box tests mostly wait.
run_tests=(cargo nextest run --workspace --status-level pass --test-threads $(($(nproc) * 3 / 2)))
if [ "${only[*]-}" = attack ]; then
  phase attack 1800 "${run_tests[@]}" --run-ignored all -E "($attacks) & not test(/::whole::/) & (not test(/\bneeds_/) | $needs)"
  exit 0
fi
if [ "$extent" = full ]; then
  export OFFSHOOT_TEST_KILLS=200 OFFSHOOT_TEST_SHORTAGES=20 OFFSHOOT_TEST_FULL=all OFFSHOOT_TEST_CRASHES=all
  wanted tests && phase tests 14400 "${run_tests[@]}" --profile full
  wanted needs && phase needs 14400 "${run_tests[@]}" --profile full --run-ignored only --no-tests pass -E "$needs"
  wanted docs && phase docs 900 cargo test --workspace --doc
  wanted simulation && phase simulation 5400 cargo run --release -p offshoot-sim -- --minutes 60 --jobs 2
  wanted weaknesses && phase weaknesses 3600 cargo run --release -p offshoot-sim -- --weaknesses
  wanted fuzz && phase fuzz 5400 scripts/fuzz.sh --minutes 120
  wanted systemd && phase systemd 900 scripts/test-systemd.sh
else
  # The longest of those whose ground others cover, too, are for the full extent: a benchmark's figures, jobs whose steps fail (here
  # they are killed at each), jobs and failovers that are killed with PostgreSQL (here with another database, but for linking), and
  # of one kind those that take half a minute and more besides the one that shows most.
  longer='(binary(benchmarks) & package(offshoot-testbed)) | (package(offshoot-engine-tests) & test(/^failing::/))'
  for test in \
    refresh_rewind_and_unlink_are_finished_or_undone stop_start_and_snapshot_are_finished_or_undone \
    provision_and_delete_are_finished_or_undone a_bookmark_is_set_or_leaves_nothing \
    masking_survives_a_kill_and_can_be_cancelled takeover::a_vdb_serves_on_beside_copies_that_die \
    a_planned_failover_that_is_killed_leaves_it_with_one_of_both \
    a_planned_failover_survives_kills_of_the_one_that_sends a_planned_failover_that_is_given_up_lets_all_go_on \
    whoever_is_killed_while_it_is_told_both_go_on a_profile_that_always_runs_tells_as_well \
    what_is_on_its_way_is_given_up it_goes_back_with_what_has_changed_alone a_gap_is_named_and_a_new_copy_goes_on \
    what_is_there_is_used_while_more_arrives a_name_that_is_taken_there_is_a_fault_until_it_is_free \
    any_moment_of_an_archive_opens_elsewhere whoever_ends_it_while_one_of_its_engines_is_lost_finds_nothing_left \
    moments_open_from_points_that_the_source_did_not_make a_promise_that_is_missed_is_a_fault_until_it_is_kept \
    rounds::many_rounds_end_where_one_recovery_ends \
    replay::a_staging_standby_replays_what_appears_and_a_vdb_comes_of_it \
    a_source_that_makes_checkpoints_while_it_is_copied_can_be_linked a_sync_that_fails_leaves_the_gap_as_it_was \
    a_rotated_password_and_another_address_are_no_dead_end \
    where_one_member_lacks_the_moment_nothing_is_made_nor_changed \
    commits_of_all_kinds_are_found what_cannot_be_searched_is_refused_and_leaves_nothing \
    a_hook_that_fails_fails_the_job_and_leaves_the_vdb a_hook_runs_in_the_database_that_it_names_and_can_be_cancelled \
    an_engine_that_is_killed_while_it_makes_points_makes_others what_there_is_no_room_for_is_refused_before_it_comes \
    a_failover_needs_nobody_who_knows_them what_comes_is_sent_on_and_never_round \
    a_vdb_that_is_asleep_wakes_for_a_hook_before a_superuser_s_alter_system_is_kept; do
    longer+=" | test(=$test)"
  done
  wanted tests && phase tests 3000 "${run_tests[@]}" -E "not ($longer)"
  # Whole suites on further servers are for the full extent.
  wanted needs && phase needs 1500 "${run_tests[@]}" --run-ignored only --no-tests pass -E "$needs & not test(/::whole::/)"
  # The seeds that ever failed, and fresh ones; a failing one is printed with how to repeat it.
  wanted simulation && phase simulation 300 sh -c \
    'cargo build -q --workspace --bin offshoot-sim && exec "$0" "$@"' "$target/debug/offshoot-sim" \
    --seeds sim/failed-seeds.txt --minutes 1 --crashes 24 --jobs 2
  # Fresh inputs for every decoder; one that fails is printed in hex. Most of the time is the building of it, so in CI the tests
  # try what was found before (`cargo test -p offshoot-fuzz`), and the full extent looks for more.
  [ -n "${CI:-}" ] && [ ${#only[@]} = 0 ] || { wanted fuzz && phase fuzz 600 scripts/fuzz.sh --minutes 1; }
fi
[[ " ${OFFSHOOT_TEST_LACKS-} " == *" containers "* ]] || { wanted image && phase image 900 scripts/test-image.sh; }
wanted filesystem && phase filesystem 600 scripts/test-filesystem.sh
exit 0
