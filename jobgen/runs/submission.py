"""Submission of a script from a new run directory."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.plan import Plan, resolve
from jobgen.rendering.runtime import runtime
from jobgen.rendering.script_file import umask
from jobgen.runs import git as checkout
from jobgen.runs import plan_file
from jobgen.runs.job_query import SCHEDULERS
from jobgen.runs.plan_file import Git, PlanFile
from jobgen.schedulers.table import COMMANDS
from jobgen.spec import JobSpec, Layer

DIFF_LIMIT = 1_000_000  # bytes; of a larger change only the hash is kept


class Order(NamedTuple):
    """A job to submit: its plan, the user's folders of templates, the other files that contributed to it, the
    directory that it is submitted from, the plan.json that it repeats, and the command line (None: that of
    this process)."""

    plan: Plan
    templates: tuple[str, ...]
    files: tuple[str, ...]
    directory: str
    repeats: PlanFile | None = None
    command: tuple[str, ...] | None = None


def scheduler_of(typed: str | None, layer: Layer | None, site: str | None, beside: str) -> str:
    """Return the scheduler that a job is submitted to: as typed, or of the job file, or of the site.

    Raises:
        JobgenError: no scheduler is named, or jobs cannot be submitted to it.
    """
    name = typed or (layer.scheduler if layer else None)
    if name is None and (place := site or (layer.site.name if layer and layer.site else None)):
        from jobgen.sites.loader import load

        name = load(place, None, beside).file.scheduler
    if name is None:
        raise JobgenError("submit: say to which: jobgen submit slurm, or pbs, or a --site")
    if name in COMMANDS and name not in SCHEDULERS:
        raise JobgenError("submit: a local run has no queue to wait in: jobgen local ... | bash")
    if name not in SCHEDULERS:
        raise JobgenError(f"submit: {shown(name)} must be {one_of(SCHEDULERS)}{nearest(name, SCHEDULERS)}")
    return name


def again(name: str) -> Order:
    """Return the order of an earlier run.

    Raises:
        JobgenError: there is no such run, or this version cannot read its plan.json.
    """
    from jobgen.runs.lookup import one_run, root_of

    file = plan_file.read(one_run(name, root_of(None)))
    files = tuple(one.path for one in file.sources if one.kind == "file")
    return Order(resolve(plan_file.spec_of(file)), tuple(file.templates), files, file.directory, file)


def warn(order: Order, text: str) -> None:
    """Print a warning, with the reason, if a repeated script has changed."""
    before = order.repeats
    if before is None or plan_file.sha256(text.encode()) == before.script_sha256:
        return
    changed = [
        one.path for one in before.sources if plan_file.source(one.kind, one.path).sha256 != one.sha256
    ]
    why = [f"{path} has changed" for path in changed]
    if before.jobgen != order.plan.version:
        why.append(f"it was made by jobgen {before.jobgen}, and this is {order.plan.version}")
    reason = "; ".join(why) or "jobgen has changed"
    print(f"jobgen: warning: the script is another one: {reason}", file=sys.stderr)


def settled(order: Order) -> JobSpec:
    """Return the specification without the dependencies that are met.

    Raises:
        JobgenError: a dependency cannot be met any more.
    """
    from jobgen.runs.ended_dependencies import settled as without_met

    spec = order.plan.spec
    return without_met(spec, run_root(spec, order.directory))


def run_root(spec: JobSpec, directory: str) -> Path:
    """Return the directory for run directories, which is that of the script, too."""
    return Path(directory, spec.workdir or "", spec.runs_dir)


def make_run_dir(root: Path, name: str) -> Path:
    """Make a new directory NAME-YYYYMMDD-HHMMSS (UTC); further ones of the same second get a number.

    Raises:
        JobgenError: it cannot be made.
    """
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            path = root / (stem if number == 1 else f"{stem}-{number}")
            with suppress(FileExistsError):
                path.mkdir()
                return path
    except OSError as error:
        raise JobgenError(f"the run directory {shown(str(root))} cannot be made: {error.strerror}") from None
    raise JobgenError(f"{root} has 9999 runs of this second already")


def git_of(directory: str) -> tuple[Git | None, bytes]:
    """Return the checkout as plan.json describes it, and the diff to store next to plan.json."""
    state = checkout.state(directory)
    if state is None:
        return None, b""
    kept = 0 < len(state.diff) <= DIFF_LIMIT
    about = Git(state.commit, state.branch, bool(state.diff), state.sha256, "git.diff" if kept else None)
    return about, state.diff if kept else b""


def submit(order: Order, text: str) -> tuple[str, Path]:
    """Make the run directory with all its files and submit the script from there; return the id of the job
    and the directory. If the scheduler refuses the job, remove the directory.

    Raises:
        JobgenError: the directory cannot be made or written.
        SchedulerError: the message is the scheduler's own.
    """
    spec = order.plan.spec
    about, diff = git_of(os.path.join(order.directory, spec.workdir or ""))
    sources = [plan_file.source("file", path) for path in order.files]
    if spec.site is not None:
        sources.append(plan_file.source("site", spec.site.path))
    sources += [plan_file.source("templates", path) for path in order.templates]
    command = ["jobgen", *sys.argv[1:]] if order.command is None else order.command
    folders = [os.path.abspath(path) for path in order.templates]
    file = plan_file.of(order.plan, text, command, order.directory, sources, folders, about)
    root = run_root(spec, order.directory)
    directory = make_run_dir(root, file.name)
    try:
        _fill(directory, file, text, diff)
        if spec.runtime == "beside":
            beside = runtime(order.plan)
            (directory / beside.file).write_text(beside.text, encoding="utf-8")
        job_id = SCHEDULERS[file.scheduler].jobs().submit(directory, "job.sh")
    except JobgenError:
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            root.rmdir()  # if it is empty
        raise
    with suppress(OSError):  # the job is submitted, and writes the same when it begins
        (directory / "job-id").write_text(f"{job_id}\n", encoding="utf-8")
    return job_id, directory


def _fill(directory: Path, file: PlanFile, text: str, diff: bytes) -> None:
    try:
        script = directory / "job.sh"
        script.write_text(text, encoding="utf-8")
        script.chmod(script.stat().st_mode | 0o111 & ~umask())
        (directory / "submitted-from").write_bytes(os.fsencode(f"{file.directory}\n"))
        plan_file.write(file, directory)
        if diff:
            (directory / "git.diff").write_bytes(diff)
    except OSError as error:
        raise JobgenError(f"{shown(str(directory))} cannot be written: {error.strerror}") from None
