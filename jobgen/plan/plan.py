"""Resolution of a JobSpec to a Plan, in which all values are set and agree. It has no side effects."""

from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen.errors import counted, one_of
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.launch.program import Program, read_program
from jobgen.plan.allocation import Resources, device_warnings, resources_of
from jobgen.plan.components import component_specs, components_of, joined, with_components
from jobgen.plan.container import Container, container
from jobgen.plan.directives import JobDirectives, check_directives, directives, points_of
from jobgen.plan.expansion import check_expansion
from jobgen.plan.hostfile import with_hosts
from jobgen.plan.launch_method import LaunchMethod, launch_of
from jobgen.plan.nested_launcher import refuse_joined_words, refuse_launcher
from jobgen.plan.node_groups import check_groups, check_open_number
from jobgen.plan.node_parts import NodePart
from jobgen.plan.node_work import check_node_work
from jobgen.plan.own_request import with_own_request
from jobgen.plan.pack import Pack, check_pack, pack_of, spec_of_point, with_sizes
from jobgen.plan.ranks import with_ranks
from jobgen.plan.site_binding import rank_binding
from jobgen.plan.site_directives import SiteWords, site_words
from jobgen.plan.steps import StepPlace, site_of_step, step_requests
from jobgen.plan.survival import Survival, survival
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import scheduler_of
from jobgen.spec import Specification
from jobgen.values.node_groups import groups_of
from jobgen.values.version import __version__

if TYPE_CHECKING:
    from jobgen.plan.sweep import Sweep


class Plan(NamedTuple):
    """A resolved job; the templates have its fields. A value is None or empty if it is not requested.

    ``steps`` are the plans of its steps, each with its ``place`` among them, and its ``part`` of each node;
    ``components`` those of its components, as jobs of equal nodes. ``pack`` describes the points of each task
    of a packed array, and ``point`` is the plan of one.
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
    sweep: "Sweep | None"
    directives: JobDirectives
    steps: tuple[Any, ...] = ()
    place: StepPlace | None = None
    part: NodePart | None = None
    pack: Pack | None = None
    point: Any = None
    components: tuple[Any, ...] = ()

    @property
    def step(self) -> int:
        """Return the number of the step; 0 is the job."""
        return self.place.number if self.place else 0

    @property
    def queue(self) -> str | None:
        """Return the scheduler's name of the queue."""
        return self.site.queue_name or self.spec.queue

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about limits of the site, and about the devices."""
        of_components = (line for one in self.components for line in one.warnings)
        return (*self.site.warnings, *(device_warnings(self.spec) if not self.components else of_components))


def resolve(spec: Specification) -> Plan:
    """Set all values that are not given and check that they agree.

    Raises:
        JobgenError: the request contradicts itself, or the scheduler cannot express it.
    """
    scheduler = scheduler_of(spec)
    check_directives(spec, scheduler)
    spec = with_own_request(with_hosts(with_ranks(spec, scheduler)), scheduler)
    check_pack(spec)
    spec = with_sizes(spec, scheduler)
    check_groups(spec, scheduler)
    check_open_number(spec, scheduler)
    components = tuple(resolve(one) for one in component_specs(spec, components_of(spec, scheduler)))
    program = read_program(spec.program)
    if components:
        spec = with_components(spec, components, scheduler, program)
    launch = launch_of(spec, scheduler)
    resources = joined(spec, components) if components else resources_of(spec, scheduler)
    steps = _steps(spec, scheduler, resources)
    spec, resources = _bound(spec, resources)
    if steps and not spec.spare_nodes:  # only on request
        spec = spec._replace(preflight=bool(spec.preflight))
    refuse_launcher(spec, program, scheduler)
    refuse_joined_words(spec, program)
    check_expansion(spec, scheduler)
    check_node_work(spec)
    _check_training(spec, program)
    _check_interface(spec, resources)
    box = container(spec, resources.accelerator_name, program, launch.start_nodes)
    survive = survival(spec, scheduler, program, resources.walltime)
    site = site_words(spec, scheduler, resources)
    swept = _sweep(spec, program)
    plan = Plan(
        version=__version__,
        spec=spec,
        scheduler=scheduler,
        title=_title(spec, resources, launch),
        resources=resources,
        launch=launch,
        program=program,
        container=box,
        survival=survive,
        site=site,
        sweep=swept,
        directives=directives(spec, scheduler, swept.points if swept else 0),
        steps=steps,
        components=components,
    )
    return _packed(plan) if spec.pack else plan


def _packed(plan: Plan) -> Plan:
    """Return the plan of a packed array, with that of one point."""
    spec, scheduler, resources = plan.spec, plan.scheduler, plan.resources
    points = points_of(spec, scheduler, plan.sweep.points if plan.sweep else 0)
    assert points
    pack = pack_of(spec, resources, points)
    part = pack.parts[0] if pack.parts else None
    point = resolve(spec_of_point(spec, scheduler, resources, pack))
    words = site_of_step(spec, scheduler, point.resources, part, "leave out --pack")
    point = point._replace(
        sweep=plan.sweep,
        directives=plan.directives,
        site=plan.site._replace(bind=words.bind, srun_ranks=words.srun_ranks, srun_nodes=words.srun_nodes),
        part=part,
        pack=pack,
    )
    title = f"{counted(pack.size, 'point')} a task, each {point.title}"
    return plan._replace(title=title, pack=pack, point=point)


def _steps(spec: Specification, scheduler: Scheduler, resources: Resources) -> tuple[Plan, ...]:
    """Return the plans of the steps."""
    requests = step_requests(spec, scheduler, resources)
    plans = [(resolve(one.spec), one.place, one.part) for one in requests]
    return tuple(
        plan._replace(site=site_of_step(spec, scheduler, plan.resources, part), place=place, part=part)
        for plan, place, part in plans
    )


def _bound(spec: Specification, resources: Resources) -> tuple[Specification, Resources]:
    """Return the same with ranks that bind themselves to the cores that the site lists, except for steps."""
    ranks = resources.ranks_per_node
    if (
        spec.site is None
        or spec.steps
        or spec.pack
        or not (binding := rank_binding(spec, resources, spec.launcher, ranks))
    ):
        return spec, resources
    kind, lists = binding
    cpus = resources.cpus._replace(bind=kind, lists=lists)
    origins = {**spec.origins, "cpu_bind": spec.site.origin}
    return spec._replace(cpu_bind=binding, origins=origins), resources._replace(cpus=cpus)


def _check_training(spec: Specification, program: Program) -> None:
    if program.is_ours and len(program.words) > (program.head or 0):
        from jobgen.jobfile.training_options import check_program  # late: most jobs have their own program

        check_program(spec, program)


def _check_interface(spec: Specification, resources: Resources) -> None:
    if (spec.interface or "").startswith("^") and not resources.accelerator.network_but:
        able = one_of(row.title for row in ACCELERATORS.values() if row.network_but)
        raise spec.refuse("interface", f"names to exclude are for {able}; name the interface to use")


def _sweep(spec: Specification, program: Program) -> "Sweep | None":
    if spec.sweep is None:
        return None
    from jobgen.plan.sweep import sweep  # late: only sweeps need it

    return sweep(spec, program)


def _title(spec: Specification, resources: Resources, launch: LaunchMethod) -> str:
    groups = groups_of(spec.nodes, resources.ranks_per_node)
    each = " + ".join(
        f"{counted(one.nodes, 'node') if one.nodes else 'the nodes of the submission'} x "
        f"{counted(one.ranks, 'rank')}"
        for one in groups
    )
    if spec.steps:
        return f"{each}, {counted(len(spec.steps), 'step')}, on {resources.accelerator.title}"
    if launch.row.one_process:
        first = "the first of " * (resources.nodes != 1)
        nodes = counted(resources.nodes, "node") if resources.nodes else "the nodes of the submission"
        return f"one process on {first}{nodes}, on {resources.accelerator.title}"
    by = f"{spec.launcher} ({launch.mpi.title})" if launch.mpi else spec.launcher
    world = resources.active.world_size
    ranks = f", {counted(world, 'rank')} in all" if world else ""
    return f"{each}{ranks}, by {by} on {resources.accelerator.title}"
