"""Rules about variables of bash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.errors import nearest
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, expansions, literal


@rule(
    "foreign-variable",
    ERROR,
    "A variable of another scheduler",
    """Torque sets `PBS_NP`, `PBS_NUM_PPN`, `PBS_GPUFILE` and `PBS_ARRAYID`; PBS Pro does not, and has
    `PBS_ARRAY_INDEX` for arrays. Slurm sets none of PBS's variables, and PBS none of Slurm's. (A variable
    with a default, as in `${PBS_ARRAYID:-0}`, and one under an `if` or a `case` are not reported: such a
    script may be for several schedulers.)""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -J 0-9
    echo "task $PBS_ARRAYID"
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -J 0-9
    echo "task $PBS_ARRAY_INDEX"
    """,
)
def foreign_variable(script: Script) -> Iterator[Hit]:
    seen: set[str] = set()
    own = {name for name, _, _ in script.assignments}
    foreign = script.dialect.foreign_variables if script.is_batch else {}
    for name, node in script.expansions:
        prefixed = name.startswith(script.dialect.foreign_prefixes)
        safe = node.type == "expansion" and any(sign in node.text for sign in (":-", ":+", "-", "+", ":="))
        inside = next(expansions(node), ("", node))[1] is not node or node.under(*_CHOICES)
        if name in own or name in seen or safe or inside or not (prefixed or name in foreign):
            continue
        seen.add(name)
        if not any(above.type == "expansion" for above in node.above()):
            yield Hit(
                node.line,
                f"{script.dialect.title} does not set {name}",
                f"use {foreign.get(name, 'PBS_* variables')}",
            )


_NO_PATHS = ("module", "ml", "echo", "printf")
_CHOICES = ("if_statement", "case_statement", "function_definition", "heredoc_body")
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


@rule(
    "unquoted-path",
    NOTE,
    "A path without quotes",
    """Without quotes a path with a blank becomes two words, and an empty one disappears: `rm -rf $dir/*`
    becomes `rm -rf /*`. Only places where a path is expected are reported, because options in a variable
    are often meant to be several words.""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd $PBS_O_WORKDIR
    hostname
    """,
    good="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    hostname
    """,
)
def unquoted(script: Script) -> Iterator[Hit]:
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
                f"the path in ${name} is split at blanks, and disappears if it is empty",
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
    parent = word.parent
    if word.type == "concatenation" and "/" in word.text and "=" not in word.text.partition("/")[0]:
        name = parent.get("name") if parent is not None else None
        return (name is None or name.text not in _NO_PATHS) and "://" not in word.text
    if parent is None or parent.type == "file_redirect":
        return parent is not None
    name = parent.get("name")
    return parent.type == "command" and name is not None and name is not word and name.text in _PATHS


def _harmless(value: Node) -> bool:
    text = literal(value)
    return text is not None and not re.search(r"[\s*?\[]", text)


def _is_counter(script: Script, name: str) -> bool:
    """Return whether all values of a variable are numbers or safe words, or it is that of a for loop."""
    values = script.values.get(name, [])
    numbers = all(value.type in ("number", "arithmetic_expansion") or _harmless(value) for value in values)
    return bool(values or name in script.loop_variables) and numbers


@rule(
    "unset-variable",
    WARNING,
    "A variable that is not set",
    """A variable that is not set is empty, without a message. Only lower-case names are reported, which no
    scheduler, site or module sets, and only in scripts that source no other file. `set -u` finds the others
    when the job runs. (If no similar name is set, the variable may be given at the submission: a note.)""",
    fix="correct the name, or set it",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    workdir=/scratch/project
    cd "$work_dir"
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    workdir=/scratch/project
    cd "$workdir"
    """,
)
def unknown_variable(script: Script) -> Iterator[Hit]:
    if any(
        script.named(
            "source", ".", "eval", "getopts", "read", "mapfile", "readarray", "printf", "let", "module", "ml"
        )
    ):
        return
    if not script.is_batch:
        return
    # By the text, too: the tree leaves out what has a syntax error.
    written = re.findall(r"(?m)^\s*(\w+)(?:\[[^]]*\])?\+?=", script.tree.text)
    elements = (node.get("name") for node in script.tree.all("subscript") if node.field == "name")
    known = {*script.values, *script.loop_variables, *written, *(name.text for name in elements if name)}
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
            or node.under("unset_command")
            or name == "_"
            or name.endswith(("_proxy", "proxy"))
        ):
            continue
        if node.type == "expansion" and re.search(r"[:+?=-]", node.text[2 + len(name) :]):
            continue
        known.add(name)
        hint = nearest(name, islice(script.values, 200), cutoff=0.75)
        typo = hint or re.match(r"\$\w+\s*=", node.parent.text if node.parent is not None else "")
        where = "" if typo else " in this script: unless the submission sets it,"
        yield Hit(
            node.line, f"${name} is not set{where or ':'} it is empty{hint}", level=None if typo else NOTE
        )
