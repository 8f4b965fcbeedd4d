"""A value for every option on every scheduler, and the script that it gives."""

from __future__ import annotations

from typing import Any

from jobgen import JobgenError, JobSpec, render
from jobgen.commands.init import example
from jobgen.options import Option
from jobgen.schedulers.table import SCHEDULERS

# What an option needs beside it. Without one of these it is refused.
NEEDS: dict[str, dict[str, Any]] = {
    "mail_on": {"mail": "me@example.org"},
    "container": {"image": "a.sif"},
    "image": {"container": "apptainer"},
    "bind": {"container": "apptainer", "image": "a.sif"},
    "container_arg": {"container": "apptainer", "image": "a.sif"},
    "include": {"launcher": "deepspeed"},
    "exclude": {"launcher": "deepspeed"},
    "mpi": {"launcher": "mpirun"},
    "remote": {"launcher": "torchrun"},
    "requeue_on": {"requeue": 3},
    "min_nodes": {"restarts": 3},
    "launcher_arg": {"launcher": "torchrun"},
    "preflight": {"launcher": "torchrun"},
}
# Values that differ from the defaults and suit every scheduler, where the example does not.
VALUES: dict[str, Any] = {
    "mpi": "mpich",
    "launcher": "torchrun",
    "accelerator": "npu",
    "rank_logs": "rank",
    "runtime": "beside",
    "include": "host1:0",
    "nodes": 3,
    "name": "other",
    "walltime": "2h",
    "runs_dir": "elsewhere",
    "remote": "ssh",
    "requeue_on": "limit",
}


def needs_of(option: Option, kind: str) -> dict[str, Any]:
    """Return the options that an option needs beside it on a scheduler."""
    lacks = SCHEDULERS[kind].lacks
    return {key: one for key, one in NEEDS.get(option.key, {}).items() if key not in lacks}


def value(option: Option, kind: str) -> Any:
    """Return a value that is not the default."""
    if option.key == "preflight":  # it is on by default where there are several nodes
        return SCHEDULERS[kind].behaviour.one_host
    if option.key == "dialect":
        return "pbspro" if kind == "torque" else "torque"
    return VALUES.get(option.key, example(option, kind))


def rendered(kind: str, **values: Any) -> tuple[str, str]:
    """Return the script, or the error."""
    scheduler = SCHEDULERS[kind]
    shape = {"ranks_per_node": 2} if scheduler.behaviour.one_host else {"nodes": 2, "gpus_per_node": 2}
    dialect = {} if "dialect" in scheduler.lacks else {"dialect": kind}
    try:
        return render(
            JobSpec(scheduler.command_name, ("true", "$HOME"), **{**shape, **dialect, **values})
        ), ""
    except JobgenError as error:
        return "", str(error)
