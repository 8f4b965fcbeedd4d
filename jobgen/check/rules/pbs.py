"""Rules about PBS only: the placement of jobs, errors of qsub, and effects without a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.bash import expansions
from jobgen.check.request import heeded, number, resources
from jobgen.check.rule import ERROR, NOTE, WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.errors import shown


def _totals(script: Script) -> dict[str, tuple[int, str]]:
    """Return PBS Pro's -l resources: name to line and value."""
    if script.scheduler != "pbspro":
        return {}
    said = heeded(script.options, script.scheduler)
    return {key[3:]: (option.line, option.value) for key, option in said.items() if option.flag == "-l"}


def select_with_nodes(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    for name in ("select", "place"):
        if name in totals and "nodes" in totals:
            line = max(totals[name][0], totals["nodes"][0])
            yield Hit(
                line, f"nodes= with {name}= is refused: they are two languages", "use select= and place= only"
            )
            return


def select_with_totals(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    for name in ("ncpus", "mem", "ngpus", "mpiprocs"):
        if "select" in totals and name in totals:
            yield Hit(
                max(totals["select"][0], totals[name][0]),
                f"-l {name} beside a select is refused",
                f"say it of each chunk: select=N:{name}={totals[name][1]}",
            )


def walltime_in_select(script: Script) -> Iterator[Hit]:
    line, select = _totals(script).get("select", (0, ""))
    if match := re.search(r":(walltime|cput)=", select):
        yield Hit(
            line,
            f"{match[1]} belongs to the job, not to a chunk: PBS refuses it",
            f"write -l {match[1]}= on its own",
        )


def torque_gpus(script: Script) -> Iterator[Hit]:
    line, nodes = _totals(script).get("nodes", (0, ""))
    if re.search(r":gpus=", nodes):
        yield Hit(
            line,
            "nodes=...:gpus= is Torque's: PBS Pro refuses it (node(s) specification error)",
            "write select=2:ncpus=8:ngpus=1; for Torque say --scheduler torque",
        )


def unallocated_gpus(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    if "nodes" in totals and "ngpus" in totals:
        yield Hit(
            totals["ngpus"][0],
            "ngpus beside nodes= is accepted, but no GPU is allocated",
            "write select=2:ncpus=8:ngpus=4",
        )


def packed_chunks(script: Script) -> Iterator[Hit]:
    totals = _totals(script)
    if "select" not in totals or "place" in totals or not script.request.several:
        return
    chunk = script.request.chunks[0]
    cpus, gpus = number(chunk.get("ncpus")), number(chunk.get("ngpus"))
    whole = cpus is None or cpus >= 32 or (gpus or 0) >= 4 or len(script.request.chunks) > 1
    yield Hit(
        totals["select"][0],
        "without place=scatter PBS packs the chunks: several may share a host, which is then listed again",
        "add -l place=scatter",
        NOTE if whole else None,
    )


def no_mpiprocs(script: Script) -> Iterator[Hit]:
    line, select = _totals(script).get("select", (0, ""))
    chunk = script.request.chunks[0] if script.request.chunks else {}
    if not select or "mpiprocs=" in select or (number(chunk.get("ngpus")) or 0) < 2:
        return
    for launch in script.launched("mpirun"):
        told = launch.has("-n", "-np", "--np", "-ppn", "--ppn", "--npernode", "-npernode", "--map-by", "-N")
        if not told and launch.outer is None:
            yield Hit(
                line,
                "without mpiprocs the node file has one line a chunk, so that mpirun starts one rank a chunk",
                f"add :mpiprocs={chunk['ngpus']} to the select",
            )
            return


def exported_list(script: Script) -> Iterator[Hit]:
    if not script.is_pbs:
        return
    for option in script.options:
        if option.flag != "-v":
            continue
        line = next(line for line in script.directives.live if line.number == option.line)
        bad = [part for part in option.value.split(",") if not re.match(r"[A-Za-z_]\w*(=|$)", part.strip())]
        if re.search(r"[\"'\\]", line.rest) or bad:
            yield Hit(
                option.line,
                "-v mangles quotes and backslashes, and splits at every comma",
                "export the variable in the body of the script",
            )


def after_array(script: Script) -> Iterator[Hit]:
    if not script.is_pbs:
        return
    for option in script.options:
        if option.flag == "-W" and re.search(r"\bafterok:[^,]*\[", option.value):
            yield Hit(
                option.line,
                "afterok on an array also runs when a task of the array has failed",
                "have the job look for what the tasks should have made",
            )


def home_directory(script: Script) -> Iterator[Hit]:
    """Yield a hit for a relative path if the script stays in the home directory, where PBS starts a job."""
    if not script.is_pbs or not script.is_batch:
        return
    moved = any(script.named("cd", "pushd")) or any("PBS_O_WORKDIR" in name for name, _ in script.expansions)
    flags = {option.flag for option in script.options} | {name for _, name, _ in resources(script.options)}
    if moved or flags & {"-d", "-w", "wd"}:
        return
    for command in script.commands:
        for word in [command.name, *command.literals]:
            if re.fullmatch(r"(?!/|~)[\w./-]+\.(py|sh|exe|out)", word) and (
                word in command.literals or "/" in word
            ):
                yield Hit(
                    command.line,
                    f"PBS starts the job in the home directory, and {shown(word)} is looked for there",
                    'begin with cd "$PBS_O_WORKDIR"',
                )
                return


def pbsdsh_status(script: Script) -> Iterator[Hit]:
    for command in script.named("pbsdsh"):
        yield Hit(
            command.line,
            "pbsdsh ends with 0 whatever its command did: a failure is not seen",
            "use pbs_tmrsh, which keeps the status, or have the command write its status into a file",
        )
        return


def outliving(script: Script) -> Iterator[Hit]:
    for command in script.named("setsid"):
        if script.is_pbs:
            yield Hit(
                command.line,
                "what setsid starts outlives the job: PBS no longer knows it",
                "start it with & and wait for it",
            )


def tmrsh_agent(script: Script) -> Iterator[Hit]:
    said = "pbs_tmrsh does no shell parsing: mpirun's remote command fails"
    fix = 'name a wrapper that calls pbs_tmrsh HOST /bin/sh -c "$*"'
    for name, value, node in script.assignments:
        if name.endswith(("_rsh_agent", "_ssh_agent")) and value.text.strip("\"'").endswith("pbs_tmrsh"):
            yield Hit(node.line, said, fix)
    for command in script.commands:
        words = command.literals
        for agent, given in pairwise(words):
            if agent.endswith(("rsh_agent", "ssh_agent")) and given.endswith("pbs_tmrsh"):
                yield Hit(command.line, said, fix)


# Variables that only other schedulers set, and the equivalent of this one.
_PBS_ONLY = {
    "PBS_O_WORKDIR": "SLURM_SUBMIT_DIR",
    "PBS_JOBID": "SLURM_JOB_ID",
    "PBS_NODEFILE": "scontrol show hostnames",
}
_TORQUE_ONLY = {
    "PBS_NP": "the number of lines of $PBS_NODEFILE",
    "PBS_NUM_PPN": "mpiprocs, written out",
    "PBS_NUM_NODES": "the number of hosts in $PBS_NODEFILE",
    "PBS_GPUFILE": "ngpus, written out",
    "PBS_ARRAYID": "PBS_ARRAY_INDEX",
}
_FOREIGN = {
    "pbspro": _TORQUE_ONLY,
    "torque": {"PBS_ARRAY_INDEX": "PBS_ARRAYID"},
    "slurm": {
        **_PBS_ONLY,
        **_TORQUE_ONLY,
        "PBS_ARRAYID": "SLURM_ARRAY_TASK_ID",
        "PBS_ARRAY_INDEX": "SLURM_ARRAY_TASK_ID",
    },
}


def foreign_variable(script: Script) -> Iterator[Hit]:
    seen: set[str] = set()
    own = {name for name, _, _ in script.assignments}
    foreign = _FOREIGN.get(script.scheduler, {}) if script.is_batch else {}
    for name, node in script.expansions:
        slurm = script.is_pbs and name.startswith("SLURM_")
        safe = node.type == "expansion" and any(sign in node.text for sign in (":-", ":+", "-", "+", ":="))
        inside = next(expansions(node), ("", node))[1] is not node
        if name in own or name in seen or safe or inside or not (slurm or name in foreign):
            continue
        seen.add(name)
        title = {"pbspro": "PBS Pro", "torque": "Torque", "slurm": "Slurm"}[script.scheduler]
        if not any(above.type == "expansion" for above in node.above()):
            yield Hit(
                node.line, f"{title} does not set {name}", f"use {foreign.get(name, 'PBS_* variables')}"
            )


RULES = (
    Rule("select-with-nodes", ERROR, "select= or place= with nodes=", select_with_nodes),
    Rule("select-with-totals", ERROR, "select= with a total of the job", select_with_totals),
    Rule("walltime-in-select", ERROR, "walltime inside select=", walltime_in_select),
    Rule("torque-gpus", ERROR, "Torque's gpus= in PBS Pro", torque_gpus),
    Rule("unallocated-gpus", ERROR, "GPUs that are asked for, but not allocated", unallocated_gpus),
    Rule("packed-chunks", WARNING, "Chunks that may share a host", packed_chunks),
    Rule("no-mpiprocs", WARNING, "GPUs without mpiprocs", no_mpiprocs),
    Rule("pbs-export-list", WARNING, "Quotes, backslashes or commas in -v", exported_list),
    Rule("afterok-array", WARNING, "afterok on an array", after_array),
    Rule("home-directory", WARNING, "A relative path in the home directory", home_directory),
    Rule("pbsdsh-status", WARNING, "pbsdsh loses the status", pbsdsh_status),
    Rule("setsid-outlives", WARNING, "A process that outlives the job", outliving),
    Rule("tmrsh-agent", ERROR, "pbs_tmrsh as mpirun's agent", tmrsh_agent),
    Rule("foreign-variable", ERROR, "A variable of another scheduler", foreign_variable),
)
