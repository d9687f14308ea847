# Entry points for visitors, developers and packagers. `make` alone prints the list. The work is done by small scripts
# in scripts/, which can be run by hand.

PREFIX  ?= /usr/local
DESTDIR ?=
# Seconds that `make fuzz` spends on each target.
FUZZ_SECONDS ?= 60
# Scenarios that `make simulate` runs, and the first of them.
SEEDS ?= 100000
FIRST ?= 1

export PREFIX DESTDIR FUZZ_SECONDS

.DEFAULT_GOAL := help
.PHONY: help build adapters demo demo-cluster test test-all miri sanitize simulate check deny fuzz bench install deb static artefacts docs clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  Variables: DEMO_SECONDS=n (the demos test themselves and stop), FUZZ_SECONDS=n, SEEDS=n and FIRST=n"
	@echo "             (make simulate), BENCH_ARGS='…', PREFIX and DESTDIR (make install)."

build: ## The server, optimised: target/release/baton
	cargo build --release --locked -p baton

demo: ## Serve apps/site and say what to try; DEMO_SECONDS=n: check itself, then stop
	@scripts/demo

demo-cluster: ## Two clusters in network namespaces, by round robin and by content, under the same load (root); DEMO_SECONDS=n: then stop
	@scripts/demo-cluster

adapters: ## What runs in other people's programs, optimised: libfcgi, preload library, IO-Lite's calls, PHP extension (target/release)
	cargo rustc --release --locked -p baton-libfcgi --lib --crate-type cdylib
	cargo rustc --release --locked -p baton-preload --lib --crate-type cdylib
	cargo rustc --release --locked -p baton-iolite --lib --crate-type cdylib
	@if command -v phpize >/dev/null; then adapters/php/build-extension $${CARGO_TARGET_DIR:-target}/release/php-extension; \
	else echo "without the PHP extension, which needs phpize (Debian: php-dev)"; fi

test: ## The tests that a change must pass (installs what they need, where it may)
	@scripts/setup-tests
	@scripts/test-workspace

test-all: ## The same in full: all variants, large numbers, the emulated machine, valgrind, the unit, the package (docs/tests.md)
	@scripts/setup-tests
	@scripts/setup-vm
	@BATON_MATRIX=all SIMULATE_SEEDS=20000 SEEDS=20000 scripts/test-workspace
	@scripts/test-kernel-tls
	@scripts/test-unit
	@scripts/test-deb
	@scripts/make-docs

miri: ## The tests of `buf` in an interpreter that reports undefined behaviour (nightly toolchain with Miri)
	@scripts/test-miri

sanitize: ## The tests of the crates with `unsafe` code, with AddressSanitizer
	@scripts/test-sanitize

simulate: ## A worker in a box under SEEDS scenarios, from number FIRST on
	SIMULATE_SEEDS=$(SEEDS) SIMULATE_FIRST=$(FIRST) \
		cargo test -p baton-session --test simulation --locked any -- --nocapture

check: ## Format, lints, house rules, links, licences, fuzz targets: what must be clean before a commit
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/house-rules
	@scripts/check-links
	@scripts/check-site
	cargo clippy -p baton --no-default-features --locked -- -D warnings
# Fuzz targets are outside of the workspace. Nothing is linked, so there need be no libFuzzer.
	CUSTOM_LIBFUZZER_PATH=/none/libfuzzer.a cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir $${CARGO_TARGET_DIR:-target}
	@scripts/check-dependencies

deny: ## Licences, advisories and sources of the dependencies (cargo-deny)
	@scripts/deny

fuzz: ## Every fuzz target for FUZZ_SECONDS each (nightly toolchain, cargo-fuzz)
	@scripts/fuzz

bench: ## CPU time per request beside nginx and other servers: a short, interleaved comparison
	@scripts/bench

install: build adapters ## Command, man pages, completions, systemd units below PREFIX (and DESTDIR)
	@scripts/install

deb: build adapters ## Debian packages: server, libraries, PHP extension, Python package (target/deb)
	@scripts/package-deb

static: ## The server in one file without shared libraries (musl): target/static/MACHINE/baton
	@scripts/build-static

artefacts: ## All that a release consists of (target/artefacts): see docs/installing.md
	@scripts/artefacts

docs: ## The site of the documentation (target/book/html), with mdBook, its links checked
	@scripts/make-docs

clean: ## Everything that was built or generated
	cargo clean
	rm -rf fuzz/target fuzz/artifacts apps/site/downloads/tide-gauge.csv
