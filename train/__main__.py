"""python -m jobgen.train: which of its commands is meant, and the exit status of each end; see running.py."""

import importlib
import os
import sys
import time
import traceback
from collections.abc import Sequence
from typing import NoReturn

from . import ranks, report, running
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
            running.train(argv, run)
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
