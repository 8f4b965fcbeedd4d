"""The words of a command of the script as a job file has them: known values, and paths with variables."""

from __future__ import annotations

import re

from jobgen.convert.to_job_file import inherited
from jobgen.convert.to_job_file.effects import mentions
from jobgen.launch.expansion import names
from jobgen.rendering.quoting import VARIABLE
from jobgen.script.commands import Command
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions

# A path with variables.
OPEN_PATH = re.compile(rf"(~/)?((?a:{VARIABLE})|[\w./+@%:-])*")
# Variables of the shell, with another value at each place, and those of schedulers, too.
CHANGING = re.compile(r"((OLD)?PWD|S?RANDOM|SECONDS|LINENO|BASHPID|EPOCH(SECONDS|REALTIME)|_)$")
OF_JOB = re.compile(rf"(PBS|SLURM|SALLOC|SBATCH)_|{CHANGING.pattern}")
_BELOW_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(/[\w./+@%:-]+)")


def words(script: Script, command: Command) -> list[str] | None:
    """Return the arguments of a command as the shell splits them; None if one is not known."""
    found: list[str] = []
    for node in command.arguments:
        if (home := _BELOW_HOME.fullmatch(resolved(script, node))) and "HOME" not in script.values:
            found.append(f"~{home[1]}")
            continue
        value = script.constants.value(node)
        bare = node.type not in ("string", "raw_string")
        if (value is None or value.startswith("~")) and (text := _open(script, command, node)):
            found.append(text)
            continue
        if value is None or "$" in value or value.startswith("~") or not is_set_above(script, node):
            return None
        if bare and re.search(r"[*?{}~]|\[", value):
            return None
        found += value.split() if bare else [value]
    return found


def resolved(script: Script, word: Node) -> str:
    """Return the text of a word without quotes, with the text of the variable that it begins with."""
    text = word.text
    name = re.match(r"\"?\$(\w+|\{\w+\})(?=[\"/]|$)", text)
    node = script.constants.node(name[1].strip("{}")) if name else None
    if name and node is not None and node.start < word.start:
        text = node.text + text[name.end() :]
    return "" if text.startswith('"~') else text.replace('"', "")


def is_set_above(script: Script, node: Node) -> bool:
    """Return whether the constants in a node are set before it, and those in their values before them."""
    nodes = [script.constants.node(name) for name, _ in expansions(node)]
    return all(one is None or (one.start < node.start and is_set_above(script, one)) for one in nodes)


def _open(script: Script, command: Command, word: Node) -> str:
    """Return a word with the variables of the environment in which the job runs, or of a file, a module
    or a command above; empty for another one, and for perhaps several modules."""
    text, own = script.constants.text(word), word.text.replace('"', "")
    if text.startswith("~") and not word.text.startswith("~/"):
        return ""  # in quotes, or the home of another user
    if re.search(r"[($`]", re.sub(VARIABLE, "", text, flags=re.ASCII)):
        text = own  # with values that are known only when the job runs
    text = re.sub(r"^\$(HOME\b|\{HOME\})(?=/.)", "~", text)
    several = word.type in ("simple_expansion", "expansion") and command.name in ("module", "ml")
    above = text == own or is_set_above(script, word)
    if several or not OPEN_PATH.fullmatch(text) or not above or "HOME" in script.values:
        return ""
    unsets = list(script.tree.all("unset_command"))
    for name in names([text]):
        unset = any(mentions(one, name) for one in unsets) or name in script.loop_variables
        if unset or OF_JOB.match(name) or _is_changed(script, name, word.start):
            return ""
    return text


def _is_changed(script: Script, name: str, place: int) -> bool:
    """Return whether a script may set a variable, but by assignments above a place only."""
    sets = [node for other, _, node in script.assignments if other == name]
    above = all(one.start < place and not one.under("function_definition", "command") for one in sets)
    reads = script.named("read", "mapfile", "readarray", "getopts", "let")
    fixed = above and not any(mentions(one.node, name) for one in reads)
    return not fixed if sets else inherited.is_set(script, name)
