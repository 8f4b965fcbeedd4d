"""train(): a training from Python, with the options of the command line as a dict."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import environ
from typing import Any

from .. import host_files, report, whole_run
from ..config import options
from ..errors import RESUMABLE, CommonMistake, Resumable, status_of, suggestion

DEEPSPEED = "deepspeed_config"


def train(config: Mapping[str, Any]) -> dict[str, Any]:
    """Train as `config` says, and return the results, as status.json has them (accuracy, steps, ...).

    config: the options of `python -m jobgen.train` without their dashes, such as {"task": "digits",
    "batch_size": 64, "clip": 0.5}. True stands for an option without a value, a list for a comma-separated
    one, None for an option that is not given. deepspeed_config may be a dict, too.

    The checks and messages are those of the command line. Raise BadInput for a user's mistake,
    TrainingFailure if the run fails, CannotSave, or TargetMissed. If the run stops before its end, but can be
    resumed, exit with status 75 (SystemExit). Called on all ranks, after init() or without it; the ranks stay
    connected.
    """
    run = report.Run(environ, report.Clock(), None)
    try:
        with _arguments(config) as argv:
            return whole_run.train(argv, run)
    except Resumable:
        raise SystemExit(RESUMABLE) from None
    except Exception as error:
        run.fail(str(error), type(error).__name__, status_of(error), **getattr(error, "facts", {}))
        raise


@contextmanager
def _arguments(config: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the command line of `config`. A dict for DeepSpeed is a file while the context lasts."""
    block = config.get(DEEPSPEED)
    if not isinstance(block, Mapping):
        yield argv(config)
        return
    with host_files.draft(host_files.of_user() / "config") as folder:
        file = folder / f"{DEEPSPEED}.json"
        try:
            file.write_text(json.dumps(block), encoding="utf-8")
        except (TypeError, ValueError) as error:
            raise CommonMistake(f"train(config): {DEEPSPEED} cannot be written as JSON: {error}") from None
        yield argv({**config, DEEPSPEED: file})


def argv(config: Mapping[str, Any]) -> list[str]:
    """Return the command line of `config`. Raise CommonMistake for an unknown key, or a value of a flag."""
    actions = {
        name.lstrip("-").replace("-", "_"): action
        for action in options.parser()._actions
        for name in action.option_strings
        if name.startswith("--") and action.dest != "help"
    }
    words = []
    for key, value in config.items():
        if key not in actions:
            raise CommonMistake(f"train(config): unknown key {key!r}{suggestion(str(key), actions)}")
        name = max(actions[key].option_strings, key=len)
        if actions[key].nargs == 0 and not isinstance(value, bool | None):
            raise CommonMistake(f"train(config): {key}={value!r} must be True or False")
        if value is True and actions[key].nargs in (0, "?"):
            words.append(name)
        elif value is not None and not (value is False and actions[key].nargs == 0):
            words.append(f"{name}={_text(value)}")
    return words


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
