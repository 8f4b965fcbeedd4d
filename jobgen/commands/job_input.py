"""What the plan of a job is made from: the command line, its job file and its site."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen.errors import JobgenError
from jobgen.jobfile.tables import JOB_FILE

if TYPE_CHECKING:
    from jobgen.plan.plan import Plan
    from jobgen.spec import Layer

_YES_NO = {True: "yes", False: "no"}  # the text of a switch


class JobInput(NamedTuple):
    """What a plan is made from: the command of the scheduler, the texts of the options, the program, the job
    file, and the name of the site and the path of the job file as options.

    The file of the site is also searched in the folder of the job file.
    """

    scheduler: str
    texts: Mapping[str, Any]
    program: tuple[str, ...]
    below: Layer | None
    site: str | None
    path: str | None


def resolved(job: JobInput) -> Plan:
    """Return the plan of a job.

    Raises:
        JobgenError: a value is wrong.
    """
    from jobgen.config import read_spec
    from jobgen.plan.plan import resolve
    from jobgen.spec import COMMAND_LINE, SiteName

    texts = {key: _YES_NO[value] if isinstance(value, bool) else value for key, value in job.texts.items()}
    site = None if job.site is None else SiteName(job.site, COMMAND_LINE, os.path.dirname(job.path or ""))
    return resolve(read_spec(job.scheduler, texts, job.program, job.below, site=site))


def job_file(
    path: str | None, ignored: bool, settings: tuple[str, ...], program: tuple[str, ...]
) -> Layer | None:
    """Return the given job file, or the default one if it exists, with the changes of ``--set``.

    Raises:
        JobgenError: it cannot be read, or something in it is wrong.
    """
    if ignored and path is not None:
        raise JobgenError("--job and --no-job contradict each other; leave one of them out")
    found = path is None and not ignored and os.path.exists(JOB_FILE)
    if path is None and not found and not settings:
        return None
    from jobgen.jobfile.reader import read_job

    return read_job(JOB_FILE if found else path, settings, program)._replace(is_default=found)
