"""--engine colossalai, in its own environment, on two ranks of the CPU: every plug-in in every precision."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import warm
from support.colossalai import server
from support.finished import FOREIGN, Finished

pytestmark = [
    # One worker of pytest-xdist: the runs are of two processes each, and the environment is made once.
    pytest.mark.xdist_group("heavy"),
    # On CI the first test makes the environment.
    pytest.mark.timeout(1200),
]
EXACT = 1e-4
MLP = ("--model", "mlp")  # the fastest
EPOCH = ("--epochs", "1", "--log-every", "1", "--batch-size", "32")


def run(directory: Path, *options: str, ranks: int = 2, python: Path | None = None) -> Finished:
    """Run a training with ColossalAI's environment; with `python` one that has none, and no torch to wait for."""
    env = {name: value for name, value in os.environ.items() if not name.startswith((*FOREIGN, "PYTHONPATH"))}
    env |= {"JOBGEN_ACCELERATOR": "cpu", "JOBGEN_RUN_DIR": str(directory / "run"), "OMP_NUM_THREADS": "1"}
    directory.mkdir(parents=True, exist_ok=True)
    if python is None:
        return Finished(*warm.run(options, env, directory, ranks, server=server), directory / "run")
    command = [str(python), "-m", "jobgen.train", *options]
    done = subprocess.run(
        command, env=env, cwd=directory, capture_output=True, text=True, timeout=300, check=False
    )
    return Finished(done.returncode, done.stdout, done.stderr, directory / "run")


def colossalai(directory: Path, plugin: str, *options: str, ranks: int = 2) -> Finished:
    done = run(directory, "--engine", "colossalai", "--plugin", plugin, *options, ranks=ranks)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Plain torch on one rank, with the global batch of the two-rank runs."""
    options = ("--engine", "ddp", *MLP, *EPOCH, "--batch-size", "64")
    done = run(tmp_path_factory.mktemp("reference"), *options, ranks=1)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("plugin", "options", "tolerance"),
    [
        pytest.param("torch_ddp", [], EXACT, id="torch_ddp"),
        pytest.param("torch_ddp_fp16", [], 0.005, id="torch_ddp_fp16"),
        pytest.param("low_level_zero", [], EXACT, id="zero_1_fp32"),
        pytest.param("low_level_zero", ["--zero-stage", "2", "--precision", "bf16"], 0.02, id="zero_2_bf16"),
        pytest.param(
            "low_level_zero",
            ["--precision", "fp16", "--batch-size", "8", "--accumulation", "4"],
            0.008,
            id="zero_1_fp16_four_passes",
        ),
        pytest.param("gemini", [], 0.02, id="gemini_bf16"),
        pytest.param(
            "gemini",
            ["--precision", "fp16", "--batch-size", "8", "--accumulation", "4"],
            0.008,
            id="gemini_fp16_four_passes",
        ),
    ],
)
def test_two_ranks_have_the_losses_of_plain_torch_on_one(
    tmp_path: Path, reference: Finished, plugin: str, options: list[str], tolerance: float
) -> None:
    # In half precision Adam, which divides small gradients by small ones, goes its own way after a while.
    steps = 23 if tolerance == EXACT else 12
    done = colossalai(tmp_path, plugin, *MLP, *EPOCH, "--max-steps", str(steps), *options)
    assert len(done.losses()) == steps
    assert done.losses() == pytest.approx(reference.losses()[:steps], abs=tolerance)
    norms = [row["gradient_norm"] for row in done.metrics("step")]
    if plugin != "gemini":  # which has none where it does not clip
        expected = [row["gradient_norm"] for row in reference.metrics("step")]
        assert norms[:12] == pytest.approx(expected[:12], rel=1e-3 if tolerance == EXACT else 0.1)
    assert done.status["state"] == "finished"
    assert "Warning" not in done.stderr.replace("RequestsDependencyWarning", "")


@pytest.mark.parametrize(
    "options",
    [
        ["torch_ddp"],
        ["low_level_zero", "--precision", "bf16", "--zero-stage", "2"],
        ["gemini", "--precision", "fp16"],
    ],
    ids=lambda options: options[0],
)
def test_resuming_gives_the_same_losses(tmp_path: Path, options: list[str]) -> None:
    common = (*options, *MLP, "--log-every", "1", "--batch-size", "64", "--clip", "1")
    common = (*common, "--scheduler", "multistep", "--milestones", "15,20")
    place = ("--checkpoint-dir", str(tmp_path / "kept"))
    whole = colossalai(tmp_path / "whole", *common, *place, "--epochs", "2", "--save-every-epochs", "1")
    rates = [row["lr"] for row in whole.metrics("step")]
    assert [rates[14], rates[15], rates[20]] == pytest.approx([0.002, 0.0002, 0.00002])
    first = sorted(path.name for path in (tmp_path / "kept").iterdir() if path.is_dir())[0]
    again = colossalai(tmp_path / "again", *common, *place, "--epochs", "2", "--resume", first)
    assert again.losses() == whole.losses()[-len(again.losses()) :]
    assert 0 < len(again.losses()) < len(whole.losses())


@pytest.mark.parametrize("plugin", ["gemini", "low_level_zero", "torch_ddp_fp16"])
def test_the_first_loss_scale(tmp_path: Path, plugin: str) -> None:
    """As GeminiPlugin(initial_scale=2**5) of ColossalAI's examples. It is in the checkpoint."""
    precision = () if plugin == "torch_ddp_fp16" else ("--precision", "fp16")
    more = (*MLP, *EPOCH, "--max-steps", "2", *precision, "--initial-scale", "32")
    done = colossalai(tmp_path, plugin, *more, ranks=1)
    [file] = done.directory.glob("checkpoints/step-*/model.pt")
    torch = pytest.importorskip("torch")
    state = torch.load(file, weights_only=True)["scaler"]
    assert float(state.get("_scale", state.get("scale"))) == 32


def test_batch_norm_and_clipping(tmp_path: Path) -> None:
    """ResNet-18 has BatchNorm, which torch_ddp would turn into one for GPUs only."""
    (tmp_path / "tiny.py").write_text(
        "from torch import nn\n\n\n"
        "def build(shape, classes):\n"
        "    layers = nn.Conv2d(shape[0], 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()\n"
        "    return nn.Sequential(*layers, nn.Linear(8 * 36, classes))\n"
    )
    options = ("--model", "tiny:build", "--clip", "0.5", *EPOCH, "--max-steps", "12")
    losses = {}
    for plugin in ("torch_ddp", "gemini"):
        done = colossalai(tmp_path, plugin, *options)
        losses[plugin] = done.losses()
        assert done.losses()[-1] < 0.7 * done.losses()[0]
        (done.directory / "metrics.jsonl").unlink()
    assert losses["gemini"] == pytest.approx(losses["torch_ddp"], abs=0.05)


def test_resnet18_of_the_notes(tmp_path: Path) -> None:
    """On few images, which the last batch shares unevenly, with what the notes give it."""
    (tmp_path / "few.py").write_text(
        "import numpy as np\n\n\n"
        "def build():\n"
        "    images = np.random.default_rng(0).integers(0, 256, (35, 3, 16, 16), dtype=np.uint8)\n"
        "    return {'train': (images, np.arange(35) % 10), 'test': (images[:9], np.arange(9))}\n"
    )
    options = ("--dataset", "few:build", "--model", "resnet18", "--augment", "crop:2,flip")
    schedule = ("--scheduler", "multistep", "--milestones", "1", "--scheduler-unit", "epoch")
    options = (*options, *schedule, "--scale-lr", "linear", "--lr", "0.001", "--batch-size", "4")
    done = colossalai(tmp_path, "torch_ddp", *options, "--epochs", "2", "--log-every", "1")
    assert [row["lr"] for row in done.metrics("step")] == pytest.approx([0.002] * 5 + [0.0002] * 5)
    assert done.losses()[-1] < done.losses()[0]


def test_default_settings_learn_the_digits(tmp_path: Path) -> None:
    done = colossalai(tmp_path, "low_level_zero")
    assert done.status["accuracy"] >= 0.97


REFUSED = [
    (["--plugin", "torch_ddp", "--precision", "bf16"], "trains in fp32, not in bf16"),
    (["--precision", "autocast"], "which no plug-in of ColossalAI has"),
    (["--plugin", "gemini", "--precision", "fp32"], "trains in bf16 or fp16, not in fp32"),
    (["--plugin", "gemini", "--optimizer", "sgd"], "supports --optimizer adam or adamw, not sgd"),
    (["--plugin", "gemini", "--ema", "0.9"], "no rank has the whole weights"),
    (["--plugin", "gemini", "--initial-scale", "32"], "is for fp16, and this run has bf16"),
    (["--plugin", "low_level_zero", "--zero-stage", "3"], "is ZeRO stage 1 or 2, not 3"),
    (["--plugin", "low_level_zero", "--zero-stage", "0"], "is ZeRO stage 1 or 2, not 0"),
    (["--zero-stage", "1"], "--plugin torch_ddp is ZeRO stage 0, not 1"),
    (["--model", "moe"], "the expert layer is DeepSpeed's"),
    (["--offload", "optimizer"], "needs --engine deepspeed, not colossalai"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_what_cannot_work_is_refused(tmp_path: Path, options: list[str], reason: str) -> None:
    """Without ColossalAI, too: nothing is imported for it."""
    done = run(tmp_path, "--engine", "colossalai", *options, ranks=1, python=Path(sys.executable))
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_another_environment_says_how_to_get_the_right_one(tmp_path: Path) -> None:
    done = run(tmp_path, "--engine", "colossalai", ranks=1, python=Path(sys.executable))
    assert done.returncode == 2
    assert f"not installed in {sys.prefix}" in done.stderr
    assert "make colossalai" in done.stderr
    assert done.stderr.count("\n") == 1
