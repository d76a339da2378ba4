# On a fresh machine with Python 3.11 or newer: `make demo`, `make test`.
PYTHON ?= python3
# Test processes; the tests are written for two cores.
WORKERS ?= 2
# Where quick cases are; the pages have none.
QUICK := tests skdpnoise README.md
# `make mutants` begins none after so many minutes.
MINUTES ?= 6

# Bytecode of tests with rewritten assertions is kept: each process would make it anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
OLDEST := .venv-oldest
TORCH := .venv-torch
PIP := bin/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-all test-oldest test-torch test-docs browser docs dist mutants coverage lint clean
.NOTPARALLEL:

help:
	@echo "make demo         set up and show private models beside ordinary ones"
	@echo "make test         set up and run tests, doctests, ruff and mypy"
	@echo "make test-all     the same, and then slow cases and pages that it leaves out"
	@echo "make test-oldest  the same for estimators and solvers, with the oldest dependencies"
	@echo "make test-torch   neural networks, with torch for processors, in an environment of its own"
	@echo "make browser      a headless Chromium from Debian's packages, for tests of what cards look like"
	@echo "make docs         the pages as a site in build/docs; a fault in one of them fails"
	@echo "make test-docs    the same, and its links and pages in a browser"
	@echo "make dist         wheel and source distribution in dist, tried in a bare environment"
	@echo "make mutants      faults in the files that changed, each of which some test must notice"
	@echo "make coverage     make test, with the lines that no test runs in htmlcov"
	@echo "make lint         ruff and mypy only"
	@echo "make clean        remove the environments and all caches"

demo: $(VENV)/.demo
	$(VENV)/bin/python examples/demo.py

test: $(VENV)/.test
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(QUICK)

test-all: test
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m slow tests
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal docs

test-oldest: $(OLDEST)/.test
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal \
	  -o cache_dir=$(OLDEST)/.pytest_cache -m "not slow" $$($(OLDEST)/bin/python .ci/oldest.py tests)

test-torch: $(TORCH)/.test
	OMP_NUM_THREADS=1 $(TORCH)/bin/python -m pytest -n $(WORKERS) --dist worksteal \
	  -o cache_dir=$(TORCH)/.pytest_cache tests/neural_network skdpnoise/neural_network
	OMP_NUM_THREADS=1 $(TORCH)/bin/python -m pytest -n $(WORKERS) --dist worksteal \
	  -o cache_dir=$(TORCH)/.pytest_cache tests/contracts -k "DPMLP or DPNeural"

# Without it these tests are skipped. A font comes with it: without one it paints no text.
browser:
	apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-dejavu-core

docs: $(VENV)/.docs
	rm -rf docs/api build/docs
	MPLBACKEND=agg OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going \
	  -b html docs build/docs

# The site that `make docs` has built: its links, and what a browser makes of it.
test-docs: docs $(VENV)/.test
	SKDPNOISE_SITE=build/docs $(VENV)/bin/python -m pytest -m "slow or not slow" tests/site

# What a release would publish, and whether it works where nothing else is installed.
dist: $(VENV)/.dist
	rm -rf dist
	$(VENV)/bin/python -m build --outdir dist
	$(VENV)/bin/python -m twine check --strict dist/*
	$(VENV)/bin/python .ci/installed.py dist

mutants: $(VENV)/.test
	$(VENV)/bin/python -m benchmarks mutants --workers $(WORKERS) --minutes $(MINUTES) \
	  --files $$($(VENV)/bin/python .ci/changed.py files)

coverage: $(VENV)/.test
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(QUICK) \
	  --cov --cov-report=term:skip-covered --cov-report=html

lint: $(VENV)/.test
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .
	$(VENV)/bin/python -m mypy

clean:
	rm -rf $(VENV) $(OLDEST) $(TORCH) .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	rm -rf build htmlcov .coverage .coverage.* coverage.xml
	find skdpnoise tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(VENV)/$(PIP) --editable ".[plot]"
	@touch $@

# The extra `test` holds all that the demo needs.
$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(VENV)/$(PIP) --editable ".[test]"
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.made pyproject.toml
	$(VENV)/$(PIP) --editable ".[docs]"
	@touch $@

$(VENV)/.dist: $(VENV)/.made pyproject.toml
	$(VENV)/$(PIP) "build>=1.2" "twine>=6"
	@touch $@

$(OLDEST)/.test: $(OLDEST)/.made pyproject.toml .ci/oldest.py
	$(OLDEST)/$(PIP) --editable ".[test]" $$($(OLDEST)/bin/python .ci/oldest.py pins)
	@touch $@

# This version comes without the libraries of graphics cards, which are gigabytes.
$(TORCH)/.test: $(TORCH)/.made pyproject.toml
	$(TORCH)/$(PIP) --editable ".[test,torch]" torch==2.13.0
	@touch $@

%/.made:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	  "skdpnoise needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $*
	@touch $@
