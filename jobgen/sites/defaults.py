"""The values that a site adds to a job: its defaults, and values derived from its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import DEFAULT_WALLTIME, OPTIONS, parse
from jobgen.schedulers.table import scheduler_of
from jobgen.sites.limits import longest
from jobgen.values import parsers
from jobgen.values.devices import number_of

if TYPE_CHECKING:
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
    for option in OPTIONS:
        key = option.key
        if (text := site.values.get(key)) is None or (key in origins and key != "env"):
            continue
        if _excluded(key, spec, fields):
            continue
        value, shown_text = parse(option, text, site.origins[key])
        if key == "signal" and "grace" in spec.origins:  # which is its time
            value = (value[0], None)
        if key in origins:
            named = {*dict(spec.env), *spec.secrets}
            fields[key] = (*(pair for pair in value if pair[0] not in named), *spec.env)
            origins[key] = f"{site.origins[key]} and {origins[key]}"
        else:
            fields[key], texts[key] = value, shown_text
            origins[key] = site.origins[key]
    _fill(site, fields, origins)
    return spec._replace(**fields | {"origins": origins, "texts": texts, "site": site})


def _excluded(key: str, spec: Specification, fields: dict[str, Any]) -> bool:
    """Return whether values of the job exclude a default of the site."""
    return {
        "grace": spec.signal is not None and spec.signal[1] is not None,
        "queue": scheduler_of(spec).reservation_queue is not None and spec.reservation is not None,
        "mpi": not LAUNCHERS[fields["launcher"]].starts_mpi,  # other launchers start no MPI
        "conda": spec.container is not None,  # the image has its own Python
        "venv": spec.container is not None,
    }.get(key, False)


def without(spec: Specification) -> Specification:
    """Return the specification without the values that its site added."""
    if spec.site is None:
        return spec
    added = [key for key, origin in spec.origins.items() if origin.startswith("site ")]
    fresh: dict[str, Any] = {option.key: option.default for option in OPTIONS if option.key in added}
    origins = {key: origin for key, origin in spec.origins.items() if key not in added}
    if " and " in (both := spec.origins.get("env", "")):
        theirs = dict(parsers.assignment(line) for line in spec.site.values["env"])
        fresh["env"] = tuple((name, value) for name, value in spec.env if theirs.get(name) != value)
        origins["env"] = both.split(" and ", 1)[1]
    texts = {key: value for key, value in spec.texts.items() if key in origins}
    return spec._replace(**fresh, origins=origins, texts=texts, site=None)


def _fill(site: Site, fields: dict[str, Any], origins: dict[str, str]) -> None:
    node = site.node(fields["queue"])

    def say(key: str, value: Any) -> None:
        if value is not None and fields[key] is None:
            fields[key] = value
            origins[key] = site.origin

    if (fields["gpus_per_node"] == 0 or node.gpus == 0) and origins.get("accelerator", "site ").startswith(
        "site "
    ):
        fields["accelerator"] = None
        say("accelerator", "cpu")
        if origins.get("gpus_per_node") == site.origin:  # the default of the queues with GPUs
            fields["gpus_per_node"] = None
            del origins["gpus_per_node"]
    if fields["accelerator"] != "cpu":
        say("gpus_per_node", node.gpus)
    gpus = number_of(fields["gpus_per_node"]) or 0
    cores = cores_of(node, gpus)
    listed = fields["cpu_bind"] and fields["cpu_bind"][1]
    if fields["cpus_per_node"] is None and not listed:  # they determine the cores
        say("cpus_per_rank", cores and max(1, cores // (fields["ranks_per_node"] or gpus or 1)))
    if node.memory_per_gpu and gpus:
        say("mem", parsers.memory(node.memory_per_gpu) * gpus)
    limit = longest(site, fields["queue"], fields["nodes"])
    if limit is not None and limit < DEFAULT_WALLTIME:
        say("walltime", limit)


def cores_of(node: NodeTable, gpus: int) -> int | None:
    """Return the cores that a job gets on a node if it uses this number of its GPUs."""
    if gpus and node.cores_per_gpu is not None:
        return gpus * node.cores_per_gpu
    return node.cores
