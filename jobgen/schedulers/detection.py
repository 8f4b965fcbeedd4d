"""Detection of the scheduler of this machine, by the commands on PATH."""


def detect() -> tuple[str, str]:
    """Return the scheduler of this machine and the reason. Slurm first: it often has a qsub of its own."""
    from shutil import which

    if which("sbatch"):
        return "slurm", ", because sbatch is here"
    if (qsub := which("qsub")) is None:
        return "local", ", because there is neither sbatch nor qsub here"
    said = _version(qsub)
    if "pbs_version" in said.lower():
        return "pbspro", ", because qsub says pbs_version"
    if said.lower().lstrip().startswith("version:") or "torque" in said.lower():
        return "torque", ", because qsub has Torque's version"
    return "pbspro", ", though qsub --version does not say so: perhaps it is Torque"


def _version(qsub: str) -> str:
    from jobgen.schedulers.calls import SchedulerError, call

    try:
        done = call((qsub, "--version"), patience=10)
    except SchedulerError:
        return ""
    return done.out + done.err
