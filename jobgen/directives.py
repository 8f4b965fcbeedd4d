"""What the scheduler is told beside sizes, in its own words: reservations, mail, output and the like."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobgen.dependencies import dependencies
from jobgen.spec import JobSpec

# What has a directive of its own there. What has another place is below, and what a scheduler cannot say is
# in its row of schedulers.py. Of Torque, advres, qos and naccesspolicy are words of Moab.
_FORMS = {
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
_EVENTS = {"begin": ("BEGIN", "b"), "end": ("END", "e"), "fail": ("FAIL", "a"), "none": ("NONE", "n")}
# Slurm's words in a pattern, as PBS Pro and Torque have them; the name is known beforehand.
_PATTERN = {
    "pbspro": {"a": "^array_index^"},
    "torque": {"j": "$PBS_JOBID", "A": "$PBS_JOBID", "a": "$PBS_ARRAYID"},
}


class Directives(NamedTuple):
    """``lines`` stand by themselves, ``chunk`` behind the request of each node, ``place`` is PBS Pro's.

    ``log`` is where the output goes; None leaves it to PBS. ``written`` is the same in the script's words.
    """

    lines: tuple[str, ...]
    chunk: str
    place: str
    mail_on: str
    log: str | None
    written: str | None


def directives(spec: JobSpec, row: str, array: str | None) -> Directives:
    """Resolve them.

    Raises:
        JobgenError: a value that this scheduler does not take.
    """
    forms = {key: form for key, form in _FORMS[row].items() if getattr(spec, key) not in (None, False)}
    own = [form.format(_value(spec, key, row)) for key, form in forms.items()]
    if row == "pbspro" and spec.licenses:
        own += [f"-l {name}={count or 1}" for name, _, count in _licenses(spec.licenses)]
    if row == "pbspro" and spec.reservation and spec.queue:
        raise spec.refuse("reservation", "is a queue of its own in PBS Pro; leave out --queue")
    if row != "slurm" and spec.site and (request := "".join(spec.site.file.request)):
        for key in ("constraint", "exclusive"):
            if getattr(spec, key) and f"{{{key}}}" not in request:
                raise spec.refuse(key, "the site has a form of its own for the nodes; leave it out")
    log = _log(spec, row, bool(array))
    return Directives(
        lines=tuple(line for line in (array, dependencies(spec, row), *own) if line),
        chunk=f":{_chunk(spec, row)}" if spec.constraint and row != "slurm" else "",
        place="scatter:excl" if spec.exclusive else "scatter",
        mail_on=_mail_on(spec, row),
        log=log,
        written=_written(log) if row in _PATTERN else None,
    )


def _value(spec: JobSpec, key: str, row: str) -> object:
    value = getattr(spec, key)
    if key == "begin":
        return _begin(spec, row)
    if key == "priority" and row == "slurm":
        if value > 0:
            raise spec.refuse("priority", "only an operator of Slurm may raise it; use 0 or less")
        return -value
    if key == "constraint" and not re.fullmatch(r"[\w.&|*()\[\],=:@+-]+", value, re.ASCII):
        raise spec.refuse("constraint", "must be features of nodes without blanks, such as a100 or a100&ib")
    return value


def _licenses(text: str) -> list[tuple[str, str, str]]:
    return [part.partition(":") for part in text.split(",")]


def _chunk(spec: JobSpec, row: str) -> str:
    assert spec.constraint
    pattern, rule = {
        "pbspro": (r"\w+=[\w.-]+(:\w+=[\w.-]+)*", "a resource of a node in PBS Pro, such as gpu_type=a100"),
        "torque": (r"[A-Za-z][\w.-]*(:[A-Za-z][\w.-]*)*", "a property of a node in Torque, such as a100"),
    }[row]
    if not re.fullmatch(pattern, spec.constraint, re.ASCII):
        raise spec.refuse("constraint", f"must be {rule}")
    return spec.constraint


def _begin(spec: JobSpec, row: str) -> str:
    """Slurm takes it as it is typed; PBS takes digits, and nothing that counts from now."""
    assert spec.begin
    if row == "slurm":
        return spec.begin if spec.begin[0] != "+" else f"now+{spec.begin[1:]}"
    if spec.begin[0] == "+":
        raise spec.refuse("begin", "PBS takes a date or a time of day, such as 2030-01-31T20:00 or 20:00")
    digits = re.sub(r"[-T:]", "", spec.begin)
    seconds = spec.begin.count(":") == 2
    return f"{digits[:-2]}.{digits[-2:]}" if seconds else digits


def _mail_on(spec: JobSpec, row: str) -> str:
    events = spec.mail_on or (("begin", "end", "fail") if spec.mail else ())
    if row == "slurm":
        return ",".join(_EVENTS[one][0] for one in events)
    return "".join(sorted(_EVENTS[one][1] for one in events))


def _log(spec: JobSpec, row: str, array: bool) -> str | None:
    """The pattern of the output's path in the scheduler's words."""
    if spec.log is None:
        return f"{spec.name}-{'%A_%a' if array else '%j'}.log" if row == "slurm" else None
    codes = re.findall(r"%(.)", spec.log)
    if array and not {"a", "j" if row == "slurm" else "a"} & set(codes):
        raise spec.refuse("log", "all tasks of the array would write into one file: it needs %a")
    if not array and {"a", "A"} & set(codes):
        raise spec.refuse("log", "%A and %a are of arrays; the id of a job is %j")
    if row == "slurm":
        return spec.log
    known = {"x": spec.name, **_PATTERN.get(row, {})}
    if unknown := [code for code in codes if code not in known]:
        raise spec.refuse("log", f"PBS Pro puts no %{unknown[0]} into a name; leave it out")
    return re.sub(r"%(.)", lambda found: known[found[1]], spec.log)


def _written(log: str | None) -> str | None:
    """The same path in bash."""
    if log is None:
        return None
    path = log.replace("^array_index^", "$job_index").replace("$PBS_ARRAYID", "$job_index")
    path = re.sub(r"\$(\w+)", r"${\1}", path)
    return path if path.startswith("/") else f"$job_submit_dir/{path}"
