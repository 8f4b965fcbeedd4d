"""The queues and nodes of PBS Pro and Torque, by commands that any user may run."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.errors import counted
from jobgen.hosts.calls import SchedulerError, complaint
from jobgen.hosts.host import HERE, Host
from jobgen.schedulers.cluster import (
    Facts,
    Judgement,
    Memory,
    NodeKind,
    QueueFacts,
    Reading,
    first_file,
    grouped,
    number_of,
    without_devices,
)
from jobgen.values.devices import TYPE
from jobgen.values.parsers import count, mebibytes, seconds

PROBES = {
    "queues": ("qstat", "-Q", "-f"),  # without -f, long names are truncated
    "server": ("qstat", "-B", "-f"),
    "pbsnodes": ("pbsnodes", "-a"),
}
VNODES = ("pbsnodes", "-a", "-v")
_PATIENCE = 15  # s; for the first cycle of the scheduler
QUEUE = r"Queue:\s+(\S+)"
_NPUS = ("resources_available.naccelerators", "resources_available.nnpus")
# Resources of a default chunk that are amounts, and select no hosts.
_AMOUNTS = ("ncpus", "mpiprocs", "ompthreads", "ngpus", "naccelerators", "mem", "vmem")
# https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/1-installConfig/serverConfig.htm
_TORQUE = ("/var/spool/torque/server_name", "/var/lib/torque/server_name", "/etc/torque/server_name")
# The names of resources that have the type of the devices, which each site chooses.
_TYPES = r"(n?gpu|accel(erator)?|device)s?_?(type|model|name|arch|kind)|(gpu|accelerator)"


def facts(host: Host = HERE) -> Facts:
    """Return the facts about this cluster.

    Raises:
        SchedulerError: PBS does not answer.
    """
    found = read(host.output(*PROBES["queues"]), _listed_nodes(host), host.output(*PROBES["server"]))
    return found._replace(commands="qstat and pbsnodes")


def _listed_nodes(host: Host) -> str:
    """Return the nodes, with the vnodes of hosts that have some: of such a host, pbsnodes -a adds up only the
    resources that PBS Pro has by itself."""
    listed = host.output(*PROBES["pbsnodes"])
    return host.output(*VNODES) if "<various>" in listed else listed


def judge(script: str, needs: Sequence[NodeKind], host: Host = HERE) -> Judgement:
    """Compare the nodes of a job with each host that PBS lists: qsub accepts jobs that no host can run."""
    hosts = hosts_of(_listed_nodes(host)).values()
    how = " ".join(PROBES["pbsnodes"])
    for need in needs:
        fit = sum(has(one.kind, need) for one in hosts)
        each = f"{need.cores} cores" + (f" and {number_of(need)} devices" if need.devices else "")
        each += f" and {need.memory} MiB" if need.memory else ""
        if fit < need.nodes:
            return Judgement(False, f"{fit} hosts have {each}, and the job requests {need.nodes}", how)
    return Judgement(True, f"the hosts have what a job of {counted(needs[0].nodes, 'node')} requests", how)


def has(host: NodeKind, need: NodeKind) -> bool:
    """Return whether a host has what a job requests of a node; unknown cores and memory are enough."""
    return (
        (need.cores is None or host.cores is None or host.cores >= need.cores)
        and number_of(host) >= number_of(need)
        and (need.memory is None or host.memory is None or host.memory >= need.memory)
    )


def try_job(script: str, host: Host = HERE) -> Judgement:
    """Submit a script, wait until PBS has judged it, and delete it. The comment of a job that no host can run
    begins with: Can Never Run.

    Raises:
        SchedulerError: qdel refuses the deletion of the job.
    """
    done = host.call(("qsub", script), os.path.dirname(script))
    if done.status or not done.out.split():
        return Judgement(False, complaint(done), "qsub")
    job = done.out.split()[-1]
    comment, state = "", "Q"
    try:
        end = time.monotonic() + _PATIENCE
        while not comment and state in "QHW" and time.monotonic() < end:
            time.sleep(0.5)
            fields = next((one for _, one in records(host.output("qstat", "-f", job), r"Job Id: (\S+)")), {})
            comment, state = fields.get("comment", ""), fields.get("job_state", "Q")
    except SchedulerError:
        state = "E"  # it has ended and is forgotten
    finally:
        done = host.call(("qdel", job))
    if state == "Q" and done.status:
        raise SchedulerError(f"qdel {job} failed: {complaint(done)}: delete it")
    good = "Can Never Run" not in comment
    return Judgement(
        good, comment or ("it started" if state != "Q" else "it waits, without a comment"), f"qsub, job {job}"
    )


def configured() -> str:
    """Return the host of the server in the configuration of PBS Pro or Torque, without its domain."""
    named = os.environ.get("PBS_SERVER") or os.environ.get("PBS_DEFAULT")
    conf = os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf")
    name = named or first_file((conf,), r"(?m)^\s*PBS_SERVER\s*=\s*(\S+)") or first_file(_TORQUE, r"(\S+)")
    return name.partition(".")[0]


def server(patience: float, host: Host = HERE) -> str:
    """Return the name of the server's host, without its domain."""
    return _server(host.output(*PROBES["server"], patience=patience))[0].partition(".")[0]


def queues(patience: float) -> Iterator[str]:
    """Yield the names of the queues."""
    yield from (name for name, _ in records(HERE.output(*PROBES["queues"], patience=patience), QUEUE))


def read(qstat: str, pbsnodes: str, server: str = "") -> Facts:
    """Return the facts from ``qstat -Qf``, ``pbsnodes -a`` and ``qstat -Bf``."""
    unread: list[str] = []
    hosts = list(hosts_of(pbsnodes, Reading(PROBES["pbsnodes"], unread)).values())
    reading = Reading(PROBES["queues"], unread)
    resource = "npu" if any(host.fields.keys() & _NPUS for host in hosts) else "gpu"
    gpu_type = _type_resource(hosts)
    name, common = _server(server)
    queues = dict(records(qstat, QUEUE))
    facts = [_queue(queue, fields, common, hosts, gpu_type, reading) for queue, fields in queues.items()]
    return Facts(
        name.partition(".")[0] or "cluster",
        tuple(_routed(one, queues, facts) for one in facts),
        resource,
        version=common.get("pbs_version", "").partition("_")[0],
        gpu_type=gpu_type,
        unread=tuple(dict.fromkeys(unread)),
    )


def _server(text: str) -> tuple[str, Mapping[str, str]]:
    """Return the name of the server in ``qstat -Bf``, and its fields."""
    head = re.search(r"(?m)^Server: (\S+)", text)
    fields = next((fields for _, fields in records(text, r"Server: (\S+)")), {})
    return fields.get("server_host") or (head[1] if head else ""), fields


def _type_resource(hosts: Sequence[ExecutionHost]) -> str:
    """Return the resource of PBS Pro that has the type of the devices: each host with devices has it, and its
    name says so."""
    having = [host.fields for host in hosts if number_of(host.kind)]
    names = sorted(set.intersection(*(set(fields) for fields in having))) if having else []
    return next(
        (
            found[1]
            for name in names
            if (found := re.fullmatch(r"resources_available\.([A-Za-z]\w{0,63})", name, re.ASCII))
            and re.fullmatch(_TYPES, found[1], re.IGNORECASE)
            and all(re.fullmatch(TYPE, fields[name], re.ASCII) for fields in having)
        ),
        "",
    )


def _queue(
    name: str,
    fields: Mapping[str, str],
    server: Mapping[str, str],
    hosts: Sequence[ExecutionHost],
    gpu_type: str,
    reading: Reading,
) -> QueueFacts:
    """Return a queue with its nodes; limits that it does not state are those of the server."""

    limits = {**{key: value for key, value in server.items() if key.startswith("resources_")}, **fields}

    def of_job(end: str, resource: str) -> int | None:
        return reading.value(limits, f"resources_{end}.{resource}")

    own = [host for host in hosts if _serves(host, name, fields)]
    routes = fields.get("route_destinations", "")
    memory = next((key for key in ("default_chunk.mem", "resources_default.mem") if key in limits), "")
    limits_of_gpus = (_of_user(fields.get("max_run_res.ngpus", "")), of_job("max", "ngpus"))
    max_gpus = min((one for one in limits_of_gpus if one is not None), default=None)
    most_memory = reading.value(limits, "resources_max.mem", _size)
    nodes = [_within(_typed(host, gpu_type), most_memory) for host in own]
    sharing = [host.fields["sharing"] for host in own if "sharing" in host.fields]
    return QueueFacts(
        name,
        default=server.get("default_queue") == name,
        least_nodes=of_job("min", "nodect"),
        most_nodes=of_job("max", "nodect")
        or (None if routes else max(len(own), of_job("min", "nodect") or 0) or None),
        walltime=reading.value(limits, "resources_max.walltime", seconds),
        kinds=() if routes else grouped(without_devices(nodes) if max_gpus == 0 else nodes),
        memory=Memory(node=reading.value(limits, memory, _size)),
        # PBS leaves out false values.
        enabled=fields.get("enabled") == "True" and fields.get("from_route_only") != "True",
        started=fields.get("started") == "True",
        shared=False if sharing and all("excl" in one for one in sharing) else None,
        routes_to=tuple(one.partition("@")[0].strip() for one in routes.split(",") if one.strip()),
        max_jobs=_of_user(fields.get("max_run", "")) or count(fields.get("max_user_run", "")),
        max_gpus=max_gpus,
        min_gpus=of_job("min", "ngpus"),
        min_cores=of_job("min", "ncpus"),
        max_cores=of_job("max", "ncpus"),
        groups=_allowed(fields, "group"),
        users=_allowed(fields, "user"),
    )


def _serves(host: ExecutionHost, queue: str, fields: Mapping[str, str]) -> bool:
    """Return whether a host runs jobs of a queue: it is assigned to the queue, or has the resource that each
    chunk of the queue requests by default, or the property of Torque's neednodes."""
    if host.queues:
        return queue in host.queues
    needs = fields.get("resources_default.neednodes", "")
    if needs and not set(needs.split(":")) <= {host.name, *host.kind.features}:
        return False
    for key, value in fields.items():
        resource = key.removeprefix("default_chunk.")
        if resource != key and resource not in _AMOUNTS:
            there = host.fields.get(f"resources_available.{resource}", "").split(",")
            if value not in there:
                return False
    return True


def _typed(host: ExecutionHost, gpu_type: str) -> NodeKind:
    """Return the resources of a host, its devices with the type that the resource of PBS Pro has."""
    kind = host.fields.get(f"resources_available.{gpu_type}", "")
    return host.kind._replace(devices=tuple((kind, number) for _, number in host.kind.devices))


def _within(kind: NodeKind, most_memory: int | None) -> NodeKind:
    """Return a kind of nodes with the memory that a job in the queue gets at most."""
    return kind._replace(memory=min(filter(None, (kind.memory, most_memory)), default=None))


def _allowed(fields: Mapping[str, str], what: str) -> tuple[str, ...]:
    """Return the groups or users in an access list of a queue, without hosts: ``alice@*``; none without a
    list, and if it only names those that the queue refuses: ``-bob``."""
    text = fields.get(f"acl_{what}s", "") if fields.get(f"acl_{what}_enable") == "True" else ""
    names = (one.strip().removeprefix("+").partition("@")[0] for one in text.split(","))
    return tuple(name for name in names if name and name[0] != "-")


def _of_user(text: str) -> int | None:
    """Return the limit of any user in ``[u:PBS_GENERIC=2],[u:alice=5]``."""
    found = re.search(r"\[u:PBS_GENERIC=(\d{1,9})\]", text, re.ASCII)
    return count(found[1]) if found else None


def _routed(
    queue: QueueFacts, queues: Mapping[str, Mapping[str, str]], facts: Sequence[QueueFacts]
) -> QueueFacts:
    """Return a routing queue with the routes that are enabled, and with the nodes of these; with none if one
    is on another server."""
    if any(route not in queues for route in queue.routes_to):
        return queue._replace(routes_to=())
    routes = tuple(
        dict.fromkeys(route for route in queue.routes_to if queues[route].get("enabled") == "True")
    )
    kinds = dict.fromkeys(kind for one in facts if one.name in routes for kind in one.kinds)
    return queue._replace(routes_to=routes, kinds=queue.kinds or tuple(kinds))


def records(text: str, head: str) -> Iterable[tuple[str, dict[str, str]]]:
    """Yield records: a line at the margin, and its ``key = value`` lines, which are indented; a line that
    begins with a tab continues the one before."""
    name: str | None = None
    fields: dict[str, str] = {}
    for line in [*text.replace("\n\t", "").splitlines(), ""]:
        if not line.strip() or not line[0].isspace():
            if name is not None:
                yield name, fields
            start = re.fullmatch(head, line.strip())
            name, fields = (start[1] if start else None), {}
        elif " = " in line:
            key, _, value = line.strip().partition(" = ")
            fields[key] = value


class ExecutionHost(NamedTuple):
    """A host that runs jobs: the sum of its vnodes, their fields, and the queues that they serve."""

    name: str
    kind: NodeKind
    fields: Mapping[str, str]
    queues: frozenset[str]


def hosts_of(pbsnodes: str, reading: Reading | None = None) -> dict[str, ExecutionHost]:
    """Return the hosts in ``pbsnodes -a`` by name; PBS Pro may divide a host into vnodes."""
    reading = reading or Reading(PROBES["pbsnodes"], [])
    vnodes: dict[str, list[Mapping[str, str]]] = {}
    for name, fields in records(pbsnodes, r"(\S+)"):
        vnodes.setdefault(fields.get("resources_available.host", name), []).append(fields)
    return {name: _host(name, parts, reading) for name, parts in vnodes.items()}


def _host(name: str, vnodes: Sequence[Mapping[str, str]], reading: Reading) -> ExecutionHost:
    def total(parse: Callable[[str], int | None], *keys: str) -> int | None:
        numbers = [reading.value(one, next((key for key in keys if key in one), ""), parse) for one in vnodes]
        return sum(filter(None, numbers)) or None

    memory = total(_size, "resources_available.mem")
    gpus = total(count, "resources_available.ngpus", *_NPUS, "gpus")
    fields = {key: value for one in reversed(vnodes) for key, value in one.items()}
    kind = NodeKind(
        cores=total(count, "resources_available.ncpus", "np"),
        memory=memory or _size(_status(fields.get("status", ""), "physmem")),
        devices=(("", gpus),) if gpus else (),
        features=tuple(one.strip() for one in fields.get("properties", "").split(",") if one.strip()),
    )
    return ExecutionHost(name, kind, fields, frozenset(one["queue"] for one in vnodes if "queue" in one))


def _size(text: str) -> int | None:
    return mebibytes(text, "b")


def _status(text: str, key: str) -> str:
    """Return a value in Torque's ``status = a=1,b=2``."""
    found = re.search(rf"(?:^|,){key}=([^,]*)", text)
    return found[1] if found else ""
