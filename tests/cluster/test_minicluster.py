"""The test cluster itself: what the other tests rely on."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.cluster import CLUSTER_DIR, Cluster, shared_cluster
from support.require import need_cluster, need_command

SHOW_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"
SHOW_PROCESS = """
import json, os, socket, sys
facts = {"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ), "host": socket.gethostname()}
facts["input"] = sys.stdin.read()
print(json.dumps(facts))
"""


def pbs_script(nodes: int, body: str) -> str:
    return f"#!/bin/bash\n#PBS -l nodes={nodes}:ppn=2\n#PBS -l walltime=00:05:00\n{body}\n"


def two_by_two(hosts: Sequence[str]) -> bool:
    """Whether these are two hosts, twice each; which ones depends on the jobs of other tests."""
    return len(hosts) == 4 and hosts[0] == hosts[1] != hosts[2] == hosts[3]


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


# ------------------------------------------------------------------------------------------------ hosts


def test_every_host_has_a_name_and_an_address_of_its_own(slurm_cluster: Cluster) -> None:
    names = [slurm_cluster.exec(host, ["hostname"]).stdout.strip() for host in slurm_cluster.hosts]
    addresses = [slurm_cluster.exec(host, ["hostname", "-I"]).stdout.strip() for host in slurm_cluster.hosts]
    assert names == list(slurm_cluster.hosts)
    assert len(set(addresses)) == len(addresses)


def test_exec_keeps_directory_environment_arguments_and_status(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    argv = ["sh", "-c", 'printf "%s|%s|%s" "$PWD" "$X" "$1"; exit 7', "sh", "a b\n$(id)"]
    done = slurm_cluster.exec("node2", argv, cwd=tmp_path, env={"X": "it's"}, check=False)
    assert (done.stdout, done.returncode) == (f"{tmp_path}|it's|a b\n$(id)", 7)


def test_hosts_reach_each_other_by_ssh_and_pdsh(slurm_cluster: Cluster) -> None:
    assert slurm_cluster.exec("node1", ["ssh", "node3", "hostname; echo $HOME"]).stdout.split() == [
        "node3",
        str(slurm_cluster.home),
    ]
    done = slurm_cluster.exec("head", ["pdsh", "-w", "node[1-3]", "hostname"], env={"PDSH_RCMD_TYPE": "ssh"})
    assert sorted(done.stdout.splitlines()) == [f"{node}: {node}" for node in slurm_cluster.nodes]


def test_the_machine_outside_sees_nothing_of_it(slurm_cluster: Cluster) -> None:
    assert "10.213.77." not in Path("/etc/hosts").read_text()
    links = subprocess.run(["ip", "-o", "address"], capture_output=True, text=True, check=True).stdout
    assert "10.213.77." not in links


def test_up_is_done_when_it_is_up(slurm_cluster: Cluster) -> None:
    before = slurm_cluster.exec("node1", ["stat", "-c", "%Y", "/run/munge/munge.socket.2"]).stdout
    slurm_cluster.up()
    assert slurm_cluster.exec("node1", ["stat", "-c", "%Y", "/run/munge/munge.socket.2"]).stdout == before


def test_clusters_are_independent_and_a_host_can_die(tmp_path: Path, slurm_cluster: Cluster) -> None:
    need_cluster()
    other = Cluster(tmp_path / "other")
    other.up()
    try:
        assert other.status()
        other.kill("node2")
        assert not other.status()
        assert slurm_cluster.status()
    finally:
        other.down()
    assert not other.status()
    assert slurm_cluster.status()


def test_a_cluster_without_users_goes_down_by_itself(tmp_path: Path) -> None:
    need_cluster()
    user = f"""
import os, signal, sys
sys.path.insert(0, {str(CLUSTER_DIR.parent)!r})
from pathlib import Path
from support.cluster import shared_cluster
with shared_cluster(Path({str(tmp_path)!r}), "slurm") as cluster:
    assert cluster.status()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", user], check=False)
    assert wait_until(lambda: not (tmp_path / "run").exists())
    assert not Cluster(tmp_path).status()


def test_the_last_user_takes_the_cluster_down(tmp_path: Path) -> None:
    need_cluster()
    with shared_cluster(tmp_path, "slurm") as first:
        with shared_cluster(tmp_path, "slurm") as second:
            assert second.status()
        assert first.status()
    assert not first.status()


# ------------------------------------------------------------------------------------------------ Slurm


def test_a_job_runs_on_two_nodes(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2\nsrun hostname | sort\npwd\n"
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.ok
    *hosts, cwd = job.output.splitlines()
    assert two_by_two(hosts)
    assert cwd == str(tmp_path)


def test_a_job_finds_the_running_python(slurm_cluster: Cluster, tmp_path: Path) -> None:
    job = slurm_cluster.wait(slurm_cluster.sbatch("#!/bin/bash\ncommand -v python3\n", tmp_path))
    assert job.output.strip() == str(Path(sys.executable).with_name("python3"))


@pytest.mark.parametrize(
    ("body", "exit_code", "state"),
    [("exit 7", 7, "FAILED"), ("kill -9 $$", 137, "FAILED"), ("true", 0, "COMPLETED")],
)
def test_the_status_of_a_job(
    slurm_cluster: Cluster, tmp_path: Path, body: str, exit_code: int, state: str
) -> None:
    job = slurm_cluster.wait(slurm_cluster.sbatch(f"#!/bin/bash\n{body}\n", tmp_path))
    assert (job.exit_code, job.state) == (exit_code, state)


def test_output_in_a_directory_with_blanks(slurm_cluster: Cluster, tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.mkdir()
    job = slurm_cluster.wait(slurm_cluster.sbatch("#!/bin/bash\necho häß >&2\n", place, "--output=x %j.log"))
    assert job.output == "häß\n"
    assert job.output_path == place / f"x {job.id}.log"


def test_a_job_that_takes_too_long_is_cancelled(slurm_cluster: Cluster, tmp_path: Path) -> None:
    job_id = slurm_cluster.sbatch("#!/bin/bash\nsleep 60\n", tmp_path)
    with pytest.raises(TimeoutError, match=rf"job {job_id} is"):
        slurm_cluster.wait(job_id, timeout=1)
    assert slurm_cluster.wait(job_id, timeout=20).state == "CANCELLED"


def test_devices_can_be_asked_for(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = "#!/bin/bash\necho $CUDA_VISIBLE_DEVICES\n"
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path, "--nodes=2", "--gpus-per-node=4"))
    assert job.output.strip() == "0,1,2,3"
    assert slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path, "--nodes=2", "--gres=npu:8")).ok


@pytest.mark.parametrize("mpirun", ["mpirun", "/usr/bin/mpirun"])
def test_mpirun_reaches_both_nodes(slurm_cluster: Cluster, tmp_path: Path, mpirun: str) -> None:
    need_command(mpirun)
    script = f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2\n{mpirun} -np 4 hostname\n"
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    assert two_by_two(sorted(job.output.split()))


# ------------------------------------------------------------------------------------------------ PBS


def test_a_pbs_job_has_a_node_file_and_nothing_of_slurm(pbs_cluster: Cluster, tmp_path: Path) -> None:
    body = f"cat $PBS_NODEFILE\npwd\npython3 -c '{SHOW_ENVIRONMENT}'"
    job_id = pbs_cluster.qsub(pbs_script(2, body), tmp_path)
    job = pbs_cluster.wait(job_id)
    *nodes, cwd, shown = job.output.splitlines()
    env = json.loads(shown)
    assert two_by_two(nodes)
    assert cwd == str(pbs_cluster.home)
    assert env["PBS_JOBID"] == f"{job_id}.head"
    assert env["PBS_O_WORKDIR"] == str(tmp_path)
    assert env["PBS_ENVIRONMENT"] == "PBS_BATCH"
    assert not [name for name in env if re.match("SLURM|CUDA_VISIBLE|PBS_NP$", name)]


def test_select_gives_the_ranks_of_each_chunk(pbs_cluster: Cluster, tmp_path: Path) -> None:
    script = "#!/bin/bash\n#PBS -l select=2:ncpus=4:mpiprocs=2\ncat $PBS_NODEFILE\n"
    job = pbs_cluster.wait(pbs_cluster.qsub(script, tmp_path))
    assert two_by_two(job.output.split())


def test_array_jobs_know_their_index(pbs_cluster: Cluster, tmp_path: Path) -> None:
    script = f'#!/bin/bash\necho "$PBS_JOBID $PBS_ARRAY_INDEX" >"{tmp_path}/out.$PBS_ARRAY_INDEX"\n'
    job_id = pbs_cluster.qsub(script, tmp_path, "-J", "0-1")
    expected = {f"{job_id}[{index}].head {index}\n" for index in (0, 1)}
    assert wait_until(lambda: {path.read_text() for path in tmp_path.glob("out.*")} == expected)


# ------------------------------------------------------------------------------- the stand-in of pbs_tmrsh


def tmrsh(cluster: Cluster, directory: Path, *arguments: str) -> list[tuple[int, str]]:
    """Status and output of ``pbs_tmrsh`` with each of these arguments, on the two hosts $HERE and $OTHER."""
    body = "export EXPORTED=yes\nHERE=$(head -n 1 $PBS_NODEFILE)\nOTHER=$(tail -n 1 $PBS_NODEFILE)\n"
    for number, words in enumerate(arguments):
        body += f"pbs_tmrsh {words} >{directory}/output.{number} 2>&1\necho $? >{directory}/status.{number}\n"
    job = cluster.wait(cluster.qsub(pbs_script(2, body), directory))
    assert job.ok, job.output
    numbers = range(len(arguments))
    outputs = [(directory / f"output.{number}").read_text() for number in numbers]
    return [(int((directory / f"status.{number}").read_text()), outputs[number]) for number in numbers]


def test_tmrsh_options_may_stand_on_both_sides_of_the_host(pbs_cluster: Cluster, tmp_path: Path) -> None:
    options = ["$OTHER", "-n $OTHER", "$OTHER -n", "-l root $OTHER -n", "-n -l root $OTHER", "$OTHER -l root"]
    here, *others = tmrsh(pbs_cluster, tmp_path, *(f"{words} hostname" for words in ["$HERE", *options]))
    assert here[0] == 0
    assert here[1].strip() in pbs_cluster.nodes
    assert here != others[0]
    assert others == [others[0]] * len(options)


def test_tmrsh_starts_a_bare_process(pbs_cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "show.py"
    program.write_text(SHOW_PROCESS)
    words = ["a b", "it's", "$(id)", "", "*", "new\nline", "back\\slash", ";", "--flag", "-n", "ü", "a=b"]
    command = shlex.join([sys.executable, str(program), *words])
    [(status, output)] = tmrsh(pbs_cluster, tmp_path, f"$OTHER {command} <<<input")
    assert status == 0, output
    facts = json.loads(output)
    assert facts["argv"] == words
    assert (facts["cwd"], facts["input"]) == (str(pbs_cluster.home), "")
    env = facts["env"]
    env.pop("LC_CTYPE", None)  # Python's own doing
    assert env.pop("PBS_JOBID").endswith(".head")
    assert env == {
        "HOME": str(pbs_cluster.home),
        "PATH": "/bin:/usr/bin",
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "USER": "root",
    }


def test_tmrsh_status(pbs_cluster: Cluster, tmp_path: Path) -> None:
    cases = {
        "$OTHER sh -c 'exit 9'": (9, ""),
        "$OTHER 'hostname; id'": (127, "hostname; id"),  # not a command line but a name
        "head hostname": (1, "head is not a host of job"),
        "$OTHER": (2, "usage"),
        "-x $OTHER hostname": (2, "usage"),
        "-l": (2, "usage"),
        "": (2, "usage"),
    }
    results = tmrsh(pbs_cluster, tmp_path, *cases)
    for arguments, (status, output), (expected, says) in zip(cases, results, cases.values(), strict=True):
        assert status == expected, arguments
        assert says in output
        assert "uid=" not in output


def test_tmrsh_works_in_jobs_only(pbs_cluster: Cluster) -> None:
    done = pbs_cluster.exec("node1", ["pbs_tmrsh", "node2", "hostname"], check=False)
    assert done.returncode == 1
    assert "PBS_JOBID" in done.stderr


@pytest.mark.parametrize("mpirun", ["mpirun", "/usr/bin/mpirun"])
def test_tmrsh_can_be_the_remote_shell_of_mpirun(pbs_cluster: Cluster, tmp_path: Path, mpirun: str) -> None:
    need_command(mpirun)
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nhost=$1\nshift\nexec pbs_tmrsh "$host" /bin/sh -c "$*"\n')
    agent.chmod(0o755)
    body = (
        f"export OMPI_MCA_plm_rsh_agent={agent} PRTE_MCA_plm_ssh_agent={agent} X='a;$(id)'\n"
        f"uniq $PBS_NODEFILE | sed 's/$/ slots=2/' >{tmp_path}/hosts\n"
        f"{mpirun} -np 4 --hostfile {tmp_path}/hosts -x X sh -c 'echo \"$(hostname) $X\"'\n"
    )
    job = pbs_cluster.wait(pbs_cluster.qsub(pbs_script(2, body), tmp_path))
    assert job.ok, job.output
    hosts, values = zip(*(line.split() for line in sorted(job.output.splitlines())), strict=True)
    assert two_by_two(hosts)
    assert set(values) == {"a;$(id)"}
