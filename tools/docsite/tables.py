"""Markdown tables and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return text as the cell of a table: on one line, without Markdown of its own outside of code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part.replace("|", r"\|") if part.startswith("`") else escaped(part) for part in parts)


def escaped(text: str) -> str:
    """Return text in which no character is Markdown or HTML."""
    return re.sub(r"[|\[*_\\]", r"\\\g<0>", text).replace("<", "&lt;")


def code(text: str) -> str:
    """Return text as code in a cell; empty text stays empty."""
    return f"`{text.replace('|', chr(92) + '|')}`" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
