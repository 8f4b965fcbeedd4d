"""Run directories as jobs leave them, made up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

BEGAN = 1_700_000_000  # seconds since 1970


def rows(losses: Iterable[float], every: int = 10) -> list[dict[str, Any]]:
    """Metrics with these losses, an epoch after every tenth."""
    found: list[dict[str, Any]] = [{"event": "start", "engine": "ddp", "world_size": 2, "device": "cpu"}]
    for step, loss in enumerate(losses, 1):
        at = {"epoch": 1 + step // every, "step": step, "seconds": step / 10}
        found.append({"event": "step", **at, "loss": loss, "lr": 0.1, "samples_per_second": 1000 + step})
        if step % every == 0:
            found.append({"event": "epoch", **at, "test_loss": loss * 1.1, "accuracy": 1 - 1 / step})
    return found


def run(
    directory: Path,
    metrics: Iterable[Mapping[str, Any] | str] | None = None,
    attempts: Iterable[int | None] = (0,),
    status: Mapping[str, Any] | None = None,
    **files: str,
) -> Path:
    """A run: its attempts end with these statuses, ten minutes each; a line of text is one of metrics as it is."""
    directory.mkdir(parents=True)
    if metrics is not None:
        lines = (row if isinstance(row, str) else json.dumps(row) for row in metrics)
        (directory / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if status is not None:
        (directory / "status.json").write_text(json.dumps(status))
    for number, end in enumerate(attempts, 1):
        attempt(directory, number, end)
    for name, text in files.items():
        (directory / name.replace("_", "-")).write_text(text, encoding="utf-8")
    return directory


def attempt(directory: Path, number: int, end: int | None, log: str = "a log\n", host: str = "node1") -> None:
    """One attempt; without an end its rank has left no status."""
    logs = directory / f"attempt-{number}"
    logs.mkdir()
    began = BEGAN + 700 * number
    events = [f"{began} began 47{number}", f"{began + 500} deadline {began + 550}"]
    (logs / "rank-0.pid").write_text(f"4711 {host}\n")
    (logs / "rank-0.log").write_text(log)
    if end is not None:
        events.append(f"{began + 600} ended {end}")
        (logs / "rank-0.status").write_text(f"0 {end} {began + 600}.5 {host}\n")
    if end == 75:
        events.insert(2, f"{began + 550} signal USR1")
    (logs / "events").write_text("".join(f"{event}\n" for event in events))
