"""The command lines of the launchers, and the numbers of the ranks, as the templates print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.rendering.quoting import each, sh
from jobgen.values.node_groups import SUBMITTED

if TYPE_CHECKING:
    from jobgen.launch.launchers import MpiFlavour
    from jobgen.plan.plan import Plan

_EXPORTED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "MASTER_ADDR", "MASTER_PORT")
_HOSTFILE = '"$JOBGEN_RUN_DIR/hostfile"'
_RANKS_OF_NODE = f"awk -F= -v line=\"$((NODE_RANK + 1))\" 'NR == line {{ print $2 }}' {_HOSTFILE}"
_RANKS_BEFORE = (
    f"awk -F= -v node=\"$CROSS_RANK\" 'NR <= node {{ n += $2 }} END {{ print n + 0 }}' {_HOSTFILE}"
)


def launch_words(plan: Plan) -> dict[str, object]:
    """Return the values for the templates in launcher/."""
    resources, filtered, timeout = plan.resources, plan.resources.active, plan.survival.timeout
    ranks = resources.ranks_per_node
    return {
        "run": f"timeout {timeout} " if timeout else "",
        "nodes_word": f"$((JOBGEN_WORLD_SIZE / {ranks}))" if _late(plan) else str(filtered.nodes),
        "world_word": _world(plan),
        "node_ranks": f'"$({_RANKS_OF_NODE})"' if resources.mixed else ranks,
        "even_world": _even_world(plan),
        "launcher_kind": _kind(plan),
        "host_list": '--nodelist="$(paste -sd , "$JOBGEN_RUN_DIR/hosts")" ' if _chosen(plan) else "",
        "filter_words": f"{filtered.option} {sh(filtered.text)} " if filtered.option else "",
        "launcher_words": each(plan.spec.launcher_arg),
        "mpi_options": _mpi_options(plan, plan.launch.mpirun) if plan.launch.mpirun else (),
        "rank_lines": _rank_lines(plan),
    }


def _late(plan: Plan) -> bool:
    """Return whether only the script knows the nodes that take part."""
    return bool(plan.survival.spare_nodes or plan.resources.nodes == SUBMITTED)


def _world(plan: Plan) -> str:
    return '"$JOBGEN_WORLD_SIZE"' if _late(plan) else str(plan.resources.active.world_size)


def _chosen(plan: Plan) -> bool:
    """Return whether a part of the nodes takes part."""
    return bool(plan.survival.spare_nodes or plan.resources.active.option or plan.step)


def _even_world(plan: Plan) -> str:
    """Return the number of ranks for a launcher that divides it by the nodes, as if all were like this."""
    mixed = plan.resources.mixed
    return f'"$(({plan.resources.nodes} * $({_RANKS_OF_NODE})))"' if mixed else _world(plan)


def _kind(plan: Plan) -> str:
    """Return the option with which the launcher starts several ranks, and a blank; empty if it needs none."""
    row = plan.launch.row
    given = (word.partition("=")[0].replace("-", "_") for word in plan.spec.launcher_arg)
    others = [one for name in given for key, one in row.other_kinds.items() if key.replace("-", "_") == name]
    kind = max(others) if others else row.kind if plan.resources.active.world_size != 1 else ""
    return kind and f"{kind} "


def _mpi_options(plan: Plan, mpi: MpiFlavour) -> tuple[str, ...]:
    """Return the lines of mpirun's options: the placement of ranks, then the variables to export."""
    # The ranks read env.sh: a command line, which all users can see, must not contain its values.
    named = () if mpi.shows_values else (name for name, _ in plan.spec.variables)
    names = dict.fromkeys((*_EXPORTED, *named))
    numbers = {
        "ranks": _world(plan),
        "ranks_per_node": plan.resources.ranks_per_node,
        "cpus": plan.resources.cpus.rank,
        "bind": bind_option(plan),
    }
    place = (line.format(**numbers) for line in _place(plan, mpi))
    export = (word.format(name=name) for word in mpi.export for name in names)
    return (*place, " ".join(export))


def bind_option(plan: Plan) -> str:
    """Return the launcher's option that binds the ranks; empty if the launcher decides alone."""
    mpi = plan.launch.mpirun
    own = "--cpu-bind depth" if mpi and any("{bind}" in line for line in mpi.place) else ""
    return plan.site.bind or own


def _place(plan: Plan, mpi: MpiFlavour) -> tuple[str, ...]:
    """Return the options that place the ranks; mpirun must not bind ranks that bind themselves."""
    if plan.resources.mixed:
        return mpi.mixed
    return mpi.place if plan.resources.cpus.bind is None else mpi.unbound or mpi.place


def _rank_lines(plan: Plan) -> tuple[str, ...]:
    """Return the body of the function rank: it sets torchrun's variables from those of the launcher."""
    mixed, launch = plan.resources.mixed, plan.launch
    if mixed and launch.row.mixed_ranks:
        return tuple(line.replace("{before}", _RANKS_BEFORE) for line in launch.row.mixed_ranks)
    names = launch.rank_variables
    if names is None:
        return ()
    local_size = names.local_size if mixed else plan.resources.ranks_per_node
    line = f"RANK={names.rank} WORLD_SIZE={names.size} LOCAL_RANK={names.local_rank}"
    line += f" LOCAL_WORLD_SIZE={local_size}"
    if launch.mpirun and plan.program.is_ours and plan.container is None:
        return (f"{line}  # not exported: the training module uses mpi4py",)
    return (f"export {line}",)
