"""node/rank.sh, node/watch.sh, node/node.sh, node/each_node.sh: programs of the nodes, in a prepared run directory."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from support.runtime_shell import Done, Shell, ends_within, listed
from support.waiting import wait_until

FILES = ("node/rank", "node/watch", "node/node", "node/each_node")

RANK = {"RANK": "0", "LOCAL_RANK": "0"}


def prepare(shell: Shell, program: str, more: str = "", watch: str = "exit") -> None:
    (shell.run_dir / "env.sh").write_text(f"cd {shell.folder}\nexport FROM_ENV=yes\n")
    (shell.run_dir / "functions.sh").write_text(f"program() {{\n{program}\n}}\n{more}\n")
    (shell.run_dir / "watch.sh").write_text(f'printf "%s " "$@" > {shell.folder}/watched\n{watch}\n')


def rank(
    shell: Shell, program: str, env: dict[str, str] | None = None, more: str = "", timeout: float = 60
) -> Done:
    prepare(shell, program, more)
    return shell.program("rank", env={**RANK, **(env or {})}, timeout=timeout)


def lines_of(shell: Shell, host: str = "here", folder: str = "0") -> list[list[str]]:
    return [
        line.split() for line in (shell.logs / "nodes" / folder / f"{host}.ranks").read_text().splitlines()
    ]


def test_a_rank_writes_when_it_began_and_ended(shell: Shell) -> None:
    done = rank(shell, "echo out $FROM_ENV; echo error >&2; cat; exit 3")
    assert (done.status, done.said) == (3, "")
    assert sorted(done.lines) == ["error", "out yes"]
    (began, number, pid, at, host), ended = lines_of(shell)
    assert (began, number, host) == ("began", "0", "here")
    assert int(pid) > 1
    assert abs(float(at) - time.time()) < 60
    assert ended[:3] == ["ended", "0", "3"]
    assert "." in at
    assert float(ended[3]) >= float(at)
    assert (shell.logs / "failed").read_text() == "0 3 here\n"


@pytest.mark.parametrize(("umask", "mode"), [("", 0o600), ("027", 0o640)])
def test_the_program_has_the_umask_of_the_job(shell: Shell, umask: str, mode: int) -> None:
    more = f"umask 002\n[[ -z '{umask}' ]] || export JOBGEN_UMASK={umask}"
    assert rank(shell, "umask; exit 3", more=more).lines == ["0002"]
    files = [shell.logs / "failed", shell.logs / "nodes/0/here.ranks"]
    assert {file.stat().st_mode & 0o777 for file in files} == {mode}


def test_a_rank_has_ended_when_its_program_has(shell: Shell) -> None:
    """And not when its output is written, as ranks are told apart by the time at which they failed."""
    done = rank(shell, "sleep 3 & date +%s.%N; exit 3")
    assert float(lines_of(shell)[1][3]) < float(done.lines[0]) + 2


def test_the_program_is_the_process_that_is_named(shell: Shell) -> None:
    done = rank(shell, "echo $BASHPID $JOBGEN_NODE; exec bash -c trap")
    pid, node = done.lines[0].split()
    assert pid == lines_of(shell)[0][2]
    assert node == f"{shell.logs}/nodes/0/here"
    assert len(done.lines) == 1  # no signal is ignored


@pytest.mark.parametrize(("status", "failed"), [(0, ""), (75, ""), (4, "0 4 here\n")])
def test_a_failure_is_noted_once(shell: Shell, status: int, failed: str) -> None:
    assert rank(shell, f"exit {status}").status == status
    path = shell.logs / "failed"
    assert (path.read_text() if path.exists() else "") == failed
    if failed:
        rank(shell, "exit 5", {"RANK": "1", "LOCAL_RANK": "1"})
        assert path.read_text() == failed


def test_the_host_by_its_other_names(shell: Shell) -> None:
    rank(shell, "exit", {"JOBGEN_HOST": "", "SLURMD_NODENAME": "n7"})
    assert lines_of(shell, "n7")[0][4] == "n7"
    shell.commands(hostname="echo n8")
    rank(shell, "exit", {"JOBGEN_HOST": ""})
    assert lines_of(shell, "n8")[0][4] == "n8"


def test_four_hundred_ranks_a_folder(shell: Shell) -> None:
    (shell.logs / "nodes" / "1").mkdir()
    more = {"JOBGEN_WORLD_SIZE": "900", "JOBGEN_RANKS_PER_NODE": "8"}
    rank(shell, "exit", {"RANK": "399", "LOCAL_RANK": "7", **more})
    rank(shell, "exit", {"RANK": "401", "LOCAL_RANK": "1", "JOBGEN_HOST": "there", **more})
    rank(shell, "exit", {"RANK": "405", "LOCAL_RANK": "7", "JOBGEN_HOST": "last", **more})
    assert listed(shell.logs / "nodes" / "0") == ["here.log", "here.ranks", "last.log", "last.ranks"]
    assert listed(shell.logs / "nodes" / "1") == ["there.log", "there.ranks"]


def test_the_first_rank_of_a_node_starts_its_watcher(shell: Shell) -> None:
    rank(shell, "sleep 0.5", {"JOBGEN_RANKS_PER_NODE": "4"})
    words = (shell.folder / "watched").read_text().split()
    assert words == [str(os.getpid()), f"{shell.logs}/nodes/0/here", "4"]
    (shell.folder / "watched").unlink()
    rank(shell, "sleep 0.5", {"RANK": "1", "LOCAL_RANK": "1"})
    assert not (shell.folder / "watched").exists()


def test_the_watcher_has_a_session_of_its_own(shell: Shell) -> None:
    """It neither holds the output of the rank open nor dies with its session."""
    prepare(shell, "sleep 0.3", watch="ps -o sid= $$ > session; sleep 20")
    started = time.monotonic()
    done = shell.program("rank", env=RANK)
    assert done.status == 0
    assert time.monotonic() - started < 15
    written = shell.folder / "session"
    assert wait_until(lambda: written.exists() and written.read_text().strip(), 20)
    session = int(written.read_text())
    assert session != os.getsid(0)
    os.killpg(session, signal.SIGKILL)


# --------------------------------------------------------------------------------------------- the logs

LOGS = {
    "node": ["here.log", "here.ranks"],
    "rank": ["here.ranks", "rank-0.log"],
    "failed": ["here.ranks"],
    "none": ["here.ranks"],
}


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("status", [0, 3, 75])
def test_rank_logs(shell: Shell, kind: str, status: int) -> None:
    done = rank(
        shell, f"echo one; printf two; exit {status}", {"JOBGEN_RANK_LOGS": kind, "TMPDIR": str(shell.folder)}
    )
    assert (done.status, done.out) == (status, "one\ntwo")
    nodes = shell.logs / "nodes" / "0"
    files = sorted([*LOGS[kind], "rank-0.log"]) if (kind, status) == ("failed", 3) else LOGS[kind]
    assert listed(nodes) == files
    text = {"here.log": "0: one\n0: two\n", "rank-0.log": "one\ntwo"}
    assert {name: (nodes / name).read_text() for name in files if name in text} == {
        n: text[n] for n in files if n in text
    }
    assert not [name for name in listed(shell.folder) if name.startswith("tmp.")]


def test_the_log_of_a_node_has_whole_lines(shell: Shell) -> None:
    rank(shell, "echo one; printf two")
    rank(shell, "echo three", {"RANK": "1", "LOCAL_RANK": "1"})
    assert (shell.logs / "nodes" / "0" / "here.log").read_text() == "0: one\n0: two\n1: three\n"


def test_the_log_of_a_node_is_whole_when_its_rank_has_ended(shell: Shell) -> None:
    shell.commands(sed='[[ $1 != s/* ]] || sleep 1; exec /usr/bin/sed "$@"')
    prepare(shell, "echo one")
    # Into a file: a pipe would be waited for here.
    command = ["bash", "-c", 'bash "$0" &> out', str(shell.node_file("rank"))]
    shell.start(command, {**shell.contract(), **RANK}, 60)
    assert (shell.logs / "nodes" / "0" / "here.log").read_text() == "0: one\n"


def test_a_log_that_cannot_be_made(shell: Shell) -> None:
    shell.commands(mktemp="exit 1")
    done = rank(shell, "echo never", {"JOBGEN_RANK_LOGS": "failed"})
    assert (done.status, done.out, done.said) == (70, "", "jobgen: here: cannot make a temporary file\n")


def test_a_rank_without_its_functions(shell: Shell) -> None:
    done = shell.program("rank", env={**RANK, "JOBGEN_INSIDE": "yes"})
    assert (done.status, len(done.said.splitlines())) == (1, 1), done.said


@pytest.mark.parametrize(
    ("control", "status", "pauses"), [("save x\n", 75, ["1"]), ("", 75, []), ("save x\n", 0, [])]
)
def test_a_rank_that_has_saved_lets_the_others_be_asked(
    shell: Shell, control: str, status: int, pauses: list[str]
) -> None:
    shell.commands(sleep='[[ $1 == 0.1 ]] || echo "$1" >> pauses; exec /usr/bin/sleep "$@"')
    rank(shell, f"printf '{control}' > {shell.logs}/control; exit {status}")
    path = shell.folder / "pauses"
    assert (path.read_text().split() if path.exists() else []) == pauses


@pytest.mark.parametrize(("trap", "pauses"), [("", {1, 2}), ("trap '' TERM; ", {7})])
def test_what_the_program_left_running_does_not_hold_the_rank(
    shell: Shell, trap: str, pauses: set[int]
) -> None:
    shell.commands(sleep='echo "$1" >> pauses; exec /usr/bin/sleep "$@"')
    done = rank(shell, f"({trap}exec sleep 60) & echo $!; exit 0")
    assert done.status == 0
    times = Counter((shell.folder / "pauses").read_text().split())
    assert times["0.5"] in pauses  # until it has ended
    assert 9 < times["0.1"] < 60
    assert ended(done.lines[0])


def test_what_a_program_that_failed_left_running_ends(shell: Shell) -> None:
    done = rank(shell, "setsid sleep 60 > /dev/null 2>&1 & echo $!; sleep 0.5; exit 3")
    assert done.status == 3
    assert ended(done.lines[0])


def ended(pid: str) -> bool:
    path = Path("/proc", pid, "cmdline")
    return wait_until(lambda: not path.exists() or not path.read_bytes(), 5)  # a zombie has no command line


def test_signals_are_for_the_program(shell: Shell) -> None:
    """A launcher sends them to this shell, too, which stays for the status."""
    program = """for name in TERM INT HUP USR1 USR2; do kill -$name $$; done
    trap 'exit 9' USR1; kill -USR1 $BASHPID; exit 4"""
    assert rank(shell, program).status == 9
    assert lines_of(shell)[1][2] == "9"


@pytest.mark.parametrize(
    ("training", "sig", "status"),
    [("yes", "USR1", 75), ("", "USR1", 138), ("yes", "TERM", 143), ("yes", "KILL", 137)],
)
def test_a_signal_before_the_training_listens(shell: Shell, training: str, sig: str, status: int) -> None:
    done = rank(shell, f"kill -{sig} $BASHPID", {"JOBGEN_TRAINING": training})
    assert (done.status, done.out, done.said) == (status, "", "")


def test_asked_to_leave_before_it_began(shell: Shell) -> None:
    (shell.logs / "control").write_text("save TERM\n")
    started = time.monotonic()
    done = rank(shell, "echo never")
    assert (done.status, done.out) == (75, "")
    assert time.monotonic() - started >= 1  # the others are asked before the launcher ends them
    assert [line[0] for line in lines_of(shell)] == ["began", "ended"]


# ------------------------------------------------------------------------------------ numbers and devices


def test_a_rank_without_a_number(shell: Shell) -> None:
    done = rank(shell, "echo never", {"RANK": ""})
    assert (done.status, done.out, done.said) == (70, "", "jobgen: here: mpirun gave this process no rank\n")


@pytest.mark.parametrize(("world", "status"), [("2", 0), ("", 0), ("1", 70)])
def test_a_world_of_another_size(shell: Shell, world: str, status: int) -> None:
    done = rank(shell, "exit", {"WORLD_SIZE": world, "JOBGEN_WORLD_SIZE": "2"})
    assert done.status == status
    said = "jobgen: here: mpirun started a world of 1 ranks, not 2: is it that of another MPI?\n"
    assert done.said == (said if status else "")


def test_variables_then_the_numbers_of_the_rank(shell: Shell) -> None:
    more = "variables() { export COLOUR=blue; }\nrank() { export RANK=$OMPI LOCAL_RANK=$OMPI C=$COLOUR; }"
    env = {"RANK": "", "LOCAL_RANK": "", "OMPI": "0"}
    assert rank(shell, "echo $RANK $LOCAL_RANK $COLOUR $C", env, more).out == "0 0 blue blue\n"


@pytest.mark.parametrize(
    ("env", "local", "sizes"),
    [
        ({"JOBGEN_RANKS_PER_NODE": "4"}, "3", "4"),
        ({"JOBGEN_RANKS_PER_NODE": "4", "LOCAL_SIZE": "5"}, "3", "5"),
        ({"JOBGEN_RANKS_PER_NODE": "4", "LOCAL_SIZE": "5", "LOCAL_WORLD_SIZE": "6"}, "3", "6"),
    ],
)
def test_how_many_ranks_the_node_has(shell: Shell, env: dict[str, str], local: str, sizes: str) -> None:
    env = {"RANK": "3", "LOCAL_RANK": local, "JOBGEN_BIND": "cores", **env}
    prepare(shell, "true")
    (shell.run_dir / "bind.sh").write_text('echo "$job_local of $LOCAL_WORLD_SIZE" >&2\n')
    assert shell.program("rank", env=env).said == f"{local} of {sizes}\n"


DEVICES = {
    "no list": ({}, 2),
    "all": ({"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 2),
    "its own": ({"CUDA_VISIBLE_DEVICES": "3"}, 0),
    "its own of ROCm": ({"ROCR_VISIBLE_DEVICES": "7"}, 0),
    "its own of HIP": ({"HIP_VISIBLE_DEVICES": "7"}, 0),
    "its own of Ascend": ({"ASCEND_RT_VISIBLE_DEVICES": "7"}, 0),
    "its own of Intel": ({"ZE_AFFINITY_MASK": "1.0"}, 0),
    "by its name": ({"CUDA_VISIBLE_DEVICES": "GPU-1234-ab"}, 0),
    "two each": ({"CUDA_VISIBLE_DEVICES": "4,5"}, 0),
    "three": ({"CUDA_VISIBLE_DEVICES": "4,5,6"}, 2),
    "empty": ({"CUDA_VISIBLE_DEVICES": ""}, 2),
    "the narrower of two": ({"CUDA_VISIBLE_DEVICES": "0,1,2,3", "ROCR_VISIBLE_DEVICES": "7"}, 0),
}
# A user's program: torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) of the devices that are visible.
SET_DEVICE = """exec python3 -c '
import os
lists = [os.environ[name].split(",") for name in os.environ if name.endswith(("_VISIBLE_DEVICES", "AFFINITY_MASK")) and os.environ[name]]
seen = min(lists, key=len) if lists else list(range(4))
device = seen[int(os.environ["LOCAL_RANK"])]
print(os.environ["LOCAL_RANK"])'"""


@pytest.mark.parametrize(("env", "number"), DEVICES.values(), ids=DEVICES)
def test_local_rank_names_a_device_that_the_rank_sees(shell: Shell, env: dict[str, str], number: int) -> None:
    shell.commands(python3=f'exec {sys.executable} "$@"')
    done = rank(shell, SET_DEVICE, {"RANK": "2", "LOCAL_RANK": "2", "JOBGEN_RANKS_PER_NODE": "4", **env})
    assert (done.status, done.out) == (0, f"{number}\n"), done
    assert listed(shell.logs / "nodes" / "0") == ["here.log", "here.ranks"]  # the place on the node stays


def test_on_cpus_the_local_rank_stays(shell: Shell) -> None:
    env = {"RANK": "2", "LOCAL_RANK": "2", "JOBGEN_RANKS_PER_NODE": "4", "CUDA_VISIBLE_DEVICES": "-1"}
    assert rank(shell, "echo $LOCAL_RANK", {**env, "JOBGEN_ACCELERATOR": "cpu"}).out == "2\n"


def test_each_rank_of_a_node_sees_one_device(shell: Shell) -> None:
    """As --gpus-per-task=1 --gpu-bind=closest and ALPS do it."""
    shell.commands(python3=f'exec {sys.executable} "$@"')
    for local in range(4):
        env = {
            "RANK": str(local),
            "LOCAL_RANK": str(local),
            "JOBGEN_RANKS_PER_NODE": "4",
            "CUDA_VISIBLE_DEVICES": str(3 - local),
        }
        assert rank(shell, SET_DEVICE, env).out == "0\n"


@pytest.mark.parametrize(
    ("env", "given"),
    [
        ({"JOBGEN_DEVICES": "4,5,6", "CUDA_VISIBLE_DEVICES": "0,2"}, "4,6"),
        ({"JOBGEN_DEVICES": "", "CUDA_VISIBLE_DEVICES": "0,2"}, "0,2"),
        ({"JOBGEN_DEVICES_BY_NODE": "yes", "CROSS_RANK": "1", "CUDA_VISIBLE_DEVICES": "1"}, "3"),
    ],
)
def test_the_devices_that_the_scheduler_gave(shell: Shell, env: dict[str, str], given: str) -> None:
    (shell.run_dir / "devices").write_text("0,1\n2,3\n")
    done = rank(
        shell, "echo $CUDA_VISIBLE_DEVICES", {"JOBGEN_VISIBLE": "CUDA_VISIBLE_DEVICES", "devices": "9", **env}
    )
    assert done.out == f"{given}\n", done.said


def test_a_device_that_the_scheduler_did_not_give(shell: Shell) -> None:
    env = {"JOBGEN_VISIBLE": "CUDA_VISIBLE_DEVICES", "JOBGEN_DEVICES": "4", "CUDA_VISIBLE_DEVICES": "1"}
    done = rank(shell, "echo never", env)
    assert done.status != 0
    assert "here has only the devices 4" in done.said


def test_inside_of_a_container_the_environment_is_there(shell: Shell) -> None:
    assert rank(shell, "echo ${FROM_ENV-no}", {"JOBGEN_INSIDE": "yes"}).out == "no\n"


@pytest.mark.parametrize(
    ("env", "more", "out"),
    [
        ({}, "", "python -m jobgen.train preflight"),
        ({"JOBGEN_TRAINING": "yes"}, "", "program preflight"),
        ({}, "container() { :; }", "inside python3 -m jobgen.train preflight"),
        ({"JOBGEN_INSIDE": "yes"}, "container() { :; }", "python -m jobgen.train preflight"),
    ],
)
def test_the_preflight_of_a_rank(shell: Shell, env: dict[str, str], more: str, out: str) -> None:
    shell.commands(python3='echo "python $*"')
    prepare(shell, 'echo "program $*"; exec true', more)
    (shell.run_dir / "container.sh").write_text('echo "inside $*"\n')
    done = shell.program("rank", "preflight", env={**RANK, "inside": "false", **env})
    assert done.lines[0] == out
    assert listed(shell.logs / "nodes" / "0") == []


# ------------------------------------------------------------------------------------------- the watcher


AS_NOBODY = ("setpriv", "--reuid=65534", "--clear-groups")
UNABLE_TO_SIGNAL = ("setpriv", "--bounding-set=-kill", "--inh-caps=-kill")  # the processes of other users
WRAPPER = 'JOBGEN_NODE=$2 bash -c "$1" & echo $! > program; wait $!; exit $?'


class Node:
    """A launcher, the program of a rank, and the watcher of the node."""

    def __init__(
        self, shell: Shell, program: str = "sleep 100", parent: bool = False, foreign: bool = False
    ) -> None:
        """Start them; a ``foreign`` launcher is of another user, whom the watcher cannot signal."""
        self.shell = shell
        self.base = f"{shell.logs}/nodes/0/here"
        self.launcher = subprocess.Popen([*(AS_NOBODY if foreign else []), "sleep", "100"])
        self.parent = subprocess.Popen(["sleep", "100"]) if parent else None
        self.ranks = Path(f"{self.base}.ranks")
        # A program is asked only where the process above it is rank.sh of this job.
        words = ["bash", "-c", WRAPPER, f"{shell.run_dir}/rank.sh", program, self.base]
        self.program = subprocess.Popen(words, cwd=shell.folder, start_new_session=True)
        path = shell.folder / "program"
        while not path.exists() or not path.read_text().endswith("\n"):
            time.sleep(0.05)
        self.pid = int(path.read_text())
        self.ranks.write_text(f"began 0 {self.pid} 1.0 here\n")
        more = {"JOBGEN_PARENT": str(self.parent.pid)} if self.parent else {}
        time.sleep(0.3)
        command = [*(UNABLE_TO_SIGNAL if foreign else []), "bash", str(shell.node_file("watch"))]
        command += [str(self.launcher.pid), self.base, "1"]
        self.watcher = shell.popen(command, {**shell.contract(), **more})

    def write(self, line: str) -> None:
        with (self.shell.logs / "control").open("a") as control:
            control.write(f"{line}\n")

    def ended(self) -> None:
        with self.ranks.open("a") as ranks:
            ranks.write("ended 0 0 2.0 here\n")

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        for one in (self.watcher, self.program, self.launcher, self.parent):
            if one:
                one.kill()
                one.wait()


COUNT = "trap 'echo saved >> saved; kill $!' USR1; trap 'echo term >> saved; exit' TERM; while :; do sleep 100 & wait; done"


@pytest.fixture
def node(shell: Shell, request: pytest.FixtureRequest) -> object:
    made = Node(shell, **getattr(request, "param", {"program": COUNT}))
    yield made
    made.end()


def test_the_watcher_lets_who_is_not_asked_alone(node: Node, shell: Shell) -> None:
    time.sleep(1)
    assert node.watcher.poll() is None
    assert node.program.poll() is None
    node.watcher.terminate()  # as a scheduler does with all processes of a job
    time.sleep(1)
    assert node.watcher.poll() is None
    assert not (shell.folder / "saved").exists()


@pytest.mark.parametrize("node", [{"foreign": True}], indirect=True)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of other users")
def test_a_launcher_of_root_lives(node: Node) -> None:
    time.sleep(1)  # slurmstepd is the parent of the ranks of srun
    assert node.watcher.poll() is None
    assert node.program.poll() is None
    node.launcher.kill()
    node.launcher.wait()
    node.watcher.wait(15)


def test_what_ranks_that_have_ended_left_running_ends_with_the_launcher(node: Node, shell: Shell) -> None:
    node.ended()
    time.sleep(1)
    assert node.program.poll() is None
    node.launcher.kill()
    node.launcher.wait()
    node.program.wait(15)
    node.watcher.wait(15)
    assert (shell.folder / "saved").read_text() == "term\n"


def test_ranks_are_asked_to_save_once(node: Node, shell: Shell) -> None:
    node.write("save TERM")
    time.sleep(1)
    node.write("save deadline")
    time.sleep(1)
    assert (shell.folder / "saved").read_text() == "saved\n"
    assert node.watcher.poll() is None
    assert node.program.poll() is None


def test_a_rank_that_has_ended_is_not_asked(node: Node, shell: Shell) -> None:
    node.ranks.write_text(f"began 0 {node.pid} 1.0 here\nended 0 0 2.0 here\n")
    node.write("save TERM")
    time.sleep(1.5)
    assert not (shell.folder / "saved").exists()


def test_stop_means_at_once(node: Node, shell: Shell) -> None:
    node.write("save TERM")
    node.write("stop TERM")
    assert node.watcher.wait(10) == 0
    assert node.program.wait(10) == 128 + signal.SIGKILL
    assert node.launcher.poll() is None


def test_without_its_launcher_the_ranks_end(node: Node, shell: Shell) -> None:
    started = time.monotonic()
    node.launcher.kill()
    node.launcher.wait()
    node.program.wait(15)
    node.watcher.wait(15)
    assert (shell.folder / "saved").read_text() == "term\n"
    assert time.monotonic() - started < 9


@pytest.mark.parametrize(
    "node", [{"program": "trap '' TERM; while :; do sleep 100 & wait; done"}], indirect=True
)
def test_a_rank_that_ignores_term_is_killed(node: Node) -> None:
    node.launcher.kill()
    node.launcher.wait()
    assert node.program.wait(15) == 128 + signal.SIGKILL


def test_ranks_that_save_have_ten_seconds(node: Node, shell: Shell) -> None:
    node.write("save TERM")
    time.sleep(1)
    node.launcher.kill()
    node.launcher.wait()
    time.sleep(4)
    assert node.program.poll() is None
    assert node.program.wait(20) is not None
    assert (shell.folder / "saved").read_text() == "saved\nterm\n"


def test_stop_ends_ranks_that_save_without_their_launcher(node: Node, shell: Shell) -> None:
    node.write("save TERM")
    time.sleep(1)
    node.launcher.kill()
    node.launcher.wait()
    node.write("stop timeout")
    assert node.program.wait(5) == 128 + signal.SIGKILL


def test_who_has_saved_is_not_waited_for(node: Node) -> None:
    node.write("save TERM")
    time.sleep(1)
    node.launcher.kill()
    node.launcher.wait()
    node.ended()
    node.program.wait(5)


@pytest.mark.parametrize("node", [{"program": COUNT, "parent": True}], indirect=True)
def test_without_the_process_that_started_the_node_the_ranks_end(node: Node, shell: Shell) -> None:
    time.sleep(1)
    assert node.program.poll() is None
    assert node.parent
    node.parent.kill()
    node.parent.wait()
    node.program.wait(10)
    assert (shell.folder / "saved").read_text() == "term\n"


def test_foreign_processes_are_let_alone(node: Node, shell: Shell) -> None:
    other = subprocess.Popen(
        ["sleep", "100"], env={**os.environ, "JOBGEN_NODE": f"{node.base}2", "JOBGEN_PARENT": ""}
    )
    node.write("stop x")
    node.program.wait(10)
    time.sleep(0.5)
    assert other.poll() is None
    other.kill()
    other.wait()


# ------------------------------------------------------------------------------------- node.sh, each_node.sh


def start_node(shell: Shell, node: str, env: dict[str, str], *words: str) -> Done:
    (shell.run_dir / "functions.sh").write_text(f"node() {{\n{node}\n}}\n")
    return shell.program("node", *words, env=env)


def test_the_launcher_of_a_node(shell: Shell) -> None:
    show = 'echo "$NODE_RANK ${JOBGEN_DEVICES-none} ${JOBGEN_PARENT-none} $*"; env | grep -c -E "^(NODE_RANK|JOBGEN_DEVICES)="'
    assert start_node(shell, show, {}).lines == ["0 none none ", "1"]
    assert start_node(shell, show, {"SLURM_NODEID": "3"}, "preflight").lines[0] == "3 none none preflight"
    env = {"SLURM_NODEID": "3", "NODE_RANK": "2", "JOBGEN_VISIBLE": "V", "V": "4,5"}
    assert start_node(shell, show, env).lines == ["2 4,5 none ", "2"]
    assert start_node(shell, show, {"JOBGEN_VISIBLE": "V"}).lines[0] == "0  none "


def test_a_node_says_that_it_has_begun(shell: Shell) -> None:
    path = shell.folder / "arrived"
    path.write_text("before\n")
    assert start_node(shell, "cat arrived", {"JOBGEN_ARRIVAL": str(path)}).out == "before\n"
    for umask, mode in (("", 0o600), ("027", 0o640)):
        new = shell.folder / f"new{umask}"
        start_node(shell, "true", {"JOBGEN_ARRIVAL": str(new), "JOBGEN_UMASK": umask})
        assert new.stat().st_mode & 0o777 == mode


def test_a_node_has_the_secrets_of_the_job(shell: Shell) -> None:
    node = 'echo "$KEY"\n}\njob_secrets() {\n  export KEY=value'
    assert start_node(shell, node, {}).out == "value\n"


@pytest.mark.parametrize("status", [0, 3])
def test_another_node_is_in_a_session_of_its_own(shell: Shell, status: int) -> None:
    node = f'echo "$JOBGEN_PARENT $(ps -o sid= $$) $*"; cat; exit {status}'
    done = start_node(shell, node, {"JOBGEN_HOST": "there"}, "preflight")
    parent, session, word = done.out.split()
    assert (done.status, word) == (status, "preflight")
    assert parent != session != str(os.getsid(0))


def test_a_node_without_its_functions(shell: Shell) -> None:
    done = shell.program("node", env={})
    assert (done.status, len(done.said.splitlines())) == (1, 1), done.said


def test_this_node_stays_in_the_session(shell: Shell) -> None:
    done = start_node(shell, "ps -o sid= $$; echo ${JOBGEN_PARENT-none}", {"JOBGEN_HOST": "here"})
    assert done.out.split() == [str(os.getsid(0)), "none"]


def each(
    shell: Shell,
    hosts: list[str],
    node: str,
    *words: str,
    limit: int | None = None,
    remote: str = "",
    timeout: float = 60,
) -> Done:
    """Remote nodes are other processes here."""
    (shell.run_dir / "hosts").write_text("".join(f"{host}\n" for host in hosts))
    (shell.run_dir / "hostfile").write_text("".join(f"{host} slots=100\n" for host in hosts))
    (shell.run_dir / "remote.sh").write_text(
        remote or 'job_remote() { echo "remote $1" >> remotes; bash -c "export JOBGEN_HOST=$1; $2"; }\n'
    )
    (shell.run_dir / "node.sh").write_text(node)
    for folder in range(len(hosts) // 4 + 1):
        (shell.logs / "nodes" / str(folder)).mkdir(exist_ok=True)
    path = shell.node_file("each_node")
    if limit:
        path.write_text(path.read_text().replace("limit=64", f"limit={limit}"))
    return shell.start(["bash", str(path), *words], shell.contract(), timeout)


ARRIVE = ': >> "$JOBGEN_ARRIVAL"; '


def test_every_node_is_started_once(shell: Shell) -> None:
    hosts = ["here", *(f"n{i}" for i in range(1, 6))]
    slow = "[[ $JOBGEN_HOST != here ]] || sleep 1; "
    done = each(
        shell,
        hosts,
        ARRIVE + slow + 'echo "$NODE_RANK $JOBGEN_HOST ${JOBGEN_ARRIVAL#*/nodes/} $*"',
        "preflight",
    )
    assert (done.status, done.said) == (0, "")
    folders = [0, 0, 0, 0, 1, 1]
    assert sorted(done.lines) == [
        f"{i} {host} {folders[i]}/{host}.ranks preflight" for i, host in enumerate(hosts)
    ]
    assert sorted((shell.folder / "remotes").read_text().splitlines()) == [
        f"remote {host}" for host in hosts[1:]
    ]


def test_no_more_than_the_limit_start_at_a_time(shell: Shell) -> None:
    hosts = ["here", *(f"n{i}" for i in range(1, 9))]
    node = 'echo "begin" >> under-way; sleep 0.4; echo "end" >> under-way; ' + ARRIVE + "sleep 1"
    done = each(shell, hosts, node, limit=2)
    assert done.status == 0
    under_way = most = 0
    for line in (shell.folder / "under-way").read_text().split():
        under_way += 1 if line == "begin" else -1
        most = max(most, under_way)
    assert most in (2, 3)  # the next one starts when the first of the limit has arrived


def test_nodes_that_have_started_run_side_by_side(shell: Shell) -> None:
    started = time.monotonic()
    assert each(shell, ["here", "a", "b", "c"], ARRIVE + "sleep 2", limit=1).status == 0
    assert time.monotonic() - started < 6


def test_a_node_that_failed_is_not_waited_for(shell: Shell) -> None:
    started = time.monotonic()
    assert (
        each(shell, ["here", "a", "b"], "[[ $JOBGEN_HOST != here ]] || exit 3; sleep 1", limit=1).status == 3
    )
    assert time.monotonic() - started < 9


def test_the_only_node_fails(shell: Shell) -> None:
    assert each(shell, ["here"], "exit 3").status == 3


def test_nothing_starts_where_no_host_can_be_reached(shell: Shell) -> None:
    done = each(shell, ["here", "a"], "echo started", remote="return 1\n")
    assert (done.status, done.out) == (1, "")


def test_the_first_failure_ends_the_others(shell: Shell) -> None:
    started = time.monotonic()
    node = (
        ARRIVE
        + '[[ $JOBGEN_HOST != a ]] || { sleep 1; exit 5; }; trap "echo told >> told; kill \\$!; exit 143" TERM; sleep 50 & wait'
    )
    remote = 'job_remote() { eval "export JOBGEN_HOST=$1; $2"; }\n'
    done = each(shell, ["here", "a", "b"], node, remote=remote)
    assert done.status == 5
    assert done.said == "jobgen: the launcher of a node ended with status 5; ending the others\n"
    assert time.monotonic() - started < 9
    assert (shell.folder / "told").read_text() == "told\n" * 2
    assert shell.control == ""


def test_who_does_not_end_is_stopped(shell: Shell) -> None:
    started = time.monotonic()
    node = (
        ARRIVE
        + "[[ $JOBGEN_HOST != a ]] || { until [[ -e deaf ]]; do sleep 0.1; done; exit 5; }; "
        + 'trap "" TERM; touch deaf; for i in {1..100}; do sleep 0.5; done; touch ended_by_itself'
    )
    remote = 'job_remote() { eval "export JOBGEN_HOST=$1; $2"; }\n'
    assert each(shell, ["here", "a"], node, remote=remote).status == 5
    assert time.monotonic() - started > 9
    assert not (shell.folder / "ended_by_itself").exists()
    assert shell.control == "stop failed\n"


def test_told_to_end_it_tells_the_nodes(shell: Shell) -> None:
    node = ARRIVE + 'trap "echo told >> told; exit 143" TERM; echo $$ >> pids; sleep 50 & wait'
    (shell.run_dir / "hosts").write_text("here\n")
    (shell.run_dir / "hostfile").write_text("here slots=1\n")
    (shell.run_dir / "remote.sh").touch()
    (shell.run_dir / "node.sh").write_text(node)
    process = shell.popen(["bash", str(shell.node_file("each_node"))], shell.contract())
    while not (shell.folder / "pids").exists():
        time.sleep(0.1)
    process.terminate()
    assert process.wait(20) == 143
    assert (shell.folder / "told").read_text() == "told\n"
    ends_within(int((shell.folder / "pids").read_text()), 10)


def test_a_process_that_is_no_rank_of_this_job_any_more_is_let_alone(node: Node, shell: Shell) -> None:
    """Its number may have been used again."""
    other = subprocess.Popen(["sleep", "100"])
    node.ranks.write_text(f"began 0 {other.pid} 1.0 here\n")
    node.write("save TERM")
    time.sleep(1.5)
    assert other.poll() is None
    other.kill()
    other.wait()
