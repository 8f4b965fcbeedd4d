"""The sources of a site's facts: the confidence and the date of each group of facts."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from jobgen.sites.site_file import CONFIDENCE, GROUPS, Site, Source

# The keys of a site file that state each group of facts; a key is followed by those in its table.
_KEYS = {
    "queues": ("queues",),
    "node": ("node",),
    "request": ("request", "directives", "lacks"),
    "binding": ("rules.bind", "rules.srun", "rules.srun_ranks", "rules.srun_nodes", "node.cpu_lists"),
    "network": (
        *("networks", "environment.env", "launcher", "launch.interface"),
        *("rules.master_addr", "rules.prepend"),
    ),
    "modules": (
        *("environment.module", "environment.module_init", "environment.module_use"),
        *("environment.conda", "rules.module_use"),
    ),
    "login": ("detect",),
    "accounting": ("mandatory", "rules.account"),
    "example": ("differs",),
}
_OLD = datetime.timedelta(days=365)


def of_group(site: Site, group: str) -> list[Source]:
    """Return the sources of a group of facts: the best confidence first, then the newest."""
    found = [one for one in site.file.source if group in one.facts]
    return sorted(found, key=lambda one: (CONFIDENCE.index(one.confidence), -_day(one).toordinal()))


def confidence(site: Site, group: str) -> str:
    """Return the best confidence of a group of facts: ``manual``, ``staff``, ``users`` or ``unknown``."""
    found = of_group(site, group)
    return found[0].confidence if found else CONFIDENCE[-1]


def newest(site: Site, group: str) -> datetime.date | None:
    """Return the date of the newest source of a group of facts; None if no source has a date."""
    return max((one.date for one in of_group(site, group) if one.date), default=None)


def groups_of(site: Site) -> list[str]:
    """Return the groups of facts that the site file has."""
    places = [*map(".".join, site.places)]
    return [
        group
        for group in GROUPS
        if any(f"{place}.".startswith(f"{key}.") for key in _KEYS[group] for place in places)
    ]


def doubts(site: Site, today: datetime.date) -> Iterator[str]:
    """Yield the reasons to doubt a group of facts: no source, users only, older than a year."""
    groups: dict[str, list[str]] = {}
    for group in groups_of(site):
        for reason in _reasons(site, group, today):
            groups.setdefault(reason, []).append(group)
    return (f"{', '.join(found)}: {reason}" for reason, found in groups.items())


def _reasons(site: Site, group: str, today: datetime.date) -> Iterator[str]:
    word, day = confidence(site, group), newest(site, group)
    if word == "users":
        yield "known from users only"
    elif word == CONFIDENCE[-1]:
        yield "no source is known"
    elif day is None:
        yield "the sources have no date"
    if day and today - day > _OLD:
        yield f"the newest source is of {day}, more than a year ago"


def by_group(site: Site) -> Iterator[str]:
    """Yield a line for each source of each group of facts: confidence, date and page."""
    for group in GROUPS:
        found = of_group(site, group)
        for one in found:
            yield f"{group:<10}  {one.confidence:<7}  {one.date or ''!s:<10}  {_where(one)}".rstrip()
        if not found and group in groups_of(site):
            yield f"{group:<10}  {CONFIDENCE[-1]}"


def pages(site: Site) -> list[str]:
    """Return a line for each page, with the date of its newest version, in the order of the site file."""
    days: dict[str, datetime.date] = {}
    for one in site.file.source:
        days[_where(one)] = max(_day(one), days.get(_where(one), datetime.date.min))
    return [f"{page} ({day})" if day > datetime.date.min else page for page, day in days.items()]


def _day(source: Source) -> datetime.date:
    return source.date or datetime.date.min


def _where(source: Source) -> str:
    return source.page or source.what
