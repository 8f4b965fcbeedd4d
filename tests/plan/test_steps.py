"""[[step]]: several programs in one job."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support import jobs

HEAD = """
[resources]
nodes = 2
ranks_per_node = 2
accelerator = "cpu"
[launch]
launcher = "torchrun"
"""
ONE = '[[step]]\ncommand = ["a.py", "$(touch canary)", "it\'s"]\n'


def rendered(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.toml").write_text(text)
    return jobs.jobgen("slurm", "--job", folder / "job.toml", *options)


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        (ONE + "lancher = 'srun'", "", "lancher ({file}, line 9, [[step]] 1): a step has no such key: use command, launcher, nodes, ranks_per_node or parallel; did you mean launcher?"),
        (ONE + "launcher = 'mpirn'", "", "launcher = mpirn ({file}, line 9, [[step]] 1): must be deepspeed, mpirun, torchrun, srun, accelerate, colossalai or none; did you mean mpirun?"),
        ("[[step]]\nnodes = 1", "", "command ({file}, line 9, [[step]] 1): must be a list of texts"),
        (ONE + "[[step]]\ncommand = []", "", "[[step]] 2): must be a list of texts"),
        (ONE + "nodes = '1x2+1x4'", "", "must be a whole number of at least 1"),
        (ONE + "nodes = 3", "", "nodes = 3 ([[step]] 1): the job has 2; increase nodes in [resources]"),
        (ONE + "[[step]]\ncommand=['x']\nranks_per_node = 4", "", "ranks_per_node = 4 ([[step]] 2): the job has 2"),
        (ONE + "[program]\ncommand = ['x']", "", "each step has its command; leave out [program]"),
        (ONE, "-- x", "each step has its command; leave out a program after --"),
        ("step = []\n", "", "must be one or more tables [[step]]"),
        (ONE, "--spare-nodes 1", "--spare-nodes 1 (command line): is for a job without [[step]]"),
        (ONE, "--nodes submitted", "--nodes submitted (command line): the steps of a job need a number of equal nodes"),
        (ONE + "parallel = true", "", "parallel = true ({file}, line 9, [[step]] 1): there is no step before the first one"),
        (ONE + "[[step]]\ncommand=['x']\nparallel = 1", "", "[[step]] 2): must be true or false"),
        (ONE + "[[step]]\ncommand=['x']\nparallel = true", "", "parallel = true ([[step]] 2): steps at the same time need 4 nodes, but the job has 2"),
        (ONE + "[[step]]\ncommand=['torchrun', 'x.py']", "", "is a launcher, which jobgen starts itself"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(text: str, options: str, fault: str, tmp_path: Path) -> None:
    whole = text + HEAD if text.startswith("step") else HEAD + "\n" + text
    done = rendered(tmp_path, whole, *options.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert fault.format(file=tmp_path / "job.toml") in done.stderr


def test_the_functions_of_the_steps(tmp_path: Path) -> None:
    done = rendered(
        tmp_path,
        HEAD
        + ONE
        + '[[step]]\ncommand = ["./solve"]\nlauncher = "mpirun"\nnodes = 1\n[[step]]\ncommand = ["-m", "x"]\n',
    )
    assert (done.returncode, jobs.LAUNCHER_NOTE.sub("", done.stderr)) == (0, "")
    job = done.stdout.partition("# ======== jobgen runtime")[0]
    assert re.findall(r"^(\w+)\(\) \{", job, re.MULTILINE) == ["environment", "step_1", "step_2", "step_3"]
    assert re.findall(r"^  job_nodes=(\d)$", job, re.MULTILINE) == ["2", "1", "2"]
    assert re.findall(r"program\(\) {\n    exec (.*)$", job, re.MULTILINE) == [
        "python3 a.py $'$(touch canary)' $'it\\'s'",
        "./solve",
        "python3 -m x",
    ]
    assert "job_need python3 torchrun mpirun\n" in job
    assert done.stdout.count("job_check_mpi() {") == 1
    (tmp_path / "job.sh").write_text(done.stdout)
    subprocess.run(["bash", "-n", "job.sh"], cwd=tmp_path, check=True)


def test_the_plan_of_a_run_has_the_steps(tmp_path: Path) -> None:
    from jobgen.config import read_spec
    from jobgen.jobfile.reader import read_job
    from jobgen.plan.plan import resolve
    from jobgen.rendering.render import render
    from jobgen.runs import plan_file

    (tmp_path / "job.toml").write_text(HEAD + ONE + '[[step]]\ncommand = ["x"]\nranks_per_node = 1\n')
    plan = resolve(read_spec("slurm", {}, (), read_job(str(tmp_path / "job.toml"), (), ())))
    text = render(plan)
    file = plan_file.of(plan, text, (), str(tmp_path), (), (), None)
    (tmp_path / plan_file.NAME).write_text(plan_file.text(file))
    again = resolve(plan_file.spec_of(plan_file.read(tmp_path)))
    assert render(again) == text
