"""Rules about jobs under PBS Pro and Torque."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.check.rules.processes import is_service
from jobgen.check.rules.walltime import sizes
from jobgen.errors import shown
from jobgen.script.other_text import has_gap
from jobgen.script.request import resources
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import literal


@rule(
    "pbs-export-list",
    WARNING,
    "Quotes, backslashes or commas in -v",
    """`-v` splits at commas and changes quotes and backslashes. An `export` in the body of the script is
    safe.""",
    message="-v changes quotes and backslashes, and splits at every comma",
    fix="export the variable in the body of the script",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -v UCX_TLS="rc,cuda"
    hostname
    """,
    good={'#PBS -v UCX_TLS="rc,cuda"': "export UCX_TLS=rc,cuda"},
    schedulers=("pbs",),
)
def exported_list(script: Script) -> Iterator[Hit]:
    lines = {line.number: line for line in script.directives.live}
    for option in script.options_of("-v"):
        line = lines[option.line]
        bad = [part for part in option.value.split(",") if not re.match(r"[A-Za-z_]\w*(=|$)", part.strip())]
        if re.search(r"[\"'\\]", line.rest) or bad:
            yield Hit(option.line)


@rule(
    "afterok-array",
    WARNING,
    "afterok on an array",
    """`afterok` on an array is satisfied although one of its tasks has failed (measured on OpenPBS 23.06).
    If a dependency can never be satisfied, the job is deleted without a message.""",
    message="afterok on an array also runs when a task of the array has failed",
    fix="test in the job that the output of every task exists",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -W depend=afterok:1234[].server
    hostname
    """,
    good={"#PBS -W depend=afterok:1234[].server": "#PBS -W depend=afterok:1234.server"},
    schedulers=("pbs",),
)
def after_array(script: Script) -> Iterator[Hit]:
    for option in script.options_of("-W"):
        if re.search(r"\bafterok:[^,]*\[", option.value):
            yield Hit(option.line)


@rule_once(
    "home-directory",
    WARNING,
    "A relative path in the home directory",
    """PBS starts a job in the home directory, and relative paths are resolved there. Slurm starts it in the
    directory where it was submitted. (The apps of brainlife.io are submitted with a directory. It is silent in scripts
    of NCAR, where PBS starts jobs in the directory, too, and a note in a short trial, and where the command line has to have the size of the job, as it may have
    the directory.)""",
    fix='begin with cd "$PBS_O_WORKDIR"',
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    set -euo pipefail
    python3 train.py
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    python3 train.py
    """,
    schedulers=("pbs",),
)
def home_directory(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    moved = any(script.own_running("cd", "pushd"))
    moved |= any("PBS_O_WORKDIR" in name for name, _ in script.expansions)
    flags = {option.flag for option in script.options} | {name for _, name, _ in resources(script.options)}
    moved |= script.starts_at_submission
    if moved or flags & {"-d", "-w", "wd"} or "brainlife" in script.tree.text or script.name == "main":
        return
    programs = {id(one.command.node): literal(one.file) for one in script.started if one.outer is not None}
    for command in script.own_runs:
        if command.name in _LOOK_UP or has_gap(script.line(command.line)):
            continue
        for word in [command.name, *command.literals]:
            relative = re.fullmatch(r"(?!/|~)[\w./-]+\.(py|sh|exe|out)", word)
            if word == programs.get(id(command.node)):
                relative = relative or re.match(r"\./", word)
            if relative and (word in command.literals or "/" in word):
                reason = f"PBS starts the job in the home directory, and {shown(word)} is resolved there"
                elsewhere = not any((*sizes(script.request), script.request.walltime))
                yield Hit.at(command.node, reason, level=NOTE if elsewhere else None)


_LOOK_UP = ("which", "type", "hash", "command", "echo", "printf")  # their words are no paths


@rule_once(
    "pbsdsh-status",
    WARNING,
    "pbsdsh loses the status",
    """`pbsdsh` exits with status 0, whatever the status of its command. `pbs_tmrsh` returns the status of
    its command. (Services in the background, such as the workers of dask, run until the job ends: nothing reads
    their status.)""",
    message="pbsdsh exits with status 0 even if its command fails",
    fix="use pbs_tmrsh, which returns the status, or write the status of the command to a file",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=64
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    pbsdsh -- /opt/site/prepare
    """,
    good={
        "pbsdsh -- /opt/site/prepare": 'while read -r host; do pbs_tmrsh "$host" /opt/site/prepare < /dev/null; done < "$PBS_NODEFILE"'
    },
    schedulers=("pbs",),
)
def pbsdsh_status(script: Script) -> Iterator[Hit]:
    for command in script.own_running("pbsdsh"):
        prints = {"hostname", "date", "uname", "nvidia-smi"} & set(command.literals)
        if not prints and not (command.background and is_service(command)):
            yield Hit(command.line)


@rule(
    "setsid-outlives",
    WARNING,
    "A process that outlives the job",
    """When a job ends, PBS kills the processes that it knows. Processes started with `setsid` are not among
    them and continue to use the node.""",
    message="a process started with setsid outlives the job: PBS does not kill it",
    fix="start it with & and wait for it",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    set -euo pipefail
    setsid /opt/site/monitor > /dev/null &
    /opt/site/solver
    """,
    good={"setsid /opt/site/monitor > /dev/null &": "/opt/site/monitor > /dev/null &"},
    schedulers=("pbs",),
)
def outliving(script: Script) -> Iterator[Hit]:
    for command in script.own_running("setsid"):
        yield Hit(command.line)


@rule(
    "tmrsh-agent",
    ERROR,
    "pbs_tmrsh as mpirun's agent",
    """Open MPI without PBS support can start its daemons through `pbs_tmrsh`, but not directly: Open MPI
    passes a shell command line, and `pbs_tmrsh` does not parse shell syntax. A wrapper of two lines
    solves this.""",
    bad="""
    #!/bin/bash
    # jobgen: disable=repeated-count
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    mpirun --mca plm_rsh_agent pbs_tmrsh -np 8 /opt/site/solver
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=repeated-count
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    agent=$PBS_O_WORKDIR/agent  # exec pbs_tmrsh "$1" /bin/sh -c "${*:2}"
    mpirun --mca plm_rsh_agent "$agent" -np 8 /opt/site/solver
    """,
)
def tmrsh_agent(script: Script) -> Iterator[Hit]:
    message = "pbs_tmrsh does not parse shell syntax: the remote command of mpirun fails"
    fix = 'use a wrapper that calls pbs_tmrsh HOST /bin/sh -c "$*"'
    for name, value, node in script.assignments:
        if name.endswith(("_rsh_agent", "_ssh_agent")) and value.unquoted.endswith("pbs_tmrsh"):
            yield Hit.at(node, message, fix)
    for command in script.own_runs:
        words = command.literals
        for agent, given in pairwise(words):
            if agent.endswith(("rsh_agent", "ssh_agent")) and given.endswith("pbs_tmrsh"):
                yield Hit.at(command.node, message, fix)
