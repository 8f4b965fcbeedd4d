"""The common part of the dialects of PBS."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobgen.schedulers.request import DirectiveOption, Request
from jobgen.script.dialects import pbs_directives
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest

# Variables that only Torque sets, and the equivalents elsewhere.
TORQUE_VARIABLES = {
    "PBS_NP": "the number of lines of $PBS_NODEFILE",
    "PBS_NUM_PPN": "mpiprocs, written out",
    "PBS_NUM_NODES": "the number of hosts in $PBS_NODEFILE",
    "PBS_GPUFILE": "ngpus, written out",
    "PBS_ARRAYID": "PBS_ARRAY_INDEX",
}


# The variables of a job in qsub(1B) of both, with those of only one of them.
_ENVIRONMENT = """
ACCOUNT ARRAYID ARRAY_ID ARRAY_INDEX CONF_FILE DEFAULT ENVIRONMENT EXEC GPUFILE HOME JOBCOOKIE JOBDIR JOBID
JOBNAME MICFILE MOMPORT NCPUS NGPUS NODEFILE NODENUM NP NUM_NODES NUM_PPN O_HOME O_HOST O_INITDIR O_LANG
O_LOGNAME O_MAIL O_PATH O_QUEUE O_ROOTDIR O_SERVER O_SHELL O_SYSTEM O_TZ O_WORKDIR QUEUE RESOURCE_LIST
SERVER TASKNUM TMPDIR VERSION VNODENUM WALLTIME
"""
OF_MOAB = (  # commands of Maui and Moab, which schedule for Torque
    *("msub", "checkjob", "showq", "showstart", "canceljob", "mjobctl", "mdiag", "showbf", "showres"),
    "checknode",
)


class PbsDialect(Dialect):
    not_in_scripts = {
        **dict.fromkeys(("-z", "-f", "-X"), ""),
        "-I": "leave -I out: bash FILE runs the script of -o FILE in an interactive job of qsub -I",
        "-e": "leave -e out, jobs of jobgen have one log file, which --log names",
        "-j": "leave -j out, jobs of jobgen have one log file",
    }
    submit_options = {"-W block": "--wait"}
    job_totals = {"-l ngpus": "gpus_per_node", "-l ncpus": "cpus_per_rank", "-l mem": "mem"}
    names_option = "-v"
    indented_directives = True
    line_joint = r"\\\s*$"
    time_resources = frozenset({"walltime", "cput", "pcput", "min_walltime", "max_walltime"})
    bare_seconds = True
    bare_size = (r"\d+", "byte", "gb")
    size_pattern = r"(?:\+?\d+[kmgtp]?[bw]?)?"
    size_units = "kb, mb, gb and tb"
    size_example = "write 64gb instead of 64GiB, and 1536mb instead of 1.5gb"
    log_options = ("-o", "-e")
    passed_variables = ("-v", "-V")
    log_words = "^array_index^"
    copies_logs = True
    choices = {
        "-j": (r"oe|eo|n", "oe, eo or n", "write -j oe"),
        "-m": (r"\s*(?:n|j*[abe][abej]*)", "n, or letters of abe", "write -m abe"),
    }
    environment = frozenset(map("PBS_{}".format, _ENVIRONMENT.split()))
    foreign_prefixes = ("SLURM_",)
    foreign_directives = {
        "NEC's NQSV": r"\b(?:elapstim|cputim|memsz|cpunum|gpunum|vememsz)_(?:req|job|prc)=|\s-b\s*\d|"
        r"\s--venode\b|\s--(?:ve|cpu|gpu|socket|hca)num-\w+|\s--(?:use-hca|job-topology|exclusive-lhost|custom)\b|"
        r"\s-T\s*(?:nec|open|intel|int|m?va?p?ich\d*_?)mpi\b|\s-T\s*(?:mpich|mvapich|distrib)\d?\b|\s-j\s*o(?!\w)",
        "Moab's msub": r"\bresfailpolicy=|-t\s*\w*\[",
    }
    login_shell = True
    script_copy = ("mom_priv/jobs/ID.SC", r"\bmom_priv\b|\.SC\b")

    # Conversion
    size_keys = {
        "cpus": ("-l select", "-l nodes", "-l ncpus"), "ranks": ("-l select", "-l nodes"),
        "gpus": ("-l select", "-l nodes", "-l ngpus"),
    }  # fmt: skip
    converted = frozenset(f"-{letter}" for letter in "NqAJtoejmMrVShap")
    common_directives = (  # Torque reads a umask without a leading 0 as a decimal number
        r"-l (?:vmem|pvmem|cput|pcput|file|nice)=.*|-k (?:n|[oe]+)|-u .+"
        r"|-W (?:umask=0[0-7]*|(?:group_list|stagein|stageout)=[^=]+)"
    )
    shell_option = "-S"
    array_id = "[]"
    yearless_dates = True
    default_logs = {"output": "%x.o{}", "error": "%x.e{}"}
    own_logs = r"(?i)[\w$*{}]*\.[oe](\*|\$\{?\w*(job|id)\w*\}?)"
    default_mail = "fail"
    starts_at_home = True
    not_at_home = (  # NCAR, also by the names of its projects
        r"/glade/|\bncarenv\b|@ucar\.edu\b|\bjob_priority=|(?m:^#PBS\s+-A\s+(?:[NSUW][A-Z]{3}\d{4}|P\d{8})\s*$)"
    )
    # Derecho, https://ncar-hpc-docs.readthedocs.io/en/latest/pbs/charging/, and the former Cheyenne;
    # Polaris, Aurora and Crux, https://docs.alcf.anl.gov/running-jobs/, where Sophia alone has queues of GPUs
    whole_nodes = {
        "NCAR": (not_at_home, r"(main|preempt|regular|economy|premium)(@\S*)?"),
        "ALCF": (r"\bfilesystems=|\bsystem=(polaris|aurora|crux|sunspot)\b", r"(?!by-gpu$|single-gpu$).*"),
    }
    job_variables = {
        "PBS_O_WORKDIR": "submit_dir", "PBS_O_HOST": "submit_host", "PBS_O_HOME": "home",
        "PBS_O_LOGNAME": "user", "PBS_JOBID": "job_id", "PBS_JOBNAME": "job_name", "PBS_QUEUE": "queue",
        "PBS_NODEFILE": "node_file",
    }  # fmt: skip
    constants = {"PBS_ENVIRONMENT": "PBS_BATCH"}
    variable_prefix = "PBS_"
    own_names = "PBS_?[A-Z]|(MOAB|TORQUE)_"
    unprefixed = {
        "TMPDIR": "makes this directory for the job, and removes it afterwards",
        "SCRATCHDIR": "sets it to a directory that it makes for scratch_local and the like",
        "CUDA_VISIBLE_DEVICES": "sets it at some sites only, to numbers or to UUIDs",
        "HOST": "starts a login shell, whose profile may set it to the name of the node",
    }
    at_some_sites = frozenset({"CUDA_VISIBLE_DEVICES"})
    counts = {
        **dict.fromkeys(("nodes", "chunks"), '$(sort -u "$PBS_NODEFILE" | wc -l)'),
        "slots": '$(wc -l < "$PBS_NODEFILE")',
        "node_list": "$(awk '!seen[$1]++' \"$PBS_NODEFILE\" | paste -sd, -)",
        "array_job": "${PBS_JOBID%%[!0-9]*}",
        "host": "$(hostname -s)",  # bash keeps a HOSTNAME of the submission or of the first node
    }
    counting = {
        "slots": [
            *("wc -l < $PBS_NODEFILE", "< $PBS_NODEFILE wc -l", "cat $PBS_NODEFILE | wc -l"),
            *(f"wc {lines} $PBS_NODEFILE | awk {{print $1}}" for lines in ("-l", "--lines")),
        ],
        "nodes": [
            f"{hosts} | wc -l"
            for file in ("$PBS_NODEFILE", "< $PBS_NODEFILE")
            for hosts in (f"sort -u {file}", f"uniq {file}", f"sort {file} | uniq")
        ]
        + [f"cat $PBS_NODEFILE | {each} | wc -l" for each in ("sort -u", "uniq", "sort | uniq")],
    }
    job_number = "${PBS_JOBID%%[!0-9]*}"
    show_job = ("qstat", "-f", '"$PBS_JOBID"')
    first_host = '$(head -n 1 "$PBS_NODEFILE")'
    hosts = "awk '!seen[$1]++' \"$PBS_NODEFILE\""
    commands = (
        *("qsub", "qdel", "qstat", "qalter", "qrerun", "qsig", "pbsdsh", "pbs_tmrsh", "pbsnodes", "qhold"),
        *("qrls", "qmove", "qmsg", "qselect", "qmgr", "tracejob", "pbs_rstat", "pbs_release_nodes"),
        *("qrun", "qorder", "qnodes", "qpeek", "pbs_rsub", "pbs_rdel", "pbs_attach"),
        *OF_MOAB,
    )
    site_launchers = ("aprun",)  # of Cray's ALPS
    site_commands = {
        "clean_scratch": "MetaCentrum",
        "pbsdcp": "the Ohio Supercomputer Center",
        **dict.fromkeys(("nscc-docker", "nvidia-docker-run"), "NSCC Singapore"),
    }

    def request(self, given: Mapping[str, str]) -> Request:
        request = super().request(given)
        request.join = given.get("-j", "n") in ("oe", "eo")
        events = given.get("-m", "")
        request.mail_of_tasks = self.task_mail in events
        request.mail = events.replace(self.task_mail or " ", "")
        request.rerun = {"y": True, "n": False}.get(given.get("-r", ""))
        request.place = request.totals.get("place")
        alone = request.totals.get("naccesspolicy", "").lower() == "singlejob"
        request.exclusive = alone or "excl" in (request.place or "") or "-n" in given
        return request

    def read_value(self, key: str, value: str) -> str:
        return pbs_directives.date(value) if key == "begin" else value

    def read_more(self, content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
        pbs_directives.read(self, content, given)

    def job_name(self, name: str) -> str:
        return re.sub(r"[^A-Za-z0-9._+-]", "_", name)
