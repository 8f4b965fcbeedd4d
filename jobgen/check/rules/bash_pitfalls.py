"""Rules about the shell: what `set -e` and `set -u` end although nothing is wrong, and how arrays are read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, NOTE, WARNING, rule_once
from jobgen.launch.wrappers import inputs_start, wrappers
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, is_plain

_COUNTS = re.compile(r"(?:\(\(|let) *[\"']? *(\w+)(?:\+\+|--) *[\"']? *(?:\)\))?")
_TESTED = ("list", "negated_command", "pipeline")
# Often unset at login, and set by no scheduler.
_SEARCH_PATHS = ("PYTHONPATH", "LD_PRELOAD", "PKG_CONFIG_PATH", "CPATH", "MANPATH", "JULIA_LOAD_PATH")


@rule_once(
    "counter-errexit",
    ERROR,
    "A counter that ends the script",
    """`((i++))` has the status 1 if `i` was 0, as the value of the expression is 0. With `set -e` the script ends
    there, without a message. (A difference, a quotient or a remainder by `expr`, `let` or `((`, as in
    ``N=`expr $M / 10` ``, may be 0, too: this is a note.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    i=0
    for config in "$HOME"/configs/*.yaml; do
        srun python3 train.py --config "$config" --seed "$i"
        ((i++))
    done
    """,
    good={"((i++))": "i=$((i + 1))"},
)
def counter_errexit(script: Script) -> Iterator[Hit]:
    if not script.errexit or any("+e" in one.literals for one in script.named("set")):
        return
    for node in script.tree.all("compound_statement", "command"):
        match = _COUNTS.fullmatch(node.text)
        if match is None or node.field == "condition" or (node.parent and node.parent.type in _TESTED):
            continue
        values = script.values.get(match[1], [])
        if len(values) == 1 and values[0].text == "0" and values[0].start < node.start:
            name = match[1]
            reason = f"{node.text} has the status 1 while {name} is 0: with set -e the script ends here"
            yield Hit.at(node, reason, f"write {name}=$(({name} {match[0][match.end(1) - match.start()]} 1))")
    yield from _results(script)


def _results(script: Script) -> Iterator[Hit]:
    """Yield the assignments of a result that may be 0, which then have the status 1."""
    found = [(one.name, one.node, _assigned(one.node)) for one in script.named("expr")]
    found += [("let", one.node, one.node) for one in script.named("let")]
    blocks = script.tree.all("compound_statement")
    found += [("((", node, node) for node in blocks if node.text.startswith("((")]
    for name, node, whole in found:
        if whole is None or _MAY_BE_ZERO[name].search(node.text) is None or whole.field == "condition":
            continue
        operands = re.findall(r"[A-Za-z_]\w*", node.text.partition("expr" if name == "expr" else "=")[2])
        values = (value.text for operand in operands for value in script.values.get(operand, [node]))
        if (whole.parent is None or whole.parent.type not in _TESTED) and not all(map(str.isdigit, values)):
            reason = f"{name} has the status 1 if the result is 0: with set -e the script ends here"
            yield Hit.at(whole, reason, "write NAME=$((...)), which has the status 0", level=NOTE)


def _assigned(node: Node) -> Node | None:
    """Return the assignment whose status is that of a command in its value."""
    above = next((one for one in node.above() if one.type == "command_substitution"), None)
    whole = above.parent if above is not None else None
    if whole is None or whole.type != "variable_assignment" or whole.parent is None:
        return None
    return None if whole.parent.type in ("declaration_command", "command") else whole


_ASSIGNS = re.compile(r"(?:\(\(|let\s+[\"']?)\s*\w+\s*=[^=].*[\w)}]\s*[-/%]\s*[\w$(]")
_MAY_BE_ZERO = {"expr": re.compile(r"\s[-/%:]\s"), "let": _ASSIGNS, "((": _ASSIGNS}


@rule_once(
    "nounset-environment",
    NOTE,
    "A variable of the environment under set -u",
    """With `set -u` a variable that is not set ends the script. `PYTHONPATH` and the like are set for some users only.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    export PYTHONPATH=$PYTHONPATH:$HOME/lib
    srun python3 train.py
    """,
    good={"export PYTHONPATH=$PYTHONPATH:$HOME/lib": "export PYTHONPATH=${PYTHONPATH:-}:$HOME/lib"},
)
def nounset_environment(script: Script) -> Iterator[Hit]:
    if not script.nounset or not script.in_job or any("+u" in one.literals for one in script.named("set")):
        return
    for name, node in script.expansions:
        plain = is_plain(node) and not node.under("expansion")  # not that in ${NAME:+$NAME:}
        own = node.around("variable_assignment") if name in _SEARCH_PATHS and plain else None
        values = script.values.get(name)
        if own is not None and own.name == name and values and values[0] in own:  # nothing is there before
            reason = f"with set -u the script ends here where ${name} is not set"
            yield Hit.at(node, reason, f"write ${{{name}:-}}")


@rule_once(
    "array-braces",
    WARNING,
    "An item of an array without braces",
    """`$rates[1]` is the first item with `[1]` behind it: bash reads an index in braces only, as in `${rates[1]}`.""",
    bad="""
    #!/bin/bash
    #SBATCH --array=0-2
    #SBATCH --time=01:00:00
    set -euo pipefail
    rates=(0.1 0.01 0.001)
    python3 train.py --lr "$rates[$SLURM_ARRAY_TASK_ID]"
    """,
    good={
        'python3 train.py --lr "$rates[$SLURM_ARRAY_TASK_ID]"': 'python3 train.py --lr "${rates[$SLURM_ARRAY_TASK_ID]}"'
    },
)
def array_braces(script: Script) -> Iterator[Hit]:
    arrays = {name for name, value, _ in script.assignments if value.type == "array"}
    for name, node in script.expansions if arrays else ():
        behind = node.source[node.end :].split(b"\n", 1)[0].decode(errors="replace")
        index = re.match(r"\[(\$?\{?\w+\}?|@|\*|\$\(\([^)]*\)\))\]", behind)
        if name in arrays and node.type == "simple_expansion" and index:
            reason = f"${name}{index[0]} is the first item of {name}, with {index[0]} behind it"
            yield Hit.at(node, reason, f"write ${{{name}{index[0]}}}")


@rule_once(
    "function-program",
    ERROR,
    "A function in the place of a program",
    """`srun`, `mpirun`, `timeout`, `nohup` and `xargs` start programs. They do not know the functions of the script, also
    not those of `export -f`: "No such file or directory". Only a shell that they start does: `bash -c`.""",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    train_rank() {
        python3 train.py --seed "$SLURM_PROCID"
    }
    export -f train_rank
    srun train_rank
    """,
    good={"srun train_rank": "srun bash -c train_rank"},
)
def function_program(script: Script) -> Iterator[Hit]:
    if not script.functions:
        return
    found = [(one.program, one.kind) for one in script.launches if not one.remote]
    found += [(one.words, "") for one in script.commands]
    for words, starter in found:
        texts = [script.constants.value(word) for word in words]
        at = 0
        for _, start, end in wrappers(texts):
            name = os.path.basename(texts[start] or "")
            at, starter = end, name if name in _EXECUTE else "" if name in _OWN_SHELL else starter
        if texts and os.path.basename(texts[0] or "") == "xargs":
            at, starter = inputs_start(texts, 0), "xargs"
        name = texts[at] or "" if at < len(texts) else ""
        own_name = rf"(command|which|/)\s*{re.escape(name)}\b"  # of a program that the function calls
        if starter and name in script.functions and not re.search(own_name, script.functions[name]):
            reason = f"{name} is a function of this script: {starter} starts programs only, and finds none of this name"
            yield Hit.at(words[at], reason, f"export -f {name}, and write {starter} bash -c {name}")


# Commands that execute a program; those of the shell itself call its functions.
_EXECUTE = ("timeout", "nohup", "setsid", "env", "nice", "numactl", "taskset", "stdbuf", "exec", "sudo")
_OWN_SHELL = ("eval", "time", "coproc")
