"""container.sh, leftover.sh, node/container.sh, node/bind.sh: the container of a job, and the processors of a rank."""

from __future__ import annotations

import os
import sys

import pytest
from support.runtime_shell import Done, Shell

FILES = ("container", "leftover", "node/container", "node/bind")

FUNCTIONS = "signals handover requirements container"


@pytest.mark.parametrize(("inside", "status"), [("exit 0", 0), ("exit 3", 71)])
def test_the_container_is_tried_first(shell: Shell, inside: str, status: int) -> None:
    code = f"""job_file_container() {{ echo 'echo "inside $*"; {inside}'; }}; program() {{ echo program; }}
    job_container_runtime=apptainer job_container_image=/i.sif; job_try_container; echo on"""
    done = shell.run(FUNCTIONS, code)
    assert (done.status, done.lines) == (status, ["inside true", "on"] if not status else ["inside true"])
    assert done.said == (
        "jobgen: cannot start the container apptainer with the image /i.sif: see its message above\n"
        if status
        else ""
    )
    functions = shell.run_dir / "functions.sh"
    assert "echo program" in functions.read_text()
    assert functions.stat().st_mode & 0o077 == 0
    shell.run(FUNCTIONS, f"umask 000; rm run/*.sh; job_run_dir_umask=027; {code}")
    assert (shell.run_dir / "container.sh").stat().st_mode & 0o777 == 0o640
    assert functions.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["a:b", "a,b"])
def test_folders_that_a_container_cannot_be_given(shell: Shell, name: str) -> None:
    done = shell.run(
        FUNCTIONS, f"mkdir {name}; job_file_container() {{ :; }}; cd {name}; job_try_container; echo never"
    )
    assert (done.status, done.out) == (72, "")
    assert "use directories without colons and commas" in done.said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("job_need_inside sh absent-command", "cannot find absent-command in the container"),
        ("job_need_training", "python3 in the container has no jobgen.train"),
        ("job_need_file absent.py", "there is no absent.py in the container, in "),
        ("job_need_program ./absent", "cannot run ./absent in the container, in "),
    ],
)
def test_what_is_not_in_the_container(shell: Shell, call: str, said: str) -> None:
    (shell.run_dir / "container.sh").write_text('echo in >> inside; exec "$@"\n')
    shell.commands(python3="exit 1")
    done = shell.run(FUNCTIONS, f"{call}; echo never")
    assert (done.status, done.out) == (71, "")
    assert said in done.said
    assert (shell.folder / "inside").exists()


def test_what_is_in_the_container(shell: Shell) -> None:
    (shell.run_dir / "container.sh").write_text('exec "$@"\n')
    (shell.folder / "there.py").touch()
    shell.commands(python3='[[ "$*" == "-c import jobgen.train" ]]')
    code = (
        "job_need_inside sh bash; job_need_training; job_need_file there.py; job_need_program bash; echo on"
    )
    assert shell.run(FUNCTIONS, code).out == "on\n"


# ------------------------------------------------------------------------------------ what is left running

LEFT = """job_container_runtime=docker job_id="1 2" job_hosts=(a b c)
job_reach_host() { echo "$1" >> reached; bash -c "$2"; }
"""


@pytest.mark.parametrize(
    ("status", "reach", "reached", "calls"),
    [(3, "ssh", {"b", "c"}, 3), (3, "", set(), 1), (0, "ssh", set(), 0)],
)
def test_containers_that_run_on_are_ended(
    shell: Shell, status: int, reach: str, reached: set[str], calls: int
) -> None:
    shell.commands(docker='echo "$*" >> "$HOME/calls"; [[ $1 != ps ]] || echo id1')
    done = shell.run(
        "remote_start leftover",
        f"{LEFT} job_status={status} job_host_access={reach}; job_end_containers; echo on",
    )
    assert (done.out, done.said) == ("on\n", "")
    path = shell.folder / "reached"
    assert set(path.read_text().split() if path.exists() else []) == reached
    path = shell.folder / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    assert sorted(lines) == ["kill id1"] * calls + ["ps --quiet --filter label=jobgen=1 2"] * calls


@pytest.mark.parametrize("docker", ["exit 1", "[[ $1 == ps ]] && echo id1"])
def test_a_docker_that_fails_ends_nothing(shell: Shell, docker: str) -> None:
    shell.commands(docker=docker)
    code = f"{LEFT} job_status=3 job_host_access=ssh; job_reach_host() {{ return 1; }}; job_end_containers; echo on"
    assert shell.run("remote_start leftover", code).out == "on\n"


# ------------------------------------------------------------------------------------------- container.sh

SHOW = """container() { printf 'words'; printf ' <%s>' "$@"; echo; printf 'binds'; printf ' <%s>' "${job_binds[@]}"; echo; env; }"""


def contain(
    shell: Shell, functions: str, *words: str, env: dict[str, str] | None = None, kind: str = "cuda"
) -> Done:
    (shell.run_dir / "functions.sh").write_text(f"job_accelerator={kind}\n{functions}\n")
    return shell.program("container", *(words or ("true",)), env=env or {})


def test_a_command_in_the_container(shell: Shell) -> None:
    host = {
        "LD_LIBRARY_PATH": "/l",
        "PYTHONPATH": "/p",
        "CUDA_HOME": "/c",
        "VIRTUAL_ENV": "/v",
        "KEPT": "yes",
    }
    done = contain(shell, f"job_container_binds=(/data:/data:ro)\n{SHOW}", "echo", "a b", env=host)
    assert done.lines[0] == "words <echo> <a b>"
    assert (
        done.lines[1]
        == f"binds <{shell.run_dir}:{shell.run_dir}> <{shell.folder}:{shell.folder}> </data:/data:ro>"
    )
    env = dict(line.split("=", 1) for line in done.lines[2:] if "=" in line)
    assert (env["KEPT"], env["JOBGEN_INSIDE"], env["PYTHONNOUSERSITE"]) == ("yes", "yes", "1")
    assert not set(env) & {"LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_HOME", "VIRTUAL_ENV"}


def test_without_binds_and_by_its_own_path(shell: Shell) -> None:
    (shell.run_dir / "functions.sh").write_text(
        f'job_accelerator=cuda job_container_image="$JOBGEN_RUN_DIR/image"\n{SHOW}'
    )
    done = shell.start(["bash", str(shell.node_file("container")), "x"], {}, 60)
    assert done.status == 0, done.said
    assert done.lines[1] == f"binds <{shell.run_dir}:{shell.run_dir}> <{shell.folder}:{shell.folder}>"


@pytest.mark.parametrize(
    ("prefix", "seen"),
    [("", {"LD_LIBRARY_PATH": "/l"}), ("APPTAINERENV_", {"APPTAINERENV_LD_LIBRARY_PATH": "/l"})],
)
def test_what_is_carried_into_it(shell: Shell, prefix: str, seen: dict[str, str]) -> None:
    functions = f"job_container_variables=(LD_LIBRARY_PATH) job_container_variable_prefix={prefix}\n{SHOW}"
    done = contain(shell, functions, env={"LD_LIBRARY_PATH": "/l", "CPATH": "/c"})
    env = dict(line.split("=", 1) for line in done.lines[2:] if "=" in line)
    assert {key: value for key, value in env.items() if key.endswith(("LD_LIBRARY_PATH", "CPATH"))} == seen


def test_the_toolkit_of_an_npu_is_that_of_the_image(shell: Shell) -> None:
    cann = shell.folder / "cann"
    cann.mkdir()
    (cann / "set_env.sh").write_text("export CANN=yes\n")
    functions = f'container() {{ export ASCEND_HOME_PATH={cann}; printf "<%s>" "${{job_binds[@]}}"; "$@"; }}'
    done = contain(shell, functions, "bash", "-c", 'echo "$CANN $1"', "x", "a b", kind="npu")
    assert done.out.endswith("yes a b\n"), done.said
    npu = [
        name
        for name in ("/usr/local/Ascend/driver", "/usr/local/dcmi", "/etc/hccn.conf")
        if os.path.exists(name)
    ]
    assert all(f"<{name}:{name}:ro>" in done.out for name in npu)
    assert done.out.count(":ro>") <= 6
    assert ":ro>" not in contain(shell, functions, "true").out


OPTIONS = 'container() { docker_options %s; printf "%%s\\n" "${job_options[@]}"; }'


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_the_options_of_docker(shell: Shell, kind: str) -> None:
    env = {"JOBGEN_JOB_ID": "12", "PLAIN": "x", "TMPDIR": "/t", "HOSTNAME": "h"}
    lines = contain(shell, OPTIONS % kind, env=env).lines
    must = [
        "--rm",
        "--network=host",
        "--ipc=host",
        "--pid=host",
        "--entrypoint=",
        "--label=jobgen=12",
        f"--workdir={shell.folder}",
    ]
    assert lines[:7] == must
    assert f"--volume={shell.run_dir}:{shell.run_dir}" in lines
    assert {"--env=PLAIN", "--env=JOBGEN_INSIDE", f"--env=HOME={shell.run_dir}"} <= set(lines)
    assert not {
        *("--env=HOME", "--env=TMPDIR", "--env=PATH", "--env=HOSTNAME", "--env=PWD", "--env=SHLVL"),
    } & set(lines)
    daemon = {f"--user={os.getuid()}:{os.getgid()}", "--ulimit=memlock=-1"}
    assert daemon <= set(lines) if kind == "docker" else not daemon & set(lines)
    [cpus] = [line for line in lines if line.startswith("--cpuset-cpus=")] or [""]
    assert bool(cpus) == (kind == "docker")
    assert ("--userns=keep-id" in lines) == (kind == "podman" and os.getuid() != 0)
    assert ("--device=/dev/infiniband" in lines) == os.path.isdir("/dev/infiniband")
    assert "--env=PATH" in contain(shell, f"job_container_variables=(PATH)\n{OPTIONS % kind}").lines


def test_podman_of_a_user(shell: Shell) -> None:
    """In a user namespace nobody is root."""
    (shell.run_dir / "functions.sh").write_text(f"job_accelerator=cuda\n{OPTIONS % 'podman'}\n")
    command = ["unshare", "--user", "bash", str(shell.node_file("container")), "true"]
    assert "--userns=keep-id" in shell.start(command, shell.contract(), 60).lines


# In a mount namespace: directories and devices of a machine that has NPUs and InfiniBand.
MACHINE = """mount -t tmpfs tmpfs /usr/local && mkdir -p /usr/local/Ascend/driver /usr/local/dcmi
mkdir dev && mount -t tmpfs tmpfs dev && cp -a /dev/null /dev/fd dev && touch dev/davinci{0,1} dev/davinci_manager
mkdir dev/infiniband && mount --bind dev /dev && exec bash "$0" true"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("kind", ["npu", "cuda"])
def test_the_devices_and_the_driver_of_the_host(shell: Shell, kind: str) -> None:
    (shell.run_dir / "functions.sh").write_text(f"job_accelerator={kind}\n{OPTIONS % 'docker'}\n")
    command = ["unshare", "--mount", "bash", "-c", MACHINE, str(shell.node_file("container"))]
    done = shell.start(command, shell.contract(), 60)
    assert done.status == 0, done.said
    drivers = [f"--volume={path}:{path}:ro" for path in ("/usr/local/Ascend/driver", "/usr/local/dcmi")]
    devices = [f"--device=/dev/{name}" for name in ("davinci0", "davinci1", "davinci_manager", "infiniband")]
    here = [line for line in done.lines if line.startswith("--device=") or line.endswith(":ro")]
    assert [line for line in here if "/etc/" not in line] == (
        [*drivers, *devices] if kind == "npu" else devices[-1:]
    )


def test_a_container_without_its_functions(shell: Shell) -> None:
    done = shell.program("container", "true", env={})
    assert (done.status, len(done.said.splitlines())) == (1, 1), done.said


def test_the_options_of_enroot(shell: Shell) -> None:
    functions = (
        'job_container_binds=(/d:/e:ro)\ncontainer() { enroot_options; printf "%s\\n" "${job_options[@]}"; }'
    )
    lines = contain(shell, functions, env={"PLAIN": "x", "options": "ours"}).lines
    assert lines[:3] == [
        f"--mount={shell.run_dir}:{shell.run_dir}:none:x-create=auto,rbind",
        f"--mount={shell.folder}:{shell.folder}:none:x-create=auto,rbind",
        "--mount=/d:/e:none:x-create=auto,rbind,ro",
    ]
    assert {"--env=PLAIN", "--env=HOME"} <= set(lines)
    assert "--env=PATH" not in lines
    assert "--env=PATH" in contain(shell, f"job_container_variables=(PATH)\n{functions}").lines


# ------------------------------------------------------------------------------------------------ bind.sh

NOTHING = ":"
# Two NUMA nodes of two cores of two threads.
LSCPU = """cat << 'END'
# NODE,CORE,CPU
0,0,0
0,1,1
1,2,2
1,3,3
0,0,4
0,1,5
1,2,6
1,3,7
END"""


def bind(
    shell: Shell,
    kind: str,
    local: int,
    ranks: int,
    allowed: str = "0-7",
    more: str = "",
    numactl: bool = False,
    words: str = "",
) -> Done:
    shell.commands(lscpu=LSCPU, taskset='echo "taskset $*" | sed "s/ [0-9]*$//" >&2; [[ ! -e $HOME/refuse ]]')
    if numactl:
        shell.commands(
            numactl='[[ $2 != true ]] || exit 0; echo "numactl $* ${JOBGEN_BOUND-no} <$JOBGEN_VISIBLE>"'
        )
    (shell.folder / "bin" / "awk").write_text(f"""#!/bin/bash
if [[ $1 == /^Cpus* ]]; then echo {allowed}; else exec /usr/bin/awk "$@"; fi
""")
    (shell.folder / "bin" / "awk").chmod(0o755)
    path = shell.node_file("bind")
    code = f'job_fail() {{ echo "fail: $1"; exit 70; }}; job_local={local} RANK={local + 8} LOCAL_WORLD_SIZE={ranks}; {more or NOTHING}; set -- {words}; . {path}; echo bound'
    return shell.run("", code, {"JOBGEN_BIND": kind})


@pytest.mark.parametrize(
    ("kind", "local", "ranks", "allowed", "cpus"),
    [
        ("core", 0, 2, "0-7", "0,4,1,5"),
        ("core", 1, 2, "0-7", "2,6,3,7"),
        ("core", 3, 4, "0-7", "3,7"),
        ("core", 0, 1, "1,3,6-7", "1,6,3,7"),
        ("core", 1, 3, "0-7", "1,5"),
        ("numa", 0, 2, "0-7", "0,4,1,5"),
        ("numa", 1, 2, "0-7", "2,6,3,7"),
        ("numa", 1, 4, "0-7", "0,4,1,5"),
        ("numa", 0, 4, "0-7", "0,4,1,5"),
        ("numa", 0, 1, "0-7", "0,4,1,5,2,6,3,7"),
    ],
)
def test_the_share_of_a_rank(
    shell: Shell, kind: str, local: int, ranks: int, allowed: str, cpus: str
) -> None:
    done = bind(shell, kind, local, ranks, allowed)
    assert (done.lines, done.said) == (["bound"], f"taskset --cpu-list --pid {cpus}\n")


def test_a_list_of_the_job(shell: Shell) -> None:
    done = bind(shell, "list", 1, 2, more="job_cpu_lists=(0-1 2-3)")
    assert "taskset --cpu-list --pid 2-3" in done.said


def test_more_ranks_than_cores(shell: Shell) -> None:
    assert bind(shell, "core", 0, 8).out == "fail: 8 ranks do not fit the processors of the job\n"


def test_processors_that_cannot_be_taken(shell: Shell) -> None:
    (shell.folder / "refuse").touch()
    done = bind(shell, "core", 0, 2)
    assert (done.status, done.out) == (70, "fail: cannot bind rank 8 to the processors 0,4,1,5\n")


@pytest.mark.parametrize(("rank", "said"), [(0, True), (1, False)])
def test_a_list_of_the_site_that_cannot_be_taken(shell: Shell, rank: int, said: bool) -> None:
    lists = f"job_host=a RANK={rank} job_cpu_lists=(0-1 2-3)"
    assert bind(shell, "site", 1, 2, more=lists).out == "bound\n"
    (shell.folder / "refuse").touch()
    done = bind(shell, "site", 1, 2, more=lists)
    assert (done.status, done.out) == (0, "bound\n")
    assert ("jobgen: a: cannot bind rank 0 to the processors 2-3, which its site lists" in done.said) is said


def test_a_step_without_a_binding(shell: Shell) -> None:
    done = bind(shell, "", 0, 2)
    assert (done.out, done.said) == ("bound\n", "")


def test_who_is_bound_stays(shell: Shell) -> None:
    assert bind(shell, "core", 0, 2, more="JOBGEN_BOUND=yes").out == "bound\n"


@pytest.mark.parametrize(("kind", "starts"), [("numa", True), ("core", False)])
def test_the_memory_of_the_numa_node(shell: Shell, kind: str, starts: bool) -> None:
    done = bind(shell, kind, 1, 2, numactl=True, words="preflight", more="export JOBGEN_VISIBLE=V")
    line = f"numactl --membind=1 bash {shell.run_dir}/rank.sh preflight yes <>"
    assert (line in done.lines) == starts
    assert ("bound" in done.lines) == (not starts)


def test_this_machine(shell: Shell) -> None:
    """The real lscpu and taskset."""
    path = shell.node_file("bind")
    code = f"job_fail() {{ echo fail; exit 70; }}; job_local=0 RANK=0 LOCAL_WORLD_SIZE=1; . {path}; {sys.executable} -c 'import os; print(len(os.sched_getaffinity(0)))'"
    done = shell.run("", code, {"JOBGEN_BIND": "core"})
    assert done.out == f"{len(os.sched_getaffinity(0))}\n", done.said
