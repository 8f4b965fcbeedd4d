"""The choice of the runs on a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from jobgen.errors import JobgenError, shown
from jobgen.options import BY_KEY
from jobgen.runs import lookup, run_directory
from jobgen.values.parsers import known_directory


def select_runs(names: Sequence[str]) -> list[Path]:
    """Return the run directories with these names, each once, and of an array its tasks; without names, the
    newest run.

    A name is a run directory or a file in it, a directory of runs, a job file, or a name that ``jobgen
    status`` accepts.

    Raises:
        JobgenError: there is no such run.
    """
    places = [_place(name) for name in names] or lookup.some_runs((), lookup.root_of(None))
    found = (run for place in places for run in _runs(place))
    return list({os.path.realpath(run): run for run in found}.values())


def _place(name: str) -> Path:
    path = Path(name)
    if name.endswith(".toml") and path.is_file():
        return _of_job_file(name)
    if name and path.exists():
        return path.parent if path.is_file() else path
    return lookup.one_run(name, lookup.root_of(None))


def _of_job_file(name: str) -> Path:
    """Return the newest run of a job file."""
    from jobgen.jobfile.reader import read_job

    values = read_job(name, (), ()).values
    job, runs_dir = (str(values.get(key) or BY_KEY[key].default) for key in ("name", "runs_dir"))
    root = Path(os.path.expanduser(known_directory(values.get("workdir"))), runs_dir)
    for run in lookup.all_runs(root):
        if run.name.startswith(f"{job}-"):
            return run
    raise JobgenError(
        f"{shown(name)} has no run yet: there is no {shown(f'{job}-')}... in {shown(str(root))}"
    )


def _runs(place: Path) -> list[Path]:
    found = run_directory.tasks(place) or ([place] if run_directory.is_run(place) else [])
    found = found or [
        run for child in run_directory.inside(place) for run in run_directory.tasks(child) or [child]
    ]
    if not found:
        raise JobgenError(f"{shown(str(place))} is not a run directory and contains none")
    return found
