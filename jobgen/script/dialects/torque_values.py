"""The values that Torque's qsub accepts for its options, measured with Torque 6.1.3.

src/cmds/qsub_functions.c tests most of them, the server the resources: src/server/resc_def_all.c.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.errors import nearest, shown
from jobgen.schedulers.pbs import IN_CHUNKS
from jobgen.script.dialects import value_forms
from jobgen.script.dialects.value_forms import PBS_FORMS, Form, at_list, listed

_JOB = r"\d+(?:\[\d*\])?(?:\.[\w.-]+)?(?:@[\w.-]+)?"
_KINDS = r"(?:after|before)(?:ok|notok|any)?|after(?:start|ok|notok|any)array|syncwith"
_WAIT = rf"(?:(?:{_KINDS})(?::{_JOB})+:?|(?:on|synccount):0*[1-9]\d*)"
_COUNT = (r"[+-]?\d+|", "a number")
_CHECKPOINT = r"none|enabled|shutdown|periodic|[nscu]|c=.*|(?:depth|interval|dir)=[^,]*"
FORMS: Mapping[str, Form] = {
    **PBS_FORMS,
    "-c": (listed(_CHECKPOINT), "none, enabled, shutdown, periodic, interval=MINUTES or the like"),
    "-k": (r"n|oe?|eo?", "n, o, e or oe"),
    "-d": (r"[^$~].*", "a directory, without variables"),
    "-w": (r"[^$~].*", "a directory, without variables"),
    "-L": (r"tasks=0*[1-9]\d*(?::.*)?", "tasks=NUMBER and resources"),
    "-K": (r"0*[1-9]\d*", "a number of seconds"),
    "-l ncpus": _COUNT,
    "-l procs": (r"[+-]?\d+(?::.*)?|", "a number"),
    "-l nice": _COUNT,
    "-l file": (r"(?i:[+-]?\d+[kmgtpe]?[bw]?)|", "a size, such as 10gb"),
    "-l nodes": (
        value_forms.nodes(r"(?:ppn|gpus|mics)=0*[1-9]\d*|ppn=(?:all|half|quarter)"),  # words of VSC's filter
        "NUMBER:ppn=NUMBER, or the name of a host, with plus signs between them",
    ),
    "-W depend": (rf"(?:,?{_WAIT})*|", "KIND:ID, such as afterok:12"),
    "-W umask": (r"[-\d,]{0,4}", "up to four digits, such as 022"),
    "-W group_list": (
        lambda text: not text or at_list(unique=True)(text), "a group, and GROUP@HOST for others"
    ),
    "-W job_radix": (r"0*(?:[2-9]|[1-9]\d+)", "a number, at least 2"),
    "-W fault_tolerant": (r"(?i:true|false|[tfyn])", "true or false"),
}  # fmt: skip
_ATTRIBUTES = {
    "", "x", "queue", "init_work_dir", "account_name", "checkpoint", "error_path", "execution_time",
    "hold_types", "job_name", "join_path", "keep_files", "mail_points", "mail_users", "output_path",
    "shell_path_list", "user_list", "variable_list", "forward_x11", "submit_args", "job_array_request",
    "job_arguments",    "external_nodes", "login_property", "login_node_id", "copy_on_rerun", "job_id",
    *(key[3:] for key in FORMS if key.startswith("-W ")),
}  # fmt: skip
_NAMES = """
advres arch cput cpuclock ddisk deadline depend dmem epilogue feature file flags gattr geometry gmetric
gpus gres host image jgroup jobflags latency loglevel maxmem mem minpreempttime minprocspeed minwclimit
mppdepth mpplabels mppmem mppnodes mppnppn mpptime mppwidth naccesspolicy nallocpolicy ncpus nice nodes
nodeset opsys os other partition pcput pmem pref procs procs_bitmap prologue pvmem qos queuejob reqattr
retrycc retrycount rmtype select signal size software spriority subnode_list taskdistpolicy template
termsig termtime tpn trig trl var vcores vmem walltime wcrequeue cpupercent mpphost mpparch nodemask
mpplabel mppe pmppt ppf psds taskspn mta mtb mtc mtd mte mtf mtg mth srfs_tmp srfs_big srfs_fast
srfs_assist pe_mask energy_used
"""
_RESOURCES = frozenset(_NAMES.split())
# Resources of other schedulers, and a part of nodes=; any other name may be a resource of the site.
_FOREIGN = {
    *IN_CHUNKS, "ppn", "select", "place", "min_walltime", "max_walltime", "h_rt", "h_vmem", "mem_free",
}  # fmt: skip


def may_be_local(key: str) -> bool:
    """Return whether a resource is unknown to Torque, and not a misspelt one: a site may have its own."""
    option, _, name = key.partition(" ")
    return option == "-l" and name not in _RESOURCES and not _near_resource(name)


def _near_resource(name: str) -> str:
    return nearest(name, _RESOURCES, cutoff=0.75)


def value_fault(key: str, value: str) -> str:
    """Return why qsub or the server refuses the value of an option; empty if they accept it."""
    option, _, name = key.partition(" ")
    if option == "-l" and name not in _RESOURCES:
        near = _near_resource(name.lower())
        return f"Torque has no resource {shown(name)}{near}" if near or name in _FOREIGN else ""
    if option == "-W" and value and name.strip().lower() not in _ATTRIBUTES:
        return f"qsub has no attribute {shown(name)} for -W{nearest(name, _ATTRIBUTES)}"
    return value_forms.fault(FORMS, key, value)
