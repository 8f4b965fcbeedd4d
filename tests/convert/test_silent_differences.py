"""Differences between a script and its conversion that depend on what a launcher or a scheduler does by itself."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import tomllib
from convert.conversions import body, convert, job_file, remarks, values

from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.script.script import Script

SLURM = "#!/bin/bash\n#SBATCH -t 10 {}\n{}\n"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("-N 2 --exclusive", "cores and GPUs"),
        ("-N 2 -c 4 --exclusive", "cores and GPUs"),
        ("-N 2 -c 4 --gpus-per-node=4 --exclusive", "cores and GPUs"),
        ("-N 2 --exclusive=user", ""),
    ],
)
def test_whole_nodes_have_more_than_the_request(options: str, what: str) -> None:
    done = convert(SLURM.format(options, "srun ./a"), "pbspro")
    why = [one.why.partition(" of the nodes")[0] for one in done.remarks if one.what == "--exclusive"]
    assert why == [f"all {what}"] * bool(what)


@pytest.mark.parametrize("launcher", ["torchrun --nproc-per-node=4", "accelerate launch --num_processes 8"])
def test_the_devices_of_whole_nodes_are_those_of_the_launcher(launcher: str) -> None:
    text = SLURM.format("-N 2 --exclusive", f"srun {launcher} t.py --device cuda")
    assert ":ngpus=4" in convert(text, "pbspro").text
    assert values(job_file(text).text)["gpus_per_node"] == 4


def test_a_job_file_names_what_whole_nodes_have() -> None:
    done = job_file(SLURM.format("-N 1 -c 4 --exclusive", "./a"))
    assert ["GPUs of the node" in one.why for one in done.remarks if one.what == "exclusive"] == [True]


@pytest.mark.parametrize("option", ["--gpus-per-node=2", "--gres=gpu:a100:2", "--gpus=4"])
def test_whole_nodes_have_more_gpus_than_the_request(option: str) -> None:
    text = SLURM.format(f"-N 2 -c 4 {option} --exclusive", "srun ./a")
    why = [one.why for one in convert(text, "pbspro").remarks if one.what == "--exclusive"]
    assert "has 2 of the GPUs of each node" in "".join(why)
    why = [one.why for one in job_file(text).remarks if one.what == "exclusive"]
    assert "all GPUs of the node" in "".join(why)
    assert "2 of the GPUs" in "".join(why)


LOGS = [
    ("-o out.txt", "./a > out.txt", True),
    ("-o out.txt", "for i in 1 2; do ./a; done >> ./out.txt", True),
    ("-o out.txt -e err.txt", "./a 2> err.txt", True),
    ("-o out.txt", 'F=out.txt\n./a &> "$F"', True),
    ("-o out_%j.txt", "./a > out_${SLURM_JOB_ID}.txt", True),
    ("-J name -o %x.txt", "./a > $SLURM_SUBMIT_DIR/name.txt", True),
    ("-o out.txt", "cd $SLURM_SUBMIT_DIR\n./a > out.txt", True),
    ("-o out.txt", "cd /data\n./a > out.txt", False),
    ("-o /data/out.txt", "./a > out.txt", False),
]


@pytest.mark.parametrize(("options", "code", "lost"), LOGS)
def test_a_log_that_is_also_a_file_of_the_script(options: str, code: str, lost: bool) -> None:
    """PBS copies the log over the file when the job has ended."""
    done = convert(SLURM.format(options, code), "torque")
    assert [one.lost for one in done.remarks if "copies the log over it" in one.why] == [lost]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("-o out.txt", "./a < out.txt"),
        ("-o out.txt", "./a 2>&1"),
        ("-o out.txt", "./a > results/out.txt"),
        ("-o logs/out.txt", "./a > out.txt"),
        ("-o /dev/null", "./a > /dev/null"),
    ],
)
def test_another_file_than_the_log(options: str, code: str) -> None:
    done = convert(SLURM.format(options, code), "pbspro")
    assert not [one for one in done.remarks if "copies the log over it" in one.why]


@pytest.mark.parametrize(
    "directive", ["-l select=1:ncpus=1\n#PBS -o host:out", "-l nodes=1:ppn=1\n#PBS -o out"]
)
def test_slurm_writes_the_log_into_the_file_of_the_script(directive: str) -> None:
    done = convert(f"#PBS {directive}\ncd $PBS_O_WORKDIR\n./a > out", "slurm")
    assert [one.lost for one in done.remarks if "copies the log over it" in one.why] == [False]


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("srun solver", True),
        ("module load gcc\nsrun -n 1 my-solver x", True),
        ("srun ./solver", False),
        ("srun hostname", False),
        ("module load solver/1.0\nsrun solver", False),
        ("export PATH=/opt/solver/bin:$PATH\nsrun solver", False),
    ],
)
def test_a_program_that_srun_finds_in_the_directory(code: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1", code))
    assert any("in the working directory" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("mpirun -np 4 ./a\n./b > b.txt", [4]),
        ("python p.py\nmpirun -np 4 ./a\n./b\necho end", [3, 5]),
        ("mpirun -np 1 ./a\n./b", []),
        ("export OMP_NUM_THREADS=2\nmpirun -np 4 ./a\n./b", []),
    ],
)
def test_programs_beside_the_ranks_have_the_threads_of_a_rank(code: str, lines: list[int]) -> None:
    done = job_file(f"#!/bin/bash\n#PBS -l select=1:ncpus=40:mpiprocs=4\n{code}\n")
    assert [one.line for one in done.remarks if "finds OMP_NUM_THREADS" in one.why] == lines


@pytest.mark.parametrize(
    ("last", "works"),
    [
        ("conda env create", True),
        ("conda install -y numpy", True),
        ("mamba update --all", True),
        ("micromamba -y create -n x", True),
        ("conda run -n x prepare", True),
        ("spack install hdf5", True),
        ("source work.sh", True),
        ("conda activate x", False),
        ("spack env activate x", False),
        ("conda deactivate", False),
    ],
)
def test_the_status_of_a_script_that_installs_something(last: str, works: bool) -> None:
    done = job_file(SLURM.format("-N 1", f"cd /data\n{last}"))
    assert any("the job ends with 0" in one.why for one in done.remarks) == works


def test_options_of_mpirun_that_print_where_the_ranks_run() -> None:
    line = "mpirun -verbose --display-map -report-bindings --tag-output -np 4 ./a"
    text = f"#!/bin/bash\n#PBS -l select=1:ncpus=4:mpiprocs=4\n{line}\n"
    made = job_file(text)
    assert values(made.text)["launcher_arg"] == ["-verbose", "--display-map", "--tag-output"]
    assert [one.what for one in made.remarks if "would report none" in one.why] == ["-report-bindings"]
    done = convert(text, "slurm")
    assert "srun --ntasks=4 --label" in done.text
    assert ("--tag-output", "srun --label writes RANK: before a line") in {
        (one.what, one.why) for one in done.remarks
    }
    printed = [(one.what, one.lost) for one in done.remarks if "does not print" in one.why]
    assert sorted(printed) == [("--display-map", False), ("-report-bindings", False), ("-verbose", False)]


CONTAINERS = [
    "singularity exec i.sif",
    "apptainer exec --nv -B /a:/b i.sif",
    "docker run --rm -v /a:/b i",
    "ch-run -b /a i --",
]


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_launcher_in_a_container_stays_there(container: str) -> None:
    line = f"{container} mpirun -n 8 prog x"
    new, found = body("-l select=1:ncpus=8:mpiprocs=8", line, "slurm")
    assert line in new
    assert (False, 4, line[:60]) in found
    new, found = body("-N 2 -n 8", line)
    assert line in new
    assert (False, 4, line[:60]) in found
    done = job_file(SLURM.format("-N 1 -n 8", line))
    options = values(done.text)
    assert options["command"] == line.split()
    assert options["launcher"] == "none"
    assert (True, 3, "mpirun") in remarks(done)


def test_a_launcher_around_a_container_with_a_launcher_is_refused() -> None:
    done = job_file(SLURM.format("-N 1 -n 8", "srun -n 8 singularity exec i.sif mpirun -n 1 prog"))
    assert any(one.lost and "is a launcher, which jobgen starts itself" in one.why for one in done.remarks)


@pytest.mark.parametrize("line", ["{word}", "if true; then echo a", "(cd x; ls", 'echo "a', "echo $((1 + 2)"])
def test_text_that_the_parser_completes_cannot_be_read(line: str) -> None:
    text = SLURM.format("-N 1", f"{line}\n./a")
    for done in (convert(text, "pbspro"), job_file(text)):
        assert any("cannot be read" in one.why or "bash cannot read" in one.why for one in done.remarks)


def test_a_comment_of_a_text_that_cannot_be_read_names_nothing() -> None:
    text = "for i in 1 2\n{\n # sbatch a.sh $SLURM_JOBID\n sbatch $i.sh\n}"
    found = remarks(convert(SLURM.format("-N 1", text), "pbspro"))
    assert [one for one in found if one[2] in ("sbatch", "SLURM_JOBID")] == [(True, 6, "sbatch")]


@pytest.mark.parametrize("option", ["-machinefile", "-hostfile", "--hostfile", "-f"])
@pytest.mark.parametrize(
    ("before", "file", "own"),
    [
        ("", "/home/me/hosts", True),
        ("H=/home/me/hosts", "$H", True),
        ("", "$1", True),
        ("", "$PBS_NODEFILE", False),
        ("H=$PBS_NODEFILE", "$H", False),
        ("sort -u $PBS_NODEFILE > hosts", "hosts", False),
        ("H=hosts; uniq $PBS_NODEFILE > $H", "$H", False),
        ("H=$(mktemp); cp $PBS_NODEFILE $H", "$H", False),
        ("", "<(uniq $PBS_NODEFILE)", False),
    ],
)
def test_a_file_of_hosts_of_the_user_is_named(option: str, before: str, file: str, own: bool) -> None:
    line = f"mpirun -np 8 {option} {file} ./a"
    done = job_file(f"#!/bin/bash\n#PBS -l nodes=2:ppn=4\n{before}\n{line}\n")
    why = "is a file that the script does not make"
    assert [(one.line, one.lost) for one in done.remarks if why in one.why] == [(4, True)] * own


@pytest.mark.parametrize(
    ("commands", "program", "inside"),
    [
        ("make", "./prog", False),
        ("cp /x/prog .", "srun prog", False),
        ("pip install -e .", "console x", True),
        ("pip install deepspeed", "deepspeed a.py", True),
        ("make -C src install", "console x", True),
        ("singularity pull x.sif docker://a/b", "srun singularity exec x.sif ./a", True),
        ("cp /x/x.sif .", "srun singularity exec x.sif ./a", True),
        ("cp /x/y.sif .", "srun singularity exec x.sif ./a", False),
        ("enroot import -o x.sqsh docker://a", "srun --container-image=$PWD/x.sqsh ./a", True),
        ("python data.py", "python train.py", False),
    ],
)
def test_what_installs_commands_or_makes_an_image_runs_before_the_job_looks_for_them(
    commands: str, program: str, inside: bool
) -> None:
    options = values(job_file(SLURM.format("-N 1 -n 4", f"./first\n{commands}\n./data\n{program}")).text)
    assert (commands in options.get("setup", "")) is inside
    assert (commands in options["before"]) is not inside
    assert "./data" in options["before"]


@pytest.mark.parametrize(
    ("module", "line", "ends"),
    [
        ("", "srun ./a", True),
        ("", "srun python t.py", True),
        ("# module load Horovod; srun python hvd.py", "srun python t.py", True),
        ("", "srun python hvd.py", False),
        ("", "srun -K ./a", False),
        ("", "srun --kill-on-bad-exit=1 ./a", False),
        ("", "srun -n 1 ./a", False),
        ("module load openmpi", "srun ./a", False),
        ("module load openmpi", "srun bash a.sh", True),
        ("module load openmpi", "srun python t.py", True),
    ],
)
def test_ranks_that_end_with_another_one_are_named(module: str, line: str, ends: bool) -> None:
    done = convert(SLURM.format("-N 2 -n 8", f"{module}\n{line}"), "pbspro")
    assert [one.line for one in done.remarks if "ends all ranks if one fails" in one.why] == [4] * ends


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("mpirun -genv A 1 -n 4 ./a", 'mpirun -f "$PBS_NODEFILE" -genv A 1 -n 4 ./a'),
        ("mpirun -n 4 -ppn 2 ./a", 'mpirun -f "$PBS_NODEFILE" -n 4 -ppn 2 ./a'),
        ("mpirun -rmk slurm ./a", 'mpirun -f "$PBS_NODEFILE" -n 4 -rmk slurm ./a'),
        ("mpirun -n 4 ./a -f x", 'mpirun --hostfile "$PBS_NODEFILE" $(mpi_exports) -n 4 ./a -f x'),
        ("mpirun -n 4 ./a -genv x", 'mpirun --hostfile "$PBS_NODEFILE" $(mpi_exports) -n 4 ./a -genv x'),
    ],
)
def test_the_options_of_an_mpirun_tell_its_mpi(line: str, new: str) -> None:
    assert new in convert(SLURM.format("-N 2 -n 4", line), "pbspro").text


@pytest.mark.parametrize(
    ("line", "named"),
    [("srun python t.py", True), ("srun ./a", True), ("srun hostname", False), ("python t.py", False)],
)
def test_a_task_without_a_launcher_has_no_variables_of_a_rank(line: str, named: bool) -> None:
    done = convert(SLURM.format("-N 1 -n 1", line), "pbspro")
    assert ((False, 3, "SLURM_PROCID") in remarks(done)) is named


@pytest.mark.parametrize(
    ("plugin", "new"),
    [("pmix", ""), ("pmix_v3", "pmix"), ("pmi2", ""), ("none", "pmix"), ("cray_shasta", "pmix")],
)
def test_another_plugin_for_mpi_is_named(plugin: str, new: str) -> None:
    done = job_file(SLURM.format("-N 1 -n 4", f"srun --mpi={plugin} ./a"))
    found = [one.why for one in done.remarks if one.what == f"--mpi={plugin}"]
    assert found == [f"becomes --mpi={new}"] * bool(new)


@pytest.mark.parametrize(
    ("directives", "named"),
    [
        ("", True),
        ("#PBS -o x.log\n", True),
        ("#PBS -j n\n", True),
        ("#PBS -j oe\n", False),
        ("#PBS -j eo\n", True),
        ("#PBS -e x.err\n", False),
    ],
)
def test_the_file_of_errors_of_pbs_is_named(directives: str, named: bool) -> None:
    done = job_file(f"#!/bin/bash\n#PBS -l nodes=1:ppn=4\n{directives}./a\n")
    assert [one.line for one in done.remarks if "one log file" in one.why and not one.lost] == [2] * named


THREADS = "#!/bin/bash\n#PBS -l select=1:ncpus=8:mpiprocs=2\n{}\nmpirun -np 2 ./a\n"


@pytest.mark.parametrize(
    ("lines", "exported"),
    [
        ("OMP_NUM_THREADS=3", False),
        ("export OMP_NUM_THREADS=3", True),
        ("OMP_NUM_THREADS=3\nexport OMP_NUM_THREADS", True),
        ("declare -x OMP_NUM_THREADS=3", True),
        ("set -a; OMP_NUM_THREADS=3", True),
    ],
)
def test_a_number_of_threads_that_is_not_exported(lines: str, exported: bool) -> None:
    """PBS Pro has the variable in the environment, so that programs get the new value; Slurm has not."""
    of_slurm = SLURM.format("-n 2 -c 4", f"{lines}\nsrun ./a")
    assert ("unset OMP_NUM_THREADS" in convert(of_slurm, "pbspro").text) is not exported
    of_pbs = THREADS.format(lines)
    assert ("export OMP_NUM_THREADS=8" in convert(of_pbs, "slurm", "pbspro").text) is not exported
    named = [one.why for one in job_file(SLURM.format("-n 2 -c 8", f"{lines}\nsrun ./a")).remarks]
    assert any("is not exported" in why for why in named) is not exported
    assert values(job_file(of_pbs, "pbspro").text)["env"] == {"OMP_NUM_THREADS": "3"}


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("python $file", ["bash", "-c", "exec python $file"]),
        ("srun $program -x", ["bash", "-c", "exec $program -x"]),
        ("F=a.py\npython $F", ["a.py"]),
        ('python "$file"', ["python", "$file"]),
        ("P=/opt/a\nO=' -x'\n${P}${O} < in", ["bash", "-c", "${P}${O} < in"]),
        ('P=/opt\n"$P"/bin/a run', ["/opt/bin/a", "run"]),
        ('./cfg_"$version"/a', ["./cfg_$version/a"]),
        ("for v in 1 2; do ./cfg_$v/a; done", ["bash", "-c", "for v in 1 2; do ./cfg_$v/a; done"]),
    ],
)
def test_a_program_that_the_submission_names_may_be_several_words(line: str, command: list[str]) -> None:
    assert values(job_file(SLURM.format("-N 1 -n 1", line)).text)["command"] == command


@pytest.mark.parametrize("end", ["exit", "exit 0", "rc=$?\nexit $rc", "if true; then\n  exit 1\nfi\nexit 2"])
def test_nothing_behind_an_exit_is_in_the_job_file(end: str) -> None:
    text = SLURM.format("-N 1 -n 4", f"set -e\nsrun ./a\n{end}")
    assert job_file(f"{text}\nmodule load b\nsrun ./b\ndate\n") == job_file(text)


def test_a_queue_that_is_named_twice_is_one() -> None:
    done = convert("#SBATCH -N 1 -p a,a\n./a", "pbspro")
    assert "#PBS -q a\n" in done.text
    assert not [one for one in done.remarks if one.lost]


def test_the_number_of_processes_of_torque_is_translated_beside_others() -> None:
    done = convert("#PBS -l procs=8:gpus=2\nmpirun ./a", "slurm", "torque")
    assert "#SBATCH --ntasks=8\n" in done.text
    assert (True, 2, "-l procs=8:gpus=2") in remarks(done)


def test_a_host_of_a_request_is_no_feature() -> None:
    done = convert("#PBS -l select=1:ncpus=2:host=n1\n./a", "slurm", "pbspro")
    assert ["names a host" in one.why for one in done.remarks if one.lost] == [True]


@pytest.mark.parametrize(
    ("options", "step", "number"),
    [
        ("-N 8", "--ntasks=64 --gpus-per-node=a:8 --gpu-bind=closest", 8),
        ("-N 2", "--ntasks=4 --gres=gpu:4", 4),
        ("-N 2", "-n 4 -G 4", 2),
        ("-N 2", "-n 4 --gpus-per-task=1", 2),
        ("-N 2 --gres=gpu:1", "-n 4 --gpus-per-task=1", 1),
        ("-N 2", "-n 4 --gres=none", 0),
        ("-N 2", "-n 4", 0),
    ],
)
def test_devices_that_only_a_step_requests(options: str, step: str, number: int) -> None:
    done = convert(SLURM.format(options, f"srun {step} ./a"), "pbspro")
    assert (f":ngpus={number}" in done.text) is bool(number)
    own = "gpu" not in options and number > 0
    assert ((False, 3, f"{number} GPUs of a node") in remarks(done)) is own


@pytest.mark.parametrize("start", ["<<README", "<<'README'", "  <<-README", '<< "README"'])
def test_a_text_without_a_command_is_read(start: str) -> None:
    script = SLURM.format("-N 1 -n 4", f"{start}\nIt's a note: srun ./b\nREADME\n./b\nsrun ./a $X/$Y/z")
    done = job_file(script)
    assert not any("cannot be read" in one.why for one in done.remarks)
    options = values(done.text)
    assert options["command"] == ["./a", "$X/$Y/z"]
    assert start.strip() in options["setup"]
    assert start in convert(script, "pbspro").text


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("D=~/data\npython t.py $D", ["t.py", "$HOME/data"]),
        ("D=~/data\nE=$D/x\n./a --to $E $D/y", ["./a", "--to", "$HOME/data/x", "$HOME/data/y"]),
        ("P=~/prog\nsrun $P x", ["$HOME/prog", "x"]),
        ("A=~/x ./a", ["env", "A=$HOME/x", "./a"]),
        ("env A=~/x srun ./a", ["env", "A=$HOME/x", "./a"]),
        ("D='~/data'\n./a $D", ["./a", "~/data"]),
        ("./a --to=~/x", ["./a", "--to=~/x"]),
    ],
)
def test_a_shell_expands_the_home_directory_in_words_without_quotes(line: str, command: list[str]) -> None:
    assert values(job_file(SLURM.format("-N 1 -n 1", line)).text)["command"] == command


@pytest.mark.parametrize(
    "line",
    [
        "L=~/logs\nsrun torchrun --nproc-per-node 1 --log-dir $L t.py",
        "I=~/i.sif\nsrun singularity exec $I torchrun t.py",
    ],
)
def test_the_home_directory_in_options_is_known_only_to_the_job(line: str) -> None:
    assert any(one.lost and one.line == 4 for one in job_file(SLURM.format("-N 1 -n 1", line)).remarks)


def test_a_container_without_sudo_is_named() -> None:
    done = job_file(SLURM.format("-N 1 -n 1", "sudo docker run --rm i torchrun --nproc-per-node 1 t.py"))
    assert values(done.text)["command"] == ["t.py"]
    assert ("sudo", True) in [(one.what, one.of_program) for one in done.remarks]


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ("timeout 9 mpirun hostname\npython t.py", ["t.py"]),
        ("srun hostname\n./a", ["./a"]),
        ("srun hostname\nsrun ./a", ["./a"]),
        ("./prepare\nsrun ./a\nsrun hostname", ["./a"]),
        ("srun hostname", ["hostname"]),
        ("module load a\nsrun hostname", ["hostname"]),
    ],
)
def test_ranks_that_only_print_are_no_program_beside_another(lines: str, command: list[str]) -> None:
    assert values(job_file(SLURM.format("-N 1 -n 1", lines)).text)["command"] == command


@pytest.mark.parametrize(
    "mpirun", ["/opt/mpi/bin/mpirun", "$HOME/mpi/bin/mpirun", "${MPI}/bin/mpirun --mca a 1"]
)
@pytest.mark.parametrize(
    "form",
    [
        "{} -n 4 ./a",
        "M='{}'\n$M -n 4 ./a",
        'export M="{}"\n$M -n 4 ./a',
        'if [ -f x ]; then\nM="{}"\n$M -n 4 ./a\nfi',
    ],
)
def test_a_launcher_with_a_path_is_named(mpirun: str, form: str) -> None:
    done = job_file(SLURM.format("-N 1 -n 4", form.format(mpirun)))
    assert any("that the job finds in PATH" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("options", "line", "named", "mpi"),
    [
        ("-N 1 -n 4", "srun python t.py", True, None),
        ("-N 1 -n 4", "export I_MPI_PMI_LIBRARY=/x\nsrun python t.py", True, None),
        ("-N 1 -n 4", "srun python net_MPI.py", False, "openmpi"),
        ("-N 1 -n 4 --gres=gpu:4", "srun python t.py", False, None),
        ("-N 1 -n 4", "export MASTER_ADDR=$(hostname)\nsrun python t.py", False, None),
        ("-N 1 -n 1", "srun python t.py", False, None),
        ("-N 1 -n 1", "module load openmpi\nsrun python t.py", True, None),
        ("-N 1 -n 1", 'pip install "netket[mpi]"\nsrun python t.py', True, None),
    ],
)
def test_ranks_of_python_without_mpi_are_named(options: str, line: str, named: bool, mpi: str | None) -> None:
    done = job_file(SLURM.format(options, line))
    assert any("starts without an MPI" in one.why for one in done.remarks) is named
    assert values(done.text).get("mpi") == mpi


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("srun ./a $MODEL_PATH", True),
        ("srun ./a $model", True),
        ("MODEL=/x\nsrun ./a $MODEL", False),
        ("read MODEL < x\nsrun ./a $MODEL", False),
        ("srun ./a $USER $SCRATCH $CUDA_HOME", False),
        ("source ./settings.sh\nsrun ./a $MODEL_PATH", False),
    ],
)
def test_a_variable_that_nothing_sets_is_named(line: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1 -n 1", line))
    assert any("is not set anywhere in the script" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("options", "slots", "slots_of_node"),
    [
        ("-l nodes=1", "PBS_NP", "PBS_NUM_PPN"),
        ("-l nodes=3", "PBS_NP", "PBS_NUM_PPN"),
        ("-l nodes=2:ppn=4", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"),
        ("-l procs=8", "SLURM_NTASKS", "PBS_NUM_PPN"),
    ],
)
def test_slots_that_no_directive_requests_are_set(options: str, slots: str, slots_of_node: str) -> None:
    done = convert(f"#PBS {options}\nset -u\nmpirun -np $PBS_NP ./a $PBS_NUM_PPN", "slurm", "torque")
    assert f'--ntasks="${slots}"' in done.text
    assert f"./a ${slots_of_node}\n" in done.text
    assert ("PBS_NP=$SLURM_JOB_NUM_NODES\n" in done.text) is (slots == "PBS_NP")
    assert ("PBS_NUM_PPN=1\n" in done.text) is (slots_of_node == "PBS_NUM_PPN")


def test_slots_of_different_nodes_are_the_lines_of_the_node_file() -> None:
    done = convert("#PBS -l nodes=1:ppn=4+2:ppn=2\n./a $PBS_NP", "slurm", "torque")
    assert "PBS_NP=$((4 * SLURM_JOB_NUM_NODES))\n" in done.text


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ("nodes=1:ppn=PPN:big", "ppn=PPN cannot be read"),
        ("nodes=2:ppn=$N:gpus=x:a100", "ppn=$N, gpus=x cannot be read"),
        ("nodes=2:ppn=2:gpus=x", "gpus=x cannot be read"),
        ("nodes=2:ppn=$N:foo=3", "foo has no counterpart, and ppn=$N cannot be read"),
        ("select=1:ncpus=N:model=bro", "ncpus=N cannot be read"),
        ("select=2:ncpus=4:mem=big:model=bro", "mem=big cannot be read"),
        ("select=$N:ncpus=4", "select=$N cannot be read"),
        ("nodes=1:ppn=2:big", ""),
        ("select=1:ncpus=2:mem=4gb:model=bro", ""),
    ],
)
def test_numbers_beside_properties_that_cannot_be_read(resources: str, why: str) -> None:
    source = "pbspro" if resources.startswith("select") else "torque"
    script = f"#!/bin/bash\n#PBS -l {resources}\n./a\n"
    what = f"-l {resources}"
    new = [one.why for one in convert(script, "slurm", source).remarks if one.lost and one.what == what]
    assert new == [f"{why} in Slurm"] * bool(why)
    of_job_file = [one.why for one in job_file(script, source).remarks if one.lost and one.what == what]
    assert of_job_file == [why] * bool(why)


@pytest.mark.parametrize(
    ("log", "named"),
    [
        ("a.log", True),
        ("%x.log", True),
        ("%N-%u.log", True),
        ("%a.log", True),
        ("%4a.log", True),
        ("%%j.log", True),
        ("%j.log", False),
        ("%6j.log", False),
        ("%A_%a.log", False),
        ("%J.log", False),
    ],
)
def test_a_log_without_the_number_of_the_job_is_appended_to(log: str, named: bool) -> None:
    done = job_file(SLURM.format(f"-N 1 --array=0-3 -o {log}", "./a"))
    assert any("appends to this log" in one.why for one in done.remarks) is named


def test_a_script_with_late_directives_has_its_name() -> None:
    script = Script(b"#!/bin/bash\ncd /work\n#SBATCH -N 1\n./a\n", "slurm", name="train.sh")
    assert values(translation.convert(script).text)["name"] == "train.sh"


@pytest.mark.parametrize(
    ("options", "lines", "named"),
    [
        ("-N 1 --exclusive --ntasks-per-node=8", "srun ./a", True),
        ("-N 1 --exclusive --ntasks-per-node=8 -c 2", "srun ./a", False),
        ("-N 1 --exclusive --ntasks-per-node=8", "export OMP_NUM_THREADS=4\nsrun ./a", False),
        ("-N 1 --ntasks-per-node=8", "srun ./a", False),
    ],
)
def test_the_threads_of_ranks_on_whole_nodes_are_named(options: str, lines: str, named: bool) -> None:
    why = "jobgen sets it to the cores of a rank, 1; the script leaves it unset"
    done = job_file(SLURM.format(options, lines))
    assert (("OMP_NUM_THREADS", why) in [(one.what, one.why) for one in done.remarks]) is named


@pytest.mark.parametrize(("word", "named"), [("$1", True), ('"$1"', True), ("${1:-3}", False)])
def test_an_argument_of_the_script_may_be_missing(word: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1", f"srun ./a {word}"))
    assert [one.why[:25] for one in done.remarks if one.what == "$1"] == ["is an argument of the scr"] * named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("cat > x <<E\n# go to PBS_O_WORKDIR\nE", []),
        ("cat > x <<E\n  #go to PBS_O_WORKDIR\nE", []),
        ('cat > x.c <<"E"\n#define DIR getenv("PBS_O_WORKDIR")\nE', ["PBS_O_WORKDIR"]),
        ("cat > x <<E\nPBS_O_WORKDIR\nE", ["PBS_O_WORKDIR"]),
        ("./a pbs_nodes", []),
        ("./a --hosts pbs_hostfile", []),
        ("./a pbs_usda", ["pbs_usda"]),
    ],
)
def test_comments_and_files_that_name_the_scheduler(line: str, named: list[str]) -> None:
    done = convert(f"#PBS -l nodes=1\n{line}", "slurm", "torque")
    assert [one.what for one in done.remarks if "PBS" in one.what.upper()] == named


@pytest.mark.parametrize(
    ("devices", "named"),
    [
        ("--gres=gpu:$N", True),
        ("--gres=gpu:a100:$N", True),
        ("--gpus-per-node=$T:4", True),
        ("--gres=gpu:a100:2", False),
        ("--gres=gpu:2(S:0-1)", False),
    ],
)
def test_devices_that_cannot_be_read_are_named(devices: str, named: bool) -> None:
    done = job_file(SLURM.format(f"-N 1 {devices}", "./a"))
    assert ((True, 2, devices) in remarks(done)) is named


@pytest.mark.parametrize(
    ("output", "error", "lines"),
    [
        ("a%J.out", "a%j.err", ['exec > "a${PBS_JOBID%%[!0-9]*}.out"']),
        (
            "a%J.out",
            "a%J.err",
            ['exec > "a${PBS_JOBID%%[!0-9]*}.out"', 'exec 2> "a${PBS_JOBID%%[!0-9]*}.err"'],
        ),
        ("a%J.out", "a%J.out", ['exec > "a${PBS_JOBID%%[!0-9]*}.out" 2>&1']),
        ("a%J.out", None, ['exec > "a${PBS_JOBID%%[!0-9]*}.out" 2>&1']),
        ("a%j.out", "a%J.err", ['exec 2> "a${PBS_JOBID%%[!0-9]*}.err"']),
    ],
)
def test_a_log_for_errors_gets_them(output: str, error: str | None, lines: list[str]) -> None:
    """Torque expands the id of the job in the names of logs, but not that of a step."""
    options = f"-N 1 -o {output}" + (f" -e {error}" if error else "")
    text = convert(SLURM.format(options, "./a"), "torque").text
    assert [line for line in text.split("\n") if line.startswith("exec")] == lines


@pytest.mark.parametrize("line", ["srun --export=all -n 4 ./a", "srun --export=ALL,A=b -n 4 ./a"])
def test_srun_exports_all_in_any_case_of_letters(line: str) -> None:
    done = convert(SLURM.format("-N 1", line), "pbspro")
    assert not [one for one in done.remarks if one.lost]


@pytest.mark.parametrize(
    ("cores", "why"), [("4", ""), ("$C", "each rank is bound to 8 cores, those of the job")]
)
def test_ranks_that_are_bound_share_no_cores(cores: str, why: str) -> None:
    text = SLURM.format(
        "-N 2 --ntasks-per-node=4 -c 8", f"module load openmpi\nsrun -c {cores} --cpu-bind=cores ./a"
    )
    done = convert(text, "pbspro")
    assert f"PE={cores if cores == '4' else 8} --bind-to core" in done.text
    assert not [one for one in done.remarks if "may use all cores of the job" in one.why]
    assert bool(why) is (why in [one.why for one in done.remarks])


def test_an_option_with_its_value_is_named_once() -> None:
    done = convert(SLURM.format("-N 2", "srun -n8 -c2 ./a"), "torque")
    assert [one.what for one in done.remarks if "may use all cores of the job" in one.why] == ["-c 2"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("$(echo $PBS_JOBID | cut -d'[' -f1)", True),
        ("${PBS_JOBID%%[*}", True),
        ("$(echo $PBS_JOBID | sed 's/\\[.*//')", True),
        ("${PBS_JOBID%%.*}", False),
        ("$PBS_JOBID", False),
    ],
)
@pytest.mark.parametrize("array", [True, False])
def test_the_id_of_an_array_is_not_that_of_a_task(text: str, named: bool, array: bool) -> None:
    """The id of a task of PBS begins with that of the array; in Slurm it is another number."""
    options = "#PBS -l select=1\n" + "#PBS -J 1-4\n" * array
    done = convert(f"#!/bin/bash\n{options}cd $PBS_O_WORKDIR\nID={text}\n./a $ID", "slurm", "pbspro")
    assert any("$SLURM_ARRAY_JOB_ID" in one.why for one in done.remarks) is (named and array)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("stage=false\nif $stage; then echo x; fi", False),
        (". ./a.sh\nif $stage; then echo x; fi", False),
        ("stage=./tool\n$stage", True),
        ("/usr/sbin/ss -H", False),
        ("/opt/bin/tool", True),
        ("f() { ./tool; }\nf", True),
        ("f() { ./tool; }\nexport -f f\nsrun bash -c f", False),
    ],
)
def test_a_condition_in_a_variable_is_no_program(line: str, named: bool) -> None:
    done = convert(SLURM.format("-N 1 -n 4", f"{line}\nsrun ./a"), "pbspro")
    assert any(one.why.startswith("gets OMP_NUM_THREADS") for one in done.remarks) is named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("srun python t.py", True),
        ("srun bash work.sh", True),
        ("srun -K python t.py", False),
        ("srun --kill-on-bad-exit=1 python t.py", False),
        ("export SLURM_KILL_BAD_EXIT=1\nsrun python t.py", False),
        ("export MASTER_ADDR=$(hostname)\nsrun python t.py", False),
        ("module load mpi4py\nsrun python t.py", False),
        ("module load openmpi\nsrun ./a", False),
        ("srun -n 1 python t.py", False),
        ("srun torchrun --nproc-per-node 4 t.py", False),
    ],
)
def test_ranks_that_go_on_without_another_are_named(line: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1 -n 4", line))
    assert any("go on if one fails" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("options", "line", "value"),
    [
        ("", "srun --export=NONE ./a", "NONE"),
        ("", "srun --export=PATH,A=1 ./a", "PATH,A=1"),
        ("", "srun --export=ALL,A=1 ./a", ""),
        (" --export=NONE", "srun ./a", "NONE"),
        (" --export=NONE", "srun --export=all ./a", ""),
        ("", "srun ./a", ""),
    ],
)
def test_ranks_without_the_environment_of_the_script(options: str, line: str, value: str) -> None:
    done = job_file(SLURM.format(f"-N 1 -n 4{options}", line))
    kept = [one.why for one in done.remarks if "keeps from it" in one.why]
    assert [f"--export={value} " in one for one in kept] == [True] * bool(value)


@pytest.mark.parametrize(
    ("line", "why"),
    [("module --force purge", "sticky"), ("module --ignore-cache load b", "the cache of Lmod")],
)
def test_the_effect_of_an_option_of_module_is_named(line: str, why: str) -> None:
    done = job_file(SLURM.format("-N 1", f"{line}\nmodule load gcc\n./a"))
    assert "gcc" in values(done.text)["module"]
    assert [(one.line, one.what) for one in done.remarks if why in one.why] == [(3, line)]


def test_a_word_of_several_lines_keeps_them() -> None:
    code = '"\nsource /e.sh\npython t.py $FILE\n"'
    done = job_file(SLURM.format("-N 1", f"singularity exec --overlay ~/o:ro i.sif \\\n  bash -c {code}"))
    line = f"exec singularity exec --overlay ~/o:ro i.sif bash -c {code}"
    assert values(done.text)["command"] == ["bash", "-c", line]


@pytest.mark.parametrize(
    ("last", "named"),
    [
        ("(source work.sh) | tee log", ["base", "out", "run"]),
        ("source work.sh", ["base", "out", "run"]),
        ("source /etc/profile", []),
        ("echo $out", ["out"]),
    ],
)
def test_a_file_that_is_read_later_has_all_variables(last: str, named: list[str]) -> None:
    before = 'module load gcc\nrun="srun -m block"\nout=/data\nbase=$(pwd)'
    setup = str(values(job_file(SLURM.format("-N 1", f"{before}\n./a\n{last}")).text).get("setup", ""))
    exports = [line.split()[1] for line in setup.split("\n") if line.startswith("export ")]
    assert sorted(exports) == named


@pytest.mark.parametrize(
    ("resources", "lines", "named"),
    [
        ("ncpus=2", "export JULIA_NUM_THREADS=34\nmpirun -n 2 julia a.jl", ["JULIA_NUM_THREADS=34"]),
        ("ncpus=8:mpiprocs=2", "export OMP_NUM_THREADS=4\nmpirun -n 2 ./a", []),
        ("ncpus=8:mpiprocs=2", "export OMP_NUM_THREADS=8\nmpirun -n 2 ./a", ["OMP_NUM_THREADS=8"]),
        ("ncpus=8:mpiprocs=8", "export OMP_NUM_THREADS=4\nmpirun -n 2 ./a", []),
        ("ncpus=8:mpiprocs=8", "mpirun -n 8 ./a\nexport OMP_NUM_THREADS=8\n./b", []),
    ],
)
def test_threads_above_the_cores_that_srun_binds_a_rank_to(
    resources: str, lines: str, named: list[str]
) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l select=1:{resources}\n{lines}\n", "slurm", "pbspro")
    assert [one.what for one in done.remarks if "to which srun binds it" in one.why] == named


@pytest.mark.parametrize(
    ("options", "line", "what"),
    [
        ("-c 2 --exclusive", "./a", "cores and GPUs"),
        ("-c 2 --exclusive", "srun -n 1 torchrun --nproc-per-node 1 t.py", "GPUs"),
        ("-c 2", "./a", ""),
    ],
)
def test_a_program_without_a_launcher_has_all_cores_of_whole_nodes(
    options: str, line: str, what: str
) -> None:
    done = job_file(SLURM.format(f"-N 1 {options}", line))
    why = [one.why.partition(" of the node")[0] for one in done.remarks if one.what == "exclusive"]
    assert why == [f"the script has all {what}"] * bool(what)


HOOK = 'eval "$(conda shell.bash hook)"'


@pytest.mark.parametrize(
    ("start", "after", "lines"),
    [
        ("", "conda activate x\n./b", [HOOK, "conda activate x", "./b"]),
        ("set -u\n", "conda activate x\n./b", ["set +u", HOOK, "set -u", "conda activate x", "./b"]),
        ("", "source /c/etc/profile.d/conda.sh\nconda activate x\n./b", []),
        ("", "conda deactivate\n./b\nconda deactivate", [HOOK, "conda deactivate", "./b"]),
        ("", "conda deactivate", []),
        ("", "conda list", []),
        ("", "conda deactivate\nmodule unload a b\nsource deactivate\nmodule purge", []),
    ],
)
def test_commands_after_the_program_have_the_function_conda(start: str, after: str, lines: list[str]) -> None:
    """It is defined in the shell of the script, and that of these commands is another one."""
    script = SLURM.format("-N 1", f"{start}module load anaconda\nsrun ./a\n{after}")
    text = str(values(job_file(script).text).get("after", ""))
    assert (text.split("\n")[-1 - len(lines) : -1] == lines) if lines else HOOK not in text


@pytest.mark.parametrize(
    ("after", "stays"),
    [
        ("source deactivate\nmodule rm a/1 b\nml purge", False),
        ("module purge", False),
        ("module purge\n./b", True),
        ("module purge\nmodule list", True),
        ("module unload $A", True),
    ],
)
def test_what_only_leaves_the_environment_at_the_end_is_left_out(after: str, *, stays: bool) -> None:
    found = values(job_file(SLURM.format("-N 1", f"module load a\nsrun ./a\n{after}")).text)
    assert (found.get("after", "").endswith(f"{after}\n") and "after" in found) is stays


def test_a_program_that_is_code_has_the_function_conda() -> None:
    code = "for i in 1 2; do\n  conda activate e$i\n  ./a\ndone"
    done = job_file(SLURM.format("-N 1", f"source ~/.bashrc\n{code}"))
    assert values(done.text)["command"] == ["bash", "-c", f"{HOOK}\n{code}"]


def test_a_rank_variable_of_the_new_launcher_is_no_unset_one() -> None:
    done = job_file(SLURM.format("-N 1", "python -m torch.distributed.launch --nproc_per_node=2 t.py"))
    assert "--local_rank=$LOCAL_RANK" in values(done.text)["command"]
    assert not [one for one in done.remarks if one.what == "$LOCAL_RANK"]


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ("srun $L t.py --x 1", ["t.py", "--local_rank=$LOCAL_RANK", "--x", "1"]),
        ("srun bash -c '$L t.py'", ["t.py", "--local_rank=$LOCAL_RANK"]),
        ('srun bash -c "$L $(pwd)/t.py"', None),
        ('C="$(pwd)/t.py --x"\nsrun $L $C', ["bash", "-c", "exec python3 $C --local_rank=$LOCAL_RANK"]),
        ("srun $L --use_env t.py", ["t.py"]),
    ],
)
def test_an_older_launcher_of_pytorch_in_a_variable(lines: str, command: list[str] | None) -> None:
    own = 'export L="python -u -m torch.distributed.launch --nproc_per_node 2"'
    done = job_file(SLURM.format("-N 1", f"{own}\n{lines}"))
    assert command is None or values(done.text)["command"] == command
    assert ("--local_rank" in done.text) is ("use_env" not in lines)
    assert any("becomes torchrun" in one.why for one in done.remarks)


@pytest.mark.parametrize("line", ["./a > b", "./a < b", "./a <<< b", "./a <<END\nb\nEND", "{ ./a; } &> b"])
def test_a_program_of_a_shell_has_its_input_and_output(line: str) -> None:
    done = job_file(SLURM.format("-N 1", line))
    assert not [one for one in done.remarks if "output" in one.why or "input" in one.why], remarks(done)
    assert values(done.text)["command"] == ["bash", "-c", line]
    assert "before" not in values(done.text)  # the commands of a group run once


@pytest.mark.parametrize(
    ("lines", "line", "command"),
    [
        ("X=$1\nFLAGS=$2\npython t.py $X $FLAGS", 0, ["bash", "-c", "exec python t.py $X $FLAGS"]),
        ("X=$1\npython t.py $X", 3, ["t.py", "$X"]),
        ("X=${1:-3}\npython t.py $X", 0, None),
        ("set -- a b\nX=$1\nsrun ./a $X", 0, None),
        ("f() { echo $1; }\nf x\nsrun ./a", 0, None),
        ("if [ $1 = x ]; then\n  Y=3\nfi\nsrun ./a $Y", 0, None),
    ],
)
def test_arguments_of_the_script_in_its_commands(lines: str, line: int, command: list[str] | None) -> None:
    """A variable with one of them is one word in the program, also where it is missing."""
    done = job_file(SLURM.format("-N 1", lines))
    assert [one.line for one in done.remarks if "is an argument of the script" in one.why] == [line] * bool(
        line
    )
    assert command is None or values(done.text)["command"] == command


@pytest.mark.parametrize(
    ("options", "step", "devices"),
    [
        ("-N 1 -n 1", "-G 2", 2),
        ("-N 1 -n 1", "--gpus=a100:2", "a100:2"),
        ("-N 1 -n 1", "--gres=gpu:2,nvme:1", 2),
        ("-N 1 -n 1", "--gres=gpu:a100:2", "a100:2"),
        ("-N 1 -n 1", "--gres=gpu", 1),
        ("-N 1 -n 1", "--gpus-per-task=1", 1),
        ("-N 2", "-n 4 --gpus=4", 2),
        ("-N 2", "-n 4 --gpus-per-task=1", 2),
        ("-N 2", "-n 6 --gpus 5", 3),
    ],
)
def test_a_job_file_requests_the_devices_of_a_step(options: str, step: str, devices: int | str) -> None:
    done = job_file(SLURM.format(options, f"srun {step} ./a"))
    assert values(done.text)["gpus_per_node"] == devices
    assert [one.line for one in done.remarks if "only the launcher asks" in one.why] == [3]


@pytest.mark.parametrize(
    ("step", "arguments", "lost"),
    [
        ("--time=00:05:00", ["--time=00:05:00"], []),
        ("-t 5 -W 0", ["-t", "5", "-W", "0"], []),
        ("--time=10", [], []),
        ("--time=$T", [], [True]),
        ("--mem=2G", [], [False]),
        ("--mem=0", [], []),
        ("--mem-per-cpu=1G", [], [False]),
        ("--time=5 torchrun --nproc-per-node=2", [], [True]),
        ("--wait=60 torchrun --nproc-per-node=2", [], [False]),
    ],
)
def test_limits_of_a_step(step: str, arguments: list[str], lost: list[bool]) -> None:
    done = job_file(SLURM.format("-N 1 -n 2 -c 4", f"srun -K {step} t.py\n./b"))
    assert values(done.text).get("launcher_arg", []) == arguments
    name = step.partition("=")[0]
    assert [one.lost for one in done.remarks if one.what.startswith(name)] == lost


@pytest.mark.parametrize(
    ("select", "noted"),
    [
        ("select=16:ncpus=1", True),
        ("select=1:ncpus=1", False),
        ("select=2:ncpus=1 -l place=scatter", False),
        ("select=2:ncpus=1 -l place=free", False),
    ],
)
def test_a_select_without_place_may_share_hosts(select: str, noted: bool) -> None:
    done = job_file(f"#!/bin/bash\n#PBS -l {select}\nmpirun ./a\n", "pbspro")
    assert ((False, 2, "select without place") in remarks(done)) is noted


@pytest.mark.parametrize(
    ("read", "command", "stays"),
    [
        ("source ~/.bashrc", "addp gcc 1", True),
        ("source env.sh", "addp gcc 1", True),
        (". ~/.bash_profile", "addp gcc 1", True),
        ('eval "$(cat funcs.sh)"', "addp gcc 1", True),
        ("source /cvmfs/x/setup_y.sh", "setup root v6", True),
        ("source venv/bin/activate", "addp gcc 1", False),
        ("source ~/.bashrc", "gmx grompp", False),
        ("source ~/.bashrc", "mkdir x\nuniq x > y\nscancel 1", False),
        ("source ~/.bashrc", "./addp gcc 1", False),
    ],
)
def test_a_command_that_may_be_a_function_of_a_file_stays_in_its_shell(
    read: str, command: str, stays: bool
) -> None:
    """The function may set variables of the program."""
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1 -n 1\n{read}\n{command}\n./prog x\n")
    assert command in values(done.text)["setup" if stays else "before"]
    assert not any("is a function" in one.why for one in done.remarks)


_TORQUE = "#!/bin/bash\n#PBS -l nodes=2:ppn=2\ncd $PBS_O_WORKDIR\n{}\n"


@pytest.mark.parametrize(
    ("line", "options", "lost"),
    [
        ("mpirun -bynode -np 2 ./a", "--ntasks=2 --distribution=cyclic --cpus-per-task=2 --kill", []),
        ("mpirun --map-by node -np 4 ./a", "--ntasks=4 --distribution=cyclic --kill", []),
        (
            "mpirun -bynode -np 1 ./a",
            "--ntasks=1 --nodes=1 --distribution=cyclic --cpus-per-task=2 --kill",
            [],
        ),
        ("mpirun -np 2 ./a", "--ntasks=2 --nodes=1 --kill", []),
        ("mpirun -nolocal -np 4 ./a", "--ntasks=4 --kill", ["-nolocal"]),
        ("mpirun --map-by node:OVERSUBSCRIBE ./a", "--distribution=cyclic --overcommit --kill", []),
        (
            "mpirun --map-by node:PE=2 -np 2 ./a",
            "--ntasks=2 --distribution=cyclic --cpus-per-task=2 --kill",
            [],
        ),
        (
            "mpirun --map-by slot:pe=$T -np 2 ./a",
            '--ntasks=2 --distribution=block:block --cpus-per-task="$T" --kill',
            [],
        ),
        ("mpirun --map-by :OVERSUBSCRIBE -np 8 ./a", "--ntasks=8 --overcommit --kill", []),
        ("mpirun --map-by core:2 -np 4 ./a", "--ntasks=4 --kill", ["--map-by core:2"]),
        ("mpirun --mca rmaps_base_mapping_policy node ./a", "--distribution=cyclic --kill", []),
        ("mpirun --mca rmaps_base_oversubscribe 1 ./a", "--overcommit --kill", []),
        (
            "mpirun --mca orte_abort_on_non_zero_status 0 ./a",
            "--kill",
            ["orte_abort_on_non_zero_status 0"],
        ),
        ("mpirun --bind-to core:overload-allowed ./a", "--cpu-bind=cores --kill", []),
        ("mpirun --bind-to l2cache -np 4 ./a", "--ntasks=4 --kill", ["--bind-to l2cache"]),
        ("B=socket\nmpirun --bind-to $B ./a", "--cpu-bind=sockets --kill", []),
        ("mpirun --bind-to $B ./a", "--kill", ["--bind-to $B"]),
        ("mpirun --n 4 ./a", "--ntasks=4 --kill", []),
    ],
)
def test_ranks_that_mpirun_places_by_node(line: str, options: str, lost: list[str]) -> None:
    done = convert(_TORQUE.format(line), "slurm", "torque")
    assert f"srun {options}" in done.text
    assert [one.what for one in done.remarks if one.lost] == lost


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ('mpirun --mca mca_base_env_list "A=1;B" ./a', "env A=1 srun --kill"),
        ("mpirun --gmca btl tcp ./a", "env OMPI_MCA_btl=tcp srun --kill"),
        (
            'mpirun_rsh -np 4 -hostfile $PBS_NODEFILE A=1 B="$C d" ./a x=2',
            'env A=1 B="$C d" srun --ntasks=4 ',
        ),
        ("mpirun_rsh -export-all -np 4 ./a", "srun --ntasks=4 "),
    ],
)
def test_variables_that_a_launcher_sets_for_its_ranks(line: str, new: str) -> None:
    done = convert(_TORQUE.format(line), "slurm", "torque")
    assert f"\n{new}" in done.text
    assert not any(one.lost for one in done.remarks)


@pytest.mark.parametrize(
    ("options", "step", "new", "why"),
    [
        ("-N 1 -n 4", "srun -n 1 mpirun -np 4 ./a", "\nmpirun -np 4 ./a", ""),
        ("-N 2 -n 4", "srun -n 1 mpirun -np 4 ./a", "\nmpirun -np 4 ./a", "needs the hosts in $PBS_NODEFILE"),
        ("-N 2 -n 2", "srun -N1 -n1 -w $n mpirun -np 1 ./a", "mpirun -np 1 ./a", "refuses it"),
        ("-N 1 -n 2", "srun mpirun ./a", " mpirun ./a", "refuses it"),
    ],
)
def test_an_mpirun_that_srun_starts(options: str, step: str, new: str, why: str) -> None:
    """Open MPI's mpirun does not run inside another one."""
    done = convert(SLURM.format(options, f"module load openmpi\n{step}"), "pbspro")
    assert done.text.endswith(f"{new}\n")
    found = [one.why for one in done.remarks if "refuses it" in one.why or "needs the hosts" in one.why]
    assert [why in one for one in found] == [True] * bool(why)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mpirun -genv I_MPI_HYDRA_BOOTSTRAP ssh ./a", {"env": {"I_MPI_HYDRA_BOOTSTRAP": "ssh"}}),
        ("mpirun -genv I_MPI_HYDRA_BOOTSTRAP=ssh bash a", {"command": ["bash", "a"]}),
        (
            "mpirun --mca plm_rsh_agent ssh ./a",
            {"launcher_arg": ["--mca", "plm_rsh_agent", "ssh"]},
        ),
        ("mpirun -bootstrap ssh ./a", {"launcher_arg": None}),
        ("mpirun -pernode ./a", {"ranks_per_node": 1, "launcher_arg": None}),
        ("mpirun --n 4 ./a", {"ranks_per_node": 2, "launcher_arg": None}),
        ("mpirun -bind-to-core -bysocket ./a", {"cpu_bind": "cores", "launcher_arg": None}),
        ("mpirun -hosts n1,n2 ./a", {"launcher_arg": None}),
        ("srun shifter --image=i -- ./a", {"image": "i", "container_arg": None}),
        ("coproc srun ./a", {"launcher": "srun"}),
        ("srun --bcast ./a", {"launcher": "srun", "launcher_arg": None}),
        ("srun --debugger-test ./a", {"launcher": "srun", "launcher_arg": ["--debugger-test"]}),
        ("srun --tasks-per-node=1 -n 2 ./a", {"ranks_per_node": 1, "launcher_arg": None}),
        ("srun -d singleton ./a", {"launcher_arg": ["-d", "singleton"]}),
        ("srun -K0 ./a", {"launcher_arg": None}),
        ("srun -n 4 ./a : -n 4 ./b", {"command": ["./a"]}),
        ("srun -n 4 -- ./a", {"ranks_per_node": 2}),
        ("srun -n 2 --ntasks-per-node=2 ./a", {"ranks_per_node": 1}),
        ("mpirun -np 2 -npernode 2 ./a", {"ranks_per_node": 1}),
        ('B=$(date +%s)\nsrun --export="ALL,A=$B" ./a', {"setup": 'set +e\nB=$(date +%s)\nexport "A=$B"\n'}),
        ("C=$(date +%s)\nsrun --export=ALL,C=$C ./a", {"setup": "set +e\nC=$(date +%s)\nexport C\n"}),
        ("srun singularity exec --no-mount tmp i.sif ./a", {"image": "i.sif"}),
        ("srun singularity exec --cpus 2 i.sif ./a", {"image": "i.sif"}),
    ],
)
def test_options_of_a_launcher_and_its_program(line: str, expected: dict[str, object]) -> None:
    done = job_file(SLURM.format("-N 2 -n 4", f"module load openmpi\n{line}"))
    found = values(done.text)
    assert {key: found.get(key) for key in expected} == expected
    assert found["command"] == expected.get("command", ["./a"])
    lost = [one.what for one in done.remarks if one.lost]
    assert [one for one in lost if one.startswith((":", "-d"))] == [": -n 4 ./b"] * (" : " in line)


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("--export=NONE", "srun ./a", True),
        ("--export=PATH,A=b", "srun -n 1 python t.py", True),
        ("--export=NONE", "srun --export=ALL ./a", False),
        ("--export=NONE", "export SLURM_EXPORT_ENV=ALL\nsrun ./a", False),
        ("--export=ALL", "export SLURM_EXPORT_ENV=NONE\nsrun ./a", True),
        ("--export=ALL", "srun ./a", False),
        ("--export=NONE", "./a", False),
    ],
)
def test_ranks_that_srun_keeps_the_environment_from(options: str, line: str, named: bool) -> None:
    """A directive --export holds for the steps of the job, too."""
    text = SLURM.format(f"-N 1 -n 4 {options}", line)
    done = convert(text, "pbspro")
    assert any("--export=" in one.why for one in done.remarks) is named
    assert "is an option of srun" not in str([done.remarks, job_file(text).remarks])
    assert ("--export=" in str([one.why for one in job_file(text).remarks])) is named


@pytest.mark.parametrize(
    ("line", "new", "named"),
    [
        ("mpirun --map-by core --bind-to core ./a", "--distribution=block:block --cpu-bind=cores", False),
        ("mpirun --map-by slot ./a", "--distribution=block:block --kill", False),
        ("mpirun --map-by slot --bind-to none ./a", "srun --cpu-bind=none", False),
        ("mpirun --bind-to core ./a", "srun --cpu-bind=cores", False),
        ("mpiexec --cpu-bind verbose,core ./a", "--cpu-bind=verbose,cores", False),
        ("mpiexec --cpu-bind verbose ./a", "--cpu-bind=verbose", False),
        ("$HOME/namd/charmrun ./a", "$HOME/namd/charmrun ./a", True),
        ('"$NAMD/charmrun" ./a', '"$NAMD/charmrun" ./a', True),
    ],
)
def test_places_of_ranks_and_launchers_in_variables(line: str, new: str, named: bool) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=4\ncd $PBS_O_WORKDIR\n{line}", "slurm", "torque")
    assert new in done.text
    assert any("starts ranks under Slurm is not known" in one.why for one in done.remarks) is named
    assert any(one.lost for one in done.remarks) is named


@pytest.mark.parametrize(
    ("options", "ranks", "remark"),
    [
        ("--include localhost:0,1", 2, None),
        ("--include=localhost:2,3", 2, (False, "--include=localhost:2,3")),
        ("-i localhost:1", 1, (False, "-i localhost:1")),
        ("--include n1:0@n2", 4, (True, "--include n1:0@n2")),
        ("--exclude localhost:0", 4, (True, "--exclude localhost:0")),
        ("-H hosts", 4, (True, "-H hosts")),
    ],
)
def test_devices_that_deepspeed_selects(options: str, ranks: int, remark: tuple[bool, str] | None) -> None:
    done = job_file(SLURM.format("-N 1 --gpus-per-node=4 -c 8", f"deepspeed {options} t.py"))
    assert values(done.text)["ranks_per_node"] == ranks
    found = [(one.lost, one.what) for one in done.remarks if one.what == options]
    assert found == ([remark] if remark else [])


@pytest.mark.parametrize(
    ("options", "request_of_node"),
    [
        ("--tres-per-task=cpu=4,gres/gpu=1", "select=2:ncpus=8:mpiprocs=2:ngpus=2"),
        ("--tres-per-task=cpu:4", "select=2:ncpus=8:mpiprocs=2"),
        ("--tres-per-task=gres/gpu:a100:2,license/x:1", "select=2:ncpus=2:mpiprocs=2:ngpus=4"),
    ],
)
def test_resources_of_a_task(options: str, request_of_node: str) -> None:
    text = SLURM.format(f"-N 2 --ntasks-per-node=2 {options}", "srun ./a")
    done = convert(text, "pbspro")
    assert f"-l {request_of_node}\n" in done.text
    lost = [one.what for one in done.remarks if one.lost and "tres" in one.what]
    assert lost == ["--tres-per-task=license/x:1"] * ("license" in options)
    found = values(job_file(text).text)
    assert ("gpus_per_node" in found) == ("gpu" in options)
    assert found["cpus_per_rank"] == (4 if "cpu" in options else 1)


@pytest.mark.parametrize(
    ("text", "target", "named"),
    [
        ("#PBS -l nodes=1:ppn=4\nnumactl -i all mpirun -np 4 ./a", "slurm", ["numactl"]),
        ("#PBS -l nodes=1:ppn=4\nmpirun -np 4 numactl -i all ./a", "slurm", []),
        ("#PBS -l nodes=1:ppn=4\ntimeout 9 mpirun -np 4 ./a", "slurm", []),
        ("#SBATCH -n 4\nnice -n 9 srun ./a", "torque", ["nice"]),
    ],
)
def test_what_only_the_ranks_of_mpirun_inherit(text: str, target: str, named: list[str]) -> None:
    assert [one.what for one in convert(text, target).remarks if "none of srun" in one.why] == named


@pytest.mark.parametrize("option", ["--ntasks-per-gpu=1", "--gpus-per-task=1"])
def test_ranks_with_gpus_of_their_own(option: str) -> None:
    done = convert(SLURM.format(f"-N 1 -n 4 --gpus-per-node=4 {option}", "srun ./a"), "pbspro")
    assert [one.what for one in done.remarks if "its own GPUs" in one.why] == [option]


def test_a_launcher_in_a_container_behind_an_option_of_all_subcommands() -> None:
    text = SLURM.format("-N 2 -n 4", "module load openmpi\nsingularity --quiet exec i.sif mpirun ./a")
    assert "is in the container" in str(convert(text, "torque").remarks)


@pytest.mark.parametrize(
    ("options", "step", "named"),
    [
        ("-N 1 -n 4", "srun mpirun -np 4 ./a", True),
        ("-N 2 -n 4", "srun -N 2 -n 2 mpirun -np 2 ./a", True),
        ("-N 1 -n 4", "srun -n 1 mpirun -np 4 ./a", False),
        ("-N 1 -c 4", "srun mpirun -np 4 ./a", False),
    ],
)
def test_an_mpirun_in_each_task(options: str, step: str, named: bool) -> None:
    done = job_file(SLURM.format(options, step))
    assert any("starts its ranks once" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("srun -o out.%t ./a", "--output"),
        ("srun --label ./a", "--label"),
        ("mpirun -np 2 -npernode 2 ./a", "2 ranks of a node"),
        ("srun --export=ALL,A=$(date +%s) ./a", "--export=ALL,A=$(date +%s)"),
        ("export SLURM_WORKING_DIR=/x\nsrun ./a", "SLURM_WORKING_DIR"),
    ],
)
def test_what_another_launcher_does_not_do(line: str, what: str) -> None:
    done = job_file(SLURM.format("-N 2 -n 4", f"module load openmpi\n{line}"))
    assert what in [one.what for one in done.remarks]


@pytest.mark.parametrize(
    ("step", "new"),
    [
        ("srun --nodes=1-2 -n 4 ./a", 'mpirun -np 4 --hostfile "$PBS_NODEFILE" --map-by ppr:2:node '),
        ("srun --nodes=1-1 -n 2 ./a", 'mpirun -np 2 --hostfile "$PBS_NODEFILE" --map-by ppr:2:node '),
    ],
)
def test_a_range_of_nodes_of_a_step(step: str, new: str) -> None:
    done = convert(SLURM.format("-N 2 -n 4", f"module load openmpi\n{step}"), "pbspro")
    assert new in done.text


@pytest.mark.parametrize("value", ["1", "$SLURM_JOB_NUM_NODES"])
def test_a_number_of_nodes_for_srun(value: str) -> None:
    done = convert(SLURM.format("-N 2 -n 4", f"export SLURM_NNODES={value}\nsrun ./a"), "pbspro")
    assert ("SLURM_NNODES" in [one.what for one in done.remarks]) is (value == "1")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("${RUN:-srun} ./a", "${RUN:-srun}"),
        ('RUN=${RUN:-"srun -n 4"}\n$RUN ./a', "$RUN"),
        ("RUN=${RUN-mpirun}\n$RUN ./a", "$RUN"),
    ],
)
def test_a_launcher_that_is_the_default_of_a_variable(line: str, what: str) -> None:
    done = convert(SLURM.format("-N 2 -n 4", line), "pbspro")
    assert [one.what for one in done.remarks if "the line is unchanged" in one.why] == [what]


@pytest.mark.parametrize(("option", "named"), [("", False), ("-K0", True), ("-K", False)])
def test_an_mpi_program_whose_other_ranks_go_on(option: str, named: bool) -> None:
    text = SLURM.format("-N 1 -n 4", f"module load openmpi\nsrun {option} ./a")
    for done in (convert(text, "torque"), job_file(text)):
        assert any("without -K" in one.why for one in done.remarks) is named


def test_a_binding_that_srun_prints() -> None:
    done = convert(SLURM.format("-N 1 -n 4", "srun --cpu-bind=verbose,cores ./a"), "torque")
    assert [one.why for one in done.remarks if "cpu-bind" in one.what] == [
        "the binding of the ranks is not printed"
    ]


@pytest.mark.parametrize("line", ["mpirun -np 1 ./a", "mpirun -np 4 ./a"])
def test_the_variables_of_a_rank(line: str) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=4\ncd $PBS_O_WORKDIR\n{line}", "slurm", "torque")
    assert any("programs that read them find SLURM_PROCID" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("--cpus-per-gpu=4", "mpirun -np 2 ./a", True),
        ("-c 4", "mpirun -np 2 ./a", True),
        ("-c 4", "srun ./a", False),
    ],
)
def test_threads_of_ranks_that_mpirun_starts_on_whole_nodes(options: str, line: str, named: bool) -> None:
    """The ranks of mpirun have other cores than those of a task of Slurm."""
    done = job_file(SLURM.format(f"-N 2 --ntasks-per-node=1 --gres=gpu:8 --exclusive {options}", line))
    assert any("the script leaves it unset" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    "line",
    ["./a --device=xpu", "module load craype-accel-amd-gfx90a\n./a", "hipcc --offload-arch=gfx90a a.c"],
)
def test_devices_by_other_names(line: str) -> None:
    done = convert(f"#PBS -l select=2\ncd $PBS_O_WORKDIR\n{line}", "slurm", "pbspro")
    assert "GPUs" in [one.what for one in done.remarks]
    assert "accelerators" in [one.what for one in job_file(SLURM.format("-N 2", line)).remarks]


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("-c 4", "mpirun ./a", True),
        ("-N 1", "mpiexec python t.py", True),
        ("-N 1 -n 4", "mpirun ./a", False),
        ("-N 1 --exclusive", "mpirun ./a", False),
        ("-N 1", "mpirun -np $N ./a", False),
        ("-N 1", "mpirun $ARGS ./a", False),
        ("-N 1", "mpirun -host a ./a", False),
    ],
)
def test_mpirun_counts_the_slots_of_slurm(options: str, line: str, named: bool) -> None:
    done = convert(SLURM.format(options, line), "pbspro")
    assert any("one on each core" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("options", "line", "left"),
    [
        ("-N 1 --exclusive", "./a", True),
        ("-N 1 --exclusive -c 4", "./a", True),
        ("-N 1 --exclusive -c 4", "srun ./a", False),
        ("-N 1", "./a", False),
        ("-N 1 --exclusive", "export OMP_NUM_THREADS=2\n./a", False),
    ],
)
def test_threads_of_a_program_on_whole_nodes(options: str, line: str, left: bool) -> None:
    """PBS Pro sets OMP_NUM_THREADS to the cores of the request, and Slurm leaves it unset."""
    text = convert(SLURM.format(options, line), "pbspro").text
    assert ("unset OMP_NUM_THREADS" in text) is left


@pytest.mark.parametrize(
    ("options", "named"), [("-D /data", True), ("-D .", False), ("-D /data -o x%j.log", False), ("", False)]
)
def test_a_log_in_the_directory_of_the_job(options: str, named: bool) -> None:
    script = SLURM.format(f"-N 1 {options}", "./a")
    for done in (convert(script, "torque"), job_file(script)):
        assert any("the directory of the submission" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(("join", "named"), [("-j eo", True), ("-j oe", False), ("", True)])
def test_a_log_with_the_name_of_that_of_errors(join: str, named: bool) -> None:
    done = job_file(f"#!/bin/bash\n#PBS -N a -l nodes=1 {join}\n./a\n", "torque")
    assert ("the error file a.eID" in [one.what for one in done.remarks]) is named


@pytest.mark.parametrize(
    ("line", "named"), [("srun ./a", True), ("srun python t.py", False), ("srun hostname", False)]
)
def test_one_rank_of_srun_may_use_an_mpi(line: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1", line))
    assert any("--mpi=none" in one.why for one in done.remarks) is named


def test_a_launcher_of_one_site() -> None:
    done = convert("#PBS -l nodes=2:ppn=2\ncd $PBS_O_WORKDIR\nmpicmd ./a", "slurm", "torque")
    assert any(one.lost and "how mpicmd starts ranks" in one.why for one in done.remarks)


@pytest.mark.parametrize(("target", "words"), [("slurm", "PBS"), ("torque", "SBATCH")])
def test_words_without_an_option_are_named(target: str, words: str) -> None:
    """The lines of a script that PBS Pro or Slurm refuses, or reads as a file."""
    source = {"PBS": "pbspro", "SBATCH": "slurm"}[words]
    done = convert(f"#!/bin/bash\n#{words} ngpus=1\n#{words} output=a\n./a\n", target, source)
    assert "ngpus=1,output=a" in [one.what for one in done.remarks if one.lost]


@pytest.mark.parametrize(
    ("options", "line", "new"),
    [
        ("-N 1 --exclusive --ntasks-per-node=8", "mpirun -n 8 ./a", "unset OMP_NUM_THREADS"),
        ("-N 1 --exclusive --ntasks-per-node=8", "srun ./a", "export OMP_NUM_THREADS=1"),
        ("-N 1 --ntasks-per-node=8", "mpirun -n 8 ./a", "unset OMP_NUM_THREADS"),
    ],
)
def test_threads_of_ranks_on_whole_nodes_of_pbs(options: str, line: str, new: str) -> None:
    assert new in convert(SLURM.format(options, line), "pbspro").text


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("set -x\nsrun ./a", True),
        ("set -ex\nsrun ./a", True),
        ("set -o xtrace\nsrun ./a", True),
        ("set -v\nsrun ./a", True),
        ("set -- -v\nsrun ./a", False),
        ("set -e\nsrun ./a", False),
        ("f() {\nset -x\n./b\n}\nf\nsrun ./a", False),
    ],
)
def test_a_job_file_does_not_trace_the_program(lines: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1", lines))
    assert any("does not print its commands" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (". /opt/env.sh > /dev/null", True),
        ("source /opt/env.sh &> /dev/null", True),
        ("module load gcc >/dev/null 2>&1", True),
        ("module load gcc 2> /dev/null", False),
        ("source /opt/env.sh", False),
    ],
)
def test_output_that_an_option_does_not_hide(line: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1", f"{line}\nsrun ./a"))
    assert any("not in /dev/null" in one.why for one in done.remarks) is named


def test_a_separator_of_words_that_is_set_with_another_variable() -> None:
    lines = "IFS=$'\\n' names=($(cat f))\nfirst=0\necho ${names[first]}\nsrun ./a\nrm $x"
    assert values(job_file(SLURM.format("-N 1", lines)).text)["after"].count("IFS=$'\\n'") == 1


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("while getopts s: f\ndo\ncase $f in\ns) seed=$OPTARG;;\nesac\ndone", True),
        ("if [ -n $B ]\nthen\nseed=$B\nfi", True),
        ("seed=1\nif [ -n $B ]\nthen\nseed=$B\nfi", False),
        ("if [ -n $B ]\nthen\nseed=$B\nelse\nseed=2\nfi", False),
        ("case $B in\n1) seed=$B;;\n*) seed=2;;\nesac", False),
        ("[ -n $B ] && seed=$B", True),
        ("[ -f b ] || { seed=1; }", True),
        ("for f in *; do [[ $f -nt $seed ]] && seed=$f; done", True),
        ("[ -f b ] && seed=1 || seed=2", False),
        ('[ -z "$seed" ] && seed=1', False),
        ("if [[ ! -n ${seed} ]]; then seed=1; fi", False),
        ("seed=1 && other=2", False),
    ],
)
def test_a_variable_that_some_branches_set(lines: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1", f'{lines}\nsrun ./a "$seed"'))
    assert any("in a condition only" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ("--gpus=4 --gpus-per-node=1 -n 4", "select=4:ncpus=1:mpiprocs=1:ngpus=1"),
        ("--gpus=8 --gpus-per-node=4", "select=2:ngpus=4"),
        ("--gpus=4 --gpus-per-node=4 -n 4", "select=1:ncpus=4:mpiprocs=4:ngpus=4"),
    ],
)
def test_the_nodes_of_all_gpus(options: str, nodes: str) -> None:
    assert f"#PBS -l {nodes}\n" in convert(SLURM.format(options, "srun ./a"), "pbspro").text


def test_a_name_in_arithmetic_of_a_default() -> None:
    done = convert(SLURM.format("-N 1 -n 4", "N=${1:-$((SLURM_NTASKS/2))}\n./a $N"), "torque")
    assert "SLURM_NTASKS=4\n" in done.text


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("ibrun -np 4 A=1 ./a x", ["env", "A=1", "./a", "x"]),
        ("ibrun env A=1 ./a", ["env", "A=1", "./a"]),
    ],
)
def test_variables_before_the_program_of_a_launcher(line: str, program: list[str]) -> None:
    assert values(job_file(SLURM.format("-N 1 -n 4", line)).text)["command"] == program


@pytest.mark.parametrize(("shell", "named"), [("zsh", True), ("ksh", False)])
def test_arrays_of_other_shells(shell: str, named: bool) -> None:
    done = job_file(f"#!/bin/{shell}\n#SBATCH -N 1\nsrun ./a\n")
    assert any("elements of arrays from 0" in one.why for one in done.remarks) is named


def test_a_launcher_that_the_environment_in_a_container_has() -> None:
    line = 'srun singularity exec a.sif bash -c "source /env.sh; torchrun --nproc_per_node 1 t.py"'
    done = job_file(SLURM.format("-N 2 --gres=gpu:1", line))
    assert any("has to find without it" in one.why for one in done.remarks)


TWO = "#SBATCH -N 1 -n 2\nmodule load openmpi\nsrun ./a\nmodule unload openmpi\nmodule load {}\nsrun ./a"


@pytest.mark.parametrize(
    ("module", "second"), [("intel-oneapi-mpi", "mpirun -n 2 -ppn 2"), ("gcc", "mpirun -np 2")]
)
def test_each_launcher_has_the_options_of_the_mpi_that_is_loaded_there(module: str, second: str) -> None:
    lines = [one for one in convert(TWO.format(module), "torque").text.splitlines() if "mpirun" in one]
    assert [line.startswith(start) for line, start in zip(lines, ("mpirun -np 2", second), strict=True)] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("code", "old"),
    [
        ("MPI=/opt/openmpi1.4.2-intel\n$MPI/bin/mpirun -np 4 ./a", "openmpi1.4.2"),
        ("module load openmpi/1.10.1-gcc\nmpirun -np 4 ./a", "openmpi/1.10.1"),
        ("/opt/openmpi-1.6/bin/mpirun -np 4 ./a", "openmpi-1.6"),
        ("module load openmpi/3.1.6\nmpirun -np 4 ./a", ""),
        ("module load openmpi/4.1.1\nOLD=/opt/openmpi-1.6\nmpirun -np 4 ./a", ""),
        ("module load openmpi/1.10.1 mpich/3\nmpirun -np 4 ./a", ""),
    ],
)
def test_open_mpi_1_has_no_pmix(code: str, old: str) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=4\n{code}", "slurm")
    assert [one.what for one in done.remarks if "no PMIx" in one.why] == [old] * bool(old)
    assert ("--mpi=pmix" in done.text) == ("openmpi/3" in code or "openmpi/4" in code)


@pytest.mark.parametrize(
    ("value", "kept"), [("/opt/openmpi", True), ('"/opt/openmpi/bin/mpirun -np 4"', False)]
)
def test_a_variable_with_a_folder_keeps_its_value(value: str, kept: bool) -> None:
    call = "$RUN/bin/mpirun -np 4" if kept else "$RUN"
    done = convert(f"#PBS -l nodes=1:ppn=4\nRUN={value}\n{call} ./a", "slurm")
    assert (f"RUN={value}\n" in done.text) == kept
    assert "srun --ntasks=4" in done.text


NAMES = [
    ("#SBATCH -a 1-3\ncp $SLURM_JOB_NAME.csv x", "torque", "SLURM_JOB_NAME=${PBS_JOBNAME%-$PBS_ARRAYID}\n"),
    ("#SBATCH -n 1\ncp $SLURM_JOB_NAME.csv x", "torque", "cp $PBS_JOBNAME.csv x\n"),
    ("#SBATCH -a 1-3\ncp $SLURM_JOB_NAME.csv x", "pbspro", "cp $PBS_JOBNAME.csv x\n"),
    ("#SBATCH -a 1-3 -o %x_%a.log\n./a", "torque", '"${PBS_JOBNAME%-$PBS_ARRAYID}_$PBS_ARRAYID.log"'),
    ("#SBATCH -a 1-3 -o %x.log\n./a", "pbspro", 'exec > "$PBS_JOBNAME.log"'),
    ("#SBATCH -a 1-3 -o %x_%j.log\n./a", "pbspro", "${PBS_ARRAY_INDEX:+_$PBS_ARRAY_INDEX}.log"),
    ("#PBS -t 1-3\ncp $PBS_JOBNAME.csv x", "slurm", "PBS_JOBNAME=$SLURM_JOB_NAME-$SLURM_ARRAY_TASK_ID\n"),
    (
        "#PBS -l nodes=1\ncp $PBS_JOBNAME.csv $PBS_ARRAYID",
        "slurm",
        "PBS_JOBNAME=$SLURM_JOB_NAME${SLURM_ARRAY_TASK_ID:+-$SLURM_ARRAY_TASK_ID}\n",
    ),
]


@pytest.mark.parametrize(("text", "target", "line"), NAMES)
def test_torque_adds_the_index_to_the_name_of_a_task(text: str, target: str, line: str) -> None:
    """qsub -N given -t 3: PBS_JOBNAME is given-3."""
    assert line in convert(text, target).text


@pytest.mark.parametrize(
    ("option", "code", "named"),
    [
        ("-J a -o %x.out", "sed -n 2p a.out > b", True),
        ("-o out_%j.txt", "./a\nwc -l < out_${SLURM_JOB_ID}.txt", True),
        ("-N 1", "grep -c done slurm-$SLURM_JOB_ID.out", True),
        ("-o out.txt", "cp out.txt results", False),
        ("-o out.txt", "grep -c done other.txt", False),
        ("-o out.txt -e err.txt", "grep -c done err.txt", False),
    ],
)
def test_lines_of_jobgen_in_a_log_that_the_script_reads(option: str, code: str, named: bool) -> None:
    done = job_file(SLURM.format(option, f"./b\n{code}"))
    assert any("lines of its own" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("option", "code", "named"),
    [
        ("-o x/%j.out -e x/%j.err", "A=$(grep loss x/$SLURM_JOB_ID.err)", True),
        ("-e err.txt", "mv err.txt results", True),
        ("-J a -e %x.err", "cat a.err", True),
        ("-o out.txt -e out.txt", "mv out.txt results", False),
        ("-e err.txt", "mv other.txt results", False),
    ],
)
def test_the_file_of_errors_that_the_script_reads(option: str, code: str, named: bool) -> None:
    done = job_file(SLURM.format(option, f"./b\n{code}"))
    assert any("the file of errors, which the job does not write" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("./a\nsbatch next.sh", True),
        ("./a\nsbatch --export=NONE next.sh", False),
        ("export OMP_NUM_THREADS=4\n./a\nsbatch next.sh", False),
    ],
)
def test_threads_of_a_job_that_the_script_submits(code: str, named: bool) -> None:
    done = job_file(SLURM.format("-n 1", code))
    assert any("the new job gets OMP_NUM_THREADS" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ("-n 1", "set -e\nnvidia-smi\nwhile read A; do sbatch next.sh $A; done < a", ["DS_ACCELERATOR=cpu"]),
        ("-n 1", "nvidia-smi\n./a\nsbatch next.sh", ["DS_ACCELERATOR=cpu and OMP_NUM_THREADS"]),
        ("-n 1 --gres=gpu:1", "nvidia-smi\nsbatch next.sh", ["OMP_NUM_THREADS"]),
        ("-n 1", "sbatch next.sh", ["OMP_NUM_THREADS"]),
    ],
)
def test_the_accelerator_of_a_job_that_the_script_submits(options: str, code: str, named: list[str]) -> None:
    reasons = [one.why for one in job_file(SLURM.format(options, code)).remarks]
    assert [one.split(" gets ")[1].split(" of this")[0] for one in reasons if "new job gets" in one] == named


@pytest.mark.parametrize(
    ("options", "code", "names"),
    [
        ("-N 1 -n 2 --mem-per-cpu=1G", "srun ./a\nsbatch b.sh", "SLURM_NTASKS_PER_NODE, SLURM_MEM_PER_NODE"),
        ("-n 1 --gres=gpu:1", "sbatch b.sh\n./a", "SLURM_NTASKS_PER_NODE, SLURM_GPUS_PER_NODE"),
        ("-N 1", "./a\nsbatch b.sh", "SLURM_NTASKS, SLURM_NTASKS_PER_NODE"),
        ("-N 1 --gpus-per-node=2", "python a.py\nsbatch b.sh\npython a.py", ""),
        ("-N 1 --ntasks-per-node=1 --mem=1G", "./a\nsbatch b.sh", ""),
        ("-N 1", "./a\nsbatch --export=NONE b.sh", ""),
    ],
)
def test_sizes_that_a_job_finds_which_the_script_submits(options: str, code: str, names: str) -> None:
    text = f"#!/bin/bash\n#SBATCH -t 10 {options}\n{code}\n"
    found = [one.why.split("finds ")[1] for one in job_file(text).remarks if "new job finds" in one.why]
    assert [one.split(" of this")[0] for one in found] == [names] * bool(names)


@pytest.mark.parametrize("options", ["-n _N_", "-N _N_", "-n 2 -c _C_"])
def test_a_number_that_cannot_be_read_in_a_job_file(options: str) -> None:
    done = job_file(SLURM.format(options, "./a"))
    assert [one.lost for one in done.remarks if one.why.startswith("is no number")] == [False]


def test_the_plugin_for_mpi_that_a_variable_names() -> None:
    done = job_file(SLURM.format("-N 1 -n 2", "export SLURM_MPI_TYPE=pmix_v3\nsrun ./a"))
    whats = [one.what for one in done.remarks if one.why == "becomes --mpi=pmix"]
    assert whats == ["SLURM_MPI_TYPE=pmix_v3"]
    assert not [one for one in done.remarks if "is a guess" in one.why]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("#PBS -l nodes=1:ppn=4\nmpirun --version", "slurm"),
        ("#PBS -l nodes=1:ppn=4 -j oe\n#PBS -o /data/logs\ncd /data/logs\n./a", "slurm"),
        ("#SBATCH -N 1 -n 2\nmodule load ior\nsrun ior", "torque"),
    ],
)
def test_no_remark_that_is_false(text: str, target: str) -> None:
    whys = " ".join(one.why for one in convert(text, target).remarks)
    assert "has no counterpart" not in whys
    assert "has ended" not in whys
    assert "in the working directory" not in whys


def test_the_path_of_a_program_in_a_variable_is_none_of_the_launcher() -> None:
    code = 'RUN="srun --mpi=pmi2"\nPROGRAM="/opt/bin/lmp -screen none"\n$RUN $PROGRAM -in a'
    assert not [one for one in job_file(SLURM.format("-N 1 -n 2", code)).remarks if "in PATH" in one.why]


@pytest.mark.parametrize(
    ("setting", "several"),
    [("ARGUMENTS=${@:2}", True), ("X=$*", True), ("X=$1", False), ("X=${1:-a}", False)],
)
def test_a_variable_with_several_arguments_of_the_script(setting: str, several: bool) -> None:
    name = setting.partition("=")[0]
    done = job_file(SLURM.format("-n 1", f"{setting}\npython3 a.py ${name}"))
    assert (values(done.text)["command"][:2] == ["bash", "-c"]) == several


def test_a_variable_that_is_set_after_its_use_is_empty_there() -> None:
    code = "export LOG=$PLACE/log\nPLACE=/data\nexport OUT=$PLACE/out\npython3 a.py"
    found = values(job_file(SLURM.format("-n 1", code)).text)
    assert found["env"] == {"OUT": "/data/out"}
    assert "export LOG=$PLACE/log" in found["setup"]


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("#PBS -l walltime=7:00\n#PBS -j oe", ["#PBS -l walltime=7:00"]),
        ("#PBS -N name -V", ["#PBS -N name -V"]),
        ("#PBS -W group_list=a", []),
        ("#PBS -W depend=afterok:12", ["#PBS -W depend=afterok:12"]),
        ("#BSUB -W 7\n#PBS -N name", ["#BSUB -W 7"]),
        ("# PBS -N name\n##PBS -N name", []),
        ("#SBATCH --ignore-pbs\n#PBS -N name", []),
        ("#PBS_ARRAY_INDEX=1", []),
        ("\n" * 101 + "#PBS -N name", []),
        ("\n" * 10 + "./a\n#PBS -N name", ["#PBS -N name"]),
    ],
)
def test_directives_of_others_that_sbatch_reads(lines: str, what: list[str]) -> None:
    text = f"#!/bin/bash\n#SBATCH -t 10\n{lines}\n./a\n"
    for done in (convert(text, "torque", "slurm"), job_file(text, "slurm")):
        assert [one.what for one in done.remarks if "overrides #SBATCH" in one.why] == what
    assert not any(line.startswith("#PBS -l walltime=7") for line in convert(text, "torque").text.split("\n"))


@pytest.mark.parametrize("line", ["#BSUB -R 'rusage[mem=8GB]'", "#PBS -P project", "#PBS name"])
def test_directives_of_others_that_sbatch_refuses(line: str) -> None:
    """Seen with Slurm 22.05: it knows no other options of bsub and qsub."""
    done = convert(f"#!/bin/bash\n#SBATCH -t 10\n{line}\n./a\n", "torque", "slurm")
    [found] = [one for one in done.remarks if one.what == line]
    assert found.why == "sbatch reads it, too, and refuses the script for it"


@pytest.mark.parametrize(
    "launcher",
    ["srun -n $((SLURM_NNODES * r)) --cpu-bind=cores", "mpiexec -n $SLURM_NTASKS -f n.$SLURM_JOB_ID"],
)
def test_a_launcher_in_a_variable_that_is_read(launcher: str) -> None:
    done = convert(SLURM.format("-N 2 -n 4", f'GO="{launcher}"\n$GO ./a'), "pbspro")
    assert "the line is unchanged" not in str(done.remarks)


def test_a_rank_on_each_node_needs_one_core() -> None:
    done = convert(SLURM.format("-t 5", "srun -n $SLURM_JOB_NUM_NODES hostname"), "pbspro")
    assert "counted when the job runs" not in str(done.remarks)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("srun -n $X foo.x", ["foo.x"]),
        ("P=$HOME/x\nsrun $P foo.x", []),
        ("P=`pwd`/x\nsrun $P foo.x", []),
        ("P=$(which x)\nsrun $P foo.x", []),
        ("srun nvprof ./a", []),
    ],
)
def test_a_program_that_only_srun_finds(text: str, what: list[str]) -> None:
    done = convert(SLURM.format("-N 2", text), "torque")
    assert [one.what for one in done.remarks if "finds it" in one.why] == what
    assert "mpirun" in done.text.rpartition("\n")[0]


@pytest.mark.parametrize(
    ("options", "text", "end"),
    [
        ("-N 2 -n 4", "srun -n1 ./a & srun -n1 ./b & wait", "at once, on the first node"),
        ("-N 3 -n 6 --ntasks-per-node=2", "srun -n2 ./a & srun -n2 ./b & wait", "at once, on the first node"),
        ("-N 3 -n 6 --ntasks-per-node=2", "srun -n5 ./a & srun -n5 ./b & wait", "the first node on, where others may run"),
        ("-N 3 -n 6", "srun -N2 -n2 ./a & srun -N2 -n2 ./b & wait", "the first node on, where others may run"),
        ("-N 1 -n 4", "for i in 1 2; do srun -n1 ./a & done; wait", "waits for them; the new command starts at once"),
        ("-N 2 -n 4", "srun ./a & srun ./b & wait", "starts at once"),
        ("-N 2 -n 4", "srun -n1 --overlap ./a & srun -n1 --overlap ./b & wait", "at once, on the first node"),
        ("-N 1 -n 4", "srun -n1 --overlap ./a & srun -n1 --overlap ./b & wait", ""),
        ("-N 2 -n 4", "f() { srun -n1 ./a; }\nf & f & wait", "on the first node"),
        ("-N 2 -n 4", "f() { srun -n1 ./a; }\nexport -f f\nparallel f ::: 1 2", "on the first node"),
        ("-N 2 -n 4", "f() { srun -n1 ./a & }\nf 1\nf 2\nwait", "on the first node"),
        ("-N 2 -n 4", "f() { srun -n1 ./a & }\nfor i in 1 2; do f $i; done\nwait", "on the first node"),
        ("-N 2 -n 4", "f() { srun -n1 ./a & }\nf 1\nwait\nf 2", ""),
        ("-N 2 -n 4", "f() { srun -n1 ./a & wait; }\nf 1\nf 2", ""),
        ("-N 2 -n 4", "f() { srun -n1 ./a; }\nf; f", ""),
        ("-N 2 -n 4", "srun -n1 ./a", ""),
        ("-N 2 -n 4", "srun -n1 ./a & wait", ""),
    ],
)  # fmt: skip
def test_steps_that_wait_for_free_cores(options: str, text: str, end: str) -> None:
    why = [one.why for one in convert(SLURM.format(options, text), "pbspro").remarks if "free" in one.why]
    assert bool(why) == bool(end)
    assert all(one.endswith(end) for one in why)


def test_a_launcher_of_a_site_and_its_environment_are_named() -> None:
    text = (
        '. ~u/conf/profile_x\n. ~/.bash_profile\nexport R="Mpirun -np 4"\ntime $R ./a\nmodule load slurm/20\n'
    )
    done = convert(SLURM.format("-N 1", text), "torque")
    assert {one.what for one in done.remarks} == {"profile_x", "time $R ./a", "slurm/20"}


def test_printed_names_of_variables_are_not_set() -> None:
    done = convert(SLURM.format("-N 1", 'echo "SLURM_JOB_ID=$SLURM_JOB_ID"\n. ./x.sh'), "torque")
    assert "SLURM_JOB_ID" in next(one.why for one in done.remarks if one.what == "x.sh")


@pytest.mark.parametrize(
    ("text", "count"), [("X=./a\nmpirun $X -np 2", 1), ("mpirun ./a", 1), ("mpirun -n 2 $X", 0)]
)
def test_a_launch_without_a_number_of_ranks(text: str, count: int) -> None:
    done = convert(SLURM.format("-c 2", text), "pbspro")
    assert sum("each core" in one.why for one in done.remarks) == count


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("cd /lscratch/$PBS_JOBID || exit", True),
        ('D=/scratch/$USER/$PBS_JOBID\necho "$D"\nexport TMPDIR=$D\ncd "$D/work"', True),
        ("mkdir -p /scratch/$PBS_JOBID\ncd /scratch/$PBS_JOBID", False),
        ("D=/scratch/$PBS_JOBID\nmkdir $D && cd $D", False),
        ("cp -r data /scratch/$PBS_JOBID\ncd /scratch/$PBS_JOBID", False),
        ("cd /data\n./a $PBS_JOBID", False),
    ],
)
def test_a_directory_of_the_job_that_the_site_makes(code: str, named: bool) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2\n{code}", "slurm")
    assert [one.lost for one in done.remarks if "does not make this directory" in one.why] == [False] * named


@pytest.mark.parametrize(
    ("code", "workdir"),
    [("D=YOURDIR\ncd $D", "~/."), ("cd RUN", "~/RUN"), ("cd YourDir", "~/YourDir")],
)
def test_a_directory_to_fill_in_may_be_an_absolute_one(code: str, workdir: str) -> None:
    options = values(job_file(f"#PBS -l select=1:ncpus=2\n{code}\n./a\n").text)
    assert options["workdir"] == workdir
    assert ("cd" in options.get("setup", "")) is (workdir == "~/.")


@pytest.mark.parametrize("target", ["pbspro", "toml"])
@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("cp a b || exit $LINENO", "$LINENO"),
        ("f() { echo ${BASH_LINENO[0]}; }\nf", "$BASH_LINENO"),
        ("trap 'echo $LINENO' ERR", "$LINENO"),
        ("PS4='$LINENO '", "$LINENO"),
        ("cat << E > b\n$LINENO\nE", "$LINENO"),
        ("bash -c 'echo $LINENO'", ""),
        ("cat << 'E' > b\n$LINENO\nE", ""),
        ("# $LINENO", ""),
    ],
)
def test_the_number_of_a_line_is_another_one(code: str, name: str, target: str) -> None:
    script = SLURM.format("-N 1 -n 4", f"{code}\nsrun ./a")
    done = job_file(script) if target == "toml" else convert(script, target)
    found = [one.what for one in done.remarks if one.why.startswith("is a line of this script")]
    assert found == [name] * bool(name)


@pytest.mark.parametrize(
    ("command", "site"),
    [
        ("trap clean_scratch EXIT", "MetaCentrum"),
        ("trap 'clean_scratch' TERM EXIT", "MetaCentrum"),
        ("clean_scratch", "MetaCentrum"),
        ("nvidia-docker-run image < a.txt", "NSCC Singapore"),
        ("torque-launch -p a.txt b.txt", "Temple University"),
        ("[ -d a ] || mdss get a.tar", "NCI Australia"),
        ("savefile a.txt", "Sigma2"),
    ],
)
def test_a_command_of_a_site(command: str, site: str) -> None:
    directive, target = (
        ("#SBATCH -n 2", "torque") if site == "Sigma2" else ("#PBS -l select=1:ncpus=2", "slurm")
    )
    done = convert(f"{directive}\n{command}\n./a", target)
    assert [one.lost for one in done.remarks if one.why == f"is a command of {site}"] == [True]
    if site == "MetaCentrum":
        own = convert(f"{directive}\nclean_scratch() {{ rm -r /x; }}\n{command}\n./a", target)
        assert site not in str(own.remarks)


@pytest.mark.parametrize(
    ("script", "target", "owner"),
    [
        ("#PBS -l select=1:ncpus=2\nnvidia-docker-run $image < in.sh", "slurm", "NSCC Singapore"),
        ("#SBATCH -N 1\n./a\nmy-job-stats -a", "pbspro", "the University of Melbourne"),
        ("#SBATCH -N 1\nsocker run a/b python a.py", "torque", "the University of Oslo"),
    ],
)
def test_an_other_command_of_a_site(script: str, target: str, owner: str) -> None:
    assert [one.lost for one in convert(script, target).remarks if owner in one.why] == [True]


@pytest.mark.parametrize(
    ("options", "request_", "ranks"),
    [
        ("-N 1 --gpus=4 --gpus-per-task=1 -c 2", "select=1:ncpus=8:mpiprocs=4:ngpus=4", 4),
        ("--gpus=4 --gpus-per-task=1 -c 2", "select=4:ncpus=2:ngpus=1", 4),
        ("-N 2 --gpus=4 --gpus-per-task=2", "select=2:ncpus=1:mpiprocs=1:ngpus=2", 2),
        ("-N 4 --gpus-per-node=2 --gpus-per-task=1", "select=4:ncpus=2:mpiprocs=2:ngpus=2", 8),
        ("-N 2 --gres=gpu:4 --gpus-per-task=2", "select=2:ncpus=2:mpiprocs=2:ngpus=4", 4),
        ("-N 2 -n 2 --gpus-per-task=2", "select=2:ncpus=1:mpiprocs=1:ngpus=2", 2),
        ("-N 1 --gpus-per-task=1", "select=1:ngpus=1", 1),
    ],
)
def test_the_number_of_ranks_is_that_of_the_gpus_of_each(options: str, request_: str, ranks: int) -> None:
    done = convert(SLURM.format(options, "export MASTER=$SLURM_NTASKS\n./a"), "pbspro")
    assert f"#PBS -l {request_}\n" in done.text
    assert f"SLURM_NTASKS={ranks}\n" in done.text or ranks == 1


@pytest.mark.parametrize("text", ["srun ./a", "mpirun ./a", "mpirun -np 4 ./a"])
def test_each_rank_of_several_cores_is_a_node_of_torque(text: str) -> None:
    assert "--map-by ppr:1:node" in convert(SLURM.format("-n 4 -c 2", text), "torque").text
    assert "--map-by" not in convert(SLURM.format("-n 4 -c 2", text), "pbspro").text
    assert "--map-by" not in convert(SLURM.format("-n 4", text), "torque").text


@pytest.mark.parametrize(
    ("text", "what"), [("${MPI_RUN} ./a", ["${MPI_RUN}"]), ("R=\n$R ./a", []), ("$RUN/a b", [])]
)
def test_a_launcher_of_the_environment_is_named(text: str, what: list[str]) -> None:
    done = convert(SLURM.format("-N 1", text), "torque")
    assert [one.what for one in done.remarks if "environment" in one.why] == what


@pytest.mark.parametrize(
    ("command", "new"),
    [
        ("cd $SCRATCHDIR || exit 1", "cd ${SCRATCHDIR:?} || exit 1"),
        ('cd "$TMPDIR/x"', 'cd "${TMPDIR:?}/x"'),
        ("rm -rf ${TMPDIR}/*", "rm -rf ${TMPDIR:?}/*"),
        ("cp a $PBS_JOBFS; cd $PBS_JOBFS", "cp a $PBS_JOBFS; cd ${PBS_JOBFS:?}"),
        ("cd ${TMPDIR:-/tmp}", "cd ${TMPDIR:-/tmp}"),
        ("cp a $TMPDIR", "cp a $TMPDIR"),
        ("TMPDIR=/x; cd $TMPDIR", "TMPDIR=/x; cd $TMPDIR"),
        ("if [ $1 ]; then TMPDIR=/x; fi; cd $TMPDIR", "if [ $1 ]; then TMPDIR=/x; fi; cd ${TMPDIR:?}"),
        ("[ -d /x ] && TMPDIR=/x; cd $TMPDIR", "[ -d /x ] && TMPDIR=/x; cd ${TMPDIR:?}"),
        *(
            (text, text)
            for text in (
                "if [ $1 ]; then TMPDIR=/x; else TMPDIR=/y; fi; cd $TMPDIR",
                "if [ -z $TMPDIR ]; then TMPDIR=/x; fi; cd $TMPDIR",
                "[ -d ${TMPDIR:-/} ] || TMPDIR=/x; cd $TMPDIR",
                "export TMPDIR=/x || exit 1; cd $TMPDIR",
                "[ -d /x ] && TMPDIR=/x/y && cd $TMPDIR",
                "if [ $1 ]; then TMPDIR=/x; cd $TMPDIR; fi",
            )
        ),
    ],
)
def test_a_directory_that_slurm_does_not_set_is_not_entered(command: str, new: str) -> None:
    """``cd`` of an empty variable enters the home directory, where ``rm`` deletes all files."""
    done = convert(f"#PBS -l select=1:ncpus=2\n{command}\nrm -rf *", "slurm")
    assert done.text.splitlines()[-2] == new


def test_a_shell_that_env_finds_is_the_same() -> None:
    text = "#!/usr/bin/env bash\n#PBS -l select=1:ncpus=1\n#PBS -S /bin/{}\n./a\n"
    assert not [one for one in convert(text.format("bash"), "slurm").remarks if one.what.startswith("-S")]
    assert [one.lost for one in convert(text.format("sh"), "slurm").remarks if one.what.startswith("-S")] == [
        True
    ]


@pytest.mark.parametrize(("redirection", "named"), [("1>&2", False), ("> file", True), ("> file 2>&1", True)])
def test_a_command_of_the_scheduler_in_text_that_is_printed(redirection: str, named: bool) -> None:
    done = convert(f'#PBS -l select=1:ncpus=2\n./a\necho "use qsub a.pbs" {redirection}', "slurm")
    assert ("is a command of PBS Pro" in str(done.remarks)) == named


@pytest.mark.parametrize(
    ("values", "text", "why"),
    [
        (("ibrun", "mpirun"), "$L -np 4 ./a", "may be ibrun or mpirun"),
        (("mpirun -np 4", "mpiexec -n 4"), "${L} ./a", "may be mpirun or mpiexec"),
        (("srun -n 4", ""), "$L ./a", "may be srun"),
        (("torchrun", "python"), "$L t.py", ""),
        (("./a", "./b"), "$L x", ""),
    ],
)
def test_a_variable_that_may_be_one_of_several_launchers(
    values: tuple[str, ...], text: str, why: str
) -> None:
    cases = "\n".join(f'{at}) L="{value}";;' for at, value in enumerate(values))
    done = convert(SLURM.format("-N 2", f"case $X in\n{cases}\nesac\n{text}"), "pbspro")
    assert any(why in one.why and "is unchanged" in one.why for one in done.remarks) == bool(why)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('bash -c "source a/b.sh; ./c"', ["b.sh"]),
        ("singularity exec x.sif /bin/bash -lc 'source a/b.sh'", ["b.sh"]),
        ('singularity exec x.sif /bin/bash -c "source /ext3/env.sh; ./c"', []),
        ('bash -c "./c"', []),
    ],
)
def test_scripts_that_another_shell_reads(text: str, what: list[str]) -> None:
    done = convert(SLURM.format("-N 1", text), "torque")
    assert [one.what for one in done.remarks if "not read" in one.why] == what


@pytest.mark.parametrize(
    ("options", "text", "what"),
    [
        ("--begin=now", "./a", []),
        ("--begin=now+1hour", "./a", ["--begin=now+1hour"]),
        ("-N 1", "export SBATCH_PARTITION=gpu\n./a", ["SBATCH_PARTITION"]),
        ("-N 1", "SBATCH_SCRIPT=a.sh\n./a", []),
        ("-N 1", "module load slurm-tools/1 python/3", ["slurm-tools/1"]),
        ("-N 1", "M=slurm/20\nmodule load $M", ["$M"]),
    ],
)
def test_what_only_slurm_reads(options: str, text: str, what: list[str]) -> None:
    done = convert(SLURM.format(options, text), "torque")
    assert [one.what for one in done.remarks if one.lost] == what


@pytest.mark.parametrize(
    ("options", "name"), [("-n 8 --ppn 4 --depth 8", "MpiDefault"), ("-n 8 -ppn 4", "MPI_LOCALRANKID"), ("-n 8", "MPI_LOCALRANKID")]
)  # fmt: skip
def test_the_options_say_which_mpi_has_the_variables(options: str, name: str) -> None:
    text = f"#PBS -l select=2:ncpus=8\nexport MPICH_GPU_SUPPORT_ENABLED=1\nmpiexec {options} ./a"
    done = convert(text, "slurm")
    pmi = name == "MPI_LOCALRANKID"
    assert ("--mpi=pmi2" in done.text) == pmi
    assert name in str(done.remarks)
    assert ("PMI_RANK" in str(done.remarks)) != pmi, "pmi2 of Slurm sets it"


def test_ranks_that_are_counted_when_the_job_runs() -> None:
    def cores(request: str) -> list[int]:
        done = convert(f"#PBS -l {request}\nmpiexec -n $N ./a", "slurm")
        return [one.line for one in done.remarks if "counted when the job runs" in one.why]

    assert cores("select=2") == [3]
    assert cores("select=2:ncpus=16:mpiprocs=16") == []


@pytest.mark.parametrize(
    ("code", "named"),
    [("torchrun --nproc-per-node=4 t.py", True), ("export OMP_NUM_THREADS=16\n./a", True), ("./a", False)],
)
def test_one_node_without_cores(code: str, named: bool) -> None:
    done = convert(f"#PBS -l select=1\n{code}", "slurm")
    assert ("names no cores" in str(done.remarks)) == named


@pytest.mark.parametrize(
    ("code", "moved"),
    [
        ("echo a > status", True),
        ("date >> logs/x", True),
        ("echo a > /tmp/x", False),
        ("echo a >&2", False),
        ("echo $HOME > $OUT", False),
    ],
)
def test_a_file_that_is_written_before_the_first_cd(code: str, moved: bool) -> None:
    assert (
        'cd "$HOME"' in convert(f"#PBS -l select=1\n{code}\ncd $PBS_O_WORKDIR\n./a", "slurm").text
    ) == moved


@pytest.mark.parametrize(
    "code", ["nextflow run a.nf", "N=/opt/nextflow\n$N run a.nf", 'N="nextflow run"\n$N a.nf']
)
def test_an_engine_in_a_variable(code: str) -> None:
    found = [one.what for one in convert(SLURM.format("-N 1", code), "torque").remarks]
    assert "the configuration of nextflow" in found


@pytest.mark.parametrize("name", ["{LOGDIR}", "logs", "<LOGS>"])
def test_a_log_that_may_be_a_directory(name: str) -> None:
    assert "takes a directory, too" in str(convert(f"#PBS -l select=1\n#PBS -o {name}\n./a", "slurm").remarks)


@pytest.mark.parametrize(("array", "new"), [("[13]%6", "13%6"), ("[1-5]", "1-5"), ("[1-5%2]", "1-5%2")])
def test_an_array_in_brackets(array: str, new: str) -> None:
    assert (
        f"#PBS -t {new}\n" in convert(SLURM.format(f"-a {array}", "./a $SLURM_ARRAY_TASK_ID"), "torque").text
    )


@pytest.mark.parametrize(
    ("code", "ranks"),
    [
        ('A="--ntasks=2 -c 4"; srun $A ./a', "-np 2 "),
        ('A=" --ntasks=2 "; srun $A ./a', "-np 2 "),
        ('A="--ntasks=2"; srun $A ./a', "-np 2 "),
        ('srun "--ntasks=2" ./a', "-np 2 "),
    ],
)
def test_an_option_with_its_value_comes_first_in_a_string(code: str, ranks: str) -> None:
    assert (
        ranks
        in convert(SLURM.format("-N 2 --ntasks-per-node=2", code), "pbspro").text.rpartition("mpirun")[2]
    )


@pytest.mark.parametrize(
    ("text", "words"), [("--a=1 --b 2", ["--a=1", "--b", "2"]), ("lr=1 x=2", ["lr=1", "x=2"])]
)
def test_arguments_like_assignments(text: str, words: list[str]) -> None:
    done = job_file(SLURM.format("-N 1", f'A="{text}"; torchrun --nproc_per_node=4 t.py $A'), "slurm")
    assert tomllib.loads(done.text)["program"]["command"] == ["t.py", *words]


@pytest.mark.parametrize(
    ("options", "code", "lines"),
    [
        ("mppwidth=48", "aprun -n 8 -d $OMP_NUM_THREADS ./a", ["--ntasks=8", "--cpus-per-task=6"]),
        (
            "mppwidth=48",
            "aprun -n 8 -N 4 -d 6 ./a",
            ["--nodes=2", "--ntasks-per-node=4", "--cpus-per-task=6"],
        ),
        ("mppwidth=48", "aprun -n 4 ./a &", ["--ntasks=48", "--cpus-per-task=1"]),
        ("mppwidth=8,mppdepth=6", "./run", ["--ntasks=8", "--cpus-per-task=6"]),
        ("mppwidth=96,mppnppn=4,mppdepth=6", "aprun -n 96 ./a", ["--nodes=24", "--ntasks-per-node=4"]),
    ],
)
def test_cores_of_cray(options: str, code: str, lines: list[str]) -> None:
    done = convert(f"#PBS -l {options}\nexport OMP_NUM_THREADS=6\n{code}", "slurm")
    assert [*lines, "--exclusive"] == [
        one for one in (*lines, "--exclusive") if f"#SBATCH {one}\n" in done.text
    ]
    assert [one.lost for one in done.remarks if "ALPS" in one.why] == [False]


@pytest.mark.parametrize(("depth", "threads"), [("", False), (",mppdepth=6", True)])
def test_threads_of_cray_are_not_the_depth_of_the_launcher(depth: str, threads: bool) -> None:
    done = convert(f"#PBS -l mppwidth=48{depth}\naprun -n 8 -d 6 ./a", "slurm")
    assert ("OMP_NUM_THREADS=6" in done.text) is threads


@pytest.mark.parametrize(
    ("resources", "code", "named"),
    [
        ("walltime=10", "N=$(wc -l < $PBS_NODEFILE)\n./a $N", "$PBS_NODEFILE"),
        ("walltime=10", "./a $PBS_NP", "$PBS_NP"),
        ("walltime=10", "cat $PBS_NODEFILE", ""),
        ("nodes=1", "N=$(wc -l < $PBS_NODEFILE)\n./a $N", ""),
    ],
)
def test_slots_that_only_the_submission_requests(resources: str, code: str, named: str) -> None:
    done = convert(f"#PBS -l {resources}\n{code}", "slurm", "torque")
    assert [one.what for one in done.remarks if "no directive requests nodes" in one.why] == [named] * bool(
        named
    )
    assert ("SLURM_NTASKS" in done.text) == (resources != "nodes=1")


def test_slots_of_the_submission() -> None:
    text = convert("#PBS -q a\nset -u\nmpirun -np $PBS_NP ./a $PBS_NUM_PPN", "slurm", "torque").text
    assert "PBS_NP=${SLURM_NTASKS:-$SLURM_JOB_NUM_NODES}\nPBS_NUM_PPN=${SLURM_NTASKS_PER_NODE:-1}\n" in text
    assert 'srun --ntasks="$PBS_NP" ' in text


@pytest.mark.parametrize(
    ("code", "ignored"),
    [
        ("#PBS -l walltime=70", True),
        ("cat > b.pbs << END\n#PBS -N b\nEND", True),
        ("#BSUB -W 7", True),
        ("#PBS_ARRAY_INDEX=1", True),
        ("#PBS does not set it", True),
        ("#PBS -j oe\n##PBS -N b\n# PBS -N b", False),
    ],
)
def test_directives_that_stay_have_no_effect_in_the_new_script(code: str, ignored: bool) -> None:
    done = convert(f"#PBS -l nodes=2:ppn=4\n./a\n{code}", "slurm", "torque")
    assert ("#SBATCH --ignore-pbs\n" in done.text) == ignored


def test_a_dollar_sign_in_single_quotes_stays() -> None:
    text = "#PBS -l nodes=2:ppn=4\nN=8\nA='mpirun -np $N'\n{}$A ./a"
    assert "srun" not in convert(text.format(""), "slurm").text
    assert "eval srun --ntasks=8 " in convert(text.format("eval "), "slurm").text


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ('A="python -m torch.distributed.run t.py"\neval $A', True),
        ("C='export OMP_NUM_THREADS=8;'", True),
        ("make -j 4", True),
        ("./a  # -j 4", False),
    ],
)
def test_one_node_for_several_cores_in_a_text(code: str, named: bool) -> None:
    done = convert(f"#PBS -l select=1\n{code}", "slurm")
    assert ("names no cores" in str(done.remarks)) == named


def test_a_launcher_of_another_spelling_in_a_text() -> None:
    done = convert("#PBS -q a\nexport RUN='Mpirun -np 4'\nmake", "slurm")
    assert (False, 3, "Mpirun") in remarks(done)


@pytest.mark.parametrize(
    ("word", "named"),
    [("$D", True), ("./res", True), ("$D/$PBS_JOBID", True), ("$E", True), ("out", False)],
)
def test_the_folder_of_a_log_in_a_variable(word: str, named: bool) -> None:
    text = f"#PBS -l nodes=1:ppn=2 -o ./res/$PBS_JOBID.out\ncd $PBS_O_WORKDIR\nD=./res\nE=$D/$PBS_JOBID\nmkdir -p {word} $X"
    assert ("make it before you submit" in str(convert(text, "slurm", "torque").remarks)) == named


@pytest.mark.parametrize(("path", "named"), [("out/a.log", False), ("logs/a.log", True), ("a.log", True)])
def test_another_file_with_the_name_of_the_log(path: str, named: bool) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=2 -o logs/a.log\n./a | tee {path}", "slurm", "torque")
    assert ("while it runs" in str(done.remarks)) == named


def test_a_dollar_sign_of_sed() -> None:
    code = "N=$(sed -n $= < $PBS_NODEFILE)\nmpirun -np 8 ./a"
    assert "srun --ntasks=8 " in convert(f"#PBS -l nodes=2:ppn=4\n{code}", "slurm").text


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("module load impi/2019\nmpirun -np 8 ./a", True),
        ("module load impi/2019\nexport I_MPI_PMI_LIBRARY=/usr/lib/libpmi2.so\nmpirun -np 8 ./a", False),
        ("module load impi/2019\nmpirun -np 1 ./a", False),
        ("module load openmpi/4.1\nmpirun -np 8 ./a", False),
    ],
)
def test_the_library_by_which_the_ranks_of_srun_find_each_other(code: str, named: bool) -> None:
    done = convert(f"#PBS -l nodes=2:ppn=4\n{code}", "slurm", "torque")
    whys = [one.why for one in done.remarks if "I_MPI_PMI_LIBRARY" in one.why]
    assert ["libpmi2.so, or libpmi.so before version 2017" in one for one in whys] == [True] * named


def test_the_index_in_another_script_needs_no_array_of_this_one() -> None:
    text = "#PBS -l nodes=1\ncat > b.pbs << 'END'\n{}\n./a $PBS_ARRAYID\nEND"
    for line, named in (("#PBS -t 1-4", False), ("echo b", True)):
        done = convert(text.format(line), "slurm", "torque")
        assert ("range of the array" in str(done.remarks)) == named


@pytest.mark.parametrize(
    ("command", "cyclic"),
    [
        ("uniq $PBS_NODEFILE", True),
        ("uniq $PBS_NODEFILE | awk '{for(i=0;i<2;i+=1) print}'", False),
        ("for h in $(sort -u $PBS_NODEFILE); do echo $h; echo $h; done", False),
    ],
)
def test_the_order_of_the_hosts_of_a_file(command: str, cyclic: bool) -> None:
    code = f"{command} > hosts\nmpiexec --hostfile hosts -n 4 ./a"
    done = convert(f"#PBS -l nodes=2:ppn=16\n{code}", "slurm", "torque")
    assert ("--distribution=cyclic" in done.text) == cyclic


@pytest.mark.parametrize(
    ("text", "lost"),
    [("'PBS_JOBID: '$N", False), ('"PBS_JOBID = $N"', False), ("'id: $PBS_JOBID'", True)],
)
def test_a_label_in_a_text_is_no_variable(text: str, lost: bool) -> None:
    done = convert(f"#PBS -l nodes=2:ppn=16\necho {text} >> out", "slurm", "torque")
    assert ((True, 3, "PBS_JOBID") in remarks(done)) == lost


@pytest.mark.parametrize("head", ["<<END>f", "<<END>>$F", "<<END| sort", "<<-END>f", "<< END>f"])
def test_a_sign_directly_behind_the_delimiter_of_a_document(head: str) -> None:
    done = convert(
        f"#PBS -l nodes=2:ppn=4\ncat {head}\n./a $PBS_JOBID\nEND\nmpirun -np 8 ./a\n", "slurm", "torque"
    )
    assert "END\nsrun --ntasks=8 " in done.text
    assert "document" not in str(done.remarks)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        *(("which mpirun\n./gather.pl -np 64", True), ("R=mpirun\n./gather.pl $R", False)),
        *(("./gather.pl", True), ("export I_MPI_HYDRA_BOOTSTRAP=rsh\n./gather.pl", True)),
    ],
)
def test_a_program_for_several_nodes_that_nothing_starts_there(code: str, named: bool) -> None:
    done = convert(f"#PBS -l nodes=4:ppn=16\ncd /work\n{code}", "slurm", "torque")
    assert ("no launcher starts it on the 4 nodes" in str(done.remarks)) == named


@pytest.mark.parametrize(("code", "lost"), [("cat a > pbs", False), ("./a pbs", True)])
def test_a_file_with_the_name_of_the_scheduler(code: str, lost: bool) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=16\n{code}", "slurm", "torque")
    assert ((True, 3, "pbs") in remarks(done)) == lost


@pytest.mark.parametrize(
    ("resources", "options", "waits"),
    [
        ("mppwidth=96", "-n 24", True),
        ("nodes=4:ppn=24", "-n 24", False),
        ("nodes=4:ppn=24", "-n 96", True),
        ("nodes=4:ppn=24", "-n 24 -N 12", False),
        ("mppwidth=96", "-n 1", False),
    ],
)
def test_launchers_of_cray_that_run_at_the_same_time(resources: str, options: str, waits: bool) -> None:
    code = f"for i in 1 2 3 4; do\naprun {options} ./a $i &\ndone\nwait"
    done = convert(f"#PBS -l {resources}\n{code}", "slurm", "torque")
    assert ("waits until all nodes are free" in str(done.remarks)) == waits


def test_each_text_with_a_launcher_has_a_remark() -> None:
    code = "cat > a << END\nmpirun ./a\nEND\ncat > b << END\nmpirun ./b\nEND\nbash a; bash b"
    done = convert(f"#PBS -l nodes=4:ppn=2\n{code}", "slurm", "torque")
    assert [one.line for one in done.remarks if one.what == "mpirun"] == [4, 7]


def test_a_directory_below_one_that_slurm_does_not_make_is_named() -> None:
    done = convert("#PBS -l select=1:ncpus=2\nSCRATCHDIR=$SCRATCHDIR/x\nmkdir $SCRATCHDIR\n./a", "slurm")
    assert [(one.line, one.what) for one in done.remarks if "makes" in one.why] == [(3, "$SCRATCHDIR")]


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ('echo "#PBS -N b" > b.pbs\necho "cd \\$PBS_O_WORKDIR" >> b.pbs', True),
        ('cat > b.pbs <<END\n#PBS -N b\nEND\nprintf "cd \\${PBS_O_WORKDIR}\\n" >> b.pbs', True),
        ('{ echo "#PBS -N b"; echo "cd \\$PBS_O_WORKDIR"; } > b.pbs', True),
        ('echo "cd \\$PBS_O_WORKDIR" > b.sh\nbash b.sh', False),
        ('echo "#PBS -N b" > b.pbs\nssh host "cd \\$PBS_O_WORKDIR"', False),
        ('echo "#PBS -N b" > b.pbs\nssh host "cd \\$PBS_O_WORKDIR" > log', False),
        ('echo "#PBS -N b" >&2\necho "cd \\$PBS_O_WORKDIR" > b.sh', False),
    ],
)
def test_a_script_that_another_one_writes_with_echo_stays_as_it_is(lines: str, stays: bool) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2\n{lines}", "slurm")
    assert ("SLURM_SUBMIT_DIR" not in done.text) == stays
    if stays:
        assert [one.what for one in done.remarks if "stays one for PBS Pro" in one.why] == ["#PBS -N b"]
        assert [one.why for one in done.remarks if one.what == "PBS_O_WORKDIR"] == ["is not set by Slurm"]


@pytest.mark.parametrize(
    ("source", "directive"),
    [("slurm", "--dependency=afterany:8354394"), ("pbspro", "-W depend=afterok:12.server:13")],
)
def test_the_number_of_a_job_of_the_old_scheduler_has_a_remark(source: str, directive: str) -> None:
    prefix = "#SBATCH" if source == "slurm" else "#PBS"
    text = f"#!/bin/bash\n{prefix} {directive}\n./a\n"
    for target in {"slurm", "pbspro", "torque"} - {source}:
        why = [one.why for one in convert(text, target, source).remarks if one.what == directive]
        assert [one.startswith("names a job of") for one in why] == [True]
    assert (False, 2, directive) in remarks(job_file(text, source))
    assert "names a job" not in str(convert("#SBATCH -d singleton\n./a", "pbspro", "slurm").remarks)


@pytest.mark.parametrize(
    ("module", "options", "line", "hosts"),
    [
        ("intel-mpi", "-n 4", "srun ./a", "-machinefile"),
        ("intel-mpi", "-n 4", "mpirun ./a", "-machinefile"),
        ("intel-mpi", "-n 4", "mpirun -ppn 2 ./a", "-f"),
        ("intel-mpi", "-N 2 --ntasks-per-node=2", "srun ./a", "-f"),
        ("mpich", "-n 4", "srun ./a", "-f"),
    ],
)
def test_intel_mpi_counts_the_lines_of_a_machinefile_only(
    module: str, options: str, line: str, hosts: str
) -> None:
    text = convert(SLURM.format(options, f"module load {module}\n{line}"), "pbspro").text
    assert f' {hosts} "$PBS_NODEFILE"' in text
    assert text.count("$PBS_NODEFILE") == 1


PINNED = "export OMP_PLACES=cores\nsrun ./a"


@pytest.mark.parametrize(
    ("options", "code", "bound"),
    [
        ("-N 2 --ntasks-per-node=4 -c 2", PINNED, "--map-by ppr:4:node:PE=2 --bind-to core"),
        ("-N 2 --ntasks-per-node=4", PINNED, "--map-by ppr:4:node --bind-to core"),
        ("-N 2 --ntasks-per-node=4", f"{PINNED[:-4]} -c 2 ./a", "--map-by ppr:4:node:PE=2 --bind-to core"),
        ("-N 2 --ntasks-per-node=4 -c 2", f"module load mpich\n{PINNED}", "-bind-to core:2"),
        ("-N 2 -c 2", PINNED, "--bind-to none"),
        ("-N 2 --ntasks-per-node=4 -c 2", PINNED.replace("export ", ""), "--bind-to none"),
        ("-N 2 --ntasks-per-node=4 -c 2", f"export OMP_PROC_BIND=false\n{PINNED}", "--bind-to none"),
        ("-N 2 --ntasks-per-node=4 --exclusive", PINNED, "--bind-to none"),
    ],
)
def test_ranks_whose_threads_are_bound_have_cores_of_their_own(options: str, code: str, bound: str) -> None:
    done = convert(SLURM.format(options, code), "pbspro")
    assert f" {bound} " in done.text
    assert "OMP_PLACES" not in [one.what for one in done.remarks]


def test_bound_threads_of_ranks_without_a_binding_have_a_remark() -> None:
    text = SLURM.format("-N 2 --ntasks-per-node=4 -c 2", f"module load intel-mpi\n{PINNED}")
    assert "OMP_PLACES" in [one.what for one in convert(text, "pbspro").remarks]
    assert (False, 4, "OMP_PLACES") in remarks(job_file(text))


@pytest.mark.parametrize(
    ("select", "place", "kept", "lost"),
    [
        ("5:ncpus=2", "pack", None, True),
        ("5:ncpus=2", "pack:excl", None, True),
        ("2:ncpus=2:mpiprocs=2+1:ncpus=4:mpiprocs=4", "pack:group=sw", ["-l place=scatter:group=sw"], True),
        ("1:ncpus=2", "pack", ["-l place=pack"], None),
        ("5:ncpus=2", "vscatter", None, False),
        ("5:ncpus=2", "group=host", None, True),
        ("5:ncpus=2", "scatter:group=host", None, True),
        ("5:ncpus=2", "excl", None, False),
        ("5:ncpus=2", "free:group=sw", ["-l place=scatter:group=sw"], False),
        ("5:ncpus=2", "scatter:group=sw", ["-l place=scatter:group=sw"], None),
        ("5:ncpus=2", "group=sw:exclhost", ["-l place=scatter:group=sw:exclhost"], False),
    ],
)
def test_chunks_on_one_host_are_no_nodes_of_a_job_file(
    select: str, place: str, kept: list[str] | None, lost: bool | None
) -> None:
    done = job_file(f"#!/bin/bash\n#PBS -l select={select}\n#PBS -l place={place}\nmpirun ./a\n")
    assert tomllib.loads(done.text).get("pbs", {}).get("directive") == kept
    found = [one.lost for one in done.remarks if one.what == f"-l place={place}"]
    assert found == [lost] * (lost is not None)


@pytest.mark.parametrize(
    ("options", "memory", "named"),
    [
        ("--ntasks=NTASKS", "--mem-per-cpu=4G", True),
        ("-n 4 -c NCPU", "--mem-per-cpu=4G", True),
        ("-n 4 --gpus=NGPU", "--mem-per-gpu=4G", True),
        ("-n 4 -c NCPU", "--mem=4G", False),
        ("-n 4 -c 2", "--mem-per-cpu=4G", False),
    ],
)
def test_the_memory_of_an_unknown_number_of_cores_is_named(options: str, memory: str, named: bool) -> None:
    done = job_file(SLURM.format(f"{options} {memory}", "srun ./a"))
    assert (memory in [one.what for one in done.remarks if "set mem" in one.why]) is named


@pytest.mark.parametrize(
    ("resources", "named"),
    [
        ("nodes=2:ppn=$P -l pmem=2gb", ["-l pmem=2gb"]),
        ("nodes=$N:ppn=2 -l mem=64gb", ["-l mem=64gb"]),
        ("nodes=node1:ppn=2 -l pmem=2gb", []),
        ("select=1:ncpus=$N:mem=2gb -l pmem=1gb", []),
        ("procs=$N -l pmem=2gb", ["-l pmem=2gb"]),
    ],
)
def test_the_memory_of_an_unknown_number_of_nodes_is_named(resources: str, named: list[str]) -> None:
    done = job_file(f"#!/bin/bash\n#PBS -l {resources}\nmpirun ./a\n")
    assert [one.what for one in done.remarks if "set mem" in one.why] == named
    assert any(one.lost for one in done.remarks) is (named != [] or "$N" in resources or "node1" in resources)


_TWO_CHUNKS = "#!/bin/bash\n#PBS -l select=2:ncpus=4:mpiprocs=4\n"


@pytest.mark.parametrize(
    ("form", "named", "lost"),
    [
        (f"{_TWO_CHUNKS}module load mpt/2.23\nmpirun -np 8 ./a", True, True),
        (f"{_TWO_CHUNKS}module load mpich\nmpirun -np 8 ./a", False, True),
        (SLURM.format("-n 4", "module load hpe-mpi\nsrun ./a"), True, False),
        (SLURM.format("-n 4", "module load compilers openmpi\nsrun ./a"), False, False),
    ],
)
def test_an_mpi_whose_mpirun_has_options_of_its_own_is_named(form: str, named: bool, lost: bool) -> None:
    found = [one.lost for one in job_file(form).remarks if "has other options" in one.why]
    assert found == [lost] * named


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ('u="$(head -n 3 p | tail -1)"', "$u"),
        ('a="$(cat o)"; u=$a', "$u"),
        ("a=$(cat o); u=x-${a%,*}", "--f=$u"),
        ("u=$(date)", "$u"),
        ("u=${X:+-a -b}", "$u"),
        ("u=${X:-}", "$u"),
        ('u=${X:-"-a -b"}', "$u"),
    ],
)
def test_a_value_that_may_be_several_words_is_split_by_a_shell(code: str, word: str) -> None:
    assert values(job_file(SLURM.format("-n 1", f"{code}\n./a {word}")).text)["command"][:2] == ["bash", "-c"]


@pytest.mark.parametrize(
    "code",
    ["u=$(date +%F)", "u=${X:-5}", "l=(a b); u=${l[$N]}", "a=x$SLURM_JOB_ID; u=$a.txt", "u=$(wc -l < x)"],
)
def test_a_value_of_one_word_needs_no_shell(code: str) -> None:
    assert values(job_file(SLURM.format("-n 1", f"{code}\n./a $u")).text)["command"][0] == "./a"


@pytest.mark.parametrize(
    ("first", "hidden"),
    [("python3 t.py a", True), ("apptainer exec i sh -c 'cd a && python -u t.py'", True), ("ls a", False)],
)
def test_programs_before_the_program_find_no_tasks_of_a_node_either(first: str, hidden: bool) -> None:
    found = values(job_file(SLURM.format("-N 1 --gres=gpu:2", f"{first}\npython3 t.py b")).text)
    names = "SLURM_NTASKS_PER_NODE SLURM_NTASKS SLURM_NPROCS"
    assert (f"unset {names}\n" in found.get("setup", "")) is hidden
    assert found["command"][:7] == f"env -u {names.replace(' ', ' -u ')}".split()


def test_each_number_of_tasks_that_differs_has_a_remark() -> None:
    code = "python t.py\necho $SLURM_NTASKS $SLURM_TASKS_PER_NODE $SLURM_NTASKS"
    found = {*remarks(job_file(SLURM.format("-n 4", code)))}
    assert {(False, 4, "$SLURM_NTASKS"), (False, 4, "$SLURM_TASKS_PER_NODE")} <= found


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("spindle --location=/tmp srun -n8 ./a", True),
        ("remora srun ./a", True),
        ("scan -q mpirun -np 8 ./a", True),
        ("./a --launcher srun", False),
        ("./a --mpi mpirun -n 8", False),
        ("which mpirun srun", False),
        ("time mpirun -np 8 ./a", False),
        ("env A=1 srun ./a", False),
    ],
)
def test_a_command_that_is_given_a_launcher_is_named(command: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 8 -n 8", f"module load openmpi\n{command}"))
    assert ("how it starts ranks" in str(done.remarks)) is named


@pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH", "MODEL"])
def test_a_variable_in_code_for_an_image_has_the_value_of_the_script(name: str) -> None:
    line = f'singularity exec a.sif bash -c "export X=${name}:/b; ./a"'
    assert values(job_file(SLURM.format("-n 1", line)).text)["command"] == ["bash", "-c", f"exec {line}"]


def test_an_array_that_an_eval_sets_is_given_by_its_value() -> None:
    code = 'for p in a b; do eval "$p=( x y )"; done\nls\n./a $a "$b" > $HOME/c'
    found = values(job_file(SLURM.format("-n 1", code)).text)
    assert 'export array_a="$(declare -p a)"' in found["setup"]
    assert 'eval "$array_b"' in found["command"][2]
    assert "array_HOME" not in found["setup"]


def test_a_number_that_printf_sets_is_no_code_of_hosts() -> None:
    code = 'n=$SLURM_NNODES\nl=`echo "l($n)" | bc -l`\nprintf -v p %.0f "$l"\nfor i in 1 2; do ./a $p; done'
    found = values(job_file(SLURM.format("-N 2", code)).text)
    assert "printf -v p" in found["setup"]
    assert "bc -l" in found["setup"]


def test_the_time_of_each_rank_that_is_left_out_has_a_remark() -> None:
    assert (False, 3, "time") in remarks(job_file(SLURM.format("-n 4", "srun -n 4 time ./a")))


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("for i in 1 2; do\n d=case$i; srun ./a $d\ndone", ["$d"]),
        ("while read -r line; do srun ./a $line; done < list", ["$line"]),
        ('if [ -f x ]; then o="-a -b"; srun ./a $o; fi', ["$o"]),
        ("f() { local in=$(cat $1); srun ./a $in; }\nf 1\nf 2", ["$in"]),
        ("f() { local in=$1; srun ./a $in; }\nf 1\nf 2", []),
        ("f() { local in=5; srun ./a $in; }\nf", []),
        ("n=$(nproc)\nfor i in 1 2; do srun ./a $n; done", []),
        ("for i in 1 2; do ./a $i; done", []),
        ("for i in 1 2; do ./a $i; n=$?; done\necho $n", []),
        ("if [ -e x ]; then n=$(cat x); srun ./a; fi\nm=$((n+1))\necho $m > x", ["$n"]),
        ("if [ -e x ]; then srun ./a; m=3; fi\nm=4\necho $m > x", []),
        ("n=0\nfor i in 1 2; do n=$((n + i)); srun ./a $n; done", ["$n"]),
        ("e=$(ls)\nf() { e=$1; srun ./a $e; }\nf 1; f 2", ["$e"]),
        ('for i in 1 2; do srun ./a & p="$p $!"; done\nwait $p', []),
        ("for i in 1 2; do srun ./a & p+=($!); done\nwait ${p[@]}", []),
    ],
)
def test_variables_of_a_loop_that_is_left_out_are_named(code: str, named: list[str]) -> None:
    done = job_file(SLURM.format("-n 4", code))
    assert [one.what for one in done.remarks if "around the program" in one.why and one.lost] == named


@pytest.mark.parametrize(
    ("directive", "target", "lost"),
    [
        ("-k doe", "slurm", False),
        ("-k oed", "slurm", False),
        ("-k oe", "slurm", True),
        ("-k doe", "torque", True),
        ("-l place=vscatter", "slurm", False),
        ("-l place=vscatter:excl", "slurm", False),
    ],
)
def test_what_another_scheduler_does_by_itself_is_not_lost(directive: str, target: str, lost: bool) -> None:
    done = convert(f"#PBS -l select=2:ncpus=2\n#PBS {directive}\n./a", target, "pbspro")
    assert ((True, 3, directive) in remarks(done)) is lost
    assert "each chunk becomes a node" in str(done.remarks)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("v=4\nif [ -f a ]; then v=$((v+1)); fi\nsbatch job_${v}.sh", True),
        ('for i in 3 4; do\nsbatch "$D/job_$i.sh"\ndone', True),
        ("for i in 5 6; do\nsbatch job_$i.sh\ndone", False),
        ("v=5\nif [ -f a ]; then v=$((v+1)); fi\nsbatch job_${v}.sh", False),
    ],
)
def test_a_name_with_a_variable_may_be_that_of_the_script(code: str, named: bool) -> None:
    script = Script(SLURM.format("-n 1", f"{code}\n./a").encode(), "slurm", name="job_4.sh")
    for done in (conversion.convert(script, "pbspro"), translation.convert(script)):
        assert ("may be the file of this script" in str(done.remarks)) is named


def test_names_of_nodes_are_those_of_the_old_cluster() -> None:
    done = convert(SLURM.format("--nodelist=node1", "./a"), "pbspro")
    assert ["of the old cluster" in one.why for one in done.remarks if one.lost] == [True]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("apptainer exec a.sif bash ./sub/job.sh", False),
        ("srun apptainer exec a.sif sub/job.sh", False),
        ("apptainer exec a.sif bash ./job.sh", True),
        ("bash sub/job.sh", True),
    ],
)
def test_a_program_of_a_container_in_another_folder_is_another_file(command: str, named: bool) -> None:
    done = translation.convert(Script(SLURM.format("-n 1", command).encode(), "slurm", name="job.sh"))
    assert ("is the file of this script" in str(done.remarks)) is named


@pytest.mark.parametrize(
    ("request_", "code", "whole"),
    [
        ("nodes=1:ppn=1", "aprun -n 1 ./a", True),
        ("select=2", "time aprun -n 48 ./a", True),
        ("nodes=2:ppn=16", "mpirun ./a", False),
        ("select=2:ncpus=4", "# aprun -n 8 ./a\n./a", False),
    ],
)
def test_nodes_of_alps_are_whole_ones(request_: str, code: str, whole: bool) -> None:
    done = convert(f"#PBS -l {request_}\n{code}", "slurm")
    assert ("#SBATCH --exclusive\n" in done.text) == whole
    assert ("Cray's ALPS, which gives whole nodes" in str(done.remarks)) == whole
    assert "add --exclusive" not in str(done.remarks)
    assert ("--mpi=pmi2" in done.text) == whole


def test_a_variable_that_the_text_of_another_remark_has() -> None:
    code = "cat > w.sh << 'EOF'\ncd $PBS_O_WORKDIR\nEOF\npbs_tmrsh b $PBS_O_WORKDIR/w.sh"
    done = convert(f"#!/bin/bash\n#PBS -l select=1\n{code}", "slurm", "pbspro")
    assert [one.what for one in done.remarks if one.line == 4] == ["PBS_O_WORKDIR"]


def test_a_program_that_must_start_its_ranks_beside_a_sourced_file() -> None:
    def of_nodes(code: str) -> list[str]:
        done = convert(f"#PBS -l select=4:ncpus=2\n{code}", "slurm")
        return [one.what for one in done.remarks if "no launcher starts it" in one.why]

    assert of_nodes(". ./env.sh\nfrontend --ranks=8 ./a") == ["frontend"]
    assert of_nodes(". ./env.sh\n./all.sh") == []


def test_devices_that_cannot_be_read_are_requested() -> None:
    done = convert("#PBS -l nodes=1:ppn=4:gpus=@N@\nnvidia-smi\npython train.py", "slurm")
    assert not any(one.what == "GPUs" for one in done.remarks)
    assert any("gpus=@N@ cannot be read" in one.why for one in done.remarks)


def test_the_log_of_a_job_whose_name_has_a_slash() -> None:
    done = convert("#PBS -N runs/a/s0\n#PBS -l nodes=1:ppn=1\n#PBS -t 1-2\n./a", "slurm", "torque")
    assert "#SBATCH --job-name=runs/a/s0\n#" in done.text
    assert "#SBATCH --output=s0.o%A-%a\n" in done.text, "Slurm does not make the folders runs and a"


@pytest.mark.parametrize(
    "text",
    [
        'echo "#!/bin/bash -l\n#PBS -q $Q\n#PBS -o \\$PBS_JOBID.out\n" > job.pbs',
        "printf '#!/bin/bash\\n#PBS -q long\\n' > job.pbs",
        'echo -e "#!/bin/sh\\n#PBS -N a" > job.pbs',
    ],
)
def test_the_script_of_another_job_that_begins_with_its_shell(text: str) -> None:
    code = f'cd a\n{text}\necho "cd \\$PBS_O_WORKDIR" >> job.pbs\nqsub job.pbs'
    done = convert(f"#PBS -l nodes=1\n{code}", "slurm")
    assert 'echo "cd \\$PBS_O_WORKDIR" >> job.pbs' in done.text
    assert text in done.text
    assert any("is in a text for another script" in one.why for one in done.remarks)


def test_the_threads_of_jobs_that_a_workflow_submits() -> None:
    code = "nextflow run main.nf -profile big"
    passed = "sbatch gives its jobs OMP_NUM_THREADS of this one"
    assert passed in str(convert(f"#PBS -l select=1:ncpus=4\n{code}", "slurm").remarks)
    assert passed not in str(convert(f"#PBS -l nodes=1:ppn=4\n{code}", "slurm", "torque").remarks)
    own = f"#PBS -l select=1:ncpus=4\nexport OMP_NUM_THREADS=2\n{code}"
    assert passed not in str(convert(own, "slurm").remarks)


@pytest.mark.parametrize(
    ("tasks", "hosts"), [("4(x2),1", "a a a a b b b b c"), ("3", "a a a"), ("2,1(x3)", "a a b c d")]
)
def test_the_node_file_of_tasks_without_nodes(tasks: str, hosts: str) -> None:
    code = "NP=$(wc -l < $PBS_NODEFILE)\nmpirun -np $NP ./a"
    done = convert(f"#PBS -l procs=9\n{code}", "slurm", "torque")
    lines = next(line for line in done.text.split("\n") if line.startswith("scontrol"))
    head = 'scontrol() { printf "%s\\n" a b c d; }; PBS_NODEFILE=/dev/stdout\n'
    env = {"PATH": os.environ["PATH"], "SLURM_TASKS_PER_NODE": tasks, "SLURM_JOB_NODELIST": "x"}
    found = subprocess.run(["bash", "-c", head + lines], env=env, capture_output=True, text=True, check=True)
    assert found.stdout.split() == hosts.split()


@pytest.mark.parametrize(
    ("code", "beside"),
    [
        ("if [ -f a ]; then\nmpirun ./a &\nelse\nmpirun ./b\nfi", False),
        ("case $1 in\na) mpirun ./a & ;;\nb) mpirun ./b ;;\nesac", False),
        ("if [ -f a ]; then\nmpirun ./a &\nmpirun ./b\nfi", True),
        ("if [ -f a ]; then\nmpirun ./a &\nfi\nmpirun ./b", True),
    ],
)
def test_launchers_in_different_branches_do_not_run_beside_each_other(code: str, beside: bool) -> None:
    done = convert(f"#PBS -l nodes=2:ppn=4\n{code}", "slurm", "torque")
    assert ("--overlap" in done.text) == beside


@pytest.mark.parametrize(
    ("code", "lost"),
    [
        ("OUT=logs/%j-%t.log\nsrun -o $OUT ./a", True),
        ('OUT=$DIR/%t.log\nsrun --output="$OUT" ./a', True),
        ("OUT=$DIR/%t.log\nLOG=$OUT\nsrun -o $LOG ./a", True),
        ("OUT=${FILE%.txt}.log\nsrun -o $OUT ./a", False),
        ("srun -o ${FILE%.txt}.log ./a", False),
        ("OUT=$(date +%F).log\nsrun -o $OUT ./a", False),
    ],
)
def test_a_pattern_of_srun_in_a_variable_is_lost(code: str, lost: bool) -> None:
    done = convert(SLURM.format("-N 2 --ntasks-per-node=4", code), "pbspro")
    assert ("has no counterpart" in str(done.remarks)) is lost
    assert (" > " in done.text) is not lost


def test_one_file_of_output_and_errors_is_opened_once() -> None:
    text = SLURM.format("-N 2 --ntasks-per-node=4", 'srun -o "$OUT" -e "$OUT" ./a')
    assert '> "$OUT" 2>&1 ./a' in convert(text, "pbspro").text


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        ("-N 1 -n 1 -c 48", "gmx mdrun -deffnm a", "unset OMP_NUM_THREADS"),
        ("-N 1 -c 48", "RUN='gmx mdrun'\n$RUN -deffnm a", "unset OMP_NUM_THREADS"),
        ("-N 1 --ntasks-per-node=24 -c 2", "srun gmx_mpi mdrun -deffnm a", "export OMP_NUM_THREADS=2"),
    ],
)
def test_mdrun_divides_the_cores_itself(options: str, code: str, line: str) -> None:
    assert f"\n{line} " in convert(SLURM.format(options, code), "pbspro").text


def test_variables_of_sites_for_a_directory_of_the_job_have_a_remark() -> None:
    code = "cd $JOBSCRATCH\ncp -r a $SNIC_TMP\ncp b $LUSTRE_SCRATCH\nexport TMPFS=/tmp\ncp -r a $TMPFS"
    done = convert(SLURM.format("-n 1", code), "torque")
    assert [one.what for one in done.remarks] == ["$JOBSCRATCH", "$SNIC_TMP", "$LUSTRE_SCRATCH"]
    assert "cd ${JOBSCRATCH:?}\n" in done.text


def test_scripts_of_other_names_are_read_or_named() -> None:
    code = "singularity exec a.sif ./exec-4.cmd 4\n./c.csh\nsbatch jobs/d.sh\ncp x/e.job ."
    what = [one.what for one in convert(SLURM.format("-n 1", code), "pbspro").remarks]
    assert what == ["exec-4.cmd, c.csh", "sbatch jobs/d.sh"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("-c 8 --cpu-bind=cores", ""),
        ("-c $((64 / N)) --cpu-bind=cores", "each rank is bound to one core, not to these cores"),
        ("-c 8 --cpu-bind=threads", "binds each rank to one hwthread, and not to 8 cores"),
        ("-c 8", "each rank may use all cores of the job on its node"),
    ],
)
def test_ranks_that_are_bound_do_not_share_their_cores(options: str, why: str) -> None:
    text = SLURM.format("-N 2 --exclusive", f"srun --ntasks-per-node=4 {options} ./a")
    found = [one.why for one in convert(text, "pbspro").remarks if one.what.startswith(("-c", "--cpu-bind"))]
    assert found == [why] * bool(why)


def test_a_function_is_not_the_program_of_a_job() -> None:
    text = SLURM.format("-N 2", "function f.check { echo $1; }\n./b\nf.check 1")
    assert "b" in [one.what for one in convert(text, "pbspro").remarks]


@pytest.mark.parametrize(
    ("test", "has"),
    [('[ "x$V" == "x" ]', False), ('[[ -z "$V" ]]', False), ('[ "$V" != "" ]', False), ("[ $V = 5 ]", True)],
)
def test_the_id_of_a_task_that_is_only_tested_has_no_remark(test: str, has: bool) -> None:
    text = SLURM.format("--array=1-3", f"if {test}; then exit 1; fi".replace("V", "SLURM_JOB_ID"))
    assert ("NUMBER[INDEX]" in str(convert(text, "pbspro").remarks)) is has


@pytest.mark.parametrize(
    ("options", "has"),
    [("-N 2", True), ("-N 2 --gres=gpu:4", False), ("-N 2 -G 8", False), ("--exclusive", False)],
)
def test_a_launcher_of_training_without_gpus_has_a_remark(options: str, has: bool) -> None:
    done = convert(SLURM.format(options, "deepspeed --hostfile hosts train.py"), "torque")
    assert ("deepspeed" in [one.what for one in done.remarks]) is has


@pytest.mark.parametrize(
    ("line", "has"),
    [
        ("cp $SLURM_SUBMIT_DIR/*$SLURM_JOB_ID* /x", True),
        ("mv *${SLURM_JOBID}.out /x", True),
        ("cp a_$SLURM_JOB_ID/* /x", False),
        ("cp *_$SLURM_JOB_ID.csv /x", False),
        ("rm -f *.out", False),
    ],
)
def test_a_pattern_with_the_id_of_the_job_may_be_its_log(line: str, has: bool) -> None:
    done = convert(SLURM.format("-n 1", f"./a\n{line}"), "pbspro")
    assert ("writes the log slurm-ID.out" in str(done.remarks)) is has


def test_a_log_of_slurm_has_one_remark() -> None:
    done = convert(SLURM.format("-n 1", "grep -q ERROR slurm*"), "pbspro")
    assert [one.what for one in done.remarks] == ["slurm*"]


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("singularity exec -B /a:/b,/run/slurm/conf:/run/slurm/conf a.sif ./x", "/run/slurm/conf"),
        ('export APPTAINER_BIND="/x,/etc/slurm-llnl"', "/etc/slurm-llnl"),
        ("apptainer exec --bind /usr/bin/srun a.sif ./x", "/usr/bin/srun"),
        ("# singularity exec -B /etc/slurm a.sif ./x", None),
        ("docker run -v /home/me/slurm:/x img", None),
        ("PATH=/opt/slurm/bin:$PATH ./a", None),
    ],
)
def test_files_of_slurm_that_a_container_binds_have_a_remark(line: str, file: str | None) -> None:
    found = convert(SLURM.format("-n 1", f"./a\n{line}"), "torque").remarks
    assert [one.what for one in found if "container does not start" in one.why] == [file] * bool(file)


@pytest.mark.parametrize(
    "line",
    [
        "srun python `which torchrun` --nproc_per_node 4 a.py",
        'RUN="torchrun --nproc_per_node 4"\neval $RUN a.py',
    ],
)
def test_launchers_of_training_in_texts_choose_their_threads(line: str) -> None:
    text = SLURM.format("-N 1 -n 1 -c 32 --gres=gpu:4", line)
    assert "\nunset OMP_NUM_THREADS " in convert(text, "pbspro").text


@pytest.mark.parametrize("line", ["srun -w nodes/$x.nodes ./a", "FILE=./nodes\nsrun --nodelist=$FILE ./a"])
def test_a_file_of_nodes_is_no_host(line: str) -> None:
    done = convert(SLURM.format("-N 2", line), "torque")
    assert "--nodelist is a file of nodes: the line is unchanged" in [one.why for one in done.remarks]


def test_a_host_from_a_command_with_a_slash_is_one() -> None:
    text = SLURM.format("-N 2", 'srun -w "$(cut -d/ -f1 hosts)" -N1 -n1 ./a')
    assert 'mpirun -np 1 --host "$(cut -d/ -f1 hosts)"' in convert(text, "torque").text


@pytest.mark.parametrize(
    "line",
    [
        "srun -N1 -n1 -w $head ray start --head --block &",
        "srun -N1 -n1 -w $head x/start-head.sh $ip &",
        "srun dask-worker $head:8786 &",
    ],
)
def test_workers_of_ray_and_dask_set_their_threads(line: str) -> None:
    text = SLURM.format("-N 2 --ntasks-per-node=4 -c 6", line)
    assert "OMP_NUM_THREADS" not in convert(text, "torque").text
    assert "\nunset OMP_NUM_THREADS " in convert(text, "pbspro").text


def test_dask_without_a_nanny_sets_no_threads() -> None:
    text = SLURM.format("-N 2 --ntasks-per-node=1 -c 6", "srun dask-mpi --no-nanny \\\n --nthreads 1")
    assert "OMP_NUM_THREADS=6" in convert(text, "torque").text
    assert "unset" not in convert(text, "pbspro").text
    text = text.replace("\\\n", "--local a \\\n").replace("--no-nanny", "--nanny")
    assert "\nunset OMP_NUM_THREADS " in convert(text, "pbspro").text


@pytest.mark.parametrize(
    ("code", "sets"),
    [
        ("import ray\nray.init()", True),
        ("c = Client(LocalCluster())", True),
        ("c = Client(\n    n_workers=2)", True),
        ("c = Client(address)", False),
        ("r = Parallel(n_jobs=6)(delayed(f)(i) for i in a)", True),
        ("m = DataParallel(n)", False),
    ],
)
def test_workers_of_a_program_beside_the_script_set_their_threads(
    code: str, sets: bool, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text(f"{code}\n")
    text = SLURM.format("-n 1 -c 6", "time -v $X/bin/python3 -u ./t.py --a")
    script = Script(text.encode(), "slurm", str(tmp_path))
    assert ("export OMP_NUM_THREADS=6" in conversion.convert(script, "torque").text) != sets
    assert ("\nunset OMP_NUM_THREADS " in conversion.convert(script, "pbspro").text) == sets
    assert ("-u OMP_NUM_THREADS" in " ".join(values(translation.convert(script).text)["command"])) == sets


@pytest.mark.parametrize(
    ("name", "code", "leaves_out"),
    [
        ("t.py", "c = SLURMCluster(cores=4)", True),
        ("t.py", "e = submitit.AutoExecutor('a')", True),
        ("t.py", "p = SlurmProvider('a', channel=b)", True),
        ("t.py", "e = SlurmClusterExecutor(a)", True),
        ("t.py", "run(['sbatch', 'a.sh'])", True),
        ("t.py", "# sbatch a.sh", False),
        ("t.py", "e = ThreadPoolExecutor(4)", False),
        ("t.sh", "for i in 1 2; do sbatch a.sh $i; done", True),
        ("t.sh", "./submit", False),
    ],
)
@pytest.mark.parametrize("cores", [1, 6])
def test_jobs_of_a_program_beside_the_script_get_no_threads(
    name: str, code: str, leaves_out: bool, cores: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(f"{code}\n")
    text = SLURM.format(f"-n 1 -c {cores}", f"{'python' if name == 't.py' else 'bash'} {name}")
    options = values(translation.convert(Script(text.encode(), "slurm", str(tmp_path))).text)
    assert ("-u OMP_NUM_THREADS" in " ".join(options["command"])) is leaves_out


@pytest.mark.parametrize(("code", "sets"), [("ray start --head", True), ("./b", False)])
def test_workers_of_a_script_beside_the_script_set_their_threads(
    code: str, sets: bool, tmp_path: Path
) -> None:
    (tmp_path / "head.sh").write_text(f"#!/bin/bash\n{code}\n")
    script = Script(SLURM.format("-N 2 -c 6", "srun -N 1 -n 1 head.sh &").encode(), "slurm", str(tmp_path))
    assert ("export OMP_NUM_THREADS=6" in conversion.convert(script, "torque").text) != sets


@pytest.mark.parametrize(
    ("options", "line", "pro", "torque"),
    [
        ("-N 1 -n 1 -c 4", "mpirun -np 4 ./a", "unset OMP_NUM_THREADS", ""),
        ("-N 1 -n 1 -c 4", "mpirun -np 1 ./a", "unset OMP_NUM_THREADS", ""),
        ("-N 25", "srun -n 800 -c 2 ./a", "export OMP_NUM_THREADS=2", "export OMP_NUM_THREADS=2"),
        ("-N 1", "srun --ntasks-per-node 8 -c 6 ./a", "export OMP_NUM_THREADS=6", "export OMP_NUM_THREADS=6"),
        ("-N 2 -n 8 -c 4", "srun env -u A ./a", "export OMP_NUM_THREADS=4", "export OMP_NUM_THREADS=4"),
        ("-N 2 --exclusive", "srun -n 64 ./a", "unset OMP_NUM_THREADS", ""),
        ("-N 4", "srun -N 1 -n 1 ./a", "", ""),
        ("-N 2 -c 8", "srun -n 2 ./a", "", "export OMP_NUM_THREADS=8"),
    ],
)
def test_threads_of_the_ranks_that_only_a_launcher_counts(
    options: str, line: str, pro: str, torque: str
) -> None:
    for target, command in (("pbspro", pro), ("torque", torque)):
        text = convert(SLURM.format(options, line), target).text
        assert f"\n{command} " in text if command else "OMP_NUM_THREADS" not in text


@pytest.mark.parametrize(
    ("options", "line", "left", "named"),
    [
        ("-N 1 -c 6", "python a.py", True, False),
        ("-N 1 -c 6", "srun -n 1 -c 6 ./a", True, False),
        ("-N 1 -c 6", "singularity exec a.sif python a.py", True, False),
        ("-N 1 --ntasks-per-node=4", "time Rscript a.R", True, False),
        ("-N 1 --ntasks-per-node=4", "time mpirun -np 4 python a.py", False, True),
        ("-N 1 --ntasks-per-node=4", "./a", False, True),
        ("-n 4", "python a.py", False, True),
        ("-n 4 -c 2", "srun ./a", True, False),
        ("-n 4", "hostname", True, False),
        ("-N 2 --ntasks-per-node=4", "python a.py", True, False),
        ("-N 2 --ntasks-per-node=4", "exec ./a", False, True),
        ("-N 1 -n 8", "run() { time python $1; }\nfor i in a b; do run $i & done\nwait", True, False),
        ("-N 1 -n 8", "singularity exec a.sif numactl -N0 /opt/bin/python3 a.py", True, False),
        ("-N 1 -n 8", "PY=python\nx=$(exec $PY a.py)", True, False),
        ("-N 1 -n 8", "bash <<E\n./b\nE", False, True),
        ("-N 1 -n 8", "$PROGRAM a", False, True),
        ("-n 4", "mpirun ./a", True, False),
        ("-N 1 -c 6", "gmx mdrun -deffnm a", False, True),
        ("-N 1 -c 6", "./a -t ${OMP_NUM_THREADS:-1}", False, True),
        ("-N 1 -c 6", '"$RUN" -n 6 ./a', False, True),
        ("-N 1 -c 6 --exclusive", "python a.py", False, False),
        ("-N 1 -c 6", "torchrun --nproc_per_node 2 a.py", False, False),
        ("-N 1 -c 6", "ray start --head\npython a.py", False, True),
        ("-N 1 -c 6", "module load gcc/8 ray/1.1.0;\npython a.py", False, True),
        ("-N 1 -c 6", "module load x-ray\npython a.py", True, False),
        ("-N 1 -c 6", "[ -e a ] && export OMP_NUM_THREADS=2\n./a", False, False),
        ("-N 1 -n 1", "./a", True, False),
    ],
)
def test_threads_on_some_cores_of_a_node(options: str, line: str, left: bool, named: bool) -> None:
    """PBS Pro sets the number of the cores to which Slurm binds a program; without it, and without cpusets,
    OpenMP uses the whole node."""
    done = convert(SLURM.format(options, line), "pbspro")
    assert ("unset OMP_NUM_THREADS" in done.text) is not left
    assert ("uses those of the whole node" in str(done.remarks)) is named


@pytest.mark.parametrize(
    ("options", "line", "threads"),
    [
        ("-n 1", "python a.py", 1),
        ("-c 1", "Rscript a.R", 1),
        ("-N 1 --ntasks-per-node 1", "./a", 1),
        ("-c 6", "python a.py", 6),
        ("--mem=4G", "python a.py", 1),
        ("--gres=gpu:1", "python a.py", 1),
        ("-N 1 --mem=4G", "python a.py", None),
        ("--mem=0", "python a.py", None),
        ("-t 1:00:00", "python a.py", None),
        ("-N 1", "python a.py", None),
        ("-n 1", "cp a b", None),
        ("-n 1 --exclusive", "python a.py", None),
    ],
)
def test_torque_gets_the_threads_of_the_cores_that_slurm_binds(
    options: str, line: str, threads: int | None
) -> None:
    """A site may give whole nodes to a job that counts only nodes."""
    found = re.findall(r"export OMP_NUM_THREADS=(\d+)", convert(SLURM.format(options, line), "torque").text)
    assert found == ([str(threads)] if threads else [])


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("-n 4 --gpus-per-task=1", "srun ./a", True),
        ("-N 2 -n 4 --gpus-per-task=2", "srun ./a", True),
        ("-N 2 -n 2 --gpus-per-task=4", "srun ./a", False),
        ("-N 2 -n 8 --gpus-per-task=1", "srun -n 2 ./a", False),
    ],
)
def test_the_gpus_of_a_rank_are_fewer_than_those_of_its_node(options: str, line: str, named: bool) -> None:
    whys = str(convert(SLURM.format(options, line), "pbspro").remarks)
    assert ("shows each rank its own GPUs" in whys) is named


@pytest.mark.parametrize(
    ("options", "line", "place"),
    [
        ("-N 4 --exclusive", "for n in 8 16; do srun -n $n ./a; done", "ppr:$((($n + 4 - 1) / 4)):node:OVERSUBSCRIBE"),
        ("-N 1 --exclusive", "for n in 8 16; do srun -n $n ./a; done", "ppr:$n:node:OVERSUBSCRIBE"),
        ("-N 1 --exclusive", "srun -n 8 ./a", "ppr:8:node:OVERSUBSCRIBE"),
        ("-N 4 --exclusive --ntasks-per-node=4", "for n in 8 16; do srun -n $n ./a; done", "ppr:$((($n + 4 - 1) / 4)):node "),
    ],
)  # fmt: skip
def test_the_node_file_of_whole_nodes_has_a_line_for_each(options: str, line: str, place: str) -> None:
    assert f"--map-by {place}" in convert(SLURM.format(options, line), "pbspro").text


def test_threads_of_torque_are_those_of_the_node() -> None:
    done = convert("#PBS -l nodes=1:ppn=6:gpus=1\npython a.py $PBS_NP", "pbspro", "torque")
    assert "whole node" not in str(done.remarks)


@pytest.mark.parametrize(
    ("request_", "line", "named"),
    [
        ("select=4:system=polaris", "mpiexec -n 16 --ppn 4 ./a", True),
        ("select=4", "aprun -n 96 ./a", True),
        ("select=4 -l place=scatter:excl", "python a.py", True),
        ("select=4:ncpus=24 -l place=scatter:excl", "python a.py", False),
        ("select=4 -l place=scatter:excl", "hostname", False),
        ("select=4", "python a.py", False),
        ("select=4", "export OMP_NUM_THREADS=4\naprun -n 96 ./a", False),
        ("select=4:system=polaris", "mpiexec -n 16 --ppn 4 --env OMP_NUM_THREADS=8 ./a", False),
        ("select=4:system=polaris", "torchrun --nproc_per_node 4 a.py", False),
    ],
)
def test_threads_of_whole_nodes_of_unknown_cores(request_: str, line: str, named: bool) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l {request_}\n{line}\n", "slurm", "pbspro")
    assert ("a chunk, which the request does not name" in str(done.remarks)) is named


@pytest.mark.parametrize(
    ("module", "label"), [("mpich", "MPICH writes [RANK]"), ("openmpi", "[JOB,RANK]<stdout>:")]
)
def test_labels_of_ranks_differ(module: str, label: str) -> None:
    text = SLURM.format("-N 2", f"module load {module}\nsrun -l ./a")
    assert label in next(one.why for one in convert(text, "pbspro").remarks if one.what == "--label")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ('python -c "f($X)"', ["bash", "-c", 'exec python -c "f($X)"']),
        ("python -c 'f($X)'", ["python", "-c", "f($X)"]),
        ('python -c "f($Y)"', ["python", "-c", "f(3)"]),
        ('bash -c "./f $X"', ["bash", "-c", 'eval "./f $X"']),
    ],
)
def test_values_in_the_text_of_python(line: str, command: list[str]) -> None:
    """A shell puts them there: eval is no command of Python."""
    assert values(job_file(SLURM.format("-n 1", f"Y=3\n{line}")).text)["command"] == command


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("srun --prolog a.sh --epilog=b.sh ./a x", ["./a", "x"]),
        ("srun --task-epilog b.sh c.sh", ["c.sh"]),
        ("mpirun -launcher-exec ssh.sh ./a", ["./a"]),
        ("srun --epilog b.sh torchrun --nproc-per-node 4 t.py", ["t.py"]),
    ],
)
def test_an_option_of_a_launcher_with_a_script(line: str, command: list[str]) -> None:
    assert values(job_file(SLURM.format("-n 4", line)).text)["command"] == command


@pytest.mark.parametrize(
    ("code", "bound"),
    [
        ("export I_MPI_PIN=off\nmpirun -np 4 ./a", False),
        ("mpirun -genv I_MPI_PIN=0 -np 4 ./a", False),
        ("export MV2_ENABLE_AFFINITY=0\nmpirun -np 4 ./a", False),
        ("export OMPI_MCA_hwloc_base_binding_policy=none\nmpirun -np 4 ./a", False),
        ("export I_MPI_PIN=1\nmpirun -np 4 ./a", True),
        ("mpirun -np 4 ./a\nexport I_MPI_PIN=0", True),
    ],
)
def test_a_variable_that_binds_no_ranks(code: str, bound: bool) -> None:
    done = convert(f"#PBS -l select=2:ncpus=16:mpiprocs=2\n{code}", "slurm")
    assert ("--cpu-bind=none" in done.text) == (not bound)


@pytest.mark.parametrize(("folder", "option"), [("~/run", "--chdir ~/run "), ("$PWD/a", "--chdir=$PWD/a ")])
def test_a_directory_of_ranks_in_the_home_directory(folder: str, option: str) -> None:
    done = convert(f"#PBS -l nodes=2:ppn=4\nmpirun -np 8 -wd {folder} ./a", "slurm", "torque")
    assert option in done.text, "bash expands no ~ behind --chdir="


@pytest.mark.parametrize(
    ("options", "fewer"),
    [("--cpu-bind list:0-7:8-15", False), ("--cpu-bind none", False), ("--cpu-bind numa", True), ("", True)],
)
def test_the_threads_of_ranks_that_are_bound_to_a_list_of_cores(options: str, fewer: bool) -> None:
    code = f"export OMP_NUM_THREADS=8\nmpiexec -n 4 --ppn 2 {options} ./a"
    done = convert(f"#PBS -l select=2:system=polaris\n{code}", "slurm")
    assert any("is more than the cores of a rank" in one.why for one in done.remarks) == fewer


def test_a_file_of_hosts_has_one_remark() -> None:
    code = "sort -u $PBS_NODEFILE > h\n" + "mpirun -machinefile h ./a\n" * 2 + "mpirun -machinefile i ./a"
    done = convert(f"#PBS -l nodes=2:ppn=4\n{code}", "slurm", "torque")
    assert [one.line for one in done.remarks if "the hosts of the job" in one.why] == [4, 6]


@pytest.mark.parametrize(
    ("nodes", "lines", "new"),
    [
        ("2:ppn=4", "for n in 1 2 8; do mpirun -np $n ./a; done", '"$n" --nodes="$((($n + 3) / 4))" '),
        (
            "2:ppn=4",
            "n=1\nwhile ((n < 9)); do mpirun -np $((n * 2)) --map-by ppr:2:node ./a; ((n *= 2)); done",
            '"$((n * 2))" --ntasks-per-node=2 --nodes="$((((n * 2) + 1) / 2))" ',
        ),
        (
            "2:ppn=4",
            "for n in 1 2; do mpirun -npernode 1 -np $n ./a; done",
            '--ntasks-per-node=1 --nodes="$n" ',
        ),
        ("2:ppn=4", "for n in 1 2; do mpirun -np $n --oversubscribe ./a; done", '"$n" --overcommit '),
        ("2:ppn=4", "for n in 1 2; do mpirun -np $n --map-by node ./a; done", '"$n" --distribution=cyclic '),
        ("2:ppn=4", "mpirun -np $n ./a", '"$n" --nodes="$((($n + 3) / 4))" --distribution=plane=4 '),
        ("2:ppn=4", "mpirun -np $((PBS_NP / 2)) ./a", "--nodes=1 --kill"),
        (
            "2:ppn=4",
            "n=`wc -l < $PBS_NODEFILE`\nlet m=n/2\nmpirun -np $m ./a",
            '"$m" --nodes="$((($m + 3) / 4))" ',
        ),
        (
            "2:ppn=4",
            "n=$(sort -u $PBS_NODEFILE | wc -l)\nmpirun -np $n ./a",
            '"$n" --nodes="$((($n + 3) / 4))" ',
        ),
        ("2:ppn=4", "mpirun -np `cat n` ./a", '--nodes="$((($(cat n) + 3) / 4))" --distribution=plane=4 '),
        ("2:ppn=4", "n=`wc -l < $PBS_NODEFILE`\nmpirun -np $n ./a", '"$n" --kill'),
        ("2:ppn=4", "n=$(cat $PBS_NODEFILE | wc -l)\nmpirun -np $((n)) ./a", '"$((n))" --kill'),
        ("2:ppn=4", "mpirun -np $((PBS_NUM_NODES*PBS_NUM_PPN)) ./a", '_PER_NODE))" --kill'),
        ("3:ppn=4", "mpirun -np 5 ./a", "--ntasks=5 --nodes=2 --distribution=plane=4 --kill"),
        ("3:ppn=4", "mpirun -np 7 ./a", "--ntasks=7 --nodes=2 --kill"),
        ("2:ppn=24", "mpirun -np 36 ./a", "--ntasks=36 --distribution=plane=24 --kill"),
        ("2:ppn=24", "mpirun -np 36 --oversubscribe ./a", "--ntasks=36 --overcommit"),
        ("2:ppn=24", "mpirun -np 36 --map-by core ./a", "--ntasks=36 --distribution=plane=24 --kill"),
        ("1:ppn=4", "for n in 1 2; do mpirun -np $n ./a; done", '"$n" --kill'),
        ("2:ppn=4", "for n in 1 2; do aprun -n $n -d $t ./a; done", '"$n" --cpus-per-task="$t" --kill'),
    ],
)
def test_ranks_fill_one_node_after_the_other(nodes: str, lines: str, new: str) -> None:
    assert new in convert(f"#PBS -l nodes={nodes}\nmodule load openmpi\n{lines}\n", "slurm").text


@pytest.mark.parametrize(
    ("line", "named"),
    [("ls | ./a -x $(date +%s)", False), ("ls | ./a | wc -l", False), ("srun ./a | wc -l", True)],
)
def test_the_status_of_a_pipeline_that_is_the_program(line: str, named: bool) -> None:
    done = job_file(SLURM.format("-n 4", line))
    assert any("the job ends with the status of the program" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(("name", "named"), [("$A$B", False), ("slurm-$A.out", True)])
def test_a_file_with_an_unknown_name_is_not_the_log(name: str, named: bool) -> None:
    done = job_file(SLURM.format("-n 1", f"A=$1; B=$2\n./a\ngrep -c x {name}"))
    assert any("reads the log" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("TMP=/a\n./b $TMP/c $d\nls $TMP", ["TMP"]),
        ("export TMP=/a\n./b $TMP/c $d\nls $TMP", []),
        ("TMP=/a\n./b", []),
        ("DATA=/a\nls $DATA\n./b", []),
        ("CC=gcc\nls $CC\n./b", ["CC"]),
        ("DEST=/a\n./b $d\nmake -C $DEST install\nls $DEST", ["DEST"]),
        ("DEST=/a\n./b $d\nmake DEST=$DEST install\nls $DEST", []),
    ],
)
def test_a_variable_that_programs_read_is_exported_by_setup(code: str, named: list[str]) -> None:
    done = job_file(SLURM.format("-n 1", code))
    assert [one.what for one in done.remarks if "setup exports it" in one.why] == named


def test_a_command_of_the_scheduler_is_not_the_program() -> None:
    found = values(job_file(SLURM.format("-n 1", './a "$1"\nsinfo -s\necho done')).text)
    assert found["command"] == ["./a", "$1"]


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("P=$(which python)\nsrun -n 4 $P -u m.py", ["$P", "-u", "m.py"]),
        ("P=`which python`\nsrun $P m.py", ["$P", "m.py"]),
        ("P=$HOME/bin/python\nsrun ${P} m.py", ["$P", "m.py"]),
        ("P=$HOME/bin/mpirun\n$P -n 4 ./a", ["./a"]),
    ],
)
def test_a_program_whose_path_is_known_only_when_the_job_runs(code: str, command: list[str]) -> None:
    assert values(job_file(SLURM.format("-n 4", code)).text)["command"] == command


def test_cores_of_a_device_beside_those_of_a_rank() -> None:
    """srun ends with: --cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive."""
    done = job_file(SLURM.format("-N 2", "srun -n 4 --gpus-per-node=2 --cpus-per-gpu=4 ./a"))
    assert "launcher_arg" not in values(done.text)
    assert [one.lost for one in done.remarks if "set cpus_per_rank" in one.why] == [True]


@pytest.mark.parametrize(
    ("options", "mem"),
    [
        ("--mem-per-cpu=16G --mem=128G", "131072M"),
        ("--mem=128G\n#SBATCH --mem-per-cpu=16G", "65536M"),
    ],
)
def test_two_options_for_the_memory(options: str, mem: str) -> None:
    done = job_file(SLURM.format(f"-N 1 -c 4\n#SBATCH {options}", "./a"))
    assert values(done.text)["mem"] == mem
    assert [one.what for one in done.remarks if "exclude each other" in one.why] == [
        "--mem and --mem-per-cpu"
    ]


@pytest.mark.parametrize("word", ["$(cat $i)", "$((i + 1))", "$i"])
def test_a_word_of_the_program_with_a_variable_of_the_loop(word: str) -> None:
    done = job_file(SLURM.format("-n 4", f"for i in a b; do srun ./a {word}; done"))
    assert [one.what for one in done.remarks if "around the program" in one.why] == ["$i"]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("for n in 1 2; do aprun -n $n ./a; done", True),
        ("for n in 1 2; do aprun -n $n -N 8 ./a; done", False),
        ("aprun -n 48 ./a", False),
        ("aprun -n 20 ./a", True),
        ("aprun -n 48 -d 3 ./a", False),
        ("aprun -n 47 ./a", True),
        ("aprun -n 20 -N 10 ./a", False),
        ("aprun -n 1 ./a", False),
        ("aprun -n $n ./a", True),
        ("aprun -n 48 -d $t ./a", True),
        ("aprun -n 48 -N 24 -d $t ./a", False),
    ],
)
def test_ranks_on_nodes_of_unknown_cores(line: str, named: bool) -> None:
    found = [one.why for one in convert(f"#PBS -l nodes=2\n{line}\n", "slurm").remarks]
    assert any(one.startswith("fills one node after the other") for one in found) == named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("aprun -n $n -d $OMP_NUM_THREADS ./a", True),
        ("n=$1; t=$2\naprun -n $n -d $t ./a", True),
        ("aprun -n 48 -d $t ./a", True),
        ("aprun -n $n -d 2 ./a", False),
        ("aprun -n 48 -d 2 ./a", False),
        ("aprun -n $n -N 12 -d $t ./a", False),
    ],
)
def test_ranks_whose_cores_are_counted_when_the_job_runs(line: str, named: bool) -> None:
    found = [one.why for one in convert(f"#PBS -l nodes=4:ppn=24\n{line}\n", "slurm").remarks]
    assert any(one.startswith("fills one node after the other") for one in found) == named


@pytest.mark.parametrize(
    ("request_", "lines", "cores"),
    [
        ("nodes=1:ppn=1", "export OMP_NUM_THREADS=16\npython train.py", 1),
        ("select=2:ncpus=4", "N=16\nOMP_NUM_THREADS=$N ./solver", 4),
        ("nodes=1:ppn=16", "export OMP_NUM_THREADS=16\n./solver", 0),
        ("nodes=1", "export OMP_NUM_THREADS=16\n./solver", 0),
        ("nodes=1:ppn=1\n#PBS -n", "export OMP_NUM_THREADS=16\n./solver", 0),
        ("nodes=1:ppn=1", "export OMP_NUM_THREADS=16\nmpirun -np 1 ./solver", 0),
    ],
)
def test_more_threads_than_the_cores_of_the_request(request_: str, lines: str, cores: int) -> None:
    found = [one.why for one in convert(f"#PBS -l {request_}\n{lines}\n", "slurm").remarks]
    why = f"is more than the cores of the request on a node, {cores}, to which Slurm may bind them"
    assert (why in found) == bool(cores)
    assert sum("is more than the cores of the request" in one for one in found) == bool(cores)


def test_a_program_that_nothing_starts_on_the_nodes_has_a_remark_beside_sourced_files() -> None:
    done = convert(SLURM.format("-N 2", "source ./jobs/setup\nmake run THREADS=2"), "pbspro")
    assert "is not read" in str(done.remarks)
    assert "no launcher starts it on the 2 nodes" in str(done.remarks)


@pytest.mark.parametrize(
    "line",
    [
        "parallel -j0 --timeout 600 ./own.sh {} ::: 1 2",
        "parallel -j4 nice bash own.sh {} < list",
        "cat list | xargs -n 1 sh own.sh",
        "${dir}/own.sh",
    ],
)
def test_a_script_that_runs_for_each_input_is_one_of_the_user(line: str) -> None:
    done = convert(SLURM.format("-N 1", f"dir=$(dirname $(type -p own.sh))\n{line}"), "pbspro")
    assert "own.sh" in [one.what for one in done.remarks]


def test_a_script_of_an_option_of_srun_is_no_program() -> None:
    line = "srun --prolog before.sh --task-epilog after.sh torchrun --nnodes 1 main.py"
    done = convert(SLURM.format("-N 1 -n 1 --gres=gpu:1", line), "torque")
    assert done.text.endswith("\ntorchrun --nnodes 1 main.py\n")
    assert {"before.sh", "after.sh"}.isdisjoint(one.what for one in done.remarks)


@pytest.mark.parametrize(
    ("options", "line", "has"),
    [
        ("-N 2 -n 4", "mpi=/opt/mpi/bin\n$mpi/mpirun -np 4 ./a", False),
        ("-N 2 -n 4", "$mpi/mpirun -np 4 ./a", True),
        ("-N 1 -n 4", "$mpi/mpirun -np 4 ./a", False),
        ("-N 1 -n 4", "$mpi/mpirun ./a", True),
        ("-N 1 -n 4", "$mpi/srun -n 4 ./a", True),
    ],
)
def test_a_launcher_by_a_variable_has_a_remark_where_it_needs_one(options: str, line: str, has: bool) -> None:
    done = convert(SLURM.format(options, line), "pbspro")
    assert ("its path is in a variable: the line is unchanged" in [one.why for one in done.remarks]) is has


@pytest.mark.parametrize(
    "text",
    [
        ":<<'cmt'\nsbatch x.sh $SLURM_ARRAY_TASK_ID\n#SBATCH -N 2\ncmt",
        ": '\nsbatch x.sh $SLURM_ARRAY_TASK_ID\n # x'",
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_text_that_nothing_reads_is_a_comment(text: str, target: str) -> None:
    done = convert(SLURM.format("-N 1", f"{text}\n./a"), target)
    assert not [one for one in done.remarks if "no effect after" not in one.why]
    assert done.text.endswith(f"where Slurm starts a job\n{text}\n./a\n")


def test_lines_stand_before_a_text_of_several_lines() -> None:
    done = convert("#!/bin/bash\n#PBS -N a\n: '\nx'\necho $PBS_NODEFILE\n", "slurm")
    assert "\n: '\nx'\n" in done.text


def test_a_text_with_the_script_of_another_job_stays_one_for_slurm() -> None:
    text = 'echo "#!/bin/bash\n\n#SBATCH -N 1 -J $n\n./a \\$SLURM_ARRAY_TASK_ID" > x.sh\nsbatch x.sh'
    done = convert(f"#!/bin/bash\n{text}\n", "pbspro")
    assert text in done.text
    assert [one.line for one in done.remarks if "is in a text for another script" in one.why] == [4]
    assert not [one for one in done.remarks if "range of the array" in one.why]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("B='#!/bin/sh\n#SBATCH -N 1\n./a $SLURM_ARRAY_TASK_ID'\necho \"$B\" > x.sh", True),
        ('B="#!/bin/sh\n#SBATCH -N 1 -J $n\n./a \\$SLURM_ARRAY_TASK_ID"\nsbatch <<< "$B"', True),
        ('sbatch <<< "#!/bin/sh\n#SBATCH -N 1\n./a \\$SLURM_ARRAY_TASK_ID"', True),
        ('echo "#!/bin/sh\n#SBATCH -N 1\n./a \\$SLURM_ARRAY_TASK_ID" | sbatch', True),
        ("printf '#!/bin/sh\\n#SBATCH -N 1\\n' | sbatch", True),
        ("A=('#!/bin/sh' '#SBATCH -N 1')\nprintf '%s\\n' \"${A[@]}\" > x.sh", True),
        ('f() { echo "$1" >> x.sh; }\nf "#SBATCH -N 1"', True),
        ('B+="#SBATCH -t 5\n"', True),
        ("grep '#SBATCH -N 1' x.sh", False),
        ("awk '/^#SBATCH -N/' x.sh", False),
        ("sed -i 's/#SBATCH -N 1/#SBATCH -N 2/' x.sh", False),
        ("echo '#SBATCH -N 1'", False),
        (": '\n#SBATCH -N 1\n'", False),
    ],
)
@pytest.mark.parametrize("head", ["", "#SBATCH -n 1\n"])
def test_a_text_with_directives_is_for_another_script(text: str, named: bool, head: str) -> None:
    done = convert(f"#!/bin/bash\n{head}{text}\n", "pbspro", "slurm")
    assert text in done.text
    assert any("is in a text for another script" in one.why for one in done.remarks) == named
    assert not [one for one in done.remarks if "range of the array" in one.why]


@pytest.mark.parametrize(
    ("options", "job"),
    [("-N 1", "${PBS_ARRAY_INDEX:+${PBS_JOBID%%[!0-9]*}}"), ("-a 1-4", "${PBS_JOBID%%[!0-9]*}")],
)
def test_the_id_of_an_array_is_set_in_an_array_only(options: str, job: str) -> None:
    text = convert(SLURM.format(options, 'if [[ "$SLURM_ARRAY_JOB_ID" ]]; then ./a; fi'), "pbspro").text
    assert f"\nSLURM_ARRAY_JOB_ID={job}\n" in text


def test_a_sourced_file_reads_the_arguments_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "options.sh").write_text('while [ $# -gt 0 ]; do eval "$1=$2"; shift 2; done\n')
    text = SLURM.format("-N 1", ". ./options.sh\n./a")
    for target, how in (("pbspro", "qsub -v NAME=VALUE"), ("torque", "qsub -F")):
        done = conversion.convert(Script(text.encode(), "slurm", str(tmp_path), name="job.sh"), target)
        assert [how in one.why for one in done.remarks if one.what == "options.sh: $#"] == [True]
    given = text.replace("options.sh", "options.sh a b")
    done = conversion.convert(Script(given.encode(), "slurm", str(tmp_path), name="job.sh"), "torque")
    assert not [one for one in done.remarks if "takes no arguments" in one.why]


@pytest.mark.parametrize(
    ("options", "has"),
    [
        ("-p gpu_short", True),
        ("-p nogpu", False),
        ("-p gpu --exclusive", False),
        ("-p gpu --gpus=1", False),
        ("-p gpu --gres=gpu:0", False),
        ("-p main", False),
    ],
)
def test_a_queue_of_gpus_without_a_request_of_them_has_a_remark(options: str, has: bool) -> None:
    done = convert(SLURM.format(options, "python a.py"), "pbspro")
    assert ("no directive requests GPUs" in str(done.remarks)) is has


@pytest.mark.parametrize("option", ["--map-by ppr:1:socket:pe=16", "-cpus-per-proc 4", "--map-by slot:PE=2"])
def test_ranks_that_mpirun_binds_to_several_cores_choose_their_threads(option: str) -> None:
    text = SLURM.format("-N 8 --ntasks-per-node=2", f"mpirun -np 16 {option} ./a")
    assert "\nunset OMP_NUM_THREADS " in convert(text, "pbspro").text
    assert "OMP_NUM_THREADS" not in convert(text, "torque").text


def test_cores_of_the_ranks_of_mpirun_may_be_more_than_those_of_the_request() -> None:
    text = SLURM.format("-N 8 --ntasks-per-node=2", "mpirun -np 16 --map-by ppr:1:socket:pe=16 ./a")
    assert "needs 256 cores, more than the 16" in str(convert(text, "pbspro").remarks)


@pytest.mark.parametrize(("option", "has"), [("--mem-per-cpu=0", True), ("--mem-per-cpu=10M", False)])
def test_all_memory_by_core_has_no_counterpart(option: str, has: bool) -> None:
    done = convert(SLURM.format(f"-N 2 -n 8 {option}", "srun ./a"), "pbspro")
    assert ("all memory of the nodes has no counterpart" in str(done.remarks)) is has


def test_bindings_of_srun_in_the_singular_are_those_in_the_plural() -> None:
    text = SLURM.format("-N 2 -n 8", "module load openmpi\nsrun --cpu-bind=verbose,{} ./a")
    assert "--bind-to core" in convert(text.format("core"), "pbspro").text
    assert convert(text.format("socket"), "torque").text == convert(text.format("sockets"), "torque").text


@pytest.mark.parametrize(
    ("options", "line", "has"),
    [
        ("-N 4 -c 2 --exclusive", "srun ./a", True),
        ("-N 4 -c 2 --exclusive", "srun -n 8 ./a", False),
        ("-N 4 -c 2 --ntasks-per-node=8 --exclusive", "srun ./a", False),
        ("-N 4 --exclusive", "srun ./a", False),
        ("-N 4 -c 2", "srun ./a", False),
    ],
)
def test_ranks_of_whole_nodes_that_nothing_counts_have_a_remark(options: str, line: str, has: bool) -> None:
    done = convert(SLURM.format(options, line), "pbspro")
    assert ("may start a rank for each 2 cores" in str(done.remarks)) is has


@pytest.mark.parametrize("options", ["-l", "-ul", "-lu", "-vl", "-Qul", "-ulN2"])
def test_short_options_of_srun_in_one_word(options: str) -> None:
    done = convert(SLURM.format("-N 2", f"module load openmpi\nsrun {options} ./a"), "torque")
    line = next(one for one in done.text.split("\n") if one.startswith("mpirun "))
    assert " --tag-output " in line
    assert line.endswith(" ./a")
    assert "--label" in [one.what for one in done.remarks]


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("--numgpus 2", True),
        ("-x 1 --num_gpus=4", True),
        ("--gpus '8'", True),
        ("--ngpus 0", False),
        ("--gpus_file 2", False),
        ("--no-gpus", False),
    ],
)
def test_a_number_of_gpus_that_no_directive_requests(option: str, named: bool) -> None:
    done = convert(SLURM.format("-N 1", f"cd a && srun -n 1 python a.py {option} -y 3"), "torque")
    assert ("no directive requests GPUs" in str(done.remarks)) is named


def test_gpus_of_docker_and_a_label_of_bin_echo() -> None:
    body = "/bin/echo SLURM_JOB_ID: $HOSTNAME\ndocker run --rm --gpus all img python a.py"
    found = convert(SLURM.format("-N 1", body), "pbspro").remarks
    assert "no directive requests GPUs" in str(found)
    assert "SLURM_JOB_ID" not in [one.what for one in found]


def test_ior_in_the_working_directory() -> None:
    done = convert(SLURM.format("-N 2", "cd bin\nmodule load openmpi\nsrun ior -t 4k"), "torque")
    assert "ior" in [one.what for one in done.remarks if "write ./ior" in one.why]


@pytest.mark.parametrize(
    ("queue", "path", "whole"),
    [
        ("regular", "/glade/u", True),
        ("main@desched1", "/glade/u", True),
        ("casper", "/glade/u", False),
        ("develop", "/glade/u", False),
        ("regular", "/home/u", False),
    ],
)
def test_queues_of_ncar_have_whole_nodes(queue: str, path: str, whole: bool) -> None:
    done = convert(f"#PBS -q {queue}\n#PBS -l select=1:ncpus=1\n{path}/a", "slurm")
    assert ("#SBATCH --exclusive" in done.text) == whole
    assert any("NCAR, which gives whole nodes" in one.why for one in done.remarks) == whole


@pytest.mark.parametrize(
    ("place", "odd"), [("pack:excl", ["pack"]), ("scatter:group=iru", ["group=iru"]), ("scatter:excl", [])]
)
def test_the_words_of_a_place_that_are_lost(place: str, odd: list[str]) -> None:
    done = convert(f"#PBS -l select=2:ncpus=4\n#PBS -l place={place}\n./a", "slurm")
    found = [one.why for one in done.remarks if one.what.startswith("-l place")]
    assert found == [f"{one} has no counterpart in Slurm" for one in odd]


@pytest.mark.parametrize(
    ("out", "back", "lost"),
    [
        ("cp -r $PBS_O_WORKDIR/* $TMP/.", 'cp -r "$TMP"/* ${PBS_O_WORKDIR}/.', True),
        ('rsync -a "$PBS_O_WORKDIR/" $TMP', "rsync -a $TMP/ $PBS_O_WORKDIR/", True),
        ("cp -r $PBS_O_WORKDIR/* $TMP", "cp -r $TMP/* $HOME/results", False),
        ("cp -r $PBS_O_WORKDIR/* $TMP", "cp -r $TMP/out $PBS_O_WORKDIR", False),
        ("cp $PBS_O_WORKDIR/in.dat $TMP", "cp -r $TMP/* $PBS_O_WORKDIR", False),
    ],
)
def test_logs_that_are_copied_out_and_back(out: str, back: str, lost: bool) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l select=1:ncpus=4\nTMP=/scratch/x\n{out}\n./a\n{back}\n", "slurm")
    assert [one.line for one in done.remarks if "old copies of the logs" in one.why] == [6] * lost


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        ("export SLURM_NTASKS=4\nsrun ./a", ["SLURM_NTASKS=4"]),
        ("export SLURM_NNODES=1 X=2\nsrun ./a", ["SLURM_NNODES=1"]),
        ("SLURM_NPROCS=$((2 * 4))\nsrun ./a", ["SLURM_NPROCS=$((2 * 4))"]),
        ("SLURM_NPROCS=$((2 * 8))\nsrun ./a", []),
        ("export SLURM_NNODES=2 SLURM_NTASKS=16 SLURM_NTASKS_PER_NODE=8\nsrun ./a", []),
        ("export SLURM_NTASKS=4\nsrun -n 16 ./a", []),
        ("export SLURM_NTASKS=4\nmpirun ./a", []),
        ("srun ./a\nexport SLURM_NTASKS=4", []),
    ],
)
def test_variables_that_srun_reads_as_its_sizes(lines: str, lost: list[str]) -> None:
    done = job_file(SLURM.format("-N 2 --ntasks-per-node=8", lines))
    assert [one.what for one in done.remarks if "reads it as its" in one.why] == lost
    assert "env" not in values(done.text)  # in each rank it would hide the number of srun


@pytest.mark.parametrize(
    ("option", "devices"),
    [
        ("--gpus-per-node=a100", "a100:1"),
        ("--gpus=a100", "a100:1"),
        ("--gpus-per-task=a100", "a100:1"),
        ("--gpus-per-node=3090", 3090),
    ],
)
def test_a_type_of_gpu_without_a_number_is_one(option: str, devices: str | int) -> None:
    done = job_file(SLURM.format(f"-N 1 -n 1 {option}", "./a"))
    assert values(done.text)["gpus_per_node"] == devices
    assert not any("is no number" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    "find", ["$(which srun)", "`command -v srun`", '"$(type -p srun)"', "$(command -v srun)"]
)
@pytest.mark.parametrize("call", ["$S", '"$S"', "${S}"])
def test_a_launcher_that_a_command_finds(find: str, call: str) -> None:
    done = job_file(SLURM.format("-N 1 -n 2", f"set -e\nS={find}\n{call} ./a"))
    assert values(done.text)["command"] == ["./a"]
    assert "setup" not in values(done.text) or "srun" not in str(values(done.text)["setup"])


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ('"$HOME/tool" x', ["$HOME/tool", "x"]),
        ('S="$HOME/tool"\n"$S" x', ["bash", "-c", '"$S" x']),
        ('D=$(pwd)\n"${D}/tool" x', ["$D/tool", "x"]),
    ],
)
def test_a_program_in_quotes(lines: str, command: list[str]) -> None:
    assert values(job_file(SLURM.format("-N 1", lines)).text)["command"] == command


@pytest.mark.parametrize(
    ("options", "line", "each"),
    [
        ("-N 16 -n 40 --ntasks-per-node=40", "srun ./a", 3),
        ("-N 16 -n 40 --ntasks-per-node=40", "mpirun ./a", 3),
        ("-N 16 -n 40", "srun ./a", 3),
        ("-N 2 -n 8 --ntasks-per-node=8", "srun ./a", 4),
        ("-N 2 --ntasks-per-node=8", "srun ./a", 8),
    ],
)
def test_the_tasks_of_a_node_are_a_maximum_beside_those_of_the_job(
    options: str, line: str, each: int
) -> None:
    done = job_file(SLURM.format(options, line))
    assert values(done.text)["ranks_per_node"] == each
    assert any("not divisible by 16 nodes" in one.why for one in done.remarks) is ("-N 16" in options)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('egrep "^#SBATCH" $0', True),
        ("cat $0 | grep '#SBATCH --time'", True),
        ("N=$(awk '/^#SBATCH -n/ {print $3}' \"${0}\")", True),
        ("f() { sed -n 's/^#SBATCH -N //p' \"$BASH_SOURCE\"; }; f", True),
        ("if grep -q '#SBATCH -N' \"$0\"; then ls; fi", True),
        ("grep '#SBATCH' job.sh", False),
        ("grep '#PBS' $0", False),
        ("cat $0", False),
    ],
)
def test_a_search_for_the_directives_of_the_script(line: str, named: bool) -> None:
    for done in (
        convert(SLURM.format("-N 1", line), "pbspro"),
        convert(SLURM.format("-N 1", line), "torque"),
    ):
        assert [one.line for one in done.remarks if "begin with #PBS" in one.why] == [3] * named


@pytest.mark.parametrize("target", ["pbspro", "torque"])
@pytest.mark.parametrize(
    ("options", "code", "name"),
    [
        ("-n 1 -c 4", "export OMP_PROC_BIND=true\nsrun ./a", "OMP_PROC_BIND"),
        ("-N 1 -n 4", "export OMP_PLACES=cores OMP_NUM_THREADS=4\n./a", "OMP_PLACES"),
        ("-c 4", "KMP_AFFINITY=compact\nexport KMP_AFFINITY\npython a.py", "KMP_AFFINITY"),
        ("-c 4", "f() { export OMP_PROC_BIND=close; ./a; }\nf", "OMP_PROC_BIND"),
        ("-c 4", "export OMP_PROC_BIND=false\n./a", ""),
        ("-c 4", "export KMP_AFFINITY=none\n./a", ""),
        ("-c 4", "gmx mdrun -deffnm a -pin on -ntomp 4", "-pin on"),
        ("-n 1 -c 4", 'if ! srun gmx_mpi mdrun "$A" \\\n -pin on; then exit 1; fi', "-pin on"),
        ("-c 4", "singularity run a.sif /opt/namd2 a.namd +p4 +setcpuaffinity", "+setcpuaffinity"),
        ("-N 1 -n 4", "module load openmpi\nmpirun --map-by core --bind-to core ./a", "--bind-to core"),
        ("-N 1 -n 4", "mpiexec -bind-to hwthread ./a", "-bind-to hwthread"),
        ("-c 4", "time taskset -c 0-3 ./a", "taskset -c"),
        ("-c 4", "numactl -m 0 --physcpubind=0-3 ./a", "--physcpubind"),
        ("-N 1 -n 4", "mpirun --bind-to none ./a", ""),
        ("-c 4", "numactl -m 0 ./a -C 3", ""),
        ("-N 1 --exclusive", "gmx mdrun -pin on", ""),
        ("-c 4", "gmx mdrun -pin auto", ""),
        ("-c 4", "OMP_PROC_BIND=true\n./a", ""),
        ("-c 4", "export OMP_PROC_BIND=true\nls", ""),
        ("-N 1 --exclusive", "export OMP_PROC_BIND=true\n./a", ""),
        ("-N 2", "export OMP_PROC_BIND=true\nsrun ./a", ""),
    ],
)
def test_threads_that_are_bound_on_a_shared_node(options: str, code: str, name: str, target: str) -> None:
    done = convert(SLURM.format(options, code), target)
    assert [one.what for one in done.remarks if "binds the job to its cores, threads" in one.why] == [
        name
    ] * bool(name)


PBSPRO = "#!/bin/bash\n#PBS -l {}\ncd $PBS_O_WORKDIR\n{}\n"


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("rm -r $PBSTMPDIR", "rm -r ${PBSTMPDIR:?}"),
        ("f() { cd ${PBSTMPDIR}; }\nf", "f() { cd ${PBSTMPDIR:?}; }\nf"),
        ('for i in 1 2; do ./a -n "$TORQUE_RESC_TOTAL_PROCS"; done', ""),
        ("./a <<END\n$MOAB_PROCCOUNT\nEND", ""),
        ("D=$PBSCOREDIR/x\n./a $D", ""),
        ("bash -c './a $PBSREMOTEDIR'", ""),
    ],
)
def test_variables_that_a_site_of_pbs_sets(line: str, whole: str) -> None:
    done = convert(PBSPRO.format("select=1:ncpus=4", line), "slurm")
    assert [(one.lost, one.why) for one in done.remarks] == [(True, "has no counterpart")]
    assert whole in done.text
    name = done.remarks[0].what[1:]
    set_first = convert(PBSPRO.format("select=1:ncpus=4", f"{name}=/data/x\n{line}"), "slurm")
    assert remarks(set_first) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("export DB_HOST=$HOST", True),
        ('f() { ./a --master="${HOST%%.*}"; }\nf', True),
        ("for i in 1 2; do ssh $HOST ls; done", True),
        ("./a <<END\nserver = $HOST\nEND", True),
        ('echo "on $HOST"', False),
        ("HOST=$(hostname)\n./a $HOST", False),
        ("./a $HOSTNAME", False),
    ],
)
@pytest.mark.parametrize("target", ["slurm", "pbspro"])
def test_the_host_of_the_submission(line: str, expected: bool, target: str) -> None:
    script = PBSPRO.format("select=1:ncpus=1", line) if target == "slurm" else SLURM.format("-N 1 -n 1", line)
    done = convert(script, target)
    assert not any(one.what == "$HOST" for one in convert(script.replace("bash", "zsh", 1), target).remarks)
    why = [one.why for one in done.remarks if one.what == "$HOST"]
    assert len(why) == expected
    assert all("Slurm passes on that of the submission" in one for one in why)


@pytest.mark.parametrize(
    ("chunk", "line", "expected"),
    [
        ("", "mpiexec -n 4 --ppn 2 --depth=16 --cpu-bind depth ./a", True),
        ("", "D=8\nmpiexec -n 2 --ppn 1 -d $D --cpu-bind depth python a.py", True),
        ("", "for i in 1 2; do mpirun -np 2 --map-by ppr:1:node:pe=4 ./a $i; done", True),
        ("", "mpiexec -n 4 --ppn 2 ./a", False),
        ("", "export OMP_NUM_THREADS=4\nmpiexec -n 4 --ppn 2 --depth=4 ./a", False),
        (":ncpus=16", "mpiexec -n 4 --ppn 2 --depth=8 ./a", False),
    ],
)
def test_the_threads_of_ranks_with_several_cores(chunk: str, line: str, expected: bool) -> None:
    done = convert(PBSPRO.format(f"select=2{chunk}", line), "slurm", "pbspro")
    assert any(one.what == "OMP_NUM_THREADS" for one in done.remarks) is expected


@pytest.mark.parametrize(
    ("options", "logs"),
    [
        ("-o a.log -j oe", ["--output=a.log-%a"]),
        ("-o logs/a.out -e logs/a.err", ["--output=logs/a.out-%a", "--error=logs/a.err-%a"]),
        ("-o a.$PBS_JOBID -j oe", ["--output=a.%j"]),
        ("-j oe", ["--output=%x.o%A-%a"]),  # as Torque names them: NAME.oID-INDEX
        ("-o a.log -j oe -t 1-9", ["--output=a.log-%a"]),
    ],
)
@pytest.mark.parametrize(
    "line", ["./a $PBS_ARRAYID", "f() { ./a ${PBS_ARRAYID}; }\nf", "./a <<END\n$PBS_ARRAYID\nEND"]
)
def test_logs_of_an_array_that_only_the_submission_names(options: str, logs: list[str], line: str) -> None:
    done = convert(
        f"#!/bin/bash\n#PBS -l nodes=1:ppn=1 {options}\ncd $PBS_O_WORKDIR\n{line}\n", "slurm", "torque"
    )
    assert re.findall(r"#SBATCH (--(?:output|error)=.*)", done.text) == logs


@pytest.mark.parametrize(("line", "expected"), [("./a $PBS_ARRAY_INDEX", True), ("./a", False)])
def test_one_log_of_an_array_that_only_the_submission_names(line: str, expected: bool) -> None:
    done = convert(
        f"#!/bin/bash\n#PBS -l select=1:ncpus=1 -j oe -o a.log\ncd $PBS_O_WORKDIR\n{line}\n", "slurm"
    )
    assert any(one.why.startswith("is one file for all tasks") for one in done.remarks) is expected


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("-W depend=afterok:JOBID", "has no number of a job in Slurm"),
        ("-W depend=afterany:$FIRST", "has no number of a job in Slurm"),
        ("-W depend=on:2", "has no counterpart in Slurm"),
        ("-W Mail_Users=a", "is another form of -M: write -M, which may have a counterpart in Slurm"),
        ("-l partition=gpu", "is one of Moab: choose the queue or the partition of these nodes in Slurm"),
        ("-l gpu_type=v100", "is a type of GPUs: request it by its name in Slurm"),
        ("-l gputype=v100", "is a type of GPUs: request it by its name in Slurm"),
        ("-l filesystems=home", "has no counterpart in Slurm"),
    ],
)
def test_the_reason_of_a_lost_directive(option: str, why: str) -> None:
    done = convert(
        f"#!/bin/bash\n#PBS -l nodes=1:ppn=1\n#PBS {option}\ncd $PBS_O_WORKDIR\n./a\n", "slurm", "torque"
    )
    assert [(one.what, one.why) for one in done.remarks if one.lost] == [(option, why)]


@pytest.mark.parametrize(
    "chunks", ["nodes=3:ppn=8+1:ppn=6", "select=3:ncpus=8:mpiprocs=8+1:ncpus=6:mpiprocs=6"]
)
@pytest.mark.parametrize("number", ["$N", "$((A * B))", "`wc -l < ranks`"])
def test_ranks_of_components_use_the_nodes_of_the_request(chunks: str, number: str) -> None:
    done = convert(PBSPRO.format(chunks, f"mpiexec -np {number} ./a"), "slurm")
    assert any("starts a rank on each of its 30 slots" in one.why for one in done.remarks)
    assert not any("add --nodes" in one.why or "whole nodes" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        ("source ../../env.sh\n./a", "../../env.sh"),
        ("export A=1\nmodule load x\nmpirun -np 1 ./a", "./a"),
        ("for i in 1 2; do ../a $i; done", "../a"),
        ("x=$(./a)", "./a"),
        ("./a > b <<END\n1\nEND", "./a"),
        ("f() { ./a; }\ncd $PBS_O_WORKDIR\nf", ""),
        ("(cd $PBS_O_WORKDIR; ./a)", ""),
        ("if [ -d /data ]; then cd /data; fi\n./a", ""),
        ("/data/a -o ~/b", ""),
    ],
)
def test_relative_paths_in_the_first_directory(lines: str, path: str) -> None:
    script = f"#!/bin/bash\n#PBS -l select=1:ncpus=1\n{lines}\n"
    for target in ("slurm", "torque"):
        found = [one for one in convert(script, target).remarks if "is read below $HOME" in one.why]
        assert [(one.what, one.lost) for one in found] == [(path, False)] * (bool(path) and target == "slurm")
    of_file = [one.what for one in job_file(script).remarks if "is read below $HOME" in one.why]
    assert of_file == [path] * bool(path)
    of_ncar = convert(script.replace("ncpus=1", "ncpus=1\n#PBS -l job_priority=regular"), "slurm")
    assert not any("is read below $HOME" in one.why for one in of_ncar.remarks)
    assert 'cd "$HOME"' not in of_ncar.text


@pytest.mark.parametrize(
    ("options", "remark"),
    [
        ("-l nodes=1:ppn=1 -l mem=200kb", ("-l mem=200kb", "is less than 1 MiB: 1 MiB is requested")),
        (
            "-l nodes=1:ppn=1,mem=8",
            ("-l mem=8", "a number without a unit is one of bytes: 1 MiB is requested"),
        ),
        ("-l nodes=1:ppn=1 -l pmem=1500b", ("-l pmem=1500b", "is less than 1 MiB: 1 MiB is requested")),
        ("-l nodes=1:ppn=1,", ("-l", "an item of the list is empty: qsub refuses the script")),
    ],
)
def test_the_reason_of_a_size_or_an_item(options: str, remark: tuple[str, str]) -> None:
    done = convert(f"#!/bin/bash\n#PBS {options}\ncd $PBS_O_WORKDIR\n./a\n", "slurm", "torque")
    assert [(one.what, one.why) for one in done.remarks] == [remark]
    assert not any(one.lost for one in done.remarks)


@pytest.mark.parametrize(
    ("line", "what", "why"),
    [
        ("cp /var/spool/slurmd/job$SLURM_JOB_ID/slurm_script .", "slurmd", "is a folder of Slurm"),
        ("grep Node /etc/slurm/slurm.conf", "slurm", "is a folder of Slurm"),
        ("cp /data/etc/slurm/a .", "", "is a folder of Slurm"),
        ("cp /etc/slurm_notes .", "", "is a folder of Slurm"),
        ("matlab -batch \"c=parcluster('hpc')\"", "hpc", "is a cluster of MATLAB"),
        ("matlab -batch \"c=parcluster('local')\"", "", "is a cluster of MATLAB"),
    ],
)
@pytest.mark.parametrize("target", ["torque", "toml"])
def test_what_is_only_where_the_scheduler_is(target: str, line: str, what: str, why: str) -> None:
    text = SLURM.format("-N 1", line)
    done = job_file(text) if target == "toml" else convert(text, target)
    assert [one.what for one in done.remarks if one.why.startswith(why)] == [what] * bool(what)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("n=SLURM_$k; ./a ${!n}", True),
        ("n=SLURM_$k; mkdir $n", False),
    ],
)
def test_a_name_of_a_variable_that_the_script_puts_together(line: str, named: bool) -> None:
    done = convert(SLURM.format("-N 1", f"k=JOB_ID\n{line}"), "pbspro")
    assert any("begins the name of no variable" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Rscript -e 'Sys.getenv(\"SLURM_CPUS_PER_TASK\")'", "SLURM_CPUS_PER_TASK=4"),
        ("matlab -batch \"getenv('SLURM_CPUS_PER_TASK')\"", "SLURM_CPUS_PER_TASK=4"),
        ("python << E\nos.environ['SLURM_CPUS_PER_TASK']\nE", "SLURM_CPUS_PER_TASK=4"),
        ("python -c 'os.environ.get(\"SLURM_JOB_ID\")'", "SLURM_JOB_ID=${PBS_JOBID"),
        ("julia -e 'ENV[\"SLURM_NTASKS\"]'", "SLURM_NTASKS=1"),
        ("perl -e 'print $ENV{SLURM_CPUS_PER_TASK}'", "SLURM_CPUS_PER_TASK=4"),
        ("srun -n 2 ./a\npython -c 'os.environ[\"SLURM_JOB_ID\"]'", ""),
        ("python -c 'os.environ[\"SLURM_MEM_PER_NODE\"]'", ""),
        ("python -c 'os.environ[\"SLURM_CPUS_PER_TASK\"] = 2'", ""),
    ],
)
def test_a_variable_that_code_for_a_program_reads(line: str, value: str) -> None:
    """The new job sets it; without a value it is lost."""
    done = convert(SLURM.format("-N 1 -n 1 -c 4", line), "pbspro")
    assert f"\n{value}" in done.text
    assert ("\nexport SLURM_" in done.text) == bool(value)
    assert not (value and "is not set by" in str(done.remarks))


@pytest.mark.parametrize("target", ["slurm", "pbspro", "toml"])
@pytest.mark.parametrize(("cores", "named"), [(4, True), (1, False)])
def test_the_limit_of_memory_of_each_process(target: str, cores: int, named: bool) -> None:
    text = f"#!/bin/bash\n#PBS -l nodes=1:ppn={cores},pmem=2gb\n./a\n"
    done = job_file(text) if target == "toml" else convert(text, target)
    assert any("limits each process" in one.why for one in done.remarks) is named


def test_tasks_that_slurm_may_place_unevenly() -> None:
    text = SLURM.format("-N 2 -n 4", "srun ./a")
    for done in (convert(text, "torque"), job_file(text)):
        assert any("place unevenly" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("program", "named"), [("/opt/parallel/bin/solver", True), ("/opt/bin/parallel --jobs 2", False)]
)
def test_a_program_in_a_folder_named_as_a_launcher(program: str, named: bool) -> None:
    done = convert(f"#PBS -l nodes=4:ppn=16\ncd /work\n{program} x", "slurm", "torque")
    assert ("no launcher starts it on the 4 nodes" in str(done.remarks)) is named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("matlab-threaded -r a", True),
        ("mcc -R -nodisplay -m a.m b.m\n./a 1", True),
        ("mcc -m src/a.m -d exe -o c\nexe/c", True),
        ("mcc -m a.m -R -singleCompThread\n./a 1", False),
        ("mcc -m a.m\n./b 1", False),
        ("MCR=/opt/x/v90\n./run_a.sh $MCR", True),
        ("./run_a.sh /opt/matlab/R2019b 3", True),
        ("module load gcc matlab/R2019b\ncd b && srun ./a 4", True),
        ("module load matlab\nmatlab -singleCompThread -r a\n./a", False),
        ("module unload matlab\nml unload matlab\n./a", False),
        ("module load matlab\npython a.py\nbash ./a", False),
    ],
)
@pytest.mark.parametrize("target", ["torque", "toml"])
def test_programs_of_matlab_use_all_cores(text: str, named: bool, target: str) -> None:
    source = SLURM.format("-N 1 -n 1 -c 4", text)
    done = job_file(source) if target == "toml" else convert(source, target)
    assert ("may use all cores that it finds" in str(done.remarks)) is named


@pytest.mark.parametrize("name", ["SLURM_ARRAY_TASK_ID", "SLURM_JOB_ID"])
def test_a_variable_of_lines_that_cannot_be_read_is_not_translated(name: str) -> None:
    text = f"{{% if a %}}\n./a $SLURM_JOB_NAME{{%- else %}}\n./b ${name}{{% endif %}}"
    done = convert(SLURM.format("-n 1", text).rstrip("\n"), "torque")
    assert f"./b ${name}" in done.text
    assert {one.what for one in done.remarks if one.lost and "is not set by" in one.why} == {
        name,
        "SLURM_JOB_NAME",
    }


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_cores_that_cannot_be_read_give_no_number_of_threads(target: str) -> None:
    done = convert(SLURM.format("-n 1 -c %%cores%%", "python3 a.py"), target)
    assert "OMP_NUM_THREADS=" not in done.text
    assert any(one.what == "OMP_NUM_THREADS" for one in done.remarks)


@pytest.mark.parametrize("program", ["parallel ./x ::: 1 2", "python -m dask worker a:1"])
def test_a_program_of_a_launcher_that_uses_all_cores(program: str) -> None:
    done = convert(SLURM.format("-N 1 -n 1 -c 4", f"srun {program}"), "pbspro")
    assert "may use all cores that it finds" in str(done.remarks)


@pytest.mark.parametrize(
    ("option", "attribute"),
    [
        ("-M a@b.de", "Mail_Users=a@b.de"),
        ("-M a@b.de -m ae", "mail_users=a@b.de -WMail_Points=ae"),
        ("-N one", "Job_Name=one"),
        ("-A one", "Account_Name=one"),
        ("-j oe -o a.log", "Join_Path=oe -W Output_Path=a.log"),
        ("-e a.log", "Error_Path=a.log"),
        ("-p -5", "Priority=-5"),
        ("-P one", "project=one"),
        ("-k oe", "Keep_Files=oe"),
    ],
)
def test_attributes_are_other_forms_of_options(option: str, attribute: str) -> None:
    code = "#!/bin/bash\n#PBS -l select=1:ncpus=1\n#PBS {}\ncd $PBS_O_WORKDIR\n./a\n"
    short, long = (convert(code.format(one), "slurm") for one in (option, f"-W {attribute}"))
    assert long == short


@pytest.mark.parametrize(
    "attribute", ["Rerunable=n", "Hold_Types=u", "Execution_Time=1", "Variable_List=A=1"]
)
def test_attributes_with_values_of_their_own(attribute: str) -> None:
    code = f"#PBS -l select=1:ncpus=1\n#PBS -W {attribute}\n./a\n"
    assert ["is another form of" in one.why for one in convert(code, "slurm").remarks if one.lost] == [True]


@pytest.mark.parametrize("target", ["pbspro", "torque"])
@pytest.mark.parametrize(
    ("code", "new"),
    [
        ("./a ${SLURMD_NODENAME%%.*}", "./a ${SLURMD_NODENAME%%.*}"),
        ("cat << E\n$SLURMD_NODENAME\nE", "cat << E\n$SLURMD_NODENAME\nE"),
        ("bash -c './a $SLURMD_NODENAME ${SLURMD_NODENAME}'", "bash -c './a $(hostname -s) $(hostname -s)'"),
        (
            'bash -c "./a \\$SLURMD_NODENAME \\${SLURMD_NODENAME} $SLURMD_NODENAME"',
            'bash -c "./a \\$(hostname -s) \\$(hostname -s) $SLURMD_NODENAME"',
        ),
        (
            "f() { ./a $SLURMD_NODENAME; }\nexport -f f\nsrun bash -c f",
            "f() { ./a $(hostname -s); }",
        ),
    ],
)
def test_the_name_of_the_node_is_not_an_inherited_one(code: str, new: str, target: str) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1\n{code}\n", target)
    assert new in done.text
    assert ("SLURMD_NODENAME=$(hostname -s)\n" in done.text) == ("SLURMD_NODENAME" in new)
    assert "${HOSTNAME" not in done.text


@pytest.mark.parametrize(
    ("code", "nodes", "remarks"),
    [
        ("srun bash -c './a ${SLURMD_NODENAME%%.*}'", 2, 1),
        ("srun bash -c './a ${SLURMD_NODENAME%%.*}'", 1, 0),
        ("export SLURMD_NODENAME\nsrun ./a", 2, 1),
        ("export SLURMD_NODENAME\n./a", 2, 0),
        ("srun python -c 'import os; print(os.environ[\"SLURMD_NODENAME\"])'", 2, 1),
    ],
)
def test_the_name_of_the_first_node_for_all_ranks(code: str, nodes: int, remarks: int) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH -N {nodes} --ntasks-per-node=1\n{code}\n", "pbspro")
    assert sum(one.why.startswith("is the name of the first node") for one in done.remarks) == remarks
    assert "\nSLURMD_NODENAME=$(hostname -s)\n" in done.text


@pytest.mark.parametrize(
    ("program", "named"),
    [
        *(
            ("/share/apps/job_data_prerun.py", True),
            ("/share/apps/jobinfo", True),
            ("/opt/site/prologue", True),
        ),
        *(("/usr/local/bin/postrun", True), ("/usr/bin/joblib-x", False), ("/share/apps/a.py", False)),
        *(("/usr/bin/time", False), ("jobinfo", False)),
    ],
)
def test_a_program_of_a_site_for_jobs_is_named(program: str, named: bool) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=1\ncd $PBS_O_WORKDIR\n{program}\n", "slurm")
    assert any("is not read" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("code", "named"),
    [
        *(("IFS=,\nsrun ./a", True), ("IFS=',' a=($X)\nsrun ./a\nsrun ./b", True)),
        *(("O=$IFS\nIFS=,\nIFS=$O\nsrun ./a", False), ("IFS=,\nunset IFS\nsrun ./a", False)),
        *(("IFS=, read -r a b < x\nsrun ./a", False), ("x=$(IFS=,; f)\nsrun ./a", False)),
    ],
)
def test_an_ifs_that_does_not_split_the_exports_is_named(code: str, named: bool) -> None:
    found = convert(SLURM.format("-N 2 --ntasks-per-node=1", code), "torque").remarks
    assert sum("does not split the words of $(mpi_exports)" in one.why for one in found) == named


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("X=$(f)\nIFS=,\nsrun ./a $X", "IFS=,\nexec ./a $X"),
        ("X=a,b\nIFS=,\n./a $X", "IFS=,\nexec ./a $X"),
        ("X=a,b\nIFS=, read -r Y < x\n./a $X", ""),
    ],
)
def test_an_ifs_of_the_script_splits_the_words_of_the_program(code: str, words: str) -> None:
    command = values(job_file(SLURM.format("-N 1 -n 2", code)).text)["command"]
    assert command[-1] == words or (not words and command == ["./a", "a,b"])


@pytest.mark.parametrize(
    ("value", "words"),
    [('"/d/a_\\\nb"', ["/d/a_b"]), ('"-a \\\n -b"', ["-a", "-b"]), ('"-a\n-b"', ["-a", "-b"])],
)
def test_a_line_that_goes_on_in_quotes_is_no_blank(value: str, words: list[str]) -> None:
    assert values(job_file(SLURM.format("-n 1", f"A={value}\n./a -i $A")).text)["command"] == [
        "./a",
        "-i",
        *words,
    ]


@pytest.mark.parametrize(
    ("body", "call", "line"),
    [
        ('python3 ./a "$@"', 'main "$@"', 'exec python3 ./a "$@"'),
        ("echo a\npython3 ./a $*", 'main "$@"', "exec python3 ./a $*"),
        ('srun ./a "${@:2}"', 'main "$@"', 'exec ./a "${@:2}"'),
        ('srun ./a "$@"', "main b c", ""),
    ],
)
def test_a_function_hands_on_the_arguments_of_the_script(body: str, call: str, line: str) -> None:
    done = job_file(SLURM.format("-n 1", f"main() {{\n{body}\n}}\n{call}"))
    found = values(done.text)
    passed = 'script_arguments=("$@")' in found.get("setup", "")
    assert passed is bool(line)
    assert not line or found["command"][-1].splitlines()[-2:] == ['set -- "${script_arguments[@]}"', line]
    assert any("reads arguments of the script" in one.why for one in done.remarks) is bool(line)
