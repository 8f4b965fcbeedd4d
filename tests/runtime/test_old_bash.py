"""The scripts use what bash 4.2 has, and the commands of CentOS 7 (coreutils 8.22, util-linux 2.23, sed 4.2, grep 2.20)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, jobs, old_bash
from support.not_installed import skip
from support.require import need_package
from support.runtime_shell import RUNTIME

GOLDEN = ROOT / "tests/golden"

FEATURES = {
    "4.3: wait -n; 5.0: -f; 5.1: -p": r"\bwait\s+-[a-z]*[nfp]",
    "4.3: read with an IFS of its own, in a process substitution": r"\bwhile IFS=[^ '$]+ read\b",
    "4.3: a name reference; 5.0: local -I": r"\b(local|declare|typeset)\s+-[A-Za-z]*[nI]",
    "4.3: -v of an element": r"(\[|\btest|&&|\|\||!)\s*-v\s+[\"']?\w+\[",
    "4.3: a negative index": r"\[-\d+\]\s*=|\$\{\w+\[-\d+\]|\bunset\s+[\"']?\w+\[-",
    "4.3: a name that may be unset, in the branch of ? : that is not taken": r"\(\(.*\$\{(\w+):-[^}]*\}.*\?.*(?<![\w{])\1\b",
    "4.3: printf %(...)T without a time": r"%\([^)]*\)T[^ ;|&]*\s*($|[;|&>])",
    "4.4: ${x@Q} and its kin": r"\$\{[\w!]+(\[[^]]*\])?@[QEPAKaULuk]\}",
    "4.4: mapfile -d": r"\b(mapfile|readarray)\s+(-\w+\s+)*-[a-z]*d\b",
    "4.4: inherit_errexit": r"\binherit_errexit\b",
    "4.4: local -": r"\blocal -(\s|$|;)",
    "4.4: the process id of an output >(...), for which it is opened": r"\{\w+\}>+\s*>\(",
    "4.3: a signal that this shell ignores, restored": r"\btrap - (?!EXIT|ERR)",
    "4.4: complete -o nosort": r"\bcomplete -o nosort(?!.*\|\| complete )",
    "5.0: EPOCHREALTIME or EPOCHSECONDS": r"\$EPOCH(REALTIME|SECONDS)\b|\$\{EPOCH(REALTIME|SECONDS)(?!:-)",
    "5.0: BASH_ARGV0": r"\bBASH_ARGV0\b",
    "5.1: SRANDOM": r"\bSRANDOM\b",
    "5.2: varredir_close, patsub_replacement": r"\b(varredir_close|patsub_replacement)\b",
    "5.3: ${ command; }": r"\$\{[ |]",
}
OPTIONS = {
    "coreutils 8.24: dd status=progress": r"\bdd\s.*status=progress",
    "coreutils 8.26: b2sum; 8.31: basenc": r"\b(b2sum|basenc)\b",
    "coreutils 8.28: env -C; 8.30: -S, -v": r"\benv\s+(-\w*\s+)*(-[CSv]\b|--(chdir|split-string|debug))",
    "coreutils 8.29: timeout -v": r"\btimeout\s+(-\S+\s+(\d\S*\s+)?)*(-v\b|--verbose)",
    "coreutils 9.2: wc --total": r"\bwc\s.*--total",
    "iproute2 4.11: ip -j": r"\bip\s+(-\w+\s+)*(-j|--?json)\b",
    "util-linux 2.24: setsid -w; 2.32: --fork": r"\bsetsid\s+(-\w*[wf]\b|--(wait|fork))",
    "util-linux 2.27: flock -F, --verbose; lsns": r"\bflock\s.*(-F\b|--no-fork|--verbose)|\blsns\b",
    "util-linux 2.30: lscpu -J": r"\blscpu\s.*(-J\b|--json|-B\b)",
    "util-linux 2.35: nsenter --wdns": r"--wdns|\bunshare\s.*--map-user=",
    "sed 4.3: --debug, --sandbox": r"\bsed\s.*(--debug|--sandbox)",
    "procps 3.3.16: pidwait": r"\b(pidwait|pkill\s.*--queue)\b",
    "findutils 4.9: find -files0-from": r"-files0-from",
    "gawk, which is not everywhere": r"\bawk\b.*\b(PROCINFO|gensub|asorti?|strftime|systime)\b",
}
# Arrays that always have an element: the others need ${x[@]+"${x[@]}"}, as bash before 4.4 calls an empty one unset.
NEVER_EMPTY = {
    "BASH_REMATCH": "after a match",
    "COMP_WORDS": "the word at the cursor",
    "all": "the hosts of the allocation",
    "bad": "after a test of its length",
    "job_binds": "begins with the run directory",
    "cells": "of a line that is not empty",
    "failed": "after a test of its length",
    "good": "after a test of its length",
    "here": "a task has a point",
    "hosts": "the hosts of the allocation",
    "job_arguments": "after a test of its length",
    "job_bad_hosts": "after a test of its length",
    "job_beat_at": "used only for a host in it",
    "job_children": "at least tee",
    "job_filter_hosts": "written into the script",
    "job_filter_whole_hosts": "written into the script",
    "job_host_list": "written into the script",
    "job_hosts": "job_check_hostfile has compared its length",
    "job_local_caches": "written into the script",
    "job_node_hosts": "the hosts of the allocation",
    "job_part": "constant words",
    "job_point_hosts": "some of the hosts of the allocation",
    "job_program_variables": "written into the script",
    "job_secret_names": "after a test of its length",
    "job_words": "begins with constant words",
    "more": "after a test of its length",
    "job_options": "begins with constant words",
    "options": "begins with constant words",
    "others": "after a test of its length",
    "pids": "after a test of its length",
    "requests": "after a test of its length",
    "start": "the environment, which has PATH",
    "values": "after a test of its length",
    "words": "begins with constant words",
}


BASHES = ("bash", *(f"/opt/bash/{version}/bash" for version in ("4.2", "4.3", "4.4")))


def need_bash(path: str) -> None:
    if path.startswith("/") and not Path(path).exists():
        skip(f"bash {path.split('/')[3]}")


def scripts() -> list[Path]:
    return [
        *sorted(RUNTIME.rglob("*.sh")),
        *sorted(GOLDEN.rglob("*.sh")),
        *sorted((ROOT / "docs/sites").glob("*.md")),
        *sorted((ROOT / "templates").rglob("*.sh.j2")),
        ROOT / "templates/completion/jobgen.bash",
    ]


def code(path: Path) -> Iterator[str]:
    """Yield the lines of a script without comments."""
    for line in path.read_text().splitlines():
        yield re.sub(r"(^|\s)#( .*)?$", "", line)


def newer(lines: Iterator[str], table: dict[str, str]) -> list[str]:
    return [
        f"{what}: {line.strip()}"
        for line in lines
        for what, pattern in table.items()
        if re.search(pattern, line)
    ]


def may_be_empty(lines: Iterator[str]) -> list[str]:
    """Return the lines that expand an array that may have no element."""
    found = []
    for line in lines:
        bare = re.sub(r"\$\{(\w+)\[[@*]\]\+\"?\$\{\1\[[@*]\][^}]*\}\"?\}", "", line)
        names = re.findall(r"\$\{(\w+)\[[@*]\](?![-+:]?[-+])", bare)
        found += [line.strip() for name in names if name not in NEVER_EMPTY]
    return found


@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.stem)
def test_a_script_uses_what_old_machines_have(path: Path) -> None:
    assert newer(code(path), FEATURES | OPTIONS) == []
    assert may_be_empty(code(path)) == []


@pytest.mark.parametrize(
    "line",
    [
        "wait -n || true",
        "wait -f $!",
        "wait -pn id",
        'local -n list="$1"',
        "most=$((${limit:-0} > 60 ? limit : 60))",
        "local -I x",
        "mapfile -d '' words",
        "echo ${words[-1]}",
        "unset 'words[-1]'",
        'say "${x@Q}" "${list[*]@Q}"',
        "now=$EPOCHREALTIME",
        "[[ -v table[key] ]]",
        "[[ $x && -v table[key] ]]",
        "printf '%(%F)T\\n'",
        "shopt -s inherit_errexit",
        'exec {out}> >(tee "$log")',
        "setsid --wait bash x.sh",
        "env -C /tmp true",
        "timeout -k 5 -v 10 true",
        "dd if=x of=y status=progress",
        "ip -j addr",
        "trap - TERM USR1",
        "[[ -z $x ]] && trap - INT",
    ],
)
def test_the_newer_ones_are_known(line: str) -> None:
    assert newer(iter([line]), FEATURES | OPTIONS)


@pytest.mark.parametrize(
    ("line", "empty"),
    [
        ('f "${list[@]}"', True),
        ("${list[*]:0:8}", True),
        ('f ${list[@]+"${list[@]}"}', False),
        ("${list[*]+${list[*]:0:8}}", False),
        ("${list[*]:-none} ${list[*]-} ${#list[@]} ${!list[@]}", False),
    ],
)
def test_arrays_that_may_be_empty_are_known(line: str, empty: bool) -> None:
    assert bool(may_be_empty(iter([line]))) == empty


OLDER = {"4.1.2(1)-release": "4.1.2(1)-release", "3.2.57(1)-release": "3.2.57(1)-release", "": "another one"}


@pytest.mark.parametrize("version", OLDER)
def test_an_older_shell_starts_nothing(version: str, tmp_path: Path) -> None:
    """The test comes before all that such a shell cannot parse; the version is that of a script whose head says so."""
    text = jobs.render("local", program=["touch", "started"])
    head, rest = text.split("\ncase ", 1)
    assert all(line.startswith(("#", "trap ")) for line in head.splitlines())
    path = tmp_path / "job.sh"
    path.write_text(f"{head}\nBASH_VERSION='{version}'\ncase {rest}")
    done = subprocess.run(["dash", path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 70
    assert (
        done.stderr
        == f"jobgen: this shell is not bash 4.2 or newer, but {OLDER[version]}: nothing was started\n"
    )
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("words", [["it's", "a  b", "&", "\\", '"', "$x", "ü", "a\nb", ""], [], ["a"]])
@pytest.mark.parametrize("bash", BASHES)
def test_quoted_words_are_read_again(words: list[str], bash: str) -> None:
    need_bash(bash)
    program = (
        f'set -euo pipefail; . {RUNTIME}/messages.sh; eval "set -- $(job_quote "$@")"; printf "%s\\0" "$@"'
    )
    done = subprocess.run([bash, "-c", program, "x", *words], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == (words or [""])


def test_this_run_has_the_bash_that_it_names() -> None:
    path = os.environ.get("JOBGEN_TEST_BASH") or "bash"
    assert old_bash.version() == old_bash.version(path) >= (4, 2)


@pytest.mark.parametrize(
    "start", [("sh", {}), ("bash", {"POSIXLY_CORRECT": "1"})], ids=["sh", "POSIXLY_CORRECT"]
)
@pytest.mark.parametrize("bash", BASHES)
def test_a_script_runs_in_posix_mode(bash: str, start: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    """Also the scripts of the nodes and ranks; /bin/sh of CentOS 7 is bash."""
    need_bash(bash)
    need_package("deepspeed")
    name, env = start
    (tmp_path / name).symlink_to(shutil.which(bash) or bash)
    (tmp_path / "job.sh").write_text(
        jobs.render("local", "--ranks-per-node", "2", program=["touch", "started"])
    )
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), **env}
    done = subprocess.run([tmp_path / name, "job.sh"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "started").exists()


@pytest.mark.parametrize("bash", BASHES)
def test_what_a_sourced_script_declares_is_for_the_whole_script(bash: str, tmp_path: Path) -> None:
    need_bash(bash)
    (tmp_path / "my.sh").write_text(
        "declare -A table; declare -a list; declare -x name; declare -A full=([a]='b c')\n"
    )
    sources = "\n".join(f". {RUNTIME}/{name}.sh" for name in ("messages", "finish", "signals", "source"))
    program = f"""set -euo pipefail
    {sources}
    job_source my.sh
    table[x]=1 table[y]=2 name=n
    echo ${{#table[@]}} "${{list[*]-none}}" "${{full[a]}}" $(env | grep ^name=)
    trap - EXIT"""
    done = subprocess.run([bash, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("2 none b c name=n\n", 0), done.stderr
