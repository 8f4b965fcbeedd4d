"""Variables that a here-document sets for ``bash -c``: the same texts in quotes, as those of others."""

from __future__ import annotations

import re
from dataclasses import replace

from jobgen.convert.result import Edit, apply
from jobgen.script.script import Script

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
    return replace(script, source=apply(script.source, edits)) if edits else script


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
