# Every command sets itself up in .venv on a fresh machine.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-versions test-oldest test-plain test-newest coverage docs reproduce clean

# Solves a problem file, shows its error and draws it.
demo: .venv/core
	mkdir -p out
	$(BIN)/pibls solve examples/waves.toml --plot out/waves.png

# The site is built as well, by tests/test_docs.py. Modules stay compiled: tests start many processes, which import them.
test: export PYTHONDONTWRITEBYTECODE =
test: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2

# The library as it is installed: with the oldest versions allowed, without any extra, and with the newest of everything.
VERSIONS := out/versions
TOOLS := pytest pytest-xdist hypothesis
test-versions: test-oldest test-plain test-newest

# Old versions warn of new ones beside them; that is no fault.
test-oldest:
	$(PYTHON) -m venv --clear $(VERSIONS)/oldest
	$(VERSIONS)/oldest/bin/pip install --quiet --disable-pip-version-check . $(TOOLS) $$($(PYTHON) -m benchmarks.oldest)
	$(VERSIONS)/oldest/bin/pytest -n 2 -W default tests/test_installed.py tests/test_shapes_reading.py tests/test_solution_files.py

test-plain:
	$(PYTHON) -m venv --clear $(VERSIONS)/plain
	$(VERSIONS)/plain/bin/pip install --quiet --disable-pip-version-check . $(TOOLS)
	$(VERSIONS)/plain/bin/pytest -n 2 tests/test_installed.py

test-newest:
	$(PYTHON) -m venv --clear $(VERSIONS)/newest
	$(VERSIONS)/newest/bin/pip install --quiet --disable-pip-version-check --upgrade '.[files,shapes]' $(TOOLS)
	$(VERSIONS)/newest/bin/pytest -n 2 tests/test_installed.py tests/test_shapes_reading.py tests/test_solution_files.py

# Which lines no test runs; at least 95 % are. Tracing makes the suite half as long again, so it is not part of it.
coverage: .venv/dev
	$(BIN)/pytest -n 2 --cov=src/pibls --cov-report=term:skip-covered --cov-fail-under=95

# The site, into out/docs/index.html; without a network, and with warnings as errors.
docs: .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs out/docs

# The experiments of the paper; interrupt at any time and run again. PROFILE=full runs everything, and trains with torch.
PROFILE ?= quick
reproduce: $(if $(filter full,$(PROFILE)),.venv/torch,.venv/core)
	$(BIN)/pibls reproduce --profile $(PROFILE) --out out/reproduce

.venv/core: pyproject.toml
	@echo "Installing pibls into .venv, which takes about a minute."
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

# torch is pinned so that pip does not look for a build with gigabytes of CUDA libraries.
.venv/torch: .venv/core
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	touch $@

.venv/docs: .venv/core
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

.venv/dev: .venv/torch
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	touch $@

clean:
	rm -rf .venv out .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
