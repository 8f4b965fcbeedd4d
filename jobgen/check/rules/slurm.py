"""Rules about Slurm only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.bash import Node, exported
from jobgen.check.launches import Launch
from jobgen.check.request import number
from jobgen.check.rule import ERROR, WARNING, Rule
from jobgen.check.script import Hit, Script

# Variables of a task; the batch script has those of the first task.
_TASK = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID")
_TRIFLES = (
    "hostname",
    "nvidia-smi",
    "npu-smi",
    "rocm-smi",
    "true",
    "echo",
    "date",
    "env",
    "mkdir",
    "ls",
    "cat",
    "rm",
)
_MPI = {
    "openmpi": "pmix",
    "hpcx": "pmix",
    "mpich": "pmi2",
    "mvapich": "pmi2",
    "intel-mpi": "pmi2",
    "impi": "pmi2",
}


def _sruns(script: Script) -> Iterator[Launch]:
    return (launch for launch in script.launched("srun") if script.scheduler == "slurm")


def _program(launch: Launch) -> str:
    """Return the first word after srun's options that is not the value of an option."""
    words = [word.text for word in launch.command.arguments]
    return next(
        (os.path.basename(word) for word in words if not word.startswith("-") and not word.isdigit()), ""
    )


def srun_cpus(script: Script) -> Iterator[Hit]:
    asked = next((option for option in script.options if option.flag == "--cpus-per-task"), None)
    if asked is None or script.request.cpus_per_rank in (None, 1):
        return
    if any(name == "SRUN_CPUS_PER_TASK" for name, _, _ in script.assignments):
        return
    sruns = list(_sruns(script))
    if any(launch.has("-c", "--cpus-per-task") for launch in sruns):
        return  # the option is known; the other calls are helpers
    for launch in sruns:
        if launch.has("--cpu-bind", "--exact", "--overlap") or _program(launch) in _TRIFLES:
            continue
        if any("cpus-per-task" in word.text for word in launch.command.words):
            continue
        yield Hit(
            launch.line,
            "srun does not take --cpus-per-task from the job (Slurm 22.05 and later): each task gets "
            "one core",
            f"write srun --cpus-per-task={script.request.cpus_per_rank}, or export SRUN_CPUS_PER_TASK",
        )
        return


def export_list(script: Script) -> Iterator[Hit]:
    found = [(option.line, option.value) for option in script.options if option.flag == "--export"]
    found += [(launch.line, launch.options.get("--export") or "") for launch in _sruns(script)]
    for line, value in found:
        parts = value.split(",")
        bad = [part for part in parts if part and not re.match(r"[A-Za-z_]\w*(=|$)", part, re.ASCII)]
        if bad or (any("=" in part for part in parts[:-1]) and _continues(parts)):
            yield Hit(
                line,
                "--export splits at every comma: what follows it is taken for another variable",
                "export the variables in the body of the script, and leave --export=ALL",
            )


def _continues(parts: list[str]) -> bool:
    """Return whether a lower-case part without = follows a part with =: it is not the name of a variable."""
    return any("=" in before and "=" not in after and after.islower() for before, after in pairwise(parts))


def gres_total(script: Script) -> Iterator[Hit]:
    asked = script.request
    if script.scheduler != "slurm" or not asked.several or not asked.nodes:
        return
    for option in script.options:
        if option.flag not in ("--gres", "--gpus-per-node") or not asked.gpus_per_node:
            continue
        count = asked.gpus_per_node
        each = [launch.number("--nproc-per-node", "--num-gpus") for launch in script.launches]
        proof = any(one and one * asked.nodes == count for one in each)
        if proof or (count > 8 and count % asked.nodes == 0 and asked.accelerator == "gpu"):
            yield Hit(
                option.line,
                f"{option.flag} counts on each node: this asks for {asked.nodes} x {count} = "
                f"{asked.nodes * count}",
                f"if {count} are meant in all, write {count // asked.nodes}",
            )


def uneven_tasks(script: Script) -> Iterator[Hit]:
    asked = script.request
    flags = {option.flag: option for option in script.options}
    if script.scheduler != "slurm" or not asked.nodes or "--ntasks" not in flags or not asked.ranks:
        return
    if (
        asked.nodes < 2
        or asked.ranks <= asked.nodes
        or {"--ntasks-per-node", "--distribution", "--ntasks-per-gpu"} & set(flags)
    ):
        return
    if any(launch.has("--ntasks-per-node") for launch in script.launches):
        return
    yield Hit(
        flags["--ntasks"].line,
        f"{asked.ranks} tasks on {asked.nodes} nodes may land unevenly, such as "
        f"{asked.ranks - asked.nodes + 1} on one of them",
        f"add --ntasks-per-node={-(-asked.ranks // asked.nodes)}",
    )


def early_expansion(script: Script) -> Iterator[Hit]:
    """Yield a hit if the batch script's shell expands a variable of a task: all tasks get the first one's."""
    if script.scheduler != "slurm" or not script.is_batch:
        return
    in_sruns = [launch.command.node for launch in _sruns(script)]
    for name, node in script.expansions:
        if name not in _TASK or any(above.type == "heredoc_body" for above in node.above()):
            continue
        inside = any(command in in_sruns for command in node.above())
        assigned = next((above for above in node.above() if above.type == "variable_assignment"), None)
        if inside or (assigned is not None and exported(assigned) and in_sruns and not _in_function(node)):
            yield Hit(
                node.line,
                f"${name} is expanded here, once, before srun starts the tasks: all of them get the "
                "first one's",
                f"have each task expand it: srun bash -c '... ${name} ...', in single quotes",
            )


def _in_function(node: Node) -> bool:
    return node.under("function_definition")


def signal_to_steps(script: Script) -> Iterator[Hit]:
    for option in script.options:
        name = option.value.partition("@")[0]
        if option.flag != "--signal" or ":" in name:
            continue
        caught = name.upper().removeprefix("SIG")
        if any(caught in " ".join(command.literals[1:]).upper() for command in script.named("trap")):
            yield Hit(
                option.line,
                "without B: the signal goes to the job's steps, and the trap of this script never "
                f"hears {name}",
                f"write --signal=B:{option.value}",
            )
        elif caught in ("USR1", "USR2"):
            swallower = next((one for one in script.launches if one.row.once_a_node), None)
            if swallower is not None:
                yield Hit(
                    option.line,
                    f"{swallower.kind} does not pass {name} on to the training processes",
                    "start the ranks with srun itself, or catch the signal in this script with B:",
                )


def mpi_plugin(script: Script) -> Iterator[Hit]:
    loaded = " ".join(word for command in script.named("module", "ml") for word in command.literals).lower()
    for launch in _sruns(script):
        plugin = launch.options.get("--mpi") or ""
        for module, wanted in _MPI.items():
            if re.search(rf"(^|[\s/]){module}\b", loaded) and plugin.rstrip("_v0123456789") not in (
                "",
                wanted.rstrip("2"),
                "none",
                "cray_shasta",
                "cray_shast",
            ):
                yield Hit(
                    launch.line,
                    f"--mpi={plugin} is not how {module} meets its ranks: each becomes a world of one",
                    f"write --mpi={wanted}",
                )
                return


def empty_dependency(script: Script) -> Iterator[Hit]:
    job = r":\d+(_\w+)?(\+\d+)?"
    pattern = rf"after(any|ok|notok|corr|burstbuffer)?({job})+|singleton|expand:\d+"
    for option in script.options:
        if option.flag == "--dependency":
            for part in re.split(r"[,?]", option.value):
                if not re.fullmatch(pattern, part):
                    yield Hit(
                        option.line,
                        f"the dependency {part or 'on nothing'} is refused",
                        "write afterok:JOBID",
                    )
                    break


def bad_count(script: Script) -> Iterator[Hit]:
    """Yield a hit for ``-N=2`` and for invalid numbers: getopt keeps the equals sign in the value."""
    counts = ("--ntasks", "--ntasks-per-node", "--cpus-per-task") if script.scheduler == "slurm" else ()
    for option in script.options:
        if script.scheduler == "slurm" and len(option.given) == 2 and option.value.startswith("="):
            yield Hit(
                option.line,
                f"{option.given}{option.value}: the value is '{option.value}', with the equals sign",
                f"write {option.given} {option.value[1:]}",
            )
        elif option.flag in counts and number(option.value) in (None, 0):
            yield Hit(
                option.line,
                f"{option.given} takes a number, not {option.value or 'nothing'}",
                f"write {option.flag}=N",
            )


RULES = (
    Rule("srun-cpus", WARNING, "--cpus-per-task for sbatch, but not for srun", srun_cpus),
    Rule("export-commas", WARNING, "Commas in --export", export_list),
    Rule("gres-total", WARNING, "GPUs of all nodes asked for on each", gres_total),
    Rule("uneven-tasks", WARNING, "Tasks without --ntasks-per-node", uneven_tasks),
    Rule("early-expansion", ERROR, "A task's variable, expanded before the tasks start", early_expansion),
    Rule("signal-to-steps", WARNING, "A signal that nobody hears", signal_to_steps),
    Rule("mpi-plugin", WARNING, "srun's --mpi for another MPI", mpi_plugin),
    Rule("bad-dependency", ERROR, "A dependency that Slurm refuses", empty_dependency),
    Rule("bad-count", ERROR, "A number that Slurm refuses", bad_count),
)
