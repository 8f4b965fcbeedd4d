"""What the request of a script leaves open: cores of whole nodes, threads, arrays of the submission, modes of logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from convert.conversions import convert, job_file, remarks, values

from jobgen.convert import differences
from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.script.script import Script

HEAD = "#!/bin/bash\n#SBATCH --time=10\n#SBATCH "


def reasons(script: str, target: str = "torque") -> list[str]:
    done = job_file(script) if target == "toml" else convert(script, target)
    return [one.why for one in done.remarks]


@pytest.mark.parametrize(
    ("options", "code", "count"),
    [
        ("--nodes=2 -C haswell", "./ips.py", 1),
        ("-N 4", "srun ./a", 1),
        ("-N 1", "./a", 0),
        ("-N 1 -C knl", "python a.py", 1),
        ("-N 1", "ls /capstor/a; python a.py", 1),
        ("-N 1 -C knl", "./a", 0),
        ("-N 1 -C knl", "ctest . -R MPI_", 1),
        ("-N 1 -C knl", "make -C build check", 1),
        ("-N 1 -C knl", "cd build && ninja test", 1),
        ("-N 1 -C knl", "pytest tests/mpi; tox", 1),
        ("-N 1 -C knl", "make clean; test -f a; ./check", 0),
        ("-N 1", "python a.py", 0),
        ("-N 1 -C knl --mem=4G", "python a.py", 0),
        ("-N 1 -C a100 --gres=gpu:1", "python a.py", 0),
        ("-n 1 -C knl", "python a.py", 0),
        ("-N 1 -C knl", "OMP_NUM_THREADS=8 python a.py", 0),
        ("-N 2 -n 8", "srun ./a", 0),
        ("-N 2 --ntasks-per-node=1", "./a", 0),
        ("-N 2 -c 16", "./a", 0),
        ("-N 2 --gres=gpu:4", "./a", 0),
        ("-N 2 --exclusive", "./a", 0),
        ("-N 2", "srun -n 64 ./a", 0),
        ("-N 2", "mpirun -np 1 python a.py", 1),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_nodes_without_cores(target: str, options: str, code: str, count: int) -> None:
    found = [one for one in reasons(f"{HEAD}{options}\n{code}\n", target) if one.startswith("names no cores")]
    assert len(found) == count


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ("-N 1 --gres=gpu:1", "./a", True),
        ("-n 1 --gpus=2", "srun ./a", True),
        ("-N 1 --gres=gpu:1 -c 1", "./a", False),
        ("-N 1 --gres=gpu:1 --cpus-per-gpu=4", "./a", False),
        ("-N 1 -n 4 --gres=gpu:1", "./a", False),
        ("-N 1 --gres=gpu:2", "srun -n 2 ./a", False),
        ("-N 1 --gres=gpu:1 --exclusive", "./a", False),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_gpus_without_cores(target: str, options: str, code: str, named: bool) -> None:
    found = [one for one in reasons(f"{HEAD}{options}\n{code}\n", target) if "with each GPU" in one]
    assert found == [differences.CORES_WITH_GPUS] * named


@pytest.mark.parametrize(
    ("options", "code", "count"),
    [
        ("-n 1", "unset OMP_NUM_THREADS\npython a.py", 1),
        ("-n 1", "if true; then\nunset A OMP_NUM_THREADS\nfi\n./a", 1),
        ("-n 1", "python a.py", 0),
        ("-n 1 --exclusive", "unset OMP_NUM_THREADS\npython a.py", 0),
        ("-n 1 -c 8", "OMP_NUM_THREADS=8\n./a", 1),
        ("-n 1 -c 8", "OMP_NUM_THREADS=8\nexport OMP_NUM_THREADS\n./a", 0),
        ("-n 1 -c 8", "OMP_NUM_THREADS=4 ./a", 0),
        ("-n 1 -c 8", "OMP_NUM_THREADS=4 ./a\n./b", 1),
        ("-n 1 -c 8", "gmx mdrun -ntomp 8\n./b", 1),
        ("-n 1 -c 8", "gmx grompp -f a\ngmx mdrun -ntomp 8", 0),
        ("-n 1 -c 8", "mpirun -np 1 ./a", 1),
        ("-n 1 -c 8", "lscpu\nmpirun -np 1 -x OMP_NUM_THREADS=8 ./a", 0),
        ("-n 1 -c 8", "OMP_NUM_THREADS=8\nmpirun -np 1 -x OMP_NUM_THREADS ./a", 1),
        ("-n 1 -c 8", "module load gcc ray/1.1.0;\npython a.py", 1),
        ("-n 1 -c 8", "module load array/1.1.0\npython a.py", 0),
        ("-n 1 -c 8", "ml dask\npython a.py", 1),
        ("-n 1 -c 1", "module load ray\npython a.py", 1),
        ("-n 1 -c 8", 'pip install "ray[tune]" x\npython a.py', 1),
        ("-n 1 -c 8", "conda activate dask\npython a.py", 1),
        ("-n 1 -c 8", "pip install raytrace x\npython a.py", 0),
    ],
)
def test_a_script_that_leaves_the_threads_unset(options: str, code: str, count: int) -> None:
    found = reasons(f"{HEAD}{options}\n{code}\n", "pbspro")
    assert len([one for one in found if one.startswith("is unset: unless PBS Pro binds")]) == count


def test_an_array_that_only_the_log_names() -> None:
    log = reasons(f"{HEAD}-o x_%A_%a.out\n./a\n", "pbspro")
    assert (
        "no directive has the range of the array: if the submission makes one, submit with qsub -J FIRST-LAST"
        in log
    )
    code = reasons(f"{HEAD}-n 1\n./a $SLURM_ARRAY_TASK_ID\n", "pbspro")
    assert "no directive has the range of the array: submit with qsub -J FIRST-LAST" in code


@pytest.mark.parametrize(("mode", "sign"), [("append", ">>"), ("truncate", ">")])
def test_the_mode_of_a_log_that_the_script_opens(mode: str, sign: str) -> None:
    done = convert(f"{HEAD}-o x-%j.out --open-mode={mode}\n./a\n", "pbspro")
    assert f'exec {sign} "x-${{PBS_JOBID%%[!0-9]*}}.out"' in done.text
    assert not [one for _, _, one in remarks(done) if "open-mode" in one]


def test_the_log_of_the_last_of_two_options() -> None:
    done = job_file(f"{HEAD}-o out%j.log\n#SBATCH --output=starting.out\n./a\n")
    assert [one for _, _, one in remarks(done) if "output" in one] == ["--output starting.out"]


@pytest.mark.parametrize(("shell", "count"), [("ksh", 0), ("zsh", 1)])
def test_a_shell_that_splits_words_as_bash(shell: str, count: int) -> None:
    found = reasons(f"#!/bin/{shell}\n#SBATCH --time=10\n./a\n", "toml")
    assert len([one for one in found if "splits words" in one]) == count
    assert any(one.startswith("the job runs the commands in bash") for one in found)


@pytest.mark.parametrize(
    ("shell", "line", "count"),
    [
        ("sh", ". /etc/profile.d/rec_modules.sh\nmodule load a", 0),
        ("bash", ". /etc/profile.d/rec_modules.sh\nmodule load a", 1),
        ("sh", "source /etc/profile.d/rec_modules.sh\nmodule load a", 1),
    ],
)
def test_a_file_that_cannot_be_read(shell: str, line: str, count: int) -> None:
    found = reasons(f"#!/bin/{shell}\n#SBATCH --time=10\n{line}\n./a\n", "toml")
    assert len([one for one in found if one.startswith("if the file cannot be read")]) == count


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("--hostfile hf", 1),
        ("-machinefile hf", 1),
        ("-np 4 --hostfile hf", 0),
        ("--hostfile $PBS_NODEFILE", 0),
    ],
)
def test_ranks_that_a_file_of_hosts_counts(words: str, count: int) -> None:
    head = "#!/bin/bash\n#PBS -l select=2:ncpus=8:mpiprocs=8 -l walltime=1:00:00\n"
    found = reasons(f"{head}tail -n +5 $PBS_NODEFILE > hf\nmpirun {words} ./a\n", "slurm")
    assert len([one for one in found if "a rank for each line of the file" in one]) == count


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("-n 4 --ntasks-per-node=24", 1),
        ("-N 4 -n 12 --ntasks-per-node=12", 1),
        ("-n 1 --ntasks-per-node=4", 0),
        ("-N 2 -n 8 --ntasks-per-node=4", 0),
        ("-N 2 --ntasks-per-node=4", 0),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque", "toml"])
def test_cores_of_more_tasks_than_there_are(target: str, options: str, count: int) -> None:
    """Measured on Slurm 22.05: -n 4 --ntasks-per-node=6 has 6 cores."""
    found = reasons(f"{HEAD}{options}\nsrun ./a\n", target)
    assert len([one for one in found if one.startswith("Slurm gives each node the cores of")]) == count


@pytest.mark.parametrize(
    ("code", "value", "count"),
    [
        ("gmx mdrun -ntmpi 2 -ntomp 8", "8", 0),
        ("gmx mdrun -ntmpi 1 -ntomp 16\ngmx mdrun -ntmpi 2 -ntomp 8", None, 1),
        ("export OMP_NUM_THREADS=4\ngmx mdrun -ntomp 4", "4", 0),
        ("gmx mdrun", None, 0),
    ],
)
def test_threads_of_mdrun(code: str, value: str | None, count: int) -> None:
    done = job_file(f"{HEAD}-n 1 -c 16\n{code}\n")
    assert values(done.text).get("env", {}).get("OMP_NUM_THREADS") == value
    assert len([one for one in done.remarks if "mdrun ends" in one.why]) == count


def test_a_folder_that_the_script_names_is_not_that_of_the_log() -> None:
    code = "sc=/scratch/$(date +%s)_x/\nmkdir $sc\n./a\ncp $sc/neural* out/"
    found = reasons(f"{HEAD}-o neural_1.test\n{code}\n", "pbspro")
    assert not [one for one in found if "writes the log" in one]


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        ("-N 1", "make -j 20 all", "-j 20"),
        ("-N 1", "for d in a b; do make -C $d -j20; done", "-j 20"),
        ("-n 1", "N=8\nbwa mem -t $N x | samtools sort -@4", "-t 8"),
        ("-p main", "build() {\n  cmake --build . --parallel --jobs=6\n}\nbuild", "--jobs 6"),
        ("-N 1", "export OMP_NUM_THREADS=16\nsrun -n 1 ./a", "OMP_NUM_THREADS=16"),
        ("-N 1 -c 4", "srun ./a --num_threads 8", "--num_threads 8"),
        ("-c 8", "singularity run --nv a.sif /opt/bin/namd2 a.namd +p64 +devices 0", "+p 64"),
        ("-N 1 -c 8", "charmrun +p64 namd2 a.namd\nnamd2 +p8 a.namd", None),
        ("-N 1 -c 8", "make -j 8", None),
        ("-N 1 --exclusive", "make -j 8", None),
        ("-N 1 --ntasks-per-node=8", "make -j 8", None),
        ("-N 1", "cat > build.sh <<E\nmake -j 20\nE", None),
        ("-N 1", "# make -j 20\necho make -j 20\nhead -n 20 x\nmkdir -p 2", None),
        ("-N 1", "snakemake -j 100 --cluster sbatch", None),
        ("-N 1", "export NUMEXPR_MAX_THREADS=64\n./a -t 8", None),
        ("-N 1", 'apptainer exec x bash --login -c "make -j 6"', "-j 6"),
        ("-n 1", "docker run x sh -c 'cd b && cmake --build . -j 6'", "-j 6"),
        ("-n 8", "f() {\nB=/opt\nN=$SLURM_NTASKS\n$B/namd2 +p$((N*2)) a\n}\nf", "+p 16"),
        ("-n 8", "f() {\n$B/namd2 +p$((N*2)) a\nN=$SLURM_NTASKS\n}\nf", None),
        ("-N 1", "./a 1 &\n./a 2 &\n./a 3", "3 programs with &"),
        ("-N 1", "apptainer exec x bash -c './a & ./b & wait'", "2 programs with &"),
        ("-N 1 -n 2", "bash -c './a & ./b & wait'", None),
        ("-n 1", "for i in 1 2 3; do\n./a $i > $i.log &\ndone\nwait", "3 programs with &"),
        ("-n 1", "for i in $(seq 8); do ( cd $i; ./a ) & done; wait", "8 programs with &"),
        (
            "-n 1",
            "for a in $X; do while [ $(jobs | wc -l) -gt 4 ]; do sleep 1; done; ./a & done",
            "several programs with &",
        ),
        ("-n 1", "for a in 1 2; do for b in {1..4}; do ./a & done; wait; done", "4 programs with &"),
        ("-n 1", "r() { ./a $1 & }\nfor i in 1 2 3; do r $i; done\nwait", "3 programs with &"),
        ("-n 1", "for f in *.x; do ./a $f & done\nwait", "several programs with &"),
        ("-N 1", "while read l; do ./a $l & ((n++ % 9)) || wait; done < x", "several programs with &"),
        ("-N 1 -n 3", "./a 1 &\n./a 2 &\n./a 3", None),
        ("-N 1 -n 2", "./a &\n./b &\nwait\n./a &\n./b &\nwait", None),
        ("-N 1", "./a &\nwait\n./b &\nwait", None),
        ("-N 1", "nvidia-smi -l 9 &\n./watch.py &\nwait", None),
        ("-N 1", "ssh n1 ./a &\nssh n2 ./a &\nwait", None),
        ("-N 1", "srun -n 1 ./a | tee a &\nsrun -n 1 ./b | tee b &\nwait", None),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque", "toml"])
def test_programs_for_more_cores_than_the_request(
    target: str, options: str, code: str, what: str | None
) -> None:
    script = f"{HEAD}{options}\n{code}\n"
    done = job_file(script) if target == "toml" else convert(script, target)
    found = [
        one.what for one in done.remarks if "cores of a node, and the" in one.why or "is more than" in one.why
    ]
    assert [one.partition("=")[0] for one in found] == ([what.partition("=")[0]] if what else [])


def test_a_script_beside_for_more_cores_than_the_request(tmp_path: Path) -> None:
    (tmp_path / "c.sh").write_text("#!/bin/bash\ncd d\nmake -j 20\n")
    for code, named in (("./c.sh", True), ("bash c.sh", True), ("ssh n1 ./c.sh", False)):
        script = Script(f"{HEAD}-N 1\n{code}\n".encode(), "slurm", str(tmp_path))
        for done in (conversion.convert(script, "torque"), translation.convert(script)):
            found = [(one.line, one.what) for one in done.remarks if one.what.startswith("-j 20")]
            assert found == [(4, "-j 20 (line 3 of c.sh)")] * named


_ALL, _BOUND = "counts all cores of the node, not the", "counts the cores to which Slurm binds the job"


@pytest.mark.parametrize(
    ("options", "code", "start"),
    [
        ("-N 1", "n=$(nproc --all)\n./a -t $n", _ALL),
        ("-c 4", "./a -t `grep -c ^processor /proc/cpuinfo`", _ALL),
        ("-n 4", "N=$(cat /proc/cpuinfo | grep processor | wc -l)\n./a $N", _ALL),
        ("-c 4", "N=`lscpu -p | grep -v '#' | wc -l`\n./a $N", _ALL),
        ("-c 4", "N=$(lscpu | awk '/^CPU\\(s\\)/ {print $2}')\n./a $N", _ALL),
        ("-c 4", "N=$(lscpu | grep 'Model name')\n./a $N", ""),
        ("-N 1", "n=$(nproc)\n./a -t $n", _BOUND),
        ("-N 1", 'echo "cores: $(nproc --all)"\nM=$(grep "model name" /proc/cpuinfo)\n./a', ""),
        ("-N 1 --exclusive", "./a -t $(nproc --all)", ""),
        ("-N 1", 'echo "$(nproc)"\n./a', ""),
        ("-c 4", "./a -t `nproc`", ""),
        ("-N 1 --exclusive", "./a -t `nproc`", ""),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque", "toml"])
def test_a_script_that_counts_cores(target: str, options: str, code: str, start: str) -> None:
    found = reasons(f"{HEAD}{options}\n{code}\n", target)
    for one in (_ALL, _BOUND):
        assert sum(why.startswith(one) for why in found) == (start == one)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("julia -t auto a.jl", True),
        ("srun -n 1 julia --project=. --threads=auto a.jl", True),
        ("export JULIA_NUM_THREADS=auto", True),
        ("julia -t 4 a.jl", False),
        ("matlab -nodisplay -r a", True),
        ("bash -c 'matlab -batch a'", True),
        ("matlab -singleCompThread -r a", False),
        ('matlab -r "maxNumCompThreads(4); a"', False),
        ("ls | parallel gzip", True),
        ("cat b | time parallel -k ./a ::: 1 2", True),
        ("cat b | parallel -kj 4 ./a", False),
        ("parallel --jobs 4 ./a ::: 1", False),
        ("parallel $OPTIONS ./a ::: 1", False),
        ("xargs -P 0 -n1 ./a < b", True),
        ("xargs -P 4 ./a < b", False),
        ("snakemake --cores all", True),
        ("snakemake --use-conda -j", True),
        ("snakemake --cores --config a=b", True),
        ("snakemake -c8 all", False),
        ("snakemake --cores 4", False),
        ("snakemake -np --cores all", False),
        ("snakemake --cores all --executor slurm", False),
        ("make -j install", True),
        ("make -j 8", False),
        ("make -j$(getconf X)", False),
        ("spark-submit --master 'local[*]' a.py", True),
        ("spark-submit --master local[4] a.py", False),
        ("dask worker --scheduler-file b", True),
        ("dask-worker --nthreads 2 a:1", False),
        ("python3 -m dask worker a:1", True),
        ("python3 -m dask worker --nthreads 2 a:1", False),
        ("python3 -m dask scheduler", False),
        ("ray start --head", True),
        ("ray start --head --num-cpus=4", False),
        ("gmx mdrun -ntomp 4 -deffnm b", True),
        ("gmx mdrun -nt 4 -deffnm b", False),
        ("gmx mdrun -ntmpi 1 -ntomp 4 -deffnm b", False),
        ("gmx grompp -f b", False),
        ("ninja install", True),
        ("ninja -j4 install", False),
        ("cmake --build b --parallel", True),
        ("cmake --build b -j 4", False),
        ("cmake -S b", False),
        ("comsol batch -inputfile b", True),
        ("comsol batch -np 4 -inputfile b", False),
        ("vina --config b", True),
        ("vina --cpu 4 --config b", False),
        ("wsclean -j 4 b", False),
        ("diamond blastx -q b", True),
        ("vsearch --version", False),
        ("command -v parallel", False),
        ("pbzip2 b", True),
        ("M=matlab\nO=' -nojvm -nodesktop'\n$M $O -r a", True),
        ("pbzip2 -dp4 b", False),
        ("pigz b", True),
        ("pigz -p4 b", False),
        ("pigz -dc b", False),
        ("xz -T0 b", True),
        ("iqtree -s b -nt AUTO", True),
        ("cellranger count --id=b", True),
        ("cellranger count --id=b --localcores=8", False),
        ("singularity exec i.sif fmriprep b c participant", True),
        ("fmriprep b c participant --nprocs 4", False),
        ("iqtree -s ${X}/b -m TEST -o A_B_C_D_E_F_G_H_I_J_K_L_M_N_O_P -nt AUTO", True),
    ],
)
@pytest.mark.parametrize("target", ["torque", "toml", "slurm"])
def test_a_program_that_uses_all_cores_that_it_finds(target: str, line: str, named: bool) -> None:
    if target == "slurm":
        found, why = reasons(f"#PBS -l select=1:ncpus=4\n{line}\n", target), "Slurm may bind it to those of"
    else:
        found, why = reasons(f"{HEAD}-n 1 -c 4\n{line}\n", target), "Slurm binds it to those of the job"
    assert sum(one.startswith(f"may use all cores that it finds: {why}") for one in found) == named


def test_a_script_beside_it_uses_all_cores_that_it_finds(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("#!/bin/bash\ncd b\nparallel gzip ::: *\n")
    script = Script(f"{HEAD}-c 4\ntime ./a.sh\n".encode(), "slurm", str(tmp_path))
    for done in (conversion.convert(script, "torque"), translation.convert(script)):
        found = [(one.line, one.what) for one in done.remarks if "(line 3 of it)" in one.why]
        assert found == [(HEAD.count("\n") + 2, "a.sh")]


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("--gres=gpu:2", "deepspeed t.py", True),
        ("--gres=gpu:2", "deepspeed --num_gpus 2 t.py", False),
        ("--gres=gpu:2", "deepspeed --include localhost:0,1 t.py", False),
        ("--gres=gpu:2", "deepspeed --hostfile b t.py", False),
        ("--gres=gpu:2", "torchrun --nproc_per_node=gpu t.py", True),
        ("--gres=gpu:2", "torchrun --standalone --nproc-per-node auto t.py", True),
        ("--gres=gpu:2", "torchrun --nproc_per_node=2 t.py", False),
        ("--gres=gpu:2", "torchrun t.py", False),
        ("--gres=gpu:2", "accelerate launch t.py", True),
        ("--gres=gpu:2", "accelerate launch --num_processes 2 t.py", False),
        ("--gres=gpu:2", "N=$(nvidia-smi -L | wc -l)\n./a -g $N", True),
        ("--gres=gpu:2", "echo $(nvidia-smi --list-gpus | wc -l)", False),
        ("--gres=gpu:2 --exclusive", "deepspeed t.py", False),
    ],
)
def test_what_uses_all_gpus_that_it_finds(options: str, line: str, named: bool) -> None:
    found = reasons(f"{HEAD}-N 1 {options}\n{line}\n", "torque")
    why = "may use all GPUs that it finds: Slurm hides those of other jobs, Torque may not"
    assert found.count(why) == named


@pytest.mark.parametrize(
    ("request_line", "line", "named"),
    [
        ("select=1:ncpus=8", "/opt/b/orca a > b", "orca"),
        ("select=1:ncpus=8", "module load openmpi orca\n$(which orca) a", "orca"),
        ("select=1:ncpus=8", "module load vasp/6\npython a.py", "vasp"),
        ("ncpus=8", "time qchem -np 8 a", "qchem"),
        ("select=1:ncpus=8:mpiprocs=8", "/opt/b/orca a > b", ""),
        ("nodes=1:ppn=8", "/opt/b/orca a > b", ""),
        ("select=1:ncpus=1", "/opt/b/orca a > b", ""),
        ("select=1:ncpus=8", "module load vasp/6\nmpirun -np 8 vasp", ""),
        ("select=1:ncpus=8", "./a", ""),
    ],
)
@pytest.mark.parametrize("target", ["slurm", "toml"])
def test_cores_of_one_task_for_a_program_that_starts_ranks(
    target: str, request_line: str, line: str, named: str
) -> None:
    text = f"#!/bin/bash\n#PBS -l {request_line}\n{line}\n"
    done = job_file(text) if target == "toml" else convert(text, target)
    found = [one.what for one in done.remarks if "for an Open MPI the node has one slot" in one.why]
    assert found == [named] * bool(named)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("n = len(os.sched_getaffinity(0))", True),
        ("m = Forest(n_jobs=-1)", True),
        ("c = Client()", True),
        ("c = LocalCluster(processes=True)", True),
        ("c = LocalCluster(processes=True, n_workers=4)", False),
        ("c = Client(address)", False),
        ("m = Forest(n_jobs=4)", False),
        ("n = os.cpu_count()", False),  # which counts those of the node under Slurm, too
        ("# n_jobs=-1", False),
    ],
)
def test_a_program_beside_the_script_that_counts_bound_cores(code: str, named: bool, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(f"import os\n{code}\n")
    for options, binds in (("-n 1 -c 6", True), ("-N 1 --exclusive", False)):
        script = Script(f"{HEAD}{options}\npython t.py\n".encode(), "slurm", str(tmp_path))
        for done in (conversion.convert(script, "torque"), translation.convert(script)):
            found = [one.what for one in done.remarks if "(line 2 of it)" in one.why]
            assert found == ["t.py"] * (named and binds)


def test_more_cores_than_those_to_which_slurm_binds_a_job() -> None:
    found = [one.why for one in convert("#PBS -l nodes=1:ppn=4\nmake -j $(nproc --all)\n", "slurm").remarks]
    assert "counts all cores of the node, not the 4 of the request, to which Slurm may bind them" in found


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ("-N 2 --ntasks-per-node=8", "srun ./a", True),
        ("-N 2 --ntasks-per-node=8 -c 4", "srun ./a", False),
        ("-N 2 --ntasks-per-node=8 --exclusive", "srun ./a", False),
        ("-N 2 --ntasks-per-node=8", "srun -c 4 ./a", False),
        ("-N 1 --ntasks-per-node=8", "ibrun -np 1 ./a", False),
        ("-N 2 --ntasks-per-node=8", "./a", False),
    ],
)
def test_the_threads_of_all_ranks_of_whole_nodes(options: str, code: str, named: bool) -> None:
    done = convert(f"{HEAD}{options}\nexport OMP_NUM_THREADS=4\n{code}\n", "pbspro")
    why = "in 8 ranks is more than the cores of the request on a node, 8"
    assert any(one.why.startswith(why) for one in done.remarks) == named


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("make -j 20", True),
        ("bwa mem -t 20 x", True),
        ("python t.py --n_rollout_threads 128", True),
        ("python t.py --dataloader-num-workers=8", True),
        ("python t.py data.num_workers=8 a.seed=9", True),
        ("python t.py data.seed=8 --max-jobs-per-second 9", False),
        ("bamCoverage --numberOfProcessors 16", True),
        ("hmmsearch --cpu 8 a", True),
        ("RepeatMasker -pa 8 a", True),
        ("snakemake -j 7 all", True),
        ("snakemake --jobs 100 --profile big", False),
        ("snakemake -j 100 --cluster 'qsub -V'", False),
        ("snakemake -n -j 100", False),
        ("export C='mpirun -np 32 --bind-to core ./a'\npytest", True),
        ("export C='mpirun -np 2 ./a'\npytest", False),
    ],
)
def test_programs_for_more_cores_than_the_cores_of_slurm(code: str, named: bool) -> None:
    why = "is more than the cores of the request on a node, 4, to which Slurm may bind them"
    found = [one.why for one in convert(f"#PBS -l nodes=1:ppn=4\n{code}\n", "slurm").remarks]
    assert (why in found) == named


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ("-C gpu", (3, "gpu")),
        ("--constraint=V100&ib", (3, "V100&ib")),
        ("-N 1\n#SBATCH -C volta", (4, "volta")),
        ("-p a100", (3, "a100")),
        ("-C nogpu", None),
        ("-C haswell -p main", None),
        ("-C gpu --gres=gpu:1", None),
        ("-C gpu --exclusive", None),
        ("-C gpu --gres=dcu:4", None),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_features_and_queues_of_gpus_that_no_directive_requests(
    target: str, options: str, place: tuple[int, str] | None
) -> None:
    done = convert(f"{HEAD}{options}\nsrun ./a\n", target)
    found = [(one.line, one.what) for one in done.remarks if "no directive requests GPUs" in one.why]
    assert found == [place] * (place is not None)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("./a", 1),
        ("OMP_NUM_THREADS=4 ./a\n./b", 1),
        ("gmx mdrun -ntomp 4\n./b", 1),
        ("OMP_NUM_THREADS=4 ./a", 0),
        ("gmx mdrun -ntomp 4", 0),
        ("export OMP_NUM_THREADS=4\n./a", 0),
    ],
)
def test_threads_on_exclusive_nodes_without_a_number_of_cores(line: str, count: int) -> None:
    done = convert(f"#PBS -l select=1 -l place=excl\n{line}\n", "slurm", "pbspro")
    assert len([one for one in done.remarks if "cores of a chunk, which the request" in one.why]) == count
    assert "OMP_NUM_THREADS=1" not in done.text


@pytest.mark.parametrize(("folder", "count"), [("/data/run", 0), ("run", 1), (".", 1)])
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_an_absolute_directory_needs_no_folder_of_the_submission(
    target: str, folder: str, count: int
) -> None:
    done = convert(f"{HEAD}-N 1 --chdir={folder}\n./a\n", target)
    assert done.text.count('cd "$PBS_O_WORKDIR"') == count


@pytest.mark.parametrize(
    ("bind", "unbound"), [("none", True), ("none,v", True), ("q,none", True), ("cores", False)]
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_ranks_without_a_binding_have_no_number_of_threads(target: str, bind: str, unbound: bool) -> None:
    """srun --cpu-bind=none leaves a rank all cores of a node, unless a cgroup of the site holds it."""
    done = convert(f"{HEAD}-N 2 --ntasks-per-node=1\nsrun --cpu-bind={bind} python a.py\n", target)
    assert ("export OMP_NUM_THREADS=1 " in done.text) == (target == "torque" and not unbound)
    assert ("unset OMP_NUM_THREADS " in done.text) == (target == "pbspro" and unbound)
    assert any(one.why.startswith("is unset: unless") for one in done.remarks) is unbound
    cores = convert(f"{HEAD}-N 1 -c 4\nsrun --cpu-bind={bind} python a.py\n", target)
    assert "unset" not in cores.text


@pytest.mark.parametrize(
    ("options", "line", "count"),
    [
        ("-N 1 --ntasks-per-node=12", "./a", 1),
        ("-N 1 --ntasks-per-node=12", "run_in_image python a.py", 1),
        ("-N 1 -c 6", "gmx mdrun -deffnm a", 1),
        ("-N 1 -c 6", "./a", 0),
        ("-N 1 -c 6", "gmx mdrun -ntomp 6 -deffnm a", 0),
        ("-N 1 -c 6", "gmx mdrun -ntomp 6 -deffnm a\ngmx mdrun -deffnm b", 1),
        ("-N 1 -c 6", "gmx mdrun -ntomp 6 -deffnm a\n./b", 1),
        ("-N 1 -c 6", "OMP_NUM_THREADS=4 ./a\n./b", 1),
        ("-N 1 -c 6", "OMP_NUM_THREADS=4 ./a", 0),
        ("-N 1 --ntasks-per-node=12", "export OMP_NUM_THREADS=12\n./a", 0),
        ("-N 1 --ntasks-per-node=12", "mpirun ./a", 0),
        ("-N 1 --ntasks-per-node=12 --exclusive", "./a", 0),
        ("-N 1", "./a", 0),
        ("-N 1 --ntasks-per-node=12", "ls", 0),
        ("-N 32", "srun -n 256 dask worker tcp://a:1", 1),
        ("-N 2 -c 6", "srun -N 1 -n 1 ray start --head &\npython a.py", 1),
        ("-N 2 -c 6", "srun -N 1 -n 1 start-head.sh &\npython a.py", 1),
        ("-N 2 -c 6", "export OMP_NUM_THREADS=6\nsrun dask-worker tcp://a:1", 0),
        ("-N 2 -c 6", "srun ./a", 0),
    ],
)
def test_threads_of_a_program_that_torque_does_not_bind(options: str, line: str, count: int) -> None:
    found = reasons(f"{HEAD}{options}\n{line}\n", "torque")
    assert len([one for one in found if one.startswith("is unset: unless Torque binds")]) == count


@pytest.mark.parametrize(
    ("options", "line", "count"),
    [
        ("-N 12", "mpirun ./a", 1),
        ("-N 12 -c 8 --exclusive", "mpirun ./a", 1),
        ("-N 1 --exclusive", "mpirun ./a", 1),
        ("-N 12 -c 8", "mpirun ./a", 0),
        ("-N 12 -n 96 --exclusive", "mpirun ./a", 0),
        ("-N 12 --ntasks-per-node=8 --exclusive", "mpirun ./a", 0),
        ("-N 12 --exclusive", "mpirun -np 24 ./a", 0),
    ],
)
def test_ranks_that_only_the_slots_of_whole_nodes_count(options: str, line: str, count: int) -> None:
    found = reasons(f"{HEAD}{options}\n{line}\n", "pbspro")
    assert len([one for one in found if "for each of mpiprocs: request these with the cores" in one]) == count
    assert "mpiprocs" not in " ".join(reasons(f"{HEAD}{options}\n{line}\n", "torque"))
    found = [one.why for one in job_file(f"{HEAD}{options}\n{line}\n").remarks]
    why = "of whole nodes: jobgen starts one on each node"
    assert len([one for one in found if why in one]) == count * ("--exclusive" in options)


@pytest.mark.parametrize(
    ("options", "code", "count"),
    [
        ("-n 1 --ntasks-per-node=24", "module load OpenMPI/4.1\nbin/orca a.inp > a.out", 1),
        ("-n 1 --ntasks-per-node=24", "module load ORCA\n./a", 1),
        ("-n 1 --ntasks-per-node=24", "python a.py", 0),
        ("-n 1 --ntasks-per-node=24", "module load openmpi\nsrun ./a", 0),
        ("-n 1 --ntasks-per-node=24", "module load openmpi\nmpirun -np 1 ./a", 0),
        ("-n 2 --ntasks-per-node=24", "module load openmpi\n./a", 0),
        ("-n 1", "module load openmpi\n./a", 0),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque", "toml"])
def test_the_slots_of_more_tasks_of_a_node_than_one(target: str, options: str, code: str, count: int) -> None:
    """Measured on Slurm 22.05: with -n 1 --ntasks-per-node=2, SLURM_TASKS_PER_NODE is 2."""
    text = f"{HEAD}{options}\n{code}\n"
    found = [one.why for one in job_file(text).remarks] if target == "toml" else reasons(text, target)
    why = "for an mpirun without hosts the node has 24 slots in Slurm, and one in the new job"
    assert found.count(why) == count


@pytest.mark.parametrize(("module", "count"), [("mpt", 1), ("hpe-mpi/2.25", 1), ("mpich", 0)])
@pytest.mark.parametrize("line", ["srun -n 8 ./a", "mpirun -np 8 ./a"])
def test_the_options_of_hpe_mpt(line: str, module: str, count: int) -> None:
    found = reasons(f"{HEAD}-N 2 -n 8\nmodule load {module}\n{line}\n", "torque")
    assert len([one for one in found if one.startswith("the mpirun of HPE MPT has other options")]) == count


@pytest.mark.parametrize(("other", "named"), [("", False), ("fi; if b; then\n", True)])
def test_the_last_mpi_of_a_branch(other: str, named: bool) -> None:
    modules = f"module swap PrgEnv-intel PrgEnv-gnu\n{other}module load openmpi/4.0.1\n"
    found = reasons(f"{HEAD}-N 2 -n 4\nif a; then\n{modules}fi\nmpirun ./a\n", "torque")
    assert any("with the module prgenv-gnu it needs others" in one for one in found) is named


@pytest.mark.parametrize("line", ["srun ./a", "mpirun ./a"])
@pytest.mark.parametrize(
    ("start", "exports", "named"),
    [("tools=gcc", True, False), ("tools=intel", False, False), ("tools=$1", False, True)],
)
def test_the_mpi_of_the_branch_that_runs(line: str, start: str, exports: bool, named: bool) -> None:
    branches = '[ "$tools" = "gcc" ]; then\n  module load foss/2021a\nelif [ "$tools" = "intel" ]; then'
    code = f"{start}\nif {branches}\n  module load intel-mpi/2021\nfi\n{line}"
    script = f"{HEAD}-N 2 --ntasks-per-node=8\n{code}\n"
    assert ("$(mpi_exports) " in convert(script, "torque").text) is exports, "which only Open MPI needs"
    for target in ("torque", "toml"):
        found = reasons(script, target)
        assert any("with the module foss/2021a it needs others" in one for one in found) is named


@pytest.mark.parametrize(
    ("options", "code", "count"),
    [
        ("--gres=gpu:1", "export CUDA_VISIBLE_DEVICES=0\npython a.py", 1),
        ("--gres=gpu:2", 'CUDA_VISIBLE_DEVICES="0,1" python a.py\nCUDA_VISIBLE_DEVICES=1 python b.py', 1),
        ("--gpus=1", "CUDA_VISIBLE_DEVICES=$(nvidia-smi -L | head -n 1 | cut -c 5) python a.py", 1),
        ("--gres=gpu:1", 'CUDA_VISIBLE_DEVICES="" python a.py', 0),
        ("--gres=gpu:1", "CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*} python a.py", 0),
        ("--gres=gpu:4 --exclusive", "CUDA_VISIBLE_DEVICES=0 python a.py", 0),
        ("-N 1", "CUDA_VISIBLE_DEVICES=0 python a.py", 0),
        ("--gres=gpu:1", "CUDA_VISIBLE_DEVICES=$1 python a.py", 1),
        ("--gres=gpu:2", "for i in 0 1; do\nCUDA_VISIBLE_DEVICES=$i python a.py &\ndone\nwait", 1),
        ("--gres=gpu:2", "for ((i=0; i<2; i++)); do export CUDA_VISIBLE_DEVICES=${i}; ./a & done; wait", 1),
        ("--gres=gpu:2", 'G=1\nCUDA_VISIBLE_DEVICES="$G" python a.py', 1),
        (
            "--gres=gpu:2",
            "for g in ${CUDA_VISIBLE_DEVICES//,/ }; do CUDA_VISIBLE_DEVICES=$g ./a & done; wait",
            0,
        ),
        ("--gres=gpu:2", "CUDA_VISIBLE_DEVICES=$SLURM_JOB_GPUS ./a", 0),
        ("--gres=gpu:1", "HIP_VISIBLE_DEVICES=0 srun ./a", 1),
        ("--gres=gpu:1", "CUDA_VISIBLE_DEVICES=0 srun ./a", 0),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque", "toml"])
def test_devices_that_the_script_numbers(target: str, options: str, code: str, count: int) -> None:
    found = reasons(f"{HEAD}{options}\n{code}\n", target)
    assert len([one for one in found if one.startswith("names the job's devices if Slurm hides")]) == count


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        ("--gres=gpu:1", "ROCR_VISIBLE_DEVICES=1,2,3 srun ./a", 1),
        ("--gres=gpu:2", "date\nexport CUDA_VISIBLE_DEVICES=1\nsrun -n 2 ./a", 2),
        ("--gres=gpu:2", 'CUDA_VISIBLE_DEVICES=""\nsrun ./a', 1),
        ("--gres=gpu:2 --exclusive", "GPU_DEVICE_ORDINAL=1 srun ./a", 1),
        ("-N 1", "CUDA_VISIBLE_DEVICES=1 srun --gres=gpu:2 ./a", 1),
        ("--gres=gpu:2", "env CUDA_VISIBLE_DEVICES=1 srun ./a", 1),
        ("--gres=gpu:2", "srun --export=ALL,CUDA_VISIBLE_DEVICES=1 ./a", 1),
        ("--gres=gpu:2", "srun env CUDA_VISIBLE_DEVICES=1 ./a", 0),
        ("--gres=gpu:2 --exclusive", "export CUDA_VISIBLE_DEVICES=0,1\nsrun ./a", 0),
        ("--gres=gpu:2", "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES srun ./a", 0),
        ("--gres=gpu:2", "CUDA_VISIBLE_DEVICES=1 python a.py\nsrun ./a", 0),
        ("--gres=gpu:2", "srun ./a\nexport CUDA_VISIBLE_DEVICES=1", 0),
        ("--gres=gpu:2", "srun bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID ./a'", 0),
        ("-N 1", "CUDA_VISIBLE_DEVICES=1 srun ./a", 0),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque", "toml"])
def test_devices_that_slurm_names_anew_in_each_step(target: str, options: str, code: str, line: int) -> None:
    text = f"{HEAD}{options}\n{code}\n"
    done = job_file(text) if target == "toml" else convert(text, target)
    found = [one.line for one in done.remarks if one.why.startswith("Slurm replaces it in each step")]
    first = text.count("\n", 0, text.index(code))
    assert found == [line + first] * bool(line)


@pytest.mark.parametrize(
    ("options", "code", "of_pbs"),
    [
        ("-N 1", "srun torchrun --nproc_per_node 2 a.py", False),
        ("-N 2", "srun torchrun --nproc_per_node 2 --nnodes 2 a.py", True),
        ("-N 1", "srun ./a", True),
    ],
)
def test_jobs_in_which_devices_of_the_script_take_effect(options: str, code: str, of_pbs: bool) -> None:
    """On one node jobgen starts torchrun without srun."""
    text = f"{HEAD}--gres=gpu:2 --ntasks-per-node=1 {options}\nexport CUDA_VISIBLE_DEVICES=1\n{code}\n"
    why = next(one.why for one in job_file(text).remarks if one.what == "CUDA_VISIBLE_DEVICES=1")
    assert why.endswith("it takes effect: delete it" + " (in a job for PBS Pro)" * of_pbs)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("export CUDA_VISIBLE_DEVICES=1\nmpirun -n 2 ./a", True),
        ("CUDA_VISIBLE_DEVICES=1 mpiexec -n 2 ./a", True),
        ("mpirun -x CUDA_VISIBLE_DEVICES=1 -n 2 ./a", True),
        ("mpirun -x CUDA_VISIBLE_DEVICES -n 2 ./a", False),
        ("export CUDA_VISIBLE_DEVICES=0,1\nmpirun -n 2 ./a", False),
        ("export CUDA_VISIBLE_DEVICES=1\npython a.py", False),
        ("export HIP_VISIBLE_DEVICES=1\nmpirun -n 2 ./a", False),
    ],
)
def test_devices_of_ranks_that_slurm_names_anew(code: str, named: bool) -> None:
    done = convert(f"#PBS -l select=1:ncpus=8:mpiprocs=2:ngpus=2\n{code}\n", "slurm")
    found = [one.line for one in done.remarks if one.why.startswith("Slurm replaces it in each step")]
    assert found == [3] * named


@pytest.mark.parametrize(
    ("options", "code", "count"),
    [
        ("-N 1 -n 16", "module load Chem/VASP/5.4.4\npython polaron.py", 1),
        ("-N 1 -n 16", "module load openmpi\npython run.py", 1),
        ("-N 1 -n 16", "module load cuda\npython run.py", 0),
        ("-N 1 -c 16", "module load Chem/VASP/5.4.4\npython polaron.py", 0),
        ("-N 2 --ntasks-per-node=1", "module load openmpi\npython run.py", 0),
        ("-n 4", "module load openmpi\nmpirun lmp", 0),  # each task is a node of one core
        ("-N 1 -n 16", "module load vasp\nexport OMP_NUM_THREADS=1\npython polaron.py", 0),
    ],
)
def test_ranks_that_a_program_may_start_itself(options: str, code: str, count: int) -> None:
    found = reasons(f"{HEAD}{options}\n{code}\n")
    assert len([one for one in found if one.startswith("is set to the cores of all tasks")]) == count


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ("-n 1", "singularity exec --cleanenv a.sif ./b", True),
        ("-n 1 -c 4", "A='apptainer run --nv -B /x:/y \\\n -e a.sif'\neval $A ./b", True),
        ("-n 1 -c 4", 'A="singularity exec --cleanenv $B/a.sif"\nC="$A python d.py"\neval $C', True),
        ("-n 1", "singularity exec a.sif ./b -e c", False),
        ("-n 1", "# singularity exec -e a.sif ./b\n./b", False),
        ("-n 1", "export SINGULARITYENV_OMP_NUM_THREADS=1\nsingularity exec -e a.sif ./b", False),
        ("-N 1 --exclusive", "singularity exec -e a.sif ./b", False),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_container_without_the_threads_of_the_job(
    target: str, options: str, code: str, named: bool
) -> None:
    found = [one for one in reasons(f"{HEAD}{options}\n{code}\n", target) if "from the program" in one]
    assert len(found) == named


@pytest.mark.parametrize(
    ("options", "ranks"),
    [("-n $SLURM_NTASKS --ntasks 1", 1), ("-n 8 --ntasks=1", 1), ("--ntasks=1 -n 8", 8), ("-n 8 -n 1", 1)],
)
def test_of_two_spellings_of_an_option_the_last_holds(options: str, ranks: int) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 8\nsrun {options} ./a\n")
    assert values(done.text)["ranks_per_node"] == ranks
