"""The values that sbatch accepts for its options, measured with Slurm 22.05 and 24.11.

src/common/slurm_opt.c and proc_args.c test them, parse_time.c the times; slurmctld tests arrays and
dependencies (job_mgr.c, job_scheduler.c). What depends on the cluster, such as the name of a partition, is
not tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from jobgen.errors import counted
from jobgen.schedulers.base import matches
from jobgen.schedulers.versions import Span
from jobgen.script.dialects import value_forms
from jobgen.script.dialects.value_forms import LEAVE_ONE_OUT, Conflict, Form, listed
from jobgen.values import parsers
from jobgen.values.parsers import number

_MAIL_TYPES = """
NONE BEGIN END FAIL REQUEUE ALL INVALID_DEPEND STAGE_OUT ARRAY_TASKS
TIME_LIMIT TIME_LIMIT_90 TIME_LIMIT_80 TIME_LIMIT_50
"""
MAIL_TYPES = tuple(_MAIL_TYPES.split())
_SIGNALS = "HUP|INT|QUIT|ABRT|KILL|ALRM|TERM|USR1|USR2|URG|CONT|STOP|TSTP|TTIN|TTOU|XCPU"
_TYPE = r"[\w .+-]*[A-Za-z_][\w .+-]*"  # of a device
# The options of GPUs take a type, which is not "gpu"; the resource has this name, and no other like it.
_DEVICES = rf"(?!(?i:gpus?)(?:[:=,]|$))(?:(?:{_TYPE}:)?\d+(?i:[kmgtp])?|{_TYPE})"
_GRES = rf"(?!(?i:gpus?[-_.]?\d*)(?<!gpu)(?:[:=,]|$))[A-Za-z_][\w.-]*(?::(?:{_TYPE}|\d+(?=:)))?"
_GRES_NUMBER = r"\d+(?i:[kmgtp])?"
_TRES = rf"(?:gres/)?{_GRES}(?:[:=]{_GRES_NUMBER})?"  # in later versions
_JOB = r"-?0*[1-9]\d*(?:_(?:\d*|\*|\[[\d,-]+\]))?(?:\+\d+)?"
_KINDS = "after|afterany|afternotok|afterok|aftercorr|afterburstbuffer|expand"
_WAIT = rf"(?i:{_KINDS})(?::{_JOB})+|(?i:singleton)"
_POSITIVE: Form = (r"\s*\+?0*[1-9]\d*", "a number from 1")
_DIST = r"block|cyclic|arbitrary|plane=0*[1-9]\d*|\*"
_SOCKETS = r"\*|\d+(?:-\d+)?"
_LIMITS = "ALL|NONE|(?:RLIMIT_)?(?:AS|CORE|CPU|DATA|FSIZE|MEMLOCK|NOFILE|NPROC|RSS|STACK)"
_FREQUENCY = r"low|medium|highm1|high|\d+"
_GOVERNOR = "conservative|ondemand|performance|powersave|schedutil|userspace"
_HEX = r"(?:0x)?[\da-f]+(?:\*\d+)?"
_GPU_BIND = "closest, none, map_gpu:LIST or the like"
_TIME = "a time such as 2030-01-31T20:00, 20:00 or now+1hour"
_SIZE = r"\s*\d+(?:-\d+(?::\d+)?)?"
_HOSTS = r"[^\[\]$*?]*(?:\[[\d,-]+\][^\[\]$*?]*)*"


def _is_time(text: str, noon: str = "noon") -> bool:
    """Return whether sbatch accepts a point in time: parse_time in src/common/parse_time.c."""
    if matches(r"(?i:uts)\d+", text):
        return int(text[3:]) >= 1_000_000
    clock = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:\s*(?i:[ap]m))?"
    date = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0?[1-9]|[12]\d|3[01])"
    month, day = r"(?:1[0-2]|0[1-9]|[1-9](?!\d))", r"(?:3[01]|[12]\d|0[1-9]|[1-9](?!\d))"
    words = f"today|tomorrow|midnight|{noon}|fika|teatime"
    delta = r"\s*\d+\s*(?i:(?:second|minute|hour|day|week)s?)?"
    now = rf"(?i:now)\s*(?:[+-]{delta})?"
    part = rf"{clock}|{date}|{month}[./]?{day}[./]?(?:\d\d|(?!\d))|(?i:{words})|[-T\s]"
    afternoon = re.search(r"(?:1[3-9]|2\d):\S*\s*[ap]m", text, re.I)
    return matches(now, text) or (not afternoon and matches(rf"[-T\s]*(?=[^-T\s])(?:{part})+", text))


def _signal(text: str, names: str = _SIGNALS) -> bool:
    pattern = rf"(?i:(?:B|R|BR|RB)?:)?(?i:(?:SIG)?(?:{names})|-?0*[1-9]\d*)(?:@(\d{{0,5}}))?"
    match = re.fullmatch(pattern, text, re.ASCII)
    return match is not None and int(match[1] or 0) <= 65535


def _sizes(text: str) -> bool:
    """Return whether a list of numbers of nodes, such as 1,4-16:4, is accepted."""
    return _nodes(text) or matches(rf"(?=.*[,:]){_SIZE}(?:,+{_SIZE})*,*", text)


def _gpu_bind(words: str) -> str:
    """Return the pattern of a way to bind devices, with these words."""
    numbers = rf"(?:per_task|single):(?!-0*[1-9]).*|(?:map|mask)_gpu:(?:{listed(_HEX)})?"
    return rf"(?i:(?:verbose,)?(?:{words}|{numbers}))"


def _nodes(text: str) -> bool:
    """Return whether a number of nodes or a range is accepted."""
    match = re.fullmatch(r"\s*\+?(\d+[km]?)?\s*(?:-\s*(\d+[km]?))?\s*", text, re.ASCII | re.I)
    if not match or not text.strip():
        return False
    least, most = (int(re.sub(r"\D", "000", one)) if one else 0 for one in match.groups())
    return match[2] is None or least <= most


def _mail(text: str) -> bool:
    """Return whether a word is known; the others are ignored then."""
    return any(word.strip().upper() in MAIL_TYPES for word in text.split(","))


def _priority(text: str) -> bool:
    number = re.match(r"\s*([+-]?\d+)", text, re.ASCII)
    return not number or 0 <= int(number[1][:20]) < 2**32 - 2


def _nice(text: str) -> bool:
    number = re.match(r"\s*([+-]?\d+)", text, re.ASCII)
    return not number or abs(int(number[1][:20])) <= 2**31 - 3


def _constraint(text: str) -> bool:
    pairs = [text.count(left) == text.count(right) for left, right in ("[]", "()")]
    return all(pairs) and not re.search(r"[\s$]|^[&|,]|[&|,]{2}|[&|,][\])]|\*(?!\d)", text)


def is_array(text: str) -> bool:
    """Return whether slurmctld accepts the indices of an array; without the last one of a range, it is 0."""
    for item in text.partition("%")[0].split(","):
        item = item.removeprefix("[").removesuffix("]")
        pattern = r"\s*\+?(\d{1,9})(?:-\s*(\d{0,9})(?::\s*0*[1-9]\d{0,8})?)?"
        match = re.fullmatch(pattern, item, re.ASCII)
        if item and (not match or (match[2] is not None and int(match[2] or 0) < int(match[1]))):
            return False
    return True


FORMS: Mapping[str, Form] = {
    "--nodes": (_nodes, "a number, or FIRST-LAST"),
    **dict.fromkeys(
        ("--ntasks", "--ntasks-per-node", "--cpus-per-task", "--mincpus", "--ntasks-per-socket",
         "--ntasks-per-core", "--ntasks-per-gpu", "--ntasks-per-tres", "--cpus-per-gpu", "--sockets-per-node",
         "--cores-per-socket", "--threads-per-core", "--thread-spec"),
        _POSITIVE,
    ),
    "--core-spec": (r"\+?\d+", "a number"),
    "--extra-node-info": (
        rf"(?:{_SOCKETS})(?::(?:{_SOCKETS}|)(?::(?:{_SOCKETS}|)(?::.*)?)?)?", "SOCKETS:CORES:THREADS"
    ),
    "--delay-boot": (r"\d+(?::\d+){0,2}|\d+-\d+(?::\d+){0,2}", "a time, such as 10:00"),
    "--constraint": (_constraint, "features, with & or | between them"),
    "--switches": (r"\+?0*[1-9]\d*(?:@.*)?", "NUMBER or NUMBER@TIME"),
    "--wait-all-nodes": (r"0*[01]|", "0 or 1"),
    **dict.fromkeys(("--begin", "--deadline"), (_is_time, _TIME)),
    "--signal": (_signal, "[R][B:]SIGNAL[@SECONDS]"),
    "--nice": (_nice, "a number from -2147483645 to 2147483645"),
    "--priority": (_priority, "TOP or a number below 4294967294"),
    "--open-mode": (r"[aAtT].*", "append or truncate"),
    "--exclusive": (r"(?i:user|mcs)?", "user or mcs"),
    "--mail-type": (_mail, "words such as END,FAIL"),
    "--dependency": (rf"(?:{_WAIT}|\d+)(?:[,?](?:{_WAIT}))*|", "KIND:ID, such as afterok:1234"),
    "--distribution": (
        rf"(?i:(?:{_DIST})(?<!arbitrary)(?::(?:block|cyclic|fcyclic|\*)){{0,2}}(?:,(?:no)?pack)?"
        r"|arbitrary|(?:no)?pack)",
        "block, cyclic, plane=SIZE or arbitrary, for nodes, sockets and cores",
    ),
    "--hint": (
        listed("(?i:compute_bound|memory_bound|(?:no)?multithread)"),
        "compute_bound, memory_bound, multithread or nomultithread",
    ),
    "--profile": (
        r"(?i:.*\b(?:all|none|energy|task|lustre|filesystem|network)\b.*)",
        "all, none, energy, task, lustre or network",
    ),
    "--acctg-freq": (
        rf"\d.*|{listed('(?i:task|energy|network|filesystem)=[0-9]+')}",
        "seconds, or task=SECONDS and the like",
    ),
    "--cpu-freq": (
        rf"(?i:(?:{_FREQUENCY})(?:-(?:{_FREQUENCY}))?(?::(?:{_GOVERNOR}))?|{_GOVERNOR})",
        "low, medium, high, a number of kilohertz, or a governor",
    ),
    "--gpu-freq": (
        listed(rf"(?i:(?:memory=)?(?:{_FREQUENCY})|verbose)"), "low, medium, high or a number of megahertz"
    ),
    "--gpu-bind": (_gpu_bind("c.*|n.*"), _GPU_BIND),
    "--gres-flags": (listed("(?i:(?:enforce|disable)-binding)"), "enforce-binding or disable-binding"),
    "--mem-bind": (
        listed(r"(?i:v(?:erbose)?|q(?:uiet)?|(?:no)?sort|n(?:o|one)?|y(?:es)?|rank|local|p(?:refer)?"
               rf"|(?:(?:map|mask)_mem:)?{_HEX})"),
        "none, rank, local, map_mem:LIST or mask_mem:LIST",
    ),
    "--kill-on-invalid-dep": (r"(?i:yes|no)", "yes or no"),
    "--no-kill": (r"(?i:off)?", "off"),
    "--get-user-env": (r"(?i:[+-]?\d*(?:[sl].*)?)", "SECONDS, with S or L"),
    "--gres": (listed(rf"(?:gres:)?{_GRES}(?::{_GRES_NUMBER})?"), "NAME:TYPE:NUMBER, such as gpu:a100:4"),
    **dict.fromkeys(
        ("--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket"),
        (rf"(?:{listed(_DEVICES)},?)?", "NUMBER or TYPE:NUMBER"),
    ),
    "--partition": (r"[^\s=$]+", "names of partitions"),
    **dict.fromkeys(("--reservation", "--licenses", "--clusters", "--prefer"), (r"[^$]*", "names")),
    "--propagate": (rf"(?:{listed(_LIMITS)})?", "names of limits, such as STACK"),
    **dict.fromkeys(("--nodelist", "--exclude"), (_HOSTS, "names of nodes, such as node[1-4]")),
}  # fmt: skip


# The forms of later versions where they differ, and the first of these versions.
LATER_FORMS: Mapping[str, tuple[str, Form]] = {
    "--nodes": ("23.02", (_sizes, "a number, FIRST-LAST, or a list of them")),
    "--gpu-bind": ("23.02", (_gpu_bind("closest.*|none.*"), _GPU_BIND)),
    "--signal": ("23.11", (lambda text: _signal(text, f"{_SIGNALS}|CHLD|PIPE"), FORMS["--signal"][1])),
    "--gres": ("23.11", (rf",*(?:{_TRES}(?:,+{_TRES})*)?,*", FORMS["--gres"][1])),
    "--gres-flags": (
        "23.11",
        (
            listed(r"(?i:(?:enforce|disable)-binding|(?:multiple-tasks|one-task)-per-sharing)"),
            FORMS["--gres-flags"][1],
        ),
    ),
    **dict.fromkeys(
        ("--begin", "--deadline"), ("24.05", (lambda text: _is_time(text, "noon|elevenses"), _TIME))
    ),
    "--exclusive": ("24.05", (r"(?i:user|mcs|topo)?", "user, mcs or topo")),
}


def conflicts(given: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield options that exclude each other, or need another one."""
    memory = [key for key in ("--mem", "--mem-per-cpu", "--mem-per-gpu") if key in given]
    if len(memory) > 1:
        yield _exclusive(memory[-1], memory)
    devices = any(key.startswith("--gpus") for key in given) or "gpu" in given.get("--gres", "")
    if "--mem-per-gpu" in given and not devices:
        yield Conflict("--mem-per-gpu", "--mem-per-gpu is refused without GPUs")
    if "--gpus-per-socket" in given and "--sockets-per-node" not in given:
        yield Conflict("--gpus-per-socket", "--gpus-per-socket is refused without --sockets-per-node")
    least, most = (parsers.seconds(whole_time(given.get(key, ""))) for key in ("--time-min", "--time"))
    if least and most and least > most:
        above = f"--time-min={given['--time-min']} is above --time={given['--time']}"
        yield _disagreement("--time-min", above)
    if "--ntasks-per-gpu" in given and "--ntasks-per-node" in given:
        yield _exclusive("--ntasks-per-gpu", ("--ntasks-per-gpu", "--ntasks-per-node"))
    elif conflict := _conflict_of_counts(given):
        yield conflict


def _exclusive(key: str, options: Iterable[str]) -> Conflict:
    reason = f"{' and '.join(options)} exclude each other: sbatch refuses the script"
    return Conflict(key, reason, "remove one of them")


def _disagreement(key: str, reason: str) -> Conflict:
    return Conflict(key, f"{reason}: sbatch refuses the script", LEAVE_ONE_OUT)


def whole_time(time: str) -> str:
    """Return a time limit with all its parts; with days, hours come first, and a number alone is minutes."""
    return time + ":00" * (2 - time.count(":") if "-" in time else time.isdigit())


def _conflict_of_counts(given: Mapping[str, str]) -> Conflict | None:
    """Return the option whose number cannot be true beside those of other options."""
    nodes, ranks, each = (number(given.get(key)) for key in ("--nodes", "--ntasks", "--ntasks-per-node"))
    if nodes and each and ranks and ranks > nodes * each:
        where = f"{counted(nodes, 'node')} with --ntasks-per-node={each}"
        return _disagreement("--ntasks", f"{ranks} tasks do not fit on {where}")
    total, of_task = (_devices(given.get(key, "")) for key in ("--gpus", "--gpus-per-task"))
    key, of_node = _of_node(given)
    beside = f"{key} with {counted(of_node or 0, 'GPU')} of each node"
    uneven = bool(of_node and "--nodes" not in given and (total or 0) % of_node)  # whatever Slurm chooses
    if total and of_node and (total != nodes * of_node if nodes else uneven):
        where = f" on {counted(nodes, 'node')}" if nodes else ""
        return _disagreement("--gpus", f"--gpus={total}{where} does not agree with {beside}")
    tasks = ranks or (nodes and each and nodes * each)  # without either Slurm computes them from the GPUs
    of_tasks = f"x {of_task} GPUs for the tasks"
    if of_task and of_node and each and each * of_task != of_node:
        return _disagreement("--gpus-per-task", f"{each} {of_tasks} of a node do not agree with {beside}")
    if of_task and of_node and nodes and tasks and tasks * of_task != of_node * nodes:
        return _disagreement("--gpus-per-task", f"{tasks} {of_tasks} do not agree with {beside}")
    if of_task and total and tasks and tasks * of_task != total:
        return _disagreement("--gpus-per-task", f"{tasks} {of_tasks} do not agree with --gpus={total}")
    return None


def _of_node(given: Mapping[str, str]) -> tuple[str, int | None]:
    """Return the option with the number of GPUs of a node, and the number."""
    if "--gpus-per-node" in given:
        return "--gpus-per-node", _devices(given["--gpus-per-node"])
    parts = [one for one in given.get("--gres", "").split(",") if re.match(r"(?:gres[:/])?gpu(?::|$)", one)]
    return "--gres", _devices(parts[0]) if len(parts) == 1 else None


def _devices(text: str) -> int | None:
    """Return the number of GPUs in ``4`` or ``a100:4``; None for a list and for what is not known."""
    return number(text.rpartition(":")[2]) if "," not in text else None


def value_fault(key: str, value: str, version: str | None = None) -> str:
    """Return why sbatch or slurmctld of a version refuses the value of an option; empty if they accept it."""
    if key not in LATER_FORMS:
        return value_forms.fault(FORMS, key, value)
    since, later = LATER_FORMS[key]
    spans = ((Span(before=since), FORMS), (Span(since=since), {key: later}))
    return min(value_forms.fault(forms, key, value) for span, forms in spans if span.holds(version))
