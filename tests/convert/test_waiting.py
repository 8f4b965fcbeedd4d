"""A program in the background: the job waits for it, and the commands after it find its status."""

from __future__ import annotations

import pytest
from convert.conversions import job_file, values

SLURM = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 -t 60 --signal=B:USR1@300\n"
RUN = "srun -K python3 t.py &\nP=$!\n"
END = 'S=$?\necho "$S" > status\n'
AFTER = 'set +eu +o pipefail\n(exit "$JOBGEN_STATUS")\nS=$?\necho "$S" > status\n'


@pytest.mark.parametrize(
    "body",
    [
        f"{RUN}wait $P\n{END}",
        f'{RUN}echo "started $P"\nwait "$P"\n{END}',
        f"srun -K python3 t.py &\nwait $!\n{END}",
        f"trap 'kill -USR1 $P' USR1\n{RUN}wait ${{P}}\nwait $P\n{END}",
        f'{RUN}trap "kill -s SIGUSR1 \\$P" SIGUSR1\nwait -f $P\ntrap - USR1\nwait $P\n{END}',
        f'pass() {{\n  echo "$(date): USR1"\n  kill -USR1 "$P"\n  wait "$P"\n}}\ntrap pass USR1\n{RUN}wait $P\n{END}',
    ],
)
def test_the_status_is_that_of_the_program(body: str) -> None:
    done = job_file(f"{SLURM}{body}")
    found = values(done.text)
    assert (found.get("setup"), found["after"]) == (None, AFTER)
    passed = [one for one in done.remarks if "passes the signal on" in one.why]
    assert len(passed) == ("trap" in body)
    assert not any(one.lost for one in done.remarks), done.remarks


@pytest.mark.parametrize(
    "body",
    [
        f"trap 'kill -TERM $P' USR1\n{RUN}wait $P\n",
        f"trap 'kill -USR1 $P; scontrol requeue $SLURM_JOB_ID' USR1\n{RUN}wait $P\n",
        f"trap 'kill -USR1 $Q' USR1\n{RUN}wait $P\n",
    ],
)
def test_a_trap_that_does_more_is_lost(body: str) -> None:
    assert any("traps of its own" in one.why and one.lost for one in job_file(f"{SLURM}{body}").remarks)


@pytest.mark.parametrize("rest", ["wait\n", "sleep 60\nkill $P\nwait $P\n", "wait $P\nkill -0 $P && ./a\n"])
def test_other_commands_after_it_stay(rest: str) -> None:
    after = str(values(job_file(f"{SLURM}{RUN}{rest}date > d\n").text).get("after"))
    assert "P=$!" in after or rest == "wait\n"
