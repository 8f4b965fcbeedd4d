"""``python -m release.recipes SDIST DIR``: write a recipe for conda and a package for Spack.

The version, the requirements and the checksum are those of the source distribution.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
from email import message_from_bytes
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import msgspec

HERE = Path(__file__).resolve().parent
CONDA_NAMES = {"tree-sitter": "tree_sitter", "hjson": "hjson-py"}  # conda-forge's name, if it is another one
RECIPES = {"conda/recipe.yaml": "conda", "spack/py-jobgen/package.py": "spack"}


class Requirement(NamedTuple):
    """A package, its least version, and the first version of Python that does not need it, or nothing."""

    name: str
    least: str
    until: str


def facts(sdist: Path) -> dict[str, Any]:
    """Return what the recipes need to know about a source distribution."""
    with tarfile.open(sdist) as archive:
        top = archive.getnames()[0].partition("/")[0]
        texts = [archive.extractfile(f"{top}/{name}").read() for name in ("PKG-INFO", "pyproject.toml")]  # type: ignore[union-attr]
    metadata = message_from_bytes(texts[0])
    runs = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    return {
        "version": metadata["Version"],
        "summary": metadata["Summary"],
        "license": metadata["License-Expression"] or metadata["License"],
        "python": metadata["Requires-Python"].removeprefix(">="),
        "sha256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
        "run": sorted(map(requirement, runs)),
        "build": sorted(map(requirement, msgspec.toml.decode(texts[1])["build-system"]["requires"])),
    }


def requirement(text: str) -> Requirement:
    """Return a requirement such as ``tomli>=2; python_version < "3.11"``."""
    found = re.fullmatch(r'([\w-]+)>=([\d.]+)(?:; *python_version < "([\d.]+)")?', text)
    if found is None:
        raise ValueError(f"{text}: is a requirement of another form: teach it to {__name__}")
    return Requirement(found[1], found[2], found[3] or "")


def write(sdist: Path, folder: Path) -> None:
    """Write the recipes."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), trim_blocks=True, keep_trailing_newline=True
    )
    known = facts(sdist) | {"conda_names": CONDA_NAMES}
    for name, source in RECIPES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = environment.get_template(f"{source}/{path.name}.j2").render(known)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
