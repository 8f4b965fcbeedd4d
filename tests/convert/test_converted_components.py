"""Heterogeneous jobs of Slurm become the components of a job file."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import jobs

from jobgen.convert.to_job_file.translation import convert
from jobgen.jobfile.reader import decode
from jobgen.script.script import Script

SCRIPT = """#!/bin/bash
#SBATCH --job-name=het --time=01:00:00 --account=proj
#SBATCH --nodes=1 --ntasks-per-node=1 --cpus-per-task=16 --mem=64G --partition=cpu
#SBATCH {word}
#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=8 --partition=gpu
#SBATCH --gpus-per-node=4 --constraint=a100
set -euo pipefail
{command}
"""
FIRST = {"nodes": 1, "ranks_per_node": 1, "gpus_per_node": 0, "cpus_per_rank": 16, "queue": "cpu"}
SECOND = {
    **{"nodes": 2, "ranks_per_node": 4, "gpus_per_node": 4, "cpus_per_rank": 8, "constraint": "a100"},
    "queue": "gpu",
}
# The commands that start one program in both components, and what is said of others.
COMMANDS = [
    ("srun --het-group=0,1 --mpi=none ./solver a", ""),
    ("srun --het-group 0-1 ./solver a", ""),
    ("srun --pack-group=0 ./solver a : --pack-group=1 ./solver a", ""),
    ("srun -n 1 -c 16 ./solver a : -n 8 -c 8 ./solver a", ""),
    ("srun ./solver a", "component 1: srun starts no rank in it"),
    ("srun --het-group=0 ./solver a : --het-group=1 ./other", "./other: jobgen starts one program"),
]


@pytest.mark.parametrize("word", ["hetjob", "packjob"])
@pytest.mark.parametrize(("command", "remark"), COMMANDS)
def test_each_component_becomes_a_table(command: str, remark: str, word: str) -> None:
    done = convert(Script(SCRIPT.format(word=word, command=command).encode(), "slurm"))
    file = decode(done.text, "job.toml")
    assert file["component"] == [FIRST, SECOND]
    assert file["resources"] == {"mem": "65536M"}  # which Slurm gives the second one, too
    assert file["job"]["account"] == "proj"
    assert file["program"]["command"] == ["./solver", "a"]
    assert file["slurm"]["launcher"] == "srun"
    lost = [f"{one.what}: {one.why}" for one in done.remarks if one.lost]
    assert [one.startswith(remark) for one in lost] == [True] * bool(remark)


@pytest.mark.parametrize("launcher", ["srun", "mpirun", "torchrun"])
def test_a_script_of_jobgen_becomes_its_components(launcher: str, tmp_path: Path) -> None:
    words = ("slurm", "--nodes", "1x1+2x8", "--cpus-per-rank", "4", "--launcher", launcher)
    script = jobs.render(*words, program=["./a"])
    done = convert(Script(script.partition("# ======== jobgen runtime")[0].encode(), "slurm"))
    file = decode(done.text, "job.toml")
    assert file["component"] == [
        {"nodes": 1, "ranks_per_node": 1, "gpus_per_node": 1},
        {"nodes": 2, "ranks_per_node": 8, "gpus_per_node": 8},
    ]
    assert file["resources"]["cpus_per_rank"] == 4
    assert "OMPI_MCA_plm" not in done.text
    (tmp_path / "job.toml").write_text(done.text)
    again = jobs.render("slurm", "--job", tmp_path / "job.toml", "--launcher", launcher, program=["./a"])

    def lines(text: str) -> list[str]:
        return [one for one in text.splitlines() if one.startswith(("#SBATCH", "job_components", "  exec"))]

    assert lines(again) == lines(script)


def test_other_steps_of_components_stay_and_devices_are_those_of_their_component() -> None:
    command = "srun --pack-group=1 -n 1 ./prepare\nsrun --pack-group=1 --gres=gpu:4 ./solver"
    text = SCRIPT.format(word="hetjob", command=command).replace("--gpus-per-node=4 ", "")
    file = decode(convert(Script(text.encode(), "slurm")).text, "job.toml")
    assert "srun --pack-group=1 -n 1 ./prepare" in str(file["blocks"])
    assert [one["gpus_per_node"] for one in file["component"]] == [0, 4]
