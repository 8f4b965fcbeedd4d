"""What a user did wrong, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable


class JobgenError(Exception):
    """Bad input. Its text is one sentence; the command line shows it and exits with ``status``."""

    status = 2


def one_of(values: Iterable[str]) -> str:
    """``a, b or c``, for a sentence that says what is allowed."""
    *first, last = values
    return f"{', '.join(first)} or {last}" if first else last


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """``; did you mean X?`` for the known word that is nearest to a misspelt one, else nothing."""
    from difflib import get_close_matches  # only a mistake pays for this import

    known = list(known)
    match = get_close_matches(word, known, n=1, cutoff=cutoff)
    return f"; did you mean {match[0]}?" if match else ""


def shown(value: str) -> str:
    """A value as an error shows it: on one line, and not longer than a line."""
    text = value if value.isprintable() and " " not in value and value else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def setting(key: str, origin: str) -> str:
    """A setting as it was written there: ``--key`` on the command line, ``key =`` in a job file."""
    if origin in ("command line", "default"):
        return f"--{key.replace('_', '-')}"
    return f"{key.removesuffix('_block')} ="  # [blocks] after, beside [job] after
