"""Job files: the logs of scripts, to which a job of jobgen appends."""

from __future__ import annotations

import pytest
from convert.conversions import job_file, remarks


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
