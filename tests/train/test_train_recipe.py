"""What options and config files come to: arithmetic, nested keys, refusals, --explain."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jobgen.train import config, explain
from jobgen.train.config import batches, recipe, schedules
from jobgen.train.config.batches import Batch
from jobgen.train.config.deepspeed import keys, values
from jobgen.train.errors import CommonMistake
from support.require import need_package
from train_support import launch_cases


def resolve(*argv: str, world: int = 2, file: Path | None = None, **base: Any) -> recipe.Recipe:
    if file is not None:
        file.write_text(json.dumps(base))
        argv = (*argv, "--deepspeed_config", str(file))
    return recipe.resolve(config.parse(argv), world)


@pytest.mark.parametrize(
    ("argv", "world", "expected"),
    [
        (["--global-batch", "64"], 2, Batch(32, 1)),
        (["--global-batch", "64", "--batch-size", "8"], 2, Batch(8, 4)),
        (["--global-batch", "64", "--accumulation", "4"], 2, Batch(8, 4)),
        (["--global-batch", "64", "--batch-size", "8", "--accumulation", "4"], 2, Batch(8, 4)),
        (["--engine", "pipeline", "--global-batch", "64", "--batch-size", "8"], 2, Batch(8, 8)),
        (
            ["--engine", "pipeline", "--stages", "2", "--global-batch", "64", "--batch-size", "8"],
            4,
            Batch(8, 4),
        ),
        (["--model", "moe", "--expert-parallel", "2", "--global-batch", "64"], 4, Batch(16, 1)),
    ],
)
def test_any_two_sizes_give_the_third(argv: list[str], world: int, expected: Batch) -> None:
    how = resolve(*argv, world=world)
    assert how.batch == expected
    assert how.config["train_batch_size"] == expected.micro * expected.accumulation * how.parallel


def test_options_win_over_the_file_s_sizes(tmp_path: Path) -> None:
    sizes = {batches.MICRO: 8, batches.ACCUMULATION: 2, batches.TOTAL: 32}
    how = resolve("--global-batch", "64", file=tmp_path / "a.json", **sizes)
    assert how.batch == Batch(8, 4)
    assert "--global-batch 64 overrides the config file's 32" in how.notes
    assert "the options override the config file's gradient_accumulation_steps 2" in how.notes


@pytest.mark.parametrize(
    ("argv", "world", "says"),
    [
        (["--global-batch", "65"], 2, "--global-batch 65 is not .* 32 x .* 1 x 2 ranks = 64"),
        (["--global-batch", "64", "--batch-size", "7"], 2, "64 is not --batch-size 7 x .* 4 x 2 ranks = 56"),
        (["--engine", "pipeline", "--stages", "3"], 4, "--stages 3 does not divide the 4 ranks"),
        (["--model", "moe", "--expert-parallel", "4"], 6, "--expert-parallel 4 does not divide the 6 ranks"),
        (["--model", "moe", "--experts", "3", "--expert-parallel", "2"], 2, "--experts 3 is not divisible"),
        (["--model", "moe", "--zero-stage", "3"], 2, "DeepSpeed refuses experts at stage 3"),
        (["--model", "moe", "--engine", "ddp"], 2, "its expert layer is DeepSpeed's"),
        (["--model", "moe", "--top-k", "3"], 2, "supports 1 and 2"),
        (["--top-k", "2"], 2, "--top-k is for --model moe and for gpt with --experts, not for cnn"),
        (["--engine", "pipeline", "--zero-stage", "2"], 2, "needs ZeRO stage 0 or 1, not 2: it accumulates"),
        (["--engine", "pipeline", "--optimizer", "muon"], 2, "needs --engine deepspeed, not pipeline"),
        (["--engine", "pipeline", "--offload", "optimizer", "--zero-stage", "1"], 2, "not pipeline"),
        (["--engine", "ddp", "--zero-stage", "1"], 2, "ZeRO stage 1 needs --engine deepspeed"),
        (["--engine", "ddp", "--optimizer", "lamb"], 2, "lamb needs --engine deepspeed"),
        (["--optimizer", "lamb", "--precision", "bf16"], 2, "lamb in bf16 needs --zero-stage 1, 2 or 3"),
        (["--stages", "2"], 2, "--stages is for --engine pipeline"),
        (["--offload", "all", "--zero-stage", "2"], 2, "needs --zero-stage 3, not 2"),
        (["--offload", "optimizer"], 2, "needs --zero-stage 1, 2 or 3, not 0"),
        (["--amp", "O1", "--zero-stage", "1"], 2, "amp cannot be combined with fp16 or ZeRO"),
        (["--amp", "O1", "--precision", "fp16"], 2, "both select the precision"),
        (["--amp", "O3"], 2, "needs --engine ddp"),
        (
            ["--engine", "pipeline", "--precision", "autocast-fp16"],
            2,
            "scales the loss only in the last stage",
        ),
        (
            ["--engine", "pipeline", "--precision", "bf16", "--zero-stage", "0"],
            1,
            "with bf16 needs ZeRO stage 1: at stage 0 .* checkpoints that it cannot load",
        ),
        (["--scheduler-unit", "epoch"], 2, "--scheduler-unit epoch needs a scheduler"),
        (["--scheduler-unit", "epoch", "--scheduler", "none"], 2, "--scheduler-unit epoch needs a scheduler"),
        (["--clip", "1", "--optimizer", "muon", "--zero-stage", "1"], 2, "would clip Muon's final update"),
        (["--optimizer", "OneBitAdam"], 2, "the 1-bit optimizers left DeepSpeed in 0.19.7"),
        (["--scheduler", "multistep"], 2, "needs --milestones"),
        (["--milestones", "3,2", "--scheduler", "multistep"], 2, "not a list of increasing whole numbers"),
        (["--scheduler", "my.mod:"], 2, "is not one of none, warmup"),
        (["--partition", "type:["], 2, "not a valid regular expression"),
    ],
)
def test_refused_with_the_reason(argv: list[str], world: int, says: str) -> None:
    with pytest.raises(CommonMistake, match=says) as caught:
        resolve(*argv, world=world)
    assert "\n" not in str(caught.value)


LAMB, MUON = ({"optimizer": {"type": name}} for name in ("Lamb", "Muon"))
OFFLOAD = "zero_optimization.offload_optimizer.device"
ORIGINS: list[tuple[dict[str, Any] | None, str, str]] = [
    (None, "--offload optimizer", "^--offload optimizer needs --zero-stage 1, 2 or 3, not 0"),
    (
        {"zero_optimization": {"offload_optimizer": {"device": "cpu"}}},
        "",
        f"^the config file's {OFFLOAD} cpu needs",
    ),
    ({"zero_optimization": {"offload_param": {"device": "cpu"}}}, "--offload all", "^--offload all needs"),
    (None, "--optimizer lamb --engine ddp", "^--optimizer lamb needs --engine deepspeed"),
    (LAMB, "--engine ddp", "^the config file's optimizer.type lamb needs --engine deepspeed"),
    (MUON, "--engine ddp --optimizer lamb", "^--optimizer lamb needs --engine deepspeed"),
    (None, "--engine fsdp --optimizer lamb", "^--optimizer lamb needs --engine deepspeed"),
    (None, "--engine fsdp --zero-stage 1", "^--zero-stage 1 is not for --engine fsdp, .* deepspeed has"),
    ({"zero_optimization": {"stage": 1}}, "--engine fsdp", "^the config file's zero_optimization.stage 1 is"),
    (None, "--engine fsdp --compile max-autotune", "^--compile max-autotune records CUDA graphs, and"),
    (None, "--engine fsdp --offload all", "^--offload all needs --engine deepspeed, not fsdp"),
    (None, "--engine fsdp --bucket-mb 3", "^--bucket-mb is for --engine ddp, not for fsdp"),
    (None, "--engine fsdp --model moe", "^--model moe needs --engine deepspeed, not fsdp: its expert layer"),
    (None, "--async-save", "^--async-save needs --engine ddp or fsdp, not deepspeed"),
    (None, "--optimizer lamb --precision bf16", "^--optimizer lamb in bf16 needs"),
    (LAMB, "--precision bf16", "^the config file's optimizer.type lamb in bf16 needs"),
    (None, "--engine pipeline --optimizer muon", "^--optimizer muon needs"),
    (MUON, "--engine pipeline", "^the config file's optimizer.type muon needs"),
    (MUON, "--clip 1 --zero-stage 1", "^--clip fails with muon"),
    (
        MUON | {"gradient_clipping": 1.0},
        "--zero-stage 1",
        "^the config file's gradient_clipping fails with muon",
    ),
    (None, "--engine pipeline --precision autocast-fp16", "^--precision autocast-fp16 needs"),
    (
        {"torch_autocast": {"enabled": True, "dtype": "fp16"}},
        "--engine pipeline",
        "^the config file's torch_autocast needs --engine deepspeed or ddp",
    ),
    (
        {"scheduler": {"type": "nowhere:x"}},
        "",
        "^the config file's scheduler.type nowhere:x: there is no module",
    ),
    (
        {"optimizer": {"type": "SGD", "params": {"nesterov": True, "momentum": 0.9}}},
        "--momentum 0",
        "^the config file's optimizer.params.nesterov needs a momentum, and no dampening; --momentum is 0.0$",
    ),
    (
        {"optimizer": {"type": "SGD", "params": {"nesterov": True, "momentum": 0.9, "dampening": 0.1}}},
        "",
        "; the config file's optimizer.params.momentum is 0.9; the config file's optimizer.params.dampening is 0.1$",
    ),
    (
        {"optimizer": {"type": "Adam"}},
        "--momentum 0.5",
        "^--momentum is for --optimizer sgd, muon, not for Adam",
    ),
    (None, "--optimizer adamw --momentum 0.5", "^--momentum is for --optimizer sgd, muon, not for AdamW"),
]


@pytest.mark.parametrize(("base", "options", "says"), ORIGINS)
def test_a_wrong_combination_names_the_origin_of_its_values(
    base: dict[str, Any] | None, options: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(CommonMistake, match=says) as caught:
        resolve(*options.split(), file=tmp_path / "ds.json" if base else None, **base or {}).schedule(10)
    assert base or "config file" not in str(caught.value)


def test_a_note_names_the_option_that_overrides(tmp_path: Path) -> None:
    for option in ("--amp O1", "--precision fp32"):
        how = resolve(*option.split(), file=tmp_path / "ds.json", fp16={"enabled": True})
        assert f"{option} overrides the config file's fp16" in how.notes


def test_lamb_needs_a_gpu() -> None:
    from jobgen.train.config import refusals

    how = resolve("--optimizer", "lamb")
    with pytest.raises(CommonMistake, match="needs a CUDA device"):
        refusals.check_device(how.config, how.settings, "cpu")


@pytest.mark.parametrize(
    ("base", "says"),
    [
        (
            {"zero_optimization": {"stgae": 1}},
            r"no key 'stgae' in zero_optimization \(did you mean 'stage'\?\)",
        ),
        (
            {"zero_optimization": {"offload_optimizer": {"devce": "cpu"}}},
            "no key 'devce' in .*offload_optimizer",
        ),
        ({"zero_optimization": {"mics_shard_size": 2}}, "MiCS left DeepSpeed in 0.19.7"),
        ({"elasticity": {"enabled": True}}, "elasticity left DeepSpeed in 0.19.8"),
        (
            {"optimizer": {"type": "Adam", "params": {"learning_rate": 1}}},
            "no key 'learning_rate' in optimizer",
        ),
        ({"optimizer": {"type": "OneBitLamb"}}, "1-bit optimizers left"),
        ({"optimizer": {"type": "Adamw2"}}, r"not one of .* \(did you mean 'adamw'\?\)"),
        ({"scheduler": {"type": "WarmupLr"}}, "did you mean 'WarmupLR'"),
        ({"scheduler": {"type": "WarmupLR", "params": {"warmup_steps": 1}}}, "no key 'warmup_steps'"),
        ({"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": [1]}}}, "must be a number, not"),
        ({"scheduler": {"type": "OneCycle"}}, "params of OneCycle needs cycle_min_lr"),
        ({"scheduler": {"type": "MultiStepLR"}}, "params of MultiStepLR needs milestones"),
        ({"scheduler": {"type": "MultiStepLR", "params": {"milestones": 3}}}, "must be a list of numbers"),
        (
            {"scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 0}}},
            "T_max must be a number above 0",
        ),
        ({"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "lin"}}}, "one of log, linear"),
        (
            {"scheduler": {"type": "WarmupLR", "params": {"last_batch_iteration": 5}}},
            "last_batch_iteration must be -1, as a resumed run takes its step from the checkpoint, not 5",
        ),
        ({"scheduler": {"type": "WarmupLR", "params": None}}, "params must be an object, not None"),
        ({"scheduler": "WarmupLR"}, "scheduler must be an object, not 'WarmupLR'"),
        ({"optimizer": "Adam"}, "optimizer must be an object, not 'Adam'"),
        ({"optimizer": {"type": "Foo"}}, "optimizer.type 'Foo' is not one of adagrad, adam"),
        ({"optimizer": {"type": "SGDD"}}, r"not one of .* \(did you mean 'sgd'\?\)"),
        (
            {"optimizer": {"type": "Adam", "params": {"lr": "0.1"}}},
            "lr must be a number of at least 0, not '0.1'",
        ),
        ({"optimizer": {"type": "Adam", "params": {"lr": -1}}}, "lr must be a number of at least 0, not -1"),
        ({"optimizer": {"type": "Adam", "params": {"betas": 0.9}}}, "betas must be two numbers"),
        ({"optimizer": {"type": "Adam", "params": {"amsgrad": "no"}}}, "amsgrad must be true or false"),
        ({"gradient_clipping": "1"}, "gradient_clipping must be a number of at least 0, not '1'"),
        ({"steps_per_print": "x"}, "steps_per_print must be a whole number of at least 1, not 'x'"),
        ({"wall_clock_breakdown": "x"}, "wall_clock_breakdown must be true or false, not 'x'"),
        ({"data_efficiency": 3}, "data_efficiency must be an object, not 3"),
        ({"timers": 3}, "timers must be an object, not 3"),
        ({"csv_monitor": {"enabled": True, "job_name": 3}}, "csv_monitor.job_name must be a text, not 3"),
        ({"optimizer": {"type": "SGD", "params": {"nesterov": True}}}, "nesterov needs a momentum"),
        ({"amp": {"enabled": True, "opt_level": []}}, r"amp.opt_level \[\] .* is not one of O0"),
        ({"fp16": {"enabled": "maybe"}}, "fp16.enabled must be true or false, not 'maybe'"),
        (
            {"torch_autocast": {"enabled": True, "dtype": "bf8"}},
            "torch_autocast.dtype must be one of float16, fp16, .*, not 'bf8'",
        ),
        ({"bf16": {"enable": True}}, "did you mean 'enabled'"),
        ({"tensorboard": []}, "tensorboard must be an object"),
        ({"communication_data_type": "fp8"}, "must be one of fp16, bf16, fp32, not 'fp8'"),
        (
            {"data_types": {"grad_accum_dtype": 16}},
            "data_types.grad_accum_dtype must be one of float32, fp32",
        ),
        ({"checkpoint": {"tag_validation": "maybe"}}, "tag_validation must be one of Warn, Ignore, Fail"),
        ({"flops_profiler": {"profile_step": "5"}}, "profile_step must be a whole number of at least 0"),
        ({"zero_optimization": {"overlap_comm": "x"}}, "overlap_comm must be true or false, not 'x'"),
        ({"zero_optimization": {"reduce_bucket_size": 1.5}}, "reduce_bucket_size must be a whole number"),
        ({"zero_optimization": {"offload_optimizer": {"device": "gpu"}}}, "device must be one of none, cpu"),
        ({"timers": {"throughput": {"enabled": 2}}}, "timers.throughput.enabled must be true or false"),
        ({"sparse_gradients": True}, "sparse_gradients: .* left DeepSpeed in 0.19.8"),
        ({"compression_training": {}}, "compression_training: compression left DeepSpeed in 0.19.7"),
        ({"gradient_allreduce_op": "sum"}, "would multiply the gradients by the number of ranks"),
        ({"pipeline": {"stages": 2}}, "pipeline.stages: DeepSpeed ignores it: use --stages"),
        ({"managed_gradient_accumulation": False}, "DeepSpeed counts the passes"),
        ({"sequence_parallel_size": 2}, "sequence_parallel_size: no engine divides a sequence"),
        ({"tensor_parallel": {"autotp_size": 2}}, "tensor_parallel: no engine divides a layer over ranks"),
        ({"aio": {"blocksize": 1}}, r"no key 'blocksize' in aio \(did you mean 'block_size'\?\)"),
        ({"compile": {"depcompile": True}}, r"no key 'depcompile' in compile \(did you mean 'deepcompile'"),
        ({"zero_optimization": {"zenflow": {"topk": 0.1}}}, "no key 'topk' in zero_optimization.zenflow"),
        (
            {"zero_optimization": {"offload_optimizer": {"ratio": 2}}},
            "a number of at least 0.0 and of at most 1.0, not 2",
        ),
    ],
)
def test_nested_keys_are_checked(tmp_path: Path, base: dict[str, Any], says: str) -> None:
    with pytest.raises(CommonMistake, match=says):
        resolve(file=tmp_path / "ds.json", **base)


def test_what_deepspeed_takes_is_taken(tmp_path: Path) -> None:
    resolve(
        file=tmp_path / "ds.json",
        communication_data_type="FP32",
        steps_per_print=2000,
        zero_optimization={
            "stage": 2,
            "reduce_bucket_size": 5e8,
            "overlap_comm": None,
            "sub_group_size": "auto",
        },
        checkpoint={"tag_validation": "WARN", "parallel_write": {"pipeline_stage": True}},
        data_types={"grad_accum_dtype": "fp32"},
        pipeline={"stages": "auto", "partition": "best"},
        gradient_allreduce_op="mean",
        tensorboard={"enabled": "off", "job_name": "auto"},
        datastates_ckpt=False,
        aio=None,
    )


def test_values_are_read_as_deepspeed_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    how = resolve(file=file, bf16={"enabled": "true"}, fp16={"enabled": "auto"}, zero_optimization=True)
    assert how.config["bf16"] == {"enabled": True}
    assert how.config["fp16"] == {"enabled": False}
    assert how.config["zero_optimization"]["stage"] == 1
    how = resolve(file=file, zero_optimization={"stage": "2", "reduce_bucket_size": 5e8})
    assert how.config["zero_optimization"] == {"stage": 2, "reduce_bucket_size": 500_000_000}


def test_the_source_notes_config_for_mnist(tmp_path: Path) -> None:
    """With the keys of old examples of DeepSpeed, which this one takes or ignores."""
    how = resolve(
        file=tmp_path / "ds.json",
        train_micro_batch_size_per_gpu=64,
        steps_per_print=2000,
        optimizer={"type": "SGD", "params": {"lr": 0.001, "momentum": 0.9}},
        scheduler={
            "type": "WarmupDecayLR",
            "params": {
                "last_batch_iteration": -1,
                "warmup_min_lr": 0,
                "warmup_max_lr": 0.001,
                "warmup_num_steps": 10,
                "total_num_steps": 100,
            },
        },
        pipeline={"type": "PipelineModule", "params": {"num_stages": 2}},
        zero_optimization=False,
    )
    assert how.settings.log_every == 2000
    plan = how.schedule(100)
    assert plan.block is not None
    curve = schedules.make(plan.block, plan.lr, plan.total).rate
    assert [curve(0), curve(56)] == [0, pytest.approx(0.0005)]
    assert how.notes == ["the config file's pipeline selects --engine pipeline --stages 2"]
    assert (how.settings.engine, how.parallel) == ("pipeline", 1)
    assert resolve("--log-every", "5", file=tmp_path / "ds.json", steps_per_print=2).settings.log_every == 5


@pytest.mark.parametrize(
    ("options", "params", "engine", "stages", "note"),
    [
        ([], {}, "pipeline", None, "the config file's pipeline selects --engine pipeline"),
        (["--stages", "1"], {"num_stages": 2}, "pipeline", 1, "--stages 1 overrides the config file's 2"),
        (
            ["--engine", "ddp"],
            {"num_stages": 2},
            "ddp",
            None,
            "--engine ddp overrides the config file's pipeline",
        ),
        (
            [],
            {"loss_fn": "x"},
            "pipeline",
            None,
            "pipeline.params.loss_fn has no effect: DeepSpeed does not read",
        ),
    ],
)
def test_a_pipeline_of_the_config_file(
    tmp_path: Path, options: list[str], params: dict[str, Any], engine: str, stages: int | None, note: str
) -> None:
    block = {"type": "PipelineModule", "params": params}
    how = resolve(*options, file=tmp_path / "ds.json", pipeline=block)
    assert (how.settings.engine, how.settings.stages) == (engine, stages)
    assert any(note in one for one in how.notes), how.notes


@pytest.mark.parametrize("stages", [0, "two", 1.5, True])
def test_a_number_of_stages_that_is_none(tmp_path: Path, stages: Any) -> None:
    block = {"type": "PipelineModule", "params": {"num_stages": stages}}
    with pytest.raises(
        CommonMistake, match="pipeline.params.num_stages must be a whole number of at least 1"
    ):
        resolve(file=tmp_path / "ds.json", pipeline=block)


def test_a_key_without_effect_is_named(tmp_path: Path) -> None:
    how = resolve(file=tmp_path / "ds.json", activation_checkpointing={"partition_activations": True})
    (note,) = how.notes
    assert note.startswith(
        "the config file's activation_checkpointing has no effect: only a model that calls"
    )
    how = resolve(file=tmp_path / "ds.json", activation_checkpointing={}, pipeline={"stages": "auto"})
    assert how.notes == ["the config file's pipeline has no effect with --engine deepspeed"]


# As the documentation of Hugging Face's Trainer has it.
TRAINER_S = {
    "fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 16},
    "bf16": {"enabled": "auto"},
    "optimizer": {
        "type": "AdamW",
        "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"},
    },
    "scheduler": {
        "type": "WarmupDecayLR",
        "params": {
            "total_num_steps": "auto",
            "warmup_min_lr": "auto",
            "warmup_max_lr": "auto",
            "warmup_num_steps": "auto",
        },
    },
    "zero_optimization": {
        "stage": 3,
        "overlap_comm": True,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_gather_16bit_weights_on_model_save": True,
    },
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "steps_per_print": 2000,
    "wall_clock_breakdown": False,
}


def test_auto_is_an_option_or_a_default(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    argv = ["--lr", "0.01", "--precision", "bf16", "--batch-size", "8", "--warmup-steps", "4"]
    how = resolve(*argv, file=file, **TRAINER_S)
    notes = [note.removeprefix('"auto" in the config file: ') for note in how.notes]
    assert len(notes) == str(TRAINER_S).count("auto") == 16
    for said in (
        "optimizer.params.lr is 0.01",
        "optimizer.params.betas is DeepSpeed's default",
        "bf16.enabled is true",
        "fp16.enabled is false",
        "train_batch_size is 16",
        "gradient_clipping is 1.0",
        "scheduler.params.warmup_max_lr is 0.01",
        "scheduler.params.total_num_steps is the number of steps of the run",
    ):
        assert said in notes
    plan = how.schedule(10)
    assert plan.block is not None
    steps = {"total_num_steps": 100, "warmup_num_steps": 4}
    assert plan.block["params"] == {"warmup_min_lr": 0.0, "warmup_max_lr": 0.01, **steps}
    assert "auto" not in json.dumps(how.config | {"scheduler": plan.block})
    # Without options: the defaults; --scheduler replaces the file's.
    how = resolve("--scheduler", "cosine", file=file, **TRAINER_S)
    assert how.config["optimizer"]["params"] == {"lr": 0.002}
    assert how.batch == Batch(32, 1)
    assert not [note for note in how.notes if "auto" in note and "scheduler" in note]


@pytest.mark.parametrize("kind", ["WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "LRRangeTest"])
def test_a_scheduler_needs_no_params(tmp_path: Path, kind: str) -> None:
    plan = resolve(file=tmp_path / "ds.json", scheduler={"type": kind}).schedule(10)
    assert plan.block is not None
    assert isinstance(plan.block["params"], dict)
    assert schedules.make(plan.block, plan.lr, plan.total).rate(plan.total) >= 0


@pytest.mark.parametrize("name", ["fp16", "half", "float16"])
def test_autocast_s_type_has_one_name(tmp_path: Path, name: str) -> None:
    how = resolve(file=tmp_path / "ds.json", torch_autocast={"enabled": True, "dtype": name})
    assert how.config["torch_autocast"]["dtype"] == "float16"


def test_what_deepspeed_s_validators_refuse_is_one_sentence() -> None:
    need_package("torch", "deepspeed")
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
    from jobgen.train.engines.deepspeed_common import mistakes_of_the_config

    with (
        pytest.raises(
            CommonMistake, match="refuses reduce_bucket_size 'x' in the config of this run"
        ) as caught,
        mistakes_of_the_config(),
    ):
        DeepSpeedZeroConfig(reduce_bucket_size="x")
    assert "\n" not in str(caught.value)


def test_devices_that_deepspeed_cannot_compile_for_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    need_package("torch", "deepspeed")
    from deepspeed.ops.op_builder.fused_adam import FusedAdamBuilder
    from jobgen.train.engines.deepspeed_common import mistakes_of_the_config

    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0a")
    builder = FusedAdamBuilder()
    builder.jit_mode = True
    with (
        pytest.raises(CommonMistake, match="cannot read TORCH_CUDA_ARCH_LIST=9.0a"),
        mistakes_of_the_config(),
    ):
        builder.compute_capability_args()


def test_the_schema_is_the_installed_deepspeed_s() -> None:
    need_package("torch", "deepspeed")
    from tools import write_deepspeed_schema

    made = write_deepspeed_schema.text()
    assert keys.SCHEMA.read_text() == made, "run: python -m tools.write_deepspeed_schema"


VALUES = (None, True, False, -1, 0, 1, 2, 1.0, 1.5, 5e8, [], ["x"], {})
VALUES += ("x", "", "auto", "1", "1.0", " 1", "1e3", "-3", "true", "off")
# The models check these by functions, so that they refuse more than the schema, in one sentence.
VALIDATED = {
    *(("fp16", key) for key in ("loss_scale", "loss_scale_window", "min_loss_scale")),
    *(("tensor_parallel", "dtype"), ("zero_optimization", "compute_grad_norm")),
}


def test_values_are_those_of_deepspeed_s_models() -> None:
    """Each key of a model, by itself."""
    need_package("torch", "deepspeed")
    from tools import write_deepspeed_schema

    wrong = []
    for section, model in write_deepspeed_schema.models().items():
        names = {name for key, field in model.model_fields.items() for name in (key, field.alias) if name}
        for key, value in itertools.product(sorted(names), VALUES):
            ours, theirs = read(section, key, value), read_by(model, key, value)
            useless = isinstance(ours, str) and any(reason in ours for _, reason in values.USELESS.values())
            if useless or (section, key) in VALIDATED:
                continue
            other = isinstance(ours, bool | int | float) and theirs not in (ours, None)
            if other or isinstance(ours, str) != isinstance(theirs, str):
                wrong.append((section, key, value, ours, theirs))
    assert not wrong


def read(section: str, key: str, value: Any) -> Any:
    """What a key of a file becomes, as a list if it is a text; the message if it is refused."""
    block: Any = {key: value}
    for part in reversed(section.split(".")):
        block = {part: block}
    try:
        block = keys.check(block, "ds.json")
    except CommonMistake as error:
        return str(error)
    for part in section.split("."):
        block = block[part]
    return [block[key]] if isinstance(block.get(key), str) else block.get(key)


def read_by(model: Any, key: str, value: Any) -> Any:
    try:
        made = model(**{key: value})
    except (TypeError, ValueError) as error:
        return str(error)
    name = next((name for name, field in model.model_fields.items() if field.alias == key), key)
    found = getattr(made, name, None)  # a deprecated key is gone
    return [found] if isinstance(found, str) else found


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize(("nodes", "per_node"), [(1, 1), (1, 8), (4, 2)])
def test_memory_is_deepspeed_s_estimate(nodes: int, per_node: int, divided: bool) -> None:
    need_package("torch", "deepspeed")
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as stage3
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as stage2

    model = explain.Model(123_456_789, 1_234_567, divided)
    nothing = explain.Buffers(0, 0)
    needs = {
        need.options: (need.host, need.device) for need in explain.needs(model, nodes, per_node, nothing)
    }
    hardware = {"num_gpus_per_node": per_node, "num_nodes": nodes}
    for options, offload in (("--zero-stage 2", False), ("--zero-stage 2 --offload optimizer", True)):
        host, device = stage2(model.parameters, cpu_offload=offload, **hardware)
        assert needs[options][0] == host
        if offload:
            assert needs[options][1] == device + 4 * model.largest, options
    for options, states, weights in (
        ("--zero-stage 3", False, False),
        ("--zero-stage 3 --offload optimizer", True, False),
        ("--zero-stage 3 --offload all", True, True),
    ):
        offload = {"cpu_offload": states, "cpu_offload_params": weights}
        theirs = stage3(*model[:2], **offload, zero_init=divided, **hardware)
        assert needs[options][: 2 if states else 1] == pytest.approx(theirs[: 2 if states else 1], abs=1), (
            options
        )
    assert needs["--zero-stage 2"][1] <= needs["--zero-stage 1"][1] <= needs["--zero-stage 0"][1] * 1.1


def test_memory_is_that_of_a_gpu() -> None:
    """The MiB of a step on an H100 of a GPT with 124M parameters, batch 1 and 128 tokens, as in docs/speed.md."""
    measured = {
        "ZeRO 0": 2459,
        "ZeRO 1": 3008,
        "ZeRO 2": 2853,
        "ZeRO 2, states on the host": 1570,
        "ZeRO 3": 3562,
        "ZeRO 3, states on the host": 1807,
        "ZeRO 3, all on the host": 1645,
        "FSDP": 2049,
    }
    block = 7_087_872
    model = explain.Model(123_587_328, 38_633_472, True, block=block, outside=123_587_328 - 12 * block)
    needs = {need.name: need.device / 2**20 for need in explain.needs(model, 1, 1, explain.Buffers())}
    assert needs == pytest.approx(measured, rel=0.06)


def test_the_bucket_counts_from_zero_1_on() -> None:
    small, large = (
        [need.device for need in explain.needs(explain.Model(10**6, 10**5), 1, 4, explain.Buffers(bucket))]
        for bucket in (0, 10**9)
    )
    assert [round(b - a, -8) for a, b in zip(small, large, strict=True)] == [0, *[2_000_000_000] * 6, 0]


def test_fsdp_shards_all_but_what_is_gathered() -> None:
    model = explain.Model(10**9, 10**7, block=2 * 10**7, outside=10**8)
    one, four = (list(explain.needs(model, nodes, 1, explain.Buffers()))[-1] for nodes in (1, 4))
    assert (one.options, one.device - four.device) == ("--engine fsdp", 12 * 10**9 - 4 * 10**8)
    assert one.device == 16 * 10**9 + 4 * 10**8 + 16 * 2 * 10**7
    accumulating = list(explain.needs(model, 4, 1, explain.Buffers(), accumulation=2))[-1]
    assert accumulating.device - four.device == 4 * 10**9


def test_the_table_of_engines_is_that_of_the_declarations() -> None:
    from jobgen.train.config.engines import ENGINES

    page = (Path(__file__).parents[2] / "docs/training-runs.md").read_text()
    table = {
        cells[1].strip(" `"): [cell.strip() for cell in cells[4:7]]
        for line in page.splitlines()
        if line.startswith("| `") and len(cells := line.split("|")) == 8
    }
    assert list(table) == list(ENGINES)
    for name, spec in ENGINES.items():
        can = [spec.compiles, spec.adapters, spec.async_saves]
        assert [cell != "no" for cell in table[name]] == can, name


def test_weights_that_are_not_trained_have_no_states() -> None:
    """A model of 10**9 parameters, of which 10**7 are trained, is that of half precision and little more."""
    small, whole, tuned = (
        {each.options: each for each in explain.needs(model, 1, 4, explain.Buffers(0, 0))}
        for model in (
            explain.Model(10**7, 0),
            explain.Model(10**9, 0),
            explain.Model(10**9, 0, frozen=10**9 - 10**7),
        )
    )
    for options in tuned:
        divided = 4 if "--zero-stage 3" in options else 1
        half = 0 if "--offload all" in options else 2 * (10**9 - 10**7) / divided
        if options == "--engine fsdp":  # its shares are fp32
            half = 4 * (10**9 - 10**7) / 4
        assert tuned[options].device == pytest.approx(small[options].device + half), options
        assert tuned[options].device <= whole[options].device, options


def test_explain_counts_the_steps() -> None:
    said = "100 samples make {} step(s) an epoch, {} samples"
    assert explain.arithmetic(Batch(8, 2), 3, 100)[1] == said.format(3, "the last of 4")
    assert explain.arithmetic(Batch(5, 2), 2, 100)[1] == said.format(5, "the last of 20")
    assert explain.arithmetic(Batch(8, 2), 3, 100, True)[1] == said.format(2, "without the last 4")


def test_explain_marks_what_does_not_fit() -> None:
    model = explain.Model(1_000_000_000, 10_000_000)
    lines = explain.table(model, 2, 4, 16 * explain.GIB, 40 * explain.GIB, explain.Buffers())
    marked = {line.split("  ")[1]: line for line in lines[2:]}
    assert marked["ZeRO 0"].endswith("does not fit on the device")
    assert not marked["ZeRO 2"].endswith("device")
    assert marked["ZeRO 2, states on the host"].endswith("does not fit on the node")


def trained(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("JOBGEN_", "RANK"))}
    command = [sys.executable, "-m", "jobgen.train", *argv]
    return subprocess.run(command, env={**clean, **env}, capture_output=True, text=True, timeout=60)


def test_explain_by_command(tmp_path: Path) -> None:
    need_package("torch", "numpy", "sklearn")
    done = trained("--explain-for", "2x4", "--global-batch", "512", JOBGEN_ACCELERATOR="cpu")
    assert done.returncode == 0, done.stderr
    assert "global batch 512 = micro batch 64 x accumulation 1 x 8 data-parallel rank(s)" in done.stdout
    assert "--zero-stage 3 --offload all" in done.stdout


@pytest.mark.parametrize("package", ["numpy", "torch", "deepspeed"])
def test_a_missing_package_is_one_sentence(tmp_path: Path, package: str) -> None:
    need_package("torch", "deepspeed", "numpy", "sklearn")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {package!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
    )
    env = {"PYTHONPATH": str(tmp_path), "JOBGEN_RUN_DIR": str(tmp_path / "run"), "JOBGEN_ACCELERATOR": "cpu"}
    assert trained("--help", **env).returncode == 0
    assert trained("--epohcs", "1", **env).returncode == 2
    done = trained("--epochs", "1", **{**env, "JOBGEN_RUN_DIR": str(tmp_path / "another")})
    assert done.returncode == 1
    assert f"the Python package {package} is not installed" in done.stderr
    assert "pip install '.[train]' in a checkout of jobgen" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_value_of_a_config_file_ends_in_a_trace(tmp_path: Path) -> None:
    assert launch_cases("wrong_values.py", {"zero_optimization": {"stage": 1}}, 1, tmp_path) == {}
