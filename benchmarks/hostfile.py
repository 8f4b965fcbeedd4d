"""Seconds to make and check a hostfile of 10,000 hosts with the functions of the runtime.

Each host is listed 8 times. They are compared with a loop of ``while read``, as in many copied scripts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import jobgen.templates

from benchmarks.measure import Figure, medians, wall_seconds

HOSTS, REPEATS, RUNS = 10_000, 8, 5
BEGIN = f"""
set -euo pipefail
job_dir=. job_nodes={HOSTS} job_ranks_per_node={REPEATS}
job_die() {{ echo "$2" >&2; exit "$1"; }}
job_list_hosts() {{ cat nodes; }}
"""
LOOP = """
declare -A seen
: > hostfile_by_loop
while read -r host; do
  if [[ -z ${seen[$host]:-} ]]; then
    seen[$host]=1
    echo "$host slots=8" >> hostfile_by_loop
  fi
done < nodes
"""


def figures() -> Iterator[Figure]:
    functions = Path(jobgen.templates.__path__[0], "runtime/hostfile.sh").read_text()
    with tempfile.TemporaryDirectory() as top:
        (Path(top) / "nodes").write_text("".join(f"node{i:05}.cluster\n" * REPEATS for i in range(HOSTS)))
        (Path(top) / "ours.sh").write_text(BEGIN + functions + "job_make_hostfile\n")
        (Path(top) / "loop.sh").write_text(LOOP)
        pairs = [
            (wall_seconds(["bash", "ours.sh"], cwd=top), wall_seconds(["bash", "loop.sh"], cwd=top))
            for _ in range(RUNS)
        ]
        assert (Path(top) / "hostfile").read_text() == (Path(top) / "hostfile_by_loop").read_text()
    ours, loop = medians(*zip(*pairs, strict=True))
    yield Figure("hostfile of 10,000 hosts x 8 lines, made and checked", ours, "s", loop, "while read")
