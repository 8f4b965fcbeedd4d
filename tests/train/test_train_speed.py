"""The options that make a device fast: defaults of each kind, refusals, and the same losses with each of them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from jobgen.train import config
from jobgen.train.accelerators import ACCELERATORS
from jobgen.train.config import recipe, speed
from jobgen.train.errors import CommonMistake
from support.require import need_command, need_package, user_cache
from train_support import launch_cases

pytestmark = pytest.mark.xdist_group("speed")  # its tests share trainings, which one worker runs
DDP, IMAGES = ("--engine", "ddp"), ("--model", "cnn")
# Each case has the losses of the case after "of".
CASES = {
    "ddp": [*DDP],
    "compiled of ddp": [*DDP, "--compile"],
    "fused of ddp": [*DDP, "--fused-optimizer", "torch"],
    "static graph of ddp": [*DDP, "--static-graph", "--bucket-mb", "1"],
    "images": [*DDP, *IMAGES],
    "channels_last of images": [*DDP, *IMAGES, "--channels-last", "on"],
    "deterministic of images": [*DDP, *IMAGES, "--deterministic"],
    "zero 3, channels_last of images": ["--zero-stage", "3", *IMAGES, "--channels-last", "on"],
    "zero 2, fused of ddp": ["--zero-stage", "2", "--fused-optimizer", "torch"],
    "offload, fused of ddp": ["--zero-stage", "1", "--offload", "optimizer", "--fused-optimizer", "torch"],
    "zero 1, compiled of ddp": ["--zero-stage", "1", "--compile"],
}


def resolved(kind: str, *argv: str, file: Path | None = None, **base: Any) -> speed.Speed:
    if file is not None:
        file.write_text(json.dumps(base))
        argv = (*argv, "--deepspeed_config", str(file))
    settings = config.parse(argv)
    return speed.resolve(recipe.resolve(settings, 2).config, settings, kind)


def test_defaults_are_those_of_the_device() -> None:
    assert resolved("cpu") == speed.Speed()
    gpu = resolved("cuda")
    assert gpu == speed.Speed(matmul="high", channels_last=True, fused="torch", benchmark=True)
    assert not resolved("cuda", "--deterministic").benchmark
    assert not resolved("rocm").channels_last
    assert resolved("rocm", "--precision", "bf16").channels_last
    assert resolved("npu", "--engine", "ddp") == speed.Speed()
    assert resolved("cuda", "--optimizer", "muon").fused == "none"
    assert resolved("cuda", "--engine", "colossalai").fused == "none"


def test_options_win_over_the_device_s_defaults(tmp_path: Path) -> None:
    options = ("--channels-last", "off", "--matmul-precision", "medium", "--fused-optimizer", "deepspeed")
    chosen = resolved("cuda", *options, "--compile", "max-autotune", "--sync-batchnorm")
    assert chosen == speed.Speed("max-autotune", False, "medium", "deepspeed", True, False, True)
    # A config file chooses DeepSpeed's kernels by torch_adam.
    adam = {"type": "Adam", "params": {"torch_adam": False}}
    assert resolved("cuda", file=tmp_path / "ds.json", optimizer=adam).fused == "deepspeed"


REFUSED = [
    ("cpu", "--sync-batchnorm", "--sync-batchnorm: torch has it for GPUs, not for cpu"),
    ("cuda", "--sync-batchnorm --precision bf16", "needs --precision fp32 or autocast, not bf16"),
    (
        "cuda",
        "--sync-batchnorm --engine pipeline",
        "--sync-batchnorm needs --engine deepspeed, ddp or fsdp, not pipeline",
    ),
    ("cpu", "--compile --engine pipeline", "--compile needs --engine deepspeed, ddp or fsdp, not pipeline"),
    ("npu", "--compile", "--compile: torch has no compiler for npu devices"),
    ("cpu", "--compile --engine ddp --static-graph", "--static-graph cannot be combined with --compile"),
    ("cpu", "--engine ddp --static-graph --accumulation 2", "--static-graph needs --accumulation 1"),
    ("cpu", "--static-graph", "--static-graph is for --engine ddp, not for deepspeed"),
    ("cpu", "--bucket-mb 5", "--bucket-mb is for --engine ddp, not for deepspeed"),
    ("cpu", "--fused-optimizer deepspeed", "needs CUDA devices, not cpu: use --fused-optimizer torch"),
    ("cuda", "--fused-optimizer deepspeed --engine ddp", "needs --engine deepspeed or pipeline, not ddp"),
    ("cuda", "--fused-optimizer torch --optimizer muon", "torch is for adam, adamw, sgd, not for muon"),
    ("npu", "--fused-optimizer torch", "torch has no fused kernels for npu devices"),
    ("cuda", "--fused-optimizer torch --engine colossalai", "ColossalAI's plug-ins use its HybridAdam"),
    ("cpu", "--compile fast", "'fast' is not one of default, reduce-overhead"),
]


@pytest.mark.parametrize(("kind", "options", "says"), REFUSED, ids=[case[1] for case in REFUSED])
def test_refused_with_the_reason(kind: str, options: str, says: str) -> None:
    with pytest.raises(CommonMistake, match=says) as caught:
        resolved(kind, *options.split())
    assert "\n" not in str(caught.value)


def test_deepcompile_needs_compile(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text('{"compile": {"deepcompile": true}}')
    how = recipe.resolve(config.parse(["--deepspeed_config", str(file)]), 2)
    assert how.notes == ["the config file's compile.deepcompile has no effect without --compile"]
    with pytest.raises(CommonMistake, match="compile.deepcompile needs CUDA devices, not cpu"):
        resolved("cpu", "--compile", file=file, compile={"deepcompile": True})


def test_every_kind_of_device_has_a_line() -> None:
    for kind in ACCELERATORS:
        settings = config.parse(["--engine", "ddp", "--deterministic"])
        how = recipe.resolve(settings, 2)
        said = speed.line(speed.resolve(how.config, settings, kind), how.config, kind)
        assert said.startswith(f"speed on {kind}: not compiled, fp32 matrix products ")
        assert said.endswith("deterministic kernels")


def test_compile_without_a_compiler_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need_package("torch")
    from jobgen.train.device import Device
    from jobgen.train.engines.tuning import set_flags

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(
        CommonMistake, match=r"--compile on cpu devices needs a compiler on this host \(g\+\+, clang"
    ):
        set_flags(speed.Speed(compile="default"), Device("cpu", 0))


def test_sync_batchnorm_replaces_the_layers() -> None:
    need_package("torch")
    from jobgen.train.engines.tuning import prepare
    from torch import nn

    fast = speed.Speed(sync_batchnorm=True)
    model = prepare(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)), fast, 2, weights=True)
    assert isinstance(model[1], nn.SyncBatchNorm)
    with pytest.raises(CommonMistake, match="--sync-batchnorm: the model has no BatchNorm layer"):
        prepare(nn.Linear(1, 1), fast, 2, weights=True)


def test_data_are_made_in_a_stream_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the streams of torch.cpu, which have those of a GPU's interface and run in order."""
    need_package("torch")
    import torch
    from jobgen.train import trees
    from jobgen.train.data.feed import SideStream

    row = dataclasses.replace(ACCELERATORS["cpu"], streams=True)
    for accelerators in (ACCELERATORS, {"cpu": row}):
        monkeypatch.setattr("jobgen.train.data.feed.ACCELERATORS", accelerators)
        made = SideStream(torch.device("cpu")).run(lambda: [{"a": torch.ones(2)}, (torch.zeros(1), 3)])
        assert [each.tolist() for each in trees.leaves(made)] == [[1, 1], [0]]


@pytest.mark.parametrize("half", [False, True])
def test_model_and_loss_are_one_graph(half: bool) -> None:
    need_package("torch")
    import torch
    from jobgen.train import loss_functions
    from jobgen.train.engines.ddp import WithLoss

    graphs: list[torch.fx.GraphModule] = []

    def count(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        graphs.append(graph)
        return graph.forward

    def context() -> Any:
        return torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext()

    inputs, targets = torch.randn(5, 4), torch.arange(5) % 3
    whole = WithLoss(torch.nn.Linear(4, 3), loss_functions.build("cross_entropy"), torch.float32, context)
    loss = torch.compile(whole, backend=count, fullgraph=True)(inputs, targets, 4, None)
    assert len(graphs) == 1
    assert torch.equal(loss, whole(inputs, targets, 4, None))
    with context():
        outputs = whole.model(inputs)
    assert loss.item() == pytest.approx(
        4 * torch.nn.functional.cross_entropy(outputs[:4].float(), targets[:4]).item()
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What matrix.py gives for CASES on two ranks."""
    need_command("g++")
    # torch finds its kernels by their code: to compile them takes 40 seconds of a core, once on a machine.
    # VEC_ISA_OK: or torch compiles a program for each instruction set that there may be.
    compiler = {"TORCHINDUCTOR_CACHE_DIR": str(user_cache() / "torch"), "TORCHINDUCTOR_VEC_ISA_OK": "1"}
    return launch_cases("matrix.py", CASES, 2, tmp_path_factory.mktemp("speed"), **compiler)


@pytest.mark.parametrize("case", [case for case in CASES if " of " in case])
def test_losses_are_those_of_the_plain_run(trained: dict[str, Any], case: str) -> None:
    assert "error" not in trained[case]
    plain = trained[case.rpartition(" of ")[2]]
    assert trained[case]["losses"] == pytest.approx(plain["losses"], rel=1e-5)
    assert trained[case]["test_loss"] == pytest.approx(plain["test_loss"], rel=1e-5)
