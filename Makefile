# Everything is set up in .venv by the first target that needs it. `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# The locked versions are for Python 3.11 on Linux x86-64. Elsewhere, and with `make LOCKED= ...`, pip takes the newest that
# pyproject.toml allows.
LOCKED ?= $(shell $(PYTHON) -c "import sys, sysconfig as s; print(*['yes'] * (sys.version_info[:2] == (3, 11) and s.get_platform() == 'linux-x86_64'))")
PINS := $(if $(LOCKED),--constraint constraints.txt)

.PHONY: demo serve test lint pytest docs sbom figures clean

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
	$(BIN)/mypy --config-file tools/mypy.ini
	$(BIN)/lint-imports

# The docs as a site, in site/; `make docs SERVE=1` shows it at http://127.0.0.1:8001 and follows changes
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(if $(SERVE),serve --dev-addr 127.0.0.1:8001,build --strict)
	@$(if $(SERVE),,echo "site/ is to be served; make docs SERVE=1 does so here")

# What the locked versions are, as a bill of materials
sbom: $(VENV)/dev
	$(BIN)/python tools/sbom.py > $(VENV)/sbom.json && mv $(VENV)/sbom.json outword.cdx.json

# All figures of the docs: make figures [ONLY="mini-* theorem2"] [DATA=BENCH_MINI] [HAVE="idle gpu"] [CHECK=1] [WRITE=1]
figures: $(VENV)/dev
	$(BIN)/python benchmarks/figures.py $(if $(ONLY),--only $(ONLY)) $(if $(DATA),--data $(DATA)) $(if $(HAVE),--have $(HAVE)) \
		$(if $(CHECK),--check) $(if $(WRITE),--write)

# --no-compile: modules that are never imported need no .pyc file, which keeps the install small
$(VENV)/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --no-compile $(PINS) --editable .
	touch $@

$(VENV)/serve: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --no-compile $(PINS) --editable ".[serve]"
	touch $@ $(VENV)/core

$(VENV)/docs: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --no-compile $(PINS) --editable ".[docs]"
	touch $@ $(VENV)/core

# First what has hashes, the tools that build the package among it, then torch and Triton, whose builds differ by machine
$(VENV)/dev: pyproject.toml lab/pyproject.toml constraints.txt requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(LOCKED),$(PIP) install --quiet --no-compile --no-deps --require-hashes --requirement requirements.lock)
	$(PIP) install --quiet --no-compile $(PINS) $(if $(LOCKED),--no-build-isolation) --editable ".[dev]" --editable lab
	touch $@ $(VENV)/core $(VENV)/serve $(VENV)/docs

clean:
	rm -rf $(VENV)
