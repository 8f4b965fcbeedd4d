"""``python -m release.pyz WHEEL FILE``: write jobgen.pyz, one file for any Python from 3.10, of a wheel.

It holds jobgen without the training module and the packages that it needs. It has the extension modules of
COMPILED for each of PYTHONS on each of MACHINES, in compiled/TAG; pyz_main.py takes those of its Python.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from jobgen.commands.web.bundle import archive

ROOT = Path(__file__).resolve().parents[1]
OLDEST = "3.10"
PURE = ("click", "jinja2", "markupsafe", "tomli")
COMPILED = ("msgspec", "tree-sitter", "tree-sitter-bash")
PYTHONS = (OLDEST, "3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
_PINS = ("--only-binary", ":all:", "--constraint", str(ROOT / "constraints.txt"))
_LEFT_OUT = ("jobgen/train", "bin", "share")
_UNWANTED = ("*.c", ".lock", "RECORD", "WHEEL", "direct_url.json", "uv_cache.json")  # of the installation


def collect(wheel: Path, folder: Path) -> None:
    """Install jobgen and the packages of PURE and COMPILED into a folder."""
    _install("--python-version", OLDEST, *_PINS, *PURE, target=folder)
    _install(str(wheel), target=folder)
    for name in _LEFT_OUT:
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in [*folder.rglob("*.so")]:  # of this machine
        path.unlink()
    for machine, python in product(MACHINES, PYTHONS):
        _add_compiled(folder, machine, python)


def _add_compiled(folder: Path, machine: str, python: str) -> None:
    """Install COMPILED for one Python on one kind of machine; its extension modules go into compiled/TAG."""
    with tempfile.TemporaryDirectory() as made:
        platform = ("--python-platform", f"{machine}-manylinux2014", "--python-version", python)
        _install(*platform, *_PINS, *COMPILED, target=Path(made))
        for path in (one for one in Path(made).rglob("*") if one.is_file()):
            inner = path.relative_to(made)
            if path.suffix == ".so":  # _core.cpython-310-x86_64-linux-gnu.so, _binding.abi3.so
                tag = path.name.split(".")[1].replace("abi3", f"{machine}-linux-gnu")
                inner = Path("compiled", tag, inner)
            (folder / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / inner)


def _install(*words: str, target: Path) -> None:
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-config", "--no-deps"]
    subprocess.run([*command, "--python", sys.executable, "--target", str(target), *words], check=True)
    for path in [one for pattern in _UNWANTED for one in target.rglob(pattern)]:
        path.unlink()


def write(folder: Path, file: Path) -> None:
    """Write the zipapp of a folder. Equal folders give equal bytes; the date is that of SOURCE_DATE_EPOCH."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
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
