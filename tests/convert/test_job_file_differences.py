"""Differences between a script and its job file that a reading of conversions found."""

from __future__ import annotations

import pytest
import tomllib
from convert.conversions import convert, job_file, values

SLURM = "#!/bin/bash\n#SBATCH -t 10 {}\n{}\n"
PBS = "#!/bin/bash\n#PBS -l {}\n#PBS -l place=scatter\n#PBS -j oe\ncd $PBS_O_WORKDIR\n{}\n"


def reasons(text: str, word: str, source: str | None = None) -> list[int]:
    """Return the lines of the remarks whose reasons contain a text."""
    return [one.line for one in job_file(text, source).remarks if word in one.why]


@pytest.mark.parametrize(
    ("options", "line", "lines"),
    [
        ("-N 1 -n 4", "srun -c $((2 * X)) ./a", [4]),
        ("-N 1 -n 4", "srun --cpus-per-task=$X ./a", [4]),
        ("-N 1 -n 4 -c 2", "srun -c $X ./a", []),
        ("-N 1 -n 4", "srun -c 2 ./a", []),
    ],
)
def test_cores_that_are_known_only_when_the_job_runs(options: str, line: str, lines: list[int]) -> None:
    text = SLURM.format(options, f"X=`nproc`\n{line}")
    assert reasons(text, "the cores of a rank are known only") == lines


@pytest.mark.parametrize(
    ("types", "events"), [("END,FAIL,NONE", "none"), ("NONE", "none"), ("END,FAIL", "end,fail")]
)
def test_no_mail_among_other_events(types: str, events: str) -> None:
    """Slurm sends none, whatever stands before it."""
    assert values(job_file(SLURM.format(f"-N 1 --mail-type={types}", "./a")).text)["mail_on"] == events


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("nextflow run a.nf -profile x", [3]),
        ("srun /opt/bin/nextflow -C x run a.nf", [3]),
        ("for i in 1 2; do nextflow run $i; done", [3]),
        ("nextflow pull a", []),
        ("eval $(spack load --sh nextflow@22)\ncurl get.nextflow.io | bash\nnextflow run a.nf", [5]),
        ("export OMP_NUM_THREADS=2\nnextflow run a.nf", []),
        ("snakemake --cluster sbatch", []),  # which sets the variable for each of its jobs
    ],
)
def test_the_threads_of_jobs_that_a_workflow_submits(lines: str, named: list[int]) -> None:
    assert reasons(SLURM.format("-n 1", lines), "the jobs that it submits") == named


@pytest.mark.parametrize(
    ("resources", "line", "named"),
    [
        ("select=2:ncpus=8:mpiprocs=2", "mpirun -n 4 ./a", True),
        ("select=2", "mpiexec -n 8 --ppn 4 --depth 8 ./a", True),
        ("select=2:ncpus=8:mpiprocs=1", "mpirun -n 2 ./a", False),
        ("select=2:ncpus=8:mpiprocs=2:ompthreads=2", "mpirun -n 4 ./a", False),
        ("select=2:ncpus=8:mpiprocs=2", "export OMP_NUM_THREADS=4\nmpirun -n 4 ./a", False),
        ("select=1:ncpus=8", "./a", False),
    ],
)
def test_threads_that_pbs_sets_for_the_ranks(resources: str, line: str, named: bool) -> None:
    found = reasons(PBS.format(resources, line), "to the cores of a chunk", "pbspro")
    assert found == [2] * named


def test_commands_that_change_the_environment_of_the_shell_stay_in_it() -> None:
    found = values(job_file(SLURM.format("-n 1", "setpkgs -a x\npython3 a.py")).text)
    assert "setpkgs -a x" in found["setup"]
    assert "before" not in found


@pytest.mark.parametrize("options", ["-N 1 -n 8", "-N 1 --exclusive -c 8"])
def test_no_remark_on_threads_that_mdrun_does_not_get(options: str) -> None:
    """Nor do the jobs that it submits get them."""
    lines = "if [ -f a ]; then\ngmx mdrun -deffnm a\nsbatch next.sh\nfi"
    done = job_file(f"#!/bin/bash\n#SBATCH -t 10 {options}\n{lines}\n")
    assert "unset OMP_NUM_THREADS" in values(done.text)["command"][2]
    assert not [one for one in done.remarks if "OMP_NUM_THREADS" in one.why]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("sbatch < job.sh", True),
        ("sbatch job.sh", True),
        ("sbatch < next.sh", False),
        ("A=o\nsbatch j${A}b.sh\nA=$((A + 1))", True),
        ("A=o\nsbatch j${A}x.sh\nA=$((A + 1))", False),
        ("sbatch $A", False),
    ],
)
def test_a_script_that_submits_its_own_file(command: str, named: bool) -> None:
    from jobgen.convert.to_job_file import translation
    from jobgen.script.script import Script

    text = SLURM.format("-n 1", f"./a\n{command}")
    done = translation.convert(Script(text.encode(), "slurm", name="job.sh"))
    assert any("the file of this script" in one.why for one in done.remarks) is named


def test_another_script_in_the_same_file_is_named() -> None:
    text = SLURM.format("-n 1", "./a\n{}\n#SBATCH -n 2\n./b")
    found = [
        reasons(text.format(line), "another script in the same file") for line in ("#!/bin/bash", "# !", "")
    ]
    assert found == [[4], [], []]
    assert not reasons(SLURM.format("-n 1", "cat > x <<E\n#!/bin/bash\nE\n./a"), "another script in")


def test_a_blank_behind_a_backslash_ends_the_command() -> None:
    assert reasons(SLURM.format("-n 1", "./a --x \\ \n  --b 2\n./c"), "a blank behind the backslash") == [3]
    assert not reasons(SLURM.format("-n 1", "./a 'x \\ \n'\n# \\ \n./c \\\n  2"), "behind the backslash")


@pytest.mark.parametrize(
    ("options", "lines", "named"),
    [
        ("-N 2 -n 8", "echo $SLURM_NTASKS\nsrun -n 4 ./a", "is 4 in the job, and 8 in the script"),
        ("-N 1 -n 8", "srun -n $((SLURM_NTASKS/2)) ./a", ""),
        ("-N 1 -n 8", 'srun -n "$((SLURM_NTASKS / 2))" ./a', ""),
        (
            "-N 1 -n 8 -c 2",
            "echo $SLURM_CPUS_PER_TASK\nsrun -n 4 ./a",
            "is 4 in the job, and 2 in the script",
        ),
        (
            "-N 2 -n 8",
            "echo $SLURM_NTASKS_PER_NODE\nsrun -n 8 ./a",
            "is 4 in the job, and not set in the script",
        ),
        ("-N 2 -n 8", "echo $SLURM_NTASKS\nsrun ./a", ""),
        ("-n 1 --gres=gpu:1", "./a $SLURM_GPUS_PER_NODE", "is 1 in the job, and not set in the script"),
        ("-n 1 --gpus=1", "eval $SLURM_GPUS_PER_NODE\n./a", "is 1 in the job, and not set in the script"),
        (
            "-N 1 --gpus-per-node=a:1",
            "./a $SLURM_GPUS_PER_NODE",
            "is 1 in the job, and a:1 in the script",
        ),
        ("-N 1 --gpus-per-node=1", "./a $SLURM_GPUS_PER_NODE", ""),
        ("-N 1 --gpus-per-node=a:1", "eval $SLURM_GPUS_PER_NODE\n./a", ""),
    ],
)
def test_numbers_of_tasks_that_differ_in_the_job(options: str, lines: str, named: str) -> None:
    done = job_file(SLURM.format(options, lines))
    found = [one.why for one in done.remarks if "in the script" in one.why]
    assert found == [named] * bool(named)


def test_the_ranks_of_a_step_replace_the_tasks_of_the_job() -> None:
    found = values(job_file(SLURM.format("-N 2 -n 3", "srun -n 1 -N 1 ./a")).text)
    assert "directive" not in found


@pytest.mark.parametrize(
    ("lines", "line", "why"),
    [
        ("srun --container-image=x.sqsh --container-mounts=$M ./a", 3, "is known only when the job runs"),
        (
            "srun --container-name=x --container-mounts=$M ./a",
            3,
            "belongs to the container of an earlier srun",
        ),
    ],
)
def test_mounts_that_are_known_only_when_the_job_runs(lines: str, line: int, why: str) -> None:
    assert line in reasons(SLURM.format("-N 1", lines), why)


def test_lines_of_invisible_letters_are_no_commands() -> None:
    found = values(job_file(SLURM.format("-n 1", "module load x\n\u200b\nmodule load y\n./a")).text)
    assert found["module"] == ["x", "y"]
    assert "setup" not in found


def test_the_program_is_not_the_command_that_ends_a_process() -> None:
    found = values(job_file(SLURM.format("-n 1", "./watch &\n./a -x 1\npkill -u me watch")).text)
    assert found["command"] == ["./a", "-x", "1"]


def test_one_gpu_is_on_one_node() -> None:
    assert not reasons(SLURM.format("-G 1", "./a"), "all on one node")
    assert reasons(SLURM.format("-G 2", "./a"), "all on one node")


@pytest.mark.parametrize(
    ("options", "lines", "line"),
    [
        ("-N 1 -n 1 --gres=gpu:4", "srun ./b\nsrun torchrun --nproc-per-node 4 t.py", 3),
        ("-N 2", "mpirun ./b\nsrun --ntasks-per-node=4 ./a", 3),
        ("-N 1 -n 1 --gres=gpu:4", "srun -n 1 ./b\nsrun torchrun --nproc-per-node 4 t.py", 0),
        ("-N 2 -n 8", "srun ./b\nsrun ./a", 0),
    ],
)
def test_ranks_of_launchers_in_the_blocks(options: str, lines: str, line: int) -> None:
    """srun and mpirun start as many as the job has, which may be more than those of the script."""
    assert reasons(SLURM.format(options, lines), "as many as it has") == [line] * bool(line)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("sleep 9\nnvidia-smi\nwait", [(4, False)]),
        ("sleep 9\nmake x\nwait", [(5, True)]),
        ("P=$!\nsleep 9\nkill $P", [(6, True)]),
        ("P=$!\nwait $P\n./b", []),
    ],
)
def test_commands_beside_a_program_in_the_background(lines: str, found: list[tuple[int, bool]]) -> None:
    done = job_file(SLURM.format("-n 1", f"python a.py &\n{lines}"))
    assert [(one.line, one.lost) for one in done.remarks if "the script beside it" in one.why] == found


def test_a_launcher_of_others_is_the_program_also_in_the_background() -> None:
    lines = "python -m server &\nS=$!\nhorovodrun -np 2 python t.py &\nP=$!\nsleep 9\nkill $S $P"
    done = job_file(SLURM.format("-n 1", lines))
    assert values(done.text)["command"][0] == "horovodrun"
    assert "python -m server &\n" in values(done.text)["setup"].replace("server&", "server &")
    assert [one.line for one in done.remarks if "$! has no value" in one.why] == [6]


def test_all_commands_beside_a_program_in_the_background_are_named() -> None:
    done = job_file(SLURM.format("-n 1", "python a.py &\nmake x &\n./train\ncp a b\nwait\nls"))
    (found,) = [one for one in done.remarks if "the script beside it" in one.why]
    assert found.line == 4
    assert "and the commands after it to line 6 when the program of line 3" in found.why


@pytest.mark.parametrize(
    ("lines", "seen", "lines_of_status"),
    [
        ("python a.py\ncp a b", True, [5]),
        ("python a.py &\ncp a b", False, [5]),
        ("python a.py &\nwait $!\ncp a b", True, [6]),
        ("python a.py &\nwait\necho a", False, [6]),
        ("python a.py\necho a", True, []),
        ("{ python a.py; } &\ncp a b", False, [5]),
        ("for i in 1 2; do srun ./a & done\nwait\ncp a b", False, [6]),
    ],
)
def test_set_e_does_not_see_the_failure_of_a_program_in_the_background(
    lines: str, seen: bool, lines_of_status: list[int]
) -> None:
    done = job_file(SLURM.format("-n 1", f"set -e\n{lines}"))
    assert ("as set -e" in values(done.text)["after"]) is seen
    assert [one.line for one in done.remarks if "with that of this command" in one.why] == lines_of_status


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("a=(`ls *.fa`)", True),
        ('a=("$(cat list)")', True),
        ("mapfile -t a < list", True),
        ("for f in *.fa; do ./c $f && a+=($f); done", True),
        ("while read f; do ./c $f; a+=($f); done < list", True),
        ("a=(x y)\na[3]=z", False),
        ("a=($(scontrol show hostnames))", False),
        ("a=($(sed -n 3p list))", False),
        ("for i in 1 2; do ./c $i; a+=($i); done", False),
    ],
)
def test_an_array_of_unknown_length_is_handed_on_in_one_variable(lines: str, named: bool) -> None:
    done = job_file(SLURM.format("-n 1", f"{lines}\n./b ::: ${{a[@]}}"))
    assert [one.line for one in done.remarks if "128 KiB" in one.why] == [3] * named


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("time tool.py -c", ["env", "tool.py", "-c"]),
        ("tool.py", ["env", "tool.py"]),
        ("time ./tool.py", ["./tool.py"]),
        ("time python tool.py", ["tool.py"]),
        ("torchrun tool.py", ["tool.py"]),
    ],
)
def test_a_program_in_python_that_the_shell_finds_in_path(line: str, command: list[str]) -> None:
    assert values(job_file(SLURM.format("-n 1", line)).text)["command"] == command


@pytest.mark.parametrize(
    ("pattern", "named"),
    [("slurm*", True), ("slurm-*.out", True), ("slurm*.txt", False), ("my.slurm*", False)],
)
def test_the_log_of_the_script_by_a_pattern(pattern: str, named: bool) -> None:
    done = job_file(SLURM.format("-n 1", f"./a\ngrep -q ERROR {pattern}"))
    assert (values(done.text).get("log") == "slurm-%j.out") is named
    assert any("reads the log" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("log", "command", "named"),
    [
        ("logs/out.log", "rm -r logs\nmkdir logs", True),
        ("logs/out.log", "rm -r old", False),
        ("out.log", "rm *.log", True),
        ("out.log", "rm *.txt", False),
    ],
)
def test_a_command_that_deletes_the_log_of_a_later_copy(log: str, command: str, named: bool) -> None:
    text = f"#!/bin/bash\n#PBS -l select=1:ncpus=2\n#PBS -j oe -o {log}\ncd $PBS_O_WORKDIR\n{command}\n./a\n"
    assert reasons(text, "deletes the log", "pbspro") == [5] * named
    assert not reasons(SLURM.format(f"-n 1 -o {log}", f"{command}\n./a"), "deletes the log")


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("-N 1 -n 1 -c 32 --gres=gpu:4", "torchrun --nproc-per-node 4 t.py", True),
        ("-N 1 -n 1 -c 32 --gres=gpu:4", "export OMP_NUM_THREADS=8\ntorchrun --nproc-per-node 4 t.py", False),
        (
            "-N 1 -n 1 -c 32 --gres=gpu:4",
            "srun env OMP_NUM_THREADS=8 torchrun --nproc-per-node 4 t.py",
            False,
        ),
        (
            "-N 1 -n 1 -c 32 --gres=gpu:4",
            "docker run -e OMP_NUM_THREADS=8 i torchrun --nproc-per-node 4 t.py",
            False,
        ),
        ("-N 1 -n 1 -c 32 --gres=gpu:1", "torchrun --nproc-per-node 1 t.py", False),
        ("-N 1 -n 1 -c 4 --gres=gpu:4", "torchrun --nproc-per-node 4 t.py", False),
    ],
)
def test_threads_that_a_launcher_sets(options: str, line: str, named: bool) -> None:
    assert reasons(SLURM.format(options, line), "sets it to 1") == [3] * named


@pytest.mark.parametrize(
    "code",
    [
        "export OMP_NUM_THREADS=8",
        "source a.sh && export OMP_NUM_THREADS=8",
        "export OMP_NUM_THREADS=8 && . a.sh",
    ],
)
def test_threads_that_a_text_for_the_nodes_exports(code: str) -> None:
    """The job sets the number behind setup, which has these commands."""
    line = f"srun bash -c '{code}; torchrun --nnodes 2 --nproc-per-node 4 t.py'"
    found = values(job_file(SLURM.format("-N 2 -n 2 -c 32 --gres=gpu:4", line)).text)
    assert found["env"] == {"OMP_NUM_THREADS": "8"}
    assert "OMP" not in found.get("setup", "")


def test_slots_of_which_ranks_with_threads_use_all_cores() -> None:
    text = "#!/bin/bash\n#PBS -l nodes=4:ppn=48\nexport OMP_NUM_THREADS=24\nmpirun -np 8 -ppn 2 ./a\n"
    done = job_file(text)
    assert [(one.what, one.lost) for one in done.remarks if "starts 2" in one.why] == [
        ("48 slots of a node", False)
    ]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("# k=3\npython a.py -k $k", True),
        ("python a.py -k ${k}", True),
        ("read -r k < file\npython a.py -k $k", False),
        ("for k in 1 2; do :; done\npython a.py -k $k", False),
        ("((k = 3))\npython a.py -k $k", False),
        (": ${k:=3}\npython a.py -k $k", False),
    ],
)
def test_a_variable_of_the_program_that_nothing_sets(lines: str, named: bool) -> None:
    done = job_file(SLURM.format("-n 1", lines))
    assert any("is not set anywhere" in one.why for one in done.remarks) is named


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("source /etc/profile\nsrun cuFFT", True),
        ("source env.sh\nsrun cuFFT", False),
        ("srun cuFFT\nsrun ./a", False),  # which keeps its srun
        ("srun cuFFT | tee log", True),
    ],
)
def test_a_program_that_only_srun_finds(lines: str, named: bool) -> None:
    done = job_file(SLURM.format("-n 1", lines))
    assert any("finds it in the working directory" in one.why for one in done.remarks) is named


def test_the_same_program_twice_does_not_make_itself() -> None:
    found = values(job_file(SLURM.format("-n 1", "python t.py -a\npython t.py -b")).text)
    assert "python t.py -a" in found["before"]
    assert "setup" not in found


@pytest.mark.parametrize(
    ("options", "line", "hidden"),
    [
        ("-n 1 --gpus-per-node=4", "srun python3 t.py", True),
        ("-N 2 -n 2 --gpus-per-node=4", "srun /opt/bin/python t.py", True),
        ("-n 1 --gpus-per-node=4", "srun --ntasks-per-node=1 python3 t.py", False),
        ("-n 4 --gpus-per-node=4", "srun python3 t.py", False),
        ("-n 1 --gpus-per-node=1", "srun python3 t.py", False),
        ("-n 1 --gpus-per-node=4", "srun ./a", False),
    ],
)
def test_the_number_of_tasks_that_libraries_compare_with_the_gpus(
    options: str, line: str, hidden: bool
) -> None:
    found = values(job_file(SLURM.format(options, line)).text)
    assert (found["command"][:3] == ["env", "-u", "SLURM_NTASKS_PER_NODE"]) is hidden


@pytest.mark.parametrize(
    ("options", "command", "named"),
    [
        ("", "qsub $PBS_JOBNAME", True),
        ("", 'qsub -v A=1 "${PBS_JOBNAME}"', True),
        ("\n#PBS -N job", "qsub $PBS_JOBNAME", False),
        ("", "qsub $PBS_JOBNAME.next", False),
        ("", "./b $PBS_JOBNAME", False),
    ],
)
def test_a_script_that_submits_itself_by_the_name_of_its_job(options: str, command: str, named: bool) -> None:
    text = PBS.format("select=1" + options, f"./a\n{command}")
    assert bool(reasons(text, "is the name of this script", "pbspro")) is named


@pytest.mark.parametrize(
    ("state", "line", "true"),
    [
        ("set -e", "[ -e $A ] && ln -s x $A", True),
        ("set -e", "ln -s x $A", False),
        ("set +e", "ln -s x $A", True),
    ],
)
def test_the_status_of_the_commands_before_the_program(state: str, line: str, true: bool) -> None:
    text = SLURM.format("-n 1", f"{state}\nA=$(ls | head -n 1)\nsed -i s/a/b/ $A\n{line}\nsrun ./a $A")
    assert ("true  # whatever" in values(job_file(text).text)["before"]) is true


def test_ranks_that_go_on_if_one_fails() -> None:
    assert reasons(SLURM.format("-n 2", "srun --kill-on-bad-exit=0 ./a"), "without -K")
    assert reasons(SLURM.format("-n 2", "srun -K0 ./a"), "without -K")
    assert not reasons(SLURM.format("-n 2", "srun -K ./a"), "without -K")
    open_nodes = "#!/bin/bash\n#SBATCH -t 10 --ntasks-per-node=1 -c 4\nsrun ./a $SLURM_NNODES"
    assert reasons(open_nodes, "without -K")
    assert not reasons(SLURM.format("-n 2", "srun --kill-on-bad-exit ./a"), "without -K")


@pytest.mark.parametrize(("setting", "named"), [("join_timeout=3600", True), ("timeout=900", False)])
def test_a_setting_of_a_rendezvous_that_jobgen_does_not_use(setting: str, named: bool) -> None:
    line = f"srun torchrun --nnodes 2 --nproc-per-node 1 --rdzv-conf={setting} t.py"
    assert bool(reasons(SLURM.format("-N 2 --ntasks-per-node=1", line), "reads timeout only")) is named


def test_a_remark_on_the_interpreter_of_a_program_hides_none_on_its_nodes() -> None:
    assert reasons(SLURM.format("-N 2 -n 8", "./driver.py"), "no launcher starts it on the 2 nodes")


def test_names_in_comments_are_no_variables_of_the_job() -> None:
    assert not reasons(SLURM.format("-n 1", "A=$(date)\n# job_id is unused\n./a $A"), "of this name")
    assert reasons(SLURM.format("-n 1", "job_id=$(date)\n./a $job_id"), "of this name")


@pytest.mark.parametrize(
    ("line", "first", "group"),
    [
        ("torchrun --nproc-per-node 4 t.py", 0, 0),
        ("torchrun --nnodes 2 --nproc-per-node 4 t.py", 1, 0),
        ("torchrun --nnodes=$SLURM_NNODES --nproc-per-node 4 t.py", 1, 0),
        ("A='--nnodes 2 --nproc-per-node 4'\ntorchrun $A t.py", 1, 0),
        ("accelerate launch --num_machines 2 --num_processes 8 t.py", 1, 0),
        ("accelerate launch --config_file c.yaml t.py", 1, 0),
        ("deepspeed t.py", 0, 0),
        ("srun torchrun --nnodes 2 --nproc-per-node 4 t.py", 0, 0),
        ("srun torchrun $A --nproc-per-node 4 t.py", 0, 0),
        ("srun torchrun --nproc-per-node 4 t.py", 0, 1),
        ("srun bash -c 'torchrun --standalone --nproc-per-node 4 t.py'", 0, 1),
        ("C='python -m torch.distributed.launch --nproc-per-node 4 t.py'\nsrun $C", 0, 1),
        ("export PET_NNODES=2\nsrun torchrun --nproc-per-node 4 t.py", 0, 0),
        ("f() { torchrun --nnodes 2 --nproc-per-node 4 t.py; }\nexport -f f\nsrun bash -c f", 0, 0),
    ],
)
def test_launchers_of_one_node(line: str, first: int, group: int) -> None:
    """torchrun and accelerate start the ranks of their own node, and torchrun has one node by default."""
    text = SLURM.format("-N 2 --ntasks-per-node=1 --gres=gpu:4 -c 8", line)
    assert len(reasons(text, "on the first of the 2 nodes only")) == first
    assert len(reasons(text, "a group of ranks for a node")) == group
    assert bool(reasons(text, "uses 1 of 2 nodes")) == line.startswith("torchrun --nproc")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("module purge", True),
        ("module --force purge", True),
        ("module load python", False),
        ("module purge x", False),
        ("module unload atp", True),
        ("module load cuda/12.1 gcc gpu/cudnn-8", True),
        ("ml openmpi3", True),
        ("module load intel/2018.05 openmpi/3.0.2", True),
        ("module load PrgEnv-gnu netcdf-c/4.9", True),
        ("module load intel/python-3.9", False),
        ("module load cray-python", False),
        ("module load cuda pytorch", False),
        ("module load cuda/12-pytorch", False),
        ("module load $M", False),
        (". /etc/profile.d/modules.sh", True),
        (". /etc/profile.d/conda.sh", False),
    ],
)
def test_modules_that_hide_the_python_of_the_system(line: str, named: bool) -> None:
    assert bool(reasons(SLURM.format("-n 1", f"{line}\npython a.py"), "runs it as python3")) is named
    in_image = f"{line}\nsrun singularity exec i.sif python a.py"
    assert reasons(SLURM.format("-n 1", in_image), "runs it as python3")


@pytest.mark.parametrize(
    ("directive", "named"), [("#PBS -wd", [2, 2]), ("#PBS -k eo", []), ("#SBATCH -w n1", []), ("#PBS -V", [])]
)
def test_an_option_that_the_scheduler_does_not_know(directive: str, named: list[int]) -> None:
    source = "slurm" if "SBATCH" in directive else "pbspro"
    assert reasons(f"#!/bin/bash\n{directive}\n./a\n", "is no option of", source) == named


def test_threads_of_a_sourced_file_that_runs_the_program() -> None:
    found = values(job_file(SLURM.format("-n 1 -c 8", "export OMP_NUM_THREADS=8\nsource ./common.sh")).text)
    assert found["env"] == {"OMP_NUM_THREADS": "8"}
    assert found["command"] == ["true"]


@pytest.mark.parametrize(
    ("value", "command"),
    [
        ("main($X,@f)", ["./a", "-r", "$V"]),
        ("a&b$X", ["./a", "-r", "$V"]),
        ("run($X);exit", ["./a", "-r", "$V"]),
        ("mean($X) > 3", ["bash", "-c", "exec ./a -r $V"]),
        ("say 'hi' $X", ["bash", "-c", "exec ./a -r $V"]),
        ("a 3 > x", ["bash", "-c", "exec ./a -r $V"]),
        ("x=$X #c", ["bash", "-c", "exec ./a -r $V"]),
        ("$X | sort", ["bash", "-c", "exec ./a -r $V"]),
        ("x=$X y=2", ["./a", "-r", "x=$X", "y=2"]),
        (r"a\n $X", ["bash", "-c", "exec ./a -r $V"]),
        ("-b $X", ["./a", "-r", "-b", "$X"]),
        ("-b ${X}/c -d=$X", ["./a", "-r", "-b", "$X/c", "-d=$X"]),
    ],
)
@pytest.mark.parametrize("start", ["", "srun "])
def test_values_that_bash_splits_at_blanks_only(start: str, value: str, command: list[str]) -> None:
    """It reads no signs of the shell in the value of a variable."""
    found = values(job_file(SLURM.format("-n 1", f'X=$(hostname)\nV="{value}"\n{start}./a -r $V')).text)
    assert found["command"] == command
    assert f'V="{value}"' in found.get("setup", "") or "$V" not in command[-1]


@pytest.mark.parametrize("value", ["a $X > log", "x>$X", "b '$X'"])
def test_signs_in_values_that_eval_reads(value: str) -> None:
    text = SLURM.format("-n 1", f'X=$(hostname)\nV="{value}"\neval srun ./a $V')
    assert values(job_file(text).text)["command"] == ["bash", "-c", 'eval "exec ./a $V"']


@pytest.mark.parametrize(
    ("resources", "line", "why"),
    [
        (
            "select=1:ncpus=16:mpiprocs=16",
            "NP=$(wc -l < $PBS_NODEFILE)\n./a -t $NP",
            "is 1 in the job, and 16",
        ),
        (
            "select=10",
            "NP=`cat ${PBS_NODEFILE} | wc -l`\nmpiexec -n 40 --ppn 4 ./a $NP",
            "is 40 in the job, and 10",
        ),
        (
            "select=2:mpiprocs=4",
            'H="$PBS_NODEFILE"\nmpiexec -n 2 ./a $(cat $H | wc -l)',
            "is 2 in the job, and 8",
        ),
        (
            "select=2:mpiprocs=4",
            "N=$(grep -c . $PBS_NODEFILE)\nmpiexec -n 2 ./a $N",
            "is 2 in the job, and 8",
        ),
        ("select=2:mpiprocs=4", "mpiexec -n 2 ./a\nwc -l $PBS_NODEFILE > n", "is 2 in the job, and 8"),
    ],
)
def test_the_lines_of_the_file_of_hosts(resources: str, line: str, why: str) -> None:
    assert reasons(PBS.format(resources, line), why, "pbspro") == [6 + (line[0] == "H" or "> n" in line)]


@pytest.mark.parametrize(
    ("source", "resources", "line"),
    [
        (
            "pbspro",
            "select=1:mpiprocs=4",
            "mpiexec -n $(wc -l < $PBS_NODEFILE) ./a",
        ),  # which the job does not count
        ("pbspro", "select=2:mpiprocs=4", "mpiexec -n 8 ./a $(wc -l < $PBS_NODEFILE)"),
        ("pbspro", "select=2:mpiprocs=4", "mpiexec -n 2 ./a $(sort -u $PBS_NODEFILE | wc -l)"),
        ("pbspro", "select=2:mpiprocs=4", "mpiexec -n 2 ./a # wc -l < $PBS_NODEFILE"),
        ("torque", "nodes=2:ppn=4", "mpiexec -n 2 ./a $(wc -l < $PBS_NODEFILE)"),  # a line for each core
    ],
)
def test_no_other_lines_of_the_file_of_hosts(source: str, resources: str, line: str) -> None:
    assert reasons(PBS.format(resources, line), "in the job, and", source) == []


@pytest.mark.parametrize(
    ("resources", "line", "named"),
    [
        ("select=3:ncpus=8", "cat $PBS_NODEFILE > h\nsed -i 1,8d h\n./a h", True),
        ("select=3:ncpus=8", "N=$(wc -l < $PBS_NODEFILE)\n./a -np $N", True),
        ("select=3:ncpus=8", "cp $PBS_NODEFILE h\n./a h", True),
        ("select=3:ncpus=8:mpiprocs=1", "cp $PBS_NODEFILE h\n./a h", False),
        ("select=3:ncpus=1", "cp $PBS_NODEFILE h\n./a h", False),
        (
            "select=3:ncpus=8",
            "cat $PBS_NODEFILE\nuniq $PBS_NODEFILE > h\n./a h $(head -1 $PBS_NODEFILE)",
            False,
        ),
        ("select=3:ncpus=8", "cp $PBS_NODEFILE h\nmpiexec -f h -n 24 ./a", False),  # jobgen makes the file
    ],
)
def test_lines_of_the_file_of_hosts_that_the_site_chooses(resources: str, line: str, named: bool) -> None:
    assert (
        reasons(PBS.format(resources, line), "has one line for each node in the job", "pbspro") == [6] * named
    )


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("mpiexec -n 2 ./set_affinity_gpu_polaris.sh ./a", True),
        ("./multigpu_train", True),
        ("export USE_GPU=1\n./a", True),
        ("./a --gpus=2", True),
        ("./a_nogpu", False),
        ("./a --no_gpu", False),
        ("./a_nogpu_x --n_gpu=0", False),
    ],
)
def test_names_of_programs_for_gpus(line: str, named: bool) -> None:
    found = reasons(PBS.format("select=1:ncpus=2", line), "the job of jobgen sets up CPUs", "pbspro")
    assert found == [2] * named


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("CONFIG=$1\n./a $CONFIG", [3]),
        ("while getopts a:b o; do A=$OPTARG; done\n./a $A", [3]),
        ("mkdir out\necho ${2:-x} > out/x\n./a", [4]),
        ("f() { mkdir $1; }\nf x\n./a", []),
        ("set -- x y\nmkdir $1\n./a", []),
        ("cat > x <<'E'\necho $1\nE\n./a", []),
        ("mkdir x\nawk '{print $1}' x\n./a", []),
        ("mkdir x\n./a $1", []),  # that of the program has another remark
    ],
)
def test_arguments_of_the_script_in_blocks(lines: str, named: list[int]) -> None:
    assert reasons(SLURM.format("-n 1", lines), "pass none") == named
    text = f"#!/bin/bash\n#PBS -l select=1\n{lines}\n"
    assert not reasons(text, "pass none", "pbspro")  # which passes none to the script


@pytest.mark.parametrize(
    ("lines", "file", "command"),
    [
        ("source ~/.bashrc\n./a", [3], []),
        ("source v/bin/activate\npython a.py", [3], []),
        ("source activate v\npython a.py", [], [3]),
        ("source /opt/conda/bin/activate v\npython a.py", [], [3]),
        ("cd x\nsource ~/.bashrc\nmodule load y\n./a", [4], [3]),
        ("cd x && srun ./a", [], []),  # starts nothing if cd fails
        ("conda activate x && cd y && ./a", [], []),
        ("cd x && srun ./a\ncp b c", [], [3]),
        ("cd x\ncd ~/y\n./a", [], [4]),  # the first has no effect
        ("cd ~/x >/dev/null\ncd $SLURM_SUBMIT_DIR\n./a", [], []),
        ("cd ~/x\ncd y\n./a", [], [3]),
        ("set -e\nsource ~/.bashrc\n./a", [], []),
        ("cd x || return\n./a", [], [3]),
        ("cd x || exit\n./a", [], []),
        ('f() {\n  cd x || return\n  ./a\n}\nf "$@"', [], []),
    ],
)
def test_failures_that_end_the_job(lines: str, file: list[int], command: list[int]) -> None:
    text = SLURM.format("-n 1", lines)
    assert reasons(text, "if the file cannot be read, the job ends here, and the script goes on") == file
    assert reasons(text, "if it fails, the job ends here, and the script goes on") == command


@pytest.mark.parametrize(
    ("text", "source", "named"),
    [
        ("#!/bin/bash\nsrun -n 2 ./a\n", "slurm", [1]),
        ("#!/bin/bash\nmpirun -n 2 ./a\n", "pbspro", [1]),
        ("#!/bin/bash\ncat > x <<'E'\n#SBATCH -N 2\nE\nsbatch x\n./a\n", "slurm", [1]),
        ("#!/bin/bash\n#SBATCH -N 2\nsrun ./a\n", "slurm", []),
        ("#!/bin/bash\n./b\n#SBATCH -N 2\nsrun ./a\n", "slurm", []),  # which has a remark of its own
    ],
)
def test_a_script_without_directives(text: str, source: str, named: list[int]) -> None:
    from jobgen.convert.to_job_file import translation
    from jobgen.script.script import Script

    done = translation.convert(Script(text.encode(), source, name="run.sh"))
    assert [one.line for one in done.remarks if "requests nothing" in one.why] == named
    assert values(done.text)["name"] == "run.sh"


_STEP = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=2 -t 10{}\nJ=$SLURM_JOB_ID\nmodule load openmpi\n{}\n"


@pytest.mark.parametrize(
    ("option", "lost"),
    [
        ("--jobid=1234", True),
        ("--jobid $OTHER", True),
        ("--jobid=$SLURM_JOB_ID", False),
        ('--jobid "${SLURM_JOBID}"', False),
        ("--jobid=$J", False),
        ("--jobid=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID", False),
    ],
)
def test_a_step_of_another_job(option: str, lost: bool) -> None:
    text = _STEP.format("", f"srun {option} ./a")
    for done in (job_file(text), convert(text, "pbspro")):
        assert [one.lost for one in done.remarks if "is a step of that job" in one.why] == [True] * lost


@pytest.mark.parametrize(
    ("directive", "option", "named"),
    [
        (" --gres=gpu:2", "--gres=none", True),
        (" --gres=gpu:2", "--gpus=0", True),
        (" --gres=gpu:2", "--gres=gpu:1", True),
        (" --gres=gpu:2", "--gres gpu:a100:2", False),
        (" --gpus=4", "--gres=none", True),
        ("", "--gres=none", False),
        ("", "--gpus=0", False),
    ],
)
def test_devices_that_a_step_does_not_see(directive: str, option: str, named: bool) -> None:
    text = _STEP.format(directive, f"srun {option} ./a")
    assert bool(reasons(text, "the ranks see all devices")) is named
    done = convert(text, "pbspro").remarks
    assert any("each rank sees all devices" in one.why for one in done) is named


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("--wait=30", "mpirun waits for all"),
        ("-W 30", "mpirun waits for all"),
        ("--wait=0", ""),
        ("-n 1 -N 1 --wait=30", ""),
        ("--mpi=none", "mpirun connects them"),
        ("--mpi=pmix", ""),
        ("-n 1 -N 1 --mpi=none", ""),
    ],
)
def test_options_of_a_step_that_mpirun_does_not_have(option: str, word: str) -> None:
    done = convert(_STEP.format("", f"srun {option} ./a"), "pbspro").remarks
    found = [one.why for one in done if "mpirun waits" in one.why or "mpirun connects" in one.why]
    assert len(found) == bool(word)
    assert all(word in one for one in found)


@pytest.mark.parametrize(
    ("options", "lines", "nodes", "named"),
    [
        ("", "srun -n $SLURM_JOB_NUM_NODES hostname > h\nsrun -N1 -n1 ./a", None, [3]),
        ("", "for i in $SLURM_JOB_NODELIST; do mkdir $i; done\nsrun -N 1 -n 1 ./a", None, [3]),
        ("", "N=$SLURM_NNODES\nsrun -N1 ./a $N", None, [3]),  # on one node, also of several
        ("", "mkdir $SLURM_NNODES\n./a", None, [3]),
        ("", "mkdir $SLURM_NTASKS\n./a", None, []),
        ("", "echo $SLURM_NNODES\nsrun -N1 -n1 ./a", None, []),  # only printed
        ("", "N=$SLURM_NNODES\nsrun ./a $N", "submitted", []),
        ("", "srun -N $SLURM_NNODES ./a", "submitted", []),
        ("-N 2", "mkdir $SLURM_NNODES\nsrun -N1 -n1 ./a", 2, []),
    ],
)
def test_nodes_of_the_submission_beside_a_launcher(
    options: str, lines: str, nodes: int | str | None, named: list[int]
) -> None:
    text = SLURM.format(options, lines)
    assert reasons(text, "the job has one; that of the script has what the submission requests") == named
    assert values(job_file(text).text).get("nodes") == nodes


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('parallel -j 4 --joblog L "srun -n 2 ./a {} > {#}.log" ::: x y', ("parallel", "{#}.log")),
        ("parallel --jobs 4 srun -n 2 ./a {} :::: list", ("parallel", "::::")),
        ("cat list | parallel -j 4 --colsep , srun -n 2 ./a {1}", ("cat list |", "--colsep")),
        ('S="srun -n 2"\nP="parallel -j 4"\n$P "$S ./a {}" ::: x', ("$P", "$S ./a {}")),
        ("for i in 1 2; do\n  parallel mpirun -n 2 ./a {} $i ::: x\ndone", ("for i", "mpirun -n 2")),
        ("cat list | xargs -n 1 -P 4 srun -n 2 ./a", ("cat list |", "xargs -n 1 -P 4")),
        ("ls | xargs -I{} sh -c 'cd {}; srun -n 2 ./a'", ("ls |", "srun -n 2")),
    ],
)
def test_a_launcher_that_parallel_or_xargs_runs_stays_in_the_program(
    line: str, words: tuple[str, ...]
) -> None:
    done = job_file(SLURM.format("-N 1 -n 8", f"{line}\n"))
    found = values(done.text)
    assert found["launcher"] == "none"
    assert all(word in " ".join(found["command"]) for word in (*words, "./a"))
    assert ["it finds one task on a node, and not 8" in one.why for one in done.remarks if one.lost] == [True]


@pytest.mark.parametrize(
    ("options", "line", "lost", "place"),
    [
        ("-n 40", "parallel srun -N1 -n1 ./a ::: x", False, "the one node of the job"),
        ("-N 2 --ntasks-per-node=4", "parallel srun -n 4 ./a ::: x", True, "a node"),
    ],
)
def test_the_tasks_that_a_launcher_for_each_input_finds(
    options: str, line: str, lost: bool, place: str
) -> None:
    done = job_file(SLURM.format(options, line))
    assert [one.lost for one in done.remarks if f"it finds one task on {place}," in one.why] == [lost]


def test_a_launcher_for_each_input_is_no_program_beside_another() -> None:
    found = values(job_file(SLURM.format("-N 1 -n 8", 'srun ./a\nparallel "srun -n 1 ./b {}" ::: x')).text)
    assert found["command"] == ["./a"]
    assert 'parallel "srun -n 1 ./b {}" ::: x' in found["after"]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("./a\nif ! grep -q ok log; then\n  exit 1\nfi\nexit 0", [5, 7]),
        ("set -e\n./a\n[ -s out ] || exit 3\nmv out b\nexit 0", [5, 7]),
        ('die() { echo "$*"; exit 1; }\n./a\n[ -s out ] || die no\nls', [5, 6]),
        ("stop() { exit $CODE; }\ncheck() { [ -s $1 ] || stop; }\n./a\ncheck out\nls", [6, 7]),
        ("./a\nfor f in *; do\n  test -s $f || { ls; exit 2; }\ndone\nexit $?", [4, 5]),
        ("./a\ncase $A in\nx) exit 6 ;;\nesac\nls", [5, 7]),
        ("./a\npython3 b.py || exit $?\nls", [4, 5]),
        ("./a\nrc=$?\nif [ $rc -ne 0 ]; then ls; exit $rc; fi\ncp a b || exit 1\nexit $rc", [6]),
        ('./a\nif [[ "$?" == 0 ]]; then\n  ls\nelse\n  exit 1\nfi\nexit', [4]),
        ("./a\n(( $? )) && exit 1\n(cd x && exit 4)\nls | while read x; do exit 5; done\nls", [7]),
        ("./a\nrc=$?\nls\n[ $rc -eq 0 ] || exit 1\nexit $rc", []),
        ("./a\nrc=$?\nls\nexit $rc\ndate", []),
        ("./a\nf() { exit 1; }\nls", [5]),
        ('set -e\n./a\necho "done: $(date)"\nexit 0', []),
        ("set -e\n./a\necho x\nprintf y", []),
        ("set -e\n./a\necho x >> log", [5]),
        ("set -e\n./a | tee log\necho x", [5]),
        ("./a\necho x\nexit 0", [5]),
    ],
)
def test_an_exit_behind_the_program(lines: str, named: list[int]) -> None:
    lines = lines.replace("./a", "srun ./a")
    assert reasons(SLURM.format("-N 1 -n 4", lines), "the job ends with the status of the program") == named


@pytest.mark.parametrize(
    ("lines", "value", "unset"),
    [
        ("./g mdrun -ntomp $2", None, {"command"}),
        ("gmx mdrun -ntomp `nproc`\nsrun ./c\ngmx mdrun -ntomp $N", None, {"before", "after"}),
        ("for n in 1 2 4; do gmx mdrun -ntomp $n; done\npython3 a.py", None, {"before"}),
        ("run() { gmx mdrun -ntomp $1; }\nrun 4\nrun $X", "4", {"setup", "command"}),
        ("gmx mdrun -nt 6 -deffnm a\n./b", None, {"before"}),
        ("MD='gmx mdrun -ntmpi 4'\n$MD -deffnm a", None, {"command"}),
        ("gmx mdrun -ntmpi 1", None, set()),
        ("gmx mdrun -deffnm a", None, {"command"}),
        ("srun gmx mdrun -deffnm a", None, {"command"}),
        ("gmx mdrun -deffnm a\nsrun ./c", None, {"before"}),
        ("gmx_mpi mdrun -deffnm a", None, set()),
        ("mpirun -np 1 gmx_mpi mdrun -deffnm a", None, set()),
        ("n=2\ngmx mdrun -ntomp $n", "2", set()),
        ("T=$SLURM_CPUS_PER_TASK\nsrun gmx_mpi mdrun -ntomp ${T}", "8", set()),
        ("gmx mdrun -ntomp $OMP_NUM_THREADS", None, set()),
        ("ls | xargs -I{} sh -c 'cd {}; srun -n 1 gmx_mpi mdrun -ntomp 3'", "3", set()),
        ('A=4\nls | xargs -I{} bash -c "gmx mdrun -ntomp $A -deffnm {}"', "4", set()),
        ('ls | xargs -I{} bash -c "gmx mdrun -ntomp $A -deffnm {}"', None, {"command"}),
        ("export OMP_NUM_THREADS=$X\ngmx mdrun -ntomp $X", None, set()),
    ],
)
def test_the_threads_that_the_options_of_mdrun_set(lines: str, value: str | None, unset: set[str]) -> None:
    """It ends if OMP_NUM_THREADS is another number, and divides -nt by it."""
    found = values(job_file(SLURM.format("-N 1 -n 1 -c 8", lines)).text)
    assert found.get("env", {}).get("OMP_NUM_THREADS") == value
    texts = {key: str(found.get(key, "")) for key in ("setup", "before", "command", "after")}
    hidden = ("unset OMP_NUM_THREADS", "'-u', 'OMP_NUM_THREADS'")
    assert {key for key, text in texts.items() if any(one in text for one in hidden)} == unset


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("-N 1", "srun --ntasks-per-node=4 ./a", [3]),
        ("-N 1", "srun --ntasks-per-node $N ./a", [3]),
        ("-N 1", "for i in 1 2; do srun --ntasks-per-node=4 ./a $i; done", [3]),
        ("-N 1", "srun --ntasks-per-node=4 -n 4 ./a", []),
        ("-N 2", "srun --ntasks-per-node=1 ./a", []),
        ("-N 1 -n 1", "srun --ntasks-per-node=4 ./a", []),
    ],
)
def test_the_ranks_of_a_step_that_names_those_of_a_node(options: str, line: str, named: list[int]) -> None:
    """Measured on Slurm 22.05: SLURM_NTASKS=1, which a job with --ntasks-per-node=1 has, limits it to one."""
    assert reasons(SLURM.format(options, f"{line}\nsrun ./b"), "in the job, as many as it has") == named


@pytest.mark.parametrize(
    ("value", "named"),
    [("dcu:4", True), ("mlu:4", True), ("gpu:0,nvme:1", True), ("none", False), ("nvme:0", False)],
)
def test_devices_that_stay_a_directive(value: str, named: bool) -> None:
    text = SLURM.format(f"-n 1 --gres={value}", "./a")
    assert reasons(text, "and has none under another scheduler") == [2] * named


@pytest.mark.parametrize(
    ("lines", "is_pattern"),
    [
        ('A=\'["n","b"]\'\n./a -k $A', True),
        ("A='[12]'\n./a -k=$A", True),
        ("A='[12]'\n./a -k \"$A\"", False),
        ("A='[12'\n./a -k $A", False),
        ("./a x[12]", True),
        ('./a x["y"]', True),
        ("./a '[12]'", False),
        ("./a \\[12\\]", False),
        ("./a x{1,2}", True),
        ("./a x'{1,2}'", False),
    ],
)
def test_patterns_in_the_words_of_a_program(lines: str, is_pattern: bool) -> None:
    """A shell replaces them by the names of files, also in a value without quotes."""
    command = values(job_file(SLURM.format("-n 1", lines)).text)["command"]
    assert (command[0] == "bash") == is_pattern


@pytest.mark.parametrize(
    ("options", "own"), [("--no-requeue", {"directive": ["-r n"]}), ("--requeue", None), ("", None)]
)
def test_a_job_of_another_scheduler_runs_once_too(options: str, own: object) -> None:
    assert tomllib.loads(job_file(SLURM.format(f"-n 1 {options}", "./a")).text).get("pbs") == own


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("./b\nmpirun -x A=1 -n 2 ./a", [5]),
        ("./b\nsrun --export=ALL,A=1 ./a", [5]),
        ("mpirun -genv A 1 -n 2 ./a\n./c", [4]),
        ("mkdir d\nmpirun -x A=1 -n 2 ./a", []),
        ("./b\nA=1 srun ./a", []),
        ("export A=1\n./b\nmpirun -x A=1 -n 2 ./a", []),
    ],
)
def test_a_variable_of_the_ranks_that_other_commands_get(lines: str, named: list[int]) -> None:
    text = SLURM.format("-N 1 -n 2", f"D=x\n{lines}")
    assert reasons(text, "is set for the commands of the job, too") == named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (SLURM.format("-N 2 -n 4", "ibrun ./b\nsource e.sh\nibrun ./a"), [3]),
        (SLURM.format("-N 2 -n 4", "ibrun ./a"), []),
        (PBS.format("select=2:ncpus=4:mpiprocs=4", "aprun -n 8 ./b\nsource e.sh\naprun -n 8 ./a"), [6]),
    ],
)
def test_launchers_of_a_site_in_the_blocks(text: str, named: list[int]) -> None:
    assert reasons(text, "starts ranks under") == named


def test_an_array_of_another_scheduler_may_run_again() -> None:
    text = SLURM.format("-n 1 --no-requeue --array=1-4", "./a")
    assert reasons(text, "PBS Pro takes only arrays whose tasks may run again") == [2]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("if ! srun ./a; then\necho failed\nexit 1\nfi\nrm x", [7]),
        ("if srun ./a; then echo b; else exit 1; fi\nrm x", [4]),
        ("if ! srun ./a x*; then exit 1; fi\nrm x", [4]),
        ("if ! srun ./a; then echo failed; fi\nrm x", []),
        ("if ! srun ./a; then (exit 1); fi\nrm x", []),
        ("if [ -f b ]; then srun ./a || exit 1; fi\nrm x", []),  # after asks for the status
        ("srun ./a || exit 1\nrm x", []),
        ("if ! srun ./a; then exit 1; fi", []),
        ("set -e\nif ! srun ./a; then exit 1; fi\nrm x", []),  # after ends by the failure of the program
        ("set -e\nif srun ./a; then exit 1; fi\nrm x", [5]),
        ("set -e\nfor i in 1 2; do srun ./a; if [ -f b ]; then exit 1; fi; done\nrm x", [5]),
        ("set -e\nfor i in 1 2; do\n./a $i || exit\nr=$?\nif (( r != 0 )); then exit $r; fi\ndone\nrm x", []),
        ("set -e\nfor i in 1 2; do\n./a $i\nif [ -f b ]; then exit 0; fi\ndone\nrm x", [8]),
        ("for i in 1 2; do\n./a $i || exit\ndone\nrm x", [6]),
    ],
)
def test_commands_behind_an_exit_on_a_condition(lines: str, named: list[int]) -> None:
    assert reasons(SLURM.format("-n 1", lines), "runs also after an exit") == named


@pytest.mark.parametrize(
    ("lines", "is_unset"),
    [
        ("unset OMP_NUM_THREADS\npython t.py", True),
        ("unset A OMP_NUM_THREADS\nsrun ./a", True),
        ("export OMP_NUM_THREADS=2\nunset OMP_NUM_THREADS\n./a", True),
        ("unset OMP_NUM_THREADS\nexport OMP_NUM_THREADS=2\n./a", False),
        ("./a\nunset OMP_NUM_THREADS", False),
    ],
)
def test_a_number_of_threads_that_the_script_unsets(lines: str, is_unset: bool) -> None:
    command = values(job_file(SLURM.format("-N 1 --ntasks-per-node=1 -c 4", lines)).text)["command"]
    assert (command[:3] == ["env", "-u", "OMP_NUM_THREADS"]) == is_unset


@pytest.mark.parametrize(
    ("directive", "target", "new"),
    [
        ("#SBATCH --wait", "pbspro", "#PBS -W block=true\n"),
        ("#SBATCH --wait", "torque", "# not translated: --wait"),
        ("#PBS -l select=1:ncpus=2\n#PBS -W block=True", "slurm", "#SBATCH --wait\n"),
        ("#PBS -l select=1:ncpus=2\n#PBS -W block=true", "torque", "# not translated: -W block=true"),
    ],
)
def test_a_submission_that_waits_for_its_job(directive: str, target: str, new: str) -> None:
    assert new in convert(f"{directive}\n./a", target).text


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("mpirun -x PBS_NODEFILE -x A -n 2 ./a", ["-x PBS_NODEFILE"]),
        ("PBS_NODEFILE=hosts mpirun -x PBS_NODEFILE -n 2 ./a", []),
        ("mpirun -x A=1 -n 2 ./a", []),
    ],
)
def test_variables_of_the_job_that_mpirun_passes_on(line: str, named: list[str]) -> None:
    done = convert(f"#PBS -l select=1:ncpus=2:mpiprocs=2\n{line}", "slurm")
    assert [one.what for one in done.remarks if "the ranks do not get it" in one.why] == named
