"""Rules about the environment of a job: shells, conda, paths and users."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.script import Hit, Script


@rule(
    "source-activate",
    WARNING,
    "source activate",
    """`source activate` is the syntax of conda before 4.4. Today it finds no such file, or that of another
    installation on PATH.""",
    message="source activate is conda's old way: it finds no such file, or another environment's",
    fix='write eval "$(conda shell.bash hook)" and then conda activate',
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    source activate training
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    eval "$(conda shell.bash hook)"
    conda activate training
    srun python3 train.py
    """,
)
def source_activate(script: Script) -> Iterator[Hit]:
    for command in script.named("source", "."):
        words = command.literals
        if words and words[0] == "activate":
            yield Hit(command.line)


@rule(
    "conda-init",
    WARNING,
    "conda init in a job",
    """`conda init` edits `~/.bashrc`, for shells that start later. In the script itself `conda activate`
    fails as before, and every job edits the file again.""",
    message="conda init edits ~/.bashrc, for later shells: in this one conda activate still fails",
    fix='write eval "$(conda shell.bash hook)"',
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    conda init bash
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    eval "$(conda shell.bash hook)"
    conda activate training
    srun python3 train.py
    """,
)
def conda_init(script: Script) -> Iterator[Hit]:
    for command in script.named("conda", "mamba"):
        if command.literals[:1] == ["init"]:
            yield Hit(command.line)


@rule(
    "bashrc",
    WARNING,
    "A person's start-up file in a job",
    """Start-up files are for interactive shells. Many return at once in other shells, some ask questions,
    and they differ between users.""",
    fix="load the modules and the environment here",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    source ~/.bashrc
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    module load cuda python
    srun python3 train.py
    """,
)
def bashrc(script: Script) -> Iterator[Hit]:
    for command in script.named("source", "."):
        name = command.arguments[0].text.strip("\"'") if command.arguments else ""
        if name.endswith((".bashrc", ".bash_profile", ".profile", ".zshrc")) and (
            "~" in name or "HOME" in name or "/home" in name
        ):
            yield Hit(
                command.line,
                f"{name} is for people: it often ends at once in a job, or differs from one user to the next",
            )


@rule(
    "conda-hook",
    WARNING,
    "conda activate without its hook",
    """`conda activate` is a shell function that conda's hook defines. A batch script on Slurm is not a
    login shell and reads no start-up file.""",
    message="conda activate is a function of the shell, and nothing has defined it here",
    fix='write eval "$(conda shell.bash hook)" before it',
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    conda activate training
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    eval "$(conda shell.bash hook)"
    conda activate training
    srun python3 train.py
    """,
)
def conda_hook(script: Script) -> Iterator[Hit]:
    ready = [
        command.node.start
        for command in script.named("source", ".", "eval", "module", "ml", "conda", "mamba")
        if "activate" not in command.literals
    ]
    login = any("-l" in line.split() or "--login" in line for line in script.lines[:1])
    if login or script.dialect.login_shell or any(name == "BASH_ENV" for name, _, _ in script.assignments):
        return
    for command in script.named("conda", "mamba"):
        if command.literals[:1] == ["activate"] and not any(start < command.node.start for start in ready):
            yield Hit(command.line)
            return


@rule(
    "personal-path",
    NOTE,
    "One person's directory",
    """A script with the home directory of a user works only for that user: 21 of 45 public scripts have
    one.""",
    fix="write $HOME, or a variable at the top",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 /home/alice/train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 "$HOME/train.py"
    """,
)
def personal_path(script: Script) -> Iterator[Hit]:
    for node in script.tree.all("word", "string_content", "raw_string"):
        if match := re.search(r"(?<![\w$}])/(home|Users|users)/[\w.-]+", node.text):
            yield Hit(node.line, f"{match[0]} is one person's directory: nobody else can run this")
            return


@rule(
    "root-mpirun",
    ERROR,
    "Half of what mpirun asks of root",
    """In a container the user is often root. Open MPI then starts only when both variables are set.""",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    export OMPI_ALLOW_RUN_AS_ROOT=1
    mpirun /opt/site/solver
    """,
    good="""
    #!/bin/bash
    #SBATCH --ntasks=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun /opt/site/solver
    """,
)
def root_mpirun(script: Script) -> Iterator[Hit]:
    names = {name: node for name, _, node in script.assignments}
    for prefix in ("OMPI", "PRTE"):
        first, second = f"{prefix}_ALLOW_RUN_AS_ROOT", f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"
        if (first in names) != (second in names):
            there = first if first in names else second
            yield Hit(
                names[there].line,
                f"mpirun believes root only when both {first} and {second} are set",
                f"export {second if there == first else first}=1, too",
            )
