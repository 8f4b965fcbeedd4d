"""The questions of ``jobgen init --ask``: what differs between the jobs of most people."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import click

from jobgen.commands.parameter_types import scheduler_word
from jobgen.errors import JobgenError, one_of, shown
from jobgen.launch.program import has_operator, joined_words
from jobgen.launch.program_launcher import launchers_in
from jobgen.options import BY_KEY
from jobgen.schedulers.table import SCHEDULERS
from jobgen.sites import loader
from jobgen.sites.site_file import Site


class Replies(NamedTuple):
    """The scheduler by its name in the table, the site, the options by their keys, and the program."""

    scheduler: str
    site: Site | None
    options: dict[str, Any]
    program: tuple[str, ...]


def ask(scheduler: str, site: Site | None) -> Replies:
    """Ask six questions on standard error; a wrong answer is refused in a sentence, and asked again.

    ``scheduler`` and ``site`` are those of this machine, the defaults of the first question.
    """
    kind, site = _ask("Scheduler or site", site.name if site else scheduler, _place)
    size = "1x0" if SCHEDULERS[kind].behaviour.one_host else "2x4"
    options = _ask("Nodes x GPUs of each node (0: CPUs only)", size, _nodes)
    options |= _ask("Time limit", "1h", lambda text: {"walltime": _value("walltime", text)})
    needs = {key for key in ("queue", "account") if site and key in site.file.mandatory}
    which = "Queue ('-' for the default one) and account" if needs else "Queue, and account ('-' for none)"
    options |= _ask(which, None if needs else "-", partial(_queue, site))
    options |= _ask("Environment: module NAME, conda NAME or venv DIR ('-' for none)", "-", _environment)
    program = _ask("Program and its arguments ('-' for the training module)", "-", _program)
    return Replies(kind, site, options, program)


def _ask(question: str, default: str | None, parse: Callable[[str], Any]) -> Any:
    def convert(text: str) -> Any:
        try:
            return parse(text.strip())
        except (JobgenError, ValueError) as error:
            raise click.UsageError(str(error)) from None

    try:
        return click.prompt(question, default=default, value_proc=convert, err=True)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo(err=True)
        raise JobgenError(
            f"init --ask: the input ended before the answer to {question!r}; without questions: jobgen init"
        ) from None


def _value(key: str, text: str) -> str:
    """Return a text that the option of this key accepts."""
    try:
        BY_KEY[key].parse(text)
    except ValueError as error:
        raise ValueError(f"{BY_KEY[key].flag} {text}: {error}") from None
    return text


def _place(text: str) -> tuple[str, Site | None]:
    with suppress(ValueError):
        return scheduler_word(text), None
    from jobgen.sites.display import scheduler

    try:
        site = loader.load(text)
    except JobgenError as error:
        reason = re.sub(r": use .*?(?=; did you mean|$)", "", str(error))  # the list of all sites is long
        raise ValueError(f"use {one_of(SCHEDULERS)}, or a site of jobgen site list: {reason}") from None
    return scheduler(site), site


def _nodes(text: str) -> dict[str, Any]:
    found = re.fullmatch(r"([1-9]\d{0,5})\s*[xX*]\s*(\d{1,3})", text)
    if not found:
        raise ValueError("use NODES x GPUS, such as 2x4")
    nodes, devices = map(int, found.groups())
    return {"nodes": nodes, **({"gpus_per_node": devices} if devices else {"accelerator": "cpu"})}


def _queue(site: Site | None, text: str) -> dict[str, Any]:
    words = [] if text == "-" else text.replace(",", " ").split()
    if len(words) > 2:
        raise ValueError("use QUEUE, or QUEUE ACCOUNT")
    options = {
        key: _value(key, word) for key, word in zip(("queue", "account"), words, strict=False) if word != "-"
    }
    if site:
        queue = site.file.queues.get(options.get("queue", ""))
        for key, example in {**site.file.mandatory, **(queue.mandatory if queue else {})}.items():
            if key in ("queue", "account") and key not in options and key not in site.values:
                raise ValueError(
                    f"{site.title} requires the {key}, such as {example}: type QUEUE ACCOUNT, or - ACCOUNT "
                    "for the default queue"
                )
    return options


def _environment(text: str) -> dict[str, Any]:
    words = [] if text == "-" else shlex.split(text)
    found: dict[str, Any] = {}
    while words:
        key, value, *words = (*words, *([""] if len(words) == 1 else []))
        if key not in ("module", "conda", "venv") or not value:
            raise ValueError("use pairs of words: module NAME, conda NAME, venv DIR")
        value = os.path.expanduser(value) if key in ("conda", "venv") else value
        _value(key, value)
        if key == "module":
            found.setdefault("module", []).append(value)
        else:
            found[key] = value
    return found


def _program(text: str) -> tuple[str, ...]:
    words = () if text == "-" else tuple(shlex.split(text))
    if joined := joined_words(words):
        raise ValueError(f"{shown(joined[0])} is one word: type it without its quotes")
    if has_operator(words):
        raise ValueError(f"no shell reads the program: type {shlex.join(['bash', '-c', text])}")
    if found := launchers_in(words):
        kind = found.calls[-1][0]
        raise ValueError(
            f'jobgen starts {kind} itself: type {shlex.join(found.program)}, and write launcher = "{kind}" '
            "below [launch] of the job file"
        )
    return words
