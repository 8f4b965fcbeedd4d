"""Rules about the signal that Slurm sends before the time limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.check.ranks.environment import ACTIVATES, reads_others
from jobgen.check.ranks.model import code, is_work, ranks, step_of_script
from jobgen.check.rule import NOTE, WARNING, rule
from jobgen.check.rules.traps import caught
from jobgen.script.commands import commands
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import statement


class _Signal(NamedTuple):
    """A directive ``--signal``: its line and value, the name of the signal, and whether the shell gets it."""

    line: int
    value: str
    name: str
    to_shell: bool


def _signals(script: Script) -> Iterator[_Signal]:
    for option in script.options_of("--signal"):
        letters, _, name = option.value.partition("@")[0].rpartition(":")
        name = name.upper().removeprefix("SIG")
        yield _Signal(option.line, option.value, _NUMBERS.get(name, name), "B" in letters)


_NUMBERS = {"1": "HUP", "2": "INT", "10": "USR1", "12": "USR2", "15": "TERM"}


def _caught(script: Script) -> set[str]:
    """Return the signals for which the script has a trap."""
    return {_NUMBERS.get(name, name) for command in script.named("trap") for name in caught(command)}


@rule(
    "signal-to-steps",
    WARNING,
    "A signal that is not handled",
    """Without `B:` Slurm sends `--signal` only to the job's steps, the processes of `srun`: a trap in the batch
    script never runs, and a program that the script starts without `srun` gets nothing. torchrun, accelerate and
    deepspeed do not forward USR1 to the training processes. All processes of a step get the signal: a shell that waits for
    the program there ends by it, unless it has a trap or has started the program with `exec`. (It is a note if the program only
    evaluates a model.)""",
    bad="""
    #!/bin/bash
    #SBATCH --signal=USR1@60
    #SBATCH --time=01:00:00
    set -euo pipefail
    trap 'echo "time is nearly up"; kill -TERM "$pid"; wait "$pid"' USR1
    srun /opt/site/solver &
    pid=$!
    wait "$pid"
    """,
    good={"#SBATCH --signal=USR1@60": "#SBATCH --signal=B:USR1@60"},
)
def signal_to_steps(script: Script) -> Iterator[Hit]:
    yield from _ending_shells(script)
    own, also_called = _caught(script), _called_too(script)
    waits = any(one.works and one.background for one in script.commands)
    for signal in _signals(script):
        if signal.to_shell:
            continue
        if signal.name in own:
            why = f"without B: the signal goes to the job's steps, and the trap of this script never hears {signal.name}"
            fix = f"write --signal=B:{signal.value}{'' if waits else _WAIT}"
            yield Hit(signal.line, why, fix, NOTE if signal.name in also_called else None)
        elif reason := _lost_in_steps(script, signal.name):
            fix = f"start the ranks with srun if they catch {signal.name}, else remove the option"
            yield Hit(signal.line, reason, fix, NOTE if _evaluates(script) else None)


def _evaluates(script: Script) -> bool:
    """Return whether the last program only evaluates a model, which it does not save."""
    last = next((one.program for one in reversed(list(ranks(script))) if one.program.file), None)
    return last is not None and any(map(_EVALUATES.match, (last.file, *last.arguments)))


_EVALUATES = re.compile(r"(?i)--?eval(?:uate)?$|(?:\S*/)?(?:eval|infer|predict|test)(?:[a-z]*_\w*)?\.py$")


_WAIT = ", and start the programs with & and wait: a trap runs only between commands"


def _called_too(script: Script) -> set[str]:
    """Return the signals whose traps call a function that the script also calls: nothing is lost without the trap."""
    called = {one.name for one in script.commands} & script.functions.keys()
    traps = (one for one in script.named("trap") if one.arguments and one.arguments[0].unquoted in called)
    return {_NUMBERS.get(name, name) for one in traps for name in caught(one)}


def _ending_shells(script: Script) -> Iterator[Hit]:
    """Yield the shells of a step that wait for a program: Slurm signals them, too (measured with 22.05)."""
    outer = step_of_script(script)
    if script.starter is not None and outer is not None and outer.row.by_scheduler and script.for_a_shell:
        names = _ending(script.starter.script) - _caught(script)
        waits = (one for one in script.commands if one.works and not one.background)
        program = next((one for one in waits if one.words[0].text != "exec"), None)
        others = reads_others(script.named("source", ".", "eval"))
        if names and program is not None and not others:
            yield Hit.at(program.node, _END.format("this shell", min(names)), _EXEC)
        return
    names = _ending(script)
    for one in ranks(script) if names else ():
        if one.text is None or one.outer is None or not one.outer.row.by_scheduler:
            continue
        found = list(commands(code(one.text)))
        last = found[-1] if found else None
        if any(one.name in ("trap", "exec") for one in found) or last is None or last.works:
            continue
        if any(one.works for one in found):
            yield Hit(one.line, _END.format("the shell of bash -c", min(names)), _EXEC)
            return


_END = "Slurm signals {0}, too, which has no trap for {1}: it ends, and the step fails while the program still saves"
_EXEC = "start the program with exec, or catch the signal in the shell, too"


def _ending(script: Script) -> set[str]:
    """Return the signals for the steps by which a shell ends."""
    return {one.name for one in _signals(script) if not one.to_shell} & set(_ENDING)


def _lost_in_steps(script: Script, name: str) -> str:
    """Return why no training process gets a signal that goes to the steps; empty if one may get it."""
    swallower = next((one for one in script.launches if one.row.once_a_node), None)
    if swallower is not None and name in ("USR1", "USR2"):
        return f"{swallower.title} does not forward {name} to the training processes"
    if any(is_work(script, one) for one in script.launches) or _calls_others(script):
        return ""
    last = next((one for one in reversed(list(ranks(script))) if not one.chain and one.program.file), None)
    lost = "the signal goes to the job's steps, and the job has none"
    return f"{lost}: {last.program.file} does not get {name}" if last is not None else ""


def _calls_others(script: Script) -> bool:
    """Return whether the script runs other scripts, which may start steps or set traps."""
    words = (word for command in script.commands for word in command.literals)
    calls = any(script.named("bash", "sh")) or reads_others(script.named("source", ".", "eval"))
    return calls or any(word.endswith(".sh") and not ACTIVATES.search(word) for word in words)


@rule(
    "signal-without-trap",
    WARNING,
    "A signal for a shell that has no trap",
    """With `B:` Slurm sends the signal to the batch script only. A shell without a trap for it ends at once: the
    job is over before its time limit, and the training has not saved. (HUP, INT and TERM end it as well.)""",
    bad="""
    #!/bin/bash
    #SBATCH --signal=B:USR1@120
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py
    """,
    good={"#SBATCH --signal=B:USR1@120": "#SBATCH --signal=USR1@120"},
    schedulers=("slurm",),
)
def signal_without_trap(script: Script) -> Iterator[Hit]:
    own = _caught(script)
    others = reads_others(script.named("source", ".", "eval")) or not script.for_a_shell
    others |= any(one.arguments for one in script.named("exec"))  # the shell becomes the program
    for signal in _signals(script):
        if signal.to_shell and signal.name in _ENDING and signal.name not in own and not others:
            reason = f"{signal.name} goes to this script only, which has no trap for it: the script ends, and the job with it"
            fix = f"catch it: trap ... {signal.name}, with the training in the background, or remove B:"
            yield Hit(signal.line, reason, fix)


_ENDING = ("HUP", "INT", "USR1", "USR2", "TERM", "ALRM", "QUIT")


@rule(
    "signal-receiver",
    WARNING,
    "A signal that the program does not get",
    """`kill -USR1 "$!"` sends the signal to the last command in the background. Of a pipeline this is its last part, such as `tee`.
    torchrun, accelerate and deepspeed do not forward USR1 and USR2: the launcher ends at once, and its ranks
    before they have saved.""",
    bad="""
    #!/bin/bash
    #SBATCH --signal=B:USR1@120
    #SBATCH --time=01:00:00
    set -uo pipefail
    srun ./solver | tee log.txt &
    pid=$!
    trap 'kill -USR1 "$pid"; wait "$pid"' USR1
    wait "$pid"
    exit "$?"
    """,
    good={"srun ./solver | tee log.txt &": "srun ./solver > log.txt &"},
)
def signal_receiver(script: Script) -> Iterator[Hit]:
    swallowers = {one.command.node.start: one for one in script.launches if one.row.once_a_node}
    for node in script.tree.all("variable_assignment"):
        name, _, value = node.text.partition("=")
        before = statement(node).previous()
        while before is not None and before.type in ("comment", "&", "\n"):
            before = before.previous()
        if value.strip('"') not in ("$!", "${!}") or before is None or len(script.values.get(name, ())) != 1:
            continue
        sends = re.findall(rf"\bkill\s+(?:-s\s+|-)(\w+)\s+[\"']?\$\{{?{name}\b", script.tree.text)
        signals = {one.upper().removeprefix("SIG") for one in sends}
        last = [one for one in script.commands if before.start <= one.node.start < before.end]
        if not signals or not last:
            continue
        lost = sorted({_NUMBERS.get(one, one) for one in signals} & {"USR1", "USR2"})
        launch = next((swallowers[one.node.start] for one in last if one.node.start in swallowers), None)
        if before.type == "pipeline":
            reason = f"${name} is {last[-1].name}, the last command of the pipeline: the signal ends it, and {last[0].name} gets none"
            yield Hit.at(node, reason, "write > >(...) instead of the pipe")
        elif launch is not None and lost:
            reason = f"{launch.title} does not forward {lost[0]}: it ends at once, and its ranks before they have saved"
            yield Hit.at(node, reason, "send TERM, or let the program look for a file that the trap makes")
