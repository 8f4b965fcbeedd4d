"""The options of sbatch and qsub that people type for jobgen: the scheduler reads the form and the script of the answer alike.

The forms are in tests/commands/foreign_forms.txt. Both are submitted as held jobs. What a form leaves to the scheduler, as a job
without directives shows, jobgen may choose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from support import foreign_forms
from support.cluster import Cluster
from support.foreign_forms import Followed, Form
from support.pbs import PbsCluster

from jobgen.values import parsers

PLAIN = "#!/bin/bash\ntrue\n"
SLURM_FIELDS = (
    *("NumNodes", "NumTasks", "Cores", "TimeLimit", "TimeMin", "Partition", "QOS", "Account", "Features"),
    *("Licenses", "ReqNodeList", "ExcNodeList", "Dependency", "OverSubscribe", "Contiguous", "Comment"),
    *("MinTmpDiskNode", "JobName", "Devices", "Memory", "Reservation"),
)
# What Slurm derives from other options is compared only if the form has one of these.
NAMED_BY = {
    "NumNodes": r"-N|--nodes",
    "NumTasks": r"(?<![\w-])-n|tasks",
    "Cores": r"(?<![\w-])-c|--cpus-per-task",  # of a node: the ranks of several devices share those of a task
    "TimeMin": "--time-min",
    "JobName": r"-J|--job-name=",
    "Job_Name": "-N",
    "Resource_List.nodect": "nodes|select",
    "Resource_List.ncpus": "ncpus",
}
PBS_FIELDS = (
    *("Job_Name", "queue", "Account_Name", "project", "Priority", "Rerunable", "Mail_Users", "depend"),
    *("array_indices_submitted", "Resource_List.walltime", "Resource_List.nodect", "Resource_List.ncpus"),
    *("Resource_List.mpiprocs", "Resource_List.ngpus", "Resource_List.mem", "Resource_List.cput"),
)
# "job-1.sh JOBID" for each script that the scheduler takes.
_SUBMIT = 'for file in job-*.sh; do echo "$file $(timeout 5 "$@" "$file" 2>&1 < /dev/null | tail -1)"; done'


def pairs(section: str) -> Iterator[tuple[Form, Followed]]:
    for form in foreign_forms.forms():
        if form.section == section and form.request is not None:
            # Not all nodes of the test clusters of PBS have devices, which jobgen requests for each rank.
            cpu = ("--accelerator", "cpu") if form.section != "sbatch" and "gpu" not in form.text else ()
            yield form, foreign_forms.follow(form, *cpu)


def ids(cluster: Cluster | PbsCluster, scripts: list[str], *submit: str) -> dict[int, str]:
    """Submit the scripts; return the jobs by the numbers of their scripts."""
    folder = cluster.folder("forms")
    for number, script in enumerate(scripts):
        (folder / f"job-{number}.sh").write_text(script)
    said = cluster.exec("head", ["bash", "-c", _SUBMIT, "submit", *submit], cwd=folder, timeout=500).stdout
    return {
        int(number): job
        for number, job in re.findall(r"^job-(\d+)\.sh (\d+(?:\[\])?[.\w]*)$", said, re.MULTILINE)
    }


def mebibytes(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(\w?)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"": 1, "M": 1, "G": 1024, "T": 1024**2}[unit]


def slurm_job(line: str, form: str = "") -> dict[str, str]:
    """The fields of a job; with its devices in all, and its memory of a node in MiB."""
    fields = dict(re.findall(r"(\S+?)=(\S*)", line))
    fields["JobName"] = re.sub(r"^job-\d+\.sh$", "", fields["JobName"])  # that of the file
    nodes, tasks, cores = (
        int(re.findall(r"\d+", fields[key])[0]) for key in ("NumNodes", "NumTasks", "NumCPUs")
    )
    nodes = (
        nodes if re.search(NAMED_BY["NumNodes"], form) else 1
    )  # else it is an estimate while the job waits
    of = {"TresPerNode": nodes, "TresPerTask": tasks, "TresPerJob": 1}
    devices = sum(
        int(count or 1) * times
        for key, times in of.items()
        for count in re.findall(_DEVICES, fields.get(key, ""))
    )
    memory = mebibytes(fields.get("MinMemoryNode", "0"))
    if "MinMemoryCPU" in fields:
        memory = mebibytes(fields["MinMemoryCPU"]) * cores / nodes
    if "MemPerTres" in fields:
        memory = int(fields["MemPerTres"].rpartition(":")[2]) * devices / nodes
    return {**fields, "Cores": f"{cores / nodes:g}", "Devices": str(devices), "Memory": f"{memory:g}"}


_DEVICES = r"gres[:/](?:gpu|npu)(?:[:=]\w*[a-z]\w*)?(?:[:=](\d+))?"


def differences(
    form: Form,
    plain: Mapping[str, str],
    theirs: Mapping[str, str],
    ours: Mapping[str, str],
    keys: tuple[str, ...],
) -> list[str]:
    """The fields that the form sets and in which the job of the answer differs."""
    different = [
        key
        for key in keys
        if theirs.get(key) not in (plain.get(key), ours.get(key))
        and re.search(NAMED_BY.get(key, ""), form.text)
    ]
    return [f"{form}: {key} {theirs.get(key)} is {ours.get(key)}" for key in different]


def test_sbatch_reads_both_alike(slurm_cluster: Cluster) -> None:
    both = list(pairs("sbatch"))
    scripts = [
        PLAIN,
        *(one for form, followed in both for one in (foreign_forms.directive(form), followed.script)),
    ]
    jobs = ids(slurm_cluster, scripts, "sbatch", "--hold", "--parsable")
    shown = slurm_cluster.exec("head", ["scontrol", "show", "job", "--oneliner"]).stdout
    slurm_cluster.exec("head", ["scancel", *jobs.values()])
    lines = {line.split()[0].partition("=")[2]: line for line in shown.splitlines()}
    plain, wrong, compared = slurm_job(lines[jobs[0]]), list[str](), 0
    for at, (form, _) in enumerate(both):
        theirs, ours = jobs.get(2 * at + 1), jobs.get(2 * at + 2)
        if theirs is None:  # a form that sbatch refuses, or a name that this cluster has not
            continue
        compared += 1
        if ours is None:
            wrong.append(f"{form}: the script is refused")
            continue
        read = (slurm_job(lines[one], form.text + " -N" * (one == ours)) for one in (theirs, ours))
        wrong += differences(form, plain, *read, SLURM_FIELDS)
    assert wrong == [], "\n".join(wrong)
    assert compared > 100


def pbs_jobs(text: str) -> dict[str, dict[str, str]]:
    """The attributes of the jobs in the output of qstat -f, by their ids; with the memory in all in MiB."""
    text = re.sub(
        r"(?m)(?<=mem = )\w+$", lambda size: str(parsers.mebibytes(size[0], "b")), text.replace("\n\t", "")
    )
    found = {}
    for one in text.split("Job Id: ")[1:]:
        job = dict(re.findall(r"(?m)^    (\S+) = (.*)$", one))
        processes = re.match(r"(\d+):ppn=(\d+)", job.get("Resource_List.nodes", ""))
        if processes and "Resource_List.pmem" in job:
            memory = int(job["Resource_List.pmem"]) * int(processes[1]) * int(processes[2])
            job.setdefault("Resource_List.mem", str(memory))
        found[one.partition("\n")[0].strip()] = job
    return found


def compare_on_pbs(cluster: PbsCluster, section: str, least: int) -> None:
    both = list(pairs(section))
    scripts = [
        PLAIN,
        *(one for form, followed in both for one in (foreign_forms.directive(form), followed.script)),
    ]
    jobs = ids(cluster, scripts, "qsub", "-h")
    shown = cluster.exec("head", ["qstat", "-f", *jobs.values()], check=False, timeout=200).stdout
    waiting = list(jobs.values())
    while waiting:  # a few at a time: each command has a reserved port for a job
        cluster.purge(*waiting[:40], check=False)
        waiting = waiting[40:]
    attributes = pbs_jobs(shown)
    plain, wrong, compared = attributes[jobs[0]], list[str](), 0
    for at, (form, _) in enumerate(both):
        theirs, ours = (attributes.get(jobs.get(2 * at + 1 + one, "")) for one in (0, 1))
        if theirs is None:  # a form that qsub refuses, or waits for, or a name that this cluster has not
            continue
        compared += 1
        if ours is None:
            wrong.append(f"{form}: the script is refused")
        else:
            wrong += differences(form, plain, theirs, ours, PBS_FIELDS)
    assert wrong == [], "\n".join(wrong)
    assert compared > least


def test_qsub_of_pbs_pro_reads_both_alike(openpbs_cluster: PbsCluster) -> None:
    compare_on_pbs(openpbs_cluster, "qsub of PBS Pro", 40)


def test_qsub_of_torque_reads_both_alike(torque_cluster: PbsCluster) -> None:
    compare_on_pbs(torque_cluster, "qsub of Torque", 15)
