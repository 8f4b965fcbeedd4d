"""The values that PBS Pro's qsub accepts for its options, measured with OpenPBS 23.06.

The functions of src/lib/Libecl/ecl_verify_values.c test them, and those of src/lib/Libcmds that these call.
Job attributes and resources are those of src/server/job_attr_def.xml and resc_def_all.xml.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from jobgen.errors import nearest, shown
from jobgen.schedulers.pbs import CHUNK_COUNTS, IN_CHUNKS
from jobgen.schedulers.pbspro import LONG_FORMS
from jobgen.script.dialects import value_forms
from jobgen.script.dialects.value_forms import LEAVE_ONE_OUT, PBS_FORMS, Conflict, Form, at_list
from jobgen.values.parsers import seconds

_TRUTH = r"(?i:true|false|[tfyn10])"
_JOB = r"\d+(?:\[\])?(?:\.[\w-]+)?(?:@[\w.-]+)?"
_KINDS = r"(?:after|before)(?:ok|notok|any)?|runone"
_WAIT = rf"(?:(?:{_KINDS})(?::{_JOB})+|on:0*[1-9]\d*)"
_COUNT, _SIZE = r"\+?\d+|", r"(?i:\+?\d+[kmgtp]?[bw]?)|"
_TIME = r"\d+(?::\d+){0,2}:?(?:\.\d*)?|"
# By option, resource of -l, or attribute of -W. A resource without a value is accepted.
FORMS: Mapping[str, Form] = {
    **PBS_FORMS,
    "-c": (r"[cnsw]|[cw]=0*[1-9]\d*", "n, s, c, w, c=MINUTES or w=MINUTES"),
    "-k": (r"(?=.*[oen])(?!.*n.*[oe]|.*[oe].*n)[doen]+", "n, o, e or oe, or the like with a d"),
    "-R": (r"[oe]+", "o, e or oe"),
    "-P": (r'[^/\[\]";:|<>+,?*]*', 'a name without / [ ] " ; : | < > + , ? *'),
    "-l ncpus": (_COUNT, "a number"),
    "-l mpiprocs": (_COUNT, "a number"),
    "-l ompthreads": (_COUNT, "a number"),
    "-l naccelerators": (_COUNT, "a number"),
    "-l nice": (r"[+-]?\d+|", "a number"),
    "-l file": (_SIZE, "a size, such as 10gb"),
    "-l pcput": (_TIME, "a time, such as 01:00:00"),
    "-l preempt_targets": (r"(?i:none)|.*(?:Resource_List\.|(?i:queue)).*=.*", "NONE or queue=NAME"),
    "-l nodes": (  # the rule torque-gpus reports gpus=
        value_forms.nodes(r"(?i:ppn|cpp)=0*[1-9]\d*|(?i:ncpus)=\d+|gpus=\d+") + "|",
        "NUMBER:ppn=NUMBER, or the name of a host, with plus signs between them",
    ),
    "-W depend": (rf"{_WAIT}:?(?:,{_WAIT}:?)*", "KIND:ID, such as afterok:12"),
    "-W block": (r"(?i:true|false)", "true or false"),
    "-W release_nodes_on_stageout": (_TRUTH, "true or false"),
    "-W umask": (r"[+-]?\d*", "a number, such as 022"),
    "-W run_count": (r"\+?\d+", "a number"),
    "-W sandbox": (r"(?i:HOME|O_WORKDIR|PRIVATE)", "HOME, O_WORKDIR or PRIVATE"),
    "-W tolerate_node_failures": (r"none|all|job_start", "none, all or job_start"),
    "-W group_list": (at_list(unique=True), "a group, and GROUP@HOST for others"),
}  # fmt: skip
_ATTRIBUTES = {
    *(key[3:] for key in FORMS if key.startswith("-W ")), *LONG_FORMS, "execution_time", "hold_types",
    "rerunable", "variable_list", "array_indices_submitted", "create_resv_from_job", "no_stdio_sockets",
    "max_run_subjobs", "cred", "forward_x11_port", "forward_x11_cookie", "submit_arguments",
    "executable", "argument_list",
}  # fmt: skip
_CHUNK_FORMS: Mapping[str, Form] = {
    **dict.fromkeys(CHUNK_COUNTS, (r"\d+", "a whole number")),
    "accelerator": (_TRUTH, "true or false"),
    "accelerator_memory": (r"(?i:\d+[kmgtp]?[bw]?)", "a size, such as 10gb"),
}
# Built-in resources of a whole job, and those that only the server sets.
_OF_JOB = {
    "walltime", "nodes", "select", "place", "cput", "nice", "file", "pcput", "pmem", "pvmem", "software",
    "min_walltime", "max_walltime", "preempt_targets", "hpm", "resc", "site",
}  # fmt: skip
_READ_ONLY = {"start_time", "nodect", "exec_vnode", "soft_walltime", "energy"}
_PLACES = ({"free", "pack", "scatter", "vscatter"}, {"excl", "shared", "exclhost"})
_NO_MISTAKES = (*IN_CHUNKS, "npus")  # sites with Ascend NPUs define it
# Resources of other schedulers; sites add their own names.
FOREIGN = {
    "gpus": "write select=N:ngpus=G",
    "procs": "write select=N:ncpus=C",
    "ppn": "write select=N:mpiprocs=M",
    "qos": "remove it: PBS Pro has none",
    "advres": "write -q R123, the queue of the reservation",
    "naccesspolicy": "write -l place=scatter:excl",
    "feature": "write a resource of a chunk, select=N:NAME=VALUE",
}


def value_fault(key: str, value: str) -> str:
    """Return why qsub refuses the value of an option; empty if it accepts it."""
    option, _, name = key.partition(" ")
    if option == "-W":
        name = name.lower()
        if name not in _ATTRIBUTES:
            return f"qsub has no attribute {shown(name)} for -W{nearest(name, _ATTRIBUTES)}"
        if not value and name != "umask":
            return f"{key} is refused: -W takes NAME=VALUE"
        key = f"-W {name}"
    elif option == "-l" and name in _READ_ONLY:
        return f"{key} is refused: only the server sets {name}"
    return value_forms.fault(FORMS, key, value)


def conflicts(given: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield the options that need another one."""
    if "-l max_walltime" in given and "-l min_walltime" not in given:
        yield Conflict("-l max_walltime", "max_walltime is refused without min_walltime")
    least, most = (seconds(given.get(f"-l {name}_walltime", "")) for name in ("min", "max"))
    if least and most and least > most:
        yield Conflict(
            "-l max_walltime", "max_walltime is less than min_walltime, and is refused", LEAVE_ONE_OUT
        )
    if "-J" not in given:
        if "-W max_run_subjobs" in given:
            yield Conflict("-W max_run_subjobs", "max_run_subjobs is only for arrays")
        if "j" in given.get("-m", ""):
            yield Conflict("-m", "-m j is only for arrays")


def select_faults(value: str) -> Iterator[str]:
    """Yield the errors in the chunks of a select."""
    value = re.sub(r":(?:walltime|cput)=[\d:]*\d", "", value)  # the rule walltime-in-select reports it
    for chunk in value.split("+"):
        count, colon, rest = chunk.partition(":")
        if "=" in count:
            count, colon, rest = "1", ":", chunk
        if not re.fullmatch(r"\d*[1-9]\d*", count, re.ASCII):
            yield f"a chunk begins with its number, at least 1, not with {shown(count)}"
            return
        yield from _part_faults(rest.split(":") if colon else ())


def _part_faults(parts: Collection[str]) -> Iterator[str]:
    """Yield the errors in the NAME=VALUE of a chunk."""
    seen = set()
    for part in parts:
        name, _, text = part.partition("=")
        low = name.lower()
        if not text:
            yield (f"{shown(part)} is not NAME=VALUE" if part else "there is no text after a colon")
        elif low in seen:
            yield f"{name} is twice in a chunk"
        elif fault := value_forms.fault(_CHUNK_FORMS, low, text):
            yield fault
        elif low in _OF_JOB | _READ_ONLY:
            yield f"{name} is a resource of a whole job, and not of a chunk"
        elif low in FOREIGN or (low not in _NO_MISTAKES and nearest(low, IN_CHUNKS, cutoff=0.85)):
            yield f"there is no resource {name}{nearest(low, IN_CHUNKS)}"
        seen.add(low)


def place_fault(value: str) -> str:
    """Return the error in a place; empty if there is none."""
    words = value.lower().split(":")
    groups = [word for word in words if re.fullmatch(r"group=\w+", word, re.ASCII)]
    rest = [word for word in words if word not in groups]
    known = [word for word in rest if any(word in kind for kind in _PLACES)]
    if known != rest:
        odd = next(word for word in rest if word not in known)
        return f"place does not support {shown(odd)}{nearest(odd, [*_PLACES[0], *_PLACES[1]])}"
    if len(groups) > 1 or any(len([word for word in words if word in kind]) > 1 for kind in _PLACES):
        return f"place={value} has two words of the same kind"
    return ""
