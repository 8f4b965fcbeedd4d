# make demo: train digits with a rendered script.  make test: everything that CI runs.
# Neither needs root or a compiler; as root, `make test` also installs what the cluster tests need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A target has a cache of its own. Its tests that fail (status 1) are run once more, one at a time. Both results are printed.
CACHE = $(VENV)/cache-$@
PYTEST = MAKEFLAGS= $(NICE) $(BIN)/python -m pytest --dist loadgroup --cache-clear -o cache_dir=$(CACHE) --durations 10
OR_ALONE = || { test $$? = 1 && $(BIN)/python tools/failed_again.py $(CACHE); }
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
BY_UV := $(BIN)/python tools/pip_by_uv.py
SOURCES := setup.cfg pyproject.toml constraints.txt
# Every process of the tests would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test pictures test-clusters test-pbs test-survival test-matrix test-others test-bash test-slurm-new test-departments system packages slurm-new quick matrix hangs mutants written collection lint lint-train docs dist pyz sbom recipes release web bench colossalai clean

demo: $(VENV)/.demo
	$(BIN)/jobgen local --name demo --ranks-per-node 2 --launcher mpirun --venv $(VENV) --output demo.sh --force \
	  -- --task digits
	bash demo.sh
	@echo "The script is demo.sh; the run directories are in runs/: hostfile, metrics.jsonl, status.json."

# What uses clusters, or counts on time, waits most of the time: the others run beside it, and give way to it. A Slurm belongs
# to a worker. OpenPBS and Torque are those of the machine: what kills their nodes comes first. The output of each part is
# printed at its end.
test:
	$(MAKE) -j 2 packages $(VENV)/.compiled lint lint-train
	: > $(NOT_INSTALLED)
	JOBGEN_NOT_INSTALLED=$(NOT_INSTALLED) $(MAKE) -j 4 --output-sync=line test-pbs test-clusters test-survival test-others test-bash
	PYTHONPATH=tests $(BIN)/python -m support.not_installed $(NOT_INSTALLED)

OLD_BASH ?= /opt/bash/4.2/bash
# The numbers of tests that were skipped because there is no OpenPBS, Torque, ...
NOT_INSTALLED := $(CURDIR)/$(VENV)/not-installed

ON_CLUSTERS := tests/cluster tests/hosts tests/docs/test_docs.py
# They take the power of nodes, on which the jobs of other tests may run.
KILLS_NODES := tests/cluster/test_matrix.py tests/cluster/test_side_by_side.py::test_a_lost_node_leaves_nothing
TIMED := tests/local/test_local_survival.py tests/train/test_train_hang.py tests/train/test_train_preflight.py

test-matrix:
	$(PYTEST) -n 2 --pbs only $(KILLS_NODES) $(OR_ALONE)

test-pbs: test-matrix
	$(PYTEST) -n 4 --pbs only $(ON_CLUSTERS) tests/runtime $(TIMED) $(addprefix --deselect ,$(KILLS_NODES)) $(OR_ALONE)

# Many workers: these tests use a core for a tenth of their time.
test-clusters:
	$(PYTEST) -n 8 --pbs none $(ON_CLUSTERS) tests/runtime --ignore-glob '*/test_survival*' $(OR_ALONE)

test-survival:
	$(PYTEST) -n 3 --pbs none tests/cluster/test_survival*.py $(TIMED) $(OR_ALONE)

# The runtime, and each end of a job under torchrun on Slurm, with an older bash on all hosts.
test-bash: test-survival
	export JOBGEN_TEST_BASH=$(OLD_BASH); \
	  $(PYTEST) -n 3 tests/runtime tests/cluster/test_matrix.py -k 'not matrix or slurm-torchrun' $(OR_ALONE)

test-others: NICE := nice -n 3
test-others:
	$(PYTEST) -n 3 $(addprefix --ignore ,$(ON_CLUSTERS) $(TIMED) tests/runtime) $(OR_ALONE)

# What the tests need of the machine, which only root can install. Slurm 24.11 takes a minute, most of which it waits for the
# disk and the network: tests without a cluster run meanwhile.
system: packages slurm-new
slurm-new: packages
packages slurm-new:
	if [ "$$(id -u)" = 0 ]; then tests/install.sh $@; fi
test-matrix test-clusters test-survival: slurm-new

# The tests without a cluster, a training or a browser, three cases of each: 90 seconds on two cores. Many of them wait.
QUICK_WORKERS ?= 8
quick: $(VENV)/.light
	$(BIN)/python -m pytest -q -n $(QUICK_WORKERS) --dist worksteal --cases 3 tests/runtime tests/rendering/test_golden.py tests/commands/test_errors.py \
	  tests/values/test_values.py tests/jobfile/test_jobfile.py tests/check/test_check_rules.py tests/convert \
	  --deselect tests/rendering/test_golden.py::test_every_combination_is_clean_and_has_its_directives_first

# Every launcher x every end of a job x Slurm, OpenPBS and Torque, of which `make test` runs a part; the table of it; and
# the same with each bash of OLD_BASHES.
OLD_BASHES ?= $(wildcard /opt/bash/*/bash)
matrix: $(VENV)/.test
	tests/install.sh
	rm -f $(VENV)/matrix.jsonl
	for bash in '' $(OLD_BASHES); do \
	  JOBGEN_TEST_BASH=$$bash JOBGEN_MATRIX=all JOBGEN_MATRIX_RECORD=$(CURDIR)/$(VENV)/matrix.jsonl \
	    $(BIN)/python -m pytest -n 4 --dist loadgroup tests/cluster/test_matrix.py || exit; \
	done
	$(BIN)/python -m tools.write_matrix $(VENV)/matrix.jsonl > docs/matrix.md

# All tests that use a Slurm, and all cells of the matrix, on Slurm 24.11 alone; `make test` runs some of them on it.
test-slurm-new: $(VENV)/.test
	tests/install.sh
	JOBGEN_TEST_SLURM=24.11 JOBGEN_MATRIX=all ALL_FORMS=1 \
	  $(PYTEST) -n 4 --pbs none $(ON_CLUSTERS) $(OR_ALONE)

# Each cluster of tests/departments as a real Slurm, OpenPBS or Torque: its site file, and jobs by it. `make test` does seven.
test-departments: $(VENV)/.test
	tests/install.sh
	export JOBGEN_DEPARTMENTS=all; \
	  $(PYTEST) -n 2 tests/departments tests/cluster/test_departments_on_*.py $(OR_ALONE)

# Fifty jobs with each Open MPI on each scheduler.
hangs: $(VENV)/.test
	tests/install.sh
	JOBGEN_HANGS=50 $(BIN)/python -m pytest tests/cluster/test_hangs.py

# Every command of the runtime taken out or its condition negated: which has no test that fails?  FILES='hostfile node/rank'
mutants: $(VENV)/.light
	$(BIN)/python -m tools.mutants $(FILES)

# All files that are written from the code, except the schema of DeepSpeed. Read the difference before you commit it.
written: $(VENV)/.light
	for name in goldens department_goldens rule_pages site_pages examples exit_statuses settings training_options; do \
	  $(BIN)/python -m tools.write_$$name || exit; \
	done
	$(BIN)/jobgen schema > $(VENV)/schema.json && cp $(VENV)/schema.json jobgen/jobgen.schema.json

# The pictures of the README, which need Chromium.
pictures: $(VENV)/.test
	$(BIN)/python -m tools.write_pictures

# check and convert over thousands of real scripts; CHECKOUT is a copy of github.com/converged-computing/jobspec-database.
collection: $(VENV)/.light
	$(BIN)/python -m tools.collection $(CHECKOUT)

lint: $(VENV)/.light
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/shellcheck .ci/run tests/*.sh tests/cluster/*.sh tests/support/*.sh

# The types of the training module, which need PyTorch. Here each exception from the rules of mypy must be of use.
# After lint: with what its mypy keeps, this one takes 9 instead of 23 seconds of a core.
lint-train: $(VENV)/.test lint
	$(BIN)/mypy --warn-unused-configs --package jobgen --package train

# The documentation site, in site/. NO_MKDOCS_2_WARNING: the pins in constraints.txt hold mkdocs below 2.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# A release, in dist/: wheel and source distribution, zipapp, its parts, recipes. The date is that of the commit.
dist pyz sbom recipes release: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2> /dev/null || echo 315532800)
dist: $(VENV)/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist . > /dev/null
	$(BIN)/python -m twine check --strict dist/*

pyz: dist
	$(BIN)/python -m release.pyz dist/*.whl dist/jobgen.pyz

sbom: pyz
	$(BIN)/python -m release.sbom dist/jobgen.pyz > dist/jobgen.cdx.json

recipes: dist
	$(BIN)/python -m release.recipes dist/*.tar.gz dist

release: sbom recipes
	cd dist && sha256sum *.whl *.tar.gz *.pyz *.json

# The page that makes scripts in a browser, in dist/web.
web: $(VENV)/.light
	$(BIN)/jobgen web -o dist/web --force

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV) || \
	  { echo "make: $(PYTHON) cannot make a virtual environment: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }
	$(PIP) --upgrade pip  # it needs half of the time of the one that comes with Python 3.11
	touch $@

# pip compiles every package but this one; uv none, and the tests do not import all of them.
INSTALL = $(PIP) --editable '.[$(EXTRAS)]' && $(BIN)/python -m compileall -q jobgen templates train && $(BIN)/jobgen pbs > /dev/null

$(VENV)/.demo: EXTRAS = train,mpi
$(VENV)/.demo: $(VENV)/.venv $(SOURCES)
	@echo "Installing PyTorch, DeepSpeed and an MPI into $(VENV): this may take minutes."
	$(INSTALL)
	touch $@

# Without PyTorch: seconds.
$(VENV)/.light: EXTRAS = dev
$(VENV)/.light: PIP := $(BY_UV)
$(VENV)/.light: $(VENV)/.venv $(SOURCES)
	$(INSTALL)
	touch $@

$(VENV)/.test: EXTRAS = train,mpi,test
$(VENV)/.test: PIP := $(BY_UV)
$(VENV)/.test: $(VENV)/.light $(SOURCES)
	@echo "Installing PyTorch, DeepSpeed, an MPI and what tests need into $(VENV): this may take minutes."
	$(INSTALL)
	@# Hundreds of processes import torch: with fewer garbage collections a sixth faster, without those at the end another fifth.
	echo "import atexit, gc, sys; gc.set_threshold(100_000); atexit.register(lambda gc=gc, sys=sys: 'torch' in sys.modules and gc.freeze())" \
	  > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/fewer_collections.pth"
	touch $(VENV)/.demo $@

$(VENV)/.compiled: $(VENV)/.test
	@# What many tests import: the first programs of a run would each compile it, which takes ten seconds of a core.
	PYTHONPATH=tests $(BIN)/python -c 'import importlib, support.warm_python as warm; [*map(importlib.import_module, warm.MODULES)]'
	touch $@

$(VENV)/.docs: $(VENV)/.venv $(SOURCES)
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.release: $(VENV)/.venv $(SOURCES)
	$(PIP) --editable '.[release]'
	touch $@

# An environment of its own: ColossalAI's pins exclude today's torch, but not what it does with it.
COLOSSALAI ?= .venv-colossalai
colossalai:
	$(PYTHON) -m venv $(COLOSSALAI)
	$(COLOSSALAI)/bin/python -m pip install -q -c constraints-colossalai.txt --editable '.[colossalai]'
	$(COLOSSALAI)/bin/python -m pip install -q -c constraints-colossalai.txt --no-deps colossalai
	@echo "Now $(COLOSSALAI)/bin/python -m jobgen.train --engine colossalai works."

clean:
	rm -rf $(VENV) demo.sh runs build dist site *.egg-info
