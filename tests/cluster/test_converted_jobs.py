"""Scripts written by hand, converted, and submitted: Slurm's to OpenPBS and Torque, PBS's to Slurm and Torque."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.jobs import jobgen
from support.pbs import PbsCluster

# What every rank says: its place and size, as MPI's own process manager tells it.
RANK = """#!/bin/bash
echo "rank ${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID} of ${OMPI_COMM_WORLD_SIZE:-$SLURM_NTASKS} on $(hostname)" \\
  "in $PWD with $GREETING"
${OMPI_COMM_WORLD_RANK:+sleep 1}  # see test_conversions.py
"""
PBS = """#!/bin/bash
#PBS -N hello
#PBS -l select=2:ncpus=2:mpiprocs=2
#PBS -l place=scatter
#PBS -l walltime=00:05:00
#PBS -j oe
set -euo pipefail
cd "$PBS_O_WORKDIR"
export GREETING=hello
echo "slots: $(tr '\\n' ' ' < "$PBS_NODEFILE")"
echo "submitted in $PBS_O_WORKDIR, job ${PBS_JOBID%%.*}"
mpirun -np 4 --hostfile "$PBS_NODEFILE" -x GREETING ./rank.sh
"""
SLURM = """#!/bin/bash
#SBATCH --job-name=hello
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:05:00
set -euo pipefail
export GREETING=hello
echo "hosts: $(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\\n' ' ')"
echo "$SLURM_NNODES nodes, $SLURM_NTASKS tasks, submitted in $SLURM_SUBMIT_DIR"
srun ./rank.sh
"""


def converted(text: str, target: str, directory: Path) -> str:
    rank = directory / "rank.sh"
    rank.write_text(RANK)
    rank.chmod(0o755)
    done = jobgen("convert", "-", "--to", target, stdin=text)
    assert "cannot be translated" not in done.stderr
    assert done.returncode == 0
    return done.stdout


def check_ranks(output: str, directory: Path) -> None:
    lines = sorted(line for line in output.splitlines() if line.startswith("rank "))
    hosts = [line.split()[5] for line in lines]
    where = f"in {directory} with hello"
    assert lines == [f"rank {rank} of 4 on {hosts[rank]} {where}" for rank in range(4)]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]


def test_a_pbs_script_runs_under_slurm(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = converted(PBS, "slurm", tmp_path).replace("--mpi=pmix", "--mpi=none")  # bash is no MPI program
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    assert re.search(r"^slots: (node\d) \1 (?!\1)(node\d) \2 ", job.output, re.MULTILINE), job.output
    assert f"submitted in {tmp_path}, job {job.id}\n" in job.output
    assert job.output_path.name == f"hello.o{job.id}"
    check_ranks(job.output, tmp_path)


def with_mpirun(script: str, directory: Path) -> str:
    """The script with what its site has to add: the venv's mpirun, and its way to the other nodes without ssh."""
    agent = directory / "agent"
    agent.write_text(
        "#!/bin/bash\nhost=$1\nshift\n"
        'if command -v pbs_tmrsh >/dev/null; then exec pbs_tmrsh "$host" /bin/sh -c "$*"; fi\n'
        'exec pbsdsh -h "$host" /bin/sh -c "$*"\n'
    )
    agent.chmod(0o755)
    lines = [f"export {name}={agent}" for name in ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")]
    lines += [
        f"export PATH={Path(sys.executable).parent}:$PATH",
        "export OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_no_tree_spawn=1",
        "export OMPI_MCA_plm=rsh PRTE_MCA_plm=ssh",
    ]
    return script.replace("set -euo pipefail\n", "set -euo pipefail\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize(("name", "target"), [("openpbs", "pbspro"), ("torque", "torque")])
def test_a_slurm_script_runs_under_pbs(request: pytest.FixtureRequest, name: str, target: str) -> None:
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder("converted")
    script = with_mpirun(converted(SLURM, target, folder), folder)
    job = cluster.wait(cluster.submit(script, folder))
    assert job.ok, job.output
    assert re.search(rf"hosts: {cluster.nodes[0][:-1]}. {cluster.nodes[0][:-1]}. ", job.output)
    assert f"2 nodes, 4 tasks, submitted in {folder}\n" in job.output
    check_ranks(job.output, folder)


@pytest.mark.parametrize(("name", "target"), [("openpbs", "pbspro"), ("torque", "torque")])
def test_the_nodes_are_those_of_the_submission(
    request: pytest.FixtureRequest, name: str, target: str
) -> None:
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder("converted")
    script = with_mpirun(converted(SLURM.replace("#SBATCH --nodes=2\n", ""), target, folder), folder)
    option = {"pbspro": "select=2:ncpus=2:mpiprocs=2", "torque": "nodes=2:ppn=2"}[target]
    assert f"#PBS -l {option.replace('=2:', '=1:', 1)}\n" in script
    job = cluster.wait(cluster.submit(script, folder, "-l", option))
    assert job.ok, job.output
    assert f"2 nodes, 4 tasks, submitted in {folder}\n" in job.output
    check_ranks(job.output, folder)


def test_a_pbs_script_runs_under_torque(torque_cluster: PbsCluster) -> None:
    folder = torque_cluster.folder("converted")
    script = converted(PBS, "torque", folder)
    assert "#PBS -l nodes=2:ppn=2\n" in script
    job = torque_cluster.wait(torque_cluster.submit(with_mpirun(script, folder), folder))
    assert job.ok, job.output
    assert re.search(r"slots: (tqn.) \1 (tqn.) \2 ", job.output)
    check_ranks(job.output, folder)


# The nodes differ: five ranks on the first, and four on the second, which do not fit on one node of the labs.
CHUNKS = PBS.replace("select=2:ncpus=2:mpiprocs=2", "select=1:ncpus=5:mpiprocs=5+1:ncpus=4:mpiprocs=4")
CHUNKS = CHUNKS.replace("-np 4", "-np 9")
COMPONENTS = """#!/bin/bash
#SBATCH --job-name=hello --time=00:05:00
#SBATCH --nodes=1 --ntasks-per-node=5
#SBATCH hetjob
#SBATCH --nodes=1 --ntasks-per-node=4
set -euo pipefail
export GREETING=hello
echo "submitted in $SLURM_SUBMIT_DIR"
srun --het-group=0-1 ./rank.sh
"""


def check_differing(output: str, directory: Path, shares: Sequence[int] = (5, 4)) -> None:
    lines = sorted(line for line in output.splitlines() if line.startswith("rank "))
    hosts = [line.split()[5] for line in lines]
    assert lines == [f"rank {rank} of 9 on {hosts[rank]} in {directory} with hello" for rank in range(9)]
    assert [len([*ranks]) for _, ranks in groupby(hosts)] == [*shares]
    assert len({*hosts}) == 2


def test_chunks_that_differ_run_as_components_of_slurm(each_slurm: Cluster) -> None:
    folder = each_slurm.folder("chunks")
    script = converted(CHUNKS, "slurm", folder).replace("--mpi=pmix", "--mpi=none")
    job = each_slurm.wait(each_slurm.sbatch(script, folder))
    assert job.ok, job.output
    assert re.search(r"^slots: (node\d )\1{4}(?!\1)(node\d )\2{3}$", job.output, re.MULTILINE), job.output
    check_differing(job.output, folder)


@pytest.mark.parametrize(("name", "target"), [("openpbs", "pbspro"), ("torque", "torque")])
def test_components_of_slurm_run_as_chunks(request: pytest.FixtureRequest, name: str, target: str) -> None:
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder("components")
    script = with_mpirun(converted(COMPONENTS, target, folder), folder)
    job = cluster.wait(cluster.submit(script, folder))
    assert job.ok, job.output
    assert f"submitted in {folder}\n" in job.output
    check_differing(job.output, folder, (5, 4) if name == "openpbs" else (4, 5))  # pbs_sched: the last first


SHOWN = """#!/bin/bash
#SBATCH --job-name=shown
#SBATCH --nodes=2 --ntasks-per-node=2
set -eu
mkdir -p work
cd work
export GREETING="hello $1"
ID=$SLURM_JOB_ID
touch a.dat b.dat
hostname > first
srun bash -c 'echo "rank $SLURM_PROCID: $0 $* in $PWD with $GREETING"' "$1" "$SLURM_JOB_NAME" *.dat
echo "after: $1 $(cat first) $((ID - SLURM_JOB_ID))"
"""


def test_a_slurm_script_runs_as_a_job_file(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """With an argument, without a time limit: its ranks and its other commands print what they printed."""
    printed = []
    text = SHOWN
    for name in ("by-hand", "converted"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "job.sh").write_text(text)
        done = slurm_cluster.exec("head", ["sbatch", "--parsable", folder / "job.sh", "it's"], cwd=folder)
        job = slurm_cluster.wait(done.stdout.strip())
        assert job.ok, job.output
        lines = [line for line in job.output.splitlines() if line.startswith(("rank ", "after:"))]
        printed.append([line.replace(str(folder), "HERE") for line in sorted(lines)])
        (tmp_path / "job.toml").write_text(converted(SHOWN, "toml", tmp_path))
        done = jobgen("slurm", "--job", tmp_path / "job.toml")
        assert done.returncode == 0
        text = done.stdout
    assert printed[0] == printed[1]
    assert len(printed[0]) == 5
    limits = [line for line in (text.splitlines()) if line.startswith("#SBATCH --time")]
    assert limits == []


SERIAL = {
    "slurm": """#!/bin/bash
#SBATCH --job-name=serial
#SBATCH --nodes=2 --ntasks-per-node=2
#SBATCH --time=5
""",
    "torque": """#!/bin/bash
#PBS -N serial
#PBS -l nodes=2:ppn=2
#PBS -l walltime=00:05:00
#PBS -l pmem=100mb
cd $PBS_O_WORKDIR
""",
}
BODY = """export GREETING=hello MASTER_PORT=1234
echo "before on $(hostname)"
for word in first "second one"; do ./alone.sh "$word"; done
echo "after with $?"
"""
ALONE = """#!/bin/bash
echo "$1 on $(hostname) in $PWD with $GREETING $MASTER_PORT ${WORLD_SIZE-no world}"
"""


@pytest.mark.parametrize("source", SERIAL)
@pytest.mark.parametrize("name", ["slurm", "openpbs", "torque"])
def test_a_script_without_a_launcher_runs_once_on_two_nodes(
    request: pytest.FixtureRequest, source: str, name: str
) -> None:
    cluster: Cluster | PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder("serial")
    (folder / "alone.sh").write_text(ALONE)
    (folder / "alone.sh").chmod(0o755)
    (folder / "job.toml").write_text(converted(SERIAL[source] + BODY, "toml", folder))
    done = jobgen(*cluster.words, "--job", folder / "job.toml")
    assert (done.returncode, "job_launcher_name=none" in done.stdout) == (0, True), done.stderr
    job = cluster.wait(cluster.submit(done.stdout, folder))
    assert job.ok, job.output
    begun = re.findall(r"^before on (\S+)$", job.output, re.MULTILINE)
    said = [f"{word} on {begun[0]} in {folder} with hello 1234 no world" for word in ("first", "second one")]
    lines = [line for line in job.output.splitlines() if line.startswith(("first ", "second ", "after "))]
    assert (len(begun), lines) == (1, [*said, "after with 0"]), job.output
