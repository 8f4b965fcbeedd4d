"""The questions of jobgen init --ask."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.jobs import jobgen


def answered(folder: Path, *answers: str) -> tuple[int, str, dict[str, object]]:
    done = jobgen("init", "--ask", cwd=folder, stdin="".join(f"{one}\n" for one in answers))
    file = folder / "jobgen.toml"
    return done.returncode, done.stderr, msgspec.toml.decode(file.read_text()) if file.exists() else {}


def test_six_answers_make_a_job_file(tmp_path: Path) -> None:
    answers = ("slurm", "2x4", "2h", "gpu proj", "module cuda/12 conda train", "train.py --lr 0.1")
    status, text, made = answered(tmp_path, *answers)
    assert status == 0
    assert text.endswith("; jobgen slurm --explain shows the job, and jobgen submit starts it\n")
    assert made["scheduler"] == "slurm"
    assert made["job"] == {"queue": "gpu", "account": "proj", "walltime": "2h"}
    assert made["resources"] == {"nodes": 2, "gpus_per_node": 4}
    assert made["environment"] == {"module": ["cuda/12"], "conda": "train"}
    assert made["program"] == {"command": ["train.py", "--lr", "0.1"]}
    script = jobgen("slurm", cwd=tmp_path)
    assert script.returncode == 0
    assert "#SBATCH --gpus-per-node=4" in script.stdout


def test_a_site_and_cpus(tmp_path: Path) -> None:
    status, _, made = answered(tmp_path, "perlmutter", "1x0", "30m", "regular m1234", "-", "-")
    assert (status, made["site"], made["scheduler"]) == (0, "perlmutter", "slurm")
    assert made["resources"] == {"nodes": 1, "accelerator": "cpu"}
    assert "program" not in made


@pytest.mark.parametrize(
    ("at", "wrong", "sentence"),
    [
        (
            0,
            "slurmm",
            "use pbspro, torque, slurm or local, or a site of jobgen site list: site slurmm: there is no such site",
        ),
        (1, "2 4", "use NODES x GPUS, such as 2x4"),
        (2, "2 hours", "--walltime 2 hours: must be a duration"),
        (3, "a b c", "use QUEUE, or QUEUE ACCOUNT"),
        (4, "modul x", "use pairs of words"),
        (5, '"train.py --lr 1"', "'train.py --lr 1' is one word: type it without its quotes"),
        (5, "train.py > log", "no shell reads the program: type bash -c 'train.py > log'"),
        (5, "mpirun -n 4 ./x", 'jobgen starts mpirun itself: type ./x, and write launcher = "mpirun"'),
    ],
)
def test_a_wrong_answer_is_asked_again(at: int, wrong: str, sentence: str, tmp_path: Path) -> None:
    answers = ["slurm", "2x4", "2h", "-", "-", "train.py"]
    status, text, made = answered(tmp_path, *answers[:at], wrong, *answers[at:])
    assert (status, made["job"]) == (0, {"walltime": "2h"})
    assert f"Error: {sentence}" in text


def test_nothing_is_written_without_all_answers(tmp_path: Path) -> None:
    status, text, made = answered(tmp_path, "slurm", "2x4")
    assert (status, made) == (2, {})
    assert "the input ended before the answer to 'Time limit'" in text
    assert list(tmp_path.iterdir()) == []


def test_what_a_site_requires_is_asked_for(tmp_path: Path) -> None:
    """A wrong answer is asked again; the job file has no example in its place."""
    status, text, made = answered(
        tmp_path, "polaris", "10x4", "1h", "-", "prod", "prod m123", "-", "train.py"
    )
    assert status == 0
    assert text.count("ALCF Polaris requires the account, such as PROJECT") == 2
    assert made["job"]["account"] == "m123"
    assert "examples of the site, for which you may have other values: directive" in text
    assert jobgen("pbs", cwd=tmp_path).returncode == 0


def test_what_a_queue_of_a_site_requires(tmp_path: Path) -> None:
    _, text, made = answered(tmp_path, "fasrc", "1x4", "1h", "kempner", "kempner lab", "-", "train.py")
    assert "requires the account" in text
    assert made["job"]["account"] == "lab"
