# The two commands of the README are `make audit` and `make test`; each installs what it needs into .venv first.
PYTHON ?= python3.11
PIP_FLAGS ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help install audit shell test test-fast lint format docs bench clean

help:
	@echo "make audit            install, then audit the bundled sample (report in runs/audit)"
	@echo "make shell            a shell in which 'gradveil …' works"
	@echo "make test             install, then run every test"
	@echo "make test-fast        the same without the tests marked slow"
	@echo "make lint             ruff check, ruff format --check, mypy --strict"
	@echo "make docs             build the documentation site into site/"
	@echo "make bench ONLY=name  run benchmarks/name.py (all of them without ONLY)"

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/.installed-docs: $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e '.[docs]'
	@touch $@

audit: $(STAMP)
	$(BIN)/gradveil audit --out runs/audit --overwrite
	@echo "'make shell' opens a shell in which the README's 'gradveil …' lines work as printed."

shell: $(STAMP)
	@PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" $${SHELL:-sh} -i

test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m scripts.site_check site

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(ONLY)

clean:
	rm -rf $(VENV) site runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
