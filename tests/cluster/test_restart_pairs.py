"""Restart in place beside other parts of a job: a rank dies in the first attempt."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from support import boxes, jobs
from support.cluster import Cluster, Job
from support.pbs import PbsCluster
from support.processes import gone
from support.story import AnyCluster, finish, path_for

SMI = Path(__file__).parents[1] / "support" / "nvidia-smi.sh"
TWO = ("--nodes", "2", "--ranks-per-node", "1", "--accelerator", "cpu", "--cpus-per-rank", "1")
DIES = 'echo "$JOBGEN_ATTEMPT $RANK" >> "$JOBGEN_RUN_DIR/seen"; ((RANK)) || [[ $JOBGEN_ATTEMPT != 1 ]] || kill -9 $$'


def ran(
    cluster: AnyCluster, folder: Path, *options: object, program: str = DIES, path: str = "", **more: str
) -> Job:
    """Run a job, whose processes are gone after it."""
    place = shlex.quote(path or path_for("torchrun", folder))
    (folder / "path.sh").write_text(f"export PATH={place}:$PATH\n" + "".join(more.values()))
    words = ("--no-preflight", "--source", folder / "path.sh", *options)
    script = jobs.render(*cluster.words, "--restarts", "2", *words, program=["bash", "-c", program])
    done = finish(cluster, cluster.submit(script, folder))
    assert not gone(folder)
    return done


def attempts(run: Path) -> list[str]:
    """Return the attempts of a run, each with its last event."""
    names = sorted(path.name for path in run.glob("attempt-*"))
    return [
        f"{name}: {(run / name / 'events').read_text().splitlines()[-1].partition(' ')[2]}" for name in names
    ]


def seen(run: Path) -> list[str]:
    return sorted((run / "seen").read_text().splitlines())


ONCE = ["attempt-1: ended 137", "attempt-2: ended 0"]


@pytest.mark.parametrize(
    "launch", [("srun",), ("torchrun", "--remote", "ssh"), ("mpirun", "--remote", "ssh")], ids=" ".join
)
def test_each_way_to_the_nodes(slurm_cluster: Cluster, launch: tuple[str, ...]) -> None:
    folder = slurm_cluster.folder("reach")
    done = ran(slurm_cluster, folder, *TWO, "--launcher", *launch)
    assert done.ok, done.output
    run = jobs.run_dir(folder / "runs")
    assert attempts(run) == ONCE
    assert seen(run)[-2:] == ["2 0", "2 1"]


def test_nodes_that_differ(openpbs_cluster: PbsCluster) -> None:
    folder = openpbs_cluster.folder("uneven")
    sizes = ("--nodes", "1x1+1x2", "--accelerator", "cpu", "--cpus-per-rank", "1")
    done = ran(openpbs_cluster, folder, *sizes, "--launcher", "torchrun")
    assert done.ok, done.output
    run = jobs.run_dir(folder / "runs")
    assert attempts(run) == ONCE
    assert seen(run)[-3:] == ["2 0", "2 1", "2 2"]


def test_a_task_of_an_array_starts_again(slurm_cluster: Cluster) -> None:
    """One task restarts, by itself."""
    folder = slurm_cluster.folder("array")
    program = f"[[ $JOBGEN_TASK == 1 ]] || exit 0; {DIES}"
    done = ran(slurm_cluster, folder, *TWO, "--array", "0-1%1", "--launcher", "srun", program=program)
    for task in (0, 1):
        job = finish(slurm_cluster, f"{done.id}_{task}")
        assert job.ok, job.output
    [run] = (folder / "runs").iterdir()
    assert attempts(run / "task-0") == ["attempt-1: ended 0"]
    assert attempts(run / "task-1") == ONCE


def test_a_requeue_when_no_restart_is_left(slurm_cluster: Cluster) -> None:
    """The count of restarts begins again in the next allocation."""
    folder = slurm_cluster.folder("requeue")
    program = 'echo "$JOBGEN_ATTEMPT" > "$JOBGEN_RUN_DIR/saved-step"; ((JOBGEN_ATTEMPT == 5)) || kill -9 $$'
    done = ran(slurm_cluster, folder, *TWO, "--launcher", "srun", "--requeue", "1", program=program)
    assert done.ok, done.output
    assert "not restarted in place: none of 2 restarts is left" in done.output
    ends = [one.partition("ended ")[2] for one in attempts(jobs.run_dir(folder / "runs"))]
    assert ends == ["137", "137", "75", "137", "0"]


def test_a_container_starts_again(slurm_cluster: Cluster) -> None:
    folder = slurm_cluster.folder("box")
    image, path = boxes.image(folder), boxes.stand_ins(folder / "bin", "apptainer")
    box = ("--container", "apptainer", "--image", image, *boxes.binds())
    program = f"[[ -e /mark ]] || exit 9; {DIES}"
    done = ran(
        slurm_cluster, folder, *TWO, "--launcher", "srun", *box, program=program, path=f"{path}:/usr/bin:/bin"
    )
    assert done.ok, done.output
    assert attempts(jobs.run_dir(folder / "runs")) == ONCE


def test_commands_before_and_after_run_once(slurm_cluster: Cluster) -> None:
    """They run once."""
    folder = slurm_cluster.folder("once")
    words = ("--before", "echo before >> once", "--after-block", "echo after $JOBGEN_STATUS >> once")
    done = ran(slurm_cluster, folder, *TWO, "--launcher", "srun", *words)
    assert done.ok, done.output
    assert attempts(jobs.run_dir(folder / "runs")) == ONCE
    assert (folder / "once").read_text().splitlines() == ["before", "after 0"]


def test_each_attempt_has_telemetry(slurm_cluster: Cluster) -> None:
    """Each attempt has samples of its own."""
    folder = slurm_cluster.folder("telemetry")
    (folder / "smi").mkdir()
    (folder / "nvidia-smi").write_bytes(SMI.read_bytes())
    (folder / "nvidia-smi").chmod(0o755)
    sizes = ("--nodes", "2", "--gpus-per-node", "2", "--ranks-per-node", "1", "--gpu-telemetry")
    program = f"{DIES}; sleep 3"
    more = {"smi": f"export PATH={folder}:$PATH SMI_PLACE={folder}/smi\n"}
    done = ran(slurm_cluster, folder, *sizes, "--launcher", "srun", program=program, **more)
    assert done.ok, done.output
    run = jobs.run_dir(folder / "runs")
    assert attempts(run) == ONCE
    for attempt in ("attempt-1", "attempt-2"):
        files = sorted((run / attempt).glob("nodes/0/*.devices"))
        assert [path.read_text().splitlines()[0] for path in files] == ["# 2 nvidia-smi"] * 2


STEPS = """
[resources]
nodes = 2
ranks_per_node = 2
cpus_per_rank = 1
accelerator = "cpu"
[launch]
launcher = "srun"
[[step]]
command = ["bash", "-c", "echo first >> order"]
[[step]]
name = "server"
command = ["bash", "-c", "echo server >> order; sleep 1; touch ready; exec sleep 300"]
cores = 1
ranks_per_node = 1
nodes = 1
ready = { file = "ready" }
ends = "with trainer"
[[step]]
name = "trainer"
command = ["bash", "-c", '''PROGRAM''']
cores = 1
ranks_per_node = 1
starts = "after server is ready"
"""


def test_a_server_begins_again_with_its_trainer(slurm_cluster: Cluster) -> None:
    """The first step has finished; the server begins again with its trainer."""
    folder = slurm_cluster.folder("steps")
    text = STEPS.replace("PROGRAM", DIES.replace('"$JOBGEN_RUN_DIR/seen"', "seen"))
    (folder / "job.toml").write_text(text)
    script = jobs.render(*slurm_cluster.words, "--job", folder / "job.toml", "--restarts", "2")
    done = finish(slurm_cluster, slurm_cluster.sbatch(script, folder))
    assert done.ok, done.output
    assert (folder / "order").read_text().split() == ["first"] * 4 + ["server"] * 2
    assert attempts(jobs.run_dir(folder / "runs")) == ONCE
    assert not gone(folder)
