"""``jobgen image``: the recipe of a container image that has all that a job needs inside."""

from __future__ import annotations

import re
from typing import NamedTuple

import click

from jobgen.errors import JobgenError, nearest, one_of, shown

KINDS = ("dockerfile", "apptainer")
CUDA, CANN, CHIP = "12.8.1", "8.3.rc2", "910b"


class Base(NamedTuple):
    """What an image stands on; ``extras`` are those of our package, ``wheels`` is where torch comes from."""

    image: str
    extras: str
    wheels: str


def base(accelerator: str, cuda: str = CUDA, cann: str = CANN, chip: str = CHIP) -> Base:
    """The base image of an accelerator, as its maker names them.

    https://hub.docker.com/r/nvidia/cuda, https://quay.io/repository/ascend/cann
    """
    index = "https://download.pytorch.org/whl/"
    if accelerator == "cuda":
        major, minor, _ = cuda.split(".")
        return Base(f"nvidia/cuda:{cuda}-cudnn-devel-ubuntu22.04", "train", f"{index}cu{major}{minor}")
    if accelerator == "npu":
        return Base(f"quay.io/ascend/cann:{cann}-{chip}-ubuntu22.04-py3.11", "train,npu", f"{index}cpu")
    return Base("debian:12", "train", f"{index}cpu")


def recipe(kind: str, accelerator: str, made: Base) -> str:
    """The text of the recipe."""
    from jobgen.rendering import environment

    values = {"accelerator": accelerator, **made._asdict()}
    return environment().get_template(f"image/{kind}.j2").render(values)


def _choose(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise JobgenError(
            f"{name} {shown(value)} (command line): must be {one_of(allowed)}{nearest(value, allowed)}"
        )


def _match(name: str, value: str, pattern: str, rule: str) -> None:
    if not re.fullmatch(pattern, value, re.ASCII):
        raise JobgenError(f"{name} {shown(value)} (command line): must be {rule}")


@click.command(
    "image",
    help="Print the recipe of a container image: a Dockerfile or an Apptainer definition.",
    epilog="Example: jobgen image --accelerator cuda -o Dockerfile && docker build -t train .",
)
@click.option("--kind", metavar="|".join(KINDS), default="dockerfile", help="[default: dockerfile]")
@click.option("--accelerator", metavar="cuda|npu|cpu", default="cuda", help="[default: cuda]")
@click.option("--cuda", metavar="VERSION", help=f"CUDA of the base image.  [default: {CUDA}]")
@click.option("--cann", metavar="VERSION", help=f"CANN of the base image.  [default: {CANN}]")
@click.option("--chip", metavar="NAME", help=f"NPU that CANN's kernels are for.  [default: {CHIP}]")
@click.option("--base", "image", metavar="IMAGE", help="Another base image, of Debian or Ubuntu.")
@click.option("-o", "--output", metavar="FILE", help="Write it to FILE.")
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
    _choose("--kind", kind, KINDS)
    _choose("--accelerator", accelerator, ("cuda", "npu", "cpu"))
    for name, value, owner in (("--cuda", cuda, "cuda"), ("--cann", cann, "npu"), ("--chip", chip, "npu")):
        if value is not None and accelerator != owner:
            raise JobgenError(f"{name} {shown(value)} (command line): is only for --accelerator {owner}")
    _match("--cuda", cuda or CUDA, r"1[1-9]\.\d{1,2}\.\d{1,2}", f"a whole version such as {CUDA}")
    _match("--cann", cann or CANN, r"\d+\.\d+\.(?:\d+|(?:rc|alpha|beta)\d+)", f"a version such as {CANN}")
    _match("--chip", chip or CHIP, r"\w{1,16}", "a chip such as 910b or a3")
    made = base(accelerator, cuda or CUDA, cann or CANN, chip or CHIP)
    if image is not None:
        _match("--base", image, r"[\w][\w.:/@+-]*", "an image such as debian:12")
        made = made._replace(image=image)
    text = recipe(kind, accelerator, made)
    if output is None:
        click.echo(text, nl=False)
        return
    from jobgen.output import write_script

    write_script(output, text, force=force, executable=False)
