"""Directives of PBS for their conversion: what a request has no field for, and what cannot be converted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers.pbspro import LONG_FORMS
from jobgen.script.dialects.script_request import Directive, ScriptRequest
from jobgen.values.parsers import mebibytes, number

if TYPE_CHECKING:
    from jobgen.schedulers.request import DirectiveOption, Request
    from jobgen.script.dialects.base import Dialect

_DATE = r"(?:(?:(\d\d)?(\d\d))?(\d\d)(\d\d))?(\d\d)(\d\d)(?:\.(\d\d))?"
# The resources of each node that can be converted.
_PARTS = {
    "select": {"", "ncpus", "mpiprocs", "ngpus", "nnpus", "naccelerators", "mem", "ompthreads"},
    "nodes": {"", "ppn", "gpus"},
}
_NUMBERS = ("select", "ncpus", "mpiprocs", "ngpus", "nnpus", "naccelerators", "ppn", "gpus")
# Attributes in -W that options set, too, of which some are written there in another form.
_ATTRIBUTES = {
    **LONG_FORMS, "rerunable": "-r", "hold_types": "-h", "execution_time": "-a", "variable_list": "-v",
}  # fmt: skip
_GPU_MODES = {"shared", "exclusive", "exclusive_process", "exclusive_thread", "default", "reseterr"}
_PLACES = {"scatter", "vscatter", "excl", "free", "exclhost"}


def date(text: str) -> str:
    """Return PBS's [[CC]YY]MMDDhhmm[.SS] as a date and time, or a time; unchanged without a year."""
    match = re.fullmatch(_DATE, text, re.ASCII)
    if not match or (match[3] and not match[2]):
        return text
    century, year, month, day, hour, minute, second = match.groups()
    clock = f"{hour}:{minute}" + (f":{second}" if second else "")
    return f"{century or 20}{year}-{month}-{day}T{clock}" if month else clock


def read(dialect: Dialect, content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
    """Add what a request has no field for."""
    if content.totals and not content.request.chunks:
        _read_totals(content, given)
        _read_processes(content)
    alone = {key: option for key, option in given.items() if " " not in key and key != "-v"}
    for key, option in given.items():
        if option.flag == "-l":
            _read_resource(dialect, content, key[3:], option)
        elif option.flag == "-W":
            _read_attribute(dialect, content, key[3:], option)
    _read_exports(content, given["-v"].value.split(",") if "-v" in given else [])
    _read_directives(dialect, content, alone)
    content.unconverted += [
        (option, f"{option.flag} {option.value}".strip(), "has no counterpart")
        for option in alone.values()
        if option.flag not in dialect.converted and (option.flag or not dialect.ignores_words)
    ]
    threads = {chunk["ompthreads"] for chunk in content.request.chunks if "ompthreads" in chunk}
    if len(threads) == 1 and not any(name == "OMP_NUM_THREADS" for name, _ in content.exports):
        content.exports.insert(0, ("OMP_NUM_THREADS", threads.pop()))
    if "-j" in given and given["-j"].value == "eo":
        content.joined_as_error, content.request.output = True, content.request.error
    _read_cores(content, given)
    _complete_memory(content, given)
    content.all_variables, content.hold = "-V" in given, "-h" in given
    content.directory = next((given[key].value for key in dialect.directory_options if key in given), None)
    if (place := content.request.place or "scatter").removesuffix(":excl") != "scatter":
        content.own.append(f"-l place={place}")
    if "-A" not in given:
        projects = (option for option in given.values() if option.flag == dialect.project_option)
        content.own += [f"{option.flag} {option.value}" for option in projects]


def _read_totals(content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
    """Set the resources of a job without a select, which PBS gives to one chunk."""
    request = content.request
    cores, gpus = (number(request.totals.get(name)) for name in ("ncpus", "ngpus"))
    first = next((given[key] for key in ("-l ncpus", "-l ngpus", "-l mem") if key in given), None)
    if first is None:
        return
    request.nodes, request.cpus_per_rank, request.gpus_per_node = 1, cores, gpus
    request.mem = mebibytes(request.totals["mem"], "b") if "mem" in request.totals else None
    if cores and cores > 1:
        why = "one node is requested; some sites give several"
        content.unsure.append((first, f"-l ncpus={cores}", why))


def _read_processes(content: ScriptRequest) -> None:
    """Set the processes that Torque places on any nodes, each with a core, and the memory of each."""
    request = content.request
    ranks = number(request.totals.get("procs", "").partition(":")[0])
    if ranks is None:
        return
    request.nodes, request.ranks = None, ranks
    each, total = (mebibytes(request.totals.get(name, ""), "b") for name in ("pmem", "mem"))
    if content.whole:
        request.mem = each if each is not None else total and -(-total // ranks)
    elif each is not None and content.totals:
        request.mem = each * ranks  # on the node that has all


def _read_cores(content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
    """Note cores that do not divide by the ranks."""
    request = content.request
    chunk = request.chunks[0] if len(request.chunks) == 1 else {}
    cores, ranks = number(chunk.get("ncpus")), number(chunk.get("mpiprocs")) or 1
    if cores and cores % ranks and "-l select" in given:
        request.cpus_per_rank = max(cores // ranks, 1)
        why = f"cores are requested for each rank: {request.cpus_per_rank} for each of {ranks}"
        content.unsure.append((given["-l select"], f"ncpus={cores}:mpiprocs={ranks}", why))


def _complete_memory(content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
    """Note the memory of several nodes, and a size of less than 1 MiB, such as 200kb or 8."""
    nodes, total = content.request.nodes or 1, given.get("-l mem")
    limit = mebibytes(total.value, "b") if total is not None else None
    if total is not None and limit is not None and limit < ((content.request.mem or 0) - 1) * nodes:
        why = "is less than -l pmem of all processes: their memory is requested, and the limit is missing"
        content.unsure.append((total, f"-l mem={total.value}", why))
    elif total is not None and "-l nodes" in given and nodes > 1 and content.request.mem:
        why = f"is that of all {nodes} nodes: each gets {content.request.mem} MiB"
        content.unsure.append((total, f"-l mem={total.value}", why))
    if (each := given.get("-l pmem")) and (content.request.mem or 0) > (mebibytes(each.value, "b") or 0):
        why = "limits each process, too: the new job has one limit for all processes of a node"
        content.unsure.append((each, f"-l pmem={each.value}", why))
    if content.request.mem != 0:
        return
    content.request.mem = 1
    keys = ("-l mem", "-l pmem", "-l select", "-l nodes")
    if key := next((key for key in keys if key in given), ""):
        option = given[key]
        bare = re.search(r"(^|mem=)\d+(:|\+|$)", option.value)
        why = "a number without a unit is one of bytes" if bare else "is less than 1 MiB"
        content.unsure.append((option, f"{key}={option.value}", f"{why}: 1 MiB is requested"))


def _read_exports(content: ScriptRequest, variables: list[str]) -> None:
    for name, equals, value in (one.partition("=") for one in variables):
        if equals:
            content.exports.append((name.strip(), value))
        else:
            content.names.append(name.strip())


def _read_resource(dialect: Dialect, content: ScriptRequest, name: str, option: DirectiveOption) -> None:
    text = f"-l {name}={option.value}" if option.value else f"-l {name}"
    if key := dialect.option_of(f"-l {name}"):
        content.directives[key] = Directive(option, text, option.value)
    elif features := _features(name, option.value, dialect, content.request):
        part = f"{features} of -l {name}" if name in _PARTS else ""
        first = content.directives.get("constraint")
        joined = f"{first.value}{dialect.feature_separator}{features}" if first else features
        content.directives["constraint"] = Directive(option, text, joined, part)
        if part and (why := _unreadable(name, content.request.chunks[0])):
            content.unconverted.append((option, text, why))
    elif not name:
        content.unsure.append((option, option.flag, "an item of the list is empty: qsub refuses the script"))
    elif why := _resource_fault(name, option.value, content.request):
        content.unconverted.append((option, text, why))


def _read_attribute(dialect: Dialect, content: ScriptRequest, name: str, option: DirectiveOption) -> None:
    text = f"-W {name}={option.value}" if option.value else f"-W {name}"
    others = [re.fullmatch(dialect.directive_attributes, one, re.I) for one in option.value.split(",")]
    if name == "x" and dialect.directive_attributes and all(others):
        for one in filter(None, others):
            if key := dialect.option_of(f"-l {one[1].lower()}"):
                content.directives.setdefault(key, Directive(option, text, one[2]))
    elif name != "depend":
        why = _OF_SITE if re.search(r"(?i)\bgres\b", text) else "has no counterpart"
        if short := _ATTRIBUTES.get(name.lower()):
            why = f"is another form of {short}: write {short}, which may have a counterpart"
        content.unconverted.append((option, text, why))
    elif content.bad_dependency:
        content.unconverted.append((option, f"-W depend={content.bad_dependency}", content.dependency_fault))


def _read_directives(
    dialect: Dialect, content: ScriptRequest, options: Mapping[str, DirectiveOption]
) -> None:
    """Read the options that jobgen has, too."""
    for option in options.values():
        text = f"{option.flag} {option.value}"
        known = {*"aben", *(dialect.task_mail if content.request.array else "")}
        if key := dialect.option_of(option.flag):
            content.directives[key] = Directive(option, text, dialect.read_value(key, option.value))
        elif option.flag == "-q" and dialect.scheduler.is_reservation(option.value):
            content.directives["reservation"] = Directive(option, text, option.value)
            content.request.queue = None
        elif option.flag == "-m" and (odd := {*option.value} - known):
            why = f"{', '.join(sorted(odd))} has no counterpart"
            if re.search(r"[^\Wabefjnp]", option.value):  # a word, which qsub refuses
                content.request.mail, why = "", "names no events of mail"
            content.unconverted.append((option, text, why))


def _features(name: str, value: str, dialect: Dialect, request: Request) -> str:
    """Return the resources of a chunk that choose nodes, as a value of ``--constraint``."""
    if name == "feature" and not dialect.features_are_resources:
        return value
    if name not in _PARTS or len(request.chunks) != 1 or not request.chunks[0][""].isdigit():
        return ""
    odd = [(key, value) for key, value in request.chunks[0].items() if key not in _PARTS[name]]
    if name == "nodes" and any(value or key in _GPU_MODES for key, value in odd):
        return ""
    return ":".join(f"{key}={value}" if value else key for key, value in odd)


def _resource_fault(name: str, value: str, request: Request) -> str:
    """Return why a resource of -l cannot be converted; empty if it can."""
    if name == "walltime":
        return "" if request.walltime is not None else "is not a valid time"
    if name in _PARTS:
        return _chunk_fault(name, request)
    if name == "procs" and ":" in value and not request.chunks and request.ranks is not None:
        return "the number of processes is translated, and the rest has no counterpart"
    places = _PLACES | {"pack"} if request.nodes in (None, 1) else _PLACES  # of all chunks on one host
    odd = ":".join(one for one in value.split(":") if one not in places)
    done = {
        "place": not odd,
        "naccesspolicy": request.exclusive,
        "ncpus": not request.chunks and request.cpus_per_rank is not None,
        "ngpus": not request.chunks and request.gpus_per_node is not None,
        "procs": not request.chunks and request.ranks is not None,
        "gpus": request.nodes == 1 and request.gpus_per_node is not None,
        **dict.fromkeys(
            ("mppwidth", "size", "mppnppn", "mppdepth"), not request.chunks and request.exclusive
        ),
        "mem": request.mem is not None,
        "pmem": request.mem is not None,
        "wd": True,
    }
    if done.get(name):
        return ""
    if name in done.keys() - _WORDS and not re.match(r"\d", value):
        return "cannot be read"
    if name == "procs" and request.chunks:
        return "requests processes beside those of the nodes, which has no counterpart"
    if name == "place":
        return f"{odd} has no counterpart"
    if name != "procs" and value.isdigit():
        return _OF_SITE
    return next((why for names, why in _CHOICES if re.fullmatch(names, name)), "has no counterpart")


_WORDS = {"place", "naccesspolicy", "wd"}  # no numbers
_OF_SITE = "may be a license or a resource of the site, which has another name"
# Resources that choose nodes or licenses, which every cluster has by other names.
_CHOICES = (
    ("gres|software", _OF_SITE),
    ("partition", "is one of Moab: choose the queue or the partition of these nodes"),
    ("gpu_?(type|model|name)", "is a type of GPUs: request it by its name"),
)


def _unreadable(name: str, chunk: Mapping[str, str]) -> str:
    """Return the reason if values of a chunk are numbers or sizes for PBS, but are not written as such."""
    given = {name: chunk.get("", "1"), **chunk}  # a node may have a name instead of a number
    odd = [key for key in _NUMBERS if key in given and number(given[key]) is None]
    odd += ["nodes"] * (name == "nodes" and re.fullmatch(r"[\w.-]+", given[name]) is None)
    odd += ["mem"] * ("mem" in given and mebibytes(given["mem"], "b") is None)
    return f"{', '.join(f'{key}={given[key]}' for key in odd)} cannot be read" if odd else ""


def _chunk_fault(name: str, request: Request) -> str:
    if len(request.chunks) > 1:
        return "different chunks have no counterpart"
    chunk = request.chunks[0] if request.chunks else {}
    names_host = re.fullmatch(r"[\w.-]*[A-Za-z_][\w.-]*", chunk.get("", "1")) is not None
    host = ["names a host"] * (name == "nodes" and names_host)
    odd = ", ".join(key for key in chunk if key not in _PARTS[name])
    others = f"{odd} has no counterpart" if odd else ""
    return ", and ".join(filter(None, [*host, others, _unreadable(name, chunk)]))
