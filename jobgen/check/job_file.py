"""The script of a job file, and the line of the job file that each of its lines is from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import JobgenError, visible

if TYPE_CHECKING:
    from jobgen.rendering.secret_warnings import Secret
    from jobgen.sites.site_file import Site
    from jobgen.spec import Layer, SiteName


class Rendered(NamedTuple):
    """A script, its scheduler and site, the job file that it is from, and the secrets in it."""

    script: str
    scheduler: str
    site: Site | None
    layer: Layer
    text: str
    secrets: tuple[Secret, ...]

    def line(self, source: str) -> int:
        """Return the line of the job file that a line of the script is from: the same line in a block, else
        the option with the longest value in it, else of a directive the first option, else the program."""
        text = source.strip()
        for number, line in enumerate(self.text.splitlines(), 1):
            if text and line.strip() == text:
                return number
        tables = [(self.layer.values, self.layer.origins)]
        tables += [(own.values, own.origins) for own in self.layer.own.values()]
        found = [
            (len(value), self._line_of(value, line_of(origins.get(key, ""))))
            for values_of, origins in tables
            for key, values in values_of.items()
            for value in ([values] if isinstance(values, str) else values)
            if re.search(rf"(?<![\w.-]){_pattern(key, value)}(?![\w.-])", source)
        ]
        first = min(map(self._origin, self.layer.values), default=1)
        return max(found, default=(0, first if text.startswith("#") else self._origin("program")))[1]

    def _line_of(self, value: str, start: int) -> int:
        """Return the line with a value of the key that begins in ``start``, which it is if none has it."""
        for number, line in enumerate(self.text.splitlines()[start - 1 :], start):
            if number > start and re.match(r"\s*(\[|[\w.-]+\s*=)", line):
                break
            if value in line:
                return number
        return start

    def _origin(self, key: str) -> int:
        return line_of(self.layer.origins.get(key, ""))


def _pattern(key: str, value: str) -> str:
    """Return the expression for an option in a script, where a log has values for its patterns."""
    text = re.escape(value)
    return re.sub(r"%\w", r"\\S+", text) if key == "log" else text


def line_of(origin: str) -> int:
    """Return the line in an origin such as ``job.toml, line 3``, or the first one."""
    match = re.search(r"line (\d+)", origin)
    return int(match[1]) if match else 1


def rendered(
    path: str,
    say: Callable[[str], object] | None = None,
    chosen: str | None = None,
    site: SiteName | None = None,
) -> Rendered:
    """Return the script of a job file; ``say`` prints the warnings on the job. The dialect that is chosen and
    the site override those of the file.

    Raises:
        JobgenError: the job file cannot be read, or something in it is wrong.
    """
    from jobgen.config import read_spec
    from jobgen.jobfile.reader import read_job, read_text
    from jobgen.plan.plan import resolve
    from jobgen.rendering.render import cache_dir, render
    from jobgen.rendering.secret_warnings import secrets_of
    from jobgen.script.dialects.table import of_script
    from jobgen.script.job_warnings import without_secrets
    from jobgen.sites.loader import load

    layer = read_job(path, (), ())
    row = None if chosen is None else of_script(chosen).scheduler
    scheduler = layer.scheduler if row is None else row.command_name
    if scheduler is None and layer.site is not None:
        scheduler = load(layer.site.name, None, os.path.dirname(path)).file.scheduler
    if scheduler is None:
        raise JobgenError(
            f'{visible(path)}: name the scheduler or the site, as in scheduler = "slurm", or use --scheduler'
        )
    dialect = {"dialect": row.name} if row is not None and "dialect" not in row.lacks else {}
    plan = resolve(read_spec(scheduler, dialect, (), layer, site=site))
    if say is not None:
        for warning in without_secrets(plan):
            say(f"{visible(path)}: {visible(warning)}")
    folders = os.environ.get("JOBGEN_TEMPLATE_PATH", "").split(os.pathsep)
    script = render(plan, tuple(filter(None, folders)), cache_dir())
    found = tuple(secrets_of(plan.spec))
    return Rendered(script, plan.scheduler.name, plan.spec.site, layer, read_text(path, path), found)
