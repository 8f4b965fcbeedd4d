"""Commands that delete, move, pack or copy all files of a directory, also one that the job writes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from jobgen.convert.start_directory import at as directory_at
from jobgen.convert.start_directory import path_of
from jobgen.script.command_kinds import STATE, TOOLS
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, expansions

NUMBER = "1234567"  # the id of the job in the names of files
_VERBS = {
    **dict.fromkeys(("rm", "unlink", "shred"), "deletes"), "mv": "moves",
    **dict.fromkeys(("cp", "rsync", "scp"), "copies"), **dict.fromkeys(("tar", "zip"), "packs"),
    **dict.fromkeys(("gzip", "bzip2", "xz", "pigz"), "compresses"),
}  # fmt: skip
_UNKNOWN = "/\0"  # a directory that has none of the files
_WITH_TARGET = ("mv", "cp", "rsync", "scp")  # the last word is the target
_RECURSIVE = {"rm": "rR", "cp": "rRa", "scp": "r", "rsync": "ra", "zip": "r", "gzip": "r", "pigz": "r"}
_WHOLE_FOLDERS = ("mv", "tar")
_ACTIONS = ("-exec", "-execdir", "-ok", "-okdir")
_PLAIN_TESTS = {"-print", "-print0", "-depth", "-xdev", "-mount", "-noleaf", "-follow", "-true"}
_ORDERS = ("sort", "uniq", "cat", "tac")  # they pass all lines on
# Commands that leave folders out, or that sweeps finds.
_LEAVE = (TOOLS | STATE | {*_VERBS}) - {"cd", "pushd", "git"}


class FileSweep(NamedTuple):
    """A command, what it does with files (``deletes``), and those of the files that it does it with."""

    command: Command
    verb: str
    files: list[str]


class _Place(NamedTuple):
    """Where a command looks for its files: the directory is a path from that of the submission."""

    script: Script
    directory: str

    def path(self, word: str) -> str:
        """Return the path of a word from that of the submission, a folder with a slash at its end."""
        own = {"job_name": self.script.request.name or self.script.name or "NAME", "job_id": NUMBER}
        for name, meaning in self.script.dialect.job_variables.items():
            if meaning in own:
                word = re.sub(rf"\$({name}\b|\{{{name}\}})", own[meaning], word)
        return path_of(self.script, word, self.directory) + "/" * word.endswith("/")

    def matches(self, file: str, pattern: str, whole: bool) -> bool:
        """Return whether a pattern of the shell matches a file, or a folder, which ends with a slash; with
        ``whole`` also a folder around it."""
        return any(self._matches(file, one, whole) for one in _alternatives(pattern))

    def _matches(self, file: str, pattern: str, whole: bool) -> bool:
        parts, own = _parts(file), _parts(pattern)
        if re.match(r"$|~|\$", parts[0]) and own[:1] != parts[:1]:
            return False  # in another directory than that of the submission
        if len(own) > len(parts) or (len(own) < len(parts) and not whole):
            return False
        if pattern.endswith("/") and len(own) == len(parts) and not file.endswith("/"):
            return False
        pairs = list(zip(parts, own, strict=False))
        hidden = any(part[:1] == "." != one[:1] for part, one in pairs)
        return not hidden and all(fnmatchcase(part, one) for part, one in pairs)


def sweeps(script: Script, files: Sequence[str]) -> Iterator[FileSweep]:
    """Yield each command that takes some of the files by a pattern, a folder or a listing, not by its name.

    Files are paths from the directory of the submission. Of a command in another directory, or in one that is
    unknown, only the paths count that do not depend on it.
    """
    for command in script.runs:
        if command.name not in (*_VERBS, "find", "xargs"):
            continue
        verb, matching = _selection(_place(script, command.node), command, files)
        if matching:
            yield FileSweep(command, verb, matching)


def takers(script: Script, files: Sequence[str]) -> Iterator[Node]:
    """Yield each loop and each program that takes some of the files, or of the folders with a slash at their
    end, by a pattern or a listing: ``for f in *``, ``ls | parallel ./a``, ``./a *``."""
    for loop in script.tree.all("for_statement"):
        name, words = loop.get("variable"), [one for one in loop.children if one.field == "value"]
        place = _place(script, loop)
        if name is not None and _takes(place, words, files) and _gives(loop, name.text):
            yield loop
    for pipeline in script.tree.all("pipeline"):
        last, place = pipeline.children[-1], _place(script, pipeline)
        names = [one.literals[-1:] for one in commands(last) if one.name == "read"]
        gives = last.type == "while_statement" and bool(names) and _gives(last, *names[0])
        if (gives or _starts(last)) and _listed(place, _stages(pipeline, last), files):
            yield pipeline
    for command in script.runs:
        known = command.name in _LEAVE or not command.name
        if not known and _takes(_place(script, command.node), command.arguments, files):
            yield command.node


def _place(script: Script, node: Node) -> _Place:
    return _Place(script, directory_at(script, node) or _UNKNOWN)


def _takes(place: _Place, words: Sequence[Node], files: Sequence[str]) -> bool:
    """Return whether a pattern or a listing among words has some of the files."""
    for word in words:
        if _inner(word) is not None and _listed(place, list(commands(word)), files):
            return True
        if word.type not in ("string", "raw_string") and re.search(r"(?<!\\)[*?[]", word.text):
            pattern = place.path(place.script.constants.text(word))
            if any(place.matches(one, pattern, False) for one in files):
                return True
    return False


def _gives(loop: Node, name: str = "") -> bool:
    """Return whether a loop gives the files in its variable to programs, without a condition."""
    if (body := loop.get("body")) is None or any(one.name == "continue" for one in commands(body)):
        return False
    names = {name}
    for one, value, _ in assignments(body):
        names |= {one} if names & {read for read, _ in expansions(value)} else set()
    for command in commands(body):
        above = [one for one in command.node.above() if one in loop and one is not loop]
        some = any(one.type in ("if_statement", "case_statement") for one in above)
        lists = (one.text for one in above if one.type == "list")
        some |= any(re.match(r"!? *(\[|test\b|grep\b)", one) for one in lists)
        read = names & {one for one, _ in expansions(command.node)}
        if read and not some and command.name not in _LEAVE:
            return True
    return False


def _starts(last: Node) -> bool:
    """Return whether a command behind a listing starts a program for the files."""
    command = next(commands(last), None)
    if last.type != "command" or command is None or command.name not in ("parallel", "xargs"):
        return False
    words = [one for one in command.literals if not re.match(r"-|\d+$|\{\}|%", one)]
    return os.path.basename("".join(words[:1])) not in _LEAVE | {""}


def _selection(place: _Place, command: Command, files: Sequence[str]) -> tuple[str, list[str]]:
    """Return what a command does with files, and the files."""
    words = [place.script.constants.text(word).strip("\"'") for word in command.arguments]
    if command.name == "find":
        at = next((i for i, word in enumerate(words) if word in ("-delete", *_ACTIONS)), len(words) - 1)
        inner = "rm" if words[at:][:1] == ["-delete"] else os.path.basename("".join(words[at + 1 : at + 2]))
        verb = _VERBS.get(inner, "") if words[at:][:1] else ""
        return verb, [one for one in files if verb and _finds(place, words, one)]
    if command.name == "xargs":
        at = next((i for i, word in enumerate(words) if os.path.basename(word) in _VERBS), -1)
        pipeline = command.node.child_of("pipeline") if at >= 0 else None
        if pipeline is None:
            return "", []
        return _VERBS[os.path.basename(words[at])], _listed(place, _stages(pipeline, command.node), files)
    patterns, whole, kept = _operands(command.name, words)
    matching = []
    for file in files:
        if any(fnmatchcase(os.path.basename(file), one) for one in kept):
            continue
        nodes = [one for one in command.arguments if _inner(one) is not None]
        plain = [one for one in patterns if not one.startswith(("$(", "`"))]
        globs = [one for one in _of_loops(place, command, plain) if whole or re.search(r"[*?[]", one)]
        named = [place.path(one) for one in globs]
        by_name = any(place.matches(file, one, whole) and one != file for one in named)
        if by_name or any(_listed(place, list(commands(one)), [file]) for one in nodes):
            matching.append(file)
    return _VERBS[command.name], matching


def _operands(name: str, words: list[str]) -> tuple[list[str], bool, list[str]]:
    """Return the patterns of the files that a command takes, whether it takes whole folders, and the
    patterns of those that it leaves."""
    options = [one for one in words if re.match("-.", one)]
    letters = "".join(one for one in options if one[:2] != "--")
    kept = [one.partition("=")[2].strip("\"'") for one in options if one.startswith("--exclude=")]
    rest = [one for one in words if one not in options]
    if name == "tar":
        mode = words[:1] if words and re.match(r"-?[a-zA-Z]+$", words[0]) else []
        packs = re.search("[cru]", "".join(mode) + letters) or {"--create", "--append"} & {*options}
        if not packs or re.search("[CTX]", letters) or re.search("[xt]", "".join(mode)):
            return [], False, []
        rest = rest[0 if mode and mode[0].startswith("-") else 1 :]
        return rest[1:], True, kept
    if name == "zip":
        return rest[1:], "r" in letters, kept
    if name in _WITH_TARGET:
        rest = rest if any(re.match("-t|--target-directory", one) for one in options) else rest[:-1]
    whole = name in _WHOLE_FOLDERS or any(one in letters for one in _RECURSIVE.get(name, ""))
    return rest, whole or bool({"--recursive", "--archive"} & {*options}), kept


def _of_loops(place: _Place, command: Command, words: Sequence[str]) -> Iterator[str]:
    """Yield words, and for the variable of a loop around a command the words of the loop."""
    loops = {}
    for above in command.node.above():
        if above.type in ("if_statement", "case_statement", "list"):
            break  # the command is for some of the files only
        if above.type == "for_statement" and (name := above.get("variable")) is not None:
            loops[name.text] = [one.text.strip("\"'") for one in above.children if one.field == "value"]
    for word in words:
        name_of = re.fullmatch(r"\$\{?(\w+)\}?", word)
        yield from loops.get(name_of[1], [word]) if name_of else [word]


def _parts(path: str) -> list[str]:
    return [part for part in os.path.normpath(path).split("/") if part != "."]


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns of ``a{b,c}``."""
    if (found := re.search(r"(?<!\$)\{([^{}]*,[^{}]*)\}", pattern)) is None:
        return [pattern]
    ends = (pattern[: found.start()] + one + pattern[found.end() :] for one in found[1].split(","))
    return [one for end in ends for one in _alternatives(end)]


def _inner(word: Node) -> Node | None:
    """Return the command substitution that is a whole word."""
    while word.type in ("string", "command_name") and [one.type for one in word.children if one.type != '"']:
        inner = [one for one in word.children if one.type != '"']
        if len(inner) != 1:
            return None
        word = inner[0]
    return word if word.type == "command_substitution" else None


def _stages(pipeline: Node, last: Node) -> list[Command]:
    """Return the commands of a pipeline before the last one."""
    return [one for one in commands(pipeline) if one.node.start < last.start]


def _listed(place: _Place, stages: Sequence[Command], files: Sequence[str]) -> list[str]:
    """Return those of the files that ``ls`` or ``find`` lists, and that the commands behind it pass on."""
    if not stages:
        return []
    first, *filters = stages
    words = [place.script.constants.text(word).strip("\"'") for word in first.arguments]
    matching = []
    for file in files:
        if first.name == "find":
            is_file = not file.endswith("/")
            found = is_file and not {"-delete", *_ACTIONS} & {*words} and _finds(place, words, file)
        elif first.name in ("ls", "echo", "printf"):
            patterns = [one for one in words if not re.match("-.|%", one)] or ["."] * (first.name == "ls")
            named = [place.path(one) for one in patterns]
            inside = first.name == "ls" and not any(re.match("-[a-zA-Z]*d", one) for one in words)
            folders = [os.path.join(one, "*") for one in named] if inside else []
            found = any(place.matches(file, one, False) for one in (*named, *folders))
        else:
            found = False
        if found and all(_passes(place, one, os.path.basename(file.rstrip("/"))) for one in filters):
            matching.append(file)
    return matching


def _passes(place: _Place, command: Command, name: str) -> bool:
    """Return whether a command of a pipeline passes the name of a file on; false if that is not certain."""
    if command.name in _ORDERS:
        return True
    if command.name not in ("grep", "egrep", "fgrep"):
        return False
    words = [place.script.constants.value(word) for word in command.arguments]
    texts = [word for word in words if word is not None]
    letters = "".join(one[1:] for one in texts if re.match("-[a-zA-Z]+$", one))
    patterns = [one for one in texts if not one.startswith("-")]
    known = None not in words and not any(one.startswith("--") for one in texts)
    if not known or set(letters) - set("vEFPGiwxe") or not patterns:
        return False
    patterns = patterns if "e" in letters else patterns[:1]
    extended = command.name == "egrep" or {"E", "P"} & {*letters}
    expressions = [re.escape(one) if "F" in letters else one for one in patterns]
    if not extended and "F" not in letters:
        expressions = [
            re.sub(r"\\?[|+?(){}]", lambda sign: sign[0][-1] if len(sign[0]) > 1 else f"\\{sign[0]}", one)
            for one in expressions
        ]
    whole = {"w": r"(?<!\w)(?:%s)(?!\w)", "x": "^(?:%s)$"}
    form = next((whole[letter] for letter in "xw" if letter in letters), "(?:%s)")
    try:
        flags = re.IGNORECASE if "i" in letters else 0
        found = any(re.search(form.replace("%s", one), name, flags) for one in expressions)
    except re.error:
        return False
    return found != ("v" in letters)


def _finds(place: _Place, words: Sequence[str], file: str) -> bool:
    """Return whether find finds a file for certain."""
    at = next((i for i, word in enumerate(words) if re.match(r"[-(!\\]", word)), len(words))
    for start in [place.path(one) for one in words[:at]] or [place.directory]:
        folder, parts = _parts(start), _parts(file)
        if parts[: len(folder)] == folder and len(parts) > len(folder):
            return _Tests(words[at:], parts[len(folder) :]).value() is True
    return False


class _Tests:
    """The tests of find on a file: true, false, or None if the text does not determine it."""

    def __init__(self, words: Sequence[str], parts: list[str]) -> None:
        self.words, self.parts = [word.lstrip("\\") for word in words], parts

    def value(self) -> bool | None:
        """Return the value of alternatives."""
        found = self._all()
        while self.words[:1] in (["-o"], ["-or"]):
            self.words.pop(0)
            other = self._all()
            found = True if True in (found, other) else None if None in (found, other) else False
        return found

    def _all(self) -> bool | None:
        found: bool | None = True
        while self.words and self.words[0] not in ("-o", "-or", ")"):
            if self.words[0] in ("-a", "-and"):
                self.words.pop(0)
                continue
            one = self._one()
            found = False if False in (found, one) else None if None in (found, one) else True
        return found

    def _one(self) -> bool | None:
        word = self.words.pop(0)
        if word in ("!", "-not"):
            inner = self._one() if self.words else None
            return None if inner is None else not inner
        if word == "(":
            inner = self.value()
            self.words = self.words[1:]
            return inner
        if word in _ACTIONS:
            end = next((i for i, one in enumerate(self.words) if one in (";", "+")), len(self.words))
            self.words = self.words[end + 1 :]
            return True
        if word == "-delete" or word in _PLAIN_TESTS:
            return True
        argument = self.words.pop(0) if self.words else ""
        if word in ("-name", "-iname"):
            fold = str.lower if word == "-iname" else str
            return fnmatchcase(fold(self.parts[-1]), fold(argument))
        if word in ("-path", "-wholename"):
            return fnmatchcase("/".join([".", *self.parts]), argument)
        if word == "-type":
            return "f" in argument
        if word in ("-maxdepth", "-mindepth") and argument.isdigit():
            depth = len(self.parts)
            return depth <= int(argument) if word == "-maxdepth" else depth >= int(argument)
        return None
