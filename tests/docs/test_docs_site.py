"""The documentation site: it is built without a warning, and what is generated for it is complete."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from support import ROOT
from support.axe import of_screens
from support.browser import Browser, browser
from support.require import need_package

from jobgen.check.rules.table import RULES
from jobgen.jobfile.tables import AT
from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import OPTIONS
from jobgen.schedulers.table import SCHEDULERS
from tools.docsite import files, links, options, rules

pytestmark = pytest.mark.xdist_group("docs-site")  # its tests share a site, which one worker builds


class _Targets(HTMLParser):
    """What a page loads, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "a" and said.get("href"):
            self.links.append(said["href"] or "")
        elif one := said.get("src") or (tag == "link" and said.get("href")):
            self.loads.append(one)


Pages = dict[Path, tuple[str, _Targets]]


@pytest.fixture(scope="module")
def pages(docs_site: Path) -> Pages:
    """The pages with their targets; the links of 404.html are absolute."""
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in docs_site.rglob("*.html")
        if path.name != "404.html"
    }
    return {path: (text, _Targets(text)) for path, text in texts.items()}


def test_every_page_of_the_repository_is_on_the_site(docs_site: Path) -> None:
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")} | set(links.OUTSIDE)
    sources |= {f"examples/{path.parent.name}/README.md" for path in (ROOT / "examples").glob("*/README.md")}
    places = [docs_site / links.place(name).replace(".md", ".html") for name in sources]
    assert [place for place in places if not place.exists()] == []


def test_no_link_is_broken_and_no_page_is_an_orphan(docs_site: Path, pages: Pages) -> None:
    linked, broken = {docs_site / "index.html"}, []
    for path, (_, targets) in pages.items():
        for one in targets.links:
            name = unquote(re.split("[#?]", one)[0])
            if not name or re.match(r"[a-z]+:", name):
                continue
            target = Path(os.path.normpath(path.parent / name))
            if target != path:
                linked.add(target)
            if not target.exists():
                broken.append((path.name, one))
    assert not broken
    assert pages.keys() <= linked


def test_the_pages_need_neither_another_server_nor_the_checkout(pages: Pages) -> None:
    for path, (text, targets) in pages.items():
        assert not [one for one in targets.loads if re.match(r"https?:|//", one)], path
        assert str(ROOT) not in text


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.mark.parametrize(
    "name",
    [
        *("index", "start/slurm", "install", "tutorials/own-program", "check", "web", "report", "matrix"),
        *("reference/environment", "rules/absent-hostfile", "pictures/report"),
    ],
)
def test_a_page_has_no_violation_of_axe(docs_site: Path, chromium: Browser, name: str) -> None:
    chromium.open(docs_site / f"{name}.html")
    assert of_screens(chromium) == {}


def test_the_options_have_their_directives() -> None:
    text = options.page()
    sections = text.split("\n### ")[1:]
    assert [one.split()[0] for one in sections] == [option.flag for option in OPTIONS]
    for one in sections:
        assert [one.count(f"\n| {scheduler.title} |") for scheduler in SCHEDULERS.values()] == [1] * len(
            SCHEDULERS
        )
    nodes = next(one for one in sections if one.startswith("--nodes "))
    assert "| Slurm | `--nodes 3` | `#SBATCH --nodes=3` |" in nodes
    assert "| PBS Pro | `--nodes 3` | `#PBS -l select=3:" in nodes
    assert "refused: " in next(one for one in sections if one.startswith("--queue "))


def test_the_keys_of_files_are_complete() -> None:
    text = files.job_page()
    assert {name for _, name in AT} <= set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert text.count("\n## ") == 12
    assert "| `walltime_by_nodes` |" in files.site_page()


def test_the_rules_are_complete() -> None:
    assert re.findall(r"^\| \[([\w-]+)\]", rules.page(), re.MULTILINE) == list(RULES)


def test_the_recording_is_reproducible() -> None:
    need_package("rich", "tree_sitter_bash")
    from tools.docsite import recording

    made = recording.svg()
    assert made == recording.svg()
    assert "did&#160;you&#160;mean&#160;--gpus-per-node?" in made
    assert "http" not in made.replace("http://www.w3.org/2000/svg", "").replace(
        "https://slurm.schedmd.com", ""
    )


def test_the_terminal_of_the_home_page_can_be_copied(pages: Pages, docs_site: Path) -> None:
    text, _ = pages[docs_site / "index.html"]
    [terminal] = re.findall(
        r"<details><summary>The terminal as text</summary><pre><code>(.*?)</code>", text, re.DOTALL
    )
    assert terminal.startswith("$ jobgen slurm --nodes 2 ")
    assert "did you mean --gpus-per-node?" in terminal


def test_each_page_says_how_to_go_on() -> None:
    """The last lines have a link; generated pages, and the home of a topic, have links all over."""
    texts = {
        path: path.read_text(encoding="utf-8").splitlines()
        for path in (ROOT / "docs").rglob("*.md")
        if path.parent.name not in ("rules", "sites")
    }
    assert not [str(path) for path, lines in texts.items() if "](" not in "\n".join(lines[-5:])]


def test_links_between_the_repository_and_the_site() -> None:
    assert (
        links.rewritten("[a](docs/life.md#x) [b](https://a.b/c.md)", "overview.md")
        == "[a](life.md#x) [b](https://a.b/c.md)"
    )
    assert links.rewritten("[a](../../examples/README.md)", "tutorials/x.md") == "[a](../examples/index.md)"
    assert (
        links.rewritten("[a](train.py) [b](#here)", "examples/own_program.md")
        == "[a](own_program/train.py) [b](#here)"
    )


def test_the_comparison_is_right_about_jobgen() -> None:
    row = next(
        line for line in (ROOT / "docs/why.md").read_text().splitlines() if line.startswith("| jobgen |")
    )
    for scheduler in SCHEDULERS.values():
        assert scheduler.title in row
    of_ranks = (name for name, launcher in LAUNCHERS.items() if not launcher.one_process)
    assert f"| {', '.join(of_ranks)} |" in row
