# A machine with nothing but Python: each target makes its own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --use-pep517
# Large; where it can't be had, the tests that need it skip themselves.
TORCH := torch==2.13.0

# A kernel that finds its modules compiled starts in a third of the time.
unexport PYTHONDONTWRITEBYTECODE

# Most tests wait for a kernel of theirs.
WORKERS := $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
SPREAD := -n $(WORKERS) --maxprocesses 8 --dist

# The browsers first: they take longest, and wait most of the time.
UNIT := tests/browser/test_tour.py tests/outputs tests/style $(wildcard tests/test_*.py)
LONG := tests/cases tests/scenarios tests/crash tests/bench
LONG_BROWSER := tests/browser/test_quickstart.py
KEPT := docs/notebooks

.DEFAULT_GOAL := help
.PHONY: help demo test lint unit sample notebooks docs browser endurance pictures bench kill-all clean

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1: /p' $(MAKEFILE_LIST)

demo: $(VENV)/examples.stamp ## kill a real notebook in the middle of a step, and resume it
	$(BIN)/python notebooks/demo.py

# What takes one core beside what takes all.
test: $(VENV)/test.stamp ## everything that CI checks
	$(BIN)/coverage erase
	$(MAKE) --jobs 2 lint notebooks
	$(MAKE) --jobs 2 unit docs
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lint: $(VENV)/test.stamp ## format, lint, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/test.stamp ## the tests of each module; a failure gets a second look, alone
	$(BIN)/coverage run -m pytest $(SPREAD) loadscope --durations 15 $(UNIT) || \
	  $(BIN)/coverage run -m pytest --last-failed --last-failed-no-failures none $(UNIT)

sample: $(VENV)/dask.stamp ## each third of the long suites, and the browsers
	$(BIN)/python -m pytest $(SPREAD) worksteal --one-in 3 $(LONG)
	$(MAKE) browser

endurance: $(VENV)/dask.stamp ## the cases, the scenarios and the kill matrix: half an hour
	$(BIN)/python -m pytest $(SPREAD) worksteal $(LONG)
	$(BIN)/python -m pytest $(LONG_BROWSER)

notebooks: $(VENV)/test.stamp ## each notebook cold, then warm in a new kernel; kept for the documents
	$(BIN)/python -m pytest $(SPREAD) loadfile --timeout 900 --nbval --nbckpt-fresh \
	  --nbckpt-twice --nbckpt-keep $(KEPT) notebooks
	@touch $(KEPT)/.stamp

$(KEPT)/.stamp: $(wildcard notebooks/*.ipynb)
	$(MAKE) notebooks

docs: $(VENV)/test.stamp $(KEPT)/.stamp ## the documents, in build/docs; a broken link is an error
	$(BIN)/sphinx-build -W -n -q --keep-going docs build/docs

browser: $(VENV)/test.stamp ## JupyterLab and Notebook 7 in Chromium; pictures in build/shots
	$(BIN)/python -m pytest -n 2 tests/browser --ignore $(LONG_BROWSER)

pictures: $(VENV)/test.stamp ## the pictures of the README, of a run that is killed
	$(BIN)/python -m tests.browser.pictures

bench: $(VENV)/test.stamp ## cost of a step, as multiples of the plain way
	$(BIN)/python -m tests.bench

kill-all: $(VENV)/test.stamp ## the kill matrix at every point, not at a sample
	NBCKPT_KILL_ALL=1 $(BIN)/python -m pytest -s tests/crash

clean: ## remove what the targets made, the environment too
	rm -rf $(VENV) build dist .coverage .coverage.* .hypothesis .import_linter_cache
	rm -rf .grimp_cache .mypy_cache .pytest_cache .ruff_cache notebooks/.nbckpt notebooks/out docs/reference docs/notebooks
	find nbckpt tests notebooks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "nbckpt needs Python 3.11 or newer; say which: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) can't make environments; install its venv (Debian: apt install python3-venv)" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/examples.stamp: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[examples]'
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[browser,docs,examples,test]'
	$(PIP) --no-deps --upgrade --target $(VENV)/ipykernel6 'ipykernel<7'
	$(PIP) $(TORCH) || \
	  echo "no $(TORCH) for this machine; the tests that need it are skipped"
	@touch $(VENV)/examples.stamp $@

$(VENV)/dask.stamp: $(VENV)/test.stamp
	$(PIP) --editable '.[dask]'
	@touch $@
