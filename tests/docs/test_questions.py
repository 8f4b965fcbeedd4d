"""The questions that people type: ``jobgen help`` and the search of the site put the right page first.

questions.tsv has a question and the name of its page on each line.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.browser import browser
from support.web_page import served

from jobgen.commands import topics

LINES = (Path(__file__).with_name("questions.tsv")).read_text(encoding="utf-8").splitlines()
QUESTIONS = dict(line.split("\t") for line in LINES if not line.startswith("#"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_help_answers(question: str) -> None:
    found = [topic.name for topic in topics.search(question)]
    assert found[:1] == [QUESTIONS[question]], found[:4]


_SEARCH = """
new Promise(done => {{
  const box = document.querySelector("[data-md-component=search-query]"), began = Date.now()
  box.focus(); box.value = {question}; box.dispatchEvent(new Event("keyup", {{bubbles: true}}))
  box.dispatchEvent(new Event("input", {{bubbles: true}}))
  const look = () => {{
    const links = [...document.querySelectorAll(".md-search-result__item > .md-search-result__link")]
    if (links.length && Date.now() - began > 500 || Date.now() - began > 60000)
      done(links.slice(0, 4).map(a => a.pathname))
    else setTimeout(look, 100)
  }}
  look()
}})
"""


@pytest.mark.xdist_group("docs-site")
def test_the_search_of_the_site_answers(docs_site: Path, tmp_path: Path) -> None:
    wrong = {}
    with served(docs_site) as address, browser(tmp_path) as page:
        page.open(f"{address}index.html")
        for question, name in QUESTIONS.items():
            found = page.run(_SEARCH.format(question=json.dumps(question)))
            if not found or not found[0].endswith(f"/{name}.html"):
                wrong[question] = found
    assert not wrong
