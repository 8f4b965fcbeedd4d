"""The configuration of a real Slurm from a site file: partitions, QoS, accounts, and nodes with their GRES.

Nodes are of the state CLOUD: none of them ever starts, and Slurm takes them for nodes that it could start, so that
it plans jobs on thousands of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from jobgen.sites.limits import ranges
from jobgen.sites.site_file import NodeTable, Queue, Site
from jobgen.values import parsers
from support.site_requests import SCHEDULERS_CHOICE, largest_node, mandatory

MANY = 16  # nodes of a queue without a limit
_BASE = """\
ClusterName=sites
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={state}
SlurmctldPidFile=/run/slurmctld.pid
SlurmctldLogFile={state}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=head
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/npu
JobSubmitPlugins=lua
EnforcePartLimits=ALL
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu,npu
SuspendTime=3600
ResumeTimeout=3600
SuspendProgram=/bin/true
ResumeProgram=/bin/true
"""
# What sites have a plug-in for: jobs without an account or a queue, and wall times that depend on the nodes.
_LUA = """\
local steps = {{ {steps} }}
function slurm_job_submit(job, partitions, user)
  if {refused} then return slurm.ERROR end
  for _, step in ipairs(steps[job.qos or job.partition or ""] or {{}}) do
    if job.min_nodes <= step[1] then
      if job.time_limit > step[2] then return 2051 end  -- ESLURM_INVALID_TIME_LIMIT
      break
    end
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, user) return slurm.SUCCESS end
"""


class Shape(NamedTuple):
    """A kind of node: its CPUs, memory in MiB, GRES, and features."""

    cpus: int
    memory: int
    gres: str
    features: tuple[str, ...]


def by_qos(site: Site) -> bool:
    """Return whether all queues of a site are a QoS."""
    return site.file.rules.queue == "--qos"


def qos_of(site: Site, name: str) -> str | None:
    """Return the QoS that a queue is; None for a partition."""
    if by_qos(site):
        return name
    said = re.search(r"--qos[= ](\S+)", "\n".join(site.queues[name].directives))
    return said[1] if said else None


def partition_of(site: Site, name: str) -> str:
    """Return the partition of a queue."""
    return "all" if by_qos(site) or name == SCHEDULERS_CHOICE else site.queues[name].name or name


def gres_of(site: Site, name: str) -> str:
    """Return the kind of device that the script of a queue requests, such as ``gpu:a100``; else empty."""
    request = site.request(name) or (site.file.rules.devices or "--gpus-per-node={gpus}",)
    lines = "\n".join((*request, *site.queues[name].directives))
    if found := re.search(r"--gres=(\w+(?::\w+)?):\{", lines):
        return found[1]
    found = re.search(r"--gpus-per-(?:node|task)=(?:(\w+):)?", lines)
    return ":".join(filter(None, ("gpu", found[1]))) if found else ""


def _gres(site: Site, name: str, node: NodeTable) -> str:
    """Return the devices of a node: by type, by the type in the request of the site or in its default."""
    kind = gres_of(site, name)
    if kind and node.devices:
        return ",".join(f"gpu:{one}:{number}" for one, number in node.devices.items())
    own = str(site.values.get("gpus_per_node", "")).rpartition(":")[0]
    number = MANY if node.gpus is None else node.gpus
    return f"{kind}:{own}:{number}".replace("::", ":") if kind and number else ""


def _shapes(site: Site, name: str) -> dict[Shape, int]:
    """Return the kinds of nodes of a queue, and how many there are: one more than a job may have, if the site
    file does not count them."""
    kinds = site.kinds(name).values()
    return {_shape(site, name, node): count or _size(site, name) + 1 for count, node in kinds}


def _shape(site: Site, name: str, node: NodeTable) -> Shape:
    said = [f"--constraint={site.values.get('constraint', '')}", *site.queues[name].directives]
    words = re.findall(r"--constraint=(\S+)", "\n".join(said))
    features = sorted(set(filter(None, re.split(r"[&|,*()\[\]\"']", "&".join(words)))))
    memory = parsers.memory(node.memory) if node.memory else 4 << 20
    return Shape(node.cores or 512, memory, _gres(site, name, node), tuple(features))


def _size(site: Site, name: str) -> int:
    spans = ranges(site, name)
    return spans[-1][1] if spans else MANY


def _nodes(site: Site) -> dict[Shape, tuple[str, int]]:
    """Return the names of the nodes of each kind, and how many there are."""
    sizes: dict[Shape, int] = {}
    for name in site.queues:
        for shape, number in _shapes(site, name).items():
            sizes[shape] = max(sizes.get(shape, 0), number)
    return {shape: (f"n{at}x", size) for at, (shape, size) in enumerate(sizes.items())}


def configuration(site: Site, state: str) -> str:
    """Return slurm.conf."""
    nodes = _nodes(site)
    lines = [_BASE.format(state=state)]
    for shape, (prefix, size) in nodes.items():
        more = f" Gres={shape.gres}" if shape.gres else ""
        more += f" Feature={','.join(shape.features)}" if shape.features else ""
        lines.append(
            f"NodeName={prefix}[1-{size}] CPUs={shape.cpus} RealMemory={shape.memory}{more} State=CLOUD"
        )
    default = site.values.get("queue")
    for name in dict.fromkeys(partition_of(site, one) for one in site.queues):
        queues = [one for one in site.queues if partition_of(site, one) == name]
        shapes = chain.from_iterable(_shapes(site, one) for one in queues)
        names = dict.fromkeys("{}[1-{}]".format(*nodes[shape]) for shape in shapes)
        own = [one for one in queues if qos_of(site, one) is None]
        words = [*_partition(site, own[0], alone=len(own) == len(queues))] if own else []
        words += ["Default=YES"] if default in queues or SCHEDULERS_CHOICE in queues else []
        lines.append(" ".join([f"PartitionName={name}", f"Nodes={','.join(names)}", *words]))
    return "\n".join(lines) + "\n"


def _partition(site: Site, name: str, *, alone: bool) -> Iterator[str]:
    """Yield the limits of a partition; where jobs of a QoS may exceed them, they are those of its own QoS."""
    queue, spans = site.queues[name], ranges(site, name)
    if spans and alone:
        yield f"MinNodes={spans[0][0]} MaxNodes={spans[-1][1]}"
    if alone and (minutes := _minutes(queue)):
        yield f"MaxTime={minutes}"
    if queue.max_gpus or not alone:
        yield f"QOS=limits-of-{name}"
    if not queue.enabled:
        yield "State=INACTIVE"


def _minutes(queue: Queue) -> int:
    times = [text for _, text in queue.walltime_by_nodes] + ([queue.walltime] if queue.walltime else [])
    return max((parsers.walltime(text) // 60 for text in times), default=0)


def job_submit(site: Site) -> str:
    """Return job_submit.lua."""
    steps = []
    for name, queue in site.queues.items():
        pairs = [f"{{{most}, {parsers.walltime(text) // 60}}}" for most, text in queue.walltime_by_nodes]
        key = qos_of(site, name) or partition_of(site, name)
        steps += [f'["{key}"] = {{{", ".join(pairs)}}}'] if pairs else []
    refused = ["job.account == nil"] if "account" in site.file.mandatory else []
    if "queue" in site.file.mandatory:
        refused.append("job.qos == nil" if by_qos(site) else "job.partition == nil")
    return _LUA.format(steps=", ".join(steps), refused=" or ".join(refused) or "false")


def qos(site: Site) -> dict[str, str]:
    """Return each QoS of a site with its limits, as sacctmgr has them."""
    found = {}
    for name, queue in site.queues.items():
        if mine := qos_of(site, name):
            found[mine] = " ".join(_qos(site, name))
        elif queue.max_gpus or any(qos_of(site, one) for one in site.queues):
            found[f"limits-of-{name}"] = " ".join(_qos(site, name, flags="DenyOnLimit"))
    return found


def _qos(site: Site, name: str, *, flags: str = "DenyOnLimit,OverPartQOS") -> Iterator[str]:
    queue, spans = site.queues[name], ranges(site, name)
    yield f"flags={flags}"
    if spans:
        yield f"MinTRESPerJob=node={spans[0][0]} MaxTRESPerJob=node={spans[-1][1]}"
    if minutes := _minutes(queue):
        yield f"MaxWall={minutes}"
    if queue.max_gpus:
        yield f"MaxTRESPerUser=gres/gpu={queue.max_gpus}"
    node = largest_node(site, name)
    if node.gpus is not None and gres_of(site, name) and node.cores:
        yield f"MaxTRESPerNode=cpu={node.cores},gres/gpu={node.gpus}"


def accounts(site: Site) -> set[str]:
    """Return the accounts that the jobs of the tests are charged to."""
    said = (mandatory(site, name).get("account", "") for name in site.queues)
    return {*filter(None, said)}


def all_accounts(sites: list[Site]) -> list[str]:
    """Return the accounts of several sites."""
    return sorted({*chain.from_iterable(map(accounts, sites)), "everyone"})
