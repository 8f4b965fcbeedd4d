"""Records what the commands of a real Slurm, OpenPBS and Torque print that is configured as each cluster of tests/departments.
Run it as root where they are installed, with the names of clusters or none; it takes some minutes. Read the difference.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

from support.cluster import SYSTEMS
from support.department_lab import USER, DepartmentLab, department_lab
from support.department_pbs import department_pbs
from support.departments import PBS, SLURM, TORQUE, Department
from support.pbs import OPENPBS, Kind, PbsCluster
from support.pbs import TORQUE as TORQUE_KIND

from jobgen.schedulers import pbs_cluster, slurm_cluster

SLURM_QUESTIONS = (*(slurm_cluster.CONFIG, slurm_cluster.NODES, slurm_cluster.PARTITIONS, slurm_cluster.QOS),)
PBS_QUESTIONS = (*pbs_cluster.PROBES.values(),)
_OF_TODAY = (
    *(
        r"(?<=Configuration data as of ).*",
        r"(?<=BOOT_TIME               = ).*",
        r"(?<= OS=)Linux .*(?= RealMemory=)",
    ),
    *(rf"(?<= {name}=)\S+" for name in ("CPULoad", "FreeMem", "BootTime", "SlurmdStartTime", "LastBusyTime")),
    r"(?<= \[root@)[\d:T-]+(?=\])",
)
_OF_THIS_MACHINE = (
    *(r"(?<=uname=)[^,]*", r"(?<=macaddr=)[^,]*", r"(?<=,sessions=)[\d ]*", r"(?<=mtime = )\d+"),
    *(r"(?<=last_state_change_time = ).*", r"(?<=rectime=)\d+", r"(?<=idletime=)\d+", r"(?<=netload=)\d+"),
    *(r"(?<=availmem=)\d+(?=kb)", r"(?<=loadave=)[\d.]+", r"(?<=net_counter = )[\d ]+"),
)


def block(words: Sequence[str], done: CompletedProcess[str]) -> str:
    """Return a command and its answer in the form of ``support.answers``."""
    lines = [f"$ {' '.join(words)}"]
    lines += [f"| {line}" for line in done.stdout.splitlines()]
    lines += [f"! {line}" for line in done.stderr.splitlines()]
    return "\n".join([*lines, f"= {done.returncode}", ""])


def record_slurm(lab: DepartmentLab, department: Department) -> None:
    lab.serve(department)
    questions = (*SLURM_QUESTIONS, slurm_cluster.of_user(USER, department.name))
    text = "\n".join(block(words, lab.call(*words, user=USER)) for words in questions)
    text = text.replace(str(lab.root / "state" / department.name), "/var/spool/slurm")
    text = re.sub("|".join(_OF_TODAY), "X", text)
    (department.folder / "answers.txt").write_text(text)


def record_pbs(kind: Kind, department: Department, root: Path) -> None:
    with department_pbs(root, PbsCluster(kind), department) as cluster:
        questions = [*PBS_QUESTIONS, *([pbs_cluster.VNODES] if department.vnodes else [])]
        text = "\n".join(block(words, cluster.exec("head", words, check=False)) for words in questions)
    text = re.sub("|".join(_OF_THIS_MACHINE), "X", text)
    (department.folder / "answers.txt").write_text(text)


def main(names: Sequence[str]) -> None:
    for version in SYSTEMS:
        chosen = [one for one in SLURM if one.slurm == version and (not names or one.name in names)]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            if chosen:
                with department_lab(Path(folder, "lab"), version) as lab:
                    for department in chosen:
                        record_slurm(lab, department)
    for kind, departments in ((OPENPBS, PBS), (TORQUE_KIND, TORQUE)):
        for department in departments:
            if not names or department.name in names:
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    record_pbs(kind, department, Path(folder, "machine"))


if __name__ == "__main__":
    main(sys.argv[1:])
