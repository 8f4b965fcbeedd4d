"""python -m benchmarks.gpu [--out DIR] [--device cpu --tiny] [PART...]: run the parts and write the results.

Exit status: 0 done, 1 a result is wrong or a part failed, 2 there is no GPU, or a part does not exist.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.gpu.parts import PARTS
from benchmarks.gpu.rows import Row, read, table, write

ROOT = Path(__file__).resolve().parents[2]


def main(argv: Sequence[str]) -> int:
    asked = parser().parse_args(argv)
    names = asked.parts or list(PARTS)
    if reason := refusal(asked.device, asked.tiny, names):
        print(f"benchmarks.gpu: {reason}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # it must end its parts, too
    began, granted, rows = time.monotonic(), 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            granted += PARTS[name].seconds
            left = granted * (10 if asked.tiny else 1) - (time.monotonic() - began)
            print(f"benchmarks.gpu: {name}: {PARTS[name].about}", file=sys.stderr, flush=True)
            rows += run(name, asked.device, asked.tiny, left, Path(folder) / name)
            facts = {
                "device": asked.device,
                "tiny": asked.tiny,
                "seconds": round(time.monotonic() - began, 1),
            }
            write(asked.out, rows, facts)  # after each part: the benchmark may be ended at any time
    print(table(rows), end="")
    print(f"benchmarks.gpu: {facts['seconds']} s; written: {asked.out}/gpu.md and gpu.json", file=sys.stderr)
    return int(any(row.verdict == "wrong" for row in rows))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    made.add_argument("--out", type=Path, default=Path("benchmark-gpu"), metavar="DIR", help="of the results")
    made.add_argument("--device", default="cuda", choices=("cuda", "rocm", "cpu"))
    made.add_argument("--tiny", action="store_true", help="small models and few steps, to try the benchmark")
    made.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    return made


def refusal(device: str, tiny: bool, names: Sequence[str]) -> str:
    """Return the reason why the benchmark cannot run; '' if it can."""
    if unknown := [name for name in names if name not in PARTS]:
        return f"no part {unknown[0]}: there are {', '.join(PARTS)}"
    for package in ("torch", "numpy"):
        if not importlib.util.find_spec(package):
            return f"the Python package {package} is not installed in {sys.prefix}"
    if device == "cpu":
        return "" if tiny else "--device cpu needs --tiny: the models are too large for a CPU"
    import torch

    if not torch.cuda.is_available():
        return "torch finds no GPU on this host; --device cpu --tiny tries the benchmark without one"
    return ""


def run(name: str, device: str, tiny: bool, seconds: float, folder: Path) -> list[Row]:
    """Run a part in a process of its own. Return its rows, and one for an early end."""
    if seconds < 5:
        return [Row(name, PARTS[name].about, "its time was used by earlier parts", verdict="left out")]
    folder.mkdir()
    out, errors = folder / "rows.jsonl", folder / "errors.txt"
    command = [sys.executable, "-m", "benchmarks.gpu.child", name, device, str(int(tiny)), str(out)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "JOBGEN_ACCELERATOR": device, "PYTHONPATH": path}
    if tiny:
        env["TORCHDYNAMO_DISABLE"] = "1"  # to compile these models takes minutes on a CPU
    with open(errors, "w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
        )
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            late = Row(name, "the rest of this part", f"not done in {seconds:.0f} s", verdict="left out")
            return [*read(out), late]
        finally:
            with suppress(ProcessLookupError):  # the part, and processes that it has left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status == 0:
        return read(out)
    said = [line for line in errors.read_text(errors="replace").splitlines() if line.strip()]
    return [
        *read(out),
        Row(name, "the part failed", (said or [f"status {status}"])[-1][:300], verdict="wrong"),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
