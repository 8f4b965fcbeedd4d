"""Conversion: the scripts beside this file, the request there and back, and what it says of the rest."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomllib
from convert import golden_cases
from golden import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jobs import jobgen
from support.require import need_command

from jobgen import JobSpec, render
from jobgen.check.checker import check
from jobgen.convert import request_reader
from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.errors import one_of
from jobgen.options import BY_KEY
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.pbspro import RESERVATION
from jobgen.script.dialects.table import DIALECTS, of_script
from jobgen.script.directives import guess
from jobgen.script.script import Script
from jobgen.values import arrays

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def convert(text: str, target: str, source: str | None = None) -> conversion.Converted:
    script = Script(text.encode(), source or guess(text.split("\n")))
    return translation.convert(script) if target == "toml" else conversion.convert(script, target)


@pytest.mark.parametrize(
    ("path", "target"), golden_cases.CASES, ids=lambda value: value if isinstance(value, str) else value.stem
)
def test_golden(path: Path, target: str) -> None:
    assert golden_cases.result(path, target) == golden_cases.golden(path, target).read_text(encoding="utf-8")


def test_no_golden_is_left_over() -> None:
    assert {golden_cases.golden(*case) for case in golden_cases.CASES} == set((HERE / "golden").iterdir())


@pytest.mark.parametrize("path", sorted((HERE / "golden").glob("*.sh")), ids=lambda path: path.stem)
def test_converted_scripts_are_as_clean_as_their_source(path: Path) -> None:
    # SC1091: a file that is not here. SC2016: for the shell of the ranks.
    done = subprocess.run(
        [need_command("shellcheck"), "--exclude=SC1091,SC2016", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    target = path.suffixes[0][1:]
    assert [one for one in check(path.read_bytes(), scheduler=target) if one.severity == "error"] == []


@pytest.mark.parametrize("path", sorted((HERE / "golden").glob("*.toml")), ids=lambda path: path.stem)
def test_job_files_hold_jobgens_own_options(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    file: dict[str, Any] = tomllib.loads(text)
    assert file.pop("scheduler") in ("pbs", "slurm")
    program = file.pop("program", {})
    assert set(program) <= {"command"}
    options = {key: value for table in file.values() for key, value in table.items()}
    assert set(options) <= set(BY_KEY)
    for name, value in options.pop("env", {}).items():
        BY_KEY["env"].parse(f"{name}={value}")
    for key, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            BY_KEY[key].parse(("yes" if one else "no") if isinstance(one, bool) else str(one))


# ---- there and back -----------------------------------------------------------------------------------

WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,12}", fullmatch=True)
NUMBERS = st.integers(1, 64)
FIELDS = [
    "name",
    "queue",
    "account",
    "walltime",
    "nodes",
    "ranks_per_node",
    "cpus_per_rank",
    "gpus_per_node",
    "mem",
    "depend",
    "mail",
    "mail_user",
    "rerun",
    "exclusive",
    "join",
]
DEPENDS = st.sampled_from(["afterok:12", "afterany:12:34", "after:7,afternotok:8"])


@st.composite
def slurm(draw: st.DrawFn, one_core: bool = False, more: tuple[str, ...] = ()) -> str:
    """A Slurm script that any scheduler can say; ``more`` is what only some can."""
    hours, minutes = draw(st.integers(0, 400)), draw(st.integers(1, 59))
    lines = [f"--nodes={draw(NUMBERS)}", f"--ntasks-per-node={draw(NUMBERS)}"]
    lines.append(f"--cpus-per-task={1 if one_core else draw(NUMBERS)}")
    lines.append(f"--time={hours}:{minutes:02}:00")
    optional = {
        "--job-name=": WORDS,
        "--partition=": WORDS.filter(lambda word: not re.fullmatch(RESERVATION, word)),
        "--account=": WORDS,
        "--gpus-per-node=": st.integers(1, 16),
        "--array=": st.sampled_from(["0-9", "0-9:3", "2-8%4", "0-100:50%1"]),
        "--dependency=": DEPENDS,
        "--mail-type=": st.sampled_from(["END", "BEGIN,END,FAIL", "ALL", "FAIL", "NONE"]),
        "--begin=": st.sampled_from(["2026-12-01T10:00", "2030-01-31T20:00:30", "16:00", "04:05:06"]),
        "--nice=": st.integers(0, 1024),
        "--mail-user=": st.just("me@example.org"),
        "--": st.sampled_from(["exclusive", "requeue", "no-requeue", "hold"]),
    }
    optional |= dict.fromkeys(more, st.sampled_from(["R12", "S3", "M7"]))
    if "--reservation=" in more and "--qos=" not in more:
        del optional["--partition="]  # a reservation of PBS Pro is a queue
    if "--constraint=" in more:
        optional["--constraint="] = st.sampled_from(["a100", "a100&ib"])
    if not one_core:
        optional["--mem="] = st.sampled_from(["64G", "1536M", "1T"])
    lines += [flag + str(draw(values)) for flag, values in optional.items() if draw(st.booleans())]
    return (
        "#!/bin/bash\n" + "".join(f"#SBATCH {line}\n" for line in draw(st.permutations(lines))) + "hostname\n"
    )


def meaning(text: str, scheduler: str) -> dict[str, object]:
    wanted = request_reader.read(Script(text.encode(), scheduler))
    found: dict[str, object] = {name: getattr(wanted.request, name) for name in FIELDS}
    found["array"] = indices(wanted.request.array)
    if wanted.request.mail_user:
        found["mail"] = wanted.request.mail or EVENT_LETTERS[of_script(scheduler).default_mail]
    found |= {key: one.value for key, one in wanted.directives.items()}
    if "constraint" in found:
        found["constraint"] = wanted.directives["constraint"].value.replace(":", "&")
    return found


def indices(text: str | None) -> object:
    array = arrays.read(text) if text else None
    if array is None:
        return None
    return {one for first, last, step in array.ranges for one in range(first, last + 1, step)}, array.limit


def test_a_partition_with_the_name_of_a_reservation() -> None:
    done = convert("#!/bin/bash\n#SBATCH --partition=R0\n#SBATCH --nodes=1\nhostname\n", "pbspro")
    assert "#PBS -q" not in done.text
    assert "PBS Pro reads a queue of this name as a reservation" in str(done.remarks)


@given(slurm(more=("--reservation=",)))
@settings(deadline=None)
def test_slurm_to_pbs_pro_and_back(text: str) -> None:
    there = convert(text, "pbspro")
    back = convert(there.text, "slurm", "pbspro")
    assert (there.remarks, back.remarks) == ((), ())
    assert meaning(there.text, "pbspro") == meaning(back.text, "slurm") == meaning(text, "slurm")


@given(slurm(one_core=True, more=("--reservation=", "--qos=", "--constraint=")))
@settings(deadline=None)
def test_slurm_to_torque_and_back(text: str) -> None:
    there = convert(text, "torque")
    back = convert(there.text, "slurm", "torque")
    assert (there.remarks, back.remarks) == ((), ())
    assert meaning(there.text, "torque") == meaning(back.text, "slurm") == meaning(text, "slurm")


@given(slurm(one_core=True))
@settings(deadline=None)
def test_round_all_three(text: str) -> None:
    pro = convert(text, "pbspro").text
    torque = convert(pro, "torque", "pbspro")
    again = convert(torque.text, "pbspro", "torque")
    assert (torque.remarks, again.remarks) == ((), ())
    assert meaning(again.text, "pbspro") == meaning(pro, "pbspro") == meaning(text, "slurm")


@given(
    st.binary(max_size=300),
    st.sampled_from(["slurm", "pbspro", "torque"]),
    st.sampled_from(["slurm", "pbspro", "torque", "toml"]),
)
@settings(deadline=None, max_examples=200)
def test_any_bytes(source: bytes, whose: str, target: str) -> None:
    script = Script(source, whose)
    done = translation.convert(script) if target == "toml" else conversion.convert(script, target)
    if target == "toml":
        tomllib.loads(done.text)


# ---- our own scripts there and back --------------------------------------------------------------------


def schedulers_lines(text: str) -> list[str]:
    return sorted(line for line in text.split("\n") if line.startswith(("#PBS", "#SBATCH")))


# Those for a site say what the site adds, too, and those for this machine say nothing. Of chunks that differ
# it is said that they are lost.
TOLD = [
    name
    for name, command in cases.CASES.items()
    if "--site" not in command and not name.startswith("local_") and not name.endswith("_differ")
]


@pytest.mark.parametrize("name", TOLD)
def test_a_job_file_of_our_script_asks_the_scheduler_for_the_same(name: str, tmp_path: Path) -> None:
    text = cases.script(cases.CASES[name])
    path = tmp_path / "job.toml"
    path.write_text(convert(text, "toml", "torque" if name.startswith("torque_") else None).text)
    again = render(JobSpec.from_file(path))
    assert schedulers_lines(again) == schedulers_lines(text)


@pytest.mark.parametrize("name", ["slurm_mpirun_over_ssh", "pbspro_mpirun_two_nodes"])
def test_our_own_script_gets_one_sentence(name: str) -> None:
    text = (HERE.parent / "golden" / f"{name}.sh").read_text(encoding="utf-8")
    done = jobgen("convert", "-", "--to", "toml", stdin=text)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "-: was made by jobgen: the job file has its directives" in done.stderr
    assert "OMPI_" not in done.stdout
    done = jobgen("convert", "-", "--to", "torque", stdin=text)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "was made by jobgen, which makes it for torque, too" in done.stderr


def test_what_the_options_refuse_stays_a_directive() -> None:
    text = "#!/bin/bash\n#SBATCH --nice=-3\n#SBATCH --begin=teatime\n#SBATCH --hold\nsrun hostname\n"
    assert 'directive = ["--nice=-3", "--begin=teatime", "--hold"]\n' in convert(text, "toml").text


# ---- what is said, and nothing dropped ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "target", "what"),
    [
        ("#PBS -l filesystems=home", "slurm", "-l filesystems=home"),
        ("#PBS -l select=1:ncpus=2+2:ncpus=4", "slurm", "-l select=1:ncpus=2+2:ncpus=4"),
        ("#PBS -l select=1:ncpus=2:host=n7", "slurm", "-l select=1:ncpus=2:host=n7"),
        ("#PBS -l place=pack\n#PBS -l select=2", "slurm", "-l place=pack"),
        ("#PBS -k doe", "slurm", "-k doe"),
        ("#PBS -S /bin/zsh", "slurm", "-S /bin/zsh"),
        ("#PBS -W group_list=x", "slurm", "-W group_list=x"),
        ("#PBS -W depend=on:3", "slurm", "-W depend=on:3"),
        ("#PBS -l walltime=1h", "slurm", "-l walltime=1h"),
        ("#PBS -l ngpus=16\n#PBS -l select=1", "slurm", "-l ngpus=16"),
        ("#SBATCH --constraint=a100", "pbspro", "--constraint=a100"),
        ("#SBATCH --constraint=[a100*2&ib]", "torque", "--constraint=[a100*2&ib]"),
        ("#PBS -l select=1:gpu_type=a100", "slurm", "-l select=1:gpu_type=a100"),
        ("#SBATCH --qos=long", "pbspro", "--qos=long"),
        ("#SBATCH --comment='night run'", "torque", "--comment=night run"),
        ("#SBATCH --licenses=matlab:2", "torque", "--licenses=matlab:2"),
        ("#SBATCH --licenses=a|b", "pbspro", "--licenses=a|b"),
        ("#SBATCH --licenses=a@server:2", "pbspro", "--licenses=a@server:2"),
        ("#PBS -l select=1\n#PBS -l matlab=2", "slurm", "-l matlab=2"),
        ("#SBATCH -p gpu --reservation=night", "pbspro", "--reservation=night"),
        ("#SBATCH --begin=now+2hours", "pbspro", "--begin=now+2hours"),
        ("#PBS -l select=1\n#PBS -a 12011000", "slurm", "-a 12011000"),
        ("#PBS -l select=1\n#PBS -p 5", "slurm", "-p 5"),
        ("#SBATCH --nice=5000", "torque", "--nice=5000"),
        ("#SBATCH --exclusive=user", "pbspro", "--exclusive=user"),
        ("#SBATCH --mail-type=END,TIME_LIMIT_80", "torque", "--mail-type=END,TIME_LIMIT_80"),
        ("#SBATCH --mail-type=TIME_LIMIT\n#SBATCH --mail-type=END", "torque", "--mail-type=TIME_LIMIT,END"),
        ("#PBS -l select=1\n#PBS -m aj", "slurm", "-m aj"),
        ("#SBATCH --dependency=afterok:12_3", "pbspro", "--dependency=afterok:12_3"),
        ("#SBATCH --dependency=aftercorr:12", "torque", "--dependency=aftercorr:12"),
        ("#SBATCH --gres=gpu:a100:4", "pbspro", "--gres=gpu:a100:4"),
        ("#SBATCH --nodes=1-4", "pbspro", "--nodes=1-4"),
        ("#SBATCH --array=1,2,7", "pbspro", "the array 1,2,7"),
        ("#SBATCH --dependency=singleton", "pbspro", "--dependency=singleton"),
        ("#SBATCH --output=%x-%t.log", "pbspro", "the output file %x-%t.log"),
        ("#SBATCH --array=1-4 --output=%x-%j.log", "pbspro", "the output file %x-%j.log"),
        ("#SBATCH --mem=0", "pbspro", "--mem=0"),
        ("#SBATCH --gres=dcu:4", "pbspro", "--gres=dcu:4"),
        ("#SBATCH --cpus-per-task=$N", "pbspro", "--cpus-per-task=$N"),
        ("#SBATCH --mem=lots", "pbspro", "--mem=lots"),
        ("#SBATCH --gres=gpu:2,nvme:100", "pbspro", "--gres=gpu:2,nvme:100"),
        ("#SBATCH --nodes=2 --gpus=3", "pbspro", "--gpus=3"),
        ("#SBATCH --cpus-per-gpu=4", "pbspro", "--cpus-per-gpu=4"),
        ("#SBATCH --nodes=2 --ntasks=5", "pbspro", "--ntasks=5"),
        ("#SBATCH -N 2 --time=0", "torque", "--time=0"),
        ("#SBATCH -N 2 --time=UNLIMITED", "torque", "--time=UNLIMITED"),
        ("#SBATCH -N 1 --gres=gpu:1080ti:2", "pbspro", "--gres=gpu:1080ti:2"),
        ("#SBATCH -N 1 --gres=gpu:tesla-k80:2,tmpfs:10", "pbspro", "--gres=gpu:tesla-k80:2,tmpfs:10"),
        ("#SBATCH -N 1 --gpus=2080:2", "torque", "--gpus=2080:2"),
    ],
)
def test_what_has_no_counterpart_stays_as_a_comment(text: str, target: str, what: str) -> None:
    done = convert(f"#!/bin/bash\n{text}\nhostname\n", target)
    assert what in [remark.what for remark in done.remarks if remark.lost]
    assert f"# not translated: {what}: " in done.text


@pytest.mark.parametrize(
    ("source", "text", "target", "expected"),
    [
        ("slurm", "--begin=2026-12-01T10:00", "pbspro", "-a 202612011000"),
        ("slurm", "--begin=2026-12-01", "torque", "-a 202612010000"),
        ("pbspro", "-a 202612011000.30", "slurm", "--begin=2026-12-01T10:00:30"),
        ("torque", "-a 2612011000", "slurm", "--begin=2026-12-01T10:00"),
        ("torque", "-a 2000", "slurm", "--begin=20:00"),
        ("torque", "-a 12011000", "pbspro", "-a 12011000"),
        ("slurm", "--nice", "torque", "-p -100"),
        ("slurm", "--nice=-5", "pbspro", "-p 5"),
        ("pbspro", "-p -5", "slurm", "--nice=5"),
        ("slurm", "--qos=high", "torque", "-l qos=high"),
        ("torque", "-W x=QOS:high", "slurm", "--qos=high"),
        ("slurm", "--reservation=night", "torque", "-l advres=night"),
        ("slurm", "--reservation=R12", "pbspro", "-q R12"),
        ("torque", "-W x=FLAGS:ADVRES:night.1", "slurm", "--reservation=night.1"),
        ("pbspro", "-q R12", "slurm", "--reservation=R12"),
        ("slurm", "--licenses=matlab:2,ansys", "pbspro", "-l ansys=1"),
        ("slurm", "--constraint=a100&ib", "torque", "-l nodes=1:ppn=1:a100:ib"),
        ("torque", "-l nodes=2:ppn=1:a100:ib", "slurm", "--constraint=a100&ib"),
        ("slurm", "--constraint=gpu_type=a100", "pbspro", "-l select=1:gpu_type=a100"),
        ("slurm", "--exclusive", "torque", "-l naccesspolicy=singlejob"),
        ("torque", "-n", "slurm", "--exclusive"),
        ("slurm", "--mail-type=NONE", "pbspro", "-m n"),
        ("slurm", "--mail-type=BEGIN\n#SBATCH --mail-type=END", "pbspro", "-m be"),
        ("torque", "-m n", "slurm", "--mail-type=NONE"),
        ("slurm", "--array=1-4 --output=%x-%j-%a.log", "torque", "-t 1-4"),
        ("torque", "-o a-${PBS_JOBID}-$PBS_ARRAYID", "slurm", "--output=a-%j-%a"),
        ("torque", "-o a-$PBS_ARRAYID", "pbspro", "-o a-^array_index^"),
        ("torque", "-W depend=afterokarray:12[].head", "pbspro", "-W depend=afterok:12[]"),
        ("pbspro", "-W depend=afterany:12[].head:13", "torque", "-W depend=afteranyarray:12[]"),
        ("torque", "-W depend=afterstartarray:12[]", "slurm", "--dependency=after:12"),
        ("pbspro", "-l select=1:naccelerators=8", "slurm", "--gres=npu:8"),
        ("torque", "-l nodes=1:ppn=1,vmem=8gb", "pbspro", "-l vmem=8gb"),
        ("pbspro", "-l select=1 -l cput=10:00:00", "torque", "-l cput=10:00:00"),
    ],
)
def test_what_jobgen_has_options_for(source: str, text: str, target: str, expected: str) -> None:
    prefix = {"slurm": "#SBATCH"}
    done = convert(f"#!/bin/bash\n{prefix.get(source, '#PBS')} {text}\nhostname\n", target, source)
    assert [remark.what for remark in done.remarks if remark.lost] == []
    line = f"{prefix.get(target, '#PBS')} {expected}"
    assert any(one == line or one.startswith(f"{line},") for one in done.text.split("\n")), done.text


@pytest.mark.parametrize(
    ("body", "target", "what"),
    [
        ("srun $ARGS python x.py", "pbspro", "srun $ARGS python x.py"),
        ("srun --mystery=1 ./a", "pbspro", "srun --mystery=1 ./a"),
        ("srun --multi-prog ./a", "pbspro", "srun --multi-prog ./a"),
        ("srun --relative=1 ./a", "pbspro", "--relative 1"),
        ("srun --cpu-bind=map_cpu:1,2 ./a", "pbspro", "--cpu-bind map_cpu:1,2"),
        ('CMD="srun ./a"', "pbspro", "srun"),
        ('eval "srun ./a"', "pbspro", "srun"),
        ("python train.py --launcher SLURM", "pbspro", "SLURM"),
        ("module load slurm", "pbspro", "slurm"),
        ("cat > x.py <<'A'\nos.environ['SLURM_PROCID']\nA", "pbspro", "SLURM_PROCID"),
        ("srun", "pbspro", "srun"),
        ('scontrol requeue "$SLURM_JOB_ID"', "pbspro", 'scontrol requeue "$SLURM_JOB_ID"'),
        ('echo "$SLURM_CLUSTER_NAME"', "pbspro", "$SLURM_CLUSTER_NAME"),
    ],
)
def test_a_body_that_has_no_counterpart(body: str, target: str, what: str) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH -N 2\n{body}\n", target)
    assert [(remark.line, remark.what) for remark in done.remarks if remark.lost] == [
        (3 + ("<<" in body), what)
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mpirun -np 4 ./a", "srun --ntasks=4 --kill-on-bad-exit=1 --mpi=pmix ./a"),
        (
            "mpirun -n 4 -ppn 2 -f hosts -genv A 1 ./a",
            "env A=1 srun --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --mpi=pmi2 ./a",
        ),
        (
            "mpiexec -n 8 --ppn 4 --depth=8 --cpu-bind depth ./a -n 3",
            "srun --ntasks=8 --ntasks-per-node=4 --cpus-per-task=8 --cpu-bind=cores --kill-on-bad-exit=1 ./a -n 3",
        ),
        ('mpirun -np "$n" -x A=b ./a', 'env A=b srun --ntasks="$n" --kill-on-bad-exit=1 --mpi=pmix ./a'),
        ("mpirun --mystery ./a", "mpirun --mystery ./a"),
        ("# mpirun -np 4 ./a", "# mpirun -np 4 ./a"),
        ("echo 'mpirun -np 4 $PBS_JOBID'", "echo 'mpirun -np 4 $PBS_JOBID'"),
        ('cd "${PBS_O_WORKDIR:-/tmp}"', 'cd "${SLURM_SUBMIT_DIR:-/tmp}"'),
        ("cat <<A\n$PBS_JOBID\nA", "cat <<A\n$SLURM_JOB_ID\nA"),
    ],
)
def test_pbs_bodies(body: str, expected: str) -> None:
    script = f"#!/bin/bash\n#PBS -l select=1\ncd /work\n{body}\n"
    assert convert(script, "slurm").text.partition("cd /work\n")[2] == f"{expected}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "srun -n8 ./a",
            'mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none $(mpi_exports) ./a',
        ),
        (
            # srun ignores it: "can't honor --ntasks-per-node set to 1 which doesn't match the requested tasks 8"
            "srun --ntasks-per-node 1 -N 2 ./a",
            'mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none $(mpi_exports) ./a',
        ),
        (
            "echo $((SLURM_JOB_ID % 7)) $SLURM_JOB_ID",
            "echo $((${PBS_JOBID%%[!0-9]*} % 7)) ${PBS_JOBID%%[!0-9]*}",
        ),
        ("scontrol show hostnames", "awk '!seen[$1]++' \"$PBS_NODEFILE\""),
        ("echo $SLURM_NNODES", "echo $SLURM_NNODES"),
    ],
)
def test_slurm_bodies(body: str, expected: str) -> None:
    script = f"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4\nset -e\n{body}\n"
    text = convert(script, "pbspro").text
    assert text.endswith(f"{expected}\n")
    assert ("SLURM_NNODES=$(sort" in text) == ("SLURM_NNODES" in body)


def test_the_command_says_what_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "job.pbs"
    path.write_text("#!/bin/bash\n#PBS -l select=1\n#PBS -k doe\nhostname\n")
    done = jobgen("convert", path, "--to", "slurm")
    assert done.returncode == 1
    guessed, *lost = done.stderr.splitlines()
    assert guessed == f"{path}: read as PBS Pro because of select=1 (line 2); --scheduler overrides this"
    assert lost == [f"{path}:3: cannot be translated: -k doe: has no counterpart in Slurm"]
    assert "#SBATCH --nodes=1\n" in done.stdout


def test_the_command_writes_a_file_and_reads_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    text = "#!/bin/bash\n#PBS -l select=1\ncd /work\n"
    assert jobgen("convert", "-", "--to", "slurm", "-o", path, stdin=text).returncode == 0
    assert path.stat().st_mode & 0o100
    assert "#SBATCH --nodes=1\n" in path.read_text()
    done = jobgen("convert", "-", "--to", "slurm", "-o", path, stdin=text)
    assert (done.returncode, "--force overwrites it" in done.stderr) == (2, True)
    assert jobgen("convert", "-", "--to", "slurm", "-o", path, "--force", stdin=text).returncode == 0


TARGETS = one_of((*DIALECTS, "toml"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "convert: name a script, or - for standard input"),
        (("job.sh",), f"--to is missing: say {TARGETS}"),
        (
            ("job.sh", "--to", "slrm"),
            f"--to slrm (command line): must be {TARGETS}; did you mean slurm?",
        ),
        (("/nowhere", "--to", "slurm"), "/nowhere (command line): cannot be read: No such file or directory"),
        (
            ("/dev/null", "--to", "slurm"),
            "/dev/null (command line): has no directives: say whose it is with --scheduler",
        ),
        (
            ("job.sh", "--to", "slurm", "--scheduler", "nqs"),
            f"--scheduler nqs (command line): must be {one_of(DIALECTS)}",
        ),
    ],
)
def test_mistakes_are_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    done = jobgen("convert", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"jobgen: {sentence}\n")
