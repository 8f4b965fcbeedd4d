"""Reader of a job file, jobgen.toml: it checks types, refuses unknown keys, and records the line of each
value.

Values are converted to text and read by the parsers of the command line, so that both mean the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.jobfile.errors import Path, sentence
from jobgen.jobfile.locations import line_of
from jobgen.jobfile.schema import COMPONENT_KEYS, WORD, CheckTable, JobFile, fits
from jobgen.jobfile.step_tables import check_keys, check_number_of_nodes, check_variables, read_steps
from jobgen.jobfile.sweep_table import read_sweep
from jobgen.jobfile.tables import AT, OF_SCHEDULERS, OWN_OPTIONS, table_of
from jobgen.launch.program import check_words, read_program
from jobgen.options import BY_KEY, OPTIONS, Option, parse
from jobgen.schedulers.table import COMMANDS
from jobgen.spec import SET, Component, Layer, OwnValues, SiteName, Step, Text
from jobgen.values import text_files


def read_job(path: str | None, settings: Sequence[str], program: tuple[str, ...]) -> Layer:
    """Return the job file (None: an empty one) after ``--set``, with the program that was typed.

    Raises:
        JobgenError: it cannot be read, or something in it is wrong.
    """
    text = read_text(path, f"the job file {shown(path)}") if path is not None else ""
    name = (path if path.isprintable() else ascii(path)) if path else SET
    data = decode(text, name)
    changed = {_change(data, one) for one in settings}

    def origin(place: Path) -> str:
        if any(one == place[: len(one)] for one in changed):
            return SET
        line = line_of(text, place)
        if any(place == one[: len(place)] for one in changed):
            return f"{name}, line {line}, and {SET}" if line else SET
        return f"{name}, line {line}" if line else name

    layer = layer_of(data, program, origin)
    beside = os.path.dirname(path or "")
    return layer._replace(site=layer.site._replace(beside=beside)) if layer.site else layer


def check_table(path: str) -> tuple[CheckTable, Callable[[Path], str]] | None:
    """Return the table [check] of a job file and the function for the places of its keys; None if the file
    has none.

    Raises:
        JobgenError: it cannot be read, or its table [check] is wrong.
    """
    name = path if path.isprintable() else ascii(path)
    text = read_text(path, f"the job file {shown(path)}")
    content = {key: value for key, value in decode(text, name).items() if key == "check"}

    def origin(place: Path) -> str:
        return f"{name}, line {line_of(text, place)}"

    try:
        return (msgspec.convert(content, JobFile).check, origin) if content else None
    except msgspec.ValidationError as error:
        raise JobgenError(sentence(str(error), content, origin)) from None


def has_job(path: str) -> bool:
    """Return whether a job file has more than a table [check] for scripts.

    Raises:
        JobgenError: it cannot be read.
    """
    data = decode(read_text(path, f"the job file {shown(path)}"), path)
    return bool(data.keys() - {"scheduler", "site", "check"})


def layer_of(data: Mapping[str, Any], program: tuple[str, ...], origin: Callable[[Path], str]) -> Layer:
    """Return the content of these tables; ``origin`` returns the place of each key.

    Raises:
        JobgenError: something in them is wrong.
    """
    try:
        return _layer(msgspec.convert(data, JobFile), program, origin)
    except msgspec.ValidationError as error:
        raise JobgenError(sentence(str(error), data, origin)) from None


def read_text(path: str, place: str) -> str:
    """Return the text of a file; ``place`` names the file in errors."""
    try:
        return text_files.read_text(path)
    except UnicodeDecodeError:
        raise JobgenError(f"{place} is not text in UTF-8") from None
    except text_files.TooLong as error:
        raise JobgenError(f"{place} {error}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise JobgenError(f"{place} cannot be read: {reason}") from None


def decode(text: str, name: str) -> dict[str, Any]:
    """Parse TOML; ``name`` is the name of the file."""
    try:
        data: dict[str, Any] = msgspec.toml.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        where = re.search(r" \(at line (\d+), column (\d+)\)", str(error))
        line = f", line {where[1]}, column {where[2]}" if where else ""
        reason = str(error).split(" (at ")[0].split("; use sys.")[0]
        raise JobgenError(f"{name}{line}: is not TOML: {reason}") from None
    return data


def _change(data: dict[str, Any], setting: str) -> Path:
    """Apply one ``--set`` to the data, and return the place of its key."""
    name, equals, text = setting.partition("=")
    place = tuple(name.split(".", 2))
    if not equals or not all(place):
        raise JobgenError(
            f"--set {shown(setting)} (command line): must be TABLE.KEY=VALUE, such as resources.nodes=4"
        )
    table = data
    for part in place[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise JobgenError(f"--set {shown(setting)} (command line): {part} is no table")
    table[place[-1]] = _typed(text, place)
    return place


def _typed(text: str, place: Path) -> Any:
    """Return a value with its type in the file; text may be without quotes."""
    try:
        [value] = msgspec.toml.decode(f"value = {text}").values()
    except (msgspec.DecodeError, ValueError, RecursionError):
        value = text
    if place[0] == "train":
        return value if fits(value, WORD) else text
    option = AT.get(place)
    if option is not None and option.switch:
        return {"yes": True, "no": False}.get(text, value)
    if isinstance(value, (str, list, dict)) and not (option and option.multiple and isinstance(value, str)):
        return value
    return [value if isinstance(value, str) else text] if option and option.multiple else text


def _layer(job: Any, program: tuple[str, ...], origin: Callable[[Path], str]) -> Layer:
    if job.scheduler not in (msgspec.UNSET, *COMMANDS):
        raise JobgenError(
            f"scheduler = {shown(job.scheduler)} ({origin(('scheduler',))}): must be {one_of(COMMANDS)}"
            f"{nearest(job.scheduler, COMMANDS)}"
        )
    values, origins = options_of(job, origin)
    steps = _steps(job, program, origin)
    words, whence = (steps[0].program, origin(("step",))) if steps else _program(job, program, origin)
    scheduler = None if job.scheduler is msgspec.UNSET else job.scheduler
    site = None if job.site is msgspec.UNSET else SiteName(job.site, origin(("site",)))
    swept = None
    if job.sweep is not msgspec.UNSET:
        swept, origins["sweep"] = read_sweep(job.sweep, origin), origin(("sweep",))
    tables = {name: [(one, name) for one in OWN_OPTIONS] for name in OF_SCHEDULERS if getattr(job, name)}
    own = {name: OwnValues(*_read(job, table, origin), origin((name,))) for name, table in tables.items()}
    components = _components(job, origin)
    origins |= ({"program": whence} if whence else {}) | (
        {"components": origin(("component",))} if components else {}
    )
    return Layer(values, origins, words, scheduler, site, swept, steps, components, own)


def _steps(job: Any, program: tuple[str, ...], origin: Callable[[Path], str]) -> tuple[Step, ...]:
    """Return the steps; none without [[step]]."""
    if job.step is msgspec.UNSET:
        return ()
    where = origin(("step",))
    others = {
        "[program]": job.program,
        "[train]": job.train,
        "[sweep]": job.sweep,
        "a program after --": program,
    }
    if found := next((name for name, value in others.items() if value), None):
        raise JobgenError(f"[[step]] ({where}): each step has its command; leave out {found}")
    if not job.step:
        raise JobgenError(f"step ({where}): must be one or more tables [[step]]")

    return read_steps(job.step, where, _check_command)


def options_of(tables: Any, origin: Callable[[Path], str]) -> tuple[dict[str, Text], dict[str, str]]:
    """Return the options in some tables as text, and the origin of each."""
    return _read(tables, [(option, table_of(option)) for option in OPTIONS], origin)


def _read(
    tables: Any, places: Sequence[tuple[Option, str]], origin: Callable[[Path], str]
) -> tuple[dict[str, Text], dict[str, str]]:
    """Return the same for options in the tables of these names."""
    values: dict[str, Text] = {}
    origins: dict[str, str] = {}
    for option, name in places:
        table = getattr(tables, name)
        value = getattr(table, option.name) if table else msgspec.UNSET
        if value not in (msgspec.UNSET, [], {}):
            values[option.key] = option_text(value)
            origins[option.key] = origin((name, option.name))
            if isinstance(value, dict):
                check_variables(value, f"{origins[option.key]}, {option.name}")
    return values, origins


def option_text(value: Any) -> str | Sequence[str]:
    """Return a value of TOML as the text of an option, or the texts of a repeatable one."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return [f"{name}={one}" for name, one in value.items()]
    return value if isinstance(value, list) else str(value)


def _program(job: Any, typed: tuple[str, ...], origin: Callable[[Path], str]) -> tuple[Path, str | None]:
    """Return the program and its origin: a typed program overrides it; typed options are added to [train]."""
    if job.program and job.train is not msgspec.UNSET:
        raise JobgenError(
            f"[train] ({origin(('train',))}): there is also a [program]; keep the one that shall run"
        )
    only_options = bool(typed) and typed[0].startswith("-") and typed[0] != "-m"
    if job.program:
        where = origin(("program", "command"))
        if only_options:
            raise JobgenError(
                f"{shown(typed[0])} (after --): names no program, but {where} does; write it out"
            )
        _check_command(job.program.command, where)
        return (typed, "command line") if typed else (tuple(job.program.command), where)
    if not job.train or (typed and not only_options):
        return typed, "command line" if typed else None
    swept = job.sweep or {}  # overrides [train]
    overriding = {f"--{key.removeprefix('--')}".replace("_", "-") for key in swept}
    overriding |= {word.partition("=")[0].replace("_", "-") for word in typed if word.startswith("--")}
    _check_spellings(job.train, origin)
    words = [word for key, value in job.train.items() for word in _option(key, value, overriding, origin)]
    return (*words, *typed), origin(("train",)) + (" and command line" if typed else "")


def _check_spellings(train: Mapping[str, Any], origin: Callable[[Path], str]) -> None:
    """Refuse an option that the table [train] has with dashes and with underscores."""
    for key in train:
        other = key.replace("-", "_")
        if other != key and other in train:
            raise JobgenError(
                f"{key} ({origin(('train', key))}): {other} is the same option; keep one of them"
            )


def _check_command(words: Sequence[str], where: str) -> None:
    check_words(words, where)
    try:
        read_program(tuple(words))
    except JobgenError:
        rule = "must begin with a script, -m MODULE or a command"
        raise JobgenError(f"command = {shown(' '.join(words))} ({where}): {rule}") from None


def _option(key: str, value: Any, overriding: set[str], origin: Callable[[Path], str]) -> list[str]:
    """Return one option of the training module as words; none if it was typed, or is false."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", key, re.ASCII):
        raise JobgenError(f"{shown(key)} = ({origin(('train', key))}): is no option of the training module")
    from jobgen.jobfile import training_options

    flag = training_options.flag_of(key)
    if flag in overriding:
        return []
    try:
        training_options.check_value(flag, value)
    except training_options.OptionError as error:
        text = shown(training_options.text_of(value))
        raise JobgenError(f"{key} = {text} ({origin(('train', key))}): {error.reason}") from None
    return training_options.words_of(flag, value)


def _components(job: Any, origin: Callable[[Path], str]) -> tuple[Component, ...]:
    """Return the components in order, none without [[component]]; refuse wrong tables, or only one."""
    if job.component is msgspec.UNSET:
        return ()
    where = origin(("component",))
    if len(job.component) < 2:
        raise JobgenError(
            f"component ({where}): must be two tables [[component]] or more; for equal nodes use [resources]"
        )
    components = []
    for number, table in enumerate(job.component, 1):
        place = f"{where}, [[component]] {number}"
        check_keys(table, COMPONENT_KEYS, "component", place)
        check_number_of_nodes(table, place)
        values = {key: parse(BY_KEY[key], str(value), place)[0] for key, value in table.items()}
        components.append(Component(**values))
    return tuple(components)
