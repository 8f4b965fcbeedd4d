"""Random changes to training images (--augment), as in section 4.2 of https://arxiv.org/abs/1512.03385:
a crop of the image padded with zeros, and a flip.

They depend on seed, epoch and the sample's number alone, so that they are the same for any number of
ranks, threads and kinds of device. On an accelerator one gather moves all pixels; on the CPU that takes
four times as long as a slice for each image.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from ..errors import CommonMistake


class Augmentation(NamedTuple):
    """padding: pixels on each side before the crop, 0 for no crop."""

    padding: int
    flip: bool


class Draw(NamedTuple):
    """For each image: how far it moves down and right (-padding to padding), and whether it is mirrored."""

    down: np.ndarray
    right: np.ndarray
    mirrored: np.ndarray


def parse(words: Sequence[str], height: int, width: int | None = None) -> Augmentation | None:
    """What --augment's words mean for images of that size (default: square); None for no words.

    Raises CommonMistake for a crop that may have nothing of an image in it.
    """
    padding = 0
    for word in words:
        if word.startswith("crop"):
            padding = int(word.partition(":")[2] or max(1, height // 8))
    if padding >= min(height, width or height):
        raise CommonMistake(
            f"--augment crop:{padding} may leave nothing of images of {height} x {width or height} pixels"
        )
    return Augmentation(padding, "flip" in words) if words else None


def draw(augmentation: Augmentation, seed: int, epoch: int, samples: np.ndarray) -> Draw:
    """The changes to samples of these numbers."""
    bits = _hash(samples, *np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64))
    places = np.uint64(2 * augmentation.padding + 1)
    down, right = (
        (bits >> np.uint64(shift) & np.uint64(0xFFFF)) * places >> np.uint64(16) for shift in (0, 16)
    )
    mirrored = (bits >> np.uint64(32) & np.uint64(1)).astype(bool) & augmentation.flip
    return Draw(
        down.astype(np.int64) - augmentation.padding, right.astype(np.int64) - augmentation.padding, mirrored
    )


def _hash(samples: np.ndarray, key: np.uint64) -> np.ndarray:
    """64 random bits for each number: SplitMix64, Steele et al., doi.org/10.1145/2660193.2660195."""
    x = samples.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def on_host(images: np.ndarray, samples: np.ndarray, changes: Draw) -> np.ndarray:
    """The images of these numbers, changed: [len(samples), channels, height, width]."""
    height, width = images.shape[2:]
    out = np.zeros((len(samples), *images.shape[1:]), images.dtype)
    rows = zip(samples.tolist(), *(each.tolist() for each in changes), strict=True)
    for made, (sample, down, right, mirrored) in zip(out, rows, strict=True):
        image = images[sample, :, :, ::-1] if mirrored else images[sample]
        to_y, from_y = _overlap(down, height)
        to_x, from_x = _overlap(right, width)
        made[:, to_y, to_x] = image[:, from_y, from_x]
    return out


def _overlap(shift: int, size: int) -> tuple[slice, slice]:
    """Where a line of `size` pixels, moved by `shift`, comes to lie in a line as long, and from where."""
    return slice(max(0, shift), size + min(0, shift)), slice(max(0, -shift), size - max(0, shift))


def on_device(images: torch.Tensor, changes: Draw, padding: int) -> torch.Tensor:
    """The images [n, channels, height, width], changed, by one gather on their device."""
    n, channels, height, width = images.shape
    down, right, mirrored = (torch.from_numpy(each).to(images.device)[:, None] for each in changes)
    rows = torch.arange(height, device=images.device) - down + padding
    columns = torch.arange(width, device=images.device) - right
    columns = torch.where(mirrored, width - 1 - columns, columns) + padding
    place = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    padded = functional.pad(images, [padding] * 4).view(n, channels, -1)
    place = place.view(n, 1, -1).expand(n, channels, -1)
    return padded.gather(2, place).view(images.shape)
