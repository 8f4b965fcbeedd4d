"""Commands that run another command, such as nice and timeout."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple


class Wrapper(NamedTuple):
    """A command that runs another command.

    ``values`` are its options whose value is the next word, ``operands`` the numbers before the other command
    (the duration of timeout); ``image``: one word is before it. With ``subcommand`` it does so only after one
    of these words. ``directory`` are its options that change the directory; a ``container`` has files of its
    own.
    """

    values: tuple[str, ...] = ()
    operands: int = 0
    subcommand: tuple[str, ...] = ()
    image: bool = False
    directory: tuple[str, ...] = ()
    container: bool = False


_CONDA = Wrapper(("-n", "--name", "-p", "--prefix", "--cwd"), subcommand=("run",), directory=("--cwd",))
_CONTAINER = Wrapper(
    (
        *("-B", "--bind", "-H", "--home", "--pwd", "--cwd", "-W", "--workdir", "-S", "--scratch"),
        *("--env", "--env-file", "-o", "--overlay", "--mount", "--network", "--network-args", "-s"),
        *("--app", "--security", "--add-caps", "--drop-caps", "--hostname", "--dns", "--fusemount"),
        *("--apply-cgroups", "--no-mount", "--shell", "--cpus", "--cpu-shares", "--cpuset-cpus", "--memory"),
        *("--cpuset-mems", "--memory-reservation", "--memory-swap", "--pids-limit", "--blkio-weight"),
    ),
    subcommand=("exec", "run", "shell"),
    image=True,
    container=True,
)
_DOCKER = Wrapper(
    (
        *("-v", "--volume", "-e", "--env", "--env-file", "-w", "--workdir", "--name", "--gpus", "--network"),
        *("--net", "--ipc", "--pid", "-u", "--user", "--shm-size", "--mount", "-p", "--publish", "--device"),
        *("--ulimit", "-h", "--hostname", "--entrypoint", "--runtime", "--cap-add", "--security-opt", "-m"),
        *("--memory", "--cpus", "--cpuset-cpus", "-l", "--label", "--group-add", "--userns", "--tmpfs"),
        *("--add-host", "--annotation", "--platform", "--pull"),
    ),
    subcommand=("run", "exec"),
    image=True,
    container=True,
)
_NSYS = Wrapper(
    (
        *("-o", "--output", "-t", "--trace", "-f", "--force-overwrite", "-c", "--capture-range", "-d", "-y"),
        *("--duration", "--delay", "-e", "--env-var", "-s", "--sample", "--stats", "-w", "--show-output"),
        *("-x", "--stop-on-exit", "-b", "--backtrace", "--cudabacktrace", "--cuda-memory-usage", "--export"),
        *("--gpu-metrics-device", "--gpu-metrics-devices", "--capture-range-end", "--kill", "--wait", "-p"),
        *("--nvtx-capture", "--python-sampling", "--session", "--session-new", "--cpuctxsw", "--nic-metrics"),
    ),
    subcommand=("profile", "launch", "nvprof"),
)
_IMAGE = re.compile(r"://|\.(sif|simg|img|sqsh)$")
WRAPPERS = {
    **dict.fromkeys(("eval", "nohup", "command", "setsid", "dumb-init", "tini", "catchsegv"), Wrapper()),
    **dict.fromkeys(("valgrind", "unbuffer", "builtin", "coproc"), Wrapper()),
    "exec": Wrapper(("-a",)),
    "time": Wrapper(("-f", "--format", "-o", "--output")),
    "env": Wrapper(("-u", "--unset", "-C", "--chdir"), directory=("-C", "--chdir")),
    "numactl": Wrapper(
        (
            *("-i", "--interleave", "-N", "--cpunodebind", "-m", "--membind", "-C", "--physcpubind", "-p"),
            *("--preferred", "-P", "--preferred-many", "-w", "--weighted-interleave", "-c", "--cpubind"),
        )
    ),
    "nice": Wrapper(("-n", "--adjustment")),
    "ionice": Wrapper(("-c", "--class", "-n", "--classdata")),
    "stdbuf": Wrapper(("-i", "--input", "-o", "--output", "-e", "--error")),
    **dict.fromkeys(("taskset", "chrt"), Wrapper(operands=1)),
    "timeout": Wrapper(("-k", "--kill-after", "-s", "--signal"), operands=1),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _CONDA),
    "uv": Wrapper(
        (
            *("--with", "-w", "--with-editable", "--with-requirements", "--extra", "--no-extra", "--group"),
            *("--no-group", "--only-group", "--python", "-p", "--project", "--directory", "--package"),
            *("--env-file", "--index", "--index-url"),
        ),
        subcommand=("run",),
        directory=("--directory",),
    ),
    "poetry": Wrapper(
        ("-C", "--directory", "-P", "--project"), subcommand=("run",), directory=("-C", "--directory")
    ),
    "pipenv": Wrapper(subcommand=("run",)),
    "pixi": Wrapper(("-e", "--environment", "--manifest-path"), subcommand=("run",)),
    **dict.fromkeys(("singularity", "apptainer"), _CONTAINER),
    **dict.fromkeys(("docker", "podman", "podman-hpc"), _DOCKER),
    "ch-run": Wrapper(
        ("-b", "--bind", "-c", "--cd", "-m", "-s", "--storage", "--join-ct"), image=True, container=True
    ),
    "nsys": _NSYS,
    "ncu": Wrapper(("-o", "--export", "-k", "--kernel-name", "-s", "-c", "--section", "--metrics", "--set")),
    "rocprof": Wrapper(("-i", "-o", "-d", "-t", "-m")),
    **dict.fromkeys(("rocprofv2", "rocprofv3"), Wrapper(("-i", "-o", "-d"))),
    "perf": Wrapper(("-e", "--event", "-o", "--output", "-F"), subcommand=("stat", "record")),
    "strace": Wrapper(("-e", "-o", "-p", "-s")),
    "xvfb-run": Wrapper(
        (
            *("-n", "--server-num", "-s", "--server-args", "-e", "--error-file", "-f", "--auth-file", "-w"),
            *("--wait", "-p", "--xauth-protocol"),
        )
    ),
    "hwloc-bind": Wrapper(("--cpubind", "--membind", "--mempolicy"), image=True),
    "likwid-pin": Wrapper(("-c", "-s", "-d")),
    "shifter": Wrapper(
        ("-i", "--image", "-V", "--volume", "-m", "--module", "-w", "--workdir", "-e", "--env"),
        container=True,
    ),
    "py-spy": Wrapper(
        ("-o", "--output", "-d", "--duration", "-r", "--rate", "-f", "--format"), subcommand=("record", "top")
    ),
    **dict.fromkeys(("gdb", "cuda-gdb"), Wrapper(("-ex", "-x", "--command", "-iex"))),
    "sudo": Wrapper(("-u", "--user", "-g", "--group", "-D", "--chdir"), directory=("-D", "--chdir")),
}

# Commands that run another command on other nodes; the image is the host.
REMOTE = {
    "ssh": Wrapper(tuple(f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw"), image=True),
    **dict.fromkeys(("rsh", "pbs_tmrsh"), Wrapper(("-l",), image=True)),
    "pdsh": Wrapper(("-w", "-x", "-f", "-t", "-u", "-R", "-l", "-g", "-j")),
    "clush": Wrapper(("-w", "-x", "-f", "-l", "-g", "-t", "-u", "-o", "-R")),
    "pbsdsh": Wrapper(("-n", "-c", "-h")),
}

# Commands that run another command for each of their inputs.
EACH_INPUT = {
    "xargs": Wrapper(
        (
            *("-I", "-i", "-n", "--max-args", "-P", "--max-procs", "-L", "--max-lines", "-d", "--delimiter"),
            *("-a", "--arg-file", "-s", "--max-chars", "-E", "--replace"),
        )
    ),
    "parallel": Wrapper(
        (
            *("-j", "--jobs", "-P", "--max-procs", "-N", "-n", "--max-args", "--delay", "--joblog"),
            *("--retries", "--timeout", "-C", "--colsep", "-a", "--arg-file", "--results", "--workdir"),
            *("--wd", "-S", "--sshlogin", "--sshloginfile", "--slf", "--env", "-I", "--halt", "--tmpdir"),
            *("--memfree", "--load", "--nice", "--tagstring", "--rpl", "-L", "-d", "--delimiter"),
        )
    ),
}


CONTAINERS = frozenset(name for name, row in WRAPPERS.items() if row.container)


def inputs_start(texts: Sequence[str | None], at: int) -> int:
    """Return the index of the command that a word runs for each input; that of the word if it runs none."""
    row = EACH_INPUT.get(os.path.basename(texts[at] or ""))
    return at if row is None else _behind_options(texts, at + 1, row)


def remote_start(texts: Sequence[str | None], at: int) -> int:
    """Return the index of the command that a word runs on other nodes; that of the word if it runs none."""
    row = REMOTE.get(os.path.basename(texts[at] or ""))
    return at if row is None else _behind_options(texts, at + 1, row)


def command_start(texts: Sequence[str | None]) -> int:
    """Return the index of the command that the wrappers run; 0 without a wrapper. An unknown word is None."""
    return max((end for _, _, end in wrappers(texts)), default=0)


def runs_elsewhere(texts: Sequence[str]) -> bool:
    """Return whether a wrapper runs its command in a container, or in another directory."""
    return any(
        wrapper.container or any(text.startswith(wrapper.directory) for text in texts[start:end])
        for wrapper, start, end in wrappers(texts)
    )


def wrappers(texts: Sequence[str | None]) -> Iterator[tuple[Wrapper, int, int]]:
    """Yield each wrapper with the index of its name, and that of the command that it runs."""
    at = 0
    while at < len(texts) and (wrapper := WRAPPERS.get(os.path.basename(texts[at] or ""))):
        start = at + 1 + _global_options(texts[at + 1 :]) * (wrapper.container and bool(wrapper.subcommand))
        if wrapper.subcommand and not set(wrapper.subcommand).intersection(texts[start : start + 1]):
            return
        end = _behind_options(texts, start + bool(wrapper.subcommand), wrapper)
        yield wrapper, at, end
        at = end


def _global_options(texts: Sequence[str | None]) -> int:
    """Return the number of options before a subcommand, as in ``apptainer --quiet exec``."""
    return sum(1 for _ in takewhile(lambda text: (text or "").startswith("-"), texts))


def _behind_options(texts: Sequence[str | None], at: int, wrapper: Wrapper) -> int:
    operands, image, sure = wrapper.operands, wrapper.image, True
    while at < len(texts):
        text = texts[at] or "-"  # an unknown word is taken for an option
        if text.startswith("-"):
            sure = texts[at] is not None
            at += 1 + (text in wrapper.values)
        elif re.match(r"\w+=", text) and not image:
            at += 1
        elif operands and (text[0].isdigit() or text[0] == "$"):
            operands -= 1
            at += 1
        elif image and (sure or _IMAGE.search(text)):
            image = False  # else the unknown word before was the image
            at += 1
        else:
            break
    return min(at, len(texts))
