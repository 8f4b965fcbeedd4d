"""Rules about numbers that repeat the request of a job."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rule import NOTE, rule
from jobgen.rendering.runtime import MARK
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, expansions


@rule(
    "repeated-count",
    NOTE,
    "A number that repeats the request",
    """The launcher gets a number that the request already has. If only one of the two is changed, too
    few or too many ranks start. The scheduler has the numbers in variables, and srun takes them
    by itself.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    mpirun -np 16 /opt/site/solver
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    mpirun -np "$SLURM_NTASKS" /opt/site/solver
    """,
)
def repeated_count(script: Script) -> Iterator[Hit]:
    request = script.request
    if not script.is_batch or len(request.chunks) > 1 or request.nodes is None:
        return
    if any(line.startswith(MARK) for line in script.lines):
        return  # a script of jobgen compares its request with the nodes that it gets
    total = request.ranks or (request.nodes * request.ranks_per_node if request.ranks_per_node else None)
    for launch in script.launches:
        if launch.outer is not None:
            continue
        line = launch.row.line
        for names, number in ((line.ranks, total), (line.nodes, request.nodes)):
            count = launch.number(*names)
            if count is not None and count > 1 and count == number and _by_hand(script, launch, names):
                yield Hit(
                    launch.line,
                    f"{launch.kind} gets {count}, a number that the directives have, too: they may differ after a change",
                    _fix(script, launch, names is line.nodes),
                    place=launch.place(*names),
                )
                return


def _by_hand(script: Script, launch: Launch, names: tuple[str, ...]) -> bool:
    """Return whether the number is text of the script, and not a variable of the scheduler."""
    todo: list[Node] = [launch.nodes[name] for name in names if name in launch.nodes][:1]
    while todo:
        for name, _ in expansions(todo.pop()):
            value = script.constants.node(name)
            if value is None:
                return False
            todo.append(value)
    return True


def _fix(script: Script, launch: Launch, nodes: bool) -> str:
    if launch.row.by_scheduler:
        return f"leave it out: {launch.kind} takes it from the request"
    variables, counts = script.dialect.job_variables, script.dialect.counts
    meanings = ("nodes",) if nodes else ("ranks", "slots")
    own = [f'"${name}"' for meaning in meanings for name, one in variables.items() if one == meaning]
    own += [counts[meaning] for meaning in meanings if meaning in counts]
    return f"write {own[0]}" if own else "compute it from the request"
