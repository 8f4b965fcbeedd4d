"""Scripts of Slurm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.schedulers.base import EVENTS, matches
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.request import DirectiveOption, Request
from jobgen.schedulers.slurm import SLURM
from jobgen.schedulers.slurm_options import OF_STEPS, SPANS
from jobgen.script.dialects import slurm_directives, slurm_values
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.pbs import TORQUE_VARIABLES
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.dialects.value_forms import Conflict
from jobgen.values import parsers

# The output environment variables in sbatch(1) and srun(1).
_ENVIRONMENT = """
ARRAY_JOB_ID ARRAY_TASK_COUNT ARRAY_TASK_ID ARRAY_TASK_MAX ARRAY_TASK_MIN ARRAY_TASK_STEP CLUSTER_NAME CONF
CONTAINER CONTAINER_ID CPUS_ON_NODE CPUS_PER_GPU CPUS_PER_TASK CPU_BIND CPU_BIND_LIST CPU_BIND_TYPE
CPU_BIND_VERBOSE CPU_FREQ_REQ DIST_PLANESIZE DISTRIBUTION EXPORT_ENV GET_USER_ENV GPUS GPUS_ON_NODE
GPUS_PER_NODE GPUS_PER_SOCKET GPUS_PER_TASK GPU_BIND GPU_FREQ GTIDS HET_SIZE HINT JOBID JOB_ACCOUNT
JOB_COMMENT JOB_CONSTRAINTS JOB_CPUS_PER_NODE JOB_DEPENDENCY JOB_END_TIME JOB_EXTRA JOB_GID JOB_GPUS
JOB_GROUP JOB_ID JOB_LICENSES JOB_NAME JOB_NODELIST JOB_NUM_NODES JOB_PARTITION JOB_QOS JOB_RESERVATION
JOB_RESTART_COUNT JOB_START_TIME JOB_SEGMENT_SIZE JOB_UID JOB_USER KILL_BAD_EXIT LAUNCH_NODE_IPADDR LOCALID
MEM_BIND MEM_BIND_LIST MEM_BIND_PREFER MEM_BIND_SORT MEM_BIND_TYPE MEM_BIND_VERBOSE MEM_PER_CPU MEM_PER_GPU
MEM_PER_NODE MPI_TYPE NETWORK NNODES NODEID NODELIST NODE_ALIASES NPROCS NTASKS NTASKS_PER_CORE
NTASKS_PER_GPU NTASKS_PER_NODE NTASKS_PER_SOCKET OVERCOMMIT OVERSUBSCRIBE PRIO_PROCESS PROCID PROFILE
RESTART_COUNT RLIMIT_AS SCRIPT_CONTEXT SHARDS_ON_NODE SPANK_JOB SRUN_COMM_HOST SRUN_COMM_PORT STEPID
STEP_GPUS STEP_ID STEP_LAUNCHER_PORT STEP_NODELIST STEP_NUM_NODES STEP_NUM_TASKS STEP_TASKS_PER_NODE
SUBMIT_DIR SUBMIT_HOST TASKS_PER_NODE TASK_PID THREADS_PER_CORE TOPOLOGY_ADDR TOPOLOGY_ADDR_PATTERN TMPDIR
TRES_PER_TASK UMASK USER_ID WCKEY WORKING_CLUSTER
"""


_OF_SUBMISSION = '-v n="${SLURM_NTASKS_PER_NODE:-1}" '
# Each node as often as it has tasks, of which there are 4(x2),1 on the nodes.
_BY_TASKS = (
    """ | awk -v t="$SLURM_TASKS_PER_NODE" 'BEGIN { k = split(t, a, ","); for (i = 1; i <= k; i++) """
    "{ m = split(a[i], b, /[(x)]+/); for (j = 0; j < (m > 1 ? b[2] : 1); j++) c[++n] = b[1] } } "
    "{ for (i = 0; i < c[NR]; i++) print }'"
)


class SlurmDialect(Dialect):
    scheduler = SLURM
    not_in_scripts = {
        "--open-mode": "leave --open-mode out, jobs of jobgen append to their log",
        "--error": "leave --error out, jobs of jobgen have one log file, which --log names",
        "--parsable": "", "--quiet": "", "--verbose": "",
    }  # fmt: skip
    submit_options = {"--wait": "--wait", "--test-only": "--dry-run"}
    wait_directive = "--wait"
    program_option = "--wrap"
    own_values = {
        "--nodes": ((r"\d+-\d+(?::\d+)?", r"--directive=--nodes=\g<0>"),),
        "--signal": ((r"[BR]{1,2}:((?:SIG)?USR[12]\S*)", r"--signal \1"),),
        "--exclude": ((r"[\w.,\[\]-]+", r"--directive=--exclude=\g<0>"),),
        "--mem": ((r"[1-9]\d*", r"--mem \g<0>M"), (r"0+", "--directive=--mem=0")),
        "--priority": ((r"TOP|\d+", r"--directive=--priority=\g<0>"),),
    }
    per_device = {"--ntasks-per-gpu": "ranks_per_node", "--cpus-per-gpu": "cpus_per_rank"}
    no_counterpart = {
        "--ntasks": "unequal numbers of ranks on nodes have no counterpart: --ranks-per-node is that of each"
    }
    of_cores = ("--mem-per-cpu",)
    names_option = "--export"
    size_options = (*SLURM.keys.memory, "--tmp")
    component_words = frozenset({"hetjob", "packjob"})
    step_options = OF_STEPS
    synonyms = {
        "memory": "mem", "memory-per-cpu": "mem-per-cpu", "memory-per-node": "mem", "cpus": "cpus-per-task",
        "walltime": "time", "queue": "partition", "stdout": "output", "stderr": "error", "project": "account",
        "email": "mail-user", "cores-per-task": "cpus-per-task",
        "share": "oversubscribe", "shared": "oversubscribe",
    }  # fmt: skip
    option_versions = SPANS
    time_pattern = r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}"
    time_forms = "minutes, M:S, H:M:S, D-H, D-H:M and D-H:M:S"
    unlimited = frozenset({"infinite", "unlimited"})
    bare_size = (r"[1-9]\d?|1\d\d", "megabyte", "G")
    size_pattern = r"\s*\+?\d+(?:[kmgt]b?)?"
    size_units = "K, M, G and T"
    size_example = "write 64G instead of 64GiB, and 1536M instead of 1.5G"
    array_forms = "a list of numbers and FIRST-LAST:STEP, then %LIMIT"
    directory_options = ("--chdir", "--workdir")
    log_options = ("--output", "--error", "--input")
    log_words = "%j and %x"
    percent_codes = True
    batch_codes = {"n": "0", "t": "0", "s": "batch"}
    foreign_options = {"-l": ("PBS", ""), "-j": ("PBS", "remove it: one file has both outputs")}
    also_reads = {  # src/sbatch/xlate.c
        "#BSUB": (r"[ceJmMnoqWx]", "(?!)"),
        "#PBS": (r"[aAehJlmMNopqtv]|W\s*(umask|depend)=", "[cCIjkrSuVWz]"),
    }
    ignores_others = "--ignore-pbs"
    environment = frozenset(map("SLURM_{}".format, _ENVIRONMENT.split()))
    foreign_variables = {
        "PBS_O_WORKDIR": "SLURM_SUBMIT_DIR",
        "PBS_JOBID": "SLURM_JOB_ID",
        "PBS_NODEFILE": "scontrol show hostnames",
        **TORQUE_VARIABLES,
        "PBS_ARRAYID": "SLURM_ARRAY_TASK_ID",
        "PBS_ARRAY_INDEX": "SLURM_ARRAY_TASK_ID",
    }
    default_nodes = 1
    sizes_of_one = {
        "--nodes": ("", "--ntasks", "--gpus"),
        "--ntasks": ("SLURM_NTASKS", "--nodes", "--ntasks-per-node", "--gpus"),
        "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE", "--ntasks", "--gpus"),
        "--cpus-per-task": ("SLURM_CPUS_PER_TASK", "--cpus-per-gpu"),
    }
    hides_devices = True
    needs_shebang = True
    script_copy = ("slurmd/jobID/slurm_script", r"\bslurmd\b|\bslurm_script\b")
    # JUWELS, JURECA and JUSUF; Frontera, Lonestar and Stampede; Piz Daint and Alps; Frontier
    whole_nodes = {
        "JSC": (
            r"(?i)/p/(project\d?|scratch|home|data\d?|largedata\d?|software)/|\bjutil\b|\bju(wels|reca|suf|piter)",
            r"(devel|large)?booster|(devel)?gpus|dc-(gpu|cpu|hwai)(-\w+)?|batch|devel|all",
        ),
        "TACC": (r"\bibrun\b|\bTACC_|/(work\d?|scratch|home1)/\d{5}/", r"(?!.*small).+"),
        "CSCS": (r"/scratch/snx|\bdaint|/capstor/|/iopsstor/", r"(normal|debug|low|long|large)?"),
        "OLCF": (r"/lustre/orion/|/ccs/(home|proj)/|\bolcf", r"batch|extended"),
    }

    # Conversion
    size_keys = {
        "cpus": ("--cpus-per-task", "--cpus-per-gpu"), "ranks": ("--ntasks", "--ntasks-per-node"),
        "gpus": ("--gpus-per-node", "--gres", "--gpus", "--gpus-per-task"),
    }  # fmt: skip
    feature_separator = "&"
    mail_joint = ","
    task_mail = "ARRAY_TASKS"
    first_host = "$(scontrol show hostnames | awk 'NR == 1')"
    own_log_names = ("slurm-%j.out", "slurm-%A_%a.out")
    early_log = "slurm-%j.out"
    own_logs = (
        r"\bslurm-(?![A-Za-z])[\w*?%${}]*\.?out\b|(?<![\w.$*{}-])slur(m(-\d*)?)?\*(\.?out\b|(?![\w.*]))"
    )
    no_index = "4294967294"  # NO_VAL of slurm.h
    job_variables = {
        "SLURM_SUBMIT_DIR": "submit_dir", "SLURM_SUBMIT_HOST": "submit_host", "SLURM_JOB_ID": "job_id",
        "SLURM_JOBID": "job_id", "SLURM_JOB_NAME": "job_name", "SLURM_JOB_PARTITION": "queue",
        "SLURM_ARRAY_TASK_ID": "array_index", "SLURM_ARRAY_JOB_ID": "array_job",
        "SLURM_ARRAY_TASK_COUNT": "array_count", "SLURM_ARRAY_TASK_MIN": "array_first",
        "SLURM_ARRAY_TASK_MAX": "array_last", "SLURM_ARRAY_TASK_STEP": "array_step",
        "SLURM_JOB_NODELIST": "node_list",
        "SLURM_NODELIST": "node_list", "SLURM_JOB_NUM_NODES": "nodes", "SLURM_NNODES": "nodes",
        "SLURM_NTASKS": "ranks", "SLURM_NPROCS": "ranks", "SLURM_NTASKS_PER_NODE": "ranks_per_node",
        "SLURM_CPUS_PER_TASK": "cpus_per_rank", "SLURM_CPUS_ON_NODE": "cpus_per_node",
        "SLURM_JOB_CPUS_PER_NODE": "cpus_of_nodes", "SLURM_TASKS_PER_NODE": "ranks_of_nodes",
        "SLURM_MEM_PER_NODE": "mem_per_node", "SLURM_MEM_PER_CPU": "mem_per_cpu",
        "SLURM_JOB_ACCOUNT": "account",
        "SLURM_JOB_USER": "user", "SLURMD_NODENAME": "host",
        "SLURM_GPUS_ON_NODE": "gpus_per_node", "SLURM_GPUS_PER_NODE": "gpus_per_node",
        "SLURM_GPUS": "gpus", "SLURM_JOB_NUM_GPUS": "gpus", "SLURM_CPUS_PER_GPU": "cpus_per_gpu",
    }  # fmt: skip
    counting = {
        "nodes": [
            f"scontrol show {hosts}{names} | wc -l"
            for hosts in ("hostname", "hostnames")
            for names in ("", " $SLURM_JOB_NODELIST", " $SLURM_NODELIST")
        ]
    }
    substitutes = {
        **Dialect.substitutes, "array_id": "SLURM_ARRAY_JOB_ID", "slots": "SLURM_NTASKS",
        "slots_per_node": "SLURM_NTASKS_PER_NODE", "chunks": "SLURM_JOB_NUM_NODES",
        "cpus_per_chunk": "SLURM_CPUS_ON_NODE",
    }  # fmt: skip
    variable_prefix = "SLURM_"
    own_names = "SLURM[A-Z]?_?[A-Z]"
    names_of_devices = (
        *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"),
    )
    unprefixed = {
        **dict.fromkeys(names_of_devices, "sets it to the numbers of the job's devices"),
        "TMPDIR": "sets it to /tmp if the submission does not",  # _make_tmpdir of slurmd/slurmstepd/task.c
        "HOST": "passes on that of the submission",
        # IDRIS, CSC, NAISS, Virginia Tech, NeSI, CESGA, Pau
        **dict.fromkeys(
            (
                *("JOBSCRATCH", "LOCAL_SCRATCH", "SNIC_TMP", "TMPFS", "SCRATCH_DIR", "LUSTRE_SCRATCH"),
                "SCRATCHDIR",
            ),
            "sets it at some sites to a directory of the job",
        ),
    }
    at_some_sites = frozenset({"SCRATCHDIR"})  # PBS has it, too
    gpus_of_rank = ("--gpus-per-task", "--ntasks-per-gpu")
    of_no_job = frozenset({"--parsable", "--quiet", "--verbose", "--ignore-pbs", "--wait-all-nodes=1"})
    set_by_options = {  # seen with Slurm 22.05
        **dict.fromkeys(
            ("SLURM_NTASKS", "SLURM_NPROCS"),
            ("--ntasks", "--ntasks-per-node", "--ntasks-per-gpu", "--gpus-per-task"),
        ),
        "SLURM_NTASKS_PER_NODE": ("--ntasks-per-node",), "SLURM_CPUS_PER_TASK": ("--cpus-per-task",),
        "SLURM_GPUS": ("--gpus",), "SLURM_GPUS_PER_NODE": ("--gpus-per-node",),
        "SLURM_CPUS_PER_GPU": ("--cpus-per-gpu",),
    }  # fmt: skip
    zeros = frozenset({"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"})
    show_job = ("scontrol", "show", "job", '"$SLURM_JOB_ID"')
    host_list = ("scontrol", "show", "hostnames")
    node_file_commands = ("generate_pbs_nodefile", "generate_pbs_nodefile.pl")
    commands = (
        *("scontrol", "sbatch", "scancel", "squeue", "sacct", "sinfo", "sbcast", "sstat", "salloc", "seff"),
        *("sattach", "sprio", "sshare", "sreport", "sacctmgr", "strigger", "scrontab", "sgather"),
        *("sdiag", "sview", "smap", "sjstat", "scrun"),
        *node_file_commands,
    )
    site_commands = {
        "jutil": "JSC",
        "socker": "the University of Oslo",
        **dict.fromkeys(("savefile", "chkfile"), "Sigma2"),
        "my-job-stats": "the University of Melbourne",
    }

    def devices_option(self, number: int, kind: str, accelerator: str) -> str:
        return f"--gres={':'.join(filter(None, (accelerator, kind, str(number))))}"

    def request(self, given: Mapping[str, str]) -> Request:
        request = super().request(given)
        request.join = request.error in (None, request.output)
        request.mail = _mail(given.get("--mail-type", ""))
        # A number alone is of this kind, which is the default one.
        request.depend = tuple(f"afterany:{one}" if one.isdecimal() else one for one in request.depend)
        request.mail_of_tasks = self.task_mail in given.get("--mail-type", "").upper().split(self.mail_joint)
        # With =user and similar values, other jobs may share the node.
        request.exclusive = given.get(self.scheduler.forms["exclusive"]) == ""
        request.rerun = True if "--requeue" in given else False if "--no-requeue" in given else None
        return request

    def read_value(self, key: str, value: str) -> str:
        return slurm_directives.value(key, value)

    def read_more(self, content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
        slurm_directives.read(self, content, given)

    def write_node_file(self, variable: str, *slots: int | None) -> list[str]:
        of_component = "_HET_GROUP_{}" if slots[1:] else ""
        parts = [
            f'scontrol show hostnames "$SLURM_JOB_NODELIST{of_component.format(at)}"'
            + (
                _BY_TASKS
                if each is None
                else f" | awk {_OF_SUBMISSION * (each == 0)}'{{ for (i = 0; i < {each or 'n'}; i++) print }}'"
            )
            * (each != 1)
            for at, each in enumerate(slots)
        ]
        lists = ["{", *(f"  {one}" for one in parts), "}"] if slots[1:] else parts
        return [
            f"{variable}=$(mktemp)",
            f"trap 'rm -f \"${variable}\"' EXIT",
            *lists[:-1],
            f'{lists[-1]} > "${variable}"',
            f"export {variable}",
        ]

    def seconds(self, text: str) -> int | None:
        """Return a time limit; with days, hours come first, and a number alone is minutes."""
        return super().seconds(text) and parsers.seconds(slurm_values.whole_time(text))

    def accepts_time(self, text: str) -> bool:
        # One dash is accepted before or after the minutes.
        return super().accepts_time(text) or matches(r"-\d+|\d+-", text)

    def accepts_array(self, text: str) -> bool:
        return slurm_values.is_array(text)

    def value_fault(self, key: str, value: str, version: str | None = None) -> str:
        return slurm_values.value_fault(key, value, version)

    def conflicts(self, given: Mapping[str, str], *, in_array: bool) -> Iterator[Conflict]:
        return slurm_values.conflicts(given)


def _mail(types: str) -> str:
    """Return Slurm's mail events as the letters of PBS."""
    letters = {"ALL": "abe", **{EVENTS[event]: letter for event, letter in EVENT_LETTERS.items()}}
    found = {letter for name in types.upper().split(",") for letter in letters.get(name.strip(), "")}
    return "n" if "n" in found else "".join(sorted(found))  # NONE ends the list (proc_args.c)


SLURM_DIALECT = SlurmDialect()
