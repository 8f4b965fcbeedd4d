"""Where metrics go besides metrics.jsonl: TensorBoard's event files and a CSV table, by option or by
DeepSpeed's blocks. No torch here until a writer is made; all of it on rank 0 alone.

DeepSpeed's own monitors write the learning rate and no more, and only under DeepSpeed's engines. So its
blocks `tensorboard` and `csv_monitor` are ours: the same place, all metrics, every engine. Its other
blocks (wandb, comet) stay with it.
"""

import csv
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .config import Settings
from .errors import BadInput, CommonMistake

Sink = Callable[[str, dict[str, Any]], None]
COLUMNS = (
    "event",
    "epoch",
    "step",
    "loss",
    "lr",
    "gradient_norm",
    "samples_per_second",
    "train_loss",
    "test_loss",
    "accuracy",
    "seconds",
)
# What TensorBoard calls them.
TAGS = {
    "step": {
        "loss": "train/loss",
        "lr": "train/learning_rate",
        "gradient_norm": "train/gradient_norm",
        "samples_per_second": "train/samples_per_second",
    },
    "epoch": {"train_loss": "epoch/train_loss", "test_loss": "epoch/test_loss", "accuracy": "epoch/accuracy"},
}


class Places(NamedTuple):
    """Where to write; a relative path is below the run directory if an option names it."""

    tensorboard: list[Path]
    csv: list[Path]


def plan(settings: Settings, config: dict[str, Any]) -> Places:
    """Where the options and the config say; DeepSpeed's blocks are taken out of `config`.

    Raises CommonMistake where TensorBoard is wanted and its package is not installed.
    """
    boards = [settings.tensorboard] if settings.tensorboard else []
    tables = [settings.csv] if settings.csv else []
    block = _block(config, "tensorboard")
    if block is not None:
        boards.append(block)
    block = _block(config, "csv_monitor")
    if block is not None:
        tables.append(block / "metrics.csv")
    if boards and importlib.util.find_spec("tensorboard") is None:
        who = "--tensorboard" if settings.tensorboard else "the config file's tensorboard block"
        raise CommonMistake(f"{who} needs the Python package tensorboard: pip install tensorboard")
    return Places(boards, tables)


def _block(config: dict[str, Any], name: str) -> Path | None:
    """The directory of DeepSpeed's block, under DeepSpeed's own defaults; relative to the working one."""
    block = config.pop(name, {})
    if not block.get("enabled"):
        return None
    return Path(block.get("output_path", ""), block.get("job_name", "DeepSpeedJobName")).absolute()


def open_all(places: Places, directory: Path, resumed: int = 0) -> list[Sink]:
    """The writers, for rank 0. resumed: the step after which an earlier run goes on, whose metrics are
    in `directory`. Raises BadInput for a place that cannot be written to."""
    try:
        return [
            *(tensorboard(directory / place, resumed) for place in places.tensorboard),
            *(
                table(directory / place, directory / "metrics.jsonl" if resumed else None)
                for place in places.csv
            ),
        ]
    except OSError as error:
        raise BadInput(f"the metrics cannot be written to {error.filename}: {error.strerror}") from None


def tensorboard(directory: Path, resumed: int = 0) -> Sink:
    from torch.utils.tensorboard import SummaryWriter

    # What the earlier run did after that step is done again.
    writer = SummaryWriter(str(directory), purge_step=resumed + 1 if resumed else None)

    def write(event: str, values: dict[str, Any]) -> None:
        for name, tag in TAGS.get(event, {}).items():
            if values.get(name) is not None:
                writer.add_scalar(tag, values[name], values["step"])
        if event in TAGS:
            writer.flush()  # a job may be killed at any time

    return write


def table(file: Path, earlier: Path | None = None) -> Sink:
    """A new table; it begins with the metrics that are in the file `earlier`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    stream = open(file, "w", encoding="utf-8", newline="")  # noqa: SIM115 (open as long as the run)
    writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore")
    writer.writeheader()

    def write(event: str, values: dict[str, Any]) -> None:
        if event in TAGS:
            writer.writerow({"event": event, **values})
            stream.flush()

    for line in earlier.read_text(encoding="utf-8").splitlines() if earlier else ():
        values = json.loads(line)
        write(values.pop("event"), values)
    return write
