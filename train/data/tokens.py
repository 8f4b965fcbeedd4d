"""The tokens of the files of --task text: what they are, and their encoding once on each host.

Without --tokenizer, tokens are the bytes of the documents; files of plain text are mapped into memory and
never read whole. All other tokens are encoded on all cores of the job by one rank of the host, and written to
files that the ranks of the host map into memory: below --cache, for later runs, or else in a directory that
is removed when they have mapped it, or by the next run if they are killed before.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from .. import host_files
from ..errors import BadInput, CommonMistake
from ..host_files import Use
from . import documents
from .documents import Part, Reading, Spans

SEPARATORS = ("<|endoftext|>", "</s>", "<eos>", "[SEP]")  # of well-known tokenizers, by preference
MULTIPLE = 64  # to which a vocabulary is rounded up: matrices of other widths are slower on GPUs
FORM = 3  # version of the files in a cache; other versions are not read
FACTS = "facts.json"


class Code(NamedTuple):
    """The tokens of a part. learn: for each token, whether it is to be learned; None if all are"""

    tokens: np.ndarray
    learn: np.ndarray | None


class Alphabet(Protocol):
    """The tokens of a text.

    count: largest token id + 1; size: the same, rounded up to a MULTIPLE; separator: the tokens between two
    documents; kind: type of stored tokens; content: what tells it from others, for the cache
    """

    count: int
    size: int
    separator: list[int]
    kind: Any
    content: bytes

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...

    def codes(self, parts: Sequence[Part]) -> Iterator[Code]:
        """Yield the tokens of each part. They are those of `encode`."""


class OfBytes:
    """Every byte of UTF-8 is a token."""

    count = size = 256
    separator = [0]  # noqa: RUF012
    kind = np.uint8
    content = b"bytes"

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8", errors="replace"))

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(tokens).decode("utf-8", errors="replace")

    def codes(self, parts: Sequence[Part]) -> Iterator[Code]:
        for part in parts:
            tokens = np.frombuffer(part.text.encode("utf-8", errors="replace"), np.uint8)
            characters = np.cumsum(tokens & 0xC0 != 0x80) - 1  # to which each byte belongs
            yield Code(tokens, None if part.learn is None else _of(characters, characters + 1, part.learn))


class OfFile:
    """The tokens of a JSON file of the package tokenizers, or of tokenizer.json in a directory."""

    def __init__(self, place: Path) -> None:
        file = place / "tokenizer.json" if place.is_dir() else place
        try:
            tokenizers = import_module("tokenizers")
        except ModuleNotFoundError:
            raise CommonMistake(
                f"--tokenizer {place} needs the Python package tokenizers: pip install tokenizers; without "
                "--tokenizer, tokens are bytes"
            ) from None
        try:
            self.content = file.read_bytes()
            self._tokenizer: Any = tokenizers.Tokenizer.from_buffer(self.content)
        except Exception as error:  # tokenizers raises plain Exceptions
            raise BadInput(f"--tokenizer {file} cannot be read: {error}") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.count = 1 + max(self._tokenizer.get_vocab().values(), default=-1)  # there may be gaps
        self.size = -(-self.count // MULTIPLE) * MULTIPLE
        ids = (self._tokenizer.token_to_id(name) for name in SEPARATORS)
        self.separator: list[int] = [token for token in ids if token is not None][:1]
        self.kind = np.uint16 if self.size <= 1 << 16 else np.uint32

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(_valid(text), add_special_tokens=False).ids
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=False)
        return text

    def codes(self, parts: Sequence[Part]) -> Iterator[Code]:
        # Without the places of tokens in the text it is faster.
        places = any(part.learn is not None for part in parts)
        encode = self._tokenizer.encode_batch if places else self._tokenizer.encode_batch_fast
        for part, code in zip(
            parts, encode([_valid(p.text) for p in parts], add_special_tokens=False), strict=True
        ):
            learn = None
            if part.learn is not None:
                starts, ends = np.array(code.offsets, np.int64).reshape(-1, 2).T
                learn = _of(starts, ends, part.learn)
            yield Code(np.array(code.ids, self.kind), learn)


def _valid(text: str) -> str:
    """Return the text with ? for each half of a surrogate pair, which JSON can have and UTF-8 cannot."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _of(starts: np.ndarray, ends: np.ndarray, spans: Spans) -> np.ndarray:
    """Return which tokens have a character in one of the spans.

    starts, ends: of their characters, in rising order. The first token of an answer may begin with the blank
    before it.
    """
    firsts, lasts = np.array([each for each in spans if each[0] < each[1]], np.int64).reshape(-1, 2).T
    at = np.searchsorted(firsts, np.maximum(ends, starts + 1), side="left") - 1
    result: np.ndarray = (at >= 0) & (starts < np.append(lasts, 0)[at])
    return result


def alphabet(tokenizer: Path | None) -> Alphabet:
    """Return the tokens of --tokenizer. Raise BadInput if its file or its package is missing."""
    return OfBytes() if tokenizer is None else OfFile(tokenizer)


class Corpus(NamedTuple):
    """The tokens of all documents, one after the other.

    tokens: arrays; learn: for each array, which tokens are to be learned, None if all are; starts: where
    documents begin; temporary: a directory to remove when all ranks of the host have opened the corpus;
    learned: number of tokens to learn, separators aside; sha256: a digest of the
    tokens and of which are to be learned, "" for texts that are never read whole
    """

    tokens: tuple[np.ndarray, ...]
    learn: np.ndarray | None
    starts: np.ndarray
    temporary: Use | None = None
    learned: int = 0
    sha256: str = ""

    @property
    def size(self) -> int:
        return sum(map(len, self.tokens))


def corpus(paths: Sequence[Path], letters: Alphabet, reading: Reading, cache: Path | None) -> Corpus:
    """Return the tokens of the files. Raise BadInput if a file cannot be read."""
    kinds = [documents.kind(file) for file in paths]
    try:
        if isinstance(letters, OfBytes) and all(kind == (documents.TEXT, None) for kind in kinds):
            return _mapped(paths)
        return _encoded(paths, letters, reading, cache)
    except OSError as error:
        raise BadInput(f"--task text: {error.filename or cache} cannot be used: {error.strerror}") from None


def _mapped(paths: Sequence[Path]) -> Corpus:
    """Return the bytes of files of text, which stay mapped into memory."""
    separator = np.zeros(1, np.uint8)
    maps = (np.asarray(np.memmap(file, np.uint8, "r")) for file in paths)
    pieces = tuple(part for each in maps for part in (separator, each))[1:]
    ends = list(accumulate(map(len, pieces)))
    return Corpus(pieces, None, np.array([0, *ends[1::2]], np.int64), learned=ends[-1])


def _encoded(paths: Sequence[Path], letters: Alphabet, reading: Reading, cache: Path | None) -> Corpus:
    """Return the tokens from files of this host, which one of its ranks writes if they are not there."""
    facts = [[str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns] for f in paths]
    template = reading.template.identity if reading.template else None
    how: list[Any] = [FORM, facts, reading.key, reading.answers, template]
    if cache is None:  # for the ranks of this run alone
        how += [os.environ.get(name) for name in ("MASTER_ADDR", "MASTER_PORT")]
    name = hashlib.sha256(letters.content + json.dumps(how).encode()).hexdigest()[:16]
    host = host_files.of_user()
    folder = (cache or host) / f"text-{name}"
    host_files.remove_unused(host, "*")
    with host_files.alone(host / f"{folder.name}.lock"):
        while (use := _use(folder)) is None:
            _write(paths, letters, reading, folder)
        result = _read(folder)
        if cache:
            use.end()
            return result
        if int(os.environ.get("LOCAL_WORLD_SIZE", 1)) == 1:
            use.remove()
            return result
    return result._replace(temporary=use)


def _use(folder: Path) -> Use | None:
    """Return the directory of tokens, or None if there is none."""
    with suppress(FileNotFoundError):
        use = Use(folder)
        if (folder / FACTS).is_file():
            return use
        use.end()
    return None


def _write(paths: Sequence[Path], letters: Alphabet, reading: Reading, folder: Path) -> None:
    """Write the tokens of the files to `folder`, atomically."""
    try:
        with host_files.draft(folder) as draft:
            _fill(draft, paths, letters, reading)
            draft.rename(folder)
    except OSError as error:
        if not (folder / FACTS).is_file():
            raise OSError(error.errno, error.strerror, str(error.filename or folder)) from None


def _fill(folder: Path, paths: Sequence[Path], letters: Alphabet, reading: Reading) -> None:
    separator = np.array(letters.separator, letters.kind)
    starts: list[int] = []
    count, learned, masked, last = 0, 0, False, True
    content = hashlib.sha256()

    def put(array: np.ndarray, stream: IO[bytes]) -> None:
        array.tofile(stream)
        content.update(array.data)

    with (
        open(folder / "tokens", "wb") as tokens,
        open(folder / "learn", "wb") as learn,
        _all_cores() as cores,
    ):
        for part, code in _codes(paths, letters, reading, cores):
            if part.begins and count:  # the separator is learned with the end of its document
                put(separator, tokens)
                put(np.full(len(separator), last), learn)
                count += len(separator)
            if part.begins:
                starts.append(count)
            flags = np.ones(len(code.tokens), bool) if code.learn is None else code.learn
            put(code.tokens, tokens)
            put(flags, learn)
            masked |= code.learn is not None
            count, learned = count + len(flags), learned + int(flags.sum())
            last = bool(flags[-1]) if len(flags) else last
    if not masked:
        (folder / "learn").unlink()
    np.save(folder / "starts.npy", np.array(starts, np.int64))
    facts = {"kind": np.dtype(letters.kind).name, "learned": learned, "sha256": content.hexdigest()}
    (folder / FACTS).write_text(json.dumps(facts))


def _codes(
    paths: Sequence[Path], letters: Alphabet, reading: Reading, cores: int
) -> Iterator[tuple[Part, Code]]:
    """Yield the parts of all files with their tokens. The next ones are read while some are encoded."""
    every = (part for file in paths for part in documents.parts(file, reading))

    def some() -> list[Part]:
        result, characters = [], 0
        for part in every:
            result.append(part)
            characters += len(part.text)
            if characters >= 2 * cores * documents.CHUNK:
                break
        return result

    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(some)
        while now := ahead.result():
            ahead = reader.submit(some)
            yield from zip(now, letters.codes(now), strict=True)


@contextmanager
def _all_cores() -> Iterator[int]:
    """Let this process use the cores of the process that started it, while the other ranks wait.

    A launcher may bind each rank to some of them. Yield their number.
    """
    if not hasattr(os, "sched_getaffinity"):  # macOS
        yield os.cpu_count() or 1
        return
    own = os.sched_getaffinity(0)
    try:
        cores = own | os.sched_getaffinity(os.getppid())
        os.sched_setaffinity(0, cores)
    except OSError:  # in a container, or bound by the kernel
        cores = own
    try:
        yield len(cores)
    finally:
        os.sched_setaffinity(0, own)


def _read(folder: Path) -> Corpus:
    facts, mask = json.loads((folder / FACTS).read_text()), folder / "learn"
    if not (folder / "tokens").stat().st_size:
        raise CommonMistake("--task text: the documents of --data are empty")
    tokens = np.asarray(np.memmap(folder / "tokens", facts["kind"], "r"))
    learn = np.asarray(np.memmap(mask, bool, "r")) if mask.is_file() else None
    starts = np.load(folder / "starts.npy")
    return Corpus((tokens,), learn, starts, learned=facts["learned"], sha256=facts["sha256"])
