"""The interface of a scheduler: its names, unsupported options, and how directives are written and read.

Each scheduler, and each dialect of PBS, is a module of this package. A method raises ValueError, with the
reason as its message, for a value that the scheduler cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from jobgen.errors import JobgenError
from jobgen.values import parsers
from jobgen.values.arrays import Array, Ranges

if TYPE_CHECKING:
    from jobgen.launch.accelerators import Accelerator
    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.schedulers.jobs import JobCommands
    from jobgen.schedulers.marks import Mark
    from jobgen.schedulers.request import Option, Request
    from jobgen.schedulers.versions import Span
    from jobgen.schedulers.wanted import Lack, Told, Wanted
    from jobgen.spec import JobSpec

NEVER = r"(?!)"  # a pattern that matches nothing
EVENTS = {"begin": "BEGIN", "end": "END", "fail": "FAIL", "none": "NONE"}


class Scheduler:
    """The common part of the schedulers; the module of each overrides what differs."""

    name: str  # of its row; each dialect has its own
    command_name: str  # of jobgen's command: ``jobgen pbs``
    title: str
    summary: str  # the help of jobgen's command
    example: str  # of jobgen's command
    template: str  # in templates/
    runtime: str  # of its file in templates/runtime/
    command: str  # that submits a script
    manual: str
    tested = ""  # the versions on which the tests run its jobs
    lacks: Mapping[str, str] = {}  # options that it does not support, with the reason
    lacks_if_mixed: Mapping[str, str] = {}  # the same for nodes that differ

    # Directives
    prefix = ""
    forms: Mapping[str, str] = {}  # of options with a directive of their own
    lists: tuple[str, ...] = ()  # options with several directives
    in_template: tuple[str, ...] = ()  # options that its template writes into the request of the nodes
    option_pattern = ""  # of any directive
    option_rule = ""  # the same for users
    letters = ""  # its options as getopt(3) takes them: a colon follows a letter that has a value
    heeds_first: frozenset[str] = frozenset()  # options whose first repetition applies, otherwise the last
    heeds_all: frozenset[str] = frozenset()
    array_form = ""
    array_rule = " of at least two indices"
    dependency_form = ""
    queue_lists = True  # a job may name several queues
    nodes_key = ""  # of the option that requests the nodes
    request_keys: frozenset[str] = frozenset()  # of those of nodes, ranks, cores and devices
    device_keys: frozenset[str] = frozenset()  # of those of devices: one replaces the others
    # Keys that it refuses beside a key of the request, and the options of jobgen for them.
    refused_beside: Mapping[str, tuple[str, str]] = {}
    memory_in_request = False
    memory_form = ""  # of the memory, if the request of the nodes does not contain it
    memory_keys: tuple[str, ...] = ()
    size_options: tuple[str, ...] = ()  # whose values are sizes
    alternatives: tuple[frozenset[str], ...] = ()  # other keys of which it takes one, or heeds one
    log_codes: Mapping[str, str] = {}  # its equivalents of Slurm's filename patterns
    one_file_a_task = frozenset("a")  # codes; the log of an array needs one
    reservation_queue: str | None = None  # the pattern of the queues that are reservations

    # Options of its command that belong to no script, and what to do instead: empty to leave them out; ``{}``
    # is the value.
    not_in_scripts: Mapping[str, str] = {}
    # Values that only its command takes of options that jobgen has, too, and the words for jobgen.
    own_values: Mapping[str, tuple[str, str]] = {}
    # Resources of a whole job, and the options for those of a node or of a rank.
    job_totals: Mapping[str, str] = {}
    names_option = ""  # that passes variables to a job

    # How directives are read
    indented_directives = False
    directive_comments = False  # a comment may follow a directive
    line_joint = NEVER  # the end of a line of a directive that goes on in the next line
    component_words: frozenset[str] = frozenset()  # between the components of a job; they have no dash
    escapes = True  # a backslash outside of quotes
    ignores_words = False  # that are neither options nor their values
    long_options: Mapping[str, str] = {}  # "=" if an option takes a value, "?" if it may take one
    step_options: frozenset[str] = frozenset()  # long options of its other commands
    option_versions: Mapping[str, Span] = {}  # that have a long option
    short_options: Mapping[str, str] = {}  # their long names
    time_pattern = r"\d+(:\d+){0,2}"
    time_forms = "seconds, M:S and H:M:S"  # the same in words
    time_resources: frozenset[str] = frozenset()  # of -l
    unlimited: frozenset[str] = frozenset()  # words for no time limit
    bare_seconds = False  # a number alone is a time in seconds
    bare_size = (NEVER, "", "")  # a pattern of sizes without unit, their meaning, and a likely unit
    size_pattern = NEVER  # without regard to case
    size_units = size_example = ""
    array_pattern = NEVER
    array_forms = ""  # the same in words
    least_range = 1  # indices
    array_needs_rerun = False
    log_options: tuple[str, ...] = ()
    log_words = ""  # names that it replaces in a path
    percent_codes = False  # it replaces Slurm's filename patterns
    looks_up_hosts = False  # in HOST:PATH at submission
    interactive_options: tuple[str, ...] = ()  # that no script may have
    log_variables = False  # it replaces variables in a path
    copies_logs = False  # when the job has ended, to HOST:PATH
    choices: Mapping[str, tuple[str, str, str]] = {}  # of an option: the pattern, the rule, and an example
    foreign_options: Mapping[str, tuple[str, str]] = {}  # their scheduler, and the fix
    foreign_resources: Mapping[str, str] = {}  # of -l: the reason
    foreign_variables: Mapping[str, str] = {}  # that another scheduler sets, and the equivalent
    foreign_prefixes: tuple[str, ...] = ()  # of such variables
    marks: tuple[Mark, ...] = ()  # that distinguish schedulers with the same prefix
    foreign_directives = NEVER  # of a scheduler that jobgen does not know

    # What it does with a job
    one_host = False  # a job has only this host
    limits_time = True
    passes_arguments = True  # to the script
    sends_signal = False  # some time before the limit
    requeues_tasks = False  # a task of an array without the others
    sets_devices = False  # the devices of a node are visible only in its steps
    equal_tasks = False  # each task gets the same number of cores
    hosts_by_core = False  # the node file has a line for each core
    loses_dependents = False  # it may hold or delete a job that depends on one that has ended
    default_cpus_per_rank = 2
    node_step: str | None = None  # its command that starts a process on each node
    default_nodes: int | None = None  # if a job requests no number of nodes or ranks
    needs_shebang = False
    login_shell = False  # runs the script
    agent: str | None = None  # its replacement of ssh: the name of a template in remote/

    # What users and jobgen run
    submit_commands: tuple[str, ...] = ()  # that submit and query jobs
    node_commands: tuple[str, ...] = ()  # that the script needs on the compute nodes
    interactive = ""  # how to get a node with ``{one}`` device
    default_launcher = "torchrun"
    starter: Mapping[str, object] = {}  # values of options in a job file to start from
    example_directive = ""
    example_constraint = ""

    # Conversion
    size_keys: Mapping[str, tuple[str, ...]] = {}  # of the options that set cpus and ranks, best first
    gpus_of_rank = ""  # the option that gives each rank its own
    argument_rule = ""  # how a job gets what the script reads as its arguments; empty: as arguments
    family = ""  # the title that its dialects have in common
    request_forms: Mapping[str, str] = {}  # of the fields of a request, in the order of a script
    converted: frozenset[str] = frozenset()  # options that other schedulers have, too
    common_limits: tuple[str, ...] = ()  # of -l, that all its dialects have
    shell_option: str | None = None
    directory_options: tuple[str, ...] = ()  # each names the directory of the job
    project_option: str | None = None  # the account, if the option of the account is missing
    directive_attributes = ""  # a pattern of other spellings of -l, in ``-W x=``
    array_kinds: Mapping[str, str] = {}  # its kinds of dependencies on whole arrays
    array_id = ""  # what ends the id of an array
    task_suffix = ""  # that it adds to the name of the log of each task of an array
    yearless_dates = False  # a date without its year is the next such day
    feature_separator = ":"  # in a constraint
    features_are_resources = False  # with their own names
    chunks_share_nodes = False
    sets_threads = False  # OMP_NUM_THREADS is the number of cores in a chunk, or its ompthreads
    default_logs: Mapping[str, str] = {}  # with ``{}`` for the id
    own_logs = NEVER  # a pattern of the names of its logs, if a script names none
    directory_logs: Mapping[str, str] = {}  # the same in a directory; without them like default_logs
    no_index = ""  # what stands in names for the index of a job that is no array
    default_mail = "none"  # the event of which it sends mail to an address
    starts_at_home = False  # a job starts in the home directory; otherwise where it was submitted
    # The meanings of its variables: job_id, submit_dir, node_file (with a line for each slot) and so on. The
    # first with a meaning is written; substitutes are the nearest to a meaning that only others have.
    job_variables: Mapping[str, str] = {}
    substitutes: Mapping[str, str] = {"home": "HOME", "user": "LOGNAME", "host": "HOSTNAME"}
    variable_prefix = ""
    set_if_asked: tuple[str, ...] = ()  # meanings of variables that are unset if the request does not say it
    unset_variables: frozenset[str] = frozenset()  # of its other dialects, without an equivalent
    counts: Mapping[str, str] = {}  # shell expressions of numbers, by their meanings
    job_number = ""  # the id of the job in arithmetic, if the variable is not a number
    zeros: frozenset[str] = frozenset()  # variables of a rank that are 0 in the script itself
    hosts = ""  # a command that prints each host of a job
    show_job: tuple[str, ...] = ()  # the words of the command that prints a job, here this one
    host_list: tuple[str, ...] = ()  # a command that prints the hosts in the variable of the node list
    commands: tuple[str, ...] = ()  # only this scheduler has them

    name_pattern: ClassVar[str] = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,229}"
    name_rule: ClassVar[str] = (
        "must be at most 230 letters, digits and . _ + - without blanks, and begin with a letter or digit"
    )

    def for_job(self, spec: JobSpec) -> Scheduler:
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
        known = {"array": self.array_form, "after": self.dependency_form}
        return bool(known.get(key)) or key in (*self.forms, *self.lists, *self.in_template)

    def check(self, spec: JobSpec) -> None:
        """Refuse combinations of options that the scheduler does not support."""

    def misplaced(self, line: str) -> str | None:
        """Return why a directive does not belong to this scheduler; None if it does."""
        return None

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

    def devices(self, accelerator: Accelerator) -> str | None:
        """Return the request for ``{n}`` devices per node; None if there is none for this accelerator."""
        raise NotImplementedError

    def devices_option(self, number: int, kind: str, accelerator: str) -> str:
        """Return a directive of its own for devices of a node; empty if there is none."""
        return ""

    def typed(self, kind: str, resource: str) -> str:
        """Return the number ``{n}`` of devices with their type; ``resource`` is the site's name of types."""
        raise ValueError(f"{self.title} has the devices that it has; write the number alone")

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

    # Conversion

    def option_of(self, beginning: str) -> str | None:
        """Return the key of the option that a directive sets, such as ``--nice`` or ``-l advres``."""
        for key, form in self.forms.items():
            own = "{}" in form and not (key == "reservation" and self.reservation_queue)
            if own and key_of(form) == beginning:
                return key
        return None

    def origin(self, given: Mapping[str, Option], field: str) -> Told | None:
        """Return the directive in effect that sets a field of the request; None without one."""
        from jobgen.schedulers.wanted import Told

        forms = {**self.request_forms, "array": self.array_form, "dependency": self.dependency_form}
        keys = self.size_keys.get(field) or (key_of(forms.get(field, "")),)
        key = next((key for key in keys if key in given), None)
        if key is None:
            return None
        joint = "=" if key.startswith("--") or " " in key else " "
        return Told(given[key], f"{key}{joint}{given[key].value}".rstrip("= "), given[key].value)

    def read_value(self, key: str, value: str) -> str:
        """Return the value of a directive in the form of its option; unchanged if it cannot be converted."""
        return value

    def read_more(self, wanted: Wanted, given: Mapping[str, Option]) -> None:
        """Add the values without a field in a request; ``given`` are the options in effect, by their keys."""
        read = {
            key_of(form) for form in (*self.request_forms.values(), self.array_form, self.dependency_form)
        }
        wanted.left += [
            (one, f"{one.flag} {one.value}".strip(), "has no counterpart")
            for key, one in given.items()
            if key not in read
        ]

    def job_name(self, name: str) -> str:
        """Return a name of a job as the scheduler accepts it."""
        return name

    def resources(self, asked: Request, devices: str, chunk: str) -> tuple[list[str], list[Lack]]:
        """Return the directives of the nodes, and what they cannot express.

        ``devices`` is the request for those of a node; ``chunk`` follows the request of each node.
        """
        raise NotImplementedError

    def node_lines(self, resources: Resources, chunk: str, place: str) -> list[str]:
        """Return the directives that request the nodes, first that with their number (N if it is unknown).

        ``chunk`` follows the request of each node.
        """
        return []

    def write_node_file(self, variable: str, slots: int) -> list[str]:
        """Return lines of a script that write the node file of another scheduler; none if it cannot."""
        return []

    def settings(self, option: Option) -> Iterator[tuple[str, Option]]:
        """Yield the parts of an option, each with the key that identifies its repetitions."""
        yield option.flag, option

    def takes_value(self, key: str) -> bool:
        """Return whether the option with this key has a value."""
        return " " in key or (len(key) == 2 and f"{key[1]}:" in self.letters)

    def request(self, given: Mapping[str, str]) -> Request:
        """Return the request that options in effect make, by their keys."""
        from jobgen.schedulers.request import Request

        asked, forms = Request(), self.request_forms
        for key in ("name", "queue", "account", "output", "error", "mail_user") if forms else ():
            setattr(asked, key, given.get(key_of(forms[key])))
        asked.account = asked.account or None
        asked.array = given.get(key_of(self.array_form))
        depend = given.get(key_of(self.dependency_form), "")
        asked.depend = tuple(part for part in depend.split(",") if part)
        asked.walltime = self.seconds(given.get(key_of(forms.get("walltime", "")), ""))
        return asked

    def time(self, text: str) -> str:
        """Return a time limit without what the scheduler ignores."""
        return text

    def clock(self, seconds: int) -> str:
        """Return a time limit in the form of the scheduler."""
        return clock(seconds)

    def accepts_time(self, text: str) -> bool:
        """Return whether the scheduler accepts a time limit."""
        return text.lower() in self.unlimited or matches(self.time_pattern, text)

    def seconds(self, text: str) -> int | None:
        """Return a time limit in seconds; None if the scheduler refuses it."""
        return parsers.seconds(text) if len(text) <= 40 and matches(self.time_pattern, text) else None

    def accepts_array(self, text: str) -> bool:
        """Return whether the scheduler accepts an array."""
        ends = re.match(r"(\d+)-(\d+)", text, re.ASCII)
        indices = int(ends[2]) - int(ends[1]) + 1 if ends else self.least_range
        return matches(self.array_pattern, text) and indices >= self.least_range

    def value_fault(self, key: str, value: str, version: str | None = None) -> str:
        """Return why this version of the scheduler refuses the value of an option; empty if it accepts it.
        An unknown version accepts what any version accepts."""
        return ""

    def list_fault(self, value: str) -> str:
        """Return the error in a value of -l as a whole; empty if there is none."""
        return ""

    def together_faults(self, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield options that are refused without another one, and the reason."""
        yield from ()

    def name_fault(self, name: str) -> str:
        """Return why the scheduler refuses a name in a script; empty if it accepts it."""
        return ""

    def variables(self, asked: Request) -> dict[str, int | None]:
        """Return the variables that are numbers of a request; None if it does not determine a number."""
        numbers = {
            **dict.fromkeys(("nodes", "chunks"), asked.nodes),
            **dict.fromkeys(("ranks", "slots"), asked.ranks),
            **dict.fromkeys(("ranks_per_node", "slots_per_node"), asked.ranks_per_node),
            "cpus_per_rank": asked.cpus_per_rank,
            "gpus_per_node": asked.gpus_per_node,
        }
        return {name: numbers[one] for name, one in self.job_variables.items() if one in numbers}

    def variable(self, meaning: str) -> str | None:
        """Return the variable with a meaning, or the nearest one."""
        own = (name for name, one in self.job_variables.items() if one == meaning)
        return next(own, self.substitutes.get(meaning))


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
