"""Commands on every node, staged files, caches and telemetry, all in one job, with each option that changes what a job is.

The table of docs/node-work.md names these cases.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from support import boxes, jobs
from support.cluster import Job
from support.disks import Disks
from support.processes import gone
from support.story import clean, finish, path_for

pytestmark = [pytest.mark.usefixtures("warm_python"), pytest.mark.timeout(600)]

STAND_IN = Path(__file__).parents[1] / "support" / "nvidia-smi.sh"
# Each rank finds what its node has got, and ends when the telemetry of its node has begun.
PROGRAM = """
: "${RANK:=0}"
if [[ -n ${JOBGEN_STAGE:-} ]]; then
  [[ $(< "$JOBGEN_STAGE/own/data.txt") == staged && $TRITON_CACHE_DIR == "$JOBGEN_LOCAL_DIR"/* ]] || exit 9
  echo compiled > "$TRITON_CACHE_DIR/$1-$RANK"
fi
for i in {1..100}; do [[ ! -s $SMI_PLACE/started-$(hostname) ]] || break; sleep 0.1; done
sleep 0.5
"""
LAST = 'echo "rank $RANK of $1 has used ${JOBGEN_STAGE:-nothing}" >> "$SMI_PLACE/../used"'
BEFORE = 'echo "before in $JOBGEN_ATTEMPT"'
AFTER = 'echo "after $JOBGEN_STATUS"'


class Pair(NamedTuple):
    """A job: its tables of the job file, its options, what its program does in addition, the number of its
    jobs, of ranks that end well, of nodes in each attempt, and of tools of telemetry on them. Without attempts it
    has the telemetry only."""

    tables: str = ""
    options: tuple[object, ...] = ()
    act: str = ""
    jobs: int = 1
    ranks: int = 4
    attempts: Sequence[int] = (2,)
    tools: Sequence[int] = (1, 1)


TWO = "[resources]\nnodes = 2\ngpus_per_node = 2\ncpus_per_node = 2\n"
ONE = "[resources]\nnodes = 1\ngpus_per_node = 4\ncpus_per_node = 4\n"
STEPS = """
[[step]]
name = "server"
command = ["bash", "{folder}/program.sh", "server"]
gpus = 1
ranks_per_node = 1
nodes = 1
[[step]]
name = "trainer"
command = ["bash", "{folder}/program.sh", "trainer"]
gpus = 1
ranks_per_node = 1
parallel = true
[[step]]
command = ["bash", "{folder}/program.sh", "last"]
ranks_per_node = 1
nodes = 1
"""
COMPONENTS = """
[resources]
cpus_per_rank = 1
[[component]]
ranks_per_node = 1
gpus_per_node = 1
[[component]]
nodes = 2
gpus_per_node = 2
"""
ONCE = "[[ -e $JOBGEN_RUN_DIR/../again-$RANK ]] || { touch $JOBGEN_RUN_DIR/../again-$RANK; exit %s; }"
PAIRS = {
    "steps": Pair(TWO + STEPS, tools=(3, 1)),
    "array": Pair(TWO, ("--array", "0-1"), jobs=2, ranks=8, attempts=(2, 2), tools=(2, 2)),
    "sweep": Pair(TWO + "[sweep]\nlr = [1, 2]\n", jobs=2, ranks=8, attempts=(2, 2), tools=(2, 2)),
    "requeue": Pair(TWO, ("--requeue", "1"), ONCE % 75, attempts=(2, 2), tools=(2, 2)),
    "restarts": Pair(TWO, ("--restarts", "1"), ONCE % 3, attempts=(2,), tools=(2, 2)),
    "container": Pair(TWO, ("--container", "apptainer")),
    "spare nodes": Pair(TWO, ("--spare-nodes", "1"), attempts=(3,)),
    "pack": Pair(ONE, ("--array", "0-3", "--pack", "4"), attempts=(), tools=(4,)),
    "site": Pair(TWO),
    "components": Pair(COMPONENTS, ranks=5, attempts=(3,), tools=(1, 1, 1)),
}


class Case:
    """The folder of a job, which has all that it needs."""

    def __init__(self, disks: Disks, name: str) -> None:
        self.disks, self.cluster = disks, disks.cluster
        self.folder = self.cluster.folder(name.replace(" ", "-"))
        self.pair, self.launcher = PAIRS[name], "srun" if self.cluster.name == "slurm" else "torchrun"
        self.folder.chmod(0o777)
        for name in ("home", "smi"):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(0o777)
        (self.folder / "program.sh").write_text(f"{PROGRAM}{self.pair.act}\n{LAST}\n")
        (self.folder / "data.txt").write_text("staged")
        with tarfile.open(self.folder / "own.tar", "w") as archive:
            archive.add(self.folder / "data.txt", "data.txt")
        self.path = path_for(self.launcher, self.folder)
        (self.folder / "nvidia-smi").write_bytes(STAND_IN.read_bytes())
        (self.folder / "nvidia-smi").chmod(0o755)

    def submit(self, *options: object) -> str:
        path = f"{self.folder}:{self.path}"
        (self.folder / "path.sh").write_text(
            f"export PATH={shlex.quote(path)}:$PATH SMI_PLACE={self.folder}/smi XDG_CACHE_HOME={self.folder}/home\n"
        )
        (self.folder / "job.toml").write_text(self.pair.tables.replace("{folder}", str(self.folder)))
        program = () if "[[step]]" in self.pair.tables else ("--", "bash", self.folder / "program.sh", "job")
        done = jobs.jobgen(
            *(
                *self.cluster.words,
                "--job",
                self.folder / "job.toml",
                "--launcher",
                self.launcher,
                "--walltime",
                "10m",
            ),
            *("--source", self.folder / "path.sh", *(() if "--site" in options else ("--gpu-telemetry",))),
            *(self.work() if self.pair.attempts and "--site" not in options else ()),
            *(() if "--spare-nodes" in self.pair.options else ("--no-preflight",)),
            *(*self.pair.options, *options, *program),
            cwd=self.folder,
        )
        assert done.returncode == 0, done.stderr
        return self.cluster.submit(done.stdout, self.folder)

    def work(self) -> tuple[object, ...]:
        """The options of the work on each node."""
        of_disks = ("--stage", f"{self.folder}/own.tar:own", "--local-caches", "--local-dir", self.disks.good)
        return (*of_disks, "--on-each-node", BEFORE, "--after-on-each-node", AFTER)

    def finish(self, job: str) -> list[Job]:
        """Wait for all jobs; with PBS the next attempt is another job."""
        if self.pair.jobs > 1:
            return [finish(self.cluster, f"{job}_{task}") for task in range(self.pair.jobs)]
        ended = finish(self.cluster, job)
        later = re.search(r"attempt 1 of 2; the next one is (\S+)", ended.output)
        return [ended, finish(self.cluster, later[1])] if later else [ended]

    def logs(self) -> list[list[str]]:
        """The logs of the commands, of each node of each attempt."""
        folders = sorted(self.folder.glob("runs/**/on-nodes"))
        return [[log.read_text() for log in sorted(one.glob("*.log"))] for one in folders]


def site_of(case: Case) -> Path:
    """The file of a site that has all the work."""
    file = case.folder / "site.toml"
    file.write_text(f"""
title = "Example"
scheduler = "slurm"
[directories]
local_caches = true
local_dir = "{case.disks.good}"
stage = ["{case.folder}/own.tar:own"]
[survival]
gpu_telemetry = true
[blocks]
on_each_node = {json.dumps(BEFORE)}
after_on_each_node = {json.dumps(AFTER)}
""")
    return file


SPARE = 'echo "before in $JOBGEN_ATTEMPT"; [[ $JOBGEN_HOST != *2 ]] || exit 5'
CASES = [("slurm", name) for name in PAIRS]
CASES += [(pbs, name) for pbs in ("openpbs", "torque") for name in ("steps", "requeue")]


@pytest.fixture(scope="module")
def disks(request: pytest.FixtureRequest) -> Iterator[Disks]:
    made = Disks(request.getfixturevalue(f"{request.param}_cluster"))
    with ExitStack() as stack:
        stack.callback(made.unmount)
        made.mount()
        yield made


@pytest.mark.parametrize(("disks", "name"), CASES, indirect=["disks"])
def test_a_pair_works(disks: Disks, name: str) -> None:
    case = Case(disks, name)
    pair, folder, options = case.pair, case.folder, ()
    if name == "container":
        case.path = boxes.stand_ins(folder / "bin", "apptainer")
        binds = (word for one in (*boxes.BINDS, folder) for word in ("--bind", one))
        options = ("--image", boxes.image(folder), *binds)
    elif name == "site":
        options = ("--site", site_of(case))
    elif name == "spare nodes":
        text = f'JOBGEN_ACCELERATOR=cpu exec {sys.executable} "$@"'  # the preflight finds no GPU
        case.path = f"{jobs.path_with(folder / 'bin', python3=text)}:{case.path}"
        options = ("--on-each-node", SPARE)
    job = case.submit(*options)
    try:
        ended = case.finish(job)
        left = gone(folder, 40)
    finally:
        clean(case.cluster, job, folder)
    output = "\n".join(one.output for one in ended)
    assert ended[-1].ok, output
    assert (left, disks.files()) == ([], "")
    used = (folder / "used").read_text()
    assert used.count(f"has used {disks.good}" if pair.attempts else "has used nothing") == pair.ranks, output
    logs = case.logs()
    assert [len(one) for one in logs] == list(pair.attempts), output
    assert all(text.count("before in") == text.count("after ") == 1 for one in logs for text in one), logs
    started = [path.read_text() for path in sorted((folder / "smi").iterdir())]
    assert sorted(text.count("--loop=") for text in started) == sorted(pair.tools), started
    if not pair.attempts:
        return
    [store] = (folder / "home/jobgen").glob("*.tar")
    with tarfile.open(store) as saved:
        assert any("./triton/" in member for member in saved.getnames())
