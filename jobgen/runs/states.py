"""The states of runs, from their directories and from their schedulers."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from jobgen.errors import INTERRUPTED
from jobgen.hosts.calls import SchedulerError
from jobgen.runs import (
    intent,
    job_recovery,
    job_steps,
    packs,
    rank_ends,
    regular_file,
    run_directory,
    telemetry,
)
from jobgen.runs.job_query import SCHEDULERS, HostScheduler, QueryResult, ask
from jobgen.runs.job_recovery import Recovery
from jobgen.runs.lookup import born, job_id
from jobgen.runs.rank_ends import RankEnds
from jobgen.runs.remote import mirror
from jobgen.runs.remote import place as places
from jobgen.runs.remote.place import Place
from jobgen.runs.remote.recovery import remove_environment
from jobgen.runs.run_directory import PARTS
from jobgen.schedulers.jobs import LIVE, Job
from jobgen.schedulers.jobs import task as task_of
from jobgen.secrets import masked
from jobgen.values import arrays

_HARD = ("cancelled", "timeout", "out of memory", "node failed", "preempted")  # no script can record these
_OPEN = ("submitting", "unknown", "resumable")  # states after which an attempt may follow
_ENVIRONMENT = ("env.sh", "environment")  # of the job, with the secrets that it had
_NAMED = 8  # tasks, at most
CONTINUED = "continued-as"  # the names of the runs whose tasks go on in the directories of this one


class RunFiles(NamedTuple):
    """The content of a run directory. ``status`` is that of the last attempt, None before its end."""

    directory: Path
    id: str | None
    scheduler: str | None
    attempts: int
    status: int | None
    cancelled: bool
    tasks: tuple[RunFiles, ...]
    times: tuple[
        tuple[float, float], ...
    ] = ()  # when each attempt began, and when it ended or last gave a sign
    submission: Recovery | None = None  # if the id of the job is not recorded
    host: str = ""  # "": this machine

    @property
    def queue(self) -> HostScheduler | None:
        """The scheduler of its job."""
        return HostScheduler(self.scheduler, self.host) if self.scheduler else None

    @property
    def may_live(self) -> bool:
        return self.status in (None, run_directory.RESUMABLE)


class State(NamedTuple):
    """The state of a run. ``tasks`` counts the tasks of an array by their state; times are in seconds.

    ``seconds_used`` is the time of all attempts, and of all tasks. ``host`` is that of the run, None for this
    machine. If it is not ``reachable``, the state is that of the time ``as_of``. ``job_steps`` are those of a
    job with [[step]], in the last attempt: number, name, state, seconds and status.
    """

    run: str
    name: str
    id: str | None
    scheduler: str | None
    state: str
    reason: str
    attempts: int
    step: int | None
    loss: float | None
    accuracy: float | None
    seconds_left: int | None
    submitted: float
    status: int | None
    tasks: dict[str, int]
    seconds_used: int | None
    host: str | None = None
    reachable: bool = True
    as_of: float | None = None
    job_steps: tuple[dict[str, Any], ...] = ()

    @property
    def live(self) -> bool:
        return self.state in (*LIVE, "submitting")


def read(directory: Path, place: Place | None = None) -> RunFiles:
    """Read a run directory, except the metrics; ``place`` is that of a run on a host."""
    scheduler = _scheduler(directory)
    tasks = tuple(_read(path, None, scheduler) for path in directory.glob("task-*"))
    found = _read(directory, job_id(directory), scheduler, tasks)
    return found._replace(host=place.host_name) if place else found


def _read(
    directory: Path, job: str | None, scheduler: str | None, tasks: tuple[RunFiles, ...] = ()
) -> RunFiles:
    attempt, events = run_directory.last_attempt(directory)
    status = next((event.value for event in reversed(events) if event.what == "ended"), "")
    return RunFiles(
        directory,
        job,
        scheduler,
        attempt,
        int(status) if status.isdecimal() else None if events else _status_of_training(directory),
        os.path.exists(directory / "cancelled"),
        tasks,
        tuple(_times(directory, attempt, events)),
    )


def _times(
    directory: Path, last: int, events: tuple[run_directory.Event, ...]
) -> Iterator[tuple[float, float]]:
    """Yield the times of the attempts; ``events`` are those of the last one."""
    for number in range(1, last + 1):
        attempt = directory / f"attempt-{number}"
        of_attempt = events if number == last else run_directory.events(attempt)
        if times := run_directory.times(attempt, of_attempt):
            yield times


def _seconds_used(seen: RunFiles, running: bool) -> int | None:
    """Return the time of all attempts of a run and of its tasks; if it runs, the last attempt ends now."""
    times = [list(one) for one in seen.times]
    if running and seen.status is None and times:
        times[-1][1] = max(times[-1][1], time.time())
    used = [ended - began for began, ended in times]
    used += [seconds for task in seen.tasks if (seconds := _seconds_used(task, False)) is not None]
    return round(sum(used)) if used else None


def _status_of_training(directory: Path) -> int | None:
    """Return the status recorded by the training, for a run whose script has recorded none."""
    status_file = run_directory.as_object(regular_file.text(directory / "status.json"))
    status = status_file.get("exit_status")
    known = {"finished": 0, "resumable": run_directory.RESUMABLE}
    return known.get(str(status_file.get("state")), status if isinstance(status, int) else None)


def _scheduler(directory: Path) -> str | None:
    """Return the scheduler of a run by plan.json, by the record of its submission, which reaches the disk
    first, or by the directives of the script; None for a local run."""
    name = str(run_directory.plan(directory).get("scheduler") or intent.read(directory).scheduler)
    if name in SCHEDULERS:
        return name
    try:
        with regular_file.open_file(directory / "job.sh") as file:
            begin = b"\n" + file.read(4096)
    except OSError:
        return None
    return next((name for name, one in SCHEDULERS.items() if f"\n{one.prefix} ".encode() in begin), None)


def states(directories: Iterable[Path]) -> tuple[list[State], QueryResult]:
    """Return the states of these runs, with one query per scheduler, and the answers of the schedulers.

    The environment of a job that has ended for good is removed, if its script was killed before it did so.
    """
    directories = list(directories)
    at = places.of_all(directories)
    lost = mirror.refresh(at)
    reached = [read(directory, at.get(directory)) for directory in directories if directory not in lost]
    seen = _with_ids(reached, at)
    answer = ask((one.queue, one.id) for one in seen if one.queue and one.id and one.may_live)
    found = {one.directory: _state(one, answer) for one in seen}
    for run, state in found.items():
        if _is_over(state):
            _remove_environment(run, at.get(run))
        if state.host:
            found[run] = _kept(at[run], run, state)
    found |= {run: _last(at[run], run, str(why)) for run, why in lost.items()}
    return [found[directory] for directory in directories], answer


def _kept(place: Place, run: Path, state: State) -> State:
    """Store the state of a run on a host in its mirror, for the times when the host does not answer."""
    state = state._replace(as_of=mirror.as_of(place))
    before = run_directory.as_object(regular_file.text(run / mirror.LAST_STATE))
    with suppress(OSError):
        (run / mirror.LAST_STATE).write_text(json.dumps(state._asdict()), encoding="utf-8")
    # What was written after the end is here at the second look. Other runs than finished ones may go on.
    if state.state in ("finished", "never submitted") and before.get("state") == state.state:
        mirror.close(place, run)
    return state


def _last(place: Place, run: Path, why: str) -> State:
    """Return the last state that is known of a run whose host does not answer."""
    before = run_directory.as_object(regular_file.text(run / mirror.LAST_STATE))
    try:
        state = State(**before)
    except TypeError:  # it was never looked at
        state = _state(read(run, place), QueryResult({}, {}))
        state = state._replace(state="pending" if state.id else "unknown")  # as at its submission
    seen = mirror.as_of(place) or (born(run) if state.id else 0)
    return state._replace(run=str(run), reason=why, reachable=False, as_of=seen)


def _is_over(state: State) -> bool:
    """Return whether no attempt will follow: a run that can go on is over only if it was cancelled."""
    words = (state.state, *state.tasks)
    goes_on = state.status == run_directory.RESUMABLE and state.state != "cancelled"
    return not goes_on and not any(word in (*LIVE, *_OPEN) for word in words)


def _remove_environment(run: Path, place: Place | None) -> None:
    if any((run.parent / name).is_dir() for name in regular_file.text(run / CONTINUED).split()):
        return  # another run may need it
    if place:
        with suppress(SchedulerError):  # the next look tries again
            remove_environment(place, _ENVIRONMENT)
        return
    for folder in (folder for part in PARTS for folder in (run.glob(part) if part else (run,))):
        for name in _ENVIRONMENT:
            with suppress(OSError):  # no file, or that of somebody else
                (folder / name).unlink()


def with_cause(state: State) -> State:
    """Return the state of a failed run with the rank that failed first and its error, or with the fault that
    the script found; that of a running one with its idle devices; others as they are."""
    if state.state == "running" and state.attempts:
        unused = telemetry.idle_now(Path(state.run) / f"attempt-{state.attempts}")
        return state._replace(reason="; ".join(filter(None, (state.reason, unused))))
    if state.state != "failed" or not state.attempts:
        return state
    cause = rank_ends.first_failure(Path(state.run), state.attempts)
    if not cause:
        events = run_directory.events(Path(state.run) / f"attempt-{state.attempts}")
        cause = next((masked(event.value) for event in events if event.what == "fault"), "")
    return state._replace(reason="; ".join(filter(None, (state.reason, cause))))


def _with_ids(seen: Sequence[RunFiles], at: Mapping[Path, Place]) -> Sequence[RunFiles]:
    """Return the runs with the ids of interrupted submissions, or with the states of these submissions."""
    queries = [
        (one.directory, one.scheduler)
        for one in seen
        if one.scheduler and not (one.id or one.attempts or one.directory.name.startswith("task-"))
    ]
    if not queries:
        return seen
    found = job_recovery.resolve(queries, at)
    return [
        one._replace(id=job.id, submission=None if job.id else job)
        if (job := found.get(one.directory))
        else one
        for one in seen
    ]


def reasons(some: Iterable[State], silent: dict[HostScheduler, str]) -> dict[HostScheduler, str]:
    """Return, by scheduler, why it does not answer, or else why the first run is unknown."""
    unknown = [one for one in some if not one.reachable or (one.scheduler and one.state == "unknown")]
    return {
        HostScheduler(str(state.scheduler), state.host or ""): state.reason for state in reversed(unknown)
    } | silent


def _state(seen: RunFiles, answer: QueryResult) -> State:
    jobs: list[Job] | None = []
    name = seen.directory.absolute().name
    task = name.removeprefix("task-") if name.startswith("task-") else None  # its id is that of the array
    silent = ""
    if seen.queue and seen.id and seen.may_live:
        index = task and (task_of(seen.id) or task)  # that of a point is in its id
        jobs = answer.of(seen.queue, seen.id, index)
        silent = answer.reason(seen.queue, seen.id, index)
        if not any(job.live for job in jobs or ()):
            seen = read(seen.directory)._replace(id=seen.id, host=seen.host)  # it may have ended meanwhile
    tasks = {} if task else _tasks(seen, jobs)
    word, reason, left = _word(seen, jobs, silent)
    if tasks and word not in ("pending", "held", "unknown"):
        order = ("running", *LIVE, "unknown", "failed", *tasks)
        first = next((one for one in order if tasks.get(one)), word)
        word, reason = first, reason if first == word else silent if first == "unknown" else ""
    reason = "; ".join(filter(None, (reason, _continuation(seen, word))))
    step, loss, accuracy = _progress(seen.directory)
    return State(
        str(seen.directory),
        f"{seen.directory.absolute().parent.name}/{name}" if task else name,
        seen.id,
        seen.scheduler,
        word,
        reason,
        seen.attempts,
        step,
        loss,
        accuracy,
        left,
        born(seen.directory),
        seen.status,
        tasks,
        _seconds_used(seen, word == "running"),
        seen.host or None,
        job_steps=_job_steps(seen, word in (*LIVE, "unknown")),
    )


def _job_steps(seen: RunFiles, runs: bool) -> tuple[dict[str, Any], ...]:
    if not seen.attempts or seen.tasks:
        return ()
    events = run_directory.events(seen.directory / f"attempt-{seen.attempts}")
    return tuple(step._asdict() for step in job_steps.of(events, time.time() if runs else None))


def _word(seen: RunFiles, jobs: Sequence[Job] | None, silent: str) -> tuple[str, str, int | None]:
    """Return the state, its reason, and the seconds left."""
    if seen.submission:
        return seen.submission.state, seen.submission.reason, None
    known = [job for job in jobs or () if job.state != "unknown"]
    last = next((job for job in known if job.live), known[-1] if known else None)
    if last and last.live:
        return last.state, last.reason, last.seconds_left
    if last and last.state in _HARD and seen.status != 0:
        return last.state, last.reason, None
    if seen.status == run_directory.RESUMABLE:
        if jobs is None and not seen.cancelled:  # it may wait in the queue again
            return "unknown", f"its last attempt saved (status {seen.status}), and {silent}", None
        return ("cancelled" if seen.cancelled else "resumable"), "", None
    if seen.status is not None:
        word = "cancelled" if seen.cancelled or seen.status == INTERRUPTED else "failed"
        return ("finished", "", None) if seen.status == 0 else (word, _meaning(seen.status), None)
    if last:
        return last.state, last.reason if last.status is None or last.reason else _meaning(last.status), None
    if jobs is None:
        return "unknown", silent, None
    if seen.scheduler is None:
        return ("running", "", None) if _lives_here(seen.id) else ("lost", run_directory.meaning(None), None)
    if seen.attempts:
        return "lost", "its script recorded no exit status, and the scheduler no longer knows the job", None
    if seen.cancelled:
        return "cancelled", "it never started", None
    return "gone", "it never started, and the scheduler no longer knows it", None


def _continuation(seen: RunFiles, word: str) -> str:
    """Return the progress that an ended job saved, and the command that continues it."""
    if word in (*LIVE, "finished", "unknown"):
        return ""
    folder = seen.directory
    if seen.tasks or folder.name.startswith("task-"):
        array = folder if seen.tasks else folder.parent
        if any(_ends(one).saved for one in seen.tasks or (seen,)) and packs.pack_of(array):
            return f"to go on: jobgen submit --again {array.name}"
    if seen.tasks:
        saved = [one.directory.name.removeprefix("task-") for one in seen.tasks if _ends(one).saved]
        saved.sort(key=lambda index: (len(index), index))
        some = ", ".join(saved[:_NAMED]) + (", ..." if len(saved) > _NAMED else "")
        return f"to go on, submit task {some} of job.sh again{_where(folder)}" if saved else ""
    ends = _ends(seen)
    if not ends.saved:
        return ends.text
    job = "job.sh"
    if folder.name.startswith("task-"):  # job.sh is that of the array
        folder, job = folder.parent, f"{folder.name.replace('-', ' ')} of job.sh"
    return f"{ends.text}; to go on, submit {job} again{_where(folder)}"


def _where(folder: Path) -> str:
    """Return where the jobs of a run are submitted, as the end of a sentence."""
    place = places.of(folder)
    return f" at {place.host_name}, from {place.there(folder)}" if place else f" from {folder}"


def _ends(seen: RunFiles) -> RankEnds:
    """Return how the ranks of the last attempt ended: by its status, or by their records if it was killed."""
    if seen.status == run_directory.RESUMABLE:
        return RankEnds("not finished", True)
    killed = seen.status is None or seen.status > 128
    return rank_ends.read(seen.directory, seen.attempts) if killed and seen.attempts else RankEnds("", False)


def _meaning(status: int) -> str:
    return f"status {status}: {run_directory.meaning(status)}" if status else f"status {status}"


def _lives_here(local_id: str | None) -> bool:
    """Return whether the process of a local run is alive; its number is the end of the run's id."""
    number = str(local_id).rpartition("-")[2]
    if not re.fullmatch(r"[1-9]\d{0,8}", number, re.ASCII):
        return False
    with suppress(PermissionError):  # that of somebody else is alive, too
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return False
    return True


def _tasks(seen: RunFiles, jobs: Sequence[Job] | None) -> dict[str, int]:
    """Return the number of an array's tasks in each state, by the scheduler, or else by their directories."""
    pack = packs.pack_of(seen.directory) if seen.tasks or any(job.task for job in jobs or ()) else None
    if pack and jobs:
        jobs = list(pack.by_point(jobs))
    by_index = {job.task: job for job in jobs or () if job.task is not None}
    whole = next((job for job in jobs or () if job.task is None and job.live), None)
    unclear = next((job for job in jobs or () if job.task is None and job.state == "unknown"), None)
    for task in seen.tasks:
        index = task.directory.name.removeprefix("task-")
        job = by_index.pop(index, None) or (whole if task.status is None else None) or unclear
        if pack and not task.may_live:
            job = None  # the job is that of other points, too
        known = None if jobs is None or (job and job.state == "unknown") else [job] if job else []
        by_index[index] = Job("", _word(task, known, "")[0])
    counted = Counter(job.state for job in by_index.values())
    if seen.id and jobs is not None and not whole:
        # Schedulers forget tasks that are cancelled before they begin.
        never = "unknown" if unclear else "cancelled" if seen.cancelled or counted["cancelled"] else "gone"
        missing = _number_of_others(by_index, pack.points if pack else _array(seen.directory))
        counted[never] += int(unclear is not None) if missing is None else missing  # one, at least
    return {state: count for state, count in counted.most_common() if count}


def _array(run: Path) -> arrays.Array | None:
    """Return the array in plan.json."""
    option = run_directory.as_dict(run_directory.as_dict(run_directory.plan(run).get("options")).get("array"))
    return arrays.read(re.split("[= ]", str(option.get("value") or ""))[-1])  # --array=0-9, -J 0-9, -t 0-9


def _number_of_others(known: Iterable[str], array: arrays.Array | None) -> int | None:
    """Return how many tasks of an array are not ``known``; None without an array."""
    if array is None:
        return None
    return array.size - sum(array.has(int(index)) for index in known if index.isdecimal())


def _progress(directory: Path) -> tuple[int | None, float | None, float | None]:
    """Return the last step, its loss and the last accuracy in the metrics."""
    found: dict[str, float] = {}
    for line in reversed(run_directory.tail(directory / run_directory.METRICS, 30).splitlines()):
        row = run_directory.as_object(line)
        for key in ("step", "loss", "accuracy"):
            if key not in found and (value := run_directory.number(row.get(key))) is not None:
                found[key] = value
        if len(found) == 3:
            break
    step = found.get("step")
    return None if step is None else int(step), found.get("loss"), found.get("accuracy")
