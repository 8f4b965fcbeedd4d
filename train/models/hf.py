"""--model hf:DIR: a language model of the package transformers, from a local directory.

DIR has config.json and, for a pretrained model, its weights. Nothing is downloaded, and no code of the
directory is executed.
"""

import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..config import Settings, finetuning
from ..config.converters import is_hf
from ..errors import BadInput, CommonMistake

KERNELS = {"flash": "flash_attention_2"}  # transformers' names of --attention, where they differ
# The files of a directory that belong to its tokenizer and to the generation of text.
COMPANIONS = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("tokenizer.model", "vocab.json", "vocab.txt", "merges.txt", "chat_template.jinja"),
    *("chat_template.json", "generation_config.json"),
)


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


def build(settings: Settings, vocabulary: int, shape: Any, zero3: dict[str, Any] | None = None) -> nn.Module:
    """Return the model in hf:DIR: with the weights of --init-from or DIR if they are there, or random ones.

    vocabulary, shape: number of tokens, and shape of a sample, (tokens,) for a text
    zero3: DeepSpeed's config at ZeRO stage 3, where no rank holds the whole model

    Raise CommonMistake if its vocabulary or its number of positions is too small for the text, or if weights
    are missing.
    """
    name = settings.model
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
            model: nn.Module = _model(transformers, hf_config, _weights(settings), settings.attention)
    except CommonMistake:
        raise
    except Exception as error:  # transformers, safetensors and torch raise many kinds
        if damage := _damaged(_weights(settings)):
            raise CommonMistake(f"--model {name} cannot be made: {damage}") from None
        if not isinstance(error, ImportError | OSError | ValueError | RuntimeError):
            raise
        raise CommonMistake(f"--model {name} cannot be made: {_in_one_line(error)}") from None
    if settings.recompute:
        _recompute(model)
    return model


def _recompute(model: Any) -> None:
    """Let the model keep the input of each block only, and compute the rest again in the backward pass."""
    how = {"use_reentrant": False}
    if hasattr(model, "activation_checkpointing_enable"):  # transformers 5 has renamed it
        model.activation_checkpointing_enable(activation_checkpointing_kwargs=how)
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=how)


def reads(settings: Settings) -> bool:
    """Return whether `build` reads the weights of --init-from: those of a directory of transformers."""
    return (
        is_hf(settings.model)
        and settings.init_from is not None
        and finetuning.has_weights(settings.init_from)
    )


def _weights(settings: Settings) -> Path | None:
    """Return the directory of weights that transformers reads, or None."""
    if reads(settings):
        return settings.init_from
    directory = _directory(settings.model)
    return directory if settings.init_from is None and finetuning.has_weights(directory) else None


def _model(transformers: Any, hf_config: Any, weights: Path | None, attention: str | None) -> Any:
    kind = transformers.AutoModelForCausalLM
    common = {"dtype": torch.float32, "attn_implementation": KERNELS.get(attention or "", attention)}
    meta = torch.get_default_device().type == "meta"  # only the sizes are needed
    if meta or weights is None:
        return kind.from_config(hf_config, **common)
    model, facts = kind.from_pretrained(
        weights,
        config=hf_config,
        local_files_only=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # _check names them
        **common,
    )
    _check(model, facts, weights)
    return model.train()


def _check(model: nn.Module, facts: Mapping[str, Any], weights: Path) -> None:
    """Raise CommonMistake if weights are missing, have other shapes, or are those of more layers.

    Weights of another form, such as those of a model for images, are left out, as transformers does.
    """
    known = set(model.state_dict())
    forms = {_form(name) for name in known}
    there = _names(model, weights)  # which transformers does not compare at ZeRO 3
    surplus = sorted(name for name in {*there, *facts["unexpected_keys"]} - known if _form(name) in forms)
    problems = []
    for what, names in (("are missing", sorted(facts["missing_keys"])), ("belong to other layers", surplus)):
        if names:
            problems.append(f"{len(names)} {what}, such as {', '.join(names[:3])}")
    for name, saved, needed in sorted(facts["mismatched_keys"])[:1]:
        problems.append(f"{name} is {list(saved)} there, and {list(needed)} in the model")
    if problems:
        kind = type(model).__name__
        raise CommonMistake(
            f"the weights in {weights} do not fit {kind} of config.json: {'; '.join(problems)}"
        )


def _names(model: Any, weights: Path) -> set[str]:
    """Return the names of the weights in the files, which lack the prefix if the model there has no head."""
    names = {name for file in _files(weights) for name in _names_in(file)}
    prefix, known = f"{model.base_model_prefix}.", set(model.state_dict())
    if prefix == "." or any(name.startswith(prefix) for name in names):
        return names
    return {name if name in known else f"{prefix}{name}" for name in names}


def _files(weights: Path) -> list[Path]:
    """Return the files that transformers reads."""
    kinds = (sorted(weights.glob(pattern)) for pattern in finetuning.WEIGHTS)
    return next((files for files in kinds if files), [])


def _names_in(file: Path) -> Iterable[str]:
    if file.suffix == ".safetensors":
        names: Iterable[str] = import_module("safetensors").safe_open(file, "pt").keys()
        return names
    content: Mapping[str, Any] = torch.load(file, "meta", weights_only=True, mmap=zipfile.is_zipfile(file))
    return content


def _form(name: str) -> str:
    """Return the name of a weight without the numbers of layers."""
    return re.sub(r"\.\d+\.", ".N.", name)


def _damaged(weights: Path | None) -> str:
    """Return which file of the weights cannot be read, and why; '' if all can."""
    for file in _files(weights) if weights else ():
        try:
            _names_in(file)
        except Exception as error:  # safetensors and torch raise many kinds
            return f"{file}, of {file.stat().st_size} bytes, cannot be read: {_in_one_line(error)}"
    return ""


def save(model: Any, settings: Settings, place: Path, shard: str) -> None:
    """Write the model and its tokenizer to a directory that from_pretrained reads.

    shard: the largest size of a file, such as 5GB
    """
    model.config.use_cache = config(settings.model).use_cache
    model.save_pretrained(place, max_shard_size=shard)
    for source in filter(None, (_directory(settings.model), settings.init_from, settings.tokenizer)):
        for name in COMPANIONS:
            if (source / name).is_file():
                shutil.copyfile(source / name, place / name)
    if settings.chat_template:
        shutil.copyfile(settings.chat_template, place / "chat_template.jinja")
    if settings.tokenizer and settings.tokenizer.is_file():
        _package().PreTrainedTokenizerFast(tokenizer_file=str(settings.tokenizer)).save_pretrained(place)


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


def _in_one_line(error: Exception) -> str:
    """Return the first 300 characters of a message, such as that of torch on the shapes of weights."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}..."


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
