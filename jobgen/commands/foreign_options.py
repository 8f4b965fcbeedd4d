"""The options of sbatch, qsub and the launchers, typed for jobgen: the options of jobgen that mean the same.

Only errors need this module.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import click

from jobgen.commands.accepted import is_bare
from jobgen.commands.answer_trial import Trial, try_answer
from jobgen.commands.foreign_launchers import launcher_options, mpi_letters, of_launcher, of_value, split
from jobgen.commands.foreign_values import words_for
from jobgen.convert.to_job_file.option_sizes import JobCommandLine, OptionWords
from jobgen.convert.to_job_file.scheduler_options import (
    Advice,
    long_names,
    of_scheduler,
    owner,
    refusal,
    whole,
)
from jobgen.errors import one_of
from jobgen.launch.launchers import EACH_DEVICE, LAUNCHERS
from jobgen.launch.program_launcher import launchers_in
from jobgen.options import BY_KEY, shell_text
from jobgen.schedulers.table import COMMANDS, named
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS, of_script
from jobgen.secrets import is_secret, masked_word
from jobgen.values.parsers import number

# Options of bsub, with their values, that no other scheduler has.
_LSF = r"-gpu .*|-R (?:span|rusage|select)\[.*|-W \d+(?::\d+)?|-nnodes \d+"


def hint(command: click.Command, words: Sequence[str], program: Sequence[str] = ()) -> str:
    """Return the sentence on the options of other programs among these words; empty without one."""
    line = _read(words, command)._replace(started=_started_ranks(program))
    name = next((word for word in (command.name, *words) if word in COMMANDS), None)
    target = of_script(named(name, line.ours.get("--dialect")).name) if name else None
    if lsf := [option for option in line.foreign if re.fullmatch(_LSF, " ".join(option))]:
        why = "there is no counterpart, as jobgen makes no scripts for LSF"
        return f"{' '.join(map(_shown, lsf[0]))} (command line): is an option of bsub; {why}"
    options, answers = _answers(line, target)
    if not options:
        return ""
    use, remarks = _advice(answers, line)
    faults: list[str] = []
    if name:
        trial, faults = _trial(command, line.kept, use, name, program)
        names_ranks = any(one.startswith("--ranks-per-node") for one in use)
        if trial.fault:
            use, remarks = [], [f"there is no counterpart, as jobgen refuses {trial.fault}"]
        elif trial.devices and names_ranks and "gpu" not in " ".join(options).lower():
            remarks += [f"this requests {trial.devices}, one for each rank; --accelerator cpu requests none"]
    owners = one_of(dict.fromkeys(owner for one in answers for owner in one.owners)).replace(" or ", " and ")
    what = f"is an option of {owners}" if len(options) == 1 else f"are options of {owners}"
    advice = "; ".join(dict.fromkeys([*_use(command, name, use, answers), *remarks]))
    first = f"{' '.join(options)} (command line): {what}; {advice or 'leave it out, jobgen needs none'}"
    return "; ".join([first, *filter(None, faults)])


def _answers(line: JobCommandLine, target: Dialect | None) -> tuple[list[str], list[Advice]]:
    """Return the options of other programs as messages show them, and the advice on them. An option that
    no program has stays with the other words."""
    options, answers, of_schedulers = [], list[Advice](), dict[str, list[OptionWords]]()
    letters = mpi_letters(line)
    for words in line.foreign:
        option = whole(words, line.flags)
        row = owner(option, line, target)
        first = row and len(option[0]) == 2 and option[0] not in letters  # those of schedulers come first
        if (answer := of_value(option)) or (not first and (answer := of_launcher(option, line))):
            answers.append(answer)
        elif row:
            of_schedulers.setdefault(row.name, []).append(option)
        else:
            line.kept.append(words)
            continue
        options.append(" ".join(map(_shown, words)))
    answers += [of_scheduler(DIALECTS[name], many, line, target) for name, many in of_schedulers.items()]
    return options, answers


def _use(
    command: click.Command, name: str | None, use: Sequence[str], answers: Sequence[Advice]
) -> list[str]:
    """Return the part of an answer that names the words to use, if there are any."""
    submit = [*dict.fromkeys(flag for one in answers for flag in one.submit)]
    words = [*submit, *use, *(f"-- {one.program}" for one in answers if one.program)]
    if submit and command.name != "submit":
        words = ["jobgen submit", *([name] if name else []), *words]
    return [f"use {' '.join(words)}"] if words else []


def _trial(
    command: click.Command, kept: Sequence[OptionWords], use: Sequence[str], name: str, program: Sequence[str]
) -> tuple[Trial, list[str]]:
    """Try an answer beside the other words. Return the result without the options among these that jobgen
    refuses in any case, and the messages on these options.

    Without an option jobgen may refuse others that it accepts beside a better value of it: of those only
    values that it cannot read are named.
    """
    answer, faults, complete = shlex.split(" ".join(use)), dict[str, str](), bool(use)
    while True:
        words = [word for one in kept for word in one]
        trial = try_answer(command, [*words, *answer], name, program)
        if trial.error is None or trial.fault != try_answer(command, words, name, program).fault:
            return trial, [*faults.values()]
        option = BY_KEY.get(trial.error.option)
        refused = [one for one in kept if option and option.is_named(split(one)[0])]
        if option is None or not refused or option.key in faults:
            return Trial(), [*faults.values()]  # what is refused is not on the command line
        value = refusal(option.key, split(refused[-1])[1])
        faults[option.key] = trial.fault if complete or value else ""
        complete = complete and bool(trial.use)
        kept = [one for one in kept if one not in refused] + [shlex.split(trial.use)] * bool(trial.use)


def _started_ranks(program: Sequence[str]) -> str:
    """Return the ranks that a launcher in the program starts on a node, or gpu for one for each device;
    empty without a launcher that is started once on each node."""
    found = launchers_in(tuple(program)) if program else None
    if found is None or not LAUNCHERS[found.calls[-1][0]].once_a_node:
        return ""
    kind, options = found.calls[-1]
    count = next((options[one] for one in LAUNCHERS[kind].line.local_ranks if one in options), None)
    return count if count and number(count) else EACH_DEVICE[0]


def _advice(answers: Sequence[Advice], line: JobCommandLine) -> tuple[list[str], list[str]]:
    """Return the options of jobgen in the answers, as a shell takes them, and the remarks."""
    values = dict[str, Any]()
    items: list[tuple[str, Any]] = [item for one in answers for item in one.values.items()]
    for key, value in items:
        both = values.get(key)
        values[key] = [*both, *value] if isinstance(both, list) else value
        if isinstance(both, dict):
            values[key] = {**both, **value}
    replaced = {key for one in answers for key in one.replaced}
    given = [key for key in values if BY_KEY[key].flag in line.ours and not BY_KEY[key].multiple]
    given = [key for key in given if key not in replaced]
    use = [one for key, value in values.items() if key not in given for one in _typed_option(key, value)]
    remarks = [
        f"{BY_KEY[key].flag} is given already"
        for key in given
        if str(values[key]) != line.ours[BY_KEY[key].flag]
    ]
    return use, remarks + [remark for one in answers for remark in one.remarks]


def _shown(word: str) -> str:
    """Return a word as it was typed, in quotes if it needs them; the value of a secret is masked."""
    masked = masked_word(word)
    return masked if masked != word else shlex.quote(word)


def _typed_option(key: str, value: object) -> Iterator[str]:
    """Yield the words of an option of jobgen; a secret of ``--env`` stays out of them, and of the script."""
    if isinstance(value, dict):
        value = [
            name if one is None or is_secret(name, one) else f"{name}={one}" for name, one in value.items()
        ]
    for one in value if isinstance(value, list) else [value]:
        yield BY_KEY[key].flag if one is True else shell_text(key, str(one))


def _read(words: Sequence[str], command: click.Command) -> JobCommandLine:
    options = [one for one in command.params if isinstance(one, click.Option)]
    takes = {flag: not one.is_flag for one in options for flag in (*one.opts, *one.secondary_opts)}
    pairs = {name for row in LAUNCHERS.values() for name in row.line.pairs}
    line, at = JobCommandLine({}, [], tuple(takes), []), 0
    while at < len(words):
        name, equals, value = words[at].partition("=")
        following = words[at + 1] if at + 1 < len(words) else ""
        own_value = [following] * bool(not equals and re.match(r"[^-]|-\d", following))
        if name in pairs:
            own_value = list(words[at + 1 : at + 3])
        short = name[:2] if re.match(r"-[^-]", name) else ""
        start = at
        bare = is_bare([one for one in takes if takes[one]], words[at], following)
        if (takes.get(name) or takes.get(short)) and not bare:
            at += 1 + bool(name in takes and not equals)
            text = value if equals else following
            if _is_foreign_value(name, text):
                line.foreign.append(list(words[start:at]))
                continue
            line.ours[name] = text
        elif name.startswith("-") and (bare or equals or name not in takes or (short and own_value)):
            at += 1 + len(own_value)
            if "".join(option := [words[start], *own_value]).isprintable():
                line.foreign.append(option)
                continue
        else:
            at += 1
        line.kept.append(list(words[start:at]))
    return line


def _is_foreign_value(flag: str, text: str) -> bool:
    """Return whether jobgen refuses a value of its option that a scheduler takes for its own of this name."""
    option = next((one for one in BY_KEY.values() if one.is_named(flag) and not one.switch), None)
    return option is not None and bool(
        refusal(option.key, text) and any(words_for(row, option, text) for row in DIALECTS.values())
    )


def programs_with(word: str) -> list[str]:
    """Return the commands of the schedulers and the launchers that have an option."""
    name = word.partition("=")[0]
    long = name.startswith("--")
    launchers, *_ = launcher_options().get(name.replace("_", "-"), ([], "", ""))
    exact = bool(launchers) and not long and len(name) > 2  # such as -np
    rows = [row for row in DIALECTS.values() if row.scheduler.prefix and not exact]
    found = [
        row.command
        for row in rows
        if (
            name[2:] in long_names(row)
            if long
            else name[1:2] in row.scheduler.grammar.letters.replace(":", "")
        )
    ]
    return [*dict.fromkeys([*found, *launchers])]
