"""The command lines of the launchers, and the numbers of the ranks, as the templates print them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobgen.rendering.quoting import sh
from jobgen.values.node_groups import SUBMITTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobgen.launch.launchers import MpiFlavour
    from jobgen.plan.plan import Plan

_EXPORTED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "MASTER_ADDR", "MASTER_PORT")
_HOSTFILE = '"$JOBGEN_RUN_DIR/hostfile"'
_RANKS_OF_NODE = f"awk -F= -v line=\"$((NODE_RANK + 1))\" 'NR == line {{ print $2 }}' {_HOSTFILE}"
_RANKS_BEFORE = (
    f"awk -F= -v node=\"$CROSS_RANK\" 'NR <= node {{ n += $2 }} END {{ print n + 0 }}' {_HOSTFILE}"
)
# A library that finds these variables waits for other ranks, or starts none of its own.
RANK_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_ONE_PROCESS = (
    f"unset {' '.join(RANK_VARIABLES)}",
    "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1  # not exported",
)


def timeout(plan: Plan) -> str:
    """Return the command that ends the launcher after a time, and a blank; empty without a limit."""
    return f"timeout {plan.survival.timeout} " if plan.survival.timeout else ""


def nodes(plan: Plan) -> str:
    """Return the number of nodes that take part."""
    ranks = plan.resources.ranks_per_node
    return f"$((JOBGEN_WORLD_SIZE / {ranks}))" if _late(plan) else str(plan.resources.active.nodes)


def node_ranks(plan: Plan) -> str | int:
    """Return the number of ranks of a node."""
    return f'"$({_RANKS_OF_NODE})"' if plan.resources.mixed else plan.resources.ranks_per_node


def host_list(plan: Plan) -> str:
    """Return srun's option for the nodes that take part, and a blank; empty if all do."""
    return '--nodelist="$(paste -sd , "$JOBGEN_RUN_DIR/hosts")" ' if _chosen(plan) else ""


def device_filter(plan: Plan) -> str:
    """Return the launcher's option for the devices that take part, and a blank; empty if all do."""
    active = plan.resources.active
    return f"{active.option} {sh(active.text)} " if active.option else ""


def _late(plan: Plan) -> bool:
    """Return whether only the script knows the nodes that take part."""
    return plan.survival.chooses_nodes or plan.resources.nodes == SUBMITTED


def world(plan: Plan) -> str:
    """Return the number of all ranks."""
    return '"$JOBGEN_WORLD_SIZE"' if _late(plan) else str(plan.resources.active.world_size)


def _chosen(plan: Plan) -> bool:
    """Return whether a part of the nodes takes part."""
    return bool((plan.survival.chooses_nodes or plan.resources.active.option) or plan.step or plan.pack)


def even_world(plan: Plan) -> str:
    """Return the number of ranks for a launcher that divides it by the nodes, as if all were like this."""
    return f'"$(({plan.resources.nodes} * $({_RANKS_OF_NODE})))"' if plan.resources.mixed else world(plan)


def kind(plan: Plan) -> str:
    """Return the option with which the launcher starts several ranks, and a blank; empty if it needs none."""
    row = plan.launch.row
    given = (word.partition("=")[0].replace("-", "_") for word in plan.spec.launcher_arg)
    others = [one for name in given for key, one in row.other_kinds.items() if key.replace("-", "_") == name]
    kind = max(others) if others else row.kind if plan.resources.active.world_size != 1 else ""
    return kind and f"{kind} "


def mpi_options(plan: Plan) -> tuple[str, ...]:
    """Return the lines of mpirun's options: the placement of ranks, then the variables to export."""
    if (mpi := plan.launch.mpirun) is None:
        return ()
    # The ranks read env.sh: a command line, which all users can see, must not contain its values.
    named = () if mpi.shows_values else (name for name, _ in plan.spec.variables)
    names = dict.fromkeys((*_EXPORTED, *named))
    numbers = {
        "ranks": world(plan),
        "ranks_per_node": plan.resources.ranks_per_node,
        "cpus": plan.resources.cpus.rank,
        "bind": bind_option(plan),
    }
    export = (word.format(name=name) for word in mpi.export for name in names)
    return (*(line.format(**numbers) for line in _place(plan, mpi)), " ".join(export))


def bind_option(plan: Plan) -> str:
    """Return the launcher's option that binds the ranks; empty if the launcher decides alone."""
    mpi = plan.launch.mpirun
    own = "--cpu-bind depth" if mpi and any("{bind}" in line for line in mpi.place) else ""
    return plan.site.bind or own


def _place(plan: Plan, mpi: MpiFlavour) -> tuple[str, ...]:
    """Return the options that place the ranks; mpirun must not bind ranks that bind themselves."""
    if plan.resources.mixed:
        return mpi.mixed
    bound = plan.resources.cpus.bind is not None or plan.part is not None
    return mpi.unbound or mpi.place if bound else mpi.place


class StepPart(NamedTuple):
    """The part of a command of srun for a component, or for all nodes: the numbers of its nodes, of all its
    ranks and of those of a node, and the cores of a rank and of a node. ``group`` is the option for the
    component, and ends with a blank.
    """

    group: str
    nodes: str
    world: str
    ranks: int
    cpus: int
    node_cpus: int


def step_parts(plan: Plan) -> tuple[StepPart, ...]:
    """Return the parts of a step of all ranks: one for each component of the scheduler."""
    cpus = plan.resources.cpus
    if not plan.components:
        return (StepPart("", nodes(plan), world(plan), plan.resources.ranks_per_node, cpus.rank, cpus.node),)
    return tuple(
        StepPart(
            f"--het-group={number} ",
            str(one.resources.nodes),
            str(one.resources.active.world_size),
            one.resources.ranks_per_node,
            one.resources.cpus.rank,
            one.resources.cpus.node,
        )
        for number, one in enumerate(plan.components)
    )


def _by_rank(plan: Plan, rank: str, values: Sequence[int]) -> str:
    """Return an expression for that of the values, one for each component, which is that of a rank."""
    text, end = "", 0
    for one, value in zip(plan.components, values[:-1], strict=False):
        end += one.resources.active.world_size
        text += f"{rank.lstrip('$')} < {end} ? {value} : "
    return f"$(({text}{values[-1]}))"


def _threads(plan: Plan) -> tuple[str, ...]:
    """Return the line that sets the threads of a rank, if components differ in them."""
    cores = [one.resources.cpus.rank for one in plan.components]
    if len(set(cores)) < 2 or "OMP_NUM_THREADS" in (*dict(plan.spec.env), *plan.spec.secrets):
        return ()
    return (f"export OMP_NUM_THREADS={_by_rank(plan, 'RANK', cores)}",)


def rank_lines(plan: Plan) -> tuple[str, ...]:
    """Return the body of the function rank: it sets torchrun's variables from those of the launcher."""
    return (*_numbers(plan), *_threads(plan))


def _numbers(plan: Plan) -> tuple[str, ...]:
    mixed, launch = plan.resources.mixed, plan.launch
    if mixed and launch.row.mixed_ranks:
        return tuple(line.replace("{before}", _RANKS_BEFORE) for line in launch.row.mixed_ranks)
    names = launch.rank_variables
    if launch.row.one_process:
        return _ONE_PROCESS
    if names is None:
        return ()
    local_size: str | int = plan.resources.ranks_per_node
    if mixed:
        sizes = [one.resources.ranks_per_node for one in plan.components]
        local_size = names.local_size or _by_rank(plan, names.rank, sizes)
    line = f"RANK={names.rank} WORLD_SIZE={names.size} LOCAL_RANK={names.local_rank}"
    line += f" LOCAL_WORLD_SIZE={local_size}"
    if launch.mpirun and plan.program.is_ours and plan.container is None:
        return (f"{line}  # not exported: the training module uses mpi4py",)
    return (f"export {line}",)


def telemetry(plan: Plan) -> str | None:
    """Return the command with which the first rank of a node starts the telemetry; None without it."""
    resources = plan.resources
    if not plan.spec.gpu_telemetry or not resources.accelerator.telemetry:
        return None
    devices = '"$LOCAL_WORLD_SIZE"' if resources.mixed else resources.gpus_per_node
    words = f'"$JOBGEN_RUN_DIR/telemetry.sh" {resources.accelerator.telemetry} $$ "$job_node" {devices}'
    return f"[[ -z ${{job_node:-}} || $job_local != 0 ]] || (setsid bash {words} < /dev/null &> /dev/null &)"
