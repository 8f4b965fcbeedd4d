"""Rules about the address and the port at which the ranks meet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.ranks.addresses import (
    Address,
    addresses,
    drawn_in,
    host,
    host_fault,
    is_last_host,
    loopback,
    port_ranges,
)
from jobgen.check.ranks.model import code_of_tasks, ranks
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import exported


@rule_once(
    "local-master",
    ERROR,
    "localhost as the master of several nodes",
    """`localhost` is a different machine on each node: the ranks of the other nodes never reach the master.
    """,
    fix="use the first host of the job",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    export MASTER_ADDR=localhost
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(scontrol show hostnames | awk 'NR == 1')
    export MASTER_ADDR
    srun python3 train.py
    """,
)
def master_local(script: Script) -> Iterator[Hit]:
    if not script.request.several:
        return
    alone = {one.line for one in script.launches if not _meets_others(one)}
    for one in addresses(script):
        text = host(script, one)
        own = one.name.startswith("--") and one.line in alone
        if text in ("localhost", "127.0.0.1", "::1") and not own:
            effect = f"the ranks of the other nodes {_NO_MASTER}"
            yield Hit(
                one.line, f"{text} is another machine on each of the {script.request.nodes} nodes: {effect}"
            )


_NO_MASTER = "wait for a master that is not there"


def _meets_others(launch: Launch) -> bool:
    """Return whether the ranks of a launcher meet those of other nodes at its address."""
    one = not launch.row.line.reaches_nodes and launch.number(*launch.row.line.nodes) == 1
    return not one and not launch.has("--no-ssh-check")


@rule(
    "fixed-master",
    WARNING,
    "A hand-written master",
    """The scheduler selects the hosts. A hand-written host may not be one of the next job.""",
    fix="use the first host of the job",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    export MASTER_ADDR=gpu-node07
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(scontrol show hostnames | awk 'NR == 1')
    export MASTER_ADDR
    srun python3 train.py
    """,
)
def fixed_master(script: Script) -> Iterator[Hit]:
    seen: set[str] = set()
    for one in addresses(script) if script.is_batch else ():
        text = host(script, one)
        named = re.fullmatch(r"[A-Za-z][A-Za-z-]*\d[\w.-]*|\d+\.\d+\.\d+\.\d+", text)
        if one.name != "MASTER_ADDR" and not script.request.several:
            continue
        if named and not text.startswith("127.") and text not in seen:
            seen.add(text)
            reason = f"the host {text} is written by hand: the scheduler allocates other hosts to the job"
            yield Hit(one.line, reason)


@rule_once(
    "master-address",
    ERROR,
    "An address that is not that of one host",
    """The ranks meet at the address of one host of the job. `$SLURM_JOB_NODELIST` is a compressed list, as
    `node[01-04]`: neither the list nor what stands before its first comma is a host. `scontrol show hostnames` and
    `cat $PBS_NODEFILE` print all hosts, one a line, and `$SLURM_SUBMIT_HOST` runs no rank. Of `srun hostname` the task that is the
    first to answer prints the first line, which may be any (a warning). (`hostname --ip-address` is a note: on
    many systems the name of a host has the address 127.0.0.1 there.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    export MASTER_ADDR=$SLURM_JOB_NODELIST
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(scontrol show hostnames | awk 'NR == 1')
    export MASTER_ADDR
    srun python3 train.py
    """,
)
def master_address(script: Script) -> Iterator[Hit]:
    dynamic = any(launch.has("--rdzv-endpoint") for launch in script.launches)  # any host will do
    fix = f"use the first host: {script.dialect.first_host}"
    yield from _beside_first(script)
    for one in addresses(script) if script.is_batch and script.request.several else ():
        if fault := host_fault(script, one):
            any_host = "answers first" in fault
            effect = f": {_waiting(script)} there for rank 0, which may run elsewhere"
            hang = ", not a host of the job: the ranks wait for each other forever"
            reason = f"{one.name} is {fault}{effect if any_host else hang}"
            yield Hit(one.line, reason, fix, WARNING if any_host else None)
        if not dynamic and is_last_host(script, one):
            reason = f"{one.name} is the last host: {_waiting(script)} there for rank 0, which runs on the first one"
            yield Hit(one.line, reason, fix, WARNING)
        if loopback(script, one):
            reason = "hostname --ip-address is 127.0.0.1 where /etc/hosts has the name of the host: the other nodes then"
            yield Hit(one.line, f"{reason} {_NO_MASTER}", fix, NOTE)


def _beside_first(script: Script) -> Iterator[Hit]:
    """Yield the launchers of a step on the hosts behind the first one that are to meet at the first one."""
    for launch in script.launches:
        step, endpoint = launch.outer, launch.place("--rdzv-endpoint", "--master-addr", "--main-process-ip")
        hosts = step.place("-w", "--nodelist") if step is not None and step.row.by_scheduler else None
        if hosts is None or endpoint is None or launch.has("--node-rank", "--machine-rank"):
            continue
        of_step = script.constants.text(hosts)
        texts = (endpoint.text, script.constants.text(endpoint))
        if _BEHIND_FIRST.search(of_step) and any(map(_OF_FIRST.search, texts)):
            runs = "this step runs on the nodes behind the first one, but its ranks wait for each other at the first one"
            yield Hit(launch.line, f"{runs} until the rendezvous times out", "use the first host of the step")


_BEHIND_FIRST = re.compile(
    r"\$\{\w+\[[@*]\]: ?1\}|\btail\s+(-n\s*)?\+2\b|\bsed\s+-?\w*\s*['\"]?1d|\bNR\s*(>|!=)\s*1\b"
)
_OF_FIRST = re.compile(r"\$\{\w+\[0\]\}|\bhead\s+-(n\s*)?1\b|\bNR\s*==\s*1\b|\bsed\s+-n\s+['\"]?1p")


def _waiting(script: Script) -> str:
    """Return the ranks that wait for rank 0, with their verb."""
    total = max((one.total or 0 for one in ranks(script)), default=0)
    return f"ranks 1 to {total - 1} wait" if total > 2 else "the other ranks wait"


@rule_once(
    "ephemeral-port",
    NOTE,
    "A port that the kernel gives to others",
    """Linux takes the ports of outgoing connections from 32768 to 60999: any of them may be in use when the
    rendezvous starts, and the job then fails with "Address already in use".""",
    fix="compute one below: MASTER_PORT=$((20000 + JOBID % 10000))",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export MASTER_PORT=$((40000 + SLURM_JOB_ID % 10000))
    srun python3 train.py
    """,
    good={
        "export MASTER_PORT=$((40000 + SLURM_JOB_ID % 10000))": "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"
    },
)
def ephemeral_port(script: Script) -> Iterator[Hit]:
    for one, least, greatest in port_ranges(script):
        if least < greatest <= _GREATEST and greatest >= _FIRST and least <= _LAST and _is_read(script, one):
            reason = f"{one.name} is from {least} to {greatest}: Linux gives the ports from {_FIRST} to {_LAST} to outgoing connections"
            yield Hit(one.line, reason)


def _is_read(script: Script, port: Address) -> bool:
    """Return whether a port is a word of a command, or a variable that the script names again or exports."""
    assignment = port.node.around("variable_assignment")
    named = re.findall(rf"\b{port.name}\b", script.tree.text)
    return assignment is None or exported(assignment) or len(named) > 1


_FIRST, _LAST = 32768, 60999  # net.ipv4.ip_local_port_range


@rule_once(
    "large-port",
    WARNING,
    "A port above 65535",
    """There are 65535 ports. The id of a job grows without a limit: `10000 + SLURM_JOB_ID` is no port from job 55536
    on, and the rendezvous fails. The rest of a division keeps the number small.""",
    fix="write $((20000 + JOBID % 10000))",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export MASTER_PORT=$((10000 + SLURM_JOB_ID))
    srun python3 train.py
    """,
    good={
        "export MASTER_PORT=$((10000 + SLURM_JOB_ID))": "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"
    },
)
def large_port(script: Script) -> Iterator[Hit]:
    for one, least, greatest in port_ranges(script):
        if greatest > _GREATEST:
            always = least > _GREATEST
            reason = f"is {least}" if least == greatest else "grows with the id of the job"
            reason = f"{one.name} {reason}, and there are 65535 ports"
            yield Hit(one.line, reason, level=ERROR if always else None)


_GREATEST, _SYSTEM = 65535, 1000


@rule_once(
    "low-port",
    WARNING,
    "A port below 1024",
    """Only root may listen at a port below 1024: "Permission denied". The last four digits of a job's id are below it in one
    of ten jobs, and services of the node use the next ones.""",
    fix="write $((20000 + JOBID % 10000))",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export MASTER_PORT=${SLURM_JOB_ID: -4}
    srun python3 train.py
    """,
    good={"export MASTER_PORT=${SLURM_JOB_ID: -4}": "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"},
)
def low_port(script: Script) -> Iterator[Hit]:
    for one, least, greatest in port_ranges(script):
        if least < _SYSTEM and 0 < greatest <= _GREATEST:
            always = greatest <= _SYSTEM
            reason = f"{one.name} {'is' if always else 'may be'} below 1024, a port of root only"
            yield Hit(one.line, reason, level=ERROR if always else None)


@rule_once(
    "other-port",
    ERROR,
    "A port at which nothing of the job listens",
    """Who joins must name the port at which the other one listens: Ray's workers that of `ray start --head` (6379 by
    default), the nodes of a rendezvous the same `--master_port`. Otherwise the connection is refused, or they wait until
    the rendezvous times out. (A client on the node of a server, such as `vllm serve`, is a warning.)""",
    fix="write the port once, in a variable",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    head=$(scontrol show hostnames | awk 'NR == 1')
    srun bash -c 'if [ "$SLURM_NODEID" = 0 ]; then ray start --head --block; else ray start --address="$1:6380" --block; fi' _ "$head"
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    head=$(scontrol show hostnames | awk 'NR == 1')
    srun bash -c 'if [ "$SLURM_NODEID" = 0 ]; then ray start --head --block; else ray start --address="$1:6379" --block; fi' _ "$head"
    """,
)
def other_port(script: Script) -> Iterator[Hit]:
    yield from _of_workers(script)
    yield from _of_nodes(script)
    yield from _of_clients(script)


def _of_workers(script: Script) -> Iterator[Hit]:
    """Yield the workers of Ray that look for its head at another port."""
    started = [(one, " ".join(one.texts)) for one in script.started]
    ray = [(one, text) for one, text in started if re.match(r"\S*\bray start\b", text)]
    ports = {_port(r"--port", text) or _OF_RAY for _, text in ray if "--head" in text}
    for one, text in ray if len(ports) == 1 else ():
        pairs, port = pairwise([*one.texts, ""]), next(iter(ports))
        given = [after if word == "--address" else word for word, after in pairs if "--address" in word]
        other = given[-1].strip("\"'").rpartition(":")[2] if given else port
        if "--head" not in text and port.isdigit() and other.isdigit() and other != port:
            yield Hit(one.line, f"the worker joins Ray at port {other}, but its head listens at {port}")


_OF_RAY = "6379"


def _port(name: str, text: str) -> str:
    """Return the value of an option with a port."""
    match = re.search(rf"(?:^|\s)(?:{name})[= ][\"']?([^\s\"']+)", text)
    return match[1] if match else ""


def _of_nodes(script: Script) -> Iterator[Hit]:
    """Yield the launcher of a node that joins the others at another port than that of the first node."""
    found: list[tuple[Launch, int, str, tuple[str, str]]] = []
    for launch in script.launches:
        rank = launch.number("--node-rank", "--machine-rank")
        nodes = launch.number(*launch.row.line.nodes) or 1
        port = launch.text("--master-port", "--main-process-port")
        if rank is not None and port.isdigit() and nodes > 1:
            found.append((launch, rank, port, (launch.kind, str(nodes))))
    first = {key: (launch.line, port) for launch, rank, port, key in found if rank == 0}
    for launch, rank, port, key in found:
        line, own = first.get(key, (0, port))
        if port != own:
            reason = f"node {rank} joins at port {port}, but node 0, in line {line}, listens at {own}"
            yield Hit(launch.line, reason)


def _of_clients(script: Script) -> Iterator[Hit]:
    """Yield the words with a port of this node, if the servers of the script listen at others."""
    texts = [" ".join(one.texts) for one in script.started]
    servers = {" ".join(match[1].split()) for text in texts for match in _SERVER.finditer(text)}
    given = {port for text in texts if (port := _port("--port|-p", text))}
    if len(servers) != 1 or not all(map(str.isdigit, given)):
        return
    name = servers.pop()
    listening = given or {"30000" if "sglang" in name else "8000"}
    words = ((one.line, script.constants.text(word)) for one in script.commands for word in one.arguments)
    for line, text in words:
        match = _CLIENT.search(text)
        elsewhere = rf"(?<!\d)(?<!localhost:)(?<!127\.0\.0\.1:){match[2]}(?!\d)" if match else ""
        if match and match[2] not in listening and not re.search(elsewhere, script.tree.text):
            ports = " and ".join(sorted(listening))
            reason = f"{match[0]} is not the port at which {name} listens, {ports}"
            yield Hit(line, reason, level=WARNING)


# The programs that serve a model: at port 8000 by default, and sglang at 30000.
_SERVER = re.compile(
    r"(?:^|[\s/])(vllm\s+serve|vllm\.entrypoints\.openai\.api_server|trl\s+vllm-serve|sglang\.launch_server)\b"
)
_CLIENT = re.compile(r"https?://(localhost|127\.0\.0\.1):(\d{2,5})\b")


@rule_once(
    "random-rendezvous",
    ERROR,
    "A rendezvous that each task chooses at random",
    """Code that every task runs draws another random number in each of them: the nodes use different ports, or
    join different rendezvous, and wait for each other until the time limit. The id of the job is the same
    everywhere, and different from those of other jobs.""",
    fix="choose it in the script, above the launcher, or compute it from the id of the job",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(hostname)
    export MASTER_ADDR
    srun bash -c 'exec torchrun --nnodes=2 --nproc-per-node=4 --rdzv-id=$RANDOM --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:0" train.py'
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(hostname)
    export MASTER_ADDR
    srun bash -c 'exec torchrun --nnodes=2 --nproc-per-node=4 --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:0" train.py'
    """,
)
def random_rendezvous(script: Script) -> Iterator[Hit]:
    for code in code_of_tasks(script):
        if code.group is None and not _JOINS.search(code.tree.text):
            continue  # each task may train alone
        several = (code.nodes or 1) > 1 or (not code.sets_ranks and (code.tasks or 1) > 1)
        text = code.group.text if code.group is not None else None
        for line, name in drawn_in(code.tree, text) if several else ():
            reason = f"{name} differs in each task: the nodes get different values, and wait for each other"
            yield Hit(line, reason)


_JOINS = re.compile(r"\bRANK\b|WORLD_SIZE|PROCID|NODEID|--nnodes|--num[-_]machines")
