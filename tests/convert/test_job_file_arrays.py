"""Job files of arrays: they have the indices of the script under each scheduler."""

from __future__ import annotations

import pytest
import tomllib
from convert.conversions import job_file

from jobgen.config import read_spec
from jobgen.jobfile.reader import layer_of
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render
from jobgen.script import foreign_variables
from jobgen.script.dialects.table import DIALECTS

FROM_SLURM = "#!/bin/bash\n#SBATCH -t 10 -o l/%A_%a.out\n#SBATCH --array={}\n{}\n"
FROM_TORQUE = "#!/bin/bash\n#PBS -l nodes=1:ppn=2,walltime=1:00:00\n#PBS -t {}\n{}\n"


@pytest.mark.parametrize(
    ("script", "array", "other", "directive", "points"),
    [
        (FROM_SLURM, "3,5,9", "pbs", "#PBS -J 0-2", "3,5,9"),
        (FROM_SLURM, "3,5,10-12%2", "pbs", "#PBS -J 0-4%2", "3,5,10-12"),
        (FROM_SLURM, "7", "pbs", "#PBS -J 0-1:2", "7"),
        (FROM_SLURM, "1-1", "pbs", "#PBS -J 0-1:2", "1"),
        (FROM_SLURM, "0-9:3", "pbs", "#PBS -J 0-9:3", ""),
        (FROM_SLURM, "1,3,5", "pbs", "#PBS -J 1-5:2", ""),
        (FROM_TORQUE, "3,5,9", "slurm", "#SBATCH --array=3,5,9", ""),
    ],
)
def test_the_indices_under_the_other_scheduler(
    script: str, array: str, other: str, directive: str, points: str
) -> None:
    index = "SLURM_ARRAY_TASK_ID" if script is FROM_SLURM else "PBS_ARRAYID"
    data = tomllib.loads(job_file(script.format(array, f"./a --seed ${index}")).text)
    spec = read_spec(other, {}, (), layer_of(data, (), lambda _: "job.toml"))
    text = render(resolve(spec))
    assert f"\n{directive}\n" in text
    assert (f"\njob_points={points}\n" in text) == bool(points)
    assert f"export {index}=$JOBGEN_TASK" in data["blocks"]["setup"]
    name = "pbspro" if other == "pbs" else other
    assert not foreign_variables.warnings(spec, DIALECTS[name].scheduler)


@pytest.mark.parametrize(("array", "named"), [("1", True), ("3,5,9", True), ("1-3", False)])
def test_the_logs_of_tasks_that_look_up_their_index(array: str, named: bool) -> None:
    done = job_file(FROM_SLURM.format(array, "./a $SLURM_ARRAY_TASK_ID"))
    assert [one.line for one in done.remarks if "count from 0" in one.why] == [3] * named


def test_a_list_that_cannot_be_looked_up_stays_a_list() -> None:
    program = (
        "srun docker run i torchrun --nproc_per_node 2 t.py"  # whose container ends for all points at once
    )
    text = job_file(FROM_SLURM.format("3,5,9\n#SBATCH --gpus-per-node=2", program)).text
    assert "pack" not in text
    assert 'array = "3,5,9"' in text
