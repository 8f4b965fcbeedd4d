"""``--explain``: every resolved value with its origin and its meaning."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from jobgen.errors import counted, visible
from jobgen.options import OPTIONS, PLACES, PROSE
from jobgen.plan.launch_method import note as launcher_note
from jobgen.plan.node_parts import NodePart
from jobgen.plan.plan import Plan
from jobgen.schedulers.base import clock
from jobgen.secrets import masked_data, masked_prose
from jobgen.values.devices import number_of, type_of


class Row(NamedTuple):
    """A value of a plan: text, a number, a list or None."""

    name: str
    value: Any
    origin: str
    meaning: str


def rows(plan: Plan, host: str | None = None) -> list[Row]:
    """Return the options with their resolved values, then the values derived from them, without secrets; of a
    job on a ``host`` with the machine that each path is of."""
    values, spec = plan.spec._asdict() | _resolved(plan), plan.spec
    why = {"launcher": f" Here {note}."} if (note := launcher_note(spec)) else {}
    if host:
        why |= {one.key: f" With --host: {PLACES[one.place]}." for one in OPTIONS if one.place}
    rows = [
        Row(one.key, values[one.key], spec.origin(one.key), one.meaning + why.get(one.key, ""))
        for one in OPTIONS
    ]
    there = [Row("host", host, "command line", "The machine that it is submitted at.")] if host else []
    return [row._replace(value=_masked(row)) for row in (*rows, *_derived(plan), *there)]


def _masked(row: Row) -> Any:
    """Return the value of a row without secrets."""
    prose = row.name in PROSE and isinstance(row.value, str)
    return masked_prose(row.value) if prose else masked_data(row.value, row.name)


def _resolved(plan: Plan) -> dict[str, Any]:
    """Return the options whose values differ from those that were given."""
    spec, resources, survive, lacks = plan.spec, plan.resources, plan.survival, plan.scheduler.lacks
    mixed = resources.mixed
    return {
        "dialect": None if "dialect" in lacks else plan.scheduler.name,
        "walltime": (clock(resources.walltime) if resources.walltime else "that of the queue")
        if plan.scheduler.behaviour.limits_time or spec.walltime
        else None,
        "nodes": mixed or resources.nodes or "submitted",
        "gpus_per_node": None if mixed else _devices(plan),
        "ranks_per_node": None if mixed else resources.ranks_per_node,
        "cpus_per_rank": None if plan.components else resources.cpus.rank,
        "cpus_per_node": None if mixed or "cpus_per_node" in lacks else resources.cpus.node,
        "cpu_bind": ";".join(resources.cpus.lists) or resources.cpus.bind,
        "mem": None if plan.components else resources.memory,
        "accelerator": resources.accelerator_name,
        "mpi": plan.launch.mpi_name,
        "include": resources.active.text if spec.include else None,
        "exclude": resources.active.text if spec.exclude else None,
        "master_addr": spec.master_addr or "the name of the first host",
        "master_port": spec.master_port or "a free one, from the job id",
        "array": plan.directives.array,
        "after": [f"{kind}:{job}" for kind, job in spec.after],
        "workdir": spec.workdir or "where the job is submitted",
        "hostfile": None if spec.hostfile is None else [f"{host}:{slots}" for host, slots in spec.hostfile],
        "env": [name if value is None else f"{name}={value}" for name, value in spec.env],
        "env_file": [path for path, _ in spec.env_file],
        "stage": [f"{source}:{place}" for source, place in spec.stage],
        "grace": None if survive.grace is None else clock(survive.grace),
        "signal": survive.signal + (f"@{spec.signal[1]}" if spec.signal and spec.signal[1] else ""),
        "preflight": {None: "no", "always": "yes"}.get(
            survive.preflight, "where python3 has the training module"
        ),
        "hang_timeout": clock(spec.hang_timeout or 1800)
        if plan.program.is_ours or spec.hang_timeout
        else None,
    }


def _devices(plan: Plan) -> int | str:
    kind, number = type_of(plan.spec.gpus_per_node), plan.resources.gpus_per_node
    return f"{kind}:{number_of(plan.spec.gpus_per_node)}" if kind else number


def _derived(plan: Plan) -> list[Row]:
    spec, resources = plan.spec, plan.resources
    directory = f"{spec.runs_dir}/{spec.name}-JOBID"
    what = "the training module of jobgen" if plan.program.is_ours else "your own program"
    values = (
        *_site_rows(plan),
        ("scheduler", plan.scheduler.title, f"Submitted with {plan.scheduler.command}."),
        (
            "world_size",
            resources.active.world_size or f"{resources.ranks_per_node} a node",
            f"Ranks in all, on {resources.active.nodes} of {resources.nodes} nodes."
            if resources.nodes
            else "Ranks, on as many nodes as the job gets.",
        ),
        ("slots", resources.mixed or resources.ranks_per_node, "Ranks that the hostfile allows a host."),
        ("hosts", f"{directory}/hostfile", "HOST slots=N lines, written and checked by the script."),
        ("rendezvous", "MASTER_ADDR:MASTER_PORT", "The address and the port above."),
        (
            "devices",
            ", ".join(filter(None, (chunk.devices for chunk in resources.chunks))) or None,
            "The scheduler's request for the accelerators.",
        ),
        ("start", _start(plan), "How the ranks are started on the nodes."),
        ("program", shlex.join(plan.program.words), f"What every rank runs: {what}."),
        ("output", directory, "The run directory: hostfile, environment, metrics and status."),
    )
    more = _programs(plan)
    swept = (("sweep", plan.sweep.title, "Each point is a task of the array."),) if plan.sweep else ()
    return [
        Row(name, value, spec.origins.get(name, "derived"), meaning)
        for name, value, meaning in (*values, *more, *swept)
    ]


def _programs(plan: Plan) -> list[tuple[str, list[str], str]]:
    """Return the rows of the steps, the components, and the points of a task: what each has."""
    first = f"; the first: {_part_text(plan.pack.parts[0])}" if plan.pack and plan.pack.parts else ""
    order = "Run one after another, those with parallel = true together with the one before."
    found = (
        ("steps", [_step_text(one) for one in plan.steps], order),
        (
            "components",
            [_component_text(one) for one in plan.components],
            "Parts of one job, from rank 0 on.",
        ),
        ("points", [plan.title + first] if plan.pack else [], "Side by side in each task of the array."),
    )
    return [row for row in found if row[1]]


def _step_text(step: Plan) -> str:
    name = f"{step.place.name}: " if step.place and step.place.name else ""
    part = f"; {_part_text(step.part)}" if step.part else ""
    return name + step.title + part


def _part_text(part: NodePart) -> str:
    return f"devices {part.device_text}, cores {part.core_text} of a node"


def _component_text(part: Plan) -> str:
    more = (("queue", part.queue), ("memory", part.resources.memory), ("constraint", part.spec.constraint))
    words = "".join(f", {name} {value}" for name, value in more if value)
    return f"{part.title}, {counted(part.resources.cpus.rank, 'core')} a rank{words}"


def _start(plan: Plan) -> str:
    launch = plan.launch
    return {
        "here": "started on this one node",
        "srun": "one launcher a node, started by srun",
        "each": f"one launcher a node, started by {' or else '.join(launch.agents)}",
        "pdsh": "started by pdsh over ssh",
        "launcher": (launch.row.start or f"started by {plan.spec.launcher}")
        + (f", its daemons by {' or else '.join(launch.agents)}" if launch.agents and launch.mpirun else ""),
    }[launch.start_nodes]


def _site_rows(plan: Plan) -> list[tuple[str, Any, str]]:
    if plan.spec.site is None:
        return []
    rows = "; ".join((*plan.site.request, *plan.site.directives))
    return [
        ("site", plan.spec.site.title, f"Its rules and limits: {plan.spec.site.path}."),
        ("request", rows or None, "The site's request for nodes and devices."),
    ]


def as_json(plan: Plan, host: str | None = None) -> str:
    """Return the rows as a JSON object: name to value, origin and meaning."""
    table = {
        row.name: {"value": row.value, "origin": row.origin, "meaning": row.meaning}
        for row in rows(plan, host)
    }
    return json.dumps(table, indent=2) + "\n"


def as_table(plan: Plan, width: int, every: bool = False, host: str | None = None) -> str:
    """Return the derived values and those that were set as a table of at most ``width`` columns; with
    ``every`` those that have their defaults, too."""
    options = len(OPTIONS)
    found = rows(plan, host)
    defaults = [row for row in found[:options] if row.origin == "default" and row.name not in _BY_PROGRAM]
    given = [row for row in found[:options] if row not in defaults]
    shown = [*found[options:], *given, *(defaults if every else ())]
    head = ("VALUE", "IS", "FROM", "MEANING")
    cells = [head, *((row.name, _cell(row.value), row.origin, row.meaning) for row in shown)]
    longest = [max(len(visible(row[i])) for row in cells) for i in range(3)]
    widths = [longest[0], min(longest[1], width // 3), min(longest[2], width // 4)]
    widths.append(max(20, width - sum(widths) - 2 * len(widths)))
    lines = [line for row in cells for line in _folded(row, widths)]
    if not every:
        lines.append(f"and {len(defaults)} defaults: --explain=all")
    return "".join(f"{line}\n" for line in lines)


_BY_PROGRAM = ("launcher",)  # its default follows from the program


def _folded(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a row whose cells are folded to their widths."""
    cells = (textwrap.wrap(visible(cell), width) for cell, width in zip(row, widths, strict=True))
    for parts in zip_longest(*cells, fillvalue=""):
        yield "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()


def _cell(value: Any) -> str:
    if value is None or value in ((), []):
        return "-"
    return shlex.join(value) if isinstance(value, (list, tuple)) else str(value)
