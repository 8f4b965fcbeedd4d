"""Rules about the devices that each rank sees."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from jobgen.check.ranks.devices import VISIBLE, Visible, count, numbers, numbers_of_job, visible
from jobgen.check.ranks.environment import RankEnvironment
from jobgen.check.ranks.frameworks import FRAMEWORKS
from jobgen.check.ranks.model import RankGroup, beside, code_of_tasks, ranks, trees_of_tasks
from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.rules.rank_numbers import COPES, NUMBERS
from jobgen.errors import counted
from jobgen.schedulers.request import GPUS_OF_NODE
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LATER, Node, assignments, exported, is_prefix, on_condition
from jobgen.script.word_lists import words_of_loop

_CHOOSES = re.compile(r"set_device|cuda:|device_ids|\.to\(|torch\.device\(|\.cuda\(")
_LOCAL_IDS = ("LOCAL_RANK", "SLURM_LOCALID")


@rule(
    "task-devices",
    WARNING,
    "A local rank as the number of a device, where each task sees one",
    """With `--gpus-per-task=1`, or `--gpu-bind` for single devices, each task of Slurm sees only its own device,
    and this is device 0 in every task. A program that takes its local rank as the number of its device fails in
    all tasks but the first one: "invalid device ordinal". Request the devices with `--gpus-per-node`, or use
    device 0. (It is an error if the Python file beside the script shows it.)""",
    fix="request --gpus-per-node instead, or let the program use device 0",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-task=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun bash -c 'export LOCAL_RANK=$SLURM_LOCALID RANK=$SLURM_PROCID; exec python3 train.py'
    """,
    good={"#SBATCH --gpus-per-task=1": "#SBATCH --gpus-per-node=4"},
    schedulers=("slurm",),
)
def task_devices(script: Script) -> Iterator[Hit]:
    yield from _seen_by_number(script)
    of_job = {key: script.heeded[key].value for key in _OF_TASKS if key in script.heeded}
    if any(name == "SLURM_GPU_BIND" for name, _, _ in script.assignments):
        return
    nodes, total = script.request.nodes, script.request.ranks
    for one in ranks(script):
        option = _own_device(of_job, one)
        several = one.tasks or (total and nodes and total > nodes)
        if not option or one.sets_ranks or one.tasks == 1 or not several:
            continue
        how, sure = _number_of_device(script, one)
        if how:
            near = option.endswith(_CLOSEST)
            sees = "the devices close to its cores, often one, number 0" if near else "one device, number 0"
            reason = f"with {option} each task sees {sees}, but {how}: all tasks of a node but the first one {'then ' * near}fail"
            yield Hit(one.line, reason, level=ERROR if sure and not near else None)
            return


def _seen_by_number(script: Script) -> Iterator[Hit]:
    """Yield code that lets each task see the device of its local rank only, and passes this local rank on, too."""
    for code in code_of_tasks(script):
        numbered = {
            name: node
            for name, value, node in assignments(code.tree)
            if _LOCAL_NUMBER.fullmatch(value.text) and (exported(node) or f"export {name}" in code.tree.text)
        }
        device, group = next((name for name in VISIBLE if name in numbered), ""), code.group
        if not device or "LOCAL_RANK" not in numbered or code.tasks == 1 or code.sets_ranks:
            continue
        if group is None and script.starter is not None:
            place = script.starter.call.command.node
            group = next((one for one in ranks(script.starter.script) if one.command.node is place), None)
        source = group.program.source if group is not None else None
        opens = source is None or any(
            "LOCAL_RANK" in row.variables for row in FRAMEWORKS.values() if source.imports(*row.modules)
        )
        if source is not None and not opens:
            opens = "LOCAL_RANK" in source.reads and bool(_CHOOSES.search(source.text))
        if opens and not (source is not None and COPES.search(source.text)):
            effect = "its program gets LOCAL_RANK as the number of its device, too: all tasks of a node but the first one fail"
            reason = f"with this {device} each task sees one device, number 0, but {effect}"
            yield Hit(
                numbered[device].line, reason, "leave one of the two out", None if source is None else ERROR
            )
            return


_LOCAL_NUMBER = re.compile(
    rf"[\"']?\$\{{?(?:LOCAL_RANK|{'|'.join(key for key, number in NUMBERS.items() if number == NUMBERS['SLURM_LOCALID'])})\}}?[\"']?"
)
_OF_TASKS = ("--gpus-per-task", "--tres-per-task", "--ntasks-per-gpu", "--gpu-bind")
_SINGLE = re.compile(
    r"single:1|per_task:1|map_gpu:.*|mask_gpu:(?:0x)?0*[1248]0*(?:,(?:0x)?0*[1248]0*)*", re.I
)
_GPUS = re.compile(r"gres[/:]gpu(?::[\w.-]+)?[:=](\d+)")


def _own_device(of_job: dict[str, str], one: RankGroup) -> str:
    """Return the option with which each task of a step sees its own device; empty without one."""
    if not one.is_step or one.outer is None:
        return ""
    own = {key: one.outer.options[key] or "" for key in _OF_TASKS if one.outer.has(key)}
    options = {**of_job, **own}
    bind = options.get("--gpu-bind", "").removeprefix("verbose,").removeprefix("v,")
    if _SINGLE.fullmatch(bind):
        return f"--gpu-bind={bind}"
    if "--ntasks-per-gpu" in options and not bind:
        return f"--ntasks-per-gpu={options['--ntasks-per-gpu']}"
    of_task = _GPUS.search(options.get("--tres-per-task", ""))
    count = of_task[1] if of_task else options.get("--gpus-per-task", "").rpartition(":")[2]
    if count != "1" or bind not in ("", "closest"):
        return ""
    asks = f"--tres-per-task={of_task[0]}" if of_task else "--gpus-per-task=1"
    return f"{asks} {_CLOSEST}" if bind else asks


_CLOSEST = "--gpu-bind=closest"


def _number_of_device(script: Script, one: RankGroup) -> tuple[str, bool]:
    """Return how a program chooses its device by the local rank, and whether its file shows it; empty if
    neither shows that it does."""
    source, code = one.program.source, "\n".join(tree.text for tree in trees_of_tasks(script, one))
    if named := re.search(r"\b(\w+_VISIBLE_DEVICES)=[\"']?\$\{?SLURM_LOCALID\}?(?![\w:%])", code):
        return f"{named[1]} is the local rank, which names others", False
    if re.search(r"VISIBLE_DEVICES=|\bLOCAL_RANK=[\"']?0\b", code):
        return "", False
    if source is not None:
        if re.search(r"(set_device|cuda|device)\(.{0,12}\b(hvd|horovod)\.local_rank\(\)", source.text):
            return "Horovod's local_rank() is the number of its device", not COPES.search(source.text)
        read = next((name for name in _LOCAL_IDS if name in source.reads), "")
        if "lightning" in one.program.frameworks:
            return _BY_LIGHTNING, True
        rows = (row for key, row in FRAMEWORKS.items() if key in one.program.frameworks)
        opener = next((row.title for row in rows if "LOCAL_RANK" in row.variables), "")
        if opener and "LOCAL_RANK" in code:
            return f"{opener} opens the device of LOCAL_RANK", True
        chooses = read and _CHOOSES.search(source.text) and not COPES.search(source.text)
        return (f"{one.program.file} opens the device of {read}", True) if chooses else ("", False)
    numbered = re.search(r"\bLOCAL_RANK=[\"']?\$\{?SLURM_LOCALID", code)
    option = any(re.match(r"--(local[-_]rank|gpu|device)\b", word) for word in one.program.arguments)
    if numbered or (option and "SLURM_LOCALID" in code):
        return "its local rank, from SLURM_LOCALID, is the number of its device in nearly all programs", False
    return (_BY_LIGHTNING, False) if "lightning" in one.program.frameworks else ("", False)


_BY_LIGHTNING = "Lightning counts its devices by the local rank"


@rule(
    "visible-devices",
    ERROR,
    "More ranks than visible devices",
    """`CUDA_VISIBLE_DEVICES` names the devices that the ranks see, and `srun --gpus-per-task` the number of those that the
    ranks of a launcher behind it see. A rank whose number is beyond them fails with "invalid device ordinal". Of several
    instances of a divided GPU (MIG) a process opens the first one only. `HIP_VISIBLE_DEVICES` counts within the devices of
    `ROCR_VISIBLE_DEVICES`: with one index in both all ranks but the first one see no device. Where the scheduler hides
    the devices of others, those of a job count from 0: a loop over `1 2 3 4` names one that is not there.""",
    fix="remove the variable or the option: the scheduler gives the devices of the job",
    bad="""
    #!/bin/bash
    # jobgen: disable=forced-devices
    #SBATCH --gpus-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    export CUDA_VISIBLE_DEVICES=0,1,2,3
    torchrun --standalone --nproc-per-node=8 train.py
    """,
    good={"# jobgen: disable=forced-devices": "", "export CUDA_VISIBLE_DEVICES=0,1,2,3": ""},
)
def visible_devices(script: Script) -> Iterator[Hit]:
    environment = RankEnvironment.of(script)
    groups = [(one, visible(environment, one)) for one in ranks(script)]
    for one, seen in groups:
        if one.inner is None:
            continue
        listed = (seen.text, len(seen.numbers)) if seen else _of_step(one) if one.sets_ranks else None
        part = _PART.fullmatch(script.request.gpu_type or "")
        listed = (f"CUDA opens one instance of a divided GPU in a process, {part[0]}", 1) if part else listed
        if not one.sets_ranks:
            how, sure = _number_of_device(script, one)
            if listed and one.tasks and one.tasks > listed[1] > 0 and (how or environment.has_devices(one)):
                fails = (
                    f", but {how}: the ranks from {listed[1]} on fail" if how else ": some share one, or fail"
                )
                reason = (
                    f"{one.tasks} ranks of a node see {counted(listed[1], 'device')} ({listed[0]}){fails}"
                )
                yield Hit(one.line, reason, level=None if sure else WARNING)
                return
            continue
        each = one.inner.number(*one.inner.row.line.local_ranks, "--num-processes")
        if each and listed and each > listed[1] > 0 and not (one.inner.number("--num-machines") or 1) > 1:
            yield Hit(
                one.line,
                f"{one.inner.title} starts {each} ranks, which see {counted(listed[1], 'device')} ({listed[0]}): the ranks "
                f"from {listed[1]} on fail",
                "request whole GPUs for several ranks" if part else "",
            )
            return
    yield from _unseen(script, groups)
    yield from _beyond_rocr(script)
    yield from _beyond_job(script)


def _beyond_job(script: Script) -> Iterator[Hit]:
    """Yield a device of the number that a loop counts, which ends beyond those of the job: ``for i in 1 2 3 4``."""
    request = script.request
    has = request.gpus_per_node or (request.gpus if request.nodes == 1 else None)
    other = script.has_whole_nodes and (has or 0) < GPUS_OF_NODE
    if not has or other or not script.is_batch or not script.dialect.hides_devices:
        return
    for loop in script.tree.all("for_statement"):
        variable, words = loop.get("variable"), words_of_loop(loop, script.constants)
        known = words and all(re.fullmatch(r"\d{1,3}", word, re.ASCII) for word in words)
        if variable is None or not known or variable.text in script.values:
            continue
        name, used = variable.text, set(map(int, words))
        unseen, idle = sorted(used - set(range(has))), sorted(set(range(has)) - used)
        node = _numbered(script, loop, name) if unseen else None
        if node is not None and not on_condition(node):
            runs = f"run with {unseen[0]} sees" if len(unseen) == 1 else f"runs from {unseen[0]} on see"
            reason = f"{numbers_of_job(has)}: the {runs} none"
            if idle:
                stay = "device {} stays" if len(idle) == 1 else "devices {} stay"
                reason += f", and {stay.format(', '.join(map(str, idle)))} idle"
            shift = min(used)
            right = f"{name} - {shift}" if max(used) - shift < has else f"{name} % {has}"
            yield Hit.at(node, reason, f"write $(({right}))", WARNING)


def _numbered(script: Script, loop: Node, name: str) -> Node | None:
    """Return where a loop names a device by its variable: in CUDA_VISIBLE_DEVICES, or in words such as ``cuda:$i``."""
    own = rf"[\"']?\$(?:{name}|\{{{name}\}})[\"']?"
    for key, value, node in script.assignments:
        if key in VISIBLE and node in loop and re.fullmatch(own, value.text):
            return node
    words = (one.node for one in script.commands if one.node in loop and one.works)
    return next((one for one in words if re.search(rf"(?<!\S)(\S*=)?[\"']?cuda:{own}(?!\S)", one.text)), None)


_ROCR, _OF_HIP = "ROCR_VISIBLE_DEVICES", ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_BRANCHES = ("if_statement", "elif_clause", "else_clause", "case_item", "function_definition")


def _beyond_rocr(script: Script) -> Iterator[Hit]:
    """Yield a variable of HIP with devices which are not among those that ROCR_VISIBLE_DEVICES leaves: HIP counts
    these from 0."""
    codes = [(code.tree, code.tasks) for code in code_of_tasks(script) if _ROCR in code.tree.text]
    for tree, tasks in (*codes, (script.tree, None)) if codes or _ROCR in script.tree.text else ():
        found: dict[str, list[Node]] = {}
        of_command: dict[str, Node | None] = {}
        for key, value, node in assignments(tree):
            found.setdefault(key, []).append(value)
            of_command[key] = node.parent if is_prefix(node) else None
        name = next((one for one in _OF_HIP if one in found), "")
        both = [*found.get(name, ()), *found.get(_ROCR, ())]
        if not name or len(both) != 2 or both[0].around(*_BRANCHES) is not both[1].around(*_BRANCHES):
            continue
        if of_command[_ROCR] not in (None, of_command[name]):
            continue  # those of two programs
        texts = [re.sub(r"\{(\w+)\}", r"\1", one.unquoted) for one in both]
        there = texts[1].count(",") + 1
        listed = all(re.fullmatch(r"\d+(,\d+)*", text, re.ASCII) for text in texts)
        same = texts[0] == texts[1] and tasks != 1 and _is_index(both[1], found)
        if same or (listed and max(map(int, texts[0].split(","))) >= there):
            effect = f", and both are {texts[1]}: the ranks see none but for 0" if same else f": {texts[1]}"
            reason = f"{name} counts from 0 within the {counted(there, 'device')} of {_ROCR}{effect}"
            # CUDA_VISIBLE_DEVICES is one of HIP on AMD's devices only.
            level = WARNING if name == "CUDA_VISIBLE_DEVICES" else None
            yield Hit(both[0].line, reason, f"leave {name} out: its programs see these devices", level)
            return


def _is_index(value: Node, found: Mapping[str, Sequence[Node]]) -> bool:
    """Return whether a value is the number of one device: the local rank, a sum, or the variable of a loop."""
    if _LOCAL_NUMBER.fullmatch(value.text) or re.fullmatch(r"\"?\$\(\(.*\)\)\"?", value.text):
        return True
    name, loop = value.text.strip('"${}'), value.around("for_statement")
    numbers = rf"for {re.escape(name)} in ([\d ]+|\{{0\.\.\S+|\$\(seq .*)[;\n]"
    own = found.get(name, ())
    return (loop is not None and re.match(numbers, loop.text) is not None) or (
        len(own) == 1 and _is_index(own[0], {})
    )


_PART = re.compile(r"(?:[\w-]+[_-])?\dg\.\d+gb(?:[+.]me)?", re.ASCII)  # a profile of MIG


def _unseen(script: Script, groups: Sequence[tuple[RankGroup, Visible | None]]) -> Iterator[Hit]:
    """Yield the variable that hides devices of the job from all of its programs."""
    has = script.request.gpus_per_node or (1 if script.request.gpus else 0)
    found = [seen for _, seen in groups if seen is not None]
    used = {number for one in found for number in one.numbers}
    # ranks-mismatch and shared-devices report the others
    launched = used and any(one.sets_ranks or one.command.background for one, _ in groups)
    if not has or not found or len(found) < len(groups) or launched or not script.is_batch:
        return
    first = found[0]
    if not used and not first.own:
        reason = "hides all devices of the job from its programs"
    elif used and len(used) < has:
        idle = has - len(used)
        reason = f"hides {idle} of the {has} devices of a node from all programs: {'it stays' if idle == 1 else 'they stay'} idle"
    else:
        return
    fix = "remove the variable: the scheduler gives the devices of the job, or request fewer"
    yield Hit.at(first.node, f"{first.text} {reason}", fix, WARNING)


def _of_step(one: RankGroup) -> tuple[str, int] | None:
    """Return the option by which each task of a step sees a number of devices, and the number."""
    value = one.outer.options.get("--gpus-per-task") if one.is_step and one.outer is not None else None
    number = (value or "").rpartition(":")[2]
    return (f"srun --gpus-per-task={value}", int(number)) if re.fullmatch(r"[1-9]\d?", number) else None


@rule(
    "shared-devices",
    WARNING,
    "Runs beside each other on one device",
    """Processes that run in the background at the same time share the devices that they name or see. Two trainings that
    each use all devices of the node run at half speed, or out of memory. Several runs on one device, by
    `--device cuda:0` or `CUDA_VISIBLE_DEVICES=0`, leave the others of the job idle. (Where nothing names a device it is a
    note: most programs take number 0. Runs that share all devices of the job evenly are not reported.)""",
    fix="give each run its own: CUDA_VISIBLE_DEVICES=0 in front of the first, 1 in front of the second",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    python3 train.py --fold 1 --device cuda:0 &
    one=$!
    python3 train.py --fold 2 --device cuda:0 &
    wait "$one"
    wait "$!"
    """,
    good={"python3 train.py --fold 2 --device cuda:0 &": "python3 train.py --fold 2 --device cuda:1 &"},
)
def shared_devices(script: Script) -> Iterator[Hit]:
    has = script.request.gpus_per_node
    if not has or not script.is_batch:
        return
    environment = RankEnvironment.of(script)
    for together in beside(script):
        runs = [(one, _used(environment, one, has)) for one in together]
        sets = [used for _, used in runs]
        if any(used is None for used in sets):
            continue
        counts = Counter(number for used in sets for number in used or ())
        idle = [number for number in range(has) if number not in counts]
        twice = [number for number, count in counts.items() if count > 1]
        last = runs[-1][0]
        if not twice or has == 1:
            continue
        first = next(one for one, used in runs if used and twice[0] in used)
        where = f"that of line {first.line}" if first.line != last.line else "its own other iterations"
        whole = all(used is not None and len(used) == has for used in sets)
        if whole and last.sets_ranks:
            yield Hit(last.line, f"this runs beside {where} on all {has} devices of the node")
        elif idle and not whole:
            named = any(visible(environment, one) or numbers(one.program) for one in together)
            reason = f"this runs beside {where} on device {twice[0]}"
            reason += "" if named else ", unless the program chooses another"
            reason += f": {counted(len(idle), 'device')} of the job stay{'s' if len(idle) == 1 else ''} idle"
            yield Hit(last.line, reason, level=None if named else NOTE)
            return
    yield from _overlapping(script, environment)


def _overlapping(script: Script, environment: RankEnvironment) -> Iterator[Hit]:
    """Yield a process that sees some of the devices of one which still runs in the background, and others."""
    ends = sorted(one.node.start for one in script.named("wait", "kill", "pkill", "scancel"))
    running: dict[frozenset[int], int] = {}  # the lines of those that run, by their devices
    last = 0
    for one in sorted(ranks(script), key=lambda one: one.start):
        seen = visible(environment, one)
        if seen is None or one.is_step or one.command.node.under(*LATER):
            continue
        if bisect_left(ends, last) < bisect_left(ends, one.start):
            running = {}
        last, own = one.start, frozenset(seen.numbers)
        for devices, line in running.items():
            common = own & devices
            if common and own - devices and devices - own:
                named = ", ".join(map(str, sorted(common)))
                reason = f"{seen.text} names device {named}, which the process of line {line} has, too"
                yield Hit.at(seen.node, reason)
                return
        if one.command.background and len(running) < _MOST:
            running.setdefault(own, one.line)


_MOST = 32  # processes in the background that are compared with each other


def _used(environment: RankEnvironment, one: RankGroup, has: int) -> frozenset[int] | None:
    """Return the devices of a node that a process uses; None if the text does not determine them."""
    seen = visible(environment, one)
    unknown = any(
        name in VISIBLE and (node.parent is one.command.node or node.start < one.start)
        for name, _, node in environment.script.assignments
    )
    if seen is None and unknown:
        return None
    own = seen.numbers if seen else tuple(range(has))
    if one.sets_ranks and one.inner is not None:
        each = one.inner.number(*one.inner.row.line.local_ranks, "--num-processes")
        return frozenset(own[:each]) if each else None
    if one.chain or (not seen and re.search("VISIBLE_DEVICES|GPU_ID", one.command.node.text)):
        return None
    named = numbers(one.program)
    if named is not None:
        return frozenset(own[number] for number in named[1] if number < len(own))
    words = [
        word if word is not None else "" if (before or "").startswith("-") else "$"
        for before, word in pairwise(one.program.words)
    ]
    return None if count(one.program) or any(map(_DEVICE_WORD.search, words)) else frozenset(own[:1])


_DEVICE_WORD = re.compile(r"(?i)\$|gpu|device|cuda|cpu|nproc|parallel|tp\b")  # what may name a device
