"""The options of sbatch and qsub, typed for jobgen: read as directives, as jobgen convert reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.convert.result import Remark
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.directives import read_directives, set_name
from jobgen.options import BY_KEY
from jobgen.schedulers.directive_options import read_options
from jobgen.schedulers.request import Request
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script
from jobgen.secrets import masked_word
from jobgen.values.parsers import mebibytes, number, walltime

OptionWords = list[str]  # an option and its value


class Typed(NamedTuple):
    """The options of a command: those of jobgen with their values, and all others."""

    ours: dict[str, str]
    foreign: list[OptionWords]
    flags: tuple[str, ...]  # of the command

    def whole(self, key: str) -> int | None:
        return number(self.ours.get(BY_KEY[key].flag))

    @property
    def devices(self) -> int | None:
        """The devices of a node, without their type."""
        return number(self.ours.get(BY_KEY["gpus_per_node"].flag, "").rpartition(":")[2])


class Advice(NamedTuple):
    """Advice on options of another program: the values of jobgen's options instead of them, and remarks."""

    owners: Sequence[str]
    values: Mapping[str, object]
    remarks: tuple[str, ...] = ()


def owner(option: OptionWords, typed: Typed, target: Dialect | None) -> Dialect | None:
    """Return the scheduler whose option it is: of those that have it, the first that jobgen can follow."""
    anywhere = target is None or not target.scheduler.prefix

    def order(row: Dialect) -> tuple[bool, ...]:
        away = target is not None and row.scheduler.family != target.scheduler.family
        text = f" {' '.join(option)}"
        marked = any(mark.weight > 1 and re.search(mark.pattern, text) for mark in row.marks)
        return away, anywhere and not row.scheduler.grammar.long_options, not marked, row is not target

    rows = [row for row in sorted(DIALECTS.values(), key=order) if row.scheduler.prefix and _has(row, option)]
    if rows and rows[0].scheduler.grammar.long_options:
        return rows[0]
    files = [(row, _read(row, [option], typed)) for row in rows]
    complete = [row for row, file in files if file.values.keys() - {"dialect"} and not _leaves(file)]
    return next(iter(complete or rows), None)


def _leaves(file: JobFile) -> bool:
    """Return whether a part of an option has no counterpart among the options of jobgen."""
    return "directive" in file.values or any(one.lost for one in file.remarks)


def whole(option: OptionWords, flags: Sequence[str]) -> OptionWords:
    """Return an option with a value, with its name in full; of a letter without ``=``."""
    if re.match(r"-\w=", option[0]):  # -t=2h
        return [option[0][:2], option[0][3:]]
    word, equals, value = option[0].partition("=")
    ours = any(flag.startswith(word) for flag in flags)
    for row in DIALECTS.values() if re.match(r"--\w{3}", word) and option != [word] and not ours else ():
        found = sorted(
            (name for name in row.scheduler.grammar.long_options if name.startswith(word[2:])), key=len
        )
        if found and found[0][len(word) - 2 :][:1] != "-" and all(one.startswith(found[0]) for one in found):
            return [f"--{found[0]}{equals}{value}", *option[1:]]
    return option


def _has(row: Dialect, option: OptionWords) -> bool:
    """Return whether a scheduler has an option, with a value or without one as it was typed."""
    name = option[0]
    if name.startswith("--"):
        return name[2:].partition("=")[0] in long_names(row)
    read = read_options(shlex.join(option), row.scheduler)
    return name[1:2] in row.scheduler.grammar.letters.replace(":", "") and all(one.flag for one in read)


def of_scheduler(
    row: Dialect, options: Sequence[OptionWords], typed: Typed, target: Dialect | None
) -> Advice:
    if bare := [one[0] for one in options if len(one) == 1 and _lacks_value(row, one[0])]:
        return Advice([row.command], {}, (f"{' '.join(bare)} needs a value",))
    done = [_not_in_scripts(row, one) for one in options]
    options = [one for one, advice in zip(options, done, strict=True) if not advice]
    file = _read(row, options, typed) if options else JobFile()
    if target is not None and row.scheduler.family == target.scheduler.family:
        _keep_chunks(file, row, options)
    remarks = [*_replace_refused(file, row), *filter(None, done)]
    values, remarks = file.values, [*(f"{one.what}: {one.why}" for one in file.remarks), *remarks]
    if target is not None and row.scheduler.family != target.scheduler.family:
        values.pop("dialect", None)
        if lost := values.pop("directive", None):
            assert isinstance(lost, list)
            remarks.append(f"{target.title} has no counterpart of {' '.join(lost)}")
    lacks = target.scheduler.lacks if target is not None else {}
    remarks += [lacks[key] for key in values if key in lacks]
    values = {key: value for key, value in values.items() if key not in lacks}
    return Advice([row.command], {} if list(values) == ["dialect"] else values, tuple(remarks))


def _keep_chunks(file: JobFile, row: Dialect, options: Sequence[OptionWords]) -> None:
    """Keep a request of nodes that differ as a directive; the ranks follow from it."""
    requests = [one for one in file.remarks if re.match(r"-l (select|nodes)=\S*\+", one.what)]
    for one in requests:
        file.remarks.remove(one)
        file.values = {key: value for key, value in file.values.items() if key not in _OF_CHUNKS}
        file.add("directive", one.what)
        if not re.search("gpus", one.what):
            file.values["accelerator"] = "cpu"


_OF_CHUNKS = ("nodes", "ranks_per_node", "cpus_per_rank", "gpus_per_node", "mem")


def _not_in_scripts(row: Dialect, option: OptionWords) -> str:
    """Return what to do instead of an option that belongs to no script; empty if it belongs there."""
    for one in read_options(shlex.join(option), row.scheduler):
        for key, part in row.scheduler.settings(one):
            if (advice := row.not_in_scripts.get(key)) is not None:
                return advice.format(_program(part.value)) or f"leave {option[0]} out"
    return ""


def _program(text: str) -> str:
    """Return a command of the shell as jobgen's program."""
    text = masked_word(text)
    return text if re.fullmatch(r"[\w\s./=:,@%+-]*", text) else f"bash -c {shlex.quote(text)}"


def _lacks_value(row: Dialect, word: str) -> bool:
    [option, *_] = read_options(word, row.scheduler)
    return row.scheduler.grammar.takes_value(option.flag) and not option.value


def _read(row: Dialect, options: Sequence[OptionWords], typed: Typed) -> JobFile:
    """Return the values of jobgen's options that options of a scheduler correspond to."""
    file, context, assumed = _read_with(row, options, {}), dict[str, int](), set[str]()
    if not row.scheduler.grammar.long_options:
        _share_chunks(file, typed)
        _share_totals(file, row, typed)
        _share_cores(file, row, typed)
        return file
    # Totals, and numbers for each task, need the rest of the request.
    for key in ("nodes", "ranks_per_node", "cpus_per_rank"):
        count = file.values.get(key)
        if not isinstance(count, int):
            assumed.add(key)
            devices = typed.devices or number(_count(file, "gpus_per_node"))
            default = {"ranks_per_node": devices, "cpus_per_rank": row.scheduler.default_cpus_per_rank}.get(
                key
            )
            count = typed.whole(key) or default or 1
        context[key] = count
        file = _read_with(row, options, context)
    file.values = {key: value for key, value in file.values.items() if key not in assumed}
    _count_per_device(file, row, typed)
    return file


def _count_per_device(file: JobFile, row: Dialect, typed: Typed) -> None:
    """Replace counts for each device with those of a node or of a rank."""
    devices = typed.devices or number(_count(file, "gpus_per_node")) or 1
    for name, key in row.per_device.items():
        for one in file.list("directive"):
            each = number(one.removeprefix(f"{name}="))
            if not each:
                continue
            _drop(file, one)
            ranks = _ranks(file, typed)
            if key == "ranks_per_node" and each == 1:
                file.values[key] = devices
            elif key == "ranks_per_node":
                file.remarks.append(Remark(1, one, "has no counterpart, each rank has a device of its own"))
            elif each * devices % ranks:
                file.remarks.append(
                    Remark(1, one, f"has no counterpart for {devices} devices and {ranks} ranks")
                )
            else:
                file.values[key] = each * devices // ranks


def _pass_names(file: JobFile, row: Dialect) -> None:
    """Move the variables of the environment from directives to ``--env``."""
    for one in file.list("directive"):
        found = re.fullmatch(rf'{row.names_option}[ =]"?(.*?)"?', one)
        names = found[1].split(",") if found else ["NONE"]
        plain = [name for name in names if re.fullmatch(r"(?!(ALL|NONE|NIL)$)[A-Za-z_]\w*", name)]
        if plain != names and "=" not in "".join(names):
            continue
        _drop(file, one)
        file.add_variables(dict.fromkeys(plain))


def _share_totals(file: JobFile, row: Dialect, typed: Typed) -> None:
    """Replace resources of the whole job with those of a node or of a rank."""
    nodes = typed.whole("nodes") or number(str(file.values.get("nodes")))
    for name, key in row.job_totals.items() if nodes or "--nodes" not in typed.ours else ():
        for one in file.list("directive"):
            text = one.removeprefix(f"{name}=")
            total = mebibytes(text, "b") if key == "mem" else number(text)
            if text == one or not total:
                continue
            _drop(file, one)
            parts = (nodes or 1) * (_ranks(file, typed) if key == "cpus_per_rank" else 1)
            if key == "mem":
                file.values.setdefault(key, f"{-(-total // parts)}M")
            elif total % parts:
                file.remarks.append(Remark(1, f"use {BY_KEY[key].flag}", f"{one} cannot be divided equally"))
            else:
                file.values.setdefault(key, total // parts)


def _share_chunks(file: JobFile, typed: Typed) -> None:
    """Let the cores of a chunk without a number of ranks be those of the ranks, one for each device."""
    cores, devices = file.values.get("cpus_per_rank"), number(_count(file, "gpus_per_node")) or typed.devices
    named = "ranks_per_node" in file.values or typed.whole("ranks_per_node")
    if isinstance(cores, int) and devices and not named:
        file.values["cpus_per_rank"] = max(cores // devices, 1)
        if cores > devices and cores % devices:
            file.values["cpus_per_node"] = cores


def _share_cores(file: JobFile, row: Dialect, typed: Typed) -> None:
    """Let the cores that a scheduler counts be those of the ranks, one for each device."""
    ranks, devices = file.values.get("ranks_per_node"), number(_count(file, "gpus_per_node")) or typed.devices
    if row.scheduler.behaviour.hosts_by_core and isinstance(ranks, int) and devices and ranks > devices:
        file.values |= {"ranks_per_node": devices, "cpus_per_rank": max(ranks // devices, 1)}


def _count(file: JobFile, key: str) -> str:
    """Return the number in a value such as ``a100:4``."""
    return str(file.values.get(key)).rpartition(":")[2]


def _ranks(file: JobFile, typed: Typed) -> int:
    """Return the ranks of a node: by default one for each device."""
    given = typed.whole("ranks_per_node") or number(_count(file, "ranks_per_node"))
    return given or typed.devices or number(_count(file, "gpus_per_node")) or 1


def _drop(file: JobFile, directive: str) -> None:
    others = [one for one in file.list("directive") if one != directive]
    file.values["directive"] = others
    if not others:
        del file.values["directive"]


def _read_with(row: Dialect, options: Sequence[OptionWords], context: Mapping[str, int]) -> JobFile:
    counts = [context.get(key) for key in ("nodes", "ranks_per_node", "cpus_per_rank")]
    request = Request(nodes=counts[0], ranks_per_node=counts[1], cpus_per_rank=counts[2])
    lines = row.scheduler.resources(request, "", "")[0] if context else []
    line = " ".join([row.scheduler.prefix, *lines, *map(shlex.join, options)])
    file = JobFile()
    script = Script(f"{line}\n".encode(), row.name)
    read_directives(file, script, row, totals=False)
    if "name" in file.values:
        set_name(file, script, row, 1)
    _pass_names(file, row)
    _read_times(file, row)
    return file


def _read_times(file: JobFile, row: Dialect) -> None:
    """Read times that the scheduler refuses, such as ``2h``, as jobgen reads them."""
    limit = row.scheduler.request_forms["walltime"].removesuffix("={}")
    for one in file.list("directive"):
        name, _, text = one.partition("=")
        if name not in (limit, "--time-min", *(f"-l {name}" for name in row.time_resources)):
            continue
        if row.accepts_time(text):
            file.values |= {"walltime": "queue"} if name == limit else {}  # there is no limit
            continue
        _drop(file, one)
        if why := refusal("walltime", text):
            file.remarks.append(Remark(1, one, why if name == limit else "is no duration"))
        elif name == limit:
            file.values["walltime"] = text
        else:
            file.add("directive", f"{name}={row.scheduler.clock(walltime(text))}")


def _replace_refused(file: JobFile, row: Dialect) -> Iterator[str]:
    """Replace directives that the scheduler refuses by jobgen's options; yield the advice for the others."""
    for one in file.list("directive"):
        options = read_options(one, row.scheduler)
        for key, part in (setting for option in options for setting in row.scheduler.settings(option)):
            _, instead = row.scheduler.keys.refused_beside.get(key, ("", ""))  # of jobgen's request
            fault = (
                f"use {instead.replace('VALUE', part.value)}" if instead else row.value_fault(key, part.value)
            )
            if not fault:
                continue
            _drop(file, one)
            own = row.option_of(key)
            if own is None or (fault := refusal(own, part.value)):
                yield fault
            else:
                file.values[own] = part.value
            break


def refusal(key: str, value: str) -> str:
    """Return what to write instead of a value that jobgen's option refuses; empty if it accepts it."""
    try:
        BY_KEY[key].parse(value)
    except ValueError as error:
        return f"use {BY_KEY[key].flag}, it {error}"
    return ""


def long_names(scheduler: Dialect) -> set[str]:
    return {
        *scheduler.scheduler.grammar.long_options,
        *(name[2:] for name in scheduler.scheduler.grammar.short_options),
    }
