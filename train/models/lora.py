"""LoRA adapters, by the package peft: Hu et al., arXiv 2106.09685. See config/finetuning.py for the options.

The adapters are put into the model itself, which keeps its class and its calls. The weights of a layer NAME
become NAME.base_layer, and its adapter NAME.lora_A.default and NAME.lora_B.default.
"""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from ..config import Settings, finetuning
from ..config.converters import is_hf
from ..errors import CommonMistake

ALL = "all-linear"  # peft's name for all linear layers of a model of transformers, except its output layer
ADAPTER = "default"
CONV1D = "Conv1D"  # the linear layer of GPT-2 in transformers


def add(model: nn.Module, settings: Settings) -> nn.Module:
    """Add the adapters of --lora to the model, if there are any, and return it. Only they are trained.

    Their initial weights are random, and do not change the outputs of the model. Raise CommonMistake if the
    model has no layers of --lora-targets.
    """
    if not settings.lora:
        return model
    config = _config(model, settings)
    try:
        return cast(nn.Module, import_module("peft").inject_adapter_in_model(config, model, ADAPTER))
    except ValueError as error:  # such as a layer that is not linear
        raise CommonMistake(f"--lora-targets: {' '.join(str(error).split())}") from None


def merge(model: nn.Module) -> nn.Module:
    """Add the adapters to the weights of the model, and remove them. Return the model."""
    layers = [(name, each) for name, each in model.named_modules() if hasattr(each, "base_layer")]
    for name, layer in layers:
        part: Any = layer
        part.merge(safe_merge=True)
        model.set_submodule(name, part.get_base_layer())
    del model.peft_config
    return model


def save(model: nn.Module, base: str, place: Path) -> None:
    """Write the adapters to a directory that peft's PeftModel.from_pretrained reads.

    base: the path of the weights to which they belong
    """
    from safetensors.torch import save_file

    adapters: Any = model.peft_config
    state = import_module("peft").get_peft_model_state_dict(model, save_embedding_layers=False)
    names = {f"base_model.model.{name}": tensor.contiguous() for name, tensor in state.items()}
    save_file(names, place / "adapter_model.safetensors", metadata={"format": "pt"})
    replace(adapters[ADAPTER], base_model_name_or_path=base, inference_mode=True).save_pretrained(place)


def load(model: nn.Module, state: dict[str, torch.Tensor]) -> None:
    """Load the weights that are trained, and the buffers, into a model with adapters.

    Raise RuntimeError, as load_state_dict does, if `state` does not have exactly these.
    """
    result = model.load_state_dict(state, strict=False)
    missing = [name for name in trained(model) if name in result.missing_keys]
    if missing or result.unexpected_keys:
        raise RuntimeError(
            f"missing weights: {', '.join(missing) or 'none'}; unknown: {', '.join(result.unexpected_keys)}"
        )


def trained(model: nn.Module) -> list[str]:
    """Return the names in the state_dict except those of weights that are not trained."""
    frozen = {name for name, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
    return [name for name in model.state_dict() if name not in frozen]


def check_package() -> None:
    """Raise CommonMistake if peft is missing."""
    try:
        import_module("peft")
    except ModuleNotFoundError as error:
        raise CommonMistake(f"--lora needs the Python package {error.name}: pip install peft") from None


def _config(model: nn.Module, settings: Settings) -> Any:
    check_package()
    targets: Any = settings.lora_targets and list(settings.lora_targets)
    shared = _shared(model)
    kinds = {name: each for name, each in _linear(model) if name not in shared}
    for target in targets or ():
        layers = [(name, each) for name, each in model.named_modules() if f".{name}".endswith(f".{target}")]
        problems = [
            f"{name} is a {type(each).__name__}, not a linear layer"
            for name, each in layers
            if not _fits(each)
        ]
        problems += [f"{name} shares its weights with other layers" for name, _ in layers if name in shared]
        if problems or not layers:
            problem = problems[0] if layers else f"no layer of {settings.model} has this name"
            ends = ", ".join(sorted({name.rpartition(".")[2] for name in kinds}))
            raise CommonMistake(
                f"--lora-targets {target}: {problem}; its linear layers are named {ends or 'none'}"
            )
    if not kinds:
        raise CommonMistake(f"--lora {settings.lora}: {settings.model} has no linear layers")
    return import_module("peft").LoraConfig(
        r=settings.lora,
        lora_alpha=finetuning.alpha(settings),
        lora_dropout=settings.lora_dropout or 0.0,
        target_modules=targets or (ALL if is_hf(settings.model) else list(kinds)),
        fan_in_fan_out=not any(isinstance(layer, nn.Linear) for layer in kinds.values()),
        task_type="CAUSAL_LM" if is_hf(settings.model) else None,
    )


def _fits(layer: nn.Module) -> bool:
    """Return whether a layer can have an adapter."""
    kinds = nn.Linear, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.Conv3d
    return isinstance(layer, kinds) or type(layer).__name__ == CONV1D


def _shared(model: nn.Module) -> set[str]:
    """Return the names of the layers whose weights other layers have, too. They can have no adapter."""
    names: dict[int, list[str]] = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(weight), []).append(name.rpartition(".")[0])
    return {name for layers in names.values() if len(layers) > 1 for name in layers}


def _linear(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the names of the linear layers, and the layers; of a transformer, without its output layer."""
    network: Any = model
    output = network.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    for name, layer in model.named_modules():
        if (isinstance(layer, nn.Linear) or type(layer).__name__ == CONV1D) and layer is not output:
            yield name, layer
