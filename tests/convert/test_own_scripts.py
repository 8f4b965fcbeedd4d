"""Scripts of the user that a converted script sources or starts, and what they read of the old scheduler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from convert.conversions import convert

from jobgen.convert.result import Remark
from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.script.script import Script

_PBS = "#!/bin/bash\n#PBS -N job\n#PBS -l select=1:ncpus=1\ncd $PBS_O_WORKDIR\n"
_SLURM = "#!/bin/bash\n#SBATCH -N 1\n"


def _remarks(folder: Path, command: str, head: str = _PBS, target: str = "slurm") -> list[Remark]:
    source = "pbspro" if head == _PBS else "slurm"
    script = Script(f"{head}{command}\n".encode(), source, str(folder), name="job.sh")
    done = translation.convert(script) if target == "toml" else conversion.convert(script, target)
    line = head.count("\n") + 1
    return [one for one in done.remarks if one.line == line and ":" in one.what]


@pytest.mark.parametrize(
    "command",
    [
        "source ${DIR}/run.sh",
        "./run.sh",
        "bash -x run.sh 3",
        "sh ./run.sh",
        "time bash run.sh",
        "singularity shell a.sif run.sh",
        '. "$PWD/run.sh"',
    ],
)
def test_a_script_beside_it_is_read(command: str, tmp_path: Path) -> None:
    code = "#!/bin/bash\n# PBS_JOBID\nsort $PBS_NODEFILE > h.$PBS_JOBID\nqstat -f\nA=$PBS_O_LANG\nPBS_NP=2\nB=$PBS_NP\n"
    (tmp_path / "run.sh").write_text(code)
    found = [(one.lost, one.what, one.why) for one in _remarks(tmp_path, command)]
    assert found == [
        (True, "run.sh:3", "reads PBS_JOBID, which is not set by Slurm: use SLURM_JOB_ID there"),
        (
            True,
            "run.sh:3",
            "reads PBS_NODEFILE, which is not set by Slurm: use scontrol show hostnames there",
        ),
        (True, "run.sh:4", "qstat is a command of PBS Pro"),
        (True, "run.sh:5", "reads PBS_O_LANG, which is not set by Slurm"),
    ]
    assert _remarks(tmp_path, command, target="torque") == _remarks(tmp_path, command, target="toml") == []


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("torque", "pbspro", ["a.sh:2 PBS_ARRAYID", "a.sh:2 PBS_NUM_PPN", "b.py:2 PBS_NP", "PBS_GPUFILE"]),
        ("pbspro", "torque", ["b.py:3 PBS_ARRAY_INDEX"]),
    ],
)
def test_what_only_one_of_two_kinds_of_pbs_sets(
    source: str, target: str, found: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.sh").write_text("#!/bin/bash\necho $PBS_NUM_PPN $PBS_ARRAYID $PBS_JOBID\npbsdsh ./b\n")
    (tmp_path / "b.py").write_text("import os\na=os.environ['PBS_NP']\nb=os.environ['PBS_ARRAY_INDEX']\n")
    code = "./a.sh\npython b.py\nperl -e 'open(F, $ENV{PBS_GPUFILE})'\necho 'PBS_NP: none'\n"
    script = Script(f"#!/bin/bash\n#PBS -l nodes=1\n{code}".encode(), source, str(tmp_path))
    done = [one for one in conversion.convert(script, target).remarks if one.line > 2]
    names = [re.findall(r"PBS_\w+", f"{one.what} {one.why}")[0] for one in done]
    assert [
        f"{one.what} {name}".replace(f"{name} ", "") for one, name in zip(done, names, strict=True)
    ] == found


def test_what_a_script_beside_it_starts_is_read(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("source lib/more.sh\necho $SLURM_JOB_ID\nsrun ./a\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "more.sh").write_text("cd $SLURM_SUBMIT_DIR\n")
    found = _remarks(tmp_path, "srun ./run.sh", _SLURM, "pbspro")
    assert [(one.lost, one.what, one.why) for one in found] == [
        (
            True,
            "lib/more.sh:1",
            "reads SLURM_SUBMIT_DIR, which is not set by PBS Pro: use PBS_O_WORKDIR there",
        ),
        (
            False,
            "run.sh:2",
            "reads SLURM_JOB_ID, which is not set by PBS Pro: use PBS_JOBID there",
        ),  # printed
        (True, "run.sh:3", "srun is a command of Slurm"),
    ]


def test_a_variable_that_the_new_script_sets_is_no_remark(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("cat $PBS_NODEFILE\n")
    done = _remarks(tmp_path, "source run.sh; ./a $PBS_NODEFILE")
    assert done == []


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("source ${DIR}/run.sh", "run.sh"),
        ("./run.sh", "run.sh"),
        ("sh helper.sh 3\nsource ../env.sh", "helper.sh, env.sh"),
        ("mpirun -np 1 ./run.sh", "run.sh"),
        ("$HOME/ocean/jobs/JOCEAN_PREP", "JOCEAN_PREP"),
        ("./a.sh\n./b.sh\n./c.sh\n./d.sh\n./e.sh", "a.sh, b.sh, c.sh, d.sh and 1 more"),
        ("source /etc/profile", ""),
        ("source ~/miniconda3/etc/profile.d/conda.sh", ""),
        ("A=\nsource ./x-$A-y.sh", "x--y.sh"),
        ("source venv/bin/activate", ""),
        (". $MODULESHOME/init/bash", ""),
        ("source /opt/intel/setvars.sh", ""),
        ("source ~/tools/mkl/env/vars.sh intel64\n. ~/impi/mpivars.sh\n. $X/itac_vars.sh", "itac_vars.sh"),
        ("source ./ddp_vars.sh\nsource activate_ranks.sh", "ddp_vars.sh, activate_ranks.sh"),
        ("source foam_x/go.sh\nsource fullmodel.sh\nsource ~/submodules/b.sh", "go.sh, fullmodel.sh, b.sh"),
        ("source my_venvs_a/go.sh\nsource load_modules.sh\nsource $HOME/x/OpenFOAM-9/etc/bashrc", "go.sh"),
        ("source $(conda info --base)/x.sh", ""),
        ("bash -c 'echo'", ""),
        ("bash -s < x.sh", ""),
        ("echo 'echo' > run.sh\nbash run.sh", ""),
        ("python run.py", ""),
        ("./a.out", ""),
    ],
)
def test_scripts_that_are_not_there_have_one_remark(command: str, names: str) -> None:
    found = [one for one in convert(f"{_PBS}{command}", "slurm", "pbspro").remarks if "not read" in one.why]
    verb = "are not read: they" if "," in names else "is not read: it"
    read = "PBS_JOBID, PBS_O_WORKDIR, PBS_NODEFILE"
    why = f"{verb} may be for PBS Pro, or read {read} and so on, which Slurm does not set"
    assert [(one.what, one.why, one.lost) for one in found] == [(names, why, False)] * bool(names)
    same = convert(f"{_PBS}{command}", "torque", "pbspro").remarks
    assert not any("not read" in one.why for one in same)


@pytest.mark.parametrize(
    ("nodes", "code", "names"),
    [
        (2, "time python run.py --nodes 2", ["run.py"]),
        (2, "module load matlab\nmatlab -nodisplay < a.m", ["matlab"]),
        (2, "echo start\ncp a b", []),
        (2, "mpirun ./a\npython plot.py", []),
        (2, 'for host in $(sort -u "$PBS_NODEFILE"); do ssh "$host" ./a; done', []),
        (2, "cat $PBS_NODEFILE\njulia run.jl", ["run.jl"]),
        (2, "cat $PBS_NODEFILE > hosts\njulia run.jl", []),
        (2, "./start.sh", []),  # which has a remark of its own
        (1, "python run.py", []),
    ],
)
def test_a_program_that_must_start_its_ranks_itself(nodes: int, code: str, names: list[str]) -> None:
    done = convert(f"#PBS -l select={nodes}:ncpus=4\n{code}", "slurm", "pbspro")
    found = [one for one in done.remarks if "no launcher starts it on the 2 nodes" in one.why]
    assert [(one.what, one.lost) for one in found] == [(name, False) for name in names]


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        ("-N 1 -n 8", "julia run.jl", True),
        ("-N 1 -n 8", "python run.py", True),
        ("-N 1 --ntasks-per-node=8", "./model.exe", True),
        ("-N 1 -n 8", "sort a", False),
        ("-N 1 -n 1", "julia run.jl", False),
        ("-N 1 -n 8", "mpirun ./model.exe", False),
        ("-N 2 -n 8", "julia run.jl", True),
    ],
)
def test_ranks_of_a_program_without_a_launcher(options: str, line: str, named: bool) -> None:
    done = convert(f"#SBATCH {options}\n{line}", "pbspro")
    whys = [one.why for one in done.remarks if "an mpirun in it may start another number of ranks" in one.why]
    assert len(whys) == named
