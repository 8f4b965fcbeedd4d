"""The options of launchers, typed for jobgen: the options of jobgen that mean the same.

Only errors need this module.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from jobgen.convert.to_job_file.option_sizes import JobCommandLine, OptionWords
from jobgen.convert.to_job_file.scheduler_options import Advice, long_names, refusal
from jobgen.launch.launchers import EACH_DEVICE, LAUNCHERS
from jobgen.options import BY_KEY
from jobgen.script.dialects.table import DIALECTS
from jobgen.values.parsers import number

# Names in other programs, and the keys of jobgen's options with the same value.
_OTHERS = {
    "--memory": "mem", "--project": "account", "--features": "constraint", "--license": "licenses",
    "--depend": "after",
}  # fmt: skip
_MAPPINGS = ("--map-by", "-map-by")
_HOSTS = ("-H", "-host", "--host", "-hosts", "--hosts")
LauncherOption = tuple[list[str], str, str]  # of whom, the key of jobgen's option, and a spelling or a remark


def split(option: OptionWords) -> tuple[str, str]:
    """Return the name of an option and its value."""
    word, equals, value = option[0].partition("=")
    return word, value if equals else " ".join(option[1:])


def of_value(option: OptionWords) -> Advice | None:
    """Return the advice on an option of a launcher whose value has a counterpart; None for others."""
    word, value = split(option)
    for row in LAUNCHERS.values():
        for pattern, key, text in row.line.same_values.get(word, ()):
            if found := re.fullmatch(pattern, value):
                own = found.expand(text)
                return Advice([row.command], {key: [own] if BY_KEY[key].multiple else own})
    if word in _MAPPINGS and (found := re.fullmatch(r"(?i)ppr:(\d+):node:pe=(\d+)", value)):
        return Advice(_of_mpi(), {"ranks_per_node": int(found[1]), "cpus_per_rank": int(found[2])})
    if word == "-m" and re.fullmatch(r"[A-Za-z_]\w*(\.\w+)+", value):  # no value of sbatch and qsub
        owners = [row.command for row in LAUNCHERS.values() if word in row.line.module_options]
        return Advice(owners, {}, program=f"-m {value}")
    return None


def of_launcher(option: OptionWords, line: JobCommandLine) -> Advice | None:
    """Return the advice on an option of a launcher; None for other options."""
    word, value = split(option)
    name = word.replace("_", "-")
    if hosts := _hosts(option):
        return _of_hosts(hosts, word, line)
    known_as = (["other programs"], _OTHERS.get(name, ""), "")
    owners, key, text = _options_of(line).get(name, known_as)
    own = BY_KEY.get(name[2:].replace("-", "_"))
    if own and name != word:
        return _checked(["launchers"], own.key, value)
    if key in ("remark", "script"):
        other = "; jobgen submit has another --host, a machine to submit at" if word == "--host" else ""
        remark = text if key == "remark" else f"leave {word} out, the script sets it{other}"
        return Advice(owners, {}, (remark,))
    if key == "launcher_arg":
        return _argument(owners, word if "_" in word else text, option, line)
    if key and not value:
        return Advice(owners, {}, (f"{name} needs a value",))
    if key == "nodes" and (ends := re.fullmatch(r"(\d+):(\d+)", value)):
        if ends[1] != ends[2]:
            return Advice(owners, {}, ("a range of nodes has no counterpart: --nodes is one number",))
        value = ends[1]
    if key == "ranks":
        return _shared(owners, number(value) or 0, line)
    if key == "ranks_per_node" and value in EACH_DEVICE:
        return Advice(owners, {}, (f"leave {word} out, each device has a rank",))
    return _checked(owners, key, value) if key else None


def _argument(owners: Sequence[str], name: str, option: OptionWords, line: JobCommandLine) -> Advice:
    """Return the advice on an option for ``--launcher-arg``, with the launcher that has it."""
    _, value = split(option)
    launcher = line.ours.get("--launcher", "")
    if launcher and launcher not in owners:
        return Advice(owners, {}, (f"{launcher} has no counterpart of {' '.join(option)}",))
    spaced = LAUNCHERS[owners[0]].of_mpi  # its options take no "="
    words = [name, *option[1:]] if spaced else [f"{name}={value}" if value else name]
    return Advice(owners, {**({} if launcher else {"launcher": owners[0]}), "launcher_arg": words})


def _shared(owners: Sequence[str], total: int, line: JobCommandLine) -> Advice:
    """Return the advice on a number of ranks on all nodes."""
    counts = _counts(line)
    nodes = line.whole("nodes") or counts.get("nodes")
    each = line.whole("ranks_per_node") or counts.get("ranks_per_node")
    if total and each and not nodes and total % each == 0:
        return Advice(owners, {"nodes": total // each})
    if (
        total
        and not nodes
        and (line.devices or "--site" in line.ours or each)
        and total > (line.devices or 0)
    ):
        return Advice(owners, {"ranks": total})
    if not total or total % (nodes or 1):
        why = f"{total} ranks on {nodes} nodes have no counterpart: --ranks-per-node is that of each node"
        return Advice(owners, {}, (why,))
    return Advice(owners, {"ranks_per_node": total // (nodes or 1)})


def _counts(line: JobCommandLine) -> dict[str, int | None]:
    """Return the numbers of nodes and ranks that options of launchers name, by jobgen's keys."""
    known, counts = _options_of(line), dict[str, int | None]()
    for option in line.foreign:
        name, value = split(option)
        _, key, _ = known.get(name.replace("_", "-"), ([], "", ""))
        advice = of_value(option)
        if advice and "ranks_per_node" in advice.values:
            counts["ranks_per_node"] = number(str(advice.values["ranks_per_node"]))
        elif hosts := _hosts(option):
            counts["nodes"] = len(hosts)
        elif key in ("nodes", "ranks", "ranks_per_node"):
            counts[key] = number(value)
    return counts


def _hosts(option: OptionWords) -> Counter[str]:
    """Return the hosts and their slots of an option such as ``-H a:4,b:4``; empty for other options."""
    word, value = split(option)
    hosts = Counter[str]()
    if word in _HOSTS and re.fullmatch(r"[\w.-]+(:\d+|(:\d+)?(,[\w.-]+(:\d+)?)+)", value):
        for host, _, slots in (one.partition(":") for one in value.split(",")):
            hosts[host] += number(slots) or 1
    return hosts


def _of_hosts(hosts: Counter[str], word: str, line: JobCommandLine) -> Advice:
    """Return the advice on a list of hosts: their number, and the ranks of each if no option names them."""
    each, *others = set(hosts.values())
    if _counts(line).keys() & {"ranks", "ranks_per_node"}:
        values = {"nodes": len(hosts)}
    elif others:
        why = "unequal numbers of ranks on nodes have no counterpart: --ranks-per-node is that of each"
        return Advice(_of_mpi(), {}, (why,))
    else:
        values = {"nodes": len(hosts), "ranks_per_node": each}
    return Advice(_of_mpi(), values, (f"leave {word} out, the script sets it",))


def _of_mpi() -> list[str]:
    return [row.command for row in LAUNCHERS.values() if row.of_mpi]


def _checked(owners: Sequence[str], key: str, value: str) -> Advice:
    """Return the advice to give this value, unless jobgen's option refuses it."""
    option = BY_KEY[key]
    if why := refusal(key, "yes" if option.switch else value):
        return Advice(owners, {}, (why,))
    return Advice(owners, {key: True if option.switch else value})


def launcher_options() -> dict[str, LauncherOption]:
    """Return the options of launchers that no scheduler has, with - for _: whose they are, the key of
    jobgen's option (``script`` and ``remark`` for none), and their spelling or the remark."""
    found: dict[str, LauncherOption] = {}
    others = {name for row in DIALECTS.values() for name in long_names(row)}
    for row in LAUNCHERS.values():
        line = row.line
        keys = {
            "nodes": line.nodes, "ranks_per_node": line.local_ranks, "ranks": line.ranks,
            "script": line.from_script, "launcher_arg": line.more, "remark": line.remarks,
        }  # fmt: skip
        pairs = [(name, key) for key, names in keys.items() for name in names]
        pairs += [(name, key) for name, key in line.same.items() if len(name) > 2]
        for name, key in pairs:
            if len(name) == 2 or name[2:] not in others:
                answer: LauncherOption = ([], key, line.remarks.get(name, name))
                found.setdefault(name.replace("_", "-"), answer)[0].append(row.command)
    return found


def mpi_letters(line: JobCommandLine) -> dict[str, LauncherOption]:
    """Return the letters of mpirun, such as ``-N``, if another option is of mpirun alone, as ``-np`` is."""
    known = launcher_options()
    of_mpi, found = _of_mpi(), dict[str, LauncherOption]()
    for option in line.foreign:
        owners, *_ = known.get(split(option)[0].replace("_", "-"), ([], "", ""))
        advice = of_value(option)
        if _hosts(option) or (owners and owners == of_mpi) or (advice and advice.owners == of_mpi):
            break
    else:
        return found
    for row in (row for row in LAUNCHERS.values() if row.of_mpi):
        names = {**dict.fromkeys(row.line.ranks, "ranks"), **row.line.same}
        found |= {name: ([row.command], key, name) for name, key in names.items() if len(name) == 2}
    return found


def _options_of(line: JobCommandLine) -> dict[str, LauncherOption]:
    return launcher_options() | mpi_letters(line)
