"""OpenPBS and PBS Pro: https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers import torque
from jobgen.schedulers.base import matches, size
from jobgen.schedulers.marks import Mark
from jobgen.schedulers.pbs import IN_CHUNKS, OURS, Pbs
from jobgen.schedulers.value_forms import empty_part
from jobgen.values.arrays import Ranges, one_range

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.request import Request
    from jobgen.schedulers.wanted import Lack
    from jobgen.spec import JobSpec

# The name of a reservation, which is a queue for jobs. pbs_rsub prints it with its server, but qsub does not
# accept that form.
RESERVATION = r"[RMS]\d+(\.[\w.-]+)?"
# Options for what is refused beside a select.
_OPTIONS = {
    "mem": "--mem", "ncpus": "--cpus-per-rank", "ngpus": "--gpus-per-node", "mpiprocs": "--ranks-per-node",
    "ompthreads": "--env OMP_NUM_THREADS=N",
}  # fmt: skip


class PbsPro(Pbs):
    name = "pbspro"
    title = "PBS Pro"
    template = "pbs.sh.j2"
    manual = "https://help.altair.com/2024.1.0/PBS%20Professional/PBSUserGuide2024.1.pdf"
    tested = "OpenPBS 23.06"
    lacks = {
        "hostfile": "PBS Pro chooses the hosts; a list of them is for jobgen local",
        "qos": "PBS Pro has no equivalent; use a queue",
        "comment": "PBS Pro does not store comments of users",
    }
    forms = {"reservation": "-q {}", "begin": "-a {}", "priority": "-p {}"}
    in_template = ("constraint", "exclusive")
    lists = ("licenses",)
    letters = "a:A:c:C:e:fhIj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz"
    heeds_first = frozenset({"-l"})
    heeds_all = frozenset({"-W depend"})
    array_form = "-J {}"
    array_pattern = r"\d+-\d+(:0*[1-9]\d*)?(%\d+)?"
    array_forms = "FIRST-LAST, FIRST-LAST:STEP and FIRST-LAST%LIMIT"
    least_range = 2
    array_needs_rerun = looks_up_hosts = True
    foreign_options = {"-t": ("Torque", "for an array write -J 0-9")}
    foreign_variables = torque.VARIABLES
    marks = (
        Mark(r"\bselect=[^,\s]+"),
        Mark(r"\bplace=[^,\s]+"),
        Mark(r"\b(?:filesystems|mpiprocs|ngpus|ompthreads)=[^,:\s]+"),
        Mark(r"\bncpus=\d+", 1),
        Mark(r"(?<=\s)-J\s*\d+-\d+"),
        Mark(r"(?<=\s)-P\s*\w[\w.-]*"),
        Mark(r"(?<=\s)-W\s*(?:block|sandbox)=\w+"),
        Mark(r"\b(?:PBS_ARRAY_INDEX|pbs_tmrsh)\b", in_commands=True),
        Mark(r"\$\{?NCPUS\b", 1, in_commands=True),
    )
    nodes_key = "-l select"
    request_keys = frozenset({nodes_key})
    refused_beside = {
        f"-l {name}": ("-l select", _OPTIONS.get(name, f"--constraint {name}=VALUE")) for name in IN_CHUNKS
    }
    memory_in_request = True
    passes_arguments = False
    log_codes = {"a": "^array_index^"}
    features = (r"\w+=[\w.-]+(:\w+=[\w.-]+)*", "a resource of a node in PBS Pro, such as gpu_type=a100")
    reservation_queue = RESERVATION
    agent = "pbs_tmrsh"
    node_commands = ("pbs_tmrsh",)
    interactive = "qsub -I -l select=1:{one}, and there: jobgen doctor pbs"
    starter = {"walltime": "1h", "nodes": 2, "gpus_per_node": 4, "launcher": "mpirun"}
    example_directive = "-l filesystems=home"
    example_constraint = "gpu_type=a100"

    # Conversion
    converted = Pbs.converted | {"-P"}
    argument_rule = "give them as variables: qsub -v NAME=VALUE"
    project_option = "-P"
    features_are_resources = True
    chunks_share_nodes = True
    sets_threads = True  # src/resmom/start_exec.c of OpenPBS
    directory_logs = {"output": "{}.OU", "error": "{}.ER"}
    no_index = "^array_index^"
    job_variables = {
        **Pbs.job_variables,
        "PBS_ARRAY_INDEX": "array_index",
        "PBS_ARRAY_ID": "array_id",
        "NCPUS": "cpus_per_chunk",
    }
    unset_variables = frozenset({"PBS_GPUFILE"})

    def check(self, spec: JobSpec) -> None:
        if spec.reservation and spec.queue:
            raise spec.refuse("reservation", "is a queue in PBS Pro; remove --queue")

    def misplaced(self, line: str) -> str | None:
        if (why := super().misplaced(line)) is not None:
            return why
        wrong = re.search(r"\bnodes=|\bppn=|\bgpus=|^-t\b", line)
        return "is Torque; PBS Pro takes select=, place= and -J (or use --dialect torque)" if wrong else None

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
        if key == "reservation" and self.is_reservation(str(value)):
            return str(value).partition(".")[0]
        return value

    def devices(self, accelerator: Accelerator) -> str | None:
        return accelerator.select

    def typed(self, kind: str, resource: str) -> str:
        if not resource:
            why = "PBS Pro has no resource for types of its own"
            raise ValueError(f"{why}: use --constraint with that of the site, such as gpu_type={kind}")
        return f"{{n}}:{resource}={kind}"

    def memory(self, mib: int, nodes: int, processes: int) -> str:
        return size(mib, "b")

    def node_lines(self, resources: Resources, chunk: str, place: str) -> list[str]:
        memory = f":mem={resources.memory}" if resources.memory else ""
        parts = (
            f"{one.nodes or 'N'}:ncpus={one.cpus}:mpiprocs={one.ranks}"
            + (f":{one.devices}" if one.devices else "")
            + memory
            + chunk
            for one in resources.chunks
        )
        return [f"-l select={'+'.join(parts)}", f"-l place={place}"]

    def site_request(self, gres: str | None) -> list[str]:
        ask = "-l select={nodes}:ncpus={cpus_per_node}:mpiprocs={ranks_per_node}"
        return [ask + (":ngpus={gpus_per_node}" if gres is not None else ""), "-l place=scatter"]

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

    def resources(self, asked: Request, devices: str, chunk: str) -> tuple[list[str], list[Lack]]:
        """Return select and place. Equal nodes are scattered; PBS places tasks without nodes freely."""
        ranks, cpus = asked.ranks_per_node, asked.cpus_per_rank
        count = asked.nodes or (asked.ranks if not ranks else None) or 1
        forms = {
            "select={}": count,
            "ncpus={}": (cpus or 1) * (ranks or 1) if cpus or ranks else None,
            "mpiprocs={}": ranks,
            "{}": devices * bool(asked.gpus_per_node),
            "mem={}": size(asked.mem, "b") if asked.mem else None,
        }
        lines = ["-l " + ":".join(form.format(value) for form, value in forms.items() if value) + chunk]
        if asked.nodes or asked.exclusive:
            place = "scatter" if asked.nodes else "free"
            lines.append(f"-l place={place}{':excl' if asked.exclusive else ''}")
        return lines, []

    def attributes(self, text: str) -> list[str]:
        """Return the attributes in a value of -W, some of which are lists themselves."""
        return re.split(r",(?=\s*\w+=)", text)

    def request(self, given: Mapping[str, str]) -> Request:
        asked = super().request(given)
        asked.account = asked.account or given.get("-P")
        return asked

    def accepts_time(self, text: str) -> bool:
        return not text or super().accepts_time(re.sub(r"^(\d+(?::\d+)?):$", r"\1", self.time(text)))

    def value_fault(self, key: str, value: str, version: str | None = None) -> str:
        from jobgen.schedulers.pbspro_values import value_fault

        return value_fault(key, value)

    def list_fault(self, value: str) -> str:
        return "an item of -l is empty: qsub refuses the script" if empty_part(value) else ""

    def together_faults(self, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        from jobgen.schedulers.pbspro_values import together_faults

        return together_faults(given)

    def time(self, text: str) -> str:
        """Return a time limit without the fraction of a second, which PBS Pro accepts and ignores."""
        return re.sub(r"(?<=\d)\.\d*$", "", text)

    def seconds(self, text: str) -> int | None:
        return super().seconds(self.time(text))

    def name_fault(self, name: str) -> str:
        if not matches(r"[A-Za-z0-9._+-]+", name):
            return "is refused: PBS Pro allows letters, digits and . _ + - only"
        return "is too long: 230 characters are allowed" if len(name) > 230 else ""


PBSPRO = PbsPro()
