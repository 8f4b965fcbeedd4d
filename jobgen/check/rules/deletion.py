"""Rules about the deletion of directories."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.ranks.model import RankGroup, code, ranks
from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.script.commands import Command, commands
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, Node, expansions, literal, on_condition

_SET = r"HOME|USER|LOGNAME|PWD|OLDPWD|SHELL|HOSTNAME|SLURM_SUBMIT_DIR|(PBS|SLURM)_JOB_?ID|PBS_O_(WORKDIR|HOME)|RANDOM"
_WHOLE = r"[\"']?\$(\w+|\{\w+\})[\"']?/[\"']?(\*|\.\*|\*\.\*)?[\"']?"


@rule(
    "rm-variable",
    WARNING,
    "rm -r of all below a variable",
    """If the variable is empty, `rm -rf "$DIR"/*` is `rm -rf /*`: it deletes all files that the user may
    delete. `${DIR:?}` ends the script instead. (It is a note in a script with `set -u`, for a variable that the
    script sets, and for one that a command above uses, too, or a file may set that the script reads.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    module load cuda
    srun python3 train.py
    rm -rf "$CACHE"/*
    """,
    good={'rm -rf "$CACHE"/*': 'rm -rf "${CACHE:?}"/*'},
)
def rm_variable(script: Script) -> Iterator[Hit]:
    tests = script.tree.all("test_command")
    tested = {name for node in tests for name, _ in expansions(node)}
    tested |= set(re.findall(r"\{(\w+):\?", script.tree.text))
    for command in (*script.own_running("rm"), *_in_traps(script)):
        for word in command.arguments if deletes_all(command) else ():
            names = [name for name, _ in expansions(word)]
            name = names[0] if names and re.fullmatch(_WHOLE, word.text) else None
            if name is not None and name not in tested and _may_be_empty(script, name):
                rest = re.sub(r"\$\{?\w+\}?|[\"']", "", word.text)
                known = name in script.values or script.nounset or _is_known(script, name, command.node.start)
                level = NOTE if known else None
                reason = f"if {name} is empty, rm deletes {rest}"
                yield Hit.at(command.node, reason, f"write ${{{name}:?}}", level)
                break


def _is_known(script: Script, name: str, end: int) -> bool:
    """Return whether a command above a place uses a variable, or the script reads a file there, which may set it."""
    sources = any(one.node.start < end for one in script.named("source", "."))
    return sources or any(other == name and node.start < end for other, node in script.expansions)


def _in_traps(script: Script) -> Iterator[Command]:
    """Yield the calls of rm in the text of traps."""
    texts = (word for one in script.named("trap") for word in one.arguments[:1] if word.type == "raw_string")
    yield from (one for text in texts for one in commands(code(text)) if one.name == "rm")


def deletes_all(command: Command) -> bool:
    """Return whether a call of rm deletes directories."""
    return any(re.match(r"--recursive$|-[a-zA-Z]*[rR]", word) for word in command.literals)


def _may_be_empty(script: Script, name: str) -> bool:
    """Return whether no text of the script gives a value to a variable."""
    if re.fullmatch(_SET, name) or name in script.loop_variables or name.isdecimal():
        return False
    return not any(_has_text(value) for value in script.values.get(name, []))


def _has_text(value: Node) -> bool:
    """Return whether a value has text besides variables."""
    text = literal(value)
    if text is not None:
        return bool(text)
    return bool(re.sub(r"\$\{[^}]*\}|\$\w+|\$\(.*\)|`.*`|[\"']", "", value.text, flags=re.S).strip("/"))


@rule_once(
    "rm-at-requeue",
    WARNING,
    "A second start that deletes the checkpoints",
    """A job with `--requeue` starts its script again from the first line. `rm -rf` of the directory that the training writes to
    then deletes what the first start has saved. `SLURM_RESTART_COUNT` is above 0 in the second start.""",
    fix='delete it only if "${SLURM_RESTART_COUNT:-0}" is 0',
    bad="""
    #!/bin/bash
    #SBATCH --requeue
    #SBATCH --open-mode=append
    #SBATCH --time=01:00:00
    set -euo pipefail
    out=/scratch/runs/$SLURM_JOB_ID
    rm -rf "$out"
    srun python3 train.py --checkpoint-dir "$out" --resume auto
    """,
    good="""
    #!/bin/bash
    #SBATCH --requeue
    #SBATCH --open-mode=append
    #SBATCH --time=01:00:00
    set -euo pipefail
    out=/scratch/runs/$SLURM_JOB_ID
    if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
        rm -rf "$out"
    fi
    srun python3 train.py --checkpoint-dir "$out" --resume auto
    """,
    schedulers=("slurm",),
)
def rm_at_requeue(script: Script) -> Iterator[Hit]:
    again = "--requeue" in script.heeded or re.search(r"scontrol\s+requeue", script.tree.text)
    if not again or "RESTART_COUNT" in script.tree.text:
        return
    for command in script.own_running("rm"):
        call = script.call_of(command.node)
        place, inside = (command.node, ()) if call is None else (call.node, command.node.above())
        sometimes = any(one.type in _SOMETIMES and one.type != "function_definition" for one in inside)
        sometimes |= place.under(*_SOMETIMES) or on_condition(place) or on_condition(command.node)
        if not deletes_all(command) or sometimes or command.guarded:
            continue
        for word in command.arguments:
            text = script.constants.text(word).strip("\"'").rstrip("/*")
            later = (one for one in ranks(script) if one.start > place.end)
            writer = next((one for one in later if _saves(script, one, text)), None)
            if writer is not None and text:
                reason = f"a second start of the job deletes {word.unquoted}, to which {writer.name} saves in line {writer.line}"
                yield Hit.at(command.node, reason)


_SOMETIMES = (*LOOPS, "if_statement", "case_statement", "function_definition", "subshell")
_SAVES = re.compile(
    r"--?\w*(out|save|checkpoint|ckpt|log|run|resume|work|result)\w*[-_]?(dir|path|folder|to)?", re.I
)


def _saves(script: Script, one: RankGroup, path: str) -> bool:
    """Return whether a program has an option for its results with this path."""
    nodes = one.inner.program if one.inner is not None else one.command.words
    texts = [script.constants.text(word).strip("\"'") for word in nodes]
    for before, text in pairwise(["", *texts]):
        option, equals, value = text.partition("=")
        name, given = (option, value.strip("\"'")) if equals else (before, text)
        if _SAVES.match(name) and (given == path or given.startswith(path + "/")):
            return True
    return False


@rule_once(
    "skipped-cleanup",
    NOTE,
    "A clean-up that a failure skips",
    """With `set -e` a script ends at the training that fails, and at the time limit it is killed: the
    commands below never run, and the temporary files stay. A trap of EXIT runs in both cases, if the
    scheduler sends TERM first.""",
    message="after a failure set -e ends the script before this line: the directory stays",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    cache=/scratch/cache.$SLURM_JOB_ID
    mkdir -p "$cache"
    srun python3 train.py --cache "$cache"
    rm -rf "$cache"
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    cache=/scratch/cache.$SLURM_JOB_ID
    trap 'rm -rf "$cache"' EXIT
    mkdir -p "$cache"
    srun python3 train.py --cache "$cache"
    """,
)
def skipped_cleanup(script: Script) -> Iterator[Hit]:
    trapped = any("EXIT" in one.literals for one in script.named("trap"))
    # The next job may need what a failure leaves.
    submits = any(script.named(*script.dialect.scheduler.submit_commands))
    if not script.errexit or not script.is_batch or trapped or submits:
        return
    work = [one.node.end for one in script.commands if one.works and not one.guarded and not one.background]
    words = (word.unquoted for one in script.own_running("mkdir") for word in one.arguments)
    made = {word.replace("{", "").replace("}", "") for word in words}
    made |= {f"${name}" for name, value, _ in script.assignments if "mktemp" in value.text}
    for command in script.own_running("rm"):
        own = [word.unquoted.rstrip("/*").replace("{", "").replace("}", "") for word in command.arguments]
        temporary = next((path for path in own if path in made), None)
        sometimes = command.node.under("function_definition", "if_statement", *LOOPS)
        if temporary and deletes_all(command) and work and work[-1] < command.node.start and not sometimes:
            yield Hit.at(command.node, fix=f"remove it in a trap: trap 'rm -rf \"{temporary}\"' EXIT")


@rule_once(
    "lost-output",
    WARNING,
    "Results that the job deletes, or leaves on the disk of the node",
    """The local disk of a node (`/tmp`, `$TMPDIR`) is emptied when the job ends, or nobody finds the files again. A program
    whose options put its model or its results there, or into a directory that the script deletes, has worked for nothing
    unless the script copies them.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py --output_dir /tmp/model
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py --output_dir /tmp/model
    cp -r /tmp/model "$HOME/model"
    """,
)
def lost_output(script: Script) -> Iterator[Hit]:
    for one in ranks(script) if script.is_batch else ():
        for option, path, whole in _results(script, one.command):
            if _is_kept(script, one.command, path) or _is_kept(script, one.command, whole):
                continue
            line = _deletion(script, path, one.start)
            if line or _LOCAL.match(path) or _LOCAL.match(whole):
                where = "on the disk of the node: nothing copies the results from there"
                where = f"which line {line} deletes: nothing keeps the results" if line else where
                yield Hit(one.line, f"{option} is {path}, {where}", _KEEP)


def _deletion(script: Script, path: str, start: int) -> int:
    """Return the line of an rm that deletes a directory behind a place, or when the script ends; 0 without one."""
    later = (one for one in script.own_running("rm") if one.node.start > start)
    for one in (*later, *_in_traps(script)):
        sure = deletes_all(one) and not one.node.under("if_statement", "function_definition")
        if sure and path in [_plain(word.text) for word in one.arguments]:
            return one.line
    return 0


def _is_kept(script: Script, program: Command, path: str) -> bool:
    """Return whether another command, a variable or a trap may use a directory with results."""
    name = os.path.basename(path)
    for one in script.own_runs:
        words = [_plain(text) for word in one.arguments for text in {word.text, script.constants.text(word)}]
        mentions = any(path in word or (name in word and one.name in _COPIES) for word in words)
        behind = one.node.start > program.node.start and one.name in _COPIES
        around = behind and any(
            re.match(r"\$|/\w+/\w", word) and path.startswith(word.rstrip("/*.")) for word in words[:-1]
        )
        if one.node is not program.node and one.name not in _KEEPS_NOTHING and (mentions or around):
            return True
    texts = [value for _, value, node in script.assignments if node.start > program.node.start]
    traps = [one.node for one in script.named("trap") if not re.match(r"trap\s+.rm\b", one.node.text)]
    texts += [*traps, *script.tree.all("heredoc_body")]
    return any(path in _plain(text.text) for text in texts)


_COPIES = ("cp", "mv", "rsync", "tar", "zip", "scp", "rclone", "pigz", "gsutil", "aws")
_KEEPS_NOTHING = ("rm", "mkdir", "trap", "echo", "chmod", "ls", "cd")
_KEEP = "copy them to a shared file system before the job ends"
_LOCAL = re.compile(r"/tmp/|/dev/shm/|/var/tmp/|\$(SLURM_TMPDIR|TMPDIR)\b")
_RESULTS = re.compile(
    r"(?i)((out|output|save|results?)(_?(dir|path|directory|folder))?|(ckpt|checkpoints?)_?(dir|path|folder)|default_root_dir)"
)


def _plain(text: str) -> str:
    """Return a text without quotes and braces, as ``$out/model``, and without a slash at its end."""
    return re.sub(r"\$\{(\w+)\}", r"$\1", re.sub("[\"']", "", text)).rstrip("/")


def _results(script: Script, program: Command) -> Iterator[tuple[str, str, str]]:
    """Yield the options of a program that name where its results go, and the directories: as they are written, and
    with the values of their variables."""
    for word, after in pairwise((*program.words, *program.words[-1:])):
        name, equals, value = _plain(word.text).partition("=")
        path = value if equals else _plain(after.text)
        last = name.lstrip("-").replace("-", "_").rpartition(".")[2]
        if (equals or name.startswith("--")) and _RESULTS.fullmatch(last) and re.match(r"/.|\$\w", path):
            whole = _plain(script.constants.text(word if equals else after))
            yield name, path, whole.partition("=")[2] if equals else whole
