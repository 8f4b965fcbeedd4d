"""aprun of Cray's ALPS: its options become those of srun or of a job file, or are named with their line."""

from __future__ import annotations

import pytest
import test_job_files
from test_same_meaning import convert, said

HEAD = "#PBS -l nodes=2:ppn=16\n"
END = "--kill-on-bad-exit=1 --mpi=pmi2 ./a"


def line(text: str) -> str:
    """The last line of a script with this command, for Slurm."""
    return convert(f"{HEAD}module load cray-mpich\n{text}", "slurm").text.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "new"),
    [
        ("-n 24 -N 12", "--ntasks=24 --ntasks-per-node=12"),
        ("-n24 -N12 -d2", "--ntasks=24 --ntasks-per-node=12 --cpus-per-task=2"),
        ("--pes=24 --pes-per-node 12 --cpus-per-pe=2", "--ntasks=24 --ntasks-per-node=12 --cpus-per-task=2"),
        ("-n $N -cc cpu", '--ntasks="$N" --cpu-bind=cores'),
        ("-n 4 -cc numa_node", "--ntasks=4 --cpu-bind=ldoms"),
        ("-n 4 -cc none", "--ntasks=4 --cpu-bind=none"),
        ("-n 4 -cc 0,4,8-9", "--ntasks=4 --cpu-bind=map_cpu:0,4,8,9"),
        ("-n 2 -cc 0-3:4,5", "--ntasks=2 --cpu-bind=mask_cpu:0xf,0x30"),
        ("-n 2 -ss -q", "--ntasks=2 --mem-bind=local --quiet"),
        ("", "--ntasks=1"),
        ("-B", ""),
    ],
)
def test_options_with_a_counterpart(options: str, new: str) -> None:
    assert line(f"aprun {options} ./a") == " ".join(filter(None, ["srun", new, END]))


def test_a_variable_of_the_ranks() -> None:
    assert line("aprun -n 2 -e A=b ./a") == f"env A=b srun --ntasks=2 {END}"


@pytest.mark.parametrize(
    "option",
    ["-S 6", "-j 1", "-m 2g", "-L 3", "-F exclusive", "-r 1", "-sn 1", "-t 60", "-T", "-cc x,1", "-j1"],
)
def test_an_option_without_a_counterpart_is_named(option: str) -> None:
    text = f"{HEAD}module load cray-mpich\naprun -n 2 {option} ./a -j 3"
    done = convert(text, "slurm")
    assert done.text.endswith(f"srun --ntasks=2 {END} -j 3\n")
    named = [
        (one.lost, one.line, one.what.replace(" ", "")) for one in done.remarks if "counterpart" in one.why
    ]
    assert named == [(True, 4, option.replace(" ", ""))]


@pytest.mark.parametrize("option", ["-b", "-B", "--bypass-app-transfer"])
def test_an_option_that_changes_nothing_is_named(option: str) -> None:
    found = said(convert(f"{HEAD}aprun {option} ./a", "slurm"))
    assert (False, 3, "-B" if option == "-B" else "-b") in found


@pytest.mark.parametrize("text", ["aprun -n 1 ./a : -n 2 ./b", "aprun -n 1 --unknown ./a", "aprun -n 1"])
def test_a_line_that_stays(text: str) -> None:
    done = convert(HEAD + text, "slurm")
    assert done.text.endswith(f"{text}\n")
    assert any(one.lost and one.line == 3 and "the line is unchanged" in one.why for one in done.remarks)


TORQUE = "#!/bin/bash\n#PBS -l nodes=2:ppn=4\n{}\n"


@pytest.mark.parametrize(
    ("options", "ranks", "named"),
    [
        ("-n 8 -N 4", 4, {}),
        ("-n 8 -N 8", 4, {"-N 8": False}),
        ("-n 4 -d 2 -S 1 -j 1", 2, {"-S 1": False, "-j 1": True}),
        ("-n 8 -b -ss -cc depth", 4, {"-b": False, "-ss": False, "-cc depth": False}),
        ("-n 8 -cc none", 4, {}),
        ("-B", 4, {"-B": False}),
        ("-n 8 -m 1g -q", 4, {"-m 1g": True, "-q": True}),
    ],
)
def test_a_job_file(options: str, ranks: int, named: dict[str, bool]) -> None:
    done = test_job_files.convert(TORQUE.format(f"aprun {options} ./a -x"))
    found = test_job_files.values(done.text)
    assert (found["ranks_per_node"], found["command"]) == (ranks, ["./a", "-x"])
    assert {one.what: one.lost for one in done.remarks if one.what.startswith("-")} == named


def test_one_rank_is_the_default() -> None:
    done = test_job_files.convert(TORQUE.replace("nodes=2", "nodes=1").format("time aprun ./a"))
    assert test_job_files.values(done.text)["ranks_per_node"] == 1
    assert (False, "aprun") in [(one.lost, one.what) for one in done.remarks]


@pytest.mark.parametrize("launcher", ["aprun", "mpirun"])
def test_several_programs_of_a_job_file(launcher: str) -> None:
    done = test_job_files.convert(TORQUE.format(f"{launcher} -n 2 ./a x : -n 6 ./b"))
    assert test_job_files.values(done.text)["command"] == ["./a", "x"]
    assert [(one.line, one.what) for one in done.remarks if "are missing" in one.why] == [(3, ": -n 6 ./b")]
