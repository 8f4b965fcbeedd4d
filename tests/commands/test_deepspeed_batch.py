"""A DeepSpeed config whose batch sizes do not fit the ranks: a warning when the script is made, in the words of check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.jobs import LAUNCHER_NOTE, jobgen

THREE = {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1}
TWO = {"train_batch_size": 30, "train_micro_batch_size_per_gpu": 8}
PLAIN = "#!/bin/bash\n#SBATCH --gpus-per-node=4\n#SBATCH --time=01:00:00\nset -euo pipefail\ndeepspeed train.py {}\n"


@pytest.mark.parametrize("config", [THREE, TWO])
@pytest.mark.parametrize(
    "option", ["--deepspeed_config ds.json", "--deepspeed=ds.json", "--ds_config ds.json"]
)
@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun", "srun"])
def test_the_warning_has_the_words_of_check(
    config: dict[str, int], option: str, launcher: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "ds.json").write_text(json.dumps(config))
    (tmp_path / "plain.sh").write_text(PLAIN.format(option))
    done = jobgen(
        *("slurm", "--gpus-per-node", "4", "--launcher", launcher, "--", "train.py", *option.split()),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout[:2], done.stderr.count("\n")) == (0, "#!", 1)
    fault, _, remedy = done.stderr.strip().removeprefix("jobgen: warning: ").rpartition("; ")
    checked = jobgen("check", "plain.sh", cwd=tmp_path).stdout
    assert f"error: {fault} [config-batch]\n" in checked
    assert f"    {remedy}\n" in checked


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (json.dumps({**THREE, "gradient_accumulation_steps": 2}), []),
        (json.dumps({**THREE, "train_batch_size": "auto"}), []),
        (json.dumps(THREE), ["--tp", "2"]),
        ("{", []),
        ("[1]", []),
        (None, []),
    ],
)
def test_nothing_is_said_without_a_fault(config: str | None, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    if config is not None:
        (tmp_path / "ds.json").write_text(config)
    done = jobgen(
        *("slurm", "--gpus-per-node", "4", "--", "train.py", "--deepspeed_config", "ds.json", *words),
        cwd=tmp_path,
    )
    assert (done.returncode, LAUNCHER_NOTE.sub("", done.stderr)) == (0, "")


def test_the_config_is_that_of_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/ds.json").write_text(json.dumps(THREE))
    words = (
        "slurm",
        "--gpus-per-node",
        "4",
        "--workdir",
        "w",
        "--",
        "train.py",
        "--deepspeed_config",
        "ds.json",
    )
    assert "4 ranks = 32" in jobgen(*words, cwd=tmp_path).stderr


@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun", "srun", "mpirun"])
def test_check_reads_the_config_of_a_script_of_jobgen(launcher: str, tmp_path: Path) -> None:
    config = {"train_batch_size": 60, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1}
    (tmp_path / "ds.json").write_text(json.dumps(config))
    words = ("--nodes", 2, "--gpus-per-node", 4, "--launcher", launcher, "-o", "job.sh")
    jobgen("slurm", *words, "--", "train.py", "--deepspeed_config", "ds.json", cwd=tmp_path)
    assert "8 x 1 accumulation steps x 8 ranks = 64" in jobgen("check", "job.sh", cwd=tmp_path).stdout
