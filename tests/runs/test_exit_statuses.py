"""The table of exit statuses is the only one: the code, the runtime, the training and the page agree with it."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import jobgen.train.errors as training
from support import ROOT

from jobgen.commands.cli import cli
from jobgen.errors import JobgenError
from jobgen.runs.exit_statuses import COMMANDS, EVERY_COMMAND, JOB, TRAINING
from tools import write_exit_statuses


def test_the_page_is_generated() -> None:
    text = write_exit_statuses.PAGE.read_text(encoding="utf-8")
    assert text == write_exit_statuses.page(), "run: python -m tools.write_exit_statuses"


def test_every_status_of_the_script_has_a_meaning() -> None:
    texts = [path.read_text() for path in (ROOT / "templates").rglob("*") if path.suffix in (".sh", ".j2")]
    pattern = r"\b(?:job_die|exit|job_status=|status=|return) ?(\d\d+)\b"
    found = {int(number) for text in texts for number in re.findall(pattern, text)}
    said = (ROOT / "templates/runtime/messages.sh").read_text().partition("\njob_say")[0]
    assert {int(number) for number in re.findall(r"\b7\d\b", said)} == found - {124} - {
        n for n in found if n > 128
    }
    assert {number for number in found if number <= 128} == {number for number in JOB if 0 < number <= 128}


def test_every_status_of_the_training_has_a_meaning() -> None:
    said = {int(number) for number in re.findall(r"^(\d+) ", str(training.__doc__), re.MULTILINE)}
    assert said == {0, *TRAINING, training.BAD_HOSTS, training.RESUMABLE}
    assert {training.BAD_HOSTS, training.RESUMABLE} < {*JOB}


def test_every_status_of_an_error_has_a_meaning() -> None:
    for module in pkgutil.walk_packages([str(ROOT / "jobgen")], "jobgen."):
        if not module.name.startswith(
            ("jobgen.train", "jobgen.templates", "jobgen.tests", "jobgen.__main__")
        ):
            import_module(module.name)
    errors = [JobgenError]
    for error in errors:
        errors += error.__subclasses__()
    assert {error.status for error in errors} <= {*EVERY_COMMAND}
    assert set(COMMANDS) <= set(cli.list_commands(None))  # type: ignore[arg-type]
