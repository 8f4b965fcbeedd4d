"""Part environment: what the figures were measured with."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
from collections.abc import Iterator

import torch

from benchmarks.gpu.rows import Row


def rows(name: str, device: str, tiny: bool) -> Iterator[Row]:
    yield Row(name, "Python, torch", f"{platform.python_version()}, {torch.__version__}")
    if device != "cpu":
        about = torch.cuda.get_device_properties(0)
        yield Row(name, "device", f"{about.name}, {about.total_memory / 2**30:.0f} GiB")
        yield Row(name, "CUDA or ROCm, cuDNN", f"{torch.version.cuda or torch.version.hip}, {cudnn()}")
    for package in ("deepspeed", "triton", "numpy"):
        yield Row(name, package, version(package))
    found = [tool for tool in ("cc", "g++", "nvcc", "ninja") if shutil.which(tool)]
    yield Row(name, "compilers", ", ".join(found) or "none")
    yield Row(name, "cores of the host", float(os.cpu_count() or 1))


def cudnn() -> str:
    return str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]


def version(package: str) -> str:
    """Return the version of a package, or the reason why it cannot be imported."""
    try:
        return str(getattr(importlib.import_module(package), "__version__", "?"))
    except Exception as error:  # a package may fail in any way on a machine that it was not made for
        return f"cannot be imported: {type(error).__name__}: {error}".partition("\n")[0]
