"""Rules about the options of directives: their names and values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.directive_reader import LONG, Option
from jobgen.check.request import mebibytes, resources
from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.check.rules.directive_effects import commented
from jobgen.check.script import Hit, Script
from jobgen.errors import nearest, shown
from jobgen.schedulers.table import letters


def _misspelt(flag: str) -> str:
    """Return a hint at the nearest option of sbatch; sites add options, so only likely typos are reported."""
    return nearest(flag[2:], LONG, cutoff=0.8) if flag.startswith("--") and flag[2:] not in LONG else ""


@rule("unknown-option", ERROR, "An option that qsub or sbatch does not know")
def unknown(script: Script) -> Iterator[Hit]:
    """qsub and sbatch refuse a script with an unknown option, and with a word that belongs to no option:
    the dash is missing, or a value contains a blank without quotes.

    Bad:

        #!/bin/bash
        #SBATCH --time=01:00:00
        #SBATCH --ntask-per-node=4
        hostname

    Good:

        #!/bin/bash
        #SBATCH --time=01:00:00
        #SBATCH --ntasks-per-node=4
        hostname
    """
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


@rule("other-dialect", ERROR, "An option of another scheduler")
def dialect(script: Script) -> Iterator[Hit]:
    """PBS Pro and Torque share `#PBS`, but not all that follows: arrays are `-J 0-9` in PBS Pro and `-t
    0-9` in Torque; `select=` and `place=` are PBS Pro's; resource lists (`-l`) are not Slurm's.

    Bad:

        #!/bin/bash
        #PBS -l select=1:ncpus=8
        #PBS -l walltime=01:00:00
        #PBS -t 0-9
        hostname

    Good:

        #!/bin/bash
        #PBS -l select=1:ncpus=8
        #PBS -l walltime=01:00:00
        #PBS -J 0-9
        hostname
    """
    for option in script.options:
        where = option.value.partition("=")[0]
        if owner := _elsewhere(option, script):
            use = {"-l": _FOREIGN_FIX, "-t": "for an array write -J 0-9", "-J": "for an array write -t 0-9"}
            yield Hit(option.line, f"{option.flag} is {owner}'s: it is refused here", use[option.flag])
        elif script.scheduler == "torque" and option.flag == "-l" and where in ("select", "place"):
            yield Hit(option.line, f"{where}= is PBS Pro's: Torque asks for nodes=N:ppn=M", _FOREIGN_FIX)


@rule("bad-name", ERROR, "A job name that PBS refuses")
def bad_name(script: Script) -> Iterator[Hit]:
    """PBS Pro allows up to 230 letters, digits and `. _ + -` in a job name; Torque allows everything except
    blanks. qsub refuses other names. Very old servers allow 15 characters, of which the first is a
    letter.

    Bad:

        #!/bin/bash
        #PBS -N cifar/run1
        #PBS -l select=1:ncpus=8
        #PBS -l walltime=01:00:00
        hostname

    Good:

        #!/bin/bash
        #PBS -N cifar-run1
        #PBS -l select=1:ncpus=8
        #PBS -l walltime=01:00:00
        hostname
    """
    for option in script.options:
        if script.is_pbs and option.flag == "-N" and (why := _name_fault(option.value, script.scheduler)):
            yield Hit(
                option.line,
                f"the name {shown(option.value)} {why}",
                "use letters, digits and . _ + - without blanks",
            )


def _name_fault(name: str, scheduler: str) -> str:
    if scheduler == "torque":
        return "is refused: Torque allows no blanks" if re.search(r"\s", name) or not name else ""
    if not re.fullmatch(r"[A-Za-z0-9._+-]+", name, re.ASCII):
        return "is refused: PBS Pro allows letters, digits and . _ + - only"
    return "is too long: 230 characters are allowed" if len(name) > 230 else ""


@rule("memory-unit", ERROR, "A memory size that the scheduler refuses or misreads")
def memory(script: Script) -> Iterator[Hit]:
    """PBS takes whole numbers with `kb`, `mb`, `gb` or `tb`; a bare number is bytes. Slurm takes whole
    numbers with `K`, `M`, `G` or `T`; a bare number is megabytes. `64GiB` and `1.5G` are refused by
    both.

    Bad:

        #!/bin/bash
        #SBATCH --time=01:00:00
        #SBATCH --mem=1.5G
        hostname

    Good:

        #!/bin/bash
        #SBATCH --time=01:00:00
        #SBATCH --mem=1536M
        hostname
    """
    for option, name, text in _memories(script):
        if script.is_pbs and mebibytes(text, "b") is not None and re.fullmatch(r"\d+", text):
            yield Hit(
                option.line, f"{name}={text} is {text} bytes for PBS", f"add the unit: {text}gb", WARNING
            )
        elif script.scheduler == "slurm" and re.fullmatch(r"[1-9]\d?|1\d\d", text):
            yield Hit(option.line, f"{name}={text} is {text} megabytes", f"add the unit: {text}G", WARNING)
        elif not re.fullmatch(r"\d+([kmgtp]?[bw]?)", text, re.I | re.ASCII):
            yield Hit(
                option.line,
                f"{name}={shown(text)} is refused: a whole number and one of kb, mb, gb and tb"
                if script.is_pbs
                else f"{name}={shown(text)} is refused: a whole number and one of K, M, G and T",
                "write 64gb instead of 64GiB, and 1536mb instead of 1.5gb"
                if script.is_pbs
                else "write 64G instead of 64GiB, and 1536M instead of 1.5G",
            )


def _memories(script: Script) -> Iterator[tuple[Option, str, str]]:
    if script.scheduler == "slurm":
        for option in script.options:
            if option.flag in ("--mem", "--mem-per-cpu", "--mem-per-gpu"):
                yield option, option.flag, option.value
    for option, name, value in resources(script.options):
        if name in ("mem", "pmem", "vmem", "pvmem"):
            yield option, name, value
        elif name == "select":
            for part in re.split(r"[:+]", value):
                key, _, text = part.partition("=")
                if key in ("mem", "vmem"):
                    yield option, key, text


@rule("bad-choice", ERROR, "A word that the option does not know")
def bad_choice(script: Script) -> Iterator[Hit]:
    """`-j` takes `oe`, `eo` or `n`; `-m` takes `n` or letters of `abe`; `--mail-type` takes words such as
    `END,FAIL`. The scheduler refuses all others.

    Bad:

        #!/bin/bash
        #SBATCH --time=01:00:00
        #SBATCH --mail-type=ENDED
        hostname

    Good:

        #!/bin/bash
        #SBATCH --time=01:00:00
        #SBATCH --mail-type=END
        hostname
    """
    mails = {"NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "ARRAY_TASKS"}
    mails |= {f"TIME_LIMIT{suffix}" for suffix in ("", "_90", "_80", "_50")}
    for option in script.options:
        if script.is_pbs and option.flag == "-j" and option.value not in ("oe", "eo", "n"):
            yield Hit(option.line, f"-j {shown(option.value)} is refused: oe, eo or n", "write -j oe")
        elif script.is_pbs and option.flag == "-m" and not re.fullmatch(r"n|[abejfp]+", option.value):
            yield Hit(
                option.line, f"-m {shown(option.value)} is refused: n, or letters of abe", "write -m abe"
            )
        elif option.flag == "--mail-type":
            bad = [name for name in option.value.split(",") if name.upper() not in mails]
            if bad:
                hint = nearest(bad[0].upper(), mails)
                yield Hit(option.line, f"--mail-type has no {shown(bad[0])}{hint}", "write END,FAIL")
