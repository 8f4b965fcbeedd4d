"""The commands of environment modules that are options of a job file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Setting = tuple[str, str]  # an option and its value, or what the statement does instead of an option

_VERBS = """
unload rm del swap switch sw reset restore r save s list avail av spider show help whatis keyword key refresh
update collection savelist describe overview is-loaded unuse try-load load-any purge use load add tablelist
"""

# Commands of modules that are values of the option for modules, by their names and short forms.
_FORMS = ("unload rm del remove", "swap switch sw", "use", "reset", "restore r")
_COMMANDS = {short: forms.split()[0] for forms in _FORMS for short in forms.split()}


def in_order(kind: str, value: str, before: Collection[str]) -> Setting:
    """Return the option for a command that comes after the first module, or after a folder of modules."""
    late = "module" in before or (kind == "module_purge" and "module_use" in before)
    commands = {"module_purge": "purge", "module_use": f"use {value}"} if late else {}
    return ("module", commands[kind]) if kind in commands else (kind, value)


def of_module(name: str, words: Sequence[str]) -> list[Setting] | None:
    """Return the options that a command of environment modules is."""
    options = ("-s", "-q", "--silent", "--quiet", "--force", "-f", "--ignore-cache")
    words = [one for one in words if one not in options]
    verb = words[0] if words else ""
    if verb == "purge" and words[1:] in ([], ["all"]):
        return [("module_purge", "")]
    if verb == "use" and len(words) == 2:
        return [("module_use", words[1])]
    if command := _COMMANDS.get(verb):
        return [("module", " ".join([command, *words[1:]]))]
    if verb in ("load", "add") and words[1:]:
        return [("module", one) for one in words[1:]]
    if name == "ml" and verb and verb not in _VERBS.split() and "+" not in (one[0] for one in words):
        return [("module", f"unload {one[1:]}" if one[0] == "-" else one) for one in words]
    return None
