"""Ctrl-C at any moment: status 130 and one sentence, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT

MOMENTS = 40
# What the command jobgen does; the byte says that the interpreter itself has started.
START = """
import os
from jobgen.__main__ import main
try:
    os.write(1, b".")
    main()
except KeyboardInterrupt as error:
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    os._exit(131 if frame.tb_frame.f_code.co_name in ("<module>", "main") else 132)  # 131: main() had not begun
"""


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", START, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    return process


@pytest.mark.parametrize("words", ["slurm --nodes 2 -o job.sh --force -- train.py", "check old.sh", "list"])
def test_at_any_moment(words: str, tmp_path: Path) -> None:
    (tmp_path / "old.sh").write_text("#!/bin/bash\n#SBATCH --time=1:00:00\nset -e\nsrun ./a\n")
    process, begun = started(tmp_path, *words.split()), time.monotonic()
    process.communicate()
    whole = time.monotonic() - begun
    interrupted = 0
    for moment in range(MOMENTS // (1 if words.startswith("slurm") else 4)):
        process = started(tmp_path, *words.split())
        time.sleep(whole * moment / MOMENTS)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert b"Traceback" not in said, (moment, said)
        assert process.returncode in (130, 131, 0, 1, 2), (moment, said)
        if process.returncode == 130:
            interrupted += 1
            assert said.endswith(b"jobgen: interrupted\n"), said
        assert not list(tmp_path.glob(".jobgen-*"))
    assert interrupted


def test_a_signal_that_the_parent_ignores(tmp_path: Path) -> None:
    """As with nohup and in the background of a script."""
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {START}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "slurm", "--", "./a"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0
