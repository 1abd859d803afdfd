# Everything one does with this folder. `make` alone lists it.
# Every target sets up what it needs first: the first time takes minutes, after that about a second.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup doctor demo up down status test test-changed test-deep test-oldest compose-test test-% s3-server check format bench zip reference lock release

# Where the local Airflow listens: make up PORT=8096
ifdef PORT
export PORT
endif
# For make demo: CI=1 stops Airflow at the end instead of leaving it running.
ifdef CI
export CI
endif

RUN := tools/run

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / {printf "  \033[1m%-10s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv, the Airflow home and the Spark zip (all inside this folder)
	@tools/setup

doctor: ## Say what is found on this machine and what is missing
	@tools/doctor

demo: setup ## A week of real flights through a real Airflow, every figure checked; CI=1 stops Airflow at the end
	@$(RUN) python demo/run.py

up: setup ## Start the local Airflow; prints address and login; PORT=8095
	@$(RUN) python tools/local_airflow.py up

down: ## Stop the local Airflow and everything it started
	@test ! -x .venv/bin/python || $(RUN) python tools/local_airflow.py down

status: setup ## Say whether the local Airflow is up, and where
	@$(RUN) python tools/local_airflow.py status

test: setup build/duckdb-iceberg/.installed ## Every ring, as CI runs it, without the deep parts: three lanes side by side
	@$(RUN) python -m tools.run_tests

# Without it published tables are read back by other readers only.
build/duckdb-iceberg/.installed: requirements/duckdb-iceberg.txt | setup
	@$(RUN) python -m pip install --quiet --no-deps --upgrade --target $(@D) -r $< && touch $@ || echo "DuckDB 1.5 with Iceberg cannot be had: tests read no table by it" >&2

test-changed: setup ## The rings that what differs from BASE (main) can touch
	@$(RUN) python -m tools.run_tests --changed $(or $(BASE),main)

# What `make test` has no time for: long searches, rarer ways, what measures (tests/deep/parts.toml). A part that passes is
# recorded in tests/deep/passed with a hash of what it depends on; commit it. BASE: only what changed since counts.
test-deep: setup build/duckdb-iceberg/.installed ## Deep parts: all (hours), PART=spark-windows, NEXT=1 the stalest, STALE=20 minutes of stale ones; PARTS=1 lists them
	@$(RUN) python -m tools.deep_parts $(if $(PARTS),--list $(PARTS)) $(if $(PART),--part $(PART)) $(if $(NEXT),--next) \
	  $(if $(STALE),--stale $(STALE)) $(if $(BASE),--base $(BASE))

# With the oldest releases that pyproject.toml allows, beside the environment, not into it.
test-oldest: build/oldest/.installed ## What reads and collection files need, with the oldest dependencies that are allowed
	@$(RUN) env PYTHONPATH=build/oldest:include:tests:. python -m pytest tests/pure/api tests/pure/arrow tests/pure/config tests/pure/definition tests/cli

build/oldest/.installed: requirements/oldest.txt | setup
	@rm -rf build/oldest
	@$(RUN) python -m pip install --quiet --target build/oldest -r $<
	@touch $@

compose-test: setup ## docker-compose.yaml for real: three days, a killed worker, the figures; skipped without an engine
	@$(RUN) python tools/compose_test.py

test-%: setup ## One ring, as in `make test`: test-pure, -simulation, -spark, -s3, -dags, -e2e, -environment
	@$(RUN) python -m tools.run_tests $*

# A real S3 server: what is built is checked against Go's own checksum database. All of it is made inside build/.
VERSITYGW := github.com/versity/versitygw/cmd/versitygw@v1.8.0

s3-server: build/versitygw ## Build versitygw into build/, which test-s3 takes then instead of moto (needs Go; minutes)

build/versitygw: | setup
	@command -v go >/dev/null || { echo "no Go toolchain on PATH: install Go 1.25 or newer (https://go.dev/dl); without it test-s3 takes moto" >&2; exit 1; }
	@mkdir -p build
	GOBIN=$(CURDIR)/build/go/bin GOPATH=$(CURDIR)/build/go GOMODCACHE=$(CURDIR)/build/go/mod GOCACHE=$(CURDIR)/build/go/cache \
	  GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0 go install -trimpath $(VERSITYGW)
	@mv build/go/bin/versitygw $@
	@rm -rf build/go

check: setup ## Format, lint, types, layers; habits that may only become fewer
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy --strict include
	$(RUN) lint-imports
	$(RUN) python -m tools.style_ratchet --lower

format: setup ## Bring the source into the form that `check` asks for
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

bench: setup $(if $(PEERS),build/peers/.installed spark-peers) ## Rows/s, CPU seconds, bytes, ageing; FULL=1 at full size, PEERS=1 beside its peers
	@$(RUN) python -m benchmarks $(if $(FULL),--full)

# Beside the product, not into it: what is measured stays what requirements.txt says.
build/peers/.installed: requirements/bench.txt | setup
	@$(RUN) python -m pip install --quiet --no-deps --upgrade --target build/peers -r $<
	@touch $@

# Each in an environment of its own; what cannot be had (no Maven, another Java) is told in a line and left out.
.PHONY: spark-peers
spark-peers: | setup
	@$(RUN) python -m benchmarks.peers.spark.install

reference: setup ## docs/reference and spark_apps, written from the code they describe
	@$(RUN) python tools/reference.py
	@$(RUN) python tools/spark_apps.py

zip: setup ## build/tidemark.zip, what Spark ships to its executors; the same bytes from the same source
	@$(RUN) python tools/build_zip.py

release: setup ## Build, try and tag the release that CHANGELOG.md names; TRY=1 tags nothing
	@$(RUN) python tools/release.py $(if $(TRY),--try)

lock: ## Compile the pins from pyproject.toml (needs uv); tools/lock --upgrade moves the pins
	@tools/lock
