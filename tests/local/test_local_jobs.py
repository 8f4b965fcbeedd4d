"""Rendered local scripts, run by bash on this machine: what each rank saw, and what the environment does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import jobs, warm_python
from support.jobs import ENVIRONMENT, HOSTILE, PROBE, probing
from support.mpich import mpich_bin
from support.require import absent, need_command, need_package

ODD = 'it\'s a "run" $(touch canary)'
MODULES = Path("/usr/share/modules/init/bash")
BIN = Path(sys.executable).parent
pytestmark = pytest.mark.usefixtures("warm_python")


@dataclass(frozen=True)
class Done:
    """A script that has ended."""

    status: int
    output: str


def run(
    script: str, cwd: Path, env: Mapping[str, str] | None = None, path: Sequence[str | Path] = ()
) -> Done:
    """Run a script with a bare environment, and these directories first on PATH."""
    home = cwd / "home"
    home.mkdir(exist_ok=True)
    search = [*map(str, path), *warm_python.folders(), "/usr/local/bin", "/usr/bin", "/bin"]
    done = subprocess.run(
        ["bash", "-s"],
        input=script,
        env={"HOME": str(home), "LANG": "C.UTF-8", "PATH": os.pathsep.join(search), **(env or {})},
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="surrogateescape",
        timeout=180,
        check=False,
    )
    return Done(done.returncode, done.stdout)


def need_launcher(launcher: str) -> None:
    need_command("bash", launcher)
    if launcher != "mpirun":
        need_package("torch")


# ------------------------------------------------------------------------------------------ the launchers


@pytest.mark.parametrize("launcher", ["mpirun", "deepspeed"])
def test_two_ranks_learn_the_digits(tmp_path: Path, launcher: str) -> None:
    need_launcher(launcher)
    need_package("torch", "deepspeed", "mpi4py", "sklearn")
    script = jobs.render(
        "local",
        "--ranks-per-node",
        "2",
        "--launcher",
        launcher,
        program=["--task", "digits", "--epochs", "4"],
    )
    done = run(script, tmp_path)
    assert done.status == 0, done.output
    directory = jobs.run_dir(tmp_path / "runs")
    status = jobs.status_of(directory)
    assert (status["state"], status["world_size"]) == ("finished", 2)
    assert status["accuracy"] >= 0.93
    assert jobs.hosts_in(directory) == [("localhost", 2)]
    assert "finished after" in done.output


@pytest.mark.parametrize("launcher", ["mpirun", "mpirun debian", "mpich", "deepspeed", "torchrun"])
def test_every_rank_gets_all_that_was_given(tmp_path: Path, launcher: str) -> None:
    name, *where = launcher.split()
    options, path = ["--launcher", name], []
    if name == "mpich":
        options, path = ["--launcher", "mpirun", "--mpi", "mpich"], [str(mpich_bin())]
    elif where:
        path = jobs.debian_path(tmp_path / "bin").split(os.pathsep)
    else:
        need_launcher(name)
    workdir = tmp_path / ODD
    workdir.mkdir()
    carried = {
        "PYTHONPATH": f"/a b/$(touch {jobs.CANARY})/%h",
        "LD_LIBRARY_PATH": f'/"x`touch {jobs.CANARY}`',
    }
    script = jobs.render(
        *("local", "--ranks-per-node", "2", "--cpus-per-rank", "3", *options),
        *("--workdir", workdir, "--runs-dir", "my 'runs' $(touch canary)"),
        *(*probing(tmp_path), *jobs.env_options(ENVIRONMENT)),
        program=[PROBE, *HOSTILE],
    )
    done = run(script, tmp_path, carried, path)
    assert done.status == 0, done.output
    [runs] = [directory for directory in workdir.iterdir() if directory.name.startswith("my")]
    ranks = jobs.ranks_in(tmp_path / "seen")
    jobs.check_world(ranks, [ranks[0].host], 2)
    jobs.check_arrival(ranks, HOSTILE, {**ENVIRONMENT, **carried, "OMP_NUM_THREADS": "3"}, workdir)
    jobs.check_untouched(tmp_path, workdir, runs, jobs.run_dir(runs), tmp_path / "home")


def test_a_command_of_any_name_runs_as_it_is(tmp_path: Path) -> None:
    """A name that the shell would take for an assignment, an option or a word of its own."""
    for number, name in enumerate(["A=1", "time", "a b'c"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        tools = jobs.path_with(folder / "bin", **{name: f'exec {sys.executable} {PROBE} "$@"'})
        for launcher in ("mpirun", "deepspeed")[: 1 + (name == "A=1")]:
            need_launcher(launcher)
            (folder / launcher).mkdir()
            script = jobs.render(
                *("local", "--launcher", launcher, *probing(folder / launcher)), program=[name, "x", "y z"]
            )
            done = run(script, folder / launcher, path=[tools])
            assert done.status == 0, done.output
            [rank] = jobs.ranks_in(folder / launcher / "seen")
            assert rank.argv == ["x", "y z"]


def test_jobs_at_the_same_time_have_their_own_directory_and_port(tmp_path: Path) -> None:
    need_launcher("mpirun")
    options = ("local", "--ranks-per-node", "2", "--launcher", "mpirun", *probing(tmp_path, "meet:4"))
    script = tmp_path / "job.sh"
    script.write_text(jobs.render(*options, program=[PROBE]))
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    both = [subprocess.Popen(["bash", script], cwd=tmp_path, env=env) for _ in range(2)]
    assert [one.wait(timeout=90) for one in both] == [0, 0]
    ranks = jobs.ranks_in(tmp_path / "seen")
    assert len(ranks) == 4
    for name in ("MASTER_PORT", "JOBGEN_RUN_DIR", "JOBGEN_JOB_ID"):
        assert len({rank.env[name] for rank in ranks}) == 2


def test_a_job_submitted_by_ssh_does_not_read_the_bashrc(tmp_path: Path) -> None:
    """bash -c reads it if it finds that ssh has started it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.bashrc").write_text('touch "$HOME/read"\n')
    script = jobs.render("local", "--launcher", "none", program=["true"])
    done = run(script, tmp_path, {"SSH_CLIENT": "192.0.2.1 54832 22", "SHLVL": "0"})
    assert done.status == 0, done.output
    assert not (tmp_path / "home/read").exists()


@pytest.mark.parametrize("launcher", ["mpirun", "deepspeed", "torchrun"])
def test_a_killed_rank_is_no_finished_job(tmp_path: Path, launcher: str) -> None:
    need_launcher(launcher)
    options = ("local", "--ranks-per-node", "2", "--launcher", launcher, *probing(tmp_path, "kill:1"))
    done = run(jobs.render(*options, program=[PROBE]), tmp_path)
    assert done.status not in (0, 70, 71, 72)
    assert f"failed with status {done.status} after" in done.output


def test_a_launcher_that_says_0_is_not_believed_without_proof(tmp_path: Path) -> None:
    need_launcher("deepspeed")
    lying = jobs.path_with(tmp_path / "bin", deepspeed="exit 0")
    for program in ([], [PROBE]):
        script = jobs.render("local", "--launcher", "deepspeed", *probing(tmp_path), program=program)
        done = run(script, tmp_path, path=[lying])
        assert done.status == 73
        assert "deepspeed ended with status 0, but" in done.output


def test_a_job_that_is_told_to_end_does_not_say_that_it_finished(tmp_path: Path) -> None:
    need_launcher("mpirun")
    script = tmp_path / "job.sh"
    program = ["bash", "-c", "touch started; exec sleep 60"]
    script.write_text(jobs.render("local", "--launcher", "mpirun", program=program))
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    with subprocess.Popen(
        ["bash", script], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as job:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(job.pid, signal.SIGTERM)
        _, said = job.communicate(timeout=60)
    assert job.returncode != 0
    assert "finished" not in said


def test_a_run_ends_at_its_walltime(tmp_path: Path) -> None:
    need_launcher("mpirun")
    script = jobs.render("local", "--walltime", "1s", "--launcher", "mpirun", program=["sleep", "60"])
    began = time.monotonic()
    done = run(script, tmp_path)
    assert done.status == 124, done.output
    assert time.monotonic() - began < 50


# ---------------------------------------------------------------------------------------- the environment


def environment_of(
    tmp_path: Path, *options: str | Path, env: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a rank sees of a job with these options, which must end well."""
    words = ("local", "--launcher", "mpirun", *options, *probing(tmp_path))
    need_launcher("mpirun")
    done = run(jobs.render(*words, program=[PROBE]), tmp_path, env)
    assert done.status == 0, done.output
    [rank] = jobs.ranks_in(tmp_path / "seen")
    assert rank.cwd == tmp_path
    return rank.env


def refused(
    tmp_path: Path, *options: str | Path, path: Sequence[str] = (), program: Sequence[str] = ()
) -> str:
    """What a job with these options says before it ends with 71, as something is missing."""
    need_launcher("mpirun")
    words = ("--launcher", "mpirun", *probing(tmp_path), *options)
    done = run(jobs.render("local", *words, program=program or [str(PROBE)]), tmp_path, path=path)
    assert done.status == 71, done.output
    assert not jobs.ranks_in(tmp_path / "seen")
    *_, message, end = done.output.splitlines()
    assert "failed with status 71" in end
    return message


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_sources_in_order_with_unset_variables_and_a_move(tmp_path: Path) -> None:
    first = write(tmp_path / "a 'b' $(touch canary).sh", 'ORDER="$ORDER_NOT_SET first" SEEN="[$*]"; false\n')
    second = write(
        tmp_path / "second.sh", 'export ORDER="$ORDER second" SEEN; cd /; set -u; set -e; false || true\n'
    )
    third = write(tmp_path / "third.sh", 'export ORDER="$ORDER third" GIVEN="$GIVEN seen" LAST=changed\n')
    sources = [word for path in (first, second, third) for word in ("--source", str(path))]
    env = environment_of(tmp_path, *sources, "--env", "GIVEN=given", "--env", "LAST=last", env={"ORDER": ""})
    assert (env["ORDER"], env["SEEN"]) == (" first second third", "[]")
    assert (env["GIVEN"], env["LAST"]) == ("given", "last")
    jobs.check_untouched(tmp_path, Path("/"))


def test_the_environment_has_the_values_of_variables_and_files_of_the_directory(tmp_path: Path) -> None:
    write(tmp_path / "first.sh", f"PLACE='{tmp_path}/a b'\n")
    write(tmp_path / "a b/next.sh", "export SEEN=$GIVEN\n")
    where = ("--workdir", tmp_path, "--env", "GIVEN=given")
    assert (
        environment_of(tmp_path, *where, "--source", "./first.sh", "--source", "$PLACE/next.sh")["SEEN"]
        == "given"
    )


def test_a_variable_of_the_environment_is_not_set(tmp_path: Path) -> None:
    need_launcher("mpirun")
    words = ("--launcher", "mpirun", *probing(tmp_path), "--source", "${NOT_SET}/a.sh")
    done = run(jobs.render("local", *words, program=[str(PROBE)]), tmp_path)
    assert "NOT_SET: parameter" in done.output
    assert "jobgen: the environment failed, as said above: nothing was launched" in done.output
    assert done.status == 71
    assert not jobs.ranks_in(tmp_path / "seen")


def test_a_script_that_is_sourced_ends_the_job(tmp_path: Path) -> None:
    file = write(tmp_path / "leave.sh", "exit 0\n")
    assert refused(tmp_path, "--source", file) == f"jobgen: {file} has called exit: nothing was launched"


def test_a_script_to_source_is_missing(tmp_path: Path) -> None:
    message = refused(tmp_path, "--source", "/no/such file.sh")
    assert (
        message
        == "jobgen: cannot read /no/such file.sh, a file to source: it must exist on the compute nodes"
    )


def test_a_virtual_environment(tmp_path: Path) -> None:
    venv = tmp_path / "my 'own' venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    env = environment_of(tmp_path, "--venv", venv)
    assert env["VIRTUAL_ENV"] == str(venv)
    assert shutil.which("python3", path=env["PATH"]) == str(venv / "bin/python3")
    message = refused(tmp_path / "seen", "--venv", "no-venv")
    assert (
        message
        == "jobgen: cannot read no-venv/bin/activate, a file to source: it must exist on the compute nodes"
    )


def test_directories_below_the_home_directory_of_the_job(tmp_path: Path) -> None:
    need_launcher("mpirun")
    work, venv = tmp_path / "home/my 'work'", tmp_path / "home/v"
    work.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    words = ("--workdir", "~/my 'work'", "--venv", "~/v", *probing(tmp_path))
    done = run(jobs.render("local", "--launcher", "mpirun", *words, program=[PROBE]), tmp_path)
    assert done.status == 0, done.output
    [rank] = jobs.ranks_in(tmp_path / "seen")
    assert (rank.cwd, rank.env["VIRTUAL_ENV"]) == (work, str(venv))
    assert jobs.run_dir(work / "runs").is_dir()
    assert "job_conda ~/'my env'\n" in jobs.render("local", "--conda", "~/my env", program=["true"])


CONDA = """
if [[ $* == "shell.bash hook" ]]; then
  printf '%s\\n' 'conda() { [[ $1 == activate && $2 == "my env" ]] || return 1;' \
    'export CONDA_PREFIX="/envs/$2" CONDA_UNSET="$NOT_SET"; }'
fi
"""


def test_a_conda_environment_through_the_shell_hook(tmp_path: Path) -> None:
    conda = Path(jobs.path_with(tmp_path / "a b", conda=CONDA), "conda")
    env = environment_of(tmp_path, "--conda", "my env", env={"CONDA_EXE": str(conda)})
    assert env["CONDA_PREFIX"] == "/envs/my env"


def test_no_conda_or_no_such_environment(tmp_path: Path) -> None:
    if shutil.which("conda", path=f"{BIN}:/usr/local/bin:/usr/bin:/bin:/opt/conda/bin"):
        pytest.skip("this machine has a conda")
    assert "cannot find conda" in refused(tmp_path, "--conda", "x")
    tools = jobs.path_with(tmp_path / "bin", conda=CONDA)
    assert "cannot activate the conda environment x: " in refused(tmp_path, "--conda", "x", path=[tools])


def need_modules() -> None:
    if not MODULES.exists():
        absent("environment-modules is not installed: run tests/cluster/minicluster.sh install")


def test_modules_are_loaded_in_order(tmp_path: Path) -> None:
    need_modules()
    write(tmp_path / "mods/tool/1.0", "#%Module\nsetenv TOOL one\nappend-path ORDER tool\n")
    write(tmp_path / "mods/other", "#%Module\nprereq tool\nappend-path ORDER other\n")
    where = ("--env", f"MODULEPATH={tmp_path}/mods")
    env = environment_of(tmp_path, *where, "--module", "tool", "--module", "other")
    assert (env["TOOL"], env["ORDER"]) == ("one", "tool:other")
    assert env["LOADEDMODULES"] == "tool/1.0:other"


@pytest.mark.parametrize("name", ["no-such/1.0", "faulty"])
def test_a_module_that_cannot_be_loaded(tmp_path: Path, name: str) -> None:
    need_modules()
    write(tmp_path / "mods/faulty", "#%Module\nprereq no-such\n")
    write(tmp_path / "mods/tool", "#%Module\n")
    words = ("--env", f"MODULEPATH={tmp_path}/mods", "--launcher", "mpirun", *probing(tmp_path))
    script = jobs.render("local", *words, "--module", "tool", "--module", name, program=[PROBE])
    done = run(script, tmp_path)
    assert done.status == 71
    assert f"jobgen: cannot load the module {name}: module avail" in done.output


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    need_command("mpirun")
    sentence = f"jobgen: there is no no-such.py in {tmp_path}: submit from its directory, or use --workdir"
    assert refused(tmp_path, program=["no-such.py"]) == sentence
    assert "cannot run ./a.out" in refused(tmp_path, program=["./a.out"])
    assert "cannot find torchrun on PATH" in refused(
        tmp_path, "--launcher", "torchrun", "--env", "PATH=/usr/bin"
    )
    other = jobs.path_with(tmp_path / "bare", python3="exit 1")
    assert "has no jobgen.train" in refused(tmp_path, path=[other], program=["--epochs", "1"])
    for directory in ("--workdir", "--runs-dir"):
        script = jobs.render("local", directory, "/dev/null/x", program=["true"])
        done = run(script, tmp_path)
        assert done.status == 72
        assert "/dev/null/x" in done.output


def test_another_mpi_than_was_said(tmp_path: Path) -> None:
    need_launcher("mpirun")
    message = refused(tmp_path, "--mpi", "mpich")
    assert "mpirun is not that of MPICH" in message
    message = refused(tmp_path, "--mpi", "openmpi", path=[str(mpich_bin())])
    assert "mpirun is not that of Open MPI" in message
