"""The partitions, nodes and QoS of Slurm, by commands that any user may run."""

from __future__ import annotations

import getpass
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.hosts.calls import SchedulerError, complaint
from jobgen.hosts.host import HERE, Host
from jobgen.schedulers.cluster import (
    Facts,
    Judgement,
    NodeKind,
    QueueFacts,
    Reading,
    first_file,
    grouped,
    without_devices,
)
from jobgen.schedulers.slurm_limits import fields_of, partition_limits, qos_limits, within
from jobgen.values.devices import SHARD, TYPE

CONFIG = ("scontrol", "show", "config")
NODES = ("scontrol", "--all", "--oneliner", "show", "node")
PARTITIONS = ("scontrol", "--all", "--oneliner", "show", "partition")
# sacctmgr needs Slurm's database, which not every cluster has.
QOS = (
    "sacctmgr",
    "--parsable2",
    "show",
    "qos",
    "format=Name,Flags,MaxWall,MaxTRES,MinTRES,MaxTRESPerUser,MaxJobsPerUser",
)
ACCOUNTS = (
    *("sacctmgr", "--parsable2", "--noheader", "show", "user", "withassoc"),
    "format=DefaultAccount,Account,DefaultQOS,QOS",
)
# The copy of slurm.conf on a host without one: https://slurm.schedmd.com/configless_slurm.html
_CACHED = (
    "/run/slurm/conf/slurm.conf",
    "/var/run/slurm/conf/slurm.conf",
    "/var/spool/slurmd/conf-cache/slurm.conf",
)
_DEVICES = ("gpu", "npu")  # names of GRES
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5}  # of their numbers


class Answers(NamedTuple):
    """What the commands print; empty for a command that does not answer."""

    config: str = ""
    nodes: str = ""
    partitions: str = ""
    qos: str = ""
    accounts: str = ""


def facts(host: Host = HERE) -> Facts:
    """Return the facts about this cluster.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    config = host.output(*CONFIG)
    user = host.user if host.name else getpass.getuser()
    accounts = of_user(user, _setting(config, "ClusterName"))
    nodes, partitions = host.output(*NODES), host.output(*PARTITIONS)
    return read(Answers(config, nodes, partitions, _optional(QOS, host), _optional(accounts, host)))


def of_user(name: str, cluster: str) -> tuple[str, ...]:
    """Return the command that lists the accounts of a user at a cluster: a database may have several."""
    return (*ACCOUNTS, f"name={name}", f"cluster={cluster}")


def _optional(command: tuple[str, ...], host: Host) -> str:
    try:
        return host.output(*command)
    except SchedulerError:
        return ""


def queues(patience: float) -> Iterator[str]:
    """Yield the names of the partitions."""
    # sinfo prints a line for each state of the nodes of a partition.
    yield from dict.fromkeys(HERE.output("sinfo", "-h", "-o", "%R", patience=patience).splitlines())


def judge(script: str, needs: Sequence[NodeKind], host: Host = HERE) -> Judgement:
    """Return the judgement of ``sbatch --test-only`` on a script."""
    how = "sbatch --test-only"
    done = host.call((*how.split(), script))
    return Judgement(done.status == 0, complaint(done).removeprefix("sbatch: "), how)


try_job = None  # sbatch refuses what no node can run


def configured() -> str:
    """Return the name of the cluster in slurm.conf."""
    installed = shutil.which("sinfo") or ""
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(installed))), "etc", "slurm.conf")
    places = (os.environ.get("SLURM_CONF"), "/etc/slurm/slurm.conf", *_CACHED, beside)
    return first_file(places, r"(?mi)^\s*ClusterName\s*=\s*(\S+)")


def server(patience: float, host: Host = HERE) -> str:
    """Return the name of the cluster."""
    return _setting(host.output(*CONFIG, patience=patience), "ClusterName")


def read(answers: Answers) -> Facts:
    """Return the facts in the answers of Slurm."""
    limits = qos_limits(answers.qos)
    # With OverPartQOS the QoS of a job replaces that of its partition.
    binding = {} if "OverPartQOS" in answers.qos else limits
    unread: list[str] = []
    nodes, resource = _nodes(answers.nodes, Reading(NODES, unread))
    partitions = partition_limits(answers.partitions, answers.config, Reading(PARTITIONS, unread))
    listed = []
    for queue, qos in partitions:
        if queue.name in nodes and not nodes[queue.name]:
            continue
        own = [_capped(kind, queue) for kind in nodes.get(queue.name, ())]
        queue = queue._replace(max_cores=None)
        queue = within(queue, binding[qos]) if qos in binding else queue
        listed.append(queue._replace(kinds=grouped(without_devices(own) if queue.max_gpus == 0 else own)))
    name, select = (_setting(answers.config, key) for key in ("ClusterName", "SelectType"))
    rows = [(line + "|||").split("|") for line in answers.accounts.splitlines()]
    return Facts(
        name or "cluster",
        tuple(listed),
        resource,
        tuple(limits.values()),
        commands="scontrol and sacctmgr" if answers.qos else "scontrol",
        version=_setting(answers.config, "SLURM_VERSION"),
        accounts=_names(cell for at in (0, 1) for row in rows for cell in (row[at],)),
        user_qos=_user_qos(rows),
        # --gpus-per-node is an option of cons_tres alone: https://slurm.schedmd.com/sbatch.html
        devices=f"--gres={resource}:{{n}}" if select not in ("", "select/cons_tres") else "",
        unread=tuple(dict.fromkeys(unread)),
    )


def _user_qos(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the QoS of the user, the default one first: without one that is normal."""
    names = _names(cell for at in (2, 3) for row in rows for cell in row[at].split(","))
    return names if any(row[2] for row in rows) else tuple(sorted(names, key=lambda one: one != "normal"))


def _names(cells: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, cells))))


def _setting(config: str, name: str) -> str:
    found = re.search(rf"(?m)^{name}\s*=\s*(\S+)", config)
    return found[1] if found else ""


def _nodes(text: str, reading: Reading) -> tuple[dict[str, list[NodeKind]], str]:
    """Return the nodes of each partition, and the name of their devices: that which most nodes have, because
    GPUs and NPUs are never added up. Nodes with other devices alone are left out."""
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines:
        if not line.startswith("NodeName="):
            reading.leave_out(line)
    listed = [fields for fields in map(fields_of, lines) if "FUTURE" not in fields.get("State", "")]
    having = {name: [one for one in listed if _has(one, name)] for name in _DEVICES}
    resource, *others = sorted(_DEVICES, key=lambda name: -len(having[name]))
    nodes: dict[str, list[NodeKind]] = {}
    for fields in listed:
        left_out = not _has(fields, resource) and any(_has(fields, name) for name in others)
        if left_out:
            text = f"most nodes have {resource}: those with Gres={fields['Gres']} are left out"
            reading.unread.append(f"{reading.command}: {text}")
        kinds = [] if left_out else [_kind(fields, resource, reading)]
        for partition in fields.get("Partitions", "").split(","):
            nodes.setdefault(partition, []).extend(kinds)
    return nodes, resource


def _has(fields: Mapping[str, str], name: str) -> bool:
    """Return whether a node has devices of this name."""
    return re.search(rf"(^|,){name}(:|,|$)", fields.get("Gres", "")) is not None


def _kind(fields: Mapping[str, str], resource: str, reading: Reading) -> NodeKind:
    """Return the resources of a node, without those that Slurm keeps from jobs."""
    total, memory = (reading.value(fields, key) for key in ("CPUTot", "RealMemory"))
    threads = reading.value(fields, "ThreadsPerCore") or 1
    sockets, cores = (reading.value(fields, key) or 0 for key in ("Sockets", "CoresPerSocket"))
    if memory is not None:
        memory -= reading.value(fields, "MemSpecLimit") or 0
    features = fields.get("AvailableFeatures", "(null)")
    return NodeKind(
        cores=reading.value(fields, "CPUEfctv") or total,
        threads_per_core=threads if total == sockets * cores * threads else 1,
        # A node that is configured without memory has 1 MB, which limits no job.
        memory=memory if memory and memory > 1 else None,
        devices=_devices(fields.get("Gres", ""), resource, reading),
        features=() if features == "(null)" else tuple(re.split(r",(?![^(]*\))", features)),
    )


def _devices(gres: str, resource: str, reading: Reading) -> tuple[tuple[str, int], ...]:
    """Return the types and numbers in ``gpu:a100:4(S:0-1),shard:a100:16(S:0-1)``.

    https://slurm.schedmd.com/slurm.conf.html: NAME[:TYPE][:no_consume][:NUMBER]; a type is any text.
    """
    found: dict[str, int] = {}
    for part in re.split(r",(?![^(]*\))", gres):
        words = re.sub(r"\(.*\)$", "", part).removeprefix("gres/").split(":")
        name, *more = [word for word in words if word != "no_consume"]
        if name not in (resource, SHARD):
            continue
        number = _number(more[-1]) if more else None
        kind = ":".join(more if number is None else more[:-1])
        if kind and not re.fullmatch(TYPE, kind, re.ASCII):
            reading.leave_out(f"Gres={part}")
            continue
        if number == 0:
            continue
        kind = SHARD if name == SHARD else kind
        found[kind] = found.get(kind, 0) + (1 if number is None else number)
    return tuple(found.items())


def _number(text: str) -> int | None:
    """Return the number in ``4`` or ``2K``; None for a type."""
    found = re.fullmatch(r"([0-9]{1,9})([kmgtp]?)", text, re.ASCII | re.IGNORECASE)
    return int(found[1]) * _UNITS[found[2].lower()] if found else None


def _capped(kind: NodeKind, queue: QueueFacts) -> NodeKind:
    """Return a kind of nodes with the cores and the memory that a job in the partition gets at most."""
    most = {"cores": queue.max_cores, "memory": queue.memory.most_per_node}
    least = {key: min(getattr(kind, key) or limit, limit) for key, limit in most.items() if limit}
    return kind._replace(cores=least.get("cores", kind.cores), memory=least.get("memory", kind.memory))
