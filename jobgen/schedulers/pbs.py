"""The common part of the dialects of PBS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers.base import Behaviour, Help, RequestKeys, Scheduler, fill, matches

if TYPE_CHECKING:
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.schedulers.jobs import JobCommands
    from jobgen.schedulers.request import DirectiveOption, Request

# Resources that the script itself requests, in the chunk of each node or outside of it.
OURS = ("ncpus", "mpiprocs", "ompthreads", "ngpus", "mem", "nodes", "select", "place", "walltime")
# PBS Pro's built-in resources of a chunk; qsub refuses them outside of it if there is a select or a place.
CHUNK_COUNTS = ("ncpus", "mpiprocs", "ompthreads", "ngpus", "naccelerators")
IN_CHUNKS = (
    *CHUNK_COUNTS, "mem", "vmem", "host", "vnode", "arch", "accelerator", "accelerator_model",
    "accelerator_memory",
)  # fmt: skip
EVENT_LETTERS = {"begin": "b", "end": "e", "fail": "a", "none": "n"}  # of the events of mail


class Pbs(Scheduler):
    command_name = runtime = "pbs"
    command = "qsub"
    help = Help(
        "Print a script for OpenPBS, PBS Pro or Torque.",
        "jobgen pbs --nodes 2 --launcher mpirun > job.pbs && qsub job.pbs",
    )
    keys = RequestKeys(
        memory=("-l mem",),
        alternatives=(frozenset({"-j", "-e"}),),  # -e has no effect beside -j oe
    )
    behaviour = Behaviour(
        loses_dependents=True,
        queue_lists=False,
        queue_servers=True,
        queue_length=15,  # PBS_MAXQUEUENAME in pbs_ifl.h
    )
    family = "PBS"
    request_forms = {
        "name": "-N {}", "queue": "-q {}", "account": "-A {}", "resources": "{}",
        "walltime": "-l walltime={}", "array": "-J {}", "dependency": "-W depend={}",
        "output": "-o {}", "error": "-e {}", "join": "-j {}",
        "mail": "-m {}", "mail_user": "-M {}", "requeue": "-r y", "no_requeue": "-r n",
        "hold": "-h", "all_variables": "-V", "names": "-v {}", "exclusive": "{}",
    }  # fmt: skip
    option_pattern = r"-[A-Za-z][^\x00-\x1f\x7f\u2028\u2029#]*"
    in_request: tuple[str, ...] = ("constraint",)
    constant_directives = ("-S /bin/bash",)
    lacks_in_component: Mapping[str, str] = {"queue": "a job of PBS is in one queue; use that of [job]"}
    prefix = "#PBS"
    submit_commands = ("qsub", "qstat")
    of_other_dialect: tuple[str, str]  # a pattern of directives of the other PBS, and why they are wrong
    features: tuple[str, str]  # a pattern of what may be requested of a node, and the rule

    def jobs(self) -> JobCommands:
        from jobgen.schedulers import pbs_jobs

        return pbs_jobs

    def cluster(self) -> ClusterCommands:
        from jobgen.schedulers import pbs_cluster

        return pbs_cluster

    def probes(self) -> Mapping[str, tuple[str, ...]]:
        from jobgen.schedulers.pbs_cluster import PROBES

        return PROBES

    def misplaced(self, line: str) -> str | None:
        if re.search(r"\s#", line):
            return "PBS supports no comment after a directive; remove it"
        if line.startswith("--"):
            return "is a directive of Slurm; PBS has options such as -l filesystems=home"
        pattern, why = self.of_other_dialect
        return why if re.search(pattern, line) else None

    def value(self, key: str, value: object) -> object:
        if key == "begin":
            return _begin(str(value))
        if key in ("qos", "reservation") and "," in str(value):
            raise ValueError("must be one name; PBS does not read a name after a comma")
        return value

    def constraint(self, text: str) -> str:
        pattern, rule = self.features
        if not matches(pattern, text):
            raise ValueError(f"must be {rule}")
        for name in re.findall(r"(\w+)=", text):
            if name in OURS:
                raise ValueError(f"{name} is already requested; use the option for it")
        return f":{text}"

    def dependency(self, kind: str, job: str) -> str:
        if kind == "aftercorr":
            raise ValueError("only Slurm supports aftercorr; use afterok")
        if "_" in job:
            raise ValueError(f"{job} is not an id of PBS, such as 12.server or 12[].server")
        return kind

    def mail(self, events: Iterable[str]) -> str:
        return "".join(sorted(EVENT_LETTERS[event] for event in events))

    def log(self, name: str, path: str) -> str:
        if ":" in path and not path.startswith("/"):
            raise ValueError(
                "PBS reads the text before the : as a host; remove it, or write an absolute path"
            )
        known = {"x": name, "%": "%", **self.log_codes}
        if unknown := [code for code in re.findall(r"%(.?)", path) if code not in known]:
            raise ValueError(f"{self.title} does not support %{unknown[0]} in a name; remove it")
        return fill(path, known)

    def settings(self, option: DirectiveOption) -> Iterator[tuple[str, DirectiveOption]]:
        if option.flag not in ("-l", "-W"):
            yield option.flag, option
            return
        parts = option.value.split(",") if option.flag == "-l" else self.attributes(option.value)
        for part in parts if option.value.strip() else ():
            name, _, value = part.strip().partition("=")
            yield f"{option.flag} {name}", option._replace(value=value)

    def attributes(self, text: str) -> list[str]:
        """Return the attributes in a value of -W."""
        return [text]

    def sizes(self, given: Mapping[str, str]) -> Request:
        request = super().sizes(given)
        request.totals = {key[len("-l ") :]: value for key, value in given.items() if key.startswith("-l ")}
        _read_nodes(request, request.totals)
        return request


def _begin(begin: str) -> str:
    """Return a date and time as PBS's digits; there are no relative times."""
    if begin[0] == "+":
        raise ValueError("PBS takes a date or a time of day, such as 2030-01-31T20:00 or 20:00")
    digits = re.sub(r"[-T:]", "", begin)
    return f"{digits[:-2]}.{digits[-2:]}" if begin.count(":") == 2 else digits


def _read_nodes(request: Request, totals: dict[str, str]) -> None:
    """Set the nodes and their resources from select=, nodes= or the totals of the whole job."""
    from jobgen.values.parsers import mebibytes, number

    key = "select" if "select" in totals else "nodes"
    request.chunks = tuple(_chunk(part) for part in totals[key].split("+")) if key in totals else ()
    if not request.chunks:
        request.gpus = number(totals.get("ngpus"))  # a total, as some sites define it
        return
    counts = [number(chunk[""]) or 1 for chunk in request.chunks]
    request.nodes = sum(counts)
    if len(request.chunks) > 1:
        return  # the nodes differ
    chunk = request.chunks[0]
    if key == "nodes":
        gpus = totals.get("gpus") if request.nodes == 1 else None  # of the job
        request.ranks_per_node = number(chunk.get("ppn"))
        request.gpus_per_node = number(chunk.get("gpus")) or number(gpus)
        total = mebibytes(totals["mem"], "b") if "mem" in totals and request.nodes else None
        request.mem = -(-total // request.nodes) if total and request.nodes else total
        if "pmem" in totals and (each := mebibytes(totals["pmem"], "b")) is not None:
            request.mem = max(each * (request.ranks_per_node or 1), request.mem or 0)
        request.cpus_per_rank = 1 if request.ranks_per_node else None
    else:
        request.ranks_per_node, request.gpus_per_node = (
            number(chunk.get("mpiprocs")),
            number(chunk.get("ngpus")),
        )
        npus = chunk.get("naccelerators", chunk.get("nnpus"))
        if request.gpus_per_node is None and npus:
            request.gpus_per_node, request.accelerator = number(npus), "npu"
        cpus = number(chunk.get("ncpus"))
        request.cpus_per_rank = cpus // max(request.ranks_per_node or 1, 1) if cpus else None
        request.mem = mebibytes(chunk["mem"], "b") if "mem" in chunk else None
    request.ranks = (request.ranks_per_node or 1) * request.nodes


def _chunk(text: str) -> dict[str, str]:
    """Return ``2:ncpus=4:mpiprocs=2`` as a dict, with the count under the empty key."""
    found: dict[str, str] = {}
    for at, part in enumerate(text.strip().split(":")):
        name, equals, value = part.partition("=")
        if at == 0 and not equals:
            found[""] = name
        else:
            found[name] = value
    found.setdefault("", "1")
    return found
