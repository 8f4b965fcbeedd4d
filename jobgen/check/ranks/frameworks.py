"""The frameworks of training, and what a rank needs for each. docs/check.md shows the table."""

from __future__ import annotations

from typing import NamedTuple

TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_DEVICE = "the LOCAL_RANK of the node"


class Framework(NamedTuple):
    """A framework: the modules that a program imports for it, and what its ranks read.

    ``variables`` are those without which a rank of several fails or trains alone. ``reads_slurm`` and
    ``reads_mpi``: it takes them from Slurm's or the MPI's variables instead. ``options`` begin options of
    programs that show it. ``alone`` is what a program does that gets nothing of this.
    """

    title: str
    modules: tuple[str, ...]
    variables: tuple[str, ...]
    device: str
    alone: str
    reads_slurm: bool = False
    reads_mpi: bool = False
    options: tuple[str, ...] = ()


# https://pytorch.org/docs/stable/distributed.html, deepspeed/comm/comm.py, accelerate/state.py,
# lightning/fabric/plugins/environments/slurm.py, horovod/common/basics.py
FRAMEWORKS = {
    "torch": Framework(
        "torch.distributed",
        ("torch.distributed",),
        TORCH,
        "the number that the program chooses, usually LOCAL_RANK",
        "init_process_group fails",
    ),
    "deepspeed": Framework(
        "DeepSpeed",
        ("deepspeed",),
        (*TORCH, "LOCAL_RANK"),
        _DEVICE,
        "init_distributed queries mpi4py",
        reads_mpi=True,
        options=("--deepspeed_config", "--deepspeed-config"),
    ),
    "accelerate": Framework(
        "accelerate", ("accelerate",), (*TORCH, "LOCAL_RANK"), _DEVICE, "each process trains alone"
    ),
    "lightning": Framework(
        "Lightning",
        ("lightning", "pytorch_lightning"),
        (),
        "the local rank, which must be one of its devices",
        "with several tasks in the job it waits for the others",
        reads_slurm=True,
        options=("trainer.devices=", "trainer.num_nodes=", "--trainer.devices", "--trainer.num_nodes"),
    ),
    "transformers": Framework(
        "transformers",
        ("transformers",),
        (*TORCH, "LOCAL_RANK"),
        _DEVICE,
        "each process trains alone, with DataParallel on all devices that it sees",
    ),
    "horovod": Framework(
        "Horovod", ("horovod",), (), "hvd.local_rank()", "each process trains alone", reads_mpi=True
    ),
}


def table() -> list[str]:
    """Return the table of the frameworks in Markdown."""
    lines = ["| Framework | Variables of each rank | Device | Without them |", "|---|---|---|---|"]
    for row in FRAMEWORKS.values():
        own = [f"`{name}`" for name in row.variables]
        readers = {"Slurm's": row.reads_slurm, "the MPI's": row.reads_mpi}
        others = [f"{whose} variables" for whose, reads in readers.items() if reads]
        values = " or ".join(filter(None, (", ".join(own), *others)))
        lines.append(f"| {row.title} | {values} | {row.device} | {row.alone} |")
    return lines
