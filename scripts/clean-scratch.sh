#!/usr/bin/env bash
# Ends the processes, mounts and files that a test run left under its own scratch directory.
#
#   scripts/clean-scratch.sh DIRECTORY
#
# Only what names that directory is touched: processes that work in it, were started from it or were
# given it, and mounts below it.
set -uo pipefail
directory=${1:?the scratch directory}
case $directory in
  /var/tmp/?* | /tmp/?*) ;;
  *) echo "clean-scratch: '$directory' is not below /var/tmp or /tmp" >&2; exit 2 ;;
esac

ours() { # pids that belong to the directory, without this script and its parents
  local process pid parents=" $$ $BASHPID " parent=$$
  while [ "$parent" -gt 1 ]; do
    parent=$(awk '/^PPid:/ {print $2}' "/proc/$parent/status" 2>/dev/null || echo 0)
    parents+="$parent "
  done
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    case $parents in *" $pid "*) continue ;; esac
    if [[ $(readlink "$process/cwd" 2>/dev/null) == "$directory"* ]] \
      || tr '\0' '\n' <"$process/cmdline" 2>/dev/null | grep -qF -- "$directory" \
      || tr '\0' '\n' <"$process/environ" 2>/dev/null | grep -qxF -- "OFFSHOOT_SCRATCH_DIR=$directory"; then
      printf '%s\n' "$pid"
    fi
  done 2>/dev/null
}

mounts() { # mount points below the directory, innermost first
  awk -v under="$directory/" 'index($5, under) == 1 {print $5}' /proc/self/mountinfo 2>/dev/null \
    | while IFS= read -r point; do printf '%b\n' "$point"; done | sort -r
}

for _ in 1 2 3; do
  pids=$(ours)
  [ -n "$pids" ] || break
  # shellcheck disable=SC2086
  kill -KILL $pids 2>/dev/null
  sleep 0.3
done
mounts | while IFS= read -r point; do
  umount -l "$point" 2>/dev/null || fusermount3 -u -z "$point" 2>/dev/null
done
rm -rf --one-file-system "$directory"
