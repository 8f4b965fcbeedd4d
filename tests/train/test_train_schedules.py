"""Schedules, point by point: against closed forms written out here, DeepSpeed's own classes, and torch's."""

from __future__ import annotations

import math
from typing import Any

import pytest
from jobgen.train.config import schedules
from jobgen.train.errors import CommonMistake
from support.require import need_package

STEPS = range(41)


def rates(kind: str, lr: float = 0.1, total: int = 40, **params: Any) -> list[float]:
    schedule = schedules.make({"type": kind, "params": params}, lr, total)
    return [schedule.rate(done) for done in STEPS]


def test_closed_forms() -> None:
    assert schedules.make(None, 0.1, 40).rate(7) == 0.1
    linear = {"warmup_num_steps": 10, "warmup_type": "linear", "warmup_max_lr": 0.1, "warmup_min_lr": 0.01}
    up = [0.01 + 0.09 * min(1.0, max(0, done - 1) / 10) for done in STEPS]
    assert rates("WarmupLR", **linear) == pytest.approx(up)
    down = [up[d] if d <= 10 else 0.01 + 0.09 * max(0, 40 - (d - 1)) / 30 for d in STEPS]
    assert rates("WarmupDecayLR", **linear) == pytest.approx(down)
    to_zero = [up[d] if d <= 10 else 0.1 * max(0, 40 - (d - 1)) / 30 for d in STEPS]
    assert rates("WarmupDecayLR", **linear, end_lr=0.0) == pytest.approx(to_zero)
    half = [0.1 * (1 + math.cos(math.pi * done / 40)) / 2 for done in STEPS]
    assert rates("CosineAnnealingLR", T_max=40) == pytest.approx(half)
    falls = [0.1 if d < 10 else 0.05 if d < 30 else 0.025 for d in STEPS]
    assert rates("MultiStepLR", milestones=[10, 30], gamma=0.5) == pytest.approx(falls)
    triangle = [0.1 * d / 8 if d <= 8 else 0.1 * max(0, 24 - d) / 16 for d in STEPS]
    cycle = {
        "cycle_min_lr": 0.0,
        "cycle_max_lr": 0.1,
        "cycle_first_step_size": 8,
        "cycle_second_step_size": 16,
    }
    assert rates("OneCycle", **cycle) == pytest.approx(triangle)
    assert rates("LRRangeTest", lr_range_test_min_lr=0.1, lr_range_test_step_size=5)[10] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("WarmupLR", {"warmup_num_steps": 7}),
        ("WarmupLR", {"warmup_num_steps": 1, "warmup_max_lr": 0.3, "warmup_type": "linear"}),
        ("WarmupDecayLR", {"total_num_steps": 30, "warmup_num_steps": 7, "warmup_min_lr": 0.01}),
        ("WarmupDecayLR", {"total_num_steps": 30, "warmup_num_steps": 7, "warmup_type": "linear"}),
        ("WarmupCosineLR", {"total_num_steps": 30, "warmup_num_steps": 7, "warmup_min_ratio": 0.1}),
        ("WarmupCosineLR", {"total_num_steps": 30, "warmup_num_steps": 7, "cos_min_ratio": 0.2}),
        ("OneCycle", {"cycle_min_lr": 0.01, "cycle_max_lr": 0.1, "cycle_first_step_size": 9}),
        (
            "OneCycle",
            {
                "cycle_min_lr": 0.01,
                "cycle_max_lr": 0.1,
                "cycle_first_step_size": 6,
                "cycle_second_step_size": 10,
                "cycle_first_stair_count": 3,
                "decay_step_size": 4,
                "decay_lr_rate": 0.5,
                "decay_mom_rate": 0.01,
            },
        ),
        ("LRRangeTest", {"lr_range_test_min_lr": 0.01, "lr_range_test_step_size": 4}),
        (
            "LRRangeTest",
            {"lr_range_test_min_lr": 0.01, "lr_range_test_step_size": 4, "lr_range_test_staircase": True},
        ),
    ],
)
def test_like_deepspeed_s_own(kind: str, params: dict[str, Any]) -> None:
    need_package("torch", "deepspeed")
    import torch
    from deepspeed.runtime import lr_schedules

    def adam() -> torch.optim.Optimizer:
        return torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.1)

    theirs, ours = adam(), adam()
    their_scheduler = getattr(lr_schedules, kind)(theirs, **params)
    our_scheduler = schedules.Plan({"type": kind, "params": params}, 0.1, 40, False).attach(ours)
    for done in STEPS:
        # DeepSpeed's cosine makes its first step with a rate of 0; ours does not.
        if (kind, done) != ("WarmupCosineLR", 0):
            assert ours.param_groups[0]["lr"] == pytest.approx(float(theirs.param_groups[0]["lr"])), done
        assert ours.param_groups[0]["betas"] == pytest.approx(theirs.param_groups[0]["betas"]), done
        their_scheduler.step()
        our_scheduler.step()


@pytest.mark.parametrize(
    ("kind", "torch_s", "params"),
    [
        ("MultiStepLR", "MultiStepLR", {"milestones": [5, 20], "gamma": 0.3}),
        ("CosineAnnealingLR", "CosineAnnealingLR", {"T_max": 40, "eta_min": 0.01}),
    ],
)
def test_like_torch_s_own(kind: str, torch_s: str, params: dict[str, Any]) -> None:
    need_package("torch")
    import torch

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = getattr(torch.optim.lr_scheduler, torch_s)(optimizer, **params)
    for rate in rates(kind, **params):
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()


class Groups:
    """An optimizer, as far as a scheduler sees it."""

    def __init__(self) -> None:
        self.param_groups: list[dict[str, Any]] = [{"lr": 0.1}, {"lr": 0.2}]


def test_per_epoch_groups_and_resuming() -> None:
    plan = schedules.Plan({"type": "MultiStepLR", "params": {"milestones": [1]}}, 0.1, 3, per_epoch=True)
    optimizer = Groups()
    scheduler = plan.attach(optimizer)
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.1, 0.2])  # a batch does not count
    scheduler.end_epoch()
    assert scheduler.get_last_lr() == pytest.approx([0.01, 0.02])
    again = plan.attach(Groups())
    again.load_state_dict(scheduler.state_dict())
    assert again.get_last_lr() == pytest.approx([0.01, 0.02])


OWN = """
class Halving:
    def __init__(self, optimizer, every=1):
        self.optimizer = optimizer
    def step(self):
        for group in self.optimizer.param_groups:
            group["lr"] /= 2

def root(step, total_steps):
    return (1 - step / total_steps) ** 0.5

def torch_s(optimizer):
    from torch.optim.lr_scheduler import ExponentialLR
    return ExponentialLR(optimizer, 0.5)

def nothing(optimizer):
    return None

def choosy(optimizer, patience):
    return Halving(optimizer)

class Plateau(Halving):
    def step(self, loss):
        if loss > 1:
            super().step()

class Two(Halving):
    def step(self, loss, accuracy):
        pass

def words(step):
    return "half"

def below(step):
    return 1 - step

def two(step, base):
    return 1.0
"""


@pytest.fixture
def own(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_schedules.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("own")
def test_the_user_s_own() -> None:
    def attach(name: str) -> Any:
        return schedules.Plan({"type": f"my_schedules:{name}"}, 0.1, 4, False).attach(Groups())

    halving = attach("Halving")
    halving.step()
    assert halving.get_last_lr() == pytest.approx([0.05, 0.1])
    root = attach("root")
    root.step()
    assert root.get_last_lr()[0] == pytest.approx(0.1 * math.sqrt(3 / 4))
    with pytest.raises(CommonMistake, match="returned NoneType, which has no step"):
        attach("nothing")
    with pytest.raises(CommonMistake, match="cannot be called as NAME\\(optimizer\\): missing .* 'patience'"):
        attach("choosy")
    with pytest.raises(CommonMistake, match="step\\(\\) is called without arguments here, or .*: .* 'loss'"):
        attach("Two")
    metric = attach("Plateau")
    metric.step()
    metric.after_evaluation(1.0)
    assert metric.get_last_lr() == pytest.approx([0.1, 0.2])
    metric.after_evaluation(2.0)
    assert metric.get_last_lr() == pytest.approx([0.05, 0.1])
    with pytest.raises(CommonMistake, match="returned 'half' for step 0: it must be the factor on --lr"):
        attach("words")
    with pytest.raises(CommonMistake, match="NAME\\(step=0\\): missing a required argument: 'base'"):
        attach("two")
    below = attach("below")
    below.step()
    with pytest.raises(CommonMistake, match="returned -1 for step 2"):
        below.step()
    with pytest.raises(CommonMistake, match="has no"):
        attach("nonsense")
    with pytest.raises(CommonMistake, match="there is no module nowhere"):
        schedules.Plan({"type": "nowhere:x"}, 0.1, 4, False).attach(Groups())
