"""Rules about the names of variables: misspelt ones, and those that come from outside of the script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jobgen.check.rule import NOTE, WARNING, rule
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, expansions

# Commands that set the variables that they name, and those that may set any.
_READERS = ("read", "mapfile", "readarray", "printf", "getopts", "let", "unset", "local", "declare", "export")
_SOURCES = ("source", ".", "eval", "module", "ml", "conda", "spack")
_LONGEST = 40  # letters of a name that is compared
# Variables that the system, a scheduler or a site sets.
_OUTSIDE = (
    r"(SLURM|SBATCH|SRUN|PBS|PMI|OMPI|MPI|CUDA|NCCL|OMP|LD|LC|BASH|EPOCH|XDG|SINGULARITY|APPTAINER|CONDA|LMOD|DW|BB)_?.*"
    r"|(HOME|USER|LOGNAME|E?UID|PPID|O?L?D?PWD|SHELL|HOST(NAME|TYPE)?|TMP|TEMP|LANG|TERM|DISPLAY|RANDOM|SECONDS|LINENO)"
    r"|(GROUPS|FUNCNAME|PIPESTATUS|IFS|OSTYPE|MACHTYPE|OPTARG|OPTIND|REPLY|COLUMNS|LINES|SHLVL|MAIL|EDITOR|PS\d|NPROCS)"
    r"|.*(PATH|SCRATCH|WORK|STORE|PROJ|HOME|ROOT|PROXY|TMPDIR|LOCAL|CLUSTER|GROUP|ARCH|SITE).*|.*_proxy"
)


def _set_names(script: Script) -> set[str]:
    """Return the names of all variables that the script itself sets or may set."""
    words = (word.text for command in script.named(*_READERS) for word in command.arguments)
    read = {name for word in words for name in re.findall(r"[A-Za-z_]\w*", word)}
    declared = (node for node in script.tree.all("variable_name"))
    own = {node.text for node in declared if not node.under("simple_expansion", "expansion")}
    return {*script.values, *script.loop_variables, *read, *own}


def _uses(script: Script) -> Iterator[tuple[str, Node]]:
    """Yield the first use of each variable that must have a value: without a default, and not in a test."""
    tested = {
        name for node in script.tree.all("test_command", "case_statement") for name, _ in expansions(node)
    }
    seen = set(tested)
    for name, node in script.expansions:
        if name in seen:
            continue
        if node.type == "expansion" and not re.fullmatch(r"\$\{\w+\}", node.text):
            seen.add(name)  # ${NAME:-default}, ${NAME:?}, or an array
        elif re.fullmatch(r"[A-Za-z]\w+", name):
            seen.add(name)
            yield name, node


class _Names:
    """Names of variables by their forms, to find one that is almost the same."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_form: dict[str, str] = {}
        for name in sorted(names, reverse=True):
            self._by_form |= dict.fromkeys(_forms(name), name)
            self._by_form[_plain(name)] = name

    def near(self, name: str) -> str | None:
        """Return the name that differs only in case or underscores, or in one letter of a long name."""
        found = self._by_form.get(_plain(name))
        if found is None or _plain(found) != _plain(name):
            found = next((self._by_form[form] for form in _forms(name) if form in self._by_form), None)
        return found


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _forms(name: str) -> list[str]:
    """Return a long name without each of its letters but the first: two with a common form differ in one letter."""
    plain = _plain(name)
    if not 5 < len(plain) < _LONGEST or re.search(r"\d", plain):
        return [plain]
    return [plain, *(f"{plain[:at]}{plain[at + 1 :]}" for at in range(1, len(plain)))]


def _reads_others(script: Script) -> bool:
    """Return whether the script runs text that may set any variable, besides a module or an environment."""
    known = (
        r".*(activate|conda\.sh|modules?(\.sh)?|bashrc|profile|lmod\S*|/etc/\S*|setvars\.sh|GMXRC\S*)[\"']?"
    )
    read = (one.arguments[0].text for one in script.named("source", ".") if one.arguments)
    evals = (one.node.text for one in script.named("eval"))
    return not all(re.fullmatch(known, text) for text in read) or any("hook" not in text for text in evals)


@rule(
    "misspelt-variable",
    WARNING,
    "A variable with a name that is set nowhere",
    """A misspelt variable is empty, without a message. Names are case-sensitive: `$Nodes` is not `$NODES`.
    `set -u` ends the script instead. (Lower-case names without a similar one are the matter of
    `unset-variable`.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    OUTPUT_DIR=/scratch/project/results
    mkdir -p "$OUTPUT_DIR"
    srun python3 train.py --output "$OUTPUTDIR"
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    OUTPUT_DIR=/scratch/project/results
    mkdir -p "$OUTPUT_DIR"
    srun python3 train.py --output "$OUTPUT_DIR"
    """,
)
def misspelt(script: Script) -> Iterator[Hit]:
    if not script.is_batch or _reads_others(script):
        return
    known = _set_names(script)
    used = {name for name, _ in script.expansions}
    unused, names = _Names(script.values.keys() - used), _Names(script.values)
    for name, node in _uses(script):
        if name in known or re.fullmatch(_OUTSIDE, name):
            continue
        meant = unused.near(name) or names.near(name)
        own = [above.text for above in node.above() if above.type == "variable_assignment"]
        if meant is None or any(text.startswith(f"{meant}=") for text in own):
            continue  # it is set from the variable of the outside
        if name != name.lower() or any(script.named(*_SOURCES)):
            yield Hit(node.line, f"${name} is set nowhere, only ${meant} is", f"write ${meant}")


@rule(
    "unchecked-variable",
    NOTE,
    "A variable from outside that is not checked",
    """A variable that the script does not set has to come from the shell that submits it, or from `--export`
    or `-v`. If it was forgotten, it is empty, and the job does something else. `${NAME:?}` or `set -u` ends
    the script instead. Only scripts that load nothing are read: a module may set any variable.""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    srun python3 train.py --seed "$SEED"
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    srun python3 train.py --seed "${SEED:?}"
    """,
)
def unchecked(script: Script) -> Iterator[Hit]:
    if not script.is_batch or script.nounset or any(script.named(*_SOURCES)) or "{{" in script.tree.text:
        return
    known, names = _set_names(script), _Names(script.values)
    passed = {
        part.partition("=")[0] for option in script.options for part in option.value.split(",") if "=" in part
    }
    if (argument := _unchecked_argument(script)) is not None:
        number = argument.text.strip("${}")
        yield Hit(
            argument.line,
            f"the script does not check its argument {number}: without it, ${number} is empty",
            f"write ${{{number}:?}}",
        )
    for name, node in _uses(script):
        if name in known | passed or re.fullmatch(rf"{_OUTSIDE}|[a-z_].*", name) or names.near(name):
            continue
        yield Hit(
            node.line,
            f"${name} has to be set outside of the script: without it, it is empty",
            f"write ${{{name}:?}}",
        )


def _unchecked_argument(script: Script) -> Node | None:
    """Return the first use of an argument of the script, if nothing tests the arguments."""
    if re.search(r"\$#|\$\{[1-9#][^}]|(^|[\s;])(shift|getopts|set --)\b", script.tree.text):
        return None
    tests = list(script.tree.all("test_command", "case_statement"))
    if any(re.search(r"\$\{?[1-9@*]", node.text) for node in tests):
        return None
    own = (node for name, node in script.expansions if re.fullmatch("[1-9]", name))
    return next((node for node in own if not node.under("function_definition", "heredoc_body")), None)
