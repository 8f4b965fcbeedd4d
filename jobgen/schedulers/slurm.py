"""Slurm: https://slurm.schedmd.com/sbatch.html"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers.base import Behaviour, Grammar, Help, RequestKeys, Scheduler, matches, size
from jobgen.schedulers.slurm_options import LONG_OPTIONS, SHORT_OPTIONS
from jobgen.values import parsers
from jobgen.values.devices import COUNTED, SHARD, device_count
from jobgen.values.parsers import number

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.schedulers.jobs import JobCommands
    from jobgen.schedulers.request import DirectiveOption, Lack, Request


_TYPE_OF_GPUS = r"[\w.+-]*[A-Za-z_][\w.+-]*"  # in --gpus-per-node; --gres reads any type
_DEVICE_KEYS = frozenset({"--gres", "--gpus", "--gpus-per-node", "--gpus-per-task"})
_MEMORY_KEYS = ("--mem", "--mem-per-cpu", "--mem-per-gpu")


class Slurm(Scheduler):
    name = command_name = runtime = "slurm"
    title = "Slurm"
    template = "slurm.sh.j2"
    command = "sbatch"
    manual = "https://slurm.schedmd.com/sbatch.html"
    help = Help(
        "Print a script for Slurm.",
        "jobgen slurm --nodes 2 --gpus-per-node 4 --launcher torchrun -o job.sh -- train.py --lr 0.1",
        interactive="srun --nodes=1 {one} --pty jobgen doctor slurm",
        starter={"walltime": "1h", "nodes": 2, "gpus_per_node": 4, "launcher": "torchrun"},
        directive="--constraint=a100",
        constraint="a100",
        tested="Slurm 22.05 and 24.11",
    )
    keys = RequestKeys(
        nodes="--nodes",
        all=_DEVICE_KEYS | {"--nodes", "--ntasks-per-node", "--cpus-per-task"},
        devices=_DEVICE_KEYS,
        memory=_MEMORY_KEYS,
        alternatives=(frozenset(_MEMORY_KEYS),),
        refused_beside={
            "--cpus-per-gpu": ("--cpus-per-task", "--cpus-per-rank"),
            "--ntasks-per-gpu": ("--ntasks-per-node", "--ranks-per-node"),
        },
    )
    behaviour = Behaviour(sends_signal=True, requeues_tasks=True, sets_devices=True, equal_tasks=True)
    lacks_if_mixed = dict.fromkeys(
        ("array", "sweep"),
        "Slurm refuses arrays of heterogeneous jobs, which nodes that differ are; submit single jobs",
    )
    component_line = "hetjob"
    prefix = "#SBATCH"
    family = "Slurm"
    request_forms = {
        "name": "--job-name={}", "queue": "--partition={}", "account": "--account={}", "resources": "{}",
        "walltime": "--time={}", "array": "--array={}", "dependency": "--dependency={}",
        "output": "--output={}", "error": "--error={}",
        "mail": "--mail-type={}", "mail_user": "--mail-user={}",
        "directory": "--chdir={}", "exclusive": "{}", "hold": "--hold", "requeue": "--requeue",
        "no_requeue": "--no-requeue", "memory": "--mem={}", "signal": "--signal=B:{}@{}",
        "shifter_image": "--image={}",
        "nodes": "--nodes={}", "ranks_per_node": "--ntasks-per-node={}",
        "cpus_per_rank": "--cpus-per-task={}",
    }  # fmt: skip
    directive_order = (
        *("name", "request", "memory", "walltime", "log", "constant", "signal", "requeue", "tolerance"),
        *("options", "addressed", "site", "container", "late"),
    )
    tolerance = "--no-kill"
    constant_directives = ("--open-mode=append",)
    forms = {
        "reservation": "--reservation={}", "qos": "--qos={}", "constraint": "--constraint={}",
        "licenses": "--licenses={}", "comment": '--comment="{}"', "begin": "--begin={}",
        "priority": "--nice={}", "exclusive": "--exclusive",
    }  # fmt: skip
    grammar = Grammar(
        letters="a:A:b:B:c:C:d:D:e:F:G:hHi:J:kL:m:M:n:N:o:Op:q:QsS:t:vVw:Wx:",
        long_options=LONG_OPTIONS,
        short_options=SHORT_OPTIONS,
        heeds_all=frozenset({"--mail-type"}),
        escapes=False,
        comments=True,
        joins=True,
    )
    one_file_a_task = frozenset("aj")
    node_step = agent = "srun"

    submit_commands = ("sbatch", "squeue")
    node_commands = ("scontrol", "srun")
    default_launcher = "srun"

    def jobs(self) -> JobCommands:
        from jobgen.schedulers import slurm_jobs

        return slurm_jobs

    def cluster(self) -> ClusterCommands:
        from jobgen.schedulers import slurm_cluster

        return slurm_cluster

    def misplaced(self, line: str) -> str | None:
        wrong = re.match(r"-(l|W|S|j)\b", line)
        return "is a directive of PBS; Slurm has options such as --constraint=gpu" if wrong else None

    def settings(self, option: DirectiveOption) -> Iterator[tuple[str, DirectiveOption]]:
        for part in option.value.split(",") if option.flag == "--tres-per-task" else ():
            match = re.fullmatch(r"(cpu|gres[/:]gpu)[:=](.+)", part)
            flag = {"c": "--cpus-per-task", "g": "--gpus-per-task"}[match[1][0]] if match else option.flag
            yield flag, option._replace(flag=flag, value=match[2].replace("=", ":") if match else part)
        if option.flag != "--tres-per-task":
            yield option.flag, option

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

    def devices(self, accelerator: Accelerator, kind: str = "") -> str | None:
        if kind == SHARD:
            return f"--gres={SHARD}:{{n}}" if accelerator.gres else None
        if kind and accelerator.gres and not matches(_TYPE_OF_GPUS, kind):
            return accelerator.gres.replace("--gpus-per-node=", "--gres=gpu:")
        return accelerator.gres

    def typed(self, kind: str, resource: str) -> str:
        return "{n}" if kind == SHARD else f"{kind}:{{n}}"

    def memory(self, mib: int, nodes: int) -> str:
        return size(mib).upper()

    def dependency(self, kind: str, job: str) -> str:
        if not re.fullmatch(r"\d+(_\d+)?", job):
            raise ValueError(f"{job} is not an id of Slurm, such as 12 or 12_3")
        return kind

    def default_log(self, name: str, array: bool) -> str:
        return f"{name}-{'%A_%a' if array else '%j'}.log"

    def resources(self, request: Request, devices: str, chunk: str) -> tuple[list[str], list[Lack]]:
        lines = self._node_lines(request.nodes, request.ranks_per_node, request.cpus_per_rank, devices)
        if request.ranks and not request.nodes and not request.ranks_per_node:  # sizes are those of a rank
            memory = size(request.mem // (request.cpus_per_rank or 1)).upper() if request.mem else ""
            lines = [f"--ntasks={request.ranks}", *lines, *[f"--mem-per-cpu={memory}"] * bool(memory)]
        elif request.mem:
            lines.append(self.request_forms["memory"].format(size(request.mem).upper()))
        return lines, []

    def node_lines(self, resources: Resources, chunk: str, place: str) -> list[str]:
        nodes, ranks = resources.allocated or "N", resources.ranks_per_node
        return self._node_lines(nodes, ranks, resources.cpus.task, resources.devices)

    def _node_lines(
        self, nodes: int | str | None, ranks: int | str | None, cpus: int | str | None, devices: str | None
    ) -> list[str]:
        values = {"nodes": nodes, "ranks_per_node": ranks, "cpus_per_rank": cpus}
        lines = [self.request_forms[key].format(one) for key, one in values.items() if one is not None]
        return [*lines, devices] if devices else lines

    def sizes(self, given: Mapping[str, str]) -> Request:
        request = super().sizes(given)
        request.cpus_per_rank = number(given.get("--cpus-per-task"))
        request.mem = parsers.mebibytes(given["--mem"]) if "--mem" in given else None
        _read_ranks(request, given)
        _read_devices(request, given)
        return request


def _read_ranks(request: Request, given: Mapping[str, str]) -> None:
    """Set the nodes and ranks; of nodes, ranks and ranks per node the third follows from two."""
    least, _, most = given.get("--nodes", "").partition("-")
    request.nodes = number(least) if most in ("", least) else None
    request.ranks = number(given.get("--ntasks"))
    request.ranks_per_node = number(given.get("--ntasks-per-node"))
    if request.ranks is None and request.ranks_per_node and request.nodes:
        request.ranks = request.ranks_per_node * request.nodes
    if request.nodes is None and request.ranks and request.ranks_per_node:
        request.nodes = -(-request.ranks // request.ranks_per_node)


def _read_devices(request: Request, given: Mapping[str, str]) -> None:
    from jobgen.launch.accelerators import GENERIC_RESOURCES

    each, request.gpus, request.gpus_per_node = (
        device_count(given.get(f"--gpus{per}", "")) for per in ("-per-task", "", "-per-node")
    )
    for flag in ("--gpus", "--gpus-per-node", "--gpus-per-task"):
        request.gpu_type = _type(given.get(flag, "")) or request.gpu_type
    counts: dict[str | None, int] = {}  # of a type that is there twice the last number counts
    for part in given.get("--gres", "").split(","):
        kind, _, count = re.sub(r"^gres[/:]", "", part).partition(":")
        devices = number(part.rpartition(":")[2])
        if kind in ("gpu", *GENERIC_RESOURCES) and devices != 0:
            counts[_type(count)] = devices or 1
            request.gpus_per_node, request.accelerator = sum(counts.values()), kind
    if counts.keys() - {None}:
        request.gpu_type = next(iter(counts)) if len(counts) == 1 else None
    if request.gpus_per_node is None and each and request.ranks_per_node:
        request.gpus_per_node = each * request.ranks_per_node
    if request.gpus_per_node is None and request.gpus and request.nodes:
        request.gpus_per_node = request.gpus // request.nodes
    gpus = request.gpus or (request.gpus_per_node or 0) * (request.nodes or 0)
    if each and gpus and request.ranks is None and not request.ranks_per_node:
        request.ranks = gpus // each
        if request.nodes and request.ranks % request.nodes == 0:
            request.ranks_per_node = request.ranks // request.nodes
    each = number(given.get("--ntasks-per-gpu"))
    if each and request.ranks is None and not request.ranks_per_node:
        gpus = (request.gpus_per_node or 0) * (request.nodes or 0)
        if request.gpus in (None, gpus):
            request.ranks_per_node = each * request.gpus_per_node if request.gpus_per_node else None
        request.ranks = each * (request.gpus or gpus) or None


def _type(text: str) -> str | None:
    """Return the type in ``a100:4`` or ``a100``; None without one, or with several."""
    found = COUNTED.fullmatch(text)
    return found[1] if found else None


SLURM = Slurm()
