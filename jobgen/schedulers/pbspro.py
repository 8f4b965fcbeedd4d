"""OpenPBS and PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.schedulers.base import Grammar, matches, size
from jobgen.schedulers.pbs import IN_CHUNKS, OURS, Pbs
from jobgen.values.arrays import Ranges, one_range

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.request import DirectiveOption, Lack, Request
    from jobgen.spec import Specification

# The name of a reservation, which is a queue for jobs. pbs_rsub prints it with its server, but qsub does not
# accept that form.
RESERVATION = r"[RMS]\d+(\.[\w.-]+)?"
# Options for what is refused beside a select.
_OPTIONS = {
    "mem": "--mem", "ncpus": "--cpus-per-rank", "ngpus": "--gpus-per-node", "mpiprocs": "--ranks-per-node",
    "ompthreads": "--env OMP_NUM_THREADS=N",
}  # fmt: skip

# Attributes in -W with the values of other options: the rest of process_opts in src/cmds/qsub.c of OpenPBS.
LONG_FORMS = {
    "account_name": "-A", "checkpoint": "-c", "error_path": "-e", "job_name": "-N", "join_path": "-j",
    "keep_files": "-k", "mail_points": "-m", "mail_users": "-M", "output_path": "-o", "priority": "-p",
    "project": "-P", "remove_files": "-R", "shell_path_list": "-S", "user_list": "-u",
}  # fmt: skip


class PbsPro(Pbs):
    name = "pbspro"
    title = "PBS Pro"
    template = "pbs.sh.j2"
    manual = "https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf"
    help = Pbs.help._replace(
        interactive="qsub -I -l select=1:{one}, and there: jobgen doctor pbs",
        starter={"walltime": "1h", "nodes": 2, "gpus_per_node": 4, "launcher": "mpirun"},
        directive="-l filesystems=home",
        constraint="gpu_type=a100",
        tested="OpenPBS 23.06",
    )
    keys = Pbs.keys._replace(
        nodes="-l select",
        all=frozenset({"-l select"}),
        refused_beside={
            f"-l {name}": ("-l select", _OPTIONS.get(name, f"--constraint {name}=VALUE"))
            for name in IN_CHUNKS
        },
    )
    behaviour = Pbs.behaviour._replace(passes_arguments=False, memory_in_request=True)
    lacks = {
        "hostfile": Pbs.lacks["hostfile"],
        "qos": "PBS Pro has no equivalent; use a queue",
        "comment": "PBS Pro does not store comments of users",
    }
    forms = {"reservation": "-q {}", "begin": "-a {}", "priority": "-p {}"}
    in_request = ("constraint", "exclusive")
    lists = ("licenses",)
    grammar = Grammar(
        letters="a:A:c:C:e:fhIj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz",
        heeds_first=frozenset({"-l"}),
        heeds_all=frozenset({"-W depend"}),
    )
    tolerance = "-W tolerate_node_failures=all"
    log_codes = {"a": "^array_index^"}
    one_task = "0-1:2"  # a step beyond the end of the range
    features = (r"\w+=[\w.-]+(:\w+=[\w.-]+)*", "a resource of a node in PBS Pro, such as gpu_type=a100")
    reservation_queue = RESERVATION
    agent = "pbs_tmrsh"
    node_commands = ("pbs_tmrsh",)
    of_other_dialect = (
        r"\bnodes=|\bppn=|\bgpus=|^-t\b",
        "is a directive of Torque; PBS Pro has select=, place= and -J (or use --dialect torque)",
    )

    def settings(self, option: DirectiveOption) -> Iterator[tuple[str, DirectiveOption]]:
        for key, one in super().settings(option):
            short = LONG_FORMS.get(key[3:].lower()) if option.flag == "-W" else None
            yield (short, one._replace(flag=short)) if short and one.value else (key, one)

    def check(self, spec: Specification) -> None:
        if spec.reservation and spec.queue:
            raise spec.refuse("reservation", "is a queue in PBS Pro; remove --queue")

    def lines(self, key: str, value: object) -> list[str]:
        if key != "licenses":
            return super().lines(key, value)
        found = [one.partition(":") for one in str(value).split(",")]
        for name, _, _ in found:
            if name in OURS or not matches(r"[A-Za-z][\w-]*", name):
                raise ValueError(f"{name} is not a license of PBS Pro, where each is a resource")
        return [f"-l {name}={count or 1}" for name, _, count in found]

    def value(self, key: str, value: object) -> object:
        value = super().value(key, value)
        if key != "reservation":
            return value
        if not self.is_reservation(str(value)):
            raise ValueError("reservations of PBS Pro are queues with names such as R12")
        return str(value).partition(".")[0]

    def devices(self, accelerator: Accelerator, kind: str = "") -> str | None:
        return accelerator.select

    def typed(self, kind: str, resource: str) -> str:
        if not resource:
            why = "PBS Pro has no resource for types of its own"
            raise ValueError(f"{why}: use --constraint with that of the site, such as gpu_type={kind}")
        if not matches(r"[\w.@/%~-]+", kind):
            raise ValueError(f"{kind} is not the value of a resource in a select of PBS Pro")
        return f"{{n}}:{resource}={kind}"

    def memory(self, mib: int, nodes: int) -> str:
        return size(mib, "b")

    def node_lines(self, resources: Resources, chunk: str, place: str) -> list[str]:
        parts = (
            _chunk(one.nodes or "N", one.cpus, one.ranks, one.devices, one.memory or resources.memory)
            + (one.more or chunk)
            for one in resources.chunks
        )
        return [f"-l select={'+'.join(parts)}", f"-l place={place}"]

    def total_memory(self, mib: int) -> str:
        return size(mib, "b")

    def ranges(self, ranges: Ranges) -> Ranges:
        return one_range(ranges)

    def dependency(self, kind: str, job: str) -> str:
        kind = super().dependency(kind, job)
        if re.search(r"\[\d", job):
            whole = re.sub(r"\d+]", "]", job)
            raise ValueError(f"PBS Pro cannot wait for a single task: use {whole}, the whole array")
        return kind

    # Conversion

    def resources(self, request: Request, devices: str, chunk: str) -> tuple[list[str], list[Lack]]:
        """Return select and place. Equal nodes are scattered; PBS places tasks without nodes freely."""
        ranks, cpus = request.ranks_per_node, request.cpus_per_rank
        count = request.nodes or (request.ranks if not ranks else None) or 1
        cores = (cpus or 1) * (ranks or 1) if cpus or ranks else None
        memory = size(request.mem, "b") if request.mem else None
        select = _chunk(count, cores, ranks, devices * bool(request.gpus_per_node), memory)
        lines = [f"-l select={select}{chunk}"]
        if request.nodes or request.exclusive:
            place = "scatter" if request.nodes else "free"
            lines.append(f"-l place={place}{':excl' if request.exclusive else ''}")
        return lines, []

    def attributes(self, text: str) -> list[str]:
        """Return the attributes in a value of -W, some of which are lists themselves."""
        return re.split(r",(?=\s*\w+=)", text)


def _chunk(
    nodes: int | str, cpus: int | str | None, ranks: int | str | None, devices: str | None, memory: str | None
) -> str:
    """Return the request of equal nodes in a value of select."""
    named = {"ncpus": cpus, "mpiprocs": ranks, "": devices, "mem": memory}
    return ":".join([str(nodes), *(f"{name}={value}".lstrip("=") for name, value in named.items() if value)])


PBSPRO = PbsPro()
