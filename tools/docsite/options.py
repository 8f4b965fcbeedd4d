"""The reference of a job's options: each with the directives that it becomes on every scheduler."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from support.option_cases import needs_of, rendered, value

from jobgen.jobfile.tables import table_of
from jobgen.options import OPTIONS, Option
from jobgen.schedulers.table import SCHEDULERS
from jobgen.values.parsers import Choice
from tools.docsite.tables import cell, code, table

_HEAD = """\
# Options of a job

The options of `jobgen pbs`, `slurm`, `local`, `submit` and `doctor`, made from the table `OPTIONS` in `jobgen/options.py`. In a
[job file](job-file.md) and in [Python](python.md) the key is the name with underscores.

Each table shows what an example adds to the script on each scheduler. **In the body** means that the option adds no directive: it
changes the shell code of the script. **Refused** means status 2 and the sentence that the table shows.
"""
_FILES = {"tokens.env": "HF_TOKEN=x\n", "hosts": "node1 slots=2\n"}  # those of the examples


def page() -> str:
    """Return the page."""
    with _example_files():
        return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for group in dict.fromkeys(option.group for option in OPTIONS):
        yield f"## {group}\n"
        yield from (_section(option) for option in OPTIONS if option.group == group)


def _section(option: Option) -> str:
    flag = f"{option.flag} {option.metavar}".strip()
    rows = [[SCHEDULERS[kind].title, *_effect(option, kind)] for kind in SCHEDULERS]
    return "\n".join(
        [
            f"### {option.flag} {{ #{option.key} }}\n",
            f"`{flag}`" + (f", also `{option.alias}`" if option.alias else "") + "\n",
            f"{cell(option.about)}\n",
            *_facts(option),
            table(["scheduler", "example", "in the script"], rows),
        ]
    )


def _facts(option: Option) -> Iterator[str]:
    yield f"- In a job file: `{option.name}` in `[{table_of(option)}]`"
    if isinstance(option.parse, Choice):
        yield f"- Allowed: {', '.join(f'`{one}`' for one in option.parse.allowed)}"
    if option.default not in (None, ()) and "[default" not in option.help:
        yield f"- Default: `{option.default}`"
    yield ""


def _effect(option: Option, kind: str) -> tuple[str, str]:
    """Return an example of an option, and what it adds to the script of a scheduler."""
    needs, one = needs_of(option, kind), value(option, kind)
    script, error = rendered(kind, **needs, **{option.key: one})
    if error:
        return code(_typed(option, one)), f"refused: {cell(error.split('(Python): ', 1)[-1])}"
    before = set(_base(kind, tuple(sorted(needs.items()))).splitlines())
    new = [line for line in script.splitlines() if line.startswith("#") and line not in before]
    directives = [line for line in new if line.startswith(("#SBATCH", "#PBS"))]
    beside = f" with {', '.join(code(f'{key} = {value}') for key, value in needs.items())}" if needs else ""
    return code(_typed(option, one)) + beside, "<br>".join(map(code, directives)) or "in the body"


@cache
def _base(kind: str, needs: tuple[tuple[str, Any], ...]) -> str:
    return rendered(kind, **dict(needs))[0]


def _typed(option: Option, one: Any) -> str:
    if option.switch:
        return option.flag if one else f"--no-{option.flag[2:]}"
    if isinstance(one, dict):
        one = [f"{name}={each}" for name, each in one.items()]
    return f"{option.flag} {one[0] if isinstance(one, list) else one}".replace("\n", " ")


@contextmanager
def _example_files() -> Iterator[None]:
    """Change to a directory with the files that the examples name."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in _FILES.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
