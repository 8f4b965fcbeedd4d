"""The values for the templates: the parts of the plan, and text that is quoted for bash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobgen.launch.expansion import names, of_ranks, of_the_script, parts
from jobgen.plan.node_work import works_on_nodes
from jobgen.rendering import launch_words
from jobgen.rendering.directives import DirectiveLines, directive_lines
from jobgen.rendering.environment import environment_lines
from jobgen.rendering.quoting import each, item, quoted, sh, sh_open, sh_path
from jobgen.rendering.runtime import Setting, settings

if TYPE_CHECKING:
    from jobgen.launch.program import Program
    from jobgen.plan.allocation import Resources
    from jobgen.plan.container import Container
    from jobgen.plan.launch_method import LaunchMethod
    from jobgen.plan.node_parts import NodePart
    from jobgen.plan.plan import Plan
    from jobgen.plan.site_directives import SiteWords
    from jobgen.plan.survival import Survival
    from jobgen.plan.sweep import Sweep
    from jobgen.schedulers.base import Scheduler
    from jobgen.spec import Specification

_QUOTED = ("job_title", "job_name")


class Words(NamedTuple):
    """All values of a template. Text is quoted for bash; text that precedes other words ends with a blank.

    ``spec`` to ``part`` are those of the plan; ``queue`` and ``walltime`` are in the form of the scheduler.
    """

    version: str
    spec: Specification
    scheduler: Scheduler
    title: str
    resources: Resources
    launch: LaunchMethod
    program: Program
    container: Container | None
    survival: Survival
    site: SiteWords
    sweep: Sweep | None
    step: int
    part: NodePart | None
    preflight: bool  # of a job with steps
    queue: str | None
    walltime: str | None
    directives: DirectiveLines
    settings: tuple[str, ...]  # lines
    # The function environment
    modules: tuple[str, ...]  # the words of each call that loads modules
    activate: str | None  # the file that activates the virtual environment
    environment: tuple[str, ...]  # lines that set variables
    commands: tuple[str, ...]  # that the host must have
    needs: tuple[str, ...]  # lines that check the container, the training module and the program
    late_needs: tuple[str, ...]  # the same, behind ``before``
    # The functions rank, program and launch
    rank_lines: tuple[str, ...]
    telemetry: str | None  # what starts the telemetry of the node
    program_words: str
    run: str  # what ends the launcher after a time
    launcher_words: str  # --launcher-arg
    launcher_kind: str  # the option that starts several ranks
    mpi_options: tuple[str, ...]  # lines
    nodes_word: str
    node_ranks: str | int
    world_word: str
    even_world: str
    host_list: str  # srun's option for the nodes
    step_parts: tuple[launch_words.StepPart, ...]  # of the command of srun
    filter_words: str  # the option for the devices
    # The container
    image: str
    binds: tuple[str, ...]
    container_words: str  # --container-arg
    plugin_words: str  # the options of srun for a runtime that is its plug-in
    srun_container: str  # the same if srun starts the ranks
    node_prefix: str  # what starts the launcher of a node


def words(plan: Plan) -> Words:
    """Return the values for the templates.

    Raises:
        JobgenError: the scheduler refuses one of the user's directives.
    """
    if plan.point:
        return words(plan.point)._replace(
            title=plan.title, directives=directive_lines(plan), queue=plan.queue
        )
    spec, box = plan.spec, plan.container
    plugin = _plugin_words(plan) if box is not None and box.runtime.image_option else ""
    jobs = (*plan.steps, *((plan,) if plan.survival.preflight or not plan.steps else ()))
    needs = [_needs_of(plan, one) for one in jobs]
    return Words(
        version=plan.version,
        spec=spec,
        scheduler=plan.scheduler,
        title=plan.title,
        resources=plan.resources,
        launch=plan.launch,
        program=plan.program,
        container=box,
        survival=plan.survival,
        site=plan.site,
        sweep=plan.sweep,
        step=plan.step,
        part=plan.part,
        preflight=bool(plan.steps and plan.survival.preflight),
        queue=plan.queue,
        walltime=plan.scheduler.clock(plan.resources.walltime) if plan.resources.walltime else None,
        directives=directive_lines(plan),
        settings=tuple(map(assignment, settings(plan))),
        modules=_modules((*spec.module, *plan.site.network.modules)),
        activate=f"{spec.venv}/bin/activate" if spec.venv else None,
        environment=environment_lines(plan),
        commands=tuple(dict.fromkeys(word for one in jobs for word in _commands(one))),
        needs=tuple(dict.fromkeys(line for early, _ in needs for line in early)),
        late_needs=tuple(dict.fromkeys(line for _, late in needs for line in late)),
        rank_lines=launch_words.rank_lines(plan),
        telemetry=launch_words.telemetry(plan),
        program_words=_program_words(plan),
        run=launch_words.timeout(plan),
        launcher_words=each(spec.launcher_arg),
        launcher_kind=launch_words.kind(plan),
        mpi_options=launch_words.mpi_options(plan),
        nodes_word=launch_words.nodes(plan),
        node_ranks=launch_words.node_ranks(plan),
        world_word=launch_words.world(plan),
        even_world=launch_words.even_world(plan),
        host_list=launch_words.host_list(plan),
        step_parts=launch_words.step_parts(plan),
        filter_words=launch_words.device_filter(plan),
        image=_word(plan, spec.image or ""),
        binds=_binds(plan),
        container_words=_container_words(plan),
        plugin_words=plugin,
        srun_container="" if plan.launch.start_nodes == "here" else plugin,
        node_prefix=box.node if box else "",
    )


def assignment(setting: Setting) -> str:
    """Return a setting as a line of bash."""
    value = setting.value
    if isinstance(value, tuple):
        return f"{setting.name}=({' '.join(map(item, value))})"
    if setting.name == "job_workdir":
        return f"{setting.name}={sh_path(str(value))}"
    return f"{setting.name}={quoted(value) if setting.name in _QUOTED else sh(value)}"


def _modules(modules: Sequence[str]) -> tuple[str, ...]:
    """Return the words of each call that loads modules: those before a name with a variable may set it."""
    calls: list[list[str]] = [[]]
    for name in modules:
        if "$" in name:
            calls.append([])
        calls[-1].append(sh_open(name))
    return tuple(" ".join(call) for call in calls if call)


def _plugin_words(plan: Plan) -> str:
    """Return the options of srun that start a container."""
    assert plan.container
    folders = '"$JOBGEN_RUN_DIR:$JOBGEN_RUN_DIR,$PWD:$PWD"'
    if works_on_nodes(plan.spec):
        local = "${JOBGEN_LOCAL_DIR:+,$JOBGEN_LOCAL_DIR:$JOBGEN_LOCAL_DIR}"  # unset in the container's test
        folders = f'{folders[:-1]}{local}"'
    image = f"{plan.container.runtime.image_option}={_word(plan, plan.spec.image or '')}"
    return (
        f'{image} --container-workdir="$PWD" '
        f"--container-mounts={','.join((folders, *_binds(plan)))} {_container_words(plan)}"
    )


def _binds(plan: Plan) -> tuple[str, ...]:
    return tuple(_word(plan, bind) for bind in plan.container.binds) if plan.container else ()


def _container_words(plan: Plan) -> str:
    return "".join(f"{_word(plan, text)} " for text in plan.spec.container_arg)


def _word(plan: Plan, text: str) -> str:
    return _expanded(parts([text])[0]) if plan.spec.expand else sh(text)


def _program_words(plan: Plan) -> str:
    program = plan.program
    line = list(map(_expanded, parts(program.words)) if plan.spec.expand else map(sh, program.words))
    without = {"--no_local_rank", "--no-local-rank"} & set(plan.spec.launcher_arg)
    if program.head and plan.launch.row.local_rank_option and not without:
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
    return (f'"${name}"' if name in of_ranks() else f'"${{job_value[{name}]}}"') if name else ""


def _commands(plan: Plan) -> tuple[str, ...]:
    """Return the commands that the host must have; the others are in the container."""
    launch, box = plan.launch, plan.container
    command = (launch.mpirun or launch.row).command
    agents = launch.agents if plan.spec.remote == "scheduler" else ()
    if box:
        own = () if launch.row.once_a_node else (command,)
        return (*dict.fromkeys(filter(None, (box.runtime.command, *own))), *agents)
    python = ("python3",) if plan.program.head is not None or launch.row.once_a_node else ()
    return tuple(filter(None, (*python, command, *agents)))


def _needs_of(job: Plan, plan: Plan) -> tuple[list[str], list[str]]:
    """Return the checks of a step, or of the job itself, and those behind ``before``, which may make the
    program. Those in a container replace those of the host."""
    boxes = {(one.spec.container, one.spec.image, one.spec.bind) for one in job.steps}
    own, of_program = _needs(plan), _needs_of_program(plan)
    late = of_program if job.spec.before else []
    if plan.step and plan.container and (job.container is None or len(boxes) > 1):
        lines = [f"(step_{plan.step}; {'; '.join([*own, *of_program])})"]
        return ([], lines) if late else (lines, [])
    if plan.container is None and any(kind for kind, *_ in boxes):
        return [], []
    return (own, late) if late else ([*own, *of_program], [])


def _needs(plan: Plan) -> list[str]:
    """Return the checks of the container and the training module."""
    box = plan.container
    lines = []
    if box and plan.spec.expand and (inside := of_the_script(box.words)):
        lines.append(f"job_read_values {' '.join(inside)}")
    if box:
        lines.append("job_try_container")
    elif plan.launch.pmi_library:
        lines.append(f"job_pmi_library {plan.launch.pmi_library}")
    if box and box.needs:
        lines.append(f"job_need_inside {' '.join(box.needs)}")
    if plan.program.is_ours:
        lines.append("job_need_training")
    return lines


def _needs_of_program(plan: Plan) -> list[str]:
    """Return the checks of the program; none if its name is not known yet."""
    program = plan.program
    if plan.spec.expand and names([program.file or program.command or ""]):
        return []
    lines = []
    if program.file:
        lines.append(f"job_need_file {sh(program.file)}")
    if program.command:
        lines.append(f"job_need_program {sh(program.command)}")
    return lines
