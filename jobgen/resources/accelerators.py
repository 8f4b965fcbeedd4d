"""The kinds of accelerator that ranks compute on: one row each."""

from typing import NamedTuple


class Accelerator(NamedTuple):
    """A kind of device.

    ``template`` sets up its environment. ``gres`` is Slurm's option for ``{n}`` devices per node, ``select``
    the resource of PBS Pro and ``torque`` that of Torque; None if there is none. ``visible`` is the variable
    with which a scheduler and the deepspeed launcher list the devices that a process sees. ``runtime`` are
    the files of templates/runtime/ that it needs; ``runtime_in_container`` are those that it needs if the
    image provides its software.
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
    # PBS has no common name for them except naccelerators.
    "npu": Accelerator(
        "Ascend NPUs",
        "accelerator/npu.sh.j2",
        gres="--gres=npu:{n}",
        select="naccelerators={n}",
        visible="ASCEND_RT_VISIBLE_DEVICES",
        runtime=("cann", "hccl"),
        runtime_in_container=("hccl",),
    ),
    # Slurm limits AMD GPUs with ROCR_VISIBLE_DEVICES, which is below the numbers that a program sees.
    "rocm": Accelerator(
        "AMD GPUs",
        "accelerator/rocm.sh.j2",
        gres="--gpus-per-node={n}",
        select="ngpus={n}",
        torque="gpus={n}",
        runtime=("rocm",),
    ),
    # ZE_FLAT_DEVICE_HIERARCHY defines what a device is: a tile, unless the value is COMPOSITE.
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
