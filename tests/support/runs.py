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


def attempt(directory: Path, number: int, end: int | None, log: str = "a log\n", **more: Any) -> None:
    """One attempt of one rank, or of as many as ``more`` says; without an end they have left no status."""
    logs = directory / f"attempt-{number}"
    logs.mkdir()
    began = BEGAN + 700 * number
    events = [f"{began} began 47{number}", f"{began + 500} deadline {began + 550}"]
    if end is not None:
        events.append(f"{began + 600} ended {end}")
    if end == 75:
        events.insert(2, f"{began + 550} signal USR1")
    (logs / "events").write_text("".join(f"{event}\n" for event in events))
    statuses = {} if end is None else dict.fromkeys(range(more.get("ranks", 1)), end)
    nodes(logs, began, statuses=statuses, over=end is not None, log=log, **more)


def nodes(
    logs: Path,
    began: int = BEGAN,
    ranks: int = 1,
    per_node: int = 1,
    statuses: Mapping[int, int] | None = None,
    over: bool = False,
    log: str = "a log\n",
    kept: str = "node",
    host: str = "node",
) -> None:
    """What the nodes leave in an attempt: the ranks began, those with a status ended; ``over``: the script did,
    too. ``log`` is what each wrote, with its number for RANK; ``kept`` is what --rank-logs says. The hosts are
    ``host`` with a number."""
    statuses = statuses or {}
    ends = {rank: f"{rank} {status} {began + 600}.5" for rank, status in statuses.items()}
    for first in range(0, ranks, per_node):
        name, folder = f"{host}{first // per_node + 1}", logs / f"nodes/{first // 400}"
        file = name.replace("/", "_").replace("\0", "_")
        here = range(first, min(first + per_node, ranks))
        folder.mkdir(parents=True, exist_ok=True)
        notes = [f"began {rank} {4711 + rank} {began + 1}.25 {name}" for rank in here]
        notes += [f"ended {ends[rank]} {name}" for rank in here if rank in ends]
        (folder / f"{file}.ranks").write_text("".join(f"{note}\n" for note in notes))
        written = {rank: log.replace("RANK", str(rank)) for rank in here}
        if kept == "node":
            lines = [f"{rank}: {line}\n" for rank in here for line in written[rank].split("\n")[:-1]]
            (folder / f"{file}.log").write_text("".join(lines))
        for rank in here if kept in ("rank", "failed") else ():
            if kept == "rank" or statuses.get(rank):
                (folder / f"rank-{rank}.log").write_text(written[rank])
    if over:
        lines = [f"{end} {host}{rank // per_node + 1}\n" for rank, end in sorted(ends.items())]
        (logs / "statuses").write_text("".join(lines))
