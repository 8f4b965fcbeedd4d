"""The words around the launcher of a script: commands that run it, a container, and a shell with its text."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.convert.result import Remark, hint, shortened
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.program_line import ProgramWords, by_python, option_text, read
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.launch.command_line import SHELLS, is_python
from jobgen.launch.containers import RUNTIMES
from jobgen.launch.expansion import names, of_ranks
from jobgen.launch.wrappers import CONTAINERS, WRAPPERS, command_start
from jobgen.script.commands import Command, commands
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions, parse
from jobgen.script.word_lists import DEEPEST, expanded, part_of_text, places_of_text, shell_text

# Commands that change nothing about a program, or only print its time.
_NEUTRAL = ("time", "nohup", "exec", "command", "builtin", "coproc", "eval", "setsid")
# Commands whose effect all processes inherit: once for each rank is the same as once for all.
_INHERITED = ("env", "numactl", "nice", "ionice", "taskset", "chrt", "timeout", "stdbuf", "conda", "mamba")
_MORE_CONTAINERS = ("sarus", "enroot", "udocker", "nerdctl", "nvidia-docker")
_INHERITING = ("apptainer", "singularity", "shifter")  # containers that have the variables of the job
_ENVIRONMENT = ("source", ".", "module", "ml", "conda", "mamba", "micromamba", "spack", "export", "ulimit")
_APPTAINER = """
-B --bind -H --home -W --workdir -S --scratch -o --overlay -e --cleanenv -c --contain -C --containall
-w --writable -i --ipc -p --pid -n --net -u --userns
"""
_DOCKER = """
-v --volume -e --env -w --workdir -m --memory -u --user -h --hostname -l --label -p --publish
"""
_SHIFTER = "-i --image -V --volume -m --module -e --env -w --workdir"
_OPTIONS = {
    "apptainer": _APPTAINER, "singularity": _APPTAINER, "docker": _DOCKER, "podman": _DOCKER,
    "shifter": _SHIFTER,
}  # fmt: skip
# The long name of each letter; those of one runtime mean other options of another.
_LONG = {name: dict(re.findall(r"(-\w) (--[\w-]+)", text)) for name, text in _OPTIONS.items()}
_BINDS = ("--bind", "--volume")
_VALUE = re.compile(r"(?<!\\)\$(?:(\w+)|\{(\w+)\})")


class Surroundings(NamedTuple):
    """The words before the outermost launcher and those between it and the launcher of the ranks; the string
    with the launcher that a shell reads, and the command of the launcher in it. ``hidden``: a shell reads
    the launcher in another text, such as a here-document; ``in_shell``: in one that is nothing else."""

    words: tuple[Node, ...] = ()
    text: Node | None = None
    inner: Node | None = None
    hidden: bool = False
    in_shell: bool = False


class Container(NamedTuple):
    """A container as options of jobgen, and the number of words that it takes."""

    kind: str
    image: str
    binds: list[str]
    arguments: list[str]
    size: int


def around(script: Script, launch: Launch) -> Surroundings:
    """Return what is around a launcher."""
    outermost, inner = launch.chain[-1], launch.around
    words = [one for word in outermost.command.words for one in expanded(word, script.constants)]
    front = words[: _launcher_at(script, outermost, words)]
    behind = outermost.program if outermost is not launch else tuple(words)
    texts = [os.path.basename(script.constants.value(word) or "") for word in behind]
    shells = [at for at, text in enumerate(texts) if text in ("bash", "sh")]
    at_text, shell = None, None
    if inner is not None and inner is not outermost.command.node:
        nodes = [_text_of(script, word) for word in behind]
        own = [at for at, one in enumerate(nodes) if one and shell_text(one).encode() == inner.source]
        at_text = next(iter(own), None)
    if at_text is not None:
        shell = max((at for at in shells if at < at_text), default=at_text)
    elif shells and inner is not None and inner.source is not outermost.command.node.source:
        shell = shells[0]
    if shell is not None:
        before = (*(front if outermost is not launch else ()), *behind[:shell])
        if (call := _only_command(script, behind[shell:])) is not None:
            return Surroundings((*before, *_in_front(script, launch, call)), in_shell=True)
        if at_text is None:
            return Surroundings(before, hidden=True)
        return Surroundings(before, _text_of(script, behind[at_text]), inner)
    if outermost is launch:
        return Surroundings(tuple(front))
    between = list(outermost.program)
    return Surroundings((*front, *between[: _launcher_at(script, launch, between)]))


def is_contained(script: Script, launch: Launch) -> bool:
    """Return whether a container is around a launcher that jobgen cannot start in one."""
    if launch.row.once_a_node:
        return False
    words = around(script, launch).words
    return any(os.path.basename(script.constants.value(word) or "") in CONTAINERS for word in words)


def is_kept(script: Script, launch: Launch) -> bool:
    """Return whether a launcher stays a command: one in a container, or one for each of several inputs."""
    return (launch.each_input and not launch.remote) or is_contained(script, launch)


def _only_command(script: Script, shell: Sequence[Node]) -> Command | None:
    """Return the only command in the text of ``bash -c TEXT``; None if there are more, or may be."""
    if len(shell) != 3 or not re.fullmatch(r"-[a-z]*c", shell[1].text):
        return None
    text = shell_text(shell[2])
    for _ in range(DEEPEST):
        text = _VALUE.sub(lambda match: _value_in(script, match), text)
    names = {one for pair in _VALUE.findall(text) for one in pair}
    others = (value.text for one in names for value in script.values.get(one, ()))
    if any(re.search(r"[;&|<>\n]", re.sub(r"\$\([^)]*\)|`[^`]*`", "", value)) for value in others):
        return None
    root = parse(text.replace("\\\n", " ").strip().encode(), shell[2].line)
    found = [one for one in root.children if one.type != "comment"]
    return next(commands(root), None) if [one.type for one in found] == ["command"] else None


def _value_in(script: Script, match: re.Match[str]) -> str:
    """Return the value of a variable in a text, or the variable itself if it is not known."""
    return match[0] if (node := script.constants.node(match[1] or match[2])) is None else shell_text(node)


def _in_front(script: Script, launch: Launch, call: Command) -> tuple[Node, ...]:
    """Return the words before the launcher in its command, with the variables of this command behind env."""
    pairs = [one.text for one in call.node.children if one.type == "variable_assignment"]
    env = next(commands(parse(" ".join(["env", *pairs]).encode(), launch.line))).words if pairs else ()
    return (*env, *call.words[: _launcher_at(script, launch, call.words)])


def _launcher_at(script: Script, launch: Launch, words: Sequence[Node]) -> int:
    return _place_of(launch, [script.constants.value(word) or "" for word in words])


def launcher_word(launch: Launch) -> Node:
    """Return the word that names the launcher, or the Python that runs it."""
    words = next(commands(launch.around or launch.command.node), launch.command).words
    names = [os.path.basename(word.text) for word in words]
    if words[0].source is not launch.command.node.source and _known(launch).isdisjoint(names):
        words = launch.command.words  # the launcher, and the program with its options, are in two variables
    return words[launcher_in(launch, words)]


def _known(launch: Launch) -> set[str]:
    return {*launch.row.names, *launch.row.line.modules}


def launcher_in(launch: Launch, words: Sequence[Node]) -> int:
    """Return the index of a launcher in the words of its command."""
    return _place_of(launch, [word.text for word in words])


def _place_of(launch: Launch, texts: Sequence[str]) -> int:
    """Return the index of the first word of a launcher; 0 if it is in none of them."""
    names, known = [os.path.basename(text) for text in texts], _known(launch)
    at = next((i for i, name in enumerate(names) if name in known), 0)
    if names[at : at + 1] and names[at] in launch.row.line.modules:  # python3 -u -m MODULE
        return next((i for i in range(at, -1, -1) if is_python(names[i])), at)
    return at


def _text_of(script: Script, word: Node) -> Node | None:
    """Return the string that a word is, or that its variable is set to."""
    if word.type in ("string", "raw_string") and not re.fullmatch(r'"\$\{?\w+\}?"', word.text):
        return word
    names = [node.text for node in word.all("variable_name")]
    return script.constants.node(names[0]) if len(names) == 1 else None


def apply(file: JobFile, script: Script, launch: Launch, found: Surroundings) -> tuple[Node, ...]:
    """Set the container and the environment that the words name; return those that stay before the program.

    The launcher of jobgen starts what it finds on the node, so that only its ranks get the rest.
    """
    kept: list[Node] = []
    words = list(found.words)
    while words:
        texts = [script.constants.value(word) for word in words]
        name = os.path.basename(texts[0] or "")
        fixed = [option_text(script, word) for word in words]
        if launch.row.once_a_node and (box := container(fixed)) and _set(file, box):
            words = words[box.size :]
        elif launch.row.once_a_node and (found_env := _conda(texts)) and file.try_add("conda", found_env[0]):
            words = words[found_env[1] :]
        else:
            size = _size(texts)
            inner = os.path.basename(texts[size] or "") if size < len(texts) else ""
            if name == "sudo" and container_name(inner):
                why = f"is left out: jobgen starts {inner} without it"
                file.lose(launch.line, name, why, of_program=True)
            elif name not in _NEUTRAL:
                kept += words[:size]
                file.remarks += _remarks(launch, name or words[0].text)
            words = words[size:]
    return tuple(kept)


def in_container(file: JobFile, script: Script, launch: Launch, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Set the container that each rank starts; return the words of the program in it, or all words."""
    box = None if launch.row.once_a_node else container([option_text(script, one) for one in nodes])
    inner = tuple(nodes[box.size :]) if box else ()
    alone = inner and os.path.basename(script.constants.value(inner[0]) or "") not in (*WRAPPERS, *SHELLS)
    if box and alone and not read(script, inner).several and box.kind in _INHERITING and _set(file, box):
        return inner
    return tuple(nodes)


def _remarks(launch: Launch, name: str) -> list[Remark]:
    if not launch.row.once_a_node or name in _INHERITED:
        return []
    if name in {*CONTAINERS, *_MORE_CONTAINERS} or container_name(name) or name.endswith((".sif", ".simg")):
        why = f"is around each rank, but {launch.kind} is started outside of it: "
        return [Remark(launch.line, name, f"{why}no option of jobgen has all of it", of_program=True)]
    why = f"starts each rank; in the script it starts {launch.kind} once on a node"
    return [hint(launch.line, name, why)]


def _size(texts: Sequence[str | None]) -> int:
    """Return the number of words of the first wrapper; all words if it is not known."""
    if (name := os.path.basename(texts[0] or "")) not in WRAPPERS:
        return len(texts)
    at = command_start([*texts, "PROGRAM"])
    behind = 1 + bool(WRAPPERS[name].subcommand)
    inner = next((i for i in range(behind, at) if os.path.basename(texts[i] or "") in WRAPPERS), at)
    return max(inner, 1)


def _conda(texts: Sequence[str | None]) -> tuple[str, int] | None:
    """Return the environment of ``conda run -n NAME``, and the number of words."""
    match = re.match(
        r"(?:conda|mamba) run(?: --no-capture-output| --live-stream)* (?:-n|-p|--name|--prefix)[ =](\S+)"
        r"(?: --no-capture-output| --live-stream)*(?= |$)",
        " ".join(word or "\0" for word in texts),
    )
    return (match[1], len(match[0].split(" "))) if match and "\0" not in match[0] else None


def container_name(name: str) -> str:
    """Return the container runtime of a command; empty if it is none."""
    return next((kind for kind, row in RUNTIMES.items() if row.command == name and not row.image_option), "")


def container(texts: Sequence[str | None]) -> Container | None:
    """Return the container that words start, if jobgen has all of it; None otherwise."""
    name = container_name(os.path.basename(texts[0] or "" if texts else ""))
    if not name or name == "enroot" or None in texts[:2]:
        return None
    by_option = name == "shifter"
    at, image = 1 + (not by_option), ""
    if not by_option and texts[1] != ("run" if name in ("docker", "podman") else "exec"):
        return None
    ours = {part for row in ACCELERATORS.values() for part in (row.containers.get(name) or "").split()}
    mounts, arguments = list[str](), list[str]()
    values = (*WRAPPERS.get(name, WRAPPERS["apptainer"]).values, *_VALUES.get(name, ()))
    while at < len(texts) and (text := texts[at]) is not None and text.startswith("-"):
        option, equals, value = text.partition("=")
        if not equals and option in values:
            at += 1
            if (given := texts[at] if at < len(texts) else None) is None:
                return None
            value = given
        at += 1
        option = _LONG[name].get(option, option)
        whole = f"{option}={value}" if value else option
        if option in _BINDS:
            mounts += binds(value, "," if option == "--bind" else ";")
        elif option == "--image":
            image = value
        elif option not in _DROPPED and whole not in ours and option not in ours:
            arguments.append(whole)
    if not by_option:
        image, at = (texts[at] if at < len(texts) else None) or "", at + 1
    return Container(name, image, mounts, arguments, at) if image else None


def binds(text: str, between: str = ",") -> list[str]:
    """Return the mounts of an option; a variable that may name several of them gets no valid form."""
    return [f"{one}:" if names([one]) and not _IS_MOUNT.match(one) else one for one in text.split(between)]


# A source and a target, or a variable of one directory.
_IS_MOUNT = re.compile(r".*:|\$\w*(HOME|PWD|TMPDIR|SCRATCH|WORK|DIR|ROOT|FOLDER)\b|\$\w+/")


# Options that jobgen has itself, or that a job has no use for.
_DROPPED = ("--", "--rm", "-it", "-ti", "-i", "-t", "--interactive", "--tty", "--nv", "--rocm", "--gpus")
_OF_DOCKER = """
-v --volume -e --env -w --workdir --gpus --shm-size --ulimit --network --net --ipc --pid --name --mount
--device --user -u --entrypoint --env-file --cap-add --security-opt --hostname -h --memory -m --cpus --userns
"""
_VALUES = {"docker": tuple(_OF_DOCKER.split()), "podman": tuple(_OF_DOCKER.split())}


def _set(file: JobFile, box: Container) -> bool:
    """Set the options of a container if jobgen accepts all of them."""
    given = {"image": [box.image], "bind": box.binds, "container_arg": box.arguments}
    fits = all(file.accepts(key, one) for key, values in given.items() for one in values)
    if not fits or "container" in file.values:
        return False
    lists = {key: values for key, values in given.items() if values and key != "image"}
    file.values |= {"container": box.kind, "image": box.image, **lists}
    return True


def text_program(
    file: JobFile, launch: Launch, found: Surroundings, program: Sequence[Node], more: Sequence[str]
) -> ProgramWords | None:
    """Return the text of a shell with the program in the place of its launcher; None if the launcher is alone
    in it. If the commands before it only set up an environment, they become a part of setup."""
    text, inner = found.text, found.inner
    if found.hidden:
        why = "is in a text for a shell that is not read as a whole: other commands in it are missing"
        file.lose(launch.line, launch.kind, why, of_program=True)
    if text is None or inner is None or not program:
        return None
    root, call = parse(inner.source), next(commands(inner))
    before = [one.name for one in commands(root) if one.node.start < inner.start]
    before += [one.children[0].text for one in root.all("declaration_command") if one.start < inner.start]
    after = [one.name for one in commands(root) if one.node.start >= inner.end]
    whole_command = inner.child_of("redirected_statement") or inner
    into = [one.text for one in whole_command.children if one.type == "file_redirect"]
    if not before and not after:
        return None
    if program[0].source is not inner.source or program[-1].source is not inner.source:
        why = "is in a string with other commands, and its program in a variable: these commands are missing"
        file.lose(launch.line, launch.kind, why, of_program=True)
        return None
    places = places_of_text(text)
    start = places[inner.start]
    setup = []
    of_node = any(name in of_ranks() and node.start < inner.start for name, node in expansions(root))
    once = all(name in _ENVIRONMENT for name in before) and not of_node  # setup is of the first node
    if before and once and "container" not in file.values:
        setup = [part_of_text(text, re.sub(r"\s*(&&|(?<!\\);)?\s*$", "", text.text[1 : 1 + start]))]
    at = launcher_in(launch, call.words)
    if setup and not after and at == 0:
        return ProgramWords(setup=setup)
    whole, begin = text.text[1:-1], start if setup else 0
    new = _program_text(launch, whole[places[program[0].start] : places[program[-1].end]], more)
    code = whole[begin : places[call.words[at].start]] + new + whole[places[program[-1].end] :]
    if others := [*into, *after] if setup else [*before, *into, *after]:
        why = f"runs for each rank; in the script once for each {launch.kind}"
        if "container" in file.values and any(name in _ENVIRONMENT for name in before):
            why += ", which the container has to find without it"
        file.hint(launch.line, shortened(", ".join(dict.fromkeys(filter(None, others)))), why)
    read = expansions(parse(f'echo "{code}"'.encode())) if text.type != "raw_string" else ()
    used = [name for name, _ in read]
    # That bash replaces the values that the script would put into the text, and then runs it.
    code = f'eval "{code}"' if used and text.type == "string" else part_of_text(text, code)
    return ProgramWords(["bash", "-c", code], setup=setup, used=used)


def _program_text(launch: Launch, text: str, more: Sequence[str]) -> str:
    """Return the program of a launcher as the command of a shell."""
    text = re.sub(r"^--module\b", "-m", text)
    name = text.split()[0]
    if name.endswith(".py") or name == "-m" or by_python(launch, name):
        text = f"python3 {text}"
    place = r"(^python3 -m \S+|\S+\.py)(?=\s|$)"
    return re.sub(place, rf"\1 {' '.join(more)}", text, count=1) if more else text
