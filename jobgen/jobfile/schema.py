"""The tables of a job file as frozen types, generated from the table of options.

msgspec is slow to import: import this module only where a job file is needed.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from jobgen.jobfile.tables import AT, OF_SCHEDULERS, OWN_OPTIONS, TABLES, meaning, table_of
from jobgen.options import OPTIONS, Option
from jobgen.schedulers.table import COMMANDS
from jobgen.spec import Component
from jobgen.values.parsers import Choice, Whole

VARIABLE = int | str
WORD = bool | int | float | str | list[int | float | str]
SWEEP_VALUE = str | list[WORD]
COMPONENT_KEYS = Component._fields


TITLES = {"job": "Directives of the scheduler."}  # for the others, the name of the group suffices


def type_of(option: Option) -> Any:
    """Return the type of an option in a file: numbers may also be text, as on the command line."""
    if option.key == "env":
        return dict[str, VARIABLE] | list[str]
    if option.switch:
        return bool
    if option.multiple:
        return list[str]
    if isinstance(option.parse, Whole):
        limits = {"minimum": option.parse.minimum, "maximum": option.parse.maximum}
        return Annotated[int, Meta(extra_json_schema=limits)] | str
    return str


def _field(option: Option) -> tuple[str, Any, Any]:
    more: dict[str, Any] = {}
    if isinstance(option.parse, Choice):
        more["enum"] = list(option.parse.allowed)
    if isinstance(option.default, (str, int)):
        more["default"] = option.default
    about = Meta(description=meaning(option), extra_json_schema=more)
    return option.name, Annotated[type_of(option), about] | UnsetType, UNSET


def _struct(name: str, fields: list[Any], about: str) -> Any:
    made: Any = msgspec.defstruct(name, fields, frozen=True, forbid_unknown_fields=True, kw_only=True)
    return Annotated[made, Meta(description=about)] | UnsetType


def _table(name: str) -> Any:
    fields = [_field(option) for option in OPTIONS if table_of(option) == name]
    return _struct(name, fields, TITLES.get(name, f"{name.capitalize()}."))


_SCHEDULER = Annotated[
    str,
    Meta(
        description="What it is for: the command that it is meant to be used with.",
        extra_json_schema={"enum": list(COMMANDS)},
    ),
]
_TRAIN = Meta(
    description="Options of the training module: lr = 0.01 is --lr 0.01, true is the option alone, "
    "false leaves it out, a list is joined by commas."
)
_SWEEP = Meta(
    description="One array job for many values: lr = [0.1, 0.01] gives each task one of them as its --lr. "
    'Several lists make every combination, or with mode = "zip" go side by side.'
)
_STEP = Meta(
    description="Programs that run one after another in one job, instead of [program]: each has command, and "
    "name, env, and launcher, nodes, ranks_per_node, container and image if they differ from those of the "
    "job. With parallel = true a step starts together with the step before, on the next nodes, or on the same"
    ' ones if both have gpus or cores. starts = "after NAME is ready" and ends = "with NAME" order them.'
)
_COMPONENT = Meta(
    description="Groups of nodes that differ, in the order of their ranks: each has nodes, and "
    f"{', '.join(COMPONENT_KEYS[1:])} if they differ from those of the job. On Slurm they are the components "
    "of a heterogeneous job, on PBS the chunks or groups of one request."
)
_CHECK = Meta(description="What jobgen check reports of this file and the scripts beside it.")
_SILENCE = Meta(description="Rules that jobgen check leaves out.")
_REQUIRE = Meta(
    description="What directives must request: account, name, queue, walltime, or how a directive begins."
)
_FORBIDDEN = Meta(
    description="Modules that no script may load: cuda is each version of it, * is any text in a name."
)
_COMMAND = Meta(
    description="train.py ARG..., -m MODULE ARG..., or any other command.",
    min_length=1,
)


class CheckTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table [check] of a job file or a site file."""

    silence: Annotated[tuple[str, ...], _SILENCE] = ()
    require: tuple[Annotated[str, _REQUIRE], ...] = ()
    forbidden_modules: Annotated[tuple[str, ...], _FORBIDDEN] = ()


_TABLES: list[Any] = [(name, _table(name), UNSET) for name in TABLES]
_OWN = _struct(
    "own",
    [_field(option) for option in OWN_OPTIONS],
    "Options for one scheduler, instead of those in the tables above.",
)
_SITE = Annotated[str, Meta(description="The site that it runs at: jobgen site list")]

OptionTables: Any = msgspec.defstruct(
    "OptionTables", _TABLES, frozen=True, forbid_unknown_fields=True, kw_only=True
)

JobFile: Any = msgspec.defstruct(
    "JobFile",
    [
        ("scheduler", _SCHEDULER | UnsetType, UNSET),
        ("site", _SITE | UnsetType, UNSET),
        *_TABLES,
        *((name, _OWN, UNSET) for name in OF_SCHEDULERS),
        (
            "program",
            _struct("program", [("command", Annotated[list[str], _COMMAND])], "What every rank runs."),
            UNSET,
        ),
        ("train", Annotated[dict[str, WORD], _TRAIN] | UnsetType, UNSET),
        ("sweep", Annotated[dict[str, SWEEP_VALUE], _SWEEP] | UnsetType, UNSET),
        ("check", Annotated[CheckTable, _CHECK] | UnsetType, UNSET),
        (
            "step",
            Annotated[list[dict[str, WORD | dict[str, bool | int | float | str]]], _STEP] | UnsetType,
            UNSET,
        ),
        ("component", Annotated[list[dict[str, WORD]], _COMPONENT] | UnsetType, UNSET),
    ],
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
)


def keys_of(path: tuple[str, ...]) -> list[str]:
    """Return the keys that the file, or one of its tables, may hold."""
    if not path:
        return list(JobFile.__struct_fields__)
    own: dict[tuple[str, ...], list[str]] = {
        ("program",): ["command"],
        ("check",): list(CheckTable.__struct_fields__),
    }
    return own.get(path) or [option.name for place, option in AT.items() if place[:-1] == path]


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of this type."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
