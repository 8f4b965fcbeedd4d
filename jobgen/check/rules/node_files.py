"""Rules about files that only some nodes have, or that every rank deletes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from jobgen.check.ranks.model import SOME_NODES, RankGroup, code_of_tasks, ranks
from jobgen.check.ranks.model import code as tree_of
from jobgen.check.rule import WARNING, rule_once
from jobgen.check.rules.deletion import deletes_all
from jobgen.launch.command_line import is_python
from jobgen.script.commands import Command, commands
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, Node, assignments, expansions, literal, on_condition

_LOCAL = re.compile(
    r"(/tmp|/var/tmp|/dev/shm|/l(?:ocal)?_?scratch|/local|(?:/mnt)?/nvme\d*|\$\{?(SLURM_TMPDIR|TMPDIR|LOCALSCRATCH|LOCAL_SCRATCH|SLURM_SCRATCH)\b\}?)(/[^\s\"':;]*)?"
)
_COPIES = (
    "tar", "cp", "rsync", "unzip", "wget", "curl", "git", "virtualenv", "conda-unpack", "unsquashfs",
    "pigz", "dd",
)  # fmt: skip
_FIRST = 20  # copies that are compared with each launch
_RANKED = re.compile(r"PROCID|LOCALID|NODEID|RANK|\$\$|RANDOM|mktemp|TMPDIR")


@rule_once(
    "first-node-files",
    WARNING,
    "Files that only the first node has",
    """A batch script runs on the first node: what it copies or unpacks into `/tmp` or another local disk is not on
    the others, and their ranks fail with "No such file or directory". So does an environment that is unpacked or
    made there, and activated. Start the copy once on each node, or broadcast the file with `sbcast`.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    tar -xf env.tar -C /tmp
    srun /tmp/env/bin/python train.py
    """,
    good={
        "tar -xf env.tar -C /tmp": 'srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 tar -xf env.tar -C /tmp'
    },
)
def first_node_files(script: Script) -> Iterator[Hit]:
    others = any(script.named("sbcast", "pdcp", "ssh", "pbsdsh", "pdsh"))
    if not script.request.several or not script.is_batch or others:
        return
    single = [one for one in ranks(script) if _is_on_first(one)]
    filling = [*script.own_runs, *(command for one in single for command in _commands(one))]
    fills = ((one, _target(script, one)) for one in filling if _fills(one))
    copies = list(islice(((one, path) for one, path in fills if path), _FIRST))
    own = {id(one.inner) for one in single}
    programs = (one.program for one in script.launches if copies and id(one) not in own)
    steps = [program for program in programs if _stages(script, program)]
    everywhere = " ".join(_text(script, word) for program in steps for word in program)
    staged = [(one, path) for one, path in copies if path not in everywhere]
    for one in ranks(script) if staged else ():
        outer = one.outer
        if outer is None or not outer.row.line.reaches_nodes or (one.nodes or 1) < 2:
            continue
        words = " ".join(_text(script, word) for word in outer.whole)
        for command, path in staged:
            call = script.call_of(command.node)
            active = _activated(script, command.node.start, one.start)
            if (call or command).node.start < one.start and _is_below(path, f"{words} {active}"):
                reason = f"{path} is on the first node only: the ranks of the other nodes do not find it"
                fix = f"start the copy once on each node: {script.dialect.once_a_node}"
                yield Hit.at(command.node, reason, fix)


def _is_on_first(one: RankGroup) -> bool:
    """Return whether a group is a step of one task, which runs on the first node."""
    alone = one.is_step and one.inner is one.outer and (one.nodes, one.tasks) == (1, 1)
    elsewhere = one.inner is not None and one.inner.has(*SOME_NODES)
    return alone and not elsewhere and not one.command.node.under(*LOOPS)


def _commands(one: RankGroup) -> Iterator[Command]:
    """Yield the commands that a step runs, with the place of the step."""
    if one.text is not None:
        yield from (inner._replace(node=one.command.node) for inner in commands(tree_of(one.text)))
    elif one.inner is not None and one.inner.program:
        words = one.inner.program
        yield Command(one.command.node, os.path.basename(literal(words[0]) or ""), words, one.line)


def _activated(script: Script, start: int, end: int) -> str:
    """Return the words that activate an environment between two places: the ranks use its programs."""
    words = [
        word
        for command in script.own_runs
        if start < command.node.start < end
        and (command.name in _SOURCE or "activate" in command.literals[:1])
        for word in command.arguments
    ]
    paths = [value for name, value, node in script.assignments if name == "PATH" and start < node.start < end]
    return " ".join(_text(script, word) for word in (*words, *paths))


_SOURCE = ("source", ".")


def _fills(command: Command) -> bool:
    """Return whether a command copies or unpacks files, or makes an environment."""
    word = _MAKES.get("python" if is_python(command.name) else command.name)
    return command.name in _COPIES or (word is not None and word in command.literals)


_MAKES = {"python": "venv", "uv": "venv", "conda": "create", "mamba": "create", "micromamba": "create"}


def _target(script: Script, command: Command) -> str:
    """Return the directory of the local disk that a command of the script itself fills; empty without one."""
    call = script.call_of(command.node)
    around = [*command.node.above(), *(call.node.above() if call is not None else ())]
    if any(one.type in _ELSEWHERE or (call is None and one.type == "function_definition") for one in around):
        return ""
    given = command.arguments if call is None else [_argument(word, call) for word in command.arguments]
    words = [_text(script, word).strip("\"'") for word in given]
    found = [match[0] for word in words[-2:] if (match := _LOCAL.fullmatch(word.partition("=")[2] or word))]
    return found[-1].rstrip("/") if found else ""


_ELSEWHERE = ("command_substitution", "heredoc_body", "if_statement")


def _argument(word: Node, call: Command) -> Node:
    """Return the argument of the call of a function that a word in it reads, as ``"$1"``; otherwise the word."""
    match = re.fullmatch(r"\"?\$\{?([1-9])\}?\"?", word.text)
    return call.words[int(match[1])] if match and int(match[1]) < len(call.words) else word


def _text(script: Script, word: Node) -> str:
    """Return the text of a word, with the texts of its variables, such as ``/tmp/data.$SLURM_JOB_ID``."""

    def of_variable(match: re.Match[str]) -> str:
        value = script.constants.node(match[1] or match[2])
        plain = value is not None and "$(" not in value.text and "`" not in value.text
        return value.unquoted if value is not None and plain else match[0]

    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", of_variable, script.constants.text(word))


def _stages(script: Script, program: tuple[Node, ...]) -> bool:
    """Return whether the words of a launch copy files themselves."""
    words = {re.split(r"[\s;&(]+", script.constants.text(word).strip("\"'"))[0] for word in program}
    text = " ".join(word.text for word in program)
    return bool(words & {*_COPIES, "mkdir"}) or re.search(rf"\b({'|'.join(_COPIES)})\s", text) is not None


def _is_below(path: str, words: str) -> bool:
    return re.search(rf"(^|[\s=:\"',]){re.escape(path)}(/|\s|$|[\"':,])", words) is not None


@rule_once(
    "rm-in-ranks",
    WARNING,
    "A directory that every rank deletes",
    """Code that every task runs deletes the directory in each of them, at different times: a slow task deletes
    what a fast one has just written. Delete it in the script, before the launcher, or in one task only.""",
    fix="delete it in the script, above the launcher",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun bash -c 'rm -rf checkpoints; exec python3 train.py --out checkpoints'
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    rm -rf checkpoints
    srun bash -c 'exec python3 train.py --out checkpoints'
    """,
)
def rm_in_ranks(script: Script) -> Iterator[Hit]:
    for code in code_of_tasks(script):
        tasks = code.total
        inner = list(commands(code.tree))
        for at, command in enumerate(inner):
            words = [word for word in command.arguments if not word.text.startswith("-")]
            paths = [_text(script, word) for word in words]
            deletes = command.name == "rm" and deletes_all(command)
            own = any(_RANKED.search(path) or _LOCAL.match(path) for path in paths)
            own |= code.group is None and _is_open(inner[:at], paths)
            if deletes and tasks > 1 and not on_condition(command.node) and not own and at + 1 < len(inner):
                deleted = f"{words[0].text if words else 'it'}, and what the others have written there since they started"
                yield Hit.at(command.node, f"each of the {tasks} tasks deletes {deleted}")


@rule_once(
    "task-log",
    WARNING,
    "A file that every task empties",
    """`>` in code that every task runs opens the same file in each of them. Each start empties what the others have written,
    and each writes over the lines of the others: the log shows none of the ranks.""",
    fix="put the number of the task into the name of the file, or leave the output to the launcher",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun bash -c 'exec python3 train.py > train.log'
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun bash -c 'exec python3 train.py > "train.$SLURM_PROCID.log"'
    """,
)
def task_log(script: Script) -> Iterator[Hit]:
    for code in code_of_tasks(script):
        own = {name: value.text for name, value, _ in assignments(code.tree)}
        works = {id(one.node) for one in commands(code.tree) if one.works}
        for node in code.tree.all("file_redirect") if code.total > 1 else ():
            around, file = node.around("redirected_statement"), node.get("destination")
            sign = next((one.text for one in node.children if ">" in one.text), "")
            of_work = around is not None and id(around.get("body")) in works
            if file is None or not of_work or sign not in (">", "&>", ">|") or on_condition(node):
                continue
            names = [name for name, _ in expansions(file)]
            text = " ".join([file.text, *(own.get(name, "") for name in names)])
            apart = _RANKED.search(text) or _VARIES.search(text) or _LOCAL.match(text.strip("\"'"))
            if not apart and all(name in own or name in _OF_JOB for name in names):
                reason = f"each of the {code.total} tasks empties {file.text}, and writes over the lines of the others"
                yield Hit(node.line, reason)


_VARIES = re.compile(r"(?i)\$\(|`|\$[@*\d{]|host|node|%|/dev/")


def _is_open(before: Sequence[Command], paths: Sequence[str]) -> bool:
    """Return whether each task of a script may have paths of its own, by a variable or by its directory."""
    names = {name for path in paths for name in re.findall(r"\$\{?(\w+)", path)}
    moves = any(command.name in ("cd", "pushd") and "$" in command.node.text for command in before)
    return moves or not names <= _OF_JOB


_OF_JOB = frozenset(
    ["HOME", "USER", "PWD", "SLURM_SUBMIT_DIR", "SLURM_JOB_ID", "SLURM_JOBID", "PBS_O_WORKDIR", "PBS_JOBID"]
)
