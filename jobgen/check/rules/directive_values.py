"""Rules about the values of directives: times, names, files, sizes, arrays."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.directive_reader import Option
from jobgen.check.request import mebibytes, resources, seconds, without_fraction
from jobgen.check.rule import ERROR, NOTE, WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.errors import nearest, shown

# First numbers of H:M that users mean as hours; other values may be meant as minutes.
_HOURS = {6, 8, 12, 16, 18, 24, 36, 48, 72, 96, 120, 168}


def _times(script: Script) -> Iterator[tuple[Option, str]]:
    for option in script.options:
        if option.flag in ("--time", "--time-min"):
            yield option, option.value
    if script.is_pbs:
        yield from (
            (option, without_fraction(value) if script.scheduler == "pbspro" else value)
            for option, name, value in resources(script.options)
            if name in ("walltime", "cput", "pcput", "min_walltime", "max_walltime")
        )


def bad_walltime(script: Script) -> Iterator[Hit]:
    for option, text in _times(script):
        if script.scheduler == "slurm" and text.lower() in ("infinite", "unlimited"):
            continue
        if seconds(text, script.scheduler) is None:
            forms = {
                "slurm": "minutes, M:S, H:M:S, D-H, D-H:M and D-H:M:S",
                "torque": "seconds, M:S, H:M:S and D:H:M:S",
                "pbspro": "seconds, M:S and H:M:S",
            }[script.scheduler]
            yield Hit(
                option.line, f"the time {shown(text)} is refused: allowed are {forms}", "write HH:MM:SS"
            )


def short_walltime(script: Script) -> Iterator[Hit]:
    for option, text in _times(script):
        total = seconds(text, script.scheduler)
        if total is None:
            continue
        first, colon, rest = text.partition(":")
        if colon and ":" not in rest and "-" not in text:
            hours = int(first) in _HOURS or total < 300
            yield Hit(
                option.line,
                f"{text} is {int(first)} minutes and {int(rest)} seconds, not hours and minutes",
                f"write {int(first):02}:{int(rest):02}:00 for hours, 00:{int(first):02}:{int(rest):02} "
                "for minutes",
                None if hours else NOTE,
            )
        elif script.is_pbs and not colon and total < 300:
            yield Hit(option.line, f"{text} is {total} seconds for PBS", "write HH:MM:SS")


def bad_name(script: Script) -> Iterator[Hit]:
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


def _outputs(script: Script) -> Iterator[Option]:
    names = ("--output", "--error", "--input") if script.scheduler == "slurm" else ("-o", "-e")
    return (option for option in script.options if option.flag in names)


def output_variable(script: Script) -> Iterator[Hit]:
    for option in _outputs(script):
        known = "%j and %x" if script.scheduler == "slurm" else "^array_index^"
        if script.scheduler != "torque" and re.search(r"\$\{?[A-Za-z_]", option.value):
            yield Hit(
                option.line,
                f"no variable is expanded in a directive: the file is called {shown(option.value)}",
                f"write the path out; the scheduler knows {known}",
            )
        elif option.value.startswith("~"):
            yield Hit(
                option.line,
                f"no ~ is expanded in a directive: the file is called {shown(option.value)}",
                "write the path out",
            )
        elif script.is_pbs and re.search(r"%[jJAaxNu]", option.value):
            yield Hit(
                option.line,
                f"%j and the like are Slurm's: for PBS the file is called {shown(option.value)}",
                "leave the option out: PBS names the file NAME.oJOBID",
            )


def output_directory(script: Script) -> Iterator[Hit]:
    made = " ".join(word for command in script.named("mkdir") for word in command.literals)
    for option in _outputs(script):
        folder = os.path.dirname(option.value.rpartition(":")[2] if script.is_pbs else option.value)
        path = script.path(folder)
        if not folder or path is None or re.search(r"[%$~^]", folder) or os.path.isdir(path):
            continue
        if script.is_pbs and folder in made:
            continue  # PBS copies the file after the job has ended
        yield Hit(
            option.line,
            f"there is no directory {shown(folder)}: the scheduler makes none, and the output is lost",
            f"mkdir -p {folder} before you submit",
        )


def memory(script: Script) -> Iterator[Hit]:
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


_ARRAYS = {
    "pbspro": (r"\d+-\d+(:0*[1-9]\d*)?(%\d+)?", "FIRST-LAST, FIRST-LAST:STEP and FIRST-LAST%LIMIT"),
    "torque": (r"\d+(-\d+)?(,\d+(-\d+)?)*(%\d+)?", "a list of numbers and FIRST-LAST, then %LIMIT"),
    "slurm": (
        r"\d+(-\d+(:\d+)?)?(,\d+(-\d+(:\d+)?)?)*(%\d+)?",
        "a list of numbers and FIRST-LAST:STEP, then %LIMIT",
    ),
}


def bad_array(script: Script) -> Iterator[Hit]:
    yield from rerun_array(script)
    flags = {"pbspro": "-J", "torque": "-t", "slurm": "--array"}
    for option in script.options:
        if option.flag != flags[script.scheduler]:
            continue
        pattern, forms = _ARRAYS[script.scheduler]
        match = re.fullmatch(pattern, option.value, re.ASCII)
        ends = re.match(r"(\d+)-(\d+)", option.value, re.ASCII)
        empty = script.scheduler == "pbspro" and ends is not None and int(ends[1]) >= int(ends[2])
        if not match or empty or (ends and int(ends[1]) > int(ends[2])):
            yield Hit(
                option.line, f"the array {shown(option.value)} is refused: allowed are {forms}", "write 0-9"
            )


def rerun_array(script: Script) -> Iterator[Hit]:
    """Yield a hit for an array with -r n: PBS Pro refuses it."""
    said = {option.flag: option for option in script.options}
    if script.scheduler == "pbspro" and "-J" in said and said.get("-r", said["-J"]).value == "n":
        yield Hit(said["-J"].line, "an array that may not be run again is refused", "leave out -r n")


def array_output(script: Script) -> Iterator[Hit]:
    if script.scheduler == "slurm" and script.request.array:
        for option in _outputs(script):
            if option.flag != "--input" and "%" not in option.value and not option.value.startswith("/dev/"):
                yield Hit(
                    option.line,
                    "all tasks of the array write into this one file, each over the others",
                    "name it after the task: %A_%a",
                )


def bad_choice(script: Script) -> Iterator[Hit]:
    """Yield a hit for a word outside a fixed set: -j, -m and --mail-type."""
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


RULES = (
    Rule("bad-walltime", ERROR, "A time that the scheduler refuses", bad_walltime),
    Rule("short-walltime", WARNING, "Minutes that look like hours", short_walltime),
    Rule("bad-name", ERROR, "A job name that PBS refuses", bad_name),
    Rule("output-variable", ERROR, "A variable in the path of an output file", output_variable),
    Rule("output-directory", WARNING, "The directory of an output file is missing", output_directory),
    Rule("memory-unit", ERROR, "A memory size that the scheduler refuses or misreads", memory),
    Rule("bad-array", ERROR, "An array that the scheduler refuses", bad_array),
    Rule("array-output", WARNING, "One output file for all tasks of an array", array_output),
    Rule("bad-choice", ERROR, "A word that the option does not know", bad_choice),
)
