"""python -m benchmarks.gpu images|language [--out DIR] [--device cpu --tiny]: measure, and write the results.

Exit status: 0 done, 1 a result is wrong or a part failed, 2 there is no GPU, or a package is missing.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.gpu.rows import Row, table, write

LIMIT = 240  # seconds, after which nothing further is measured


def main(argv: Sequence[str]) -> int:
    options = parser().parse_args(argv)
    if reason := refusal(options.device, options.tiny):
        print(f"benchmarks.gpu: {reason}", file=sys.stderr)
        return 2
    os.environ["JOBGEN_ACCELERATOR"] = options.device
    began, rows = time.monotonic(), []
    for row in measured(options, began):
        rows.append(row)
        seconds = round(time.monotonic() - began, 1)
        print(f"{seconds:6} {row}", file=sys.stderr, flush=True)
        facts = {"program": options.program, "tiny": options.tiny, "seconds": seconds}
        write(options.out, options.program, rows, facts)
    print(table(rows), end="", flush=True)
    return int(any(row.verdict == "wrong" for row in rows))


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("program", choices=("images", "language"))
    parser.add_argument(
        "--out", type=Path, default=Path("benchmark-gpu"), metavar="DIR", help="of the results"
    )
    parser.add_argument("--parts", metavar="NAME,...", help="only these parts of the program")
    parser.add_argument("--size", default="124m", choices=("124m", "1.3b"), help="of the language model")
    parser.add_argument("--device", default="cuda", choices=("cuda", "rocm", "cpu"))
    parser.add_argument(
        "--tiny", action="store_true", help="small models and few steps, to try the benchmark"
    )
    return parser


def refusal(device: str, tiny: bool) -> str:
    """Return the reason why the benchmark cannot run; '' if it can."""
    for package in ("torch", "numpy"):
        if not importlib.util.find_spec(package):
            return f"the Python package {package} is not installed in {sys.prefix}"
    if device == "cpu":
        return "" if tiny else "--device cpu needs --tiny: the models are too large for a CPU"
    import torch

    if not torch.cuda.is_available():
        return "torch finds no GPU on this host; --device cpu --tiny tries the benchmark without one"
    return ""


def measured(options: argparse.Namespace, began: float) -> Iterator[Row]:
    """Yield the rows of the program. A part that fails does not end the others."""
    from benchmarks.gpu import ours

    program = importlib.import_module(f"benchmarks.gpu.{options.program}")
    here = ours.alone()
    yield Row("environment", "Python, device", f"{platform.python_version()}, {ours.name(here)}")
    for package in ("torch", "deepspeed"):
        yield Row("environment", package, version(package))
    end = began + LIMIT * (10 if options.tiny else 1)
    selection = options.parts and options.parts.split(",")
    for part in program.PARTS:
        if selection and part.__name__ not in selection:
            continue
        try:
            yield from until(end, part(here, options.tiny, options.size))
        except TimeoutError:
            yield Row(part.__name__, "the rest", "the time is used", verdict="left out")
        except ModuleNotFoundError as error:
            yield Row(part.__name__, "the rest", f"{error.name} cannot be imported", verdict="left out")
        except Exception as error:
            text = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
            yield Row(part.__name__, "the rest", text, verdict="wrong")
        ours.forget(here)


def until(end: float, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows, and raise TimeoutError when the end has come."""
    while time.monotonic() < end:
        if (row := next(rows, None)) is None:
            return
        yield row
    raise TimeoutError


def version(package: str) -> str:
    """Return the version of a package, or the reason why it cannot be imported."""
    try:
        return str(getattr(importlib.import_module(package), "__version__", "?"))
    except Exception as error:  # a package may fail in any way on a machine that it was not made for
        return f"cannot be imported: {type(error).__name__}: {error}".partition("\n")[0]


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # as jobgen.train does: threads of the collective library may abort an orderly end
