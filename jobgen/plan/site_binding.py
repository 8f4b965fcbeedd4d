"""The cores that a site lists for the ranks of a node: which ranks are bound to them, and by what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobgen.launch.launchers import LAUNCHERS
from jobgen.topology import cpus as processors

if TYPE_CHECKING:
    from jobgen.plan.allocation import Resources
    from jobgen.spec import Specification

SITE = "site"  # a binding to the lists of a site, without which a rank runs unbound


def cpu_lists(lists: tuple[str, ...] | None, ranks: int) -> dict[str, str | None]:
    """Return the lists of CPUs for PALS and as masks for Slurm; None if there is not one for each rank."""
    if not lists or len(lists) != ranks:
        return {"cpu_lists": None, "cpu_masks": None}
    return {"cpu_lists": ":".join(lists), "cpu_masks": ",".join(map(processors.mask, lists))}


def option_binds(spec: Specification, resources: Resources) -> bool:
    """Return whether the option ``bind`` of the site binds the ranks. It does not with --cpu-bind, and with
    lists only if these are for the ranks of the job."""
    assert spec.site is not None
    bind = spec.site.file.rules.bind
    lists = spec.site.node(spec.queue).cpu_lists or ()
    fits = len(lists) == resources.ranks_per_node and not _may_lack_cores(spec, resources)
    return bool(bind) and spec.cpu_bind is None and ("{cpu_" not in bind or fits)


def rank_binding(
    spec: Specification, resources: Resources, launcher: str, ranks: int
) -> tuple[str, tuple[str, ...]] | None:
    """Return the binding of ranks that bind themselves to the lists of the site, as no option of their
    launcher does; None if they do not."""
    from jobgen.sites.defaults import cores_of

    if spec.site is None or spec.cpu_bind is not None or not LAUNCHERS[launcher].once_a_node:
        return None
    node, cpus = spec.site.node(spec.queue), resources.cpus
    lists = node.cpu_lists or ()
    if len(lists) != ranks or resources.mixed or not resources.gpus_per_node:
        return None
    if _may_lack_cores(spec, resources) or cpus.node < (cores_of(node, resources.gpus_per_node) or 0):
        return None
    narrow = any(len(processors.read(one)) < cpus.rank for one in lists)
    own = any(re.search("bind|affinity", word) for word in spec.launcher_arg)
    return None if narrow or own else (SITE, lists)


def _may_lack_cores(spec: Specification, resources: Resources) -> bool:
    """Return whether other jobs may have the listed cores: on shared nodes, unless the job has all of a node,
    by --exclusive or by all GPUs and all their cores."""
    from jobgen.sites.defaults import cores_of

    assert spec.site is not None
    queue = spec.site.queues.get(spec.queue) if spec.queue else None
    if queue is None or not queue.shared or spec.exclusive:
        return False
    node, gpus = spec.site.node(spec.queue), resources.gpus_per_node
    return gpus != (node.gpus or 0) or resources.cpus.node != (cores_of(node, gpus) or resources.cpus.node)
