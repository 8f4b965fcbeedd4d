"""The probes of the doctor: commands and short Python programs, run in parallel, with time limits."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from jobgen.doctor.job_environment import CommandResult, JobEnvironment
from jobgen.launch.launchers import DEFAULT_MPI, MPI_FLAVOURS
from jobgen.plan.plan import Plan

LIMIT = 60  # s; torch on a cold network file system takes half of that
_JSON = "import json, sys\nfacts = {}\n"
_PRINT = "\nprint(json.dumps(facts))"

# Each program runs in a process of its own and prints one JSON object as its last line.
PROGRAMS = {
    "python": """
import importlib.metadata, os, sysconfig
facts["version"] = ".".join(map(str, sys.version_info[:3]))
facts["executable"] = sys.executable
facts["header"] = os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
facts["packages"] = {}
for name in ("torch", "torch_npu", "deepspeed", "mpi4py", "ninja"):
    try:
        facts["packages"][name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
""",
    "train": """
import jobgen.train
from jobgen.values.version import __version__
facts["version"] = __version__
""",
    "mpi4py": """
import mpi4py
mpi4py.rc(initialize=False, finalize=False)
from mpi4py import MPI
facts["library"] = MPI.Get_library_version().strip("\\0\\n ").split(",")[0].splitlines()[0]
""",
    "torch": """
import torch, torch.distributed as dist
facts["version"] = torch.__version__
facts["cuda"], facts["hip"] = torch.version.cuda, torch.version.hip
facts["nccl"] = dist.is_available() and dist.is_nccl_available()
flags = getattr(torch._C, "_cuda_getArchFlags", lambda: None)()
facts["archs"] = (flags or "").split()
facts["devices"] = []
if torch.version.cuda or torch.version.hip:
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            for i in range(torch.cuda.device_count()):
                facts["devices"].append([torch.cuda.get_device_name(i), *torch.cuda.get_device_capability(i)])
    facts["warnings"] = [str(one.message).splitlines()[0] for one in caught]
from torch.utils import cpp_extension
facts["gcc"] = {key: value[1][0] for key, value in getattr(cpp_extension, "CUDA_GCC_VERSIONS", {}).items()}
facts["cuda_home"] = cpp_extension.CUDA_HOME
""",
    "torch_npu": """
import torch, torch_npu
facts["version"], facts["torch"] = torch_npu.__version__, torch.__version__
facts["devices"] = torch.npu.device_count() if torch.npu.is_available() else 0
""",
}
_COMMANDS = {
    "bash": ("bash", "-c", 'echo "$BASH_VERSION"'),
    "libc": ("getconf", "GNU_LIBC_VERSION"),
    "sbatch": ("sbatch", "--version"),
    "qsub": ("qsub", "--version"),
    "srun_mpi": ("srun", "--mpi=list"),
    "nvidia_smi": ("nvidia-smi",),
    "npu_smi": ("npu-smi", "info"),
}
_COMPILING = {
    "nvcc": ("nvcc", "--version"),
    "ninja": ("ninja", "--version"),
    "ds_report": ("python3", "-m", "deepspeed.env_report"),
}
_WORLD = "from mpi4py import MPI; print('world', MPI.COMM_WORLD.Get_size())"


def commands(plan: Plan, here: JobEnvironment) -> dict[str, tuple[str, ...]]:
    """Return the probes of a job by name, each as the words of a command."""
    inside = here.inside
    probes: dict[str, tuple[str, ...]] = {
        name: (*inside, "python3", "-c", _JSON + code + _PRINT) for name, code in PROGRAMS.items()
    }
    if not plan.resources.accelerator.cann:
        del probes["torch_npu"]
    compiler = here.env.get("CXX", "").split() or ["c++" if inside or here.which("c++") else "g++"]
    mpi, tool = plan.launch.mpi or MPI_FLAVOURS[DEFAULT_MPI], plan.resources.accelerator.topology
    return {
        **probes,
        **_COMMANDS,
        **({"topology": tool.command} if tool else {}),
        **({"devices": tool.listing} if tool and tool.listing else {}),
        **plan.scheduler.probes(),
        **{name: (*inside, *words) for name, words in _COMPILING.items()},
        "compiler": (*inside, *compiler, "-dumpfullversion", "-dumpversion"),
        "mpirun": (mpi.command, "--version"),
        # Open MPI starts no more ranks than slots, and a node of one core has one slot.
        "world": (mpi.command, "-n", "2", *mpi.overcommit, *inside, "python3", "-c", _WORLD),
    }


def results(plan: Plan, here: JobEnvironment, limit: float = LIMIT) -> Mapping[str, CommandResult]:
    """Run all probes, each for ``limit`` seconds at most, and return their results."""
    probes = commands(plan, here)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # as the script does it
    there = here._replace(env={**here.env, **root})
    with ThreadPoolExecutor(max_workers=4) as pool:
        results = pool.map(lambda words: there.ask(words, limit), probes.values())
        return dict(zip(probes, results, strict=True))
