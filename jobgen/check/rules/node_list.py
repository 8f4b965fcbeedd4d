"""Rules about the host list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from jobgen.check.rule import NOTE, WARNING, rule
from jobgen.script.commands import Command
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, Node, literal, uses


@rule(
    "hand-written-hosts",
    WARNING,
    "Hand-written hosts",
    """The scheduler selects the hosts of a job. A hand-written list names the hosts of an earlier job,
    which may now run jobs of other users. (Hosts that a directive requests are silent.)""",
    message="the hosts are written by hand: the scheduler allocates other hosts to the job",
    fix="write the file from $PBS_NODEFILE, or from scontrol show hostnames",
    bad=r"""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    printf 'node01 slots=4\nnode02 slots=4\n' > "hostfile.$SLURM_JOB_ID"
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    scontrol show hostnames | sed 's/$/ slots=4/' > "hostfile.$SLURM_JOB_ID"
    """,
)
def hand_written(script: Script) -> Iterator[Hit]:
    for command in script.own_running("echo", "printf"):
        for word in command.arguments:
            if re.match(r"[A-Za-z][\w.-]*\d[\w.-]*\s+slots=\d+", literal(word) or ""):
                yield Hit.at(command.node)
                return
    for node in script.tree.all("heredoc_body"):
        if re.search(r"(?m)^[A-Za-z][\w.-]*\d[\w.-]*\s+slots=\d+", node.text):
            yield Hit.at(node)
    for launch in script.launches if script.is_batch else ():
        option = next((name for name in _HOSTS if launch.has(name)), "")
        names = [one.partition(":")[0] for one in (launch.options.get(option) or "").split(",")]
        directives = " ".join(option.value for option in script.options)
        if all(re.fullmatch(_HOST, one) and one not in directives for one in names):
            reason = f"{option} names hosts: the scheduler allocates others to the job"
            yield Hit(launch.line, reason, _HOSTS_FIX)
            return


_HOSTS = ("-H", "--host", "-host", "--hosts", "-hosts")
_HOST = r"(?!localhost)[A-Za-z][A-Za-z-]*\d[\w.-]*"
_HOSTS_FIX = "leave it out, or use $PBS_NODEFILE, or the output of scontrol show hostnames"
_LISTS = (
    "PBS_NODEFILE", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "PE_HOSTFILE", "LSB_DJOB_HOSTFILE",
    "PBS_GPUFILE",
)  # fmt: skip


def _pipeline(command: Command) -> Node:
    """Return the pipeline of a command, or the command with its redirections."""
    node = command.node
    for above in node.above():
        if above.type not in ("redirected_statement", "pipeline"):
            break
        node = above
    return node


_OF_NODES = re.compile(r"node|host|nod", re.I)
_OF_OTHERS = re.compile(r"proc|rank|slot|file|per|gpu|core|cpu|task", re.I)


def _names(node: Node) -> list[str]:
    return [word.text for word in node.all("command_name")]


@rule(
    "nodefile-count",
    WARNING,
    "Slots counted as nodes",
    """`$PBS_NODEFILE` has one line for each slot (`mpiprocs`, or `ppn`), not for each node. Nine of 45
    public scripts use `wc -l` as the number of nodes. (It is a note in a script that requests no nodes.)""",
    fix='count each host once: sort -u "$PBS_NODEFILE" | wc -l',
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    nnodes=$(wc -l < "$PBS_NODEFILE")
    echo "$nnodes nodes"
    """,
    good={'nnodes=$(wc -l < "$PBS_NODEFILE")': 'nnodes=$(sort -u "$PBS_NODEFILE" | wc -l)'},
)
def nodefile_count(script: Script) -> Iterator[Hit]:
    if script.guess.foreign or "PBS_NODEFILE" in script.values:
        return  # NQSV has one line a host; and a file of the script
    each = script.request.lines_per_node
    # The name of the variable, or the option, shows what it counts.
    named = {
        launch.nodes[option].text.strip("\"'${}")
        for launch in script.launches
        for option in launch.row.line.ranks
        if option in launch.nodes
    }  # as numbers of ranks
    found = [
        (node.line, value)
        for name, value, node in script.assignments
        if _OF_NODES.search(name) and not _OF_OTHERS.search(name) and name not in named
    ]
    for launch in script.launches:
        own = [launch.nodes[name] for name in launch.row.line.nodes if name in launch.nodes]
        found += [(launch.line, script.constants.origin(node)) for node in own]
    for line, value in found:
        if each != 1 and _counts_lines(value):
            here = f", here {each} a node" if each else ""
            reason = f"$PBS_NODEFILE has one line a slot{here}: its lines are not the number of nodes"
            request = script.request  # without a request in the script the submission has it
            yield Hit(line, reason, level=None if each or request.nodes or request.chunks else NOTE)


def _counts_lines(value: Node) -> bool:
    """Return whether a value is the number of lines of the node file."""
    inside = _names(value)
    if not uses(value, "PBS_NODEFILE") or {"sort", "uniq"} & set(inside):
        return False
    first_word = re.search(r"awk\s+'\{\s*print\s+\$1;?\s*\}'", value.text)
    counted = "wc" in inside or re.search(r"grep\s+-c|awk\s+'END\s*\{\s*print\s+NR", value.text) is not None
    return counted and ("awk" not in inside or first_word is not None or "wc" not in inside)


@rule(
    "sorted-hosts",
    WARNING,
    "Hosts in another order",
    """The first line of the node file is the host that runs the script. `sort -u` may put another host
    first, which then becomes the master, and it changes the placement of ranks. Remove duplicates
    without changing the order. (It is a note where nothing reads the file, or mpirun alone, whose ranks
    need no address, or pssh, which takes the hosts in any order.)""",
    message="sort changes the order of the hosts: the first may not be the host that runs this script",
    fix="keep the order: awk '!seen[$1]++' \"$PBS_NODEFILE\"",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    sort -u "$PBS_NODEFILE" > "hosts.$PBS_JOBID"
    ./train --hosts "hosts.$PBS_JOBID"
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    awk '!seen[$1]++' "$PBS_NODEFILE" > "hosts.$PBS_JOBID"
    ./train --hosts "hosts.$PBS_JOBID"
    """,
)
def sorted_nodefile(script: Script) -> Iterator[Hit]:
    for command in script.own_running("sort") if script.request.nodes != 1 else ():
        whole = _pipeline(command)
        lists = uses(whole, *_LISTS) or "scontrol" in whole.text
        if not lists or {"wc", "grep", "tail"}.intersection(_names(whole)):
            continue
        unique = "-u" in command.literals or "uniq" in _names(whole)
        # The order matters in a file, in an array, and where the first host is used.
        written = whole.type == "redirected_statement" and any(True for _ in whole.all(">"))
        inside = whole.under("command_substitution")
        kept = written or (inside and (whole.under("array") or "head" in _names(whole)))
        around = (above for above in whole.above() if above.type == "command_substitution")
        counts = any("wc" in _names(above) for above in around)  # $(... | wc -l)
        ordered = (written and _has_first_host(script, whole)) or _starts_each(script, whole)
        if unique and kept and not counts and not ordered:
            mild = written and (_is_of_mpirun(script, whole) or not _is_read(script, whole))
            yield Hit(command.line, level=NOTE if mild else None)


def _has_first_host(script: Script, statement: Node) -> bool:
    """Return whether the master is the first host of the file to which the list is written: deepspeed takes it as
    such, or the script itself, by ``head``; or the host of the script, as with julia."""
    words = [word for one in script.launched("deepspeed") for word in one.nodes.values()]
    words += [one.arguments[-1] for one in script.named("head") if one.arguments]
    words += [
        file for one in script.named("julia") for word, file in pairwise(one.words) if "machine" in word.text
    ]
    return _writes_one(script, statement, words)


def _is_of_mpirun(script: Script, statement: Node) -> bool:
    """Return whether a list is written to the hostfile of mpirun, whose ranks need no address of the first host."""
    words = [word for one in script.launched("mpirun") for word in one.nodes.values()]
    return not _NAMES_MASTER.search(script.tree.text) and _writes_one(script, statement, words)


_NAMES_MASTER = re.compile(r"(?i)master|\bhost_?name\b|\baddr|tcp://|scheduler|\bhead\b")


def _is_read(script: Script, statement: Node) -> bool:
    """Return whether something reads the file to which a list is written, and may take its first host."""
    files = [one.text for each in statement.all("file_redirect") if (one := each.get("destination"))]
    others = [one for one in script.commands if one.node not in statement and one.name not in _IN_ANY_ORDER]
    texts = [one.statement.text for one in others] + [value.text for _, value, _ in script.assignments]
    return any(file in text for file in files for text in texts)


_IN_ANY_ORDER = ("pssh", "parallel-ssh", "pdsh", "clush", "cat", "wc", "rm", "echo")


def _writes_one(script: Script, statement: Node, words: Sequence[Node]) -> bool:
    """Return whether a statement writes a file that is one of these words."""
    files = {_file(script, word) for word in words}
    written = (one.get("destination") for one in statement.all("file_redirect"))
    return any(word is not None and _file(script, word) in files for word in written)


def _file(script: Script, word: Node) -> str:
    """Return the file that a word names, also as ``--option=FILE``."""
    return re.sub(r"^--\w+=", "", script.constants.text(word)).replace('"', "").strip("'")


def _starts_each(script: Script, statement: Node) -> bool:
    """Return whether a loop over the array of the hosts starts the ranks of each, the first one included."""
    array = statement.around("variable_assignment")
    name = array.text.partition("=")[0] if array is not None else ""
    loops = (one.command.node.around(*LOOPS) for one in script.launches if one.remote)
    return any(loop is not None and re.search(rf"\{{[#!]?{name}\[", loop.text) for loop in loops if name)
