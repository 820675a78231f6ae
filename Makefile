# Everything a newcomer needs. Each target installs what it lacks first and skips what is there.
.PHONY: help demo quick test attack test-full bench build package setup fmt
SHELL := /bin/bash
# rustup puts cargo there; a shell that was open before does not know it yet.
export PATH := $(PATH):$(HOME)/.cargo/bin
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# The C compiler and the database are checked before the first build.
SETUP := timeout --foreground --kill-after=20 900 scripts/setup.sh

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

demo: ## a sample PostgreSQL, an engine, virtual databases, and a second engine that takes over (DEMO_ARGS=--exit ends without Ctrl-C)
	@$(SETUP) demo
	@scripts/console.sh || echo "make: the demonstration goes on without its console"
	cargo build --release -p offshoot-cli
	$(TARGET_DIR)/release/offshoot demo $(DEMO_ARGS)

quick: ## format, tidy, clippy and the unit tests inside the crates: what to run after each change
	@$(SETUP) test
	@scripts/test.sh --quick

test: ## format, tidy, dependencies, clippy and every test: 29 minutes on two cores; ends within 80 whatever happens
	@$(SETUP) test
	@scripts/test.sh

attack: ## everything that is tried to get out of a VDB, into the engine, or at it from a source
	@$(SETUP) test
	@scripts/test.sh attack

test-full: ## the same, with the long forms of the tests that have one: hours
	@$(SETUP) test
	@scripts/test.sh --full

bench: ## the benchmarks, a selection in ten minutes (BENCH_ARGS='provision --repeats 50' for one of them)
	@$(SETUP) bench
	cargo build --release -p offshoot-cli
	$(TARGET_DIR)/release/offshoot bench $(or $(BENCH_ARGS),quick)

build: ## the release binary, target/release/offshoot
	@$(SETUP) demo
	@scripts/console.sh
	cargo build --release -p offshoot-cli

package: build ## a Debian package of it, in target/
	@scripts/package.sh

setup: ## only install what is missing
	@$(SETUP) test

fmt: ## format the code
	cargo fmt --all
