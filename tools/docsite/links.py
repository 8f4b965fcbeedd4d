"""The pages of the site that stand outside of docs/, and links between files of the repository as links of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The place on the site of each file of the repository outside of docs/.
OUTSIDE = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples/index.md",
    **{
        f"examples/{path.parent.name}/README.md": f"examples/{path.parent.name}.md"
        for path in (ROOT / "examples").glob("*/README.md")
    },
    **{
        str(path.relative_to(ROOT)): str(path.relative_to(ROOT))
        for path in (ROOT / "examples").glob("*/*.*")
        if path.suffix != ".md"
    },
}
_INSIDE = {place: name for name, place in OUTSIDE.items()}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(?=[)#])")


def place(name: str) -> str:
    """Return the place on the site of a file of the repository."""
    return OUTSIDE.get(name, name.removeprefix("docs/"))


def rewritten(markdown: str, at: str) -> str:
    """Return the text of the page that is at a place on the site, with its links as links of the site."""
    folder = posixpath.dirname(_INSIDE.get(at, f"docs/{at}"))

    def link(found: re.Match[str]) -> str:
        target = place(posixpath.normpath(posixpath.join(folder, found[1])))
        return posixpath.relpath(target, posixpath.dirname(at) or ".")

    return _LINK.sub(link, markdown)
