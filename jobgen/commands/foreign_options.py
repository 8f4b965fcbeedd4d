"""The options of sbatch, qsub and the launchers, typed for jobgen: the options of jobgen that mean the same.

Only errors need this module. An option of a scheduler is read as its directive, as jobgen convert reads it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import click

from jobgen.check.directive_reader import Line, read_options
from jobgen.check.script import Script
from jobgen.convert.job_file_builder import JobFile
from jobgen.convert.to_job_file import read_directives
from jobgen.errors import one_of
from jobgen.launchers import known
from jobgen.options import BY_KEY, EARLIER_FLAGS
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.request import Request, number
from jobgen.schedulers.table import COMMANDS, SCHEDULERS, named
from jobgen.secrets import masked_word

# Names in other programs, and the keys of jobgen's options with the same value.
_OTHERS = {
    "--ppn": "ranks_per_node", "-ppn": "ranks_per_node", "-npernode": "ranks_per_node",
    "--memory": "mem", "--project": "account", "--features": "constraint", "--license": "licenses",
    "--depend": "after",
}  # fmt: skip
Words = list[str]  # an option and its value


class _Typed(NamedTuple):
    """The options of a command: those of jobgen with their values, and all others."""

    ours: dict[str, str]
    foreign: list[Words]

    def whole(self, key: str) -> int | None:
        return number(self.ours.get(BY_KEY[key].flag))


class _Answer(NamedTuple):
    """The values of jobgen's options instead of those of another program, and remarks."""

    owners: Sequence[str]
    values: Mapping[str, object]
    remarks: tuple[str, ...] = ()


def hint(command: click.Command, words: Sequence[str]) -> str:
    """Return the sentence on the options of other programs among these words; empty without one."""
    typed = _typed(words, command)
    name = next((word for word in (command.name, *words) if word in COMMANDS), None)
    target = named(name, typed.ours.get("--dialect")) if name else None
    said, answers, of_schedulers = [], list[_Answer](), dict[str, list[Words]]()
    for option in typed.foreign:
        if answer := _of_launcher(option, typed):
            answers.append(answer)
        elif row := _owner(option, typed, target):
            of_schedulers.setdefault(row.name, []).append(option)
        else:
            continue
        said.append(" ".join(map(masked_word, option)))
    answers += [_of_scheduler(SCHEDULERS[name], many, typed, target) for name, many in of_schedulers.items()]
    return _sentence(said, answers, typed) if said else ""


def _sentence(said: Sequence[str], answers: Sequence[_Answer], typed: _Typed) -> str:
    values = {key: value for one in answers for key, value in one.values.items()}
    use = [
        one
        for key, value in values.items()
        if BY_KEY[key].flag not in typed.ours
        for one in _said(key, value)
    ]
    advice = [f"use {' '.join(use)}"] * bool(use)
    advice += [f"{flag} is given already" for key in values if (flag := BY_KEY[key].flag) in typed.ours]
    advice += [remark for one in answers for remark in one.remarks]
    owners = one_of(dict.fromkeys(owner for one in answers for owner in one.owners)).replace(" or ", " and ")
    what = f"is an option of {owners}" if len(said) == 1 else f"are options of {owners}"
    return (
        f"{' '.join(said)} (command line): {what}; {'; '.join(advice) or 'leave it out, jobgen needs none'}"
    )


def _said(key: str, value: object) -> Iterator[str]:
    """Yield the words of an option of jobgen."""
    flag = BY_KEY[key].flag
    if isinstance(value, dict):
        value = [f"{name}={one}" for name, one in value.items()]
    for one in value if isinstance(value, list) else [value]:
        word = shlex.quote(str(one))
        yield flag if one is True else f"{flag}={word}" if str(one).startswith("-") else f"{flag} {word}"


def _typed(words: Sequence[str], command: click.Command) -> _Typed:
    options = [one for one in command.params if isinstance(one, click.Option)]
    takes = {flag: not one.is_flag for one in options for flag in (*one.opts, *one.secondary_opts)}
    typed, at = _Typed({}, []), 0
    while at < len(words):
        name, equals, value = words[at].partition("=")
        following = words[at + 1] if at + 1 < len(words) else ""
        taken = [following] * bool(not equals and re.match(r"[^-]|-\d", following))
        short = name[:2] if re.match(r"-[^-]", name) else ""
        if takes.get(name) or takes.get(short):
            typed.ours[name] = value if equals else following
            at += 1 + bool(name in takes and not equals)
        elif name.startswith("-") and (name not in takes or (short and taken)):
            if "".join(option := [words[at], *taken]).isprintable():
                typed.foreign.append(option)
            at += 1 + len(taken)
        else:
            at += 1
    return typed


def _of_launcher(option: Words, typed: _Typed) -> _Answer | None:
    """Return the answer about an option of a launcher; None if it is none."""
    word, equals, value = option[0].partition("=")
    name, value = word.replace("_", "-"), value if equals else " ".join(option[1:])
    owners, key = _launcher_options().get(name, (["other programs"], _OTHERS.get(name, "")))
    own = BY_KEY.get(name[2:].replace("-", "_")) or EARLIER_FLAGS.get(name)
    if own and name != word:
        return _Answer(["launchers"], {own.key: value})
    if key not in ("", "script", "launcher_arg") and not value:
        return _Answer(owners, {}, (f"{name} needs a value",))
    if key == "script":
        return _Answer(owners, {}, (f"leave {name} out, the script sets it",))
    if key == "ranks":
        nodes = typed.whole("nodes") or 1
        total = number(value) or 0
        if not total or total % nodes:
            return _Answer(owners, {}, (f"use --ranks-per-node: the ranks of one of the {nodes} nodes",))
        return _Answer(owners, {"ranks_per_node": total // nodes})
    if key == "launcher_arg":
        return _Answer(owners, {key: [f"{name}={value}" if value else name]})
    return _Answer(owners, {key: value}) if key else None


def _launcher_options() -> dict[str, tuple[list[str], str]]:
    """Return the options of launchers that no scheduler has: whose they are, and the key of jobgen's."""
    found: dict[str, tuple[list[str], str]] = {}
    others = {name for row in SCHEDULERS.values() for name in _long(row)}
    for row in known().values():
        line = row.line
        keys = {
            "nodes": line.nodes, "ranks_per_node": line.local_ranks, "ranks": line.ranks,
            "script": line.from_script, "launcher_arg": line.more,
        }  # fmt: skip
        for key, names in keys.items():
            for name in names:
                if len(name) > 2 and name[2:] not in others:
                    found.setdefault(name, ([], key))[0].append(row.command)
    return found


def _long(scheduler: Scheduler) -> set[str]:
    return {*scheduler.long_options, *(name[2:] for name in scheduler.short_options)}


def _owner(option: Words, typed: _Typed, target: Scheduler | None) -> Scheduler | None:
    """Return the scheduler whose option it is: of those that have it, the first that jobgen can follow."""
    anywhere = target is None or not target.prefix

    def order(row: Scheduler) -> tuple[bool, ...]:
        away = target is not None and row.family != target.family
        marked = re.search(row.own_directives, f" {' '.join(option)}")
        return away, anywhere and not row.long_options, not marked, row is not target

    rows = [row for row in sorted(SCHEDULERS.values(), key=order) if row.prefix and _has(row, option)]
    if rows and rows[0].long_options:
        return rows[0]
    keys = [(row, _read(row, [option], typed).values.keys() - {"dialect"}) for row in rows]
    return next((row for row, found in keys if found and "directive" not in found), rows[0] if rows else None)


def _has(row: Scheduler, option: Words) -> bool:
    """Return whether a scheduler has an option, with a value or without one as it was typed."""
    name = option[0]
    if name.startswith("--"):
        return name[2:].partition("=")[0] in _long(row)
    read = read_options(Line(1, "", shlex.join(option)), row)
    return name[1:2] in row.letters.replace(":", "") and all(one.flag for one in read)


def _of_scheduler(
    row: Scheduler, options: Sequence[Words], typed: _Typed, target: Scheduler | None
) -> _Answer:
    if bare := [one[0] for one in options if len(one) == 1 and _lacks_value(row, one[0])]:
        return _Answer([row.command], {}, (f"{' '.join(bare)} needs a value",))
    file = _read(row, options, typed)
    values, remarks = file.values, [f"{one.what}: {one.why}" for one in file.remarks]
    if target is not None and row.family != target.family:
        values.pop("dialect", None)
        if lost := values.pop("directive", None):
            assert isinstance(lost, list)
            remarks.append(f"{target.title} has no counterpart of {' '.join(lost)}")
    lacks = target.lacks if target is not None else {}
    remarks += [lacks[key] for key in values if key in lacks]
    values = {key: value for key, value in values.items() if key not in lacks}
    return _Answer([row.command], {} if list(values) == ["dialect"] else values, tuple(remarks))


def _lacks_value(row: Scheduler, word: str) -> bool:
    [option, *_] = read_options(Line(1, "", word), row)
    return row.takes_value(option.flag) and not option.value


def _read(row: Scheduler, options: Sequence[Words], typed: _Typed) -> JobFile:
    """Return the values of jobgen's options that options of a scheduler correspond to."""
    file, context, assumed = _read_with(row, options, {}), dict[str, int](), set[str]()
    if not row.long_options:
        return file
    # Totals, and numbers for each task, need the rest of the request.
    for key in ("nodes", "ranks_per_node", "cpus_per_rank"):
        count = file.values.get(key)
        if not isinstance(count, int):
            assumed.add(key)
            devices = typed.whole("gpus_per_node") or number(str(file.values.get("gpus_per_node")))
            default = {"ranks_per_node": devices, "cpus_per_rank": row.default_cpus_per_rank}.get(key)
            count = typed.whole(key) or default or 1
        context[key] = count
        file = _read_with(row, options, context)
    file.values = {key: value for key, value in file.values.items() if key not in assumed}
    return file


def _read_with(row: Scheduler, options: Sequence[Words], context: Mapping[str, int]) -> JobFile:
    counts = [context.get(key) for key in ("nodes", "ranks_per_node", "cpus_per_rank")]
    asked = Request(nodes=counts[0], ranks_per_node=counts[1], cpus_per_rank=counts[2])
    lines = row.resources(asked, "", "")[0] if context else []
    line = " ".join([row.prefix, *lines, *map(shlex.join, options)])
    file = JobFile()
    read_directives(file, Script(f"{line}\n".encode(), row.name), row)
    return file
