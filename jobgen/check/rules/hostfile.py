"""Rules about hostfiles: each job needs a separate one, in the format that its launcher reads."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator
from functools import lru_cache

from jobgen.check.ignored_failures import programs
from jobgen.check.ranks.model import HOSTFILES
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.errors import counted
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, assignments, expansions, uses
from jobgen.script.written_files import is_shared, made, may_have_reader, of_this_job, target, written
from jobgen.values.parsers import number

_HOSTFILE = re.compile(r"(host|machine)[_-]?(file|s|list|s?\.txt)?|nodes?[_-]?(file|list)|nodes\.txt", re.I)
_MAY_BE_LOG = re.compile(r"nodes?[_-]?list|nodes\.txt", re.I)
_OF_HOSTS = re.compile(r"hosts?names?|NODE_?(FILE|LIST)", re.I)
_NO_READERS = {"echo", "printf", "cat", "rm", "touch", "ls", "chmod", "trap"}
_IN_PLACE = re.compile(r"sed\s(?:.*\s)?(?:-[a-zA-Z]*i|--in-place)")  # it changes the file only


def _is_hostfile(script: Script, name: str) -> bool:
    """Return whether a file is a list of hosts: by its name, or because an option of a launcher names it."""
    last = name.rpartition("/")[2]
    named = re.fullmatch(rf"[\w.]*?({_HOSTFILE.pattern})(\.\w+)?", last, re.I)
    if name in script.hostfiles or named is None or last.endswith((".log", ".out", ".err", ".env")):
        return name in script.hostfiles
    if last.endswith("nodes.txt") and not _OF_HOSTS.search(script.tree.text):
        return False  # nodes of a graph
    return not _MAY_BE_LOG.fullmatch(named[1]) or _is_read(script, last)


def _is_read(script: Script, last: str) -> bool:
    return any(_readers(script, last, _NO_READERS))


def _readers(script: Script, last: str, others: Collection[str]) -> Iterator[int]:
    """Yield where a command, but for others, or a redirection of input names a file by its last part; an exported
    variable is read up to the end."""
    found = [(one.node.start, one) for one in script.commands if one.name not in others]
    words = [(at, word) for at, one in found if not _IN_PLACE.match(one.node.text) for word in one.arguments]
    for _, value, node in assignments(script.tree):
        exported = node.parent is not None and node.parent.type in ("declaration_command", "command")
        words += [(sys.maxsize, value)] if exported else []
    for node in script.tree.all("file_redirect"):
        file = node.get("destination")
        words += (
            [(node.start, file)] if file is not None and any(one.type == "<" for one in node.children) else []
        )
    name = re.compile(rf"(?<![\w-]){re.escape(last)}")  # not the option --hostfile
    yield from (at for at, word in words if name.search(script.constants.value(word) or word.text))


_FEW = 5  # hostfiles of a script


def _is_read_at_once(script: Script, node: Node, name: str) -> bool:
    """Return whether only the shell reads a file, before it starts a program: it is in use for milliseconds."""
    others = {*_NO_READERS} - {"cat"}
    behind = [at for at in _readers(script, os.path.basename(name), others) if at > node.end]
    begin = min((one.node.start for one in programs(script) if one.node.start > node.end), default=0)
    return bool(behind) and max(behind) < begin and name not in script.hostfiles


def _may_be_unread(script: Script, node: Node, name: str) -> bool:
    """Return whether only the shell reads a file, or nothing in the script names one, and the program decides it."""
    unnamed = name not in script.hostfiles and not _is_read(script, os.path.basename(name))
    by_program = unnamed and any(one.node.start > node.end for one in programs(script))
    return by_program or _is_read_at_once(script, node, name)


def _has_no_reader(script: Script, node: Node, name: str) -> bool:
    """Return whether nothing names the file, and all programs are started by the scheduler, which knows the nodes
    itself, or by launchers that name their own."""
    last = name.rpartition("/")[2]
    if name in script.hostfiles or node.end > _last_launch(script) or may_have_reader(script, node):
        return False
    read = (one for one in script.named("cat") if one.node.under("command_substitution", "pipeline"))
    named = any(last in (script.constants.value(word) or word.text) for one in read for word in one.arguments)
    return not named and not _is_read(script, last)


@lru_cache(maxsize=4)
def _last_launch(script: Script) -> int:
    """Return where the last program starts, if all have their nodes from the scheduler or another file; otherwise -1."""
    launches = [one for one in script.launches if not one.command.node.under("command_substitution")]
    starts = [one.command.node.start for one in launches]
    known = all(one.row.by_scheduler or one.has(*HOSTFILES) for one in launches)
    return max(starts, default=-1) if known else -1


@rule(
    "shared-hostfile",
    WARNING,
    "One hostfile for all jobs",
    """If all jobs write their hostfile to one path, the next job that starts overwrites it, and the launcher
    of the first job reads the hosts of the second. Ten of 45 public scripts do that. (It is a note in a short trial, in `/tmp`,
    which only jobs on the same node share, if only the shell reads the file, before it starts a program, and if
    nothing names it, so that a program may read it or not. It is
    silent with `--dependency=singleton`: one job of this name runs at a time, if nothing names the file and each
    launcher is `srun` or names another, if the script is copied to a folder of the job, or has a date and a time in the
    name of its own, and if it ends where its folder exists.)""",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=1
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    awk '{ print $1 " slots=4" }' "$PBS_NODEFILE" > hostfile
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=1
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    awk '{ print $1 " slots=4" }' "$PBS_NODEFILE" > "hostfile.$PBS_JOBID"
    """,
)
def shared_hostfile(script: Script) -> Iterator[Hit]:
    depend = script.heeded.get("--dependency")
    if not script.is_batch or (depend is not None and "singleton" in depend.value):
        return
    files = _shared_files(script)
    if not files:
        return
    few = list(files.items())[:_FEW]  # each costs a search in the whole script
    mild = {name: name.startswith("/tmp/") or _may_be_unread(script, node, name) for name, node in few}
    first = min(mild, key=lambda name: mild[name])
    what = f"{first} is the same file"
    if len(files) > 1:
        what = f"{first} and {counted(len(files) - 1, 'other hostfile')} are the same files"
    job_id = script.dialect.variable("job_id")
    fix = "put the job's id into the path" + (f": hostfile.${job_id}" if job_id else "")
    reason = f"{what} for all jobs: concurrent jobs overwrite each other's hosts"
    yield Hit.at(files[first], reason, fix, level=NOTE if mild[first] else None)


def _shared_files(script: Script) -> dict[str, Node]:
    """Return the hostfiles that a script writes to the same path in each job, with the redirection of each."""
    found: dict[str, Node] = {}
    for node, _, _ in written(script):
        file = node.get("destination")
        name = script.path_text(file) if file is not None else ""
        if (
            name in found
            or not _is_hostfile(script, name)
            or of_this_job(script, node)
            or node.under("function_definition")
            or _has_no_reader(script, node, name)
        ):
            continue
        if re.search(r"\$", name) and not re.match(
            r"\$\{?(HOME|PWD|PBS_O_WORKDIR|SLURM_SUBMIT_DIR|PBS_O_HOME|WORK|SCRATCH|USER)\b", name
        ):
            continue  # in a directory whose name is known only when the script runs
        here = "$" not in name or re.match(r"\$\{?PWD\b", name) is not None
        if not (name.startswith("/dev/") or (file is not None and here and not is_shared(script, file))):
            found[name] = node  # no device, and no file in the directory of this job
    return found


@rule_once(
    "appended-hostfile",
    WARNING,
    "A hostfile that grows",
    """`>>` keeps the lines of an earlier job in the file: its hosts are used, too, or are listed twice, which
    DeepSpeed refuses.""",
    bad="""
    #!/bin/bash
    # jobgen: disable=shared-hostfile
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    for host in $(scontrol show hostnames); do
      echo "$host slots=4" >> hostfile
    done
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=shared-hostfile
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    : > hostfile
    for host in $(scontrol show hostnames); do
      echo "$host slots=4" >> hostfile
    done
    """,
)
def appended_hostfile(script: Script) -> Iterator[Hit]:
    fresh = {text for _, sign, text in written(script) if sign != ">>"}
    fresh |= {target(script, node) for node, sign, _ in written(script) if sign != ">>"}
    removed = set()
    for command in script.named("rm", "mktemp", "truncate", "mv", "unlink"):
        for word in command.arguments:
            removed |= {word.unquoted, script.constants.value(word) or ""}
    old = {os.path.normpath(one) for one in fresh | removed if one}
    for node, sign, text in written(script):
        name = target(script, node)
        if (
            sign == ">>"
            and _is_hostfile(script, name)
            and not {os.path.normpath(text), os.path.normpath(name)} & old
            and not of_this_job(script, node)
        ):
            reason = f">> appends to {text}, which may still list the hosts of an earlier job"
            yield Hit.at(node, reason, f"begin with an empty file: : > {text}")


@rule_once(
    "bare-hostfile",
    ERROR,
    "A hostfile without slots for DeepSpeed",
    """The deepspeed launcher reads lines of the form `HOST slots=N`. A bare host is an error, and so is a
    host that appears twice: `$PBS_NODEFILE` is not a hostfile for DeepSpeed.""",
    message="the deepspeed launcher requires HOST slots=N on each line, and each host once",
    fix='awk \'!seen[$1]++ { print $1 " slots=4" }\' "$PBS_NODEFILE" > "$hostfile"',
    bad="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    deepspeed --hostfile "$PBS_NODEFILE" train.py
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    hostfile=$PBS_O_WORKDIR/hostfile.$PBS_JOBID
    awk '!seen[$1]++ { print $1 " slots=4" }' "$PBS_NODEFILE" > "$hostfile"
    deepspeed --hostfile "$hostfile" train.py
    """,
)
def bare_hostfile(script: Script) -> Iterator[Hit]:
    texts = script.tree.all("string_content", "raw_string", "word", "heredoc_body", "string")
    slots = any("slots=" in node.text for node in texts)
    for launch in script.launched("deepspeed"):
        node = launch.nodes.get("--hostfile", launch.nodes.get("-H"))
        if node is None:
            continue
        direct = "PBS_NODEFILE" in node.text or uses(script.constants.origin(node), "PBS_NODEFILE")
        if direct or (not slots and script.path_text(node) in _made(script)):
            yield Hit(launch.line, fix="" if script.is_pbs else _OF_SLURM)


_OF_SLURM = "scontrol show hostnames | sed 's/$/ slots=4/' > \"$hostfile\""
# Programs that may write anything.
_UNKNOWN = re.compile(r"\b(python\d?|perl|ruby|Rscript)\b|\.(py|sh|pl)\b|(^|[\s;|&])\.{0,2}/")


def _made(script: Script) -> set[str]:
    """Return the paths of the files that the script copies, or writes by commands whose output is known."""
    unknown = {
        script.path_text(file)
        for one, _, _ in written(script)
        if (file := one.get("destination")) is not None
        if one.parent is None or _UNKNOWN.search(one.parent.text)
    }
    return made(script) - unknown


@rule_once(
    "duplicate-hosts",
    ERROR,
    "A hostfile that lists a host twice",
    """`$PBS_NODEFILE` lists a host once for each slot. A hostfile with the same lines lists the host several
    times, each time with all slots: DeepSpeed refuses it.""",
    fix='awk \'!seen[$1]++ { print $1 " slots=4" }\' "$PBS_NODEFILE" > "$hostfile"',
    bad="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    hostfile=$PBS_O_WORKDIR/hostfile.$PBS_JOBID
    awk '{ print $1 " slots=4" }' "$PBS_NODEFILE" > "$hostfile"
    deepspeed --hostfile "$hostfile" train.py
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    hostfile=$PBS_O_WORKDIR/hostfile.$PBS_JOBID
    awk '!seen[$1]++ { print $1 " slots=4" }' "$PBS_NODEFILE" > "$hostfile"
    deepspeed --hostfile "$hostfile" train.py
    """,
)
def duplicate_hosts(script: Script) -> Iterator[Hit]:
    if (script.request.lines_per_node or 1) < 2 or not any(script.launched("deepspeed")):
        return
    text = script.tree.text
    if "PBS_NODEFILE" not in text or re.search(r"\buniq\b|sort -u|sort .*-u|\+\+|declare -A|unique", text):
        return
    for node, _ in hostfile_statements(script):
        whole = node.around("for_statement", "while_statement") or node.parent or node
        if "slots=" in whole.text:
            reason = f"$PBS_NODEFILE lists each host {script.request.lines_per_node} times, and DeepSpeed refuses a host that is listed twice"
            yield Hit.at(node, reason)


@rule_once(
    "hostfile-slots",
    WARNING,
    "A hostfile whose slots differ from the devices of the job",
    """The deepspeed launcher starts a rank for each slot of a host. With more slots than the job has devices on
    a node the ranks without one fail, with fewer some devices stay idle. The number of the request is in a
    variable. (A job with `--exclusive` may have more devices than it requests: only fewer slots are reported.)""",
    bad="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=8/' > "$hostfile"
    deepspeed --hostfile "$hostfile" train.py
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    deepspeed --hostfile "$hostfile" train.py
    """,
)
def hostfile_slots(script: Script) -> Iterator[Hit]:
    gpus = script.request.gpus_per_node
    if not gpus or len(script.request.chunks) > 1:
        return
    most = None if script.request.exclusive else gpus  # an exclusive node gives all that it has
    for launch in script.launched("deepspeed"):
        filtered = launch.has("--include", "--exclude", "-i", "-e", "--num-gpus")
        if filtered or not launch.has("--hostfile", "-H"):
            continue
        for line, slots in _slots_written(script):
            if slots < gpus or (most and slots > most):
                effect = "the other ranks fail" if slots > gpus else f"{gpus - slots} stay idle"
                reason = f"the hostfile has {slots} slots a host, and the job {counted(gpus, 'device')} a node: {effect}"
                yield Hit(line, reason, f"write slots={gpus}")
        return


def _slots_written(script: Script) -> Iterator[tuple[int, int]]:
    """Yield the line and the number of each ``slots=N`` that the script writes into a hostfile."""
    for node, text in hostfile_statements(script):
        found = ((match[1].count("%"), match[2].split()) for match in _PRINTED.finditer(text))
        printed = (f"slots={words[at]}" for at, words in found if at < len(words))
        for match in re.finditer(r"slots=(?:(\d+)\b|\$\{?(\w+)\}?)", " ".join((text, *printed))):
            slots = number(match[1] or script.constants.named(match[2]), 3)
            if slots is not None:
                yield node.line, slots
    for command in script.named("sed"):
        sets = re.search(r"slots=(\d{1,3})\b", command.node.text)
        for file in command.arguments[-1:]:
            if sets and _is_hostfile(script, script.constants.value(file) or file.unquoted):
                yield command.line, int(sets[1])


# The words of printf before the number of slots, and its arguments.
_PRINTED = re.compile(r"printf\s+[\"']([^\"'\n]*)slots=%[ds][^\"'\n]*[\"']\s+([^;|\n]+)")


def hostfile_statements(script: Script) -> Iterator[tuple[Node, str]]:
    """Yield each redirection into a hostfile, and the text of its statement, or of the function that it calls."""
    for node, _, _ in written(script):
        file, statement = node.get("destination"), node.parent
        if file is None or statement is None:
            continue
        if script.path_text(file) in script.hostfiles or _is_hostfile(script, target(script, node)):
            yield node, script.functions.get(statement.text.split()[0], statement.text)


@rule_once(
    "hostfile-value",
    ERROR,
    "A list of hosts in the place of a file",
    """`--hostfile` takes the name of a file, and `$SLURM_JOB_NODELIST` is a text such as `node[01-04]`: the launcher finds
    no file of this name. mpirun's `--host` takes names with commas between them, and neither a compressed list nor the
    file `$PBS_NODEFILE`.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    mpirun -np "$SLURM_NTASKS" --hostfile "$SLURM_JOB_NODELIST" ./solver
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    mpirun -np "$SLURM_NTASKS" --hostfile "$hostfile" ./solver
    """,
)
def hostfile_value(script: Script) -> Iterator[Hit]:
    several = script.request.several
    for launch in script.launches:
        for option, word in launch.nodes.items() if not launch.row.by_scheduler else ():
            of_file = option in HOSTFILES or (option == "-H" and not launch.row.of_mpi)
            of_hosts = (*_LISTS, "PBS_NODEFILE") if several and option in _HOSTS else ()
            origin = script.constants.origin(word)
            for name, node in expansions(origin):
                whole = origin.text.rpartition("=")[2].strip("\"'") == node.text
                if whole and name in (_LISTS if of_file else of_hosts):
                    yield _misplaced(launch, option, name, of_file)


def _misplaced(launch: Launch, option: str, name: str, of_file: bool) -> Hit:
    of_nodes = name == "PBS_NODEFILE"
    what = "a file" if of_nodes else "a compressed list of hosts, as node[01-04]"
    takes = "the name of a file" if of_file else "names of hosts with commas between them"
    fix = "write scontrol show hostnames to a file" if of_file else "write --hostfile, with a file"
    return Hit(launch.line, f"${name} is {what}: {option} takes {takes}", fix, place=launch.place(option))


_HOSTS = ("-H", "--host", "-host")
_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST")
