"""The nodes that a launcher fills, where the directives name only the resources of the whole job."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from operator import itemgetter

from jobgen.convert import aprun
from jobgen.convert.misreadings import names_devices
from jobgen.convert.result import shortened
from jobgen.errors import JobgenError, counted
from jobgen.jobfile.reader import read_text
from jobgen.launch.command_line import is_python
from jobgen.launch.wrappers import EACH_INPUT
from jobgen.schedulers.request import DirectiveOption, Request
from jobgen.script.beside import started
from jobgen.script.command_kinds import STATE, TOOLS, is_printed
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, Node, function_of, in_background, on_condition
from jobgen.script.word_lists import words_of_loop
from jobgen.sites.site_file import Site
from jobgen.values.parsers import number

_CHUNKS = ("-l select", "-l nodes")  # the options that request nodes with their cores
OF_ALPS = "Cray's ALPS, which gives whole nodes"
ALL = ("-n", "-np", "--np", "--ntasks", "--num-processes")

# Variables and options with the number of cores that a program uses, and such letters of common programs.
_CORES_IN_VARIABLE = re.compile(
    r"(?i)\w+(?<!max)_THREADS|(\w+_)?n(um)?_?(threads|cpus?|cores?|procs?|workers)"
)
# A variable with the ranks of all nodes, also behind a launcher that is one itself: $MPIEXEC -np $NPROCS.
_RANKS_OF_VARIABLE = re.compile(r"(?<!\S)(?:--?np?|--ntasks)[ =]\"?\$\{?(\w+)")
# A launcher in a text for another program: MPIEXEC="mpirun -np 32".
_RANKS_IN_TEXT = re.compile(r"\b(?:mpirun|mpiexec|orterun)\b[^;|&\n]*?\s--?np?[ =](\d+)(?!\S)")
_OPEN_DEVICES = re.compile(r"(?<!\S)(--gpus(-per-node|-per-task)?[= ]|-G ?|--gres[= ]\S*gpu)\S*[$`%{]\S*")
_CORES_IN_OPTION = re.compile(
    r"(?i)-j|-nc?t|-ntomp|-openmp|--?([a-z]+[-_])*(n|num|max|total|run)?[-_]?(number_?of)?"
    r"(threads?|threadN|cores|cpus?|procs?|processes|processors|workers|jobs)"
)
_LETTERS = {
    "-t": "bwa bwa-mem2 minimap2 bfc fastqc spades.py metaspades.py megahit kallisto quast.py racon flye"
    " hifiasm kmc julia run-trust4 segemehl.x orthofinder metabat2 sambamba medaka_consensus",
    "-p": "bowtie bowtie2 hisat2 salmon pigz unpigz tophat tophat2 cufflinks cuffdiff cuffquant stringtie"
    " bamCoverage computeMatrix",
    "-@": "samtools bcftools",
    "-P": "xargs parallel angsd realSFS",
    "-T": "featureCounts cd-hit cd-hit-est raxmlHPC-PTHREADS iqtree iqtree2",
    "-c": "snakemake busco",
    "-w": "fastp",
    "-pa": "RepeatMasker RepeatModeler",
    "+p": "namd namd2 namd3",
}
# Programs with a number of threads of their own, and the options for another one.
_DEFAULTS = {
    **dict.fromkeys(("spades.py", "metaspades.py", "rnaspades.py", "plasmidspades.py"), (16, "-t|--threads")),
    "prokka": (8, "--cpus"),
    "unicycler": (8, "-t|--threads"),
}
# Code that counts all cores of a node; nproc alone counts those to which the job is bound.
_COUNTS_NODE = re.compile(
    r"(?s)\bnproc\s[^|;)`]*--all|processor.*/proc/cpuinfo|/proc/cpuinfo.*processor"
    r"|\blscpu\s+(-p|--parse)|\blscpu\b.*\bCPU\\*\(s"
)
# The options with a number of cores of programs that use all which they find without it.
_LIMITS = {
    "dask-worker": "--nthreads",
    "diamond": "-p|--threads",
    "ffmpeg": "-threads",
    "ninja": r"-j\d*|-t",
    "lbzip2": r"-\w*n\d*",
    "pbzip2": r"-\w*p\d*",
    "pigz": r"-\w*[dp]\w*|--(decompress|processes)",
    "raxml-ng": "--threads",
    "vina": "--cpu",
    "vsearch": "--?threads",
    "wsclean": "-j",
}
# Options with which snakemake starts no jobs here.
_ELSEWHERE = re.compile(
    r"(?<!\S)(--(cluster|executor|profile|slurm|drmaa|unlock|dry-?run)|-[a-z]*n[a-z]*\b|-e (?!local\b))"
)
# Patterns of the options with which programs use all cores that they find.
_USES_ALL = {
    **{name: rf"(?!.*(?<!\S)({options}|--?(help|version))\b)" for name, options in _LIMITS.items()},
    "matlab": r"(?!.*(-singleCompThread|-help|maxNumCompThreads\())",
    "julia": r".*(?<!\S)(-t|--threads|-p|--procs)[= ]?auto(?!\S)",
    "parallel": r"(?!\$|.*(?<!\S)(-[a-zA-Z]*[jPS]|--(jobs|max-procs|ssh|slf|sem|version|citation|help)))",
    "snakemake": rf"(?!.*{_ELSEWHERE.pattern})"
    r".*(?<!\S)(--cores|-c|--jobs|-j)(?!\S)(?![ =](?!all\b|-))|.*(?<!\S)(--cores=|-c)all\b",
    "make": r".*(?<!\S)(-j|--jobs)(?!\S)(?! *[\d$`\"])",
    "cmake": r".*(?<!\S)--build\b.*(?<!\S)(-j|--parallel)(?!\S)(?! *[\d$`\"])",
    "comsol": r"(-\S+ )*batch\b(?!.*(?<!\S)-np\b)",
    "xargs": r".*(?<!\S)(-P|--max-procs)[= ]?0(?!\S)",
    "spark-submit": r".*\blocal\[\*\]",
    "ray": r"start\b(?!.*--num-cpus)",
    "gmx": r"(-\S+ )*mdrun\b(?!.*(?<!\S)-nt(mpi)?(?!\S))",
    "dask": r"worker\b(?!.*--nthreads)",
    "xz": r".*(?<!\S)(-T ?|--threads=)0(?!\S)",
    "pytest": r".*(?<!\S)(-n|--numprocesses)[= ]?(auto|logical)\b",
    "iqtree": r".*(?<!\S)(-nt|-T) AUTO\b",
    "cellranger": r"(?=(count|multi|vdj|atac|mkfastq|aggr)\b)(?!.*--(localcores|jobmode))",
    **dict.fromkeys(
        ("fmriprep", "qsiprep", "mriqc"), r"(?=.*\bparticipant\b)(?!.*--(n[-_]?procs|nthreads|n[-_]cpus))"
    ),
}
# MATLAB with threads at some sites, and a program of it with the folder of its libraries.
_RUNS_MATLAB = re.compile(r"matlab[-_](multi)?thread(ed)? .*|run_\w+\.sh \S*((?i:matlab|mcr)|/v\d{2,3}\b).*")
_LOADS_MATLAB = re.compile(r"(?i)\b(load|add|ml(?! (un|rm|del)))\b.*\b(matlab|mcr)\b")
# What needs no core of its own beside other programs.
_IDLE = (
    TOOLS
    | STATE
    | {"ssh", "watch", "top", "htop", "sar", "vmstat", "mpstat", "iostat", "dstat", "Xvfb", "xterm"}
) - {
    *("gzip", "gunzip", "zip", "unzip", "tar", "sort", "awk"),
}
# Options of Slurm that size a part of a node.
SIZE_OF_NODE = re.compile("--(n?tasks|cpus|mincpus|mem|gpus|gres)")
# Words of programs that may use several cores, also in texts that are not read as commands.
OF_CORES = re.compile(
    r"(?im)^[^#\n]*(_THREADS=(?!1\b)|torch|nproc\b|nproc_per|mpi(run|exec)|multiprocess|\bparallel\b(?!/)"
    r"|\b(python[\d.]*|julia|Rscript|matlab|ctest|pytest|tox|nox|ninja|make\s([^#;|&\n]*\s)?(test|check))\b"
    r"|n(um)?_?(jobs|workers|threads|cpus?|cores?|procs?)\b|--?(threads|cores|cpus|workers|jobs)\b"
    r"| -(j|np|nt|p|@|threads?)[ =]?([2-9]|\d\d)\b)"
)
# Numbers of jobs, of other jobs, and of ranks on all nodes.
_ENGINES = {"nextflow", "echo", "sbatch", "qsub", "charmrun"}


def chunk_option(script: Script) -> tuple[DirectiveOption, str] | None:
    """Return the option that requests nodes with their cores, and its text; None without one."""
    found = ((key, script.heeded[key]) for key in _CHUNKS if key in script.heeded)
    return next(((option, f"{key}={option.value}") for key, option in found), None)


def spread(script: Script, content: ScriptRequest) -> None:
    """Request the nodes of the first launch that fills several, instead of one with all cores of the job."""
    request, option = content.request, script.heeded.get("-l ncpus")
    if option is None or request.chunks or request.nodes != 1 or not content.totals:
        return
    nodes, each = next((one for one in map(filled, script.launches) if one[0] > 1), (1, 1))
    if nodes == 1:
        return
    cores = request.cpus_per_rank or 1
    request.nodes, request.ranks_per_node, request.ranks = nodes, each, nodes * each
    request.cpus_per_rank = max(cores // (nodes * each), 1)
    request.mem = request.mem and -(-request.mem // nodes)
    if request.gpus_per_node:
        request.gpus_per_node = -(-request.gpus_per_node // nodes)
    text = f"-l ncpus={cores}"
    content.unsure = [one for one in content.unsure if one[0].line != option.line or one[1] != text]
    content.unsure.append((option, text, why(request)))


def fill_cray(script: Script, content: ScriptRequest) -> None:
    """Request the whole nodes of Cray's ALPS; for a number of cores those that the largest launch fills."""
    request, chunks = content.request, chunk_option(script)
    starts = aprun.NAME in script.program_names or any(script.running(aprun.NAME))
    keys = ("-l mppwidth", "-l size")[: 1 + starts]
    key = next((one for one in keys if one in script.heeded), keys[0])
    option = script.heeded.get(key)
    if chunks and not request.exclusive and starts:
        request.exclusive = True
        content.unsure.append((*chunks, f"is for {OF_ALPS}: these are requested"))
    each, depth = (number(request.totals.get(one)) for one in ("mppnppn", "mppdepth"))
    width = number(option.value) if option is not None else None
    if option is None or not width or request.chunks or not content.totals:
        return
    ranks, cores = width, depth or 1
    given = ((one.number("-n"), one.number("-N"), one.number("--depth") or 1) for one in script.launches)
    shapes = [(total * depth, total, of_node, depth) for total, of_node, depth in given if total]
    largest = max(shapes, key=lambda shape: shape[0], default=(0, 0, None, 1))
    if not each and 2 * largest[0] > ranks * cores:
        _, ranks, each, cores = largest
    request.ranks, request.ranks_per_node, request.cpus_per_rank = ranks, each, cores
    request.nodes, request.exclusive = -(-ranks // each) if each else None, True
    shape = f"{ranks} ranks" + f" of {cores} cores" * (cores > 1) + (f", {each} on each" if each else "")
    why = f"counts the cores of {OF_ALPS}: these are requested for {shape}"
    content.unsure.append((option, f"{key}={width}", why))


def fill_devices(script: Script, content: ScriptRequest) -> None:
    """Request devices without a directive: of whole nodes, and in a whole script those of its steps."""
    request = content.request
    if any(re.match("--gpu|--gres", flag) for flag in script.heeded) or not script.dialect.hides_devices:
        return
    if request.exclusive and names_devices(script):
        found = (devices_of(launch, request) for launch in script.launches)
        request.gpus_per_node = next(filter(None, found), None)
    count, line, _ = devices_of_steps(script)
    if count and content.whole and request.gpus_per_node is None:
        request.gpus_per_node = count
        why = "only the launcher asks for them; the new job does"
        content.unsure.append((DirectiveOption(line, "", "", ""), f"{counted(count, 'GPU')} of a node", why))


def devices_of_steps(script: Script) -> tuple[int, int, str]:
    """Return the most devices of a node that a step requests, with its line and their type; empty without."""
    found = [(*_of_step(one, script.request), one.line) for one in script.launches if one.row.by_scheduler]
    return max(((count, line, kind) for count, kind, line in found), default=(0, 0, ""))


def open_devices(script: Script) -> Iterator[tuple[int, str]]:
    """Yield the line and the option of each step whose number of devices only the job finds out."""
    steps = (one for one in script.launches if one.row.by_scheduler)
    for one in steps if not devices_of_steps(script)[0] else ():
        if match := _OPEN_DEVICES.search(one.command.node.text):
            yield one.line, match[0]


def _of_step(launch: Launch, request: Request) -> tuple[int, str]:
    """Return the number of devices of a node that a step requests, and their type."""
    nodes = launch.number("-N", "--nodes") or request.nodes or 1
    ranks = launch.each or -(-(launch.number(*ALL) or request.ranks or 1) // nodes)
    times = {"--gpus-per-node": nodes, "--gres": nodes, "--gpus-per-task": ranks * nodes}
    times |= dict.fromkeys(("-G", "--gpus"), 1)
    for name, factor in times.items():
        parts = (launch.options.get(name) or "").split(",")
        value = next((one for one in parts if name != "--gres" or re.match(r"(gres[:/])?gpu\b", one)), "")
        kind, _, count = re.sub(r"^(gres[:/])?gpu:?", "", value).rpartition(":")
        if name == "--gres" and value and not count.isdigit():
            kind, count = count, "1"
        if given := number(count):
            return -(-given * factor // nodes), kind
    return 0, ""


def named_cores(script: Script) -> tuple[int, int, str]:
    """Return the most cores of a node that a script names, or one beside it which it starts, the line and the
    words; or (1, 0, "")."""
    found = [_own_cores(script)]
    for name, inner in started(script):
        call = inner.starter.call if inner.starter and inner.starter.script is script else None
        if call is not None and not (call.outer or call.remote):
            count, line, what = _own_cores(inner)
            found.append((count, call.line, f"{what} (line {line} of {name})"))
    return max(found, key=lambda one: one[0])


def _own_cores(script: Script) -> tuple[int, int, str]:
    found, of_job = [(1, 0, "")], script.request.nodes or 1
    of_all = set(_RANKS_OF_VARIABLE.findall(script.tree.text)) if of_job > 1 else set[str]()
    for name, value, node in script.assignments:
        of_cores = _CORES_IN_VARIABLE.fullmatch(name)
        count = number(script.constants.in_function(node).value(value)) if of_cores else None
        share = -(-(count or 1) // of_job) if name in of_all else count or 1
        found.append((share, node.line, f"{name}={count}"))
        if (ranks := _RANKS_IN_TEXT.search(value.unquoted)) and of_job == 1:
            found.append((int(ranks[1]), node.line, ranks[0]))
    programs = {one.command.node.start: one.program for one in script.launches}
    runs: list[tuple[int, Sequence[str]]] = []
    for one in script.runs:
        scope = script.constants.in_function(one.node)
        nodes = programs.get(one.node.start, one.words)
        runs.append((one.line, [scope.value(word) or word.text for word in nodes]))
    runs += [(one.line, one.texts) for one in script.started if one.text is not None and not one.remote]
    for line, words in runs:
        names = {os.path.basename(word) for word in words}
        elsewhere = not names.isdisjoint(_ENGINES)
        elsewhere |= "snakemake" in names and _ELSEWHERE.search(" ".join(words)) is not None
        for word, after in pairwise([*words, ""] if not elsewhere else ()):
            option, sign, given = re.sub(r"^(-[j@]|\+p)(?=\d)", r"\1=", word).partition("=")
            is_named = not names.isdisjoint(_LETTERS.get(option, "").split())
            is_named |= _CORES_IN_OPTION.fullmatch(option) is not None
            is_named |= bool(sign and _CORES_IN_VARIABLE.fullmatch(option.rpartition(".")[2]))
            is_named &= not (script.request.array and "total" in option)  # of all tasks of the array
            count = number(given or after) if is_named else None
            found.append((count or 1, line, f"{option} {count}"))
        name = next((os.path.basename(word) for word in words if not is_python(os.path.basename(word))), "")
        count, options = _DEFAULTS.get(name, (1, ""))
        if not any(re.match(rf"({options}|-h|--help|-v|--version|--test)(\d|=|$)", word) for word in words):
            found.append((count, line, f"{name} without {options.partition('|')[0]}"))
    return max([*found, *_at_once(script), *_at_once_in_texts(script)], key=lambda one: one[0])


def _at_once_in_texts(script: Script) -> Iterator[tuple[int, int, str]]:
    """Yield how many programs the shells of ``bash -c TEXT`` run at the same time with ``&``."""
    alone = (one for one in script.started if not (one.outer or one.remote))
    for text, line in {(one.text, one.line) for one in alone if one.text is not None}:
        inner = Script(text.source, script.scheduler)
        yield from ((count, line, what) for count, _, what in _at_once(inner))


def _at_once(script: Script) -> Iterator[tuple[int, int, str]]:
    """Yield how many programs the script itself runs at the same time with ``&``, the line and the words."""
    launched = sorted(one.command.node.start for one in script.started if one.outer or one.remote)
    alone = (one for one in script.started if not (one.outer or one.remote))
    nodes = {one.command.node for one in alone if os.path.basename(one.texts[0]) not in _IDLE}
    places = sorted(one.start for one in nodes)
    events = [(one.node.start, one.node, 0) for one in script.named("wait")]
    inside = ("command_substitution", "function_definition")
    events += [(one.start, one, 1) for one in nodes if not (in_background(one) or one.under(*inside))]
    for sign in script.tree.all("&"):
        before = sign.previous() if sign.field is None else None  # else the operator of an expression
        if before is None or not _has(before, places) or _has(before, launched):
            continue
        function = function_of(sign)
        calls = [one.node for one in script.named(function)] if function else [before]
        events += [(one.start, one, 2) for one in calls]
    count, line, is_open = 0, 0, False
    for _, node, kind in (*sorted(events, key=itemgetter(0)), (0, script.tree, 0)):
        if kind == 2:
            turns = _turns(node, script)
            count, line, is_open = count + (turns or 2), line if count else node.line, is_open or not turns
        elif kind == 0 or count > 1:  # the end of them, or one in front of them
            number_of = "several" if is_open else str(count + kind)
            yield count + kind, line, f"{number_of} programs with &"
            count, is_open = 0, False


def _has(node: Node, places: Sequence[int]) -> bool:
    """Return whether one of these places in the script, which are sorted, is in a node."""
    return bisect_left(places, node.start) < bisect_left(places, node.end)


def _turns(node: Node, script: Script) -> int:
    """Return how many of the processes that loops around a node start run at the same time; 0 if that is not
    known."""
    found = 1
    for loop in (one for one in node.above() if one.type in LOOPS):
        waits = [one for one in script.named("wait", "jobs") if one.node in loop]
        if waits and not any(one.name == "jobs" or on_condition(one.node) for one in waits):
            return found
        found *= 0 if waits else len(words_of_loop(loop, script.constants))
    return found


def counts_node(script: Script) -> tuple[int, str] | None:
    """Return the line and the text of the first code that counts all cores of a node for a program."""
    counts = (one for one in script.tree.all("command_substitution") if _COUNTS_NODE.search(one.text))
    return next(((one.line, one.text) for one in counts if not is_printed(one)), None)


def uses_all(script: Script) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each program that uses all cores which it finds."""
    for name, value, node in script.assignments:
        if name == "JULIA_NUM_THREADS" and script.constants.value(value) == "auto":
            yield node.line, node.text
    found = [(one.line, one.texts) for one in script.started]
    for command in script.running(*EACH_INPUT):
        if re.match(r"command\s+-[vV]", command.node.text):
            continue  # asks for its path
        found.append((command.line, [script.constants.text(word) for word in command.words]))
    for launch in script.launches:
        if launch.program:
            found.append((launch.line, [script.constants.text(word) for word in launch.program]))
    of_matlab = _of_matlab(script)
    for line, (name, *words) in found:
        if is_python(os.path.basename(name)) and words[:1] == ["-m"] and len(words) > 1:
            name, *words = words[1:]
        file, first = os.path.basename(name), words[0] if words else ""
        runs = _RUNS_MATLAB.fullmatch(f"{file} {first}") or file in of_matlab
        options = _USES_ALL.get("matlab" if runs else file)
        if options and re.match(options, " ".join(words), re.DOTALL):
            yield line, shortened(" ".join([name, *words]))


def _of_matlab(script: Script) -> set[str]:
    """Return the names of the programs that ``mcc`` makes of MATLAB code: they take all cores, as it does.

    A script that loads MATLAB and does not call it starts such programs.
    """
    found = set[str]()
    for command in script.named("mcc"):
        words = [script.constants.text(word) for word in command.arguments]
        code = [word for word in words if word.endswith(".m")]
        files = words[words.index("-o") + 1 :] if "-o" in words else code
        name = os.path.basename(files[0]).removesuffix(".m") if files else ""
        found |= set() if "singleCompThread" in command.node.text else {name, f"run_{name}.sh"}
    if not found and any(_LOADS_MATLAB.search(one.node.text) for one in script.named("module", "ml")):
        names = {one.texts[0] for one in script.started if not one.shell}
        called = any(re.search("(?i)matlab|mcc", one.name) for one in script.commands)
        found = set() if called else {os.path.basename(one) for one in names if re.search(r"/[^/.$]+$", one)}
    return found


def devices_of(launch: Launch, request: Request) -> int:
    """Return the ranks of a node, each with a device, that a launcher of Python starts; 0 if unknown."""
    if not launch.row.once_a_node:
        return 0
    total = launch.number("--num-processes") or 0
    return launch.number("--nproc-per-node", "--num-gpus") or total // (request.nodes or 1)


def why(request: Request) -> str:
    """Return the reason for the nodes of a request that names only cores."""
    nodes = f"{request.nodes} with {request.ranks_per_node} ranks on each"
    return f"names no nodes: {nodes} are requested, as the launcher fills them"


def filled(launch: Launch) -> tuple[int, int]:
    """Return how many nodes a launcher fills, and the ranks on each; one node if it does not say."""
    total, each = launch.number(*ALL), launch.each
    return (-(-total // each), each) if total and each else (1, 1)


def sites_of_whole_nodes(script: Script, keys: Set[str]) -> list[Site]:
    """Return the sites of whole nodes that a script may be for: by a resource of its nodes, else by one of
    the directives ``keys`` that they demand, whose values some of them may share, and by the queue."""
    from jobgen.sites import search
    from jobgen.sites.loader import read_site

    chunk = script.request.chunks[0] if len(script.request.chunks) == 1 else {}
    parts = {f"{name}={value}" for name, value in chunk.items() if name and re.match(r"[A-Za-z]", value)}
    found, given = list[tuple[Site, set[str]]](), set[str]()
    for name in search.names() if script.is_pbs and (parts or keys) else ():
        try:
            path = search.find(name, name)
            if not _mentions(name, path, parts, keys):
                continue
            site = read_site(path)
        except JobgenError:
            continue  # a file of the user that is wrong
        words = {part for line in site.file.request or () for part in line.split(":")}
        if parts & words:
            return [site]
        for key in keys & site.file.mandatory.keys() if "-l select={nodes}" in words else ():
            given = set(re.split("[:,]", script.heeded[key].value))
            found.append((site, set(re.split("[:,]", site.file.mandatory[key]))))
    common = set[str].intersection(*(values for _, values in found)) if found else set()
    fitting = [site for site, values in found if (given - common) & values]
    of_queue = [site for site in fitting if script.request.queue in (site.file.queues or ())]
    return of_queue or fitting or [site for site, _ in found]


def _mentions(name: str, path: str, parts: Set[str], keys: Set[str]) -> bool:
    """Return whether a site may request these parts or demand these directives, by the text of its file and
    of those that it extends: to load all sites takes 50 ms."""
    from jobgen.sites.loader import files

    text = read_text(path, path)
    if "extends" in text:
        text = "".join(read_text(one, one) for one in files(name))
    values = (re.escape(key) + r"""["']?\s*=\s*["']""" for key in keys)
    whole = "select={nodes}" in text and any(re.search(value, text) for value in values)
    return whole or any(part in text for part in parts)
