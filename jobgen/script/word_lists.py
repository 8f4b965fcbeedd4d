"""The words that a word of a script expands to, and its text for another shell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from jobgen.launch.command_line import begins_launch
from jobgen.script.commands import commands
from jobgen.script.constants import Constants, Part, variable_name, whole_expansion
from jobgen.script.syntax import Node, parse

DEEPEST = 5  # variables in variables, and shells in each other
TEXTS = ("string", "raw_string", "ansi_c_string", "concatenation")
_LONGEST = 4000  # bytes of a variable with options, which is read at each of its uses
_ARGUMENT = re.compile(r'"?\$(?:([@*\d])|\{([@*]|\d+)(?::(\d+))?\})"?')
_DEFAULT = (":-", "-", ":=", "=")
_ALTERNATIVE = (":+", "+")
_ESCAPE = re.compile(r"\\([$`\"\\])")  # in double quotes
# Signs in double quotes that a command line reads, and bash does not in the value of a variable.
_SIGN = re.compile(r"(?<!\\)[\"'`();&|<>]|(^|\s)(#|(\w+=)?~)|\\[^$`\"\\\n]|\{[^{}]*(,|\.\.)[^{}]*\}")
_EXPANSION = re.compile(r"\$\([^)]*\)+|`[^`]*`|\$\{[^}]*\}")
_ASSIGNMENT = re.compile(r"\s*-*\w[\w-]*=")
_BLANK = re.compile(r"\\?\n")
_JOINED = re.compile(r"(?<!\\)\\\n")  # a line that goes on, in double quotes
_ANY_NUMBER = re.compile(r"\$[@*]|\$\{[@*]|\[[@*]\]")  # arguments or elements of an array
_ESCAPES = {"n": "\n", "t": "\t", "'": "'", '"': '"', "\\": "\\"}


def expanded(word: Node, constants: Constants, place: Node | None = None, depth: int = 0) -> list[Node]:
    """Return the word, or the words of the variable or array of options that it expands to at a place.

    Variables in these words are expanded, too. Without a place only a variable is that is set once, and only
    the variable itself.
    """
    if (given := arguments(word, constants)) is not None:
        return given
    expansion = whole_expansion(word, *_DEFAULT)
    if expansion is None or depth > DEEPEST:
        return [word]
    name = variable_name(expansion)
    parts = constants.parts(name, place)
    if not parts and place is not None:
        default = _default(expansion) or constants.defaults.get(name)
        found = _words_of_default(default, word, constants, place, depth) if default is not None else []
        return found or [word]
    value = parts[0].value if parts else None  # of which a variable may have another value by now: A="$A -x"
    if (
        not parts
        or (len(expansion.children) > 3 and place is None)
        or sum(one.value.end - one.value.start for one in parts if one.value) > _LONGEST
        or (place is None and value is not None and _differs(value, parts[0], word, constants))
    ):
        return [word]
    return _words_of_parts(word, expansion, parts, constants, place, depth)


def runs_once(loop: Node, constants: Constants) -> bool:
    """Return whether a loop has one item: ``for n in 8``, ``{1..1}``, an array of one."""
    values = [child for child in loop.children if child.field == "value"]
    items = [one for value in values for one in expanded(value, constants, loop)]
    if loop.type != "for_statement" or len(items) != 1:
        return False
    if re.fullmatch(r"\W*seq +(?:(\w+) +\1|1)\W*", items[0].text):
        return True
    if items[0].type == "brace_expression":
        return re.fullmatch(r"\{(\w+)\.\.\1\}", items[0].text) is not None
    text = constants.value(items[0])
    return text is not None and not re.search(r"[\s*?\[{]", text)


def words_of_loop(loop: Node, constants: Constants) -> list[str]:
    """Return the words of ``for A in WORDS``, and the numbers of a range or of seq; empty if unknown."""
    found: list[str] = []
    for word in (one for one in loop.children if one.field == "value"):
        text = constants.text(word)
        range_ = re.fullmatch(r"\{(\d{1,4})\.\.(\d{1,4})\}|(?:\$\(|`)seq (?:(\d{1,4}) )?(\d{1,4})[)`]", text)
        if range_ is None and (re.search(r"[$`*?{]", text) or len(text.split()) != 1):
            return []
        first, last = (range_[1] or range_[3] or "1", range_[2] or range_[4]) if range_ else ("", "")
        found += map(str, range(int(first), int(last) + 1)) if range_ else [text]
    return found


def _differs(value: Node, part: Part, word: Node, constants: Constants) -> bool:
    """Return whether a value that a part has given may be another one at the place of a word."""
    end = word.start if word.source is part.assignment.source else None
    return constants.is_stale(value, part.assignment.start, end)


def _changes(words: list[Node]) -> bool:
    """Return whether a value is one word that would be another one at a second time: ``/x/$(mktemp -u)``."""
    if len(words) != 1:
        return False
    runs = (printed(one) is None for one in words[0].all("command_substitution"))
    return any(runs) or re.search(r"\$\{?RANDOM\b", words[0].text) is not None


def _words_of_parts(
    word: Node, expansion: Node, parts: list[Part], constants: Constants, place: Node | None, depth: int
) -> list[Node]:
    """Return the words that the parts of a variable are made of."""
    subscript, quoted = next(expansion.all("subscript"), None), word.type == "string"
    found: list[Node] = []
    for part in parts:
        value, assignment = part
        if value is None:
            found.append(word)  # it stands for words that the text does not determine
            continue
        is_text = not quoted and (_is_text(value) or printed(value) is not None)
        is_copy = value.type in ("simple_expansion", "expansion") and not quoted and place is not None
        if value.type == "array" and subscript and subscript.text.endswith(("[@]", "[*]")):
            inner = elements(value)
        elif is_text and (not found or value.text[1:2].isspace()):
            if (words := _split(value)) is None or _changes(words):
                return [word]
            is_code = place is not None or word.source is not assignment.source  # a text reads it as code
            if not (is_code or _is_plain(value, words) or _begins_launch(words, constants)):
                return [word]
            command = word.around("command")
            evaluated = command is not None and command.name == "eval"
            if not is_code and is_literal(value) and not evaluated:
                return [word]
            inner = words
        elif is_copy and not found:
            inner = [value]
        elif not found and (given := arguments(value, constants)) is not None:
            inner = given
        else:
            known = [constants.value(one) is not None for one in (word, value)]
            return [value] if len(parts) == 1 and known == [False, True] else [word]
        runs = (printed(one) is None for node in inner for one in node.all("command_substitution"))
        if place is None and any(runs):
            return [word]  # the commands would run a second time
        if place is not None:
            inner = [one for node in inner for one in expanded(node, constants, assignment, depth + 1)]
            if any(_differs(one, part, word, constants) for one in inner):
                return [word]
        found += inner
    return found


def _is_plain(value: Node, words: list[Node]) -> bool:
    """Return whether bash, which splits a value at blanks only, gets the words of a command line with it."""
    text = _EXPANSION.sub("$", code_text(value))
    if words == [value]:
        return re.search(r"\s|\[.*\]", text.strip()) is None  # a pattern for names of files
    if "$" not in text and re.search("[\"']", text):
        return True  # its quotes have a remark of convert
    return not _SIGN.search(text)


def is_literal(value: Node) -> bool:
    """Return whether a value has a ``$`` in single quotes: no variable, unless a shell evaluates it."""
    return any(re.search(r"\$[\w{(]|`", one.text) for one in value.all("raw_string"))


def _begins_launch(words: list[Node], constants: Constants) -> bool:
    first = constants.value(words[0]) if words else None
    return begins_launch(os.path.basename(first or ""))


def elements(array: Node) -> list[Node]:
    """Return the words of ``(A B)``, which may have comments between them."""
    return [one for one in array.children[1:-1] if one.type != "comment"]


def arguments(word: Node, constants: Constants) -> list[Node] | None:
    """Return the arguments that a word as ``"$@"``, ``$1`` or ``${@:2}`` is; None if they are unknown."""
    match = _ARGUMENT.fullmatch(word.text) if constants.arguments and "$" in word.text else None
    given = constants.arguments.at(word) if match and constants.arguments else None
    if match is None or given is None:
        return None
    name, first = match[1] or match[2], int(match[3] or 1)
    counted = given[: max(first - 1, 0) if name in "@*" else int(name)]
    if any(_ANY_NUMBER.search(one.text) for one in counted):
        return None
    if name in "@*":
        return list(given[max(first - 1, 0) :])
    one = given[int(name) - 1 : int(name)] if int(name) else ()
    if not one:
        return None
    split = _split(one[0]) if word.type != "string" and one[0].type in ("string", "raw_string") else None
    return split or list(one)


def _default(expansion: Node) -> Node | None:
    """Return the word of ``${NAME:-WORD}``; None for other expansions."""
    is_default = len(expansion.children) == 5 and expansion.children[2].type in _DEFAULT
    return expansion.children[3] if is_default else None


def _words_of_default(default: Node, word: Node, constants: Constants, place: Node, depth: int) -> list[Node]:
    """Return the words of a default that begins a launch; a user may set another value of an option."""
    words = [default] if word.type == "string" else _split(default) or []
    found = [one for node in words for one in expanded(node, constants, place, depth + 1)]
    return found if _begins_launch(found, constants) else []


def is_empty(word: Node, constants: Constants, place: Node) -> bool:
    """Return whether a word is nothing unless a user sets its variable: ``${DRY:-}`` and ``${DRY:+echo}``."""
    expansion = whole_expansion(word, *_DEFAULT, *_ALTERNATIVE)
    if expansion is None or word.type == "string":
        return False
    signs = [child.type for child in expansion.children[2:3]]
    parts = constants.parts(variable_name(expansion), place)
    if not parts:
        return signs[:1] in ([":+"], ["+"]) or (bool(signs) and len(expansion.children) == 4)
    value = parts[0].value
    inner = None if value is None or len(parts) > 1 else whole_expansion(value, *_DEFAULT)
    return inner is not None and len(inner.children) == 4


def _split(node: Node) -> list[Node] | None:
    """Return the words in a string of options, with expansions in them; None if they are not words."""
    text = code_text(node) if node.type == "raw_string" else _JOINED.sub("", code_text(node))
    text = _BLANK.sub(lambda match: " " * len(match[0]), text)
    if not re.search(r"[\s$*?]", text):
        return [node] if text else []
    words = _words(text, node.line)
    # A first word like --wait=60 or lr=0.1 is an assignment only in front of a command.
    if _ASSIGNMENT.match(text) and (not words or re.match(r"[-+]|\w+=", words[0].text)):
        words = (_words(f": {text}", node.line) or [])[1:]
    return words if words is None or words else [node] * bool(text.strip())


def _words(text: str, line: int) -> list[Node] | None:
    """Return the words of the first command in a text."""
    trees = (parse(one.encode(), line) for one in (text, unescaped(text)))
    tree = next((one for one in trees if not any(one.all("ERROR"))), None)
    if tree is None:
        return None
    found = next(commands(tree), None)
    return list(found.words) if found is not None else []


def _is_text(value: Node) -> bool:
    """Return whether a value is a string of words, perhaps with variables between its quotes."""
    if value.type != "concatenation":
        return value.type in ("string", "raw_string")
    return any(one.type == "string" and re.search(r"\s", one.text) for one in value.children)


def code_text(node: Node) -> str:
    """Return the text of a value whose variables are still expansions."""
    if node.type in ("string", "raw_string"):
        return node.text[1:-1]
    if node.type == "concatenation":
        return _joined(node, code_text)
    text = printed(node)
    return node.text if text is None else text


def printed(word: Node) -> str | None:
    """Return the text that ``$(echo TEXT)`` or ``$(cat <<END`` prints; None for other words."""
    found = list(commands(word)) if word.type == "command_substitution" else []
    if len(found) != 1:
        return None
    return output(found[0].name, found[0].arguments, next(word.all("heredoc_body"), None))


def output(name: str, words: tuple[Node, ...], body: Node | None) -> str | None:
    """Return what a command prints, as echo with its words or cat with a here-document; None if unknown."""
    if name == "cat" and not words and body is not None:
        return document_text(body)
    if name == "printf" and words and re.fullmatch(r"[\"']?%s(\\n)?[\"']?", words[0].text):
        return "".join(f"{shell_text(word)}\n" for word in words[1:])
    if name == "echo":
        return " ".join(shell_text(word) for word in words if word.text not in ("-e", "-n"))
    return None


def document_text(body: Node) -> str:
    """Return a here-document for another shell, which expands the variables in it."""
    return body.text if is_literal_document(body) else re.sub(r"\\([$`\\])", r"\1", body.text)


def is_literal_document(body: Node) -> bool:
    """Return whether the script expands nothing in a here-document: quotes are around its delimiter."""
    return body.parent is not None and re.match(r"<<-?\s*['\"\\]", body.parent.text) is not None


def shell_text(word: Node) -> str:
    """Return the text of a word for another shell, which expands the variables in it."""
    if word.type in ("string", "raw_string"):
        return part_of_text(word, word.text[1:-1])
    if word.type == "ansi_c_string":
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), word.text[2:-1])
    if word.type == "array":
        return " ".join(one.text for one in elements(word))
    if (text := printed(word)) is not None:
        return text
    return _joined(word, shell_text) if word.type == "concatenation" else word.text


def _joined(word: Node, text_of_part: Callable[[Node], str]) -> str:
    """Return the texts of the parts of a word, with braces where a variable would go on in the next one."""
    text = ""
    for part in reversed(word.children):
        own = text_of_part(part)
        braces = part.type == "simple_expansion" and re.match(r"\w", text)
        text = (f"${{{own[1:]}}}" if braces else own) + text
    return text


def text_of(word: Node, constants: Constants, place: Node) -> tuple[str, int | None] | None:
    """Return the text of a word and its line, or that of the variable or the arguments that it is."""
    if (given := arguments(word, constants)) is not None:
        return " ".join(map(shell_text, given)), None
    expansion = whole_expansion(word)
    if expansion is None:
        return (shell_text(word), word.line) if word.type in TEXTS else None
    name = variable_name(expansion)
    values = [one.value for one in constants.parts(name, place) if one.value]
    body = constants.documents.get(name)
    if not values and body is not None and body.start < place.start:
        return document_text(body), body.line
    if not values or sum(one.end - one.start for one in values) > _LONGEST:
        return None
    return (" " if values[0].type == "array" else "").join(map(shell_text, values)), None


def part_of_text(word: Node, part: str) -> str:
    """Return a part of the text between the quotes of a word as another shell reads it."""
    return part if word.type == "raw_string" else unescaped(part)


def places_of_text(word: Node) -> list[int]:
    """Return the place between the quotes of a word for each byte of its shell_text, and for the end."""
    text = word.text[1:-1]
    dropped = set() if word.type == "raw_string" else {one.start() for one in _ESCAPE.finditer(text)}
    kept = ((at, letter) for at, letter in enumerate(text) if at not in dropped)
    return [*(at for at, letter in kept for _ in letter.encode()), len(text)]


def unescaped(text: str) -> str:
    """Return a text from double quotes, without the backslashes that the shell removes."""
    return _ESCAPE.sub(r"\1", text)
