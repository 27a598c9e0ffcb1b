# The tasks of this repository. Each sets up what it needs: Python 3.11+, Java 17+ and make are enough.

# The redirection makes an old make ask the shell, whose builtin `command` is.
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,$(shell command -v $(name) 2>/dev/null)))
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
TIERS := quick simulation broker drill spark

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test proof check format generate $(TIERS:%=test-%) $(TIERS:%=proof-%) simulate soak torture cluster bench wheel lock clean

help:  ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Create .venv from requirements.lock and fetch Kafka's jars; at once where that was done
	@test -n "$(PYTHON)" || { echo "set-up: no python3 on PATH: install Python 3.11 or newer and try again" >&2; exit 1; }
	@$(PYTHON) scripts/bootstrap.py

demo: setup  ## Real flights through a real Kafka, exactly once, through a kill -9, verified
	@$(BIN)/python examples/demo.py

test: setup  ## What guards a change: the checks, then all tiers of tests; a tier alone: make test-broker
	@$(BIN)/python -m scripts.tiers test

proof: setup  ## What guards a release: everything that make test plays, and much more; a tier alone: make proof-broker
	@$(BIN)/python -m scripts.tiers proof

check: setup  ## Format, lint, types, import contracts, tidiness
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pre-commit validate-config
	$(PYTEST) -q tests/test_tidy.py

format: setup  ## Format the code and sort its imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: setup  ## Make the code of the wire from proto/, and what docs/ has from the code
	$(BIN)/python -m scripts.generate
	$(BIN)/python -m scripts.protocol_doc
	$(BIN)/python -m scripts.refusals_doc

$(TIERS:%=test-%): test-%: setup
	@$(BIN)/python -m scripts.tiers test $*

$(TIERS:%=proof-%): proof-%: setup
	@$(BIN)/python -m scripts.tiers proof $*

simulate: setup  ## Play SEEDS simulated runs (1000 unless given) on all cores, from the seed FIRST (0)
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),0)
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),0) --timeouts

soak: setup  ## RECORDS (1000000) through a job under SECONDS (60) of random faults, drawn from SEED (any)
	RECORDS=$(or $(RECORDS),1000000) SECONDS=$(or $(SECONDS),60) $(if $(SEED),SEED=$(SEED)) \
	  $(PYTEST) -q -m drill tests/soak --log-cli-level=INFO

torture: setup  ## RUNS random runs, or SECONDS (600) of them, from SEED (0) on: faults on one and three real brokers
	$(BIN)/python -m tests.torture --seed $(or $(SEED),0) --runs $(or $(RUNS),0) --seconds $(or $(SECONDS),600)

cluster: setup  ## Real flights on a Spark cluster, one of each fault, verified (OUTPUT=json)
	@PYTHONPATH=examples:. $(BIN)/python -m tests.spark.faults -o $(or $(OUTPUT),text)

bench: setup  ## The quick comparisons with a bare loop: some minutes (benchmarks/README.md has the others)
	$(BIN)/python benchmarks/run.py quick

wheel: setup  ## Build dist/*.whl, with the compiled part for this platform: one for Python 3.11 and every newer one
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@$(BIN)/python -m scripts.wheel dist

lock:  ## Resolve requirements.lock again from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --extra dev pyproject.toml --output-file requirements.lock

clean:  ## Delete what was built or cached here; the jars in the user's cache stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .test-results build dist *.egg-info twopc/kafka/native/*.so twopc/operators/*.so twopc/serde/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
