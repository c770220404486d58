# `make help` lists what there is. CI runs `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
STREAMWELD := $(TARGET)/release/streamweld

.PHONY: help demo demo-redis demo-migrate demo-takeover demo-llama test test-browser test-clients test-engines model sim clients-table reference check check-deploy lint doc fmt bench fuzz fresh

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

demo: $(STREAMWELD) ## Show what Streamweld does, against a mock of its own (needs Rust and a C compiler)
	$(STREAMWELD) demo

demo-redis: $(STREAMWELD) ## Two replicas over one journal in Redis, which is killed in mid-answer (installs Redis)
	STREAMWELD=$(STREAMWELD) scripts/demo-redis.sh

demo-migrate: $(STREAMWELD) ## Two fake engines and a kill -9 in the middle of an answer, which goes on
	STREAMWELD=$(STREAMWELD) scripts/demo-migrate.sh

demo-takeover: $(STREAMWELD) ## Three replicas with an engine each; one is killed with its engine in mid-answer (installs Redis)
	STREAMWELD=$(STREAMWELD) scripts/demo-takeover.sh

demo-llama: $(STREAMWELD) ## The same in front of a real llama.cpp server with a small model (needs Python, 250 MB)
	STREAMWELD=$(STREAMWELD) scripts/demo-llama.sh

test: ## Everything that CI checks: lints, tests with real clients, documentation
	scripts/setup-test.sh
	@$(MAKE) lint
	scripts/check-advisories.sh
	# Some stories run the binary itself.
	$(CARGO) build --locked -p streamweld
	STREAMWELD=$(TARGET)/debug/streamweld scripts/check-deploy.sh
	# Most stories wait for sockets and timers, so more of them run at once than there are cores.
	$(CARGO) test --workspace --locked -- --test-threads=8
	@$(MAKE) doc

test-browser: ## The part of `make test` that is told in Chromium
	scripts/setup-test.sh
	$(CARGO) test --locked -p streamweld-tests --test it -- clients::browser:: clients::pages::

test-clients: ## The stories of the SDKs, against any deployment: URL=http://HOST:PORT BACKEND=ADDRESS (CONTRIBUTING.md)
	scripts/setup-test.sh
	$(if $(URL),STREAMWELD_TEST_URL=$(URL) STREAMWELD_TEST_BACKEND_LISTEN=$(BACKEND)) \
		$(CARGO) test --locked -p streamweld-tests --test it -- clients::sdks::

test-engines: ## Kill real llama.cpp servers in mid-answer: KILLS, CUTS, DRAWN, MESSAGES, SEED (needs Python, 250 MB, half an hour)
	@scripts/test-engines.sh

model: ## Search the ownership protocol within wider bounds than `make test` does (docs/ownership.md)
	$(CARGO) test --locked -p streamweld-model -- --ignored --nocapture --test-threads=2

sim: ## Simulate SEEDS=0..3000 with all faults; SEED=N tells what happens in one (docs/ownership.md)
	$(CARGO) run --locked -p streamweld-sim -- $(or $(SEED),$(SEEDS),0..3000)

clients-table: ## Write the rows of docs/clients.md anew, from what the clients see
	scripts/setup-test.sh
	STREAMWELD_WRITE_CLIENTS=1 $(CARGO) test --locked -p streamweld-tests --test it -- clients:: --test-threads=8

reference: ## Write docs/configuration.md anew, from the help of the flags
	STREAMWELD_WRITE_REFERENCE=1 $(CARGO) test --locked -p streamweld -- reference::

check: lint doc ## The part of `make test` that needs no clients: lints, documentation, tidy, advisories
	scripts/check-advisories.sh
	$(CARGO) test --locked -p streamweld-tests --test it -- tidy::

check-deploy: ## The part of `make test` about deploy/: charts, manifests, unit, Dockerfile (installs Helm and schemas, 90 MB)
	$(CARGO) build --locked -p streamweld
	STREAMWELD=$(TARGET)/debug/streamweld scripts/check-deploy.sh

lint:
	@scripts/lint.sh

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace --locked

fmt: ## Format the source
	$(CARGO) fmt --all
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml
	$(CARGO) fmt --manifest-path advisories/Cargo.toml

bench: ## Run the benchmarks
	$(CARGO) bench --workspace --locked

fuzz: ## Fuzz each target for FUZZ_SECONDS (60)
	@scripts/fuzz.sh

fresh: ## Run `make demo` and `make test` in a new minimal Debian (needs root, 3 GB, half an hour)
	scripts/fresh.sh

# Cargo knows what is up to date.
.PHONY: $(STREAMWELD)
$(STREAMWELD):
	$(CARGO) build --release --locked -p streamweld
