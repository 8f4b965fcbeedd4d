"""The script's own lines that make and check a hostfile of 10,000 hosts, each listed 8 times,
against the loop of ``while read`` that copied scripts have."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, medians, wall_seconds
from jobgen.config import read_spec
from jobgen.plan import resolve
from jobgen.rendering import render

HOSTS, REPEATS, RUNS = 10_000, 8, 5
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
    script = render(
        resolve(read_spec("pbs", {"nodes": str(HOSTS), "gpus_per_node": "8", "launcher": "mpirun"}))
    )
    block = script[script.index("# ---- the hosts") : script.index("# ---- the rendezvous")]
    with tempfile.TemporaryDirectory() as top:
        (Path(top) / "nodes").write_text("".join(f"node{i:05}.cluster\n" * REPEATS for i in range(HOSTS)))
        begin = 'set -euo pipefail\njob_die() { echo "$2" >&2; exit "$1"; }\n'
        (Path(top) / "ours.sh").write_text(f"{begin}job_dir=.\njob_nodefile=nodes\n{block}")
        (Path(top) / "loop.sh").write_text(LOOP)
        pairs = [
            (wall_seconds(["bash", "ours.sh"], cwd=top), wall_seconds(["bash", "loop.sh"], cwd=top))
            for _ in range(RUNS)
        ]
        assert (Path(top) / "hostfile").read_text() == (Path(top) / "hostfile_by_loop").read_text()
    ours, loop = medians(*zip(*pairs, strict=True))
    yield Figure("hostfile of 10,000 hosts x 8 lines, made and checked", ours, "s", loop, "while read")
