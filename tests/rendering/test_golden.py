"""The scripts in tests/golden/, byte by byte, and what every rendered script promises."""

from __future__ import annotations

import hashlib
import itertools
import re
import subprocess
from pathlib import Path

import pytest
from golden.cases import CASES, HERE, plan_of, script
from support import ROOT
from support.require import need_command
from support.site_manuals import JOBS

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.options import CODE
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render
from jobgen.rendering.runtime import MARK, settings

EVERY = CASES | {job: job for job in JOBS}
RUNTIME = ROOT / "templates/runtime"
HOSTILE = "a b'\"$(touch pwned)`id`\\ \n#PBS -q evil\n#SBATCH --nodes=9\r\u202eé“ ~ *"


@pytest.mark.parametrize("name", CASES)
def test_script_is_the_golden_one(name: str) -> None:
    golden = HERE / f"{name}.sh"
    assert golden.is_file(), f"no {golden.name}: python -m tools.write_goldens writes it"
    assert script(CASES[name]) == golden.read_text(encoding="utf-8")


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in HERE.glob("*.sh")} == set(CASES)


def shellcheck(paths: list[Path], *options: str) -> None:
    command = [need_command("shellcheck"), *options, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]


def test_goldens_are_clean() -> None:
    shellcheck(sorted(HERE.glob("*.sh")))


def test_runtime_files_are_clean() -> None:
    """What one file defines is used by another one: SC2034, SC2120, SC2154, SC2329."""
    shellcheck(sorted(RUNTIME.rglob("*.sh")), "--shell=bash", "--exclude=SC2034,SC2120,SC2153,SC2154,SC2329")


@pytest.mark.parametrize("name", EVERY)
def test_a_job_part_is_one_screen(name: str) -> None:
    """At most 60 lines, and 20 for each further step, without the settings, also of a network and of steps, the sources
    of a site and the user's own code."""
    plan = plan_of(EVERY[name])
    lines = [line for line in script(EVERY[name]).splitlines() if not re.match(r"  job_\w+=", line)]
    own = [line for key in CODE if (text := getattr(plan.spec, key)) for line in text.splitlines()]
    section = 1 + len(settings(plan)) + len(plan.site.network.variables)  # with its heading
    assert len(lines) - section - len(plan.site.head) - len(own) <= 60 + 20 * max(0, len(plan.steps) - 1)


@pytest.mark.parametrize("name", EVERY)
def test_a_setting_is_one_line(name: str) -> None:
    lines = script(EVERY[name]).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("# ---- settings")) + 1
    names = [one.name for one in settings(plan_of(EVERY[name]))]
    assert [line.partition("=")[0] for line in lines[first : first + len(names)]] == names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", EVERY)
def test_the_only_trap_of_a_job_part_is_that_of_an_incomplete_script(name: str) -> None:
    lines = script(EVERY[name]).splitlines()
    traps = [line for line in lines if line.lstrip().startswith("trap ")]
    assert [(line[:12], line.split()[-1]) for line in traps] == [("trap 'echo \"", "EXIT")]


@pytest.mark.parametrize("name", EVERY)
def test_the_runtime_is_the_same_bytes_in_every_script(name: str) -> None:
    text = render(plan_of(EVERY[name]))
    marker, _, runtime = text[text.index(MARK) :].partition("\n")
    assert hashlib.sha256(runtime.encode()).hexdigest() in marker
    files = {path: path.read_text() for path in RUNTIME.rglob("*.sh")}
    if "#SBATCH hetjob" in text:  # sbatch removes the empty lines of such a script
        files = {path: re.sub(r"\n{2,}", "\n", written) for path, written in files.items()}
    for part in re.split(r"^(?=# ---- \w+\.sh: )", runtime, flags=re.MULTILINE)[1:]:
        stem = part[len("# ---- ") : part.index(".sh:")]
        assert part.startswith(f"# ---- {stem}.sh: {files[RUNTIME / f'{stem}.sh'][2:]}")
    for stem, written in re.findall(
        r"job_file_(\w+)\(\) \{\n  cat << 'END_OF_\w+'\n(.*?)^END_OF_", runtime, re.M | re.S
    ):
        assert written == files[RUNTIME / f"node/{stem}.sh"]


def combinations() -> list[str]:
    """A script for every fifth combination of options that a scheduler can express. No number of values of an
    option is a multiple of five: each value meets each value of the others."""
    full = {
        "ranks_per_node": "2",
        "cpus_per_rank": "4",
        "env": ["A=" + HOSTILE, "B=1,2"],
        "module": ["gcc/12", "cuda"],
        "source": ["/opt/" + HOSTILE],
        "conda": "/c/e v",
        "venv": "/v" + HOSTILE,
        "workdir": "/w" + HOSTILE,
        "runs_dir": "r" + HOSTILE,
        "launcher_arg": ["--x", HOSTILE],
        "master_port": "12345",
        "setup": "echo a\n: '\n(b)'",
        "before": "cat <<'END'\nx\nEND",
        "after_block": 'if true; then\n\techo "$JOBGEN_STATUS"\nfi',
    }
    full |= {"cpu_bind": "0-3;4-7", "interface": "hsn0,hsn1"}
    queued = {
        "cpus_per_node": "8",
        "queue": "gpu",
        "account": "acc",
        "mail": "a@b.c",
        "mem": "64G",
        "directive": ["-p 3"],
    }
    scripts = []
    every = itertools.product(
        (("pbs", None), ("pbs", "torque"), ("slurm", None), ("local", None)),
        ("1", "3"),
        ("deepspeed", "mpirun", "torchrun", "srun"),
        ("cuda", "npu", "rocm", "cpu"),
        ("auto", "ssh", "scheduler"),
        (None, "mpich", "intel", "pals"),
        ((), ("train.py", HOSTILE), ("./a.out", ":"), ("-m", "pkg.mod")),
        ({}, full),
    )
    for (scheduler, dialect), nodes, launcher, accelerator, remote, mpi, program, given in itertools.islice(
        every, 0, None, 5
    ):
        options = {**given, "nodes": nodes, "launcher": launcher, "accelerator": accelerator}
        options |= {"remote": remote, "mpi": mpi, "dialect": dialect}
        if given and scheduler != "local":
            options |= queued
        if given and launcher == "deepspeed":
            options |= {"include": "h1:0@h2"} if nodes == "3" else {"exclude": "h1:1"}
        try:
            scripts.append(render(resolve(read_spec(scheduler, options, program))))
        except JobgenError:
            continue  # what a scheduler cannot express is refused: test_errors.py
    return scripts


def test_every_combination_is_clean_and_has_its_directives_first(tmp_path: Path) -> None:
    scripts = [text[: text.index(MARK)] for text in combinations()]
    assert len(scripts) > 600
    for number, text in enumerate(scripts):
        lines = text.splitlines()
        first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
        late = [line for line in lines[first:] if line.startswith(("#PBS", "#SBATCH"))]
        assert not late, late
        assert "\r" not in text
        assert all(line == line.rstrip() for line in lines if not line.startswith("#")), number
        # bash sees all; shellcheck takes longer and sees one in seven.
        if number % 7 == 0:
            (tmp_path / f"{number}.sh").write_text(text, encoding="utf-8")
    whole = "\n".join(f"f{i}() {{\n{text}\n}}" for i, text in enumerate(scripts))
    done = subprocess.run(["bash", "-n"], input=whole.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr[-2000:]
    shellcheck(sorted(tmp_path.glob("*.sh")))
