"""Checks of the tools that compile DeepSpeed's ops at first use, and of the directory for the ops."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from jobgen.doctor.devices import runs_on
from jobgen.doctor.verdict import DEEPSPEED, NOTE, OK, PROBLEM, WARNING, Case, Verdict

# https://github.com/pytorch/pytorch#from-source: torch's headers require its C++17 since 2.1.
_LEAST_GCC = (9, 0)
# Major releases of CUDA within which DeepSpeed accepts different minor releases.
_SAME_MAJOR = (10, 11, 12)
_SHARED = re.compile(r"nfs4?|lustre|gpfs|beegfs|(fuse\.)?ceph|wekafs|panfs|pvfs2|afs|smb3|cifs")
_OLD_LOCK = 600  # s; the slowest op takes two or three minutes


def ops(case: Case) -> Iterator[Verdict]:
    """Check DeepSpeed's ops: which are installed, and whether the job can compile the others."""
    if DEEPSPEED not in case.facts("python").get("packages", {}):
        return
    table = report(case.text("ds_report"))
    if not table:
        remedy = "python3 -m deepspeed.env_report prints the whole report"
        found = case.results["ds_report"].last
        yield Verdict("ds_report", PROBLEM if case.wants_deepspeed else WARNING, found, "", remedy)
    else:
        built = [name for name, (installed, _) in table.items() if installed]
        cannot = [name for name, (installed, compatible) in table.items() if not (installed or compatible)]
        found = f"installed: {', '.join(built) or 'none'}" + (
            f"; cannot be compiled: {', '.join(cannot)}" if cannot else ""
        )
        why = "the others are compiled at first use: a minute or two each, on every node"
        remedy = "" if built else "jobgen doctor --recipe prints how to build them before"
        yield Verdict("ds_report", OK if built else NOTE, found, why, remedy)
    yield from _compiler(case)
    yield from _nvcc(case)
    yield from _cache(case)
    yield from _arch_list(case)


def report(text: str) -> dict[str, tuple[bool, bool]]:
    """Return the table of ds_report: for each op, whether it is installed and whether it can be compiled."""
    plain = re.sub(r"\x1b\[\d*m", "", text)
    rows = re.findall(r"^(\w+)\s*\.*\s*\[(YES|NO)\][ .]+\[(OKAY|NO)\]", plain, re.MULTILINE)
    return {
        name: (installed == "YES", able == "OKAY")
        for name, installed, able in rows
        if name != "deepspeed_not_implemented"
    }


def _compiler(case: Case) -> Iterator[Verdict]:
    text, answer = case.text("compiler"), case.results["compiler"]
    why = "DeepSpeed compiles its ops in the job, unless they are built before"
    remedy = "load a module of gcc 9 or later, or set CXX; or build the ops before: jobgen doctor --recipe"
    version = re.search(r"^(\d+)(?:\.(\d+))?", text.strip())
    name = case.here.env.get("CXX", "") or "g++"
    bounds = case.facts("torch").get("gcc", {}) if case.plan.resources.accelerator.nvcc else {}
    most = bounds.get(nvcc_version(case.text("nvcc")) or "")
    if not version:
        yield Verdict("compiler", WARNING, answer.last, why, remedy)
    elif "clang" not in name and (int(version[1]), int(version[2] or 0)) < _LEAST_GCC:
        reason = f"torch's headers need gcc 9 or later; {why}"
        yield Verdict("compiler", WARNING, f"{name} {text.strip()}", reason, remedy)
    elif "clang" not in name and most and int(version[1]) >= most:
        found = f"{name} {version[0]} is newer than nvcc supports (below {most})"
        yield Verdict("compiler", WARNING, found, why, f"load gcc {most - 1}, or set CXX and CC to it")
    else:
        yield Verdict("compiler", OK, f"{name} {text.strip().splitlines()[0]}")
    if not case.text("ninja"):
        remedy = "python3 -m pip install ninja, and activate the environment, so that it is on PATH"
        yield Verdict("ninja", WARNING, "is not on PATH", why, remedy)
    if case.facts("python").get("header") is False:
        yield Verdict("Python.h", WARNING, "is missing", why, "install python3-dev, or use conda's Python")


def nvcc_version(text: str) -> str | None:
    """Return ``12.4`` from the output of ``nvcc --version``."""
    match = re.search(r"release (\d+\.\d+)", text)
    return match[1] if match else None


def _nvcc(case: Case) -> Iterator[Verdict]:
    cuda, mine = case.facts("torch").get("cuda"), nvcc_version(case.text("nvcc"))
    if not case.plan.resources.accelerator.nvcc or not cuda:
        return
    why = "DeepSpeed compiles its ops with it, unless they are built before"
    home = case.facts("torch").get("cuda_home") or case.here.env.get("CUDA_HOME")
    theirs = ".".join(cuda.split(".")[:2])
    if mine is None:
        remedy = f"load the module of CUDA {theirs}; torch has its libraries, but no compiler"
        yield Verdict("nvcc", WARNING, "is not on PATH", why, remedy)
    elif mine != theirs and not (
        mine.split(".")[0] == theirs.split(".")[0] and int(mine.split(".")[0]) in _SAME_MAJOR
    ):
        skip = case.here.env.get("DS_SKIP_CUDA_CHECK") == "1"
        found = f"CUDA {mine}, but torch is for {cuda}" + ("; DS_SKIP_CUDA_CHECK=1" if skip else "")
        remedy = (
            f"load the module of CUDA {theirs}, or install torch for CUDA {mine}; DS_SKIP_CUDA_CHECK=1 tries"
        )
        reason = why if skip else "the compilation of ops fails: CUDAMismatchException"
        yield Verdict("nvcc", WARNING, found, reason, remedy)
    else:
        yield Verdict("nvcc", OK, f"CUDA {mine}, torch's is {cuda}")
    if home and not (Path(home) / "include/cuda_runtime.h").is_file() and mine:
        remedy = f"set CUDA_HOME to the toolkit of {case.here.which('nvcc')}"
        yield Verdict("CUDA_HOME", WARNING, f"{home} has no include/cuda_runtime.h", why, remedy)


def _cache(case: Case) -> Iterator[Verdict]:
    """Check the directory of ops that the job compiles, and locks of compilations that were killed."""
    text = case.here.env.get("TORCH_EXTENSIONS_DIR")
    home = case.here.env.get("HOME", "~")
    place = Path(text or f"{case.here.env.get('XDG_CACHE_HOME') or home + '/.cache'}/torch_extensions")
    shared = _SHARED.fullmatch(file_system(place, Path("/proc/mounts")) or "")
    local = (
        "--env TORCH_EXTENSIONS_DIR=DIR, yours on a disk of the node; or build them: jobgen doctor --recipe"
    )
    above = nearest_directory(place)
    if not above.is_dir() or not os.access(above, os.W_OK):
        why = "the ops are compiled in it"
        yield Verdict("TORCH_EXTENSIONS_DIR", PROBLEM, f"{place} cannot be written", why, local)
    elif shared and case.plan.resources.nodes > 1:
        why = "all nodes compile there under one lock, and the ops of one may not run on another"
        found = f"{place} is on a file system that nodes share"
        yield Verdict("TORCH_EXTENSIONS_DIR", WARNING, found, why, local)
    elif not text:
        why = "all your environments share it, and ops compiled for one torch fail in another"
        yield Verdict("TORCH_EXTENSIONS_DIR", NOTE, f"is not set: {place}", why, local)
    else:
        yield Verdict("TORCH_EXTENSIONS_DIR", OK, str(place))
    for lock in sorted((*place.glob("*/lock"), *place.glob("*/*/lock"))):
        if time.time() - lock.stat().st_mtime > _OLD_LOCK:
            why = "left by a compilation that was killed: every later job waits for it forever"
            yield Verdict("TORCH_EXTENSIONS_DIR", PROBLEM, f"{lock} is old", why, f"rm {lock}")


def nearest_directory(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    return next(one for one in (path, *path.absolute().parents) if one.exists())


def file_system(path: Path, mounts: Path) -> str | None:
    """Return the type of the file system that a path is on, or would be on."""
    try:
        rows = [line.split(" ") for line in mounts.read_text().splitlines()]
    except OSError:
        return None
    real = os.path.realpath(path)
    under = [(row[1], row[2]) for row in rows if real == row[1] or real.startswith(row[1].rstrip("/") + "/")]
    return max(under, key=lambda one: len(one[0]))[1] if under else None


def _arch_list(case: Case) -> Iterator[Verdict]:
    text = case.here.env.get("TORCH_CUDA_ARCH_LIST")
    if not case.plan.resources.accelerator.nvcc:
        return
    if text is None:
        yield Verdict("TORCH_CUDA_ARCH_LIST", OK, "is not set: ops are compiled for the devices of the host")
        return
    entries = [word for word in re.split(r"[;\s]+", text.strip()) if word]
    if wrong := [one for one in entries if not re.fullmatch(r"\d+\.\d+(\+PTX)?", one)]:
        found = f"DeepSpeed cannot read {wrong[0]}"  # compute_capability_args in op_builder/builder.py
        remedy = "write numbers with a point, such as 8.0;9.0+PTX"
        yield Verdict("TORCH_CUDA_ARCH_LIST", WARNING, found, "it cannot compile its ops then", remedy)
        return
    archs = [arch for one in entries for arch in _archs(one)]
    devices = {(int(one[1]), int(one[2])) for one in case.facts("torch").get("devices", [])}
    if lacking := [one for one in sorted(devices) if archs and not runs_on(archs, *one)]:
        found = f"{text} does not include {lacking[0][0]}.{lacking[0][1]} of this device"
        why = "compiled ops fail: no kernel image is available"
        remedy = f"add {lacking[0][0]}.{lacking[0][1]}, or unset it in the job"
        yield Verdict("TORCH_CUDA_ARCH_LIST", PROBLEM, found, why, remedy)
    else:
        yield Verdict("TORCH_CUDA_ARCH_LIST", OK, text)


def _archs(entry: str) -> list[str]:
    name = entry.removesuffix("+PTX").replace(".", "")
    return [f"sm_{name}", *([f"compute_{name}"] if entry.endswith("+PTX") else [])]
