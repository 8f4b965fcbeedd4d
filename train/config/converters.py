"""Converters from the text of an option to its value. Each error is one sentence with the allowed values.

The attribute `schema` of a converter says as JSON Schema what it accepts: tools/write_training_options.py
writes it into jobgen/training_options.json, by which jobgen checks options before a job is submitted.
"""

import argparse
import importlib.util
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..errors import suggestion

SCHEDULERS = ("none", "warmup", "warmup-decay", "warmup-cosine", "onecycle", "cosine", "multistep", "plateau")
# Features that DeepSpeed has removed, with the message about each.
REMOVALS = {
    "onebitadam": "the 1-bit optimizers left DeepSpeed in 0.19.7",
    "onebitlamb": "the 1-bit optimizers left DeepSpeed in 0.19.7",
    "zerooneadam": "the 1-bit optimizers left DeepSpeed in 0.19.7",
    "elasticity": "elasticity left DeepSpeed in 0.19.8",
    "mics": "MiCS left DeepSpeed in 0.19.7",
    "sparse_attention": "sparse attention left DeepSpeed in 0.19.7",
    "nebula": "Nebula's checkpoints left DeepSpeed in 0.19.7",
    "compression_training": "compression left DeepSpeed in 0.19.7",
    "quantize_training": "mixture-of-quantization left DeepSpeed in 0.19.7",
    "eigenvalue": "mixture-of-quantization left DeepSpeed in 0.19.7, and its eigenvalues in 0.19.8",
    "thread_count": "the key of aio is intra_op_parallelism now",
    "sparse_gradients": "the compression of sparse gradients left DeepSpeed in 0.19.8",
    "graph_harvesting": "graph harvesting left DeepSpeed in 0.19.8",
    "curriculum_learning": "curriculum learning at this place left DeepSpeed in 0.19.8",
    "progressive_layer_drop": "progressive layer dropping left DeepSpeed in 0.19.8",
    "zeropp_loco_param": "LoCo's error feedback left DeepSpeed in 0.19.8",
}


_Value = TypeVar("_Value")
_Convert = TypeVar("_Convert", bound=Callable[[str], Any])
_OWN = r"(?!\d)\w+(\.(?!\d)\w+)*:(?!\d)\w+(\.(?!\d)\w+)*"


def accepts(description: str, **schema: object) -> Callable[[_Convert], _Convert]:
    """Return a decorator that gives a converter its schema."""

    def mark(convert: _Convert) -> _Convert:
        convert.schema = {"description": description, **schema}  # type: ignore[attr-defined]
        return convert

    return mark


def one_of(allowed: Sequence[str]) -> Callable[[str], str]:
    @accepts(f"one of {', '.join(allowed)}", enum=list(allowed))
    def convert(text: str) -> str:
        if text not in allowed:
            if text.lower() in REMOVALS:
                raise argparse.ArgumentTypeError(f"{text!r}: {REMOVALS[text.lower()]}")
            choices = ", ".join(allowed)
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {choices}{suggestion(text, allowed)}")
        return text

    return convert


def whole(least: int) -> Callable[[str], int]:
    rule = f"a whole number of at least {least}"

    @accepts(rule, type="integer", minimum=least, maximum=10**18 - 1)
    def convert(text: str) -> int:
        if len(text) > 18 and text.isdecimal():  # torch stores it in 64 bits
            raise argparse.ArgumentTypeError(f"{text[:18]}... has more than 18 digits")
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not {rule}")
        return int(text)

    return convert


@accepts("a list of rising whole numbers, such as 30,60", pattern=r"\s*\d+\s*(,\s*\d+\s*)*")
def wholes(text: str) -> tuple[int, ...]:
    """Convert increasing whole numbers from 1, separated by commas."""
    numbers = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if numbers != sorted(set(numbers)) or numbers[0] < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of increasing whole numbers, such as 30,60")
    return tuple(numbers)


def _number_that(fits: Callable[[float], bool], rule: str, **schema: object) -> Callable[[str], float]:
    """Return a converter for the numbers that fit a rule; nan fits none."""

    @accepts(rule, type="number", **schema)
    def convert(text: str) -> float:
        if not fits(value := _number(text)):
            raise argparse.ArgumentTypeError(f"{text!r} is not {rule}")
        return value

    return convert


real = _number_that(lambda value: 0 <= value < math.inf, "a number of at least 0", minimum=0)
positive = _number_that(lambda value: 0 < value < math.inf, "a number above 0", exclusiveMinimum=0)
decay = _number_that(
    lambda value: 0 < value < 1, "a number between 0 and 1", exclusiveMinimum=0, exclusiveMaximum=1
)
below_one = _number_that(
    lambda value: 0 <= value < 1, "a number from 0 to below 1, such as 0.05", minimum=0, exclusiveMaximum=1
)
fraction = _number_that(
    lambda value: 0 < value <= 1,
    "a fraction above 0 and up to 1, such as 0.97",
    exclusiveMinimum=0,
    maximum=1,
)


@accepts("two numbers from 0 to below 1, such as 0.9,0.95", pattern=r"\s*0?\.?\d+\s*,\s*0?\.?\d+\s*")
def betas(text: str) -> tuple[float, ...]:
    """Convert the two averaging factors of Adam, separated by a comma."""
    numbers = tuple(_number(part) for part in text.split(","))
    if len(numbers) != 2 or not all(0 <= number < 1 for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers from 0 to below 1, such as 0.9,0.95")
    return numbers


_SECONDS = r"(\d{1,9}(?:\.\d{1,3})?)([smhd]?)"


@accepts("a time such as 90s, 30m or 2h, or 0", pattern=_SECONDS)
def seconds(text: str) -> float:
    """Convert a time such as 90s, 30m, 2h or 90 (seconds) to seconds; 0 means none."""
    match = re.fullmatch(_SECONDS, text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 30m or 2h, or 0")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


@accepts("a list of names, such as q_proj,v_proj", pattern=r"[\w.]+(,[\w.]+)*")
def names(text: str) -> tuple[str, ...]:
    if not re.fullmatch(r"[\w.]+(,[\w.]+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of names, such as q_proj,v_proj")
    return tuple(text.split(","))


@accepts("a file or a directory; several are separated by blanks or commas", pattern=r"(?s).+")
def paths(text: str) -> tuple[Path, ...]:
    """Convert paths that are separated by commas. The name of an existing file may contain commas."""
    if text and Path(text).exists():
        return (Path(text),)
    if not all(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of paths, such as a.txt,b.txt")
    return tuple(map(Path, text.split(",")))


def out_path(text: str) -> Path:
    """Convert the path of a file or directory to write, in an existing directory."""
    path = Path(text)
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: there is no directory {path.absolute().parent}")
    return path


def size(text: str) -> str:
    """Check a size in bytes as transformers writes it."""
    if not re.fullmatch(r"[1-9]\d*[KMG]i?B", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500MB or 5GB")
    return text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


@accepts("a stage of ZeRO: 0, 1, 2 or 3", enum=["0", "1", "2", "3"])
def stage(text: str) -> int:
    if text not in ("0", "1", "2", "3"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a stage of ZeRO: 0, 1, 2 or 3")
    return int(text)


@accepts("NODESxRANKS, such as 2x4", pattern=r"[1-9]\d*x[1-9]\d*")
def shape(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not NODESxRANKS, such as 2x4")
    return int(match[1]), int(match[2])


@accepts("parameters, uniform or type:REGEX", pattern=r"(?s)parameters|uniform|type:.+")
def partition(text: str) -> str:
    if text.startswith("type:"):
        try:
            re.compile(text[5:])
        except re.error as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not a valid regular expression: {error}") from None
        if text != "type:":
            return text
    return one_of(("parameters", "uniform", "type:REGEX"))(text)


@accepts("the name of a metric, such as loss or accuracy", pattern=r"(?!\d)\w+")
def metric(text: str) -> str:
    """Convert the name of a metric of the evaluation. Which ones a run has is known with its data."""
    if not text.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a metric, such as loss or accuracy")
    return text


def filled(rule: str, convert: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return a converter that refuses an empty text, such as the value of a variable that is not set. As a
    path it would be the current directory."""

    @accepts(rule, pattern=r"(?s).+")
    def convert_filled(text: str) -> _Value:
        if not text:
            raise argparse.ArgumentTypeError(f"'' is not {rule}")
        return convert(text)

    return convert_filled


path = filled("a path", Path)
key = filled("the name of a key or column", str)
checkpoint = filled("the id of a checkpoint, or a directory", str)


@accepts(f"one of {', '.join(SCHEDULERS)} or PKG.MOD:NAME", enum=list(SCHEDULERS), pattern=_OWN)
def scheduler(text: str) -> str:
    return text if is_own(text) else one_of(SCHEDULERS)(text)


def name_or_own(names: Sequence[str]) -> Callable[[str], str]:
    """Return a converter for one of `names` or the user's own package.module:name."""

    @accepts(f"one of {', '.join(names)} or PKG.MOD:NAME", enum=list(names), pattern=_OWN)
    def convert(text: str) -> str:
        return own(text) if ":" in text else one_of((*names, "PKG.MOD:NAME"))(text)

    return convert


def metrics(names: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a converter for a list of `names` or the user's own package.module:name; 'none' is ()."""
    each, one = name_or_own(names), f"({'|'.join(names)}|{_OWN})"

    @accepts(f"a list of {', '.join(names)} or PKG.MOD:NAME, or none", pattern=rf"none|{one}(,{one})*")
    def convert(text: str) -> tuple[str, ...]:
        return () if text == "none" else tuple(dict.fromkeys(each(part.strip()) for part in text.split(",")))

    return convert


def model(names: Sequence[str]) -> Callable[[str], str]:
    """Return a converter for one of `names`, the user's own package.module:name, or hf:DIR."""
    other = name_or_own(names)

    @accepts(f"one of {', '.join(names)}, PKG.MOD:NAME or hf:DIR", enum=list(names), pattern=f"{_OWN}|hf:.+")
    def convert(text: str) -> str:
        if not is_hf(text):
            return other(text)
        directory = Path(text.removeprefix("hf:")).absolute()
        if not (directory / "config.json").is_file():
            raise argparse.ArgumentTypeError(f"{text!r}: there is no file {directory / 'config.json'}")
        return f"hf:{directory}"

    return convert


@accepts("PKG.MOD:NAME, such as my_models:build", pattern=_OWN)
def own(text: str) -> str:
    if not is_own(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not PKG.MOD:NAME, such as my_models:build")
    package = text.partition(":")[0].partition(".")[0]
    # The module is located but not imported: an import may need torch and take seconds.
    if package not in sys.modules and importlib.util.find_spec(package) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r}: there is no module {package!r} in {Path.cwd()} or on PYTHONPATH"
        )
    return text


@accepts(
    "a list such as crop,flip or crop:4,flip, or none",
    pattern=r"\s*(none|(crop(:[1-9]\d*)?|flip)(\s*,\s*(crop(:[1-9]\d*)?|flip))?)\s*",
)
def augmentation(text: str) -> tuple[str, ...]:
    """Convert a list of crop, crop:PIXELS and flip to a sorted tuple; 'none' is the empty tuple."""
    parts = [part.strip() for part in text.split(",")]
    if parts == ["none"]:
        return ()
    for part in parts:
        if not re.fullmatch(r"crop:[1-9]\d*", part):
            one_of(("crop", "crop:PIXELS", "flip", "none"))(part)
    names = [part.partition(":")[0] for part in parts]
    if len(set(names)) != len(names) or "none" in names or "crop:PIXELS" in parts:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list such as crop,flip or crop:4,flip")
    return tuple(sorted(parts))


@accepts("means and standard deviations, such as 0.5:0.5 or 0.5,0.4,0.4:0.2,0.2,0.2", pattern="[^:]+:[^:]+")
def normalization(text: str) -> tuple[float, ...]:
    """Convert means and standard deviations of channels: first all means, then as many deviations above 0."""
    means, _, deviations = (tuple(map(_number, part.split(","))) for part in text.partition(":"))
    if (
        len(means) != len(deviations)
        or not all(0 < number < math.inf for number in deviations)
        or not all(map(math.isfinite, means))
    ):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not means and as many standard deviations above 0, such as 0.5:0.5"
        )
    return means + deviations


def is_hf(text: str) -> bool:
    """Return whether `text` has the form hf:DIR, which names a directory of the package transformers."""
    return text.startswith("hf:")


def is_own(text: str) -> bool:
    """Return whether `text` has the form package.module:name, which names a user's own object."""
    module, colon, name = text.partition(":")
    return (
        bool(colon)
        and not is_hf(text)
        and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))
    )
