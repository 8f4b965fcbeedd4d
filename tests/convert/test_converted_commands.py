"""The commands of a script for another scheduler, the directory of the job, and text that is not translated."""

from __future__ import annotations

import subprocess

import pytest
from convert.conversions import ONE, convert, job_file, remarks

from jobgen.convert.to_scheduler import conversion
from jobgen.script.script import Script


@pytest.mark.parametrize(
    ("body", "target", "what"),
    [
        ("srun $ARGS python x.py", "pbspro", "srun $ARGS python x.py"),
        ("srun --mystery=1 ./a", "pbspro", "srun --mystery=1 ./a"),
        ("srun --multi-prog ./a", "pbspro", "srun --multi-prog ./a"),
        ("srun --relative=1 ./a", "pbspro", "--relative 1"),
        ("srun --cpu-bind=map_cpu:1,2 ./a", "pbspro", "--cpu-bind map_cpu:1,2"),
        ('CMD="srun ./a"', "pbspro", "srun"),
        ('eval "srun ./a"', "pbspro", "srun"),
        ("python train.py --launcher SLURM", "pbspro", "SLURM"),
        ("module load slurm", "pbspro", "slurm"),
        ("cat > x.py <<'A'\nos.environ['SLURM_PROCID']\nA", "pbspro", "SLURM_PROCID"),
        ("srun", "pbspro", "srun"),
        ("sdiag > a", "pbspro", "sdiag"),
        ("srun --version", "pbspro", "srun --version"),
        ("which srun || exit", "pbspro", "srun"),
        ("if which sinfo; then ./a; fi", "pbspro", "sinfo"),
        ("Q=/usr/bin/squeue\n$Q -u x", "pbspro", "squeue"),
        ("timeout 9 /opt/slurm/bin/scontrol ping", "pbspro", "scontrol"),
        ("seff $SLURM_JOB_ID", "pbspro", "seff $SLURM_JOB_ID"),
        ('scontrol requeue "$SLURM_JOB_ID"', "pbspro", 'scontrol requeue "$SLURM_JOB_ID"'),
        ('echo "$SLURM_CLUSTER_NAME"', "pbspro", "$SLURM_CLUSTER_NAME"),
    ],
)
def test_a_body_that_has_no_counterpart(body: str, target: str, what: str) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH -N 2\n{body}\n", target)
    assert [(remark.line, remark.what) for remark in done.remarks if remark.lost] == [
        (3 + ("<<" in body), what)
    ]


@pytest.mark.parametrize(
    ("source", "target", "line", "named"),
    [
        ("pbspro", "torque", "pbs_tmrsh a uptime", True),
        ("pbspro", "torque", "pbs_release_nodes -j $PBS_JOBID -a", True),
        ("torque", "pbspro", "checkjob -v $PBS_JOBID", True),
        ("torque", "pbspro", "msub a.sh", True),
        ("torque", "pbspro", "qsub a.sh", False),
        ("pbspro", "torque", "qstat -f $PBS_JOBID", False),
    ],
)
def test_a_command_that_only_one_pbs_has(source: str, target: str, line: str, named: bool) -> None:
    done = convert(f"#PBS -l walltime=1:00\n{line}", target, source)
    owner = {"pbspro": "PBS Pro", "torque": "Torque"}[source]
    expected = [(True, line, f"is a command of {owner}")] * named
    assert [(one.lost, one.what, one.why) for one in done.remarks if "command" in one.why] == expected


@pytest.mark.parametrize(
    ("source", "target", "line", "what", "why"),
    [
        (
            "pbspro",
            "torque",
            "qsub -J 1-3 a.sh",
            "qsub -J",
            "is an option of PBS Pro: for an array write -t 0-9",
        ),
        (
            "torque",
            "pbspro",
            "qsub -t1-3 a.sh",
            "qsub -t",
            "is an option of Torque: for an array write -J 0-9",
        ),
        ("torque", "pbspro", "pbsdsh -u uptime", "pbsdsh -u", "is an option of Torque"),
        ("torque", "pbspro", "pbsdsh -v uptime", "", ""),
        ("torque", "pbspro", "qsub -N -test a.sh", "", ""),
        ("pbspro", "torque", "qsub -t 1-3 a.sh", "", ""),
    ],
)
def test_an_option_that_only_one_pbs_has(source: str, target: str, line: str, what: str, why: str) -> None:
    done = convert(f"#PBS -l walltime=1:00\n{line}", target, source)
    assert [(one.lost, one.what, one.why) for one in done.remarks] == [(True, what, why)] * bool(what)


@pytest.mark.parametrize(
    ("line", "what", "lost"),
    [
        ('[ $(basename $0) = "slurm_script" ] && ./a', "slurm_script", True),
        ('D=$(dirname $0)\n[[ $D == *"slurmd"* ]] && D=.', "slurmd", True),
        ("case $0 in */slurm_script) D=.;; esac", "slurm_script", True),
        ("./a > $(basename $0 .sh).log", "$(basename $0 .sh)", False),
        ("me=${0##*/}\n./a > ${me%.sh}.log", "${0##*/}", False),
        ('cd "${0%.*}"\n./a', "${0%.*}", False),
        ("./a ${0/.pbs/.in}", "${0/.pbs/.in}", False),
        ('cd "${0%/*}"\n./a', "", False),
        ('me=$(basename $0)\necho "usage: $me"', "", False),
        ("usage() { echo $(basename $0); }\n./a", "", False),
        ("cat <<A\n${0##*/}\nA", "", False),
    ],
)
def test_the_name_of_the_copy_of_a_script(line: str, what: str, lost: bool) -> None:
    text = f"#!/bin/bash\n#SBATCH -n 1 -t 10\n{line}\n./b\n"
    why = (
        "is of the copy of the script: slurmd/jobID/slurm_script with Slurm, mom_priv/jobs/ID.SC with PBS Pro"
    )
    found = [one for one in convert(text, "pbspro").remarks if "copy of the script" in one.why]
    assert [(one.what, one.lost, one.why) for one in found] == [(what, lost, why)] * bool(what)
    assert bool(what) == ("copy of the script:" in str(job_file(text).remarks))
    of_pbs = convert(text.replace("#SBATCH -n 1 -t 10", "#PBS -l select=1"), "torque")
    assert "copy of the script:" not in str(of_pbs.remarks)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mpirun -np 4 ./a", "srun --ntasks=4 --kill-on-bad-exit=1 --mpi=pmix ./a"),
        (
            "mpirun -n 4 -ppn 2 -f hosts -genv A 1 ./a",
            "env A=1 srun --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --mpi=pmi2 ./a",
        ),
        (
            "mpiexec -n 8 --ppn 4 --depth=8 --cpu-bind depth ./a -n 3",
            "srun --ntasks=8 --ntasks-per-node=4 --cpus-per-task=8 --cpu-bind=cores --kill-on-bad-exit=1 ./a -n 3",
        ),
        ('mpirun -np "$n" -x A=b ./a', 'env A=b srun --ntasks="$n" --kill-on-bad-exit=1 --mpi=pmix ./a'),
        ("mpirun --mystery ./a", "mpirun --mystery ./a"),
        ("# mpirun -np 4 ./a", "# mpirun -np 4 ./a"),
        ("echo 'mpirun -np 4 $PBS_JOBID'", "echo 'mpirun -np 4 $PBS_JOBID'"),
        ('cd "${PBS_O_WORKDIR:-/tmp}"', 'cd "${SLURM_SUBMIT_DIR:-/tmp}"'),
        ("cat <<A\n$PBS_JOBID\nA", "cat <<A\n$SLURM_JOB_ID\nA"),
    ],
)
def test_pbs_bodies(body: str, expected: str) -> None:
    script = f"#!/bin/bash\n#PBS -l select=1\ncd /work\n{body}\n"
    assert convert(script, "slurm").text.partition("cd /work\n")[2] == f"{expected}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("srun -n8 ./a", 'mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none $(mpi_exports) ./a'),
        (
            # srun ignores it: "can't honor --ntasks-per-node set to 1 which doesn't match the requested tasks 8"
            "srun --ntasks-per-node 1 -N 2 ./a",
            'mpirun -np 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none $(mpi_exports) ./a',
        ),
        ("echo $((SLURM_JOB_ID % 7)) $SLURM_JOB_ID", "echo $((${PBS_JOBID%%[!0-9]*} % 7)) ${PBS_JOBID%%[!0-9]*}"),
        ("scontrol show hostnames", "awk '!seen[$1]++' \"$PBS_NODEFILE\""),
        ("echo $SLURM_NNODES", "echo $SLURM_NNODES"),
    ],
)  # fmt: skip
def test_slurm_bodies(body: str, expected: str) -> None:
    script = f"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4\nset -e\n{body}\n"
    text = convert(script, "pbspro").text
    assert text.endswith(f"{expected}\n")
    assert ("SLURM_NNODES=$(sort" in text) == ("SLURM_NNODES" in body)


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("cd $PBS_O_WORKDIR", False),
        ("set -e\nmodule load x\ncd $PBS_O_WORKDIR", False),
        ("source env.sh\ncd $PBS_O_WORKDIR", True),
        ("echo $PWD\ncd $PBS_O_WORKDIR", True),
        ("if true; then cd x; fi", True),
    ],
)
def test_a_script_that_leaves_its_first_directory(text: str, moves: bool) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l select=1\n{text}\n", "slurm").text
    assert ('cd "$HOME" || exit 1' in done) == moves


@pytest.mark.parametrize("target", ["torque", "slurm"])
def test_a_job_that_starts_where_it_was_submitted(target: str) -> None:
    done = convert("#PBS -l ncpus=1\n#PBS -l wd\n./a", target, "pbspro")
    assert ('cd "$PBS_O_WORKDIR" || exit 1' in done.text) == (target == "torque")
    assert "HOME" not in done.text


@pytest.mark.parametrize(
    ("first", "text", "lost"),
    [
        ("#!/usr/bin/env python3", 'import os\nos.environ["SLURM_JOB_ID"]', ["cd", "SLURM_JOB_ID"]),
        ("#!/bin/csh", "setenv X $SLURM_JOB_ID\nsrun ./a", ["cd", "SLURM_JOB_ID", "srun"]),
    ],
)
def test_a_script_that_is_not_for_bash_gets_no_lines(first: str, text: str, lost: list[str]) -> None:
    done = convert(f"{first}\n#SBATCH -N 1\n{text}\n", "pbspro")
    assert done.text.endswith(f"\n{text}\n")
    assert "PBS_O_WORKDIR" not in done.text
    assert {one.what.split()[0] for one in done.remarks if one.lost} == set(lost)


def test_a_script_without_directives_gets_none() -> None:
    text = "cat <<END > job.sh\n#SBATCH -n 4\n#SBATCH -t 9\nhostname\nEND"
    done = convert(text, "pbspro", "slurm")
    assert done.text == f"#!/bin/bash\n{text}\n"
    assert remarks(done) == [(False, 1, "without #SBATCH"), (True, 3, "#SBATCH -n 4")]


@pytest.mark.parametrize(("options", "named"), [("-p gpu", True), ("--account=x", True), ("-N 2", False)])
def test_a_step_without_directives_may_request_a_job(options: str, named: bool) -> None:
    text = f"srun {options} -n 4 ./a\n"
    for done in (convert(text, "pbspro", "slurm"), job_file(text, "slurm")):
        assert any("it requests one itself" in one.why for one in done.remarks) == named


def test_directives_of_a_here_document_have_a_remark() -> None:
    done = convert(f"{ONE}cat <<END > job.sh\n#SBATCH -n 4\n#SBATCH -t 9\nhostname\nEND", "pbspro")
    assert remarks(done) == [(True, 4, "#SBATCH -n 4")]


def test_carriage_returns() -> None:
    source = b"#!/bin/bash\r\n#PBS -l nodes=1:ppn=1\r\nmodule load <other stuff>\r\n./a\r\n"
    done = conversion.convert(Script(source, "torque"), "slurm")
    assert "\r" not in done.text
    assert (False, 1, "carriage returns") in remarks(done)
    assert subprocess.run(["bash", "-n"], input=source, check=False).returncode == 0


def test_text_that_is_no_bash_for_the_reader() -> None:
    done = convert(f"{ONE}echo )\n./a", "pbspro")
    assert (True, 3, "echo )") in remarks(done)
    assert remarks(convert(f"{ONE}./a \\", "pbspro")) == []


def test_a_program_in_another_folder_is_not_the_script() -> None:
    text = "#!/bin/bash\n#PBS -l nodes=1:ppn=2\nmpirun ./compiled/main\nmpirun bin/main\n./compiled/main\n"
    done = conversion.convert(Script(text.encode(), "torque", name="main"), "slurm")
    assert not [one for one in done.remarks if one.what == "main"]
    own = f"{text}cp run/main kept\n"
    done = conversion.convert(Script(own.encode(), "torque", name="main"), "slurm")
    assert [one.line for one in done.remarks if one.what == "main"] == [6]


_HOSTS = "scontrol show hostnames $SLURM_JOB_NODELIST"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"H=$({_HOSTS} | sort | head -n 1)", 3),
        (f"{_HOSTS} | sort -u > hosts", 3),
        (f"{_HOSTS} > hosts\nH=$(sort hosts | head -1)", 4),
        (f"{_HOSTS} > hosts\nsort < hosts > ordered", 4),
        (f"{_HOSTS} > hosts\ncat hosts | sort > ordered", 4),
        (f'F=hosts.$SLURM_JOB_ID\n{_HOSTS} > "$F"\nsort -o ordered ${{F}}', 5),
        (f"F=hosts\n{_HOSTS} > hosts\nsort $F > ordered", 5),
        (f"H=$({_HOSTS})\nfor h in $(echo $H | tr ' ' '\\n' | sort); do echo $h; done", 4),
        (f'H=( $({_HOSTS}) )\nsort <<< "${{H[*]}}" > ordered', 4),
    ],
)
def test_hosts_that_are_sorted_may_begin_with_another_one(text: str, line: int) -> None:
    done = convert(f"#SBATCH -N 2\n{text}", "pbspro")
    found = [(one.line, one.lost) for one in done.remarks if "order of their names" in one.why]
    assert found == [(line, False)]
    assert "order of their names" not in str(convert(f"{ONE}{text}", "pbspro").remarks)


@pytest.mark.parametrize(
    "text",
    [
        f"N=$({_HOSTS} | sort -u | wc -l)",
        f"{_HOSTS} > hosts\nN=$(sort -u hosts | wc -l)",
        f"{_HOSTS} > hosts\nsort data > hosts.sorted",
        f"H=$({_HOSTS} | head -n 1)\nls | sort > files",
        "sort hosts > ordered",
    ],
)
def test_hosts_that_are_only_counted_have_no_order(text: str) -> None:
    done = convert(f"#SBATCH -N 2\n{text}", "pbspro")
    assert not [one for one in done.remarks if "order of their names" in one.why]
