"""``jobgen site new`` from what schedulers print, and whether the defaults of a site make a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sites import LOADED, NODES, PARTITIONS, PBSNODES, QSTAT, SHIPPED, slurm_nodes, spec

from jobgen import JobgenError, render
from jobgen.plan.plan import resolve
from jobgen.schedulers import pbs_cluster, slurm_cluster
from jobgen.schedulers.cluster import Facts
from jobgen.schedulers.table import SCHEDULERS, scheduler_of
from jobgen.site_making.creation import LoginNode, site_file, taking_jobs, without_reservations
from jobgen.site_making.host_facts import modules_in
from jobgen.site_making.validation import try_defaults
from jobgen.sites import loader
from jobgen.sites.site_file import Site
from jobgen.sites.sources import confidence
from jobgen.values.devices import TYPE, DeviceCount, Devices

# pbsnodes -a of Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/pbsnodes.htm
TORQUE_NODES = """\
node01
     state = free
     np = 16
     ntype = cluster
     status = rectime=1328,ncpus=16,physmem=65946948kb,availmem=123kb,opsys=linux
     gpus = 1
"""


LOGIN = LoginNode("login01", "department")


def written(scheduler: str, facts: Facts, tmp_path: Path, host: LoginNode = LOGIN) -> Site:
    facts = taking_jobs(without_reservations(SCHEDULERS[scheduler], facts))
    (tmp_path / "new.toml").write_text(site_file(SCHEDULERS[scheduler], facts, host))
    return loader.load("new", beside=str(tmp_path))


def directives(job: str, folder: Path) -> list[str]:
    return [line[8:] for line in render(spec(job, folder)).splitlines() if line.startswith("#SBATCH")]


def slurm(tmp_path: Path, nodes: str, partitions: str = "", config: str = "", **more: str) -> Site:
    """Return the site of a cluster with these nodes; its partition is called all if there are no others."""
    text = partitions or "PartitionName=all Default=YES State=UP MaxTime=UNLIMITED TotalNodes=99\n"
    return written("slurm", slurm_cluster.read(slurm_cluster.Answers(config, nodes, text, **more)), tmp_path)


def test_new_of_slurm(tmp_path: Path) -> None:
    site = slurm(tmp_path, NODES, PARTITIONS)
    assert (site.values["queue"], site.file.detect.clusters, site.file.detect.hosts) == (
        "gpu",
        ("department",),
        (),
    )
    assert site.queues["gpu"].nodes == (1, 14)
    assert site.queues["debug"].walltime == "00:30:00"
    assert site.queues["debug"].devices == {"a100": 4}
    assert "cpu" not in site.queues  # it is drained
    assert confidence(site, "queues") == "machine"
    lines = directives("slurm new nodes=2", tmp_path)
    assert {"--gpus-per-node=4", "--ntasks-per-node=4", "--cpus-per-task=16"} <= {*lines}
    with pytest.raises(JobgenError, match="takes 1 to 14 nodes"):
        render(spec("slurm new nodes=15", tmp_path))


TYPES = (
    "2080ti",
    "3090",
    "6000ada",
    "nvidia_a100-sxm4-40gb",
    "h100-80",
    "a100.80gb",
    "a100_3g.20gb",
    "1g.10gb",
)


@pytest.mark.parametrize("kind", TYPES)
def test_a_type_is_any_word(tmp_path: Path, kind: str) -> None:
    site = slurm(tmp_path, slurm_nodes("n", 3, "all", Gres=f"gpu:{kind}:no_consume:4(S:0-1)"))
    assert site.queues["all"].devices == {kind: 4}
    lines = directives(f"slurm new gpus_per_node={kind}:4", tmp_path)
    assert f"--gpus-per-node={kind}:4" in lines or f"--gres=gpu:{kind}:4" in lines


@given(st.from_regex(TYPE, fullmatch=True, alphabet=st.characters(max_codepoint=127)), st.integers(1, 16))
def test_types_that_slurm_accepts_are_read_as_they_are(kind: str, number: int) -> None:
    nodes = slurm_nodes("n", 1, "all", Gres=f"gpu:{kind}:{number}(S:0-1)")
    facts = slurm_cluster.read(slurm_cluster.Answers(nodes=nodes, partitions="PartitionName=all State=UP\n"))
    assert facts.queues[0].kinds[0].devices == ((kind, number),)
    assert DeviceCount(0)(f"{kind}:{number}") == Devices(number, kind)


MIXED = slurm_nodes("t", 8, "all", Gres="gpu:2080ti:8", CPUTot=48, RealMemory=380000) + slurm_nodes(
    "a", 4, "all", Gres="gpu:a100:4", CPUTot=128, RealMemory=1030000, AvailableFeatures="nvlink,ib"
)


def test_a_queue_has_kinds_of_nodes(tmp_path: Path) -> None:
    site = slurm(tmp_path, MIXED + slurm_nodes("c", 20, "all", CPUTot=128, RealMemory=257000))
    kinds = site.queues["all"].kinds
    assert {name: (one.count, one.devices, one.cores) for name, one in kinds.items()} == {
        "cpu": (20, None, 128),
        "2080ti": (8, {"2080ti": 8}, 48),
        "a100": (4, {"a100": 4}, 128),
    }
    for job, lines in (
        ("slurm new nodes=2", {"--gpus-per-node=2080ti:8", "--ntasks-per-node=8", "--cpus-per-task=6"}),
        ("slurm new nodes=2 gpus_per_node=4", {"--gpus-per-node=2080ti:4", "--cpus-per-task=6"}),
        ("slurm new nodes=2 gpus_per_node=a100:4", {"--gpus-per-node=a100:4", "--cpus-per-task=32"}),
        ("slurm new nodes=2 constraint=nvlink", {"--gpus-per-node=a100:4", "--constraint=nvlink"}),
        ("slurm new gpus_per_node=4 cpus_per_rank=20", {"--gpus-per-node=a100:4", "--cpus-per-task=20"}),
        ("slurm new gpus_per_node=4 mem=600G", {"--gpus-per-node=a100:4", "--mem=600G"}),
        ("slurm new nodes=12 accelerator=cpu ranks_per_node=4", {"--nodes=12", "--cpus-per-task=32"}),
    ):
        found = directives(job, tmp_path)
        assert lines <= {*found}, (job, found)
    assert "# Nodes: 8 nodes with 8 x 2080ti, 48 cores, 380000M\n" in render(spec("slurm new", tmp_path))
    assert resolve(spec("slurm new", tmp_path)).site.notes == (
        "queue all of cluster: the job gets 8 nodes with 8 x 2080ti, 48 cores, 380000M; --gpus-per-node TYPE:N "
        "or --constraint chooses others: 4 nodes with 4 x a100, 128 cores, 1030000M, features nvlink,ib",
    )


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("gpus_per_node=16", ["at most 8 accelerators", "8 x 2080ti, 48 cores", "4 x a100, 128 cores"]),
        ("gpus_per_node=a100:8", ["at most 4 x a100 a node", "8 nodes with 8 x 2080ti"]),
        ("gpus_per_node=v100:1", ["no devices of the type v100"]),
        ("gpus_per_node=8 cpus_per_rank=8", ["at most 48 cores"]),
        ("gpus_per_node=a100:4 nodes=5", ["at most 4 nodes with 4 x a100"]),
        ("gpus_per_node=2080ti:1 constraint=nvlink", ["constraint"]),
    ],
)
def test_what_no_kind_can_take_is_refused(tmp_path: Path, job: str, words: list[str]) -> None:
    slurm(tmp_path, MIXED)
    with pytest.raises(JobgenError) as caught:
        render(spec(f"slurm new {job}", tmp_path))
    assert all(word in str(caught.value) for word in words), caught.value
    assert "the scheduler of this machine of" in str(caught.value)


def test_shards_and_mig_devices(tmp_path: Path) -> None:
    slurm(tmp_path, slurm_nodes("n", 2, "all", Gres="gpu:a100:4(S:0),shard:a100:16(S:0)"))
    job = spec("slurm new gpus_per_node=shard:4", tmp_path)
    lines = render(job).splitlines()
    assert {"#SBATCH --gres=shard:4", "#SBATCH --ntasks-per-node=1"} <= {*lines}
    with pytest.raises(JobgenError, match="at most 16 x shard"):
        render(spec("slurm new gpus_per_node=shard:17", tmp_path))
    slurm(tmp_path, slurm_nodes("n", 2, "all", Gres="gpu:1g.10gb:7"))
    assert (
        "uses only one MIG device" in resolve(spec("slurm new gpus_per_node=1g.10gb:2", tmp_path)).warnings[0]
    )
    assert resolve(spec("slurm new gpus_per_node=1g.10gb:1", tmp_path)).warnings == ()


QUEUES = """\
PartitionName=batch Default=YES State=UP MaxTime=1-00:00:00 TotalNodes=40 DefMemPerCPU=1000 MaxMemPerNode=UNLIMITED
PartitionName=gpu State=UP MaxTime=1-00:00:00 TotalNodes=4 AllowAccounts=vision JobDefaults=DefMemPerGPU=2048 QoS=gpu
PartitionName=staff State=UP AllowGroups=staff TotalNodes=4
PartitionName=half State=UP MaxTime=60 MaxCPUsPerNode=32 TotalNodes=4 DefMemPerNode=4000
"""
QOS = "Name|Flags|MaxWall|MaxTRES|MinTRES|MaxTRESPU|MaxJobsPU\ngpu|DenyOnLimit||cpu=512|gres/gpu=2||\n"
SHARING = slurm_nodes("b", 40, "batch", CPUTot=64, RealMemory=256000) + slurm_nodes(
    "g",
    4,
    "gpu,staff,half",
    CPUTot=64,
    RealMemory=512000,
    Gres="gpu:4",
    ThreadsPerCore=2,
    Sockets=2,
    CoresPerSocket=16,
)


def test_limits_of_partitions(tmp_path: Path) -> None:
    host = LOGIN._replace(groups=("users",))
    answers = slurm_cluster.Answers(
        "", SHARING, QUEUES, QOS, "physics|physics|normal|normal\nphysics|vision||gpu\n"
    )
    site = written("slurm", slurm_cluster.read(answers), tmp_path, host)
    assert (site.values["queue"], site.file.rules.cpu_queue) == ("gpu", "batch")
    assert (site.queues["gpu"].options, site.queues["gpu"].accounts) == ({"account": "vision"}, ("vision",))
    assert (site.queues["staff"].enabled, site.queues["half"].cores) == (False, 32)
    lines = {*directives("slurm new", tmp_path)}
    assert {"--partition=gpu", "--account=vision", "--mem=500G"} <= lines
    lines = {*directives("slurm new accelerator=cpu ranks_per_node=8", tmp_path)}
    assert {"--partition=batch", "--mem=256000M"} <= lines or {"--partition=batch", "--mem=250G"} <= lines
    assert not any("gpu" in line or "account" in line for line in lines)
    for job, words in (
        ("gpus_per_node=1", "takes at least 2 accelerators a job, and this one has 1"),
        ("account=physics", "takes the account vision"),
        ("nodes=4 cpus_per_node=64 queue=half", "takes at most 32 cores a node"),
    ):
        with pytest.raises(JobgenError, match=words):
            render(spec(f"slurm new {job}", tmp_path))


APART = slurm_nodes("c", 20, "cpu", CPUTot=96) + MIXED.replace("Partitions=all", "Partitions=gpu")
PARTS = "".join(
    f"PartitionName={name} State=UP MaxTime=60 TotalNodes=20 {more}\n"
    for name, more in (("cpu", ""), ("gpu", "Default=YES"), ("debug", "QoS=debug AllowAccounts=staff"))
)


@pytest.mark.parametrize(
    ("job", "remedy"),
    [
        ("nodes=2 gpus_per_node=h100:4", "gpu would with --gpus-per-node 2080ti:8 ("),
        ("gpus_per_node=16", "gpu would with --gpus-per-node 8 ("),
        ("nodes=9 gpus_per_node=2080ti:8", "gpu would with --nodes 8 ("),
    ],
)
def test_a_refusal_names_a_queue_with_devices(tmp_path: Path, job: str, remedy: str) -> None:
    slurm(tmp_path, APART, PARTS, accounts="physics|physics||\n")
    with pytest.raises(JobgenError) as caught:
        render(spec(f"slurm new {job}", tmp_path))
    assert f"no queue accepts it, but {remedy}" in str(caught.value)


def test_devices_in_a_queue_for_cpus_name_a_queue_that_has_them(tmp_path: Path) -> None:
    slurm(tmp_path, APART, PARTS, accounts="physics|physics||\n")
    with pytest.raises(JobgenError, match="cpu of cluster takes no jobs with accelerators.*use --queue gpu"):
        render(spec("slurm new queue=cpu gpus_per_node=4", tmp_path))


def test_cores_of_a_closed_queue_are_no_demand_of_others(tmp_path: Path) -> None:
    nodes = slurm_nodes("d", 4, "debug", CPUTot=128, Gres="gpu:a100:4")
    slurm(tmp_path, APART + nodes, PARTS, accounts="physics|physics||\n")
    with pytest.raises(JobgenError, match="debug of cluster is not enabled .*; use --queue gpu"):
        render(spec("slurm new queue=debug", tmp_path))


def test_default_cores_are_within_those_of_a_job(tmp_path: Path) -> None:
    nodes = slurm_nodes("d", 4, "debug", CPUTot=128)
    slurm(tmp_path, nodes, PARTS, qos="Name|Flags|MaxTRES\ndebug||cpu=16\n")
    assert "--cpus-per-task=16" in directives("slurm new queue=debug", tmp_path)
    assert "--cpus-per-task=8" in directives("slurm new queue=debug nodes=2", tmp_path)


def test_a_queue_that_gives_no_devices_is_one_for_cpus(tmp_path: Path) -> None:
    nodes = MIXED.replace("Partitions=all", "Partitions=gpu,debug")
    site = slurm(tmp_path, nodes, PARTS, qos="Name|Flags|MaxTRES\ndebug||gres/gpu=0\n")
    assert {one.gpus for one in site.queues["debug"].kinds.values()} == {0}
    queues = CHUNKS.replace(
        "resources_max.ngpus = 8", "resources_max.ngpus = 0\n    resources_max.mem = 100gb"
    )
    facts = pbs_cluster.read(queues, VNODES)
    assert [(kind.devices, kind.memory) for kind in facts.queues[0].kinds] == [((), 102400)] * 2


def test_nodes_with_other_devices_are_no_nodes_for_cpus(tmp_path: Path) -> None:
    npus = slurm_nodes("n", 2, "debug", CPUTot=192, Gres="npu:910b:8")
    nodes = MIXED.replace("Partitions=all", "Partitions=gpu")
    facts = slurm_cluster.read(slurm_cluster.Answers(nodes=nodes + npus, partitions=PARTS))
    assert [one.name for one in facts.queues] == ["cpu", "gpu"]
    assert facts.unread == (
        "scontrol --all --oneliner show node: most nodes have gpu: those with Gres=npu:910b:8 are left out",
    )


def test_an_old_selection_of_nodes_has_gres_alone(tmp_path: Path) -> None:
    nodes = slurm_nodes("n", 2, "all", Gres="gpu:4")
    slurm(tmp_path, nodes, config="SelectType = select/linear\nClusterName = old\n")
    assert "--gres=gpu:4" in directives("slurm new", tmp_path)
    assert not any("gres" in line for line in directives("slurm new accelerator=cpu", tmp_path))


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    nodes = slurm_nodes("n", 2, "all", Gres="gpu:a:b:4,gpu:v100:2")
    facts = slurm_cluster.read(slurm_cluster.Answers(nodes=nodes, partitions="PartitionName=all State=UP\n"))
    command = "scontrol --all --oneliner show node"
    assert facts.unread == (f"{command}: Gres=gpu:a:b:4 cannot be read, and is left out",)
    assert facts.queues[0].kinds[0].devices == (("v100", 2),)
    nodes = slurm_nodes("n", 1, "all", CPUTot="many") + "Segmentation fault\n"
    facts = slurm_cluster.read(
        slurm_cluster.Answers(nodes=nodes, partitions="PartitionName=all MaxTime=long\n")
    )
    assert [text.removeprefix(f"{command}: ").partition(" ")[0] for text in facts.unread] == [
        "'Segmentation",
        "CPUTot=many",
        "scontrol",
    ]
    assert (facts.queues[0].kinds[0].cores, facts.queues[0].walltime) == (None, None)
    facts = pbs_cluster.read(QSTAT, PBSNODES.replace("ncpus = 64", "ncpus = x"))
    assert facts.unread == ("pbsnodes -a: resources_available.ncpus=x cannot be read, and is left out",)


def test_new_of_pbs(tmp_path: Path) -> None:
    site = written("pbspro", pbs_cluster.read(QSTAT, PBSNODES), tmp_path)
    assert list(site.queues) == ["workq"]
    assert (site.queues["workq"].nodes, site.queues["workq"].walltime) == ((2, 16), "24:00:00")
    kinds = site.queues["workq"].kinds
    assert [(one.count, one.gpus, one.cores) for one in kinds.values()] == [(1, 4, 64), (1, 0, 32)]


VNODES = """\
g01
     resources_available.host = g01
     resources_available.ncpus = 0
     resources_available.Qlist = gpuq

g01[0]
     resources_available.host = g01
     resources_available.mem = 256gb
     resources_available.ncpus = 32
     resources_available.ngpus = 2
     resources_available.gpu_type = a100
     resources_available.Qlist = gpuq

g01[1]
     resources_available.host = g01
     resources_available.mem = 256gb
     resources_available.ncpus = 32
     resources_available.ngpus = 2
     resources_available.gpu_type = a100
     resources_available.Qlist = gpuq

g02
     resources_available.mem = 128gb
     resources_available.ncpus = 24
     resources_available.ngpus = 8
     resources_available.gpu_type = v100
     resources_available.Qlist = gpuq

c01
     resources_available.mem = 64gb
     resources_available.ncpus = 16
     resources_available.Qlist = cpuq
"""
CHUNKS = """\
Queue: gpuq
    queue_type = Execution
    default_chunk.Qlist = gpuq
    default_chunk.mem = 2gb
    resources_max.ngpus = 8
    enabled = True
    started = True

Queue: cpuq
    queue_type = Execution
    default_chunk.Qlist = cpuq
    enabled = True
    started = True
"""


def test_vnodes_belong_to_their_host(tmp_path: Path) -> None:
    server = "Server: head\n    server_host = head.example.org\n    default_queue = cpuq\n    pbs_version = 23.06.06\n"
    site = written("pbspro", pbs_cluster.read(CHUNKS, VNODES, server), tmp_path)
    assert (site.values["queue"], site.file.rules.cpu_queue, site.file.rules.gpu_type) == (
        "gpuq",
        "cpuq",
        "gpu_type",
    )
    kinds = site.queues["gpuq"].kinds
    assert {name: (one.count, one.devices, one.cores, one.memory_per_gpu) for name, one in kinds.items()} == {
        "a100": (1, {"a100": 4}, 64, "128G"),
        "v100": (1, {"v100": 8}, 24, "16G"),
    }
    assert (site.queues["cpuq"].nodes, site.queues["cpuq"].cores) == ((1, 1), 16)
    assert "#PBS -l select=1:ncpus=64:mpiprocs=4:ngpus=4:gpu_type=a100:mem=512gb\n" in render(
        spec("pbs new", tmp_path)
    )
    text = render(spec("pbs new accelerator=cpu", tmp_path))
    assert "#PBS -q cpuq\n" in text
    assert "#PBS -l select=1:ncpus=16:mpiprocs=1\n" in text


def test_new_of_torque(tmp_path: Path) -> None:
    queues = QSTAT.replace("resources_max.nodect", "resources_max.nodes")
    site = written("torque", pbs_cluster.read(queues, TORQUE_NODES), tmp_path)
    job = spec("pbs new nodes=1", tmp_path)
    assert scheduler_of(job).name == "torque"
    assert site.queues["workq"].memory == "64401M"
    assert "#PBS -l nodes=1:ppn=16:gpus=1\n" in render(spec("pbs new nodes=1 walltime=1h", tmp_path))


NEEDS = """\
Queue: gpu
    queue_type = Execution
    resources_default.neednodes = k80
    enabled = True
    started = True

Queue: batch
    queue_type = Execution
    enabled = True
    started = True
"""


def test_properties_of_torque_divide_the_nodes(tmp_path: Path) -> None:
    other = TORQUE_NODES.replace("node01", "node02").replace(
        "gpus = 1", "gpus = 4\n     properties = k80,fast"
    )
    site = written("torque", pbs_cluster.read(NEEDS, TORQUE_NODES + "\n" + other), tmp_path)
    assert (site.queues["gpu"].gpus, site.queues["gpu"].features) == (4, ("k80", "fast"))
    assert len(site.queues["batch"].kinds) == 2


def test_modules_of_lmod_and_of_environment_modules() -> None:
    lmod = "/opt/modulefiles:\ncuda/\ncuda/11.8\ncuda/12.4(default)\ncompilers/openmpi/5.0\nMiniforge3/24\n"
    tcl = "/usr/share/modules:\nmodules <L>\nascend-toolkit/8.0 \nnotcuda/1\ncuda/$(touch x)\n"
    found = {what: names for what, names in modules_in(lmod + tcl).items() if names}
    assert found == {
        "CUDA": ("cuda/11.8", "cuda/12.4"),
        "MPI": ("compilers/openmpi/5.0",),
        "conda": ("Miniforge3/24",),
        "CANN": ("ascend-toolkit/8.0",),
    }


@pytest.mark.parametrize("name", SHIPPED)
def test_the_defaults_of_every_shipped_site_make_a_job(name: str) -> None:
    try_defaults(LOADED[name])
