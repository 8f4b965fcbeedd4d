"""The environment variables that options, and the settings of a site, set in the function environment.

Those of ``--env`` and ``--env-file`` are in the function variables, those of an accelerator in its template.
"""

from collections.abc import Iterator

from jobgen.plan.allocation import Resources
from jobgen.plan.plan import Plan
from jobgen.plan.site_directives import NetworkWords
from jobgen.rendering.quoting import sh
from jobgen.sites.line_forms import reference

_GLOO = ("GLOO_SOCKET_IFNAME={first}", "TP_SOCKET_IFNAME={first}")


def environment_lines(plan: Plan) -> tuple[str, ...]:
    """Return the lines of bash that set variables: of OpenMP, of the network, and of the site."""
    threads = _threads(plan, plan.resources)
    return (f"export PYTHONUNBUFFERED=1 OMP_NUM_THREADS={threads}", *_mpi_lines(plan), *_network_lines(plan))


def _mpi_lines(plan: Plan) -> tuple[str, ...]:
    """Return the settings of mpirun in a job with components, and on a part of each node."""
    if (mpi := plan.launch.mpirun) and plan.pack and plan.part and plan.scheduler.node_step:
        return ("export SLURM_OVERLAP=1  # for the daemons of mpirun",)
    if not (mpi and mpi.over_components and plan.components and plan.scheduler.component_line):
        return ()
    return (f"export {' '.join(mpi.over_components)}  # not only the nodes of the first component",)


def step_lines(plan: Plan, step: Plan) -> list[str]:
    """Return the lines of bash that unset the variables of the other steps, and set those of a step."""
    steps, own = plan.spec.steps, dict(plan.spec.steps[step.step - 1].env)
    others = steps if any(one.parallel for one in steps) else steps[: step.step - 1]
    unset = {name: None for one in others for name, _ in one.env if name not in own}
    if any(one.part for one in plan.steps):
        own["OMP_NUM_THREADS"] = _threads(plan, step.resources)
    if any(one.part and one.launch.mpirun for one in plan.steps) and plan.scheduler.node_step:
        own["SLURM_OVERLAP"] = "1"  # for the daemons of its mpirun
    lines = [f"unset {' '.join(unset)}"] if unset else []
    return lines + [f"export {name}={sh(value)}" for name, value in own.items() if value is not None]


def _threads(plan: Plan, resources: Resources) -> str:
    return str(max(1, resources.cpus.rank // plan.site.threads_per_core))


def _network_lines(plan: Plan) -> list[str]:
    """Return the settings of the interface and of the site."""
    own = [f"export {' '.join(_interfaces(plan, plan.spec.interface))}"] if plan.spec.interface else []
    return ["# jobgen: disable=fixed-interface"] * len(own) + own + [*_site_lines(plan.site.network)]


def _interfaces(plan: Plan, value: str) -> Iterator[str]:
    """Yield the variables for the names of interfaces, each once. Gloo connects over every interface of a
    list, TensorPipe takes one name, and neither takes names to exclude."""
    row, mpi = plan.resources.accelerator, plan.launch.mpi
    others = (*_GLOO, *(mpi.network if mpi else ()))
    exact = value if value.startswith("^") else f"={value}"
    words = {"names": sh(value), "exact": sh(exact), "first": value.partition(",")[0]}
    variables = row.network_but if value.startswith("^") else dict.fromkeys((*row.network, *others))
    yield from (one.format(**words) for one in variables)


def _site_lines(words: NetworkWords) -> Iterator[str]:
    """Yield the settings of the site: folders of search paths, variables, and variables to unset."""
    for name, folders in words.prepended:
        yield from _prepended(name, folders)
    for name, value in words.variables:
        other, rest = reference(value)
        yield _of_other(name, other, rest) if other else f"export {name}={sh(value)}"
    if words.unset:
        yield f"unset {' '.join(words.unset)}"


def _prepended(name: str, folders: tuple[str, ...]) -> Iterator[str]:
    before = f"${{{name}:+:${name}}}"
    if fixed := [one for one in folders if not reference(one)[0]]:
        yield f"export {name}={sh(':'.join(fixed))}{before}"
    yield from (_of_other(name, other, rest) + before for other, rest in map(reference, folders) if other)


def _of_other(name: str, other: str, rest: str) -> str:
    """Return the setting of a variable to the value of another one, if that has a value."""
    return f"[[ -z ${{{other}:-}} ]] || export {name}=${other}{rest and sh(rest)}"
