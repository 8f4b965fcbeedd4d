"""The scripts use what bash 4.2 has, and the commands of CentOS 7 (coreutils 8.22, util-linux 2.23, sed 4.2, grep 2.20)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import jobs, old_bash
from support.not_installed import skip
from support.runtime_shell import RUNTIME

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"

FEATURES = {
    "4.3: wait -n": r"\bwait\s+-[a-z]*n\b",
    "5.1: wait -p": r"\bwait\s+-[a-z]*p\b",
    "4.3: a name reference": r"\b(local|declare|typeset)\s+-[A-Za-z]*n\b",
    "4.3: test of an element": r"\[\[ (! )?-v \S+\[|\[ -v \S+\[|\btest -v \S+\[",
    "4.3: a negative index": r"\[-\d+\]\s*=|\$\{\w+\[-\d+\]",
    "4.3: printf %(...)T without a time": r"%\([^)]*\)T'?\s*($|[;|&])",
    "4.4: ${x@Q} and its kin": r"\$\{[\w!]+(\[[^]]*\])?@[QEPAKaULuk]\}",
    "4.4: mapfile -d": r"\b(mapfile|readarray)\s+(-\w+\s+)*-[a-z]*d\b",
    "4.4: inherit_errexit": r"\binherit_errexit\b",
    "4.4: local -": r"\blocal -(\s|$|;)",
    "4.4: the process id of a process substitution": r"exec .*>\(.*\)\s*(;|&&)?.*\$!",
    "4.4: trap with a signal that the shell ignores": r"^\s*trap - (?!EXIT|ERR)",
    "5.0: EPOCHREALTIME or EPOCHSECONDS": r"\$EPOCH(REALTIME|SECONDS)\b|\$\{EPOCH(REALTIME|SECONDS)(?!:-)",
    "5.0: BASH_ARGV0": r"\bBASH_ARGV0\b",
    "5.1: SRANDOM": r"\bSRANDOM\b",
    "5.1: expansion of an assoc array by ${x@k}": r"@k\}",
    "5.2: varredir_close, patsub_replacement": r"\b(varredir_close|patsub_replacement|array_expand_once)\b",
    "5.3: ${ command; }": r"\$\{[ |]",
}
OPTIONS = {
    "coreutils 8.28: env -C, -S, -v": r"\benv\s+(-\w*\s+)*(-[CSv]\b|--(chdir|split-string|debug))",
    "coreutils 8.29: timeout -v": r"\btimeout\s+(-\S+\s+)*(-v\b|--verbose)",
    "coreutils 8.24: numfmt, b2sum, basenc, sort --debug": r"\b(numfmt --|b2sum|basenc)\b",
    "coreutils 8.25: date --rfc-3339 with -I": r"\bdate\s+(-\S+\s+)*(-I|--iso-8601=ns|--resolution)",
    "coreutils 8.30: cp --reflink=auto, ls --zero": r"\b(cp\s.*--reflink|ls\s.*--zero|mktemp\s.*--suffix=/)",
    "coreutils 9: sort -z --files0, wc --total": r"\bwc\s.*--total|\bcksum\s.*-a\b",
    "coreutils 8.32: stat --cached": r"\bstat\s.*--cached",
    "util-linux 2.24: setsid -w, --fork": r"\bsetsid\s+(-\w*[wf]\b|--(wait|fork))",
    "util-linux 2.25: flock -E with -o, lscpu -J": r"\bflock\s.*(-F\b|--no-fork|--verbose)|\blscpu\s.*(-J\b|--json|-B\b)",
    "util-linux 2.27: lsns, findmnt --json": r"\blsns\b|\bfindmnt\s.*(-J|--json)",
    "util-linux 2.30: nsenter --wdns, unshare --keep-caps": r"\bunshare\s.*(--keep-caps|--map-user=)|--wdns",
    "sed 4.3: --debug, --sandbox": r"\bsed\s.*(--debug|--sandbox)",
    "grep 3: -P with -z in other locales": r"\bgrep\s+(-\w+\s+)*-\w*P",
    "procps 3.3.15: pgrep and pkill with -r, pidwait": r"\b(pidwait|pwait|pkill\s.*--queue)\b",
    "findutils 4.9: find -files0-from": r"-files0-from",
    "gawk only": r"\bawk\b.*\b(PROCINFO|gensub|asorti?|strftime|systime)\b",
}
# Arrays that always have an element: the others need ${x[@]+"${x[@]}"}, as bash before 4.4 calls an empty one unset.
NEVER_EMPTY = {
    "COMP_WORDS": "the word at the cursor",
    "all": "the hosts of the allocation",
    "bad": "after a test of its length",
    "binds": "begins with the run directory",
    "good": "after a test of its length",
    "given": "after a test of its length",
    "hosts": "the hosts of the allocation",
    "job_arguments": "after a test of its length",
    "job_bad": "after a test of its length",
    "job_beat_at": "used only for a host in it",
    "job_children": "at least tee",
    "job_filter_named": "written into the script",
    "job_filter_whole": "written into the script",
    "job_host_list": "written into the script",
    "job_hosts": "job_check_hostfile has compared its length",
    "job_secret_names": "written into the script",
    "job_value_names": "written into the script",
    "options": "begins with constant words",
    "pids": "after a test of its length",
    "start": "the environment, which has PATH",
    "words": "begins with constant words",
}


def scripts() -> list[Path]:
    return [
        *sorted(RUNTIME.rglob("*.sh")),
        *sorted(GOLDEN.rglob("*.sh")),
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
        'local -n list="$1"',
        "mapfile -d '' words",
        "echo ${words[-1]}",
        'say "${x@Q}" "${list[*]@Q}"',
        "now=$EPOCHREALTIME",
        "[[ -v table[key] ]]",
        "shopt -s inherit_errexit",
        "setsid --wait bash x.sh",
        "env -C /tmp true",
        "trap - TERM USR1",
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
    assert all(line.startswith("#") for line in head.splitlines())
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
@pytest.mark.parametrize("bash", ["bash", "/opt/bash/4.2/bash", "/opt/bash/4.3/bash", "/opt/bash/4.4/bash"])
def test_quoted_words_are_read_again(words: list[str], bash: str) -> None:
    if bash.startswith("/") and not Path(bash).exists():
        skip(f"bash {bash.split('/')[3]}")
    program = (
        f'set -euo pipefail; . {RUNTIME}/messages.sh; eval "set -- $(job_quote "$@")"; printf "%s\\0" "$@"'
    )
    done = subprocess.run([bash, "-c", program, "x", *words], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == (words or [""])


def test_this_run_has_the_bash_that_it_names() -> None:
    assert old_bash.version() >= (4, 2)
