"""The points of a task as the script runs them, without a scheduler: also on an old bash."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support import jobs
from support.not_installed import skip

FILES = ("pack",)

BASHES = ("bash", "/opt/bash/4.2/bash")


@pytest.mark.parametrize("bash", BASHES)
@pytest.mark.parametrize(
    ("index", "seen", "lines"),
    [
        (0, "1 3 5 7", ["3 of 4 points have finished, 1 failed: 5"]),
        (1, "9 20", ["0 of 2 points have finished, 2 can go on: 9 20", "qsub -t 1 job.sh"]),
    ],
)
def test_a_task_without_a_scheduler(
    tmp_path: Path, bash: str, index: int, seen: str, lines: list[str]
) -> None:
    if bash.startswith("/") and not os.path.exists(bash):
        skip("bash 4.2")
    code = 'echo "$JOBGEN_TASK $MASTER_PORT" > "$JOBGEN_RUN_DIR/seen"; ((JOBGEN_TASK < 9)) || exit 75; ((JOBGEN_TASK != 5))'
    words = ("--dialect", "torque", "--array", "1-9:2,20", "--pack", 4, "--accelerator", "cpu")
    text = jobs.render(
        "pbs", *words, "--cpus-per-node", 4, "--launcher", "torchrun", program=["bash", "-c", code]
    )
    folder = jobs.path_with(tmp_path / "bin", torchrun='RANK=0 exec bash "${@: -1}"')
    (tmp_path / "nodes").write_text("here\n" * 4)
    env = {
        "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path), "PBS_JOBID": f"7[{index}].head",
        "PBS_NODEFILE": str(tmp_path / "nodes"), "PBS_ARRAYID": str(index), "PBS_O_WORKDIR": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run([bash, "-s"], input=text, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == (1, 75)[index], done.stderr
    assert all(line in done.stderr for line in lines), done.stderr
    top = tmp_path / "runs/jobgen-7.head"
    found = [(top / f"task-{point}/seen").read_text().split() for point in seen.split()]
    assert [point for point, _ in found] == seen.split()
    assert len({port for _, port in found}) == len(found)
    assert {path.name for path in top.glob("*-*") if path.is_dir()} == {
        f"pack-{index}",
        *(f"task-{point}" for point in seen.split()),
    }
