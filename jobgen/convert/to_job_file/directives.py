"""The directives of a script as options of a job file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.convert import directive_options, launch_nodes, log_differences, request_reader, start_directory
from jobgen.convert.request_reader import line_of
from jobgen.convert.result import Remark, hint
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.main_command import last_launch
from jobgen.launch.accelerators import GENERIC_RESOURCES
from jobgen.plan.directives import unpattern
from jobgen.schedulers.base import clock, matches
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.request import DirectiveOption
from jobgen.schedulers.table import named, queued
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script

_NO_NUMBER = "is no number: set nodes, ranks_per_node and cpus_per_rank, with which jobgen counts"
_ONE_LOG = "jobs of jobgen have one log file"
_MEMORY = ("-l mem=", "-l pmem=")


# The fields of a request by the keys of jobgen's options that have another name.
_FIELDS = {
    "mail": "mail_user", "workdir": "directory", "gpus_per_node": "gpus", "accelerator": "gpus",
    "ranks_per_node": "ranks", "cpus_per_rank": "cpus", "mem": "memory",
}  # fmt: skip


def limits(file: JobFile, script: Script) -> None:
    """Set the time limit of the queue if there is no other, and directives without a limit.

    Add remarks on the file of errors that the scheduler writes without a directive, on the number of another
    job, and on the server of a queue.
    """
    request, source = script.request, script.dialect
    if request_reader.waits_for_number(request) and (job := source.origin(script.heeded, "dependency")):
        why = f"names a job of {source.title}: for another scheduler write the number of a job there"
        file.hint(job.option.line, job.text, why)
    if script.is_pbs and "@" in (queue := file.text_of("queue")):
        why = f"names a server of {source.title}: for another scheduler write the queue alone"
        file.hint(line_of(script, "queue"), f"-q {queue}", why)
    into_error = (joined := script.heeded.get("-j")) is not None and joined.value == "eo"
    if source.copies_logs and not request.error and (into_error or not request.join) and script.is_batch:
        name = source.default_logs["error"].format("ID").replace("%x", request.name or "NAME")
        file.hint(script.directives.first, f"the error file {name}", _ONE_LOG)
    file.values.setdefault("walltime", "queue")
    if script.request.walltime == 0:
        file.add("directive", source.scheduler.directive("walltime", 0))
    all_memory = f"{source.scheduler.keys.memory[0]}=0"
    if script.request.mem == 0 and all_memory not in file.list("directive"):
        file.add("directive", all_memory)


def set_name(file: JobFile, script: Script) -> None:
    """Name the job after its script, if it has no name, and change a name that jobgen refuses."""
    if script.name:
        file.values.setdefault("name", script.name)
    name = str(file.values.get("name", "job"))
    if not matches(script.dialect.scheduler.name_pattern, name):
        plain = re.sub(r"[^\w.+-]|[^\x00-\x7f]", "_", name)
        file.values["name"] = re.sub(r"^[^A-Za-z0-9]+", "", plain)[:100] or "job"
        file.hint(line_of(script, "name"), f"the name {name}", f"becomes {file.values['name']}")


def read_directives(file: JobFile, script: Script, totals: bool) -> None:
    """Set the options that the directives of a script correspond to; the body is not read."""
    content, request, source = request_reader.read(script, totals=totals), script.request, script.dialect
    for option, what, why in content.unsure:  # the other sizes are read anew
        if launch_nodes.OF_ALPS in why or option.flag.startswith("--ntasks") or what.startswith(_MEMORY):
            file.hint(option.line, what, why)
    typed = f"{request.gpu_type}:{request.gpus_per_node}" if request.gpu_type else ""
    devices = typed if typed and file.accepts("gpus_per_node", typed) else request.gpus_per_node
    named_account = any(option.flag in ("-A", "--account") for option in script.options)
    plain = {
        "name": request.name, "queue": request.queue,
        "account": request.account if named_account else None, "mail": request.mail_user,
        "workdir": content.directory if content.directory != "." else None,
        "walltime": clock(request.walltime) if request.walltime else None,
        "dialect": None if source.scheduler is named(source.scheduler.command_name, None) else source.name,
        "nodes": request.nodes, "gpus_per_node": devices,
        "ranks_per_node": request.ranks_per_node, "cpus_per_rank": request.cpus_per_rank or None,
        "mem": f"{request.mem}M" if request.mem else None,
        "accelerator": GENERIC_RESOURCES.get(request.accelerator),
    }  # fmt: skip
    if (content.directory or "").startswith("~"):
        at = line_of(script, *source.directory_options, "directory")
        no_home = f"{source.title} does not expand ~: write the whole path"
        file.lose(at, f"workdir {plain.pop('workdir')}", no_home)
    for key, value in plain.items():
        if value is not None and not _as_directive(file, source, key, value):
            file.add(key, value, line_of(script, _FIELDS.get(key, key)))
    others = _options(file, script, content)
    if request.gpus_per_node:
        others = [kept for one in others if (kept := without_devices(one, request.accelerator))]
    if request.rerun is not None:
        others.insert(0, source.scheduler.request_forms["requeue" if request.rerun else "no_requeue"])
        _run_once(file, script)
    for directive in others:
        line = line_of(script, directive.partition("=")[0])
        if fault := source.scheduler.misplaced(directive):
            file.lose(line, directive, fault)
        else:
            file.add("directive", directive, line)
    for name, value in content.exports:
        file.set_variable(name, value, line_of(script, "--export", "-v"))


def _run_once(file: JobFile, script: Script) -> None:
    """Keep the job of another scheduler from running again, if the script does."""
    for name, other in queued().items() if script.request.rerun is False else ():
        option = other.request_forms.get("no_requeue")
        if name == script.dialect.scheduler.command_name or option is None:
            continue
        if script.request.array and DIALECTS[other.name].array_needs_rerun:
            why = f"{other.title} takes only arrays whose tasks may run again"
            file.hint(line_of(script, "--no-requeue", "-r"), "a job that is not run again", why)
        else:
            file.of_others[name] = {"directive": [option]}


def without_devices(directive: str, accelerator: str) -> str:
    """Return a directive without the devices that are an option of the job file; empty without others."""
    name, _, value = directive.partition("=")
    if name == "--gres":
        parts = [one for one in value.split(",") if one.partition(":")[0] != accelerator]
        return f"{name}={','.join(parts)}" if parts else ""
    return "" if name in ("--gpus", "--gpus-per-node", "--gpus-per-task") else directive


def _as_directive(file: JobFile, source: Dialect, key: str, value: object) -> bool:
    """Set a directive for a value that the scheduler accepts, and jobgen's option does not."""
    if key not in ("mail", "queue", "account") or file.accepts(key, str(value)):
        return False
    directive = source.scheduler.directive("mail_user" if key == "mail" else key, value)
    return file.try_add("directive", [*file.list("directive"), directive])


def _options(file: JobFile, script: Script, content: ScriptRequest) -> list[str]:
    """Set the options that the directives correspond to; return the texts of directives without an option."""
    source = script.dialect
    request, write = script.request, source.scheduler.directive
    others = []
    if request.array and not file.try_add("array", re.sub(r"[][]", "", request.array)):
        others.append(write("array", request.array))
    after = [f"{kind}:{job}" for one in request.depend for kind, job in request_reader.jobs(one)]
    if request.depend and not file.try_add("after", after):
        others.append(write("dependency", ",".join(request.depend)))
    if request.exclusive:
        file.values["exclusive"] = True
    if request.output:
        others += _output(file, script, content)
    elif read := log_differences.first_own_log(script):
        _own_log(file, script, read)
    file.remarks += start_directory.default_log(script, content.directory)
    two = source.copies_logs and script.heeded.get("-e") and not script.heeded.get("-j")  # in a directory
    has_error = request.error and log_differences.written_logs(script, ["error"])
    if has_error and (two or request.error != request.output):
        file.lose(line_of(script, "error", "-e"), f"the error file {request.error}", _ONE_LOG)
    others += _mail_on(file, script, content)
    refused = [one for one, _ in directive_options.write(content.directives, source, source, None).lost]
    for key, one in content.directives.items():
        if one in refused or not file.try_add(key, one.value):
            others.append(_quoted(one.option, one.text, source))
    for option, text, why in content.unconverted:
        if not option.flag:
            if re.search(r"\w", text):
                file.lose(option.line, text, "belongs to no option of a directive")
            continue
        if option.flag == "--signal" and _signal(file, script, option.value):
            continue
        if option.flag == "--signal" and _reaches_nothing(script, option.value):
            why = "is left out: it is for steps, and the script has none; signal sends one to the ranks"
            file.hint(option.line, text, why)
            continue
        if option.flag == "--input" and option.value != "none":
            file.lose(option.line, text, "the program has no standard input")
        elif option.flag == "--gpus" and "divisible" in why and request.nodes:
            file.lose(option.line, text, why)
        if why.endswith(" number") and not re.fullmatch(r"[\dkm]+-[\dkm]+", option.value):
            file.hint(option.line, text, _NO_NUMBER)
            file.remarks += _memory(script)
        if text.startswith(("-l select", "-l nodes")):
            unknown = why.endswith("cannot be read")
            file.remarks += [Remark(option.line, text, why), *(_memory(script) if unknown else ())]
        elif re.match(r"-l (procs|ncpus|ngpus)=(?!\d+(:|$))", text):
            file.remarks += [Remark(option.line, text, _NO_NUMBER), *_memory(script)]
        elif re.fullmatch("-[^-]", option.flag) and option.flag[1] not in source.scheduler.grammar.letters:
            why = f"is no option of {source.command}: only a site that has it takes the job"
            file.hint(option.line, text, why)
            others.append(text)
        elif text not in _WRITTEN and not text.startswith(write("dependency", "")):
            others.append(_quoted(option, text, source))
    others += _as_they_are(source, content)
    select = script.heeded.get("-l select")
    if (request.nodes or 1) > 1 and source.chunks_share_nodes and select and not request.place:
        file.hint(select.line, NO_PLACE, f"may put two parts {_SPREAD}")
    return list(dict.fromkeys(others))


def unpack(file: JobFile, script: Script) -> None:
    """Replace a directive by which several nodes of the job file are or may be on one host."""
    given = script.heeded.get("-l place")
    text = f"-l place={script.request.place}"
    nodes = len(file.components) or file.values.get("nodes", 1)
    if nodes == 1 or given is None or text not in file.list("directive"):
        return
    words = text.removeprefix("-l place=").split(":")
    rest = [one for one in words if one not in (*_CLOSE, *_ONE_HOST, "shared", "scatter")]
    spread = [":".join(["-l place=scatter", *rest])] * (rest not in ([], ["excl"]))
    file.values["directive"] = [*(one for one in file.list("directive") if one != text), *spread]
    packed = not {*words}.isdisjoint(("pack", *_ONE_HOST))
    if packed or "scatter" not in words:
        why = f"{'puts all' if packed else 'may put several'} chunks {_SPREAD}"
        why += ": for one host write one node with the sum of them" * packed
        file.lose(given.line, text, why, lost=packed)


_CLOSE = ("free", "pack", "vscatter")  # arrangements; without one it is free
_ONE_HOST = ("group=host", "group=vnode")
_SPREAD = "on one host; jobgen's job has each on a host of its own"
NO_PLACE = "select without place"


def _memory(script: Script) -> Iterator[Remark]:
    """Yield a remark on the memory of a core, a device or a job, the number of whose parts is not known."""
    nodes = script.request.chunks[0].get("", "1") if script.request.chunks else "1"
    for key in (*script.dialect.scheduler.keys.memory, "-l pmem"):
        is_total = key == "-l mem" and re.fullmatch(r"[\w.-]+", nodes) is None
        each = is_total or "-per-" in key or key == "-l pmem"
        if each and "-l select" not in script.heeded and (option := script.heeded.get(key)):
            verb = "divided" if is_total else "multiplied"
            why = f"the number by which it is {verb} is not known: set mem, the memory of a node"
            yield hint(option.line, f"{key}={option.value}", why)


_WRITTEN = ("--open-mode=append",)  # every job of jobgen has it


def _output(file: JobFile, script: Script, content: ScriptRequest) -> list[str]:
    """Set the log; return it as a directive if jobgen's option does not accept it."""
    path, option, source = str(script.request.output), None, script.dialect
    if not source.copies_logs:  # the scheduler opens it, in the directory of the job
        if (directive := source.origin(script.heeded, "output")) is not None:
            option = directive.option
        path = path if content.directory == "." else os.path.join(content.directory or "", path)
    kept = any(one.flag == "--open-mode" for one in script.options)  # as a directive, or as that of the job
    codes = {*re.findall(r"%\d*([jJaA])", path.replace("%%", ""))}
    array = "array" in file.values
    of_job = codes & {"j", "J"} or ("A" in codes and ("a" in codes or not array))
    if option is not None and not (kept or of_job or path.startswith("/dev/")):
        later = "each task of the array" if array and "A" in codes else "a later job"
        why = f"{later} appends to this log; that of the script empties it first"
        file.hint(option.line, f"{option.flag} {option.value}", why)
    return [] if _log(file, source, path, array) else [source.scheduler.directive("output", path)]


def _own_log(file: JobFile, script: Script, read: re.Match[bytes]) -> None:
    """Keep the name of the log that the script itself uses, or name it if the job's has another name."""
    of_job, of_task = script.dialect.own_log_names
    array = "array" in file.values
    if not of_job or not _log(file, script.dialect, of_task if array else of_job, array):
        number = script.tree.line + read.string.count(b"\n", script.tree.start, read.start())
        file.hint(number, read[0].decode(), "may be the log of the script: that of the job has another name")


def _signal(file: JobFile, script: Script, value: str) -> bool:
    """Set the signal that asks the ranks to save, for the ranks or the script; return whether it is one.

    Without a number it is 60 seconds before the end, and without ``B:`` Slurm sends it to the steps of the
    job only: a program that is none gets no signal.
    """
    match = re.fullmatch(r"(B:)?(?:SIG)?(USR[12])(?:@(\d+))?", value)
    if match is None or int(match[3] or 60) >= (script.request.walltime or 10**6):
        return False
    launch = last_launch(script)
    steps = [one for one in (launch.chain if launch else ()) if one.kind == script.dialect.node_step]
    return bool(match[1] or steps) and file.try_add("signal", f"{match[2]}@{match[3] or 60}")


def _reaches_nothing(script: Script, value: str) -> bool:
    """Return whether a signal is for steps, and the script starts none: its launcher runs outside of them."""
    step, to_shell = script.dialect.node_step, "B" in value.partition("@")[0].rpartition(":")[0]
    if to_shell or step is None or last_launch(script) is None:
        return False
    return step not in script.tree.text and not any(script.named("bash", "sh", "source", "."))


def _quoted(option: DirectiveOption, text: str, source: Dialect) -> str:
    """Return a directive with its value as one word."""
    word = source.scheduler.grammar.word(option.value)
    return text if word == option.value or option.flag[:2] != "--" else f"{option.flag}={word}"


def _as_they_are(source: Dialect, content: ScriptRequest) -> Iterator[str]:
    """Yield directives that can be translated for other schedulers, but have no option in jobgen."""
    values = {"hold": content.hold, "all_variables": content.all_variables, "names": ",".join(content.names)}
    found = (key for key in values if values[key] and key in source.scheduler.request_forms)
    yield from (source.scheduler.directive(key, values[key]) for key in found)
    yield from content.own


def _log(file: JobFile, source: Dialect, path: str, array: bool) -> bool:
    """Set the file of the output if jobgen accepts it; return whether it does."""
    log = path if source.percent_codes else unpattern(path)
    of_task = any(f"%{code}" in log for code in source.scheduler.one_file_a_task)
    fits = of_task if array else not re.search("%[aA]", log)
    try:
        source.scheduler.log("job", log)
    except ValueError:
        return False
    return fits and file.try_add("log", log)


def _mail_on(file: JobFile, script: Script, content: ScriptRequest) -> Iterator[str]:
    """Set the events of mail, unless they are jobgen's default with an address.

    Yield the directive with which each task of an array sends it.
    """
    request, source = script.request, script.dialect
    letters = request.mail or EVENT_LETTERS[source.default_mail] * bool(request.mail_user)
    events = [name for name, letter in EVENT_LETTERS.items() if letter in letters]
    if events and not ("mail" in file.values and events == ["begin", "end", "fail"]):
        file.values["mail_on"] = ",".join(events)
    given = script.heeded.get("--mail-type")
    kept = any(option.flag == "--mail-type" for option, _, _ in content.unconverted)
    if given is not None and "ALL" in given.value.upper().split(",") and not kept:
        why = "becomes mail at the begin, the end and a failure: none of a requeue or an invalid dependency"
        file.hint(given.line, f"--mail-type={given.value}", why)
    if not request.array or not request.mail_of_tasks or not events or events == ["none"]:
        return
    mail = source.origin(script.heeded, "mail") or source.origin(script.heeded, "mail_user")
    if mail is not None and source.task_mail:
        yield mail.text
    if mail is not None:
        others = (one for one in DIALECTS.values() if one.task_mail and one.scheduler is not source.scheduler)
        titles = " and ".join(dict.fromkeys(one.title for one in others))
        why = (
            f"{source.title} sends it for each task of the array, a job for {titles} for the array as a whole"
        )
        file.hint(mail.option.line, mail.text, why)
