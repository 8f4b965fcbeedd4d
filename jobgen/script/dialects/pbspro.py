"""Scripts of OpenPBS and PBS Pro."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jobgen.schedulers.base import matches
from jobgen.schedulers.pbspro import PBSPRO
from jobgen.schedulers.request import Request
from jobgen.script.dialects import pbspro_values
from jobgen.script.dialects.base import Mark
from jobgen.script.dialects.pbs import OF_MOAB, TORQUE_VARIABLES, PbsDialect
from jobgen.script.dialects.value_forms import Conflict, empty_part


class PbsProDialect(PbsDialect):
    scheduler = PBSPRO
    array_pattern = r"\d+-\d+(:0*[1-9]\d*)?(%\d+)?"
    array_forms = "FIRST-LAST, FIRST-LAST:STEP and FIRST-LAST%LIMIT"
    least_range = 2
    umask_base = 8
    wait_directive = "-W block=true"
    array_needs_rerun = looks_up_hosts = refuses_unset_names = True
    foreign_options = {"-t": ("Torque", "for an array write -J 0-9")}
    foreign_variables = TORQUE_VARIABLES
    local_variables = {"PBS_NUM_PPN": "cpus_per_chunk"}  # MetaCentrum
    local_words = r"\bscratch_(local|ssd|shared|shm)=|metacentrum"
    marks = (
        Mark(r"(?:\b|-l)select=[^,\s]+"),
        Mark(r"(?:\b|-l)place=[^,\s]+"),
        Mark(r"\b(?:filesystems|mpiprocs|ngpus|ompthreads)=[^,:\s]+"),
        Mark(r"\bncpus=\d+", 1),
        Mark(r"(?<=\s)-J\s*\d+-\d+"),
        Mark(r"(?<=\s)-P\s*\w[\w.-]*"),
        Mark(r"(?<=\s)-W\s*(?:block|sandbox)=\w+"),
        Mark(r"\b(?:PBS_ARRAY_INDEX|pbs_tmrsh)\b", in_commands=True),
        Mark(r"\$\{?NCPUS\b", 1, in_commands=True),
    )

    # Conversion
    converted = PbsDialect.converted | {"-P"}
    argument_rule = "give them as variables: qsub -v NAME=VALUE"
    project_option = "-P"
    task_mail = "j"
    features_are_resources = True
    chunks_share_nodes = True
    sets_threads = True  # src/resmom/start_exec.c of OpenPBS
    directory_logs = {"output": "{}.OU", "error": "{}.ER"}
    no_index = "^array_index^"
    job_variables = {
        **PbsDialect.job_variables,
        "PBS_ARRAY_INDEX": "array_index",
        "PBS_ARRAY_ID": "array_id",
        "NCPUS": "cpus_per_chunk",
        "PBS_NCPUS": "job_cpus",  # of NCI
    }
    unset_variables = r"PBS_(GPUFILE|MICFILE|NNODES|VERSION|VNODENUM|WALLTIME|O_(SERVER|INITDIR|ROOTDIR))"
    unset_variables += r"|(MOAB|TORQUE)_\w+"
    missing_commands = (*OF_MOAB, "qnodes", "qpeek")

    missing_options = (("pbsdsh", "-u"), ("pbsdsh", "-h"))

    def writes_log_in_place(self, directive: str) -> bool:
        return bool(re.fullmatch("-k [oe]*d[oe]*", directive))

    def accepts_time(self, text: str) -> bool:
        return not text or super().accepts_time(re.sub(r"^(\d+(?::\d+)?):$", r"\1", self.time(text)))

    def value_fault(self, key: str, value: str, version: str | None = None) -> str:
        return pbspro_values.value_fault(key, value)

    def list_fault(self, value: str) -> str:
        return "an item of -l is empty: qsub refuses the script" if empty_part(value) else ""

    def conflicts(self, given: Mapping[str, str], *, in_array: bool) -> Iterator[Conflict]:
        return pbspro_values.conflicts({**given, "-J": ""} if in_array else given)

    def time(self, text: str) -> str:
        """Return a time limit without the fraction of a second, which PBS Pro accepts and ignores."""
        return re.sub(r"(?<=\d)\.\d*$", "", text)

    def seconds(self, text: str) -> int | None:
        return super().seconds(self.time(text))

    def name_fault(self, name: str) -> str:
        if not matches(r"[A-Za-z0-9._+-]+", name):
            return "is refused: PBS Pro allows letters, digits and . _ + - only"
        return "is too long: 230 characters are allowed" if len(name) > 230 else ""

    def request(self, given: Mapping[str, str]) -> Request:
        request = super().request(given)
        request.account = request.account or given.get("-P")
        return request


PBSPRO_DIALECT = PbsProDialect()
