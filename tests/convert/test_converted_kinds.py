"""Kinds of scripts whose meaning a conversion must not change silently."""

from __future__ import annotations

import pytest
from convert.conversions import body, convert, job_file, remarks, values

from jobgen.convert.to_scheduler import conversion
from jobgen.script.script import Script

TORQUE = "-l nodes=2:ppn=48"


@pytest.mark.parametrize(
    ("options", "line", "expected"),
    [
        ("-N 4 -n 16", "srun -n $((4*c)) -N 4 ./a", "ppr:$((((4*c) + 4 - 1) / 4)):node"),
        ("-N 4 -n 16", "srun -n $T -N 2 ./a", "ppr:$((($T + 2 - 1) / 2)):node"),
        ("-N 1 -n 16", 'srun -n "$T" -N 1 ./a', 'ppr:"$T":node'),
        (TORQUE, "mpirun -np 4 -perhost 2 ./a", "--cpus-per-task=24"),
        (TORQUE, "mpirun -np 96 ./a", "srun --ntasks=96 --kill"),
        (TORQUE, "mpirun -np 24 ./a", "srun --ntasks=24 --nodes=1 --cpus-per-task=2 --kill"),
        (
            TORQUE,
            "mpirun -np 4 -perhost 4 ./a",
            "srun --ntasks=4 --ntasks-per-node=4 --nodes=1 --cpus-per-task=12",
        ),
        ("-l nodes=1:ppn=8", "mpirun -np 2 ./a", "--cpus-per-task=4"),
        ("-l nodes=1:ppn=8", "aprun -n 2 ./a", "srun --ntasks=2 --cpus-per-task=1 --kill"),
    ],
)
def test_ranks_and_their_cores(options: str, line: str, expected: str) -> None:
    assert (
        expected
        in body(options, line, "slurm" if "-l" in options else "pbspro")[0][0 if "-l" in options else -1]
    )


@pytest.mark.parametrize("cores", ["$((32/c))", "4"])
def test_other_cores_of_a_rank_have_a_remark(cores: str) -> None:
    [found] = [
        one
        for one in convert(f"#SBATCH -n 2 -c 8\nsrun -c {cores} ./a", "pbspro").remarks
        if "may use all cores" in one.why
    ]
    assert (found.line, found.lost) == (3, False)


def test_a_variable_of_the_name_of_a_launcher_hides_no_launcher() -> None:
    done = convert("#SBATCH -N 2 -n 4\nsrun='srun --mpi=pmi2'\n$srun ./a\nbash -c 'srun ./b'", "pbspro")
    assert (True, 5, "srun") in remarks(done)
    assert [one.line for one in done.remarks if one.what == "srun" and one.lost] == [5]


def test_commands_of_alps_have_a_remark() -> None:
    done = convert(f"#PBS {TORQUE}\naprun -n 4 ./a\napstat\napkill 3", "slurm", "torque")
    assert {(True, 4, "apstat"), (True, 5, "apkill 3")} <= {*remarks(done)}


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("python pre.py", "python pre.py"),
        ("hostname", "hostname"),
        ("env A=1 python3 -m a.b", "env A=1 python3 -m a.b"),
        ("./a", "mpirun -np 1 "),
        ("python -m mpi4py pre.py", "mpirun -np 1 "),
    ],
)
def test_one_task_without_mpi_is_started_by_the_script(program: str, expected: str) -> None:
    lines = body("-N 2 -n 8", f"module load openmpi\nsrun -N 1 -n 1 {program}\nsrun ./a")[0]
    assert lines[-2].startswith(expected)


def test_numbers_of_gpus_are_set() -> None:
    names = ("SLURM_CPUS_PER_GPU", "SLURM_JOB_NUM_GPUS", "SLURM_GPUS")
    done = convert(
        f"#SBATCH -N 2 --gpus=8 --gpus-per-node=4 --cpus-per-gpu=6\necho {' '.join('$' + one for one in names)}",
        "torque",
    )
    assert {"SLURM_CPUS_PER_GPU=6", "SLURM_JOB_NUM_GPUS=8", "SLURM_GPUS=8"} <= set(done.text.split("\n"))


def test_the_directory_of_a_log_is_not_doubled() -> None:
    lines = convert("#SBATCH -D ./ -o ./a.log\n./a", "pbspro").text.split("\n")
    assert "#PBS -o ./a.log" in lines
    assert "cd ./ || exit 1" not in lines
    assert "#PBS -o /d/a.log" in convert("#SBATCH -D /d -o ./a.log\n./a", "pbspro").text.split("\n")


def test_an_array_of_a_list_looks_up_its_index() -> None:
    done = convert("#SBATCH --array=1,5,7%2\n./a $SLURM_ARRAY_TASK_ID", "pbspro")
    lines = done.text.split("\n")
    assert "#PBS -J 0-2%2" in lines
    assert "SLURM_ARRAY_TASK_ID=$(echo 1 5 7 | cut -d ' ' -f $((PBS_ARRAY_INDEX + 1)))" in lines
    assert lines[-2] == "./a $SLURM_ARRAY_TASK_ID"
    assert (False, 2, "the array 1,5,7%2") in remarks(done)


def test_programs_find_the_index_that_a_script_looks_up() -> None:
    lines = convert("#SBATCH --array=1,5,7\n./a", "pbspro").text.split("\n")
    assert "export SLURM_ARRAY_TASK_ID" in lines


def test_the_name_of_a_log_has_no_variables_on_slurm() -> None:
    done = convert("#PBS -o ${PBS_JOBNAME}.o${PBS_JOBID}\n#PBS -e $USER.err\n./a", "slurm", "torque")
    assert {"#SBATCH --output=%x.o%j", "#SBATCH --error=%u.err"} <= set(done.text.split("\n"))
    done = convert("#PBS -j oe\n#PBS -o $HOME/a.log\n./a", "slurm", "torque")
    assert (True, 3, "the output file $HOME/a.log") in remarks(done)
    assert "#SBATCH --output" not in done.text


def test_the_greater_of_two_memories_is_requested() -> None:
    assert "--mem=256G" in convert("#PBS -l nodes=1:ppn=32,pmem=4gb,mem=256gb\n./a", "slurm", "torque").text
    assert "--mem=512G" in convert("#PBS -l nodes=1:ppn=32,pmem=16gb,mem=256gb\n./a", "slurm", "torque").text


@pytest.mark.parametrize(
    ("commands", "needed", "workdir"),
    [
        ("cd sub/dir", True, "~/sub/dir"),
        ('cd "sub"', True, "~/sub"),
        ("D=sub\ncd $D", True, "~/sub"),
        ("D=$(pwd)/sub\ncd $D", True, "~/."),
        ('cd "$(dirname "$0")"', True, "~/."),
        ("D=$PBS_O_WORKDIR/x\ncd $D", False, "x"),
        ("cd ~/sub", False, "~/sub"),
        ("cd -P /sub", False, None),
        ("cd", False, "~/."),
        ("cd $SCRATCH", False, "$SCRATCH"),
    ],
)
def test_a_relative_directory_starts_at_that_of_the_job(
    commands: str, needed: bool, workdir: str | None
) -> None:
    text = f"#PBS -l nodes=1:ppn=1\n{commands}\n./a"
    assert ('cd "$HOME" || exit 1  # where PBS starts a job' in convert(text, "slurm").text) is needed
    found = values(job_file(f"#!/bin/bash\n{text}\n").text)
    assert found.get("workdir") == workdir


@pytest.mark.parametrize(
    ("request_", "line", "cores"),
    [
        ("SBATCH -N 2", "srun -n 64 -c 2 ./a", 2),
        ("SBATCH -N 2", "srun --ntasks-per-node=4 ./a", 2),
        ("SBATCH -N 2 -n 4", "srun -n 8 ./a", 4),
        ("SBATCH -N 2", "srun -n 2 ./a", 0),
        ("SBATCH -N 1", "mpirun -np 4 ./a\nmpirun -np 16 ./a", 1),
        ("SBATCH -N 1 -c 4", "srun -n 4 ./a", 0),
        ("SBATCH -N 2 --exclusive", "srun -n 64 ./a", 0),
        ("PBS -l select=1", "mpirun -n 24 ./a", 1),
        ("PBS -l nodes=1", "mpiexec -n 1 --depth 88 ./a", 1),
        ("PBS -l nodes=1", "aprun -n 1 -d 88 ./a", 0),
        ("PBS -l select=2:ncpus=8", "mpiexec -n 4 --depth 8 ./a", 16),
        ("PBS -l select=2:ncpus=8", "mpiexec -n 2 --depth 8 ./a", 0),
        ("PBS -l select=2:ncpus=8", "mpirun -np 16 ./a", 0),
        ("PBS -l nodes=2:ppn=8", "mpirun -np 16 ./a", 0),
        ("PBS -l nodes=2:ppn=8", "mpirun -np 32 ./a", 16),
        ("SBATCH --nodes=4", "mpirun -np 32 ${exe}", 4),
        ("SBATCH --nodes=4 --ntasks=32", "mpirun -np 32 ${exe}", 0),
        ("SBATCH --nodes=4", "mpirun ${options} -np 32 ./a", 0),
        ("SBATCH --nodes=4", "mpirun -np $N ${exe}", 0),
    ],
)
def test_ranks_with_more_cores_than_the_request_have_a_remark(request_: str, line: str, cores: int) -> None:
    done = convert(f"#{request_}\n{line}", "slurm" if request_.startswith("PBS") else "pbspro")
    expected = f" cores, more than the {cores} of the request: on whole nodes request all of them"
    why = [one.why for one in done.remarks if "of the request" in one.why]
    assert [one.endswith(expected) for one in why] == [True] * bool(cores)


@pytest.mark.parametrize("line", ["#DW jobdw capacity=1TB", "#BB create_persistent name=a"])
def test_a_burst_buffer_has_a_remark(line: str) -> None:
    text = f"#!/bin/bash\n#SBATCH -N 1\n{line}\n./a\n"
    for done in (convert(text, "pbspro"), job_file(text)):
        assert (True, 3, line) in remarks(done)
    behind = convert(f"#!/bin/bash\n#SBATCH -N 1\n./a\n{line}\n", "pbspro")
    assert line not in [one.what for one in behind.remarks]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('RUNNER="slurm_usda"\n./a --runner $RUNNER', True),
        ("./a --profile slurm", True),
        ("python -c 'import a; a.SLURMCluster()'", True),
        ("./a --profile torque", False),
        ("./a --slurm --b", True),
        ('./a "-slurm"', True),
        ("./a --use-slurm", True),
        ("./a --slurm-log c", False),
        ("case $1 in -s|--slurm) ./a;; esac", False),
        ("python a.py hydra/launcher=submitit_slurm -m", True),
        ("mkdir slurm_logs", False),
        ("mkdir -p slurm && cd slurm", False),
        ("ssh a 'export SLURM_JOB_ID='\"$SLURM_JOB_ID\"'; ./a'", False),
        ("mkdir slurm\n./a --profile slurm", True),
        ("for d in src slurm; do mkdir -p $B/$d; done", False),
        ("for d in src slurm; do ./a --profile $d; done", True),
        ('M="${SLURM_ARRAY_JOB_ID}: done well"\n./a "$M"', False),
        ('mail -s "a Slurm job" x <b\n./a --scheduler slurm', True),
        ("cp a /opt/slurm_usda/b", False),
    ],
)
def test_the_profile_of_another_program_that_names_the_scheduler(line: str, named: bool) -> None:
    done = convert(f"#SBATCH -N 1\n{line}", "pbspro")
    assert any("names Slurm" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("word", "title"), [("pbs", "PBS Pro"), ("torque", "Torque"), ("torque/6.1", "Torque")]
)
def test_a_name_of_another_pbs_is_named(word: str, title: str) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2\nmodule load {word}\n./a", "slurm")
    assert (True, 3, word) in remarks(done)
    assert f"names {title}" in [one.why for one in done.remarks]


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("mail -s 'Slurm job ended' a@b < log", False),
        ('MSG="SLURM job of $USER"\n./a "$MSG"', False),
        ('RUN="./a --scheduler SLURM -n 1"\n$RUN', True),
        ("./a --scheduler SLURM", True),
        ("./a 'slurm job'", True),
        ('./a "SLURM"', True),
    ],
)
def test_a_message_that_names_the_scheduler_is_not_lost(line: str, lost: bool) -> None:
    done = convert(f"#SBATCH -N 1\n{line}", "pbspro")
    assert [one.lost for one in done.remarks if "names Slurm" in one.why] == [lost]


@pytest.mark.parametrize(
    ("value", "named"), [("pmix_v3", False), ("pmi2", False), ("none", True), ("$1", True)]
)
def test_the_plugin_of_srun_in_a_variable_is_that_of_its_option(value: str, named: bool) -> None:
    done = convert(f"#SBATCH -N 1 -n 4\nexport SLURM_MPI_TYPE={value}\nsrun ./a", "pbspro")
    assert ("SLURM_MPI_TYPE" in str(done.remarks)) is named


@pytest.mark.parametrize(
    ("command", "lost"),
    [
        ("cat <<E", []),
        ("cat <<-E", []),
        ("cat > a <<E", ["SLURM_JOB_ID"]),
        ("cat <<E | mail a@b", ["SLURM_JOB_ID"]),
    ],
)
def test_labels_of_a_here_document_in_the_log(command: str, lost: list[str]) -> None:
    done = convert(f"#SBATCH -N 1\n{command}\nSLURM_JOB_ID:  $SLURM_JOB_ID\nE\n./a", "pbspro")
    assert [one.what for one in done.remarks if one.why == "is not set by PBS Pro"] == lost


def test_a_select_with_ranks_and_no_cores_may_be_a_whole_node() -> None:
    done = convert("#PBS -l select=1:node_type=rome:mpiprocs=1\n./a", "slurm")
    assert any("names no cores" in one.why for one in done.remarks)


@pytest.mark.parametrize(
    ("line", "rocm"),
    [
        ("module load rocm", True),
        ("module load aws-ofi-rccl", True),
        ("export ROCR_VISIBLE_DEVICES=0", True),
        ("spack install a +cuda ~rocm", False),
        ("# rocm", False),
    ],
)
def test_the_accelerator_of_a_script(line: str, rocm: bool) -> None:
    text = f"#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=1\n{line}\n./a\n"
    assert ('accelerator = "rocm"' in job_file(text).text) == rocm


@pytest.mark.parametrize(
    ("directive", "line", "noted"),
    [
        ("PBS -l nodes=1:ppn=3", "nvidia-smi", True),
        ("PBS -l nodes=1:ppn=3", "singularity exec --nv a.sif ./a", True),
        ("PBS -l nodes=1:ppn=3 -q gpu", "./a", True),
        ("PBS -l nodes=1:ppn=3:xk", "./a", True),
        ("PBS -l nodes=1:ppn=3:xe", "./a", False),
        ("PBS -l nodes=1:ppn=3:nvidiaP100", "./a", True),
        ("PBS -l nodes=1:ppn=3:m2090", "./a", True),
        ("PBS -l nodes=1:ppn=3:m2000", "./a", False),
        ("PBS -l nodes=1:ppn=3:gpus=1", "nvidia-smi", False),
        ("PBS -l nodes=1:ppn=3", "./a  # no GPU", False),
        ("PBS -l nodes=1:ppn=3", "# nvidia-smi\n./a", False),
    ],
)
def test_devices_without_a_request(directive: str, line: str, noted: bool) -> None:
    done = convert(f"#{directive}\n{line}", "slurm")
    assert ((False, 2, "GPUs") in remarks(done)) == noted


@pytest.mark.parametrize(
    "launcher", ["mpiexecjl --project", "charmrun", "ccc_mprun", "mpiexec.mpich", "mpirun_wrapper"]
)
@pytest.mark.parametrize("before", ["", "env A=1 ", "timeout 9 "])
def test_a_launcher_that_no_job_file_has_is_named(launcher: str, before: str) -> None:
    head = "#!/bin/bash\n#PBS -l select=1:ncpus=8:mpiprocs={}\n"
    lost = [one for one in job_file(f"{head.format(8)}{before}{launcher} -n 6 ./a\n").remarks if one.lost]
    name = launcher.split()[0]
    assert [(one.line, one.why) for one in lost] == [
        (3, f"how {name} starts ranks is not known: it finds one task on a node, and not 8")
    ]
    assert not any(one.lost for one in job_file(f"{head.format(1)}{before}{launcher} -n 6 ./a\n").remarks)


@pytest.mark.parametrize(
    ("code", "shared"),
    [
        ("mpirun -np 4 ./a &\nmpirun -np 4 ./b", 2),
        ("mpirun ./a &\nmpirun ./b &\nwait\nmpirun ./c", 2),
        ("mpirun ./a &\np=$!\nmpirun ./b &\nwait $p $!\nmpirun ./c", 2),
        ("mpirun ./a > x 2>&1 &\nif x; then mpirun ./b; fi", 2),
        ("for i in 1 2; do\n(cd $i; mpirun ./a) &\ndone\nwait\nmpirun ./c", 1),
        ("for i in 1 2; do mpirun ./a &\nif x; then wait; fi; done", 1),
        ("while x; do mpirun ./a; done &\nmpirun ./b", 2),
        ("for i in 1 2; do mpirun ./a & wait; done", 0),
        ("for i in 1 2; do mpirun ./a $i; done &\nwait", 0),
        ("mpirun ./a &\nwait\nmpirun ./b", 0),
        ("mpirun ./a\nmpirun ./b", 0),
        ("mpirun ./a; mpirun ./b & wait", 0),
        ("aprun -n 4 ./a &\naprun -n 4 ./b &\nwait", 0),  # on nodes of its own
    ],
)
def test_launchers_at_the_same_time_share_the_job(code: str, shared: int) -> None:
    """Without --overlap the second srun waits for the first one, and a coupled pair for ever."""
    done = convert(f"#PBS -l nodes=1:ppn=8\n{code}", "slurm", "torque")
    assert done.text.count(" --overlap ") == shared
    assert len([one for one in done.remarks if "beside other launchers" in one.why]) == bool(shared)


def test_a_script_of_slurm_without_a_first_line() -> None:
    for line, expected in (("", [(False, 1, "the first line")]), ("#!/bin/bash\n", [])):
        script = Script(f"{line}#SBATCH -N 1 -c 4\n./a\n".encode(), "slurm")
        done = conversion.convert(script, "pbspro")
        assert [one for one in remarks(done) if one[2] == "the first line"] == expected
