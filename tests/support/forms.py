"""Forms of directives, as tests/cluster/forms/ lists them: what a scheduler and jobgen check say of each."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from jobgen.check.checker import check
from jobgen.script.dialects.table import of_script
from support import ROOT
from support.cluster import Cluster
from support.pbs import PbsCluster

FORMS = ROOT / "tests/cluster/forms"
SLURM_VERSIONS = ("22.05", "24.11")
"""Those that the signs in slurm.txt are of. A row is a scheduler, or Slurm with its version: slurm-24.11."""
ROWS = (*(f"slurm-{version}" for version in SLURM_VERSIONS), "pbspro", "torque")
# A job of -W block=true makes qsub wait for it, although its id is printed.
_LOOP = """
for file in form-*.sh; do
  said=$(timeout 3 "$@" "$file" 2>&1 < /dev/null); status=$?
  printf '%s %s %s\\n' "${file//[!0-9]/}" "$status" "${said//[$'\\n\\r']/ }"
done
"""


def recorded(row: str) -> dict[str, bool]:
    """The forms of a scheduler, and whether it accepts them."""
    name, version = scheduler(row)
    sign = SLURM_VERSIONS.index(version) if version else 0
    lines = re.findall(r"(?m)^([+-]+) (.*)$", (FORMS / f"{name}.txt").read_text(encoding="utf-8"))
    return {form: signs[sign] == "+" for signs, form in lines}


def scheduler(row: str) -> tuple[str, str | None]:
    """The name and the version, where check knows versions."""
    name, _, version = row.partition("-")
    return name, version or None


def asked(row: str) -> list[str]:
    """The forms that a scheduler is asked in a test: a third, and the disagreements; all with ALL_FORMS=1."""
    everything, known = "ALL_FORMS" in os.environ, known_disagreements(row)
    forms = enumerate(recorded(row))
    return [form for number, form in forms if everything or number % 3 == 0 or form in known]


def known_disagreements(row: str) -> set[str]:
    """Those of the scheduler, and of its version alone."""
    table: dict[str, Any] = msgspec.toml.decode((FORMS / "disagreements.toml").read_text(encoding="utf-8"))
    return {
        form for key in (scheduler(row)[0], row) for entry in table.get(key, ()) for form in entry["forms"]
    }


def script(row: str, form: str, job: str) -> bytes:
    directive = form.replace("{job}", job)
    return f"#!/bin/bash\n{of_script(scheduler(row)[0]).scheduler.prefix} {directive}\ntrue\n".encode()


def disagreements(row: str, accepted: Mapping[str, bool]) -> set[str]:
    """The forms of which check and the scheduler disagree: an error is what the scheduler refuses."""
    return {form for form, fine in accepted.items() if bool(errors(row, form)) == fine}


def errors(row: str, form: str) -> list[str]:
    name, version = scheduler(row)
    found = check(script(row, form, "1234"), scheduler=name, version=version)
    return [one.reason for one in found if one.severity == "error"]


def ask(cluster: Cluster | PbsCluster, row: str, command: Sequence[str]) -> tuple[dict[str, bool], list[str]]:
    """Give the forms to the command of a scheduler; the answer also has the ids of the jobs that this made."""
    folder = cluster.folder("forms")
    (folder / "held.sh").write_text("#!/bin/bash\ntrue\n")
    job = cluster.submit(folder / "held.sh", folder, "-h" if isinstance(cluster, PbsCluster) else "--hold")
    forms = asked(row)
    for number, form in enumerate(forms):
        (folder / f"form-{number:04}.sh").write_bytes(script(row, form, job))
    said = cluster.exec("head", ["bash", "-c", _LOOP, "ask", *command], cwd=folder, timeout=400).stdout
    answers = re.findall(r"^(\d+) (\d+) (\d+(?:\[\])?\.\w+)?", said, re.MULTILINE)
    accepted = {forms[int(number)]: status == "0" or bool(made) for number, status, made in answers}
    return accepted, [job, *(made for _, _, made in answers if made)]
