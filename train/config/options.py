"""The options with their help and allowed values, group by group. Does not import torch.

An option that a DeepSpeed config file may also state has no default: None means not given.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..errors import CommonMistake
from .converters import (
    SCHEDULERS,
    augmentation,
    decay,
    fraction,
    model,
    one_of,
    own,
    partition,
    real,
    scheduler,
    seconds,
    shape,
    stage,
    whole,
    wholes,
)
from .engine_colossalai import PLUGINS
from .engines import ENGINES

TASKS = ("digits", "mnist", "cifar10")
MODELS = ("cnn", "mlp", "resnet18", "moe")
OPTIMIZERS = ("sgd", "adam", "adamw", "lamb", "muon")
PRECISIONS = ("fp32", "bf16", "fp16", "autocast", "autocast-fp16")
AMP_LEVELS = ("O0", "O1", "O2", "O3")
Add = Callable[..., Any]


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises CommonMistake, with one sentence, for an error."""

    def error(self, message: str) -> NoReturn:
        raise CommonMistake(message)


def parser() -> Parser:
    made = Parser(
        prog="python -m jobgen.train",
        description="Train a network, one process per device, under any launcher.",
        epilog="Exit status: 0 finished, 1 failed, 2 bad input, 3 below --target-accuracy, 4 checkpoints "
        "cannot be written, 75 not finished but resumable. More: python -m jobgen.train export --help, and "
        "evaluate --help; python -m jobgen.train preflight checks the hosts and exits with 74 for a fault.",
        allow_abbrev=False,
    )
    groups = {
        "task": task,
        "data": data,
        "batch": batch,
        "optimizer and learning rate": optimizer,
        "precision": precision,
        "engine": engine,
        "mixture of experts (--model moe)": experts,
        "watching": watching,
        "checkpoints and survival": checkpoints,
        "launchers": launchers,
    }
    for title, fill in groups.items():
        fill(made.add_argument_group(title).add_argument)
    return made


def task(add: Add) -> None:
    _choice(add, "--task", TASKS, "digits (of scikit-learn, the default), mnist or cifar10")
    add(
        "--dataset",
        type=own,
        metavar="PKG.MOD:NAME",
        help="instead of --task: your own function that returns the data, see data/own.py; "
        "called with --data if it takes an argument",
    )
    add(
        "--data",
        type=Path,
        metavar="DIR",
        help="directory with the files of mnist or cifar10; nothing is downloaded",
    )
    add(
        "--model",
        type=model(MODELS),
        default="cnn",
        metavar="|".join((*MODELS, "PKG.MOD:NAME")),
        help="cnn (small conv net, the default), mlp, resnet18 (the form for CIFAR), moe (cnn with experts); "
        "PKG.MOD:NAME is your own function, called with the shape of an image and the number of classes",
    )
    add("--epochs", type=whole(1), default=10, metavar="N", help="passes over the training set (default: 10)")
    add(
        "--seed",
        type=whole(0),
        default=0,
        metavar="N",
        help="initial weights and order of samples (default: 0)",
    )
    add(
        "--log-every",
        type=whole(1),
        default=10,
        metavar="N",
        help="steps between two lines of metrics (default: 10)",
    )


def data(add: Add) -> None:
    add(
        "--augment",
        type=augmentation,
        default=(),
        metavar="crop,flip",
        help="change each training image at random: crop (after padding by an eighth of its height; "
        "crop:N for N pixels) and flip (left and right)",
    )
    add(
        "--workers",
        type=whole(0),
        default=0,
        metavar="N",
        help="keep the images in the host's memory, and prepare batches in this number of threads "
        "(default 0: all images are on the device, and batches are prepared there)",
    )
    add(
        "--cache",
        type=Path,
        metavar="DIR",
        help="keep the decoded arrays in this directory of the host, and read them from there later",
    )


def batch(add: Add) -> None:
    add(
        "--batch-size",
        type=whole(1),
        metavar="N",
        help="micro batch: samples per device and forward pass (default: 32)",
    )
    add("--accumulation", type=whole(1), metavar="N", help="forward passes per optimizer step (default: 1)")
    add(
        "--global-batch",
        type=whole(1),
        metavar="N",
        help="samples per optimizer step: --batch-size x --accumulation x data-parallel ranks; "
        "two of the three determine the third",
    )
    add("--explain", action="store_true", help="print the arithmetic and the memory of each stage, then exit")
    add(
        "--explain-for",
        type=shape,
        metavar="NODESxRANKS",
        help="like --explain, for this number of nodes and ranks per node, in one process",
    )
    add(
        "--device-memory",
        type=real(above=0),
        metavar="GIB",
        help="with --explain: memory of a device (default: that of this host's device)",
    )


def optimizer(add: Add) -> None:
    _choice(add, "--optimizer", OPTIMIZERS, "default: adam; lamb needs a GPU")
    add("--lr", type=real(above=0), metavar="X", help="learning rate (default: 0.002; sgd 0.05, muon 0.02)")
    _choice(
        add,
        "--scale-lr",
        ("none", "linear", "sqrt"),
        "times the number of data-parallel ranks, or its square root (default: none)",
        "none",
    )
    add("--momentum", type=real(), metavar="X", help="momentum of sgd (default: 0.9) and muon (0.95)")
    add("--weight-decay", type=real(), metavar="X", help="weight decay (default: 0)")
    add("--clip", type=real(), metavar="X", help="clip the norm of the gradients (default: 1; 0: none)")
    add("--ema", type=decay, metavar="X", help="evaluate averaged weights, with this decay, such as 0.99")
    add(
        "--scheduler",
        type=scheduler,
        metavar="|".join((*SCHEDULERS, "PKG.MOD:NAME")),
        help="of the learning rate (default: none); PKG.MOD:NAME is your own function or class: with an "
        "argument 'step' it returns the factor on --lr for a step, otherwise it is called with the optimizer "
        "and returns an object with step()",
    )
    _choice(
        add,
        "--scheduler-unit",
        ("batch", "epoch"),
        "step the scheduler after each batch (default) or each epoch; its numbers count these",
        "batch",
    )
    add("--warmup-steps", type=whole(1), metavar="N", help="of the warm-up (default: a tenth of all)")
    add("--milestones", type=wholes, metavar="N,N,...", help="multistep: steps at which the rate decreases")
    add("--gamma", type=real(above=0), metavar="X", help="multistep: factor on the rate (default: 0.1)")


def precision(add: Add) -> None:
    _choice(
        add,
        "--precision",
        PRECISIONS,
        "fp32 (default); bf16 or fp16 weights with an fp32 master copy; autocast: torch casts per operation, "
        "to bf16 or, with dynamic loss scaling, to fp16",
    )
    _choice(
        add,
        "--amp",
        AMP_LEVELS,
        "levels of NVIDIA's retired apex: O0 is fp32, O1 autocast, O2 bf16, O3 bf16 without a master copy",
    )


def engine(add: Add) -> None:
    _choice(
        add,
        "--engine",
        tuple(ENGINES),
        "deepspeed (default: data parallel, ZeRO), pipeline (DeepSpeed's, of an nn.Sequential), "
        "ddp (plain torch) or colossalai (in a separate environment)",
        "deepspeed",
    )
    _choice(add, "--plugin", PLUGINS, "colossalai: plug-in of the Booster (default: torch_ddp)")
    add(
        "--zero-stage",
        type=stage,
        metavar="0..3",
        help="what DeepSpeed's ZeRO shards over the ranks: 0 nothing (default), 1 optimizer "
        "states, 2 also gradients, 3 also weights",
    )
    _choice(
        add,
        "--offload",
        ("none", "optimizer", "all"),
        "keep optimizer states (ZeRO 1 to 3), or the weights too (ZeRO 3), in the host's memory",
    )
    add("--stages", type=whole(1), metavar="N", help="pipeline: number of stages (default: all ranks)")
    add(
        "--partition",
        type=partition,
        metavar="parameters|uniform|type:REGEX",
        help="pipeline: what is balanced over the stages: parameters (default), layers, or layers of a class",
    )
    add(
        "--deepspeed_config",
        "--deepspeed-config",
        type=Path,
        metavar="FILE",
        help="DeepSpeed's JSON config, for every engine; options override it",
    )


def experts(add: Add) -> None:
    add("--experts", type=whole(1), metavar="N", help="number of experts (default: 4)")
    add("--expert-parallel", type=whole(1), metavar="N", help="ranks that share the experts (default: 1)")
    add("--top-k", type=whole(1), metavar="1|2", help="experts per sample (default: 1)")
    add("--capacity", type=real(above=0), metavar="X", help="capacity factor of an expert (default: 1)")
    add("--min-capacity", type=whole(0), metavar="N", help="minimum capacity, in samples (default: 4)")
    add("--residual", action="store_true", default=None, help="PR-MoE: a dense layer beside the experts")
    _choice(add, "--noisy-gate", ("none", "rsample", "jitter"), "noise in the gate while training")
    add("--aux-weight", type=real(), metavar="X", help="weight of the load-balancing loss (default: 0.01)")


def watching(add: Add) -> None:
    add(
        "--tensorboard",
        type=Path,
        nargs="?",
        const=Path("tensorboard"),
        metavar="DIR",
        help="write TensorBoard's event files there (default: tensorboard in the run directory)",
    )
    add(
        "--csv",
        type=Path,
        nargs="?",
        const=Path("metrics.csv"),
        metavar="FILE",
        help="also write the metrics as a table (default: metrics.csv in the run directory)",
    )
    add(
        "--wall-clock-breakdown",
        action="store_true",
        help="measure the time of each part of a step; waits for the device, which makes steps slower",
    )
    add(
        "--profile",
        type=whole(1),
        nargs="?",
        const=5,
        metavar="STEPS",
        help="record this number of steps (5) with torch's profiler, after two steps of the first epoch: "
        "a trace for each rank and a table of rank 0 in the run directory",
    )


def checkpoints(add: Add) -> None:
    add(
        "--save-every",
        type=whole(1),
        metavar="N",
        help="save a checkpoint after every N optimizer steps, and one at the end",
    )
    add("--save-every-epochs", type=whole(1), metavar="N", help="the same, after every N epochs")
    add(
        "--checkpoint-dir",
        type=Path,
        metavar="DIR",
        help="directory of the checkpoints (default: checkpoints in the run directory)",
    )
    add("--keep", type=whole(1), metavar="N", help="keep only the N newest checkpoints (default: all)")
    add(
        "--resume",
        nargs="?",
        const="latest",
        metavar="ID|DIR",
        help="resume from a checkpoint: the latest in --checkpoint-dir, the one with this id, such as "
        "step-000123, or the one (or the latest) in this directory",
    )
    add(
        "--target-accuracy",
        type=fraction,
        metavar="X",
        help="exit with status 3 if the accuracy of the last evaluation is below X, such as 0.97",
    )
    add(
        "--hang-timeout",
        type=seconds,
        metavar="TIME",
        help="hang timeout, such as 90s, 30m or 2h: after this time without a step, write the stacks of all "
        "ranks and exit with status 75 (default: JOBGEN_HANG_TIMEOUT, or 30m; 0: none)",
    )
    add("--stall", dest="hang_timeout", type=seconds, help=argparse.SUPPRESS, default=argparse.SUPPRESS)


def launchers(add: Add) -> None:
    add("--deepspeed", action="store_true", help="ignored, for scripts of DeepSpeed; see --engine")
    add("--local_rank", "--local-rank", type=int, metavar="N", help="set by launchers")


def _choice(add: Add, name: str, allowed: Sequence[str], text: str, default: str | None = None) -> None:
    add(name, type=one_of(allowed), metavar="|".join(allowed), help=text, default=default)
