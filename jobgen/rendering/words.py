"""The values for the templates besides the fields of the plan: quoted parts of command lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.rendering.launch_words import launch_words
from jobgen.rendering.quoting import each, item, quoted, sh
from jobgen.rendering.runtime import Setting, settings
from jobgen.schedulers.precedence import split_user_directives

if TYPE_CHECKING:
    from jobgen.plan import Plan

_QUOTED = ("job_title", "job_name")


def words(plan: Plan) -> dict[str, object]:
    """Return the values by name."""
    spec, box = plan.spec, plan.container
    first, last = split_user_directives(spec.directive, plan.scheduler.name)
    image = _pyxis_words(plan) if box is not None and box.kind == "pyxis" else ""
    return {
        "queue": plan.queue,
        "walltime": plan.scheduler.clock(plan.resources.walltime),
        "settings": [" ".join(map(_assignment, line)) for line in settings(plan)],
        "first_directives": first,
        "last_directives": last,
        "container_directives": (f"--image={spec.image}",) if box and box.kind == "shifter" else (),
        "activate": f"{spec.venv}/bin/activate" if spec.venv else None,
        "program_words": _program_words(plan),
        "container_words": each(spec.container_arg),
        "pyxis_words": image,
        "srun_container": "" if plan.launch.start_nodes == "here" else image,
        "node_prefix": box.node if box else "",
        "network": _network(plan),
        "commands": _commands(plan),
        "needs": _needs(plan),
        **launch_words(plan),
    }


def former_names(plan: Plan) -> dict[str, object]:
    """Return values by their names of earlier versions, which the templates of users may have."""
    parts = {**plan.resources._asdict(), **plan.launch._asdict()}
    own = {"launcher": plan.spec.launcher, "launch_template": plan.launch.template}
    gone = {
        "array": plan.directives.array,
        "launcher_args": plan.spec.launcher_arg,
        "rank_variables": plan.launch.rank_variables,
    }
    return {**parts, **own, **gone}


def _assignment(setting: Setting) -> str:
    value = setting.value
    if isinstance(value, tuple):
        return f"{setting.name}=({' '.join(map(item, value))})"
    return f"{setting.name}={quoted(value) if setting.name in _QUOTED else sh(value)}"


def _pyxis_words(plan: Plan) -> str:
    """Return the options of srun that start a container."""
    assert plan.container
    folders = '"$JOBGEN_RUN_DIR:$JOBGEN_RUN_DIR,$PWD:$PWD"'
    binds = "".join(f",{sh(bind)}" for bind in plan.container.binds)
    return (
        f'--container-image={sh(plan.spec.image)} --container-workdir="$PWD" '
        f"--container-mounts={folders}{binds} {each(plan.spec.container_arg)}"
    )


def _program_words(plan: Plan) -> str:
    program = plan.program
    line = [sh(word) for word in program.words]
    if program.head and plan.launch.row.local_rank_option:
        line.insert(program.head, '"--local_rank=$LOCAL_RANK"')
    if program.is_ours and plan.survival.preflight:
        line.insert(3, '"$@"')  # preflight
    if plan.sweep:
        line.append('"${job_point[@]}"')
    return (plan.container.rank if plan.container else "") + " ".join(line)


def _network(plan: Plan) -> list[str]:
    """Return the settings of the interface. Gloo and Open MPI require full names, TensorPipe only one."""
    interface, mpi = plan.spec.interface, plan.launch.mpi
    if not interface:
        return []
    first = interface.partition(",")[0]
    lines = [f"export NCCL_SOCKET_IFNAME={interface} GLOO_SOCKET_IFNAME={interface} TP_SOCKET_IFNAME={first}"]
    libraries = (plan.resources.accelerator.network, mpi.network if mpi else "")
    lines += [line.format(interface=interface) for line in libraries if line]
    return [one for line in lines for one in ("# jobgen: disable=fixed-interface", line)]


def _commands(plan: Plan) -> tuple[str, ...]:
    """Return the commands that the host must have; the others are in the container."""
    launch, box = plan.launch, plan.container
    command = (launch.mpirun or launch.row).command
    agents = launch.agents if plan.spec.remote == "scheduler" else ()
    if box:
        own = () if launch.row.once_a_node else (command,)
        return (*dict.fromkeys((box.runtime.command, *own)), *agents)
    python = ("python3",) if plan.program.head is not None or launch.row.once_a_node else ()
    return (*python, command, *agents)


def _needs(plan: Plan) -> list[str]:
    """Return the checks of the container, the training module and the program."""
    box, program = plan.container, plan.program
    lines = ["job_try_container"] if box else []
    if box and box.needs:
        lines.append(f"job_need_inside {' '.join(box.needs)}")
    if program.is_ours:
        lines.append("job_need_training")
    if program.file:
        lines.append(f"job_need_file {sh(program.file)}")
    if program.command:
        lines.append(f"job_need_program {sh(program.command)}")
    return lines
