"""Conversion of a request to the directives of one scheduler."""

from __future__ import annotations

import os
import re

from jobgen.convert.directive_options import Written
from jobgen.convert.request_reader import dependencies
from jobgen.launch.accelerators import ACCELERATORS, GENERIC_RESOURCES
from jobgen.plan.directives import unpattern
from jobgen.schedulers.base import queue_fault
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.request import Lack, Request
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.values import arrays

Lost = list[Lack]
_ALWAYS_SET = {"HOME", "LOGNAME", "PATH", "PWD", "SHELL", "USER"}  # where people submit
_DEFAULTS = {"-l select=1", "-l nodes=1:ppn=1", "-l place=scatter"}  # what qsub requests without a directive


def write(content: ScriptRequest, source: Dialect, target: Dialect, extra: Written) -> tuple[list[str], Lost]:
    """Return the lines of the directives, and what this scheduler cannot express."""
    lost: Lost = []
    values = _values(content, source, target, extra.chunk, lost)
    lines = []
    for key in target.scheduler.request_forms:
        value = values.get(key)
        found = value if isinstance(value, list) else [value] * bool(value)
        lines += [target.scheduler.directive(key, one) for one in found]
    return [f"{target.scheduler.prefix} {line}" for line in (*lines, *extra.lines)], lost


def _values(
    content: ScriptRequest, source: Dialect, target: Dialect, chunk: str, lost: Lost
) -> dict[str, object]:
    """Return the values of the target's ``request_forms``."""
    request, queue = content.request, _queue(content.request.queue, target, lost)
    named = request.nodes is not None or request.ranks is not None or request.chunks
    resources = _resources(request, target, chunk, lost, content.default_nodes or not named)
    array, depend = _array(request, target, lost), ",".join(dependencies(request, target))
    logs = _logs(content, source, target, lost)
    unnamed = content.joined_as_error and "output" not in logs and target.copies_logs
    unsure = [one for one in content.names if one not in _ALWAYS_SET]
    if unsure and target.refuses_unset_names and not source.refuses_unset_names:
        option, why = source.names_option, "if one is not set at the submission, {} refuses the script"
        what = f"the variables {', '.join(unsure)}"
        lost.append(Lack(option, what, why.format(target.command), lost=False))
    must_rerun = bool(array) and target.array_needs_rerun and request.rerun is False
    if must_rerun:
        why = f"{target.title} takes only arrays whose tasks may run again"
        lost.append(Lack("array", "a job that is not run again", why))
    return {
        "name": request.name and target.job_name(request.name),
        "queue": queue,
        "account": request.account,
        "resources": resources,
        "walltime": None if request.walltime is None else target.scheduler.clock(request.walltime),
        "array": array,
        "dependency": depend,
        **logs,
        "join": request.join and ("eo" if unnamed else "oe"),
        "mail": _mail(content, source, target, lost),
        "mail_user": request.mail_user,
        "directory": content.directory,
        "exclusive": request.exclusive and target.scheduler.forms.get("exclusive"),
        "memory": "0" if _gives_all_memory(content, source, target) else None,
        "hold": content.hold,
        "requeue": request.rerun is True,
        "no_requeue": request.rerun is False and not must_rerun,
        "all_variables": content.all_variables,
        "names": ",".join(content.names),
    }


def _gives_all_memory(content: ScriptRequest, source: Dialect, target: Dialect) -> bool:
    """Return whether whole nodes have all their memory without a request of it: Slurm gives the default of
    the site for each core."""
    request = content.request
    keys = [key for resources in (request.totals, *request.chunks) for key in resources]
    requested = request.mem or any("mem" in key for key in keys)
    return request.exclusive and target.node_step is not None and source.node_step is None and not requested


def _queue(queue: str | None, target: Dialect, lost: Lost) -> str | None:
    """Return the queue; the first of several where a job has one."""
    first, *others = dict.fromkeys((queue or "").split(","))
    if not target.scheduler.behaviour.queue_lists:
        why = f"{target.title} takes one: {first} is written"
        lost += [Lack("queue", f"the queues {','.join(others)}", why)] * bool(others)
        queue = first
    if queue and "@" in queue and not target.scheduler.behaviour.queue_servers:
        queue, _, server = queue.partition("@")
        lost.append(Lack("queue", f"the server {server}", f"{target.title} has no server in a queue"))
    if queue and target.scheduler.is_reservation(queue):
        why = f"{target.title} reads a queue of this name as a reservation"
        lost.append(Lack("queue", f"the queue {queue}", why))
        return None
    if queue and (fault := queue_fault(target.scheduler, queue)):
        lost.append(Lack("queue", f"the queue {queue}", fault))
        return None
    return queue or None


def _resources(request: Request, target: Dialect, chunk: str, lost: Lost, default: bool) -> list[str]:
    """Return the lines of a request; ``default``: no directive requests nodes or ranks."""
    number, devices = request.gpus_per_node, None
    if number is not None:
        devices = target.scheduler.devices(ACCELERATORS[GENERIC_RESOURCES.get(request.accelerator, "cuda")])
    lines, lacking = target.scheduler.resources(request, (devices or "").format(n=number), chunk)
    if default and request.cpus_per_rank is None and set(lines) <= _DEFAULTS:
        lines = []
    lost += lacking
    if number and devices is None:
        lost.append(Lack("gpus", f"{number} x {request.accelerator}", f"{target.title} supports only GPUs"))
    return lines


# A mark of a template, %%x%%, in which Slurm would read each %% as one %.
_MARK = re.compile(r"(%%[A-Za-z][\w-]*%%)")
_MARKS = re.compile(rf"%%{_MARK.pattern}%%")  # with each % for Slurm
_LONGEST_LIST = 1000  # indices


def listed(request: Request, target: Dialect) -> list[int]:
    """Return the indices of an array if the script must look them up, because the scheduler has one range."""
    array = arrays.read(request.array) if request.array else None
    if array is None or not 2 <= array.size <= _LONGEST_LIST or target.scheduler.array(array) is not None:
        return []
    whole = arrays.Array(((0, array.size - 1, 1),), array.limit)
    return array.indices() if target.scheduler.array(whole) is not None else []


def _array(request: Request, target: Dialect, lost: Lost) -> str | None:
    if request.array is None:
        return None
    text = target.scheduler.array(array) if (array := arrays.read(request.array)) else None
    if array and (indices := listed(request, target)):
        text = target.scheduler.array(arrays.Array(((0, len(indices) - 1, 1),), array.limit))
        why = f"becomes {text}, by which the script looks up its index; names of logs have the new one"
        lost.append(Lack("array", f"the array {request.array}", why, lost=False))
    if text is None:
        lost.append(Lack("array", f"the array {request.array}", f"{target.title} takes {target.array_forms}"))
    return text


def _mail(content: ScriptRequest, source: Dialect, target: Dialect, lost: Lost) -> str:
    """Return the events of mail; each task of an array sends it if those of the source do."""
    request, of_array = content.request, content.request.array or content.index_needed
    given = request.mail or EVENT_LETTERS[source.default_mail] * bool(request.mail_user)
    events = target.scheduler.mail(event for event, letter in EVENT_LETTERS.items() if letter in given)
    written = request.mail if source.family == target.family else events
    if not of_array and source.family == target.family:
        return written.replace(target.task_mail or " ", "")  # which qsub refuses without an array
    if not of_array or not set(given) - set(EVENT_LETTERS["none"]):
        return written
    if request.mail_of_tasks and target.task_mail:
        return target.mail_joint.join([written or events, target.task_mail])
    if not request.mail_of_tasks and not target.task_mail:
        why = f"{target.title} sends it for each task of the array, {source.title} for the array as a whole"
        lost.append(Lack("mail", target.scheduler.request_forms["mail"].format(events), why, lost=False))
    return written


def _logs(content: ScriptRequest, source: Dialect, target: Dialect, lost: Lost) -> dict[str, str]:
    """Return the output files; another scheduler gets the names that they have by default.

    A name that the scheduler does not support is left to the script.
    """
    request, found = content.request, {}
    of_tasks = "%[aA]" if request.array else "%[aAj]"  # that make a name of each task
    of_array = request.array is not None or (content.index_needed and target.percent_codes)
    for key, path in {"output": request.output, "error": None if request.join else request.error}.items():
        default = default_log(source, "error" if content.joined_as_error else key, bool(path), of_array)
        if "/" in (request.name or ""):  # a folder for Slurm, which PBS leaves out of the name
            default = default.replace("%x", os.path.basename(request.name or ""))
        if not path and source.family != target.family and not (request.join and key == "error"):
            path = default
        if not path:
            continue
        log = _in_codes(path, content, source, default)
        why = request.array and path != default and _numbered(log, source, target)
        numbered = [Lack(key, f"the output file {path}", why, lost=False)] if why else []
        lost += numbered if source.task_suffix else []
        if (request.array or content.index_later) and not re.search(of_tasks, log):
            log += source.task_suffix
        if source.copies_logs and not target.copies_logs:
            log = log.rpartition(":")[2]
        if request.array and target.task_suffix:  # which follows each name
            log = log.removesuffix(target.task_suffix)
        if target.percent_codes and "$" in log:
            log = re.sub(r"\$(USER|LOGNAME|PBS_O_LOGNAME)\b", "%u", log)
            if "$" in log:
                why = f"{target.title} expands no variables in a name: write the path"
                lost.append(Lack(key, f"the output file {path}", why))
                continue
        # Only the job knows its own name, or the index of its task.
        later = "aj" * (content.index_later and source.family != target.family) + "x" * (not request.name)
        at_run_time = not target.percent_codes and not {*re.findall(r"%(.?)", log)}.isdisjoint(later)
        if at_run_time and _by_script(content, key, log, target):
            continue
        placed = _placed(log, key, content, source, target, lost)
        try:
            found[key] = target.scheduler.log(request.name or "job", placed)
            found[key] = _MARKS.sub(r"\1", found[key]) if target.percent_codes else found[key]
            lost += numbered if target.task_suffix else []  # but of none that the script opens
        except ValueError as error:
            if not _by_script(content, key, log, target):
                lost.append(Lack(key, f"the output file {path}", str(error)))
    return found


def _numbered(log: str, source: Dialect, target: Dialect) -> str:
    """Return which scheduler alone appends the index of a task to the name of a log; empty for none."""
    if bool(source.task_suffix) == bool(target.task_suffix) or not re.search("%[aAj]", log):
        return ""
    if target.task_suffix and log.endswith(target.task_suffix):
        return ""
    title = target.title if target.task_suffix else source.title
    return f"{title} appends -INDEX to the name of the log of each task"


def _placed(log: str, key: str, content: ScriptRequest, source: Dialect, target: Dialect, lost: Lost) -> str:
    """Return the path of a log that the source opens in the directory of the job."""
    directory, whole = content.directory, log.startswith(("/", "~", "$"))
    if directory in (None, ".") or whole or source.copies_logs == target.copies_logs:
        return log
    if source.copies_logs:
        why = f"{target.title} writes it below {directory}: write the whole path"
        lost.append(Lack(key, f"the output file {log}", why, lost=False))
        return log
    return os.path.join(directory, log.removeprefix("./"))


def default_log(source: Dialect, key: str, in_directory: bool, array: bool) -> str:
    """Return the name that the scheduler chooses itself."""
    if in_directory and source.directory_logs:
        return source.directory_logs[key].format("%A[%a]" if array else "%j")
    return source.default_logs.get(key, "").format(f"%A{source.task_suffix or '.%a'}" if array else "%j")


def _in_codes(path: str, content: ScriptRequest, source: Dialect, default: str) -> str:
    """Return a path with Slurm's filename patterns."""
    log = path if source.percent_codes or path == default else unpattern(path)
    log = _MARK.sub(r"%%\1%%", log) if source.percent_codes else log
    log += default if log.endswith("/") and default else ""
    log = re.sub("%(.)", lambda code: source.batch_codes.get(code[1], code[0]), log)
    no_index = source.no_index and not content.request.array and not content.index_later
    return log.replace("%a", source.no_index) if no_index else log


def _by_script(content: ScriptRequest, key: str, log: str, target: Dialect) -> bool:
    """Let the script write the file if it can; return whether it does."""
    codes = set(re.findall(r"%(.?)", log))
    known = codes <= set("jJAaxNu%") and (not content.request.array or bool(codes & set("axjJ")))
    if target.job_number and known and ":" not in log:
        content.script_logs[key] = log.replace("%x", content.request.name or "%x")
    return key in content.script_logs
