"""The topics of ``jobgen help``: pages of the documentation, which are part of the package.

A page is found by its name or by the words of a question. Each word counts by its rarity in all pages and by
its place: the title and the ``words`` of the front matter, then the headings, then the text.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import jobgen.docs  # type: ignore[import-not-found]  # a folder without code

_FOLDERS = ("trouble", "", "start", "tutorials")  # of pages with equal scores, those of the first come first
_NO_TOPICS = {"index"}
_FRONT = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)
_TITLE, _HEADING, _TEXT = 12, 3, 0.5  # the weights of a word by its place
_OFTEN = 6  # more occurrences of a word in a text count as this many
_STOP = set(  # words that say nothing about the subject
    re.findall(
        r"\w+",
        "a an and are as at be but by can do does for from get how i in is it my not of on or s t that the "
        "this to was what when where which why will with you your",
    )
)


class Topic(NamedTuple):
    """A page: its name, its title, the further words that lead to it, and its text in Markdown."""

    name: str
    title: str
    words: str
    text: str


@cache
def topics() -> dict[str, Topic]:
    """Return the pages by their names."""
    [root] = jobgen.docs.__path__
    found: dict[str, Topic] = {}
    for folder in (os.path.join(root, name) for name in _FOLDERS):
        for file in sorted(os.listdir(folder)):
            name, ending = os.path.splitext(file)
            if ending == ".md" and name not in _NO_TOPICS:
                with open(os.path.join(folder, file), encoding="utf-8") as source:
                    found.setdefault(name, _topic(name, source.read()))
    return found


def _topic(name: str, source: str) -> Topic:
    front = _FRONT.match(source)
    words = re.search(r"^words: (.*)$", front[1], re.MULTILINE) if front else None
    text = source[front.end() :].lstrip() if front else source
    return Topic(name, text.partition("\n")[0].lstrip("# "), words[1] if words else "", text)


def search(question: str) -> list[Topic]:
    """Return the pages that have words of a question, the best first."""
    words = list(dict.fromkeys(_stems(question)))
    scores = {name: _score(words, name) for name in topics()}
    ranked = sorted(scores, key=lambda name: -scores[name])
    return [topics()[name] for name in ranked if scores[name] > 0]


def _score(words: Sequence[str], name: str) -> float:
    weights, rarity = _weights()[name], _rarity()
    return sum(rarity.get(word, 0) * weights[word] for word in words)


@cache
def _weights() -> dict[str, Counter[str]]:
    """Return the weight of each word of each page."""
    found = {}
    for name, topic in topics().items():
        weights: Counter[str] = Counter()
        places = (
            (f"{topic.title} {topic.words} {name}", _TITLE, 1),
            (" ".join(re.findall(r"^#+ (.*)$", topic.text, re.MULTILINE)), _HEADING, 1),
            (topic.text, _TEXT, _OFTEN),
        )
        for text, weight, most in places:
            for word, number in Counter(_stems(text)).items():
                weights[word] += weight * min(number, most)  # type: ignore[assignment]
        found[name] = weights
    return found


@cache
def _rarity() -> dict[str, float]:
    """Return the logarithm of the share of pages with each word: rare words count most."""
    pages = Counter(word for weights in _weights().values() for word in weights)
    return {word: math.log(1 + len(_weights()) / number) for word, number in pages.items()}


def _stems(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, without endings."""
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if word not in _STOP:
            yield re.sub(r"(?<=[a-z]{3})(ing|ed|es|s|e)$", "", word)


def for_terminal(topic: Topic, width: int) -> str:
    """Return the text of a page for a terminal: paragraphs are folded, links to pages name their topic."""
    text = re.sub(r"\[([^]]+)]\((?:[\w./-]*/)?([\w-]+)\.md(?:#[\w-]*)?\)", _link, topic.text)
    text = re.sub(r"\[([^]]+)]\((https?://[^)]+)\)", r"\1 <\2>", text)
    parts = re.split(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)  # every second one is code
    blocks = (
        [textwrap.indent(part.rstrip(), "    ")]
        if number % 2
        else [_block(one, width) for one in part.strip().split("\n\n") if one]
        for number, part in enumerate(parts)
    )
    return "\n\n".join(block for each in blocks for block in each) + "\n"


def _link(match: re.Match[str]) -> str:
    words, name = match.groups()
    return f"{words} (jobgen help {name})" if name in topics() else words


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
