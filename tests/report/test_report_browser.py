"""The page as people see it: opened in Chromium, of real trainings and of made-up runs."""

from __future__ import annotations

import io
import itertools
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from support import ROOT, warm_python
from support import runs as made
from support.axe import of_screens
from support.browser import Browser, browser
from support.cluster import Cluster
from support.jobs import PROBE, env_options, jobgen, run_dir
from support.require import need_package

from jobgen import Run
from jobgen.api.notebook import html

pytestmark = [
    pytest.mark.xdist_group("report"),
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("warm_python"),
]

TESTS = ROOT / "tests"
# Of every line of a chart what it says of itself, and its points in pixels.
LINES = """[...document.querySelectorAll('svg[data-chart="%s"][data-by="%s"] .line')].map(line => ({
  run: +line.dataset.run, series: line.dataset.series, points: +line.dataset.points, first: +line.dataset.first,
  last: +line.dataset.last, title: line.querySelector("title").textContent,
  places: [...line.querySelectorAll("polyline")].flatMap(p => [...p.points].map(q => [q.x, q.y])),
  axis: line.closest("svg").dataset.y.split(" ").map(Number), log: "log" in line.closest("svg").dataset}))"""
SHOWN = "getComputedStyle(document.querySelector('%s')).display !== 'none'"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture
def page(chromium: Browser, tmp_path: Path) -> Iterator[Any]:
    """Opens the page of some runs; at the end it must not have asked for anything, nor complained."""
    chromium.events.clear()

    def opened(*runs: Path) -> Browser:
        file = tmp_path / "report.html"
        done = jobgen("report", *runs, "-o", file, "--force")
        assert done.returncode == 0, done.stderr
        chromium.open(file)
        return chromium

    yield opened
    assert chromium.requests() == []
    assert chromium.complaints() == []


# ---------------------------------------------------------------------------------------- real trainings


def script(directory: Path, name: str, *program: str) -> Path:
    words = ("local", "--name", name, "--launcher", "torchrun", "--runs-dir", directory / "runs")
    place = env_options({"PYTHONPATH": TESTS, "SLOW_PAUSE": "0.02"})
    file = directory / f"{name}.sh"
    assert jobgen(*words, *place, "-o", file, "--", *program).returncode == 0
    return file


def bash(script: Path) -> int:
    done = subprocess.run(
        ["bash", script], cwd=script.parent, env=warm_python.environment(), capture_output=True, timeout=200
    )
    return done.returncode


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: one that was interrupted and went on, one that finished below its target, one that was killed."""
    need_package("torch", "deepspeed")
    place = tmp_path_factory.mktemp("trained")
    task = ("--task", "digits", "--engine", "ddp", "--log-every", "1", "--epochs")
    interrupted = script(place, "interrupted", *task, "2", "--lr", "0.01", "--model", "support.slow:build")
    process = subprocess.Popen(
        ["bash", interrupted],
        cwd=place,
        env=warm_python.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 100
    while not any('"step"' in file.read_text() for file in place.glob("runs/*/metrics.jsonl")):
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == 75
    assert bash(run_dir(place / "runs") / "job.sh") == 0
    assert bash(script(place, "missed", *task, "1", "--target-accuracy", "0.999")) == 3
    (place / "seen").mkdir()
    words = ("local", "--name", "killed", "--launcher", "torchrun", "--runs-dir", place / "runs")
    probe = env_options({"PROBE_DIR": place / "seen", "PROBE_ACT": "kill:0"})
    assert jobgen(*words, *probe, "-o", place / "killed.sh", "--", PROBE).returncode == 0
    assert bash(place / "killed.sh") == 137
    return place / "runs"


def values(line: dict[str, Any]) -> list[float]:
    """The values of a line, from where its points are."""
    low, high, bottom, top = line["axis"]
    parts = [(y - bottom) / (top - bottom) for _, y in line["places"]]
    return [low * (high / low) ** part if line["log"] else low + part * (high - low) for part in parts]


def test_curves_of_real_trainings(page: Any, trained: Path, tmp_path: Path) -> None:
    opened = page(trained)
    [interrupted] = trained.glob("interrupted-*")
    rows = [json.loads(line) for line in (interrupted / "metrics.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows if row["event"] == "step"]
    lines = opened.run(LINES % ("Loss", "step"))
    line = next(line for line in lines if line["series"] == "training" and "interrupted-" in line["title"])
    assert (line["points"], line["first"], line["last"]) == (len(losses), losses[0], losses[-1])
    low, high, *_ = line["axis"]
    assert all(
        math.isclose(drawn, loss, abs_tol=(high - low) / 1000 + drawn / 50)
        for drawn, loss in zip(values(line), losses, strict=True)
    )
    tenth = len(losses) // 10
    heights = [y for _, y in line["places"]]
    assert (
        sum(heights[-tenth:]) / tenth > sum(heights[:tenth]) / tenth + 50
    )  # pixels, from the top: it goes down
    assert [x for x, _ in line["places"]] == sorted(x for x, _ in line["places"])
    [accuracy] = (one for one in opened.run(LINES % ("Accuracy", "time")) if one["run"] == line["run"])
    assert accuracy["last"] == [row["accuracy"] for row in rows if row["event"] == "epoch"][-1]
    assert opened.run(LINES % ("Throughput", "step"))
    assert opened.run("document.querySelectorAll('[data-chart=Loss][data-by=step] .seam').length") == 1
    bars = opened.run(
        "[...document.querySelectorAll('.timeline .bar')].map(b => b.querySelector('title').textContent)"
    )
    assert [words for words in bars if "75, not finished" in words and "attempt 1" in words]
    assert [words for words in bars if "0, finished" in words and "attempt 2" in words]
    assert [words for words in bars if "3, finished, but missed its target" in words]
    assert [words for words in bars if "137, killed by SIGKILL" in words]
    assert opened.run("document.querySelectorAll('.timeline .mark.signal').length") == 1
    text = opened.run("document.body.innerText")
    for words in ("USR1 at ", "What rank 0 wrote last", "What differs"):
        assert words in text
    check_picture(opened, tmp_path / "page.png")


def check_picture(opened: Browser, file: Path) -> None:
    need_package("PIL")
    from PIL import Image

    opened.screenshot(file)
    with Image.open(io.BytesIO(file.read_bytes())) as picture:
        assert picture.height > 1000
        colours = picture.convert("RGB").getcolors(1 << 24)
    assert colours
    assert len(colours) > 20
    share = max(count for count, _ in colours) / (picture.width * picture.height)
    assert 0.5 < share < 0.99  # paper, and something on it


def test_a_sweep_that_was_submitted_on_the_cluster(page: Any, slurm_cluster: Cluster, tmp_path: Path) -> None:
    """The point of each task beside its last loss, and the plan that is the same for all."""
    need_package("torch", "sklearn")
    (tmp_path / "jobgen.toml").write_text(
        "[sweep]\nlr = [0.01, 0.000001]\n[train]\ntask = 'digits'\nengine = 'ddp'\nepochs = 1\nlog_every = 5\n"
    )
    one = ("--ranks-per-node", "1", "--accelerator", "cpu", "--cpus-per-rank", "1", "--launcher", "torchrun")
    words = [sys.executable, "-m", "jobgen", "submit", "slurm", "--name", "swept", *one]
    array = slurm_cluster.exec("head", words, cwd=tmp_path, env=warm_python.environment()).stdout.split()[-1]
    assert all(slurm_cluster.wait(f"{array}_{index}").ok for index in (0, 1))
    opened = page(run_dir(tmp_path / "runs"))
    table = opened.run(
        "[...document.querySelectorAll('#summary tr')].map(r => [...r.cells].map(c => c.innerText.trim()))"
    )
    columns = [[row[table[0].index(name)] for row in table[1:]] for name in ("lr", "Steps", "Loss")]
    assert columns[:2] == [["0.01", "1e-06"], ["45", "45"]]
    assert float(columns[2][0]) < float(columns[2][1])
    plan = opened.run(
        "[...document.querySelectorAll('#plan tr')].map(r => [...r.cells].map(c => c.textContent.trim()))"
    )
    assert ["launcher", "torchrun", "command line", "Program that starts the ranks."] in plan
    assert ["sweep", "product lr 0.01 1e-06", "", ""] in plan
    assert opened.run("document.querySelector('h1').textContent").startswith("swept-")
    assert table[1][0].endswith("task-0")


# ------------------------------------------------------------------------------------------- made-up runs


def three(directory: Path) -> list[Path]:
    """Runs whose losses end at 1.2, 0.4 and 0.8."""
    return [
        made.run(directory / f"run-{i}", made.rows([end + 1 / step for step in range(1, 101)]))
        for i, end in enumerate((1.19, 0.39, 0.79))
    ]


def test_runs_are_hidden_and_charts_changed_by_hand(page: Any, tmp_path: Path) -> None:
    opened = page(*three(tmp_path))
    line = '[data-chart="Loss"][data-by="step"] .line[data-run="1"]'
    assert opened.run(SHOWN % line)
    opened.run("document.querySelector('input[data-run=\"1\"]').click()")
    assert not opened.run(SHOWN % line)
    assert opened.run(SHOWN % line.replace('"1"', '"0"'))
    assert (opened.run(SHOWN % ".chart.by-step"), opened.run(SHOWN % ".chart.by-time")) == (True, False)
    opened.run("document.querySelector('#by-time').click()")
    assert (opened.run(SHOWN % ".chart.by-step"), opened.run(SHOWN % ".chart.by-time")) == (False, True)


def test_the_summary_is_sorted_by_a_column(page: Any, tmp_path: Path) -> None:
    opened = page(*three(tmp_path))
    order = "[...document.querySelectorAll('#summary tbody a')].map(a => a.textContent)"
    click = (
        "[...document.querySelectorAll('#summary thead button')].find(b => b.textContent === 'Loss').click()"
    )
    assert opened.run(order) == ["run-0", "run-1", "run-2"]
    opened.run(click)
    assert opened.run(order) == ["run-1", "run-2", "run-0"]
    opened.run(click)
    assert opened.run(order) == ["run-0", "run-2", "run-1"]
    assert (
        opened.run("document.querySelector('#summary [aria-sort]').getAttribute('aria-sort')") == "descending"
    )


def test_values_are_told_under_the_pointer(page: Any, tmp_path: Path) -> None:
    opened = page(*three(tmp_path))
    chart = '\'[data-chart="Loss"][data-by="step"]\''
    opened.run(f"document.querySelector({chart}).scrollIntoView()")
    box = opened.run(
        f"(b => [b.left, b.top, b.width, b.height])(document.querySelector({chart}).getBoundingClientRect())"
    )
    opened.call(
        "Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] * 0.97, y=box[1] + box[3] / 2
    )
    tip = opened.run(f"document.querySelector({chart}).nextElementSibling.textContent").split("\n")
    assert tip[0] == "step 100"
    assert [float(line.rpartition(" ")[2]) for line in tip[1:4]] == pytest.approx([1.2, 0.4, 0.8], abs=0.01)


def test_without_scripts_the_page_says_all(page: Any, chromium: Browser, tmp_path: Path) -> None:
    chromium.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        opened = page(*three(tmp_path))
        assert opened.run("document.querySelectorAll('#summary thead button').length") == 0
        assert len(opened.run(LINES % ("Loss", "step"))) == 6
        opened.run("document.querySelector('#by-time').checked = true")
        assert opened.run(SHOWN % ".chart.by-time")
    finally:
        chromium.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_by_day_and_by_night(
    page: Any, chromium: Browser, tmp_path: Path, scheme: str
) -> None:
    chromium.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    try:
        opened = page(made.run(tmp_path / "run", made.rows([2, 1]), attempts=(75, 1, 3, None, 0)))
        paper = brightness(opened.run("getComputedStyle(document.body).backgroundColor"))
        for selector in (
            *("body", ".quiet", ".state.good", ".state.bad", ".state.on", ".state.open", ".state.missed"),
        ):
            ink = brightness(opened.run(f"getComputedStyle(document.querySelector('{selector}')).color"))
            assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5, selector  # WCAG 2.2, AA
        assert (paper > 0.5) == (scheme == "light")
    finally:
        chromium.call("Emulation.setEmulatedMedia", features=[])


def brightness(colour: str) -> float:
    """The relative luminance of rgb(...), after WCAG."""
    parts = [int(word) / 255 for word in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("media", "width"), [("screen", 390), ("print", 1030)])
def test_it_fits_a_narrow_screen_and_paper(
    page: Any, chromium: Browser, tmp_path: Path, media: str, width: int
) -> None:
    """Paper is A4, across."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": media == "screen"}
    chromium.call("Emulation.setDeviceMetricsOverride", **size)
    chromium.call("Emulation.setEmulatedMedia", media=media)
    try:
        opened = page(*three(tmp_path))
        assert opened.run("document.documentElement.scrollWidth") <= width
        assert chromium.call("Page.printToPDF")["data"]
    finally:
        chromium.call("Emulation.clearDeviceMetricsOverride")
        chromium.call("Emulation.setEmulatedMedia", media="")


def test_the_numbers_of_the_runs_stand_apart(page: Any, tmp_path: Path) -> None:
    """Of lines that end at almost the same place, and at the bottom of the chart."""
    ends = [(90 + run // 3, 0.4 + run / 1000) for run in range(10)] + [(100, 0.0), (100, 0.001)]
    runs = [
        made.run(tmp_path / f"run-{run}", made.rows([end + 1 - step / count for step in range(1, count + 1)]))
        for run, (count, end) in enumerate(ends)
    ]
    opened = page(*runs)
    boxes = opened.run("""[...document.querySelectorAll("svg.by-step")].map((chart) =>
      [...chart.querySelectorAll("text")].map((text) => text.getBBox()).map((b) => [b.x, b.y, b.width, b.height]))""")
    assert [len(chart) for chart in boxes if len(chart) < len(ends)] == []
    for chart in boxes:
        for (a, b, wide, high), (x, y, width, height) in itertools.combinations(chart, 2):
            beside = min(a + wide, x + width) - max(a, x)
            assert beside <= 0.5 or min(b + high, y + height) - max(b, y) <= 0.5


def test_all_text_can_be_read_on_a_phone(page: Any, chromium: Browser, tmp_path: Path) -> None:
    opened = page(*three(tmp_path))
    chromium.call(
        "Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True
    )
    try:
        sizes = opened.run("""[...document.querySelectorAll("body *")].filter((one) => one.getClientRects().length
          && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((one) =>
          parseFloat(getComputedStyle(one).fontSize) * (one.getScreenCTM ? one.getScreenCTM().a : 1))""")
        assert len(sizes) > 100
        assert min(sizes) >= 11
    finally:
        chromium.call("Emulation.clearDeviceMetricsOverride")


def test_it_has_no_violation_of_axe(page: Any, tmp_path: Path) -> None:
    failed = made.run(
        tmp_path / "failed", made.rows([2, 1]), attempts=(75, 1, 3, None), plan_json='{"nodes": 1}'
    )
    assert of_screens(page(*three(tmp_path), failed)) == {}


def test_it_links_to_the_logs(page: Any, tmp_path: Path) -> None:
    directory = made.run(tmp_path / "a run #1", made.rows([2, 1]), attempts=(75, 1))
    (directory / "jobgen.o471").write_text("of PBS\n")
    output = tmp_path / "jobgen-472.log"
    output.write_text("of Slurm\n")
    with (directory / "attempt-2/events").open("a") as file:
        file.write(f"1700001401 output {output}\n")
    opened = page(directory)
    links: list[str] = opened.run("[...document.querySelectorAll('.run a')].map((one) => one.href)")
    files = [Path(unquote(link.removeprefix("file://"))) for link in links]
    nodes = directory / "attempt-1/nodes", directory / "attempt-2/nodes"
    assert files == [directory / "jobgen.o471", nodes[0], output, nodes[1], nodes[1] / "0/node1.log"]


def test_the_plan_is_closed(page: Any, tmp_path: Path) -> None:
    opened = page(*three(tmp_path))
    assert opened.run("[...document.querySelectorAll('#plan details')].map((one) => one.open)") == [False]
    assert opened.run("document.querySelector('#plan summary').textContent") == "3 values, the same in all"


NAMES = [
    *("<script>alert(1)<\\script>", "<img src=x onerror=alert(1)>", "a\"b'c&lt;", "white  space\n"),
    *("\u202ename", "ü\udcff"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_run_is_text(page: Any, tmp_path: Path, name: str) -> None:
    log = f"{name}\n<script>document.title = 'taken'</script>\n\x1b[31mred\x1b[0m</pre>\n"
    rows = [
        *made.rows([2.0, math.nan, 1.0]),
        {"event": name, "step": name, "loss": name},
        {"event": "step", "step": 4, "loss": math.inf},
    ]
    directory = made.run(tmp_path / name, rows, attempts=(), status={"state": "failed", "message": name})
    made.attempt(directory, 1, 1, log.encode(errors="replace").decode())
    opened = page(directory)
    assert opened.run("document.scripts.length") == 1
    assert opened.run("document.images.length") == 0
    assert opened.run("document.title").endswith("jobgen report")
    shown = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in name)
    assert opened.run("document.querySelector('h1').textContent") == shown
    assert "<script>document.title = 'taken'</script>\n\\x1b[31mred" in opened.run(
        "document.querySelector('pre').textContent"
    )
    [line, *_] = opened.run(LINES % ("Loss", "step"))
    assert line["points"] == 4
    assert "2 not finite" in line["title"]
    assert opened.run("document.querySelectorAll('[data-by=step] .gap').length") == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_run_is_text_in_a_notebook(chromium: Browser, tmp_path: Path, name: str) -> None:
    """Nothing in it runs, and its style changes nothing around it."""
    rows = [*made.rows([2.0, 1.5, math.nan, 1.0]), {"event": name, "step": name, "loss": name}]
    run = Run(made.run(tmp_path / name, rows, attempts=(1,)))
    hostile = run.details._replace(state=name, reason=name, id=name, tasks={name: 1})
    chromium.events.clear()
    around = "<!DOCTYPE html><meta charset=utf-8><body><table id=around><tr><td>x</td></table>"
    (tmp_path / "plain.html").write_text(around)
    (tmp_path / "cell.html").write_text(around + html(hostile, run.directory), errors="surrogateescape")
    seen = []
    for page in ("plain", "cell"):
        chromium.open(tmp_path / f"{page}.html")
        style = "(s => [s.font, s.color, s.borderCollapse, s.padding].join())"
        seen.append(chromium.run(f"{style}(getComputedStyle(document.querySelector('#around td')))"))
    assert seen[0] == seen[1]
    assert chromium.run("document.scripts.length + document.images.length") == 0
    shown = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in name)
    assert shown in chromium.run("document.querySelectorAll('.jobgen-run td')[1].textContent")
    assert chromium.run("getComputedStyle(document.querySelector('polyline')).stroke").startswith("rgb")
    assert (chromium.requests(), chromium.complaints()) == ([], [])
