"""Job files: what the shell of the script alone has: its values, its arguments and its traps."""

from __future__ import annotations

import subprocess

import pytest
from convert.conversions import job_file, remarks, values

SLURM = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 -t 10\n{}\n"


@pytest.mark.parametrize(
    ("words", "setup"),
    [
        ("--seed $RANDOM *.txt", ["$RANDOM"]),
        ("--port $((10000 + RANDOM % 1000)) *.txt", ["$((10000 + RANDOM % 1000))"]),
        ('"host: $HOSTNAME" ${HOSTNAME%%.*} *.txt', ["$HOSTNAME", "${HOSTNAME%%.*}"]),
        ("--run $$ $PPID *.txt", ["$$", "$PPID"]),
        ("--on $SLURMD_NODENAME", ["$SLURMD_NODENAME"]),
        ("$OPTIONS *.txt", ["$SECONDS"]),
    ],
)
def test_a_value_of_the_shell_of_the_script_is_that_of_all_ranks(words: str, setup: list[str]) -> None:
    done = values(job_file(SLURM.format(f'OPTIONS="--at $SECONDS"\nsrun ./a {words}')).text)
    lines = str(done["setup"]).split("\n")
    assert [one.partition("=")[2] for one in lines if one.startswith("export argument_")] == setup
    assert not any(one in str(done["command"]) for one in setup)


@pytest.mark.parametrize(
    ("program", "kept"),
    [
        ("bash -c './a $HOSTNAME $RANDOM'", "./a $HOSTNAME $RANDOM"),
        (r'bash -c "./a \$HOSTNAME"', "./a $HOSTNAME"),
        (r'bash -c "./a $HOSTNAME \$RANDOM"', r"./a ${argument_1} \$RANDOM"),
        ("singularity exec -B /d/$HOSTNAME:/d $FLAGS i.sif ./a", "-B /d/${argument_1}:/d"),
    ],
)
def test_a_shell_of_a_rank_has_values_of_its_own(program: str, kept: str) -> None:
    assert kept in " ".join(map(str, values(job_file(SLURM.format(f"srun {program}")).text)["command"]))


@pytest.mark.parametrize(
    ("program", "kept"),
    [
        ('bash -c "./a $WORLD_SIZE $(date)"', "./a ${argument_1} ${argument_2}"),
        ("./a $WORLD_SIZE *.txt", "./a ${argument_1} *.txt"),
        (r'bash -c "./a \$WORLD_SIZE $RANK"', r"./a \$WORLD_SIZE $RANK"),
        ("bash -c './a $WORLD_SIZE *.txt'", "./a $WORLD_SIZE *.txt"),
    ],
)
def test_a_value_of_the_script_that_each_rank_has_otherwise(program: str, kept: str) -> None:
    done = values(job_file(SLURM.format(f"export WORLD_SIZE=$(cat f)\nsrun {program}")).text)
    assert kept in " ".join(map(str, done["command"]))
    assert ("export argument_1=$WORLD_SIZE" in str(done["setup"])) == ("argument_1" in kept)


def test_a_value_that_the_script_sets_is_that_of_the_script() -> None:
    done = values(job_file(SLURM.format("HOSTNAME=x$(cat f)\nsrun ./a $HOSTNAME *.txt")).text)
    assert "argument_" not in str(done["setup"])
    assert "export HOSTNAME" in str(done["setup"])


TRAPS = {
    "a text": ('D=/s/$USER\ntrap "rm -rf $D" EXIT\nsrun ./a', 'trap "rm -rf $D" EXIT'),
    "a text in single quotes": ("trap 'rm -rf $D' 0\nD=/s/$USER\nsrun ./a", "trap 'rm -rf $D' 0"),
    "a function": ("end() { rm x; }\ntrap end EXIT INT TERM\nsrun ./a", "end() { rm x; }\ntrap end EXIT"),
    "an end before": ("set -e\ntrap 'rm x' EXIT\nsrun ./a\n./b", "trap 'rm x' EXIT\n[ \"$JOBGEN_STATUS\""),
    "the status": ("trap 'echo $?' EXIT\nsrun ./a", "trap 'echo $?' EXIT\n(exit \"$JOBGEN_STATUS\")"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_of_the_end_is_in_the_block_after(name: str) -> None:
    body, text = TRAPS[name]
    done = job_file(SLURM.format(body))
    found = values(done.text)
    assert text in str(found["after"])
    assert "trap" not in str(found.get("setup", ""))
    assert [one.lost for one in done.remarks if "trap" in one.what] == [False], remarks(done)


@pytest.mark.parametrize(
    "body",
    [
        "trap 'rm x' ERR EXIT\nsrun ./a",
        "trap 'rm x' USR1\nsrun ./a",
        "trap 'kill $(jobs -p)' EXIT\n./b &\nsrun ./a",
        'trap "kill $!" EXIT\nsrun ./a',
        "end() { kill 0; }\ntrap end EXIT\nsrun ./a",
        "trap 'rm -rf /s/$$' EXIT\nsrun ./a",
        'trap "rm -rf $D" EXIT\nD=/s\nsrun ./a',
        "if [ -d x ]; then trap 'rm x' EXIT; fi\nsrun ./a",
        "begin() { trap 'rm x' EXIT; }\nbegin\nsrun ./a",
    ],
)
def test_another_trap_has_no_counterpart(body: str) -> None:
    done = job_file(SLURM.format(body))
    assert [one.lost for one in done.remarks if "traps of its own" in one.why] == [True], remarks(done)


@pytest.mark.parametrize(
    "body", ["srun ./a\ntrap 'rm x' EXIT\n./b", "(trap 'rm x' EXIT; ./b)\nsrun ./a", "trap - EXIT\nsrun ./a"]
)
def test_a_trap_that_works_in_its_block_has_no_remark(body: str) -> None:
    assert not any("trap" in one.what for one in job_file(SLURM.format(body)).remarks)


@pytest.mark.parametrize(
    ("start", "status", "output"),
    [
        ("trap 'echo end' EXIT", 0, "b\nend\n"),
        ("set -e\ntrap 'echo end' EXIT", 1, "end\n"),
        ("set -e\ntrap 'echo end $?' EXIT", 3, "end 3\n"),
        ("end() { echo end $D; }\nD=x\ntrap end EXIT", 1, "b\nend x\n"),
    ],
)
def test_the_block_after_with_a_trap(start: str, status: int, output: str) -> None:
    done = values(job_file(SLURM.format(f"{start}\nsrun ./a\necho b")).text)
    code = f"after() {{\n{done['after']}\n}}\nafter"
    found = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        env={"JOBGEN_STATUS": str(status), "D": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == output


@pytest.mark.parametrize("words", ['"$@"', '"$2" $*', '$1 $2 "${@:3}"', "-n $# $1 *.txt"])
def test_a_program_gets_all_arguments_of_the_script(words: str) -> None:
    done = job_file(SLURM.format(f"srun ./a {words}"))
    found = values(done.text)
    setup, command = str(found["setup"]), [str(one) for one in found["command"]]
    code = f"cd /nowhere 2> /dev/null\n{setup}\n" + 'exec "${command[@]}"'
    shown = [*command[:2], command[2].replace("exec ./a", "printf '<%s>'"), *command[3:]]
    script = f"command=({' '.join(map(_quoted, shown))})\n{code}"
    given = subprocess.run(
        ["bash", "-c", script, "x", "1", "b c", "3 4"], capture_output=True, text=True, check=True
    )
    own = f"printf '<%s>' {words}"
    assert given.stdout == subprocess.check_output(["bash", "-c", own, "x", "1", "b c", "3 4"], text=True)
    assert not any(one.lost for one in done.remarks), remarks(done)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.parametrize("line", ["cat $0", 'cp "$0" results', "md5sum ${0}"])
def test_a_command_that_reads_the_text_of_the_script(line: str) -> None:
    """The block before runs in a shell of its own, where $0 is no path; setup does not."""
    done = job_file(SLURM.format(f"{line}\nsrun ./a"))
    assert [
        (one.what, one.lost)
        for one in done.remarks
        if "this script" in one.why or "script of jobgen" in one.why
    ] == [("$0", True)]
    done = job_file(SLURM.format(f"A=$({line})\nsrun ./a $A"))
    assert [(one.what, one.lost) for one in done.remarks if "script of jobgen" in one.why] == [(line, False)]
