# Everything is set up in .venv by the first target that needs it. `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo serve test lint pytest clean

demo: $(VENV)/core
	$(BIN)/outword demo

serve: $(VENV)/serve
	$(BIN)/outword serve --labels src/outword/demo/labels.txt

test: $(VENV)/dev
	$(MAKE) -j2 lint pytest  # side by side: lint alone would leave a core idle

# Two processes with one thread each, for two cores; a file stays in one process, which makes its fixtures once.
pytest: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --cov --cov-report=term --cov-fail-under=95

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# --no-compile: modules that are never imported need no .pyc file, which keeps the install small
$(VENV)/core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --no-compile --editable .
	touch $@

$(VENV)/serve: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --no-compile --editable ".[serve]"
	touch $@ $(VENV)/core

$(VENV)/dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable ".[dev]"
	touch $@ $(VENV)/core $(VENV)/serve

clean:
	rm -rf $(VENV)
