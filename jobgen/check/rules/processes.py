"""Rules about processes: waiting for them, and traps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import LOOPS, literal
from jobgen.check.rule import ERROR, WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.check.shell_commands import Command

_CAUGHT = ("TERM", "USR1", "USR2", "INT", "HUP", "CONT")


def bare_wait(script: Script) -> Iterator[Hit]:
    works = [command for command in script.commands if command.works and command.background]
    waits = list(script.named("wait"))
    if not works or not waits or any(wait.arguments for wait in waits):
        return
    line = waits[-1].line
    yield Hit(
        line,
        "wait without a process ends with 0, whatever the processes did: a failure is not seen",
        'keep each $! and wait for it: wait "$pid" || status=$?',
    )


def unwaited(script: Script) -> Iterator[Hit]:
    waits = [wait.node.start for wait in script.named("wait", "fg")]
    works = [
        command
        for command in script.commands
        if command.works or command.name in ("ssh", "pbsdsh", "bash", "sh")
    ]
    for command in works:
        if not command.background or command.node.under("function_definition", "command_substitution"):
            continue
        later = [other for other in works if other.node.start > command.node.end and not other.background]
        if not any(start > command.node.start for start in waits) and not later:
            yield Hit(
                command.line,
                "the script ends while this is running in the background, and the scheduler then kills it",
                "end the script with wait",
            )
            return


def sleep_sync(script: Script) -> Iterator[Hit]:
    for command in script.named("sleep"):
        whole = command.statement
        before = whole.previous()
        if before is not None and before.type == "&" and not command.background and not whole.under(*LOOPS):
            yield Hit(
                command.line,
                "a sleep does not know when the process before it is ready: it is too short on a slow day",
                "ask in a loop, with a limit, until it answers",
            )


def _handler(script: Script, command: Command) -> str:
    """Return the code that a trap runs: its text, or the function that it names."""
    if not command.arguments:
        return ""
    text = literal(command.arguments[0]) or command.arguments[0].text
    for node in script.tree.all("function_definition"):
        name = node.get("name")
        if name is not None and name.text in text.split():
            return node.text
    return text


def _caught(command: Command) -> set[str]:
    return {word.upper().removeprefix("SIG") for word in command.literals[1:]}


def trap_kill(script: Script) -> Iterator[Hit]:
    for command in script.named("trap"):
        if lost := _caught(command) & {"KILL", "9", "STOP", "19"}:
            yield Hit(
                command.line,
                f"no process can catch {lost.pop()}: this trap never runs",
                "catch TERM, which comes before it",
            )


def trap_status(script: Script) -> Iterator[Hit]:
    for command in script.named("trap"):
        handler = _handler(script, command).rstrip("\"'; }\n")
        if "EXIT" in _caught(command) and re.search(r"(^|[\s;])exit\s+0$", handler):
            yield Hit(
                command.line,
                "the handler ends with exit 0: the job succeeds, however it ended",
                'begin the handler with status=$? and end it with exit "$status"',
            )


def trap_late(script: Script) -> Iterator[Hit]:
    """Yield a hit for a trap that waits: bash runs it only when the command in the foreground has ended."""
    for command in script.named("trap"):
        caught = _caught(command) & set(_CAUGHT)
        if not caught or not command.arguments or literal(command.arguments[0]) in ("", "-"):
            continue
        works = [
            other
            for other in script.commands
            if other.works and not other.node.under("function_definition", "command_substitution")
        ]
        if works and not any(script.named("wait")) and script.is_batch:
            yield Hit(
                command.line,
                f"bash runs the trap of {', '.join(sorted(caught))} only when the command in the "
                "foreground has ended, which is too late",
                "start the launcher with & and wait for it",
            )
            return


def single_wait(script: Script) -> Iterator[Hit]:
    traps = [one for one in script.named("trap") if _caught(one) & set(_CAUGHT) and one.arguments]
    handlers = [_handler(script, one) for one in traps]
    if not traps or any(re.search(r"\b(exit|wait)\b", handler) for handler in handlers):
        return
    waits = list(script.named("wait"))
    if len(waits) == 1 and not waits[0].node.under(*LOOPS):
        yield Hit(
            waits[0].line,
            "the first wait returns as soon as the trap has run, while the process is still busy",
            "wait again after it",
        )


RULES = (
    Rule("bare-wait", WARNING, "wait that loses the status", bare_wait),
    Rule("unwaited-background", WARNING, "A background process that nobody waits for", unwaited),
    Rule("sleep-as-sync", WARNING, "sleep to wait for a process", sleep_sync),
    Rule("trap-kill", ERROR, "A trap for what cannot be caught", trap_kill),
    Rule("trap-status", WARNING, "A trap that hides the failure", trap_status),
    Rule("trap-late", WARNING, "A trap that runs too late", trap_late),
    Rule("single-wait", WARNING, "One wait where a trap interrupts it", single_wait),
)
