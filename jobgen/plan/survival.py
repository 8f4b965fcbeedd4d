"""The handling of wall-time limits, signals and bad nodes: the options of the group Survival."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS
from jobgen.launch.program import Program
from jobgen.schedulers.base import Scheduler, clock
from jobgen.spec import Specification

GRACE = 120  # s; less if the job is short
PREFLIGHT_LIMIT = 120  # s; its own limit is shorter


class Survival(NamedTuple):
    """Times in seconds; None if there is none.

    ``preflight`` is "always", or "if_there" if it was not requested and the program's environment may lack
    it. With ``short_grace`` the grace is at most a tenth of the limit, which only the queue knows. With
    ``timer`` the script itself sends ``signal`` to the ranks shortly before the end of its time.
    ``requeue_at_limit``: the job is requeued at the end of its time whatever the program's status.
    ``timeout`` ends the launcher if the scheduler has no limit. ``min_nodes`` is 0 if the job never goes on
    with fewer nodes.
    """

    walltime: int | None
    timeout: int | None
    grace: int | None
    short_grace: bool
    signal: str
    timer: bool
    requeue_at_limit: bool
    preflight: str | None
    preflight_limit: int
    spare_nodes: int
    restarts: int
    min_nodes: int
    hang_timeout: int | None

    @property
    def chooses_nodes(self) -> bool:
        """Return whether the script knows only when it runs which nodes take part."""
        return bool(self.spare_nodes or self.min_nodes)


def survival(spec: Specification, scheduler: Scheduler, program: Program, walltime: int | None) -> Survival:
    """Resolve the options; ``walltime`` is that of the job. If it is None, the script queries the scheduler
    for it.

    Raises:
        JobgenError: a margin is not shorter than the wall time, or the program or the scheduler does
            not support an option.
    """
    limited = scheduler.behaviour.limits_time or spec.walltime is not None
    _check(spec)
    name, seconds = spec.signal or ("USR1", None)
    if seconds and spec.grace not in (None, seconds):
        raise spec.refuse("grace", f"{spec.setting_text('signal')} sets another time: leave out one of them")
    requested = seconds or spec.grace
    if requested and (not limited or (walltime and requested >= walltime)):
        raise spec.refuse(
            "signal" if seconds else "grace",
            f"must be shorter than the wall time, which is {clock(walltime)}"
            if limited and walltime
            else "a local run has no time limit without --walltime",
        )
    grace = requested or min(GRACE, GRACE if walltime is None else walltime // 10)
    # The signal would end a program that does not handle it, earlier than necessary.
    at_limit = spec.requeue_on == "limit"
    informed = program.is_ours or spec.signal is not None or bool(spec.requeue)
    return Survival(
        walltime=walltime if limited else None,
        timeout=None if scheduler.behaviour.limits_time else spec.walltime,
        grace=grace if limited else None,
        short_grace=limited and walltime is None and requested is None,
        signal=name,
        timer=limited and informed and (at_limit or not (spec.signal and scheduler.behaviour.sends_signal)),
        requeue_at_limit=at_limit,
        preflight=_preflight(spec, program),
        preflight_limit=PREFLIGHT_LIMIT,
        spare_nodes=spec.spare_nodes or 0,
        restarts=spec.restarts or 0,
        min_nodes=spec.min_nodes or 0,
        hang_timeout=spec.hang_timeout,
    )


def notes(spec: Specification, program: Program) -> Iterator[str]:
    """Yield notes on options that have no effect on this program, or are not measured with this MPI."""
    mpi = MPI_FLAVOURS[spec.mpi] if spec.mpi and LAUNCHERS[spec.launcher].of_mpi else None
    if spec.restarts and mpi and not mpi.restarts_measured:
        text = spec.setting_text("restarts")
        yield f"{text} has not been measured with {mpi.title}: test it before you rely on it"
    if program.is_ours:
        return
    if spec.hang_timeout is not None:
        yield (
            f"{spec.setting_text('hang_timeout')} finds a hang of your own program only after it has touched "
            "the file that JOBGEN_PROGRESS names"
        )
    elif spec.grace is not None and not spec.signal and not spec.requeue:
        yield (
            f"{spec.setting_text('grace')} sets only JOBGEN_DEADLINE: your own program gets a signal before "
            "the end with --signal or --requeue"
        )


def _preflight(spec: Specification, program: Program) -> str | None:
    if spec.preflight is False:
        return None
    if spec.preflight or spec.spare_nodes:
        return "always"
    if spec.nodes == 1 or LAUNCHERS[spec.launcher].one_process:
        return None
    return "always" if program.is_ours else "if_there"


def _check(spec: Specification) -> None:
    if spec.spare_nodes and spec.preflight is False:
        why = "the preflight finds the node that a spare one replaces; leave out --no-preflight"
        raise spec.refuse("spare_nodes", why)
    for key, other in product(("spare_nodes", "min_nodes"), ("include", "exclude")):
        if getattr(spec, key) and getattr(spec, other):
            raise spec.refuse(key, f"cannot be used with --{other}, which names the hosts")
    _check_min_nodes(spec)
    if spec.requeue_on == "limit" and not spec.requeue:
        raise spec.refuse("requeue_on", "needs --requeue N, the number of times")


def _check_min_nodes(spec: Specification) -> None:
    if spec.min_nodes is None:
        return
    if not spec.restarts:
        raise spec.refuse("min_nodes", "needs --restarts N, the number of restarts")
    if isinstance(spec.nodes, int) and spec.min_nodes >= spec.nodes:
        most = f"use {spec.nodes - 1} or less" if spec.nodes > 1 else "remove it"
        raise spec.refuse("min_nodes", f"must be less than --nodes, which is {spec.nodes}: {most}")
