"""Rules about processes in the background."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.script.command_kinds import PRINT
from jobgen.script.commands import Command, commands
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, Node, function_of, in_background
from jobgen.values.parsers import number

# Commands that end at once, and those that are to end with the script.
_TRIFLES = (
    "echo", "printf", "date", "cd", "pushd", "popd", "exit", "return", "set", "unset", "export", "true",
    ":", "hostname", "pwd", "[", "test", "expr", "basename", "dirname", "mkdir", "touch", "break",
    "continue", "clear",
)  # fmt: skip
_MONITORS = (
    "nvidia-smi", "rocm-smi", "npu-smi", "dcgmi", "tensorboard", "sar", "vmstat", "iostat", "dstat",
    "top", "htop", "watch", "free", "ssh-agent", "Xvfb", "sleep", "squeue", "while", "mpstat", "perf",
    "kill",
)  # fmt: skip


@rule(
    "bare-wait",
    WARNING,
    "wait that loses the status",
    """`wait` without a process waits for all processes and exits with status 0, even if one has failed: the
    job succeeds. Wait for each process. It waits for none that a loop behind a `|` has started. (It is a note in a short trial. A `wait` above all of them is
    not meant. Services, such as `jupyter` and `dask worker`, run until the job is cancelled: nothing waits for their status,
    nor for what runs beside a cluster of workers, if nothing stops it.)""",
    message="wait without a process exits with status 0, even if a process has failed",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --nodes=1 --ntasks=1 --exact python3 train.py --fold 1 &
    srun --nodes=1 --ntasks=1 --exact python3 train.py --fold 2 &
    wait
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --nodes=1 --ntasks=1 --exact python3 train.py --fold 1 &
    one=$!
    srun --nodes=1 --ntasks=1 --exact python3 train.py --fold 2 &
    wait "$one"
    wait "$!"
    """,
)
def bare_wait(script: Script) -> Iterator[Hit]:
    works = [one for one in script.commands if one.works and one.background and not is_service(one)]
    waits = list(script.named("wait"))
    services = (one.node.text for one in script.commands if one.background and is_service(one))
    if not works or not waits or any(wait.arguments for wait in waits):
        return
    if any(map(_OF_WORKERS.search, services)) and not _STOPS.search(script.tree.text):
        return  # the job lasts until its time limit
    if (loop := _piped_loop(works, waits)) is not None:
        line = next(wait.line for wait in waits if wait.node.start > loop.end)
        reason = f"wait does not wait for the processes of line {loop.line}: a loop behind a | is a process of its own"
        yield Hit(line, reason, "give the loop its list without the pipe: done < <(COMMAND), or < FILE")
        return
    pairs = product((wait.node for wait in waits), (work.node for work in works))
    lost = next((wait for wait, work in pairs if _precedes(script, work, wait)), None)
    loops = set().union(*(_loop(work.node) for work in works))
    lost = lost or next((wait.node for wait in waits if loops & _loop(wait.node)), None)
    if lost is not None:
        end, inner = "at the end", lost.around("subshell")
        if inner is not None:
            line = inner.line + inner.text.count("\n")
            end = f"before the ) of line {line}, and with the status of that part at the end"
        yield Hit(lost.line, fix=f"{_KEEP}, and exit ${{status:-0}} {end}")


_KEEP = 'keep each $! and wait for it: wait "$pid" || status=$?'
_OF_WORKERS = re.compile(r"dask|ip(?:controller|engine|cluster)|start_?[Cc]luster")
_STOPS = re.compile(r"\b(?:kill|pkill|killall|scancel|stop|shutdown)\b")


def _piped_loop(works: Sequence[Command], waits: Sequence[Command]) -> Node | None:
    """Return the loop of a pipeline that starts all processes in the background, if each wait is behind it."""
    around = (above for work in works for above in work.node.above() if above.type in LOOPS)
    loops = [loop for loop in around if loop.parent is not None and loop.parent.type == "pipeline"]
    ends = [loop.end for loop in loops if not in_background(loop)]
    all_behind = len(ends) == len(works) and all(wait.node.start > max(ends) for wait in waits)
    return loops[0] if all_behind else None


def _loop(node: Node) -> set[int]:
    """Return the starts of the loops around a node."""
    return {above.start for above in node.above() if above.type in LOOPS}


def _precedes(script: Script, first: Node, second: Node) -> bool:
    """Return whether a command runs before another one: above it, or in a function that is called there."""
    functions = {above.start for above in first.above() if above.type == "function_definition"}
    if any(above.start in functions for above in second.above() if above.type == "function_definition"):
        return first.start < second.start
    return any(one.start < other.start for one in _runs(script, first) for other in _runs(script, second))


def _runs(script: Script, node: Node, depth: int = 0) -> list[Node]:
    """Return where a command runs: its place, or the calls of the function around it, if there are any."""
    name = function_of(node)
    if not name or depth > _DEEPEST:
        return [node]
    calls = [one.node for one in script.named(name)]
    unused = not calls and not any(name in one.literals for one in script.commands)
    return [place for call in calls for place in _runs(script, call, depth + 1)] or ([] if unused else [node])


_DEEPEST = 3  # functions that call each other


def is_service(command: Command) -> bool:
    """Return whether a command starts a service, which runs until the job ends."""
    return _SERVICE.search(command.node.text) is not None


_SERVICE = re.compile(
    r"(?<![\w-])(jupyter(-lab|-notebook)?|dask[- ](scheduler|worker|ssh)|dask-mpi|distributed\.cli\S*|ray start|tensorboard|"
    r"ipcontroller|ipengine|ipcluster|start_?[Cc]luster|redis-server|mongod|rserver|rstudio-server|code-server|http\.server|vllm serve|vllm\.entrypoints[\w.]*|uvicorn|gunicorn|nvidia-cuda-mps-control)([\w.-]*\.sh\b|(?![\w.-]))"
)


@rule_once(
    "endless-wait",
    WARNING,
    "wait for a process that never ends",
    """`wait` without a process waits for all processes in the background, also for a monitor that prints until somebody
    ends it: the job runs, and is charged, until its time limit.""",
    fix="wait for the work only, by its $!, or kill the monitor first",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    nvidia-smi --query-gpu=utilization.gpu --format=csv --loop=60 > gpu.csv &
    srun python3 train.py &
    work=$!
    wait
    wait "$work"
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    nvidia-smi --query-gpu=utilization.gpu --format=csv --loop=60 > gpu.csv &
    srun python3 train.py &
    wait "$!"
    """,
)
def endless_wait(script: Script) -> Iterator[Hit]:
    if any(script.named("kill", "pkill", "killall", "scancel", "qdel")) or "kill " in script.tree.text:
        return
    endless = [one for one in script.commands if one.background and _ENDLESS.match(one.node.text)]
    for wait in script.named("wait") if any(one.works for one in script.commands) else ():
        first = next((one for one in endless if _precedes(script, one.node, wait.node)), None)
        if first is not None and not wait.arguments and not wait.node.under("function_definition"):
            reason = (
                f"{first.name}, of line {first.line}, never ends, and wait waits for it until the time limit"
            )
            yield Hit(wait.line, reason)


_ENDLESS = re.compile(
    r"(nohup |nice )?(nvidia-smi\b.*\s(-l|-lms|--loop|--loop-ms|dmon|pmon)\b(?!.*\s(-c|--count)\b)|tail\s.*-[a-z]*[fF]\b|watch\s"
    r"|sleep (inf|infinity)\b|top\b(?!.*\s-n)|[mv]mstat \d+(?! *\d)|gpustat .*(-i|--interval)\b|tensorboard\s)",
    re.S,
)


@rule(
    "unwaited-background",
    WARNING,
    "A background process without wait",
    """When the script exits, the job ends: the scheduler kills the processes that still run in the
    background.""",
    message="the script ends while this runs in the background, and the scheduler then kills it",
    fix="end the script with wait",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py &
    echo started
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py &
    echo started
    wait "$!"
    """,
)
def unwaited(script: Script) -> Iterator[Hit]:
    yield from _sleeps(script)
    own_way = any(script.named("jobs", "pgrep", "tail")) or re.search(r"kill +-0", script.tree.text)
    started = [one for one in script.commands if one.background and not one.node.under(*_SUBSTITUTIONS)]
    started = [one for one in started if one.program not in (*_TRIFLES, *_MONITORS)]
    if own_way or not started or not script.is_batch:
        return
    others = (one for one in script.commands if not one.background and one.program not in _TRIFLES)
    busy = [one.node.start for one in others if not one.node.under("command_substitution")]
    calls = {one.name: one for one in script.commands}  # the last call of each function
    seen: set[int] = set()
    for command in started:
        groups = [above for above in command.node.above() if above.type in ("compound_statement", "subshell")]
        group = (groups or [command.node])[-1].start  # { a; b; } & is one process
        conditions = (one.get("condition") for one in command.node.above() if one.type == "if_statement")
        outside = any(one is not None and _IS_NO_JOB.search(one.text) for one in conditions)  # of a job
        if group in seen or outside:
            continue
        around = [above for above in command.node.above() if above.type in (*LOOPS, "function_definition")]
        start = command.node.start
        for above in around:
            name = above.name if above.type == "function_definition" else ""
            call = calls.get(name) if name else None
            start = max(start, call.node.end) if call and not call.background else start
            if (name and not call) or bisect(busy, above.start) < bisect(busy, above.end):
                break  # the function is not called, or does something else, too
        else:
            if bisect(busy, start) == len(busy):
                seen.add(group)
                yield Hit(command.line)


def _sleeps(script: Script) -> Iterator[Hit]:
    """Yield a sleep at the end of a script, in place of a wait for the ranks in the background."""
    trains = any(one.row.once_a_node and one.command.background for one in script.launches)
    last = script.commands[-1] if script.commands else None
    if not trains or last is None or last.name != "sleep" or any(script.named("wait")) or not script.is_batch:
        return
    length = (script.constants.value(last.words[1]) if len(last.words) > 1 else None) or ""
    if length == "infinity" or (number(length, 20) or 0) >= _LONG:
        reason = "the job sleeps on when the ranks have ended, and its status is that of sleep"
        yield Hit(last.line, reason, "wait for each process instead")


_LONG = 600  # s, of a sleep that is to last as long as a training


_SUBSTITUTIONS = ("command_substitution", "process_substitution")
_ID = r"\$\{?(?:SLURM_JOB_?ID|PBS_JOBID)\}?"
_IS_NO_JOB = re.compile(rf"-z\s+\"?{_ID}|\"(\w?){_ID}\"\s*==?\s*\"\1\"")


@rule(
    "unfinished-copy",
    WARNING,
    "A copy in the background, and a program that needs it",
    """`&` does not wait: what follows starts while files are still copied, and reads none or a part of them.""",
    fix="remove the &, or wait for the copy: wait $!",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    cp -r "$HOME/data" "$TMPDIR/data" &
    srun python3 train.py --data "$TMPDIR/data"
    wait
    """,
    good={'cp -r "$HOME/data" "$TMPDIR/data" &': 'cp -r "$HOME/data" "$TMPDIR/data"', "wait": ""},
)
def unfinished_copy(script: Script) -> Iterator[Hit]:
    for command in script.commands:
        if not command.background or command.name not in _COPIES or not command.arguments:
            continue
        target = _directory(command).strip("\"'").rstrip("/")
        if len(target) < 5 or command.node.under("function_definition"):
            continue
        for later in script.commands:
            if later.node.start <= command.node.end:
                continue
            if later.name in ("wait", "sleep") or _POLL.search(later.statement.text):
                break
            if later.works and target in later.node.text:
                reason = f"{later.program} in line {later.line} starts while this still copies"
                yield Hit(command.line, reason)
                break


_COPIES = ("cp", "rsync", "tar", "unzip", "rclone", "dcp", "mpifileutils", "msrsync", "gsutil", "s5cmd")


def _directory(command: Command) -> str:
    """Return where a command puts its files, as it is written."""
    words = [word.text for word in command.arguments]
    option = {"tar": "-C", "unzip": "-d"}.get(command.name)
    if option is None:
        return words[-1]
    return next((after for word, after in pairwise(words) if word == option), "")


@rule(
    "sleep-as-sync",
    WARNING,
    "sleep to wait for a process",
    """A fixed delay fails when the file system, the network or the node is slow. Test in a loop, with a
    limit, whether the process is ready. (It is a note in a short trial, and if a person waits for the token of a notebook, and silent for
    dask and Spark, whose workers and clients call again.)""",
    message="a fixed sleep may end before the process is ready",
    fix="test in a loop, with a limit, whether the process is ready",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    /opt/site/server &
    sleep 20
    srun /opt/site/client
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    /opt/site/server &
    for ((try = 0; try < 60; try++)); do
      if /opt/site/ping; then break; fi
      sleep 1
    done
    srun /opt/site/client
    """,
)
def sleep_sync(script: Script) -> Iterator[Hit]:
    for command in script.own_running("sleep"):
        if command.background or command.statement.under("while_statement", "c_style_for_statement"):
            continue
        started, after = _started_before(command), _next_work(script, command)
        if after is not None and (after.name in PRINT or (after.name == "cat" and not after.script)):
            continue  # it prints the same if the process is not ready
        if _is_time_of_work(script, command) or _RETRIES.search(script.tree.text):
            continue
        names = {one.name for one in started}
        if after and names <= _FOR_A_PERSON and not _ASKS.match(after.name):
            continue
        again = after in started or (after and after.background and after.name in names)  # at intervals
        if started and after and after.name not in ("wait", "sleep") and not again:
            yield Hit(command.line, level=NOTE if _TOKEN.search(script.tree.text) else None)


_TOKEN = re.compile(r"(?i)jupyter\w*token|['\"]token=")  # that a person reads in the log of a notebook
# Workers and clients of dask, and those of Spark, call the scheduler again until it answers.
_RETRIES = re.compile(
    r"--scheduler-file|\bdask[- ](?:scheduler|ssh|worker)\b|\bspark-(?:submit|shell|class)\b|\bpyspark\b|\borg\.apache\.spark\b|SPARK_HOME"
)
# Services for a person, and the programs that read what those have written.
_FOR_A_PERSON = {"jupyter", "jupyter-lab", "jupyter-notebook", "code-server", "rserver", "mlflow"}
_ASKS = re.compile(r"jupyter|curl$|wget$|cat$|e?grep$|tail$|head$|awk$|sed$|ssh$|python|nc$")


def _is_time_of_work(script: Script, command: Command) -> bool:
    """Return whether a sleep is the time that a process gets to work: a quarter of an hour, or before it is killed."""
    later = (one for one in script.commands if one.node.start > command.node.end)
    following = next((one.name for one in later if one.name not in ("echo", "date", "printf")), "")
    text = command.literals[0] if command.literals else ""
    match = re.fullmatch(r"(\d+)([smhd]?)", text, re.ASCII)
    length = int(match[1]) * {"m": 60, "h": 3600, "d": 86400}.get(match[2], 1) if match else 0
    return length >= _WORK or following in ("kill", "killall", "pkill", "scancel")


_WORK = 900  # s
_POLL = re.compile(r"\b(?:until|while)\b.*\bsleep\b|--retry\b", re.DOTALL)  # in the text of a command


class _Program(NamedTuple):
    """A program with its first word, if that is no option, and whether it runs in the background."""

    name: str
    script: str
    background: bool


def _program(command: Command) -> _Program:
    first = command.words[1].text if len(command.words) > 1 else "-"
    return _Program(command.program, "" if first.startswith("-") else first, command.background)


def _started_before(sleep: Command) -> list[_Program]:
    """Return the processes of the statement before a sleep that run in the background."""
    node = sleep.statement.previous()
    while node is not None and _is_trifle(node):
        node = node.previous()
    if node is None or node.type not in ("&", *LOOPS, "if_statement"):
        return []
    first = node.previous() if node.type == "&" else node
    inside = [one for one in commands(first) if node.type == "&" or one.background] if first else []
    found = [_program(one) for one in inside]
    return [one for one in found if one.name not in (*_TRIFLES, *_MONITORS)]


def _is_trifle(node: Node) -> bool:
    if node.type in ("command", "redirected_statement"):
        return all(one.name in _TRIFLES for one in commands(node))
    return node.type in ("comment", ";", "\n", "variable_assignment", "declaration_command")


def _next_work(script: Script, sleep: Command) -> _Program | None:
    """Return the next program, in a loop the next one of the same iteration; None if it only waits for a process."""
    loop = sleep.node.around(*LOOPS) or script.tree
    blocks = {above.start for above in sleep.node.above()}
    after = [one for one in script.commands if sleep.node.end < one.node.start < loop.end]
    exits = (at for at, one in enumerate(after) if one.name == "exit" and _block(one) in blocks)
    # Nothing follows an exit in the block of the sleep, or in one around it.
    after = after[: next(exits, None)]
    passed = ({*_TRIFLES, *_MONITORS, "seq"} - {"sleep"}).__contains__
    following = next((one for one in after if not passed(one.program)), None)
    return None if following is None or _polls(following, loop) else _program(following)


def _block(command: Command) -> int | None:
    """Return the start of the block, branch or file of which a command is a statement of its own."""
    whole = command.statement
    return whole.parent.start if whole.parent is not None and whole.start == command.node.start else None


def _polls(command: Command, outside: Node) -> bool:
    """Return whether a command is in a loop with a sleep, or is called a wait."""
    loops = [one for one in command.node.above() if one.type in LOOPS and one.start > outside.start]
    inside = (one.name for loop in loops for one in commands(loop))
    polls = _POLL.search(command.node.text) or re.match(r"(?i)wait", command.name)
    return polls is not None or "sleep" in inside
