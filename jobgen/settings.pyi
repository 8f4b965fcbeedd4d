"""The settings of a JobSpec, for editors; written by tools/write_settings.py from the table of options."""

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict

class Settings(TypedDict, total=False):
    name: str | None
    r"""Name of the job."""
    queue: str | None
    r"""Queue (a partition on Slurm)."""
    account: str | None
    r"""Account or project that pays."""
    walltime: str | timedelta | None
    r"""Time limit: 2h30m, 90m, HH:MM:SS or D-HH:MM:SS, or the word queue for the limit of the queue. [default: 1h]"""
    mail: str | None
    r"""Send mail at the start and the end of the job and on failure."""
    array: str | None
    r"""Array of tasks: 0-9, 0-20:5 or 1,3,7; 0-9%3 runs at most 3 at a time. JOBGEN_TASK is the index."""
    pack: int | str | None
    r"""Run K points of the array or the sweep side by side in each task: each has its part of the nodes, devices and cores, and its own run directory. %N counts points."""
    after: Sequence[str] | str | None
    r"""Start after job ID has ended with status 0; KIND is another condition: afterany, afternotok, after."""
    reservation: str | None
    r"""Run in this reservation."""
    qos: str | None
    r"""Quality of service."""
    constraint: str | None
    r"""Required node feature: a100 or a100&ib (Slurm), NAME=VALUE (PBS Pro), a property (Torque)."""
    licenses: str | None
    r"""Licenses that the job needs."""
    comment: str | None
    r"""Comment on the job, stored by the scheduler."""
    mail_on: str | None
    r"""Events that send mail: a list of begin, end and fail; or none. [default: all three, with --mail]"""
    log: str | None
    r"""Output file; its directory must exist. %x is the job name, %j the job id, %A and %a are the id and the index of an array task. [default: the scheduler's, beside the script]"""
    begin: str | None
    r"""Earliest start time: 2030-01-31T20:00, 20:00, or +2h (Slurm)."""
    priority: int | str | None
    r"""Priority among your own jobs, from -1024 to 1023; Slurm can only lower it (--nice)."""
    directive: Sequence[str] | str | None
    r"""Additional directive, such as '-l filesystems=home'. It overrides those of jobgen."""
    dialect: Literal["pbspro", "torque"] | None
    r"""Variant of PBS: OpenPBS and PBS Pro, or Torque. [default: pbspro]"""
    nodes: int | str | None
    r"""Number of nodes. 2x4+1x8 is 2 nodes of 4 ranks and 1 of 8. The word submitted leaves the number to the command sbatch or qsub."""
    ranks: int | str | None
    r"""Processes in all. The number of nodes follows from the devices of a node, or from --ranks-per-node."""
    hostfile: str | None
    r"""File with the hosts of a job without a scheduler, one a line: HOST, HOST slots=N, HOST:N or HOST*N. Start the script on the first host; it reaches the others by ssh."""
    gpus_per_node: int | str | None
    r"""Accelerators (GPUs or NPUs) per node; a100:4 requests 4 of the type a100. [default: one per rank]"""
    ranks_per_node: int | str | None
    r"""Processes per node. [default: one per accelerator]"""
    cpus_per_rank: int | str | None
    r"""Cores per rank, also OMP_NUM_THREADS. [default: 2; local: 1]"""
    cpus_per_node: int | str | None
    r"""Cores allocated per node, if more than the ranks use. [default: the cores of the ranks]"""
    mem: str | None
    r"""Memory per node, with a unit: 64G. [default: the queue's]"""
    exclusive: bool | None
    r"""Request the nodes exclusively."""
    accelerator: Literal["cuda", "npu", "rocm", "xpu", "cpu"] | None
    r"""Device of the ranks. [default: cuda; cpu with --gpus-per-node 0, and in jobgen local without it]"""
    launcher: Literal["deepspeed", "mpirun", "torchrun", "srun", "accelerate", "colossalai", "none"] | None
    r"""Program that starts the ranks. [default: that of the site, else deepspeed for the training module, torchrun for a Python program, mpirun or srun for several ranks of another program, none for one process of another program]"""
    mpi: Literal["openmpi", "mpich", "intel", "pals"] | None
    r"""MPI implementation. [default: openmpi, for mpirun]"""
    remote: Literal["auto", "ssh", "scheduler"] | None
    r"""How processes are started on the other nodes; auto uses the scheduler if it can start them."""
    launcher_arg: Sequence[str] | str | None
    r"""Additional argument of the launcher."""
    expand: bool | None
    r"""Replace $NAME, ${NAME} and $1 to $9 in the words of the program when the job runs."""
    cpu_bind: str | None
    r"""CPUs that each rank is bound to: an equal part of the cores, its NUMA nodes, or one of the lists of CPUs, such as '0-7;8-15'. [default: the site's lists, or the binding of the launcher]"""
    interface: str | None
    r"""Network interfaces for NCCL, HCCL and Open MPI over TCP, such as hsn0,hsn1; Gloo and others use the first. With ^ those that NCCL and HCCL must not use: ^lo,docker."""
    network: str | None
    r"""Network setting of the site, by its name, such as plugin; jobgen site show SITE lists them."""
    include: str | None
    r"""Hosts and devices to use, in the form of DeepSpeed's filter: host:0,1@host2."""
    exclude: str | None
    r"""Hosts and devices to leave out, in the same form."""
    master_addr: str | None
    r"""Address on the first node at which the ranks meet: a name in which {host} is the name of the node, such as 'ic-{host}'; an interface, such as interface:ib0; or an IP address. [default: the node's name]"""
    master_port: int | str | None
    r"""Port of the rendezvous. [default: a free port, derived from the job id]"""
    grace: str | timedelta | None
    r"""Time before the time limit at which the ranks are asked to save and exit; --signal NAME@TIME sets it, too. [default: 2m, or a tenth of a shorter time limit]"""
    signal: str | None
    r"""Signal that asks the ranks to save and exit, USR1 or USR2, and its time before the time limit. [default: USR1]"""
    requeue: int | str | None
    r"""Requeue the job, up to N times, if it ends with status 75 (not finished) and has made progress."""
    requeue_on: Literal["saved", "limit"] | None
    r"""When --requeue requeues the job. saved: it ends with status 75; limit: it reaches the time limit, whatever the status of the program then."""
    preflight: bool | None
    r"""Check hosts, devices, network and directories before the program starts. [default: with more than one node]"""
    spare_nodes: int | str | None
    r"""Request K more nodes, to replace nodes on which the preflight fails, or that --restarts finds lost."""
    restarts: int | str | None
    r"""Start the ranks again in the same allocation, up to N times, after a rank has failed or hangs, or a node is lost, if the run has made progress."""
    min_nodes: int | str | None
    r"""With --restarts, go on with fewer nodes, M at least, if too few are left. The program must support another number of ranks, as the training module does."""
    hang_timeout: str | timedelta | None
    r"""End a training that makes no step for this time, and keep the stacks of all ranks; or your own program, if it touches the file $JOBGEN_PROGRESS, and then not again for this time. [default: 30m, for a training]"""
    gpu_telemetry: bool | None
    r"""Measure the use and the memory of the devices on every node, for jobgen report and status."""
    node_limit: str | timedelta | None
    r"""Time in which shell code must end on each node, and a file be staged there. [default: 10m]"""
    module_init: Sequence[str] | str | None
    r"""Shell script to source before all modules, such as one that defines the command module, as an absolute path, ~/FILE, or ./FILE in the working directory; with arguments as --source."""
    module_purge: bool | None
    r"""Unload all modules first, also those that were loaded when the job was submitted."""
    module_use: Sequence[str] | str | None
    r"""Folder of modulefiles, as an absolute path or ~/DIR; the last one is searched first."""
    module: Sequence[str] | str | None
    r"""Module to load. NAME may also be another command of module: purge, reset, list, 'swap OLD NEW', 'unload NAME', 'use /DIR', 'restore NAME'. It may contain $VARIABLE, as of a file of module_init; so may the folders and files of the environment."""
    source: Sequence[str] | str | None
    r"""Shell script to source, as an absolute path, ~/FILE, or ./FILE in the working directory; behind a name that ends with .sh, its arguments."""
    conda: str | None
    r"""Conda environment, by name or path."""
    venv: str | os.PathLike[str] | None
    r"""Python virtual environment, or ~/DIR."""
    env: Mapping[str, str | int | float | None] | Sequence[str] | None
    r"""Environment variables of every rank: a table, or a list such as ["NAME=VALUE", "NAME"]."""
    env_file: Sequence[str] | str | None
    r"""File of lines NAME=VALUE: environment variables whose values no script contains."""
    container: (
        Literal["apptainer", "singularity", "docker", "podman", "enroot", "pyxis", "edf", "shifter"] | None
    )
    r"""Container runtime of the ranks."""
    image: str | None
    r"""Container image: a file, or a name that the runtime accepts."""
    bind: Sequence[str] | str | None
    r"""Directory or file of the host to mount in the container."""
    container_arg: Sequence[str] | str | None
    r"""Additional option of the container runtime."""
    early_setup: str | None
    r"""Shell code to run before the modules, files and environments of the job."""
    setup: str | None
    r"""Shell code to run after the environment is set up, before anything is checked."""
    before: str | None
    r"""Shell code to run on the first node before the ranks start."""
    after_block: str | None
    r"""Shell code to run on the first node after the ranks have ended; JOBGEN_STATUS is their status."""
    on_each_node: str | None
    r"""Shell code to run once on each node before the ranks start; a node where it fails is left out, or ends the job."""
    after_on_each_node: str | None
    r"""Shell code to run once on each node after the ranks have ended; JOBGEN_STATUS is their status."""
    workdir: str | os.PathLike[str] | None
    r"""Working directory of the program, or ~/DIR, or a path with $NAME, which the job enters behind early_setup. [default: the directory of submission]"""
    stage: Sequence[str] | str | None
    r"""File to copy to DEST in the folder $JOBGEN_STAGE on the disk of each node, or archive (.tar, .zip, .tar.gz, .tar.zst...) to unpack in the folder DEST there."""
    local_dir: str | None
    r"""Folder on the disk of each node, in which the job makes its own. [default: $SLURM_TMPDIR, $TMPDIR or /tmp]"""
    local_caches: bool | None
    r"""Keep the caches of Triton, Inductor, torch extensions, MIOpen, CUDA and Hugging Face's modules on the disk of each node while the job runs."""
    runs_dir: str | os.PathLike[str] | None
    r"""Parent of the run directories; each job creates NAME-JOBID in it."""
    group_readable: bool | None
    r"""Let your group read the run directory. Only you can read it otherwise."""
    rank_logs: Literal["node", "rank", "failed", "none"] | None
    r"""Which output of the ranks is kept: one file per node, one file per rank, only that of failed ranks, or none."""
    runtime: Literal["embedded", "beside"] | None
    r"""Place of the script's runtime: in the script, or in a second file next to it."""
    site: str | None
    r"""The site that it runs at: jobgen site list"""
    train: Mapping[str, Any] | None
    r"""The table [train] of a job file."""
    sweep: Mapping[str, Any] | None
    r"""The table [sweep] of a job file."""
    step: Mapping[str, Any] | None
    r"""The table [step] of a job file."""
    component: Mapping[str, Any] | None
    r"""The table [component] of a job file."""

class Changes(Settings, total=False):
    scheduler: str
    """pbs, slurm or local."""
    program: Sequence[str] | None
    """What every rank runs."""
