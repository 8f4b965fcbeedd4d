"""The settings of a JobSpec, for editors; written by tests/write_settings.py from the table of options."""

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
    r"""Time limit: 2h30m, 90m, HH:MM:SS or D-HH:MM:SS. [default: 1h]"""
    mail: str | None
    r"""Mail at the begin, the end and on failure."""
    array: str | None
    r"""Many tasks, each told its JOBGEN_TASK: 0-9, 0-20:5 or 1,3,7; 0-9%3 runs 3 of them at a time."""
    after: Sequence[str] | str | None
    r"""Wait for a job to end well, or as afterany:ID, afternotok:ID, after:ID say."""
    reservation: str | None
    r"""Run in this reservation."""
    qos: str | None
    r"""Quality of service."""
    constraint: str | None
    r"""Only nodes with it: a100 or a100&ib (Slurm), NAME=VALUE (PBS Pro), a property (Torque)."""
    licenses: str | None
    r"""Licenses."""
    comment: str | None
    r"""A comment that the scheduler keeps."""
    mail_on: str | None
    r"""When to send mail: some of begin,end,fail; or none. [default: all three, with --mail]"""
    log: str | None
    r"""Where the output goes; the directory has to be there. %x is the job's name, %j its id, %A and %a the id and the index of an array. [default: the scheduler's, beside the script]"""
    begin: str | None
    r"""Not before: 2030-01-31T20:00, 20:00, or +2h (Slurm)."""
    priority: int | str | None
    r"""Among your own jobs, from -1024 to 1023; Slurm only lowers it, as --nice."""
    directive: Sequence[str] | str | None
    r"""One more directive, such as '-l filesystems=home'; it wins over ours."""
    dialect: Literal["pbspro", "torque"] | None
    r"""Which PBS: OpenPBS and PBS Pro, or Torque. [default: pbspro]"""
    nodes: int | str | None
    r"""Nodes; 2x4+1x8 are 2 nodes of 4 ranks and 1 of 8 (PBS)."""
    gpus_per_node: int | str | None
    r"""Accelerators a node (GPUs or NPUs). [default: one a rank]"""
    ranks_per_node: int | str | None
    r"""Processes a node. [default: one an accelerator]"""
    cpus_per_rank: int | str | None
    r"""Cores of each rank, also OMP_NUM_THREADS. [default: 2; local: 1]"""
    cpus_per_node: int | str | None
    r"""Cores that are allocated on a node, if more than the ranks use. [default: those of its ranks]"""
    mem: str | None
    r"""Memory a node, with a unit: 64G. [default: the queue's]"""
    exclusive: bool | None
    r"""Share the nodes with no other job."""
    accelerator: Literal["cuda", "npu", "rocm", "xpu", "cpu"] | None
    r"""What the ranks compute on. [default: cuda; cpu with --gpus-per-node 0, or locally without it]"""
    launcher: Literal["deepspeed", "mpirun", "torchrun", "srun"] | None
    r"""What starts the ranks."""
    mpi: Literal["openmpi", "mpich", "intel", "pals"] | None
    r"""Whose mpirun it is. [default: openmpi, for mpirun]"""
    remote: Literal["auto", "ssh", "scheduler"] | None
    r"""How the other nodes are reached; auto takes the scheduler's way where there is one."""
    launcher_arg: Sequence[str] | str | None
    r"""One more argument of the launcher."""
    cpu_bind: str | None
    r"""What each rank keeps to: its share of the node's cores, its NUMA nodes, or one of the lists of processors, such as '0-7;8-15'. [default: as the launcher does]"""
    interface: str | None
    r"""Network interfaces for NCCL, Gloo, HCCL and MPI over TCP: hsn0,hsn1."""
    include: str | None
    r"""DeepSpeed's filter of devices: host:0,1@host2."""
    exclude: str | None
    r"""The same, of devices to leave out."""
    master_port: int | str | None
    r"""Port of the rendezvous. [default: a free one, from the job id]"""
    grace: str | timedelta | None
    r"""How long before the end of its time the training saves and leaves. [default: 2m, or a tenth of a shorter wall time]"""
    signal: str | None
    r"""What tells the ranks to save and leave: USR1 or USR2, and how long before the end. [default: USR1]"""
    requeue: int | str | None
    r"""Submit the job again, up to N times, as long as it ends with status 75 (not finished) and gets on."""
    preflight: bool | None
    r"""Check hosts, devices, network and directories with the same launcher first. [default: with more than one node]"""
    spare_nodes: int | str | None
    r"""Ask for K nodes more, in case the preflight fails on some."""
    stall: str | timedelta | None
    r"""End a training that makes no step for so long, with the stacks of all ranks. [default: 30m]"""
    module: Sequence[str] | str | None
    r"""Module to load."""
    source: Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None
    r"""Script to source, by its absolute path."""
    conda: str | None
    r"""Conda environment, by name or path."""
    venv: str | os.PathLike[str] | None
    r"""Python virtual environment."""
    env: Mapping[str, str | int | float] | Sequence[str] | None
    r"""Environment variables of every rank."""
    container: Literal["apptainer", "singularity", "docker", "podman", "enroot", "pyxis", "shifter"] | None
    r"""What the ranks run in."""
    image: str | None
    r"""Its image: a file, or a name as the runtime has it."""
    bind: Sequence[str] | str | None
    r"""Directory or file of the host in it, beside those of the job."""
    container_arg: Sequence[str] | str | None
    r"""One more option of the runtime."""
    setup: str | None
    r"""Shell code that is sourced when the environment is up, before anything is checked."""
    before: str | None
    r"""Shell code that runs on the first node just before the ranks start."""
    after_block: str | None
    r"""Shell code that runs there after the ranks have ended, with their JOBGEN_STATUS."""
    workdir: str | os.PathLike[str] | None
    r"""Where the program runs. [default: where the job is submitted]"""
    run_dir: str | os.PathLike[str] | None
    r"""Where each job makes a directory NAME-JOBID of its own."""
    rank_logs: Literal["node", "rank", "failed", "none"] | None
    r"""What is kept of the output of each rank: one file for each node, one for each rank, only the output of the ranks that failed, or nothing."""
    runtime: Literal["embedded", "beside"] | None
    r"""Where the runtime of the script is: in the script, or in a second file next to it."""
    site: str | None
    r"""The site that it runs at: jobgen site list"""
    train: Mapping[str, Any] | None
    r"""The table [train] of a job file."""
    sweep: Mapping[str, Any] | None
    r"""The table [sweep] of a job file."""

class Changes(Settings, total=False):
    scheduler: str
    """pbs, slurm or local."""
    program: Sequence[str] | None
    """What every rank runs."""
