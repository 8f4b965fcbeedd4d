"""What is read of run directories, whole or torn, and how much of a curve is drawn."""

from __future__ import annotations

import json
import math
import os
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import runs as made
from support.jobs import jobgen

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.plan.plan import resolve
from jobgen.report import axes, facts, failures, series
from jobgen.report.page import page, visible
from jobgen.report.selection import select_runs
from jobgen.runs import plan_file, run_directory


def down(count: int) -> list[float]:
    return [2.0 / step for step in range(1, count + 1)]


# ------------------------------------------------------------------------------------------- which runs


def test_runs_are_found_by_themselves_by_a_file_in_an_array_and_in_a_directory(tmp_path: Path) -> None:
    for name in ("one", "two", *(f"array/task-{i}" for i in (10, 9, 1))):
        made.run(tmp_path / name, [])
    (tmp_path / "array/job.sh").touch()
    (tmp_path / "no-run").mkdir()

    def found(*names: str) -> list[str]:
        return [
            str(path.relative_to(tmp_path)) for path in select_runs([str(tmp_path / name) for name in names])
        ]

    assert found("two", "one", "two/") == ["two", "one"]
    assert found("one/metrics.jsonl") == ["one"]
    assert found("array") == ["array/task-1", "array/task-9", "array/task-10"]
    assert found("") == ["array/task-1", "array/task-9", "array/task-10", "one", "two"]


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_what_is_no_run_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    done = jobgen("report", str(tmp_path / name), "-o", str(tmp_path / "page.html"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_runs_are_found_by_their_names_ids_and_job_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JobgenError, match="no run in runs"):
        select_runs([])
    for name in ("digits-4711", "mnist-4712"):
        (made.run(tmp_path / "runs" / name) / "job-id").write_text(name[-4:])
    for name in ("digits", "4711"):
        assert [run.name for run in select_runs([name])] == ["digits-4711"]
    assert len(select_runs([])) == 1
    with pytest.raises(JobgenError, match="did you mean mnist-4712"):
        select_runs(["mnits-4712"])
    Path("exp.toml").write_text('[job]\nname = "mnist"\n')
    assert [run.name for run in select_runs(["exp.toml"])] == ["mnist-4712"]
    Path("other.toml").write_text('[job]\nname = "other"\n')
    with pytest.raises(JobgenError, match="has no run yet"):
        select_runs(["other.toml"])


def test_a_page_is_not_overwritten(tmp_path: Path) -> None:
    made.run(tmp_path / "run", made.rows(down(3)))
    file = tmp_path / "page.html"
    words = ("report", str(tmp_path / "run"), "-o", str(file))
    assert jobgen(*words).returncode == 0
    assert not os.access(file, os.X_OK)
    file.write_text("mine")
    again = jobgen(*words)
    assert (again.returncode, file.read_text()) == (2, "mine")
    assert "--force" in again.stderr
    assert jobgen(*words, "--force").returncode == 0
    assert file.read_text().startswith("<!DOCTYPE html>")


# --------------------------------------------------------------------------------------- what is in them


def test_attempts_are_read_with_their_times_statuses_and_ranks(tmp_path: Path) -> None:
    run = run_directory.read(made.run(tmp_path / "run", attempts=(75, 137, None)))
    first, second, third = run.attempts
    assert (first.status, first.ended and first.began and first.ended - first.began) == (75, 600)
    assert [(event.what, event.value) for event in first.events][-2:] == [("signal", "USR1"), ("ended", "75")]
    assert run_directory.failed_ranks(first) == []
    assert [(rank.number, rank.host, rank.status) for rank in run_directory.failed_ranks(second)] == [
        (0, "node1", 137)
    ]
    assert third.status is None
    assert run_directory.failed_ranks(third) == []


def test_an_attempt_without_events_has_the_times_of_its_files(tmp_path: Path) -> None:
    made.run(tmp_path / "run")
    (tmp_path / "run/attempt-1/events").unlink()
    [attempt] = run_directory.read(tmp_path / "run").attempts
    assert attempt.status is None
    assert attempt.began is not None
    assert abs(attempt.began - made.BEGAN - 1300.5) < 1 or abs(attempt.began - time.time()) < 60


@pytest.mark.parametrize(
    ("status", "training", "words"),
    [
        (0, False, "finished"),
        (3, True, "target"),
        (3, False, "failed"),
        (75, False, "can go on"),
        (137, False, "SIGKILL"),
        (200, False, "failed"),
        (None, False, "no end is recorded"),
    ],
)
def test_a_status_has_a_meaning(status: int | None, training: bool, words: str) -> None:
    assert words in run_directory.meaning(status, training)


def test_torn_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    torn = [
        '{"event": "step", "step": 3, "lo',
        "[1]",
        "null",
        "",
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
        "[" * 100_000,
    ]
    directory = made.run(tmp_path / "run", [*made.rows(down(2)), *torn])
    metrics = run_directory.read_metrics(directory)
    assert (len(metrics.rows), metrics.skipped) == (3, 5)
    assert "5 broken lines" in page([directory], 0)


def test_a_run_without_anything_has_a_page(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/job.sh").write_text("")
    text = page([tmp_path / "run"], 0)
    assert "There are no metrics" in text
    assert "not begun" in text


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(3_000_000_000)  # of zeros, which take no place
        file.seek(0, os.SEEK_END)
        file.write(b"\nfirst\rsecond\r\n" + b"line\n" * 17 + b"the last \xff\n")
    began = time.process_time()
    said = run_directory.tail(log).split("\n")
    assert time.process_time() - began < 1
    assert (said[0], said[1], said[-1]) == ("first", "second", "the last \ufffd")


# ----------------------------------------------------------------------------------------------- curves

VALUES = st.one_of(st.none(), st.floats(-1e6, 1e6))


@given(st.lists(st.tuples(st.floats(0, 1e6), VALUES), max_size=300), st.integers(1, 40))
def test_thinning_keeps_the_ends_the_extremes_and_the_order(
    drawn: list[series.PlotPoint], columns: int
) -> None:
    drawn.sort(key=lambda pair: pair[0])
    thinned = series.thin(drawn, columns)
    rest = iter(drawn)
    assert all(any(point is other for other in rest) for point in thinned)  # a part of it, in its order
    assert len(thinned) <= max(columns, 5 * columns)
    if drawn:
        assert (thinned[0], thinned[-1]) == (drawn[0], drawn[-1])
    values, kept = ([value for _, value in points if value is not None] for points in (drawn, thinned))
    assert (min(values, default=0), max(values, default=0)) == (min(kept, default=0), max(kept, default=0))
    assert (len(values) < len(drawn)) == (len(kept) < len(thinned))


@given(st.lists(st.tuples(st.floats(0, 9), VALUES)))
def test_a_line_has_a_gap_where_a_value_is_no_number(drawn: list[series.PlotPoint]) -> None:
    parts = list(series.segments(drawn))
    assert [point for part in parts for point in part] == [point for point in drawn if point[1] is not None]
    assert all(parts)


FINITE = st.floats(-1e299, 1e299)


@given(st.lists(FINITE), st.booleans(), st.booleans())
def test_every_value_has_a_place_on_its_axis(values: list[float], log: bool, zero: bool) -> None:
    for axis in (axes.axis(values, 240, 10, log=log, zero=zero), axes.steps(values, 240, 10)):
        assert all(10 <= axis.place(value) <= 240 for value in values)
        assert all(10 <= axis.place(tick) <= 240 for tick, _ in axis.ticks)
        assert len(axis.ticks) <= 20
        assert axis.low < axis.high


@given(st.lists(st.floats(0, 1e12)))
def test_times_have_places_too(values: list[float]) -> None:
    axis = axes.times(values, 10, 700)
    assert all(10 <= axis.place(value) <= 700 for value in values)
    assert 1 <= len(axis.ticks) <= 10


def test_ticks_can_be_told_from_each_other() -> None:
    axis = axes.steps([1_000_000, 1_000_010], 10, 700)
    assert len({text for _, text in axis.ticks}) == len(axis.ticks) > 3


def test_a_time_before_the_beginning_is_none() -> None:
    assert series.curves([{"step": 1, "loss": 1, "seconds": -1}])["step", "loss"] == [(1, None, 1.0)]


def test_tasks_of_one_array_are_called_by_their_index(tmp_path: Path) -> None:
    tasks = [made.run(tmp_path / f"sweep-12/task-{i}", []) for i in (0, 1)]
    assert "<h1>sweep-12: 2 tasks</h1>" in page(tasks, 0)
    assert "sweep-12/task" not in page(tasks, 0).replace(str(tmp_path), "").replace("/sweep-12/task", "")
    assert "<h1>2 runs</h1>" in page([*tasks[:1], made.run(tmp_path / "task-3")], 0)


def test_a_long_run_makes_a_small_page(tmp_path: Path) -> None:
    losses = [2 + math.sin(step) / 2 - step / 60_000 for step in range(100_000)]
    directory = made.run(tmp_path / "run", made.rows(losses))
    began = time.process_time()
    text = page([directory], 0)
    assert len(text) < 700_000
    assert time.process_time() - began < 30
    assert 'data-points="100000"' in text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e308, 10**400, True, "text", [1], {}])
def test_what_is_no_finite_number_is_a_gap(tmp_path: Path, number: Any) -> None:
    rows = made.rows(down(9))
    line = json.dumps({"event": "step", "step": 5, "seconds": 0.5, "loss": number})
    text = page([made.run(tmp_path / "run", [*rows[:5], line, *rows[6:]])], 0)
    assert "1 not finite" in text
    assert text.count('class="gap"') == 2  # against steps, and against time


def test_a_program_of_its_own_may_write_rows_without_events() -> None:
    rows = [{"step": step, "loss": 1 / step, "accuracy": 0.5} for step in (2, 1)]
    found = series.curves(rows)
    assert found["step", "loss"] == [(1, None, 1.0), (2, None, 0.5)]
    assert len(found["epoch", "accuracy"]) == 2


def test_a_curve_has_a_seam_where_a_later_attempt_went_on(tmp_path: Path) -> None:
    start, *rows = made.rows(down(8))
    found = series.resumptions([start, start, *rows[:3], start, start, *rows[3:]])
    assert found == [(3, 0.3, None)]
    text = page([made.run(tmp_path / "run", [start, *rows[:3], start, *rows[3:]])], 0)
    assert (
        text.count("was continued here by a later attempt") == 6
    )  # loss, throughput and rate, against steps and time


# -------------------------------------------------------------------------------------- whatever they say


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[Any] = []
        self.values: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))
        self.values += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_page(directory: Path, text: str) -> Tags:
    status = {"state": "failed", "message": text, "exception": text, "rank": 0, "host": text}
    start = {
        "event": "start",
        "engine": text,
        "world_size": text,
        "device": text,
        "deepspeed": {text or "x": 1},
    }
    plan = {"options": {"name": {"value": text, "origin": text}}, "program": {"value": [text]}}
    made.run(
        directory,
        [start, *made.rows(down(3))[1:]],
        attempts=(),
        status=status,
        bad_hosts=f"node7\t{text}\n",
        hosts=text,
    )
    (directory / "plan.json").write_text(json.dumps(plan))
    made.attempt(directory, 1, 1, log=f"{text}\n", host=text)
    return Tags(page([directory], 0))


HOSTILE = st.text(
    st.sampled_from("<>&\"'`/={}%#- ax\\;\u202e") | st.characters(exclude_categories=["Cs"]), max_size=30
).map(
    lambda text: "x" + "".join(text.split()) + "y"  # words: where there are none the page has fewer tags
)


@settings(max_examples=60, deadline=None)
@given(HOSTILE)
def test_text_never_becomes_markup(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    plain = hostile_page(tmp_path_factory.mktemp("plain") / "run", "xy")
    page = hostile_page(tmp_path_factory.mktemp("hostile") / "run", text)
    assert page.tags == plain.tags
    assert visible(text).encode(errors="replace").decode() in page.text


FILES = (
    *("metrics.jsonl", "status.json", "plan.json", "sweep.json", "preflight/result.json", "job.sh"),
    *("hosts", "bad-hosts"),
    *("attempt-1/events", "attempt-1/statuses", "attempt-1/nodes/0/node1.ranks"),
    *("attempt-1/nodes/0/node1.log", "attempt-1/nodes/0/rank-0.log", "attempt-2/events"),
)
NUMBERS = st.integers() | st.floats() | st.just(10**400)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=5)
KEYS = st.sampled_from(
    [
        *("event", "step", "loss", "accuracy", "seconds", "state", "rank", "options", "derived", "value"),
        *("origin", "world_size", "device", "findings", "failed", "sources", "exit_status", "message"),
        "deepspeed",
    ]
)
VALUE = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=8,
)
ROWS = st.lists(
    st.dictionaries(KEYS, st.sampled_from(["step", "epoch", "start"]) | VALUE, max_size=6), max_size=6
)
EVENTS = st.lists(
    st.tuples(NUMBERS, st.sampled_from(["began", "ended", "deadline", "signal", "output", ""]), SCALARS),
    max_size=6,
).map(lambda found: "\n".join(" ".join(map(str, words)) for words in found))
CONTENT = st.binary(max_size=40) | (
    VALUE.map(json.dumps) | ROWS.map(lambda rows: "\n".join(map(json.dumps, rows))) | EVENTS
).map(lambda text: text.encode(errors="replace"))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(FILES), CONTENT, min_size=1), min_size=1, max_size=3))
@example([{"metrics.jsonl": b"", "plan.json": b"", "attempt-1/events": b"0 output 1" + b"0" * 300}])
def test_whatever_is_in_the_files_there_is_a_page(
    tmp_path_factory: pytest.TempPathFactory, contents: list[dict[str, bytes]]
) -> None:
    place = tmp_path_factory.mktemp("fuzz")
    for i, files in enumerate(contents):
        for name, content in files.items():
            file = place / f"run-{i}" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    tags = Tags(page([place / f"run-{i}" for i in range(len(contents))], 0))
    assert [tag for tag, _ in tags.tags].count("script") == 1
    places = [value for name, value in tags.values if name in ("x", "y", "x1", "y1", "width", "points", "d")]
    assert not [value for value in places if re.search("nan|inf|None", value)]


@given(st.text())
def test_what_is_shown_can_be_seen(text: str) -> None:
    shown = visible(text)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    assert shown == text or not text.isprintable()


def test_secrets_stay_where_they_are(tmp_path: Path) -> None:
    env = ["WANDB_API_KEY=hidden too", "HF_TOKEN=hidden", "TOKENIZERS_PARALLELISM=no"]
    program = ["train.py", "--hub-token", "hidden", "--use-token", "--lr", "0.1"]
    plan = {"options": {"env": {"value": env}}, "program": {"value": program}, "password": "PASSWORD=hidden"}
    run = made.run(tmp_path / "run")
    (run / "plan.json").write_text(json.dumps(plan))
    text = page([run], 0)
    assert "WANDB_API_KEY=*** HF_TOKEN=*** TOKENIZERS_PARALLELISM=no" in text
    assert "train.py --hub-token *** --use-token --lr 0.1" in text
    assert "hidden" not in text.replace("tip.hidden", "").replace("hidden: true", "").replace(
        "aria-hidden", ""
    )
    (run / "plan.json").unlink()
    (run / "job.sh").write_text(
        "program() {  # it\n  exec ./a --token='hid den' --token \"hid den\" --lr 1\n"
    )
    assert "./a --token=*** --token *** --lr 1" in page([run], 0)


# ------------------------------------------------------------------------------------------ what failed


def test_the_page_says_what_failed_where(tmp_path: Path) -> None:
    finding = {"host": "node8", "check": "clock", "failed": True, "text": "is 300 s ahead"}
    note = {"host": "node9", "check": "clock", "failed": False, "text": "of no interest"}
    run = made.run(tmp_path / "run", attempts=(75, 74, 137), bad_hosts="node7\tdoes not answer\n")
    made.nodes(run / "attempt-3", ranks=2, statuses={0: 137}, log="RuntimeError: out of memory\n", over=True)
    (run / "preflight").mkdir()
    (run / "preflight/result.json").write_text(json.dumps({"state": "failed", "findings": [finding, note]}))
    (run / "stacks/0").mkdir(parents=True)
    (run / "stacks/0/node1.txt").touch()
    found = failures.failures(run_directory.read(run), training=True)
    assert found.hosts == (("node7", "does not answer"),)
    assert found.preflight == ("node8: clock: is 300 s ahead",)
    assert found.stacks == ("stacks/0/node1.txt",)
    assert [(one.attempt, one.rank, one.host, one.status) for one in found.ranks] == [
        (2, 0, "node1", 74),
        (3, 0, "node1", 137),
        (3, 1, "node2", None),
    ]
    assert found.ranks[1].log == "RuntimeError: out of memory"
    text = Tags(page([run], 0)).text
    for words in (
        *("What failed, and where", "out of memory", "killed by SIGKILL", "is 300 s ahead"),
        "recorded no status",
    ):
        assert words in text
    assert "What failed" not in page([made.run(tmp_path / "well", made.rows(down(3)))], 0)


def test_of_thousands_of_ranks_that_failed_the_first_are_shown(tmp_path: Path) -> None:
    run = made.run(tmp_path / "run", attempts=(1,))
    made.attempt(run, 2, 1, ranks=8192, per_node=8)
    found = failures.failures(run_directory.read(run), training=False)
    assert (len(found.ranks), found.more) == (201, 7992)
    assert "7992 more ranks failed later" in Tags(page([run], 0)).text


# --------------------------------------------------------------------------------------------- the plan


def test_runs_are_compared_by_what_differs() -> None:
    one = {"lr": facts.Fact("0.1", "job.toml"), "nodes": facts.Fact("2"), "title": facts.Fact("x" * 40)}
    two = {"lr": facts.Fact("0.2", "--set"), "nodes": facts.Fact("2"), "title": facts.Fact("y" * 40)}
    found = facts.compare([one, two])
    assert (found.differing, found.brief, list(found.same)) == (("lr", "title"), ("lr",), ["nodes"])


def test_the_points_of_a_sweep_are_columns(tmp_path: Path) -> None:
    for i, rate in enumerate((0.1, 0.01)):
        run = made.run(tmp_path / f"array/task-{i}", made.rows(down(3 + i)))
        (run / "sweep.json").write_text(json.dumps({"lr": rate, "model": "cnn"}))
    (tmp_path / "array/job.sh").write_text("#SBATCH --nodes=2\n")
    found = [
        facts.facts(run_directory.read(run), [{"event": "start", "lr": run.name}])
        for run in select_runs([str(tmp_path / "array")])
    ]
    compared = facts.compare(found)
    assert compared.brief == ("sweep.lr",)
    assert {"sweep.model", "#SBATCH --nodes"} <= set(compared.same)
    text = page(select_runs([str(tmp_path / "array")]), 0)
    assert '<td class="asked">0.01</td>' in text


def test_a_script_by_hand_shows_its_directives(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -J name\n#SBATCH --exclusive\n# SBATCH --no\necho\n"
    run = run_directory.read(made.run(tmp_path / "run"))
    (tmp_path / "run/job.sh").write_text(script)
    found = {name: fact.value for name, fact in facts.facts(run, []).items()}
    assert found == {"#SBATCH --nodes": "2", "#SBATCH -J": "name", "#SBATCH --exclusive": "yes"}


def test_our_own_script_shows_its_program(tmp_path: Path) -> None:
    run = run_directory.read(made.run(tmp_path / "run"))
    done = jobgen("slurm", "--nodes", "2", "--gpus-per-node", "4", "--", "train.py", "--lr", "0.1")
    (tmp_path / "run/job.sh").write_text(done.stdout)
    found = {name: fact.value for name, fact in facts.facts(run, []).items()}
    assert found["title"].startswith("2 nodes x 4 ranks")
    assert found["program"].endswith("--lr 0.1")
    assert found["#SBATCH --nodes"] == "2"


def test_a_submitted_run_shows_its_plan(tmp_path: Path) -> None:
    spec = read_spec(
        "slurm", {"nodes": "2", "gpus_per_node": "4", "launcher": "torchrun"}, ("--task", "digits")
    )
    plan = plan_file.of(
        resolve(spec), "text", ["jobgen"], "/home", [plan_file.source("job", __file__)], [], None
    )
    (made.run(tmp_path / "array/task-3").parent / plan_file.NAME).write_text(plan_file.text(plan))
    found = facts.facts(run_directory.read(tmp_path / "array/task-3"), [])
    meaning = "Number of nodes. 2x4+1x8 is 2 nodes of 4 ranks and 1 of 8. The word submitted leaves the number to the command sbatch or qsub."
    assert found["nodes"] == ("2", "command line", meaning)
    assert found["program"].value == "python3 -m jobgen.train --task digits"
    assert found["world_size"].origin == "derived"
    compared = facts.compare([found])
    assert "launcher" in compared.same
    assert "queue" in compared.folded
