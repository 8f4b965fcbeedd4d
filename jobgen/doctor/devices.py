"""Checks of torch against CUDA, ROCm or CANN, and of the devices of this host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jobgen.doctor.verdict import NOTE, OK, PROBLEM, Case, Verdict

_WHEELS = "https://download.pytorch.org/whl/"


def torch(case: Case) -> Iterator[Verdict]:
    """Check torch, and whether it was built for the accelerator."""
    facts, backend = case.facts("torch"), case.plan.resources.accelerator.torch
    needed = case.plan.program.head is not None
    if not facts:
        if needed and case.facts("python"):
            remedy = "python3 -m pip install torch in the environment, or load the site's module"
            if "torch" in case.facts("python")["packages"]:
                remedy = "reinstall it, or load the module of the missing library"
            yield Verdict("torch", PROBLEM, f"cannot be imported: {case.results['torch'].last}", "", remedy)
        return
    built = (
        f"CUDA {facts['cuda']}" if facts["cuda"] else f"ROCm {facts['hip']}" if facts["hip"] else "CPUs alone"
    )
    found = f"{facts['version']}, for {built}"
    if backend and not facts[backend]:
        why = f"the job requests {case.plan.resources.accelerator.title}"
        remedy = f"install a build of torch for them: {_WHEELS}; or use --accelerator cpu"
        yield Verdict("torch", PROBLEM, found, why, remedy)
        return
    yield Verdict("torch", OK, found)
    if case.plan.resources.accelerator.nvcc:
        yield from _cuda(case, facts["cuda"], facts["archs"], facts["devices"], facts.get("warnings", []))
        if not facts["nccl"]:
            why = "the ranks of several devices communicate with it"
            remedy = f"install a build with it: {_WHEELS}"
            yield Verdict("NCCL", PROBLEM, "torch was built without it", why, remedy)


def _cuda(
    case: Case, cuda: str, archs: list[str], devices: list[list[object]], libraries: list[str]
) -> Iterator[Verdict]:
    driver = re.search(r"CUDA Version:\s*(\d+)\.(\d+)", case.text("nvidia_smi"))
    if not devices:
        if driver and int(driver[1]) < int(cuda.split(".")[0]):
            why = f"the driver has CUDA {driver[1]}.{driver[2]}, torch requires {cuda}: it finds no device"
            remedy = f"install torch for this driver: {_WHEELS}cu{driver[1]}{driver[2]}; or a newer driver"
            yield Verdict("GPUs", PROBLEM, "the NVIDIA driver is too old", why, remedy)
        else:
            yield nothing_here(case, "GPUs", libraries[0] if libraries else "torch finds none on this host")
        return
    found = f"{len(devices)}: {devices[0][0]}, compute capability {devices[0][1]}.{devices[0][2]}"
    yield Verdict("GPUs", OK, found)
    for major, minor in sorted({(int(str(one[1])), int(str(one[2]))) for one in devices}):
        if archs and not runs_on(archs, major, minor):
            why = "CUDA error: no kernel image is available for execution on the device"
            remedy = f"install a torch whose list has sm_{major}{minor}: {_WHEELS}"
            found = f"torch has {' '.join(archs)}, the device is sm_{major}{minor}"
            yield Verdict("kernels", PROBLEM, found, why, remedy)


def runs_on(archs: list[str], major: int, minor: int) -> bool:
    """Return whether a binary for these architectures runs on a device.

    sm_XY runs on devices with the same X and no smaller Y; PTX (compute_XY) runs on all later devices. The
    suffix a binds it to one device, f to its family.
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility
    """
    for arch in archs:
        if match := re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", arch):
            x, y = int(match[2]), int(match[3])
            later = (x, y) <= (major, minor) if match[1] == "compute" else x == major and y <= minor
            if (x, y) == (major, minor) if match[4] == "a" else x == major and later if match[4] else later:
                return True
    return False


def nothing_here(case: Case, check: str, found: str) -> Verdict:
    """Return the verdict on a host without devices: normal on a login node, a problem in a job."""
    if case.in_job:
        why = "jobgen doctor runs in a job, which should have devices"
        remedy = "request them with --gpus-per-node N, or ask the site's support"
        return Verdict(check, PROBLEM, found, why, remedy)
    why = "a login node often has none: run jobgen doctor on a compute node to check them"
    words = case.plan.scheduler.devices(case.plan.resources.accelerator) or ""
    remedy = case.plan.scheduler.help.interactive.format(one=words.format(n=1))
    return Verdict(check, NOTE, found, why, remedy)


def cann(case: Case) -> Iterator[Verdict]:
    """Check CANN, torch_npu and the NPUs."""
    if not case.plan.resources.accelerator.cann:
        return
    home = case.here.env.get("ASCEND_HOME_PATH")
    if not home or not Path(home).is_dir():
        found = (
            f"ASCEND_HOME_PATH is {home}, which is not a directory" if home else "ASCEND_HOME_PATH is not set"
        )
        remedy = "use --source /path/to/ascend-toolkit/set_env.sh, or load the site's module"
        yield Verdict("CANN", PROBLEM, found, "torch_npu and HCCL need its libraries", remedy)
    else:
        yield Verdict("CANN", OK, f"{_cann_version(Path(home)) or 'of unknown version'}, {home}")
    yield from _torch_npu(case)
    yield from _npus(case)


def _cann_version(home: Path) -> str | None:
    for path in (
        *home.glob("*/ascend_toolkit_install.info"),
        *home.glob("ascend_toolkit_install.info"),
        home / "version.cfg",
    ):
        try:
            match = re.search(r"version=\[?([\w.:]+)", path.read_text(errors="replace"), re.IGNORECASE)
        except OSError:
            continue
        if match:
            return match[1].split(":")[-1]
    return None


def _torch_npu(case: Case) -> Iterator[Verdict]:
    """Check torch_npu: X.Y.Z.postN requires torch X.Y.Z (https://gitcode.com/Ascend/pytorch)."""
    packages = case.facts("python").get("packages", {})
    mine, torch = packages.get("torch_npu"), packages.get("torch", "")
    if not mine:
        remedy = (
            f"python3 -m pip install 'torch_npu=={release(torch)}' in the environment"
            if torch
            else "pip install torch_npu"
        )
        yield Verdict("torch_npu", PROBLEM, "is not installed", "torch needs it for NPUs", remedy)
    elif release(mine) != release(torch):
        why = "each release is built for one release of torch, and may fail with others"
        remedy = (
            f"python3 -m pip install 'torch=={release(mine)}', or the torch_npu of torch {release(torch)}"
        )
        yield Verdict("torch_npu", PROBLEM, f"{mine} with torch {torch}", why, remedy)
    elif not case.facts("torch_npu"):
        remedy = "source the set_env.sh of the CANN release that torch_npu's README requires"
        found = f"cannot be imported: {case.results['torch_npu'].last}"
        yield Verdict("torch_npu", PROBLEM, found, "", remedy)
    else:
        yield Verdict("torch_npu", OK, mine)


def release(version: str) -> str:
    """Return ``2.6.0`` for ``2.6.0.post3``, ``2.6.0rc1`` and ``2.6.0+cpu``."""
    match = re.match(r"\d+\.\d+\.\d+", version)
    return match[0] if match else version


def _npus(case: Case) -> Iterator[Verdict]:
    rows = re.findall(
        r"^\|\s*\d+\s+(\d{3}\w*|Ascend\w*)\s*\|\s*(\w+)\s*\|", case.text("npu_smi"), re.MULTILINE
    )
    sick = [health for _, health in rows if health not in ("OK", "NA")]
    if not rows:
        yield nothing_here(case, "NPUs", "npu-smi shows none on this host")
    elif sick:
        remedy = "exclude this node (--exclude-hosts), and tell the site's support"
        yield Verdict("NPUs", PROBLEM, f"{len(sick)} of {len(rows)} are not healthy: {sick[0]}", "", remedy)
    else:
        yield Verdict("NPUs", OK, f"{len(rows)}: {rows[0][0]}")
