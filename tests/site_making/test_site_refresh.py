"""``jobgen site refresh`` on recorded outputs: what is read, what wins, and what hostile output cannot do."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sites import CLUSTER, NODES, PARTITIONS, PBSNODES, QSTAT, jobgen, slurm_nodes

from jobgen import JobgenError, JobSpec
from jobgen.plan.plan import resolve
from jobgen.schedulers import pbs_cluster, slurm_cluster
from jobgen.schedulers.cluster import Facts
from jobgen.site_making.creation import LoginNode
from jobgen.site_making.refresh import differences, text_of
from jobgen.sites.defaults import with_defaults
from jobgen.sites.limits import JobSize, excesses
from jobgen.sites.loader import load
from jobgen.sites.machine import merge
from jobgen.sites.search import machine_file
from jobgen.sites.site_file import Site

# sacctmgr --parsable2 show qos format=...
QOS = """\
Name|Flags|MaxWall|MaxTRES|MinTRES|MaxTRESPU|MaxJobsPU
normal|||||gres/gpu=12|
debug|DenyOnLimit|00:20:00|gres/gpu=8,node=2|node=1|cpu=64,gres/gpu=4|1
long|PartitionTimeLimit|7-00:00:00||||
"""
ROUTES = """\
Queue: prod
    queue_type = Route
    route_destinations = small@server,\n\tlarge,closed
    enabled = True
    started = True

Queue: small
    queue_type = Execution
    from_route_only = True
    resources_max.nodect = 4
    enabled = True
    started = True
    max_run = [u:PBS_GENERIC=2],[u:alice=7]
    max_run_res.ngpus = [u:PBS_GENERIC=12]

Queue: large
    resources_min.nodect = 5
    resources_max.nodect = 9
    enabled = True
    started = True

Queue: closed
    enabled = False

Queue: elsewhere
    queue_type = Route
    route_destinations = small,far@other
    enabled = True
    started = True
"""
SERVER = """\
Server: server
    server_state = Active
    resources_max.walltime = 10:00:00
"""


CAPACITY = slurm_cluster.read(
    slurm_cluster.Answers(
        nodes=slurm_nodes("n", 99, "capacity", Gres="gpu:4"),
        partitions="PartitionName=capacity MaxTime=UNLIMITED MaxNodes=UNLIMITED State=UP TotalNodes=99\n",
    )
)


def read(config: str = "", qos: str = QOS) -> Facts:
    return slurm_cluster.read(slurm_cluster.Answers(config, NODES, PARTITIONS, qos))


def site_of(folder: Path, text: str) -> Site:
    (folder / "one.toml").write_text(text)
    return load(str(folder / "one.toml"))


LOGIN = LoginNode("login1", groups=("users",), user="ada")


def refreshed(site: Site, facts: Facts) -> Site:
    text = text_of(site, facts._replace(commands="the scheduler"), LOGIN)
    return merge(site, "one.machine.toml", text)


def said(site: Site, **settings: object) -> list[str]:
    job = JobSpec("slurm", ["train.py"], **settings)  # type: ignore[arg-type]
    return [*resolve(with_defaults(job, site)).site.warnings]


def test_partitions_and_their_qos() -> None:
    facts = read()
    found = {one.name: one for one in facts.queues}
    assert (found["gpu"].most_nodes, found["gpu"].shared, found["gpu"].enabled) == (14, False, True)
    debug = found["debug"]
    assert (debug.walltime, debug.most_nodes, debug.max_jobs, debug.max_gpus) == (1200, 2, 1, 4)
    assert (debug.shared, found["cpu"].enabled, found["cpu"].shared) == (True, False, True)
    assert [one.name for one in facts.qos] == ["normal", "debug", "long"]
    linear = "SelectType = select/linear\n"
    assert [one.shared for one in read(config=linear).queues] == [False, False, True]


def test_the_qos_of_a_job_may_replace_that_of_its_partition() -> None:
    facts = read(qos=QOS.replace("DenyOnLimit", "OverPartQOS"))
    assert [one.walltime for one in facts.queues if one.name == "debug"] == [1800]


def test_routing_queues_of_pbs() -> None:
    found = {one.name: one for one in pbs_cluster.read(ROUTES, PBSNODES, SERVER).queues}
    assert (found["prod"].routes_to, found["prod"].most_nodes) == (("small", "large"), None)
    assert found["elsewhere"].routes_to == ()
    small = found["small"]
    assert (small.enabled, small.max_jobs, small.max_gpus, small.walltime) == (False, 2, 12, 36000)
    assert (found["large"].enabled, found["closed"].enabled) == (True, False)


def test_what_the_machine_said_wins_and_refuses(tmp_path: Path) -> None:
    text = 'title = "T"\nscheduler = "slurm"\n[node]\ncores = 56\n[resources]\naccelerator = "cpu"\n[job]\nqueue = "gpu"\n'
    old = '[queues.gpu]\nnodes = [1, 4]\nwalltime = "2h"\nshared = true\n[queues.gone]\nabout = "x"\n'
    site = site_of(tmp_path, text + old)
    assert "takes 1 to 4 nodes" in said(site, nodes=9)[0]
    new = refreshed(site, read())
    gpu = new.queues["gpu"]
    assert (gpu.nodes, gpu.walltime, gpu.shared) == ((1, 14), "24:00:00", False)
    assert new.node("gpu").cores == 56  # the file knows what a job can request
    assert said(new, nodes=9, walltime="20h") == []
    for settings, sentence in (
        ({"nodes": 15}, "nodes = 15 (Python): queue gpu of T takes 1 to 14 nodes; no queue accepts it"),
        ({"queue": "gone"}, "queue = gone (Python): T has no such queue: use gpu or debug"),
        ({"queue": "cpu"}, "queue = cpu (Python): queue cpu of T is not enabled; use --queue gpu"),
    ):
        with pytest.raises(JobgenError, match=re.escape(sentence)) as caught:
            said(new, **settings)
        assert re.search(
            r"\(the scheduler on 20..-..-..; jobgen site refresh asks again\)$", str(caught.value)
        )
    assert "takes at most 56 cores" in said(new, cpus_per_node=60)[0]
    with pytest.raises(JobgenError, match="takes at most 128 cores a node"):
        said(new, cpus_per_node=129)
    assert "takes at most 00:20:00" in said(new, queue="debug", walltime="1h", qos="long")[0]
    lines = [*differences(site, new)]
    assert lines[0] == 'gpu: nodes = [1, 14], not [1, 4], walltime = "24:00:00", not "2h"'
    assert {"gone: does not exist", "debug: is not in the site file"} <= set(lines)


def test_limits_that_the_machine_does_not_state_stay_warnings(tmp_path: Path) -> None:
    text = CLUSTER + '[queues.debug]\nname = "capacity"\nnodes = [1, 2]\n'
    site = site_of(tmp_path, text)
    new = refreshed(site, CAPACITY)
    assert new.queues["capacity"].walltime == "168h"
    assert "takes at most 168:00:00" in said(new, queue="capacity", walltime="200h", gpus_per_node=1)[0]
    assert "takes 1 to 2 nodes" in said(new, queue="debug", nodes=3)[0]  # its own limits, as of a QoS
    assert not new.queues["prod"].enabled


def test_queues_that_are_closed_to_the_user_stay_so(tmp_path: Path) -> None:
    partitions = PARTITIONS.replace("PartitionName=debug", "PartitionName=debug AllowGroups=staff")
    answers = slurm_cluster.Answers("", NODES, partitions, QOS)
    site = site_of(
        tmp_path, 'title = "One"\nscheduler = "slurm"\n[queues.gpu]\n[queues.debug]\nenabled = false\n'
    )
    queues = refreshed(site, slurm_cluster.read(answers)).queues
    assert (queues["gpu"].enabled, queues["debug"].enabled) == (True, False)


def test_fewer_cores_of_the_site_file_are_fewer_for_each_device(tmp_path: Path) -> None:
    text = 'title = "One"\nscheduler = "slurm"\n[node]\ngpus = 4\ncores = 30\n[queues.gpu]\n'
    nodes = "NodeName=n1 CPUTot=32 Gres=gpu:a100:4 Partitions=gpu\nNodeName=o1 CPUTot=64 Gres=gpu:h100:4 Partitions=new\n"
    partitions = "PartitionName=gpu State=UP\nPartitionName=new State=UP\n"
    site = refreshed(
        site_of(tmp_path, text), slurm_cluster.read(slurm_cluster.Answers("", nodes, partitions))
    )
    assert [(site.node(name).cores, site.node(name).cores_per_gpu) for name in ("gpu", "new")] == [
        (30, 7),
        (64, 16),
    ]


def test_where_a_queue_is_a_qos(tmp_path: Path) -> None:
    site = site_of(tmp_path, 'title = "T"\nscheduler = "slurm"\n[rules]\nqueue = "--qos"\n[queues.debug]\n')
    facts = read()
    new = refreshed(site, facts)
    assert list(new.queues) == ["debug", "normal", "long"]
    assert (new.queues["debug"].nodes, new.queues["debug"].max_jobs) == ((1, 2), 1)
    with pytest.raises(JobgenError, match="lists no QoS, and a queue of this site is one"):
        text_of(site, facts._replace(qos=()), LOGIN)


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path), "PATH": str(tmp_path)}
    done = jobgen("site", "refresh", "polaris", cwd=tmp_path, **env)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("jobgen: site refresh polaris: cannot find qstat on PATH"), done.stderr
    done = jobgen("site", "refresh", cwd=tmp_path, **env)
    assert "no site knows this machine: name one of jobgen site list" in done.stderr
    done = jobgen("site", "refresh", "polarsi", cwd=tmp_path, **env)
    assert "did you mean polaris?" in done.stderr


def test_a_site_that_extends_another_has_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = Path(machine_file("lumi"))
    path.parent.mkdir(parents=True)
    path.write_text('refreshed = 2026-01-02\nscheduler = "slurm"\ncommands = "sinfo"\n[queues.standard-g]\n')
    (tmp_path / "ours.toml").write_text('extends = "lumi"\ntitle = "ours"\n')
    site = load(str(tmp_path / "ours.toml"))
    assert site.machine is not None
    assert site.machine.site.title == "ours"
    shown = jobgen("site", "show", "lumi", cwd=tmp_path).stdout
    assert f"# sinfo on 2026-01-02: {path}\n" in shown
    assert "\nenabled = false  # lumi.machine.toml, line 2\n" in shown
    for text, words in (
        ("refreshed = 1\n", "jobgen site refresh writes it anew"),
        ('refreshed = 2026-01-02\nscheduler = "pbs"\n', "is for pbs, and LUMI has slurm"),
        ('refreshed = 2026-01-02\nscheduler = "slurm"\n[queues.a]\nwalltime = "x"\n', "walltime = x"),
    ):
        path.write_text(text)
        done = jobgen("slurm", "--site", "lumi", "--account", "x", "--", "a.py", cwd=tmp_path)
        assert (done.returncode, words in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr


def test_it_is_written_for_its_owner_to_read(tmp_path: Path) -> None:
    """A refresh of a cluster whose commands are scripts here: what it writes is what jobs are checked by."""
    (tmp_path / "bin").mkdir()
    for name, text in {"node": NODES, "partition": PARTITIONS, "config": "", "qos": QOS, "name=": ""}.items():
        (tmp_path / name).write_text(text)
    script = "for last; do :; done\ncase $* in *show\\ qos*) last=qos ;; *name=*) last=name= ;; esac\n"
    for name in ("scontrol", "sacctmgr"):
        command = tmp_path / "bin" / name
        command.write_text(
            f'#!/bin/sh\n{script}while read -r line; do echo "$line"; done < \'{tmp_path}\'/"$last"\n'
        )
        command.chmod(0o755)
    (tmp_path / "one.toml").write_text('title = "T"\nscheduler = "slurm"\n[queues.gpu]\nnodes = [1, 2]\n')
    env = {"XDG_CONFIG_HOME": str(tmp_path / "home"), "PATH": f"{tmp_path / 'bin'}:/bin"}
    done = jobgen("site", "refresh", "one.toml", cwd=tmp_path, **env)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "home/jobgen/machines/one.machine.toml"
    assert f"{path}: 3 queues of T by scontrol and sacctmgr; jobs beyond them are refused\n" in done.stderr
    assert stat.S_IMODE(path.stat().st_mode) & 0o111 == 0
    found = json.loads(jobgen("site", "show", "one.toml", "--json", cwd=tmp_path, **env).stdout)
    assert found["queues"]["gpu"]["nodes"] == [1, 14]
    done = jobgen("slurm", "--site", "one.toml", "--queue", "gpu", "--nodes", "15", cwd=tmp_path, **env)
    assert (done.returncode, "takes 1 to 14 nodes" in done.stderr) == (2, True)


words = st.sampled_from(
    [
        *"|=,:@*\n\t \"'[]{}\\\0\x1b\u2028",
        *re.split(r"(\s)", NODES[:600]),
        *re.split(r"(\s)", PARTITIONS),
        *QOS.split("|"),
        *re.split(r"( = |\n)", ROUTES + QSTAT + PBSNODES + SERVER),
        "9" * 30,
        "-1",
        "resources_max.walltime = 999999999:00:00",
        "route_destinations = prod",
    ]
)
hostile = st.lists(words | st.text(max_size=5), max_size=60).map("".join)
PBS = 'title = "T"\nscheduler = "pbs"\n[queues.prod]\nnodes = [1, 2]\n'
SLURM = PBS.replace("pbs", "slurm")


@given(st.tuples(hostile, hostile, hostile), st.booleans())
def test_no_output_of_a_scheduler_makes_a_bad_file(texts: tuple[str, str, str], pbs: bool) -> None:
    facts = pbs_cluster.read(*texts) if pbs else slurm_cluster.read(slurm_cluster.Answers(*texts))
    site = BASE["pbs" if pbs else "slurm"]
    why = ""
    try:
        new = refreshed(site, facts)
    except JobgenError as error:
        why = str(error)
    if why:
        assert "lists no queue" in why or "leads back to the queue" in why
        return
    assert new.machine is not None
    for name in new.machine.site.queues:
        assert re.fullmatch(r"[A-Za-z0-9][\w.+:@,/-]*", name, re.ASCII)
        excesses(new, name, JobSize(1, 60, 0, 1, 1))


@pytest.fixture(scope="module", autouse=True)
def _base(tmp_path_factory: pytest.TempPathFactory) -> None:
    for name, text in (("pbs", PBS), ("slurm", SLURM)):
        BASE[name] = site_of(tmp_path_factory.mktemp(name), text)


BASE: dict[str, Site] = {}
