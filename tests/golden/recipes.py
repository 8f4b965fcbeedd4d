"""The options whose recipes of images stand in images/, by the name of the file; ``python -m tools.write_goldens``."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from jobgen.commands.image import image

HERE = Path(__file__).parent / "images"
CASES = {
    f"{accelerator}.{kind}": ["--kind", kind, "--accelerator", accelerator]
    for kind in ("dockerfile", "apptainer")
    for accelerator in ("cuda", "npu", "cpu")
}


def text(options: list[str]) -> str:
    return CliRunner().invoke(image, options, catch_exceptions=False).output
