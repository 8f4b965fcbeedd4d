"""Attacks from a seed. 160 of them are in the suite; ``python -m attacks.generated SEED NUMBER`` makes more."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacks.generated import KINDS, Attacker

NUMBER = 20  # of each kind


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_attacks_of_a_kind(kind: object, place: Path) -> None:
    for number in range(NUMBER):
        kind(Attacker(f"suite-{number}", place))  # type: ignore[operator]
