"""The jobs that a job waits for: ``--after``, and the notation of each scheduler."""

from __future__ import annotations

import re

from jobgen.spec import JobSpec

_KINDS = ("after", "afterany", "afterok", "afternotok", "aftercorr")
_ID = r"\d{1,10}(?:_\d{1,7}|(?:\[\d{0,7}\])?(?:\.[A-Za-z0-9][A-Za-z0-9.-]{0,253})?)"
# https://docs.adaptivecomputing.com/torque/4-2-10/Content/topics/commands/qsub.htm
TORQUES_ARRAYS = {
    "after": "afterstartarray", "afterany": "afteranyarray", "afterok": "afterokarray",
    "afternotok": "afternotokarray",
}  # fmt: skip


def dependency(text: str) -> tuple[str, str]:
    """Parse ``ID`` or ``KIND:ID`` as a pair of kind and id; the default kind is afterok."""
    kind, _, job = text.rpartition(":")
    if kind not in ("", *_KINDS) or not re.fullmatch(_ID, job, re.ASCII):
        raise ValueError(
            f"must be the id of a job, or afterany:ID, afterok:ID or the like ({', '.join(_KINDS)}); "
            "repeat the option for more"
        )
    return kind or "afterok", job


def dependencies(spec: JobSpec, row: str) -> str | None:
    """Return all dependencies as one directive, grouped by kind; None if there are none.

    Raises:
        JobgenError: an id or a kind belongs to another scheduler.
    """
    kinds: dict[str, list[str]] = {}
    for kind, job in spec.after:
        if why := _misplaced(kind, job, row):
            raise spec.refuse("after", why)
        if row == "torque" and "[]" in job:
            kind = TORQUES_ARRAYS[kind]
        kinds.setdefault(kind, []).append(job)
    text = ",".join(f"{kind}:{':'.join(jobs)}" for kind, jobs in kinds.items())
    return ("--dependency=" if row == "slurm" else "-W depend=") + text if text else None


def _misplaced(kind: str, job: str, row: str) -> str | None:
    if row == "slurm":
        return None if re.fullmatch(r"\d+(_\d+)?", job) else f"{job} is no id of Slurm, which are 12 or 12_3"
    if kind == "aftercorr":
        return "only Slurm knows aftercorr, task by task; use afterok"
    if "_" in job:
        return f"{job} is no id of PBS, which are 12.server or 12[].server"
    if row == "pbspro" and re.search(r"\[\d", job):
        whole = re.sub(r"\d+]", "]", job)
        return f"PBS Pro waits for no single task: use {whole}, the whole array"
    return None
