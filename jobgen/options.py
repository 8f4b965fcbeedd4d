"""The table of a job's options: the name, the parser, the default and the meaning of each.

The command line, the error messages and ``--explain`` are generated from this table.
"""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from jobgen.errors import JobgenError, one_of, setting, shown
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.launch.containers import RUNTIMES
from jobgen.launch.default_launcher import defaults_text
from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS
from jobgen.schedulers.table import queued
from jobgen.secrets import masked_prose, masked_word
from jobgen.values import arrays, dependencies, devices, hosts, node_groups, parsers
from jobgen.values.text_files import check_word

PROSE = ("name", "comment")  # options whose value may be a sentence
DEFAULT_WALLTIME = 3600  # s; without a limit a job waits longer, or gets that of the queue


HERE, THERE = "here", "host"
PLACES = {HERE: "a path of this machine", THERE: "a path of the host, or in the code"}


class Option(NamedTuple):
    """An option: ``--name-with-dashes`` on the command line, ``key`` in a JobSpec."""

    key: str
    parse: Callable[[str], Any]
    metavar: str
    help: str
    default: Any = None
    multiple: bool = False
    alias: str | None = None
    switch: bool = False
    """True for an option without a value: --name or --no-name."""
    in_file: str = ""
    """The key in a job file, if it differs."""
    example: Any = None
    """A value for ``jobgen init``; by default the first allowed word, or the default."""
    directive: bool = False
    """True if a scheduler without a directive for it refuses it."""
    place: str = ""
    """For a path, the machine that it is of with --host: HERE, where it is read, or THERE, the host."""
    group: str = ""
    """The title of its group in the help and in the documentation."""

    @property
    def flag(self) -> str:
        return "--" + self.key.replace("_", "-")

    def is_named(self, word: str) -> bool:
        """Return whether a word of the command line is this option, without its value."""
        return word in (self.flag, self.alias, f"--no-{self.flag[2:]}" if self.switch else self.flag)

    @property
    def about(self) -> str:
        """The help without the notes on repetition, which only the command line needs."""
        return self.help.replace(" Repeatable, in order.", "").replace(" Repeatable.", "")

    @property
    def meaning(self) -> str:
        """The help without these notes and without the default."""
        return self.about.split("  [")[0]

    @property
    def name(self) -> str:
        """The key in a job file."""
        return self.in_file or self.key


def shell_text(key: str, value: str) -> str:
    """Return an option with its value as a shell takes it."""
    flag, word = BY_KEY[key].flag, shlex.quote(value)
    return f"{flag}={word}" if value.startswith("-") else f"{flag} {word}"


def parse(option: Option, text: str | Sequence[str], origin: str) -> tuple[Any, str]:
    """Return the value of an option, and its text as messages show it.

    ``text`` comes from ``origin``; it is a list for a repeatable option.
    """
    lines = [text] if isinstance(text, str) else text
    parsed = tuple(_parse(option, line, origin) for line in lines)
    hide = masked_prose if option.key in PROSE else masked_word
    return parsed if option.multiple else parsed[0], shown(" ".join(map(hide, lines)))


def _parse(option: Option, value: str, origin: str) -> Any:
    try:
        check_word(value)
        return option.parse(value)
    except ValueError as error:
        text = f"{setting(option.key, origin)} {shown(value)} ({origin}): {error}"
        raise JobgenError(text, option.key) from None


_repeated = partial(Option, default=(), multiple=True)


def _switch(key: str, help: str, **more: Any) -> Option:
    return Option(key, parsers.switch, "", help, switch=True, example=True, **more)


def _block(key: str, help: str, example: str, in_file: str = "") -> Option:
    return Option(key, parsers.block(in_file or key), "BASH", help, in_file=in_file, example=example)


_WORD = parsers.text("one word of letters, digits and . _ + - : @ , /", r"[A-Za-z0-9][\w.+:@,/-]{0,254}")
_CONDA = parsers.text(
    "the name or the path of a conda environment", r"[^\s-](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?"
)
_PREFIXES = one_of(dict.fromkeys(row.prefix for row in queued().values()))
_MAIL = parsers.text("a mail address", r"[A-Za-z0-9][\w.+-]*@[\w.-]+")
_LINE = parsers.text(
    f"options of one directive line, without the {_PREFIXES}", r"-[^\x00-\x1f\x7f\u2028\u2029]+"
)

_IMAGE = parsers.text(
    "an image, such as image.sif or docker://ubuntu:24.04", r"[^\s\x00-\x20-][^\x00-\x1f\x7f\u2028\u2029]*"
)
_LICENSE = r"[A-Za-z]\w*(@\w+)?(:[1-9]\d{0,5})?"
_LICENSES = f"{_LICENSE}(,{_LICENSE})*"
_COMMENT = r"(?!.*\s#)[^\x00-\x1f\x7f\u2028\u2029\"'`\\]{1,200}"

_SCHEDULER = (
    Option("name", parsers.text("a job name", r"(?s).*"), "NAME", "Name of the job.", "jobgen"),
    Option("queue", _WORD, "QUEUE", "Queue (a partition on Slurm).", alias="--partition", example="gpu"),
    Option("account", _WORD, "ACCOUNT", "Account or project that pays.", example="proj42"),
    Option(
        "walltime",
        parsers.time_limit,
        "TIME",
        "Time limit: 2h30m, 90m, HH:MM:SS or D-HH:MM:SS, or the word queue for the limit of the queue.  "
        "[default: 1h]",
        example="2h30m",
    ),
    Option(
        "mail",
        _MAIL,
        "ADDRESS",
        "Send mail at the start and the end of the job and on failure.",
        example="me@example.org",
    ),
    Option(
        "array",
        arrays.array,
        "INDICES",
        "Array of tasks: 0-9, 0-20:5 or 1,3,7; 0-9%3 runs at most 3 at a time. JOBGEN_TASK is the index.",
        example="0-9%3",
        directive=True,
    ),
    Option(
        "pack",
        parsers.whole(1, 1024),
        "K",
        "Run K points of the array or the sweep side by side in each task: each has its part of the nodes, "
        "devices and cores, and its own run directory. %N counts points.",
        example=4,
    ),
    _repeated(
        "after",
        dependencies.dependency,
        "[KIND:]ID",
        "Start after job ID has ended with status 0; KIND is another condition: afterany, afternotok, after. "
        "Repeatable.",
        example=["afterok:1234"],
        directive=True,
    ),
    Option("reservation", _WORD, "NAME", "Run in this reservation.", example="night", directive=True),
    Option("qos", _WORD, "NAME", "Quality of service.", example="high", directive=True),
    Option(
        "constraint",
        parsers.text("features of nodes without blanks", r"[^\s\"'`$\\#;%{}<>!-][^\s\"'`$\\#;%{}<>!]{0,254}"),
        "FEATURE",
        "Required node feature: a100 or a100&ib (Slurm), NAME=VALUE (PBS Pro), a property (Torque).",
        directive=True,
    ),
    Option(
        "licenses",
        parsers.text("licenses such as matlab:2,ansys", _LICENSES),
        "NAME:N",
        "Licenses that the job needs.",
        example="matlab:2",
        directive=True,
    ),
    Option(
        "comment",
        parsers.text("printable text without quotes, backslash and # behind a blank", _COMMENT),
        "TEXT",
        "Comment on the job, stored by the scheduler.",
        example="the last one before the deadline",
        directive=True,
    ),
    Option(
        "mail_on",
        parsers.choices("begin", "end", "fail", "none"),
        "EVENTS",
        "Events that send mail: a list of begin, end and fail; or none.  [default: all three, with --mail]",
        example="end,fail",
    ),
    Option(
        "log",
        parsers.log,
        "PATTERN",
        "Output file; its directory must exist. %x is the job name, %j the job id, %A and %a are the id and "
        "the index of an array task.  [default: the scheduler's, beside the script]",
        example="logs/%x.log",
        place=THERE,
    ),
    Option(
        "begin",
        parsers.begin,
        "TIME",
        "Earliest start time: 2030-01-31T20:00, 20:00, or +2h (Slurm).",
        example="20:00",
        directive=True,
    ),
    Option(
        "priority",
        parsers.whole(-1024, 1023),
        "N",
        "Priority among your own jobs, from -1024 to 1023; Slurm can only lower it (--nice).",
        example=-10,
        directive=True,
    ),
    _repeated(
        "directive",
        _LINE,
        "TEXT",
        "Additional directive, such as '-l filesystems=home'. It overrides those of jobgen. Repeatable.",
    ),
    Option(
        "dialect",
        parsers.choice("pbspro", "torque"),
        "pbspro|torque",
        "Variant of PBS: OpenPBS and PBS Pro, or Torque.  [default: pbspro]",
    ),
)
_RESOURCES = (
    Option(
        "nodes",
        node_groups.NodeCount(1),
        "N",
        "Number of nodes. 2x4+1x8 is 2 nodes of 4 ranks and 1 of 8. The word submitted leaves the number to "
        "the command sbatch or qsub.",
        1,
    ),
    Option(
        "ranks",
        parsers.whole(1),
        "N",
        "Processes in all. The number of nodes follows from the devices of a node, or from --ranks-per-node.",
        example=8,
    ),
    Option(
        "hostfile",
        hosts.hosts,
        "FILE",
        "File with the hosts of a job without a scheduler, one a line: HOST, HOST slots=N, HOST:N or HOST*N. "
        "Start the script on the first host; it reaches the others by ssh.",
        example="hosts",
        place=HERE,
    ),
    Option(
        "gpus_per_node",
        devices.DeviceCount(0),
        "[TYPE:]N",
        "Accelerators (GPUs or NPUs) per node; a100:4 requests 4 of the type a100.  [default: one per rank]",
        example=4,
    ),
    Option(
        "ranks_per_node",
        parsers.whole(1),
        "N",
        "Processes per node.  [default: one per accelerator]",
        example=4,
    ),
    Option(
        "cpus_per_rank",
        parsers.whole(1),
        "N",
        "Cores per rank, also OMP_NUM_THREADS.  [default: 2; local: 1]",
        example=8,
    ),
    Option(
        "cpus_per_node",
        parsers.whole(1),
        "N",
        "Cores allocated per node, if more than the ranks use.  [default: the cores of the ranks]",
        example=32,
    ),
    Option(
        "mem",
        parsers.memory,
        "SIZE",
        "Memory per node, with a unit: 64G.  [default: the queue's]",
        example="64G",
    ),
    _switch("exclusive", "Request the nodes exclusively.", directive=True),
    Option(
        "accelerator",
        parsers.choice(*ACCELERATORS, gpu="cuda", nvidia="cuda", amd="rocm", intel="xpu", ascend="npu"),
        "|".join(ACCELERATORS),
        "Device of the ranks.  [default: cuda; cpu with --gpus-per-node 0, and in jobgen local without it]",
    ),
)
_LAUNCH = (
    Option(
        "launcher",
        parsers.choice(*LAUNCHERS),
        "|".join(LAUNCHERS),
        f"Program that starts the ranks.  [default: that of the site, else {defaults_text()}]",
        example="torchrun",
    ),
    Option(
        "mpi",
        parsers.choice(*MPI_FLAVOURS),
        "|".join(MPI_FLAVOURS),
        "MPI implementation.  [default: openmpi, for mpirun]",
    ),
    Option(
        "remote",
        parsers.choice("auto", "ssh", "scheduler"),
        "auto|ssh|scheduler",
        "How processes are started on the other nodes; auto uses the scheduler if it can start them.",
        "auto",
    ),
    _repeated(
        "launcher_arg",
        parsers.text("an option of the launcher", r"[^\x00]+"),
        "ARG",
        "Additional argument of the launcher. Repeatable.",
        example=["--verbose"],
    ),
    _switch("expand", "Replace $NAME, ${NAME} and $1 to $9 in the words of the program when the job runs."),
    Option(
        "cpu_bind",
        parsers.cpu_bind,
        "none|cores|numa|LISTS",
        "CPUs that each rank is bound to: an equal part of the cores, its NUMA nodes, or one of the lists of "
        "CPUs, such as '0-7;8-15'.  [default: the site's lists, or the binding of the launcher]",
        example="cores",
    ),
    Option(
        "interface",
        parsers.interfaces,
        "[^]NAME,...",
        "Network interfaces for NCCL, HCCL and Open MPI over TCP, such as hsn0,hsn1; Gloo and others use the "
        "first. With ^ those that NCCL and HCCL must not use: ^lo,docker.",
        example="hsn0",
    ),
    Option(
        "network",
        parsers.text("one word, such as plugin", r"[A-Za-z0-9][\w.-]*"),
        "NAME",
        "Network setting of the site, by its name, such as plugin; jobgen site show SITE lists them.",
        example="plugin",
    ),
    Option(
        "include",
        parsers.device_filter,
        "FILTER",
        "Hosts and devices to use, in the form of DeepSpeed's filter: host:0,1@host2.",
        example="host1:0,1@host2",
    ),
    Option(
        "exclude",
        parsers.device_filter,
        "FILTER",
        "Hosts and devices to leave out, in the same form.",
        example="host3",
    ),
    Option(
        "master_addr",
        parsers.master_addr,
        "NAME|interface:NAME|ADDRESS",
        "Address on the first node at which the ranks meet: a name in which {host} is the name of the node, "
        "such as 'ic-{host}'; an interface, such as interface:ib0; or an IP address.  "
        "[default: the node's name]",
        example="interface:ib0",
    ),
    Option(
        "master_port",
        parsers.whole(1024, 65535),
        "PORT",
        "Port of the rendezvous.  [default: a free port, derived from the job id]",
        example=29500,
    ),
)
_SURVIVAL = (
    Option(
        "grace",
        parsers.walltime,
        "TIME",
        "Time before the time limit at which the ranks are asked to save and exit; --signal NAME@TIME sets "
        "it, too.  [default: 2m, or a tenth of a shorter time limit]",
        example="5m",
    ),
    Option(
        "signal",
        parsers.signal,
        "NAME[@TIME]",
        "Signal that asks the ranks to save and exit, USR1 or USR2, and its time before the time limit.  "
        "[default: USR1]",
        example="USR1@300",
    ),
    Option(
        "requeue",
        parsers.whole(1, 1000),
        "N",
        "Requeue the job, up to N times, if it ends with status 75 (not finished) and has made progress.",
        example=3,
    ),
    Option(
        "requeue_on",
        parsers.choice("saved", "limit"),
        "saved|limit",
        "When --requeue requeues the job. saved: it ends with status 75; limit: it reaches the time limit, "
        "whatever the status of the program then.",
        "saved",
        example="limit",
    ),
    _switch(
        "preflight",
        "Check hosts, devices, network and directories before the program starts.  [default: with more "
        "than one node]",
    ),
    Option(
        "spare_nodes",
        parsers.whole(1, 1000),
        "K",
        "Request K more nodes, to replace nodes on which the preflight fails, or that --restarts finds lost.",
        example=1,
    ),
    Option(
        "restarts",
        parsers.whole(1, 1000),
        "N",
        "Start the ranks again in the same allocation, up to N times, after a rank has failed or hangs, or a "
        "node is lost, if the run has made progress.",
        example=3,
    ),
    Option(
        "min_nodes",
        parsers.whole(1),
        "M",
        "With --restarts, go on with fewer nodes, M at least, if too few are left. The program must support "
        "another number of ranks, as the training module does.",
        example=1,
    ),
    Option(
        "hang_timeout",
        parsers.walltime,
        "TIME",
        "End a training that makes no step for this time, and keep the stacks of all ranks; or your own "
        "program, if it touches the file $JOBGEN_PROGRESS, and then not again for this time.  "
        "[default: 30m, for a training]",
        example="30m",
    ),
    _switch(
        "gpu_telemetry",
        "Measure the use and the memory of the devices on every node, for jobgen report and status.",
    ),
    Option(
        "node_limit",
        parsers.walltime,
        "TIME",
        "Time in which shell code must end on each node, and a file be staged there.  [default: 10m]",
        example="30m",
    ),
)
_ENVIRONMENT = (
    _repeated(
        "module_init",
        parsers.file_of_job,
        "FILE",
        "Shell script to source before all modules, such as one that defines the command module, as an "
        "absolute path, ~/FILE, or ./FILE in the working directory; with arguments as --source. Repeatable, "
        "in order.",
        example=["/opt/site/modules/init/bash"],
        place=THERE,
    ),
    _switch(
        "module_purge",
        "Unload all modules first, also those that were loaded when the job was submitted.",
    ),
    _repeated(
        "module_use",
        parsers.path_of_job,
        "DIR",
        "Folder of modulefiles, as an absolute path or ~/DIR; the last one is searched first. Repeatable.",
        example=["/opt/site/modulefiles"],
        place=THERE,
    ),
    _repeated(
        "module",
        parsers.module_step,
        "NAME",
        "Module to load. Repeatable, in order. NAME may also be another command of module: purge, reset, "
        "list, 'swap OLD NEW', 'unload NAME', 'use /DIR', 'restore NAME'. It may contain $VARIABLE, as of a "
        "file of module_init; so may the folders and files of the environment.",
        example=["cuda/12.4"],
    ),
    _repeated(
        "source",
        parsers.file_of_job,
        "FILE",
        "Shell script to source, as an absolute path, ~/FILE, or ./FILE in the working directory; behind a "
        "name that ends with .sh, its arguments. Repeatable, in order.",
        example=["/etc/profile.d/site.sh"],
        place=THERE,
    ),
    Option("conda", _CONDA, "ENV", "Conda environment, by name or path.", example="train", place=THERE),
    Option(
        "venv",
        parsers.directory,
        "DIR",
        "Python virtual environment, or ~/DIR.",
        example=".venv",
        place=THERE,
    ),
    _repeated(
        "env",
        parsers.assignment,
        "NAME[=VALUE]",
        "Environment variable of every rank. NAME alone has the value of your environment at the submission, "
        "in a file that only you can read. Repeatable.",
        example={"NCCL_DEBUG": "WARN"},
    ),
    _repeated(
        "env_file",
        parsers.env_file,
        "FILE",
        "File of lines NAME=VALUE: environment variables whose values no script contains. Repeatable.",
        example=["tokens.env"],
        place=HERE,
    ),
)
_CONTAINER = (
    Option(
        "container",
        parsers.choice(*RUNTIMES),
        "|".join(RUNTIMES),
        "Container runtime of the ranks.",
        example="apptainer",
    ),
    Option(
        "image",
        _IMAGE,
        "IMAGE",
        "Container image: a file, or a name that the runtime accepts.",
        example="/images/train.sif",
        place=THERE,
    ),
    _repeated(
        "bind",
        parsers.bind,
        "SRC[:DST[:ro]]",
        "Directory or file of the host to mount in the container. Repeatable.",
        example=["/data:/data:ro"],
        place=THERE,
    ),
    _repeated(
        "container_arg",
        parsers.text("an option of the container runtime", r"-[^\x00]*"),
        "ARG",
        "Additional option of the container runtime. Repeatable.",
        example=["--no-home"],
    ),
)
_BLOCKS = (
    _block(
        "early_setup",
        "Shell code to run before the modules, files and environments of the job.",
        "unset PYTHONPATH",
    ),
    _block(
        "setup",
        "Shell code to run after the environment is set up, before anything is checked.",
        "ulimit -l unlimited",
    ),
    _block(
        "before",
        "Shell code to run on the first node before the ranks start.",
        'cp -r "$HOME/data" "$JOBGEN_RUN_DIR"',
    ),
    _block(
        "after_block",
        "Shell code to run on the first node after the ranks have ended; JOBGEN_STATUS is their status.",
        'echo "it ended with status $JOBGEN_STATUS"',
        in_file="after",
    ),
    _block(
        "on_each_node",
        "Shell code to run once on each node before the ranks start; a node where it fails is left out, or "
        "ends the job.",
        'cp "$HOME/data.bin" "$JOBGEN_LOCAL_DIR"',
    ),
    _block(
        "after_on_each_node",
        "Shell code to run once on each node after the ranks have ended; JOBGEN_STATUS is their status.",
        'cp "$JOBGEN_LOCAL_DIR"/*.out "$JOBGEN_RUN_DIR"',
    ),
)
_FILES = (
    Option(
        "workdir",
        parsers.directory,
        "DIR",
        "Working directory of the program, or ~/DIR, or a path with $NAME, which the job enters behind "
        "early_setup.  [default: the directory of submission]",
        example="/scratch/me",
        place=THERE,
    ),
    _repeated(
        "stage",
        parsers.stage,
        "PATH[:DEST]",
        "File to copy to DEST in the folder $JOBGEN_STAGE on the disk of each node, or archive (.tar, .zip, "
        ".tar.gz, .tar.zst...) to unpack in the folder DEST there. Repeatable.",
        example=["/data/train.tar:data"],
        place=THERE,
    ),
    Option(
        "local_dir",
        parsers.local_folder,
        "DIR|$NAME[/DIR]",
        "Folder on the disk of each node, in which the job makes its own.  [default: $SLURM_TMPDIR, $TMPDIR "
        "or /tmp]",
        example="$TMPDIR",
    ),
    _switch(
        "local_caches",
        "Keep the caches of Triton, Inductor, torch extensions, MIOpen, CUDA and Hugging Face's modules on "
        "the disk of each node while the job runs.",
    ),
    Option(
        "runs_dir",
        parsers.path,
        "DIR",
        "Parent of the run directories; each job creates NAME-JOBID in it.",
        "runs",
        place=HERE,
    ),
    _switch("group_readable", "Let your group read the run directory. Only you can read it otherwise."),
    Option(
        "rank_logs",
        parsers.choice("node", "rank", "failed", "none"),
        "node|rank|failed|none",
        "Which output of the ranks is kept: one file per node, one file per rank, only that of failed "
        "ranks, or none.",
        "node",
    ),
    Option(
        "runtime",
        parsers.choice("embedded", "beside"),
        "embedded|beside",
        "Place of the script's runtime: in the script, or in a second file next to it.",
        "embedded",
    ),
)
_GROUPS = {
    "Scheduler": _SCHEDULER,
    "Resources": _RESOURCES,
    "Launch": _LAUNCH,
    "Survival": _SURVIVAL,
    "Environment": _ENVIRONMENT,
    "Container": _CONTAINER,
    "Blocks": _BLOCKS,
    "Directories": _FILES,
}
OPTIONS = tuple(row._replace(group=title) for title, rows in _GROUPS.items() for row in rows)

BY_KEY = {option.key: option for option in OPTIONS}
CODE = tuple(option.key for option in _BLOCKS)  # their values are shell code
# In the values of these the script replaces variables, each when the job has come to it.
OPEN = ("module_init", "module_use", "module", "source", "conda", "venv", "workdir")
