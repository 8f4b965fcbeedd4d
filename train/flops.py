"""Tokens per second and model FLOP utilisation of a language model. Does not import torch.

A training step does 6 N + 12 L W T floating-point operations per token: two for each of the N parameters in
the forward pass and four in the backward pass (Kaplan et al., arXiv 2001.08361, section 2.1), and the
products of the attention of L layers of width W over T tokens (Chowdhery et al., arXiv 2204.02311, appendix
B). As there, the causal mask and activation checkpointing change nothing: utilisation counts the operations
that the model needs, not those that the device does. N includes the embedding, which is also the output
layer. Of a mixture of experts it includes only the experts that a token visits.
"""

from typing import NamedTuple

RATES = ("tokens_per_second", "model_flop_utilisation")


class Work(NamedTuple):
    """The work of a sample.

    tokens: in a sample; per_token: floating-point operations in a training step, or None if unknown; peak:
    operations per second of all devices, or None if unknown
    """

    tokens: int
    per_token: int | None
    peak: float | None

    def rates(self, samples_per_second: float) -> dict[str, float]:
        """Return tokens_per_second and, if it is known, model_flop_utilisation, a fraction of the peak."""
        tokens = samples_per_second * self.tokens
        if not (self.per_token and self.peak):
            return {RATES[0]: round(tokens, 1)}
        return {RATES[0]: round(tokens, 1), RATES[1]: round(tokens * self.per_token / self.peak, 6)}


def per_token(parameters: int, layers: int, width: int, context: int, frozen: int = 0) -> int:
    """Return the floating-point operations of a training step per token.

    frozen: number of the parameters that are not trained, which need no gradient of their own
    """
    return 6 * parameters - 2 * frozen + 12 * layers * width * context


def text(rates: dict[str, float]) -> str:
    """Return the rates for a line of the log, each after a space."""
    tokens, share = (rates.get(name) for name in RATES)
    return (f" {tokens:.0f} tokens/s" if tokens else "") + (f" MFU {share:.1%}" if share is not None else "")
