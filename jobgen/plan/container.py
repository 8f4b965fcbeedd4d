"""The container of a job: the parts of the host that it gets, and the commands that it must have."""

import re
from typing import NamedTuple

from jobgen.errors import one_of
from jobgen.launch.accelerators import ACCELERATORS
from jobgen.launch.containers import LEAKS, RUNTIMES, ContainerRuntime
from jobgen.launch.expansion import names
from jobgen.launch.launchers import LAUNCHERS
from jobgen.launch.program import Program
from jobgen.schedulers.table import SCHEDULERS, scheduler_of
from jobgen.spec import Specification


class Container(NamedTuple):
    """The container of a job. ``node`` are the words before the launcher in the function node, ``rank`` those
    before the program in the function program. ``needs`` are the commands that the container must have.
    ``words`` are those in which ``--expand`` replaces variables."""

    kind: str
    runtime: ContainerRuntime
    devices: str
    binds: tuple[str, ...]
    leaks: tuple[str, ...]
    named: tuple[str, ...]
    node: str
    rank: str
    needs: tuple[str, ...]
    words: tuple[str, ...]


_WITHIN = 'bash "$JOBGEN_RUN_DIR/container.sh" '


def container(spec: Specification, accelerator: str, program: Program, start_nodes: str) -> Container | None:
    """Return the container of a job; None if it has none.

    Raises:
        JobgenError: an option is missing, or does not work with this container.
    """
    if spec.container is None:
        for key in ("image", "bind", "container_arg"):
            if getattr(spec, key):
                raise spec.refuse(key, f"needs a --container: {one_of(RUNTIMES)}")
        return None
    runtime = RUNTIMES[spec.container]
    _check(spec, runtime, accelerator, start_nodes)
    once_a_node = LAUNCHERS[spec.launcher].once_a_node
    by_srun = runtime.image_option and start_nodes != "here"
    named = {*dict(spec.env), *spec.secrets}
    binds = tuple(one if ":" in one else f"{one}:{one}" for one in spec.bind)
    python = ("python3",) if program.head is not None or once_a_node else ()
    return Container(
        kind=spec.container,
        runtime=runtime,
        devices=ACCELERATORS[accelerator].containers[spec.container],
        binds=binds,
        leaks=tuple(name for name in LEAKS if name not in named or runtime.prefix),
        named=tuple(name for name in ("PATH", *LEAKS) if name in named),
        node=_WITHIN if once_a_node and not by_srun else "",
        rank="" if once_a_node or runtime.image_option else _WITHIN,
        needs=(*python, *((LAUNCHERS[spec.launcher].command,) if once_a_node else ())),
        words=(spec.image or "", *binds, *spec.container_arg),
    )


def _check(spec: Specification, runtime: ContainerRuntime, accelerator: str, start_nodes: str) -> None:
    if spec.image is None:
        raise spec.refuse("container", "needs an --image")
    for key, paths in (("image", [spec.image]), ("bind", spec.bind)):
        found = names([one for one in paths if one.startswith("$")])
        if found and not spec.expand:
            raise spec.refuse(key, f"${found[0]} is passed as it is: --expand replaces it when the job runs")
    for key in ("conda", "venv"):
        if getattr(spec, key):
            raise spec.refuse(key, "is the host's; in a container the image brings its own Python")
    able = ACCELERATORS[accelerator].containers
    if spec.container not in able:
        way = f"use {one_of(name for name in RUNTIMES if name in able)}" if able else "leave it out"
        raise spec.refuse("container", f"{runtime.title} does not support {accelerator}; {way}")
    if start_nodes == LAUNCHERS[spec.launcher].remote_shell:
        why = f"{start_nodes} starts ranks on the hosts, outside of it; leave out --remote"
        raise spec.refuse("container", why)
    if spec.container == "shifter" and not re.fullmatch(r"[\w.:/@+-]+", spec.image, re.ASCII):
        raise spec.refuse("image", "Shifter's images are words such as docker:user/name:tag")
    if spec.container == "edf" and not re.fullmatch(r"\.{0,2}/.*|[\w.-]+(?<!\.toml)", spec.image):
        why = "must be a path that begins with / or ./, or the name of an EDF without .toml"
        raise spec.refuse("image", why)
    if runtime.image_option:
        _check_plugin(spec, runtime)


def _check_plugin(spec: Specification, runtime: ContainerRuntime) -> None:
    """Refuse a plug-in of srun where srun does not start the launcher or the ranks."""
    kind, command, launcher = spec.container, runtime.command, LAUNCHERS[spec.launcher]
    if scheduler_of(spec).node_step != command:
        titles = one_of(row.title for row in SCHEDULERS.values() if row.node_step == command)
        raise spec.refuse("container", f"{kind} is a part of {titles}'s {command}; use another runtime")
    own = not launcher.once_a_node and launcher.command != command
    if own or spec.remote == "ssh":
        what, instead = (spec.launcher, f"--launcher {command}") if own else ("ssh", "--remote scheduler")
        raise spec.refuse(
            "container",
            f"{kind} is a part of {command}, but {what} starts the ranks; use {instead}, or enroot",
        )
