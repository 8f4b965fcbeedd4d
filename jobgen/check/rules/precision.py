"""Rules about settings of a DeepSpeed config that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.dsconfig import contents, is_on, zero_stage
from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.script.script import Hit, Script

_TESTED = ("adam", "adamw", "lamb", "adagrad", "lion", "muon")

_ONE_BIT = ("onebitadam", "onebitlamb", "zerooneadam")


@rule(
    "config-precision",
    ERROR,
    "Precisions that exclude each other",
    """fp16 and bf16 exclude each other. At ZeRO stage 0, fp16 never scales the loss but unscales the
    gradients (DeepSpeed 0.18.9 to 0.19.8): a warning.""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config bad.json
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config good.json
    """,
    files={
        "bad.json": '{"train_batch_size": 32, "fp16": {"enabled": true}, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}',
        "good.json": '{"train_batch_size": 32, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}',
    },
)
def precisions(script: Script) -> Iterator[Hit]:
    if found := contents(script):
        line, name, config = found
        half = is_on(config, "fp16")
        if half and (is_on(config, "bf16") or is_on(config, "bfloat16")):
            yield Hit(line, f"{name}: fp16 and bf16 are both enabled", "disable one of them")
        if half and zero_stage(config) == 0:
            yield Hit(
                line,
                f"{name}: fp16 at ZeRO stage 0 unscales the gradients, but never scales the loss",
                "set zero_optimization.stage to 1, or use bf16",
                WARNING,
            )


@rule(
    "config-amp",
    ERROR,
    "AMP with ZeRO or another precision",
    """AMP cannot be combined with fp16, bf16 or ZeRO.""",
    fix="keep one of them",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config bad.json
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config good.json
    """,
    files={
        "bad.json": '{"train_batch_size": 32, "amp": {"enabled": true, "opt_level": "O1"}, "zero_optimization": {"stage": 2}}',
        "good.json": '{"train_batch_size": 32, "amp": {"enabled": true, "opt_level": "O1"}}',
    },
)
def amp(script: Script) -> Iterator[Hit]:
    if found := contents(script):
        line, name, config = found
        other = next(
            (key for key in ("fp16", "bf16") if is_on(config, key)), "ZeRO" if zero_stage(config) else None
        )
        if is_on(config, "amp") and other:
            yield Hit(line, f"{name}: amp cannot be combined with {other}")


@rule(
    "config-pipeline",
    ERROR,
    "ZeRO 2 or 3 with a pipeline",
    """A pipeline splits the gradients by time, ZeRO 2 and 3 split them by parameters: DeepSpeed refuses
    both together. A pipeline works with ZeRO 0 and 1.""",
    fix="set zero_optimization.stage to 1",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config bad.json
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config good.json
    """,
    files={
        "bad.json": '{"train_batch_size": 32, "pipeline": {"stages": 2}, "zero_optimization": {"stage": 2}}',
        "good.json": '{"train_batch_size": 32, "pipeline": {"stages": 2}, "zero_optimization": {"stage": 1}}',
    },
)
def pipeline(script: Script) -> Iterator[Hit]:
    if found := contents(script):
        line, name, config = found
        block = config.get("pipeline")
        stages = block.get("stages") if isinstance(block, dict) else None
        if isinstance(stages, int) and stages > 1 and zero_stage(config) > 1:
            yield Hit(line, f"{name}: a pipeline supports ZeRO stages 0 and 1, not {zero_stage(config)}")


@rule(
    "config-optimizer",
    ERROR,
    "An optimizer that ZeRO refuses",
    """With ZeRO, DeepSpeed refuses optimizers that it has not tested, such as SGD, unless
    `zero_allow_untested_optimizer` is true. The 1-bit optimizers were removed in 0.19.7.""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config bad.json
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config good.json
    """,
    files={
        "bad.json": '{"train_batch_size": 32, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}}',
        "good.json": '{"train_batch_size": 32, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true}',
    },
)
def optimizer(script: Script) -> Iterator[Hit]:
    if not (found := contents(script)):
        return
    line, name, config = found
    block = config.get("optimizer")
    kind = str(block.get("type", "")).lower() if isinstance(block, dict) else ""
    if kind in _ONE_BIT:
        yield Hit(line, f"{name}: DeepSpeed 0.19.7 removed the 1-bit optimizers", "use Adam")
    elif (
        kind
        and zero_stage(config)
        and kind not in _TESTED
        and not config.get("zero_allow_untested_optimizer")
    ):
        yield Hit(
            line,
            f"{name}: DeepSpeed refuses {kind} with ZeRO, because it is untested",
            'add "zero_allow_untested_optimizer": true',
        )
