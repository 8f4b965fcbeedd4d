"""The DeepSpeed config that a script names, if the file can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from jobgen.check.ranks.model import ranks
from jobgen.script.deepspeed_config import file_in, read
from jobgen.script.script import Script
from jobgen.script.syntax import literal


@lru_cache(maxsize=4)  # several rules read the same config
def find(script: Script) -> tuple[int, str, Any] | None:
    """Return the line that names a config, its name, and its content: the JSON value, or the error text."""
    for lines, words in _command_lines(script):
        if (named := file_in(words)) and (path := script.path(named[1])):
            return lines[named[0]], named[1], read(path)
    return None


def _command_lines(script: Script) -> Iterator[tuple[list[int], Sequence[str | None]]]:
    """Yield the words of each command, and of each program in the code of ranks, with their lines."""
    for command in script.commands:
        yield [word.line for word in command.arguments], [literal(word) for word in command.arguments]
    for one in ranks(script):
        yield [one.line] * len(one.program.words), one.program.words


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
