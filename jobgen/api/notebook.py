"""A run as a notebook shows it: a table and the curve of the loss."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from jobgen.report import charts
from jobgen.report.page import asset, environment, view
from jobgen.runs import run_directory
from jobgen.runs.states import State

_TASKS = 8  # as many as there are colours


def html(state: State, directory: Path) -> str:
    """Return a piece of HTML without scripts, whose style holds only inside of it."""
    tasks = run_directory.tasks(directory)
    views = [view(path) for path in tasks[:_TASKS] or [directory]]
    names = [one.run.name for one in views]
    drawn = charts.charts([one.curves for one in views], [one.resumptions for one in views], names)
    return (
        environment()
        .get_template("notebook.html.j2")
        .render(
            state=state,
            directory=directory,
            views=views,
            chart=drawn[0][0] if drawn else None,
            more=max(0, len(tasks) - _TASKS),
            geometry=charts,
            style=Markup(str(asset("style.css")).replace(":root", "&")),
        )
    )
