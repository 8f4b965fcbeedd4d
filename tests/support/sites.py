"""The sites that come with jobgen, jobs at them, the site file of a test, and what a cluster prints."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jobgen import JobSpec, render
from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.sites import loader, search
from jobgen.spec import COMMAND_LINE, SiteName
from support import jobs

SHIPPED = sorted(path.stem for path in Path(search.folders()[-1]).glob("*.toml"))
LOADED = {name: loader.load(name) for name in SHIPPED}

CLUSTER = """
title = "Big"
scheduler = "slurm"
[[source]]
facts = ["queues"]
confidence = "staff"
page = "https://example.org/queues"
date = 2026-02-03
[node]
gpus = 4
cores = 64
cores_per_gpu = 16
cpu_lists = ["48-63", "32-47", "16-31", "0-15"]
[rules]
bind = "--cpu-bind=mask_cpu:{cpu_masks}"
[job]
queue = "prod"
[launch]
launcher = "srun"
[queues.prod]
routes_to = ["small", "large"]
[queues.small]
enabled = false
nodes = [256, 1024]
walltime = "12h"
[queues.large]
enabled = false
nodes = [1025, 10624]
walltime = "24h"
[queues.capacity]
nodes = [1, 16]
walltime = "168h"
max_jobs = 1
max_gpus = 32
[queues.shared]
nodes = [1, 4]
shared = true
"""


# sinfo --noheader -o '%P|%l|%D|%c|%m|%G|%s'
def slurm_nodes(name: str, number: int, partitions: str, **fields: object) -> str:
    """Return the lines of equal nodes in scontrol --oneliner show node of Slurm 22.05."""
    values = {"CPUTot": 64, "RealMemory": 515000, "AvailableFeatures": "(null)", "Gres": "(null)", **fields}
    words = " ".join(f"{key}={value}" for key, value in values.items())
    return "".join(
        f"NodeName={name}{at} Arch=x86_64 CPUAlloc=0 {words} State=IDLE ThreadsPerCore=1 "
        f"Partitions={partitions} OS=Linux 6.1 Reason=Gres=gpu:none:9\n"
        for at in range(1, number + 1)
    )


NODES = (
    slurm_nodes("n", 10, "gpu", Gres="gpu:a100:4(S:0-1)")
    + slurm_nodes("d", 2, "gpu,debug", Gres="gpu:a100:4(S:0-1)")
    + slurm_nodes("f", 2, "gpu", Gres="gpu:a100:4(S:0-1)", CPUTot=128, RealMemory=1031000)
    + slurm_nodes("c", 40, "cpu", CPUTot=128, RealMemory=257000)
)
# scontrol --oneliner show partition of Slurm 22.05
PARTITIONS = """\
PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-14] PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE OverTimeLimit=NONE PreemptMode=OFF State=UP TotalCPUs=1024 TotalNodes=14 SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
PartitionName=debug QoS=debug MaxNodes=2 MinNodes=1 MaxTime=00:30:00 RootOnly=NO OverSubscribe=NO State=UP TotalNodes=2
PartitionName=cpu QoS=N/A MaxNodes=UNLIMITED RootOnly=NO OverSubscribe=FORCE:4 State=DRAIN TotalNodes=40
"""
# qstat -Qf and pbsnodes -a of PBS Pro: PBS Professional Reference Guide, sections 2.55 and 2.11
QSTAT = """\
Queue: workq
    queue_type = Execution
    total_jobs = 0
    resources_max.nodect = 16
    resources_max.walltime = 24:00:00
    resources_min.nodect = 2
    enabled = True
    started = True

Queue: old
    queue_type = Execution
    enabled = False
    started = False

Queue: new
    total_jobs = 0

Queue: stopped
    queue_type = Execution
    enabled = True

Queue: R12
    queue_type = Execution
    enabled = True
    started = True
"""
PBSNODES = """\
n1
     Mom = n1.cluster
     state = free
     resources_available.mem = 528000000kb
     resources_available.ncpus = 64
     resources_available.ngpus = 4

n2
     Mom = n2.cluster
     resources_available.mem = 264000000kb
     resources_available.ncpus = 32
"""


def spec(command: str, beside: Path | None = None) -> JobSpec:
    """``SCHEDULER SITE [option=value]...``; without an account, where a site is one of ours."""
    scheduler, name, *rest = command.split()
    given: dict[str, str | list[str] | None] = dict(one.split("=", 1) for one in rest)
    given |= {key: [str(value)] for key, value in given.items() if key in ("directive", "module_use")}
    return read_spec(scheduler, given, ("train.py",), site=SiteName(name, COMMAND_LINE, str(beside or "")))


def sentence(command: str, beside: Path | None = None) -> str:
    with pytest.raises(JobgenError) as caught:
        render(spec(command, beside))
    return str(caught.value)


def jobgen(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return jobs.jobgen(*words, cwd=cwd, env=os.environ | env)
