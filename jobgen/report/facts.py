"""The settings of runs: the plan of each run, the differences between runs, and what is equal in all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.options import BY_KEY
from jobgen.rendering.runtime import MADE_BY
from jobgen.runs import regular_file, run_directory
from jobgen.runs.run_directory import RunRecord
from jobgen.schedulers.table import SCHEDULERS
from jobgen.secrets import masked, masked_data

_ELSEWHERE = ("format", "submitted", "script_sha256", "name", "options", "derived", "sources")
_SWEEP = "sweep."
_BRIEF, _COLUMNS = 24, 8  # characters of a value, and columns, that fit in a summary
_PREFIXES = "|".join(dict.fromkeys(row.prefix for row in SCHEDULERS.values() if row.prefix))
_DIRECTIVE = re.compile(rf"^({_PREFIXES})[ \t]+(-[^\s=]+)[= \t]*(.*)$", re.MULTILINE)


class Fact(NamedTuple):
    """A value as text, its origin and its meaning; both may be empty."""

    value: str
    origin: str = ""
    meaning: str = ""


class FactTable(NamedTuple):
    """A comparison of several runs.

    ``differing`` names have different values. ``brief`` are those that fit in a summary: swept parameters, or
    else short values. ``same`` are equal facts that were given or derived, ``folded`` the other equal facts:
    defaults and installed packages.
    """

    differing: tuple[str, ...]
    brief: tuple[str, ...]
    same: dict[str, Fact]
    folded: dict[str, Fact]


def facts(run: RunRecord, rows: Sequence[Mapping[str, Any]]) -> dict[str, Fact]:
    """Return the facts by name: the point of a sweep, plan.json or the script, the start of the training."""
    point = _flat(run_directory.as_object(regular_file.text(run.directory / "sweep.json")), _SWEEP)
    options = list(_planned(run_directory.plan(run.directory))) or _script(
        run_directory.script(run.directory)
    )
    trained = {
        key: value for key, value in start_event(rows).items() if key not in ("event", "hosts", "source")
    }
    return dict([*point, *options, *_flat(trained, "training ")])


def _planned(plan: Mapping[str, Any]) -> Iterator[tuple[str, Fact]]:
    """Yield the options and derived values by their own names, then other values by the names of tables."""
    for table in ("options", "derived"):
        for name, fact in _flat(_table(plan, table)):
            yield name, fact._replace(meaning=BY_KEY[name].meaning) if name in BY_KEY else fact
    for name, fact in _flat({key: value for key, value in plan.items() if key not in _ELSEWHERE}):
        yield name, fact
    sources = plan.get("sources")
    if sources and isinstance(sources, list):
        yield "sources", Fact(_shown([one.get("path") for one in sources if isinstance(one, dict)]))


def _table(plan: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = plan.get(key)
    return value if isinstance(value, dict) else {}


def start_event(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the last start event of the training; empty if there is none."""
    return next((row for row in reversed(rows) if row.get("event") == "start"), {})


def compare(all_facts: Sequence[Mapping[str, Fact]]) -> FactTable:
    """Compare the facts of runs, in the order of their names; a name that a run lacks is a difference."""
    names = list(dict.fromkeys(name for facts in all_facts for name in facts))
    values = {name: [facts[name].value if name in facts else None for facts in all_facts] for name in names}
    differing = tuple(name for name in names if len(set(values[name])) > 1)
    brief = tuple(name for name in differing if _is_brief([facts.get(name) for facts in all_facts]))
    same = {name: all_facts[0][name] for name in names if name not in differing}
    swept = tuple(name for name in differing if name.startswith(_SWEEP))
    folded = {
        name: fact for name, fact in same.items() if fact.origin == "default" or name.startswith("packages.")
    }
    rest = {name: fact for name, fact in same.items() if name not in folded}
    return FactTable(differing, (swept or brief)[:_COLUMNS], rest, folded)


def _is_brief(found: Sequence[Fact | None]) -> bool:
    """Return whether the fact has different short values that were given; some runs may lack it."""
    there = [fact for fact in found if fact is not None]
    short = all(fact.origin != "derived" and len(fact.value) <= _BRIEF for fact in there)
    return short and len({fact.value for fact in there}) > 1


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Fact]]:
    """Return the leaves of nested tables; a table with a "value" is a leaf with origin and meaning."""
    found = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and "value" in value:
            origin, meaning = (str(value.get(word) or "") for word in ("origin", "meaning"))
            found.append((name, Fact(_shown(masked_data(value["value"], key)), origin, meaning)))
        elif isinstance(value, dict):
            found.extend(_flat(value, f"{name}."))
        else:
            found.append((name, Fact(_shown(masked_data(value, key)))))
    return found


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_shown, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def _script(text: str) -> Iterator[tuple[str, Fact]]:
    """Yield title and program of a script that jobgen wrote, and the directives of any script."""
    if made := re.search(MADE_BY, text, re.MULTILINE):
        yield "title", Fact(made[1], "job.sh")
        yield "jobgen", Fact(made[2], "job.sh", "The version that wrote the script.")
    if program := re.search(r"^program\(\) \{.*\n +exec (.+)$", text, re.MULTILINE):
        words = program[1].replace(' "$@"', "")
        yield "program", Fact(masked(words), "job.sh", "What every rank runs.")
    directives: dict[str, list[str]] = {}
    for prefix, option, value in _DIRECTIVE.findall(text):
        directives.setdefault(f"{prefix} {option}", []).append(value or "yes")
    for name, values in directives.items():
        yield name, Fact(masked(" ".join(values)), "job.sh")
