"""Hooks of mkdocs: they add the pages that are generated or stand outside of docs/, and rewrite the links."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.docsite import commands, files, links, options, python, recording, report, rules, training  # noqa: E402

GENERATED: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands.page,
    "reference/options.md": options.page,
    "reference/job-file.md": files.job_page,
    "reference/site-file.md": files.site_page,
    "reference/environment.md": commands.environment,
    "reference/training.md": training.page,
    "reference/python.md": python.page,
    "reference/rules.md": rules.page,
    "pictures/terminal.svg": recording.svg,
    "pictures/report.html": report.page,
}

TERMINAL = "<!-- The terminal as text. -->"  # where the home page has it


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace patterns in the navigation, such as ``sites/*.md``, by the pages that match."""
    config.nav = [_expanded(one, Path(config.docs_dir)) for one in config.nav or []]
    return config


def _expanded(entry: Any, docs: Path) -> Any:
    if isinstance(entry, dict):
        return {title: _expanded(one, docs) for title, one in entry.items()}
    if not isinstance(entry, list):
        return entry
    pages: list[Any] = []
    for one in entry:
        globbed = isinstance(one, str) and "*" in one
        pages += (
            sorted(str(path.relative_to(docs)) for path in docs.glob(one) if path.name != "index.md")
            if globbed
            else [_expanded(one, docs)]
        )
    return pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for place, made in GENERATED.items():
        files.append(File.generated(config, place, content=made()))
    for name, place in links.OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


# The weight of the pages of a folder, or of a page, in the search; people search for a symptom or for a task.
BOOSTS = {"trouble/": 6, "interactive.md": 6, "group.md": 6, "install.md": 4, "arrays.md": 2, "rules/": 0.2, "reference/": 0.4, "sites/": 0.4,
          "changelog.md": 0.1, "contributing.md": 0.1, "overview.md": 0.5, "examples/": 0.5}  # fmt: skip


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with its links as links of the site, and with the words that it is found by."""
    place = page.file.src_uri
    boost = next((value for start, value in BOOSTS.items() if place.startswith(start)), 1)
    page.meta.setdefault("search", {"boost": boost})
    if words := page.meta.get("words"):  # the search weighs tags most
        page.meta["tags"] = [*re.findall(r"\w+", markdown.partition("\n")[0].lower()), *words.split()]
    text = links.rewritten(markdown, place)
    return text.replace(TERMINAL, recording.html()) if TERMINAL in text else text
