"""Submission of a script from a new run directory."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.hosts.calls import NotStartedError, SchedulerError, on_path
from jobgen.hosts.host import HERE
from jobgen.plan.own_request import nodes_are_open
from jobgen.plan.plan import Plan, resolve
from jobgen.runs import intent, plan_file, run_directory, run_files, states, submit_command
from jobgen.runs.code import sides
from jobgen.runs.code.digests import Count, Progress
from jobgen.runs.code.selection import Selection, Upload, remarks, selection
from jobgen.runs.job_query import SCHEDULERS
from jobgen.runs.lookup import job_id
from jobgen.runs.plan_file import PlanFile
from jobgen.runs.remote import place as places
from jobgen.runs.remote import submission as remote
from jobgen.runs.remote.place import Place, host_named, upload_of
from jobgen.runs.remote.recovery import remove
from jobgen.runs.unfinished import link, points, without_finished
from jobgen.schedulers.table import COMMANDS
from jobgen.script.program_file import may_appear, missing_file
from jobgen.spec import Layer, Specification
from jobgen.values.parsers import is_whole


def _unseen(what: str) -> AbstractContextManager[Progress]:
    """Return a progress that nobody sees."""
    return nullcontext(Count())


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
    host: str | None = None
    """The host that it is submitted at; None: this machine."""
    upload: Upload | None = None
    """The options on the code that travels to the host; None: none does."""
    rest_of: Path | None = None
    """The run of which it runs the tasks that have not finished, in their directories."""
    progress: Callable[[str], AbstractContextManager[Progress]] = _unseen
    """Shows how far long work is, which it gets the name of."""


class Submission(NamedTuple):
    """A submitted job, a remark for the user, and the record of its submission, which is open."""

    id: str
    directory: Path
    remark: str = ""
    handle: int = -1


def scheduler_of(name: str | None, layer: Layer | None, site: str | None, beside: str) -> str:
    """Return the scheduler that a job is submitted to: as typed, or of the job file, or of the site.

    Raises:
        JobgenError: no scheduler is named, or jobs cannot be submitted to it.
    """
    name = name or (layer.scheduler if layer else None)
    if name is None and (place := site or (layer.site.name if layer and layer.site else None)):
        from jobgen.sites.loader import load

        name = load(place, None, beside).file.scheduler
    if name is None:
        use = f"name the scheduler: jobgen submit {one_of(SCHEDULERS)}, or a --site"
        raise JobgenError(f"submit: neither sbatch nor qsub is on PATH; {use}")
    if name in COMMANDS and name not in SCHEDULERS:
        raise JobgenError("submit: a local run has no queue to wait in: jobgen local ... | bash")
    if name not in SCHEDULERS:
        raise JobgenError(f"submit: {shown(name)} must be {one_of(SCHEDULERS)}{nearest(name, SCHEDULERS)}")
    return name


def again(name: str, templates: tuple[str, ...] = ()) -> Order:
    """Return the order of an earlier run, with these folders of templates instead of those of the run, which
    may be somebody else's. Of an array, only the tasks that have not finished run again.

    Raises:
        JobgenError: there is no such run, or this version cannot read its plan.json.
    """
    from jobgen.runs.lookup import one_run, root_of

    run = one_run(name, root_of(None))
    file = plan_file.read(run)
    folders = {os.path.abspath(folder) for folder in templates}
    if others := [folder for folder in file.templates if folder not in folders]:
        text = f"{run.name} was made with the templates in {', '.join(map(shown, others))}"
        print(f"jobgen: warning: {text}; only --template-dir uses them again", file=sys.stderr)
    files = tuple(one.path for one in file.sources if one.kind == "file")
    plan = resolve(plan_file.spec_of(file))
    order = Order(plan, templates, files, file.directory, file)
    order = order._replace(host=places.name_of(run) or None, upload=upload_of(run))
    hidden = plan_file.masked_keys(file)
    if (rest := without_finished(run, plan)) is not plan:
        if hidden and points(rest) != points(plan):
            raise JobgenError(
                f"--again {run.name}: plan.json leaves out secrets of {', '.join(hidden)}: submit its job.sh "
                "again from the run directory, for each task that has not finished"
            )
        order = order._replace(plan=rest, rest_of=run)
    return order._replace(script=_script_of(run, file)) if hidden else order


def _script_of(run: Path, file: PlanFile) -> str:
    """Return the script of a run, which must be the one that plan.json describes."""
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
    if not why and order.plan.spec.origin("array").startswith("--again "):
        return
    reason = "; ".join(why) or "jobgen has changed"
    print(f"jobgen: warning: the script has changed: {reason}", file=sys.stderr)


def without_met_dependencies(order: Order) -> Specification:
    """Return the specification without the dependencies that are met.

    Raises:
        JobgenError: a dependency cannot be met any more.
    """
    from jobgen.runs.dependency_check import without_met_dependencies as without_met

    spec = order.plan.spec
    without_met_dependencies = without_met(spec, _root(order), host_named(order.host) if order.host else HERE)
    if order.script is not None and without_met_dependencies is not spec:
        keys = ", ".join(plan_file.masked_keys(order.repeats)) if order.repeats else ""
        raise JobgenError(f"--again: a job of --after has ended, and plan.json leaves out secrets of {keys}")
    return without_met_dependencies


def run_root(spec: Specification, directory: str) -> Path:
    """Return the directory for run directories, which is that of the script, too."""
    return Path(spec.directory_on_this_machine(directory), spec.runs_dir)


def _root(order: Order) -> Path:
    """Return the directory for the run directories of an order; an absolute --workdir is one of the host."""
    spec = order.plan.spec
    if order.host and is_whole(spec.workdir or ""):
        return Path(order.directory, spec.runs_dir)
    return run_root(spec, order.directory)


def submit(order: Order, text: str, patience: float, new: bool = False) -> Submission:
    """Make the run directory with all its files and submit the script from there, again for ``patience``
    seconds if the scheduler is busy. If there is no job in the end, remove the directory. Unless ``new``,
    complete an interrupted submission of the same script instead.

    The caller prints the id, then calls ``finish``: until then a submission counts as interrupted.

    Raises:
        JobgenError: the directory cannot be made or written.
        SchedulerError: the message is the scheduler's own, or says what is unknown.
    """
    _check_nodes(order.plan)
    spec, (file, diff) = order.plan.spec, _plan_file(order, text)
    files, group = run_files.contents(order.plan, file, text, diff), bool(spec.group_readable)
    scheduler = SCHEDULERS[file.scheduler]
    scheduler.jobs()  # an error if it has none
    code = _code(order) if order.host else None
    if order.host:
        folder = remote.folder_of_runs(order.host, scheduler.command)
        if order.repeats is None:
            sides.check(host_named(order.host), order.plan, code, order.directory)
    else:
        on_path(scheduler.command)
    _check_program(order)
    directory = run_files.make_run_dir(_root(order), file.name, group)
    handle, place, links = -1, None, list[str]()
    try:
        if order.host:
            there = f"{folder}/{directory.name}-{token_hex(3)}"
            place = places.write(directory, order.host, there, order.upload)
        run_files.fill(directory, _kept_here(files) if place else files, group)
        if order.rest_of and spec.array:
            links = link(order.rest_of, directory, spec.array)
        with intent.alone(directory.parent):
            handle = _begin(directory, file, place)
            others = [] if new else intent.others(directory, file.script_sha256)
        earlier = _earlier([run for run in others if places.name_of(run) == (order.host or "")])
        if earlier:
            _remove(directory, handle)
            return earlier
        if place:
            targets = _targets(order, links)
            with order.progress("sending the code, in KiB") as work:
                remote.send(place, files, group, code, work, targets)
    except BaseException:
        _remove(directory, handle)
        raise
    try:
        made, remark = submit_command.run(directory, scheduler, handle, patience, place)
    except (NotStartedError, submit_command.RefusedError, submit_command.EndedPauseError):
        if place:
            with suppress(SchedulerError):  # the reason is that of the submission
                remove(place)
        _remove(directory, handle)
        raise
    except BaseException:
        os.close(handle)
        raise
    intent.record(directory, made)
    return Submission(made, directory, remark, handle)


def _targets(order: Order, links: Sequence[str]) -> dict[str, str]:
    """Return the directory at the host of each task that goes on where it was."""
    earlier = places.of(order.rest_of) if order.rest_of else None
    return {name: f"{earlier.directory}/{name}" for name in links} if earlier else {}


def explanation(order: Order) -> list[str]:
    """Return the sentences on the code and the paths of a job on a host that a dry run prints.

    Raises:
        JobgenError: the code cannot travel.
    """
    if not order.host:
        return []
    code = remarks(_selection(order, order.upload)) if order.upload else []
    return [*code, *sides.lines(order.plan)]


def _code(order: Order) -> Selection | None:
    """Return the code that travels to the host, and print what it is; None if none has to."""
    spec = order.plan.spec
    if order.upload is None:
        if not is_whole(spec.workdir or ""):
            raise JobgenError(
                "--no-upload needs --workdir with an absolute path: that of the code at the host"
            )
        return None
    with order.progress("reading the code") as work:
        code = _selection(order, order.upload, work)
    for text in remarks(code):
        print(f"jobgen: {text}", file=sys.stderr)
    return code


def _selection(order: Order, upload: Upload, work: Progress | None = None) -> Selection:
    return selection(order.directory, upload, str(_root(order)), work)


def _kept_here(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a run on a host that the mirror has: those without the secrets of the job."""
    return {name: data for name, data in files.items() if name != run_files.ENVIRONMENT}


def _check_nodes(plan: Plan) -> None:
    if nodes_are_open(plan.spec, plan.scheduler):
        why = f"jobgen submit needs a number; {plan.scheduler.command} takes it with the script"
        raise plan.spec.refuse("nodes", why)


def _check_program(order: Order) -> None:
    """Refuse a program whose file is not in the directory that the job starts in, and that nothing makes.

    The files of later steps may be made by the first.
    """
    if may_appear(order.plan) or order.repeats is not None:
        return
    first = order.plan._replace(steps=order.plan.steps[:1])
    why = "where the job would look for it (an absolute path is not checked)"
    if missing := missing_file(first, why, order.directory):
        raise JobgenError(missing)


def _begin(directory: Path, file: PlanFile, place: Place | None) -> int:
    paths = (place.directory,) if place else ()
    try:
        return intent.begin(directory, file.scheduler, file.script_sha256, paths)
    except OSError as error:
        raise JobgenError(f"{shown(str(directory))} cannot be written: {error.strerror}") from None


def _remove(directory: Path, handle: int) -> None:
    """Remove a run directory that has no job."""
    shutil.rmtree(directory, ignore_errors=True)
    with suppress(OSError):
        directory.parent.rmdir()  # if it is empty
    if handle >= 0:
        os.close(handle)


def _earlier(others: Sequence[Path]) -> Submission | None:
    """Return the job of an interrupted submission; None if there is no such job, or it has ended. A job on
    another host may have run unseen: it is the one that the user submits.

    Raises:
        SchedulerError: it is not known whether there is a job.
    """
    for run in others:
        held, unseen = intent.under_way(run), job_id(run) is None and places.of(run) is not None
        [state], _ = states.states([run])
        if not os.path.exists(run / intent.NAME):
            if found := job_id(run):
                return Submission(found, run, "this job was made by a submission that has ended meanwhile")
            continue  # there is no job
        if held or state.state in ("submitting", "unknown"):
            why = "that submission has not ended" if held else state.reason or state.state
            raise SchedulerError(
                f"the same script is submitted as {run.name}: {why}; --new makes another job"
            )
        if state.id and (state.live or (unseen and state.attempts)):
            end = "" if state.live else f"; it has ended: {state.state}"
            why = f"this job was made by an earlier submission, which was interrupted{end}"
            return Submission(state.id, run, why)
        (intent.finish if state.id else intent.give_up)(run)
    return None


def finish(job: Submission) -> None:
    """Complete a submission: the user knows the id."""
    intent.finish(job.directory)
    if job.handle >= 0:
        os.close(job.handle)


def _plan_file(order: Order, text: str) -> tuple[PlanFile, bytes]:
    """Return plan.json, and the diff to store next to it."""
    spec = order.plan.spec
    about, diff = run_files.git_of(spec.directory_on_this_machine(order.directory))
    sources = [plan_file.source("file", path) for path in order.files]
    if spec.site is not None:
        sources.append(plan_file.source("site", spec.site.path))
        sources += [plan_file.source("machine", one.path) for one in (spec.site.machine,) if one]
    sources += [plan_file.source("templates", path) for path in order.templates]
    command = ["jobgen", *sys.argv[1:]] if order.command is None else order.command
    folders = [os.path.abspath(path) for path in order.templates]
    return plan_file.of(order.plan, text, command, order.directory, sources, folders, about), diff
