"""Writes the site file and the jobs of each cluster of tests/departments from its recorded answers: site.toml, job-1.sh and
so on. Read the difference before you commit it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from support import warm_python
from support.departments import ALL, Department, job_of, site_file_of


def write(department: Department, folder: Path) -> None:
    text = site_file_of(department, folder)
    for place in (department.folder, folder):
        (place / "site.toml").write_text(text)
    for path in department.folder.glob("job-*.sh"):
        path.unlink()
    for number, job in enumerate(department.jobs, 1):
        text = job_of(job, department.scheduler, folder)
        (department.folder / f"job-{number}.sh").write_text(text)


if __name__ == "__main__":
    for one in ALL:
        with tempfile.TemporaryDirectory() as temporary:
            warm_python.SESSION[:] = [Path(temporary)]
            write(one, Path(temporary))
