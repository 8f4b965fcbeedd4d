"""What commands do otherwise under another scheduler: each target has the remark, a job file, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import NamedTuple

import pytest
import tomllib
from convert.conversions import convert, job_file

from jobgen.config import read_spec
from jobgen.convert import differences, log_differences
from jobgen.convert.result import Remark
from jobgen.jobfile.reader import layer_of
from jobgen.schedulers.table import SCHEDULERS
from jobgen.script.directives import guess
from jobgen.script.foreign_variables import warnings

SLURM = "#!/bin/bash\n#SBATCH -N 1 -n 1 -t 10 {}\n{}\n"
SEVERAL = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 -t 10 {}\n{}\n"
PBSPRO = "#!/bin/bash\n#PBS -l select=1:ncpus=4\n#PBS -l walltime=1:00:00\n{}\ncd $PBS_O_WORKDIR\n{}\n"
TORQUE = "#!/bin/bash\n#PBS -l nodes=1:ppn=4\n#PBS -l walltime=1:00:00\n{}\ncd $PBS_O_WORKDIR\n{}\n"
SAME = "both are PBS, and do the same"
WARNED = "jobgen warns of it when it makes the job for the other scheduler"
OWN_LOG = (
    "the name of the log is for the old scheduler only, and jobgen writes that it is left out for others"
)
TARGETS = ("slurm", "pbspro", "torque", "toml")


class Kind(NamedTuple):
    """A kind of remarks: its subject, a part of its reason, a script, and the targets that do not need it, with
    the cause."""

    what: str
    why: str
    script: str
    without: Mapping[str, str] = {}


TO_PBS_ONLY = {"torque": SAME, "pbspro": SAME}
SET_INDEX = {"toml": "setup sets the variable for each scheduler"}
KINDS = [
    Kind("--array=1-3", "programs that read", SLURM.format("--array=1-3", "./a"), SET_INDEX),
    Kind("-J 1-3", "programs that read", PBSPRO.format("#PBS -J 1-3", "./a"), SET_INDEX),
    Kind("-t 1-3", "programs that read", TORQUE.format("#PBS -t 1-3", "./a"), SET_INDEX),
    Kind("SLURM_CPU_BIND", "option of srun", SEVERAL.format("", "export SLURM_CPU_BIND=cores\nsrun ./a")),
    Kind("SBATCH_ACCOUNT", "option of sbatch", SLURM.format("", "export SBATCH_ACCOUNT=x\nsh sub.sh\n./a")),
    Kind(
        "I_MPI_PMI_LIBRARY",
        "library of Slurm",
        SEVERAL.format("", "module load intel-mpi\nexport I_MPI_PMI_LIBRARY=/usr/lib64/libpmi.so\nsrun ./a"),
    ),
    Kind("/etc/slurm", "file of Slurm", SLURM.format("", "singularity exec -B /etc/slurm i.sif ./a")),
    Kind("#SBATCH -N 1", "here-document", SLURM.format("", "cat > j <<E\n#SBATCH -N 1\nE\n./a")),
    Kind("#PBS -q x", "here-document", PBSPRO.format("", "cat > j <<E\n#PBS -q x\nE\n./a"), {}),
    Kind(
        "$PBS_NODEFILE", "was not set by Slurm", SLURM.format("", 'if [ "$PBS_NODEFILE" ]; then ./b; fi\n./a')
    ),
    Kind(
        "$SLURM_NTASKS",
        "was not set by PBS Pro",
        PBSPRO.format("", "./a ${SLURM_NTASKS:-1}\n./b"),
        {"torque": SAME},
    ),
    Kind("--mail-type=FAIL", "add END", SLURM.format("--mail-type=FAIL --mail-user=me@a.org", "./a")),
    Kind("rm /x/o", "writes the log o when", SLURM.format("-o /x/o", "./a\nrm /x/o")),
    Kind("rm /x/o", "writes the log o when", PBSPRO.format("#PBS -o /x/o", "./a\nrm /x/o"), {"torque": SAME}),
    Kind(
        "rm -f *", "deletes the log", TORQUE.format("#PBS -j oe\n#PBS -N x", "./a\nrm -f *"), {"pbspro": SAME}
    ),
    Kind('python t.py "/x/o"', "writes the log o when", SLURM.format("-o /x/o", 'python t.py "/x/o"')),
    Kind("> /x/o", "copies the log over it", SLURM.format("-o /x/o", "./b > /x/o\n./a")),
    Kind(
        "> /x/o", "copies the log over it", PBSPRO.format("#PBS -o /x/o", "./b > /x/o\n./a"), {"torque": SAME}
    ),
    Kind(
        "mkdir -p logs",
        "before you submit",
        PBSPRO.format("#PBS -o logs/o.txt", "mkdir -p logs\n./a"),
        {"torque": SAME},
    ),
    Kind(
        "-o ~/o.txt",
        "does not expand ~",
        PBSPRO.format("#PBS -o ~/o.txt", "./a"),
        {"torque": SAME, "toml": OWN_LOG},
    ),
    Kind("-o logs", "takes a directory, too", TORQUE.format("#PBS -o logs", "./a"), {"pbspro": SAME}),
    Kind(
        "-o o.txt",
        "one file for all tasks",
        PBSPRO.format("#PBS -J 1-3\n#PBS -o o.txt", "./a"),
        {"toml": OWN_LOG},
    ),
    Kind("$TMPDIR", "removes it afterwards", PBSPRO.format("", "cd $TMPDIR\n./a")),
    Kind("$TMPDIR", "sets it to /tmp", SLURM.format("", "cd $TMPDIR\n./a")),
    Kind(
        "$CUDA_VISIBLE_DEVICES",
        "at some sites only",
        SLURM.format("--gres=gpu:1", "python t.py --gpus $CUDA_VISIBLE_DEVICES"),
        {"toml": WARNED},
    ),
    Kind(
        "$CUDA_VISIBLE_DEVICES",
        "at some sites only",
        SLURM.format(
            "--gres=gpu:1", "singularity exec i.sif bash -c 'python t.py --gpus $CUDA_VISIBLE_DEVICES'"
        ),
        {"toml": WARNED},
    ),
    Kind("t.py", "no launcher starts it", SEVERAL.format("", "python t.py")),
    Kind("t.py", "no launcher starts it", "#PBS -l select=2:ncpus=4\npython t.py\n", {"torque": SAME}),
    Kind("slurm", "names Slurm", SLURM.format("", "./b --scheduler slurm\n./a")),
    Kind(
        "SLURM_JOB_ID",
        "is not set by",
        SLURM.format("", "cat > b.py <<E\nos.environ['SLURM_JOB_ID']\nE\n./a"),
    ),
    Kind("slurm-*.out", "has another name", SLURM.format("", "./a\nmv slurm-*.out logs")),
    Kind(
        "$PBS_JOBNAME.o$MY_ID",
        "writes while it runs",
        PBSPRO.format("", "./a\nln -s $PBS_JOBNAME.o$MY_ID log"),
        {
            "torque": SAME,
            "toml": "the log of the job has a name of its own, on which there is another remark",
        },
    ),
    Kind("qsub", "is a command of", PBSPRO.format("", './b --submit "qsub -q x"\n./a'), {"torque": SAME}),
    Kind(
        "$SLURM_TOPOLOGY_ADDR",
        "has no counterpart",
        SLURM.format("", "./a $SLURM_TOPOLOGY_ADDR"),
        {"toml": WARNED},
    ),
    Kind("export -f f", "first node only", SEVERAL.format("", "f() { ./a; }\nexport -f f\nsrun bash -c f")),
    Kind(
        "clean_scratch", "command of MetaCentrum", PBSPRO.format("", "./a\nclean_scratch"), {"torque": SAME}
    ),
    Kind("squeue", "is a command of Slurm", SLURM.format("", "squeue\n./a"), {"toml": WARNED}),
    Kind("srun", "a rank for each", "#!/bin/bash\n#SBATCH -N 2 -c 4 -t 10 --exclusive\nsrun ./a\n"),
]


def _found(kind: Kind, target: str) -> bool:
    done = job_file(kind.script) if target == "toml" else convert(kind.script, target)
    return any(one.what == kind.what and kind.why in one.why for one in done.remarks)


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: f"{one.what}: {one.why}")
def test_each_target_has_the_remark(kind: Kind) -> None:
    targets = [one for one in TARGETS if one != guess(kind.script.split("\n"))]
    missing = [one for one in targets if not _found(kind, one)]
    assert missing == [one for one in targets if one in kind.without]


@pytest.mark.parametrize(
    "kind", [one for one in KINDS if WARNED in one.without.values()], ids=lambda one: one.what
)
def test_jobgen_warns_of_the_others(kind: Kind) -> None:
    data = tomllib.loads(job_file(kind.script).text)
    other = "pbs" if data["scheduler"] == "slurm" else "slurm"
    spec = read_spec(other, {}, (), layer_of(data, (), lambda _: "job.toml"))
    scheduler = next(one for one in SCHEDULERS.values() if one.command_name == other)
    assert kind.what.lstrip("$") in " ".join(warnings(spec, scheduler))


def _sources(module: ModuleType) -> dict[str, object]:
    """Return the functions of a module that yield remarks for all targets."""
    found = {
        name: one for name, one in vars(module).items() if getattr(one, "__module__", "") == module.__name__
    }
    return {
        name: one
        for name, one in found.items()
        if getattr(one, "__annotations__", {}).get("return") == "Iterator[Remark]" and name[0] == "_"
    }


@pytest.mark.parametrize("module", [differences, log_differences])
def test_each_kind_is_in_the_table(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new function for such remarks needs a script above, and with that all targets."""
    seen = set[str]()
    for name, one in _sources(module).items():

        def spy(*given: object, name: str = name, one: object = one) -> Iterator[Remark]:
            for remark in one(*given):  # type: ignore[operator]
                seen.add(name)
                yield remark

        monkeypatch.setattr(module, name, spy)
    for kind in KINDS:
        _found(kind, "slurm" if guess(kind.script.split("\n")) != "slurm" else "pbspro")
    assert seen >= _sources(module).keys()


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("mpirun -np 8 ./b", True),
        ("mpirun -np 8 --hostfile h ./b", False),
        ("mpirun --version", False),
        ("ls", False),
    ],
)
def test_an_mpirun_beside_the_program_gets_its_hosts_from_slurm(code: str, named: bool) -> None:
    done = job_file(SEVERAL.format("", f"{code}\nmpirun -np 8 ./a"))
    found = [one.line for one in done.remarks if "gets the hosts from Slurm" in one.why]
    assert found == [3] * named
    assert not any("gets the hosts" in one.why for one in job_file(SLURM.format("", f"{code}\n./a")).remarks)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("srun python t.py", True),
        ("srun ./a", False),
        ("srun -N 1 -n 1 hostname", False),
        ("srun torchrun t.py", False),
    ],
)
def test_a_program_of_python_that_reads_the_ranks_of_srun(code: str, named: bool) -> None:
    done = job_file(SEVERAL.format("", code))
    assert any(one.what == "SLURM_PROCID" and "find RANK" in one.why for one in done.remarks) == named


@pytest.mark.parametrize(("code", "named"), [("python t.py", True), ("./rank.sh ./a", True), ("./a", False)])
def test_a_program_that_reads_the_ranks_of_an_mpi_of_one_scheduler(code: str, named: bool) -> None:
    head = "#!/bin/bash\n#PBS -l select=2:ncpus=4:mpiprocs=4\nmodule load cray-pals\n"
    done = job_file(f"{head}mpiexec -n 8 --ppn 4 {code}\n")
    assert any("PMI_RANK" in one.what and "find RANK" in one.why for one in done.remarks) == named


def test_a_sign_of_comments_in_a_string() -> None:
    text = SLURM.format("", 'echo "[x] ## $SLURM_CLUSTER_NAME"  # $SLURM_CONF\n./a')
    spec = read_spec("pbs", {}, (), layer_of(tomllib.loads(job_file(text).text), (), lambda _: "job.toml"))
    found = " ".join(warnings(spec, SCHEDULERS["pbspro"]))
    assert "SLURM_CLUSTER_NAME" in found
    assert "SLURM_CONF" not in found


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("export A=`echo $CUDA_VISIBLE_DEVICES`", True),
        ("export CUDA_VISIBLE_DEVICES=0", False),
    ],
)
def test_a_word_of_a_command_sets_no_variable(code: str, read: bool) -> None:
    text = SLURM.format(
        "--gres=gpu:1", f"{code}\nsrun singularity exec --env CUDA_VISIBLE_DEVICES=$A i.sif ./a"
    )
    spec = read_spec("pbs", {}, (), layer_of(tomllib.loads(job_file(text).text), (), lambda _: "job.toml"))
    found = "CUDA_VISIBLE_DEVICES" in " ".join(warnings(spec, SCHEDULERS["pbspro"]))
    assert found == read


def test_the_ranks_of_an_mpi_are_not_set_in_a_job_of_one_process() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -t 10 -N 1\nsrun --mpi=pmi2 python t.py\n")
    assert [one.why for one in done.remarks if "PMI_RANK" in one.what] == [
        "are not set (in a job for PBS Pro)"
    ]
