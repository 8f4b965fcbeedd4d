"""Assembly of the page: data of the runs as plain tuples, drawn by templates/report/."""

from __future__ import annotations

import base64
import hashlib
import os
import statistics
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import jinja2
from markupsafe import Markup

import jobgen.templates
from jobgen.errors import visible as as_visible
from jobgen.report import axes, charts, devices, facts, failures, series, timeline
from jobgen.report.series import Curves
from jobgen.runs import job_steps, run_directory
from jobgen.runs.job_steps import StepState
from jobgen.runs.logs import output_file
from jobgen.runs.run_directory import Attempt, RunRecord
from jobgen.values.version import __version__

_TEMPLATES = Path(jobgen.templates.__path__[0], "report")


class Summary(NamedTuple):
    """A run on one line. Times are seconds; a value is None if it is unknown."""

    kind: str
    state: str
    steps: float | None
    loss: float | None
    best: float | None
    last: float | None
    training: float | None
    elapsed: float | None
    throughput: float | None
    where: str


class View(NamedTuple):
    """All data of one run that the page shows. ``logs`` are the files and folders, and ``steps`` the
    steps of the job, in each attempt."""

    run: RunRecord
    training: bool
    skipped: int
    curves: Curves
    resumptions: list[series.Point]
    summary: Summary
    facts: dict[str, facts.Fact]
    failures: failures.Failures
    logs: dict[int, dict[str, Path]]
    steps: dict[int, tuple[StepState, ...]]
    device_curves: Curves
    device_remarks: list[str]


def page(directories: Iterable[Path], now: float, folder: Path = Path()) -> str:
    """Return the page about these run directories; ``now`` (seconds since 1970) is the time that it shows.
    Its links to files hold in ``folder``."""
    views, title = _titled([view(directory) for directory in directories])
    names = [view.run.name for view in views]
    style, script = (asset(name) for name in ("style.css", "script.js"))
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            version=__version__,
            now=now,
            views=views,
            charts=charts.charts(
                [view.curves for view in views], [view.resumptions for view in views], names
            ),
            device_charts=charts.charts(
                [view.device_curves for view in views],
                [[]] * len(views),
                names,
                devices.KINDS,
                ["clock"],
            ),
            timeline=timeline.timeline([view.run for view in views], [view.training for view in views]),
            comparison=facts.compare([view.facts for view in views]),
            style=style,
            script=script,
            style_hash=_hash(style),
            script_hash=_hash(script),
            geometry=charts,
            rows=timeline,
            address=partial(_address, folder),
        )
    )


def _titled(views: list[View]) -> tuple[list[View], str]:
    """Return the views and a title. If all are tasks of one array, only the title has its name."""
    if len(views) == 1:
        return views, views[0].run.name
    places = {view.run.directory.parent for view in views}
    if len(places) > 1 or not all("/" in view.run.name for view in views):
        return views, f"{len(views)} runs"
    shorter = [view._replace(run=view.run._replace(name=view.run.directory.name)) for view in views]
    return shorter, f"{places.pop().name}: {len(views)} tasks"


def view(directory: Path) -> View:
    run, metrics = run_directory.read(directory), run_directory.read_metrics(directory)
    curves = series.curves(metrics.rows)
    training = any(row.get("event") == "start" for row in metrics.rows) or "state" in run.status
    return View(
        run,
        training,
        metrics.skipped,
        curves,
        series.resumptions(metrics.rows),
        _summary(run, metrics.rows, curves, training),
        facts.facts(run, metrics.rows),
        failures.failures(run, training),
        {attempt.number: _logs(run, attempt) for attempt in run.attempts},
        {attempt.number: found for attempt in run.attempts if (found := job_steps.of(attempt.events, None))},
        *devices.use(run),
    )


def _logs(run: RunRecord, attempt: Attempt) -> dict[str, Path]:
    """Return the output of the job, and the folder with that of the ranks, as far as they are there."""
    values = {event.what: event.value for event in attempt.events}
    named = Path(values["output"]) if "output" in values else None
    output = named if named and os.path.isfile(named) else output_file(run.directory, values.get("began", ""))
    nodes = attempt.directory / "nodes"
    return ({"output": output} if output else {}) | ({"ranks": nodes} if nodes.is_dir() else {})


def _address(folder: Path, path: Path) -> str:
    """Return the address of a file in a page of a folder."""
    return quote(os.fsencode(os.path.relpath(path, folder)))


def _summary(run: RunRecord, rows: list[dict[str, Any]], curves: Curves, training: bool) -> Summary:
    losses = _values(curves, "step", "loss")
    accuracies = _values(curves, "epoch", "accuracy")
    rates = _values(curves, "step", "samples_per_second")
    seconds = [value for row in rows if (value := run_directory.number(row.get("seconds"))) is not None]
    steps = [value for row in rows if (value := run_directory.number(row.get("step"))) is not None]
    kind, state = _state(run, bool(rows), training)
    spent = [took for attempt in run.attempts if (took := timeline.run_time(attempt)) is not None]
    return Summary(
        kind,
        state,
        max(steps, default=None),
        losses[-1] if losses else None,
        max(accuracies, default=None),
        accuracies[-1] if accuracies else None,
        max(seconds, default=None),
        sum(spent) if spent else None,
        statistics.median(rates) if rates else None,
        _where(run, rows),
    )


def _values(curves: Curves, event: str, key: str) -> list[float]:
    return [point.value for point in curves.get((event, key), ()) if point.value is not None]


def _state(run: RunRecord, metrics: bool, training: bool) -> tuple[str, str]:
    """Return the state of a run: the end of its last attempt, or without attempts that of the training."""
    if run.attempts:
        last = run.attempts[-1].status
        return timeline.kind(last), run_directory.meaning(last, training)
    state, status = run.status.get("state"), run_directory.number(run.status.get("exit_status"))
    if state == "failed":
        return "bad", run_directory.meaning(int(status or 1), True)
    if state in ("finished", "resumable"):
        last = 0 if state == "finished" else run_directory.RESUMABLE
        return timeline.kind(last), run_directory.meaning(last)
    return "open", run_directory.meaning(None) if metrics else "not begun"


def _where(run: RunRecord, rows: list[dict[str, Any]]) -> str:
    """Return ranks, device and hosts of the last attempt."""
    start = facts.start_event(rows)
    size, device = start.get("world_size"), start.get("device")
    ranks = f"{size} x {device} on " if size and device else ""
    hosts = ", ".join(run.hosts[:4]) + (f" and {len(run.hosts) - 4} more" if len(run.hosts) > 4 else "")
    return ranks + hosts if hosts else ranks.removesuffix(" on ")


def asset(name: str) -> Markup:
    """Return a style sheet or a script of the page."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8").strip())  # packaged: no text of a user


def _hash(text: str) -> str:
    """Return the hash for a Content-Security-Policy that allows only this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Return the environment of the templates. Unlike that of the scripts, it escapes all values."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        short=_or_dash, percent=_percent, duration=axes.duration, clock=_clock, number=run_directory.number
    )
    return env


def visible(value: object) -> str:
    """Return text in which invisible characters, and those that reverse the line, are escaped: ``\\x1b``."""
    return value if isinstance(value, Markup) else as_visible(str(value), kept="\n\t")


def _or_dash(value: float | None) -> str:
    return "-" if value is None else axes.short(value)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def _clock(seconds: float | None) -> str:
    try:
        return (
            "-" if seconds is None else f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}"
        )
    except (ValueError, OverflowError, OSError):
        return "-"
