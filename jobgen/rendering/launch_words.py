"""The command lines of the launchers, and the numbers of the ranks, as the templates print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.rendering.quoting import each, sh

if TYPE_CHECKING:
    from jobgen.launchers import MpiFlavour
    from jobgen.plan import Plan

_EXPORTED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "MASTER_ADDR", "MASTER_PORT")
_HOSTFILE = '"$JOBGEN_RUN_DIR/hostfile"'
_RANKS_OF_NODE = f"awk -F= -v line=\"$((NODE_RANK + 1))\" 'NR == line {{ print $2 }}' {_HOSTFILE}"
_RANKS_BEFORE = (
    f"awk -F= -v node=\"$CROSS_RANK\" 'NR <= node {{ n += $2 }} END {{ print n + 0 }}' {_HOSTFILE}"
)


def launch_words(plan: Plan) -> dict[str, object]:
    """Return the values for the templates in launcher/."""
    resources, filtered, timeout = plan.resources, plan.resources.active, plan.survival.timeout
    ranks, spare = resources.ranks_per_node, plan.survival.spare_nodes
    return {
        "run": f"timeout {timeout} " if timeout else "",
        # With spare nodes, only the script knows which nodes take part.
        "nodes_word": f"$((JOBGEN_WORLD_SIZE / {ranks}))" if spare else str(filtered.nodes),
        "world_word": _world(plan),
        "node_ranks": f'"$({_RANKS_OF_NODE})"' if resources.mixed else ranks,
        "host_list": '--nodelist="$(paste -sd , "$JOBGEN_RUN_DIR/hosts")"',
        "filter_words": f"{filtered.option} {sh(filtered.text)} " if filtered.option else "",
        "launcher_words": each(plan.spec.launcher_arg),
        "mpi_options": _mpi_options(plan, plan.launch.mpirun) if plan.launch.mpirun else (),
        "rank_lines": _rank_lines(plan),
    }


def _world(plan: Plan) -> str:
    return '"$JOBGEN_WORLD_SIZE"' if plan.survival.spare_nodes else str(plan.resources.active.world_size)


def _mpi_options(plan: Plan, mpi: MpiFlavour) -> tuple[str, ...]:
    """Return the lines of mpirun's options: the placement of ranks, then the variables to export."""
    # The ranks read env.sh: a command line, which all users can see, must not contain its values.
    named = () if mpi.shows_values else (name for name, _ in plan.spec.variables)
    names = dict.fromkeys((*_EXPORTED, *named))
    numbers = {
        "ranks": _world(plan),
        "ranks_per_node": plan.resources.ranks_per_node,
        "cpus": plan.resources.cpus.rank,
        "bind": plan.site.bind or "--cpu-bind depth",
    }
    place = (line.format(**numbers) for line in _place(plan, mpi))
    export = (word.format(name=name) for word in mpi.export for name in names)
    return (*place, " ".join(export))


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
