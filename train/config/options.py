"""The options with their help and allowed values, group by group. Does not import torch.

An option that a DeepSpeed config file may also state has no default: None means not given.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..errors import CommonMistake
from . import finetuning, language
from .converters import (
    SCHEDULERS,
    augmentation,
    betas,
    checkpoint,
    decay,
    fraction,
    metric,
    metrics,
    model,
    name_or_own,
    normalization,
    one_of,
    own,
    partition,
    path,
    paths,
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
from .speed import COMPILE, FUSED, MATMUL

TASKS = ("digits", "mnist", "cifar10", "text")
LOSSES = ("cross_entropy", "mse", "bce", "l1", "nll", "model")
METRICS = ("accuracy", "perplexity", "mae")
MODELS = ("cnn", "mlp", "lenet", "resnet18", "moe", "gpt")
OPTIMIZERS = ("sgd", "adam", "adamw", "lamb", "muon")
PRECISIONS = ("fp32", "bf16", "fp16", "autocast", "autocast-fp16")
AMP_LEVELS = ("O0", "O1", "O2", "O3")
Add = Callable[..., Any]


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises CommonMistake, with one sentence, for an error."""

    def error(self, message: str) -> NoReturn:
        raise CommonMistake(message)


def parser() -> Parser:
    result = Parser(
        prog="python -m jobgen.train",
        description="Train a network, one process per device, under any launcher.",
        epilog="Exit status: 0 finished, 1 failed, 2 bad input, 3 below --target-accuracy, 4 checkpoints "
        "cannot be written, 75 not finished but resumable. More: python -m jobgen.train export --help, "
        "evaluate --help and sample --help; python -m jobgen.train preflight checks the hosts and exits with "
        "74 for a fault.",
        allow_abbrev=False,
    )
    groups = {
        "task": task,
        "length and evaluation": length,
        "data": data,
        "batch": batch,
        "optimizer": optimizer,
        "learning rate": learning_rate,
        "precision": precision,
        "speed": speed,
        "engine": engine,
        "text (--task text)": language.text,
        "transformer (--model gpt)": language.gpt,
        "mixture of experts (--model moe)": experts,
        "fine-tuning": finetuning.options,
        "watching": observation,
        "checkpoints and survival": checkpoints,
        "launchers": launchers,
    }
    for title, fill in groups.items():
        fill(result.add_argument_group(title).add_argument)
    return result


def task(add: Add) -> None:
    _choice(add, "--task", TASKS, "digits (of scikit-learn), mnist, cifar10 or text (default: digits)")
    add(
        "--dataset",
        type=own,
        metavar="PKG.MOD:NAME",
        help="instead of --task: your own function that returns the data, see data/own.py; "
        "called with --data if it takes an argument",
    )
    add(
        "--data",
        type=paths,
        nargs="+",
        metavar="PATH",
        help="directory of mnist or cifar10; files or directories of text; nothing is downloaded",
    )
    add(
        "--model",
        type=model(MODELS),
        metavar="|".join((*MODELS, "PKG.MOD:NAME", "hf:DIR")),
        help="cnn (small conv net, the default for images), mlp, lenet (of PyTorch's tutorial), resnet18 "
        "(for CIFAR), moe (cnn with experts), gpt (transformer, the default for text); PKG.MOD:NAME is your "
        "own function, called with the shape of an input and the number of outputs; hf:DIR is a model of "
        "transformers",
    )
    add(
        "--loss",
        type=name_or_own(LOSSES),
        metavar="|".join((*LOSSES, "PKG.MOD:FN")),
        help="what is minimised (default: that of the data; images: cross_entropy): model is the model's own "
        "loss; PKG.MOD:FN is your own function of outputs and targets",
    )
    _choice(
        add,
        "--loss-by",
        ("sample", "token"),
        "what the loss is a mean over: the samples of a step, each of which is a mean over its tokens, or "
        "all tokens of a step (default: token for text, otherwise sample)",
    )
    add(
        "--seed",
        type=whole(0),
        default=0,
        metavar="N",
        help="initial weights and order of samples (default: 0)",
    )


def length(add: Add) -> None:
    _count(add, "--epochs", "passes over the training set (default: 10, or as many as --max-steps needs)")
    _count(add, "--max-steps", "end after N optimizer steps in all, or after --epochs, if that is earlier")
    _count(add, "--eval-every", "evaluate after every N optimizer steps, too, not only after each epoch")
    _count(
        add,
        "--eval-steps",
        "evaluate on the first N global batches of the test samples (default: all); `evaluate` takes all",
    )
    add(
        "--metric",
        type=metrics(METRICS),
        metavar="|".join((*METRICS, "PKG.MOD:FN")),
        help="what the evaluation measures beside the loss, separated by commas (default: that of the data; "
        "images: accuracy)",
    )
    _count(
        add,
        "--early-stopping",
        "end after N evaluations without an improvement of the metric of --keep-best, or of the loss",
    )
    add(
        "--target-accuracy",
        type=fraction,
        metavar="X",
        help="exit with status 3 if the accuracy of the last evaluation is below X, such as 0.97",
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
        "--normalize",
        type=normalization,
        metavar="MEAN:STD",
        help="normalise images with this mean and standard deviation, on a scale of 0 to 1: one value "
        "each, or one for each channel, separated by commas (default: those of the data set)",
    )
    add(
        "--workers",
        type=whole(0),
        metavar="N",
        help="prepare batches in this number of threads, from images in the host's memory, or of processes, "
        "for data sets in Python (default: 0, or that of a DataLoader; 0: all images are on the device)",
    )
    add(
        "--cache",
        type=path,
        metavar="DIR",
        help="keep the decoded arrays in this directory of the host, and read them from there later",
    )
    _flag(
        add,
        "--drop-last",
        "leave out the samples at the end of an epoch that do not fill a global batch "
        "(default: the last step of an epoch is smaller)",
    )


def batch(add: Add) -> None:
    _count(add, "--batch-size", "micro batch: samples per device and forward pass (default: 32)")
    _count(add, "--accumulation", "forward passes per optimizer step (default: 1)")
    _count(
        add,
        "--global-batch",
        "samples per optimizer step: --batch-size x --accumulation x data-parallel ranks; "
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
    add(
        "--optimizer",
        type=name_or_own(OPTIMIZERS),
        metavar="|".join((*OPTIMIZERS, "PKG.MOD:FN")),
        help="optimizer (default: adam); lamb needs a GPU; PKG.MOD:FN is your own function, called with the "
        "model and, if it has this parameter, with lr; it returns an optimizer of torch",
    )
    add("--momentum", type=real(), metavar="X", help="momentum of sgd (default: 0.9) and muon (0.95)")
    add("--betas", type=betas, metavar="X,X", help="betas of adam, adamw and lamb (default: 0.9,0.999)")
    add("--weight-decay", type=real(), metavar="X", help="weight decay (default: 0)")
    add("--clip", type=real(), metavar="X", help="clip the norm of the gradients (default: 1; 0: none)")
    add("--ema", type=decay, metavar="X", help="evaluate averaged weights, with this decay, such as 0.99")


def learning_rate(add: Add) -> None:
    add("--lr", type=real(above=0), metavar="X", help="learning rate (default: 0.002; sgd 0.05, muon 0.02)")
    _choice(
        add,
        "--scale-lr",
        ("none", "linear", "sqrt"),
        "multiply --lr by the number of data-parallel ranks, or by its square root (default: none)",
        "none",
    )
    add(
        "--scheduler",
        type=scheduler,
        metavar="|".join((*SCHEDULERS, "PKG.MOD:NAME")),
        help="schedule of the learning rate (default: none); plateau reduces it if the metric of --keep-best "
        "or the loss of the evaluation no longer improves; PKG.MOD:NAME is your own function or class: with "
        "an argument 'step' it returns the factor on --lr for a step, otherwise it is called with the "
        "optimizer and returns an object with step(), or with step(metric), which is called after each "
        "evaluation",
    )
    _choice(
        add,
        "--scheduler-unit",
        ("batch", "epoch"),
        "step the scheduler after each batch or each epoch; its numbers count these (default: batch)",
        "batch",
    )
    _count(add, "--warmup-steps", "steps of the warm-up (default: a tenth of all)")
    add("--milestones", type=wholes, metavar="N,N,...", help="multistep: steps at which the rate decreases")
    add(
        "--gamma",
        type=real(above=0),
        metavar="X",
        help="multistep and plateau: factor on the rate (default: 0.1)",
    )
    _count(
        add,
        "--patience",
        "plateau: evaluations without an improvement that do not reduce the rate yet (default: 10)",
        least=0,
    )


def precision(add: Add) -> None:
    _choice(
        add,
        "--precision",
        PRECISIONS,
        "fp32; bf16 or fp16 weights with an fp32 master copy; autocast: torch casts per operation, to bf16 "
        "or, with dynamic loss scaling, to fp16 (default: fp32)",
    )
    _choice(
        add,
        "--amp",
        AMP_LEVELS,
        "levels of NVIDIA's retired apex: O0 is fp32, O1 autocast, O2 bf16, O3 bf16 without a master copy",
    )


def speed(add: Add) -> None:
    add(
        "--compile",
        type=one_of(COMPILE),
        nargs="?",
        const=COMPILE[0],
        metavar="|".join(COMPILE),
        help="ddp, fsdp and deepspeed: compile the model with torch.compile, in this mode (default: not); "
        "reduce-overhead and max-autotune record CUDA graphs",
    )
    _choice(
        add,
        "--channels-last",
        ("on", "off"),
        "memory format of images (default: on for convolutions on NVIDIA and AMD GPUs, not in plain fp32)",
    )
    _choice(
        add,
        "--matmul-precision",
        MATMUL,
        "torch's precision of matrix products in fp32: highest is fp32, high TF32, medium bf16 "
        "(default: high on NVIDIA GPUs, otherwise highest)",
    )
    _choice(
        add,
        "--fused-optimizer",
        FUSED,
        "kernels of the optimizer (default: torch on GPUs, otherwise none); deepspeed: FusedAdam, or with "
        "--offload DeepSpeedCPUAdam, which are compiled at the first use unless they are installed",
    )
    _flag(add, "--sync-batchnorm", "ddp, fsdp and deepspeed on GPUs: BatchNorm averages over all ranks")
    _flag(
        add,
        "--deterministic",
        "only kernels that repeat their results: then a resumed run is exact on a GPU, too",
    )
    _flag(add, "--static-graph", "ddp: each step uses the same parameters in the same order")
    _count(add, "--bucket-mb", "ddp: MiB of gradients per exchange (default: 25)")


def engine(add: Add) -> None:
    _choice(
        add,
        "--engine",
        tuple(ENGINES),
        "deepspeed (data parallel, ZeRO), pipeline (DeepSpeed's, of an nn.Sequential), ddp (plain torch), "
        "fsdp (torch's sharding of weights and states) or colossalai (in a separate environment) (default: "
        "deepspeed)",
    )
    _choice(add, "--plugin", PLUGINS, "colossalai: plug-in of the Booster (default: torch_ddp)")
    add(
        "--initial-scale",
        type=real(above=0),
        metavar="X",
        help="colossalai in fp16: first loss scale, as initial_scale of its plug-ins (default: 65536)",
    )
    add(
        "--zero-stage",
        type=stage,
        metavar="0..3",
        help="what DeepSpeed's ZeRO shards over the ranks: 0 nothing (default), 1 optimizer "
        "states, 2 also gradients, 3 also weights; fsdp: 3 (default), or 2 to gather the weights only once "
        "a step",
    )
    _choice(
        add,
        "--offload",
        ("none", "optimizer", "all"),
        "keep optimizer states (ZeRO 1 to 3), or the weights too (ZeRO 3), in the host's memory",
    )
    _count(add, "--stages", "pipeline: number of stages (default: all ranks)")
    add(
        "--partition",
        type=partition,
        metavar="parameters|uniform|type:REGEX",
        help="pipeline: what is balanced over the stages: parameters (default), layers, or layers of a class",
    )
    add(
        "--deepspeed_config",
        "--deepspeed-config",
        type=path,
        metavar="FILE",
        help="DeepSpeed's JSON config, for every engine; options override it",
    )


def experts(add: Add) -> None:
    _count(add, "--experts", "number of experts (default: 4)")
    _count(add, "--expert-parallel", "ranks that share the experts (default: 1)")
    add("--top-k", type=whole(1), metavar="1|2", help="experts per sample (default: 1)")
    add("--capacity", type=real(above=0), metavar="X", help="capacity factor of an expert (default: 1)")
    _count(add, "--min-capacity", "minimum capacity, in samples (default: 4)", least=0)
    _flag(add, "--residual", "PR-MoE: a dense layer beside the experts")
    _choice(add, "--noisy-gate", ("none", "rsample", "jitter"), "noise in the gate while training")
    add("--aux-weight", type=real(), metavar="X", help="weight of the load-balancing loss (default: 0.01)")


def observation(add: Add) -> None:
    _count(
        add,
        "--log-every",
        "steps between two lines of metrics (default: 10, or steps_per_print of the config file)",
    )
    add(
        "--tensorboard",
        type=path,
        nargs="?",
        const=Path("tensorboard"),
        metavar="DIR",
        help="write TensorBoard's event files there (default: tensorboard in the run directory)",
    )
    add(
        "--csv",
        type=path,
        nargs="?",
        const=Path("metrics.csv"),
        metavar="FILE",
        help="also write the metrics as a table (default: metrics.csv in the run directory)",
    )
    add(
        "--logger",
        type=own,
        metavar="PKG.MOD:NAME",
        help="your own function, called on rank 0 as NAME(directory, options); it returns a function that is "
        "called as write(event, values) with each line of metrics.jsonl, and at the end with the exit status",
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
    _count(add, "--save-every", "save a checkpoint after every N optimizer steps, too")
    _count(add, "--save-every-epochs", "save a checkpoint after every N epochs, too")
    _flag(
        add,
        "--async-save",
        "ddp and fsdp: copy the states to the host's memory, and write them while the training goes on",
    )
    add(
        "--checkpoint-dir",
        type=path,
        metavar="DIR",
        help="directory of the checkpoints (default: checkpoints in the run directory)",
    )
    _count(add, "--keep", "keep only the N newest checkpoints (default: all)")
    add(
        "--keep-best",
        type=metric,
        metavar="METRIC",
        help="save a checkpoint after each evaluation that is the best so far by this metric (loss, accuracy "
        "or another one of the run), name it in the file best, and keep it beside those of --keep",
    )
    add(
        "--no-save",
        action="store_true",
        help="save no checkpoint at the end of the training (default: one, also without --save-every)",
    )
    add(
        "--resume",
        type=checkpoint,
        nargs="?",
        const="latest",
        metavar="ID|DIR",
        help="resume from a checkpoint: the latest in --checkpoint-dir, the one with this id, such as "
        "step-000123, or the one (or the latest) in this directory",
    )
    add(
        "--hang-timeout",
        type=seconds,
        metavar="TIME",
        help="hang timeout, such as 90s, 30m or 2h: after this time without a step, write the stacks of all "
        "ranks and exit with status 75 (default: 30m, or JOBGEN_HANG_TIMEOUT; 0: none)",
    )


def launchers(add: Add) -> None:
    add("--deepspeed", action="store_true", help="ignored, for scripts of DeepSpeed; see --engine")
    add("--local_rank", "--local-rank", type=int, metavar="N", help="set by launchers")


def _count(add: Add, name: str, text: str, least: int = 1) -> None:
    """Add an option for a whole number of at least `least`, without a default."""
    add(name, type=whole(least), metavar="N", help=text)


def _flag(add: Add, name: str, text: str) -> None:
    """Add a flag that a config file may also state: None means not given."""
    add(name, action="store_true", default=None, help=text)


def _choice(add: Add, name: str, allowed: Sequence[str], text: str, default: str | None = None) -> None:
    add(name, type=one_of(allowed), metavar="|".join(allowed), help=text, default=default)
