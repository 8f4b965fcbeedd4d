"""Conversions of scripts in strings, for the tests of each subject."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomllib

from jobgen.config import read_spec
from jobgen.convert.result import Converted
from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.jobfile.reader import layer_of
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render
from jobgen.script.directives import guess
from jobgen.script.script import Script

ONE = "#SBATCH -N 1\n"
MPIRUN = 'mpirun -np 1 --hostfile "$PBS_NODEFILE" --map-by ppr:1:node --bind-to none'


def convert(text: str, target: str, source: str | None = None) -> Converted:
    """Return the script for another scheduler; a script without a first line gets that of bash."""
    whole = text if text.startswith("#!") else f"#!/bin/bash\n{text}\n"
    return conversion.convert(Script(whole.encode(), source or guess(whole.split("\n"))), target)


def job_file(text: str, source: str | None = None, folder: Path | None = None) -> Converted:
    beside = None if folder is None else str(folder)
    return translation.convert(Script(text.encode(), source or guess(text.split("\n")), beside))


def remarks(done: Converted) -> list[tuple[bool, int, str]]:
    """Return whether a part of the script is lost, its line and the part, for each remark."""
    return [(one.lost, one.line, one.what) for one in done.remarks]


def body(options: str, text: str, target: str = "pbspro") -> tuple[list[str], list[tuple[bool, int, str]]]:
    """Return the lines of a converted script behind its start, and its remarks."""
    prefix = "#PBS" if options.startswith("-l") else "#SBATCH"
    done = convert(f"#!/bin/bash\n{prefix} {options}\ncd /work\n{text}\n", target)
    return done.text.partition("cd /work\n")[2].splitlines(), remarks(done)


def rendered(text: str) -> str:
    data = tomllib.loads(text)
    layer = layer_of(data, (), lambda _: "job.toml")
    return render(resolve(read_spec(data["scheduler"], {}, (), layer)))


def values(text: str) -> dict[str, Any]:
    """Return the values of all tables of a job file, which jobgen renders."""
    rendered(text)
    tables = tomllib.loads(text)
    del tables["scheduler"]
    return {key: value for table in tables.values() for key, value in table.items()}
