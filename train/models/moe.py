"""The small convolutional network with a mixture of experts before its last layer.

See Shazeer et al., arXiv 1701.06538. The expert layer is DeepSpeed's: a gate sends each sample to its top-k
experts, and each of the --expert-parallel ranks holds a part of the experts. An expert does not process
samples that exceed its capacity.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from .. import models
from ..config import Settings
from ..config.language import size
from . import gpt

WIDTH = 84


@dataclass(frozen=True)
class Experts:
    """The settings of the expert layer.

    capacity: capacity of an expert, as a multiple of an equal share of the samples, and at least min_capacity
    samples; residual: a dense layer beside the experts (PR-MoE, arXiv 2201.05596); aux_weight: weight of the
    load-balancing loss
    """

    number: int = 4
    parallel: int = 1
    top_k: int = 1
    capacity: float = 1.0
    min_capacity: int = 4
    residual: bool = False
    noisy_gate: str | None = None
    aux_weight: float = 0.01


GATES = {"none": None, "rsample": "RSample", "jitter": "Jitter"}


def experts(settings: Settings) -> Experts:
    """Return the settings of the options; defaults where no option is given."""
    options: dict[str, Any] = {
        "number": settings.experts,
        "parallel": settings.expert_parallel,
        "top_k": settings.top_k,
        "capacity": settings.capacity,
        "min_capacity": settings.min_capacity,
        "residual": settings.residual,
        "aux_weight": settings.aux_weight,
    }
    noisy = GATES[settings.noisy_gate or "none"]
    return Experts(**{key: value for key, value in options.items() if value is not None}, noisy_gate=noisy)


def build(shape: tuple[int, int, int], classes: int, options: Experts) -> nn.Module:
    """Return the model for images of `shape`. DeepSpeed must be imported and initialised."""
    models.check("moe", shape, classes)
    return MoeCnn(shape, classes, options)


class MoeCnn(nn.Module):
    """The layers of the convolutional network up to 84 features, the experts, and the last dense layer."""

    def __init__(self, shape: tuple[int, int, int], classes: int, options: Experts) -> None:
        super().__init__()
        *features, head = models.cnn(shape, classes)
        self.features = nn.Sequential(*features)
        self.experts = _layer(WIDTH, nn.Linear(WIDTH, WIDTH), options)
        self.head = head
        self._aux_weight = options.aux_weight
        self._balance: torch.Tensor | None = None

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden, self._balance, _ = self.experts(self.features(images))
        logits: torch.Tensor = self.head(hidden)
        return logits

    def auxiliary_loss(self) -> torch.Tensor:
        """Return the weighted load-balancing loss per sample of the last forward pass."""
        assert self._balance is not None
        loss: torch.Tensor = self._aux_weight * self._balance.float()
        return loss


def _layer(width: int, expert: nn.Module, options: Experts) -> Any:
    from deepspeed.moe.layer import MoE

    return MoE(
        hidden_size=width,
        expert=expert,
        num_experts=options.number,
        ep_size=options.parallel,
        k=options.top_k,
        capacity_factor=options.capacity,
        min_capacity=options.min_capacity,
        use_residual=options.residual,
        noisy_gate_policy=options.noisy_gate,
    )


class Mixture(nn.Module):
    """A mixture of copies of `expert` as one part of a larger model: [..., width] to the same shape."""

    def __init__(self, width: int, expert: nn.Module, options: Experts) -> None:
        super().__init__()
        self.gated = _layer(width, expert, options)
        self.balance: torch.Tensor | None = None  # the load-balancing loss of the last forward pass

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor
        output, self.balance, _ = self.gated(hidden)
        return output


class MixtureModel(gpt.Decoder):
    """A model with layers that contain a Mixture. aux_weight: weight of the sum of their balances"""

    def __init__(self, *layers: nn.Module, aux_weight: float) -> None:
        super().__init__(*layers)
        self._aux_weight = aux_weight

    def auxiliary_loss(self) -> torch.Tensor:
        """Return the weighted load-balancing loss per sample of the last forward pass."""
        parts = [module.balance for module in self.modules() if isinstance(module, Mixture)]
        balances = [balance.float() for balance in parts if balance is not None]
        return self._aux_weight * torch.stack(balances).sum()


def addition(width: int, expert: int, options: Experts) -> int:
    """Return the parameters of a mixture on one rank beyond those of one expert, which has `expert`."""
    residual = expert + 2 * width + 2 if options.residual else 0
    return width * options.number + expert * (options.number // options.parallel - 1) + residual


def extra(settings: Settings, dense: nn.Module, per_sample: bool = False) -> int:
    """Return how many more parameters than `dense`, the model without experts, the model has on one rank.

    per_sample: count only the experts that a sample visits, on any rank
    """
    options = experts(settings)
    if per_sample:
        options = replace(options, number=options.top_k, parallel=1)
    if settings.model == "moe":
        layer = WIDTH * WIDTH + WIDTH
        return layer + addition(WIDTH, layer, options)
    parts = [m.feed_forward for m in dense.modules() if isinstance(m, gpt.Block)][1::2]
    return sum(
        addition(size(settings).width, sum(p.numel() for p in part.parameters()), options) for part in parts
    )
