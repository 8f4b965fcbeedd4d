"""Run the named benchmarks, or all of them.

Each figure is printed on one line: ours, the alternative, the ratio.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from benchmarks import (
    check_speed,
    checkpoint_kills,
    checkpoint_saving,
    deadline,
    hostfile,
    many_runs,
    preflight,
    rendering,
    scale,
    startup,
    sweeps,
    training_start,
    training_throughput,
    web,
)
from benchmarks.measure import Figure

BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "startup": startup.figures,
    "rendering": rendering.figures,
    "sweeps": sweeps.figures,
    "hostfile": hostfile.figures,
    "scale": scale.figures,
    "many_runs": many_runs.figures,
    "check_speed": check_speed.figures,
    "training_start": training_start.figures,
    "training_throughput": training_throughput.figures,
    "deadline": deadline.figures,
    "preflight": preflight.figures,
    "checkpoint_saving": checkpoint_saving.figures,
    "checkpoint_kills": checkpoint_kills.figures,
    "web": web.figures,
}


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in BENCHMARKS]:
        print(f"no benchmark {unknown[0]}: there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        for figure in BENCHMARKS[name]():
            print(figure.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
