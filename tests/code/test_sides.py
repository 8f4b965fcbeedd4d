"""On which machine the path of each option lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shell_host import ShellHost
from support.texts import plan_of

from jobgen.code import sides
