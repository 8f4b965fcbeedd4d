"""From scheduler to scheduler no meaning changes silently: the smallest script of each kind, and what is said."""

from __future__ import annotations

import subprocess

import pytest

from jobgen.convert.to_scheduler import conversion
from jobgen.script.directives import guess
from jobgen.script.script import Script

ONE = "#SBATCH -N 1\n"
MPIRUN = 'mpirun -np 1 --hostfile "$PBS_NODEFILE" --map-by ppr:1:node --bind-to none'


def convert(text: str, target: str, source: str | None = None) -> conversion.Converted:
    """The conversion of a script, whose first line is added."""
    whole = f"#!/bin/bash\n{text}\n"
    return conversion.convert(Script(whole.encode(), source or guess(whole.split("\n"))), target)


def said(done: conversion.Converted) -> list[tuple[bool, int, str]]:
    return [(one.lost, one.line, one.what) for one in done.remarks]


# ---- the submission ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("python x.py $1", "$1"),
        ("python x.py --size=${2}", "${2}"),
        ('python x.py "$@"', "$@"),
        ("echo $*", "$*"),
        ("test $# -eq 0", "$#"),
        ("while getopts a: o; do :; done", "getopts a: o"),
        ("shift", "shift"),
        ("cat <<END\n$1\nEND", "$1"),
    ],
)
def test_arguments_of_the_script(text: str, what: str) -> None:
    line = 4 if text.startswith("cat") else 3
    pbspro, torque = convert(ONE + text, "pbspro"), convert(ONE + text, "torque")
    assert said(pbspro) == [(True, line, what)]
    assert "qsub -v" in pbspro.remarks[0].why
    assert said(torque) == [(False, line, what)]
    assert "qsub -F" in torque.remarks[0].why
    assert said(convert(f"#PBS -l nodes=1:ppn=1\n{text}", "slurm")) == []


@pytest.mark.parametrize(
    "text", ["f() { echo $1; shift; }\nf a", "set -- a b\necho $1", "awk '{print $1}' x"]
)
def test_arguments_of_functions_and_of_other_programs(text: str) -> None:
    assert said(convert(ONE + text, "pbspro")) == []


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("pbspro", 'exec > "${PBS_JOBID%%[!0-9]*}_${PBS_ARRAY_INDEX:-4294967294}.out"'),
        ("torque", 'exec > "${PBS_JOBID%%[!0-9]*}_${PBS_ARRAYID:-4294967294}.out"'),
        ("pbspro", 'exec 2> "${PBS_JOBID%%[!0-9]*}${PBS_ARRAY_INDEX:+_$PBS_ARRAY_INDEX}.err"'),
    ],
)
def test_an_array_of_the_submission(target: str, expected: str) -> None:
    done = convert("#SBATCH -N 1\n#SBATCH -o %A_%a.out -e %j.err\n./a $SLURM_ARRAY_TASK_ID", target)
    assert expected in done.text.splitlines()
    lines = [
        (False, 3, "--error=%j.err"),
        (False, 3, "--output=%A_%a.out"),
        (False, 4, "$SLURM_ARRAY_TASK_ID"),
    ]
    assert said(done) == lines
    assert f"qsub {'-J' if target == 'pbspro' else '-t'} FIRST-LAST" in done.remarks[-1].why


@pytest.mark.parametrize(
    ("index", "output"),
    [("7", "12_7.out"), (None, "12_4294967294.out")],
)
def test_each_task_of_the_submission_has_its_log(index: str | None, output: str, tmp_path: object) -> None:
    done = convert("#SBATCH -N 1\n#SBATCH -o %A_%a.out\necho $SLURM_ARRAY_TASK_ID", "pbspro")
    variables = {"PATH": "/usr/bin:/bin", "PBS_JOBID": "12[7].server", "PBS_O_WORKDIR": str(tmp_path)}
    variables |= {"PBS_ARRAY_INDEX": index} if index else {}
    run = subprocess.run(["bash", "-c", done.text], env=variables, cwd="/", check=False)
    assert run.returncode == 0
    found = subprocess.run(["ls"], cwd=str(tmp_path), capture_output=True, text=True, check=True)
    assert found.stdout == f"{output}\n"


def test_an_array_of_a_directive_needs_no_word() -> None:
    assert said(convert("#SBATCH -N 1 -a 0-3 -o a-%a\n./a $SLURM_ARRAY_TASK_ID", "pbspro")) == []


# ---- directives ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_of_several_partitions_the_first(target: str) -> None:
    done = convert("#SBATCH -N 1\n#SBATCH -p a,b,c\n./a", target)
    assert "#PBS -q a\n" in done.text
    assert said(done) == [(True, 3, "the queues b,c")]


def test_no_limit_is_no_limit_of_zero_seconds() -> None:
    assert "walltime" not in convert("#SBATCH -N 1\n#SBATCH -t 0-0\n./a", "pbspro").text
    assert said(convert("#SBATCH -N 1\n#SBATCH -t 0-0\n./a", "pbspro")) == [(True, 3, "--time=0-0")]


def test_one_chunk_is_packed_on_one_node() -> None:
    done = convert("#PBS -l select=1:ncpus=1\n#PBS -l place=pack\n./a", "slurm")
    assert "#SBATCH --nodes=1\n" in done.text
    assert said(done) == []


@pytest.mark.parametrize(("shell", "first"), [("", "#!/bin/bash"), ("#PBS -S /bin/sh\n", "#!/bin/sh")])
def test_slurm_gets_the_first_line_that_it_demands(shell: str, first: str) -> None:
    script = Script(f"{shell}#PBS -l nodes=1:ppn=1\n./a\n".encode(), "torque")
    done = conversion.convert(script, "slurm")
    assert done.text.startswith(f"{first}\n#SBATCH --nodes=1\n")
    assert said(done) == [(False, 1, first)]
    assert conversion.convert(script, "pbspro").text.startswith("#PBS")


def test_remarks_name_their_own_directive() -> None:
    done = convert("#SBATCH -N 1\n#SBATCH -J n\n#SBATCH -c 4\n#SBATCH -o %x_%j.o\n./a", "torque")
    assert said(done) == [(False, 4, "--cpus-per-task=4")]
    done = convert("#SBATCH -N 1\n#SBATCH -J n\n#SBATCH -c 4\n#SBATCH -o %x_%j.o\n./a", "pbspro")
    assert said(done) == [(False, 5, "--output=%x_%j.o")]


def test_commented_directives_are_one_remark() -> None:
    done = convert("#SBATCH -N 1\n##SBATCH -a 1-2\n##SBATCH -x\n##SBATCH -y\n./a", "pbspro")
    assert len(said(done)) == 1


@pytest.mark.parametrize(("given", "defined"), [("", False), ("#SBATCH -c 2\n", True)])
def test_variables_that_only_an_option_sets(given: str, defined: bool) -> None:
    done = convert(f"{ONE}{given}export OMP_NUM_THREADS=${{SLURM_CPUS_PER_TASK:-8}}", "pbspro")
    assert ("SLURM_CPUS_PER_TASK=2\n" in done.text) == defined
    assert said(done) == []


# ---- other scripts in the script -----------------------------------------------------------------------


def test_a_script_without_directives_gets_none() -> None:
    text = "cat <<END > job.sh\n#SBATCH -n 4\n#SBATCH -t 9\nhostname\nEND"
    done = convert(text, "pbspro", "slurm")
    assert done.text == f"#!/bin/bash\n{text}\n"
    assert said(done) == [(False, 1, "without #SBATCH"), (True, 3, "#SBATCH -n 4")]


def test_directives_of_a_here_document_are_said() -> None:
    done = convert(f"{ONE}cat <<END > job.sh\n#SBATCH -n 4\n#SBATCH -t 9\nhostname\nEND", "pbspro")
    assert said(done) == [(True, 4, "#SBATCH -n 4")]


# ---- launchers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "remarks"),
    [
        ("srun python x.py", "python x.py", []),
        ("timeout 9 srun -n1 --export=ALL,A=b ./a", "timeout 9 env A=b ./a", []),
        ("srun --output o.log -e e.log ./a", "> o.log 2> e.log ./a", []),
        ("srun -o o.log -i in ./a", "< in > o.log 2>&1 ./a", []),
        ("srun -o $LOG ./a", '> "$LOG" 2>&1 ./a', []),
        ("srun --output=o-%t.log ./a", "./a", [(True, 3, "--output o-%t.log")]),
        ("srun --input=none ./a", "< /dev/null ./a", []),
        ('R="srun -n 1"\n$R ./a', "./a", []),
        ("module load openmpi\nsrun ./a", f"{MPIRUN} ./a", []),
        ("export OMPI_MCA_x=1\nsrun ./a", f"{MPIRUN} ./a", []),
        ("srun --mpi=pmix ./a", f"{MPIRUN} ./a", [(False, 3, "srun")]),
        ("srun --mpi=none ./a", "./a", []),
        ("srun bash -c 'echo $SLURM_PROCID'", f"{MPIRUN} bash -c 'echo $OMPI_COMM_WORLD_RANK'", None),
    ],
)
def test_one_task_of_srun(text: str, expected: str, remarks: list[tuple[bool, int, str]] | None) -> None:
    done = convert(ONE + text, "pbspro")
    assert done.text.splitlines()[-1] == expected
    assert remarks is None or said(done) == remarks


def test_one_task_among_others_finds_the_variables_of_the_same_launcher() -> None:
    lines = convert("#SBATCH -N 1 -n 2\nsrun -n1 ./a\nsrun ./b", "pbspro").text.splitlines()
    assert [line.split()[:3] for line in lines[-2:]] == [["mpirun", "-np", "1"], ["mpirun", "-np", "2"]]


@pytest.mark.parametrize(("module", "guessed"), [("", True), ("module load openmpi\n", False)])
def test_the_mpi_of_mpirun_is_said_if_it_is_a_guess(module: str, guessed: bool) -> None:
    done = convert(f"#SBATCH -N 1 -n 4\n{module}srun ./a", "pbspro")
    assert ("the options are for Open MPI" in str(done.remarks)) == guessed


@pytest.mark.parametrize(
    ("text", "plugin", "said_of"),
    [
        ("mpirun -np 2 ./a", "pmix", "Open MPI"),
        ("aprun -n 2 ./a", "pmi2", "MPICH"),
        ("mpiexec.hydra -n 2 ./a", "pmi2", "MPICH"),
        ("mpirun_rsh -np 2 ./a", "pmi2", "MPICH"),
        ("mpiexec_mpt -n 2 ./a", "pmi2", "MPICH"),
        ("export MV2_X=1\nmpirun -np 2 ./a", "pmi2", ""),
        ("module load cray-mpich\naprun -n 2 ./a", "pmi2", ""),
    ],
)
def test_the_plugin_of_srun(text: str, plugin: str, said_of: str) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2:mpiprocs=2\n{text}", "slurm")
    assert done.text.splitlines()[-1] == f"srun --ntasks=2 --kill-on-bad-exit=1 --mpi={plugin} ./a"
    assert (f"--mpi={plugin} is for {said_of}" in str(done.remarks)) == bool(said_of)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("aprun -n 2 bash -c 'echo $ALPS_APP_PE'", "ALPS_APP_PE", "SLURM_PROCID"),
        ("mpiexec --ppn 2 -n 2 bash -c 'echo $PMI_LOCAL_RANK'", "PMI_LOCAL_RANK", "SLURM_LOCALID"),
        ("mpirun_rsh -np 2 bash -c 'echo $MV2_COMM_WORLD_SIZE'", "", "SLURM_NTASKS"),
    ],
)
def test_the_variables_of_a_rank_are_those_of_the_launcher(text: str, old: str, new: str) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2:mpiprocs=2\n{text}", "slurm")
    assert done.text.endswith(f"echo ${new}'\n")
    assert any(old in one.what.split(", ") for one in done.remarks if "programs that" in one.why) or not old


@pytest.mark.parametrize(
    "command", ["ibrun ./a", "mpiexecjl -n 2 julia x", "jsrun -n 2 ./a", "mpirun.lsf ./a"]
)
def test_a_launcher_that_stays_is_said(command: str) -> None:
    for options, target in (
        ("#SBATCH -N 1 -n 2", "pbspro"),
        ("#PBS -l select=1:ncpus=2:mpiprocs=2", "slurm"),
    ):
        done = convert(f"{options}\n{command}", target)
        assert done.text.splitlines()[-1] == command
        assert (True, 3, command) in said(done)


def test_placement_of_mpt_is_said() -> None:
    done = convert("#PBS -l select=1:ncpus=2:mpiprocs=2\nmpiexec_mpt -n 2 -ppn 2 omplace ./a", "slurm")
    assert (False, 3, "omplace") in said(done)


def test_a_variable_that_holds_the_launcher() -> None:
    done = convert('#SBATCH -N 1 -n 4\nRUN="srun -n 4"\n$RUN ./a\n$RUN ./b', "pbspro")
    command = 'mpirun -np 4 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none'
    assert done.text.endswith(f"\nRUN=\n{command} ./a\n{command} ./b\n")
    assert not any(one.lost for one in done.remarks)


@pytest.mark.parametrize(
    ("text", "expected", "remarks"),
    [
        ('RUN="srun ./a"\n$RUN x', "$RUN x", [(True, 3, "srun"), (True, 4, "$RUN x")]),
        ('RUN="srun -n 4"\necho $RUN\n$RUN ./a', None, [(True, 3, "srun")]),
        ('RUN="mpirun ./a"\n$RUN x', "$RUN x", [(True, 4, "$RUN x")]),
    ],
)
def test_a_variable_that_holds_more(text: str, expected: str | None, remarks: list[object]) -> None:
    done = convert(f"#SBATCH -N 1 -n 4\n{text}", "pbspro")
    assert expected is None or done.text.splitlines()[-1] == expected
    assert [one for one in said(done) if one[0]] == remarks


@pytest.mark.parametrize(
    ("options", "text", "target", "expected"),
    [
        ("-N 1 -n 4", "mpirun ./a", "pbspro", "mpirun -n 4 ./a"),
        ("-N 1", "mpirun ./a", "pbspro", "mpirun ./a"),
        ("-N 1 -n 4", "mpirun -np 2 ./a", "pbspro", "mpirun -np 2 ./a"),
        ("-N 1 -n 4", 'M="mpirun -np 2"\n$M ./a', "pbspro", "$M ./a"),
        (
            "-N 2 --ntasks-per-node=4 -c 2",
            "mpirun -n 8 ./a",
            "torque",
            'mpirun --hostfile "$PBS_NODEFILE" $(mpi_exports) --map-by ppr:4:node -n 8 ./a',
        ),
        (
            "-N 2 --ntasks-per-node=4",
            "module load mpich\nmpirun ./a",
            "torque",
            'mpirun -f "$PBS_NODEFILE" -n 8 ./a',
        ),
    ],
)
def test_mpirun_keeps_the_ranks_that_slurm_counts(
    options: str, text: str, target: str, expected: str
) -> None:
    assert convert(f"#SBATCH {options}\n{text}", target).text.splitlines()[-1] == expected


def test_labels_of_open_mpi_are_said() -> None:
    done = convert("#SBATCH -N 1 -n 2\nsrun -l ./a | sort", "pbspro")
    assert (False, 3, "--label") in said(done)


def test_the_mpi_of_the_options_that_mpirun_gets_is_said() -> None:
    said_of = [
        one for one in convert("#SBATCH -N 2 -n 4\nmpirun ./a", "pbspro").remarks if "Open MPI" in one.why
    ]
    assert [(one.line, one.what) for one in said_of] == [(3, "mpirun")]


@pytest.mark.parametrize(("text", "lost_binding"), [("srun ./a", True), ("mpirun ./a", False)])
def test_gpus_of_each_task_are_those_of_the_node(text: str, lost_binding: bool) -> None:
    done = convert(f"#SBATCH -N 1 -n 2\n#SBATCH --gpus-per-task=1\n{text}", "pbspro")
    assert ((False, 3, "--gpus-per-task=1") in said(done)) == lost_binding


def test_the_input_of_one_rank() -> None:
    done = convert("#SBATCH -N 1 -n 2\nsrun --input=in ./a", "pbspro")
    assert done.text.endswith("--bind-to none < in ./a\n")
    assert (False, 3, "--input in") in said(done)


def test_an_mpirun_that_is_not_read() -> None:
    done = convert(
        "#SBATCH -N 2 --ntasks-per-node=8\nmodule load openmpi\nmpirun -output-filename x ./a", "torque"
    )
    assert said(done) == [(False, 4, "mpirun -output-filename x ./a")]
    assert "look at its ranks" in done.remarks[0].why


def test_the_home_directory_in_a_log() -> None:
    done = convert("#PBS -l select=1:ncpus=1\n#PBS -o ~/x.out\n./a", "slurm", "pbspro")
    assert said(done) == [(False, 3, "-o ~/x.out")]
    assert "does not expand ~" in done.remarks[0].why


# ---- nodes of the submission ---------------------------------------------------------------------------


READS = "M=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)\n"


@pytest.mark.parametrize(
    ("target", "request_", "how"),
    [
        ("pbspro", "-l select=1:ncpus=8:mpiprocs=4:ngpus=2", "qsub -l select=N:ncpus=8:mpiprocs=4:ngpus=2"),
        ("torque", "-l nodes=1:ppn=8:gpus=2", "qsub -l nodes=N:ppn=8:gpus=2"),
    ],
)
def test_nodes_that_only_the_submission_names(target: str, request_: str, how: str) -> None:
    text = f"#SBATCH --ntasks-per-node=4 -c 2 --gres=gpu:2\n{READS}srun ./a $SLURM_NTASKS"
    done = convert(text, target)
    assert f"#PBS {request_}\n" in done.text
    assert [one.why for one in done.remarks if one.what == "$SLURM_JOB_NODELIST"] == [
        f"no directive requests nodes, and Slurm gives one: for N, submit with {how}"
    ]
    assert (False, 3, "$SLURM_JOB_NODELIST") in said(done)
    assert 'mpirun --hostfile "$PBS_NODEFILE" --map-by ppr:4:node ' in done.text
    ranks = {"pbspro": '$(wc -l < "$PBS_NODEFILE")', "torque": '$((4 * $(sort -u "$PBS_NODEFILE" | wc -l)))'}
    assert f"SLURM_NTASKS={ranks[target]}\n" in done.text


@pytest.mark.parametrize("step", ["srun", "srun -N $SLURM_NNODES", "srun --ntasks-per-node=1"])
def test_a_step_on_all_nodes_of_the_submission(step: str) -> None:
    done = convert(f"#SBATCH -t 10\n./x $SLURM_NNODES\n{step} ./a", "pbspro")
    assert 'mpirun --hostfile "$PBS_NODEFILE" --map-by ppr:1:node ' in done.text


def test_an_mpirun_on_all_nodes_of_the_submission() -> None:
    text = f"#SBATCH --ntasks-per-node=2 -c 2\n{READS}mpirun ./a"
    assert 'mpirun --hostfile "$PBS_NODEFILE" $(mpi_exports) ./a\n' in convert(text, "pbspro").text
    assert "$(mpi_exports) --map-by ppr:2:node ./a\n" in convert(text, "torque").text


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_script_that_requests_nothing(target: str) -> None:
    done = convert("#SBATCH -t 10\n./a", target)
    assert not any(one in done.text for one in ("select", "nodes=", "place"))
    assert said(done) == []


@pytest.mark.parametrize(
    ("option", "target", "request_"),
    [
        ("--mem=1G", "torque", "-l nodes=1:ppn=1\n#PBS -l mem=1gb"),
        ("--mem=1G", "pbspro", "-l select=1:mem=1gb\n#PBS -l place=scatter"),
        ("--exclusive", "pbspro", "-l select=1\n#PBS -l place=scatter:excl"),
        ("-N 1", "torque", "-l nodes=1:ppn=1"),
    ],
)
def test_a_script_that_requests_something(option: str, target: str, request_: str) -> None:
    text = convert(f"#SBATCH -t 10 {option}\n./a", target).text
    assert all(f"#PBS {one}\n" in text for one in request_.split("\n#PBS "))


@pytest.mark.parametrize(
    ("target", "how"), [("pbspro", "-l select=N -l place=scatter"), ("torque", "-l nodes=N:ppn=1")]
)
def test_how_to_submit_a_script_that_requests_nothing(target: str, how: str) -> None:
    found = [one.why for one in convert("#SBATCH -t 10\n./a $SLURM_NNODES", target).remarks]
    assert [one.rpartition("with ")[2] for one in found] == [f"qsub {how}"]


@pytest.mark.parametrize(
    "text",
    [
        "#SBATCH --gres=gpu:1\necho nodes: $SLURM_JOB_NODELIST",
        "#SBATCH --gres=gpu:1\nSLURM_NNODES=2\n./a $SLURM_NNODES",
        "#SBATCH -n 4\n./a $SLURM_NTASKS",
        "#SBATCH -N 2\n./a $SLURM_NNODES",
        "#SBATCH --gres=gpu:1\n./a",
    ],
)
def test_nodes_of_the_script(text: str) -> None:
    assert not any("no directive requests nodes" in one.why for one in convert(text, "pbspro").remarks)
