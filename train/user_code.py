"""The user's own objects, named on the command line as package.module:name. Does not import torch."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from .errors import CommonMistake, suggestion


def find(option: str, name: str) -> Callable[..., Any]:
    """Return the function or class that 'package.module:name' names.

    Raise CommonMistake, naming the option, if there is none. An exception inside the module is not converted.
    """
    module, _, attribute = name.partition(":")
    try:
        target: Callable[..., Any] | Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # a module that the user's module imports
        raise CommonMistake(f"{option} {name}: there is no module {error.name} on PYTHONPATH") from None
    for part in attribute.split("."):
        names = dir(target)
        target = getattr(target, part, None)
        if target is None:
            raise CommonMistake(f"{option} {name}: {module} has no {part}{suggestion(part, names)}")
    if not callable(target):
        raise CommonMistake(f"{option} {name}: {attribute} is not a function or class")
    return target


def call(option: str, name: str, function: Callable[..., Any], form: str, *args: Any, **keywords: Any) -> Any:
    """Call `function`, which 'package.module:name' names, and return its result.

    form: form of the call, for the message. Raise CommonMistake if the function does not accept these
    arguments. An exception inside the function is not converted.
    """
    reason = misfit(function, *args, **keywords)
    if reason:
        raise CommonMistake(f"{option} {name} cannot be called as {form}: {reason}")
    return function(*args, **keywords)


def misfit(function: Callable[..., Any], *args: Any, **keywords: Any) -> str:
    """Return why the function does not accept these arguments; '' if it does, or if that is unknown."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function that is written in C
        return ""
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        return str(error)
    return ""


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the function's parameters; [] if its signature is unknown."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
