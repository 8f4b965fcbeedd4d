"""Translation of the scheduler's variables in the body: renamed if possible, otherwise set at the top."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from jobgen.convert import variable_names
from jobgen.convert.launch_nodes import devices_of_steps
from jobgen.convert.result import Definition, Edit, Remark, hint
from jobgen.convert.to_scheduler import mpirun_line
from jobgen.convert.to_scheduler.request_writer import listed
from jobgen.convert.variable_names import meanings, names_read
from jobgen.launch.launchers import DEFAULT_MPI, LAUNCHERS, MPI_FLAVOURS, Launcher
from jobgen.schedulers.request import Request
from jobgen.script.command_kinds import is_printed
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.mpi_of_script import mpi_of
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, function_of
from jobgen.values import arrays

# Code that takes the index of the array, in brackets, from the id of a job.
_CUTS_INDEX = re.compile(r"^\$\{\w+[%#].*\[|\b(cut|sed|grep|expr|awk|tr)\b.*\[")
_ID_OF_ARRAY = "is NUMBER[INDEX].SERVER here, which is no number"
# Code that needs the dot in the id of a job: what is behind it, or a pattern with it.
_OF_SERVER = re.compile(
    r"^\$\{\w+##?[^}]*\.|\bcut\b[^|]*-d ?[\"'\\]?\.[^|]*-f ?[\"']?(1?[-,]|[2-9])"
    r"|\bawk\b[^|]*-F ?[\"']?\.[^|]*\$[2-9N]|^\[.*(==?|=~) +[^ ]*[.*]|^IFS=[\"']?\."
    r"|\b(expr|grep)\b[^|]*\\\.|\bsed +-n\b[^|]*\."
)
_ID_WITH_SERVER = "is NUMBER.SERVER here, to which the operator is applied: the number is {}"
# Behind a name: no operator, or one that gives nothing of the value, or the number without the server.
_WITHOUT_SERVER = re.compile(rb"\}|:?\+|(%%?\.\*|%%\[!0-9\]\*|/\.\*/?)\}")
_IS_SET = re.compile(r"-[nz]\b|([\"']?)(\w?)\$[^ ]+ +!?==? +\1\2\1( |$)")  # a test whether a variable is set
_READS_LIST = re.compile(r"\|\s*(cut|sed|tr|awk|e?grep|perl|python3?)\b|<<<")  # takes a part of a list
_IN_PART = re.compile(r"\w:(?![-=+?])")  # ${A:0:4}, and not ${A:-B}
# A variable that code for a program reads: getenv('NAME'), os.environ["NAME"], $ENV{NAME}.
_READ_BY_PROGRAM = re.compile(
    r"(?i:env\w*)(?:(?:\.get|\.fetch)?[\[({]|, *)\\?[\"']?([A-Z]\w+)\b(?!\\?[\"']?\]? *=[^=])"
)
_SUBSHELLS = ("subshell", "command_substitution", "process_substitution")
_CHOICES = ("if_statement", "case_statement")
_MEMORY = ("mem_per_node", "mem_per_cpu")
_OF_HIP = "HIP_VISIBLE_DEVICES"  # which numbers the devices that are left, and which no scheduler sets
# Numbers of cores that no directive requests, and the remarks on them.
_UNSURE = {
    "1": "is 1 here: no directive requests cores, and {} may allocate more",
    "$(nproc)": "is $(nproc) here, all cores of the node",
}


def rank_names(source: Dialect, target: Dialect, mpi: str) -> dict[str, str]:
    """Return the new names of each rank's variables, if one launcher replaces another."""
    if source.node_step is None and target.node_step in LAUNCHERS:
        return _names_of_mpi(LAUNCHERS[target.node_step])
    if source.node_step not in LAUNCHERS or target.node_step:
        return {}
    old, new = LAUNCHERS[source.node_step].ranks, MPI_FLAVOURS[mpi].ranks
    return {old.rank[1:]: new.rank[1:], old.local_rank[1:]: new.local_rank[1:]} if old else {}


def _names_of_mpi(launcher: Launcher) -> dict[str, str]:
    """Return the names of a launcher for the variables of each MPI."""
    new, found = launcher.ranks, {}
    for mpi in MPI_FLAVOURS.values():
        for old, name in zip(mpi.ranks, new or (), strict=False):
            if name and re.fullmatch(r"\$\w+", old):
                found[old[1:]] = name[1:]
        for more, field in mpi.more_ranks.items():
            if new and (name := getattr(new, field)):
                found.setdefault(more, name[1:])
    return found


def _node_rank(request: Request, source: Dialect, target: Dialect, mpi: str) -> dict[str, str]:
    """Return the new name of the number of a node, if each node has one rank."""
    alone = request.ranks_per_node == 1 or (request.nodes and not request.ranks_per_node)
    rank = next(iter(rank_names(source, target, mpi).values()), "")
    return dict.fromkeys(source.zeros - target.zeros, rank) if alone and rank else {}


def names(request: Request, source: Dialect, target: Dialect, mpi: str = DEFAULT_MPI) -> dict[str, str]:
    """Return the new names of the variables, except those that the new request leaves unset."""
    missing = _without_ranks(request, target)
    found = {
        name: new
        for name, meaning in meanings(source).items()
        if name not in target.job_variables and (new := target.variable(meaning)) and new not in missing
    }
    return {**found, **rank_names(source, target, mpi)}


def _without_ranks(request: Request, target: Dialect) -> set[str]:
    """Return the variables of ranks that the target sets only if the new request names their number."""
    if request.ranks_per_node or not target.set_by_options:
        return set()
    unset = ["ranks_per_node", *["ranks"] * (request.ranks is None or request.nodes is not None)]
    return {name for name, meaning in target.job_variables.items() if meaning in unset}


def unset(script: Script) -> set[str]:
    """Return the variables that the scheduler leaves unset, or whose number only a person can read."""
    request, known, missing = script.request, meanings(script.dialect), list[str]()
    if any(getattr(request, meaning) for meaning in _MEMORY):  # of its two forms only that of the request
        missing += [meaning for meaning in _MEMORY if getattr(request, meaning) is None]
    options = script.dialect.set_by_options
    of_options = [name for name in options if known[name] != "ranks" or not request.submitted]
    without = {name for name in of_options if script.heeded.keys().isdisjoint(options[name])}
    without |= {name for name in of_options if getattr(request, known[name], 0) is None}
    return without | {name for name, meaning in known.items() if meaning in missing}


def definitions(script: Script, target: Dialect) -> dict[str, str]:
    """Return the variables without a new name that can be set at the top of the script, with their values."""
    request, source = script.request, script.dialect
    ranks, cpus = request.ranks_per_node or 1, request.cpus_per_rank or 1
    slots, nodes = request.lines_per_node or 1, target.variable("nodes")
    values = {
        "slots": f"${nodes}" if slots == 1 else f"$(({slots} * {nodes}))",
        **target.counts,
        "slots_per_node": str(slots),
        "ranks": target.counts.get("slots", "1") if request.submitted else str(request.ranks or 1),
        "ranks_per_node": str(ranks),
        "cpus_per_rank": str(cpus),
        **dict.fromkeys(
            ("cpus_per_node", "cpus_per_chunk"), "$(nproc)" if request.exclusive else str(cpus * ranks)
        ),
    }
    if request.submitted and target.scheduler.behaviour.hosts_by_core and cpus > 1:
        values["ranks"] = f"$(({ranks} * {target.counts['nodes']}))"
    if request.nodes is None and request.ranks is None and target.set_by_options:
        values["slots"] = f"${{{target.variable('ranks')}:-${nodes}}}"
        values["slots_per_node"] = f"${{{target.variable('ranks_per_node')}:-1}}"
    values |= {"job_cpus": str(request.job_cpus)} if request.job_cpus else {}
    values |= {name: str(mem) for name in _MEMORY if (mem := getattr(request, name))}
    of_nodes = f'"{{}}(x{request.nodes})"' if request.several else "{}"  # 8(x2)
    values["cpus_of_nodes"] = of_nodes.format(values["cpus_per_node"])
    if request.ranks_per_node and request.ranks == ranks * (request.nodes or 0):
        values["ranks_of_nodes"] = of_nodes.format(ranks)
    if request.account and re.fullmatch(r"[\w.@+-]+", request.account, re.ASCII):
        values["account"] = request.account
    if (array := arrays.read(request.array) if request.array else None) is not None:
        indices = array.indices()
        values |= {"array_count": str(len(indices)), "array_step": str(array.ranges[0][2])}
        values |= {"array_first": str(min(indices)), "array_last": str(max(indices))}
    elif (job := values.get("array_job")) and (index := target.variable("array_index")):
        values["array_job"] = f"${{{index}:+{job}}}"  # it is set in an array only
    if request.gpus_per_node:
        values["gpus_per_node"] = str(request.gpus_per_node)
        values["gpus"] = str(request.gpus or request.gpus_per_node * (request.nodes or 1))
        if cpus * ranks % request.gpus_per_node == 0:
            values["cpus_per_gpu"] = str(cpus * ranks // request.gpus_per_node)
    new = {*names(request, source, target), *target.job_variables}
    known = {name: one for name, one in meanings(source).items() if name not in unset(script)}
    found = {name: values[one] for name, one in known.items() if one in values and name not in new}
    return found | (dict(source.constants) if source.family != target.family else {})


_EXPANDED = "the script itself expands it, to 0: it is the same for all ranks"


def translate(
    script: Script, target: Dialect, replaced: Collection[Node | Edit], of_array: bool
) -> Iterator[Edit | Remark | Definition]:
    """Yield an edit for each renamed variable, a definition for those without a new name, and remarks.

    Another edit replaces each of ``replaced`` as a whole. ``of_array``: the job is a task of an array.
    """
    mpi, source = mpi_of(script, target=target.name), script.dialect
    other = {**_node_rank(script.request, source, target, mpi), **names(script.request, source, target, mpi)}
    defined = definitions(script, target)
    if indices := listed(script.request, target):
        index, new = str(source.variable("array_index")), target.variable("array_index")
        del other[index]
        defined[index] = f"$(echo {' '.join(map(str, indices))} | cut -d ' ' -f $(({new} + 1)))"
        if all(index != name for name, _ in script.expansions):
            yield Definition(index, defined[index])  # for the programs
    if of_array:
        _name_of_array(source, target, other, defined, script.request.array is not None)
    ranks = {} if source.zeros else rank_names(source, target, mpi)
    steps = any(script.launched(source.node_step or ""))
    own = (kept := variable_names.kept(script)) | unset(script)
    missing = {one for one in own - kept if source.origin(script.heeded, meanings(source)[one])}  # unread
    shared, seen = variable_names.shared(script), set[str]()
    shared |= {*variable_names.exported_names(script)} - script.values.keys() - ranks.keys()
    of_tasks = _functions_of_tasks(script)
    for name in sorted(_read_by_programs(script) - own - {*ranks} - source.zeros):
        seen.add(name)
        yield from _shared(name, other, defined, target, of_array)
    yield from _in_names_of_tools(script, other)
    for node, offset in names_read(script.tree):
        name, in_batch = node.text, offset == 0 and function_of(node) not in of_tasks
        if name in missing:
            missing.remove(name)
            yield Remark(node.line, f"${name}", "is unset: the number of the directive cannot be read")
        if name in own or (name in ranks and in_batch and node.parent is not None):
            continue  # the script sets it, or nothing does
        if name in shared:
            if name not in seen and name not in source.zeros:
                yield from _shared(name, other, defined, target, of_array)
            seen.add(name)
        elif any(one.start <= node.start + offset < one.end for one in replaced):
            continue
        elif name in source.zeros and not target.zeros and in_batch and (zero := _zero(node)) is not None:
            yield from (zero, hint(node.line, f"${name}", _EXPANDED))
        elif name in source.zeros and not target.zeros and not steps:
            continue  # no launcher sets it
        elif name in other:
            text = _spelt(node, other[name], target, not of_array)
            yield Edit(node.start + offset, node.end + offset, text)
            if meanings(source).get(name) == "job_id":
                yield from _of_id(node, text, source, target, of_array)
        elif name in defined:
            yield from _defined(node, name, defined[name], script.request, source, name in seen)
            seen.add(name)
        elif _foreign(name, source, target):
            if name not in seen:
                yield _without_counterpart(node, source)
            yield from _guard(name, node.parent) if offset == 0 and node.parent else ()
            seen.add(name)


_OF_FIRST_NODE = "is the name of the first node for all ranks"


def names_of_nodes(script: Script, target: Dialect, replaced: Collection[Node]) -> Iterator[Edit | Remark]:
    """Yield an edit for each name of the node in code that another shell expands, on each node of its own.

    An expansion with an operator, and the environment of programs, have the name of the first node. They get
    a remark if other nodes may read it.
    """
    found = meanings(script.dialect)
    names = {name for name, one in found.items() if one == "host" and name in script.tree.text}
    names -= variable_names.kept(script)
    defined = definitions(script, target) if names else {}
    if not (names := names & defined.keys()):
        return
    of_tasks = _functions_of_tasks(script)
    for node, offset in names_read(script.tree):
        in_batch = offset == 0 and node.parent is not None and function_of(node) not in of_tasks
        start, end = node.start + offset, node.end + offset
        if node.text not in names or in_batch or any(one.start <= start < one.end for one in replaced):
            continue
        before, behind = script.tree.source[start - 1 : start], script.tree.source[end : end + 1]
        if before + behind == b"{}":
            yield Edit(start - 2, end + 1, defined[node.text])
        elif before == b"$":
            yield Edit(start - 1, end, defined[node.text])
        elif script.request.several:
            yield hint(node.line, f"${node.text}", f"{_OF_FIRST_NODE}: write $(hostname -s)")
    lines = [one.line for one in script.launches if one.row.line.reaches_nodes]
    exported = _read_by_programs(script) | variable_names.exported_names(script)
    for name in sorted(names & exported) if lines and script.request.several else ():
        yield hint(lines[0], name, _OF_FIRST_NODE)


def _without_counterpart(node: Node, source: Dialect) -> Remark:
    """Return the remark on a variable of the source, which may not set it, either."""
    meant = source.meant(node.text)
    why = f"is not set by {source.title}, either, which sets {meant}" if meant else "has no counterpart"
    return Remark(node.line, f"${node.text}", why, lost=not meant)


def _of_id(node: Node, text: str, source: Dialect, target: Dialect, of_array: bool) -> Iterator[Remark]:
    """Yield the remark on an id of a job, whose form differs."""
    why = _id_of_task(node, text, target) if of_array else _id_in_part(node, target)
    if not why and source.job_number and not target.job_number and _takes_server(node):
        why = "is a number without .SERVER here"
    if why:
        yield hint(node.line, f"${node.text}", why)


def _in_names_of_tools(script: Script, other: Mapping[str, str]) -> Iterator[Edit]:
    """Yield an edit for each ``%q{NAME}``, by which nsys, ncu, valgrind and the like name their files."""
    for match in re.finditer(rb"%q\{(\w+)\}", script.tree.source):
        name = match[1].decode()
        if name in other and name not in script.values:
            yield Edit(match.start(1), match.end(1), other[name])


def _read_by_programs(script: Script) -> set[str]:
    """Return the variables that code in the texts of a script reads, for programs that it starts.

    By some of them an mpirun takes the job for one of their scheduler.
    """
    if variable_names.writes_script(script.tree):
        return set()
    texts = script.tree.all("raw_string", "string_content", "heredoc_body")
    found = {name for one in texts if not _is_for_file(one) for name in _READ_BY_PROGRAM.findall(one.text)}
    of_mpirun = ("job_id", "node_list") if script.launches else ()
    return {name for name in found if meanings(script.dialect).get(name) not in of_mpirun}


def _is_for_file(text: Node) -> bool:
    """Return whether a command prints a text, or writes it to a file: ``cat > FILE << EOF``."""
    above = text.around("redirected_statement") if text.type == "heredoc_body" else None
    return is_printed(text) or (
        above is not None and re.match(r"(cat|tee|echo|printf)\b", above.text) is not None
    )


def _functions_of_tasks(script: Script) -> set[str]:
    """Return the names of the functions that the ranks of launchers run."""
    texts = (one.command.node.text for one in script.launches if one.row.line.reaches_nodes)
    return {one.name for text in texts for one in script.functions_named(text)}


def _name_of_array(
    source: Dialect, target: Dialect, other: dict[str, str], defined: dict[str, str], is_array: bool
) -> None:
    """Set the name of the job as the tasks of an array know it, if one scheduler adds the index to it."""
    name, new = source.variable("job_name"), target.variable("job_name")
    if name and new and source.name_of_array != target.name_of_array and other.pop(name, None):
        index = target.variable("array_index")
        added = f"-${index}" if is_array else f"${{{index}:+-${index}}}"
        defined[name] = f"${new}{added}" if source.name_of_array else target.name_of_array


def _id_of_task(node: Node, text: str, target: Dialect) -> str:
    """Return what differs about the id of a task of an array; empty if nothing does."""
    if not target.job_number:
        above = [one.text for one in node.above() if one.type in ("expansion", "pipeline", "command")]
        own = f"is the number of the task here: that of the array is ${target.variable('array_job')}"
        return own if any(map(_CUTS_INDEX.search, above)) else ""
    if text == target.variable("job_id"):
        tests = (one.text for one in node.above() if one.type == "test_command")
        return "" if any(map(_IS_SET.search, tests)) else _ID_OF_ARRAY
    return "is the number of the array here, the same for all of its tasks"


def _takes_server(node: Node) -> bool:
    """Return whether code takes the server from the id of a job, or looks for its dot."""
    above = [one for one in node.above() if one.type in ("expansion", "pipeline", "command", "test_command")]
    return any(map(_OF_SERVER.search, (one.text for one in above)))


def _id_in_part(node: Node, target: Dialect) -> str:
    """Return what differs about the id of a job in an expansion with an operator; empty if nothing does."""
    whole = node.parent
    if not target.job_number or whole is None or not whole.text.startswith("${"):
        return ""
    tests = [one.text for one in node.above() if one.type == "test_command" or one.name == ":"]
    is_test = any(_IS_SET.search(one) or one.startswith(":") for one in tests)
    without = is_test or (whole.text[2] != "#" and _WITHOUT_SERVER.match(node.source[node.end :]))
    return "" if without else _ID_WITH_SERVER.format(target.job_number)


def _shared(
    name: str, other: Mapping[str, str], defined: Mapping[str, str], target: Dialect, of_array: bool
) -> Iterator[Definition]:
    """Yield the definition of a variable that keeps its name, because the script may set it."""
    if (new := other.get(name)) and new == target.variable("job_id") and target.job_number and not of_array:
        yield Definition(name, target.job_number)
    elif new or name in defined:
        yield Definition(name, f"${{{new}:-}}" if new else defined[name])


def _defined(
    node: Node, name: str, value: str, request: Request, source: Dialect, again: bool
) -> Iterator[Definition | Remark]:
    """Yield the definition of a variable, unless it is used ``again``, and remarks on its value.

    One remark is on a number of cores that no directive requests, the other on the form of a list of nodes.
    """
    meaning = meanings(source).get(name)
    if not again:
        yield Definition(name, value)
        unsure = value in _UNSURE and request.cpus_per_rank is None
        if unsure and meaning in ("cpus_per_node", "cpus_of_nodes"):
            yield hint(node.line, f"${name}", _UNSURE[value].format(source.title))
    if meaning == "node_list" and node.parent is not None and request.nodes != 1:
        around = [one.text for one in node.above() if one.type in ("pipeline", "herestring_redirect")]
        if _IN_PART.search(node.parent.text) or any(map(_READS_LIST.search, around)):
            yield hint(node.line, f"${name}", "is a list with commas, without brackets")


def _zero(node: Node) -> Edit | None:
    """Return the edit for a variable of a rank that the script itself expands; None if ranks expand it."""
    if node.parent is None:
        return None
    bare = node.parent.type not in ("simple_expansion", "expansion")
    plain = node.parent.text in (f"${node.text}", f"${{{node.text}}}")
    whole = node if bare else node.parent
    return Edit(whole.start, whole.end, "0") if bare or plain else None


def _foreign(name: str, source: Dialect, target: Dialect) -> bool:
    """Return whether only other schedulers set a variable; the script itself sets their node file."""
    if source.family == target.family and re.fullmatch(target.unset_variables, name):
        return True
    others = [one for one in DIALECTS.values() if one.family != target.family and one.own_names]
    found = any(re.match(one.own_names, name) for one in others)
    files = {one.variable("node_file") for one in others}
    written = name in files and target.write_node_file(name, 1)
    return found and not written


def _spelt(node: Node, name: str, target: Dialect, numeric: bool) -> str:
    """Return the name; a job id that is not a number is reduced to one: in arithmetic, or if ``numeric``.

    The tasks of an array have the same number, so that elsewhere the whole id stays.
    """
    if not target.job_number or name != target.variable("job_id"):
        return name
    kinds = ("arithmetic_expansion", "compound_statement")
    arithmetic = any(above.type in kinds and "((" in above.text[:3] for above in node.above())
    texts = (above.text for above in node.above() if above.type in ("command", "pipeline"))
    reckons = arithmetic or numeric or any(re.search(r"\b(expr|bc|tail -c|let)\b", one) for one in texts)
    before = node.source[max(node.start - 2, 0) : node.start]
    if before.endswith(b"$"):
        return target.job_number[1:] if reckons else name
    if before == b"${":
        plain = node.source[node.end : node.end + 1] == b"}"
        return target.job_number[2:-1] if reckons and plain else name
    return target.job_number if arithmetic else name


def unprefixed(script: Script, target: Dialect) -> Iterator[Edit | Remark]:
    """Yield a remark on each variable without a prefix that the script reads from its scheduler.

    An edit ends the script where it would enter, delete or fill a directory of an empty variable.
    """
    seen, source = set[str](), script.dialect
    other = {name: why for name, why in source.unprefixed.items() if target.unprefixed.get(name) != why}
    old, new = source.family, target.family
    if old == new:
        old, new = source.title, target.title
    reads: list[tuple[str, Node, Node | None]] = [(name, node, None) for name, node in script.expansions]
    reads += [(node.text, node, text) for node, text in variable_names.inner_reads(script)]
    for name, node, text in reads:
        needless = name.endswith("_DEVICES") and not script.request.gpus_per_node
        needless |= name == "HOST" and re.match("#!.*zsh", script.line(1)) is not None  # zsh sets it
        if name not in other or needless or is_printed(node, text=text):
            continue
        if _is_set(name, node, script) if text is None else _sets([node, *node.above()][-1], name):
            continue
        if name not in seen:
            elsewhere = target.unprefixed.get(name, "does so at some sites only")
            yield hint(node.line, f"${name}", f"{old} {other[name]}; {new} {elsewhere}")
        seen.add(name)
        yield from _guard(name, node) if text is None else ()
    yield from _named_devices(script, target, old, new)


# Devices that a script names itself: by number, by the rank, or by their use.
_NUMBERS = re.compile(r"\w+_DEVICES=[\"']?(\d|\$\{?SLURM_LOCALID|\$\((?s:.*)nvidia-smi)")


def _named_devices(script: Script, target: Dialect, old: str, new: str) -> Iterator[Remark]:
    """Yield remarks on devices that a script names: for steps, in which Slurm names others, and for programs
    that the script starts itself. ``old`` and ``new`` are the titles of the schedulers."""
    request, source = script.request, script.dialect
    if target.node_step and not source.node_step and request.gpus_per_node:
        of_ranks = list(_devices_for(script, target.names_of_devices, *mpirun_line.NAMES))
        why = f"{new} replaces it in each step of {target.node_step} that has GPUs: "
        for node in [one for one in of_ranks if not _names_all(script, one)][:1]:
            yield hint(node.line, _setting(node)[:60], f"{why}set it in a script that each rank runs")
    hidden = source.hides_devices and not target.hides_devices
    if not hidden or not (request.gpus_per_node or request.gpus or devices_of_steps(script)[0]):
        return
    of_steps: list[Node] = []
    if source.node_step and not target.node_step:
        of_steps = list(_devices_for(script, source.names_of_devices, source.node_step))
    why = f"{old} replaces it in each step of {source.node_step} that has GPUs, and in the new job it takes "
    known = [one for one in of_steps if request.exclusive and _names_all(script, one)]
    for node in [one for one in of_steps if one not in known][:1]:
        yield hint(node.line, _setting(node)[:60], f"{why}effect: delete it")
    names = {*source.names_of_devices, _OF_HIP}
    given = [(value, node) for name, value, node in script.assignments if name in names]
    numbers = [node for value, node in given if _NUMBERS.match(node.text) or _counts(script, value)]
    if not request.exclusive and (others := [one for one in numbers if one not in of_steps]):
        why = f"names the job's devices if {old} hides the others, and those of the node if {new} does not"
        yield hint(others[0].line, others[0].text[:60], why)


def _counts(script: Script, value: Node) -> bool:
    """Return whether a value is a variable with an argument of the script, a number, or each of several."""
    match = re.fullmatch(r"\"?\$\{?(\w+)\}?\"?", value.text)
    name = match[1] if match else ""
    loop = rf"\bfor\s+{name}\s+in\s+(\{{?\d|(\$\(|`)seq\b)|\(\(\s*{name}\s*=\s*\d"
    known = re.match(r"\d", script.constants.value(value) or "") is not None
    return bool(name) and (name.isdigit() or known or re.search(loop, script.tree.text) is not None)


def _devices_for(script: Script, names: Collection[str], *launchers: str) -> Iterator[Node]:
    """Yield the assignments of devices, but not to their own value, that commands of launchers may get, also
    by ``env`` and by their options."""
    launches = [one.command.node for one in script.launched(*launchers)]
    given = re.compile(rf"(?:.*,)?({'|'.join(names)})=(?!\"?\$\{{?\1\b)")
    for launch in script.launched(*launchers) if names else ():
        yield from (one for one in launch.whole[: launch.behind] if re.match(given, one.text))
    for name, _, node in script.assignments:
        if name in names and not re.search(rf"\$\{{?{name}\b", node.text):
            command = _prefixed(node)
            if any(one is command if command else _reaches(node, one, script) for one in launches):
                yield node


def _names_all(script: Script, node: Node) -> bool:
    """Return whether a script names all devices of a node which it requests: 0,1,2,3."""
    every = ",".join(map(str, range(script.request.gpus_per_node or 0)))
    return _setting(node).partition("=")[2].strip("\"'") == every


def _setting(node: Node) -> str:
    """Return the name and the value in an assignment, or in an option: --export=ALL,A=1."""
    return re.sub(r"^--[^,]*,(.*,)?(?=\w+=)", "", node.text)


def _sets(root: Node, name: str) -> bool:
    """Return whether a text for another shell sets a variable, but not by its own value."""
    own = rf"\$({name}\b|{{{name}}})"
    return any(one == name and not re.search(own, node.text) for one, _, node in assignments(root))


# Commands for several files: without the directory behind them they replace the last file.
_FILLS = re.compile(r"(cp|mv|ln)\s+(-\S+\s+)*(\S*[*?[{$`]\S*\s|[^-\s]\S*\s+\S+\s+\S)")


def _is_set(name: str, place: Node, script: Script) -> bool:
    """Return whether the script itself sets a variable for a place: before it, not in a branch only, whose
    condition is about something else, and not to a part of its own value (``TMPDIR=$TMPDIR/x``)."""
    own = re.compile(rf"\$(?:{name}\b|\{{{name}\}})")
    nodes = [node for one, _, node in script.assignments if one == name and not own.search(node.text)]
    ways = [_branch(node, place) for node in nodes if _reaches(node, place, script)]
    branches = [branch for branch in ways if branch is not None]
    if len(branches) < len(ways) or any(branches.count(branch) > 1 for branch in branches):
        return True
    return any(re.search(rf"\b{name}\b", branch.text.partition(name + "=")[0]) for branch in branches)


def _reaches(assignment: Node, place: Node, script: Script) -> bool:
    """Return whether the value of an assignment may be that of the variable at a place.

    The prefix of a command reaches the values behind it in the prefix, and the code of a function that is
    called; the words of the command are expanded before.
    """
    if assignment.start <= place.start < assignment.end:  # TMPDIR=${TMPDIR:-/tmp}
        return True
    apart = [one for one in assignment.above() if place not in one]
    if any(one.type in _SUBSHELLS for one in apart):
        return False
    if (command := _prefixed(assignment)) is not None:
        if place in command:
            in_prefix = any(one.parent is command and one.type == assignment.type for one in place.above())
            return in_prefix and assignment.start < place.start
        functions = (one.name for one in place.above() if one.type == "function_definition")
        return next(one.text for one in command.children if one.type == "command_name") in functions
    return any(one.type == "function_definition" for one in apart) or assignment.start < _time(place, script)


def _prefixed(assignment: Node) -> Node | None:
    """Return the command that an assignment is a prefix of; None if it is a command of its own."""
    command = assignment.parent
    name = command and next((one for one in command.children if one.type == "command_name"), None)
    if command is None or name is None:
        return None
    between = assignment.source[assignment.end : name.start].replace(b"\\\n", b"")
    return None if b"\n" in between else command


def _time(place: Node, script: Script, seen: frozenset[str] = frozenset()) -> int:
    """Return where in the text a place is run: for one in a function, where that is first called."""
    if (function := place.around("function_definition")) is None:
        return place.start
    calls = [one.node for one in script.named(function.name) if one.node not in function]
    known = seen | {function.name}
    return min((_time(one, script, known) for one in calls if known != seen), default=function.end)


def _branch(assignment: Node, place: Node) -> Node | None:
    """Return the outermost statement that may skip an assignment, and is not around a place, too."""
    found = None
    for above in assignment.above():
        around = above.start <= place.start < above.end
        if around and above.type == "list":
            return None
        chosen = above.type == "list" and above.children[0].end <= assignment.start
        if (chosen or above.type in _CHOICES) and not around:
            found = above
    return found


def _guard(name: str, node: Node) -> Iterator[Edit]:
    """Yield the edit that ends the script if a directory which it enters, deletes or fills is empty."""
    command = node.around("command")
    if node.text not in (f"${name}", f"${{{name}}}") or command is None:
        return
    is_last = re.fullmatch("/?[\"']?", command.text.encode()[node.end - command.start :].decode())
    if re.match(r"(cd|pushd|rm)\b", command.text) or (is_last and _FILLS.match(command.text)):
        yield Edit(node.start, node.end, f"${{{name}:?}}")
