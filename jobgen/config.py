"""Construction of a JobSpec from defaults, site, job file and command line, with the origin of each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.errors import JobgenError, setting, shown
from jobgen.launch.program import check_words
from jobgen.options import BY_KEY, OPTIONS, Option, parse
from jobgen.spec import COMMAND_LINE, SET, Component, Layer, SiteName, Specification, Text

NO_SITE = "none"  # the name for no site, even if a job file names one


def read_spec(
    scheduler: str,
    settings: Mapping[str, Text | None],
    program: Sequence[str] = (),
    below: Layer | None = None,
    settings_origin: str = COMMAND_LINE,
    site: SiteName | None = None,
) -> Specification:
    """Parse ``settings``: the text of each option, or a list of texts for a repeatable one.

    They come from ``settings_origin``. They override the options of the layer ``below``, and these override
    those of the site: ``site``, or else the one in ``below``. An option is replaced as a whole; only the
    site's environment variables are added to others.

    Raises:
        JobgenError: a value cannot be read; the message names it, its origin, and what is allowed.
    """
    fields: dict[str, Any] = {}
    origins: dict[str, str] = {}
    texts: dict[str, str] = {}
    below = below and _of_scheduler(below, scheduler, settings.get("dialect"))
    if below is not None:
        program, origins = below.program, {"program": below.origins.get("program", "derived")}
    for option in OPTIONS:
        value, origin = _first(option, settings, below, settings_origin)
        if value is None:
            fields[option.key] = option.default
            continue
        fields[option.key], texts[option.key] = parse(option, value, origin)
        origins[option.key] = origin
    _keep_one_grace(fields, origins, texts, settings_origin)
    if below is not None and below.sweep is not None:
        fields["sweep"], origins["sweep"] = below.sweep, below.origins["sweep"]
        texts["sweep"] = shown(" ".join(key for key, _ in below.sweep.values))
    fields["steps"] = below.steps if below is not None else ()
    fields["components"] = below.components if below is not None else ()
    if below is not None and below.components:
        own = [
            key for key in Component._fields if all(getattr(one, key) is not None for one in below.components)
        ]
        if key := next((one for one in ("ranks", *own) if one in origins), None):
            raise JobgenError(
                f"{setting(key, origins[key])} {texts[key]} ({origins[key]}): each [[component]] "
                f"({below.origins['components']}) has its own {key}; leave out one of the two",
                key,
            )
        origins["nodes"] = origins["components"] = below.origins["components"]
        texts["nodes"] = "+".join(str(one.nodes) for one in below.components)
    check_words(program, origins.get("program", settings_origin))
    fields |= {"scheduler": scheduler, "program": tuple(program), "origins": origins, "texts": texts}
    spec = Specification(**{"site": None, "sweep": None, "away": False, **fields})
    return with_site(spec, site or (below.site if below else None))


def _of_scheduler(layer: Layer, scheduler: str, dialect: Text | None) -> Layer:
    """Return the layer with the options for a command of jobgen, and for the dialect that is chosen."""
    for name in _own_tables(layer, scheduler, dialect):
        own = layer.own[name]
        layer = layer._replace(
            values={**layer.values, **own.values}, origins={**layer.origins, **own.origins}
        )
    return layer


def _own_tables(layer: Layer, scheduler: str, dialect: Text | None) -> list[str]:
    """Return the names of the tables that hold for a scheduler, in their order."""
    general = layer.own[scheduler].values if scheduler in layer.own else {}
    dialect = dialect or general.get("dialect") or layer.values.get("dialect")
    return [name for name in layer.own if name == scheduler or name == dialect != scheduler]


def left_out(layer: Layer, spec: Specification) -> str:
    """Return a note on the options of a job file for other schedulers that have no value in this job; empty
    without one."""
    used = _own_tables(layer, spec.scheduler, spec.dialect)
    parts = []
    for name, own in layer.own.items():
        keys = [key for key in own.values if BY_KEY[key].multiple or key not in spec.origins]
        if name not in used and keys:
            parts.append(f"{', '.join(keys)} of [{name}] ({own.origin})")
    return f"left out, for other schedulers: {'; '.join(parts)}" if parts else ""


def _keep_one_grace(
    fields: dict[str, Any], origins: dict[str, str], texts: dict[str, str], settings_origin: str
) -> None:
    """Let the time of --signal or --grace in the settings replace that of the other one from below."""
    name, time = fields["signal"] or ("", None)
    if time is None or fields["grace"] is None or origins["signal"] == origins["grace"]:
        return
    if origins["grace"] == settings_origin:
        fields["signal"], texts["signal"] = (name, None), name
    elif origins["signal"] == settings_origin:
        fields["grace"] = None
        del origins["grace"], texts["grace"]


def with_site(spec: Specification, site: SiteName | None) -> Specification:
    """Return the specification completed by the launcher of its program and by its site: defaults of options
    that are not set, and variables.

    Raises:
        JobgenError: there is no such site, something in it is wrong, or it has another scheduler.
    """
    if "launcher" not in spec.origins:
        spec = spec._replace(launcher=spec.default_launcher.name)
    if site is None or site.name == NO_SITE:
        return spec
    from jobgen.sites.defaults import with_defaults
    from jobgen.sites.loader import choose

    return with_defaults(spec, choose(site.name, site.origin, spec.scheduler, site.beside))


def _first(
    option: Option, settings: Mapping[str, Text | None], below: Layer | None, settings_origin: str
) -> tuple[Text | None, str]:
    """Return the text of an option and its origin; None if the option is not set."""
    under = (below.values.get(option.key), below.origins.get(option.key, "")) if below else (None, "")
    if not (text := settings.get(option.key)) and (option.multiple or text is None):
        return under
    if under[1].endswith(SET):
        raise JobgenError(
            f"{option.flag} ({COMMAND_LINE}): --set says {option.key} too; leave one of them out"
        )
    return text, settings_origin
