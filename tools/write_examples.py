"""Write the scripts of the examples with the commands of their pages: python -m tools.write_examples"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted(page.parent.name for page in EXAMPLES.glob("*/README.md"))


def block(name: str, language: str) -> str:
    """Return the only block of a language in the page of an example."""
    [text] = re.findall(
        rf"^```{language}\n(.*?)^```$", (EXAMPLES / name / "README.md").read_text(), re.M | re.S
    )
    return str(text)


def command(name: str) -> list[str]:
    """Return the words of an example's command, without its ``jobgen``."""
    return shlex.split(block(name, "bash").replace("\\\n", ""))[1:]


if __name__ == "__main__":
    for one in NAMES:
        words = command(one)
        at = words.index("-o") + 1
        words[at] = str(EXAMPLES / one / words[at])
        subprocess.run([sys.executable, "-m", "jobgen", words[0], "--force", *words[1:]], check=True)
