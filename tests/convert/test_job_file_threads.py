"""Job files: the threads of programs that a launcher starts before the program of the job."""

from __future__ import annotations

from pathlib import Path

import pytest
from convert.conversions import job_file, remarks, values

SLURM = "#!/bin/bash\n#SBATCH -N 1 --ntasks-per-node=4 -t 10\n"
PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=4:mpiprocs=4\n"
BEFORE = "mpirun -np 2 ./a\nsource env.sh\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{SLURM}{BEFORE}srun ./c", [3]),
        (f"{SLURM}mpirun -np 2 ./b\n{BEFORE}srun ./c", [3]),
        (f"{SLURM}export OMP_NUM_THREADS=3\n{BEFORE}srun ./c", []),
        (f"{SLURM}srun hostname\nsource env.sh\nsrun ./c", []),
        (f"{SLURM}srun ./c", []),
        (f"{PBS}{BEFORE}mpirun ./c", []),
    ],
)
def test_a_launcher_in_setup_may_get_threads_of_the_scheduler(text: str, lines: list[int]) -> None:
    done = job_file(f"{text}\n")
    found = [one.line for one in done.remarks if "in a job for PBS Pro" in one.why]
    assert found == lines, remarks(done)


PBS_OF_8 = "#!/bin/bash\n#PBS -l select=1:ncpus=8:mpiprocs=4\ncd $PBS_O_WORKDIR\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{PBS_OF_8}./prep\nexport OMP_NUM_THREADS=2\nmpirun -np 4 ./a", [(4, "8", "2")]),
        (f"{PBS_OF_8}mpirun -np 4 ./prep\nmpirun -np 4 ./a", [(4, "8", "2")]),
        (f"{PBS_OF_8}python prep.py\nexport OMP_NUM_THREADS=1\nmpirun -np 4 ./a", [(4, "8", "1")]),
        (f"{PBS_OF_8}export OMP_NUM_THREADS=8\n./b\nexport OMP_NUM_THREADS=2\nmpirun -np 4 ./a\n./c", []),
        (f"{PBS_OF_8}mpirun -np 4 ./a\nexport OMP_NUM_THREADS=8\n./post", []),
        (f"{PBS_OF_8}cmake ..\nOMP_NUM_THREADS=2 mpirun -np 4 ./a", []),
        (f"{SLURM}./prep x\nexport OMP_NUM_THREADS=2\nsrun ./a\nunset OMP_NUM_THREADS", [(3, "unset", "2")]),
        (f"{SLURM}srun ./a\nunset OMP_NUM_THREADS\n./post", [(5, "unset", "1")]),
        (f"{SLURM}(export OMP_NUM_THREADS=4; ./prep)\nsrun ./a", []),
    ],
)
def test_each_command_finds_the_threads_of_the_script(text: str, found: list[tuple[int, str, str]]) -> None:
    done = job_file(f"{text}\n")
    here = [(one.line, one.why) for one in done.remarks if one.why.startswith("finds OMP_NUM_THREADS")]
    why = "finds OMP_NUM_THREADS {} in the script, and {} in the job"
    assert here == [(line, why.format(old, new)) for line, old, new in found]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("OMP_NUM_THREADS=8 ./prep\nsrun ./a", ""),
        ("for i in 1 2; do\nOMP_NUM_THREADS=$i ./a\ndone", ""),
        ("export OMP_NUM_THREADS=3\nfor i in 1 2; do\nexport OMP_NUM_THREADS=$i\n./a\ndone", "3"),
        ('if [ -n "$X" ]; then\nexport OMP_NUM_THREADS=4\nfi\nsrun ./a', "jobgen sets it"),
        ("t() { export OMP_NUM_THREADS=$1; }\nt 3\nsrun ./a", "jobgen sets it"),
        ("t() { export OMP_NUM_THREADS=3; }\nt\nsrun ./a", "3"),
        ("(export OMP_NUM_THREADS=4; ./prep)\nsrun ./a", ""),
        ("export OMP_NUM_THREADS\nread OMP_NUM_THREADS < n\nsrun ./a", "sets OMP_NUM_THREADS: "),
        ('n=x; eval "export OMP_NUM_THREADS=$n"\nsrun ./a', "sets OMP_NUM_THREADS: "),
        (": ${OMP_NUM_THREADS:=4}\nexport OMP_NUM_THREADS\nsrun ./a", "sets OMP_NUM_THREADS: "),
        ("for v in OMP_NUM_THREADS X; do export $v=4; done\nsrun ./a", "sets OMP_NUM_THREADS: "),
        ("export {OMP,MKL}_NUM_THREADS=4\nsrun ./a", "sets OMP_NUM_THREADS: "),
        ("printf -v OMP_NUM_THREADS %d 2\nexport OMP_NUM_THREADS=4\nsrun ./a", "4"),
        ('eval "./prep $OMP_NUM_THREADS"\nsrun ./a', ""),
    ],
)
def test_the_threads_that_reach_the_program(lines: str, named: str) -> None:
    done = job_file(f"{SLURM}{lines}\n")
    env = values(done.text).get("env", {})
    assert env.get("OMP_NUM_THREADS", "") == (named if named.isdigit() else "")
    sets = named and not named.isdigit()
    whys = [one.why for one in done.remarks if "jobgen sets it to the cores" in one.why]
    assert [why.startswith(named) for why in whys] == [True] * bool(sets)


@pytest.mark.parametrize(
    ("text", "lines", "named"),
    [
        ("export OMP_NUM_THREADS=3", "source env.sh\nsrun ./a", "3"),
        ("export OMP_NUM_THREADS=3", "export OMP_NUM_THREADS=2\n. ./env.sh\nsrun ./a", "3"),
        ("export OMP_NUM_THREADS=3", "source env.sh\nexport OMP_NUM_THREADS=2\nsrun ./a", "2"),
        ("export OMP_NUM_THREADS=$X", "source env.sh\nsrun ./a", "sets OMP_NUM_THREADS: jobgen"),
        ("export X=3  # not OMP_NUM_THREADS=2", "source env.sh\nsrun ./a", ""),
        ("", "source other.sh\nsrun ./a", "if it sets OMP_NUM_THREADS, the job replaces it by 1"),
        ("", "export OMP_NUM_THREADS=2\nsource other.sh\nsrun ./a", "the job replaces it by 2"),
        ("", "source other.sh\nexport OMP_NUM_THREADS=2\nsrun ./a", "2"),
        ("", "srun ./a\nsource other.sh", ""),
        ("", "export $(cat .env | xargs)\nsrun ./a", "the job replaces it by 1"),
        ("", "source ~/.bashrc\nsource functions.sh\nsrun ./a", ""),
    ],
)
def test_the_threads_of_a_file(tmp_path: Path, text: str, lines: str, named: str) -> None:
    (tmp_path / "env.sh").write_text(f"{text}\n")
    done = job_file(f"{SLURM}{lines}\n", folder=tmp_path)
    found = values(done.text).get("env", {}).get("OMP_NUM_THREADS", "")
    assert named in found if named.isdigit() or not named else any(named in one.why for one in done.remarks)
    replaced = [one for one in done.remarks if "replaces it by" in one.why]
    assert bool(replaced) == ("replaces it by" in named), remarks(done)


@pytest.mark.parametrize(
    ("options", "lines", "what"),
    [
        ("-N 1", "export OMP_NUM_THREADS=48\n./a", "OMP_NUM_THREADS"),
        ("-N 2 -n 16", "export OMP_NUM_THREADS=8\nibrun ./a", "OMP_NUM_THREADS"),
        ("-N 1 -n 2 -c 8", "export OMP_NUM_THREADS=8\nsrun ./a", ""),
        ("-N 1 --exclusive", "export OMP_NUM_THREADS=48\n./a", ""),
        ("-N 1 -c 4", "./a", ""),
        ("-N 4", "./a", "4 nodes"),
        ("-N 4", "ibrun ./a", "4 nodes"),
        ("-N 4", "srun -n 8 -c 4 ./a", ""),
        ("-N 4 -n 4", "srun ./a", ""),
        ("-N 1", "./a", "1 node"),
        ("-N 1 -c 1", "./a", ""),
        ("-n 1", "./a", ""),
        ("-N 1 -n 1", "./a", ""),
        ("-N 1 --ntasks-per-node=1", "./a", ""),
        ("-N 1 --gres=gpu:1", "./a", ""),
        ("-N 1 --mem=4G", "./a", ""),
        ("-N 1 --ntasks=%N%", "./a", ""),
        ("-N 4 --ntasks=%N%", "./a", ""),
        ("-N 2 --ntasks-per-node=1", "./a", ""),
        ("-t 5", "./a", ""),
    ],
)
def test_a_script_that_may_rely_on_whole_nodes(options: str, lines: str, what: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -t 10 {options}\n{lines}\n")
    assert [one.what for one in done.remarks if "if the site gives whole nodes" in one.why] == [what] * bool(
        what
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("select=1:system=x", "1 node"),
        ("select=2", "2 nodes"),
        ("nodes=1", "1 node"),
        ("select=2:ncpus=1", ""),
        ("nodes=1:ppn=1", ""),
        ("select=1:ngpus=1", ""),
    ],
)
def test_chunks_without_cores_may_be_whole_nodes(line: str, what: str) -> None:
    done = job_file(f"#!/bin/bash\n#PBS -l {line}\n./a\n")
    found = [one.what for one in done.remarks if "if the site gives whole nodes" in one.why]
    assert found == [what] * bool(what)


@pytest.mark.parametrize(
    ("options", "lines", "named"),
    [
        ("-N 2 --ntasks-per-node=4", "echo $((SLURM_NTASKS + 1))\n./a", "$SLURM_NTASKS"),
        ("-N 2 --ntasks-per-node=4", "((J=SLURM_NTASKS_PER_NODE/2))\n./a $J", "$SLURM_NTASKS_PER_NODE"),
        ("-n 1 --mem-per-cpu=4G", "./a $SLURM_MEM_PER_NODE", "$SLURM_MEM_PER_NODE"),
        ("-n 1 --mem=4G", "./a $SLURM_MEM_PER_NODE", ""),
        ("-N 2 -n 2", "K=$((SLURM_NTASKS + 1))\nsrun ./a $K", ""),
    ],
)
def test_numbers_that_differ_in_a_sum(options: str, lines: str, named: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -t 10 {options}\n{lines}\n")
    assert [one.what for one in done.remarks if "in the job, and" in one.why] == [named] * bool(named)


def test_the_memory_of_a_core_in_a_sum() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -n 4 --mem-per-cpu=4G\njava -Xmx$((SLURM_MEM_PER_CPU*4))m -jar a\n")
    assert str(values(done.text)["setup"]).startswith("SLURM_MEM_PER_CPU=4096\n")


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ("A=1\nexec ./a $A", ["./a", "1"]),
        ("A=1\nexec env -i A=$A ./a x", ["env", "-i", "A=1", "./a", "x"]),
        ("env -i ./a x\nenv | sort", ["env", "-i", "./a", "x"]),
        ("exec > log 2>&1\n./a", ["./a"]),
        ("exec nice -n 5 ./a", ["nice", "-n", "5", "./a"]),
        ("./a x\nseff $SLURM_JOB_ID\njobinfo", ["./a", "x"]),
    ],
)
def test_the_command_that_is_the_program(lines: str, command: list[str]) -> None:
    assert values(job_file(f"#!/bin/bash\n#SBATCH -n 1 -t 10\n{lines}\n").text)["command"] == command


def test_exec_before_the_program() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -n 1 -t 10\nif [ -f x ]; then\n  exec ./a\nfi\nexec ./b\n")
    assert [one.line for one in done.remarks if one.why.startswith("ends the script")] == [4], remarks(done)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("${RUN} ${BIN:+$BIN/}a.x", 3),
        ("A=x\nsh run_a.sh\n./b", 4),
        ("S=$D/run.sh\nbash $S 1\n./b", 4),
        ("./steps.sh", 3),
        ('LINE="mpiexec --bind-to core main"\npython watch.py "$LINE"', 4),
        ('CMD="srun ./a"\n[ $F ] && CMD="$CMD -v"\neval $CMD', 5),
        ('MPI=\n[ $N = 1 ] || MPI="mpirun -n $N"\nALL="${MPI} python ${@}"\neval $ALL', 6),
        ('A="srun"\necho "$A"\n./b', 0),
        ("A=x\n" + 'A="$A y"\n' * 12 + "eval $A\n./b", 0),  # each value begins with all of them
        ("RUN=\nmodule load x\n$RUN ./a", 0),
        ("source env.sh\n./a", 0),
        ("cp a.sh b\n./a", 0),
    ],
)
def test_scripts_and_variables_that_may_start_ranks(lines: str, named: int) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 2 -n 8 -t 10\n{lines}\n")
    assert [one.line for one in done.remarks if "that it may start find one task" in one.why] == [
        named
    ] * bool(named)


@pytest.mark.parametrize(
    ("options", "lines", "named"),
    [
        ("-N 1 --exclusive", "./a", "OMP_NUM_THREADS=1,"),
        ("-N 1 --exclusive -c 8", "cat x | ./a | sort > y", "OMP_NUM_THREADS=8,"),
        ("-N 1 --exclusive --gres=gpu:2", "./a", "2 of the GPUs, and OMP_NUM_THREADS=1,"),
        ("-N 1 --exclusive", "export OMP_NUM_THREADS=4\n./a", ""),
        ("-N 1 --exclusive", "srun ./a", ""),
        ("-N 1", "./a", ""),
    ],
)
def test_the_threads_of_a_program_on_a_whole_node(options: str, lines: str, named: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH {options}\n{lines}\n")
    whys = [one.why for one in done.remarks if one.what == "exclusive" and "OMP_NUM_THREADS" in one.why]
    assert len(whys) == bool(named)
    assert named in "".join(whys)


@pytest.mark.parametrize(
    ("code", "key"),
    [
        ("srun dask-mpi --scheduler-file s.json", "command"),
        ("ray start --head\nsource env.sh\npython t.py", "early_setup"),
        ("srun dask-mpi --no-nanny", ""),
    ],
)
def test_workers_of_ray_and_dask_set_their_threads(code: str, key: str) -> None:
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 2 -c 4 -t 10\n{code}\n").text)
    unset = [name for name, value in found.items() if "OMP_NUM_THREADS" in str(value)]
    assert unset == [key] * bool(key)


@pytest.mark.parametrize(
    ("lines", "unset"), [("./a", True), ("NCORES=32\n./a", True), ("export OMP_NUM_THREADS=1\n./a", False)]
)
def test_the_threads_of_nodes_that_may_be_whole(lines: str, unset: bool) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -t 10 -N 2\n{lines}\n")
    reasons = [one.why for one in done.remarks if "if the site gives whole nodes" in one.why]
    assert ["OMP_NUM_THREADS is 1, and unset in the script" in one for one in reasons] == [unset]


def test_a_command_of_another_shell_finds_no_threads() -> None:
    lines = "setenv A 1\nsrun gmx grompp -f a\nsrun gmx mdrun -ntmpi 2 -ntomp 8"
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 1 -c 16 -t 10 --exclusive\n{lines}\n")
    whys = {one.what: one.why for one in done.remarks if "finds OMP_NUM_THREADS" in one.why}
    assert whys == {"srun gmx grompp -f a": "finds OMP_NUM_THREADS unset in the script, and 8 in the job"}


@pytest.mark.parametrize(
    ("options", "body", "key"),
    [
        ("-c 8", "dask-worker tcp://a:1 --nworkers 8", "command"),
        ("-c 8", "ray start --head\npython t.py", "before"),
        ("-c 8", "module load openmpi\nsrun ./a\ndask worker tcp://a:1", "after"),
        ("-c 1", "ray start --head\npython t.py", ""),
        ("-c 8", "export OMP_NUM_THREADS=2\nray start --head\npython t.py", ""),
    ],
)
def test_a_command_that_sets_the_threads_of_its_workers(options: str, body: str, key: str) -> None:
    found = values(job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10 {options}\n{body}\n").text)
    unset = {name for name in ("setup", "before", "after") if "unset OMP_NUM_THREADS" in found.get(name, "")}
    unset |= {"command"} if found["command"][:3] == ["env", "-u", "OMP_NUM_THREADS"] else set()
    assert unset == {key} - {""}
