"""What a launcher or its MPI does by itself, and another one of the new job does not."""

from __future__ import annotations

import re

import pytest
import tomllib
from convert.conversions import body, convert, job_file, rendered, values

from jobgen.script.mpi_of_script import named_mpi
from jobgen.script.script import Script

SLURM = "#!/bin/bash\n#SBATCH -t 10 {}\n{}\n"


def _why(options: str, text: str, word: str, target: str = "pbspro") -> list[tuple[int, bool]]:
    """Return the line, and whether it is lost, of each remark of a conversion whose reason has a text."""
    done = convert(SLURM.format(options, text), target)
    return [(one.line, one.lost) for one in done.remarks if word in one.why]


@pytest.mark.parametrize("module", ["cray-mpich/8.1", "PrgEnv-gnu", "PrgEnv-cray/8.3.3"])
def test_cray_mpich_starts_by_pals_on_pbs_pro(module: str) -> None:
    text = f"module load {module}\nsrun ./a"
    done = convert(SLURM.format("-N 2 --ntasks-per-node=4", text), "pbspro")
    assert done.text.endswith('\nmpiexec -n 8 --ppn 4 --cpu-bind none --hostfile "$PBS_NODEFILE" ./a\n')
    assert "\nmpirun -n" in convert(SLURM.format("-N 2 --ntasks-per-node=4", text), "torque").text


@pytest.mark.parametrize(
    ("options", "new"),
    [
        ("--cpu-bind=cores", "--depth 2 --cpu-bind depth {} ./a"),
        ("--cpu-bind=sockets", "--cpu-bind socket {} ./a"),
        ("--cpu-bind=none", "--cpu-bind none {} ./a"),
        ("-D /data", "--cpu-bind none {} --wdir /data ./a"),
        ("-l", "--cpu-bind none {} --label ./a"),
    ],
)
def test_options_of_pals(options: str, new: str) -> None:
    lines, _ = body("-N 2 --ntasks-per-node=4 -c 2", f"module load cray-mpich\nsrun {options} ./a")
    assert lines[-1] == "mpiexec -n 8 --ppn 4 " + new.format('--hostfile "$PBS_NODEFILE"')


@pytest.mark.parametrize(("target", "option"), [("pbspro", " --hosts node1 "), ("torque", " -hosts node1 ")])
def test_one_host(target: str, option: str) -> None:
    text = "module load cray-mpich\nsrun -N 1 -n 1 -w node1 ./a\nsrun ./b"
    assert option in convert(SLURM.format("-N 2 --ntasks-per-node=2", text), target).text


@pytest.mark.parametrize(
    ("module", "named"), [("cray-mpich", True), ("PrgEnv-gnu", True), ("mpich", False), ("openmpi", False)]
)
def test_a_job_file_names_the_launcher_of_another_scheduler(module: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 2 --ntasks-per-node=2", f"module load {module}\nmpirun ./a"))
    assert ("mpi = pals" in str(done.remarks)) == named
    assert values(done.text)["mpi"] == ("openmpi" if module == "openmpi" else "mpich")


@pytest.mark.parametrize(
    ("text", "option", "named"),
    [
        ("spack load mpich@4.1\nsrun ./a", "-ppn", True),
        ("spack load intel-oneapi-mpi\nsrun ./a", "-ppn", True),
        ("spack load mpich\nspack unload mpich\nspack load openmpi\nsrun ./a", "ppr:", True),
        ("spack install mpich\nsrun ./a", "ppr:", False),
        ("spack load hpcc@develop fft=fftw3 %gcc ^openmpi\nsrun ./a", "ppr:", True),
        ("spack load amber^mpich\nsrun ./a", "-ppn", True),
    ],
)
def test_an_mpi_that_spack_loads(text: str, option: str, named: bool) -> None:
    done = convert(SLURM.format("-N 2 --ntasks-per-node=2", text), "pbspro")
    assert option in done.text.rpartition("mpirun ")[2]
    assert ("no module or variable names the MPI" not in str(done.remarks)) == named


@pytest.mark.parametrize(
    ("option", "lost", "why", "command"),
    [
        ("--multi-prog", True, "starts one program with all ranks", ["true"]),
        ("--container=/bundle", True, "start outside of it", ["./a"]),
        ("--bcast=/tmp/a", False, "copies the program", ["./a"]),
        ("--pty", False, "no terminal", ["./a"]),
        ("--chdir=/tmp", False, "in the directory of the job (in a job for PBS Pro)", ["./a"]),
        ("-D /tmp", False, "in the directory of the job (in a job for PBS Pro)", ["./a"]),
    ],
)
def test_options_of_srun_about_its_program(option: str, lost: bool, why: str, command: list[str]) -> None:
    done = job_file(SLURM.format("-N 2 --ntasks-per-node=2", f"srun {option} ./a"))
    assert [one.lost for one in done.remarks if why in one.why] == [lost]
    found = values(done.text)
    assert found["command"] == command
    assert ("launcher_arg" in found) == (option[:3] in ("--c", "-D ") and not lost)


@pytest.mark.parametrize(
    ("options", "lost"),
    [("-r 1", True), ("-r1", True), ("--relative=1", True), ("--relative 2", True), ("-r 0", False)],
)
def test_ranks_that_begin_on_another_node(options: str, lost: bool) -> None:
    done = job_file(SLURM.format("-N 2 --ntasks-per-node=2", f"srun -N 1 {options} ./a"))
    assert any("first node of the job" in one.why for one in done.remarks if one.lost) == lost


@pytest.mark.parametrize(
    ("option", "named"),
    [("--gres=gpu:p100:1", True), ("--gpus-per-node=a100:1", True), ("--gres=gpu:1", False)],
)
def test_a_type_of_gpus_is_of_its_scheduler(option: str, named: bool) -> None:
    done = job_file(SLURM.format(f"-N 1 {option}", "./a"))
    assert any("is a type of Slurm" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("line", "what"),
    [("srun ./a", "all cores and GPUs"), ("srun -c 2 ./a", "all GPUs"), ("./a", "all cores")],
)
def test_whole_nodes_and_the_cores_of_a_step(line: str, what: str) -> None:
    done = job_file(SLURM.format("-N 2 --exclusive", line))
    assert any(what in one.why for one in done.remarks if one.what == "exclusive")


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ('C="srun ./a > log"', "> log"),
        ('C="srun ./a 2>&1 | tee log"', "2>&1 | tee log"),
        ('C="srun ./a; date"', "srun ./a; date"),
        ('C="srun ./a"', ""),
        ("C=\"srun ./a 'x > 2'\"", ""),
    ],
)
def test_operators_in_a_variable_are_words(setting: str, what: str) -> None:
    done = job_file(SLURM.format("-N 1", f"{setting}\n$C"))
    assert [one.what for one in done.remarks if "reads no such signs" in one.why] == [what] * bool(what)
    assert ">" not in str(values(done.text)["command"]).replace("x > 2", "")


@pytest.mark.parametrize(
    ("line", "set_"),
    [
        ("ibrun ./a", True),
        ("ccmrun ./a", True),
        ("bede-mpirun ./a", True),
        ("Mpirun ./a", True),
        ("./a", False),
    ],
)
def test_threads_of_the_ranks_of_other_launchers(line: str, set_: bool) -> None:
    """PBS Pro sets the cores of the node; only what the script starts beside the launcher gets a remark."""
    done = convert(SLURM.format("-N 2 --ntasks-per-node=4 -c 2", line), "pbspro")
    assert ("export OMP_NUM_THREADS=2" in done.text) == set_
    assert ("unset OMP_NUM_THREADS" in done.text) != set_
    assert not [one for one in done.remarks if "of one rank" in one.why]


@pytest.mark.parametrize(
    ("line", "named"), [("$A x", True), ("${A}/b", True), ("${A}=$((2 + 1))", False), ("$A=2", False)]
)
def test_a_program_beside_the_ranks_is_no_assignment(line: str, named: bool) -> None:
    code = f"A=$(pwd)\n{line}\nsrun ./a"
    done = convert(SLURM.format("-N 2 --ntasks-per-node=4 -c 2", code), "pbspro")
    assert [one.line for one in done.remarks if "of one rank" in one.why] == [4] * named


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_the_library_of_slurm_for_intel_mpi(target: str) -> None:
    text = "module load intel-mpi\nexport I_MPI_PMI_LIBRARY=/usr/lib64/libpmi.so\nsrun ./a"
    assert _why("-N 2", text, "unset it", target) == [(4, True)]


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("--resv-ports", "no ports are reserved"),
        ("--resv-ports=4", "no ports"),
        ("--cpus-per-gpu=4", "may use all cores"),
    ],
)
def test_options_of_a_step_that_say_what_mpirun_does(option: str, word: str) -> None:
    assert _why("-N 2 --gpus-per-node=1", f"srun {option} ./a", word) == [(3, False)]


def test_a_program_of_mpirun_is_no_file_of_the_script() -> None:
    text = "mpirun -np 2 gmx_mpi mdrun\nsrun gmx_mpi mdrun"
    assert "in the working directory" not in str(job_file(SLURM.format("-N 1 -n 2", text)).remarks)


@pytest.mark.parametrize(("program", "named"), [("hostname", False), ("env", True), ("./a", True)])
def test_tools_read_no_variable_of_a_rank(program: str, named: bool) -> None:
    assert bool(_why("-N 2", f"srun {program}", "programs that read it find")) == named


def test_a_number_of_ranks_that_is_added_needs_no_remark() -> None:
    text = "module load openmpi\nmpirun ./a"
    assert not _why("-N 2 --ntasks-per-node=2", text, "no number of ranks")


@pytest.mark.parametrize(
    ("options", "text", "resources"),
    [
        ("-n 4", "python a.py", "nodes=1:ppn=4"),
        ("-n 4 --mem-per-cpu=1G", "python a.py", "nodes=1:ppn=4,mem=4gb"),
        ("-n 4", "srun ./a", "nodes=4"),
        ("-n 4", "mpirun ./a", "nodes=4"),
        ("-N 2 -n 4", "python a.py", "nodes=2:ppn=2"),
        ("-n 4", "export F=`generate_pbs_nodefile`\njulia --machine-file $F a.jl", "nodes=4"),
        ("-n 4", "F=$(tools/generate_pbs_nodefile.pl)\njulia --machine-file $F a.jl", "nodes=4"),
        ("-n 4", "G=bin/generate_pbs_nodefile\njulia --machine-file $($G) a.jl", "nodes=4"),
        ("-n 4", "scontrol show hostname > hosts\njulia --machine-file hosts a.jl", "nodes=4"),
    ],
)
def test_tasks_that_no_launcher_starts_are_on_one_node_of_torque(
    options: str, text: str, resources: str
) -> None:
    done = convert(SLURM.format(options, text), "torque")
    assert f"#PBS -l {resources}" in done.text.replace("\n#PBS -l mem", ",mem")
    assert ("one node is requested" in str(done.remarks)) == ("-N" not in options and text == "python a.py")


@pytest.mark.parametrize(("options", "what"), [("-n 4", "4 tasks"), ("-N 2", "2 nodes"), ("-n 1", "")])
def test_tasks_that_no_launcher_starts(options: str, what: str) -> None:
    found = _why(options, "python a.py", f"no launcher starts it on the {what}")
    assert len(found) == bool(what)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('C="mpirun -n 4 ./a"\neval "$C"', 3),
        ('C="mpirun -n 4 ./a"\n./tests -command "$C"', 3),
        ("./tests -command 'mpirun -n N ./a'", 3),
        ('M="mpirun -n 4"\nR="$M ./a"\n$R x', 3),
        ('bash -c "cd x; /opt/bin/mpiexec -n 4 ./a"', 3),
        ('export VASP="mpirun -n 4 vasp_std"\npython a.py', 3),
        ("cat > a.sh <<END\n# mpirun -n 2\nmpirun -n 4 ./a\nEND\nbash a.sh", 5),
        ("echo 'mpirun -n 4 ./a' > a.sh", 3),
        ('bash -c "mpirun --hostfile h -n 4 ./a"', None),
        ('U="use mpirun -n 4"\necho "$U"', None),
        ('grep "mpirun -n 4" log', None),
        ("cat <<END\nmpirun -n 4 ./a\nEND", None),
        ("cat > b.sh <<END\n#SBATCH -N 2\nmpirun -n 4 ./a\nEND", None),
        ("B='#!/bin/bash\n#SBATCH -N 2\nmpirun -n 4 ./a'\nsbatch <<< \"$B\"", None),
        ('C="mpirun -n 4"\n$C ./a', None),
        ('H="$(mpirun -n 4 hostname | sort)"\necho "$H"; ./a $H', None),
    ],
)
def test_mpirun_in_a_text_has_no_hosts(text: str, line: int | None) -> None:
    """Under Slurm it has those of the job. On one node it needs none."""
    word = "it needs the hosts"
    assert _why("-N 2 --ntasks-per-node=2", text, word) == ([(line, False)] if line else [])
    assert not _why("-N 1 --ntasks-per-node=4", text, word)


@pytest.mark.parametrize(
    "found", ["$(which mpirun)", "`which mpirun`", "$(command -v mpirun)", "/opt/mpi/bin/mpirun"]
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_launcher_that_a_command_finds(target: str, found: str) -> None:
    head = "-N 4 --ntasks-per-node=32"
    named = convert(
        SLURM.format(head, f"module load openmpi\nRUN={found}\nexport A=1\n$RUN -np 128 ./a"), target
    )
    assert '$RUN --hostfile "$PBS_NODEFILE" $(mpi_exports) -np 128 ./a' in named.text
    direct = convert(SLURM.format(head, f"module load openmpi\nexport A=1\n{found} -np 128 ./a"), target)
    assert f'{found} --hostfile "$PBS_NODEFILE" $(mpi_exports) -np 128 ./a' in direct.text


@pytest.mark.parametrize(
    ("modules", "title"),
    [
        ("intel-mpi-benchmarks", None),
        ("openmpi-examples", None),
        ("openmpi/4.1 intel-mpi-benchmarks", "openmpi"),
        ("mpich_tests openmpi-gcc/4.1", "openmpi"),
        ("intel-mpi/2021", "intel"),
    ],
)
def test_programs_for_any_mpi(modules: str, title: str | None) -> None:
    text = f"#!/bin/bash\n#SBATCH -N 2\nmodule load {modules}\nsrun ./a\n"
    assert named_mpi(Script(text.encode(), "slurm")) == title


@pytest.mark.parametrize(
    ("body", "late"),
    [
        ("srun hostname\nml OpenMPI/4.1\nsrun ./a", True),
        ("ml OpenMPI/4.1\nsrun hostname", False),
        ("ml GCC/12\nsrun hostname\nml OpenMPI/4.1\nsrun ./a", False),
        ("srun hostname\nml GCC/12", False),
        ("run() {\nsrun hostname\n}\nml OpenMPI/4.1\nrun", False),
        ("run() {\nsrun hostname\n}\nmain() {\nrun\n}\nml OpenMPI/4.1\nmain", False),
        ("run() {\nsrun hostname\n}\nrun\nml OpenMPI/4.1\nsrun ./a", True),
    ],
)
def test_a_launch_above_the_module_of_its_mpi(body: str, late: bool) -> None:
    done = convert(SLURM.format("-N 2", body), "torque")
    found = [one.what for one in done.remarks if "openmpi/4.1, which may bring mpirun" in one.why]
    assert found == ["srun hostname"] * late


@pytest.mark.parametrize(
    ("line", "new", "named"),
    [
        ("srun -u python a.py", "env PYTHONUNBUFFERED=1 python a.py", False),
        ("srun --unbuffered A=1 ./a", "A=1 ./a", True),
        ("srun -u singularity exec i.sif python3 a.py", "env PYTHONUNBUFFERED=1 singularity exec", False),
        ("C='srun -u'\n$C ./a > log", "./a > log", True),
        ("for i in 1 2; do srun -u ./a; done\nsrun -u ./b", "./b", True),
        ("f() { srun -u bash -c 'python a.py'; }\nf", "bash -c 'python a.py'", True),
        ("srun -u bash -c 'python -u a.py'", "bash -c 'python -u a.py'", False),
        ("srun -u python -u a.py", "python -u a.py", False),
        ("export PYTHONUNBUFFERED=1\nsrun -u ./a.sh", "./a.sh", False),
        ("srun -u hostname", "hostname", False),
        ("srun ./a", "./a", False),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_program_without_the_terminal_of_an_unbuffered_step(
    line: str, new: str, named: bool, target: str
) -> None:
    """Measured: srun -u and Open MPI give a rank a terminal as its output, the script and hydra do not."""
    done = convert(SLURM.format("-N 1 -n 1", line), target)
    assert re.search(rf"(^|[ ;]){re.escape(new)}", done.text, re.MULTILINE)
    assert ("PYTHONUNBUFFERED=1 " in done.text) == ("PYTHONUNBUFFERED=1 " in new)
    assert [one.what for one in done.remarks if "no terminal" in one.why] == ["--unbuffered"] * named


@pytest.mark.parametrize(
    ("module", "program", "new", "named"),
    [
        ("openmpi", "python a.py", "mpirun -np 4", False),
        ("openmpi", "./a", "mpirun -np 4", False),
        ("mpich", "python a.py", "env PYTHONUNBUFFERED=1 mpirun -n 4", False),
        ("mpich", "./a", "mpirun -n 4", True),
    ],
)
def test_ranks_without_the_terminal_of_an_unbuffered_step(
    module: str, program: str, new: str, named: bool
) -> None:
    done = convert(SLURM.format("-N 1 -n 4", f"module load {module}\nsrun -u {program}"), "pbspro")
    assert f"\n{new} " in done.text
    assert any("no terminal" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("export TMPDIR=/a XDG_CACHE_HOME=/b", "-x TMPDIR -x XDG_CACHE_HOME"),
        ("HOME=/a\nexport HOME", "-x HOME"),
        ("declare -x DISPLAY=:1", "-x DISPLAY"),
        ("set -a\nBASH_ENV=a.sh", "-x BASH_ENV"),
        ("if a; then export TMPDIR=/a; fi", "-x TMPDIR"),
        ("f() { export TMPDIR=/a; }\nf", "-x TMPDIR"),
        ("export ROCR_VISIBLE_DEVICES=0", "-x ROCR_VISIBLE_DEVICES"),
        ("TMPDIR=/a python b.py", ""),
        ("TMPDIR=/a", "-x TMPDIR"),
        ("CUDA_VISIBLE_DEVICES=0,1", "-x CUDA_VISIBLE_DEVICES"),
        ("XDG_CACHE_HOME=/a", ""),
        ("export A=1 OMPI_MCA_btl=tcp PMI_RANK=0", ""),
    ],
)
@pytest.mark.parametrize("launch", ["srun ./a", "mpirun ./a"])
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_the_ranks_get_variables_of_a_node_that_the_script_exports(
    line: str, names: str, launch: str, target: str
) -> None:
    done = convert(SLURM.format("-N 2 -n 4", f"module load openmpi\n{line}\n{launch}"), target)
    found = re.findall(r"^mpirun .*\$\(mpi_exports\)((?: -x \w+)*)", done.text, re.MULTILINE)
    assert found == [f" {names}" if names else ""]


def test_each_limit_is_that_of_the_first_node() -> None:
    text = "ulimit -c 0\nulimit -s unlimited\nsrun ./a"
    assert _why("-N 2 -n 4", text, "on the first node only") == [(3, False), (4, False)]


@pytest.mark.parametrize(("option", "named"), [("-G 8", False), ("-G 2", True), ("--gres=gpu:4", False)])
def test_all_devices_of_the_job_are_those_of_its_steps(option: str, named: bool) -> None:
    assert bool(_why("-N 2 -n 8 --gres=gpu:4", f"srun {option} ./a", "sees all devices")) is named


@pytest.mark.parametrize(("launch", "names"), [("srun ./a", ""), ("mpirun ./a", " -x CUDA_VISIBLE_DEVICES")])
def test_the_ranks_do_not_get_devices_that_srun_replaces(launch: str, names: str) -> None:
    text = f"module load openmpi\nexport CUDA_VISIBLE_DEVICES=0,1\n{launch}"
    done = convert(SLURM.format("-N 2 -n 4 --gres=gpu:2", text), "pbspro")
    assert re.findall(r"^mpirun .*\$\(mpi_exports\)((?: -x \w+)*)", done.text, re.MULTILINE) == [names]


@pytest.mark.parametrize(("head", "named"), [("", False), ("#SBATCH -t 5\n", True)])
def test_a_script_without_directives_requests_no_cores(head: str, named: bool) -> None:
    done = convert(f"#!/bin/bash\n{head}mpirun -np 64 ./a\n", "pbspro", "slurm")
    assert any("more than the 1 of the request" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("-N 1 -n 4", "mpirun -np $N --map-by socket:pe=8 --oversubscribe ./a", 8),
        ("-N 2 -n 8", "mpirun --map-by node:PE=6 -oversubscribe -np 4 ./a", 6),
        ("-N 1 -n 4", "mpirun -np 9 --oversubscribe ./a", None),
        ("-N 1 -n 4 -c 8", "mpirun -np 8 --map-by socket:pe=8 --oversubscribe ./a", None),
        ("-N 1 -n 4 --exclusive", "mpirun -np 4 --map-by socket:pe=8 --oversubscribe ./a", None),
    ],
)
def test_ranks_that_share_slots_do_not_share_the_cores_that_each_is_bound_to(
    options: str, line: str, named: int | None
) -> None:
    done = convert(SLURM.format(options, f"module load openmpi\n{line}"), "pbspro")
    found = [one.why.split()[1] for one in done.remarks if "more than the" in one.why]
    assert found == ([str(named)] if named else [])


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("module load mpich\nsrun ./a", "--mpi=pmi2 is added: the script has the plugin of the cluster"),
        (
            "module load cray-mpich\nsrun ./a",
            "--mpi=cray_shasta is added, which clusters with these modules have",
        ),
        ("module load cray-mpich\nsrun --mpi=cray_shasta ./a", ""),
        ("module load openmpi\nsrun --mpi=pmix ./a", ""),
        ("srun --container-image=i ./a", "jobgen mounts that of the job, and starts there"),
        ("srun --container-image=i --container-workdir=/w ./a", ""),
    ],
)
def test_what_srun_leaves_to_the_cluster_and_to_the_image(line: str, remark: str) -> None:
    done = job_file(SLURM.format("-N 2 --ntasks-per-node=2", line))
    found = [one.why for one in done.remarks if "is added" in one.why or "mounts that of" in one.why]
    assert [one.endswith(remark) for one in found] == [True] * bool(remark)


@pytest.mark.parametrize("line", ["srun ./a", "srun --mpi=cray_shasta ./a"])
def test_the_plugin_of_clusters_of_cray_is_kept(line: str) -> None:
    done = job_file(SLURM.format("-N 2 --ntasks-per-node=2", f"module load cray-mpich\n{line}"))
    assert tomllib.loads(done.text)["slurm"]["launcher_arg"] == ["--mpi=cray_shasta"]
    assert "--mpi=cray_shasta bash" in rendered(done.text)


@pytest.mark.parametrize(("launcher", "guess"), [("mpiexec.hydra -n 4", True), ("mpirun_rsh -np 4", False)])
def test_a_command_of_two_mpis_names_none(launcher: str, guess: bool) -> None:
    text = SLURM.format("-N 2 -n 4", f"module load intel/2019\n{launcher} ./a")
    assert ("mpi = mpich is a guess" in str(job_file(text).remarks)) is guess
    impi = text.replace("intel/2019", "impi/2019")
    assert "is a guess" not in str(job_file(impi).remarks)


@pytest.mark.parametrize(
    ("modules", "mpi", "guess"),
    [
        ("gc/7.4-foss-2016a intel/2020", "openmpi", True),
        ("gc/7.4-foss-2016a", "openmpi", False),
        ("intel/2020 gc/7.4-foss-2016a", "openmpi", False),
        ("gc/7.4-foss-2016a intel/2020a", "intel", False),
        ("gc/7.4-iimpi-2020a intel/2020", "intel", False),
        ("openmpi/4.0-gcc9 intel/2019", "openmpi", False),
        ("foss/2020a compilers/intel/19", "openmpi", False),
    ],
)
def test_the_mpi_of_a_library_before_other_compilers_is_a_guess(modules: str, mpi: str, guess: bool) -> None:
    done = job_file(SLURM.format("-N 2 -n 4", f"module load {modules}\nmpirun ./a"))
    assert values(done.text)["mpi"] == mpi
    assert ("is a guess" in str(done.remarks)) is guess


@pytest.mark.parametrize(("launcher", "guess"), [("mpirun -n 4", True), ("srun", False)])
def test_a_setting_of_the_network_of_cray_names_no_mpirun(launcher: str, guess: bool) -> None:
    text = SLURM.format("-N 2 -n 4", f"export MPICH_GNI_NDREG_ENTRIES=1024\n{launcher} ./a")
    assert ("is a guess" in str(job_file(text).remarks)) is guess


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("srun -w node1 ./a", "node1"),
        ("srun --nodelist=c[01-02] ./a", "c[01-02]"),
        ('srun -w "$H" ./a', ""),
        ("srun -w $(hostname) ./a", ""),
        ("mpirun --hostfile hosts -np 4 ./a", "hosts"),
        ("srun hostname > hosts\nmpirun --hostfile hosts -np 4 ./a", ""),
        ("cp a hosts\nmpirun -machinefile ./hosts -np 4 ./a", ""),
        ("mpirun --hostfile $H -np 4 ./a", ""),
        ("mpirun -host node1 -np 4 ./a", "node1"),
        ("mpirun -host $H -np 4 ./a", ""),
    ],
)
def test_a_launcher_that_names_nodes_of_the_old_cluster(code: str, named: str) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH -N 1 -n 4 -t 10\n{code}\n", "pbspro")
    assert [one.what for one in done.remarks if "of the old cluster" in one.why] == [named] * bool(named)
