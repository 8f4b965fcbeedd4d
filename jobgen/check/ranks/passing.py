"""What drops variables on the way from the script to the ranks: ssh, and options of launchers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from jobgen.check.ranks.containers import SEALED, Container, containers
from jobgen.check.ranks.environment import ACTIVATES, RankEnvironment
from jobgen.check.ranks.model import RankGroup
from jobgen.launch.launchers import MPI_FLAVOURS
from jobgen.script.launches import Launch
from jobgen.script.mpi_of_script import recognized_mpi
from jobgen.script.script import Script

# Words of code on another node that may set any variable there.
_SETS_ANY = re.compile(
    r"\$\((?:export|declare|env|printenv|set)\b|\b(?:export|declare) -p\b|SendEnv|\benv\b *[|>]|--env-file"
)
_SOURCE = re.compile(r"(?:^|[\s;&\"'(])(?:source|\.)\s+(\S+)")
_READ = re.compile(r"\$\{?(\w+)")
_SET = re.compile(r"(?<![\w$])([A-Za-z_]\w*)=")
_NONE = ("-genvnone", "--genvnone", "-envnone", "--envnone")
_LISTS = ("-genvlist", "--genvlist", "-envlist", "--envlist")
_SETTERS = ("-genv", "--genv", "-env", "--env", "-x")
# Options by which Open MPI starts its daemons over ssh, whatever the scheduler.
_OVER_SSH = re.compile(r"\b(?:plm|pls)(?:_\w+)? +(?:rsh|ssh)\b|\b(?:plm|pls)_(?:rsh|ssh)_agent\b")
_SSH_VARIABLES = ("OMPI_MCA_plm", "PRTE_MCA_plm")


class Filter(NamedTuple):
    """What passes only some of the variables of the script to the ranks, or all but some.

    ``cause`` begins the message. ``passed`` are those that it passes or sets, ``excepted`` those that it
    drops if all others pass. Without ``certain`` it may pass all. ``of_tasks``: it drops those that Slurm and
    the MPIs set in each task, too; ``around_code``: also from the code that each task runs.
    """

    cause: str
    fix: str
    passed: frozenset[str] = frozenset()
    excepted: frozenset[str] | None = None
    certain: bool = True
    of_tasks: bool = False
    around_code: bool = False

    def drops(self, name: str) -> bool:
        """Return whether a variable does not pass."""
        return name not in self.passed and (self.excepted is None or name in self.excepted)


def filters(script: Script, group: RankGroup) -> Iterator[Filter]:
    """Yield what drops variables of the script before a program gets them; nothing that is unknown."""
    remote = next((launch.remote for launch in group.chain if launch.remote), "")
    if script.starter is not None and script.starter.call.remote == remote:
        remote = ""  # it starts this script, whose own variables are behind it
    if remote and (found := _of_remote(script, group, os.path.basename(remote))) is not None:
        yield found
    for launch in group.chain:
        if launch.unknown:
            continue
        words = [script.constants.value(word) or word.unquoted for word in launch.words]
        if launch.row.by_scheduler:
            yield from _of_step(script, launch)
        elif launch.row.of_mpi:
            found = _of_hydra(words) or _of_open_mpi(script, launch, words)
            yield from [found] if found is not None else []
    for container in containers(script, group):
        if (found := _of_container(script, container)) is not None:
            yield found


# Variables that give Apptainer those of the container.
_OF_APPTAINER = re.compile(r"(?:APPTAINER|SINGULARITY)(?:ENV_(\w+)|_(ENV|ENVFILE|CLEANENV)$)")


def _of_container(script: Script, container: Container) -> Filter | None:
    """Return what a container drops."""
    if container.passes_all or not container.is_known:
        return None
    sealed = container.name in SEALED
    more = {match[1]: name for name in script.values if (match := _OF_APPTAINER.match(name))}
    is_open = (not sealed and None in more) or any(name.endswith("*") for name in container.variables)
    if is_open or not container.is_new:
        return None
    cause = f"--cleanenv and --containall keep the variables from the container of {container.name}"
    fix, passed = "leave it out, or add --env NAME=VALUE for each", container.variables | more.keys()
    if sealed:
        cause, fix = f"{container.name} passes no variables to its container", "add -e NAME for each"
        passed = container.variables
    return Filter(cause, fix, passed, of_tasks=True, around_code=container.around)


def _of_remote(script: Script, group: RankGroup, start: str) -> Filter | None:
    """Return what a command such as ssh drops: all but what the code behind it sets."""
    command = group.command
    if command.node.under("function_definition"):
        return None  # it may be in the arguments of the function
    used = _READ.findall(command.node.text)
    values = (value.text for name in used for value in script.values.get(name, ()))
    text = "\n".join([command.statement.text, *values])
    if _SETS_ANY.search(text) or any(not ACTIVATES.search(file) for file in _SOURCE.findall(text)):
        return None
    fix = f"set them in the command that {start} starts, or in a file that it sources"
    return Filter(f"{start} passes no variables to the other nodes", fix, frozenset(_SET.findall(text)))


def _of_step(script: Script, launch: Launch) -> Iterator[Filter]:
    environment = RankEnvironment.of(script)
    passed = environment.passed(launch) if launch.has("--export") else None
    if passed is not None and (not passed or "PATH" in passed):  # else see export-names
        value = environment.export_of(launch)
        others = "none but these variables" if passed else "no variables of the script"
        yield Filter(f"--export={value} passes {others} to the tasks", "write --export=ALL", passed)


def _of_hydra(words: Sequence[str]) -> Filter | None:
    """Return what options of MPICH, Intel MPI and PALS drop; without them all variables pass."""
    given: set[str] = set()
    option = ""
    excepted: frozenset[str] | None = None
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        value = value or (*words, "")[at + 1]
        if name in _NONE or name in _LISTS:
            option = option or name
            given.update(value.split(",") if name in _LISTS else ())
        elif name in ("-genvexcl", "--genvexcl"):
            option, excepted = name, frozenset(value.split(","))
        elif word in _SETTERS:
            given.add(value.partition("=")[0])
    if not option or any("$" in name for name in given):
        return None
    fix = f"add them to {option}" if option in _LISTS else f"leave {option} out"
    return Filter(f"{option} keeps variables from the ranks", fix, frozenset(given), excepted)


def _of_open_mpi(script: Script, launch: Launch, words: Sequence[str]) -> Filter | None:
    """Return what Open MPI drops. Its daemons have the environment where the scheduler starts them; over ssh
    they get what -x names."""
    exporting = "-x" in words or "mca_base_env_list" in words
    mpi = recognized_mpi(script, set(words))
    if not exporting and (mpi is None or MPI_FLAVOURS[mpi].passes_all):
        return None
    if not (script.request.several or launch.has("--hostfile", "-hostfile", "--machinefile", "-machinefile")):
        return None
    named = any(name.startswith(_SSH_VARIABLES) for name, _, _ in script.assignments)
    over_ssh = named or bool(_OVER_SSH.search(" ".join(words))) or not script.in_job
    if not over_ssh and (not exporting or not script.is_pbs):
        return None
    values = [value for word, value in pairwise(words) if word in ("-x", "mca_base_env_list")]
    names = {one.partition("=")[0] for value in values for one in re.split("[;,]", value)}
    if any("$" in name for name in names):
        return None
    where = "over ssh" if over_ssh else "unless its daemons are started by the scheduler,"
    return Filter(
        f"{where} mpirun passes the variables that -x names and no others to the other nodes",
        "add -x NAME for each",
        frozenset(names),
        certain=over_ssh,
    )
