"""A command line that starts ranks, as convert reads and writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jobgen.convert.result import Edit, apply
from jobgen.convert.several_words import may_have_options
from jobgen.convert.variable_names import kept
from jobgen.script.script import Script
from jobgen.script.syntax import Node, literal
from jobgen.script.word_lists import code_text, expanded

_SEARCHES = "pwd|dirname|which|realpath|readlink|command -v"  # commands that print a path
_OF_PROGRAM = re.compile(rf"[\w./~]|\$\{{?\w+\}}?/|(\$\(|`)\s*({_SEARCHES})\b")  # the beginning of a program


class Unreadable(ValueError):
    """The command line cannot be translated; the message is the reason."""


class OfContainer(Unreadable):
    """The command line starts a container by a plug-in of its scheduler."""


@dataclass
class LaunchLine:
    """The options of a launcher by their meaning, and the node where the program begins.

    ``numbers`` are the ``values`` that are known numbers; ``notes`` are remarks on what is translated.
    """

    values: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    exports: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    program: Node | None = None
    marks: list[str] = field(default_factory=list)  # the names of its options

    def set(self, meaning: str, value: Value) -> None:
        """Set the value of an option, by its meaning."""
        self.values[meaning] = value.text
        if value.known is not None and re.fullmatch(r"\d{1,9}", value.known, re.ASCII):
            self.numbers[meaning] = int(value.known)
            if not value.of_job:
                self.values[meaning] = value.known


class Value(NamedTuple):
    """A word: its text in the new script, and its value if that is known.

    ``of_job``: the scheduler sets a variable in it.
    """

    text: str
    known: str | None
    of_job: bool = False

    def after(self, start: int) -> Value:
        """Return the value without its first characters, which are plain text."""
        return Value(self.text[start:], None if self.known is None else self.known[start:], self.of_job)


class LaunchWords:
    """The words of a command line, with the constants of the script in their place.

    ``assigns``: NAME=VALUE before the program sets a variable of the ranks.
    """

    def __init__(
        self, words: tuple[Node, ...], script: Script, other: Mapping[str, str], assigns: bool = False
    ) -> None:
        self._script, self._other, self._kept, self._assigns = script, other, kept(script), assigns
        # Each part with its word; only the first part of a word can begin the program.
        self._words: list[tuple[Node, Node | None]] = []
        for word in words:
            first, *more = expanded(word, script.constants) or [word]
            alone = not more and not first.text.strip("\"'").startswith("-")
            self._words += [(word if alone else first, word), *((part, None) for part in more)]
        self.at = 0
        self.further: list[Value] = []  # short options of a word, behind its first one

    def __iter__(self) -> Iterator[Value]:
        """Yield the options, up to the first word of the program."""
        while self.at < len(self._words):
            word = self._words[self.at][0]
            value = self._value(word)
            quoted = word.type in ("string", "raw_string") and value.text[:1] == word.text[:1]
            text = value.text[1:-1] if quoted else value.text
            if not text.startswith("-") and not (self._assigns and re.match(r"[A-Za-z_]\w*=", text)):
                if value.known is None and word.type in ("simple_expansion", "expansion"):
                    self._need_program(value)
                if may_have_options(self._script, word):
                    raise Unreadable(f"the value of {value.text} is not known")
                text = value.known if value.known is not None else text
                if text and not text.startswith("-"):
                    return
            self.at += 1
            if text == "--":
                return
            self.further += [value._replace(text=text)] if text else []
            while self.further:
                yield self.further.pop()

    def next(self) -> Value:
        """Return the next word, which is the value of an option."""
        self.at += 1
        return self._value(self._words[self.at - 1][0]) if self.at <= len(self._words) else Value("", None)

    @property
    def program(self) -> Node | None:
        """Return the first word of the program.

        Raises:
            Unreadable: it is in a variable with more words.
        """
        if self.at >= len(self._words):
            return None
        word = self._words[self.at][1]
        in_array = word is not None and word.parent is not None and word.parent.type == "array"
        if word is None or in_array or word.source is not self._script.tree.source:
            raise Unreadable("the program is in a variable with the options")
        return word

    def has_pattern(self, text: str) -> bool:
        """Return whether the name of a file has patterns such as ``%t``, also in one of its variables."""
        seen, texts = set[str](), [text]
        for one in texts:
            new = set(re.findall(r"\$\{?(\w+)", one)) - seen
            texts += [node.text for name in new for node in self._script.values.get(name, ())]
            seen |= new
        plain = (re.sub(r"\$(\{[^}]*\}|\(.*\))|`.*`", "", one) for one in texts)
        return any(re.search(r"%\d*[A-Za-z%]", one) for one in plain)

    def _need_program(self, value: Value) -> None:
        """Refuse a variable that may hold options."""
        name = value.text.strip("${}")
        values = [code_text(node).lstrip() for node in self._script.values.get(name, ())]
        if not values or not all(_OF_PROGRAM.match(one) for one in values):
            raise Unreadable(f"the value of {value.text} is not known")

    def _value(self, word: Node) -> Value:
        names = [node.text for node in word.all("variable_name")]
        of_job = any(name in self._script.dialect.job_variables and name not in self._kept for name in names)
        return Value(value_text(word, self._other), self._script.constants.value(word), of_job)


def value_text(word: Node, other: Mapping[str, str]) -> str:
    """Return the new text of a word: plain text without its quotes, variables with their new names, or with a
    number in their place."""
    if (text := literal(word)) is not None and re.fullmatch(r"[\w=:.,/+@%-]+", text):
        return text
    edits = []
    for node in word.all("variable_name"):
        if (new := other.get(node.text)) is not None:
            above = node.child_of("simple_expansion") or node.child_of("expansion")
            whole = above if above is not None and new.isdigit() else node
            edits.append(Edit(whole.start - word.start, whole.end - word.start, new))
    return apply(word.text.encode(), edits).decode("utf-8", "replace")


def quoted(text: str) -> str:
    """Return a word in double quotes if it begins with an expansion."""
    return f'"{text}"' if text.startswith("$") else text
