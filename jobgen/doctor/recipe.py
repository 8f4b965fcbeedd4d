"""``jobgen doctor --recipe``: shell lines that build DeepSpeed's ops before the job needs them.

https://www.deepspeed.ai/tutorials/advanced-install/
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from jobgen.doctor.verdict import DEEPSPEED, Case
from jobgen.errors import JobgenError

_MEMORY = 4 * 1024**3  # bytes; the most that one compiler uses


def recipe(case: Case) -> str:
    """Return the lines for this environment's DeepSpeed, torch and devices: for a job's ``setup``, or a
    script.

    Raises:
        JobgenError: the environment has no torch or no DeepSpeed to build for.
    """
    torch, packages = case.facts("torch"), case.facts("python").get("packages", {})
    if DEEPSPEED not in packages or not torch:
        lacking = "torch" if not torch else "DeepSpeed"
        raise JobgenError(
            f"--recipe (command line): this environment has no {lacking} to build for; see jobgen doctor"
        )
    ops = case.plan.resources.accelerator.ops
    wheels = f"wheels/torch-{torch['version']}-{case.plan.resources.accelerator_name}"
    lines = [
        "# Written by jobgen doctor --recipe, for the setup of a job or as a script. It does nothing if the",
        "# ops are installed. It needs the compiler, and network access or the source, downloaded before:",
        "# pip download --no-deps --no-binary deepspeed deepspeed",
        f"if ! python3 - {' '.join(ops)} <<'END'",
        "import sys",
        "from deepspeed.git_version_info import installed_ops",
        "sys.exit(not all(installed_ops.get(op) for op in sys.argv[1:]))",
        "END",
        "then (",
        "  set -e",
        *(f"  {line}" for line in _exports(case, ops, torch)),
        "  # --no-build-isolation finds torch, but needs the build tools in this environment, too.",
        "  python3 -m pip install 'setuptools>=77' ninja",
        "  python3 -m pip wheel --no-deps --no-build-isolation --no-cache-dir --no-binary deepspeed \\",
        f"    --wheel-dir {shlex.quote(wheels)} deepspeed=={packages['deepspeed']}",
        "  # The wheel fits all machines with the same Python, torch and devices: they need only this line.",
        f"  python3 -m pip install --no-deps --force-reinstall {shlex.quote(wheels)}/deepspeed-*.whl",
        ") fi",
    ]
    return "\n".join(lines) + "\n"


def _exports(case: Case, ops: Sequence[str], torch: dict[str, object]) -> list[str]:
    name = case.plan.resources.accelerator.deepspeed or case.plan.resources.accelerator_name
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    jobs = max(1, min(len(os.sched_getaffinity(0)), memory // _MEMORY))
    build = (f"DS_BUILD_{op.removeprefix('deepspeed_').upper()}=1" for op in ops)
    lines = [f"export DS_ACCELERATOR={name}  # as in the job: DeepSpeed ignores ops built for another one"]
    lines += [f"export {' '.join(build)}", f"export MAX_JOBS={jobs}"]
    if case.plan.resources.accelerator.nvcc:
        lines += [f"export TORCH_CUDA_ARCH_LIST='{arch_list(case, torch)}'"]
    return lines


def arch_list(case: Case, torch: dict[str, object]) -> str:
    """Return the compute capabilities to build for: those in TORCH_CUDA_ARCH_LIST, or those of this host's
    devices, or all that torch was built for."""
    if architectures := case.here.env.get("TORCH_CUDA_ARCH_LIST", "").strip():
        return ";".join(architectures.replace(",", " ").replace(";", " ").split()).replace("'", "")
    devices, archs = torch["devices"], torch["archs"]
    assert isinstance(devices, list)
    assert isinstance(archs, list)
    seen = {f"{one[1]}.{one[2]}" for one in devices}
    known = [f"{arch[3:-1]}.{arch[-1]}" for arch in archs if arch.startswith("sm_") and arch[3:].isdigit()]
    return ";".join(sorted(seen, key=float) or sorted(known, key=float))
