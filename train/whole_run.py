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

import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from . import best, checkpoints, config, explain, hang, ranks, report, signals, sinks
from .accelerators import ACCELERATORS
from .config import batches, finetuning, recipe, refusals, speed
from .config.engines import spec_of
from .config.schedules import Plan as Schedule
from .errors import BadInput, CommonMistake, TargetMissed
from .flops import RATES, Work

if TYPE_CHECKING:
    from .checkpoints.save import Saver
    from .data import Task
    from .device import Device
    from .engines import Engine
    from .evaluation import Measures, Scores


@dataclass(frozen=True)
class _Resume:
    """The checkpoint to resume from, and its verification on this rank."""

    checkpoint: checkpoints.Checkpoint
    check: checkpoints.Check


@dataclass(frozen=True)
class _Plan:
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

    checkpoint: checkpoints.Checkpoint
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

    samples: "Task"
    measures: "Measures"
    criterion: best.Best
    device: "Device"
    schedule: Schedule
    per_epoch: int
    peers: _Peers
    intact: _Intact | None
    engine: "Engine"
    saver: "Saver"
    work: Work | None


def train(argv: Sequence[str], run: report.Run) -> dict[str, Any]:
    """Train as `argv` says, and return the results; with --explain, print the plan instead, and return {}."""
    run.rank = ranks.guess(os.environ)
    signals.listen()
    settings = config.parse(argv)
    me = ranks.discover(os.environ, settings.local_rank)
    ranks.export(me, os.environ)
    run.rank = me.rank
    if settings.explain or settings.explain_for:
        _explain(settings, me, run)
        return {}
    plan = _validate(settings, me, run)
    # The rest needs torch, whose import takes seconds. All checks without torch are done.
    with _no_collections():
        parts = _assemble(plan, run)
    try:
        _announce(plan, parts, run)
        scores, steps = _train(plan, parts, run)
        return _conclude(plan, parts, scores, steps, run)
    finally:
        gc.unfreeze()  # the engine of a training that has ended is garbage


@contextmanager
def _no_collections() -> Iterator[None]:
    """Disable the garbage collector, and exclude from later collections what exists at the end.

    Modules and models are not garbage. To visit them takes a sixth of the time of an import of torch, and
    later makes a rank pause while the others wait for it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()


def _validate(settings: config.Settings, me: ranks.Ranks, run: report.Run) -> _Plan:
    """Validate everything that needs no torch, and create the run directory."""
    ranks.check_world(me, os.environ)
    hang_timeout = hang.limit(settings.hang_timeout, os.environ)
    # Before the run gets a new directory, which cannot contain a checkpoint.
    place = checkpoints.place(settings, run.directory)
    resume = checkpoints.LATEST if attempt(os.environ) > 1 and checkpoints.any_in(place) else settings.resume
    checkpoint = checkpoints.find(resume, place) if resume else None
    settings = finetuning.restored(settings) if checkpoint else settings
    if settings.init_from:
        checkpoints.foreign.kind(settings.init_from)
    finetuning.check_base(settings)
    how = recipe.resolve(
        settings, me.world_size, checkpoints.batch_before(checkpoint) if checkpoint else None
    )
    settings = how.settings
    places = sinks.plan(settings, how.config)
    if accelerator := ACCELERATORS.get(os.environ.get("JOBGEN_ACCELERATOR", "")):
        accelerator.check_environment(os.environ)
    spec_of(settings).check_environment()
    if checkpoint:
        checkpoints.check(checkpoint, how, me.world_size)
    source = (
        _Resume(checkpoint, checkpoints.Check(checkpoint, me.rank, me.world_size)) if checkpoint else None
    )
    run.prepare()
    if run.is_main:
        hang.forget(run.directory)
        if folder := checkpoints.place(settings, run.directory):
            checkpoints.make_ready(folder)
    run.clock.mark("ranks")
    return _Plan(how.settings, me, how, places, hang_timeout, source)


def _assemble(plan: _Plan, run: report.Run) -> _Parts:
    """Load the data, connect the ranks, build the engine, and load the checkpoint to resume from."""
    from . import data, device, engines, evaluation, size
    from .data import sampling

    settings, how = plan.settings, plan.how
    mine = device.choose(plan.me, os.environ)
    refusals.check_device(how.config, settings, mine.kind)
    speed.resolve(how.config, settings, mine.kind)
    run.clock.mark("torch")
    samples = data.of(settings)
    what = evaluation.measures(samples, settings.loss, settings.metric, settings.loss_by)
    evaluation.check_target(what, settings.target_accuracy)
    run.clock.mark("data")
    directions = {"loss": False, **{metric.name: metric.higher for metric in what.metrics}}
    criterion = best.of(settings.keep_best, directions)
    per_epoch = sampling.steps_per_epoch(
        len(samples.train), *how.batch, how.parallel, bool(settings.drop_last)
    )
    if not per_epoch:
        raise CommonMistake(
            f"--drop-last leaves no step: the {len(samples.train)} training samples do not fill a "
            f"global batch of {how.config[batches.TOTAL]}"
        )
    schedule = how.schedule(per_epoch, criterion.higher)
    neighbours = _connect(plan, mine, run)
    samples.release()
    run.clock.mark("peers")
    intact = _intact(plan, samples, mine, run)
    if intact and intact.universal:
        how.config["checkpoint"] = {**how.config.get("checkpoint", {}), "load_universal": True}
    engine = engines.build(how, schedule, samples, plan.me, mine)
    saver = _saver(plan, engine, samples, mine, intact, run)
    work = size.of_work(settings, samples, mine, plan.me.world_size)
    if run.is_main and run.directory:
        names = [*(metric.name for metric in what.metrics), *(RATES if work else ())]
        run.sinks = sinks.open_all(plan.places, run.directory, saver.start.step, names)
        run.sinks += sinks.own(settings, run.directory)
    run.clock.mark("engine")
    return _Parts(
        samples, what, criterion, mine, schedule, per_epoch, neighbours, intact, engine, saver, work
    )


def _connect(plan: _Plan, mine: "Device", run: report.Run) -> _Peers:
    """Connect the ranks, and set the number of threads of this one."""
    import torch

    from . import peers

    patience = max(peers.TIMEOUT, hang.patience(plan.hang_timeout))
    peers.connect(plan.me, mine, patience)
    facts = peers.exchange([run.host, peers.cores(), str(run.directory)], mine)
    hosts, cores, directories = (list(column) for column in zip(*facts, strict=True))
    run.adopt(directories[0])
    threads = int(os.environ.get("OMP_NUM_THREADS") or peers.share_of_cores(plan.me.rank, hosts, cores))
    torch.set_num_threads(threads)
    return _Peers(list(dict.fromkeys(hosts)), threads, patience)


def _intact(plan: _Plan, samples: "Task", mine: "Device", run: report.Run) -> _Intact | None:
    """Return an intact checkpoint to resume from, or None."""
    from .checkpoints import agreement

    if not plan.resume:
        return None
    checkpoint = agreement.settle(plan.resume.checkpoint, plan.resume.check, mine, run)
    checkpoints.check_data(checkpoint, samples.identity(plan.settings.loss_by, plan.settings.loss))
    return _Intact(checkpoint, checkpoints.check(checkpoint, plan.how, plan.me.world_size))


def _saver(
    plan: _Plan, engine: "Engine", samples: "Task", mine: "Device", intact: _Intact | None, run: report.Run
) -> "Saver":
    """Return the saver of the engine, after the engine has loaded the checkpoint."""
    from .checkpoints import fingerprint, save

    start = checkpoints.Progress()
    if intact:
        start = save.restore(engine, intact.checkpoint, intact.universal, mine, run)
        run.go_on(start.step)
    folder = checkpoints.place(plan.settings, run.directory)
    assert folder is not None
    facts = save.facts(plan.how, samples, plan.me.world_size)
    if plan.settings.lora:
        facts["base"] = fingerprint.of(engine.module)
    saver = save.Saver(engine, mine, run, folder, facts, start)
    if intact:
        checkpoint = intact.checkpoint.directory
        saver.latest = checkpoint.name if checkpoint.parent == folder else str(checkpoint)
    return saver


def _note_on_workers(settings: config.Settings, samples: "Task") -> Iterator[str]:
    from . import peers

    source, cores = samples.train, len(peers.cores())
    workers = source.workers if settings.workers is None else settings.workers
    if source.in_python and not source.sequential and workers > cores:
        yield f"the {workers} workers of a rank share {cores} core(s): more workers than cores do not help"


def _announce(plan: _Plan, parts: _Parts, run: report.Run) -> None:
    settings, me, how = plan.settings, plan.me, plan.how
    for note in (*how.notes, *parts.samples.notes, *_note_on_workers(settings, parts.samples)):
        run.line(f"note: {note}")
    run.line(
        f"{settings.task}, {settings.model}, {settings.engine}: {me.world_size} rank(s) on "
        f"{len(parts.peers.hosts)} host(s) ({me.source}), {parts.device.kind}, "
        f"{parts.peers.threads} thread(s) each, "
        f"batch {how.batch.micro} x {how.batch.accumulation} x {how.parallel}"
    )
    if parts.device.kind != "cpu":
        run.line(
            speed.line(speed.resolve(how.config, settings, parts.device.kind), how.config, parts.device.kind)
        )
    if parts.intact and (
        note := checkpoints.jump(parts.intact.checkpoint, how, parts.schedule, parts.per_epoch)
    ):
        run.line(f"note: {note}")
    run.line(f"run directory: {run.directory}")
    held_out = len(parts.samples.test)
    run.line(f"samples: {len(parts.samples.train)} to train on, {held_out} for the evaluation")
    if parts.intact:
        run.line(f"resumes from {parts.intact.checkpoint.directory}, after step {parts.saver.start.step}")
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


def _train(plan: _Plan, parts: _Parts, run: report.Run) -> tuple["Scores", int]:
    """Train. Return the last scores and the number of optimizer steps."""
    from torch import distributed

    from . import loop, stop_vote, trial

    if parts.saver.start.step == 0 and trial.applies(plan.settings):
        micro = plan.how.batch.micro
        trial.run(parts.engine, parts.samples, parts.measures, parts.device, plan.settings, micro)
    stop = stop_vote.StopVote(os.environ, parts.peers.patience)
    with hang.Watchdog(plan.hang_timeout, run, plan.me, parts.saver) as watchdog:
        training = loop.Training(
            parts.engine,
            parts.samples,
            parts.measures,
            parts.device,
            plan.how.batch,
            plan.settings,
            run,
            saver=parts.saver,
            stop_vote=stop,
            watchdog=watchdog,
            work=parts.work,
            best=parts.criterion,
        )
        scores, steps = training.run()
        # Rank 0 may report the end only when every rank has reached this line.
        distributed.barrier()
    return scores, steps


def _conclude(plan: _Plan, parts: _Parts, scores: "Scores", steps: int, run: report.Run) -> dict[str, Any]:
    """Report the scores, and return what the status says of them.

    Raise TargetMissed if the accuracy is below --target-accuracy.
    """
    settings = plan.settings
    for line in scores.lines():
        run.line(line)
    target = settings.target_accuracy
    if target is not None and scores.metrics["accuracy"] < target:
        raise TargetMissed(scores.metrics["accuracy"], target, per_class=scores.per_class, steps=steps)
    text = parts.measures.text(scores.metrics) or f"loss {scores.loss:.4f}"
    results = {
        "message": f"{text} on the test set",
        "task": settings.task,
        **scores.row(),
        "epochs": recipe.length(settings, parts.per_epoch).epochs,
        "steps": steps,
        "world_size": plan.me.world_size,
        "hosts": parts.peers.hosts,
        "device": parts.device.kind,
    }
    run.finish(**results)
    run.line(f"finished: {text} in {run.clock.seconds():.1f} s")
    return results


def disconnect() -> None:
    """Leave the process group, if there is one, at the end of the program."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_initialized():
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

    samples = data.of(settings)
    samples.release()
    host = explain.host_memory()
    mine = device.choose(me, os.environ)
    here = size.of_device(mine) or host / per_node
    fast = speed.resolve(how.config, settings, mine.kind)
    limit = settings.device_memory * explain.GIB if settings.device_memory else here
    zero = how.config["zero_optimization"]
    sizes = {key: int(float(zero[key])) for key in explain.Buffers._fields if key in zero}
    buffers = explain.Buffers(**sizes)
    fused = fast.fused != "none" or (settings.explain_for is not None and settings.fused_optimizer is None)
    for line in (
        *(f"note: {note}" for note in how.notes),
        *explain.arithmetic(how.batch, how.parallel, len(samples.train), bool(how.settings.drop_last)),
        speed.line(fast, how.config, mine.kind),
        *explain.table(
            size.of_model(settings, samples),
            nodes,
            per_node,
            limit,
            host,
            buffers,
            how.batch.accumulation,
            fused,
        ),
    ):
        run.line(line)
