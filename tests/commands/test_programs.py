"""The words of a program as people type and paste them: in quotes, misspelt, before --, with dashes and blanks of editors."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import jobgen, path_with

NO_BREAK_SPACE, EN_DASH, MINUS = "\N{NO-BREAK SPACE}", "\N{EN DASH}", "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("program", "parts"),
    [
        (["python train.py"], "python train.py"),
        (["train.py --lr 1"], "train.py --lr 1"),
        (["python3", "train.py --lr 1"], "train.py --lr 1"),
        (["python3", "-u", "train.py --lr 1"], "train.py --lr 1"),
        (["./run.sh --all"], "./run.sh --all"),
        (["/usr/bin/python3 train.py"], "/usr/bin/python3 train.py"),
        (["bash -c 'echo a'"], "bash -c 'echo a'"),
        (["my train.py"], "my train.py, and a file with blanks in its name is './my train.py'"),
    ],
)
@pytest.mark.parametrize("command", ["slurm", "pbs", "local"])
def test_a_program_in_quotes_is_refused(command: str, program: list[str], parts: str) -> None:
    done = jobgen(command, "--", *program)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith(f"(after --): is one word; without its quotes it is {parts}\n")


@pytest.mark.parametrize(
    "code", ["cd x && python3 train.py", "python3 train.py > log", "a; b", "train.py | tee log"]
)
def test_code_of_a_shell_needs_one(code: str) -> None:
    done = jobgen("slurm", "--", code)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"is code of a shell, which jobgen does not read: use bash -c '{code}'\n")
    assert jobgen("slurm", "--", "bash", "-c", code).returncode == 0


@pytest.mark.parametrize(
    "program",
    [["./my train.py"], ["bash", "-c", "echo a b"], ["python3", "-c", "print(1, 2)"], ["./a", "b c"]],
)
def test_words_with_blanks_remain(program: list[str]) -> None:
    assert jobgen("slurm", "--", *program).returncode == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["trian.py"], "trian.py"),
        (["python3", "-u", "trian.py"], "trian.py"),
        (["numactl", "-N0", "python3", "trian.py", "--lr", "1"], "trian.py"),
    ],
)
def test_a_file_that_is_not_here_is_named(words: list[str], named: str, tmp_path: Path) -> None:
    """The script is made: the file may be on the cluster only. A submission looks for it here."""
    (tmp_path / "train.py").touch()
    made = jobgen("slurm", "--", *words, cwd=tmp_path)
    assert made.returncode == 0
    assert (
        f"note: {named} (after --): is not in this directory, and must be where the job runs" in made.stderr
    )
    assert "did you mean train.py?" in made.stderr
    env = {"PATH": f"{path_with(tmp_path / 'bin', sbatch='echo 12', squeue='')}"}
    refused = jobgen("submit", "slurm", "--", *words, cwd=tmp_path, env=env)
    assert (refused.returncode, "did you mean train.py?" in refused.stderr) == (2, True)
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    "words", [["train.py"], ["/opt/train.py"], ["-m", "train"], ["hostname"], ["--task", "digits"]]
)
def test_nothing_is_said_of_other_programs(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    assert "is not in" not in jobgen("slurm", "--", *words, cwd=tmp_path).stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--setup", "git clone https://h/x .", "--", "made.py"),
        ("--after", "12", "--", "./made"),
        ("--job", "steps.toml"),
    ],
)
def test_a_file_that_a_job_makes_can_be_submitted(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "steps.toml").write_text('[[step]]\ncommand = ["make"]\n[[step]]\ncommand = ["./made"]\n')
    env = {"PATH": f"{path_with(tmp_path / 'bin', sbatch='echo 12', squeue='')}"}
    assert jobgen("submit", "slurm", *words, cwd=tmp_path, env=env).returncode == 0


@pytest.mark.parametrize(
    "wrapper",
    [
        "apptainer exec --pwd /opt/app a.sif",
        "singularity run a.sif",
        "docker run --rm -w /app image",
        "env -C folder",
        "env -Cfolder A=1",
        "conda run -n x --cwd folder",
        "uv run --directory=folder",
    ],
)
def test_files_of_a_container_or_of_another_directory_are_not_looked_up(wrapper: str, tmp_path: Path) -> None:
    env = {"PATH": f"{path_with(tmp_path / 'bin', sbatch='echo 12', squeue='')}"}
    words = ("slurm", "--launcher", "none", "--", *wrapper.split(), "python3", "app.py")
    assert "is not in" not in jobgen(*words, cwd=tmp_path).stderr
    assert jobgen("submit", *words, cwd=tmp_path, env=env).returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([f"{EN_DASH}nodes", "2", "--"], "did you mean --nodes, with hyphens?"),
        ([f"{EN_DASH}-nodes=2", "--"], "did you mean --nodes=2, with hyphens?"),
        ([f"{MINUS}N", "2", "--"], "did you mean -N, with hyphens?"),
        ([f"--nodes{NO_BREAK_SPACE}2", "--"], "contains a blank that is no space: write --nodes 2"),
        ([f"{NO_BREAK_SPACE}--nodes=2", "--"], "contains a blank that is no space: write --nodes=2"),
        (["--", f"{EN_DASH}lr", "1"], "did you mean --lr, with hyphens?"),
    ],
)
def test_pasted_characters_in_options_are_refused(words: list[str], sentence: str) -> None:
    done = jobgen("slurm", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--", "train.py", f"{EN_DASH}lr", "1"], "begins with no hyphen: did you mean --lr?"),
        (["--", "train.py", f"--lr{NO_BREAK_SPACE}1"], "contains a no-break space"),
        (["--setup", f"module{NO_BREAK_SPACE}load x", "--", "train.py"], "contains a no-break space"),
    ],
)
def test_pasted_characters_in_a_program_are_noticed(words: list[str], sentence: str) -> None:
    done = jobgen("slurm", *words)
    assert (done.returncode, "jobgen: warning: " in done.stderr, sentence in done.stderr) == (0, True, True)


def test_a_text_with_a_dash_is_a_text() -> None:
    done = jobgen("slurm", "--", "python3", "train.py", f"a {EN_DASH} b", EN_DASH, "élan")
    assert "warning" not in done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["train.py", "--lr", "1"], "jobgen slurm -- train.py --lr 1"),
        (["python3", "train.py"], "jobgen slurm -- python3 train.py"),
        (
            ["torchrun", "--nproc_per_node=4", "train.py"],
            "jobgen slurm --launcher torchrun --ranks-per-node 4 -- train.py",
        ),
        (["sbatch"], "jobgen submit slurm -- PROGRAM"),
        (["sbatch", "job.sh"], "run it by: sbatch job.sh"),
        (["job.sh"], "sbatch job.sh"),
        (["slurm", "train.py"], "jobgen slurm -- train.py"),
        (["slurm", "--cpus", "32"], "did you mean --cpus-per-rank or --cpus-per-node?"),
    ],
)
def test_a_program_without_its_place(words: list[str], line: str, tmp_path: Path) -> None:
    env = {"PATH": f"{path_with(tmp_path / 'bin', sbatch='', squeue='')}"}
    done = jobgen(*words, cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr.count("\n"), line in done.stderr) == (2, 1, True), done.stderr


def test_which_filter_of_nodes_it_is() -> None:
    done = jobgen("slurm", "--nodes", "2", "--exclude=node3", "--launcher", "deepspeed", "--", "train.py")
    assert "is the filter of deepspeed" in done.stderr
    assert "sbatch chooses the nodes with --directive=--exclude=node3" in done.stderr
    done = jobgen(
        "slurm", "--gpus-per-node", "2", "--exclude=n:0", "--launcher", "deepspeed", "--", "train.py"
    )
    assert "is the filter of" not in done.stderr


def test_a_program_is_not_looked_up_in_a_directory_with_variables(tmp_path: Path) -> None:
    assert "is not in" not in jobgen("slurm", "--workdir", "$A/b", "--", "c.py", cwd=tmp_path).stderr
