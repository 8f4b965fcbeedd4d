"""The values that a site adds to a job: its defaults, and values derived from its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobgen.launch.default_launcher import OF_RANKS
from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import DEFAULT_WALLTIME, OPTIONS, parse
from jobgen.schedulers.table import scheduler_of
from jobgen.sites.limits import longest
from jobgen.sites.node_kinds import Demand, best, own_feature, type_for, types_of
from jobgen.values import parsers
from jobgen.values.devices import SHARD, Devices, number_of, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobgen.schedulers.base import Scheduler
    from jobgen.sites.site_file import NodeTable, Site
from jobgen.spec import Specification


def with_defaults(spec: Specification, site: Site) -> Specification:
    """Return the specification with the site's defaults; its environment variables are added to those of the
    job.

    Raises:
        JobgenError: a value of the site cannot be read.
    """
    fields = spec._asdict()
    origins, texts = dict(spec.origins), dict(spec.texts)
    queue = _queue(spec, site)
    values = site.options(queue, _first("launcher", spec, site) or spec.launcher)
    for option in OPTIONS:
        key = option.key
        if (text := values.get(key)) is None or key in origins or key == "env":
            continue
        if _excluded(key, spec, fields):
            continue
        origin = site.origins.get(key, site.origin)
        value, shown_text = parse(option, text, origin)
        if key == "signal" and "grace" in spec.origins:  # which is its time
            value = (value[0], None)
        fields[key], texts[key] = value, shown_text
        origins[key] = origin
    if origins.get("queue") == site.origin:
        fields["queue"] = queue
    own_type = str(site.values.get("gpus_per_node", "")).rpartition(":")[0]
    if fields["gpus_per_node"] and own_type and not type_of(fields["gpus_per_node"]):
        fields["gpus_per_node"] = Devices(fields["gpus_per_node"], own_type)
    site = _of_kind(site, fields, origins)
    _add_variables(site, spec, fields, origins)
    _fill(site, scheduler_of(spec), fields, origins)
    return spec._replace(**fields | {"origins": origins, "texts": texts, "site": site})


def _first(key: str, spec: Specification, site: Site) -> str | None:
    """Return an option of the job, or else that of the site."""
    value = getattr(spec, key) if key in spec.origins else site.values.get(key)
    return value if isinstance(value, str) else None


def _queue(spec: Specification, site: Site) -> str | None:
    """Return the queue of the job, or else that of the site for jobs with or without accelerators."""
    if "queue" not in spec.origins and site.file.rules.cpu_queue and _on_cpus(spec._asdict(), spec.origins):
        return site.file.rules.cpu_queue
    return _first("queue", spec, site)


def _add_variables(site: Site, spec: Specification, fields: dict[str, Any], origins: dict[str, str]) -> None:
    """Add the environment variables of the site to those of the job. Those of launchers are variables of the
    steps in a job with steps."""
    found = _variables(site, fields["queue"], fields["launcher"])
    complete = spec._replace(launcher=fields["launcher"], origins=origins)
    launchers = map(complete.launcher_of, spec.steps)
    of_steps = [_variables(site, fields["queue"], launcher) for launcher in launchers]
    named = {*dict(spec.env), *spec.secrets}
    by_step = {
        name for one in of_steps for name in one if any(one[name] != other.get(name) for other in of_steps)
    }
    fields["steps"] = tuple(
        step._replace(env=tuple(pair for pair in one.items() if pair[0] in by_step - named))
        for step, one in zip(spec.steps, of_steps, strict=True)
    )
    if added := tuple(pair for pair in found.items() if pair[0] not in named | by_step):
        origin = site.origins.get("env", site.origin)
        fields["env"] = (*added, *spec.env)
        origins["env"] = f"{origin} and {origins['env']}" if "env" in origins else origin


def _variables(site: Site, queue: str | None, launcher: str) -> dict[str, str | None]:
    """Return the environment variables of a site: of every job, of a queue, and of a launcher."""
    file = site.file
    of_queue = file.queues[queue].env if queue in file.queues else {}
    of_launcher = file.launcher[launcher].env if launcher in file.launcher else {}
    return {**dict(map(parsers.assignment, site.values.get("env", ()))), **of_queue, **of_launcher}


def _excluded(key: str, spec: Specification, fields: dict[str, Any]) -> bool:
    """Return whether values of the job exclude a default of the site."""
    row = LAUNCHERS[fields["launcher"]]
    if row.one_process and key in OF_RANKS:
        return True
    return {
        "grace": spec.signal is not None and spec.signal[1] is not None,
        "queue": scheduler_of(spec).reservation_queue is not None and spec.reservation is not None,
        "local_caches": spec.pack is not None,  # whose points begin and end alone
        "mpi": not row.starts_mpi,  # other launchers start no MPI
        "conda": spec.container is not None,  # the image has its own Python
        "venv": spec.container is not None,
    }.get(key, False)


def without(spec: Specification) -> Specification:
    """Return the specification without the values that its site added."""
    if spec.site is None:
        return spec
    added = [key for key in spec.origins if spec.is_of_site(key)]
    fresh: dict[str, Any] = {option.key: option.default for option in OPTIONS if option.key in added}
    origins = {key: origin for key, origin in spec.origins.items() if key not in added}
    if " and " in (both := spec.origins.get("env", "")):
        theirs = _variables(spec.site, spec.queue, spec.launcher)
        fresh["env"] = tuple((name, value) for name, value in spec.env if theirs.get(name) != value)
        origins["env"] = both.split(" and ", 1)[1]
    texts = {key: value for key, value in spec.texts.items() if key in origins}
    fresh["steps"] = tuple(step._replace(env=()) for step in spec.steps)
    return spec._replace(**fresh, origins=origins, texts=texts, site=None)


def _on_cpus(fields: Mapping[str, Any], origins: Mapping[str, str]) -> bool:
    """Return whether the job itself says that it has no accelerators."""
    keys = ("accelerator", "gpus_per_node")
    return any(
        fields[key] in ("cpu", 0) and not origins.get(key, "site ").startswith("site ") for key in keys
    )


def _of_kind(site: Site, fields: dict[str, Any], origins: dict[str, str]) -> Site:
    """Return the site with the kind of nodes that the job gets in its queue. The type of its devices is
    requested if the queue has several, or else a feature if the job fits other kinds with devices, too."""
    queue, devices, ranks = fields["queue"], fields["gpus_per_node"], fields["ranks_per_node"]
    number = 0 if _on_cpus(fields, origins) else number_of(devices)
    each = fields["cpus_per_node"] or (fields["cpus_per_rank"] or 1) * (ranks or number or 1)
    nodes = fields["nodes"] if isinstance(fields["nodes"], int) else 1
    needs = Demand(
        nodes + (fields["spare_nodes"] or 0),
        ranks if number is None and ranks else number,
        type_of(devices),
        each,
        fields["mem"],
        fields["constraint"],
    )
    kind = best(site, queue, needs)
    if not kind and number is None:  # the queue has no devices
        kind = best(site, queue, needs._replace(gpus=0))
    site = site._replace(kind=kind)
    unknown = queue not in site.queues or (site.queues[queue].kinds and not kind)
    if unknown or number == 0 or needs.kind or site.request(queue):
        return site
    node, several = site.node(queue), len(types_of(site, queue)) > 1
    if several and (typed := type_for(node, needs.gpus)):
        fields["gpus_per_node"] = Devices(needs.gpus or (node.devices or {})[typed], typed)
        origins.setdefault("gpus_per_node", site.origin)
    elif node.gpus and needs.constraint is None and (feature := own_feature(site, queue, needs)):
        fields["constraint"], origins["constraint"] = feature, site.origin
    return site


def _fill(site: Site, scheduler: Scheduler, fields: dict[str, Any], origins: dict[str, str]) -> None:
    node = site.node(fields["queue"])

    def say(key: str, value: Any) -> None:
        if value is not None and fields[key] is None:
            fields[key] = value
            origins[key] = site.origin

    own = fields["gpus_per_node"] and not origins.get("gpus_per_node", "site ").startswith("site ")
    if (fields["gpus_per_node"] == 0 or (node.gpus == 0 and not own)) and origins.get(
        "accelerator", "site "
    ).startswith("site "):
        fields["accelerator"] = None
        say("accelerator", "cpu")
    if fields["accelerator"] != "cpu":
        say("gpus_per_node", node.gpus and min(node.gpus, _most_gpus(site, fields["queue"]) or node.gpus))
    elif origins.get("gpus_per_node", "").startswith("site "):  # the default of jobs with accelerators
        fields["gpus_per_node"] = None
        del origins["gpus_per_node"]
    gpus = number_of(fields["gpus_per_node"]) or 0
    whole = _whole_devices(node, fields["gpus_per_node"])
    cores = _at_most_in_all(site, fields, cores_of(node, whole))
    listed = fields["cpu_bind"] and fields["cpu_bind"][1]
    each = fields["ranks_per_node"] or gpus
    if not each and fields["ranks"]:  # as many as the cores of a node allow
        each = min(fields["ranks"], max(1, (cores or 1) // (fields["cpus_per_rank"] or 1)))
    if fields["cpus_per_node"] is None and not listed:  # they determine the cores
        say("cpus_per_rank", cores and max(1, cores // (each or 1)))
    if node.memory_per_gpu and gpus:
        say("mem", int(parsers.memory(node.memory_per_gpu) * whole))
    elif node.memory_per_core and not gpus:
        of_ranks = (fields["cpus_per_rank"] or scheduler.default_cpus_per_rank) * (each or 1)
        used = fields["cpus_per_node"] or of_ranks
        say("mem", parsers.memory(node.memory_per_core) * used)
    limit = longest(site, fields["queue"], fields["nodes"])
    if limit is not None and limit < DEFAULT_WALLTIME:
        say("walltime", limit)


def _at_most_in_all(site: Site, fields: Mapping[str, Any], cores: int | None) -> int | None:
    """Return the cores of a node, or its part of those of a job in the queue if there are fewer."""
    queue, nodes = site.queues.get(fields["queue"]), fields["nodes"]
    if cores is None or queue is None or queue.max_cores is None or not isinstance(nodes, int):
        return cores
    return min(cores, max(1, queue.max_cores // (nodes + (fields["spare_nodes"] or 0))))


def _most_gpus(site: Site, queue: str | None) -> int | None:
    return site.queues[queue].max_gpus if queue and queue in site.queues else None


def _whole_devices(node: NodeTable, devices: Devices | int | None) -> float:
    """Return the number of devices of a node that a job uses: with shards, parts of them."""
    number = number_of(devices) or 0
    shards = (node.devices or {}).get(SHARD)
    return number / shards * (node.gpus or 0) if type_of(devices) == SHARD and shards else number


def cores_of(node: NodeTable, gpus: float) -> int | None:
    """Return the cores that a job gets on a node if it uses this number of its GPUs."""
    if gpus and node.cores_per_gpu is not None:
        return max(1, int(gpus * node.cores_per_gpu))
    return node.cores
