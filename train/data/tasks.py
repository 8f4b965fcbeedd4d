"""The task that the settings name."""

from ..config import Settings
from . import readers, text
from .dataset import Task


def of(settings: Settings) -> Task:
    """Return the task with its data. Raise BadInput if a file is missing or damaged."""
    if settings.task == "text":
        return text.task(settings)
    return readers.load(settings.task, settings.data[0] if settings.data else None, settings.cache)
