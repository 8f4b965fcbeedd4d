"""Values that the shell or the scheduler gives to variables: the first directory, variables without a prefix."""

from __future__ import annotations

import pytest
from convert.conversions import convert, job_file, values

PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=4\n{}\n"
SLURM = "#!/bin/bash\n#SBATCH {}\n{}\n"
AT_HOME = 'cd "$HOME" || exit 1'


@pytest.mark.parametrize(
    ("code", "relies"),
    [
        ("X=$PWD\ncd /scratch/x\n$X/a", True),
        ("export X=${PWD}\ncd $X\n./a", True),
        ("cd $PWD\n./a", True),
        ("W=${PWD}; cd /scratch/x; $W/a", True),
        ("W=$(pwd); cd /scratch/x; $W/a", True),
        ("(cd /x; make)\n./a", True),
        ("X=$(cd /x; pwd)\n./a", True),
        ("cd /x\n./b\ncd -\n./a", True),
        ("cd /x\n./b\ncd $OLDPWD\n./a", True),
        ("pushd /x\n./b\npopd\n./a", True),
        ("cd /x\nX=$PWD\n$X/a", False),
        ("cd /x\n./b\ncd /y\ncd -\n./a", False),
        ("cd $PBS_O_WORKDIR\nX=$PWD\n(cd $X; ./a)", False),
        ("PWD=/x\ncd $PWD\n./a", False),
    ],
)
def test_a_script_of_pbs_that_uses_its_first_directory(code: str, relies: bool) -> None:
    assert (AT_HOME in convert(PBS.format(code), "slurm").text) is relies


@pytest.mark.parametrize(
    "code", ["cd $PWD\n./a", "X=$PWD\ncd /x\n$X/a", "(cd /x; make)\n./a", "pushd /x\n./b\npopd\n./a"]
)
def test_a_job_file_for_a_script_that_uses_its_first_directory(code: str) -> None:
    assert values(job_file(PBS.format(code)).text)["workdir"] == "~/."


@pytest.mark.parametrize(
    ("code", "has"),
    [("X=$PWD\ncd /glade/work\n$X/a", True), ("./a /glade/work/x", True), ("cd /glade/work\n./a", False)],
)
def test_ncar_starts_a_job_in_the_directory_of_the_submission(code: str, has: bool) -> None:
    for done in (convert(PBS.format(code), "slurm"), job_file(PBS.format(code))):
        assert AT_HOME not in done.text
        assert "~/." not in done.text
        found = [one.lost for one in done.remarks if "where NCAR's PBS starts a job" in one.why]
        assert found == [False] * has


def test_slurm_at_ncar_has_no_remark_on_its_first_directory() -> None:
    assert "NCAR" not in str(convert(SLURM.format("-N 1", "./a /glade/x"), "pbspro").remarks)


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("A=(${CUDA_VISIBLE_DEVICES//,/ })\nCUDA_VISIBLE_DEVICES=${A[0]} python3 a.py", [3]),
        ("CUDA_VISIBLE_DEVICES=0 ./a\n./b $CUDA_VISIBLE_DEVICES", [4]),
        ("CUDA_VISIBLE_DEVICES=0 ./a $CUDA_VISIBLE_DEVICES", [3]),  # bash expands it before
        ("./a $CUDA_VISIBLE_DEVICES\nexport CUDA_VISIBLE_DEVICES=0", [3]),
        ("export CUDA_VISIBLE_DEVICES=0\n./a $CUDA_VISIBLE_DEVICES", []),
        ("CUDA_VISIBLE_DEVICES=0 A=1\n./a $CUDA_VISIBLE_DEVICES", []),
    ],
)
def test_devices_that_a_script_sets_elsewhere_only(code: str, lines: list[int]) -> None:
    done = convert(SLURM.format("-N 1 --gpus-per-node=2", code), "pbspro")
    assert [one.line for one in done.remarks if one.what == "$CUDA_VISIBLE_DEVICES"] == lines


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("TMPDIR=/x ./a\ncp a $TMPDIR", [5]),
        ("cp a $TMPDIR\nTMPDIR=/x", [4]),
        ("(TMPDIR=/x; ./a)\ncp a $TMPDIR", [5]),
        ("(TMPDIR=/x; cp a $TMPDIR)", []),
        ("X=$(TMPDIR=/x ./a $TMPDIR)", [4]),
        ("TMPDIR=${TMPDIR:-/tmp}\ncp a $TMPDIR", []),
        ("TMPDIR=$TMPDIR/a\ncp a $TMPDIR", [4]),
        ("TMPDIR=/x A=$TMPDIR ./a", []),
        ("A=$TMPDIR TMPDIR=/x ./a", [4]),
        ("f() { cp a $TMPDIR; }\nTMPDIR=/x\nf", []),
        ("f() { cp a $TMPDIR; }\ng() { f; }\nTMPDIR=/x\ng", []),
        ("f() { cp a $TMPDIR; }\nf\nTMPDIR=/x", [4]),
        ("f() { cp a $TMPDIR; }\nTMPDIR=/x f", []),
        ("f() { TMPDIR=/x; }\nf\ncp a $TMPDIR", []),
    ],
)
def test_a_directory_that_a_script_sets_elsewhere_only(code: str, lines: list[int]) -> None:
    done = convert(PBS.format(f"cd /x\n{code}"), "slurm")
    assert [one.line for one in done.remarks if one.what == "$TMPDIR"] == lines


@pytest.mark.parametrize(
    ("options", "code", "place"),
    [
        (
            "-N 1\n#YBATCH -r a100_4",
            "module load cuda/11.8 cudnn\nmpirun -np 4 python a.py",
            (4, "cuda/11.8"),
        ),
        ("-p main", "module load gcc cuda/12 nccl/2.1\nsrun python a.py", (3, "cuda/12")),
        ("-p main -C v100", "module load cudatoolkit\nsrun python a.py", (2, "v100")),
        ("-p main", "ml CUDA\nnvidia-smi\npython3 a.py", (3, "CUDA")),
        ("-p main", "NUM_GPUS=4\nmpirun -np $NUM_GPUS ./a", (3, "NUM_GPUS=4")),
        ("-p main", "ml gcc cuda/12 nccl\nibrun ./a", (3, "cuda/12")),
        ("-p main", "module load cuda nccl\nif a; then time jsrun -n 4 ./a; fi", (3, "cuda")),
        ("-p main", "module load cuda nccl\nmpirun_rsh -np 4 -hostfile h ./a", (3, "cuda")),
        (
            "-p main",
            "export CUDA_VISIBLE_DEVICES='1,2'\npython a.py",
            (3, "CUDA_VISIBLE_DEVICES='1,2'"),
        ),
        ("-p main", "CUDA_VISIBLE_DEVICES=0 python a.py", (3, "CUDA_VISIBLE_DEVICES=0")),
        ("-p main", "export MPICH_GPU_SUPPORT_ENABLED=1\nsrun ./a", (3, "MPICH_GPU_SUPPORT_ENABLED=1")),
        ("-p main", "export MIOPEN_CACHE=$PWD\npython a.py", (3, "MIOPEN_CACHE=$PWD")),
        ("-p main", "export MPICH_GPU_SUPPORT_ENABLED=0\nsrun ./a", None),
        ("-p main", "export CUDA_VISIBLE_DEVICES=-1\npython a.py", None),
        ("-p main", 'export CUDA_VISIBLE_DEVICES=""\npython a.py', None),
        ("-p main", "ngpus=0\nmpirun -np 2 ./a", None),
        ("-p main", "module load gcc cuda/12 openmpi\nmpirun -np 2 ./a", None),  # which only the MPI may need
        ("-p main", "module load cuda nccl\nmake", None),
        ("-p main", "module unload cuda nccl\nsrun ./a", None),
        ("-p main --exclusive", "module load cuda nccl\nsrun ./a", None),
        ("-p main --gpus=4", "module load cuda nccl\nsrun ./a", None),
    ],
)
def test_programs_of_cuda_without_a_request_of_gpus(
    options: str, code: str, place: tuple[int, str] | None
) -> None:
    done = convert(SLURM.format(options, code), "pbspro")
    found = [(one.line, one.what) for one in done.remarks if "no directive requests GPUs" in one.why]
    assert found == [place] * (place is not None)
