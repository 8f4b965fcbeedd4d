"""An environment with ColossalAI, which cannot be that of the tests: its pins exclude today's torch."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from support import ROOT, warm_python
from support.require import absent, on_ci, user_cache

CONSTRAINTS = ROOT / "constraints-colossalai.txt"
TESTS = sysconfig.get_path("purelib")


@functools.cache
def colossalai_python() -> Path:
    """Its python: that of `make colossalai`; on CI, which must not skip, one that is kept in the user's cache."""
    made = ROOT / ".venv-colossalai/bin/python"
    if made.exists():
        return made
    if not on_ci():
        absent("there is no .venv-colossalai: run make colossalai")
    cache = user_cache()
    venv = cache / f"colossalai-{sys.version_info.major}.{sys.version_info.minor}"
    with (cache / "colossalai.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # It is made whole or anew: the mark comes last. The checkout that it is installed from may move.
        mark, wanted = venv / "made", "\n".join((CONSTRAINTS.read_text(), str(ROOT), TESTS, *packages()))
        if not mark.exists() or mark.read_text() != wanted:
            shutil.rmtree(venv, ignore_errors=True)
            make_beside_the_tests(venv)
            mark.write_text(wanted)
    return venv / "bin/python"


def server() -> Path:
    """The folder of warm_python.py with this python."""
    modules = ("torch.distributed", "torch.distributed.run", "jobgen.train.__main__", "peft", "bitsandbytes")
    return warm_python.server(str(colossalai_python()), modules)


def path() -> str:
    """The folders of this python and the launchers, as on PATH."""
    return f"{server()}:{colossalai_python().parent}"


def packages() -> list[str]:
    """The packages of the tests' environment, with their versions."""
    return sorted(path.name for path in Path(TESTS).glob("*.dist-info"))


def make_beside_the_tests(venv: Path) -> None:
    """Run `make colossalai` where the packages of the tests are seen: only those that must differ are installed."""
    own = Path(sysconfig.get_path("purelib", vars={"base": str(venv)}))
    own.mkdir(parents=True)
    (own / "tests.pth").write_text(f"{TESTS}\n")
    make = ["make", "colossalai", f"COLOSSALAI={venv}", f"PYTHON={sys.executable}"]
    # Of a negative option pip takes "false" for yes. The tests import a part of what is installed.
    quick = dict.fromkeys(("PIP_NO_COMPILE", "PIP_NO_WARN_CONFLICTS", "PIP_NO_BUILD_ISOLATION"), "false")
    done = subprocess.run(make, cwd=ROOT, env=os.environ | quick, capture_output=True, text=True, check=False)
    if done.returncode:
        absent(f"make colossalai failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    for command in ("accelerate", "torchrun"):
        _, body = Path(sys.executable).with_name(command).read_text().split("\n", 1)
        made = venv / "bin" / command
        made.write_text(f"#!{venv}/bin/python\n{body}")
        made.chmod(0o755)
