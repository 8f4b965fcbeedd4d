"""Chats: lists of messages that become a text by the chat template of a tokenizer.

The template is a Jinja file of the package transformers: https://huggingface.co/docs/transformers/chat_templating
"""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import BadInput, CommonMistake

# Of ShareGPT. Some files of this form have the usual names.
ROLES = {"human": "user", "gpt": "assistant", "observation": "tool"}
ROLES |= {name: name for name in ("system", "user", "assistant", "tool")}
Message = Mapping[str, Any]


class Template:
    """A chat template. source: its Jinja text; tokens: special tokens by name, such as bos_token"""

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        self._source, self._tokens = source, dict(tokens)
        self.identity = [source, self._tokens]  # what tells it from others, for the cache
        self._marks = "generation" in source and "endgeneration" in source
        self._module: Any = import_module("transformers.utils.chat_template_utils")

    def text(
        self, messages: Sequence[Any], tools: Any, answers: bool
    ) -> tuple[str, bool, tuple[tuple[int, int], ...] | None]:
        """Return the text of a chat, True, and the spans of its characters to learn, None for all.

        answers: only the messages of the assistant, without those of weight 0; tools: a list, or its JSON.
        Raise BadInput if the template refuses the messages, or if it does not show where they are.
        """
        chat = [_message(each) for each in messages]
        if isinstance(tools, str):
            try:
                tools = json.loads(tools) if tools else None
            except (ValueError, RecursionError) as error:
                raise BadInput(f"its tools are not JSON: {error}") from None
        if not answers:
            return self._render(chat, tools), True, None
        if self._marks:
            text, spans = self._call(chat, tools, return_assistant_tokens_mask=True)
        else:
            text = self._render(chat, tools)
            spans = [self._answer(text, chat, tools, at) for at in _answers(chat)]
        weights = [chat[at].get("weight", 1) for at in _answers(chat)]
        if not all(weights) and len(weights) != len(spans):
            raise BadInput(
                f"the chat template marks {len(spans)} of {len(weights)} answers, of which some have weights"
            )
        kept = spans if all(weights) else [s for s, weight in zip(spans, weights, strict=True) if weight]
        return text, True, tuple((start, end) for start, end in kept)

    def _answer(self, text: str, chat: list[Message], tools: Any, at: int) -> tuple[int, int]:
        """Return the span of the message `at`: from the prompt for an answer to the end of the message."""
        before = self._render(chat[:at], tools, add_generation_prompt=True)
        until = self._render(chat[: at + 1], tools) if at + 1 < len(chat) else text
        if not (text.startswith(until) and until.startswith(before)):
            raise BadInput(
                f"the chat template writes message {at + 1} in another way when others follow: mark "
                "answers in it with {% generation %}, or use --learn all"
            )
        return len(before), len(until)

    def _render(self, chat: list[Message], tools: Any, **how: Any) -> str:
        return str(self._call(chat, tools, **how)[0])

    def _call(self, chat: list[Message], tools: Any, **how: Any) -> tuple[str, Any]:
        try:
            texts, spans = self._module.render_jinja_template(
                conversations=[chat], tools=tools, chat_template=self._source, **how, **self._tokens
            )
        except Exception as error:  # Jinja's, and those that a template raises
            raise BadInput(f"the chat template refuses the messages: {error}") from None
        return texts[0], spans[0] if spans else ()


def _message(message: Any) -> Message:
    """Return a message with role and content, also of ShareGPT's form."""
    if isinstance(message, Mapping) and "role" not in message and message.get("from") in ROLES:
        return {"role": ROLES[message["from"]], "content": message.get("value")}
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise BadInput(f"{message!r:.60} is no message with role and content")
    return {key: value for key, value in message.items() if value is not None}


def _answers(chat: Sequence[Message]) -> list[int]:
    return [at for at, message in enumerate(chat) if message["role"] == "assistant"]


def template(tokenizer: Path | None, file: Path | None) -> Template | None:
    """Return the template in `file`, or that of the directory with the tokenizer; None if there is none.

    Raise BadInput if it cannot be read.
    """
    if tokenizer is None and file is None:
        return None
    source, tokens = None, {}
    try:
        if tokenizer and (tokenizer / "tokenizer_config.json").is_file():
            kind = import_module("transformers").PreTrainedTokenizerFast
            whole = kind.from_pretrained(tokenizer, local_files_only=True)
            tokens = {name: str(token) for name, token in whole.special_tokens_map.items()}
            source = whole.chat_template
        if file is not None:
            source = file.read_text(encoding="utf-8")
    except ModuleNotFoundError:
        raise CommonMistake("chats need the Python package transformers: pip install transformers") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise BadInput(f"the chat template of {file or tokenizer} cannot be read: {reason}") from None
    if isinstance(source, dict):
        source = source.get("default")
    return Template(source, tokens) if source else None
