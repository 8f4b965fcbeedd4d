"""Packed arrays: the tasks that the points become, and what is refused with its arithmetic."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render
from jobgen.runs.packs import PackedTask
from jobgen.schedulers.jobs import Job
from jobgen.values import arrays


def script(scheduler: str = "slurm", **options: Any) -> str:
    words = {key: value if isinstance(value, list) else str(value) for key, value in options.items()}
    return render(resolve(read_spec(scheduler, words, ("train.py",))))


TASKS = [
    ({"array": "0-39", "pack": 4}, "slurm", "#SBATCH --array=0-9"),
    ({"array": "0-39%8", "pack": 4}, "slurm", "#SBATCH --array=0-9%2"),
    ({"array": "0-9", "pack": 4}, "slurm", "#SBATCH --array=0-2"),
    ({"array": "1,5,7", "pack": 4}, "slurm", "#SBATCH --array=0"),
    ({"array": "1,5,7", "pack": 2}, "pbs", "#PBS -J 0-1"),
    ({"array": "1,5,7", "pack": 4}, "pbs", "#PBS -J 0-1:2"),
    ({"array": "0-9:3", "pack": 2, "dialect": "torque"}, "pbs", "#PBS -t 0-1"),
]


@pytest.mark.parametrize(("options", "scheduler", "directive"), TASKS)
def test_tasks_for_points(options: dict[str, Any], scheduler: str, directive: str) -> None:
    text = script(scheduler, gpus_per_node=4, **options)
    assert f"\n{directive}\n" in text
    points = re.search(r"^job_points='?([^'\n]+)", text, re.MULTILINE)
    assert points
    assert points[1] == options["array"].partition("%")[0]


PARTS = [
    ({"gpus_per_node": 8, "cpus_per_node": 16}, 4, ["'0,1' '2,3' '4,5' '6,7'", "0-3 4-7 8-11 12-15"]),
    ({"nodes": 2, "gpus_per_node": 2, "cpus_per_node": 4}, 4, ["0 1", "0-1 2-3"]),
    ({"nodes": 4, "gpus_per_node": 2, "cpus_per_node": 4}, 2, []),
    ({"accelerator": "cpu", "cpus_per_node": 4, "launcher": "none"}, 2, ["0-1 2-3"]),
    ({"ranks": 8, "gpus_per_node": 4, "cpus_per_node": 4}, 2, []),
]


@pytest.mark.parametrize(("options", "size", "parts"), PARTS)
def test_the_part_of_each_point(options: dict[str, Any], size: int, parts: list[str]) -> None:
    text = script(array="0-9", pack=size, **options)
    assert re.findall(r"^job_pack_(?:devices|cores)=\((.*)\)", text, re.MULTILINE) == parts
    nodes = max(1, options.get("nodes", options.get("ranks", 4) // 4) // size)
    assert f"\njob_nodes={nodes}\n" in text


MISTAKES = [
    (
        {"gpus_per_node": 8},
        3,
        "8 GPUs of a node / 3 points is no whole number of GPUs; use --pack 2 or 4",
    ),
    (
        {"accelerator": "cpu", "launcher": "none", "cpus_per_node": 6},
        4,
        "6 cores of a node / 4 points is no whole number of cores; use --pack 3 or 6",
    ),
    (
        {"gpus_per_node": 8, "ranks_per_node": 2},
        4,
        "2 ranks of a node / 4 points is no whole number of ranks; use --pack 2, or --ranks-per-node 4",
    ),
    ({"nodes": 3, "gpus_per_node": 2}, 4, "4 points / 3 nodes is no whole number of points a node; use "),
    ({"nodes": 4}, 3, "4 nodes / 3 points is no whole number of nodes; use --pack 2 or 4"),
    ({"array": "0-9%6", "gpus_per_node": 4}, 4, "6 / 4 is no whole number of tasks; use %4 or %8"),
    ({"array": None}, 4, "add --array, or a sweep"),
    (
        {"nodes": 4, "launcher": "none"},
        2,
        "on the first node of the job only, and --pack has points on others",
    ),
    (
        {"nodes": 2, "spare_nodes": 1, "launcher": "srun"},
        2,
        "--spare-nodes 1 (command line): is for one program",
    ),
    ({"gpus_per_node": 4, "master_port": 29500, "launcher": "srun"}, 4, "is one port"),
    (
        {"gpus_per_node": 4, "env": ["CUDA_VISIBLE_DEVICES=0"]},
        4,
        "CUDA_VISIBLE_DEVICES would replace the devices of each point; leave it out",
    ),
    ({"gpus_per_node": 4, "after": ["aftercorr:12"]}, 4, "use afterok or afterany"),
    ({"nodes": "2x4+1x8", "launcher": "srun"}, 4, "need a number of equal nodes"),
    (
        {"nodes": 4, "min_nodes": 3, "restarts": 1, "launcher": "srun"},
        2,
        "--min-nodes 3 (command line): must be less than the nodes of a point, which has 2",
    ),
    ({"ranks": 12, "gpus_per_node": 8, "launcher": "srun"}, 2, "--ranks 12 (command line)"),
    ({"ranks": 2, "gpus_per_node": 4, "launcher": "srun"}, 4, "; use --pack 2, or --ranks 4"),
    ({"ranks": 4, "nodes": 2, "gpus_per_node": 8}, 8, "; use --pack 4, or --ranks 8"),
    ({"gpus_per_node": 4, "stage": ["data.tar"]}, 4, "--stage data.tar (command line): is once a node"),
]


@pytest.mark.parametrize(("options", "size", "message"), MISTAKES)
def test_a_refusal_has_the_arithmetic(options: dict[str, Any], size: int, message: str) -> None:
    given = {"array": "0-9", "pack": size, **options}
    with pytest.raises(JobgenError) as caught:
        script(**{key: value for key, value in given.items() if value is not None})
    assert message in str(caught.value)


def test_tasks_of_the_scheduler_are_points() -> None:
    array = arrays.read("1,5,7-9")
    assert array
    jobs = [Job("12_0", "running", task="0"), Job("12_1", "pending", task="1"), Job("12", "pending")]
    found = [(job.state, job.task) for job in PackedTask(3, array).by_point(jobs)]
    assert found == [
        *(("running", task) for task in ("1", "5", "7")),
        *(("pending", task) for task in ("8", "9")),
        ("pending", None),
    ]
