"""The command ``jobgen convert``: its messages, its status and its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import jobgen

from jobgen.errors import one_of
from jobgen.script.dialects.table import DIALECTS

FAMILIES = one_of(dict.fromkeys(row.scheduler.family for row in DIALECTS.values()))

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ["slurm_mpirun_over_ssh", "pbspro_mpirun_two_nodes"])
def test_our_own_script_gets_one_sentence(name: str) -> None:
    text = (HERE.parent / "golden" / f"{name}.sh").read_text(encoding="utf-8")
    done = jobgen("convert", "-", "--to", "toml", stdin=text)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "-: was made by jobgen: the job file has its directives" in done.stderr
    assert "OMPI_" not in done.stdout
    done = jobgen("convert", "-", "--to", "torque", stdin=text)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "was made by jobgen, which makes it for torque, too" in done.stderr


def test_the_command_says_what_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "job.pbs"
    path.write_text("#!/bin/bash\n#PBS -l select=1\n#PBS -k oe\nhostname\n")
    done = jobgen("convert", path, "--to", "slurm")
    assert done.returncode == 1
    guessed, *lost = done.stderr.splitlines()
    assert guessed == f"{path}: read as PBS Pro because of select=1 (line 2); --scheduler overrides this"
    assert lost == [f"{path}:3: cannot be translated: -k oe: has no counterpart in Slurm"]
    assert "#SBATCH --nodes=1\n" in done.stdout


def test_the_command_writes_a_file_and_reads_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    text = "#!/bin/bash\n#PBS -l select=1\ncd /work\n"
    assert jobgen("convert", "-", "--to", "slurm", "-o", path, stdin=text).returncode == 0
    assert path.stat().st_mode & 0o100
    assert "#SBATCH --nodes=1\n" in path.read_text()
    done = jobgen("convert", "-", "--to", "slurm", "-o", path, stdin=text.replace("=1", "=2"))
    assert (done.returncode, "--force overwrites it" in done.stderr) == (2, True)
    assert jobgen("convert", "-", "--to", "slurm", "-o", path, "--force", stdin=text).returncode == 0


TARGETS = one_of((*DIALECTS, "toml"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "convert: name a script, or - for standard input"),
        (("job.sh",), f"--to is missing: say {TARGETS}"),
        (("job.sh", "--to", "slrm"), f"--to slrm (command line): must be {TARGETS}; did you mean slurm?"),
        (("/nowhere", "--to", "slurm"), "/nowhere (command line): cannot be read: No such file or directory"),
        (("/dev/null", "--to", "slurm"), f"/dev/null (command line): it has no directive of {FAMILIES}: say whose it is with --scheduler"),
        (("job.sh", "--to", "slurm", "--scheduler", "nqs"), f"--scheduler nqs (command line): must be {one_of(DIALECTS)}"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    done = jobgen("convert", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"jobgen: {sentence}\n")


BASH, UNFINISHED = "#!/bin/bash\n#SBATCH -N 1\n", "bash cannot read it: syntax error: unexpected end of file"


UNREAD = "srun is in a text that cannot be read from here on: write it otherwise"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (f"{BASH}fi\nsrun ./a\n", 3, "bash cannot read it: syntax error near unexpected token `fi'"),
        (f"{BASH}if true; then\nsrun ./a\n", 5, UNFINISHED),
        (f"{BASH}srun ./a\nfor one in a b; do\n./b $one\n", 6, UNFINISHED),
        (f"{BASH}srun ./a <FILE>\n", 3, "bash cannot read it: syntax error near unexpected token `newline'"),
        (f"{BASH}for i in 1 2\n{{\n srun ./a\n}}\n", 3, UNREAD),
        ("#SBATCH -N 1\nFROM debian\nRUN make\n", 2, "FROM is no command: the text is no script for a shell"),
        ("#SBATCH -N 1\nBootstrap: docker\nsrun a\n", 2, "Bootstrap: is no command: the text is no script for a shell"),
        ("#SBATCH -N 1\nimport os\nsrun a\n", 2, "import is no command: the text is no script for a shell"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", ["toml", "pbspro"])
def test_a_text_that_bash_cannot_run_is_refused(text: str, line: int, reason: str, target: str) -> None:
    done = jobgen("convert", "-", "--to", target, "--scheduler", "slurm", stdin=text)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"jobgen: -, line {line}: {reason}\n")


@pytest.mark.parametrize("end", ["exit 0\nfi\n", "exec srun ./b\n=#\nfunction (x)\n"])
def test_bash_reads_nothing_behind_the_end_of_a_script(end: str) -> None:
    assert jobgen("convert", "-", "--to", "pbspro", stdin=f"{BASH}srun ./a\n{end}").returncode < 2


@pytest.mark.parametrize(
    ("file", "directive", "name"),
    [
        ("train.sh", "", "train.sh"),
        ("my run.sh", "", "my_run.sh"),
        ("train.sh", " -J other", "other"),
    ],
)
def test_a_job_file_names_the_job_after_its_script(
    file: str, directive: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.write_text(f"#!/bin/bash\n#SBATCH -N 1{directive}\nmkdir $SLURM_JOB_NAME\n./a\n")
    assert f'[job]\nname = "{name}"\n' in jobgen("convert", path, "--to", "toml").stdout
