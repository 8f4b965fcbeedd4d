"""Real runs of python -m jobgen.train, as a user starts them, and small data files for them."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import warm, warm_python
from support.finished import FOREIGN, Finished
from support.require import need_command, need_package, on_ci

if TYPE_CHECKING:
    import numpy as np

PYTHON = sys.executable


def module_needs(*names: str) -> None:
    """Skip the module that says so where a package is absent; on CI its import is left to fail."""
    for name in names:
        if importlib.util.find_spec(name) is None and not on_ci():
            pytest.skip(f"the Python package {name} is not installed", allow_module_level=True)


def clean_environment() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "JOBGEN_ACCELERATOR": "cpu"}
    env["OMP_NUM_THREADS"] = "1"  # other tests run beside this one
    env["PATH"] = warm_python.path(env.get("PATH", ""))
    return env


def launcher_command(name: str, ranks: int) -> list[str]:
    """The words before the options of jobgen.train; the test is skipped where a part is missing."""
    need_package("torch", "deepspeed", "numpy", "sklearn")
    python = [warm_python.command("python"), "-m", "jobgen.train"]
    if name == "one":
        return python
    if name == "mpirun":
        need_package("mpi4py")
        return [need_command("mpirun"), "--oversubscribe", "-np", str(ranks), *python]
    if name == "torchrun":
        rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
        count = ["--nproc-per-node", str(ranks)]
        return [warm_python.command("torchrun"), *rendezvous, *count, "-m", "jobgen.train"]
    if name == "deepspeed":
        from jobgen.train.addresses import free_port

        count = ["--num_accelerators", str(ranks), "--master_port", str(free_port())]
        return [warm_python.command("deepspeed"), *count, "--module", "jobgen.train"]
    raise ValueError(name)


def start(
    directory: Path,
    launcher: str,
    options: Sequence[str],
    ranks: int = 2,
    env: dict[str, str] | None = None,
    like: int | None = None,
) -> Finished:
    """Train with that launcher, or as "warm" with ranks that need not import torch: what is tested is not the start."""
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(directory / "run"), **(env or {})}
    directory.mkdir(parents=True, exist_ok=True)
    if launcher == "warm":
        need_package("torch", "deepspeed", "numpy", "sklearn")
        return Finished(*warm.run(options, env, directory, ranks, like), directory / "run")
    done = subprocess.run(
        [*launcher_command(launcher, ranks), *options],
        env=env,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr, directory / "run")


MNIST_FILES = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
]
CIFAR_FILES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


def idx(array: np.ndarray) -> bytes:
    """The bytes of an idx file."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.astype("uint8").tobytes()


def write_mnist(directory: Path, train: int = 20, test: int = 7, compress: bool = False) -> None:
    import numpy as np

    random = np.random.default_rng(0)
    for name, samples in zip(MNIST_FILES, (train, train, test, test), strict=True):
        array = (
            random.integers(0, 256, (samples, 28, 28))
            if "images" in name
            else random.integers(0, 10, samples)
        )
        if compress:
            (directory / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
        else:
            (directory / name).write_bytes(idx(array))


def write_cifar(directory: Path, samples: int = 6) -> Path:
    """The original's layout: pickles of bytes-keyed dicts, in a folder of their own."""
    folder = directory / "cifar-10-batches-py"
    folder.mkdir()
    import numpy as np

    random = np.random.default_rng(0)
    for name in CIFAR_FILES:
        pixels = random.integers(0, 256, (samples, 3072), dtype="uint8")
        batch = {b"data": pixels, b"labels": random.integers(0, 10, samples).tolist(), b"batch_label": b"x"}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    return folder


def pack(folder: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)


def launch_cases(
    program: str, cases: Mapping[str, object], ranks: int, folder: Path, *words: str, **env: str
) -> dict[str, Any]:
    """Return what a program beside this file gives for its cases, such as matrix.py for {name: options}, in warm ranks."""
    need_package("torch", "deepspeed", "numpy", "sklearn")
    (folder / "cases.json").write_text(json.dumps(cases))
    argv = [str(Path(__file__).with_name(program)), "cases.json", "results.json", *words]
    status, _, err = warm.run(argv, {**clean_environment(), **env}, folder, ranks)
    assert status == 0, err[-4000:]
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


def split(cases: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: text.split() for name, text in cases.items()}
