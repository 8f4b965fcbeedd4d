"""Derives from the results of the ranks what is wrong, and on which host. Pure: no files, no torch, no clock.

Facts are results of a single rank (facts.py); reports are results of ranks together (together.py). If hosts
differ, the minority is named; without a majority, all hosts are named.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..ranks import text_of

CLOCK_NOTE = 1.0  # seconds between two hosts
SPACE_NOTE = 1 << 30  # bytes
MOST_NAMES = 8  # maximum number of hosts that a sentence names
LATE = "it did not end in time"  # the error of an all-reduce that timed out
Facts = Mapping[int, Mapping[str, Any]]  # by rank


class Finding(NamedTuple):
    """The result of a check. host: None if no host can be blamed; failed: False for a note."""

    host: str | None
    check: str
    failed: bool
    text: str


@dataclass(frozen=True)
class JobRequest:
    """The requested job: the hosts with their slots, in the order of ranks, and the number of ranks.

    hosts is empty without a hostfile. world_size is None if the job does not specify it.
    """

    hosts: tuple[tuple[str, int], ...]
    world_size: int | None

    @cached_property
    def slots(self) -> list[str]:
        """The host of each slot."""
        return [host for host, count in self.hosts for _ in range(count)]

    def host(self, rank: int, here: str) -> str:
        """Return the host to which the rank belongs.

        If the hostfile does not determine it, return `here`, the host on which the rank runs. If filters
        exclude hosts or devices, there are fewer ranks than slots.
        """
        if self.world_size not in (None, len(self.slots)):
            return next((host for host, _ in self.hosts if short(host) == short(here)), here)
        return self.slots[rank] if rank < len(self.slots) else here


def read_hostfile(text: str) -> tuple[tuple[str, int], ...]:
    """Return the hosts and slots of the lines HOST slots=N."""
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return tuple((row[0], int(row[1].partition("=")[2]) if len(row) > 1 else 1) for row in rows)


def short(host: str) -> str:
    """Return the host name up to its first dot; an IP address is returned unchanged."""
    first = host.partition(".")[0]
    return host if first.isdecimal() else first


def missing(
    absent: Mapping[int, tuple[str, Mapping[str, Any] | None]], facts: Facts, rendezvous: str
) -> list[Finding]:
    """Return the findings on ranks that did not come to the rendezvous.

    absent: for each of these ranks its host, and the facts that it has written before, or None
    """
    findings = []
    away = {host for host, _ in absent.values()}
    home = {each["host"] for each in facts.values()}
    if len(home) == 1 and away - home and all(record and record.get("lost") for _, record in absent.values()):
        findings = [Finding(home.pop(), "port", True, f"no other host can reach rank 0 at {rendezvous}")]
        if len(away) > 1:  # of two hosts, either one may be the cause
            return findings
    for host, ranks in _groups({rank: host for rank, (host, _) in absent.items()}).items():
        records = [facts for facts in (absent[rank][1] for rank in ranks) if facts]
        ranks_text = text_of(ranks)
        if not records:
            text = f"{ranks_text} never started, or {_verb(ranks, 'does', 'do')} not share the run directory"
        elif problems := [problem for facts in records for problem in facts.get("problems", ())]:
            text = problems[0]
        else:
            last = records[0]["phase"]
            text = f"{ranks_text} started, but did not reach the rendezvous at {rendezvous} (last: {last})"
        findings.append(Finding(host, "hosts", True, text))
    return findings


def alone(job: JobRequest, facts: Facts, ranks_started: int) -> list[Finding]:
    """Return the findings on the facts of single ranks. ranks_started: number of ranks of the launcher."""
    return [
        *_own_problems(facts),
        *_world(job, facts, ranks_started),
        *_places(facts),
        *_devices(facts),
        *_versions(facts),
        *_interfaces(facts),
        *_space(facts),
    ]


def together(hosts: Sequence[str], reports: Mapping[str, Mapping[str, Any] | None]) -> list[Finding]:
    """Return the findings on how the hosts see each other: files, addresses, and the clock of rank 0."""
    findings = [
        Finding(host, "hosts", True, "stopped answering while the hosts tested each other")
        for host in hosts
        if reports.get(host) is None
    ]
    there = {host: report for host, report in reports.items() if report is not None}
    unseen = {host: report["unseen"] for host, report in there.items()}
    for host, others in blame(unseen).items():
        text = f"{some(others)} and it do not see each other's files in the directory: it is not shared"
        findings.append(Finding(host, "write", True, text))
    unreachable = {host: report["unreachable"] for host, report in there.items()}
    for host, others in blame(unreachable).items():
        text = f"no TCP connection between it and {some(others)}"
        findings.append(Finding(host, "interface", True, text))
    return findings + clocks({host: tuple(report["clock"]) for host, report in there.items()})


def blame(pairs: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the hosts to name, each with the hosts with which it had trouble.

    pairs: for each host, the hosts that it cannot see. The host with the most trouble is named first, until
    every pair has a named host. Hosts with equally much trouble are all named.
    """
    open_pairs = {frozenset((host, other)) for host, others in pairs.items() for other in others}
    culprits: dict[str, list[str]] = {}
    while open_pairs:
        trouble = _groups({(host, pair): host for pair in open_pairs for host in pair})
        most = max(map(len, trouble.values()))
        worst = {host for host, hosts in trouble.items() if len(hosts) == most}
        for host in sorted(worst):
            culprits[host] = sorted(other for _, pair in trouble[host] for other in pair - {host})
        open_pairs = {pair for pair in open_pairs if not pair & worst}
    return culprits


def clocks(offsets: Mapping[str, tuple[float, float]]) -> list[Finding]:
    """Return notes on hosts whose clocks are far from the others.

    offsets: for each host, the seconds that it is ahead of rank 0, and the uncertainty in seconds
    """
    if len(offsets) < 2:
        return []
    middle = statistics.median(offset for offset, _ in offsets.values())
    first, *_, last = sorted(offsets.values())
    width = last[0] - first[0]
    if width - first[1] - last[1] <= CLOCK_NOTE:
        return []
    away = {host: offset - middle for host, (offset, _) in offsets.items()}
    far = {host: seconds for host, seconds in away.items() if abs(seconds) >= width / 2}
    if len(far) == len(offsets):
        text = f"the clocks of {some(list(far))} differ by {width:.1f} s"
        return [Finding(None, "clock", False, text)]
    return [
        Finding(
            host,
            "clock",
            False,
            f"its clock is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} the other hosts'",
        )
        for host, seconds in far.items()
    ]


def sums(facts: Facts, reports: Mapping[int, Mapping[str, Any] | None]) -> list[Finding]:
    """Return the findings on the all-reduce.

    The hosts of ranks that did not return from it are named. If there are none, the hosts of ranks with a
    wrong sum or an error are named. If a rank hangs, the errors of other ranks are only a consequence.
    """
    lost = {rank: facts[rank]["host"] for rank in facts if reports.get(rank) is None}
    if lost:
        return [
            Finding(host, "all-reduce", True, f"{text_of(ranks)} did not return from the all-reduce")
            for host, ranks in _groups(lost).items()
        ]
    errors = {rank: report["error"] for rank, report in reports.items() if report and report.get("error")}
    # Ranks that timed out have waited for the ranks with an error of their own.
    errors = {rank: error for rank, error in errors.items() if error != LATE} or errors
    by_host = _groups({rank: facts[rank]["host"] for rank in errors})
    if len(by_host) == len({each["host"] for each in facts.values()}):
        text = f"the all-reduce failed on every host: {next(iter(errors.values()))}"
        return [Finding(next(iter(by_host)) if len(by_host) == 1 else None, "all-reduce", True, text)]
    return [Finding(host, "all-reduce", True, errors[ranks[0]]) for host, ranks in by_host.items()]


def disagreement(check: str, what: str, values: Mapping[str, str]) -> list[Finding]:
    """Return the findings on values that should be equal on all hosts.

    values: one for each host. The hosts whose value is not the most frequent one are named.
    """
    groups = sorted(_groups(values).items(), key=lambda group: -len(group[1]))
    if len(groups) < 2:
        return []
    (common, most), (_, second) = groups[0], groups[1]
    if len(most) == len(second):
        text = "; ".join(f"{what} {value} on {some(hosts)}" for value, hosts in groups)
        return [Finding(host, check, True, f"the hosts disagree: {text}") for host in values]
    return [
        Finding(host, check, True, f"it has {what} {value}, but {len(most)} others have {common}")
        for value, hosts in groups[1:]
        for host in hosts
    ]


def bad_hosts(findings: Iterable[Finding]) -> dict[str, str]:
    """Return {host: what is wrong with it}, in the order of the findings."""
    bad: dict[str, str] = {}
    for host, _, failed, text in findings:
        if failed and host is not None:
            bad[host] = f"{bad[host]}; {text}" if host in bad else text
    return bad


def _own_problems(facts: Facts) -> list[Finding]:
    problems = dict.fromkeys((each["host"], text) for each in facts.values() for text in each["problems"])
    return [Finding(host, "local", True, text) for host, text in problems]


def _world(job: JobRequest, facts: Facts, ranks_started: int) -> list[Finding]:
    slots = sum(count for _, count in job.hosts)
    request = job.world_size or slots or ranks_started
    if ranks_started == request:
        return []
    text = f"the launcher started {ranks_started} rank(s), but the job requested {request}"
    have = _groups({rank: each["host"] for rank, each in facts.items()})
    # The hostfile determines the ranks of a host only if all slots are to be used.
    short_of = [host for host, count in job.hosts if request == slots and len(have.get(host, ())) < count]
    return [Finding(host, "hosts", True, text) for host in short_of or (None,)]


def _places(facts: Facts) -> list[Finding]:
    findings = []
    there: dict[str, set[str]] = {}
    for each in facts.values():
        there.setdefault(each["hostname"], set()).add(each["host"])
    for host, ranks in _groups({rank: each["host"] for rank, each in facts.items()}).items():
        names = sorted({facts[rank]["hostname"] for rank in ranks})
        elsewhere = [rank for rank in ranks if facts[rank]["placed"] is False]
        unknown = any(facts[rank]["placed"] is None for rank in ranks)
        neighbours = {other for name in names for other in there[name]} - {host}
        if elsewhere:
            do = _verb(elsewhere, "runs", "run")
            text = f"{text_of(elsewhere)} should run on it, but {do} on {', '.join(names)}"
            findings.append(Finding(host, "hosts", True, text))
        elif len(names) > 1 and unknown:
            findings.append(Finding(host, "hosts", True, f"its ranks run on {' and '.join(names)}"))
        elif unknown and neighbours:
            text = f"its ranks and those of {some(sorted(neighbours))} all run on {names[0]}"
            findings.append(Finding(host, "hosts", True, text))
        elif unknown:
            text = f"its ranks run on {names[0]}, which may be another host"
            findings.append(Finding(host, "hosts", False, text))
    return findings


def _devices(facts: Facts) -> list[Finding]:
    findings, kinds = [], {}
    for host, ranks in _groups({rank: each["host"] for rank, each in facts.items()}).items():
        devices = [facts[rank]["device"] for rank in ranks if facts[rank]["device"]]
        ids = [device["id"] for device in devices if device["id"]]
        if len(set(ids)) < len(ids):
            text = f"{text_of(ranks)} share {len(set(ids))} device(s) instead of one each"
            findings.append(Finding(host, "devices", True, text))
        kinds[host] = " or ".join(sorted({describe(device) for device in devices}))
    kinds = {host: kind for host, kind in kinds.items() if kind}  # the others have reported their problem
    return findings + disagreement("devices", "the devices", kinds)


def describe(device: Mapping[str, Any]) -> str:
    """Return a text such as '4 x NVIDIA A100', or the kind of device if there are no names."""
    if not device["names"]:
        return str(device["kind"])
    groups = _groups(dict(enumerate(device["names"])))
    return ", ".join(f"{len(same)} x {name}" for name, same in groups.items())


def _versions(facts: Facts) -> list[Finding]:
    findings: list[Finding] = []
    for name in dict.fromkeys(name for each in facts.values() for name in each["versions"]):
        by_host: dict[str, dict[str, None]] = {}
        for each in facts.values():
            if each["versions"]:  # otherwise, it has reported its problem
                by_host.setdefault(each["host"], {})[str(each["versions"].get(name) or "none")] = None
        unequal = {host: values for host, values in by_host.items() if len(values) > 1}
        for host, values in unequal.items():
            findings.append(Finding(host, "versions", True, f"its ranks have {name} {' and '.join(values)}"))
        equal = {host: next(iter(values)) for host, values in by_host.items() if host not in unequal}
        findings += disagreement("versions", name, equal)
    return findings


def _interfaces(facts: Facts) -> list[Finding]:
    findings: dict[tuple[str, str], Finding] = {}
    several = len({each["hostname"] for each in facts.values()}) > 1
    for each in facts.values():
        link, text = each["interface"], ""
        if not link:
            continue
        if link["missing"]:
            text = f"{link['variable']}={link['value']}, but it has only {', '.join(link['all'])}"
        elif several and link["loopback"]:
            text = f"its ranks would connect to the others over the loopback interface {link['name']}"
        if text:
            findings[each["host"], text] = Finding(each["host"], "interface", True, text)
    return list(findings.values())


def _space(facts: Facts) -> list[Finding]:
    text = "only {} MiB are free in {}"
    return [
        Finding(each["host"], "write", False, text.format(record["free"] >> 20, record["directory"]))
        for each in facts.values()
        if (record := each["write"]) and record["free"] < SPACE_NOTE
    ]


def _groups(values: Mapping[Any, Any]) -> dict[Any, list[Any]]:
    """Return {value: list of its keys}."""
    groups: dict[Any, list[Any]] = {}
    for key, value in values.items():
        groups.setdefault(value, []).append(key)
    return groups


def some(hosts: Sequence[str]) -> str:
    """Return the names of the hosts; of many hosts the first ones, and the number of the others."""
    if len(hosts) <= MOST_NAMES:
        return ", ".join(hosts)
    return f"{', '.join(hosts[: MOST_NAMES // 2])} and {len(hosts) - MOST_NAMES // 2} more"


def _verb(ranks: Sequence[int], one: str, several: str) -> str:
    return one if len(ranks) == 1 else several
