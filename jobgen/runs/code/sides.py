"""On which machine a path lies: here, where it is read, or on the host."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.hosts.host import Host
from jobgen.launch.program import script_of
from jobgen.options import OPTIONS, PLACES, THERE
from jobgen.plan.plan import Plan
from jobgen.runs.code.selection import Selection
from jobgen.script.program_file import may_appear
from jobgen.values.parsers import is_whole, known_directory

_PROGRAM = "the program"


class Path(NamedTuple):
    """A path that an option of a job, or its program, names; ``place`` is HERE or THERE."""

    option: str
    path: str
    place: str


def paths(plan: Plan) -> list[Path]:
    """Return the paths of a job on a host, in the order of the options; the program's file comes last."""
    spec = plan.spec
    given = [row for row in OPTIONS if row.place and row.key in spec.origins]
    found = [Path(row.flag, one, row.place) for row in given for one in _of(row.key, getattr(spec, row.key))]
    if plan.container or may_appear(plan):
        return found
    programs = (script_of(one.program.words) for one in plan.steps[:1] or (plan,) if not one.program.is_ours)
    return found + [Path(_PROGRAM, path, THERE) for path in programs if path and "$" not in path]


def _of(key: str, value: object) -> Iterator[str]:
    """Yield the paths in the value of an option."""
    for one in value if isinstance(value, tuple) and key != "hostfile" else (value,):
        text = one[0] if isinstance(one, tuple) else one  # a file with the names of its variables
        if not isinstance(text, str):
            continue
        path = text.partition(":")[0] if key == "bind" else text
        if key == "log":
            path = os.path.dirname(path.partition("%")[0])
        is_path = key not in ("conda", "image") or path.startswith(("/", "./", "../", "~/"))
        if path and (is_path or path.endswith(".sif")):
            yield path


def check(host: Host, plan: Plan, code: Selection | None, start: str) -> None:
    """Check the paths of a job that is submitted from the folder ``start``.

    Raises:
        JobgenError: one exists here, and neither in the code nor on the host.
        UnreachableError: the host does not answer.
    """
    there = [one for one in paths(plan) if one.place == THERE]
    whole = [one for one in there if is_whole(one.path)]
    for one in there:
        if code is not None and one not in whole:
            _check_sent(host.name, plan.spec.workdir or "", one, code, start)
    here = [one for one in whole if os.path.exists(os.path.expanduser(one.path))]
    if not here:
        return
    tests = (f"[ -e {_word(one.path)} ] || echo {number}" for number, one in enumerate(here))
    for number in host.run("\n".join(tests)).out.split():
        one = here[int(number)]
        raise JobgenError(
            f"{one.option} {shown(one.path)}: it exists here, and not on {host.name}, where the job needs it"
        )


def _check_sent(host: str, workdir: str, one: Path, code: Selection, start: str) -> None:
    """Check that a relative path that exists here is in the code."""
    if one.option == _PROGRAM and (is_whole(workdir) or workdir != known_directory(workdir)):
        return  # its file is on the host
    path = os.path.join(workdir, one.path) if one.option == _PROGRAM else one.path
    if not os.path.exists(os.path.join(start, path)) or code.has(path):
        return
    environment = one.option in ("--venv", "--conda")
    how = "make it there, and give its absolute path" if environment else f"--upload {shown(path)} sends it"
    raise JobgenError(f"{one.option} {shown(one.path)}: it exists here, and is not sent to {host}: {how}")


def _word(path: str) -> str:
    return f'"$HOME"/{shlex.quote(path[2:])}' if path.startswith("~/") else shlex.quote(path)


def lines(plan: Plan) -> list[str]:
    """Return a line on each path of a job on a host."""
    return [f"{one.option} {shown(one.path)}: {PLACES[one.place]}" for one in paths(plan)]
