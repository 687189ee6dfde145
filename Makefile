# `make demo` and `make test` are all a newcomer types; both set up .venv on a bare machine first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help setup demo studio browser postgresql device node-tools test check fuzz bench spark docs docs-serve format clean

help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## Create .venv and install privacygames into it

# Debian's packages, where root may install them and a test finds that they are missing: $(call debian,test,packages) || echo …
debian = { $(1); } >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && { $(call apt,$(2)) || { apt-get update && $(call apt,$(2)); }; } >/dev/null 2>&1; }
apt = DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(1)

KERNELS := $(wildcard src/privacygames/solvers/linalg/csrc/*)
HEADERS  = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')

# Reinstalls only when what is to be installed has changed.
$(STAMP): pyproject.toml constraints.txt tools/vendor_page.py $(KERNELS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "privacygames needs Python 3.11 or newer; set PYTHON=python3.x" >&2; exit 1; }
	@$(call debian,command -v cc && [ -e "$(HEADERS)/Python.h" ],gcc libc6-dev python3-dev) || \
	  echo "There is no C compiler, and none can be installed: designs take two to three times as long."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python tools/vendor_page.py
	@touch $@

demo: setup  ## Design, attack and report on a small synthetic city; writes out/demo.png
	@$(BIN)/privacygames demo --figure out/demo.png

studio: setup  ## Open the studio in the browser: a local page; nothing leaves the machine
	@$(BIN)/privacygames studio

# The page's tests drive Debian's Chromium and Firefox, and npm fetches the outlines of countries; what cannot be had is skipped, and says so.
browser:
	@$(call debian,command -v npm,npm) || \
	  echo "There is no npm, and it cannot be installed: the studio's map has no outlines."
	@[ ! -e $(BIN)/python ] || $(BIN)/python tools/vendor_page.py
	@$(call debian,command -v chromium,chromium) || \
	  echo "There is no chromium, and it cannot be installed: the studio's browser tests are skipped."
	@$(call debian,command -v firefox-esr,firefox-esr) || \
	  echo "There is no firefox, and it cannot be installed: the studio's tests in it are skipped."

# The store's tests start a PostgreSQL server of their own; where Debian's cannot be had they are skipped, and say so.
postgresql:
	@$(call debian,ls /usr/lib/postgresql/*/bin/initdb,postgresql) || \
	  echo "There is no PostgreSQL, and it cannot be installed: its tests are skipped."

# Node comes from Debian's packages, TypeScript and esbuild from npm; where they cannot be had, the tests are skipped, and say so.
node-tools:
	@$(call debian,command -v npm,npm) || \
	  echo "There is no npm, and it cannot be installed: the tests of device/ are skipped."
	@! command -v npm >/dev/null || [ device/node_modules/.installed -nt device/package.json ] || \
	  { cd device && npm install --silent --no-audit --no-fund 2>/dev/null && touch node_modules/.installed; } || \
	  echo "TypeScript and esbuild cannot be installed: the tests of device/ are skipped."
	@[ ! -e device/node_modules/.installed ] || { cd device && npm run --silent build; }

device: node-tools  ## Build and test what runs on phones and in browsers: the package, the extension, the offline page; installs what it needs
	cd device && node --test build/test/*.test.js
	@cd device && npm install --no-save --silent --no-audit --no-fund web-ext@10.7.0 2>/dev/null || \
	  echo "web-ext cannot be installed: the extension is neither checked for Firefox nor tried in it."
	@[ ! -e device/node_modules/.bin/web-ext ] || device/node_modules/.bin/web-ext lint --source-dir device/extension/dist/firefox --no-config-discovery

test: setup  ## Run the tests, but for the slow ones
	$(BIN)/python -m pytest -n auto -m "not slow"

check: setup browser postgresql node-tools  ## What CI runs: lint, format, strict types, import layers, and every test (the docs are built by one)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[gpu]' || \
	  echo "PyTorch cannot be installed here: the tests of its engine are skipped."
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto

fuzz: setup  ## Random problems against an exact reference: COUNT=5000 or MINUTES=5; SEED=7 COUNT=1 repeats one, SHRINK=20 simplifies it
	PYTHONPATH=tests $(BIN)/python -m fuzz $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) \
	  $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SHRINK),--shrink $(SHRINK))

bench: setup  ## Time us against qif and SciPy in one run; DATA=folder adds real visits; ROBUST=1: odd problems instead; TABLES=1: rows and people; MANY=1: many people
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/$(if $(ROBUST),robustness.py,$(if $(TABLES),table_rows.py $(if $(QUICK),--quick),$(if $(MANY),many.py,bench.py) $(if $(QUICK),--quick) $(if $(DATA),--data $(DATA))))

# Java comes from Debian's packages; where it cannot be installed, this says so and leaves everything else as it was.
spark: setup  ## Install Spark (and Debian's headless Java, if there is none) and run its tests
	@$(call debian,command -v java,default-jre-headless) || \
	  { echo "Spark needs Java 17 or newer, which could not be installed here: install it, then run this again" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[spark]'
	$(BIN)/python -m pytest -n 0 tests/tables/test_spark.py

docs: setup  ## Build the site in out/docs
	$(BIN)/sphinx-build -W -q -j auto docs out/docs
	@echo "The site is in out/docs/index.html."

docs-serve: docs  ## Build the site and show it on this machine
	@echo "http://127.0.0.1:8000 (Ctrl-C stops it)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory out/docs 8000

format: setup  ## Rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove everything that was built
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/reference/generated docs/packages.svg device/build device/dist device/extension/dist device/node_modules src/privacygames/device/page
