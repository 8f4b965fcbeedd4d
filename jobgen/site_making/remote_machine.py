"""The facts about a machine that ssh reaches: the environment of a login shell there, and the machine."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.hosts import shell_text
from jobgen.hosts.calls import SchedulerError
from jobgen.hosts.host import Host
from jobgen.site_making.host_facts import without_virtual

# What the commands of schedulers, of rsync and of tar need of a login shell; SBATCH_* are added to them.
_VARIABLES = (
    *("PATH", "LD_LIBRARY_PATH", "SLURM_CONF", "PBS_CONF_FILE", "PBS_SERVER", "PBS_DEFAULT", "PBS_EXEC"),
)
_SCRATCH = ("SCRATCH", "PSCRATCH", "WORK")
_TOOLS = ("awk", "cat", "cp", "df", "find", "head", "mkdir", "mv", "rm", "tail", "tar", "wc")
_LOGIN_PATIENCE = 60  # s; the files of a login shell may load modules
_PROBE = 1 << 20  # bytes of the file that is written and removed


class Login(NamedTuple):
    """A user at a host, and the environment of a login shell: ``variables`` are for each command there,
    ``signs`` tell the site and the scratch folders."""

    user: str
    uid: str
    shell: str
    variables: Mapping[str, str]
    signs: Mapping[str, str]


class RemoteMachine(NamedTuple):
    """A machine: its host name, the groups of the user, the home and a scratch folder (empty: none) without
    symbolic links, whether it has rsync, the version of its Python and its network interfaces."""

    name: str
    groups: tuple[str, ...]
    home: str
    scratch: str
    rsync: bool
    python: str
    interfaces: tuple[str, ...]


class RunsFolder(NamedTuple):
    """The folder of the runs: its path without symbolic links, and the free space in KiB; None: unknown."""

    path: str
    free: int | None


def login(host: Host, signs: Collection[str]) -> Login:
    """Return the user and the environment of a login shell, with these variables.

    Only ``-l`` alone makes a login shell of every shell, so it reads the commands from standard input.

    Raises:
        UnreachableError: the host does not answer.
        SchedulerError: the shell does not run commands.
    """
    mark = f"jobgen-{secrets.token_hex(8)}"
    inner = shell_text.for_any_shell(shell_text.framed(_printing([*_VARIABLES, *_SCRATCH, *signs]), mark))
    script = f"""\
printf '%s\\n' "$(id -un)" "$(id -u)" "${{SHELL:-/bin/sh}}"
printf '%s\\n' {shlex.quote(inner)} | "${{SHELL:-/bin/sh}}" -l
"""
    answer = host.run(script, patience=_LOGIN_PATIENCE)
    user, uid, shell, rest = (answer.out.decode(errors="replace").split("\n", 3) + [""] * 4)[:4]
    found = shell_text.unframed(answer.out, mark)
    if not (user and uid.isdecimal()):
        raise SchedulerError(f"id prints no user: {shown(user)} {shown(uid)}")
    if found is None:
        last = (answer.err.strip() or rest.strip()).rpartition("\n")[2].strip()
        why = f": {shown(last)}" if last else ""
        raise SchedulerError(
            f"{shell} -l does not run commands from its standard input{why}; look at the files that it reads"
        )
    pairs = (one.partition("=") for one in found[0].decode(errors="replace").split("\0") if one)
    env = {name: value for name, _, value in pairs if value and value.isprintable()}
    own = {name: value for name, value in env.items() if name in _VARIABLES or name.startswith("SBATCH_")}
    return Login(user, uid, shell, own, {name: env[name] for name in (*_SCRATCH, *signs) if name in env})


def _printing(names: Sequence[str]) -> str:
    """Return a script that prints variables of the environment, and those of sbatch."""
    known = " ".join(name for name in dict.fromkeys(names) if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII))
    return f"""\
for v in {known} $(env | sed -n 's/^\\(SBATCH_[A-Z_]*\\)=.*/\\1/p'); do
  eval "case \\${{$v+x}} in x) printf '%s=%s\\\\0' $v \\"\\$$v\\" ;; esac"
done
"""


def machine(host: Host, user: Login) -> RemoteMachine:
    """Return the facts about the machine of a host, whose commands have the variables of the login shell.

    Raises:
        UnreachableError: the host does not answer.
        JobgenError: it lacks commands that a submission needs.
    """
    folders = [
        *(user.signs.get(name, "") for name in _SCRATCH),
        f"/scratch/{user.user}",
        f"/work/{user.user}",
    ]
    scratch = shlex.join([one for one in folders if one.startswith("/")])
    script = f"""\
LC_ALL=C; export LC_ALL
row() {{ printf '%s\\0%s\\0' "$1" "$2"; }}
row name "$(uname -n)"
row groups "$(id -Gn)"
row home "$(cd && pwd -P)"
for d in {scratch}; do
  if [ -d "$d" ] && [ -w "$d" ]; then row scratch "$(cd "$d" && pwd -P)"; break; fi
done
if command -v rsync > /dev/null; then row rsync yes; fi
if command -v python3 > /dev/null; then row python "$(python3 --version 2>&1)"; fi
for c in {" ".join(_TOOLS)}; do command -v $c > /dev/null || row "lacks $c" yes; done
for i in /sys/class/net/*; do
  if [ -r "$i/type" ]; then row "net ${{i##*/}}" "$(cat "$i/type")"; fi
done
"""
    answer = host.run(script)
    cells = answer.out.decode(errors="replace").split("\0")
    rows = dict(zip(cells[::2], cells[1::2], strict=False))
    if lacking := [key.removeprefix("lacks ") for key in rows if key.startswith("lacks ")]:
        path = user.variables.get("PATH", "")
        raise JobgenError(f"there is no {', '.join(lacking)} on the PATH of a login shell: {path}")
    nets = {key.removeprefix("net "): value for key, value in rows.items() if key.startswith("net ")}
    version = re.search(r"\d+(\.\d+)+", rows.get("python", ""))
    return RemoteMachine(
        rows.get("name", host.name),
        tuple(rows.get("groups", "").split()),
        rows.get("home", ""),
        rows.get("scratch", ""),
        "rsync" in rows,
        version[0] if version else "",
        without_virtual(nets),
    )


def try_folder(host: Host, path: str) -> RunsFolder:
    """Make the folder of the runs at a host, unless it is there, and write and remove a file in it.

    Raises:
        UnreachableError: the host does not answer.
        JobgenError: it cannot be written; a folder that was made is removed.
    """
    script = f"""\
umask 077; LC_ALL=C; export LC_ALL
d={shlex.quote(path)}; made=
[ -d "$d" ] || made=yes
mkdir -p "$d" && cd "$d" || exit
f=.trial-{secrets.token_hex(8)}
head -c {_PROBE} /dev/zero > "$f"; s=$?
rm -f "$f"
if [ $s != 0 ]; then
  cd /
  if [ "$made" ]; then rmdir "$d"; fi
  exit 1
fi
printf '%s\\0' "$(pwd -P)"
df -Pk . | awk 'NR == 2 {{ for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+%$/) {{ print $(i - 1); exit }} }}'
"""
    answer = host.run(script)
    resolved, _, free = answer.out.decode("utf-8", "surrogateescape").partition("\0")
    if answer.status or not resolved.startswith("/"):
        why = answer.err.strip().rpartition("\n")[2] or "it is not there after it was made"
        raise JobgenError(f"the folder {path} cannot be written: {why}")
    return RunsFolder(resolved, int(free) if free.strip().isdecimal() else None)
