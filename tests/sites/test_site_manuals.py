"""What the manual of a site demands of its scripts, and the settings of its networks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from golden.cases import script
from support.require import need_command
from support.site_manuals import DEMANDS, JOBS

from jobgen import JobSpec, render
from jobgen.plan.plan import resolve
from jobgen.rendering.environment import environment_lines
from tools.write_site_pages import sites


@pytest.mark.parametrize("row", range(len(JOBS)), ids=JOBS)
def test_a_script_has_what_the_source_demands(row: int) -> None:
    _, source, required, forbidden = DEMANDS[row]
    text = script(JOBS[row])
    assert [line for line in required if line not in text] == [], source
    code = "\n".join(line for line in text.splitlines() if not line.startswith("# "))
    assert [word for word in forbidden if word in code] == [], source


def test_every_site_has_a_demand() -> None:
    assert {re.findall(r"--site (\S+)", job)[0] for job in JOBS} == {site.name for site in sites()}


def test_the_scripts_are_clean(tmp_path: Path) -> None:
    for number, job in enumerate(JOBS):
        (tmp_path / f"{number}.sh").write_text(script(job), encoding="utf-8")
    command = [need_command("shellcheck"), *sorted(tmp_path.glob("*.sh"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_settings_of_a_network_come_before_those_of_the_user() -> None:
    text = render(
        JobSpec("pbs", ("train.py",), site="polaris", account="x", network="plugin", env=["NCCL_CROSS_NIC=2"])
    )
    [body] = re.findall(r"(?ms)^environment\(\) \{\n(.*?)^\}", text)
    assert body.index("export NCCL_CROSS_NIC=1") < body.rindex("  variables")
    assert "export NCCL_CROSS_NIC=2" in text


NETWORK = """
[rules]
prepend = { SEARCH = ["$OTHER"] }
[networks.a]
env = { COPY = "$OTHER", PLAIN = "a b" }
prepend = { SEARCH = ["/fixed", "$OTHER/lib"] }
unset = ["GONE"]
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("OTHER=/o SEARCH=/s GONE=1", "/o/lib:/fixed:/o:/s /o a b -"),
        ("OTHER=/o", "/o/lib:/fixed:/o /o a b -"),
        ("SEARCH=/s GONE=1", "/fixed:/s - a b -"),
    ],
)
def test_values_of_other_variables_and_variables_to_unset(before: str, after: str, tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(f'title = "Ours"\nscheduler = "slurm"\n{NETWORK}')
    job = JobSpec("slurm", ("train.py",), site=str(tmp_path / "ours.toml"), network="a")
    lines = "\n".join(environment_lines(resolve(job)))
    shown = 'echo "$SEARCH ${COPY:--} $PLAIN ${GONE:--}"'
    code = f"set -euo pipefail\nexport {before}\n{lines}\n{shown}"
    done = subprocess.run(["bash", "-c", code], env={}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{after}\n"


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (
            "pawsey1",
            [
                "account = pawsey1 (Python): accounts of jobs with accelerators end with -gpu at Pawsey Setonix: "
                "use pawsey1-gpu"
            ],
        ),
        ("pawsey1-gpu", []),
    ],
)
def test_an_account_of_setonix_ends_with_gpu(account: str, said: list[str]) -> None:
    """The manual of Setonix, Job scheduling: GPU partitions want the project's code with -gpu."""
    job = JobSpec("slurm", ("train.py",), site="setonix", account=account)
    assert [one for one in resolve(job).site.warnings if "account" in one] == said
