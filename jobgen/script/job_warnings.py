"""All warnings on a job, for the command line and for Python."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import chain

from jobgen.errors import dashed_option, shown, visible
from jobgen.options import BY_KEY, CODE
from jobgen.plan.plan import Plan
from jobgen.rendering.secret_warnings import secret_warnings
from jobgen.script import deepspeed_config, foreign_variables, script_arguments
from jobgen.spec import Specification

_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"  # parts of words in some languages


def warnings(plan: Plan) -> Iterator[str]:
    """Return each warning as a sentence."""
    return chain(without_secrets(plan), secret_warnings(plan.spec))


def without_secrets(plan: Plan) -> Iterator[str]:
    """Return the warnings that are not on secrets."""
    spec = plan.spec
    return chain(
        plan.warnings,
        foreign_variables.warnings(spec, plan.scheduler),
        script_arguments.warnings(spec, plan.scheduler),
        deepspeed_config.warnings(plan),
        _pasted_characters(spec),
    )


def _pasted_characters(spec: Specification) -> Iterator[str]:
    """Yield a sentence on each word of a program with dashes, and each code with blanks, of an editor."""
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
