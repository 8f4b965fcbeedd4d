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
from jobgen.runs import environment_file, modes, plan_file, run_directory
from jobgen.runs import git as checkout
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
    script: str | None = None
    """The script of the run that it repeats, if plan.json leaves out secrets that this contains."""


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


def again(name: str, templates: tuple[str, ...] = ()) -> Order:
    """Return the order of an earlier run, with these folders of templates instead of those of the run, which
    may be somebody else's.

    Raises:
        JobgenError: there is no such run, or this version cannot read its plan.json.
    """
    from jobgen.runs.lookup import one_run, root_of

    run = one_run(name, root_of(None))
    file = plan_file.read(run)
    said = {os.path.abspath(folder) for folder in templates}
    if others := [folder for folder in file.templates if folder not in said]:
        text = f"{run.name} was made with the templates in {', '.join(map(shown, others))}"
        print(f"jobgen: warning: {text}; only --template-dir uses them again", file=sys.stderr)
    files = tuple(one.path for one in file.sources if one.kind == "file")
    order = Order(resolve(plan_file.spec_of(file)), templates, files, file.directory, file)
    return order._replace(script=_script_of(run, file)) if plan_file.masked_keys(file) else order


def _script_of(run: Path, file: PlanFile) -> str:
    """Return the script of a run.

    Raises:
        JobgenError: it is not the one that plan.json describes.
    """
    text = run_directory.script(run)
    if plan_file.sha256(text.encode()) != file.script_sha256:
        keys = ", ".join(plan_file.masked_keys(file))
        raise JobgenError(
            f"--again {run.name}: plan.json leaves out secrets of {keys}, and its job.sh was edited: submit "
            "the job anew, with --env NAME for each secret"
        )
    return text


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
    settled = without_met(spec, run_root(spec, order.directory))
    if order.script is not None and settled is not spec:
        keys = ", ".join(plan_file.masked_keys(order.repeats)) if order.repeats else ""
        raise JobgenError(f"--again: a job of --after has ended, and plan.json leaves out secrets of {keys}")
    return settled


def run_root(spec: JobSpec, directory: str) -> Path:
    """Return the directory for run directories, which is that of the script, too."""
    return Path(directory, spec.workdir or "", spec.runs_dir)


def make_run_dir(root: Path, name: str, group: bool = False) -> Path:
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
                modes.make(path, group)
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
    secrets, group = environment_file.content(spec), bool(spec.group_readable)
    about, diff = git_of(os.path.join(order.directory, spec.workdir or ""))
    sources = [plan_file.source("file", path) for path in order.files]
    if spec.site is not None:
        sources.append(plan_file.source("site", spec.site.path))
    sources += [plan_file.source("templates", path) for path in order.templates]
    command = ["jobgen", *sys.argv[1:]] if order.command is None else order.command
    folders = [os.path.abspath(path) for path in order.templates]
    file = plan_file.of(order.plan, text, command, order.directory, sources, folders, about)
    root = run_root(spec, order.directory)
    directory = make_run_dir(root, file.name, group)
    try:
        _fill(directory, file, text, diff, secrets, group)
        if spec.runtime == "beside":
            beside = runtime(order.plan)
            modes.write(directory / beside.file, beside.text, group)
        job_id = SCHEDULERS[file.scheduler].jobs().submit(directory, "job.sh")
    except JobgenError:
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            root.rmdir()  # if it is empty
        raise
    with suppress(OSError):  # the job is submitted, and writes the same when it begins
        modes.write(directory / "job-id", f"{job_id}\n", group)
    return job_id, directory


def _fill(directory: Path, file: PlanFile, text: str, diff: bytes, secrets: bytes, group: bool) -> None:
    try:
        modes.write(directory / "job.sh", text, group, executable=True)
        modes.write(directory / "submitted-from", os.fsencode(f"{file.directory}\n"), group)
        plan_file.write(file, directory, group)
        if diff:
            modes.write(directory / "git.diff", diff, group)
        if secrets:
            modes.write(directory / environment_file.NAME, secrets)
    except OSError as error:
        raise JobgenError(f"{shown(str(directory))} cannot be written: {error.strerror}") from None
