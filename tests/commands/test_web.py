"""The page of ``jobgen web`` in Chromium: its scripts are those of the command line."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.axe import of_screens
from support.browser import browser
from support.jobs import jobgen
from support.option_cases import needs_of, value
from support.web_page import Page, built, served

from jobgen.commands.web import training
from jobgen.commands.web.answer import output_of
from jobgen.commands.web.bundle import PYODIDE
from jobgen.commands.web.bundle import SITES as SITE_FILES
from jobgen.commands.web.form import ABSENT, basics, groups
from jobgen.jobfile.reader import decode
from jobgen.options import BY_KEY
from jobgen.rendering.runtime import MARK
from jobgen.schedulers.table import SCHEDULERS

pytestmark = pytest.mark.xdist_group("web")

FORMS = 200
NOTE = "jobgen: note: the launcher is deepspeed, the default for the training module"
FIELDS = [*basics(), *(field for fields in groups().values() for field in fields)]
SITES = {
    "slurm": ["perlmutter", "lumi", "frontier", "delta"],
    "pbspro": ["polaris", "gadi"],
    "torque": [],
    "local": [],
}
PROGRAMS = ("train.py --lr 0.1", "-m pkg.train 'a b' \"$HOME\"", "--task digits", "./a.out -- x", "")
TRAINING = [
    ("train.epochs", "3"),
    ("train.lr", "1e-3"),
    ("train.data", "a b\n'c"),
    ("train.csv", "yes"),
    ("train.engine", "fsdp"),
]
WRONG = ("0", "a b; rm -rf /", "-1", "$(date)", "é\N{SNOWMAN}", "'", "none", "2x4+1x8")
OWN_SITE = """\
title = "The cluster of the centre"
scheduler = "slurm"
[queues.wide]
nodes = [1, 4]
[job]
queue = "wide"
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page with a centre's own site; at the end it has complained of nothing and asked no other server."""
    place = tmp_path_factory.mktemp("web")
    (place / "centre.toml").write_text(OWN_SITE)
    with (
        served(built(place / "page", "--site", place / "centre.toml")) as url,
        browser(place / "profile") as b,
    ):
        yield Page(b, url)
        assert b.requests(url) == []
        assert b.complaints() == []


def forms() -> Iterator[dict[str, str]]:
    """Forms with random options, some of them wrong."""
    chosen, of_training = random.Random(2026), random.Random(2027)
    for _ in range(FORMS):
        kind = chosen.choice(list(SCHEDULERS))
        form = {"scheduler": kind, "program": chosen.choice(PROGRAMS)}
        if form["program"] in ("", "--task digits"):
            form |= dict(of_training.sample(TRAINING, of_training.randrange(4)))
        if SITES[kind] and chosen.random() < 0.3:
            form |= {"site": chosen.choice(SITES[kind]), "account": "proj42"}
        fields = [one for one in FIELDS if kind not in one.without.split()]
        for field in chosen.sample(fields, chosen.randrange(6)):
            option = BY_KEY[field.key]
            texts = {**needs_of(option, kind), field.key: value(option, kind)}
            form |= {key: as_text(one) for key, one in texts.items()}
            if chosen.random() < 0.08:
                form[field.key] = chosen.choice(WRONG)
        yield form


def as_text(one: Any) -> str:
    if isinstance(one, bool):
        return "yes" if one else "no"
    if isinstance(one, dict):
        return "\n".join(f"{name}={each}" for name, each in one.items())
    return "\n".join(one) if isinstance(one, list) else str(one)


def is_that_of_the_command_line(page: Page, number: int, form: dict[str, str]) -> bool:
    """Compare what the page and the command line make of a form; False where both refuse it."""
    page.fill(form)
    words = shlex.split(page.text("command"))
    made = output_of(words[1:])
    if number < 10:  # the others run in this process, which is faster
        done = jobgen(*words[1:])
        assert (done.returncode, done.stdout, done.stderr) == made
    assert page.message() == made.messages.strip(), form
    if made.status:
        return False
    assert page.script() == made.script, form
    file = Path("job.toml")
    file.write_text(page.text("file"))
    assert output_of([words[1], "--job", "job.toml"]).script == made.script, (form, file.read_text())
    assert decode(page.text("file"), "job.toml").get("site", "") == form.get("site", "")
    return True


@pytest.mark.timeout(1200)
def test_the_scripts_are_those_of_the_command_line(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with page.unlinked():
        refused = [one for one in enumerate(forms()) if not is_that_of_the_command_line(page, *one)]
    assert FORMS / 20 < len(refused) < FORMS / 3


def test_the_lines_lead_to_their_options(page: Page) -> None:
    page.fill(
        {"scheduler": "pbspro", "nodes": "2", "walltime": "2h", "module": "a/1\nb", "program": "train.py"}
    )
    page.wait("linked")
    rows = page.run(
        "[...document.querySelectorAll('#script .line')].map(row => [row.firstChild.textContent,"
        " [...row.querySelectorAll('a')].map(one => one.textContent)])"
    )
    lines = {text.strip(): flags for text, flags in rows}
    assert lines["#PBS -l walltime=02:00:00"] == ["--walltime"]
    assert lines["#PBS -l select=2:ncpus=2:mpiprocs=1:ngpus=1"] == ["--nodes"]
    assert lines["job_module a/1 b"] == ["--module"]
    assert lines["#PBS -N jobgen"] == ["--name"]  # a default
    assert (
        lines["# ---- settings -----------------------------------------------------------------------------"]
        == []
    )
    click = "[...document.querySelectorAll('#script a')].find(one => one.textContent === '%s').click()"
    page.run(click % "--grace")
    assert page.run("document.activeElement.name") == "grace"
    assert page.run("document.activeElement.closest('details').open")
    page.run(click % "--module")
    assert page.run("document.activeElement.name") == "module"
    assert "job_module a/1 b" in page.run(
        "[...document.querySelectorAll('#script .on')].map(row => row.firstChild.textContent).join()"
    )


def test_the_form_has_what_the_scheduler_has(page: Page) -> None:
    shown = "[...form.elements].filter(one => one.name && !one.closest('.field').hidden).map(one => one.name)"
    words = "[...form.launcher.options].filter(one => !one.disabled).map(one => one.value)"
    for kind, row in SCHEDULERS.items():
        page.fill({"scheduler": kind})
        expected = {key for key in BY_KEY if key not in ABSENT and key not in row.lacks}
        expected |= {training.PREFIX + key for key in training.OPTIONS if key not in training.ABSENT}
        assert set(page.run(shown)) == expected | {"scheduler", "site", "program"}
        assert ("srun" in page.run(words)) == (kind == "slurm")
    # What was typed for another scheduler is not sent.
    page.fill({"scheduler": "slurm", "launcher": "srun", "queue": "gpu"})
    page.choose("scheduler", "local")
    assert (page.text("command"), page.message()) == ("jobgen local", NOTE)


def test_the_own_site_is_first_and_its_rules_apply(page: Page) -> None:
    assert page.run("[...form.site.options].slice(0, 2).map(one => one.value)") == ["", "centre"]
    page.fill({"scheduler": "slurm", "site": "centre", "nodes": "5"})
    assert "wide" in page.message()
    assert "#SBATCH --partition=wide" in page.script()
    page.choose("site", "polaris")
    assert page.run("form.scheduler.value") == "pbspro"


def test_the_address_holds_the_form(page: Page) -> None:
    form = {
        "scheduler": "torque",
        "nodes": "2",
        "env": "A=b c\nB=1&2",
        "setup": "x=1\ny=2",
        "program": "a 'b c'",
    }
    page.fill(form)
    command = page.text("command")
    until = time.monotonic() + 10
    while "setup" not in (link := page.run("location.href")):
        assert time.monotonic() < until
    page.open({})
    page.run(f"location.href = {json.dumps(link)}; 0")
    page.wait()
    assert page.text("command") == command
    assert shlex.split(command)[-3:] == ["--", "a", "b c"]
    page.follow({"site": "lumi", "account": "proj42"})
    assert page.text("command") == "jobgen slurm --account proj42 --site lumi"
    page.follow({"scheduler": "slurm", "wallltime": "2h"})
    assert page.message() == "jobgen: wallltime (form): there is no such option; did you mean walltime?"
    page.follow([("scheduler", "slurm"), ("env", "A=1"), ("env", "B=2")])
    assert page.text("command") == "jobgen slurm --env A=1 --env B=2"
    page.follow([("scheduler", "slurm"), ("nodes", "2"), ("nodes", "3")])
    assert "--nodes" in page.message()
    page.fill({"scheduler": "slurm", "program": "train.py 'a"})
    assert page.message() == "jobgen: program (form): no closing quotation"
    page.fill({"scheduler": "slurm", "nodes": "0"})
    assert page.run("document.querySelector('[aria-invalid]').name") == "nodes"


def test_it_can_be_used_without_eyes_and_mouse(page: Page) -> None:
    page.call("Accessibility.enable")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    controls = [
        one
        for one in nodes
        if one.get("role", {}).get("value") in ("textbox", "combobox", "button", "link", "region")
        and not one["ignored"]
    ]
    assert len(controls) > 30
    assert [one for one in controls if not one["name"]["value"].strip()] == []
    page.open({"scheduler": "slurm"})
    seen = []
    for _ in range(6):
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        seen.append(page.run("document.activeElement.name || document.activeElement.className"))
    assert seen == ["skip", "scheduler", "site", "about", "nodes", "about"]


def test_the_first_script_is_there_before_python(page: Page) -> None:
    """It is that which the page shows when Python has made it."""
    page.open({})
    shown = [page.script(), *map(page.text, ("command", "file"))]
    lines = page.run("document.getElementById('script').textContent")
    assert "#SBATCH --partition=wide" in shown[0]
    page.run("""fetch("index.html").then((answer) => answer.text()).then((text) => {
      const written = new DOMParser().parseFromString(text, "text/html");
      for (const id of ["script", "runtime", "command", "file"])
        document.getElementById(id).replaceWith(written.getElementById(id));
    })""")
    assert [page.script(), *map(page.text, ("command", "file"))] == shown
    assert page.run("document.getElementById('script').textContent") == lines


def test_the_first_script_can_be_copied_at_once(page: Page, tmp_path: Path) -> None:
    folder = built(tmp_path / "page")
    (folder / "worker.js").write_text("")  # Python is never loaded
    off = "[...document.querySelectorAll('[data-text]')].map(one => one.disabled)"
    with served(folder) as url, browser(tmp_path / "profile") as opened:
        opened.open(url)
        assert opened.run(off) == [False] * 5
        assert opened.run("document.querySelector('#bar a').textContent.startsWith('Script: ')")
        opened.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }; 0")
        opened.run("document.querySelector('#bar button').click()")
        script = output_of(["pbs"]).script
        assert opened.run("copied") == script
        # That of a link is not there yet.
        opened.open(f"{url}?#scheduler=slurm")
        assert opened.run(off) == [True] * 5
        assert opened.run("document.getElementById('output').className") == "old"
        opened.open(folder / "index.html")
        assert "opened as a file cannot load Python" in opened.run("document.body.innerText")
        assert opened.run("document.getElementById('script').textContent") in script.replace("\n", "")


def test_a_site_leads_to_what_it_requires(page: Page) -> None:
    page.follow({"scheduler": "slurm", "nodes": "2"})
    page.run("document.querySelector('[type=reset]').focus()")
    page.choose("site", "polaris")
    assert page.run("document.activeElement.name") == "account"
    assert page.run("form.account.getAttribute('aria-invalid')") == "true"
    assert page.text("w-account").startswith("ALCF Polaris requires account")
    assert page.run("document.querySelector('#bar a').textContent") == "No script: see why"
    page.run("form.nodes.focus()")
    page.run("document.querySelector('#bar a').click()")
    assert page.run("document.activeElement.name") == "account"
    page.choose("account", "proj42")
    assert "#PBS -A proj42" in page.script()
    assert page.run("[...document.querySelectorAll('.why')].every(one => one.hidden)")
    assert page.run("form.account.getAttribute('aria-invalid')") is None
    # A mistake that is typed does not move the focus.
    page.run("form.nodes.focus()")
    page.choose("account", "")
    assert page.run("document.activeElement.name") == "nodes"


def test_labels_are_words_and_help_is_folded(page: Page) -> None:
    labels = page.run("[...document.querySelectorAll('.field label')].map(one => one.firstChild.textContent)")
    assert [label for label in labels if not label[0].isupper() or "-" in label or "_" in label] == []
    assert len({*labels}) == len(labels)
    page.follow({"scheduler": "slurm"})
    help_of = "getComputedStyle(document.getElementById('h-nodes')).display"
    assert page.run(help_of) == "none"
    page.run("document.querySelector('[aria-controls=h-nodes]').click()")
    assert page.run(help_of) == "block"
    assert page.run("document.querySelector('[aria-controls=h-nodes]').ariaExpanded") == "true"


def test_a_link_that_brings_code_says_so(page: Page) -> None:
    page.follow({"scheduler": "slurm", "nodes": "2"})
    assert page.run("document.getElementById('code').hidden")
    page.follow({"scheduler": "slurm", "setup": "rm -rf x", "program": "a.py", "env": "LD_PRELOAD=/x"})
    text = page.text("code")
    assert text.startswith("This link holds code that the job runs.")
    assert text.endswith(": Program, Environment variables, Code after the environment")
    page.run("navigator.clipboard.writeText = async (text) => {}; 0")
    page.run("document.querySelector('.copy:not([data-text])').click()")
    assert "Copied: link. It holds code that the job runs: Program" in page.text("state")
    page.choose("nodes", "3")
    assert not page.run("document.getElementById('code').hidden")


def test_a_bar_leads_to_the_script_on_a_phone(page: Page) -> None:
    page.follow({"scheduler": "slurm", "nodes": "2"})
    shown = "getComputedStyle(document.getElementById('bar')).display"
    size = {"height": 844, "deviceScaleFactor": 1}
    try:
        page.call("Emulation.setDeviceMetricsOverride", width=1440, mobile=False, **size)
        assert page.run(shown) == "none"
        page.call("Emulation.setDeviceMetricsOverride", width=390, mobile=True, **size)
        assert page.run(shown) == "flex"
        lines = page.script().partition(MARK)[0].count("\n")
        assert page.run("document.querySelector('#bar a').textContent") == f"Script: {lines} lines"
        page.run("document.querySelector('#bar a').click()")
        assert 0 <= page.run("document.getElementById('output').getBoundingClientRect().top") < 844
        assert page.run("document.documentElement.scrollWidth") <= 390
        page.run("scrollTo(0, document.body.scrollHeight)")
        below = "document.querySelector('footer').getBoundingClientRect().bottom"
        assert page.run(below) <= page.run("document.getElementById('bar').getBoundingClientRect().top")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_the_memory_of_python_is_kept(page: Page) -> None:
    """That which cannot be used is made again; that of another build goes."""
    kept = """caches.keys().then(async ([name]) => {
      const cache = await caches.open(name);
      const all = (await cache.keys()).map(async (one) => (await (await cache.match(one))?.blob())?.size > 1e6);
      return Promise.all(all); })"""

    def whole() -> bool:
        until = time.monotonic() + 30
        while page.run(kept) != [True]:
            assert time.monotonic() < until, page.run(kept)
        return True

    assert whole()
    page.run("""caches.keys().then(async ([name]) => {
      const cache = await caches.open(name);
      for (const one of await cache.keys()) await cache.put(one, new Response("broken"));
      await cache.put("memory?another", new Response("of another build")); })""")
    page.open({"scheduler": "slurm", "nodes": "7"})
    assert "#SBATCH --nodes=7" in page.script()
    assert whole()
    page.open({"scheduler": "slurm", "site": "lumi", "account": "proj42"})
    assert "#SBATCH --account=proj42" in page.script()


def test_it_has_no_violation_of_axe(page: Page) -> None:
    page.follow({"scheduler": "slurm", "nodes": "2", "setup": "x=1"})
    page.wait("linked")
    assert of_screens(page) == {}
    page.follow({"scheduler": "slurm", "site": "lumi"})  # without a script
    assert of_screens(page) == {}


def test_the_page_is_built_without_the_packages_of_the_training() -> None:
    done = subprocess.run(["make", "-C", ROOT, "-n", "-B", "web"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "jobgen web" in done.stdout
    assert "train" not in "".join(re.findall(r"\.\[[^]]*\]", done.stdout))


def test_the_links_of_the_script_are_one_stop_of_the_tab_key(page: Page) -> None:
    page.follow({"scheduler": "slurm", "nodes": "2"})
    page.wait("linked")
    stops = "[...document.querySelectorAll('#script a')].filter(one => one.tabIndex === 0)"
    links: list[str] = page.run("[...document.querySelectorAll('#script a')].map(one => one.textContent)")
    page.run(f"{stops}[0].focus()")
    for place, key in ((1, "ArrowDown"), (2, "ArrowDown"), (1, "ArrowUp"), (0, "ArrowUp"), (0, "ArrowUp")):
        page.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key)
        assert page.run("document.activeElement.textContent") == links[place]
        assert page.run(f"{stops}.map(one => one === document.activeElement)") == [True]


def test_a_link_inside_the_page_keeps_the_form(page: Page) -> None:
    page.follow({"scheduler": "slurm", "nodes": "3"})
    page.run("document.querySelector('.skip').click()")
    page.wait("linked")
    assert page.run("document.activeElement.id") == "output"
    assert (page.text("command"), page.message()) == ("jobgen slurm --nodes 3", NOTE)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"hostfile": "/etc/hosts"}, "jobgen: hostfile (form): reads a file of the cluster"),
        ({"dialect": "torque"}, "jobgen: dialect (form): is part of the choice of the scheduler"),
        ({"exclusive": "maybe"}, "jobgen: exclusive maybe (form): must be yes or no"),
        ({"__proto__": "1"}, "jobgen: __proto__ (form): there is no such option"),
        ({"name": "a\0"}, r"jobgen: --name 'a\x00' (command line): can hold no NUL"),
        (
            {"cpus_per_rank": "9" * 5000},
            f"jobgen: --cpus-per-rank {'9' * 57}... (command line): must be a whole number "
            "from 1 to 10000000",
        ),
    ],
)
def test_links_with_values_that_no_field_gives(page: Page, given: dict[str, str], sentence: str) -> None:
    page.follow({"scheduler": "pbspro", **given})
    assert page.message() == sentence


def test_a_link_with_options_that_the_scheduler_does_not_have(page: Page) -> None:
    page.follow({"scheduler": "local", "qos": "a"})
    assert page.message() == "jobgen: --qos a (command line): a local run has no scheduler"
    page.follow({"scheduler": "pbspro", "launcher": "srun"})
    assert "--launcher srun" in page.message()
    page.choose("launcher", "torchrun")
    assert page.message() == ""


def test_a_link_with_words_that_do_not_exist_can_be_mended(page: Page) -> None:
    page.follow({"scheduler": "pbspro", "site": "nowhere"})
    assert "there is no such site" in page.message()
    page.choose("scheduler", "slurm")
    assert (page.text("command"), page.message()) == ("jobgen slurm", NOTE)


def test_a_value_ends_at_the_end_of_its_line_only(page: Page) -> None:
    page.fill({"scheduler": "slurm", "env": "A=b\u2028c\x0cd\nB=2", "program": "train.py"})
    assert shlex.split(page.text("command")) == [
        *("jobgen", "slurm", "--env", "A=b\u2028c\x0cd", "--env", "B=2", "--", "train.py")
    ]
    page.wait("linked")
    assert page.flags("export A=")[-1:] == ["--env"]
    assert page.flags("exec python3 train.py") == ["Program"]
    page.fill({"scheduler": "slurm", "name": "\ud800"})
    assert "\ufffd" in page.message()


def test_an_option_with_the_value_of_its_default_has_lines(page: Page) -> None:
    page.fill({"scheduler": "slurm", "nodes": "1"})
    page.wait("linked")
    assert page.flags("#SBATCH --nodes=1") == ["--nodes"]


def test_the_lines_stay_marked_as_their_option_changes(page: Page) -> None:
    marked = "[...document.querySelectorAll('#script .on > code')].map(one => one.textContent)"
    page.follow({"scheduler": "slurm", "nodes": "2"})
    page.run("form.nodes.focus()")
    page.choose("nodes", "3")
    page.wait("linked")
    assert "#SBATCH --nodes=3" in page.run(marked)
    page.run("document.querySelector('[type=reset]').focus()")
    assert page.run(marked) == []


def test_only_what_there_is_can_be_copied(page: Page) -> None:
    off = "[...document.querySelectorAll('.buttons button')].map(one => one.disabled)"
    page.follow({"scheduler": "slurm"})
    assert page.run(off) == [False] * 5
    page.choose("nodes", "0")
    assert page.run(off) == [True, True, False, True, False]  # the command line and the link remain
    assert page.run("getComputedStyle(document.getElementById('output')).opacity") == "1"
    # The link is that of the form, though the address follows later.
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }; 0")
    page.run("document.querySelector('.copy:last-child').click()")
    assert page.run("copied").endswith("#scheduler=slurm&nodes=0")


def test_the_download_is_the_script(page: Page, tmp_path: Path) -> None:
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.follow({"scheduler": "slurm", "comment": "\N{SNOWMAN}"})
    page.run("document.getElementById('download').click()")
    file, until = tmp_path / "job.slurm", time.monotonic() + 10
    while not file.is_file():
        assert time.monotonic() < until, [*tmp_path.iterdir()]
        time.sleep(0.01)
    assert file.read_bytes() == page.script().encode()


def test_a_screen_reader_hears_a_mistake_after_a_pause(page: Page) -> None:
    page.follow({"scheduler": "slurm"})
    page.run("""{
      const [message, said] = ["message", "said"].map((id) => document.getElementById(id));
      const watch = (one, then) => new MutationObserver(then).observe(one, { childList: true });
      watch(message, () => { window.shown = performance.now(); window.before = said.textContent; });
      watch(said, () => { window.heard = performance.now(); });
    }""")
    page.choose("nodes", "x")
    assert "whole number" in page.message()
    assert "whole number" not in page.run("before")
    until = time.monotonic() + 10
    while "whole number" not in page.text("said"):
        assert time.monotonic() < until
    assert page.run("heard - shown") > 500
    assert page.run("[...document.querySelectorAll('[role=alert], [aria-live]')].length") == 0


def test_a_warning_does_not_look_like_a_mistake(page: Page) -> None:
    page.fill({"scheduler": "slurm", "env": "API_TOKEN=abcdefgh12345678"})
    assert "warning" in page.message()
    assert page.run("document.getElementById('message').className") == "message warning"
    page.fill({"scheduler": "slurm", "nodes": "0"})
    assert page.run("document.getElementById('message').className") == "message"


def test_what_the_own_sites_extend_is_in_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    for name, text in {
        "base.toml": 'title = "Base"\nscheduler = "pbs"\n[job]\ndialect = "torque"\nqueue = "wide"\n',
        "ours.toml": 'extends = "base"\ntitle = "Ours"\n',
        "lumi.toml": 'extends = "lumi"\ntitle = "Our LUMI"\n',
        "other/ours.toml": 'title = "Others"\nscheduler = "slurm"\n',
    }.items():
        (tmp_path / name).write_text(text)
    folder = built(tmp_path / "page", "--site", "ours.toml", "--site", "lumi.toml", "--site", "polaris")
    with zipfile.ZipFile(folder / "jobgen.zip") as held:
        names = {name.rpartition("/")[2] for name in held.namelist() if name.startswith(SITE_FILES)}
    assert names == {"base.toml", "lumi.toml", "ours.toml"}
    with served(folder) as url, browser(tmp_path / "profile") as opened:
        page = Page(opened, url)
        page.run("document.querySelector('[type=reset]').click()")
        page.run("new Promise((go) => setTimeout(go, 100))")
        page.wait()
        assert page.text("command") == "jobgen pbs --dialect torque --site ours"
        assert "#PBS -q wide" in page.script()
    done = jobgen("web", "-o", "page2", "--site", "ours.toml", "--site", "other/ours.toml")
    assert (done.returncode, done.stderr) == (
        2,
        "jobgen: site other/ours.toml: ours.toml has the same name\n",
    )


def test_a_site_that_extends_a_file_of_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/polaris.toml").write_text(
        'title = "Wide"\nscheduler = "slurm"\n[job]\nqueue = "wide"\n'
    )
    (tmp_path / "ours.toml").write_text('title = "Ours"\nextends = "base/polaris.toml" # of the centre\n')
    folder = built(tmp_path / "page", "--site", tmp_path / "ours.toml")
    assert 'value="polaris"' not in (folder / "index.html").read_text()  # the page could not tell the two
    with zipfile.ZipFile(folder / "jobgen.zip") as held:
        held.extractall(tmp_path / "held", [one for one in held.namelist() if one.startswith(SITE_FILES)])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "held/config"))
    assert "#SBATCH --partition=wide" in output_of(["slurm", "--site", "ours"]).script


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("ours.site", "", ": must be named NAME.toml, not none.toml"),
        ("none.toml", "", ": must be named NAME.toml, not none.toml"),
        ("ours.toml", "[blocks]\nsetup = 'if'\n", "no job is valid with its defaults: setup = (site ours)"),
        (
            "ours.toml",
            '[environment]\nenv_file = ["t.env"]\n',
            "env_file names a file, which a browser cannot",
        ),
    ],
)
def test_a_site_that_the_page_cannot_have(
    name: str, text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.env").write_text("A=1\n")
    (tmp_path / name).write_text(f'title = "Ours"\nscheduler = "slurm"\n{text}')
    done = jobgen("web", "-o", tmp_path / "page", "--site", tmp_path / name)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert reason in done.stderr
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize(
    ("name", "cut", "reason"),
    [
        ("jobgen.zip", False, "404 File not found"),
        ("pyodide.asm.wasm", False, "404 File not found"),
        ("pyodide.asm.wasm", True, "WebAssembly compilation aborted: Network error: error"),
    ],
)
def test_a_file_that_the_server_does_not_send(
    page: Page, tmp_path: Path, name: str, cut: bool, reason: str
) -> None:
    folder = built(tmp_path / "page")
    if not cut:
        (folder / name).unlink()
    with served(folder, name if cut else None) as url, browser(tmp_path / "profile") as opened:
        opened.open(url)
        until = time.monotonic() + 60
        while opened.run("document.body.dataset.state") != "failed":
            assert time.monotonic() < until
        assert opened.run("document.getElementById('message').textContent") == (
            f"Python cannot be loaded: {name}: {reason}; load the page again"
        )


def test_two_builds_give_the_same_files(page: Page, tmp_path: Path) -> None:
    one, two = built(tmp_path / "one"), built(tmp_path / "two")
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}
    with zipfile.ZipFile(one / "jobgen.zip") as held:
        names = held.namelist()
    assert not [name for name in names if name.startswith("jobgen/train/") or "__pycache__" in name]
    assert {"jobgen/templates/base.sh.j2", "jobgen/templates/sites/lumi.toml"} <= {*names}


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "held").mkdir()
    (tmp_path / "held/other").write_text("")
    done = jobgen("web", "-o", "held")
    assert done.returncode == 2
    assert (
        done.stderr
        == "jobgen: -o held (command line): the directory has files already; --force writes into it\n"
    )
    done = jobgen("web", "-o", "page", "--site", "none.toml")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "none.toml" in done.stderr
    assert not (tmp_path / "page").exists()
    done = jobgen("web", "-o", "page", "--parts", "held")
    assert (done.returncode, done.stderr) == (
        2,
        f"jobgen: held/{PYODIDE.name}: cannot be read: No such file or directory; download it elsewhere and "
        "name its folder with --parts\n",
    )
    (tmp_path / "held" / PYODIDE.name).write_text("another file")
    done = jobgen("web", "-o", "page", "--parts", "held")
    assert done.returncode == 2
    assert "is another file: its SHA-256 is not" in done.stderr
    assert not (tmp_path / "page").exists()
    limited = f"ulimit -f 1000; exec {shlex.quote(sys.executable)} -m jobgen web -o page"  # as on a full disk
    full = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert (full.returncode, full.stderr) == (
        2, "jobgen: -o page (command line): cannot be written: File too large\n",
    )  # fmt: skip
    assert not list((tmp_path / "page").iterdir())
