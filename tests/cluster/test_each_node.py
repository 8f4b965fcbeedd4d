"""Commands on every node, staged files and caches on the disks of the nodes, on each scheduler and whatever the end.

The hosts of a test cluster share the files of the machine: each gets two small file systems of its own, as its disks.
"""

from __future__ import annotations

import hashlib
import io
import shlex
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import jobs
from support.cluster import SLURMS, Cluster, Job
from support.disks import Disks
from support.processes import gone
from support.story import path_for
from support.waiting import wait_for

pytestmark = pytest.mark.timeout(600)

THREE = (
    "--nodes",
    "3",
    "--ranks-per-node",
    "1",
    "--accelerator",
    "cpu",
    "--cpus-per-rank",
    "1",
    "--no-preflight",
)
MEMBER = b"in the archive\n" * 1000
LARGE = bytes(range(256)) * 4096 * 3
BYE = 'echo "after $JOBGEN_STATUS on $JOBGEN_HOST"'
STAYS = "trap 'sleep 0.3; exit 75' USR1; touch seen-$RANK; while :; do sleep 0.1; done"


@pytest.fixture(scope="module", params=[*SLURMS, "openpbs", "torque"])
def disks(request: pytest.FixtureRequest) -> Iterator[Disks]:
    made = Disks(request.getfixturevalue(f"{request.param}_cluster"))
    with ExitStack() as stack:
        stack.callback(made.unmount)
        made.mount()
        yield made


class Case:
    """A job on three nodes."""

    def __init__(self, disks: Disks, name: str) -> None:
        self.disks, self.cluster = disks, disks.cluster
        self.folder = self.cluster.folder(name)
        self.home = self.folder / "home"
        self.home.mkdir(mode=0o777)
        self.home.chmod(0o777)

    def submit(self, *options: object, program: str, disk: Path | None = None) -> str:
        """Submit it; its caches are saved in its own folder."""
        (self.folder / "path.sh").write_text(
            f"export PATH={shlex.quote(path_for('mpirun5', self.folder))}:$PATH XDG_CACHE_HOME={self.home}\n"
            f"export OMPI_MCA_orte_tmpdir_base={self.folder}\n"
        )
        launcher = "srun" if isinstance(self.cluster, Cluster) else "mpirun"
        script = jobs.render(
            *(*self.cluster.words, *THREE, "--launcher", launcher, "--source", self.folder / "path.sh"),
            *("--local-dir", disk or self.disks.good, *options),
            program=("bash", "-c", program),
        )
        return self.cluster.submit(script, self.folder)

    def run(self, *options: object, program: str = "true", disk: Path | None = None) -> Job:
        return self.wait(self.submit(*options, program=program, disk=disk))

    def wait(self, job: str) -> Job:
        """Wait for its end, after which nothing of it may be on any node."""
        done = self.cluster.wait(job)
        assert not gone(self.folder)
        wait_for(lambda: not self.disks.files(), 10)
        return done

    def of_nodes(self, ending: str) -> dict[str, str]:
        """What is in the files of the nodes in the run directory."""
        place = jobs.run_dir(self.folder / "runs") / "attempt-1/on-nodes"
        return {host: (place / f"{host}.{ending}").read_text() for host in self.cluster.nodes}


@pytest.fixture
def case(disks: Disks, request: pytest.FixtureRequest) -> Case:
    return Case(disks, request.node.originalname)


def sources(folder: Path) -> tuple[Path, Path]:
    """An archive and a file to stage."""
    archive, file = folder / "data.tar.gz", folder / "model.bin"
    with tarfile.open(archive, "w:gz") as packed:
        member = tarfile.TarInfo("data/part one.txt")
        member.size = len(MEMBER)
        packed.addfile(member, io.BytesIO(MEMBER))
    file.write_bytes(LARGE)
    return archive, file


def test_each_node_is_prepared_once_and_left_as_it_was(case: Case) -> None:
    archive, file = sources(case.folder)
    seen = 'sha256sum < "$JOBGEN_STAGE/data/part one.txt"; sha256sum < $JOBGEN_STAGE/sub/m.bin'
    caches = "mkdir -p $TRITON_CACHE_DIR/k; echo $RANK >> $TRITON_CACHE_DIR/k/new; echo kept=$(cat $CUDA_CACHE_PATH/old)"
    (case.home / "old").mkdir()
    (case.home / "old/old").write_text("compiled before")
    (case.home / "old").chmod(0o755)
    before = 'echo "before on $JOBGEN_HOST, $COLOUR: $(ls $JOBGEN_STAGE | paste -sd " ")"; sleep 500 &'
    job = case.run(
        *("--env", "COLOUR=blue", "--setup", f"export CUDA_CACHE_PATH={case.home}/old"),
        *("--stage", archive, "--stage", f"{file}:sub/m.bin", "--local-caches"),
        *("--on-each-node", before, "--after-on-each-node", BYE),
        program=f"{seen}; {caches}",
    )
    assert job.ok, job.output
    assert "warning" not in job.output
    for content in (MEMBER, LARGE):
        assert job.output.count(hashlib.sha256(content).hexdigest()) == 3
    assert job.output.count("kept=compiled before") == 3
    hosts = case.cluster.nodes
    logs = {host: f"before on {host}, blue: data sub\nafter 0 on {host}\n" for host in hosts}
    assert case.of_nodes("log") == logs
    [store] = (case.home / "jobgen").glob("*.tar")
    with tarfile.open(store) as saved:
        [new] = [one for one in saved if one.name == "./triton/k/new"]
        assert saved.extractfile(new).read() in (b"0\n", b"1\n", b"2\n")  # type: ignore[union-attr]
        assert "./cuda_kernels/old" in saved.getnames()


def test_commands_that_fail_and_hang_are_named_with_their_nodes(case: Case) -> None:
    first, second, third = case.cluster.nodes
    code = f"""case $JOBGEN_HOST in
{second}) echo 'no license'; (trap "" TERM; sleep 501) & exit 3 ;;
{third}) echo waiting; trap '' TERM; while :; do sleep 1; done ;;
esac"""
    job = case.run("--node-limit", "3s", "--on-each-node", code, "--after-on-each-node", f"{BYE}; exit 4")
    assert job.exit_code == 74, job.output
    assert f"{second}: on_each_node exited with status 3: no license" in job.output
    assert f"{third}: on_each_node did not end in 3 s, and was ended: waiting" in job.output
    assert f"warning: {first}: after_on_each_node exited with status 4: after 74 on {first}" in job.output
    assert "2 of 3 nodes are not ready" in job.output
    bad = (jobs.run_dir(case.folder / "runs") / "bad-hosts").read_text()
    assert sorted(line.split("\t")[0] for line in bad.splitlines()) == [second, third]


def test_a_node_with_a_full_disk_is_named(case: Case) -> None:
    _, file = sources(case.folder)
    job = case.run("--stage", file, "--after-on-each-node", BYE, disk=case.disks.bad)
    assert job.exit_code == 74, job.output
    second = case.cluster.nodes[1]
    assert f"{second}: staging of {file} exited with status 1: cp: error writing" in job.output
    assert "No space left on device" in job.output


def test_the_status_of_the_program_is_that_of_the_job(case: Case) -> None:
    job = case.run("--local-caches", "--after-on-each-node", BYE, program="exit 3")
    assert job.exit_code == 3, job.output
    assert set(case.of_nodes("log").values()) == {f"after 3 on {host}\n" for host in case.cluster.nodes}
    assert not list(case.home.glob("jobgen/*"))


@pytest.mark.parametrize("place", ["in the program", "before it"])
def test_a_deleted_job_leaves_nothing(case: Case, place: str) -> None:
    waits = "touch seen-$JOBGEN_HOST; sleep 502" if place == "before it" else "sleep 503 &"
    job = case.submit("--local-caches", "--on-each-node", waits, "--after-on-each-node", BYE, program=STAYS)
    wait_for(lambda: len(list(case.folder.glob("seen-*"))) == 3)
    case.cluster.cancel(job)
    case.wait(job)
    assert all("after " in text for text in case.of_nodes("log").values())


def test_the_time_limit_leaves_nothing(case: Case) -> None:
    """The program ignores every request: the scheduler ends it."""
    soon = "trap '' USR1 TERM; touch seen-$RANK; while :; do sleep 0.1; done"
    job = case.submit("--local-caches", "--walltime", "1m", "--on-each-node", "sleep 504 &", program=soon)
    case.wait(job)


def test_a_spare_node_replaces_one_with_a_bad_disk(case: Case) -> None:
    _, file = sources(case.folder)
    spare = ("--nodes", "2", "--spare-nodes", "1", "--preflight")
    job = case.run("--stage", file, *spare, program="echo rank on $(hostname)", disk=case.disks.bad)
    second = case.cluster.nodes[1]
    assert f"excluding {second}" in job.output
    assert job.ok, job.output
    assert job.output.count("rank on") == 2
    assert f"rank on {second}" not in job.output


def test_a_restart_in_place_finds_what_is_there(case: Case) -> None:
    """Files are not staged again, and no command is repeated; the caches of the attempt before are there."""
    (case.folder / "data").write_text("data")
    words = (
        "--restarts",
        "1",
        "--stage",
        case.folder / "data",
        "--local-caches",
        "--on-each-node",
        "echo each",
    )
    program = """[[ $(cat "$JOBGEN_STAGE/data") == data ]] || exit 9
        if [[ $JOBGEN_ATTEMPT == 1 ]]; then
          touch "$TRITON_CACHE_DIR/mine"
          ((RANK)) || kill -9 $$
        else
          [[ -e $TRITON_CACHE_DIR/mine ]] || exit 8
        fi"""
    done = case.run(*words, "--after-on-each-node", BYE, program=program)
    assert done.ok, done.output
    assert "restart 1 of 1, attempt 2" in done.output
    for host, text in case.of_nodes("log").items():
        assert text.count("each\n") == text.count(f"after 0 on {host}") == 1, text
