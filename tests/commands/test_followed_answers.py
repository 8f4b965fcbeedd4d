"""No answer to options of other programs is refused when it is followed: it makes a script, or says that there is no counterpart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import foreign_forms
from support.foreign_forms import Form

COUNT = st.integers(1, 16)
SBATCH = st.one_of(
    *(
        COUNT.map(form.format)
        for form in (
            *(
                "-N {}",
                "-n {}",
                "-c {}",
                "-G {}",
                "--ntasks-per-node={}",
                "--gres=gpu:{}",
                "--gpus-per-task={}",
            ),
            *(
                "--gpus-per-node={}",
                "--cpus-per-gpu={}",
                "--ntasks-per-gpu={}",
                "--mem-per-cpu={}G",
                "--mem={}G",
            ),
            *(
                "--mem-per-gpu={}G",
                "--gres=gpu:a100:{}",
                "--mincpus={}",
                "--nodes={}",
                "--gpus={}",
                "--time={}",
            ),
            *("--ntasks={}", "--cpus-per-task={}", "--array=0-{}", "--gpus-per-socket={}", "--gres=npu:{}"),
        )
    ),
    st.sampled_from(
        [
            *(
                "--exclusive",
                "--requeue",
                "--begin=now+1hour",
                "--signal=B:USR1@120",
                "--export=ALL,A=1",
                "-s",
            ),
            *(
                "--mail-user=a@b.c",
                "--dependency=afterok:12",
                "--comment=a",
                "-t 2h",
                "-C a",
                "-N 1-4",
                "-e err",
            ),
            *(
                "--gres=gpu:2,nvme:1",
                "--gres=gpu:a:1,gpu:b:2",
                "--nice",
                "--hint=nomultithread",
                "-w n1",
                "--mem=0",
            ),
        ]
    ),
)
CHUNK = st.builds(
    lambda count, parts: ":".join([str(count), *parts]),
    st.integers(1, 4),
    st.lists(
        st.one_of(
            *(
                COUNT.map(f"{name}={{}}".format)
                for name in ("ncpus", "ngpus", "mpiprocs", "ompthreads", "mem")
            )
        ),
        unique_by=lambda part: part.partition("=")[0],
    ),
)
NODES = st.builds(
    lambda count, cores, devices: f"{count}:ppn={cores}" + f":gpus={devices}" * (devices > 0),
    st.integers(1, 4),
    COUNT,
    st.integers(0, 4),
)
OTHERS = [
    "-l walltime=2h",
    "-N train",
    "-q gpu",
    "-v A=1",
    "-j oe",
    "-W depend=afterok:12",
    "-l place=excl",
    "-r n",
]
PBSPRO = st.one_of(
    st.lists(CHUNK, min_size=1, max_size=3).map(lambda chunks: f"-l select={'+'.join(chunks)}"),
    *(COUNT.map(form.format) for form in ("-l ncpus={}", "-l mem={}gb", "-l ngpus={}", "-J 0-{}")),
    st.sampled_from(OTHERS),
)
TORQUE = st.one_of(
    st.lists(NODES, min_size=1, max_size=3).map(lambda nodes: f"-l nodes={'+'.join(nodes)}"),
    *(COUNT.map(form.format) for form in ("-l procs={}", "-l mem={}gb", "-l pmem={}gb", "-t 0-{}")),
    st.sampled_from(OTHERS),
)
LAUNCHERS = st.one_of(
    *(
        COUNT.map(form.format)
        for form in (
            *(
                "--nproc_per_node={}",
                "--nnodes={}",
                "--num_gpus={}",
                "--num_nodes={}",
                "--num_processes={}",
                "-np {}",
            ),
            *("-ppn {}", "--npernode {}", "--map-by ppr:{}:node", "--max-restarts={}", "--num_machines={}"),
        )
    ),
    st.sampled_from(
        [
            *(
                "--nnodes=1:4",
                "--standalone",
                "--bind-to core",
                "-x A=1",
                "--mixed_precision=bf16",
                "--save_pid",
            ),
            *("--exclude node1", "--include=node1:0", "--cpu", "--rdzv_backend=c10d", "--tee=3"),
        ]
    ),
)
OWN = st.one_of(
    *(
        COUNT.map(form.format)
        for form in (
            "--nodes {}",
            "--gpus-per-node {}",
            "--ranks-per-node {}",
            "--cpus-per-rank {}",
            "--mem {}G",
        )
    ),
    st.sampled_from(["--launcher mpirun", "--launcher deepspeed", "--accelerator cpu", "--exclusive"]),
)
SECTIONS = {"sbatch": SBATCH, "qsub of PBS Pro": PBSPRO, "qsub of Torque": TORQUE}


@pytest.mark.parametrize("section", SECTIONS)
@given(data=st.data())
def test_no_answer_is_refused_when_followed(section: str, data: st.DataObject) -> None:
    kind = st.one_of(SECTIONS[section], SECTIONS[section], SBATCH, LAUNCHERS)
    options = data.draw(st.lists(kind, min_size=1, max_size=4, unique_by=lambda one: one[:6]))
    own = data.draw(st.lists(OWN, max_size=1))
    form = Form(section, " ".join([*own, *options]), {})
    followed = foreign_forms.follow(form)
    assert followed.status == 0 or any(no_counterpart(one) for one in followed.answers), (
        f"{form}: {followed.answers}"
    )


def no_counterpart(answer: str) -> bool:
    return "no counterpart" in answer
