"""What the statements of a script do, and which of them may run after an option of the job file.

Options of the environment are set before the block ``setup``. A statement that stays in the block, and that
the script runs before such an option, must not depend on the order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.convert.command_kinds import PRINT, TOOLS
from jobgen.convert.variable_names import names_read
from jobgen.launch.command_line import is_python
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, exported

# The kinds of commands by name; all others are programs.
_NAMES = {
    "text": """echo date hostname printf whoami uptime true false : expr seq basename dirname wait sleep bc shuf
nvidia-smi npu-smi lscpu free id groups ps nproc hostnamectl""",
    "state": "which env type command printenv nvcc",
    "function": "alias",
    "shell": "set ulimit umask shopt exit return break continue shift let",
    "variable": "read mapfile readarray getopts",
    "directory": "cd pushd popd",
    "here": "pwd",
    "environment": "module ml source . eval conda mamba micromamba spack nvm use uenv pyenv unset",
    "copies": "cp mv ln tar gzip gunzip zip unzip rsync scp wget curl git",
    "files": f"{' '.join(TOOLS - PRINT)} [ test stat realpath readlink mktemp md5sum sha1sum sha256sum getent",
}
# Tools that read their input, or files.
_FILTERS = "awk cat cut egrep fgrep grep head nl paste sed sort tac tail tr uniq wc".split()
_HARMLESS_REDIRECTION = re.compile(
    r"(\d*|&)>>?\s*/dev/(null|stderr|stdout)|\d*[<>]&\s*\d|<\s*\"?\$\{?PBS_NODEFILE\b"
)
_OF_SCHEDULER = re.compile(r"\"?\$\{?PBS_NODEFILE\}?\"?")
_KIND_OF = {name: kind for kind, names in reversed(_NAMES.items()) for name in names.split()}
# The names of files that only set variables.
ENVIRONMENT = re.compile(r"activate|profile|bashrc|conda|env|vars?(\.sh)?$|module|conf|/etc/|setup")
# Variables that modules and activated environments set or read.
PATHS = re.compile(
    r"((LD_)?(RUN|LIBRARY)_|(CPLUS|C|OBJC)_(INCLUDE_)?|INCLUDE_|PKG_CONFIG_|CMAKE_\w+_|CLASS|MAN|INFO|C|JULIA_\w+_)?PATH"
    r"|PYTHON(PATH|HOME|USERBASE)|PERL5LIB|R_LIBS\w*|\w+_ROOT|(CUDA|CUDNN|NCCL|MPI|MKL|JAVA|PYTHON|R)_?(HOME|DIR|LIBS?)|CC|CXX|FC|F77|F90"
    r"|(MODULE|LMOD|CONDA)\w*"
)
# Variables that these do not set.
_LOGIN = re.compile(
    r"HOME|USER|LOGNAME|HOSTNAME|TMPDIR|TMP|\w*(SCRATCH|WORK)\w*|SHELL|\w+_VISIBLE_DEVICES|NCPUS|PWD|SECONDS|RANDOM|BASH\w*|(SLURMD?|PBS)_\w+|SLURM\w*|\W|\d+"
)
_HARMLESS = frozenset({"text", "report", "shell", "variable", "export", "function"})
# For each option, what a statement may do that the script runs before it, and the job after it.
_MAY_FOLLOW = {
    "workdir": _HARMLESS | {"state", "path", "library", "append", "environment", "deactivation"},
    "module": _HARMLESS | {"directory", "here", "files", "copies", "append", "deactivation"},
    "source": _HARMLESS - {"variable", "export"},  # the file may read them
    "conda": _HARMLESS | {"directory", "here", "files", "append", "library"},
    "venv": _HARMLESS | {"here", "files", "append", "library"},
    "env": _HARMLESS
    | {
        "state",
        "path",
        "library",
        "append",
        "environment",
        "deactivation",
        "directory",
        "here",
        "files",
        "copies",
    },
}
_MAY_FOLLOW |= dict.fromkeys(("module_purge", "module_use"), _MAY_FOLLOW["module"])


class Effects(NamedTuple):
    """The kinds of what a statement does, and the variables that it reads and may get from elsewhere."""

    node: Node
    kinds: frozenset[str]
    foreign: frozenset[str]


def effects_of(script: Script, statement: Node) -> Effects:
    """Return what a statement does."""
    read = {node.text for node, _ in names_read(statement, 0)} if statement.type != "unset_command" else set()
    foreign = {name for name in read if name not in script.values and not _LOGIN.fullmatch(name)}
    foreign -= script.loop_variables
    kinds = frozenset(_kinds(script, statement, 0))
    if kinds <= {"text", "state", "here"} and (foreign or kinds & {"state", "here"}):
        return Effects(statement, frozenset({"report"}), frozenset())
    return Effects(statement, kinds, frozenset(foreign))


def may_follow(effects: Effects, option: str) -> bool:
    """Return whether a statement may run after an option that the script has behind the statement."""
    if option not in ("env", "workdir") and effects.foreign:
        return False  # a module may set what the statement reads
    return effects.kinds <= _MAY_FOLLOW[option]


def mentions(node: Node, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", node.text) is not None


def _kinds(script: Script, statement: Node, depth: int) -> Iterator[str]:
    if statement.type == "function_definition" or depth > 3:
        yield "program" if depth else "function"
        return
    after = statement.next()
    if (
        (after is not None and after.type == "&")
        or any(True for _ in statement.all("&", "ERROR"))
        or depth > 3
    ):
        yield "program"
    for name, _, node in assignments(statement):
        if node.parent is not None and node.parent.type == "command":
            continue
        if re.match(rf"\"?\$(?:{name}|\{{{name}\}}):[^$]*(\$\{{?(?!{name}\b)\w+[^$]*)*$", _value(node)):
            yield "append"
            continue
        plain = not exported(node) and not re.fullmatch(
            r"(LD_LIBRARY_|PYTHON|MODULE|MAN|LIBRARY_|C)?PATH", name
        )
        if not plain and PATHS.fullmatch(name):
            yield "path" if re.fullmatch(r"PATH|PYTHONHOME|CONDA\w*", name) else "library"
        else:
            yield "variable" if plain else "export"
    for one in statement.all("unset_command", "declaration_command"):
        names = [child.text for child in one.children if child.type == "variable_name"]
        yield "path" if any(map(PATHS.fullmatch, names)) else "export"
    yield from (
        "files" for one in statement.all("file_redirect") if not _HARMLESS_REDIRECTION.match(one.text)
    )
    if "PWD" in statement.text:
        yield "here"
    if re.search(r"\[\[.*\s-[a-zA-Z]\s", statement.text):
        yield "files"
    for command in commands(statement):
        yield from _of_command(script, command, depth)


def _of_command(script: Script, command: Command, depth: int) -> Iterator[str]:
    name, words = command.name, command.literals
    body = next((one for one in script.tree.all("function_definition") if _is_named(one, name)), None)
    if body is not None and name:
        inner = body.get("body")
        yield from _kinds(script, inner, depth + 1) if inner is not None else ("program",)
    elif name == "deactivate" or (name in ("source", ".", "conda") and words == ["deactivate"]):
        yield "deactivation"
    elif name in ("module", "ml") and words[:1] in ([], ["list"], ["avail"], ["spider"], ["show"]):
        yield "state"
    elif "-c" in words and is_python(name) and "print(" in command.node.text:
        yield "state"
    elif words == ["--version"]:
        yield "state"
    elif name in ("srun", "mpirun", "mpiexec") and {*words} & {"hostname", "/bin/hostname", "echo", "date"}:
        yield "text"
    elif name == "conda" and words[:1] == ["info"] or (name in _FILTERS and _filters(command)):
        yield "text"
    else:
        yield _KIND_OF.get(name, "program")


def _filters(command: Command) -> bool:
    """Return whether a tool reads the output of another command, or the list of hosts."""
    pipeline = command.node.parent
    if pipeline is not None and pipeline.type == "redirected_statement":
        pipeline = pipeline.parent
    if pipeline is not None and pipeline.type == "pipeline" and command.node.start > pipeline.start:
        return True
    file = command.arguments[-1].text if command.arguments else ""
    return _OF_SCHEDULER.fullmatch(file) is not None


def _value(assignment: Node) -> str:
    value = assignment.get("value")
    return value.text if value is not None else ""


def _is_named(definition: Node, name: str) -> bool:
    node = definition.get("name")
    return node is not None and node.text == name
