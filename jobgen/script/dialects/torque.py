"""Scripts of Torque."""

from __future__ import annotations

import re

from jobgen.schedulers.base import matches
from jobgen.schedulers.torque import ARRAY_KINDS, TORQUE
from jobgen.script.dialects import torque_values
from jobgen.script.dialects.base import Mark
from jobgen.script.dialects.pbs import PbsDialect
from jobgen.script.dialects.value_forms import empty_part


class TorqueDialect(PbsDialect):
    scheduler = TORQUE
    umask_base = 10
    no_counterpart = dict.fromkeys(
        ("-l procs", "-L tasks"),
        "-l procs and -L tasks let Torque choose the nodes, and have no counterpart: name them with "
        "--nodes and --ranks-per-node",
    )
    time_pattern = r"\d+(:\d+){0,3}"
    ignores_words = True
    line_joint = r"\\$"
    interactive_options = ("-x",)
    size_pattern = r"(?:[+-]?\d+[kmgtpe]?[bw]?)?"
    choices = {
        **PbsDialect.choices,
        "-m": (r"\s*(?:n|p|[abef]+)", "n, p, or letters of abef", "write -m abe"),
    }
    time_forms = "seconds, M:S, H:M:S and D:H:M:S"
    array_pattern = r"(?:\+?\d+(?:-\d+)*(?:,+\+?\d+(?:-\d+)*)*,*)?(?:%.*)?"
    array_forms = "a list of numbers and FIRST-LAST, then %LIMIT"
    foreign_options = {"-J": ("PBS Pro", "for an array write -t 0-9")}
    foreign_resources = dict.fromkeys(("select", "place"), "of PBS Pro: Torque takes nodes=N:ppn=M")
    foreign_variables = {"PBS_ARRAY_INDEX": "PBS_ARRAYID"}
    unprefixed = {**PbsDialect.unprefixed, "TMPDIR": "makes it only where pbs_mom has $tmpdir"}
    at_some_sites = PbsDialect.at_some_sites | {"TMPDIR"}
    marks = (
        Mark(r"(?:\b|-l)nodes=[^,\s]*:gpus=\d+"),
        Mark(r"(?:\b|-l)nodes=(?![^,\s]*:gpus=)[^,\s]*\bppn=(?:\d+|all|half)", 1),
        Mark(r"(?<=\s)-t\s*\d[\d,%-]*"),
        Mark(r"\bwalltime=\d+:\d+:\d+:\d+"),
        Mark(r"(?<=\s)-W\s*\"?x=\S+"),
        Mark(r"\b(?:advres|gres|naccesspolicy|procs|qos)=[\w.-]+"),
        Mark(r"\b(?:feature|partition|pmem|pvmem)=\S+", 1),
        Mark(r"(?<=\s)-[dw]\s*[\w./$~]\S*"),
        Mark(r"(?<=\s)-L\s*tasks=\d+"),
        Mark(r"\bPBS_(?:ARRAYID|GPUFILE|NP|NUM_NODES|NUM_PPN)\b", in_commands=True),
        Mark(r"\bpbsdsh\s+(?:-\w+\s+)*-u\b", in_commands=True),
    )
    log_variables = True

    # Conversion
    converted = PbsDialect.converted | {"-d", "-w", "-n"}
    argument_rule = 'give them with qsub -F "ARGUMENTS"'
    directory_options = ("-d", "-w")
    directive_attributes = r"(?:FLAGS:)?(ADVRES|QOS)[:=]([\w.-]+)"
    array_kinds = ARRAY_KINDS
    task_suffix = "-%a"
    name_of_array = "${PBS_JOBNAME%-$PBS_ARRAYID}"
    job_variables = {
        **PbsDialect.job_variables, "PBS_ARRAYID": "array_index", "PBS_NP": "slots",
        "MOAB_JOBARRAYINDEX": "array_index", "MOAB_JOBID": "job_id", "MOAB_JOBNAME": "job_name",
        "PBS_NUM_NODES": "chunks", "PBS_NUM_PPN": "slots_per_node", "PBS_GPUFILE": "gpu_file",
    }  # fmt: skip

    unset_variables = r"PBS_(ACCOUNT|JOBDIR|CONF_FILE|EXEC)"
    missing_commands = (
        *("pbs_tmrsh", "pbs_rstat", "pbs_rsub", "pbs_rdel", "pbs_attach", "pbs_release_nodes"),
    )
    counts = {**PbsDialect.counts, "array_id": r"${PBS_ARRAYID:+${PBS_JOBID/\[*\]/[]}}"}

    def accepts_time(self, text: str) -> bool:
        return matches(r"[\d.]*(:[\d.]*){0,3}", text)  # a missing number is 0

    def value_fault(self, key: str, value: str, version: str | None = None) -> str:
        return torque_values.value_fault(key, value)

    def may_be_local(self, key: str) -> bool:
        return torque_values.may_be_local(key)

    def list_fault(self, value: str) -> str:
        bare = [part for part in value.split(",") if "=" not in part]
        if empty_part(value) or (value and bare):
            return "-l takes a list of NAME=VALUE: qsub refuses the script"
        return ""

    def name_fault(self, name: str) -> str:
        return "is refused: Torque allows no blanks" if re.search(r"\s", name) else ""


TORQUE_DIALECT = TorqueDialect()
