"""Rules about the wall time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.ranks.model import ranks
from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.rules.variables import is_printed
from jobgen.check.trials import is_trial, is_trial_by_name
from jobgen.errors import shown
from jobgen.schedulers.directive_options import read_options
from jobgen.schedulers.request import DirectiveOption, Request
from jobgen.script.other_text import has_gap, has_variable, is_for_engine
from jobgen.script.request import resources
from jobgen.script.script import Hit, Script
from jobgen.values.parsers import seconds as seconds_of


@rule(
    "no-walltime",
    WARNING,
    "No time limit",
    """Without a time limit the default of the queue applies. On some clusters it is minutes, and the job is
    killed. On others it is days, and the job waits longer, because it does not fit into shorter gaps. (It is
    a note if the job has one node and trains nothing on GPUs, or the only directive is one number, so that the command line may have
    the rest. It is one, too, if the script reads the index of an array or a number of nodes that no directive has, if a comment names the program
    that submits it, if the name of the queue or the QoS is a time, or that of one for short jobs or tests, in a script that is still to be filled in, and in a short trial: one
    called a test, a demonstration, a benchmark or an analysis, one in a folder of them, and one that only prints, loads modules, measures
    the machine or submits others. A comment, which may be about the queue, a command that submits
    the script again, or one in a file beside it may have the time limit, and one that gives the number of nodes,
    which the script reads.)""",
    message="no time limit: the default of the queue applies, which may be minutes or days",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    srun ./solver
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    srun ./solver
    """,
)
def no_walltime(script: Script) -> Iterator[Hit]:
    live, scheduler = script.directives.live, script.dialect.scheduler
    empty = not live or not script.directives.first_command
    if empty or _is_elsewhere(script) or _is_documented(script):
        return
    late = [one for line in script.directives.late for one in read_options(line.rest, scheduler, line.number)]
    options = (*script.options, *late)  # late-directive reports those without effect
    names = _names(options)
    form = scheduler.request_forms["walltime"]
    limits = {"walltime", "--time", "cput", script.dialect.key("walltime")}
    if not names & limits and not limits & _names(script.given):
        unsure = script.is_template or script.placeholders or _may_be_given(script) or is_trial(script)
        if unsure and (is_for_engine(script.name) or _is_driven(script)):
            return
        fix = f"add {scheduler.prefix} {form.format('HH:MM:SS')}, with more time than the job needs"
        yield Hit(live[-1].number, fix=fix, level=None if _is_large(script) and not unsure else NOTE)


def _is_large(script: Script) -> bool:
    """Return whether a job has several nodes, or trains on GPUs: what it loses costs more than the time of a node."""
    request = script.request
    trains = (request.gpus or request.gpus_per_node) and _TRAINS.search(_REMARK.sub("", script.tree.text))
    return bool(trains) or (request.nodes or 1) > 1


_TRAINS = re.compile(r"(?i)(?<!cons)train|tun(?:e|ing)(?![a-z])|learn|epoch|(?<![a-z])fit(?![a-z])")

_REMARK = re.compile(r"(?m)^\s*#(?!SBATCH|PBS).*")


def _names(options: tuple[DirectiveOption, ...]) -> set[str]:
    return {name for _, name, _ in resources(options)} | {option.flag for option in options}


_SUBMISSION = re.compile(r"\s*#.*\b(?:sbatch|[mq]sub)\s(?:.*?\s)?(?:--time[= ]|-t[= ]?\d|.*\bwalltime=)")


def _is_elsewhere(script: Script) -> bool:
    """Return whether a whole directive is to be filled in, or a submission in a comment has the time limit."""
    fields = (re.sub(r"-l\s+(?=[^\s=]+$)", "", line.rest) for line in script.directives.live)
    named = any(has_gap(rest) or has_variable(rest) for rest in fields if not rest.startswith("-"))
    return named or any(map(_SUBMISSION.match, script.lines))


def _may_be_given(script: Script) -> bool:
    """Return whether the command line may have the time limit, or the queue is named by it."""
    request = script.request
    others = (request.gpus, request.mem, request.gpus_per_node, request.queue, request.totals)
    is_time = any(map(_TIME_NAME.search, _queues(script)))
    few = not any((*sizes(request), *others)) or (len(script.options) == 1 and not request.queue)
    return few or is_time or _has_options(script) or _has_nodes(script)


def sizes(request: Request) -> tuple[object, ...]:
    """Return the numbers of nodes, ranks and cores of a request."""
    return request.nodes, request.ranks, request.ranks_per_node, request.cpus_per_rank, request.chunks


def _is_driven(script: Script) -> bool:
    """Return whether the size of the job comes from the command that submits it: no directive has a number, and the
    script reads it from variables that it does not set."""
    if any(sizes(script.request)):
        return False
    jobs = {name for name, key in script.dialect.job_variables.items() if key in ("nodes", "ranks")}
    return any(
        name in jobs or (name not in script.values and (":?" in node.text or _OF_SIZE.fullmatch(name)))
        for name, node in script.expansions
        if not is_printed(node)
    )


_OF_SIZE = re.compile(
    r"WALL_?TIME|TIME_?LIMIT|N_?NODES|NUM_?NODES|N_?TASKS|NUM_?RANKS|N_?RANKS|QUEUE|PARTITION"
)


def _has_nodes(script: Script) -> bool:
    """Return whether a script for any number of nodes reads this number, which no directive has."""
    request = script.request
    names = {name for name, key in script.dialect.job_variables.items() if key == "nodes"}
    fixed = request.nodes or request.ranks or request.chunks or request.totals or "--nodes" in script.heeded
    return not fixed and any(name in names for name, _ in script.expansions)


# A comment that names the program which submits the script.
_SUBMITTED = re.compile(
    r"\s*#.*\b(?:submitted|called|started|launched|invoked) (?:by|from|through|via|with) \S+\.\w+", re.I
)


def _has_options(script: Script) -> bool:
    """Return whether the command that submits the script has further options: a program gives them, or it makes
    an array."""
    by_program = any(re.fullmatch(r"\S*\$\S*", one.given) for one in script.given if not one.flag)
    return by_program or script.is_array_by_command or any(map(_SUBMITTED.match, script.lines))


def _queues(script: Script) -> list[str]:
    """Return the names of the queue and the QoS of a job."""
    names = [script.request.queue, *(one.value for one in script.options_of("--qos"))]
    return [name for name in names if name]


def _is_documented(script: Script) -> bool:
    """Return whether a comment has the time limit of the queue or the QoS: ``# long  24hr``, ``# long MaxTime=1-0``,
    or a part of it, ``# short (1 GPU, 2 hours), long (...)``."""
    named = "|".join(map(re.escape, _queues(script)))
    time = r"\d\s*(?:h|hrs?|hours?|days?|mins?|minutes?)\b"
    line = re.compile(
        rf"\s*#+\s*(?:{named})\W.*{time}|.*\s#.*\b(?:{named})\s*\([^()]*{time}|\s*#.*\b(?:{named})\s.*\bMaxTime=\d",
        re.I,
    )
    return bool(named) and any(map(line.match, script.lines))


# In the name of a queue whose limit users know.
_TIME_NAME = re.compile(
    r"(?i)\d(h|hrs?|hours?|d|days?|mins?|w|weeks?)(?![a-z])|unlimit|infinit|no_?limit|(?<![a-z])(debug|dev(el\w*)?|tests?|express|(quick|short)q?|short(term|er))(?![a-z])"
)

# First numbers that users mean as hours in H:M; others may be minutes.
_MINUTES = {2, 3, 5, 10, 15, 20}  # of short tests
_DAYS = ("24", "36", "48", "72", "96")  # a bare number of hours
_HOURS = {6, 8, 12, 16, 18, 24, 36, 48, 72, 96, 168}


def _times(script: Script) -> Iterator[tuple[DirectiveOption, str]]:
    for option in script.options_of("--time", "--time-min", script.dialect.key("walltime")):
        yield option, option.value
    for option, name, value in resources(script.options):
        if name in script.dialect.time_resources:
            yield option, script.dialect.time(value)


@rule(
    "bad-walltime",
    ERROR,
    "A time that the scheduler refuses",
    """PBS Pro takes seconds, `M:S` and `H:M:S`, Torque also `D:H:M:S`, Slurm minutes, `M:S`, `H:M:S`,
    `D-H`, `D-H:M` and `D-H:M:S`. `1h`, `1d` and, on PBS, `1-00:00:00` are refused. `HH:MM:SS` means the
    same everywhere.""",
    fix="write HH:MM:SS",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=1-00:00:00
    hostname
    """,
    good={"#PBS -l walltime=1-00:00:00": "#PBS -l walltime=24:00:00"},
)
def bad_walltime(script: Script) -> Iterator[Hit]:
    for option, text in _times(script):
        if not script.dialect.accepts_time(text):
            forms = script.dialect.time_forms
            yield Hit.at(option, f"the time {shown(text)} is refused: allowed are {forms}")


def _says_minutes(script: Script, number: int, minutes: int) -> bool:
    """Return whether a comment at a line, or in the three above, has the number of minutes in words."""
    near = " ".join(script.line(at) for at in range(number - 3, number + 1))
    return re.search(rf"#.*\b{minutes} *-?min", near, re.I) is not None


@rule(
    "short-walltime",
    WARNING,
    "Minutes that look like hours",
    """`24:00` is 24 **minutes**, on PBS and on Slurm. A bare number is seconds on PBS and minutes on Slurm.
    (From 60 minutes on, as in `100:00`, this is only a note, and so are `--time=48` for Slurm and a short trial. It is silent if minutes
    are plausible, as in `30:00`, and if a comment says "24 minutes".)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=24:00
    srun python3 train.py
    """,
    good={"#SBATCH --time=24:00": "#SBATCH --time=24:00:00"},
)
def short_walltime(script: Script) -> Iterator[Hit]:
    for option, text in _times(script):
        total = script.dialect.seconds(text)
        if total is None:
            continue
        first, colon, rest = text.partition(":")
        if colon and ":" not in rest and "-" not in text:
            if (rest == "00" and int(first) in _MINUTES) or _says_minutes(script, option.line, int(first)):
                continue
            hours = int(first) in _HOURS or total < 300
            if not hours and int(first) < 60:
                continue
            reason = f"{text} is {int(first)} minutes and {int(rest)} seconds, not hours and minutes"
            time = f"{int(first):02}:{int(rest):02}"
            fix = f"write {time}:00 for hours, 00:{time} for minutes"
            yield Hit.at(option, reason, fix, None if hours and not is_trial_by_name(script) else NOTE)
        elif script.dialect.bare_seconds and not colon and total < 300:
            level = NOTE if is_trial_by_name(script) else None
            yield Hit.at(option, f"{text} is {total} seconds for PBS", "write HH:MM:SS", level)
        elif script.dialect.bare_seconds or text not in _DAYS:
            continue
        elif not _says_minutes(script, option.line, int(text)):
            fix = f"write {text}:00:00 for hours, 00:{text}:00 for minutes"
            yield Hit.at(option, f"{text} is {text} minutes for Slurm, not hours", fix, NOTE)


@rule(
    "late-limit",
    WARNING,
    "A limit behind the end of the job",
    """A limit of time in the script is for what follows it: a restart, a copy of the results, a last checkpoint. One
    that is not below the time limit of the job is never reached, as the scheduler kills the whole job before. A
    `--signal` that is to come before the job begins comes at once (measured on Slurm 22.05). (It is a note if nothing
    in the script reads the status of `timeout`.)""",
    fix="write less than the time limit of the job",
    bad="""
    #!/bin/bash
    #SBATCH --time=24:00:00
    set -euo pipefail
    status=0
    timeout 48h python3 train.py || status=$?
    if [ "$status" -eq 124 ]; then scontrol requeue "$SLURM_JOB_ID"; else exit "$status"; fi
    """,
    good={"timeout 48h python3 train.py || status=$?": "timeout 23h python3 train.py || status=$?"},
)
def late_limit(script: Script) -> Iterator[Hit]:
    total = script.request.walltime
    if not total or not script.in_job:
        return
    for option in script.options_of("--signal"):
        _, _, before = option.value.partition("@")
        if before.isascii() and before.isdigit() and int(before[:9]) >= total:
            reason = f"the signal is to come {before} s before the end of a job of {total} s: Slurm sends it at once"
            yield Hit.at(option, reason)
    ends = f"the scheduler ends the job after {total / 3600:g} h"
    for command in script.commands:
        seconds, text = _timeout([script.constants.value(word) or "" for word in command.words])
        if seconds >= total:
            level = None if command.guarded or command.tested else NOTE
            yield Hit(command.line, f"{text} is never reached: {ends}", level=level)
    for one in ranks(script):
        for name, key, value in one.program.options:
            days, _, rest = value.partition(":")
            time = f"{days}-{rest}" if re.fullmatch(r"\d\d(:\d\d){3}", value, re.ASCII) else ""
            if key.rpartition(".")[2] == "max_time" and (seconds_of(time) or 0) >= total:
                yield Hit(one.line, f"{name} is {value}, days first, and never reached: {ends}")


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _timeout(words: list[str]) -> tuple[float, str]:
    """Return the seconds of ``timeout`` in front of a command, as a launcher or a wrapper may be, and its text."""
    at = next((at for at, word in enumerate(words[:_FAR]) if os.path.basename(word) == "timeout"), len(words))
    for word, before in zip(words[at + 1 : at + _FAR], words[at:], strict=False):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", word, re.ASCII)
        if match and before not in ("-k", "--kill-after", "-s", "--signal"):
            return float(match[1]) * _UNITS[match[2]], f"timeout {word}"
        if not match and not word.startswith("-") and not before.startswith("-"):
            break
    return 0, ""


_FAR = 8  # words to look at
