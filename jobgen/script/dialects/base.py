"""How the scripts of a scheduler are read: for ``jobgen check`` and ``jobgen convert``.

Generation and submission need none of this: see schedulers/base.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.schedulers.base import Scheduler, key_of, matches
from jobgen.schedulers.request import DirectiveOption, Request
from jobgen.schedulers.versions import Span
from jobgen.script.constants import command_key
from jobgen.script.dialects.script_request import Directive, ScriptRequest
from jobgen.script.dialects.value_forms import Conflict
from jobgen.values import parsers

NEVER = r"(?!)"  # a pattern that matches nothing


class Mark(NamedTuple):
    """A pattern of one scheduler in directives, or else in commands, where schedulers have the same prefix.

    The weight is 2 if other schedulers refuse or ignore the text, and 1 if they accept it, too.
    """

    pattern: str
    weight: int = 2
    in_commands: bool = False


class Dialect:
    """The common part of the dialects; the module of each overrides what differs."""

    scheduler: Scheduler

    @property
    def name(self) -> str:
        return self.scheduler.name

    @property
    def title(self) -> str:
        return self.scheduler.title

    @property
    def command(self) -> str:
        return self.scheduler.command

    @property
    def family(self) -> str:
        return self.scheduler.family

    @property
    def node_step(self) -> str | None:
        return self.scheduler.node_step

    def key(self, field: str) -> str:
        """Return the key of the option for a field of a request; a dash, which no option has, without one."""
        return key_of(self.scheduler.request_forms.get(field, "-"))

    @property
    def once_a_node(self) -> str:
        """What starts a command once on each node of a job, in messages."""
        if step := self.scheduler.node_step:
            # Without --ntasks the tasks of the job would replace the other option.
            return f'{step} --ntasks="${self.variable("nodes")}" --ntasks-per-node=1'
        return "mpirun or pbs_tmrsh, once a node"

    size_options: tuple[str, ...] = ()  # whose values are sizes

    # Options of its command that belong to no script: what to do instead, empty to leave them out; for others
    # the options of jobgen submit; and the option whose value is the program.
    not_in_scripts: Mapping[str, str] = {}
    submit_options: Mapping[str, str] = {}
    program_option = ""
    # Values that only its command takes of options that jobgen has, too: patterns, and the words for jobgen.
    own_values: Mapping[str, tuple[tuple[str, str], ...]] = {}
    # Options that count something for each device, and the options for a node or a rank.
    per_device: Mapping[str, str] = {}
    of_cores: tuple[str, ...] = ()  # options that request memory for each core
    no_counterpart: Mapping[str, str] = {}  # options that are refused as directives, and the reason
    # Resources of a whole job, and the options for those of a node or of a rank.
    job_totals: Mapping[str, str] = {}
    names_option = ""  # that passes variables to a job
    refuses_unset_names = False  # its command, if a variable that this option names is not set

    # How directives are read
    indented_directives = False
    line_joint = NEVER  # the end of a line of a directive that goes on in the next line
    component_words: frozenset[str] = frozenset()  # between the components of a job; they have no dash
    ignores_words = False  # that are neither options nor their values
    step_options: frozenset[str] = frozenset()  # long options of its other commands
    synonyms: Mapping[str, str] = {}  # words that are no long options, and the option that they mean
    local_variables: Mapping[str, str] = {}  # foreign variables that some sites set, and their meanings
    local_words = r"(?!)"  # in the scripts of those sites
    passed_variables: tuple[str, ...] = ()  # options that pass variables of the submission to the job
    option_versions: Mapping[str, Span] = {}  # that have a long option
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
    log_options: tuple[str, ...] = ()  # those of files that it writes, and of the one that it reads
    log_words = ""  # names that it replaces in a path
    percent_codes = False  # it replaces Slurm's filename patterns
    batch_codes: Mapping[str, str] = {}  # what it writes for those of steps in the log of a job
    looks_up_hosts = False  # in HOST:PATH at submission
    interactive_options: tuple[str, ...] = ()  # that no script may have
    log_variables = False  # it replaces variables in a path
    copies_logs = False  # when the job has ended, to HOST:PATH
    choices: Mapping[str, tuple[str, str, str]] = {}  # of an option: the pattern, the rule, and an example
    foreign_options: Mapping[str, tuple[str, str]] = {}  # their scheduler, and the fix
    foreign_resources: Mapping[str, str] = {}  # of -l: the reason
    foreign_variables: Mapping[str, str] = {}  # that another scheduler sets, and the equivalent
    environment: frozenset[str] = frozenset()  # the variables that the scheduler sets in a job
    foreign_prefixes: tuple[str, ...] = ()  # of such variables
    marks: tuple[Mark, ...] = ()  # that distinguish schedulers with the same prefix
    foreign_directives: Mapping[str, str] = {}  # patterns by schedulers that jobgen does not know
    # Prefixes of directives of other schedulers that its command reads, too, after its own, and patterns of
    # the options in them with an effect, and of those without; it refuses others. Only the first prefix that
    # a script has counts.
    also_reads: Mapping[str, tuple[str, str]] = {}
    ignores_others = ""  # the option that turns this off
    default_nodes: int | None = None  # if a job requests no number of nodes or ranks
    # Options that are 1 by default, the variable that each sets, and the options that change the default.
    sizes_of_one: Mapping[str, tuple[str, ...]] = {}
    needs_shebang = False
    script_copy = ("", NEVER)  # its copy of a script, and a pattern of parts of the path
    login_shell = False  # runs the script
    hides_devices = False  # that a job does not request

    # Conversion
    size_keys: Mapping[str, tuple[str, ...]] = {}  # of the options that set cpus and ranks, best first
    gpus_of_rank: tuple[str, ...] = ()  # the options that give each rank its own
    argument_rule = ""  # how a job gets what the script reads as its arguments; empty: as arguments
    converted: frozenset[str] = frozenset()  # options that other schedulers have, too
    common_directives = NEVER  # a pattern of those that all its dialects have, and jobgen has no options for
    umask_base = 0  # of the number of a umask without a leading 0
    wait_directive = ""  # with which the submission waits for the end of the job
    shell_option: str | None = None
    directory_options: tuple[str, ...] = ()  # each names the directory of the job
    project_option: str | None = None  # the account, if the option of the account is missing
    directive_attributes = ""  # a pattern of other spellings of -l, in ``-W x=``
    array_kinds: Mapping[str, str] = {}  # its kinds of dependencies on whole arrays
    array_id = ""  # what ends the id of an array
    task_suffix = ""  # that it adds to the name of the log of each task of an array
    yearless_dates = False  # a date without its year is the next such day
    feature_separator = ":"  # in a constraint
    features_are_resources = False  # a feature of a node is a resource NAME=VALUE
    chunks_share_nodes = False
    sets_threads = False  # OMP_NUM_THREADS is the number of cores in a chunk, or its ompthreads
    default_logs: Mapping[str, str] = {}  # names of the logs, in which ``{}`` is the id of the job
    early_log = ""  # the name of its log, if a script names none, and it is written from the beginning
    own_logs = NEVER  # a pattern of the names of its logs, if a script names none
    own_log_names = ("", "")  # those of a job and of a task of an array, with Slurm's filename patterns
    directory_logs: Mapping[str, str] = {}  # names of the logs in a directory; empty: default_logs
    name_of_array = ""  # the name of the job in a task of an array, if its variable has the index, too
    no_index = ""  # the index in the names of a job that is no array
    default_mail = "none"  # the event of which it sends mail to an address
    mail_joint = ""  # between the events of mail
    task_mail = ""  # the event with which each task of an array sends mail; empty: each does
    starts_at_home = False  # a job starts in the home directory; otherwise where it was submitted
    # The sites that give whole nodes: patterns of the code, and of the queues; the other queues share nodes.
    whole_nodes: Mapping[str, tuple[str, str]] = {}
    not_at_home = NEVER  # a pattern of the code at sites that start it where it was submitted all the same
    # The meanings of its variables: job_id, submit_dir, node_file (with a line for each slot) and so on. The
    # first with a meaning is written; substitutes are the nearest to a meaning that only others have.
    job_variables: Mapping[str, str] = {}
    counting: Mapping[str, Sequence[str]] = {}  # commands of scripts that count nodes or slots
    constants: Mapping[str, str] = {}  # variables that have the same value in all jobs
    substitutes: Mapping[str, str] = {"home": "HOME", "user": "LOGNAME"}
    variable_prefix = ""
    own_names = ""  # the beginnings of all names of variables that only its sites set, as a pattern
    unprefixed: Mapping[str, str] = {}  # variables without the prefix, and what it does to them
    names_of_devices: tuple[str, ...] = ()  # those of them with the devices of the job, and of each step
    at_some_sites: frozenset[str] = frozenset()  # those of them that other sites leave unset
    # Options for what every scheduler does, or for what only the command of the submission prints.
    of_no_job: frozenset[str] = frozenset()
    # Variables that it sets only if one of these options is given.
    set_by_options: Mapping[str, tuple[str, ...]] = {}
    unset_variables = NEVER  # a pattern of those of its other dialects that have no equivalent
    missing_commands: tuple[str, ...] = ()  # that only its other dialects have
    missing_options: tuple[tuple[str, str], ...] = ()  # of commands, likewise
    counts: Mapping[str, str] = {}  # shell expressions of numbers, by their meanings
    job_number = ""  # the id of the job in arithmetic, if the variable is not a number
    zeros: frozenset[str] = frozenset()  # variables of a rank that are 0 in the script itself
    hosts = ""  # a command that prints each host of a job
    first_host = "$(hostname)"  # its first host, in any script of it
    show_job: tuple[str, ...] = ()  # the words of the command that prints a job, here this one
    host_list: tuple[str, ...] = ()  # a command that prints the hosts in the variable of the node list
    node_file_commands: tuple[str, ...] = ()  # that print the name of a file with a line for each rank
    commands: tuple[str, ...] = ()  # only this scheduler has them
    site_launchers: tuple[str, ...] = ()  # of machines with this scheduler
    site_commands: Mapping[str, str] = {}  # commands that one of its sites adds, and the name of that site

    def devices_option(self, number: int, kind: str, accelerator: str) -> str:
        """Return a directive of its own for devices of a node; empty if there is none."""
        return ""

    @property
    def output_options(self) -> tuple[str, ...]:
        """The options of the files that it writes."""
        return self.log_options[:2]

    @property
    def owners(self) -> dict[str, str]:
        """The commands that only this scheduler or one of its sites has, and whose they are."""
        return {**dict.fromkeys(self.commands, self.title), **self.site_commands}

    @property
    def refuses_comments(self) -> bool:
        """Whether a comment behind a directive is read as words of it, with which the script is refused."""
        return not (self.ignores_words or self.scheduler.grammar.comments)

    # Conversion of directives

    def option_of(self, beginning: str) -> str | None:
        """Return the key of the option that a directive sets, such as ``--nice`` or ``-l advres``."""
        for key, form in self.scheduler.forms.items():
            own = "{}" in form and not (key == "reservation" and self.scheduler.reservation_queue)
            if own and key_of(form) == beginning:
                return key
        return None

    def origin(self, given: Mapping[str, DirectiveOption], field: str) -> Directive | None:
        """Return the directive in effect that sets a field of the request; None without one."""
        keys = self.size_keys.get(field) or (key_of(self.scheduler.request_forms.get(field, "")),)
        key = next((key for key in keys if key in given), None)
        if key is None:
            return None
        joint = "=" if key.startswith("--") or " " in key else " "
        return Directive(given[key], f"{key}{joint}{given[key].value}".rstrip("= "), given[key].value)

    def read_value(self, key: str, value: str) -> str:
        """Return the value of a directive in the form of its option; unchanged if it cannot be converted."""
        return value

    def read_more(self, content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
        """Add the values without a field in a request; ``given`` are the options in effect, by their keys."""
        read = set(map(key_of, self.scheduler.request_forms.values()))
        content.unconverted += [
            (one, f"{one.flag} {one.value}".strip(), "has no counterpart")
            for key, one in given.items()
            if key not in read
        ]

    def job_name(self, name: str) -> str:
        """Return a name of a job as the scheduler accepts it."""
        return name

    def write_node_file(self, variable: str, *slots: int | None) -> list[str]:
        """Return lines of a script that write the node file of another scheduler; none if it cannot.

        ``slots`` are those of a node, of each component; 0: only the submission has the number; None: each
        node has as many as the scheduler places there.
        """
        return []

    def time(self, text: str) -> str:
        """Return a time limit without what the scheduler ignores."""
        return text

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

    def writes_log_in_place(self, directive: str) -> bool:
        """Return whether a directive lets the scheduler write the log where it belongs while the job runs."""
        return False

    def may_be_local(self, key: str) -> bool:
        """Return whether a site's own commands may know an option that the scheduler does not know."""
        return False

    def value_fault(self, key: str, value: str, version: str | None = None) -> str:
        """Return why this version of the scheduler refuses the value of an option; empty if it accepts it.
        An unknown version accepts what any version accepts."""
        return ""

    def list_fault(self, value: str) -> str:
        """Return the error in a value of -l as a whole; empty if there is none."""
        return ""

    def conflicts(self, given: Mapping[str, str], *, in_array: bool) -> Iterator[Conflict]:
        """Yield the options that are refused beside others. ``in_array``: the command that submits the script
        makes an array."""
        yield from ()

    def name_fault(self, name: str) -> str:
        """Return why the scheduler refuses a name in a script; empty if it accepts it."""
        return ""

    def request(self, given: Mapping[str, str]) -> Request:
        """Return the request that options in effect make, by their keys."""
        request, forms = self.scheduler.sizes(given), self.scheduler.request_forms
        for key in ("name", "queue", "account", "output", "error", "mail_user") if forms else ():
            setattr(request, key, given.get(key_of(forms[key])))
        request.account = request.account or None
        request.array = given.get(key_of(forms.get("array", "")))
        depend = given.get(key_of(forms.get("dependency", "")), "")
        request.depend = tuple(part for part in depend.split(",") if part)
        request.walltime = self.seconds(given.get(key_of(forms.get("walltime", "")), ""))
        return request

    def variables(self, request: Request) -> dict[str, int | None]:
        """Return the variables that are numbers of a request; None if it does not determine a number."""
        return self._numbers(request, self.job_variables)

    def command_counts(self, request: Request) -> dict[str, int | None]:
        """Return what commands of scripts count in a request, by their keys."""
        counting = {command_key(text): one for one, texts in self.counting.items() for text in texts}
        return self._numbers(request, counting)

    def _numbers(self, request: Request, names: Mapping[str, str]) -> dict[str, int | None]:
        numbers = {
            **dict.fromkeys(("nodes", "chunks"), request.nodes),
            **dict.fromkeys(("ranks", "slots"), request.ranks),
            **dict.fromkeys(("ranks_per_node", "slots_per_node"), request.ranks_per_node),
            "cpus_per_rank": request.cpus_per_rank,
            "gpus_per_node": request.gpus_per_node,
            "job_cpus": request.job_cpus,
        }
        return {name: numbers[one] for name, one in names.items() if one in numbers}

    def meant(self, name: str) -> str | None:
        """Return the variable of a job that a name without ``JOB`` means: ``SLURM_PARTITION``."""
        of_job = name.replace("_", "_JOB_", 1)
        return of_job if of_job in self.environment and name not in self.environment else None

    def variable(self, meaning: str) -> str | None:
        """Return the variable with a meaning, or the nearest one."""
        own = (name for name, one in self.job_variables.items() if one == meaning)
        return next(own, self.substitutes.get(meaning))
