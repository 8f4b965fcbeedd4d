"""--launcher none: one process on the first node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobgen import JobgenError, JobSpec, render

CPU = {"launcher": "none", "accelerator": "cpu"}


@pytest.mark.parametrize("scheduler", ["slurm", "pbs", "local"])
def test_the_script_starts_the_program_itself(scheduler: str) -> None:
    text = render(JobSpec(scheduler, program=["./a.out"], **CPU))
    [launch] = [part.partition("\n}")[0] for part in text.split("\nlaunch() {\n")[1:]]
    assert launch.strip() == 'exec bash "$JOBGEN_RUN_DIR/rank.sh" "$@"'
    assert "job_world_size=1\n" in text


def test_one_process_on_the_first_of_several_nodes_has_their_devices() -> None:
    text = render(JobSpec("slurm", program=["./a.out"], launcher="none", nodes=2, gpus_per_node=4))
    assert "# one process on the first of 2 nodes, on NVIDIA GPUs; made by jobgen" in text
    assert {"job_nodes=2", "job_ranks_per_node=1", "job_world_size=1"} < set(text.split("\n"))
    assert "job_host_access=" not in text


def test_the_program_may_be_a_launcher() -> None:
    text = render(JobSpec("slurm", program=["torchrun", "--standalone", "train.py"], **CPU))
    assert "exec torchrun --standalone train.py" in text


@pytest.mark.parametrize(
    "options",
    [
        {"ranks_per_node": 2},
        {"spare_nodes": 1},
        {"preflight": True},
        {"master_port": 2000},
    ],
)
def test_options_of_ranks_are_refused(options: dict[str, object]) -> None:
    [key] = options
    with pytest.raises(JobgenError, match=f"^{key} = "):
        render(JobSpec("pbs", program=["./a.out"], **CPU, **options))


def test_the_process_has_no_variables_of_ranks(tmp_path: Path) -> None:
    program = ["bash", "-c", "sleep 60 & env | grep -cE '^(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR)='; exit 3"]
    (tmp_path / "job.sh").write_text(render(JobSpec("local", program=program, runs_dir=str(tmp_path), **CPU)))
    done = subprocess.run(["bash", "job.sh"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "0\n")
    assert "rendezvous" not in done.stderr
