"""The answers to the form of the web page: what the command line prints, and the lines of each option.

A form is a mapping of texts by the keys of options, and by ``scheduler``, ``site`` and ``program``; those of
options of the training module begin with ``train.``. The values of a repeatable option are on one line each.
A key that is absent, or empty, has no value.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from difflib import SequenceMatcher
from io import StringIO
from typing import NamedTuple

from jobgen.commands.cli import run
from jobgen.commands.web import training
from jobgen.commands.web.form import ABSENT, example_text
from jobgen.errors import BAD_INPUT, JobgenError, nearest, one_of, shown
from jobgen.jobfile.training_options import flag_of, takes_options, words_of
from jobgen.jobfile.writing import file_text
from jobgen.launch.program import read_program
from jobgen.options import BY_KEY, OPTIONS, Option
from jobgen.rendering.runtime import MARK
from jobgen.schedulers.table import SCHEDULERS, named
from jobgen.values.parsers import Choice, Whole, switch

Form = Mapping[str, str]
_TRAINING = [training.PREFIX + key for key in training.OPTIONS]
_ABSENT = {**ABSENT, **{training.PREFIX + key: reason for key, reason in training.ABSENT.items()}}
_KEYS = ("scheduler", "site", "program", *BY_KEY, *_TRAINING)


class CommandOutput(NamedTuple):
    """The exit status of a command, and what it printed on standard output and on standard error."""

    status: int
    script: str
    messages: str


def answer(text: str) -> str:
    """Return the answer to a form, both as JSON: status, script, messages, command and job file."""
    form: Form = json.loads(text)
    try:
        words = command(form)
    except (ValueError, JobgenError) as error:
        return json.dumps(CommandOutput(BAD_INPUT, "", f"jobgen: {error}\n")._asdict())
    made = output_of(words)
    more = {"command": shlex.join(["jobgen", *words]), "file": job_file(form)}
    return json.dumps(made._asdict() | more)


def lines(text: str, key: str) -> str:
    """Return the numbers of the lines, from 0, in the job part of a script that come from an option, as JSON.

    These are the lines that differ if the option has another value. An option without a value has
    lines only if it has a default.
    """
    form: Form = json.loads(text)
    if not form.get(key) and not _has_default(key):
        return "[]"
    script = _job_part(form)
    for other in _others(form, key):
        if script and (changed := _job_part({**form, key: other})):
            parts = SequenceMatcher(None, script, changed, autojunk=False).get_opcodes()
            found = [at for tag, begin, end, *_ in parts if tag != "equal" for at in range(begin, end)]
            if found:
                return json.dumps(found)
    return "[]"


def command(form: Form) -> list[str]:
    """Return the words after ``jobgen`` on the command line.

    Raises:
        JobgenError: the program is wrong, and has options of the training module.
        ValueError: a key or the scheduler does not exist, a switch is neither yes nor no, a quotation in the
            program is open, or an option of the training module is for another program.
    """
    for key in form:
        if key in _ABSENT:
            raise ValueError(f"{key} (form): {_ABSENT[key]}")
        if key not in _KEYS:
            raise ValueError(f"{shown(key)} (form): there is no such option{nearest(key, _KEYS)}")
    name = form.get("scheduler", "")
    if name not in SCHEDULERS:
        known = one_of(SCHEDULERS)
        raise ValueError(f"scheduler {shown(name)} (form): must be {known}{nearest(name, SCHEDULERS)}")
    return [SCHEDULERS[name].command_name, *_option_words(form), *_program_words(form)]


def _option_words(form: Form) -> Iterator[str]:
    for option, values in _options_with_values(form):
        for value in values:
            if option.switch:
                yield option.flag if _is_on(option, value) else f"--no-{option.flag[2:]}"
            elif value.startswith("-"):
                yield f"{option.flag}={value}"
            else:
                yield from (option.flag, value)
    if site := form.get("site"):
        yield from ("--site", site)


def _is_on(option: Option, value: str) -> bool:
    try:
        return switch(value)
    except ValueError as error:
        raise ValueError(f"{option.key} {shown(value)} (form): {error}") from None


def _program_words(form: Form) -> list[str]:
    program = [*_program(form), *_training_words(form)]
    return ["--", *program] if program else []


def _training_words(form: Form) -> list[str]:
    return [word for key, value in _training_values(form).items() for word in words_of(flag_of(key), value)]


def _training_values(form: Form) -> dict[str, object]:
    """Return the values of the options of the training module by their keys in the table [train]."""
    texts = {key: form.get(training.PREFIX + key, "") for key in training.OPTIONS}
    texts = {key: text for key, text in texts.items() if text.strip()}
    program = _program(form)
    values = {}
    for key, text in texts.items():
        if not takes_options(read_program(tuple(program))):
            reason = f"is an option of the training module, and the program is {shown(' '.join(program))}"
            raise ValueError(f"{training.PREFIX}{key} (form): {reason}")
        try:
            values[key] = training.value(key, text)
        except ValueError as error:
            raise ValueError(f"{training.PREFIX}{key} {shown(text)} (form): {error}") from None
    return values


def _program(form: Form) -> list[str]:
    try:
        return shlex.split(form.get("program", ""))
    except ValueError as error:
        raise ValueError(f"program (form): {str(error).lower()}") from None


def _options_with_values(form: Form) -> list[tuple[Option, list[str]]]:
    """Return the options that have values, with them."""
    row = SCHEDULERS[form["scheduler"]]
    if row is not named(row.command_name, None):
        form = {"dialect": row.name, **form}
    texts = [(option, form.get(option.key, "")) for option in OPTIONS]
    found = [(one, text.split("\n") if one.multiple else [text]) for one, text in texts if text]
    return [(one, values) for one, lines in found if (values := [line for line in lines if line.strip()])]


def job_file(form: Form) -> str:
    """Return the job file with the content of a form."""
    values: dict[str, object] = {}
    for option, given in _options_with_values(form):
        number = isinstance(option.parse, Whole) and re.fullmatch("-?[0-9]{1,9}", given[0])
        one = given[0] == "yes" if option.switch else int(given[0]) if number else given[0]
        values[option.key] = given if option.multiple else one
    program = _program(form)
    values["command"] = program and [*program, *_training_words(form)]
    train = {} if program else _training_values(form)
    return file_text(SCHEDULERS[form["scheduler"]].command_name, values, form.get("site", ""), train=train)


def output_of(words: Sequence[str]) -> CommandOutput:
    """Run a command of jobgen in this process."""
    out, messages = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(messages):
        status = run(words)
    return CommandOutput(status, out.getvalue(), messages.getvalue())


def _job_part(form: Form) -> list[str]:
    """Return the lines of the script above the runtime; none if there is no script."""
    try:
        script = output_of(command(form)).script
    except (ValueError, JobgenError):
        return []
    return script.partition(MARK)[0].split("\n") if script else []


def _has_default(key: str) -> bool:
    option = BY_KEY.get(key)
    return key == "program" if option is None else bool(option.default) or "[default" in option.help


def _others(form: Form, key: str) -> Iterator[str]:
    """Return other values of a key, the first that is accepted of which shows its lines."""
    if form.get(key):
        yield ""
    if key in _TRAINING:
        return
    if key == "site":
        yield "none"
    elif key == "program":
        yield "other"
    elif (option := BY_KEY[key]).switch:
        yield from (one for one in ("yes", "no") if one != form.get(key))
    else:
        words = option.parse.allowed if isinstance(option.parse, Choice) else ()
        one, now = example_text(option, form["scheduler"]), (form.get(key), str(option.default))
        yield from (other for other in (one, *words, f"{one}2") if other not in now)
