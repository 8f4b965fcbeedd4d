"""What PyTorch's tutorial "Training a Classifier" has: its network, Normalize(0.5, 0.5), ground truth and predictions."""

# ruff: noqa: E402 (packages are looked for before they are imported)
from __future__ import annotations

from pathlib import Path

import pytest
import train_support

train_support.module_needs("torch", "numpy")

import torch
from jobgen.train import config, data, models
from jobgen.train.data.feed import Feed
from jobgen.train.data.sampling import steps
from jobgen.train.errors import CommonMistake
from support import warm
from train_support import clean_environment, start, write_cifar


def test_its_network() -> None:
    net = models.build("lenet", (3, 32, 32), 10)
    assert sum(each.numel() for each in net.parameters()) == 62_006
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert models.build("lenet", (1, 16, 28), 10)(torch.zeros(2, 1, 16, 28)).shape == (2, 10)
    with pytest.raises(
        CommonMistake, match="lenet needs images of at least 16 x 16 pixels; these have 15 x 20"
    ):
        models.build("lenet", (1, 15, 20), 10)
    with pytest.raises(CommonMistake, match="--model lenet is for larger images: 8 x 8 pixels are too small"):
        config.parse(["--model", "lenet"])


def test_images_are_normalised_as_asked() -> None:
    task = data.of(config.parse(["--normalize", "0.5:0.25"]))
    feed = Feed(task.test, torch.device("cpu"))
    [[micro], _] = next(feed.batches(steps(task.test.indices(), 4, 1, 0, 1)))
    pixels = torch.from_numpy(task.test.images[:4]) / 16  # type: ignore[attr-defined]
    torch.testing.assert_close(micro.inputs, (pixels - 0.5) / 0.25)


@pytest.mark.parametrize("text", ["0.5", "0.5:0", "0.5,0.5:0.5", "nan:1", "0:inf", "a:b", "0.5:-1", ":"])
def test_what_is_no_normalisation_is_refused(text: str) -> None:
    with pytest.raises(CommonMistake, match="--normalize: .* is not means and as many standard deviations"):
        config.parse(["--normalize", text])


def test_a_normalisation_of_other_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommonMistake, match="--normalize has 3 means; the images have 1 channels"):
        data.of(config.parse(["--normalize", "0.5,0.5,0.5:0.5,0.5,0.5"]))
    (tmp_path / "a.txt").write_text("words " * 1000)
    text = ["--task", "text", "--data", str(tmp_path / "a.txt"), "--context", "16"]
    with pytest.raises(CommonMistake, match="--normalize is for images"):
        data.of(config.parse([*text, "--normalize", "0:1"]))


def test_a_run_and_what_it_predicts(tmp_path: Path) -> None:
    """It evaluates with the normalisation of the run, and resumes with no other."""
    write_cifar(tmp_path, 16)
    options = ["--task", "cifar10", "--data", ".", "--model", "lenet", "--engine", "ddp", "--epochs", "1"]
    half = ["--normalize", "0.5,0.5,0.5:0.5,0.5,0.5"]
    done = start(tmp_path, "warm", [*options, *half, "--checkpoint-dir", "kept"], 1)
    assert done.returncode == 0, done.stderr
    env = clean_environment()
    words = ["evaluate", "kept", "--show", "3"]
    status, out, err = warm.run(words, env, tmp_path, 1)
    assert status == 0, err
    right, predicted, *scores = out.splitlines()
    assert right.startswith("ground truth: ")
    assert predicted.startswith("predicted:    ")
    names = [line.split(":")[1].split() for line in (right, predicted)]
    assert [len(each) for each in names] == [3, 3]
    assert {*names[0], *names[1]} <= set(data.CIFAR_CLASSES)
    assert f"test loss {done.metrics('epoch')[-1]['test_loss']:.6f}" in scores[-1]
    other = start(tmp_path, "warm", [*options, "--checkpoint-dir", "kept", "--resume"], 1)
    assert other.returncode == 2
    assert "normalize" in other.stderr
