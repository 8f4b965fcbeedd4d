"""Tests that fail beside others are run once more: all of them, and only they."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import ROOT

AGAIN = (ROOT / "tools/failed_again.py", "a-cache")
FIRST = "import pathlib, pytest\nseen = pathlib.Path({name!r})\n"
ONCE = "    passes, _ = seen.exists(), seen.touch()\n    assert passes\n"


def run(*words: str | Path, cwd: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, *words], cwd=cwd, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_all_that_failed_and_no_other(tmp_path: Path) -> None:
    alone = FIRST.format(name="alone") + "def test_alone():\n" + ONCE + "def test_other(): pass\n"
    group = (
        FIRST.format(name="group")
        + "@pytest.mark.xdist_group('a-group')\n@pytest.mark.parametrize('x', ['a@b'])\ndef test_group(x):\n"
        + ONCE
    )
    (tmp_path / "test_a.py").write_text(alone)
    (tmp_path / "test_b.py").write_text(group)
    parts = ("-m", "pytest", "-n", "2", "--dist", "loadgroup", "-o", "cache_dir=a-cache")
    status, output = run(*parts, cwd=tmp_path)
    assert (status, "2 failed, 1 passed" in output) == (1, True), output
    status, output = run(*AGAIN, cwd=tmp_path)
    assert (status, "2 passed" in output) == (0, True), output
    (tmp_path / "group").unlink()
    status, output = run(*parts, "--cache-clear", cwd=tmp_path)
    assert (status, "1 failed, 2 passed" in output) == (1, True), output
    (tmp_path / "group").unlink()
    status, output = run(*AGAIN, cwd=tmp_path)
    assert (status, "1 failed" in output) == (1, True), output
