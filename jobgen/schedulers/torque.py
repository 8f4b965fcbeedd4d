"""Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm

advres, qos and naccesspolicy are resources of Moab.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobgen.schedulers.base import matches, size
from jobgen.schedulers.marks import Mark
from jobgen.schedulers.pbs import Pbs
from jobgen.schedulers.value_forms import empty_part
from jobgen.values.arrays import Ranges, listed

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.request import Request
    from jobgen.schedulers.wanted import Lack

# The kinds of dependencies on arrays.
ARRAY_KINDS = {
    "after": "afterstartarray", "afterany": "afteranyarray", "afterok": "afterokarray",
    "afternotok": "afternotokarray",
}  # fmt: skip

# Variables that only Torque sets, and the equivalents elsewhere.
VARIABLES = {
    "PBS_NP": "the number of lines of $PBS_NODEFILE",
    "PBS_NUM_PPN": "mpiprocs, written out",
    "PBS_NUM_NODES": "the number of hosts in $PBS_NODEFILE",
    "PBS_GPUFILE": "ngpus, written out",
    "PBS_ARRAYID": "PBS_ARRAY_INDEX",
}


class Torque(Pbs):
    name = "torque"
    title = "Torque"
    template = "torque.sh.j2"
    manual = "https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm"
    tested = "Torque 6.1"
    nodes_key = "-l nodes"
    request_keys = frozenset({nodes_key})
    memory_form = "-l {}"
    memory_keys = ("-l mem", "-l pmem")
    alternatives = (*Pbs.alternatives, frozenset(memory_keys))
    lacks = {
        "hostfile": "Torque chooses the hosts; a list of them is for jobgen local",
        "comment": "Torque does not store comments of users",
        "licenses": "Torque leaves licenses to its scheduler: use --directive with the syntax of yours",
    }
    lacks_if_mixed = {"mem": "Torque counts it per process, and the nodes have different numbers of them"}
    forms = {
        "reservation": "-l advres={}",
        "qos": "-l qos={}",
        "begin": "-a {}",
        "priority": "-p {}",
        "exclusive": "-l naccesspolicy=singlejob",
    }
    letters = "a:A:b:c:C:d:D:e:EfF:hIj:k:K:l:L:m:M:nN:o:p:P:q:r:S:t:T:u:v:Vw:W:xXz"
    heeds_all = frozenset({"-W stagein", "-W stageout", "-W x"})
    time_pattern = r"\d+(:\d+){0,3}"
    ignores_words = True
    line_joint = r"\\$"
    interactive_options = ("-x",)
    size_pattern = r"(?:[+-]?\d+[kmgtpe]?[bw]?)?"
    choices = {**Pbs.choices, "-m": (r"\s*(?:n|p|[abef]+)", "n, p, or letters of abef", "write -m abe")}
    time_forms = "seconds, M:S, H:M:S and D:H:M:S"
    array_form = "-t {}"
    array_pattern = r"(?:\+?\d+(?:-\d+)*(?:,+\+?\d+(?:-\d+)*)*,*)?(?:%.*)?"
    array_forms = "a list of numbers and FIRST-LAST, then %LIMIT"
    foreign_options = {"-J": ("PBS Pro", "for an array write -t 0-9")}
    foreign_resources = dict.fromkeys(("select", "place"), "of PBS Pro: Torque takes nodes=N:ppn=M")
    foreign_variables = {"PBS_ARRAY_INDEX": "PBS_ARRAYID"}
    marks = (
        Mark(r"\bnodes=[^,\s]*:gpus=\d+"),
        Mark(r"\bnodes=(?![^,\s]*:gpus=)[^,\s]*\bppn=\d+", 1),
        Mark(r"(?<=\s)-t\s*\d[\d,%-]*"),
        Mark(r"\bwalltime=\d+:\d+:\d+:\d+"),
        Mark(r"(?<=\s)-W\s*\"?x=\S+"),
        Mark(r"\b(?:advres|naccesspolicy|procs|qos)=[\w.-]+"),
        Mark(r"\b(?:feature|partition|pmem|pvmem)=\S+", 1),
        Mark(r"(?<=\s)-[dw]\s*[\w./$~]\S*"),
        Mark(r"(?<=\s)-L\s*tasks=\d+"),
        Mark(r"\bPBS_(?:ARRAYID|GPUFILE|NP|NUM_NODES|NUM_PPN)\b", in_commands=True),
        Mark(r"\bpbsdsh\s+(?:-\w+\s+)*-u\b", in_commands=True),
    )
    log_variables = True
    array_rule = "; the list of these indices is too long"
    log_codes = {"j": "$PBS_JOBID", "A": "$PBS_JOBID", "a": "$PBS_ARRAYID"}
    features = (r"[A-Za-z][\w.-]*(:[A-Za-z][\w.-]*)*", "a property of a node in Torque, such as a100")
    hosts_by_core = True
    agent = "pbsdsh"
    node_commands = ("pbsdsh",)
    interactive = "qsub -I -l nodes=1:ppn=1:{one}, and there: jobgen doctor pbs --dialect torque"
    starter = {"walltime": "1h", "dialect": "torque", "nodes": 2, "gpus_per_node": 1, "launcher": "mpirun"}
    example_directive = "-l naccesspolicy=singlejob"
    example_constraint = "a100"

    # Conversion
    converted = Pbs.converted | {"-d", "-w", "-n"}
    argument_rule = 'give them with qsub -F "ARGUMENTS"'
    directory_options = ("-d", "-w")
    directive_attributes = r"(?:FLAGS:)?(ADVRES|QOS)[:=]([\w.-]+)"
    array_kinds = ARRAY_KINDS
    task_suffix = "-%a"
    job_variables = {
        **Pbs.job_variables, "PBS_ARRAYID": "array_index", "PBS_NP": "slots", "PBS_NUM_NODES": "chunks",
        "PBS_NUM_PPN": "slots_per_node", "PBS_GPUFILE": "gpu_file",
    }  # fmt: skip

    def misplaced(self, line: str) -> str | None:
        if (why := super().misplaced(line)) is not None:
            return why
        wrong = re.search(r"\b(select|place|ngpus|mpiprocs|ncpus)=|^-J\b", line)
        return "is PBS Pro; Torque takes nodes=N:ppn=M and -t (or use --dialect pbspro)" if wrong else None

    def devices(self, accelerator: Accelerator) -> str | None:
        return accelerator.torque

    def typed(self, kind: str, resource: str) -> str:
        if not matches(r"[A-Za-z][\w.-]*", kind):
            raise ValueError("a property of a node in Torque begins with a letter")
        return f"{{n}}:{kind}"

    def memory(self, mib: int, nodes: int, processes: int) -> str:
        """Return ``mem=`` of the job on one node, ``pmem=`` of a process on several."""
        return f"mem={size(mib, 'b')}" if nodes == 1 else f"pmem={-(-mib * 1024 // processes)}kb"

    def node_lines(self, resources: Resources, chunk: str, place: str) -> list[str]:
        parts = (
            f"{one.nodes or 'N'}:ppn={one.cpus}" + (f":{one.devices}" if one.devices else "") + chunk
            for one in resources.chunks
        )
        return [f"-l nodes={'+'.join(parts)}"]

    def site_request(self, gres: str | None) -> list[str]:
        return [
            "-l nodes={nodes}:ppn={cpus_per_node}" + (":gpus={gpus_per_node}" if gres is not None else "")
        ]

    def ranges(self, ranges: Ranges) -> Ranges:
        return listed(ranges)

    def dependency(self, kind: str, job: str) -> str:
        kind = super().dependency(kind, job)
        return ARRAY_KINDS[kind] if "[]" in job else kind

    # Conversion

    def resources(self, asked: Request, devices: str, chunk: str) -> tuple[list[str], list[Lack]]:
        from jobgen.schedulers.wanted import Lack

        ranks, cpus = asked.ranks_per_node or 1, asked.cpus_per_rank or 1
        nodes = asked.nodes or asked.ranks or 1
        lost = []
        if cpus > 1 and ranks > 1:
            why = "Torque counts cores only: ppn is their product"
            lost.append(Lack("cpus", f"{cpus} cores for each of {ranks} ranks", why, lost=False))
        gpus = f":{devices}" if devices and asked.gpus_per_node else ""
        lines = [f"-l nodes={nodes}:ppn={ranks * cpus}{gpus}{chunk}"]
        if asked.mem:
            lines.append(f"-l {self.memory(asked.mem, nodes, ranks * cpus)}")
        return lines, lost

    def accepts_time(self, text: str) -> bool:
        return matches(r"[\d.]*(:[\d.]*){0,3}", text)  # a missing number is 0

    def value_fault(self, key: str, value: str, version: str | None = None) -> str:
        from jobgen.schedulers.torque_values import value_fault

        return value_fault(key, value)

    def list_fault(self, value: str) -> str:
        bare = [part for part in value.split(",") if "=" not in part]
        if empty_part(value) or (value and bare):
            return "-l takes a list of NAME=VALUE: qsub refuses the script"
        return ""

    def name_fault(self, name: str) -> str:
        return "is refused: Torque allows no blanks" if re.search(r"\s", name) else ""


TORQUE = Torque()
