"""The steps of ``jobgen host check``: what a submission needs of a host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.hosts.ssh import SshHost, UnreachableError
from jobgen.schedulers.table import SCHEDULERS
from jobgen.site_making.remote_machine import try_folder
from jobgen.site_making.trial import judgement, submission, trial_plan
from jobgen.sites.host_file import HostFile
from jobgen.sites.loader import load

_PATIENCE = 20  # s; of the scheduler


class HostCheck(NamedTuple):
    """A step and its result."""

    name: str
    good: bool
    text: str


def check(host: SshHost, file: HostFile, size: Callable[[int], str], submits: bool) -> Iterator[HostCheck]:
    """Yield the steps as they are done. ``size`` writes a number of bytes; ``submits``: a job is submitted
    and deleted where only that shows whether it can start.

    Raises:
        UnreachableError: the host does not answer.
    """
    host.connect()
    yield HostCheck("connection", True, f"ssh {file.ssh}")
    steps = {"folder of the runs": _folder, "scheduler": _scheduler, "job": _job}
    for name, step in steps.items():
        try:
            good, text = step(host, file, size, submits)
        except UnreachableError:
            raise
        except JobgenError as error:
            good, text = False, str(error)
        yield HostCheck(name, good, text)
        if not good:
            return


def _folder(host: SshHost, file: HostFile, size: Callable[[int], str], submits: bool) -> tuple[bool, str]:
    folder = try_folder(host, file.runs)
    if folder.path != file.runs:
        return False, f"{file.runs} has become {shown(folder.path)}: jobgen host add {host.name} --runs PATH"
    free = f", {size(folder.free << 10)} free" if folder.free is not None else ""
    return True, f"{file.runs}{free}"


def _scheduler(host: SshHost, file: HostFile, size: Callable[[int], str], submits: bool) -> tuple[bool, str]:
    row = SCHEDULERS[file.scheduler]
    if not host.which(row.command):
        return False, f"{row.command} is not on the PATH there: jobgen host add {host.name} reads it again"
    cluster = row.cluster().server(_PATIENCE, host)
    return True, f"{row.title}" + (f", {shown(cluster)}" if cluster else "")


def _job(host: SshHost, file: HostFile, size: Callable[[int], str], submits: bool) -> tuple[bool, str]:
    if file.site is None:
        return True, "none is tested: the host file names no site"
    plan = trial_plan(load(file.site, "the site of the host file", beside=""))
    cluster = SCHEDULERS[file.scheduler].cluster()
    answers = [judgement(plan, host, file.runs)]
    if submits and cluster.try_job is not None and answers[0].good:
        answers.append(submission(plan, cluster.try_job, host, file.runs))
    title = f"{plan.title}, in {plan.queue or 'the default queue'}"
    texts = "; ".join(f"{one.text} ({one.how})" for one in answers)
    return answers[-1].good, f"{title}: {texts}"
