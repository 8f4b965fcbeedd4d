"""What a login node gets: a quick start, the wheel, and the same bytes for the same input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from golden.cases import job_part
from support import ROOT
from support.builds import build
from support.require import absent

from jobgen.commands import man
from jobgen.commands.cli import cli
from jobgen.config import read_spec
from jobgen.plan.plan import resolve
from jobgen.rendering.render import environment, render


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)  # type: ignore[call-overload]


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from jobgen.commands.cli import run; status = run(['pbs', '--nodes', '2', '--launcher', 'mpirun']);"
        "print(status, sorted({'torch', 'deepspeed', 'mpi4py', 'numpy', 'jobgen.train', 'train', 'subprocess', 'difflib', 'msgspec', 'tree_sitter', 'tree_sitter_bash'}"
        " & set(sys.modules)), file=sys.stderr)"
    )
    assert run("-c", code).stderr == "0 []\n"


def test_help_does_not_load_the_templates() -> None:
    code = "import sys; from jobgen.commands.cli import run; run(['--help']); print('jinja2' in sys.modules, file=sys.stderr)"
    assert run("-c", code).stderr == "False\n"


def test_the_package_imports_nothing_by_itself() -> None:
    code = "import sys, jobgen; print([name for name in sys.modules if name.startswith('jobgen.')])"
    assert run("-c", code).stdout == "[]\n"


def test_the_training_module_imports_nothing_of_the_command() -> None:
    code = "import sys, jobgen.train.config; print({'click', 'jinja2', 'jobgen.commands.cli', 'torch'} & set(sys.modules) or 'none')"
    assert run("-c", code).stdout == "none\n"


def test_same_input_same_bytes(tmp_path: Path) -> None:
    words = ("-m", "jobgen", "slurm", "--nodes", "2", "--env", "A=1", "--env", "B=2", "--", "train.py")
    one = os.environ | {"PYTHONHASHSEED": "1", "HOME": "/nowhere", "LANG": "C.UTF-8"}
    two = os.environ | {
        "PYTHONHASHSEED": "2",
        "HOME": str(tmp_path),
        "LANG": "C",
        "TZ": "Asia/Tokyo",
        "USER": "other",
    }
    first = run(*words, env=one, cwd=tmp_path).stdout
    assert first.startswith("#!/bin/bash\n")
    assert run(*words, env=two, cwd="/").stdout == first


@pytest.mark.parametrize("state", ["absent", "a file", "broken"])
def test_the_cache_of_templates_never_matters(state: str, tmp_path: Path) -> None:
    plan = resolve(read_spec("pbs", {"nodes": "2", "launcher": "mpirun"}))
    cache = tmp_path / "cache"
    if state == "a file":
        cache.write_text("")
    if state == "broken":
        render(plan, (), str(cache))
        environment.cache_clear()
        files = list(cache.iterdir())
        assert files
        for path in files:
            path.write_bytes(path.read_bytes()[:40])
    assert render(plan, (), str(cache)) == render(plan)
    environment.cache_clear()


def test_explain_as_table_and_as_json() -> None:
    words = ("-m", "jobgen", "pbs", "--nodes", "2", "--launcher", "mpirun", "--explain")
    table = run(*words).stdout
    assert next(line for line in table.splitlines() if line.startswith("nodes ")).split()[:3] == [
        "nodes",
        "2",
        "command",
    ]
    values = json.loads(run(*words, "--json").stdout)
    meaning = "Number of nodes. 2x4+1x8 is 2 nodes of 4 ranks and 1 of 8. The word submitted leaves the number to the command sbatch or qsub."
    assert values["nodes"] == {"value": 2, "origin": "command line", "meaning": meaning}
    assert values["launcher"]["origin"] == "command line"
    assert (values["world_size"]["value"], values["world_size"]["origin"]) == (2, "derived")
    assert values["walltime"] == {
        "value": "01:00:00",
        "origin": "default",
        "meaning": values["walltime"]["meaning"],
    }
    assert {"hosts", "rendezvous", "slots"} <= set(values)


def test_version_and_help() -> None:
    from jobgen import __version__

    assert run("-m", "jobgen", "--version").stdout == f"jobgen {__version__}\n"
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[:2] == ["Unreleased", __version__]
    for name in ("pbs", "slurm", "local"):
        text = run("-m", "jobgen", name, "--help").stdout
        assert "Options of most jobs:" in text
        assert "Example:" in text
        every = run("-m", "jobgen", name, "--help-all").stdout
        for group in ("Resources:", "Launch:", "Environment:", "Scheduler:", "Example:"):
            assert group in every
        assert f"  jobgen {name} " in text.split("Example:")[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    [path] = build(tmp_path_factory.mktemp("wheel")).glob("*.whl")
    return path


def test_the_wheel_holds_every_file(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    here = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "jobgen").rglob("*")
        if path.suffix in (".py", ".pyi", ".json") or path.name == "py.typed"
    }
    here |= {
        f"jobgen/{path.relative_to(ROOT)}"
        for path in (ROOT / "train").rglob("*")
        if path.suffix in (".py", ".json")
    }
    here |= {
        f"jobgen/templates/{path.relative_to(ROOT / 'templates')}"
        for path in (ROOT / "templates").rglob("*")
        if path.suffix in (".j2", ".sh", ".toml", ".css", ".js", ".bash", ".zsh", ".fish")
    }
    here |= {
        f"jobgen/{path.relative_to(ROOT)}"
        for path in (ROOT / "docs").rglob("*.md")
        if path.parent.name not in ("rules", "sites")
    }
    assert here <= inside
    manuals = {name.split("/")[-1] for name in inside if ".data/data/share/man/man1/" in name}
    assert manuals == set(dict(man.pages(cli)))
    packages = {name.split("/")[0] for name in inside if ".dist-info" not in name and ".data/" not in name}
    assert packages == {"jobgen"}
    assert any(name.endswith("licenses/LICENSE") for name in inside)


def test_the_wheel_works_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """In a clean virtual environment, which has nothing but the wheel and what it needs."""
    run("-m", "venv", str(tmp_path / "venv"))
    python = tmp_path / "venv/bin/python"
    done = subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], capture_output=True, text=True)
    if done.returncode:
        absent(f"pip cannot install the wheel here: {done.stderr[-300:]}")
    assert (
        (tmp_path / "venv/share/man/man1/jobgen-site-new.1").read_text().startswith(".TH JOBGEN-SITE-NEW 1 ")
    )
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [tmp_path / "venv/bin/jobgen", "pbs", "--nodes", "2", "--launcher", "mpirun"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    golden = (ROOT / "tests/golden/pbspro_mpirun_two_nodes.sh").read_text()
    assert (job_part(done.stdout), done.stderr) == (golden, "")
    command = [tmp_path / "venv/bin/jobgen", "help", "out", "of", "memory"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert done.stdout.startswith("# Out of memory\n")
    code = "from jobgen import JobSpec, render; print(render(JobSpec('pbs', nodes=2, launcher='mpirun')), end='')"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert (job_part(done.stdout), done.stderr) == (golden, "")
    code = "from jobgen.train import config, ranks; print(config.parse(['--task', 'digits']).task)"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("digits\n", "")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/metrics.jsonl").write_text('{"step": 1, "loss": 2}\n')
    command = [tmp_path / "venv/bin/jobgen", "report", "run"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "report.html: 1 run\n")
