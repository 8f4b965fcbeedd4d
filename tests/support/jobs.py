"""Rendered jobs, as the tests handle them: render with the command line, run, read what the ranks saw."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen.runs import node_files
from support import warm, warm_python
from support.mpich import mpich_bin
from support.require import need_command

if TYPE_CHECKING:
    from support.cluster import Cluster

PROBE = Path(__file__).with_name("probe.py")
CANARY = "canary"

# Words that a shell, a launcher, pdsh or a config file may take for something else.
HOSTILE = (
    "a b  c",
    'it\'s "quoted"',
    "two\nlines\n",
    f"$(touch {CANARY})",
    f"`touch {CANARY}`",
    f"; touch {CANARY} &",
    f'" ; touch {CANARY} ; "',
    f"' ; touch {CANARY} ; '",
    "Grüße ☃ \u2028",
    "\udcff\udcfe",  # bytes that are not UTF-8
    ":",
    "--",
    "",
    "-x",
    "--nodes=7",
    "%h %n %u %% %",
    "1,2,3",
    "*",
    "~",
    "{a,b}",
    "back\\slash\\",
    "\ttab\r",
    "END_OF_RANK\n}",
    "$HOME ${PATH}",
    "!!",
    "#",
)
LAUNCHER_NOTE = re.compile(
    r"jobgen: note: (the launcher is .*|.* is not in .*, and must be where the job runs.*|"
    r"--hang-timeout .* finds a hang of your own program only after .*|"
    r"--restarts .* has not been measured with .*|"
    r"--(ex|in)clude .* is the filter of deepspeed .*)\n"
)
ENVIRONMENT = {f"HOSTILE_{number}": word for number, word in enumerate(HOSTILE)}


def env_options(values: Mapping[str, str | Path | int]) -> list[str]:
    return [word for name, value in values.items() for word in ("--env", f"{name}={value}")]


def probing(directory: Path, act: str = "") -> list[str]:
    """Options that tell the probe where to write, which is ``directory``/seen."""
    (directory / "seen").mkdir(exist_ok=True)
    return env_options({"PROBE_DIR": directory / "seen", "PROBE_ACT": act})


def jobgen(
    *words: object, cwd: str | Path = ".", env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that has imported most of jobgen."""
    command = [*map(str, words)]
    return subprocess.CompletedProcess(command, *warm.jobgen(command, env or os.environ, cwd, stdin))


def render(*options: object, program: Sequence[object] = ()) -> str:
    """The script that ``jobgen OPTIONS -- PROGRAM`` prints."""
    done = jobgen(*options, "--", *program)
    assert (done.returncode, LAUNCHER_NOTE.sub("", done.stderr)) == (0, ""), done.stderr
    return done.stdout


def run(
    cwd: Path, *options: str, program: tuple[str, ...] = ("true",), arguments: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a job of one rank on this machine. A stand-in for torchrun starts it."""
    script = render("local", "--launcher", "torchrun", *options, program=program)
    bin_dir = path_with(cwd / "bin", torchrun='RANK=0 exec bash "${@: -1}"')
    return subprocess.run(
        ["bash", "-s", *arguments],
        input=script,
        env={"HOME": str(cwd), "PATH": f"{bin_dir}:/usr/local/bin:/usr/bin:/bin"},
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def with_preflight_limit(script: str, seconds: int) -> str:
    """The script with another limit for the preflight of a rank."""
    line = "export PYTHONUNBUFFERED=1"
    assert line in script
    return script.replace(line, f"{line} JOBGEN_PREFLIGHT_TIMEOUT={seconds}")


@dataclass(frozen=True)
class Rank:
    """What one rank saw."""

    argv: list[str]
    env: dict[str, str]
    cwd: Path
    host: str

    def number(self, name: str) -> int:
        return int(self.env[name])


def ranks_in(directory: Path) -> list[Rank]:
    """What the probe wrote, in the order of RANK."""
    found = []
    for path in directory.glob("[!.]*.json"):
        seen = json.loads(path.read_text())
        found.append(Rank(seen["argv"], seen["env"], Path(seen["cwd"]), seen["host"]))
    return sorted(found, key=lambda rank: rank.number("RANK"))


def check_world(ranks: Sequence[Rank], hosts: Sequence[str], ranks_per_node: int) -> None:
    """All ranks are there, host by host, and know their places."""
    local = list(range(ranks_per_node))
    assert [rank.host for rank in ranks] == [host for host in hosts for _ in local]
    assert [rank.number("RANK") for rank in ranks] == list(range(len(ranks)))
    assert [rank.number("LOCAL_RANK") for rank in ranks] == local * len(hosts)
    assert {rank.number("WORLD_SIZE") for rank in ranks} == {len(ranks)}
    assert {rank.env["MASTER_ADDR"] for rank in ranks} <= {hosts[0], "localhost"}
    [port] = {rank.number("MASTER_PORT") for rank in ranks}
    assert 20000 <= port < 32000


def check_arrival(ranks: Sequence[Rank], argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
    """Every rank got these, byte for byte."""
    for rank in ranks:
        local_rank = f"--local_rank={rank.env['LOCAL_RANK']}"
        assert [word for word in rank.argv if word != local_rank] == list(argv)
        assert {name: rank.env.get(name) for name in env} == dict(env)
        assert rank.cwd == cwd


def check_untouched(*directories: Path) -> None:
    """Nothing that only looks like a command was run."""
    assert not [directory for directory in directories if (directory / CANARY).exists()]


def run_dir(parent: Path) -> Path:
    """The run directory of the only job whose run directories are in ``parent``."""
    [directory] = parent.iterdir()
    return directory


def hosts_in(directory: Path) -> list[tuple[str, int]]:
    """The host file, read as the deepspeed launcher reads it."""
    lines = (directory / "hostfile").read_text().splitlines()
    pairs = [re.fullmatch(r"(\S+)\s+slots=(\d+)", line) for line in lines]
    assert all(pairs), lines
    return [(pair[1], int(pair[2])) for pair in pairs if pair]


def status_of(directory: Path) -> dict[str, Any]:
    status: dict[str, Any] = json.loads((directory / "status.json").read_text())
    return status


def written_by(attempt: Path, rank: int) -> bytes:
    """The log of a rank, without its number where the ranks of the node share a file."""
    log = node_files.log_of(attempt, rank)
    assert log is not None, list(attempt.rglob("*"))
    return node_files.only(log.path.read_bytes(), log.prefix)


def process_of(attempt: Path, rank: int) -> tuple[str, str]:
    """The process id of a rank's program, and its host."""
    notes = "".join(path.read_text() for path in attempt.glob("nodes/*/*.ranks"))
    [(pid, host)] = re.findall(rf"(?m)^began {rank} (\d+) \S+ (\S+)$", notes)
    return pid, host


def path_with(directory: Path, **programs: str) -> str:
    """A PATH on which these programs come first, each a shell script with this text."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in programs.items():
        (directory / name).write_text(f"#!/bin/bash\n{text}\n")
        (directory / name).chmod(0o755)
    return str(directory)


def debian_path(directory: Path) -> str:
    """A PATH on which Debian's mpirun comes before the one of the running Python's environment."""
    need_command("/usr/bin/mpirun")
    first = path_with(directory, python3=f'exec {warm_python.command("python3")} "$@"')
    return os.pathsep.join([first, "/usr/bin", "/bin", *warm_python.folders()])


def path_of(cluster: Cluster, directory: Path, name: str) -> str:
    """The PATH for a launch: which mpirun comes first."""
    if name == "mpirun-debian":
        return debian_path(directory / "bin")
    return f"{mpich_bin()}:{cluster.env['PATH']}" if name == "mpich" else cluster.env["PATH"]
