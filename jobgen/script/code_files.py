"""Code that a shell reads from its input, and the files of code that a script writes for later."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.script.commands import Command
from jobgen.script.constants import Constants
from jobgen.script.folder_words import path_here
from jobgen.script.syntax import Node
from jobgen.script.word_lists import document_text, is_literal_document, output, shell_text

_WRITERS = ("cat", "tee", "echo", "printf")


def read(command: Command) -> tuple[str, int] | None:
    """Return the text that a command reads, and its line: a here-document, or what a pipe prints."""
    above = command.node.parent
    for part in command.node.children:
        if part.type == "herestring_redirect":
            return shell_text(part.children[-1]), part.line
    if above is not None and above.type == "pipeline":
        return _piped(command.node, above)
    return _document(above)


def _document(above: Node | None) -> tuple[str, int] | None:
    """Return the here-document of a statement."""
    if above is None or above.type != "redirected_statement":
        return None
    for part in above.children[1:]:
        if part.type == "herestring_redirect":
            return shell_text(part.children[-1]), part.line
    body = next((one for part in above.children[1:] for one in part.all("heredoc_body")), None)
    return (document_text(body), body.line) if body is not None else None


def _piped(node: Node, pipeline: Node) -> tuple[str, int] | None:
    """Return what the command before a node in a pipeline prints."""
    before = node.previous()
    before = before.previous() if before is not None else None
    if before is None and pipeline.parent is not None and pipeline.parent.type == "heredoc_redirect":
        return _document(pipeline.parent.parent)  # cat <<END | bash
    if before is not None and before.type == "redirected_statement":
        return _document(before)
    if before is None or before.type != "command" or (name := before.get("name")) is None:
        return None
    words = tuple(child for child in before.children if child.field == "argument")
    text = output(name.text, words, None)
    return (text, before.line) if text is not None else None


def written(
    found: Sequence[Command], constants: Constants, literal: bool = False
) -> dict[str, tuple[str, int]]:
    """Return the text and the line of each file that a script writes by here-documents, echo or printf.

    ``literal``: only of those by a here-document in which the script expands no variables.
    """
    files: dict[str, tuple[str, int]] = {}
    for command in found:
        if command.name not in _WRITERS or (file := target(command)) is None:
            continue
        path, adds = file
        document = _document(command.node.parent)
        text = document[0] if document is not None else output(command.name, command.arguments, None)
        body = next(above.all("heredoc_body"), None) if (above := command.node.parent) is not None else None
        if text is None or (literal and (body is None or not is_literal_document(body))):
            continue
        line = document[1] if document is not None else command.line
        key, old = name(path, constants), ""
        if adds and key in files:
            old, line = files[key]
        files[key] = (f"{old}{text}\n", line)
    return files


def target(command: Command) -> tuple[Node, bool] | None:
    """Return the file that a command writes, and whether it adds to it."""
    if command.name == "tee":
        files = [word for word in command.arguments if not word.text.startswith("-")]
        return (files[0], "-a" in command.literals) if files else None
    for above in command.node.above():
        if above.type not in ("redirected_statement", "compound_statement"):
            return None
        for part in above.children[1:] if above.type == "redirected_statement" else ():
            for one in part.all("file_redirect"):
                file, sign = one.get("destination"), one.children[0].text
                if file is not None and sign in (">", ">>", ">|"):
                    return file, sign == ">>" or above.children[0].type == "compound_statement"
    return None


def name(word: Node, constants: Constants) -> str:
    """Return the path of a file from the folder of the script, as far as the text determines it."""
    return path_here(constants.text(word))
