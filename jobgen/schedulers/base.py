"""The interface of a scheduler: its names, unsupported options, and how directives are written and read.

Each scheduler, and each dialect of PBS, is a module of this package. A method raises ValueError, with the
reason as its message, for a value that the scheduler cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from jobgen.errors import JobgenError
from jobgen.values.arrays import Array, Ranges

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.schedulers.jobs import JobCommands
    from jobgen.schedulers.request import DirectiveOption, Lack, Request
    from jobgen.spec import Specification

EVENTS = {"begin": "BEGIN", "end": "END", "fail": "FAIL", "none": "NONE"}


class Grammar(NamedTuple):
    """How the scheduler's command reads the options of a directive.

    ``letters`` are its short options as getopt(3) takes them: a colon follows a letter that has a value.
    ``long_options``: "=" if an option takes a value, "?" if it may take one; ``short_options`` have their
    long names. Of repeated options the last one applies, or the first (``heeds_first``), or all
    (``heeds_all``). ``escapes``: a backslash outside of quotes escapes; ``comments``: one may follow the
    options. ``joins``: all directives are one list of arguments, so that the value of an option may be in the
    next line.
    """

    letters: str = ""
    long_options: Mapping[str, str] = MappingProxyType({})
    short_options: Mapping[str, str] = MappingProxyType({})
    heeds_first: frozenset[str] = frozenset()
    heeds_all: frozenset[str] = frozenset()
    escapes: bool = True
    comments: bool = False
    joins: bool = False

    def precedence(self, key: str) -> Literal["first", "last", "all"]:
        """Return which of repeated options applies: ``-N``, ``-l walltime``, ``-W depend``, ``--time``."""
        if key in self.heeds_all:
            return "all"
        return "first" if key.split(" ")[0] in self.heeds_first else "last"

    def word(self, text: str) -> str:
        """Return a value as one word of a directive: in quotes if blanks or a comment sign would end it."""
        ends = r"[\s#]" if self.comments else r"\s"
        return f'"{text}"' if re.search(ends, text) and '"' not in text else text

    def takes_value(self, key: str) -> bool:
        """Return whether the option with this key has a value."""
        if key.startswith("--"):
            return self.long_options.get(key[2:]) == "="
        return " " in key or (len(key) == 2 and f"{key[1]}:" in self.letters)


class Help(NamedTuple):
    """What users read about a scheduler.

    ``summary`` and ``example`` are those of jobgen's command. ``interactive``: how to get a node with
    ``{one}`` device. ``starter`` are values of options in a job file to start from, ``directive`` and
    ``constraint`` examples of these options, ``tested`` the versions on which the tests run its jobs.
    """

    summary: str
    example: str
    interactive: str = ""
    starter: Mapping[str, object] = MappingProxyType({})
    directive: str = ""
    constraint: str = ""
    tested: str = ""


class Behaviour(NamedTuple):
    """What a scheduler does with a job."""

    one_host: bool = False  # a job has only this host
    limits_time: bool = True
    passes_arguments: bool = True  # to the script
    sends_signal: bool = False  # some time before the limit
    requeues_tasks: bool = False  # a task of an array without the others
    sets_devices: bool = False  # the devices of a node are visible only in its steps
    equal_tasks: bool = False  # each task gets the same number of cores
    hosts_by_core: bool = False  # the node file has a line for each core
    loses_dependents: bool = False  # it may hold or delete a job that depends on one that has ended
    queue_lists: bool = True  # a job may name several queues
    queue_servers: bool = False  # a queue may be QUEUE@SERVER, or @SERVER
    queue_length: int | None = None  # the characters of the name of a queue, if their number is limited
    memory_in_request: bool = False  # of the nodes


class RequestKeys(NamedTuple):
    """The keys of the options that request nodes, such as ``-l select`` or ``--gres``.

    ``nodes`` is that of their number; ``all`` are those of nodes, ranks, cores and devices. One of
    ``devices`` replaces the others; so does one of each of ``alternatives``. ``refused_beside`` are keys that
    the scheduler refuses beside a key of the request, and the options of jobgen for them.
    """

    nodes: str = ""
    all: frozenset[str] = frozenset()
    devices: frozenset[str] = frozenset()
    memory: tuple[str, ...] = ()
    alternatives: tuple[frozenset[str], ...] = ()
    refused_beside: Mapping[str, tuple[str, str]] = MappingProxyType({})


class Scheduler:
    """The common part of the schedulers; the module of each overrides what differs."""

    name: str  # of its row; each dialect has its own
    command_name: str  # of jobgen's command: ``jobgen pbs``
    title: str
    family = ""  # the title that the dialects of one command have in common
    template = "batch.sh.j2"  # in templates/
    runtime: str  # of its file in templates/runtime/
    command: str  # that submits a script
    manual: str
    help: Help
    # Options that it does not support, with the reason.
    lacks: Mapping[str, str] = {
        "dialect": "the scheduler has only one",
        "hostfile": "leave it out: the scheduler chooses the hosts; a list of them is for jobgen local",
    }
    lacks_if_mixed: Mapping[str, str] = {}  # the same for nodes that differ
    lacks_in_component: Mapping[str, str] = {}  # the same for the keys of a component
    component_line = ""  # the directive between components, each of which has a request of its own

    # Directives
    prefix = ""
    # Of the fields of a request; memory only if the request of the nodes does not contain it.
    request_forms: Mapping[str, str] = {}
    forms: Mapping[str, str] = {}  # of options with a directive of their own
    lists: tuple[str, ...] = ()  # options with several directives
    in_request: tuple[str, ...] = ()  # options that are a part of the request of the nodes
    # The parts of rendering/directives.py in the order of a script.
    directive_order: tuple[str, ...] = (
        *("early", "name", "constant", "request", "memory", "site", "walltime", "options", "join", "log"),
        *("signal", "requeue", "tolerance", "addressed", "container", "late"),
    )
    tolerance = ""  # with which a job lives on without one of its nodes
    constant_directives: tuple[str, ...] = ()  # of every script
    option_pattern = r"--?[A-Za-z][^\x00-\x1f\x7f\u2028\u2029]*"  # of any directive
    grammar = Grammar()
    keys = RequestKeys()
    array_rule = " of at least two indices; for others add --pack 1"
    one_task: str | None = None  # an array whose only task is 0, if ``array`` has no form for it
    log_codes: Mapping[str, str] = {}  # its equivalents of Slurm's filename patterns
    one_file_a_task = frozenset("a")  # the filename patterns of which the log of an array needs one
    reservation_queue: str | None = None  # the pattern of the queues that are reservations

    behaviour = Behaviour()
    default_cpus_per_rank = 2
    node_step: str | None = None  # its command that starts a process on each node
    agent: str | None = None  # its replacement of ssh: the name of a template in remote/

    # Commands
    submit_commands: tuple[str, ...] = ()  # that submit and query jobs
    node_commands: tuple[str, ...] = ()  # that the script needs on the compute nodes
    default_launcher = "torchrun"

    name_pattern: ClassVar[str] = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,229}"
    name_rule: ClassVar[str] = (
        "must be at most 230 letters, digits and . _ + - without blanks, and begin with a letter or digit"
    )

    def for_job(self, spec: Specification) -> Scheduler:
        """Return the scheduler of a job, if another row is for jobs with some option."""
        return self

    def jobs(self) -> JobCommands:
        """Return the commands that submit, query and end jobs."""
        raise JobgenError(f"jobgen does not submit jobs of {self.title}: use {self.command}")

    def cluster(self) -> ClusterCommands:
        """Return the commands that list queues and nodes."""
        raise JobgenError(f"jobgen cannot list the queues of {self.title}")

    def probes(self) -> Mapping[str, tuple[str, ...]]:
        """Return the commands with which the doctor queries queues and nodes, by the name of the answer."""
        return {}

    def is_reservation(self, queue: str | None) -> bool:
        """Return whether a queue is a reservation."""
        return bool(queue and self.reservation_queue and matches(self.reservation_queue, queue))

    def writes(self, key: str) -> bool:
        """Return whether the scheduler has a directive for an option."""
        field = {"array": "array", "after": "dependency"}.get(key)
        return field in self.request_forms or key in (*self.forms, *self.lists, *self.in_request)

    def check(self, spec: Specification) -> None:
        """Refuse combinations of options that the scheduler does not support."""

    def misplaced(self, line: str) -> str | None:
        """Return why a directive does not belong to this scheduler; None if it does."""
        return None

    def directive(self, field: str, value: object) -> str:
        """Return the directive of a field of a request."""
        form = self.request_forms[field]
        return form.format(value if form == "{}" else self.grammar.word(str(value)))

    def lines(self, key: str, value: object) -> list[str]:
        """Return the directives of one option of ``forms`` or ``lists``."""
        if key not in self.forms:
            raise ValueError(f"{self.title} has no equivalent")
        return [self.forms[key].format(self.value(key, value))]

    def value(self, key: str, value: object) -> object:
        """Return the value of an option in the form of its directive."""
        return value

    def constraint(self, text: str) -> str:
        """Return a constraint as it follows the request of each node."""
        raise NotImplementedError

    def devices(self, accelerator: Accelerator, kind: str = "") -> str | None:
        """Return the request for ``{n}`` devices per node, of a type if there is a ``kind``; None if there is
        none for this accelerator."""
        raise NotImplementedError

    def typed(self, kind: str, resource: str) -> str:
        """Return the number ``{n}`` of devices with their type; ``resource`` is the site's name of types."""
        raise ValueError(f"{self.title} has the devices that it has; write the number alone")

    def memory(self, mib: int, nodes: int) -> str:
        """Return the request of ``mib`` MiB per node."""
        return size(mib)

    def total_memory(self, mib: int) -> str:
        """Return a size of all nodes together."""
        return size(mib)

    def array(self, array: Array) -> str | None:
        """Return an array in the notation of the scheduler; None if there is none for it."""
        ranges = self.ranges(array.ranges)
        return array._replace(ranges=ranges).text() if ranges else None

    def ranges(self, ranges: Ranges) -> Ranges:
        """Return the ranges of an array in the form of the scheduler; none if it does not accept them."""
        return ranges

    def dependency(self, kind: str, job: str) -> str:
        """Return the scheduler's name of the kind of a dependency."""
        return kind

    def mail(self, events: Iterable[str]) -> str:
        """Return the events for which the scheduler sends mail."""
        return ",".join(EVENTS[event] for event in events)

    def default_log(self, name: str, array: bool) -> str | None:
        """Return the path of the output; None leaves it to the scheduler."""
        return None

    def log(self, name: str, path: str) -> str:
        """Return a path with Slurm's filename patterns in the form of the scheduler."""
        return path

    def resources(self, request: Request, devices: str, chunk: str) -> tuple[list[str], list[Lack]]:
        """Return the directives of the nodes, and what they cannot express.

        ``devices`` is the request for those of a node; ``chunk`` follows the request of each node.
        """
        raise NotImplementedError

    def node_lines(self, resources: Resources, chunk: str, place: str) -> list[str]:
        """Return the directives that request the nodes, first that with their number (N if it is unknown).

        ``chunk`` follows the request of each node.
        """
        return []

    def settings(self, option: DirectiveOption) -> Iterator[tuple[str, DirectiveOption]]:
        """Yield the parts of an option, each with the key that identifies its repetitions."""
        yield option.flag, option

    def sizes(self, given: Mapping[str, str]) -> Request:
        """Return the nodes, ranks, cores, devices and memory in the options in effect, by their keys."""
        from jobgen.schedulers.request import Request  # late: few jobs need it

        return Request()

    def clock(self, seconds: int) -> str:
        """Return a time limit in the form of the scheduler."""
        return clock(seconds)


def key_of(form: str) -> str:
    """Return the key of the option that a form writes: ``-W depend`` of ``-W depend={}``."""
    return form.partition("{}")[0].rstrip('= "')


def clock(seconds: int) -> str:
    """Return a duration as ``HH:MM:SS``, which PBS, Torque and Slurm all read the same way."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def size(mib: int, suffix: str = "") -> str:
    """Return a size in MiB in its largest whole unit: ``64g``, ``1536m``."""
    return f"{mib // 1024}g{suffix}" if mib % 1024 == 0 else f"{mib}m{suffix}"


def fill(path: str, codes: Mapping[str, str]) -> str:
    """Return a path with Slurm's filename patterns replaced, by nothing if they are not in ``codes``.

    A variable whose name would go on in the text behind it gets braces.
    """

    def word(found: re.Match[str]) -> str:
        text = codes.get(found[1], "")
        return re.sub(r"^\$(\w+)$", r"${\1}", text) if found[2] else text

    return re.sub(r"%(.)(?=(\w?))", word, path)


def matches(pattern: str, text: object) -> bool:
    """Return whether all of a text matches; digits and letters are those of ASCII."""
    return re.fullmatch(pattern, str(text), re.ASCII) is not None


def queue_fault(scheduler: Scheduler, queue: str) -> str:
    """Return why a scheduler refuses the name of a queue; empty if it does not."""
    length = scheduler.behaviour.queue_length
    too_long = length is not None and len(queue.partition("@")[0]) > length
    return f"{scheduler.title} takes names of queues of at most {length} characters" if too_long else ""
