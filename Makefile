# Every target sets up what it needs: the virtual environment in .venv, and in it this project (editable)
# with the extras that the target asks for. A set of extras is installed again only when pyproject.toml or
# constraints.txt have changed. Whether a virtual environment is active makes no difference.

PYTHON ?= python3
VENV := .venv
BIN := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
PY := $(VENV)/$(BIN)/python
# In the environment itself, so that they go when it goes.
STAMPS := $(VENV)/.stamps

# Which extras of pyproject.toml a set consists of.
EXTRAS_demo := plot
EXTRAS_lint := dev
EXTRAS_test := test,torch
EXTRAS_full := all,test,neighbours
EXTRAS_bench := bench,bench-torch
EXTRAS_experiments := experiments
EXTRAS_docs := docs
EXTRAS_browser := browser,docs,test
EXTRAS_release := release
# What is installed beside them without its dependencies.
ALONE_bench := libauc
# CatBoost asks for plotting libraries, too; of what it imports only six is not there.
ALONE_experiments := catboost six

SKLEARN_VERSIONS := 1.6 1.7 1.8 newest
SKLEARN_TESTS := $(SKLEARN_VERSIONS:%=test-sklearn-%)

# Further arguments for pytest: make test ARGS="-k threads"; which scripts to run: make bench ONLY=inference
ARGS ?=
ONLY ?= *
# The commit that make bench compares with, if any: make bench ONLY=training AGAINST=main
AGAINST ?=
# How long make fuzz continues, and its first seed.
SECONDS ?= 60
SEED ?= 0
# Processes for the tests; 0 runs them in one, as a debugger wants it.
WORKERS ?= 2

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
# Two installations into one environment at a time would spoil it.
.NOTPARALLEL:
.PHONY: help demo test test-full test-browser test-sklearn $(SKLEARN_TESTS) fuzz fuzz-files lint format bench experiments docs docs-check release clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# numba does not notice edits in files that a kernel takes functions from: see tools/numba_cache.py.
KEYED = NUMBA_CACHE_DIR="$$($(PY) tools/numba_cache.py)" || exit 1; export NUMBA_CACHE_DIR;

demo: $(STAMPS)/demo ## Show the library at work
	@$(KEYED) $(PY) -m rankhinge.demo --plot .make/demo/precision-recall.png

test: $(STAMPS)/test ## Run the tests (without the slow ones) and the examples in docstrings
	@$(KEYED) $(PY) -m pytest -n $(WORKERS) -m "not slow" $(ARGS)

test-full: $(STAMPS)/full ## Run all tests, with all optional dependencies
	@$(KEYED) $(PY) -m pytest -n $(WORKERS) $(ARGS)

# Debian's chromium, if there is none and packages can be installed; else the tests are skipped and say so.
test-browser: $(STAMPS)/browser ## Run the tests of the report in a real browser
	@command -v chromium >/dev/null || { apt-get -qq update && apt-get -qq install -y chromium; } || true
	@$(KEYED) $(PY) -m pytest tests/report $(ARGS)

test-sklearn: $(SKLEARN_TESTS) ## Run the compatibility tests with each supported scikit-learn

# The warnings of an old scikit-learn about a new SciPy are not ours: -W default.
$(SKLEARN_TESTS): test-sklearn-%: .venv-sklearn-%/.stamp
	@echo "scikit-learn $$(.venv-sklearn-$*/$(BIN)/python -c 'import sklearn; print(sklearn.__version__)')"
	@$(subst $(PY),.venv-sklearn-$*/$(BIN)/python,$(KEYED)) \
		.venv-sklearn-$*/$(BIN)/python -m pytest -n $(WORKERS) -W default -m sklearn_compat tests $(ARGS)

fuzz: $(STAMPS)/test ## Fit odd data for SECONDS=60, with an independent judge; SEED=0 is the first case; then damaged files
	@$(KEYED) $(PY) -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) --workers $(WORKERS) $(ARGS)
	@$(KEYED) $(PY) -m tests.fuzz_files --seed $(SEED)
	@$(fuzz_command)

fuzz-files: $(STAMPS)/test ## Hand 10,000 damaged files of each kind to the command, from SEED=0 on
	@$(fuzz_command) $(ARGS)

fuzz_command = $(KEYED) RANKHINGE_MUTATIONS=10000 RANKHINGE_FIRST_SEED=$(SEED) \
	$(PY) -m pytest -n $(WORKERS) -rP tests/cli/test_bad_files.py

lint: $(STAMPS)/lint ## Check style, formatting and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(STAMPS)/lint ## Format the code, and mend what can be mended automatically
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(STAMPS)/bench ## Run the benchmarks; AGAINST=<commit> compares the times with that commit's
	@$(KEYED) $(if $(AGAINST),$(PY) benchmarks/_against.py "$(AGAINST)" --only "$(ONLY)" $(ARGS),$(call run_scripts,benchmarks))

experiments: $(STAMPS)/experiments ## The papers' tables and figures anew, as far as docs/papers.md says; continues where it was stopped
	@$(KEYED) $(call run_scripts,experiments)

docs: $(STAMPS)/docs ## Build the site with its gallery into .make/docs/html; warnings are errors
	@$(KEYED) $(PY) -m sphinx --fail-on-warning --keep-going --quiet --jobs $(WORKERS) \
		-d .make/docs/doctrees docs .make/docs/html
	@echo "open .make/docs/html/index.html"

docs-check: $(STAMPS)/browser docs ## Open every page of the site in chromium, narrow and wide, with other hosts blocked
	@$(PY) tools/look_at_pages.py .make/docs/html .make/docs/pictures

# A fresh environment, and no source within reach: what is tried is what would be uploaded.
RELEASE := .make/release
release: $(STAMPS)/release ## Build wheel and source distribution, check, install and try them
	@rm -rf $(RELEASE)
	$(PY) -m build --quiet --outdir $(RELEASE)/dist
	$(PY) -m twine check --strict $(RELEASE)/dist/*
	$(PYTHON) -m venv $(RELEASE)/environment
	$(RELEASE)/environment/$(BIN)/python -m pip install --quiet -c constraints.txt $(RELEASE)/dist/*.whl
	cd $(RELEASE) && environment/$(BIN)/python -P ../../tools/try_release.py ../.. dist $(if $(TRIAL),--trial)

clean: ## Remove everything that make has made, environments included
	rm -rf $(VENV) $(SKLEARN_VERSIONS:%=.venv-sklearn-%) .make build dist
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Scripts whose name begins with an underscore are parts of others.
define run_scripts
found=0; for script in $(1)/$(ONLY).py; do \
	case "$$script" in $(1)/_*) continue;; esac; \
	[ -e "$$script" ] || continue; \
	found=1; echo "== $$script"; $(PY) "$$script" $(ARGS); \
done; \
[ $$found = 1 ] || { echo "no script matches $(1)/$(ONLY).py" >&2; exit 1; }
endef

# $(call make_environment,folder)
define make_environment
@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] \
	+ ": make PYTHON=<another>" if sys.version_info < (3, 11) else 0)'
$(PYTHON) -m venv $(1)
endef

$(STAMPS)/environment:
	$(call make_environment,$(VENV))
	@mkdir -p $(@D)
	@touch $@

$(STAMPS)/%: pyproject.toml constraints.txt | $(STAMPS)/environment
	$(PY) -m pip install --quiet -c constraints.txt -e '.[$(EXTRAS_$*)]'
	$(if $(ALONE_$*),$(PY) -m pip install --quiet -c constraints.txt --no-deps $(ALONE_$*))
	@touch $@

# The other pins stay in place for a given scikit-learn. The newest comes with the newest of everything
# that pyproject.toml allows: pins could make pip choose an older scikit-learn without a word.
.venv-sklearn-%/.stamp: pyproject.toml constraints.txt
	$(call make_environment,$(@D))
	@grep -v '^scikit-learn==' constraints.txt > $(@D)/constraints.txt
	$(@D)/$(BIN)/python -m pip install --quiet -c $(@D)/constraints.txt -e '.[test]' 'scikit-learn==$*.*'
	@touch $@

.venv-sklearn-newest/.stamp: pyproject.toml constraints.txt
	$(call make_environment,$(@D))
	$(@D)/$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager -e '.[test]'
	@touch $@
