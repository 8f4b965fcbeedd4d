"""Components: what each has for itself, and what of the job is refused beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.jobfile.reader import decode, layer_of
from jobgen.plan.plan import Plan, resolve
from jobgen.rendering.render import render
from jobgen.script.script import Script


def planned(tables: Sequence[Mapping[str, object]], text: str = "", **options: str | list[str]) -> Plan:
    """The plan of a job file with these components."""
    text += "".join(
        "\n[[component]]\n" + "".join(f"{key} = {one!r}\n" for key, one in table.items()) for table in tables
    )
    layer = layer_of(decode(text, "job.toml"), ("./a",), lambda place: "job.toml, line 1")
    scheduler = str(options.pop("scheduler", "slurm"))
    launcher = "srun" if scheduler == "slurm" else "mpirun"
    return resolve(read_spec(scheduler, {"launcher": launcher, **options}, (), layer))


def value(expression: str, rank: int) -> int:
    """What bash makes of ``$((RANK < 1 ? 4 : 8))``, or of a number."""
    for end, found in re.findall(r"\w+ < (\d+) \? (\d+) :", expression):
        if rank < int(end):
            return int(found)
    return int(re.findall(r"(\d+)\)*$", expression)[0])


COMPONENTS = st.lists(st.tuples(*(st.integers(1, 9) for _ in range(3))), min_size=2, max_size=5)


@settings(deadline=None, max_examples=30)
@given(COMPONENTS)
def test_the_numbers_of_all_components_agree(groups: list[tuple[int, int, int]]) -> None:
    tables = [
        {"nodes": nodes, "ranks_per_node": ranks, "cpus_per_rank": cores} for nodes, ranks, cores in groups
    ]
    plan = planned(tables, accelerator="cpu")
    world = [(ranks, cores) for nodes, ranks, cores in groups for _ in range(nodes * ranks)]
    assert plan.resources.active.world_size == len(world)
    text = render(plan)
    script = Script(text.encode(), "slurm")
    requests = [(one.nodes, one.ranks_per_node, one.cpus_per_rank) for one in script.requests]
    assert requests == groups
    parts = re.findall(
        r"--het-group=(\d+) --nodes=(\d+) --ntasks=(\d+) --ntasks-per-node=(\d+) --cpus-per-task=(\d+)", text
    )
    assert parts == [
        tuple(map(str, (at, nodes, nodes * ranks, ranks, cores)))
        for at, (nodes, ranks, cores) in enumerate(groups)
    ]
    size = re.findall(r"LOCAL_WORLD_SIZE=(.*)", text)[0]
    threads = re.findall(r"OMP_NUM_THREADS=(.*)", text)[-1]
    assert [(value(size, rank), value(threads, rank)) for rank in range(len(world))] == world


def test_a_component_has_what_the_job_has_unless_it_says_otherwise() -> None:
    tables = [{"nodes": 1, "gpus_per_node": 0, "ranks_per_node": 2}, {"gpus_per_node": "a100:4", "mem": "8G"}]
    text = '[job]\nqueue = "q"\n[resources]\nmem = "4G"\ncpus_per_rank = 3'
    plan = planned(tables, text=text)
    first, second = plan.components
    assert (first.resources.accelerator_name, first.resources.memory, first.spec.queue) == ("cpu", "4G", "q")
    assert (second.resources.ranks_per_node, second.resources.memory) == (4, "8G")
    assert plan.resources.accelerator_name == "cuda"
    assert plan.survival.preflight is None  # the ranks of the first component have no device
    lines = [one for one in render(plan).splitlines() if one.startswith("#SBATCH")]
    behind = lines[lines.index("#SBATCH hetjob") + 1 :]
    assert behind == [
        *("#SBATCH --nodes=1", "#SBATCH --ntasks-per-node=4", "#SBATCH --cpus-per-task=3"),
        *("#SBATCH --gpus-per-node=a100:4", "#SBATCH --mem=8G", "#SBATCH --time=01:00:00"),
        "#SBATCH --partition=q",
    ]


TWO = [{"ranks_per_node": 1}, {"ranks_per_node": 2}]
REFUSED = [
    (TWO, {"nodes": "3"}, "each [[component]] (job.toml, line 1) has its own nodes; leave out one of the two"),
    (TWO, {"ranks": "3"}, "has its own ranks; leave out one of the two"),
    (TWO, {"ranks_per_node": "4"}, "--ranks-per-node 4 (command line): each [[component]] (job.toml, line 1) has its own ranks_per_node; leave out one of the two"),
    ([{"gpus_per_node": 1}, {"gpus_per_node": 0}], {"gpus_per_node": "3"}, "has its own gpus_per_node; leave out one of the two"),
    (TWO, {"launcher": "colossalai"}, "--launcher colossalai (command line): colossalai supports only equal nodes; use deepspeed, mpirun, torchrun, srun or accelerate"),
    (TWO, {"launcher": "deepspeed", "remote": "ssh"}, "pdsh finds the devices of the first component only"),
    (TWO, {"array": "0-3"}, "--array 0-3 (command line): Slurm refuses arrays of heterogeneous jobs"),
    (TWO, {"spare_nodes": "1"}, "a spare node cannot replace every node of [[component]]"),
    (TWO, {"launcher": "mpirun", "mpi": "intel"}, "use openmpi or mpich"),
    (TWO, {"launcher": "none"}, "ranks_per_node = 2 (job.toml, line 1, [[component]] 2): --launcher none starts one process"),
    ([], {"nodes": "1x1+2x8", "launcher": "none"}, "--nodes 1x1+2x8 (command line): has several ranks, and --launcher none starts one process"),
    ([], {"nodes": "1x1+2x8", "launcher": "none", "scheduler": "pbs"}, "--nodes 1x1+2x8 (command line): has several ranks"),
    (TWO, {"scheduler": "local"}, "nodes = 1+1 (job.toml, line 1): a local run has only this node"),
    (TWO, {"directive": ["--gres=gpu:2"]}, "requests its nodes; set the keys of the component"),
    (TWO, {"env": ["A=b\n\nc"]}, "has an empty line, which sbatch takes out"),
    ([{"queue": "a"}, {}], {}, "queue (job.toml, line 1, [[component]] 2): Slurm gives it the queue of the component before"),
    ([{}, {"queue": "a"}], {"scheduler": "pbs"}, "queue = a (job.toml, line 1, [[component]] 2): a job of PBS is in one queue"),
    ([{"cpus_per_rank": 2}, {}], {"scheduler": "pbs", "dialect": "torque"}, "has a line for each core"),
    ([{"gpus_per_node": 2, "ranks_per_node": 4}, {}], {"accelerator": "cuda"}, "ranks_per_node = 4 (job.toml, line 1, [[component]] 1): 4 ranks do not fit 2 accelerators"),
    ([{"gpus_per_node": 0}, {}], {"preflight": "yes"}, "the preflight needs devices in each component"),
    ([{"nodes": 0}, {}], {}, "nodes = 0 (job.toml, line 1, [[component]] 1): must be"),
    ([{"node": 1}, {}], {}, "a component has no such key: use nodes,"),
    ([{}], {}, "must be two tables [[component]] or more"),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "options", "why"), REFUSED)
def test_what_components_cannot_have_is_refused_by_name(
    tables: list[dict[str, object]], options: dict[str, str | list[str]], why: str
) -> None:
    with pytest.raises(JobgenError) as refused:
        planned(tables, **options)
    assert why in str(refused.value)
