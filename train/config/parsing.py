"""Parsing and validation of the command line of python -m jobgen.train."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import CommonMistake, suggestion
from . import finetuning, language, options
from .converters import is_hf, is_own
from .deepspeed import pipeline
from .engines import ENGINES, spec_of
from .settings import MOE_OPTIONS, PATHS, Settings, only

# Options of DeepSpeed's and ColossalAI's examples, and ours.
FOREIGN = {
    "-b": "--batch-size", "-e": "--epochs", "-r": "--resume", "-p": "--plugin", "-c": "--checkpoint-dir",
    "-i": "--save-every-epochs", "--use_ema": "--ema 0.999",
    "--with_cuda": "not needed: the best device is used, or that of JOBGEN_ACCELERATOR",
    "--target_acc": "--target-accuracy", "--log-interval": "--log-every", "--stage": "--zero-stage",
    "--dtype": "--precision", "--moe": "--model moe", "--num-experts": "--experts",
    "--ep-world-size": "--expert-parallel", "--noisy-gate-policy": "--noisy-gate", "--mlp-type": "--residual",
}  # fmt: skip


def parse(argv: Sequence[str]) -> Settings:
    """Return the settings of the command line `argv`. Raise CommonMistake if it is not valid."""
    parser = options.parser()
    namespace, rest = parser.parse_known_args(argv)
    if rest:
        word = rest[0].split("=")[0]
        names = [option for action in parser._actions for option in action.option_strings]
        what = "option" if word.startswith("-") else "argument"
        ours = FOREIGN.get(word if word.startswith("--") else word[:2])
        hint = f"; here it is {ours}" if ours else suggestion(word, names) or "; see --help"
        raise CommonMistake(f"unknown {what} {word!r}{hint}")
    values = vars(namespace)
    values.pop("deepspeed")
    own = values.pop("dataset")
    if own and values["task"]:
        raise CommonMistake(f"--dataset {own} and --task {values['task']} both select the data: use one")
    values["task"] = own or values["task"] or "digits"
    values["model"] = values["model"] or _default_model(values["task"], values["init_from"])
    if values["task"] == "text" and is_hf(values["model"]):
        directory = Path(values["model"].removeprefix("hf:"))
        has_tokens = values["tokenizer"] is None and (directory / "tokenizer.json").is_file()
        values["tokenizer"] = directory if has_tokens else values["tokenizer"]
    if values["data"] is not None:
        values["data"] = tuple(path for paths in values["data"] for path in paths)
    values |= pipeline.choice(values)
    # An epoch has at least one step.
    values["epochs"] = values["epochs"] or values["max_steps"] or 10
    settings = Settings(**values)
    _check(settings)
    return settings


def _default_model(task: str, init_from: Path | None) -> str:
    if task != "text":
        return "cnn"
    of_transformers = init_from is not None and (init_from / "config.json").is_file()
    return f"hf:{init_from.absolute()}" if init_from and of_transformers else "gpt"


def from_record(values: Mapping[str, Any]) -> Settings:
    """Return the settings that `to_record` returned. Values of unknown options are ignored."""
    settings = parse([])
    fields: dict[str, Any] = {}
    for key, value in values.items():
        if key in PATHS and value is not None:
            value = [Path(each) for each in value] if isinstance(value, list) else Path(value)
        if hasattr(settings, key):
            fields[key] = tuple(value) if isinstance(value, list) else value
    return replace(settings, **fields)


def _check(settings: Settings) -> None:
    if settings.task != "digits" and settings.data is None and not is_own(settings.task):
        what = (
            "FILE, a file or directory of text"
            if settings.task == "text"
            else "DIR, the directory with its files"
        )
        raise CommonMistake(f"--task {settings.task} needs --data {what} (nothing is downloaded)")
    if settings.task == "digits" and settings.data is not None:
        raise CommonMistake("--data is not for --task digits, whose data comes with scikit-learn")
    if settings.task != "text" and (places := len(settings.data or ())) > 1:
        raise CommonMistake(f"--data takes one directory with --task {settings.task}, not {places}")
    if settings.model in ("lenet", "resnet18") and settings.task == "digits":
        raise CommonMistake(f"--model {settings.model} is for larger images: 8 x 8 pixels are too small")
    if settings.device_memory is not None and not (settings.explain or settings.explain_for):
        raise CommonMistake("--device-memory needs --explain or --explain-for")
    _check_scheduler(settings)
    _check_engine(settings)
    _check_experts(settings)
    language.check(settings)
    finetuning.check(settings)
    _check_checkpoints(settings)


def _check_scheduler(settings: Settings) -> None:
    name = settings.scheduler
    if settings.warmup_steps is not None and name is not None and not name.startswith(("warmup", "onecycle")):
        raise CommonMistake(
            f"--warmup-steps needs --scheduler warmup, warmup-decay, warmup-cosine or onecycle, not {name}"
        )
    if name == "multistep" and settings.milestones is None:
        raise CommonMistake("--scheduler multistep needs --milestones, such as --milestones 30,60")
    for option, users in USERS.items():
        only(settings, (option,), name in users, f"--scheduler {' or '.join(users)}", name or "none")
    if name == "plateau" and settings.scheduler_unit == "epoch":
        raise CommonMistake(
            "--scheduler-unit epoch is not for --scheduler plateau, whose unit is an evaluation"
        )


USERS = {"milestones": ("multistep",), "gamma": ("multistep", "plateau"), "patience": ("plateau",)}


def _check_engine(settings: Settings) -> None:
    engine = settings.engine
    if settings.precision is not None and settings.amp is not None:
        raise CommonMistake(
            f"--amp {settings.amp} and --precision {settings.precision} both select the precision: use one"
        )
    for spec in ENGINES.values():
        only(settings, spec.options, spec.name == engine, f"--engine {spec.name}", engine)


def _check_checkpoints(settings: Settings) -> None:
    options = {
        "--save-every": settings.save_every,
        "--save-every-epochs": settings.save_every_epochs,
        "--keep-best": settings.keep_best,
    }
    requests = [f"{option} {value}" for option, value in options.items() if value]
    if settings.keep is not None and not requests:
        raise CommonMistake(
            f"--keep {settings.keep} needs --save-every, --save-every-epochs or --keep-best: otherwise there "
            "is one checkpoint, at the end"
        )
    if settings.no_save and requests:
        raise CommonMistake(f"--no-save and {requests[0]} contradict each other")


def _check_experts(settings: Settings) -> None:
    models = "--model moe and for gpt with --experts"
    only(settings, MOE_OPTIONS, settings.has_experts, models, settings.model)
    if not settings.has_experts:
        return
    if why := spec_of(settings).no_experts:
        what = "--model moe" if settings.model == "moe" else f"--experts {settings.experts}"
        raise CommonMistake(f"{what} needs --engine deepspeed, not {settings.engine}: {why}")
    if settings.top_k not in (None, 1, 2):
        raise CommonMistake(f"--top-k {settings.top_k}: DeepSpeed's gate supports 1 and 2")
    if (settings.experts or 4) % (settings.expert_parallel or 1):
        raise CommonMistake(
            f"--experts {settings.experts or 4} is not divisible by --expert-parallel "
            f"{settings.expert_parallel}"
        )
