"""``python -m release.pyz WHEEL FILE``: write jobgen.pyz, one file for any Python from 3.10, of a wheel.

It holds jobgen without the training module, and the packages that rendering needs, in pure Python. Packages
that exist only compiled (msgspec, tree-sitter) are left out: jobgen names them where it needs them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from jobgen.commands.web.bundle import archive

ROOT = Path(__file__).resolve().parents[1]
OLDEST = "3.10"
PURE = ("click", "jinja2", "markupsafe", "tomli")
_LEFT_OUT = ("jobgen/train", "bin", "share")
_UNWANTED = (".so", ".c", ".pyc")


def collect(wheel: Path, folder: Path) -> None:
    """Install jobgen and the packages of PURE into a folder; leave out what is compiled."""
    pins = ("--constraint", str(ROOT / "constraints.txt"))
    _pip("--python-version", OLDEST, "--only-binary", ":all:", *pins, *PURE, target=folder)
    _pip(str(wheel), target=folder)
    for name in _LEFT_OUT:
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in [
        one for one in folder.rglob("*") if one.suffix in _UNWANTED or one.name == "direct_url.json"
    ]:
        path.unlink()


def _pip(*words: str, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-compile", "--target", str(target), *words], check=True)


def write(folder: Path, file: Path) -> None:
    """Write the zipapp of a folder. Equal folders give equal bytes; the date is that of SOURCE_DATE_EPOCH."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "RECORD")
    texts = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    main = Path(__file__).with_name("pyz_main.py").read_bytes()
    texts |= {"__main__.py": main, "DIGEST": _digest(texts.items()).encode()}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"#!/usr/bin/env python3\n" + archive(texts))
    file.chmod(0o755)


def _digest(texts: Iterable[tuple[str, bytes]]) -> str:
    """Return a digest of files."""
    whole = hashlib.sha256()
    for name, text in texts:
        whole.update(f"{name} {len(text)}\n".encode() + text)
    return whole.hexdigest()[:16]


def main(wheel: str, file: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        collect(Path(wheel), Path(folder))
        write(Path(folder), Path(file))
    print(f"{file}: {os.path.getsize(file)} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
