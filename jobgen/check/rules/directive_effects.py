"""Rules about directives that the scheduler ignores or reads differently than intended."""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod
from typing import NamedTuple

from jobgen.check.ranks.environment import OF_MPI
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.check.rules.directories import exists, folder_of
from jobgen.errors import counted, shown
from jobgen.schedulers.directive_options import read_options
from jobgen.schedulers.request import DirectiveOption
from jobgen.script import script_arguments
from jobgen.script.command_kinds import STATE, TOOLS
from jobgen.script.dialects.table import SHELL
from jobgen.script.directives import Line, apart
from jobgen.script.other_text import foreign_lines, has_variable, is_for_person, is_template
from jobgen.script.request import settings
from jobgen.script.script import Edit, Hit, Script


@rule(
    "inert-directive",
    WARNING,
    "A directive that is only a comment",
    """A directive must begin with `#PBS` or `#SBATCH`, in capitals, without a blank, and on Slurm in the
    first column (`src/sbatch/opt.c`). `#pbs`, `#SBATCh`, `#SBTACH` and `#PSB` are comments, without a message.
    `# PBS` may be on purpose: it is one note for all, unless the script has no other directives; its job then runs
    with the defaults of the queue. It is silent if a directive has the same option with another value, if a comment says so, and without a value. It is a note if
    the job runs in the same way without it, as without a name or with one task. `##PBS` and `# #PBS` are the way to disable a directive.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #pbs -q gpu
    #PBS -l walltime=01:00:00
    cd "$PBS_O_WORKDIR" || exit 1
    """,
    good={"#pbs -q gpu": "#PBS -q gpu"},
)
def inert(script: Script) -> Iterator[Hit]:
    dialect, read = script.dialect, script.directives
    prefix = dialect.scheduler.prefix
    for command in script.named(prefix[1:]) if prefix[1:] else ():
        reason = (
            f"{shown(command.node.text)} is a command that does not exist: a directive begins with {prefix}"
        )
        fix = f"write {prefix} in front of its options, above the first command"
        words = read_options(command.node.text.removeprefix(prefix[1:]), dialect.scheduler, command.line)
        label = words and all(_is_label(script, key) for key, _ in settings(words, dialect.scheduler))
        yield Hit(command.line, reason, fix, NOTE if label and not read.late else None)
    given = {_begin(line) for line in (*read.live, *read.late)}
    disabled = [line for line in read.inert if re.match(rf"\s*#\s+{prefix[1:]}\s", line.text, re.I)]
    apart = [line for line in disabled if _begin(line) not in given and not _is_optional(script, line)]
    logs = {script.heeded[key].value for key in dialect.log_options if key in script.heeded}
    for line in read.inert:
        if line in apart[1:] or (line in disabled and line not in apart):
            continue
        own = _settings(script, line)
        if own and all(key in dialect.log_options and option.value in logs for key, option in own):
            continue  # the log is there anyway
        more = f", and {counted(len(apart) - 1, 'more line')} like it" if line in apart and apart[1:] else ""
        where = "" if dialect.indented_directives else ", at the beginning of the line"
        form = f"a directive begins with {prefix}, in capitals and without a blank{where}"
        reason, fix = f"{shown(line.text.strip())} is a comment{more}: {form}", f"write {prefix} {line.rest}"
        fix += ", or remove the line"
        same = own and all(_is_label(script, key) or _in_effect(script, key, one.value) for key, one in own)
        if conflict := _conflict(script, own):
            same, fix = True, f"remove the line: with it, {conflict}"
        level = NOTE if same or (line in apart and (read.live or read.late)) else None
        start, end = script.start_of(line.number), script.start_of(line.number + 1)
        edit = Edit(start, end, f"{prefix} {line.rest}\n".encode())
        yield Hit(line.number, reason, fix, level, () if conflict or line in apart else (edit,))


def _conflict(script: Script, own: list[tuple[str, DirectiveOption]]) -> str:
    """Return why the scheduler refuses the options in effect with further ones; empty if it does not."""
    given = {key: one.value for key, one in script.heeded.items()}
    with_own = {**given, **{key: one.value for key, one in own}}
    before, after = (
        {one.reason for one in script.dialect.conflicts(values, in_array=script.is_array_by_command)}
        for values in (given, with_own)
    )
    return min(after - before, default="")


def _is_optional(script: Script, line: Line) -> bool:
    """Return whether a comment says that a directive is disabled, or its value is still to be filled in."""
    near = f"{script.line(line.number - 1)}\n{line.text}"
    return line.rest.endswith("=") or re.search(r"(?i)#.*\b(comment(ed)? out|uncomment)\b", near) is not None


def _begin(line: Line) -> str:
    """Return the option of a directive, and of ``-l`` the resource."""
    match = re.match(r"\s*(-l\s*\w+|--?[\w-]+)", line.rest)
    return "" if match is None else re.sub(r"\s", "", match[1])


@rule(
    "foreign-scheduler",
    NOTE,
    "Directives of a scheduler that jobgen does not know",
    """NQSV of NEC and Moab's msub read `#PBS`, too, with options of their own, such as `--venode` and
    `-l elapstim_req=`. jobgen does not know these options: it checks the script as a shell script only.""",
    fix="if PBS runs the script, use --scheduler, and the options of qsub",
    bad="""
    #!/bin/bash
    #PBS -q sxs
    #PBS --venode=2
    #PBS -l elapstim_req=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -q batch
    #PBS -l select=1
    #PBS -l walltime=01:00:00
    hostname
    """,
)
def foreign_scheduler(script: Script) -> Iterator[Hit]:
    if script.guess.foreign and script.scheduler == SHELL:
        yield Hit(script.guess.foreign, script.guess.reason)


@rule(
    "late-directive",
    ERROR,
    "A directive after the first command",
    """qsub and sbatch read directives up to the first command. Blank lines and comments do not end this
    part; everything else does, including `set -e` and assignments. Later directives are ignored without
    a message. (Those in a here-document, in a string, or below the `#!` of another script in the same file
    are not reported, nor are those that repeat values in effect, and those below the last command with other values of options in effect, which a person
    keeps, or with a gap, as an example. A note are others below the last command, if the script has directives in effect; those of a script
    without any that writes or submits a job itself, has variables of another scheduler only, or reads variables of a
    rank of MPI and starts none, because a launcher starts it; those in an `if` that has directives of another scheduler, too;
    those that only pass variables of the submission, or name the job, its log or a mail; those of a script of PBS that reads arguments, which a program submits with
    `qsub -F` and options of its own; those whose option a command
    in a file beside the script gives, too; and those of which the script has several with different values, which are
    alternatives, unless programs run between them: then it is a warning, as all programs run with the first values. One node, task or core is the default of Slurm.)""",
    fix="move it above the first command",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    #SBATCH --nodes=2
    srun hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --nodes=2

    set -euo pipefail
    srun hostname
    """,
)
def late_directive(script: Script) -> Iterator[Hit]:
    begin = script.directives.first_command
    texts = script.tree.all("heredoc_body", "raw_string", "string")
    inner = [(node.line, node.line + node.text.count("\n")) for node in texts]
    if script.dialect.needs_shebang and not script.line(1).startswith("#!"):
        return  # sbatch refuses the script
    if is_template(first := script.line(begin)) or _is_unset(script, first):
        return  # the first command may be none in the script that is made of the template
    if script.directives.late and first.startswith("<<<<<<< "):
        reason = "the directives below are ignored: git has left this mark of a conflict"
        yield Hit(begin, reason, "resolve the conflict")
        return
    end = max((command.line for command in script.commands), default=0)
    bodies = (node.text for node in script.tree.all("heredoc_body"))
    submits = any(script.named("sbatch", "qsub")) or any(text.lstrip().startswith("#!") for text in bodies)
    writes_job, late = not script.directives.live and submits, _read_late(script)
    elsewhere = script.for_another_scheduler or late.of_ranks
    for line in script.directives.late if script.for_a_shell else ():
        if any(first <= line.number <= last for first, last in inner):
            continue  # part of a script that this one writes
        below, own = end < line.number, _settings(script, line)
        keys = {key for key, _ in own}
        if below and ((keys and keys <= script.heeded.keys()) or is_for_person(line.text)):
            continue  # other values, which a person keeps, or an example
        if own and all(_in_effect(script, key, one.value) for key, one in own):
            continue
        harmless, branch = _fix_of_harmless(script, line, late), late.branch(line)
        fix = _fix_of_late(script, line, late, harmless)
        mild = (below if script.directives.live else elsewhere) or (branch is not None and branch[2])
        mild = mild or fix == _SAME_NAME or late.has_arguments or (bool(keys) and _is_label(script, *keys))
        reason = f"the directive is ignored: it follows the first command, in line {begin}"
        level = NOTE if mild or writes_job or harmless else WARNING if late.in_turn & keys else None
        yield Hit(line.number, reason, fix, level, () if fix else _move(script, line))


def _in_effect(script: Script, key: str, value: str) -> bool:
    """Return whether an option has a value in effect: by another directive, or as the default that nothing reads."""
    if key in script.heeded:
        return script.heeded[key].value == value
    variable, *others = script.dialect.sizes_of_one.get(key, ("",))
    plain = all(one not in script.heeded or script.heeded[one].value == "1" for one in others)
    return value == "1" and bool(others) and plain and not (variable and variable in script.tree.text)


class _Late(NamedTuple):
    """What is read once for all late directives of a script.

    ``values`` are those of each option, ``in_turn`` the options with one for each program, ``ids`` the variables
    with the id of the job, and ``branches`` the first and last line of each condition, and whether it has directives
    of another scheduler, too. ``of_ranks``: a launcher starts the script, which reads variables of a rank of MPI and
    starts no ranks. ``has_arguments``: a program submits the script, which reads the arguments of ``qsub -F``.
    """

    values: dict[str, set[str]]
    in_turn: set[str]
    ids: set[str]
    branches: list[tuple[int, int, bool]]
    of_ranks: bool
    has_arguments: bool

    def branch(self, line: Line) -> tuple[int, int, bool] | None:
        """Return the condition around a directive; None if there is none."""
        at = bisect_left(self.branches, (line.number,)) - 1
        return self.branches[at] if at >= 0 and line.number <= self.branches[at][1] else None


def _read_late(script: Script) -> _Late:
    prefix = script.dialect.scheduler.prefix
    ids = {name for name, meaning in script.dialect.job_variables.items() if meaning == "job_id"}
    own = (re.search(r"\b(\w+)\s*=", text) for text in script.lines if any(one in text for one in ids))
    branches: list[tuple[int, int, bool]] = []
    for node in script.tree.all("if_statement", "case_statement"):
        if not branches or branches[-1][1] < node.line:  # the outermost
            foreign = any(one != prefix for one in _PREFIXES.findall(node.text))
            branches.append((node.line, node.line + node.text.count("\n"), foreign))
    ids |= {match[1] for match in own if match}
    of_ranks = not script.launches and any(OF_MPI.fullmatch(name) for name, _ in script.expansions)
    has_arguments = script.is_pbs and bool(script_arguments.reads(script.tree, script.commands))
    return _Late(_late_values(script), _values_in_turn(script), ids, branches, of_ranks, has_arguments)


_PREFIXES = re.compile(r"(?m)^[ \t]*(#(?:PBS|SBATCH|MSUB|BSUB|PJM|OAR|COBALT|\$))[ \t]+-")


def _fix_of_late(script: Script, line: Line, late: _Late, harmless: str) -> str:
    """Return the fix of a late directive that cannot be moved as it stands, or has a ``harmless`` reason; empty for
    others."""
    dialect, own = script.dialect, _settings(script, line)
    if late.of_ranks:
        return "give it to the job whose launcher starts the script"
    if late.in_turn & {key for key, _ in own}:
        return "a job has one value of it: submit a job for each"
    if variable := next((one for one in _options(script, line) if _is_unexpanded(one, script)), None):
        if not late.ids.isdisjoint(re.findall(r"\$\{?(\w+)", variable.value)):
            return _fix_of_id(script, variable)
        return f"give it to {dialect.command}: directives expand no variables of the script"
    faults = (dialect.value_fault(key, one.value, script.version) for key, one in own)
    if fault := next(filter(None, faults), ""):
        return f"correct it, and move it above the first command: {fault}"
    if late.branch(line):
        return f"give it to {dialect.command}: no condition of the script decides on a directive"
    if harmless:
        return harmless
    if late.has_arguments:
        command = f"the {dialect.command} that submits the script with its arguments"
        return f"remove it if {command} gives the option, else move it above the first command"
    outputs = (one for _, one in own if one.flag in dialect.output_options)
    folder = next(filter(None, (folder_of(script, one) for one in outputs)), ".")
    if not exists(script, folder) and not os.path.isabs(folder):
        return f"move it above the first command, and make the directory {shown(folder)} before you submit"
    return _fix_of_size(script, dict(own))


def _fix_of_size(script: Script, own: Mapping[str, DirectiveOption]) -> str:
    """Return the fix of a number of tasks that with that of the cores asks for more than most nodes have."""
    keys = {"--ntasks-per-node", "--cpus-per-task"}
    values = [(own.get(key) or script.heeded.get(key)) for key in sorted(keys)]
    numbers = [int(one.value) for one in values if one is not None and one.value.isdecimal()]
    if keys.isdisjoint(own) or len(numbers) < len(keys) or prod(numbers) <= _CORES:
        return ""
    return f"lower a number, and move it above the first command: {prod(numbers)} cores a node are requested then"


_CORES = 64  # of a node


def _is_unexpanded(option: DirectiveOption, script: Script) -> bool:
    """Return whether a value has variables that the scheduler does not replace."""
    replaces = script.dialect.log_variables and option.flag in script.dialect.log_options
    names = set(re.findall(r"\$\{?(\w+)", option.value))
    return has_variable(option.value) and not (replaces and names <= script.dialect.job_variables.keys())


def _fix_of_id(script: Script, option: DirectiveOption) -> str:
    """Return the fix of a late directive with the id of the job, which its command does not know yet."""
    dialect, folder = script.dialect, option.value.rpartition("/")[0]
    word = f"${dialect.variable('job_id')}" if dialect.log_variables else ""
    word = "%j" if dialect.percent_codes else word
    if option.flag not in dialect.log_options or has_variable(folder):
        return "remove it: directives expand no variables of the script"
    if word:
        return f"write {word} for the id of the job, and move it above the first command"
    if folder:
        return f"write {option.flag} {folder}/ above the first command: the name has the id of the job there"
    return _SAME_NAME


_SAME_NAME = "remove it: the name that the scheduler gives the file has the id of the job"


def _late_values(script: Script) -> dict[str, set[str]]:
    """Return the values of each option in the late directives, and the one in effect."""
    found = {key: {option.value} for key, option in script.heeded.items()}
    for line in script.directives.late:
        for key, option in _settings(script, line):
            found.setdefault(key, set()).add(option.value)
    return found


def _options(script: Script, line: Line) -> list[DirectiveOption]:
    """Return the options of a directive that is not in effect."""
    return read_options(line.rest, script.dialect.scheduler, line.number)


def _settings(script: Script, line: Line) -> list[tuple[str, DirectiveOption]]:
    """Return these options with the keys that identify their repetitions."""
    return list(settings(_options(script, line), script.dialect.scheduler))


def _values_in_turn(script: Script) -> set[str]:
    """Return the options that late directives have for one program after the other."""
    lines: dict[str, list[int]] = {}
    for line in script.directives.late:
        for key in {key for key, _ in _settings(script, line)}:
            lines.setdefault(key, []).append(line.number)
    programs = [one.line for one in script.commands if one.name not in TOOLS | STATE]
    turns = {key: sum(any(a < one < b for one in programs) for a, b in pairwise(lines[key])) for key in lines}
    return {key for key, count in turns.items() if count > 1}


def _is_unset(script: Script, text: str) -> bool:
    """Return whether a line is a variable in capitals alone that the script never sets."""
    found = re.fullmatch(r"\s*\$\{?([A-Z]\w*)\}?\s*", text)
    return found is not None and found[1] not in script.values


def _fix_of_harmless(script: Script, line: Line, late: _Late) -> str:
    """Return the fix of a late directive that is in effect anyway, passes variables only, or is one of several
    alternatives; empty for others."""
    given = {key for key, _ in settings(script.given, script.dialect.scheduler)}
    keys = [key for key, _ in _settings(script, line)]
    fixes = ["remove it"] if not keys and _options(script, line) else []
    for key in keys:
        alternative = len(late.values[key]) >= _ALTERNATIVES and key not in late.in_turn
        reasons = {
            "remove it, or move it above the first command if the job needs variables of the submission": key
            in script.dialect.passed_variables,
            f"remove it: {script.dialect.command} gets this option when it submits the script": key in given,
            "remove it: the two outputs are joined": key == "-e" == script.unused_log,
            f"keep one: {key} above is in effect": key in script.heeded and key in script.dialect.log_options,
            "move one of the alternatives above the first command": alternative,
        }
        fixes.append(next((fix for fix, holds in reasons.items() if holds), ""))
    return fixes[0] if fixes and all(fixes) else ""


_ALTERNATIVES = 3  # values of an option, of which a person moves one up


def _move(script: Script, line: Line) -> tuple[Edit, ...]:
    """Return the edits that put a late directive below the others, unless one of them has its option."""
    if any(key in script.heeded for key, _ in _settings(script, line)):
        return ()
    last = script.directives.live[-1].last if script.directives.live else 1
    start, end, place = (script.start_of(number) for number in (line.number, line.number + 1, last + 1))
    return Edit(start, end), Edit(place, place, line.text.encode() + b"\n")


@rule(
    "split-directive",
    ERROR,
    "Options in the line after a directive",
    """sbatch reads each line by itself: a backslash at the end of a directive has no effect, and the options
    in the next line are a command, which ends the directives. (qsub joins such lines; qsub of Torque only if
    the backslash is the last character.)""",
    fix="write a directive of its own in each line, without backslashes",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00 \\
      --nodes=2
    srun hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --nodes=2
    srun hostname
    """,
)
def split(script: Script) -> Iterator[Hit]:
    for number in apart(script.lines, script.directives):
        yield Hit(number, f"{script.dialect.command} does not join this line with the directive above it")


def trailing(script: Script) -> list[int]:
    """Return the lines that have a comment after a directive, which PBS reads as a part of it."""
    lines = () if script.dialect.scheduler.grammar.comments else script.directives.live
    return [line.number for line in lines if line.comment]


@rule(
    "trailing-comment",
    ERROR,
    "A comment after a PBS directive",
    """PBS Pro reads the whole line as the directive: qsub refuses a script with a comment after it. Torque
    ignores words that belong to no option. (sbatch allows comments there.)""",
    message="PBS reads the comment as a part of the directive and refuses the job",
    fix="put the comment on a line of its own",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=8  # two nodes
    #PBS -l walltime=01:00:00
    #PBS -l place=scatter
    hostname
    """,
    good="""
    #!/bin/bash
    # two nodes
    #PBS -l select=2:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -l place=scatter
    hostname
    """,
    schedulers=("pbs",),
)
def trailing_comment(script: Script) -> Iterator[Hit]:
    joined = {line.number for line in script.directives.live if line.more}
    for number in trailing(script):
        ignored = script.dialect.ignores_words
        if number in joined:
            what = "qsub joins the next line, and reads # and the words behind it as words of this directive"
            fix = "remove the backslash at the end of the line"
            yield Hit(number, what, fix, WARNING if ignored else None)
        elif ignored:
            has_option = re.search(r"\s#.*\s-\w", script.line(number)) is not None
            what = "Torque ignores the words of the comment; PBS Pro refuses a script with them"
            yield Hit(number, what, level=WARNING if has_option else NOTE)
        elif not script.is_sure:
            what = (
                "PBS Pro reads the comment as a part of the directive and refuses the job; Torque ignores it"
            )
            yield Hit(number, what, level=WARNING)
        else:
            yield Hit(number)


@rule_once(
    "carriage-return",
    ERROR,
    "Windows line ends",
    """A file edited on Windows ends its lines with a carriage return and a line feed. sbatch refuses it
    ("DOS line breaks"), PBS refuses it with a less clear message, and bash reads the character as a part
    of the last word of each line.""",
    message="the line ends with a carriage return, as on Windows: schedulers refuse the script, and bash "
    "reads it as a part of the last word",
    fix="convert the file: sed -i 's/\\r$//' FILE",
    bad="""
    #!/bin/bash\r
    #SBATCH --time=01:00:00\r
    hostname\r
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    hostname
    """,
)
def carriage_return(script: Script) -> Iterator[Hit]:
    for number, line in enumerate(script.lines, 1):
        if line.endswith("\r"):
            yield Hit(number, edits=(Edit(0, len(script.source), script.source.replace(b"\r\n", b"\n")),))


@rule(
    "repeated-directive",
    WARNING,
    "A directive twice, with two values",
    """Slurm and Torque use the **last** one. PBS Pro uses the **first** one for each resource of `-l`, and
    the **last** one for all other options. One of the two values has no effect. (Some options add up:
    `-W depend` on PBS Pro, `-W stagein`, `-W stageout` and `-W x` on Torque, `--mail-type` on Slurm.
    Options on the command line win over the script. It is a note if
    they differ in something else than time, nodes, ranks, cores, GPUs, memory or array, and if the value in effect is the
    larger time, memory or number, or the GPU with its type.)""",
    fix="keep one of them",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -l walltime=12:00:00
    hostname
    """,
    good={"#PBS -l walltime=01:00:00": ""},
)
def repeated(script: Script) -> Iterator[Hit]:
    seen: dict[str, str] = {}
    later, grammar = list(script.components), script.dialect.scheduler.grammar
    for key, option in script.settings:
        if later and option.line > later[0]:
            seen, later = {}, later[1:]
        which = grammar.precedence(key)
        once = which != "all" and option.value and grammar.takes_value(key)
        if once and seen.setdefault(key, option.value) != option.value:
            values = (seen[key], option.value) if which == "last" else (option.value, seen[key])
            mild = _SIZE.match(key) is None or re.search(r"\w", seen[key]) is None
            mild = mild or _covers(script, key, *values)
            fix = f"keep one of them{_JOINED.get(key, '')}"
            log, errors, *_ = (*script.dialect.log_options, "", "")
            if key == log and errors not in script.heeded and _is_of_errors(option.value, seen[key]):
                fix = f"write {errors} in its place here, or {fix}"
            reason = f"{key} has the value {shown(seen[key])} above: {script.dialect.title} uses the {which} of repeated directives"
            yield Hit.at(option, reason, fix, level=NOTE if mild else None)


def _is_of_errors(name: str, other: str) -> bool:
    """Return whether the first of two logs is called that of the errors."""
    first, second = (re.search(r"(?i)(?<![a-z])(?:std)?err(?:ors?)?(?![a-z])", one) for one in (name, other))
    return first is not None and second is None


def _covers(script: Script, key: str, lost: str, used: str) -> bool:
    """Return whether the job has all that the value without effect asks for: as much time, or a GPU with its type."""
    if key in ("--gres", "--gpus"):
        return set(lost.split(":")) <= set(used.split(":"))
    if key == script.dialect.key("walltime"):
        return (script.dialect.seconds(lost) or sys.maxsize) <= (script.dialect.seconds(used) or 0)
    few, many = (re.fullmatch(r"(\d{1,12})([a-zA-Z]*)", one, re.ASCII) for one in (lost, used))
    if key not in _AMOUNTS or few is None or many is None:
        return False
    return few[2].lower() == many[2].lower() and int(few[1]) <= int(many[1])


_SIZE = re.compile(r"--(?:time|nodes|ntasks|cpus|mem|gres|gpus|array)|-l (?!place\b|software\b)|-[Jt]$")
_AMOUNTS = (
    *("--nodes", "--ntasks", "--ntasks-per-node", "--cpus-per-task", "--mem", "--mem-per-cpu"),
    *("-l mem", "-l ncpus", "-l jobfs"),
)
_JOINED = {
    "--constraint": ", or join them with &",
    "--partition": ", or join them with a comma",
    "-m": ", or write the letters of both in one",
    **dict.fromkeys(("-l select", "-l nodes"), ", or write the parts of both in one"),
}
_LABELS = ("--comment", "--mail-type", "--mail-user", "-m", "-M", "--verbose", "-j")


def _is_label(script: Script, *keys: str) -> bool:
    """Return whether the job runs in the same way with other values of options."""
    return {*keys} <= {script.dialect.key("name"), *script.dialect.log_options, *_LABELS}


@rule(
    "no-shebang",
    NOTE,
    "No #! line",
    """sbatch refuses a script whose first line does not begin with `#!`. PBS runs it with the login shell,
    which may not be bash, unless `-S` names one. (A file that another one beside it copies, appends or sources is a
    part of a script, and is not reported; nor is one without a directive that no file beside it submits. For sbatch it is an error, but for one without a name of the job
    and without any `#!`, which may be such a part.)""",
    fix="begin with #!/bin/bash",
    bad="""
    #PBS -N solver
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    export OMP_NUM_THREADS=8
    hostname
    """,
    good={"#PBS -N solver": "#!/bin/bash", "export OMP_NUM_THREADS=8": ""},
)
def no_shebang(script: Script) -> Iterator[Hit]:
    first = script.lines[0] if script.lines else "#!"
    meant = script.directives.live or (script.commands and script.callers.options)
    if first.startswith("#!") or not (meant or re.match(r"\W*!\s*/", first)):
        return
    if any(script.options_of(script.dialect.shell_option)) or script.callers.completed:
        return  # the shell is named by -S, or it is a part of a script
    refused = script.dialect.needs_shebang
    what = "sbatch refuses a script without it" if refused else "the login shell runs it"
    several = len(script.lines) in foreign_lines(script.lines, script.directives.first_command)
    reason = f"the first line does not name a shell with #!: {what}"
    yield Hit(1, reason, level=ERROR if refused and _stands(script) and not several else None)


def _stands(script: Script) -> bool:
    """Return whether a script without its first line is a whole one: it has the line elsewhere, or the name of the
    job, or a file beside it submits it."""
    named = script.dialect.key("name") in script.heeded
    return named or any("#!" in line for line in script.lines) or bool(script.callers.options)
