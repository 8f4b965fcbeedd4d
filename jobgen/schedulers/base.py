"""The interface of a scheduler: its names, what it lacks, and how a request is written as directives.

Each scheduler, and each dialect of PBS, is a module beside this one. What a method cannot express is a
ValueError whose message is the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from jobgen.schedulers.arrays import Array, Ranges

if TYPE_CHECKING:
    from jobgen.check.directive_reader import Option
    from jobgen.check.request import Request
    from jobgen.resources.accelerators import Accelerator
    from jobgen.schedulers.wanted import Wanted
    from jobgen.spec import JobSpec

EVENTS = {"begin": "BEGIN", "end": "END", "fail": "FAIL", "none": "NONE"}


class Scheduler:
    """The common part of the schedulers; the module of each overrides what differs."""

    name: str  # of its row: a dialect has its own
    command_name: str  # of jobgen's command: ``jobgen pbs``
    title: str
    template: str  # in templates/
    runtime: str  # of its file in templates/runtime/
    command: str  # that submits a script
    manual: str
    lacks: Mapping[str, str] = {}  # options that it does not support, with the reason
    lacks_if_mixed: Mapping[str, str] = {}  # the same for nodes that differ

    # Directives
    forms: Mapping[str, str] = {}  # of options with a directive of their own
    lists: tuple[str, ...] = ()  # options with several directives
    letters = ""  # its options as getopt(3) takes them: a colon follows a letter that has a value
    heeds_first: frozenset[str] = frozenset()  # of repeated options the first applies; of all others the last
    heeds_all: frozenset[str] = frozenset()
    array_form = ""
    array_rule = "and two indices at least"
    dependency_form = ""
    queue_lists = True  # a job may name several queues
    constraint_in_request = False  # it is a part of the request of each node
    memory_in_request = False
    memory_options: tuple[str, ...] = ()  # of which it takes one
    log_codes: Mapping[str, str] = {}  # its equivalents of Slurm's filename patterns
    one_file_a_task = frozenset("a")  # codes, of which a log of an array needs one
    reservation_is_queue = False

    # What it does with a job
    one_host = False  # a job has this host alone
    limits_time = True
    sends_signal = False  # some time before the limit
    requeues_tasks = False  # a task of an array without the others
    sets_devices = False  # those of a node are visible in its own steps alone
    equal_tasks = False  # each task gets as many cores
    hosts_by_core = False  # the node file has a line for each core
    default_cpus_per_rank = 2
    node_step: str | None = None  # its command that starts a process on each node
    agent: str | None = None  # its replacement of ssh: the name of a template in remote/

    # What users and jobgen run
    submit_commands: tuple[str, ...] = ()  # that submit jobs and look at them
    node_commands: tuple[str, ...] = ()  # that the script needs on the compute nodes
    interactive = ""  # how to get a node with ``{one}`` device
    default_launcher = "torchrun"
    starter: Mapping[str, object] = {}  # values of options in a job file to start from
    example_directive = ""
    example_constraint = ""

    # Conversion
    family = ""  # the title that its dialects have in common
    prefix = ""  # of a directive
    request_forms: Mapping[str, str] = {}  # of the fields of a request, in the order of a script
    converted: frozenset[str] = frozenset()  # options that other schedulers have, too
    common_limits: tuple[str, ...] = ()  # of -l, that all its dialects have
    memory_per_core: str | None = None  # the option
    shell_option: str | None = None
    directory_options: tuple[str, ...] = ()  # each names the directory of the job
    project_option: str | None = None  # the account, if the option of the account is missing
    directive_attributes = ""  # a pattern of other spellings of -l, in ``-W x=``
    array_kinds: Mapping[str, str] = {}  # its kinds of dependencies on whole arrays
    array_id = ""  # what ends the id of an array
    yearless_dates = False  # a date without its year is the next such day
    feature_separator = ":"  # in a constraint
    features_are_resources = False  # with names of their own
    chunks_share_nodes = False
    percent_codes = False  # its logs have Slurm's filename patterns
    copies_logs = False  # to HOST:PATH
    default_logs: Mapping[str, str] = {}  # with ``{}`` for the id
    default_mail = "none"  # the event of which it sends mail to an address
    starts_at_home = False  # a job starts in the home directory; otherwise where it was submitted
    # The meanings of its variables: job_id, submit_dir, node_file (with a line for each slot) and so on. The
    # first with a meaning is written; substitutes are those nearest to a meaning that only others have.
    job_variables: Mapping[str, str] = {}
    substitutes: Mapping[str, str] = {"home": "HOME", "user": "LOGNAME"}
    variable_prefix = ""
    unset_variables: frozenset[str] = frozenset()  # of its other dialects, without an equivalent
    counts: Mapping[str, str] = {}  # shell expressions of numbers, by their meanings
    job_number = ""  # the id of the job in arithmetic, if the variable is not a number
    hosts = ""  # a command that prints each host of a job
    host_list: tuple[str, ...] = ()  # a command that prints the hosts in the variable of the node list
    commands: tuple[str, ...] = ()  # of its own

    name_pattern: ClassVar[str] = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,229}"
    name_rule: ClassVar[str] = (
        "must be at most 230 letters, digits and . _ + - without blanks, and begin with a letter or digit"
    )

    def check(self, spec: JobSpec) -> None:
        """Refuse combinations of options that the scheduler does not support."""

    def misplaced(self, line: str) -> str | None:
        """Return why a directive does not belong to this scheduler; None if it does."""
        return None

    def lines(self, key: str, value: object) -> list[str]:
        """Return the directives of one option of ``forms`` or ``lists``."""
        return [self.forms[key].format(self.value(key, value))]

    def value(self, key: str, value: object) -> object:
        """Return the value of an option as its directive has it."""
        return value

    def constraint(self, text: str) -> str:
        """Return a constraint as it follows the request of each node."""
        raise NotImplementedError

    def devices(self, accelerator: Accelerator) -> str | None:
        """Return the request for ``{n}`` devices per node; None if there is none for this accelerator."""
        raise NotImplementedError

    def memory(self, mib: int, nodes: int, processes: int) -> str:
        """Return the request of ``mib`` MiB per node; ``processes`` are those of a node."""
        return size(mib)

    def site_request(self, gres: str | None) -> list[str]:
        """Return the request of a site file; ``gres`` is None without devices."""
        raise NotImplementedError

    def total_memory(self, mib: int) -> str:
        """Return a size of all nodes together."""
        return size(mib)

    def array(self, array: Array) -> str | None:
        """Return an array in the notation of the scheduler; None if there is none for it."""
        ranges = self.ranges(array.ranges)
        return array._replace(ranges=ranges).text() if ranges else None

    def ranges(self, ranges: Ranges) -> Ranges:
        """Return the ranges of an array as the scheduler takes them; none if it does not."""
        return ranges

    def dependency(self, kind: str, job: str) -> str:
        """Return the kind of a dependency on a job as the scheduler calls it."""
        return kind

    def mail(self, events: Iterable[str]) -> str:
        """Return the events of which the scheduler sends mail."""
        return ",".join(EVENTS[event] for event in events)

    def default_log(self, name: str, array: bool) -> str | None:
        """Return the path of the output; None leaves it to the scheduler."""
        return None

    def log(self, name: str, path: str) -> str:
        """Return a path with Slurm's filename patterns as the scheduler takes it."""
        return path

    # Conversion

    def option_of(self, beginning: str) -> str | None:
        """Return the key of the option that a directive sets, such as ``--nice`` or ``-l advres``."""
        for key, form in self.forms.items():
            own = "{}" in form and not (key == "reservation" and self.reservation_is_queue)
            if own and form.partition("{}")[0].rstrip('= "') == beginning:
                return key
        return None

    def read_value(self, key: str, value: str) -> str:
        """Return the value of a directive as its option takes it; unchanged if it cannot be converted."""
        return value

    def read_more(self, wanted: Wanted, given: Mapping[str, Option]) -> None:
        """Add what a request has no field for; ``given`` are the options in effect, by their keys."""
        raise NotImplementedError

    def is_reservation(self, queue: str) -> bool:
        """Return whether a queue is a reservation."""
        return False

    def job_name(self, name: str) -> str:
        """Return a name of a job as the scheduler accepts it."""
        return name

    def resources(self, asked: Request, devices: str, chunk: str) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the directives of the nodes, and what they cannot express, with the reason.

        ``devices`` is the request for those of a node; ``chunk`` follows the request of each node.
        """
        raise NotImplementedError

    def write_node_file(self, variable: str, slots: int) -> list[str]:
        """Return lines of a script that write the node file of another scheduler."""
        raise NotImplementedError


def clock(seconds: int) -> str:
    """Return a duration as ``HH:MM:SS``, which PBS, Torque and Slurm all read the same way."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def size(mib: int, suffix: str = "") -> str:
    """Return a size in MiB in its largest whole unit: ``64g``, ``1536m``."""
    return f"{mib // 1024}g{suffix}" if mib % 1024 == 0 else f"{mib}m{suffix}"


def matches(pattern: str, text: object) -> bool:
    """Return whether all of a text matches; digits and letters are those of ASCII."""
    return re.fullmatch(pattern, str(text), re.ASCII) is not None
