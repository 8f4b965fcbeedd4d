"""The commands of a script run as often in its conversion, in the same directory, with the same words."""

from __future__ import annotations

import re

import pytest
from convert.conversions import convert, job_file, values

TORQUE = "#!/bin/bash\n#PBS -l nodes=1:ppn=8\n"
SLURM = "#!/bin/bash\n#SBATCH -N 1\n"


@pytest.mark.parametrize(
    ("before", "home"),
    [
        ("export START=$PWD\ncd $PBS_O_WORKDIR", True),
        ("hostname > hosts\ncd $PBS_O_WORKDIR", True),
        ("./prepare\ncd $PBS_O_WORKDIR", True),
        ("if [ -d $SCRATCH ]; then cd $SCRATCH; fi", True),
        ("cd $PBS_O_WORKDIR\nexport START=$PWD", False),
        ("source ~/.bashrc\necho $PWD\ncd $PBS_O_WORKDIR", False),
        (
            ". $MODULESHOME/init/bash\nN=$(wc -l < $PBS_NODEFILE)\nexport M=$((N / 2))\ncd $PBS_O_WORKDIR\necho $M",
            False,
        ),
    ],
)
def test_what_a_script_does_before_it_changes_the_directory(before: str, home: bool) -> None:
    found = values(job_file(f"{TORQUE}{before}\nmpirun ./a $START\n").text)
    assert (found.get("workdir") == "~/.") == home


LOOP = "for one in {}; do\n  cd /work/$one\n  files=(*.in)\n  ./tool {}\ndone\n"


def test_a_loop_with_an_array_runs_once() -> None:
    script = SLURM + LOOP.format("a b", "${files[0]}") + LOOP.format("c d", "${files[0]}")
    found = values(job_file(script).text)
    code = str(found["command"])
    assert code.count("./tool") == str(found["setup"]).count("./tool") == 1
    assert code.count("files=(*.in)") == 1


ELEMENTS = """for one in a b; do
  tools[$i]="./tool --name $one"
  i=$((i + 1))
done
"""


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (LOOP.format("a b", "-v"), "files"),
        (ELEMENTS, "tools"),
        ('if [ "$A" = x ]; then\n  dirs+=(x)\n  ((size += 2))\nfi\n', "dirs"),
        ("words=(a b)\nwords[${#words[@]}]=c\n", "words"),
        ('words=(a b)\nunset "words[1]"\n', "words"),
        ("words=(a)\nmapfile -t -O 1 words < list\n", "words"),
        ("./prepare && words+=(-v)\n", "words"),
        ("cd run && words=(-v)\n", "words"),
        ("if [ -d run ]; then cd run; words+=(-v); fi\n", "words"),
        ('add() {\n  words+=("$@")\n}\nadd -v\nadd -w\n', "words"),
        ("mapfile -t names < list\n", "names"),
        ("read -ra words < list\n", "words"),
        ("declare -A rates=([a]=1 [b]=2)\n", "rates"),
    ],
)
def test_an_array_reaches_the_program_by_its_value(start: str, name: str) -> None:
    found = values(job_file(f"{SLURM}{start}for one in ${{{name}[@]}}; do ./other $one; done\n").text)
    assert f'export array_{name}="$(declare -p {name})"' in str(found["setup"])
    assert found["command"][2].startswith(f'eval "$array_{name}"\nfor one in')


@pytest.mark.parametrize("condition", ['[ -n "$X" ] && ', "[[ $X ]] || ", "test -f x && A=1 && "])
def test_an_array_is_set_under_its_condition(condition: str) -> None:
    line = f'{condition}words+=(--resume "$X")'
    found = values(job_file(f'{SLURM}words=(-v)\n{line}\nsrun ./a "${{words[@]}}"\n').text)
    assert found["command"][2] == f'words=(-v)\n{line}\nexec ./a "${{words[@]}}"'


def test_an_array_in_the_text_of_another_shell_has_its_value() -> None:
    script = (
        SLURM
        + 'models=(a b c)\nsingularity exec x.sif bash -c "python t.py ${models[$SLURM_ARRAY_TASK_ID]}"\n'
    )
    found = values(job_file(script).text)
    line = 'exec singularity exec x.sif bash -c "python t.py ${models[$SLURM_ARRAY_TASK_ID]}"'
    assert found["command"] == ["bash", "-c", f"models=(a b c)\n{line}"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("", "set +e +o pipefail"),
        ("set -e\n", "set +o pipefail"),
        ("set -o pipefail\n", "set +e"),
        ("set -oe pipefail\n", "set -oe pipefail"),
    ],
)
def test_a_pipeline_has_the_status_of_its_last_command(options: str, line: str) -> None:
    pipeline = "if nvidia-smi -L | grep -q A100; then export BIG=1; fi\n"
    found = values(job_file(f"{SLURM}{options}{pipeline}srun ./a\n").text)
    assert str(found["setup"]).startswith(f"{line}\n")


def test_the_rank_in_a_script_that_a_task_of_an_array_writes() -> None:
    script = '#SBATCH -a 0-1\n#SBATCH -n 2\necho "./a --rank \\${SLURM_PROCID}" > w.sh\nsrun bash w.sh'
    assert "--rank \\${OMPI_COMM_WORLD_RANK}" in convert(script, "pbspro").text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("~me/bin/tool -v", "exec ~me/bin/tool -v"),
        ("./tool $TOOL_FLAGS", "exec ./tool $TOOL_FLAGS"),
        ('all=("-a 1" -b)\none=${all[$SLURM_ARRAY_TASK_ID]}\n./tool $one', "exec ./tool $one"),
        ('N="a b"\n./tool $N x${N}_b$SLURM_JOB_ID.h5', "exec ./tool a b x${N}_b$SLURM_JOB_ID.h5"),
        (
            "b=(1 2)\nb=${b[$SLURM_NODEID]}\n./tool *.in $b",
            "b=(1 2)\nb=${b[$SLURM_NODEID]}\nexec ./tool *.in $b",
        ),
    ],
)
def test_the_words_that_a_shell_makes(body: str, code: str) -> None:
    assert values(job_file(f"{SLURM}{body}\n").text)["command"] == ["bash", "-c", code]


def test_an_element_without_blanks_is_one_word() -> None:
    body = "all=(a b)\none=${all[$SLURM_ARRAY_TASK_ID]}\n./tool $one\n"
    assert values(job_file(SLURM + body).text)["command"] == ["./tool", "$one"]


@pytest.mark.parametrize(
    ("line", "exported"),
    [
        ("C=$(sed -n 1p list)", True),
        ("C=`head -n 1 list`", True),
        ('C="\\$tool x"', True),
        ("C='$tool x'", True),
        ('C="./a $tool"', False),
    ],
)
def test_a_line_that_is_evaluated_reads_the_variables_of_the_script(line: str, exported: bool) -> None:
    found = values(job_file(f"{SLURM}tool=/x/tool\n{line}\neval $C\nlater=1\necho $later\n").text)
    assert found["command"] == ["bash", "-c", "eval $C"]
    assert ("export tool\n" in found["setup"]) is exported
    assert "later" not in found["setup"]


def test_a_shell_that_evaluates_a_line_removes_its_quotes() -> None:
    body = 'cfg="a b.json"\nline="srun ./tool"\nline+=" --cfg \\"$cfg\\""\neval $line\n'
    done = job_file(SLURM + body)
    assert values(done.text)["command"] == ["./tool", "--cfg", "a b.json"]
    assert not any("quotes" in one.why for one in done.remarks)


@pytest.mark.parametrize("line", ['printf -v N "%02d" 3', "((N = 3))", ": ${N:=3}"])
def test_a_variable_of_a_command_reaches_the_program(line: str) -> None:
    found = values(job_file(f"{SLURM}mkdir -p out\n{line}\n./tool *.in $N\n").text)
    assert "before" not in found
    assert line in str(found["setup"])


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("job_dir=/x/$USER\n./tool $job_dir", ["job_dir"]),
        ("./tool --name $job_name", ["job_name"]),
        ("job_path=$(pwd)/a\n./tool $job_path", []),
        ('echo "usage: model_dir job_dir"\ncp job_dir x\n./tool', []),
        ("read -r job_dir < f\n./tool", ["job_dir"]),
        ("((job_nodes = 2))\n./tool", ["job_nodes"]),
        ("job_say() { echo; }\njob_say\n./tool", ["job_say"]),
    ],
)
def test_a_name_of_the_script_of_jobgen_has_a_remark(body: str, names: list[str]) -> None:
    done = job_file(f"{SLURM}{body}\n")
    assert [one.what for one in done.remarks if "of this name" in one.why] == names


@pytest.mark.parametrize(("line", "named"), [("valgrind mpirun ./a", True), ("mpirun valgrind ./a", False)])
def test_a_tool_that_watches_the_launcher_has_a_remark(line: str, named: bool) -> None:
    done = job_file(f"{SLURM}{line}\n")
    assert values(done.text)["command"] == ["valgrind", "./a"]
    assert any(one.what == "valgrind" for one in done.remarks) == named


def test_a_tool_in_a_variable_that_watches_the_launcher_has_a_remark() -> None:
    done = job_file(f'{SLURM}P=${{P:-"nsys profile -o out"}}\n$P mpirun -np 2 ./a\n')
    assert [one.what for one in done.remarks if "watches the launcher" in one.why] == ["$P"]


@pytest.mark.parametrize("line", ["let N=3", "((N = 3))", ": ${N:=3}", "read N < size"])
def test_the_commands_around_the_program_have_the_variables_of_commands(line: str) -> None:
    found = values(job_file(f"{SLURM}{line}\n./prepare $N\nsrun ./tool\n").text)
    assert "export N" in str(found["setup"])
    assert (
        found["before"]
        == "set +eu +o pipefail\n./prepare $N\ntrue  # whatever the status of the last command\n"
    )


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("mkdir -p /tmp/$$\nexport T=/tmp/$$\nsrun ./tool\nrm -r /tmp/$$", True),
        ("export T=/tmp/$$\nmkdir -p $T\nsrun ./tool\nrm -r $T", False),
    ],
)
def test_the_number_of_the_process_in_several_blocks_has_a_remark(body: str, named: bool) -> None:
    assert any(one.what == "$$" for one in job_file(f"{SLURM}{body}\n").remarks) == named


def test_quotes_in_the_text_of_a_shell_have_no_remark() -> None:
    done = job_file(SLURM + 'N=3\nbash -c "source /e.sh; torchrun --nproc-per-node 2 t.py --n=\\"$N\\""\n')
    assert values(done.text)["command"][-1] == "--n=3"
    assert not any("quotes" in one.why for one in done.remarks)


NESTED = """export RUN="torchrun --nproc-per-node 2"
MORE="--method 'a|b' --name \\"c d\\""
export CMD="t.py -v $MORE --host \\$HOSTNAME"
srun bash -c "$RUN --node-rank \\$SLURM_PROCID $CMD"
"""


def test_a_second_shell_removes_the_quotes_in_values() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -N 2\n" + NESTED)
    code = 'eval "exec python3 t.py -v $MORE --host $HOSTNAME"'
    assert values(done.text)["command"] == ["bash", "-c", code]
    assert "export MORE" in str(values(done.text)["setup"])


def test_a_variable_that_only_the_new_scheduler_sets_has_a_remark() -> None:
    done = convert("#SBATCH -N 1\ncd $PBS_O_WORKDIR\nPBS_JOBID=3\n./a $PBS_JOBID\n", "pbspro")
    assert [one.what for one in done.remarks if "was not set" in one.why] == ["$PBS_O_WORKDIR"]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("srun ./a\nsbatch $0", ["$0"]),
        ('./a *.in "${0%/*}"', ["$0"]),
        ('source "$(dirname "${BASH_SOURCE[0]}")/x.sh"\nsrun ./a', ["$BASH_SOURCE"]),
        ("cp $0 /work\ncd /work\nsrun ./a", []),
        ("srun ./a\nawk '{ print $0 }' x", []),
    ],
)
def test_the_path_of_the_script_in_other_shells_has_a_remark(body: str, names: list[str]) -> None:
    done = job_file(f"{SLURM}{body}\n")
    assert [one.what for one in done.remarks if "path of this script" in one.why] == names


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("cd /x\nexe=flex_omp\nsrun $exe a", True),
        ("module load flex/3\ncd /x\nsrun flex_omp", False),
        ("export PATH=/o/flex/bin:$PATH\ncd /x\nsrun flex_omp", False),
        ("source env.sh\ncd /x\nsrun flex_omp", False),
        ("source /opt/intel/oneapi/setvars.sh\ncd /x\nsrun flex_omp", True),
        ("cd /x\nsrun xhpl", True),
        ("cd /x\nsrun gmx_mpi", False),
        ("srun flex_omp", True),
    ],
)
def test_a_program_in_the_directory_of_the_script_has_a_remark(body: str, named: bool) -> None:
    done = job_file(f"{SLURM}{body}\n")
    assert any("working directory, too" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(
    ("body", "command", "lost"),
    [
        (
            'cmd="srun ./a"\ncmd+=" -v $V"\nif [ $F ]; then\n  cmd+=" -f $F"\nfi\n$cmd',
            ["./a", "-v", "$V"],
            [6],
        ),
        ('cmd="srun ./a"\n[ $F ] && cmd+=" -f"\n[ $G ] && cmd+=" -g"\neval $cmd', ["./a"], [4, 5]),
        ('arg="-v"\n[ $F ] && arg+=" -f"\nsrun ./a $arg', ["bash", "-c", "exec ./a $arg"], []),
    ],
)
def test_words_that_a_condition_adds_to_the_variable_of_a_launch(
    body: str, command: list[str], lost: list[int]
) -> None:
    done = job_file(f"{SLURM}{body}\n")
    assert values(done.text)["command"] == command
    assert [one.line for one in done.remarks if one.of_program] == lost


def test_return_outside_of_a_function_fails_in_a_block_too() -> None:
    body = "[ -f x ] || return 1\nf() {\n  return 2\n}\n./prepare\nsrun ./a\nif ! f; then return; fi\nrm x\n"
    found = values(job_file(SLURM + body).text)
    assert "[ -f x ] || false\nf() {\n  return 2\n}" in str(found["setup"])
    assert "if ! f; then false; fi\nrm x" in str(found["after"])


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("set -f", "set -f"),
        ("set -efx", "set -f"),
        ("set -o noclobber", "set -o noclobber"),
        ("set +B", "set +B"),
        ("set -x", ""),
        ("set -- -f", ""),
    ],
)
def test_options_of_bash_for_words_and_files(line: str, option: str) -> None:
    found = values(job_file(f"{SLURM}{line}\nX=1\n./prepare *.in\nsrun ./a *.txt\nrm *.c\n").text)
    codes = [found["command"][2], found["before"], found["after"]]
    lines = [[one for one in str(code).split("\n") if re.match("set [-+][^e]", one)] for code in codes]
    assert [[one for one in words if "pipefail" not in one] for words in lines] == [
        [option] * bool(option)
    ] * 3


@pytest.mark.parametrize(
    ("shell", "option"),
    [
        ("sh -f", "set -f"),
        ("bash -eBf", "set -Bf"),
        ("bash -a", ""),
        ("bash -login", ""),
        ("zsh -f", ""),
        ("bash --norc", ""),
    ],
)
def test_options_behind_the_shell_for_words_and_files(shell: str, option: str) -> None:
    text = SLURM.replace("#!/bin/bash", f"#!/bin/{shell}") + "X=1\n./prepare *.in\nsrun ./a *.txt\nrm *.c\n"
    found = values(job_file(text).text)
    codes = [found["command"][2], found["before"], found["after"]]
    lines = [re.findall(r"(?m)^set -(?!\w*e)(?!o).*", str(code)) for code in codes]
    assert lines == [[option] * bool(option)] * 3
    assert ("set -a\nX=1" in str(found.get("setup"))) is (shell == "bash -a")


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("--out=$D", "--out=$D"),
        ('--out="$IN/f"', "--out=$IN/f"),
        ("-x:$D:$IN", "-x:$D:$IN"),
        ("$D:$IN", "$D:$IN"),
        ("--out $IN", "$HOME/data/in"),
        ("--out $Q --in=$Q", "--in=~/data"),
    ],
)
def test_a_home_directory_in_the_value_of_a_variable(word: str, text: str) -> None:
    body = f'D=~/data\nIN=$D/in\nQ="~/data"\nsrun ./a {word}\n'
    assert values(job_file(SLURM + body).text)["command"][-1] == text


def test_a_home_directory_in_an_option_of_the_launcher() -> None:
    done = job_file(f"{SLURM}D=~/data\nsrun --x11=$D/x ./a\n")
    assert "launcher_arg" not in values(done.text)
    assert ("--x11=$D/x", 4) in [(one.what, one.line) for one in done.remarks if one.lost]


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ('X="*.c"\nsrun ./a $X', ["bash", "-c", "exec ./a *.c"]),
        ('X="*.c"\nsrun ./a "$X"', ["./a", "*.c"]),
        ("srun ./a ${F:+-f $F} ${V+-v}", ["bash", "-c", "exec ./a ${F:+-f $F} ${V+-v}"]),
    ],
)
def test_values_that_become_files_or_no_word(body: str, command: list[str]) -> None:
    assert values(job_file(f"{SLURM}{body}\n").text)["command"] == command


@pytest.mark.parametrize("value", ['"pre:$D"', "--in=$D/x"])
def test_a_variable_of_every_rank_with_a_home_directory_in_its_value(value: str) -> None:
    found = values(job_file(f"{SLURM}D=~/data\nexport X={value}\nsrun ./a\n").text)
    assert f"export X={value}" in str(found["setup"])
    assert "env" not in found


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("[ -f x ] && srun ./a\n./b", ["[ -f x ]"]),
        ("[ -f x ] && srun ./a || ./c", ["[ -f x ]"]),
        ("[ -f x ] && srun ./a", []),
    ],
)
def test_a_condition_that_fails_before_other_commands_has_a_remark(line: str, named: list[str]) -> None:
    done = job_file(f"{SLURM}{line}\n")
    assert [one.what for one in done.remarks if one.why.startswith("if it fails, the job ends")] == named


def test_quotes_in_the_value_of_a_variable_without_a_launcher() -> None:
    done = job_file(f"{SLURM}A=\"-t 'a b'\"\n./a $A\n")
    assert ("'a b'", 4) in [(one.what, one.line) for one in done.remarks if "quotes are a part" in one.why]


@pytest.mark.parametrize("end", ["", " # two", "\n"])
@pytest.mark.parametrize("line", ['srun ./a $A "$B"', './a $A "$B" | sort', '[ -f x ] && ./a $A "$B"'])
def test_several_assignments_in_the_line_before_the_program(line: str, end: str) -> None:
    found = values(job_file(f"{SLURM}A=1 B='x y'{end}\n{line}\n").text)
    words = found["command"]
    assert words == ["./a", "1", "x y"] or "A=1 B='x y'" in f"{found.get('setup')}{words[-1]}"
    assert "env" not in words


def test_assignments_of_the_line_of_the_program() -> None:
    found = values(job_file(f"{SLURM}A=1 B=2 \\\nsrun ./a\n").text)
    assert found["command"] == ["env", "A=1", "B=2", "./a"]


@pytest.mark.parametrize(
    ("lines", "word", "left"),
    [
        ("B=/b\nO=$B/o/$SLURM_JOB_ID", "/b/o/$SLURM_JOB_ID", ""),
        ('F="in_${SLURM_JOB_ID}.txt"\nO=$SLURM_SUBMIT_DIR/$F', "$SLURM_SUBMIT_DIR/in_$SLURM_JOB_ID.txt", ""),
        ("O=o/$SLURM_JOB_ID\nif [ -e x ]; then O=y; fi", "$O", "O="),
        ("O=$X/$SLURM_JOB_ID", "$O", "O="),
        ("O=o/$SLURM_PROCID", "$O", "O="),
        ("O=o/$SLURM_JOB_ID/*", "$O", "O="),
        ("O=o/$SLURM_JOB_ID\n. ./env.sh", "$O", "O="),
        ("export O=o/$SLURM_JOB_ID", "$O", "O="),
    ],
)
def test_a_value_that_is_the_same_in_the_whole_job(lines: str, word: str, left: str) -> None:
    found = values(job_file(f"{SLURM}{lines}\nsrun ./a --out $O\n").text)
    assert found["command"][-1] == word or (found["command"][0] == "bash" and word == "$O")
    blocks = [found[key] for key in ("early_setup", "setup") if key in found]
    assert left in "".join(blocks)
    assert bool(blocks) == bool(left)
