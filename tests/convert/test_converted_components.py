"""Heterogeneous jobs of Slurm and chunks of PBS that differ become each other, or the components of a job file."""

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
    ("srun -n 1 -c 16 ./solver a : -n8 -c8 ./solver a", ""),
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


CHUNKS = """#!/bin/bash
#PBS -l select=1:ncpus=1:mpiprocs=1+2:ncpus=4:mpiprocs=4{more}
#PBS -l place=scatter
set -e
{command}
"""


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        ("mpirun -np 9 ./solver", "mpirun"),
        ("mpirun ./solver", "mpirun"),
        ("accelerate launch --num_machines 3 --num_processes 9 a.py", "accelerate"),
    ],
)
def test_each_chunk_becomes_a_table(command: str, launcher: str) -> None:
    done = convert(Script(CHUNKS.format(command=command, more=":gpu_type=a100").encode(), "pbspro"))
    file = decode(done.text, "job.toml")
    assert file["component"] == [
        {"nodes": 1, "ranks_per_node": 1},
        {"nodes": 2, "ranks_per_node": 4, "constraint": "gpu_type=a100"},
    ]
    assert file["launch"]["launcher"] == launcher
    assert [one for one in done.remarks if one.lost] == []


HETJOB = """#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=1 --time=10{first}
#SBATCH hetjob
#SBATCH --nodes=2 --ntasks-per-node=4 --time=10{second}
{command}
"""


def hetjob(command: str = "srun --het-group=0-1 ./a", first: str = "", second: str = "") -> str:
    return HETJOB.format(command=command, first=first, second=second)


def chunks(command: str = "mpirun ./a", more: str = "") -> str:
    return CHUNKS.format(command=command, more=more)


REFUSED = [
    ("pbspro", hetjob(second=" --partition=x"), "line 4: --partition=x is for component 1 only: PBS Pro has one"),
    ("torque", hetjob(first=" --constraint=x"), "line 2: --constraint=x is for component 0 only: Torque has one"),
    ("torque", hetjob(first=" --mem=1G"), "line 3: the memory of a component has no counterpart: Torque counts"),
    ("torque", hetjob(second=" --cpus-per-task=2"), "line 3: ranks with several cores on nodes that differ"),
    ("pbspro", hetjob("srun ./a"), "line 5: srun starts no rank in component 1"),
    ("pbspro", hetjob("srun --het-group=0 ./a\nsrun --het-group=1 ./a"), "line 5: srun starts no rank in component 1"),
    ("pbspro", hetjob("srun ./a : --het-group=1 ./b"), "line 5: srun starts different programs in the components"),
    ("pbspro", hetjob("srun --het-group=1 ./a : --het-group=0 ./a"), "in another order than that of the job"),
    ("pbspro", hetjob("srun -n1 ./a : -n 4 ./a"), "line 5: srun starts 4 of the 8 ranks of component 1"),
    ("pbspro", hetjob("mpirun ./a"), "line 5: mpirun finds the nodes of the first component only"),
    ("pbspro", hetjob("echo $SLURM_NTASKS"), "line 5: $SLURM_NTASKS is that of one component in a heterogeneous job"),
    ("pbspro", hetjob("scontrol show hostnames"), "line 5: scontrol lists the hosts of the first component only"),
    ("slurm", chunks("mpirun -np 4 ./a"), "line 5: mpirun starts 4 of 9 ranks: only all are translated"),
    ("toml", chunks("mpirun -np 4 ./a"), "line 5: mpirun starts 4 of 9 ranks: only all are translated"),
    ("slurm", chunks("mpirun --map-by ppr:2:node ./a"), "line 5: mpirun places the ranks itself"),
    ("slurm", chunks("mpirun -n 1 ./a : -n 8 ./b"), "line 5: several programs have no counterpart"),
    ("slurm", chunks("echo $NCPUS"), "line 5: $NCPUS is that of one component in a heterogeneous job of Slurm"),
    ("slurm", chunks(more="\n#PBS -J 0-3"), "line 2: has nodes that differ, and Slurm refuses arrays"),
    ("slurm", chunks().replace("mpiprocs=1+", "mpiprocs=1:mem=1gb+"), "line 2: requests the memory of some nodes only"),
    ("slurm", "#PBS -l nodes=1:ppn=2+1:ppn=1\n#PBS -l mem=4gb\n", "line 1: has nodes that differ, and -l mem is"),
    ("pbspro", "#PBS -l nodes=1:ppn=2+1:ppn=1\n#PBS -l vmem=4gb\n", "line 1: has nodes that differ, and -l vmem is"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "text", "why"), REFUSED)
def test_what_has_no_counterpart_is_refused_in_one_sentence(target: str, text: str, why: str) -> None:
    done = jobs.jobgen("convert", "-", "--to", target, stdin=text)
    lines = [one for one in done.stderr.splitlines() if "overrides this" not in one]
    assert (done.returncode, done.stdout, len(lines)) == (2, "", 1), done.stderr
    assert why in lines[0]


def test_other_steps_of_components_stay_and_devices_are_those_of_their_component() -> None:
    command = "srun --pack-group=1 -n 1 ./prepare\nsrun --pack-group=1 --gres=gpu:4 ./solver"
    text = SCRIPT.format(word="hetjob", command=command).replace("--gpus-per-node=4 ", "")
    file = decode(convert(Script(text.encode(), "slurm")).text, "job.toml")
    assert "srun --pack-group=1 -n 1 ./prepare" in str(file["blocks"])
    assert [one["gpus_per_node"] for one in file["component"]] == [0, 4]
