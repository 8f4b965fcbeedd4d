"""The cost of a job of many nodes, with 8 ranks per node.

These are its files, the CPU time of its script before and after the launcher, the CPU time of the commands
that read the run, and the time in which the script starts something on many hosts.

The scheduler, the launcher (scale_launcher.py) and the other hosts are simulated. JOBGEN_PYTHON names another
interpreter, whose jobgen is measured instead, such as that of another checkout.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks import scale_launcher
from benchmarks.measure import Figure, cpu_seconds
from benchmarks.scale_launcher import PER_NODE

NODES = (64, 1024, 10_000)
STARTS, START = 1000, 0.05  # hosts, and the seconds that each takes to start something
PYTHON = os.environ.get("JOBGEN_PYTHON", sys.executable)
OPTIONS = "--accelerator cpu --ranks-per-node 8 --cpus-per-rank 1 --remote ssh --no-preflight"
MPIRUN = f"""\
[[ $1 != --version ]] || {{ echo 'mpirun (Open MPI) 4.1.4'; exit; }}
exec {sys.executable} {scale_launcher.__file__} "$@"
"""
# It records when it was called and when the host has started node.sh, and runs as long as node.sh would.
SSH = f"""\
[[ $* == *node.sh* ]] && what=start || what=look
begun=$EPOCHREALTIME
read -rt {START} <> "$SCALE_PIPE"
[[ ! $* =~ JOBGEN_ARRIVAL=([A-Za-z0-9_./-]+) ]] || : >> "${{BASH_REMATCH[1]}}"
echo "$what $begun $EPOCHREALTIME" >> "$SCALE_TIMES"
[[ $what == look ]] || read -rt 600 <> "$SCALE_PIPE"
exit 255
"""
# The launcher of the first node fails when all others have started.
TORCHRUN = f"""\
for i in {{1..600}}; do
  (($(grep -c start "$SCALE_TIMES") < {STARTS - 1})) || break
  sleep 0.1
done
exit 1
"""


def figures() -> Iterator[Figure]:
    for nodes in NODES:
        with tempfile.TemporaryDirectory() as top:
            yield from _job(Path(top), nodes)
    with tempfile.TemporaryDirectory() as top:
        yield from _starts(Path(top))


def _job(top: Path, nodes: int) -> Iterator[Figure]:
    at = f"{nodes:,} nodes x 8 ranks"
    spent = _submit(top, nodes, "mpirun")
    times = json.loads((top / "times").read_text())
    [run] = (top / "runs").iterdir()
    folders = Counter(path.parent for path in run.rglob("*"))
    yield Figure(f"{at}: files of the job", sum(path.is_file() for path in run.rglob("*")), "files")
    yield Figure(f"{at}: the most in one folder", max(folders.values()), "files")
    yield Figure(f"{at}: the script before the launcher, CPU time", times["start"], "s")
    yield Figure(f"{at}: the script after it, CPU time", spent - times["start"] - times["launcher"], "s")
    yield from _readers(run, at, nodes * PER_NODE - 1)


def _readers(run: Path, at: str, last: int) -> Iterator[Figure]:
    def read(*words: str, what: str = "") -> Figure:
        spent = cpu_seconds([PYTHON, "-m", "jobgen", words[0], str(run), *words[1:]], cwd=str(run.parent))
        return Figure(f"{at}: jobgen {words[0]}{what}, CPU time", spent, "s")

    yield read("status")
    yield read("logs", "--rank", str(last))
    yield read("report", "-o", "page.html")
    [events] = run.glob("attempt-1/events")
    events.write_text(events.read_text().replace("ended 0", "ended 1"))
    yield read("report", "-o", "page.html", "--force", what=" of a failed job")


def _starts(top: Path) -> Iterator[Figure]:
    _submit(top, STARTS, "torchrun")
    notes = [line.split() for line in (top / "times").read_text().splitlines()]
    for what, said in (("start", "the launcher of each started"), ("look", "each asked whether it answers")):
        times = [(float(begun), float(done)) for kind, begun, done in notes if kind == what]
        took = max(done for _, done in times) - min(begun for begun, _ in times)
        yield Figure(f"{STARTS:,} hosts of {START * 1000:.0f} ms: {said}", took, "s")


def _submit(top: Path, nodes: int, launcher: str) -> float:
    """Run a job as PBS would. Return the CPU time of all its processes on this host, in seconds."""
    (top / "bin").mkdir()
    for name, text in {"mpirun": MPIRUN, "ssh": SSH, "torchrun": TORCHRUN, "a.out": "echo hello\n"}.items():
        (top / "bin" / name).write_text(f"#!/bin/bash\n{text}")
        (top / "bin" / name).chmod(0o755)
    (top / "times").touch()
    os.mkfifo(top / "pipe")
    (top / "hosts").write_text("".join(f"node{i:05}.cluster\n" * PER_NODE for i in range(nodes)))
    words = (*OPTIONS.split(), "--nodes", str(nodes), "--launcher", launcher, "-o", "job.sh", "--", "a.out")
    subprocess.run([PYTHON, "-m", "jobgen", "pbs", *words], cwd=top, check=True)
    env = {
        **os.environ,
        "PATH": f"{top / 'bin'}:/usr/bin:/bin",
        "SCALE_TIMES": str(top / "times"),
        "SCALE_PIPE": str(top / "pipe"),  # nobody writes into it
        "PBS_JOBID": "4711.server",
        "PBS_NODEFILE": str(top / "hosts"),
        "PBS_O_WORKDIR": str(top),
        "PBS_CONF_FILE": "/dev/null",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(top / "output", "w") as output:
        done = subprocess.run(["bash", "job.sh"], cwd=top, env=env, stdout=output, stderr=output)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode == 0) == (launcher == "mpirun"), (top / "output").read_text()[-2000:]
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
