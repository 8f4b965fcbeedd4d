"""Checkpoints and evaluations of mixtures of experts: a model of the user's own, on two ranks that share its experts."""

from __future__ import annotations

from pathlib import Path

import pytest
from train_support import Finished, module_needs, start

module_needs("numpy", "torch", "deepspeed", "sklearn")

pytestmark = pytest.mark.xdist_group("heavy")
# A PR-MoE with two experts a sample. The dense layer and the layer itself have "expert" in their names.
MODULE = """
from torch import nn

class Net(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        from deepspeed.moe.layer import MoE
        self.first = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU())
        self.experts = MoE(32, nn.Linear(32, 32), 4, ep_size=2, k=2, use_residual=True, capacity_factor=1.0)
        self.head = nn.Linear(32, classes)

    def forward(self, images):
        return self.head(self.experts(self.first(images))[0])

def build(shape, classes):
    return Net(shape, classes)
"""
RUN = [
    "--model",
    "shared_experts:build",
    "--epochs",
    "2",
    "--save-every",
    "15",
    "--ema",
    "0.9",
    "--log-every",
    "1",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moe")
    for run in ("whole", "again"):
        (folder / run).mkdir()
        (folder / run / "shared_experts.py").write_text(MODULE)
    return folder


@pytest.fixture(scope="module")
def trained(place: Path) -> Finished:
    done = start(place / "whole", "warm", RUN)
    assert done.returncode == 0, done.stderr
    return done


def test_the_dense_layer_beside_the_experts_is_saved(trained: Finished, place: Path) -> None:
    checkpoint = trained.directory / "checkpoints" / "step-000015"
    resumed = start(place / "again", "warm", [*RUN, "--resume", str(checkpoint)])
    assert resumed.returncode == 0, resumed.stderr
    assert [row["loss"] for row in resumed.metrics("step")] == [
        row["loss"] for row in trained.metrics("step") if row["step"] > 15
    ]
    scores = [run.metrics("epoch")[-1]["test_loss"] for run in (trained, resumed)]
    assert scores[0] == scores[1]


def test_an_evaluation_has_all_experts_and_no_chance(trained: Finished, place: Path) -> None:
    """The same as the engine's own, in one process, from the checkpoint and from exported weights."""

    def tool(*words: str) -> str:
        done = start(place / "whole", "warm", words, ranks=1)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    run = str(trained.directory)
    tool("export", run, "weights.pt", "--ema")
    loss = trained.metrics("epoch")[-1]["test_loss"]
    said = [tool("evaluate", run, "--ema"), tool("evaluate", "weights.pt", "--ema")]
    assert said[0] == said[1]
    assert float(said[0].split()[2].rstrip(",")) == pytest.approx(loss, rel=1e-5)
