"""Every engine, ZeRO stage, precision, optimizer and schedule on two ranks, for five steps each.

One launch goes through a table of cases (matrix.py); pipelines have a launch of their own, because
DeepSpeed's later engines would take the last pipeline's topology for theirs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from train_support import launch_cases, split

pytestmark = pytest.mark.xdist_group("engines")  # its tests share trainings, which one worker runs
STAGES = (0, 1, 2, 3)
SCHEDULES = ("warmup", "warmup-decay", "warmup-cosine", "onecycle", "cosine", "multistep --milestones 2,4")
# As the cases of ddp with these names.
FSDP = {
    "": "",
    "accumulation": "--batch-size 16 --accumulation 2",
    "sgd": "--optimizer sgd",
    "muon": "--optimizer muon",
    "adamw": "--optimizer adamw --weight-decay 0.01",
    "ema": "--ema 0.9 --zero-stage 2",
    "unclipped": "--clip 0",
    "clipped": "--optimizer sgd --clip 0.05",
    "O3": "--amp O3",
    **{precision: f"--precision {precision}" for precision in ("bf16", "fp16", "autocast", "autocast-fp16")},
    **{schedule: f"--scheduler {schedule}" for schedule in SCHEDULES},
}
EMA = ("ddp ema", "fsdp ema", "zero0 ema", "zero2 ema", "zero3 ema", "zero3 ema offload", "pipeline ema")
Results = dict[str, dict[str, Any]]

REPLICATED = {
    "ddp": "--engine ddp",
    "ddp accumulation": "--engine ddp --batch-size 16 --accumulation 2",
    "ddp global batch": "--engine ddp --global-batch 64 --accumulation 4",
    "ddp sgd": "--engine ddp --optimizer sgd",
    "ddp muon": "--engine ddp --optimizer muon",
    "ddp adamw": "--engine ddp --optimizer adamw --weight-decay 0.01",
    "ddp ema": "--engine ddp --ema 0.9",
    "ddp unclipped": "--engine ddp --clip 0",
    # By sgd: to Adam, all gradients times a factor are the same gradients.
    "ddp clipped": "--engine ddp --optimizer sgd --clip 0.05",
    **{f"zero{n} clipped": f"--zero-stage {n} --optimizer sgd --clip 0.05" for n in STAGES},
    **{f"zero{n} unclipped": f"--zero-stage {n} --clip 0" for n in STAGES},
    **{f"fsdp{more and ' '}{more}": f"--engine fsdp {options}" for more, options in FSDP.items()},
    "zero0 ema": "--ema 0.9",
    "zero0 adamw": "--optimizer adamw --weight-decay 0.01",
    "zero3 ema": "--zero-stage 3 --ema 0.9",
    "zero3 ema offload": "--zero-stage 3 --ema 0.9 --offload all",
    "zero2 ema": "--zero-stage 2 --ema 0.9",
    "zero3 offload all": "--zero-stage 3 --offload all",
    "ddp O3": "--engine ddp --amp O3",
    "zero0 O2": "--amp O2",
    **{f"norm zero{n}": f"--model matrix:normalised --zero-stage {n}" for n in STAGES},
    **{f"norm zero{n} bf16": f"--model matrix:normalised --zero-stage {n} --precision bf16" for n in STAGES},
    "ddp idle": "--engine ddp --model matrix:idle",
    "zero0 idle": "--model matrix:idle",
    "fsdp idle": "--engine fsdp --model matrix:idle",
    "norm fsdp": "--engine fsdp --model matrix:normalised",
    "norm fsdp bf16": "--engine fsdp --model matrix:normalised --precision bf16",
    "fsdp tied": "--engine fsdp --model matrix:tied",
    "ddp tied": "--engine ddp --model matrix:tied",
    "fsdp scalar": "--engine fsdp --model matrix:scaled",
    "moe": "--model moe",
    "moe shared": "--model moe --expert-parallel 2",
    "moe unclipped": "--model moe --clip 0",
    "moe shared unclipped": "--model moe --expert-parallel 2 --clip 0",
    "moe shared zero1": "--model moe --expert-parallel 2 --zero-stage 1",
    "moe shared zero2": "--model moe --expert-parallel 2 --zero-stage 2",
    "moe top-2": "--model moe --top-k 2 --expert-parallel 2 --capacity 2",
    "moe residual": "--model moe --residual --experts 2",
    "moe rsample": "--model moe --noisy-gate rsample --min-capacity 0",
    "moe jitter": "--model moe --noisy-gate jitter --aux-weight 0.1",
    "moe bf16": "--model moe --precision bf16 --zero-stage 2 --expert-parallel 2",
    **{f"zero{n}": f"--zero-stage {n}" for n in STAGES},
    **{f"zero{n} sgd": f"--zero-stage {n} --optimizer sgd" for n in STAGES},
    **{f"zero{n} muon": f"--zero-stage {n} --optimizer muon" for n in STAGES},
    **{f"zero{n} offload": f"--zero-stage {n} --offload optimizer" for n in STAGES[1:]},
    **{f"zero{n} sgd offload": f"--zero-stage {n} --offload optimizer --optimizer sgd" for n in STAGES[1:]},
    **{f"zero{n} {p}": f"--zero-stage {n} --precision {p}" for n in STAGES for p in ("bf16", "autocast")},
    **{f"ddp {p}": f"--engine ddp --precision {p}" for p in ("bf16", "fp16", "autocast", "autocast-fp16")},
    **{f"{e} {s}": f"--engine {e} --scheduler {s}" for e in ("ddp", "deepspeed") for s in SCHEDULES},
    # Last: DeepSpeed's loss scaling stays on for the engines after it.
    **{f"zero{n} autocast-fp16": f"--zero-stage {n} --precision autocast-fp16" for n in STAGES},
    **{
        f"zero{n} autocast-fp16 clipped": f"--zero-stage {n} --precision autocast-fp16 --optimizer sgd --clip 0.05"
        for n in STAGES
    },
}
_PIPE = "--engine pipeline --accumulation 2"
PIPELINES = {
    "pipeline": _PIPE,
    "pipeline ema": f"{_PIPE} --ema 0.9",
    "pipeline clipped": f"{_PIPE} --optimizer sgd --clip 0.05",
    "pipeline zero1 clipped": f"{_PIPE} --optimizer sgd --clip 0.05 --zero-stage 1",
    "norm pipeline": f"{_PIPE} --model matrix:normalised",
    "norm pipeline bf16": f"{_PIPE} --model matrix:normalised --precision bf16",
    "pipeline unclipped": f"{_PIPE} --clip 0",
    "pipeline one stage": "--engine pipeline --stages 1",
    **{f"pipeline {p}": f"{_PIPE} --partition {p}" for p in ("uniform", "type:Linear")},
    **{
        f"pipeline zero{n} {p}": f"{_PIPE} --zero-stage {n} --precision {p}"
        for n in (0, 1)
        for p in ("fp32", "bf16", "autocast")
        if (n, p) != (0, "bf16")
    },
    **{f"pipeline {s}": f"{_PIPE} --scheduler {s}" for s in SCHEDULES},
    "pipeline tied": f"{_PIPE} --model matrix:tied",
    "pipeline without weights": f"{_PIPE} --partition uniform --model matrix:late",
    "pipeline wrong layers": f"{_PIPE} --partition type:LSTM",
}
ALONE = {
    "ddp": "--engine ddp --batch-size 64",
    **{f"zero{n}": f"--zero-stage {n} --batch-size 64" for n in STAGES},
    "pipeline": "--engine pipeline --batch-size 64",
}


def launch(cases: dict[str, str], ranks: int, folder: Path) -> Results:
    return launch_cases("matrix.py", split(cases), ranks, folder)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Results:
    replicated = launch(REPLICATED, 2, tmp_path_factory.mktemp("replicated"))
    return replicated | launch(PIPELINES, 2, tmp_path_factory.mktemp("pipelines"))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return launch(ALONE, 1, tmp_path_factory.mktemp("alone"))


def test_two_ranks_lose_what_one_rank_loses(one: Results, two: Results) -> None:
    reference = one["ddp"]["losses"]
    assert len(reference) == 5
    exact = [*ALONE, "ddp accumulation", "ddp global batch", "zero3 offload all"]
    exact += [f"zero{n} offload" for n in STAGES[1:]]
    exact += ["pipeline one stage", "pipeline uniform", "pipeline type:Linear", "pipeline zero1 fp32"]
    for name in exact:
        assert two[name]["losses"] == pytest.approx(reference, rel=1e-4), name
        assert two[name]["accuracy"] == pytest.approx(one["ddp"]["accuracy"], abs=0.012), name
    for name in ALONE:
        assert one[name]["losses"] == pytest.approx(reference, rel=1e-4), name


def test_precisions_stay_near_fp32(two: Results) -> None:
    for name, result in two.items():
        if any(word in name for word in ("bf16", "fp16", "autocast", "O2", "O3")) and not re.search(
            "moe|clipped|norm ", name
        ):
            assert result["losses"] == pytest.approx(two["ddp"]["losses"], rel=0.005), name
            assert result["losses"] != two["ddp"]["losses"], name


def test_half_precision_is_the_same_at_every_stage(two: Results) -> None:
    for name, like in (("zero0 bf16", "zero1 bf16"), ("norm zero0 bf16", "norm zero1 bf16")):
        assert two[name]["losses"] == pytest.approx(two[like]["losses"], rel=1e-3), name


def test_batch_norm_in_half_precision(two: Results) -> None:
    for name in (*(f"norm zero{n}" for n in STAGES), "norm pipeline", "norm fsdp"):
        assert two[f"{name} bf16"]["losses"] == pytest.approx(two[name]["losses"], rel=0.01), name
        assert two[f"{name} bf16"]["test_loss"] == pytest.approx(two[name]["test_loss"], rel=0.01), name


def test_sharding_changes_nothing(two: Results) -> None:
    """--engine fsdp has the losses and norms of ddp: the sums over two ranks are in one order only."""
    for more in ("", "accumulation", "sgd", "adamw", "ema", "unclipped", "clipped", "tied"):
        ours, theirs = two[f"fsdp {more}".strip()], two[f"ddp {more}".strip()]
        assert ours["losses"] == pytest.approx(theirs["losses"], rel=1e-6), more
        assert ours["norms"] == pytest.approx(theirs["norms"], rel=1e-6), more
        assert ours["test_loss"] == pytest.approx(theirs["test_loss"], rel=1e-6), more
    assert two["fsdp muon"]["losses"] == pytest.approx(two["ddp muon"]["losses"], rel=0.002)


def test_optimizers_are_the_same_at_every_stage(two: Results) -> None:
    for kind in ("sgd", "muon"):
        for stage in STAGES[1:]:
            assert two[f"zero{stage} {kind}"]["losses"] == pytest.approx(
                two[f"zero0 {kind}"]["losses"], rel=1e-4
            )
        assert two[f"zero0 {kind}"]["losses"] != two["zero0"]["losses"]
    assert two["ddp sgd"]["losses"] == pytest.approx(two["zero0 sgd"]["losses"], rel=1e-4)
    # Muon's matrices are made orthogonal in bf16, by another order of the same multiplications.
    assert two["ddp muon"]["losses"] == pytest.approx(two["zero0 muon"]["losses"], rel=0.002)
    assert two["ddp adamw"]["losses"] == pytest.approx(two["zero0 adamw"]["losses"], rel=1e-4)
    assert two["zero2 sgd offload"]["losses"] == pytest.approx(two["zero2 sgd"]["losses"], rel=1e-4)


def test_gradient_norms_agree(two: Results) -> None:
    """Before clipping, over all ranks, with or without it."""
    exact = [f"zero{n}{kind}" for n in STAGES for kind in ("", " unclipped")]
    exact += ["pipeline", "pipeline unclipped", "pipeline zero1 fp32", "ddp unclipped"]
    for name in exact:
        clipping = " unclipped" if name.endswith("unclipped") else ""
        assert two[name]["norms"] == pytest.approx(two[f"ddp{clipping}"]["norms"], rel=1e-3), name
    for stage in STAGES[1:]:
        of_zero, of_ddp = two[f"zero{stage} muon"]["norms"], two["ddp muon"]["norms"]
        assert of_zero[0] == pytest.approx(of_ddp[0], rel=1e-3)
        assert of_zero == pytest.approx(of_ddp, rel=0.05)  # it rounds to bf16, as each processor does it
    assert two["moe shared unclipped"]["norms"] == pytest.approx(two["moe unclipped"]["norms"], rel=1e-3)
    for name in ("moe shared", "moe shared zero1"):  # DeepSpeed clips by an average over the ranks
        assert two[name]["norms"] == pytest.approx(two["moe"]["norms"], rel=0.03), name
    for name in (f"{engine} autocast-fp16" for engine in ("ddp", "zero0", "zero1", "zero2", "zero3")):
        assert two[name]["norms"] == pytest.approx(two["ddp"]["norms"], rel=0.02), name
        assert two[name]["losses"] == pytest.approx(two["ddp"]["losses"], rel=1e-3), name


def test_engines_clip_alike(two: Results) -> None:
    reference = two["ddp clipped"]["losses"]
    assert reference != pytest.approx(two["ddp"]["losses"], rel=1e-3)
    for name, result in two.items():
        if name.endswith(" clipped"):
            near = 1e-3 if "autocast" in name else 1e-4
            assert result["losses"] == pytest.approx(reference, rel=near), name
            assert result["norms"] == pytest.approx(two["ddp clipped"]["norms"], rel=0.02), name


def test_the_average_is_evaluated_and_the_weights_train_on(two: Results) -> None:
    losses = {name: two[name]["test_loss"] for name in EMA}
    for name, loss in losses.items():
        assert two[name]["losses"] == pytest.approx(two["ddp"]["losses"], rel=1e-4), name
        assert loss == pytest.approx(losses["ddp ema"], rel=1e-4), name
    assert losses["ddp ema"] != pytest.approx(two["ddp"]["test_loss"], rel=1e-4)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_reach_the_optimizer(two: Results, schedule: str) -> None:
    from jobgen.train.config import schedules

    for engine in ("ddp", "fsdp", "deepspeed", "pipeline"):
        result = two[f"{engine} {schedule}"]
        curve = schedules.make(result["schedule"], 0.002, 5).rate
        assert result["rates"] == pytest.approx([curve(done) for done in range(5)]), engine
        assert result["losses"] == pytest.approx(two[f"ddp {schedule}"]["losses"], rel=1e-4), engine


def test_experts(two: Results) -> None:
    for name in ("moe shared", "moe shared zero1", "moe shared zero2"):
        assert two[name]["losses"] == pytest.approx(two["moe"]["losses"], rel=1e-4), name
    # Each option does something, and all learn.
    for name in ("moe top-2", "moe residual", "moe rsample", "moe jitter"):
        assert two[name]["losses"] != pytest.approx(two["moe"]["losses"], rel=1e-4), name
        assert two[name]["losses"][3] < two[name]["losses"][0], name


def test_every_sample_is_seen_once_an_epoch(two: Results) -> None:
    for name, result in two.items():
        if "error" in result:
            continue
        parts = {tuple(share): seen for share, seen in result["shares"]}  # a pipeline's stages have one
        seen = [number for part in parts.values() for number in part]
        assert sorted(seen) == list(range(285)), name
        assert len(parts) == next(iter(parts))[1], name


def test_what_only_the_model_can_tell_is_a_sentence(two: Results) -> None:
    assert two["pipeline wrong layers"]["error"].startswith(
        "--partition type:LSTM matches none of the model's"
    )
    assert "shared weights of layers in different stages" in two["pipeline tied"]["error"]
    assert "stage 0 has nothing to train, only Flatten" in two["pipeline without weights"]["error"]
    assert "does not use 0.spare.weight, 0.spare.bias: remove them" in two["ddp idle"]["error"]
    assert "fsdp shards the first dimension of each weight, and scale has none" in two["fsdp scalar"]["error"]
    assert "error" not in two["zero0 idle"]
    assert "error" not in two["fsdp idle"]
