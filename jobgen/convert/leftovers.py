"""Names of the scheduler of a script that remain in its commands and texts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from jobgen.convert import log_differences, variable_names
from jobgen.convert.result import Edit, Remark
from jobgen.convert.submission import discarded
from jobgen.convert.to_scheduler import variables
from jobgen.convert.to_scheduler.start_lines import for_bash, reads_node_file
from jobgen.convert.unread_files import classes_of, titles
from jobgen.convert.variable_names import directive_of_text, is_written
from jobgen.script.dialects.base import Dialect
from jobgen.script.script import Script
from jobgen.script.syntax import Node, uses

# What is before a name that a command unsets, also by a list of names.
_UNSET = re.compile(rb"\bunset( -v)?( [\w ]*|[^;&]*\$[({][^;&]*)?$|\benv\s[^;|&]*(-u\s*|--unset[= ])$")
_ASKS = ("if_statement", "while_statement", "list", "negated_command", "command_substitution")
_OF_BIN = r"(/[\w.-]+)*/bin/"  # a folder of programs
_TALK = ("echo", "printf", "which", "type")
# What makes the name of a profile of the name of a scheduler, but not that of a folder.
_OF_SCHEDULER = r"_(?!logs?|out|err|dir|folder|jobs?|scripts?|files?|nodes?|hosts?|machines?)\w+"
# The beginning of a comment in the text of a here-document, but not of a directive or a line of C.
_COMMENT = re.compile(rb"\s*#(?![!A-Z]|(define|elif|if|ifn?def|include)\b)")


def remarks(
    script: Script,
    target: Dialect,
    edits: Iterable[Edit],
    known_remarks: Iterable[Remark],
    job_file: bool = False,
) -> Iterator[Remark]:
    """Yield remarks on names of the old scheduler that remain in the text of a new script, or of a job file.

    The job of a job file has launchers and logs of its own.
    """
    source, errors = script.dialect, script.tree.all("ERROR")
    unread = {line for one in errors for line in range(one.line, one.line + one.text.count("\n") + 1)}
    known_remarks = [one for one in known_remarks if one.lost or one.line not in unread]
    known = {(one.line, word) for one in known_remarks for word in re.findall(r"\w+", one.what)}
    known |= {(one.line, word.strip("\"'")) for one in known_remarks for word in one.what.split()}
    known |= {(0, one.what[1:]) for one in known_remarks if re.fullmatch(r"\$\w+", one.what)}
    own = {*script.values}
    own |= variables.unset(script) if script.is_batch else set()  # else the submission has options
    gets_file = for_bash(script) and not job_file and reads_node_file(script)
    own |= {str(source.variable("node_file"))} if gets_file else set()
    own |= {*source.constants, *source.constants.values()}
    ranges = [(edit.start, edit.end) for edit in edits]
    comments = [(node.start, node.end) for node in (*script.tree.all("comment"), *discarded(script.tree))]
    for name, (why, lost), at, line in _names(script, target, job_file):
        inside = any(start <= at < end for start, end in (*ranges, *comments))
        named = name in own and not re.match(r"is a command|stays", why)  # a variable of the script
        named |= name in script.functions
        named |= name.startswith(source.variable_prefix) and not _is_read(script, name, at)
        here, anywhere = (line, name), (0, name)
        if not inside and not named and not {here, anywhere} & known:
            known |= {here, anywhere} if lost else {here}
            yield Remark(line, name, why, lost)


def _is_read(script: Script, name: str, at: int) -> bool:
    """Return whether a name at an offset is a variable: one of the scheduler, or what a ``$`` is before.

    One that the script unsets there, or that another shell sets, is not read.
    """
    before = script.tree.source[:at].rpartition(b"\n")[2]
    if re.search(rb"\bexport $", before) and script.tree.source.startswith(b"=", at + len(name)):
        return False
    known = name in script.dialect.environment or name in variable_names.meanings(script.dialect)
    known |= b"${!" in script.tree.source and script.tree.source.startswith(b"$", at + len(name))
    known |= re.search(rb"\b(e?grep|compgen)\b[^|;]*$|\^\(?$", before) is not None  # what begins so
    return not _UNSET.search(before) and (known or re.search(rb"\$\{?[#!]?$", before) is not None)


def _names(
    script: Script, target: Dialect, job_file: bool
) -> Iterator[tuple[str, tuple[str, bool], int, int]]:
    """Yield each name of the old scheduler, the reason and whether it is lost, its offset and line."""
    source = script.dialect
    words = titles(source) if source.family != target.family else {}
    for title, command in ((title, one) for title in words for one in script.named("module", "ml")):
        loads = not {"unload", "rm", "del", "remove"} & {*command.literals}
        module = re.compile(rf"(?i)({words[title]})([-.]\w+)*/\S+")
        for word in command.arguments:
            if loads and module.fullmatch(script.constants.value(word) or ""):
                yield word.text, (f"names {title}", True), word.start, word.line
    root = script.tree
    text = (root.source if for_bash(script) else script.source).decode("latin-1")
    start = root.start if script.directives.first_command else len(text)
    for pattern, why in _patterns(script, target, job_file).items():
        for match in re.finditer(pattern, text[start:]):
            at = start + match.start()
            line = text.count("\n", 0, at) + 1
            unread = root.damaged or not for_bash(script)  # in part: its comments are no nodes
            if unread and script.lines[line - 1].lstrip().startswith("#"):
                continue
            named = why[0].startswith("names")
            file = named and (any(_at(root, at, "file_redirect")) or _is_folder(root, at))
            file |= pattern == source.own_logs and log_differences.is_file_of_script(script, at)
            if not (file or _printed(root, at) or _is_label(root, at)):
                message = named and _is_sentence(root, at, match[0])
                yield match[0].rpartition("/")[2], (why[0], why[1] and not message), at, line


def _patterns(script: Script, target: Dialect, job_file: bool) -> dict[str, tuple[str, bool]]:
    """Return patterns of names of the old scheduler, each with the reason and whether they are lost."""
    source, prefix = script.dialect, script.dialect.variable_prefix
    unset = (f"is not set by {target.title}", True)
    if source.family == target.family:
        own = sorted(one for one in source.job_variables.keys() - target.job_variables if prefix in one)
        return {rf"\b({'|'.join([*own, target.unset_variables])})\b": unset}
    begins = f"begins the name of no variable that {target.title} sets"
    patterns = {
        rf"\b{prefix.rstrip('_')}[A-Z]?_[A-Z]\w*": unset,
        rf"\b{prefix}(?!\w)|(?<=\^){prefix[:-1]}(?=/)": (begins, True),
    }
    for owner, names in _commands(source).items():
        command = rf"(?<![\w/.$\{{-])({_OF_BIN})?({'|'.join(names)})(?![\w/.=-])"
        patterns[command] = (f"is a command of {owner}", True)
    for title, words in titles(source).items():
        folder = rf"(?<!\w)/(?:etc|var/spool|var/log|var/run|run)/(?:{words})[a-z]*(-\w+)?(?![\w-])"
        patterns[folder] = (f"is a folder of {title}", False)
        forms = (
            rf"(?i)(?<![\w/.$-])({words})({_OF_SCHEDULER})?(?![\w/.*-])",
            rf"(?i)(?<![\w/.$-])--?(use[-_])?({words})(?=[\s\"'=]|$)",
            rf"(?i)(?<=hydra/launcher=)\w+_({words})\b",
            classes_of(words),
        )
        patterns |= dict.fromkeys(forms, (f"names {title}", True))
    if not (script.request.output or (job_file and source.copies_logs)):
        of_log = f"is a log of {source.title}: that of {target.title} has another name"
        if source.copies_logs:
            of_log = f"may be the log of the job, which {target.title} writes while it runs"
        patterns[source.own_logs] = (of_log, not source.copies_logs)
    if not job_file and source.node_step is None and target.node_step:
        launchers = r"\w*[Mm]pi(run|exec)(\.hydra|_rsh|_mpt)?|aprun|orterun"
        patterns[rf"(?<![\w.$\{{-])({launchers})(?![\w/.=-])"] = ("stays in this text", False)
    return patterns


def _at(root: Node, at: int, *types: str) -> Iterator[Node]:
    """Yield the nodes of these types around an offset."""
    return (one for one in root.all(*types) if one.start <= at < one.end)


def _commands(source: Dialect) -> dict[str, list[str]]:
    """Return the commands that only the source has, by the scheduler or the site whose they are."""
    owners = source.owners | dict.fromkeys(filter(None, [source.node_step]), source.title)
    found: dict[str, list[str]] = {}
    for name, owner in owners.items():
        found.setdefault(owner, []).append(name)
    return found


def _is_sentence(root: Node, at: int, word: str) -> bool:
    """Return whether a word with capital letters is one of a text without signs of code: "PBS job ended"."""
    found = (one.text[1:-1] for one in _at(root, at, "string", "raw_string"))
    texts = (text for text in found if " " in text and word != word.lower())
    return any(not re.search(r"(^|\s)-+\w|[;|&<>=/()`]", text) for text in texts)


def _is_folder(root: Node, at: int) -> bool:
    """Return whether the word at an offset is that of a folder which a command makes or changes to, also by
    the variable of a loop."""
    words = list(_at(root, at, "word"))
    found = list(filter(None, (one.child_of("command") for one in words)))
    for loop in filter(None, (one.child_of("for_statement") for one in words)):
        variable = loop.get("variable")
        found += [one for one in loop.all("command") if variable and uses(one, variable.text)]
    return any(os.path.basename(one.name) in log_differences.FOLDERS for one in found)


def _is_label(root: Node, at: int) -> bool:
    """Return whether an offset is in a text that a command prints, with a colon or an equals sign behind the
    name there, and no dollar sign before it: ``echo "PBS_O_WORKDIR: $D" > file``, or in that of ``cat <<EOF``
    to the log."""
    if not re.match(rb"\w+ ?[:=]", root.source[at:]) or re.search(rb"[${]$", root.source[:at]):
        return False
    redirected = (one.around("redirected_statement") for one in _at(root, at, "heredoc_body"))
    if any(re.match(r"cat\s*<<-?\s*[\w\"'\\]+\s*\n", one.text) for one in redirected if one):
        return True
    commands = filter(None, (one.around("command") for one in _at(root, at, "string", "raw_string")))
    return next((os.path.basename(one.name) in _TALK for one in commands), False)


def _printed(root: Node, at: int) -> bool:
    """Return whether an offset is in a comment, or in a command that only prints or has been looked at."""
    node = root
    while (inner := next((one for one in node.children if one.start <= at < one.end), None)) is not None:
        line = node.source[node.source.rfind(b"\n", 0, at) + 1 : at]
        if inner.type == "comment" or (inner.type == "heredoc_body" and _COMMENT.match(line)):
            return True
        if inner.type == "command" and (name := inner.get("name")) is not None:
            above = inner.child_of("redirected_statement")
            written = above is not None and not re.search(r"(?s)^[^<>]*\d?>&\d[^<>]*$", above.text)
            written = written or (is_written(inner) and directive_of_text(root) is not None)
            written |= inner.name in ("which", "type") and inner.under(*_ASKS)
            if (os.path.basename(name.text) in _TALK and not written) or name.start <= at < name.end:
                return True
        node = inner
    return False
