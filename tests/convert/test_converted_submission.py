"""Arguments, arrays and nodes that a script expects from its submission."""

from __future__ import annotations

import pytest
from convert.conversions import ONE, convert, job_file, remarks, rendered


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
    assert remarks(pbspro) == [(True, line, what)]
    assert "qsub -v" in pbspro.remarks[0].why
    assert remarks(torque) == [(False, line, what)]
    assert "qsub -F" in torque.remarks[0].why
    assert remarks(convert(f"#PBS -l nodes=1:ppn=1\n{text}", "slurm")) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cat > $1 <<END\n#SBATCH -n 1\n./a\nEND\nsbatch $1", False),
        ("echo '#SBATCH -n 1' > $1\nsbatch $1", False),
        ("./a $1", True),
    ],
)
def test_arguments_of_a_script_that_writes_a_batch_script(text: str, named: bool) -> None:
    done = convert(text, "pbspro", "slurm")
    assert ("$1" in [one.what for one in done.remarks]) is named


@pytest.mark.parametrize(
    ("first", "text", "named"),
    [
        ("/usr/bin/env nix-shell", "#!nix-shell -i bash\necho $1", "$1"),
        ("/bin/tcsh", "# $2\nawk '{print $1}' x", ""),
        ("/bin/tcsh", "echo $argv[1]", "$argv"),
        ("/usr/bin/perl", "print $1;", ""),
    ],
)
def test_arguments_of_a_script_of_another_shell(first: str, text: str, named: str) -> None:
    done = convert(f"#!{first}\n#SBATCH -n 1\n{text}\n", "pbspro")
    assert [one.what for one in done.remarks if "arguments" in one.why] == [named] * bool(named)


@pytest.mark.parametrize(
    "text", ["f() { echo $1; shift; }\nf a", "set -- a b\necho $1", "awk '{print $1}' x"]
)
def test_arguments_of_functions_and_of_other_programs(text: str) -> None:
    assert remarks(convert(ONE + text, "pbspro")) == []


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
        *2 * [(False, 4, "$SLURM_ARRAY_TASK_ID")],
    ]
    assert remarks(done) == lines
    assert f"qsub {'-J' if target == 'pbspro' else '-t'} FIRST-LAST" in str(done.remarks[2:])
    assert "in an array, programs that read SLURM_ARRAY_TASK_ID find PBS_ARRAY" in str(done.remarks[2:])


def test_an_array_of_a_directive_needs_no_word() -> None:
    done = convert("#SBATCH -N 1 -a 0-3 -o a-%a\n./a $SLURM_ARRAY_TASK_ID", "pbspro")
    assert [one.why for one in done.remarks] == [
        "programs that read SLURM_ARRAY_TASK_ID find PBS_ARRAY_INDEX"
    ]


@pytest.mark.parametrize(
    ("options", "code", "lines"),
    [
        ("-a 5", "./a", [3]),
        ("-a 5", "export SLURM_ARRAY_TASK_ID\n./a $SLURM_ARRAY_TASK_ID", []),
        ("-a 0-3", "export SLURM_ARRAY_TASK_ID\n./a $SLURM_ARRAY_TASK_ID", []),
        ("-a rray=1-3", "./a $SLURM_ARRAY_TASK_ID", []),
    ],
)
def test_the_index_that_programs_find(options: str, code: str, lines: list[int]) -> None:
    done = convert(f"#SBATCH -N 1\n#SBATCH {options}\n{code}", "pbspro")
    assert [one.line for one in done.remarks if "programs that read SLURM_ARRAY" in one.why] == lines
    assert "in an array, " not in str(done.remarks)


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
    assert (False, 3, "$SLURM_JOB_NODELIST") in remarks(done)
    assert 'mpirun --hostfile "$PBS_NODEFILE" --map-by ppr:4:node ' in done.text
    ranks = {"pbspro": '$(wc -l < "$PBS_NODEFILE")', "torque": '$((4 * $(sort -u "$PBS_NODEFILE" | wc -l)))'}
    assert f"SLURM_NTASKS={ranks[target]}\n" in done.text


@pytest.mark.parametrize("step", ["srun", "srun -N $SLURM_NNODES", "srun --ntasks-per-node=1"])
def test_a_step_on_all_nodes_of_the_submission(step: str) -> None:
    done = convert(f"#SBATCH -t 10\n./x $SLURM_NNODES\n{step} ./a", "pbspro")
    assert 'mpirun --hostfile "$PBS_NODEFILE" --map-by ppr:1:node ' in done.text


@pytest.mark.parametrize("line", ["srun hostname -s > hosts", "H=`srun -l /bin/hostname | sort`"])
def test_the_hosts_of_a_submission(line: str) -> None:
    done = convert(f"#SBATCH -t 10\n{line}\nmpirun -hostfile hosts -n $1 ./a", "pbspro")
    assert [one.line for one in done.remarks if "no directive requests nodes" in one.why] == [3]
    assert "--map-by ppr:1:node --bind-to none" in done.text


def test_an_mpirun_on_all_nodes_of_the_submission() -> None:
    text = f"#SBATCH --ntasks-per-node=2 -c 2\n{READS}mpirun ./a"
    assert 'mpirun --hostfile "$PBS_NODEFILE" $(mpi_exports) ./a\n' in convert(text, "pbspro").text
    assert "$(mpi_exports) --map-by ppr:2:node ./a\n" in convert(text, "torque").text


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
        "#SBATCH -t 10\nsrun hostname\n./a",
        "#SBATCH -t 10\nM=$(srun -n 1 hostname)\n./a $M",
        "#SBATCH -n 4\nsrun hostname > hosts\nmpirun -hostfile hosts ./a",
    ],
)
def test_nodes_of_the_script(text: str) -> None:
    assert not any("no directive requests nodes" in one.why for one in convert(text, "pbspro").remarks)


def test_nodes_of_the_submission_in_arithmetic() -> None:
    text = "#SBATCH --exclusive\nW=$(( SLURM_JOB_NUM_NODES - 1 ))\nsrun -n $W -N $W ./a"
    done = convert(text, "pbspro")
    assert any(one.what == "$SLURM_JOB_NUM_NODES" and "no directive" in one.why for one in done.remarks)
    assert "mpirun -np $W --" in done.text


@pytest.mark.parametrize(
    ("line", "named"),
    [("./a -t ${NCPUS:-4}", True), ("NCPUS=4\n./a -t $NCPUS", False), ("./a -t $NCPUS_OF_JOB", False)],
)
def test_cores_that_only_pbs_pro_names(line: str, named: bool) -> None:
    """NCPUS, which is empty in Slurm."""
    done = convert(ONE + line, "pbspro")
    assert any(one.what == "$NCPUS" and "PBS Pro sets it" in one.why for one in done.remarks) is named
    assert not any(
        "NCPUS" in one.why or one.what == "$NCPUS" for one in convert(ONE + line, "torque").remarks
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('CONFIG=${CONFIG:-a.yml}\npython x.py "$CONFIG" ${MORE-}', "$CONFIG (MORE)"),
        ('if [ -n "$RESUME" ]; then A=--resume; fi\npython x.py $A', "$RESUME"),
        (": ${CONT:?no image}\npython x.py $CONT", "$CONT"),
        ('if [ -z "$A" ]; then A=1; fi\npython x.py $A', "$A"),
        ("A=1\npython x.py ${A:-2}", ""),
        ("python x.py ${TMPDIR:-/tmp} ${SLURM_JOB_ID:-1} ${1:-x}", ""),
        ("#SBATCH --export=NONE\npython x.py ${A:-2}", ""),
        ("#SBATCH --export=ALL\npython x.py ${A:-2}", "$A"),
        ("#SBATCH --export=ALL,A=1\npython x.py ${A:-2}", ""),
        ('g="${dataset}_x"\npython x.py $g', "$dataset"),
        ("module load x\necho $model\npython x.py", "$model"),
        ("module load x\npython $X_SHARE/x.py $INPUT", ""),
        ("module load singularity/3\nsingularity run $SINGULARITY_X $INPUT", "$INPUT"),
        ("module load git x\npython $INPUT", ""),
        ("D=$INPUT/x\nmodule load x\npython $X_SHARE/x.py $D", "$INPUT"),
        ("source /v/bin/activate\nmodule list\npython x.py $INPUT", "$INPUT"),
        ("read a < f\nfor i in 1 2; do echo $i $a; done\npython x.py $((n + 1)) $1z", ""),
        (". ./env.sh\npython x.py $dataset", ""),
        ("module load x\ncd $X_ROOT\npython x.py", ""),
        ("cd $X_ROOT\npython x.py", "$X_ROOT"),
        ("export LD_LIBRARY_PATH=$CONDA_PREFIX/lib\npython x.py", "$CONDA_PREFIX"),
        ("conda activate x\nexport LD_LIBRARY_PATH=$CONDA_PREFIX/lib\npython x.py", ""),
        ("source $FOLDER/x.sh\npython x.py", "$FOLDER"),
        ("export PYTHONUSERBASE=$CONDA_PREFIX\npython x.py", "$CONDA_PREFIX"),
        ("conda activate a\nexport PYTHONUSERBASE=$CONDA_PREFIX\npython x.py", ""),
    ],
)
def test_variables_of_the_submission_in_a_job_for_pbs(text: str, named: str) -> None:
    done = job_file(f"{ONE}{text}\n")
    found = [one for one in done.remarks if "no variable of the submission" in one.why]
    assert [one.what for one in found] == ([named.partition(" ")[0]] if named else [])
    assert ("($MORE as well)" in str(found)) == ("(MORE)" in named)
    if named:
        advice = '[pbs]\ndirective = ["-V"]\n'
        assert advice.split("\n")[1] in found[0].why
        text = done.text.replace('scheduler = "slurm"', 'scheduler = "pbs"')
        assert "#PBS -V\n" in rendered(f"{text}\n{advice}")


def test_names_of_variables_of_the_submission_in_a_job_for_pbs() -> None:
    done = job_file(f"{ONE}#SBATCH --export=A,B=1,C\npython x.py $A $B\n")
    assert 'add directive = ["-v A,C"] in [pbs]' in next(one.why for one in done.remarks if one.line == 2)


@pytest.mark.parametrize("line", ["SUB=$SLURM_ARRAY_TASK_ID", "echo $SLURM_ARRAY_TASK_ID"])
def test_an_index_that_only_a_program_uses(line: str) -> None:
    """The program reads it itself, if it has a use for an array."""
    done = convert(f"#SBATCH -n 4\n{line}\n./dummy", "pbspro")
    why = "in an array, programs that read SLURM_ARRAY_TASK_ID find PBS_ARRAY_INDEX"
    assert why in [one.why for one in done.remarks]
