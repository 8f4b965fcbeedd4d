"""A shell for a file of the runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runtime_shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path).prepare()
