"""Rules about steps that run side by side in one job of Slurm."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.ranks.environment import reads_others
from jobgen.check.ranks.model import TRIFLES, last_words, size
from jobgen.check.rule import NOTE, WARNING, rule, rule_once
from jobgen.schedulers.versions import Span
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LATER, LOOPS, Node

_WHOLE_NODES = Span(since="20.11")  # a step takes all cores of its nodes
_SHARES = ("--exact", "--overlap", "--exclusive", "--whole", "-O", "--overcommit", "-s", "--oversubscribe")
_CORES = ("-c", "--cpus-per-task")  # implies --exact; some versions take it from the job
_MEMORY = ("--mem", "--mem-per-cpu", "--mem-per-gpu")
_GPUS = (
    *("--gres", "-G", "--gpus", "--gpus-per-task", "--gpus-per-node", "--tres-per-task", "--gpus-per-socket"),
)
_HOSTS = ("-w", "--nodelist")


@rule_once(
    "blocking-steps",
    WARNING,
    "Steps that wait for each other",
    """Since Slurm 20.11 a step takes all cores of its nodes, unless `--exact` or `--cpus-per-task` says how many,
    and all memory of the job, unless `--mem` says how much: steps that were to run side by side run one after
    the other, or the second one waits for ever ("step creation temporarily disabled"). `--overlap` shares what
    another step has: a monitor or a server in the background that starts all tasks of the job needs it.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --ntasks=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --ntasks=1 python3 train.py --fold 1 &
    one=$!
    srun --ntasks=1 python3 train.py --fold 2 &
    wait "$one"
    wait "$!"
    """,
    good={
        "srun --ntasks=1 python3 train.py --fold 1 &": "srun --exact --ntasks=1 python3 train.py --fold 1 &",
        "srun --ntasks=1 python3 train.py --fold 2 &": "srun --exact --ntasks=1 python3 train.py --fold 2 &",
    },
    schedulers=("slurm",),
)
def blocking_steps(script: Script) -> Iterator[Hit]:
    request = script.request
    if (whole := _whole_step(script) or _same_host(script)) is not None:
        has = "cores of its node" if whole[0].has(*_HOSTS) else "tasks and cores of the job"
        reason = f"this step has all {has}: the step of line {whole[1].line} waits until it ends"
        fix = "add --overlap if it may share the nodes, as a monitor or a server, else remove its &"
        yield Hit(whole[0].line, reason, fix)
    one_node = request.nodes == 1 or (request.nodes is None and request.ranks is not None)
    if not one_node or not script.is_batch or not _WHOLE_NODES.holds(script.version):
        return
    steps = _steps(script)
    beside = [one for one in steps if one.command.background and not _ends_at_once(script, one)]
    if not beside or "--overcommit" in script.heeded:
        return
    first = beside[0]
    alone = steps[-1] is first and _waits_in_loops(script, first.command.node)
    if alone or first.has(*_SHARES, *_HOSTS, "-r", "--relative"):
        return
    memory = script.heeded.get("--mem")
    without = (one.text("--gres") in ("none", "gpu:0") or one.text("--gpus", "-G") == "0" for one in steps)
    if not first.has(*_CORES) and not request.cpus_per_rank and "--cpus-per-task" not in script.heeded:
        why = "this step takes all cores of the job: the steps beside it wait until it ends"
        fix = "add --exact and the number of its tasks and cores, or --overlap for a monitor"
        yield Hit(first.line, why, fix)
    elif memory is not None and memory.value not in ("0", "") and not first.has(*_MEMORY):
        reason = (
            f"this step takes all memory of the job ({memory.value}): the steps beside it wait until it ends"
        )
        yield Hit(first.line, reason, "add --mem with the part of this step")
    elif request.gpus_per_node and not first.has(*_GPUS) and not any(without):
        reason = f"this step takes all GPUs of the job ({request.gpus_per_node}): the steps beside it wait until it ends"
        yield Hit(first.line, reason, "add --gpus with the part of this step, and --gres=none to one without")


def _steps(script: Script) -> list[Launch]:
    return [one for one in script.launched("srun") if one.outer is None and not one.unknown]


def _whole_step(script: Script) -> tuple[Launch, Launch] | None:
    """Return a step in the background that starts all tasks of the job, and one that starts while it runs."""
    request, steps = script.request, _steps(script)
    whole = (request.nodes or 1, request.ranks_per_node or request.ranks)
    if not script.is_batch or script.components or not request.cpus_per_rank or not whole[1]:
        return None
    ends = sorted(one.node.start for one in script.named("wait", "kill", "exit"))
    for first, second in pairwise(steps):
        start, end = first.command.node.start, second.command.node.start
        shares = first.has(*_SHARES, *_HOSTS, "-r", "--relative")
        shares |= second.has("--overlap", "-s", "-O", "--overcommit")
        apart = bisect_left(ends, start) < bisect_left(ends, end) or _around(first) != _around(second)
        if not first.command.background or shares or apart or _ends_at_once(script, first):
            continue
        cores = first.number(*_CORES) if first.has(*_CORES) else request.cpus_per_rank
        if size(script, first) == whole and (cores or 0) >= request.cpus_per_rank:
            return first, second
    return None


def _same_host(script: Script) -> tuple[Launch, Launch] | None:
    """Return a step in the background with all cores of a host that it names, and a later step on this host."""
    request, steps = script.request, [one for one in _steps(script) if one.has(*_HOSTS)]
    ends = sorted(one.node.start for one in script.named("wait", "kill", "exit"))
    if not script.is_batch or not request.cpus_per_rank or not _WHOLE_NODES.holds(script.version):
        return None
    all_cores = request.cpus_per_rank * (request.ranks_per_node or 1)
    for at, first in enumerate(steps):
        shares = first.has("--overlap", "-s", "-O", "--overcommit", "--oversubscribe")
        if not first.command.background or shares or (first.number(*_CORES) or 0) < all_cores:
            continue
        for second in steps[at + 1 :]:
            start, end = first.command.node.start, second.command.node.start
            same = _host(script, first) == _host(script, second) and _around(first) == _around(second)
            apart = bisect_left(ends, start) < bisect_left(ends, end) or _ends_at_once(script, first)
            if same and not apart and not second.has("--overlap", "-s", "-O", "--overcommit"):
                return first, second
    return None


def _host(script: Script, step: Launch) -> str:
    word = step.place(*_HOSTS)
    return script.path_text(word) if word is not None else ""


def _ends_at_once(script: Script, launch: Launch) -> bool:
    """Return whether the program of a step is a short one, or one that returns and leaves a daemon."""
    words = [os.path.basename(word or "$") for word in last_words(script, launch)]
    monitor = re.search(r"\b(dmon|pmon)\b|\s(-l|--loop)", " ".join(words))
    short = words[:1] and words[0] in TRIFLES and not monitor
    return bool(short or re.match(_DAEMONS, " ".join(words)))


def _around(launch: Launch) -> list[int]:
    """Return the places of the loops, branches and functions around a launch."""
    blocks = (*LATER, "elif_clause", "else_clause", "case_item", "subshell")
    return [above.start for above in launch.command.node.above() if above.type in blocks]


def _waits_in_loops(script: Script, node: Node) -> bool:
    """Return whether each loop around a process in the background waits for it before the next iteration."""
    waits = [one.node for one in script.named("wait") if not one.node.under("if_statement")]
    polls = [one.node for one in script.named("ps", "kill") if {"-p", "-0"} & set(one.literals)]
    loops = (above for above in node.above() if above.type in LOOPS)
    return all(any(one in loop and one.start > node.start for one in (*waits, *polls)) for loop in loops)


@rule_once(
    "daemon-step",
    WARNING,
    "A step that ends while its daemon runs",
    """A step of `srun` ends with its program, and Slurm then ends all other processes of the step. `ray start` without `--block`,
    and other commands that start a daemon, return at once: the daemon is killed, and what waits for it finds
    nothing.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --cpus-per-task=16
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --overlap ray start --address="$HOSTNAME:6379"
    python3 tune.py
    """,
    good={
        'srun --overlap ray start --address="$HOSTNAME:6379"': 'srun --overlap ray start --address="$HOSTNAME:6379" --block &'
    },
    schedulers=("slurm",),
)
def daemon_step(script: Script) -> Iterator[Hit]:
    for launch in script.launched("srun"):
        words = last_words(script, launch)
        name = os.path.basename(words[0] or "") if words else ""
        text = " ".join(word or "$" for word in words)
        known = None not in words or name != "ray"
        if known and (found := re.match(_DAEMONS, f"{name}{text.removeprefix((words or [''])[0] or '')}")):
            reason = (
                f"{found[0]} starts a daemon and returns: the step ends, and Slurm ends the daemon with it"
            )
            own = "add --block, and" if name == "ray" else "keep the program in the foreground, with"
            yield Hit(launch.line, reason, f"{own} & behind srun")


# Commands that return while what they have started runs on.
_DAEMONS = (
    r"ray start(?!.*--block)(?= )|redis-server(?=.*--daemonize yes)|mongod(?=.*--fork)|pg_ctl(?=.* start\b)"
    r"|nvidia-cuda-mps-control -d"
)


@rule_once(
    "idle-component",
    WARNING,
    "A component of a heterogeneous job without a step",
    """Without `--het-group` srun starts its tasks in the first component only. The nodes of a component that no step
    names stay idle, and are charged.""",
    fix="add --het-group to the srun that is for it",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks=1
    #SBATCH --time=01:00:00
    #SBATCH hetjob
    #SBATCH --ntasks=16
    set -euo pipefail
    srun python3 actor.py
    """,
    good={"srun python3 actor.py": "srun --het-group=1 python3 actor.py"},
    schedulers=("slurm",),
)
def idle_component(script: Script) -> Iterator[Hit]:
    text = script.tree.text
    sourced = reads_others(script.named("source", "."))
    other = any(one.row.of_mpi for one in script.launches) or sourced or re.search(r"\bssh\b", text)
    if not script.components or other:
        return
    named = re.findall(r"--(?:het|pack)-group[= ](\S+)", text)
    groups = {number for value in named for number in _numbers(value)}
    if any(re.search(r"[^\d,-]", value) for value in named):
        return
    for number, line in enumerate(script.components, 1):
        if number not in groups:
            yield Hit(line, f"no srun has --het-group={number}: the nodes of this component stay idle")


def _numbers(ranges: str) -> Iterator[int]:
    """Yield the numbers of ``0,2-3``."""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", ranges):
        yield from range(int(first), int(last or first) + 1)


@rule(
    "exclusive-memory",
    NOTE,
    "A whole node without its memory",
    """`--exclusive` gives all cores of a node, but only as much memory as the job requests, or the default of
    the site, which may be a small part: the job is killed although the node has more. `--mem=0` requests all of
    it. (It is silent on a cluster of AWS, whose Slurm does not limit memory by default.)""",
    message="--exclusive gives all cores, but the default memory of the site, which may be less than the node has",
    fix="add --mem=0",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --exclusive
    #SBATCH --gpus-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    torchrun --standalone --nproc-per-node=8 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --exclusive
    #SBATCH --mem=0
    #SBATCH --gpus-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    torchrun --standalone --nproc-per-node=8 train.py
    """,
    schedulers=("slurm",),
)
def exclusive_memory(script: Script) -> Iterator[Hit]:
    option = script.heeded.get("--exclusive")
    # Jobs without devices seldom need more than the default of all cores.
    known = any(name in script.heeded for name in _MEMORY) or _OF_AWS.search(script.tree.text)
    if option is not None and script.request.exclusive and script.request.gpus_per_node and not known:
        yield Hit(option.line)


_OF_AWS = re.compile(
    r"(?i)\bFI_PROVIDER=efa|/opt/(?:amazon|aws)[-/]|/fsx/|-(?:st|dy)-\S*xlarge|\bparallelcluster\b"
)
