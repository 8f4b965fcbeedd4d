"""Implementation of ``from jobgen import JobSpec, render, submit``. Python values are converted to the text
of the command line and read by the same parsers: both have the same meaning and the same error messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any, overload

from jobgen.config import read_spec, with_site
from jobgen.errors import JobgenError, nearest, one_of, shown, visible
from jobgen.jobfile.reader import layer_of, read_job
from jobgen.jobfile.schema import JobFile
from jobgen.jobfile.tables import OF_SCHEDULERS, TABLES
from jobgen.launch.program import read_program
from jobgen.options import BY_KEY, Option
from jobgen.plan.plan import Plan, resolve
from jobgen.schedulers.table import COMMANDS
from jobgen.script.job_warnings import warnings
from jobgen.sites.defaults import without
from jobgen.spec import Layer, SiteName, Specification, Text
from jobgen.values.parsers import SUBMIT_TIMEOUT, patience

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from jobgen.api.run import Run
    from jobgen.settings import Changes, Settings

PYTHON = "Python"
# The tables of a job file that hold no options, such as [train].
_TABLES = [
    name
    for name in JobFile.__struct_fields__
    if name not in ("scheduler", "site", "program", "check", *TABLES, *OF_SCHEDULERS)
]


class JobSpec(Specification):
    """A specification that is created from Python values, or from a job file."""

    __slots__ = ()

    def __new__(cls, scheduler: str, program: Sequence[str] = (), **settings: Unpack[Settings]) -> JobSpec:
        """Create a job from Python values, or from text as on the command line.

        ``scheduler`` is the name of a command, such as slurm; ``program`` are the words after ``--`` on the
        command line; ``settings`` are its options, with underscores.

        Raises:
            JobgenError: there is no such setting, or its value cannot be read.
        """
        return cls._make(spec_of(scheduler, program, settings))

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], scheduler: str | None = None, *, changes: Sequence[str] = ()
    ) -> JobSpec:
        """Create a job from a job file; ``changes`` are values of ``--set``, such as ``resources.nodes=4``.

        Raises:
            JobgenError: it cannot be read, something in it is wrong, or it names no scheduler.
        """
        return cls._make(spec_of_file(path, scheduler, changes))

    def replace(self, **settings: Unpack[Changes]) -> JobSpec:
        """Return the same job with other settings, or another ``program``; None restores the default.

        Raises:
            JobgenError: as for a new job.
        """
        return type(self)._make(replace_settings(self, settings))


def render(spec: Specification, *, template_dirs: Sequence[str | os.PathLike[str]] = ()) -> str:
    """Return the text of the script, as ``jobgen SCHEDULER`` prints it.

    ``template_dirs`` are searched before the packaged templates; JOBGEN_TEMPLATE_PATH is not read.

    Raises:
        JobgenError: the values contradict each other, the scheduler cannot express one of them, or
            a custom template is wrong.
    """
    from jobgen.rendering.render import cache_dir
    from jobgen.rendering.render import render as render_plan

    return render_plan(_warned(resolve(spec)), [os.fspath(folder) for folder in template_dirs], cache_dir())


@overload
def submit(
    job: Specification,
    *,
    template_dirs: Sequence[str | os.PathLike[str]] = (),
    new: bool = False,
    submit_timeout: str | timedelta = SUBMIT_TIMEOUT,
    host: str | None = None,
) -> Run: ...


@overload
def submit(
    job: str,
    program: Sequence[str] = (),
    *,
    template_dirs: Sequence[str | os.PathLike[str]] = (),
    new: bool = False,
    submit_timeout: str | timedelta = SUBMIT_TIMEOUT,
    host: str | None = None,
    **settings: Unpack[Settings],
) -> Run: ...


def submit(
    job: Specification | str,
    program: Sequence[str] = (),
    *,
    template_dirs: Sequence[str | os.PathLike[str]] = (),
    new: bool = False,
    submit_timeout: str | timedelta = SUBMIT_TIMEOUT,
    host: str | None = None,
    **settings: Any,
) -> Run:
    """Submit a job from the current directory, as ``jobgen submit`` does, and return its run.

    ``job`` is a JobSpec; or the scheduler, and then ``program`` and ``settings`` are those of a JobSpec. An
    interrupted submission of the same script is completed instead, unless ``new``. While the scheduler is
    busy, the job is submitted again for ``submit_timeout``. ``host`` is a machine that ssh reaches: the code
    travels there, and its site is that of a job that names none.

    Raises:
        JobgenError: as for a JobSpec and ``render``; or the run directory cannot be made, or the scheduler
            is not installed here, does not answer, or refuses the job.
    """
    from jobgen.api.run import Run
    from jobgen.rendering.render import cache_dir
    from jobgen.rendering.render import render as render_plan
    from jobgen.runs import submission
    from jobgen.runs.code.selection import Upload

    if isinstance(job, str):
        job = spec_of(job, program, settings if host is None else _at_host(host, job, settings))
    elif not isinstance(job, Specification):
        raise JobgenError(f"submit: {job!r} must be a scheduler or a JobSpec")
    elif program or settings:
        raise JobgenError("submit: a JobSpec has its program and settings: change them with replace()")
    submission.scheduler_of(job.scheduler, None, None, "")
    seconds = _patience(submit_timeout)
    templates = tuple(os.fspath(folder) for folder in template_dirs)
    plan, code = _warned(resolve(job)), Upload() if host else None
    order = submission.Order(plan, templates, (), os.getcwd(), command=(), host=host, upload=code)
    if (met := submission.without_met_dependencies(order)) is not job:
        order = order._replace(plan=resolve(met))
    text = render_plan(order.plan, templates, cache_dir())
    made = submission.submit(order, text, seconds, new)
    submission.finish(made)
    directory = made.directory
    return Run(directory, runs_dir=directory.parent)  # no file of a job is read any more: it might be wrong


def _at_host(host: str, scheduler: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a job with the dialect and the site of its host."""
    from jobgen.sites.host_file import scheduler_of

    _, dialect, site = scheduler_of(host, scheduler)
    return {"dialect": dialect, "site": site, **settings}


def _patience(value: str | timedelta) -> int:
    text = _scalar("submit_timeout", value)
    try:
        return patience(text)
    except ValueError as error:
        raise JobgenError(f"submit_timeout = {shown(text)} ({PYTHON}): {error}") from None


def _warned(plan: Plan) -> Plan:
    """Return the plan, and print its warnings."""
    for text in warnings(plan):
        print(visible(f"jobgen: warning: {text}"), file=sys.stderr)
    return plan


def spec_of(scheduler: str, program: Sequence[str], settings: Mapping[str, Any]) -> Specification:
    """Return the specification made from Python values; see JobSpec."""
    known = ["site", *BY_KEY, *_TABLES]
    if unknown := next((key for key in settings if key not in known), None):
        raise JobgenError(f"{unknown} ({PYTHON}): there is no such setting{nearest(unknown, known)}")
    present = {key: value for key, value in settings.items() if value is not None}
    tables = {key: present.pop(key) for key in _TABLES if key in present}
    words = _program(program)
    layer = layer_of({"scheduler": scheduler, **tables}, words, lambda place: PYTHON)
    if not tables:
        layer = Layer({}, {"program": PYTHON} if words else {}, words)
    site = SiteName(_scalar("site", present.pop("site")), PYTHON) if "site" in present else None
    given = {key: _text(BY_KEY[key], value) for key, value in present.items()}
    return read_spec(scheduler, given, layer.program, layer, PYTHON, site)


def spec_of_file(
    path: str | os.PathLike[str], scheduler: str | None, changes: Sequence[str]
) -> Specification:
    """Return the specification read from a job file; see JobSpec.from_file."""
    layer = read_job(os.fspath(path), changes, ())
    if (scheduler := scheduler or layer.scheduler) is None:
        raise JobgenError(f"{shown(os.fspath(path))}: names no scheduler; say which: {one_of(COMMANDS)}")
    return read_spec(scheduler, {}, (), layer)


def replace_settings(spec: Specification, settings: Mapping[str, Any]) -> Specification:
    """Return the specification with other settings; see JobSpec.replace."""
    rest = dict(settings)
    site = SiteName(spec.site.path, PYTHON) if spec.site else None
    if "site" in rest:
        site = None if (name := rest.pop("site")) is None else SiteName(_scalar("site", name), PYTHON)
        settings = rest.copy()
    spec = without(spec)
    fresh = spec_of(rest.pop("scheduler", spec.scheduler), rest.pop("program", None) or (), rest)
    changed = {"program" if key == "train" else key for key in settings}
    origins = {key: value for key, value in spec.origins.items() if key not in changed}
    given = {key: value for key, value in spec.texts.items() if key not in changed}
    values = {key: getattr(fresh, key) for key in changed}
    new = spec._replace(**values, origins=origins | dict(fresh.origins), texts=given | dict(fresh.texts))
    return with_site(new, site)


def _program(words: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(words, str) or not isinstance(words, Sequence):
        rule = "must be a list of words, such as ['train.py', '--lr', '0.1']"
        raise JobgenError(f"program = {shown(str(words))} ({PYTHON}): {rule}")
    texts = tuple(_scalar("program", word) for word in words)
    try:
        read_program(texts)
    except JobgenError:
        rule = "must begin with a script, -m MODULE or a command"
        raise JobgenError(f"program = {shown(' '.join(texts))} ({PYTHON}): {rule}") from None
    return texts


def _text(option: Option, value: Any) -> Text:
    """Return a value as the text of the command line; a list of texts for a repeatable option."""
    key = option.key
    if option.switch and isinstance(value, bool):
        return "yes" if value else "no"
    if not option.multiple:
        return _scalar(key, value)
    if key == "env" and isinstance(value, Mapping):
        return [name if one is None else f"{name}={_scalar(key, one)}" for name, one in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_scalar(key, one) for one in value]
    return [_scalar(key, value)]


def _scalar(key: str, value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.0f}s"
    if isinstance(value, (datetime, time)):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise JobgenError(f"{key} = {shown(repr(value))} ({PYTHON}): must be text or a number")
    return str(value)
