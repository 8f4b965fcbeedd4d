"""python -m jobgen.train preflight [the training's arguments]: check whether these hosts can run the job.

The launcher starts it on every rank, in the environment in which it will start the training. It exits on all
ranks with 0, or with 74 if a host is bad. For an error in the arguments it exits with 2, like the training.
JOBGEN_PREFLIGHT_TIMEOUT   time limit in seconds (default: 60)

Files in $JOBGEN_RUN_DIR, which all hosts share. HOST is the name in $JOBGEN_RUN_DIR/hostfile:
preflight/nodes/S/HOST.json   results of the ranks of this host, one line of JSON for each update of a rank; a
                              rank writes its first line before it looks for the other ranks
preflight/result.json         all results, with "state" passed or failed, and the duration in seconds
preflight/bad-hosts           after a failure: lines HOST<tab>REASON; empty if no host can be blamed
Files of an earlier preflight must be removed before. A host has reported if and only if a file
preflight/nodes/*/HOST.json exists; jobgen/runs/node_files.py defines S.

facts.py finds facts about a single rank, binding.py those about its processors, together.py has the tests of
all ranks together, judge.py derives the findings, visit.py has the files, the time limits and the exits.
"""

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import config, nodefiles, ranks, report
from ..errors import BAD_HOSTS, DONE
from . import binding, judge, table, visit
from .visit import CONNECT, GATHER, GRACE, LAST, LOOKS, POLL, REDUCE, SLOW, Visit

if TYPE_CHECKING:
    from ..device import Device
    from .together import Board


def main(argv: Sequence[str]) -> int:
    """Return DONE or BAD_HOSTS. Raise BadInput for an error in the arguments or the environment."""
    start = time.monotonic() - report.Clock().seconds()
    settings = config.parse(argv)
    mine = visit.begin(os.environ, start)
    # With the address of the rendezvous, MPI is not needed; its start would wait for missing ranks.
    has_address = os.environ.get("MASTER_ADDR") and os.environ.get("MASTER_PORT")
    me = ranks.discover(os.environ, settings.local_rank, (lambda: None) if has_address else None)
    ranks.export(me, os.environ)
    device = _look(mine, me, settings.checkpoint_dir or mine.folder.parent)
    try:
        board = _meet(mine, me)
        return (_follow if me.rank else _lead)(mine, me, device, board)
    finally:
        if mine.facts["write"]:
            _remove(Path(mine.facts["write"]["file"]))


def _look(mine: Visit, me: ranks.Ranks, directory: Path) -> "Device | None":
    """Find the facts that a rank can find alone. Return its device, or None."""
    problems, own = mine.facts["problems"], binding.own_cpus()
    unknown: dict[str, Any] = {"device": None, "versions": {}, "interface": None, "write": None}
    mine.phase("importing torch", source=me.source, placed=None, listens=None, binding=None, **unknown)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # missing ranks are reported here
    try:
        from . import facts, together
    except Exception as error:  # a broken installation can raise any exception
        visit.give_up(mine, f"torch cannot be imported: {_one_line(error)}", "versions")
    mine.phase("looking at its devices", placed=facts.is_here(mine.host, mine.facts["hostname"]))
    device = facts.own_device(me, os.environ, problems)
    if device:
        mine.facts["device"] = facts.devices(device, os.environ)
        mine.facts["interface"] = facts.interface(device.row, me.master_addr, os.environ)
    mine.phase("looking at its binding", binding=binding.fact(device, me.local_rank, own, os.environ))
    mine.phase("looking at versions and the directory", versions=facts.versions(device, os.environ))
    if mine.leads_host(me.local_rank):
        name = nodefiles.place(Path(".preflight"), me.rank, me.local_rank, mine.host)
        mine.facts["write"] = facts.write(directory.absolute(), name, problems)
        try:
            mine.server = together.listen(me.master_addr)
            mine.facts["listens"] = mine.server.getsockname()[:2]
        except OSError as error:
            problems.append(f"the rendezvous address {me.master_addr} cannot be used: {_one_line(error)}")
    return device


def _remove(file: Path) -> None:
    """Remove the file, and its folders if they are empty."""
    file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        file.parent.rmdir()
        file.parent.parent.rmdir()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _meet(mine: Visit, me: ranks.Ranks) -> "Board":
    """Connect to the store of the rendezvous. If that fails, report it and exit."""
    from . import together

    rendezvous = f"{me.master_addr}:{me.master_port}"
    mine.phase(f"looking for the rendezvous at {rendezvous}")
    try:
        board = together.Board(together.open_store(me, mine.until(CONNECT), serve=True))
        if me.rank:
            board.arrive(mine.facts)
    except (RuntimeError, ValueError, OSError) as error:
        what = "cannot listen on" if me.rank == 0 else "cannot reach rank 0 at"
        others = [f"; and {problem}" for problem in mine.facts["problems"]]
        problem = f"rank {me.rank} {what} {rendezvous} ({_one_line(error)}){''.join(others)}"
        visit.give_up(mine, problem, "port", lost=True)
    mine.phase("waiting for the other ranks")
    return board


def _lead(mine: Visit, me: ranks.Ranks, device: "Device | None", board: "Board") -> int:
    """Gather facts on rank 0, judge them, and direct the other ranks. Return the exit status."""
    facts = _gather_facts(mine, me, board)
    if not mine.failed:
        heads = {each["host"]: each for each in facts.values() if each["write"]}
        mine.views = _see_others(mine, board, {host: _offer(host, each) for host, each in heads.items()})
        mine.findings += judge.together(list(heads), mine.views)
    if not mine.failed and device:
        board.put("next/2", True)
        mine.sums = {0: _all_reduce(mine, me, device)}
        mine.phase("waiting for the results of the all-reduce")
        mine.sums |= board.gather("reduce", range(1, me.world_size), mine.until(LAST))
        mine.findings += judge.sums(facts, mine.sums)
    mine.phase("failed" if mine.failed else "passed")
    rows = table.rows(facts, mine.views, mine.sums, mine.findings)
    visit.write_result(mine, rows)
    visit.print_result(mine, rows, me.world_size)
    for step in ("next/1", "next/2", "verdict"):  # for ranks that wait for an earlier step, too
        board.put(step, mine.facts["phase"])
    # The store ends with this process.
    board.gather("left", sorted(set(facts) - {0}), min(mine.until(1) - 0.5, time.monotonic() + GRACE))
    return BAD_HOSTS if mine.failed else DONE


def _gather_facts(mine: Visit, me: ranks.Ranks, board: "Board") -> dict[int, dict[str, Any]]:
    """Return the facts of all ranks that arrive in time. Add the findings on them."""
    facts: dict[int, dict[str, Any]] = {0: mine.facts}
    absent_ranks, look = set(range(1, me.world_size)), 0.0
    while absent_ranks and (now := time.monotonic()) < mine.until(SLOW):
        here = {each["rank"]: each for each in board.arrivals()}
        facts |= here
        absent_ranks -= set(here)
        if absent_ranks and not here:
            if now > look:
                words_so_far = mine.words()
                last_words = [words_so_far.get(rank) for rank in absent_ranks]
                late = now > mine.until(GATHER)
                if all(each and each.get("gone") for each in last_words) or (late and None in last_words):
                    break
                look = now + LOOKS * (time.monotonic() - now)
            time.sleep(POLL)
    facts = dict(sorted(facts.items()))
    words = mine.words() if absent_ranks else {}
    absent: dict[int, tuple[str, dict[str, Any] | None]] = {}
    for rank in sorted(absent_ranks):
        record = words.get(rank)
        absent[rank] = (record["host"] if record else mine.job.host(rank, "an unknown host"), record)
    mine.findings += judge.missing(absent, facts, f"{me.master_addr}:{me.master_port}")
    mine.findings += judge.alone(mine.job, facts, me.world_size) + binding.findings(facts)
    present = mine.present()
    for rank, each in facts.items():
        if rank not in present:
            text = f"rank 0 does not see its files in the run directory {mine.folder.parent}"
            mine.findings.append(judge.Finding(each["host"], "write", True, text))
    return facts


def _offer(host: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file and the address of a host's first rank, for the other hosts to test."""
    file = facts["write"]
    offer = {"host": host, "rank": facts["rank"], "listens": facts["listens"]}
    return {**offer, "file": file["file"], "nonce": file["nonce"]}


def _see_others(mine: Visit, board: "Board", offers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of the first rank of each host about the other hosts, by host."""
    from . import together

    mine.phase("looking at the other hosts")
    hosts = list(offers)
    offers_by_host = {host: [offers[other] for other in together.others(host, hosts)] for host in hosts}
    for host, offer in offers.items():
        board.put(f"offers/{offer['rank']}", offers_by_host[host])
    board.put("next/1", True)
    heads = {offer["rank"]: host for host, offer in offers.items() if offer["rank"] != 0}
    together.serve_clock(board, list(heads), mine.until(REDUCE))
    own = _see(mine, offers_by_host.get(mine.host, []), (0.0, 0.0))
    reports = board.gather("seen", heads, mine.until(REDUCE))
    return {mine.host: own, **{heads[rank]: report for rank, report in reports.items()}}


def _see(mine: Visit, offers: Sequence[Any], clock: tuple[float, float]) -> dict[str, Any]:
    from . import together

    files = {offer["host"]: offer for offer in offers}
    addresses = {offer["host"]: offer["listens"] for offer in offers}
    return {
        "clock": clock,
        "unseen": together.unseen(files, mine.until(REDUCE)),
        "unreachable": together.unreachable(addresses, mine.until(REDUCE)),
    }


def _all_reduce(mine: Visit, me: ranks.Ranks, device: "Device") -> dict[str, Any]:
    from . import together

    mine.phase("in the all-reduce")
    until = mine.until(REDUCE)

    def work() -> dict[str, Any]:
        # With a connection of its own: a wait blocks all other users of the same connection.
        return together.all_reduce(together.open_store(me, until, serve=False), me, device, until)

    return together.in_time(work, until)


def _follow(mine: Visit, me: ranks.Ranks, device: "Device | None", board: "Board") -> int:
    """Do on the other ranks what rank 0 directs. Return the exit status."""
    from . import together

    end = mine.until(1) + GRACE / 2
    if board.take("next/1", end) is True:
        if mine.facts["write"]:
            mine.phase("looking at the other hosts")
            offers = board.take(f"offers/{me.rank}", mine.until(REDUCE)) or []
            clock = together.clock_offset(board, me.rank, mine.until(REDUCE))
            board.put(f"seen/{me.rank}", _see(mine, offers, clock))
        if board.take("next/2", end) is True and device:
            board.put(f"reduce/{me.rank}", _all_reduce(mine, me, device))
    mine.phase("waiting for the verdict")
    verdict = board.take("verdict", end)
    if verdict is None:
        host = mine.job.host(0, "its host")
        report.complain(f"preflight failed: {mine.host}: rank {me.rank} has lost rank 0 on {host}")
    else:
        mine.phase(verdict)
        board.put(f"left/{me.rank}", True)
    return DONE if verdict == "passed" else BAD_HOSTS
