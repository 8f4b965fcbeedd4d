"""Queues of sites: the limits as the pages of the centres have them, read a second time for this table.

Each row: a queue; the most nodes, the longest wall time, the GPUs and the cores of a node, or None where no page
has a number; the directive that selects it. A job with these numbers has no warning, and one more of each has.
"""

from __future__ import annotations

import re

import pytest

from jobgen import render
from jobgen.check.checker import check
from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.launch.launchers import LAUNCHERS
from jobgen.plan.plan import resolve
from jobgen.sites.host_match import reason
from jobgen.sites.loader import load
from jobgen.spec import COMMAND_LINE, SiteName, Specification

QUEUES = {
    # https://docs.cscs.ch/clusters/daint/, the table of partitions
    "daint": [
        ("normal", None, "24:00:00", 4, 288, "--partition=normal"),
        ("debug", 2, "00:30:00", 4, 288, "--partition=debug"),
        ("low", None, "24:00:00", 4, 288, "--partition=low"),
    ],
    # https://docs.cscs.ch/clusters/clariden/, the table of partitions, and 90 node-minutes
    "clariden": [
        ("normal", None, "12:00:00", 4, 288, "--partition=normal"),
        ("debug", 4, "00:22:00", 4, 288, "--partition=debug"),
        ("low", None, "24:00:00", 4, 288, "--partition=low"),
    ],
    # https://docs.hpc.cineca.it/hpc/leonardo.html, the table of partitions
    "leonardo": [
        ("boost_usr_prod", 64, "24:00:00", 4, 32, "--partition=boost_usr_prod"),
        ("boost_qos_dbg", 2, "00:30:00", 4, 32, "--qos=boost_qos_dbg"),
        ("boost_qos_bprod", 256, "24:00:00", 4, 32, "--qos=boost_qos_bprod"),
        ("boost_qos_lprod", 8, "4-00:00:00", 4, 32, "--qos=boost_qos_lprod"),
    ],
    # https://docs.tacc.utexas.edu/hpc/vista/#running, table 4
    "vista": [
        ("gh", 64, "48:00:00", 1, 72, "--partition=gh"),
        ("gh-dev", 8, "02:00:00", 1, 72, "--partition=gh-dev"),
        ("gg", 32, "48:00:00", 0, 144, "--partition=gg"),
    ],
    # https://docs.tacc.utexas.edu/hpc/stampede3/#running, table 8: cores are those of all nodes, divided
    "stampede3": [
        ("h100", 4, "48:00:00", 4, 384 // 4, "--partition=h100"),
        ("icx", 32, "48:00:00", 0, 2560 // 32, "--partition=icx"),
        ("skx", 256, "48:00:00", 0, 12288 // 256, "--partition=skx"),
        ("skx-dev", 16, "02:00:00", 0, 768 // 16, "--partition=skx-dev"),
        ("spr", 32, "48:00:00", 0, 3584 // 32, "--partition=spr"),
    ],
    # https://docs.ncsa.illinois.edu/systems/delta/en/latest/user_guide/running_jobs.html, the table of partitions
    "delta": [
        ("gpuA100x4", None, "48:00:00", 4, 64, "--partition=gpuA100x4"),
        ("gpuA100x4-interactive", 4, "01:00:00", 4, 64, "--partition=gpuA100x4-interactive"),
        ("gpuA100x4-preempt", None, "48:00:00", 4, 64, "--partition=gpuA100x4-preempt"),
        ("gpuA40x4", None, "48:00:00", 4, 64, "--partition=gpuA40x4"),
        ("gpuA40x4-interactive", 4, "01:00:00", 4, 64, "--partition=gpuA40x4-interactive"),
        ("gpuA40x4-preempt", None, "48:00:00", 4, 64, "--partition=gpuA40x4-preempt"),
        ("gpuA100x8", None, "48:00:00", 8, 128, "--partition=gpuA100x8"),
        ("gpuA100x8-interactive", 2, "01:00:00", 8, 128, "--partition=gpuA100x8-interactive"),
        ("gpuH200x8", 1, "48:00:00", 8, 96, "--partition=gpuH200x8"),
        ("gpuH200x8-interactive", 1, "01:00:00", 8, 96, "--partition=gpuH200x8-interactive"),
        ("cpu", None, "48:00:00", 0, 128, "--partition=cpu"),
        ("cpu-interactive", 4, "00:30:00", 0, 128, "--partition=cpu-interactive"),
        ("cpu-preempt", None, "48:00:00", 0, 128, "--partition=cpu-preempt"),
    ],
    # a user's table of the partitions of DeltaAI
    "deltaai": [
        ("ghx4", None, "48:00:00", 4, 288, "--partition=ghx4"),
        ("ghx4-interactive", 4, "02:00:00", 4, 288, "--partition=ghx4-interactive"),
    ],
    # https://docs.csc.fi/computing/running/batch-job-partitions/, Mahti GPU partitions
    "mahti": [
        ("gputest", 1, "00:15:00", 4, 128, "--partition=gputest"),
        ("gpusmall", 1, "36:00:00", 2, 64, "--partition=gpusmall"),
        ("gpumedium", 6, "36:00:00", 4, 768 // 6, "--partition=gpumedium"),
    ],
    # https://docs.csc.fi/computing/running/batch-job-partitions/, Roihu GPU partitions: 72 cores a GPU, and four
    # GPUs a job of gpumedium
    "roihu": [
        ("gputest", 2, "00:15:00", 4, 288, "--partition=gputest"),
        ("gpumedium", 4 // 4, "36:00:00", 4, 288, "--partition=gpumedium"),
        ("gpularge", 10, "36:00:00", 4, 288, "--partition=gpularge"),
    ],
    # https://docs.isambard.ac.uk/user-documentation/information/job-scheduling/, partition configuration
    "isambard-ai": [("workq", None, "24:00:00", 4, 288, "--partition=workq")],
    # https://apps.fz-juelich.de/jsc/hps/jupiter/batchsystem.html, in users' notes
    "jupiter": [("booster", None, "12:00:00", 4, 288, "--partition=booster")],
    # users' notes of http://www.idris.fr/en/docs/jean-zay/slurm/slurm_partitions_gpu: GPUs of a job, divided
    "jean-zay": [
        ("qos_gpu_h100-t3", 512 // 4, "20:00:00", 4, 96, "--qos=qos_gpu_h100-t3"),
        ("qos_gpu_h100-t4", 64 // 4, "100:00:00", 4, 96, "--qos=qos_gpu_h100-t4"),
        ("qos_gpu_h100-dev", 32 // 4, "02:00:00", 4, 96, "--qos=qos_gpu_h100-dev"),
        ("qos_gpu_a100-t3", None, "20:00:00", 8, 64, "--constraint=a100"),
        ("qos_gpu_a100-dev", None, "02:00:00", 8, 64, "--constraint=a100"),
        ("qos_gpu-t3", None, "20:00:00", 4, 40, "--qos=qos_gpu-t3"),
        ("qos_gpu-t4", None, "100:00:00", 4, 40, "--qos=qos_gpu-t4"),
        ("qos_gpu-dev", None, "02:00:00", 4, 40, "--qos=qos_gpu-dev"),
    ],
    # https://servicedesk.surf.nl/wiki/spaces/WIKI/pages/30660209/Snellius+partitions, the table of partitions
    "snellius": [
        ("gpu_a100", None, "120:00:00", 4, 72, "--partition=gpu_a100"),
        ("gpu_h100", None, "120:00:00", 4, 64, "--partition=gpu_h100"),
    ],
    # https://docs.it4i.cz/general/resources-allocation-policy/, and wall times in a user's notes
    "karolina": [
        ("qgpu", 16, "48:00:00", 8, 128, "--partition=qgpu"),
        ("qgpu_big", 72, None, 8, 128, "--partition=qgpu_big"),
        ("qgpu_exp", 8, "01:00:00", 8, 128, "--partition=qgpu_exp"),
        ("qgpu_free", None, "18:00:00", 8, 128, "--partition=qgpu_free"),
        ("qgpu_preempt", None, None, 8, 128, "--partition=qgpu_preempt"),
    ],
    # https://docs.alcf.anl.gov/crux/queueing-and-running-jobs/running-jobs/, the tables of queues
    "crux": [
        ("debug", 8, "02:00:00", 0, 128, "-q debug"),
        ("workq-route", 184, "24:00:00", 0, 128, "-q workq-route"),
        ("preemptable", 10, "72:00:00", 0, 128, "-q preemptable"),
        ("demand", 64, "01:00:00", 0, 128, "-q demand"),
    ],
    # https://docs.alcf.anl.gov/sophia/queueing-and-running-jobs/running-jobs/, the table of queues
    "sophia": [
        ("by-node", 8, "24:00:00", 8, 128, "-q by-node"),
        ("by-gpu", 1, "24:00:00", 8, 128, "-q by-gpu"),
    ],
    # https://docs.tacc.utexas.edu/hpc/lonestar6/#queues, table 5: cores are those of all nodes, divided
    "lonestar6": [
        ("gpu-a100", 8, "48:00:00", 3, 1024 // 8, "--partition=gpu-a100"),
        ("gpu-a100-dev", 2, "02:00:00", 3, 256 // 2, "--partition=gpu-a100-dev"),
        ("gpu-h100", 1, "48:00:00", 2, 96, "--partition=gpu-h100"),
        ("normal", 64, "48:00:00", 0, 8192 // 64, "--partition=normal"),
        ("development", 8, "02:00:00", 0, 1024 // 8, "--partition=development"),
        ("large", 256, "48:00:00", 0, 128, "--partition=large"),
        ("vm-small", 1, "48:00:00", 0, 16, "--partition=vm-small"),
    ],
    # https://docs.tacc.utexas.edu/hpc/horizon/#queues, table 4
    "horizon": [
        ("gb", 128, "48:00:00", 2, 72, "--partition=gb"),
        ("gb-dev", 16, "02:00:00", 2, 72, "--partition=gb-dev"),
        ("gb-large", 512, "48:00:00", 2, 72, "--partition=gb-large"),
        ("vv", 256, "48:00:00", 0, 2 * 88, "--partition=vv"),
        ("vv-dev", 32, "02:00:00", 0, 2 * 88, "--partition=vv-dev"),
        ("vv-large", 1024, "48:00:00", 0, 2 * 88, "--partition=vv-large"),
    ],
    # https://nrel.github.io/HPC/Documentation/Systems/Kestrel/Running/, the table of partitions: nodes of all jobs of a user
    # where a job has no limit of its own
    "kestrel": [
        ("gpu-h100", 156, "48:00:00", 4, 128, "--partition=gpu-h100"),
        ("gpu-h100s", 156, "04:00:00", 4, 128, "--partition=gpu-h100s"),
        ("gpu-h100l", 39, "10-00:00:00", 4, 128, "--partition=gpu-h100l"),
        ("debug", 2, "01:00:00", 4 // 2, 128 // 2, "--partition=debug"),
        ("short", 2240, "04:00:00", 0, 104, "--partition=short"),
        ("standard", 1050, "48:00:00", 0, 104, "--partition=standard"),
        ("long", 215, "10-00:00:00", 0, 104, "--partition=long"),
        ("hbw", 256, "48:00:00", 0, 104, "--partition=hbw"),
        ("shared", 64 // 2, "48:00:00", 0, 104, "--partition=shared"),
    ],
    # https://documentation.sigma2.no/jobs/job_types/olivia_job_types.html: GPUs of a job, divided
    "olivia": [
        ("accel", 32 // 4, "7-00:00:00", 4, 288, "--partition=accel"),
        ("devel", 16 // 4, "02:00:00", 4, 288, "--qos=devel"),
        ("small", 1, "7-00:00:00", 0, 256, "--partition=small"),
        ("large", 9, "7-00:00:00", 0, 256, "--partition=large"),
    ],
    # https://orcd-docs.mit.edu/running-jobs/overview/, the standard partitions; eight H200 a node, with 120 cores
    "orcd": [
        ("mit_normal_gpu", None, "06:00:00", 8, 120, "--partition=mit_normal_gpu"),
        ("mit_preemptable", None, "48:00:00", 8, 120, "--partition=mit_preemptable"),
        ("mit_normal", None, "12:00:00", 0, 96, "--partition=mit_normal"),
        ("mit_quicktest", None, "00:15:00", 0, 48, "--partition=mit_quicktest"),
    ],
    # harvardinformatics/snakemake-executor-plugin-cannon, cannon.py, minutes divided; the Kempner Institute's handbook,
    # kempner_policies_for_responsible_use and overview_of_kempner_cluster
    "fasrc": [
        ("gpu", None, f"{4320 // 60}:00:00", 4, 64, "--partition=gpu"),
        ("gpu_test", None, f"{720 // 60}:00:00", 1, 64, "--partition=gpu_test"),
        ("kempner", None, "48:00:00", 4, 64, "--partition=kempner"),
        ("kempner_h100", None, "48:00:00", 4, 96, "--partition=kempner_h100"),
        ("kempner_h200", None, "48:00:00", 4, 64, "--partition=kempner_h200"),
        ("kempner_rtx", None, "48:00:00", 8, 128, "--partition=kempner_rtx"),
        ("sapphire", None, f"{4320 // 60}:00:00", 0, 112, "--partition=sapphire"),
        ("shared", None, f"{4320 // 60}:00:00", 0, 48, "--partition=shared"),
        ("test", None, f"{720 // 60}:00:00", 0, 112, "--partition=test"),
    ],
    # https://docs.alliancecan.ca/wiki/Job_scheduling_policies/en, time limits; the table of nodes of Fir
    "fir": [
        ("default", None, "7-00:00:00", 4, 48, "--partition=default"),
    ],
    # https://docs.alliancecan.ca/wiki/Job_scheduling_policies/en, time limits; the table of nodes of Nibi
    "nibi": [
        ("default", None, "7-00:00:00", 8, 112, "--partition=default"),
    ],
    # https://docs.alliancecan.ca/wiki/Job_scheduling_policies/en, time limits; the table of nodes of Narval
    "narval": [
        ("default", None, "7-00:00:00", 4, 48, "--partition=default"),
    ],
    # https://docs.alliancecan.ca/wiki/Job_scheduling_policies/en, time limits; the table of nodes of Rorqual
    "rorqual": [
        ("default", None, "7-00:00:00", 4, 64, "--partition=default"),
    ],
    # https://www.sdsc.edu/systems/expanse/user_guide.html, the table of partitions; a user's note of gpu-shared and NAIRR
    "expanse": [
        ("gpu", 4, "48:00:00", 4, 40, "--partition=gpu"),
        ("gpu-shared", 1, "48:00:00", 3, 37, "--partition=gpu-shared"),
        ("gpu-debug", 2, "00:30:00", 4, 40, "--partition=gpu-debug"),
        ("gpu-preempt", 1, "7-00:00:00", 4, 40, "--partition=gpu-preempt"),
        ("nairr-gpu", 4, "48:00:00", 4, 2 * 36, "--partition=nairr-gpu"),
        ("compute", 32, "48:00:00", 0, 128, "--partition=compute"),
        ("shared", 1, "48:00:00", 0, 128, "--partition=shared"),
        ("debug", 2, "00:30:00", 0, 128, "--partition=debug"),
        ("preempt", 32, "7-00:00:00", 0, 128, "--partition=preempt"),
    ],
    # users' notes of https://www.rcac.purdue.edu/knowledge/anvil/run/partitions, and the manual of RADICAL-Pilot
    "anvil": [
        ("gpu", None, "48:00:00", 4, 128, "--partition=gpu"),
        ("gpu-debug", 1, "00:30:00", 2, 128, "--partition=gpu-debug"),
        ("ai", 21, None, 4, 2 * 48, "--partition=ai"),
        ("wholenode", 16, None, 0, 128, "--partition=wholenode"),
        ("wide", 56, None, 0, 128, "--partition=wide"),
        ("shared", 1, None, 0, 128, "--partition=shared"),
        ("debug", 2, None, 0, 128, "--partition=debug"),
    ],
    # users' notes of https://www.psc.edu/resources/bridges-2/user-guide/; the cores of some kinds are not known
    "bridges2": [
        ("GPU", 4, "48:00:00", 8, None, "--partition=GPU"),
        ("GPU-shared", 1, "48:00:00", 4, None, "--partition=GPU-shared"),
        ("RM", None, "72:00:00", 0, 128, "--partition=RM"),
        ("RM-shared", 1, "72:00:00", 0, 128 // 2, "--partition=RM-shared"),
    ],
    # https://docs.hpc.cam.ac.uk/hpc/user-guide/a100.html: GPUs of SL2, divided
    "csd3": [
        ("ampere", 64 // 4, "36:00:00", 4, 128, "--partition=ampere"),
    ],
    # https://nsccsg.github.io/systems/aspire2a/queue-structure: GPUs of the largest jobs, divided; hours of the
    # largest jobs
    "aspire2a": [
        ("normal", 256 // 4, "24:00:00", 4, 64, "-q normal"),
        ("ai", 18, "24:00:00", 4, 64, "-q ai"),
    ],
    # https://www.nsc.liu.se/support/systems/berzelius-gpu/: 72 hours, eight GPUs and 128 cores a node; 752 GPUs
    "berzelius": [
        ("berzelius", 752 // 8, "72:00:00", 8, 8 * 16, "--partition=berzelius"),
    ],
}
ROWS = [(site, *row) for site, rows in QUEUES.items() for row in rows]
PAIRS = [
    (site, launcher)
    for site in QUEUES
    for launcher in ("srun", "deepspeed", "torchrun")
    if LAUNCHERS[launcher].starts(load(site).file.scheduler)
]


def job(site: str, queue: str | None, **given: str | None) -> Specification:
    """Return a job in a queue, with an account and what the queue demands of every job."""
    file, demanded = load(site).file, load(site).queues[queue].mandatory if queue else {}
    account = "x" + ((file.queues[queue].account_suffix if queue else None) or file.rules.account_suffix)
    options: dict[str, str | list[str] | None] = {"account": account, **demanded, "queue": queue, **given}
    told = {key: value for key, value in options.items() if value is not None}
    return read_spec(file.scheduler, told, ("train.py",), site=SiteName(site, COMMAND_LINE))


def warnings(site: str, queue: str, **given: str | None) -> str:
    return "\n".join(resolve(job(site, queue, **given)).site.warnings)


def seconds(walltime: str) -> int:
    days, _, clock = f"0-{walltime}".rpartition("-")
    hours, minutes, rest = map(int, clock.split(":"))
    return ((int(days.removeprefix("0-") or 0) * 24 + hours) * 60 + minutes) * 60 + rest


@pytest.mark.parametrize(("site", "queue", "nodes", "walltime", "gpus", "cores", "directive"), ROWS)
def test_a_queue_takes_what_its_page_says_and_no_more(
    site: str,
    queue: str,
    nodes: int | None,
    walltime: str | None,
    gpus: int,
    cores: int | None,
    directive: str,
) -> None:
    most, facts = nodes or 2, load(site).queues[queue]
    each = min(gpus, facts.max_gpus // most) if facts.max_gpus else gpus
    given = {"nodes": str(most), "gpus_per_node": str(each) if each else None, "walltime": walltime}
    here = min(cores or 0, facts.max_cores // most) if facts.max_cores else cores or 0
    here -= here % (each or 1)  # Slurm divides them equally
    asked = {**given, "cpus_per_node": str(here) if here else None}
    assert warnings(site, queue, **asked) == ""
    text = render(job(site, queue, **asked))
    assert re.search(rf"^#(SBATCH|PBS) {re.escape(directive)}$", text, re.MULTILINE)
    if nodes:
        try:
            more = warnings(site, queue, **{**given, "nodes": str(nodes + 1)})
        except JobgenError as error:  # the request of the queue has no number of nodes
            more = str(error)
        assert re.search(f"--nodes {nodes + 1} .*queue {queue} of .* takes .*node", more)
    if walltime:
        more = warnings(site, queue, **{**given, "walltime": f"{seconds(walltime) + 60}s"})
        assert re.search("--walltime .* takes at most", more)
    if gpus:
        more = warnings(site, queue, **{**given, "gpus_per_node": str(gpus + 1)})
        assert f"takes at most {gpus} accelerator" in more
    if cores:
        more = warnings(site, queue, **given, ranks_per_node="1", cpus_per_rank=str(cores + 1))
        assert f"takes at most {cores} cores a node" in more


def test_the_table_has_every_queue_that_takes_jobs() -> None:
    for site, rows in QUEUES.items():
        queues = {name for name, queue in load(site).queues.items() if queue.enabled}
        assert {row[0] for row in rows} == queues, site


@pytest.mark.parametrize(("site", "launcher"), PAIRS)
def test_two_nodes_with_each_launcher_are_quiet(site: str, launcher: str) -> None:
    own = load(site).values.get("queue")
    queue = {"roihu": "gpularge"}.get(site, str(own) if own else None)
    asked = job(site, queue, nodes="2", launcher=launcher)
    assert resolve(asked).site.warnings == ()
    text = render(asked)
    assert check(text.encode()) == []


@pytest.mark.parametrize(
    ("site", "host", "env"),
    [
        ("daint", "daint-ln003", {}),
        ("daint", "nid001", {"CLUSTER_NAME": "daint"}),
        ("clariden", "clariden-ln001", {}),
        ("clariden", "nid001", {"CLUSTER_NAME": "clariden"}),
        ("leonardo", "login02.leonardo.local", {}),
        ("vista", "login2.vista.tacc.utexas.edu", {}),
        ("stampede3", "login2.stampede3.tacc.utexas.edu", {}),
        ("delta", "dt-login03.delta.ncsa.illinois.edu", {}),
        ("deltaai", "gh-login03.delta.ncsa.illinois.edu", {}),
        ("mahti", "mahti-login11", {}),
        ("roihu", "roihu-gpu-login1", {}),
        ("jupiter", "jpbl-s01-01", {"SYSTEMNAME": "jupiter"}),
        ("jean-zay", "jean-zay4", {}),
        ("snellius", "int4.local.snellius.surf.nl", {}),
        ("karolina", "login1.karolina.it4i.cz", {}),
        ("crux", "crux-login-01", {}),
        ("sophia", "sophia-login-02", {}),
        ("lonestar6", "login2.ls6.tacc.utexas.edu", {}),
        ("horizon", "login2.horizon.tacc.utexas.edu", {}),
        ("kestrel", "kl5.hpc.nrel.gov", {}),
        ("kestrel", "kl2", {}),
        ("olivia", "uan02.olivia.sigma2.no", {}),
        ("orcd", "orcd-login001", {}),
        ("fasrc", "holylogin04", {}),
        ("fasrc", "boslogin01.rc.fas.harvard.edu", {}),
        ("fir", "c1", {"CC_CLUSTER": "fir"}),
        ("nibi", "c1", {"CC_CLUSTER": "nibi"}),
        ("nibi", "l5.nibi.sharcnet", {}),
        ("nibi", "ic-l5.nibi.sharcnet", {}),
        ("narval", "c1", {"CC_CLUSTER": "narval"}),
        ("narval", "narval2", {}),
        ("rorqual", "c1", {"CC_CLUSTER": "rorqual"}),
        ("rorqual", "rorqual2", {}),
        ("expanse", "login01.expanse.sdsc.edu", {}),
        ("anvil", "login07.anvil.rcac.purdue.edu", {}),
        ("bridges2", "bridges2-login014", {}),
        ("csd3", "login-q-1", {}),
        ("aspire2a", "asp2a-login-nus02", {}),
        ("berzelius", "berzelius1", {}),
        ("berzelius", "berzelius001", {}),
    ],
)
def test_a_login_node_belongs_to_one_site(site: str, host: str, env: dict[str, str]) -> None:
    found = [name for name in QUEUES if reason(load(name).file.detect, host, env)]
    assert found == [site]


def test_a_queue_with_its_own_request() -> None:
    assert "#PBS -l select=8\n" in render(job("sophia", "by-gpu", gpus_per_node="8"))
    assert "#PBS -l select=3\n" in render(job("sophia", "by-node", nodes="3"))


@pytest.mark.parametrize(("site", "queue"), [("sophia", "bigmem"), ("crux", "workq")])
def test_a_queue_that_takes_no_jobs_says_so(site: str, queue: str) -> None:
    assert "is not enabled" in warnings(site, queue)
