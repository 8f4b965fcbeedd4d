"""The recorded answers of each cluster become its site file, and the jobs by it are those to expect."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib
from support.departments import ALL, Department, job_of, site_file_of


@pytest.mark.parametrize("department", ALL, ids=lambda one: one.name)
def test_a_department(department: Department, tmp_path: Path) -> None:
    text = site_file_of(department, tmp_path)
    assert text == department.text("site.toml"), "python -m tools.write_department_goldens writes it anew"
    tomllib.loads(text)
    (tmp_path / "site.toml").write_text(text)
    for number, job in enumerate(department.jobs, 1):
        lines = job_of(job, department.scheduler, tmp_path)
        assert lines == department.text(f"job-{number}.sh")
        assert job.refused in lines
        assert bool(job.refused) == ("#SBATCH " not in lines and "#PBS " not in lines)
