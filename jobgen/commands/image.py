"""``jobgen image``: prints the recipe of a container image with all that a job needs."""

from __future__ import annotations

from typing import NamedTuple

import click

from jobgen.commands.output import put
from jobgen.commands.parameter_types import FILE, OptionType
from jobgen.errors import JobgenError, shown
from jobgen.values.parsers import choice, text

KINDS, ACCELERATORS = ("dockerfile", "apptainer"), ("cuda", "npu", "cpu")
CUDA, CANN, CHIP = "12.8.1", "8.3.rc2", "910b"
_CUDA = OptionType(text(f"a whole version such as {CUDA}", r"1[1-9]\.\d{1,2}\.\d{1,2}"))
_CANN = OptionType(text(f"a version such as {CANN}", r"\d+\.\d+\.(?:\d+|(?:rc|alpha|beta)\d+)"))
_CHIP = OptionType(text("a chip such as 910b or a3", r"\w{1,16}"))
_BASE = OptionType(text("an image such as debian:12", r"[\w][\w.:/@+-]*"))


class Base(NamedTuple):
    """The base of an image; ``extras`` are those of the package jobgen, ``wheels`` is the index for torch."""

    image: str
    extras: str
    wheels: str


def base(accelerator: str, cuda: str = CUDA, cann: str = CANN, chip: str = CHIP) -> Base:
    """Return the base image of an accelerator, as its vendor names it.

    https://hub.docker.com/r/nvidia/cuda, https://quay.io/repository/ascend/cann
    """
    index = "https://download.pytorch.org/whl/"
    release = "".join(cuda.split(".")[:2])
    return {
        "cuda": Base(f"nvidia/cuda:{cuda}-cudnn-devel-ubuntu22.04", "train", f"{index}cu{release}"),
        "npu": Base(f"quay.io/ascend/cann:{cann}-{chip}-ubuntu22.04-py3.11", "train,npu", f"{index}cpu"),
        "cpu": Base("debian:12", "train", f"{index}cpu"),
    }[accelerator]


def recipe(kind: str, accelerator: str, made: Base) -> str:
    """Return the text of the recipe."""
    from jobgen.rendering.render import environment

    values = {"accelerator": accelerator, **made._asdict()}
    return environment().get_template(f"image/{kind}.j2").render(values)


@click.command(
    "image",
    short_help="Print the recipe of a container image.",
    help="Print the recipe of a container image: a Dockerfile or an Apptainer definition.",
    epilog="Example: jobgen image --accelerator cuda -o Dockerfile && docker build -t train .",
)
@click.option(
    "--kind",
    type=OptionType(choice(*KINDS)),
    metavar="|".join(KINDS),
    default="dockerfile",
    help="Format of the recipe.  [default: dockerfile]",
)
@click.option(
    "--accelerator",
    type=OptionType(choice(*ACCELERATORS)),
    metavar="|".join(ACCELERATORS),
    default="cuda",
    help="Device that the image is for.  [default: cuda]",
)
@click.option("--cuda", type=_CUDA, metavar="VERSION", help=f"CUDA of the base image.  [default: {CUDA}]")
@click.option("--cann", type=_CANN, metavar="VERSION", help=f"CANN of the base image.  [default: {CANN}]")
@click.option(
    "--chip", type=_CHIP, metavar="NAME", help=f"NPU that CANN's kernels are for.  [default: {CHIP}]"
)
@click.option("--base", "image", type=_BASE, metavar="IMAGE", help="Another base image, of Debian or Ubuntu.")
@click.option("-o", "--output", metavar="FILE", type=FILE, help="Write it to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def image(
    kind: str,
    accelerator: str,
    cuda: str | None,
    cann: str | None,
    chip: str | None,
    image: str | None,
    output: str | None,
    force: bool,
) -> None:
    for name, value, owner in (("--cuda", cuda, "cuda"), ("--cann", cann, "npu"), ("--chip", chip, "npu")):
        if value is not None and accelerator != owner:
            raise JobgenError(f"{name} {shown(value)} (command line): is only for --accelerator {owner}")
    made = base(accelerator, cuda or CUDA, cann or CANN, chip or CHIP)
    if image is not None:
        made = made._replace(image=image)
    put(recipe(kind, accelerator, made), output, force, executable=False)
