"""python -m jobgen.train: the wiring, in the order of a run.

Environment, set by the generated script or by hand; all of it may be missing:
JOBGEN_RUN_DIR      where metrics.jsonl and status.json go (else runs/train-<time>-<pid>)
JOBGEN_WORLD_SIZE   the number of ranks that the job asked for; any other is an error
JOBGEN_ACCELERATOR  cuda, rocm, npu, xpu or cpu: exactly this, or an error (else the best there is)
JOBGEN_START_TIME   when the job script started, seconds since the epoch, for the start-up times
JOBGEN_DEADLINE     when saving must begin at the latest, seconds since the epoch (else there is time)
JOBGEN_STALL        --stall, where that is not given: how long no step is done before all ranks leave
JOBGEN_ATTEMPT      from the second on, the training goes on from the latest checkpoint, if there is one
MASTER_ADDR, MASTER_PORT   where the ranks meet; OMP_NUM_THREADS   threads of each rank
Who this process is: see ranks.py.
"""

import importlib
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import NoReturn

from . import checkpoints, config, explain, npu, ranks, report, signals, sinks, stall
from .config import plugins, recipe, refusals
from .errors import (
    BAD_INPUT,
    CANNOT_SAVE,
    DONE,
    FAILURE,
    RESUMABLE,
    TARGET_MISSED,
    BadInput,
    CannotSave,
    CommonMistake,
    Resumable,
    TargetMissed,
    TrainingFailure,
)

PATIENCE = 2.0  # seconds
# Their modules; anything else is a training.
COMMANDS = {"export": ".checkpoints.export", "evaluate": ".checkpoints.evaluate", "preflight": ".preflight"}
PACKAGES = ("numpy", "torch", "deepspeed", "mpi4py", "safetensors", "sklearn", "tqdm")


def main(argv: Sequence[str]) -> int:
    """Run as `argv` says and return the exit status, one of those in errors.py."""
    run = report.Run(os.environ, report.Clock(), None)
    try:
        if argv and argv[0] in COMMANDS:
            run.directory = None  # the status there is another run's
            run.rank = ranks.guess(os.environ)
            return importlib.import_module(COMMANDS[argv[0]], __package__).main(argv[1:]) or DONE
        else:
            train(argv, run)
    except Resumable:
        return RESUMABLE
    except TargetMissed as error:
        return _failed(run, error, TARGET_MISSED)
    except CannotSave as error:
        return _failed(run, error, CANNOT_SAVE)
    except BadInput as error:
        return _failed(run, error, BAD_INPUT)
    except (Exception, KeyboardInterrupt) as error:
        return _failed(run, _named(error), FAILURE)
    return DONE


def _named(error: BaseException) -> BaseException:
    """For a package that is not installed, an error that says how to get it."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package not in PACKAGES:
        return error
    return TrainingFailure(
        f"the Python package {package} is not installed in {sys.prefix}: pip install 'jobgen[train]'"
    )


def train(argv: Sequence[str], run: report.Run) -> None:
    """One whole run on this rank."""
    run.rank = ranks.guess(os.environ)
    signals.listen()
    settings = config.parse(argv)
    me = ranks.discover(os.environ, settings.local_rank)
    ranks.export(me, os.environ)
    run.rank = me.rank
    if settings.explain or settings.explain_for:
        return _explain(settings, me, run)
    ranks.check_world(me, os.environ)
    stall_limit = stall.limit(settings.stall, os.environ)
    how = recipe.resolve(settings, me.world_size)
    places = sinks.plan(settings, how.config)
    if os.environ.get("JOBGEN_ACCELERATOR") == "npu":
        npu.check_environment(os.environ)
    plugins.check_environment(settings)
    # Before the run has a directory of its own, in which there can be none.
    place = checkpoints.place(settings, run.directory)
    resume = checkpoints.LATEST if attempt(os.environ) > 1 and checkpoints.any_in(place) else settings.resume
    found = checkpoints.find(resume, place) if resume else None
    universal = found is not None and checkpoints.check(found, how, me.world_size)
    whole = checkpoints.Check(found, me.rank, me.world_size) if found else None
    run.prepare()
    if run.is_main:
        stall.forget(run.directory)
    if run.is_main and (folder := checkpoints.place(settings, run.directory)):
        checkpoints.make_ready(folder)
    run.clock.mark("ranks")

    # Everything below needs torch, which takes seconds: whatever can be refused without it was.
    import torch

    from . import data, device, engines, loop, peers, stopping
    from .checkpoints import saving, settling
    from .data import sampling

    mine = device.choose(me, os.environ)
    refusals.check_device(how.config, mine.kind)
    run.clock.mark("torch")
    samples = data.load(settings.task, settings.data, settings.cache)
    run.clock.mark("data")
    per_epoch = sampling.steps_per_epoch(len(samples.train.labels), *how.batch, how.parallel)
    schedule = how.schedule(per_epoch)

    patience = max(peers.TIMEOUT, stall.patience(stall_limit))
    peers.connect(me, mine, patience)
    facts = peers.exchange([run.host, peers.cores(), str(run.directory)], mine)
    hosts, cores, directories = (list(column) for column in zip(*facts, strict=True))
    run.adopt(directories[0])
    threads = int(os.environ.get("OMP_NUM_THREADS") or peers.share_of_cores(me.rank, hosts, cores))
    torch.set_num_threads(threads)
    run.clock.mark("peers")

    if found and whole:
        found = settling.settle(found, whole, mine, run)
        universal = checkpoints.check(found, how, me.world_size)
    if universal:
        how.config["checkpoint"] = {**how.config.get("checkpoint", {}), "load_universal": True}
    trainer = engines.build(how, schedule, samples, me, mine)
    start = checkpoints.Progress()
    if found:
        start = saving.restore(trainer, found, universal, mine, run)
        run.go_on(start.step)
    folder = checkpoints.place(settings, run.directory)
    saver = saving.Saver(trainer, mine, run, folder, saving.facts(how, samples, me.world_size), start)
    if found:
        saver.latest = found.directory.name if found.directory.parent == folder else str(found.directory)
    if run.is_main and run.directory:
        run.sinks = sinks.open_all(places, run.directory, start.step)
    run.clock.mark("engine")

    names = list(dict.fromkeys(hosts))
    for note in how.notes:
        run.line(f"note: {note}")
    run.line(
        f"{settings.task}, {settings.model}, {settings.engine}: {me.world_size} rank(s) on {len(names)} "
        f"host(s) ({me.source}), {mine.kind}, {threads} thread(s) each, batch "
        f"{how.batch.micro} x {how.batch.accumulation} x {how.parallel}"
    )
    run.line(f"run directory: {run.directory}")
    if found:
        run.line(f"goes on from {found.directory}, after step {start.step}")
    run.metric(
        "start",
        engine=settings.engine,
        world_size=me.world_size,
        hosts=names,
        device=mine.kind,
        source=me.source,
        versions=report.versions(),
        deepspeed=how.config | ({"scheduler": schedule.block} if schedule.block else {}),
    )
    stop = stopping.Stopping(os.environ, patience)
    with stall.Watchdog(stall_limit, run, me.world_size, saver) as watchdog:
        scores, steps = loop.train(trainer, samples, mine, how.batch, settings, run, saver, stop, watchdog)
        # Rank 0 may only say finished when every rank has come to this line.
        torch.distributed.barrier()
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
        world_size=me.world_size,
        hosts=names,
        device=mine.kind,
    )
    run.line(f"finished: accuracy {scores.accuracy:.2%} in {run.clock.seconds():.1f} s")
    torch.distributed.destroy_process_group()


def attempt(env: Mapping[str, str]) -> int:
    """Which attempt of its job this is, counted from 1."""
    text = env.get("JOBGEN_ATTEMPT", "") or "1"
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise BadInput(f"JOBGEN_ATTEMPT={text!r} must be a whole number from 1")
    return int(text)


def _explain(settings: config.Settings, me: ranks.Ranks, run: report.Run) -> None:
    """Print what --explain promises, on rank 0."""
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


def _failed(run: report.Run, error: BaseException, status: int) -> int:
    """Leave a status, say what happened, once over all ranks, and return `status`."""
    message = str(error) or type(error).__name__
    if isinstance(error, CommonMistake) and not run.is_main:
        # Launchers end all ranks when the first is gone: leave rank 0 the time to speak.
        time.sleep(PATIENCE)
        return status
    first = run.fail(message, type(error).__name__, status, **getattr(error, "facts", {}))
    me = f"rank {run.rank} on {run.host}"
    if (first.get("rank"), first.get("host")) != (run.rank, run.host):
        if first.get("message") != message:
            who = f"rank {first.get('rank')} on {first.get('host')}"
            kind = "" if isinstance(error, BadInput | TrainingFailure) else f"{type(error).__name__}: "
            report.complain(f"{me} stops, because {who} failed first; here: {kind}{message}")
    elif isinstance(error, CommonMistake) or (isinstance(error, BadInput) and run.rank is None):
        report.complain(message)
    elif isinstance(error, BadInput | TrainingFailure):
        report.complain(f"{me}: {message}")
    else:
        report.complain(f"{me} failed:\n{traceback.format_exc()}")
    return status


def _leave(status: int) -> NoReturn:
    """End the process without Python's own shutdown.

    After a failure that would wait, in MPI_Finalize or in the collective library, for ranks that
    wait for this one. After a success it sometimes aborts: a thread of gloo may still let go of a
    tensor while the interpreter is taken down.
    """
    mpi = sys.modules.get("mpi4py.MPI")
    if status == DONE and mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()  # else mpirun takes a rank that has gone for one that has crashed
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _leave(main(sys.argv[1:]))
