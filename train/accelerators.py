"""The kinds of device that ranks compute on: one row each. Does not import torch at the start."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from . import npu

Versions = dict[str, str | None]


@dataclass(frozen=True)
class Accelerator:
    """A kind of device.

    type: torch's and DeepSpeed's name of the device; backend: its collective library
    visible: variable that selects the devices which a process sees; the process numbers these from 0
    interface: variable that names the network interfaces of the collective library, if there is one
    built: field of torch.version that a build of torch for it sets, if a special build is required
    package: package that adds the device to torch; load: import it
    driver: file of the driver's version, and the pattern of the version in it
    profiler: the activity of torch's profiler that records it; '' if there is none
    uuid: torch provides unique ids of the devices
    compiles: torch.compile works without a compiler on the host
    deepspeed_kernels: DeepSpeed has ZenFlow, and kernels of the optimizers lamb and lion
    hybrid_adam: ColossalAI's HybridAdam can compile its kernel
    check_environment: raise BadInput if the environment variables cannot work
    versions: return the versions of its software, besides the driver
    """

    type: str
    backend: str
    visible: str = ""
    interface: str = ""
    built: str = ""
    package: str = ""
    load: Callable[[], None] = lambda: None
    driver: tuple[Path, str] | None = None
    profiler: str = ""
    uuid: bool = False
    compiles: bool = True
    deepspeed_kernels: bool = False
    hybrid_adam: bool = False
    check_environment: Callable[[Mapping[str, str]], None] = lambda env: None
    versions: Callable[[Mapping[str, str]], Versions] = lambda env: {}


def find_version(files: Iterable[Path], pattern: str) -> str | None:
    """Return the first group of the pattern in the first file that has it, or None."""
    for file in files:
        try:
            found = re.search(pattern, file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if found:
            return found[1]
    return None


def _cann(env: Mapping[str, str]) -> Versions:
    home = Path(env.get("ASCEND_HOME_PATH", "/nowhere"))
    files = [home / name for name in ("runtime/version.info", "compiler/version.info", "version.cfg")]
    return {"CANN": find_version(files, r"(?im)^(?:version|runtime_running_version)=\W*([\w.]+)")}


def _nccl(env: Mapping[str, str]) -> Versions:
    import torch

    number = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    return {"toolkit": torch.version.cuda or torch.version.hip, "NCCL": ".".join(map(str, number))}


_CUDA = Accelerator(
    "cuda",
    "nccl",
    visible="CUDA_VISIBLE_DEVICES",
    interface="NCCL_SOCKET_IFNAME",
    built="cuda",
    driver=(Path("/sys/module/nvidia/version"), r"(\S+)"),
    profiler="CUDA",
    uuid=True,
    deepspeed_kernels=True,
    hybrid_adam=True,
    versions=_nccl,
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
        compiles=False,  # torch has no compiler for NPUs
        check_environment=npu.check_environment,
        versions=_cann,
    ),
    "rocm": replace(
        _CUDA,
        visible="ROCR_VISIBLE_DEVICES",
        built="hip",
        driver=(Path("/sys/module/amdgpu/version"), r"(\S+)"),
        deepspeed_kernels=False,
    ),
    "cuda": _CUDA,
    "xpu": Accelerator("xpu", "xccl", visible="ZE_AFFINITY_MASK"),
    # torch.compile needs a C++ compiler for it, which may be missing.
    "cpu": Accelerator("cpu", "gloo", interface="GLOO_SOCKET_IFNAME", profiler="CPU", compiles=False),
}
