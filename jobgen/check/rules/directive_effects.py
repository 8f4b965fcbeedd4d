"""Rules about directives: those that the scheduler ignores or reads otherwise than meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.script import Hit, Script
from jobgen.errors import shown
from jobgen.schedulers.precedence import heeded


@rule(
    "inert-directive",
    ERROR,
    "A directive that is only a comment",
    """A directive must begin with `#PBS` or `#SBATCH`, in capitals, without a blank, and on Slurm in the
    first column. `# PBS`, `#pbs` and `##PBS` are comments: the job runs with the defaults of the queue,
    without a message. (`##` is a common way to disable a directive: that is only a note.)""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    # PBS -q gpu
    #PBS -l walltime=01:00:00
    cd "$PBS_O_WORKDIR" || exit 1
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -q gpu
    #PBS -l walltime=01:00:00
    cd "$PBS_O_WORKDIR" || exit 1
    """,
)
def inert(script: Script) -> Iterator[Hit]:
    dialect = script.dialect
    for line in script.directives.inert:
        doubled = line.text.lstrip().startswith("##")  # a common way to disable a directive
        yield Hit(
            line.number,
            f"{shown(line.text.strip())} is a comment: only {dialect.prefix} counts, in capitals and "
            "without a blank" + ("" if dialect.indented_directives else ", at the beginning of the line"),
            f"write {dialect.prefix} {line.rest}, or take the line out",
            NOTE if doubled else None,
        )


@rule(
    "late-directive",
    ERROR,
    "A directive after the first command",
    """qsub and sbatch read directives up to the first command. Blank lines and comments do not end this
    part; everything else does, including `set -e` and assignments. Later directives are ignored without
    a message.""",
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
        )


def commented(rest: str) -> bool:
    """Return whether a comment follows a directive; the word after -C is the prefix of directives."""
    return re.search(r"\s#", re.sub(r"-C\s*#\S*", "", rest)) is not None


def trailing(script: Script) -> list[int]:
    """Return the lines whose directive takes a comment for a part of it."""
    lines = () if script.dialect.directive_comments else script.directives.live
    return [line.number for line in lines if commented(line.rest)]


@rule(
    "trailing-comment",
    ERROR,
    "A comment behind a PBS directive",
    """PBS reads the whole line as the directive: qsub refuses a script with a comment after it. (sbatch
    allows comments there.)""",
    message="PBS takes the comment for a part of the directive and refuses the job",
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
    for number in trailing(script):
        yield Hit(number)


@rule(
    "carriage-return",
    ERROR,
    "Line ends of Windows",
    """A file edited on Windows ends its lines with a carriage return and a line feed. sbatch refuses it
    ("DOS line breaks"), PBS refuses it with a less clear message, and bash reads the character as a part
    of the last word of each line.""",
    message="the line ends with a carriage return, as on Windows: the schedulers refuse the "
    "script, and bash "
    "takes the character for a part of the last word",
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
            yield Hit(number)
            return


@rule(
    "repeated-directive",
    WARNING,
    "A directive twice, with two values",
    """Slurm and Torque use the **last** one. PBS Pro uses the **first** one for each resource of `-l`, and
    the **last** one for all other options. One of the two values has no effect. (Some options add up:
    `-W depend` on PBS Pro, `-W stagein`, `-W stageout` and `-W x` on Torque, `--mail-type` on Slurm.
    Options on the command line win over the script.)""",
    fix="keep one of them",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -l walltime=12:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=12:00:00
    hostname
    """,
)
def repeated(script: Script) -> Iterator[Hit]:
    seen: dict[str, str] = {}
    for key, option in script.settings:
        which = heeded(key, script.scheduler)
        once = which != "all" and option.value and script.dialect.takes_value(key)
        if once and seen.setdefault(key, option.value) != option.value:
            yield Hit(
                option.line,
                f"{key} is there already, as {shown(seen[key])}: of repeated directives "
                f"{script.dialect.title} heeds the {which}",
            )


@rule(
    "no-shebang",
    WARNING,
    "No #! line",
    """sbatch refuses a script whose first line does not begin with `#!`. PBS runs it with the login shell,
    which may not be bash.""",
    fix="begin with #!/bin/bash",
    bad="""
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    hostname
    """,
)
def no_shebang(script: Script) -> Iterator[Hit]:
    if script.lines and not script.lines[0].startswith("#!") and (script.is_batch or script.commands):
        refused = script.dialect.needs_shebang
        what = "sbatch refuses a script without it" if refused else "the login shell runs it"
        yield Hit(
            1,
            f"the first line does not say which shell this is for: {what}",
            level=ERROR if refused else None,
        )
