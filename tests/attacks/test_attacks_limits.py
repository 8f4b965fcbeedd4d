"""Inputs that are too long, or empty: a sentence each, and nothing is written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from attacks.targets import attack

LONG = "x" * 3_000_000
VALUE = "is longer than 100000 bytes, the limit of a value"
FILE = "is longer than a megabyte, the limit of such a file"
TOO_LONG = {
    f"slurm --env A={LONG}": VALUE,
    f"slurm --name {LONG}": VALUE,
    f"slurm --env HF_TOKEN={LONG}": VALUE,
    f"slurm --setup {LONG}": VALUE,
    f"slurm -- ./a {LONG}": VALUE,
    f"submit slurm -n -- ./a --token={LONG}": VALUE,
    "slurm --job value.toml": VALUE,
    "slurm --job sweep.toml": VALUE,
    "slurm --job step.toml": VALUE,
    "slurm --job long.toml": FILE,
    "slurm --job /dev/zero": FILE,
    "slurm --site long.toml -- ./a": FILE,
    "site check long.toml": FILE,
    "check long.toml": FILE,
    "check long.sh": "is longer than a megabyte, the limit of a batch script",
    "convert long.sh --to toml": "is longer than a megabyte, the limit of a batch script",
    "slurm --env-file long.env": FILE,
    "local --hostfile long.hosts": FILE,
    "slurm --template-dir templates": FILE,
    f"slurm -- ./a {' '.join(['x' * 90_000] * 12)}": "and a batch script at most 1000000",
}


@pytest.mark.parametrize("words", TOO_LONG, ids=lambda words: words[:40])
def test_what_is_too_long_is_refused(words: str, place: Path) -> None:
    for name in ("long.toml", "long.sh", "long.env", "long.hosts"):
        (place / name).write_text("# x\n" * 750_000)
    (place / "value.toml").write_text(f'[environment]\nenv = {{ A = "{LONG[:200_000]}" }}\n')
    (place / "sweep.toml").write_text(f'[sweep]\nlr = ["{LONG[:200_000]}"]\n')
    (place / "step.toml").write_text(f'[[step]]\ncommand = ["./a", "{LONG[:200_000]}"]\n')
    (place / "templates").mkdir()
    (place / "templates/slurm.sh.j2").write_text("# x\n" * 750_000)
    line = words.split()
    done = attack([*line[:1], *(["-o", "out.sh"] if line[0] in ("slurm", "local") else []), *line[1:]])
    assert (done.status, done.out) == (2, "")
    assert TOO_LONG[words] in done.err
    assert not (place / "out.sh").exists()


def test_a_long_deepspeed_config_is_read_in_part_by_nothing(place: Path) -> None:
    (place / "ds.json").write_text('{"train_batch_size": 8, "x": "' + LONG + '"}')
    assert attack(["slurm", "--", "train.py", "--deepspeed_config", "ds.json"]).status == 0
    (place / "old.sh").write_text(
        "#!/bin/bash\n#SBATCH -t 1:00:00\nsrun python t.py --deepspeed_config ds.json\n"
    )
    assert "longer than a megabyte" in attack(["check", "old.sh"]).out


@pytest.mark.parametrize("text", ["", "\n \n", "# only a comment\n", "{% if false %}x{% endif %}"])
def test_a_template_that_gives_nothing_is_an_error(text: str, place: Path) -> None:
    (place / "templates").mkdir()
    (place / "templates/slurm.sh.j2").write_text(text)
    done = attack(["slurm", "--template-dir", "templates", "-o", "out.sh"])
    assert (done.status, done.out) == (2, "")
    assert "the template slurm.sh.j2 in templates gives a script without a command" in done.err
    assert not (place / "out.sh").exists()


@pytest.mark.parametrize("words", ["logs", "logs -f", "status", "cancel", "report", "diff one"])
def test_an_empty_name_is_no_run(words: str, place: Path) -> None:
    done = attack([*words.split(), ""])
    assert (done.status, done.out) == (2, "")


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o777])
def test_a_script_is_for_its_owner(mask: int, place: Path) -> None:
    """Whatever the umask, also one that takes the place of another file."""
    before = os.umask(mask)
    try:
        (place / "old").touch(mode=0o755)
        for words in ("slurm -o new.sh", "local -o old --force", "convert job.sh --to torque -o torque.sh"):
            assert attack(words.split()).status in (0, 1)
    finally:
        os.umask(before)
    for name in ("new.sh", "old", "torque.sh"):
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o700, name
