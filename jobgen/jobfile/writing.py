"""Writer of job files: the values of options as TOML, each in its table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from jobgen.jobfile.tables import OWN_OPTIONS, TABLES, table_of
from jobgen.options import OPTIONS

_KEYS = {
    table: [(option.name, option.key) for option in OPTIONS if table_of(option) == table] for table in TABLES
}
_KEYS["program"] = [*_KEYS.get("program", ()), ("command", "command")]
_OWN = [(option.name, option.key) for option in OWN_OPTIONS]


def file_text(
    command_name: str,
    values: Mapping[str, object],
    site: str = "",
    own: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
    components: Sequence[Mapping[str, object]] = (),
    train: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """Return the text of a job file. ``values`` are those of options by their keys; ``command`` is the
    program, ``own`` are the tables of single schedulers, ``components`` those of components, and ``train``
    are the options of the training module."""
    lines = [f"scheduler = {toml(command_name)}", *([f"site = {toml(site)}"] if site else [])]
    for table, keys in _KEYS.items():
        lines += _table(table, keys, values)
    lines += _table("train", [(key, key) for key in train], train)
    for table, options in own.items():
        lines += _table(table, _OWN, options)
    for one in components:
        lines += ["", "[[component]]", *(f"{key} = {toml(value)}" for key, value in one.items())]
    return "\n".join(lines) + "\n"


def _table(name: str, keys: Sequence[tuple[str, str]], values: Mapping[str, object]) -> list[str]:
    """Return the lines of a table with these names and keys; none without a value."""
    held = [f"{one} = {toml(values[key])}" for one, key in keys if values.get(key) not in (None, [])]
    return ["", f"[{name}]", *held] if held else []


def toml(value: object) -> str:
    """Return a value as TOML, a text of several lines as such."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(one)}" for name, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    if "\n" in text and not re.search(r"'''|'\Z|[^\n\t -~\u00a0-\uffff]", text):
        return f"'''\n{text}'''"
    # TOML has the escapes of JSON, and escapes the delete character, too.
    return re.sub("\x7f", r"\\u007f", json.dumps(text, ensure_ascii=False))
