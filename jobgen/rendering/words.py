"""The values for the templates besides the fields of the plan: quoted parts of command lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.launch.expansion import names, of_ranks, parts
from jobgen.plan.own_request import check_beside, given_keys, nodes_are_open, remaining, replaced
from jobgen.rendering.launch_words import launch_words
from jobgen.rendering.network_lines import network_lines
from jobgen.rendering.quoting import each, item, quoted, sh
from jobgen.rendering.runtime import Setting, settings
from jobgen.schedulers.precedence import split_user_directives

if TYPE_CHECKING:
    from jobgen.plan.plan import Plan

_QUOTED = ("job_title", "job_name")


def words(plan: Plan) -> dict[str, object]:
    """Return the values by name."""
    spec, box = plan.spec, plan.container
    first, last = split_user_directives(spec.directive, plan.scheduler.grammar)
    image = _pyxis_words(plan) if box is not None and box.kind == "pyxis" else ""
    return {
        "queue": plan.queue,
        "walltime": plan.scheduler.clock(plan.resources.walltime) if plan.resources.walltime else None,
        "settings": [" ".join(map(assignment, line)) for line in settings(plan)],
        **_directives(plan),
        "first_directives": first,
        "last_directives": last,
        "container_directives": (f"--image={spec.image}",) if box and box.kind == "shifter" else (),
        "activate": f"{spec.venv}/bin/activate" if spec.venv else None,
        "program_words": _program_words(plan),
        "container_words": each(spec.container_arg),
        "pyxis_words": image,
        "srun_container": "" if plan.launch.start_nodes == "here" else image,
        "node_prefix": box.node if box else "",
        "network": network_lines(plan),
        "threads": max(1, plan.resources.cpus.rank // plan.site.threads_per_core),
        "commands": tuple(dict.fromkeys(word for one in plan.steps or (plan,) for word in _commands(one))),
        "needs": list(dict.fromkeys(line for one in plan.steps or (plan,) for line in _needs(one))),
        **launch_words(plan),
    }


def _directives(plan: Plan) -> dict[str, object]:
    """Return the directives that those of the user's may replace, and the option of the number of nodes if
    the submission has it."""
    scheduler, memory = plan.scheduler, plan.resources.memory
    chunk, place = plan.directives.chunk, plan.directives.place
    request = list(plan.site.request or scheduler.node_lines(plan.resources, chunk, place))
    given = given_keys(plan.spec, scheduler)
    check_beside(request, given, plan.spec, scheduler)
    option = f"{request.pop(0)} " if nodes_are_open(plan.spec, scheduler) else ""
    lines = {
        "request": request,
        "memory": [scheduler.memory_form.format(memory)] if memory and scheduler.memory_form else [],
        "join": [scheduler.request_forms["join"]] if "join" in scheduler.request_forms else [],
        "options": plan.directives.lines,
        "addressed": _addressed(plan),
    }
    without = replaced(given, scheduler)
    return {key: remaining(value, without, scheduler) for key, value in lines.items()} | {
        "nodes_option": option
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


def _addressed(plan: Plan) -> tuple[str, ...]:
    """Return the directives of the queue, the account and the mail."""
    from jobgen.schedulers.base import key_of

    spec, site, forms = plan.spec, plan.site, plan.scheduler.request_forms
    given = (
        ("queue", site.queue, plan.queue),
        ("account", site.account, spec.account),
        ("mail_user", None, spec.mail),
        ("mail", None, plan.directives.mail_on),
    )
    return tuple(
        forms[key].replace(key_of(forms[key]), own or key_of(forms[key])).format(value)
        for key, own, value in given
        if value and key in forms
    )


def assignment(setting: Setting) -> str:
    """Return a setting as a line of bash."""
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
    line = list(map(_expanded, parts(program.words)) if plan.spec.expand else map(sh, program.words))
    if program.head and plan.launch.row.local_rank_option:
        line.insert(program.head, '"--local_rank=$LOCAL_RANK"')
    if program.is_ours and plan.survival.preflight:
        line.insert(3, '"$@"')  # preflight
    if plan.sweep:
        line.append('${job_point[@]+"${job_point[@]}"}')
    return (plan.container.rank if plan.container else "") + " ".join(line)


def _expanded(word: list[tuple[str, str]]) -> str:
    """Return a word of the program with the values of the names in it, and the rest as it is."""
    return "".join((sh(text) if text else "") + _value(name) for text, name in word) or "''"


def _value(name: str) -> str:
    reference = f'"${name}"' if name in of_ranks() else f'"${{job_value[{name}]}}"'
    return reference if name else ""


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
    if plan.spec.expand and names([program.file or program.command or ""]):
        return lines  # its name is not known yet
    if program.file:
        lines.append(f"job_need_file {sh(program.file)}")
    if program.command:
        lines.append(f"job_need_program {sh(program.command)}")
    return lines
