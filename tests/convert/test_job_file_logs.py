"""Job files: the logs of scripts, to which a job of jobgen appends."""

from __future__ import annotations

import pytest
from convert.conversions import job_file, remarks

from jobgen.convert.to_job_file import translation
from jobgen.script.script import Script


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("-a 0-3 -o l/%A.out", "each task of the array appends"),
        ("-a 0-3 -o l/%a.out", "a later job appends"),
        ("-a 0-3 -o l/%x.out", "a later job appends"),
        ("-a 0-3 -o l/%A_%a.out", ""),
        ("-a 0-3 -o l/%a_%4A.out", ""),
        ("-a 0-3 -o l/%j.out", ""),
        ("-a 0-3 -o l/%%A_%A.out", "each task of the array appends"),
        ("-o l/%A.out", ""),
    ],
)
def test_a_log_that_several_jobs_have_is_appended_to(options: str, why: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10 {options}\nsrun ./a\n")
    found = [one.why for one in done.remarks if "to this log" in one.why]
    assert len(found) == bool(why), remarks(done)
    assert not why or why in found[0]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("cat <<END\nx\nEND\nsrun -o {} ./a", False),
        ("if ((1 < 2)); then echo; fi\nsrun -o {} ./a", False),
        ("cat <<END\nx\nEND\n./a\nmv {} old", False),
        ("./a\n./b < {}", True),
        ("./a\ngrep -c x {}", True),
        ("./a\nN=$(cat {} | grep -c x)", True),
        ("./a\ncat {}", False),
        ("./a | tee {}", False),
    ],
)
@pytest.mark.parametrize("options", ["-J x -o x-%j.log", "-J x -o %x-%j.log", "-o %x-%j.log"])
def test_a_command_that_reads_the_log(lines: str, named: bool, options: str) -> None:
    """The name of a job without one is that of its script."""
    text = f"#!/bin/bash\n#SBATCH -n 1 {options}\n{lines.format('x-$SLURM_JOB_ID.log')}\n"
    done = translation.convert(Script(text.encode(), "slurm", name="x"))
    assert any("reads the log" in one.why for one in done.remarks) is named, remarks(done)


@pytest.mark.parametrize(
    ("lines", "of_job"),
    [
        ('O=$D/slurm-$SLURM_JOB_ID.out\n./a > "$O"', False),
        ("O=${D}/slurm-${SLURM_JOB_ID}.out\n{\n./a\n} > ${O} 2>&1", False),
        ("./a > /data/slurm-$SLURM_JOB_ID.out", False),
        ("./a > slurm-Tf-$SLURM_JOB_ID.out", False),
        ("O=slurm-2${B}-${SLURM_JOB_ID}.out\n./a >> $O", False),
        ("./a > slurm-${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID.out", True),
        ("./a\ncp slurm-$SLURM_JOB_ID.out $D/", True),
        ("./a\ncp $SLURM_SUBMIT_DIR/slurm-$SLURM_JOB_ID.out $D/", True),
        ("O=slurm-$SLURM_JOB_ID.out\n./a\ndate >> $O", True),
    ],
)
def test_a_file_of_the_script_with_the_name_of_a_log(lines: str, of_job: bool) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -n 1 -t 5\nD=/data\n{lines}\n")
    assert ('log = "slurm-%j.out"' in done.text) is of_job
    assert any("is a log of Slurm" in one.why for one in done.remarks) is of_job, remarks(done)


@pytest.mark.parametrize(
    ("options", "line", "condition"),
    [("-o l/%A_%a.out", "./a", "if the submission makes one, "), ("-t 5", "./a $SLURM_ARRAY_TASK_ID", "")],
)
def test_an_index_without_an_array(options: str, line: str, condition: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -n 1 {options}\n{line}\n")
    whys = [one.why for one in done.remarks]
    assert f"no directive makes an array: {condition}set array = 'FIRST-LAST' in [job]" in whys
    of_programs = "in an array, programs that read SLURM_ARRAY_TASK_ID find PBS_ARRAY_INDEX"
    assert any(one.startswith(of_programs) for one in whys) is bool(condition)
