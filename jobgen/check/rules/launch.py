"""Rules about launchers: their options compared with the resources of the job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import literal
from jobgen.check.rule import ERROR, WARNING, Rule
from jobgen.check.script import Hit, Script


def nodes_mismatch(script: Script) -> Iterator[Hit]:
    asked = script.request
    if not asked.nodes or not script.is_batch or len(asked.chunks) > 1:
        return
    for launch in script.launches:
        count = launch.number(*launch.row.line.nodes)
        if count is None or count == asked.nodes or launch.has("--standalone"):
            continue
        single = len([one for one in script.launches if one.kind == launch.kind]) == 1
        if count > asked.nodes:
            yield Hit(
                launch.line,
                f"{launch.kind} is told {count} nodes, but the job asks for {asked.nodes}",
                "make them agree: take the number from the scheduler",
            )
        elif single and launch.row.once_a_node and launch.outer is None and count == 1:
            yield Hit(
                launch.line,
                f"{launch.kind} is told one node, but the job pays for {asked.nodes}",
                "make them agree: take the number from the scheduler",
                WARNING,
            )


def ranks_mismatch(script: Script) -> Iterator[Hit]:
    asked = script.request
    if not script.is_batch or len(asked.chunks) > 1:
        return
    for launch in script.launches:
        each, gpus = launch.number(*launch.row.line.local_ranks), asked.gpus_per_node
        if each and gpus and each != gpus:
            more = each > gpus
            yield Hit(
                launch.line,
                f"{launch.kind} starts {each} ranks on a node of {gpus} GPUs"
                + ("" if more else f": {gpus - each} stay idle"),
                f"write {gpus}, or ask for {each}",
                None if more else WARNING,
            )
        total = launch.number(*launch.row.line.ranks)
        slots = _slots(script)
        if (
            total
            and slots
            and total > slots
            and not launch.has("--oversubscribe", "-oversubscribe", "--overcommit", "-O")
        ):
            yield Hit(
                launch.line,
                f"{launch.kind} is told {total} ranks, but the job has {slots} slots",
                "make them agree: take the number from the scheduler",
            )


def _slots(script: Script) -> int | None:
    """Return how many ranks a launcher may start; None if the request does not determine it."""
    asked = script.request
    if script.scheduler == "slurm":
        return asked.ranks
    if (
        asked.chunks
        and asked.nodes
        and asked.ranks_per_node
        and asked.chunks[0].get("ppn", asked.chunks[0].get("mpiprocs"))
    ):
        return asked.nodes * asked.ranks_per_node
    return None


def first_node_only(script: Script) -> Iterator[Hit]:
    """Yield a hit if torchrun runs in the batch script itself: it starts nothing on the other nodes."""
    if not script.is_batch or not script.request.several:
        return
    if any(script.named("ssh", "pdsh", "pbsdsh", "clush", "parallel", "pbs_tmrsh")):
        return
    for launch in script.launches:
        if not launch.row.line.reaches_nodes and launch.alone and not launch.command.background:
            others = (other for other in script.launches if not other.row.line.module_options)
            if launch.has("--standalone") or any(others):
                continue
            way = (
                "srun --ntasks-per-node=1"
                if script.scheduler == "slurm"
                else "mpirun or pbs_tmrsh, once a node"
            )
            yield Hit(
                launch.line,
                f"a batch script runs on the first node only: {launch.kind} there waits for the other "
                "nodes for ever, or leaves them idle",
                f"start it with {way}",
            )
            return


def nested_tasks(script: Script) -> Iterator[Hit]:
    """Yield a hit if srun starts one task per GPU and each task starts one rank per GPU."""
    for launch in script.launches:
        outer = launch.outer
        if not launch.row.once_a_node or outer is None or not outer.row.by_scheduler:
            continue
        tasks = outer.number("--ntasks-per-node")
        if tasks is None and not outer.has("-n", "--ntasks", "--ntasks-per-node"):
            tasks = script.request.ranks_per_node
        elif (
            tasks is None
            and outer.number("-n", "--ntasks")
            and (outer.number("-N", "--nodes") or script.request.nodes)
        ):
            nodes = outer.number("-N", "--nodes") or script.request.nodes or 1
            tasks = (outer.number("-n", "--ntasks") or 1) // nodes
        each = launch.number(*launch.row.line.local_ranks)
        if tasks and tasks > 1 and (each is None or each > 1):
            yield Hit(
                launch.line,
                f"{outer.kind} starts {tasks} tasks on each node, and in each of them {launch.kind} "
                "starts its ranks",
                "write srun --ntasks-per-node=1",
            )


def master_local(script: Script) -> Iterator[Hit]:
    if not script.request.several:
        return
    found = [(node.line, literal(value)) for name, value, node in script.assignments if name == "MASTER_ADDR"]
    for launch in script.launches:
        if not launch.has("--no-ssh-check"):
            found += [
                (launch.line, launch.options.get(name)) for name in ("--master-addr", "--main-process-ip")
            ]
            found.append((launch.line, (launch.options.get("--rdzv-endpoint") or "").rpartition(":")[0]))
    for line, text in found:
        if text in ("localhost", "127.0.0.1", "::1"):
            yield Hit(
                line,
                f"{text} is another machine on each of the {script.request.nodes} nodes: the ranks "
                "never meet",
                "take the first host of the job",
            )
            return


def fixed_master(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    for name, value, node in script.assignments:
        text = literal(value) or ""
        host = re.fullmatch(r"[A-Za-z][A-Za-z-]*\d[\w.-]*|\d+\.\d+\.\d+\.\d+", text)
        if name == "MASTER_ADDR" and host and not text.startswith("127."):
            yield Hit(
                node.line,
                f"the host {text} is written by hand: the scheduler gives the job others",
                "take the first host of the job",
            )


def fixed_node_rank(script: Script) -> Iterator[Hit]:
    for launch in script.launches:
        rank = launch.number("--node-rank", "--machine-rank")
        line = launch.row.line
        of_job = None if line.reaches_nodes or line.config_file else script.request.nodes
        nodes = launch.number(*line.nodes) or of_job or 1
        several = [one for one in script.launches if one.kind == launch.kind]
        if rank is not None and nodes > 1 and len(several) == 1 and script.is_batch:
            yield Hit(
                launch.line,
                f"the node rank is {rank} on every node: all take themselves for the same one",
                "let each node say who it is, such as SLURM_NODEID, expanded on that node",
            )


def pdsh_rsh(script: Script) -> Iterator[Hit]:
    if any(name == "PDSH_RCMD_TYPE" for name, _, _ in script.assignments):
        return
    for command in script.named("pdsh"):
        words = command.literals
        if "-R" not in words and "-Rssh" not in words and not any(word.startswith("ssh:") for word in words):
            yield Hit(
                command.line,
                "pdsh uses rsh, fails, and ends with status 0",
                "export PDSH_RCMD_TYPE=ssh",
            )
            return


RULES = (
    Rule("nodes-mismatch", ERROR, "A launcher is told other nodes than the job has", nodes_mismatch),
    Rule("ranks-mismatch", ERROR, "A launcher starts other ranks than the job has room for", ranks_mismatch),
    Rule("first-node-only", ERROR, "A launcher on the first node only", first_node_only),
    Rule("nested-tasks", ERROR, "Launchers inside each other", nested_tasks),
    Rule("local-master", ERROR, "localhost as the meeting place of several nodes", master_local),
    Rule("fixed-master", WARNING, "A master that is written by hand", fixed_master),
    Rule("fixed-node-rank", ERROR, "The same node rank everywhere", fixed_node_rank),
    Rule("pdsh-rsh", WARNING, "pdsh by rsh", pdsh_rsh),
)
