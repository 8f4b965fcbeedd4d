"""python -m benchmarks.gpu.child PART DEVICE TINY FILE: run one part in this process, and write its rows."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from benchmarks.gpu import rows
from benchmarks.gpu.parts import PARTS


def main(name: str, device: str, tiny: bool, out: Path) -> None:
    module = importlib.import_module(f"benchmarks.gpu.{PARTS[name].module}")
    for row in module.rows(name, device, tiny):
        rows.append(out, row)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "1", Path(sys.argv[4]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # as jobgen.train does: threads of the collective library may abort an orderly end
