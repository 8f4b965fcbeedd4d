"""Programs for those who work on jobgen: ``python -m tools.NAME`` in a checkout, or make. They use modules of tests/."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
