"""The questions that people type: ``jobgen help`` and the search of the site put the right page first.

questions.tsv has a question on each line, and the names of the pages of which each answers it.
"""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from support.browser import browser
from support.jobs import jobgen
from support.web_page import served

from jobgen.commands import topics
from jobgen.commands.cli import cli

LINES = (Path(__file__).with_name("questions.tsv")).read_text(encoding="utf-8").splitlines()
QUESTIONS = {
    question: pages.split("|")
    for question, pages in (line.split("\t") for line in LINES if not line.startswith("#"))
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_help_answers(question: str) -> None:
    found = [topic.name for topic in topics.search(question)]
    assert set(found[:3]) & set(QUESTIONS[question]), found[:4]


def test_nearly_all_answers_come_first() -> None:
    first = {question: topics.search(question)[0].name for question in QUESTIONS}
    other = {question: name for question, name in first.items() if name not in QUESTIONS[question]}
    assert len(other) <= 0.03 * len(QUESTIONS), other


def test_each_page_is_shown_by_its_name_and_found_by_its_title() -> None:
    commands, contents = cli.list_commands(click.Context(cli)), jobgen("help").stdout
    for name, topic in topics.topics().items():
        assert name not in commands
        assert topic.words, name
        assert f"\n  {name:<20}  {topic.title}\n" in contents
        assert topic in topics.search(topic.title)[:2], name
        assert f"\n{topic.title}\n".strip() in jobgen("help", name).stdout.partition("\n\n")[0]


def test_a_misspelt_question_has_a_suggestion() -> None:
    assert "did you mean checkpoint?" in jobgen("help", "chekpoint").stderr
    assert "did you mean gpu utilisation?" in jobgen("help", "gpuu", "utilisaton").stderr
    assert "jobgen help without words lists all pages" in jobgen("help", "xyzzy").stderr


_BEFORE = LINES[: LINES.index("# Everyday words.")]
SYMPTOMS = sum(not line.startswith("#") for line in _BEFORE)
_SEARCH = """
new Promise(done => {{
  const box = document.querySelector("[data-md-component=search-query]"), began = Date.now()
  const results = ".md-search-result__item > .md-search-result__link"
  document.querySelectorAll(results).forEach(link => link.dataset.before = "")  // of the last question
  box.focus(); box.value = {question}; box.dispatchEvent(new Event("keyup", {{bubbles: true}}))
  box.dispatchEvent(new Event("input", {{bubbles: true}}))
  const look = () => {{
    const links = [...document.querySelectorAll(results)].filter(link => !("before" in link.dataset))
    if (links.length || Date.now() - began > 60000) done(links.slice(0, 4).map(a => a.pathname))
    else setTimeout(look, 20)
  }}
  look()
}})
"""


@pytest.mark.xdist_group("docs-site")
def test_the_search_of_the_site_answers(docs_site: Path, tmp_path: Path) -> None:
    """It knows no words of one meaning, unlike ``jobgen help``."""
    ranks: dict[str, int] = {}
    with served(docs_site) as address, browser(tmp_path) as page:
        page.open(f"{address}index.html")
        for question, names in QUESTIONS.items():
            places = {f"/{topics.topics()[one].place.removesuffix('.md')}.html" for one in names}
            found = page.run(_SEARCH.format(question=json.dumps(question)))
            ranks[question] = next((rank for rank, one in enumerate(found) if one in places), 9)
    other = {question: rank for question, rank in ranks.items() if rank}
    assert not set(other) & set(list(QUESTIONS)[:SYMPTOMS]), other
    assert len(other) <= 0.2 * len(ranks), other
    assert sum(rank > 2 for rank in ranks.values()) <= 0.1 * len(ranks), other
