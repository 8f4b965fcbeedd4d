"""Rules about directives of PBS and Slurm: which of them have an effect."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.directive_reader import LONG, Option
from jobgen.check.request import resources, settings
from jobgen.check.rule import ERROR, NOTE, WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.errors import nearest, shown
from jobgen.schedulers.precedence import heeded
from jobgen.schedulers.table import SCHEDULERS, letters


def _prefix(script: Script) -> str:
    return "#SBATCH" if script.scheduler == "slurm" else "#PBS"


def inert(script: Script) -> Iterator[Hit]:
    for line in script.directives.inert:
        doubled = line.text.lstrip().startswith("##")  # a common way to disable a directive
        yield Hit(
            line.number,
            f"{shown(line.text.strip())} is a comment: only {_prefix(script)} counts, in capitals and "
            "without a blank" + ("" if script.is_pbs else ", at the beginning of the line"),
            f"write {_prefix(script)} {line.rest}, or take the line out",
            NOTE if doubled else None,
        )


def late(script: Script) -> Iterator[Hit]:
    texts = [
        (node.line, node.line + node.text.count("\n"))
        for node in script.tree.all("heredoc_body", "raw_string", "string")
    ]
    for line in script.directives.late:
        if any(first <= line.number <= last for first, last in texts):
            continue  # part of a script that this one writes
        yield Hit(
            line.number,
            f"directives end at the first command, which is in line {script.directives.first_command}: "
            "this one is ignored",
            "move it above the first command",
        )


def commented(rest: str) -> bool:
    """Return whether a comment follows a directive; the word after -C is the prefix of directives."""
    return re.search(r"\s#", re.sub(r"-C\s*#\S*", "", rest)) is not None


def trailing_comment(script: Script) -> Iterator[Hit]:
    if not script.is_pbs:
        return  # sbatch accepts them
    for line in script.directives.live:
        if commented(line.rest):
            yield Hit(
                line.number,
                "PBS takes the comment for a part of the directive and refuses the job",
                "put the comment on a line of its own",
            )


def carriage_return(script: Script) -> Iterator[Hit]:
    for number, line in enumerate(script.lines, 1):
        if line.endswith("\r"):
            yield Hit(
                number,
                "the line ends with a carriage return, as on Windows: the schedulers refuse the "
                "script, and bash "
                "takes the character for a part of the last word",
                "convert the file: sed -i 's/\\r$//' FILE",
            )
            return


def repeated(script: Script) -> Iterator[Hit]:
    seen: dict[str, str] = {}
    for key, option in settings(script.options, script.scheduler):
        which = heeded(key, script.scheduler)
        once = which != "all" and option.value and _has_value(key, script)
        if once and seen.setdefault(key, option.value) != option.value:
            yield Hit(
                option.line,
                f"{key} is there already, as {shown(seen[key])}: of repeated directives "
                f"{SCHEDULERS[script.scheduler].title} heeds the {which}",
                "keep one of them",
            )


def _has_value(key: str, script: Script) -> bool:
    if not script.is_pbs:
        return LONG.get(key[2:]) == "="
    return " " in key or (len(key) == 2 and f"{key[1]}:" in letters(script.scheduler))


def _misspelt(flag: str) -> str:
    """Return a hint at the nearest option of sbatch; sites add options, so only likely typos are reported."""
    return nearest(flag[2:], LONG, cutoff=0.8) if flag.startswith("--") and flag[2:] not in LONG else ""


def unknown(script: Script) -> Iterator[Hit]:
    faulty = set()
    if script.is_pbs:  # trailing-comment reports these
        faulty |= {line.number for line in script.directives.live if commented(line.rest)}
    for option in script.options:
        if option.line not in faulty and (fault := _fault(option, script)):
            faulty.add(option.line)  # report only the first error of a line
            if fault[0]:
                yield Hit(option.line, *fault)


def _fault(option: Option, script: Script) -> tuple[str, str] | None:
    """Return why an option is invalid, and the fix; an empty reason if another rule reports it."""
    command = "qsub" if script.is_pbs else "sbatch"
    if not option.flag:
        if option.value in ("hetjob", "packjob") and not script.is_pbs:
            return None
        reason = (
            f"{shown(option.value)} is neither an option nor the value of one: {command} refuses the script"
        )
        return reason, "begin every option with a dash, and write values with blanks in quotes"
    if script.is_pbs and option.flag.startswith("--"):
        return f"{option.given} is Slurm's, not PBS's: qsub refuses it", _FOREIGN_FIX
    if len(option.flag) == 2 and option.flag[1] not in letters(script.scheduler).replace(":", ""):
        return ("" if _elsewhere(option, script) else f"{command} has no option {option.flag}"), _FOREIGN_FIX
    if script.scheduler == "slurm" and (hint := _misspelt(option.flag)):
        return f"sbatch has no option {option.given}{hint}", "correct the name"
    return None


def _elsewhere(option: Option, script: Script) -> str:
    """Return the other scheduler that the option belongs to; empty if there is none."""
    names = {("slurm", "-l"): "PBS", ("pbspro", "-t"): "Torque", ("torque", "-J"): "PBS Pro"}
    return names.get((script.scheduler, option.flag), "")


_FOREIGN_FIX = "use this scheduler's own option; jobgen convert translates a whole script"


def dialect(script: Script) -> Iterator[Hit]:
    """Yield a hit for each option that belongs to another scheduler."""
    for option in script.options:
        where = option.value.partition("=")[0]
        if owner := _elsewhere(option, script):
            use = {"-l": _FOREIGN_FIX, "-t": "for an array write -J 0-9", "-J": "for an array write -t 0-9"}
            yield Hit(option.line, f"{option.flag} is {owner}'s: it is refused here", use[option.flag])
        elif script.scheduler == "torque" and option.flag == "-l" and where in ("select", "place"):
            yield Hit(option.line, f"{where}= is PBS Pro's: Torque asks for nodes=N:ppn=M", _FOREIGN_FIX)


def no_walltime(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    names = {name for _, name, _ in resources(script.options)} | {option.flag for option in script.options}
    if not names & {"walltime", "--time", "cput"}:
        line = script.directives.live[-1].number
        option = "#SBATCH --time=01:00:00" if script.scheduler == "slurm" else "#PBS -l walltime=01:00:00"
        yield Hit(
            line,
            "no time limit: the queue's own holds, which may be minutes, or days that keep the job waiting",
            f"add {option}",
        )


def no_shebang(script: Script) -> Iterator[Hit]:
    if script.lines and not script.lines[0].startswith("#!") and (script.is_batch or script.commands):
        refused = (
            "sbatch refuses a script without it" if script.scheduler == "slurm" else "the login shell runs it"
        )
        yield Hit(
            1,
            f"the first line does not say which shell this is for: {refused}",
            "begin with #!/bin/bash",
            ERROR if script.scheduler == "slurm" else None,
        )


RULES = (
    Rule("inert-directive", ERROR, "A directive that is only a comment", inert),
    Rule("late-directive", ERROR, "A directive after the first command", late),
    Rule("trailing-comment", ERROR, "A comment behind a PBS directive", trailing_comment),
    Rule("carriage-return", ERROR, "Line ends of Windows", carriage_return),
    Rule("repeated-directive", WARNING, "A directive twice, with two values", repeated),
    Rule("unknown-option", ERROR, "An option that qsub or sbatch does not know", unknown),
    Rule("other-dialect", ERROR, "An option of another scheduler", dialect),
    Rule("no-walltime", WARNING, "No time limit", no_walltime),
    Rule("no-shebang", WARNING, "No #! line", no_shebang),
)
