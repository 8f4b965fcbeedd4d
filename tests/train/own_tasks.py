"""Tasks and models of a user, for --dataset, --model, --loss and --metric own_tasks:NAME."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, SequentialSampler

TRAINED, TESTED, WORDS, LENGTH = 70, 30, 600, 6
READ: Counter[str] = Counter()


def _numbers(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and the values of a linear function."""
    random = np.random.default_rng(len(part))
    points = random.standard_normal((TRAINED if part == "train" else TESTED, 3)).astype(np.float32)
    return points, (points @ np.array([1.0, -2.0, 0.5], np.float32) + 3.0).astype(np.float32)


def _words(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of numbers above 256, which bf16 would round; each is followed by the next odd or even one."""
    random = np.random.default_rng(len(part))
    first = random.integers(300, WORDS - 2 * LENGTH, (TRAINED if part == "train" else TESTED, 1))
    words = first + 2 * np.arange(LENGTH + 1)
    targets = words[:, 1:].copy()
    targets[::3, -2:] = -100  # every third sample is shorter
    return words[:, :-1].astype(np.uint16), targets


def regression() -> dict[str, Any]:
    return {"train": _numbers("train"), "test": _numbers("test")}


def pairs() -> dict[str, Any]:
    """Ready pairs of flat images and one-hot vectors."""
    random = np.random.default_rng(0)
    made = {}
    for part, size in (("train", TRAINED), ("test", TESTED)):
        labels = random.integers(0, 4, size)
        flat = np.eye(4, 784, dtype=np.float32)[labels] + random.random((size, 784), np.float32) / 9
        made[part] = (flat, np.eye(4, dtype=np.float32)[labels])
    return {**made, "metrics": ["accuracy", "mae"]}


def words() -> dict[str, Any]:
    return {
        **{part: _words(part) for part in ("train", "test")},
        "outputs": WORDS,
        "metrics": ("perplexity", "accuracy"),
    }


def write(directory: Path) -> None:
    """Write the files that `mapped` reads."""
    for part in ("train", "test"):
        for name, array in zip(("inputs", "targets"), _words(part), strict=True):
            np.save(directory / f"{part}-{name}.npy", array)


def mapped(directory: Path) -> dict[str, Any]:
    """The same words in files that stay mapped into memory."""
    files = {
        part: tuple(
            np.load(directory / f"{part}-{name}.npy", mmap_mode="r") for name in ("inputs", "targets")
        )
        for part in ("train", "test")
    }
    return {**words(), **files}


class Sentences(Dataset[Any]):
    """The same words, one dict a sample."""

    def __init__(self, part: str) -> None:
        self._words, self._part = _words(part), part

    def __len__(self) -> int:
        return len(self._words[0])

    def __getitem__(self, index: int) -> dict[str, Any]:
        READ[self._part] += 1
        tokens, labels = (array[index].astype(np.int64) for array in self._words)
        return {"tokens": tokens, "labels": labels}


def sentences() -> dict[str, Any]:
    return {"train": Sentences("train"), "test": Sentences("test"), "loss": "model", "metrics": ()}


def _trimmed(samples: list[dict[str, Any]]) -> tuple[torch.Tensor, torch.Tensor]:
    tokens, labels = (
        torch.stack([torch.from_numpy(each[key]) for each in samples]) for key in ("tokens", "labels")
    )
    return tokens, labels


def collated() -> dict[str, Any]:
    return {**sentences(), "collate": _trimmed, "loss": "cross_entropy", "metrics": "perplexity"}


def loaders() -> dict[str, Any]:
    return {
        "train": DataLoader(Sentences("train"), 4, shuffle=True, collate_fn=_trimmed),
        "test": DataLoader(Sentences("test"), 4, collate_fn=_trimmed),
        "outputs": WORDS,
        "metrics": "perplexity",
    }


def in_order() -> dict[str, Any]:
    samples = Sentences("train")
    return {
        **loaders(),
        "train": DataLoader(samples, 4, sampler=SequentialSampler(samples), collate_fn=_trimmed),
    }


class Endless(IterableDataset[Any]):
    """An iterable data set without end."""

    def __iter__(self) -> Iterator[Any]:
        points, values = _numbers("train")
        number = 0
        while True:
            yield points[number % TRAINED], values[number % TRAINED]
            number += 1


def stream() -> dict[str, Any]:
    return {**regression(), "train": Endless(), "train_samples": 70}


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


class Scaled(nn.Module):
    """The first layer of `language`: embeddings of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, 16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        assert not tokens.is_floating_point()
        embedded: torch.Tensor = self.table(tokens)
        return embedded


def noisy() -> nn.Module:
    """A model with running statistics and random numbers."""
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))


def language() -> nn.Module:
    return nn.Sequential(Scaled(), nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, WORDS))


class Whole(nn.Module):
    """A model with outputs as transformers' models have them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = language()

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor | None = None) -> Any:
        logits = self.body(tokens)
        loss = None
        if labels is not None:
            each = nn.functional.cross_entropy(logits.float().movedim(-1, 1), labels, reduction="none")
            loss = (each.sum(1) / (labels != -100).sum(1)).mean()
        return SimpleNamespace(loss=loss, logits=logits)


class Dicts(Whole):
    def forward(self, tokens: torch.Tensor, labels: torch.Tensor | None = None) -> Any:
        return dict(vars(super().forward(tokens, labels)))


def of_tokens(outputs: Any, targets: torch.Tensor) -> torch.Tensor:
    """A user's loss: one value for each sample."""
    each = nn.functional.cross_entropy(outputs.float().movedim(-1, 1), targets, reduction="none")
    return each.sum(1) / (targets != -100).sum(1)


def squared(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """A user's loss: the mean of the batch."""
    return ((outputs.squeeze(1) - targets) ** 2).mean()


def worst(outputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, int]:
    """A user's metric: sum and count."""
    return ((outputs.float().squeeze(1) - targets).abs() > 1).sum(), len(targets)


worst.higher_is_better = False  # type: ignore[attr-defined]


def grouped(model: nn.Module, lr: float = 0.01) -> torch.optim.Optimizer:
    """A user's optimizer, with a lower rate for the vectors."""
    matrices, vectors = ([p for p in model.parameters() if (p.ndim > 1) is big] for big in (True, False))
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "lr": lr / 10}]
    return torch.optim.AdamW(groups, lr=lr)


def no_optimizer(model: nn.Module) -> str:
    return "adam"


def two_inputs() -> nn.Module:
    return nn.Bilinear(3, 3, 1)


def uneven() -> dict[str, Any]:
    def collate(samples: list[dict[str, Any]]) -> tuple[torch.Tensor, torch.Tensor]:
        return _trimmed(samples)[0], torch.zeros(len(samples) + 1)

    return {**sentences(), "collate": collate, "loss": "mse"}


def unreadable() -> dict[str, Any]:
    return {**sentences(), "collate": lambda samples: samples[0]["token"]}


def wide() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))


def pair_of_losses(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.zeros(2, 2)


class Balanced(nn.Sequential):
    def auxiliary_loss(self) -> torch.Tensor:
        return torch.ones(())


def balanced() -> nn.Module:
    return Balanced(*linear())
