"""From scheduler to scheduler: sizes that are computed, launches, names of files, and what is said of the rest."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobgen.convert import request_reader
from jobgen.convert.to_scheduler import conversion
from jobgen.script.directives import guess
from jobgen.script.script import Script


def convert(text: str, target: str, source: str | None = None) -> conversion.Converted:
    return conversion.convert(Script(text.encode(), source or guess(text.split("\n"))), target)


def body(options: str, text: str, target: str = "pbspro") -> tuple[list[str], list[tuple[bool, int, str]]]:
    """The lines of a converted script behind its start, and its remarks."""
    prefix = "#PBS" if options.startswith("-l") else "#SBATCH"
    done = convert(f"#!/bin/bash\n{prefix} {options}\ncd /work\n{text}\n", target)
    lines = done.text.partition("cd /work\n")[2].splitlines()
    return lines, [(one.lost, one.line, one.what) for one in done.remarks]


# ---- sizes ---------------------------------------------------------------------------------------------


@st.composite
def sized(draw: st.DrawFn) -> tuple[str, tuple[int, int, int, int]]:
    """A Slurm script, and the ranks, cores, MiB and GPUs that it asks for in all."""
    nodes, each, cores = (
        draw(st.sampled_from([None, 1, 2, 3])),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
    )
    count, memory = draw(st.integers(1, 3)), draw(st.integers(1, 4000))
    ranks = (nodes or 1) * each
    gpus_by = draw(
        st.sampled_from(["", "--gpus-per-task", "--gpus", *["--gpus-per-node"] * (nodes is not None)])
    )
    gpus = {"": 0, "--gpus-per-node": count * (nodes or 0)}.get(gpus_by, count * ranks)
    total = {"--gpus": gpus}.get(gpus_by, count)
    memory_by = ["", "--mem-per-cpu", *["--mem"] * (nodes is not None), *["--mem-per-gpu"] * bool(gpus)]
    by = draw(st.sampled_from(memory_by))
    cores_by = draw(
        st.sampled_from(["--cpus-per-task", *["--cpus-per-gpu"] * (gpus_by == "--gpus-per-task")])
    )
    all_cores = ranks * cores * (count if cores_by == "--cpus-per-gpu" else 1)
    times = {"": 0, "--mem-per-cpu": all_cores, "--mem": nodes or 1, "--mem-per-gpu": gpus}[by]
    size = draw(st.sampled_from(["-n", "--ntasks-per-node"] if nodes else ["-n"]))
    lines = [f"{size} {ranks if size == '-n' else each}", f"{cores_by}={cores}"]
    lines += [f"--nodes={nodes}"] * bool(nodes) + [f"{gpus_by}={total}"] * bool(gpus_by)
    lines += [f"{by}={memory}M"] * bool(by)
    head = "".join(f"#SBATCH {line}\n" for line in draw(st.permutations(lines)))
    return f"#!/bin/bash\n{head}hostname\n", (ranks, all_cores, times * memory, gpus)


def totals(text: str, scheduler: str) -> tuple[int, int, int, int]:
    asked = request_reader.read(Script(text.encode(), scheduler), whole=True).request
    units = asked.nodes or asked.ranks or 1
    each = asked.ranks_per_node or 1
    cores = units * each * (asked.cpus_per_rank or 1)
    return units * each, cores, units * (asked.mem or 0), units * (asked.gpus_per_node or 0)


@given(sized())
@settings(deadline=None)
def test_all_that_a_job_asks_for_stays_the_same(case: tuple[str, tuple[int, int, int, int]]) -> None:
    text, expected = case
    there = convert(text, "pbspro")
    back = convert(there.text, "slurm", "pbspro")
    assert [one for one in (*there.remarks, *back.remarks) if one.lost] == []
    assert totals(there.text, "pbspro") == totals(back.text, "slurm") == totals(text, "slurm") == expected


@pytest.mark.parametrize(
    ("options", "expected", "said"),
    [
        ("-n 4 --gres=gpu:1 --mem=16G", "1:ncpus=4:mpiprocs=4:ngpus=1:mem=16gb", "--mem=16G of each node"),
        ("-n 1 --gres=gpu:2 --mem=16G", "1:ncpus=1:mpiprocs=1:ngpus=2:mem=16gb", ""),
        ("-n 4 -c 6 --mem-per-cpu=8G", "4:ncpus=6:mem=48gb", ""),
        ("-N 1 -n 4 -c 6 --mem-per-cpu=8G", "1:ncpus=24:mpiprocs=4:mem=192gb", ""),
        ("-N 2 -n 8 --ntasks-per-node=8", "2:ncpus=4:mpiprocs=4", "--ntasks=8"),
        ("-N 2 -n 8 --ntasks-per-node=4", "2:ncpus=4:mpiprocs=4", ""),
        ("--ntasks-per-node=8 --gres=gpu:1", "1:ncpus=8:mpiprocs=8:ngpus=1", ""),
        ("--mem=9G\n#SBATCH -c 2 --mem-per-cpu=1G", "1:ncpus=2:mem=2gb", ""),
        ("-N 4 -n 2", "2:ncpus=1:mpiprocs=1", "--nodes=4"),
        ("--gpus=8", "1:ngpus=8", "--gpus=8"),
        ("--gpus=4 --ntasks-per-gpu=1 -c 2", "4:ncpus=2:ngpus=1", ""),
        ("-N 2 --gpus-per-node=4 --ntasks-per-gpu=1 -c 2", "2:ncpus=8:mpiprocs=4:ngpus=4", ""),
        ("-N 2 --gpus=4 --ntasks-per-gpu=2 -c 2", "2:ncpus=8:mpiprocs=4:ngpus=2", ""),
        ("-N 2 --exclusive", "2", "--exclusive"),
    ],
)
def test_what_slurm_decides_itself(options: str, expected: str, said: str) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH {options}\nhostname\n", "pbspro")
    assert f"#PBS -l select={expected}\n" in done.text
    assert [one.what for one in done.remarks] == [said] * bool(said)


@pytest.mark.parametrize(
    ("request_", "expected", "said"),
    [
        ("select=2:system=polaris", ["--gpus-per-node=4", "--exclusive"], "ALCF Polaris gives whole nodes"),
        ("select=2:system=unknown", ["--nodes=2"], "names no cores"),
        (
            "ncpus=8,mem=4gb,ngpus=1",
            ["--nodes=1", "--cpus-per-task=8", "--mem=4G", "--gpus-per-node=1"],
            "one node",
        ),
        ("select=2:ncpus=2:mpiprocs=4", ["--ntasks-per-node=4", "--cpus-per-task=1"], "1 for each of 4"),
        ("select=2:ncpus=9:mpiprocs=4", ["--cpus-per-task=2"], "2 for each of 4"),
        ("select=2:ncpus=4:mem=lots", ["--nodes=2"], "mem=lots cannot be read"),
        ("select=2:ncpus=4:ngpus=X", ["--nodes=2"], "ngpus=X cannot be read"),
        ("select=2:ncpus=8:mpiprocs=2:ompthreads=4", ["export OMP_NUM_THREADS=4"], ""),
    ],
)
def test_nodes_of_a_site(request_: str, expected: list[str], said: str) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l {request_}\n#PBS -l place=scatter\nhostname\n", "slurm")
    assert all(one in done.text for one in expected), done.text
    assert said in str(done.remarks)


# ---- launches ------------------------------------------------------------------------------------------

TWO = 'mpirun -np {} --hostfile "$PBS_NODEFILE" --map-by ppr:{}:node --bind-to none'


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ('ARGS="--wait=60 -K"\nsrun $ARGS ./a', TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ("ARGS=-K\nsrun $ARGS ./a", TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ('RUN="python x.py"\nsrun $RUN', TWO.format(4, 2) + " $(mpi_exports) $RUN", []),
        ('srun --comment "a b" --cpu_bind=v ./a', TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ("srun --cpu-bind=none --unbuffered ./a", TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        ("X=1\nsrun -n4 --ntasks-per-node=$X ./a", TWO.format(4, 2) + " $(mpi_exports) ./a", []),
        (
            "timeout 9 srun -n2 ./a",
            "timeout 9 " + TWO.format(2, 1) + " $(mpi_exports) ./a",
            ["srun uses a free node"],
        ),
        ("srun -n1 -w $H ./a", 'mpirun -np 1 --host "$H" --bind-to none $(mpi_exports) ./a', []),
        ("srun -l --cpu-bind=cores ./a", TWO.format(4, 2)[:-4] + "core --tag-output $(mpi_exports) ./a", []),
        ("srun --gpus-per-task=1 ./a", TWO.format(4, 2) + " $(mpi_exports) ./a", ["sees all devices"]),
        (
            "srun -D /x --export=ALL,A=b ./a",
            f"env A=b {TWO.format(4, 2)} -wdir /x -x A $(mpi_exports) ./a",
            [],
        ),
        ("A=1 B=2 srun ./a", f"A=1 B=2 {TWO.format(4, 2)} $(mpi_exports) -x A -x B ./a", []),
        ("timeout 9 env A=1 srun ./a", f"timeout 9 env A=1 {TWO.format(4, 2)} $(mpi_exports) -x A ./a", []),
        ("mpirun -np 4 ./a", 'mpirun --hostfile "$PBS_NODEFILE" $(mpi_exports) -np 4 ./a', []),
        (
            "module load intel-mpi/2021\nsrun ./a",
            'mpirun -n 4 -ppn 2 -genv I_MPI_PIN off -f "$PBS_NODEFILE" ./a',
            [],
        ),
        ("module load mpich\nsrun ./a", 'mpirun -n 4 -ppn 2 -bind-to none -f "$PBS_NODEFILE" ./a', []),
    ],
)
def test_srun(text: str, expected: str, said: list[str]) -> None:
    lines, remarks = body("--nodes=2 --ntasks-per-node=2", text)
    assert lines[-1] == expected
    assert not any(lost for lost, _, _ in remarks)
    done = convert(f"#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=2\n{text}\n", "pbspro")
    assert all(one in str(done.remarks) for one in said)


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
            "C=verbose,list:0:1\nmpiexec -n 2 --cpu-bind $C ./a",
            "srun --ntasks=2 --cpus-per-task=16 --cpu-bind=mask_cpu:0x1,0x2 --kill-on-bad-exit=1 ./a",
        ),
        (
            "mpirun -np 32 ./a",
            "srun --ntasks=32 --cpus-per-task=1 --kill-on-bad-exit=1 --mpi=pmix ./a",
        ),
        (
            "module load impi\nmpirun -np 2 ./a",
            "srun --ntasks=2 --cpus-per-task=16 --kill-on-bad-exit=1 --mpi=pmi2 ./a",
        ),
        (
            "mpirun -np 2 bash -c 'echo $OMPI_COMM_WORLD_RANK'",
            "srun --ntasks=2 --cpus-per-task=16 --kill-on-bad-exit=1 --mpi=pmix bash -c 'echo $SLURM_PROCID'",
        ),
        ("mpirun -np 1 ./a : -np 3 ./b", "mpirun -np 1 ./a : -np 3 ./b"),
    ],
)
def test_mpirun(text: str, expected: str) -> None:
    lines, remarks = body("-l select=2:ncpus=16", text, "slurm")
    assert lines[-1] == expected
    assert any(lost for lost, _, _ in remarks) == (text in expected)


def test_a_step_with_fewer_ranks_a_node_than_the_job() -> None:
    # srun ignores --ntasks-per-node alone, as the job has SLURM_NTASKS.
    lines, _ = body("-l select=3:ncpus=28:mpiprocs=28", "mpiexec -ppn 1 ./a", "slurm")
    assert lines[-1].startswith("srun --ntasks=3 --ntasks-per-node=1 ")


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


# ---- the rest of the script ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo $(( $SLURM_JOB_ID % 16384 ))", "echo $(( ${PBS_JOBID%%[!0-9]*} % 16384 ))"),
        (
            "expr 1 + $(echo -n $SLURM_JOBID | tail -c 4)",
            "expr 1 + $(echo -n ${PBS_JOBID%%[!0-9]*} | tail -c 4)",
        ),
        ('mkdir "run-${SLURM_JOB_ID}"', 'mkdir "run-${PBS_JOBID%%[!0-9]*}"'),
        ("scontrol show job $SLURM_JOB_ID", 'qstat -f "$PBS_JOBID"'),
        ("tee $A.$SLURM_JOB_ID/x", "tee $A.${PBS_JOBID%%[!0-9]*}/x"),
        ("echo ${SLURM_JOB_ID:-0}", "echo ${PBS_JOBID:-0}"),
        (
            "x=$SLURM_JOB_NODELIST; scontrol show hostname $x",
            "x=$SLURM_JOB_NODELIST; awk '!seen[$1]++' \"$PBS_NODEFILE\"",
        ),
        ("echo $SLURM_PROCID $((SLURM_LOCALID + 1))", "echo 0 $((0 + 1))"),
        ("echo 'SLURM_JOB_ID and srun'", "echo 'SLURM_JOB_ID and srun'"),
    ],
)
def test_a_line_for_pbs(text: str, expected: str) -> None:
    lines, remarks = body("--nodes=2", text)
    assert lines[-1] == expected
    assert not any(lost for lost, _, _ in remarks)


def test_the_tasks_of_an_array_keep_ids_of_their_own() -> None:
    done = convert(
        "#!/bin/bash\n#SBATCH --array=1-3\necho $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID\n", "pbspro"
    ).text
    assert done.endswith("echo $PBS_JOBID $SLURM_ARRAY_JOB_ID\n")
    assert "SLURM_ARRAY_JOB_ID=${PBS_JOBID%%[!0-9]*}\n" in done


@pytest.mark.parametrize(
    ("text", "target", "expected", "said"),
    [
        (
            "#SBATCH -o %x-%j.log",
            "pbspro",
            'exec > "$PBS_JOBNAME-${PBS_JOBID%%[!0-9]*}.log" 2>&1',
            "--output=%x-%j.log",
        ),
        (
            "#SBATCH -J n -o %x_%u_%j.log",
            "pbspro",
            'exec > "n_${PBS_O_LOGNAME}_${PBS_JOBID%%[!0-9]*}.log" 2>&1',
            "--output=%x_%u_%j.log",
        ),
        ("#SBATCH -o %x.log", "torque", 'exec > "$PBS_JOBNAME.log" 2>&1', "--output=%x.log"),
        ("#SBATCH -J n -o %x.log", "pbspro", "#PBS -o n.log", ""),
        ("#SBATCH -a 0-3 -o l/%A_%a.out", "torque", "#PBS -o l/${PBS_JOBID}_$PBS_ARRAYID.out", ""),
        ("#SBATCH -J n -o %j-%x", "torque", "#PBS -o $PBS_JOBID-n", ""),
        (
            "#SBATCH -o '$A`b`%j'",
            "pbspro",
            'exec > "\\$A\\`b\\`${PBS_JOBID%%[!0-9]*}" 2>&1',
            "--output=$A`b`%j",
        ),
        ("#SBATCH -e e.%j -o o", "pbspro", 'exec 2> "e.${PBS_JOBID%%[!0-9]*}"', "--error=e.%j"),
        (
            "#SBATCH -o %N-%u.%J",
            "pbspro",
            'exec > "$(hostname -s)-$PBS_O_LOGNAME.${PBS_JOBID%%[!0-9]*}" 2>&1',
            "--output=%N-%u.%J",
        ),
        ("#SBATCH -a 5 -o a-%a", "pbspro", "export PBS_ARRAY_INDEX=5", "the array 5"),
        ("#SBATCH -a 5 -o a-%a", "pbspro", "#PBS -o a-5", "the array 5"),
        ("#SBATCH -o a-%a", "pbspro", "#PBS -o a-4294967294", ""),
        ("#PBS -o out/\n#PBS -l select=1", "slurm", "#SBATCH --output=out/%j.OU", ""),
        ("#PBS -j eo\n#PBS -o a.o\n#PBS -e b.e\n#PBS -l select=1", "slurm", "#SBATCH --output=b.e", ""),
        ("#PBS -j eo\n#PBS -o a.o\n#PBS -l select=1", "slurm", "#SBATCH --output=%x.e%j", ""),
        ("#PBS -o logs\n#PBS -l select=1", "slurm", "#SBATCH --output=logs", "-o logs"),
        ("#PBS -o a^array_index^\n#PBS -l select=1", "slurm", "#SBATCH --output=a^array_index^", ""),
        ("#SBATCH -N1\n#PBS -q old", "pbspro", "##PBS -q old", "#PBS -q old"),
        ("#PBS -l select=1\n#PBS -q new\n#SBATCH -p old", "slurm", "##SBATCH -p old", "#SBATCH -p old"),
        ("#SBATCH -N1\n# SBATCH -p old", "pbspro", "# SBATCH -p old", "# SBATCH -p old"),
        ("#SBATCH -J 'a b'", "pbspro", "#PBS -N a_b", "a b"),
    ],
)
def test_names_and_other_directives(text: str, target: str, expected: str, said: str) -> None:
    done = convert(f"#!/bin/bash\n{text}\nhostname\n", target)
    assert expected in done.text.splitlines()
    assert [one.what for one in done.remarks] == [said] * bool(said)
    assert not any(one.lost for one in done.remarks)


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("#PBS -l select=2:ncpus=8:mpiprocs=2\nhostname", "slurm", "export OMP_NUM_THREADS=8"),
        ("#PBS -l ncpus=8\nhostname", "slurm", "export OMP_NUM_THREADS=8"),
        ("#PBS -l select=1:ncpus=8\nexport OMP_NUM_THREADS=2", "slurm", "export OMP_NUM_THREADS=2"),
        (
            "#PBS -l select=1:ncpus=8\n#PBS -v OMP_NUM_THREADS=2\nhostname",
            "slurm",
            "export OMP_NUM_THREADS=2",
        ),
        ("#PBS -l select=1\nhostname", "slurm", None),
        ("#SBATCH -N 1 -n 4 -c 2\nsrun ./a", "pbspro", "export OMP_NUM_THREADS=2"),
        ("#SBATCH -N 1 -n 4 -c 2\nsrun ./a", "torque", None),
        ("#SBATCH -N 1 -n 1 -c 2\n./a", "pbspro", None),
        ("#SBATCH -N 1 -n 8\npython a.py", "pbspro", None),
        ("#SBATCH -N 1 -c 8\nsrun torchrun a.py", "pbspro", "unset OMP_NUM_THREADS"),
    ],
)
def test_the_threads_that_pbs_pro_sets(text: str, target: str, expected: str | None) -> None:
    lines = convert(f"#!/bin/bash\n{text}\n", target).text.splitlines()
    assert [line.partition("  #")[0] for line in lines if "OMP_NUM" in line] == [expected] * bool(expected)


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("cd $PBS_O_WORKDIR", False),
        ("set -e\nmodule load x\ncd $PBS_O_WORKDIR", False),
        ("source env.sh\ncd $PBS_O_WORKDIR", True),
        ("echo $PWD\ncd $PBS_O_WORKDIR", True),
        ("if true; then cd x; fi", True),
    ],
)
def test_a_script_that_leaves_its_first_directory(text: str, moves: bool) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l select=1\n{text}\n", "slurm").text
    assert ('cd "$HOME" || exit 1' in done) == moves


@pytest.mark.parametrize(
    ("first", "text", "said"),
    [
        ("#!/usr/bin/env python3", 'import os\nos.environ["SLURM_JOB_ID"]', ["cd", "SLURM_JOB_ID"]),
        ("#!/bin/csh", "setenv X $SLURM_JOB_ID\nsrun ./a", ["cd", "SLURM_JOB_ID", "srun"]),
    ],
)
def test_a_script_that_is_not_for_bash_gets_no_lines(first: str, text: str, said: list[str]) -> None:
    done = convert(f"{first}\n#SBATCH -N 1\n{text}\n", "pbspro")
    assert done.text.endswith(f"\n{text}\n")
    assert "PBS_O_WORKDIR" not in done.text
    assert {one.what.split()[0] for one in done.remarks if one.lost} == set(said)
