"""Part resume: a run is killed after a checkpoint, and resumed. Its losses must be those of a whole run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu import ours
from benchmarks.gpu.rows import Row

EVERY, EPOCHS = 4, 2
COMMON = ["--dataset", "benchmarks.gpu.data:images", "--epochs", str(EPOCHS), "--batch-size", "64"]
COMMON += ["--log-every", "1", "--save-every", str(EVERY), "--deterministic", "--augment", "crop,flip"]
CASES = {
    "ddp, autocast to bf16": ["--engine", "ddp", "--precision", "autocast"],
    "ZeRO 2, bf16": ["--engine", "deepspeed", "--zero-stage", "2", "--precision", "bf16"],
}


def rows(name: str, device: str, tiny: bool) -> Iterator[Row]:
    model = ["--model", "lenet" if tiny else "resnet18"]
    for case, options in list(CASES.items())[: 1 if tiny else None]:
        if "ZeRO" in case and not ours.importable("deepspeed"):
            yield Row(name, case, "deepspeed cannot be imported", verdict="left out")
            continue
        with tempfile.TemporaryDirectory() as folder:
            yield compared(name, case, [*COMMON, *model, *options], Path(folder))


def compared(name: str, case: str, options: list[str], folder: Path) -> Row:
    whole = start(folder / "whole", options)
    killed_at = killed(folder / "killed", options)
    for process in (whole, start(folder / "killed", [*options, "--resume"])):
        said = process.communicate()[0]
        if process.returncode:
            return Row(name, case, (said.splitlines() or ["no message"])[-1][:300], verdict="wrong")
    expected, found = (losses(folder / run) for run in ("whole", "killed"))
    verdict = "ok" if found == expected else "wrong"
    differ = sum(found.get(step) != loss for step, loss in expected.items())
    against = f"of {len(expected)} losses; killed at step {killed_at}"
    return Row(name, case, float(differ), "different", None, against, verdict)


def start(run: Path, options: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "jobgen.train", *options]
    env = {**os.environ, "JOBGEN_RUN_DIR": str(run)}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def killed(run: Path, options: list[str]) -> int:
    """Start a run and kill it after its second checkpoint. Return the last step that it has reported."""
    latest = run / "checkpoints" / "latest"
    with start(run, options) as process:
        while process.poll() is None:
            if latest.exists() and latest.read_text().strip() >= f"step-{2 * EVERY:06d}":
                process.kill()
            time.sleep(0.01)
    return max(losses(run), default=0)


def losses(run: Path) -> dict[int, float]:
    """Return the losses by step. The lines of a killed run may end in the middle."""
    file = run / "metrics.jsonl"
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row["event"] == "step":
            found[row["step"]] = row["loss"]
    return found
