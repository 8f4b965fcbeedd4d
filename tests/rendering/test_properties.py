"""Whatever a user types arrives byte for byte, or is refused; nothing of it is executed."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import zlib
from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.require import find_command
from support.texts import PROBE, TEXT

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.plan.plan import resolve
from jobgen.rendering.quoting import sh
from jobgen.rendering.render import render

SHELLCHECK = find_command("shellcheck")

# What some option takes, and others may not.
WORDS = [
    *("a100", "0-3%2", "12", "afterany:12", "end", "none", "20:00", "+2h", "-5", "m:2", "a=b", "%x.log"),
    "a&b",
]
NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=40))
def test_a_quoted_word_is_the_word(words: list[str]) -> None:
    line = " ".join(map(sh, words))
    assert "\n" not in line
    assert "\r" not in line
    for locale in ("C", "C.UTF-8"):
        done = subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {line}"],
            capture_output=True,
            check=True,
            env={"LC_ALL": locale, "PATH": os.environ["PATH"]},
        )
        assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)


def is_folder(name: str) -> bool:
    """Whether it can be the name of one; the script refuses line breaks."""
    return name not in ("", ".", "..") and not set("/\n") & set(name) and len(os.fsencode(name)) < 200


@settings(max_examples=40, deadline=None)
@given(
    arguments=st.lists(TEXT, max_size=4),
    variables=st.dictionaries(NAME, TEXT, max_size=4),
    folder=TEXT.filter(is_folder),
    runs=TEXT.filter(is_folder),
)
def test_a_rendered_script_hands_everything_on(
    arguments: list[str], variables: dict[str, str], folder: str, runs: str
) -> None:
    """A real run of a whole script, by a launcher that needs nothing: a torchrun of one line."""
    with tempfile.TemporaryDirectory() as top:
        here = Path(top)
        commands = here / "bin"
        (here / folder).mkdir()
        commands.mkdir()
        for name, text in (("probe", PROBE), ("torchrun", '#!/bin/bash\nRANK=0 exec bash "${@: -1}"\n')):
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        options: dict[str, str | list[str]] = {
            "launcher": "torchrun",
            "workdir": folder,
            "runs_dir": runs,
            "env": [f"{name}={value}" for name, value in variables.items()],
        }
        try:
            script = render(resolve(read_spec("local", options, ("probe", *arguments))))
        except JobgenError:
            assert any(_reserved(name) for name in variables) or "~" in (folder[:1], runs[:1])
            return
        outside = {"PATH": f"{commands}:{os.environ['PATH']}", "HOME": top}
        if any(name in ("PATH", "HOME", "ENV") for name in variables):
            return  # heeded, but then the commands of this test are not found
        done = subprocess.run(
            ["bash", "-s"], input=os.fsencode(script), cwd=here, env=outside, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        [run_dir] = (here / folder / runs).iterdir()
        words = (run_dir / "words").read_bytes().split(b"\0")[:-1]
        assert words == [os.fsencode(word) for word in (str(here / folder), *arguments)]
        seen = dict(line.split(b"=", 1) for line in (run_dir / "env").read_bytes().split(b"\0")[:-1])
        for name, value in variables.items():
            assert seen[os.fsencode(name)] == os.fsencode(value)
        assert not list(here.rglob("pwned"))


def _reserved(name: str) -> bool:
    try:
        read_spec("local", {"env": [f"{name}=x"]})
    except JobgenError:
        return True
    return False


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("name", "queue", "account", "mail", "module", "conda", "source", "mem", "walltime"),
                *("include", "directive", "array", "after", "reservation", "qos", "constraint", "licenses"),
                *("comment", "mail_on", "log", "begin", "priority"),
            ]
        ),
        st.one_of(TEXT, st.sampled_from(WORDS)),
        max_size=4,
    ),
    st.sampled_from(["pbs", "slurm"]),
)
def test_directives_hold_only_what_was_allowed(fields: dict[str, str], scheduler: str) -> None:
    """Any text is refused in one sentence, or the script keeps its shape: directives first, one a line."""
    given: dict[str, str | list[str]] = {
        key: [value] if key in ("module", "source", "directive", "after") else value
        for key, value in fields.items()
    }
    try:
        script = render(resolve(read_spec(scheduler, given)))
    except JobgenError as error:
        one_line = "\n" not in str(error)
        assert one_line, error  # noqa: PT017  # most examples raise, but not all
        return
    lines = script.splitlines()
    plain = render(resolve(read_spec(scheduler, {}))).splitlines()
    told = ("array", "after", "reservation", "qos", "mail_on", "begin", "priority")
    extra = dict.fromkeys(("queue", "account", "directive", *told), 1) | {"mail": 2 - ("mail_on" in fields)}
    if scheduler == "slurm":
        extra |= {"constraint": 1, "comment": 1, "licenses": 1}
    else:
        extra |= {"log": 1, "licenses": fields.get("licenses", "").count(",") + 1}
    marks = ("#PBS ", "#SBATCH ")
    expected = sum(line.startswith(marks) for line in plain) + sum(extra.get(key, 0) for key in fields)
    expected += scheduler == "slurm" and "mem" in fields
    assert sum(line.startswith(marks) for line in lines) == expected
    assert "pwned" not in script or "$(touch pwned)" in str(fields) or "`touch pwned`" in str(fields)


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        TEXT,
        st.from_regex(r"[0-9x+ ]{0,12}", fullmatch=True),
        st.from_regex(r"[0-9]x[0-9](\+[0-9]x[0-9]){0,2}", fullmatch=True),
    )
)
def test_nodes_are_a_number_or_groups_that_differ(text: str) -> None:
    """Anything else is refused in one sentence, which has an example."""
    parts = [part.split("x") for part in text.split("+")]
    pairs = all(re.fullmatch(r"[1-9][0-9]{0,4}x[1-9][0-9]{0,4}", part) for part in text.split("+"))
    try:
        plan = resolve(read_spec("pbs", {"nodes": text, "launcher": "mpirun"}))
    except JobgenError as error:
        refused = str(error)
        assert "\n" not in refused  # most examples raise, but not all
        assert "2x4+1x8" in refused or re.fullmatch(r"-?[0-9]+", text)
        assert not (pairs and len({ranks for _, ranks in parts}) > 1)
        return
    if plan.resources.mixed is None:
        assert re.fullmatch("[0-9]{1,9}", text)
        return
    assert plan.resources.nodes == sum(int(nodes) for nodes, _ in parts)
    assert plan.resources.active.world_size == sum(int(nodes) * int(ranks) for nodes, ranks in parts)
    select = "+".join(
        f"{nodes}:ncpus={2 * int(ranks)}:mpiprocs={ranks}:ngpus={ranks}" for nodes, ranks in parts
    )
    assert f"#PBS -l select={select}\n" in render(plan)


COMBINATIONS = st.fixed_dictionaries(
    {"launcher": st.sampled_from(["mpirun", "torchrun", "deepspeed", "srun"])},
    optional={
        "nodes": st.sampled_from(["1", "2", "5"]),
        "ranks_per_node": st.sampled_from(["1", "4"]),
        "accelerator": st.sampled_from(["cpu", "cuda", "rocm", "npu"]),
        "mpi": st.sampled_from(["openmpi", "mpich", "intel", "pals"]),
        "remote": st.sampled_from(["auto", "ssh", "scheduler"]),
        "dialect": st.sampled_from(["pbspro", "torque"]),
        "walltime": st.sampled_from(["1s", "10m", "2-00:00:00"]),
        "grace": st.sampled_from(["1s", "3m"]),
        "signal": st.sampled_from(["USR1", "USR2@1", "USR2@600"]),
        "requeue": st.sampled_from(["1", "1000"]),
        "preflight": st.sampled_from(["yes", "no"]),
        "spare_nodes": st.sampled_from(["1", "3"]),
        "hang_timeout": st.sampled_from(["1s", "1h"]),
        "exclude": st.just("n2:0"),
        "master_port": st.just("29500"),
        "workdir": st.just("a 'b'"),
        "rank_logs": st.sampled_from(["node", "rank", "failed", "none"]),
        "runtime": st.sampled_from(["embedded", "beside"]),
        "cpu_bind": st.sampled_from(["none", "cores", "numa", "0-7;8-15;16-23;24-31"]),
        "cpus_per_node": st.sampled_from(["8", "9"]),
        "interface": st.just("ib0"),
        "container": st.sampled_from(["apptainer", "docker", "podman", "enroot", "pyxis", "edf", "shifter"]),
        "image": st.just("/i/a.sif"),
        "setup": st.just("module load x"),
        "before": st.just("cp -r data /tmp"),
        "after": st.just("echo 'done'"),
    },
)


@settings(max_examples=200, deadline=None)
@given(
    scheduler=st.sampled_from(["pbs", "slurm", "local"]),
    options=COMBINATIONS,
    program=st.sampled_from([(), ("--task", "digits"), ("train.py",), ("-m", "mine"), ("./a.out", "x")]),
)
def test_options_of_every_sort_together(
    scheduler: str, options: dict[str, str | list[str]], program: tuple[str, ...]
) -> None:
    """Each combination is refused in one sentence, or gives a script that bash and shellcheck take."""
    try:
        script = render(resolve(read_spec(scheduler, options, program)))
    except JobgenError as error:
        assert "\n" not in str(error)  # noqa: PT017  # most raise, but not all
        return
    bash = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (bash.returncode, bash.stderr) == (0, "")
    inner = re.findall(r"(?ms)^  cat << '(END_OF_\w+)'\n(.*?)^\1$", script)  # for others to run
    assert bool(inner) == (options.get("runtime") != "beside")
    for _, text in inner:
        _parsed(text)
    _clean(script)


@cache  # they are few
def _parsed(script: str) -> None:
    bash = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (bash.returncode, bash.stderr) == (0, "")
    _clean(script)


def _clean(script: str) -> None:
    if SHELLCHECK and zlib.crc32(script.encode()) % 8 == 0:  # it takes a second
        done = subprocess.run(
            [SHELLCHECK, "--severity=style", "-"], input=script, text=True, capture_output=True
        )
        assert done.returncode == 0, done.stdout
