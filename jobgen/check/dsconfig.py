"""The DeepSpeed config that a script names, if the file can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from jobgen.check.ranks.model import ranks
from jobgen.script.script import Script
from jobgen.script.syntax import literal
from jobgen.values.text_files import read_text

_OPTIONS = ("--deepspeed_config", "--deepspeed-config", "--ds_config", "--deepspeed")


@lru_cache(maxsize=4)  # several rules read the same config
def find(script: Script) -> tuple[int, str, Any] | None:
    """Return the line that names a config, its name, and its content: the JSON value, or the error text."""
    for lines, words in _command_lines(script):
        for at, word in enumerate(words):
            name, equals, value = (word or "").partition("=")
            if name not in _OPTIONS:
                continue
            file = value if equals else words[at + 1] if at + 1 < len(words) else None
            if file and file.endswith(".json") and (path := script.path(file)):
                return lines[at], file, _read(path)
    return None


def _command_lines(script: Script) -> Iterator[tuple[list[int], Sequence[str | None]]]:
    """Yield the words of each command, and of each program in the code of ranks, with their lines."""
    for command in script.commands:
        yield [word.line for word in command.arguments], [literal(word) for word in command.arguments]
    for one in ranks(script):
        yield [one.line] * len(one.program.words), one.program.words


def _read(path: str) -> Any:
    import json  # late: few scripts name a config

    try:
        return json.loads(read_text(path))
    except OSError:
        return None  # it may be written later, or be in another directory
    except (ValueError, RecursionError) as error:
        return str(error)


def keys() -> frozenset[str]:
    """Return the top-level keys of DeepSpeed's config, which ignores any other key without a message."""
    import json
    from importlib.resources import files

    schema = json.loads((files("jobgen.train") / "config/deepspeed/schema.json").read_text(encoding="utf-8"))
    return frozenset((*schema["properties"], *schema["removed"]))


def contents(script: Script) -> tuple[int, str, dict[str, Any]] | None:
    found = find(script)
    return (found[0], found[1], found[2]) if found and isinstance(found[2], dict) else None


def is_on(config: dict[str, Any], name: str) -> bool:
    block = config.get(name)
    return isinstance(block, dict) and block.get("enabled") in (True, "auto") and block.get("enabled") is True


def zero_stage(config: dict[str, Any]) -> int:
    block = config.get("zero_optimization")
    stage = block.get("stage", 0) if isinstance(block, dict) else 0
    return stage if isinstance(stage, int) else 0


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
