"""The user's own data: --dataset package.module:name.

The function is called with --data (a Path, or None) if it has a parameter. It returns a Data, or a mapping
with the keys

train, test     (images, labels): arrays [samples, channels, height, width] and [samples], or
                a sequence of (image, label) pairs, such as a torch data set, which is decoded once
classes         names of the classes (default: 0, 1, ... up to the largest label)
full, mean, std normalisation of the pixels, see data.Data (default: 255 for uint8 and 1 for floats; 0; 1)

Images of type uint8 keep this type; others are converted to float32.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import own
from ..errors import BadInput
from .dataset import Data, Split

KEYS = ("train", "test", "classes", "full", "mean", "std")


def load(name: str, directory: Path | None) -> Data:
    """Return the data of the function `name`. Raise BadInput if they do not have the form described above."""
    build = own.find("--dataset", name)
    arguments = [directory] if own.parameters(build) else []
    made = own.call("--dataset", name, build, "NAME() or NAME(directory)", *arguments)
    if isinstance(made, Data):
        made = made._asdict()
    if not isinstance(made, Mapping) or not {"train", "test"} <= made.keys():
        raise BadInput(f"--dataset {name} must return a mapping with train and test, not {made!r:.60}")
    unknown = [key for key in made if key not in KEYS]
    if unknown:
        raise BadInput(f"--dataset {name} returns {unknown[0]!r}, which is not one of {', '.join(KEYS)}")
    train, test = (_split(made[part], f"--dataset {name}: {part}") for part in ("train", "test"))
    largest = int(max(train.labels.max(), test.labels.max()))
    named = made.get("classes")
    if named is not None and (isinstance(named, str) or not isinstance(named, Sequence) or not named):
        raise BadInput(f"--dataset {name}: classes must be a list of names, not {named!r:.60}")
    classes = tuple(map(str, named or range(largest + 1)))
    if largest >= len(classes):
        raise BadInput(f"--dataset {name} has label {largest} but only {len(classes)} classes")
    if train.images.shape[1:] != test.images.shape[1:]:
        raise BadInput(
            f"--dataset {name}: images of train have shape {train.images.shape[1:]}, of test "
            f"{test.images.shape[1:]}"
        )
    channels = train.images.shape[1]
    (full,) = _numbers(made.get("full"), 255.0 if train.images.dtype == np.uint8 else 1.0, 1, "full", name)
    mean = _numbers(made.get("mean"), 0.0, channels, "mean", name)
    std = _numbers(made.get("std"), 1.0, channels, "std", name)
    if full <= 0 or min(std) <= 0:
        raise BadInput(f"--dataset {name}: full and std divide the pixels and must be above 0")
    return Data(train, test, classes, full, mean, std)


def _split(given: Any, where: str) -> Split:
    images, labels = given if _is_pair(given) else _decoded(given, where)
    try:
        images, labels = np.asarray(images), np.asarray(labels)
        if images.dtype != np.uint8:
            images = images.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{where} images are not an array of numbers: {error}") from None
    if images.ndim != 4:
        raise BadInput(f"{where} images have shape {images.shape}, not [samples, channels, height, width]")
    if labels.shape != images.shape[:1] or not len(labels):
        raise BadInput(f"{where} has {len(images)} images but labels of shape {labels.shape}")
    if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
        raise BadInput(f"{where} labels must be whole numbers from 0, not {labels.dtype}")
    if images.dtype != np.uint8 and not np.isfinite(images).all():
        raise BadInput(f"{where} images have values that are not finite")
    return Split(images, labels.astype(np.int64))


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and hasattr(given[0], "shape")


def _decoded(given: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays of all images and labels. Each sample is decoded once here, and not in each epoch."""
    try:
        pairs = [given[i] for i in range(len(given))]
        images, labels = zip(*pairs, strict=True)
        return np.stack([np.asarray(image) for image in images]), np.asarray(labels)
    except (TypeError, ValueError, LookupError) as error:
        raise BadInput(f"{where} is neither (images, labels) nor a sequence of such pairs: {error}") from None


def _numbers(given: Any, fill: float, count: int, key: str, name: str) -> tuple[float, ...]:
    """Return one number for each of `count` channels; `fill` where none is given."""
    try:
        values = (fill,) * count if given is None else tuple(float(v) for v in np.atleast_1d(given))
    except (TypeError, ValueError):
        raise BadInput(f"--dataset {name}: {key} must be numbers, not {given!r:.60}") from None
    if len(values) != count:
        raise BadInput(f"--dataset {name}: {key} has {len(values)} values for {count} channels")
    return values
