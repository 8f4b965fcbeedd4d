"""The jobs that a job waits for: ``--after``."""

from __future__ import annotations

import re

_KINDS = ("after", "afterany", "afterok", "afternotok", "aftercorr")
_ID = r"\d{1,10}(?:_\d{1,7}|(?:\[\d{0,7}\])?(?:\.[A-Za-z0-9][A-Za-z0-9.-]{0,253})?)"


def dependency(text: str) -> tuple[str, str]:
    """Parse ``ID`` or ``KIND:ID`` as a pair of kind and id; the default kind is afterok."""
    kind, _, job = text.rpartition(":")
    if kind not in ("", *_KINDS) or not re.fullmatch(_ID, job, re.ASCII):
        raise ValueError(
            f"must be the id of a job, or afterany:ID, afterok:ID or the like ({', '.join(_KINDS)}); "
            "repeat the option for more"
        )
    return kind or "afterok", job
