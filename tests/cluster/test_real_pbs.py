"""The real OpenPBS and Torque that other tests submit to: what they give to a job, and that a test sees its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pbs import PbsCluster
from support.processes import Process, gone, processes_of
from support.waiting import wait_until

TWO = {
    "openpbs": "#PBS -l select=2:ncpus=2:mpiprocs=2\n#PBS -l place=scatter\n",
    "torque": "#PBS -l nodes=2:ppn=2\n",
}
TASK = {"openpbs": "pbs_tmrsh $OTHER", "torque": "pbsdsh -h $OTHER"}
OTHER = "OTHER=$(tail -n 1 $PBS_NODEFILE)\n"


@pytest.fixture(params=["openpbs", "torque"])
def cluster(request: pytest.FixtureRequest) -> PbsCluster:
    found: PbsCluster = request.getfixturevalue(f"{request.param}_cluster")
    return found


def submit(cluster: PbsCluster, folder: Path, body: str) -> str:
    return cluster.submit(f"#!/bin/bash\n{TWO[cluster.name]}#PBS -j oe\n{OTHER}{body}\n", folder)


def test_a_job_has_two_nodes_and_its_status_and_output_are_seen(cluster: PbsCluster) -> None:
    folder = cluster.folder("two")
    job = cluster.wait(submit(cluster, folder, "cat $PBS_NODEFILE; hostname; id -un; exit 7"))
    *nodes, host, user = job.output.splitlines()
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    assert set(nodes) < set(cluster.nodes)
    assert (host, user) == (nodes[0], "pbsu")
    assert (job.exit_code, job.ok) == (7, False)
    assert job.output_path.parent == folder


def test_what_is_started_on_the_other_node(cluster: PbsCluster) -> None:
    """It gets nothing that the script exported, and only OpenPBS tells its status."""
    folder = cluster.folder("task")
    script = f'#!/bin/bash\nhostname; echo "${{EXPORTED-nothing}} $PWD $PATH"; touch {folder}/seen; exit 9\n'
    (folder / "task").write_text(script)
    (folder / "task").chmod(0o755)
    # PBS does not wait for the output of a task, which comes from the other node.
    task = f"{TASK[cluster.name]} {folder}/task; status=$?; sleep 5"
    body = f"export EXPORTED=yes\necho $OTHER\n{task}\necho status $status"
    job = cluster.wait(submit(cluster, folder, body))
    assert job.ok
    assert (folder / "seen").exists()
    other, *_ = job.output.splitlines()
    assert f"{other}\n" in job.output.partition("\n")[2]
    assert f"nothing {cluster.home} " in job.output
    assert f"status {9 if cluster.name == 'openpbs' else 0}\n" in job.output


def test_processes_are_found_on_every_node_until_they_have_ended(cluster: PbsCluster) -> None:
    folder = cluster.folder("left")  # PBS ends what a task has started when the task ends, thus --wait
    sleeper = f"bash -c 'cd {folder}; touch $(hostname); exec sleep 300'"
    job = submit(
        cluster,
        folder,
        f"setsid {sleeper} & {TASK[cluster.name]} /usr/bin/setsid --wait {sleeper} & sleep 300",
    )

    def sleepers() -> list[Process]:
        return [found for found in processes_of(folder) if found.command.startswith("sleep")]

    try:
        assert wait_until(lambda: len(list(folder.glob(f"{cluster.nodes[0][:-1]}?"))) == 2, 120)
        hosts = {path.name for path in folder.glob(f"{cluster.nodes[0][:-1]}?")}
        assert wait_until(lambda: {found.host for found in sleepers()} == hosts, 120)
    finally:
        cluster.cancel(job)
    assert cluster.wait(job).exit_code in (271, 128 + 15)  # bash may see first that its sleep was killed
    for found in sleepers():  # a session of their own
        cluster.exec(found.host, ["kill", "-KILL", str(found.pid)], check=False)
    assert gone(folder) == []


def test_a_node_dies_and_comes_back(cluster: PbsCluster) -> None:
    """With eight cores of each of its nodes the job is alone on them."""
    folder = cluster.folder("dies")
    whole = {name: text.replace("=2:mpi", "=8:mpi").replace("ppn=2", "ppn=8") for name, text in TWO.items()}
    body = f"{OTHER}echo $OTHER >{folder}/other\nsleep 300"
    job = cluster.submit(f"#!/bin/bash\n{whole[cluster.name]}{body}\n", folder)
    try:
        assert wait_until(lambda: (folder / "other").exists() and (folder / "other").read_text(), 120)
        other = (folder / "other").read_text().strip()
        cluster.kill(other)
        with pytest.raises(Exception, match="exit status"):
            cluster.exec("head", ["ping", "-c", "1", "-W", "1", other])
    finally:
        cluster.purge(job)
    cluster.revive(other)
    assert gone(folder, 120) == []  # the first node of Torque looks every 45 s whether its job is still there
    assert cluster.wait(job).id == job
