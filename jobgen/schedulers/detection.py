"""Detection of the scheduler of this machine, by the commands on PATH."""


def detect() -> tuple[str, str]:
    """Return the scheduler of this machine and the reason. Slurm first: it often has its own qsub."""
    from shutil import which

    if which("sbatch"):
        return "slurm", ", because sbatch is on PATH"
    if (qsub := which("qsub")) is None:
        return "local", ", because neither sbatch nor qsub is on PATH"
    version = _version(qsub)
    if "pbs_version" in version.lower():
        return "pbspro", ", because qsub says pbs_version"
    if version.lower().lstrip().startswith("version:") or "torque" in version.lower():
        return "torque", ", because qsub has Torque's version"
    return "pbspro", ", but qsub --version does not print it: it may be Torque"


def _version(qsub: str) -> str:
    from jobgen.schedulers.calls import SchedulerError, call

    try:
        done = call((qsub, "--version"), patience=10)
    except SchedulerError:
        return ""
    return done.out + done.err
