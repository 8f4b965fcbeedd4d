"""What scripts of each site must and must not have, each row with its source in a manual or a script of users."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.site_manuals import SITES

from jobgen import JobSpec, render
from jobgen.plan.plan import resolve
from jobgen.rendering.network_lines import network_lines

# The job, the lines that it must have, the words that it must not have, and the source of both.
ROWS: list[tuple[str, list[str], list[str], str]] = [
    (
        "pbs polaris",
        ["mpiexec -n 4 --ppn 4 --depth 8 --cpu-bind list:24-31:16-23:8-15:0-7"],
        ["--cpu-bind depth"],
        "docs.alcf.anl.gov/polaris/ (device affinity): GPU 0 is near cores 24-31, GPU 3 near 0-7",
    ),
    (
        "pbs polaris",
        [
            "export http_proxy=http://proxy.alcf.anl.gov:3128",
            "export HTTPS_PROXY=http://proxy.alcf.anl.gov:3128",
        ],
        ["NCCL_NET=", "aws-ofi-nccl"],
        "docs.alcf.anl.gov/polaris/getting-started/; .../libraries/nccl/ warns of hangs with the plug-in",
    ),
    (
        "pbs polaris network=plugin",
        [
            "export NCCL_NET='AWS Libfabric'",
            "export NCCL_NET_GDR_LEVEL=PHB",
            "export NCCL_CROSS_NIC=1",
            "export NCCL_COLLNET_ENABLE=1",
            "export FI_CXI_DISABLE_HOST_REGISTER=1",
            "export FI_MR_CACHE_MONITOR=userfaultfd",
            "export FI_CXI_DEFAULT_CQ_SIZE=131072",
            "export LD_LIBRARY_PATH=/soft/libraries/hwloc/lib:/soft/libraries/aws-ofi-nccl/v1.9.1-aws/lib"
            "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
        ],
        [],
        "docs.alcf.anl.gov/polaris/applications-and-libraries/libraries/nccl/",
    ),
    (
        "pbs aurora nodes=64 queue=debug-scaling",
        [
            "#PBS -l select=64",
            "--ppn 12 --depth 4 --cpu-bind list:4-7:8-11:12-15:16-19:20-23:24-27:56-59:60-63:64-67:68-71:72-75:76-79",
            "export FI_MR_CACHE_MONITOR=userfaultfd",
            "export CCL_KVS_MODE=mpi",
            "export http_proxy=http://proxy.alcf.anl.gov:3128",
        ],
        ["CCL_ALLREDUCE", "2-4:10-12"],
        "docs.alcf.anl.gov/aurora/: running-jobs-aurora, .../frameworks/pytorch, .../frameworks/oneCCL, containers",
    ),
    (
        "pbs aurora network=tuned",
        [
            "export CCL_ALLREDUCE_SCALEOUT='direct:0-1048576;rabenseifner:1048577-max'",
            "export CCL_BCAST=double_tree",
            "[[ -z ${FI_PROVIDER:-} ]] || export MPI_PROVIDER=$FI_PROVIDER",
            "unset MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE "
            "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
        ],
        ["CCL_ALLREDUCE=", "PALS_PMI"],
        "docs.alcf.anl.gov/aurora/data-science/frameworks/oneCCL/: the list for tuning",
    ),
    (
        "pbs aurora nodes=16 queue=capacity walltime=168h",
        ["#PBS -q capacity", "#PBS -l walltime=168:00:00"],
        [],
        "docs.alcf.anl.gov/aurora/running-jobs-aurora/: capacity has 1 to 16 nodes, 168 h",
    ),
    (
        "pbs aurora nodes=8000 queue=prod walltime=24h",
        ["#PBS -q prod", "#PBS -l select=8000"],
        [],
        "docs.alcf.anl.gov/aurora/running-jobs-aurora/: prod has 256 to 10,624 nodes, large 24 h",
    ),
    (
        "pbs derecho queue=preempt walltime=100h",
        [
            "#PBS -l walltime=100:00:00",
            "--cpu-bind list:0-15:16-31:32-47:48-63",
            "job_module cuda cray-mpich conda",
        ],
        ["--cpu-bind none"],
        "NCAR/HPC-Docs pbs/charging, derecho-job-script-examples; NCAR/miles-credit scripts/derecho.sh",
    ),
    (
        "pbs derecho network=plugin",
        ["job_module cuda cray-mpich conda libfabric/1.15.2.0"],
        [],
        "NCAR/miles-credit credit/pbs.py: the module for the plug-in of its conda environment",
    ),
    (
        "pbs gadi queue=gpuhopper directive=-l~storage=gdata/x",
        ["#PBS -q gpuhopper", "#PBS -l ncpus=48", "#PBS -l ngpus=4", "#PBS -l storage=gdata/x"],
        [],
        "scripts of users: gpuhopper, ncpus = 12 x ngpus",
    ),
    (
        "pbs gadi queue=dgxa100 gpus_per_node=1 directive=-l~storage=gdata/x",
        ["#PBS -q dgxa100", "#PBS -l ncpus=16", "#PBS -l ngpus=1"],
        [],
        "opus.nci.org.au, Queue Structure; a script of a user: dgxa100, ncpus = 16 x ngpus",
    ),
    (
        "pbs abci",
        ["#PBS -k oed", "#PBS -v USE_SSH=1", "OMP_NUM_THREADS=12"],
        ["RTYPE="],
        "docs.abci.ai/v3/en/job-execution/: -k oe, RTYPE is for reserved jobs; system-overview: 2 x 48 cores",
    ),
    (
        "pbs abci reservation=R1234",
        ["#PBS -q R1234", "#PBS -v RTYPE=rt_HF,USE_SSH=1"],
        ["#PBS -q rt_HF"],
        "docs.abci.ai/v3/en/job-execution/: RTYPE is mandatory in a reservation",
    ),
    (
        "pbs cx3",
        [":gpu_type=L40S"],
        ["RTX6000"],
        "icl-rcs-user-guide hpc/queues/gpu-jobs: in the batch queue L40S yes, RTX6000 no",
    ),
    (
        "slurm perlmutter nodes=2",
        [
            "--cpu-bind=mask_cpu:0xffff000000000000ffff000000000000,0xffff000000000000ffff00000000,"
            "0xffff000000000000ffff0000,0xffff000000000000ffff",
            "OMP_NUM_THREADS=16",
            "#SBATCH --cpus-per-task=32",
        ],
        ["NCCL_NET="],
        "NERSC/sc25-dl-tutorial: GPUs in reverse order; a topology measured by a user: GPU 0 is near 48-63,112-127",
    ),
    (
        "slurm perlmutter network=plugin",
        [
            "job_module nccl/2.24.3",
            "LD_LIBRARY_PATH=/global/common/software/nersc9/nccl/2.24.3/plugin/lib",
            "export NCCL_NET='AWS Libfabric'",
            "export NCCL_SOCKET_IFNAME=hsn",
        ],
        [],
        "NCAR/miles-credit credit/cli/_common.py, credit/slurm.py; NERSC/sc25-dl-tutorial",
    ),
    (
        "slurm perlmutter queue=shared",
        ["#SBATCH --qos=shared", "#SBATCH --gpus-per-node=2"],
        ["mask_cpu"],
        "the CPUs of a part of a node are not known before",
    ),
    ("slurm perlmutter queue=interactive", ["#SBATCH --qos=interactive"], [], "scripts of users"),
    (
        "slurm frontier nodes=2",
        [
            "--cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,"
            "0xfe00000000,0xfe0000000000",
            "LOCAL_RANK=$SLURM_LOCALID",
            "  job_miopen",
            "export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
        ],
        ["--gpus-per-task", "--gpu-bind"],
        "docs.olcf.ornl.gov .../pytorch_frontier.html: with one GPU per task each rank sees device 0 alone; "
        "the batch script puts CRAY_LD_LIBRARY_PATH first",
    ),
    (
        "slurm lumi",
        ["export NCCL_SOCKET_IFNAME=hsn", "  job_miopen", "#SBATCH --cpus-per-task=7"],
        ["aws-ofi-rccl"],
        "docs.lumi-supercomputer.eu: software/packages/pytorch, runjobs/scheduled-jobs/lumig-job",
    ),
    (
        "slurm setonix network=no-p2p",
        ["  export NCCL_P2P_DISABLE=1\n", "# scripts of users: NCCL_SOCKET_IFNAME"],
        [],
        "a user's script: without it the first collective operation hangs",
    ),
    (
        "slurm lumi network=plugin",
        [
            "job_module LUMI partition/G aws-ofi-rccl",
            "export NCCL_NET_GDR_LEVEL=3",
            "export CXI_FORK_SAFE=1",
            "export SINGULARITYENV_LD_LIBRARY_PATH=$EBROOTAWSMINOFIMINRCCL/lib",
        ],
        [],
        "docs.lumi-supercomputer.eu/software/packages/pytorch/",
    ),
    (
        "slurm lumi queue=bench nodes=2000 walltime=6h",
        ["#SBATCH --partition=bench", "#SBATCH --nodes=2000"],
        [],
        "docs.lumi-supercomputer.eu/runjobs/scheduled-jobs/partitions/",
    ),
    (
        "slurm juwels-booster",
        ["export CUDA_VISIBLE_DEVICES=0,1,2,3"],
        [],
        "FZJ-JSC/tutorial-multi-gpu: tasks see devices of their own unless the variable is exported",
    ),
    (
        "slurm marenostrum5 queue=acc_debug",
        ["--distribution=block:block", "#SBATCH --qos=acc_debug"],
        [],
        "slurm.schedmd.com/srun.html: the default of --distribution is cyclic over sockets",
    ),
    (
        "slurm setonix nodes=2",
        [
            "--gres=gpu:8 --cpu-bind=mask_cpu:0xff000000000000,0xff00000000000000,0xff0000,0xff000000,0xff,0xff00,"
            "0xff00000000,0xff0000000000",
            "LOCAL_RANK=$SLURM_LOCALID",
            "export NCCL_SOCKET_IFNAME=hsn0",
            "  job_miopen",
        ],
        ["--gpus-per-task", "--gpu-bind"],
        "pawsey.atlassian.net, scripts for GPU nodes: the manual method, map_cpu:49,57,17,25,0,9,33,41",
    ),
]


def script(job: str) -> str:
    """Return the script of ``SCHEDULER SITE [option=value]...``; a value has ``~`` for a blank."""
    scheduler, site, *options = job.split()
    given: dict[str, object] = dict(one.replace("~", " ").split("=", 1) for one in options)
    if "directive" in given:
        given["directive"] = [given["directive"]]
    return render(JobSpec(scheduler, ("train.py",), site=site, account="x", **given))  # type: ignore[arg-type]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_script_has_what_the_source_says(row: tuple[str, list[str], list[str], str]) -> None:
    job, required, forbidden, source = row
    text = script(job)
    assert [line for line in required if line not in text] == [], source
    assert [word for word in forbidden if word in text] == [], source


def test_every_real_site_has_a_row() -> None:
    from jobgen.sites.search import names

    rows = {row[0].split()[1] for row in ROWS} | {
        case.removeprefix("site_").replace("_", "-") for case in SITES
    }
    generic = {"torque-gpu", "ascend-slurm"}
    assert {name for name in names() if not any(f"{row}-".startswith(f"{name}-") for row in rows)} == generic


def test_settings_of_a_network_come_before_those_of_the_user() -> None:
    text = render(
        JobSpec("pbs", ("train.py",), site="polaris", account="x", network="plugin", env=["NCCL_CROSS_NIC=2"])
    )
    [body] = re.findall(r"(?ms)^environment\(\) \{\n(.*?)^\}", text)
    assert body.index("export NCCL_CROSS_NIC=1") < body.rindex("  variables")
    assert "export NCCL_CROSS_NIC=2" in text


NETWORK = """
[rules]
prepend = { SEARCH = ["$OTHER"] }
[networks.a]
env = { COPY = "$OTHER", PLAIN = "a b" }
prepend = { SEARCH = ["/fixed", "$OTHER/lib"] }
unset = ["GONE"]
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("OTHER=/o SEARCH=/s GONE=1", "/o/lib:/fixed:/o:/s /o a b -"),
        ("OTHER=/o", "/o/lib:/fixed:/o /o a b -"),
        ("SEARCH=/s GONE=1", "/fixed:/s - a b -"),
    ],
)
def test_values_of_other_variables_and_variables_to_unset(before: str, after: str, tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(f'title = "Ours"\nscheduler = "slurm"\n{NETWORK}')
    job = JobSpec("slurm", ("train.py",), site=str(tmp_path / "ours.toml"), network="a")
    lines = "\n".join(network_lines(resolve(job)))
    shown = 'echo "$SEARCH ${COPY:--} $PLAIN ${GONE:--}"'
    code = f"set -euo pipefail\nexport {before}\n{lines}\n{shown}"
    done = subprocess.run(["bash", "-c", code], env={}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{after}\n"


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (
            "pawsey1",
            [
                "account = pawsey1 (Python): accounts of jobs with accelerators end with -gpu at Pawsey Setonix: "
                "use pawsey1-gpu"
            ],
        ),
        ("pawsey1-gpu", []),
    ],
)
def test_an_account_of_setonix_ends_with_gpu(account: str, said: list[str]) -> None:
    """The manual of Setonix, Job scheduling: GPU partitions want the project's code with -gpu."""
    job = JobSpec("slurm", ("train.py",), site="setonix", account=account)
    assert [one for one in resolve(job).site.warnings if "account" in one] == said
