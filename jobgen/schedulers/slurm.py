"""Slurm: https://slurm.schedmd.com/sbatch.html"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers.base import Scheduler, matches, size

if TYPE_CHECKING:
    from jobgen.check.directive_reader import Option
    from jobgen.check.request import Request
    from jobgen.resources.accelerators import Accelerator
    from jobgen.schedulers.wanted import Wanted


class Slurm(Scheduler):
    name = command_name = runtime = "slurm"
    title = "Slurm"
    template = "slurm.sh.j2"
    command = "sbatch"
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

    # Conversion
    family = "Slurm"
    prefix = "#SBATCH"
    request_forms = {
        "name": "--job-name={}", "queue": "--partition={}", "account": "--account={}", "resources": "{}",
        "walltime": "--time={}", "array": "{}", "dependency": "{}", "output": "--output={}",
        "error": "--error={}", "mail": "--mail-type={}", "mail_user": "--mail-user={}",
        "directory": "--chdir={}", "exclusive": "{}", "hold": "--hold", "requeue": "--requeue",
        "no_requeue": "--no-requeue",
    }  # fmt: skip
    memory_per_core = "--mem-per-cpu"
    feature_separator = "&"
    percent_codes = True
    job_variables = {
        "SLURM_SUBMIT_DIR": "submit_dir", "SLURM_SUBMIT_HOST": "submit_host", "SLURM_JOB_ID": "job_id",
        "SLURM_JOBID": "job_id", "SLURM_JOB_NAME": "job_name", "SLURM_JOB_PARTITION": "queue",
        "SLURM_ARRAY_TASK_ID": "array_index", "SLURM_JOB_NODELIST": "node_list",
        "SLURM_NODELIST": "node_list", "SLURM_JOB_NUM_NODES": "nodes", "SLURM_NNODES": "nodes",
        "SLURM_NTASKS": "ranks", "SLURM_NPROCS": "ranks", "SLURM_NTASKS_PER_NODE": "ranks_per_node",
        "SLURM_CPUS_PER_TASK": "cpus_per_rank", "SLURM_CPUS_ON_NODE": "cpus_per_node",
        "SLURM_GPUS_ON_NODE": "gpus_per_node", "SLURM_GPUS_PER_NODE": "gpus_per_node",
    }  # fmt: skip
    substitutes = {
        **Scheduler.substitutes, "array_id": "SLURM_ARRAY_JOB_ID", "slots": "SLURM_NTASKS",
        "slots_per_node": "SLURM_NTASKS_PER_NODE", "chunks": "SLURM_JOB_NUM_NODES",
        "cpus_per_chunk": "SLURM_CPUS_ON_NODE",
    }  # fmt: skip
    variable_prefix = "SLURM_"
    host_list = ("scontrol", "show", "hostnames")
    commands = ("scontrol", "sbatch", "scancel", "squeue", "sacct", "sinfo", "sbcast", "sstat", "salloc")

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

    # Conversion

    def read_value(self, key: str, value: str) -> str:
        from jobgen.schedulers import slurm_conversion

        return slurm_conversion.value(key, value)

    def read_more(self, wanted: Wanted, given: Mapping[str, Option]) -> None:
        from jobgen.schedulers import slurm_conversion

        slurm_conversion.read(self, wanted, given)

    def resources(self, asked: Request, devices: str, chunk: str) -> tuple[list[str], list[tuple[str, str]]]:
        forms = {
            "--nodes={}": asked.nodes,
            "--ntasks-per-node={}": asked.ranks_per_node,
            "--cpus-per-task={}": asked.cpus_per_rank,
            "{}": devices or None,
            "--mem={}M": asked.mem or None,
        }
        return [form.format(value) for form, value in forms.items() if value is not None], []

    def write_node_file(self, variable: str, slots: int) -> list[str]:
        each = f" | awk '{{ for (i = 0; i < {slots}; i++) print }}'" if slots > 1 else ""
        return [
            f"{variable}=${{TMPDIR:-/tmp}}/nodefile.$SLURM_JOB_ID",
            f'scontrol show hostnames "$SLURM_JOB_NODELIST"{each} > "${variable}"',
            f"export {variable}",
        ]


SLURM = Slurm()
