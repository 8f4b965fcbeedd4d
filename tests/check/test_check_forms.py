"""The recorded answers of the schedulers to forms of directives; tests/cluster/test_forms.py asks them."""

from __future__ import annotations

import pytest
from support import forms


@pytest.mark.parametrize("row", forms.ROWS)
def test_check_agrees(row: str) -> None:
    accepted = forms.recorded(row)
    assert len(accepted) > 300
    assert forms.disagreements(row, accepted) == forms.known_disagreements(row)
