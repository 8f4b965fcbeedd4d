"""The checksum of the runtime: one that was edited, cut off, is missing or of another version starts nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest
from support import jobs
from support.runtime_shell import Shell

FILES = ()

MARKER = re.compile(r"^# =+ jobgen runtime .*\n", re.MULTILINE)
OPTIONS = ("local", "--launcher", "torchrun")


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


def below(script: str, change: Callable[[str], str]) -> str:
    found = MARKER.search(script)
    assert found
    return script[: found.end()] + change(script[found.end() :])


@pytest.mark.parametrize("piped", [False, True])
def test_the_runtime_as_it_was_made(shell: Shell, embedded: str, piped: bool) -> None:
    done = run(shell, embedded, piped=piped)
    assert "nothing was started" not in done.stderr
    assert started(shell), done.stderr


CHANGES: dict[str, Callable[[str], str]] = {
    "edited": lambda script: below(script, lambda text: text.replace("job_die 72", "job_die 0", 1)),
    "a comment": lambda script: below(script, lambda text: "# mine\n" + text),
    "a line more": lambda script: below(script, lambda text: text + "\njob_main\n"),
    "cut off": lambda script: below(script, lambda text: text[: len(text) // 2]),
    "half a line": lambda script: script[:-3],
    "all below the marker": lambda script: below(script, lambda text: ""),
    "the end of the job": lambda script: script[: script.index("# Below is the runtime")],
    "within a function": lambda script: script[: script.index("environment() {") + 20],
    "the marker": lambda script: MARKER.sub("", script),
    "another sum": lambda script: re.sub(r"SHA-256 \w{8}", "SHA-256 00000000", script),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_runtime_that_was_changed_starts_nothing(
    shell: Shell, embedded: str, change: Callable[[str], str]
) -> None:
    changed = change(embedded)
    assert changed != embedded
    done = run(shell, changed)
    assert not started(shell)
    assert done.returncode == 70, done
    assert "jobgen: the runtime" in done.stderr


@pytest.mark.parametrize("runtime", ["job_main\n", "if\njob_main\n", "---\njob_main\n"])
def test_a_runtime_that_bash_cannot_read_says_so_too(shell: Shell, embedded: str, runtime: str) -> None:
    done = run(shell, below(embedded, lambda text: runtime))
    assert not started(shell)
    assert done.returncode == 70, done


def test_the_job_part_may_be_edited(shell: Shell, embedded: str) -> None:
    run(shell, embedded.replace("environment() {", "environment() {\n  echo mine", 1))
    assert started(shell)


def test_beside(shell: Shell, beside: tuple[str, str, str]) -> None:
    script, name, runtime = beside
    (shell.folder / name).write_text(runtime)
    run(shell, script)
    assert started(shell)
    run_dir = jobs.run_dir(shell.folder / "runs")
    assert (run_dir / name).read_text() == runtime
    assert (run_dir / "job.sh").read_text() == script


@pytest.mark.parametrize("what", ["missing", "edited", "cut off", "empty", "another version"])
def test_a_runtime_beside_that_is_another(shell: Shell, beside: tuple[str, str, str], what: str) -> None:
    script, name, runtime = beside
    texts = {"edited": runtime.replace("70", "71"), "cut off": runtime[:500], "empty": ""}
    if what == "another version":
        (shell.folder / name.replace("runtime-", "runtime-9.")).write_text(runtime)
    elif what in texts:
        (shell.folder / name).write_text(texts[what])
    done = run(shell, script)
    assert (done.returncode, done.stdout) == (70, "")
    assert (
        f"jobgen: {name}, the runtime of this script, is missing, edited or of another version: nothing was started"
        in done.stderr
    )
    assert not started(shell)
