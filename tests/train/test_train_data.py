"""The readers, on small files that the tests write."""

# ruff: noqa: E402 (packages are looked for before they are imported)
from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from train_support import idx, module_needs, pack, write_cifar, write_mnist

module_needs("numpy")

import numpy as np
from jobgen.train import data
from jobgen.train.errors import BadInput
from support.require import need_package


def test_digits() -> None:
    need_package("sklearn")
    from sklearn.datasets import load_digits

    digits = data.load("digits", None)
    assert digits.train.images.shape == (1437, 1, 8, 8)
    assert digits.test.images.shape == (360, 1, 8, 8)
    assert digits.train.images.dtype == np.uint8
    both = np.concatenate([digits.train.images, digits.test.images]).reshape(-1, 64)
    # The same samples as scikit-learn's own loader gives, each once.
    assert sorted(map(bytes, both)) == sorted(map(bytes, load_digits().data.astype(np.uint8)))
    again = data.load("digits", None)
    assert np.array_equal(digits.test.labels, again.test.labels)


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gz"])
def test_mnist(tmp_path: Path, compress: bool) -> None:
    write_mnist(tmp_path, compress=compress)
    mnist = data.load("mnist", tmp_path)
    assert mnist.train.images.shape == (20, 1, 28, 28)
    assert mnist.test.labels.shape == (7,)
    expected = np.random.default_rng(0).integers(0, 256, (20, 28, 28))
    assert np.array_equal(mnist.train.images[:, 0], expected)


def test_mnist_in_the_folder_that_torchvision_makes(tmp_path: Path) -> None:
    (tmp_path / "MNIST" / "raw").mkdir(parents=True)
    write_mnist(tmp_path / "MNIST" / "raw")
    assert len(data.load("mnist", tmp_path).train.labels) == 20


def test_mnist_missing_file_is_named(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(
        BadInput, match=r"t10k-labels-idx1-ubyte \(or t10k-labels-idx1-ubyte.gz\) is missing in"
    ):
        data.load("mnist", tmp_path)


def _cut(content: bytes) -> bytes:
    return content[:-1]


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("train-images-idx3-ubyte", _cut, "damaged: its header gives 15680 values"),
        ("train-images-idx3-ubyte", lambda c: b"GIF89a" + c, "is not an idx file"),
        ("train-images-idx3-ubyte", lambda c: b"", "is not an idx file"),
        ("train-labels-idx1-ubyte", lambda c: c[:-1] + b"\xff", "label outside 0 to 9"),
        ("t10k-labels-idx1-ubyte", lambda c: idx(np.zeros(6)), "7 images but 6 labels"),
    ],
)
def test_mnist_damaged(tmp_path: Path, name: str, damage: Callable[[bytes], bytes], says: str) -> None:
    write_mnist(tmp_path)
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    with pytest.raises(BadInput, match=says):
        data.load("mnist", tmp_path)


@pytest.mark.parametrize("damage", [_cut, lambda c: b"no gzip", lambda c: c[:30] + b"\0\0\0" + c[33:]])
def test_mnist_damaged_gz(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    write_mnist(tmp_path, compress=True)
    file = tmp_path / "train-images-idx3-ubyte.gz"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(BadInput, match=r"train-images-idx3-ubyte\.gz"):
        data.load("mnist", tmp_path)


@pytest.mark.parametrize("form", ["folder", "files", "tar.gz"])
def test_cifar10(tmp_path: Path, form: str) -> None:
    folder = write_cifar(tmp_path)
    where = tmp_path
    if form == "files":
        where = folder
    elif form == "tar.gz":
        where = tmp_path / "packed"
        where.mkdir()
        pack(folder, where / "cifar-10-python.tar.gz")
    cifar = data.load("cifar10", where)
    assert cifar.train.images.shape == (30, 3, 32, 32)
    assert cifar.test.images.shape == (6, 3, 32, 32)
    first = np.random.default_rng(0).integers(0, 256, (6, 3072), dtype=np.uint8)
    assert np.array_equal(cifar.train.images[:6].reshape(6, -1), first)


def test_cifar10_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"neither .*data_batch_1.* nor cifar-10-python\.tar\.gz"):
        data.load("cifar10", tmp_path)
    folder = write_cifar(tmp_path)
    (folder / "data_batch_4").unlink()
    with pytest.raises(BadInput, match="data_batch_4 is missing in"):
        data.load("cifar10", tmp_path)
    pack(folder, folder / "cifar-10-python.tar.gz")
    (folder / "data_batch_1").unlink()
    with pytest.raises(BadInput, match=r"data_batch_4 is missing in .*\.tar\.gz"):
        data.load("cifar10", folder)


def test_cifar10_damaged(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path)
    file = folder / "data_batch_2"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(BadInput, match="data_batch_2 is not a python batch of CIFAR-10"):
        data.load("cifar10", tmp_path)
    archive = folder / "cifar-10-python.tar.gz"
    pack(folder, archive)
    archive.write_bytes(archive.read_bytes()[:-200])
    (folder / "data_batch_1").unlink()
    with pytest.raises(BadInput, match=r"cifar-10-python\.tar\.gz"):
        data.load("cifar10", folder)


class _Evil:
    def __reduce__(self) -> tuple[Callable[..., int], tuple[str]]:
        return os.system, ("touch pwned",)


def test_cifar10_runs_no_code_from_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_cifar(tmp_path)
    (folder / "data_batch_1").write_bytes(pickle.dumps({b"data": _Evil(), b"labels": []}))
    with pytest.raises(BadInput, match=r"posix\.system"):
        data.load("cifar10", tmp_path)
    assert not (tmp_path / "pwned").exists()


def test_data_directory_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a directory"):
        data.load("mnist", tmp_path / "absent")
