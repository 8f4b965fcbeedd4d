"""The examples: each script or job part is what its command renders, and each program runs, on data that is made here."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT, colossalai, warm_python
from support.require import need_command, need_package

from tools.write_examples import EXAMPLES, NAMES, block, spec, written

pytestmark = pytest.mark.usefixtures("warm_python")


def run(words: list[str], cwd: Path, first: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [first, warm_python.path(os.environ["PATH"])]))
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PATH": path})


def test_the_table_names_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert sorted(re.findall(r"\]\((\w+)/README.md\)", page)) == NAMES
    scripts = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/job.*"))
    assert sorted(re.findall(r"\]\((\w+/job\.\w+)\)", page)) == scripts


@pytest.mark.parametrize("name", NAMES)
def test_the_script_is_what_the_command_renders(name: str) -> None:
    path, text = written(name)
    assert path.read_text() == text, "run: python -m tools.write_examples"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "own_program"])
def test_the_program_runs_and_prints_what_is_shown(name: str, tmp_path: Path) -> None:
    """Two ranks on this machine's CPU, by the example's launcher, on a few images of noise."""
    need_package("torch", "deepspeed", "mpi4py")
    first = colossalai.path() if "colossalai" in name else ""
    job = spec(name)
    launcher, program = str(job.launcher), [*job.program]
    if launcher == "srun":
        launcher = "torchrun"  # srun needs Slurm; to the ranks both say the same
    need_command(launcher)
    if first:
        launcher = "colossalai"  # which starts torchrun
    images = 1 if "bf16" in program else 4  # a convolution in bf16 takes a second an image here
    make_data(program[program.index("--task") + 1], tmp_path / "data", images)
    program[program.index("--data") + 1] = str(tmp_path / "data")
    if "80" in program:
        program[program.index("80")] = "1"  # enough to see it run
    if "1.3b" in program:
        program[program.index("1.3b")] = "tiny"
    for config in (EXAMPLES / name).glob("*.json"):
        shutil.copy(config, tmp_path)
    local = ["local", "--ranks-per-node", "2", "--launcher", launcher, "-o", "job.sh", "--", *program]
    assert run([sys.executable, "-m", "jobgen", *local], tmp_path).returncode == 0
    done = run(["bash", "job.sh"], tmp_path, first)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    for line in block(name, "text").splitlines():
        shape = re.escape(line.strip()).replace("…", ".*")
        assert re.search(shape, done.stdout), f"no line like {line!r} in {done.stdout[-3000:]}"
    [status] = tmp_path.glob("runs/*/status.json")
    assert json.loads(status.read_text())["state"] == "finished"


def test_the_own_program_leaves_when_asked_and_goes_on(tmp_path: Path) -> None:
    need_package("torch")
    need_command("torchrun")
    shutil.copy(EXAMPLES / "own_program" / "train.py", tmp_path)
    local = ["local", "--ranks-per-node", "2", "--launcher", "torchrun", "-o", "job.sh", "--", "train.py"]
    assert run([sys.executable, "-m", "jobgen", *local], tmp_path).returncode == 0
    env = warm_python.environment()
    first = subprocess.Popen(["bash", "job.sh"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    while (
        sum(
            log.read_text().count("begins after step 0")
            for log in tmp_path.glob("runs/*/attempt-1/nodes/0/*.log")
        )
        < 2
    ):
        assert first.poll() is None
        time.sleep(0.1)
    first.send_signal(signal.SIGTERM)
    printed, _ = first.communicate(timeout=60)
    assert first.returncode == 75, printed
    [directory] = tmp_path.glob("runs/*")
    second = run(["bash", "job.sh"], directory)
    assert second.returncode == 0, second.stderr
    for line, text in zip(block("own_program", "text").splitlines(), (printed, second.stdout), strict=True):
        assert re.search(re.escape(line).replace("…", r"\d+"), text)
    assert int((directory / "saved-step").read_text()) < 100


def test_the_own_program_is_killed_while_it_writes(tmp_path: Path) -> None:
    """The state before is intact: an empty file would end all later attempts."""
    need_package("torch")
    need_command("torchrun")
    (tmp_path / "mine.json").write_text('{"step": 98}')
    kill = "import os, signal\nos.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "sitecustomize.py").write_text(kill)
    env = {**os.environ, "JOBGEN_RUN_DIR": str(tmp_path), "JOBGEN_DEADLINE": "1", "PYTHONPATH": str(tmp_path)}
    program = str(EXAMPLES / "own_program" / "train.py")
    command = [need_command("torchrun"), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    done = subprocess.run([*command, program], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "begins after step 98" in done.stdout
    assert "Signal 9 (SIGKILL)" in done.stderr
    assert (tmp_path / "mine.json").read_text() == '{"step": 98}'
    assert not (tmp_path / "saved-step").exists()


def make_data(task: str, folder: Path, images: int) -> None:
    """A few images of noise, or some words, in the files of a task."""
    sys.path.insert(0, str(ROOT / "tests/train"))
    from train_support import write_cifar, write_mnist

    folder.mkdir()
    if task == "text":
        (folder / "text.txt").write_text("In the beginning there was the word.\n" * 120)
    elif task == "mnist":
        write_mnist(folder, train=256, test=32)
    else:
        write_cifar(folder, samples=images)
