"""Reader of site files: each is checked alone, so that errors have a file and line; then they are merged."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from jobgen.errors import JobgenError, shown
from jobgen.jobfile.errors import Path, sentence
from jobgen.jobfile.locations import line_of
from jobgen.jobfile.reader import decode, options_of, read_text
from jobgen.jobfile.schema import OptionTables
from jobgen.jobfile.tables import TABLES
from jobgen.schedulers.table import named
from jobgen.sites.machine import with_machine
from jobgen.sites.search import find
from jobgen.sites.site_errors import site_sentence
from jobgen.sites.site_file import Site, SiteFile
from jobgen.sites.value_checks import check_site

Places = dict[Path, tuple[str, int | None]]


def load(name: str, origin: str | None = None, beside: str | None = None, machine: bool = True) -> Site:
    """Return a site by its name, or by the path of its file, with all that it extends.

    ``machine``: with the facts that ``jobgen site refresh`` has kept.

    Raises:
        JobgenError: there is no such site, or something in its file is wrong.
    """
    return read_site(find(name, origin or f"site {shown(name)}", beside), machine)


def files(name: str) -> list[str]:
    """Return the paths of a site's file and of those that it extends."""
    return [path for path, *_ in _chain(find(name, f"site {shown(name)}"))]


def choose(name: str, origin: str, scheduler: str, beside: str) -> Site:
    """Return the site of a job, which must have this scheduler (a command's name).

    Raises:
        JobgenError: there is no such site, something in it is wrong, or it has another scheduler.
    """
    setting = f"{'--site' if origin == 'command line' else 'site ='} {shown(name)} ({origin})"
    site = load(name, setting, beside)
    if site.file.scheduler != scheduler:
        local = named(scheduler, None).behaviour.one_host
        other = "a local run has no site" if local else f"{site.title} has {site.scheduler.title}"
        leave = "use --site none" if local else f"use jobgen {site.file.scheduler}"
        raise JobgenError(f"{setting}: {other}; {leave}")
    return site


def read_site(path: str, machine: bool = True) -> Site:
    """Return the site of a file, merged with the sites that it extends and with the facts of the machine.

    Raises:
        JobgenError: a file cannot be read, something in it is wrong, or files extend each other in a circle.
    """
    data: dict[str, Any] = {}
    places: Places = {}
    chain = _chain(path)
    for one, text, table in reversed(chain):
        _check(table, _origin(one, text))
        data = _merged(data, table, (), one, text, places)
    data.pop("extends", None)  # done
    site = _site(path, data, places)
    return with_machine(site, [_name(one) for one, _, _ in chain]) if machine else site


def _chain(path: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return path, text and content of the file and of those that it extends, in this order. A file that is
    extended may be next to the other."""
    chain: list[tuple[str, str, dict[str, Any]]] = []
    while True:
        text = read_text(path, f"the site file {shown(path)}")
        data = decode(text, path)
        chain.append((path, text, data))
        base = data.get("extends")
        if not isinstance(base, str):
            return chain
        where = f"extends = {shown(base)} ({_origin(path, text)(('extends',))})"
        path = find(base, where, os.path.dirname(path), after=path if base == _name(path) else None)
        if any(os.path.realpath(path) == os.path.realpath(one) for one, _, _ in chain):
            circle = " -> ".join(_name(one) for one, _, _ in (*chain, (path, "", {})))
            raise JobgenError(f"{where}: the sites extend each other in a circle: {circle}")


def _name(path: str) -> str:
    return os.path.basename(path).removesuffix(".toml")


def _origin(path: str, text: str) -> Callable[[Path], str]:
    def origin(place: Path) -> str:
        line = line_of(text, place)
        return f"{path}, line {line}" if line else path

    return origin


def _check(data: Mapping[str, Any], origin: Callable[[Path], str]) -> None:
    """Check the types and keys of one file."""
    own = {key: value for key, value in data.items() if key not in TABLES}
    try:
        msgspec.convert(own, SiteFile)
    except msgspec.ValidationError as error:
        raise JobgenError(site_sentence(str(error), own, origin)) from None
    tables = {key: value for key, value in data.items() if key in TABLES}
    try:
        msgspec.convert(tables, OptionTables)
    except msgspec.ValidationError as error:
        raise JobgenError(sentence(str(error), tables, origin)) from None


def _merged(
    below: Mapping[str, Any], above: Mapping[str, Any], at: Path, path: str, text: str, places: Places
) -> dict[str, Any]:
    """Merge tables, add sources and replace all other values; store the place of each in ``places``."""
    merged = dict(below)
    for key, value in above.items():
        place = (*at, key)
        if place == ("source",):
            before = below.get(key, [])
            merged[key] = [*before, *value]
            places.update(_source_places(value, len(before), path, text))
        elif isinstance(below.get(key, value), dict) != isinstance(value, dict):
            other = "a table" if isinstance(below[key], dict) else "a list"
            where = f"{_origin(path, text)(place)}: {key}"
            raise JobgenError(f"{where} is {other} in the site that this one extends: write one, too")
        elif isinstance(value, dict):
            under = {} if key == "devices" else below.get(key, {})  # the devices of a node are one value
            merged[key] = _merged(under, value, place, path, text, places)
        else:
            merged[key] = value
            places[place] = (path, line_of(text, place))
    return merged


def _source_places(sources: list[dict[str, Any]], before: int, path: str, text: str) -> Places:
    """Return the places of the sources in one file, which come after those of the files that it extends."""
    return {
        ("source", str(before + number), key): (path, line_of(text, ("source", str(number), key)))
        for number, source in enumerate(sources)
        for key in source
    }


def _site(path: str, data: dict[str, Any], places: Places) -> Site:
    name = _name(path)
    file = msgspec.convert({key: value for key, value in data.items() if key not in TABLES}, SiteFile)
    tables = msgspec.convert({key: value for key, value in data.items() if key in TABLES}, OptionTables)
    for key in ("title", "scheduler"):
        if not getattr(file, key):
            raise JobgenError(f"{path}: must have a {key}, or extend a site that has one")

    def origin(place: Path) -> str:
        value = data[place[0]][place[1]]
        inner = (*place, next(iter(value))) if place[-1] == "env" and isinstance(value, dict) else place
        return f"site {_name(places[inner][0])}"

    values, origins = options_of(tables, origin)
    if file.rules.master_addr:
        values.setdefault("master_addr", file.rules.master_addr)
        origins.setdefault("master_addr", f"site {_name(places[('rules', 'master_addr')][0])}")
    site = Site(name, path, file, values, origins, data, places)
    check_site(site)
    return site
