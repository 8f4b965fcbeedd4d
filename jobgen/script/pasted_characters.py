"""Dashes and blanks that editors make of hyphens and spaces, in the words of a program and in code."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from jobgen.errors import dashed_option, shown, visible
from jobgen.options import BY_KEY, CODE
from jobgen.spec import Specification


def warnings(spec: Specification) -> Iterator[str]:
    """Yield a sentence on each such word of a program, and on each code with such a blank."""
    programs = [(spec.program, spec.program_origin)]
    programs += [(step.program, f"[[step]] {number}") for number, step in enumerate(spec.steps[1:], 2)]
    for words, origin in programs:
        for word in words:
            if option := dashed_option(word):
                yield f"{visible(word)} ({origin}) begins with no hyphen: did you mean {option}?"
            elif blank := _blank(word):
                yield f"{shown(word)} ({origin}) contains a {blank}, where a program expects a space"
    for key in CODE:
        for line in (getattr(spec, key) or "").splitlines():
            if not line.lstrip().startswith("#") and (blank := _blank(line)):
                place = f"{BY_KEY[key].name} ({spec.origin(key)})"
                yield f"{place} contains a {blank}, which separates no words: {shown(line)}"


def _blank(text: str) -> str:
    """Return the name of the first blank that is no ASCII character; empty without one."""
    names = (
        unicodedata.name(one, "blank").lower()
        for one in text
        if ord(one) > 127 and unicodedata.category(one) in ("Zs", "Cf") and one not in _JOINERS
    )
    return next(names, "")


_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"  # parts of words in some languages
