"""Schedulers that lie, and what surrounds a command: its locale, its user, the width of its terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from attacks.targets import TARGETS, attack, named
from support import ROOT
from support.require import need_readable

from jobgen.errors import shown

GOOD = (
    "ClusterName = x\nNodeName=n1 CPUTot=64 RealMemory=512000 Gres=gpu:a100:4 ThreadsPerCore=1 Partitions=gpu\n"
    "PartitionName=gpu Default=YES State=UP MaxTime=1-00:00:00 MaxNodes=UNLIMITED TotalNodes=4\n"
)
QUEUE = "Queue: work\n    enabled = True\n    started = True\n    resources_max.walltime = {0}\n    resources_max.nodect = {0}\n"
NODE = "n1\n    resources_available.ncpus = {0}\n    resources_available.mem = {0}\n    resources_available.ngpus = {0}\n"
ODD = [
    "64.5",
    "9" * 5000,
    "-1",
    "",
    "٣",
    "nan",
    "1e9",
    "\x1b]0;x\x07",
    "|",
    "\udcff",
    "UNLIMITED",
    "a" * 100_000,
]
TEXTS = [
    *(
        "",
        "\n" * 1000,
        "*** Maintenance on Monday ***\n",
        "slurm_load_partitions: Unable to contact\n",
        "\x00\x01\xff",
        "||||||\n",
    ),
    *(
        "Utilisation incorrecte : trop de résultats\n",
        "a|b|c\n" * 50_000,
        '"|"|"|"|"|"|"\n',
        "q\x1b[2J|1:00|1|1|1|x|1\n",
    ),
]


def commands(place: Path, **answers: str) -> None:
    """Make these the commands of a scheduler, which print a text."""
    for name, answer in answers.items():
        (place / f"{name}.txt").write_text(answer, encoding="utf-8", errors="surrogateescape")
        (place / "bin" / name).write_text(f'#!/bin/bash\necho "$(< {place / name}.txt)"\n')
        (place / "bin" / name).chmod(0o755)


def _new(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a site file, check it, and complete queues."""
    if attack(["site", "new", "made", "--force"]).status == 0:
        checked = attack(["site", "check", "made"])
        assert checked.status == 0 or "its defaults" in checked.err or "must be" in checked.err, checked.err
    with monkeypatch.context() as patch:
        patch.setenv("_JOBGEN_COMPLETE", "zsh")
        assert "\x1b" not in attack(["slurm", "--queue", ""]).out


@pytest.mark.parametrize("cell", ["=4", "64", "512000", "a100:4", "UNLIMITED", "1-00", "gpu"])
def test_slurm(cell: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (GOOD, *(GOOD.replace(cell, odd) for odd in ODD)):
        commands(place, sbatch="", scontrol=text)
        _new(place, monkeypatch)


@pytest.mark.parametrize("text", [*TEXTS, *ODD], ids=lambda text: repr(text[:30]))
def test_any_text(text: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands(place, sbatch="", scontrol=text)
    _new(place, monkeypatch)
    (place / "bin/sbatch").unlink()
    commands(place, qsub="", qstat=QUEUE.format(text), pbsnodes=NODE.format(text))
    _new(place, monkeypatch)
    commands(place, qsub="", qstat=text, pbsnodes=text)
    _new(place, monkeypatch)


@pytest.mark.parametrize("name", ["../x", "/etc/x", ".hidden", "-o", "\x1b[2J", "a b"])
def test_a_cluster_s_name_is_no_path(name: str, place: Path) -> None:
    commands(place, sbatch="", scontrol=GOOD.replace("ClusterName = x", f"ClusterName = {name}"))
    done = attack(["site", "new"])
    made = {path.name for path in place.rglob("*.toml")}
    assert made == ({"a.toml"} if name == "a b" else set())
    assert done.status == (0 if made else 2)


@pytest.mark.parametrize("typed", ["x", "x.toml"])
def test_a_new_site_has_one_ending(typed: str, place: Path) -> None:
    commands(place, sbatch="", scontrol=GOOD)
    done = attack(["site", "new", typed])
    assert done.status == 0
    assert "jobgen slurm --site x " in done.out
    assert [path.name for path in place.rglob("*.toml")] == ["x.toml"]


@pytest.mark.parametrize("typed", ["", ".toml", "a b", "../x", "sites/x.toml", ".x", "x\n"])
def test_a_name_that_no_site_can_have(typed: str, place: Path) -> None:
    commands(place, sbatch="", scontrol=GOOD)
    done = attack(["site", "new", typed])
    assert (done.status, len(done.err.splitlines())) == (2, 1)
    assert f"NAME {shown(typed)} must begin with a letter" in done.err
    assert not list(place.rglob("*.toml"))


@pytest.mark.parametrize("command", ["new", "refresh"])
def test_a_list_of_queues_that_cannot_be_read(command: str, place: Path) -> None:
    commands(place, sbatch="", scontrol="*** Maintenance ***\n", sacctmgr="")
    done = attack(["site", command, "polaris" if command == "refresh" else "x"])
    assert done.status == 2
    assert not list(place.rglob("*.toml"))
    (place / "bin/sbatch").unlink()
    commands(place, qsub="", qstat="*** Maintenance ***\n", pbsnodes="")
    done = attack(["site", command, "polaris" if command == "refresh" else "x"])
    assert (done.status, "no queue can be read in the output of qstat and pbsnodes" in done.err) == (2, True)
    assert not list(place.rglob("*.toml"))


@pytest.mark.parametrize(
    "text",
    [*TEXTS, "Job Id: 4711\n    job_state = \x1b[31m\n", "Job Id: x\n"],
    ids=lambda text: repr(text[:30]),
)
def test_what_qstat_says_of_jobs(text: str, place: Path) -> None:
    commands(place, qsub="", qstat=text)
    for run in ("one", "two"):
        (place / "runs" / run / "plan.json").write_text('{"scheduler": "pbs"}')
        (place / "runs" / run / "attempt-1/events").write_text("1 began 4711\n")
    for words in (["status"], ["list"], ["logs"], ["cancel", "one"]):
        done = attack(words)
        assert "\x1b" not in done.out + done.err or words == ["logs"]


# --------------------------------------------------------------------------------------------- what surrounds it


def test_every_locale_gives_the_same_bytes(tmp_path: Path) -> None:
    words = ["slurm", "--comment", "é ☃", "-o", "é.sh", "--force", "--", "é", b"\xff"]
    places = [
        {"LC_ALL": "C.UTF-8"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1"},
    ]
    for locale in places:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), **locale}
        written = subprocess.run(
            [sys.executable, "-m", "jobgen", *words], env=env, cwd=tmp_path, capture_output=True
        )
        printed = subprocess.run(
            [sys.executable, "-m", "jobgen", *words[:3], *words[6:]],
            env=env,
            cwd=tmp_path,
            capture_output=True,
        )
        assert (written.returncode, printed.returncode) == (0, 0), written.stderr
        (tmp_path / "é.sh").rename(tmp_path / f"{len(os.listdir(tmp_path))}.got")
        (tmp_path / f"{len(os.listdir(tmp_path))}.got").write_bytes(printed.stdout)
    assert len({path.read_bytes() for path in tmp_path.glob("*.got")}) == 1


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="another user is needed, whom root can be"
)
def test_what_cannot_be_read_is_not_passed_over(place: Path) -> None:
    """A folder of templates, of sites or of runs that is there but closed: never the packaged one in silence."""
    for name in ("templates", "config/jobgen/sites", "closed"):
        (place / name).mkdir(parents=True)
    (place / "config/jobgen/sites/polaris.toml").write_text('title = "mine"\nscheduler = "pbs"\n')
    need_readable(place)
    place.chmod(0o755)
    for name in ("templates", "config/jobgen/sites", "closed"):
        (place / name).chmod(0)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-m", "jobgen"]
    env = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    for line in (
        *("slurm --template-dir templates", "pbs --site polaris", "site list", "site detect"),
        *("report closed/x", "list --runs-dir closed", "status --runs-dir closed", "check closed/x"),
        "slurm --job closed/x",
    ):
        done = subprocess.run([*user, *line.split()], env=env, cwd=place, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert done.stderr.endswith("Permission denied\n")


@pytest.mark.parametrize("target", TARGETS, ids=named)
def test_the_example_of_a_help_page_can_be_copied(target: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = attack([*target.words, "--help"]).out.splitlines()  # type: ignore[attr-defined]
    example = next(
        (line for line in lines if "Example: jobgen" in line or line.startswith("  jobgen ")), "jobgen"
    )
    assert lines[-1] == example or example == "jobgen"


def test_a_file_to_check_is_found_before_a_site_of_its_name(place: Path) -> None:
    (place / "polaris").write_text('title = "mine"\nscheduler = "slurm"\n')
    assert "mine" in attack(["site", "check", "polaris"]).out


def test_a_value_that_is_an_equals_sign_is_no_comparison() -> None:
    assert "A='='" in attack(["slurm", "--env", "A==", "--", "x"]).out
