"""Warnings on secrets that a script would contain, or that a config file of its program contains."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jobgen.errors import setting, shown
from jobgen.options import OPTIONS
from jobgen.secrets import MASK, is_secret, masked, masked_data, masked_word
from jobgen.values.text_files import read_text

if TYPE_CHECKING:
    from jobgen.spec import Specification

_CODE = ("setup", "before", "after_block")
_CONFIG = r"\.(json|ya?ml|toml|ini|cfg|conf|env|properties)$"
_LINE = re.compile(
    r"""^[ \t{,-]*["']?([\w.-]+)["']?[ \t]*[:=][ \t]*(["']?)([^\s"'#,{\[][^"'#\n]*)\2""", re.MULTILINE
)


def secret_warnings(spec: Specification) -> Iterator[str]:
    """Yield a sentence for each secret: its place, its value masked, and how to keep it out."""
    for name, value in dict(spec.variables).items():
        if is_secret(name, value):
            yield _in_script(masked_word(f"{name}={value}"), spec.origin("env"), name)
    for words, origin in _programs(spec):
        for text, name in _of_words(words):
            yield f"{_in_script(text, origin, name)}; ps shows arguments to all users of a node"
        for path in _config_files(words, spec.workdir or ""):
            yield from _in_file(path, origin)
    for option in OPTIONS:
        if option.key in ("env", "env_file"):
            continue
        if line := _secret_line(getattr(spec, option.key), option.key in _CODE):
            origin = spec.origin(option.key)
            yield _in_script(f"{setting(option.key, origin)} {line}", origin, "NAME")
    for key, values in spec.sweep.values if spec.sweep else ():
        if any(is_secret(key, str(value)) for value in values):
            yield _in_script(f"{key} = {MASK}", spec.origin("sweep"), _variable(key))


def _in_script(text: str, origin: str, name: str) -> str:
    what = f"the script contains {_short(text)} ({origin}), which looks like a secret"
    return f"{what}: --env {name} or --env-file FILE keeps it out"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _programs(spec: Specification) -> Iterator[tuple[Sequence[str], str]]:
    yield spec.program, "after --" if spec.program_origin == "command line" else spec.program_origin
    for number, step in enumerate(spec.steps[1:], 2):
        yield step.program, f"[[step]] {number}"


def _of_words(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with a secret, masked, after the option that names it, and a name for a variable."""
    clean = masked_data(list(words))
    for (before, _), (word, text) in pairwise([("", ""), *zip(words, clean, strict=True)]):
        if text != word:
            option = before if text == MASK and before.startswith("-") else word.partition("=")[0]
            yield (f"{before} {MASK}" if option is before else text), _variable(option)


def _variable(option: str) -> str:
    """Return the name of a variable for the value of an option: API_KEY for --api-key."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", option.lstrip("-")).upper()
    return name if is_secret(name, "value") and len(name) < 40 else "NAME"


def _secret_line(value: Any, is_code: bool) -> str:
    """Return the first line with a secret in the value of an option, masked; empty without one."""
    hide = masked if is_code else masked_word
    lines = value.splitlines() if isinstance(value, str) else value if isinstance(value, tuple) else ()
    return next((text for line in lines if isinstance(line, str) and (text := hide(line)) != line), "")


def _config_files(words: Sequence[str], folder: str) -> Iterator[str]:
    for word in words:
        path = word.partition("=")[2] if word.startswith("-") else word
        if re.search(_CONFIG, path) and os.path.isfile(os.path.join(folder, path)):
            yield os.path.join(folder, path)


def _in_file(path: str, origin: str) -> Iterator[str]:
    """Yield a sentence on the first secret in a config file, if it can be read."""
    try:
        text = read_text(path, "replace")
    except (OSError, ValueError):
        return
    name = _key_of_json(text) if path.endswith(".json") else _key_of_lines(text)
    if name:
        way = f"--env {_variable(name)} or --env-file FILE gives it to the program without a file"
        yield f"{shown(path)} ({origin}) contains {shown(name)}: {MASK}, which looks like a secret: {way}"


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
