"""Text as packed sequences of tokens: --task text --data FILE...

The tokens of all files follow each other, with a separator between two files. Sequence i holds the tokens
from i * context on, and its targets are the tokens one place later, so every token but the first is a target
once. What is left after the last whole sequence, fewer than context + 1 tokens, is not used. The last
sequences are held out for the evaluation.

Without --tokenizer, tokens are the bytes of the files, which are mapped into memory and never read whole; the
separator is the byte 0. With it, the files are encoded once; --cache keeps the tokens for later runs and for
the other ranks of the host, and maps them into memory.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from ..config import Settings
from ..config.converters import is_hf
from ..config.language import HELD_OUT, size
from ..errors import BadInput, CommonMistake
from .sources import Batch, Source
from .task import Task

SEPARATORS = ("<|endoftext|>", "</s>", "<eos>", "[SEP]")  # of well-known tokenizers, by preference
MULTIPLE = 64  # to which a vocabulary is rounded up: matrices of other widths are slower on GPUs
CHUNK = 1 << 20  # characters that are encoded at a time


class Alphabet(Protocol):
    """The tokens of a text. count: number of token ids; size: the same, rounded up to a MULTIPLE"""

    count: int
    size: int

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...


class OfBytes:
    """Every byte of UTF-8 is a token."""

    count = size = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8", errors="replace"))

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(tokens).decode("utf-8", errors="replace")


class OfFile:
    """The tokens of a JSON file of the package tokenizers.

    separator: the token between two files; none if the file has none of SEPARATORS; kind: of stored tokens
    """

    def __init__(self, file: Path) -> None:
        try:
            tokenizers = import_module("tokenizers")
        except ModuleNotFoundError:
            raise CommonMistake(
                f"--tokenizer {file} needs the Python package tokenizers: pip install tokenizers; without "
                "--tokenizer, tokens are bytes"
            ) from None
        try:
            self.content = file.read_bytes()
            self._tokenizer: Any = tokenizers.Tokenizer.from_buffer(self.content)
        except Exception as error:  # tokenizers raises plain Exceptions
            raise BadInput(f"--tokenizer {file} cannot be read: {error}") from None
        self.count = self._tokenizer.get_vocab_size()
        self.size = -(-self.count // MULTIPLE) * MULTIPLE
        ids = (self._tokenizer.token_to_id(name) for name in SEPARATORS)
        self.separator: list[int] = [token for token in ids if token is not None][:1]
        self.kind = np.uint16 if self.size <= 1 << 16 else np.uint32

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=False)
        return text


def alphabet(tokenizer: Path | None) -> Alphabet:
    """Return the tokens of --tokenizer. Raise BadInput if its file or its package is missing."""
    return OfBytes() if tokenizer is None else OfFile(tokenizer)


class Sequences(Source):
    """The sequences `first` to `last` of the tokens that the arrays `pieces` hold one after the other."""

    def __init__(self, pieces: Sequence[np.ndarray], context: int, first: int, last: int) -> None:
        self._pieces, self._context, self._first, self._count = pieces, context, first, last - first
        self._ends = np.cumsum([len(piece) for piece in pieces])

    def __len__(self) -> int:
        return self._count

    def batch(self, indices: np.ndarray) -> Batch:
        """Return the tokens of these sequences and their targets: int64 [len(indices), context] each."""
        rows = np.stack([self._tokens((self._first + int(i)) * self._context) for i in indices])
        tokens = torch.from_numpy(rows)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def _tokens(self, start: int) -> np.ndarray:
        """Return context + 1 tokens from `start` on, from as many pieces as they are in."""
        tokens = np.empty(self._context + 1, np.int64)
        count, piece = 0, int(np.searchsorted(self._ends, start, side="right"))
        while count < len(tokens):
            here = self._pieces[piece]
            at = start + count - (int(self._ends[piece]) - len(here))
            some = here[at : at + len(tokens) - count]
            tokens[count : count + len(some)] = some
            count, piece = count + len(some), piece + 1
        return tokens


def task(settings: Settings) -> Task:
    """Return the prediction of the next token. Raise BadInput if the files cannot be used."""
    assert settings.data
    tokens = alphabet(settings.tokenizer)
    pieces = tokens_of(settings.data, tokens, settings.cache)
    train, test = split(pieces, size(settings).context, settings.held_out or HELD_OUT)
    return Task(train, test, outputs=vocabulary(settings, tokens), metrics=("perplexity",))


def vocabulary(settings: Settings, tokens: Alphabet) -> int:
    """Return the number of tokens for which a model is made. That of a directory has its own, not rounded."""
    return tokens.count if is_hf(settings.model) else tokens.size


def split(pieces: Sequence[np.ndarray], context: int, held_out: float) -> tuple[Sequences, Sequences]:
    """Return the sequences to train on, and the last ones, a fraction `held_out`, for the evaluation.

    Each part has one sequence at least. Raise CommonMistake if the tokens do not make two sequences.
    """
    tokens = sum(map(len, pieces))
    count = (tokens - 1) // context
    if count < 2:
        raise CommonMistake(
            f"--task text: the data has {tokens} tokens, and --context {context} needs at least "
            f"{2 * context + 1}, for one sequence to train on and one to evaluate"
        )
    test_count = min(max(1, round(count * held_out)), count - 1)
    bounds = (0, count - test_count, count)
    return Sequences(pieces, context, *bounds[:2]), Sequences(pieces, context, *bounds[1:])


def files(places: Sequence[Path]) -> list[Path]:
    """Return the files to read: those of each directory and below, by name, without hidden ones.

    Raise CommonMistake if there is none, or if one is missing or empty.
    """
    result = [file for place in places for file in _below(place)]
    for file in result:
        try:
            if not file.stat().st_size:
                raise CommonMistake(f"--data {file} is empty")
        except OSError as error:
            raise CommonMistake(f"--data {file} cannot be read: {error.strerror}") from None
    if not result:
        raise CommonMistake(f"--data {', '.join(map(str, places))} has no files")
    return result


def _below(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    inside = (file.relative_to(place) for file in place.rglob("*") if file.is_file())
    return [place / each for each in sorted(inside) if not any(part.startswith(".") for part in each.parts)]


def tokens_of(places: Sequence[Path], tokens: Alphabet, cache: Path | None) -> list[np.ndarray]:
    """Return the tokens of the files, as arrays that follow each other.

    cache: directory of encoded tokens; bytes need none. Raise BadInput if a file cannot be read.
    """
    paths = files(places)
    try:
        if isinstance(tokens, OfBytes):
            separator = np.zeros(1, np.uint8)
            maps = (np.asarray(np.memmap(file, np.uint8, "r")) for file in paths)
            return [part for each in maps for part in (separator, each)][1:]
        assert isinstance(tokens, OfFile)
        if cache is None:
            return [np.concatenate(list(_encode(paths, tokens)))]
        return [_through(cache, paths, tokens)]
    except OSError as error:
        raise BadInput(f"--task text: {error.filename} cannot be used: {error.strerror}") from None


def _encode(paths: Sequence[Path], tokens: OfFile) -> Iterator[np.ndarray]:
    """Yield the tokens of the files and, between them, the separator."""
    for number, file in enumerate(paths):
        if number:
            yield np.array(tokens.separator, tokens.kind)
        with open(file, encoding="utf-8", errors="replace", newline="") as stream:
            while lines := stream.readlines(CHUNK):
                yield np.array(tokens.encode("".join(lines)), tokens.kind)


def _through(cache: Path, paths: Sequence[Path], tokens: OfFile) -> np.ndarray:
    """Return the tokens from a file in `cache`, which is written if it is not there.

    Its name depends on the content of the tokenizer and on names, sizes and times of the files. Several ranks
    may write it at the same time, and the last one wins.
    """
    facts = [[str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns] for f in paths]
    name = hashlib.sha256(tokens.content + json.dumps(facts).encode()).hexdigest()[:16]
    file = cache / f"text-{name}.tokens"
    if not file.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache, prefix=".draft-", delete=False) as draft:
            for part in _encode(paths, tokens):
                part.tofile(draft)
        os.replace(draft.name, file)
    return np.asarray(np.memmap(file, tokens.kind, "r"))
