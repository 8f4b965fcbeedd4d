"""Checks of the values of a site; types and keys are checked before.

No text of a site file can become shell code: text that a script prints outside quotes is matched here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.jobfile.reader import option_text
from jobgen.jobfile.tables import TABLES, table_of
from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import BY_KEY, OPTIONS
from jobgen.schedulers.table import queued
from jobgen.schedulers.versions import version
from jobgen.sites.line_forms import NUMBERS, names_in, reference
from jobgen.sites.site_file import CONFIDENCE, GROUPS, Site
from jobgen.values import parsers
from jobgen.values.devices import TYPE

Path = tuple[str, ...]

_LINE = parsers.text("one line of text", r"[^\x00-\x1f\x7f\u2028\u2029]+")
_VALUE = parsers.text("one line of text", r"[^\x00-\x1f\x7f\u2028\u2029]*")
_URL = parsers.text("an address that begins with https://", r"https?://[^\s\x00-\x1f\x7f]+")
_WORD = parsers.text("one word of letters, digits and . _ + - : @ , /", r"[A-Za-z0-9][\w.+:@,/-]{0,254}")
_FLAG = parsers.text("an option's name, such as -P or --qos", r"--?[A-Za-z][A-Za-z-]*")
_SRUN = parsers.text("an option of srun, such as --cpu-bind=none", r"--[a-z][a-z-]*(=[\w:,.+/@%{}-]+)?")
_BIND = parsers.text("one option, such as --cpu-bind depth", r"--[a-z][a-z-]*([= ][\w:,.+{}-]+)?")
_RESOURCE = parsers.text("the name of a resource, such as gpu_type", r"[A-Za-z]\w{0,63}")
_SUFFIX_OF_ACCOUNT = parsers.text("the end of an account, such as -gpu or @h100", r"@?[\w-]{1,32}")
_CPUS = parsers.text("a list of CPUs, such as 0-7,16", r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")
_DEVICES = parsers.text(
    "an option that requests {n} devices, such as --gres=gpu:{n}", r"--[a-z][a-z-]*=([\w.-]+:)*\{n\}"
)
_NAME = parsers.text("the name of a variable", r"[A-Za-z_]\w*")
_REQUIRED = parsers.text(
    "account, name, queue or walltime, or the beginning of a directive", r"account|name|queue|walltime|-.+"
)
_RULE = parsers.text("the name of a rule of jobgen check", r"[a-z][a-z-]*")


def _folder(text: str) -> str:
    """Parse a folder of a search path: an absolute path, or one that begins with $NAME."""
    return text if reference(text)[0] else parsers.absolute_path(text)


_ANY = "*"
_QUEUE = ("queues", _ANY)
_NODES = (("node",), _QUEUE, (*_QUEUE, "kinds", _ANY))  # the tables with the resources of a node
_MEMORIES = ("memory", "memory_per_gpu", "memory_per_core")
_PARSERS: dict[Path, Callable[[str], Any]] = {
    ("scheduler",): parsers.choice(*queued()),
    ("title",): _LINE,
    ("source", _ANY, "facts"): parsers.choice(*GROUPS),
    ("source", _ANY, "confidence"): parsers.choice(*CONFIDENCE),
    ("source", _ANY, "page"): _URL,
    **dict.fromkeys((("source", _ANY, "version"), ("source", _ANY, "what")), _LINE),
    ("check", "silence"): _RULE,
    ("check", "require"): _REQUIRED,
    ("scheduler_version",): version,
    **dict.fromkeys((("mandatory", _ANY), (*_QUEUE, "mandatory", _ANY), ("lacks", _ANY)), _LINE),
    **{(*table, key): parsers.memory for table in _NODES for key in _MEMORIES},
    **{(*table, "features"): _LINE for table in _NODES},
    **dict.fromkeys((("node", "cpu_lists"), (*_QUEUE, "cpu_lists")), _CPUS),
    **dict.fromkeys(((*_QUEUE, "about"), (*_QUEUE, "groups"), ("networks", _ANY, "about")), _LINE),
    **{(*_QUEUE, key): _WORD for key in ("name", "accounts", "qos")},
    **dict.fromkeys((("rules", "account_suffix"), (*_QUEUE, "account_suffix")), _SUFFIX_OF_ACCOUNT),
    (*_QUEUE, "walltime"): parsers.walltime,
    **{(table, _ANY, "env", _ANY): _VALUE for table in ("queues", "launcher", "networks")},
    ("networks", _ANY, "modules"): parsers.module,
    **dict.fromkeys((("networks", _ANY, "prepend", _ANY), ("rules", "prepend", _ANY)), _folder),
    ("networks", _ANY, "unset"): _NAME,
    **dict.fromkeys((("rules", "account"), ("rules", "queue")), _FLAG),
    ("rules", "cpu_queue"): _WORD,
    ("rules", "devices"): _DEVICES,
    ("rules", "gpu_type"): _RESOURCE,
    ("rules", "bind"): _BIND,
    ("rules", "master_addr"): parsers.master_addr,
    ("rules", "module_use"): parsers.absolute_path,
    **{("rules", key): _SRUN for key in ("srun", "srun_ranks", "srun_nodes")},
}
# By the first key and the number of keys.
_PARSERS_OF: dict[tuple[str, int], list[tuple[Path, Callable[[str], Any]]]] = {}
for _path, _parse in _PARSERS.items():
    _PARSERS_OF.setdefault((_path[0], len(_path)), []).append((_path, _parse))
_DIRECTIVES = (
    ("request",),
    ("directives",),
    ("rules", "reservation"),
    ("queues", _ANY, "request"),
    ("queues", _ANY, "directives"),
)
_OPTION_KEYS = (("lacks",), ("mandatory",), ("queues", _ANY, "mandatory"))


def check_site(site: Site) -> None:
    """Refuse values that are not valid.

    Raises:
        JobgenError: the message has the file, the line, the value and what is allowed.
    """
    scheduler_first = sorted(_texts(site.data, ()), key=lambda one: one[0] != ("scheduler",))
    for place, text in scheduler_first:  # the scheduler defines the directives
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
    _check_options(site)
    _check_sources(site)
    _check_launchers(site)
    _check_queues(site)
    _check_variables(site)


def valid_name(name: str) -> bool:
    """Return whether a queue can have this name."""
    try:
        _WORD(name)
    except ValueError:
        return False
    return True


def _texts(data: Mapping[str, Any], at: Path) -> Iterator[tuple[Path, str]]:
    """Yield every text in a site's own tables, with its path."""
    for key, value in data.items():
        if isinstance(value, dict) and (at or key not in TABLES):
            yield from _texts(value, (*at, key))
        if key == "source" and not at:
            for number, source in enumerate(value):
                yield from _texts(source, (key, str(number)))
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
        row = site.scheduler
        parsers.text(f"an option of {row.command}, such as {row.help.directive}", row.option_pattern)(text)
    if directive or (place[0] == "rules" and place[1] != "master_addr"):
        for name in names_in(text):
            if name not in NUMBERS and place != ("rules", "devices"):
                raise ValueError(f"there is no {{{name}}}: use {one_of(NUMBERS)}{nearest(name, NUMBERS)}")
        if re.search(r"[{}]", re.sub(r"\{\w+\}", "", text)):
            raise ValueError("braces must contain the name of a number, such as {nodes}")
    for path, parse in _PARSERS_OF.get((place[0], len(place)), ()):
        if _fits(place, path):
            parse(text)


def _fits(place: Path, path: Path) -> bool:
    if len(place) != len(path) or place[0] != path[0]:
        return False
    return all(b in (a, _ANY) for a, b in zip(place, path, strict=True))


def _check_key(key: str) -> None:
    """Check a key of [mandatory] or [lacks]: an option, or the beginning of a directive."""
    if key.startswith("-"):
        _LINE(key)
    elif key not in BY_KEY:
        raise ValueError(
            f"{shown(key)} is neither an option nor the start of a directive{nearest(key, BY_KEY)}"
        )


def _check_options(site: Site) -> None:
    """Check the options of launchers and of queues: their names and values."""
    tables = {("launcher", name, "options"): one.options for name, one in site.file.launcher.items()}
    tables |= {("queues", name, "options"): one.options for name, one in site.queues.items()}
    for at, options in tables.items():
        for key, value in options.items():
            where = f"{key} = {shown(str(value))} ({site.place((*at, key))})"
            known = [name for name in BY_KEY if name not in ("queue", "launcher", "env")]
            if key not in known:
                raise JobgenError(f"{where}: there is no such option here{nearest(key, known)}")
            for text in _lines(option_text(value)):
                try:
                    BY_KEY[key].parse(text)
                except ValueError as error:
                    raise JobgenError(f"{where}: {error}") from None


def _check_sources(site: Site) -> None:
    """Check that each source has groups of facts, an address or a description, and a date."""
    for number, source in enumerate(site.file.source):
        needs = {
            "facts": source.facts,
            "confidence": source.confidence,
            "page or a what": source.page or source.what,
        }
        if missing := next((key for key, value in needs.items() if not value), None):
            raise JobgenError(f"[[source]] ({site.place(('source', str(number)))}): must have a {missing}")


def _check_launchers(site: Site) -> None:
    for name in site.file.launcher:
        if name not in LAUNCHERS:
            raise JobgenError(
                f"[launcher.{shown(name)}] ({site.place(('launcher', name))}): there is no such launcher: "
                f"use {one_of(LAUNCHERS)}{nearest(name, LAUNCHERS)}"
            )


def _check_variables(site: Site) -> None:
    """Check the names of networks, and of all variables that tables other than [environment] set."""
    file = site.file
    tables: dict[Path, tuple[str, ...]] = {
        **{("networks", key): (*one.env, *one.prepend, *one.unset) for key, one in file.networks.items()},
        **{("queues", key, "env"): (*one.env,) for key, one in file.queues.items()},
        **{("launcher", key, "env"): (*one.env,) for key, one in file.launcher.items()},
        ("rules", "prepend"): (*file.rules.prepend,),
    }
    for at, variables in tables.items():
        try:
            _WORD(at[1])
            for variable in variables:
                parsers.assignment(f"{variable}=")
        except ValueError as error:
            name = ".".join(map(shown, at))
            raise JobgenError(f"[{name}] ({site.place(at)}): {error}") from None


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
                parsers.walltime(text)
        except ValueError as error:
            raise JobgenError(f"[queues.{shown(name)}] ({site.place(('queues', name))}): {error}") from None
        _check_kinds(site, name)
        if queue.nodes is not None and queue.nodes[0] > queue.nodes[1]:
            where = site.place(("queues", name, "nodes"))
            raise JobgenError(
                f"nodes = {list(queue.nodes)} ({where}): must be the least and the greatest number"
            )
        _check_routes(site, name, queue.routes_to)
        steps = [most for most, _ in queue.walltime_by_nodes]
        if steps != sorted(set(steps)):
            where = site.place(("queues", name, "walltime_by_nodes"))
            raise JobgenError(f"walltime_by_nodes = {steps} ({where}): must go from few nodes to many")


def _check_kinds(site: Site, name: str) -> None:
    """Check the names of the kinds of nodes of a queue, and the types of devices."""
    queue = site.queues[name]
    tables = {("node",): site.file.node, ("queues", name): queue}
    tables |= {("queues", name, "kinds", kind): one for kind, one in queue.kinds.items()}
    for at, table in tables.items():
        for kind in table.devices or ():
            if kind and not re.fullmatch(TYPE, kind, re.ASCII):
                where = site.place((*at, "devices"))
                raise JobgenError(f"devices = {shown(kind)} ({where}): must be a type such as a100, or empty")
    for kind in queue.kinds:
        try:
            _WORD(kind)
        except ValueError as error:
            where = site.place(("queues", name, "kinds", kind))
            raise JobgenError(f"[queues.{name}.kinds.{shown(kind)}] ({where}): {error}") from None


def _check_routes(site: Site, name: str, routes: tuple[str, ...]) -> None:
    """Check that a routing queue leads to queues of the site, and never back to itself."""
    setting = f"routes_to = {shown(', '.join(routes))} ({site.place(('queues', name, 'routes_to'))})"
    for route in routes:
        if route not in site.queues:
            raise JobgenError(
                f"{setting}: {shown(route)} is not one of the queues: "
                f"use {one_of(site.queues)}{nearest(route, site.queues)}"
            )
    reached, ahead = set(), list(routes)
    while ahead:
        one = ahead.pop()
        if one not in reached and one in site.queues:
            reached.add(one)
            ahead += site.queues[one].routes_to
    if name in reached:
        raise JobgenError(f"{setting}: leads back to the queue {name}")
