"""The values that PBS Pro's qsub accepts for its options, measured with OpenPBS 23.06."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.errors import nearest, shown

_DAY = r"(?:(?:(?:\d\d)?\d\d)?(?:0[1-9]|1[0-2]))?(?:0[1-9]|[12]\d|3[01])"
_TRUTH = r"(?i:true|false|[tfyn10])"
_JOB = r"\d+(?:\[\])?(?:\.[\w.-]+)?(?:@[\w.-]+)?"
_KINDS = r"(?:after|before)(?:ok|notok|any)?|runone"
_WAIT = rf"(?:(?:{_KINDS})(?::{_JOB})+|on:\d+)"
_SHELL = r"/[^,@]+@[^,@]+"
_STAGED = r"[^@,]+@[^:,]+:[^,]+"
# Option, or attribute of -W: the pattern of its value, and its description.
FORMS = {
    "-p": (r"[+-]?\d{1,4}", "a number from -1024 to 1023"),
    "-c": (r"[cnsw]|[cw]=[1-9]\d*", "n, s, c, w, c=MINUTES or w=MINUTES"),
    "-k": (r"n|(?=d*[oe])[doe]+", "n, o, e or oe, or the like with a d"),
    "-r": (r"[yn]", "y or n"),
    "-R": (r"[oe]{1,2}", "o, e or oe"),
    "-a": (rf"(?:{_DAY})?(?:[01]\d|2[0-3])[0-5]\d(?:\.[0-5]\d)?", "[[CC]YY]MMDDhhmm[.SS] or hhmm"),
    "-S": (rf"(?:{_SHELL},)*/[^,@]+(?:@[^,@]+)?(?:,{_SHELL})*", "an absolute path, and PATH@HOST for others"),
    "-W depend": (rf"{_WAIT}(?:,{_WAIT})*", "KIND:ID, such as afterok:12"),
    "-W block": (_TRUTH, "true or false"),
    "-W release_nodes_on_stageout": (_TRUTH, "true or false"),
    "-W umask": (r"\d+", "a number, such as 022"),
    "-W run_count": (r"\d+", "a number"),
    "-W sandbox": (r"HOME|O_WORKDIR|PRIVATE", "HOME, O_WORKDIR or PRIVATE"),
    "-W tolerate_node_failures": (r"none|all|job_start", "none, all or job_start"),
    "-W stagein": (rf"{_STAGED}(?:,{_STAGED})*", "PATH@HOST:PATH"),
    "-W stageout": (rf"{_STAGED}(?:,{_STAGED})*", "PATH@HOST:PATH"),
}  # fmt: skip
_COUNTS = ("ncpus", "mpiprocs", "ompthreads", "ngpus", "naccelerators")
_CHUNK = (*_COUNTS, "mem", "vmem", "host", "vnode", "arch", "accelerator", "accelerator_model")
_PLACES = ({"free", "pack", "scatter", "vscatter"}, {"excl", "shared", "exclhost"})
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
    if key not in FORMS:
        return ""
    pattern, words = FORMS[key]
    fits = re.fullmatch(pattern, value, re.ASCII) and (key != "-p" or -1024 <= int(value) <= 1023)
    return "" if fits else f"{key} {shown(value)} is refused: it takes {words}"


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
        seen = set()
        for part in rest.split(":") if colon else ():
            name, _, text = part.partition("=")
            if not text:
                yield (f"{shown(part)} is not NAME=VALUE" if part else "there is no text after a colon")
            elif name in seen:
                yield f"{name} is twice in a chunk"
            elif name in _COUNTS and not re.fullmatch(r"\d+", text, re.ASCII):
                yield f"{name} takes a whole number, not {shown(text)}"
            elif name in FOREIGN or (name not in _CHUNK and nearest(name, _CHUNK, cutoff=0.85)):
                yield f"there is no resource {name}{nearest(name, _CHUNK)}"
            seen.add(name)


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
