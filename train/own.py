"""The user's own objects, named on the command line as package.module:name. No torch here."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from .errors import CommonMistake, suggestion


def find(option: str, name: str) -> Callable[..., Any]:
    """The function or class that 'package.module:name' names.

    Raises CommonMistake, naming the option, where there is none; what fails inside the module is its own
    error, and stays as it is.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise CommonMistake(f"{option} {name}: there is no module {error.name} on PYTHONPATH") from None
    for part in attribute.split("."):
        names = dir(found)
        found = getattr(found, part, None)
        if found is None:
            raise CommonMistake(f"{option} {name}: {module} has no {part}{suggestion(part, names)}")
    if not callable(found):
        raise CommonMistake(f"{option} {name}: {attribute} is not a function or class")
    return found


def call(option: str, name: str, function: Callable[..., Any], form: str, *args: Any, **named: Any) -> Any:
    """What `function` returns, which 'package.module:name' named. form: how it is called, for the message.

    Raises CommonMistake where it cannot be called so; what fails inside it stays as it is.
    """
    reason = misfit(function, *args, **named)
    if reason:
        raise CommonMistake(f"{option} {name} cannot be called as {form}: {reason}")
    return function(*args, **named)


def misfit(function: Callable[..., Any], *args: Any, **named: Any) -> str:
    """Why the arguments are not those of the function; '' if they are, or nobody can tell."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one that is written in C
        return ""
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        return str(error)
    return ""


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of its arguments; [] where nobody can tell."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
