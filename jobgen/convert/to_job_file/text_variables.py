"""Texts for ``bash -c``, of a here-document in a variable or of several strings: the same ones in quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from jobgen.convert.result import Edit, apply
from jobgen.script.constants import variable_name, whole_expansion
from jobgen.script.script import Script
from jobgen.script.syntax import Node

_DOCUMENT = r"<<[ \t]*(?P<quote>['\"\\]?)(?P<end>\w+)['\"]?"
_TEXT = r"\n(?P<text>(?:.*\n)*?)(?P=end)[ \t]*"
_READ = re.compile(
    rf"(?m)^(?P<start>[ \t]*)(?:IFS=\S*[ \t]+)?read(?:[ \t]+(?:-r?d[ \t]*(?:''|\"\")|-r))+"
    rf"[ \t]+(?P<name>\w+)[ \t]*{_DOCUMENT}[ \t]*(?P<allowed>\|\|[ \t]*(?:true|:))?[ \t]*{_TEXT}$"
)
_PRINTED = re.compile(
    rf"(?m)^(?P<start>[ \t]*)(?P<name>\w+)=\"?\$\((?P<allowed>)[ \t]*cat[ \t]*"
    rf"{_DOCUMENT}[ \t]*{_TEXT}\n[ \t]*\)\"?[ \t]*$"
)
_PLAIN = re.compile(r"[\w./:@%+=,-]+")


def in_quotes(script: Script) -> Script:
    """Return the script with such texts in quotes; every line of them has the number that it has."""
    source = script.source.decode("utf-8", "replace")
    edits = []
    for form in (_READ, _PRINTED):
        for found in form.finditer(source):
            at = len(source[: found.start()].encode())
            ends = form is _READ and not found["allowed"] and script.has_option("e", "errexit", at)
            value = _quoted(found["text"].rstrip("\n"), bool(found["quote"]))
            if ends or value is None or not _is_code(found["name"], source):
                continue
            rest = "\n" * (found[0].count("\n") - value.count("\n"))
            new = f"{found['start']}{found['name']}={value}{rest}"
            edits.append(Edit(at, at + len(found[0].encode()), new))
    edits += _strings(script)
    return replace(script, source=apply(script.source, edits)) if edits else script


def _strings(script: Script) -> Iterator[Edit]:
    """Yield each text for a shell that is several strings with plain words between them, as one string."""
    for command in script.commands:
        for option, word in pairwise(command.words):
            if word.type == "concatenation" and re.fullmatch(r"-\w*c", option.text):
                parts = [_in_string(script, one) for one in word.children]
                if None not in parts and " " in "".join(map(str, parts)):
                    yield Edit(word.start, word.end, f'"{"".join(map(str, parts))}"')


def _in_string(script: Script, part: Node) -> str | None:
    """Return a part of a word as it is in a string in double quotes; None if it may be several words."""
    if part.type == "string":
        return part.text[1:-1]
    plain = _PLAIN.fullmatch(script.constants.value(part) or "") is not None
    if whole_expansion(part) is not None:
        return f"${{{variable_name(part)}}}" if plain else None
    return part.text if plain and _PLAIN.fullmatch(part.text) else None


def _is_code(name: str, source: str) -> bool:
    """Return whether a shell runs the value of a variable, and nothing else reads it."""
    reads = len(re.findall(rf"\$\{{?{name}\b", source))
    return reads > 0 and len(re.findall(rf"-\w*c[ \t]+\"?\$\{{?{name}\b\}}?", source)) == reads


def _quoted(text: str, literally: bool) -> str | None:
    """Return the text of a here-document in quotes; None if it cannot be in them."""
    if literally and "'" not in text:
        return f"'\n{text}'"
    if literally:
        return '"\n{}"'.format(re.sub(r'([\\"$`])', r"\\\1", text))
    if '"' in text and re.search(r"(?<!\\)(\$\(|`|\$\{)", text):
        return None
    return '"\n{}"'.format(text.replace('"', '\\"'))
