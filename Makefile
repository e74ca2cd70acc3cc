# `make demo`, `make test` and `make docs` do everything from a fresh clone; each makes the virtual environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The environment variable reaches the build of the package too, the option would not.
PIP := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: demo test lint docs bench clean

demo: $(VENV)/demo-installed
	$(BIN)/incrt train --out demo/runs --seeds 42 --steps 20000 --figures demo

test: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/docs-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/test-installed
	$(BIN)/python -m pytest -m slow
	$(BIN)/python benchmarks/bench_plant.py
	$(BIN)/python benchmarks/bench_checks.py
	$(BIN)/python benchmarks/trigger_cost.py
	$(BIN)/python benchmarks/encoders.py
	$(BIN)/python benchmarks/heads_evidence.py
	$(BIN)/python benchmarks/kill_resume.py
	$(BIN)/python benchmarks/cpu_arrangements.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/engine_cost.py
	$(BIN)/python benchmarks/sb3_curves.py
	$(BIN)/python benchmarks/sb3_cost.py
	$(BIN)/python benchmarks/learning_per_hour.py
	$(BIN)/python benchmarks/study_kill.py
	$(BIN)/python benchmarks/study_kill.py --backend ray
	$(BIN)/python benchmarks/coverage.py
	$(BIN)/python benchmarks/report_speed.py
	$(BIN)/incrt bench cpu

# Stamps: set up again when what is to be installed changes.
$(VENV)/demo-installed: pyproject.toml constraints.txt | $(VENV)/created
	$(PIP) --editable .
	touch $@

$(VENV)/test-installed: pyproject.toml constraints.txt | $(VENV)/created
	$(PIP) --editable ".[dev]"
	$(PIP) --no-deps memorax
	touch $@ $(VENV)/demo-installed $(VENV)/docs-installed

$(VENV)/docs-installed: pyproject.toml constraints.txt | $(VENV)/created
	$(PIP) --editable ".[docs]"
	touch $@ $(VENV)/demo-installed

$(VENV)/created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

clean:
	rm -rf $(VENV) demo site
