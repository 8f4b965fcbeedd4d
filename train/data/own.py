"""The user's own data: --dataset package.module:name. docs/own-data.md describes the protocol.

The function is called with --data (a Path, or None) if it has a parameter. It returns a Task, a Data, or a
mapping with the keys

train, test     each one of
                (inputs, targets): arrays, or trees of arrays, whose first dimension counts the samples
                a map-style data set: __len__ and __getitem__, read when a sample is needed
                an iterable data set, with the number of samples of an epoch as its length or as
                train_samples, test_samples
                a torch DataLoader, of which the data set, the sampler, collate_fn and num_workers are used
                an object with __len__ and batch(indices) -> (inputs, targets)
collate         from a list of samples to a batch (default: torch's default_collate)
classes         names of the classes (default: 0, 1, ... up to the largest label)
outputs         number of values that the model returns for a sample (default: from classes or targets)
loss, metrics   those of a run without --loss and --metric: names or functions
full, mean, std normalisation of images, see sources.Scale (default: 255 for uint8 and 1 for floats; 0; 1)

A sample or batch is a pair (inputs, targets), or a mapping, whose values the model gets by name; its
`labels`, if any, are the targets. Inputs of the form [channels, height, width] are images. Only these are
normalised; uint8 images stay uint8 in memory. All other inputs reach the model as they are, but floats in the
type of the weights.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, default_collate
from torch.utils.data.distributed import DistributedSampler

from .. import trees, user_code
from ..errors import BadInput
from ..loss_functions import OF_THE_MODEL
from .dataset_sources import Items, Stream, UserSource
from .sources import Arrays, Images, Scale, Source
from .task import Data, Task

SCALE = ("full", "mean", "std")
KEYS = (
    *("train", "test", "collate", "classes", "outputs", "loss", "metrics", "train_samples", "test_samples"),
    *SCALE,
)
Result = Mapping[str, Any]


def load(name: str, directory: Path | None) -> Task:
    """Return the task of the function `name`. Raise BadInput if it does not have the form described above."""
    build = user_code.find("--dataset", name)
    arguments = [directory] if user_code.parameters(build) else []
    result = user_code.call("--dataset", name, build, "NAME() or NAME(directory)", *arguments)
    if isinstance(result, Task):
        return result
    if isinstance(result, Data):
        result = {**result._asdict(), "train": tuple(result.train), "test": tuple(result.test)}
    where = f"--dataset {name}"
    if not isinstance(result, Mapping) or not {"train", "test"} <= result.keys():
        raise BadInput(f"{where} must return a mapping with train and test, not {result!r:.60}")
    others = [key for key in result if key not in KEYS]
    if others:
        raise BadInput(f"{where} returns {others[0]!r}, which is not one of {', '.join(KEYS)}")
    return _task(result, where)


def _task(result: Result, where: str) -> Task:
    train, test = (_source(result, part, f"{where}: {part}") for part in ("train", "test"))
    shapes = [source.shape for source in (train, test)]
    _check_effects(result, {"train": train, "test": test}, where)
    if train.scale and shapes[0] != shapes[1]:
        raise BadInput(f"{where}: images of train have shape {shapes[0]}, of test {shapes[1]}")
    _, targets = train.batch(np.zeros(1, np.int64))
    classes = _classes(result, (train, test), targets, where)
    loss, metrics = _defaults(targets)
    metrics = result.get("metrics", metrics)
    return Task(
        train,
        test,
        classes,
        int(result.get("outputs") or len(classes) or _width(targets)),
        result.get("loss", loss),
        (metrics,) if isinstance(metrics, str) or callable(metrics) else tuple(metrics),
        _notes(result),
    )


def _check_effects(result: Result, sources: Mapping[str, Source], where: str) -> None:
    """Raise BadInput for a key that has no effect on these sources."""
    kinds = tuple(map(type, sources.values()))
    effects = {
        **dict.fromkeys(SCALE, ("images", any(source.scale for source in sources.values()))),
        "collate": ("samples of data sets", not {Items, Stream}.isdisjoint(kinds)),
        **{f"{part}_samples": ("iterable data sets", source.sequential) for part, source in sources.items()},
    }
    for key, (what, has_effect) in effects.items():
        if result.get(key) is not None and not has_effect:
            raise BadInput(f"{where} returns {key}, which is for {what}; here it would have no effect")


def _source(result: Result, part: str, where: str) -> Source:
    """Return the source that the function gave as train or test."""
    data, collate = result[part], result.get("collate")
    if isinstance(data, Source):
        return data
    # Data sets of Hugging Face have a method batch, too, of another meaning.
    if hasattr(data, "batch") and hasattr(data, "__len__") and not hasattr(data, "__getitem__"):
        return UserSource(data)
    if _is_arrays(data):
        return _arrays(data, result, where)
    sampler, workers = None, 0
    if isinstance(data, DataLoader):
        loader: DataLoader[Any] = data
        data, collate, sampler = loader.dataset, collate or loader.collate_fn, _sampler(loader, where)
        workers = loader.num_workers
    collate = collate or default_collate
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, IterableDataset):
        return _items(data, collate, sampler, result, where, workers)
    if hasattr(data, "__iter__"):
        return _stream(data, collate, result, part, where, workers)
    raise BadInput(
        f"{where} is {type(data).__name__}; it must be (inputs, targets), a map-style or iterable data "
        "set, a DataLoader, or an object with __len__ and batch(indices)"
    )


def _is_arrays(samples: Any) -> bool:
    if not isinstance(samples, tuple) or len(samples) != 2:
        return False
    arrays = list(trees.leaves(samples[0]))
    return bool(arrays) and all(isinstance(each, np.ndarray | torch.Tensor) for each in arrays)


def _arrays(samples: tuple[Any, Any], result: Result, where: str) -> Source:
    inputs, targets = samples
    targets = None if targets is None else trees.map_leaves(_array, targets)
    sizes = {leaf.shape[:1] for leaf in trees.leaves((inputs, targets))}
    if len(sizes) != 1 or sizes == {()} or sizes == {(0,)}:
        raise BadInput(
            f"{where} has inputs {trees.shapes(inputs)} and targets {trees.shapes(targets)}; all need the "
            "same number of samples, from 1"
        )
    for leaf in trees.leaves((inputs, targets)):
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "biuf":
            raise BadInput(f"{where} has an array of {leaf.dtype}, which is not one of numbers")
    if isinstance(inputs, torch.Tensor) and inputs.ndim == 4:
        inputs = inputs.numpy()
    if not isinstance(inputs, np.ndarray) or inputs.ndim != 4 or not isinstance(targets, np.ndarray):
        return Arrays(inputs, targets)
    if inputs.dtype != np.uint8 and not isinstance(inputs, np.memmap):
        inputs = np.asarray(inputs, np.float32)
        if not np.isfinite(inputs).all():
            raise BadInput(f"{where} images have values that are not finite")
    return Images(inputs, targets, _scale(result, inputs.shape[1], inputs.dtype == np.uint8, where))


def _array(leaf: Any) -> Any:
    """Return a leaf of the targets as an array; one class index for each sample in torch's own type."""
    if isinstance(leaf, torch.Tensor):
        leaf = leaf.numpy()
    array = np.asarray(leaf)
    return array.astype(np.int64) if array.dtype.kind in "iu" and array.ndim == 1 else array


def _items(samples: Any, collate: Any, sampler: Any, result: Result, where: str, workers: int) -> Source:
    try:
        if not len(samples):
            raise BadInput(f"{where} has no samples")
        source = Items(samples, collate, sampler)
        inputs, _ = source.batch(np.zeros(1, np.int64))
    except (TypeError, ValueError, LookupError) as error:
        raise BadInput(f"{where}: its first sample cannot be read: {error!r}") from None
    return Items(samples, collate, sampler, _scale_of(inputs, result, where), workers)


def _stream(samples: Any, collate: Any, result: Result, part: str, where: str, workers: int) -> Source:
    length = result.get(f"{part}_samples", len(samples) if hasattr(samples, "__len__") else None)
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise BadInput(
            f"{where} is an iterable data set: give the number of samples of an epoch as {part}_samples, "
            f"a whole number from 1, not {length!r}"
        )
    if iter(samples) is samples:
        raise BadInput(f"{where} is an iterator, which ends after one epoch: give an object with __iter__")
    inputs, _ = Stream(samples, collate, length).batch(np.zeros(1, np.int64))
    return Stream(samples, collate, length, _scale_of(inputs, result, where), workers)


def _sampler(loader: Any, where: str) -> Any:
    """Return the sampler of a DataLoader; None for one in a random order, which is ours.

    Raise BadInput for a loader of whole batches, and for one that divides the samples over ranks.
    """
    if loader.batch_size is None or isinstance(loader.sampler, DistributedSampler):
        kind = "batches" if loader.batch_size is None else "the samples of one rank"
        raise BadInput(
            f"{where}: the DataLoader yields {kind}, which cannot be divided over the ranks again; give it a "
            "batch_size and an ordinary sampler"
        )
    sampler = loader.sampler
    plain = isinstance(sampler, RandomSampler) and not sampler.replacement
    return None if plain and len(sampler) == len(loader.dataset) else sampler


def _notes(result: Result) -> tuple[str, ...]:
    """Return notes on the settings of a DataLoader that options replace."""
    loaders = [result[part] for part in ("train", "test") if isinstance(result[part], DataLoader)]
    notes = {
        "batch_size, which --batch-size replaces": any(each.batch_size != 1 for each in loaders),
        "drop_last: every sample is used": any(each.drop_last for each in loaders),
    }
    return tuple(f"the DataLoader is used without its {what}" for what, there in notes.items() if there)


def _scale_of(inputs: Any, result: Result, where: str) -> Scale | None:
    """Return the normalisation if the inputs, a batch of one, are images."""
    if not isinstance(inputs, torch.Tensor) or inputs.ndim != 4:
        return None
    return _scale(result, inputs.shape[1], inputs.dtype == torch.uint8, where)


def _scale(result: Result, channels: int, small: bool, where: str) -> Scale:
    where = where.rpartition(":")[0]
    (full,) = _numbers(result.get("full"), 255.0 if small else 1.0, 1, "full", where)
    mean = _numbers(result.get("mean"), 0.0, channels, "mean", where)
    std = _numbers(result.get("std"), 1.0, channels, "std", where)
    if full <= 0 or min(std) <= 0:
        raise BadInput(f"{where}: full and std divide the pixels and must be above 0")
    return Scale(full, mean, std)


def _numbers(value: Any, fill: float, count: int, key: str, where: str) -> tuple[float, ...]:
    """Return one number for each of `count` channels; `fill` where none is given."""
    try:
        values = (fill,) * count if value is None else tuple(float(v) for v in np.atleast_1d(value))
    except (TypeError, ValueError):
        raise BadInput(f"{where}: {key} must be numbers, not {value!r:.60}") from None
    if len(values) != count:
        raise BadInput(f"{where}: {key} has {len(values)} values for {count} channels")
    return values


def _classes(result: Result, sources: tuple[Source, Source], targets: Any, where: str) -> tuple[str, ...]:
    """Return the names of the classes; () if the targets are not one class index for each sample."""
    classes = result.get("classes")
    if classes is not None and (isinstance(classes, str) or not isinstance(classes, Sequence) or not classes):
        raise BadInput(f"{where}: classes must be a list of names, not {classes!r:.60}")
    names = tuple(map(str, classes or ()))
    if not _is_index(targets):
        return names
    names = names or tuple(map(str, getattr(result["train"], "classes", ())))  # as torchvision's have
    largest = _largest(sources, result, bool(names), where)
    if names and largest >= len(names):
        raise BadInput(f"{where} has label {largest} but only {len(names)} classes")
    return names or tuple(map(str, range(largest + 1)))


def _is_index(targets: Any) -> bool:
    whole = isinstance(targets, torch.Tensor) and not targets.is_floating_point()
    return whole and targets.ndim == 1


def _largest(sources: tuple[Source, Source], result: Result, has_names: bool, where: str) -> int:
    """Return the largest label of arrays, or of data sets without names of classes; -1 if unknown."""
    labels = [-1]
    for source in sources:
        if isinstance(source, Arrays | Images):
            if int(source.labels.min()) < 0:
                raise BadInput(f"{where}: labels must be whole numbers from 0, not {source.labels.min()}")
            labels.append(int(source.labels.max()))
        elif not has_names and "outputs" not in result:
            if source.sequential:
                raise BadInput(f"{where} is an iterable data set: give the names of its `classes`")
            labels += (int(source.batch(np.array([i]))[1]) for i in range(len(source)))
    return max(labels)


def _width(targets: Any) -> int:
    """Return the number of values of one sample's targets; 0 if they are no single tensor."""
    if not isinstance(targets, torch.Tensor):
        return 0
    return int(targets.shape[-1]) if targets.ndim > 1 else 1


def _defaults(targets: Any) -> tuple[str, tuple[str, ...]]:
    """Return the loss and the metrics that suit these targets."""
    if targets is None or not isinstance(targets, torch.Tensor):
        return OF_THE_MODEL, ()
    return ("mse", ("mae",)) if targets.is_floating_point() else ("cross_entropy", ("accuracy",))
