"""Text as packed sequences of tokens: --task text --data FILE...

The documents of all files follow each other (documents.py), with a separator between two (tokens.py).
Sequence i holds the tokens from i * context on, and its targets are the tokens one place later, so every
token but the first is a target once, if it is to be learned. What is left after the last whole sequence,
fewer than context + 1 tokens, is not used. The last sequences are held out for the evaluation.

With --documents apart, a token attends to its own document only, and the first token of a document is no
target. The model then gets the document of each token, or positions that begin anew with each document.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ..config import Settings
from ..config.converters import is_hf
from ..config.language import HELD_OUT, size
from ..errors import CommonMistake
from ..loss_functions import IGNORE_INDEX
from . import chat, documents, tokens
from .documents import Reading
from .sources import Batch, Source
from .task import Task
from .tokens import Alphabet, Corpus, alphabet

__all__ = ["Sequences", "alphabet", "split", "task", "vocabulary"]


class Sequences(Source):
    """The sequences `first` to `last` of a corpus.

    apart: "" for documents that attend to each other; otherwise how the model gets them: "documents" as
    second argument, their number for each token, or "positions" by name, as models of transformers
    """

    def __init__(self, corpus: Corpus, context: int, first: int, last: int, apart: str = "") -> None:
        self._corpus, self._context, self._first, self._count = corpus, context, first, last - first
        self._ends = np.cumsum([len(piece) for piece in corpus.tokens])
        self._apart = apart
        self.tokens = context if corpus.learn is None and not apart else 0

    def __len__(self) -> int:
        return self._count

    @property
    def shape(self) -> tuple[int, ...]:
        return (self._context,)

    def batch(self, indices: np.ndarray) -> Batch:
        """Return the tokens of these sequences and their targets: int64 [len(indices), context] each."""
        starts = [(self._first + int(i)) * self._context for i in indices]
        rows = torch.from_numpy(np.stack([self._tokens(start) for start in starts]))
        inputs = rows[:, :-1].contiguous()
        targets = rows[:, 1:].clone(memory_format=torch.contiguous_format)  # one row would be that of inputs
        places = np.array(starts)[:, None] + np.arange(self._context + 1)
        if self._corpus.learn is not None:
            targets[torch.from_numpy(~self._corpus.learn[places[:, 1:]])] = IGNORE_INDEX
        if not self._apart:
            return inputs, targets
        document = np.searchsorted(self._corpus.starts, places, side="right")
        targets[torch.from_numpy(document[:, 1:] != document[:, :-1])] = IGNORE_INDEX
        document = document[:, :-1]
        if self._apart == "documents":
            return (inputs, torch.from_numpy(document)), targets
        begins = np.maximum(self._corpus.starts[document - 1], places[:, :1])  # or with the sequence
        positions = torch.from_numpy(places[:, :-1] - begins)
        return {"input_ids": inputs, "position_ids": positions}, targets

    def _tokens(self, start: int) -> np.ndarray:
        """Return context + 1 tokens from `start` on, from as many pieces as they are in."""
        tokens = np.empty(self._context + 1, np.int64)
        count, piece = 0, int(np.searchsorted(self._ends, start, side="right"))
        while count < len(tokens):
            here = self._corpus.tokens[piece]
            at = start + count - (int(self._ends[piece]) - len(here))
            some = here[at : at + len(tokens) - count]
            tokens[count : count + len(some)] = some
            count, piece = count + len(some), piece + 1
        return tokens


def task(settings: Settings) -> Task:
    """Return the prediction of the next token. Raise BadInput if the files cannot be used."""
    assert settings.data
    letters, paths = alphabet(settings.tokenizer), documents.files(settings.data)
    template = chat.template(settings.tokenizer, settings.chat_template)
    reading = Reading(settings.text_key, settings.learn != "all", template)
    corpus = tokens.corpus(paths, letters, reading, settings.cache)
    apart = "" if settings.documents != "apart" else "documents" if settings.model == "gpt" else "positions"
    train, test = split(corpus, size(settings).context, settings.held_out or HELD_OUT, apart)
    return Task(
        train,
        test,
        outputs=vocabulary(settings, letters),
        metrics=("perplexity",),
        notes=_notes(corpus, paths),
        loss_by="token",
        temporary=corpus.temporary,
        content={
            "tokens": corpus.size,
            "documents": len(corpus.starts),
            "learned": corpus.learned,
            "sha256": corpus.sha256,
        },
    )


def _notes(corpus: Corpus, paths: Sequence[Path]) -> tuple[str, ...]:
    """Return a note on files that are not only text, and on what is to be learned of them."""
    kinds = Counter(documents.kind(file)[0].name for file in paths)
    if set(kinds) == {documents.TEXT.name}:
        return ()
    share = "all" if corpus.learn is None else f"{corpus.learned / corpus.size:.1%}"
    names = ", ".join(f"{number} file(s) of {name}" for name, number in sorted(kinds.items()))
    return (
        f"{names}: {len(corpus.starts)} documents with {corpus.size} tokens, of which {share} are to be "
        "learned",
    )


def vocabulary(settings: Settings, letters: Alphabet) -> int:
    """Return the number of tokens for which a model is made. That of a directory has its own, not rounded."""
    return letters.count if is_hf(settings.model) else letters.size


def split(corpus: Corpus, context: int, held_out: float, apart: str = "") -> tuple[Sequences, Sequences]:
    """Return the sequences to train on, and the last ones, a fraction `held_out`, for the evaluation.

    Each part has one sequence at least. Raise CommonMistake if the tokens do not make two sequences, or if
    none of those to train on is to be learned.
    """
    count = (corpus.size - 1) // context
    if count < 2:
        raise CommonMistake(
            f"--task text: the data has {corpus.size} tokens, and --context {context} needs at least "
            f"{2 * context + 1}, for one sequence to train on and one to evaluate"
        )
    test_count = min(max(1, round(count * held_out)), count - 1)
    border = count - test_count
    if corpus.learn is not None and not corpus.learn[1 : border * context + 1].any():
        raise CommonMistake("--task text: no token of --data is to be learned: use --learn all")
    return (
        Sequences(corpus, context, 0, border, apart),
        Sequences(corpus, context, border, count, apart),
    )
