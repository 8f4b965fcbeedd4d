"""Directives of each scheduler except those for sizes: reservations, mail, output and the like."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jobgen.schedulers.dependencies import dependencies
from jobgen.spec import JobSpec

# Options with a directive of their own. Options in other places are below; those that a scheduler does not
# support are in its row of base.py. On Torque, advres, qos and naccesspolicy are resources of Moab.
FORMS = {
    "slurm": {
        "reservation": "--reservation={}",
        "qos": "--qos={}",
        "constraint": "--constraint={}",
        "licenses": "--licenses={}",
        "comment": '--comment="{}"',
        "begin": "--begin={}",
        "priority": "--nice={}",
        "exclusive": "--exclusive",
    },
    "pbspro": {"reservation": "-q {}", "begin": "-a {}", "priority": "-p {}"},
    "torque": {
        "reservation": "-l advres={}",
        "qos": "-l qos={}",
        "begin": "-a {}",
        "priority": "-p {}",
        "exclusive": "-l naccesspolicy=singlejob",
    },
    "local": {},
}
# The name of a reservation in PBS Pro, which is a queue for jobs. pbs_rsub prints it with its server, but
# qsub does not accept that form.
RESERVATION = r"[RMS]\d+(\.[\w.-]+)?"
EVENTS = {"begin": ("BEGIN", "b"), "end": ("END", "e"), "fail": ("FAIL", "a"), "none": ("NONE", "n")}
# Resources that the script itself requests from PBS Pro, in the chunk of each node or outside of it.
_OURS = ("ncpus", "mpiprocs", "ompthreads", "ngpus", "mem", "nodes", "select", "place", "walltime")
# Slurm's filename patterns, and their equivalents on PBS Pro and Torque; the name is known beforehand.
_PATTERN = {
    "pbspro": {"a": "^array_index^"},
    "torque": {"j": "$PBS_JOBID", "A": "$PBS_JOBID", "a": "$PBS_ARRAYID"},
}


class Directives(NamedTuple):
    """The directives of a job. ``chunk`` follows the request of each node; ``place`` is PBS Pro's.

    ``log`` is the file of the output; None leaves it to PBS.
    """

    lines: tuple[str, ...]
    chunk: str
    place: str
    mail_on: str
    log: str | None


def directives(spec: JobSpec, row: str, array: str | None) -> Directives:
    """Return the directives of a job.

    Raises:
        JobgenError: the scheduler does not accept a value.
    """
    forms = {key: form for key, form in FORMS[row].items() if getattr(spec, key) not in (None, False)}
    own = [line for key in forms for line in _said(spec, key, partial(lines, key), row)]
    if row == "pbspro" and spec.licenses:
        own += _said(spec, "licenses", partial(lines, "licenses"), row)
    if row == "pbspro" and spec.reservation and spec.queue:
        raise spec.refuse("reservation", "is a queue of its own in PBS Pro; leave out --queue")
    if row != "slurm" and spec.site and (request := "".join(spec.site.file.request)):
        for key in ("constraint", "exclusive"):
            if getattr(spec, key) and f"{{{key}}}" not in request:
                raise spec.refuse(key, "the site has a form of its own for the nodes; leave it out")
    in_chunk = spec.constraint and row in ("pbspro", "torque")
    log = _log(spec, row, bool(array))
    return Directives(
        lines=tuple(line for line in (array, dependencies(spec, row), *own) if line),
        chunk=_said(spec, "constraint", chunk, row) if in_chunk else "",
        place="scatter:excl" if spec.exclusive else "scatter",
        mail_on=_mail_on(spec, row),
        log=log,
    )


def _said(spec: JobSpec, key: str, form: Callable[[Any, str], Any], row: str) -> Any:
    """Return a value in its form for the scheduler; raise JobgenError if the scheduler does not accept it."""
    try:
        return form(getattr(spec, key), row)
    except ValueError as error:
        raise spec.refuse(key, str(error)) from None


def lines(key: str, value: Any, row: str) -> list[str]:
    """Return the directives of one option.

    Raises:
        ValueError: the scheduler does not accept the value; the message is the reason.
    """
    if key == "licenses" and row == "pbspro":
        found = [one.partition(":") for one in value.split(",")]
        for name, _, _ in found:
            if name in _OURS or not re.fullmatch(r"[A-Za-z][\w-]*", name, re.ASCII):
                raise ValueError(f"{name} is no license of PBS Pro, where each is a plain resource")
        return [f"-l {name}={count or 1}" for name, _, count in found]
    return [FORMS[row][key].format(_value(key, value, row))]


def _value(key: str, value: Any, row: str) -> object:
    if key == "begin":
        return _begin(value, row)
    if key == "priority" and row == "slurm":
        if value > 0:
            raise ValueError("only an operator of Slurm may raise it; use 0 or less")
        return -value
    if key in ("qos", "reservation") and row != "slurm" and "," in value:
        raise ValueError("must be one name; PBS takes what follows a comma for something else")
    if key == "reservation" and row == "pbspro" and re.fullmatch(RESERVATION, value, re.ASCII):
        return value.partition(".")[0]
    if key == "constraint" and not re.fullmatch(r"[\w.&|*()\[\],=:@+-]+", value, re.ASCII):
        raise ValueError("must be features of nodes without blanks, such as a100 or a100&ib")
    return value


def chunk(constraint: str, row: str) -> str:
    """Return a constraint as it follows PBS's request of each node.

    Raises:
        ValueError: the constraint is not valid there.
    """
    pattern, rule = {
        "pbspro": (r"\w+=[\w.-]+(:\w+=[\w.-]+)*", "a resource of a node in PBS Pro, such as gpu_type=a100"),
        "torque": (r"[A-Za-z][\w.-]*(:[A-Za-z][\w.-]*)*", "a property of a node in Torque, such as a100"),
    }[row]
    if not re.fullmatch(pattern, constraint, re.ASCII):
        raise ValueError(f"must be {rule}")
    for name in re.findall(r"(\w+)=", constraint):
        if name in _OURS:
            raise ValueError(f"{name} is asked for already; use the option that says it")
    return f":{constraint}"


def _begin(begin: str, row: str) -> str:
    """Return the time for the scheduler: Slurm takes it as typed; PBS takes digits, but no relative times."""
    if row == "slurm":
        return begin if begin[0] != "+" else f"now+{begin[1:]}"
    if begin[0] == "+":
        raise ValueError("PBS takes a date or a time of day, such as 2030-01-31T20:00 or 20:00")
    digits = re.sub(r"[-T:]", "", begin)
    seconds = begin.count(":") == 2
    return f"{digits[:-2]}.{digits[-2:]}" if seconds else digits


def _mail_on(spec: JobSpec, row: str) -> str:
    events = spec.mail_on or (("begin", "end", "fail") if spec.mail else ())
    if row == "slurm":
        return ",".join(EVENTS[one][0] for one in events)
    return "".join(sorted(EVENTS[one][1] for one in events))


def _log(spec: JobSpec, row: str, array: bool) -> str | None:
    """Return the path of the output with the patterns of the scheduler."""
    if spec.log is None:
        return f"{spec.name}-{'%A_%a' if array else '%j'}.log" if row == "slurm" else None
    codes = re.findall(r"%(.)", spec.log)
    if array and not {"a", "j" if row == "slurm" else "a"} & set(codes):
        raise spec.refuse("log", "all tasks of the array would write into one file: it needs %a")
    if not array and {"a", "A"} & set(codes):
        raise spec.refuse("log", "%A and %a are of arrays; the id of a job is %j")
    return spec.log if row == "slurm" else _said(spec, "log", partial(pattern, spec.name), row)


def pattern(name: str, log: str, row: str) -> str:
    """Return a path with PBS's equivalents of Slurm's %x and the like.

    Raises:
        ValueError: PBS has no equivalent for one of them, or takes a part of the path for a host.
    """
    if ":" in log and not log.startswith("/"):
        raise ValueError("PBS takes what is before the : for a host; leave it out, or write the path from /")
    known = {"x": name, **_PATTERN.get(row, {})}
    if unknown := [code for code in re.findall(r"%(.?)", log) if code not in known]:
        title = "Torque" if row == "torque" else "PBS Pro"
        raise ValueError(f"{title} puts no %{unknown[0]} into a name; leave it out")
    return re.sub(r"%(.)", lambda found: known[found[1]], log)


def unpattern(path: str) -> str:
    """Return a path of PBS with Slurm's patterns: the inverse of ``pattern``."""
    path = re.sub(r"\$\{(\w+)\}", r"$\1", path)
    for code, word in (pair for words in _PATTERN.values() for pair in words.items()):
        path = path.replace(word, f"%{code}")
    return path
