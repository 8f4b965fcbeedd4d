"""A decoder-only transformer: Vaswani et al., arXiv 1706.03762, in the form of GPT-2 (Radford et al., 2019).

Each block normalises its input before the attention and before the feed-forward part (section 2.3 of GPT-2).
Positions are rotary embeddings of queries and keys (Su et al., arXiv 2104.09864), so there is no table of
positions to train. The embedding of the tokens is also the output layer (Press and Wolf, arXiv 1608.05859).
There are no biases. Input: token ids, int64 [n, tokens]; output: logits [n, tokens, vocabulary].

The model is an nn.Sequential, so that a pipeline can cut it between any two layers.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from ..config.language import Size
from .division import keep

BASE = 10000.0  # of the rotation rates, section 3.2.2 of Su et al.
STD = 0.02  # of the initial weights, as in GPT-2


def linear(inputs: int, outputs: int, std: float = STD) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(layer.weight, std=std)
    return layer


class Embedding(nn.Embedding):
    """Token ids [n, tokens] to vectors [n, tokens, width]."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__(vocabulary, width)
        nn.init.normal_(self.weight, std=STD)


class Unembedding(nn.Module):
    """Vectors [n, tokens, width] to logits [n, tokens, vocabulary], by the weights of the embedding.

    tied_to: the embedding. It is not a submodule, so that its weights have one name in the state_dict.
    """

    def __init__(self, embedding: Embedding) -> None:
        super().__init__()
        self._embedding = (embedding,)

    @property
    def tied_to(self) -> nn.Module:
        return self._embedding[0]

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return functional.linear(hidden, self._embedding[0].weight)


class Attention(nn.Module):
    """Causal self-attention: a token attends to itself and to the tokens before it, or by `mask`."""

    def __init__(self, size: Size, residual_std: float) -> None:
        super().__init__()
        self.heads = size.heads
        self.inputs = linear(size.width, 3 * size.width)
        self.output = linear(size.width, size.width, residual_std)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        n, tokens, width = hidden.shape
        split = self.inputs(hidden).view(n, tokens, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        values = functional.scaled_dot_product_attention(
            rotate(queries), rotate(keys), values, mask, is_causal=mask is None
        )
        result: torch.Tensor = self.output(values.transpose(1, 2).reshape(n, tokens, width))
        return result


def rotate(heads: torch.Tensor) -> torch.Tensor:
    """Return [..., tokens, channels] with each pair of channels turned by an angle that grows with the token.

    Channel i is paired with channel i + channels / 2. The rotation is computed in fp32.
    """
    rotation = _rotation if torch.compiler.is_compiling() else _rotation_cache
    cos, sin = rotation(heads.shape[-2], heads.shape[-1] // 2, heads.device)
    first, second = heads.float().chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(heads.dtype)


def _rotation(tokens: int, pairs: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    rates = BASE ** (-torch.arange(pairs, dtype=torch.float32, device=device) / pairs)
    angles = torch.outer(torch.arange(tokens, dtype=torch.float32, device=device), rates)
    return angles.cos(), angles.sin()


_rotation_cache = lru_cache(maxsize=8)(_rotation)  # torch.compile warns of such a function


class Gelu(nn.Module):
    """The feed-forward part of GPT-2: four times the width, and GELU (Hendrycks and Gimpel, 1606.08415)."""

    def __init__(self, width: int, residual_std: float) -> None:
        super().__init__()
        self.inputs = linear(width, 4 * width)
        self.output = linear(4 * width, width, residual_std)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.output(functional.gelu(self.inputs(hidden), approximate="tanh"))
        return result


class SwiGlu(nn.Module):
    """A gated feed-forward part with as many weights: Shazeer, arXiv 2002.05202."""

    def __init__(self, width: int, residual_std: float) -> None:
        super().__init__()
        inner = -(-8 * width // 3 // 64) * 64  # 8/3 of the width, rounded up to a multiple of 64
        self.inputs = linear(width, 2 * inner)
        self.output = linear(inner, width, residual_std)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        gate, values = self.inputs(hidden).chunk(2, dim=-1)
        result: torch.Tensor = self.output(functional.silu(gate) * values)
        return result


MLPS: dict[str, Callable[[int, float], nn.Module]] = {"gelu": Gelu, "swiglu": SwiGlu}


class Block(nn.Module):
    """Attention and the feed-forward part, each added to its input.

    recompute: keep only the block's input until the backward pass, which computes the rest again
    (activation checkpointing: Chen et al., arXiv 1604.06174)
    """

    def __init__(self, size: Size, feed_forward: nn.Module, residual_std: float, recompute: bool) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(size.width, bias=False)
        self.attention = Attention(size, residual_std)
        self.norm = nn.LayerNorm(size.width, bias=False)
        self.feed_forward = feed_forward
        self._recompute = recompute

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if self._recompute and torch.is_grad_enabled():
            # The reentrant form gives no gradients if its input has none, as behind a frozen embedding.
            reentrant = hidden.requires_grad
            again: torch.Tensor = checkpoint(self._compute, hidden, mask, use_reentrant=reentrant)
            return again
        return self._compute(hidden, mask)

    def _compute(self, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        hidden = hidden + self.attention(self.attention_norm(hidden), mask)
        result: torch.Tensor = hidden + self.feed_forward(self.norm(hidden))
        return result


class Decoder(nn.Sequential):
    """The layers of the model as a whole. A pipeline takes them one by one, without documents."""

    def forward(self, tokens: torch.Tensor, documents: torch.Tensor | None = None) -> torch.Tensor:
        """Return the logits. documents: of each token, [n, tokens]; it attends to its own document only."""
        mask = None
        if documents is not None:
            same = documents[:, :, None] == documents[:, None, :]
            mask = same.tril()[:, None]
        hidden = tokens
        for layer in self:
            hidden = layer(hidden, mask) if isinstance(layer, Block) else layer(hidden)
        return hidden


def layers(
    size: Size,
    vocabulary: int,
    mlp: str = "gelu",
    recompute: bool = False,
    mixture: Callable[[nn.Module], nn.Module] | None = None,
    divide: Callable[[nn.Module], None] = keep,
) -> list[nn.Module]:
    """Return the layers of the model, for an nn.Sequential.

    mixture: makes a mixture of experts of an expert; every second block then has one, as in GShard (Lepikhin
    et al., arXiv 2006.16668). divide: see division.Division.layer
    """
    residual_std = STD / (2 * size.layers) ** 0.5  # section 2.3 of GPT-2

    def with_division(layer: Any) -> Any:
        divide(layer)
        return layer

    def block(number: int) -> nn.Module:
        feed_forward = MLPS[mlp](size.width, residual_std)
        if mixture and number % 2:
            return Block(size, mixture(feed_forward), residual_std, recompute=False)
        return Block(size, feed_forward, residual_std, recompute)

    embedding = with_division(Embedding(vocabulary, size.width))
    blocks = [with_division(block(number)) for number in range(size.layers)]
    norm = with_division(nn.LayerNorm(size.width, bias=False))
    return [embedding, *blocks, norm, Unembedding(embedding)]
