"""The sizes of a Slurm job for conversion: those of a node, or of a rank if Slurm chooses the nodes.

What each option counts: https://slurm.schedmd.com/sbatch.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobgen.errors import counted
from jobgen.values.devices import device_count
from jobgen.values.parsers import mebibytes, number

if TYPE_CHECKING:
    from jobgen.schedulers.request import DirectiveOption, Request
    from jobgen.script.dialects.script_request import ScriptRequest

_PER_NODE = ("--mem", "--gres", "--gpus-per-node")


def complete(content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
    """Set the sizes that follow from others, and note what Slurm decides itself."""
    request = content.request
    values = {flag: option.value for flag, option in given.items()}
    if request.nodes is None and "--nodes" not in given and content.whole:
        _choose_nodes(content, given, values)
    elif request.nodes and request.ranks and request.ranks < request.nodes and "--ntasks" in given:
        why = f"sbatch requests {counted(request.ranks, 'node')} for {counted(request.ranks, 'task')}"
        content.unsure.append((given["--nodes"], f"--nodes={request.nodes}", why))
        request.nodes, request.ranks_per_node = request.ranks, 1
    elif request.nodes and request.ranks and request.ranks % request.nodes == 0 and "--ntasks" in given:
        if request.ranks > request.nodes > 1 and request.ranks_per_node != request.ranks // request.nodes:
            why = f"{request.ranks // request.nodes} on each node, which Slurm may place unevenly"
            content.unsure.append((given["--ntasks"], f"--ntasks={request.ranks}", why))
        request.ranks_per_node = request.ranks // request.nodes  # --ntasks-per-node is then only a maximum
    elif request.nodes and request.ranks and "--ntasks" in given:
        request.ranks_per_node = None
    total, each = (number(values.get(one)) for one in ("--ntasks", "--ntasks-per-node"))
    if each and total and 1 < total < each * (request.nodes or 1):  # job_mgr.c: pn_min_cpus
        why = f"Slurm gives each node the cores of {each} tasks, the new job those of the {total} tasks only"
        content.unsure.append((given["--ntasks-per-node"], f"--ntasks-per-node={each}", why))
    _devices(request, values, content.whole)
    _cores_and_memory(request, given)
    if request.ranks is None and content.whole:
        request.ranks = request.nodes
    if request.exclusive:
        why = "all cores and GPUs of the nodes are the job's: request their number"
        if request.gpus_per_node:
            why += f"; the new job has {request.gpus_per_node} of the GPUs of each node"
        content.unsure.append((given["--exclusive"], "--exclusive", why))


def _choose_nodes(
    content: ScriptRequest, given: Mapping[str, DirectiveOption], values: Mapping[str, str]
) -> None:
    """Choose one node for one rank and for requests of each node; otherwise ranks are placed freely."""
    request = content.request
    if request.gpus and request.gpus_per_node and request.gpus % request.gpus_per_node == 0:
        request.nodes = request.gpus // request.gpus_per_node
        if request.nodes > 1 and request.ranks and request.ranks % request.nodes == 0:
            request.ranks_per_node = request.ranks // request.nodes
        if request.nodes > 1:
            return
    content.default_nodes = request.ranks is None and request.gpus is None
    if request.ranks is None and request.ranks_per_node:
        request.nodes, request.ranks = 1, request.ranks_per_node
        return
    ranks = request.ranks or 1
    each = next((given[flag] for flag in _PER_NODE if flag in given), None)
    spread = request.gpus is not None and (ranks == 1 or request.gpus % ranks)
    if ranks == 1 or each or spread:
        request.nodes = 1
        request.ranks_per_node = ranks if request.ranks else None
    if ranks > 1 and each:
        why = f"Slurm chooses the nodes of {ranks} tasks: one node is requested; "
        why += "add --nodes if it is too small"
        content.unsure.append((each, f"{each.flag}={each.value} of each node", why))
    elif spread and (request.gpus or 0) > 1:
        why = "Slurm chooses the nodes of these GPUs: one node is requested; add --nodes if it is too small"
        content.unsure.append((given["--gpus"], f"--gpus={values['--gpus']}", why))


def _devices(request: Request, values: Mapping[str, str], whole: bool) -> None:
    per_rank = device_count(values.get("--gpus-per-task", ""))
    if request.gpus_per_node is None and per_rank and (whole or request.ranks_per_node):
        request.gpus_per_node = per_rank * (request.ranks_per_node or 1)
    if request.gpus_per_node is None and request.gpus and (whole or request.nodes):
        request.gpus_per_node = request.gpus // (request.nodes or request.ranks or 1)


def has_one_task(request: Request) -> bool:
    """Return whether a node has one task of the job."""
    return (request.ranks_per_node or request.ranks or 1) == 1


def _cores_and_memory(request: Request, given: Mapping[str, DirectiveOption]) -> None:
    ranks, gpus = request.ranks_per_node or 1, request.gpus_per_node or 0
    per_gpu = number(given["--cpus-per-gpu"].value) if "--cpus-per-gpu" in given else None
    if request.cpus_per_rank is None and per_gpu and gpus:
        request.cpus_per_rank = max(per_gpu * gpus // ranks, 1)
    least = number(given["--mincpus"].value) if "--mincpus" in given else None
    if least and has_one_task(request):  # which gets all cores of its node that the job has
        request.cpus_per_rank = max(request.cpus_per_rank or 1, least)
    times = {"--mem": 1, "--mem-per-cpu": (request.cpus_per_rank or 1) * ranks, "--mem-per-gpu": gpus}
    options = [given[flag] for flag in times if flag in given]
    if options:
        last = max(options, key=lambda option: option.line)  # it replaces the others
        size = mebibytes(last.value)
        request.mem_per_node = size if last.flag == "--mem" else None
        request.mem_per_cpu = size if last.flag == "--mem-per-cpu" else None
        request.mem = size * times[last.flag] if size is not None and times[last.flag] else None
