# Two commands do all the set-up themselves: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := tools agents orchestrator tests benchmarks

.PHONY: help demo test check unit live fmt nightly clean
help: ## Say what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"retinue needs Python 3.11 or newer; this is {v[0]}.{v[1]}. Try: make PYTHON=python3.11 ...")'
	@echo "installing retinue into $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing what tests and checks need (once)"
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed ## Three teammates mend a small repository; no key, no network
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash configs/demo/run.sh

test: check unit live ## All checks and tests

check: $(VENV)/.installed-dev ## Linter, formatter, types, import contracts, module sizes
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check --quiet $(SOURCES)
	@$(BIN)/basedpyright --project pyproject.toml
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tests/support/sizes.py tools agents orchestrator

unit: $(VENV)/.installed-dev ## Tests that need no cluster, process or socket
	@$(BIN)/python -m pytest -q tests/unit tests/property

.ci/tools/node_modules/.installed: .ci/tools/package.json
	@echo "installing the language servers that tests talk to (once)"
	@npm install --prefix .ci/tools --no-package-lock --no-audit --no-fund --silent
	@touch $@

live: $(VENV)/.installed-dev .ci/tools/node_modules/.installed ## Tests on real git, shells, sockets and Ray
	@$(BIN)/python -m pytest -q tests/integration tests/contract tests/e2e

fmt: $(VENV)/.installed-dev ## Format, and fix what can be fixed
	@$(BIN)/ruff check --fix --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet $(SOURCES)

nightly: $(VENV)/.installed-dev ## Long soak, chaos and fuzz runs, and a run on a real model; results go to docs/results/
	@$(BIN)/python -m pytest -q --override-ini=addopts='--strict-markers --strict-config --import-mode=importlib -ra' -m nightly tests/nightly

clean: ## Remove the environment and caches
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist .ci/tools/node_modules
