"""The processors that an option gives to each rank of a node. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from jobgen.topology import cpus
from jobgen.topology.cpus import Cpus


def of_option(words: str, ranks: int, depth: int, every: Cpus) -> list[Cpus] | None:
    """Return the processors of each rank by ``--cpu-bind`` of srun or of PALS's mpiexec.

    ``depth`` is the number of processors per rank, and ``every`` are all that the job has. None: there is no
    such option, or it leaves the choice to the scheduler. Of several, the last one counts.
    """
    values = re.findall(r"--cpu-bind[= ](?:(?:v|verbose|q|quiet),)*(\S+)", words)
    kind, _, value = values[-1].partition(":") if values else ("", "", "")
    if kind in ("none", "no"):
        return [every] * ranks
    if kind == "depth":
        return [frozenset(range(rank * depth, (rank + 1) * depth)) for rank in range(ranks)]
    read = {
        "list": lambda: [cpus.read(one) for one in value.split(":")],
        "mask_cpu": lambda: [cpus.read_mask(one) for one in value.split(",")],
        "map_cpu": lambda: [cpus.read(one) for one in value.split(",")],
    }.get(kind)
    lists = read() if read else []
    return [lists[rank % len(lists)] for rank in range(ranks)] if lists and all(lists) else None


def shares(
    kind: str, ranks: int, domains: Mapping[int, Cpus], cores: Sequence[Cpus], every: Cpus
) -> list[Cpus]:
    """Return the share of each rank in ``every`` for ``--cpu-bind cores`` or ``numa``.

    The script makes the same shares: templates/runtime/node/bind.sh.
    """
    of_domains = [one & every for one in domains.values() if one & every]
    if kind == "numa":
        units, least = of_domains, 1
    else:
        units, least = [core & one for one in of_domains for core in cores if core & one], 0
    ends = [rank * len(units) // ranks for rank in range(ranks + 1)]
    return [frozenset().union(*units[first : max(last, first + least)]) for first, last in pairwise(ends)]
