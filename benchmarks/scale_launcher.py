"""The simulated launcher of benchmarks/scale.py, a separate program: ``scale_launcher.py ... bash rank.sh``.

It runs the ranks of the first node as mpirun would. It copies the files that they leave in the attempt for
all other nodes, with the names of these hosts and the numbers of their ranks. It writes to $SCALE_TIMES the
CPU times, in seconds, of the script before this program and of the launcher itself.
"""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
from pathlib import Path

PER_NODE, PER_FOLDER = 8, 400  # ranks


def main() -> None:
    script = _cpu_of(os.getppid())
    run = Path(os.environ["JOBGEN_RUN_DIR"])
    attempt = run / f"attempt-{os.environ['JOBGEN_ATTEMPT']}"
    hosts = (run / "hosts").read_text().split()
    before = set(attempt.rglob("*"))
    ranks = [subprocess.Popen(sys.argv[-2:], env=_environment(rank, len(hosts))) for rank in range(PER_NODE)]
    if failed := [rank.returncode for rank in ranks if rank.wait()]:
        sys.exit(failed[0])
    left = {path.relative_to(attempt): path.read_text() for path in set(attempt.rglob("*")) - before}
    for number, host in enumerate(hosts[1:], 1):
        for path, text in left.items():
            (attempt / _moved(str(path), number, host)).write_text(_renumbered(text, number, host))
    spent = sum(map(_own, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    Path(os.environ["SCALE_TIMES"]).write_text(json.dumps({"start": script, "launcher": spent}))


def _environment(rank: int, nodes: int) -> dict[str, str]:
    numbers = {"RANK": rank, "SIZE": nodes * PER_NODE, "LOCAL_RANK": rank, "LOCAL_SIZE": PER_NODE}
    return {**os.environ, **{f"OMPI_COMM_WORLD_{name}": str(value) for name, value in numbers.items()}}


def _moved(path: str, node: int, host: str) -> str:
    """Return the path on another node that corresponds to a path on the first node."""
    folder = f"nodes/{node * PER_NODE // PER_FOLDER}/"
    path = path.replace("nodes/0/", folder).replace(socket.gethostname(), host)
    return re.sub(r"rank-(\d+)", lambda rank: f"rank-{int(rank[1]) + node * PER_NODE}", path)


def _renumbered(text: str, node: int, host: str) -> str:
    """Return the text for another node.

    The first number of each line is that of a rank or of a process.
    """
    first = node * PER_NODE
    numbered = re.sub(r"(?m)^(\D*)(\d+)", lambda word: f"{word[1]}{int(word[2]) + first}", text)
    return numbered.replace(socket.gethostname(), host)


def _cpu_of(process: int) -> float:
    """Return the CPU time of a process and of its ended children, in seconds."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


def _own(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
