"""What the ranks compute on: one row each."""

from typing import NamedTuple


class Accelerator(NamedTuple):
    """A kind of device.

    ``template`` brings its environment up; ``gres`` is how Slurm is asked for ``{n}`` of them a
    node, ``select`` how PBS Pro is and ``torque`` how Torque is; None where that cannot be said.
    ``visible`` names the variable by which a scheduler, and the deepspeed launcher, say which devices
    a process sees. ``runtime`` are the files of templates/runtime/ that it needs, ``runtime_in_container``
    those where the image brings its software.
    """

    title: str
    template: str
    gres: str | None = None
    select: str | None = None
    torque: str | None = None
    visible: str | None = None
    runtime: tuple[str, ...] = ()
    runtime_in_container: tuple[str, ...] = ()


ACCELERATORS = {
    "cuda": Accelerator(
        "NVIDIA GPUs",
        "accelerator/cuda.sh.j2",
        gres="--gpus-per-node={n}",
        select="ngpus={n}",
        torque="gpus={n}",
        visible="CUDA_VISIBLE_DEVICES",
        runtime=("cuda",),
    ),
    # Slurm has no option for NPUs: they are a generic resource that the site calls npu.
    # PBS has no common name but its own naccelerators.
    "npu": Accelerator(
        "Ascend NPUs",
        "accelerator/npu.sh.j2",
        gres="--gres=npu:{n}",
        select="naccelerators={n}",
        visible="ASCEND_RT_VISIBLE_DEVICES",
        runtime=("cann", "hccl"),
        runtime_in_container=("hccl",),
    ),
    # Slurm limits AMD GPUs by ROCR_VISIBLE_DEVICES, below the numbers that a program sees.
    "rocm": Accelerator(
        "AMD GPUs",
        "accelerator/rocm.sh.j2",
        gres="--gpus-per-node={n}",
        select="ngpus={n}",
        torque="gpus={n}",
        runtime=("rocm",),
    ),
    # A device is what ZE_FLAT_DEVICE_HIERARCHY makes one: a tile, unless it is COMPOSITE.
    "xpu": Accelerator(
        "Intel GPUs",
        "accelerator/xpu.sh.j2",
        gres="--gpus-per-node={n}",
        select="ngpus={n}",
        torque="gpus={n}",
        visible="ZE_AFFINITY_MASK",
    ),
    "cpu": Accelerator("CPUs", "accelerator/cpu.sh.j2"),
}
