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
from benchmarks.gpu.parts import PARTS

pytestmark = [pytest.mark.xdist_group("heavy"), pytest.mark.usefixtures("warm_python")]


def benchmark(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **env}
    python = warm_python.command("python")
    command = [python, "-m", "benchmarks.gpu", "--out", str(folder / "out"), *words]
    return subprocess.run(
        command, env=env, cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", PARTS)
def test_each_part_runs_on_the_cpu(tmp_path: Path, part: str) -> None:
    need_package("torch", "deepspeed", "numpy")
    # One part compiles: the C++ compiler takes longer than all the rest.
    env = {} if part == "losses" else {"TORCHDYNAMO_DISABLE": "1"}
    done = benchmark(tmp_path, "--device", "cpu", "--tiny", part, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads((tmp_path / "out" / "gpu.json").read_text())
    assert (tmp_path / "out" / "gpu.md").read_text() == done.stdout
    assert made["rows"]
    assert not [row for row in made["rows"] if row["verdict"] not in ("", "ok")]
    compared = {"losses": 6, "resume": 1}
    assert len([row for row in made["rows"] if row["verdict"] == "ok"]) == compared.get(part, 0)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "torch finds no GPU on this host; --device cpu --tiny tries the benchmark without one"),
        (["--device", "cpu"], "--device cpu needs --tiny"),
        (["--device", "cpu", "--tiny", "nosuch"], "no part nosuch: there are environment, losses,"),
    ],
)
def test_what_cannot_run_is_one_sentence(tmp_path: Path, words: list[str], says: str) -> None:
    need_package("torch", "numpy")
    done = benchmark(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_parts_fit_into_eight_minutes() -> None:
    assert sum(part.seconds for part in PARTS.values()) < 8 * 60


def test_a_part_that_is_late_leaves_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.gpu import __main__ as program

    (tmp_path / "late.py").write_text("")
    late = f"import sys, time; from pathlib import Path; sys.path.insert(0, {str(ROOT)!r})\n"
    late += "from benchmarks.gpu import rows\n"
    late += "rows.append(Path(sys.argv[-1]), rows.Row('losses', 'the first', 1.0)); time.sleep(60)"
    (tmp_path / "python").write_text(f'#!/bin/sh\nshift 2\nexec {sys.executable} -c "$LATE" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("LATE", late)
    monkeypatch.setattr(program.sys, "executable", str(tmp_path / "python"))
    found = program.run("losses", "cpu", True, 6.0, tmp_path / "part")
    assert [(row.what, row.verdict) for row in found] == [
        ("the first", ""),
        ("the rest of this part", "left out"),
    ]
    assert [row.verdict for row in program.run("losses", "cpu", True, 1.0, tmp_path / "none")] == ["left out"]


def test_the_table_shows_ratios() -> None:
    made = rows.table([rows.Row("gpt", "ours", 99.0, "tokens/s", 100.0, "by hand | torch")])
    assert made.splitlines()[2] == "| gpt | ours | 99 tokens/s | 100 tokens/s: by hand / torch | 0.990 |  |"
