"""Objects that set the learning rate of an optimizer, with the interface of torch's schedulers.

Engines call `step` after each optimizer step, `end_epoch` after each epoch and `after_evaluation` after each
evaluation. Does not import torch.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

Curve = Callable[[int], float]


class Schedule(NamedTuple):
    """A schedule as functions of the number of steps done.

    rate: learning rate of the next step; beta: the first beta of Adam for the next step, None if it is
    constant
    """

    rate: Curve
    beta: Curve | None = None


class Stepper(Protocol):
    """The interface of a user's own scheduler, which torch's schedulers have."""

    def step(self, *metric: float) -> Any: ...


class Scheduler:
    """Sets the learning rate of an optimizer's groups, with the interface of torch's schedulers.

    The groups keep the ratios of their initial rates. per_epoch: `step`, which an engine calls after each
    optimizer step, does nothing, and `end_epoch` advances the schedule instead.
    """

    def __init__(self, optimizer: Any, schedule: Schedule, lr: float, per_epoch: bool = False) -> None:
        self._optimizer = optimizer  # not its groups, which are replaced when a state is loaded
        self._shares = [group["lr"] / lr for group in optimizer.param_groups]
        self._schedule = schedule
        self._per_epoch = per_epoch
        self.count = 0
        self._set()

    def step(self) -> None:
        if not self._per_epoch:
            self._advance()

    def end_epoch(self) -> None:
        if self._per_epoch:
            self._advance()

    def after_evaluation(self, metric: float) -> None:
        """Do nothing: the schedule does not depend on a metric."""

    def get_last_lr(self) -> list[float]:
        """Return the rates of the next step, one for each group."""
        return [group["lr"] for group in self._optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.count = state["count"]
        self._set()

    def _advance(self) -> None:
        self.count += 1
        self._set()

    def _set(self) -> None:
        rate = self._schedule.rate(self.count)
        for group, share in zip(self._optimizer.param_groups, self._shares, strict=True):
            group["lr"] = rate * share
            if self._schedule.beta and "betas" in group:
                group["betas"] = (self._schedule.beta(self.count), 0.99)  # as in DeepSpeed


class OwnScheduler:
    """Wraps a user's object with step(), which is called after each batch or each epoch."""

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

    def after_evaluation(self, metric: float) -> None:
        """Do nothing: the inner scheduler takes no metric."""

    def get_last_lr(self) -> list[float]:
        return [group["lr"] for group in self._optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return self._inner.state_dict() if hasattr(self._inner, "state_dict") else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if hasattr(self._inner, "load_state_dict"):
            self._inner.load_state_dict(dict(state))


class MetricScheduler(OwnScheduler):
    """Wraps an object with step(metric), such as torch's ReduceLROnPlateau, called after each evaluation."""

    def step(self) -> None:
        pass

    def end_epoch(self) -> None:
        pass

    def after_evaluation(self, metric: float) -> None:
        self._inner.step(metric)

    def state_dict(self) -> dict[str, Any]:
        return {"inner": super().state_dict(), "rates": self.get_last_lr()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state["inner"])
        for group, rate in zip(self._optimizer.param_groups, state["rates"], strict=True):
            group["lr"] = rate
