"""Learning rates as closed forms of the number of steps done, the same for every engine.

A schedule is described as in DeepSpeed's config: {"type": ..., "params": {...}}. DeepSpeed's own types give
the values of its classes (deepspeed/runtime/lr_schedules.py). These classes set the rate of the first step
separately and count the following steps from 0, so that a warm-up begins with two equal steps. MultiStepLR
and CosineAnnealingLR have no such step, like torch's schedulers of the same names. Does not import torch.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import user_code
from ..errors import CommonMistake
from .converters import is_own
from .steppers import Curve, MetricScheduler, OwnScheduler, Schedule, Scheduler

Params = Mapping[str, Any]
PLATEAU = "ReduceLROnPlateau"


def make(block: Params | None, lr: float, total: int) -> Schedule:
    """Return the schedule that `block` describes; None is a constant rate.

    lr: learning rate of the optimizer; total: number of steps of the run
    """
    if not block:
        return Schedule(lambda step: lr)
    kind, params = block["type"], block.get("params", {})
    if kind == "OneCycle":
        return one_cycle(params)
    curves = {
        "WarmupLR": warmup,
        "WarmupDecayLR": warmup_decay,
        "WarmupCosineLR": warmup_cosine,
        "LRRangeTest": range_test,
        "MultiStepLR": multistep,
        "CosineAnnealingLR": cosine,
    }
    return Schedule(curves[kind](params, lr, total))


def warmup(params: Params, lr: float, total: int) -> Curve:
    """Return WarmupLR: from warmup_min_lr up to warmup_max_lr in warmup_num_steps, then constant."""
    return _from_low_to_high(params, params.get("warmup_max_lr") or lr, lambda step: 1.0)


def warmup_decay(params: Params, lr: float, total: int) -> Curve:
    """Return WarmupDecayLR: as WarmupLR, then linearly down to end_lr, reached after total_num_steps.

    DeepSpeed's class has no end_lr: it always ends at warmup_min_lr, the default here.
    """
    steps = _warmup_steps(params)
    end = params.get("total_num_steps", total)
    return _from_low_to_high(
        params,
        params.get("warmup_max_lr", 0.001),
        lambda step: max(0.0, (end - step) / max(1, end - steps)),
        params.get("end_lr"),
    )


def warmup_cosine(params: Params, lr: float, total: int) -> Curve:
    """Return WarmupCosineLR: `lr` times a ratio, which rises to 1 and falls along half a cosine.

    The ratio begins with warmup_min_ratio and ends with cos_min_ratio. The first step has warmup_min_ratio.
    With DeepSpeed's class, this step has a learning rate of 0 and no effect.
    """
    steps: int = _warmup_steps(params)
    low: float = params.get("warmup_min_ratio", 0.0)
    end: int = params.get("total_num_steps", total)
    floor: float = params.get("cos_min_ratio", 0.0001)

    def rate(step: int) -> float:
        after = step - 1
        if after < steps:
            return lr * (low + (1 - low) * _rise(params, after, steps))
        progress = min(1.0, (after - steps + 1) / max(1, end - steps))
        return lr * (floor + (1 - floor) * (1 + math.cos(math.pi * progress)) / 2)

    return rate


def range_test(params: Params, lr: float, total: int) -> Curve:
    """Return LRRangeTest: an increase to find the largest usable rate (Smith 2017, arXiv 1506.01186)."""
    low, size = params.get("lr_range_test_min_lr", 0.001), params.get("lr_range_test_step_size", 2000)
    slope, stairs = params.get("lr_range_test_step_rate", 1.0), params.get("lr_range_test_staircase", False)
    return lambda step: low * (1 + slope * (step // size if stairs else step / size))


def multistep(params: Params, lr: float, total: int) -> Curve:
    """Return MultiStepLR: `lr`, multiplied by gamma at each milestone."""
    milestones, gamma = sorted(params["milestones"]), params.get("gamma", 0.1)
    return lambda step: lr * gamma ** bisect_right(milestones, step)


def cosine(params: Params, lr: float, total: int) -> Curve:
    """Return CosineAnnealingLR: `lr` to eta_min in T_max steps (Loshchilov and Hutter, arXiv 1608.03983)."""
    end, low = params.get("T_max", total), params.get("eta_min", 0.0)
    return lambda step: low + (lr - low) * (1 + math.cos(math.pi * min(1.0, step / end))) / 2


def one_cycle(params: Params) -> Schedule:
    """Return OneCycle: up, down, then decay, and the opposite for Adam's beta (Smith, arXiv 1803.09820)."""
    low: float = params["cycle_min_lr"]
    high: float = params["cycle_max_lr"]
    least: float = params.get("cycle_min_mom", 0.8)
    most: float = params.get("cycle_max_mom", 0.9)
    first: int = params.get("cycle_first_step_size", 2000)
    second: int | None = params.get("cycle_second_step_size")
    second = first if second is None else second
    up_stairs: int = params.get("cycle_first_stair_count", 0)
    down_stairs: int = params.get("cycle_second_stair_count") or up_stairs
    interval: int = params.get("decay_step_size", 0)

    def height(step: int) -> float:
        place = step % (first + second)
        up = place <= first
        part = place / first if up else (first + second - place) / second
        count = up_stairs if up else down_stairs
        return math.floor(part * count) / count if count else part

    def decay(step: int, rate: str) -> float:
        slope: float = params.get(rate, 0.0)
        return 1 + slope * (step - first - second) / interval if interval else 1.0

    def lr(step: int) -> float:
        if step <= first + second:
            return low + (high - low) * height(step)
        return low / decay(step, "decay_lr_rate")

    def beta(step: int) -> float:
        if step == 0:
            return least  # the value before the first step in DeepSpeed's class
        if step <= first + second:
            return most - (most - least) * height(step)
        return most * decay(step, "decay_mom_rate")

    return Schedule(lr, beta if params.get("cycle_momentum", True) else None)


def _from_low_to_high(params: Params, high: float, then: Curve, end: float | None = None) -> Curve:
    """Return a warm-up to `high`, then the share `then` of the way from `end` (None: the start) to `high`."""
    steps: int = _warmup_steps(params)
    low: float = params.get("warmup_min_lr", 0.0)
    last = low if end is None else end

    def rate(step: int) -> float:
        after = step - 1
        if after < steps:
            return low + (high - low) * _rise(params, after, steps)
        return last + (high - last) * then(after)

    return rate


def _warmup_steps(params: Params) -> int:
    steps: int = params.get("warmup_num_steps", 1000)
    return max(2, steps)


def _rise(params: Params, after: int, steps: int) -> float:
    if after <= 0:
        return 0.0
    if params.get("warmup_type", "log") == "linear":
        return after / steps
    return math.log(after + 1) / math.log(steps)


class Plan(NamedTuple):
    """A description of the schedule, from which `attach` makes the scheduler when the optimizer exists.

    higher: larger values are better, of the metric that the scheduler of a metric is called with
    source: origin of the block, for messages
    """

    block: dict[str, Any] | None
    lr: float
    total: int
    per_epoch: bool
    higher: bool = False
    source: str = "--scheduler"

    def attach(self, optimizer: Any) -> Scheduler | OwnScheduler:
        """Return the scheduler of this optimizer, with the rate of the first step set.

        Raise CommonMistake if the user's own scheduler cannot be called as required.
        """
        if self.block and self.block["type"] == PLATEAU:
            of_torch = user_code.find(self.source, f"torch.optim.lr_scheduler:{PLATEAU}")
            mode = "max" if self.higher else "min"
            return MetricScheduler(optimizer, of_torch(optimizer, mode, **self.block["params"]))
        if not self.block or not is_own(self.block["type"]):
            schedule = make(self.block, self.lr, self.total)
            return Scheduler(optimizer, schedule, self.lr, self.per_epoch)
        return self._own(self.block["type"], optimizer)

    def closed_form(self) -> Curve | None:
        """Return the learning rate as a function of the steps done; None if only the scheduler knows it."""
        if self.block and (self.block["type"] == PLATEAU or is_own(self.block["type"])):
            return None
        return make(self.block, self.lr, self.total).rate

    def _own(self, name: str, optimizer: Any) -> Scheduler | OwnScheduler:
        function = user_code.find(self.source, name)
        assert self.block
        facts = {"total_steps": self.total, "lr": self.lr, **self.block.get("params", {})}
        parameters = user_code.parameters(function)
        arguments = {key: value for key, value in facts.items() if key in parameters}
        words = "".join(f", {key}={value}" for key, value in arguments.items())
        if "step" in parameters:

            def rate(step: int) -> float:
                form = f"NAME(step={step}{words})"
                factor = user_code.call(self.source, name, function, form, step=step, **arguments)
                return self.lr * _factor(factor, f"{self.source} {name}", step)

            return Scheduler(optimizer, Schedule(rate), self.lr, self.per_epoch)
        form = f"NAME(optimizer{words})"
        result = user_code.call(self.source, name, function, form, optimizer, **arguments)
        return _wrap(result, f"{self.source} {name}", optimizer, self.per_epoch)


def _wrap(result: Any, name: str, optimizer: Any, per_epoch: bool) -> OwnScheduler:
    """Return the scheduler around what the user's function returned. Raise CommonMistake if it is not one."""
    step = getattr(result, "step", None)
    if not callable(step):
        raise CommonMistake(
            f"{name} returned {type(result).__name__}, which has no step(): it must return a "
            "scheduler, or take an argument 'step' and return the factor on --lr"
        )
    reason = user_code.misfit(step)
    if not reason:
        return OwnScheduler(optimizer, result, per_epoch)
    if user_code.misfit(step, 0.0):
        raise CommonMistake(
            f"{name}: its step() is called without arguments here, or with a metric: {reason}"
        )
    return MetricScheduler(optimizer, result)


def _factor(value: Any, name: str, step: int) -> float:
    """Return the factor of a user's function. Raise CommonMistake unless it is finite and at least 0."""
    try:
        factor = float(value)
    except (TypeError, ValueError):
        factor = math.nan
    if not 0 <= factor < math.inf:
        raise CommonMistake(f"{name} returned {value!r:.60} for step {step}: it must be the factor on --lr")
    return factor
