"""The kinds of accelerator that ranks compute on: one row each."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobgen.topology.tools import AMD, ASCEND, NVIDIA, Tool


class Accelerator(NamedTuple):
    """A kind of device.

    ``template`` sets up its environment. ``gres`` is Slurm's option for ``{n}`` devices per node, ``select``
    the resource of PBS Pro and ``torque`` that of Torque; None if there is none. ``visible`` is the variable
    with which a scheduler and the deepspeed launcher list the devices that a process sees. ``runtime`` are
    the files of templates/runtime/ that it needs; ``runtime_in_container`` are those that it needs if the
    image provides its software. ``containers`` are the options for it of each container runtime that
    supports it. ``network`` are the variables of its communication library for --interface: some take
    ``{names}`` as they are, some ``{exact}`` names, others only the ``{first}`` one. ``marks`` are words that
    show it in a script. ``torch`` is the field of torch.version that a build of torch for it has. ``ops`` are
    the DeepSpeed ops that most programs use, compiled with nvcc if ``nvcc`` is true, and ``deepspeed`` is
    DeepSpeed's name of it, if that is another one. ``topology`` is the command that shows which processors
    are next to a device. ``types`` is the pattern of the types that sites give such devices. ``telemetry`` is
    the tool that measures the use of the devices, as the name of its file in templates/runtime/node/.
    ``renumbered`` is the variable for some of the devices if the scheduler's variable numbers them anew.
    """

    title: str
    template: str
    gres: str | None = None
    select: str | None = None
    torque: str | None = None
    visible: str | None = None
    runtime: tuple[str, ...] = ()
    runtime_in_container: tuple[str, ...] = ()
    containers: Mapping[str, str] = MappingProxyType({})
    network: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    torch: str | None = None
    ops: tuple[str, ...] = ("cpu_adam",)
    nvcc: bool = False
    deepspeed: str = ""
    topology: Tool | None = None
    types: str | None = None
    telemetry: str | None = None
    renumbered: str | None = None

    @property
    def part_variable(self) -> str | None:
        """Return the variable that shows a program some of the devices of its job."""
        return self.renumbered or self.visible

    @property
    def cann(self) -> bool:
        """Return whether its software is CANN."""
        return "cann" in self.runtime

    @property
    def network_but(self) -> tuple[str, ...]:
        """Return the variables that also take names of interfaces to exclude, ``^lo,docker``."""
        return tuple(one for one in self.network if "{first}" not in one)


# https://apptainer.org/docs/user/latest/cli/apptainer_exec.html
# https://docs.docker.com/reference/cli/docker/container/run/
# https://docs.podman.io/en/latest/markdown/podman-run.1.html
# https://github.com/NVIDIA/enroot/blob/master/doc/cmd/start.md
_ROCM_DEVICES = "--device=/dev/kfd --device=/dev/dri --group-add="
_XPU_DEVICES = "--device=/dev/dri"
_NO_OPTIONS = {"apptainer": "", "singularity": "", "docker": "", "podman": ""}

ACCELERATORS = {
    "cuda": Accelerator(
        "NVIDIA GPUs",
        "accelerator/cuda.sh.j2",
        gres="--gpus-per-node={n}",
        select="ngpus={n}",
        torque="gpus={n}",
        visible="CUDA_VISIBLE_DEVICES",
        runtime=("cuda",),
        containers={
            "apptainer": "--nv",
            "singularity": "--nv",
            "docker": "--gpus all",
            "podman": "--device nvidia.com/gpu=all",
            "enroot": "--env NVIDIA_VISIBLE_DEVICES=all --env NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            "pyxis": "",
            "edf": "",
            "shifter": "--module=gpu",
        },
        # https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
        network=("NCCL_SOCKET_IFNAME={names}",),
        torch="cuda",
        ops=("fused_adam", "cpu_adam", "fused_lamb"),
        nvcc=True,
        topology=NVIDIA,
        telemetry="nvidia_smi",
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
        containers={**_NO_OPTIONS, "enroot": ""},
        # https://www.hiascend.com/document/detail/en/canncommercial/800/apiref/envvar/envref_07_0075.html
        network=("HCCL_SOCKET_IFNAME={exact}",),
        topology=ASCEND,
        telemetry="npu_smi",
    ),
    # Slurm limits AMD GPUs with ROCR_VISIBLE_DEVICES: a program numbers the devices that are left from 0.
    "rocm": Accelerator(
        "AMD GPUs",
        "accelerator/rocm.sh.j2",
        gres="--gpus-per-node={n}",
        select="ngpus={n}",
        torque="gpus={n}",
        runtime=("rocm",),
        runtime_in_container=("rocm",),
        containers={
            "apptainer": "--rocm",
            "singularity": "--rocm",
            "docker": _ROCM_DEVICES + "video",
            "podman": _ROCM_DEVICES + "keep-groups",
            "enroot": "",
            "pyxis": "",
            "edf": "",
        },
        network=("NCCL_SOCKET_IFNAME={names}",),
        marks=("rocm", "rocr", "hipcc", "rocfft", "rccl"),
        torch="hip",
        ops=("fused_adam", "cpu_adam", "fused_lamb"),
        deepspeed="cuda",
        renumbered="HIP_VISIBLE_DEVICES",
        topology=AMD,
        telemetry="rocm_smi",
        types=r"mi\d{2,3}|instinct|radeon",
    ),
    # ZE_FLAT_DEVICE_HIERARCHY defines what a device is: a tile, unless the value is COMPOSITE.
    "xpu": Accelerator(
        "Intel GPUs",
        "accelerator/xpu.sh.j2",
        gres="--gpus-per-node={n}",
        select="ngpus={n}",
        torque="gpus={n}",
        visible="ZE_AFFINITY_MASK",
        # Its devices are in /dev, which Apptainer mounts as it is.
        containers={"apptainer": "", "singularity": "", "docker": _XPU_DEVICES, "podman": _XPU_DEVICES},
        # oneCCL: https://github.com/uxlfoundation/oneCCL; fi_tcp(7), by which it sends over TCP.
        network=("CCL_KVS_IFACE={first}", "FI_TCP_IFACE={first}"),
        ops=("fused_adam", "cpu_adam"),
        types=r"pvc|max_?1[15]\d\d|ponte",
    ),
    "cpu": Accelerator(
        "CPUs",
        "accelerator/cpu.sh.j2",
        containers={**_NO_OPTIONS, "enroot": "", "pyxis": "", "edf": "", "shifter": ""},
        ops=("cpu_adam", "fused_adam", "deepspeed_shm_comm"),
    ),
}
# The generic resources of Slurm that identify an accelerator; gpu does not.
GENERIC_RESOURCES = {
    match[1]: name
    for name, row in ACCELERATORS.items()
    if (match := re.match(r"--gres=(\w+):", row.gres or ""))
}


def of_devices(resource: str, types: Iterable[str]) -> str:
    """Return the accelerator of devices by the name of their resource and by their types."""
    names = " ".join(types).lower()
    by_type = (name for name, row in ACCELERATORS.items() if row.types and re.search(row.types, names))
    return GENERIC_RESOURCES.get(resource) or next(by_type, "cuda")
