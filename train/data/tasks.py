"""The task that the settings name."""

from dataclasses import replace

from ..config import Settings
from . import readers, text
from .dataset import Task


def of(settings: Settings) -> Task:
    """Return the task with its data. Raise BadInput if a file is missing or damaged, or if --normalize
    does not fit the data."""
    if settings.task == "text":
        made = text.task(settings)
    else:
        made = readers.load(settings.task, settings.data[0] if settings.data else None, settings.cache)
    if settings.normalize is None:
        return made
    half = len(settings.normalize) // 2
    train, test = (
        source.scaled(settings.normalize[:half], settings.normalize[half:])
        for source in (made.train, made.test)
    )
    return replace(made, train=train, test=test)
