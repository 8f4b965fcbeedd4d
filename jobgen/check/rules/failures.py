"""Rules about bash: ignored failures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from jobgen.check.rule import NOTE, WARNING, rule
from jobgen.check.rules.downloads import sends
from jobgen.check.rules.shell_and_paths import plain_sh
from jobgen.errors import shown
from jobgen.launch.command_line import is_python
from jobgen.launch.wrappers import WRAPPERS
from jobgen.script.command_kinds import STATE, TOOLS
from jobgen.script.commands import Command, commands
from jobgen.script.other_text import is_template
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, Node, expansions


@rule(
    "no-errexit",
    WARNING,
    "No set -e",
    """Without `set -e` a script continues after a failed command, and exits with the status of its last
    command: a job whose training failed counts as successful if `echo` or `exit 0` follows. Its dependent jobs
    start, and no mail says that it failed. `set -u` ends many scripts at an activation of conda or at a variable
    that may be unset: add it only after a test. dash, which is `sh` on Debian and Ubuntu, has no `pipefail`. (It
    is a note if a program goes on without its environment, such as `python3` without the activation above it, if a
    later command may fail with the program, and if the program is one of several independent runs. It is silent
    if nothing is hidden: without the module of its program a job fails anyway. `cd` is the matter of unchecked-cd.)""",
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
    set -eo pipefail
    module load cuda
    srun python3 train.py
    echo finished
    """,
    style=True,
)
def no_errexit(script: Script) -> Iterator[Hit]:
    if script.errexit or not _run(script) or _keeps_status(script):
        return
    works = [command for command in _run(script) if _is_work(command)] or _programs(script)
    if not works:
        return
    work, last = works[-1], _last(script)
    hides = last is not None and script.in_job and not _repeats(works, work) and not _reports(script, work)
    if hides and _is_lost(script, work, last):
        yield Hit(
            work.line,
            f"if {_name(work)} fails, the job counts as successful: its status is that of the last command, "
            f"{_shown(last)}",
            _set(script, "-eo"),
        )
    elif lost := _ignored(script, works):
        first = min(lost, key=lambda one: (one not in works, one.name not in _ACTIVATE, one.node.start))
        several = first in works and _repeats(works, first)
        by_hand = any(value.text == "$?" for _, value, _ in script.assignments)
        yield Hit(
            first.line,
            f"without set -e the script continues if {_shown(first.node)} fails",
            _COUNT if several else "write || exit 1 behind it" if by_hand else _set(script, "-eo"),
            NOTE,
        )


def _reports(script: Script, work: Command) -> bool:
    """Return whether a failure is reported in another way: by ctest to its dashboard, with a mail of results, or
    by a function that ends the job or others."""
    if work.program == "ctest":
        return any(re.match(r"-[DST]|--(dashboard|script|test-action)\b", word) for word in work.literals)
    later = [one for one in _run(script) if one.node.start > work.node.end]
    texts = [script.functions.get(one.name, one.statement.text) for one in later]
    mailed = any(re.search(_MAIL, text) and re.search(_RESULTS, text) for text in texts)
    return mailed or any(re.search(_ENDING, script.functions.get(one.name, "")) for one in later if one.node.under("if_statement"))


_MAIL = r"\b(?:mailx?|sendmail|mutt)\s"
_ENDING = r"\b(?:exit|scancel|qdel)\s"
_RESULTS = r"\bcat\s|<\s*[^<\s]|\s-[aA]\s"  # a file in a mail
_COUNT = "if the runs are independent, write || failed=1 behind each, and exit ${failed:-0} at the end"


def _run(script: Script) -> list[Command]:
    """Return the commands that may run: those behind an exit do not. What follows an error of syntax is a guess."""
    error = next(script.tree.all("ERROR"), None) if script.tree.damaged else None
    end = script.last_line if error is None else min(script.last_line, error.line - 1)
    return [one for one in script.commands if one.line <= end and not is_template(one.words[0].text)]


def _name(command: Command) -> str:
    return command.program or command.words[0].text


def _shown(node: Node) -> str:
    """Return the first line of a command for a message, without the variables that it sets for its program."""
    name = node.get("name") or node
    lines = node.source[name.start : node.end].decode("utf-8", "replace").splitlines() or [""]
    return shown(f"{lines[0].rstrip(chr(92)).rstrip()} ..." if lines[1:] else lines[0])


def _last(script: Script) -> Node | None:
    """Return the last command of the script, if it succeeds whatever has failed before."""
    ends = [node for node in script.tree.children if node.type not in ("comment", ";")]
    last = next((node for node in reversed(ends) if node.line <= script.last_line), None)
    if last is None or last.type not in ("command", "redirected_statement"):
        return None
    inner = next(commands(last), None)
    return inner.node if inner is not None and _succeeds(inner) else None


def _succeeds(command: Command) -> bool:
    words = command.literals
    if command.name in ("exit", "wait"):
        return words == (["0"] if command.name == "exit" else []) and len(command.arguments) == len(words)
    if command.name in ("conda", "mamba", "module", "ml"):
        return words[:1] in (["deactivate"], ["purge"], ["unload"], ["list"])
    forced = command.name == "rm" and any(re.match("-[a-zA-Z]*f", word) for word in words)
    return forced or command.name in _SUCCEED


def _is_lost(script: Script, work: Command, last: Node) -> bool:
    """Return whether only the exit status could say that a program failed, and is that of another command."""
    if work.node.end > last.start or _handled(work) or work.node.under(*LOOPS, "function_definition"):
        return False
    words = {work.name, *_named(work)}
    from_input = is_python(work.program) and (not work.arguments or words & {"-", "venv", "pip"})
    if from_input or words & _INTERRUPTED:
        return False
    if last.text == "wait" and any(one.background and _SERVES.search(one.node.text) for one in _run(script)):
        return False  # the job lasts until its time limit
    after = [one for one in _run(script) if work.node.end < one.node.start]
    return not any(one.name == "exit" and one.node is not last for one in after)


# Programs that a person or a time limit ends.
_INTERRUPTED = {
    "timeout", "jupyter", "jupyter-lab", "jupyter-notebook", "tensorboard", "code-server", "sshd", "ssh", "--pty",
}  # fmt: skip
# Programs that do not end by themselves.
_SERVES = re.compile(r"(?i)ipcontroller|ipengine|jupyter|dask|scheduler|server|redis|ray start|mongod|daemon")
# Commands that succeed whatever failed before them.
_SUCCEED = {
    "echo", "printf", "date", "hostname", "pwd", "whoami", "uptime", "true", ":", "deactivate", "set", "unset",
    "trap", "sleep", "times", "export", "squeue", "sacct", "seff", "clear",
}  # fmt: skip


def _repeats(works: list[Command], work: Command) -> bool:
    """Return whether the script runs a program several times, with other arguments: one may fail alone."""
    return work.node.under(*LOOPS) or sum(_program(one) == _program(work) for one in works) > 1


def _program(command: Command) -> list[str]:
    """Return the first words of a command that are no options, in which the program is."""
    words = [word.text for word in command.words]
    return [word for word in words if not re.match(r"-|\d+$", word)][:2]


def _set(script: Script, options: str) -> str:
    """Return the fix that sets options of the shell; dash has no pipefail."""
    first = "make the first line #!/bin/bash, and " if plain_sh(script) else ""
    return f"{first}write set {options} pipefail after the directives"


def _keeps_status(script: Script) -> bool:
    """Return whether the script exits with a status that it has kept, or traps each failure."""
    last = _run(script)[-1]
    kept = last.name == "exit" and any(True for word in last.arguments for _ in expansions(word))
    return kept or any("ERR" in command.literals for command in script.named("trap"))


# Commands whose failure changes nothing.
_INFORM = {
    "echo", "printf", "date", "hostname", "pwd", "nvidia-smi", "rocm-smi", "npu-smi", "which", "type", "sleep",
    "env", "printenv", "uname", "whoami", "id", "ls", "lscpu", "free", "df", "du", "cat", "nproc", "squeue", "head",
    "tail", "nvcc", "ulimit", "umask", "uptime", "true", "false", ":", "[", "test", "let", "read", "clear", "deactivate",
    "sinfo", "sacct", "seff", "sprio", "sshare", "sreport", "qstat", "pbsnodes", "rocminfo", "clinfo", "lshw",
    "gpustat", "ibstat", "ibv_devinfo", "ds_report", "hostnamectl", "checkjob", "nodeset", "pidof", "ps", "groups",
}  # fmt: skip
# Subcommands that inform, of commands that also do something else.
_SHOWING = {
    "scontrol": {"show", "ping", "version", "listpids", "listjobs", "liststeps"},
    "sacctmgr": {"show", "list", "ping", "version", "dump"},
}
# Further tools, which are not the work of a job.
_SMALL = {
    "uniq", "tr", "paste", "diff", "comm", "basename", "dirname", "readlink", "realpath", "stat", "expr", "bc", "tput",
    "sstat", "tracejob", "jobstats", "quota", "lfs", "ldd", "lsof", "xset",
}  # fmt: skip
# Parts of the shell's language, and commands that end the script.
_SHELL = {
    "export", "declare", "typeset", "local", "readonly", "set", "unset", "shift", "alias", "shopt", "trap", "wait",
    "exit", "return", "break", "continue", "unalias", "hash", "complete", "kill",
}  # fmt: skip


def _is_work(command: Command) -> bool:
    query = _named(command) & _ASKS
    return command.works and not query and not command.node.under("command_substitution")


def _programs(script: Script) -> list[Command]:
    """Return the commands of a job that run a program which is neither a tool nor a part of the shell."""
    common = {*TOOLS, *STATE, *_INFORM, *_SMALL, *_SHELL, *script.functions}
    found = [one for one in _run(script) if script.is_batch and one.program not in common]
    named = [one for one in found if one.program or one.words[0].text.startswith(("$", '"$'))]
    return [
        one
        for one in named
        if not _named(one) & _ASKS and not _elsewhere(one) and not _lists(one)
        if not any(word.startswith(_ENDS) for word in one.literals[:2]) and not _CLEANS.fullmatch(one.program)
    ]


# Words that end a service, as ray stop and apptainer instance stop.
_CLEANS = re.compile(
    r"(?i)ws_release|(.*[-_.])?clea[nr]([-_]?up)?([-_.].*)?|print_\w+|log(_\w+|msg)?|info|msg|banner"
)  # commands that only clean up, or print
_ENDS = ("stop", "shutdown", "close-session", "--shutdown", "--stop")


def _ignored(script: Script, works: Sequence[Command]) -> list[Command]:
    """Return the commands whose failure the script ignores, besides the last that works.

    That one is among them if the script does not exit with its status.
    """
    work = works[-1]
    own = [one for one in _run(script) if not _handled(one) and not _alternative(one, work)]
    whole = work.statement  # the pipeline of it
    others = [one for one in own if not whole.start <= one.node.start < whole.end]
    lost = [one for one in others if _matters(script, one, works) and not _provides(one, work)]
    caller = _only_call(script, work)
    followed = any(one.node.start > whole.end and one != caller and _sets_status(one) for one in others)
    if not _handled(work) and (followed or work.node.under(*LOOPS)):
        lost.append(work)
    return lost


def _only_call(script: Script, work: Command) -> Command | None:
    """Return the only call of the function whose status is that of a command, its last."""
    above = next((one for one in work.node.above() if one.type == "function_definition"), None)
    name = above.get("name") if above is not None else None
    if (
        above is None
        or name is None
        or any(work.node.end < one.node.start < above.end for one in _run(script))
    ):
        return None
    calls = [one for one in _run(script) if one.name == name.text]
    return calls[0] if len(calls) == 1 and not calls[0].node.under(*LOOPS) else None


def _provides(command: Command, work: Command) -> bool:
    """Return whether a module has the program that a command runs: without the module that fails, too."""
    if command.name not in ("module", "ml") or work.node.start < command.node.start:
        return False
    names = [word.partition("/")[0].lower() for word in command.literals if word not in ("load", "add")]
    return bool(names) and all(
        re.search(rf"(?:^|\s)[\"']?\$?\{{?{re.escape(name)}(?![a-z])", _program_words(work))
        and "python" not in name
        for name in names
    )


def _program_words(command: Command) -> str:
    """Return the words of a command that may name its program, in small letters."""
    return " ".join(word.text for word in command.words if not word.text.startswith("-")).lower()


def _sets_status(command: Command) -> bool:
    """Return whether the script has another exit status after a command."""
    return bool(command.arguments) if command.name == "exit" else command.name not in ("wait", "trap", "set")


def _elsewhere(command: Command) -> bool:
    """Return whether another process runs a command."""
    return command.node.under("command_substitution", "process_substitution", "heredoc_body")


def _handled(command: Command) -> bool:
    """Return whether a failure is handled, or is that of another process."""
    whole = command.statement
    after_or = whole.type == "list" and "||" in {part.type for part in whole.children}
    return _elsewhere(command) or after_or or command.guarded or command.tested or command.background


def _matters(script: Script, command: Command, works: Sequence[Command]) -> bool:
    """Return whether a failure of a command should end the script.

    What only prepares for the programs behind it matters if one of them may run without it: otherwise that one
    fails, too, and nothing is hidden. (A `cd` is the matter of unchecked-cd.)
    """
    if command.name in {*_SHELL, *_PREPARE} or command.name in script.functions:
        return False
    if command.name == "eval" and next(command.node.all("command_substitution"), None):
        return False  # such as the hook of conda
    if (
        _CLEANS.fullmatch(command.program)
        or _named(command) & _ASKS
        or sends(command)
        or _HARMLESS.match(command.node.text)
    ):
        return False
    if command.name in {*_ACTIVATE, *_LOAD}:
        later = (one for one in works if one.node.start > command.node.start)
        return _prepares(command) and any(_runs_elsewhere(script, one) for one in later)
    if _is_work(command) != command.works or _lists(command):
        return False  # such as python3 --version and conda list
    return command.name not in {*_INFORM, *_TEXT}


# Commands that print or change text: they fail if nothing is found, too.
_TEXT = {
    *("grep", "egrep", "diff", "cmp", "find", "sort", "sed", "awk", "cut", "wc", "tr", "tee", "seq", "xargs"),
    "uniq",
}
# Commands without which what follows fails, or that fail without harm.
_PREPARE = {"cd", "pushd", "popd", "mkdir", "rmdir", "rm", "chmod", "touch", "ln", "enable_lmod", "jutil"}
# What is not there cannot be removed, an image that is there is not pulled again, and cmake -E handles files.
_HARMLESS = re.compile(
    r"(?:(?:conda|mamba|pip3?|python3? -m pip|git)\s+(?:env\s+)?(?:remove|uninstall)|(?:singularity|apptainer|shifterimg|docker|podman)\s+pull|cmake\s+-E)\b|"
    r"make\s+(?:dist)?clean\b|(?:conda|mamba|micromamba)\s+(?:init|config|clean|deactivate)\b|(?:source|\.)\s+(?:\S*/)?deactivate\b|(?:singularity|apptainer)\s.*\spython3?\s+-c\b"
)
# Commands that select the programs behind them.
_ACTIVATE = {"source", ".", "conda", "mamba", "micromamba", "pyenv", "workon", "spack", "uenv"}
_LOAD = {"module", "ml", "setpkgs", "vpkg_require", "soft", "use"}
# Modules without which a program of Python fails itself, or runs as well.
_MODULES = re.compile(
    r"(?i)(gcc|gnu|g?compilers?|intel|oneapi|pgi|aocc|llvm|foss|gompi|openmpi|mpi|i?mpi|mvapich2?|mpich|cray\S*|prgenv\S*|"
    r"craype\S*|i?mkl|openblas|fftw|hdf5|netcdf|cmake|git|slurm|pbs\S*|torque|shared|singularity|apptainer|docker|"
    r"\S*container\S*|tmux|screen|ffmpeg|java|glibc|ucx|libfabric|default\S*|rhel\S*|\S*stages?)"
)
_ELSEWHERE = {
    *("Rscript", "perl", "julia", "torchrun", "deepspeed", "accelerate", "colossalai", "horovodrun"),
}
_IMAGES = {name for name, row in WRAPPERS.items() if row.container} | {"charliecloud", "enroot", "udocker"}


def _prepares(command: Command) -> bool:
    """Return whether a command selects the version of a program, so that another one runs without it."""
    words = command.literals
    if command.name in ("source", "."):
        return not re.search(
            r"/etc/profile|bashrc|profile$", " ".join(word.text for word in command.arguments)
        )
    if command.name in _LOAD:
        names = [word.partition("/")[0] for word in words if word not in ("load", "add")]
        other = {"purge", "list", "avail", "unload", "rm", "use", "restore"} & set(words)
        return not other and not all(map(_MODULES.fullmatch, names))
    return not _lists(command)


def _runs_elsewhere(script: Script, work: Command) -> bool:
    """Return whether a program has its interpreter by a name that each system may have, such as python3."""
    words = [part for word in work.words for part in script.constants.text(word).split()]
    named = {one for one in words if "/" not in one}
    if {"R", "CMD"} <= named or words[:1] == ["R"]:
        return True
    return not _IMAGES.intersection(words) and any(is_python(one) or one in _ELSEWHERE for one in named)


def _lists(command: Command) -> bool:
    """Return whether conda or pip only show what is installed, or scontrol what the scheduler knows."""
    if command.name in _SHOWING:
        return (
            next((word for word in command.literals if not word.startswith("-")), "")
            in _SHOWING[command.name]
        )
    shown = command.literals[:1] in (["list"], ["info"], ["show"], ["freeze"], ["--version"])
    return shown and command.name in ("conda", "mamba", "micromamba", "pip", "pip3", "spack", "git")


def _alternative(one: Command, other: Command) -> bool:
    """Return whether at most one of two commands runs: they are in different branches."""
    mine = [one.node, *one.node.above()]
    common = {id(node) for node in (other.node, *other.node.above())}
    at = next(at for at, node in enumerate(mine) if id(node) in common)
    if mine[at].type not in ("if_statement", "case_statement") or at == 0:
        return False
    branches = {mine[at - 1].type, _below(mine[at], other.node).type}
    return bool(branches & {"elif_clause", "else_clause", "case_item"})


def _below(top: Node, node: Node) -> Node:
    """Return the child of ``top`` that contains a node."""
    return next(child for child in top.children if child.start <= node.start < child.end)


@rule(
    "no-pipefail",
    WARNING,
    "set -e without pipefail",
    """`set -e` checks only the last command of a pipeline.""",
    message="set -e checks only the last command of a pipeline: a failure before the | is ignored",
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
    begin = next((one.node.start for one in script.named("set") if _SETS_E.match(" ".join(one.literals))), 0)
    for node in script.tree.all("pipeline"):
        if node.start < begin:
            continue  # set -e comes later
        names = [one.name for one in commands(node) if not one.node.under("command_substitution")]
        tested = node.under("command_substitution", "if_statement", "while_statement")
        if not tested and not _teed(node) and not _INFORM.issuperset(names[:-1]):
            yield Hit.at(node, fix=_set(script, "-o"))
            return


_SETS_E = re.compile(r"(-\w+ )*-(\w*e|o errexit)")


def _teed(pipeline: Node) -> bool:
    """Return whether the rule lost-status applies: work, and then tee or another filter."""
    inner = list(commands(pipeline))
    works = (_named(command) for command in inner[:-1] if command.works)
    return any(not _QUERY & names and not any(map(_PROBE.fullmatch, names)) for names in works)


# Programs whose failure is no failure of a training.
_QUERY = {"hostname", "pwd", "nvidia-smi", "date", "env", "printenv", "ldd", "uname", "lscpu", "which"}
_ASKS = {*_QUERY, "--version", "-V", "-version", "--help", "--list"}
_PROBE = re.compile(r"(\w+_perf(_mpi)?|ib_\w+|osu_\w+)(?:_\d+)?")  # a test of the network


def _named(command: Command) -> set[str]:
    return {os.path.basename(word) for word in command.literals}


@rule(
    "lost-status",
    WARNING,
    "The status of the training is lost in a pipe",
    """The status of `training | tee log` is that of tee, 0: the scheduler records the job as completed, and
    dependent jobs start. (Reported are pipelines whose status is that of the job, or checked by `set -e`;
    for the others see `no-errexit`.)""",
    message="the status of the pipeline is that of its last command: the job succeeds although the program fails",
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
    last = script.commands[-1].node.start if script.commands else 0
    for node in script.tree.all("pipeline"):
        decides = script.errexit or (node.start <= last < node.end and not node.under(*LOOPS))
        if decides and _teed(node) and not node.under("command_substitution"):
            yield Hit.at(node, fix=_set(script, "-o"))
