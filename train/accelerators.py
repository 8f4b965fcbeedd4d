"""The kinds of device that ranks compute on: one row each. Does not import torch at the start."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from jobgen.topology.tools import AMD, ASCEND, NVIDIA, Tool

from . import npu

Versions = dict[str, str | None]


@dataclass(frozen=True)
class Accelerator:
    """A kind of device.

    type: torch's and DeepSpeed's name of the device; backend: its collective library
    visible: variable that selects the devices which a process sees; the process numbers these from 0
    interface: variable that names the network interfaces of the collective library, if there is one
    build: field of torch.version that a build of torch for it sets, if a special build is required
    package: package that adds the device to torch; load: import it
    driver: file of the driver's version, and the pattern of the version in it
    profiler: the activity of torch's profiler that records it; '' if there is none
    uuid: torch provides unique ids of the devices
    compiler: what torch.compile needs: "cc", "c++" (compilers of the host) or Python packages; None: no way
    matmul: torch's precision of fp32 matrix products, one of highest, high (TF32) and medium (bf16)
    channels_last: convolutions in half precision or TF32 are faster with this memory format
    benchmark: torch can measure the algorithms of convolutions (cuDNN, MIOpen)
    streams: copies and computation run at the same time in streams of torch
    torch_fused: torch has fused kernels of its optimizers; fused: the default, see config/speed.py
    sync_batchnorm: torch's SyncBatchNorm works
    deepspeed_kernels: DeepSpeed has ZenFlow, and kernels of the optimizers lamb and lion
    hybrid_adam: ColossalAI's HybridAdam can compile its kernel
    flash: the package flash_attn has kernels
    check_environment: raise BadInput if the environment variables cannot work
    versions: return the versions of its software, besides the driver
    topology: the command that shows which processors are next to a device
    peaks: TFLOP/s of dense products in bf16 by words of the device's name, the more specific first
    """

    type: str
    backend: str
    visible: str = ""
    interface: str = ""
    build: str = ""
    package: str = ""
    load: Callable[[], None] = lambda: None
    driver: tuple[Path, str] | None = None
    profiler: str = ""
    uuid: bool = False
    compiler: tuple[str, ...] | None = ("triton", "cc")
    matmul: str = "highest"
    channels_last: bool = False
    benchmark: bool = False
    streams: bool = False
    torch_fused: bool = True
    fused: str = "none"
    sync_batchnorm: bool = True
    deepspeed_kernels: bool = False
    hybrid_adam: bool = False
    flash: bool = False
    check_environment: Callable[[Mapping[str, str]], None] = lambda env: None
    versions: Callable[[Mapping[str, str]], Versions] = lambda env: {}
    topology: Tool | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)

    @property
    def compiles(self) -> bool:
        """True if DeepSpeed may compile its functions by itself. On a CPU, this takes a minute."""
        return self.compiler is not None and "c++" not in self.compiler


def find_version(files: Iterable[Path], pattern: str) -> str | None:
    """Return the first group of the pattern in the first file that has it, or None."""
    for file in files:
        try:
            match = re.search(pattern, file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if match:
            return match[1]
    return None


def _cann(env: Mapping[str, str]) -> Versions:
    home = Path(env.get("ASCEND_HOME_PATH", "/nowhere"))
    files = [home / name for name in ("runtime/version.info", "compiler/version.info", "version.cfg")]
    return {"CANN": find_version(files, r"(?im)^(?:version|runtime_running_version)=\W*([\w.]+)")}


def _nccl(env: Mapping[str, str]) -> Versions:
    import torch

    number = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    return {"toolkit": torch.version.cuda or torch.version.hip, "NCCL": ".".join(map(str, number))}


# From the data sheets of the makers, without sparsity. V100 has fp16 only; MI250X is one of its two dies.
_NVIDIA_PEAKS = {
    **{"GB200": 2500.0, "B200": 2250.0, "GH200": 989.0, "H200": 989.0, "H100 PCIe": 756.0, "H100 NVL": 835.0},
    **{"H100": 989.0, "A100": 312.0, "A40": 150.0, "A30": 165.0, "L40S": 362.0, "L4": 121.0, "V100": 125.0},
}
_AMD_PEAKS = {"MI355X": 2516.0, "MI325X": 1307.0, "MI300X": 1307.0, "MI300A": 981.0, "MI250X": 191.5}

_CUDA = Accelerator(
    "cuda",
    "nccl",
    visible="CUDA_VISIBLE_DEVICES",
    interface="NCCL_SOCKET_IFNAME",
    build="cuda",
    driver=(Path("/sys/module/nvidia/version"), r"(\S+)"),
    profiler="CUDA",
    uuid=True,
    matmul="high",
    channels_last=True,
    benchmark=True,
    streams=True,
    fused="torch",
    deepspeed_kernels=True,
    hybrid_adam=True,
    flash=True,
    versions=_nccl,
    topology=NVIDIA,
    peaks=_NVIDIA_PEAKS,
)
# By the value of JOBGEN_ACCELERATOR, the best first.
ACCELERATORS = {
    "npu": Accelerator(
        "npu",
        "hccl",
        visible=npu.VISIBLE,
        interface="HCCL_SOCKET_IFNAME",
        package="torch_npu",
        load=npu.load,
        driver=(Path("/usr/local/Ascend/driver/version.info"), r"Version=(\S+)"),
        compiler=None,
        torch_fused=False,
        check_environment=npu.check_environment,
        versions=_cann,
        topology=ASCEND,
    ),
    "rocm": replace(
        _CUDA,
        visible="ROCR_VISIBLE_DEVICES",
        build="hip",
        driver=(Path("/sys/module/amdgpu/version"), r"(\S+)"),
        matmul="highest",  # most AMD GPUs have no TF32
        deepspeed_kernels=False,
        flash=False,
        topology=AMD,
        peaks=_AMD_PEAKS,
    ),
    "cuda": _CUDA,
    "xpu": Accelerator("xpu", "xccl", visible="ZE_AFFINITY_MASK", fused="torch"),
    "cpu": Accelerator(
        "cpu", "gloo", interface="GLOO_SOCKET_IFNAME", profiler="CPU", compiler=("c++",), sync_batchnorm=False
    ),
}
