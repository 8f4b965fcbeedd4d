"""The options of language models: the text of --task text, and the sizes of --model gpt. No import of torch.

The names of sizes are those of the papers, where the vocabulary has 50,257 tokens: 124m, 350m and 774m are
the first three of GPT-2 (Radford et al., 2019, table 2), 1.3b is GPT-3 XL (Brown et al., arXiv 2005.14165,
table 2.1), here with 16 heads of 128. With bytes as tokens they are smaller by the rows of the embedding.
"""

from typing import Any, NamedTuple

from ..errors import CommonMistake
from .converters import fraction, is_hf, is_own, key, path, positive
from .engines import spec_of
from .option_groups import Group
from .settings import Settings, only

TEXT_OPTIONS = ("tokenizer", "text_key", "learn", "chat_template", "documents", "held_out")
GPT_OPTIONS = ("size", "layers", "width", "heads", "mlp")
HELD_OUT = 0.1
DEFAULTS = {"learn": "answers", "documents": "joined", "held_out": HELD_OUT}


class Size(NamedTuple):
    """layers: number of blocks; width: of the hidden states; heads: of the attention; context: in tokens"""

    layers: int
    width: int
    heads: int
    context: int


SIZES = {
    "tiny": Size(4, 128, 4, 128),
    "124m": Size(12, 768, 12, 1024),
    "350m": Size(24, 1024, 16, 1024),
    "774m": Size(36, 1280, 20, 1024),
    "1.3b": Size(24, 2048, 16, 2048),
}


def text(add: Group) -> None:
    add.value(
        "--tokenizer FILE|DIR",
        path,
        "text: a JSON file of the package tokenizers, or a directory with tokenizer.json and the chat "
        "template (default: those of --model hf:DIR, otherwise every byte is a token)",
    )
    add.value(
        "--text-key NAME",
        key,
        "text: key or column of records with the text or the messages, such as body or data.text "
        "(default: text, messages or conversations, or prompt and completion)",
    )
    add.choice(
        "--learn",
        ("answers", "all"),
        "text: what is learned of chats, and of prompts with completions: answers (the assistant's "
        "messages, the completions) or all (default: answers)",
    )
    add.value(
        "--chat-template FILE",
        path,
        "text: Jinja file that makes a text of messages (default: that of the directory of --tokenizer)",
    )
    add.choice(
        "--documents",
        ("joined", "apart"),
        "text: a token of a sequence attends to all before it (joined), or to those of its own document "
        "(apart) (default: joined)",
    )
    add.count("--context", "text: tokens of a sequence (default: 128, or by --size)", least=2)
    add.value(
        "--held-out X",
        fraction,
        f"text: fraction of the sequences, the last ones, for the evaluation (default: {HELD_OUT})",
    )


def gpt(add: Group) -> None:
    add.choice("--size", tuple(SIZES), "size of the model (default: tiny); options override it")
    add.count("--layers", "number of blocks")
    add.count("--width", "size of the hidden states", least=2)
    add.count("--heads", "heads of the attention")
    add.choice("--mlp", ("gelu", "swiglu"), "feed-forward part (default: gelu)")
    add.flag(
        "--recompute",
        "activation checkpointing: keep the input of each block only, and compute the rest again in the "
        "backward pass; for gpt, whose blocks with experts are kept, and hf:DIR",
    )
    add.value(
        "--peak-tflops X",
        positive,
        "peak of one device, for the model FLOP utilisation (default: for known GPUs, that of bf16)",
    )


def size(settings: Settings) -> Size:
    """Return the size that the options name. Raise CommonMistake if the heads do not divide the width."""
    options: dict[str, Any] = {name: getattr(settings, name) for name in Size._fields}
    sizes = {name: value for name, value in options.items() if value is not None}
    result = SIZES[settings.size or "tiny"]._replace(**sizes)
    if result.width % (2 * result.heads):
        raise CommonMistake(
            f"--width {result.width} with --heads {result.heads}: the width must be a multiple of twice the "
            "heads, because rotary embeddings turn pairs of numbers"
        )
    return result


def identity(settings: Settings) -> dict[str, Any]:
    """Return the options that a run of a language model and its checkpoint must have in common."""
    if settings.model != "gpt" and settings.task != "text":
        return {}
    form = size(settings)._asdict() | {"mlp": settings.mlp or "gelu"} if settings.model == "gpt" else {}
    tokens = settings.tokenizer.name if settings.tokenizer else "bytes"
    more: dict[str, Any] = {}
    for name, default in DEFAULTS.items():
        value = getattr(settings, name)
        more[name.replace("_", "-")] = None if value == default else value
    return form | more | {"context": size(settings).context, "tokenizer": tokens}


def check(settings: Settings) -> None:
    """Raise CommonMistake for options of language models that do not fit the task or the model."""
    of_language = settings.model == "gpt" or is_hf(settings.model)
    if settings.task == "text":
        size(settings)
        if not of_language and not is_own(settings.model):
            raise CommonMistake(
                f"--model {settings.model} is for images; --task text needs gpt, hf:DIR or PKG.MOD:NAME"
            )
        if settings.documents == "apart" and spec_of(settings).pipelined:
            raise CommonMistake(
                "--documents apart needs an engine without stages: a pipeline passes on hidden states only"
            )
    elif of_language and not is_own(settings.task):
        raise CommonMistake(
            f"--model {settings.model} is a language model: it needs --task text, or your own --dataset, not "
            f"{settings.task}"
        )
    only(settings, (*TEXT_OPTIONS, "context"), settings.task == "text", "--task text", settings.task)
    only(settings, GPT_OPTIONS, settings.model == "gpt", "--model gpt", settings.model)
    recomputes = settings.model == "gpt" or is_hf(settings.model)
    only(settings, ("recompute",), recomputes, "--model gpt and hf:DIR", settings.model)
