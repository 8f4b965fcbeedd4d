"""The form of the web page, made from the table of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobgen.commands.accepted import accepts
from jobgen.commands.init import example
from jobgen.options import BY_KEY, OPTIONS, Option
from jobgen.schedulers.table import SCHEDULERS
from jobgen.values.parsers import Choice

# Options that are not in the form, with the reason.
ABSENT: Mapping[str, str] = {
    "dialect": "is part of the choice of the scheduler",
    "hostfile": "reads a file of the cluster",
    "env_file": "reads a file of the cluster",
    "runtime": "writes a second file",
}
# The options that most jobs have, in the order of the form.
BASICS = (
    *("nodes", "gpus_per_node", "launcher", "walltime", "queue", "account"),
    *("module", "conda", "venv"),
)
# Options whose values run code in the job. Those of the group Blocks do, too.
_RUNS_CODE = ("source", "env", "image", "directive", "launcher_arg", "container_arg")
# What an option is called in the form, where that is not its key.
_LABELS: Mapping[str, str] = {
    "name": "Job name", "walltime": "Time limit", "mail": "Mail address", "mail_on": "Mail on these events",
    "array": "Array of tasks", "after": "Start after other jobs", "qos": "Quality of service",
    "constraint": "Node feature", "log": "Output file", "begin": "Earliest start",
    "directive": "Additional directives", "gpus_per_node": "Devices per node",
    "cpus_per_rank": "Cores per rank", "cpus_per_node": "Cores per node", "mem": "Memory per node",
    "exclusive": "Whole nodes", "accelerator": "Kind of device", "mpi": "MPI",
    "remote": "Start on other nodes by", "launcher_arg": "Launcher arguments",
    "expand": "Variables in the program", "cpu_bind": "Binding to cores", "interface": "Network interfaces",
    "network": "Network settings", "include": "Hosts to use", "exclude": "Hosts to leave out",
    "master_addr": "Rendezvous address", "master_port": "Rendezvous port", "grace": "Time to save",
    "signal": "Signal to save", "requeue": "Requeue, at most", "preflight": "Preflight checks",
    "module_purge": "Unload all modules", "module_use": "Folders of modules", "module": "Modules",
    "source": "Scripts to source", "conda": "Conda environment", "venv": "Virtual environment",
    "env": "Environment variables", "container": "Container runtime", "image": "Container image",
    "bind": "Directories in the container", "container_arg": "Container options",
    "early_setup": "Code before the environment", "setup": "Code after the environment",
    "before": "Code before the ranks", "after_block": "Code after the ranks", "workdir": "Working directory",
    "runs_dir": "Directory of the runs", "group_readable": "Readable by your group",
    "rank_logs": "Output of the ranks",
}  # fmt: skip


class Word(NamedTuple):
    """A value of a field with a choice, and the schedulers that do not have it."""

    value: str
    without: str = ""


class Field(NamedTuple):
    """A field of the form.

    ``kind`` is choice, switch, lines (one value a line), text (several lines), line, integer or number.
    ``words`` are all values of a choice or a switch, and proposals for the others. ``without`` are the names
    of the schedulers that refuse the option, separated by blanks. ``code`` says that a value, unless it is
    one of the proposals, runs code in the job. ``empty`` is the word for no value.
    """

    key: str
    label: str
    flag: str
    help: str
    kind: str
    words: tuple[Word, ...]
    example: str
    without: str = ""
    code: bool = False
    empty: str = "default"


def basics() -> list[Field]:
    """Return the fields of the options that most jobs have."""
    return [_field(BY_KEY[key]) for key in BASICS]


def groups() -> dict[str, list[Field]]:
    """Return the other fields by the titles of their groups."""
    found: dict[str, list[Field]] = {}
    for option in OPTIONS:
        if option.key not in (*ABSENT, *BASICS):
            found.setdefault(option.group, []).append(_field(option))
    return found


def _field(option: Option) -> Field:
    takes = next(name for name, row in SCHEDULERS.items() if accepts(row, option.key))
    shown = "" if option.switch or isinstance(option.parse, Choice) else example_text(option, takes)
    more = f"  [default: {option.default}]" if option.default and "[default" not in option.about else ""
    return Field(
        option.key,
        _LABELS.get(option.key) or option.key.replace("_", " ").capitalize(),
        option.flag,
        option.about + more,
        _kind(option),
        tuple(_words(option)),
        shown,
        _without(option.key),
        option.group == "Blocks" or option.key in _RUNS_CODE,
    )


def example_text(option: Option, kind: str) -> str:
    """Return an example of an option on a scheduler, as the text of its field."""
    value = example(option, kind)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "\n".join(f"{name}={one}" for name, one in value.items())
    return "\n".join(value) if isinstance(value, (list, tuple)) else str(value)


def _kind(option: Option) -> str:
    if isinstance(option.parse, Choice):
        return "choice"
    if option.switch:
        return "switch"
    if option.multiple:
        return "lines"
    return "text" if option.group == "Blocks" else "line"


def _words(option: Option) -> Iterable[Word]:
    if option.switch:
        yield from (Word("yes"), Word("no"))
    if isinstance(option.parse, Choice):
        for word in option.parse.allowed:
            yield Word(word, _without(option.key, word))


def _without(key: str, word: str = "") -> str:
    return " ".join(name for name, row in SCHEDULERS.items() if not accepts(row, key, word))
