"""The directives of a script, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobgen.plan.own_request import check_beside, directive_values, nodes_are_open, remaining, replaced_keys
from jobgen.schedulers.base import key_of
from jobgen.schedulers.precedence import split_user_directives

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jobgen.plan.plan import Plan

Lines = tuple[str, ...]


class DirectiveLines(NamedTuple):
    """The directives before the request of the nodes, the request, and the others.

    ``nodes_option`` ends with a blank: it is the number of nodes on the command line of the submission.
    """

    before: Lines = ()
    request: Lines = ()
    after: Lines = ()
    nodes_option: str = ""


def directive_lines(plan: Plan) -> DirectiveLines:
    """Return the directives of a plan. Those of the user replace others, or come where they have precedence.

    Raises:
        JobgenError: the scheduler refuses one of the user's directives beside the request.
    """
    scheduler = plan.scheduler
    if not scheduler.prefix:
        return DirectiveLines()
    components = plan.components if scheduler.component_line else ()
    if components:
        plan = _of_component(plan, components[0])
    request = list(
        plan.site.request
        or scheduler.node_lines(plan.resources, plan.directives.chunk, plan.directives.place)
    )
    given = directive_values(plan.spec, scheduler)
    check_beside(request, given, plan.spec, scheduler)
    option = f"{request.pop(0)} " if nodes_are_open(plan.spec, scheduler) else ""
    without = replaced_keys(given, scheduler)
    parts = {
        **_fixed_parts(plan),
        **{
            key: remaining(lines, without, scheduler)
            for key, lines in _replaceable_parts(plan, request).items()
        },
    }
    at = scheduler.directive_order.index("request")
    before, after = scheduler.directive_order[:at], scheduler.directive_order[at + 1 :]
    others = (line for one in components[1:] for line in _component_lines(plan, one))
    return DirectiveLines(_joined(parts, before), parts["request"], (*_joined(parts, after), *others), option)


def _of_component(plan: Plan, component: Plan) -> Plan:
    """Return a plan with the request of one of its components."""
    return plan._replace(
        spec=plan.spec._replace(queue=component.spec.queue),
        resources=component.resources,
        directives=plan.directives._replace(options=component.directives.options),
    )


_OF_COMPONENT = ("request", "memory", "walltime", "options", "addressed", "late")


def _component_lines(plan: Plan, component: Plan) -> Lines:
    """Return the directives of a component behind the first: its request, and what it does not inherit."""
    one = component._replace(spec=component.spec._replace(directive=plan.spec.directive))
    parts = {**_fixed_parts(one), **_replaceable_parts(one, plan.scheduler.node_lines(one.resources, "", ""))}
    return (
        plan.scheduler.component_line,
        *_joined(parts, [n for n in plan.scheduler.directive_order if n in _OF_COMPONENT]),
    )


def _joined(parts: Mapping[str, Lines], order: Iterable[str]) -> Lines:
    return tuple(line for name in order for line in parts[name])


def _fixed_parts(plan: Plan) -> dict[str, Lines]:
    """Return the directives that no directive of the user replaces, by their names in the order."""
    spec, scheduler, forms, box = plan.spec, plan.scheduler, plan.scheduler.request_forms, plan.container
    early, late = split_user_directives(spec.directive, scheduler.grammar)
    walltime, log, survive = plan.resources.walltime, plan.directives.log, plan.survival
    return {
        "early": early,
        "name": (forms["name"].format(spec.name),),
        "constant": scheduler.constant_directives,
        "site": plan.site.directives,
        "walltime": (forms["walltime"].format(scheduler.clock(walltime)),) if walltime else (),
        "log": (forms["output"].format(log),) if log else (),
        "signal": (forms["signal"].format(survive.signal, survive.grace),)
        if spec.signal and "signal" in forms
        else (),
        "requeue": (forms["requeue"],) if spec.requeue and "requeue" in forms else (),
        "tolerance": (scheduler.tolerance,)
        if (survive.restarts or plan.pack) and plan.resources.allocated != 1 and scheduler.tolerance
        else (),
        "container": (forms["shifter_image"].format(spec.image),)
        if box and box.kind == "shifter" and "shifter_image" in forms
        else (),
        "late": late,
    }


def _replaceable_parts(plan: Plan, request: list[str]) -> dict[str, Lines]:
    """Return the directives that those of the user may replace, by their names in the order."""
    forms, memory = plan.scheduler.request_forms, plan.resources.memory
    return {
        "request": tuple(request),
        "memory": (forms["memory"].format(memory),) if memory and "memory" in forms else (),
        "options": plan.directives.options,
        "join": (forms["join"].format("oe"),) if "join" in forms else (),
        "addressed": _addressed(plan),
    }


def _addressed(plan: Plan) -> Lines:
    """Return the directives of the queue, the account and the mail."""
    spec, site, forms = plan.spec, plan.site, plan.scheduler.request_forms
    values = (
        ("queue", site.queue, plan.queue),
        ("account", site.account, spec.account),
        ("mail_user", None, spec.mail),
        ("mail", None, plan.directives.mail_on),
    )
    return tuple(
        forms[key].replace(key_of(forms[key]), own or key_of(forms[key])).format(value)
        for key, own, value in values
        if value and key in forms
    )
