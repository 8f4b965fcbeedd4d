"""The logs of a job in the commands of its script: Slurm writes them while it runs, PBS copies them then."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePath

from jobgen.convert.request_reader import at_directive
from jobgen.convert.result import Remark, hint, remark_on, shown
from jobgen.convert.swept_files import NUMBER, sweeps
from jobgen.convert.to_scheduler.request_writer import default_log
from jobgen.script.command_kinds import is_printed
from jobgen.script.commands import Command
from jobgen.script.dialects.base import Dialect
from jobgen.script.script import Script
from jobgen.script.syntax import Node
from jobgen.script.word_lists import code_text

_PLAIN = re.compile(r"\$(?:\{(?=\w+\}))?([A-Za-z_]\w*)\}?")
FOLDERS = ("cd", "pushd", "mkdir", "rmdir", "ls")  # commands that name directories
# The codes in names of logs for the variables of a job.
_CODES = {"job_id": "%j", "job_name": "%x", "array_index": "%a", "array_job": "%A", "user": "%u"}
_MAY_BE_DIRECTORY = re.compile(r"(^|/)[^./^]+$")  # a log without an end such as .log
# A server that prints, as its script does, where its users reach it. The names are without their folders.
_SERVER = re.compile(
    r"(?:python[\d.]* (?:-\S+ )*)?(?:(?:jupyter[- _]?(?:lab|notebook|server)|tensorboard|rserver|pvserver"
    r"|rstudio-server start|code-server|openvscode-server|code tunnel|marimo (?:edit|run)|streamlit run"
    r"|mlflow (?:ui|server)|(?:bokeh|panel) serve|vncserver|ttyd)|(?<=-m )(?:notebook|tensorboard\.main))"
    r"(?= |$)(?! (?:build|clean|list|password|path|stop|-kill)\b)(?!.* --(?:version|help|generate|install)\b)"
)
_OWN_LOG = re.compile(r"exec\s+[\d&]*>")
_WRITES = re.compile(r"(\d|&)?>{1,2}(?!&?\s*(\d+|-)$)[|&]?")  # a redirection of output to a file


def remarks(script: Script, target: Dialect, fields: Mapping[str, str]) -> Iterator[Remark]:
    """Yield remarks on logs under another scheduler.

    ``fields`` are those of them that the scheduler writes, output and error, with the name that each one has
    without a directive: ``%x.o{}``.
    """
    if script.dialect.copies_logs != target.copies_logs:
        yield from _own_log(script, target, fields)
        yield from _over_log(script, target, fields)
    late = {"output"} if script.request.join else {"output", "error"}
    in_log = script.request.output != "/dev/null" and not late.isdisjoint(fields)
    if script.dialect.copies_logs < target.copies_logs and in_log:
        yield from _servers(script, target)
    if script.dialect.copies_logs > target.copies_logs:
        yield from _log_folders(script, target, fields)
        yield from _directories(script, target, fields)


def _directories(script: Script, target: Dialect, fields: Mapping[str, str]) -> Iterator[Remark]:
    """Yield a remark on each log that may be a directory, which Slurm does not take, or has a tilde."""
    source = script.dialect
    for field in sorted(written_logs(script, fields)):
        directive = source.origin(script.heeded, field)
        path = directive.value.rpartition(":")[2] if directive else ""
        if path.startswith("~"):
            yield from at_directive(script, field, f"{target.title} does not expand ~: write the whole path")
        if "$" not in path and _MAY_BE_DIRECTORY.search(path):
            why = f"{target.title} writes a file; {source.family} takes a directory, too: "
            why += f"then write {path}/{default_log(source, field, True, script.request.array is not None)}"
            yield from at_directive(script, field, why)


def written_logs(script: Script, fields: Iterable[str]) -> list[str]:
    """Return those of the fields of logs that the scheduler writes: PBS joins one of them to the other."""
    unused = {"-e": "error", "-o": "output"}.get(script.unused_log)
    return [one for one in fields if one != unused]


def shared_log(script: Script, target: Dialect, of_array: bool) -> Iterator[Remark]:
    """Yield remarks on a log that all tasks of an array write."""
    source = script.dialect
    by_suffix = bool(target.task_suffix) or source.copies_logs != target.copies_logs
    differ = of_array and by_suffix and not source.task_suffix
    for field in written_logs(script, ("output", "error")) if differ else ():
        path = directive.value if (directive := source.origin(script.heeded, field)) else "/dev/null"
        if path != "/dev/null" and not re.search(r"%\d*[ajJ]|\^array_index\^|\$\{?PBS_|/$", path):
            title = source.title if source.family == target.family else source.family
            if_file = " if it is no directory" * bool(source.copies_logs and _MAY_BE_DIRECTORY.search(path))
            why = f"is one file for all tasks{if_file}, which {target.title} does not write as {title} does"
            yield from at_directive(script, field, why)


def _own_log(script: Script, target: Dialect, fields: Mapping[str, str]) -> Iterator[Remark]:
    """Yield a remark on each log that the script reads, if only one scheduler writes it while it runs."""
    source = script.dialect
    family, other = (one.family for one in (source, target))
    late, early = (other, family) if target.copies_logs else (family, other)
    logs = {_path(script, log) for log in _given(script, fields) if os.path.basename(log) not in ("", "null")}
    name = script.request.name or script.name
    default = fields.get("output", "").format(NUMBER).replace("%x", name or "")
    defaults = {default} if source.copies_logs and name and not script.request.output else set[str]()
    swept = list(_swept_logs(script, target, fields)) if source.copies_logs else []
    yield from swept
    for command in script.runs:
        passed_over = command.name in FOLDERS or any(map(is_printed, command.arguments[:1]))
        if command.line in {one.line for one in swept} or passed_over:
            continue
        texts = (re.sub(r"^--?[\w-]+=", "", with_values(script, word)) for word in command.arguments)
        words = [_path(script, text) for text in texts if text]
        names = [os.path.basename(word) for word in words]
        named = re.search(source.own_logs, command.node.text)
        files = logs | (defaults if command.name in ("rm", "mv") and not named else set())
        if source.early_log and not script.request.output and not named:
            words = [_path(script, text) for text in command.node.text.split()[1:]]
            files |= {source.early_log} if any("%j" in os.path.basename(word) for word in words) else set()
        if read := [log for log in sorted(files) if any(_names_log(log, word) for word in words)]:
            name = os.path.basename(read[0]).replace(NUMBER, "ID").replace("%j", "ID")
            why = f"{late} writes the log {name} when the job has ended, {early} while it runs"
            whole = target.copies_logs and "%j" in read[0] and "j" in target.scheduler.log_codes
            why += f"; in its name {target.title} writes NUMBER.SERVER" * whole
            yield remark_on(command, why, lost=target.copies_logs and name in names)


def _servers(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on each server whose users read in the log where it is, while it runs."""
    opens = (one.node.start for one in script.own_running("exec") if _OWN_LOG.match(one.statement.text))
    own_log = min(opens, default=sys.maxsize)
    for start in script.started:
        command = start.command.node
        is_server = _SERVER.match(" ".join(map(os.path.basename, start.texts))) and command.start < own_log
        if is_server and not any(map(_takes_output, chain(start.file.above(), command.above()))):
            why = "what the job prints of its address is in the log, which "
            why += f"{target.family} writes when the job has ended, {script.dialect.family} while it runs"
            yield hint(start.line, shown(command), why)


def _takes_output(node: Node) -> bool:
    """Return whether a statement takes the output of the commands in it away from the log."""
    parts = node.children if node.type == "redirected_statement" else ()
    return node.type == "pipeline" or any(_WRITES.match(one.text) for one in parts)


def _given(script: Script, fields: Iterable[str]) -> set[str]:
    """Return the paths of the logs that the directives name."""
    return {
        (getattr(script.request, field) or "").rpartition(":")[2] for field in written_logs(script, fields)
    }


def _names_log(log: str, word: str) -> bool:
    """Return whether a word may name a log, or be a pattern of its name, in a directory that is not known."""
    name = os.path.basename(word)
    if not re.search(r"\w", name) or not fnmatch.fnmatchcase(os.path.basename(log), name):
        return False
    if log[0] == word[0] == "/":
        return fnmatch.fnmatchcase(log, word)
    if re.match(r"/.*(\$\(|`)", os.path.dirname(word)):
        return False  # a folder of a name that the script makes is not that of the submission
    folders = [reversed(os.path.normpath(one).split("/")[:-1]) for one in (log, word)]
    pairs = [pair for pair in zip(*folders, strict=False) if not re.search(r"\$|^\.\.$", "".join(pair))]
    return all(fnmatch.fnmatchcase(one, other) for one, other in pairs)


def first_own_log(script: Script) -> re.Match[bytes] | None:
    """Return the first name of a log without a directive in the commands of a script; None without one."""
    found = re.compile(script.dialect.own_logs.encode()).finditer(script.tree.source, script.tree.start)
    return next((one for one in found if not is_file_of_script(script, one.start())), None)


def is_file_of_script(script: Script, at: int) -> bool:
    """Return whether a name at an offset is that of a file in a folder which the script itself writes."""
    for node, _ in script.redirections:
        if (word := node.get("destination")) is None or not _WRITES.match(node.text):
            continue
        name = script.constants.origin(word)
        own = name.source is script.tree.source and name.start < at < name.end
        if own and b"/" in name.source[name.start : at]:
            return True
    return False


def _swept_logs(script: Script, target: Dialect, fields: Mapping[str, str]) -> Iterator[Remark]:
    """Yield a remark on each command that deletes, moves, packs or copies the logs with other files."""
    request, logs = script.request, list[str]()
    for field in written_logs(script, (one for one in ("output", "error") if one in fields)):
        default = fields[field].format("%j")
        log = getattr(request, field) or default
        log += script.dialect.directory_logs.get(field, default).format("%j") if log.endswith("/") else ""
        log = _path(script, log.rpartition(":")[2]) if log else "/dev/null"
        logs += [log.replace("%x", script.name or "NAME").replace("%j", NUMBER)] * (log != "/dev/null")
    found = list(sweeps(script, list(dict.fromkeys(logs))))
    yield from _copied_back(script, [one.command for one in found if one.verb == "copies"])
    for one in found:
        names = " and ".join(log.replace(NUMBER, "ID") for log in one.files)
        why = f"{one.verb} the log{'s' * (len(one.files) > 1)} {names}, too, "
        why += f"which {target.title} writes while the job runs"
        yield hint(one.command.line, shown(one.command.statement), why)


def _copied_back(script: Script, copies: Sequence[Command]) -> Iterator[Remark]:
    """Yield a remark on each command that copies a folder back from which others took the logs."""
    back = list(script.running("cp", "rsync", "mv"))
    for one, (old, *_, new) in ((one, words) for one in copies if len(words := _folders(script, one)) > 1):
        for command in (other for other in back if other.node.start > one.node.start):
            *sources, place = _folders(script, command) or [""]
            if new in sources and place in (old, "."):
                why = "writes old copies of the logs over them: what the job has written since then is lost"
                yield remark_on(command, why)


def _folders(script: Script, command: Command) -> list[str]:
    """Return the paths of a command that copies, without the pattern of all files at their ends."""
    words = [script.constants.text(one) for one in command.arguments if not one.text.startswith("-")]
    return [re.sub(r"[\"'{}]|(/(\*|\.?))+[\"']?$", "", one) for one in words]


def _over_log(script: Script, target: Dialect, fields: Mapping[str, str]) -> Iterator[Remark]:
    """Yield a remark on each redirection into a log of the job that only one scheduler copies there."""
    late, early = (target, script.dialect) if target.copies_logs else (script.dialect, target)
    logs = sorted(_path(script, one) for one in _given(script, fields) - {"", "/dev/null"})
    for node, place in script.redirections:
        if (word := node.get("destination")) is None or not _WRITES.match(node.text):
            continue
        path = _path(script, script.constants.value(word) or word.unquoted)
        moved = _is_elsewhere(script, place)
        if log := next((log for log in logs if _may_be_one(log, path, moved)), ""):
            certain = log == path and not moved
            why = f"{'is' if certain else 'may be'} the log {log}, too: {late.family} copies the log "
            why += f"over it when the job has ended, {early.family} writes both to it"
            yield Remark(place.line, node.text, why, lost=target.copies_logs and certain)


def _log_folders(script: Script, target: Dialect, fields: Mapping[str, str]) -> Iterator[Remark]:
    """Yield a remark on each command that makes the folder of a log, which the target opens before that."""
    files = [f"{log}/log" if log.endswith("/") else log for log in _given(script, fields)]
    folders = {os.path.dirname(_path(script, one)) for one in files}
    for command in script.running("mkdir"):
        given = (script.constants.value(word) or "" for word in command.arguments)
        whole = any(re.fullmatch(r"-\w*p\w*|--parents", text) for text in given)
        for word in command.arguments:
            path = _path(script, script.constants.text(word).strip("\"'"))
            paths = [path, *(str(one) for one in PurePath(path).parents if whole and path[0] in "/$")]
            made = any(whole and path.startswith(f"{one}/") for one in folders - {""})
            # A variable of a loop may be each name.
            any_name = re.sub(r"(?<=\w/)\\\$\w+", "[^/]+", re.escape(path))
            made |= path.startswith("/") and any(re.fullmatch(any_name, one) for one in folders)
            if made or any(_may_be_one(one, each, True) for one in folders - {""} for each in paths):
                why = f"{target.title} opens the log in it before the script runs: make it before you submit"
                yield remark_on(command, why)
                break


def _path(script: Script, text: str) -> str:
    """Return the path of a log or of a redirection, with the codes of Slurm for the variables of the job."""
    text = re.sub(r"^~(?=/)", "$HOME", re.sub(r"\$\{(\w+)\}", r"$\1", text))
    for name, meaning in script.dialect.job_variables.items():
        text = re.sub(rf"\${name}\b", _CODES.get(meaning, f"${name}"), text)
    text = text.replace("%x", script.request.name or script.name or "%x")
    return os.path.normpath(text.removeprefix(f"${script.dialect.variable('submit_dir')}/"))


def _is_elsewhere(script: Script, node: Node) -> bool:
    """Return whether a command may run in another directory than that of the submission."""
    before = [one for one in script.running("cd", "pushd") if one.node.start < node.start]
    back = rf"\w+ [\"']?\$\{{?{script.dialect.variable('submit_dir')}\}}?[\"']?"
    return not re.fullmatch(back, before[-1].node.text) if before else not script.starts_at_submission


def _may_be_one(log: str, path: str, moved: bool) -> bool:
    """Return whether two paths may name one file; relative paths may be in another directory."""
    if moved and not path.startswith(("/", "$")):
        return os.path.basename(log) == os.path.basename(path)
    long, short = sorted((log, path), key=lambda one: one[0] in "/$", reverse=True)
    return log == path or (long[0] in "/$" and short[0] not in "/$" and long.endswith(f"/{short}"))


def with_values(script: Script, word: Node) -> str:
    """Return a word without quotes and braces, with the texts that the script gives to its variables."""
    text, seen = script.constants.text(word).strip("\"'"), set[str]()
    while match := next((one for one in _PLAIN.finditer(text) if one[1] not in seen), None):
        seen.add(match[1])
        node = script.constants.node(match[1])
        value = f"${match[1]}" if node is None or node.type == "array" else code_text(node)
        text = text[: match.start()] + value + text[match.end() :]
    return text
