"""A test of a site's defaults: each may be valid alone, but contradict another."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.options import CODE
from jobgen.plan.plan import resolve
from jobgen.rendering.hooks import check_syntax
from jobgen.sites.defaults import with_defaults
from jobgen.sites.site_file import Site
from jobgen.spec import Specification


def try_defaults(site: Site) -> None:
    """Plan the smallest job of each queue until a job is accepted without a warning.

    Raises:
        JobgenError: no job is accepted; the message is that of the first one.
    """
    faults: list[str] = []
    for queue in site.queues or (None,):
        try:
            plan = resolve(smallest(site, queue))
            check_syntax(plan.spec, CODE)
        except JobgenError as error:
            faults.append(str(error))
            continue
        if not plan.site.warnings:
            return
        faults.append(plan.site.warnings[0])
    raise JobgenError(f"{site.path}: no job is valid with its defaults: {faults[0]}")


def smallest(site: Site, queue: str | None, more: Mapping[str, str] = MappingProxyType({})) -> Specification:
    """Return a job with ``more`` and the mandatory values of the site, from the examples of its file."""
    limits = site.queues.get(queue) if queue else None
    demanded = {**site.file.mandatory, **(limits.mandatory if limits else {})}
    given: dict[str, str | list[str]] = {
        key: str(example) for key, example in demanded.items() if not key.startswith("-")
    }
    given["directive"] = [f"{key}={example}" for key, example in demanded.items() if key.startswith("-")]
    if queue:
        given["queue"] = queue
    if limits and limits.nodes:
        given["nodes"] = str(limits.nodes[0])
    return with_defaults(read_spec(site.file.scheduler, {**given, **more}, ["true"] if more else ()), site)
