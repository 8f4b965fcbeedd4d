"""Rules about the shell of a script, and the paths of commands and libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.script.commands import Command
from jobgen.script.script import Edit, Hit, Script
from jobgen.script.syntax import Node, expansions

_BASH_COMMANDS = (
    *("source", "shopt", "declare", "typeset", "mapfile", "readarray", "pushd", "popd", "let", "complete"),
)
_BASH_NODES = {
    "array": "an array",
    "herestring_redirect": "<<<",
    "process_substitution": "<(...)",
    "c_style_for_statement": "for ((...))",
    "brace_expression": "{a..b}",
}


@rule(
    "bash-in-sh",
    NOTE,
    "bash in a script of sh",
    """`#!/bin/sh` asks for a POSIX shell. On Debian and Ubuntu this is dash, which has no `source`, `[[`,
    arrays or `<<<`: the command fails, and the script goes on. Elsewhere `sh` is bash in its POSIX mode, and
    all works until the script moves.""",
    fix="write #!/bin/bash in the first line",
    bad="""
    #!/bin/sh
    #SBATCH --time=01:00:00
    set -eu
    if [[ $SLURM_NNODES -gt 1 ]]; then echo several; fi
    """,
    good={"#!/bin/sh": "#!/bin/bash"},
)
def bash_in_sh(script: Script) -> Iterator[Hit]:
    if not plain_sh(script) or not script.is_batch:
        return
    found = sorted(_bashisms(script))
    if found:
        yield Hit(found[0][0], f"{found[0][1]} is a feature of bash, and the first line asks for sh")


def plain_sh(script: Script) -> bool:
    """Return whether a POSIX shell runs the script, which may be dash."""
    chosen = any(option.flag == script.dialect.shell_option for option in script.options)
    return not chosen and script.asks_for_sh


def _bashisms(script: Script) -> Iterator[tuple[int, str]]:
    """Yield the features of bash that dash does not have: the line and the feature."""
    for type, name in _BASH_NODES.items():
        yield from ((node.line, name) for node in script.tree.all(type))
    for command in script.named(*_BASH_COMMANDS):
        yield command.line, command.name
    for command in script.named("set"):
        if "pipefail" in command.literals:
            yield command.line, "pipefail"
    for node in script.tree.all("test_command"):
        if node.text.startswith("[["):
            yield node.line, "[["
    for node in script.tree.all("function_definition"):
        if node.text.startswith("function"):
            yield node.line, "function"
    for node in script.tree.all("expansion"):
        if re.match(r"\$\{\w+(\^|,|//?[^}]|:\s*[\d$])|\$\{!", node.text):
            yield node.line, node.text


_LISTS = ("LD_LIBRARY_PATH", "PATH")
_SETS = ("module", "ml", "source", ".", "conda", "spack")
_SYSTEM = r"(^|[\"':])/(usr/)?bin/?(:|$|[\"'])"


@rule_once(
    "overwritten-path",
    WARNING,
    "A search path that loses what modules set",
    """Modules, conda and the scheduler put their directories into `PATH` and `LD_LIBRARY_PATH`. A new value
    without the old one hides their commands and libraries. (Without a module or another environment above
    it, this is a note, and if the new value has the directories of each of these itself.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    module load cuda
    export LD_LIBRARY_PATH=/opt/site/lib
    srun python3 train.py
    """,
    good={
        "export LD_LIBRARY_PATH=/opt/site/lib": "export LD_LIBRARY_PATH=/opt/site/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    },
)
def overwritten_path(script: Script) -> Iterator[Hit]:
    if {"SHLVL", "LOGNAME"} <= script.values.keys():
        return  # a copy of a whole environment, as qbatch writes it
    for name, _, node in script.assignments:
        if name not in _LISTS or not _replaces(script, name, node):
            continue
        value = node.text.partition("=")[2]
        above = (one for one in script.named(*_SETS) if one.node.start < node.start)
        late = any(_sets(one, name) and not _has_directories(value, one) for one in above)
        reason = f"the old value of {name} is lost" + (", with all that was set above" if late else "")
        yield Hit.at(node, reason, _fix_of_list(script, name, node), level=None if late else NOTE)


def _fix_of_list(script: Script, name: str, assignment: Node) -> str:
    """Return the fix: the old value may be there without its dollar sign, or in the next line of a broken one."""
    number = assignment.line
    if re.match(rf"[^\s=#]*:\S*\$\{{?{name}\b", script.line(number + 1)):
        return f"join line {number + 1} to it, where the value goes on"
    if re.search(rf"(?<![\w/.-]){name}(?![\w/.-])", assignment.text.partition("=")[2]):
        return f"write ${name}, with the dollar sign"
    return f"append the old one: {name}=...${{{name}:+:${name}}}"


def _sets(command: Command, name: str) -> bool:
    """Return whether a command may add to a list of directories; conda adds to ``PATH`` only."""
    words = " ".join(command.literals)
    if command.name in ("module", "ml"):
        return not re.match(r"purge|list|avail|unload|rm|use|show", words)
    return name == "PATH" or not (command.name == "conda" or re.search(r"conda|activate\b", words))


def _has_directories(value: str, command: Command) -> bool:
    """Return whether a list names the directories of all modules that a command loads, or of the file that it
    sources: ``/opt/cuda-11.8/lib64`` those of ``module load CUDA/11.8.0``."""
    words = command.literals
    if command.name in ("module", "ml"):
        modules = [word.partition("/") for word in words if word not in ("load", "add")]
        version = re.compile(r"\d+(?:\.\d+)?")
        numbers = [match[0] for _, _, text in modules if (match := version.search(text))]
        parts = [*(f"/{name}" for name, _, _ in modules), *numbers]
        return all(re.search(rf"(?i){re.escape(part)}\b", value) for part in parts)
    root = os.path.dirname(os.path.dirname(words[0])) if command.name in ("source", ".") and words else ""
    return root.count("/") > 1 and f"{root}/" in value


def _replaces(script: Script, name: str, assignment: Node) -> bool:
    """Return whether an assignment sets a list of directories that cannot contain the old one."""
    parent = assignment.parent
    # The whole line: of the value $A/x:$B/y tree-sitter loses the second half.
    value = assignment.text.partition("=")[2] + script.lines[assignment.line - 1].partition(f"{name}=")[2]
    if parent is None or parent.type == "command" or "+=" in assignment.text or "/" not in value:
        return False  # it adds to the value, or is for one command only
    if re.search(rf"{_SYSTEM}|\$\{{?{name}\b", value):
        return False
    return not _keeps(script, name, assignment)


def _keeps(script: Script, name: str, assignment: Node) -> bool:
    """Return whether the new value may contain the old one."""
    todo, seen = [assignment], set[str]()
    while todo:
        part = todo.pop()
        if next(part.all("command_substitution"), None):
            return True
        for other, _ in expansions(part):
            if other == name or (other.endswith("PATH") and other not in script.values):
                return True
            if other not in seen:
                seen.add(other)
                todo += script.values.get(other, [])
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@rule(
    "blank-after-backslash",
    ERROR,
    "A blank after a backslash",
    """A backslash continues a command on the next line only if it is the last character of its line. With a
    blank behind it the command gets an argument that is a blank, and ends: the next line is a command of its
    own. So it is with a comment behind the backslash. (It is a warning if the next line looks like one, and is not indented,
    and a note in a collection of commands that bash cannot read, without a first line `#!` and directives in effect.)""",
    message="the backslash does not continue the line: a blank comes after it, and the next line is another command",
    fix="delete the blanks at the end of the line",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py \\ \n      --epochs 3
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py \\
      --epochs 3
    """,
)
def blank_after_backslash(script: Script) -> Iterator[Hit]:
    lines = script.lines
    found = [(at, blank) for at, line in enumerate(lines) if (blank := _BLANK.search(line))]
    texts: set[int] = set()  # lines whose end is a part of a text
    for node in script.tree.all("string", "raw_string", "heredoc_body", "comment") if found else ():
        texts |= set(range(node.line, node.line + node.text.count("\n") + (node.type == "comment")))
    texts -= _lines_of_code(script) if texts else set()
    collection = script.tree.damaged and not script.is_batch and not script.line(1).startswith("#!")
    level = NOTE if collection else None
    for at, blank in found:
        if at + 1 in texts or lines[at].lstrip().startswith("#"):
            continue
        after = lines[at + 1].strip() if at + 1 < len(lines) else ""
        option = re.match(r"[-|&<>$\"']|\S+\.(py|jl|sh|R)\b", after)
        deeper = at + 1 < len(lines) and _indent(lines[at + 1]) > _indent(lines[at])
        joined = re.search(r"(\||&&)\s*$", lines[at][: blank.start()])
        continues = bool(option or (after and deeper) or joined)
        start = script.start_of(at + 1) + len(lines[at][: blank.start() + 1].encode())
        end = start + len(lines[at][blank.start() + 1 :].rstrip("\r").encode())
        items = any(one.line <= at + 1 < one.line + one.text.count("\n") for one in script.tree.all("array"))
        if "#" in blank[0]:
            why = _COMMENT + ("" if items else ", and the next line is another command")
            if continues:
                yield Hit(at + 1, why, "put the comment on a line above the command", level)
            continue
        if items:
            yield Hit(at + 1, _ITEM, level=WARNING, edits=(Edit(start, end),))
            continue
        reason = (
            "" if continues else "the command gets an argument that is a blank: one is behind the backslash"
        )
        edits = (Edit(start, end),) if continues else ()
        yield Hit(at + 1, reason, level=level or (None if continues else WARNING), edits=edits)


_BLANK = re.compile(r"(?<!\\)\\[ \t]+(?:#.*)?\r?$")
_COMMENT = "behind a backslash and a blank # begins no comment: it and the words behind it are arguments"
_ITEM = "the array gets an item that is a blank: one is behind the backslash"


def _lines_of_code(script: Script) -> set[int]:
    """Return the lines of the script in texts that a shell runs, as ``bash -c '...'``."""
    trees = {id(one.text): one.text for one in script.started if one.text is not None}
    lines = (
        (at, line) for tree in trees.values() for at, line in enumerate(tree.text.split("\n"), tree.line)
    )
    return {at for at, line in lines if line.strip() and script.line(at).endswith(line)}
