"""Rules about bash: ignored failures, and values that bash splits into words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import LOOPS, Node, expansions, literal
from jobgen.check.rule import WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.check.shell_commands import commands

_PATHS = (
    "cd",
    "pushd",
    "mkdir",
    "rm",
    "rmdir",
    "cp",
    "mv",
    "ln",
    "touch",
    "source",
    ".",
    "tar",
    "chmod",
    "rsync",
)


def no_errexit(script: Script) -> Iterator[Hit]:
    if script.errexit or not script.commands:
        return
    first, last = script.commands[0], script.commands[-1]
    if last.name == "exit" and any(True for word in last.arguments for _ in expansions(word)):
        return  # the script keeps the status
    if len(script.commands) > 1 and any(command.works for command in script.commands):
        yield Hit(
            first.line,
            "without set -e the script goes on after a command that failed, and ends with the status "
            "of its last one",
            "write set -euo pipefail after the directives",
        )


def no_pipefail(script: Script) -> Iterator[Hit]:
    if not script.errexit or script.pipefail:
        return
    for node in script.tree.all("pipeline"):
        if not node.under("command_substitution", "if_statement", "while_statement") and not _teed(node):
            yield Hit(
                node.line,
                "set -e sees only the last command of a pipeline: what fails before the | is not noticed",
                "write set -o pipefail",
            )
            return


def _teed(pipeline: Node) -> bool:
    """Return whether the rule lost-status applies: work, and then tee or another filter."""
    inner = list(commands(pipeline))
    return any(command.works for command in inner[:-1])


def lost_status(script: Script) -> Iterator[Hit]:
    if script.pipefail or any(name == "PIPESTATUS" for name, _ in script.expansions):
        return
    for node in script.tree.all("pipeline"):
        if _teed(node) and not node.under("command_substitution"):
            yield Hit(
                node.line,
                "the status of the pipeline is its last command's: the job succeeds when the training "
                "has failed",
                "write set -o pipefail before it",
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
            yield Hit(
                command.line,
                "when this fails, all that follows happens in the wrong directory",
                f"write {command.node.text} || exit 1",
            )


def unquoted(script: Script) -> Iterator[Hit]:
    """Yield a hit for unquoted variables in paths only: options in a variable are often split on purpose."""
    seen: set[str] = set()
    for name, node in script.expansions:
        if (
            name in seen
            or (not name[0].isalpha() and name[0] != "_")
            or not _splits(node)
            or "[@]" in node.text
        ):
            continue
        value = script.constants.node(name)
        if (value is not None and _harmless(value)) or (
            name.startswith("SLURM_") and name != "SLURM_SUBMIT_DIR"
        ):
            continue
        if _is_counter(script, name) or name in (
            "HOME",
            "USER",
            "PBS_NODEFILE",
            "PBS_JOBID",
            "PBS_ARRAY_INDEX",
            "PBS_NP",
        ):
            continue
        if _is_path(node) and not re.search(r"ADDR|HOST|NODE|URL|_IP$", name):
            seen.add(name)
            yield Hit(
                node.line,
                f"the path in ${name} falls apart at a blank, and vanishes when it is empty",
                f'write "${name}" in double quotes',
            )


def _splits(node: Node) -> bool:
    """Return whether the shell splits the result of this expansion into words."""
    above = node.parent
    while above is not None and above.type == "concatenation":
        above = above.parent
    return above is not None and above.type in ("command", "command_name", "file_redirect")


def _is_path(node: Node) -> bool:
    word = node
    while word.parent is not None and word.parent.type == "concatenation":
        word = word.parent
    if word.type == "concatenation" and "/" in word.text and "=" not in word.text.partition("/")[0]:
        return True
    parent = word.parent
    if parent is None or parent.type == "file_redirect":
        return parent is not None
    name = parent.get("name")
    return parent.type == "command" and name is not None and name is not word and name.text in _PATHS


def _harmless(value: Node) -> bool:
    text = literal(value)
    return text is not None and not re.search(r"[\s*?\[]", text)


def _is_counter(script: Script, name: str) -> bool:
    """Return whether a variable is only ever a number, a harmless word, or the variable of a for loop."""
    values = [value for other, value, _ in script.assignments if other == name]
    loops = [
        node
        for node in script.tree.all(*LOOPS)
        if (bound := node.get("variable")) is not None and bound.text == name
    ]
    numbers = all(value.type in ("number", "arithmetic_expansion") or _harmless(value) for value in values)
    return bool(values or loops) and numbers


def unknown_variable(script: Script) -> Iterator[Hit]:
    """Yield hits for lower-case names that nothing sets, unless another file may set them."""
    if any(
        script.named(
            "source", ".", "eval", "getopts", "read", "mapfile", "readarray", "printf", "let", "module", "ml"
        )
    ):
        return
    if not script.is_batch:
        return
    known = {name for name, _, _ in script.assignments}
    known |= {bound.text for node in script.tree.all(*LOOPS) if (bound := node.get("variable")) is not None}
    known |= {
        node.text
        for node in script.tree.all("variable_name")
        if node.under("declaration_command", "compound_statement", "c_style_for_statement")
        and not node.under("simple_expansion", "expansion")
    }
    for name, node in script.expansions:
        if (
            not re.fullmatch(r"[a-z_][a-z0-9_]*", name)
            or name in known
            or name == "_"
            or name.endswith(("_proxy", "proxy"))
        ):
            continue
        if node.type == "expansion" and re.search(r"[:+?=-]", node.text[2 + len(name) :]):
            continue
        known.add(name)
        yield Hit(node.line, f"nothing sets ${name}: it is empty", "correct the name, or set it")


RULES = (
    Rule("no-errexit", WARNING, "No set -e", no_errexit),
    Rule("no-pipefail", WARNING, "set -e without pipefail", no_pipefail),
    Rule("lost-status", WARNING, "The status of the training is lost in a pipe", lost_status),
    Rule("unchecked-cd", WARNING, "A cd that may fail unseen", unchecked_cd),
    Rule("unquoted-path", WARNING, "A path without quotes", unquoted),
    Rule("unset-variable", WARNING, "A variable that nothing sets", unknown_variable),
)
