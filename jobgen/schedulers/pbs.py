"""The common part of the dialects of PBS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.schedulers.base import Scheduler, fill, matches

if TYPE_CHECKING:
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.schedulers.jobs import JobCommands
    from jobgen.schedulers.request import Option, Request
    from jobgen.schedulers.wanted import Wanted

# Resources that the script itself requests, in the chunk of each node or outside of it.
OURS = ("ncpus", "mpiprocs", "ompthreads", "ngpus", "mem", "nodes", "select", "place", "walltime")
# PBS Pro's built-in resources of a chunk; qsub refuses them outside of it if there is a select or a place.
CHUNK_COUNTS = ("ncpus", "mpiprocs", "ompthreads", "ngpus", "naccelerators")
IN_CHUNKS = (
    *CHUNK_COUNTS, "mem", "vmem", "host", "vnode", "arch", "accelerator", "accelerator_model",
    "accelerator_memory",
)  # fmt: skip
EVENT_LETTERS = {"begin": "b", "end": "e", "fail": "a", "none": "n"}  # of the events of mail


class Pbs(Scheduler):
    command_name = runtime = "pbs"
    command = "qsub"
    summary = "Print a script for OpenPBS, PBS Pro or Torque."
    example = "jobgen pbs --nodes 2 --launcher mpirun > job.pbs && qsub job.pbs"
    option_pattern = r"-[A-Za-z][^\x00-\x1f\x7f\u2028\u2029#]*"
    option_rule = "an option of qsub, such as -l place=scatter"
    dependency_form = "-W depend={}"
    queue_lists = False
    not_in_scripts = {**dict.fromkeys(("-I", "-z", "-f", "-X"), ""), "-W block": "use jobgen submit --wait"}
    job_totals = {"-l ngpus": "gpus_per_node", "-l ncpus": "cpus_per_rank", "-l mem": "mem"}
    names_option = "-v"
    in_template: tuple[str, ...] = ("constraint",)
    loses_dependents = True
    prefix = "#PBS"
    indented_directives = True
    line_joint = r"\\\s*$"
    time_resources = frozenset({"walltime", "cput", "pcput", "min_walltime", "max_walltime"})
    bare_seconds = True
    bare_size = (r"\d+", "bytes for PBS", "gb")
    size_pattern = r"(?:\+?\d+[kmgtp]?[bw]?)?"
    size_units = "kb, mb, gb and tb"
    size_example = "write 64gb instead of 64GiB, and 1536mb instead of 1.5gb"
    memory_keys: tuple[str, ...] = ("-l mem",)
    alternatives: tuple[frozenset[str], ...] = (frozenset({"-j", "-e"}),)  # -e has no effect beside -j oe
    log_options = ("-o", "-e")
    log_words = "^array_index^"
    copies_logs = True
    choices = {
        "-j": (r"oe|eo|n", "oe, eo or n", "write -j oe"),
        "-m": (r"\s*(?:n|j*[abe][abej]*)", "n, or letters of abe", "write -m abe"),
    }
    foreign_prefixes = ("SLURM_",)
    foreign_directives = (
        r"\belapstim_req=|\s-b \d|\bresfailpolicy=|-t\s*\w*\["  # of NEC's NQSV; of Moab's msub
    )
    login_shell = True
    submit_commands = ("qsub", "qstat")
    features: tuple[str, str]  # a pattern of what may be requested of a node, and the rule

    # Conversion
    family = "PBS"
    size_keys = {
        "cpus": ("-l select", "-l nodes", "-l ncpus"), "ranks": ("-l select", "-l nodes"),
        "gpus": ("-l select", "-l nodes", "-l ngpus"),
    }  # fmt: skip
    request_forms = {
        "name": "-N {}", "queue": "-q {}", "account": "-A {}", "resources": "{}",
        "walltime": "-l walltime={}", "array": "{}", "dependency": "{}", "output": "-o {}", "error": "-e {}",
        "join": "-j oe", "mail": "-m {}", "mail_user": "-M {}", "requeue": "-r y", "no_requeue": "-r n",
        "hold": "-h", "all_variables": "-V", "names": "-v {}", "exclusive": "{}",
    }  # fmt: skip
    converted = frozenset(f"-{letter}" for letter in "NqAJtoejmMrVShap")
    common_limits = ("vmem", "pvmem", "cput", "pcput", "file", "nice")
    shell_option = "-S"
    array_id = "[]"
    yearless_dates = True
    default_logs = {"output": "%x.o{}", "error": "%x.e{}"}
    default_mail = "fail"
    starts_at_home = True
    job_variables = {
        "PBS_O_WORKDIR": "submit_dir", "PBS_O_HOST": "submit_host", "PBS_O_HOME": "home",
        "PBS_O_LOGNAME": "user", "PBS_JOBID": "job_id", "PBS_JOBNAME": "job_name", "PBS_QUEUE": "queue",
        "PBS_NODEFILE": "node_file",
    }  # fmt: skip
    variable_prefix = "PBS_"
    counts = {
        **dict.fromkeys(("nodes", "chunks"), '$(sort -u "$PBS_NODEFILE" | wc -l)'),
        "slots": '$(wc -l < "$PBS_NODEFILE")',
        "node_list": "$(awk '!seen[$1]++' \"$PBS_NODEFILE\" | paste -sd, -)",
        "array_job": "${PBS_JOBID%%[!0-9]*}",
    }
    job_number = "${PBS_JOBID%%[!0-9]*}"
    show_job = ("qstat", "-f", '"$PBS_JOBID"')
    hosts = "awk '!seen[$1]++' \"$PBS_NODEFILE\""
    commands = ("qsub", "qdel", "qstat", "qalter", "qrerun", "qsig", "pbsdsh", "pbs_tmrsh", "pbsnodes")

    def jobs(self) -> JobCommands:
        from jobgen.schedulers import pbs_jobs

        return pbs_jobs

    def cluster(self) -> ClusterCommands:
        from jobgen.schedulers import pbs_cluster

        return pbs_cluster

    def probes(self) -> Mapping[str, tuple[str, ...]]:
        from jobgen.schedulers.pbs_cluster import PROBES

        return PROBES

    def misplaced(self, line: str) -> str | None:
        if re.search(r"\s#", line):
            return "PBS supports no comment after a directive; remove it"
        return "is Slurm; PBS takes options such as -l filesystems=home" if line.startswith("--") else None

    def value(self, key: str, value: object) -> object:
        if key == "begin":
            return _begin(str(value))
        if key in ("qos", "reservation") and "," in str(value):
            raise ValueError("must be one name; PBS does not read a name after a comma")
        return value

    def constraint(self, text: str) -> str:
        pattern, rule = self.features
        if not matches(pattern, text):
            raise ValueError(f"must be {rule}")
        for name in re.findall(r"(\w+)=", text):
            if name in OURS:
                raise ValueError(f"{name} is already requested; use the option for it")
        return f":{text}"

    def dependency(self, kind: str, job: str) -> str:
        if kind == "aftercorr":
            raise ValueError("only Slurm supports aftercorr; use afterok")
        if "_" in job:
            raise ValueError(f"{job} is not an id of PBS, such as 12.server or 12[].server")
        return kind

    def mail(self, events: Iterable[str]) -> str:
        return "".join(sorted(EVENT_LETTERS[event] for event in events))

    def log(self, name: str, path: str) -> str:
        if ":" in path and not path.startswith("/"):
            raise ValueError(
                "PBS reads the text before the : as a host; remove it, or write an absolute path"
            )
        known = {"x": name, **self.log_codes}
        if unknown := [code for code in re.findall(r"%(.?)", path) if code not in known]:
            raise ValueError(f"{self.title} does not support %{unknown[0]} in a name; remove it")
        return fill(path, known)

    # Conversion

    def read_value(self, key: str, value: str) -> str:
        from jobgen.schedulers import pbs_conversion

        return pbs_conversion.date(value) if key == "begin" else value

    def read_more(self, wanted: Wanted, given: Mapping[str, Option]) -> None:
        from jobgen.schedulers import pbs_conversion

        pbs_conversion.read(self, wanted, given)

    def job_name(self, name: str) -> str:
        return re.sub(r"[^A-Za-z0-9._+-]", "_", name)

    def settings(self, option: Option) -> Iterator[tuple[str, Option]]:
        if option.flag not in ("-l", "-W"):
            yield option.flag, option
            return
        parts = option.value.split(",") if option.flag == "-l" else self.attributes(option.value)
        for part in parts if option.value.strip() else ():
            name, _, value = part.strip().partition("=")
            yield f"{option.flag} {name}", option._replace(value=value)

    def attributes(self, text: str) -> list[str]:
        """Return the attributes in a value of -W."""
        return [text]

    def request(self, given: Mapping[str, str]) -> Request:
        asked = super().request(given)
        asked.join = given.get("-j", "n") in ("oe", "eo")
        asked.mail = given.get("-m", "")
        asked.rerun = {"y": True, "n": False}.get(given.get("-r", ""))
        asked.totals = {key[len("-l ") :]: value for key, value in given.items() if key.startswith("-l ")}
        asked.place = asked.totals.get("place")
        alone = asked.totals.get("naccesspolicy", "").lower() == "singlejob"
        asked.exclusive = alone or "excl" in (asked.place or "") or "-n" in given
        _read_nodes(asked, asked.totals)
        return asked


def _begin(begin: str) -> str:
    """Return a date and time as PBS's digits; there are no relative times."""
    if begin[0] == "+":
        raise ValueError("PBS takes a date or a time of day, such as 2030-01-31T20:00 or 20:00")
    digits = re.sub(r"[-T:]", "", begin)
    return f"{digits[:-2]}.{digits[-2:]}" if begin.count(":") == 2 else digits


def _read_nodes(asked: Request, totals: dict[str, str]) -> None:
    """Set the nodes and their resources from select=, nodes= or the totals of the whole job."""
    from jobgen.schedulers.request import number
    from jobgen.values.parsers import mebibytes

    key = "select" if "select" in totals else "nodes"
    asked.chunks = tuple(_chunk(part) for part in totals[key].split("+")) if key in totals else ()
    if not asked.chunks:
        asked.gpus = number(totals.get("ngpus"))  # a total, as some sites define it
        return
    counts = [number(chunk[""]) or 1 for chunk in asked.chunks]
    asked.nodes = sum(counts)
    if len(asked.chunks) > 1:
        return  # the nodes differ
    chunk = asked.chunks[0]
    if key == "nodes":
        asked.ranks_per_node, asked.gpus_per_node = number(chunk.get("ppn")), number(chunk.get("gpus"))
        asked.mem = mebibytes(totals["mem"], "b") if "mem" in totals and asked.nodes == 1 else None
        if "pmem" in totals and (each := mebibytes(totals["pmem"], "b")) is not None:
            asked.mem = each * (asked.ranks_per_node or 1)
        asked.cpus_per_rank = 1 if asked.ranks_per_node else None
    else:
        asked.ranks_per_node, asked.gpus_per_node = number(chunk.get("mpiprocs")), number(chunk.get("ngpus"))
        npus = chunk.get("naccelerators", chunk.get("nnpus"))
        if asked.gpus_per_node is None and npus:
            asked.gpus_per_node, asked.accelerator = number(npus), "npu"
        cpus = number(chunk.get("ncpus"))
        asked.cpus_per_rank = cpus // max(asked.ranks_per_node or 1, 1) if cpus else None
        asked.mem = mebibytes(chunk["mem"], "b") if "mem" in chunk else None
    asked.ranks = (asked.ranks_per_node or 1) * asked.nodes


def _chunk(text: str) -> dict[str, str]:
    """Return ``2:ncpus=4:mpiprocs=2`` as a dict, with the count under the empty key."""
    found: dict[str, str] = {}
    for at, part in enumerate(text.strip().split(":")):
        name, equals, value = part.partition("=")
        if at == 0 and not equals:
            found[""] = name
        else:
            found[name] = value
    found.setdefault("", "1")
    return found
