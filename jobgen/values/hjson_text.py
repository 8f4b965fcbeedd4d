"""JSON as DeepSpeed reads its config: as Hjson, with comments and commas at the end (hjson.github.io)."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any


def parse(text: str) -> Any:
    """Return the value of a text in JSON or Hjson. Raise ValueError if it is neither, or has a key twice."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ValueError as error:
        hjson = import_module("hjson")  # late: few texts are no JSON
        try:
            value = hjson.loads(text, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            raise error from None
        if not value or not isinstance(value, dict):  # Hjson takes any text for a string
            raise
        return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} is there twice")
    return result
