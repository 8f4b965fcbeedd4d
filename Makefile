# make demo: train digits with a rendered script.  make test: everything that CI runs.
# Neither needs root or a compiler; as root, `make test` also installs what the cluster tests need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SOURCES := setup.cfg pyproject.toml constraints.txt
# Every process of the tests would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test quick matrix hangs mutants lint bench colossalai clean

demo: $(VENV)/.demo
	$(BIN)/jobgen local --name demo --ranks-per-node 2 --launcher mpirun --venv $(VENV) --output demo.sh --force \
	  -- --task digits
	bash demo.sh
	@echo "The script is demo.sh; the run directories are in runs/: hostfile, metrics.jsonl, status.json."

test: $(VENV)/.test
	if [ "$$(id -u)" = 0 ]; then tests/install.sh; fi
	$(MAKE) lint
	$(BIN)/python -m pytest -n 3 --dist loadgroup --durations 10 --ignore-glob '*/test_survival*' --ignore-glob '*/test_matrix*'
	@# What kills nodes of a cluster that others share, and what counts on the time that a job takes, comes afterwards.
	$(BIN)/python -m pytest -n 3 --dist loadgroup tests/cluster/test_matrix.py
	$(BIN)/python -m pytest -n 2 --dist loadgroup tests/cluster/test_survival*.py

# The tests without a cluster, a training or a browser: less than a minute on two cores.
quick: $(VENV)/.test
	$(BIN)/python -m pytest -q -n 6 --dist worksteal tests/runtime tests/test_golden.py tests/test_errors.py tests/test_values.py tests/test_jobfile.py \
	  tests/check/test_check_rules.py tests/convert --deselect tests/test_golden.py::test_every_combination_is_clean_and_has_its_directives_first

# Every launcher x every end of a job x Slurm, OpenPBS and Torque, of which `make test` runs a part; and the table of it.
matrix: $(VENV)/.test
	tests/install.sh
	rm -f $(VENV)/matrix.jsonl
	JOBGEN_MATRIX=all JOBGEN_MATRIX_RECORD=$(CURDIR)/$(VENV)/matrix.jsonl \
	  $(BIN)/python -m pytest -n 3 --dist loadgroup tests/cluster/test_matrix.py
	PYTHONPATH=tests $(BIN)/python -m support.matrix_table $(VENV)/matrix.jsonl > docs/matrix.md

# Fifty jobs with Debian's Open MPI on each scheduler.
hangs: $(VENV)/.test
	tests/install.sh
	JOBGEN_HANGS=50 $(BIN)/python -m pytest tests/cluster/test_hangs.py

# Every command of the runtime taken out or its condition negated: which has no test that fails?  FILES='hostfile node/rank'
mutants: $(VENV)/.test
	$(BIN)/python tests/mutants.py $(FILES)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/shellcheck .ci/run tests/*.sh tests/cluster/*.sh tests/support/*.sh

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV) || \
	  { echo "make: $(PYTHON) cannot make a virtual environment: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }
	touch $@

$(VENV)/.demo: $(VENV)/.venv $(SOURCES)
	$(PIP) --editable '.[train,mpi]'
	$(BIN)/python -m compileall -q jobgen templates train  # pip does it for every other package
	$(BIN)/jobgen pbs > /dev/null
	touch $@

$(VENV)/.test: $(VENV)/.demo
	$(PIP) --editable '.[train,mpi,test]'
	touch $@

# An environment of its own: ColossalAI's pins exclude today's torch, but not what it does with it.
COLOSSALAI ?= .venv-colossalai
colossalai:
	$(PYTHON) -m venv $(COLOSSALAI)
	$(COLOSSALAI)/bin/python -m pip install -q -c constraints-colossalai.txt --editable '.[colossalai]'
	$(COLOSSALAI)/bin/python -m pip install -q -c constraints-colossalai.txt --no-deps colossalai
	@echo "Now $(COLOSSALAI)/bin/python -m jobgen.train --engine colossalai works."

clean:
	rm -rf $(VENV) demo.sh runs build dist *.egg-info
