"""The recipes of images: their text, what a linter says of it, and what is refused."""

from __future__ import annotations

import re
import subprocess

import pytest
from golden.recipes import CASES, HERE, text
from support import jobs
from support.require import need_command


@pytest.mark.parametrize("name", CASES)
def test_recipe_is_the_golden_one(name: str) -> None:
    assert text(CASES[name]) == (HERE / name).read_text(encoding="utf-8")


def test_no_recipe_is_left_over() -> None:
    assert {path.name for path in HERE.iterdir()} == set(CASES)


@pytest.mark.parametrize("accelerator", ["cuda", "npu", "cpu"])
def test_a_dockerfile_is_clean(accelerator: str) -> None:
    command = [need_command("hadolint"), str(HERE / f"{accelerator}.dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("accelerator", ["cuda", "npu", "cpu"])
def test_the_sections_of_an_apptainer_definition_are_clean_shell(accelerator: str) -> None:
    definition = (HERE / f"{accelerator}.apptainer").read_text(encoding="utf-8")
    head, *sections = re.split(r"^%(\w+)\n", definition, flags=re.MULTILINE)
    assert re.search(r"^Bootstrap: docker\nFrom: \S+$", head, re.MULTILINE)
    bodies = dict(zip(sections[::2], sections[1::2], strict=True))
    assert list(bodies) == ["files", "environment", "post", "test"]
    for name in ("environment", "post", "test"):
        command = [need_command("shellcheck"), "--shell=sh", "-"]
        done = subprocess.run(command, input=bodies[name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_versions_make_the_base() -> None:
    cuda = text(["--cuda", "12.4.1"])
    assert "FROM nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04\n" in cuda
    assert "/whl/cu124 " in cuda
    npu = text(["--accelerator", "npu", "--cann", "8.5.0", "--chip", "a3"])
    assert "FROM quay.io/ascend/cann:8.5.0-a3-ubuntu22.04-py3.11\n" in npu
    assert "FROM mine:1\n" in text(["--base", "mine:1"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kind", "apptaner"], "must be dockerfile or apptainer; did you mean apptainer?"),
        (["--accelerator", "rocm"], "must be cuda, npu or cpu"),
        (["--cuda", "12.4"], "a whole version such as"),
        (["--cuda", "12.4.1", "--accelerator", "cpu"], "is only for --accelerator cuda"),
        (["--cann", "8.1.rc1"], "is only for --accelerator npu"),
        (["--base", "a\nRUN id"], "must be an image"),
    ],
)
def test_what_is_refused(options: list[str], said: str) -> None:
    done = jobs.jobgen("image", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
