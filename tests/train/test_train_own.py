"""The user's own model and data, and the networks of our own."""

# ruff: noqa: E402 (packages are looked for before they are imported)
from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from train_support import PYTHON, clean_environment, module_needs, start, write_cifar

module_needs("numpy", "torch")

import subprocess
import sys

import numpy as np
import torch
from jobgen.train import config, data, loss_functions, models
from jobgen.train.errors import BadInput, CommonMistake

MODULE = """
    import numpy as np

    def build(shape, classes):
        from torch import nn
        return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], classes))

    def nothing(shape, classes):
        return "a model"

    def narrow(shape):
        return build(shape, 3)

    def frozen(shape, classes):
        return build(shape, classes).requires_grad_(False)

    def maps(shape, classes):
        from torch import nn
        return nn.Conv2d(shape[0], classes, 3)

    def one_short(shape, classes):
        return build(shape, classes - 1)

    def broken(shape, classes):
        import no_such_package

    def _images(n):
        return np.random.default_rng(0).integers(0, 256, (n, 1, 8, 8), dtype=np.uint8)

    def arrays():
        return {"train": (_images(50), np.arange(50) % 3), "test": (_images(9), np.arange(9) % 3)}

    def named(directory):
        assert directory is None
        return {**arrays(), "classes": ["a", "b", "c"], "mean": [0.5], "std": 0.25}

    class Pairs:
        decoded = 0
        def __len__(self):
            return 12
        def __getitem__(self, i):
            Pairs.decoded += 1
            if i >= 12:
                raise IndexError(i)
            return np.full((1, 8, 8), i / 12), i % 2

    def pairs():
        return {"train": Pairs(), "test": Pairs(), "classes": ["no", "yes"]}

    def few_classes():
        return {**arrays(), "classes": ["a"]}

    def misspelt():
        return {**arrays(), "classs": ["a"]}

    def text():
        return "data"

    def greedy(directory, split):
        return arrays()

    def counted():
        return {**arrays(), "classes": 3}

    def unscaled():
        return {**arrays(), "std": 0}

    def worded():
        return {**arrays(), "mean": "grey"}

    def objects():
        return {**arrays(), "train": (np.array([["a"], ["b"]]), np.arange(2))}

    def holes():
        return {**arrays(), "test": (np.full((2, 1, 8, 8), np.nan), np.arange(2))}
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "my_things.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("my_things", None)


def test_resnet18() -> None:
    net = models.build("resnet18", (3, 32, 32), 10)
    assert sum(p.numel() for p in net.parameters()) == 11_173_962
    assert isinstance(net, torch.nn.Sequential)  # so that a pipeline can cut it
    maps = [net[:n](torch.zeros(2, 3, 32, 32)).shape[1:] for n in (2, 4, 6, 8, 10)]
    assert [tuple(each) for each in maps] == [
        (64, 32, 32),
        (64, 32, 32),
        (128, 16, 16),
        (256, 8, 8),
        (512, 4, 4),
    ]
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert models.build("resnet18", (1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_resnet18_wants_larger_images_than_the_digits() -> None:
    with pytest.raises(CommonMistake, match="8 x 8 pixels are too small"):
        config.parse(["--model", "resnet18"])
    with pytest.raises(CommonMistake, match="at least 16 x 16 pixels; these have 8 x 12"):
        models.build("resnet18", (1, 8, 12), 10)


def test_own_model(own: Path) -> None:
    assert models.build("my_things:build", (1, 8, 8), 3)(torch.zeros(2, 1, 8, 8)).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("my_things:nothing", "returned str, not a torch.nn.Module"),
        (
            "my_things:narrow",
            "cannot be called as NAME() or NAME(shape, outputs): too many positional arguments",
        ),
        ("my_things:frozen", "returned a Sequential without trainable weights"),
        ("my_things:biuld", "has no biuld (did you mean 'build'?)"),
        ("my_things:np", "np is not a function or class"),
        ("my_thigns:build", "there is no module my_thigns"),
    ],
)
def test_own_model_mistakes(own: Path, name: str, says: str) -> None:
    with pytest.raises(CommonMistake) as error:
        models.build(name, (1, 8, 8), 3)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "maps",
            r"returns float32 \[2, 3, 6, 6\] and the targets are int64 \[2\]; it needs \[samples, classes\]",
        ),
        ("one_short", r"returns float32 \[2, 2\] for 3 classes"),
    ],
)
def test_outputs_that_do_not_fit_are_refused_with_their_shapes(own: Path, name: str, says: str) -> None:
    model = models.build(f"my_things:{name}", (1, 8, 8), 3)
    with pytest.raises(CommonMistake, match=says):
        loss_functions.build("cross_entropy", 3)(
            model(torch.zeros(2, 1, 8, 8)), torch.zeros(2, dtype=torch.int64), 2, 2
        )


def test_what_fails_inside_own_code_keeps_its_name(own: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        models.build("my_things:broken", (1, 8, 8), 3)


def test_own_data(own: Path) -> None:
    made = data.load("my_things:arrays", None)
    assert (len(made.train), len(made.test), made.train.shape) == (50, 9, (1, 8, 8))
    assert (made.classes, made.train.scale) == (("0", "1", "2"), (255.0, (0.0,), (1.0,)))
    assert (made.loss, made.metrics, made.outputs) == ("cross_entropy", ("accuracy",), 3)
    made = data.load("my_things:named", None)
    assert (made.classes, made.test.scale) == (("a", "b", "c"), (255.0, (0.5,), (0.25,)))


def test_own_samples_are_read_when_they_are_needed(own: Path) -> None:
    made = data.load("my_things:pairs", None)
    kind = sys.modules["my_things"].Pairs
    assert made.classes == ("no", "yes")
    kind.decoded = 0
    images, labels = made.train.batch(np.array([3, 4, 8]))
    assert (images.shape, labels.tolist(), kind.decoded) == ((3, 1, 8, 8), [1, 0, 0], 3)
    assert made.train.scale == (1.0, (0.0,), (1.0,))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("few_classes", "label 2 but only 1 classes"),
        ("misspelt", "'classs', which is not one of"),
        ("text", "must return a mapping with train and test"),
        ("greedy", "NAME() or NAME(directory): missing a required argument: 'split'"),
        ("counted", "classes must be a list of names, not 3"),
        ("unscaled", "full and std divide the pixels"),
        ("worded", "mean must be numbers, not 'grey'"),
        ("objects", "train has an array of <U1"),
        ("holes", "test images have values that are not finite"),
    ],
)
def test_own_data_mistakes(own: Path, name: str, says: str) -> None:
    with pytest.raises(BadInput) as error:
        data.load(f"my_things:{name}", None)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--dataset", "a:b", "--task", "mnist"], "there is no module 'a'"),
        (["--dataset", "json:loads", "--task", "mnist"], "both select the data"),
        (["--dataset", "json"], "'json' is not PKG.MOD:NAME"),
        (["--model", "jsn:build"], "there is no module 'jsn'"),
        (["--model", "resnet"], "did you mean 'resnet18'"),
    ],
)
def test_mistakes_are_told_without_torch(argv: list[str], says: str) -> None:
    with pytest.raises(CommonMistake) as error:
        config.parse(argv)
    assert says in str(error.value)
    check = "import sys, jobgen.train.config as c; c.parse(sys.argv[1:])\nassert 'torch' not in sys.modules"
    good = ["--dataset", "json:loads", "--model", "json:loads", "--augment", "flip"]
    subprocess.run([PYTHON, "-c", check, *good], check=True, env=clean_environment())


def test_a_run_with_own_model_and_data(tmp_path: Path, own: Path) -> None:
    """The module lies in the directory where the run is started."""
    options = ["--model", "my_things:build", "--dataset", "my_things:named", "--epochs", "2"]
    options += ["--augment", "crop,flip", "--workers", "2", "--cache", "kept", "--batch-size", "8"]
    (tmp_path / "kept").mkdir()
    done = start(tmp_path, "warm", options)
    assert done.returncode == 0, done.stderr
    assert done.status["task"] == "my_things:named"
    assert list(done.status["per_class"]) == ["a", "b", "c"]
    assert [each.name.partition("-")[0] for each in (tmp_path / "kept").iterdir()] == ["my_things"]


def test_a_run_of_resnet18(tmp_path: Path) -> None:
    """Augmented, with test images that two ranks cannot share evenly."""
    write_cifar(tmp_path, samples=3)
    options = ["--task", "cifar10", "--data", ".", "--model", "resnet18", "--augment", "crop,flip"]
    options += ["--epochs", "1", "--batch-size", "4", "--engine", "ddp", "--log-every", "1"]
    done = start(tmp_path, "warm", options)
    assert done.returncode == 0, done.stderr
    assert len(done.losses()) == 2  # of 15 images
    assert done.status["accuracy"] * 3 == pytest.approx(round(done.status["accuracy"] * 3), abs=1e-4)
