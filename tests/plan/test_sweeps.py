"""Sweeps: what each task of the array tells its program, byte for byte, and what is refused."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.texts import PROBE, TEXT

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.jobfile.reader import layer_of
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render

VALUES = st.one_of(
    st.lists(st.one_of(TEXT, st.integers(), st.floats()), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.lists(
        st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=14
    ),
)


def script(
    sweep: dict[str, Any],
    program: tuple[str, ...] = ("probe", "first"),
    scheduler: str = "pbs",
    **options: str,
) -> str:
    layer = layer_of({"sweep": sweep}, program, lambda place: "job file")
    given = {"dialect": "torque"} if scheduler == "pbs" else {}
    common = {"launcher": "torchrun", "accelerator": "cpu", **given, **options}
    return render(resolve(read_spec(scheduler, common, program, layer)))


def run(top: Path, text: str, index: int) -> Path:
    """The run directory of one task, run as PBS would, by a torchrun of one line."""
    commands = top / "bin"
    if not commands.exists():
        commands.mkdir()
        for name, body in (("probe", PROBE), ("torchrun", '#!/bin/bash\nRANK=0 exec bash "${@: -1}"\n')):
            (commands / name).write_text(body)
            (commands / name).chmod(0o755)
        (top / "nodes").write_text("here\n")
    env = {
        "PATH": f"{commands}:{os.environ['PATH']}", "HOME": str(top), "PBS_JOBID": f"7[{index}].head",
        "PBS_NODEFILE": str(top / "nodes"), "PBS_ARRAYID": str(index), "PBS_O_WORKDIR": str(top),
    }  # fmt: skip
    done = subprocess.run(["bash", "-s"], input=os.fsencode(text), cwd=top, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    return top / "runs/jobgen-7.head" / f"task-{index}"


def words(directory: Path) -> list[bytes]:
    return (directory / "words").read_bytes().split(b"\0")[1:-1]


def expected(key: str, value: Any) -> list[bytes]:
    if isinstance(value, bool):
        return [f"--{key}".encode()] * value
    text = os.fsencode(str(value))
    return [b"--%s=%s" % (key.encode(), text)] if text.startswith(b"-") else [f"--{key}".encode(), text]


@settings(max_examples=25, deadline=None)
@given(
    first=VALUES,
    second=VALUES,
    mode=st.sampled_from(["product", "zip"]),
    picked=st.integers(0, 1000),
)
def test_hostile_values_reach_the_program(
    first: list[Any], second: list[Any], mode: str, picked: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = tmp_path_factory.mktemp("sweep")
    points = list(itertools.product(first, second)) if mode == "product" else list(zip(first, second))  # noqa: B905
    sweep = {"mode": mode, "first_one": first[: len(points)], "b-2": second[: len(points)]}
    if mode == "product":
        sweep |= {"first_one": first, "b-2": second}
    index = picked % len(points)
    directory = run(top, script(sweep), index)
    one, other = points[index]
    assert words(directory) == [b"first", *expected("first_one", one), *expected("b-2", other)]
    said = dict(pair.split(b"=", 1) for pair in (directory / "env").read_bytes().split(b"\0")[:-1])
    if not isinstance(one, bool):
        assert said[b"JOBGEN_SWEEP_first_one"] == os.fsencode(str(one))
    assert said[b"JOBGEN_TASK"] == str(index).encode()
    written = json.loads((directory / "sweep.json").read_bytes().decode("utf-8", "surrogateescape"))
    assert written in ({"first_one": one, "b-2": other}, {"first_one": str(one), "b-2": other},
                       {"first_one": one, "b-2": str(other)}, {"first_one": str(one), "b-2": str(other)})  # fmt: skip
    assert not list(top.rglob("pwned"))


def test_every_point_once(tmp_path: Path) -> None:
    lists = {"a": [1, 2, 3], "b": ["x", "y"], "c": [0.5, -0.5]}
    text = script(lists)
    found = [words(run(tmp_path, text, index))[1:] for index in range(12)]
    wanted = [
        [word for key, value in zip(lists, point, strict=True) for word in expected(key, value)]
        for point in itertools.product(*lists.values())
    ]
    assert found == wanted


def test_arrays_of_bash_are_quiet() -> None:
    text = script({"shape": [[1, 2], [3]], "quiet": [True, False]})
    assert "\n  '1,2' 3\n" in text
    assert 'job_sweep_value shape text --shape "${sweep_shape[job_index / 2 % 2]}"' in text
    assert 'job_sweep_value quiet switch --quiet "${sweep_quiet[job_index % 2]}"' in text


def test_a_list_is_joined_and_wins_over_the_table_train() -> None:
    tables = {"train": {"augment": "flip", "epochs": 2}, "sweep": {"augment": [["crop", "flip"], "crop"]}}
    layer = layer_of(tables, (), lambda place: "job file")
    text = render(resolve(read_spec("slurm", {"launcher": "torchrun"}, (), layer)))
    assert "sweep_augment=(\n  'crop,flip' crop\n)" in text
    assert (
        'exec python3 -m jobgen.train --epochs 2 ${job_point[@]+"${job_point[@]}"}' in text
    )  # one node has no preflight
    assert "#SBATCH --array=0-1\n" in text


MISTAKES = [
    ({"lrr": [1]}, (), {}, "no option of the training module; did you mean --lr?"),
    ({"lr": [0.1, -1]}, (), {}, "lr = -1: must be a number above 0"),
    ({"epochs": ["two"]}, (), {}, "epochs = two"),
    ({"lr": [1]}, ("--lr", "2"), {}, "given --lr already"),
    ({"lr": [1]}, ("a.py", "--lr=2"), {}, "given --lr already"),
    ({"a-b": [1], "a_b": [1]}, ("a.py",), {}, "one variable, JOBGEN_SWEEP_a_b"),
    ({"mode": "zip", "a": [1], "b": [1, 2]}, ("a.py",), {}, "a has 1 and b has 2"),
    ({"a": [1, 2]}, ("a.py",), {"array": "1-2"}, "the points 0 to 1"),
    ({"a": [1]}, ("a.py",), {"dialect": "pbspro"}, "at least two indices"),
    ({"a": list(range(2001)), "b": list(range(2000))}, ("a.py",), {}, "at most 4000000 tasks"),
    ({"a": [1, 2]}, ("a.py",), {"requeue": "1"}, "the whole array"),
]  # fmt: skip


@pytest.mark.parametrize(("sweep", "program", "options", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(
    sweep: dict[str, Any], program: tuple[str, ...], options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(JobgenError) as caught:
        script(sweep, program, **options)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_local_run_has_no_points() -> None:
    with pytest.raises(JobgenError, match="a local run is one job"):
        script({"a": [1, 2]}, ("a.py",), scheduler="local")


@pytest.mark.parametrize(("array", "directive"), [("%3", "0-3%3"), ("1-2", "1-2"), ("0-3%1", "0-3%1")])
def test_an_array_beside_a_sweep_is_a_part_or_a_limit(array: str, directive: str) -> None:
    assert f"#PBS -t {directive}\n" in script({"a": [1, 2], "b": [1, 2]}, array=array)
