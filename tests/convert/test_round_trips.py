"""Properties of conversions: a job requests the same after each conversion, and any bytes are converted."""

from __future__ import annotations

import re

import tomllib
from convert.conversions import convert, job_file, rendered
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobgen.convert import request_reader
from jobgen.convert.result import Converted, Remark
from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.rendering.runtime import MARK
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.pbspro import RESERVATION
from jobgen.script.dialects.table import of_script
from jobgen.script.script import Script
from jobgen.values import arrays

WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,12}", fullmatch=True)
NUMBERS = st.integers(1, 64)
FIELDS = [
    "name",
    "queue",
    "account",
    "walltime",
    "nodes",
    "ranks_per_node",
    "cpus_per_rank",
    "gpus_per_node",
    "mem",
    "depend",
    "mail",
    "mail_user",
    "rerun",
    "exclusive",
    "join",
]
DEPENDS = st.sampled_from(["afterok:12", "afterany:12:34", "after:7,afternotok:8"])


@st.composite
def slurm(draw: st.DrawFn, one_core: bool = False, more: tuple[str, ...] = ()) -> str:
    """A Slurm script that any scheduler supports; ``more`` is what only some support."""
    hours, minutes = draw(st.integers(0, 400)), draw(st.integers(1, 59))
    lines = [f"--nodes={draw(NUMBERS)}", f"--ntasks-per-node={draw(NUMBERS)}"]
    lines.append(f"--cpus-per-task={1 if one_core else draw(NUMBERS)}")
    lines.append(f"--time={hours}:{minutes:02}:00")
    optional = {
        "--job-name=": WORDS,
        "--partition=": WORDS.filter(lambda word: not re.fullmatch(RESERVATION, word)),
        "--account=": WORDS,
        "--gpus-per-node=": st.integers(1, 16),
        "--array=": st.sampled_from(["0-9", "0-9:3", "2-8%4", "0-100:50%1"]),
        "--dependency=": DEPENDS,
        "--mail-type=": st.sampled_from(["END", "BEGIN,END,FAIL", "ALL", "BEGIN", "NONE"]),
        "--begin=": st.sampled_from(["2026-12-01T10:00", "2030-01-31T20:00:30", "16:00", "04:05:06"]),
        "--nice=": st.integers(0, 1024),
        "--mail-user=": st.just("me@example.org"),
        "--": st.sampled_from(["exclusive", "requeue", "no-requeue", "hold"]),
    }
    optional |= dict.fromkeys(more, st.sampled_from(["R12", "S3", "M7"]))
    if "--reservation=" in more and "--qos=" not in more:
        del optional["--partition="]  # a reservation of PBS Pro is a queue
    if "--constraint=" in more:
        optional["--constraint="] = st.sampled_from(["fast", "fast&ib"])
    if not one_core:
        optional["--mem="] = st.sampled_from(["64G", "1536M", "1T"])
    lines += [flag + str(draw(values)) for flag, values in optional.items() if draw(st.booleans())]
    if any(line.startswith("--array=") for line in lines):  # PBS Pro takes only arrays that may run again
        lines = [line for line in lines if line != "--no-requeue"]
    if one_core and any(line.startswith("--array=") for line in lines):  # Torque mails for each task
        lines = [re.sub(r"^(--mail-type=(?!NONE).*)", r"\1,ARRAY_TASKS", line) for line in lines]
    return (
        "#!/bin/bash\n" + "".join(f"#SBATCH {line}\n" for line in draw(st.permutations(lines))) + "hostname\n"
    )


def meaning(text: str, scheduler: str) -> dict[str, object]:
    content = request_reader.read(Script(text.encode(), scheduler))
    found: dict[str, object] = {name: getattr(content.request, name) for name in FIELDS}
    found["array"] = indices(content.request.array)
    if content.request.mail_user:
        found["mail"] = content.request.mail or EVENT_LETTERS[of_script(scheduler).default_mail]
    found |= {key: one.value for key, one in content.directives.items()}
    if "constraint" in found:
        found["constraint"] = content.directives["constraint"].value.replace(":", "&")
    return found


def with_all_memory(found: dict[str, object]) -> dict[str, object]:
    """Return a meaning with the --mem=0 that whole nodes of PBS without a request of memory have in Slurm."""
    return found | ({"mem": 0} if found["exclusive"] and found["mem"] is None else {})


def differences(*conversions: Converted) -> list[Remark]:
    """Return the remarks but those on the numbers of other jobs, which any script with a dependency has."""
    found = (one for done in conversions for one in done.remarks)
    return [one for one in found if not one.why.startswith("names a job of")]


def indices(text: str | None) -> object:
    array = arrays.read(text) if text else None
    if array is None:
        return None
    return {one for first, last, step in array.ranges for one in range(first, last + 1, step)}, array.limit


@given(slurm(more=("--reservation=",)))
@settings(deadline=None)
def test_slurm_to_pbs_pro_and_back(text: str) -> None:
    there = convert(text, "pbspro")
    back = convert(there.text, "slurm", "pbspro")
    assert [one for one in differences(there) if one.what != "--exclusive"] == differences(back) == []
    assert meaning(there.text, "pbspro") == meaning(text, "slurm")
    assert meaning(back.text, "slurm") == with_all_memory(meaning(text, "slurm"))


@given(slurm(one_core=True, more=("--reservation=", "--qos=", "--constraint=")))
@settings(deadline=None)
def test_slurm_to_torque_and_back(text: str) -> None:
    there = convert(text, "torque")
    back = convert(there.text, "slurm", "torque")
    found = [one for one in differences(there, back) if one.what not in ("--exclusive", "GPUs")]  # queue A30
    assert [one for one in found if not one.why.startswith("no directive requests GPUs")] == []  # queue RTX
    assert meaning(there.text, "torque") == meaning(text, "slurm")
    assert meaning(back.text, "slurm") == with_all_memory(meaning(text, "slurm"))


@given(slurm(one_core=True))
@settings(deadline=None)
def test_round_all_three(text: str) -> None:
    pro = convert(text, "pbspro").text
    torque = convert(pro, "torque", "pbspro")
    again = convert(torque.text, "pbspro", "torque")
    assert differences(torque, again) == []
    assert meaning(again.text, "pbspro") == meaning(pro, "pbspro") == meaning(text, "slurm")


@given(
    st.binary(max_size=300),
    st.sampled_from(["slurm", "pbspro", "torque"]),
    st.sampled_from(["slurm", "pbspro", "torque", "toml"]),
)
@example(b"\x01`a=", "slurm", "toml")  # a node of no length
@settings(deadline=None, max_examples=200)
def test_any_bytes(source: bytes, whose: str, target: str) -> None:
    script = Script(source, whose)
    done = translation.convert(script) if target == "toml" else conversion.convert(script, target)
    if target == "toml":
        tomllib.loads(done.text)


@st.composite
def sized(draw: st.DrawFn) -> tuple[str, tuple[int, int, int, int]]:
    """A Slurm script, and the ranks, cores, MiB and GPUs that it requests in all."""
    nodes, each, cores = (
        draw(st.sampled_from([None, 1, 2, 3])),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
    )
    count, memory = draw(st.integers(1, 3)), draw(st.integers(1, 4000))
    ranks = (nodes or 1) * each
    gpus_by = draw(
        st.sampled_from(["", "--gpus-per-task", "--gpus", *["--gpus-per-node"] * (nodes is not None)])
    )
    gpus = {"": 0, "--gpus-per-node": count * (nodes or 0)}.get(gpus_by, count * ranks)
    total = {"--gpus": gpus}.get(gpus_by, count)
    memory_by = ["", "--mem-per-cpu", *["--mem"] * (nodes is not None), *["--mem-per-gpu"] * bool(gpus)]
    by = draw(st.sampled_from(memory_by))
    cores_by = draw(
        st.sampled_from(["--cpus-per-task", *["--cpus-per-gpu"] * (gpus_by == "--gpus-per-task")])
    )
    all_cores = ranks * cores * (count if cores_by == "--cpus-per-gpu" else 1)
    times = {"": 0, "--mem-per-cpu": all_cores, "--mem": nodes or 1, "--mem-per-gpu": gpus}[by]
    size = draw(st.sampled_from(["-n", "--ntasks-per-node"] if nodes else ["-n"]))
    lines = [f"{size} {ranks if size == '-n' else each}", f"{cores_by}={cores}"]
    lines += [f"--nodes={nodes}"] * bool(nodes) + [f"{gpus_by}={total}"] * bool(gpus_by)
    lines += [f"{by}={memory}M"] * bool(by)
    head = "".join(f"#SBATCH {line}\n" for line in draw(st.permutations(lines)))
    return f"#!/bin/bash\n{head}hostname\n", (ranks, all_cores, times * memory, gpus)


def totals(text: str, scheduler: str) -> tuple[int, int, int, int]:
    request = request_reader.read(Script(text.encode(), scheduler), whole=True).request
    units = request.nodes or request.ranks or 1
    each = request.ranks_per_node or 1
    cores = units * each * (request.cpus_per_rank or 1)
    return units * each, cores, units * (request.mem or 0), units * (request.gpus_per_node or 0)


@given(sized())
@settings(deadline=None)
def test_all_that_a_job_requests_stays_the_same(case: tuple[str, tuple[int, int, int, int]]) -> None:
    text, expected = case
    there = convert(text, "pbspro")
    back = convert(there.text, "slurm", "pbspro")
    assert [one for one in (*there.remarks, *back.remarks) if one.lost] == []
    assert totals(there.text, "pbspro") == totals(back.text, "slurm") == totals(text, "slurm") == expected


FORMS = {
    "slurm": {
        "name": "--job-name={}", "queue": "--partition={}", "nodes": "--nodes={}", "ranks": "--ntasks-per-node={}",
        "cpus": "--cpus-per-task={}", "gpus": "--gpus-per-node={}", "kind": "--gpus-per-node={}:{}",
        "mem": "--mem={}M", "time": "--time={}",
    },
    "pbspro": {
        "name": "-N {}", "queue": "-q {}", "nodes": "-l select={}:ncpus={}:mpiprocs={}:ngpus={}:mem={}mb",
        "time": "-l walltime=00:{}:00",
    },
    "torque": {"name": "-N {}", "queue": "-q {}", "nodes": "-l nodes={}:ppn={}:gpus={}", "time": "-l walltime=00:{}:00"},
}  # fmt: skip
LAUNCHES = [
    "python t.py", "srun python t.py", "mpirun -np {total} ./a", "torchrun --nproc_per_node={ranks} t.py",
    "deepspeed t.py", "bash run.sh", "srun torchrun --nproc-per-node {ranks} t.py", "make all",
]  # fmt: skip
SIZE = st.integers(1, 8)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(FORMS)), st.booleans(), SIZE, SIZE, SIZE, st.integers(0, 8), st.sampled_from([None, "a100"]),
    st.none() | st.integers(100, 9000), st.none() | st.integers(10, 59), st.sampled_from(LAUNCHES),
)  # fmt: skip
def test_a_rendered_job_file_requests_the_same(
    kind: str, named: bool, nodes: int, ranks: int, cpus: int, gpus: int, typed: str | None, mem: int | None,
    time: int | None, launch: str,
) -> None:  # fmt: skip
    forms = FORMS[kind]
    lines = [forms["name"].format("x"), forms["queue"].format("gpu")] * named
    if kind == "slurm":
        lines += [forms["nodes"].format(nodes), forms["ranks"].format(ranks), forms["cpus"].format(cpus)]
        lines += [(forms["kind"].format(typed, gpus) if typed else forms["gpus"].format(gpus))] * bool(gpus)
        lines += [forms["mem"].format(mem)] * bool(mem)
    elif kind == "pbspro":
        lines.append(forms["nodes"].format(nodes, ranks * cpus, ranks, gpus, mem or 100))
    else:
        lines.append(forms["nodes"].format(nodes, ranks, gpus))
    lines += [forms["time"].format(time)] * bool(time)
    prefix = "#SBATCH" if kind == "slurm" else "#PBS"
    body = launch.format(total=nodes * ranks, ranks=ranks)
    text = "".join(["#!/bin/bash\n", *(f"{prefix} {line}\n" for line in lines), body, "\n"])
    done = job_file(text, kind)
    remarked = " ".join(one.what for one in done.remarks)
    again = Script(rendered(done.text).partition(MARK)[0].encode(), kind)
    ours, theirs = request_of(again), request_of(Script(text.encode(), kind))
    differ = {key for key in theirs if theirs[key] != ours[key] and not (key == "name" and not named)}
    assert differ <= {key for key, word in {"cores": "core", "gpus": "GPU"}.items() if word in remarked}, (
        text,
        done.text,
        done.remarks,
    )


def request_of(script: Script) -> dict[str, object]:
    one = script.request
    chunk = next(iter(one.chunks), {}).get("ncpus")  # the ranks may not divide them
    return {
        **{key: getattr(one, key) for key in ("name", "queue", "walltime", "nodes", "gpu_type", "mem")},
        "gpus": one.gpus_per_node or 0,
        "cores": int(chunk) if chunk else (one.cpus_per_rank or 1) * (one.ranks_per_node or 1),
    }
