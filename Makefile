# `make` lists the targets. What they need and how they do it stands in .ci/.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help dev test check fmt lint docs generate clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dev: ## run Askback on this machine with a demo agent; ARGS="--port 7390" and the like are passed on
	@.ci/require cargo linker
	@cargo run --package askback -- dev --demo $(ARGS)

test: ## everything that CI runs: format, lints, tests, doc tests, generated files
	@.ci/test

check: ## does it compile, tests included
	@.ci/require cargo linker
	@cargo check --workspace --all-targets

fmt: ## format the code
	@.ci/require cargo
	@cargo fmt --all

lint: ## clippy, warnings denied
	@.ci/require cargo linker
	@cargo clippy --workspace --all-targets -- --deny warnings

docs: ## build the code's documentation, warnings denied
	@.ci/require cargo linker
	@RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --document-private-items

generate: ## write every generated file: .sqlx, and what stands under docs
	@.ci/require cargo linker servers
	@cargo xtask generate

clean: ## remove what was built; data of `make dev` stays in .askback
	@.ci/require cargo
	@cargo clean
