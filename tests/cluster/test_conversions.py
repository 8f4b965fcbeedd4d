"""Scripts, each on its own scheduler and converted on the other one: they must do the same there.

Compared are all files that a job writes, with the ids of jobs, the hosts and the directories of each cluster replaced.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.jobs import jobgen
from support.pbs import PbsCluster

pytestmark = [pytest.mark.xdist_group("conversions"), pytest.mark.timeout(600)]

INPUTS = {
    # What a module would do: a variable with blanks and several lines, and one that is not set before.
    "module.sh": "export FROM_MODULE='two words\nand a line' TOOL_PATH=/opt/tool/lib\n",
    "rank.sh": """#!/bin/bash
printf '%s\\n' "rank ${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID} of ${OMPI_COMM_WORLD_SIZE:-$SLURM_NTASKS} on $(hostname)\
 in $PWD: ${FROM_MODULE-none} ${TOOL_PATH-none} ${GREETING-none} $*"
${OMPI_COMM_WORLD_RANK:+sleep 1}  # Open MPI 5.0 may wait forever if ranks end while others are started on a busy machine
""",
}
# "[host:12] plm:ssh: Warning: setpgid(...)": a daemon of Open MPI 5 was faster than its parent.
NOISE = re.compile(r"srun: |\[\w+:\d+\] plm:ssh: Warning: setpgid")
SLURM = {
    "hosts": """#SBATCH --nodes=2 --ntasks-per-node=2
list=$SLURM_JOB_NODELIST
for host in $(scontrol show hostname "$list"); do echo "host $host"; done
echo "$SLURM_NNODES nodes, $SLURM_NTASKS tasks, $SLURM_NTASKS_PER_NODE on each, from $SLURM_SUBMIT_DIR in $PWD"
""",
    "environment": """#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
source ./module.sh
export GREETING="hello you"
srun ./rank.sh
""",
    "options": """#SBATCH -N 2 --tasks-per-node 2
SRUN_ARGS="--wait=60 --kill-on-bad-exit=1"
EXE=./rank.sh
srun $SRUN_ARGS --comment "a b" -K1 $EXE first
srun --ntasks-per-node=$SLURM_NNODES $EXE second
srun --export=ALL,GREETING=given -N 2 -n 2 ./rank.sh third  # without -N, srun may use a node that is free
GREETING=before srun ./rank.sh fourth
""",
    "one_host": """#SBATCH -N 2 -n 2
second=$(scontrol show hostnames | tail -n 1)
address=$(srun --nodes=1 --ntasks=1 -w "$second" hostname)
echo "the second is $address"
srun ./rank.sh all
""",
    "array": """#SBATCH --array=2-6:2
#SBATCH --output=task-%A_%a.log
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT from $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX"
[[ $SLURM_ARRAY_JOB_ID =~ ^[0-9]+$ ]] && echo "a number"
""",
    "list": """#SBATCH --array=2,3,7
#SBATCH --output=/dev/null
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT" > "file.$SLURM_ARRAY_TASK_ID"
""",
    "logs": """#SBATCH --job-name=named
#SBATCH --output=%x-%j.out --error=errors-%j
#SBATCH --chdir=sub
#SBATCH --export=ALL
echo "in $PWD"
echo "on standard error" >&2
""",
    "sizes": """#SBATCH -N 1 -n 2 -c 2 --mem-per-cpu=100M
#SBATCH --time=0-00:10
echo "$SLURM_CPUS_PER_TASK cores for each of $SLURM_NTASKS, ${SLURM_MEM_PER_NODE:-400} MB"
srun -n1 ./rank.sh alone
srun ./rank.sh both
""",
    "job_id": """#SBATCH --ntasks=1
port=$((10000 + SLURM_JOB_ID % 1000))
other=$(expr 20000 + $(echo -n $SLURM_JOBID | tail -c 2))
[[ $port =~ ^10[0-9]{3}$ && $other =~ ^200[0-9]{2}$ ]] && echo "two ports"
mkdir "run-$SLURM_JOB_ID" && echo "id ${SLURM_JOB_ID}" > "run-${SLURM_JOBID}/id.txt"
""",
    "dependency": """#SBATCH --dependency=afterok:999
#SBATCH --job-name=after
cat first.txt
echo "$SLURM_JOB_NAME has waited"
""",
    "ranks_of_nodes": """#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
export MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun bash -c 'echo "node $SLURM_NODEID of $SLURM_NNODES, rank $SLURM_PROCID on $(hostname), master $MASTER"'
echo "the script is rank $SLURM_PROCID"
""",
}
PBS = {
    "node_file": """#PBS -l select=2:ncpus=2:mpiprocs=2
#PBS -l place=scatter
cd "$PBS_O_WORKDIR"
echo "slots $(wc -l < "$PBS_NODEFILE"), hosts $(sort -u "$PBS_NODEFILE" | wc -l)"
sort "$PBS_NODEFILE"
""",
    "environment": """#PBS -l select=2:ncpus=2:mpiprocs=2
#PBS -l place=scatter
cd "$PBS_O_WORKDIR"
source ./module.sh
mpirun -np 4 --hostfile "$PBS_NODEFILE" -x FROM_MODULE -x TOOL_PATH -x GREETING=given ./rank.sh
""",
    "exports": """#PBS -N named
#PBS -l select=1:ncpus=1
#PBS -v GREETING=hello,TOOL_PATH=/opt/a,FROM_MODULE=x
#PBS -j oe
cd "$PBS_O_WORKDIR"
echo "$GREETING $TOOL_PATH $FROM_MODULE from $PBS_JOBNAME"
echo "on standard error" >&2
""",
    "log_directory": """#PBS -N filed
#PBS -l select=1
#PBS -o sub/
#PBS -e errors.txt
echo "on standard output"
echo "on standard error" >&2
""",
    "joined": """#PBS -N joined
#PBS -l select=1
#PBS -j eo
#PBS -o unused.txt
#PBS -e both.txt
echo "on standard output"
echo "on standard error" >&2
""",
    "array": """#PBS -N tasks
#PBS -J 0-4:2
#PBS -o task.^array_index^.log
#PBS -j oe
echo "task $PBS_ARRAY_INDEX"
echo "task $PBS_ARRAY_INDEX" > "$PBS_O_WORKDIR/file.$PBS_ARRAY_INDEX"
""",
    "job_id": """#PBS -l select=1:ncpus=1
#PBS -j oe
cd "$PBS_O_WORKDIR"
number=${PBS_JOBID%%.*}
[[ $((number % 100)) -lt 100 ]] && mkdir "run-$number" && echo "in $PWD" > "run-$number/out.txt"
""",
    "home": """#PBS -l select=1:ncpus=1
#PBS -j oe
echo "starts in $PWD"
cd "$PBS_O_WORKDIR" && echo "then in $PWD"
""",
    "dependency": """#PBS -W depend=afterok:999
#PBS -l select=1:ncpus=1
cat "$PBS_O_WORKDIR/first.txt"
""",
    "placement": """#PBS -l select=2:ncpus=4:mpiprocs=2:mem=200mb
#PBS -l place=scatter
cd "$PBS_O_WORKDIR"
echo "threads $OMP_NUM_THREADS"
mpirun -np 2 --hostfile "$PBS_NODEFILE" --map-by ppr:1:node ./rank.sh spread
mpirun -np 4 --hostfile "$PBS_NODEFILE" --map-by ppr:2:node --bind-to none ./rank.sh packed
mpirun --hostfile "$PBS_NODEFILE" --map-by ppr:1:node ./rank.sh each
mpirun --hostfile "$PBS_NODEFILE" ./rank.sh all
timeout 60 mpirun -np 1 --hostfile "$PBS_NODEFILE" ./rank.sh one
""",
    "threads": """#PBS -l select=2:ncpus=2:mpiprocs=1:ompthreads=2
#PBS -l place=scatter
cd "$PBS_O_WORKDIR"
echo "threads $OMP_NUM_THREADS"
mpirun -np 2 --hostfile "$PBS_NODEFILE" bash -c 'echo "rank $OMPI_COMM_WORLD_RANK on $(hostname)"; sleep 1'
""",
}
CASES = [("slurm", name) for name in SLURM] + [("pbspro", name) for name in PBS]
TASKS = {
    ("slurm", "array"): (2, 4, 6),
    ("slurm", "list"): (2, 3, 7),
    ("pbspro", "array"): (0, 2, 4),
}
OTHER = {"slurm": "pbspro", "pbspro": "slurm"}


@dataclass
class Submitted:
    """A job in a folder of its own, and its number."""

    cluster: Cluster | PbsCluster
    folder: Path
    job: str

    @property
    def number(self) -> str:
        return re.split(r"\D", self.job)[0]


def source(scheduler: str, name: str) -> str:
    head, _, body = {"slurm": SLURM, "pbspro": PBS}[scheduler][name].partition("\n")
    return f"#!/bin/bash\n{head}\n{body}"


def converted(text: str, target: str) -> str:
    done = jobgen("convert", "-", "--to", target, stdin=text)
    assert (done.returncode, "cannot be translated" in done.stderr) == (0, False), done.stderr
    return done.stdout


def submit(cluster: Cluster | PbsCluster, text: str, name: str) -> Submitted:
    """Submit a script with what its site adds: here the mpirun of the venv, and its way to the other nodes."""
    folder = cluster.folder(name)
    folder.chmod(0o777)
    (folder / "sub").mkdir()
    (folder / "sub").chmod(0o777)
    for file, content in {**INPUTS, "agent": AGENT}.items():
        (folder / file).write_text(content)
        (folder / file).chmod(0o755)
    if isinstance(cluster, PbsCluster):
        lines = text.split("\n")
        at = next(number for number, line in enumerate(lines) if line and line[0] != "#")
        text = "\n".join(
            [*lines[:at], SITE.format(folder=folder, python=Path(sys.executable).parent), *lines[at:]]
        )
    text = text.replace("--mpi=pmix", "--mpi=none")  # bash is no MPI program
    if "999" in text:
        begin = "#!/bin/bash\nsleep 2\n" + f"echo first > {folder}/first.txt\n"
        first = cluster.submit(begin, folder)
        text = text.replace("999", re.split(r"\D", first)[0])
    return Submitted(cluster, folder, cluster.submit(text, folder))


AGENT = '#!/bin/bash\nhost=$1\nshift\nexec pbs_tmrsh "$host" /bin/sh -c "$*"\n'
SITE = """export OMPI_MCA_plm_rsh_agent={folder}/agent PRTE_MCA_plm_ssh_agent={folder}/agent
export PATH={python}:$PATH
export OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_no_tree_spawn=1 OMPI_MCA_plm=rsh PRTE_MCA_plm=ssh"""


@pytest.fixture(scope="module")
def jobs(slurm_cluster: Cluster, openpbs_cluster: PbsCluster) -> Mapping[tuple[str, str], list[Submitted]]:
    """All jobs, submitted at once: the original first."""
    clusters = {"slurm": slurm_cluster, "pbspro": openpbs_cluster}
    found = {}
    for scheduler, name in CASES:
        text, other = source(scheduler, name), OTHER[scheduler]
        texts = {scheduler: text, other: converted(text, other)}
        found[scheduler, name] = [submit(clusters[one], text, name) for one, text in texts.items()]
    return found


def written(job: Submitted) -> dict[str, list[str]]:
    """The files of a job that are not empty, by their names, and their lines in order of the text."""
    found = {}
    for path in sorted(job.folder.rglob("*")):
        if (
            path.is_file()
            and path.name not in {*INPUTS, "agent", "job.sh", "first.txt"}
            and path.stat().st_size
        ):
            name = re.sub(
                rf"(?<=[oe/-]){job.number}(?!\d)(\.pbssrv)?", "ID", str(path.relative_to(job.folder))
            )
            text = (
                path.read_text().replace(str(job.folder), "DIRECTORY").replace(str(job.cluster.home), "HOME")
            )
            names = sorted(set(re.findall(rf"\b(?:{'|'.join(job.cluster.nodes)})\b", text)))
            for number, host in enumerate(names):
                text = text.replace(host, f"host{number}")
            lines = re.sub(rf"\bid {job.number}\b", "id ID", text).splitlines()
            found[name] = sorted(line for line in lines if not NOISE.match(line))
    return {name: lines for name, lines in found.items() if lines}


def own_log(name: str) -> str:
    """The name of a log that its scheduler chose."""
    return re.sub(r"^(slurm-ID\.out|job\.sh\.[oe]ID|STDIN\.[oe]ID|[\w.]+\.oID)$", "log", name)


@pytest.mark.parametrize(("scheduler", "name"), CASES)
def test_a_conversion_does_what_the_original_does(
    jobs: Mapping[tuple[str, str], list[Submitted]], scheduler: str, name: str
) -> None:
    both = jobs[scheduler, name]
    for one in both:
        tasks = TASKS.get((scheduler, name), ()) if isinstance(one.cluster, Cluster) else ()
        ended = [one.cluster.wait(job, 200) for job in [f"{one.job}_{task}" for task in tasks] or [one.job]]
        assert all(done.exit_code == 0 for done in ended), [done.output for done in ended]
    original, other = ({own_log(file): lines for file, lines in written(one).items()} for one in both)
    assert original == other
    assert original
