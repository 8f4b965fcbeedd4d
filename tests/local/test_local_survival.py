"""What happens to a job at a terminal, and what programs do to it: signals, second signals, odd endings."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import jobs
from support.jobs import PROBE
from support.require import need_command, need_package
from support.waiting import wait_for

pytestmark = [pytest.mark.xdist_group("survival-local"), pytest.mark.timeout(180)]

LAUNCHERS = ["mpirun", "torchrun", "deepspeed"]
STOPPABLE = Path(PROBE).with_name("stoppable.py")
ENV = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def script_of(directory: Path, launcher: str, program: Sequence[object], *options: object) -> Path:
    need_command("bash", *([launcher] if launcher != "none" else []))
    if launcher not in ("mpirun", "none"):
        need_package("torch")
    (directory / "seen").mkdir(exist_ok=True)
    ranks = ("--ranks-per-node", "2") if launcher != "none" else ("--accelerator", "cpu")
    words = ("local", *ranks, "--launcher", launcher, *options)
    place = jobs.env_options({"PROBE_DIR": directory / "seen"})
    script = directory / "job.sh"
    script.write_text(jobs.render(*words, *place, program=program))
    return script


def ready(directory: Path) -> bool:
    return len(list((directory / "seen").glob("ready-*"))) == 2


def processes(word: object) -> list[str]:
    """The command lines on this machine that name it."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            words = (place / "cmdline").read_bytes() if place.name.isdigit() else b""
        except OSError:
            continue
        if os.fsencode(str(word)) in words and int(place.name) != os.getpid():
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def gone(word: object, seconds: float = 5) -> bool:
    """Whether all of them end."""
    until = time.monotonic() + seconds
    while processes(word) and time.monotonic() < until:
        time.sleep(0.1)
    return not processes(word)


@dataclass
class Terminal:
    """A script that runs in a terminal of its own, in the foreground."""

    script: Path
    output: str = ""

    def __post_init__(self) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(self.script.parent)
            os.execvpe("bash", ["bash", "--norc", "-ic", f"bash '{self.script}'; echo STATUS=$?"], ENV)

    def read(self, until: Callable[[], bool], seconds: float = 80) -> None:
        """Until it is so, or the terminal is done with."""
        end = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < end, self.output
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    got = os.read(self.fd, 65536)
                except OSError:
                    break
                self.output += got.decode(errors="replace")

    def ctrl_c(self) -> None:
        os.write(self.fd, b"\x03")

    def end(self) -> str:
        self.read(lambda: False)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        return self.output


# ------------------------------------------------------------------------------------------- a terminal


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ctrl_c_saves_and_leaves(tmp_path: Path, launcher: str) -> None:
    """It reaches the script alone, not the launcher, which would kill the ranks."""
    terminal = Terminal(script_of(tmp_path, launcher, [STOPPABLE]))
    terminal.read(lambda: ready(tmp_path))
    terminal.ctrl_c()
    output = terminal.end()
    assert "STATUS=75" in output, output
    assert "got INT: asking every rank to save and exit" in output
    assert [(tmp_path / "seen" / f"stopped-{rank}").read_text() for rank in (0, 1)] == ["SIGUSR1 1"] * 2
    assert gone(tmp_path)


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun", "none"])
def test_ctrl_c_of_a_program_that_knows_nothing_of_it(tmp_path: Path, launcher: str) -> None:
    """It is an interruption, not the failure of a rank."""
    ready = f"open({str(tmp_path / 'ready-')!r} + os.environ.get('RANK', '0'), 'w')"
    terminal = Terminal(
        script_of(tmp_path, launcher, [program(tmp_path, f"import os, time; {ready}; time.sleep(600)")])
    )
    ranks = 1 if launcher == "none" else 2
    terminal.read(lambda: len(list(tmp_path.glob("ready-*"))) == ranks)
    terminal.ctrl_c()
    output = terminal.end()
    assert "STATUS=130" in output, output
    assert "was ended by USR1, the request to save, which its program does not handle" in output
    assert "was interrupted: status 130" in output
    assert "failed first" not in output
    assert "failed with status" not in output
    [state] = json.loads(jobs.jobgen("status", "--json", cwd=tmp_path).stdout)
    assert state["state"] == "cancelled"
    assert state["reason"].startswith("status 130: interrupted by Ctrl-C")
    assert "failed" not in state["reason"]
    assert gone(tmp_path)


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_a_second_ctrl_c_stops_at_once_and_leaves_nothing(tmp_path: Path, launcher: str) -> None:
    """Even where the ranks heed no signal at all."""
    terminal = Terminal(script_of(tmp_path, launcher, [program(tmp_path, DEAF)], "--walltime", "1h"))
    terminal.read(lambda: ready(tmp_path))
    terminal.ctrl_c()
    terminal.read(lambda: "asking every rank" in terminal.output)
    time.sleep(2)  # until then it counts as the same one
    terminal.ctrl_c()
    output = terminal.end()
    assert "got INT again: stopping at once" in output
    assert "STATUS=75" not in output
    assert "STATUS=0" not in output
    assert gone(tmp_path)


def test_the_terminal_is_closed(tmp_path: Path) -> None:
    """Nobody reads the output any more: the ranks still save, and the script ends in order."""
    terminal = Terminal(script_of(tmp_path, "mpirun", [STOPPABLE]))
    terminal.read(lambda: ready(tmp_path))
    os.close(terminal.fd)
    os.waitpid(terminal.pid, 0)
    assert gone(tmp_path, 40)  # the script, too, which is named by its whole path
    logs = jobs.run_dir(tmp_path / "runs") / "attempt-1"
    assert [line.split()[1] for line in (logs / "statuses").read_text().splitlines()] == ["75", "75"]


def test_a_hang_up_that_comes_twice_is_one(tmp_path: Path) -> None:
    """When a terminal closes, the kernel sends it, and so does the shell."""
    script = script_of(tmp_path, "mpirun", [program(tmp_path, SLOW_TO_SAVE)])
    with subprocess.Popen(["bash", script], cwd=tmp_path, env=ENV, stderr=subprocess.PIPE, text=True) as job:
        assert job.stderr
        while not ready(tmp_path):
            time.sleep(0.05)
        for _ in range(2):
            job.send_signal(signal.SIGHUP)
            time.sleep(0.3)
        said = job.stderr.read()
    assert job.returncode == 75, said
    assert "again" not in said
    assert sorted(os.listdir(tmp_path / "seen")) == ["ready-0", "ready-1", "saved-0", "saved-1"]


SLOW_TO_SAVE = """
def save(number, frame):
    time.sleep(1)
    Path(os.environ["PROBE_DIR"], "saved-" + os.environ["RANK"]).touch()
    sys.exit(75)
signal.signal(signal.SIGUSR1, save)
Path(os.environ["PROBE_DIR"], "ready-" + os.environ["RANK"]).touch()
time.sleep(60)
"""
DEAF = """
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
Path(os.environ["PROBE_DIR"], "ready-" + os.environ["RANK"]).touch()
time.sleep(80)
"""


def program(directory: Path, lines: str) -> Path:
    file = directory / "program.py"
    file.write_text(f"import os, signal, subprocess, sys, time\nfrom pathlib import Path\n{lines}\n")
    return file


# ------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "USR2"])
def test_a_signal_before_the_ranks_have_begun_is_not_lost(tmp_path: Path, name: str) -> None:
    """While the launcher starts, there is nobody yet to send it to."""
    tools = jobs.path_with(tmp_path / "bin", torchrun='sleep 1; exec bash "${@: -1}"')
    script = script_of(tmp_path, "torchrun", [STOPPABLE], "--ranks-per-node", "1")
    env = {**ENV, "PATH": f"{tools}:{ENV['PATH']}", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    with subprocess.Popen(["bash", script], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as job:
        assert job.stderr
        while "rendezvous at" not in job.stderr.readline():
            pass
        time.sleep(0.3)
        job.send_signal(getattr(signal, f"SIG{name}"))
        said = job.stderr.read()
    assert job.returncode == 75, said
    assert "not finished; to go on" in said
    assert not ready(tmp_path)


@pytest.mark.parametrize(("name", "times"), [("TERM", 1), ("USR1", 1), ("INT", 2)])
def test_a_signal_in_the_start_up_leaves_as_resumable(tmp_path: Path, name: str, times: int) -> None:
    """Modules and environments may take minutes; the job is no failure because of that."""
    slow, over = tmp_path / "slow.sh", tmp_path / "over"
    slow.write_text(f"echo here >&2; for n in {{1..600}}; do [[ ! -e {over} ]] || break; sleep 0.1; done\n")
    script = script_of(tmp_path, "mpirun", [STOPPABLE], "--source", slow)
    with subprocess.Popen(["bash", script], cwd=tmp_path, env=ENV, stderr=subprocess.PIPE, text=True) as job:
        assert job.stderr
        assert job.stderr.readline() == "here\n"
        events = jobs.run_dir(tmp_path / "runs") / "attempt-1" / "events"
        for heard in range(times):
            time.sleep(2 * heard)  # until then it counts as the same one
            job.send_signal(getattr(signal, f"SIG{name}"))
            wait_for(lambda: events.read_text().count("signal") > heard, 60)  # noqa: B023
        over.touch()
        said = job.stderr.read()
    assert job.returncode == 75, said
    expected = f"asked to exit ({name}) before the program started" if times == 1 else f"got {name} again"
    assert expected in said
    assert not ready(tmp_path)


def test_an_end_before_the_program_could_begin(tmp_path: Path) -> None:
    """The whole time is the margin: nothing is lost, and the message says how to go on."""
    need_package("torch", "sklearn")
    training = ["--task", "digits", "--engine", "ddp", "--epochs", "400"]
    script = script_of(tmp_path, "mpirun", training, "--walltime", "60s", "--grace", "59s")
    command = ["bash", str(script)]
    for attempt in (1, 2):
        done = subprocess.run(
            command, cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 75, done.stderr
        assert done.stderr.count("; to go on: cd ") == 1
        runs = jobs.run_dir(tmp_path / "runs")
        assert len(list(runs.glob("attempt-*"))) == attempt
        command = ["bash", "-c", done.stderr.partition("to go on: ")[2].partition("\n")[0]]


# ------------------------------------------------------------------------------------------- programs


def outcome(directory: Path, launcher: str, lines: str, *options: object) -> tuple[int, str, Path]:
    """Status, output and logs of a job with such a program."""
    script = script_of(directory, launcher, [program(directory, lines)], *options)
    done = subprocess.run(
        ["bash", script],
        cwd=directory,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=150,
        check=False,
    )
    logs = jobs.run_dir(directory / "runs") / "attempt-1"
    return done.returncode, done.stdout.decode(errors="replace"), logs


@pytest.mark.parametrize("kept", ["node", "rank"])
def test_logs_are_whole_and_nothing_is_doubled(tmp_path: Path, kept: str) -> None:
    lines = "sys.stdout.write(('x' * 98 + os.environ['RANK'] + '\\n') * 40000); print('the very last')"
    status, output, logs = outcome(tmp_path, "mpirun", lines, "--rank-logs", kept)
    assert status == 0
    for rank in (0, 1):
        log = jobs.written_by(logs, rank).decode()
        assert log == ("x" * 98 + f"{rank}\n") * 40000 + "the very last\n"
    assert output.count("the very last") == 2
    assert output.count("x" * 98) == 80000


@pytest.mark.parametrize(("kept", "end"), [("node", b"\n"), ("rank", b"")])
def test_bytes_that_are_no_text_arrive(tmp_path: Path, kept: str, end: bytes) -> None:
    """In a file that the ranks share, a line that has no end is given one."""
    status, _, logs = outcome(tmp_path, "mpirun", "os.write(1, bytes(range(256)))", "--rank-logs", kept)
    assert status == 0
    assert [jobs.written_by(logs, rank) for rank in (0, 1)] == [bytes(range(256)) + end] * 2


def test_a_program_that_reads_finds_the_end_of_its_input(tmp_path: Path) -> None:
    status, output, _ = outcome(tmp_path, "mpirun", "print('read', len(sys.stdin.read()))")
    assert status == 0, output
    assert output.count("read 0") == 2


def test_what_a_program_leaves_running_does_not_hold_the_job(tmp_path: Path) -> None:
    """It has the output of the rank open, which is therefore never at its end."""
    lines = "print('done', flush=True); subprocess.Popen(['sleep', '45'], cwd='/')"
    begun = time.monotonic()
    status, output, logs = outcome(tmp_path, "mpirun", lines)
    assert status == 0, output
    assert time.monotonic() - begun < 30
    assert jobs.written_by(logs, 0) == b"done\n"


@pytest.mark.parametrize(
    ("launcher", "act", "status"),
    [
        ("mpirun", "os.kill(os.getpid(), signal.SIGSEGV)", 139),
        ("torchrun", "os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("mpirun", "sys.exit(75)", 75),
        ("deepspeed", "sys.exit(3)", 3),
    ],
)
def test_the_rank_that_failed_first_gives_the_status(
    tmp_path: Path, launcher: str, act: str, status: int
) -> None:
    lines = f"if os.environ['RANK'] == '1':\n    print('said 1', flush=True)\n    {act}\ntime.sleep(40)"
    found, output, logs = outcome(tmp_path, launcher, lines)
    assert found == status, output
    assert ("rank 1 on" in output) == (status != 75)
    assert jobs.written_by(logs, 1) == b"said 1\n"
    assert gone(tmp_path)


def test_nobody_reads_the_output(tmp_path: Path) -> None:
    """`bash job.sh | head -1`: the job goes on to its end."""
    lines = "for n in range(30):\n    print(n, 'x' * 5000, flush=True)\n    time.sleep(0.02)\nprint('end')"
    script = script_of(tmp_path, "torchrun", [program(tmp_path, lines)])
    subprocess.run(
        ["bash", "-c", f"bash {script} 2>&1 | head -1"], cwd=tmp_path, env=ENV, timeout=150, check=True
    )
    assert gone(tmp_path, 20)  # the ranks, too, which write the last lines
    logs = jobs.run_dir(tmp_path / "runs") / "attempt-1"
    assert [jobs.written_by(logs, rank)[-4:] for rank in (0, 1)] == [b"end\n"] * 2


def test_a_time_too_short_for_a_margin(tmp_path: Path) -> None:
    assert outcome(tmp_path, "mpirun", "print('done')", "--walltime", "9s")[0] == 0


def test_explain_says_what_was_resolved(tmp_path: Path) -> None:
    said = jobs.jobgen(
        *("slurm", "--nodes", "2", "--signal", "USR2@180", "--explain", "--json"),
        *("--", "--task", "digits"),
    )
    assert said.returncode == 0, said.stderr
    values = {name: row["value"] for name, row in json.loads(said.stdout).items()}
    assert (values["signal"], values["grace"], values["preflight"]) == ("USR2@180", "00:03:00", "yes")
    assert "USR2@60" in jobs.jobgen("pbs", "--signal", "USR2@60", "--explain").stdout
