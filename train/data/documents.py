"""The documents in files of text: --task text --data FILE...

A kind of file is a row of KINDS; FORMS are the ways in which a file may be compressed. First bytes come
before suffixes. A file that is none of them is refused with its first bytes, so that nothing is trained on
by mistake.

A record, such as a line of JSON, holds a text, or messages, or a prompt and its completion; see `_of_record`.
"""

import csv
import functools
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BadInput, CommonMistake
from .chat import Template

CHUNK = 1 << 20  # characters of a text that are one part
SAMPLE = 1 << 16  # first bytes that decide what a file is
ROWS = 1 << 10  # of a table that are read at once
KEYS = TEXT_KEY, *CHATS = "text", "messages", "conversations"
OTHER_KEYS = ("prompt", "completion", "tools")
# What readers raise; those of pyarrow are among them.
DAMAGE = (OSError, EOFError, ValueError, OverflowError, RecursionError, csv.Error, zlib.error)
NO_JSON = (ValueError, RecursionError)
# Files of a folder that are about its data: those of the Hugging Face hub, and of Spark.
ABOUT = re.compile(r"(?i)(readme|licen[cs]e|notice|citation)(\.(md|txt|rst|cff))?|_SUCCESS")
Record = Mapping[str, Any]
Spans = tuple[tuple[int, int], ...]


class Part(NamedTuple):
    """A document, or a part of a long text.

    begins: it is the first part of its document; learn: characters to learn, None for all
    """

    text: str
    begins: bool = True
    learn: Spans | None = None


class Reading(NamedTuple):
    """How records become documents.

    key: of the text or the messages in a record, data.text for a nested one, None for the usual ones;
    answers: only completions and messages of the assistant are to be learned; template: of chats, None if
    there is none
    """

    key: str | None = None
    answers: bool = True
    template: Template | None = None


class Kind(NamedTuple):
    """A kind of file.

    magic: its first bytes; package: what reads it; read: yields texts or records of a stream, with their
    values under the keys of a Reading
    """

    name: str
    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...]
    package: str
    read: Callable[[Any, Reading], Iterator[Any]]


class Form(NamedTuple):
    """A form of compression. magic: first bytes; opened: returns a stream of the content"""

    suffix: str
    magic: tuple[bytes, ...]
    package: str
    opened: Callable[[Path], Any]


def _zstandard(file: Path) -> Any:
    return import_module("pyarrow").input_stream(str(file), compression="zstd")


FORMS = (
    Form(".gz", (b"\x1f\x8b",), "", functools.partial(gzip.open, mode="rb")),
    Form(".zst", (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"), "pyarrow", _zstandard),  # zstd, and pzstd
)


def _no_utf8(text: str) -> tuple[int, str] | None:
    """Return the first byte that is no UTF-8 of a text that was decoded with surrogateescape, or None.

    It is given by its position, in bytes, and its hexadecimal digits.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return len(text[: error.start].encode("utf-8")), f"{ord(text[error.start]) & 0xFF:02x}"
    return None


def _text_lines(stream: Any, newline: str | None = None) -> Iterator[str]:
    """Yield the lines of a text. Raise BadInput, with the line, for a byte that is no UTF-8."""
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline=newline) as text:
        for number, line in enumerate(text, 1):
            if wrong := _no_utf8(line):
                raise BadInput(f"line {number} has the byte {wrong[1]}, which is no UTF-8")
            yield line


def _lines(stream: Any, reading: Reading) -> Iterator[Any]:
    for number, line in enumerate(_text_lines(stream), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except NO_JSON as error:
                raise BadInput(f"line {number} is not JSON: {error}") from None


def _json(stream: Any, reading: Reading) -> Iterator[Any]:
    """Yield the elements of a list, or the lines: files of JSON Lines may have this suffix, too."""
    content = stream.read()
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except NO_JSON:
        yield from _lines(io.BytesIO(content), reading)
        return
    yield from value if isinstance(value, list) else [value]


def _table(delimiter: str, stream: Any, reading: Reading) -> Iterator[Any]:
    csv.field_size_limit(sys.maxsize)
    yield from csv.DictReader(_text_lines(stream, newline=""), restkey="", delimiter=delimiter)


def _parquet(stream: Any, reading: Reading) -> Iterator[Any]:
    file = import_module("pyarrow.parquet").ParquetFile(stream)
    names = file.schema_arrow.names
    for rows in file.iter_batches(ROWS, columns=_used(names, reading)):
        yield from _records(rows, names)


def _arrow(stream: Any, reading: Reading) -> Iterator[Any]:
    """Yield the rows of a data set of Hugging Face, which is a stream of Arrow, or of a file of Arrow."""
    ipc, is_file = import_module("pyarrow.ipc"), stream.read(6) == b"ARROW1"
    stream.seek(0)
    reader = ipc.open_file(stream) if is_file else ipc.open_stream(stream)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    names = reader.schema.names
    for batch in batches:
        yield from _records(batch.select(_used(names, reading)), names)


def _used(names: Sequence[str], reading: Reading) -> list[str]:
    column = (reading.key or "").partition(".")[0]  # of a nested key
    return [name for name in names if name in (*KEYS, *OTHER_KEYS, reading.key, column)]


def _records(rows: Any, names: Sequence[str]) -> Iterator[Record]:
    """Yield the rows of some columns of a table. The others, which are not converted, are None."""
    for row in rows.to_pylist() if rows.num_columns else [{}] * rows.num_rows:
        yield {**dict.fromkeys(names), **row}


def _text(stream: Any, reading: Reading) -> Iterator[Any]:
    with io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="") as text:
        before = 0  # bytes
        while part := "".join(text.readlines(CHUNK)):
            if wrong := _no_utf8(part):
                raise BadInput(f"byte {before + wrong[0]} is {wrong[1]}, which is no UTF-8")
            yield Part(part, not before)
            before += len(part.encode("utf-8"))


TEXT = Kind("text in UTF-8", (".txt",), (), "", _text)
JSON_LINES = Kind("JSON Lines", (".jsonl", ".ndjson"), (), "", _lines)
KINDS = (
    JSON_LINES,
    Kind("JSON", (".json",), (), "", _json),
    Kind("CSV", (".csv",), (), "", functools.partial(_table, ",")),
    Kind("TSV", (".tsv",), (), "", functools.partial(_table, "\t")),
    Kind("Parquet", (".parquet",), (b"PAR1",), "pyarrow", _parquet),
    Kind("Arrow", (".arrow",), (b"\xff\xff\xff\xff", b"ARROW1"), "pyarrow", _arrow),
    TEXT,
)
PDF = b"%PDF"  # may be UTF-8
# First bytes of other well-known files, for messages.
OTHERS = {
    b"PK\x03\x04": "a zip archive",
    PDF: "PDF",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x80": "a pickle",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def files(places: Sequence[Path]) -> list[Path]:
    """Return the files to read: those of each directory and below, by name, without hidden ones and without
    READMEs and licences, if there are others.

    Of a data set that Hugging Face saved, they are those with the data. Raise CommonMistake if there is none,
    or if one is missing or empty.
    """
    try:
        result = [file for place in places for file in _below(place)]
        empty = [file for file in result if not file.stat().st_size]
    except OSError as error:
        raise CommonMistake(f"--data {error.filename} cannot be read: {error.strerror}") from None
    if empty:
        raise CommonMistake(f"--data {empty[0]} is empty")
    if not result:
        raise CommonMistake(f"--data {', '.join(map(str, places))} has no files")
    return result


def _below(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    if (place / "dataset_dict.json").is_file():
        names = ", ".join(sorted(each.name for each in place.iterdir() if each.is_dir()))
        raise CommonMistake(
            f"--data {place} is a data set with the parts {names}: name one, such as {place / 'train'}"
        )
    if (place / "state.json").is_file() and (place / "dataset_info.json").is_file():
        try:
            state = json.loads((place / "state.json").read_text(encoding="utf-8"))
            parts = [place / each["filename"] for each in state["_data_files"]]
            chosen = bool(state.get("_indices_data_files"))
        except (*NO_JSON, LookupError, TypeError) as error:
            raise BadInput(f"--data {place / 'state.json'} is not of a data set: {error!r}") from None
        if chosen:  # in old versions of datasets; others write these rows only
            raise CommonMistake(
                f"--data {place} is a selection of the rows of its files: flatten_indices() and then "
                "save_to_disk of datasets write these rows"
            )
        yield from parts
        return
    shown = [
        each
        for each in sorted(place.iterdir())
        if not each.name.startswith(".") and not (each.is_symlink() and each.is_dir())
    ]
    for each in [each for each in shown if not ABOUT.fullmatch(each.name)] or shown:
        yield from _below(each)


def kind(file: Path) -> tuple[Kind, Form | None]:
    """Return what a file is. Raise BadInput, with its first bytes, if it is nothing that can be read."""
    try:
        with open(file, "rb") as stream:
            first = stream.read(SAMPLE)
        form = next((each for each in FORMS if first.startswith(each.magic)), None)
        if form:
            _require(file, form.package)
            with form.opened(file) as stream:
                first = stream.read(SAMPLE)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise BadInput(f"--data {file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for each in KINDS:
        if each.magic and first.startswith(each.magic):
            return each, form
    by_suffix = _named(file, packed=form is not None)
    wrong = not form and file.suffix.lower() in [each.suffix for each in FORMS]
    what = by_suffix or TEXT
    if what.magic or wrong or not _is_text(first) or first.startswith(PDF):
        names = what.name if what.magic else f"{', '.join(each.name for each in KINDS)} (.gz, .zst)"
        raise BadInput(f"--data {file} is not {names}: {_seen(first)}")
    return by_suffix or (JSON_LINES if _has_records(first) else TEXT), form


def _named(file: Path, packed: bool) -> Kind | None:
    """Return the kind that the suffix names, or that before it if the file is packed; None if none does."""
    suffixes = file.suffixes[::-1][: 2 if packed else 1]
    return next((each for suffix in suffixes for each in KINDS if suffix.lower() in each.suffixes), None)


def _has_records(first: bytes) -> bool:
    """Return whether the first line is an object of JSON, as in files of many programs without a suffix."""
    try:
        record = json.loads(first.decode("utf-8-sig", errors="replace").partition("\n")[0])
    except NO_JSON:
        return False
    return isinstance(record, dict) and bool(record)


def _is_text(first: bytes) -> bool:
    return b"\0" not in first and _undecodable(first) is None


def _undecodable(first: bytes) -> int | None:
    """Return the position of the first byte that is no UTF-8; the last character may be incomplete."""
    try:
        first.decode("utf-8")
    except UnicodeDecodeError as error:
        return (
            error.start if error.start < len(first) - 3 or error.reason != "unexpected end of data" else None
        )
    return None


def _seen(first: bytes) -> str:
    name = next((f", as of {name}" for magic, name in OTHERS.items() if first.startswith(magic)), "")
    at = _undecodable(first)
    later = f"; byte {at} is {first[at]:02x}, which is no UTF-8" if at and at >= 8 else ""
    return f"its first bytes are {first[:8].hex(' ')} ({first[:8]!r}{name}){later}"


def _require(file: Path, package: str) -> None:
    """Raise CommonMistake if the package that reads the file is missing."""
    if package and find_spec(package) is None:
        raise CommonMistake(f"--data {file} needs the Python package {package}: pip install {package}")


def parts(file: Path, reading: Reading) -> Iterator[Part]:
    """Yield the documents of a file, long texts in parts. Raise BadInput if it cannot be read."""
    what, form = kind(file)
    try:
        _require(file, what.package)
        with form.opened(file) if form else open(file, "rb") as stream:
            for number, row in enumerate(what.read(stream, reading), 1):
                if part := row if isinstance(row, Part) else _of_record(row, reading, number):
                    yield part
    except CommonMistake:
        raise
    except BadInput as error:
        raise BadInput(f"--data {file}: {error}") from None
    except DAMAGE as error:
        raise BadInput(f"--data {file} is damaged as {what.name}: {error}") from None


def _of_record(record: Any, reading: Reading, number: int) -> Part | None:
    """Return the document of a record: the text, the messages, or the prompt and its completion.

    An empty one is None. Raise BadInput if it has none of them.
    """
    if isinstance(record, str) and reading.key is None:
        return Part(record) if record else None
    if not isinstance(record, Mapping):
        raise BadInput(f"record {number} is {record!r:.60}, not an object with a text")
    key = reading.key or next((each for each in KEYS if record.get(each) is not None), None)
    if key is None and record.get("prompt") is not None and record.get("completion") is not None:
        return _of_completion(record, reading, number)
    value = _value(record, key) if key else None
    if isinstance(value, str) and (key == TEXT_KEY or reading.key):
        return Part(value) if value else None
    if isinstance(value, list):
        return _of_chat(value, record, reading, number)
    key = key or next((each for each in KEYS if each in record), None)
    if value is not None or key in record:
        text_too = f"; --text-key {key} takes it as a text" if isinstance(value, str) else ""
        raise BadInput(f"record {number} has {value!r:.40} as {key}, not {_form(key)}{text_too}")
    keys = f"it has {', '.join(_keys(record)) or 'no keys'}"
    if reading.key:
        raise BadInput(f"record {number} has no text or messages in --text-key {reading.key}; {keys}")
    raise BadInput(
        f"record {number} has no text, messages, or prompt and completion; {keys}: name one by --text-key"
    )


def _value(record: Record, key: str) -> Any:
    """Return the value of a key, or of a nested one, such as data.text; None if there is none."""
    if key in record:
        return record[key]
    value: Any = record
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _keys(record: Record) -> Iterator[str]:
    for key, value in record.items():
        yield from (f"{key}.{each}" for each in value) if isinstance(value, Mapping) else [key]


def _form(key: str | None) -> str:
    return "a list of messages" if key in CHATS else "a text or messages"


def _of_completion(record: Record, reading: Reading, number: int) -> Part | None:
    """Return the document of a prompt and its completion, of which only the latter is to be learned."""
    prompt, completion = record["prompt"], record["completion"]
    if isinstance(prompt, str) and isinstance(completion, str):
        spans = ((len(prompt), len(prompt + completion)),) if reading.answers else None
        return Part(prompt + completion, learn=spans) if prompt + completion else None
    if not (isinstance(prompt, list) and isinstance(completion, list)):
        raise BadInput(
            f"record {number} has the prompt {prompt!r:.40} and the completion {completion!r:.40}: both "
            "must be texts, or both lists of messages"
        )
    before = [{**each, "weight": 0} if isinstance(each, Mapping) else each for each in prompt]
    return _of_chat([*before, *completion], record, reading, number)


def _of_chat(messages: list[Any], record: Record, reading: Reading, number: int) -> Part | None:
    if reading.template is None:
        raise BadInput(
            f"record {number} has messages, which need a chat template: --tokenizer DIR, the directory "
            "of a model of Hugging Face, or --chat-template FILE"
        )
    try:
        part = Part(*reading.template.text(messages, record.get("tools"), reading.answers))
    except BadInput as error:
        raise BadInput(f"record {number}: {error}") from None
    return part if part.text else None
