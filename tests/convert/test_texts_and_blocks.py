"""The blocks of a job file, and programs in texts, which other shells read than that of the script."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from convert.conversions import convert, job_file, remarks, rendered, values

SLURM = "#!/bin/bash\n#SBATCH -t 10 {}\n{}\n"


def in_block(text: str, key: str = "after") -> str:
    return str(values(job_file(text).text).get(key, ""))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("srun ./a || f", '(exit "$JOBGEN_STATUS") || f'),
        ("srun ./a && ./b || f", '(exit "$JOBGEN_STATUS") && ./b || f'),
        ("srun ./a && { ./b\nf; }", '(exit "$JOBGEN_STATUS") && { ./b\nf; }'),
    ],
)
@pytest.mark.parametrize("option", ["set -e\n", ""])
def test_what_depends_on_the_status_of_the_program(line: str, code: str, option: str) -> None:
    """It has the status in $?, and functions of the script; set -e does not end the script before it."""
    block = in_block(SLURM.format("-N 1", f"{option}f() {{ echo ended $?; }}\n{line}"))
    assert block.endswith(f"\nf() {{ echo ended $?; }}\n{code}\n")


@pytest.mark.parametrize("end", ["popd", "for i in 1 2; do popd; ./b; done"])
def test_directories_that_commands_after_the_program_leave(end: str, tmp_path: Path) -> None:
    done = job_file(
        SLURM.format("-N 1", f"mkdir -p x/y\npushd x\npushd y\nsrun ./a\n{end}\npwd > {tmp_path}/where")
    )
    (tmp_path / "b").touch()
    setup, after = (str(values(done.text)[key]) for key in ("setup", "after"))
    shell = ["bash", "-euo", "pipefail", "-c"]
    job = [*shell, f"{setup}\nbash -euo pipefail -c '{after}'"]
    subprocess.run(job, cwd=tmp_path, check=True, capture_output=True)
    expected = tmp_path / "x" if end == "popd" else tmp_path
    assert (tmp_path / "where").read_text() == f"{expected}\n"
    assert not [one for one in done.remarks if "separate process" in one.why]


@pytest.mark.parametrize(
    ("option", "named"),
    [("--error=e.txt", True), ("-e e.%t", True), ("-i in", True), ("--input=none", False), ("-l", False)],
)
def test_files_of_a_step(option: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1 -n 2", f"srun -o out {option} ./a"))
    assert any(one.lost and one.what == option for one in done.remarks) == named
    assert values(done.text)["launcher_arg"] == ["-o", "out", *["-l"] * (option == "-l")]


@pytest.mark.parametrize(
    ("code", "what", "lost"),
    [
        ('C="srun ./a > log"\n$C', "> log", True),
        ('C="srun ./a > log"\neval $C', "> log", False),
        ('C="srun ./a | tee log"\neval $C', "| tee log", False),
        ('eval "srun ./a &> log"', "&> log", False),
        ('C="mpirun ./a"\neval "$C > log < in"', "> log < in", True),
        ('C="srun ./a | grep x"\n$C', "| grep x", True),
        ('eval "cd x; srun ./a; cp b c"', "cd, cp", False),
        ('srun --ntasks-per-node=1 bash -c "torchrun a.py > log"', "> log", False),
        ('srun --ntasks-per-node=1 bash -c "cd x; ./b; torchrun $A"', "cd, b", False),
        ('srun --ntasks-per-node=1 bash -c "torchrun \\$A; ./b"', "b", False),
    ],
)
def test_what_follows_a_program_in_a_text(code: str, what: str, lost: bool) -> None:
    done = job_file(SLURM.format("-N 2 -n 2", code))
    assert [one.lost for one in done.remarks if one.what == what] == [lost]


def test_a_file_of_each_rank_in_a_text() -> None:
    done = job_file(SLURM.format("-N 2 -n 2", 'C="srun ./a > log; echo done"\nbash -c "$C"'))
    assert "runs for each rank" in next(one.why for one in done.remarks if one.what == "> log, echo")


@pytest.mark.parametrize(
    ("code", "setup", "command"),
    [
        ("srun ./a $A", "A='-x $X'\nexport A\n", ["bash", "-c", "exec ./a $A"]),
        ("eval srun ./a $A", "", ["./a", "-x", "5"]),
        ('srun ./a "$A"', "A='-x $X'\nargument_1=\"$A\"\n", ["./a", "$argument_1"]),
    ],
)
def test_a_dollar_in_single_quotes_is_no_variable(code: str, setup: str, command: list[str]) -> None:
    found = values(job_file(SLURM.format("-N 1", f"X=5\nA='-x $X'\n{code}")).text)
    assert (found["setup"], found["command"]) == (f"set +e\nX=5\n{setup}", command)


@pytest.mark.parametrize(("value", "named"), [("4", True), ("$(nproc)", False)])
def test_a_file_that_may_set_a_variable_again(value: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1", f"cores={value}\nsource env.sh\nsrun ./a $cores"))
    assert ("may set cores again" in str(done.remarks)) == named


def test_a_file_that_may_set_several_variables_again() -> None:
    done = job_file(SLURM.format("-N 1", "b=4\n\na=1\nsource env.sh\nsrun ./a $a $b"))
    why = next(one.why for one in done.remarks if "again" in one.why)
    assert why == "may set a, b again: the job file has the values of lines 3, 5"


def test_a_directive_with_an_empty_value() -> None:
    """sbatch accepts --nodelist=, and refuses --nodelist."""
    text = SLURM.format("--nodelist= --exclude '' --requeue", "./a")
    assert values(job_file(text).text)["directive"] == ["--requeue", "--nodelist=", "--exclude="]
    assert "--nodelist=" in [one.what for one in convert(text, "pbspro").remarks]


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        ("srun ./a | tee log || exit 1\n./b", '(exit "$JOBGEN_STATUS") | true || exit 1\n./b\n'),
        ("srun ./a | tee log\nset -o pipefail\n./b", "set -o pipefail\n./b\n"),
        ("srun ./a | tee log\n[ $? = 0 ] && ./b", '(exit "$JOBGEN_STATUS") | true\n[ $? = 0 ] && ./b\n'),
        (
            "srun ./a | tee log\nif [ ${PIPESTATUS[0]} = 0 ]; then ./b; fi",
            '(exit "$JOBGEN_STATUS") | true\nif [ ${PIPESTATUS[0]} = 0 ]; then ./b; fi\n',
        ),
    ],
)
@pytest.mark.parametrize("option", ["", "set -e\n"])
def test_the_status_of_a_pipeline_is_that_of_its_end(lines: str, after: str, option: str) -> None:
    block = in_block(SLURM.format("-N 1", option + lines))
    if "pipefail" not in lines:
        assert block == f"set {'+u' if option else '+eu'} +o pipefail\n{after}"
    else:
        assert block.endswith(after)


@pytest.mark.parametrize(
    ("lines", "key", "text"),
    [
        ("./b\nif [ $? = 0 ]; then\n  ./a\nfi", "command", "./b\nif [ $? = 0 ]; then\n  ./a\nfi"),
        ("./b | ./c\n./a > x${PIPESTATUS[0]}", "command", "./b | ./c\n./a > x${PIPESTATUS[0]}"),
        ("f() { ./a $?; }\n./b\nf", "command", "f() { ./a $?; }\n./b\nf"),
        ("./b &\nif [ $? = 0 ]; then ./a; fi", "command", "if [ $? = 0 ]; then ./a; fi"),
        ("cd b\nif [ $? = 0 ]; then ./a; fi", "command", "if [ $? = 0 ]; then ./a; fi"),
        ("./b\nif ./a; then echo $?; fi", "command", "if ./a; then echo $?; fi"),
        ("./b\nsrun ./a $?", "setup", "set +e\n./b\nexport argument_1=$?\n"),
        ("./b\nV=$? ./a", "setup", "set +e\n./b\nargument_1=$?\n"),
        ("A=$(./b)\n[ $? = 0 ] || ./c\n./d\n./a", "before", "set +eu +o pipefail\n./d\ntrue"),
        ("./b\n[ $? = 0 ] || ./c\n./a", "before", "set +eu +o pipefail\n./b\n[ $? = 0 ] || ./c\ntrue"),
        ("./a | tee log\nexit ${PIPESTATUS[0]}", "command", "./a | tee log\n(exit ${PIPESTATUS[0]})"),
        ("./a | tee log\ndate\necho ${PIPESTATUS[0]}", "command", "./a | tee log"),
        ("./a\ncase x in\n  x) echo $?;;\nesac", "after", '(exit "$JOBGEN_STATUS")\ncase x in'),
        ("srun ./a\nif ./b; then echo $?; fi", "after", "if ./b; then echo $?; fi\n"),
    ],
)
def test_a_status_that_the_next_command_reads(lines: str, key: str, text: str) -> None:
    found = values(job_file(SLURM.format("-N 1", lines)).text)[key]
    code = found if isinstance(found, str) else found[-1]
    assert code.removeprefix("set +eu +o pipefail\n" if key == "after" else "").startswith(text)
    assert key != "command" or code == text


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("./a | tee log\necho ${PIPESTATUS[1]}", "PIPESTATUS has"),
        ("srun ./a | tee log\necho ${PIPESTATUS[@]}", "PIPESTATUS has"),
        ("trap 'rm -rf d; exit 7' EXIT\n./a", "with the status of the program"),
        ("end() {\n  exit 0\n}\ntrap end EXIT\n./a", "with the status of the program"),
    ],
)
def test_a_status_that_the_block_after_has_not(lines: str, named: str) -> None:
    assert named in str(job_file(SLURM.format("-N 1", lines)).remarks)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("trap 'rm -rf d; exit' EXIT\n./a", False),
        ("trap 'rc=$?; rm -rf d; exit $rc' EXIT\n./a", False),
        ("./a | tee log\nexit ${PIPESTATUS[0]}", False),
        ("srun ./a | tee log", True),
        ("set -o pipefail\nsrun ./a | tee log", False),
        ("set -e\nsrun ./a\nexit 0", False),
        ("set -e\nsrun ./a || true\nexit 0", True),
        ("srun ./a\nexit 0", True),
    ],
)
def test_another_status_than_that_of_the_program(lines: str, named: bool) -> None:
    done = job_file(SLURM.format("-N 1", lines))
    assert ("with the status of the program, and the script" in str(done.remarks)) == named


@pytest.mark.parametrize("lines", ["module load a 2>&1", "cd b && module load a", "module load a"])
def test_options_that_end_the_job(lines: str) -> None:
    done = job_file(SLURM.format("-N 1", f"{lines}\n./a"))
    assert "module" in next(one.what for one in done.remarks if "the script goes on" in one.why)


def test_a_variable_in_code_has_its_value_when_the_job_runs() -> None:
    done = job_file(SLURM.format("-N 1", "A=1\nsource env.sh\nsrun bash -c './a $A'\n"))
    assert "may set A again" not in str(done.remarks)


def test_printed_text_sets_no_variable() -> None:
    done = job_file(SLURM.format("-N 1", 'echo brick="$brick"\nsrun ./a $brick'))
    assert [one.what for one in done.remarks if "not set anywhere" in one.why] == ["$brick"]


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ("./build/a -t 1", ["./build/a", "-t", "1"]),
        ("A=/x\n. env.sh\n${A}/v.${V}/bin/a", ["$A/v.$V/bin/a"]),
        ("date", ["-m", "pip", "install", "b"]),
    ],
)
def test_what_installs_something_is_no_program_beside_another(lines: str, command: list[str]) -> None:
    start = "python setup.py install\npython -m pip install b\n"
    assert values(job_file(SLURM.format("-N 1", start + lines)).text)["command"] == command


def test_arguments_that_the_script_has_changed() -> None:
    """Each block and the program is a shell of its own."""
    lines = 'A=$1; shift\nD=("$@")\nsrun ./a "${D[@]}" $A\ncp $1 b'
    found = values(job_file(SLURM.format("-N 1 -a 1-3", lines)).text)
    assert 'export array_D="$(declare -p D)"' in found["setup"]
    assert found["setup"].count("declare -p script_arguments") == 1
    assert found["after"].endswith('set -- "${script_arguments[@]}"\ncp $1 b\n')
    assert found["command"][2].startswith('eval "$array_D"\n')


def test_arguments_of_the_script_in_a_text_for_another_shell() -> None:
    """It has the arguments of its own shell."""
    found = values(
        job_file(SLURM.format("-n 2", 'shift\nsrun bash -c "cd $1; ./a ${2:-3} $@ \\$SLURM_PROCID"')).text
    )
    assert found["command"] == ["bash", "-c", 'eval "$argument_1"']
    setup = 'set +e\nshift\nexport argument_1="cd $1; ./a ${2:-3} $@ \\$SLURM_PROCID"\n'
    assert found["setup"] == setup


@pytest.mark.parametrize(
    ("options", "launcher", "mpi"),
    [
        ("PBS -l select=1", "mpiexec", "pals"),
        ("PBS -l select=1", "mpirun", "pals"),
        ("SBATCH -N 1", "mpiexec", "mpich"),
    ],
)
def test_mpiexec_of_cray_with_pbs(options: str, launcher: str, mpi: str) -> None:
    text = f"#!/bin/bash\n#{options}\nmodule load cray-mpich-abi\n{launcher} -n 1 ./a\n"
    assert values(job_file(text).text)["mpi"] == mpi


def test_mpiexec_of_pals_has_the_most_of_its_options() -> None:
    text = "#!/bin/bash\n#PBS -l select=2:ncpus=4\nmpiexec -n 8 -ppn 4 {} ./a\n"
    assert values(job_file(text.format("--cpu-bind=list:0:1:2:3")).text)["mpi"] == "pals"
    assert values(job_file(text.format("-genvall")).text)["mpi"] == "mpich"


def test_an_option_of_a_site_that_a_script_repeats() -> None:
    text = SLURM.format("-N 1\n#SBATCH --link=a\n#SBATCH --link=b", "./a")
    assert values(job_file(text).text)["directive"] == ["--link=a", "--link=b"]
    assert {"--link=a", "--link=b"} <= {one.what for one in convert(text, "pbspro").remarks}


def test_the_end_of_an_action_of_find_stays() -> None:
    text = SLURM.format("-N 1", "srun ./a;\nfind b -type f -exec gzip {} \\;")
    assert in_block(text).endswith("\nfind b -type f -exec gzip {} \\;\n")


def test_a_type_of_devices_names_the_accelerator() -> None:
    found = values(job_file(SLURM.format("-N 1 --gres=gpu:mi250:1", "./a")).text)
    assert (found["accelerator"], found["gpus_per_node"]) == ("rocm", "mi250:1")


def test_a_home_directory_that_the_script_sets_is_that_of_conda() -> None:
    lines = "export HOME=$(getent passwd me | cut -d: -f6)\nsource /x/etc/profile.d/conda.sh\nconda activate a\n./b"
    found = values(job_file(SLURM.format("-N 1", lines)).text)
    assert found["early_setup"].endswith("\nexport HOME=$(getent passwd me | cut -d: -f6)\n")
    assert (found["source"], found["conda"]) == (["/x/etc/profile.d/conda.sh"], "a")


def test_a_program_in_a_loop_of_a_function() -> None:
    """The commands after it call the function with all its conditions."""
    lines = "f() {\nfor i in 1 2; do cd x$i && srun ./a && ./b; done\n}\nf\nf"
    done = job_file(SLURM.format("-N 1", lines))
    assert "call the whole function" in next(one.why for one in done.remarks if one.lost)
    assert "setup" not in values(done.text)
    assert "JOBGEN_STATUS" not in in_block(SLURM.format("-N 1", lines))


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("N=/opt/nextflow-23.04.3-all\n$N run a.nf", True),
        ('N="/opt/bin/nextflow"\n${N} -C x run a.nf', True),
        ("N=/opt/nextflow/bin/a\n$N run b", False),
        ('N="nextflow \\\n -log $1 run a.nf"\n[ -z "$2" ] || N="$N -entry $2"\neval $N', True),
    ],
)
def test_the_threads_of_jobs_of_a_workflow_in_a_variable(lines: str, named: bool) -> None:
    done = job_file(SLURM.format("-n 1", lines))
    assert ("the jobs that it submits" in str(done.remarks)) == named


def test_a_log_that_a_directive_empties() -> None:
    done = job_file(SLURM.format("-N 1 -o a.txt --open-mode=truncate", "./a"))
    assert values(done.text)["directive"] == ["--open-mode=truncate"]
    assert "appends to this log" not in str(done.remarks)


def test_threads_of_a_script_without_a_program() -> None:
    done = job_file(SLURM.format("-N 1", "for i in 1 2; do export OMP_NUM_THREADS=$i; x=$(./a); done"))
    assert "jobgen sets it" not in str(done.remarks)


@pytest.mark.parametrize("line", ["./loopallgpu 1", "module load rocshmem/1", "./a -p 1"])
def test_more_words_of_devices(line: str) -> None:
    done = job_file(SLURM.format("-N 1 -p mi1008x" if line == "./a -p 1" else "-N 1", line))
    assert "accelerators" in [one.what for one in done.remarks]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("torchrun --nproc_per_node=4 $S --x", ["python3", "$S", "--x"]),
        ("torchrun --nproc_per_node=4 tools/train", ["python3", "tools/train"]),
        ("torchrun --nproc_per_node=4 --no-python $S --x", ["$S", "--x"]),
        ("torchrun --nproc_per_node=4 a.py", ["a.py"]),
        ("torchrun --nproc_per_node=4 $C", ["bash", "-c", "exec python3 $C"]),
        ("srun --ntasks-per-node=1 bash -c 'torchrun $C'", ["bash", "-c", "exec python3 $C"]),
        ('deepspeed --num_gpus=4 "$S" x', ["python3", "$S", "--local_rank=$LOCAL_RANK", "x"]),
        ('deepspeed --num_gpus=4 --no_local_rank "$S" x', ["python3", "$S", "x"]),
        ("deepspeed --num_gpus=4 a.py x", ["a.py", "x"]),
        ("deepspeed --num_gpus=4 a.py $C", ["bash", "-c", "exec python3 a.py --local_rank=$LOCAL_RANK $C"]),
        ('python -m torch.distributed.launch "$S" x', ["python3", "$S", "--local_rank=$LOCAL_RANK", "x"]),
    ],
)
def test_a_launcher_of_python_starts_it_for_every_program(line: str, command: list[str]) -> None:
    start = 'S=a; [ -e b ] && S=b\nC="t.py -n $(ls)"\n'
    assert values(job_file(SLURM.format("-N 1 --gres=gpu:4", start + line)).text)["command"] == command


@pytest.mark.parametrize(("option", "given"), [("", True), ("--no_local_rank ", False)])
def test_the_local_rank_of_deepspeed(option: str, given: bool) -> None:
    done = job_file(SLURM.format("-N 1 --gres=gpu:4", f"deepspeed {option}--num_gpus=4 a.py x"))
    assert ('a.py "--local_rank=$LOCAL_RANK" x' in rendered(done.text)) == given


@pytest.mark.parametrize("line", ["cd $SLURM_SUBMIT_DIR", "cd ${SLURM_SUBMIT_DIR}/b"])
def test_a_directory_in_which_something_runs_before_the_next_one(line: str) -> None:
    found = values(job_file(SLURM.format("-N 1", f"cd /a\nRscript /b.R\n{line}\nsrun ./a")).text)
    assert (found["workdir"], found["setup"]) == ("/a", f"set +e\nRscript /b.R\n{line}\n")
    found = values(job_file(SLURM.format("-N 1", "cd /a\ncd $SLURM_SUBMIT_DIR\nsrun ./a")).text)
    assert not {"workdir", "setup"} & set(found)


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("srun ./a \\\n  \u00a0--x", False),
        ("srun ./a\v--x", True),
        ("srun ./a\f--x", True),
        ('srun ./a "b\u00a0c" # \u00a0d', False),
        ("srun ./a b\u00a0c", False),
    ],
)
def test_blanks_that_are_letters_for_bash(line: str, lost: bool) -> None:
    done = job_file(SLURM.format("-N 1", line))
    assert any(one.lost and "is no blank for bash" in one.why for one in done.remarks) == lost


def test_a_blank_of_unicode_is_a_letter_for_bash() -> None:
    code = 'A="-x $(ls)"\nsrun ./a $A \u00a0 \u00a0-b'
    command = values(job_file(SLURM.format("-N 1", code)).text)["command"]
    assert command == ["bash", "-c", "exec ./a $A \u00a0 \u00a0-b"]


@pytest.mark.parametrize(("events", "named"), [("ALL", True), ("END,ALL", True), ("REQUEUE,ALL", False)])
def test_all_mail_is_named_unless_the_directive_stays(events: str, named: bool) -> None:
    done = job_file(SLURM.format(f"-N 1 --mail-type={events}", "./a"))
    assert ("none of a requeue" in str(done.remarks)) == named
    assert values(done.text).get("directive") == (None if named else [f"--mail-type={events}"])


@pytest.mark.parametrize(
    "line", ["spack env activate ../env", "module use ./modules", "conda activate ./env"]
)
def test_an_environment_below_a_directory_that_the_script_leaves(line: str) -> None:
    found = values(job_file(SLURM.format("-N 1", f"cd /a\n{line}\ncd /b\nsrun ./a")).text)
    assert found["workdir"] == "/a"
    assert found["setup"].endswith("\ncd /b\n")


@pytest.mark.parametrize(
    ("module", "plugin", "mpi", "named"),
    [
        ("openmpi", "pmi2", "mpich", True),
        ("openmpi", "pmix", "openmpi", False),
        ("impi", "pmi2", "intel", False),
        ("mpich", "pmi2", "mpich", False),
        ("gcc", "pmi2", "mpich", False),
    ],
)
def test_a_plugin_of_another_mpi_than_that_of_the_modules(
    module: str, plugin: str, mpi: str, named: bool
) -> None:
    done = job_file(
        SLURM.format("-N 2 -n 2", f"module load {module}\nsrun --cpu-bind=cores --mpi={plugin} ./a")
    )
    assert values(done.text)["mpi"] == mpi
    assert ("and the script names" in str(done.remarks)) == named


@pytest.mark.parametrize("option", ["cd /data", "module load gcc"])
def test_the_element_of_an_array_prints_nothing(option: str) -> None:
    done = job_file(
        f"#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10\nD[0]=$BASE/x\nD[1]=$(date)\nD[2]=$PWD\n{option}\nsrun ./a ${{D[0]}}\n"
    )
    assert not any("prints its text later" in one.why for one in done.remarks), remarks(done)
    found = values(done.text)
    assert "D[0]=$BASE/x" in found.get("early_setup", "") + found.get("setup", "")


@pytest.mark.parametrize(
    ("first", "lines", "strict"),
    [
        ("#!/bin/bash -e", "set -o pipefail", True),
        ("#!/bin/sh -xe", "set -x", True),
        ("#!/bin/bash", "set -e", True),
        ("#!/bin/bash -e", "set +e", False),
        ("#!/bin/bash", "set -x", False),
    ],
)
def test_the_first_line_and_set_enable_options_of_the_shell(first: str, lines: str, strict: bool) -> None:
    done = job_file(f"{first}\n#SBATCH -N 1\n{lines}\ncp a b\ncd $(hostname)\n./prepare\n./run | tee log\n")
    found = values(done.text)
    assert ("set +e" not in found["setup"]) == strict
    assert found["command"][2].startswith("set -e") == strict


def test_options_of_the_shell_hold_from_their_line_on() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -N 1\nset -eu\n./prepare $X\nset +eu\n./c | tee log\n")
    assert values(done.text)["command"] == ["bash", "-c", "./c | tee log"]


def test_an_array_that_a_loop_fills_comes_with_the_arrays_of_the_loop() -> None:
    text = "years=(1994 1995)\nym=()\nfor y in ${years[@]}; do ym+=($y-01); done\n./a ${ym[1]} > ${ym[0]}.txt"
    command = values(job_file(f"#!/bin/bash\n#SBATCH -N 1\n{text}\n").text)["command"]
    assert command[:2] == ["bash", "-c"]
    lines = command[2].split("\n")
    assert lines.index("years=(1994 1995)") < lines.index("for y in ${years[@]}; do ym+=($y-01); done")
