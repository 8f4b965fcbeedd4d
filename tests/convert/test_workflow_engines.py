"""Workflow engines that a converted script starts, and that submit jobs themselves."""

from __future__ import annotations

import pytest
from convert.conversions import convert, job_file

SLURM = "#!/bin/bash\n#SBATCH -N 1\n#SBATCH -t 10\n{}\n"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ('snakemake --jobs 9 --cluster "../submit.py"', [4]),
        ('snakemake --cluster="./submit.sh" -j 9', [4]),
        ('snakemake --cluster "python submit.py {threads}"', [4]),
        ("snakemake --cluster-generic-submit-cmd ./submit.sh", [4]),
        ("snakemake --slurm -j 9", [4]),
        ('snakemake --drmaa " -p long"', [4]),
        ("snakemake -e slurm", [4]),
        ("S='snakemake --cluster ./submit.sh'\n$S all", [5]),
        ('O="--cluster ./submit.sh"\nsnakemake $O', [5]),
        ('O=(--profile big)\nsnakemake "${O[@]}"', [5]),
        ("export SNAKEMAKE_PROFILE=big\nsnakemake -j 9", [5]),
        ('bash -c "snakemake --profile big"', [4]),
        ("conda run -n a snakemake --profile big", [4]),
        ("python -m snakemake --profile big", [4]),
        ('snakemake --profile big --cluster "sbatch -n 1"', [4]),
        ("srun nextflow run a.nf", [4]),
        ('snakemake --cluster "sbatch -n 1"', []),  # which has a remark of its own
        ('C="sbatch -n 1"\nsnakemake --cluster "$C"', []),
        ("snakemake -j 9 --cluster-config a.json", []),
        ("snakemake --executor local -j 9", []),
        ("module load snakemake\nconda activate snakemake", []),
        ("echo snakemake --profile big", []),
    ],
)
def test_the_jobs_of_a_workflow_are_for_the_scheduler_of_the_script(code: str, lines: list[int]) -> None:
    for done in (convert(SLURM.format(code), "pbspro"), job_file(SLURM.format(code))):
        assert [one.line for one in done.remarks if "submits jobs as its configuration" in one.why] == lines
