"""Jobs in containers, run for real: what gets in, what does not, and that signals reach the program.

Podman is the real one, also in the place of Docker, whose options it has; the other runtimes are stand-ins
(tests/support/runtime.py).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT, boxes, jobs
from support.processes import gone
from support.require import need_package

STOPPABLE = ROOT / "tests/support/stoppable.py"
SAY = 'echo "rank $RANK of $WORLD_SIZE: $(cat /mark), $PWD, $WORD, ${PYTHONPATH-no PYTHONPATH}, $OMP_NUM_THREADS"'
DEAF = "trap '' TERM INT USR1; touch up; sleep 300"
KINDS = ("podman", "docker", "apptainer", "singularity", "enroot", "shifter")


def runtime(tmp_path: Path, kind: str) -> tuple[str, str]:
    """The PATH on which it is, and an image for it."""
    if kind in ("podman", "docker"):
        return boxes.podman(tmp_path / "podman", kind)
    image = boxes.image(tmp_path)
    return boxes.stand_ins(tmp_path / "bin", kind), f"docker:{image}" if kind == "shifter" else str(image)


def start(tmp_path: Path, kind: str, *options: str, program: list[str]) -> subprocess.Popen[str]:
    path, image = runtime(tmp_path, kind)
    need_package("torch")
    work = tmp_path / "work"
    work.mkdir()
    binds = [] if kind == "shifter" else boxes.binds()
    script = jobs.render(
        *("local", "--ranks-per-node", "2", "--container", kind, "--image", image, *binds, *options),
        program=program,
    )
    (work / "job.sh").write_text(script)
    search = os.pathsep.join([path, str(Path(sys.executable).parent), "/usr/local/bin:/usr/bin:/bin"])
    site = ",".join((*boxes.BINDS, str(tmp_path)))
    return subprocess.Popen(
        ["bash", "job.sh"],
        env={"HOME": str(tmp_path), "PATH": search, "PYTHONPATH": "/host", "SITE_FS": site},
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize(
    ("launcher", "kind"),
    [*(("mpirun", kind) for kind in KINDS), ("torchrun", "podman"), ("torchrun", "apptainer")],
)
def test_every_rank_is_in_the_container(tmp_path: Path, launcher: str, kind: str) -> None:
    options = ("--launcher", launcher, "--env", 'WORD=it\'s "a" $word', "--cpus-per-rank", "3")
    job = start(tmp_path, kind, *options, program=["bash", "-c", SAY])
    output, _ = job.communicate(timeout=120)
    assert job.returncode == 0, output
    ranks = sorted(line for line in output.splitlines() if line.startswith("rank "))
    said = f'of 2: in the container, {tmp_path}/work, it\'s "a" $word, no PYTHONPATH, 3'
    assert ranks == [f"rank 0 {said}", f"rank 1 {said}"]


@pytest.mark.parametrize(
    ("launcher", "kind"),
    [
        *(("mpirun", kind) for kind in ("podman", "apptainer", "enroot")),
        *(("torchrun", "podman"), ("deepspeed", "apptainer")),
    ],
)
def test_a_signal_reaches_the_program(tmp_path: Path, launcher: str, kind: str) -> None:
    seen = tmp_path / "work/seen"
    job = start(
        tmp_path,
        kind,
        *("--launcher", launcher, "--walltime", "5m", "--signal", "USR1"),
        *jobs.env_options({"PROBE_DIR": seen}),
        program=["bash", "-c", f"mkdir -p {seen} && exec python3 {STOPPABLE}"],
    )
    deadline = time.monotonic() + 60
    while len(list(seen.glob("ready-*"))) < 2 and job.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    job.send_signal(signal.SIGUSR1)
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 75, output
    assert {path.read_text() for path in seen.glob("stopped-*")} == {"SIGUSR1 1"}, output


def test_no_container_outlives_a_job_that_was_killed(tmp_path: Path) -> None:
    job = start(tmp_path, "docker", "--launcher", "mpirun", program=["bash", "-c", DEAF])
    deadline = time.monotonic() + 60
    while not (tmp_path / "work/up").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    for _ in range(2):
        job.send_signal(signal.SIGTERM)
        time.sleep(2.1)  # until then it counts as the same one
    output, _ = job.communicate(timeout=60)
    assert job.returncode, output
    left = [str(tmp_path / "podman/bin/docker"), "ps", "--quiet"]
    assert subprocess.run(left, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.parametrize("kind", ["podman", "apptainer", "enroot"])
def test_a_variable_of_the_job_in_a_mount(tmp_path: Path, kind: str) -> None:
    (tmp_path / "of a job").mkdir()
    (tmp_path / "of a job/word").write_text("from the host")
    options = (
        "--launcher",
        "mpirun",
        "--expand",
        "--setup",
        f"data='{tmp_path}'",
        "--bind",
        "${data}/of a job:/inside:ro",
    )
    job = start(tmp_path, kind, *options, program=["cat", "/inside/word"])
    output, _ = job.communicate(timeout=60)
    assert (job.returncode, output.count("from the host")) == (0, 2), output


@pytest.mark.parametrize("kind", ["podman", "apptainer"])
def test_what_is_not_in_the_image_is_named(tmp_path: Path, kind: str) -> None:
    job = start(tmp_path, kind, "--launcher", "mpirun", program=["./nowhere"])
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 71
    assert "cannot run ./nowhere in the container" in output


def test_an_image_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = boxes.stand_ins(tmp_path / "bin", "apptainer")
    script = jobs.render("local", "--container", "apptainer", "--image", "/none.sif", program=["true"])
    env = {"HOME": str(tmp_path), "PATH": f"{path}:{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(["bash"], input=script, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 71
    assert "cannot start the container apptainer with the image /none.sif" in done.stderr


@pytest.mark.parametrize(
    ("kind", "image", "option"),
    [
        ("pyxis", "a", "--container-image=a "),
        *(("edf", image, f"--environment={image} ") for image in ("a", "./a.toml", "../b/c", "/d/e.toml")),
    ],
)
def test_srun_starts_the_container_also_on_one_node(kind: str, image: str, option: str) -> None:
    words = ("--nodes", "1", "--ranks-per-node", "2", "--container", kind, "--image", image)
    script = jobs.render("slurm", *words, "--launcher", "srun", program=["true"])
    launch = script.partition("\nlaunch() {")[2].partition("\n}\n")[0]
    assert option in launch


REFUSED = [
    ("slurm --container apptainer", ["--container apptainer", "needs an --image"]),
    ("slurm --image a.sif", ["--image a.sif", "needs a --container"]),
    ("slurm --container aptainer --image a", ["--container aptainer", "did you mean apptainer?"]),
    ("slurm --container docker --image a --venv v", ["--venv v", "its own Python"]),
    ("slurm --container docker --image a --conda v", ["--conda v", "its own Python"]),
    (
        "slurm --container pyxis --image a --launcher mpirun",
        ["--container pyxis", "mpirun", "use --launcher srun, or enroot"],
    ),
    ("pbs --container pyxis --image a", ["--container pyxis", "part of Slurm's srun"]),
    (
        "slurm --container edf --image a --launcher mpirun",
        ["edf is a part of srun, but mpirun", "--launcher srun"],
    ),
    (
        "slurm --nodes 2 --container edf --image a --launcher torchrun --remote ssh",
        ["but ssh", "--remote scheduler"],
    ),
    ("pbs --container edf --image a", ["--container edf", "part of Slurm's srun"]),
    ("local --container edf --image a", ["--container edf", "part of Slurm's srun"]),
    ("slurm --container edf --image train.toml", ["--image train.toml", "begins with / or ./"]),
    ("slurm --container edf --image edf/train", ["--image edf/train", "begins with / or ./"]),
    ("slurm --container edf --image a --accelerator npu", ["--container edf", "does not support npu"]),
    (
        "slurm --nodes 2 --launcher deepspeed --container enroot --image a --remote ssh",
        ["--container enroot", "pdsh"],
    ),
    ("slurm --container shifter --image 'a b'", ["--image 'a b'", "docker:user/name:tag"]),
    ("slurm --container shifter --image a --accelerator npu", ["--container shifter", "use apptainer"]),
    ("slurm --container docker --image a --bind b", ["--bind b", "absolute paths"]),
    ("slurm --container docker --image a --bind /b,/c", ["--bind /b,/c", "absolute paths"]),
    ("slurm --container docker --image --rm", ["--image"]),
]


@pytest.mark.parametrize(("command", "said"), REFUSED)
def test_what_cannot_work_is_refused(command: str, said: list[str]) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m jobgen {command} -- train.py"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    for words in said:
        assert words in done.stderr
    assert re.fullmatch(r"jobgen: .*\n", done.stderr)


@pytest.mark.parametrize("kind", ["podman", "apptainer"])
def test_a_rank_that_is_killed_and_starts_again(tmp_path: Path, kind: str) -> None:
    program = 'echo "rank $RANK in attempt $JOBGEN_ATTEMPT"; [[ $JOBGEN_ATTEMPT$RANK != 11 ]] || kill -KILL $$; sleep 2'
    options = ("--launcher", "mpirun", "--restarts", "2")
    job = start(tmp_path, kind, *options, program=["bash", "-c", program])
    output, _ = job.communicate(timeout=200)
    assert job.returncode == 0, output
    assert {"rank 0 in attempt 2", "rank 1 in attempt 2"} <= set(output.splitlines()), output
    assert not gone(tmp_path / "work/runs")
