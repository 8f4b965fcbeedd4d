"""Options and DeepSpeed's config: what they make, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jobgen.train import config
from jobgen.train.config import batches, options, recipe, refusals
from jobgen.train.config.batches import Batch
from jobgen.train.config.deepspeed import merge
from jobgen.train.config.engine import EngineSpec
from jobgen.train.config.engines import ENGINES
from jobgen.train.errors import BadInput, CommonMistake


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--epoch", "3"], r"unknown option '--epoch' \(did you mean '--epochs'\?\)"),
        (["-b", "32"], "unknown option '-b'; here it is --batch-size"),
        (["-i2"], "unknown option '-i2'; here it is --save-every-epochs"),
        (["--with_cuda"], "unknown option '--with_cuda'; here it is not needed: the best device is used"),
        (["--stage=2"], "unknown option '--stage'; here it is --zero-stage"),
        (["--zeor-stage=1"], "did you mean '--zero-stage'"),
        (["--optimizer", "adm"], r"--optimizer: 'adm' is not one of sgd, adam, .* \(did you mean 'adam'\?\)"),
        (["--task", "minst"], "did you mean 'mnist'"),
        (["--scheduler", "warmup-deacy"], "did you mean 'warmup-decay'"),
        (["--epochs", "0"], "'0' is not a whole number of at least 1"),
        (["--batch-size", "two"], "'two' is not a whole number of at least 1"),
        (["--lr", "-1"], "'-1' is not a number above 0"),
        (["--lr", "nan"], "'nan' is not a number above 0"),
        (["--zero-stage", "4"], "'4' is not a stage of ZeRO"),
        (["train.py"], "unknown argument 'train.py'"),
        (["--lr"], "--lr: expected one argument"),
        (["--task", "mnist"], "--task mnist needs --data DIR"),
        (["--seed", "9" * 23], "999999999999999999... has more than 18 digits"),
        (["--device-memory", "4"], "--device-memory needs --explain"),
        (["--data", "."], "--data is not for --task digits"),
        (["--scheduler", "none", "--warmup-steps", "3"], "--warmup-steps needs --scheduler"),
    ],
)
def test_bad_options_get_one_sentence(argv: list[str], says: str) -> None:
    with pytest.raises(CommonMistake, match=says) as caught:
        config.parse(argv)
    assert "\n" not in str(caught.value)


def test_launchers_options_are_accepted(tmp_path: Path) -> None:
    assert config.parse(["--local_rank=1"]).local_rank == 1
    assert config.parse(["--local-rank", "1", "--deepspeed"]).local_rank == 1
    file = tmp_path / "x.json"
    file.write_text("{}")
    assert config.parse(["--deepspeed_config", str(file)]).deepspeed_config == file


def build(base: dict[str, Any], *argv: str, world: int = 2) -> tuple[dict[str, Any], list[str]]:
    settings = config.parse(argv)
    batch, notes = batches.batch_sizes(base, settings, world)
    made, more = merge.build(base, settings, batch, world)
    refusals.check(made, settings)
    return merge.schedule(made, settings, total=100), notes + more


def test_defaults() -> None:
    made, notes = build({})
    assert made["optimizer"]["type"] == "Adam"
    assert (made["train_batch_size"], made["train_micro_batch_size_per_gpu"]) == (64, 32)
    assert made["zero_optimization"] == {"stage": 0}
    assert "scheduler" not in made
    assert not notes


def test_options_win_over_the_file_and_say_so() -> None:
    base = {
        "train_batch_size": 64,
        "train_micro_batch_size_per_gpu": 32,
        "optimizer": {"type": "AdamW", "params": {"lr": 0.1, "betas": [0.8, 0.9]}},
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 1},
        "gradient_clipping": 1.0,
    }
    before = json.dumps(base)
    made, notes = build(base, "--lr", "0.2", "--batch-size", "8", "--precision", "fp32", "--zero-stage", "2")
    assert made["optimizer"] == {"type": "AdamW", "params": {"lr": 0.2, "betas": [0.8, 0.9]}}
    assert made["train_micro_batch_size_per_gpu"] == 8
    assert made["gradient_accumulation_steps"] == 4
    assert made["bf16"] == {"enabled": False}
    assert made["zero_optimization"]["stage"] == 2
    assert made["gradient_clipping"] == 1.0
    assert len(notes) == 4
    assert all("overrides the config file's" in note for note in notes)
    assert json.dumps(base) == before


@pytest.mark.parametrize(
    ("base", "argv", "expected"),
    [
        ({}, [], Batch(32, 1)),
        ({}, ["--batch-size", "8", "--accumulation", "3"], Batch(8, 3)),
        ({"train_batch_size": 64}, [], Batch(32, 1)),
        ({"train_batch_size": 64, "gradient_accumulation_steps": 4}, [], Batch(8, 4)),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8}, [], Batch(8, 4)),
        ({"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4}, [], Batch(8, 4)),
        ({"train_batch_size": 64}, ["--batch-size", "8"], Batch(8, 4)),
        ({"train_batch_size": 64, "gradient_accumulation_steps": 1}, ["--batch-size", "8"], Batch(8, 1)),
        ({"train_batch_size": 64}, ["--batch-size", "7"], Batch(7, 1)),
    ],
)
def test_batch_arithmetic(base: dict[str, Any], argv: list[str], expected: Batch) -> None:
    assert batches.batch_sizes(base, config.parse(argv), parallel=2)[0] == expected


@pytest.mark.parametrize(
    ("base", "numbers"),
    [
        ({"train_batch_size": 65}, ["65", "32", "2 ranks"]),
        ({"train_batch_size": 1}, ["1", "2 ranks"]),
        (
            {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 3},
            ["64", "8", "3", "2 ranks", "48"],
        ),
        ({"train_batch_size": "auto"}, ["'auto'"]),
    ],
)
def test_batch_sizes_that_do_not_agree(base: dict[str, Any], numbers: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        batches.batch_sizes(base, config.parse([]), parallel=2)
    for number in numbers:
        assert number in str(caught.value)


@pytest.mark.parametrize(
    ("base", "argv", "says"),
    [
        ({}, ["--precision", "fp16", "--zero-stage", "0"], "fp16 needs ZeRO stage 1, 2 or 3: at stage 0"),
        ({"fp16": {"enabled": True}, "zero_optimization": {"stage": 0}}, [], "fp16 needs ZeRO stage"),
        ({"fp16": {"enabled": True}, "bf16": {"enabled": True}}, [], "both fp16 and bf16"),
        ({"fp16": {"enabled": True}, "bfloat16": {"enabled": True}}, [], "both fp16 and bf16"),
        ({"amp": {"enabled": True}, "zero_optimization": {"stage": 1}}, [], "amp cannot be combined with"),
        ({"zero_optimization": {"stage": 7}}, [], "stage is 7"),
        ({}, ["--momentum", "0.5"], "--momentum is for --optimizer sgd"),
        ({}, ["--optimizer", "adam", "--momentum", "0.9"], "--momentum is for --optimizer sgd"),
        ({}, ["--scheduler", "warmup", "--warmup-steps", "101"], "more than the 100 steps"),
    ],
)
def test_forbidden_combinations(base: dict[str, Any], argv: list[str], says: str) -> None:
    with pytest.raises(CommonMistake, match=says):
        build(base, *argv)


def test_fp16_is_lifted_to_stage_1() -> None:
    made, notes = build({}, "--precision", "fp16")
    assert made["zero_optimization"]["stage"] == 1
    assert "fp16 runs at ZeRO stage 1" in notes[0]


def test_bf16_in_a_pipeline_is_lifted_to_stage_1() -> None:
    made, notes = build({}, "--precision", "bf16", "--engine", "pipeline")
    assert made["zero_optimization"]["stage"] == 1
    assert "bf16 runs at ZeRO stage 1" in notes[0]


def test_sgd_is_allowed_with_zero() -> None:
    made, _ = build({}, "--optimizer", "sgd", "--zero-stage", "2")
    assert made["zero_allow_untested_optimizer"] is True
    assert made["optimizer"]["params"] == {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.0}


def test_schedules() -> None:
    made, _ = build({}, "--scheduler", "warmup-decay", "--lr", "0.1")
    assert made["scheduler"]["type"] == "WarmupDecayLR"
    assert made["scheduler"]["params"]["total_num_steps"] == 100
    assert made["scheduler"]["params"]["warmup_num_steps"] == 10
    made, _ = build({"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 5}}})
    assert made["scheduler"]["params"]["total_num_steps"] == 100
    made, notes = build({"scheduler": {"type": "WarmupLR"}}, "--scheduler", "none")
    assert "scheduler" not in made
    assert "replaces" in notes[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"optimiser": {}}', r"no key 'optimiser' \(did you mean 'optimizer'\?\)"),
        ('{"fp16": true}', "fp16 must be an object"),
        ("[]", "not a JSON object"),
        ("", "not valid JSON"),
        ("no JSON", "not valid JSON"),
        ("null", "not a JSON object"),
        ("[" * 100_000, "not valid JSON"),
        ('{"fp16": {}', "not valid JSON.*line 1"),
        ('{"fp16": {}, "fp16": {}}', "'fp16' is there twice"),
    ],
)
def test_bad_config_files(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "ds.json"
    file.write_text(text)
    with pytest.raises(CommonMistake, match=says):
        merge.read(file)
    with pytest.raises(CommonMistake, match="cannot be read"):
        merge.read(tmp_path / "absent.json")


def test_a_config_is_read_as_deepspeed_reads_it(tmp_path: Path) -> None:
    """With comments and commas at the end."""
    file = tmp_path / "ds.json"
    file.write_text(
        """{
  // of a tutorial
  "train_batch_size": 8, # on 2 GPUs
  /* half precision */
  "fp16": {"enabled": true, "loss_scale_window": 100,},
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "betas": [0.9, 0.95,]}},
}
"""
    )
    config, autos = merge.read(file)
    assert (config["train_batch_size"], autos) == (8, [])
    assert config["fp16"] == {"enabled": True, "loss_scale_window": 100}
    assert config["optimizer"]["params"] == {"lr": 1e-5, "betas": [0.9, 0.95]}


def test_an_engine_is_one_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new engine is an option, a reason and a word of help; what it does not declare is refused."""
    toy = EngineSpec(
        "toy",
        "toy:Toy",
        "one file",
        options=("residual",),
        no_experts="it is a toy",
        reasons=lambda config, settings: iter(["--engine toy plays only"] * (settings.seed == 1)),
    )
    monkeypatch.setitem(ENGINES, "toy", toy)
    assert "|toy" in options.parser().format_help()
    assert recipe.resolve(config.parse(["--engine", "toy"]), world_size=2).parallel == 2
    for argv, says in (
        (["--seed", "1"], "--engine toy plays only"),
        (["--model", "moe"], "--model moe needs --engine deepspeed, not toy: it is a toy"),
        (["--stages", "2"], "--stages is for --engine pipeline, not for toy"),
        (
            ["--offload", "optimizer", "--zero-stage", "1"],
            "--offload optimizer needs --engine deepspeed, not toy",
        ),
    ):
        with pytest.raises(CommonMistake, match=says):
            recipe.resolve(config.parse(["--engine", "toy", *argv]), world_size=2)
