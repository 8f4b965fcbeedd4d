"""The steps of a job: each is a job of its own within the allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.errors import JobgenError
from jobgen.launch.launchers import LAUNCHERS
from jobgen.plan.site_binding import rank_binding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobgen.plan.allocation import Resources
    from jobgen.spec import Specification

# Options that need one program, or all nodes of the job.
_AGAINST = ("include", "exclude", "spare_nodes", "min_nodes", "preflight", "hostfile", "container")


def step_specs(spec: Specification, resources: Resources) -> Iterator[Specification]:
    """Yield the specification of each step; ``resources`` are those of the job.

    Raises:
        JobgenError: a step does not fit the allocation, or an option is for a job without steps.
    """
    for key in _AGAINST if spec.steps else ():
        if getattr(spec, key):
            raise spec.refuse(key, "is for a job without [[step]]")
    if spec.steps and (resources.mixed or not resources.nodes):
        raise spec.refuse("nodes", "the steps of a job need a number of equal nodes")
    _check_parallel(spec, resources)
    for number, step in enumerate(spec.steps, 1):
        most = {"nodes": resources.nodes, "ranks_per_node": resources.ranks_per_node}
        for key, limit in most.items():
            if (getattr(step, key) or 0) > limit:
                raise JobgenError(
                    f"{key} = {getattr(step, key)} ([[step]] {number}): the job has {limit}; "
                    f"increase {key} in [resources]"
                )
        launcher = spec.launcher_of(step)
        most_ranks = 1 if LAUNCHERS[launcher].one_process else resources.ranks_per_node
        ranks = step.ranks_per_node or most_ranks
        yield spec._replace(
            steps=(),
            away=step.parallel,
            program=step.program,
            launcher=launcher,
            nodes=step.nodes or resources.nodes,
            ranks_per_node=ranks,
            cpu_bind=spec.cpu_bind or rank_binding(spec, resources, launcher, ranks),
            cpus_per_rank=resources.cpus.rank,
            cpus_per_node=None,
            env=(*step.env, *spec.env),
            accelerator=resources.accelerator_name,
            gpus_per_node=resources.gpus_per_node if resources.gpus_per_node else None,
            preflight=False,
            directive=(),
            site=None,
            network=None,
            mpi=spec.mpi if launcher == spec.launcher else None,
        )


def _check_parallel(spec: Specification, resources: Resources) -> None:
    """Refuse steps at the same time that need more nodes than the job has."""
    start = 0
    for number, step in enumerate(spec.steps, 1):
        start = (start if step.parallel else 0) + (step.nodes or resources.nodes)
        if start > resources.nodes and step.parallel:
            raise JobgenError(
                f"parallel = true ([[step]] {number}): steps at the same time need {start} nodes, "
                f"but the job has {resources.nodes}; give each fewer nodes, or increase nodes in [resources]"
            )
