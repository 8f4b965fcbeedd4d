"""The command line of a launcher as words: which launcher it is, its options, and its program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.launch.launchers import LAUNCHERS, CommandLine
from jobgen.launch.wrappers import EACH_INPUT, REMOTE, WRAPPERS

_MODULES = {module: kind for kind, row in LAUNCHERS.items() for module in row.line.modules}
_KINDS = {name: kind for kind, row in LAUNCHERS.items() for name in row.names}
_PYTHON_LAUNCHERS = {name for name, kind in _KINDS.items() if LAUNCHERS[kind].line.module_options}
# Words that end the options of a launcher.
SHELLS = ("bash", "sh", "zsh", "ksh", "dash")
_PROGRAMS = ("bash", "sh", "singularity", "apptainer", "shifter", "numactl", "ssh")
# Options with the name of another program, of srun and of MPICH.
_OTHER_PROGRAMS = (
    *("--prolog", "--epilog", "--task-prolog", "--task-epilog"),
    *("-launcher", "--launcher", "-bootstrap", "-launcher-exec", "-bootstrap-exec"),
)
# Options with two values, the first of which is a name; NAME=VALUE is both.
_PAIRS = ("--mca", "-mca", "--gmca", "-gmca", "--prtemca", "--pmca", "-genv", "-env")


class LauncherCall(NamedTuple):
    """The call of a launcher: its row, its options by name with dashes, and the words of its program."""

    kind: str
    options: dict[str, str | None]
    program: tuple[str, ...]


def read_call(words: Sequence[str]) -> LauncherCall | None:
    """Return the call of the launcher that a command begins with; None if it begins with none."""
    kind, start = launcher_at(words, 0)
    if kind is None:
        return None
    end = program_at(words, start, kind)
    options = words[start:end]
    return LauncherCall(
        kind,
        {name: value for name, (value, _) in read_options(options, options, LAUNCHERS[kind].line).items()},
        tuple(words[end:]),
    )


def launcher_at(texts: Sequence[str | None], at: int) -> tuple[str | None, int]:
    """Return the launcher at this word, None if there is none, and the index where its options begin."""
    name = os.path.basename(texts[at] or "")
    if at and texts[at - 1] == "-m" and name in _MODULES:  # uv run -m MODULE
        return _MODULES[name], at + 1
    if kind := _KINDS.get(name):
        word = LAUNCHERS[kind].line.subcommand
        return (None, at) if word and word not in texts[at + 1 : at + 2] else (kind, at + 1 + bool(word))
    if (not name or name.startswith("$")) and texts[at + 1 : at + 2] == ["-m"]:  # $PYTHON -m MODULE
        module = _MODULES.get((*texts, None, None)[at + 2] or "")
        return module, at + 3 if module else at
    if is_python(name):
        for place in range(at + 1, min(at + 5, len(texts) - 1)):
            if texts[place] == "-m" and (module := _MODULES.get(texts[place + 1] or "")):
                return module, place + 2
            file = os.path.basename(texts[place] or "")  # python $(which torchrun)
            if file in _PYTHON_LAUNCHERS and not LAUNCHERS[_KINDS[file]].line.subcommand:
                return _KINDS[file], place + 1
    return None, at


def program_at(texts: Sequence[str | None], start: int, kind: str) -> int:
    """Return the index where the program begins: at a known name, or at a word that is no option's value."""
    values = 0  # the number that the option before may take
    for at in range(start, len(texts)):
        text = texts[at] or ""
        name = os.path.basename(text)
        pair = at > start + 1 and texts[at - 2] in _PAIRS and "=" not in (texts[at - 1] or "")
        if pair or (at > start and texts[at - 1] in _OTHER_PROGRAMS):
            values = 0
            continue
        if text.endswith((".py", ".sh")) and not text.startswith("-"):
            return at
        starts = name in _PROGRAMS or is_python(name) or name in _PYTHON_LAUNCHERS
        if starts or (name in _KINDS and at > start):
            return at
        if text in LAUNCHERS[kind].line.module_options:
            return at
        if text == "--":
            return at + 1
        if text.startswith("-"):
            values = values_of(text, LAUNCHERS[kind].line)
        elif values == 0 and text:
            return at
        else:
            values = 0 if values == 2 and "=" in text else max(values - 1, 0)  # -env NAME=VALUE
    return len(texts)


def values_of(option: str, line: CommandLine) -> int:
    """Return how many of the next words may be values of an option."""
    if option in _PAIRS:
        return 2
    bare = (*line.flags, *line.bare)
    letters = not option.startswith("--") and all(f"-{letter}" in bare for letter in option[1:])
    alone = "=" in option or option[2:].isdigit() or option_name(option) in bare or letters
    return int(not alone)


def begins_launch(name: str) -> bool:
    """Return whether a command is a launcher, or one that may start launchers."""
    known = (_KINDS, WRAPPERS, REMOTE, EACH_INPUT, SHELLS)
    return any(name in names for names in known) or is_python(name)


def option_name(option: str) -> str:
    """Return the name of an option, with dashes."""
    name = option.partition("=")[0]
    return name.replace("_", "-") if name.startswith("--") else name


def read_options(
    texts: Sequence[str | None], shapes: Sequence[str], line: CommandLine
) -> dict[str, tuple[str | None, int]]:
    """Return the options ``--a=1 --b 2 -n 4 -n4`` by name, with dashes: the value and the index of its word.

    A text is None if it is unknown, and so is its value; ``shapes`` are the words as they are written.
    """
    options: dict[str, tuple[str | None, int]] = {}
    for at, (text, shape) in enumerate(zip(texts, shapes, strict=True)):
        if not shape.startswith("-"):
            continue
        name, equals, value = shape.partition("=")
        key, fixed, own = line.spellings.get(option_name(name), option_name(name)).partition("=")
        if fixed:
            options[key] = own, at
        elif equals:
            options[key] = (value if text is not None else None), at
        elif not name.startswith("--") and len(name) > 2 and name[2:].isdigit():
            options[name[:2]] = name[2:], at
        else:
            follows = at + 1 < len(texts) and not (texts[at + 1] or "").startswith("-")
            options[key] = (texts[at + 1], at + 1) if follows else (None, at)
    for names in (line.ranks, line.nodes):  # of two spellings of an option the last one holds
        given = sorted((options[name][1], name) for name in names if name in options)
        for _, name in given[:-1]:
            del options[name]
    return options


def is_python(name: str) -> bool:
    """Return whether a command is Python: python, python3 or python3.11."""
    return name == "python" or (name[:6] == "python" and name[6:].replace(".", "0").isdecimal())
