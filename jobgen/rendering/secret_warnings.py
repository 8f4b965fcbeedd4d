"""Warnings on secrets that a script would contain, or that a config file of its program contains."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen.errors import setting, shown
from jobgen.options import CODE, OPTIONS, PROSE
from jobgen.secrets import MASK, is_secret, masked, masked_prose, masked_word, secret_words, variable_for
from jobgen.spec import COMMAND_LINE
from jobgen.values.text_files import read_text

if TYPE_CHECKING:
    from jobgen.spec import Specification

_CONFIG = r"\.(json|ya?ml|toml|ini|cfg|conf|env|properties)$"
_LINE = re.compile(
    r"""^[ \t{,-]*["']?([\w.-]+)["']?[ \t]*[:=][ \t]*(["']?)([^\s"'#,{\[][^"'#\n]*)\2""", re.MULTILINE
)


class Secret(NamedTuple):
    """A secret in a script or in a file: what is shown of it, where it comes from, and how to keep it out."""

    fault: str
    origin: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.remedy}"


def secret_warnings(spec: Specification) -> Iterator[str]:
    """Yield a sentence for each secret, and for each file of variables that others may read."""
    for path, _ in spec.env_file:
        with suppress(OSError):
            if os.stat(path).st_mode & 0o077:
                yield f"others may read {shown(path)} ({spec.origin('env_file')}): chmod 600 it"
    yield from map(str, secrets_of(spec))


def secrets_of(spec: Specification) -> Iterator[Secret]:
    """Yield each secret that a script would contain, or that a config file of its program contains."""
    for name, value in dict(spec.variables).items():
        if is_secret(name, value):
            yield _in_script(masked_word(f"{name}={value}"), spec.origin("env"), name)
    for words, origin in _programs(spec):
        for one in secret_words(words):
            found = _in_script(one.text, origin, one.variable)
            yield found._replace(remedy=f"{found.remedy}; {SHOWN_BY_PS}")
        for path in _config_files(words, spec.directory_on_this_machine()):
            yield from _in_file(path, origin)
    for option in OPTIONS:
        if option.key in ("env", "env_file"):
            continue
        if line := _secret_line(getattr(spec, option.key), option.key):
            origin = spec.origin(option.key)
            yield _in_script(f"{setting(option.key, origin)} {line}", origin, "NAME")
    for key, values in spec.sweep.values if spec.sweep else ():
        if any(is_secret(key, str(value)) for value in values):
            yield _in_script(f"{key} = {MASK}", spec.origin("sweep"), variable_for(key))


SHOWN_BY_PS = "ps shows arguments to all users of a node"


def _in_script(text: str, origin: str, name: str) -> Secret:
    fault = f"the script contains {_short(text)} ({origin}), which looks like a secret"
    return Secret(fault, origin, f"{_ways(name, origin)} keeps it out")


def _ways(name: str, origin: str) -> str:
    """Return the options that pass a variable without its value, as the place of a secret writes them."""
    if origin in (COMMAND_LINE, "after --"):
        return f"--env {name} or --env-file FILE"
    return f'env = ["{name}"] or env_file = ["FILE"]'


def _short(text: str) -> str:
    """Return the line of a masked text that has the secret, with 60 characters at most around it."""
    line = next((one for one in text.splitlines() if MASK in one), text).strip()
    start = max(line.find(MASK) - 40, 0)
    end = len(line) if len(line) - start <= 60 else start + 57
    return f"{'...' * bool(start)}{line[start:end]}{'...' * (end < len(line))}"


def _programs(spec: Specification) -> Iterator[tuple[Sequence[str], str]]:
    yield spec.program, "after --" if spec.program_origin == "command line" else spec.program_origin
    yield from ((step.program, f"[[step]] {number}") for number, step in enumerate(spec.steps[1:], 2))


def _secret_line(value: Any, key: str) -> str:
    """Return the first line with a secret in the value of an option, masked; empty without one."""
    hide = {**dict.fromkeys(CODE, masked), **dict.fromkeys(PROSE, masked_prose)}.get(key, masked_word)
    lines = value.splitlines() if isinstance(value, str) else value if isinstance(value, tuple) else ()
    return next((text for line in lines if isinstance(line, str) and (text := hide(line)) != line), "")


def _config_files(words: Sequence[str], folder: str) -> Iterator[str]:
    for word in words:
        path = word.partition("=")[2] if word.startswith("-") else word
        if re.search(_CONFIG, path) and os.path.isfile(os.path.join(folder, path)):
            yield os.path.join(folder, path)


def _in_file(path: str, origin: str) -> Iterator[Secret]:
    """Yield the first secret in a config file, if it can be read."""
    try:
        text = read_text(path, "replace")
    except (OSError, ValueError):
        return
    if name := _key_of_json(text) if path.endswith(".json") else _key_of_lines(text):
        fault = f"{shown(path)} ({origin}) contains {shown(name)}: {MASK}, which looks like a secret"
        ways = _ways(variable_for(name), origin)
        yield Secret(fault, origin, f"{ways} gives it to the program without a file")


def _key_of_json(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return _key_of_lines(text)
    pairs = [("", data)]
    while pairs:
        name, one = pairs.pop(0)
        if isinstance(one, dict):
            pairs += ((str(key), value) for key, value in one.items())
        elif isinstance(one, list):
            pairs += ((name, value) for value in one)
        elif isinstance(one, str) and is_secret(name, one):
            return name or "a value"
    return ""


def _key_of_lines(text: str) -> str:
    """Return the key of the first line NAME: VALUE or NAME = VALUE with a secret; empty without one."""
    return next((name for name, _, value in _LINE.findall(text) if is_secret(name, value.strip())), "")
