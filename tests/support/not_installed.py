"""Programs without a package, such as OpenPBS: their tests are skipped where they are absent, also on CI, and counted.

Several sessions of pytest make up `make test`. Each adds its numbers to the file that JOBGEN_NOT_INSTALLED names;
`python -m support.not_installed FILE` prints the sums.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

_REASON = " is not installed here"


def skip(title: str) -> NoReturn:
    pytest.skip(title + _REASON)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    reasons = [str(report.longrepr[2]) for report in reports]  # the file, the line and the reason
    titles = [
        reason.removeprefix("Skipped: ").removesuffix(_REASON)
        for reason in reasons
        if reason.endswith(_REASON)
    ]
    for line in lines(titles):
        terminalreporter.write_line(line)
    if path := os.environ.get("JOBGEN_NOT_INSTALLED"):
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{title}\n" for title in titles)


def lines(titles: Iterable[str]) -> list[str]:
    """Return a sentence for each program, with the number of its tests."""
    numbers = sorted(Counter(titles).items())
    return [
        f"{title} is not installed: {number} test{'s' * (number > 1)} skipped" for title, number in numbers
    ]


if __name__ == "__main__":
    print(*lines(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()), sep="\n", end="")
