"""The pages of the rules, generated from the docstrings of the rules.

``python tests/check/pages.py`` writes all pages of docs/rules anew; read the difference before you commit it.
"""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
from inspect import getdoc
from pathlib import Path

from jobgen.check import formats
from jobgen.check.checker import Finding, check_file
from jobgen.check.rule import Rule
from jobgen.check.rules.table import RULES

DOCS = Path(__file__).resolve().parent.parent.parent / "docs/rules"

_PAGE = """\
# {rule.id}

{rule.title} ({rule.severity}).

{reason}

Bad:

{bad}

```
{finding}```

Good:

{good}

Silence it for the next line, or above the first command for the file, with `# jobgen: disable={rule.id}`.

<!-- Generated from the docstring of the rule by tests/check/pages.py. -->
"""


def parts(rule: Rule) -> tuple[str, dict[str, str]]:
    """Return the reason of a rule and its files by name: bad.sh, good.sh, and a config that they use."""
    reason, *rest = re.split(r"^(Bad|Good|\w+\.json):\n\n", getdoc(rule.find) or "", flags=re.MULTILINE)
    files = {
        name if "." in name else f"{name.lower()}.sh": textwrap.dedent(text).strip("\n") + "\n"
        for name, text in zip(rest[::2], rest[1::2], strict=True)
    }
    return reason.strip(), files


def script(rule: str, name: str) -> bytes:
    """Return the script ``bad`` or ``good`` of a rule."""
    return parts(RULES[rule])[1][f"{name}.sh"].encode()


def write(rule: Rule, folder: Path) -> None:
    """Write the files of a rule."""
    for name, text in parts(rule)[1].items():
        (folder / name).write_bytes(text.encode())


def findings(rule: Rule, name: str) -> list[Finding]:
    """Return the findings in the script ``bad`` or ``good`` of a rule, with its config beside it."""
    with tempfile.TemporaryDirectory() as folder:
        write(rule, Path(folder))
        found = check_file(f"{folder}/{name}.sh")
    return [one._replace(file=f"{name}.sh") for one in found]


def page(rule: Rule) -> str:
    """Return the page of a rule."""
    reason, files = parts(rule)
    blocks = {
        kind: "\n\n".join(
            f"```{Path(name).suffix[1:]}\n{text}```".replace("\r", "")  # a page cannot show a carriage return
            for name, text in files.items()
            if name.startswith(kind)
        )
        for kind in ("bad", "good")
    }
    return _PAGE.format(rule=rule, reason=reason, finding=formats.as_text(findings(rule, "bad")), **blocks)


def main() -> None:
    pages = {DOCS / f"{rule.id}.md": page(rule) for rule in RULES.values()}
    for path in set(DOCS.glob("*.md")) - set(pages):
        path.unlink()
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
