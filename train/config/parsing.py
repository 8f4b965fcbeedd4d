"""Parsing and validation of the command line of python -m jobgen.train."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import CommonMistake, suggestion
from . import options
from .converters import is_own
from .engines import ENGINES, spec_of
from .settings import MOE_OPTIONS, PATHS, Settings


def parse(argv: Sequence[str]) -> Settings:
    """Return the settings of the command line `argv`. Raise CommonMistake if it is not valid."""
    parser = options.parser()
    namespace, rest = parser.parse_known_args(argv)
    if rest:
        word = rest[0].split("=")[0]
        known = [option for action in parser._actions for option in action.option_strings]
        what = "option" if word.startswith("-") else "argument"
        raise CommonMistake(f"unknown {what} {word!r}{suggestion(word, known) or '; see --help'}")
    values = vars(namespace)
    values.pop("deepspeed")
    own = values.pop("dataset")
    if own and values["task"]:
        raise CommonMistake(f"--dataset {own} and --task {values['task']} both select the data: use one")
    values["task"] = own or values["task"] or "digits"
    settings = Settings(**values)
    _check(settings)
    return settings


def restored(values: Mapping[str, Any]) -> Settings:
    """Return the settings that `recorded` returned, possibly in a version with fewer options."""
    settings = parse([])
    known: dict[str, Any] = {}
    for key, value in values.items():
        if key in PATHS and value is not None:
            value = Path(value)
        if hasattr(settings, key):
            known[key] = tuple(value) if isinstance(value, list) else value
    return replace(settings, **known)


def _check(settings: Settings) -> None:
    if settings.task != "digits" and settings.data is None and not is_own(settings.task):
        raise CommonMistake(
            f"--task {settings.task} needs --data DIR, the directory with its files (nothing is downloaded)"
        )
    if settings.task == "digits" and settings.data is not None:
        raise CommonMistake("--data is not for --task digits, whose data comes with scikit-learn")
    if settings.model == "resnet18" and settings.task == "digits":
        raise CommonMistake("--model resnet18 halves images three times: 8 x 8 pixels are too small")
    if settings.momentum is not None and settings.optimizer in ("adam", "adamw", "lamb"):
        raise CommonMistake(f"--momentum is for --optimizer sgd, not for {settings.optimizer}")
    if settings.device_memory is not None and not (settings.explain or settings.explain_for):
        raise CommonMistake("--device-memory needs --explain or --explain-for")
    _check_scheduler(settings)
    _check_engine(settings)
    _check_experts(settings)
    _check_checkpoints(settings)


def _check_scheduler(settings: Settings) -> None:
    name = settings.scheduler
    if settings.warmup_steps is not None and name is not None and not name.startswith(("warmup", "onecycle")):
        raise CommonMistake(
            f"--warmup-steps needs --scheduler warmup, warmup-decay, warmup-cosine or onecycle, not {name}"
        )
    if name == "multistep" and settings.milestones is None:
        raise CommonMistake("--scheduler multistep needs --milestones, such as --milestones 30,60")
    for option in ("milestones", "gamma"):
        if getattr(settings, option) is not None and name != "multistep":
            raise CommonMistake(f"--{option} is for --scheduler multistep, not for {name or 'none'}")


def _check_engine(settings: Settings) -> None:
    engine = settings.engine
    if settings.precision is not None and settings.amp is not None:
        raise CommonMistake(
            f"--amp {settings.amp} and --precision {settings.precision} both select the precision: use one"
        )
    for spec in ENGINES.values():
        for option in spec.options:
            if getattr(settings, option) is not None and spec.name != engine:
                raise CommonMistake(f"--{option} is for --engine {spec.name}, not for {engine}")


def _check_checkpoints(settings: Settings) -> None:
    saving = settings.save_every or settings.save_every_epochs
    if settings.keep is not None and not saving:
        raise CommonMistake(f"--keep {settings.keep} needs --save-every or --save-every-epochs")


def _check_experts(settings: Settings) -> None:
    if settings.model != "moe":
        for option in MOE_OPTIONS:
            if getattr(settings, option) is not None:
                raise CommonMistake(
                    f"--{option.replace('_', '-')} is for --model moe, not for {settings.model}"
                )
        return
    if why := spec_of(settings).no_experts:
        raise CommonMistake(f"--model moe needs --engine deepspeed, not {settings.engine}: {why}")
    if settings.top_k not in (None, 1, 2):
        raise CommonMistake(f"--top-k {settings.top_k}: DeepSpeed's gate supports 1 and 2")
    if (settings.experts or 4) % (settings.expert_parallel or 1):
        raise CommonMistake(
            f"--experts {settings.experts or 4} is not divisible by --expert-parallel "
            f"{settings.expert_parallel}"
        )
