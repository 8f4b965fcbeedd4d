"""The tables [slurm], [pbs] and [torque] of a job file."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import jobs

TEXT = """
[launch]
launcher = "none"
[resources]
accelerator = "cpu"
[program]
command = ["./a"]
[slurm]
qos = "high"
launcher = "srun"
directive = ["--hint=nomultithread"]
[torque]
directive = ["-l nice=3"]
[pbs]
queue = "long"
"""


@pytest.mark.parametrize(
    ("scheduler", "has", "note"),
    [
        ("slurm", ["#SBATCH --qos=high", "#SBATCH --hint=nomultithread"], "directive of [torque] ({0}, line 12); queue of [pbs] ({0}, line 14)"),
        ("pbs", ["#PBS -q long"], "directive of [torque] ({0}, line 12); qos, directive of [slurm] ({0}, line 8)"),
        ("pbs --dialect torque", ["#PBS -q long", "#PBS -l nice=3"], "qos, directive of [slurm] ({0}, line 8)"),
        ("local", [], "directive of [torque]"),
    ],
)  # fmt: skip
def test_a_scheduler_has_its_own_options(scheduler: str, has: list[str], note: str, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(TEXT)
    done = jobs.jobgen(*scheduler.split(), "--job", path)
    lines, notes = done.stdout.splitlines(), jobs.LAUNCHER_NOTE.sub("", done.stderr)
    assert done.returncode == 0, done.stderr
    assert set(has) <= set(lines)
    assert ("  exec srun" in done.stdout) == (scheduler == "slurm")
    assert "#SBATCH --qos" not in done.stdout or scheduler == "slurm"
    assert "left out, for other schedulers: " in notes
    assert notes.count("note: ") == 1
    for part in note.format(path).split("; "):
        assert part in notes


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("[slurm]\nqoss = 'x'", "[slurm] has no such key: use name, queue"),
        ("[slurm]\nnodes = 0", "nodes = 0 ("),
        ("[slrum]\nqos = 'x'", "did you mean slurm?"),
    ],
)
def test_a_mistake_is_one_sentence(table: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(table)
    done = jobs.jobgen("slurm", "--job", tmp_path / "job.toml", "--", "./a")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert fault in done.stderr


def test_a_set_option_changes_such_a_table(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(TEXT)
    done = jobs.jobgen("slurm", "--job", tmp_path / "job.toml", "--set", "slurm.qos=low")
    assert "#SBATCH --qos=low\n" in done.stdout


@pytest.mark.parametrize(
    ("scheduler", "warning"),
    [
        ("slurm", "PBS_JOBID (setup; use SLURM_JOB_ID), PBS_ARRAY_INDEX (program; use SLURM_ARRAY_TASK_ID)"),
        (
            "pbs",
            "SLURM_JOB_ID (before; use PBS_JOBID), SLURM_ARRAY_TASK_ID (program; use PBS_ARRAY_INDEX), "
            "SLURM_LOCALID (program)",
        ),
        ("pbs --dialect torque", "PBS_ARRAY_INDEX (program; use PBS_ARRAYID)"),
        ("local", "PBS_JOBID (setup), SLURM_JOB_ID (before)"),
    ],
)
def test_a_variable_of_another_scheduler_is_a_warning(scheduler: str, warning: str, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    text = TEXT.replace("[resources]", "expand = true\n[resources]").replace(
        '["./a"]',
        "['bash', '-c', './a $SLURM_LOCALID \"${SLURM_NTASKS:-1}\" \\$SLURM_NODEID', '$SLURM_ARRAY_TASK_ID', "
        "'$PBS_ARRAY_INDEX']",
    )
    blocks = "[blocks]\nsetup = 'SLURM_PROCID=0; echo $PBS_JOBID $SLURM_PROCID # $SLURM_NNODES'\n"
    path.write_text(f"{text}{blocks}before = 'echo ${{SLURM_JOB_ID}}'\n")
    done = jobs.jobgen(*scheduler.split(), "--job", path)
    warned = [line for line in done.stderr.splitlines() if "does not set" in line]
    assert done.returncode == 0, done.stderr
    assert len(warned) == 1
    for part in warning.split("), "):
        assert part in warned[0]
    assert "SLURM_NTASKS" not in done.stderr
    assert "SLURM_NNODES" not in done.stderr
    assert "SLURM_PROCID" not in done.stderr


@pytest.mark.parametrize(
    ("scheduler", "warning"),
    [
        ("pbs", "PBS Pro has no command scontrol (setup), srun (before), sbatch (after)"),
        ("slurm", "Slurm has no command qsub (after), qstat (after)"),
    ],
)
def test_a_command_of_another_scheduler_is_a_warning(scheduler: str, warning: str, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    blocks = (
        "[blocks]\nsetup = 'hosts=$(scontrol show hostnames); echo scancel # squeue'\n"
        "before = 'if true; then A=1 srun hostname; fi'\n"
        "after = 'S=\"qsub -N x\"; $S a; X=srun; sbatch next.sh && qstat'\n"
    )
    path.write_text(f"{TEXT}{blocks}")
    done = jobs.jobgen(scheduler, "--job", path)
    assert [line for line in done.stderr.splitlines() if "has no command" in line] == [
        f"jobgen: warning: {warning}"
    ]


@pytest.mark.parametrize(
    ("scheduler", "warned"),
    [
        ("pbs", ["$1 (setup), getopts a:b o (before), ${2:-x} (after)"]),
        ("pbs --dialect torque", []),
        ("slurm", []),
    ],
)
def test_arguments_that_the_scheduler_does_not_pass(
    scheduler: str, warned: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        f"{TEXT}[blocks]\nsetup = 'CONFIG=$1; echo $2'\nbefore = 'while getopts a:b o; do echo $o; done'\n"
        "after = 'echo ${2:-x}'\non_each_node = 'f() { echo $1; }; f a; set -- b c; echo $1 $@'\n"
    )
    done = jobs.jobgen(*scheduler.split(), "--job", path)
    start = "jobgen: warning: PBS Pro passes no arguments to a script, and its code reads "
    end = ": use a variable, and qsub -v NAME=VALUE"
    found = [line for line in done.stderr.splitlines() if "no arguments" in line]
    assert found == [f"{start}{one}{end}" for one in warned]


def test_the_number_of_cores_of_a_chunk_is_a_variable_of_one_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f"{TEXT}[blocks]\nsetup = 'half=$((NCPUS / 2)); echo $NCPUS'\n")
    warned = "jobgen: warning: Slurm does not set NCPUS (setup; use SLURM_CPUS_ON_NODE)\n"
    assert warned in jobs.jobgen("slurm", "--job", path).stderr
    assert "NCPUS" not in jobs.jobgen("pbs", "--job", path).stderr


def test_a_variable_of_another_scheduler_in_the_environment_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f'{TEXT}[environment]\nmodule = ["a/${{PBS_JOBID}}"]\nvenv = "$PBS_JOBID/v"\n')
    warned = "jobgen: warning: Slurm does not set PBS_JOBID (module, venv; use SLURM_JOB_ID)\n"
    assert warned in jobs.jobgen("slurm", "--job", path).stderr
    assert "does not set" not in jobs.jobgen("pbs", "--job", path).stderr


SITES = "sets CUDA_VISIBLE_DEVICES (before) at some sites only, to numbers or to UUIDs"


@pytest.mark.parametrize(
    ("scheduler", "code", "warned"),
    [
        ("pbs", "./a `echo $CUDA_VISIBLE_DEVICES`", SITES),
        ("pbs", "cd $JOBSCRATCH", "does not set JOBSCRATCH (before)"),
        ("slurm", "cd $SCRATCHDIR", "Slurm sets SCRATCHDIR (before) at some sites to a directory of the job"),
        ("pbs --dialect torque", "cd $TMPDIR", "makes TMPDIR (before) only where pbs_mom has $tmpdir"),
        ("slurm", "cd $TMPDIR $JOBSCRATCH $CUDA_VISIBLE_DEVICES", ""),
        ("pbs", "cd $TMPDIR; echo $CUDA_VISIBLE_DEVICES ${JOBSCRATCH:-/tmp}", ""),
        ("pbs", "CUDA_VISIBLE_DEVICES=0; ./a $CUDA_VISIBLE_DEVICES", ""),
        ("local", "cd $TMPDIR; ./a $CUDA_VISIBLE_DEVICES", ""),
    ],
)
def test_a_variable_without_the_prefix_of_a_scheduler(
    scheduler: str, code: str, warned: str, tmp_path: Path
) -> None:
    path = tmp_path / "job.toml"
    text = TEXT.replace('accelerator = "cpu"', "gpus_per_node = 2")
    path.write_text(f"{text}[blocks]\nbefore = '{code}'\n")
    done = jobs.jobgen(*scheduler.split(), "--job", path)
    assert done.returncode == 0, done.stderr
    found = [one for one in done.stderr.splitlines() if "(before)" in one]
    assert len(found) == bool(warned), found
    assert not warned or found[0].endswith(f" {warned}")


def test_the_devices_of_a_job_without_devices(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f"{TEXT}[blocks]\nsetup = './a $CUDA_VISIBLE_DEVICES'\n")
    assert "CUDA_VISIBLE_DEVICES" not in jobs.jobgen("pbs", "--job", path).stderr


def test_a_warning_names_all_blocks(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        f"{TEXT}[blocks]\nsetup = 'ls $PBS_JOBID $PBS_JOBID'\nbefore = 'qstat'\nafter = 'qstat $PBS_JOBID'\n"
    )
    warned = jobs.jobgen("slurm", "--job", path).stderr
    assert "Slurm does not set PBS_JOBID (setup, after; use SLURM_JOB_ID)\n" in warned
    assert "Slurm has no command qstat (before, after)\n" in warned


@pytest.mark.parametrize(
    "code", ["echo $((SLURM_NODEID + 1))", "[[ SLURM_NODEID -eq 0 ]] && ls", "let i=SLURM_NODEID+1", "./a ${b[SLURM_NODEID]}"]
)  # fmt: skip
def test_a_variable_in_arithmetic_is_one_of_another_scheduler(code: str, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f"{TEXT}[blocks]\nsetup = '{code}'\n")
    assert "PBS Pro does not set SLURM_NODEID (setup)" in jobs.jobgen("pbs", "--job", path).stderr
    path.write_text(f"{TEXT}[blocks]\nsetup = 'echo SLURM_NODEID; SLURM_NODEID=1; {code}'\n")
    assert "SLURM_NODEID" not in jobs.jobgen("pbs", "--job", path).stderr


@pytest.mark.parametrize(
    ("setup", "warned"),
    [
        (r'a="./a \$SLURM_NODEID"; eval "$a"', True),
        (r'eval "./a \$SLURM_NODEID"', True),
        (r'echo "./a \$SLURM_NODEID"; eval "$a"', False),
        (r'a="./a \$SLURM_NODEID"; echo "$a"', False),
    ],
)
def test_a_variable_in_a_string_that_eval_reads(setup: str, warned: bool, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f"{TEXT}[blocks]\nsetup = '{setup}'\n")
    assert ("does not set SLURM_NODEID (setup)" in jobs.jobgen("pbs", "--job", path).stderr) is warned


def test_a_variable_whose_value_is_its_own_is_one_of_another_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f"{TEXT}[blocks]\nsetup = 'export SLURM_NODEID=$(expr $SLURM_NODEID + 1)'\n")
    assert "PBS Pro does not set SLURM_NODEID (setup)" in jobs.jobgen("pbs", "--job", path).stderr
    path.write_text(f"{TEXT}[blocks]\nsetup = 'SLURM_NODEID=${{SLURM_NODEID:-0}}; echo $SLURM_NODEID'\n")
    assert "SLURM_NODEID" not in jobs.jobgen("pbs", "--job", path).stderr


@pytest.mark.parametrize(
    ("command_name", "table", "warned"),
    [
        ("slurm", "[blocks]\nbefore = 'aprun -n 4 ./a'", "Slurm has no command aprun (before)"),
        (
            "pbs",
            "[program]\ncommand = ['measure', '--all', 'srun', '-n', '4', './a']",
            "PBS Pro has no command srun (program)",
        ),
    ],
)
def test_a_launcher_of_another_scheduler_has_a_warning(
    command_name: str, table: str, warned: str, tmp_path: Path
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        f"scheduler = '{command_name}'\n[launch]\nlauncher = 'none'\n{table}\n"
        + "[program]\ncommand = ['ls']\n" * ("blocks" in table)
    )
    assert warned in jobs.jobgen(command_name, "--job", path).stderr
