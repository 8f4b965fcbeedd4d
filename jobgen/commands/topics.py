"""The topics of ``jobgen help``: pages of the documentation, which are part of the package.

A page is found by its name or by the words of a question. Each word counts by its rarity in all pages and by
its place: the title, then the ``words`` of the front matter, the headings, and the text. A word of the same
meaning counts less. tests/docs/questions.tsv has questions and the pages that answer them.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

import jobgen.docs  # type: ignore[import-not-found]  # a folder without code
from jobgen.errors import near_ones

_FOLDERS = ("trouble", "", "start", "tutorials")  # of pages with equal scores, those of the first come first
# The names of pages that are not those of their files; no page has the name of a command.
_NAMES = {
    "index": None,
    "trouble/index": "trouble",
    "start/slurm": "start-slurm",
    "start/pbs": "start-pbs",
    **{name: f"about-{name}" for name in ("check", "completion", "doctor", "report", "web")},
}
# The weight of a page, or of the pages of a folder: people search for a symptom or for a task. The search of
# the site has the same weights.
WEIGHTS = {
    "trouble/index.md": 1.3,
    "trouble/": 1.15,
    "interactive.md": 1.2,
    "group.md": 1.2,
    "install.md": 1.15,
    "request.md": 1.1,
    "software.md": 1.1,
    "concepts.md": 1.2,
    "arrays.md": 1.05,
}
_FRONT = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)
_TITLE, _WORDS, _HEADING, _TEXT = 10, 6, 2, 0.3  # the weights of a word by its place
_OFTEN = 6  # more occurrences of a word in a text count as this many
_HALF = 4  # the weight that counts as half of the most that a word can count
_OF_TITLE = 0.5  # what a title adds whose words are all in the question
_GENERAL = 0.6  # the share of a word that only has the meaning of the word of a question
# Words that say nothing about the subject.
STOP = frozenset(
    re.findall(
        r"\w+",
        "a about after am an and any are as at be because been but by can cannot could did do does doesn "
        "don for from get gets give had has have how i if in into is isn it its just like make me much my "
        "of on only or other our please s say says see should so some t tell that the their them then "
        "there these they this to use used using want was we were what when which who why will with won "
        "work would you your",
    )
)
# Questions about a term, of which the page of concepts has most.
_DEFINITION = r"^what (is|are)\b|\bdifference\b|\bmean(s|ing)?\b|^explain\b"
# Words without an ending, or with one that changes what they say.
_WHOLE = (*("killed", "stopped", "ended", "process", "always", "does", "access", "address", "class", "loss"),)
# Words of one meaning.
_SAME = (
    "cancel kill stop delete abort terminate remove",
    "gpu cuda device card accelerator npu",
    "output print stdout stderr log write",
    "fail failure crash die error wrong broken break problem",
    "queue partition",
    "mail email notify notification",
    "pending wait stuck queued hold",
    "resume continue restart again",
    "start begin launch",
    "container docker podman apptainer singularity image",
    "memory ram oom",
    "time walltime hour hours day minute long duration limit",
    "node machine host server computer",
    "environment venv virtualenv conda",
    "package import install library",
    "utilisation utilization usage idle busy",
    "slow fast speed faster performance",
    "connect connection reach refused",
    "file directory folder",
    "disk storage scratch quota space",
    "cluster site centre center supercomputer",
    "parameter hyperparameter",
    "core cpu thread",
    "program script code",
    "rank process",
)


class Topic(NamedTuple):
    """A page: its name, its place in docs/, its title, further words that lead to it, and its text."""

    name: str
    place: str
    title: str
    words: str
    text: str


@cache
def topics() -> dict[str, Topic]:
    """Return the pages by their names."""
    [root] = jobgen.docs.__path__
    pages: dict[str, Topic] = {}
    for folder in _FOLDERS:
        for file in sorted(os.listdir(os.path.join(root, folder))):
            stem, ending = os.path.splitext(file)
            name = _NAMES.get(os.path.join(folder, stem), stem)
            if ending == ".md" and name:
                place = os.path.join(folder, file)
                with open(os.path.join(root, place), encoding="utf-8") as source:
                    pages.setdefault(name, _topic(name, place, source.read()))
    return pages


def _topic(name: str, place: str, source: str) -> Topic:
    front = _FRONT.match(source)
    words = re.search(r"^words: (.*)$", front[1], re.MULTILINE) if front else None
    text = source[front.end() :].lstrip() if front else source
    return Topic(name, place, text.partition("\n")[0].lstrip("# "), words[1] if words else "", text)


def corrected(question: str) -> str:
    """Return a question with the nearest known words in place of unknown ones, if a page has one of them."""
    known = sorted({word for one in topics().values() for word in _words(f"{one.title} {one.words}")})
    words = [one if one in known else [*near_ones(one, known, 1, 0.75), one][0] for one in _words(question)]
    return " ".join(words) if search(" ".join(words)) else ""


def weight(place: str) -> float:
    """Return the weight of a page of docs/ in a search."""
    return next((value for start, value in WEIGHTS.items() if place.startswith(start)), 1)


def search(question: str) -> list[Topic]:
    """Return the pages that have words of a question, the best first."""
    words = list(dict.fromkeys(_stems(re.sub(_DEFINITION, "concepts ", question, flags=re.IGNORECASE))))
    scores = {name: _score(words, name) for name in topics()}
    ranked = sorted(scores, key=lambda name: -scores[name])
    return [topics()[name] for name in ranked if scores[name] > 0]


def _score(words: Sequence[str], name: str) -> float:
    """Return how well a page fits the words of a question: the sum over the words, each by its rarity and by
    its weight in the page, and more if they are also a large part of the title."""
    weights, rarity = _weights()[name], _rarity()
    total = sum(
        max(_term(one, weights, rarity), _GENERAL * _term(_MEANING.get(one, ""), weights, rarity))
        for one in words
    )
    meanings = {_MEANING.get(one, one) for one in words}
    title = {one: rarity[one] for one in _stems(topics()[name].title)}
    common = sum(value for one, value in title.items() if _MEANING.get(one, one) in meanings)
    return weight(topics()[name].place) * total * (1 + _OF_TITLE * common / (sum(title.values()) or 1))


def _term(word: str, weights: Counter[str], rarity: dict[str, float]) -> float:
    return rarity.get(word, 0) * weights[word] / (weights[word] + _HALF)


@cache
def _weights() -> dict[str, Counter[str]]:
    """Return the weight of each word of each page, and of each meaning."""
    pages = {}
    for name, topic in topics().items():
        weights: Counter[str] = Counter()
        places = (
            (f"{topic.title} {name}", _TITLE, 1),
            (topic.words, _WORDS, 1),
            (" ".join(re.findall(r"^#+ (.*)$", topic.text, re.MULTILINE)), _HEADING, 1),
            (topic.text, _TEXT, _OFTEN),
        )
        for text, value, most in places:
            stems = list(_stems(text))
            meanings = [_MEANING[one] for one in stems if one in _MEANING]
            for word, number in Counter([*stems, *meanings]).items():
                weights[word] += value * min(number, most)  # type: ignore[assignment]
        pages[name] = weights
    return pages


@cache
def _rarity() -> dict[str, float]:
    """Return the logarithm of the share of pages with each word: rare words count most."""
    pages = Counter(word for weights in _weights().values() for word in weights)
    return {word: math.log((1 + len(_weights())) / number) for word, number in pages.items()}


def subjects(text: str) -> list[str]:
    """Return the parts of a text between blanks that say something about its subject, each once."""
    return [one for one in dict.fromkeys(text.lower().split()) if one not in STOP]


def _stems(text: str) -> Iterator[str]:
    """Return the words of a text that say something about its subject, without endings."""
    return (_stem(word) for word in _words(text) if word not in STOP)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower().replace("e-mail", "email"))


def _stem(word: str) -> str:
    if word in _WHOLE:
        return word
    word = re.sub(r"(?<=[a-z]{2})(ies|y)$", "i", word)
    word = re.sub(r"(?<=[a-z]{3})(ing|ed|es|s|e)$", "", word)
    return re.sub(r"([bdgmnprt])\1$", r"\1", word)


# The name of the meaning of a word, by its stem.
_MEANING = {_stem(word): f"={line.split()[0]}" for line in _SAME for word in line.split()}


def for_terminal(topic: Topic, width: int) -> str:
    """Return the text of a page for a terminal: paragraphs are folded, links to pages name their topic."""
    link = partial(_link, os.path.dirname(topic.place))
    text = re.sub(r"\[([^]]+)]\(([\w./-]+\.md)(?:#[\w-]*)?\)", link, topic.text)
    text = re.sub(r"\[([^]]+)]\((https?://[^)]+)\)", r"\1 <\2>", text)
    parts = re.split(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)  # every second one is code
    blocks = (
        [textwrap.indent(part.rstrip(), "    ")]
        if number % 2
        else [_block(one, width) for one in part.strip().split("\n\n") if one]
        for number, part in enumerate(parts)
    )
    return "\n\n".join(block for each in blocks for block in each) + "\n"


def _link(folder: str, match: re.Match[str]) -> str:
    place = os.path.normpath(os.path.join(folder, match[2]))
    name = next((one.name for one in topics().values() if one.place == place), None)
    return f"{match[1]} (jobgen help {name})" if name else match[1]


def _block(block: str, width: int) -> str:
    """Return a paragraph, a list or a table, folded; a heading or code as it is."""
    if re.match(r"#|    ", block):
        return block
    if block.startswith("|"):
        rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in block.splitlines()]
        return "\n".join(_row(row, width) for row in rows[2:])  # without the head
    items = re.split(r"\n(?=\d+\. |[-*] )", block)
    return "\n".join(
        textwrap.fill(" ".join(item.split()), width, subsequent_indent="  " * bool(re.match(r"[-*\d]", item)))
        for item in items
    )


def _row(cells: list[str], width: int) -> str:
    """Return a row of a table: the first cell, and below it the others."""
    rest = textwrap.fill(
        "; ".join(filter(None, cells[1:])), width, initial_indent="    ", subsequent_indent="    "
    )
    return f"{cells[0]}\n{rest}"
