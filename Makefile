# Everything a newcomer needs: `make demo` and `make test`, on a machine with Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Install with uv if it is on the PATH, else with pip.
INSTALL = $(if $(shell command -v uv 2>/dev/null),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check)
# Modules are compiled when they are imported: the demonstration needs few of those that are installed.
NO_COMPILE = $(if $(shell command -v uv 2>/dev/null),,--no-compile)
# The tag to release, such as v0.1.0; empty while there is none.
TAG ?=

.PHONY: help demo check test lint fast kernels test-wheels test-deploy release-check dist release-notes bench calibrate \
  campaign soak mutants golden docs outputs facts paper reference gallery clean
help:
	@echo "make demo       Run the main job end to end: clients, collector, analysis."
	@echo "make check      Run the linters and the fast tests (under a minute)."
	@echo "make test       Run the linters and the whole test suite."
	@echo "make lint       Run the linters: ruff, mypy, import-linter, numpydoc."
	@echo "make golden     Compare results of stored reports with recorded ones (RECORD=all or RECORD=\"NAME...\" records)."
	@echo "make docs       Build the documentation site in site/."
	@echo "make gallery    Run the examples of the gallery; write their pictures and page."
	@echo "make outputs    Write the outputs that the documentation shows."
	@echo "make reference  Write the reference of the commands."
	@echo "make facts      Write the numbers that the documentation quotes."
	@echo "make bench      Measure speed."
	@echo "make calibrate  Measure coverage, error rates and thresholds (hours on two cores)."
	@echo "make paper      Run the experiments of the paper again (an hour and a half on two cores)."
	@echo "make campaign   Kill processes and cut connections thousands of times (over an hour)."
	@echo "make soak       Load one collector with every fault at once (an hour; MINUTES=5 for less)."
	@echo "make mutants    Put deliberate bugs into copies of the code: the tests must notice each (half an hour)."
	@echo "make test-wheels    Install the wheel with each extra in an environment of its own."
	@echo "make test-deploy    Check deploy/; build and run the container image if docker or podman runs."
	@echo "make release-check  Check all that belongs to a release, without a network (TAG=v0.1.0: may it be released?)."
	@echo "make dist           Build wheel, source archive, npm package and bills of materials in dist/."

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "deniable needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	@echo "Creating a Python environment in $(VENV) ..." >&2
	@if command -v uv >/dev/null 2>&1; then uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV); \
	  else $(PYTHON) -m venv $(VENV); fi
	@touch $@

# What the demonstration needs: the collector, the analysis and plots.
$(VENV)/.demo: pyproject.toml | $(VENV)/.python
	@echo "Installing deniable with its collector, analysis and plots in $(VENV); downloads may take a minute ..." >&2
	@$(INSTALL) $(NO_COMPILE) -e '.[collector,plots]'
	@touch $@

$(VENV)/.ready: pyproject.toml | $(VENV)/.python
	@echo "Installing deniable and everything that its tests need in $(VENV); this takes a minute or two ..." >&2
	@$(INSTALL) -e '.[dev]'
	@touch $(VENV)/.demo $@

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.docstrings

# Compile the kernels once, before tests that run in parallel would each compile them.
kernels: $(VENV)/.ready
	@$(BIN)/python -m tests.warm_kernels

fast: kernels
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not external"

# Run linters and fast tests in parallel: under a minute when caches are warm.
check: $(VENV)/.ready
	@$(MAKE) --no-print-directory --jobs=2 --output-sync lint fast

test: lint kernels
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=10

# Compare the golden cases, or record all or some of them anew: RECORD="decode_filter changes".
RECORD ?=
golden: kernels
	$(BIN)/python -m tests.golden $(if $(RECORD),--record $(filter-out all,$(RECORD)))

# The wheel with each extra, and alone, in environments of their own.
test-wheels: $(VENV)/.ready
	$(BIN)/python -m pytest tests/end_to_end/test_extras.py tests/end_to_end/test_bare_environment.py

# `make test` checks the files of deploy/ too; what needs a container engine is only here, in a
# run of its own: a file inside a folder that is named as well would be left out.
test-deploy: $(VENV)/.ready
	$(BIN)/python -m pytest -rs tests/deploy
	$(BIN)/python -m pytest -rs tests/deploy/with_engine.py

release-check: $(VENV)/.ready
	$(BIN)/python -m tools.release check --tag "$(TAG)"
	$(BIN)/python -m pytest -rs tests/release tests/deploy tests/browser/test_package.py

dist: $(VENV)/.ready
	@$(BIN)/python -m tools.release build --tag "$(TAG)"

release-notes: $(VENV)/.ready
	@$(BIN)/python -m tools.release notes

# The first table has the most important figures, with their targets and limits.
bench: $(VENV)/.ready
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.client
	$(BIN)/python -m benchmarks.browser
	$(BIN)/python -m benchmarks.crowds
	$(BIN)/python -m benchmarks.marginal --large
	$(BIN)/python -m benchmarks.joint
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/python -m benchmarks.decode --large
	$(BIN)/python -m benchmarks.counts
	$(BIN)/python -m benchmarks.scale --reports 10000000
	$(BIN)/python -m benchmarks.discover --large
	$(BIN)/python -m benchmarks.collector
	$(BIN)/python -m benchmarks.stores

# Measure every promise of docs/results/promises.md anew; NAMES="changes few_cohorts=100" for some.
calibrate: $(VENV)/.ready
	$(BIN)/python -m experiments.calibrate $(NAMES)
	$(BIN)/python -m tools.facts

# Write the tables of docs/results/reliability.md anew; SCALE=0.01 tries all faults with few of each, and writes nothing.
SCALE ?=
campaign: $(VENV)/.ready
ifeq ($(SCALE),)
	$(BIN)/python -m tests.faults.campaign --output docs/results/data/reliability.json
	$(BIN)/python -m tests.faults.campaign_stores --output docs/results/data/reliability.json
	$(BIN)/python -m tests.faults.campaign_sender --output docs/results/data/reliability.json
	$(BIN)/python -m tools.facts
else
	$(BIN)/python -m tests.faults.campaign --scale $(SCALE)
	$(BIN)/python -m tests.faults.campaign_stores --times 10
	$(BIN)/python -m tests.faults.campaign_sender --times 4
endif

# Write data, picture and table of the soak test anew.
MINUTES ?= 60
soak: $(VENV)/.ready
	$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) --output docs/results/data/soak.json
	$(BIN)/python -m tests.faults.soak.plot docs/results/data/soak.json docs/results/soak.png
	$(BIN)/python -m tools.facts

# Every mutant must make one of its tests fail; tools/mutants/mutants.toml lists them.
mutants: $(VENV)/.ready
	$(BIN)/python -m tools.mutants --write
	$(BIN)/python -m tools.facts

# The site needs no network, neither to build nor to read: open site/index.html.
docs: $(VENV)/.ready
	@$(BIN)/python -c 'import material, mkdocstrings' 2>/dev/null || $(INSTALL) -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "site/index.html"

# Run the blocks of all pages and write their outputs into the pages.
outputs: $(VENV)/.ready
	$(BIN)/python -m tools.run_docs --update

# Write the numbers in README and docs from docs/results and from the code.
facts: $(VENV)/.ready
	$(BIN)/python -m tools.facts

# Run the scripts of the gallery and write its page and pictures.
gallery: $(VENV)/.ready
	$(BIN)/python -m tools.gallery

# Run the experiments of the paper, and write their data and figures.
paper: $(VENV)/.ready
	$(BIN)/python -m experiments.paper all -o docs/results/paper
	$(BIN)/python -m tools.facts

reference: $(VENV)/.ready
	$(BIN)/python -m tools.command_reference > docs/reference/commands.md

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis demo site
