"""The options of fine-tuning: weights to start from, and LoRA. Does not import torch.

LoRA is Hu et al., arXiv 2106.09685: the weights of a model stay as they are, and beside each linear layer an
adapter of two small matrices, of rank R, is trained. Their product is added to the layer, times alpha / R.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..accelerators import ACCELERATORS
from ..errors import CommonMistake
from .converters import below_one, is_hf, is_own, names, path, positive, whole
from .engines import option_of, spec_of
from .option_groups import Group
from .settings import Settings

LORA_OPTIONS = ("lora_alpha", "lora_dropout", "lora_targets")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # files of a directory of transformers
ATTENTION = SDPA, EAGER, FLASH = ("sdpa", "eager", "flash")


def options(add: Group) -> None:
    add.value(
        "--init-from PATH",
        path,
        "start from these weights: a checkpoint or run directory of this module, a file.pt or "
        ".safetensors, or a directory of transformers, which is then also the --model of --task text",
    )
    add.value(
        "--lora R",
        whole(1),
        "ddp, fsdp and deepspeed: train adapters of this rank beside the linear layers (LoRA, with the "
        "package peft), not the weights themselves",
    )
    add.value("--lora-alpha X", positive, "the adapters are multiplied by X / R (default: 2 R)")
    add.value("--lora-dropout X", below_one, "dropout before the adapters (default: 0)")
    add.value(
        "--lora-targets NAME,...",
        names,
        "ends of the names of the layers with adapters, such as q_proj,v_proj (default: all linear "
        "layers except the output layer)",
    )
    add.choice(
        "--attention",
        ATTENTION,
        "--model hf:DIR: attention of transformers: torch's scaled_dot_product_attention (sdpa), plain "
        "matrix products (eager), or the package flash_attn (flash: CUDA devices, not fp32)",
    )


def identity(settings: Settings) -> dict[str, Any]:
    """Return the options of LoRA that a run and the checkpoint from which it resumes must have in common."""
    if settings.lora is None:
        return {"lora": None}
    targets = settings.lora_targets
    return {
        "lora": settings.lora,
        "lora-alpha": alpha(settings),
        "lora-targets": targets and ",".join(targets),
    }


def alpha(settings: Settings) -> float:
    assert settings.lora is not None
    return settings.lora_alpha or 2.0 * settings.lora


def restored(settings: Settings) -> Settings:
    """Return the settings of a model for a checkpoint of it: only with --lora it needs other weights, too."""
    return settings if settings.lora else replace(settings, init_from=None)


def merged(settings: Settings) -> Settings:
    """Return the settings of a model whose weights are all in one place, adapters among them."""
    return replace(settings, init_from=None, lora=None, lora_alpha=None, lora_dropout=None, lora_targets=None)


def check(settings: Settings) -> None:
    """Raise CommonMistake for options of fine-tuning that do not fit each other, the model or the engine."""
    if settings.attention is not None and not is_hf(settings.model):
        raise CommonMistake(f"--attention is for --model hf:DIR, not for {settings.model}")
    if settings.lora is None:
        for option in LORA_OPTIONS:
            if getattr(settings, option) is not None:
                raise CommonMistake(f"--{option.replace('_', '-')} needs --lora R")
        return
    if not spec_of(settings).adapters:
        engines = option_of(lambda each: each.adapters)
        raise CommonMistake(f"--lora {settings.lora} needs {engines}, not {settings.engine}")
    if settings.has_experts:
        raise CommonMistake(f"--lora {settings.lora} is not for a mixture of experts")
    if settings.init_from is None and not (is_hf(settings.model) or is_own(settings.model)):
        raise _without_base(settings)


def check_base(settings: Settings) -> None:
    """Raise CommonMistake for --lora with a directory of transformers that has no weights."""
    directory = Path(settings.model.removeprefix("hf:"))
    if settings.lora and settings.init_from is None and is_hf(settings.model) and not has_weights(directory):
        raise _without_base(settings, f", as it has no {' or '.join(WEIGHTS)}")


def _without_base(settings: Settings, why: str = "") -> CommonMistake:
    return CommonMistake(
        f"--lora {settings.lora} trains adapters of weights that stay as they are, and --model "
        f"{settings.model} begins with random ones{why}: give --init-from PATH, or --model hf:DIR with "
        "weights"
    )


def has_weights(directory: Path) -> bool:
    return any(file for pattern in WEIGHTS for file in directory.glob(pattern))


def check_device(settings: Settings, precision: str, kind: str) -> None:
    """Raise CommonMistake for --attention flash where its kernels cannot run."""
    if settings.attention != FLASH:
        return
    if not ACCELERATORS[kind].flash:
        raise CommonMistake(f"--attention flash needs CUDA devices, not {kind}: use --attention sdpa")
    if precision == "fp32":
        raise CommonMistake("--attention flash needs --precision bf16, fp16 or autocast: it has no fp32")
