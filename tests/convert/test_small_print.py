"""Meanings that few scripts have: names without ``$``, tasks of arrays, places of logs, unknown numbers."""

from __future__ import annotations

import subprocess

import pytest
from test_same_meaning import MPIRUN, ONE, convert, said

from jobgen.convert.to_scheduler import conversion
from jobgen.script.bare_names import bare_names
from jobgen.script.commands import commands
from jobgen.script.script import Script
from jobgen.script.syntax import parse

ARRAY = "#SBATCH -N 1 -a 0-3\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[[ A -lt 1 && $B -eq C+1 ]]", ["A", "C"]),
        ("[ A -lt 1 ]", []),
        ("[[ A == B ]]", []),
        ("[[ -v A ]]; [ -v B ]; [[ -f C ]]", ["A", "B"]),
        ("let i=A+1 j=2", ["A"]),
        ("echo ${x[A]} A; x[B-1]=2", ["A", "B"]),
    ],
)
def test_names_without_a_dollar(text: str, names: list[str]) -> None:
    assert [one.text for one in bare_names(parse(text.encode()))] == names


def test_names_in_arithmetic_are_translated() -> None:
    text = "[[ SLURM_ARRAY_TASK_ID -lt 1 ]] && echo ${x[SLURM_ARRAY_TASK_ID]}\nlet i=SLURM_NTASKS+1"
    done = convert(ARRAY + text, "pbspro")
    assert "[[ PBS_ARRAY_INDEX -lt 1 ]] && echo ${x[PBS_ARRAY_INDEX]}\n" in done.text
    assert "SLURM_NTASKS=1\nexport SLURM_NTASKS\n" in done.text
    assert said(done) == []


def test_a_rank_in_text_that_srun_starts() -> None:
    done = convert(f'{ONE}RUN="torchrun --node_rank \\$SLURM_PROCID t.py"\nsrun bash -c "$RUN"', "pbspro")
    assert "--node_rank \\$OMPI_COMM_WORLD_RANK t.py" in done.text
    assert done.text.endswith(f'{MPIRUN} bash -c "$RUN"\n')
    assert (False, 3, "SLURM_PROCID") in said(done)


def test_a_rank_that_no_srun_sets() -> None:
    done = convert(f"{ONE}bash -c 'echo $SLURM_PROCID'", "pbspro")
    assert done.text.endswith("bash -c 'echo $SLURM_PROCID'\n")
    assert said(done) == [(True, 3, "SLURM_PROCID")]


@pytest.mark.parametrize("head", [ARRAY, ONE])
def test_each_task_has_an_id_of_its_own(head: str) -> None:
    text = "mkdir $SLURM_JOB_ID\necho $((SLURM_JOB_ID % 9)) $SLURM_ARRAY_TASK_ID"
    done = convert(head + text, "pbspro")
    assert "mkdir $PBS_JOBID\n" in done.text
    assert "echo $((${PBS_JOBID%%[!0-9]*} % 9))" in done.text
    assert (False, 4, "$SLURM_JOB_ID") in said(done)


@pytest.mark.parametrize(
    ("options", "value", "lines"),
    [("", "1", [4]), ("#SBATCH --exclusive\n", "$(nproc)", [3, 5]), ("#SBATCH -c 4\n", "4", [])],
)
def test_cores_that_no_directive_requests(options: str, value: str, lines: list[int]) -> None:
    done = convert(f"{ONE}{options}# cores\n./a $SLURM_CPUS_ON_NODE", "pbspro")
    assert f"SLURM_CPUS_ON_NODE={value}\n" in done.text
    assert [one.line for one in done.remarks] == lines


@pytest.mark.parametrize(
    ("log", "target", "line"),
    [
        ("-o x.log", "slurm", "#SBATCH --output=x.log-%a"),
        ("-o x.log", "pbspro", "#PBS -o x.log-^array_index^"),
        ("-o x.$PBS_ARRAYID", "slurm", "#SBATCH --output=x.%a"),
        ("-N x", "slurm", "#SBATCH --output=%x.o%A-%a"),
    ],
)
def test_torque_adds_the_index_to_a_log(log: str, target: str, line: str) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=1\n#PBS -t 1-3\n#PBS -j oe\n#PBS {log}\n./a", target, "torque")
    assert line in done.text.splitlines()
    back = conversion.convert(Script(done.text.encode(), target), "torque")
    assert ("#PBS -o x.log\n" in back.text) == (log == "-o x.log")


def test_a_log_in_the_directory_of_the_job() -> None:
    done = convert("#SBATCH -N 1 -D /w -o l/x.log -e /e.log\n./a", "pbspro")
    assert "#PBS -o /w/l/x.log\n#PBS -e /e.log\n" in done.text
    done = convert("#PBS -l nodes=1:ppn=1\n#PBS -d /w\n#PBS -o x.log\n#PBS -j oe\n./a", "slurm")
    assert said(done) == [(False, 4, "the output file x.log")]


def test_the_default_log_of_slurm_in_the_script() -> None:
    text = "mv slurm-$SLURM_JOB_ID.out slurm-*.out logs"
    assert (True, 3, "slurm-$SLURM_JOB_ID.out") in said(convert(ONE + text, "pbspro"))
    assert said(convert(f"#SBATCH -N 1 -o slurm-x.out\n{text}", "pbspro")) == []


@pytest.mark.parametrize("nodes", ["<count>", "2-4"])
def test_an_srun_of_a_number_of_nodes_that_is_not_known(nodes: str) -> None:
    done = convert(f"#SBATCH --nodes={nodes}\nsrun ./a\nsrun -N 1 -n 1 ./b", "pbspro")
    assert done.text.endswith("\nsrun ./a\n./b\n")
    assert (True, 3, "srun ./a") in said(done)


def test_a_step_on_fewer_nodes() -> None:
    done = convert("#SBATCH -N 2\nsrun -n 8 -N 1 ./a", "pbspro")
    assert (False, 3, "srun -n 8 -N 1 ./a") in said(done)


def test_ranks_that_do_not_divide() -> None:
    done = convert("#SBATCH -N 10 -n 256\nsrun ./a", "pbspro")
    assert "mpirun -np 256 " in done.text


def test_arguments_behind_a_redirection() -> None:
    words = [[word.text for word in one.words] for one in commands(parse(b"a > log -x 3 2>&1 y < in z"))]
    assert words == [["a", "-x", "3", "y", "z"]]
    done = convert("#SBATCH -N 1 -n 4\nsrun > log ./a", "pbspro")
    assert "\nsrun > log ./a\n" in done.text
    assert said(done) == [(True, 3, "srun")]


def test_a_directive_without_its_value() -> None:
    assert (True, 3, "-o") in said(convert(f"{ONE}#SBATCH -o\n#SBATCH -e err\n./a", "pbspro"))


def test_carriage_returns() -> None:
    source = b"#!/bin/bash\r\n#PBS -l nodes=1:ppn=1\r\nmodule load <other stuff>\r\n./a\r\n"
    done = conversion.convert(Script(source, "torque"), "slurm")
    assert "\r" not in done.text
    assert (False, 1, "carriage returns") in said(done)
    assert subprocess.run(["bash", "-n"], input=source, check=False).returncode == 0


def test_a_variable_that_the_script_sets_in_some_cases() -> None:
    text = "[ $X ] && SLURM_ARRAY_TASK_ID=1\n./a $SLURM_ARRAY_TASK_ID ${SLURM_JOB_ID:=1}\nSLURM_NTASKS=3\n./b $SLURM_NTASKS"
    done = convert(ARRAY + text, "torque")
    assert "\nSLURM_ARRAY_TASK_ID=${PBS_ARRAYID:-}\nexport SLURM_ARRAY_TASK_ID\n" in done.text
    assert "./a $SLURM_ARRAY_TASK_ID ${PBS_JOBID:=1}\nSLURM_NTASKS=3\n" in done.text
    done = convert(f"{ONE}SLURM_JOB_ID=${{SLURM_JOB_ID:-0}}\necho $SLURM_JOB_ID", "pbspro")
    assert "\nSLURM_JOB_ID=${PBS_JOBID%%[!0-9]*}\nexport" in done.text


@pytest.mark.parametrize(("target", "kept"), [("torque", True), ("slurm", False)])
def test_the_shell_of_a_directive(target: str, kept: bool) -> None:
    done = convert("#PBS -l select=1:ncpus=1\n#PBS -S /bin/bash\n./a", target, "pbspro")
    assert ("#PBS -S /bin/bash\n" in done.text) == kept
    assert "-S" not in convert(f"{ONE}#SBATCH --account=<your account>\n./a", "torque").text


def test_text_that_is_no_bash_for_the_reader() -> None:
    done = convert(f"{ONE}<<X\nsome text\nX\n./a", "pbspro")
    assert (True, 3, "<<X") in said(done)
    assert said(convert(f"{ONE}./a \\", "pbspro")) == []


def test_an_index_that_programs_read() -> None:
    assert said(convert(f"{ARRAY}./a", "torque")) == [(False, 2, "--array=0-3")]
    assert said(convert(f"{ARRAY}./a $SLURM_ARRAY_TASK_ID", "torque")) == []


@pytest.mark.parametrize("target", ["torque", "slurm"])
def test_a_job_that_starts_where_it_was_submitted(target: str) -> None:
    done = convert("#PBS -l ncpus=1\n#PBS -l wd\n./a", target, "pbspro")
    assert ('cd "$PBS_O_WORKDIR" || exit 1' in done.text) == (target == "torque")
    assert "HOME" not in done.text


def test_mail_without_an_event() -> None:
    assert "#PBS -m n\n" in convert("#SBATCH -N 1 --mail-user=a@b\n./a", "pbspro").text
    assert "#SBATCH --mail-type=FAIL\n" in convert("#PBS -l select=1\n#PBS -M a@b\n./a", "slurm").text


def test_a_wrapper_of_mpirun() -> None:
    done = convert("#SBATCH -N 2 -n 4\nmodule load openmpi\nvalgrind --tool=massif mpirun ./a", "pbspro")
    assert 'valgrind --tool=massif mpirun --hostfile "$PBS_NODEFILE"' in done.text
