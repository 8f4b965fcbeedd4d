"""The use of the devices: what status and report say, from whole and from torn files."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import runs as made
from support.jobs import jobgen

from jobgen.runs import states, telemetry
from jobgen.runs.telemetry import Idle

NOW = int(time.time())


def write(
    folder: Path, host: str, use: Callable[[int, int], str], seconds: int, end: int = NOW, devices: int = 4
) -> Path:
    """Write samples every 10 s; ``use`` returns that of a device some seconds before the end."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        f"{at}" + "".join(f" {one}:{use(one, end - at)}/{40 + one}" for one in range(devices))
        for at in range(end - seconds, end + 1, 10)
    ]
    file = folder / f"{host}.devices"
    file.write_text("# 4 nvidia-smi\n" + "".join(f"{line}\n" for line in lines))
    return file


@pytest.mark.parametrize(
    ("use", "devices", "expected"),
    [
        (lambda one, ago: "0" if one < 2 and ago < 3000 else "97", 4, [(2, 2990, None)]),
        (lambda one, ago: "0" if one == 3 and 1000 < ago < 3000 else "97", 4, [(1, 2990, 1000)]),
        # A device without use at the end, after a longer time before.
        (lambda one, ago: "97" if 700 <= ago < 900 else "0", 4, [(4, 690, None)]),
        (lambda one, ago: "0" if ago < 500 else "97", 4, []),
        (lambda one, ago: "-" if one else "0", 4, [(1, 7200, None)]),
        # The tool shows those of another job, too.
        (lambda one, ago: "0", 8, []),
    ],
)
def test_idle_devices(
    tmp_path: Path, use: Callable[[int, int], str], devices: int, expected: list[tuple[int, int, int | None]]
) -> None:
    node = telemetry.read(write(tmp_path, "node7", use, 7200, devices=devices))
    assert node is not None
    minute = [
        Idle("node7", number, 4, "GPU", NOW - since, None if until is None else (NOW - until) // 60 * 60)
        for number, since, until in expected
    ]
    assert list(telemetry.idle(node)) == minute


@pytest.mark.parametrize("hours", [1, 24])
def test_status_names_the_idle_devices_of_a_running_job(tmp_path: Path, hours: int) -> None:
    """The end of a file is read, and more of it only for a device that was idle before."""
    run = made.run(tmp_path / "exp-5", attempts=[None], job_sh="#SBATCH -N 2\n", job_id="5\n")
    folder, now = run / "attempt-1/nodes/0", int(time.time())
    write(folder, "node6", lambda one, ago: "98", 3600 * hours, now)
    write(
        folder, "node7", lambda one, ago: "0" if one < 2 and ago < 3000 * hours else "97", 3600 * hours, now
    )
    then = time.localtime(now - 3000 * hours + 10)
    since = time.strftime("%H:%M" if then[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M", then)
    assert telemetry.idle_now(run / "attempt-1") == f"2 of 4 GPUs of node7 idle since {since}"
    state = states.State(str(run), "exp-5", "5", "slurm", "running", "", 1, *[None] * 4, 0.0, None, {}, None)
    assert states.with_cause(state).reason == f"2 of 4 GPUs of node7 idle since {since}"
    write(folder, "node7", lambda one, ago: "0", 7200, end=now - 3600)  # the tool has ended
    assert telemetry.idle_now(run / "attempt-1") == ""


def test_report_draws_the_devices_and_names_idle_ones(tmp_path: Path) -> None:
    run = made.run(tmp_path / "exp-5", attempts=[0])
    end = made.BEGAN + 700 + 600
    folder = run / "attempt-1/nodes/0"
    write(folder, "node7", lambda one, ago: "0" if one == 2 else "80", 600, end=end)
    file = write(folder, "node8", lambda one, ago: "90", 600, end=end)
    file.write_text(file.read_text() + "# GPU 3 is lost\n17000 0:9")
    done = jobgen("report", run, "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    remarks = re.findall("<li>(.*?)</li>", page)
    assert remarks == ["1 of 4 GPUs of node7 idle since 2023-11-14 22:25", "node8: GPU 3 is lost"]
    drawn = re.findall(r'aria-label="(Use|Memory) of the devices against time of the attempts"', page)
    assert drawn == ["Use", "Memory"]
    curves = dict(
        re.findall(
            r'data-series="(mean of all|least used|most used) devices?"[^>]*data-first="([\d.]+)"', page
        )[:3]
    )
    assert curves == {"mean of all": "0.75", "least used": "0.0", "most used": "0.9"}


@pytest.mark.parametrize(
    "text", ["", "# none\n", "nonsense\n1 2 3\n", "# 4 nvidia-smi\n", "# 4 nvidia-smi\n12 x\n1700 0:"]
)
def test_a_torn_file_is_no_error(tmp_path: Path, text: str) -> None:
    run = made.run(tmp_path / "exp-5", attempts=[0])
    (run / "attempt-1/nodes/0/node.devices").write_text(text)
    assert jobgen("report", run, "-o", tmp_path / "page.html").returncode == 0
    assert "against time of the attempts" not in (tmp_path / "page.html").read_text()
    assert telemetry.idle_now(run / "attempt-1") == ""
