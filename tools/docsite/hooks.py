"""Hooks of mkdocs: they add the pages that are generated or stand outside of docs/, and rewrite the links."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from jobgen.commands import topics  # noqa: E402
from tools.docsite import commands, files, links, options, python, recording, report, rules, training  # noqa: E402

GENERATED: dict[str, Callable[[], str]] = {
    "words.js": lambda: f"const STOP = new Set({json.dumps(sorted(topics.STOP))});\n",
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


# The weights of the pages that are not part of the package.
_WEIGHTS = {"rules/": 0.67, "reference/": 0.8, "sites/": 0.8, "changelog.md": 0.56, "contributing.md": 0.56, "overview.md": 0.84, "examples/": 0.84}  # fmt: skip
_STEP = 4  # the power of all weights: the search of the site needs larger differences


def _boost(place: str) -> float:
    """Return the weight of a page in the search of the site."""
    others = (weight for start, weight in _WEIGHTS.items() if place.startswith(start))
    return float(next(others, topics.weight(place)) ** _STEP)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with its links as links of the site, and with the words that it is found by."""
    place = page.file.src_uri
    page.meta.setdefault("search", {"boost": _boost(place)})
    if words := page.meta.get("words"):  # the search weighs tags most
        page.meta["tags"] = topics.subjects(f"{page.title} {words}")
    text = links.rewritten(markdown, place)
    return text.replace(TERMINAL, recording.html()) if TERMINAL in text else text
