"""The command of jobgen that is equivalent to a launcher with its options. Only errors need this module."""

import shlex
from collections.abc import Mapping

from jobgen.launch.launchers import EACH_DEVICE, LAUNCHERS, CommandLine
from jobgen.launch.program_launcher import LauncherChain
from jobgen.options import shell_text
from jobgen.schedulers.base import Scheduler
from jobgen.spec import Specification
from jobgen.values.devices import number_of
from jobgen.values.parsers import number

_COUNTS = ("nodes", "ranks", "ranks_per_node", "cpus_per_rank", "gpus_per_node")


class _Options:
    """The options of one launcher: counts, values of other options of jobgen, and options without an
    equivalent."""

    def __init__(self, kind: str, options: Mapping[str, str | None], launcher: str) -> None:
        self.counts: dict[str, tuple[int, str]] = {}  # with the option as it was given
        self.values: dict[str, str] = {}
        self.arguments: list[str] = []
        self.left: list[tuple[str, str]] = []  # option, and the option with its value
        self.each_device = False  # a rank for each device
        row = LAUNCHERS[kind]
        keys, spelled = _keys(row.line), {_dashed(name): name for name in row.line.more}
        for option, value in options.items():
            key, name = keys.get(option), spelled.get(option, option)
            text = name if value is None else f"{name} {value}"
            if key in _COUNTS and (count := number(value)):
                self.counts[key] = count, text
            elif key == "launcher_arg" and kind == launcher:
                # An MPI's options take no "=".
                self.arguments += text.split(" ", 1) if row.of_mpi else [text.replace(" ", "=", 1)]
            elif key and key not in (*_COUNTS, "launcher_arg") and value:
                self.values[key] = value
            elif key == "ranks_per_node" and value in EACH_DEVICE:
                self.each_device = True
            elif key != "":
                self.left.append((option, text))

    def count(self, key: str) -> int | None:
        return self.counts.get(key, (None, ""))[0]

    def leave(self, key: str) -> None:
        if key in self.counts:
            self.left.append(("", self.counts[key][1]))


def advice(found: LauncherChain, spec: Specification, scheduler: Scheduler) -> str:
    """Return the equivalent command, and name the options that it cannot express."""
    kind = found.calls[-1][0]
    launcher = kind
    if not LAUNCHERS[launcher].starts(spec.scheduler):
        launcher = scheduler.default_launcher
    read = [_Options(*call, launcher) for call in found.calls]
    values: dict[str, object] = {**_counts(read, spec, LAUNCHERS[kind].once_a_node)}
    for options in read:
        values |= options.values
    use = [f"--launcher {launcher}"]
    use += [shell_text(key, str(value)) for key, value in values.items() if not _is_given(key, value, spec)]
    use += [f"--launcher-arg={shlex.quote(one)}" for options in read for one in options.arguments]
    parts = [f"use {' '.join([*use, '--', _program(found)])}"]
    for (name, _), options in zip(found.calls, read, strict=True):
        of_scheduler = LAUNCHERS[name].by_scheduler
        for option, text in options.left:
            early = of_scheduler and _has(scheduler, option)
            parts.append(f"{text} {'goes before --' if early else 'has no counterpart'}")
    if found.text:
        parts.append("the other commands of the text go into --setup")
    return "; ".join(parts)


def _is_given(key: str, value: object, spec: Specification) -> bool:
    """Return whether an option is given; the ranks that the launcher starts replace others."""
    return key in spec.origins and (key != "ranks_per_node" or value == spec.ranks_per_node)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _keys(line: CommandLine) -> dict[str, str]:
    """Return the keys of jobgen's options by the options of a launcher; "" needs no equivalent."""
    keys = dict.fromkeys((*line.from_script, *line.flags), "") | dict.fromkeys(
        map(_dashed, line.more), "launcher_arg"
    )
    counts = {"nodes": line.nodes, "ranks": line.ranks, "ranks_per_node": line.local_ranks}
    return keys | {name: key for key, names in counts.items() for name in names} | dict(line.same)


def _counts(read: list[_Options], spec: Specification, once_a_node: bool) -> dict[str, int]:
    """Return the nodes, ranks, cores and devices. A launcher before the last one starts that on the nodes."""
    last, before = read[-1], read[:-1]
    nodes = next((count for one in reversed(read) if (count := one.count("nodes"))), None)
    if nodes is None and once_a_node:
        nodes = next((total for one in before if (total := one.count("ranks"))), None)
    nodes = nodes or (spec.nodes if isinstance(spec.nodes, int) else 1)
    each, total = last.count("ranks_per_node"), last.count("ranks")
    if each is None and total and total % nodes == 0:
        each = total // nodes
    if last.each_device:
        each = number_of(spec.gpus_per_node) if spec.ranks_per_node else None
    if total and total != (each or 0) * nodes:
        last.leave("ranks")
    found = {"nodes": nodes if nodes > 1 else None, "ranks_per_node": each}
    for one in read:
        found["gpus_per_node"] = one.count("gpus_per_node") or found.get("gpus_per_node")
    found["cpus_per_rank"] = last.count("cpus_per_rank")
    for one in before:
        if one.count("ranks") not in (None, nodes):
            one.leave("ranks")
        if one.count("ranks_per_node") not in (None, 1):
            one.leave("ranks_per_node")
        if cores := one.count("cpus_per_rank"):  # of all ranks on a node
            if each and cores % each == 0:
                found["cpus_per_rank"] = cores // each
            else:
                one.leave("cpus_per_rank")
    return {key: count for key, count in found.items() if count}


def _has(scheduler: Scheduler, option: str) -> bool:
    """Return whether the scheduler has an option, for which jobgen names its own when it is before --."""
    return option in scheduler.grammar.short_options or option[2:] in scheduler.grammar.long_options


def _program(found: LauncherChain) -> str:
    words = found.program or ("PROGRAM",)
    if words[0] == "--module":
        words = ("-m", *words[1:])
    if found.wrappers and (words[0] == "-m" or words[0].endswith(".py")):
        words = ("python3", *words)
    return shlex.join((*found.wrappers, *words))
