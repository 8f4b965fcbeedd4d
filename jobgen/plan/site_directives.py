"""The directives, options and settings of a site in the script of a job; empty without a site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.launch.containers import RUNTIMES
from jobgen.plan.site_binding import cpu_lists, option_binds
from jobgen.sites.line_forms import names_in
from jobgen.sites.node_kinds import Demand, description, fits, known_constraint
from jobgen.values.devices import SHARD, number_of, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.base import Scheduler
    from jobgen.spec import Specification


class NetworkWords(NamedTuple):
    """Modules to load, variables, folders for the front of search paths, by the variable of the path, and
    variables to unset."""

    modules: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    prepended: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unset: tuple[str, ...] = ()


class SiteWords(NamedTuple):
    """The lines and options of a script that come from its site.

    ``request`` replaces the directives for resources; ``account`` and ``queue`` are the options for these;
    ``queue_name`` is the scheduler's name of the queue; ``faster_networks`` are names for --network that the
    job does not choose; ``warnings`` are about limits that may be old, ``notes`` about choices that a job
    leaves to its site.
    """

    head: tuple[str, ...] = ()
    request: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    account: str | None = None
    queue: str | None = None
    queue_name: str | None = None
    module_use: tuple[str, ...] = ()
    network: NetworkWords = NetworkWords()
    faster_networks: tuple[str, ...] = ()
    bind: str = ""
    threads_per_core: int = 1
    srun_ranks: str = ""
    srun_nodes: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def site_words(spec: Specification, scheduler: Scheduler, resources: Resources) -> SiteWords:
    """Check the limits of the site of ``spec`` and return its changes to the script, with the warnings.

    Raises:
        JobgenError: the site would refuse the job, or a line of its file needs a value that is not given.
    """
    if spec.site is None:
        return SiteWords(network=_network_words(spec))
    from jobgen.plan.site_check import check
    from jobgen.sites.limits import JobSize

    _check_request(spec, scheduler)
    _check_nodes(spec, resources.allocated)
    words = _words(spec, scheduler, resources)
    lines = (*words.request, *words.directives, *spec.directive)
    cpus, gpus = resources.cpus.node, resources.gpus_per_node
    kind, number = type_of(spec.gpus_per_node), number_of(spec.gpus_per_node) or 0
    request = JobSize(
        resources.allocated,
        resources.walltime,
        gpus,
        cpus,
        spec.mem,
        kind,
        number if kind == SHARD else 0,
        spec.constraint,
        spec.account,
        spec.qos,
    )
    warnings = (*check(spec, request, lines), *_account_warning(spec, gpus))
    return words._replace(warnings=warnings, notes=tuple(_kind_note(spec)))


def _kind_note(spec: Specification) -> Iterator[str]:
    """Yield the kinds of nodes that a job gets, if it chooses none and its queue has others with devices."""
    if "constraint" in spec.texts or "gpus_per_node" in spec.texts or not (possible := _kinds_of_job(spec)):
        return
    assert spec.site is not None
    assert spec.queue is not None
    kinds = spec.site.kinds(spec.queue)
    others = [one for name, one in kinds.items() if name not in possible and one[1].gpus]
    if others and kinds[spec.site.kind][1].gpus:
        yield (
            f"queue {spec.queue} of {spec.site.title}: the job gets "
            f"{' or '.join(description(*kinds[name]) for name in possible)}; --gpus-per-node TYPE:N or "
            f"--constraint chooses others: {'; '.join(description(*one) for one in others)}"
        )


def _kinds_of_job(spec: Specification) -> list[str]:
    """Return the names of the kinds of nodes that fit the request of a job, that of its defaults first. There
    are none if the nodes of its queue do not differ."""
    site, queue = spec.site, spec.queue
    if site is None or not queue or not site.kind:
        return []
    devices, ranks = number_of(spec.gpus_per_node) or 0, spec.ranks_per_node
    cores = spec.cpus_per_node or (spec.cpus_per_rank or 1) * (ranks or devices or 1)
    constraint = known_constraint(site, queue, spec.constraint)
    needs = Demand(1, devices, type_of(spec.gpus_per_node), cores, spec.mem, constraint)
    fit = [name for name, (_, table) in site.kinds(queue).items() if fits(table, needs)]
    return sorted(fit, key=lambda name: name != site.kind)


def _network_words(spec: Specification) -> NetworkWords:
    """Return the settings of the site for every job, and of its network of the name that the job chooses."""
    if spec.site is None and spec.network is not None:
        raise spec.refuse("network", "is the name of a network setting of a site: add --site, or remove it")
    if spec.site is None:
        return NetworkWords()
    always = tuple(spec.site.file.rules.prepend.items())
    if spec.network is None:
        return NetworkWords(prepended=always)
    networks = spec.site.file.networks
    if (chosen := networks.get(spec.network)) is None:
        offers = f"offers {one_of(networks)}" if networks else "offers no network settings; remove it"
        raise spec.refuse("network", f"{spec.site.title} {offers}{nearest(spec.network, networks)}")
    paths = (*always, *chosen.prepend.items())
    return NetworkWords(chosen.modules, tuple(chosen.env.items()), paths, chosen.unset)


def _faster(spec: Specification, resources: Resources) -> list[str]:
    """Return the networks that are faster than what a job of several nodes chooses; none in a container whose
    files select the network."""
    assert spec.site is not None
    fast = [name for name, one in spec.site.file.networks.items() if one.fast]
    local = resources.nodes == 1 or not resources.gpus_per_node
    chosen = spec.network in fast or (spec.container and RUNTIMES[spec.container].selects_network)
    return [] if local or chosen else fast


def _account_warning(spec: Specification, gpus: int) -> Iterator[str]:
    """Yield a warning if the account of a job with accelerators lacks the suffix that the site demands."""
    assert spec.site is not None
    queue = spec.site.queues.get(spec.queue) if spec.queue else None
    of_queue = queue.account_suffix if queue else None
    suffix = spec.site.file.rules.account_suffix if of_queue is None else of_queue
    if gpus and suffix and spec.account and not spec.account.lower().endswith(suffix.lower()):
        jobs = "jobs with accelerators" if of_queue is None else f"queue {spec.queue}"
        what = f"{spec.setting_text('account')}: accounts of {jobs} end with {suffix}"
        other = spec.account.partition("@")[0] if suffix.startswith("@") else spec.account
        yield f"{what} at {spec.site.title}: use {other}{suffix}"


def _check_request(spec: Specification, scheduler: Scheduler) -> None:
    """Refuse options that are a part of the request of nodes, if the request of the site lacks them."""
    assert spec.site is not None
    file, request = spec.site.file, spec.site.request(spec.queue)
    names = {name for line in request for name in names_in(line)}
    kind = type_of(spec.gpus_per_node)
    if request and kind and (kind == SHARD or "gpus_per_node" not in names):
        without = "shards" if kind == SHARD else "a type; write the number alone"
        raise spec.refuse("gpus_per_node", f"{file.title} has its own request, without {without}")
    if request and "constraint" in scheduler.in_request:
        for key in ("constraint", "exclusive"):
            if getattr(spec, key) and key not in names:
                raise spec.refuse(key, "the site has its own request of nodes; remove it")
    asks_for_memory = names & {"mem", "mem_total"}
    if request and scheduler.behaviour.memory_in_request and spec.mem is not None and not asks_for_memory:
        why = f"{file.title} does not support it: memory is allocated with the nodes; remove it"
        raise spec.refuse("mem", why)


def _check_nodes(spec: Specification, nodes: int) -> None:
    """Refuse several nodes if the request of the queue has no number of nodes."""
    assert spec.site is not None
    request = spec.site.request(spec.queue)
    names = {name for line in request for name in names_in(line)}
    if request and nodes > 1 and not names & {"nodes", "gpus_total", "cores_total"}:
        raise spec.refuse(
            "nodes",
            f"queue {spec.queue} of {spec.site.title} takes 1 node: its request has no number of nodes",
        )


def _numbers(spec: Specification, scheduler: Scheduler, resources: Resources) -> dict[str, object]:
    """Return the values of ``NUMBERS``; None if one is not given."""
    from jobgen.sites.defaults import cores_of

    assert spec.site is not None
    node = spec.site.node(spec.queue)
    nodes, gpus, cpus = resources.allocated, resources.gpus_per_node, resources.cpus
    cores = cores_of(node, gpus) or cpus.node
    return {
        "nodes": nodes,
        "ranks_per_node": resources.ranks_per_node,
        "cpus_per_rank": cpus.rank,
        "cpus_per_task": cpus.task,
        "cpus_per_node": cpus.node,
        "gpus_per_node": gpus and resources.device_number,
        "cores_per_node": cores,
        "gpus_total": nodes * gpus,
        "cores_total": nodes * cores,
        **cpu_lists(node.cpu_lists, resources.ranks_per_node),
        "constraint": spec.constraint,
        "mem": resources.memory,
        "mem_total": spec.mem and scheduler.total_memory(nodes * spec.mem),
    }


def _words(spec: Specification, scheduler: Scheduler, resources: Resources) -> SiteWords:
    """Return the words of the site, with the numbers of the job for the ``{names}`` in its lines."""
    assert spec.site is not None
    file, numbers = spec.site.file, _numbers(spec, scheduler, resources)
    queue = file.queues.get(spec.queue) if spec.queue else None
    own = {_key(line) for line in spec.directive}
    own.update(_key(form) for key, form in scheduler.forms.items() if form[:2] == "--" and getattr(spec, key))
    if (
        "memory" in scheduler.request_forms
        and spec.mem is not None
        and spec.origin("mem") != spec.site.origin
    ):
        own.update(map(_key, scheduler.keys.memory))
    for keys in scheduler.keys.alternatives:
        if not own.isdisjoint(alike := set(map(_key, keys))):
            own |= alike
    rules = file.rules
    reserved = spec.reservation or scheduler.is_reservation(spec.queue)
    further = (queue.directives if queue else ()) + (rules.reservation if reserved else ())
    request = _filled(spec.site.request(spec.queue), numbers, spec)
    more = _filled(file.directives + further, numbers, spec)
    faster = _faster(spec, resources)
    return _rank_options(spec, scheduler, resources)._replace(
        head=tuple(_head(spec, faster)),
        request=tuple(line for line in request if _key(line) not in own),
        directives=tuple(line for line in more if _key(line) not in own),
        account=rules.account,
        queue=rules.queue,
        queue_name=queue.name if queue else None,
        module_use=rules.module_use,
        network=_network_words(spec),
        faster_networks=tuple(faster),
    )


def step_words(spec: Specification, scheduler: Scheduler, resources: Resources) -> SiteWords:
    """Return what the site of the job ``spec`` adds to a step with these resources: options for its ranks."""
    return _rank_options(spec, scheduler, resources) if spec.site else SiteWords()


def _rank_options(spec: Specification, scheduler: Scheduler, resources: Resources) -> SiteWords:
    """Return the options of the site for the launchers of ranks."""
    assert spec.site is not None
    rules, numbers = spec.site.file.rules, _numbers(spec, scheduler, resources)
    binds = (rules.bind,) if option_binds(spec, resources) else ()
    bind = "".join(_filled(binds, numbers, spec))
    ranks = _filled(rules.srun + rules.srun_ranks + (binds if scheduler.node_step else ()), numbers, spec)
    return SiteWords(
        bind=bind,
        threads_per_core=spec.site.node(spec.queue).threads_per_core or 1,
        srun_ranks="".join(f"{line} " for line in ranks),
        srun_nodes="".join(f"{line} " for line in _filled(rules.srun + rules.srun_nodes, numbers, spec)),
    )


def _head(spec: Specification, faster: list[str]) -> Iterator[str]:
    """Yield the comments about a site at the top of a script: its sources, the nodes of the job if those of
    the queue differ, faster networks, and the rules that it disables."""
    from jobgen.sites.sources import pages

    site = spec.site
    assert site is not None
    yield f"Site: {site.file.title}" + (", by these sources:" if site.file.source else "")
    yield from pages(site)
    for name in _kinds_of_job(spec):
        yield f"Nodes: {description(*site.kinds(spec.queue or '')[name])}"
    for name in faster:
        yield f"Network: the slow path; --network {name} is faster: {site.file.networks[name].about}"
    if site.file.check.silence:
        yield f"jobgen: disable={','.join(site.file.check.silence)}"


def _filled(lines: tuple[str, ...], numbers: Mapping[str, object], spec: Specification) -> tuple[str, ...]:
    return tuple(_fill(line, numbers, spec) for line in lines)


def _fill(line: str, numbers: Mapping[str, object], spec: Specification) -> str:
    def number(match: re.Match[str]) -> str:
        assert spec.site is not None
        where = f"{shown(line)} ({spec.site.origin})"
        if match[1] in ("gpus_per_node", "gpus_total") and not numbers[match[1]]:
            raise JobgenError(
                f"{where}: is for accelerators; this job has none, so it needs another queue or site"
            )
        if numbers[match[1]] is None:
            raise JobgenError(
                f"{where}: needs {match[1].removesuffix('_total')}: add --{match[1].removesuffix('_total')}"
            )
        return str(numbers[match[1]])

    return re.sub(r"\{(\w+)\}", number, line)


def _key(line: str) -> str:
    """Return the key that a directive sets, without blanks: ``-lselect``, ``--constraint``, ``-q``."""
    match = re.match(r"(--[\w-]+|-[lW] *[\w]+|-\w)", line)
    return match[0].replace(" ", "") if match else line
