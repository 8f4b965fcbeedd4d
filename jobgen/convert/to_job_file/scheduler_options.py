"""The options of sbatch and qsub, typed for jobgen: read as directives, as jobgen convert reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.convert.to_job_file import option_sizes as sizes
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.directives import NO_PLACE, read_directives, set_name, unpack
from jobgen.convert.to_job_file.option_sizes import JobCommandLine, OptionWords
from jobgen.options import BY_KEY
from jobgen.schedulers.directive_options import read_options, values_by_key
from jobgen.schedulers.request import Request
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script
from jobgen.secrets import masked_word
from jobgen.values.parsers import walltime


class Advice(NamedTuple):
    """Advice on options of another program: the values of jobgen's options instead of them, and remarks.

    ``replaced`` are the keys of options that were typed and get another value, ``submit`` options of
    jobgen submit, and ``program`` is the program, as a shell takes it.
    """

    owners: Sequence[str]
    values: Mapping[str, object]
    remarks: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    submit: tuple[str, ...] = ()
    program: str = ""


def owner(option: OptionWords, line: JobCommandLine, target: Dialect | None) -> Dialect | None:
    """Return the scheduler whose option it is: of those that have it, the first that jobgen can follow."""
    anywhere = target is None or not target.scheduler.prefix

    def order(row: Dialect) -> tuple[bool, ...]:
        away = target is not None and row.family != target.family
        text = f" {' '.join(option)}"
        marked = any(mark.weight > 1 and re.search(mark.pattern, text) for mark in row.marks)
        return away, anywhere and not row.scheduler.grammar.long_options, not marked, row is not target

    rows = [row for row in sorted(DIALECTS.values(), key=order) if row.scheduler.prefix and _has(row, option)]
    if rows and rows[0].scheduler.grammar.long_options:
        return rows[0]
    files = [(row, _read(row, [option], line)) for row in rows]
    # Those of whose option each part has a counterpart among the options of jobgen.
    kept = [pair for pair in files if not any(one.lost for one in pair[1].remarks)]
    complete = [row for row, file in kept if "directive" not in file.values and {*file.values} - {"dialect"}]
    return next(iter(complete or rows), None)


def whole(option: OptionWords, flags: Sequence[str]) -> OptionWords:
    """Return an option with a value, with its name in full; of a letter without ``=``."""
    if re.match(r"-\w=", option[0]):  # -t=2h
        return [option[0][:2], option[0][3:]]
    word, equals, value = option[0].partition("=")
    ours = any(flag.startswith(word) for flag in flags)
    for row in DIALECTS.values() if re.match(r"--\w{3}", word) and option != [word] and not ours else ():
        names = (name for name in row.scheduler.grammar.long_options if name.startswith(word[2:]))
        found = sorted(names, key=len)
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
    row: Dialect, options: Sequence[OptionWords], line: JobCommandLine, target: Dialect | None
) -> Advice:
    alone = [(one[0], read_options(one[0], row.scheduler)[0]) for one in options if len(one) == 1]
    if bare := [word for word, one in alone if row.scheduler.grammar.takes_value(one.flag) and not one.value]:
        return Advice([row.command], {}, (f"{' '.join(bare)} needs a value",))
    outside = [_not_in_scripts(row, one) for one in options]
    options = [one for one, advice in zip(options, outside, strict=True) if advice is None]
    advices = [advice for advice in outside if advice is not None]
    file = _read(row, options, line) if options else JobFile()
    if target is not None and row.family == target.family:
        sizes.keep_chunks(file, row)
    remarks = [*_replace_refused(file, row), *(remark for one in advices for remark in one.remarks)]
    if target is not None and row.family != target.family:
        file.values.pop("dialect", None)
        if lost := file.list("directive"):
            del file.values["directive"]
            remarks.append(f"{target.title} has no counterpart of {' '.join(lost)}")
    replaced: tuple[str, ...] = ()
    if line.started:
        sizes.leave_ranks(file, line)
    elif not sizes.keep_total(file, row, options, line):
        sizes.choose_launcher(file, (target or row).scheduler, line)
        if sizes.keep_devices(file, (target or row).scheduler, line):
            file.values["gpus_per_node"], replaced = 0, ("gpus_per_node",)
    _keep_whole(file, row, options)
    values = file.values
    remarks = [*(": ".join(filter(None, (one.what, one.why))) for one in file.remarks), *remarks]
    lacks = target.scheduler.lacks if target is not None else {}
    remarks += [lacks[key] for key in values if key in lacks]
    values = {key: value for key, value in values.items() if key not in lacks}
    return Advice(
        [row.command],
        {} if list(values) == ["dialect"] else values,
        tuple(remarks),
        replaced,
        tuple(flag for one in advices for flag in one.submit),
        next((one.program for one in advices if one.program), ""),
    )


def _keep_whole(file: JobFile, row: Dialect, options: Sequence[OptionWords]) -> None:
    """Request devices by the option that names other resources, too, instead of a directive."""
    given = values_by_key(map(shlex.join, options), row.scheduler)
    for one in file.list("directive"):
        name, _, part = one.partition("=")
        whole = given.get(name, part)
        if name in row.scheduler.keys.devices and part != whole and "gpus_per_node" in file.values:
            sizes.drop(file, one)
            del file.values["gpus_per_node"]
            file.add("directive", f"{name}={whole}")


def _not_in_scripts(row: Dialect, option: OptionWords) -> Advice | None:
    """Return the advice on an option that belongs to no script; None if it belongs there."""
    for one in read_options(shlex.join(option), row.scheduler):
        for key, part in row.scheduler.settings(one):
            if key in row.submit_options:
                return Advice([row.command], {}, submit=(row.submit_options[key],))
            if key == row.program_option:
                return Advice([row.command], {}, program=_program(part.value))
            if (why := row.not_in_scripts.get(key)) is not None:
                return Advice([row.command], {}, (why or f"leave {option[0]} out",))
    return None


def _program(text: str) -> str:
    """Return a command of the shell as jobgen's program."""
    text = masked_word(text)
    return text if re.fullmatch(r"[\w\s./=:,@%+-]*", text) else f"bash -c {shlex.quote(text)}"


def _read(row: Dialect, options: Sequence[OptionWords], line: JobCommandLine) -> JobFile:
    """Return the values of jobgen's options that options of a scheduler correspond to."""
    file = _read_with(row, options, {})
    if not row.scheduler.grammar.long_options:
        sizes.share_cores(file, row, line)
        sizes.share_totals(file, row, line)
        sizes.share_lines(file, row, line)
        return file
    # Totals, and numbers for each task or core, need the rest of the request, or its defaults.
    context, assumed = dict[str, int](), set[str]()
    own_cores = line.whole("cpus_per_rank")
    defaults = {"ranks_per_node": line.devices if own_cores else None}
    for key in ("nodes", "ranks_per_node", "cpus_per_rank"):
        count = file.values.get(key)
        if not isinstance(count, int):
            assumed.add(key)
            count = line.whole(key) or defaults.get(key) or 1
        context[key] = count
        file = _read_with(row, options, context)
    file.values = {key: value for key, value in file.values.items() if key not in assumed}
    sizes.share_cores(file, row, line)
    sizes.count_per_device(file, row, line)
    if "mem" in file.values and not own_cores and any(one[0].startswith(row.of_cores) for one in options):
        file.values.setdefault("cpus_per_rank", 1)
    sizes.refuse_range(file, row, options)
    return file


def _pass_names(file: JobFile, row: Dialect) -> None:
    """Move the variables of the environment from directives to ``--env``."""
    for one in file.list("directive"):
        found = re.fullmatch(rf'{row.names_option}[ =]"?(.*?)"?', one)
        names = found[1].split(",") if found else ["NONE"]
        plain = [name for name in names if re.fullmatch(r"(?!(ALL|NONE|NIL)$)[A-Za-z_]\w*", name)]
        if plain != names and "=" not in "".join(names):
            continue
        sizes.drop(file, one)
        file.add_variables(dict.fromkeys(plain))


def _read_with(row: Dialect, options: Sequence[OptionWords], context: Mapping[str, int]) -> JobFile:
    counts = [context.get(key) for key in ("nodes", "ranks_per_node", "cpus_per_rank")]
    request = Request(nodes=counts[0], ranks_per_node=counts[1], cpus_per_rank=counts[2])
    lines = row.scheduler.resources(request, "", "")[0] if context else []
    line = " ".join([row.scheduler.prefix, *lines, *map(shlex.join, options)])
    file = JobFile()
    script = Script(f"{line}\n".encode(), row.name)
    read_directives(file, script, totals=False)
    unpack(file, script)
    file.remarks = [one for one in file.remarks if one.what != NO_PLACE]  # one option is no whole request
    if "name" in file.values:
        set_name(file, script)
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
        sizes.drop(file, one)
        if why := refusal("walltime", text):
            file.lose(1, one, why if name == limit else "is no duration")
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
            fault = row.value_fault(key, part.value) or row.no_counterpart.get(key)
            fault = f"use {instead.replace('VALUE', part.value)}" if instead else fault
            if not fault:
                continue
            sizes.drop(file, one)
            if (own := row.option_of(key)) is None or (fault := refusal(own, part.value)):
                yield fault
            else:
                file.values[own] = part.value
            break


def refusal(key: str, value: str) -> str:
    """Return what to write instead of a value that jobgen's option refuses; empty if it accepts it."""
    try:
        BY_KEY[key].parse(value)
    except ValueError as error:
        return f"{BY_KEY[key].flag} {error}"
    return ""


def long_names(dialect: Dialect) -> set[str]:
    grammar = dialect.scheduler.grammar
    return {*grammar.long_options, *(name[2:] for name in grammar.short_options)}
