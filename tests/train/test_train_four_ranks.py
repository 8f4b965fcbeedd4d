"""A pipeline of two stages, twice: pipeline and data parallelism together, and what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.require import need_package
from train_support import Finished, start

pytestmark = pytest.mark.xdist_group("heavy")  # four processes

SHORT = ["--epochs", "1", "--log-every", "1", "--global-batch", "64"]
PIPELINE = ["--engine", "pipeline", "--stages", "2", "--accumulation", "2"]


def trained(folder: Path, options: list[str], ranks: int) -> Finished:
    done = start(folder, "warm", [*SHORT, *options], ranks)
    assert done.returncode == 0, done.stderr
    return done


def tool(folder: Path, *words: str) -> str:
    done = start(folder, "warm", words, ranks=1)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return trained(tmp_path_factory.mktemp("alone"), ["--engine", "ddp"], ranks=1)


def test_two_stages_twice(alone: Finished, tmp_path: Path) -> None:
    done = trained(tmp_path, [*PIPELINE, "--zero-stage", "1", "--save-every-epochs", "1"], ranks=4)
    assert done.losses() == pytest.approx(alone.losses(), rel=1e-4)
    assert "batch 16 x 2 x 2" in done.stdout
    norms = [[row["gradient_norm"] for row in each.metrics("step")] for each in (done, alone)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)
    said = tool(tmp_path, "evaluate", "run").splitlines()[-1]
    assert said.endswith(f"accuracy {done.status['accuracy']:.2%}")


def test_half_precision_is_exported_from_its_fp32_copy(alone: Finished, tmp_path: Path) -> None:
    need_package("torch", "safetensors")
    import torch

    options = [*PIPELINE, "--zero-stage", "1", "--precision", "bf16", "--save-every-epochs", "1"]
    done = trained(tmp_path, options, ranks=4)
    assert done.losses()[:5] == pytest.approx(alone.losses()[:5], rel=0.005)
    tool(tmp_path, "export", "run", "net.pt")
    assert json.loads((tmp_path / "net.pt.json").read_text())["rounded_to"] is None
    exported = torch.load(tmp_path / "net.pt")
    folder = next((tmp_path / "run" / "checkpoints").glob("step-*")) / "deepspeed"
    for file in folder.glob("layer_*-model_states.pt"):
        layer = int(file.name.removeprefix("layer_").partition("-")[0])
        for name, half in torch.load(file).items():
            whole = exported.pop(f"{layer}.{name}")
            assert whole.dtype == torch.float32
            assert torch.equal(whole.bfloat16(), half)
            assert name == "bias" or not torch.equal(whole, half.float())
    assert not exported
