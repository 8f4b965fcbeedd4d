"""Checks of the values of a site; types and keys are checked before.

No text of a site file can become shell code: text that a script prints outside quotes is matched here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobgen import values
from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.jobfile.schema import TABLES, table_of
from jobgen.options import BY_KEY, OPTIONS
from jobgen.sites.site_directives import NUMBERS, names_in
from jobgen.sites.site_file import Site

Path = tuple[str, ...]

_LINE = values.text("one line of text", r"[^\x00-\x1f\x7f\u2028\u2029]+")
_URL = values.text("an address that begins with https://", r"https?://[^\s\x00-\x1f\x7f]+")
_WORD = values.text("one word of letters, digits and . _ + - : @ , /", r"[A-Za-z0-9][\w.+:@,/-]{0,254}")
_FLAG = values.text("an option's name, such as -P or --qos", r"--?[A-Za-z][A-Za-z-]*")
_SRUN = values.text("an option of srun, such as --cpu-bind=none", r"--[a-z][a-z-]*(=[\w:,.+/@%{}-]+)?")
_BIND = values.text("one option, such as --cpu-bind depth", r"--[a-z][a-z-]*([= ][\w:,.+{}-]+)?")
_SUFFIX = values.text("the end of a host name", r"[A-Za-z0-9.-]{0,64}")
_CPUS = values.text("a list of CPUs, such as 0-7,16", r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")
_RULE = values.text("the name of a rule of jobgen check", r"[a-z][a-z-]*")

_ANY = "*"
_PARSERS: dict[Path, Callable[[str], Any]] = {
    ("title",): _LINE,
    ("manual",): _URL,
    ("silence",): _RULE,
    ("mandatory", _ANY): _LINE,
    ("lacks", _ANY): _LINE,
    ("node", "memory"): values.memory,
    ("node", "memory_per_gpu"): values.memory,
    ("node", "cpu_lists"): _CPUS,
    ("queues", _ANY, "about"): _LINE,
    ("queues", _ANY, "name"): _WORD,
    ("queues", _ANY, "walltime"): values.walltime,
    ("queues", _ANY, "memory"): values.memory,
    ("queues", _ANY, "memory_per_gpu"): values.memory,
    ("queues", _ANY, "cpu_lists"): _CPUS,
    ("queues", _ANY, "mandatory", _ANY): _LINE,
    ("rules", "account"): _FLAG,
    ("rules", "queue"): _FLAG,
    ("rules", "bind"): _BIND,
    ("rules", "master_suffix"): _SUFFIX,
    ("rules", "module_use"): values.absolute_path,
    ("rules", "srun"): _SRUN,
    ("rules", "srun_ranks"): _SRUN,
    ("rules", "srun_nodes"): _SRUN,
}
_DIRECTIVES = (("request",), ("directives",), ("queues", _ANY, "directives"))
_OPTION_KEYS = (("lacks",), ("mandatory",), ("queues", _ANY, "mandatory"))


def check_site(site: Site) -> None:
    """Refuse values that are not valid.

    Raises:
        JobgenError: the message has the file, the line, the value and what is allowed.
    """
    for place, text in _texts(site.data, ()):
        try:
            _check_text(site, place, text)
        except ValueError as error:
            raise JobgenError(f"{place[-1]} = {shown(text)} ({site.place(place)}): {error}") from None
    for option in OPTIONS:
        for text in _lines(site.values.get(option.key, ())):
            try:
                option.parse(text)
            except ValueError as error:
                place = (table_of(option), option.key)
                raise JobgenError(f"{option.key} = {shown(text)} ({site.place(place)}): {error}") from None
    _check_queues(site)


def _texts(data: Mapping[str, Any], at: Path) -> Iterator[tuple[Path, str]]:
    """Yield every text in a site's own tables, with its path."""
    for key, value in data.items():
        if isinstance(value, dict) and (at or key not in TABLES):
            yield from _texts(value, (*at, key))
        for text in _lines(value):
            yield (*at, key), text


def _lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, (list, tuple)) else []


def _check_text(site: Site, place: Path, text: str) -> None:
    if any(_fits(place[:-1], path) for path in _OPTION_KEYS):
        _check_key(place[-1])
    directive = any(_fits(place, path) for path in _DIRECTIVES)
    if directive:
        values.text(site.scheduler.option_rule, site.scheduler.option_pattern)(text)
    if directive or place[0] == "rules":
        for name in names_in(text):
            if name not in NUMBERS:
                raise ValueError(f"there is no {{{name}}}: use {one_of(NUMBERS)}{nearest(name, NUMBERS)}")
        if re.search(r"[{}]", re.sub(r"\{\w+\}", "", text)):
            raise ValueError("braces must contain the name of a number, such as {nodes}")
    for path, parse in _PARSERS.items():
        if _fits(place, path):
            parse(text)


def _fits(place: Path, path: Path) -> bool:
    return len(place) == len(path) and all(b in (a, _ANY) for a, b in zip(place, path, strict=True))


def _check_key(key: str) -> None:
    """Check a key of [mandatory] or [lacks]: an option, or the beginning of a directive."""
    if key.startswith("-"):
        _LINE(key)
    elif key not in BY_KEY:
        raise ValueError(
            f"{shown(key)} is neither an option nor the start of a directive{nearest(key, BY_KEY)}"
        )


def _check_queues(site: Site) -> None:
    default = site.values.get("queue")
    if isinstance(default, str) and site.queues and default not in site.queues:
        raise JobgenError(
            f"queue = {shown(default)} ({site.place(('job', 'queue'))}): is not one of the queues: "
            f"use {one_of(site.queues)}{nearest(default, site.queues)}"
        )
    for name, queue in site.queues.items():
        try:
            _WORD(name)
            for _, text in queue.walltime_by_nodes:
                values.walltime(text)
        except ValueError as error:
            raise JobgenError(f"[queues.{shown(name)}] ({site.place(('queues', name))}): {error}") from None
        if queue.nodes is not None and queue.nodes[0] > queue.nodes[1]:
            where = site.place(("queues", name, "nodes"))
            raise JobgenError(
                f"nodes = {list(queue.nodes)} ({where}): must be the least and the greatest number"
            )
        steps = [most for most, _ in queue.walltime_by_nodes]
        if steps != sorted(set(steps)):
            where = site.place(("queues", name, "walltime_by_nodes"))
            raise JobgenError(f"walltime_by_nodes = {steps} ({where}): must go from few nodes to many")
