"""Slurm: https://slurm.schedmd.com/sbatch.html"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers import torque
from jobgen.schedulers.base import EVENTS, Scheduler, matches, size
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.slurm_options import LONG_OPTIONS, OF_STEPS, SHORT_OPTIONS, SPANS
from jobgen.values import parsers

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.schedulers.jobs import JobCommands
    from jobgen.schedulers.request import Option, Request
    from jobgen.schedulers.wanted import Lack, Wanted


class Slurm(Scheduler):
    name = command_name = runtime = "slurm"
    title = "Slurm"
    template = "slurm.sh.j2"
    command = "sbatch"
    summary = "Print a script for Slurm."
    example = "jobgen slurm --nodes 2 --gpus-per-node 4 --launcher torchrun -o job.sh -- train.py --lr 0.1"
    manual = "https://slurm.schedmd.com/sbatch.html"
    tested = "Slurm 22.05 and 24.11"
    lacks = {
        "dialect": "is only for PBS",
        "hostfile": "Slurm chooses the hosts; a list of them is for jobgen local",
    }
    lacks_if_mixed = {
        "nodes": "Slurm allocates the same resources on all nodes of a job (the components of a hetjob are "
        "several steps): use a number of nodes and --ranks-per-node"
    }
    prefix = "#SBATCH"
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
    letters = "a:A:b:B:c:C:d:D:e:F:G:hHi:J:kL:m:M:n:N:o:Op:q:QsS:t:vVw:Wx:"
    heeds_all = frozenset({"--mail-type"})
    not_in_scripts = {
        "--wait": "use jobgen submit --wait", "--test-only": "use jobgen submit --dry-run",
        "--wrap": "use -- {}", "--parsable": "", "--quiet": "", "--verbose": "",
    }  # fmt: skip
    own_values = {
        "--signal": (r"[BR]{1,2}:(\S+)", r"--signal \1"),
        "--exclude": (r"[\w.,\[\]-]+", r"--directive=--exclude=\g<0>"),
    }
    names_option = "--export"
    array_form = "--array={}"
    dependency_form = "--dependency={}"
    nodes_key = "--nodes"
    device_keys = frozenset({"--gres", "--gpus", "--gpus-per-node", "--gpus-per-task"})
    request_keys = device_keys | {"--nodes", "--ntasks-per-node", "--cpus-per-task"}
    memory_form = "--mem={}"
    memory_keys = ("--mem", "--mem-per-cpu", "--mem-per-gpu")
    size_options = (*memory_keys, "--tmp")
    alternatives = (frozenset(memory_keys),)
    refused_beside = {
        "--cpus-per-gpu": ("--cpus-per-task", "--cpus-per-rank"),
        "--ntasks-per-gpu": ("--ntasks-per-node", "--ranks-per-node"),
    }
    one_file_a_task = frozenset("aj")
    directive_comments = True
    component_words = frozenset({"hetjob", "packjob"})
    long_options = LONG_OPTIONS
    short_options = SHORT_OPTIONS
    step_options = OF_STEPS
    option_versions = SPANS
    time_pattern = r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}"
    time_forms = "minutes, M:S, H:M:S, D-H, D-H:M and D-H:M:S"
    unlimited = frozenset({"infinite", "unlimited"})
    bare_size = (r"[1-9]\d?|1\d\d", "megabytes", "G")
    size_pattern = r"\+?\d+(?:[kmgt]b?)?"
    size_units = "K, M, G and T"
    size_example = "write 64G instead of 64GiB, and 1536M instead of 1.5G"
    array_forms = "a list of numbers and FIRST-LAST:STEP, then %LIMIT"
    log_options = ("--output", "--error", "--input")
    log_words = "%j and %x"
    percent_codes = True
    escapes = False
    foreign_options = {"-l": ("PBS", "")}
    foreign_variables = {
        "PBS_O_WORKDIR": "SLURM_SUBMIT_DIR",
        "PBS_JOBID": "SLURM_JOB_ID",
        "PBS_NODEFILE": "scontrol show hostnames",
        **torque.VARIABLES,
        "PBS_ARRAYID": "SLURM_ARRAY_TASK_ID",
        "PBS_ARRAY_INDEX": "SLURM_ARRAY_TASK_ID",
    }
    default_nodes = 1
    needs_shebang = True
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
    size_keys = {
        "cpus": ("--cpus-per-task", "--cpus-per-gpu"), "ranks": ("--ntasks", "--ntasks-per-node"),
        "gpus": ("--gpus-per-node", "--gres", "--gpus", "--gpus-per-task"),
    }  # fmt: skip
    request_forms = {
        "name": "--job-name={}", "queue": "--partition={}", "account": "--account={}", "resources": "{}",
        "walltime": "--time={}", "array": "{}", "dependency": "{}", "output": "--output={}",
        "error": "--error={}", "mail": "--mail-type={}", "mail_user": "--mail-user={}",
        "directory": "--chdir={}", "exclusive": "{}", "hold": "--hold", "requeue": "--requeue",
        "no_requeue": "--no-requeue",
    }  # fmt: skip
    feature_separator = "&"
    own_logs = r"\bslurm-[\w*?%${}-]*\.?out\b"
    no_index = "4294967294"  # NO_VAL of slurm.h
    job_variables = {
        "SLURM_SUBMIT_DIR": "submit_dir", "SLURM_SUBMIT_HOST": "submit_host", "SLURM_JOB_ID": "job_id",
        "SLURM_JOBID": "job_id", "SLURM_JOB_NAME": "job_name", "SLURM_JOB_PARTITION": "queue",
        "SLURM_ARRAY_TASK_ID": "array_index", "SLURM_ARRAY_JOB_ID": "array_job",
        "SLURM_ARRAY_TASK_COUNT": "array_count", "SLURM_ARRAY_TASK_MIN": "array_first",
        "SLURM_ARRAY_TASK_MAX": "array_last", "SLURM_ARRAY_TASK_STEP": "array_step",
        "SLURM_JOB_NODELIST": "node_list",
        "SLURM_NODELIST": "node_list", "SLURM_JOB_NUM_NODES": "nodes", "SLURM_NNODES": "nodes",
        "SLURM_NTASKS": "ranks", "SLURM_NPROCS": "ranks", "SLURM_NTASKS_PER_NODE": "ranks_per_node",
        "SLURM_CPUS_PER_TASK": "cpus_per_rank", "SLURM_CPUS_ON_NODE": "cpus_per_node",
        "SLURM_JOB_CPUS_PER_NODE": "cpus_per_node", "SLURM_MEM_PER_NODE": "mem_per_node",
        "SLURM_JOB_USER": "user", "SLURMD_NODENAME": "host",
        "SLURM_GPUS_ON_NODE": "gpus_per_node", "SLURM_GPUS_PER_NODE": "gpus_per_node",
    }  # fmt: skip
    substitutes = {
        **Scheduler.substitutes, "array_id": "SLURM_ARRAY_JOB_ID", "slots": "SLURM_NTASKS",
        "slots_per_node": "SLURM_NTASKS_PER_NODE", "chunks": "SLURM_JOB_NUM_NODES",
        "cpus_per_chunk": "SLURM_CPUS_ON_NODE",
    }  # fmt: skip
    variable_prefix = "SLURM_"
    gpus_of_rank = "--gpus-per-task"
    set_if_asked = ("cpus_per_rank", "ranks_per_node")
    zeros = frozenset({"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"})
    show_job = ("scontrol", "show", "job", '"$SLURM_JOB_ID"')
    host_list = ("scontrol", "show", "hostnames")
    commands = ("scontrol", "sbatch", "scancel", "squeue", "sacct", "sinfo", "sbcast", "sstat", "salloc")

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
                raise ValueError("only an operator of Slurm may increase it; use 0 or less")
            return -value
        if key == "constraint" and not matches(r"[\w.&|*()\[\],=:@+-]+", value):
            raise ValueError("must be features of nodes without blanks, such as a100 or a100&ib")
        return value

    def devices(self, accelerator: Accelerator) -> str | None:
        return accelerator.gres

    def devices_option(self, number: int, kind: str, accelerator: str) -> str:
        return f"--gres={':'.join(filter(None, (accelerator, kind, str(number))))}"

    def typed(self, kind: str, resource: str) -> str:
        return f"{kind}:{{n}}"

    def memory(self, mib: int, nodes: int, processes: int) -> str:
        return size(mib).upper()

    def site_request(self, gres: str | None) -> list[str]:
        lines = ["--nodes={nodes}", "--ntasks-per-node={ranks_per_node}", "--cpus-per-task={cpus_per_task}"]
        return [*lines, f"--gres={gres}:{{gpus_per_node}}"] if gres is not None else lines

    def dependency(self, kind: str, job: str) -> str:
        if not re.fullmatch(r"\d+(_\d+)?", job):
            raise ValueError(f"{job} is not an id of Slurm, such as 12 or 12_3")
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

    def resources(self, asked: Request, devices: str, chunk: str) -> tuple[list[str], list[Lack]]:
        forms = {
            "--nodes={}": asked.nodes,
            "--ntasks-per-node={}": asked.ranks_per_node,
            "--cpus-per-task={}": asked.cpus_per_rank,
            "{}": devices or None,
            "--mem={}": size(asked.mem).upper() if asked.mem else None,
        }
        return [form.format(value) for form, value in forms.items() if value is not None], []

    def node_lines(self, resources: Resources, chunk: str, place: str) -> list[str]:
        return [
            f"--nodes={resources.allocated or 'N'}",
            f"--ntasks-per-node={resources.ranks_per_node}",
            f"--cpus-per-task={resources.cpus.task}",
            *([resources.devices] if resources.devices else []),
        ]

    def write_node_file(self, variable: str, slots: int) -> list[str]:
        each = f" | awk '{{ for (i = 0; i < {slots}; i++) print }}'" if slots > 1 else ""
        return [
            f"{variable}=${{TMPDIR:-/tmp}}/nodefile.$SLURM_JOB_ID",
            f'scontrol show hostnames "$SLURM_JOB_NODELIST"{each} > "${variable}"',
            f"export {variable}",
        ]

    def takes_value(self, key: str) -> bool:
        return LONG_OPTIONS.get(key[2:]) == "="

    def seconds(self, text: str) -> int | None:
        """Return a time limit; with days, hours come first, and a number alone is minutes."""
        missing = 2 - text.count(":") if "-" in text else text.isdigit()
        return super().seconds(text) and parsers.seconds(text + ":00" * missing)

    def accepts_time(self, text: str) -> bool:
        # One dash is accepted before or after the minutes.
        return super().accepts_time(text) or matches(r"-\d+|\d+-", text)

    def accepts_array(self, text: str) -> bool:
        from jobgen.schedulers.slurm_values import is_array

        return is_array(text)

    def value_fault(self, key: str, value: str, version: str | None = None) -> str:
        from jobgen.schedulers.slurm_values import value_fault

        return value_fault(key, value, version)

    def together_faults(self, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        from jobgen.schedulers.slurm_values import together_faults

        return together_faults(given)

    def request(self, given: Mapping[str, str]) -> Request:
        from jobgen.schedulers.request import number

        asked = super().request(given)
        asked.join = asked.error in (None, asked.output)
        asked.mail = _mail(given.get("--mail-type", ""))
        # With =user and similar values, other jobs may share the node.
        asked.exclusive = given.get(self.forms["exclusive"]) == ""
        asked.rerun = True if "--requeue" in given else False if "--no-requeue" in given else None
        asked.cpus_per_rank = number(given.get("--cpus-per-task"))
        asked.mem = parsers.mebibytes(given["--mem"]) if "--mem" in given else None
        _read_ranks(asked, given)
        _read_devices(asked, given)
        return asked


def _read_ranks(asked: Request, given: Mapping[str, str]) -> None:
    """Set the nodes and ranks; of nodes, ranks and ranks per node the third follows from two."""
    from jobgen.schedulers.request import number

    least, _, most = given.get("--nodes", "").partition("-")
    asked.nodes = number(least) if most in ("", least) else None
    asked.ranks, asked.ranks_per_node = number(given.get("--ntasks")), number(given.get("--ntasks-per-node"))
    if asked.ranks is None and asked.ranks_per_node and asked.nodes:
        asked.ranks = asked.ranks_per_node * asked.nodes
    if asked.nodes is None and asked.ranks and asked.ranks_per_node:
        asked.nodes = -(-asked.ranks // asked.ranks_per_node)


def _read_devices(asked: Request, given: Mapping[str, str]) -> None:
    from jobgen.launch.accelerators import GENERIC_RESOURCES
    from jobgen.schedulers.request import number

    each, asked.gpus, asked.gpus_per_node = (
        _devices(given.get(f"--gpus{per}", "")) for per in ("-per-task", "", "-per-node")
    )
    for flag in ("--gpus", "--gpus-per-node", "--gpus-per-task"):
        asked.gpu_type = _type(given.get(flag, "")) or asked.gpu_type
    for part in given.get("--gres", "").split(","):
        kind, _, count = re.sub(r"^gres[/:]", "", part).partition(":")
        devices = number(part.rpartition(":")[2])
        if kind in ("gpu", *GENERIC_RESOURCES) and devices != 0:
            asked.gpus_per_node, asked.accelerator = devices or 1, kind
            asked.gpu_type = (
                _type(count if ":" in count or count.isdecimal() else f"{count}:1") or asked.gpu_type
            )
    if asked.gpus_per_node is None and each and asked.ranks_per_node:
        asked.gpus_per_node = each * asked.ranks_per_node
    if asked.gpus_per_node is None and asked.gpus and asked.nodes:
        asked.gpus_per_node = asked.gpus // asked.nodes
    if (each := number(given.get("--ntasks-per-gpu"))) and asked.ranks is None and not asked.ranks_per_node:
        gpus = (asked.gpus_per_node or 0) * (asked.nodes or 0)
        if asked.gpus in (None, gpus):
            asked.ranks_per_node = each * asked.gpus_per_node if asked.gpus_per_node else None
        asked.ranks = each * (asked.gpus or gpus) or None


def _type(text: str) -> str | None:
    """Return the type in ``a100:4``; None without one, or with several."""
    found = re.fullmatch(r"(\w[\w.-]*):\d+", text, re.ASCII)
    return found[1] if found else None


def _devices(text: str) -> int | None:
    """Return the sum of ``4``, ``a100:4`` or ``v100:2,k80:1``."""
    from jobgen.schedulers.request import number

    counts = [number(part.rpartition(":")[2]) for part in text.split(",")]
    return None if None in counts else sum(filter(None, counts))


def _mail(types: str) -> str:
    """Return Slurm's mail events as the letters of PBS."""
    letters = {"ALL": "abe", **{EVENTS[event]: letter for event, letter in EVENT_LETTERS.items()}}
    found = {letter for name in types.upper().split(",") for letter in letters.get(name.strip(), "")}
    return "".join(sorted(found - {"n"} or found))


SLURM = Slurm()
