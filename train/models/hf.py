"""--model hf:DIR: a language model of the package transformers, from a local directory.

DIR has config.json and, for a pretrained model, its weights. Nothing is downloaded, and no code of the
directory is executed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..errors import BadInput, CommonMistake

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def config(name: str) -> Any:
    """Return the config in hf:DIR. Raise BadInput if it cannot be read or transformers is missing."""
    try:
        transformers = _package()
    except ModuleNotFoundError:
        raise CommonMistake(
            f"--model {name} needs the Python package transformers: pip install transformers"
        ) from None
    try:
        return transformers.AutoConfig.from_pretrained(_directory(name), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"--model {name}: its config.json cannot be used: {_first_line(error)}") from None


def form(name: str) -> tuple[int, int]:
    """Return the number of layers and the width of the model in hf:DIR."""
    hf_config = config(name)
    return int(hf_config.num_hidden_layers), int(hf_config.hidden_size)


def build(name: str, vocabulary: int, shape: Any, zero3: dict[str, Any] | None = None) -> nn.Module:
    """Return the model in hf:DIR: with its weights if they are there, otherwise with random ones.

    vocabulary, shape: number of tokens, and shape of a sample, (tokens,) for a text
    zero3: DeepSpeed's config at ZeRO stage 3, where no rank holds the whole model

    Raise CommonMistake if its vocabulary or its number of positions is too small for the text.
    """
    hf_config, transformers = config(name), _package()
    transformers.utils.logging.disable_progress_bar()
    for what, has, needs in (
        ("vocabulary", getattr(hf_config, "vocab_size", None), vocabulary),
        ("number of positions", getattr(hf_config, "max_position_embeddings", None), max((0, *shape))),
    ):
        if has is not None and has < needs:
            raise CommonMistake(f"--model {name} has a {what} of {has}, and the text needs {needs}")
    hf_config.use_cache = False  # keys and values of earlier tokens are of no use in training
    try:
        with _zero3(zero3):
            return _model(transformers, hf_config, _directory(name))
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"--model {name} cannot be made: {_first_line(error)}") from None


def _model(transformers: Any, hf_config: Any, directory: Path) -> nn.Module:
    kind = transformers.AutoModelForCausalLM
    meta = torch.get_default_device().type == "meta"  # only the sizes are needed
    if not meta and any(file for pattern in WEIGHTS for file in directory.glob(pattern)):
        model: nn.Module = kind.from_pretrained(
            directory, config=hf_config, local_files_only=True, dtype=torch.float32
        )
        return model.train()
    initial: nn.Module = kind.from_config(hf_config, dtype=torch.float32)
    return initial


class _Zero3:
    """The part of DeepSpeed's config that transformers reads. Its own class needs the package accelerate."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def is_zero3(self) -> bool:
        return True


@contextmanager
def _zero3(config: dict[str, Any] | None) -> Iterator[None]:
    """Let transformers make models under deepspeed.zero.Init, if there is a config.

    It reads weights on rank 0 only. https://huggingface.co/docs/transformers/deepspeed
    """
    if config is None:
        yield
        return
    integration = import_module("transformers.integrations.deepspeed")
    reference = _Zero3(config)  # transformers has a weak reference to it
    integration.set_hf_deepspeed_config(reference)
    try:
        yield
    finally:
        integration.unset_hf_deepspeed_config()
        del reference


def _package() -> Any:
    return import_module("transformers")


def _directory(name: str) -> Path:
    return Path(name.removeprefix("hf:"))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
