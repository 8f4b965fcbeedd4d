"""Rules about bash: ignored failures."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.bash import Node, expansions
from jobgen.check.rule import WARNING, rule
from jobgen.check.script import Hit, Script
from jobgen.check.shell_commands import commands


@rule(
    "no-errexit",
    WARNING,
    "No set -e",
    """Without `set -e` a script continues after a failed command, and exits with the status of its last
    command: 35 of 45 public scripts. A job with a failed `module load` or training then counts as
    successful.""",
    message="without set -e the script goes on after a command that failed, and ends with the status "
    "of its last one",
    fix="write set -euo pipefail after the directives",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    module load cuda
    srun python3 train.py
    echo finished
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    module load cuda
    srun python3 train.py
    echo finished
    """,
)
def no_errexit(script: Script) -> Iterator[Hit]:
    if script.errexit or not script.commands:
        return
    first, last = script.commands[0], script.commands[-1]
    if last.name == "exit" and any(True for word in last.arguments for _ in expansions(word)):
        return  # the script keeps the status
    if len(script.commands) > 1 and any(command.works for command in script.commands):
        yield Hit(first.line)


@rule(
    "no-pipefail",
    WARNING,
    "set -e without pipefail",
    """`set -e` checks only the last command of a pipeline.""",
    message="set -e sees only the last command of a pipeline: what fails before the | is not noticed",
    fix="write set -o pipefail",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eu
    scontrol show hostnames | sed 's/$/ slots=4/' > "hostfile.$SLURM_JOB_ID"
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    scontrol show hostnames | sed 's/$/ slots=4/' > "hostfile.$SLURM_JOB_ID"
    """,
)
def no_pipefail(script: Script) -> Iterator[Hit]:
    if not script.errexit or script.pipefail:
        return
    for node in script.tree.all("pipeline"):
        if not node.under("command_substitution", "if_statement", "while_statement") and not _teed(node):
            yield Hit(node.line)
            return


def _teed(pipeline: Node) -> bool:
    """Return whether the rule lost-status applies: work, and then tee or another filter."""
    inner = list(commands(pipeline))
    return any(command.works for command in inner[:-1])


@rule(
    "lost-status",
    WARNING,
    "The status of the training is lost in a pipe",
    """The status of `training | tee log` is that of tee, 0: the scheduler records the job as completed, and
    dependent jobs start.""",
    message="the status of the pipeline is its last command's: the job succeeds when the training has failed",
    fix="write set -o pipefail before it",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -e
    srun python3 train.py 2>&1 | tee "train.$SLURM_JOB_ID.log"
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    srun python3 train.py 2>&1 | tee "train.$SLURM_JOB_ID.log"
    """,
)
def lost_status(script: Script) -> Iterator[Hit]:
    if script.pipefail or any(name == "PIPESTATUS" for name, _ in script.expansions):
        return
    for node in script.tree.all("pipeline"):
        if _teed(node) and not node.under("command_substitution"):
            yield Hit(node.line)


@rule(
    "unchecked-cd",
    WARNING,
    "A cd that may fail unseen",
    """If `cd` fails in a script without `set -e`, the following commands run in the wrong directory and may
    overwrite or delete files there.""",
    message="when this fails, all that follows happens in the wrong directory",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    cd "$PBS_O_WORKDIR"
    rm -f core.*
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    cd "$PBS_O_WORKDIR" || exit 1
    rm -f core.*
    """,
)
def unchecked_cd(script: Script) -> Iterator[Hit]:
    if script.errexit:
        return
    for command in script.named("cd", "pushd"):
        if (
            command.arguments
            and not command.guarded
            and not command.node.under("subshell", "command_substitution")
        ):
            yield Hit(command.line, fix=f"write {command.node.text} || exit 1")
