# Every command a maintainer needs. `make run` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CASES ?= ../shared/cases
WORKERS ?= 2
# Every test process would compile all it imports again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup packages run test laws stores e2e bed kubernetes check format cases bench mutations soak docs pins clean

help: ## list the commands
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv with the pinned dependencies and the package

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Bough needs Python 3.11 or newer; say PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

packages: ## install PostgreSQL and bubblewrap from Debian for the tests, where root allows it
	@scripts/packages.sh

run: $(STAMP) ## start a server on the loopback with an example organisation (EXAMPLE=no: empty)
	@$(BIN)/bough serve --data $(if $(filter no,$(EXAMPLE)),.bough/empty,.bough/example --example)

test: $(STAMP) packages ## run the tests; first says which Debian packages it installs, if any
	$(BIN)/python -m tests.again -n $(WORKERS) -m "not served"

laws: $(STAMP) ## laws that hold for any input, with five times as many inputs
	HYPOTHESIS_PROFILE=laws $(BIN)/python -m pytest -n $(WORKERS) tests/property tests/api/test_description.py \
	    tests/api/test_damaged.py tests/store/test_races.py tests/store/test_snapshot.py tests/local/test_pool_data.py

stores: $(STAMP) ## build real object stores for tests, once (needs Go; takes minutes)
	@$(BIN)/python -m tests.object_stores.build

e2e: $(STAMP) packages stores ## the program against a served process; all stories on PostgreSQL, too
	BOUGH_TEST_DATABASES=postgresql BOUGH_RACE_ROUNDS=16 HYPOTHESIS_PROFILE=laws \
	    $(BIN)/python -m tests.again -n $(WORKERS) \
	    tests/store tests/api/test_guarantee_law.py tests/api/test_races_http.py
	$(BIN)/python -m tests.again tests/e2e -n $(WORKERS)
	$(BIN)/python -m tests.again tests/api -n $(WORKERS) -m served

bed: $(STAMP) ## build an apiserver, etcd and kwok for tests, once (needs Go; takes minutes)
	@$(BIN)/python -m tests.kubernetes.bed.build

kubernetes: $(STAMP) packages bed ## the tests on a real apiserver; without Go they are skipped
	$(BIN)/python -m tests.again tests/kubernetes -n $(WORKERS) --dist loadfile

check: $(STAMP) ## style, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error
	PYTHONPATH=. $(BIN)/lint-imports

format: $(STAMP) ## rewrite the sources in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

cases: $(STAMP) ## answer the recorded decisions of Kueue and KAI (of the folder CASES)
	$(BIN)/python -m conformance.judge $(CASES)

bench: $(STAMP) packages ## print the benchmarks' figures and ratios (QUICK=1: some, in about 3 minutes)
	$(BIN)/python -m tests.bench --json bench.json $(if $(QUICK),--quick)

mutations: $(STAMP) packages ## break the program in places that matter; the tests must notice
	$(BIN)/python -m tests.mutations

soak: $(STAMP) packages bed ## the long tests: many random histories, and far more examples
	$(BIN)/python -m pytest tests/soak -n $(WORKERS)
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest tests/property -n $(WORKERS)
	$(BIN)/python -m pytest tests/kubernetes/soak_kills.py tests/kubernetes/scheduler/soak_kills.py tests/kubernetes/kai/soak_*.py

docs: $(STAMP) ## rewrite the parts of the documentation that the program prints
	$(BIN)/python -m tests.docs --write

pins: ## recompile requirements/dev.txt (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --custom-compile-command 'make pins' --upgrade requirements/dev.in -o requirements/dev.txt

clean: ## remove what the commands above made
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build src/*.egg-info
