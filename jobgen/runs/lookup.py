"""Search for runs by directory, by name or its beginning, or by the id of a job."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from jobgen.errors import JobgenError, nearest, shown
from jobgen.runs.packs import pack_of
from jobgen.runs.regular_file import text
from jobgen.runs.remote import place as places
from jobgen.runs.run_directory import is_run
from jobgen.schedulers.jobs import number
from jobgen.values.parsers import known_directory

_JOB_FILE = "jobgen.toml"


def root_of(runs_dir: str | None) -> Path:
    """Return the directory of the run directories: ``runs_dir``, or that of the job file, or ``runs``.

    Raises:
        JobgenError: the job file cannot be read.
    """
    if runs_dir is not None:
        return Path(runs_dir)
    if not os.path.exists(_JOB_FILE):
        return Path("runs")
    from jobgen.jobfile.reader import read_job

    values = read_job(_JOB_FILE, (), ()).values
    place = os.path.expanduser(known_directory(values.get("workdir")))
    return Path(place, str(values.get("runs_dir", "runs")))


def born(run: Path) -> float:
    """Return when a run was submitted, or last began, in seconds since 1970; 0 if it does not exist."""
    for name in ("plan.json", "job.sh", "."):
        with suppress(OSError):
            return (run / name).stat().st_mtime
    return 0


def all_runs(root: Path) -> list[Path]:
    """Return the run directories in ``root``, the newest first."""
    try:
        found = [Path(entry.path) for entry in os.scandir(root) if is_run(Path(entry.path))]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda run: (born(run), run.name), reverse=True)


def some_runs(names: Sequence[str], root: Path) -> list[Path]:
    """Return the runs with these names; without names, the newest run.

    Raises:
        JobgenError: there is no such run, or more than one.
    """
    if names:
        return [one_run(name, root) for name in names]
    newest = all_runs(root)[:1]
    if not newest:
        raise JobgenError(f"there is no run in {shown(str(root))}; --runs-dir names another directory")
    return newest


def one_run(name: str, root: Path) -> Path:
    """Return the run that a name refers to.

    A name is a directory, a name in ``root``, the beginning of only one name, or the id of a job; 123_4 and
    123[4] are tasks of an array.

    Raises:
        JobgenError: there is no such run, or more than one.
    """
    for path in (Path(name), root / name):
        if name and os.path.isdir(path) and is_run(path):
            return path
    runs = all_runs(root)
    begun = [run for run in runs if name and run.name.startswith(name)]
    if found := begun or by_id(name, runs):
        if len(found) == 1:
            return found[0]
        some = ", ".join(run.name for run in found[:3]) + (", ..." if len(found) > 3 else "")
        what = "the beginning of" if begun else "a job's id on several machines, of"
        raise JobgenError(f"{shown(name)} is {what} {len(found)} runs: {some}")
    stems = dict.fromkeys(re.sub(r"-\d{8}-\d{6}(-\d+)?$", "", run.name) for run in runs)
    known = [*(run.name for run in runs), *stems, *filter(None, map(job_id, runs))]
    raise JobgenError(f"there is no run {shown(name)} in {shown(str(root))}{nearest(name, known)}")


def job_id(run: Path) -> str | None:
    """Return the id of the run's job; of the last one if several jobs continued the run. The id of an array
    on PBS has brackets, which the script leaves out. A task of an array has the array's id with its index."""
    found = text(run / "job-id").strip()
    if not found and run.name.startswith("task-"):
        return _task_id(job_id(run.parent), run.name.removeprefix("task-"))
    if not re.fullmatch(r"\d[\w.\[\]-]*(;[\w.-]+)?", found, re.ASCII):
        return None
    server = re.fullmatch(r"(\d+)(\.\S+)", found, re.ASCII)
    if server and any(run.glob("task-*")):
        return f"{server[1]}[]{server[2]}"
    return found


def _task_id(array: str | None, index: str) -> str | None:
    """Return the id of a task: 5_2 of 5 on Slurm, 5[2].server of 5[].server on PBS."""
    parts = re.fullmatch(r"(\d+)(\[\])?(.*)", array or "")
    if not parts:
        return None
    number_of_array, brackets, rest = parts.groups()
    return f"{number_of_array}[{index}]{rest}" if brackets else f"{number_of_array}_{index}{rest}"


def by_id(name: str, runs: Sequence[Path]) -> list[Path]:
    """Return the newest run of each machine with the id of a job, or its task."""
    parts = re.fullmatch(r"(\d+)(?:_(\d+)|\[(\d*)\])?(?:[.;]\S*)?", name, re.ASCII)
    if not parts:
        return []
    same = (run for run in reversed(runs) if number(job_id(run) or "") == parts[1])
    found = {places.name_of(run): run for run in same}.values()
    task = parts[2] or parts[3]
    if found and task and pack_of(next(iter(found))):
        return list(found)  # a task is no point
    return [run / f"task-{task}" for run in found if is_run(run / f"task-{task}")] if task else list(found)
