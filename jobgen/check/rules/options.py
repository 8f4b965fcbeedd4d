"""Rules about the options of directives: their names and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jobgen.check.request import resources
from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.check.rules.directive_effects import trailing
from jobgen.check.script import Hit, Script
from jobgen.errors import nearest, shown
from jobgen.schedulers.base import matches
from jobgen.schedulers.request import Option
from jobgen.schedulers.slurm import MAIL_TYPES


def _misspelt(flag: str, known: Mapping[str, str]) -> str:
    """Return a hint at the nearest long option; sites add options, so only likely typos are reported."""
    return nearest(flag[2:], known, cutoff=0.8) if flag.startswith("--") and flag[2:] not in known else ""


@rule(
    "unknown-option",
    ERROR,
    "An option that qsub or sbatch does not know",
    """qsub and sbatch refuse a script with an unknown option, and with a word that belongs to no option:
    the dash is missing, or a value contains a blank without quotes.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --ntask-per-node=4
    hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --ntasks-per-node=4
    hostname
    """,
)
def unknown(script: Script) -> Iterator[Hit]:
    faulty = set(trailing(script))  # trailing-comment reports these
    for option in script.options:
        if option.line not in faulty and (fault := _fault(option, script)):
            faulty.add(option.line)  # report only the first error of a line
            if fault[0]:
                yield Hit(option.line, *fault)


def _fault(option: Option, script: Script) -> tuple[str, str] | None:
    """Return why an option is invalid, and the fix; an empty reason if another rule reports it."""
    dialect, command = script.dialect, script.dialect.command
    if not option.flag:
        if option.value in dialect.component_words:
            return None
        reason = (
            f"{shown(option.value)} is neither an option nor the value of one: {command} refuses the script"
        )
        return reason, "begin every option with a dash, and write values with blanks in quotes"
    if not dialect.long_options and option.flag.startswith("--"):
        return f"{option.given} is Slurm's, not PBS's: qsub refuses it", _FOREIGN_FIX
    if len(option.flag) == 2 and option.flag[1] not in dialect.letters.replace(":", ""):
        return (
            "" if option.flag in dialect.foreign_options else f"{command} has no option {option.flag}"
        ), _FOREIGN_FIX
    if hint := _misspelt(option.flag, dialect.long_options):
        return f"{command} has no option {option.given}{hint}", "correct the name"
    return None


_FOREIGN_FIX = "use this scheduler's own option; jobgen convert translates a whole script"


@rule(
    "other-dialect",
    ERROR,
    "An option of another scheduler",
    """PBS Pro and Torque share `#PBS`, but not all that follows: arrays are `-J 0-9` in PBS Pro and `-t
    0-9` in Torque; `select=` and `place=` are PBS Pro's; resource lists (`-l`) are not Slurm's.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -t 0-9
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -J 0-9
    hostname
    """,
)
def dialect(script: Script) -> Iterator[Hit]:
    for option in script.options:
        where = option.value.partition("=")[0]
        if option.flag in script.dialect.foreign_options:
            owner, use = script.dialect.foreign_options[option.flag]
            yield Hit(option.line, f"{option.flag} is {owner}'s: it is refused here", use or _FOREIGN_FIX)
        elif option.flag == "-l" and (reason := script.dialect.foreign_resources.get(where)):
            yield Hit(option.line, f"{where}= is {reason}", _FOREIGN_FIX)


@rule(
    "bad-name",
    ERROR,
    "A job name that PBS refuses",
    """PBS Pro allows up to 230 letters, digits and `. _ + -` in a job name; Torque allows everything except
    blanks. qsub refuses other names. Very old servers allow 15 characters, of which the first is a
    letter.""",
    fix="use letters, digits and . _ + - without blanks",
    bad="""
    #!/bin/bash
    #PBS -N cifar/run1
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -N cifar-run1
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    hostname
    """,
)
def bad_name(script: Script) -> Iterator[Hit]:
    for option in script.options:
        if option.flag == "-N" and (why := script.dialect.name_fault(option.value)):
            yield Hit(option.line, f"the name {shown(option.value)} {why}")


@rule(
    "memory-unit",
    ERROR,
    "A memory size that the scheduler refuses or misreads",
    """PBS takes whole numbers with `kb`, `mb`, `gb` or `tb`; a bare number is bytes. Slurm takes whole
    numbers with `K`, `M`, `G` or `T`; a bare number is megabytes. `64GiB` and `1.5G` are refused by
    both.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --mem=1.5G
    hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --mem=1536M
    hostname
    """,
)
def memory(script: Script) -> Iterator[Hit]:
    bare, unit, likely = script.dialect.bare_size
    for option, name, text in _memories(script):
        if matches(bare, text):
            reason = f"{name}={text} is {text} {unit}"
            yield Hit(option.line, reason, f"add the unit: {text}{likely}", WARNING)
        elif not re.fullmatch(r"\d+([kmgtp]?[bw]?)", text, re.I | re.ASCII):
            yield Hit(
                option.line,
                f"{name}={shown(text)} is refused: a whole number and one of {script.dialect.size_units}",
                script.dialect.size_example,
            )


def _memories(script: Script) -> Iterator[tuple[Option, str, str]]:
    for option in script.options:
        if option.flag in script.dialect.memory_options:
            yield option, option.flag, option.value
    for option, name, value in resources(script.options):
        if name in ("mem", "pmem", "vmem", "pvmem"):
            yield option, name, value
        elif name == "select":
            for part in re.split(r"[:+]", value):
                key, _, text = part.partition("=")
                if key in ("mem", "vmem"):
                    yield option, key, text


@rule(
    "bad-choice",
    ERROR,
    "A word that the option does not know",
    """`-j` takes `oe`, `eo` or `n`; `-m` takes `n` or letters of `abe`; `--mail-type` takes words such as
    `END,FAIL`. The scheduler refuses all others.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --mail-type=ENDED
    hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --mail-type=END
    hostname
    """,
)
def bad_choice(script: Script) -> Iterator[Hit]:
    for option in script.options:
        pattern, words, fix = script.dialect.choices.get(option.flag, (".*", "", ""))
        if not matches(pattern, option.value):
            yield Hit(option.line, f"{option.flag} {shown(option.value)} is refused: {words}", fix)
        elif option.flag == "--mail-type":
            bad = [name for name in option.value.split(",") if name.upper() not in MAIL_TYPES]
            if bad:
                hint = nearest(bad[0].upper(), MAIL_TYPES)
                yield Hit(option.line, f"--mail-type has no {shown(bad[0])}{hint}", "write END,FAIL")
