"""The syntax tree of a script: tree-sitter's tree in plain Python objects that know their parents.

Rules find commands in this tree, not with regular expressions: a comment, a string or a here-document that
looks like a command is not taken for one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING

from jobgen.errors import JobgenError

if TYPE_CHECKING:
    from tree_sitter import Parser

LOOPS = ("for_statement", "while_statement", "c_style_for_statement")
LATER = ("function_definition", "if_statement", "case_statement", *LOOPS)  # may not run, or not only once
_OF_STRINGS = ('"', "simple_expansion", "expansion", "command_substitution", "arithmetic_expansion")
_BLANKS = re.compile(rb"(?:\s|\\\n)*")  # and ends of lines that continue
MISSING = "MISSING"  # in an index by type: the words that the text should have
_BESIDE = ("redirected_statement", "pipeline", "list")  # what begins with its first command
_DEEPEST = 150  # levels; deeper nodes, which no person writes, are left out
# tree-sitter ends the words $A/$B/c, $A/b$C-d, $A/$1 and "$A "$1 before their last $, and takes the 1b of $1b
# for a name; it reads $A/${B}/c and ${1}b correctly.
_MISREAD = re.compile(
    rb"(?:(?<=[\w/.:,@%+^=*-])(?=\$(?:\d|[A-Za-z_]\w*[/.:,@%+-]))|(?<=[\"'])(?=\$\d)|(?<![\\$])(?=\$\d\w))"
    rb"\$([A-Za-z_]\w*|\d)"
)
# It ends a word at the end of its line, though the next line continues it: a,\ and b. Comments end there.
_JOINED = re.compile(rb"(?m)^(?:[^#\n]|(?<=\S)#)*[^\s\\;|&()<>](\\\n)(?=[^\s;|&()<>#])(?![A-Z_]+$)")
# It takes the command \rm at the beginning of a line for a word of the command before.
_NO_ALIAS = re.compile(rb"(?m)(?<!\\\n)^([ \t]*)\\(?=[A-Za-z])")
# What tree-sitter misreads, and what has the same length and is read as bash reads the first.
_REPAIRS: tuple[tuple[re.Pattern[bytes], bytes | Callable[[re.Match[bytes]], bytes]], ...] = (
    # A comment between the words of a command: a `# text` \\
    (re.compile(rb"`(#[^`\n]*)`"), lambda one: b"`:" + b" " * (len(one[1]) - 1) + b"`"),
    # The quote or the bracket of a pattern: ${A#\'}, ${A//\'/}, ${A#*[}
    (
        re.compile(rb"(\$\{\w+(?:##?|%%?|//?)\*?)(\\['\"]|[][](?=\*?\}))"),
        lambda one: one[1] + b"-" * len(one[2]),
    ),
    # It ends the words $A\_b and $A\$b before the backslash, and leaves out the first sign of \ b.
    (re.compile(rb"(?<!\\)\\(?:\$|[_ ](?=\S))|(?<=[^\s\\])\\ "), b"-."),
    # An operator of a test without its dash.
    (re.compile(rb"((?<=\[ )[^\[\]\n]* )(?:gt|lt|ge|le|eq|ne)(?= [^\[\]\n]* \])"), rb"\1=="),
    # A backslash at the end of the text.
    (re.compile(rb"(?<!\\)\\(?=\s*\Z)"), b" "),
    # It takes the last $ of a word, and that in $= of sed, for the beginning of a variable.
    (re.compile(rb"(?<!\$)\$(?=[=;)`])"), b"-"),
    # An expression of let in parentheses: let a=(b/60)%60
    (re.compile(rb"(?m)(\blet[ \t]+\w+=)\(([^()\n\"']*)\)"), rb"\1-\2-"),
    # A file for reading and writing behind a descriptor: 3<>FILE.
    (re.compile(rb"(?<=[\d}])<>(?=[ \t]*[\w$\"'./~])"), b"< "),
    # The base of a number: $((10#$A + 1)).
    (re.compile(rb"(?<![\w$])(\d+)#(?=\$)"), rb"\1+"),
)
# It finds no here-document without a command, which people write as a comment.
_NO_COMMAND = re.compile(rb"(?m)(?<!\\\n)^[ \t]*(?=<<-?[ \t]*['\"]?[A-Za-z_]\w*['\"]?[ \t]*$)")

# It finds no $1 in a here-document.
_BODY = re.compile(rb"(?ms)<<-?[ \t]*([A-Za-z_]\w*)\b[^\n]*\n(.*?)^\t*\1[ \t]*$")
_ARGUMENT = re.compile(rb"(?<!\\)\$(\d)")
# The text of another language in a command of it: `awk '{print $1}'`
_IN_BACKTICKS, _QUOTED = re.compile(rb"`[^`]*`"), re.compile(rb"'[^']*'")
# It ends a word before `code` that more of the word follows, as it does not before $(code): a-`date`.log
_CODE = re.compile(rb"`[^`\\\n]*`")
_ENDS_WORD = b" \t\n`;|&<>("
# It takes two codes with blanks alone between them for one: `a` `b`
_CODE_BEHIND = re.compile(rb"[ \t]*`(?![ \t\n`])")
# It finds no code in an empty substitution: $() and A=``
_NO_CODE = re.compile(rb"\$\((?=[ \t]*\))|(?<==)`(?=`)")

# tree-sitter takes $((A) && B) for a number; with a blank it reads the substitution that it is.
_PART = rb"""[^()'"]|'[^']*'|"[^"]*\""""
_SUBSHELL = re.compile(rb"\$\((?=\((?:%(p)b|\((?:%(p)b|\((?:%(p)b)*\))*\))*\)(?!\)))" % {b"p": _PART})
# It takes the number ${A:-$((1 + 2))} for a substitution; between quotes it reads the number that it is.
_NUMBER = re.compile(
    rb"\$\{\w+:?[-=+?](\$\(\((?:%(p)b|\((?:%(p)b|\((?:%(p)b|\((?:%(p)b)*\))*\))*\))*\)\))(?=\})"
    % {b"p": _PART}
)
# It takes the sign behind the delimiter for a part of it: cat <<END>file
_JOINED_DELIMITER = re.compile(rb"<<-?[ \t]*[A-Za-z_]\w*(?=[<>|;&)])")
_DELIMITER = re.compile(rb"<<-?[ \t]*['\"\\]?([A-Za-z_]\w*)")
# tree-sitter finds no here-document before the sign: ssh HOST <<END &
_HEREDOC = re.compile(rb"(?m)(<<-?[ \t]*['\"\\]?[A-Za-z_]\w*['\"]?[^\n;|&]*)&(?=[ \t]*$)")


class Node:
    """A node of the tree. ``field`` is its role in its parent; ``line`` counts from 1."""

    __slots__ = (
        *("by_type", "children", "damaged", "end", "field", "index", "line", "parent", "source", "start"),
        *("_text", "type", "value"),
    )

    def __init__(
        self,
        type: str,
        field: str | None,
        start: int,
        end: int,
        line: int,
        source: bytes,
        parent: Node | None,
    ) -> None:
        self.type, self.field, self.start, self.end, self.line = type, field, start, end, line
        self.source, self.parent = source, parent
        self.children: list[Node] = []
        self._text: str | None = None
        self.value: tuple[str | None] | None = None  # of a word that is made of others, once it was read
        # Of the root only: its nodes by type, an index for the rules; the text has an error of syntax.
        self.by_type: dict[str, list[Node]] | None = None
        self.damaged = False
        self.index = 0
        if parent is not None:
            self.index = len(parent.children)
            parent.children.append(self)

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = self.source[self.start : self.end].decode("utf-8", "replace")
        return self._text

    @property
    def unquoted(self) -> str:
        """The text without the quotes around it."""
        return self.text.strip("\"'")

    @property
    def name(self) -> str:
        """The text of the name of a command, a function or a variable; empty without one."""
        found = self.get("name")
        return "" if found is None else found.text

    def all(self, *types: str) -> Iterator[Node]:
        """Yield this node and all nodes below it, in the order of the text; with ``types``, only those."""
        if types and self.by_type is not None:
            found = [node for type in types for node in self.by_type.get(type, ())]
            yield from found if len(types) == 1 else sorted(found, key=lambda node: (node.start, -node.end))
            return
        stack = [self]
        while stack:
            node = stack.pop()
            if not types or node.type in types:
                yield node
            stack.extend(reversed(node.children))

    def above(self) -> Iterator[Node]:
        """Yield the parent of this node, the parent of that, and so on."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def __contains__(self, node: Node) -> bool:
        """Return whether a node is in the text of this one."""
        return self.source is node.source and self.start <= node.start < self.end

    def under(self, *types: str) -> bool:
        return any(node.type in types for node in self.above())

    def around(self, *types: str) -> Node | None:
        """Return the innermost node of these types above this one."""
        return next((node for node in self.above() if node.type in types), None)

    def child_of(self, type: str) -> Node | None:
        """Return the parent of this node if it has this type."""
        return self.parent if self.parent is not None and self.parent.type == type else None

    def get(self, field: str) -> Node | None:
        return next((child for child in self.children if child.field == field), None)

    def next(self) -> Node | None:
        return self._beside(1)

    def previous(self) -> Node | None:
        return self._beside(-1)

    def _beside(self, step: int) -> Node | None:
        if self.parent is None:
            return None
        brothers = self.parent.children
        at = self.index + step
        return brothers[at] if 0 <= at < len(brothers) else None


@cache
def _parser() -> Parser:
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        raise JobgenError(
            "reading a script needs the Python packages tree-sitter and tree-sitter-bash: "
            "pip install tree-sitter tree-sitter-bash"
        ) from None
    return Parser(Language(tree_sitter_bash.language()))


def parse(source: bytes, first_line: int = 1) -> Node:
    """Return the tree of a script. Text with errors of syntax is left out."""
    plain, joined = source, list[int]()
    if b"\\" in source:
        joined = [one.start(1) for one in _JOINED.finditer(source)]
        text = bytearray(source)
        for at in joined:
            text[at : at + 2] = b"-."
        plain = _NO_ALIAS.sub(rb"\1_", bytes(text))
    for pattern, repair in _REPAIRS:
        plain = pattern.sub(repair, plain)
    clear, added = _clarified(_with_ends(_HEREDOC.sub(rb"\1 ", plain)) if b"<<" in plain else plain)
    tree = _parser().parse(clear)
    cursor = tree.walk()
    root, parent, depth = None, None, 0
    by_type: dict[str, list[Node]] = {}
    while True:
        found = cursor.node
        assert found is not None
        start, end = found.start_byte, found.end_byte
        if added:
            start, end = start - bisect_left(added, start), end - bisect_left(added, end)
        line = found.start_point.row + first_line + bisect_left(joined, start)
        if parent is not None and parent.type == "string" and found.type in _OF_STRINGS:
            # tree-sitter has the blanks before it in the node
            start = end - len(_BLANKS.sub(b"", source[start:end], count=1))
        node = Node(found.type, cursor.field_name, start, end, line, source, parent)
        by_type.setdefault(node.type, []).append(node)
        if start == end and found.is_missing:
            by_type.setdefault(MISSING, []).append(node)
        root = root or node
        if not found.is_error and depth < _DEEPEST and cursor.goto_first_child():
            parent, depth = node, depth + 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                root.by_type, root.damaged = by_type, tree.root_node.has_error
                lines = by_type.setdefault("variable_assignments", [])
                lines += [line for one in by_type.get("command", ()) for line in _lines_of_assignments(one)]
                lines.sort(key=lambda one: one.start)
                return root
            assert parent is not None
            parent, depth = parent.parent, depth - 1


def _lines_of_assignments(command: Node) -> Iterator[Node]:
    """Take the line before out of a command, and yield it: tree-sitter reads ``A=1 B=2`` as its beginning."""
    count = len(list(takewhile(lambda one: one.type == "variable_assignment", command.children)))
    found, name = command.children[:count], command.get("name")
    between = command.source[found[-1].end : name.start] if name is not None and count > 1 else b""
    if name is None or not re.match(rb"[ \t]*(#.*)?\n", between):
        return
    start, end = command.start, found[-1].end
    line = Node("variable_assignments", None, start, end, command.line, command.source, None)
    comments = list(takewhile(lambda one: one.type == "comment", command.children[count:]))
    _set_children(line, found)
    _set_children(command, command.children[count + len(comments) :])
    top = command
    while top.parent is not None and top.parent.type in _BESIDE and top.parent.start == start:
        top.start, top.line, top._text = name.start, name.line, None
        top = top.parent
    top.start, top.line, top._text = name.start, name.line, None
    assert top.parent is not None
    brothers = top.parent.children
    _set_children(top.parent, [*brothers[: top.index], line, *comments, *brothers[top.index :]])
    yield line


def _set_children(node: Node, children: list[Node]) -> None:
    node.children = children
    for at, one in enumerate(children):
        one.parent, one.index = node, at


def with_body_in_place(root: Node) -> Node:
    """Return a tree without the function that has the body of the script and is called at the end:
    its statements, which run once and in their order, are those of the script.

    Between it and its call are other functions only, and its call is the only use of its name.
    """
    nodes = [one for one in root.children if one.type not in ("comment", "\n", ";")]
    call = nodes[-1] if nodes else root
    if call.type != "command" or not re.fullmatch(r"\w+( \"?\$@\"?)?", call.text):
        return root
    name = call.text.split()[0]
    functions = takewhile(lambda one: one.type == "function_definition", reversed(nodes[:-1]))
    found = next((one for one in functions if one.name == name), None)
    uses = re.findall(rf"(?<![\w./-]){name}(?![\w./=-])", root.text) if found is not None else []
    body = found.get("body") if found is not None else None
    if found is None or body is None or len(uses) != 2 or re.search(r"\breturn\b|\$[1-9@*#]", body.text):
        return root
    by_type = root.by_type or {}
    for node in (found, body, call):
        by_type[node.type].remove(node)
    kept = [one for one in root.children if one not in (found, call)]
    _set_children(root, [*kept, *body.children[1:-1]])
    return root


def has_errors(source: bytes) -> bool:
    """Return whether a text has errors of syntax as a script of bash."""
    return _parser().parse(source).root_node.has_error


def _with_ends(source: bytes) -> bytes:
    """Return a script without blank lines before ends of here-documents, which tree-sitter then misses."""
    for end in {match[1] for match in _DELIMITER.finditer(source)}:
        blank = rb"(?m)^[ \t]+(?=(\n[ \t]*)*\n\t*" + end + rb"$)"
        source = re.sub(blank, lambda one: b"-" * len(one[0]), source)
    return source


def _clarified(source: bytes) -> tuple[bytes, list[int]]:
    """Return a script with signs that keep tree-sitter from misreading it, and their offsets."""
    codes = [one.span() for one in _CODE.finditer(source)]
    inside = [span for span in codes if _is_in_word(source, *span) or _CODE_BEHIND.match(source, span[1])]
    if inside:
        text = bytearray(source)
        for start, end in inside:
            text[start], text[end - 1] = b"()"
        source = bytes(text)
    names = {one.span(1) for one in _MISREAD.finditer(source)}
    numbers = [one.span(1) for one in _NUMBER.finditer(source)] if b"$((" in source else []
    for body in _BODY.finditer(source) if b"<<" in source else ():
        commands = (one.span() for one in _IN_BACKTICKS.finditer(source, *body.span(2)))
        quoted = [one.span() for span in commands for one in _QUOTED.finditer(source, *span)]
        found = (one.span(1) for one in _ARGUMENT.finditer(source, *body.span(2)))
        names.update(one for one in found if not any(start < one[0] < end for start, end in quoted))
    signs = [(at, sign) for span in names for at, sign in zip(span, (b"{", b"}"), strict=True)]
    signs += [(one.end(), b":") for one in (_NO_COMMAND.finditer(source) if b"<<" in source else ())]
    signs += [(at, b'"') for span in numbers for at in span]
    signs += [(at, b"$") for at, _ in inside]
    signs += [(one.end(), b":") for one in _NO_CODE.finditer(source)]
    signs += [(one.end(), b" ") for one in (_JOINED_DELIMITER.finditer(source) if b"<<" in source else ())]
    signs += [(one.end(), b" ") for one in (_SUBSHELL.finditer(source) if b"$((" in source else ())]
    parts, end = list[bytes](), 0
    for at, sign in sorted(signs):
        parts += [source[end:at], sign]
        end = at
    return b"".join([*parts, source[end:]]), [at + n for n, (at, _) in enumerate(sorted(signs))]


def _is_in_word(source: bytes, start: int, end: int) -> bool:
    """Return whether the word that has a part goes on before and behind it."""
    before, behind = source[max(start - 1, 0) : start], source[end : end + 1]
    return bool(before and behind) and before not in _ENDS_WORD and behind not in _ENDS_WORD + b")"


def without_parts(source: bytes, parts: Iterable[tuple[int, int]]) -> bytes:
    """Return a source with blanks in the place of parts."""
    text = bytearray(source)
    for start, end in parts:
        text[start:end] = b" " * (end - start)
    return bytes(text)


def blanks(source: bytes, start: int, end: int) -> str:
    """Return the blanks between two parts of a word, which have no node."""
    return source[start:end].decode("utf-8", "replace").replace("\\\n", "")


def literal(node: Node) -> str | None:
    """Return a word as bash reads it, without quotes and escapes; None if its value is known only later."""
    if node.type == "string_content":
        return _unescaped_in_quotes(node.text)
    if node.type in ("word", "number", "variable_name", "extglob_pattern", "regex"):
        return _unescaped(node.text) if "\\" in node.text else node.text
    if node.type == "raw_string":
        return node.text[1:-1]
    if node.type in ("command_name", "concatenation", "string"):
        if node.value is None:
            node.value = (_of_parts(node),)
        return node.value[0]
    return None


def _of_parts(node: Node) -> str | None:
    """Return the value of a word that is made of others."""
    inner = [child for child in node.children if child.type != '"']
    if node.type == "string" and not inner:
        return blanks(node.source, node.start + 1, node.end - 1)
    if node.type == "string" and inner[0].type == "string_content":
        return _unescaped_in_quotes(node.text[1:-1]) if len(inner) == 1 else None
    parts = [literal(child) for child in inner]
    return None if None in parts else "".join(part for part in parts if part is not None)


def _unescaped_in_quotes(text: str) -> str:
    """Return the value of a text in double quotes, where a backslash escapes four characters only."""
    return re.sub(r'\\([$`"\\])|\\\n', r"\1", text)


def _unescaped(text: str) -> str:
    out, escaped = [], False
    for char in text:
        if escaped or char != "\\":
            out.append("" if escaped and char == "\n" else char)
            escaped = False
        else:
            escaped = True
    return "".join(out)


def is_prefix(assignment: Node) -> bool:
    """Return whether an assignment is in front of a command, for which alone it holds."""
    return assignment.parent is not None and assignment.parent.type == "command"


def expansions(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield each ``$NAME`` and ``${NAME...}`` below a node: the name and the expansion."""
    for found in node.all("simple_expansion", "expansion"):
        for child in found.children:
            named = child.get("name") if child.type == "subscript" else child
            if named is not None and named.type in ("variable_name", "special_variable_name"):
                yield named.text, found
                break


def is_plain(expansion: Node) -> bool:
    """Return whether an expansion is a variable alone, without a default or an index."""
    return expansion.type != "expansion" or re.fullmatch(r"\$(\w+|\{\w+\})", expansion.text) is not None


def uses(node: Node, *names: str) -> bool:
    return any(name in names for name, _ in expansions(node))


def assignments(root: Node) -> Iterator[tuple[str, Node, Node]]:
    """Yield each ``NAME=VALUE``, prefixes of commands included: the name, the value and the assignment."""
    for node in root.all("variable_assignment"):
        name, value = node.get("name"), node.get("value")
        if name is not None and name.type == "variable_name":
            yield name.text, value if value is not None else node, node


def defaults(root: Node) -> dict[str, Node]:
    """Return the words of ``${NAME:=WORD}``, the first of each name."""
    found = [one.children for one in root.all("expansion") if len(one.children) == 5]
    return {parts[1].text: parts[3] for parts in reversed(found) if parts[2].type in (":=", "=")}


def documents(root: Node) -> dict[str, Node]:
    """Return the here-documents that variables have as a whole, by ``read -d '' NAME <<END``."""
    found: dict[str, Node] = {}
    for body in root.all("heredoc_body"):
        statement = body.around("redirected_statement")
        words = statement.children[0].children if statement is not None else []
        texts = [literal(word) for word in words if word.type != "variable_assignment"]
        if (
            texts[:1] == ["read"]
            and "" in texts[2:-1]
            and re.fullmatch(r"-\w*d", texts[texts.index("") - 1] or "")
        ):
            found[texts[-1] or ""] = body
    return found


def function_of(node: Node) -> str:
    """Return the name of the function around a node; empty without one."""
    return next((one.name for one in node.above() if one.type == "function_definition" and one.name), "")


def exported(assignment: Node) -> bool:
    parent = assignment.parent
    if parent is None or parent.type not in ("declaration_command", "command"):
        return False
    options = (re.fullmatch(r"-\w*x\w*", child.text) for child in parent.children)
    return parent.type == "command" or parent.children[0].type == "export" or any(options)


def statement(node: Node) -> Node:
    """Return the whole statement of a command, with its redirections, its pipeline and its list."""
    for above in node.above():
        if above.type not in ("redirected_statement", "pipeline", "list", "negated_command"):
            break
        node = above
    return node


def on_condition(node: Node) -> bool:
    """Return whether a command runs only if another one succeeds or fails, as that behind ``[ ... ] &&``."""
    for above in node.above():
        if above.type in ("if_statement", "case_statement"):
            return True
        if above.type == "list" and above.children[0].end <= node.start:
            return True
    return False


def in_background(node: Node) -> bool:
    """Return whether ``&`` follows the statement or a compound statement around it."""
    whole = statement(node)
    for part in (whole, *whole.above()):
        after = part.next()
        if after is not None and after.type == "&":
            return True
        if part.type == "redirected_statement":
            documents = (one for one in part.children if one.type == "heredoc_redirect")
            if any(_HEREDOC.match(one.source, one.start) for one in documents):
                return True
        if part.type in ("function_definition", "command_substitution"):
            return False
    return False
