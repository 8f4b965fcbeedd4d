"""Rank discovery: the place of this process among all processes of the run, found without torch.

`discover` uses, in this order: the variables of a launcher (torchrun, deepspeed); mpi4py, if an MPI launcher
started this process; the variables of that launcher or of Slurm; otherwise a single process. Slurm's
variables come last because Open MPI and Hydra start their daemons by srun: below these daemons, the Slurm
variables count daemons, and only the MPI variables count ranks.
"""

import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .addresses import first_host, free_port, own_address
from .errors import BadInput, CommonMistake

Env = Mapping[str, str]


@dataclass(frozen=True)
class Ranks:
    """The place of a process in the run.

    rank and world_size count all processes, local_rank and local_world_size those of this host. Ranks begin
    at 0. source: origin of the values, for messages
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    master_addr: str
    master_port: int
    source: str


class Values(NamedTuple):
    """The values of one family of variables; None for values that it does not have."""

    rank: int
    world_size: int | None
    local_rank: int | None
    local_world_size: int | None
    source: str


# Variables of each MPI launcher for rank, world size, local rank and local world size. PALS has no variable
# of its own for the world size, but sets Hydra's PMI_SIZE. Hydra's row requires MPI_LOCALRANKID, because
# srun --mpi=pmi2 also sets PMI_RANK.
MPI_FAMILIES = {
    "Open MPI": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "PALS": ("PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
}
# Variables of torchrun and deepspeed. An mpirun may have started these launchers, one per node.
LAUNCHER_MARKS = ("TORCHELASTIC_RUN_ID", "LOCAL_SIZE", "CROSS_RANK")
# First id of Slurm's special steps: the batch script, an interactive shell, the extern step.
SLURM_SPECIAL_STEPS = 0xFFFFFFF0


def discover(
    env: Env, local_rank_option: int | None = None, load_mpi: Callable[[], Any] | None = None
) -> Ranks:
    """Return the Ranks of this process.

    local_rank_option: value of --local_rank; load_mpi: returns mpi4py's MPI module or None. Raise BadInput,
    with the values found, if the sources contradict each other.
    """
    if local_rank_option == -1:  # the customary default of scripts without a launcher
        local_rank_option = None
    if env.get("RANK", "").strip():
        return _from_launcher(env, local_rank_option)
    variables = _from_mpi_variables(env) or _from_slurm(env)
    mpi = (load_mpi or _load_mpi)() if started_by_mpi(env) else None
    if mpi is not None:
        place = _from_mpi(mpi, env, variables)
    elif variables is not None:
        place = _from_variables(variables, env)
    else:
        place = Ranks(0, 1, 0, 1, "127.0.0.1", _port(env) or free_port(), "one process")
    for name, setting, value in (
        ("WORLD_SIZE", _int(env, "WORLD_SIZE"), place.world_size),
        ("LOCAL_RANK", _int(env, "LOCAL_RANK"), place.local_rank),
        ("--local_rank", local_rank_option, place.local_rank),
    ):
        if setting is not None and setting != value:
            raise BadInput(
                f"{name}={setting} is set but RANK is not, and {place.source} has {value}: "
                f"start the ranks with a launcher that sets RANK too, or unset {name}"
            )
    return place


def export(ranks: Ranks, env: MutableMapping[str, str]) -> None:
    """Set the variables of torch's rendezvous in `env`.

    All of them are set: if one is missing, DeepSpeed does an MPI discovery of its own, which overwrites
    MASTER_ADDR and MASTER_PORT.
    """
    env["RANK"] = str(ranks.rank)
    env["WORLD_SIZE"] = str(ranks.world_size)
    env["LOCAL_RANK"] = str(ranks.local_rank)
    env["LOCAL_WORLD_SIZE"] = str(ranks.local_world_size)
    env["MASTER_ADDR"] = ranks.master_addr
    env["MASTER_PORT"] = str(ranks.master_port)


def check_world(ranks: Ranks, env: Env) -> None:
    """Raise CommonMistake if the job requested (JOBGEN_WORLD_SIZE) another number of ranks."""
    request = _int(env, "JOBGEN_WORLD_SIZE")
    if request is not None and request != ranks.world_size:
        raise CommonMistake(
            f"the job requested {request} ranks (JOBGEN_WORLD_SIZE={request}) but {ranks.source} "
            f"started {ranks.world_size}"
        )


def text_of(ranks: Sequence[int]) -> str:
    """Return a text such as 'rank 3' or 'ranks 0, 2'; for many ranks 'ranks 0-511,513'."""
    numbers = ", ".join(map(str, ranks)) if len(ranks) <= 8 else span(ranks)
    return f"rank{'s' * (len(ranks) > 1)} {numbers}"


def span(ranks: Sequence[int]) -> str:
    """Return the ranks as a text with ranges, such as '0-2,5' for [0, 1, 2, 5]."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def guess(env: Env) -> int | None:
    """Return the rank from the environment, unchecked, or None: enough to let one rank report errors."""
    names = ["RANK", *(family[0] for family in MPI_FAMILIES.values())]
    names += ["PMIX_RANK"] + ["SLURM_PROCID"] * _in_slurm_step(env)
    for name in names:
        if env.get(name, "").isdecimal():
            return int(env[name])
    return None


def guess_local(env: Env) -> int:
    """Return the local rank according to the environment; 0 if no variable has it."""
    names = ["LOCAL_RANK", *(family[2] for family in MPI_FAMILIES.values()), "SLURM_LOCALID"]
    return next((int(env[name]) for name in names if env.get(name, "").isdecimal()), 0)


def started_by_mpi(env: Env) -> bool:
    """Return whether to get the ranks from mpi4py.

    PMIX_RANK alone means srun --mpi=pmix. For srun --mpi=pmi2, Slurm's own variables are used: an Open MPI
    without that interface ends the process in MPI_Init. Without a launcher, MPI would always have one rank,
    and its start takes time.
    """
    return "PMIX_RANK" in env or _from_mpi_variables(env) is not None


def _load_mpi() -> Any:
    # Lists of devices, such as CUDA_VISIBLE_DEVICES, must be set before this import, because an MPI with
    # CUDA support reads them. The launcher or the script sets them; nothing here changes them.
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):  # RuntimeError: mpi4py without an MPI library
        return None
    return MPI


def _from_launcher(env: Env, local_rank_option: int | None) -> Ranks:
    variables = {
        name: env[name]
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
        if name in env
    }
    values = ", ".join(f"{name}={value}" for name, value in variables.items())
    rank, world = _int(env, "RANK"), _int(env, "WORLD_SIZE")
    local = _int(env, "LOCAL_RANK")
    if local is None:
        local = local_rank_option
    elif local_rank_option is not None and local_rank_option != local:
        raise BadInput(f"--local_rank={local_rank_option} contradicts the environment, which has {values}")
    missing = [n for n, v in (("WORLD_SIZE", world), ("LOCAL_RANK", local)) if v is None]
    if world != 1:
        missing += [n for n in ("MASTER_ADDR", "MASTER_PORT") if not env.get(n)]
    if missing or rank is None or world is None or local is None:
        raise BadInput(f"RANK is set but {' and '.join(missing)} not: the environment has only {values}")
    # torchrun sets LOCAL_WORLD_SIZE, the deepspeed launcher LOCAL_SIZE.
    name = next((n for n in ("LOCAL_WORLD_SIZE", "LOCAL_SIZE") if _int(env, n) is not None), None)
    local_world = world if name is None else int(env[name])
    if name is not None:
        values += f", {name}={env[name]}"
    if not (0 <= rank < world and 0 <= local < local_world <= world):
        raise BadInput(f"these values contradict each other: {values}")
    mpi = None if any(mark in env for mark in LAUNCHER_MARKS) else _from_mpi_variables(env)
    if mpi and (mpi.rank != rank or mpi.world_size not in (None, world)):
        raise BadInput(
            f"the environment has {values}, but {mpi.source} started this process as rank {mpi.rank} of "
            f"{mpi.world_size}: unset RANK, WORLD_SIZE and LOCAL_RANK"
        )
    address = env.get("MASTER_ADDR") or "127.0.0.1"
    return Ranks(rank, world, local, local_world, address, _port(env) or free_port(), "the launcher")


def _from_mpi(mpi: Any, env: Env, variables: Values | None) -> Ranks:
    world = mpi.COMM_WORLD
    size = world.Get_size()
    if variables is not None and variables.world_size not in (None, size):
        raise BadInput(
            f"mpi4py sees {size} rank(s) but {variables.source} started {variables.world_size}: mpi4py is "
            f"built for another MPI than the launcher's (see python -m mpi4py --mpi-library)"
        )
    node = world.Split_type(mpi.COMM_TYPE_SHARED)
    local, local_size = node.Get_rank(), node.Get_size()
    address = env.get("MASTER_ADDR") or ("127.0.0.1" if local_size == size else own_address())
    port = _port(env) or (free_port() if world.Get_rank() == 0 else 0)
    address, port = world.bcast((address, port), root=0)
    return Ranks(world.Get_rank(), size, local, local_size, address, port, "mpi4py")


def _from_variables(values: Values, env: Env) -> Ranks:
    rank, size, local, local_size, source = values
    if size is None or local is None:
        missing = "world size" if size is None else "local rank"
        raise BadInput(f"{source} gives this process rank {rank}, but no {missing}")
    local_size = size if local_size is None else local_size
    if not (0 <= rank < size and 0 <= local < local_size <= size):
        raise BadInput(
            f"the values of {source} contradict each other: rank {rank} of {size}, local rank {local} of "
            f"{local_size}"
        )
    address, port = env.get("MASTER_ADDR"), _port(env)
    if size > 1 and not (address and port):
        if source != "Slurm":
            raise BadInput(
                f"{source} started {size} ranks, but mpi4py, which exchanges the address, cannot be loaded: "
                "install mpi4py, or set MASTER_ADDR and MASTER_PORT"
            )
        nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or ""
        job, step = _int(env, "SLURM_JOB_ID") or 0, _int(env, "SLURM_STEP_ID") or 0
        address = address or ("127.0.0.1" if local_size == size else first_host(nodes))
        # Every rank must compute the same port by itself. It is below the range of outgoing connections.
        port = port or 20000 + (job * 7 + step) % 12000
    return Ranks(rank, size, local, local_size, address or "127.0.0.1", port or free_port(), source)


def _from_mpi_variables(env: Env) -> Values | None:
    for source, (rank, size, local, local_size) in MPI_FAMILIES.items():
        value = _int(env, rank)
        if value is not None and (local in env or rank != "PMI_RANK"):
            return Values(value, _int(env, size), _int(env, local), _int(env, local_size), source)
    return None


def _from_slurm(env: Env) -> Values | None:
    if not _in_slurm_step(env) or "SLURM_PROCID" not in env:
        return None
    size = _int(env, "SLURM_STEP_NUM_TASKS") or _int(env, "SLURM_NTASKS")
    counts = tasks_per_node(env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE") or "")
    node = _int(env, "SLURM_NODEID") or 0
    local_size = counts[node] if node < len(counts) else None
    return Values(_int(env, "SLURM_PROCID") or 0, size, _int(env, "SLURM_LOCALID"), local_size, "Slurm")


def _in_slurm_step(env: Env) -> bool:
    """Return whether srun started this process.

    SLURM_PROCID=0 and SLURM_NTASKS are also set in the shell of a batch script, which is a single process.
    Only srun sets the id of a normal step.
    """
    step = env.get("SLURM_STEP_ID", "")
    return step.isdecimal() and int(step) < SLURM_SPECIAL_STEPS


def tasks_per_node(text: str) -> list[int]:
    """Return Slurm's list of tasks per node, such as [2, 2, 2, 1] for '2(x3),1'."""
    counts: list[int] = []
    for count, repeat in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        counts += [int(count)] * int(repeat or 1)
    return counts


def _int(env: Env, name: str) -> int | None:
    value = env.get(name, "").strip()
    if not value:
        return None
    if not re.fullmatch(r"-?\d+", value):
        raise BadInput(f"{name}={value!r} in the environment is not a whole number")
    return int(value)


def _port(env: Env) -> int | None:
    port = _int(env, "MASTER_PORT")
    if port is not None and not 0 < port < 65536:
        raise BadInput(f"MASTER_PORT={port} in the environment is not a port from 1 to 65535")
    return port
