"""Shell code of the user in a job, run for real: when it runs, what it can do, and what its failure means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import ROOT, jobs
from support.processes import gone
from support.require import need_command


def test_the_blocks_run_in_their_order_around_the_ranks(tmp_path: Path) -> None:
    done = jobs.run(
        tmp_path,
        *("--setup", "export COLOUR=blue", "--env", "COLOUR2=red"),
        *("--before", 'echo "before: $COLOUR $COLOUR2 ${JOBGEN_RUN_DIR##*/} $PWD"'),
        *("--after-block", 'echo "after: $JOBGEN_STATUS"; cat > /dev/null'),
        program=("bash", "-c", 'echo "rank: $COLOUR"; exit 3'),
    )
    said = [line for line in done.stdout.splitlines() if line.startswith(("before", "rank:", "after"))]
    directory = jobs.run_dir(tmp_path / "runs")
    assert said[:1] == [f"before: blue red {directory.name} {tmp_path}"]
    assert said[1] == "rank: blue"
    assert said[-1] == "after: 3"
    assert done.returncode == 3


def test_an_early_setup_runs_before_the_files_of_the_environment(tmp_path: Path) -> None:
    """Its variables, exported or not, its functions and its directory hold; its options of the shell do not."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "env.sh").write_text('export SEEN="$A $N ${LIST[1]} $COLOUR"; f\n')
    early = "set +e\nfalse\nA=1; export N=2; LIST=(3 4)\nf() { echo called; }\ncd work\nset -x"
    done = jobs.run(
        tmp_path,
        *("--early-setup", early, "--env", "COLOUR=red", "--source", "./env.sh"),
        *("--setup", 'echo "setup: $A $- $PWD"'),
        program=("bash", "-c", 'echo "rank: $SEEN"'),
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert {"called", "rank: 1 2 4 red"} <= {*lines}
    (said,) = [line.split() for line in lines if line.startswith("setup: 1")]
    assert {*"ex"} & {*said[2]} == {"e"}
    assert said[3] == f"{tmp_path}/work"
    done = jobs.run(tmp_path, "--early-setup", "a=1\nfalse", "--setup", "echo never")
    assert done.returncode == 71
    assert "early_setup, line 2: exited with status 1" in done.stdout


def test_a_working_directory_with_variables_is_entered_behind_early_setup(tmp_path: Path) -> None:
    early = 'W=$PWD/work/$JOBGEN_JOB_ID\nmkdir -p "$W/x y"\necho "early: $PWD"'
    done = jobs.run(
        tmp_path,
        *("--early-setup", early, "--workdir", "${W}/$IN", "--env", "IN=x y"),
        *("--setup", 'echo "setup: $PWD"'),
        program=("bash", "-c", 'echo "rank: $PWD"'),
    )
    assert done.returncode == 0, done.stdout
    (there,) = (tmp_path / "work").glob("*/x y")
    assert {f"early: {tmp_path}", f"setup: {there}", f"rank: {there}"} <= {*done.stdout.splitlines()}
    assert jobs.run_dir(tmp_path / "runs").is_dir()


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        (("$NONE/x",), 71, "NONE: "),
        (("$NONE", "--env", "NONE="), 72, "--workdir is empty: its variables have no value"),
        (("$PWD/gone",), 72, "/gone: --workdir must exist on the compute nodes"),
    ],
)
def test_a_working_directory_with_variables_that_is_not_there(
    tmp_path: Path, given: tuple[str, ...], status: int, said: str
) -> None:
    done = jobs.run(tmp_path, "--workdir", *given, program=("true",))
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("a=1\nfalse", "setup, line 2: exited with status 1"),
        ("return 4", "setup: exited with status 4"),
        ("exit 0", "setup has called exit"),
        ("exit 3", "setup has called exit"),
        ("set -u\necho $nothing", "nothing: unbound variable"),
        ("nothing-like-this", "line 1: exited with status 127"),
    ],
)
def test_a_setup_that_fails_ends_the_job(tmp_path: Path, setup: str, said: str) -> None:
    done = jobs.run(tmp_path, "--setup", setup, "--after-block", "echo never")
    assert done.returncode == 71
    assert said in done.stdout
    assert "nothing was launched" in done.stdout
    assert "never" not in done.stdout


def test_what_a_setup_may_leave_behind(tmp_path: Path) -> None:
    """Its options, traps, functions and half-true tests are not the script's."""
    setup = "program() { false; }\nlaunch() { false; }\nlaunch || echo $nothing\nset -f\ntrap 'echo trapped' EXIT ERR\nIFS=:\n[[ -d /none ]] && echo"
    done = jobs.run(tmp_path, "--setup", setup, program=("pwd",))
    assert done.returncode == 0, done.stdout
    assert str(tmp_path) in done.stdout.splitlines()
    assert "trapped" not in done.stdout.splitlines()


def test_a_setup_knows_its_job_and_its_directory_holds(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    setup = 'set -eu\n: "$JOBGEN_JOB_ID" "$JOBGEN_ATTEMPT"\nmkdir "$JOBGEN_RUN_DIR/made"\ncd work\n! false\nset +e\nfalse\ntrue'
    done = jobs.run(tmp_path, "--setup", setup, "--before", "pwd", program=("bash", "-c", "echo rank: $PWD"))
    assert done.returncode == 0, done.stdout
    assert {str(tmp_path / "work"), f"rank: {tmp_path}/work"} <= set(done.stdout.splitlines())
    assert (jobs.run_dir(tmp_path / "runs") / "made").is_dir()


def _names_of_the_runtime() -> list[str]:
    """Return the names that the runtime gives to its variables without a prefix of its own."""
    text = "\n".join(file.read_text() for file in (ROOT / "templates").rglob("*.sh*"))
    declared = re.findall(r"^ *local (.*)", text, re.MULTILINE)
    return sorted(
        {
            name
            for line in declared
            for name in re.findall(r"(?<!\S)[a-z]\w*", line)
            if not name.startswith("job_")
        }
    )


@pytest.mark.parametrize("launch", [("none",), ("torchrun",), ("mpirun",)])
def test_variables_with_the_names_of_the_runtime_keep_their_values(
    launch: tuple[str], tmp_path: Path
) -> None:
    """A local variable of bash has the export attribute of the outer one: programs would get its value."""
    need_command(*(name for name in launch if name != "none"))
    names = _names_of_the_runtime()
    assert {"name", "status", "what", "words"} <= set(names)
    show = "env | sed -n 's/=mine$//p' | sed 's/^/{} /'"
    done = jobs.run(
        tmp_path,
        *("--launcher", *launch, "--setup", f"export {' '.join(f'{name}=mine' for name in names)}"),
        *("--before", show.format("before"), "--after-block", show.format("after")),
        program=("bash", "-c", show.format("rank")),
    )
    expected = [f"{part} {name}" for part in ("before", "rank", "after") for name in names]
    assert [line for line in expected if line not in done.stdout.splitlines()] == []


def test_a_before_that_makes_the_program(tmp_path: Path) -> None:
    made = jobs.run(tmp_path, "--before", "printf 'echo made' > a; chmod +x a", program=("./a",))
    assert (made.returncode, "made" in made.stdout.split("\n")) == (0, True)
    words = ("--before", "echo behind", "--after-block", "echo after: $JOBGEN_STATUS")
    missing = jobs.run(tmp_path, *words, program=("./b",))
    assert missing.returncode == 71
    assert re.search("(?s)behind\n.*jobgen: cannot run ./b in .*after: 71\n", missing.stdout)


def test_a_before_that_fails_launches_nothing_and_after_still_runs(tmp_path: Path) -> None:
    done = jobs.run(
        tmp_path,
        *("--before", "false\necho not here", "--after-block", 'echo "after: $JOBGEN_STATUS"'),
        program=("echo", "ran"),
    )
    assert done.returncode == 71
    assert "before: exited with status 1: nothing was launched" in done.stdout
    assert "after: 71" in done.stdout
    assert not {"not here", "ran"} & set(done.stdout.splitlines())


def test_an_after_that_fails_changes_nothing(tmp_path: Path) -> None:
    done = jobs.run(tmp_path, "--after-block", "exit 5")
    assert done.returncode == 0
    assert "warning" in done.stdout
    assert "after: exited with status 5" in done.stdout


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("if true", "line 2: syntax error: unexpected end of file"),
        ("a=(\n", "line 1: unexpected EOF"),
        ("cat <<X\ny", "here-document"),
        ("END_OF_BEFORE", "must not contain the line END_OF_BEFORE"),
        (" \n ", "must be shell code"),
        ("# one\n\n  # two", "must be shell code; it has only comments"),
        ("echo a\r\necho b", "ended as on Unix"),
    ],
)
def test_a_block_that_bash_cannot_read_is_refused(block: str, said: str) -> None:
    need_command("bash")
    done = jobs.jobgen("local", "--before", block, "--", "true")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("jobgen: --before")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_commands_and_files_on_the_only_node(tmp_path: Path) -> None:
    """Nothing is left on its disk, whatever the status."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "f.bin").write_text("staged")
    options = ("--local-dir", str(tmp_path / "disk"), "--stage", "f.bin:sub/g", "--local-caches")
    hooks = (
        "--on-each-node",
        'cat "$JOBGEN_STAGE"/sub/g; sleep 600 &',
        "--after-on-each-node",
        'echo "; $JOBGEN_STATUS $1"',
    )
    done = jobs.run(
        *(tmp_path, *options, *hooks),
        program=("bash", "-c", 'cat "$JOBGEN_STAGE"/sub/g; [[ -d $HF_MODULES_CACHE ]]; exit 5'),
        arguments=("it's",),
    )
    assert done.returncode == 5, done.stdout
    assert "staged" in done.stdout
    [log] = (jobs.run_dir(tmp_path / "runs") / "attempt-1/on-nodes").glob("*.log")
    assert log.read_text() == "staged; 5 it's\n"
    assert not list((tmp_path / "disk").iterdir())
    assert not gone(tmp_path)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--stage", "none.bin"], "--stage none.bin: no file that localhost can read"),
        (["--stage", "disk"], "--stage disk: a directory; stage an archive of it, as tar makes it"),
        (["--stage", "bad.tar"], "staging of bad.tar exited with status 2: tar: "),
        (["--on-each-node", "exit 7"], "no node is ready; localhost: on_each_node exited with status 7"),
        (["--on-each-node", "true", "--local-dir", "$NO_DISK/x"], "NO_DISK is no absolute path in this job"),
    ],
)
def test_a_node_that_cannot_be_prepared_ends_the_job(tmp_path: Path, options: list[str], fault: str) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "bad.tar").write_text("no archive")
    done = jobs.run(tmp_path, "--local-dir", str(tmp_path / "disk"), *options, program=("echo", "rank"))
    assert done.returncode == 71, done.stdout
    assert fault in done.stdout
    assert "rank" not in done.stdout.splitlines()
    assert not list((tmp_path / "disk").iterdir())
