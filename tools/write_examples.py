"""Write the scripts and the job parts of the examples with the commands of their pages: python -m tools.write_examples"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from golden.cases import job_part, plan_of

from jobgen import JobSpec

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


def spec(name: str) -> JobSpec:
    """Return the job of an example."""
    file = EXAMPLES / name / "jobgen.toml"
    if file.exists():
        return JobSpec.from_file(file)
    words = command(name)
    at = words.index("-o")
    return plan_of(shlex.join([*words[:at], *words[at + 2 :]])).spec


def written(name: str) -> tuple[Path, str]:
    """Return the file of an example that has its script, or the page with the job part, and its text."""
    folder, words = EXAMPLES / name, command(name)
    at = words.index("-o")
    options = [*words[:at], *words[at + 2 :]]
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", *options], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    if not (folder / "jobgen.toml").exists():
        return folder / words[at + 1], done.stdout
    page = folder / "README.md"
    part = f"```sh\n{job_part(done.stdout)}```"
    return page, re.sub(r"^```sh\n.*?^```$", lambda _: part, page.read_text(), flags=re.M | re.S)


if __name__ == "__main__":
    for path, text in map(written, NAMES):
        path.write_text(text)
