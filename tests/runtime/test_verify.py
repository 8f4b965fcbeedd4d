"""A script that is incomplete starts nothing, wherever it ends; one whose runtime was edited warns and runs."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import jobs
from support.runtime_shell import Shell

FILES = ()

MARKER = re.compile(r"^# =+ jobgen runtime .*\n", re.MULTILINE)
OPTIONS = ("local", "--launcher", "torchrun")
INCOMPLETE = "jobgen: this script is incomplete, or failed before the job began: nothing was started\n"
WARNING = "jobgen: warning: the runtime in "


@pytest.fixture(scope="module")
def embedded() -> str:
    return jobs.render(*OPTIONS, program=("true",))


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """The script, the name of its runtime and the runtime."""
    folder = tmp_path_factory.mktemp("beside")
    done = jobs.jobgen(*OPTIONS, "--runtime", "beside", "-o", folder / "job.sh", "--", "true")
    assert done.returncode == 0, done.stderr
    [runtime] = folder.glob("jobgen-runtime-*.sh")
    return (folder / "job.sh").read_text(), runtime.name, runtime.read_text()


def run(shell: Shell, script: str, *, piped: bool = False) -> subprocess.CompletedProcess[str]:
    shell.commands(torchrun="echo started")
    (shell.folder / "job.sh").write_text(script)
    words = ["bash", "-s"] if piped else ["bash", "job.sh"]
    given = {"input": script} if piped else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        words,
        cwd=shell.folder,
        env=shell.env({}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **given,
    )  # type: ignore[call-overload,no-any-return]


def started(shell: Shell) -> bool:
    return (shell.folder / "runs").exists()


def refused(shell: Shell, done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 70 and INCOMPLETE in done.stderr and not started(shell)


def below(script: str, change: Callable[[str], str]) -> str:
    found = MARKER.search(script)
    assert found
    return script[: found.end()] + change(script[found.end() :])


@pytest.mark.parametrize("piped", [False, True])
def test_the_runtime_as_it_was_made(shell: Shell, embedded: str, piped: bool) -> None:
    done = run(shell, embedded, piped=piped)
    assert "nothing was started" not in done.stderr
    assert WARNING not in done.stderr
    assert started(shell), done.stderr


EDITS: dict[str, Callable[[str], str]] = {
    "edited": lambda script: below(script, lambda text: text.replace("job_die 72", "job_die 0", 1)),
    "a comment": lambda script: below(script, lambda text: "# mine\n" + text),
    "a line more": lambda script: below(script, lambda text: text + "\njob_main\n"),
    "the last line break": lambda script: script[:-1],
    "the marker": lambda script: MARKER.sub("", script),
    "another sum": lambda script: re.sub(r"SHA-256 \w{8}", "SHA-256 00000000", script),
}


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_a_runtime_that_was_edited_warns_and_runs(
    shell: Shell, embedded: str, change: Callable[[str], str]
) -> None:
    changed = change(embedded)
    assert changed != embedded
    done = run(shell, changed)
    assert f"{WARNING}job.sh was edited\n" in done.stderr
    assert done.stdout.count("started") == 1
    assert started(shell)


def test_a_script_that_bash_reads_from_its_input_has_no_checksum(shell: Shell, embedded: str) -> None:
    for name in ("bash", "-bash", "main"):  # files that are not the script
        (shell.folder / name).write_text("echo\n")
    done = run(shell, EDITS["edited"](embedded), piped=True)
    assert WARNING not in done.stderr
    assert started(shell)


def test_a_script_from_a_pipe(shell: Shell, embedded: str) -> None:
    shell.commands(torchrun="echo started")
    (shell.folder / "job.sh").write_text(EDITS["edited"](embedded))
    done = shell.start(["bash", "-c", "bash <(cat job.sh)"], {}, 60)
    assert WARNING not in done.said
    assert started(shell)


@pytest.mark.parametrize("runtime", ["", "job_main\n", "if\njob_main\n", "---\njob_main\n", "exit\n"])
def test_a_runtime_that_bash_cannot_read(shell: Shell, embedded: str, runtime: str) -> None:
    assert refused(shell, run(shell, below(embedded, lambda text: runtime)))


def cuts(text: str, first: int, step: int) -> list[int]:
    """Return where a text may be cut: in each line from one on, at another place of it each time."""
    ends = [found.end() for found in re.finditer("\n", text)]
    lines = list(itertools.pairwise(ends))[first:-1:step]
    return [start + 7 * number % (end - start) for number, (start, end) in enumerate(lines)]


def run_cut(shell: Shell, script: str, at: int) -> str:
    """Run a script that ends at this place, from a file or from the input; return what is wrong with the end."""
    words, given = (["bash", "-s"], script[:at]) if at % 2 else (["bash", f"cut-{at}.sh"], "")
    (shell.folder / f"cut-{at}.sh").write_text(script[:at])
    done = subprocess.run(
        words, cwd=shell.folder, env=shell.env({}), input=given, capture_output=True, text=True, timeout=60
    )
    return "" if done.returncode == 70 and INCOMPLETE in done.stderr else f"cut at {at}: {done}"


def test_a_script_that_ends_in_any_line_starts_nothing(shell: Shell, embedded: str) -> None:
    shell.commands(torchrun="echo started")
    lines = embedded.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("trap "))
    last = len(embedded) - len(lines[-1]) - 1  # the line that starts the job: each byte of it
    places = [*cuts(embedded, head, 1), *range(last, len(embedded) - 1)]
    with ThreadPoolExecutor(4) as pool:
        assert not list(filter(None, pool.map(lambda at: run_cut(shell, embedded, at), places)))
    assert len(places) > 500
    assert not started(shell)


def test_a_script_that_ends_in_its_directives_starts_nothing(shell: Shell, embedded: str) -> None:
    head = embedded[: embedded.index("\ncase ")]
    for at in range(0, len(head), 9):
        assert not run(shell, head[:at]).stdout
    assert not started(shell)


def test_the_job_part_may_be_edited(shell: Shell, embedded: str) -> None:
    done = run(shell, embedded.replace("environment() {", "environment() {\n  echo mine", 1))
    assert WARNING not in done.stderr
    assert started(shell)


def test_a_command_of_the_job_part_that_fails(shell: Shell, embedded: str) -> None:
    done = run(shell, embedded.replace("\nenvironment() {", "\nfalse\nenvironment() {", 1))
    assert refused(shell, done)


def test_beside(shell: Shell, beside: tuple[str, str, str]) -> None:
    script, name, runtime = beside
    (shell.folder / name).write_text(runtime)
    done = run(shell, script)
    assert WARNING not in done.stderr
    assert started(shell)
    run_dir = jobs.run_dir(shell.folder / "runs")
    assert (run_dir / name).read_text() == runtime
    assert (run_dir / "job.sh").read_text() == script


@pytest.mark.parametrize("piped", [False, True])
def test_a_runtime_beside_that_was_edited(shell: Shell, beside: tuple[str, str, str], piped: bool) -> None:
    script, name, runtime = beside
    (shell.folder / name).write_text(runtime.replace("70", "71"))
    done = run(shell, script, piped=piped)
    assert re.search(rf"^{WARNING}\S*/{re.escape(name)} was edited$", done.stderr, re.MULTILINE)
    assert started(shell)


@pytest.mark.parametrize("version", ["", "9."])
def test_a_runtime_beside_that_is_missing(shell: Shell, beside: tuple[str, str, str], version: str) -> None:
    script, name, runtime = beside
    if version:
        (shell.folder / name.replace("runtime-", f"runtime-{version}")).write_text(runtime)
    done = run(shell, script)
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr == f"jobgen: {name}, the runtime of this script, is missing: nothing was started\n"
    assert not started(shell)


def test_a_runtime_beside_that_ends_in_any_line_starts_nothing(
    shell: Shell, beside: tuple[str, str, str]
) -> None:
    script, name, runtime = beside
    last = len(runtime) - len(runtime.splitlines()[-1]) - 1
    for at in (*cuts(runtime, 0, 20), *range(last, len(runtime) - 1, 3)):
        (shell.folder / name).write_text(runtime[:at])
        assert refused(shell, run(shell, script)), at
    (shell.folder / name).write_text("")
    assert refused(shell, run(shell, script))
    (shell.folder / name).write_text(runtime)
    lines = script.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("trap "))
    for at in cuts(script, head, 3):
        assert refused(shell, run(shell, script[:at])), at
