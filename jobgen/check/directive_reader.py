"""The directives of a script, read as its scheduler reads them: up to the first command.

PBS and sbatch read all lines before the first one that is not a comment. Lines that only look like a
directive (``# PBS``, ``#pbs``) are kept, too: they have no effect, and this is rarely intended.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from jobgen.schedulers.table import letters

PBS = ("pbspro", "torque")
SCHEDULERS = (*PBS, "slurm", "shell")
_PREFIXES = {"pbspro": "#PBS", "torque": "#PBS", "slurm": "#SBATCH"}
_LONG = """
account= acctg-freq= array= batch= bb= bbf= begin= chdir= cluster-constraint= clusters= comment=
constraint= container= container-id= contiguous core-spec= cores-per-socket= cpu-freq= cpus-per-gpu=
cpus-per-task= deadline= delay-boot= dependency= distribution= error= exclude= exclusive? export=
export-file= extra= extra-node-info= get-user-env? gid= gpu-bind= gpu-freq= gpus= gpus-per-node=
gpus-per-socket= gpus-per-task= gres= gres-flags= help hint= hold ignore-pbs input= job-name=
kill-on-invalid-dep= licenses= mail-type= mail-user= mcs-label= mem= mem-bind= mem-per-cpu= mem-per-gpu=
mincpus= network= nice? no-kill? no-requeue nodefile= nodelist= nodes= ntasks= ntasks-per-core=
ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= ntasks-per-tres= oom-kill-step? open-mode= output=
overcommit oversubscribe parsable? partition= power= prefer= priority= profile= propagate? qos= quiet
reboot requeue reservation= resv-ports? segment= share shared signal= sockets-per-node= spread-job
stepmgr switches= tasks-per-node= test-only thread-spec= threads-per-core= time= time-min= tmp=
tree-width= tres-bind= tres-per-task= uid= usage use-min-nodes verbose version wait wait-all-nodes= warn
wckey= workdir= wrap=
"""
LONG = {name.rstrip("=?"): name[-1] for name in _LONG.split()}
SHORT = {
    "-A": "--account", "-a": "--array", "-b": "--begin", "-D": "--chdir", "-C": "--constraint",
    "-c": "--cpus-per-task", "-d": "--dependency", "-m": "--distribution", "-e": "--error",
    "-x": "--exclude", "-B": "--extra-node-info", "-G": "--gpus", "-i": "--input", "-J": "--job-name",
    "-L": "--licenses", "-M": "--clusters", "-w": "--nodelist", "-F": "--nodefile", "-N": "--nodes",
    "-n": "--ntasks", "-o": "--output", "-p": "--partition", "-q": "--qos", "-t": "--time",
    "-k": "--no-kill", "-H": "--hold", "-O": "--overcommit", "-s": "--oversubscribe", "-W": "--wait",
    "-Q": "--quiet", "-v": "--verbose", "-S": "--core-spec",
    "--tasks-per-node": "--ntasks-per-node", "--workdir": "--chdir",
}  # fmt: skip


class Option(NamedTuple):
    """An option of a directive. On Slurm ``flag`` is the long name; ``given`` is the option as written."""

    line: int
    flag: str
    value: str
    given: str


class Line(NamedTuple):
    """A line that is a directive or looks like one; ``rest`` is the text after the prefix."""

    number: int
    text: str
    rest: str


class Directives(NamedTuple):
    """The directives of a script. ``first_command`` is the number of a line, or 0.

    ``live`` directives have an effect; ``late`` and ``inert`` ones have none.
    """

    live: tuple[Line, ...]
    late: tuple[Line, ...]
    inert: tuple[Line, ...]
    first_command: int

    def options(self, scheduler: str) -> tuple[Option, ...]:
        return tuple(option for line in self.live for option in read_options(line, scheduler))


def guess(lines: list[str]) -> str:
    """Return the scheduler of a script. A script for PBS is for Torque only if something is Torque's own."""
    marks = [match[1].upper() for line in lines if (match := re.match(r"\s*#+ ?(PBS|SBATCH)\b", line, re.I))]
    if not marks:
        return "shell"
    if marks.count("SBATCH") >= marks.count("PBS"):
        return "slurm"
    directives = " ".join(line for line in lines if re.match(r"\s*#PBS\b", line))
    if re.search(r"\belapstim_req=|\s-b \d", directives):
        return "shell"  # NEC's NQSV: its directives look like those of PBS
    if re.search(r"\b(select|place|ngpus|ncpus|mpiprocs)=|\s-J\b", directives):
        return "pbspro"
    torque = re.search(r"\bnodes=[^,\s]*:gpus=|\s-t\s*\d|\bwalltime=\d+:\d+:\d+:\d+|\bpmem=", directives)
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    return "torque" if torque or re.search(r"\bPBS_(GPUFILE|NP|NUM_PPN)\b", text) else "pbspro"


def read(lines: list[str], scheduler: str) -> Directives:
    """Return the directives of this scheduler, and the lines that look like them."""
    live: list[Line] = []
    late: list[Line] = []
    inert: list[Line] = []
    prefix, first = _PREFIXES.get(scheduler), 0
    for number, text in enumerate(lines, 1):
        found = text.lstrip(" \t") if scheduler in PBS else text
        if prefix and found.startswith(prefix):
            (late if first else live).append(Line(number, text, found[len(prefix) :].strip()))
        elif prefix and not first and (match := re.match(_lookalike(prefix), text, re.I)):
            inert.append(Line(number, text, match[1].strip()))
        elif not first and text.strip() and text.lstrip()[0] != "#" and not text.startswith(":"):
            first = number
    # A comment about directives is not a directive: an option has to follow.
    late = [line for line in late if line.rest.startswith("-")]
    return Directives(tuple(live), tuple(late), tuple(inert), first)


def _lookalike(prefix: str) -> str:
    return rf"\s*#[#\s]*{prefix[1:]}\s+(-.*)"


def words(rest: str, scheduler: str) -> list[str]:
    """Return the words of a directive. All schedulers accept quotes; only sbatch accepts comments."""
    lexer = shlex.shlex(rest, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = "#" if scheduler == "slurm" else ""
    found = []
    try:
        while (word := lexer.get_token()) is not None:
            found.append(word)
    except ValueError:  # a quote that is not closed
        return rest.split()
    return found


def read_options(line: Line, scheduler: str) -> list[Option]:
    """Return the options of a directive. A word that is neither option nor value has an empty flag."""
    given = words(line.rest, scheduler)
    found, at = [], 0
    while at < len(given):
        word = given[at]
        following = given[at + 1] if at + 1 < len(given) else ""
        at += 1
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            flag = _long(name)
            if not equals and LONG.get(flag) == "=":
                value, at = following, at + 1
            flag = SHORT.get("--" + flag, "--" + flag)
            found.append(Option(line.number, flag, value, word))
        elif word.startswith("-") and len(word) > 1:
            value, takes = word[2:], f"{word[1]}:" in letters(scheduler)
            if takes and not value:
                value, at = following, at + 1
            flag = SHORT.get(word[:2], word[:2]) if scheduler == "slurm" else word[:2]
            found.append(Option(line.number, flag, value, word[:2]))
        else:
            found.append(Option(line.number, "", word, word))
    return found


def _long(name: str) -> str:
    """Return the full name of a long option: getopt accepts any unambiguous prefix."""
    if name in LONG:
        return name
    whole = [known for known in LONG if known.startswith(name)]
    return whole[0] if len(whole) == 1 else name
