"""Values that sbatch and the launchers take for options that jobgen has, too: the words for jobgen.

Only errors need this module.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

from jobgen.commands.job_input import JobInput, resolved
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.errors import JobgenError, one_of
from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import BY_KEY, Option, shell_text
from jobgen.schedulers.table import named
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import of_script


class Instead(NamedTuple):
    """The words to use instead of an option and its value, as a shell takes them, or why there are none."""

    use: str = ""
    why: str = ""

    def added_to(self, error: JobgenError) -> JobgenError:
        """Return the error with this advice."""
        advice = f"use {self.use}" if self.use else self.why
        return JobgenError(f"{error}; {advice}", error.option) if advice else error


def instead_of(error: JobgenError, job: JobInput) -> Instead:
    """Return the advice on the value that jobgen refuses with this error; empty for other values."""
    option = BY_KEY.get(error.option)
    text = job.texts.get(error.option)
    return _of_value(option, text, str(error), job) if option and isinstance(text, str) else Instead()


def _of_value(option: Option, text: str, message: str, job: JobInput) -> Instead:
    row = of_script(named(job.scheduler, None).name)
    if (why := row.scheduler.lacks.get(option.key, "")) and why not in message:
        return Instead(why=why)
    if use := words_for(row, option, text):
        return Instead(use)
    if job.texts.get("launcher") is None and "launcher" in message:
        able = [one for one, launcher in LAUNCHERS.items() if option.flag in launcher.line.same]
        with suppress(JobgenError):
            for one in able:
                resolved(job._replace(texts={**job.texts, "launcher": one}))
            return Instead(f"--launcher {one_of(able)} {shell_text(option.key, text)}" if able else "")
        return Instead()
    return Instead()


def words_for(row: Dialect, option: Option, text: str) -> str:
    """Return jobgen's words for a value of a scheduler's option of the same name; empty if there are none."""
    for pattern, words in row.own_values.get(option.flag, ()):
        if found := re.fullmatch(pattern, text):
            return found.expand(words)
    if option.flag[2:] not in row.scheduler.grammar.long_options:
        return ""
    value = row.read_value(option.key, text)
    return f"{option.flag} {value}" if value != text and JobFile().try_add(option.key, value) else ""
