"""Rules about the shell: what `set -e` and `set -u` end although nothing is wrong, and how arrays are read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node

_COUNTS = re.compile(r"(?:\(\(|let) *[\"']? *(\w+)(?:\+\+|--) *[\"']? *(?:\)\))?")
_TESTED = ("list", "negated_command", "pipeline")
# Often unset at login, and set by no scheduler.
_SEARCH_PATHS = ("PYTHONPATH", "LD_PRELOAD", "PKG_CONFIG_PATH", "CPATH", "MANPATH", "JULIA_LOAD_PATH")


@rule(
    "counter-errexit",
    ERROR,
    "A counter that ends the script",
    """`((i++))` has the status 1 if `i` was 0, as the value of the expression is 0. With `set -e` the script ends
    there, without a message.""",
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
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    i=0
    for config in "$HOME"/configs/*.yaml; do
        srun python3 train.py --config "$config" --seed "$i"
        i=$((i + 1))
    done
    """,
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
            return


@rule(
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
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    export PYTHONPATH=${PYTHONPATH:-}:$HOME/lib
    srun python3 train.py
    """,
)
def nounset_environment(script: Script) -> Iterator[Hit]:
    if not script.nounset or not script.in_job or any("+u" in one.literals for one in script.named("set")):
        return
    for name, node in script.expansions:
        plain = node.type != "expansion" or re.fullmatch(r"\$\{\w+\}", node.text)
        own = next((above for above in node.above() if above.type == "variable_assignment"), None)
        if name in _SEARCH_PATHS and plain and own is not None and _is_first(script, own, name):
            reason = f"with set -u the script ends here where ${name} is not set"
            yield Hit.at(node, reason, f"write ${{{name}:-}}")
            return


def _is_first(script: Script, own: Node, name: str) -> bool:
    """Return whether an assignment appends to a variable that the script has not set before."""
    values = script.values.get(name, [])
    target = own.get("name")
    return (
        target is not None and target.text == name and bool(values) and own.start <= values[0].start < own.end
    )


@rule(
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
    good="""
    #!/bin/bash
    #SBATCH --array=0-2
    #SBATCH --time=01:00:00
    set -euo pipefail
    rates=(0.1 0.01 0.001)
    python3 train.py --lr "${rates[$SLURM_ARRAY_TASK_ID]}"
    """,
)
def array_braces(script: Script) -> Iterator[Hit]:
    arrays = {
        name for name, values in script.values.items() if any(value.type == "array" for value in values)
    }
    for name, node in script.expansions if arrays else ():
        behind = node.source[node.end :].split(b"\n", 1)[0].decode(errors="replace")
        index = re.match(r"\[(\$?\{?\w+\}?|@|\*|\$\(\([^)]*\)\))\]", behind)
        if name in arrays and node.type == "simple_expansion" and index:
            yield Hit.at(
                node,
                f"${name}{index[0]} is the first item of {name}, with {index[0]} behind it",
                f"write ${{{name}{index[0]}}}",
            )
            return
