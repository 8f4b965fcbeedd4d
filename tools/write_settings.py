"""Writes jobgen/settings.pyi, the types of JobSpec's settings for editors, from the table of options:
``python -m tools.write_settings``, after a change of that table."""

from __future__ import annotations

from pathlib import Path

from jobgen.api.jobs import _TABLES
from jobgen.jobfile.tables import meaning
from jobgen.options import OPTIONS, Option
from jobgen.values.parsers import Choice, Whole, absolute_path, directory, path, time_limit, walltime

STUB = Path(__file__).resolve().parent.parent / "jobgen/settings.pyi"
HEAD = '''"""The settings of a JobSpec, for editors; written by tools/write_settings.py from the table of options."""

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict

class Settings(TypedDict, total=False):
'''
TAIL = '''
class Changes(Settings, total=False):
    scheduler: str
    """pbs, slurm or local."""
    program: Sequence[str] | None
    """What every rank runs."""
'''


def stub() -> str:
    fields = [(option.key, python_type(option), meaning(option)) for option in OPTIONS]
    fields += [("site", "str", "The site that it runs at: jobgen site list")]
    fields += [(name, "Mapping[str, Any]", f"The table [{name}] of a job file.") for name in _TABLES]
    return HEAD + "".join(f'{_line(key, kind)}    r"""{about}"""\n' for key, kind, about in fields) + TAIL


def _line(key: str, kind: str) -> str:
    """Return the line of a field, as ruff formats it."""
    line = f"    {key}: {kind} | None\n"
    return line if len(line) <= 111 else f"    {key}: (\n        {kind} | None\n    )\n"


def python_type(option: Option) -> str:
    if option.key == "env":
        return "Mapping[str, str | int | float | None] | Sequence[str]"
    if option.switch:
        return "bool"
    if isinstance(option.parse, Choice):
        return f"Literal[{', '.join(map(ascii, option.parse.allowed))}]".replace("'", '"')
    scalar = {
        path: "str | os.PathLike[str]",
        absolute_path: "str | os.PathLike[str]",
        directory: "str | os.PathLike[str]",
        walltime: "str | timedelta",
        time_limit: "str | timedelta",
    }
    one = "int | str" if isinstance(option.parse, Whole) else scalar.get(option.parse, "str")
    return f"Sequence[{one}] | {one}" if option.multiple else one


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
