"""A terminal recording as SVG: commands are run, and what they print is drawn."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from html import escape
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 104
COMMANDS = (
    "jobgen slurm --nodes 2 --gpus-per-node 4 --launcher torchrun -o job.sh -- train.py --lr 0.1",
    "head -n 12 job.sh",
    "cat night.sh",
    "jobgen check night.sh",
    "jobgen slurm --nodes 2 --gpu-per-node 4 -- train.py",
    "jobgen slurm -N 2 --ntasks 16 --gpus-per-task 1 -t 90",
)
_NIGHT = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=24:00
set -e
#SBATCH --ntasks-per-node=4
srun python train.py
"""
# That of rich, without the fonts that it loads from another server.
_FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>jobgen in a terminal</title>
<style>.{unique_id}-matrix {{ font: {char_height}px monospace; line-height: {line_height}px }} {styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#272822"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def svg() -> str:
    """Return the recording of COMMANDS. It is the same at every build of one version."""
    console = Console(
        width=WIDTH, record=True, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    for command, output in _outputs():
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")), soft_wrap=False)
        console.print(Text(output), soft_wrap=False, end="")
    return console.export_svg(theme=MONOKAI, code_format=_FORMAT, unique_id="recording")


def html() -> str:
    """Return the text of the recording, folded, to be read aloud and copied."""
    text = "".join(f"$ {command}\n{output}" for command, output in _outputs())
    summary = "The terminal as text"
    return f"<details><summary>{summary}</summary><pre><code>{escape(text)}</code></pre></details>"


def _outputs() -> list[tuple[str, str]]:
    """Return the commands with what they print."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "night.sh").write_text(_NIGHT, encoding="utf-8")
        return [(command, _output(command, folder)) for command in COMMANDS]


def _output(command: str, folder: str) -> str:
    """Return what a command prints."""
    words = (
        command.replace("jobgen ", f"{sys.executable} -m jobgen ", 1)
        if command.startswith("jobgen")
        else command
    )
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        ["bash", "-c", words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout
