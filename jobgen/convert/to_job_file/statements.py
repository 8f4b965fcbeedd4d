"""The statements of a script before and after its program."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from jobgen.convert.result import Remark, hint, remark_on, shortened, shown
from jobgen.script.commands import commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, in_background

SEPARATORS = (";", "&", ";;")
FAILURE = re.compile(r"(return|false)\b")  # behind ``||`` they fail as the command before it
END_OF_STRICT = "# as set -e"  # behind the end of the block after of a program that has failed
IN_LOG = "the output is in the log of the job and in its run directory"
OTHER_STATUS = "the job ends with the status of the program, and the script with that of this command"
STATUS = re.compile(r"\?|PIPESTATUS")  # the variables of the status of the last command
_SETS_STATUS = ("command", "test_command", "variable_assignment", "declaration_command")
_DEEPEST = 3  # calls of functions
# Letters of text from web pages, a command that is not found, and a backslash at the end of the script.
_NOTHING = "\u200b\u200c\u200d\ufeff\\ \n"


class Split(NamedTuple):
    """The statements of a script around its program, those on whose success it depends, which follow the ones
    before it, and those that depend on its status, each behind its sign: ``|| exit 1``. ``piped`` is the
    command that gives the pipeline of the program another status than this has. ``background``: the script
    goes on beside the program, whatever its status."""

    before: tuple[Node, ...]
    after: tuple[Node, ...]
    conditions: tuple[Node, ...] = ()
    last: tuple[tuple[str, Node], ...] = ()
    piped: Node | None = None
    background: bool = False

    @property
    def sign(self) -> int | None:
        """The index of the ``&`` that leaves the program, or the group that it is in, in the background."""
        signs = (at for at, one in enumerate(self.after) if one.type == "&")
        return next((at for at in signs if self.after[at].previous() not in self.after), None)

    @property
    def behind(self) -> list[Node]:
        """The statements after the program, without the signs between them."""
        return [one for one in self.after if one.type not in SEPARATORS and one.text.strip()]


def reached(script: Script) -> Script:
    """Return a script without what is behind an ``exit`` to which its shell always comes."""
    ends = (one for one in script.tree.children if one.type == "command" and re.match(r"exit\b", one.text))
    end = next((one for one in ends if (sign := one.next()) is None or sign.type != "&"), None)
    if end is None or script.tree.damaged:
        return script
    return replace(script, source=script.source[: end.end])


def split(script: Script, node: Node, remarks: list[Remark]) -> Split:
    """Return the statements before and after the statement of a command."""
    before, after = list[Node](), list[Node]()
    block, path = script.tree, [node, *node.above()]
    while True:
        around = [one for one in block.children if one.type not in ("comment", "{", "}", "\n")]
        around = [one for one in around if one.text.strip(_NOTHING)]
        if (top := next((one for one in around if one in path), None)) is None:
            return Split((*before, *around), tuple(after))
        at = around.index(top)
        before += around[:at]
        after[:0] = around[at + 1 :]
        if top is not node and (inner := _group(top)) is not None:
            if top.type == "redirected_statement":
                remarks += redirections(top)
            block = inner
        elif (call := _only_call(script, top, after)) is not None:
            inner = top.get("body")
            assert inner is not None
            before += after[: after.index(call)]
            after = after[after.index(call) + 1 :]
            block = inner
        else:
            break
    conditions, last = _beside(node, top, remarks)
    pipeline = next((one for one in node.above() if one.type == "pipeline" and one in top), None)
    end = pipeline.children[-1] if pipeline is not None and not script.pipefail else node
    piped = None if node is end or node in end else end
    return Split(tuple(before), tuple(after), tuple(conditions), tuple(last), piped, in_background(node))


def without(statements: Sequence[Node], removed: Sequence[Node]) -> list[Node]:
    """Return statements without some of them, and without the semicolons behind these."""
    signs = [one.next() for one in removed]
    return [one for one in statements if one not in removed and not (one.type == ";" and one in signs)]


def reads_status(script: Script, statement: Node, depth: int = 0) -> bool:
    """Return whether a statement reads the status of the command before it: ``if [ $? = 0 ]``."""
    read = [
        one for one in statement.all("variable_name", "special_variable_name") if STATUS.fullmatch(one.text)
    ]
    read = [one for one in read if not one.under("function_definition") or depth]
    first = min((_expanded_at(one) for one in read), default=math.inf)
    ended = min((one.end for one in statement.all(*_SETS_STATUS)), default=math.inf)
    if first < ended or depth > _DEEPEST:
        return first < ended
    called = next(commands(statement), None)
    functions = (one for one in script.tree.all("function_definition") if called and one.name == called.name)
    return any(reads_status(script, body, depth + 1) for one in functions if (body := one.get("body")))


def _expanded_at(name: Node) -> int:
    """Return the start of a variable, or of the statement whose redirections it is in."""
    redirection = name.around("file_redirect", "heredoc_redirect", "herestring_redirect")
    return (redirection.parent or redirection).start if redirection is not None else name.start


def _group(statement: Node) -> Node | None:
    """Return the group ``{ ...; }`` that a statement is, maybe with redirections."""
    body = statement.children[0] if statement.type == "redirected_statement" else statement
    return body if body.type == "compound_statement" and body.text.startswith("{") else None


def _only_call(script: Script, statement: Node, after: Sequence[Node]) -> Node | None:
    """Return the only call of a function, if it hands on the arguments of the script, or none."""
    if statement.type != "function_definition":
        return None
    calls, body = list(script.named(statement.name)), statement.get("body")
    if len(calls) != 1 or body is None or _group(body) is None:
        return None
    plain = [word.text for word in calls[0].arguments] in ([], ['"$@"'], ["$@"])
    return calls[0].node if plain and any(one is calls[0].node for one in after) else None


def _each(condition: Node) -> list[Node]:
    """Return the parts of a condition that must all hold."""
    if condition.type == "list" and condition.children[1].text == "&&":
        return [*_each(condition.children[0]), *_each(condition.children[-1])]
    return [condition]


def _beside(node: Node, top: Node, remarks: list[Remark]) -> tuple[list[Node], list[tuple[str, Node]]]:
    """Return the conditions of a command and what depends on its status; add remarks on the rest."""
    conditions, last = list[Node](), list[tuple[str, Node]]()
    while node is not top and node.parent is not None:
        above = node.parent
        if above.type == "list":
            start, sign, end = above.children[0], above.children[1].text, above.children[-1]
            if node is end and sign == "&&":
                conditions[:0] = _each(start)
            elif node is start:
                last.append((sign, end))
            else:
                remarks.append(Remark(above.line, shown(start), "the program starts in any case"))
        elif above.type == "redirected_statement":
            remarks += redirections(above)
        elif above.type == "pipeline":
            _piped(node, above, remarks)
        elif above.type != "negated_command":
            places = {"do_group": "a loop", "subshell": "a subshell", "heredoc_redirect": "a pipeline"}
            what = places.get(above.type, "a condition")
            calls = above.under("function_definition")
            why = f"the program is in {'a function' if calls else what}: a job file starts it once, and "
            why += "the commands after it call the whole function" if calls else "nothing else of it"
            remarks.append(remark_on(top, why, lost=True))
            last = [one for one in last if not re.match(r"(break|continue)\b", one[1].text)]  # of a loop
            return ([], []) if calls else (conditions, last)
        node = above
    return conditions, last


def compound(node: Node) -> Node | None:
    """Return the statement around a command that is more than the command; None if there is no more."""
    whole = None
    around = [one for one in node.above() if one.type != "program"]
    while around and around[-1].type == "compound_statement" and _group(around[-1]) is not None:
        around.pop()  # whose statements are those of the script
    for above in around:
        if above.type == "function_definition":
            return None
        is_list = above.type == "list" and above.children[-1] is node and above.children[1].text == "&&"
        if not is_list or whole is not None:
            whole = above
    return whole


def redirections(statement: Node) -> Iterator[Remark]:
    """Yield remarks on the redirections of a statement, which a job file does not have."""
    for child in statement.children:
        number = "".join(one.text for one in child.children if one.type == "file_descriptor")
        sign_and_file = [one.text for one in child.children if one.type != "file_descriptor"][:2]
        text = shortened(number + " ".join(sign_and_file))
        is_file = child.type not in ("heredoc_redirect", "herestring_redirect")
        if not is_file or child.text.lstrip("0").startswith("<"):
            yield Remark(child.line, text, "the ranks have no standard input")
        elif child.type == "file_redirect" and not re.match(r"\d*[<>]&\s*[\d-]", child.text):
            yield hint(child.line, text, IN_LOG)


def _piped(node: Node, pipeline: Node, remarks: list[Remark]) -> None:
    for one in pipeline.children:
        if one is node or one.type in ("|", "|&"):
            continue
        in_log = one.start > node.start and one.text.startswith("tee ")
        why = IN_LOG if in_log else "the program is not in a pipeline"
        remarks.append(remark_on(one, why, lost=not in_log))
