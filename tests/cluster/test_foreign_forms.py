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

PLAIN = "#!/bin/bash\ntrue\n"
SLURM_FIELDS = (
    *("NumNodes", "NumTasks", "CPUs/Task", "TimeLimit", "TimeMin", "Partition", "QOS", "Account", "Features"),
    *("Licenses", "ReqNodeList", "ExcNodeList", "Dependency", "OverSubscribe", "Contiguous", "Comment"),
    *("MinTmpDiskNode", "JobName", "Devices", "Memory", "MemPerTres", "Reservation"),
)
PBS_FIELDS = (
    *(
        "Job_Name",
        "queue",
        "Account_Name",
        "project",
        "Priority",
        "Rerunable",
        "array_indices_submitted",
        "Mail_Users",
    ),
    *(
        "Resource_List.walltime",
        "Resource_List.select",
        "Resource_List.nodes",
        "Resource_List.mem",
        "Resource_List.cput",
    ),
)
# "job-1.sh JOBID" for each script that the scheduler takes.
_SUBMIT = 'for file in job-*.sh; do echo "$file $(timeout 5 "$@" "$file" 2>&1 < /dev/null | tail -1)"; done'


def pairs(section: str) -> Iterator[tuple[Form, Followed]]:
    for form in foreign_forms.forms():
        if form.section == section and form.request is not None:
            yield form, foreign_forms.follow(form)


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


def slurm_job(line: str) -> dict[str, str]:
    """The fields of a job; with its devices in all, and its memory of a node."""
    fields = dict(re.findall(r"(\S+?)=(\S*)", line))
    numbers = {
        key: int(re.match(r"\d+", fields.get(key, "1"))[0]) for key in ("NumNodes", "NumTasks", "NumCPUs")
    }  # type: ignore[index]
    of = {"TresPerNode": numbers["NumNodes"], "TresPerTask": numbers["NumTasks"], "TresPerJob": 1}
    counts = [
        int(count or 1) * times
        for key, times in of.items()
        for count in re.findall(r"gres[:/](?:gpu|npu)(?:[:=]\w*[a-z]\w*)?(?:[:=](\d+))?", fields.get(key, ""))
    ]
    fields["Devices"] = str(sum(counts))
    each = numbers["NumCPUs"] / numbers["NumNodes"]
    fields["Memory"] = (
        f"{mebibytes(fields['MinMemoryCPU']) * each:g}"
        if "MinMemoryCPU" in fields
        else f"{mebibytes(fields['MinMemoryNode']):g}"
    )
    return fields


def differences(
    form: Form,
    plain: Mapping[str, str],
    theirs: Mapping[str, str],
    ours: Mapping[str, str],
    keys: tuple[str, ...],
) -> list[str]:
    """The fields that the form sets and in which the job of the answer differs."""
    different = [key for key in keys if theirs.get(key) not in (plain.get(key), ours.get(key))]
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
    fields = {line.split()[0].partition("=")[2]: slurm_job(line) for line in shown.splitlines()}
    plain, wrong, compared = fields[jobs[0]], list[str](), 0
    for at, (form, _) in enumerate(both):
        theirs, ours = jobs.get(2 * at + 1), jobs.get(2 * at + 2)
        if theirs is None:  # a form that sbatch refuses, or a name that this cluster has not
            continue
        compared += 1
        wrong += (
            differences(form, plain, fields[theirs], fields[ours], SLURM_FIELDS)
            if ours
            else [f"{form}: is refused"]
        )
    assert wrong == []
    assert compared > 100
