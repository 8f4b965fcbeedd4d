"""The option sets whose scripts stand beside this file: the name says what each one shows.

``python -m tools.write_goldens`` writes all scripts anew; read the difference before you commit it.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from jobgen.config import read_spec
from jobgen.jobfile.reader import read_job
from jobgen.options import OPTIONS
from jobgen.plan.plan import Plan, resolve
from jobgen.rendering.render import render
from jobgen.rendering.runtime import MARK
from jobgen.spec import COMMAND_LINE, SiteName

HERE = Path(__file__).parent

CASES = {
    "pbspro_mpirun_two_nodes": "pbs --nodes 2 --launcher mpirun",
    "pbspro_mpirun_own_script_four_gpus": "pbs --nodes 2 --gpus-per-node 4 --cpus-per-rank 8 --launcher mpirun -- train.py --lr 0.1",
    "pbspro_deepspeed_through_tmrsh": "pbs --nodes 2 --gpus-per-node 4 --remote scheduler --launcher deepspeed -- train.py",
    "pbspro_deepspeed_over_ssh_with_pdsh": "pbs --nodes 2 --gpus-per-node 2 --remote ssh --launcher deepspeed",
    "pbspro_deepspeed_include_some_devices": "pbs --nodes 3 --gpus-per-node 4 --include n1:0,1@n3",
    "pbspro_torchrun_queue_account_mail": "pbs --nodes 2 --gpus-per-node 8 --launcher torchrun --queue gpu --account abc123 --mail me@example.org --mem 480G --walltime 1-12:00:00",
    "pbspro_pals_on_polaris": "pbs --name polaris --nodes 2 --gpus-per-node 4 --cpus-per-rank 8 --launcher mpirun --mpi pals --module conda --directive '-l filesystems=home:eagle' --queue debug --account proj -- train.py",
    "pbspro_mpich_cpu": "pbs --nodes 2 --accelerator cpu --ranks-per-node 4 --launcher mpirun --mpi mpich -- ./simulate input.dat",
    "pbspro_intel_mpi_without_ssh": "pbs --nodes 2 --accelerator cpu --ranks-per-node 2 --launcher mpirun --mpi intel --remote scheduler --source /opt/intel/oneapi/setvars.sh -- train.py",
    "pbspro_npu": "pbs --nodes 2 --gpus-per-node 8 --accelerator npu --launcher mpirun",
    "pbspro_array_after_another_job": "pbs --nodes 2 --launcher torchrun --array 0-9%3 --after 12.head --after afterany:14[].head -- train.py",
    "torque_array_of_a_list": "pbs --dialect torque --launcher mpirun --array 0-8:4,9%2 --after 12[].head --after after:7",
    "torque_mnist_of_two_nodes": "pbs --dialect torque --name mnist --nodes 2 --gpus-per-node 1 --cpus-per-rank 1 --queue gpu --launcher deepspeed --source /opt/profile/cuda-11.6.sh --source /opt/profile/gcc-9.sh --source /opt/profile/openmpi-intel.sh --conda /home/me/envs/ds -- mnist.py --deepspeed_config ds.json",
    "torque_mpirun_ucx": "pbs --dialect torque --nodes 2 --cpus-per-rank 4 --mem 32G --launcher mpirun --env UCX_TLS=tcp,cuda_copy -- -m mnist.train --deepspeed_config ds.json",
    "pbspro_mpirun_nodes_that_differ": "pbs --nodes 2x4+1x8 --mem 64G --launcher mpirun -- train.py",
    "pbspro_torchrun_nodes_that_differ": "pbs --nodes 1x8+2x4 --cpus-per-rank 8 --launcher torchrun --cpu-bind cores",
    "torque_deepspeed_nodes_that_differ": "pbs --dialect torque --nodes 2x4+1x8 --cpus-per-rank 2 --launcher deepspeed -- train.py",
    "slurm_srun_two_nodes": "slurm --nodes 2 --gpus-per-node 4 --cpus-per-rank 8 --launcher srun -- train.py",
    "slurm_srun_with_pmix": "slurm --nodes 2 --ranks-per-node 2 --accelerator cpu --launcher srun --mpi openmpi -- ./solver",
    "slurm_torchrun_partition_venv": "slurm --nodes 4 --gpus-per-node 4 --launcher torchrun --partition gpu --account proj --venv /home/me/venv -- train.py",
    "slurm_deepspeed_without_ssh": "slurm --nodes 2 --gpus-per-node 4 --launcher deepspeed -- train.py --deepspeed_config ds.json",
    "slurm_deepspeed_exclude_a_host": "slurm --nodes 3 --gpus-per-node 4 --launcher deepspeed --exclude node2",
    "slurm_mpirun_over_ssh": "slurm --nodes 2 --gpus-per-node 2 --launcher mpirun --remote ssh",
    "slurm_gpu_telemetry": "slurm --ranks 16 --gpus-per-node 8 --launcher torchrun --gpu-telemetry yes -- train.py",
    "torque_ranks_of_uneven_nodes": "pbs --dialect torque --ranks 12 --gpus-per-node 8 --launcher mpirun -- ./solver",
    "slurm_npu_srun": "slurm --nodes 2 --gpus-per-node 8 --accelerator npu --launcher srun --env HCCL_CONNECT_TIMEOUT=600",
    "slurm_rocm_modules": "slurm --nodes 2 --gpus-per-node 8 --accelerator rocm --cpus-per-rank 7 --launcher srun --module-use /opt/site/modulefiles --module PrgEnv-gnu --module rocm/6.2 --mem 480G --mail me@example.org",
    "slurm_extra_directives_and_launcher_arguments": "slurm --nodes 2 --directive --constraint=a100 --directive '--reservation=\"night shift\"' --launcher torchrun --launcher-arg --max-restarts=1 --master-port 23456 -- -m pkg.train",
    "slurm_srun_bound_to_lists": "slurm --nodes 2 --gpus-per-node 2 --launcher srun --cpus-per-node 32 --cpu-bind '1-7;9-15' --interface hsn0,hsn1 -- train.py",
    "pbspro_npu_bound_to_numa_nodes": "pbs --nodes 2 --gpus-per-node 8 --accelerator npu --launcher torchrun --cpus-per-node 192 --cpu-bind numa --interface ib0 --env NCCL_SOCKET_IFNAME=^lo,docker",
    "torque_mpich_bound_to_cores": "pbs --dialect torque --nodes 2 --gpus-per-node 2 --cpus-per-rank 4 --launcher mpirun --mpi mpich --cpu-bind cores -- ./solver",
    "slurm_setup_before_and_after": "slurm --nodes 2 --launcher torchrun --setup 'ulimit -l unlimited\nexport DS_BUILD_OPS=0' --before 'sbcast data.tar /tmp/data.tar' --after-block 'echo \"status $JOBGEN_STATUS\"' -- train.py",
    "slurm_array_that_goes_on": "slurm --nodes 2 --launcher srun --array 1,3,7%2 --after 12_3 --after afterany:14 --requeue 2",
    "slurm_sweep_of_the_training_module": "slurm --launcher torchrun --array %2 --set 'sweep.lr=[0.1, 0.01]' --set 'sweep.batch_size=[32, 64, 128]' -- --task digits",
    "slurm_packed_sweep": "slurm --gpus-per-node 4 --launcher torchrun --pack 4 --array %8 --log logs/%A_%a.log --set 'sweep.lr=[0.1, 0.2, 0.3, 0.4, 0.5]' --set 'sweep.seed=[1, 2]' -- train.py",
    "pbspro_packed_array_over_two_nodes": "pbs --nodes 2 --accelerator cpu --ranks-per-node 4 --launcher mpirun --pack 4 --array 1,5-7 -- ./solver",
    "pbspro_sweep_zipped_of_an_own_program": "pbs --nodes 2 --launcher mpirun --set sweep.mode=zip --set 'sweep.decay=[1e-4, 0.0, -1]' --set 'sweep.amp=[true, false, true]' --set 'sweep.note=[\"it'\"'\"'s\", \"$(touch pwned)\", \"a\\nb\"]' -- train.py --epochs 3",
    "slurm_sweep_in_a_container": "slurm --launcher torchrun --container apptainer --image a.sif --set 'sweep.lr=[0.1, 0.01]' -- train.py",
    "slurm_apptainer_srun": "slurm --nodes 2 --gpus-per-node 4 --launcher srun --container apptainer --image /images/train.sif --bind /data:/data:ro --env LD_LIBRARY_PATH=/opt/ofi -- train.py",
    "slurm_pyxis_torchrun": "slurm --nodes 2 --gpus-per-node 8 --launcher torchrun --container pyxis --image nvcr.io#nvidia/pytorch:25.01-py3 --bind /data",
    "slurm_edf_srun_at_a_site": "slurm --site clariden --account proj --nodes 2 --container edf --image ./train.toml --bind /capstor/store -- train.py",
    "slurm_shifter_srun": "slurm --nodes 2 --gpus-per-node 4 --launcher srun --container shifter --image docker:user/train:1 -- train.py",
    "slurm_enroot_deepspeed": "slurm --nodes 2 --gpus-per-node 4 --container enroot --image /images/train.sqsh --launcher deepspeed -- train.py --deepspeed_config ds.json",
    "pbspro_docker_npu": "pbs --nodes 2 --gpus-per-node 8 --accelerator npu --launcher torchrun --container docker --image ascendai/cann:8.1.rc1-910b-ubuntu22.04-py3.10 --container-arg --ulimit=stack=67108864",
    "slurm_everything_that_a_scheduler_is_told": "slurm --launcher torchrun --reservation night --qos high --constraint 'a100&ib' --licenses matlab:2 --comment 'the last one' --mail me@example.org --mail-on end,fail --log %x-%j.out --begin +2h --priority -5 --exclusive yes",
    "pbspro_everything_that_a_scheduler_is_told": "pbs --nodes 2 --launcher torchrun --reservation R123 --constraint gpu_type=a100 --licenses matlab:2,ansys --mail me@example.org --mail-on end --array 0-3 --log %x-%a.out --begin 2030-01-31T20:00:30 --priority 5 --exclusive yes",
    "torque_everything_that_a_scheduler_is_told": "pbs --dialect torque --nodes 2 --launcher mpirun --reservation night.1 --qos high --constraint a100:ib --mail-on none --log %x-%j.out --begin 20:00 --priority -5 --exclusive yes",
    "slurm_srun_nodes_that_differ": "slurm --nodes 1x1+2x8 --accelerator cpu --cpus-per-rank 4 --mem 64G --queue work --requeue 2 --after 12 --launcher srun -- ./solver",
    "slurm_mpirun_nodes_that_differ": "slurm --nodes 1x4+2x8 --launcher mpirun -- --task digits",
    "slurm_torchrun_components": 'slurm --set \'component=[{ranks_per_node=1, gpus_per_node=0, cpus_per_rank=16, queue="cpu", mem="64G"}, {nodes=2, gpus_per_node="a100:4", queue="gpu", mem="256G"}]\' --launcher torchrun -- train.py',
    "pbspro_mpirun_components": 'pbs --mem 64G --set \'component=[{ranks_per_node=1, gpus_per_node=0, cpus_per_rank=16}, {nodes=2, gpus_per_node=4, constraint="gpu_type=a100", mem="256G"}]\' --launcher mpirun -- train.py',
    "slurm_one_node": "slurm --gpus-per-node 2 --launcher torchrun",
    "slurm_accelerate": "slurm --nodes 2 --gpus-per-node 4 --launcher accelerate --launcher-arg --mixed_precision=bf16 -- train.py",
    "slurm_colossalai": "slurm --nodes 2 --gpus-per-node 4 --launcher colossalai -- train.py",
    "pbspro_accelerate_with_fsdp_nodes_that_differ": "pbs --nodes 2x4+1x8 --launcher accelerate --launcher-arg --use_fsdp -- train.py",
    "local_mpirun_two_ranks": "local --ranks-per-node 2 --launcher mpirun -- --task digits",
    "local_deepspeed_limited_to_ten_minutes": "local --gpus-per-node 2 --walltime 10m --launcher deepspeed -- train.py",
    "slurm_spare_node_of_a_site": "slurm --site juwels-booster --account trustllm --nodes 2 --launcher torchrun --spare-nodes 1",
    "slurm_network_of_a_site": "slurm --site delta --account bbka-delta-gpu --nodes 2 --launcher torchrun --queue gpuA40x4 --network plugin -- multinode.py",
    "slurm_slow_network_of_a_site": "slurm --site perlmutter --account m1234 --nodes 2 -- train.py",
    "pbspro_torchrun_at_a_site_with_core_lists": "pbs --site aurora --account proj --nodes 2 --launcher torchrun -- train.py",
    "pbspro_queue_of_single_devices": "pbs --site sophia --account proj --queue by-gpu --gpus-per-node 4 --launcher torchrun -- train.py",
    "slurm_commands_on_each_node": "slurm --nodes 2 --gpus-per-node 4 --launcher srun --on-each-node 'nvidia-smi -L' --after-on-each-node 'printenv JOBGEN_STATUS' --node-limit 5m -- train.py",
    "slurm_pyxis_staged_files": "slurm --nodes 2 --gpus-per-node 4 --launcher srun --container pyxis --image /images/train.sqsh --stage /data/shards.tar:shards.tar --local-caches yes -- train.py",
    "slurm_hooks_with_staged_files_and_caches": "slurm --nodes 2 --gpus-per-node 4 --launcher torchrun --stage /data/env.tar.gz:env --stage /data/train.bin --local-caches yes --local-dir '$SCRATCH_LOCAL' --on-each-node '\"$JOBGEN_STAGE\"/env/bin/warm-up' --after-on-each-node 'cp \"$JOBGEN_LOCAL_DIR\"/*.trace \"$JOBGEN_RUN_DIR\" || true' -- train.py",
    "slurm_server_beside_its_trainer": 'slurm --nodes 2 --gpus-per-node 8 --cpus-per-node 64 --set \'step=[{name="server", command=["./serve", "--model", "judge"], gpus=2, nodes=1, launcher="none", env={CACHE="/tmp/judge"}, ready={port=true, within="10m"}, ends="with trainer"}, {name="trainer", command=["train.py"], gpus="2-7", launcher="torchrun", starts="after server is ready"}]\'',
    "pbspro_server_beside_its_trainer": 'pbs --nodes 2 --accelerator cpu --cpus-per-node 16 --ranks-per-node 8 --set \'step=[{name="server", command=["./serve"], cores=4, ranks_per_node=1, launcher="torchrun", ready={line="listening"}, ends="with solver"}, {name="solver", command=["./solve"], cores=12, launcher="mpirun", starts="after server is ready"}, {command=["./report"], nodes=1, ranks_per_node=1}]\'',
    "pbspro_staged_files": "pbs --nodes 2 --launcher torchrun --stage /data/train.tar.zst:data --stage '~/tokens.bin' --local-dir '$TMPDIR/jobs' -- train.py",
    "torque_local_caches": "pbs --dialect torque --nodes 2 --launcher mpirun --local-caches yes --env CUDA_CACHE_PATH=/cache -- train.py",
    "hostile_text": "slurm --nodes 2 --launcher mpirun --workdir '/data/it'\"'\"'s \"here\"' --runs-dir 'my runs' --env 'A=a b;$(touch pwned)`id`\\' --env 'B=two\nlines\n#SBATCH --nodes=99' --env 'C=“é”' --source '/opt/my env/set up.sh' --launcher-arg '*' -- train.py '$HOME' ':' '' -- '--x=%h'",
}


def script(command: str) -> str:
    """The job part of the script of one command line, which is ``jobgen`` less the first word."""
    return job_part(whole(command))


def whole(command: str) -> str:
    """The whole script of the same."""
    return render(plan_of(command))


def job_part(script: str) -> str:
    """What stands above the marker line."""
    job, marker, _ = script.partition(f"\n{MARK}")
    assert marker
    return f"{job}\n"


def plan_of(command: str) -> Plan:
    """The plan of the same."""
    words = shlex.split(command)
    at = words.index("--") if "--" in words else len(words)
    options, program = words[1:at], words[at + 1 :]
    flags = {name: option for option in OPTIONS for name in (option.flag, option.alias)}
    given: dict[str, str | list[str]] = {}
    site, settings = None, []
    for flag, value in zip(options[::2], options[1::2], strict=True):
        if flag == "--site":
            site = SiteName(value, COMMAND_LINE)
            continue
        if flag == "--set":
            settings.append(value)
            continue
        option = flags[flag]
        if option.multiple:
            given.setdefault(option.key, []).append(value)  # type: ignore[union-attr]
        else:
            given[option.key] = value
    below = read_job(None, settings, tuple(program)) if settings else None
    return resolve(read_spec(words[0], given, program, below, site=site))
