#!/bin/sh
# The compiler with what libFuzzer counts: edges and comparisons. Cargo's RUSTC_WORKSPACE_WRAPPER, so that
# only our own crates are built anew.
exec "$@" -Cpasses=sancov-module \
  -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares
