"""Where the ranks meet: each address and port that the script gives, and what its value is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from jobgen.script.commands import commands
from jobgen.script.other_text import has_variable
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, Node, assignments, expansions
from jobgen.values.parsers import number

_ADDRESSES = ("--master-addr", "--main-process-ip")
_ENDPOINT, _OF_RAY = "--rdzv-endpoint", "--address"
_PORTS = ("--master-port", "--main-process-port")
_NAME = r"SLURM_(?:JOB_|STEP_)?NODELIST"
_LIST = rf"\$(?:{_NAME}\b|\{{{_NAME}\}})"
_FIRST_OF_LIST = rf"\$\{{{_NAME}(%%?(,|\\?\[)\*|:0:\d+)\}}"
_EXPANDS = ("nodeset", "hostlist", "python", "python3", "perl", "srun", "mpirun", "ssh", "squeue", "sinfo")
_SELECTS = re.compile(r"\b(head|tail|sed|awk|cut|grep|sort|xargs|perl|python3?|tr|read|paste|nl|shuf)\b")
# Commands that leave the compressed list as it is, or cut it at its first comma or bracket.
_FIRST_FIELD = (
    r"cut\s+-d\s*['\"]?[,\[]['\"]?\s+-f\s*1",
    r"cut\s+-f\s*1\s+-d\s*['\"]?[,\[]['\"]?",
    r"head\s+-n?\s*-?1",
    r"awk\s+(-F\s*['\"]?[,\[]['\"]?\s+)?'\{\s*print\s+\$1;?\s*\}'",
    r"cut\s+-c\s*(1-)?\d+(-\d+)?",
    r"sed\s+(-\w+\s+)?['\"]?s(.)(\\?\[|,|-)(\.\*)?\2\2g?['\"]?",
    r"tr\s+-d\s+['\"]\[?\]?['\"]",
)
# Tasks on all nodes print in any order, unless an option chooses one.
_FIRST_ANSWER = (
    r"(?:srun|mpirun|mpiexec)(?![^|]*\s(?:-[nNrwlH]|-np|--(?:ntasks|nodes|nodelist|relative|label|host))\b)\s[^|]*"
    r"\bhostname(?:\s+-\w+)?\s*\|\s*head\s+-n?\s*1"
)
# Commands that print the node file of PBS as a whole, or each host of it once.
_FILE = r"\"?\$\{?PBS_NODEFILE\}?\"?"
_NODE_FILE = (
    rf"(?:(?:cat|uniq|sort)(?:\s+-u)?\s+(?:<\s*)?{_FILE}|<\s*{_FILE})(?:\s*\|\s*(?:uniq|sort(?:\s+-u)?))*"
)
_Range: TypeAlias = tuple[int, int] | None
_DEEPEST = 4
_LAST_JOB = 67108863  # MaxJobId of Slurm
_LAST_DIGITS = re.compile(
    r"\$\{SLURM_JOB_?ID: *\(?-4\)?\}"
    r"|\$\(echo (-n )?[\"']?\$\{?SLURM_JOB_?ID\}?[\"']? *\| *tail -c *-?[45]\)"
)
_DRAWN_PORT = re.compile(
    r"[\"']?[$`(]+\s*shuf\s+(?:-n\s*1\s+)?-i\s*(\d{1,5})-(\d{1,5})(?:\s+-n\s*1)?\s*[)`][\"']?$"
)
_DRAWN = r"(?<!\w)RANDOM\b|\bshuf\b|\buuidgen\b|\bmktemp\b|/random/uuid|\$\(date\b|\$\$|\brandint\b|bind\(\("
_OF_TASK = re.compile(r"SLURM_(PROCID|LOCALID|NODEID)|OMPI_COMM_WORLD_(LOCAL_)?RANK|PMI_RANK|SLURMD_NODENAME")
EXPANSIONS = ("simple_expansion", "expansion", "command_substitution", "arithmetic_expansion")
_DRAWN_OPTIONS = (
    r"--(rdzv[-_](?:id|endpoint)|(?:master|main[-_]process)[-_](?:port|addr|ip)|coordinator[-_](?:address|port)"
    r"|dist[-_](?:url|port|init[-_]addr)|init[-_]method)(=|$)(.*)"
)
_DRAWN_VARIABLES = ("MASTER_PORT", "MASTER_ADDR", "RDZV_ID", "COORDINATOR_ADDRESS", "JAX_COORDINATOR_ADDRESS")
_OWN_HOST = re.compile(r"\blocalhost:|\b127\.0\.0\.1:|\bfile://")  # each task may train alone there


class Address(NamedTuple):
    """An address or port of the rendezvous: the line, the node of its value, and the name of what sets it."""

    line: int
    node: Node
    name: str


def addresses(script: Script) -> Iterator[Address]:
    """Return each address of the rendezvous, in variables and in options of launchers."""
    return _given(script, ("MASTER_ADDR", "MAIN_PROCESS_IP", "RDZV_HOST"), _ADDRESSES)


def ports(script: Script) -> Iterator[Address]:
    """Return each port of the rendezvous."""
    return _given(script, ("MASTER_PORT", "MAIN_PROCESS_PORT"), _PORTS)


def _given(script: Script, variables: Sequence[str], options: Sequence[str]) -> Iterator[Address]:
    """Yield the values of these variables, and of these options and the endpoint of launchers."""
    for name, value, node in script.assignments:
        if name in variables:
            yield Address(node.line, value, name)
    for launch in script.launches:
        for name in (*options, _ENDPOINT):
            if (word := launch.nodes.get(name)) is not None:
                yield Address(launch.line, word, name)
    if re.search(r"\bray\s+start\b", script.tree.text):
        yield from _of_ray(script)


def _of_ray(script: Script) -> Iterator[Address]:
    """Yield the addresses at which Ray's workers on other nodes look for its head."""
    for one in script.programs:
        words = [one.file, *one.arguments]
        texts = [os.path.basename(one.constants.text(word).strip("\"'")) for word in words[:2]]
        for word, after in pairwise((*words, words[-1])) if texts == ["ray", "start"] else ():
            if word.text == _OF_RAY or word.text.startswith(f"{_OF_RAY}="):
                yield Address(one.line, after if word.text == _OF_RAY else word, _OF_RAY)


def host(script: Script, address: Address) -> str:
    """Return the host of an address, if the text has it; else empty."""
    text = _host_of(script.constants.text(address.node), address)
    return "" if has_variable(text) else text


def _host_of(text: str, address: Address) -> str:
    """Return a value without its option and its port."""
    text = text.partition("=")[2] if text.startswith("--") else text
    return re.sub(r":[^:}]*$", "", text) if address.name in (_ENDPOINT, _OF_RAY) else text


def host_fault(script: Script, address: Address) -> str:
    """Return what an address is that is not that of one host of the job; empty if it may be one."""
    return _fault(script, _host_of(address.node.unquoted, address), 0)


def is_last_host(script: Script, address: Address) -> bool:
    """Return whether an address is the last host of the list, where the last ranks run."""
    text = address.node.unquoted.partition("=" if address.name.startswith("--") else "\0")
    last = r"^[\"']?[$`(]+\s*scontrol\s+show\s+hostnames?\b[^|]*\|\s*tail\s+-n?\s*1\s*[)`]"
    return any(re.search(last, value) for value in (text[0], text[2], *_values(script, address)))


def _values(script: Script, address: Address) -> list[str]:
    """Return the values of the variables in an address."""
    names = [name for name, _ in expansions(address.node)]
    return [value.text for name in names for value in script.values.get(name, [])]


def _fault(script: Script, text: str, depth: int) -> str:
    text = text.strip("\"'")
    if re.fullmatch(_LIST, text):
        return "the compressed list of all hosts"
    if re.fullmatch(r"\$\{?(SLURM_SUBMIT_HOST|PBS_O_HOST)\}?", text):
        return "the host of the submission"
    if re.fullmatch(r"\$\{?PBS_NODEFILE\}?", text):
        return "the path of the node file"
    if re.fullmatch(_FIRST_OF_LIST, text):
        return "a part of the compressed list of hosts"
    match = re.fullmatch(r"\$\{?(\w+)((?:\[[^\]]*\])?)\}?", text)
    if match and depth < _DEEPEST:
        return _of_variable(script, match[1], match[2], depth)
    if text.startswith(("$(", "`")) and text.endswith((")", "`")):
        return _of_command(text[2:-1] if text.startswith("$(") else text[1:-1])
    return ""


def _of_variable(script: Script, name: str, index: str, depth: int) -> str:
    """Return the fault of the only value of a variable that no loop and no other command changes."""
    values = script.values.get(name, [])
    if len(values) != 1 or values[0].under(*LOOPS, "function_definition"):
        return ""
    value = values[0]
    if value.type == "array":
        inner = value.text[1:-1].strip()
        return _fault(script, inner, depth + 1) if index in ("[@]", "[*]") else ""
    return "" if index else _fault(script, value.text, depth + 1)


def _of_command(text: str) -> str:
    """Return the fault of what a command prints; one that is not understood has none."""
    text = text.strip()
    if re.fullmatch(_FIRST_ANSWER, text):
        return "the host whose task answers first"
    if any(re.search(rf"(^|[\s|(/]){name}\b", text) for name in _EXPANDS):
        return ""
    if re.fullmatch(_NODE_FILE, text):
        return "the names of all hosts"
    if re.match(r"scontrol\s+show\s+host", text):
        return "" if _SELECTS.search(text) else "the names of all hosts"
    if re.fullmatch(r"hostname\s+(--all-ip-addresses|-I|--all-fqdns|-A)", text):
        return "all addresses of the host"
    if text.startswith(("echo", "printf")) and re.search(_LIST, text) and "scontrol" not in text:
        stages = [stage.strip() for stage in text.split("|")[1:]]
        if all(any(re.fullmatch(one, stage) for one in _FIRST_FIELD) for stage in stages):
            return "a part of the compressed list of hosts"
    return ""


def loopback(script: Script, address: Address) -> bool:
    """Return whether the address is that which the host's own table has for its name."""
    pattern = r"[`(]\s*hostname\s+(--ip-address|-i)\s*([)`]|\|)"
    return any(re.search(pattern, value) for value in (address.node.unquoted, *_values(script, address)))


def port_ranges(script: Script) -> Iterator[tuple[Address, int, int]]:
    """Yield each port of the rendezvous with its least and greatest value, if the text determines them."""
    for one in ports(script):
        if (limits := port_range(script, one.node)) is not None:
            name = f"the port in {one.name}" if one.name == _ENDPOINT else one.name
            yield one._replace(name=name), *limits


def port_range(script: Script, node: Node, depth: int = 0) -> _Range:
    """Return the least and the greatest value of a port; None if the text does not determine them."""
    text = script.constants.text(node).strip("\"'").rpartition(":")[2]
    if (port := number(script.constants.value(node) if depth else text, 6)) is not None:
        return port, port
    if depth > _DEEPEST:
        return None
    if _LAST_DIGITS.fullmatch(node.text):
        return 0, 9999
    if drawn_port := _DRAWN_PORT.match(node.text):
        return int(drawn_port[1]), int(drawn_port[2])
    signs = ('"', "$((", "))", "(", ")", "$", "${", "}")
    inner = [child for child in node.children if child.type not in signs]
    if node.type in ("string", "arithmetic_expansion", "parenthesized_expression") and len(inner) == 1:
        return port_range(script, inner[0], depth + 1)
    if node.type in ("string", "concatenation") and inner:  # --master-port=$P, "$HOST:$P"
        before = node.source[node.start : inner[-1].start].rstrip(b'"')
        return port_range(script, inner[-1], depth) if before.endswith((b":", b"=")) else None
    if node.type in ("simple_expansion", "expansion", "variable_name", "word"):
        return _range_of_name(script, node, depth)
    if node.type == "binary_expression" and len(inner) == 3:
        left, right = (port_range(script, inner[at], depth + 1) for at in (0, 2))
        return _range_of(inner[1].text, left, right)
    return None


def _range_of_name(script: Script, node: Node, depth: int) -> _Range:
    names = [name for name, _ in expansions(node)]
    name = names[0] if names else node.text
    if name == "RANDOM":
        return 0, 32767
    if name in ("SLURM_JOB_ID", "SLURM_JOBID") and len(node.children) <= 3:
        return 1, _LAST_JOB
    values = script.values.get(name, [])
    if len(values) == 1 and len(node.children) <= 3:
        return port_range(script, values[0], depth + 1)
    return None


def _range_of(sign: str, left: _Range, right: _Range) -> _Range:
    if sign == "%" and right and right[0] == right[1] > 0:
        return (0, right[0] - 1) if left is None or left[1] >= right[0] else left
    if left is None or right is None:
        return None
    if sign == "+":
        return left[0] + right[0], left[1] + right[1]
    if sign == "-":
        return left[0] - right[1], left[1] - right[0]
    return None


def drawn(text: str) -> bool:
    """Return whether a value differs each time that a shell evaluates it."""
    return re.search(_DRAWN, text) is not None


def drawn_in(tree: Node, text: Node | None = None) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each address, port or id of the rendezvous that differs in each task.

    What the script itself expands in the ``text`` of the code is the same in all tasks.
    """
    same = [one.text for one in text.all(*EXPANSIONS)] if text is not None and text.type == "string" else []

    def own(value: str) -> str:
        for part in same:
            value = value.replace(part, "")
        return value

    joins = re.search(r"\bRANK=|--nnodes|--num_machines", tree.text) is not None  # else jobs of their own
    together = joins and re.search(r"--nnodes[= ]1\b", tree.text) is None
    for node in tree.all("variable_assignment"):
        name = node.text.partition("=")[0]
        value = own(node.text)
        of_task = joins and _OF_TASK.search(value)
        if name in _DRAWN_VARIABLES and (drawn(value) or of_task):
            yield node.line, name
    names = {name for name, value, _ in assignments(tree) if drawn(own(value.text.replace('\\"', '"')))}
    for command in commands(tree):
        words = [word.text for word in command.arguments]
        for at, word in enumerate(words):
            match = re.match(_DRAWN_OPTIONS, word, re.S)
            value = own(match[3] or (*words, "")[at + 1]) if match else ""
            value = "" if _OWN_HOST.search(value) and "rdzv" not in word else value
            of_task = _OF_TASK.search(value) if together else None
            if match and (drawn(value) or of_task or names.intersection(re.findall(r"\$\{?(\w+)", value))):
                yield command.line, f"--{match[1]}"
