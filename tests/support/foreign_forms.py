"""Options of other programs, as tests/commands/foreign_forms.txt lists them: what jobgen answers, and the script that results.

A person who follows an answer removes the words that it names, and adds those behind "use".
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import dataclass, replace

from jobgen.commands import cli
from jobgen.schedulers.request import Request
from jobgen.script.script import Script
from support import ROOT

FILE = ROOT / "tests/commands/foreign_forms.txt"
COMMANDS = {
    "qsub of PBS Pro": (["pbs"], "pbspro"),
    "qsub of Torque": (["pbs", "--dialect", "torque"], "torque"),
}
"""The command of jobgen for the forms of a section, and the dialect of its scripts; the others are for Slurm."""
READ = ("sbatch", *COMMANDS)
"""The sections whose forms are directives."""
PROGRAM = ["train.py"]
FIELDS = {
    "nodes": "nodes",
    "ranks": "ranks_per_node",
    "cores": "cpus_per_rank",
    "devices": "gpus_per_node",
    "memory": "mem",
    "time": "walltime",
    "name": "name",
    "queue": "queue",
    "account": "account",
    "log": "output",
}
"""The fields of a request in the file, and those of the reader of scripts."""


@dataclass(frozen=True)
class Form:
    """A form, its section, and the request behind ``=>``; none for a form without a counterpart."""

    section: str
    text: str
    request: dict[str, str] | None

    @property
    def dialect(self) -> str:
        return COMMANDS.get(self.section, ("", "slurm"))[1]

    @property
    def command(self) -> list[str]:
        return COMMANDS.get(self.section, (["slurm"], ""))[0]

    def __str__(self) -> str:
        return f"{self.section}: {self.text}"


@dataclass(frozen=True)
class Followed:
    """The words of jobgen that result from the answers, the answers, and the last run."""

    words: list[str]
    program: list[str]
    answers: tuple[str, ...]
    status: int
    script: str


def forms() -> list[Form]:
    found, section = [], ""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line and not line.startswith("#"):
            text, _, request = line.partition(" => ")
            values = dict(one.split("=", 1) for one in request.split() if "=" in one)
            found.append(Form(section, text, None if request == "none" else values))
    return found


def run(words: list[str]) -> tuple[int, str, str]:
    """Return the status, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run(words)
    return status, out.getvalue(), err.getvalue()


def follow(form: Form, *more: str) -> Followed:
    """Follow the answer to a form, and the one on the rest of it; ``more`` are other options of jobgen."""
    return followed(Followed([*form.command, *words(form), *more], PROGRAM, (), 2, ""))


def followed(state: Followed) -> Followed:
    """Follow the answers until there is a script."""
    for _ in range(5):
        status, out, err = run([*state.words, "--", *state.program])
        state = replace(state, status=status, script=out)
        if status == 0:
            break
        state = replace(state, answers=(*state.answers, err.strip()))
        if "there is no counterpart" in err:
            break
        state = _changed(state)
    return state


def _changed(state: Followed) -> Followed:
    """Return the words after the changes that the last answer names."""
    answer = state.answers[-1].removeprefix("jobgen: ")
    words, program = state.words, state.program
    for clause in re.split(r"; (?=-[^;]* \(command line\): )", answer):
        head, _, advice = re.split(r" \((command line|after --)\): ", clause, maxsplit=1)
        if " (after --): " not in clause:
            words = _without(words, shlex.split(head))
        for part in advice.split("; "):
            found = re.search(r"\buse (jobgen submit .*|-.*)$", part)
            given = shlex.split(found[1]) if found else []
            if given[:3] == ["jobgen", "submit", words[0]]:
                words, given = ["submit", *words, *["--dry-run"] * ("--dry-run" not in given)], given[3:]
            at = given.index("--") if "--" in given else len(given)
            words, program = words + given[:at], given[at + 1 :] or program
    return replace(state, words=words, program=program)


def _without(words: list[str], removed: list[str]) -> list[str]:
    """Return the words without those that an answer names; it writes an option and its value as two words."""
    rest = list(words)
    joined = [one for one in rest if one.startswith("--") and one.partition("=")[2] == removed[-1]]
    removed = joined if len(removed) == 2 and removed[0] not in rest else removed
    for word in removed:
        if word in rest:
            rest.remove(word)
    return rest


def read(text: str, dialect: str) -> Request:
    return Script(text.encode(), dialect).request


def directive(form: Form) -> str:
    """The script whose only directive is the form."""
    prefix = "#SBATCH" if form.dialect == "slurm" else "#PBS"
    return f"#!/bin/bash\n{prefix} {form.text}\ntrue\n"


def requested(form: Form) -> dict[str, object]:
    """The request of the form: that of the file, or as jobgen's reader of scripts understands its directive."""
    if form.request:
        values = ((FIELDS.get(key), value) for key, value in form.request.items())
        return {key: int(value) if value.isdigit() else value for key, value in values if key}
    if form.section not in READ:
        return {}
    own = read(directive(form), form.dialect)
    return {key: value for key in FIELDS.values() if (value := getattr(own, key)) is not None}


def differences(form: Form, followed: Followed) -> dict[str, tuple[object, object]]:
    """The fields of the request in which the script differs from the form."""
    made = read(followed.script, form.dialect)
    found: dict[str, tuple[object, object]] = {
        key: (value, own) for key, value in requested(form).items() if (own := getattr(made, key)) != value
    }
    given = form.request or {}
    if "launcher" in given and f"job_launcher_name={given['launcher']}\n" not in followed.script:
        found["launcher"] = (given["launcher"], None)
    pairs = dict(zip(followed.words, followed.words[1:], strict=False))
    for key, flag in (("env", "--env"), ("cpu_bind", "--cpu-bind")):
        if key in given and pairs.get(flag) != given[key]:
            found[key] = (given[key], pairs.get(flag))
    return found


def words(form: Form) -> list[str]:
    return shlex.split(form.text)
