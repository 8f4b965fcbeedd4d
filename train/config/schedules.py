"""The learning rate as closed forms of the number of steps done, for every engine alike. No torch here.

A schedule is described as in DeepSpeed's config: {"type": ..., "params": {...}}. DeepSpeed's own types
give what its classes give (deepspeed/runtime/lr_schedules.py): these set the rate of the first step
apart and count the steps after it from 0, so that a warm-up begins with two equal steps. Like torch's
schedulers of the same names, MultiStepLR and CosineAnnealingLR need no such step.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from .. import own
from ..errors import CommonMistake
from .converters import is_own

Params = Mapping[str, Any]
Curve = Callable[[int], float]


class Schedule(NamedTuple):
    """rate: steps done -> learning rate of the next; beta: the same for Adam's first beta, if it moves."""

    rate: Curve
    beta: Curve | None = None


class Stepper(Protocol):
    """What a user's own scheduler must have; torch's have it."""

    def step(self) -> Any: ...


def make(block: Params | None, lr: float, total: int) -> Schedule:
    """The schedule of a block (None: constant) around the optimizer's rate `lr`, for `total` steps."""
    if not block:
        return Schedule(lambda done: lr)
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
    """Up from warmup_min_lr to warmup_max_lr in warmup_num_steps, then constant."""
    return _from_low_to_high(params, params.get("warmup_max_lr") or lr, lambda done: 1.0)


def warmup_decay(params: Params, lr: float, total: int) -> Curve:
    """WarmupLR, then linearly down to warmup_min_lr at total_num_steps."""
    steps = _warmup_steps(params)
    end = params.get("total_num_steps", total)
    return _from_low_to_high(
        params, params.get("warmup_max_lr", 0.001), lambda done: max(0.0, (end - done) / max(1, end - steps))
    )


def warmup_cosine(params: Params, lr: float, total: int) -> Curve:
    """`lr` times: up from warmup_min_ratio to 1, then half a cosine down to cos_min_ratio.

    The first step has warmup_min_ratio; DeepSpeed's class would make it with a rate of 0, for nothing.
    """
    steps, low = _warmup_steps(params), params.get("warmup_min_ratio", 0.0)
    end, floor = params.get("total_num_steps", total), params.get("cos_min_ratio", 0.0001)

    def rate(done: int) -> float:
        after = done - 1
        if after < steps:
            return lr * (low + (1 - low) * _rise(params, after, steps))
        progress = min(1.0, (after - steps + 1) / max(1, end - steps))
        return lr * (floor + (1 - floor) * (1 + math.cos(math.pi * progress)) / 2)

    return rate


def range_test(params: Params, lr: float, total: int) -> Curve:
    """Up for ever, to find the largest rate that works (Smith 2017, arXiv 1506.01186)."""
    low, size = params.get("lr_range_test_min_lr", 0.001), params.get("lr_range_test_step_size", 2000)
    slope, stairs = params.get("lr_range_test_step_rate", 1.0), params.get("lr_range_test_staircase", False)
    return lambda done: low * (1 + slope * (done // size if stairs else done / size))


def multistep(params: Params, lr: float, total: int) -> Curve:
    """`lr`, multiplied by gamma at each milestone."""
    milestones, gamma = sorted(params["milestones"]), params.get("gamma", 0.1)
    return lambda done: lr * gamma ** bisect_right(milestones, done)


def cosine(params: Params, lr: float, total: int) -> Curve:
    """Half a cosine from `lr` to eta_min in T_max steps (Loshchilov and Hutter, arXiv 1608.03983)."""
    end, low = params.get("T_max", total), params.get("eta_min", 0.0)
    return lambda done: low + (lr - low) * (1 + math.cos(math.pi * min(1.0, done / end))) / 2


def one_cycle(params: Params) -> Schedule:
    """Up and down once, then decay; Adam's first beta the other way (Smith, arXiv 1803.09820)."""
    low, high = params["cycle_min_lr"], params["cycle_max_lr"]
    least, most = params.get("cycle_min_mom", 0.8), params.get("cycle_max_mom", 0.9)
    first = params.get("cycle_first_step_size", 2000)
    second = params.get("cycle_second_step_size")
    second = first if second is None else second
    stairs = params.get("cycle_first_stair_count", 0)
    stairs = (stairs, params.get("cycle_second_stair_count") or stairs)
    interval = params.get("decay_step_size", 0)

    def height(done: int) -> float:
        place = done % (first + second)
        up = place <= first
        part = place / first if up else (first + second - place) / second
        count = stairs[0 if up else 1]
        return math.floor(part * count) / count if count else part

    def decay(done: int, rate: str) -> float:
        return 1 + params.get(rate, 0.0) * (done - first - second) / interval if interval else 1.0

    def lr(done: int) -> float:
        if done <= first + second:
            return low + (high - low) * height(done)
        return low / decay(done, "decay_lr_rate")

    def beta(done: int) -> float:
        if done == 0:
            return least  # as DeepSpeed's class leaves it before the first step
        if done <= first + second:
            return most - (most - least) * height(done)
        return most * decay(done, "decay_mom_rate")

    return Schedule(lr, beta if params.get("cycle_momentum", True) else None)


def _from_low_to_high(params: Params, high: float, then: Curve) -> Curve:
    steps, low = _warmup_steps(params), params.get("warmup_min_lr", 0.0)

    def rate(done: int) -> float:
        after = done - 1
        return low + (high - low) * (_rise(params, after, steps) if after < steps else then(after))

    return rate


def _warmup_steps(params: Params) -> int:
    return max(2, params.get("warmup_num_steps", 1000))


def _rise(params: Params, after: int, steps: int) -> float:
    if after <= 0:
        return 0.0
    if params.get("warmup_type", "log") == "linear":
        return after / steps
    return math.log(after + 1) / math.log(steps)


class Scheduler:
    """Sets the rate of an optimizer's groups: a schedule in the shape of torch's schedulers.

    The groups keep the proportions of the rates that they begin with. per_epoch: `step`, which an
    engine calls after each optimizer step, does nothing, and `end_epoch` counts instead.
    """

    def __init__(self, optimizer: Any, schedule: Schedule, lr: float, per_epoch: bool = False) -> None:
        self._optimizer = optimizer  # not its groups: loading a state replaces these
        self._shares = [group["lr"] / lr for group in optimizer.param_groups]
        self._schedule = schedule
        self._per_epoch = per_epoch
        self.done = 0
        self._set()

    def step(self) -> None:
        if not self._per_epoch:
            self._advance()

    def end_epoch(self) -> None:
        if self._per_epoch:
            self._advance()

    def get_last_lr(self) -> list[float]:
        """The rates of the next step, a group each."""
        return [group["lr"] for group in self._optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {"done": self.done}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.done = state["done"]
        self._set()

    def _advance(self) -> None:
        self.done += 1
        self._set()

    def _set(self) -> None:
        rate = self._schedule.rate(self.done)
        for group, share in zip(self._optimizer.param_groups, self._shares, strict=True):
            group["lr"] = rate * share
            if self._schedule.beta and "betas" in group:
                group["betas"] = (self._schedule.beta(self.done), 0.99)  # as DeepSpeed has it


class OwnScheduler:
    """A user's object with step(), called per batch or per epoch."""

    def __init__(self, optimizer: Any, inner: Stepper, per_epoch: bool = False) -> None:
        self._optimizer = optimizer
        self._inner = inner
        self._per_epoch = per_epoch

    def step(self) -> None:
        if not self._per_epoch:
            self._inner.step()

    def end_epoch(self) -> None:
        if self._per_epoch:
            self._inner.step()

    def get_last_lr(self) -> list[float]:
        return [group["lr"] for group in self._optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return self._inner.state_dict() if hasattr(self._inner, "state_dict") else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if hasattr(self._inner, "load_state_dict"):
            self._inner.load_state_dict(dict(state))


class Plan(NamedTuple):
    """How to make the scheduler once the optimizer is there."""

    block: dict[str, Any] | None
    lr: float
    total: int
    per_epoch: bool

    def attach(self, optimizer: Any) -> Scheduler | OwnScheduler:
        """The scheduler of this optimizer, its first rate set."""
        if not self.block or not is_own(self.block["type"]):
            schedule = make(self.block, self.lr, self.total)
            return Scheduler(optimizer, schedule, self.lr, self.per_epoch)
        name = self.block["type"]
        made_by = own.find("--scheduler", name)
        facts = {"total_steps": self.total, "lr": self.lr, **self.block.get("params", {})}
        accepted = own.parameters(made_by)
        known = {key: value for key, value in facts.items() if key in accepted}
        words = "".join(f", {key}={value}" for key, value in known.items())
        if "step" in accepted:

            def rate(done: int) -> float:
                form = f"NAME(step={done}{words})"
                factor = own.call("--scheduler", name, made_by, form, step=done, **known)
                return self.lr * _factor(factor, name, done)

            return Scheduler(optimizer, Schedule(rate), self.lr, self.per_epoch)
        made = own.call("--scheduler", name, made_by, f"NAME(optimizer{words})", optimizer, **known)
        step = getattr(made, "step", None)
        if not callable(step):
            raise CommonMistake(
                f"--scheduler {name} returned {type(made).__name__}, which has no step(): it must return a "
                "scheduler, or take an argument 'step' and return the factor on --lr"
            )
        reason = own.misfit(step)
        if reason:
            raise CommonMistake(f"--scheduler {name}: its step() is called without arguments here: {reason}")
        return OwnScheduler(optimizer, made, self.per_epoch)


def _factor(given: Any, name: str, done: int) -> float:
    """What a user's function returned for a step, which must be a number of at least 0."""
    try:
        factor = float(given)
    except (TypeError, ValueError):
        factor = math.nan
    if not 0 <= factor < math.inf:
        raise CommonMistake(
            f"--scheduler {name} returned {given!r:.60} for step {done}: it must be the factor on --lr"
        )
    return factor
