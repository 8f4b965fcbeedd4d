"""The runtime: the files of templates/runtime/ that a plan needs, and the settings that they read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import jobgen.templates
from jobgen.launch.containers import DAEMONS
from jobgen.launch.expansion import of_the_script
from jobgen.launch.launchers import LAUNCHERS
from jobgen.plan.node_work import NODE_LIMIT, local_caches, works_on_nodes
from jobgen.schedulers.base import clock
from jobgen.values.parsers import known_directory
from jobgen.values.version import __version__

if TYPE_CHECKING:
    from jobgen.plan.plan import Plan

FOLDER = os.path.join(jobgen.templates.__path__[0], "runtime")
MAIN, DOCTOR = "main", "doctor"
MADE_BY = r"^# (.*); made by jobgen (\S+)\.$"  # the title and the version, near the top of every script
MARK = "# ======== jobgen runtime "  # begins the line between the job part and the runtime


class Runtime(NamedTuple):
    """The text below the marker line, its SHA-256, and the file that holds it if it is not embedded."""

    text: str
    sha256: str
    file: str
    mark: str = MARK


class Setting(NamedTuple):
    """A shell variable of the job part: a text, or the elements of an array."""

    name: str
    value: str | int | tuple[str, ...] | None


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """Return the names of all variables and functions of the runtime."""
    paths = [os.path.join(folder, file) for folder, _, files in os.walk(FOLDER) for file in files]
    found: set[str] = set()
    for path in paths:
        with open(path, encoding="utf-8") as stream:
            found.update(re.findall(r"\bjob_[a-z]\w*", stream.read()))
    return frozenset(found)


def runtime(plan: Plan, main: str = MAIN) -> Runtime:
    """Return the runtime of a plan; ``main`` is the file with its order of steps."""
    jobs = (plan.point or plan, *plan.steps)
    files, node_files = (
        _merged([list(of(one)) for one in jobs]) for of in (partial(_files, main=main), _node_files)
    )
    return _assembled(files, node_files, bool(plan.components and plan.scheduler.component_line))


def _merged(lists: list[list[str]]) -> tuple[str, ...]:
    """Return the files of all lists, each once, behind those before it."""
    found = lists[0]
    for names in lists[1:]:
        for at, name in enumerate(names):
            if name not in found:
                found.insert(found.index(names[at - 1]) + 1 if at else 0, name)
    return tuple(found)


@lru_cache(maxsize=64)
def _assembled(files: tuple[str, ...], node_files: tuple[str, ...], compact: bool) -> Runtime:
    parts = [f"# ---- {name}.sh: {_text(name)[2:]}" for name in files[:-1]]
    parts += [_written(name) for name in node_files]
    text = "\n".join([*parts, _text(files[-1])])
    if compact:  # sbatch of Slurm 22.05 takes the empty lines out of the script of a heterogeneous job
        text = re.sub(r"\n{2,}", "\n", text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Runtime(text, digest, f"jobgen-runtime-{__version__}-{digest[:8]}.sh")


@lru_cache(maxsize=128)
def _text(name: str) -> str:
    with open(os.path.join(FOLDER, f"{name}.sh"), encoding="utf-8") as file:
        return file.read()


def _written(name: str) -> str:
    """Return a file that the script writes into the run directory, as a function that prints it."""
    end = f"END_OF_{name.upper()}"
    return f"job_file_{name}() {{\n  cat << '{end}'\n{_text(f'node/{name}')}{end}\n}}\n"


def _files(plan: Plan, main: str) -> Iterator[str]:
    """Yield the files in the order of the script."""
    spec, box, accelerator = plan.spec, plan.container, plan.resources.accelerator
    yield from ("messages", "finish", "signals", plan.scheduler.runtime, "run_directory")
    software = accelerator.runtime if box is None else accelerator.runtime_in_container
    blocks = spec.early_setup or spec.setup
    if spec.module_init or spec.source or spec.venv or spec.conda or blocks or "cann" in software:
        yield "source"
    yield from software
    yield from (name for name, needed in _needs(plan).items() if needed)
    yield from LAUNCHERS[spec.launcher].runtime
    if plan.launch.mpirun:
        yield from plan.launch.mpirun.runtime
    yield main


def _needs(plan: Plan) -> dict[str, object]:
    """Return the files in the order of the script, each with what makes it necessary."""
    spec, survive, box, launch = plan.spec, plan.survival, plan.container, plan.launch
    folders, modules = spec.module_use or plan.site.module_use, spec.module or plan.site.network.modules
    return {
        "modules": spec.module_purge or folders or modules,
        "conda": spec.conda,
        "setup": spec.early_setup or spec.setup,
        "requirements": True,
        "container": box,
        "secrets": True,
        "sweep": plan.sweep,
        "hostfile": True,
        "components": plan.components and plan.scheduler.component_line,
        "filter": plan.resources.active.option,
        "rendezvous": True,
        "master_addr": spec.master_addr,
        "deadline": survive.timer or survive.grace is not None,
        "expand": _variables(plan),
        "handover": True,
        "mpi_version": launch.mpirun and launch.mpirun.version,
        "pmi_library": launch.pmi_library and box is None,
        "pdsh": launch.start_nodes == "pdsh",
        "stage": spec.stage,
        "local_caches": local_caches(spec),
        "on_nodes": works_on_nodes(spec),
        "before_after": spec.before or spec.after_block,
        "run": True,
        "hang": survive.hang_timeout and not plan.program.is_ours,
        "remote_start": launch.reach,
        f"reach_{launch.reach}": launch.reach,
        "lost_nodes": launch.reach,
        "preflight": survive.preflight,
        "spare_nodes": survive.chooses_nodes,
        "leftover": box and box.kind in DAEMONS,
        "verdict": True,
        "pack": plan.pack,
        "steps": plan.steps,
        "node_parts": plan.part,
        "named_steps": any(one.name for one in spec.steps),
        "parallel_steps": any(one.parallel for one in spec.steps),
        "ready_steps": any(one.ready for one in spec.steps),
        "restart": survive.restarts,
        "requeue": spec.requeue,
        f"{plan.scheduler.runtime}_requeue": spec.requeue,
        "requeue_at_limit": survive.requeue_at_limit,
    }


def _node_files(plan: Plan) -> Iterator[str]:
    yield from ("rank", "watch")
    if plan.spec.master_addr:
        yield "address"
    if plan.launch.node_function:
        yield "node"
    if plan.launch.start_nodes == "each":
        yield "each_node"
    if plan.launch.agents or plan.launch.reach == "remote":
        yield "remote"
    if plan.resources.cpus.bind not in (None, "none"):
        yield "bind"
    if plan.container:
        yield "container"
    if plan.spec.gpu_telemetry and (tool := plan.resources.accelerator.telemetry):
        yield from ("telemetry", tool)
    if works_on_nodes(plan.spec):
        yield "on_node"
    if plan.part:
        yield "part"


def settings(plan: Plan) -> list[Setting]:
    """Return the settings of the job part; empty ones are left out."""
    plan = plan.point or plan
    groups = (_names, _place, _sizes, _times, _program, _nodes, _disks, _devices, _part, _box)
    return [one for group in groups for one in group(plan) if one.value not in (None, "", ())]


def step_settings(plan: Plan) -> list[Setting]:
    """Return the settings that only a step has: its place among the others, and its part of the nodes."""
    return [*_place(plan), *_part(plan)]


def _names(plan: Plan) -> Iterator[Setting]:
    spec = plan.spec
    yield Setting("job_name", spec.name)
    yield Setting("job_title", plan.title)
    yield Setting("job_runs_dir", spec.runs_dir)
    yield Setting("job_workdir", known_directory(spec.workdir))
    yield Setting("job_is_array", "yes" if plan.directives.array else "")
    yield Setting("job_has_dependency", "yes" if spec.after else "")
    yield Setting("job_run_dir_umask", "027" if spec.group_readable else "")
    yield Setting("job_secret_names", spec.secrets)
    yield Setting("job_steps", len(plan.steps) or "")
    yield Setting("job_parallel_steps", tuple(str(n) for n, one in enumerate(spec.steps, 1) if one.parallel))


def _place(plan: Plan) -> Iterator[Setting]:
    if place := plan.place:
        yield Setting("job_step_name", place.name or "")
        yield Setting("job_first_node", place.first_node or "")
        yield Setting("job_waits_for", tuple(map(str, place.waits_for)))
        yield Setting("job_ends_with", place.ends_with or "")
        if ready := place.ready:
            yield Setting("job_ready_file", ready.file)
            yield Setting("job_ready_port", ready.port or "")
            yield Setting("job_ready_line", ready.line)
            yield Setting("job_ready_seconds", ready.within)


def _sizes(plan: Plan) -> Iterator[Setting]:
    resources = plan.resources
    yield Setting("job_host_list", tuple(f"{host}:{slots}" for host, slots in plan.spec.hostfile or ()))
    yield Setting("job_nodes", resources.allocated or "")
    yield Setting("job_needed_nodes", resources.nodes if plan.survival.chooses_nodes else "")
    yield Setting("job_min_nodes", plan.survival.min_nodes or "")
    yield Setting("job_ranks_per_node", resources.ranks_per_node)
    yield Setting("job_world_size", resources.active.world_size or "")
    yield Setting("job_cpus_per_node", plan.pack.cores if plan.pack else resources.cpus.node)
    if resources.mixed:
        yield Setting("job_node_groups", resources.mixed)
        if plan.scheduler.component_line:
            parts = [one.resources for one in plan.components]
            numbers = (f"{one.nodes}x{one.ranks_per_node}x{one.cpus.node}" for one in parts)
            yield Setting("job_components", " ".join(numbers))
        yield Setting(
            "job_lines_per_rank", resources.cpus.rank if plan.scheduler.behaviour.hosts_by_core else ""
        )


def _times(plan: Plan) -> Iterator[Setting]:
    spec, survive = plan.spec, plan.survival
    yield Setting("job_walltime_seconds", survive.walltime or "")
    yield Setting("job_grace_seconds", "" if survive.grace is None else survive.grace)
    yield Setting("job_grace_at_most_a_tenth", "yes" if survive.short_grace else "")
    yield Setting("job_sends_signal_itself", "yes" if survive.timer else "")
    yield Setting("job_save_signal", survive.signal)
    yield Setting("job_launcher_timeout", clock(survive.timeout) if survive.timeout else "")
    yield Setting("job_max_requeues", spec.requeue or "")
    yield Setting("job_max_restarts", survive.restarts or "")
    yield Setting("job_hang_timeout", f"{survive.hang_timeout}s" if survive.hang_timeout else "")
    yield Setting("job_preflight_mode", survive.preflight or "")
    yield Setting("job_preflight_seconds", survive.preflight_limit if survive.preflight else "")


def _variables(plan: Plan) -> tuple[str, ...]:
    """Return the variables of the script that the words of the programs and of their containers name."""
    plans = plan.steps or (plan,)
    boxes = [word for one in plans if one.container for word in one.container.words]
    words = [word for one in plans for word in one.program.words]
    return of_the_script((*words, *boxes)) if plan.spec.expand else ()


def _program(plan: Plan) -> Iterator[Setting]:
    mpi = plan.launch.mpirun
    yield Setting("job_launcher_name", plan.spec.launcher)
    yield Setting("job_program_variables", _variables(plan))
    yield Setting("job_runs_training_module", "yes" if plan.program.is_ours else "")
    yield Setting("job_rank_logs", plan.spec.rank_logs)
    yield Setting("job_mpi_command", mpi.command if mpi and mpi.version else "")
    yield Setting("job_mpi_version_text", mpi.version if mpi else "")
    yield Setting("job_mpi_title", mpi.title if mpi and mpi.version else "")


def _nodes(plan: Plan) -> Iterator[Setting]:
    spec, launch, active = plan.spec, plan.launch, plan.resources.active
    yield Setting("job_remote_commands", " ".join(launch.agents))
    yield Setting("job_mpi_only_by_ssh", "yes" if launch.agents and spec.remote == "ssh" else "")
    yield Setting("job_host_access", launch.reach or "")
    yield Setting("job_master_addr", spec.master_addr or "")
    yield Setting("job_master_port", spec.master_port or "")
    yield Setting("job_faster_networks", " or ".join(plan.site.faster_networks))
    yield Setting("job_filter_option", active.option or "")
    yield Setting("job_filter_hosts", active.named)
    yield Setting("job_filter_whole_hosts", active.included or active.excluded)


def _disks(plan: Plan) -> Iterator[Setting]:
    spec = plan.spec
    if works_on_nodes(spec):
        yield Setting("job_node_limit", spec.node_limit or NODE_LIMIT)
        yield Setting("job_local_dir", spec.local_dir)
        yield Setting("job_stage", tuple(map(":".join, spec.stage)))
        yield Setting("job_local_caches", tuple(map("=".join, local_caches(spec).items())))


def _devices(plan: Plan) -> Iterator[Setting]:
    cpus, visible = plan.resources.cpus, plan.resources.accelerator.visible
    yield Setting("job_accelerator", plan.resources.accelerator_name)
    if plan.launch.row.renumbers_devices and visible:
        by_node = plan.launch.start_nodes == "pdsh" and plan.scheduler.behaviour.sets_devices
        yield Setting("job_device_variable", visible)
        yield Setting("job_lists_devices_of_nodes", "yes" if by_node else "")
    if cpus.bind and cpus.bind != "none":
        yield Setting("job_cpu_bind", cpus.bind)
        yield Setting("job_cpu_lists", cpus.lists)


def _part(plan: Plan) -> Iterator[Setting]:
    if pack := plan.pack:
        yield Setting("job_pack", pack.size)
        yield Setting("job_pack_nodes", pack.nodes)
        yield Setting("job_points", pack.points)
        yield Setting("job_points_per_node", len(pack.parts) or "")
        yield Setting("job_part_variable", (plan.part and plan.part.variable) or "")
        yield Setting("job_pack_devices", tuple(one.device_text for one in pack.parts if one.variable))
        yield Setting("job_pack_cores", tuple(one.core_text for one in pack.parts))
    elif part := plan.part:
        yield Setting("job_part_devices", part.device_text if part.variable else "")
        yield Setting("job_part_variable", part.variable or "")
        yield Setting("job_part_cores", part.core_text)


def _box(plan: Plan) -> Iterator[Setting]:
    if box := plan.container:
        yield Setting("job_container_runtime", box.kind)
        yield Setting("job_container_image", plan.spec.image or "")
        yield Setting("job_container_variables", box.named)
        yield Setting("job_container_variable_prefix", (box.runtime.prefix or "") if box.named else "")
