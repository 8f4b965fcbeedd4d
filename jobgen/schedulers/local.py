"""This machine, without a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.schedulers.base import Behaviour, Help, Scheduler

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.spec import Specification


class Local(Scheduler):
    name = command_name = runtime = "local"
    title = "this machine"
    template = "local.sh.j2"
    command = "bash"
    manual = "https://www.gnu.org/software/bash/manual/"
    help = Help(
        "Print the same script for this machine.",
        "jobgen local --ranks-per-node 2 --launcher mpirun -- --task digits | bash",
        interactive="jobgen doctor local, on the machine that has them",
        starter={"ranks_per_node": 2, "launcher": "mpirun"},
    )
    behaviour = Behaviour(one_host=True, limits_time=False)
    lacks = {
        "dialect": Scheduler.lacks["dialect"],
        "queue": "a local run has no queue",
        "account": "a local run has no account",
        "mail": "a local run sends no mail",
        "mem": "a local run reserves no memory",
        "cpus_per_node": "a local run reserves no cores; use --cpus-per-rank",
        "array": "a local run is one job; run one task with its options",
        "after": "a local run waits for no job",
        **dict.fromkeys(
            ("reservation", "qos", "constraint", "licenses", "comment", "begin", "priority", "exclusive"),
            "a local run has no scheduler",
        ),
        "mail_on": "a local run sends no mail",
        "log": "a local run writes to the terminal: use 2> FILE",
        "directive": "a local run has no directives",
        **dict.fromkeys(("requeue", "requeue_on"), "a local run has no queue"),
        **dict.fromkeys(("spare_nodes", "min_nodes"), "a local run has only this node"),
    }
    lacks_if_mixed = {
        "nodes": "a local run has only this node; use pbs or slurm for nodes that differ, or --hostfile"
    }
    allocation = "This machine is the allocation."
    default_cpus_per_rank = 1

    def for_job(self, spec: Specification) -> Scheduler:
        return self if spec.hostfile is None else HOSTS

    def devices(self, accelerator: Accelerator, kind: str = "") -> str | None:
        return ""


class Hosts(Local):
    """The hosts of a file."""

    runtime = "hosts"
    title = "the hosts of a file"
    behaviour = Local.behaviour._replace(one_host=False)
    lacks = {
        **{key: reason for key, reason in Local.lacks.items() if key != "min_nodes"},
        "spare_nodes": "a file of hosts has no spare ones: remove the bad host from it",
    }
    lacks_if_mixed: dict[str, str] = {}
    allocation = "Run it on the first host of the file; it reaches the others by ssh."


LOCAL, HOSTS = Local(), Hosts()
