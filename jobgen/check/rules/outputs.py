"""Rules about arrays and the names of output files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.check.script import Hit, Script
from jobgen.errors import shown
from jobgen.schedulers.base import key_of
from jobgen.schedulers.request import Option


def _outputs(script: Script) -> Iterator[Option]:
    return (option for option in script.options if option.flag in script.dialect.log_options)


@rule(
    "output-variable",
    ERROR,
    "A variable in the path of an output file",
    """Directives are not read by a shell: `-o $HOME/x` is a file with a dollar sign in its name, on PBS Pro
    and on Slurm. PBS Pro supports only `^array_index^`; Slurm supports `%j`, `%x`, `%A` and `%a`.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    #SBATCH --output=train-$SLURM_JOB_ID.log
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
            yield Hit(
                option.line,
                f"no variable is expanded in a directive: the file is called {shown(option.value)}",
                f"write the path out; the scheduler knows {script.dialect.log_words}",
            )
        elif option.value.startswith("~"):
            yield Hit(
                option.line,
                f"no ~ is expanded in a directive: the file is called {shown(option.value)}",
                "write the path out",
            )
        elif not script.dialect.percent_codes and re.search(r"%[jJAaxNu]", option.value):
            yield Hit(
                option.line,
                f"%j and the like are Slurm's: for PBS the file is called {shown(option.value)}",
                "leave the option out: PBS names the file NAME.oJOBID",
            )


@rule(
    "output-directory",
    WARNING,
    "The directory of an output file is missing",
    """The scheduler does not create the directory of an output file. Slurm then does not start the job; PBS
    runs it, ends it with status 0, and loses the output. A `mkdir` in a Slurm script runs too late. (The
    directory is searched beside the script.)""",
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
    for option in _outputs(script):
        folder = os.path.dirname(option.value.rpartition(":")[2] if copied else option.value)
        path = script.path(folder)
        if not folder or path is None or re.search(r"[%$~^]", folder) or os.path.isdir(path):
            continue
        if copied and folder in made:
            continue
        yield Hit(
            option.line,
            f"there is no directory {shown(folder)}: the scheduler makes none, and the output is lost",
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
    for option in script.options:
        if option.flag == key_of(dialect.array_form) and not dialect.accepts_array(option.value):
            reason = f"the array {shown(option.value)} is refused: allowed are {dialect.array_forms}"
            yield Hit(option.line, reason)


def rerun_array(script: Script) -> Iterator[Hit]:
    """Yield a hit for an array with -r n: PBS Pro refuses it."""
    said = {option.flag: option for option in script.options}
    if script.dialect.array_needs_rerun and "-J" in said and said.get("-r", said["-J"]).value == "n":
        yield Hit(said["-J"].line, "an array that may not be run again is refused", "leave out -r n")


@rule(
    "array-output",
    WARNING,
    "One output file for all tasks of an array",
    """Without `%a` (or `%j`) in the name, all tasks of an array write to the same file and overwrite each
    other.""",
    message="all tasks of the array write into this one file, each over the others",
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
            if option.flag != "--input" and "%" not in option.value and not option.value.startswith("/dev/"):
                yield Hit(option.line)
