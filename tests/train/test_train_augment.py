"""Random crops and flips, and batches on their way to the device."""

# ruff: noqa: E402 (packages are looked for before they are imported)
from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from train_support import module_needs, write_mnist

module_needs("numpy", "torch")

import numpy as np
import torch
from jobgen.train import config, data
from jobgen.train.data import augment, cache, feed, sampling, sources
from jobgen.train.errors import BadInput, CommonMistake

NUMBERS = np.arange(1000)


def pictures(samples: int = 40, height: int = 10, width: int = 12) -> np.ndarray:
    return np.random.default_rng(1).integers(1, 256, (samples, 3, height, width), dtype=np.uint8)


def test_both_ways_move_the_same_pixels() -> None:
    images, numbers = pictures(), np.array([3, 0, 39, 3, 7, 12])
    for words in (["crop:4"], ["flip"], ["crop:4", "flip"], ["crop"]):
        changes = augment.parse(words, 10)
        assert changes is not None
        for epoch in range(5):
            drawn = augment.draw(changes, 0, epoch, numbers)
            here = augment.on_host(images, numbers, drawn)
            rows = torch.from_numpy(np.stack(drawn))
            there = augment.by_one_gather(torch.from_numpy(images[numbers]), rows, changes.padding)
            assert np.array_equal(here, there.numpy())


def test_a_crop_is_a_window_of_the_padded_image() -> None:
    image = pictures(1)
    padded = np.pad(image[0], ((0, 0), (4, 4), (4, 4)))
    for down, right in ((0, 0), (4, -4), (-4, 3)):
        moved = augment.Draw(np.array([down]), np.array([right]), np.array([False]))
        window = padded[:, 4 - down : 14 - down, 4 - right : 16 - right]
        assert np.array_equal(augment.on_host(image, np.array([0]), moved)[0], window)


def test_every_place_is_as_likely() -> None:
    many = np.arange(81_000)
    drawn = augment.draw(augment.Augmentation(4, True), 0, 1, many)
    counts = np.histogram2d(drawn.down, drawn.right, bins=9)[0]
    # 1000 a place, of a standard deviation of 31.4.
    assert drawn.down.min() == -4
    assert drawn.right.max() == 4
    assert np.abs(counts - 1000).max() < 6 * 31.4
    assert abs(drawn.mirror.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(drawn.down, drawn.mirror)[0, 1]) < 0.02


def test_changes_depend_on_seed_epoch_and_sample_alone() -> None:
    changes = augment.Augmentation(4, True)

    def drawn(seed: int, epoch: int, numbers: np.ndarray = NUMBERS) -> np.ndarray:
        return np.stack(augment.draw(changes, seed, epoch, numbers))

    first = drawn(0, 1)
    assert np.array_equal(first, drawn(0, 1))
    assert np.array_equal(first[:, 500:], drawn(0, 1, NUMBERS[500:]))
    assert not np.array_equal(first, drawn(0, 2))
    assert not np.array_equal(first, drawn(1, 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [("crop", ("crop",)), ("flip, crop:2", ("crop:2", "flip")), ("none", ()), (" flip", ("flip",))],
)
def test_the_option(text: str, words: Sequence[str]) -> None:
    assert config.parse(["--augment", text]).augment == words


def test_padding_goes_with_the_height() -> None:
    assert augment.parse(["crop"], 32) == augment.Augmentation(4, False)
    assert augment.parse(["crop"], 8) == augment.Augmentation(1, False)
    assert augment.parse(["crop:7", "flip"], 8) == augment.Augmentation(7, True)
    assert augment.parse([], 8) is None
    for size in ((7, 9), (9, 7)):
        with pytest.raises(CommonMistake, match="crop:7 may leave nothing of images of"):
            augment.parse(["crop:7"], *size)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("crp", "did you mean 'crop'"),
        ("crop,crop", "not a list such as"),
        ("crop:0", "'crop:0' is not one of"),
        ("flip,none", "not a list such as"),
    ],
)
def test_option_mistakes(text: str, says: str) -> None:
    with pytest.raises(CommonMistake, match=says):
        config.parse(["--augment", text])


def small_data() -> data.Data:
    labels = np.arange(40) % 10
    split = data.Split(pictures(), labels)
    return data.Data(split, split, data.NUMERALS, 255.0, (0.5, 0.4, 0.3), (0.2, 0.3, 0.4))


def batches(
    workers: int, rank: int = 0, world_size: int = 1, resident: bool = False
) -> list[tuple[list[feed.Micro], int]]:
    device, epoch = torch.device("cpu"), 3
    source = small_data().task().train.augmented(("crop:2", "flip"), seed=5)
    fed = feed.Feed(source.resident(device) if resident else source, device, workers)
    steps = sampling.steps(sampling.order(40, 5, epoch), 4, 2, rank, world_size)
    return [(list(micros), total) for micros, total in fed.batches(steps, epoch)]


@pytest.mark.parametrize("how", [{"workers": 3}, {"workers": 0, "resident": True}])
def test_workers_and_images_on_the_device_change_nothing(
    how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "AT_ONCE", 2)
    alone, others = batches(0), batches(**how)
    assert len(alone) == 5
    for (ours, total), (theirs, other) in zip(alone, others, strict=True):
        assert (total, len(ours)) == (other, 2)
        for one, two in zip(ours, theirs, strict=True):
            assert torch.equal(one.inputs, two.inputs)
            assert torch.equal(one.targets, two.targets)
            assert one.real == two.real


def test_a_micro_batch_is_prepared_when_the_engine_comes_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    move = feed.Feed._on_device

    def on_device(self: feed.Feed, raw: feed.Micro) -> feed.Micro:
        moved.append(len(raw.inputs))
        return move(self, raw)

    monkeypatch.setattr(feed.Feed, "_on_device", on_device)
    fed = feed.Feed(small_data().task().train, torch.device("cpu"))
    micros, _ = next(fed.batches(sampling.steps(np.arange(40), 4, 3, 0, 1)))
    assert (len(micros), moved) == (3, [])
    for count, _ in enumerate(micros, 1):
        assert moved == [4] * count


def test_samples_are_chosen_in_the_stream_that_normalises_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In another stream, a GPU would normalise images before they are there."""
    within: list[bool] = []

    class Stream(feed.SideStream):
        def run(self, make: Callable[[], Any]) -> Any:
            within.append(True)
            made = make()
            within.pop()
            return made

    class Images(sources.Images):
        def batch(self, indices: np.ndarray) -> sources.Batch:
            assert within
            return super().batch(indices)

    monkeypatch.setattr(feed, "SideStream", Stream)
    source = Images(pictures(), np.arange(40) % 10, sources.Scale(255.0, (0.5,), (0.2,)))
    fed = feed.Feed(source, torch.device("cpu"))
    assert len([list(each) for each, _ in fed.batches(sampling.steps(np.arange(40), 8, 1, 0, 1))]) == 5


def test_ranks_change_nothing() -> None:
    """The samples of one rank's batch are those of two ranks', changed in the same way."""
    alone = torch.cat([micro.inputs for step, _ in batches(0) for micro in step])
    two = [torch.cat([m.inputs for step, _ in batches(1, rank, 2) for m in step]) for rank in range(2)]
    assert sorted(map(bytes, alone.numpy())) == sorted(map(bytes, torch.cat(two).numpy()))


def test_normalisation() -> None:
    made = small_data()
    (micro,), _ = next(
        feed.Feed(made.task().test, torch.device("cpu")).batches(sampling.steps(NUMBERS[:8], 8, 1, 0, 1))
    )
    expected = (made.test.images[:8] / 255.0 - np.array(made.mean)[:, None, None]) / np.array(made.std)[
        :, None, None
    ]
    assert np.allclose(micro.inputs.numpy(), expected, atol=1e-5)


def test_a_worker_s_mistake_is_raised_in_the_loop() -> None:
    made = small_data()
    fed = feed.Feed(made.task().train, torch.device("cpu"), workers=2)
    micros, _ = next(fed.batches(sampling.steps(np.arange(100), 50, 1, 0, 1)))
    with pytest.raises(IndexError):
        list(micros)


def test_decoded_arrays_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, kept = tmp_path / "source", tmp_path / "kept"
    source.mkdir()
    write_mnist(source, compress=True)
    first = data.load("mnist", source, kept)
    monkeypatch.setattr("jobgen.train.data.readers.mnist", lambda directory: pytest.fail("decoded again"))
    again = data.load("mnist", source, kept)
    assert isinstance(again.train.images, np.memmap)
    for one, two in zip((first.train, first.test), (again.train, again.test), strict=True):
        assert np.array_equal(one.images, two.images)
        assert np.array_equal(one.labels, two.labels)
        assert one.scale == two.scale
    assert again.classes == first.classes
    assert [each.name.partition("-")[0] for each in kept.iterdir()] == ["mnist"]


def test_changed_files_are_decoded_again(tmp_path: Path) -> None:
    source, kept = tmp_path / "source", tmp_path / "kept"
    source.mkdir()
    write_mnist(source, train=20)
    assert len(data.load("mnist", source, kept).train.labels) == 20
    write_mnist(source, train=30)
    assert len(data.load("mnist", source, kept).train.labels) == 30


def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="--cache .*file"):
        data.load("digits", None, tmp_path / "file")
    kept = tmp_path / "kept"
    data.load("digits", None, kept)
    (folder,) = kept.iterdir()
    (folder / "test.images.npy").write_bytes(b"")
    with pytest.raises(BadInput, match=f"--cache {folder} cannot be used"):
        data.load("digits", None, kept)


def test_the_last_rank_to_write_uses_the_first_one_s(tmp_path: Path) -> None:
    digits = data.digits()
    for _ in range(2):
        cache._write(digits, tmp_path / "digits-x")
    assert [each.name for each in tmp_path.iterdir()] == ["digits-x"]
