"""The options of the training module, checked before a job is submitted.

training_options.json has them; tools/write_training_options.py writes it from the parser of the module.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from jobgen.errors import JobgenError, nearest, shown
from jobgen.launch.expansion import parts
from jobgen.launch.program import Program
from jobgen.spec import Specification

_UNKNOWN = "\ue000"
Schema = Mapping[str, Any]


class OptionError(Exception):
    """An option that the training module does not have, or does not accept: the words, and the reason."""

    def __init__(self, words: str, reason: str) -> None:
        super().__init__(words, reason)
        self.words, self.reason = words, reason


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        name, _, reason = message.removeprefix("argument ").partition(": ")
        reason = re.sub("expected (at least )?one argument", "needs a value", reason)
        raise OptionError(name.split("/")[0], reason)


def takes_options(program: Program) -> bool:
    """Return whether a program is the training module itself: its commands, such as evaluate, have other
    options."""
    return program.is_ours and all(word.startswith("-") for word in program.words[3:4])


def check_program(spec: Specification, program: Program) -> None:
    """Refuse wrong options of the training module."""
    if not takes_options(program):
        return
    words = program.words[program.head or 0 :]
    try:
        check([unknown(word) for word in words] if spec.expand else words)
    except OptionError as error:
        raise JobgenError(f"{error.words} ({spec.program_origin}): {error.reason}") from None


def check(words: Sequence[str]) -> None:
    """Refuse words that the training module does not accept as options.

    Raises:
        OptionError: they are wrong.
    """
    _, rest = _parser().parse_known_args(words)
    for word in rest[:1]:
        name = word.partition("=")[0]
        known = [one for row in rows() for one in row["names"]]
        reason = "is no option of the training module" if word.startswith("-") else "belongs to no option"
        raise OptionError(shown(name), reason + nearest(name, known, cutoff=0.7))


def check_value(flag: str, value: object) -> None:
    """Refuse an option of the table [train] that the training module does not have, or not with this value.

    Raises:
        OptionError: it is wrong.
    """
    row = next((row for row in rows() if flag in row["names"]), None)
    if row and row.get("type") == "boolean" and not isinstance(value, bool):
        raise OptionError(flag, "must be true or false")
    words = words_of(flag, value) if row else [flag]
    check([unknown(word) for word in words])  # the plan knows whether there is --expand


def words_of(flag: str, value: object) -> list[str]:
    """Return an option with a value of a job file as words of the command line; none for false."""
    if isinstance(value, bool):
        return [flag] if value else []
    text = text_of(value)
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]


def text_of(value: object) -> str:
    """Return a value of a job file as a text; that of a list is joined by commas."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def unknown(word: str) -> str:
    """Return a word with a mark in the place of each value that is known only when the job runs."""
    return _UNKNOWN.join(text for text, _ in parts([word])[0])


def properties() -> dict[str, Schema]:
    """Return the JSON Schema of each option as a key of the table [train]."""
    return {
        key_of(row): {"description": row["help"], **_types(row)}
        for row in rows()
        if row["names"][0].startswith("--")
    }


def key_of(row: Schema) -> str:
    """Return the key of an option in the table [train]."""
    name: str = row["names"][0]
    return name.removeprefix("--").replace("-", "_")


def flag_of(key: str) -> str:
    """Return the option of a key."""
    return "--" + key.replace("_", "-")


def dashed_properties() -> dict[str, Schema]:
    """Return the same for the keys that are written with dashes, by their patterns."""
    return {
        f"^{key.replace('_', '-')}$": {"$ref": f"#/$defs/JobFile/properties/train/properties/{key}"}
        for key in properties()
        if "_" in key
    }


def _types(row: Schema) -> Schema:
    """Return the types of an option in a file. Any may be false, or a text with variables."""
    if row.get("type") == "boolean":
        return {"type": "boolean"}
    if "enum" in row:
        words = [*row["enum"], *(int(word) for word in row["enum"] if word.isdecimal())]
        other = r"[$:]" if "pattern" in row else r"\$"  # PKG.MOD:NAME and hf:DIR
        return {"anyOf": [{"enum": words}, {"type": "boolean"}, {"type": "string", "pattern": other}]}
    if "type" in row:
        limits = {name: value for name, value in row.items() if "imum" in name.lower() and value < 10**9}
        return {"type": [row["type"], "string", "boolean"], **limits}
    return {"type": ["string", "number", "boolean", "array"]}


@cache
def rows() -> list[dict[str, Any]]:
    """Return the rows of training_options.json, in the order of the help."""
    text = Path(__file__).parents[1].joinpath("training_options.json").read_text(encoding="utf-8")
    made: list[dict[str, Any]] = json.loads(text)
    return made


@cache
def _parser() -> _Parser:
    made = _Parser(allow_abbrev=False, add_help=False)
    for row in rows():
        if row.get("type") == "boolean":
            made.add_argument(*row["names"], action="store_true")
        else:
            nargs = "?" if row.get("optional") else "+" if row.get("several") else None
            made.add_argument(*row["names"], type=_converter(row["names"][0], row), nargs=nargs)
    return made


def _converter(name: str, schema: Schema) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if _UNKNOWN not in text and not accepts(schema, text):
            hint = nearest(text, schema.get("enum", ()))
            raise OptionError(f"{name} {shown(text)}", f"must be {schema['description']}{hint}")
        return text

    return convert


def accepts(schema: Schema, text: str) -> bool:
    """Return whether a text is a value of a schema."""
    if "type" in schema:
        return _number(schema, text)
    if not schema.keys() & {"enum", "pattern"}:
        return True
    return text in schema.get("enum", ()) or bool(re.fullmatch(schema.get("pattern", "(?!)"), text))


def _number(schema: Schema, text: str) -> bool:
    if schema["type"] == "integer" and not text.isdecimal():
        return False
    try:
        value = float(text)
    except ValueError:
        return False
    # Comparisons with nan are False.
    above, below = schema.get("exclusiveMinimum", float("-inf")), schema.get("exclusiveMaximum", float("inf"))
    within: bool = schema.get("minimum", above) <= value <= schema.get("maximum", value)
    return above < value < below and within
