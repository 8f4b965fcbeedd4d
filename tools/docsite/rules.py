"""The list of the rules of ``jobgen check``."""

from __future__ import annotations

from jobgen.check.rules.table import RULES
from tools.docsite.tables import cell, table

_HEAD = """\
# Rules of jobgen check

Each rule has a page with its reason, a script that breaks it, and a script that does not. [Check and convert](../check.md) describes the
command; `jobgen check --list` prints this table.
"""


def page() -> str:
    """Return the page."""
    rows = [[f"[{one.id}](../rules/{one.id}.md)", one.severity, cell(one.title)] for one in RULES.values()]
    return f"{_HEAD}\n{table(['rule', 'severity', 'title'], rows)}"
