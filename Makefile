# Every target makes what it needs by itself, from requirements/ with hashes, into .venv; nothing else on the machine is touched.
# `make` alone says what there is.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Arguments for one run: `make test ARGS="-k timers"`.
ARGS ?=

# More than cores, since tests on Kafka wait rather than compute. Each process takes 150 MB.
TEST_PROCESSES ?= 5

# Hundreds of processes are started for the tests: each would compile the project for itself where this is set.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo quick test check format bench scale faults specs kubernetes prometheus e2e lock lock-kafka release-check clean

help: ## Say what each target does.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.ready ## Show the whole story on a recorded incident, with a Kafka of its own.
	$(BIN)/evictstream demo $(ARGS)

# These tests mostly compute, and each process collects all tests for itself: one more than cores (tests/conftest.py).
quick: $(VENV)/.ready ## Run the tests that need no Kafka and take seconds, on all cores.
	$(BIN)/python -m pytest --numprocesses auto --hypothesis-profile quick -m "not kafka and not slow and not alone and not kit and not e2e" $(ARGS)

# Two runs: what bounds how late something may be has the machine for itself. Both run, so that all failures are seen.
# It is the first one, since it leaves the tests compiled: five processes at once would do so each for itself.
# With ARGS it is one run, in one process, of what they select.
test: $(VENV)/.ready ## Run all tests, those on a real Kafka too (it finds or starts one).
ifeq ($(ARGS),)
	@$(BIN)/python -m pytest -m "alone and not kit and not e2e"; alone=$$?; \
	$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --hypothesis-profile half -m "not alone and not kit and not e2e" && exit $$alone
else
	$(BIN)/python -m pytest $(ARGS)
endif

check: $(VENV)/.ready ## Check format, lint, types and which module may import which.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.ready ## Format the code and mend what lint can mend by itself.
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(VENV)/.ready ## Measure speed, latency, memory and recovery, and print the numbers.
	$(BIN)/python -m tests.bench $(ARGS)

# The storm runs on what `make kubernetes` builds.
scale: $(VENV)/.ready ## Measure large loads: a million pods, a hundred clusters, one through all parts, a storm beside Kubernetes' own evictor.
	$(BIN)/python -m tests.bench --only million --only hour --only cluster --only cost --only storm $(ARGS)

faults: $(VENV)/.ready ## Kill, pause and cut while it runs, and compare with what must hold.
	$(BIN)/python -m tests.faults $(ARGS)
	$(if $(ARGS),,$(BIN)/python -m tests.faults.loop.run)
	$(if $(ARGS),,$(BIN)/python -m tests.faults.loop.real)
	$(if $(ARGS),,$(BIN)/python -m tests.faults.brakes)
	$(if $(ARGS),,$(BIN)/python -m tests.faults.paced)
	$(if $(ARGS),,$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) -m "kit and not alone")
	$(if $(ARGS),,$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) -m "not kafka and not alone and not kit" tests/models tests/streams tests/kit)
	$(if $(ARGS),,$(BIN)/python -m pytest -m "kit and alone")
	$(if $(ARGS),,$(BIN)/python -m pytest tests/faults/real/silent_broker.py)
	$(if $(ARGS),,TRANSACTION_VERSION=1 $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) -m "not alone and not kit" tests/guarantees tests/streams/engine)

specs: $(VENV)/.ready ## Search the model of one partition's protocol in every order, with each guard and without (needs spin and cc; minutes).
	$(BIN)/python -m tests.specs $(ARGS)

kubernetes: $(VENV)/.ready ## Build a real Kubernetes control plane, and Helm (needs Go; minutes, once).
	$(BIN)/python -m tests.e2e.binaries
	$(BIN)/python -m tests.e2e.chart

prometheus: $(VENV)/.ready ## Build Prometheus and promtool, which test alerts and dashboards (needs Go; minutes, once).
	$(BIN)/python -m tests.deploy.monitoring.binaries

# Without Go the tests are still collected, and each says why it is skipped.
e2e: $(VENV)/.ready ## Run the tests on a real Kubernetes control plane.
	-$(BIN)/python -m tests.e2e.binaries
	-$(BIN)/python -m tests.e2e.chart
	$(BIN)/python -m pytest -m e2e $(if $(ARGS),$(ARGS),tests/e2e)
	$(if $(ARGS),,$(BIN)/python -m tests.faults.live)
	$(if $(ARGS),,$(BIN)/python -m tests.faults.live_brakes)

lock: $(VENV)/.ready ## Resolve the dependencies of pyproject.toml anew into requirements/.
	$(call compile,requirements/runtime.txt,pyproject.toml)
	$(call compile,requirements/dev.txt,--extra dev --extra containers --extra embedded --extra report --extra uvloop pyproject.toml)
	$(call compile,deploy/build.txt,--constraint requirements/dev.txt deploy/build.in)
	$(call compile,deploy/release.txt,--constraint requirements/dev.txt deploy/release.in)

lock-kafka: $(VENV)/.ready ## Resolve the files of the embedded Kafka and of its peers in the bench anew (after changing its version).
	$(BIN)/python -m evictstream.streams.broker.lock_kafka
	$(BIN)/python -m tests.bench.peers.lock_peers
	$(BIN)/python -m tests.regions.lock_mirror

release-check: $(VENV)/.ready ## Build what is published, twice, and install and run it on each Python at hand; leaves it in dist/.
	$(BIN)/python -m tests.release

clean: ## Remove the environment and everything that tools have left.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Names, versions and hashes only: where they come from is the business of whoever installs.
define compile
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --annotation-style=line \
		--no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
		--output-file=$(1) $(2)
endef

# Two steps: the locked packages, anew when the lock changes; then the project itself, in place. A half-made environment has
# no stamp and is made anew.
$(VENV)/.ready: $(VENV)/.locked pyproject.toml
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# What builds packages comes first, from its own lock, and no build fetches anything further: without --no-build-isolation
# pip would take the newest of everything that a package without a wheel asks for (Faust on arm64), and run it unchecked.
# Most of what packages bring is never imported: Python compiles the rest when it is.
$(VENV)/.locked: requirements/dev.txt deploy/build.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "evictstream needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes --only-binary :all: --requirement deploy/build.txt
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes --no-build-isolation --requirement requirements/dev.txt
	touch $@
