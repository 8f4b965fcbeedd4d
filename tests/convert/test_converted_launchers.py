"""Launch lines for another scheduler: srun, mpirun and aprun."""

from __future__ import annotations

import re
import subprocess

import pytest
from convert.conversions import MPIRUN, ONE, body, convert, job_file, remarks, values

from jobgen.convert.to_job_file.translation import convert as to_job_file
from jobgen.convert.to_scheduler.conversion import convert as to_scheduler
from jobgen.script.commands import commands
from jobgen.script.mpi_of_script import mpi_of
from jobgen.script.script import Script
from jobgen.script.syntax import parse

TWO = 'mpirun -np {} --hostfile "$PBS_NODEFILE" --map-by ppr:{}:node --bind-to none'


@pytest.mark.parametrize(
    ("text", "expected", "reasons"),
    [
        ('ARGS="--wait=60 -K"\nsrun $ARGS ./a', TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ("ARGS=-K\nsrun $ARGS ./a", TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ('RUN="python x.py"\nsrun $RUN', TWO.format(4, 2) + " $(mpi_exports) $RUN", []),
        ('srun --comment "a b" --cpu_bind=v ./a', TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ("srun --cpu-bind=none --unbuffered ./a", TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ("X=1\nsrun -n4 --ntasks-per-node=$X ./a", TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ("timeout 9 srun -n2 ./a", "timeout 9 " + TWO.format(2, 1) + " $(mpi_exports) ./a", []),
        ("for p in 2 4; do\nsrun -n $p ./a; done", TWO.format("$p", "$((($p + 2 - 1) / 2))") + " $(mpi_exports) ./a; done", []),
        ("srun -n1 -w $H ./a", 'mpirun -np 1 --host "$H" --bind-to none $(mpi_exports) ./a', []),
        ("srun -l --cpu-bind=cores ./a", TWO.format(4, 2)[:-4] + "core --tag-output $(mpi_exports) ./a", []),
        ("srun --gpus-per-task=1 ./a", TWO.format(4, 2) + " $(mpi_exports) ./a", ["sees all devices"]),
        ("srun -D /x --export=ALL,A=b ./a", f"env A=b {TWO.format(4, 2)} -wdir /x -x A $(mpi_exports) ./a", []),
        ("A=1 B=2 srun ./a", f"A=1 B=2 {TWO.format(4, 2)} $(mpi_exports) -x A -x B ./a", []),
        ("export PMI_DEBUG=1\nsrun ./a", TWO.format(4, 2) + " $(mpi_exports) -x PMI_DEBUG ./a", []),
        ("timeout 9 env A=1 srun ./a", f"timeout 9 env A=1 {TWO.format(4, 2)} $(mpi_exports) -x A ./a", []),
        ("mpirun -np 4 ./a", 'mpirun --hostfile "$PBS_NODEFILE" $(mpi_exports) -np 4 ./a', []),
        ("module load intel-mpi/2021\nsrun ./a", 'mpirun -n 4 -ppn 2 -genv I_MPI_PIN off -f "$PBS_NODEFILE" ./a', []),
        ("module load mpich\nsrun ./a", 'mpirun -n 4 -ppn 2 -bind-to none -f "$PBS_NODEFILE" ./a', []),
    ],
)  # fmt: skip
def test_srun(text: str, expected: str, reasons: list[str]) -> None:
    lines, of_lines = body("--nodes=2 --ntasks-per-node=2", text)
    assert lines[-1] == expected
    assert not any(lost for lost, _, _ in of_lines)
    done = convert(f"#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=2\n{text}\n", "pbspro")
    assert all(one in str(done.remarks) for one in reasons)


@pytest.mark.parametrize(
    ("text", "expected", "expected_remarks"),
    [
        ("srun python x.py", "python x.py", [(False, 3, "SLURM_PROCID")]),
        ("timeout 9 srun -n1 --export=ALL,A=b ./a", "timeout 9 env A=b ./a", [(False, 3, "SLURM_PROCID")]),
        ("srun --output o.log -e e.log ./a", "> o.log 2> e.log ./a", [(False, 3, "SLURM_PROCID")]),
        ("srun -o o.log -i in ./a", "< in > o.log 2>&1 ./a", [(False, 3, "SLURM_PROCID")]),
        ("srun -o $LOG ./a", '> "$LOG" 2>&1 ./a', [(False, 3, "SLURM_PROCID")]),
        ("srun --output=o-%t.log ./a", "./a", [(True, 3, "--output o-%t.log"), (False, 3, "SLURM_PROCID")]),
        ("srun --input=none ./a", "< /dev/null ./a", [(False, 3, "SLURM_PROCID")]),
        ('R="srun -n 1"\n$R ./a', "./a", [(False, 4, "SLURM_PROCID")]),
        ("module load openmpi\nsrun ./a", f"{MPIRUN} ./a", [(False, 4, "SLURM_PROCID")]),
        ("export OMPI_MCA_x=1\nsrun ./a", f"{MPIRUN} ./a", [(False, 4, "SLURM_PROCID")]),
        ("srun --mpi=pmix ./a", f"{MPIRUN} ./a", [(False, 3, "SLURM_PROCID"), (False, 3, "srun")]),
        ("srun --mpi=none ./a", "./a", [(False, 3, "SLURM_PROCID")]),
        ("srun bash -c 'echo $SLURM_PROCID'", f"{MPIRUN} bash -c 'echo $OMPI_COMM_WORLD_RANK'", None),
    ],
)
def test_one_task_of_srun(
    text: str, expected: str, expected_remarks: list[tuple[bool, int, str]] | None
) -> None:
    done = convert(ONE + text, "pbspro")
    assert done.text.splitlines()[-1] == expected
    assert expected_remarks is None or remarks(done) == expected_remarks


def test_one_task_among_others_finds_the_variables_of_the_same_launcher() -> None:
    lines = convert("#SBATCH -N 1 -n 2\nsrun -n1 ./a\nsrun ./b", "pbspro").text.splitlines()
    assert [line.split()[:3] for line in lines[-2:]] == [["mpirun", "-np", "1"], ["mpirun", "-np", "2"]]


def test_a_variable_that_holds_the_launcher() -> None:
    done = convert('#SBATCH -N 1 -n 4\nRUN="srun -n 4"\n$RUN ./a\n$RUN ./b', "pbspro")
    command = 'mpirun -np 4 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none'
    assert done.text.endswith(f"\nRUN=\n{command} ./a\n{command} ./b\n")
    assert not any(one.lost for one in done.remarks)


@pytest.mark.parametrize(
    ("text", "expected", "expected_remarks"),
    [
        ('RUN="srun ./a"\n$RUN x', "$RUN x", [(True, 3, "srun"), (True, 4, "$RUN x")]),
        ('RUN="srun -n 4"\necho $RUN\n$RUN ./a', None, [(True, 3, "srun")]),
        ('RUN="mpirun ./a"\n$RUN x', "$RUN x", [(True, 4, "$RUN x")]),
    ],
)
def test_a_variable_that_holds_more(text: str, expected: str | None, expected_remarks: list[object]) -> None:
    done = convert(f"#SBATCH -N 1 -n 4\n{text}", "pbspro")
    assert expected is None or done.text.splitlines()[-1] == expected
    assert [one for one in remarks(done) if one[0]] == expected_remarks


def test_labels_of_open_mpi_have_a_remark() -> None:
    done = convert("#SBATCH -N 1 -n 2\nsrun -l ./a | sort", "pbspro")
    assert (False, 3, "--label") in remarks(done)


@pytest.mark.parametrize(("text", "lost_binding"), [("srun ./a", True), ("mpirun ./a", False)])
def test_gpus_of_each_task_are_those_of_the_node(text: str, lost_binding: bool) -> None:
    done = convert(f"#SBATCH -N 1 -n 2\n#SBATCH --gpus-per-task=1\n{text}", "pbspro")
    assert ((False, 3, "--gpus-per-task=1") in remarks(done)) == lost_binding


def test_the_input_of_one_rank() -> None:
    done = convert("#SBATCH -N 1 -n 2\nsrun --input=in ./a", "pbspro")
    assert done.text.endswith("--bind-to none < in ./a\n")
    assert (False, 3, "--input in") in remarks(done)


def test_a_here_string_for_several_ranks() -> None:
    done = convert("#SBATCH -N 1 -n 2\nsrun ./a <<< 3", "pbspro")
    assert (False, 3, "srun ./a <<< 3") in remarks(done)


@pytest.mark.parametrize("nodes", ["<count>", "2-4"])
def test_an_srun_of_a_number_of_nodes_that_is_not_known(nodes: str) -> None:
    done = convert(f"#SBATCH --nodes={nodes}\nsrun ./a\nsrun -N 1 -n 1 ./b", "pbspro")
    assert done.text.endswith("\nsrun ./a\n./b\n")
    assert (True, 3, "srun ./a") in remarks(done)


def test_a_step_on_fewer_nodes() -> None:
    done = convert("#SBATCH -N 2\nsrun -n 8 -N 1 ./a", "pbspro")
    assert (False, 3, "srun -n 8 -N 1 ./a") in remarks(done)


@pytest.mark.parametrize(
    ("line", "ranks", "each", "whats"),
    [
        ("srun -N1 ./a", 4, 4, ["--nodes=1"]),
        ("srun -N1 --ntasks-per-node=1 ./a", 4, 4, ["--nodes=1", "--ntasks-per-node=1"]),
        ("srun -N1 -n1 ./a", 1, 1, []),
        ("srun -w n1 ./a", 4, 2, ["--nodelist=n1"]),
        ("srun -w n1 -n2 ./a", 2, 1, ["--nodelist=n1"]),
        ("srun -w n1 -N2 -n4 ./a", 4, 2, ["--nodelist=n1"]),
    ],
)
def test_a_step_has_the_tasks_and_the_nodes_of_the_job(
    line: str, ranks: int, each: int, whats: list[str]
) -> None:
    """Measured with Slurm 22.05: SLURM_NTASKS counts with -N 1, too, and --nodelist names some of all nodes."""
    lines, of_lines = body("-N 2 --ntasks-per-node=2", f"module load mpich\n{line}")
    assert lines[-1] == f'mpirun -n {ranks} -ppn {each} -bind-to none -f "$PBS_NODEFILE" ./a'
    assert [what for lost, _, what in of_lines if what.startswith("--n")] == whats


def test_the_tasks_of_a_step_on_one_node_with_a_name() -> None:
    lines, _ = body("-N 2 --ntasks-per-node=2", "module load mpich\nsrun -w $H -N1 ./a")
    assert lines[-1] == 'mpirun -n 4 -bind-to none -hosts "$H:4" ./a'


@pytest.mark.parametrize("options", ["-w $L -N $N", "-w n1 -n $X", "-w n1,n2 -N 2"])
def test_a_step_on_some_nodes_of_the_job(options: str) -> None:
    lines, of_lines = body("-N 3 --ntasks-per-node=2", f"srun {options} ./a")
    assert lines[-1] == f"srun {options} ./a"
    assert (True, 4, f"srun {options} ./a") in of_lines


@pytest.mark.parametrize("launcher", ["srun", "mpirun -np 4"])
def test_a_program_in_an_array_with_its_launcher(launcher: str) -> None:
    text = f'run=({launcher} ./a)\n"${{run[@]}}"'
    lines, of_lines = body("-N 2 --ntasks-per-node=2", text)
    assert "\n".join(lines[-2:]) == text
    assert (True, 5, '"${run[@]}"') in of_lines


def test_options_of_a_launcher_in_an_array() -> None:
    lines, _ = body("-N 2 --ntasks-per-node=2", 'module load mpich\nrun=(srun -n2)\n"${run[@]}" ./a')
    assert lines[-1] == 'mpirun -n 2 -ppn 1 -bind-to none -f "$PBS_NODEFILE" ./a'


def test_a_number_of_tasks_in_a_variable_of_srun() -> None:
    _, of_lines = body("-N 2 --ntasks-per-node=2", "export SLURM_NTASKS=2\nsrun ./a")
    assert (True, 4, "SLURM_NTASKS") in of_lines


def test_ranks_that_do_not_divide() -> None:
    done = convert("#SBATCH -N 10 -n 256\nsrun ./a", "pbspro")
    assert "mpirun -np 256 " in done.text


def test_arguments_behind_a_redirection() -> None:
    words = [[word.text for word in one.words] for one in commands(parse(b"a > log -x 3 2>&1 y < in z"))]
    assert words == [["a", "-x", "3", "y", "z"]]
    done = convert("#SBATCH -N 1 -n 4\nsrun > log ./a", "pbspro")
    assert "\nsrun > log ./a\n" in done.text
    assert remarks(done) == [(True, 3, "srun")]


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
        ("-N 2 --ntasks-per-node=4", "module load mpich\nmpirun ./a", "torque", 'mpirun -f "$PBS_NODEFILE" -n 8 ./a'),
    ],
)  # fmt: skip
def test_mpirun_keeps_the_ranks_that_slurm_counts(
    options: str, text: str, target: str, expected: str
) -> None:
    assert convert(f"#SBATCH {options}\n{text}", target).text.splitlines()[-1] == expected


def test_an_mpirun_that_is_not_read() -> None:
    done = convert(
        "#SBATCH -N 2 --ntasks-per-node=8\nmodule load openmpi\nmpirun -output-filename x ./a", "torque"
    )
    assert remarks(done) == [(False, 4, "mpirun -output-filename x ./a")]
    assert done.remarks[0].why == "-output-filename is unchanged: look at its ranks"


@pytest.mark.parametrize("option", ["-trace", "-check_mpi", "--use-hwthread-cpus", "-aps"])
def test_options_without_a_value_of_an_mpirun_that_stays(option: str) -> None:
    done = convert(f"#SBATCH -N 1\nmodule load impi\nmpirun {option} -n 16 -ppn 16 ./a", "pbspro")
    assert done.text.splitlines()[-1] == f"mpirun {option} -n 16 -ppn 16 ./a"
    assert "needs 16 cores, more than the 1 of the request" in str(done.remarks)
    back = convert(f"#PBS -l select=1:ncpus=16:mpiprocs=16\nmpirun {option} -n 16 ./a", "slurm")
    assert f"{option} has no counterpart: the line is unchanged" in str(back.remarks)


@pytest.mark.parametrize(("module", "guessed"), [("", True), ("module load openmpi\n", False)])
def test_the_mpi_of_mpirun_has_a_remark_if_it_is_a_guess(module: str, guessed: bool) -> None:
    done = convert(f"#SBATCH -N 1 -n 4\n{module}srun ./a", "pbspro")
    assert ("the options are for Open MPI" in str(done.remarks)) == guessed


def test_the_mpi_of_the_options_that_mpirun_gets_has_a_remark() -> None:
    done = convert("#SBATCH -N 2 -n 4\nmpirun ./a", "pbspro")
    assert [(one.line, one.what) for one in done.remarks if "Open MPI" in one.why] == [(3, "mpirun")]


def test_a_wrapper_of_mpirun() -> None:
    done = convert("#SBATCH -N 2 -n 4\nmodule load openmpi\nvalgrind --tool=massif mpirun ./a", "pbspro")
    assert 'valgrind --tool=massif mpirun --hostfile "$PBS_NODEFILE"' in done.text


def test_the_list_of_variables_is_made_when_the_job_runs() -> None:
    script = convert("#!/bin/bash\n#SBATCH -N 2\nexport A=1\nsrun ./a\n", "pbspro").text
    function = re.search(r"^mpi_exports\(\) \{\n.*?\n\}\n", script, re.MULTILINE | re.DOTALL)
    assert function is not None
    there = {
        "PATH": "/usr/bin:/bin",
        "LINES": "a\nB=c",
        "PBS_JOBID": "1.x",
        "PBS_NODENUM": "0",
        "HOME": "/root",
    }
    done = subprocess.run(
        ["bash", "-c", f"f() {{ :; }}; export -f f\n{function[0]}mpi_exports"],
        env={**there, "CUDA_VISIBLE_DEVICES": "0", "PMI_RANK": "1", "OMPI_MCA_x": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(done.stdout.split("\n")) == ["", "-x LINES", "-x PATH", "-x PBS_JOBID"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "mpiexec -n 8 --ppn 4 --cpu-bind list:0-3:4,5 --envall --env A=b ./a",
            "env A=b srun --ntasks=8 --ntasks-per-node=4 --cpus-per-task=4 --cpu-bind=mask_cpu:0xf,0x30"
            " --kill-on-bad-exit=1 ./a",
        ),
        (
            "mpiexec -n 2 -perhost 1 ./a",
            "srun --ntasks=2 --ntasks-per-node=1 --cpus-per-task=16 --kill-on-bad-exit=1 --mpi=pmi2 ./a",
        ),
        (
            "aprun -n 8 -N 4 -d 2 -cc depth ./a",
            "srun --ntasks=8 --ntasks-per-node=4 --cpus-per-task=2 --cpu-bind=cores --kill-on-bad-exit=1 --mpi=pmi2 ./a",
        ),
        (
            "aprun -n 8 -N 4 -d 2 --cc depth ./a",
            "srun --ntasks=8 --ntasks-per-node=4 --cpus-per-task=2 --cpu-bind=cores --kill-on-bad-exit=1 --mpi=pmi2 ./a",
        ),
        (
            "C=verbose,list:0:1\nmpiexec -n 2 --cpu-bind $C ./a",
            "srun --ntasks=2 --cpus-per-task=16 --cpu-bind=verbose,mask_cpu:0x1,0x2 --kill-on-bad-exit=1 ./a",
        ),
        ("mpirun -np 32 ./a", "srun --ntasks=32 --cpus-per-task=1 --kill-on-bad-exit=1 --mpi=pmix ./a"),
        ("module load impi\nmpirun -np 2 ./a", "srun --ntasks=2 --cpus-per-task=16 --kill-on-bad-exit=1 --mpi=pmi2 ./a"),
        (
            "mpirun -np 2 bash -c 'echo $OMPI_COMM_WORLD_RANK'",
            "srun --ntasks=2 --cpus-per-task=16 --kill-on-bad-exit=1 --mpi=pmix bash -c 'echo $SLURM_PROCID'",
        ),
        ("mpirun -np 1 ./a : -np 3 ./b", "mpirun -np 1 ./a : -np 3 ./b"),
    ],
)  # fmt: skip
def test_mpirun(text: str, expected: str) -> None:
    lines, of_lines = body("-l select=2:ncpus=16", text, "slurm")
    assert lines[-1] == expected
    assert any(lost for lost, _, _ in of_lines) == (text in expected)


def test_a_step_with_fewer_ranks_a_node_than_the_job() -> None:
    # srun ignores --ntasks-per-node alone, as the job has SLURM_NTASKS.
    lines, _ = body("-l select=3:ncpus=28:mpiprocs=28", "mpiexec -ppn 1 ./a", "slurm")
    assert lines[-1].startswith("srun --ntasks=3 --ntasks-per-node=1 ")


@pytest.mark.parametrize(
    ("text", "plugin", "title"),
    [
        ("mpirun -np 2 ./a", "pmix", "Open MPI"),
        ("aprun -n 2 ./a", "pmi2", "MPICH"),
        ("mpiexec.hydra -n 2 ./a", "pmi2", "MPICH"),
        ("mpirun_rsh -np 2 ./a", "pmi2", "MPICH"),
        ("mpiexec_mpt -n 2 ./a", "pmi2", "MPICH"),
        ("export MV2_X=1\nmpirun -np 2 ./a", "pmi2", ""),
        ("mpirun -np 2 -genvall ./a", "pmi2", "MPICH"),
        ("export CCL_PROCESS_LAUNCHER=pmix\nmpirun -np 2 -genvall ./a", "pmix", ""),
        ("module load cray-mpich\naprun -n 2 ./a", "", ""),
        ("module load PrgEnv-gnu\naprun -n 2 ./a", "", ""),
        ("module load mpich\naprun -n 2 ./a", "pmi2", ""),
        ("mpirun -np 2 -x A ./a", "pmix", ""),
    ],
)
def test_the_plugin_of_srun(text: str, plugin: str, title: str) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2:mpiprocs=2\n{text}", "slurm")
    option = f"--mpi={plugin} " if plugin else ""
    cores = " --cpus-per-task=1" * ("aprun" in text)  # two ranks leave cores of the whole node free
    assert done.text.splitlines()[-1] == f"srun --ntasks=2{cores} --kill-on-bad-exit=1 {option}./a"
    assert ("MpiDefault of the cluster" in str(done.remarks)) == (not plugin)
    assert (f"--mpi={plugin} is for {title}" in str(done.remarks)) == bool(title)


def test_placement_of_mpt_has_a_remark() -> None:
    done = convert("#PBS -l select=1:ncpus=2:mpiprocs=2\nmpiexec_mpt -n 2 -ppn 2 omplace ./a", "slurm")
    assert (False, 3, "omplace") in remarks(done)


@pytest.mark.parametrize(
    "command",
    [
        "ibrun ./a",
        "cafrun -n 2 ./a",
        "gasnetrun_ibv -n 2 ./a",
        "mpiexecjl -n 2 julia x",
        "jsrun -n 2 ./a",
        "mpirun.lsf ./a",
        "mympirun ./a",
        "mpprun ./a",
    ],
)
def test_a_launcher_that_stays_has_a_remark(command: str) -> None:
    for options, target in (
        ("#SBATCH -N 1 -n 2", "pbspro"),
        ("#PBS -l select=1:ncpus=2:mpiprocs=2", "slurm"),
    ):
        done = convert(f"{options}\n{command}", target)
        assert done.text.splitlines()[-1] == command
        assert (True, 3, command) in remarks(done)


@pytest.mark.parametrize(
    "place", ["-l nodes=1:ppn=2:K40c", "-l nodes=1:ppn=2:gpu", "-l nodes=1:ppn=2,partition=gpu", "-q gpu"]
)
def test_devices_that_only_a_property_of_the_node_names(place: str) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=2\n#PBS {place}\npython gan.py", "slurm")
    assert any(one.what == "GPUs" and "the script requests none" in one.why for one in done.remarks)
    plain = convert("#PBS -l nodes=1:ppn=2:ib\npython gan.py", "slurm")
    assert not any(one.what == "GPUs" for one in plain.remarks)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("ssh gpuhost.example.org 'nvidia-smi && ./a'", 0),
        ("GPUHOST=big\nSSH=/usr/bin/ssh\nmodule load cuda\n$SSH $GPUHOST singularity run --nv a.sif", 0),
        ("ssh login 'mkdir /a'\nmodule load cuda\n./a", 1),
        ("ssh localhost nvidia-smi", 1),
        ("for h in $(cat hosts); do ssh $h nvidia-smi; done", 1),
        ("ssh big nvidia-smi\nnvidia-smi", 1),
    ],
)
def test_devices_of_a_host_outside_of_the_job(code: str, count: int) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=2\n{code}\n", "slurm")
    assert len([one for one in done.remarks if "the script requests none" in one.why]) == count


HEAD = "#PBS -l nodes=1:ppn=16\n"
END = "--kill-on-bad-exit=1 ./a"


def line(text: str) -> str:
    """The last line of a script with this command, for Slurm."""
    return convert(f"{HEAD}module load cray-mpich\n{text}", "slurm").text.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "new"),
    [
        ("-n 24 -N 12", "--ntasks=24 --ntasks-per-node=12"),
        ("-n24 -N12 -d2", "--ntasks=24 --ntasks-per-node=12 --cpus-per-task=2"),
        ("--pes=24 --pes-per-node 12 --cpus-per-pe=2", "--ntasks=24 --ntasks-per-node=12 --cpus-per-task=2"),
        ("-n $N -cc cpu", '--ntasks="$N" --cpu-bind=cores'),
        ("-n 4 -cc numa_node", "--ntasks=4 --cpu-bind=ldoms"),
        ("-n 4 -cc none", "--ntasks=4 --cpu-bind=none"),
        ("-n 4 -cc 0,4,8-9", "--ntasks=4 --cpu-bind=map_cpu:0,4,8,9"),
        ("-n 2 -cc 0-3:4,5", "--ntasks=2 --cpu-bind=mask_cpu:0xf,0x30"),
        ("-n 2 -ss -q", "--ntasks=2 --cpus-per-task=1 --mem-bind=local --quiet"),
        ("-n 2 -N 1", "--ntasks=2 --ntasks-per-node=1 --cpus-per-task=1"),
        ("-n 16 -N 16", "--ntasks=16 --ntasks-per-node=16"),
        ("-n 2 -cc depth", "--ntasks=2 --cpus-per-task=1 --cpu-bind=cores"),
        ("", "--ntasks=1 --cpus-per-task=1"),
        ("-B", ""),
    ],
)
def test_options_with_a_counterpart(options: str, new: str) -> None:
    assert line(f"aprun {options} ./a") == " ".join(filter(None, ["srun", new, END]))


def test_a_variable_of_the_ranks() -> None:
    assert line("aprun -n 2 -e A=b ./a") == f"env A=b srun --ntasks=2 --cpus-per-task=1 {END}"


@pytest.mark.parametrize(
    "option",
    ["-S 6", "-j 1", "-m 2g", "-L 3", "-F exclusive", "-r 1", "-sn 1", "-t 60", "-T", "-cc x,1", "-j1"],
)
def test_an_option_without_a_counterpart_is_named(option: str) -> None:
    text = f"{HEAD}module load cray-mpich\naprun -n 2 {option} ./a -j 3"
    done = convert(text, "slurm")
    assert done.text.endswith(f"srun --ntasks=2 --cpus-per-task=1 {END} -j 3\n")
    named = [
        (one.lost, one.line, one.what.replace(" ", "")) for one in done.remarks if "counterpart" in one.why
    ]
    assert named == [(True, 4, option.replace(" ", ""))]


@pytest.mark.parametrize("option", ["-b", "-B", "--bypass-app-transfer"])
def test_an_option_that_changes_nothing_is_named(option: str) -> None:
    found = remarks(convert(f"{HEAD}aprun {option} ./a", "slurm"))
    assert (False, 3, "-B" if option == "-B" else "-b") in found


@pytest.mark.parametrize("text", ["aprun -n 1 ./a : -n 2 ./b", "aprun -n 1 --unknown ./a", "aprun -n 1"])
def test_a_line_that_stays(text: str) -> None:
    done = convert(HEAD + text, "slurm")
    assert done.text.endswith(f"{text}\n")
    assert any(one.lost and one.line == 3 and "the line is unchanged" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("export SLURM_CPU_BIND=cores\nsrun ./a", ["SLURM_CPU_BIND"]),
        ("export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\nsrun ./a", []),
        ("export SRUN_CPUS_PER_TASK=4\nsrun ./a", ["SRUN_CPUS_PER_TASK"]),
        ("export SLURM_CPU_BIND=cores\n./a", []),
    ],
)
def test_an_option_of_srun_in_a_variable_is_named(body: str, named: list[str]) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH -N 1 -n 2 -c 2\n{body}\n", "pbspro")
    assert [one.what for one in done.remarks if "is an option of srun" in one.why] == named


@pytest.mark.parametrize(
    ("module", "options", "binding", "named"),
    [
        ("openmpi", "--cpu-bind=cores", "--map-by ppr:4:node:PE=2 --bind-to core", []),
        ("mpich", "--cpu-bind=cores", "-bind-to core:2", []),
        ("impi", "--cpu-bind=cores", "-genv I_MPI_PIN off", ["--cpu-bind core"]),
        ("openmpi", "--cpu-bind=threads", "--bind-to hwthread", ["--cpu-bind hwthread"]),
        ("openmpi", "--cpu-bind=none", "--bind-to none", []),
    ],
)
def test_a_rank_is_bound_to_all_of_its_cores(
    module: str, options: str, binding: str, named: list[str]
) -> None:
    head = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 -c 2\n"
    done = convert(f"{head}module load {module}\nsrun {options} ./a\n", "pbspro")
    assert binding in done.text
    assert [one.what for one in done.remarks if "bind" in one.why] == named


@pytest.mark.parametrize(
    ("options", "nodes"), [("-n 512 -d 8", ""), ("-n 64 -d 8", "--nodes=16"), ("-n 64", "--nodes=2")]
)
def test_aprun_fills_the_cores_of_a_node(options: str, nodes: str) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l nodes=128:ppn=32\naprun {options} ./a\n", "slurm")
    assert [word for word in done.text.split("\nsrun ")[1].split() if word.startswith("--nodes")] == [
        *filter(None, [nodes])
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("srun a.out", "a.out"),
        ("cp ../bin/solve .\nsrun -n 1 solve", "solve"),
        ("srun ./a.out", ""),
        ("srun gmx_mpi mdrun", ""),
        ("srun python t.py\nmv t.py /x", ""),
    ],
)
def test_a_program_that_only_srun_finds(text: str, named: str) -> None:
    script = f"#!/bin/bash\n#SBATCH -N 1\n{text}\n"
    for done in (convert(script, "pbspro"), job_file(script)):
        found = [one.what for one in done.remarks if "in the working directory, too" in one.why]
        assert found == [named] * bool(named)


def test_memory_of_each_core_of_an_exclusive_node() -> None:
    done = convert("#SBATCH -N 1 -n 4 --exclusive --mem-per-cpu=1G\n./a", "pbspro")
    assert "--mem-per-cpu=1G" in [one.what for one in done.remarks]


@pytest.mark.parametrize(
    ("text", "target", "noted"),
    [
        ("#PBS -l nodes=1:ppn=7\nmpirun ./a < in", "slurm", True),
        ("#PBS -l nodes=1:ppn=1\nmpirun -np 1 ./a < in", "slurm", False),
        ("#SBATCH -N 1 -n 4\nsrun ./a <<E\nx\nE", "pbspro", True),
        ("#SBATCH -N 1 -n 4\nsrun ./a > out", "pbspro", False),
        ("#SBATCH -N 1 -n 4\nsrun ./a < /dev/null > out", "pbspro", False),
        ("#PBS -l nodes=1:ppn=7\ncat in | mpirun ./a | tee out", "slurm", True),
        ("#PBS -l nodes=1:ppn=7\nmpirun ./a 2>&1 | tee out", "slurm", False),
    ],
)
def test_the_standard_input_of_ranks(text: str, target: str, noted: bool) -> None:
    found = [one.line for one in convert(text, target).remarks if "standard input to all" in one.why]
    assert found == [3] * noted


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("while read f; do\nsrun ./a $f\ndone < in", True),
        ("cat in | while IFS=, read -r f g; do\nsrun -n 1 cp $f /x\ndone", True),
        ("{ while read f; do\nsrun ./a $f; done\n} <<< x > out", True),
        ("while read f; do\nsrun ./a $f < /dev/null\ndone < in", False),
        ("while read f; do\nsrun --input=none ./a $f\ndone < in", False),
        ("while read f; do\necho $f | srun ./a\ndone < in", False),
        ("while read f; do\nsrun ./a $f &\ndone < in\nwait", False),
        ("while read -u 3 f; do\nsrun ./a $f\ndone 3< in", False),
        ("while ./more; do\nsrun ./a\ndone < in", False),
        ("while read f; do\nsrun -n 4 ./a $f\ndone < in", False),  # mpirun reads it, too
    ],
)
def test_a_launcher_that_reads_the_lines_of_a_loop(text: str, noted: bool) -> None:
    done = convert(f"#SBATCH -N 1\n{text}", "pbspro")
    assert [one.line for one in done.remarks if "the input of the loop" in one.why] == [4] * noted


@pytest.mark.parametrize(
    ("ranks", "noted"), [("-n 32 --ppn 8 --depth 2", ["16", "1"]), ("-n 80 --ppn 1", [])]
)
def test_cores_of_a_node_that_are_too_many(ranks: str, noted: list[str]) -> None:
    done = convert(f"#PBS -l nodes=80\nmpiexec {ranks} ./a", "slurm", "torque")
    found = [re.findall(r"\d+", one.why) for one in done.remarks if "of the request" in one.why]
    assert found == [noted] * bool(noted)


def test_a_query_for_a_launcher_is_no_launch() -> None:
    done = convert("#PBS -l nodes=1:ppn=4\necho $(command -v mpirun)", "slurm")
    assert remarks(done) == []
    assert "$(command -v mpirun)" in done.text


@pytest.mark.parametrize("command", ["find . ! -name run.sh -exec rm {} +", "cp ../run.sh x", "echo run.sh"])
def test_a_command_with_the_file_of_the_script(command: str) -> None:
    script = Script(f"#!/bin/bash\n#SBATCH -N 1\n{command}\n./a\n".encode(), "slurm", name="run.sh")
    for done in (to_scheduler(script, "pbspro"), to_job_file(script)):
        assert ((False, 3, "run.sh") in remarks(done)) == ("echo" not in command)


def test_a_launcher_and_a_program_in_variables() -> None:
    text = "#PBS -l nodes=1:ppn=8\nW=/tmp/$USER\nRUN='aprun -n'\nEXEC=$W/a\nlet n=8\n$RUN $n $EXEC -b"
    done = convert(text, "slurm").text
    assert done.endswith('srun --ntasks="$n" --kill-on-bad-exit=1 --mpi=pmi2 $EXEC -b\n')


@pytest.mark.parametrize(
    ("program", "noted"),
    [("solver", True), ("gmx_mpi mdrun", False), ("python t.py", False), ("sleep 5", False)],
)
def test_a_program_without_a_path_for_another_scheduler(program: str, noted: bool) -> None:
    done = convert(f"#SBATCH -N 1 -n 4\nsrun {program}\nmpirun python x.py", "pbspro")
    assert any("in the working directory, too" in one.why for one in done.remarks) == noted


def test_remarks_for_all_ranks_are_at_the_first_call_that_starts_several() -> None:
    done = convert(f"{ONE}#SBATCH --ntasks-per-node=4\nsrun -n 1 hostname\nsrun ./a\nsrun ./b\n", "pbspro")
    assert [one.line for one in done.remarks if "OMPI_COMM_WORLD_RANK" in one.why] == [5]


@pytest.mark.parametrize(
    ("modules", "mpi"),
    [
        ("module load fftw3/openmpi/gcc intel2021/mpi/latest", "intel"),
        ("module load openmpi\nmodule unload openmpi\nmodule load intelmpi", "intel"),
        ("module swap openmpi mpich", "mpich"),
        ("module load intelmpi\nmodule purge\nmodule load openmpi", "openmpi"),
        ("module load gromacs/openmpi/2020", "openmpi"),
        ("module load mpi/intel-2018.1", "intel"),
        ("module load lib/1.2-impi-5.0", "intel"),
        ("module load Python/3.7.4-intel-2019b", "intel"),
        ("module load CP2K/2022.1-foss-2022a", "openmpi"),
        ("module load mpt/2.23", "mpich"),
        ("module load intel-para/2019a", "mpich"),
        ("module load gpsmpi", "mpich"),
        ("module load FFTW/3.3.4-gmvolf-5.5.4", "mpich"),
        ("module load mpich gompi/5.5.7", "openmpi"),
        ("module load mpich goolf/1.4.10", "openmpi"),
        ("module load GSL/1.16-ictce-5.5", "intel"),
        ("module load intel/2022.0.2 mpi/2021.5.1", "intel"),
        ("module load NAMD/2.12-gimkl-2017a-mpi", "intel"),
        ("module load intel_parallel_studio_xe/2020.1", "intel"),
        ("module load compilers/intel/parallel_studio_xe_2018_update3", "intel"),
        ("module load intel-parallel-studio/2020", "intel"),
        ("module load $(spack module find -m tcl mpich %gcc)", "mpich"),
        ("export PATH=/opt/openmpi-4.0.1/bin:$PATH", "openmpi"),
        ("source /opt/intel/oneapi/setvars.sh", "intel"),
        ("/opt/mpich-3.2/bin/mpirun -np 1 ./b", "mpich"),
    ],
)
def test_the_mpi_is_that_of_the_modules_that_are_loaded(modules: str, mpi: str) -> None:
    assert mpi_of(Script(f"{ONE}{modules}\nmpirun ./a\n".encode(), "slurm")) == mpi


def test_a_launcher_whose_path_is_in_a_variable_is_named() -> None:
    done = convert("#PBS -l select=1:ncpus=4\n$MPI_HOME/bin/mpirun -np 4 ./a\n", "slurm")
    assert (True, 3, "$MPI_HOME/bin/mpirun") in remarks(done)


@pytest.mark.parametrize(
    "launch",
    [
        *("aprun -n 64 -N 16", "mpirun -np 64 -ppn 16", "mpirun -n 64 --npernode 16"),
        *("mpirun -np 64 --map-by ppr:16:node", "mpirun -np 64 -map-by ppr:16:node"),
    ],
)
@pytest.mark.parametrize(("cores", "each"), [(128, 2), (64, 1), (32, 1)])
def test_a_launcher_shows_the_nodes_of_a_request_of_cores(launch: str, cores: int, each: int) -> None:
    text = f"#PBS -l ncpus={cores}\ncd $PBS_O_WORKDIR\n{launch} ./prog"
    done = convert(text, "slurm")
    head = ("#SBATCH --nodes=4\n", "#SBATCH --ntasks-per-node=16\n", f"#SBATCH --cpus-per-task={each}\n")
    assert all(line in done.text for line in head)
    line = next(one for one in done.text.split("\n") if one.startswith("srun"))
    assert line.startswith("srun --ntasks=64 --ntasks-per-node=16 ")
    assert re.findall(r"--cpus-per-task=(\d+)", line) in ([], ["1" if "aprun" in launch else str(each)])
    assert not [one for one in done.remarks if "one node is requested" in one.why]
    assert [one.lost for one in done.remarks if one.what == f"-l ncpus={cores}"] == [False]
    file = job_file(text)
    assert [one.lost for one in file.remarks if one.what == f"-l ncpus={cores}"] == [False]
    sizes = values(file.text)
    assert [sizes[key] for key in ("nodes", "ranks_per_node", "cpus_per_rank")] == [4, 16, each]


def test_a_launcher_that_may_fill_more_nodes_is_named() -> None:
    done = convert("#PBS -l ncpus=128\naprun -n $COUNT -N 16 ./prog", "slurm")
    assert 'srun --ntasks="$COUNT" --ntasks-per-node=16 --kill-on-bad-exit=1' in done.text
    assert [(one.lost, one.line) for one in done.remarks if "add --nodes" in one.why] == [(False, 3)]
    one = convert("#PBS -l ncpus=128\nmpirun -np 16 -ppn 16 ./prog", "slurm")
    assert "#SBATCH --nodes=1\n" in one.text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('CMD="/opt/openmpi/bin/mpirun -np 2 ./a"\neval "$CMD"', True),
        ('RUN="$MPI_HOME/bin/mpirun -np 2"\neval $RUN ./a', True),
        ('eval "${FOLDER}my_mpiexec" -n 2 ./a', True),
        ("make run MPIRUN='mpirun -np 2'", True),
        ("cd /opt/mpirun/data; ls", False),
        ("runMpiexec() { ./a; }\nrunMpiexec", False),
    ],
)
def test_a_launcher_in_a_text_that_another_command_runs(text: str, named: bool) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2:mpiprocs=2\nmodule load openmpi\n{text}", "slurm")
    found = [one.why for one in done.remarks if re.search("mpi(run|exec)", one.what, re.IGNORECASE)]
    assert found == ["stays in this text"] * named


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("export RUNNER=mpiexec\npython a.py", "is for programs: on several nodes it needs the hosts in"),
        ('RUNNER="$MPI/bin/mpirun" ./a', "is for programs: on several nodes it needs the hosts in"),
        ("RUNNER=mpiexec\npython a.py", ""),
        ("export RUNNER=mpirun\n$RUNNER -n 2 ./a", ""),
        ("spread --hostfile=hosts -- ./a", "starts processes on these hosts itself"),
        ("$MPI/bin/solver -machinefile hosts a.sim", "starts processes on these hosts itself"),
        ("$SOLVER -machinefile hosts a.sim", "starts processes on these hosts itself"),
        ("mpirun -n 2 --hostfile hosts ./a", ""),
        ("python -m torch.distributed.run --hostfile=x a.py", ""),
        ("cat --hosts", ""),
    ],
)
def test_a_program_that_starts_ranks_itself(text: str, why: str) -> None:
    for nodes, found in ((2, why), (1, "")):
        done = convert(f"#SBATCH -N {nodes} -n {nodes}\nmodule load openmpi\n{text}", "pbspro")
        reasons = [one.why for one in done.remarks if re.match("is for programs|starts processes", one.why)]
        assert [one[: len(found)] for one in reasons] == [found] * bool(found)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("N=$(grep N par)\nmpirun -np $N ./a", ["-n $N"]),
        ("N=$(wc -l < $PBS_NODEFILE)\nmpirun -np $N ./a", []),
        ("mpirun -np 5 ./a", []),
        ("mpirun ./a", []),
    ],
)
def test_a_number_of_ranks_that_is_known_only_when_the_job_runs(code: str, named: list[str]) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=1+2:ppn=2\n{code}", "slurm", "torque")
    assert [one.what for one in done.remarks if "is not known" in one.why] == named


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("uniq $PBS_NODEFILE > hosts\nmpiexec -np 2 -f hosts ./a", "--ntasks=2 --distribution=cyclic --cpus-per-task=4"),
        ("sort -u $PBS_NODEFILE > $F\nmpiexec -np 8 -f ${F} ./a", "--ntasks=8 --distribution=cyclic"),
        ("mpiexec -np 4 -f my_hosts ./a", "--ntasks=4 --cpus-per-task=2"),
        ("F=$PBS_NODEFILE\nmpiexec -np 4 -f $F ./a", "--ntasks=4 --nodes=1"),
        ("mpiexec -np 4 -f $PBS_NODEFILE ./a", "--ntasks=4 --nodes=1"),
    ],
)  # fmt: skip
def test_a_file_of_hosts_that_the_script_makes(code: str, options: str) -> None:
    done = convert(f"#PBS -l nodes=2:ppn=4\nmodule load mpich\n{code}", "slurm", "torque")
    assert done.text.splitlines()[-1] == f"srun {options} --kill-on-bad-exit=1 --mpi=pmi2 ./a"


@pytest.mark.parametrize("end", ["module purge", "module unload mpich", "ml reset"])
def test_modules_that_are_unloaded_after_the_launcher(end: str) -> None:
    code = f"module load mpich/4.1\nmpirun -n 8 ./a\n{end}\n"
    assert "--mpi=pmi2 ./a" in convert(f"#PBS -l select=2:ncpus=4\n{code}", "slurm").text
    assert values(job_file(f"#PBS -l select=2:ncpus=4:mpiprocs=4\n{code}").text)["mpi"] == "mpich"
    before = f"module load openmpi mpich/4.1\n{end}\nmodule load openmpi\nmpirun -n 8 ./a\n"
    assert values(job_file(f"#PBS -l select=2:ncpus=4:mpiprocs=4\n{before}").text)["mpi"] == "openmpi"


@pytest.mark.parametrize(
    ("options", "line", "shape"),
    [
        ("-N 2", "srun --ntasks-per-node=4 ./a", "-np 8 ppr:4:node"),
        ("-N 2 -c 4", "srun --ntasks-per-node=$SLURM_CPUS_PER_TASK ./a", "-np 8 ppr:4:node"),
        ("-N 2 --exclusive", "srun -N 1 ./a", ""),
        ("-N 2", "srun ./a", "-np 2 ppr:1:node"),
        ("-N 2 --ntasks-per-node=1", "srun --ntasks-per-node=4 ./a", "-np 2 ppr:1:node"),
        ("-N 2 -n 2", "srun --ntasks-per-node=4 ./a", "-np 2 ppr:1:node"),
        ("-t 9", 'srun -n "$SLURM_JOB_NUM_NODES" ./a', "ppr:1:node"),
    ],
)
def test_ranks_of_a_step_in_a_job_that_counts_none(options: str, line: str, shape: str) -> None:
    """Without a number of tasks a job has no SLURM_NTASKS, which holds for its steps. Seen with Slurm 22.05."""
    done = convert(f"#SBATCH {options}\n{line}", "pbspro")
    assert " ".join(re.findall(r"-np \d+|ppr:\d+:node", done.text)) == shape
    assert any("srun ignores it" in one.why for one in done.remarks) == ("-n" in options)
