"""The environment variables that options, and the settings of a site, set in the function environment.

Those of ``--env`` and ``--env-file`` are in the function variables, those of an accelerator in its template.
"""

from collections.abc import Iterator

from jobgen.plan.plan import Plan
from jobgen.plan.site_directives import NetworkWords
from jobgen.rendering.quoting import sh
from jobgen.sites.line_forms import reference

_GLOO = ("GLOO_SOCKET_IFNAME={first}", "TP_SOCKET_IFNAME={first}")


def environment_lines(plan: Plan) -> tuple[str, ...]:
    """Return the lines of bash that set variables: of OpenMP, of the network, and of the site."""
    threads = max(1, plan.resources.cpus.rank // plan.site.threads_per_core)
    return (f"export PYTHONUNBUFFERED=1 OMP_NUM_THREADS={threads}", *_mpi_lines(plan), *_network_lines(plan))


def _mpi_lines(plan: Plan) -> tuple[str, ...]:
    """Return the settings of mpirun in a job with components."""
    mpi = plan.launch.mpirun
    if not (mpi and mpi.over_components and plan.components and plan.scheduler.component_line):
        return ()
    return (f"export {' '.join(mpi.over_components)}  # not only the nodes of the first component",)


def step_lines(plan: Plan, step: int) -> list[str]:
    """Return the lines of bash that unset the variables of the steps before a step, and set its own."""
    own = dict(plan.spec.steps[step - 1].env)
    before = {name: None for one in plan.spec.steps[: step - 1] for name, _ in one.env if name not in own}
    unset = [f"unset {' '.join(before)}"] if before else []
    return unset + [f"export {name}={sh(value)}" for name, value in own.items() if value is not None]


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
    for other, rest in map(reference, folders):
        if other:
            yield _of_other(name, other, rest) + before


def _of_other(name: str, other: str, rest: str) -> str:
    """Return the setting of a variable to the value of another one, if that has a value."""
    return f"[[ -z ${{{other}:-}} ]] || export {name}=${other}{rest and sh(rest)}"
