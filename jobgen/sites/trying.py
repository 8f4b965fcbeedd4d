"""Whether the defaults of a site make a job: each may be good, and all together contradict each other."""

from __future__ import annotations

from jobgen.errors import JobgenError
from jobgen.plan import resolve
from jobgen.sites.filling import completed
from jobgen.sites.site import Site
from jobgen.spec import JobSpec


def try_defaults(site: Site) -> None:
    """Plan the smallest job of each queue until one is taken.

    Raises:
        JobgenError: none is; it says why the first one is not.
    """
    faults = []
    for queue in site.queues or (None,):
        try:
            resolve(_smallest(site, queue))
            return
        except JobgenError as error:
            faults.append(error)
    raise JobgenError(f"{site.path}: its own defaults make no job: {faults[0]}")


def _smallest(site: Site, queue: str | None) -> JobSpec:
    """A job that says nothing but what the site demands, by the examples of its file."""
    limits = site.queues.get(queue) if queue else None
    demanded = {**site.file.mandatory, **(limits.mandatory if limits else {})}
    said = {key: example for key, example in demanded.items() if not key.startswith("-")}
    directives = [f"{key}={example}" for key, example in demanded.items() if key.startswith("-")]
    nodes = limits.nodes[0] if limits and limits.nodes else None
    chosen = {**said, "queue": queue, "nodes": nodes, "directive": directives}
    return completed(JobSpec(site.file.scheduler, **chosen), site)  # type: ignore[arg-type]
