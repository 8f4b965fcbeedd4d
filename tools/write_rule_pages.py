"""The pages of the rules, generated from the rules.

``python -m tools.write_rule_pages`` writes all pages of docs/rules anew; read the difference before you commit it.
"""

from __future__ import annotations

import sys
import tempfile
from inspect import cleandoc
from pathlib import Path

from jobgen.check import formats
from jobgen.check.checker import Finding
from jobgen.check.files import FileChecks
from jobgen.check.rule import Rule
from jobgen.check.rules.table import RULES

DOCS = Path(__file__).resolve().parent.parent / "docs/rules"

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

<!-- Generated from the rule by tools/write_rule_pages.py. -->
"""


def files(rule: Rule) -> dict[str, str]:
    """Return the files of a rule by name: bad.sh, good.sh, and a config that they use."""
    texts = {"bad.sh": rule.bad, "good.sh": rule.good, **rule.files}
    return {name: cleandoc(text) + "\n" for name, text in texts.items()}


def script(rule: str, name: str) -> bytes:
    """Return the script ``bad`` or ``good`` of a rule."""
    return files(RULES[rule])[f"{name}.sh"].encode()


def write(rule: Rule, folder: Path) -> None:
    """Write the files of a rule."""
    for name, text in files(rule).items():
        (folder / name).write_bytes(text.encode())


def findings(rule: Rule, name: str) -> list[Finding]:
    """Return the findings in the script ``bad`` or ``good`` of a rule, with its config beside it."""
    with tempfile.TemporaryDirectory() as folder:
        write(rule, Path(folder))
        found = FileChecks(style=True).findings(f"{folder}/{name}.sh")
    return [one._replace(file=f"{name}.sh") for one in found]


def page(rule: Rule) -> str:
    """Return the page of a rule."""
    blocks = {
        kind: "\n\n".join(
            f"```{Path(name).suffix[1:]}\n{text}```".replace("\r", "")  # a page cannot show a carriage return
            for name, text in files(rule).items()
            if name.startswith(kind)
        )
        for kind in ("bad", "good")
    }
    return _PAGE.format(
        rule=rule,
        reason=cleandoc(rule.reason).rstrip(),
        finding=formats.as_text(findings(rule, "bad")),
        **blocks,
    )


def main() -> None:
    pages = {DOCS / f"{rule.id}.md": page(rule) for rule in RULES.values()}
    for path in set(DOCS.glob("*.md")) - set(pages):
        path.unlink()
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
