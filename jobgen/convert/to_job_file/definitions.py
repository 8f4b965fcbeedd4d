"""The functions, arrays and variables of a script that its commands need in another shell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobgen.convert.to_job_file.effects import effects_of
from jobgen.convert.to_job_file.inherited import is_own_file
from jobgen.convert.variable_names import names_read
from jobgen.script.bare_names import bare_names
from jobgen.script.changed_variables import changed_arrays, changed_variables
from jobgen.script.commands import commands
from jobgen.script.constants import ARGUMENTS
from jobgen.script.script import Script
from jobgen.script.syntax import LATER, Node, assignments, expansions

_OF_WORDS = ("braceexpand", "keyword", "noclobber", "noglob", "physical")
_LETTERS = "BCPfk"  # of these options
_IFS = re.compile(r"(export )?IFS=\S*$|IFS=(\$?'[^']*'|\"[^\"]*\")$")
_UNSETS_IFS = re.compile(r"unset (-v )?IFS\b")
_OLD_IFS = re.compile(r"(?:export )?IFS=\"?\$\{?(\w+)\}?\"?$")
_IN_TEXT = re.compile(r"\$\{?([A-Za-z_]\w*)")  # variables in the text of an alias
_COUNTS = re.compile(r"\(\(|\blet\b|\+=[^(]")  # another value the second time
_ACTIVATES = re.compile(r"conda (de)?activate\b")
_DEFINES = re.compile(r"conda\.sh|shell\.(bash|posix) hook|bashrc|bash_profile")
_HOOK = 'eval "$(conda shell.bash hook)"'
_OF_BASH = re.compile(r"BASH\w*|PIPESTATUS|FUNCNAME|DIRSTACK|GROUPS")  # the arrays of bash itself
# The directories of pushd that popd has not left, in the order in which they were pushed.
STACK = "script_directories"
PRINT_STACK = f'export {STACK}="$(dirs -l -p | sed 1d | tac)"'
_PUSH_STACK = f'while read -r; do pushd -n "$REPLY"; done <<< "${STACK}" > /dev/null'
OF_ARRAY = "array_"  # before the name of an array: the variable with its declaration
# The arguments that the script sets, for the commands of other shells that read them.
ARGUMENTS_SET = f"{OF_ARRAY}script_arguments"
PRINT_ARGUMENTS = ('script_arguments=("$@")', f'export {ARGUMENTS_SET}="$(declare -p script_arguments)"')
SET_ARGUMENTS = (f'eval "${ARGUMENTS_SET}"', 'set -- "${script_arguments[@]}"')


class Definitions(NamedTuple):
    """The definitions to repeat, in the order of the script, and the names of the variables to export."""

    definitions: tuple[str, ...]
    names: tuple[str, ...]


def definitions_of(script: Script, nodes: Iterable[Node]) -> Definitions:
    """Return what commands need of the rest of the script."""
    functions = {one.name: one for one in script.tree.all("function_definition")}
    aliases = {
        word.text.partition("=")[0]: word.text for one in script.named("alias") for word in one.arguments
    }
    found, names = dict[int, Node](), dict[str, None]()
    stack = list(nodes)
    pushed = _reads_stack(script, stack)
    arrays = _arrays(script, max((one.start for one in stack), default=0))
    repeated = {id(node) for given in arrays.values() for node in given}
    plain = {name for name, _, node in script.assignments if id(node) not in repeated}
    set_here = {name for one in stack for name, value, _ in assignments(one) if value.type == "array"}
    values = by_value(script) - by_value(script, stack) - set_here
    arrays = {name: arrays[name] for name in arrays if name not in values and not _sets_first(name, stack)}
    own = {id(part) for one in stack for part in one.all("function_definition", "variable_assignment")}
    while stack:
        one = stack.pop()
        read = [name.text for name in (*one.all("variable_name"), *bare_names(one))]
        read += [name.text for name, _ in names_read(one)]
        read += [name for call in commands(one) for name in _IN_TEXT.findall(aliases.get(call.name, ""))]
        names.update(dict.fromkeys(read))
        more = [node for name in read for node in arrays.get(name, ())]
        more += [functions[call.name] for call in commands(one) if call.name in functions]
        for node in more:
            if id(node) not in found and id(node) not in own:
                found[id(node)] = whole = _whole(script, node, own)
                stack.append(whole)
    ordered = sorted(found.values(), key=lambda node: node.start)
    handed = [f"{OF_ARRAY}{name}" for name in names if name in values]
    start = [_PUSH_STACK] * pushed + [f'eval "${name}"' for name in handed]
    texts = tuple(dict.fromkeys([*start, *(one.text for one in ordered)]))
    names.update(dict.fromkeys([*handed, *[STACK] * pushed]))
    names.update((name.text, None) for node in ordered for name in node.all("variable_name"))
    names.update((name.text, None) for node in ordered for name in bare_names(node))
    return Definitions(texts, tuple(name for name in names if name in plain or name not in arrays))


def is_argument(expansion: tuple[str, Node]) -> bool:
    """Return whether an expansion reads arguments of the script."""
    name, node = expansion
    if re.fullmatch(r"[1-9]\d*|[@*#]", name) is None:
        return False
    return (around := node.around("function_definition")) is None or _gets_arguments(around)


def _gets_arguments(function: Node) -> bool:
    """Return whether the only call of a function hands on all arguments of the script: ``main "$@"``."""
    calls = [one.node for one in commands(list(function.above())[-1]) if one.name == function.name]
    texts = [one.text if one.child_of("program") else "" for one in calls]
    return texts == [f'{function.name} "$@"']


def reads_set_arguments(script: Script, nodes: Iterable[Node]) -> bool:
    """Return whether commands read the arguments of the script, which it has changed: ``shift``."""
    return ARGUMENTS in script.changed and any(is_argument(one) for node in nodes for one in expansions(node))


def _reads_stack(script: Script, nodes: Sequence[Node]) -> bool:
    """Return whether commands leave directories that the script has pushed before them."""
    reads = any(one.name in ("popd", "dirs") for node in nodes for one in commands(node))
    first = min((one.start for one in nodes), default=0)
    return reads and any(one.node.start < first for one in script.named("pushd"))


def _arrays(script: Script, end: int) -> dict[str, list[Node]]:
    """Return the assignments to each array, and those before ``end`` that make it a plain variable."""
    found: dict[str, list[Node]] = {}
    for name, value, node in script.assignments:
        if value.type == "array" or (name in found and node.start < end):
            found.setdefault(name, []).append(node)
    return found


def by_value(script: Script, nodes: Sequence[Node] | None = None) -> set[str]:
    """Return the arrays whose assignments give no values: they are filled otherwise, or are among programs.

    ``nodes``: only those of these commands.
    """
    parts = {one.name for one in script.tree.all("subscript")} - {""}
    arrays = parts | {name for name, value, _ in script.assignments if value.type == "array"}
    if nodes is None:
        found = _among_programs(script) | changed_arrays(script.tree) | (script.changed & arrays)
        if any(map(is_own_file, script.commands)):
            found |= {name for name in parts - {*script.values} if not _OF_BASH.fullmatch(name)}
        return found | _by_eval(script)
    return {name for one in nodes for name in changed_arrays(one) | (changed_variables(one) & arrays)}


def _by_eval(script: Script) -> set[str]:
    """Return the variables of the script that only an ``eval`` may set, as an array ``$NAME``."""
    if not any(re.search(r"\$\{?\w+\}?\+?=\s*\(", one.node.text) for one in script.named("eval")):
        return set()
    known = {*script.values, *script.loop_variables}
    return {name for name, _ in script.expansions if name.isidentifier() and not name.isupper()} - known


def _among_programs(script: Script) -> set[str]:
    """Return the arrays that a loop or a condition sets which also runs programs, counts, or changes the
    directory, those that a function sets for the rest of the script, those that a subshell or a function
    sets for itself, and those with the output of commands, or with values that an IFS splits."""
    found, splits = set(), splits_otherwise(script)
    for name, value, node in script.assignments:
        if value.type != "array":
            continue
        above = [one for one in node.above() if one.type in LATER]
        if above and above[-1].type == "function_definition":
            body = above[-1].get("body")
            if node.under("declaration_command"):  # which the rest of the script does not see
                is_among = any(one not in above[-1] for one in script.values[name])
            else:
                is_among = body is not None and not _runs_programs(script, body)
        elif _in_other_shell(script, node) or any(value.all("command_substitution")):
            is_among = True
        elif splits and any(expansions(value)):
            is_among = True  # another IFS may split the values
        elif any(map(is_argument, expansions(value))):
            is_among = True  # the arguments of another shell are others
        elif above:
            is_among = _COUNTS.search(above[-1].text) is not None or _runs_once(script, above[-1])
        else:
            several = _condition(node)
            is_among = several is not None and several.end == node.end and _runs_once(script, several)
        if is_among:
            found.add(name)
    return found


def splits_otherwise(script: Script) -> bool:
    """Return whether the shell of a script has an IFS of its own, that of one command apart."""
    return any(name == "IFS" and not node.child_of("command") for name, _, node in script.assignments)


def _in_other_shell(script: Script, node: Node) -> bool:
    """Return whether a subshell or a part of a pipeline sets a variable, and does not start the program."""
    shells = [one for one in node.above() if one.type in ("subshell", "pipeline", "command_substitution")]
    return bool(shells) and not any(one.command.node in shells[-1] for one in script.launches)


def _runs_programs(script: Script, node: Node) -> bool:
    return "program" in effects_of(script, node).kinds


def _runs_once(script: Script, node: Node) -> bool:
    """Return whether commands do more than to set variables: they run programs, or change the directory."""
    return any(one.name in ("cd", "pushd", "popd") for one in commands(node)) or _runs_programs(script, node)


def _condition(assignment: Node) -> Node | None:
    """Return the list, such as ``test && A+=(x)``, whose commands before the assignment are its condition."""
    above = [one for one in assignment.above() if one.type == "list" and one.start < assignment.start]
    return above[-1] if above else None


def _sets_first(name: str, nodes: Iterable[Node]) -> bool:
    """Return whether commands set an array, and not only under a condition, before they read it."""
    used = [part for one in nodes for part in one.all("variable_name") if part.text == name]
    first = min(used, key=lambda node: node.start, default=None)
    target = first.parent if first is not None else None
    if target is None or target.type != "variable_assignment" or not target.text.startswith(f"{name}=("):
        return False
    sure = not target.under("if_statement", "case_statement", "list", "function_definition")
    return sure and name not in target.text[len(name) :]


def _whole(script: Script, assignment: Node, own: set[int]) -> Node:
    """Return the condition or loop in which an array is set, unless the commands themselves are in it."""
    several = _condition(assignment)
    above = [one for one in assignment.above() if one.type.endswith(("_statement", "clause"))]
    inside = any(one.type == "function_definition" for one in assignment.above())
    if not inside and not above and several is not None and not _runs_once(script, several):
        return several
    if inside or not above or any(id(part) in own for part in above[-1].all("variable_assignment")):
        return assignment
    return above[-1]


def exported_functions(script: Script, text: str) -> list[str]:
    """Return the code that defines and exports the functions that a text names."""
    found = script.functions_named(text)
    names = " ".join(sorted({one.name for one in found}))
    return [*(one.text for one in found), f"export -f {names}"] if found else []


def options_of_first_line(script: Script, letters: str = _LETTERS) -> list[str]:
    """Return the statements for the options behind ``#!`` that are about words and files."""
    own = [] if re.match(r"#!.*\bzsh\b", script.line(1)) else script.options_of_bash  # zsh -f reads no files
    return list(filter(None, (_option_of_words(f"set {one}", letters) for one in own)))


def _option_of_words(statement: str, known: str = _LETTERS) -> str:
    """Return the part of a ``set`` whose options are about words and files: ``set -f`` of ``set -ef``."""
    given = re.match(r"set ([-+])(?:o (\w+)$|(\w+)(?: |$))", statement)
    letters = "".join(re.findall(f"[{known}]", given[3] or "")) if given else ""
    if given is None or not (letters or given[2] in _OF_WORDS):
        return ""
    return f"set {given[1]}{letters or f'o {given[2]}'}"


def state(script: Script, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the statements before these that set IFS, options, aliases and the function conda."""
    first = min((one.start for one in nodes), default=0)
    lines = [one for one in script.tree.children if one.start < first]
    several = "variable_assignments"  # of one line
    top = [part for one in lines for part in (one.children if one.type == several else [one])]
    splits = [one for one in top if _IFS.match(one.text) or _UNSETS_IFS.match(one.text)][-1:]
    splits = [one for one in splits if not _resets_ifs(script, one)]
    whole = [one.text.startswith(("shopt ", "alias ")) or one in splits for one in top]
    found = [one.text if own else _option_of_words(one.text) for one, own in zip(top, whole, strict=True)]
    found = [*options_of_first_line(script), *filter(None, found)]
    texts = [one.node.text for node in nodes for one in commands(node)]
    if any(map(_ACTIVATES.match, texts)) and not any(map(_DEFINES.search, texts)):
        found += ["set +u", _HOOK, "set -u"] if script.nounset else [_HOOK]
    return tuple(found)


def _resets_ifs(script: Script, statement: Node) -> bool:
    """Return whether a statement unsets IFS, or sets it to its value before: ``IFS=$OLD_IFS``."""
    if _UNSETS_IFS.match(statement.text):
        return True
    old = _OLD_IFS.match(statement.text)
    values = script.values.get(old[1], ()) if old else ()
    return bool(values) and all(re.fullmatch(r"\"?\$(IFS|\{IFS\})\"?", one.text) for one in values)
