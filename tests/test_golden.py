"""The scripts in tests/golden/, byte by byte, and what every rendered script promises."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest
from golden.cases import CASES, HERE, script
from support.require import need_command

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.plan import resolve
from jobgen.rendering import render

HOSTILE = "a b'\"$(touch pwned)`id`\\ \n#PBS -q evil\n#SBATCH --nodes=9\r\u202eé“ ~ *"


@pytest.mark.parametrize("name", CASES)
def test_script_is_the_golden_one(name: str) -> None:
    golden = HERE / f"{name}.sh"
    assert golden.is_file(), f"no {golden.name}: python tests/golden/cases.py writes it"
    assert script(CASES[name]) == golden.read_text(encoding="utf-8")


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in HERE.glob("*.sh")} == set(CASES)


def shellcheck(paths: list[Path]) -> None:
    done = subprocess.run([need_command("shellcheck"), *map(str, paths)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]


def test_goldens_are_clean() -> None:
    shellcheck(sorted(HERE.glob("*.sh")))


def combinations() -> list[str]:
    """One script for every combination of options that a scheduler can express."""
    full = {
        "ranks_per_node": "2",
        "cpus_per_rank": "4",
        "env": ["A=" + HOSTILE, "B=1,2"],
        "module": ["gcc/12", "cuda"],
        "source": ["/opt/" + HOSTILE],
        "conda": "/c/e v",
        "venv": "/v" + HOSTILE,
        "workdir": "/w" + HOSTILE,
        "run_dir": "r" + HOSTILE,
        "launcher_arg": ["--x", HOSTILE],
        "master_port": "12345",
        "setup": "echo a\n'\n$(b)'",
        "before": "cat <<'END'\nx\nEND",
        "after_block": "if true; then\n\techo $JOBGEN_STATUS\nfi",
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
    for (scheduler, dialect), nodes, launcher, accelerator, remote, mpi, program, given in itertools.product(
        (("pbs", None), ("pbs", "torque"), ("slurm", None), ("local", None)),
        ("1", "3"),
        ("deepspeed", "mpirun", "torchrun", "srun"),
        ("cuda", "npu", "rocm", "cpu"),
        ("auto", "ssh", "scheduler"),
        (None, "mpich", "intel", "pals"),
        ((), ("train.py", HOSTILE), ("./a.out", ":"), ("-m", "pkg.mod")),
        ({}, full),
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
    scripts = combinations()
    assert len(scripts) > 3000
    for number, text in enumerate(scripts):
        lines = text.splitlines()
        first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
        late = [line for line in lines[first:] if line.startswith(("#PBS", "#SBATCH"))]
        assert not late, late
        assert "\r" not in text
        assert all(line == line.rstrip() for line in lines if not line.startswith("#")), number
        # shellcheck takes 20 ms a script: it sees one in twelve, bash sees all.
        if number % 12 == 0:
            (tmp_path / f"{number}.sh").write_text(text, encoding="utf-8")
    whole = "\n".join(f"f{i}() {{\n{text}\n}}" for i, text in enumerate(scripts))
    done = subprocess.run(["bash", "-n"], input=whole.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr[-2000:]
    shellcheck(sorted(tmp_path.glob("*.sh")))
