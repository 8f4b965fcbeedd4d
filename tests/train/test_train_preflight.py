"""Preflight: its judgement on made-up facts, and real ranks on one machine, whose addresses 127.0.0.x stand
for hosts."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jobgen.train.addresses import free_port
from jobgen.train.preflight import judge, table
from jobgen.train.preflight.judge import Finding, JobRequest
from jobgen.train.preflight.visit import GATHER, GRACE, reasons
from jobgen.train.ranks import span
from support import ROOT, warm, warm_python
from support.require import need_command, need_package, need_root
from support.waiting import wait_for
from train_support import PYTHON, clean_environment, launcher_command

pytestmark = pytest.mark.usefixtures("warm_python")
SIMULATED_NPU = ROOT / "tests/npu"
LIMIT = 16  # seconds, where a rank waits for another in vain: time for all to import torch beside a load
LATEST = LIMIT + 2 * GRACE  # the kernel ends a rank by then
COLD = 180  # seconds, where all ranks come, and one has to import torch beside a load


# ---- the judgement ------------------------------------------------------------------------


def fact(rank: int, host: str, **other: Any) -> dict[str, Any]:
    """What a healthy rank finds."""
    return {
        "rank": rank,
        "host": host,
        "hostname": host,
        "placed": True,
        "problems": [],
        "device": {"kind": "cpu", "names": [], "id": None},
        "versions": {"python": "3.11.7", "torch": "2.13.0"},
        "interface": {
            "variable": "GLOO_SOCKET_IFNAME",
            "value": "",
            "name": "eth0",
            "missing": False,
            "loopback": False,
            "all": ["lo", "eth0"],
        },
        "write": {"directory": "/data", "free": 1 << 40, "seconds": 0.01},
        **other,
    }


def of(*facts: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {each["rank"]: each for each in facts}


def bad(findings: Sequence[Finding]) -> dict[str, str]:
    return judge.bad_hosts(findings)


FOUR = JobRequest((("a", 2), ("b", 2)), 4)


def four(**other: Any) -> dict[int, dict[str, Any]]:
    """Two hosts with two ranks; `other` is said of b's."""
    return of(fact(0, "a"), fact(1, "a"), fact(2, "b", **other), fact(3, "b", **other))


def test_nothing_is_wrong_with_healthy_hosts() -> None:
    assert judge.alone(FOUR, four(), 4) == []
    assert judge.alone(JobRequest((), None), four(), 4) == []


def test_hostfile_is_read_in_rank_order() -> None:
    hosts = judge.read_hostfile("n2 slots=2\n\nn1 slots=1\n")
    assert hosts == (("n2", 2), ("n1", 1))
    job = JobRequest(hosts, 3)
    assert [job.host(rank, "x") for rank in range(4)] == ["n2", "n2", "n1", "x"]
    assert JobRequest(hosts, None).host(2, "x") == "n1"
    # Where filters leave out slots, a rank is where it runs.
    assert JobRequest(hosts, 2).host(1, "n1.cluster") == "n1"
    assert JobRequest(hosts, 2).host(1, "login") == "login"
    assert JobRequest((), None).host(5, "here") == "here"


@pytest.mark.parametrize(("host", "name"), [("n1.cluster", "n1"), ("n1", "n1"), ("10.0.0.1", "10.0.0.1")])
def test_short_name(host: str, name: str) -> None:
    assert judge.short(host) == name


def test_a_rank_that_never_came_up() -> None:
    found = judge.missing({2: ("b", None), 3: ("b", None)}, four(), "a:1")
    assert bad(found) == {"b": "ranks 2, 3 never started, or do not share the run directory"}


def test_a_rank_that_came_up_and_got_no_further() -> None:
    left = {"phase": "importing torch", "problems": []}
    assert (
        "did not reach the rendezvous at a:1 (last: importing torch)"
        in bad(judge.missing({3: ("b", left)}, four(), "a:1"))["b"]
    )
    left = {"phase": "gave up", "problems": ["torch cannot be imported: no libc"]}
    assert bad(judge.missing({3: ("b", left)}, four(), "a:1")) == {"b": "torch cannot be imported: no libc"}


def test_the_rendezvous_that_nobody_reaches_is_rank_0_s_fault() -> None:
    lost = {"phase": "gave up", "problems": ["cannot reach"], "lost": True}
    home = of(fact(0, "a"))
    assert set(bad(judge.missing({1: ("b", lost), 2: ("c", lost)}, home, "a:1"))) == {"a"}
    # Of two hosts either may be the one; with a third that reaches it, it is not rank 0's.
    assert set(bad(judge.missing({1: ("b", lost)}, home, "a:1"))) == {"a", "b"}
    assert set(bad(judge.missing({1: ("b", lost)}, of(fact(0, "a"), fact(2, "c")), "a:1"))) == {"b"}


@pytest.mark.parametrize(
    ("started", "wanted", "hosts", "named"),
    [
        (4, 4, (("a", 2), ("b", 2)), None),
        (4, None, (("a", 2), ("b", 2)), None),
        (4, None, (), None),
        (4, 8, (("a", 4), ("b", 4)), ["a", "b"]),
        (4, 6, (("a", 2), ("b", 4)), ["b"]),
        (4, 2, (("a", 2), ("b", 2)), []),  # more than the job asked for: no host's fault
        (4, 3, (), []),
    ],
)
def test_the_number_of_ranks(
    started: int, wanted: int | None, hosts: tuple[tuple[str, int], ...], named: list[str] | None
) -> None:
    found = judge.alone(JobRequest(hosts, wanted), four(), started)
    assert any(each.failed for each in found) == (named is not None)
    assert list(bad(found)) == (named or [])


def test_placement() -> None:
    facts = of(fact(0, "a"), fact(1, "b", hostname="c", placed=False))
    assert bad(judge.alone(JobRequest((("a", 1), ("b", 1)), 2), facts, 2)) == {
        "b": "rank 1 should run on it, but runs on c"
    }


def test_placement_that_names_do_not_tell() -> None:
    job = JobRequest((("a", 2), ("b", 1)), 3)
    unknown: dict[str, Any] = {"placed": None}
    facts = of(fact(0, "a", **unknown), fact(1, "a", **unknown), fact(2, "b", hostname="x", **unknown))
    found = judge.alone(job, facts, 3)
    assert not bad(found)
    assert any("may be another host" in each.text for each in found)
    facts[1]["hostname"] = "x"  # one host's ranks on two
    assert "its ranks run on a and x" in bad(judge.alone(job, facts, 3))["a"]
    facts[1]["hostname"], facts[2]["hostname"] = "a", "a"  # all on one
    assert set(bad(judge.alone(job, facts, 3))) == {"a", "b"}


def npus(count: int, own: str | None = None) -> dict[str, Any]:
    return {"device": {"kind": "npu", "names": ["Ascend910B"] * count, "id": own}}


def test_fewer_or_other_devices() -> None:
    facts = of(fact(0, "a", **npus(8)), fact(1, "b", **npus(8)), fact(2, "c", **npus(7)))
    assert bad(judge.alone(JobRequest((), None), facts, 3)) == {
        "c": "it has the devices 7 x Ascend910B, but 2 others have 8 x Ascend910B"
    }
    facts[2]["device"] = {"kind": "npu", "names": ["Ascend910B"] * 7 + ["Ascend310"], "id": None}
    assert "7 x Ascend910B, 1 x Ascend310" in bad(judge.alone(JobRequest((), None), facts, 3))["c"]
    facts[2]["device"] = {"kind": "cpu", "names": [], "id": None}
    assert "it has the devices cpu" in bad(judge.alone(JobRequest((), None), facts, 3))["c"]


def test_two_ranks_on_one_device() -> None:
    facts = of(fact(0, "a", **npus(1, "0/0")), fact(1, "a", **npus(1, "0/0")))
    assert "ranks 0, 1 share 1 device(s)" in bad(judge.alone(JobRequest((), None), facts, 2))["a"]
    facts[1]["device"]["id"] = "1/0"
    assert judge.alone(JobRequest((), None), facts, 2) == []


def test_a_rank_s_own_problem_is_told_once_and_blames_nobody_else() -> None:
    problem = {"problems": ["no device"], "device": None, "versions": {}, "interface": None, "write": None}
    found = judge.alone(FOUR, four(**problem), 4)
    assert [(each.host, each.text) for each in found] == [("b", "no device")]


def test_versions_the_few_are_named() -> None:
    facts = of(*(fact(rank, host) for rank, host in enumerate("abc")))
    facts[1]["versions"] = {"python": "3.11.7", "torch": "2.12.0"}
    assert bad(judge.alone(JobRequest((), None), facts, 3)) == {
        "b": "it has torch 2.12.0, but 2 others have 2.13.0"
    }


def test_versions_a_package_that_is_not_everywhere() -> None:
    facts = of(*(fact(rank, host) for rank, host in enumerate("abc")))
    facts[2]["versions"]["deepspeed"] = "0.19.8"
    assert bad(judge.alone(JobRequest((), None), facts, 3)) == {
        "c": "it has deepspeed 0.19.8, but 2 others have none"
    }


def test_versions_on_a_tie_all_are_named() -> None:
    found = judge.alone(FOUR, four(versions={"python": "3.11.7", "torch": "2.12.0"}), 4)
    assert bad(found) == dict.fromkeys("ab", "the hosts disagree: torch 2.13.0 on a; torch 2.12.0 on b")


def test_versions_that_differ_within_a_host() -> None:
    facts = four()
    facts[3]["versions"] = {"python": "3.11.7", "torch": "2.12.0"}
    assert bad(judge.alone(FOUR, facts, 4)) == {"b": "its ranks have torch 2.13.0 and 2.12.0"}


def test_interfaces() -> None:
    wrong = {**fact(0, "a")["interface"], "value": "ib0", "missing": True}
    assert bad(judge.alone(FOUR, four(interface=wrong), 4)) == {
        "b": "GLOO_SOCKET_IFNAME=ib0, but it has only lo, eth0"
    }
    loopback = {**fact(0, "a")["interface"], "name": "lo", "loopback": True}
    assert "loopback interface lo" in bad(judge.alone(FOUR, four(interface=loopback), 4))["b"]
    alone = of(fact(0, "a", interface=loopback), fact(1, "a", interface=loopback))
    assert judge.alone(JobRequest((), None), alone, 2) == []


def test_little_space_is_a_note() -> None:
    facts = of(fact(0, "a", write={"directory": "/data", "free": 10 << 20, "seconds": 0.1}))
    [found] = judge.alone(JobRequest((), None), facts, 1)
    assert (found.failed, found.text) == (False, "only 10 MiB are free in /data")


@pytest.mark.parametrize(
    ("pairs", "named"),
    [
        ({}, {}),
        ({"a": [], "b": []}, {}),
        ({"a": ["b"], "b": []}, {"a": ["b"], "b": ["a"]}),  # of two, both
        ({"a": ["b"], "b": ["a", "c"], "c": ["b"]}, {"b": ["a", "c"]}),
        ({"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}, dict.fromkeys("abc")),  # nothing is shared
        ({"a": ["d", "e"], "b": ["d", "e"], "c": ["d", "e"]}, dict.fromkeys("de")),  # three against two
    ],
)
def test_blame(pairs: Mapping[str, list[str]], named: Mapping[str, Any]) -> None:
    found = judge.blame(pairs)
    assert set(found) == set(named)
    for host, others in named.items():
        assert others is None or found[host] == others


TWO = "the clocks of a, b differ by"


@pytest.mark.parametrize(
    ("ahead", "notes"),
    [
        ({"a": 0.0}, {}),
        ({"a": 0.0, "b": 0.9}, {}),
        ({"a": 0.0, "b": -2.0}, {None: f"{TWO} 2.0 s"}),
        ({"a": 0.0, "b": 300.0}, {None: f"{TWO} 300.0 s"}),
        ({"a": 0.0, "b": 0.1, "c": 7.0}, {"c": "its clock is 6.9 s ahead of the other hosts'"}),
        (
            {"a": 0.0, "b": -7.0, "c": -7.1},
            {"a": "its clock is 7.0 s ahead of the other hosts'"},
        ),  # rank 0's own
        ({"a": 0.0, "b": 0.0, "c": 0.1, "d": 3.0}, {"d": "its clock is 3.0 s ahead of the other hosts'"}),
        ({"a": 0.0, "b": 0.0, "c": 7.0, "d": 7.0}, {None: "the clocks of a, b, c, d differ by 7.0 s"}),
        (
            {"a": 0.0, "b": 7.0, "c": -0.2, "d": -7.0, "e": 0.0},
            {
                "b": "its clock is 7.0 s ahead of the other hosts'",
                "d": "its clock is 7.0 s behind the other hosts'",
            },
        ),
    ],
)
def test_clocks_that_differ_are_notes(ahead: Mapping[str, float], notes: Mapping[str | None, str]) -> None:
    found = judge.clocks({host: (seconds, 0.001) for host, seconds in ahead.items()})
    assert {each.host: each.text for each in found} == notes
    assert not any(each.failed for each in found)
    assert judge.bad_hosts(found) == {}


def test_a_clock_that_could_not_be_measured_well_is_not_blamed() -> None:
    assert judge.clocks({"a": (0.0, 0.0), "b": (6.0, 5.5)}) == []


def test_what_the_hosts_see_of_each_other() -> None:
    fine = {"clock": [0.0, 0.0], "unseen": [], "unreachable": []}
    assert judge.together(["a", "b"], {"a": fine, "b": fine}) == []
    assert "stopped answering" in bad(judge.together(["a", "b"], {"a": fine, "b": None}))["b"]
    reports = {"a": {**fine, "unseen": ["c"]}, "b": {**fine, "unseen": ["c"]}, "c": fine}
    assert "it is not shared" in bad(judge.together(list("abc"), reports))["c"]
    reports = {"a": {**fine, "unreachable": ["b"]}, "b": fine, "c": {**fine, "unreachable": ["b"]}}
    assert bad(judge.together(list("abc"), reports)) == {"b": "no TCP connection between it and a, c"}


def test_the_all_reduce() -> None:
    fine, stuck = {"seconds": 1.0}, {"error": judge.LATE}
    assert judge.sums(four(), dict.fromkeys(range(4), fine)) == []
    # Who does not answer at all is the cause; the others' errors follow.
    found = judge.sums(four(), {0: stuck, 1: stuck, 2: stuck, 3: None})
    assert bad(found) == {"b": "rank 3 did not return from the all-reduce"}
    found = judge.sums(four(), dict.fromkeys(range(4), stuck))
    assert (bad(found), found[0].failed) == ({}, True)
    found = judge.sums(four(), {0: fine, 1: fine, 2: {"error": "returned 5 instead of 10"}, 3: fine})
    assert bad(found) == {"b": "returned 5 instead of 10"}
    found = judge.sums(four(), {0: stuck, 1: stuck, 2: {"error": "uncorrectable ECC error"}, 3: stuck})
    assert bad(found) == {"b": "uncorrectable ECC error"}


@pytest.mark.parametrize(
    ("backend", "asked", "there"),
    [
        ("gloo", "eth0", True),
        ("gloo", "eth0,ib0", True),
        ("gloo", "eth", False),
        ("gloo", "eth0,ib1", False),
        ("nccl", "eth", True),
        ("nccl", "=eth", False),
        ("nccl", "=eth0", True),
        ("nccl", "hsn,ib", True),
        ("nccl", "hsn", False),
        ("nccl", "^lo", True),
        ("nccl", "^lo,eth,ib", False),
        ("nccl", "^=eth", True),
        ("hccl", "=ib0", True),
    ],
)
def test_interfaces_that_a_variable_names(backend: str, asked: str, there: bool) -> None:
    need_package("torch")
    from jobgen.train.preflight import facts

    assert facts.names_interfaces(asked, ["lo", "eth0", "ib0"], backend) == there


def test_whether_a_host_is_here() -> None:
    need_package("torch")
    from jobgen.train.preflight import facts

    assert facts.is_here("n1.cluster", "n1")
    assert facts.is_here("127.0.0.3", "n1")
    assert facts.is_here("192.0.2.1", "n1") is False  # an address that is nobody's
    assert facts.is_here("n1.invalid.", "other") is None


def test_table() -> None:
    facts = four()
    for each in facts.values():
        each["interface"]["name"] = "eth0"
    seen = {"a": {"clock": (0.0, 0.0)}, "b": {"clock": (0.0125, 0.0)}}
    report = {"algorithm_gb_per_s": 1.5, "bus_gb_per_s": 2.25}
    rows = table.rows(facts, seen, dict.fromkeys(range(4), report), [Finding("c", "hosts", True, "gone")])
    assert [row["verdict"] for row in rows] == ["ok", "ok", "BAD"]
    lines = table.lines(rows)
    row = (
        "b 2-3 cpu - python 3.11.7 torch 2.13.0 eth0 1.50 GB/s (bus 2.25) 10.0 ms, 1024 GiB free +12.5 ms ok"
    )
    assert " ".join(lines[2].split()) == row
    assert lines[3].split() == ["c", *"-" * 8, "BAD"]
    assert lines[0].index("clock") == lines[2].index("+12.5")


def test_a_clock_that_is_far_away_is_shown_in_seconds() -> None:
    seen = {"a": {"clock": (0.0, 0.0)}, "b": {"clock": (300.0, 0.0)}}
    rows = table.rows(four(), seen, {}, judge.clocks({host: each["clock"] for host, each in seen.items()}))
    assert [(row["clock"], row["verdict"]) for row in rows] == [("+0.0 ms", "ok"), ("+300.0 s", "ok")]
    many = [{**rows[0], "host": f"n{i}", "clock": "-20.0 ms"} for i in range(40)]
    [common] = table.short([*many, {**rows[1], "devices": rows[0]["devices"]}])
    assert common["clock"] == "+300.0 s"


@pytest.mark.parametrize(
    ("ranks", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 3], "0-3"), ([0, 1, 3, 5, 6], "0-1,3,5-6")]
)
def test_span(ranks: list[int], text: str) -> None:
    assert span(ranks) == text


def many(hosts: int) -> dict[int, dict[str, Any]]:
    """Eight ranks on each of so many hosts."""
    return of(*(fact(rank, f"n{rank // 8:04}") for rank in range(8 * hosts)))


def test_the_table_of_many_hosts_has_a_row_for_those_that_are_alike() -> None:
    facts = many(1024)
    for rank in range(80, 88):
        facts[rank]["versions"] = {"python": "3.11.7", "torch": "2.12.0"}
    seen = {f"n{i:04}": {"clock": (-0.02 * (i == 7), 0.0)} for i in range(1024)}
    rows = table.rows(facts, seen, {}, judge.alone(JobRequest((), None), facts, 8192))
    common, deviating = table.short(rows)
    assert (common["host"], common["ranks"], common["verdict"]) == (
        "n0000 and 1022 more",
        "0-7...8184-8191",
        "ok",
    )
    assert common["clock"] == "-20.0 ms"
    assert (deviating["host"], deviating["verdict"]) == ("n0010", "BAD")
    assert table.short(rows[:32]) == rows[:32]


def test_what_is_said_of_many_hosts_is_short() -> None:
    findings = judge.disagreement("versions", "torch", {f"n{i}": str(i % 2) for i in range(1024)})
    [text] = reasons(findings)
    assert text.startswith(
        "n0, n1, n2, n3 and 1020 more: the hosts disagree: torch 0 on n0, n2, n4, n6 and 508"
    )
    assert len(text) < 200


@pytest.mark.parametrize("bad_host", [0, 500, 1023])
def test_of_many_hosts_each_looks_at_a_few_and_the_bad_one_is_named(bad_host: int) -> None:
    need_package("torch")
    from jobgen.train.preflight import together

    hosts = [f"n{i}" for i in range(1024)]
    bad_one = hosts[bad_host]
    looks = {host: together.others(host, hosts) for host in hosts}
    assert {len(looked) for looked in looks.values()} == {10}
    assert not any(host in looked for host, looked in looks.items())
    trouble = {host: [other for other in looks[host] if bad_one in (host, other)] for host in hosts}
    assert list(judge.blame(trouble)) == [bad_one]


# ---- real ranks ---------------------------------------------------------------------------


@dataclass
class Flight:
    """What a preflight left."""

    statuses: list[int]
    stdout: str
    stderr: str
    run: Path
    seconds: float

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.run / "preflight" / "result.json").read_text())

    @property
    def bad(self) -> dict[str, str]:
        file = self.run / "preflight" / "bad-hosts"
        return dict(line.split("\t") for line in file.read_text().splitlines()) if file.exists() else {}


def environment(run: Path, count: int, limit: int = 60) -> dict[str, str]:
    """For `count` ranks, each on a host of its own: 127.0.0.1, 127.0.0.2...

    The limit is what matters where a rank waits for another that never comes.
    """
    run.mkdir(parents=True, exist_ok=True)
    (run / "hostfile").write_text("".join(f"127.0.0.{i + 1} slots=1\n" for i in range(count)))
    return {
        **clean_environment(),
        "JOBGEN_RUN_DIR": str(run),
        "JOBGEN_WORLD_SIZE": str(count),
        "JOBGEN_PREFLIGHT_TIMEOUT": str(limit),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }


def begin(
    env: Mapping[str, str], rank: int, count: int, *options: str, before: Sequence[str] = (), **own: str
) -> subprocess.Popen[str] | warm.Rank:
    """One rank, by hand; in a process of its own only where what is imported, or mounted, is another."""
    ranks = {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    env = {**env, **ranks, **own}
    path = env.get("PYTHONPATH", "")
    if not before and path in ("", str(SIMULATED_NPU)):
        modules = warm_python.TORCH if path else warm_python.MODULES
        return warm.Rank(["preflight", *options], env, server=lambda: warm_python.server(modules=modules))
    return subprocess.Popen(
        [*before, PYTHON, "-m", "jobgen.train", "preflight", *options],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(
    processes: Sequence[subprocess.Popen[str] | warm.Rank], env: Mapping[str, str], began: float
) -> Flight:
    ends = warm.finish(processes, COLD)
    return Flight(*ends, Path(env["JOBGEN_RUN_DIR"]), time.monotonic() - began)


def fly(env: Mapping[str, str], count: int, *options: str, each: Mapping[int, Any] | None = None) -> Flight:
    """All ranks; `each` has what is said to one of them alone."""
    need_package("torch")
    began, each = time.monotonic(), each or {}
    ranks = [begin(env, rank, count, *options, **each.get(rank, {})) for rank in range(count)]
    return end(ranks, env, began)


@pytest.mark.parametrize(("launcher", "count"), [("mpirun", 4), ("torchrun", 2)])
def test_good_hosts_under_a_launcher(launcher: str, count: int, tmp_path: Path) -> None:
    env = environment(tmp_path / "run", count)
    command = [*launcher_command(launcher, count), "preflight", "--epochs", "1", "--save-every", "5"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == list(table.COLUMNS)
    assert [line.split()[:2] for line in lines[1:-1]] == [[f"127.0.0.{i + 1}", str(i)] for i in range(count)]
    assert all(line.endswith("ok") for line in lines[1:-1])
    assert lines[-1].startswith(f"preflight passed: {count} host(s), {count} rank(s), in ")
    folder = tmp_path / "run" / "preflight"
    assert {file.name for file in folder.iterdir()} == {
        "result.json",
        "nodes",
    }
    reported = {f"127.0.0.{i + 1}.json" for i in range(count)}
    assert {file.name for file in (folder / "nodes" / "0").iterdir()} == reported
    result = json.loads((folder / "result.json").read_text())
    assert result["state"] == "passed"
    assert 0 < result["seconds"] < result["limit"] == 60
    assert result["all_reduce"][0]["bytes"] == 16 << 20
    assert result["all_reduce"][0]["algorithm_gb_per_s"] > 0
    assert not list((tmp_path / "run").glob(".preflight*"))


def test_one_host_without_a_hostfile(tmp_path: Path) -> None:
    env = environment(tmp_path / "run", 2)
    (tmp_path / "run" / "hostfile").unlink()
    own = {"LOCAL_WORLD_SIZE": "2"}
    done = fly(env, 2, each={0: own, 1: {**own, "LOCAL_RANK": "1"}})
    assert done.statuses == [0, 0], done.stderr
    assert [row["ranks"] for row in done.result["hosts"]] == ["0-1"]
    assert done.result["hosts"][0]["host"] == socket.gethostname()


def test_a_rank_that_is_not_started(tmp_path: Path) -> None:
    need_package("torch")
    env = environment(tmp_path / "run", 3, limit=LIMIT)
    began = time.monotonic()
    done = end([begin(env, rank, 3) for rank in (0, 2)], env, began)
    assert done.statuses == [74, 74]
    assert done.bad == {"127.0.0.2": "rank 1 never started, or does not share the run directory"}
    assert re.search(r"preflight failed in [\d.]+ s: 127.0.0.2: rank 1 never started", done.stdout)
    assert done.seconds < LATEST
    assert [row["verdict"] for row in done.result["hosts"]] == ["ok", "ok", "BAD"]


def test_rank_0_is_not_started(tmp_path: Path) -> None:
    need_package("torch")
    env = environment(tmp_path / "run", 2, limit=LIMIT)
    began = time.monotonic()
    done = end([begin(env, 1, 2)], env, began)
    assert done.statuses == [74]
    assert "rank 0 never started" in done.bad["127.0.0.1"]
    assert "127.0.0.1: rank 0 never started: rank 1 cannot reach rank 0" in done.stderr
    assert done.seconds < LATEST


def stopped(env: Mapping[str, str]) -> warm.Rank:
    """Begin rank 1 of two, and stop it after its first line: without rank 0 it does not come further."""
    rank = begin(env, 1, 2)
    assert isinstance(rank, warm.Rank)
    file = Path(env["JOBGEN_RUN_DIR"], "preflight/nodes/0/127.0.0.2.json")
    wait_for(lambda: file.exists() and file.stat().st_size)
    rank.send_signal(signal.SIGSTOP)
    return rank


def test_a_rank_that_hangs_while_it_starts(tmp_path: Path) -> None:
    need_package("torch")
    env = environment(tmp_path / "run", 2, limit=LIMIT)
    late = stopped(env)
    began = time.monotonic()
    rank_0 = begin(env, 0, 2)
    rank_0.wait(timeout=LATEST)
    late.send_signal(signal.SIGCONT)
    done = end([rank_0, late], env, began)
    assert done.statuses == [74, 74]
    assert "rank 1 started, but did not reach the rendezvous" in done.bad["127.0.0.2"]


def test_a_rank_whose_torch_comes_late_is_waited_for(tmp_path: Path) -> None:
    """As on a cold node with a slow file system: after the time in which every rank must have left word."""
    need_package("torch")
    limit = 80
    env = environment(tmp_path / "run", 2, limit=limit)
    late = stopped(env)
    began = time.monotonic()
    rank_0 = begin(env, 0, 2)
    time.sleep(GATHER * limit + 1)
    late.send_signal(signal.SIGCONT)
    done = end([rank_0, late], env, began)
    assert done.statuses == [0, 0], done.stderr
    assert done.result["seconds"] > GATHER * limit


def test_the_port_is_closed_to_one_host(tmp_path: Path) -> None:
    env = environment(tmp_path / "run", 3, limit=LIMIT)
    done = fly(env, 3, each={2: {"MASTER_PORT": str(free_port())}})
    assert done.statuses == [74] * 3
    assert "rank 2 cannot reach rank 0 at 127.0.0.1" in done.bad["127.0.0.3"]
    assert list(done.bad) == ["127.0.0.3"]
    assert done.seconds < LATEST


def test_the_port_is_another_program_s(tmp_path: Path) -> None:
    env = environment(tmp_path / "run", 2, limit=6)
    with socket.socket() as other:
        other.bind(("", int(env["MASTER_PORT"])))
        other.listen()
        done = fly(env, 2)
    assert done.statuses == [74, 74]
    assert "rank 0 cannot listen on 127.0.0.1" in done.bad["127.0.0.1"]
    assert done.seconds < LATEST


def test_versions_that_disagree(tmp_path: Path) -> None:
    need_package("deepspeed")
    info = tmp_path / "other" / "deepspeed-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deepspeed\nVersion: 0.1\n")
    env = environment(tmp_path / "run", 3, limit=COLD)
    done = fly(env, 3, each={1: {"PYTHONPATH": str(tmp_path / "other")}})
    assert done.statuses == [74] * 3
    assert list(done.bad) == ["127.0.0.2"]
    assert done.bad["127.0.0.2"].startswith("it has deepspeed 0.1, but 2 others have ")


def test_torch_that_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "torch.py").write_text("raise ImportError('libfabric.so: no such file')")
    env = environment(tmp_path / "run", 2)
    done = fly(env, 2, each={1: {"PYTHONPATH": str(tmp_path / "other")}})
    assert done.statuses == [74, 74]
    assert done.bad == {"127.0.0.2": "torch cannot be imported: libfabric.so: no such file"}
    assert done.result["seconds"] < GATHER * done.result["limit"]  # without waiting for more


def test_an_interface_that_a_host_lacks(tmp_path: Path) -> None:
    env = environment(tmp_path / "run", 3)
    done = fly(env, 3, each={1: {"GLOO_SOCKET_IFNAME": "ib7"}})
    assert done.statuses == [74] * 3
    assert list(done.bad) == ["127.0.0.2"]
    assert "GLOO_SOCKET_IFNAME=ib7" in done.bad["127.0.0.2"]


def test_a_host_that_is_another(tmp_path: Path) -> None:
    env = environment(tmp_path / "run", 2)
    (tmp_path / "run" / "hostfile").write_text("127.0.0.1 slots=1\n192.0.2.7 slots=1\n")
    done = fly(env, 2)
    assert done.statuses == [74, 74]
    assert done.bad == {"192.0.2.7": f"rank 1 should run on it, but runs on {socket.gethostname()}"}


def test_the_checkpoint_directory_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = environment(tmp_path / "run", 2)
    options = ["--save-every", "1", "--checkpoint-dir", str(tmp_path / "file" / "checkpoints")]
    done = fly(env, 2, *options)
    assert done.statuses == [74, 74]
    assert set(done.bad) == {"127.0.0.1", "127.0.0.2"}
    assert "cannot write into" in done.bad["127.0.0.1"]
    assert "Not a directory" in done.bad["127.0.0.1"]


@pytest.mark.parametrize(
    ("mount", "says"),
    [
        pytest.param("ro", "cannot write into {}: Read-only file system", id="read-only"),
        pytest.param("rw", "do not see each other's files in the directory", id="not shared"),
    ],
)
def test_a_checkpoint_directory_that_one_host_mounts_otherwise(mount: str, says: str, tmp_path: Path) -> None:
    need_root()
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    script = f'mount -t tmpfs -o {mount} none "$0" && exec "$@"'
    before = [need_command("unshare"), "--mount", need_command("sh"), "-c", script, str(folder)]
    if subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("this container may not mount anything")
    env = environment(tmp_path / "run", 3, limit=COLD)
    done = fly(env, 3, "--save-every", "1", "--checkpoint-dir", str(folder), each={1: {"before": before}})
    assert done.statuses == [74] * 3
    assert list(done.bad) == ["127.0.0.2"]
    assert says.format(folder) in done.bad["127.0.0.2"]
    assert not list(folder.iterdir())


def test_a_host_with_fewer_npus(tmp_path: Path) -> None:
    need_command("g++", "ninja")
    env = environment(tmp_path / "run", 3, limit=COLD)
    env |= {"PYTHONPATH": str(SIMULATED_NPU), "JOBGEN_ACCELERATOR": "npu"}
    subprocess.run([PYTHON, "-c", "import torch_npu, os; os._exit(0)"], env=env, check=True, timeout=300)
    done = fly(env, 3)
    assert done.statuses == [0] * 3, done.stderr
    assert done.result["hosts"][0]["devices"].startswith("8 x ")
    done = fly(env, 3, each={2: {"FAKE_NPU_COUNT": "7"}})
    assert done.statuses == [74] * 3
    assert list(done.bad) == ["127.0.0.3"]
    assert "7 x " in done.bad["127.0.0.3"]


def test_a_mistake_in_the_training_s_options(tmp_path: Path) -> None:
    done = fly(environment(tmp_path / "run", 2), 2, "--epoch", "3")
    assert done.statuses == [2, 2]
    assert done.stderr.count("unknown option '--epoch' (did you mean '--epochs'?)") == 1
    assert not (tmp_path / "run" / "preflight").exists()
    assert not (tmp_path / "run" / "status.json").exists()


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"JOBGEN_PREFLIGHT_TIMEOUT": "soon"}, "JOBGEN_PREFLIGHT_TIMEOUT='soon'"),
        ({"JOBGEN_RUN_DIR": ""}, "JOBGEN_RUN_DIR is not set"),
    ],
)
def test_a_mistake_in_the_environment(own: dict[str, str], says: str, tmp_path: Path) -> None:
    done = fly(environment(tmp_path / "run", 1), 1, each={0: own})
    assert done.statuses == [2]
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_time_is_over(tmp_path: Path) -> None:
    """Torch takes longer to import than there is time; no rank waits for more."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "torch.py").write_text("import time; time.sleep(60)")
    env = {**environment(tmp_path / "run", 1, limit=4), "PYTHONPATH": str(tmp_path / "slow")}
    done = fly(env, 1)
    assert done.statuses == [74]
    assert "was not done after 4 s (JOBGEN_PREFLIGHT_TIMEOUT), but importing torch" in done.stderr
    assert done.seconds < 4 + 2 * GRACE
    assert os.listdir(tmp_path / "run" / "preflight" / "nodes" / "0") == ["127.0.0.1.json"]
