"""Variables of a scheduler and of a launcher in a script for another scheduler."""

from __future__ import annotations

import re

import pytest
from convert.conversions import MPIRUN, ONE, body, convert, remarks

from jobgen.script.bare_names import bare_names
from jobgen.script.syntax import parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo $(( $SLURM_JOB_ID % 16384 ))", "echo $(( ${PBS_JOBID%%[!0-9]*} % 16384 ))"),
        ("expr 1 + $(echo -n $SLURM_JOBID | tail -c 4)", "expr 1 + $(echo -n ${PBS_JOBID%%[!0-9]*} | tail -c 4)"),
        ('mkdir "run-${SLURM_JOB_ID}"', 'mkdir "run-${PBS_JOBID%%[!0-9]*}"'),
        ("scontrol show job $SLURM_JOB_ID", 'qstat -f "$PBS_JOBID"'),
        ("tee $A.$SLURM_JOB_ID/x", "tee $A.${PBS_JOBID%%[!0-9]*}/x"),
        ("echo ${SLURM_JOB_ID:-0}", "echo ${PBS_JOBID:-0}"),
        ("x=$SLURM_JOB_NODELIST; scontrol show hostname $x", "x=$SLURM_JOB_NODELIST; awk '!seen[$1]++' \"$PBS_NODEFILE\""),
        ("echo $SLURM_PROCID $((SLURM_LOCALID + 1))", "echo 0 $((0 + 1))"),
        ("echo 'SLURM_JOB_ID and srun'", "echo 'SLURM_JOB_ID and srun'"),
    ],
)  # fmt: skip
def test_a_line_for_pbs(text: str, expected: str) -> None:
    lines, of_lines = body("--nodes=2", text)
    assert lines[-1] == expected
    assert not any(lost for lost, _, _ in of_lines)


def test_the_tasks_of_an_array_keep_ids_of_their_own() -> None:
    done = convert(
        "#!/bin/bash\n#SBATCH --array=1-3\necho $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID\n", "pbspro"
    ).text
    assert done.endswith("echo $PBS_JOBID $SLURM_ARRAY_JOB_ID\n")
    assert "SLURM_ARRAY_JOB_ID=${PBS_JOBID%%[!0-9]*}\n" in done


ARRAY = "#SBATCH -N 1 -a 0-3\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[[ A -lt 1 && $B -eq C+1 ]]", ["A", "C"]),
        ("[ A -lt 1 ]", []),
        ("[[ A == B ]]", []),
        ("[[ -v A ]]; [ -v B ]; [[ -f C ]]", ["A", "B"]),
        ("let i=A+1 j=2", ["A"]),
        ("let 'i = A / 2' j=$(wc -l x)/B\ndeclare -i k=C", ["A", "B", "C"]),
        ("echo ${x[A]} A; x[B-1]=2", ["A", "B"]),
    ],
)
def test_names_without_a_dollar(text: str, names: list[str]) -> None:
    assert [one.text for one in bare_names(parse(text.encode()))] == names


def test_names_in_arithmetic_are_translated() -> None:
    text = "[[ SLURM_ARRAY_TASK_ID -lt 1 ]] && echo ${x[SLURM_ARRAY_TASK_ID]}\nlet i=SLURM_NTASKS+1"
    done = convert(f"{ARRAY}#SBATCH -n 1\n{text}", "pbspro")
    assert "[[ PBS_ARRAY_INDEX -lt 1 ]] && echo ${x[PBS_ARRAY_INDEX]}\n" in done.text
    assert "SLURM_NTASKS=1\nexport SLURM_NTASKS\n" in done.text
    assert remarks(done) == []


def test_a_rank_in_text_that_srun_starts() -> None:
    done = convert(f'{ONE}RUN="torchrun --node_rank \\$SLURM_PROCID t.py"\nsrun bash -c "$RUN"', "pbspro")
    assert "--node_rank \\$OMPI_COMM_WORLD_RANK t.py" in done.text
    assert done.text.endswith(f'{MPIRUN} bash -c "$RUN"\n')
    assert (False, 3, "SLURM_PROCID") in remarks(done)
    done = convert(f'{ONE}RUN="a \\\n \\$SLURM_PROCID"\nsrun bash -c "$RUN"', "pbspro")
    assert (False, 4, "SLURM_PROCID") in remarks(done)


@pytest.mark.parametrize(
    ("step", "number"), [("srun bash -c 'go 1'", "$OMPI_COMM_WORLD_RANK"), ("parallel go ::: 1 2", "0")]
)
def test_a_rank_in_a_function_that_the_ranks_run(step: str, number: str) -> None:
    lines, _ = body(
        "--nodes=2 --ntasks-per-node=4", f"go() {{ RANK=$SLURM_PROCID ./a; }}\nexport -f go\n{step}"
    )
    assert f"go() {{ RANK={number} ./a; }}" in lines


def test_a_rank_in_an_option_that_the_script_itself_expands() -> None:
    step = "srun --export=ALL,A=$SLURM_PROCID,B=$((SLURM_LOCALID+1)) ./a"
    done = convert(f"#SBATCH -N 2 -n 4\n{step}", "pbspro")
    assert "\nenv A=0 B=$((0+1)) mpirun -np 4 " in done.text
    assert (False, 3, "$SLURM_PROCID") in remarks(done)


def test_a_rank_that_no_srun_sets() -> None:
    done = convert(f"{ONE}bash -c 'echo $SLURM_PROCID'", "pbspro")
    assert done.text.endswith("bash -c 'echo $SLURM_PROCID'\n")
    assert remarks(done) == [(True, 3, "SLURM_PROCID")]


@pytest.mark.parametrize("head", [ARRAY, ONE])
def test_each_task_has_an_id_of_its_own(head: str) -> None:
    text = "mkdir $SLURM_JOB_ID\necho $((SLURM_JOB_ID % 9)) $SLURM_ARRAY_TASK_ID"
    done = convert(head + text, "pbspro")
    assert "mkdir $PBS_JOBID\n" in done.text
    assert "echo $((${PBS_JOBID%%[!0-9]*} % 9))" in done.text
    assert (False, 4, "$SLURM_JOB_ID") in remarks(done)


@pytest.mark.parametrize("words", ["", " $SLURM_ARRAY_TASK_ID"])
def test_an_index_that_programs_read(words: str) -> None:
    assert remarks(convert(f"{ARRAY}./a{words}", "torque")) == [(False, 2, "--array=0-3")]
    assert remarks(convert(f"{ARRAY}sleep 1{words}", "torque")) == []


@pytest.mark.parametrize(
    ("options", "value", "lines"),
    [("", "1", [4]), ("#SBATCH --exclusive\n", "$(nproc)", [3, 5]), ("#SBATCH -c 4\n", "4", [])],
)
def test_cores_that_no_directive_requests(options: str, value: str, lines: list[int]) -> None:
    done = convert(f"{ONE}{options}# cores\n./a $SLURM_CPUS_ON_NODE", "pbspro")
    assert f"SLURM_CPUS_ON_NODE={value}\n" in done.text
    assert [one.line for one in done.remarks] == lines


def test_a_variable_that_the_script_sets_in_some_cases() -> None:
    text = "[ $X ] && SLURM_ARRAY_TASK_ID=1\n./a $SLURM_ARRAY_TASK_ID ${SLURM_JOB_ID:=1}\nSLURM_NTASKS=3\n./b $SLURM_NTASKS"
    done = convert(ARRAY + text, "torque")
    assert "\nSLURM_ARRAY_TASK_ID=${PBS_ARRAYID:-}\nexport SLURM_ARRAY_TASK_ID\n" in done.text
    assert "./a $SLURM_ARRAY_TASK_ID ${PBS_JOBID:=1}\nSLURM_NTASKS=3\n" in done.text
    done = convert(f"{ONE}SLURM_JOB_ID=${{SLURM_JOB_ID:-0}}\necho $SLURM_JOB_ID", "pbspro")
    assert "\nSLURM_JOB_ID=${PBS_JOBID%%[!0-9]*}\nexport" in done.text


@pytest.mark.parametrize(
    ("line", "ranks", "top"),
    [
        ("NCPUS=$(wc -l < $PBS_NODEFILE)", '"$NCPUS"', ""),
        ("NCPUS=6", "6", ""),
        ("if [ -e big ]; then NCPUS=6; fi", '"$NCPUS"', "NCPUS=${SLURM_CPUS_ON_NODE:-}\n"),
        ("", '"$SLURM_CPUS_ON_NODE"', ""),
    ],
)
def test_a_variable_of_the_scheduler_in_the_line_of_a_launcher_that_the_script_sets(
    line: str, ranks: str, top: str
) -> None:
    text = f"#PBS -l select=2:ncpus=4:mpiprocs=4\n{line}\nmpirun -np $NCPUS ./solver\n"
    new = convert(text, "slurm").text
    assert f"srun --ntasks={ranks} " in new
    assert (" --distribution=plane=4 --kill" in new) == ("NODEFILE" not in line)
    assert ("\nNCPUS=${" in new) == bool(top)
    assert top in new


@pytest.mark.parametrize(("given", "defined"), [("", False), ("#SBATCH -c 2\n", True)])
def test_variables_that_only_an_option_sets(given: str, defined: bool) -> None:
    done = convert(f"{ONE}{given}export OMP_NUM_THREADS=${{SLURM_CPUS_PER_TASK:-8}}", "pbspro")
    assert ("SLURM_CPUS_PER_TASK=2\n" in done.text) == defined
    assert remarks(done) == []


@pytest.mark.parametrize("options", ["-n 1", "-N 2 -n 8", "-N 1 -n 4", "-N 1 --ntasks-per-node=4"])
@pytest.mark.parametrize("line", ["./a ${SLURM_NTASKS_PER_NODE:-3}", "./a $SLURM_NTASKS_PER_NODE"])
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_the_tasks_of_a_node_are_set_by_their_option_only(options: str, line: str, target: str) -> None:
    """Measured with Slurm 22.05: a total of tasks sets SLURM_NTASKS and SLURM_TASKS_PER_NODE."""
    done = convert(f"#SBATCH {options}\n{line}", target)
    assert ("SLURM_NTASKS_PER_NODE=4\n" in done.text) == ("--ntasks-per-node" in options)
    assert ("SLURM_NTASKS_PER_NODE=" in done.text) == ("--ntasks-per-node" in options)
    assert line in done.text


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
    ("text", "target", "expected"),
    [
        ("#PBS -l select=2:ncpus=8:mpiprocs=2\nhostname", "slurm", "export OMP_NUM_THREADS=8"),
        ("#PBS -l ncpus=8\nhostname", "slurm", "export OMP_NUM_THREADS=8"),
        ("#PBS -l select=1:ncpus=8\nexport OMP_NUM_THREADS=2", "slurm", "export OMP_NUM_THREADS=2"),
        ("#PBS -l select=1:ncpus=8\nset -a\nA=1\n./a", "slurm", "export OMP_NUM_THREADS=8"),
        ("#PBS -l select=1:ncpus=8\nset -a; . ./env.sh\n./a", "slurm", "export OMP_NUM_THREADS=8"),
        ("#PBS -l select=1:ncpus=8\nset -a\nOMP_NUM_THREADS=2\n./a", "slurm", "OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -n 4 -c 2\nset -a\nsrun ./a", "pbspro", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -c 6\nset -a\npython a.py", "torque", "export OMP_NUM_THREADS=6"),
        ("#PBS -l select=1:ncpus=8\n#PBS -v OMP_NUM_THREADS=2\nhostname", "slurm", "export OMP_NUM_THREADS=2"),
        ("#PBS -l select=1\nhostname", "slurm", None),
        ("#SBATCH -N 1 -n 4 -c 2\nsrun ./a", "pbspro", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -n 4 -c 2\nsrun ./a", "torque", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -n 4\nsrun -c 2 ./a", "torque", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -n 4 -c 2\nsrun ./a", "torque", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -n 4 -c 2\nsrun --cpu-bind=none ./a", "torque", "export OMP_NUM_THREADS=8"),
        ("#SBATCH -N 1 -n 4 -c 2\nsrun hostname", "torque", None),
        ("#SBATCH -N 1 -n 4 -c 2\nmpirun ./a", "torque", None),
        ("#SBATCH -N 1 -n 4 --exclusive\nsrun ./a", "torque", None),
        ("#SBATCH -N 2 -c 2\nsrun ./a", "torque", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -c 6\npython a.py", "torque", "export OMP_NUM_THREADS=6"),
        ("#SBATCH -N 1 -n 8\nRscript a.R", "torque", "export OMP_NUM_THREADS=8"),
        ("#SBATCH -N 1 -n 8\n./a", "torque", None),
        ("#SBATCH -N 1 -c 6\nhostname", "torque", None),
        ("#SBATCH -N 1 -c 6\ngmx mdrun -deffnm a", "torque", None),
        ("#SBATCH -N 1 -c 6\nnextflow run a.nf", "torque", None),
        ("#SBATCH -N 1 -c 6 --exclusive\npython a.py", "torque", None),
        ("#SBATCH -n 2 -c 4\n#SBATCH hetjob\n#SBATCH -n 1 -c 8\npython a.py", "torque", None),
        ("#PBS -l nodes=1:ppn=6:gpus=1\npython a.py $PBS_NP", "pbspro", "unset OMP_NUM_THREADS"),
        ("#PBS -l nodes=1:ppn=6\npython a.py $PBS_NP", "slurm", None),
        ("#PBS -J 1-3\n#PBS -l mem=2gb\n./a", "slurm", "export OMP_NUM_THREADS=1"),
        ("#PBS -J 1-3\n#PBS -l select=1\n./a", "slurm", None),
        ("#PBS -N a\n./a", "slurm", None),
        ("#SBATCH -N 1 -n 4 -c 2\nrun() { \"$@\"; }\nrun srun ./a", "pbspro", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -n 4 -c 2\nsh -x -c 'mpirun ./a'", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 -n 4 -c 2\neval srun ./a", "pbspro", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -n 4 -c 2\necho srun ./a\n./b", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 -n 1 -c 2\n./a", "pbspro", None),
        ("#SBATCH -N 1 -n 8\npython a.py", "pbspro", None),
        ("#SBATCH -N 1 -n 8\n./a", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -n 4\nsnakemake --cores 4", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 -n 8\nmpicasa -n 8 casa -c a.py", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 -n 4\nsingularity exec a.sif bash -c './run'", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 -c 4\nf() { \"$RUN\" -np 4 ./a; }\nf", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 -c 4\nbash <<E\nmpirun -np 4 ./a\nE", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1\nsrun -n 1 -c 8 ./a", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 --exclusive -c 4\nsrun ./a", "pbspro", "export OMP_NUM_THREADS=4"),
        ("#SBATCH -N 1 --exclusive -c 4\nsrun ./a", "torque", "export OMP_NUM_THREADS=4"),
        ("#SBATCH -N 1 --gres=gpu:1\npython a.py", "pbspro", None),
        ("#SBATCH -N 2 -n 2\nsrun ./a", "pbspro", None),
        ("#SBATCH -N 2 --ntasks-per-node=8\nmpirun ./a", "pbspro", "export OMP_NUM_THREADS=1"),
        ("#SBATCH -N 2 --ntasks-per-node=8\nmpirun ./a", "torque", None),
        ("#SBATCH -N 2 --ntasks-per-node=8\neval mpirun ./a", "pbspro", "export OMP_NUM_THREADS=1"),
        ("#SBATCH -N 2 --ntasks-per-node=8\nsrun --cpu-bind=none ./a", "pbspro", None),
        ("#SBATCH -N 2 --ntasks-per-node=8\n./a", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 -c 8\nsrun torchrun a.py", "pbspro", "unset OMP_NUM_THREADS"),
        ("#SBATCH -N 1 -n 8\ngmx mdrun -ntmpi 2 -ntomp 4", "pbspro", "unset OMP_NUM_THREADS"),
    ],
)  # fmt: skip
def test_the_threads_that_pbs_pro_sets(text: str, target: str, expected: str | None) -> None:
    lines = convert(f"#!/bin/bash\n{text}\n", target).text.splitlines()
    assert [line.partition("  #")[0] for line in lines if "OMP_NUM" in line] == [expected] * bool(expected)


@pytest.mark.parametrize(
    "line",
    [
        "export OMP_NUM_THREADS=${OMP_NUM_THREADS:-6}",
        ': "${OMP_NUM_THREADS:=6}"\nexport OMP_NUM_THREADS',
        '[ -n "$OMP_NUM_THREADS" ] || export OMP_NUM_THREADS=6',
        "if [ -e a ]; then export OMP_NUM_THREADS=6; fi",
    ],
)
def test_threads_that_a_script_sets_in_some_cases_only(line: str) -> None:
    of_slurm = convert(f"#SBATCH -N 1 -n 1 -c 4\n{line}\n./a", "pbspro").text
    of_pbs = convert(f"#PBS -l select=1:ncpus=4\n{line}\n./a", "slurm", "pbspro").text
    assert "\nunset OMP_NUM_THREADS  #" in of_slurm
    assert "\nexport OMP_NUM_THREADS=4  #" in of_pbs


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("mkdir $SLURM_JOB_ID", ["is NUMBER[INDEX].SERVER here, which is no number"]),
        (
            "echo $((SLURM_JOB_ID % 100))",
            ["is the number of the array here, the same for all of its tasks"],
        ),
    ],
)
def test_the_id_of_a_task_has_a_remark(line: str, why: list[str]) -> None:
    found = [
        one for one in convert(f"#SBATCH -a 1-3\n{line}", "pbspro").remarks if one.what == "$SLURM_JOB_ID"
    ]
    assert [one.why for one in found] == why
    alone = convert(f"#SBATCH -N 1\n{line}", "pbspro").remarks
    assert [one for one in alone if one.what == "$SLURM_JOB_ID"] == []


@pytest.mark.parametrize("target", ["pbspro", "torque"])
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("P=$((10000 + ${SLURM_JOB_ID: -4}))", True),
        ("./a ${SLURM_JOBID:0:3}", True),
        ("./a ${#SLURM_JOBID}", True),
        ("./a run-${SLURM_JOB_ID:-7}", True),
        ("./a ${SLURM_JOB_ID/.*} ${SLURM_JOB_ID%%.*} ${SLURM_JOB_ID}", False),
        ('[ -n "${SLURM_JOB_ID:-}" ] && ./a ${SLURM_JOB_ID:+-v}', False),
        (": ${SLURM_JOB_ID:?}", False),
    ],
)
def test_a_part_of_the_id_of_a_job_has_a_remark(line: str, named: bool, target: str) -> None:
    done = convert(f"#SBATCH -N 1\n{line}", target)
    assert ["NUMBER.SERVER" in one.why for one in done.remarks if one.what.startswith("$")] == [True] * named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("S=${PBS_JOBID#*.}", True),
        ("S=$(echo $PBS_JOBID | cut -d. -f2)", True),
        ("S=$(echo $PBS_JOBID | cut -d . -f 1-2)", True),
        ("S=`echo $PBS_JOBID | awk -F. '{print $2}'`", True),
        (r"N=$(expr $PBS_JOBID : '\([0-9]*\)\.')", True),
        (r"N=$(echo $PBS_JOBID | sed -n 's/\..*//p')", True),
        ("[[ $PBS_JOBID == *.main ]] && ./a", True),
        ('IFS=. read N S <<< "$PBS_JOBID"', True),
        ("N=$(echo $PBS_JOBID | cut -f 1 -d '.' | cut -f 1 -d '[')", False),
        (r"N=$(echo $PBS_JOBID | sed 's/\..*//')", False),
        ("N=`expr $PBS_JOBID : '\\([0-9]*\\)'`", False),
        ('N=${PBS_JOBID%%.*}; [ "x$PBS_JOBID" == x ] || ./a $PBS_JOBID = a.out', False),
    ],
)
def test_the_server_in_the_id_of_a_job_has_a_remark(line: str, named: bool) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2\n{line}", "slurm")
    why = [one.why for one in done.remarks if one.what == "$PBS_JOBID"]
    assert why == ["is a number without .SERVER here"] * named


@pytest.mark.parametrize("line", ["N=${PBS_JOBID%%[*}", "N=${PBS_JOBID#*[}"])
def test_the_index_in_the_id_of_a_task_has_a_remark(line: str) -> None:
    done = convert(f"#PBS -J 1-3\n{line}", "slurm")
    assert "$SLURM_ARRAY_JOB_ID" in done.remarks[-1].why


@pytest.mark.parametrize(
    ("nodes", "line", "named"),
    [
        (2, "echo $SLURM_JOB_NODELIST | cut -d[ -f1", True),
        (2, 'IFS=- read A B <<< "$SLURM_NODELIST"', True),
        (2, "N=${SLURM_NODELIST:0:9}", True),
        (2, "echo $SLURM_JOB_NODELIST", False),
        (2, "pdsh -w $SLURM_JOB_NODELIST uptime | sort", False),
        (1, "echo $SLURM_JOB_NODELIST | cut -d. -f1", False),
        (1, "N=${SLURM_NODELIST:0:9}", False),
        (2, "N=${SLURM_NODELIST:-node1}", False),
    ],
)
def test_a_part_of_a_list_of_nodes_has_a_remark(nodes: int, line: str, named: bool) -> None:
    done = convert(f"#SBATCH -N {nodes} -n {nodes}\n{line}", "pbspro")
    assert any("without brackets" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("options", "target", "line", "named"),
    [
        ("SBATCH -N 1", "pbspro", "printenv | grep '^SLURM_'", "SLURM_"),
        ("SBATCH -N 1", "pbspro", "for v in ${!SLURM_*}; do export A_$v=${!v}; done", "SLURM_"),
        ("SBATCH -N 1", "pbspro", "env | awk -F= '/^SLURM/{print $1}' > a", "SLURM"),
        ("SBATCH -N 1", "pbspro", "env | grep SLURM_JOB > a", "SLURM_JOB"),
        ("SBATCH -N 1", "pbspro", "unset ${!SLURM_*} $(compgen -v SLURM_)", ""),
        ("SBATCH -N 1", "pbspro", "SLURM_OWN=1", ""),
        ("PBS -l select=1", "slurm", "set | grep PBS_O > a", "PBS_O"),
        ("PBS -l nodes=1:ppn=2", "pbspro", "python -c 'os.environ[\"PBS_GPUFILE\"]'", "PBS_GPUFILE"),
        ("PBS -l nodes=1:ppn=2", "pbspro", "./a PBS_SERVER", ""),
    ],
)
def test_names_of_variables_in_texts(options: str, target: str, line: str, named: str) -> None:
    done = convert(f"#{options}\n{line}", target, "torque" if "nodes" in options else None)
    why = ("is not set by", "begins the name of no variable")
    assert [one.what for one in done.remarks if one.why.startswith(why)] == [named] * bool(named)


def test_a_variable_that_code_reads_has_the_value_of_the_other_pbs() -> None:
    done = convert("#PBS -l nodes=1:ppn=2\npython -c 'os.environ[\"PBS_NP\"]'", "pbspro", "torque")
    assert 'PBS_NP=$(wc -l < "$PBS_NODEFILE")\nexport PBS_NP\n' in done.text
    assert "PBS_NP" not in str(done.remarks)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("python -c \"open(os.environ['PBS_NODEFILE'])\"", True),
        ("Rscript -e 'readLines(Sys.getenv(\"PBS_NODEFILE\"))'", True),
        ("perl -e 'print $ENV{PBS_NODEFILE}' > a", True),
        ("export A PBS_NODEFILE\n./a", True),
        ("export PBS_NODEFILE=/x\nenv -u PBS_NODEFILE ./a", False),
        ('unset PBS_NODEFILE\necho "PBS_NODEFILE: none"', False),
    ],
)
def test_a_node_file_that_only_programs_read(line: str, written: bool) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2\n{line}", "slurm")
    assert ("\nPBS_NODEFILE=$(mktemp)\n" in done.text) == written


def test_variables_that_only_one_pbs_sets() -> None:
    """As the execution daemons of OpenPBS and Torque, in src/resmom/start_exec.c."""
    done = convert("#PBS -J 1-3\n#PBS -l select=1:ncpus=4\n./a $NCPUS $PBS_ARRAY_ID $PBS_JOBDIR", "torque")
    assert "\nNCPUS=4\n" in done.text
    assert "\nPBS_ARRAY_ID=${PBS_ARRAYID:+${PBS_JOBID/\\[*\\]/[]}}\n" in done.text
    assert [one.what for one in done.remarks if one.lost] == ["$PBS_JOBDIR"]
    text = "#PBS -l nodes=1:ppn=4\n./a $PBS_WALLTIME $MOAB_USER $PBS_SERVER"
    other = convert(text, "pbspro", "torque")
    assert [one.what for one in other.remarks if one.lost] == ["$MOAB_USER", "$PBS_WALLTIME"]


@pytest.mark.parametrize("name", ["nextflow run a.nf", "java -jar cromwell.jar run a.wdl"])
def test_the_threads_that_a_workflow_engine_finds_are_named(name: str) -> None:
    done = convert(f"#SBATCH -N 1 -c 6\n{name}", "torque")
    assert ["OMP_NUM_THREADS" in done.text, "uses those of the whole node" in str(done.remarks)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ("-N 2", ""),
        ("-N 2 -n 4", "SLURM_NTASKS SLURM_NPROCS"),
        ("-N 2 --ntasks-per-node=2", "SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE"),
        ("-N 1 --gpus-per-node=2 --ntasks-per-gpu=1", "SLURM_NTASKS SLURM_NPROCS SLURM_GPUS_PER_NODE"),
        ("-N 2 --gres=gpu:2 --cpus-per-gpu=4", "SLURM_CPUS_PER_GPU"),
        ("-N 2 --gpus=4 -c 2", "SLURM_GPUS SLURM_CPUS_PER_TASK"),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_variables_that_slurm_sets_with_an_option_only(options: str, variables: str, target: str) -> None:
    """Seen with Slurm 22.05: the others are unset, and a script may choose a number of its own then."""
    names = ["NTASKS", "NPROCS", "NTASKS_PER_NODE", "CPUS_PER_TASK", "GPUS", "GPUS_PER_NODE", "CPUS_PER_GPU"]
    code = " ".join(f"${{SLURM_{name}:-8}}" for name in names)
    done = convert(f"#SBATCH {options}\n./a {code}", target)
    assert set(re.findall(r"^(SLURM_\w+)=", done.text, re.M)) == {*variables.split()}


@pytest.mark.parametrize(("cores", "named"), [("{c}", ["$SLURM_CPUS_PER_TASK"]), ("2", [])])
def test_a_number_that_only_a_person_can_read_is_unset(cores: str, named: list[str]) -> None:
    body = "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n./a $SLURM_CPUS_PER_TASK"
    done = convert(f"#!/bin/bash\n#SBATCH -N 1 -c {cores}\n{body}\n", "pbspro")
    assert [one.what for one in done.remarks if "is unset" in one.why] == named


@pytest.mark.parametrize(
    ("first", "behind"), [("set -eu", True), ("set -e  # all", True), ("set -e; touch x", False)]
)
def test_the_directory_changes_before_the_first_command_but_set(first: str, behind: bool) -> None:
    text = convert(f"#!/bin/bash\n#SBATCH -N 1\n{first}\n./a\n", "pbspro").text
    assert (text.index(first) < text.index('cd "$PBS_O_WORKDIR"')) == behind


def test_the_index_is_unset_outside_of_an_array() -> None:
    body = '[ -n "${PBS_ARRAYID+1}" ] || PBS_ARRAYID=-1\n./a $PBS_ARRAYID'
    text = convert(f"#!/bin/bash\n#PBS -l nodes=1:ppn=2\n{body}\n", "slurm").text
    assert '[ -z "${SLURM_ARRAY_TASK_ID+x}" ] || export PBS_ARRAYID="${SLURM_ARRAY_TASK_ID:-}"\n' in text


@pytest.mark.parametrize(
    ("name", "target", "value"),
    [
        ("SLURM_ARRAY_TASK_ID", "pbspro", "${PBS_ARRAY_INDEX:-}"),
        ("PBS_ARRAYID", "slurm", "${SLURM_ARRAY_TASK_ID:-}"),
        ("SLURM_JOB_ID", "pbspro", "${PBS_JOBID:-}"),
    ],
)
def test_a_variable_that_is_exported_keeps_its_name(name: str, target: str, value: str) -> None:
    array = "#PBS -t 1-9" if name.startswith("PBS") else "#SBATCH -a 1-9"
    text = convert(f"#!/bin/bash\n{array}\nexport {name}\n./a ${name}\n", target).text
    assert f"{name}={value}\nexport {name}\nexport {name}\n./a ${name}\n" in text


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("#PBS -l select=1:ncpus=4:ngpus=1\ncp a $TMPDIR/b", "slurm", ["$TMPDIR"]),
        ("#PBS -l select=1:ncpus=4:ngpus=1\nTMPDIR=/x; cp a $TMPDIR/b", "slurm", []),
        ("#PBS -l select=1:ncpus=4:ngpus=1\necho $TMPDIR $CUDA_VISIBLE_DEVICES", "slurm", []),
        ("#SBATCH -N 1 --gres=gpu:1\nn=x_$CUDA_VISIBLE_DEVICES", "pbspro", ["$CUDA_VISIBLE_DEVICES"]),
        ("#SBATCH -N 1\nd=$(bash -c 'echo $TMPDIR' | head -n 1)", "pbspro", ["$TMPDIR"]),
        ("#SBATCH -N 1\nbash -c 'echo $TMPDIR'", "pbspro", []),
        ("#SBATCH -N 1 --gres=gpu:1\ncp a $TMPDIR", "pbspro", ["$TMPDIR"]),
        ("#SBATCH -N 1\nmkdir $TMPDIR/logs", "torque", ["$TMPDIR"]),
        ("#SBATCH -N 1\nTMPDIR=/x; mkdir $TMPDIR/logs", "torque", []),
        ("#SBATCH -N 1\nn=x_$CUDA_VISIBLE_DEVICES", "pbspro", []),
    ],
)
def test_variables_of_a_scheduler_without_its_prefix(text: str, target: str, expected: list[str]) -> None:
    assert [what for lost, _, what in remarks(convert(text, target)) if not lost] == expected


@pytest.mark.parametrize(
    ("line", "noted"),
    [("python prepare.py", True), ("./prepare", True), ("./prepare.sh", False), ("python -c 1", False)],
)
def test_programs_without_a_launcher_get_the_threads_of_a_rank(line: str, noted: bool) -> None:
    done = convert(f"{ONE}#SBATCH --ntasks-per-node=4\n{line}\nsrun ./a\n", "pbspro")
    assert ((line, "OMP_NUM_THREADS") in [(one.what, one.why.split()[1]) for one in done.remarks]) == noted


def test_the_cores_of_metacentrum_are_those_of_a_node() -> None:
    done = convert("#PBS -l select=1:ncpus=8\n./a $PBS_NUM_PPN", "slurm")
    assert done.text.endswith("./a $SLURM_CPUS_ON_NODE\n")


def test_a_directory_that_only_sites_of_pbs_make_is_named() -> None:
    done = convert("#PBS -l select=1:ncpus=2:scratch_local=9gb\ncp data $SCRATCHDIR\ncd $SCRATCHDIR", "slurm")
    [remark] = [one for one in done.remarks if one.what == "$SCRATCHDIR"]
    assert (remark.lost, remark.line) == (False, 3)
    assert "scratch_local" in remark.why


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ("-N 2 --ntasks-per-node=4", "TASKS_PER_NODE", '"4(x2)"'),
        ("-N 1 -n 4", "TASKS_PER_NODE", "4"),
        ("-N 2 -n 5", "TASKS_PER_NODE", ""),
        ("-N 2 --exclusive", "TASKS_PER_NODE", ""),
        ("-N 2 --ntasks-per-node=4 -c 2", "JOB_CPUS_PER_NODE", '"8(x2)"'),
        ("-N 1 --ntasks-per-node=4 -c 2", "JOB_CPUS_PER_NODE", "8"),
        ("-n 4 --mem-per-cpu=1G", "MEM_PER_CPU", "1024"),
        ("-n 4", "MEM_PER_NODE", ""),
        ("-N 1 --mem=1G", "MEM_PER_NODE", "1024"),
        ("-A proj", "JOB_ACCOUNT", "proj"),
        ("-A <project>", "JOB_ACCOUNT", ""),
    ],
)
def test_what_the_directives_say_of_nodes(options: str, name: str, value: str) -> None:
    done = convert(f"#SBATCH {options}\nx=$SLURM_{name}", "pbspro")
    if value:
        assert f"SLURM_{name}={value}\n" in done.text
    assert (f"$SLURM_{name}" in [one.what for one in done.remarks]) == (not value)


def test_the_file_of_the_ranks_is_the_node_file() -> None:
    assert body("-N 2", "F=$(x/generate_pbs_nodefile.pl)")[0] == ['F=$(echo "$PBS_NODEFILE")']
    lines, of_lines = body("-N 2", "export F=`generate_pbs_nodefile`\ngenerate_pbs_nodefile -x")
    assert lines == ['export F=`echo "$PBS_NODEFILE"`', "generate_pbs_nodefile -x"]
    assert [line for _, line, what in of_lines if "generate" in what] == [5]


def test_the_cores_of_a_job_at_nci() -> None:
    done = convert(
        "#PBS -l ncpus=48,walltime=1:00:00\n#PBS -P a1\nmpirun -np $PBS_NCPUS ./a", "slurm", "pbspro"
    )
    assert "\nPBS_NCPUS=48\n" in done.text
    assert 'srun --ntasks="$PBS_NCPUS" --cpus-per-task=1 ' in done.text
    assert not [one for one in done.remarks if one.lost]


def test_an_index_in_a_comment_makes_no_array() -> None:
    assert not remarks(convert("#SBATCH -t 1\nls # $SLURM_ARRAY_TASK_ID", "pbspro"))


def test_a_variable_that_is_the_same_in_all_jobs() -> None:
    text = '#PBS -l nodes=1:ppn=1\nif test "$PBS_ENVIRONMENT" = PBS_BATCH; then cd $PBS_O_WORKDIR; fi\n./a'
    done = convert(text, "slurm", "torque")
    assert "\nPBS_ENVIRONMENT=PBS_BATCH\nexport PBS_ENVIRONMENT\nif test" in done.text
    assert not done.remarks
    assert "PBS_ENVIRONMENT=" not in convert(text, "pbspro", "torque").text


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_variable_that_no_scheduler_sets_is_not_lost(target: str) -> None:
    done = convert("#SBATCH -t 1\n./a $SLURM_PARTITION", target)
    assert [(one.lost, one.why) for one in done.remarks] == [
        (False, "is not set by Slurm, either, which sets SLURM_JOB_PARTITION")
    ]


@pytest.mark.parametrize(
    ("options", "line", "target", "why"),
    [
        ("SBATCH -N 1", "scontrol show job $SLURM_JOB_ID", "pbspro", ["becomes qstat -f, which prints other lines"]),
        ("PBS -l select=1", "qstat -f $PBS_JOBID", "slurm", ["becomes scontrol show job, which prints other lines"]),
        ("PBS -l select=1", "qstat -f $PBS_JOBID", "torque", []),
    ],
)  # fmt: skip
def test_a_command_that_prints_the_job_prints_other_lines(
    options: str, line: str, target: str, why: list[str]
) -> None:
    done = convert(f"#{options}\n{line}", target)
    assert [one.why for one in done.remarks if "prints" in one.why] == why


@pytest.mark.parametrize(
    ("line", "written", "named"),
    [
        ("python -c 'import os; open(os.environ[\"PBS_NODEFILE\"])'", True, False),
        ('julia <<E\nf(readlines(ENV["PBS_NODEFILE"]))\nE', True, False),
        ("perl -e 'open(F, $ENV{PBS_NODEFILE})'", True, False),
        ("bash -c './a $PBS_NODEFILE'", True, False),
        ("./a --variable PBS_NODEFILE", False, True),
        ("ssh b 'wc -l $PBS_NODEFILE'", False, True),
        ("echo 'PBS_NODEFILE: none'", False, False),
    ],
)
def test_a_node_file_that_code_in_another_language_reads(line: str, written: bool, named: bool) -> None:
    done = convert(f"#PBS -l nodes=2:ppn=4\n{line}", "slurm")
    assert ("PBS_NODEFILE=$(mktemp)" in done.text) == written
    assert any(one.what == "PBS_NODEFILE" for one in done.remarks) == named


@pytest.mark.parametrize(
    ("options", "line", "target", "new"),
    [
        (
            "#SBATCH -n 4",
            "srun nsys profile -o b.%q{SLURM_PROCID} ./a",
            "torque",
            "b.%q{OMPI_COMM_WORLD_RANK}",
        ),
        ("#SBATCH -n 4", 'srun ncu -o "b-%q{SLURM_JOB_NAME}" ./a', "pbspro", '"b-%q{PBS_JOBNAME}"'),
        ("#SBATCH -n 1", "valgrind --log-file=b.%q{SLURM_JOB_ID} ./a", "pbspro", "b.%q{PBS_JOBID}"),
        ("#SBATCH -n 1", "valgrind --log-file=b.%q{MY_ID} ./a", "pbspro", "b.%q{MY_ID}"),
        (
            "#PBS -l nodes=1:ppn=4",
            "mpirun -np 4 nvprof -o b.%q{OMPI_COMM_WORLD_RANK} ./a",
            "slurm",
            "b.%q{SLURM_PROCID}",
        ),
    ],
)
def test_variables_in_the_names_of_files_of_tools(options: str, line: str, target: str, new: str) -> None:
    done = convert(f"{options}\n{line}", target)
    assert f"{new} ./a" in done.text
    assert not any("is not set by" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        *(("cp -p $PBS_NODEFILE hosts", True), ("cp -av ${PBS_NODEFILE} hosts", True)),
        *(("cp --preserve=mode $PBS_NODEFILE hosts", True), ("cp $PBS_NODEFILE hosts-a", False)),
        *(("cp -p a b; cat $PBS_NODEFILE", False), ("cp -r $PBS_NODEFILE hosts", False)),
    ],
)
def test_a_copy_of_the_node_file_with_its_mode(command: str, kept: bool) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l nodes=2:ppn=2\ncd $PBS_O_WORKDIR\n{command}\n", "slurm")
    assert ('chmod 644 "$PBS_NODEFILE"' in done.text) == kept
