"""What the pages of centres demand of the golden scripts of their sites, and what would be wrong there.

The site files name the pages; the commands of the scripts are in ``golden/cases.py``.
"""

from __future__ import annotations

SITES = {
    # docs.cscs.ch, running/slurm and software/communication/nccl_env_vars: four tasks a node of 72 cores
    "site_daint": (
        [
            "#SBATCH --nodes=2",
            "#SBATCH --ntasks-per-node=4",
            "#SBATCH --cpus-per-task=72",
            "#SBATCH --gpus-per-node=4",
            "#SBATCH --partition=normal",
            "#SBATCH --account=g123",
            "  export NCCL_NET='AWS Libfabric'",
            "  export NCCL_PROTO='^LL128'",
            "  export FI_MR_CACHE_MONITOR=userfaultfd",
            "  exec srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=72",
        ],
        ["--constraint", "job_module"],
    ),
    # docs.cscs.ch, clusters/clariden: 90 node-minutes a job of debug
    "site_clariden": (
        ["#SBATCH --partition=debug", "#SBATCH --time=00:22:00", "#SBATCH --gpus-per-node=4"],
        ["--account", "--constraint"],
    ),
    # docs.hpc.cineca.it, hpc/leonardo, and the scripts of users
    "site_leonardo": (
        [
            "#SBATCH --partition=boost_usr_prod",
            "#SBATCH --qos=boost_qos_dbg",
            "#SBATCH --account=EUHPC_E02",
            "#SBATCH --ntasks-per-node=4",
            "#SBATCH --cpus-per-task=8",
            "#SBATCH --gres=gpu:4",
            "#SBATCH --time=00:30:00",
        ],
        ["--gpus-per-node", "--partition=boost_qos"],
    ),
    # docs.tacc.utexas.edu, hpc/vista: Slurm refuses --gres, --gpus-per-task and --mem
    "site_vista": (
        [
            "#SBATCH --nodes=2",
            "#SBATCH --ntasks-per-node=1",
            "#SBATCH --partition=gh",
            "#SBATCH --time=01:00:00",
            "job_module gcc cuda python3",
            "OMP_NUM_THREADS=72",
        ],
        ["--gres", "--gpus", "#SBATCH --mem", "#SBATCH --export", "--account"],
    ),
    "site_vista_torchrun": (
        [
            "#SBATCH --ntasks-per-node=1",
            "#SBATCH --partition=gh-dev",
            "#SBATCH --account=CDA24",
            "--nproc-per-node=1",
        ],
        ["--gres", "--gpus", "#SBATCH --mem", "#SBATCH --export"],
    ),
    # docs.tacc.utexas.edu, hpc/stampede3
    "site_stampede3": (
        ["#SBATCH --partition=h100", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=4"],
        ["--gres", "--gpus", "#SBATCH --mem", "#SBATCH --export"],
    ),
    # docs.ncsa.illinois.edu, systems/delta, user_guide/running_jobs and architecture: GPU 0 is next to cores 48-63
    "site_delta": (
        [
            "#SBATCH --partition=gpuA100x4",
            "#SBATCH --account=bbka-delta-gpu",
            "#SBATCH --constraint=scratch",
            "#SBATCH --mem=208G",
            "#SBATCH --ntasks-per-node=4",
            "#SBATCH --cpus-per-task=16",
            "#SBATCH --gpus-per-node=4",
            "NCCL_SOCKET_IFNAME=hsn",
            "    --cpu-bind=mask_cpu:0xffff000000000000,0xffff00000000,0xffff0000,0xffff",
        ],
        ["--gpu-bind", "GLOO_SOCKET_IFNAME"],
    ),
    "site_delta_torchrun_a40": (
        [
            "#SBATCH --partition=gpuA40x4",
            "#SBATCH --gpus-per-node=4",
            "NCCL_SOCKET_IFNAME=hsn",
            "job_module nccl",
        ],
        ["mask_cpu"],
    ),
    # docs.ncsa.illinois.edu, systems/deltaai, and the scripts of users
    "site_deltaai": (
        [
            "#SBATCH --partition=ghx4",
            "#SBATCH --account=abcd-dtai-gh",
            "#SBATCH --gpus-per-node=4",
            "#SBATCH --cpus-per-task=72",
        ],
        ["--gres", "--constraint"],
    ),
    # docs.csc.fi, support/tutorials/ml-multi: DeepSpeed on two full nodes
    "site_mahti": (
        [
            "#SBATCH --account=project_2001",
            "#SBATCH --partition=gpumedium",
            "#SBATCH --nodes=2",
            "#SBATCH --ntasks-per-node=4",
            "#SBATCH --cpus-per-task=32",
            "#SBATCH --gres=gpu:a100:4",
            "job_module pytorch",
        ],
        ["--gpus-per-node", "#SBATCH --mem"],
    ),
    "site_roihu": (
        [
            "#SBATCH --account=project_2001",
            "#SBATCH --partition=gpularge",
            "#SBATCH --nodes=2",
            "#SBATCH --ntasks-per-node=4",
            "#SBATCH --cpus-per-task=72",
            "#SBATCH --gres=gpu:gh200:4",
            "job_module python-pytorch",
        ],
        ["--gpus-per-node", "#SBATCH --mem"],
    ),
    # docs.isambard.ac.uk, user-documentation/guides/slurm: one rank for each superchip
    "site_isambard_ai": (
        [
            "#SBATCH --nodes=2",
            "#SBATCH --gpus-per-node=4",
            "#SBATCH --ntasks-per-node=4",
            "#SBATCH --cpus-per-task=72",
            "job_module brics/nccl",
        ],
        ["mpirun", "mpiexec", "--account", "--exclusive"],
    ),
    # apps.fz-juelich.de, jsc/hps/jupiter, in the notes of users
    "site_jupiter": (
        [
            "#SBATCH --account=polyglot",
            "#SBATCH --partition=booster",
            "#SBATCH --ntasks-per-node=4",
            "#SBATCH --cpus-per-task=72",
            "#SBATCH --gres=gpu:4",
            "  export CUDA_VISIBLE_DEVICES=0,1,2,3",
            "    --cpu-bind=mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,",
        ],
        ["mpiexec", "--gpus-per-node"],
    ),
    "site_jupiter_torchrun": (
        ["#SBATCH --gres=gpu:4", "  export CUDA_VISIBLE_DEVICES=0,1,2,3", "    --cpu-bind=none bash"],
        ["mask_cpu"],
    ),
    # www.idris.fr, jean-zay/slurm/slurm_partitions_gpu, and the scripts of users
    "site_jean_zay": (
        [
            "#SBATCH --account=abc@h100",
            "#SBATCH --constraint=h100",
            "#SBATCH --qos=qos_gpu_h100-t3",
            "#SBATCH --gres=gpu:4",
            "#SBATCH --cpus-per-task=24",
            "#SBATCH --hint=nomultithread",
        ],
        ["--partition", "#SBATCH --mem"],
    ),
    "site_jean_zay_a100": (
        [
            "#SBATCH --account=abc@a100",
            "#SBATCH --constraint=a100",
            "#SBATCH --qos=qos_gpu_a100-dev",
            "#SBATCH --gres=gpu:8",
            "#SBATCH --ntasks-per-node=8",
            "#SBATCH --cpus-per-task=8",
            "#SBATCH --hint=nomultithread",
        ],
        ["--partition", "h100"],
    ),
    # servicedesk.surf.nl, Snellius partitions, and SURF-ML/Snellius-AI-Guide
    "site_snellius": (
        [
            "#SBATCH --partition=gpu_h100",
            "#SBATCH --nodes=2",
            "#SBATCH --gpus-per-node=4",
            "#SBATCH --cpus-per-task=16",
            "#SBATCH --exclusive",
        ],
        ["--gres", "--account"],
    ),
    # docs.it4i.cz, general/resources-allocation-policy, and the scripts of users
    "site_karolina": (
        [
            "#SBATCH --account=OPEN-30-35",
            "#SBATCH --partition=qgpu",
            "#SBATCH --nodes=2",
            "#SBATCH --gpus-per-node=8",
            "#SBATCH --ntasks-per-node=8",
            "#SBATCH --cpus-per-task=16",
        ],
        ["--gres"],
    ),
    # docs.alcf.anl.gov, crux/queueing-and-running-jobs/running-jobs
    "site_crux": (
        [
            "#PBS -l select=4:system=crux",
            "#PBS -l place=scatter",
            "#PBS -q debug",
            "#PBS -A Catalyst",
            "#PBS -l filesystems=home:eagle",
            "  export https_proxy=http://proxy.alcf.anl.gov:3128",
            "OMP_NUM_THREADS=2",
            "  exec mpiexec -n 256 --ppn 64 --depth 2 --cpu-bind depth",
        ],
        ["ngpus=", "ncpus=", "CUDA", "NCCL"],
    ),
    # docs.alcf.anl.gov, sophia/queueing-and-running-jobs/running-jobs: what a chunk is depends on the queue
    "site_sophia": (
        [
            "#PBS -l select=2",
            "#PBS -q by-node",
            "#PBS -A proj",
            "#PBS -l filesystems=home:eagle",
            "#PBS -k doe",
            "job_module_use /soft/modulefiles",
            "job_module conda",
            "  export https_proxy=http://proxy.alcf.anl.gov:3128",
        ],
        ["ngpus=", "ncpus=", "system="],
    ),
    "site_sophia_by_gpu": (
        ["#PBS -l select=4", "#PBS -q by-gpu"],
        ["#PBS -l select=1", "ngpus=", "ncpus="],
    ),
}
