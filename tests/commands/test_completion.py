"""``jobgen completion``, driven by the real shells: bash's own function, fish's complete -C, zsh at a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from support import ROOT
from support.require import need_command

from jobgen.commands.cli import cli
from jobgen.commands.completion.candidates import values
from jobgen.commands.job_options import JobCommand
from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.jobfile.tables import AT, TABLES
from jobgen.options import BY_KEY, OPTIONS
from jobgen.plan.plan import resolve
from jobgen.runs.submission import scheduler_of
from jobgen.schedulers.table import COMMANDS, SCHEDULERS, queued
from jobgen.sites.loader import load
from jobgen.sites.search import names

QSTAT = "Queue: workq\n    queue_type = Execution\n    enabled = True\nQueue: a_queue_of_a_long_name\n    queue_type = Route"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A PATH with jobgen first, and stand-ins of sinfo and qstat that take what they are asked and no more."""
    folder = tmp_path / "bin"
    folder.mkdir()
    commands = {
        "jobgen": f'exec {sys.executable} -m jobgen "$@"',
        "sinfo": '[ "$*" = "-h -o %R" ] || exit 64; printf "gpu\\ncpu\\ngpu\\n"',
        "qstat": f"[ \"$*\" = '-Q -f' ] || exit 64; cat <<'END'\n{QSTAT}\nEND",
    }
    for name, body in commands.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    for name in ("digits-12", "other-3"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "job.sh").touch()
    (tmp_path / "job.toml").touch()
    (tmp_path / "folder").mkdir()
    return os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
    }


def in_bash(words: Sequence[str], environment: dict[str, str], cwd: Path) -> list[str]:
    """What bash's function puts into COMPREPLY, and ``:default`` or ``:dirnames`` where it asks for those."""
    (cwd / "completion.bash").write_text(script("bash", environment))
    program = """
        source completion.bash
        compopt() { printf ':%s\\n' "$2"; }
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _jobgen jobgen
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    command = ["bash", "--norc", "-uc", program, "bash", *words]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


def in_fish(words: Sequence[str], environment: dict[str, str], cwd: Path) -> list[str]:
    """fish's own answer for a command line, without the help."""
    need_command("fish")
    (cwd / "completion.fish").write_text(script("fish", environment))
    line = " ".join(words)
    command = ["fish", "--no-config", "-c", f"source completion.fish; complete -C '{line}'"]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def script(shell: str, environment: dict[str, str]) -> str:
    command = ["jobgen", "completion", shell]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


LAUNCHERS = list(BY_KEY["launcher"].parse.allowed)
CASES: tuple[tuple[str, list[str]], ...] = (
    ("jobgen sl", ["slurm"]),
    ("jobgen slurm --launc", ["--launcher", "--launcher-arg"]),
    ("jobgen slurm --launcher ", LAUNCHERS),
    ("jobgen slurm --nodes 2 --launcher to", ["torchrun"]),
    ("jobgen slurm --queue ", ["gpu", "cpu"]),
    ("jobgen slurm --partition g", ["gpu"]),
    ("jobgen pbs --queue ", ["workq", "a_queue_of_a_long_name"]),
    ("jobgen submit pbs --queue w", ["workq"]),
    (
        "jobgen pbs --site polaris --queue ",
        [name for name, one in load("polaris").queues.items() if one.enabled],
    ),
    ("jobgen pbs --site ", names()),
    ("jobgen slurm --set resources.nodes", ["resources.nodes="]),
    ("jobgen submit ", ["pbs", "slurm"]),
    ("jobgen doctor ", ["pbs", "slurm", "local"]),
    ("jobgen local --q", []),
    ("jobgen site sh", ["show"]),
    ("jobgen site show pola", ["polaris"]),
    ("jobgen site refresh pola", ["polaris"]),
    ("jobgen submit --again d", ["digits-12"]),
    ("jobgen status o", ["other-3"]),
    ("jobgen convert --to t", ["torque", "toml"]),
    ("jobgen completion ", ["bash", "zsh", "fish"]),
    ("jobgen nonsense --", []),
    ("jobgen slurm --nodes ", []),
)


@pytest.mark.parametrize(("line", "expected"), CASES)
@pytest.mark.parametrize("shell", [in_bash, in_fish])
def test_candidates(
    shell: object, line: str, expected: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    assert callable(shell)
    found = [one for one in shell(line.split(" "), environment, tmp_path) if one != ":nospace"]
    assert sorted(found) == sorted(expected) if shell is in_fish else found == expected


@pytest.mark.parametrize("bash", ["bash", *map(str, Path("/opt/bash").glob("*/bash"))])
def test_every_bash_takes_the_completion(bash: str, environment: dict[str, str], tmp_path: Path) -> None:
    """Those before 4.4 cannot keep the order of the candidates."""
    (tmp_path / "completion.bash").write_text(script("bash", environment))
    words = [bash, "--norc", "-c", "source completion.bash && complete -p jobgen"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("-F _jobgen jobgen\n")
    assert done.stderr == ""


def test_bash_takes_an_equals_sign_for_a_word(environment: dict[str, str], tmp_path: Path) -> None:
    """It has what is before the sign already, and gets what is behind it."""
    assert in_bash(["jobgen", "slurm", "--launcher", "=", "to"], environment, tmp_path) == ["torchrun"]
    assert in_bash(["jobgen", "slurm", "--launcher", "="], environment, tmp_path) == LAUNCHERS
    words = ["jobgen", "slurm", "--set", "launch.launcher", "=", "s"]
    assert in_bash(words, environment, tmp_path) == ["srun"]
    words = ["jobgen", "slurm", "--set", "resources.nodes", "=", "2", "--launcher", "s"]
    assert in_bash(words, environment, tmp_path) == ["srun"]
    assert (
        in_bash(["jobgen", "pbs", "--site", "=", "polaris", "--queue", "deb"], environment, tmp_path)[0]
        == "debug"
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("jobgen slurm -o ", ":default"),
        ("jobgen slurm --job ", ":default"),
        ("jobgen check ", ":default"),
        ("jobgen slurm --launcher torchrun -- ", ":default"),
        ("jobgen slurm --venv ", ":dirnames"),
    ],
)
def test_files_are_the_shell_s_own(line: str, kind: str, environment: dict[str, str], tmp_path: Path) -> None:
    assert in_bash(line.split(" "), environment, tmp_path)[0] == kind
    found = in_fish(line.split(" "), environment, tmp_path)
    assert "folder/" in found
    assert ("job.toml" in found) == (kind == ":default")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_scheduler_is_offered(
    command: str, environment: dict[str, str], tmp_path: Path
) -> None:
    rows = [row for row in SCHEDULERS.values() if row.command_name == command]
    accepted = {option.flag for option in OPTIONS if not all(option.key in row.lacks for row in rows)}
    offered = set(in_bash(["jobgen", command, "--"], environment, tmp_path))
    assert offered & {option.flag for option in OPTIONS} == accepted


# Options without which a word of another one is refused.
MORE = {
    "mpi": {"launcher": "mpirun"},
    "container": {"image": "a.sif"},
    "requeue_on": {"requeue": "3"},
    "min_nodes": {"restarts": "3"},
}


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)


def is_accepted(path: tuple[str, ...], parameter: click.Parameter, command: click.Command, word: str) -> bool:
    """Whether a command accepts a word; of a scheduler's command, whether a job can be planned with it."""
    key = parameter.name or ""
    kinds = [path[0]] if path[0] in COMMANDS else list(queued() if path == ("submit",) else COMMANDS)
    try:
        if key == "scheduler" and path == ("submit",):
            return scheduler_of(word, None, None, "") == word
        if key == "settings":
            return True  # a test of its own
        if key == "site" or parameter.human_readable_name == "NAME":
            return load(word).name == word
        if not isinstance(command, JobCommand) or key not in BY_KEY:
            parameter.type_cast_value(click.Context(command), word)
            return True
    except JobgenError:
        return False
    return any(is_planned(kind, key, word) for kind in kinds)


def is_planned(kind: str, key: str, word: str) -> bool:
    try:
        values = {**MORE.get(key, {}), key: [word] if BY_KEY[key].multiple else word}
        resolve(read_spec(kind, values, ("train.py",)))
    except JobgenError:
        return False
    return True


@pytest.mark.parametrize(
    ("path", "command"), list(commands(cli)), ids=lambda one: " ".join(one) if isinstance(one, tuple) else ""
)
def test_completion_offers_what_the_command_accepts(
    path: tuple[str, ...], command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    for parameter in command.params:
        if parameter.name == "queue":
            continue  # those of the machine
        offered = [one.value for one in values(parameter, command, {}, (), "") if one.value[0] != ":"]
        allowed = getattr(BY_KEY[parameter.name].parse, "allowed", ()) if parameter.name in BY_KEY else ()
        for word in dict.fromkeys((*offered, *allowed)):
            assert is_accepted(path, parameter, command, word) == (word in offered), (parameter.name, word)


def test_the_keys_of_a_job_file_that_are_offered_exist() -> None:
    command = cli.get_command(click.Context(cli), "slurm")
    assert command is not None
    [parameter] = (one for one in command.params if one.name == "settings")
    places = {one.value for one in values(parameter, command, {}, (), "")}
    lacks = SCHEDULERS["slurm"].lacks
    known = {f"{'.'.join(at)}=" for at, one in AT.items() if at[0] in TABLES and one.key not in lacks}
    assert places == known | {"train."}


def test_a_scheduler_that_does_not_answer_is_not_waited_for(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bin/sinfo").write_text("#!/bin/sh\nexec sleep 60\n")
    start = time.monotonic()
    assert in_bash(["jobgen", "slurm", "--queue", ""], environment, tmp_path) == []
    assert time.monotonic() - start < 50


def test_the_tab_key_in_zsh(environment: dict[str, str], tmp_path: Path) -> None:
    need_command("zsh")
    (tmp_path / "fpath").mkdir()
    (tmp_path / "fpath/_jobgen").write_text(script("zsh", environment))
    lines = "PS1='ready> '; fpath=($PWD/fpath $fpath); autoload -U compinit; compinit -u; unsetopt zle_bracketed_paste"
    with _Terminal(["zsh", "-f", "-i"], environment | {"TERM": "dumb", "PS1": "ready> "}, tmp_path) as zsh:
        zsh.write(lines + "; print up\n")
        zsh.wait_for("\nup")
        for typed, whole in (
            ("jobgen slurm --launcher tor\t", "jobgen slurm --launcher torchrun"),
            ("jobgen submit --again dig\t", "jobgen submit --again digits-12"),
            ("jobgen slurm --partition gp\t", "jobgen slurm --partition gpu"),
            ("jobgen slurm --set resources.gp\t", "jobgen slurm --set resources.gpus_per_node="),
            ("jobgen slurm --job job.to\t", "jobgen slurm --job job.toml"),
            ("jobgen compl\t", "jobgen completion"),
        ):
            zsh.write(typed)
            time.sleep(0.1)
            zsh.wait_for(whole)
            zsh.write("\x15")  # the line is deleted


class _Terminal:
    """A program at a pseudo-terminal."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: Path) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> _Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def write(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait_for(self, text: str, seconds: float = 60) -> None:
        said, deadline = "", time.monotonic() + seconds
        while text not in re.sub(r"\x1b\[[\d;?]*[A-Za-z]|\r|.\x08", "", said):
            if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} is not in {said!r}")
            said += os.read(self.master, 65536).decode(errors="replace")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_in_order(shell: str, environment: dict[str, str], tmp_path: Path) -> None:
    need_command(shell)
    (tmp_path / "script").write_text(script(shell, environment))
    assert subprocess.run([shell, "-n", tmp_path / "script"]).returncode == 0
    if shell == "bash":
        command = [need_command("shellcheck"), "--shell=bash", tmp_path / "script"]
        subprocess.run(command, check=True)


def test_another_shell_is_refused(environment: dict[str, str]) -> None:
    command = ["jobgen", "completion", "zhs"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "jobgen: completion zhs: must be bash, zsh or fish; did you mean zsh?\n"


def test_completion_loads_little(environment: dict[str, str]) -> None:
    code = (
        "import sys; from jobgen.commands.cli import run; run(['slurm', '--launcher', ''])\n"
        "print({'jinja2', 'msgspec', 'subprocess', 'jobgen.plan.plan', 'jobgen.rendering.render'} & set(sys.modules) or 'little')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"_JOBGEN_COMPLETE": "bash"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1] == "little"
