"""The part of a script that bash cannot read: an ``if`` without its ``fi``, a quote without its end.

bash decides whether it can read a script. Its message often names the end of the file; the fault here names
the word that is not closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from jobgen.rendering.hooks import complaint

_ENDS = {
    **{"if": "fi", "case": "esac", "for": "done", "while": "done", "until": "done", "select": "done"},
    **{"{": "}", "((": "))", "$((": "))", "${": "}", '"': '"', "'": "'", "`": "`"},  # others: )
}
_BODIES = {"if": "then", "case": "in", "for": "do", "while": "do", "until": "do", "select": "do"}
_BEFORE_COMMAND = ("!", "time", "coproc", "then", "do", "else", "elif", "if", "while", "until", "{")
# Parentheses of an array or a pattern, in which no command begins, and those of a number.
_LIST, _TERM = "=(", "(number"
_NUMBERS = ("((", "$((", _TERM)
_DEEPEST = 100  # words that are open at a time; no person writes more
_WIDEST = 80  # columns in front of a word
_TRIALS = 10  # quotes for which bash reads the script once more

_COMMON = r"\\.|\$\(\(|\$\(|\$\{|`|\$?\"|\n|'"
_IN_TEXT = re.compile(rf"(?s:{_COMMON}|[^\\$`\"'\n}}]+|.)")
_IN_NUMBER = re.compile(rf"(?s:{_COMMON}|[()]|[^\\$`\"'\n()]+|.)")
_DOCUMENT = r"<<-?[ \t]*(?:'[^'\n]+'|\"[^\"\n]+\"|\\?[^\s'\"\\<>;&|()]+)"
_IN_CODE = re.compile(
    rf"(?s:\$'(?:\\.|[^'\\])*'|{_COMMON}|<<<|(?P<document>{_DOCUMENT})|[<>]\(|[()]"
    r"|;;&|;;|;&|&&|\|\||[;&|]|[ \t]+|[^\s\\'\"`$();&|<>]+|.)"
)
_MESSAGE = re.compile(r"(?:bash: )?line (\d+): (.*)")
_EXIT = re.compile(r"(?m)^(exit|exec)\b.*$")
_NO_END = re.compile(r"warning: here-document at line (\d+) delimited by end-of-file \(wanted `(.*)'\)")


class Fault(NamedTuple):
    """What bash cannot read: the line, the reason, and what to do. ``runs``: the script runs nevertheless."""

    line: int
    reason: str
    fix: str
    runs: bool = False


@dataclass
class _Opening:
    """A word that begins a part of a script. ``body`` is the word that its end must follow,
    ``clause`` the line of the last elif.

    ``indent`` are the columns before it, if it is the first word of its line. ``command``: behind the end of
    the part a reserved word may follow. ``in_word``: a quote begins or ends in a word.
    ``substitution`` is the one around a quote that begins in its line.
    """

    word: str
    line: int
    indent: int | None = None
    body: str = ""
    clause: int = 0
    command: bool = False
    in_word: bool = False
    substitution: _Opening | None = None

    @property
    def end(self) -> str:
        return _ENDS.get(self.word, ")")

    def without_end(self, before: str = "") -> Fault:
        """Return the fault of a part that has no end."""
        if self.word in ('"', "'"):
            fix = f"write {self.end} where the text ends, or remove the quote that is one too many"
            return Fault(self.line, f"the quote {self.word} that begins here has no end", fix)
        word = "(" if self.word in (_LIST, _TERM) else self.word
        end = f"{self.end} behind its last command{before}" if self.command else f"{self.end} where it ends"
        if self.body in ("then", "do") and not self.clause:
            missing = f"no {self.body} and no {self.end}"
            return Fault(self.line, f"{word} has {missing}{before}", f"{self.fix_of_body}, and {end}")
        return Fault(self.line, f"{word} has no {self.end}{before}", f"write {end}")

    @property
    def fix_of_body(self) -> str:
        return f"write {self.body} behind the {'list' if self.word in ('for', 'select') else 'condition'}"


def fault(text: str) -> Fault | None:
    """Return what bash cannot read in a script; None if it can, or if there is no bash."""
    reader = _Reader(text)
    if reader.too_deep or not (message := complaint(text)):
        return None
    at = _MESSAGE.match(message)
    line = min(int(at[1]), text.rstrip("\n").count("\n") + 1) if at else 0
    if _ends_before(text, line):
        return None
    if document := _NO_END.search(message):
        return _open_document(text, int(document[1]), document[2])
    if found := _open_substitution(text) or _wrong_end(text):
        return found
    if (quote := _odd_quote(text, reader.spans)) is not None:
        found = quote.without_end()
        return found._replace(fix=_fix_of_comment(text, found.line) or found.fix)
    last = reader.line if "end of file" not in message and "unexpected EOF" not in message else 0
    if reader.fault is not None and (last <= line or reader.lacks_body):
        inner = [one for one in reader.open[-1:] if one.command]
        fix = _fix_of_argument(text, inner[0].end) if inner else ""
        return reader.fault._replace(fix=fix or reader.fault.fix)
    return Fault(line, at[2], _fix_of_line(text, line, at[2])) if at else None


def _open_document(text: str, start: int, end: str) -> Fault | None:
    """Return the fault of a here-document without its end; None if a shell reads all lines below."""
    lines = text.split("\n")
    others = complaint(f"{text}\n{end}\n")
    runs = not others or _NO_END.search(others) is not None
    near = (
        at for at, line in enumerate(lines, 1) if at > start and re.match(rf"\s*{re.escape(end)}\b", line)
    )
    if (line := next(near, 0)) == 0 and runs and _SHELL_READS.search(lines[start - 1]):
        return None
    reason = f"the here-document has no line {end}: all lines below are a part of it"
    fix = f"end it with a line that is {end} alone, without blanks"
    if line:
        fix = f"write {end} alone, without blanks, in line {line}"
        fix += ", and its redirections behind the <<" if re.search("[<>]", lines[line - 1]) else ""
    return Fault(start, reason, fix, runs)


_SHELL_READS = re.compile(r"(?:^|[\s/])(?:ba|da|k|z|s)?sh\b[^|;&]*<<")


def _fix_of_comment(text: str, line: int) -> str:
    """Return the fix of a line that is to go on with the comment above it; empty if that is not the fault."""
    lines = text.split("\n")
    if line < 2 or not re.match(r"\s*#.*\\$", lines[line - 2]):
        return ""
    lines[line - 1] = f"#{lines[line - 1]}"
    return (
        ""
        if complaint("\n".join(lines))
        else "begin the line with #: a backslash does not continue a comment"
    )


def _fix_of_argument(text: str, word: str) -> str:
    """Return the fix of a part whose end is an argument of a command; empty if that is not the fault."""
    end = re.escape(word)
    joined = re.compile(rf"\\\n(?=[ \t]*{end}\b)")
    if (match := joined.search(text)) and not complaint(joined.sub("\n", text)):
        line = text.count("\n", 0, match.start()) + 1
        return f"remove the backslash at the end of line {line}: it makes {word} an argument"
    found = re.finditer(rf"(?m)^[^#\n]*[^\s;&|]([ \t]+){end}[ \t]*(?:[;&|<>].*)?$", text)
    for match in list(found)[:_TRIALS]:
        if not complaint(f"{text[: match.start(1)]}\n{text[match.end(1) :]}"):
            line = text.count("\n", 0, match.start(1)) + 1
            return f"begin a new line before the {word} in line {line}: it is an argument there"
    return ""


# A part of bash's message, how the line begins that it names, and the fix.
_FIXES = [
    ("in conditional expression", r".*\S\]\]", "write a blank before ]]"),
    ("`('", r"(?=.*\|).*[!@+?*]\(", "write shopt -s extglob in a line above"),
    ("", r"\s*//", "begin a comment with #"),
    ("", r"\s*\w+\s*\(\)\s+[^\s{(]", "call a function without (): they define one"),
    (
        "`('",
        r".*=\w+\((?:int|float|str(?:ing)?|bool|path)\)\s*$",
        "write a value in place of its description",
    ),
    ("`('", r"\s*\w+=printf?\(", "write NAME=$(printf FORMAT ARGUMENTS) for a text"),
    ("`('", r"\s*\w+=[\w.]+\(.*[\"'$]", "write NAME=$(COMMAND ARGUMENTS) for the output of a command"),
    ("`('", r"[^\"'`]*\(", "write the text with ( in quotes, or # in front of it if it is a comment"),
]
_PYTHON = re.compile(r"(?m)^(?:import \w+|from [\w.]+ import )")


def _fix_of_line(text: str, line: int, message: str) -> str:
    """Return the fix of a line that bash cannot read, by its text and the message."""
    if _PYTHON.search(text):
        return "write the name of Python in the first line, if the text is Python"
    lines = [one.partition("#")[0].rstrip(" \\") for one in text.split("\n")]
    above = next((number for number in range(line - 1, 0, -1) if lines[number - 1]), 0)
    if above and re.search(r"`(?:fi|done|else|elif|esac|\}|\))'", message):
        last = re.search(r"&&$|\|+$", lines[above - 1])
        where = f"the {last[0]} of line {above}" if last else f"line {above}: a comment is none"
        return f"write a command behind {where}"
    whole = text.split("\n")[line - 1]
    fits = (fix for part, form, fix in _FIXES if part in message and re.match(form, whole))
    odd = [number for number, one in enumerate(lines[:line], 1) if one.count("'") % 2]
    quote = f"write ' where the text of line {odd[-2]} ends" if odd[-1:] == [line] and odd[1:] else ""
    return next(fits, quote or "correct the line, or what stands above it")


def _ends_before(text: str, line: int) -> bool:
    """Return whether the script ends, by exit or exec, before bash reads a line."""
    ends = [one for one in _EXIT.finditer(text) if text.count("\n", 0, one.start()) + 1 < line]
    return any(not complaint(text[: one.end()]) for one in ends[:_TRIALS])


def _open_substitution(text: str) -> Fault | None:
    """Return the fault of the first ``$(`` that a quote ends, if a ``)`` before each mends it."""
    lines, found = text.split("\n"), None
    for number, line in enumerate(lines, 1):
        begin = line.rfind("$(") if line.count("(") > line.count(")") else -1
        quotes = [one.start() for one in re.finditer('"', line[begin:])] if begin >= 0 else []
        # The quotes in it come in pairs; a blank or a sign follows the one that ends the text around it.
        ends = (at for at in quotes[::2] if line[begin + at + 1 : begin + at + 2].strip(" \t;&|)>") == "")
        if (at := next(ends, -1)) >= 0:
            lines[number - 1] = f"{line[: begin + at]}){line[begin + at :]}"
            fix = f'write ) before the " in column {begin + at + 1} of this line'
            found = found or Fault(number, "$( has no )", fix)
    return None if found is None or complaint("\n".join(lines)) else found


def _wrong_end(text: str) -> Fault | None:
    """Return the fault of a substitution with ````` that another quote at the end of its line is to end."""
    lines, trials = text.split("\n"), 0
    for number, line in enumerate(lines):
        code, end = line.rstrip(" \t;"), line[len(line.rstrip(" \t;")) :]
        quote = code[-1:]
        if quote not in ('"', "'") or code.count("`") != 1 or code.count(quote) % 2 == 0 or trials == _TRIALS:
            continue
        trials += 1
        if not complaint("\n".join([*lines[:number], f"{code[:-1]}`{end}", *lines[number + 1 :]])):
            return Fault(number + 1, "` has no `", f"write ` in place of the {quote} at the end of this line")
    return None


def _odd_quote(text: str, spans: list[_Opening]) -> _Opening | None:
    """Return the quote over several lines with whose end bash reads the script, and the other quotes are most
    likely; or a substitution without whose line bash reads it.

    A line of quotes alone begins a text of several lines on purpose."""
    lines, found = text.split("\n"), []
    meant = [one for one in spans if lines[one.line - 1].strip().strip("\"'")]
    first = sorted(meant, key=lambda one: one.line)[:_TRIALS]
    for one in first:
        ended = "\n".join([*lines[: one.line - 1], lines[one.line - 1] + one.word, *lines[one.line :]])
        if not complaint(ended):
            others = _Reader(ended).spans
            found.append((sum(other.in_word for other in others), len(others), one.line, one))
    if found:
        return min(found, key=lambda one: one[:3])[3]
    for one in first:
        if not complaint("\n".join([*lines[: one.line - 1], ":", *lines[one.line :]])):
            around = (other.substitution for other in first if other.line == one.line)
            return next(filter(None, around), one)
    return None


class _Document(NamedTuple):
    """A here-document: the line that ends it, and whether that may begin with tabs."""

    end: str
    tabs: bool


class _Reader:
    """The words of a script that begin and end its parts.

    ``fault`` is the first that does not fit, ``spans`` are the quotes that do not end in their line.
    """

    def __init__(self, text: str) -> None:
        self.text, self.at, self.line = text, 0, 1
        self.open: list[_Opening] = []
        self.spans: list[_Opening] = []
        self.fault: Fault | None = None
        self.too_deep = self.lacks_body = False
        self._suspect: _Opening | None = None  # which the indentation of the ends contradicts
        self._documents: list[_Document] = []
        self._command = self._fresh = True  # whether a reserved word, and a word, may begin here
        self._names_function = False
        while self.at < len(text) and self.fault is None and not self.too_deep:
            self._read()
        if self.fault is None and self.open:
            last = self.open[-1]
            self.spans += [one for one in self.open if one.word == '"']
            self.fault = (self._suspect or last).without_end()

    def _read(self) -> None:
        top = self.open[-1].word if self.open else ""
        pattern = _IN_TEXT if top in ('"', "${") else _IN_NUMBER if top in _NUMBERS else _IN_CODE
        match = pattern.match(self.text, self.at)
        assert match is not None
        token, self.at = match[0], match.end()
        if token == "\n":
            self._new_line()
            return
        if token == "'":
            if top != '"' and not (top == "${" and any(one.word == '"' for one in self.open)):
                self._single_quote()
        elif token in ("$(", "$((", "${"):
            self._push(token)
        elif token in ("`", '"', '$"'):
            word = token[-1]
            is_open = top == '"' if word == '"' else any(one.word == "`" for one in self.open)
            (self._close if is_open else self._push)(word)
        elif token == "}" and top == "${":
            self._close("}")
        elif pattern is _IN_NUMBER and token in ("(", ")"):
            self._parenthesis_of_number(token)
        elif pattern is _IN_CODE:
            self._code(token, match["document"])
        self.line += token.count("\n")

    def _single_quote(self) -> None:
        end = self.text.find("'", self.at)
        quote, part = _Opening("'", self.line), self.text[self.at : end if end >= 0 else len(self.text)]
        quote.in_word = self._is_in_word(self.at - 2) or self._is_in_word(end + 1)
        if "\n" in part:
            self.spans.append(quote)
        if end < 0:
            self.fault = quote.without_end()
        self.line += part.count("\n")
        self.at += len(part) + 1
        self._command = self._fresh = False

    def _new_line(self) -> None:
        self.line += 1
        documents, self._documents = self._documents, []
        for document in documents:
            self._skip(document)
        self._command = not self.open or self.open[-1].word != _LIST
        self._fresh = True

    def _skip(self, document: _Document) -> None:
        """Go behind a here-document."""
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            self.at, self.line = end + 1, self.line + 1
            if (line.lstrip("\t") if document.tabs else line) == document.end:
                return

    def _parenthesis_of_number(self, token: str) -> None:
        if token == "(":
            self._push(_TERM)
        elif self.open[-1].word == _TERM:
            self._close(")")
        elif self.text.startswith(")", self.at):
            self.at += 1
            self._close("))")
        else:  # no number, but a substitution or a subshell that begins with another one
            self.open[-1].word = self.open[-1].word[:-1]
            self._command = self._fresh = True

    def _code(self, token: str, document: str | None) -> None:
        top = self.open[-1] if self.open else None
        if document:
            self._documents.append(_Document(re.sub(r"^<<-?\s*|[\\'\"]", "", document), document[2] == "-"))
            self._fresh = False
        elif token[0] in " \t":
            self._fresh = True
        elif token[0] in ";&|":
            if token[:2] in (";;", ";&") and any(one.word == "case" for one in self.open):
                self._end_of_item(token)
            self._command = self._fresh = True
        elif token in ("(", "<(", ">("):
            self._parenthesis(token, top)
        elif token == ")" and top and top.body == "pattern":
            top.body = ""
            self._command = self._fresh = True
        elif token == ")":
            self._close(")")
        elif self._fresh and token.startswith("#"):
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        else:
            self._word(token, top)

    def _end_of_item(self, token: str) -> None:
        if self.open[-1].word == "case":
            self.open[-1].body = "pattern"
        else:
            self._misfit(token)

    def _parenthesis(self, token: str, top: _Opening | None) -> None:
        if top and top.body == "pattern" and self._fresh:
            return
        before = self.text[self.at - 2 : self.at - 1]
        if token == "(" and self._fresh and self.text.startswith("(", self.at):
            self.at += 1
            self._push("((")
        elif token == "(" and ((before in "=?*+@!" and not self._fresh) or (top and top.word == _LIST)):
            self._push(_LIST)
        else:
            self._push("(")

    def _word(self, token: str, top: _Opening | None) -> None:
        is_whole = self._fresh and (self.text[self.at : self.at + 1] or " ") in " \t\n;&|()<>"
        may_be_reserved, self._fresh = self._command and is_whole, False
        if self._names_function and is_whole:
            self._names_function, self._command = False, True
        elif top and top.body in ("in", "pattern"):
            if is_whole and token == top.body:
                top.body = "pattern"
            elif is_whole and token == "esac" and top.body == "pattern":
                self._close(token)
        else:
            self._command = may_be_reserved and token in _BEFORE_COMMAND
            if may_be_reserved:
                self._reserved(token, top)

    def _reserved(self, token: str, top: _Opening | None) -> None:
        """Read the first word of a command."""
        if token in _BODIES or token == "{":
            self._push(token)
        elif token in ("then", "do") and top and top.body == token:
            top.body = ""
        elif token in ("elif", "else"):
            if top and top.word == "if" and top.body:
                self._without_body(top, token)
            elif top and top.word == "if":
                top.body, top.clause = ("then", self.line) if token == "elif" else ("", 0)
            else:
                self._misfit(token)
        elif token in ("fi", "done", "esac", "}"):
            self._close(token)
        elif token == "function":
            self._names_function = True

    def _push(self, word: str) -> None:
        compound = word in _BODIES or word in ("(", "((", "{")
        around = self.open[-1] if self.open and self.open[-1].word == "$(" else None
        substitution = around if around and around.line == self.line else None
        place = (word, self.line, self._indent(word), _BODIES.get(word, ""))
        opening = _Opening(*place, command=compound, substitution=substitution)
        opening.in_word = self._is_in_word(self.at - len(word) - 1)
        self.open.append(opening)
        self.too_deep = len(self.open) > _DEEPEST
        self._command = word in ("(", "$(", "`", "if", "while", "until", "{")
        self._fresh = word != '"'

    def _close(self, end: str) -> None:
        top = self.open[-1] if self.open else None
        if top is None or top.end != end:
            self._misfit(end)
            return
        if top.body and top.body != "pattern":
            self._without_body(top, end)
            return
        top.in_word |= self._is_in_word(self.at)
        if top.word == '"' and top.line != self.line:
            self.spans.append(top)
        own = self._indent(end)
        if own is not None and top.indent is not None and own < top.indent and self._suspect is None:
            outer = any(one.end == end and one.indent == own for one in self.open[:-1])
            self._suspect = top if outer else None
        self.open.pop()
        self._command, self._fresh = top.command, top.command and end == ")"

    def _without_body(self, top: _Opening, end: str) -> None:
        """Keep the fault of a part whose ``then`` or ``do`` is missing before a word."""
        word, line = ("elif", top.clause) if top.clause else (top.word, top.line)
        self.fault = Fault(line, f"{word} has no {top.body} before the {end}", top.fix_of_body)
        self.lacks_body = True

    def _is_in_word(self, at: int) -> bool:
        return at >= 0 and self.text[at : at + 1].isalnum()

    def _indent(self, word: str) -> int | None:
        """Return the columns before the word that was read, if it is the first one of its line."""
        start = self.at - len(word)
        begun = self.text.rfind("\n", max(0, start - _WIDEST), start)
        before = self.text[begun + 1 : start] if begun >= 0 or start < _WIDEST else "..."
        return None if before.strip() else len(before.expandtabs())

    def _misfit(self, word: str) -> None:
        """Keep the fault of a word that ends, or goes on with, another part than the one that is open."""
        others = {"e": "if", ";": "case", ")": "("}
        begins = [one for one in _ENDS if _ENDS[one] == word and one != "${"] or [others[word[0]]]
        if any(one.word in begins or one.end == word for one in self.open):
            self.fault = self.open[-1].without_end(f" before the {word} in line {self.line}")
        else:
            fix = f"remove it, or write the {' or '.join(begins)} that it ends above"
            if word == ")" and any(one.word == "case" for one in self.open):
                fix = "end the commands of the pattern above with ;;"
            self.fault = Fault(self.line, f"{word} has no {' or '.join(begins)} above it", fix)
