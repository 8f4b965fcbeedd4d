"""Other destinations of the metrics than metrics.jsonl, on rank 0: TensorBoard, a table, the user's logger.

Options or DeepSpeed's blocks select them. DeepSpeed's own monitors write only the learning rate, and only
with DeepSpeed's engines. Its blocks `tensorboard` and `csv_monitor` are therefore handled here: in the same
place, with all metrics, for every engine. Its other blocks (wandb, comet) are left to DeepSpeed. torch is
imported only when a writer is made.
"""

import csv
import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import report, user_code
from .config import Settings, to_record
from .errors import BadInput, CommonMistake
from .flops import RATES

Sink = Callable[[str, dict[str, Any]], None]


def columns(metrics: Sequence[str]) -> list[str]:
    """Return the columns of the table of a run with these metrics."""
    of_steps = ["event", "epoch", "step", "loss", "lr", "gradient_norm", "samples_per_second", "train_loss"]
    return [*of_steps, "test_loss", *metrics, "seconds"]


# Their names in TensorBoard.
TAGS = {
    "step": {
        "loss": "train/loss",
        "lr": "train/learning_rate",
        "gradient_norm": "train/gradient_norm",
        **{name: f"train/{name}" for name in ("samples_per_second", *RATES)},
    },
    "epoch": {"train_loss": "epoch/train_loss", "test_loss": "epoch/test_loss"},
}
EVALUATION = "evaluation"  # between two epochs, with the names of an epoch's
METRIC = "epoch/"  # the metrics of an evaluation: epoch/accuracy


class Places(NamedTuple):
    """Paths of the metrics. A relative path of an option is below the run directory."""

    tensorboard: list[Path]
    csv: list[Path]


def plan(settings: Settings, config: dict[str, Any]) -> Places:
    """Return the paths that the options and the config select. Remove DeepSpeed's blocks from `config`.

    Raise CommonMistake if TensorBoard is selected and its package is not installed.
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
    """Return the directory of DeepSpeed's block, with DeepSpeed's own defaults, or None if it is not enabled.

    It is relative to the working directory.
    """
    block = config.pop(name, {})
    if not block.get("enabled"):
        return None
    return Path(block.get("output_path", ""), block.get("job_name", "DeepSpeedJobName")).absolute()


def open_all(
    places: Places, directory: Path, resume_step: int = 0, metrics: Sequence[str] = ("accuracy",)
) -> list[Sink]:
    """Return the writers, for rank 0.

    metrics: names of the run's metrics. resume_step: step from which the run resumes another one, whose
    metrics are in `directory`. Raise BadInput if a path cannot be written.
    """
    try:
        return [
            *(tensorboard(directory / place, resume_step, metrics) for place in places.tensorboard),
            *(
                table(directory / place, directory / "metrics.jsonl" if resume_step else None, metrics)
                for place in places.csv
            ),
        ]
    except OSError as error:
        raise BadInput(f"the metrics cannot be written to {error.filename}: {error.strerror}") from None


def own(settings: Settings, directory: Path) -> list[Sink]:
    """Return the writer of --logger, if there is one, for rank 0.

    An exception in it is reported, and it is not called again: the training goes on. Raise CommonMistake if
    its function cannot be called, or returns no function.
    """
    name = settings.logger
    if name is None:
        return []
    build, form = user_code.find("--logger", name), "NAME(directory, options)"
    write = user_code.call("--logger", name, build, form, directory, to_record(settings))
    if not callable(write):
        raise CommonMistake(f"--logger {name} returned {type(write).__name__}, not a function")
    failed = False

    def guarded(event: str, values: dict[str, Any]) -> None:
        nonlocal failed
        if failed:
            return
        try:
            write(event, dict(values))
        except Exception as error:
            failed = True
            text = " ".join(f"{type(error).__name__}: {error}".split())
            report.complain(f"warning: --logger {name} failed, and is not called again: {text}")

    return [guarded]


def tensorboard(directory: Path, resume_step: int, metrics: Sequence[str]) -> Sink:
    from torch.utils.tensorboard import SummaryWriter

    # The steps after `resume_step` are repeated.
    writer = SummaryWriter(str(directory), purge_step=resume_step + 1 if resume_step else None)

    of_epoch = TAGS["epoch"] | {name: METRIC + name for name in metrics}
    tags = {**TAGS, "epoch": of_epoch, EVALUATION: of_epoch}

    def write(event: str, values: dict[str, Any]) -> None:
        for name, tag in tags.get(event, {}).items():
            if values.get(name) is not None:
                writer.add_scalar(tag, values[name], values["step"])
        if event in tags:
            writer.flush()  # a job may be killed at any time

    return write


def table(file: Path, earlier: Path | None, metrics: Sequence[str]) -> Sink:
    """Return the writer of a new table, which begins with the metrics in the file `earlier`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    stream = open(file, "w", encoding="utf-8", newline="")  # noqa: SIM115 (open as long as the run)
    writer = csv.DictWriter(stream, columns(metrics), extrasaction="ignore")
    writer.writeheader()

    def write(event: str, values: dict[str, Any]) -> None:
        if event in (*TAGS, EVALUATION):
            writer.writerow({"event": event, **values})
            stream.flush()

    for line in earlier.read_text(encoding="utf-8").splitlines() if earlier else ():
        values = json.loads(line)
        write(values.pop("event"), values)
    return write
