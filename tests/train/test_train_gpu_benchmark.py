"""benchmarks.gpu without a GPU: each part is run with small models, so that no line of it runs for the first time there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, warm_python
from support.require import need_package

sys.path.insert(0, str(ROOT))

from benchmarks.gpu import rows

pytestmark = [pytest.mark.xdist_group("heavy"), pytest.mark.usefixtures("warm_python")]


def benchmark(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # To compile these models takes minutes on a CPU.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
    command = [warm_python.command("python"), "-m", "benchmarks.gpu", *words, "--out", str(folder / "out")]
    return subprocess.run(
        command, env=env, cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("program", "verdicts", "compared"),
    [
        ("images", 7, {"ResNet-18": 4, "host": 3, "costs": 7}),
        ("language", 0, {"GPT-124m": 6, "memory": 1}),
    ],
)
def test_each_part_runs_on_the_cpu(
    tmp_path: Path, program: str, verdicts: int, compared: dict[str, int]
) -> None:
    need_package("torch", "deepspeed", "numpy")
    done = benchmark(tmp_path, program, "--device", "cpu", "--tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads((tmp_path / "out" / f"{program}.json").read_text())["rows"]
    assert (tmp_path / "out" / f"{program}.md").read_text() == done.stdout
    assert [row["verdict"] for row in made if row["verdict"]] == ["ok"] * verdicts
    for part, count in compared.items():
        assert len([row for row in made if row["part"] == part and row["ratio"]]) == count


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "torch finds no GPU on this host; --device cpu --tiny tries the benchmark without one"),
        (["--device", "cpu"], "--device cpu needs --tiny"),
    ],
)
def test_what_cannot_run_is_one_sentence(tmp_path: Path, words: list[str], says: str) -> None:
    need_package("torch", "numpy")
    done = benchmark(tmp_path, "images", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_part_that_fails_leaves_the_others(tmp_path: Path) -> None:
    need_package("torch", "deepspeed", "numpy")
    program = (
        "import sys; from benchmarks.gpu import __main__ as program, language, rows\n"
        "def broken(*_): yield rows.Row('first', 'a', 1.0); raise ValueError('out of memory')\n"
        "def absent(*_): import nosuch; yield\n"
        "language.PARTS = broken, absent\n"
        "sys.exit(program.main(['language', '--device', 'cpu', '--tiny', '--out', 'out']))"
    )
    command = [sys.executable, "-c", program]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-3:] == [
        "| first | a | 1 |  |  |  |",
        "| broken | the rest | ValueError: out of memory |  |  | wrong |",
        "| absent | the rest | nosuch cannot be imported |  |  | left out |",
    ]


def test_the_table_shows_ratios() -> None:
    made = rows.table([rows.Row("gpt", "ours", 99.0, "tokens/s", 100.0, "by hand | torch")])
    assert made.splitlines()[2] == "| gpt | ours | 99 tokens/s | 100 tokens/s: by hand / torch | 0.990 |  |"
