"""A program in the background of a script, which waits for it and passes signals on to it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.convert.result import Remark, remark_on
from jobgen.convert.to_job_file.statements import Split, without
from jobgen.script.command_kinds import PRINT
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, parse

_KILL = re.compile(r"kill (?:-s )?-?(?:SIG)?([A-Z][A-Z0-9]+) \"?\$\{?(\w+|!)\}?\"?")
_WAIT = re.compile(r"wait (?:-f )?\"?\$\{?(\w+|!)\}?\"?")
_REPEATS = re.compile(r"trap - [\w ]+|wait\b.*")


def without_waiting(script: Script, parts: Split, remarks: list[Remark]) -> tuple[Split, list[Node]]:
    """Leave out the id of the program, messages with it, traps that pass a signal on, and the ``wait``.

    jobgen waits for the program and passes signals on by itself; the commands after it find its status.
    Return the rest, and what is left out.
    """
    if not parts.after or parts.after[0].type != "&":
        return parts, []
    plain = parts.behind
    first = re.fullmatch(r"(\w+)=\$!", plain[0].text) if plain else None
    ids = {"!", first[1] if first else "!"}
    reads = re.compile(rf"\$\{{?({'|'.join(ids)})(?!\w)")
    traps = list(_passing_on(script, ids))
    removed = plain[:1] if first else []
    waits = False
    for one in plain[len(removed) :]:
        if (wait := _WAIT.fullmatch(one.text)) and wait[1] in ids:
            waits = True
        elif one not in [trap.node for trap in traps] and not (waits and _REPEATS.fullmatch(one.text)):
            if waits or {command.name for command in commands(one)} - PRINT:
                break
            if not reads.search(one.text):
                continue
        removed.append(one)
    if not waits or any(reads.search(one.text) for one in plain if one not in removed):
        return parts, []
    called = {trap.arguments[0].text for trap in traps} & script.functions.keys()
    removed += [trap.node for trap in traps]
    removed += [one for one in parts.before if one.type == "function_definition" and one.name in called]
    why = "is left out: jobgen passes the signal on to the program, and waits for its end"
    remarks += [remark_on(trap, why) for trap in traps]
    before, after = (tuple(without(found, removed)) for found in (parts.before, parts.after[1:]))
    return parts._replace(before=before, after=after, background=False), removed


def trap_code(trap: Command) -> str:
    """Return the commands of a trap."""
    text = trap.arguments[0].text if trap.arguments else ""
    return re.sub(r"^(['\"])(.*)\1$", r"\2", text, flags=re.DOTALL).replace(r"\$", "$")


def _passing_on(script: Script, ids: set[str]) -> Iterator[Command]:
    """Yield the traps that only send the signal that they get to the program."""
    for trap in script.named("trap"):
        if len(trap.arguments) < 2:
            continue
        code = trap_code(trap)
        function = script.functions.get(code)
        body = function.partition("{")[2].rpartition("}")[0] if function is not None else code
        texts = [one.node.text for one in commands(parse(f"{body}\n".encode())) if one.name not in PRINT]
        sent = [match for text in texts if (match := _KILL.fullmatch(text))]
        signals = {one.text.removeprefix("SIG") for one in trap.arguments[1:]}
        waits = [match for text in texts if (match := _WAIT.fullmatch(text))]
        own = all(match[1] in ids for match in waits) and all(match[2] in ids for match in sent)
        if own and sent and len(sent) + len(waits) == len(texts) and signals == {one[1] for one in sent}:
            yield trap
