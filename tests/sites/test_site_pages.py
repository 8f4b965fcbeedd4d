"""The pages of the sites are those that the site files give, and what they show is true of the scripts."""

from __future__ import annotations

import pytest
from golden.cases import plan_of

from jobgen.sites.site_file import Site
from tools.write_site_pages import DOCS, INDEX, command, index, page, sites

EACH_SITE = pytest.mark.parametrize("site", sites(), ids=lambda site: site.name)
WRITE = "python -m tools.write_site_pages writes it"


def text_of(site: Site) -> str:
    return (DOCS / f"sites/{site.name}.md").read_text(encoding="utf-8")


@EACH_SITE
def test_a_page_is_current(site: Site) -> None:
    assert text_of(site) == page(site), WRITE


def test_the_index_is_current() -> None:
    assert INDEX.read_text(encoding="utf-8") == index(), WRITE


def test_every_site_has_a_page_and_a_row_in_the_index() -> None:
    names = {site.name for site in sites()}
    assert {path.stem for path in (DOCS / "sites").glob("*.md")} == names
    listed = (DOCS / "sites.md").read_text(encoding="utf-8")
    assert [name for name in names if f"(sites/{name}.md)" not in listed] == []


@EACH_SITE
def test_a_page_has_each_queue_each_source_and_each_difference(site: Site) -> None:
    text = text_of(site)
    file = site.file
    facts = [*(f"| `{name}` |" for name in file.queues), *(one.page for one in file.source), *file.differs]
    assert [fact for fact in facts if fact not in text] == []


def test_a_site_with_differences_names_the_page_of_its_example_and_the_others_say_so() -> None:
    """No example of these sites' own could be read."""
    lack = {"anvil", "aspire2a", "bridges2", "deltaai", "horizon", "jean-zay", "karolina", "leonardo"}
    for site in sites():
        text = text_of(site)
        has = any("example" in source.facts for source in site.file.source)
        assert has == bool(site.file.differs)
        if site.queues:
            assert (site.name in lack) == (not has) == ("The example: none was found in" in text)


@EACH_SITE
def test_the_commands_of_a_page_exceed_no_limit(site: Site) -> None:
    for launcher in ("", "torchrun", "deepspeed"):
        assert plan_of(command(site, launcher, "train.py")).site.warnings == ()
