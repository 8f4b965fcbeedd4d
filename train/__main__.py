"""Entry point of python -m jobgen.train: select the command and map its result to an exit status.

whole_run.py implements the training itself.
"""

import importlib
import os
import sys
import time
import traceback
from collections.abc import Sequence
from typing import NoReturn

from . import ranks, report, signals, whole_run
from .errors import DONE, RESUMABLE, BadInput, CommonMistake, Resumable, TrainingFailure, status_of

PATIENCE = 2.0  # seconds that the other ranks leave rank 0 for its message
# Modules of the commands. Any other first argument belongs to a training.
COMMANDS = {
    "export": ".commands.export",
    "evaluate": ".commands.evaluate",
    "sample": ".commands.sample",
    "preflight": ".preflight",
}
PACKAGES = ("numpy", "torch", "deepspeed", "mpi4py", "safetensors", "sklearn", "tqdm")


def main(argv: Sequence[str]) -> int:
    """Run the command that `argv` names and return its exit status, as listed in errors.py."""
    run = report.Run(os.environ, report.Clock(), None)
    status = _run(argv, run)
    run.end(status)
    return status


def _run(argv: Sequence[str], run: report.Run) -> int:
    try:
        if argv and argv[0] in COMMANDS:
            run.directory = None  # the status.json there belongs to another run
            run.rank = ranks.guess(os.environ)
            return importlib.import_module(COMMANDS[argv[0]], __package__).main(argv[1:]) or DONE
        else:
            whole_run.train(argv, run)
            whole_run.disconnect()
    except Resumable:
        return RESUMABLE
    except (Exception, KeyboardInterrupt) as error:
        return _fail(run, _with_remedy(error), status_of(error))
    return DONE


def _with_remedy(error: BaseException) -> BaseException:
    """Return `error`, or for a missing package of PACKAGES an error that tells how to install it."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package not in PACKAGES:
        return error
    return TrainingFailure(
        f"the Python package {package} is not installed in {sys.prefix}: "
        "pip install '.[train]' in a checkout of jobgen"
    )


def _fail(run: report.Run, error: BaseException, status: int) -> int:
    """Write status.json, print the error message and return `status`.

    Only rank 0 reports a CommonMistake. The other ranks wait PATIENCE seconds and return. They also wait with
    another BadInput, such as a file that cannot be read, and report it unless a launcher ends them because
    rank 0 has it, too.
    """
    message = str(error) or type(error).__name__
    if isinstance(error, BadInput) and not run.is_main:
        # Launchers end all ranks when the first one exits: wait until rank 0 has printed.
        time.sleep(PATIENCE)
        if isinstance(error, CommonMistake) or signals.any_signal():
            return status
    first = run.fail(message, type(error).__name__, status, **getattr(error, "facts", {}))
    me = f"rank {run.rank} on {run.host}"
    if (first.get("rank"), first.get("host")) != (run.rank, run.host):
        if first.get("message") != message:
            who = f"rank {first.get('rank')} on {first.get('host')}"
            kind = "" if isinstance(error, BadInput | TrainingFailure) else f"{type(error).__name__}: "
            report.complain(f"{me} stops because {who} failed first; error of this rank: {kind}{message}")
    elif isinstance(error, CommonMistake) or (isinstance(error, BadInput) and run.rank is None):
        report.complain(message)
    elif isinstance(error, BadInput | TrainingFailure):
        report.complain(f"{me}: {message}")
    else:
        report.complain(f"{me} failed:\n{traceback.format_exc()}")
    return status


def _leave(status: int) -> NoReturn:
    """End the process with `status`, without the shutdown of the Python interpreter.

    After a failure, the shutdown would wait in MPI_Finalize or in the collective library for ranks that wait
    for this one. After a success, it sometimes aborts: a thread of gloo may release a tensor while the
    interpreter shuts down.
    """
    mpi = sys.modules.get("mpi4py.MPI")
    if status == DONE and mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()  # otherwise mpirun reports a crash of this rank
    if files := sys.modules.get(f"{__package__}.host_files"):
        files.remove_temporary()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _leave(main(sys.argv[1:]))
