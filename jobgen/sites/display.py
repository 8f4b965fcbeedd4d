"""The output of a site: as TOML with the place of each value, or as JSON."""

from __future__ import annotations

import datetime
import json
import os
import re
from typing import Any

from jobgen.schedulers.table import named
from jobgen.sites.site_file import Site
from jobgen.sites.sources import by_group


def summary(site: Site) -> dict[str, Any]:
    """Return the entry of a site in the list of sites."""
    file = site.file
    return {
        "name": site.name,
        "title": file.title,
        "scheduler": scheduler(site),
        "date": max((one.date.isoformat() for one in file.source if one.date), default=None),
        "pages": list(dict.fromkeys(one.page for one in file.source if one.page)),
        "queues": list(file.queues),
        "file": site.path,
    }


def scheduler(site: Site) -> str:
    """Return ``slurm``, ``pbspro`` or ``torque``."""
    dialect = site.values.get("dialect")
    return named(site.file.scheduler, str(dialect) if dialect else None).name


def values(site: Site) -> dict[str, Any]:
    """Return the content of the site, ready for JSON."""
    content: dict[str, Any] = json.loads(json.dumps(dict(site.data), default=str))
    return content


def as_toml(site: Site) -> str:
    """Return the content as TOML, below its sources by group of facts; a comment after each value has its
    file and line."""
    lines = [f"# {site.name}: {site.path}", *(f"# {line}" for line in by_group(site))]
    if machine := site.machine:
        lines.append(f"# {machine.commands} on {machine.date}: {machine.path}")
    _table(site, dict(site.data), (), lines)
    return "\n".join(lines) + "\n"


def _table(site: Site, data: dict[str, Any], at: tuple[str, ...], lines: list[str]) -> None:
    sources = [] if at else data.pop("source", [])
    plain = {name: value for name, value in data.items() if not isinstance(value, dict)}
    if at and (plain or not data):
        lines += ["", f"[{'.'.join(map(key, at))}]"]
    _values(site, plain, at, lines)
    for number, source in enumerate(sources):
        lines += ["", "[[source]]"]
        _values(site, source, ("source", str(number)), lines)
    for name, value in data.items():
        if isinstance(value, dict):
            _table(site, value, (*at, name), lines)


def _values(site: Site, plain: dict[str, Any], at: tuple[str, ...], lines: list[str]) -> None:
    for name, value in plain.items():
        file, line = site.places[(*at, name)]
        lines.append(f"{key(name)} = {toml(value)}  # {os.path.basename(file)}, line {line}")


def key(name: str) -> str:
    """Return a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def toml(value: Any) -> str:
    """Return a value as TOML: like JSON, but dates are bare."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key(name)} = {toml(one)}' for name, one in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)
