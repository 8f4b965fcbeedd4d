"""The sizes of a Slurm job for conversion: those of a node, or of a rank if Slurm chooses the nodes.

What each option counts: https://slurm.schedmd.com/sbatch.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers.request import number
from jobgen.values.parsers import mebibytes

if TYPE_CHECKING:
    from jobgen.schedulers.request import Option, Request
    from jobgen.schedulers.wanted import Wanted

_PER_NODE = ("--mem", "--gres", "--gpus-per-node")


def complete(wanted: Wanted, given: Mapping[str, Option]) -> None:
    """Set the sizes that follow from others, and note what Slurm decides itself."""
    asked = wanted.request
    values = {flag: option.value for flag, option in given.items()}
    if asked.nodes is None and "--nodes" not in given and wanted.whole:
        _choose_nodes(wanted, given, values)
    elif asked.nodes and asked.ranks and asked.ranks < asked.nodes and "--ntasks" in given:
        why = f"sbatch requests {asked.ranks} nodes for {asked.ranks} tasks"
        wanted.unsure.append((given["--nodes"], f"--nodes={asked.nodes}", why))
        asked.nodes, asked.ranks_per_node = asked.ranks, 1
    elif asked.nodes and asked.ranks and asked.ranks % asked.nodes == 0 and "--ntasks" in given:
        if asked.ranks > asked.nodes > 1 and asked.ranks_per_node != asked.ranks // asked.nodes:
            why = f"{asked.ranks // asked.nodes} on each node, which Slurm may place unevenly"
            wanted.unsure.append((given["--ntasks"], f"--ntasks={asked.ranks}", why))
        asked.ranks_per_node = asked.ranks // asked.nodes  # --ntasks-per-node is then only a maximum
    _devices(asked, values, wanted.whole)
    _cores_and_memory(asked, given)
    if asked.ranks is None and wanted.whole:
        asked.ranks = asked.nodes
    if asked.exclusive and asked.cpus_per_rank is None:
        why = "all cores of the nodes are the job's: request their number"
        wanted.unsure.append((given["--exclusive"], "--exclusive", why))


def _choose_nodes(wanted: Wanted, given: Mapping[str, Option], values: Mapping[str, str]) -> None:
    """Choose one node for one rank and for requests of each node; otherwise ranks are placed freely."""
    asked = wanted.request
    wanted.default_nodes = asked.ranks is None and asked.gpus is None
    if asked.ranks is None and asked.ranks_per_node:
        asked.nodes, asked.ranks = 1, asked.ranks_per_node
        return
    ranks = asked.ranks or 1
    each = next((given[flag] for flag in _PER_NODE if flag in given), None)
    spread = asked.gpus is not None and (ranks == 1 or asked.gpus % ranks)
    if ranks == 1 or each or spread:
        asked.nodes = 1
        asked.ranks_per_node = ranks if asked.ranks else None
    if ranks > 1 and each:
        why = (
            f"Slurm chooses the nodes of {ranks} tasks: one node is requested; add --nodes if it is too small"
        )
        wanted.unsure.append((each, f"{each.flag}={each.value} of each node", why))
    elif spread and (asked.gpus or 0) > 1:
        why = "Slurm chooses the nodes of these GPUs: one node is requested; add --nodes if it is too small"
        wanted.unsure.append((given["--gpus"], f"--gpus={values['--gpus']}", why))


def _devices(asked: Request, values: Mapping[str, str], whole: bool) -> None:
    per_rank = number(values.get("--gpus-per-task", "").rpartition(":")[2])
    if asked.gpus_per_node is None and per_rank and (whole or asked.ranks_per_node):
        asked.gpus_per_node = per_rank * (asked.ranks_per_node or 1)
    if asked.gpus_per_node is None and asked.gpus and (whole or asked.nodes):
        asked.gpus_per_node = asked.gpus // (asked.nodes or asked.ranks or 1)


def _cores_and_memory(asked: Request, given: Mapping[str, Option]) -> None:
    ranks, gpus = asked.ranks_per_node or 1, asked.gpus_per_node or 0
    per_gpu = number(given["--cpus-per-gpu"].value) if "--cpus-per-gpu" in given else None
    if asked.cpus_per_rank is None and per_gpu and gpus:
        asked.cpus_per_rank = max(per_gpu * gpus // ranks, 1)
    times = {"--mem": 1, "--mem-per-cpu": (asked.cpus_per_rank or 1) * ranks, "--mem-per-gpu": gpus}
    options = [given[flag] for flag in times if flag in given]
    if options:
        last = max(options, key=lambda option: option.line)  # it replaces the others
        size = mebibytes(last.value)
        asked.mem = size * times[last.flag] if size is not None and times[last.flag] else None
