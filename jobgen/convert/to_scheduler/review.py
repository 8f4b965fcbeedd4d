"""Remarks on what the user should check in a converted script, and on what of the old scheduler it keeps."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice

from jobgen.convert import misreadings, start_directory, variable_names
from jobgen.convert.request_reader import has_directives, waits_for_number
from jobgen.convert.result import Edit, Remark, shown
from jobgen.convert.submission import discarded, index_read
from jobgen.convert.swept_files import NUMBER, sweeps
from jobgen.convert.to_scheduler import mpirun_line, variables
from jobgen.convert.to_scheduler.launch_calls import calls, other_launchers
from jobgen.convert.to_scheduler.request_writer import default_log, listed
from jobgen.convert.to_scheduler.start_lines import (
    for_bash,
    has_first_line,
    line_starts,
    threads_of_ranks,
)
from jobgen.convert.variable_names import directive_of_text, inner_names, is_written
from jobgen.launch.launchers import MPI_FLAVOURS
from jobgen.schedulers.base import key_of
from jobgen.script.command_kinds import PRINT, STATE, TOOLS
from jobgen.script.commands import Command
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.mpi_of_script import mpi_of
from jobgen.script.script import Script
from jobgen.script.syntax import Node
from jobgen.script.word_lists import code_text
from jobgen.values import parsers

_TALK = ("echo", "printf", "which", "type")
# What makes the name of a profile of the name of a scheduler, but not that of a folder.
_OF_SCHEDULER = r"_(?!logs?|out|err|dir|folder|jobs?|scripts?|files?|nodes?|hosts?|machines?)\w+"
# The beginning of a comment in the text of a here-document, but not of a directive or a line of C.
_COMMENT = re.compile(rb"\s*#(?![!A-Z]|(define|elif|if|ifn?def|include)\b)")
# The codes in names of logs for the variables of a job.
_FOLDERS = ("cd", "pushd", "mkdir", "rmdir", "ls")  # commands that name directories
_COPIES = ("cp", "mv", "rsync", "scp", "unzip", "tar")
_MAKES = re.compile(
    r"rsync\b|cp\s+(-\S+\s+)*(-\w*[rRa]|--recursive|--archive)"
)  # directories that are missing
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")
_NO_USE = (PRINT | STATE | {"[", "test"}) - {"cd", "pushd"}
_PLAIN = re.compile(r"\$(?:\{(?=\w+\}))?([A-Za-z_]\w*)\}?")
_QUEUE_OF_GPUS = re.compile(r"(?i)(?<!no)(?<!no[-_])gpu")
_CODES = {"job_id": "%j", "job_name": "%x", "array_index": "%a", "array_job": "%A", "user": "%u"}
_WRITES = re.compile(r"(\d|&)?>{1,2}[|&]?(?!\s*(\d+|-)$)")  # a redirection of output to a file
# Options of srun in variables that a script sets.
_OF_SRUN = re.compile(
    r"SRUN_(CPUS_PER_TASK|CONTAINER(_ID)?|ERROR|EXPORT_ENV|INPUT|OUTPUT|SEGMENT_SIZE)"
    r"|SLURM_((CPU|MEM|GPU)_BIND|DISTRIBUTION|HINT|HOSTFILE|MPI_TYPE|EXPORT_ENV|THREADS_PER_CORE|WAIT"
    r"|KILL_BAD_EXIT|LABELIO|UNBUFFEREDIO|OVERLAP|EXACT|WHOLE|MULTI_PROG|GPUS_PER_TASK|NTASKS|NPROCS)"
)
# The files and folders that an option or a variable binds into a container.
_BIND = re.compile(r"(?:\s(?:-B|--bind|-v|--volume)[ =]|^\w+=)(\S+)")
_BINDS = re.compile(r"(SINGULARITY|APPTAINER)_BIND(PATH)?")


def remarks(script: Script, source: Dialect, target: Dialect, content: ScriptRequest) -> Iterator[Remark]:
    """Yield remarks on translations that the user should check."""
    request, given = script.request, script.heeded
    yield from _shell(script, source, target)
    if request.name and (new := target.job_name(request.name)) != request.name:
        option = given[key_of(source.scheduler.request_forms["name"])]
        yield Remark(option.line, request.name, f"the name of the job becomes {new}", lost=False)
    if waits_for_number(request):
        why = f"names a job of {source.title}: write the number of a job of {target.title}"
        yield from _at(script, source, "dependency", why)
    place = request.place or "scatter" * ("nodes" in request.totals)
    if source.chunks_share_nodes and request.several and "scatter" not in place.split(":"):
        yield from _at(script, source, "ranks", "each chunk becomes a node")
    if target.scheduler.behaviour.hosts_by_core and not source.scheduler.behaviour.hosts_by_core:
        yield from _slots(script, source, target)
    yield from _rank_remarks(script, source, target)
    yield from _index(script, source, target)
    yield from _srun_variables(script, source, target)
    yield from _job_directory(script, source, target)
    yield from _devices(script, source, target, content)
    if (licenses := content.directives.get("licenses")) and target.features_are_resources:
        why = f"qsub refuses it unless the site of {target.title} has a resource of this name"
        yield Remark(licenses.option.line, licenses.text, why, lost=False)
    yield from _logs(script, source, target, content)
    if target.copies_logs > source.copies_logs:
        yield from start_directory.default_log(script, content.directory)
    yield from _shared_log(script, source, target)
    if source.scheduler.node_step and request.exclusive:
        yield from _whole_nodes(script, source)
    if source.scheduler.node_step and not target.scheduler.node_step:
        yield from misreadings.in_directory(script, source)
    yield from _own_log(script, source, target, content)
    yield from _over_log(script, source, target, content)
    if source.copies_logs > target.copies_logs:
        yield from _log_folders(script, source, target, content)
    if threads_of_ranks(script, source, target, content):
        of_others = [call.command.node for call in other_launchers(script, ())]
        yield from islice(misreadings.threads_outside(script, source, of_others), 1)
    if target.copies_logs > source.copies_logs and "a" in request.mail and "e" not in request.mail:
        option = given["--mail-type"]
        why = f"{target.title} sends it if it ends the job itself, not if the script fails: add END"
        yield Remark(option.line, f"{option.flag}={option.value}", why, lost=False)
    yield from _comments(script)
    yield from _written_script(script, source)
    yield from islice(_binds(script, source), 1)
    if not has_directives(script):
        why = "it is not treated as a batch script: no directives and no cd are added"
        yield Remark(1, f"without {source.scheduler.prefix}", why, lost=False)
    yield from misreadings.unreadable(script, source)
    yield from _set_by_target(script, source, target)
    yield from misreadings.own_name(script)
    for late in script.directives.late:
        yield Remark(late.number, late.text.strip(), "has no effect after the first command", lost=False)


def _devices(script: Script, source: Dialect, target: Dialect, content: ScriptRequest) -> Iterator[Remark]:
    """Yield remarks on GPUs that the job has without a directive, or does not have."""
    request = script.request
    named = request.gpus_per_node or any("ngpus" in chunk for chunk in request.chunks)
    named = named or any(re.search(r"gpus?=", text) for _, text, _ in content.unconverted)
    hidden = target.hides_devices and not source.hides_devices
    if hidden and not named and misreadings.names_devices(script) and has_directives(script):
        why = f"the script requests none: {target.title} hides those of the node"
        first = next((one.number for one in script.directives.live), 1)
        yield Remark(first, "GPUs", why, lost=False)
    devices = request.gpus_per_node or request.gpus or request.exclusive
    if source.hides_devices and not devices and (place := _unrequested_devices(script)):
        why = f"no directive requests GPUs: if {source.title} gives them with whole nodes, request them"
        yield Remark(*place, why, lost=False)
    if hidden and not request.exclusive:
        yield from _more_threads(script, target)


def _unrequested_devices(script: Script) -> tuple[int, str] | None:
    """Return the line and the words that need GPUs in a script whose directives request none: a launcher of
    training programs, the name of the queue, or modules and variables of CUDA."""
    queue = script.request.queue or ""
    launch = next((one for one in script.launches if one.row.once_a_node), None)
    if launch and has_directives(script):
        return launch.line, launch.title
    if _QUEUE_OF_GPUS.search(queue):
        return next((one.line for one in script.options if one.value == queue), 1), queue
    return misreadings.use_of_cuda(script) if has_directives(script) else None


def _whole_nodes(script: Script, source: Dialect) -> Iterator[Remark]:
    """Yield remarks on the ranks and the memory of a job with whole nodes."""
    given = script.heeded
    if not {"--ntasks", "--ntasks-per-node"} & given.keys():
        yield from _ranks_of_whole_nodes(script, source)
    if own := given.get("--mem-per-cpu"):
        why = "is that of all cores of the nodes in an exclusive job: here it is that of the requested ones"
        yield Remark(own.line, f"{own.flag}={own.value}", why, lost=False)


def _comments(script: Script) -> Iterator[Remark]:
    """Yield a remark on directives that are comments."""
    if inert := script.directives.inert:
        more = f"; {len(inert) - 1} more are comments, too" if len(inert) > 1 else ""
        why = f"is a comment, and stays one{more}"
        yield Remark(inert[0].number, inert[0].text.strip(), why, lost=False)


def _binds(script: Script, source: Dialect) -> Iterator[Remark]:
    """Yield a remark on each file of the source that a script binds into a container."""
    own = "|".join((*source.owners, *filter(None, [source.scheduler.node_step])))
    of_source = re.compile(rf"/(?!home|scratch)([^/]+/)*({source.scheduler.family.lower()}d?\b.*|{own})")
    nodes = [command.node for command in script.runs]
    nodes += [node for name, _, node in script.assignments if _BINDS.fullmatch(name)]
    for node in nodes:
        values = (re.split(r"[,:\"']", match[1]) for match in _BIND.finditer(node.text))
        for found in filter(of_source.fullmatch, chain.from_iterable(values)):
            why = f"is a file of {source.title}: without it the container does not start"
            yield Remark(node.line, found, why, lost=False)


def _more_threads(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on more threads than the cores of a node, to which only the target binds them."""
    ranks, cores = script.request.ranks_per_node, script.request.cpus_per_rank
    if (ranks is None and cores is None) or any(calls(script, mpirun_line.NAMES)):
        return
    of_node = (ranks or 1) * (cores or 1)
    for name, value, node in script.assignments:
        threads = parsers.number(script.constants.value(value)) if name == "OMP_NUM_THREADS" else None
        if threads and threads > of_node:
            where = f"the cores of the request on a node, {of_node}"
            why = f"is more than {where}, to which {target.title} may bind them"
            yield Remark(node.line, f"{name}={threads}", why, lost=False)


def _shell(script: Script, source: Dialect, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on the option of the shell, if the first line names another one."""
    shell = next((option for option in script.options if option.flag == source.shell_option), None)
    first = script.lines[0].removeprefix("#!").split() if has_first_line(script) else []
    first = first[1:] if first and os.path.basename(first[0]) == "env" else first
    if shell is None or not first or target.shell_option:
        return
    if os.path.basename(first[0]) != os.path.basename(shell.value):
        why = f"{target.title} uses the shell of the first line: {script.lines[0]}"
        yield Remark(shell.line, f"{shell.flag} {shell.value}", why)


def _logs(script: Script, source: Dialect, target: Dialect, content: ScriptRequest) -> Iterator[Remark]:
    """Yield remarks on the files of logs that the target writes elsewhere, or not from the beginning."""
    given = script.heeded
    for field in content.directories:
        path = directive.value.rpartition(":")[2] if (directive := source.origin(given, field)) else ""
        why = f"{target.title} writes a file; {source.scheduler.family} takes a directory, too: "
        why += f"then write {path}/{default_log(source, field, True, script.request.array is not None)}"
        yield from _at(script, source, field, why)
    for field in ("output", "error") if source.copies_logs > target.copies_logs else ():
        if (directive := source.origin(given, field)) and directive.value.rpartition(":")[2].startswith("~"):
            yield from _at(script, source, field, f"{target.title} does not expand ~: write the whole path")
    for field in content.script_logs:
        why = f"the script opens it with exec; what is printed before that is in the log of {target.title}"
        yield from _at(script, source, field, why)


def _srun_variables(script: Script, source: Dialect, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on options of srun in variables, which the launcher of the target does not read."""
    steps = source.scheduler.node_step is not None and target.scheduler.node_step is None
    for name, _, node in script.assignments if steps else ():
        if re.fullmatch("SBATCH_[A-Z_]+", name):
            why = f"is an option of {source.command}: {target.command} does not read it"
            yield Remark(node.line, name, why)
        if mpi := next((one for one in MPI_FLAVOURS.values() if one.pmi_library == name), None):
            why = f"is the library of {source.title} for srun: unset it, as the mpirun of {mpi.title}"
            yield Remark(node.line, name, f"{why} has its own")
    if not steps or not re.search(r"\bsrun\b", script.tree.text):
        return
    cores = str(script.request.cpus_per_rank)
    for name, value, node in script.assignments:
        same = name == "SRUN_CPUS_PER_TASK" and script.constants.value(value) == cores
        if _OF_SRUN.fullmatch(name) and not same:
            yield Remark(node.line, name, "is an option of srun: mpirun does not read it")


def _job_directory(script: Script, source: Dialect, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on a directory of the job that the script uses and does not make."""
    if source.scheduler.family == target.scheduler.family:
        return
    ids = "|".join(name for name, meaning in source.job_variables.items() if meaning == "job_id")
    directory = re.compile(rf"/(\w+[_.-])?\$({ids})\b(?=/|$)")
    uses = [(one.node, list(one.arguments)) for one in script.runs if one.name not in _NO_USE]
    if not any(script.running("mkdir")):
        uses += [(node, [value]) for name, value, node in script.assignments if name in _TEMPORARY]
    kinds = {one.node.start: one.name for one in script.runs}
    for node, words in sorted(uses, key=lambda one: one[0].start):
        paths = (_with_values(script, word) for word in words)
        path = next((one.rstrip("/") for one in paths if directory.search(one)), "")
        if path:
            is_made = _MAKES.match(node.text) and re.search(directory.pattern + "$", path)
            if kinds.get(node.start, "TMPDIR") in ("cd", "pushd", "TMPDIR", *_COPIES) and not is_made:
                why = "the script does not make this directory, which only some sites do"
                yield Remark(node.line, path, why, lost=False)
            return


def _with_values(script: Script, word: Node) -> str:
    """Return a word without quotes and braces, with the texts that the script gives to its variables."""
    text, seen = script.constants.text(word).strip("\"'"), set[str]()
    while match := next((one for one in _PLAIN.finditer(text) if one[1] not in seen), None):
        seen.add(match[1])
        node = script.constants.node(match[1])
        value = f"${match[1]}" if node is None or node.type == "array" else code_text(node)
        text = text[: match.start()] + value + text[match.end() :]
    return text


def _shared_log(script: Script, source: Dialect, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on a log that all tasks of an array write."""
    differ = script.request.array and source.copies_logs != target.copies_logs and not source.task_suffix
    for field in ("output", "error") if differ else ():
        path = directive.value if (directive := source.origin(script.heeded, field)) else "/dev/null"
        if path != "/dev/null" and not re.search(r"%\d*[ajJ]|\^array_index\^|\$\{?PBS_|/$", path):
            family = source.scheduler.family
            why = f"is one file for all tasks, which {target.title} does not write as {family} does"
            yield from _at(script, source, field, why)


def _own_log(script: Script, source: Dialect, target: Dialect, content: ScriptRequest) -> Iterator[Remark]:
    """Yield a remark on each log that the script itself reads, if one scheduler writes it when the job has
    ended, and the other while it runs."""
    if target.copies_logs == source.copies_logs:
        return
    family, other = (one.scheduler.family for one in (source, target))
    late, early = (other, family) if target.copies_logs else (family, other)
    fields = {"output", "error"} - content.script_logs.keys()
    given = {(getattr(script.request, field) or "").rpartition(":")[2] for field in fields}
    logs = {_path(script, log, source) for log in given if os.path.basename(log) not in ("", "null")}
    name = script.request.name or script.name
    default = source.default_logs.get("output", "").format(NUMBER).replace("%x", name or "")
    defaults = {default} if source.copies_logs and name and not script.request.output else set[str]()
    swept = list(_swept_logs(script, source, target, fields)) if source.copies_logs else []
    yield from swept
    for command in script.runs:
        if command.line in {one.line for one in swept} or command.name in _FOLDERS:
            continue
        texts = (re.sub(r"^--?[\w-]+=", "", _with_values(script, word)) for word in command.arguments)
        words = [_path(script, text, source) for text in texts if text]
        names = [os.path.basename(word) for word in words]
        by_default = command.name in ("rm", "mv") and not re.search(source.own_logs, command.node.text)
        files = logs | (defaults if by_default else set())
        if (
            source.early_log
            and not script.request.output
            and not re.search(source.own_logs, command.node.text)
        ):
            words = [_path(script, text, source) for text in command.node.text.split()[1:]]
            files |= {source.early_log} if any("%j" in os.path.basename(word) for word in words) else set()
        if read := [log for log in sorted(files) if any(_names_log(log, word) for word in words)]:
            name = os.path.basename(read[0]).replace(NUMBER, "ID").replace("%j", "ID")
            why = f"{late} writes the log {name} when the job has ended, {early} while it runs"
            text = shown(command.node)
            yield Remark(command.line, text, why, lost=target.copies_logs and name in names)


def _names_log(log: str, word: str) -> bool:
    """Return whether a word may name a log, or be a pattern of its name, in a directory that is not known."""
    name = os.path.basename(word)
    if not re.search(r"\w", name) or not fnmatch.fnmatchcase(os.path.basename(log), name):
        return False
    if log[0] == word[0] == "/":
        return fnmatch.fnmatchcase(log, word)
    folders = [reversed(os.path.normpath(one).split("/")[:-1]) for one in (log, word)]
    pairs = zip(*folders, strict=False)
    return all(
        re.search(r"\$|^\.\.$", one + other) or fnmatch.fnmatchcase(one, other) for one, other in pairs
    )


def _swept_logs(
    script: Script, source: Dialect, target: Dialect, fields: Collection[str]
) -> Iterator[Remark]:
    """Yield a remark on each command that deletes, moves, packs or copies the logs with other files."""
    request, logs = script.request, list[str]()
    for field in (one for one in ("output", "error") if one in fields):
        default = source.default_logs.get(field, "").format("%j")
        log = getattr(request, field) or ("" if field == "error" and request.join else default)
        log += source.directory_logs.get(field, default).format("%j") if log.endswith("/") else ""
        log = _path(script, log.rpartition(":")[2], source) if log else "/dev/null"
        logs += [log.replace("%x", script.name or "NAME").replace("%j", NUMBER)] * (log != "/dev/null")
    found = list(sweeps(script, source, list(dict.fromkeys(logs))))
    yield from _copied_back(script, [one.command for one in found if one.verb == "copies"])
    for one in found:
        names = " and ".join(log.replace(NUMBER, "ID") for log in one.files)
        why = (
            f"{one.verb} the log{'s' * (len(one.files) > 1)} {names}, too, which {target.title} writes while "
        )
        text = shown(one.command.statement)
        yield Remark(one.command.line, text, f"{why}the job runs", lost=False)


def _copied_back(script: Script, copies: Sequence[Command]) -> Iterator[Remark]:
    """Yield a remark on each command that copies a folder back from which others took the logs."""
    back = list(script.running("cp", "rsync", "mv"))
    for one, (old, *_, new) in ((one, words) for one in copies if len(words := _folders(script, one)) > 1):
        for command in (other for other in back if other.node.start > one.node.start):
            *sources, place = _folders(script, command) or [""]
            if new in sources and place in (old, "."):
                why = "writes old copies of the logs over them: what the job has written since then is lost"
                yield Remark(command.line, shown(command.node), why, lost=False)


def _folders(script: Script, command: Command) -> list[str]:
    """Return the paths of a command that copies, without the pattern of all files at their ends."""
    words = [script.constants.text(one) for one in command.arguments if not one.text.startswith("-")]
    return [re.sub(r"[\"'{}]|(/(\*|\.?))+[\"']?$", "", one) for one in words]


def _over_log(script: Script, source: Dialect, target: Dialect, content: ScriptRequest) -> Iterator[Remark]:
    """Yield a remark on each redirection into a log of the job that only one scheduler copies there."""
    if target.copies_logs == source.copies_logs:
        return
    late, early = (target, source) if target.copies_logs else (source, target)
    fields = {"output", "error"} - content.script_logs.keys()
    given = {(getattr(script.request, field) or "").rpartition(":")[2] for field in fields}
    logs = sorted(_path(script, one, source) for one in given - {"", "/dev/null"})
    for node, place in script.redirections:
        word = node.get("destination")
        if word is None or not _WRITES.match(node.text):
            continue
        path = _path(script, script.constants.value(word) or word.text.strip("\"'"), source)
        moved = _is_elsewhere(script, place, source)
        same = (log for log in logs if _may_be_one(log, path, moved))
        if log := next(same, ""):
            certain = log == path and not moved
            why = (
                f"{'is' if certain else 'may be'} the log {log}, too: {late.scheduler.family} copies the log "
            )
            why += f"over it when the job has ended, {early.scheduler.family} writes both to it"
            yield Remark(place.line, node.text, why, lost=target.copies_logs and certain)


def _log_folders(
    script: Script, source: Dialect, target: Dialect, content: ScriptRequest
) -> Iterator[Remark]:
    """Yield a remark on each command that makes the folder of a log, which the target opens before that."""
    fields = {"output", "error"} - content.script_logs.keys()
    logs = {(getattr(script.request, field) or "").rpartition(":")[2] for field in fields}
    files = [f"{log}/log" if log.endswith("/") else log for log in logs]
    folders = {os.path.dirname(_path(script, one, source)) for one in files}
    for command in script.running("mkdir"):
        given = (script.constants.value(word) or "" for word in command.arguments)
        whole = any(re.fullmatch(r"-\w*p\w*|--parents", text) for text in given)
        for word in command.arguments:
            path = _path(script, script.constants.text(word).strip("\"'"), source)
            inner = any(whole and path.startswith(f"{one}/") for one in folders - {""})
            if inner or any(_may_be_one(one, path, True) for one in folders - {""}):
                why = f"{target.title} opens the log in it before the script runs: make it before you submit"
                yield Remark(command.line, f"mkdir {word.text}", why, lost=False)
                break


def _path(script: Script, text: str, source: Dialect) -> str:
    """Return the path of a log or of a redirection, with the codes of Slurm for the variables of the job."""
    text = re.sub(r"^~(?=/)", "$HOME", re.sub(r"\$\{(\w+)\}", r"$\1", text))
    for name, meaning in source.job_variables.items():
        text = re.sub(rf"\${name}\b", _CODES.get(meaning, f"${name}"), text)
    text = text.replace("%x", script.request.name or "%x")
    return os.path.normpath(text.removeprefix(f"${source.variable('submit_dir')}/"))


def _is_elsewhere(script: Script, node: Node, source: Dialect) -> bool:
    """Return whether a command may run in another directory than that of the submission."""
    before = [one for one in script.running("cd", "pushd") if one.node.start < node.start]
    back = rf"\w+ [\"']?\$\{{?{source.variable('submit_dir')}\}}?[\"']?"
    return not re.fullmatch(back, before[-1].node.text) if before else not script.starts_at_submission


def _may_be_one(log: str, path: str, moved: bool) -> bool:
    """Return whether two paths may name one file; relative paths may be in another directory."""
    if moved and not path.startswith(("/", "$")):
        return os.path.basename(log) == os.path.basename(path)
    long, short = sorted((log, path), key=lambda one: one[0] in "/$", reverse=True)
    return log == path or (long[0] in "/$" and short[0] not in "/$" and long.endswith(f"/{short}"))


def _index(script: Script, source: Dialect, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on the index of an array that only programs of the script can read."""
    old, new = source.variable("array_index"), target.variable("array_index")
    programs = {command.name for command in script.runs} - STATE - TOOLS
    if old == new or not programs or str(old) in script.tree.text or listed(script.request, target):
        return
    why = f"programs that read {old} find {new}"
    if script.request.array:
        yield from _at(script, source, "array", why)
    elif read := index_read(script, source):
        yield Remark(*read, why, lost=False)


def _rank_remarks(script: Script, source: Dialect, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on the devices and the variables of a rank."""
    own = script.heeded.get(source.gpus_of_rank)
    if own and (script.request.ranks or 1) > 1 and any(script.launched(source.scheduler.node_step or "")):
        mpi = MPI_FLAVOURS[mpi_of(script, target=target.name)].command
        why = f"{source.scheduler.node_step} shows each rank its own GPUs, {mpi} all of the node"
        yield Remark(own.line, f"{own.flag}={own.value}", why, lost=False)
    ranks = variables.rank_names(source, target, mpi_of(script, target=target.name))
    for name, line in inner_names(script).items():
        if name in ranks and any(script.launched(source.scheduler.node_step or "")):
            yield Remark(line, name, f"replaced by {ranks[name]}", lost=False)


def _set_by_target(script: Script, source: Dialect, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on each variable that only the target sets, which was empty so far."""
    if source.scheduler.family == target.scheduler.family:
        return
    own = {name for name, _, _ in script.assignments}
    lines = {name: node.line for name, node in reversed(script.expansions) if name not in own}
    for name in sorted({*lines} & {*target.job_variables}):
        if name.startswith((target.variable_prefix, "NCPUS")):
            why = f"was not set by {source.title}, and {target.title} sets it"
            yield Remark(lines[name], f"${name}", why, lost=False)


def _ranks_of_whole_nodes(script: Script, source: Dialect) -> Iterator[Remark]:
    """Yield a remark on the first srun on whole nodes with the cores of a rank, but no number of ranks."""
    if (cores := script.heeded.get("--cpus-per-task")) is None:
        return
    for launch in script.launches:
        counted = launch.has("-n", "--ntasks", "--ntasks-per-node", "-c", "--cpus-per-task")
        if launch.kind == source.scheduler.node_step and not counted and not launch.unknown:
            why = f"may start a rank for each {cores.value} cores of whole nodes"
            why += ": the new job has one on each node"
            yield Remark(launch.line, launch.kind, why, lost=False)
            return


def _written_script(script: Script, source: Dialect) -> Iterator[Remark]:
    """Yield a remark on the directives of a script that a here-document or an echo writes."""
    unused = [one.start for one in discarded(script.tree)]
    for node in script.tree.all("heredoc_body"):
        for number, line in enumerate(node.text.split("\n") if node.start not in unused else (), node.line):
            if line.lstrip().startswith(f"{source.scheduler.prefix} "):
                why = f"is in a here-document, whose script stays one for {source.title}"
                yield Remark(number, line.strip(), why)
                return
    found = directive_of_text(script.tree)
    if found and found[1].startswith(source.scheduler.prefix):
        why = f"is in a text that is written to a file, whose script stays one for {source.title}"
        yield Remark(*found, why)


def _at(script: Script, source: Dialect, field: str, why: str) -> Iterator[Remark]:
    """Yield a remark on the directive that sets a field of the request."""
    if directive := source.origin(script.heeded, field):
        yield Remark(directive.option.line, directive.text, why, lost=False)


def _slots(script: Script, source: Dialect, target: Dialect) -> Iterator[Remark]:
    """Yield remarks for a target that counts only the slots of a node."""
    request = script.request
    cores, ranks = request.cpus_per_rank or 1, request.ranks or 1
    if cores > 1 and (request.ranks_per_node or 1) == 1:
        why = f"{target.title} counts cores only: its node file has {cores} lines for a node of one rank"
        yield from _at(script, source, "cpus", why)
    if ranks > 1 and request.nodes is None:
        yield from _at(script, source, "ranks", f"each of {ranks} ranks becomes a node")


def switched_off(script: Script, source: Dialect, target: Dialect) -> Iterator[Edit | Remark]:
    """Yield edits that make comments of the directives for the other scheduler, which would take effect."""
    if source.scheduler.prefix == target.scheduler.prefix:
        return
    starts = line_starts(script)
    effective = {one.line for one in misreadings.other_directives(script, source)}
    for number, line in enumerate(script.lines, 1):
        text = line.lstrip(" \t") if target.indented_directives else line
        if text.startswith(target.scheduler.prefix):
            yield Edit(starts[number - 1], starts[number - 1], "#")
            if number not in effective:
                why = "had no effect, and is switched off"
                yield Remark(number, text.strip(), why, lost=False)


def leftovers(
    script: Script, source: Dialect, target: Dialect, edits: Iterable[Edit], remarks: Iterable[Remark]
) -> Iterator[Remark]:
    """Yield remarks on names of the old scheduler that remain in the text of the new script."""
    if source.scheduler.family == target.scheduler.family:
        return
    known = {(one.line, word) for one in remarks for word in re.findall(r"\w+", one.what)}
    known |= {(one.line, word.strip("\"'")) for one in remarks for word in one.what.split()}
    known |= {(0, one.what[1:]) for one in remarks if re.fullmatch(r"\$\w+", one.what)}
    own = {name for name, _, _ in script.assignments} | variables.unset(script.request, source)
    own |= {str(source.variable("node_file"))} if for_bash(script) else set()  # the script gets one
    own |= {*source.constants, *source.constants.values()}
    ranges = [(edit.start, edit.end) for edit in edits]
    comments = [(node.start, node.end) for node in (*script.tree.all("comment"), *discarded(script.tree))]
    for name, (why, lost), at, line in _names(script, source, target):
        inside = any(start <= at < end for start, end in (*ranges, *comments))
        named = name in own and not re.match(r"is a command|stays", why)  # a variable of the script
        named |= name in script.functions
        named |= name.startswith(source.variable_prefix) and not _is_read(script, source, name, at)
        once = {(line, name), (0, name)} if lost else {(line, name)}
        if not inside and not named and not once & known:
            known |= once
            yield Remark(line, name, why, lost)


def _is_read(script: Script, source: Dialect, name: str, at: int) -> bool:
    """Return whether a name at an offset is a variable: one of the scheduler, or what a ``$`` is before.

    One that the script unsets there is not read.
    """
    before = script.tree.source[:at].rpartition(b"\n")[2]
    known = name in source.environment or name in variable_names.meanings(source)
    is_unset = re.search(rb"\bunset( -v)?( [\w ]*)?$", before) is not None
    return not is_unset and (known or re.search(rb"\$\{?[#!]?$", before) is not None)


def _names(
    script: Script, source: Dialect, target: Dialect
) -> Iterator[tuple[str, tuple[str, bool], int, int]]:
    """Yield each name of the old scheduler in the body, the reason and whether it is lost, its offset and its
    line."""
    words = "|".join(
        dict.fromkeys((source.scheduler.family.lower(), source.name, source.scheduler.command_name))
    )
    patterns = {
        rf"\b{source.variable_prefix.rstrip('_')}[A-Z]?_[A-Z]\w*": (f"is not set by {target.title}", True),
        **{
            rf"(?<![\w/.$\{{-])({'|'.join(names)})(?![\w/.=-])": (f"is a command of {owner}", True)
            for owner, names in _commands(source).items()
        },
        rf"(?i)(?<![\w/.$-])({words})({_OF_SCHEDULER})?(?![\w/.*-])": (f"names {source.title}", True),
    }
    if not script.request.output:
        patterns[source.own_logs] = (
            (f"may be the log of the job, which {target.title} writes while it runs", False)
            if source.copies_logs
            else (f"is a log of {source.title}: that of {target.title} has another name", True)
        )
    if source.scheduler.node_step is None and target.scheduler.node_step:
        patterns[r"(?<![\w.$\{-])(\w*[Mm]pi(run|exec)(\.hydra|_rsh|_mpt)?|aprun|orterun)(?![\w/.=-])"] = (
            "stays in this text",
            False,
        )
    for command in script.running("module", "ml"):
        loads = not {"unload", "rm", "del", "remove"} & {*command.literals}
        for word in command.arguments:
            if loads and re.fullmatch(rf"(?i)({words})([-.]\w+)*/\S+", script.constants.value(word) or ""):
                yield word.text, (f"names {source.title}", True), word.start, word.line
    root = script.tree
    text = (root.source if for_bash(script) else script.source).decode("latin-1")
    start = root.start if script.directives.first_command else len(text)
    for pattern, why in patterns.items():
        for match in re.finditer(pattern, text[start:]):
            at = start + match.start()
            line = text.count("\n", 0, at) + 1
            if not for_bash(script) and script.lines[line - 1].lstrip().startswith("#"):
                continue
            file = why[0].startswith("names") and any(
                one.start <= at < one.end for one in root.all("file_redirect")
            )
            if not (file or _printed(root, at) or _is_label(root, at)):
                yield match[0], why, at, line


def _commands(source: Dialect) -> dict[str, list[str]]:
    """Return the commands that only the source has, by the scheduler or the site whose they are."""
    owners = source.owners | dict.fromkeys(filter(None, [source.scheduler.node_step]), source.title)
    found: dict[str, list[str]] = {}
    for name, owner in owners.items():
        found.setdefault(owner, []).append(name)
    return found


def _is_label(root: Node, at: int) -> bool:
    """Return whether an offset is in a text that a command prints, with a colon or an equals sign behind the
    name there, and no dollar sign before it: ``echo "PBS_O_WORKDIR: $D" > file``."""
    if not re.match(rb"\w+ ?[:=]", root.source[at:]) or re.search(rb"[${]$", root.source[:at]):
        return False
    texts = (one for one in root.all("string", "raw_string") if one.start < at < one.end)
    commands = (above for one in texts for above in one.above() if above.type == "command")
    name = next((one.get("name") for one in commands), None)
    return name is not None and os.path.basename(name.text) in _TALK


def _printed(root: Node, at: int) -> bool:
    """Return whether an offset is in a comment, or in a command that only prints or has been looked at."""
    node = root
    while (inner := next((one for one in node.children if one.start <= at < one.end), None)) is not None:
        line = node.source[node.source.rfind(b"\n", 0, at) + 1 : at]
        if inner.type == "comment" or (inner.type == "heredoc_body" and _COMMENT.match(line)):
            return True
        if inner.type == "command" and (name := inner.get("name")) is not None:
            above = inner.parent if inner.parent and inner.parent.type == "redirected_statement" else None
            written = above is not None and not re.search(r"(?s)^[^<>]*\d?>&\d[^<>]*$", above.text)
            written = written or (is_written(inner) and directive_of_text(root) is not None)
            if (os.path.basename(name.text) in _TALK and not written) or name.start <= at < name.end:
                return True
        node = inner
    return False
