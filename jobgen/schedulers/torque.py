"""Torque: https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm

advres, qos and naccesspolicy are resources of Moab.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.schedulers.base import Grammar, matches, size
from jobgen.schedulers.pbs import Pbs
from jobgen.values.arrays import Ranges, without_steps

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.request import Lack, Request


# The kinds of dependencies on arrays.
ARRAY_KINDS = {
    "after": "afterstartarray", "afterany": "afteranyarray", "afterok": "afterokarray",
    "afternotok": "afternotokarray",
}  # fmt: skip


class Torque(Pbs):
    name = "torque"
    title = "Torque"
    template = "torque.sh.j2"
    manual = "https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm"
    help = Pbs.help._replace(
        interactive="qsub -I -l nodes=1:ppn=1:{one}, and there: jobgen doctor pbs --dialect torque",
        starter={
            "walltime": "1h",
            "dialect": "torque",
            "nodes": 2,
            "gpus_per_node": 1,
            "launcher": "mpirun",
        },
        directive="-l naccesspolicy=singlejob",
        constraint="a100",
        tested="Torque 6.1",
    )
    keys = Pbs.keys._replace(
        nodes="-l nodes",
        all=frozenset({"-l nodes"}),
        memory=("-l mem", "-l pmem"),
        alternatives=(*Pbs.keys.alternatives, frozenset({"-l mem", "-l pmem"})),
    )
    behaviour = Pbs.behaviour._replace(hosts_by_core=True)
    request_forms = {**Pbs.request_forms, "array": "-t {}", "memory": "-l {}"}
    lacks = {
        "hostfile": Pbs.lacks["hostfile"],
        "comment": "Torque does not store comments of users",
        "licenses": "Torque leaves licenses to its scheduler: use --directive with the syntax of yours",
    }
    lacks_in_component = {
        **Pbs.lacks_in_component,
        "mem": "Torque counts the memory of the whole job; use --directive '-l mem=SIZE' for the sum",
        **dict.fromkeys(
            ("cpus_per_rank", "cpus_per_node"),
            "the node file of Torque has a line for each core, which must be as many for each rank; use "
            "cpus_per_rank of [resources]",
        ),
    }
    forms = {
        "reservation": "-l advres={}",
        "qos": "-l qos={}",
        "begin": "-a {}",
        "priority": "-p {}",
        "exclusive": "-l naccesspolicy=singlejob",
    }
    grammar = Grammar(
        letters="a:A:b:c:C:d:D:e:EfF:hIj:k:K:l:L:m:M:nN:o:p:P:q:r:S:t:T:u:v:Vw:W:xXz",
        heeds_all=frozenset({"-W stagein", "-W stageout", "-W x"}),
    )
    array_rule = "; the list of these indices is too long: add --pack 1"
    log_codes = {"j": "$PBS_JOBID", "A": "$PBS_JOBID", "a": "$PBS_ARRAYID"}
    features = (r"[A-Za-z][\w.-]*(:[A-Za-z][\w.-]*)*", "a property of a node in Torque, such as a100")
    agent = "pbsdsh"
    node_commands = ("pbsdsh",)
    of_other_dialect = (
        r"\b(select|place|ngpus|mpiprocs|ncpus)=|^-J\b",
        "is a directive of PBS Pro; Torque has nodes=N:ppn=M and -t (or use --dialect pbspro)",
    )

    def devices(self, accelerator: Accelerator, kind: str = "") -> str | None:
        return accelerator.torque

    def typed(self, kind: str, resource: str) -> str:
        if not matches(r"[A-Za-z][\w.-]*", kind):
            raise ValueError("a property of a node in Torque begins with a letter")
        return f"{{n}}:{kind}"

    def memory(self, mib: int, nodes: int) -> str:
        """Return ``mem=`` of the whole job, which limits no process if it has several nodes.

        ``pmem=`` would limit each process (RLIMIT_DATA), however many cores it uses: mom_set_limits in
        src/resmom/linux/mom_mach.c of Torque 6.1.
        """
        return f"mem={size(mib * nodes, 'b')}"

    def node_lines(self, resources: Resources, chunk: str, place: str) -> list[str]:
        parts = (
            _chunk(one.nodes or "N", one.cpus, one.devices) + (one.more or chunk) for one in resources.chunks
        )
        return [f"-l nodes={'+'.join(parts)}"]

    def ranges(self, ranges: Ranges) -> Ranges:
        return without_steps(ranges)

    def dependency(self, kind: str, job: str) -> str:
        kind = super().dependency(kind, job)
        return ARRAY_KINDS[kind] if "[]" in job else kind

    # Conversion

    def resources(self, request: Request, devices: str, chunk: str) -> tuple[list[str], list[Lack]]:
        from jobgen.schedulers.request import Lack

        ranks, cpus = request.ranks_per_node or 1, request.cpus_per_rank or 1
        nodes = request.nodes or request.ranks or 1
        lost = []
        if cpus > 1 and ranks > 1:
            why = "Torque counts cores only: ppn is their product"
            lost.append(Lack("cpus", f"{cpus} cores for each of {ranks} ranks", why, lost=False))
        equal = _chunk(nodes, ranks * cpus, devices if request.gpus_per_node else None)
        lines = [f"-l nodes={equal}{chunk}"]
        if request.mem:
            memory = self.memory(request.mem, nodes)
            lines.append(self.request_forms["memory"].format(memory))
        return lines, lost


def _chunk(nodes: int | str, cores: int | str, devices: str | None) -> str:
    """Return the request of equal nodes in a value of nodes."""
    return f"{nodes}:ppn={cores}" + (f":{devices}" if devices else "")


TORQUE = Torque()
