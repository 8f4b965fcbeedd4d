"""The options of python -m jobgen.train. No torch here: a typing mistake must not cost seconds."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from .errors import CommonMistake, suggestion

TASKS = ("digits", "mnist", "cifar10")
MODELS = ("cnn", "mlp")
OPTIMIZERS = ("sgd", "adam")
SCHEDULERS = ("none", "warmup", "warmup-decay")
PRECISIONS = ("fp32", "bf16", "fp16")


@dataclass(frozen=True)
class Settings:
    """What the command line said. None: not said, so that a DeepSpeed config file may say it."""

    task: str
    data: Path | None
    model: str
    epochs: int
    seed: int
    log_every: int
    deepspeed_config: Path | None
    local_rank: int | None
    batch_size: int | None
    accumulation: int | None
    optimizer: str | None
    lr: float | None
    momentum: float | None
    weight_decay: float | None
    scheduler: str | None
    warmup_steps: int | None
    precision: str | None
    zero_stage: int | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommonMistake(message)


def parse(argv: Sequence[str]) -> Settings:
    """The settings that the command line states. Raises CommonMistake, one sentence, for a mistake."""
    parser = _options()
    namespace, rest = parser.parse_known_args(argv)
    if rest:
        word = rest[0].split("=")[0]
        known = [option for action in parser._actions for option in action.option_strings]
        what = "option" if word.startswith("-") else "argument"
        raise CommonMistake(f"unknown {what} {word!r}{suggestion(word, known) or '; see --help'}")
    values = vars(namespace)
    values.pop("deepspeed")
    settings = Settings(**values)
    _check(settings)
    return settings


def _options() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m jobgen.train",
        description="Train a network, one process per device, under any launcher.",
        epilog="Exit status: 0 finished, 1 failed, 2 bad input.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--task",
        type=_one_of(TASKS),
        metavar="|".join(TASKS),
        default="digits",
        help="digits (bundled with scikit-learn, the default), mnist or cifar10",
    )
    add(
        "--data",
        type=Path,
        metavar="DIR",
        help="directory with the files of mnist or cifar10; nothing is ever downloaded",
    )
    add(
        "--model",
        type=_one_of(MODELS),
        metavar="|".join(MODELS),
        default="cnn",
        help="cnn (small conv net, the default) or mlp",
    )
    add(
        "--epochs", type=_whole(1), default=10, metavar="N", help="passes over the training set (default: 10)"
    )
    add(
        "--seed",
        type=_whole(0),
        default=0,
        metavar="N",
        help="initial weights and order of samples (default: 0)",
    )
    add(
        "--log-every",
        type=_whole(1),
        default=10,
        metavar="N",
        help="steps between two lines of metrics (default: 10)",
    )
    add(
        "--batch-size",
        type=_whole(1),
        metavar="N",
        help="micro batch: samples per device and forward pass (default: 32); "
        "a step takes this x accumulation x number of ranks",
    )
    add("--accumulation", type=_whole(1), metavar="N", help="forward passes per optimizer step (default: 1)")
    add("--optimizer", type=_one_of(OPTIMIZERS), metavar="|".join(OPTIMIZERS), help="sgd or adam (default)")
    add(
        "--lr", type=_real(above=0), metavar="X", help="learning rate (default: 0.002 for adam, 0.05 for sgd)"
    )
    add("--momentum", type=_real(), metavar="X", help="momentum of sgd (default: 0.9)")
    add("--weight-decay", type=_real(), metavar="X", help="weight decay (default: 0)")
    add(
        "--scheduler",
        type=_one_of(SCHEDULERS),
        metavar="|".join(SCHEDULERS),
        help="of the learning rate: none (the default), warmup, or warmup-decay "
        "(linear up, then linear down to 0 at the last step)",
    )
    add(
        "--warmup-steps",
        type=_whole(1),
        metavar="N",
        help="steps of the warm-up (default: a tenth of all steps)",
    )
    add(
        "--precision",
        type=_one_of(PRECISIONS),
        metavar="|".join(PRECISIONS),
        help="fp32 (default), bf16 or fp16",
    )
    add(
        "--zero-stage",
        type=_stage,
        metavar="0..3",
        help="what DeepSpeed's ZeRO spreads over the ranks: 0 nothing (default), 1 optimizer "
        "states, 2 gradients too, 3 weights too",
    )
    add(
        "--deepspeed_config",
        "--deepspeed-config",
        type=Path,
        metavar="FILE",
        help="DeepSpeed's JSON config; options given here win over it",
    )
    add("--deepspeed", action="store_true", help="accepted for DeepSpeed's sake; it is always used")
    add("--local_rank", "--local-rank", type=int, metavar="N", help="set by launchers")
    return parser


def _check(settings: Settings) -> None:
    if settings.task != "digits" and settings.data is None:
        raise CommonMistake(
            f"--task {settings.task} needs --data DIR, the directory with its files (nothing is downloaded)"
        )
    if settings.task == "digits" and settings.data is not None:
        raise CommonMistake("--data is not for --task digits, whose data comes with scikit-learn")
    if settings.momentum is not None and settings.optimizer == "adam":
        raise CommonMistake("--momentum is for --optimizer sgd, not for adam")
    if settings.warmup_steps is not None and settings.scheduler == "none":
        raise CommonMistake("--warmup-steps needs --scheduler warmup or warmup-decay, not none")


def _one_of(allowed: Sequence[str]) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in allowed:
            choices = ", ".join(allowed)
            raise argparse.ArgumentTypeError(f"{text!r} is none of {choices}{suggestion(text, allowed)}")
        return text

    return convert


def _whole(least: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return convert


def _real(above: float | None = None) -> Callable[[str], float]:
    rule = "above 0" if above is not None else "of at least 0"

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        # The comparison is False for nan, so nan is refused too.
        if not (0 <= value < float("inf")) or (above is not None and value <= above):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {rule}")
        return value

    return convert


def _stage(text: str) -> int:
    if text not in ("0", "1", "2", "3"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a stage of ZeRO: 0, 1, 2 or 3")
    return int(text)
