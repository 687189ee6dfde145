# `make demo` and `make test` are all a newcomer types; both set up .venv on a bare machine first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help setup demo test check bench format clean

help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## Create .venv and install privacygames into it

# Reinstalls only when what is to be installed has changed.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "privacygames needs Python 3.11 or newer; set PYTHON=python3.x" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup  ## Design, attack and report on a small synthetic city; writes out/demo.png
	@$(BIN)/privacygames demo --figure out/demo.png

test: setup  ## Run every test
	$(BIN)/python -m pytest -n auto

check: setup  ## Tests plus lint, format, strict types and import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

bench: setup  ## Time us against qif and SciPy in one run; DATA=folder adds real visits
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/bench.py $(if $(QUICK),--quick) $(if $(DATA),--data $(DATA))

format: setup  ## Rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove everything that was built
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
