"""Rules about signals and traps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, function_of, literal

_CAUGHT = ("TERM", "USR1", "USR2", "INT", "HUP", "CONT")


def _handler(script: Script, command: Command) -> str:
    """Return the code that a trap runs: its text, or the function that it names."""
    if not command.arguments:
        return ""
    text = literal(command.arguments[0]) or command.arguments[0].unquoted
    return next((script.functions[word] for word in text.split() if word in script.functions), text)


def caught(command: Command) -> set[str]:
    """Return the signals of a trap, without the SIG of their names."""
    names = filter(None, map(literal, command.arguments[1:]))
    return {name.upper().removeprefix("SIG") for name in names}


@rule(
    "trap-kill",
    WARNING,
    "A trap for a signal that cannot be caught",
    """No process can catch KILL or STOP. Schedulers send TERM first, PBS ten seconds before KILL. (In a list with other
    signals it is a note: the trap runs for those.)""",
    fix="catch TERM, which is sent first",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    trap 'rm -rf "$TMPDIR/cache"' KILL
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    trap 'rm -rf "$TMPDIR/cache"' EXIT
    srun python3 train.py
    """,
)
def trap_kill(script: Script) -> Iterator[Hit]:
    for command in script.named("trap"):
        if lost := sorted(caught(command) & {"KILL", "9", "STOP", "19"}):
            if caught(command) - set(lost):
                reason = f"{lost[0]} in this list has no effect: no process can catch it"
                yield Hit.at(command.node, reason, f"remove {lost[0]}", NOTE)
            else:
                yield Hit.at(command.node, f"no process can catch {lost[0]}: this trap never runs")


@rule(
    "trap-status",
    WARNING,
    "A trap that hides the failure",
    """With a handler of EXIT that ends with `exit 0`, every job succeeds. (One that also ends with another status is not
    meant.)""",
    message="the handler ends with exit 0: the job succeeds even after a failure",
    fix='begin the handler with status=$? and end it with exit "$status"',
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    trap 'rm -rf "$TMPDIR/cache"; exit 0' EXIT
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    trap 'status=$?; rm -rf "$TMPDIR/cache"; exit "$status"' EXIT
    srun python3 train.py
    """,
)
def trap_status(script: Script) -> Iterator[Hit]:
    for command in script.named("trap"):
        handler = _handler(script, command).rstrip("\"'; }\n")
        ends = re.findall(r"(?:^|[\s;])exit\s+([^\s;]+)", handler)
        if "EXIT" in caught(command) and handler.endswith("0") and ends and set(ends) == {"0"}:
            yield Hit(command.line)


@rule_once(
    "trap-late",
    WARNING,
    "A trap that runs too late",
    """bash runs a trap after the foreground command has ended; for a training this is after KILL. If the
    launcher runs in the background and `wait` in the foreground, the trap runs at once. (At the end
    of a job all its processes get TERM, also the command in the foreground: TERM, INT and HUP alone are a note on
    Slurm, if no option sends them to the shell only, and silent if EXIT runs the trap, too, if it only prints and exits, and for INT alone. A note are signals that no
    option of Slurm sends.)""",
    fix="start the launcher with & and wait for it",
    bad="""
    #!/bin/bash
    #SBATCH --signal=B:USR1@60
    #SBATCH --time=01:00:00
    set -euo pipefail
    trap 'touch save.now' USR1
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --signal=B:USR1@60
    #SBATCH --time=01:00:00
    set -euo pipefail
    trap 'touch save.now' USR1
    srun python3 train.py &
    pid=$!
    wait "$pid" || wait "$pid"
    """,
)
def trap_late(script: Script) -> Iterator[Hit]:
    works = [one for one in script.commands if one.works and not one.node.under("command_substitution")]
    here = [one for one in works if not function_of(one.node) or script.call_of(one.node)]
    if not here or any(script.named("wait")) or not script.is_batch:
        return
    last = here[-1]
    to_shell = any(re.match("R?BR?:", one.value) for one in script.options_of("--signal"))  # alone
    sent = script.is_pbs or any(script.options_of("--signal"))
    for command in script.named("trap"):
        signals = caught(command) & set(_CAUGHT)
        # The command in the foreground gets it, too.
        both = signals <= {"TERM", "INT", "HUP"} and not to_shell
        idle = signals == {"INT"} or _only_prints(
            _handler(script, command)
        )  # nothing sends INT to a batch job
        if both and (script.is_pbs or "EXIT" in caught(command) or idle):
            continue
        if signals and command.arguments and literal(command.arguments[0]) not in ("", "-"):
            names, fix = ", ".join(sorted(signals)), ""
            reason = (
                f"bash runs the trap of {names} too late: only after the command in the foreground has ended"
            )
            if last.words[0].text == "exec":
                reason = f"exec in line {last.line} replaces this shell, and its trap of {names} with it"
                fix = "start the program with & and wait for it"
            yield Hit.at(command.node, reason, fix, NOTE if both or not sent else None)


def _only_prints(handler: str) -> bool:
    """Return whether a handler prints messages and ends the script."""
    statements = (part.strip(" \t{}") for part in re.split(r"[;\n]", handler.partition("{")[2] or handler))
    return all(re.match(r"(?:echo|printf|exit)\b|$", one) for one in statements)


@rule(
    "single-wait",
    WARNING,
    "Only one wait after a trap",
    """A trap interrupts `wait`, which returns at once with 128 plus the number of the signal: the script
    ends while the ranks are still saving. Wait a second time. (A handler that runs at EXIT, too, ends the job.)""",
    message="wait returns as soon as the trap has run, while the process still runs",
    fix="add a second wait",
    bad="""
    #!/bin/bash
    #SBATCH --signal=B:USR1@60
    #SBATCH --time=01:00:00
    # jobgen: disable=no-errexit
    set -uo pipefail
    trap 'touch save.now' USR1
    srun python3 train.py &
    wait "$!"
    """,
    good="""
    #!/bin/bash
    #SBATCH --signal=B:USR1@60
    #SBATCH --time=01:00:00
    # jobgen: disable=no-errexit
    set -uo pipefail
    trap 'touch save.now' USR1
    srun python3 train.py &
    pid=$!
    wait "$pid"
    wait "$pid"
    """,
)
def single_wait(script: Script) -> Iterator[Hit]:
    traps = [one for one in script.named("trap") if not caught(one).isdisjoint(_CAUGHT) and one.arguments]
    handlers = [_handler(script, one) for one in traps]
    at_exit = {_handler(script, one) for one in script.named("trap") if "EXIT" in caught(one)}
    beside = any(one.background for one in script.commands)
    if not traps or not beside or any(handler in at_exit for handler in handlers):
        return  # the job is to end then
    if any(re.search(r"\b(exit|wait|requeue|qrerun)\b", handler) for handler in handlers):
        return
    waits = list(script.named("wait"))
    before = waits[0].statement.previous() if len(waits) == 1 else None
    if len(waits) == 1 and not waits[0].node.under(*LOOPS) and (before is None or before.type not in LOOPS):
        yield Hit(waits[0].line)


@rule_once(
    "trap-exec",
    WARNING,
    "A trap that exec removes",
    """`exec PROGRAM` replaces the shell, and with it its traps: what the trap of EXIT, or of a signal, should do is never
    done.""",
    fix="leave out exec",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    trap 'cp -r "$TMPDIR/out" "$HOME/"' EXIT
    exec srun python3 train.py
    """,
    good={"exec srun python3 train.py": "srun python3 train.py"},
)
def trap_exec(script: Script) -> Iterator[Hit]:
    traps = [
        one
        for one in script.named("trap")
        if one.literals[:1] not in (["-"], [""], ["-p"], ["-l"])
        and caught(one) & {"EXIT", "0", *_CAUGHT}
        and not _is_inside(one)
    ]
    for command in script.named("exec"):
        before = [one for one in traps if one.node.start < command.node.start]
        submits = command.literals[:1] in (["sbatch"], ["qsub"])  # it ends at once, as the script would
        if submits and not any(caught(one) & {"EXIT", "0"} for one in before):
            continue
        if before and command.arguments and not _is_inside(command):
            reason = f"exec replaces the shell: from here on the trap of line {before[-1].line} does nothing"
            yield Hit.at(command.node, reason)


def _is_inside(command: Command) -> bool:
    inner = ("function_definition", "subshell", "command_substitution", "process_substitution")
    return command.node.under(*inner, "if_statement", "case_statement")
