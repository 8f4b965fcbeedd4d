"""``jobgen site``, and the site of a job."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.sites import LOADED, SHIPPED, jobgen

from jobgen.sites.host_match import reason


def test_list_and_show(tmp_path: Path) -> None:
    rows = json.loads(jobgen("site", "list", "--json", cwd=tmp_path).stdout)
    assert [row["name"] for row in rows if row["name"] in SHIPPED] == SHIPPED
    assert all(name in jobgen("site", "list", cwd=tmp_path).stdout for name in SHIPPED)
    shown = jobgen("site", "show", "lumi", cwd=tmp_path).stdout
    assert re.search(
        r"\[queues.standard-g\]\nabout = .*\nnodes = \[1, 1024\]  # lumi.toml, line \d+\n", shown
    )
    (tmp_path / "copy.toml").write_text(shown)
    assert jobgen("site", "check", "copy.toml", cwd=tmp_path).stdout.endswith("LUMI, 4 queues: good\n")
    again = json.loads(jobgen("site", "show", "copy", "--json", cwd=tmp_path).stdout)
    assert again == json.loads(jobgen("site", "show", "lumi", "--json", cwd=tmp_path).stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "site chek",
            "there is no command site chek: use list, show, check, detect, new or refresh; did you mean check?",
        ),
        ("site show", "name a site"),
        ("site show polarsi", "did you mean polaris?"),
        ("site check", "name a site file"),
        ("site check no.toml", "there is no file no.toml"),
        ("slurm --site no/such.toml", "--site no/such.toml (command line): there is no file no/such.toml"),
    ],
)
def test_the_command_refuses_in_one_sentence(words: str, said: str, tmp_path: Path) -> None:
    done = jobgen(*words.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("extends", "table", "said"),
    [
        ("setonix", 'job = { walltime = "900h" }', "walltime = 900h (site mine): queue gpu of Mine"),
        (
            "torque-gpu",
            'launch = { launcher = "srun" }',
            "launcher = srun (site mine): srun is only for Slurm",
        ),
        (
            "lumi",
            'blocks = { setup = "if" }',
            "setup = (site mine): bash cannot read it: line 2: syntax error: unexpected end of file",
        ),
    ],
)
def test_defaults_that_make_no_job_are_found(extends: str, table: str, said: str, tmp_path: Path) -> None:
    scheduler = LOADED[extends].file.scheduler
    head = f'title = "Mine"\nextends = "{extends}"\nscheduler = "{scheduler}"\n'
    (tmp_path / "mine.toml").write_text(f"{head}{table}\n")
    done = jobgen("site", "check", "mine.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"jobgen: mine.toml: no job is valid with its defaults: {said}")


def test_detect(tmp_path: Path) -> None:
    done = jobgen("site", "detect", cwd=tmp_path, NERSC_HOST="perlmutter")
    assert (done.returncode, done.stdout) == (0, "perlmutter: NERSC_HOST is perlmutter\n")
    done = jobgen("site", "detect", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["site"]) == (1, None)
    assert reason(LOADED["polaris"].file.detect, "polaris-login-02", {}) == (
        "the host name polaris-login-02 matches polaris-login-*"
    )


def test_a_job_file_names_its_site_which_the_command_line_replaces(tmp_path: Path) -> None:
    (tmp_path / "jobgen.toml").write_text('site = "polaris"\n[job]\naccount = "x"\n')
    assert "system=polaris" in jobgen("pbs", cwd=tmp_path).stdout
    assert "ngpus=4" in jobgen("pbs", "--site", "derecho", cwd=tmp_path).stdout
    assert "ngpus=4" in jobgen("pbs", "--set", "site=derecho", cwd=tmp_path).stdout
    assert "# Site" not in jobgen("pbs", "--site", "none", cwd=tmp_path).stdout
    done = jobgen("slurm", cwd=tmp_path)
    assert "site = polaris (jobgen.toml, line 1): ALCF Polaris has PBS Pro; use jobgen pbs" in done.stderr
    shown = json.loads(jobgen("pbs", "--explain", "--json", cwd=tmp_path).stdout)
    assert shown["cpus_per_rank"]["value"], shown["cpus_per_rank"]["origin"] == (8, "site polaris")
    assert shown["site"]["value"] == "ALCF Polaris"


def test_a_job_file_finds_the_site_beside_it(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/mine.toml").write_text(
        'title = "mine"\nscheduler = "slurm"\n[queues.a]\nnodes = [1, 2]\n'
    )
    (tmp_path / "there/job.toml").write_text('site = "mine"\n[resources]\nnodes = 3\n')
    done = jobgen("slurm", "--job", "there/job.toml", cwd=tmp_path)
    assert "queue a of mine takes 1 to 2 nodes" in done.stderr


def test_init_takes_the_site_of_the_machine(tmp_path: Path) -> None:
    done = jobgen("init", cwd=tmp_path, NERSC_HOST="perlmutter")
    assert "at NERSC Perlmutter" in done.stderr
    text = (tmp_path / "jobgen.toml").read_text()
    assert 'site = "perlmutter"\n' in text
    assert '\naccount = "PROJECT"\n' in text
    assert "--qos=regular" in jobgen("slurm", cwd=tmp_path).stdout


def test_without_a_site_nothing_of_them_is_imported() -> None:
    code = (
        "import sys; from jobgen.commands.cli import run; run(['slurm', '--launcher', 'torchrun']);"
        "print({'msgspec', 'jobgen.sites.site_file', 'jobgen.sites.loader'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "set()\n"
