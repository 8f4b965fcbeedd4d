"""``jobgen doctor``: this machine as it is, with faults that are put into its environment, and every judgement
on what other machines would answer."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.mpich import mpich_bin
from support.require import absent, need_command, need_package

from jobgen import __version__
from jobgen.config import read_spec
from jobgen.doctor import devices, machine, ops, queues, software, verdict_table
from jobgen.doctor.job_environment import CommandResult, JobEnvironment
from jobgen.doctor.recipe import recipe
from jobgen.doctor.verdict import Case, Verdict
from jobgen.errors import JobgenError
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.plan.plan import resolve
from jobgen.schedulers.table import SCHEDULERS

BIN = Path(sys.executable).parent
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PBS_"))}


def doctor(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = OUTSIDE | {"PATH": f"{BIN}:{os.environ['PATH']}"} | variables
    command = [sys.executable, "-m", "jobgen", "doctor", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def no_torch(folder: Path) -> str:
    """A PYTHONPATH for tests of other checks: importing torch and deepspeed takes seconds, which this saves."""
    place = folder / "no-torch"
    place.mkdir(exist_ok=True)
    for name in ("torch", "deepspeed"):
        (place / f"{name}.py").write_text("raise ImportError")
    return str(place)


def found(*words: str, cwd: Path, **variables: str) -> dict[str, dict[str, str]]:
    """The findings of a run by their checks; of several, the worst."""
    done = doctor("--json", *words, cwd=cwd, **variables)
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert done.returncode == (1 if said["state"] == "problem" else 0)
    states = ["ok", "note", "warning", "problem"]
    ordered = sorted(said["findings"], key=lambda one: states.index(one["state"]))
    assert said["state"] == ordered[-1]["state"]
    return {one["check"]: one for one in ordered}


# --------------------------------------------------------------------------------------- this machine


def test_the_environment_of_these_tests_is_well(tmp_path: Path) -> None:
    need_package("torch", "deepspeed", "mpi4py")
    need_command("mpirun")
    said = found("local", "--launcher", "mpirun", "--ranks-per-node", "2", cwd=tmp_path)
    assert {
        *("environment", "python3", "jobgen.train", "mpirun", "mpi4py", "torch", "ds_report", "clock"),
    } <= set(said)
    assert not [one for one in said.values() if one["state"] == "problem"]
    assert said["mpi4py"]["state"] == "ok", said["mpi4py"]
    assert "two ranks connect" in said["mpi4py"]["found"]
    assert said["python3"]["found"].split(";")[0].endswith(f"{BIN}/python3") or said["python3"][
        "found"
    ].split(";")[0].endswith(sys.executable)
    assert "cpu_adam" not in said["ds_report"]["found"].partition("cannot be compiled")[2]


def test_only_the_first_of_faults_that_follow_is_told(tmp_path: Path) -> None:
    """And the site says the scheduler."""
    (tmp_path / "here.toml").write_text('title = "Here"\nscheduler = "slurm"\n')
    words = ("--site", "./here.toml", "--conda", "gone", "--accelerator", "npu", "--", "true")
    alone = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": no_torch(tmp_path)}
    done = doctor("--json", *words, cwd=tmp_path, **alone)
    said = json.loads(done.stdout)
    texts = [one["found"] for one in said["findings"] if one["check"] == "environment"]
    assert said["scheduler"] == "slurm"
    assert [text[:22] for text in texts if "deepspeed" not in text] == [
        "cannot find the set_en",
        "cannot find conda: loa",
    ]


def test_json_has_these_keys(tmp_path: Path) -> None:
    said = json.loads(
        doctor(
            "local", "--json", "--limit", "20", "--", "true", cwd=tmp_path, PYTHONPATH=no_torch(tmp_path)
        ).stdout
    )
    assert list(said) == [
        *("version", "host", "in_job", "scheduler", "launcher", "accelerator", "state", "findings"),
    ]
    assert all(list(one) == ["check", "state", "found", "why", "remedy"] for one in said["findings"])
    assert (said["scheduler"], said["in_job"]) == ("local", False)


def test_a_table_says_what_to_do(tmp_path: Path) -> None:
    words = ("local", "--module", "nothere/1", "--workdir", "gone", "--", "train.py")
    done = doctor(*words, cwd=tmp_path, PYTHONPATH=no_torch(tmp_path))
    assert done.returncode == 1
    assert "problem    environment: cannot load the module nothere/1: module avail" in done.stdout
    assert "      do:  change --module or --source\n" in done.stdout
    assert "cannot enter gone" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 110


def test_debian_s_mpirun_against_another_mpi4py(tmp_path: Path) -> None:
    """Two releases of Open MPI: they may work together, and are two nevertheless."""
    need_package("mpi4py")
    if not Path("/usr/bin/mpirun").exists():
        absent("there is no second mpirun, Debian's")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mpirun").symlink_to("/usr/bin/mpirun")
    path = f"PATH={tmp_path}/bin:{BIN}:{os.environ['PATH']}"
    said = found("local", "--launcher", "mpirun", "--env", path, cwd=tmp_path, PYTHONPATH=no_torch(tmp_path))
    assert said["mpirun"]["found"].endswith(f"{tmp_path}/bin/mpirun")
    assert said["mpi4py"]["state"] == "warning"
    assert "Open MPI v5" in said["mpi4py"]["found"]
    assert "Open MPI) 4" in said["mpi4py"]["found"]


def test_the_mpirun_of_another_mpi(tmp_path: Path) -> None:
    """MPICH's mpirun starts two Open MPI ranks, each in a world of its own."""
    need_package("mpi4py")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mpirun").symlink_to(mpich_bin() / "mpirun")
    path = f"PATH={tmp_path}/bin:{BIN}:{os.environ['PATH']}"
    words = ("local", "--limit", "20", "--launcher", "mpirun", "--env", path)
    said = found(*words, cwd=tmp_path, PYTHONPATH=no_torch(tmp_path))
    assert said["mpirun"]["state"] == "problem"
    assert "--mpi mpich" in said["mpirun"]["remedy"]
    said = found(*words, "--mpi", "mpich", cwd=tmp_path, PYTHONPATH=no_torch(tmp_path))
    assert said["mpirun"]["state"] == "ok"
    assert said["mpi4py"]["state"] == "problem"
    assert "a world size of 1" in said["mpi4py"]["why"]


BROKEN = {
    "is not complete": (
        "raise ImportError('libcudart.so.12: cannot open shared object file')",
        "libcudart.so.12",
    ),
    "crashes": ("import os; os.kill(os.getpid(), 11)", "status -11"),
    "hangs": ("import time; time.sleep(600)", "did not end within 4 s"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_torch_that_cannot_be_imported_is_a_finding(fault: str, tmp_path: Path) -> None:
    code, words = BROKEN[fault]
    (tmp_path / "torch.py").write_text(code)
    done = doctor("local", "--limit", "4", "--env", f"PYTHONPATH={tmp_path}", "--", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "problem    torch: cannot be imported: " in done.stdout
    assert words in done.stdout
    assert "Traceback" not in done.stdout


def test_a_sourced_script_that_ends_the_job(tmp_path: Path) -> None:
    (tmp_path / "profile.sh").write_text("exit 0\n")
    words = ("local", "--limit", "10", "--source", str(tmp_path / "profile.sh"), "--", "true")
    light = {"PYTHONPATH": no_torch(tmp_path)}
    assert "a sourced script has called exit" in found(*words, cwd=tmp_path, **light)["environment"]["found"]
    (tmp_path / "profile.sh").write_text("sleep 600\n")
    words = ("local", "--limit", "2", *words[3:])
    assert "did not end within 2 s" in found(*words, cwd=tmp_path, **light)["environment"]["found"]


def test_what_the_environment_sets_is_what_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "profile.sh").write_text("export TORCH_EXTENSIONS_DIR='/tmp/with blanks'\necho noise\n")
    (tmp_path / "jobgen.toml").write_text(
        f'scheduler = "local"\n[environment]\nsource = ["{tmp_path}/profile.sh"]\n[program]\ncommand = ["true"]\n'
    )
    need_package("deepspeed")
    said = found("--job", "jobgen.toml", cwd=tmp_path)
    assert said["TORCH_EXTENSIONS_DIR"]["found"] == "/tmp/with blanks"
    said = found("--no-job", "local", "--", "train.py", cwd=tmp_path, PYTHONPATH=no_torch(tmp_path))
    assert "TORCH_EXTENSIONS_DIR" not in json.dumps(said["environment"])


def test_in_a_container_the_image_is_looked_at(tmp_path: Path) -> None:
    """What Python and the compiler are is asked by the script's own way in; this runtime only changes PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "image").mkdir()
    (tmp_path / "image/python3").symlink_to(sys.executable)
    (tmp_path / "bin/apptainer").write_text(
        "#!/bin/bash\n[[ $1 == exec ]] || exit 64\nwhile [[ $1 != vit.sif ]]; do shift; done\nshift\n"
        f'PATH={tmp_path}/image:/usr/bin:/bin exec "$@"\n'
    )
    (tmp_path / "bin/apptainer").chmod(0o755)
    words = ("local", "--container", "apptainer", "--image", "vit.sif", "--launcher", "mpirun", "--", "true")
    said = found(*words, cwd=tmp_path, PATH=f"{tmp_path}/bin:{BIN}:{os.environ['PATH']}")
    assert said["environment"]["state"] == "ok", said["environment"]
    assert said["python3"]["found"].endswith(f"{tmp_path}/image/python3")
    (tmp_path / "bin/apptainer").write_text("#!/bin/sh\necho no such image >&2\nexit 255\n")
    said = found(*words, cwd=tmp_path, PATH=f"{tmp_path}/bin:{BIN}:{os.environ['PATH']}")
    assert "cannot start the container" in said["environment"]["found"]
    assert (said["python3"]["state"], said["python3"]["found"]) == ("problem", "no such image")


def stand_in(folder: Path, name: str, said: str, *arguments: str) -> None:
    """A command that takes these arguments and no others."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    test = f'[ "$*" = "{" ".join(arguments)}" ] || {{ echo "{name}: bad arguments $*" >&2; exit 64; }}'
    path.write_text(f"#!/bin/sh\n{test}\ncat <<'END'\n{said}\nEND\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


NPU_SMI = """
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 93.6        40                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3161 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Alarm         | 91.5        38                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          3162 / 65536         |
+===========================+===============+====================================================+
"""


def test_an_ascend_node_of_stand_ins(tmp_path: Path) -> None:
    """The whole way with commands that answer as those of such a node: CANN is sourced, torch_npu is of another torch."""
    cann = tmp_path / "ascend-toolkit/latest"
    cann.mkdir(parents=True)
    (cann / "version.cfg").write_text("# version: 1.0\nruntime_running_version=[7.5.0.1.129:8.0.RC3]\n")
    (cann / "set_env.sh").write_text(f"export ASCEND_HOME_PATH={cann}\n")
    stand_in(tmp_path / "bin", "npu-smi", NPU_SMI, "info")
    for name, version in (("torch", "2.4.0"), ("torch_npu", "2.1.0.post8")):
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (tmp_path / f"{name}.py").write_text(f"__version__ = '{version}'\n")
    words = (
        "slurm",
        "--gpus-per-node",
        "8",
        "--accelerator",
        "npu",
        "--env",
        f"PYTHONPATH={tmp_path}",
        "--",
        "true",
    )
    path = f"{tmp_path}/bin:{BIN}:{os.environ['PATH']}"
    said = found(*words, cwd=tmp_path, ASCEND_HOME_PATH=str(cann), PATH=path)
    assert said["CANN"]["found"] == f"8.0.RC3, {cann}"
    assert said["torch_npu"]["found"] == "2.1.0.post8 with torch 2.4.0"
    assert "torch==2.1.0" in said["torch_npu"]["remedy"]
    assert said["NPUs"]["found"] == "1 of 2 are not healthy: Alarm"


MISTAKES = (
    (("slrm",), "doctor: slrm must be pbs, slurm or local; did you mean slurm?"),
    (
        ("train.py",),
        "train.py (command line): is no option; the program goes after --, as in: jobgen doctor -- train.py",
    ),
    (("slurm", "train.py"), "as in: jobgen doctor slurm -- train.py"),
    (("python3", "train.py"), "as in: jobgen doctor -- python3 train.py"),
    (("local", "--nodes", "2"), "--nodes 2 (command line): a local run has only this node"),
    (("--lanucher", "x"), "there is no option --lanucher; did you mean --launcher?"),
    (("--json", "--recipe"), "--json and --recipe contradict each other"),
    (("--job", "gone.toml"), "the job file gone.toml cannot be read"),
    (("--limit", "0"), "--limit 0 (command line): must be a whole number from 1 to 3600"),
    (("--module", "a b"), "must be one module name"),
)


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_bad_input_is_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    done = doctor(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


# --------------------------------------------------------------------------- what other machines answer

GPU = {
    "version": "2.6.0+cu124",
    "cuda": "12.4",
    "hip": None,
    "nccl": True,
    "archs": ["sm_80", "sm_90"],
    "devices": [["NVIDIA H100", 9, 0]],
    "warnings": [],
    "gcc": {"12.4": 14},
    "cuda_home": None,
}
PYTHON = {
    "version": "3.11.7",
    "executable": "/venv/bin/python3",
    "header": True,
    "packages": {"torch": "2.6.0", "deepspeed": "0.19.8", "mpi4py": "4.1.2"},
}
NVIDIA_SMI = "| NVIDIA-SMI 550.127.05   Driver Version: 550.127.05   CUDA Version: {}     |"
NVCC = "Cuda compilation tools, release {}, V{}.88"
DS_REPORT = """
ninja .................. \x1b[92m[OKAY]\x1b[0m
op name ................ installed .. compatible
deepspeed_not_implemented  \x1b[93m[NO]\x1b[0m ....... \x1b[92m[OKAY]\x1b[0m
async_io ............... \x1b[93m[NO]\x1b[0m ....... \x1b[93m[NO]\x1b[0m
cpu_adam ............... \x1b[92m[YES]\x1b[0m ...... \x1b[92m[OKAY]\x1b[0m
fused_adam ............. \x1b[93m[NO]\x1b[0m ....... \x1b[92m[OKAY]\x1b[0m
"""


class Equipped(JobEnvironment):
    """Surroundings with the commands of all schedulers."""

    def which(self, name: str) -> str | None:
        known = {one for row in SCHEDULERS.values() for one in (*row.submit_commands, *row.node_commands)}
        return super().which(name) or (f"/usr/bin/{name}" if name in known else None)


def case(
    scheduler: str = "slurm",
    in_job: bool = True,
    env: dict[str, str] | None = None,
    given: dict[str, Any] | None = None,
    **answers: Any,
) -> Case:
    """A well node with two GPUs; what is given stands instead."""
    plan = resolve(
        read_spec(scheduler, {"nodes": "2", **(given or {})} if scheduler != "local" else given or {})
    )
    well: dict[str, Any] = {
        "python": PYTHON,
        "torch": GPU,
        "train": {"version": __version__},
        "mpi4py": {"library": "Open MPI v5.0.5"},
        "nvidia_smi": NVIDIA_SMI.format("12.4"),
        "nvcc": NVCC.format("12.4", "12.4"),
        "ninja": "1.11",
        "compiler": "12.2.0",
        "ds_report": DS_REPORT,
        "mpirun": "mpirun (Open MPI) 5.0.5",
        "world": "world 2\nworld 2\n",
        "sbatch": "slurm 22.05.8",
        "qsub": "pbs_version = 23.06",
        "npu_smi": "",
    }
    said = {
        name: one
        if isinstance(one, CommandResult)
        else CommandResult(0, one if isinstance(one, str) else json.dumps(one), "")
        for name, one in (well | answers).items()
    }
    here = Equipped({"HOME": "/nowhere", "PATH": os.environ["PATH"], **(env or {})}, "/tmp")
    return Case(plan, here, said, in_job)


def worst(judge: Callable[[Case], Iterator[Verdict]], check: str, one: Case) -> Verdict:
    states = ["ok", "note", "warning", "problem"]
    return max((f for f in judge(one) if f.check == check), key=lambda f: states.index(f.state))


GONE = CommandResult(None, "", "nvcc is not on PATH")
JUDGEMENTS = (
    (devices.torch, "torch", case(), "ok", "CUDA 12.4"),
    (
        devices.torch,
        "torch",
        case(torch={**GPU, "cuda": None, "version": "2.6.0+cpu"}),
        "problem",
        "for CPUs alone",
    ),
    (
        devices.torch,
        "torch",
        case(torch=CommandResult(1, "", "ImportError: libfoo.so")),
        "problem",
        "ImportError: libfoo.so",
    ),
    (devices.torch, "GPUs", case(), "ok", "compute capability 9.0"),
    (devices.torch, "GPUs", case(torch={**GPU, "devices": []}), "problem", "torch finds none"),
    (devices.torch, "GPUs", case(in_job=False, torch={**GPU, "devices": []}), "note", "torch finds none"),
    (
        devices.torch,
        "GPUs",
        case(in_job=False, torch={**GPU, "devices": []}, nvidia_smi=NVIDIA_SMI.format("11.4")),
        "problem",
        "driver is too old",
    ),
    (
        devices.torch,
        "kernels",
        case(torch={**GPU, "devices": [["B200", 10, 0]]}),
        "problem",
        "the device is sm_100",
    ),
    (devices.torch, "NCCL", case(torch={**GPU, "nccl": False}), "problem", "built without it"),
    (ops.ops, "nvcc", case(), "ok", "CUDA 12.4"),
    (ops.ops, "nvcc", case(nvcc=NVCC.format("12.1", "12.1")), "ok", "CUDA 12.1"),
    (ops.ops, "nvcc", case(nvcc=NVCC.format("11.8", "11.8")), "warning", "CUDA 11.8, but torch is for 12.4"),
    (ops.ops, "nvcc", case(nvcc=GONE), "warning", "not on PATH"),
    (
        ops.ops,
        "nvcc",
        case(nvcc=NVCC.format("11.8", "11.8"), env={"DS_SKIP_CUDA_CHECK": "1"}),
        "warning",
        "DS_SKIP_CUDA_CHECK=1",
    ),
    (ops.ops, "compiler", case(), "ok", "g++ 12.2.0"),
    (ops.ops, "compiler", case(compiler="8.5.0"), "warning", "8.5.0"),
    (ops.ops, "compiler", case(compiler="15.1.0"), "warning", "newer than nvcc supports (below 14)"),
    (
        ops.ops,
        "compiler",
        case(compiler=CommandResult(None, "", "c++ is not on PATH")),
        "warning",
        "c++ is not on PATH",
    ),
    (ops.ops, "ninja", case(ninja=GONE), "warning", "not on PATH"),
    (ops.ops, "Python.h", case(python={**PYTHON, "header": False}), "warning", "is missing"),
    (ops.ops, "ds_report", case(), "ok", "installed: cpu_adam; cannot be compiled: async_io"),
    (
        ops.ops,
        "ds_report",
        case(ds_report=CommandResult(1, "", "ValueError: no")),
        "problem",
        "ValueError: no",
    ),
    (
        ops.ops,
        "TORCH_EXTENSIONS_DIR",
        case(env={"TORCH_EXTENSIONS_DIR": "/dev/null/x"}),
        "problem",
        "cannot be written",
    ),
    (ops.ops, "TORCH_CUDA_ARCH_LIST", case(env={"TORCH_CUDA_ARCH_LIST": "8.0;9.0"}), "ok", "8.0;9.0"),
    (ops.ops, "TORCH_CUDA_ARCH_LIST", case(env={"TORCH_CUDA_ARCH_LIST": "7.0+PTX"}), "ok", "7.0+PTX"),
    (
        ops.ops,
        "TORCH_CUDA_ARCH_LIST",
        case(env={"TORCH_CUDA_ARCH_LIST": "8.0 8.6"}),
        "problem",
        "does not include",
    ),
    (ops.ops, "TORCH_CUDA_ARCH_LIST", case(env={"TORCH_CUDA_ARCH_LIST": "sm_80"}), "warning", "sm_80"),
    (ops.ops, "TORCH_CUDA_ARCH_LIST", case(env={"TORCH_CUDA_ARCH_LIST": "9.0a"}), "warning", "read 9.0a"),
    (
        software.python,
        "jobgen.train",
        case(train=CommandResult(1, "", "ModuleNotFoundError: x")),
        "problem",
        "x",
    ),
    (software.python, "jobgen.train", case(train={"version": "0.0.1"}), "warning", "is of jobgen 0.0.1"),
    (software.python, "deepspeed", case(python={**PYTHON, "packages": {}}), "problem", "is not installed"),
    (
        software.python,
        "python3",
        case(python=CommandResult(None, "", "python3 is not on PATH")),
        "problem",
        "not on PATH",
    ),
    (software.shell, "bash", case(bash="5.2.15(1)-release"), "ok", "5.2.15"),
    (software.shell, "bash", case(bash="4.2.46(2)-release"), "ok", "needs 4.2 or newer"),
    (software.shell, "bash", case(bash="4.1.2(1)-release"), "problem", "4.1.2"),
    (software.shell, "bash", case(bash=CommandResult(None, "", "")), "problem", "is not on PATH"),
    (software.libc, "libc", case(libc="glibc 2.17"), "note", "2.17"),
    (software.scheduler, "scheduler", case("slurm", sbatch="slurm 24.11.5"), "", "22.05 and 24.11"),
    (software.scheduler, "scheduler", case("pbs", qsub="Version: 6.1.2"), "warning", ""),
    (
        software.srun_mpi,
        "srun",
        case(
            given={"launcher": "srun", "mpi": "openmpi"}, srun_mpi="MPI plugin types are...\n\tnone\n\tpmi2"
        ),
        "problem",
        "has no --mpi=pmix",
    ),
    (
        software.srun_mpi,
        "srun",
        case(
            given={"launcher": "srun", "mpi": "openmpi"},
            srun_mpi="MPI plugin types are...\n\tnone\n\tpmix_v4",
        ),
        "ok",
        "has --mpi=pmix",
    ),
    (ops.ops, "TORCH_CUDA_ARCH_LIST", case(), "ok", "is not set"),
    (machine.interfaces, "NCCL_SOCKET_IFNAME", case(env={"NCCL_SOCKET_IFNAME": "lo"}), "ok", "lo"),
    (
        machine.interfaces,
        "NCCL_SOCKET_IFNAME",
        case(env={"NCCL_SOCKET_IFNAME": "hsn0"}),
        "warning",
        "no such",
    ),
    (machine.interfaces, "GLOO_SOCKET_IFNAME", case(env={"GLOO_SOCKET_IFNAME": "^lo"}), "warning", "no such"),
    (
        machine.interfaces,
        "GLOO_SOCKET_IFNAME",
        case(env={"GLOO_SOCKET_IFNAME": "lo,x0"}),
        "warning",
        "no such",
    ),
    (machine.limits, "/dev/shm", case(), "", ""),
)


@pytest.mark.parametrize(("judge", "check", "one", "state", "words"), JUDGEMENTS)
def test_judgement(judge: Any, check: str, one: Case, state: str, words: str) -> None:
    finding = worst(judge, check, one)
    assert finding.state == state or not state, finding
    assert words in finding.text
    assert finding.state in ("ok", "note") or finding.remedy, finding


def test_a_current_libc_is_no_finding() -> None:
    assert not list(software.libc(case(libc="glibc 2.28")))


def test_the_tested_versions_are_those_of_the_documentation() -> None:
    table = (ROOT / "docs/install.md").read_text().partition("## Versions")[2].partition("\n## ")[0]
    assert all(f"| {one.help.tested} |" in table for one in SCHEDULERS.values() if one.help.tested)
    assert f"| {'.'.join(map(str, software.BASH))} and newer |" in table
    assert f"| {software.PYTHON} and newer | {software.TESTED_PYTHON} |" in table
    assert f"python_requires = >={software.PYTHON}\n" in (ROOT / "setup.cfg").read_text()


QUEUES = """\
Queue: workq
    resources_max.walltime = 24:00:00
    enabled = True
    started = True

Queue: small
    resources_max.nodect = 2
    enabled = True
    started = True

Queue: new
    total_jobs = 0

Queue: stopped
    enabled = True
"""
NODES = "".join(
    f"n{i}\n     resources_available.ncpus = 8\n     resources_available.ngpus = {i}\n\n" for i in (1, 2, 4)
)
SERVER = "Server: s\n    default_queue = workq\n    resources_max.nodect = 4\n"
CPU = {"accelerator": "cpu", "launcher": "mpirun"}
ASKED = (
    ({}, "queue", "ok", "workq takes 2 nodes"),
    ({"queue": "wrkq"}, "queue", "problem", "there is no wrkq; did you mean workq?"),
    ({"queue": "new"}, "queue", "problem", "new is not enabled"),
    ({"queue": "stopped"}, "queue", "warning", "stopped is not started"),
    ({"walltime": "48h"}, "queue", "problem", "workq takes at most 24:00:00"),
    ({"queue": "small", "nodes": "3"}, "queue", "problem", "small takes at most 2 nodes"),
    ({"nodes": "5"}, "queue", "problem", "workq takes at most 4 nodes"),
    ({"reservation": "R12.s"}, "queue", "problem", "there is no R12"),
    ({"nodes": "3"}, "nodes", "ok", "PBS Pro has 3"),
    ({"nodes": "9"}, "nodes", "problem", "PBS Pro has 3 nodes, and the job requests 9"),
    (
        {"cpus_per_rank": "9"},
        "nodes",
        "problem",
        "0 of the 3 nodes of PBS Pro have 9 cores, and the job requests 2",
    ),
    (
        {"accelerator": "cuda", "gpus_per_node": "4"},
        "nodes",
        "problem",
        "1 of the 3 nodes of PBS Pro have 8 cores and 4 devices, and the job requests 2",
    ),
)


@pytest.mark.parametrize(("given", "check", "state", "words"), ASKED)
def test_what_is_asked_of_pbs(given: dict[str, str], check: str, state: str, words: str) -> None:
    one = case("pbs", given={**CPU, **given}, queues=QUEUES, server=SERVER, pbsnodes=NODES)
    finding = worst(queues.queue if check == "queue" else queues.nodes, check, one)
    assert (finding.state, words in finding.text) == (state, True), finding
    assert finding.remedy or state == "ok"


def mpirun_case(tmp_path: Path, **answers: Any) -> Case:
    stand_in(tmp_path / "bin", "mpirun", "")
    return case(given={"launcher": "mpirun"}, env={"PATH": str(tmp_path / "bin")}, **answers)


MPI = (
    ({}, "mpi4py", "ok", "two ranks connect"),
    ({"world": "world 1\nworld 1\n"}, "mpi4py", "problem", "world sizes 1 and 1"),
    ({"mpi4py": {"library": "MPICH Version: 4.2.0"}}, "mpi4py", "problem", "uses MPICH"),
    (
        {"mpi4py": CommandResult(1, "", "RuntimeError: cannot load MPI library")},
        "mpi4py",
        "problem",
        "cannot load MPI",
    ),
    (
        {"world": CommandResult(1, "", "mpirun is forbidden here")},
        "mpi4py",
        "note",
        "mpirun is forbidden here",
    ),
    ({"mpirun": "HYDRA build details:\n Version: 4.2"}, "mpirun", "problem", "is that of MPICH"),
)


@pytest.mark.parametrize(("answers", "check", "state", "words"), MPI)
def test_mpi(answers: dict[str, Any], check: str, state: str, words: str, tmp_path: Path) -> None:
    finding = worst(software.mpi, check, mpirun_case(tmp_path, **answers))
    assert (finding.state, words in finding.text) == (state, True), finding


def test_a_lock_of_a_killed_compilation(tmp_path: Path) -> None:
    lock = tmp_path / "py311_cu124/fused_adam/lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    one = case(env={"TORCH_EXTENSIONS_DIR": str(tmp_path)})
    assert worst(ops.ops, "TORCH_EXTENSIONS_DIR", one).state == "ok"
    os.utime(lock, (0, 0))
    assert worst(ops.ops, "TORCH_EXTENSIONS_DIR", one).remedy == f"rm {lock}"


def test_the_file_system_of_a_path(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("none / ext4 rw 0 0\nsrv:/home /home nfs4 rw 0 0\nnone /home/local xfs rw 0 0\n")
    assert ops.file_system(Path("/home/me/.cache"), mounts) == "nfs4"
    assert ops.file_system(Path("/home/local/x"), mounts) == "xfs"
    assert ops.file_system(Path("/homes"), mounts) == "ext4"


@pytest.mark.parametrize(
    ("archs", "device", "runs"),
    [
        ("sm_80", (8, 6), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),
        ("compute_80", (9, 0), True),
        ("sm_90a", (9, 0), True),
        ("sm_100a", (10, 3), False),
        ("sm_100f", (10, 3), True),
        ("sm_75 sm_80", (7, 0), False),
    ],
)
def test_a_binary_runs_on_its_own_generation(archs: str, device: tuple[int, int], runs: bool) -> None:
    assert devices.runs_on(archs.split(), *device) is runs


def test_the_worst_finding_decides() -> None:
    assert verdict_table.worst([]) == "ok"
    assert verdict_table.worst([Verdict("a", "problem", ""), Verdict("b", "note", "")]) == "problem"


# -------------------------------------------------------------------------------------------- --recipe


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_the_recipe_names_ops_that_deepspeed_has(accelerator: str, tmp_path: Path) -> None:
    """Its variables are those that the installed DeepSpeed's builders read."""
    need_package("deepspeed")
    text = recipe(case(given={"accelerator": accelerator}))
    (tmp_path / "setup.sh").write_text(text)
    done = subprocess.run(
        [need_command("shellcheck"), "--shell=bash", tmp_path / "setup.sh"], capture_output=True, text=True
    )
    assert done.stdout == ""
    if accelerator not in ("cuda", "cpu"):
        return  # a builder of another kind needs its devices
    code = "from deepspeed.ops.op_builder.all_ops import ALL_OPS as o; print({n: b.BUILD_VAR for n, b in o.items()})"
    environment = os.environ | {"DS_ACCELERATOR": accelerator}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    known = ast.literal_eval(done.stdout.splitlines()[-1])
    assert all(f"{known[op]}=1" in text for op in ACCELERATORS[accelerator].ops)


def test_the_recipe_builds_for_the_devices_that_are_seen() -> None:
    assert "TORCH_CUDA_ARCH_LIST='9.0'" in recipe(case())
    assert "TORCH_CUDA_ARCH_LIST='8.0;9.0'" in recipe(case(torch={**GPU, "devices": []}))
    assert "TORCH_CUDA_ARCH_LIST='7.0;8.6+PTX'" in recipe(case(env={"TORCH_CUDA_ARCH_LIST": "7.0, 8.6+PTX"}))
    with pytest.raises(JobgenError, match="has no DeepSpeed to build for"):
        recipe(case(python={**PYTHON, "packages": {}}))


def test_the_recipe_does_nothing_twice(tmp_path: Path) -> None:
    """Where the ops are installed, pip is not even asked; where one is not, it is asked for all."""
    (tmp_path / "deepspeed").mkdir()
    (tmp_path / "deepspeed/__init__.py").touch()
    info = tmp_path / "deepspeed/git_version_info.py"
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin/python3"
    python.write_text(
        f'#!/bin/sh\n[ "$1" = - ] && exec {sys.executable} "$@"\necho "$DS_BUILD_CPU_ADAM $*"\n'
    )
    python.chmod(0o755)
    script = tmp_path / "setup.sh"
    script.write_text(recipe(case(given={"accelerator": "cpu"})))
    environment = {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for installed, lines in ((1, 0), (0, 3)):
        info.write_text(f"installed_ops = dict(cpu_adam=1, fused_adam={installed}, deepspeed_shm_comm=1)\n")
        done = subprocess.run(
            ["bash", "-eu", script], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        said = done.stdout.splitlines()
        assert len(said) == lines
        assert all(line.startswith("1 -m pip ") for line in said)


def test_without_a_job_it_examines_the_machine(tmp_path: Path) -> None:
    """Nothing of the training module: a newcomer has none yet."""
    done = doctor("local", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "without a job this examines the machine" in done.stderr
    assert not re.search(r"^\w+ +(deepspeed|jobgen.train):", done.stdout, re.MULTILINE)
    assert re.search(r"^ok +python3:", done.stdout, re.MULTILINE)
    assert (
        "jobgen.train" in doctor("local", "--nodes", "1", cwd=tmp_path, PYTHONPATH=no_torch(tmp_path)).stdout
    )
