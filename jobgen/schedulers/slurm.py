"""Slurm: https://slurm.schedmd.com/sbatch.html"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobgen.schedulers.base import Scheduler, matches, size

if TYPE_CHECKING:
    from jobgen.resources.accelerators import Accelerator
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.schedulers.jobs import JobCommands


class Slurm(Scheduler):
    name = command_name = runtime = "slurm"
    title = "Slurm"
    template = "slurm.sh.j2"
    command = "sbatch"
    summary = "Print a script for Slurm."
    example = "jobgen slurm --nodes 2 --gpus-per-node 4 --launcher torchrun -o job.sh -- train.py --lr 0.1"
    manual = "https://slurm.schedmd.com/sbatch.html"
    lacks = {"dialect": "is only for PBS"}
    lacks_if_mixed = {
        "nodes": "Slurm gives all nodes of a job the same share (the components of a hetjob are several "
        "steps): say a number of nodes and --ranks-per-node"
    }
    forms = {
        "reservation": "--reservation={}",
        "qos": "--qos={}",
        "constraint": "--constraint={}",
        "licenses": "--licenses={}",
        "comment": '--comment="{}"',
        "begin": "--begin={}",
        "priority": "--nice={}",
        "exclusive": "--exclusive",
    }
    option_pattern = r"--?[A-Za-z][^\x00-\x1f\x7f\u2028\u2029]*"
    option_rule = "an option of sbatch, such as --gres=gpu:4"
    letters = "a:A:b:B:c:C:d:D:e:F:G:hHi:IJ:k:K:L:m:M:n:N:o:Op:q:QsS:t:uvVw:Wx:"
    heeds_all = frozenset({"--mail-type"})
    array_form = "--array={}"
    dependency_form = "--dependency={}"
    memory_options = ("--mem", "--mem-per-cpu", "--mem-per-gpu")
    one_file_a_task = frozenset("aj")
    sends_signal = requeues_tasks = sets_devices = equal_tasks = True
    node_step = agent = "srun"

    submit_commands = ("sbatch", "squeue")
    node_commands = ("scontrol", "srun")
    interactive = "srun --nodes=1 {one} --pty jobgen doctor slurm"
    default_launcher = "srun"
    starter = {"walltime": "1h", "nodes": 2, "gpus_per_node": 4, "launcher": "torchrun"}
    example_directive = "--constraint=a100"
    example_constraint = "a100"

    def jobs(self) -> JobCommands:
        from jobgen.schedulers import slurm_jobs

        return slurm_jobs

    def cluster(self) -> ClusterCommands:
        from jobgen.schedulers import slurm_cluster

        return slurm_cluster

    def misplaced(self, line: str) -> str | None:
        wrong = re.match(r"-(l|W|S|j)\b", line)
        return "is PBS; Slurm takes options such as --constraint=gpu" if wrong else None

    def value(self, key: str, value: object) -> object:
        if key == "begin":
            text = str(value)
            return f"now+{text[1:]}" if text[0] == "+" else text
        if key == "priority":
            assert isinstance(value, int)
            if value > 0:
                raise ValueError("only an operator of Slurm may raise it; use 0 or less")
            return -value
        if key == "constraint" and not matches(r"[\w.&|*()\[\],=:@+-]+", value):
            raise ValueError("must be features of nodes without blanks, such as a100 or a100&ib")
        return value

    def devices(self, accelerator: Accelerator) -> str | None:
        return accelerator.gres

    def memory(self, mib: int, nodes: int, processes: int) -> str:
        return size(mib).upper()

    def site_request(self, gres: str | None) -> list[str]:
        lines = ["--nodes={nodes}", "--ntasks-per-node={ranks_per_node}", "--cpus-per-task={cpus_per_task}"]
        return [*lines, f"--gres={gres}:{{gpus_per_node}}"] if gres is not None else lines

    def dependency(self, kind: str, job: str) -> str:
        if not re.fullmatch(r"\d+(_\d+)?", job):
            raise ValueError(f"{job} is no id of Slurm, which are 12 or 12_3")
        return kind

    def default_log(self, name: str, array: bool) -> str:
        return f"{name}-{'%A_%a' if array else '%j'}.log"


SLURM = Slurm()
