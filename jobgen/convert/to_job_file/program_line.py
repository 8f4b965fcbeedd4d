"""The program of a job file: the words behind the launcher, with run-time values as they are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from jobgen.convert.to_job_file import definitions
from jobgen.convert.to_job_file.definitions import (
    definitions_of,
    exported_functions,
    is_argument,
    splits_otherwise,
    state,
)
from jobgen.convert.to_job_file.effects import LOGIN
from jobgen.convert.to_job_file.inherited import is_own_file
from jobgen.convert.to_job_file.statements import STATUS
from jobgen.launch.command_line import is_python
from jobgen.launch.expansion import code_at, names, of_ranks
from jobgen.launch.wrappers import CONTAINERS
from jobgen.script.changed_variables import counted
from jobgen.script.commands import commands
from jobgen.script.constants import ARGUMENTS
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import Node, blanks, expansions, exported, literal, parse
from jobgen.script.word_lists import is_literal, unescaped

_TEXT = ("word", "number", "string_content", "raw_string", "extglob_pattern", "regex")
_HOME = re.compile(r"^([A-Za-z_]\w*=)?~(?=/|$)")
_SIGN = re.compile(r"['();&|<>]|\\\"")  # in a text that a shell evaluates
_BLANK = re.compile(r"[ \t\n]+")  # of bash: all others are letters
_EXPANSION = re.compile(r"\$\([^)]*\)+|`[^`]*`|\$\{[^}]*\}")
_OF_SHELLS = re.compile(r"[~*?\[`(]|\{(?!\w+\})")  # what a shell replaces in a word, or runs
_OF_JOB = ("job_id", "array_index", "array_job", "submit_dir")
_DEEPEST = 4  # variables in values of variables
# Variables that differ between the nodes, in the text of a shell that each node runs.
_OF_NODES = re.compile(r"SLURMD_NODENAME|\w+_VISIBLE_DEVICES")
# Variables that differ between two shells, or between two nodes.
_OF_SHELL = re.compile(
    rf"\$|{STATUS.pattern}|HOSTNAME|S?RANDOM|SECONDS|EPOCH(SECONDS|REALTIME)|BASHPID|PPID|SLURM_TASK_PID"
    rf"|PBS_(TASKNUM|V?NODENUM)|{_OF_NODES.pattern}"
)
# Sourced files that set no variable for the words of a program.
_OF_ENVIRONMENTS = re.compile(r"activate|profile|bashrc|conda|module|/etc/")
# Names of variables with options, which may be several words or none.
_OF_OPTIONS = re.compile(
    r"(?i)(^|_)(flag|arg|argument|opt|option|param|parameter|string)s?$|(^|_)(extra|command|cmd)$"
)
ARGUMENT = re.compile(r"\"?\$([1-9]|\{[1-9]\d*\})\"?")  # of the script, as a value
# Commands that print one word.
_PRINTS = re.compile(
    r"[$(`]+\s*((hostname|basename|dirname|expr|whoami|pwd|nproc|realpath|which)\b|date\s+[\"']?\+\S+\s*[)`]|wc\s+-\w\s*<)"
)
# ${A:+...}, which may be empty, and the default of a variable if it is empty or has blanks
_MAY_BE_NONE = r"\$\{\w+:?(\+|[-=](\}|[\"']{2}\}|[^}$(`]*\s))"


@dataclass(frozen=True)
class OfScript:
    """The variables in words that the script itself expands, once for all ranks, and a rank to another value:
    ``zeros`` are those of a rank, which are 0 in the script, and ``shell`` those of a shell or a node."""

    zeros: frozenset[str] = frozenset()
    shell: frozenset[str] = frozenset()


@dataclass
class ProgramWords:
    """The words of a program; the lines that set variables for them, and the variables of the script in them.

    ``several``: a word of the script may become several words, or none, so that a shell has to split it.
    """

    words: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    several: bool = False
    expanded: bool = False
    own: OfScript = OfScript()


def read(
    script: Script,
    nodes: Sequence[Node],
    found_before: ProgramWords | None = None,
    own: OfScript = OfScript(),
) -> ProgramWords:
    """Return the words of a program; ``found_before`` has the variables of other words of it."""
    before = found_before or ProgramWords(own=own)
    found = ProgramWords(setup=before.setup, own=before.own)
    nodes = _joined(nodes)
    texts = [script.constants.value(node) or "" for node in nodes]
    code = code_at(texts)
    for at, node in enumerate(nodes):
        text = None if has_home(script, node) else script.constants.value(node)
        if at != code and (home := _below_home(script, node)):
            text = home
        elif at == code and _is_elsewhere(texts[:code]):
            found.several |= text is None  # a shell puts the values into the text
            text = node.text if text is None else text
        elif at == code:
            text = _code(script, node, found) if text is None else text
            text = "\n".join([*exported_functions(script, f"{node.text}\n{text}"), text])
            found.used += [name for name, _ in expansions(node) if name.isidentifier()]
        elif text is None or (splits_otherwise(script) and _splits(script, node)):
            text = _run_time(script, node, found)
            is_program = at == 0 or (at == 1 and is_python(nodes[0].text))
            found.several |= is_program and _bare(node) and _is_foreign(script, text)
        elif _globbed(node) or (_bare(node) and re.search(r"[\s*?]|\[.*\]", text)):
            found.several = True
        elif names([text]):  # no value of the job
            text = _hoisted(node, found)
        elif not text and (_bare(node) or (node.parent and node.parent.type == "variable_assignment")):
            continue
        found.words.append(text)
    return found


def _is_elsewhere(texts: Sequence[str]) -> bool:
    """Return whether one of these words is Python, or starts the words behind it in a container or on a node,
    where the variables of the job may be missing."""
    found = [os.path.basename(text) for text in texts]
    return any(map(is_python, found)) or not {*_REMOTE, *CONTAINERS}.isdisjoint(found)


_REMOTE = ("udocker", "pbsdsh", "pbs_tmrsh", "ssh")


def known(script: Script, word: Node) -> str | None:
    """Return the value of a word if an option can have it: no shell expands the ~ of an option."""
    at_home = _begins_with_home(script, word, 0) or has_home(script, word)
    return None if at_home else script.constants.value(word)


def option_text(script: Script, word: Node, depth: int = 0) -> str | None:
    """Return the value of a word for an option that ``--expand`` applies to, with ``$NAME`` for what only the
    job knows; None if a shell must read it, or if it differs between the ranks."""
    if (text := known(script, word)) is not None or _begins_with_home(script, word, 0) or depth > _DEEPEST:
        return None if text is None or names([text]) else text
    found = read(script, [word])
    if found.setup or found.several or len(found.words) != 1 or of_ranks().intersection(names(found.words)):
        return None

    def value(match: re.Match[str]) -> str:
        node = script.constants.node(match[1])
        text = option_text(script, node, depth + 1) if node is not None else None
        moved = text is not None and "PWD" in text and any(script.named("cd", "pushd"))
        return match[0] if text is None or moved else text

    text = re.sub(r"\$\{?(\w+)\}?", value, found.words[0])
    return None if _ARGUMENTS.search(text) else text  # an option has no arguments of the script


_ARGUMENTS = re.compile(r"\$\{?[\d@*#]")


def _begins_with_home(script: Script, word: Node, depth: int) -> bool:
    """Return whether a shell replaces a ~ at the beginning of a word, or of the variable that begins it."""
    if _HOME.match(word.text):
        return True
    first = re.match(r'"?\$\{?([A-Za-z_]\w*)', word.text)
    value = script.constants.node(first[1]) if first and depth < _DEEPEST else None
    return value is not None and _begins_with_home(script, value, depth + 1)


def has_home(script: Script, word: Node, depth: int = 0) -> bool:
    """Return whether a shell has replaced a ~ in the value of a variable of a word."""
    values = (script.constants.node(name) for name, _ in expansions(word))
    known = (value for value in values if value is not None) if depth < _DEEPEST else ()
    return any(_HOME.match(value.text) or has_home(script, value, depth + 1) for value in known)


def _below_home(script: Script, word: Node) -> str:
    """Return a path below the home directory with its variable; empty for other words."""
    text = script.constants.value(word) if _begins_with_home(script, word, 0) else None
    return "" if text is None or re.search(r"[\s$*?[{:]", text) else _HOME.sub(r"\1$HOME", text)


def _bare(node: Node) -> bool:
    """Return whether a word has a value without quotes."""
    if node.type in ("concatenation", "command_name"):
        return any(_bare(child) for child in node.children)
    return node.type in ("simple_expansion", "expansion")


def inner(outer: Sequence[Node], nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return words in the text of ``bash -c "TEXT"`` as that bash reads them; ``outer`` are around it."""
    text = " ".join(node.text for node in _joined(nodes))
    in_string = any(one.type == "string" and nodes[0].source in one.source for one in outer)
    return evaluated(nodes) if "\\$" in text and in_string else tuple(nodes)


def evaluated(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return words of a string as a shell reads them that evaluates it."""
    text = " ".join(node.text for node in _joined(nodes))
    found = next(commands(parse(unescaped(text).encode(), nodes[0].line)), None)
    return found.words if found else tuple(nodes)


def _code(script: Script, node: Node, found: ProgramWords) -> str:
    """Return the text of ``bash -c "TEXT"``; that bash reads the variables in it, and then runs it.

    It has no arrays, arguments and functions of the script, and a command of the script in it runs once:
    ``setup`` puts the text with their values into a variable.
    """
    values = script.values_in([node])
    if any(map(is_argument, expansions(node))) or any(value.type == "array" for value in values):
        return f'eval "{_hoisted(node, found, "export ")}"'
    return f"eval {_with_output(node, found.setup, found.own)}"


def _joined(nodes: Sequence[Node]) -> list[Node]:
    """Return the words, of which tree-sitter may have read one as several: ``a$B/$C/d``."""
    found: list[Node] = []
    for node in nodes:
        last = found[-1] if found else None
        if last is not None and last.source is node.source and last.end == node.start:
            found[-1] = Node("misread", None, last.start, node.end, last.line, node.source, None)
        else:
            found.append(node)
    return found


def _run_time(script: Script, node: Node, found: ProgramWords) -> str:
    """Return a word with ``$NAME`` for each value; all else is put into a variable of its own."""
    parts = list(_parts(node, found.own.zeros))
    if ARGUMENTS in script.changed and any(map(is_argument, expansions(node))):
        found.several = True  # the words of setup have them, in which no $1 is known
        return node.text
    if any(part is None for part in parts) or _globbed(node):
        found.several |= _splits(script, node) or _globbed(node)
        return _hoisted(node, found)
    values = _values_of_job(script, node.start if node.source is script.tree.source else None)
    known = (values.get(part[2:-1], part) if part.startswith("${") else part for part in parts if part)
    text = re.sub(r"\$\{(\w+)\}(?!\w)", r"$\1", "".join(known))
    found.several |= _splits(script, node) or (_bare(node) and _may_be_several(script, text))
    return text


@lru_cache(maxsize=4)
def _values_of_job(script: Script, end: int | None) -> dict[str, str]:
    """Return the variables that are set before a byte to what is made of text and of values that are the same
    in the whole job: its number, index and directory of submission, with ``${NAME}`` for these."""
    files = (one.node.text for one in script.named("source", ".", "eval"))
    if not all(map(_OF_ENVIRONMENTS.search, files)):
        return {}
    job = [name for name, meaning in script.dialect.job_variables.items() if meaning in _OF_JOB]
    found = {name: f"${{{name}}}" for name in job if name not in script.values}
    for name, value, node in script.assignments:
        parts = list(_parts(value, frozenset()))
        names_read = {one for one, _ in expansions(value)}
        known = None not in parts and names_read <= found.keys() and not _OF_SHELLS.search(value.text)
        known &= end is None or node.end <= end
        if known and script.constants.node(name) is value:
            own = (found.get(part[2:-1], part) if part.startswith("${") else part for part in parts if part)
            found |= {} if exported(node) else {name: "".join(own)}
    return found


def _hoisted(node: Node, found: ProgramWords, export: str = "") -> str:
    name = f"argument_{len(found.setup) + 1}"
    found.setup.append(f"{export}{name}={node.text}")
    return f"${name}"


def _parts(node: Node, zeros: frozenset[str]) -> Iterator[str | None]:
    """Yield the text of a word, and ``$NAME`` for plain values; None for what only a shell can do."""
    if _is_zero(node, zeros):
        yield "0"
    elif node.type in ("simple_expansion", "expansion"):
        plain = re.fullmatch(r"\$([A-Za-z_]\w*|[1-9])|\$\{([A-Za-z_]\w*)\}", node.text, re.ASCII)
        yield f"${{{plain[1] or plain[2]}}}" if plain else None
    elif re.fullmatch(r"\$\(pwd\)|`pwd`", node.text):
        yield "${PWD}"
    elif node.type == "misread":
        plain = re.fullmatch(r"([\w./:,@%+=-]|\$[A-Za-z_]|\$\{[A-Za-z_]\w*\})+", node.text)
        yield node.text if plain else None
    elif node.type in ("string", "concatenation", "command_name"):
        at = node.start
        for child in node.children:
            yield blanks(node.source, at, child.start)
            at = child.end
            if child.type != '"':
                yield from _parts(child, zeros)
    else:
        text = literal(node) if node.type in _TEXT else None
        yield None if text is None or names([text]) else text


def _is_zero(node: Node, zeros: frozenset[str]) -> bool:
    """Return whether a node is ``$NAME`` or ``${NAME}`` of a variable that is 0."""
    return node.type in ("simple_expansion", "expansion") and re.sub(r"[${}]", "", node.text) in zeros


def _globbed(node: Node) -> bool:
    """Return whether a shell would replace a word by names of files, or by several words."""
    return re.search(r"(?<!\\)(\*|\?|\[.*\])|^~|\{.*(,|\.\.).*\}", _bare_text(node)) is not None


def _bare_text(node: Node) -> str:
    """Return a word with a letter in the place of each variable, and of each text in quotes."""
    if node.type in ("concatenation", "command_name"):
        return "".join(map(_bare_text, node.children))
    is_bare = node.type in ("word", "number", "brace_expression", "misread")
    return re.sub(r"\$\{[^}]*\}", "", node.text) if is_bare else "x"


def _splits(script: Script, node: Node) -> bool:
    """Return whether a value without quotes may become several words, or none."""
    if node.type in ("concatenation", "command_name"):
        return any(_splits(script, child) for child in node.children)
    if node.type == "string":
        return bool(re.search(r"\$@|\$\{@|\[@\]", node.text))
    if node.type == "command_substitution":
        return not _PRINTS.match(node.text)
    if node.type == "misread":
        return any(_several(value) for name in names([node.text]) for value in script.values.get(name, ()))
    if node.type not in ("simple_expansion", "expansion"):
        return False
    name = re.sub(r"\W.*", "", node.text.lstrip("${#!"))
    if splits_otherwise(script):
        return True
    if not name or re.search(r"[@*]|^\$\{\w+:?\+", node.text) or _OF_NODES.fullmatch(name):
        return True
    return _has_several(script, name)


def _is_foreign(script: Script, text: str) -> bool:
    """Return whether a word is a variable that neither the script sets nor its scheduler."""
    name = text.removeprefix("$")
    if not re.fullmatch(r"[A-Za-z_]\w*", name) or name in script.values or LOGIN.fullmatch(name):
        return False
    return re.search(rf"\$\{{{name}:?=[^\s}}]+\}}", script.tree.text) is None  # its default value


def _may_be_several(script: Script, text: str) -> bool:
    """Return whether a word is a variable that a sourced file may set to several words, or the submission."""
    name = text.removeprefix("$")
    if (values := script.values.get(name, ())) and all(ARGUMENT.fullmatch(value.text) for value in values):
        return _OF_OPTIONS.search(name) is not None
    if not _is_foreign(script, text):
        return False
    files = [one.node.text for one in script.named("source", ".")]
    return _OF_OPTIONS.search(name) is not None or not all(map(_OF_ENVIRONMENTS.search, files))


def _has_several(script: Script, name: str, depth: int = 0) -> bool:
    """Return whether a variable, or the array of which it is an element, may have blanks, or be empty."""
    values = script.values.get(name, ())
    arrays = [match[1] for one in values if (match := re.fullmatch(r"\"?\$\{(\w+)\[.*\]\}\"?", one.text))]
    of_arrays = [one for other in arrays for one in script.values.get(other, ()) if one.type == "array"]
    elements = [child for one in of_arrays for child in one.children[1:-1] if child.type != "comment"]
    others = {other for one in values for other, _ in expansions(one)} - {name, *arrays}
    of_others = depth < _DEEPEST and any(_has_several(script, one, depth + 1) for one in others)
    changes = name in script.changed - counted(script.tree)
    lines = {word for one in script.named("mapfile", "readarray") for word in one.literals}
    changes |= not lines.isdisjoint(arrays)
    return changes or of_others or any(map(_several, [*values, *elements]))


def _several(value: Node) -> bool:
    """Return whether the value of a variable may have blanks in it, or be empty."""
    if value.type == "array" or any(not _PRINTS.match(one.text) for one in value.all("command_substitution")):
        return True
    if value.type == "variable_assignment" or re.search(rf"\$\{{?[@*]|{_MAY_BE_NONE}", value.text):
        return True
    return not value.text.strip("\"'") or bool(re.search(r"\s", _EXPANSION.sub("", value.text)))


def wrapped(script: Script, nodes: Sequence[Node], words: ProgramWords, of_python: bool) -> ProgramWords:
    """Return a program behind its wrappers; ``of_python``: the launcher starts files of Python."""
    lines = len(words.setup)
    front, rest = read(script, nodes, words), words.words
    if of_python and rest and (rest[0].endswith(".py") or rest[0] in ("-m", "--module")):
        rest = ["python3", *_for_python(rest)]
    if front.several:
        del words.setup[lines:]  # of the words that the text replaces
        text = " ".join(_with_output(node, words.setup, words.own) for node in _joined(nodes))
        rest = ["bash", "-c", f'{_command(text)} "$@"', "job", *rest]
    else:
        rest = [*front.words, *rest]
    return replace(words, words=rest, used=[*words.used, *front.used])


def _command(text: str) -> str:
    """Return a command that replaces its shell; ``time`` is a word of the shell."""
    return text if text.startswith("time ") else f"exec {text}"


def command(words: list[str]) -> list[str]:
    """Return a program as jobgen takes it: without python before a script, and without its -u."""
    words = without_time(words)
    rest = words[1:] if words and words[0] in ("python", "python3") else None
    while rest and rest[0] == "-u":
        rest = rest[1:]
    module = rest[1].split(".") if rest and rest[0] == "-m" and rest[1:] else ["-"]
    is_module = all(part.isidentifier() for part in module)
    return rest if rest and (rest[0].endswith(".py") or is_module) else _for_python(words)


def _for_python(words: list[str]) -> list[str]:
    """Return the words of a module, which launchers call ``--module``, too, as Python takes them."""
    return ["-m", *words[1:]] if words[:1] == ["--module"] else words


def with_argument(words: list[str], more: Sequence[str]) -> list[str]:
    """Return a program with the argument that its launcher puts behind the file, or the module."""
    head = 1 if is_python(words[0]) else 0
    files = (at for at, word in enumerate(words) if word.endswith(".py"))
    end = head + 2 if words[head] in ("-m", "--module") else next(files, head) + 1
    return [*words[:end], *more, *words[end:]]


def without_time(words: list[str]) -> list[str]:
    """Return a program without time, nohup and exec before it."""
    while words[0] in ("time", "nohup", "exec") and len(words) > 1 and not words[1].startswith("-"):
        words = words[1:]
    return words[2:] if words[:2] == ["time", "-p"] and len(words) > 2 else words


def old_python(script: Script) -> bool:
    """Return whether the environment of a script is one of Python 2, which has no python3."""
    found = script.named("module", "ml", "source", ".", "conda", "mamba", "virtualenv")
    texts = [word.text for command in found for word in command.arguments]
    paths = [value for name, value, _ in script.assignments if name in ("PATH", "PYTHONPATH")]
    paths += [value for path in paths for name in names([path.text]) for value in script.values.get(name, ())]
    texts += [value.text for value in paths]
    return re.search(r"(?i)(python|conda|(?<![a-z])py)[-_/=]*v?2(?!\d{3})", " ".join(texts)) is not None


def of_statement(script: Script, statement: Node, last: Node) -> ProgramWords:
    """Return a whole statement of a script, and those up to the last one, as a program of one rank."""
    brothers = statement.parent.children if statement.parent is not None else [statement]
    nodes = [one for one in brothers if statement.start <= one.start <= last.start]
    needs = definitions_of(script, nodes)
    at = statement.start
    letters = "e" * script.has_option("e", "errexit", at) + "u" * script.has_option("u", "nounset", at)
    words = [f"-{letters}"] * bool(letters) + ["-o pipefail"] * script.has_option("", "pipefail", at)
    lines = [f"set {' '.join(words)}"] * bool(words) + [*state(script, nodes), *needs.definitions]
    lines.append(statement.source[statement.start : last.end].decode("utf-8", "replace").strip())
    return _code_of(script, lines, needs.names, nodes)


def _code_of(script: Script, lines: list[str], used: Sequence[str], nodes: Sequence[Node]) -> ProgramWords:
    """Return code as a program, with the arguments of the script that it reads."""
    names = [name for name in used if re.fullmatch(r"[A-Za-z_]\w*", name)]
    names += [name for name in _evaluated(script, nodes) if name not in names]
    if not any(is_argument(one) for node in nodes for one in expansions(node)):
        return ProgramWords(["bash", "-c", "\n".join(lines)], used=names)
    words = ["bash", "-c", "\n".join([*definitions.SET_ARGUMENTS, *lines])]
    return ProgramWords(words, list(definitions.PRINT_ARGUMENTS), [*names, definitions.ARGUMENTS_SET])


def _evaluated(script: Script, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the variables that the text of an ``eval`` may read, if a command or a quoted ``$`` makes it."""
    evaluated = [one.node for node in nodes for one in commands(node) if one.name == "eval"]
    read = {name for node in evaluated for name, _ in expansions(node)}
    texts = [value.text for name in read for value in script.values.get(name, ())]
    if any(re.search(r"\$\(|`|\\\$|'[^']*\$", text) for text in texts):
        for name, values in script.values.items():
            if not any(one.type == "array" or one.start > nodes[-1].end for one in values):
                yield name


def by_python(launch: Launch | None, first: str) -> bool:
    """Return whether a launcher starts the Python for a program, whose first word this is."""
    if launch is None or not launch.row.once_a_node or launch.has("--no-python", "--no_python"):
        return False
    return not is_python(first) and (first[:1] != "-" or first in ("-m", "--module"))


def as_text(
    script: Script,
    nodes: Sequence[Node],
    more: Sequence[str],
    launch: Launch | None,
    twice: bool,
    own: OfScript,
) -> ProgramWords:
    """Return a program as the text of a shell, which splits its words as that of the script did.

    ``twice``: a second shell of the script reads the words with the values of their variables, and removes
    the quotes in these.
    """
    joined, setup = _joined(nodes), list[str]()
    place = sorted(nodes, key=lambda one: one.start)[-1:]  # the values of variables are above the command
    own_files = any(map(is_own_file, script.commands))  # which may set a variable again
    fixed = () if own_files or splits_otherwise(script) else joined
    known = {node: value for node in fixed if (value := _plain_value(script, node))}
    of_all = launch is not None
    ours = [one for one in joined if of_all or any(map(STATUS.fullmatch, read_by(one)))]
    texts = [known.get(one) or (_with_output(one, setup, own) if one in ours else one.text) for one in joined]
    nodes = [node for node in nodes if node not in known]
    needs = definitions_of(script, nodes)
    words = [
        text if re.search("[\"'`(]", text) else _BLANK.sub(" ", text.replace("\\\n", " ")).strip(" ")
        for text in texts
    ]
    if by_python(launch, words[0]) or words[0] in ("-m", "--module"):
        words = ["python3", *_for_python(words)]
    if more and is_python(words[0]) < len(words):
        words = with_argument(words, more)
    text = _command(" ".join(words))
    if twice and has_signs(script, nodes):
        text = 'eval "{}"'.format(re.sub(r'(["\\])', r"\\\1", text))
    lines = [*state(script, place), *exported_functions(script, text), *needs.definitions, text]
    found = _code_of(script, lines, needs.names, nodes)
    # The second shell reads the variables that the values name in single quotes, too: A='-x $B'.
    literals = [one.text for one in script.values_in(nodes) if is_literal(one)] if twice else []
    evaluated_later = re.findall(r"\$\{?([A-Za-z_]\w*)", " ".join(literals))
    return replace(found, setup=[*setup, *found.setup], used=[*found.used, *evaluated_later], own=own)


def _plain_value(script: Script, node: Node) -> str:
    """Return the known value of a word with variables, if no shell changes it; else an empty text."""
    value = script.constants.value(node) if "$" in node.text else None
    return value if value and re.fullmatch(r"[\w./:,@%+=-]+", value, re.ASCII) else ""


def _with_output(node: Node, setup: list[str], own: OfScript) -> str:
    """Return the text of a word of all ranks with a variable for each part that the script itself expands: a
    command, which runs once, and a value of its own shell or node; the number of a rank is 0."""
    text, at = "", node.start
    for one in node.all("command_substitution", "simple_expansion", "expansion", "arithmetic_expansion"):
        if one.start < at:
            continue  # a part of another one
        of_shell = {*own.zeros, *own.shell, *filter(STATUS.fullmatch, read_by(one))}
        if one.type != "command_substitution" and not read_by(one) & of_shell:
            continue
        text += node.source[at : one.start].decode("utf-8", "replace")
        if _is_zero(one, own.zeros):
            text += "0"
        else:
            name = f"argument_{len(setup) + 1}"
            setup.append(f"export {name}={one.text}")
            text += f"${{{name}}}"
        at = one.end
    return text + node.source[at : node.end].decode("utf-8", "replace")


def read_by(node: Node) -> set[str]:
    """Return the variables that a node reads."""
    return {one.text for one in node.all("variable_name", "special_variable_name")}


def of_script(script: Script, line: Node, nodes: Sequence[Node], of_rank: bool) -> OfScript:
    """Return the variables in the words of a launch line that the script itself expands.

    ``of_rank``: a shell of the rank reads the words, in a string of the line.
    """
    dialect, texts = script.dialect, [line] if of_rank else [line, *nodes]
    escaped = set(re.findall(r"\\\$\{?(\w+)", line.text)) if of_rank else set()
    read = {name for one in texts for name in read_by(one)} - escaped
    own = read & of_ranks() & script.values.keys()  # of which each rank has a value of its own, too
    read -= script.values.keys()
    zeros = dialect.zeros & read if script.is_batch else frozenset[str]()
    return OfScript(zeros, frozenset(own).union(filter(_OF_SHELL.fullmatch, read - zeros)))


def has_signs(script: Script, nodes: Sequence[Node], depth: int = 0) -> bool:
    """Return whether the value of a variable in words, or in such a value, has signs that a shell reads."""
    values = script.values_in(nodes)
    texts = (one for one in values if one.type in ("string", "raw_string", "concatenation"))
    if any(is_literal(one) or _SIGN.search(_EXPANSION.sub("", one.text[1:-1])) for one in texts):
        return True
    return bool(values) and depth < _DEEPEST and has_signs(script, values, depth + 1)
