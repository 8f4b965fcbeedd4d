"""Job files of scripts that read the number of a rank outside of the code of the rank: the script expands it."""

from __future__ import annotations

import re

import pytest
from convert.conversions import job_file, values

TWO = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=2 -t 10\n"


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("srun bash w_${X}_${SLURM_PROCID}.sh", ["bash", "w_${X}_0.sh"]),
        ("srun python t.py --node $SLURM_NODEID --cfg me_$SLURM_PROCID", ["t.py", "--node", "0", "--cfg", "me_0"]),
        ("A='-v'\nCMD=\"./a --rank $SLURM_PROCID $A\"\nsrun $CMD", ["./a", "--rank", "0", "-v"]),
        ("NODE=$SLURM_NODEID srun ./a", ["env", "NODE=0", "./a"]),
        ("mpirun ./a $SLURM_LOCALID", ["./a", "0"]),
        ("srun ./a *.txt $SLURM_PROCID", ["bash", "-c", "exec ./a *.txt 0"]),
        ('srun bash -c "./a $SLURM_PROCID \\$SLURM_NODEID"', ["bash", "-c", 'eval "./a 0 \\$SLURM_NODEID"']),
        ("srun torchrun --nproc-per-node 4 --node_rank $SLURM_NODEID t.py $SLURM_NODEID", ["t.py", "0"]),
        ('srun bash -c "torchrun --nproc-per-node 4 t.py --x $SLURM_NODEID"', ["t.py", "--x", "0"]),
    ],
)  # fmt: skip
def test_the_number_of_a_rank_that_the_script_expands_is_0(body: str, command: list[str]) -> None:
    done = job_file(f"{TWO}{body}\n")
    assert values(done.text)["command"] == command
    assert [one.what for one in done.remarks if "expands it itself; for the number" in one.why]


@pytest.mark.parametrize(
    "body",
    [
        "srun bash -c './a $SLURM_PROCID'",
        "srun bash -c 'torchrun --node_rank $SLURM_NODEID --nproc-per-node 2 t.py'",
        'srun bash -c "torchrun --node_rank \\$SLURM_NODEID --nproc-per-node 2 t.py \\$SLURM_NODEID"',
        "mpirun bash -c 'torchrun --nproc-per-node 2 t.py $OMPI_COMM_WORLD_RANK'",
        "export SLURM_NODEID=1\nsrun ./a $SLURM_NODEID",
    ],
)
def test_the_number_of_a_rank_stays_where_ranks_expand_it(body: str) -> None:
    assert not any("expands it itself" in one.why for one in job_file(f"{TWO}{body}\n").remarks)


def test_numbers_of_the_only_rank_need_no_remark() -> None:
    done = job_file("#SBATCH -N 1 -n 1 -t 10\nsrun ./a $SLURM_PROCID\n")
    assert values(done.text)["command"] == ["./a", "0"]
    assert not any("expands it itself" in one.why for one in done.remarks)


def test_a_variable_of_an_mpi_is_unset_in_the_script() -> None:
    done = job_file("#PBS -l select=2:ncpus=4:mpiprocs=4\nmpirun -np 8 ./a $PMI_RANK\n")
    assert [one.what for one in done.remarks if "is unset in the script" in one.why] == ["$PMI_RANK"]
    assert not any("not set anywhere" in one.why for one in done.remarks)


def test_jobgen_numbers_the_nodes_of_a_launcher_itself() -> None:
    done = job_file(f"{TWO}srun torchrun --nproc-per-node 4 --node_rank $SLURM_NODEID t.py\n")
    assert [one.what for one in done.remarks if "numbers nodes and ranks" in one.why] == ["$SLURM_NODEID"]


def test_a_launcher_in_a_command_substitution_is_not_the_program() -> None:
    lines = "N=$(srun -n1 bash -c 'echo $A' | wc -w)\npython t.py --gpus=$N\n"
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{lines}").text)
    assert (found["launcher"], found["command"][-1].split()[-1]) == ("none", "--gpus=$N")


@pytest.mark.parametrize(
    ("bind", "named"),
    [("closest", False), ("verbose,single:1", False), ("none", True), ("verbose,none", True)],
)
def test_srun_binds_the_ranks_of_jobgen_to_their_gpus_too(bind: str, named: bool) -> None:
    for options, words in ((f" --gpu-bind={bind}", ""), ("", f" --gpu-bind={bind}")):
        done = job_file(f"#!/bin/bash\n#SBATCH -t 10 -n 4 --gpus-per-task=1{options}\nsrun{words} ./a\n")
        assert any("its own GPUs only" in one.why for one in done.remarks) is named
        all_gpus = "mpirun shows each rank all GPUs of the node (in a job for PBS Pro)"
        assert any(one.why == all_gpus for one in done.remarks) is not named


@pytest.mark.parametrize(
    ("line", "kind"),
    [("export ROCFFT_RTC_CACHE_PATH=/a", "rocm"), ("export MIOPEN_LOG_LEVEL=3", None), ("A=1", None)],
)
def test_variables_of_libraries_of_rocm_name_the_devices(line: str, kind: str | None) -> None:
    """Scripts for NVIDIA GPUs set those of MIOpen, too, as copies of others."""
    found = values(job_file(f"#SBATCH -t 10 -N 1 --gres=gpu:2\n{line}\nsrun ./a\n").text)
    assert found.get("accelerator") == kind


@pytest.mark.parametrize(
    ("number", "each"),
    [
        ("$(expr $SLURM_NNODES \\* $PER)", 6),
        ("`expr $SLURM_NNODES '*' $PER`", 6),
        ('$(expr "$PER" - 2 + 4)', 4),
        ("$(expr $PER / 2 \\* 4)", 6),
        ("$((SLURM_NNODES * PER / 3))", 2),
        ("$(expr $PER + 2 \\* 3)", 2),  # of two ranks: unknown
        ("$(expr $PER / 0)", 2),
        ("$(expr length $PER)", 2),
        ("$(expr $(nproc) \\* 2)", 2),
    ],
)
def test_the_ranks_are_those_that_the_script_reckons(number: str, each: int) -> None:
    found = values(job_file(f"{TWO}PER=6\nN={number}\nmpirun -np $N ./a\n").text)
    assert (found["nodes"], found["ranks_per_node"]) == (2, each)


@pytest.mark.parametrize(
    ("nodes", "line", "each", "why"),
    [
        (1, "mpirun -np 24 -ppn 2 ./a", 24, ""),
        (1, "mpirun -np 8 -ppn 4 ./a", 8, ""),
        (2, "mpiexec.hydra -perhost 2 -n 24 ./a", 12, "jobgen starts 12 on each of 2 nodes"),
        (1, "mpirun -np 24 -npernode 2 ./a", 24, "for 24 ranks mpirun refuses so few: jobgen starts 24 on the node"),
        (1, "mpirun -np 24 --map-by ppr:2:node ./a", 24, "mpirun refuses so few"),
        (2, "mpirun -np 24 -N 2 ./a", 12, "mpirun refuses so few: jobgen starts 12 on each of 2 nodes"),
        (2, "aprun -n 24 -N 2 ./a", 12, "aprun refuses so few"),
        (1, "aprun --pes 4 --pes-per-node 4 --cpu-binding depth --cpus-per-pe 2 ./a", 4, "places the ranks itself"),
        (2, "mpirun -N 2 ./a", 2, ""),
        (2, "mpirun --perhost 4 ./a", 4, ""),
        (1, "mpirun -np 12 -rr ./a", 12, "jobgen places the ranks itself"),
        (1, "mpirun -np 12 -loadbalance ./a", 12, "jobgen places the ranks itself"),
        (1, "mpirun -np half ./a", 24, "half is no number of ranks: jobgen starts 24"),
        (1, "mpirun -np 12 -report-bindings ./a", 12, "its mpirun would report none"),
        (1, "mpirun --map-by ppr:2:socket ./a", 24, "known only when the job runs: jobgen starts 24"),
        (1, "mpirun -npersocket 2 ./a", 24, "known only when the job runs: jobgen starts 24"),
        (2, "mpirun -np 24 -ppn $X ./a", 12, "known only when the job runs: jobgen starts 12"),
        (1, "mpirun -np 24 -ppn $X ./a", 24, ""),
        (2, "sort -u $PBS_NODEFILE > h\nmpirun -f h ./a", 24, "jobgen starts 24 on a node"),
        (2, "N=$PBS_NODEFILE\nmpirun -f $N ./a", 24, ""),
    ],
)  # fmt: skip
def test_all_ranks_of_a_launcher_and_those_of_each_node(nodes: int, line: str, each: int, why: str) -> None:
    done = job_file(f"#PBS -l nodes={nodes}:ppn=24\n{line}\n")
    assert values(done.text)["ranks_per_node"] == each
    about = re.compile(
        "so few|places the|known only|is no number|report none|jobgen starts .*(nodes?|itself)$"
    )
    found = [one.why for one in done.remarks if about.search(one.why)]
    assert [why in one for one in found[:1]] == [True] * bool(why), found


def test_a_command_that_starts_programs_for_each_task() -> None:
    done = job_file("#PBS -l nodes=2:ppn=4\npbsdsh ./a\n")
    assert [one.line for one in done.remarks if "finds one on a node, and not 4" in one.why] == [2]


@pytest.mark.parametrize(
    ("options", "lines", "cores", "binds"),
    [
        (
            "-N 1 -n 4",
            "srun --cpu-bind=map_cpu:0,16,32,48 ./a",
            "names core 48: steps of the job have 4",
            True,
        ),
        ("-N 1 -n 2 -c 8", "srun --cpu-bind=v,mask_cpu:0xff,0xff00 ./a", "", True),
        ("-N 1 -n 2 -c 7", "srun --cpu_bind=mask_cpu:0xff,0xff00 ./a", "names core 15", True),
        ("-N 1 -n 2", "export SLURM_CPU_BIND=map_cpu:0,8\nsrun ./a", "names core 8", False),
        ("-N 1 -n 2", "srun --cpu-bind=cores ./a", "", True),
        ("-N 1 -n 2", "srun --cpu-bind=none ./a", "", False),
        ("-N 1 -n 2", "srun --cpu-bind=verbose ./a", "", False),
        ("-N 1 -n 2", "export OMP_PLACES=cores\nsrun --cpu-bind=cores ./a", "", False),
        ("-N 1 -n 2", "mpirun --cpu-bind=map_cpu:0,8 ./a", "", False),
    ],
)
def test_the_binding_of_a_step(options: str, lines: str, cores: str, binds: bool) -> None:
    whys = [one.why for one in job_file(f"#!/bin/bash\n#SBATCH {options} -t 10\n{lines}\n").remarks]
    named = [why for why in whys if why.startswith("names core")]
    assert [why.startswith(cores) for why in named] == [True] * bool(cores)
    assert any(why.startswith("mpirun binds no ranks") for why in whys) is binds
