"""The path of Ascend NPUs, on the simulated device of tests/npu: the losses are the CPU's."""

from __future__ import annotations

import json
import platform
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobgen.train import npu
from jobgen.train.errors import BadInput
from support import warm_python
from support.require import need_command, need_package
from train_support import Finished, clean_environment, launch_cases, start

pytestmark = pytest.mark.xdist_group("npu")  # its tests share trainings, which one worker runs
HERE = Path(__file__).parent
SIMULATED = HERE.parent / "npu"
# Every way in which DeepSpeed and torch use the device. The pipeline comes last, since DeepSpeed keeps
# some of its state; so do those with a loss scale.
CASES: dict[str, list[str]] = {
    "zero 0": [],
    "zero 1": ["--zero-stage", "1"],
    "zero 2": ["--zero-stage", "2"],
    "zero 3": ["--zero-stage", "3"],
    "sgd": ["--optimizer", "sgd", "--zero-stage", "2"],
    "muon": ["--optimizer", "muon"],
    "bf16": ["--precision", "bf16"],
    "autocast": ["--precision", "autocast"],
    "ddp": ["--engine", "ddp"],
    "ddp muon": ["--engine", "ddp", "--optimizer", "muon"],
    "average zero 3": ["--ema", "0.9", "--zero-stage", "3"],
    "unclipped": ["--clip", "0"],
    "batch norm": ["--model", "matrix:normalised"],
    "augmented by workers": ["--workers", "2", "--augment", "crop,flip"],
    "augmented": ["--augment", "crop,flip"],
    "experts": ["--model", "moe"],
    "experts of two ranks": ["--model", "moe", "--expert-parallel", "2", "--zero-stage", "1"],
    "fp16 zero 1": ["--precision", "fp16", "--zero-stage", "1"],
    "fp16 zero 2": ["--precision", "fp16", "--zero-stage", "2"],
    "fp16 zero 3": ["--precision", "fp16", "--zero-stage", "3"],
    "fp16 batch norm": ["--model", "matrix:normalised", "--precision", "fp16", "--zero-stage", "1"],
    "autocast-fp16": ["--precision", "autocast-fp16"],
    "autocast-fp16 zero 2": ["--precision", "autocast-fp16", "--zero-stage", "2"],
    "pipeline": ["--engine", "pipeline"],
}
# Some CPUs have fp16 in hardware, and there DeepSpeed offers it. Without it every x86 processor takes the
# same path here, with the same kernels for both devices.
NO_FP16 = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
# Muon rounds its matrices to bf16 on the way.
TOLERANCE = {"muon": 2e-3, "ddp muon": 2e-3, "bf16": 1e-3, "autocast": 1e-3}


@pytest.fixture(scope="module")
def npu_environment() -> Iterator[dict[str, str]]:
    """For a process that finds the simulated torch_npu; compiled once for all sessions."""
    need_command("g++", "ninja")
    need_package("torch", "deepspeed")
    with warm_python.first(warm_python.server(modules=warm_python.TORCH)):
        env = {**clean_environment(), "PYTHONPATH": str(SIMULATED), "JOBGEN_ACCELERATOR": "npu"}
        run_python("import torch_npu", env)
        yield env


def run_python(program: str, env: dict[str, str]) -> str:
    # Without Python's shutdown, which the device's threads do not survive; as in jobgen.train.
    program = textwrap.dedent(program) + "\nimport os, sys; sys.stdout.flush(); os._exit(0)"
    command = [warm_python.command("python"), "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_the_device(folder: Path, env: dict[str, str]) -> dict[str, Any]:
    """What matrix.py gives for CASES on two ranks of the device."""
    cases, results = folder / "cases.json", folder / "npu.json"
    cases.write_text(json.dumps(CASES))
    rendezvous = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    program = [str(HERE / "matrix.py"), str(cases), str(results)]
    command = [warm_python.command("torchrun"), *rendezvous, *program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(results.read_text())


@pytest.fixture(scope="module")
def both(
    npu_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("npu")
    on_npu = on_the_device(folder, npu_environment | NO_FP16)
    return on_npu, launch_cases("matrix.py", CASES, 2, folder, **NO_FP16)


@pytest.mark.parametrize("case", CASES)
def test_losses_are_the_cpu_s(both: tuple[dict[str, Any], dict[str, Any]], case: str) -> None:
    on_npu, on_cpu = (results[case] for results in both)
    if case.startswith("fp16"):
        refused = "DeepSpeed has no fp16 on this cpu" in on_cpu.get("error", "")
        assert refused or platform.machine() != "x86_64"  # NO_FP16 is for x86
        on_cpu, tolerance = both[1]["batch norm" if "norm" in case else "zero 0"], 2e-3
    else:
        tolerance = TOLERANCE.get(case, 1e-5)
    assert on_npu.get("error") is None
    assert on_npu["losses"] == pytest.approx(on_cpu["losses"], rel=tolerance)
    assert on_npu["test_loss"] == pytest.approx(on_cpu["test_loss"], rel=tolerance)
    if not case.startswith("fp16") and case != "autocast-fp16 zero 2":
        assert on_npu["norms"] == pytest.approx(on_cpu["norms"], rel=20 * tolerance)


def test_augmentation_is_the_same_on_the_device_and_in_workers(
    both: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    on_npu, _ = both
    assert on_npu["augmented"]["losses"] == on_npu["augmented by workers"]["losses"]
    assert on_npu["augmented"]["losses"] != on_npu["ddp"]["losses"]


@pytest.mark.parametrize("launcher", ["mpirun", "deepspeed"])
def test_a_run(launcher: str, npu_environment: dict[str, str], tmp_path: Path) -> None:
    """The device is found without being asked for; two of eight are visible."""
    env = {"PYTHONPATH": str(SIMULATED), "JOBGEN_ACCELERATOR": "", "ASCEND_RT_VISIBLE_DEVICES": "3,5"}
    options = ["--model", "mlp", "--epochs", "1", "--zero-stage", "2", "--profile"]
    done: Finished = start(tmp_path, launcher, options, env=env)
    assert done.returncode == 0, done.stderr
    assert "note: --profile has recorded only the host, not the npu devices" in done.stdout
    assert done.status["device"] == "npu"
    assert done.status["world_size"] == 2
    assert done.status["accuracy"] > 0.5


def test_each_rank_has_its_local_rank_s_device(npu_environment: dict[str, str]) -> None:
    program = """
        import os, torch
        from jobgen.train import device
        from jobgen.train.ranks import Ranks
        def index(rank, local_rank):
            mine = device.choose(Ranks(rank, 16, local_rank, 8, "127.0.0.1", 1, "x"), os.environ)
            assert torch.npu.current_device() == mine.index == mine.torch.index
            return mine.index
        print(index(9, 1), index(15, 7), index(0, 0))
        try:
            index(8, 8)
        except Exception as error:
            print(type(error).__name__, error)
    """
    env = {name: value for name, value in npu_environment.items() if name != "ASCEND_RT_VISIBLE_DEVICES"}
    assert run_python(program, env).splitlines() == [
        "1 7 0",
        "BadInput local rank 8 has no device: this host has 8 npu devices for 8 ranks",
    ]


def test_the_ways_around_are_needed_and_work(npu_environment: dict[str, str]) -> None:
    program = """
        import os, torch, torch_npu
        from torch import distributed
        from torch._utils import _unflatten_dense_tensors
        distributed.init_process_group("hccl", rank=0, world_size=1, store=distributed.HashStore())
        def attempt(what):
            try:
                print(what())
            except (RuntimeError, NotImplementedError) as error:
                print(str(error)[:60])
        def all_of_them():
            for dtype in (torch.uint8, torch.bool, torch.float64):
                def reduce(dtype=dtype):
                    tensor = torch.ones(2, dtype=dtype, device="npu")
                    work = distributed.all_reduce(tensor, async_op=True)
                    work.wait()
                    return tensor.dtype, tensor.tolist()
                attempt(reduce)
            weights = torch.ones(2, device="npu", requires_grad=True)
            attempt(lambda: (weights * 2).bool().tolist())
            flat, shapes = torch.arange(6.0, device="npu"), [torch.empty(2, 2), torch.empty(2)]
            attempt(lambda: [part.tolist() for part in torch._utils._unflatten_dense_tensors(flat, shapes)])
        all_of_them()
        broadcast = torch.ones(2, dtype=torch.uint8, device="npu")
        distributed.broadcast(broadcast, 0)  # HCCL moves bytes
        from jobgen.train import npu
        npu.load()
        npu.load()
        all_of_them()
    """
    assert run_python(program, npu_environment).splitlines() == [
        "HCCL AllReduce & Reduce: Unsupported data type torch.uint8",
        "HCCL AllReduce & Reduce: Unsupported data type torch.bool",
        "HCCL AllReduce & Reduce: Unsupported data type torch.float64",
        "isDifferentiableType(variable.scalar_type()) INTERNAL ASSERT",
        *("Could not run 'npu::npu_format_cast' with arguments from the", "(torch.uint8, [1, 1])"),
        *("(torch.bool, [True, True])", "(torch.float64, [1.0, 1.0])", "[True, True]"),
        "[[[0.0, 1.0], [2.0, 3.0]], [4.0, 5.0]]",
    ]


def test_flatten_is_torch_s(npu_environment: dict[str, str]) -> None:
    import torch

    tensors = [torch.arange(6.0).view(2, 3), torch.zeros(0), torch.ones(2)]
    flat = npu.flatten(tensors)
    assert torch.equal(flat, torch._utils._flatten_dense_tensors(tensors))
    parts = npu.unflatten(flat, tensors)
    assert all(torch.equal(part, tensor) for part, tensor in zip(parts, tensors, strict=True))
    assert parts[0].data_ptr() == flat.data_ptr()
    assert npu.flatten(tensors[:1]).data_ptr() == tensors[0].data_ptr()


CANN = {"ASCEND_HOME_PATH": "/usr/local/Ascend"}


@pytest.mark.parametrize("visible", ["", "3", "0,1,2", "2,5"])
def test_visible_devices(visible: str) -> None:
    npu.check_environment({**CANN, npu.VISIBLE: visible})


@pytest.mark.parametrize("visible", ["1, 2", "2,1", "0,0", "npu0", "0-3", "1,"])
def test_visible_devices_that_cann_would_cut_short(visible: str) -> None:
    with pytest.raises(BadInput, match="not a list of ascending device numbers"):
        npu.check_environment({**CANN, npu.VISIBLE: visible})


def test_cann_must_be_set_up(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="source CANN's set_env.sh"):
        npu.check_environment({})
    # Before torch is loaded, so within a second.
    env = {"JOBGEN_ACCELERATOR": "npu", "ASCEND_HOME_PATH": ""}
    done = start(tmp_path, "one", ["--epochs", "1"], ranks=1, env=env)
    assert done.returncode == 2
    assert "ASCEND_HOME_PATH is not set" in done.stderr
    assert "torch" not in done.status["startup"]
