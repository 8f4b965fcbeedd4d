"""Rules about arrays and the names of output files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.check.rules.placeholders import EXPANDS_NOTHING
from jobgen.errors import shown
from jobgen.schedulers.base import key_of
from jobgen.schedulers.request import Option
from jobgen.script.script import Hit, Script


def _outputs(script: Script) -> Iterator[Option]:
    return (option for option in script.options if option.flag in script.dialect.log_options)


@rule(
    "output-variable",
    ERROR,
    "A variable in the path of an output file",
    """Directives are not read by a shell: `-o $HOME/x` is a file with a dollar sign in its name, on PBS Pro
    and on Slurm (`src/slurmd/slurmstepd/fname.c`). PBS Pro supports only `^array_index^`; Slurm supports `%j`,
    `%x`, `%A` and `%a`. Slurm does not start a job whose output is in a directory that does not exist. (For
    a name without a directory, and on PBS, this is only a warning.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --output=$HOME/train.log
    hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --output=train-%j.log
    hostname
    """,
)
def output_variable(script: Script) -> Iterator[Hit]:
    for option in _outputs(script):
        if not script.dialect.log_variables and re.search(r"\$\{?[A-Za-z_]", option.value):
            yield Hit.at(
                option,
                f"{script.dialect.command} {EXPANDS_NOTHING}: the file is called {shown(option.value)}",
                f"write the full path; the scheduler supports {script.dialect.log_words}",
                _lost(script, option.value),
            )
        elif option.value.startswith("~"):
            yield Hit.at(
                option,
                f"a directive does not expand ~: the file is called {shown(option.value)}",
                "write the full path",
                _lost(script, option.value),
            )
        elif not script.dialect.percent_codes and re.search(r"%[jJAaxNu]", option.value):
            yield Hit.at(
                option,
                f"PBS does not expand Slurm's %j and the like: the file is called {shown(option.value)}",
                "remove the option: PBS names the file NAME.oJOBID",
                WARNING,
            )


def _lost(script: Script, path: str) -> str | None:
    """Return the level of an output with a literal variable: whether the job fails for its directory."""
    return None if not script.dialect.copies_logs and re.search(r"[$~].*/", path) else WARNING


@rule(
    "output-directory",
    WARNING,
    "The directory of an output file is missing",
    """The scheduler does not create the directory of an output file. Slurm then does not start the job; PBS
    runs it, ends it with status 0, and loses the output. A `mkdir` in a Slurm script runs too late. (A
    relative path is searched for in the directory of the script; an absolute one may exist on the cluster only
    and is not reported.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --output=no-such-directory/train-%j.log
    hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --output=train-%j.log
    hostname
    """,
)
def output_directory(script: Script) -> Iterator[Hit]:
    made = " ".join(word for command in script.named("mkdir") for word in command.literals)
    copied = script.dialect.copies_logs
    moved = (script.heeded[key].value for key in script.dialect.directory_options if key in script.heeded)
    if any(map(os.path.isabs, moved)):
        return  # a relative folder is below that one
    for option in _outputs(script):
        folder = os.path.dirname(option.value.rpartition(":")[2] if copied else option.value)
        path = script.path(folder)
        if (
            not folder
            or os.path.isabs(folder)
            or path is None
            or re.search(r"[%$~^]", folder)
            or os.path.isdir(path)
            or f"/{script.folder}".endswith(
                f"/{os.path.normpath(folder)}"
            )  # of the script, submitted from above
        ):
            continue
        if copied and folder in made:
            continue
        yield Hit.at(
            option,
            f"the directory {shown(folder)} does not exist: the scheduler does not create it, and the output is lost",
            f"mkdir -p {folder} before you submit",
        )


@rule(
    "bad-array",
    ERROR,
    "An array that the scheduler refuses",
    """PBS Pro takes `0-9`, `0-9:2` and `0-9%3`, and neither a single number nor a list; Torque takes lists
    and ranges; Slurm takes both, with steps.""",
    fix="write 0-9",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -J 3,5,7
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -J 3-7:2
    hostname
    """,
)
def bad_array(script: Script) -> Iterator[Hit]:
    yield from rerun_array(script)
    dialect = script.dialect
    array = key_of(dialect.scheduler.request_forms.get("array", ""))
    for option in script.options:
        if option.flag == array and not dialect.accepts_array(option.value):
            reason = f"the array {shown(option.value)} is refused: allowed are {dialect.array_forms}"
            yield Hit.at(option, reason)


def rerun_array(script: Script) -> Iterator[Hit]:
    """Yield a hit for an array with -r n: PBS Pro refuses it."""
    options = {option.flag: option for option in script.options}
    if script.dialect.array_needs_rerun and "-J" in options and options.get("-r", options["-J"]).value == "n":
        yield Hit(options["-J"].line, "an array with -r n is refused", "remove -r n")


@rule(
    "array-output",
    WARNING,
    "One output file for all tasks of an array",
    """Without `%a` (or `%j`) in the name, all tasks of an array write to the same file and overwrite each
    other. `%x` is the name of the job and `%A` the id of the whole array: they are the same in all tasks
    (`src/slurmd/slurmstepd/fname.c`).""",
    message="all tasks of the array write to this file and overwrite each other",
    fix="name it after the task: %A_%a",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --array=0-9
    #SBATCH --output=train.log
    hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --array=0-9
    #SBATCH --output=train-%A_%a.log
    hostname
    """,
    schedulers=("slurm",),
)
def array_output(script: Script) -> Iterator[Hit]:
    if script.request.array:
        for option in _outputs(script):
            shared = not re.search(r"%\d*[ajJb]|\\", option.value.replace("%%", ""))
            if option.flag != "--input" and shared and not re.match(r"/dev/|.*{{", option.value):
                yield Hit(option.line)
