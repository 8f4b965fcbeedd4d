"""Versions of schedulers, for options and rules that not all versions have."""

import re
from typing import NamedTuple


def is_version(text: str) -> bool:
    """Return whether a text is a version such as ``23.02`` or ``23.11.4``."""
    return re.fullmatch(r"\d{1,4}(\.\d{1,4}){1,3}", text, re.ASCII) is not None


def version(text: str) -> str:
    """Parse a version."""
    if not is_version(text):
        raise ValueError("must be a version such as 23.02 or 23.11.4")
    return text


class Span(NamedTuple):
    """The versions from ``since`` on, and before ``before``; empty: no limit."""

    since: str = ""
    before: str = ""

    def holds(self, text: str | None) -> bool:
        """Return whether a version belongs to the span; unknown ones do."""
        if text is None:
            return True
        own = _numbers(text)
        return not (self.since and own < _numbers(self.since)) and not (
            self.before and own >= _numbers(self.before)
        )

    def __str__(self) -> str:
        parts = [self.since and f"since {self.since}", self.before and f"before {self.before}"]
        return " and ".join(part for part in parts if part)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
