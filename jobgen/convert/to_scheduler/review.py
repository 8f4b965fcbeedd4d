"""Remarks on what the user should check in a converted script, and on what of the old scheduler it keeps."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from itertools import islice

from jobgen.convert import differences, misreadings, start_directory
from jobgen.convert.launch_nodes import OF_CORES, SIZE_OF_NODE, counts_node, named_cores
from jobgen.convert.log_differences import shared_log, with_values
from jobgen.convert.request_reader import at_directive, has_directives, waits_for_number
from jobgen.convert.result import Edit, Remark, hint
from jobgen.convert.to_scheduler import mpirun_line, variables
from jobgen.convert.to_scheduler.launch_calls import calls, other_launchers
from jobgen.convert.to_scheduler.start_lines import has_first_line, line_starts, threads_of_ranks
from jobgen.convert.variable_names import inner_names
from jobgen.launch.launchers import MPI_FLAVOURS
from jobgen.schedulers.base import key_of
from jobgen.script.command_kinds import PRINT, STATE, TOOLS
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.launches import Launch
from jobgen.script.mpi_of_script import mpi_of
from jobgen.script.script import Script

_ENTERS = ("cd", "pushd", "mkdir", "TMPDIR", "cp", "mv", "rsync", "scp", "unzip", "tar")
# Commands that make a directory which is missing, and those that make its parents, too.
_MAKES = re.compile(r"rsync\b|cp\s+(-\S+\s+)*(-\w*[rRa]|--recursive|--archive)|(.*\s)?mkdir\b", re.DOTALL)
_MAKES_PARENTS = re.compile(r"(.*\s)?mkdir\b.*\s(-\w*p\w*|--parents)(\s|$)", re.DOTALL)
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")
_NO_USE = (PRINT | STATE | {"[", "test"}) - {"cd", "pushd"}
_GPUS = {"--gres", "--gpus", "--gpus-per-node"}
_NO_DEVICES = re.compile(r"((gres[:/])?gpu:)?(\w+:)?0|none")  # the request of none
_OTHER_DEVICES = re.compile(r"\b(dcu|mlu|gcu)\b")  # that are no GPUs for Slurm


def remarks(
    script: Script, target: Dialect, content: ScriptRequest, defined: Collection[str]
) -> Iterator[Remark]:
    """Yield remarks on translations that the user should check; ``defined`` are the variables that the new
    script sets."""
    request, given, source = script.request, script.heeded, script.dialect
    yield from _shell(script, target)
    if request.name and (new := target.job_name(request.name)) != request.name:
        option = given[key_of(source.scheduler.request_forms["name"])]
        yield hint(option.line, request.name, f"the name of the job becomes {new}")
    if waits_for_number(request):
        why = f"names a job of {source.title}: write the number of a job of {target.title}"
        yield from at_directive(script, "dependency", why)
    place = request.place or "scatter" * ("nodes" in request.totals)
    if source.chunks_share_nodes and request.several and "scatter" not in place.split(":"):
        yield from at_directive(script, "ranks", "each chunk becomes a node")
    if target.scheduler.behaviour.hosts_by_core and not source.scheduler.behaviour.hosts_by_core:
        yield from _slots(script, target)
    yield from _rank_remarks(script, target)
    yield from differences.slots_of_one_task(script)
    yield from differences.mail(script, target)
    fields = [one for one in ("output", "error") if one not in content.script_logs]
    yield from differences.index(script, target, defined)
    yield from differences.remarks(script, target, {one: source.default_logs.get(one, "") for one in fields})
    yield from _job_directory(script, target)
    yield from _devices(script, target, content)
    for field in content.script_logs:  # which the target cannot name
        why = f"the script opens it with exec; what is printed before that is in the log of {target.title}"
        yield from at_directive(script, field, why)
    yield from shared_log(script, target, script.request.array is not None or content.index_later)
    if target.copies_logs > source.copies_logs:
        yield from start_directory.default_log(script, content.directory)
    if source.node_step and request.exclusive:
        yield from _whole_nodes(script)
    if source.node_step and not target.node_step:
        yield from misreadings.in_directory(script)
        yield from _bare_nodes(script, target)
        yield from _cores_with_gpus(script)
    if source.node_step != target.node_step:
        yield from _more_cores(script, target)
    if threads_of_ranks(script, target, content):
        of_others = [call.command.node for call in other_launchers(script, ())]
        yield from islice(misreadings.threads_outside(script, of_others), 1)
    if inert := script.directives.inert:
        more = f"; {len(inert) - 1} more are comments, too" if len(inert) > 1 else ""
        yield hint(inert[0].number, inert[0].text.strip(), f"is a comment, and stays one{more}")
    if not has_directives(script):
        why = "it is not treated as a batch script: no directives and no cd are added"
        yield hint(1, f"without {source.scheduler.prefix}", why)
        new = "the new command requests none, and starts its ranks here"
        yield from differences.own_jobs(script, new) if source.node_step != target.node_step else ()
    yield from misreadings.unreadable(script)
    yield from misreadings.own_name(script)
    yield from misreadings.own_lines(script)
    for late in script.directives.late:
        yield hint(late.number, late.text.strip(), "has no effect after the first command")


def _devices(script: Script, target: Dialect, content: ScriptRequest) -> Iterator[Remark]:
    """Yield remarks on GPUs that the job has without a directive, or does not have."""
    request, source = script.request, script.dialect
    named = request.gpus_per_node or any("ngpus" in chunk for chunk in request.chunks)
    named = named or any(re.search(r"gpus?=", text) for _, text, _ in content.unconverted)
    hidden = target.hides_devices and not source.hides_devices
    if hidden and not named and misreadings.names_devices(script) and has_directives(script):
        why = f"the script requests none: {target.title} hides those of the node"
        yield hint(script.directives.first, "GPUs", why)
    other = "--gres" in script.heeded and _OTHER_DEVICES.search(script.heeded["--gres"].value)
    none = any(_NO_DEVICES.fullmatch(script.heeded[one].value) for one in _GPUS & script.heeded.keys())
    devices = request.gpus_per_node or request.gpus or request.exclusive or other or none
    if source.hides_devices and not devices and (place := _unrequested_devices(script)):
        why = f"no directive requests GPUs: if {source.title} gives them with whole nodes, request them"
        yield hint(*place, why)


def _unrequested_devices(script: Script) -> tuple[int, str] | None:
    """Return the line and the words that need GPUs in a script whose directives request none."""
    launch = next((one for one in script.launches if one.row.once_a_node), None)
    if launch and has_directives(script):
        return launch.line, launch.title
    of_cuda = misreadings.use_of_cuda(script) if has_directives(script) else None
    return misreadings.directive_of_gpus(script) or of_cuda


def _whole_nodes(script: Script) -> Iterator[Remark]:
    """Yield remarks on the ranks and the memory of a job with whole nodes."""
    yield from differences.ranks_of_whole_nodes(script)
    if own := script.heeded.get("--mem-per-cpu"):
        why = "is that of all cores of the nodes in an exclusive job: here it is that of the requested ones"
        yield hint(own.line, f"{own.flag}={own.value}", why)


def _more_cores(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on programs for more cores than the request has, to which only Slurm binds them."""
    request, (count, line, what) = script.request, named_cores(script)
    cores, of_node, each = request.cpus_per_rank or 1, request.ranks_per_node or 1, ""
    if script.dialect.node_step:
        of_node = max(of_node, -(-(request.ranks or 1) // (request.nodes or 1)))
        of_steps = [_count(one) for one in script.launches]
        title = script.dialect.title
        why = f": {title} binds it to them, {target.title} may not; on whole nodes request all of them"
        left = has_directives(script) and {1, None}.issuperset(of_steps)
        if what.startswith("OMP_NUM_THREADS") and None in of_steps and of_node > 1:
            count, each = count * of_node, f"in {of_node} ranks "
    else:
        why = f", to which {target.title} may bind them"
        left = bool(request.ranks_per_node or request.cpus_per_rank)
        left &= not any(calls(script, mpirun_line.NAMES))
    left &= not (request.exclusive or script.components)
    if left and count > cores * of_node:
        beyond = f"{each}is more than the cores of the request on a node, {cores * of_node}"
        yield hint(line, what, f"{beyond}{why}")
    if left and (place := counts_node(script)):
        yield hint(*place, f"counts all cores of the node, not the {cores * of_node} of the request{why}")


def _count(launch: Launch) -> int | None:
    """Return the ranks of a launcher, or the cores of a rank, or the ranks of a node."""
    line = launch.row.line
    return launch.number(*line.ranks, "-c", "--cpus-per-task", *line.of_node)


def _shell(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on the option of the shell, if the first line names another one."""
    shell = next((option for option in script.options if option.flag == script.dialect.shell_option), None)
    first = script.lines[0].removeprefix("#!").split() if has_first_line(script) else []
    first = first[1:] if first and os.path.basename(first[0]) == "env" else first
    if shell is None or not first or target.shell_option:
        return
    if os.path.basename(first[0]) != os.path.basename(shell.value):
        why = f"{target.title} uses the shell of the first line: {script.lines[0]}"
        yield Remark(shell.line, f"{shell.flag} {shell.value}", why)


def _bare_nodes(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on nodes of Slurm without sizes: a site of whole nodes gives all cores."""
    given = any(script.dialect.origin(script.heeded, one) for one in ("ranks", "cpus", "gpus"))
    given |= "--exclusive" in script.heeded
    given |= any((_count(one) or 1) > 1 for one in script.launches)
    if not given and (script.request.several or _needs_whole_node(script)):
        why = f"names no cores: {target.title} gives one of each node; "
        yield from at_directive(script, "nodes", f"{why}if the site gives whole nodes, add them")


def _needs_whole_node(script: Script) -> bool:
    """Return whether programs on one node may use several cores and name no number of them, and a site of
    whole nodes or a kind of nodes gives these."""
    is_one = script.request.nodes == 1 and not any(map(SIZE_OF_NODE.match, script.heeded))
    of_kind = "--constraint" in script.heeded or script.site_of_whole_nodes != ""
    if not (is_one and of_kind) or named_cores(script)[0] > 1 or counts_node(script):
        return False
    return OF_CORES.search(script.tree.text) is not None


def _cores_with_gpus(script: Script) -> Iterator[Remark]:
    """Yield a remark on GPUs for a program of one rank on each node, without a number of cores."""
    request = script.request
    counts = [_count(one) or 1 for one in script.launches]
    alone = (request.ranks or 1) <= (request.nodes or 1) and max((request.ranks_per_node or 1, *counts)) == 1
    runs = any(one.name not in TOOLS | _NO_USE for one in script.runs)
    if request.gpus_per_node and alone and runs and not (request.cpus_per_rank or request.exclusive):
        yield from at_directive(script, "gpus", differences.CORES_WITH_GPUS)


def _job_directory(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on a directory of the job that the script uses and does not make."""
    if script.dialect.family == target.family:
        return
    ids = "|".join(name for name, meaning in script.dialect.job_variables.items() if meaning == "job_id")
    directory = re.compile(rf"(?:^|=)(?=[/$~]).*/(\w+[_.-])?\$({ids})\b(?=/|$)")  # sites make no others
    uses = [(one.node, list(one.arguments)) for one in script.runs if one.name not in _NO_USE]
    if not any(script.running("mkdir")):
        uses += [(node, [value]) for name, value, node in script.assignments if name in _TEMPORARY]
    kinds = {one.node.start: one.name for one in script.runs}
    for node, words in sorted(uses, key=lambda one: one[0].start):
        paths = (with_values(script, word) for word in words)
        if path := next((one.rstrip("/") for one in paths if directory.search(one)), ""):
            is_made = _MAKES.match(node.text) and re.search(directory.pattern + "$", path)
            is_made = is_made or _MAKES_PARENTS.match(node.text)
            if kinds.get(node.start, "TMPDIR") in _ENTERS and not is_made:
                why = "the script does not make this directory, which only some sites do"
                yield hint(node.line, path, why)
            return


def _rank_remarks(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on the devices and the variables of a rank."""
    source = script.dialect
    own = next((script.heeded[one] for one in source.gpus_of_rank if one in script.heeded), None)
    steps = list(script.launched(source.node_step or ""))
    most = max((one.number("-n", "--ntasks") or script.request.ranks or 1 for one in steps), default=0)
    if own and most > (script.request.nodes or 1):
        mpi = MPI_FLAVOURS[mpi_of(script, target=target.name)].command
        why = f"{source.node_step} shows each rank its own GPUs, {mpi} all of the node"
        yield hint(own.line, f"{own.flag}={own.value}", why)
    ranks = variables.rank_names(source, target, mpi_of(script, target=target.name))
    for name, line in inner_names(script).items():
        if name in ranks and steps:
            yield hint(line, name, f"replaced by {ranks[name]}")


def _slots(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield remarks for a target that counts only the slots of a node."""
    request = script.request
    cores, ranks = request.cpus_per_rank or 1, request.ranks or 1
    if cores > 1 and (request.ranks_per_node or 1) == 1:
        why = f"{target.title} counts cores only: its node file has {cores} lines for a node of one rank"
        yield from at_directive(script, "cpus", why)
    if ranks > 1 and request.nodes is None:
        yield from at_directive(script, "ranks", f"each of {ranks} ranks becomes a node")


def switched_off(script: Script, target: Dialect) -> Iterator[Edit | Remark]:
    """Yield edits that make comments of the directives for the other scheduler, which would take effect."""
    if script.dialect.scheduler.prefix == target.scheduler.prefix:
        return
    starts = line_starts(script)
    effective = {one.line for one in misreadings.other_directives(script)}
    for number, line in enumerate(script.lines, 1):
        text = line.lstrip(" \t") if target.indented_directives else line
        if text.startswith(target.scheduler.prefix) and number not in script.text_lines:
            yield Edit(starts[number - 1], starts[number - 1], "#")
            if number not in effective:
                yield hint(number, text.strip(), "had no effect, and is switched off")
