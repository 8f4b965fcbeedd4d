"""Corrections of DeepSpeed 0.19.8, applied once after it is imported."""

import functools
from collections.abc import Callable
from typing import Any

import torch

EXPERTS = ".deepspeed_moe.experts.deepspeed_experts."  # in the names of the weights of experts


def apply(deepspeed: Any) -> None:
    """Correct the module. A second call does nothing more."""
    if getattr(deepspeed, "corrected_by_jobgen", False):
        return
    deepspeed.corrected_by_jobgen = True
    _muon_for_matrices(deepspeed)
    _no_step_before_the_first()
    _only_experts_leave_the_checkpoint(deepspeed)
    _no_chance_in_evaluations()


def _only_experts_leave_the_checkpoint(deepspeed: Any) -> None:
    """Keep all weights of an MoE layer in a checkpoint except its experts, which have files of their own.

    DeepSpeed leaves out each weight below the layer with "expert" in its name. If the layer itself has such a
    name, the dense layer beside the experts (PR-MoE) would be lost.
    """

    def without_experts(self: Any, state: dict[str, Any]) -> dict[str, Any]:
        for name in [name for name in state if EXPERTS in f".{name}"]:
            del state[name]
        return state

    deepspeed.DeepSpeedEngine._get_non_moe_state_dict = without_experts


def _no_chance_in_evaluations() -> None:
    """Make the gates of experts deterministic in evaluation mode, and let them drop no sample.

    DeepSpeed draws the second expert (top-2) and the samples beyond a capacity (top-1) at random there. What
    exceeds a capacity depends on the samples of a pass, and so on the number of ranks.
    """
    from deepspeed.moe.sharded_moe import TopKGate

    own: Callable[..., Any] = TopKGate.forward

    @functools.wraps(own)
    def forward(self: Any, *args: Any, **named: Any) -> Any:
        before = self.top2_2nd_expert_sampling, self.use_rts, self.eval_capacity_factor
        if not self.training:
            self.top2_2nd_expert_sampling = self.use_rts = False
            self.eval_capacity_factor = max(self.eval_capacity_factor, self.wg.out_features / self.k)
        try:
            return own(self, *args, **named)
        finally:
            self.top2_2nd_expert_sampling, self.use_rts, self.eval_capacity_factor = before

    TopKGate.forward = forward


def _no_step_before_the_first() -> None:
    """Disable the additional first step of DeepSpeed 0.19.8 in half precision at ZeRO stage 0.

    DeepSpeed does a step with zero gradients to create the optimizer's states. Adam counts this step, so that
    the first real step is a quarter smaller.
    """
    from deepspeed.runtime.fp16.fused_optimizer import FP16_Optimizer
    from deepspeed.runtime.fp16.unfused_optimizer import FP16_UnfusedOptimizer

    for kind in (FP16_Optimizer, FP16_UnfusedOptimizer):
        kind.initialize_optimizer_states = lambda self: None


def _muon_for_matrices(deepspeed: Any) -> None:
    """Leave convolutions to Muon's Adam: DeepSpeed 0.19.8 flattens their update and fails to add it."""
    own = deepspeed.set_optimizer_flags

    def flags(config: Any, model: torch.nn.Module) -> None:
        own(config, model)
        for parameter in model.parameters():
            if (
                getattr(parameter, "use_muon", False)
                and len(getattr(parameter, "ds_shape", parameter.shape)) > 2
            ):
                parameter.use_muon = False  # type: ignore[attr-defined]

    deepspeed.set_optimizer_flags = flags
