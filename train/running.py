"""One whole run on this rank, in the order of a run.

Environment variables, set by the generated script or by hand; all of them are optional:
JOBGEN_RUN_DIR      directory of metrics.jsonl and status.json (default: runs/train-<time>-<pid>)
JOBGEN_WORLD_SIZE   number of ranks that the job requested; any other number is an error
JOBGEN_ACCELERATOR  cuda, rocm, npu, xpu or cpu; an error if not available (default: the best available)
JOBGEN_START_TIME   start of the job script, in seconds since the epoch, for the start-up times
JOBGEN_DEADLINE     latest time to begin a save, in seconds since the epoch (default: no limit)
JOBGEN_HANG_TIMEOUT   --hang-timeout, if that is not given: time without a step after which all ranks exit
JOBGEN_ATTEMPT      from the second attempt on, the training resumes from the latest checkpoint, if any
MASTER_ADDR, MASTER_PORT   address of the rendezvous; OMP_NUM_THREADS   threads of each rank
For the variables of the ranks see ranks.py.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from . import checkpoints, config, explain, hang, ranks, report, signals, sinks
from .accelerators import ACCELERATORS
from .config import recipe, refusals
from .config.engines import spec_of
from .config.schedules import Plan as Schedule
from .errors import BadInput, TargetMissed

if TYPE_CHECKING:
    from .checkpoints.saving import Saver
    from .data import Data
    from .device import Device
    from .engines import Engine
    from .scoring import Scores


@dataclass(frozen=True)
class _Resume:
    """The checkpoint to resume from, and its verification on this rank."""

    found: checkpoints.Checkpoint
    check: checkpoints.Check


@dataclass(frozen=True)
class _Asked:
    """The parameters of a run that are determined without torch. places: destinations of the metrics"""

    settings: config.Settings
    me: ranks.Ranks
    how: recipe.Recipe
    places: sinks.Places
    hang_timeout: float
    resume: _Resume | None


@dataclass(frozen=True)
class _Intact:
    """A checkpoint that all ranks have verified. universal: load DeepSpeed's universal form of it"""

    found: checkpoints.Checkpoint
    universal: bool


@dataclass(frozen=True)
class _Peers:
    """The connected ranks.

    hosts: names without repetition; threads: of this rank; patience: time that ranks wait for each other
    """

    hosts: list[str]
    threads: int
    patience: timedelta


@dataclass(frozen=True)
class _Parts:
    """The parts of a training. intact: the checkpoint that was loaded"""

    samples: "Data"
    device: "Device"
    schedule: Schedule
    peers: _Peers
    intact: _Intact | None
    engine: "Engine"
    saver: "Saver"


def train(argv: Sequence[str], run: report.Run) -> None:
    """Train as `argv` says; with --explain, print the plan of the training instead."""
    run.rank = ranks.guess(os.environ)
    signals.listen()
    settings = config.parse(argv)
    me = ranks.discover(os.environ, settings.local_rank)
    ranks.export(me, os.environ)
    run.rank = me.rank
    if settings.explain or settings.explain_for:
        return _explain(settings, me, run)
    asked = _settle(settings, me, run)
    # The rest needs torch, whose import takes seconds. All checks without torch are done.
    parts = _assemble(asked, run)
    _announce(asked, parts, run)
    scores, steps = _train(asked, parts, run)
    _conclude(asked, parts, scores, steps, run)


def _settle(settings: config.Settings, me: ranks.Ranks, run: report.Run) -> _Asked:
    """Validate everything that needs no torch, and create the run directory."""
    ranks.check_world(me, os.environ)
    hang_timeout = hang.limit(settings.hang_timeout, os.environ)
    how = recipe.resolve(settings, me.world_size)
    places = sinks.plan(settings, how.config)
    if accelerator := ACCELERATORS.get(os.environ.get("JOBGEN_ACCELERATOR", "")):
        accelerator.check_environment(os.environ)
    spec_of(settings).check_environment()
    # Before the run gets a new directory, which cannot contain a checkpoint.
    place = checkpoints.place(settings, run.directory)
    resume = checkpoints.LATEST if attempt(os.environ) > 1 and checkpoints.any_in(place) else settings.resume
    found = checkpoints.find(resume, place) if resume else None
    if found:
        checkpoints.check(found, how, me.world_size)
    resuming = _Resume(found, checkpoints.Check(found, me.rank, me.world_size)) if found else None
    run.prepare()
    if run.is_main:
        hang.forget(run.directory)
        if folder := checkpoints.place(settings, run.directory):
            checkpoints.make_ready(folder)
    run.clock.mark("ranks")
    return _Asked(settings, me, how, places, hang_timeout, resuming)


def _assemble(asked: _Asked, run: report.Run) -> _Parts:
    """Load the data, connect the ranks, build the engine, and load the checkpoint to resume from."""
    from . import data, device, engines
    from .data import sampling

    settings, how = asked.settings, asked.how
    mine = device.choose(asked.me, os.environ)
    refusals.check_device(how.config, mine.kind)
    run.clock.mark("torch")
    samples = data.load(settings.task, settings.data, settings.cache)
    run.clock.mark("data")
    per_epoch = sampling.steps_per_epoch(len(samples.train.labels), *how.batch, how.parallel)
    schedule = how.schedule(per_epoch)
    connected = _connect(asked, mine, run)
    run.clock.mark("peers")
    intact = _intact(asked, mine, run)
    if intact and intact.universal:
        how.config["checkpoint"] = {**how.config.get("checkpoint", {}), "load_universal": True}
    engine = engines.build(how, schedule, samples, asked.me, mine)
    saver = _saver(asked, engine, samples, mine, intact, run)
    if run.is_main and run.directory:
        run.sinks = sinks.open_all(asked.places, run.directory, saver.start.step)
    run.clock.mark("engine")
    return _Parts(samples, mine, schedule, connected, intact, engine, saver)


def _connect(asked: _Asked, mine: "Device", run: report.Run) -> _Peers:
    """Connect the ranks, and set the number of threads of this one."""
    import torch

    from . import peers

    patience = max(peers.TIMEOUT, hang.patience(asked.hang_timeout))
    peers.connect(asked.me, mine, patience)
    facts = peers.exchange([run.host, peers.cores(), str(run.directory)], mine)
    hosts, cores, directories = (list(column) for column in zip(*facts, strict=True))
    run.adopt(directories[0])
    threads = int(os.environ.get("OMP_NUM_THREADS") or peers.share_of_cores(asked.me.rank, hosts, cores))
    torch.set_num_threads(threads)
    return _Peers(list(dict.fromkeys(hosts)), threads, patience)


def _intact(asked: _Asked, mine: "Device", run: report.Run) -> _Intact | None:
    """Return an intact checkpoint to resume from, or None."""
    from .checkpoints import settling

    if not asked.resume:
        return None
    found = settling.settle(asked.resume.found, asked.resume.check, mine, run)
    return _Intact(found, checkpoints.check(found, asked.how, asked.me.world_size))


def _saver(
    asked: _Asked, engine: "Engine", samples: "Data", mine: "Device", intact: _Intact | None, run: report.Run
) -> "Saver":
    """Return the saver of the engine, after the engine has loaded the checkpoint."""
    from .checkpoints import saving

    start = checkpoints.Progress()
    if intact:
        start = saving.restore(engine, intact.found, intact.universal, mine, run)
        run.go_on(start.step)
    folder = checkpoints.place(asked.settings, run.directory)
    assert folder is not None
    facts = saving.facts(asked.how, samples, asked.me.world_size)
    saver = saving.Saver(engine, mine, run, folder, facts, start)
    if intact:
        found = intact.found.directory
        saver.latest = found.name if found.parent == folder else str(found)
    return saver


def _announce(asked: _Asked, parts: _Parts, run: report.Run) -> None:
    settings, me, how = asked.settings, asked.me, asked.how
    for note in how.notes:
        run.line(f"note: {note}")
    run.line(
        f"{settings.task}, {settings.model}, {settings.engine}: {me.world_size} rank(s) on "
        f"{len(parts.peers.hosts)} host(s) ({me.source}), {parts.device.kind}, "
        f"{parts.peers.threads} thread(s) each, "
        f"batch {how.batch.micro} x {how.batch.accumulation} x {how.parallel}"
    )
    run.line(f"run directory: {run.directory}")
    if parts.intact:
        run.line(f"resumes from {parts.intact.found.directory}, after step {parts.saver.start.step}")
    block = parts.schedule.block
    run.metric(
        "start",
        engine=settings.engine,
        world_size=me.world_size,
        hosts=parts.peers.hosts,
        device=parts.device.kind,
        source=me.source,
        versions=report.versions(),
        deepspeed=how.config | ({"scheduler": block} if block else {}),
    )


def _train(asked: _Asked, parts: _Parts, run: report.Run) -> tuple["Scores", int]:
    """Train. Return the last scores and the number of optimizer steps."""
    from torch import distributed

    from . import loop, stopping

    stop = stopping.Stopping(os.environ, parts.peers.patience)
    with hang.Watchdog(asked.hang_timeout, run, asked.me, parts.saver) as watchdog:
        training = loop.Training(
            parts.engine,
            parts.samples,
            parts.device,
            asked.how.batch,
            asked.settings,
            run,
            saver=parts.saver,
            stopping=stop,
            watchdog=watchdog,
        )
        scores, steps = training.run()
        # Rank 0 may report the end only when every rank has reached this line.
        distributed.barrier()
    return scores, steps


def _conclude(asked: _Asked, parts: _Parts, scores: "Scores", steps: int, run: report.Run) -> None:
    """Report the scores. Raise TargetMissed if the accuracy is below --target-accuracy."""
    from torch import distributed

    settings = asked.settings
    for name, accuracy in scores.per_class.items():
        run.line(f"  {name:>6} {'-' if accuracy is None else format(accuracy, '.1%')}")
    target = settings.target_accuracy
    if target is not None and scores.accuracy < target:
        raise TargetMissed(scores.accuracy, target, per_class=scores.per_class, steps=steps)
    run.finish(
        message=f"accuracy {scores.accuracy:.2%} on the test set",
        task=settings.task,
        accuracy=scores.accuracy,
        per_class=scores.per_class,
        epochs=settings.epochs,
        steps=steps,
        world_size=asked.me.world_size,
        hosts=parts.peers.hosts,
        device=parts.device.kind,
    )
    run.line(f"finished: accuracy {scores.accuracy:.2%} in {run.clock.seconds():.1f} s")
    distributed.destroy_process_group()


def attempt(env: Mapping[str, str]) -> int:
    """Return the number of this attempt of the job, from 1. Raise BadInput if it is not a number."""
    text = env.get("JOBGEN_ATTEMPT", "") or "1"
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise BadInput(f"JOBGEN_ATTEMPT={text!r} must be a whole number from 1")
    return int(text)


def _explain(settings: config.Settings, me: ranks.Ranks, run: report.Run) -> None:
    """Print the result of --explain, on rank 0."""
    if not run.is_main:
        return
    nodes, per_node = settings.explain_for or (-(-me.world_size // me.local_world_size), me.local_world_size)
    how = recipe.resolve(settings, nodes * per_node)

    from . import data, device, size

    samples = data.load(settings.task, settings.data, settings.cache)
    host = explain.host_memory()
    here = size.of_device(device.choose(me, os.environ)) or host / per_node
    limit = settings.device_memory * explain.GIB if settings.device_memory else here
    for line in (
        *(f"note: {note}" for note in how.notes),
        *explain.arithmetic(how.batch, how.parallel, len(samples.train.labels)),
        *explain.table(size.of_model(settings, samples), nodes, per_node, limit, host),
    ):
        run.line(line)
