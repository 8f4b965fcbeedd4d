"""Random augmentation of training images (--augment): a crop of the zero-padded image, and a flip.

As in section 4.2 of https://arxiv.org/abs/1512.03385. The changes depend only on the seed, the epoch and the
index of the sample, so that they are the same for any number of ranks and threads and any kind of device. On
an accelerator, one gather moves all pixels. On the CPU, this takes four times as long as one slice for each
image.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from ..errors import CommonMistake


class Augmentation(NamedTuple):
    """padding: pixels on each side before the crop, 0 for no crop; flip: mirror images at random."""

    padding: int
    flip: bool


class Draw(NamedTuple):
    """The random changes to a batch of images, one element for each image.

    down, right: shift in pixels, from -padding to padding; mirror: whether the image is flipped
    """

    down: np.ndarray
    right: np.ndarray
    mirror: np.ndarray


def parse(words: Sequence[str], height: int, width: int | None = None) -> Augmentation | None:
    """Return the augmentation that --augment's words describe for images of this size; None for no words.

    width: default is height. Raise CommonMistake for a crop that may contain nothing of an image.
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
    """Return the changes to the samples with these indices."""
    bits = _hash(samples, *np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64))
    places = np.uint64(2 * augmentation.padding + 1)
    down, right = (
        (bits >> np.uint64(shift) & np.uint64(0xFFFF)) * places >> np.uint64(16) for shift in (0, 16)
    )
    mirror = (bits >> np.uint64(32) & np.uint64(1)).astype(bool) & augmentation.flip
    return Draw(
        down.astype(np.int64) - augmentation.padding, right.astype(np.int64) - augmentation.padding, mirror
    )


def _hash(samples: np.ndarray, key: np.uint64) -> np.ndarray:
    """Return 64 random bits for each index: SplitMix64, Steele et al., doi.org/10.1145/2660193.2660195."""
    x = samples.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def on_host(images: np.ndarray, samples: np.ndarray, changes: Draw) -> np.ndarray:
    """Return the samples with these indices, changed: [len(samples), channels, height, width]."""
    height, width = images.shape[2:]
    out = np.zeros((len(samples), *images.shape[1:]), images.dtype)
    rows = zip(samples.tolist(), *(each.tolist() for each in changes), strict=True)
    for image_out, (sample, down, right, mirror) in zip(out, rows, strict=True):
        image = images[sample, :, :, ::-1] if mirror else images[sample]
        to_y, from_y = _overlap(down, height)
        to_x, from_x = _overlap(right, width)
        image_out[:, to_y, to_x] = image[:, from_y, from_x]
    return out


def _overlap(shift: int, size: int) -> tuple[slice, slice]:
    """Return the target and the source slice of a line of `size` pixels that is moved by `shift`."""
    return slice(max(0, shift), size + min(0, shift)), slice(max(0, -shift), size - max(0, shift))


def by_one_gather(images: torch.Tensor, changes: torch.Tensor, padding: int) -> torch.Tensor:
    """Return the changed images, [n, channels, height, width], by one gather on their device.

    changes: the fields of Draw as rows, int64 [3, n], on the same device
    """
    n, channels, height, width = images.shape
    down, right, mirror = (row[:, None] for row in changes)
    rows = torch.arange(height, device=images.device) - down + padding
    columns = torch.arange(width, device=images.device) - right
    columns = torch.where(mirror.bool(), width - 1 - columns, columns) + padding
    place = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    image = functional.pad(images, [padding] * 4).view(n, channels, -1)
    place = place.view(n, 1, -1).expand(n, channels, -1)
    return image.gather(2, place).view(images.shape)
