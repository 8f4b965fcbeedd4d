"""The error for bad input, and helpers for its message."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.secrets import masked_word

# The exit statuses of the commands; runs/exit_statuses.py has their meanings.
NO, BAD_INPUT, LOST, PROGRAM_CHANGED, UNREACHABLE, INTERRUPTED, READER_GONE = 1, 2, 3, 4, 5, 130, 141

_LOOKED_AT = 10_000  # characters of a value that errors show


class JobgenError(Exception):
    """Bad input. Its text is one sentence; the command line prints it and exits with ``status``.

    ``option`` is the key of the option whose value is refused, or empty.
    """

    status = BAD_INPUT

    def __init__(self, text: str, option: str = "") -> None:
        super().__init__(text)
        self.option = option


def one_of(values: Iterable[str]) -> str:
    """Return ``a, b or c``, for a sentence that lists what is allowed."""
    *first, last = values
    return f"{', '.join(first)} or {last}" if first else last


def counted(number: int, noun: str) -> str:
    """Return ``1 node`` or ``2 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``; did you mean X?`` with the known word nearest to a misspelt one; empty if there is none."""
    match = near_ones(word, known, 1, cutoff)
    return f"; did you mean {match[0]}?" if match else ""


def near_ones(word: str, known: Iterable[str], most: int = 5, cutoff: float = 0.6) -> list[str]:
    """Return the known words that are most like a misspelt one, the nearest first."""
    from difflib import get_close_matches  # late: only errors need this import

    return get_close_matches(word, list(known), n=most, cutoff=cutoff)


def shown(value: str) -> str:
    """Return a value as errors show it: on one line, with 60 characters at most, and without secrets."""
    value = masked_word(value[:_LOOKED_AT])
    text = value if value.isprintable() and " " not in value and value else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def visible(text: str, kept: str = "") -> str:
    """Return text that is safe for a terminal: characters that are not printable are escaped, such as
    ``\\x1b``, except those that are ``kept``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


_DASHES = (  # what editors make of hyphens
    "-\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{EN DASH}\N{EM DASH}\N{HORIZONTAL BAR}\N{MINUS SIGN}"
)


def dashed_option(word: str) -> str:
    """Return the option that a word is with hyphens instead of the dashes that editors make of them; empty
    for other words."""
    name = word.lstrip(_DASHES)
    dashes = word[: len(word) - len(name)]
    if dashes.isascii() or not name[:1].isalpha():
        return ""
    return f"{'-' if len(name.partition('=')[0]) == 1 else '--'}{name}"


def setting(key: str, origin: str) -> str:
    """Return a setting as the user wrote it: ``--key`` on the command line, ``key =`` in a job file."""
    if origin in ("command line", "default"):
        return f"--{key.replace('_', '-')}"
    return f"{key.removesuffix('_block')} ="  # [blocks] after has the key after_block
