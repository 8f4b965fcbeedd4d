"""Directives for another scheduler, and remarks on those that it does not support."""

from __future__ import annotations

import re

import pytest
from convert.conversions import ONE, convert, job_file, remarks, rendered, values

from jobgen.convert.to_scheduler import conversion
from jobgen.script.script import Script


@pytest.mark.parametrize(
    ("text", "target", "what"),
    [
        ("#PBS -l filesystems=home", "slurm", "-l filesystems=home"),
        ("#PBS -l select=1:ncpus=2:host=n7", "slurm", "host=n7 of -l select"),
        ("#PBS -l select=1:ncpus=2:scratch_local=9gb", "slurm", "scratch_local=9gb of -l select"),
        ("#PBS -l place=pack\n#PBS -l select=2", "slurm", "-l place=pack"),
        ("#PBS -k oe", "slurm", "-k oe"),
        ("#PBS -k doe", "torque", "-k doe"),
        ("#SBATCH -p with_16_letters_", "pbspro", "the queue with_16_letters_"),
        ("#SBATCH -p with_16_letters_", "torque", "the queue with_16_letters_"),
        ("#PBS -S /bin/zsh", "slurm", "-S /bin/zsh"),
        ("#PBS -W group_list=x", "slurm", "-W group_list=x"),
        ("#PBS -W depend=on:3", "slurm", "-W depend=on:3"),
        ("#PBS -l walltime=1h", "slurm", "-l walltime=1h"),
        ("#PBS -l ngpus=16\n#PBS -l select=1", "slurm", "-l ngpus=16"),
        ("#SBATCH --constraint=a100", "pbspro", "--constraint=a100"),
        ("#SBATCH --constraint=[a100*2&ib]", "torque", "--constraint=[a100*2&ib]"),
        ("#PBS -l select=1:gpu_type=a100", "slurm", "gpu_type=a100 of -l select"),
        ("#SBATCH --qos=long", "pbspro", "--qos=long"),
        ("#SBATCH --comment='night run'", "torque", "--comment=night run"),
        ("#SBATCH --licenses=matlab:2", "torque", "--licenses=matlab:2"),
        ("#SBATCH --licenses=a|b", "pbspro", "--licenses=a|b"),
        ("#SBATCH --licenses=a@server:2", "pbspro", "--licenses=a@server:2"),
        ("#PBS -l select=1\n#PBS -l matlab=2", "slurm", "-l matlab=2"),
        ("#SBATCH -p gpu --reservation=night", "pbspro", "--reservation=night"),
        ("#SBATCH --begin=now+2hours", "pbspro", "--begin=now+2hours"),
        ("#PBS -l select=1\n#PBS -a 12011000", "slurm", "-a 12011000"),
        ("#PBS -l select=1\n#PBS -p 5", "slurm", "-p 5"),
        ("#SBATCH --nice=5000", "torque", "--nice=5000"),
        ("#SBATCH --exclusive=user", "pbspro", "--exclusive=user"),
        ("#SBATCH --mail-type=END,TIME_LIMIT_80", "torque", "--mail-type=END,TIME_LIMIT_80"),
        ("#SBATCH --mail-type=TIME_LIMIT\n#SBATCH --mail-type=END", "torque", "--mail-type=TIME_LIMIT,END"),
        ("#PBS -l select=1\n#PBS -m aj", "slurm", "-m aj"),
        ("#SBATCH --dependency=afterok:12_3", "pbspro", "--dependency=afterok:12_3"),
        ("#SBATCH --dependency=aftercorr:12", "torque", "--dependency=aftercorr:12"),
        ("#SBATCH --gres=gpu:a100:4", "pbspro", "--gres=gpu:a100:4"),
        ("#SBATCH --nodes=1-4", "pbspro", "--nodes=1-4"),
        ("#SBATCH --dependency=singleton", "pbspro", "--dependency=singleton"),
        ("#SBATCH --output=%x-%5j.log", "pbspro", "the output file %x-%5j.log"),
        ("#SBATCH --array=1-4 --output=a-%A.log", "pbspro", "the output file a-%A.log"),
        ("#SBATCH --mem=0", "pbspro", "--mem=0"),
        ("#SBATCH --gres=dcu:4", "pbspro", "--gres=dcu:4"),
        ("#SBATCH --cpus-per-task=$N", "pbspro", "--cpus-per-task=$N"),
        ("#SBATCH --mem=lots", "pbspro", "--mem=lots"),
        ("#SBATCH --gres=gpu:2,nvme:100", "pbspro", "--gres=gpu:2,nvme:100"),
        ("#SBATCH --nodes=2 --gpus=3", "pbspro", "--gpus=3"),
        ("#SBATCH --cpus-per-gpu=4", "pbspro", "--cpus-per-gpu=4"),
        ("#SBATCH --nodes=2 --ntasks=5", "pbspro", "--ntasks=5"),
        ("#SBATCH -N 2 --time=0", "torque", "--time=0"),
        ("#SBATCH -N 2 --time=UNLIMITED", "torque", "--time=UNLIMITED"),
        ("#SBATCH -N 1 --gres=gpu:1080ti:2", "pbspro", "--gres=gpu:1080ti:2"),
        ("#SBATCH -N 1 --gres=gpu:tesla-k80:2,tmpfs:10", "pbspro", "--gres=gpu:tesla-k80:2,tmpfs:10"),
        ("#SBATCH -N 1 --gpus=2080:2", "torque", "--gpus=2080:2"),
    ],
)
def test_what_has_no_counterpart_stays_as_a_comment(text: str, target: str, what: str) -> None:
    done = convert(f"#!/bin/bash\n{text}\nhostname\n", target)
    assert what in [remark.what for remark in done.remarks if remark.lost]
    assert f"# not translated: {what}: " in done.text


@pytest.mark.parametrize(
    ("source", "text", "target", "expected"),
    [
        ("slurm", "--begin=2026-12-01T10:00", "pbspro", "-a 202612011000"),
        ("slurm", "--begin=2026-12-01", "torque", "-a 202612010000"),
        ("pbspro", "-a 202612011000.30", "slurm", "--begin=2026-12-01T10:00:30"),
        ("torque", "-a 2612011000", "slurm", "--begin=2026-12-01T10:00"),
        ("torque", "-a 2000", "slurm", "--begin=20:00"),
        ("torque", "-a 12011000", "pbspro", "-a 12011000"),
        ("slurm", "--nice", "torque", "-p -100"),
        ("slurm", "--nice=-5", "pbspro", "-p 5"),
        ("pbspro", "-p -5", "slurm", "--nice=5"),
        ("slurm", "--qos=high", "torque", "-l qos=high"),
        ("torque", "-W x=QOS:high", "slurm", "--qos=high"),
        ("slurm", "--reservation=night", "torque", "-l advres=night"),
        ("slurm", "--reservation=R12", "pbspro", "-q R12"),
        ("torque", "-W x=FLAGS:ADVRES:night.1", "slurm", "--reservation=night.1"),
        ("pbspro", "-q R12", "slurm", "--reservation=R12"),
        ("slurm", "--licenses=matlab:2,ansys", "pbspro", "-l ansys=1"),
        ("slurm", "--constraint=a100&ib", "torque", "-l nodes=1:ppn=1:a100:ib"),
        ("torque", "-l nodes=2:ppn=1:a100:ib", "slurm", "--constraint=a100&ib"),
        ("slurm", "--constraint=gpu_type=a100", "pbspro", "-l select=1:gpu_type=a100"),
        ("slurm", "--exclusive", "torque", "-l naccesspolicy=singlejob"),
        ("torque", "-n", "slurm", "--exclusive"),
        ("slurm", "--dependency=12", "pbspro", "-W depend=afterany:12"),
        ("slurm", "--mail-type=NONE", "pbspro", "-m n"),
        ("slurm", "--mail-type=BEGIN\n#SBATCH --mail-type=END", "pbspro", "-m be"),
        ("slurm", "--mail-type=START,END", "pbspro", "-m e"),  # Slurm ignores the other word
        ("torque", "-m n", "slurm", "--mail-type=NONE"),
        ("slurm", "--array=1-4 --output=%x-%j-%a.log", "torque", "-t 1-4"),
        ("torque", "-o a-${PBS_JOBID}-$PBS_ARRAYID", "slurm", "--output=a-%j-%a"),
        ("torque", "-o a-$PBS_ARRAYID", "pbspro", "-o a-^array_index^"),
        ("torque", "-W depend=afterokarray:12[].head", "pbspro", "-W depend=afterok:12[]"),
        ("pbspro", "-W depend=afterany:12[].head:13", "torque", "-W depend=afteranyarray:12[]"),
        ("torque", "-W depend=afterstartarray:12[]", "slurm", "--dependency=after:12"),
        ("pbspro", "-l select=1:naccelerators=8", "slurm", "--gres=npu:8"),
        ("torque", "-l nodes=1:ppn=1,vmem=8gb", "pbspro", "-l select=1:ncpus=1:mpiprocs=1:vmem=8gb"),
        ("torque", "-l nodes=2,vmem=9g", "pbspro", "-l select=2:vmem=4608mb"),
        ("torque", "-l vmem=9gb", "pbspro", "-l select=1:vmem=9gb"),
        ("pbspro", "-l ncpus=1,vmem=9gb", "torque", "-l vmem=9gb"),
        ("torque", "-koe", "pbspro", "-k oe"),
        ("pbspro", "-W umask=0027,group_list=a,b", "torque", "-W umask=0027"),
        ("pbspro", "-W umask=0027,group_list=a", "torque", "-W group_list=a"),
        ("torque", "-W umask=22", "pbspro", "-W umask=026"),  # Torque: decimal
        ("pbspro", "-W umask=22", "torque", "-W umask=022"),
        ("torque", "-W stageout=a@h:/b", "pbspro", "-W stageout=a@h:/b"),
        ("torque", "-u me", "pbspro", "-u me"),
        ("pbspro", "-l select=1 -l cput=10:00:00", "torque", "-l cput=10:00:00"),
    ],
)
def test_what_jobgen_has_options_for(source: str, text: str, target: str, expected: str) -> None:
    prefix = {"slurm": "#SBATCH"}
    done = convert(f"#!/bin/bash\n{prefix.get(source, '#PBS')} {text}\nhostname\n", target, source)
    assert [remark.what for remark in done.remarks if remark.lost] == []
    line = f"{prefix.get(target, '#PBS')} {expected}"
    assert any(one == line or one.startswith(f"{line},") for one in done.text.split("\n")), done.text


def test_a_partition_with_the_name_of_a_reservation() -> None:
    done = convert("#!/bin/bash\n#SBATCH --partition=R0\n#SBATCH --nodes=1\nhostname\n", "pbspro")
    assert "#PBS -q" not in done.text
    assert "PBS Pro reads a queue of this name as a reservation" in str(done.remarks)


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_of_several_partitions_the_first(target: str) -> None:
    done = convert("#SBATCH -N 1\n#SBATCH -p a,b,c\n./a", target)
    assert "#PBS -q a\n" in done.text
    assert remarks(done) == [(True, 3, "the queues b,c")]


@pytest.mark.parametrize("target", ["pbspro", "torque"])
@pytest.mark.parametrize(
    ("option", "lost"),
    [
        ("--wait-all-nodes=1", False),
        ("--wait-all-nodes=0", True),
        ("--parsable", False),
        ("--quiet", False),
        ("-v", False),
        ("--ignore-pbs", False),
        ("--gpus=0", False),
        ("--mail-type=ALL,TIME_LIMIT", False),
        ("--mail-type=END,TIME_LIMIT", True),
    ],
)
def test_what_every_scheduler_does_is_not_lost(option: str, lost: bool, target: str) -> None:
    done = convert(f"{ONE}#SBATCH {option}\nls", target)
    assert [one.lost for one in done.remarks] == [True] * lost
    assert ("not translated" in done.text) == lost


@pytest.mark.parametrize(
    ("text", "target", "names"),
    [
        ("#SBATCH --export=A,HOME,B=1", "pbspro", "A"),
        ("#PBS -l nodes=1:ppn=1\n#PBS -v A,B=1", "pbspro", "A"),
        ("#SBATCH --export=PATH,B=1", "pbspro", ""),
        ("#SBATCH --export=A", "torque", ""),
        ("#SBATCH --export=None", "pbspro", ""),
    ],
)
def test_variables_that_must_be_set_at_the_submission(text: str, target: str, names: str) -> None:
    found = [one for one in convert(f"{text}\n./a", target).remarks if "qsub refuses the script" in one.why]
    assert [(one.lost, one.what) for one in found] == [(False, f"the variables {names}")] * bool(names)


def test_a_number_without_an_option_requests_no_nodes_of_cray() -> None:
    """sbatch refuses --c, which may be several options."""
    assert remarks(convert("#SBATCH -N 1\n#SBATCH --c 4\n./a", "pbspro")) == [
        (True, 3, "--c"),
        (True, 3, "4"),
    ]


def test_no_limit_is_no_limit_of_zero_seconds() -> None:
    assert "walltime" not in convert("#SBATCH -N 1\n#SBATCH -t 0-0\n./a", "pbspro").text
    assert remarks(convert("#SBATCH -N 1\n#SBATCH -t 0-0\n./a", "pbspro")) == [(True, 3, "--time=0-0")]


def test_one_chunk_is_packed_on_one_node() -> None:
    done = convert("#PBS -l select=1:ncpus=1\n#PBS -l place=pack\n/opt/a", "slurm")
    assert "#SBATCH --nodes=1\n" in done.text
    assert remarks(done) == []


@pytest.mark.parametrize(("shell", "first"), [("", "#!/bin/bash"), ("#PBS -S /bin/sh\n", "#!/bin/sh")])
def test_slurm_gets_the_first_line_that_it_demands(shell: str, first: str) -> None:
    script = Script(f"{shell}#PBS -l nodes=1:ppn=1\n/opt/a\n".encode(), "torque")
    done = conversion.convert(script, "slurm")
    assert done.text.startswith(f"{first}\n#SBATCH --nodes=1\n")
    assert remarks(done) == [(False, 1, first)]
    assert conversion.convert(script, "pbspro").text.startswith("#PBS")


def test_remarks_name_their_own_directive() -> None:
    done = convert("#SBATCH -N 1\n#SBATCH -J n\n#SBATCH -c 4\n#SBATCH -o %x_%j.o\n./a", "torque")
    assert remarks(done) == [(False, 4, "--cpus-per-task=4")]
    done = convert("#SBATCH -N 1\n#SBATCH -J n\n#SBATCH -c 4\n#SBATCH -o %x_%j.o\n./a", "pbspro")
    assert remarks(done) == [(False, 5, "--output=%x_%j.o")]


def test_commented_directives_have_no_remark() -> None:
    done = convert("#SBATCH -N 1\n##SBATCH -a 1-2\n##SBATCH -x\n##SBATCH -y\n./a", "pbspro")
    assert remarks(done) == []


def test_a_directive_without_its_value() -> None:
    assert (True, 3, "-o") in remarks(convert(f"{ONE}#SBATCH -o\n#SBATCH -e err\n./a", "pbspro"))


@pytest.mark.parametrize(("target", "kept"), [("torque", True), ("slurm", False)])
def test_the_shell_of_a_directive(target: str, kept: bool) -> None:
    done = convert("#PBS -l select=1:ncpus=1\n#PBS -S /bin/bash\n./a", target, "pbspro")
    assert ("#PBS -S /bin/bash\n" in done.text) == kept
    assert "-S" not in convert(f"{ONE}#SBATCH --account=<your account>\n./a", "torque").text


def test_a_word_for_the_events_of_mail() -> None:
    done = convert("#PBS -l select=1\n#PBS -m mail_settings\n./a", "slurm")
    assert "--mail-type" not in done.text
    assert (True, 3, "-m mail_settings") in remarks(done)


def test_mail_without_an_event() -> None:
    assert "#PBS -m n\n" in convert("#SBATCH -N 1 --mail-user=a@b\n./a", "pbspro").text
    assert "#SBATCH --mail-type=FAIL\n" in convert("#PBS -l select=1\n#PBS -M a@b\n./a", "slurm").text


@pytest.mark.parametrize(
    ("options", "expected", "remark"),
    [
        ("-n 4 --gres=gpu:1 --mem=16G", "1:ncpus=4:mpiprocs=4:ngpus=1:mem=16gb", "--mem=16G of each node"),
        ("-n 1 --gres=gpu:2 --mem=16G", "1:ncpus=1:mpiprocs=1:ngpus=2:mem=16gb", ""),
        ("-n 4 -c 6 --mem-per-cpu=8G", "4:ncpus=6:mem=48gb", ""),
        ("-N 1 -n 4 -c 6 --mem-per-cpu=8G", "1:ncpus=24:mpiprocs=4:mem=192gb", ""),
        ("-N 2 -n 8 --ntasks-per-node=8", "2:ncpus=4:mpiprocs=4", "--ntasks-per-node=8, --ntasks=8"),
        ("-N 2 -n 8 --ntasks-per-node=4", "2:ncpus=4:mpiprocs=4", ""),
        ("--ntasks-per-node=8 --gres=gpu:1", "1:ncpus=8:mpiprocs=8:ngpus=1", ""),
        ("--mem=9G\n#SBATCH -c 2 --mem-per-cpu=1G", "1:ncpus=2:mem=2gb", ""),
        ("-N 4 -n 2", "2:ncpus=1:mpiprocs=1", "--nodes=4"),
        ("--gpus=8", "1:ngpus=8", "--gpus=8"),
        ("--gpus=4 --ntasks-per-gpu=1 -c 2", "4:ncpus=2:ngpus=1", ""),
        ("-N 2 --gpus-per-node=4 --ntasks-per-gpu=1 -c 2", "2:ncpus=8:mpiprocs=4:ngpus=4", ""),
        ("-N 2 --gpus=4 --ntasks-per-gpu=2 -c 2", "2:ncpus=8:mpiprocs=4:ngpus=2", ""),
        ("-N 2 --exclusive", "2", "--exclusive"),
    ],
)
def test_what_slurm_decides_itself(options: str, expected: str, remark: str) -> None:
    done = convert(f"#!/bin/bash\n#SBATCH {options}\nhostname\n", "pbspro")
    assert f"#PBS -l select={expected}\n" in done.text
    assert ", ".join(one.what for one in done.remarks) == remark


@pytest.mark.parametrize(
    ("request_", "expected", "remark"),
    [
        ("select=2:system=polaris", ["--gpus-per-node=4", "--exclusive"], "ALCF Polaris gives whole nodes"),
        ("select=2:system=unknown", ["--nodes=2"], "names no cores"),
        ("select=1:ngpus=2", ["--gpus-per-node=2"], "names no cores: if the site gives some with each GPU"),
        ("nodes=2", ["--nodes=2"], "names no cores: if the site gives whole nodes"),
        ("nodes=1:gpus=2", ["--gpus-per-node=2"], "names no cores: if the site gives some with each GPU"),
        ("ncpus=8,mem=4gb,ngpus=1", ["--nodes=1", "--cpus-per-task=8", "--mem=4G", "--gpus-per-node=1"], "one node"),
        ("select=2:ncpus=2:mpiprocs=4", ["--ntasks-per-node=4", "--cpus-per-task=1"], "1 for each of 4"),
        ("select=2:ncpus=9:mpiprocs=4", ["--cpus-per-task=2"], "2 for each of 4"),
        ("select=2:ncpus=4:mem=lots", ["--nodes=2"], "mem=lots cannot be read"),
        ("select=2:ncpus=4:ngpus=X", ["--nodes=2"], "ngpus=X cannot be read"),
        ("ncpus=", [], "cannot be read"),
        ("mem={memory}", [], "cannot be read"),
        ("select=2:ncpus=8:mpiprocs=2:ompthreads=4", ["export OMP_NUM_THREADS=4"], ""),
    ],
)  # fmt: skip
def test_nodes_of_a_site(request_: str, expected: list[str], remark: str) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l {request_}\n#PBS -l place=scatter\nhostname\n", "slurm")
    assert all(one in done.text for one in expected), done.text
    assert remark in str(done.remarks)


@pytest.mark.parametrize(
    ("request_", "expected", "remark"),
    [
        ("-l select=2:ncpus=4 -l filesystems=home:flare", ["--gpus-per-node=12", "--exclusive"], "ALCF Aurora gives whole nodes"),
        ("-l select=2:ngpus=2 -l filesystems=flare", ["--gpus-per-node=2", "--exclusive"], "ALCF Aurora gives whole nodes"),
        ("-l nodes=2:ppn=4 -q debug-scaling -l filesystems=home:eagle", ["--exclusive"], "ALCF Polaris gives whole nodes, of 4"),
        ("-l select=1 -q workq -l filesystems=home:eagle", ["--exclusive"], "ALCF Crux gives whole nodes'"),
        ("-l select=1 -q debug-scaling -l filesystems=home:x", ["--nodes=1"], "or ALCF Sophia, which gives whole nodes"),
        ("-q debug -l filesystems=home:flare", ["--gpus-per-node=12", "--exclusive"], "ALCF Aurora gives whole nodes"),
        ("-l select=1:ncpus=4 -l storage=scratch/a", ["--nodes=1"], ""),
    ],
)  # fmt: skip
def test_a_site_by_a_directive_that_it_demands(request_: str, expected: list[str], remark: str) -> None:
    done = convert(f"#!/bin/bash\n#PBS {request_}\nhostname\n", "slurm")
    assert all(one in done.text for one in expected), done.text
    assert ("--exclusive" in done.text) == ("--exclusive" in expected)
    assert remark in str(done.remarks)
    assert ("whole nodes" in str(done.remarks)) == bool(remark)


@pytest.mark.parametrize(("queue", "partition"), [("short@pbs1.x.org", "short"), ("@pbs1.x.org", None)])
def test_a_queue_of_a_server(queue: str, partition: str | None) -> None:
    done = convert(f"#PBS -q {queue}\n./a", "slurm")
    found = [line for line in done.text.split("\n") if "--partition" in line]
    assert found == [f"#SBATCH --partition={partition}"] * bool(partition)
    assert (True, 2, "the server pbs1.x.org") in remarks(done)
    assert f"#PBS -q {queue}\n" in convert(f"#PBS -q {queue}\n./a", "torque").text


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_script_that_requests_nothing(target: str) -> None:
    done = convert("#SBATCH -t 10\n./a", target)
    assert not any(one in done.text for one in ("select", "nodes=", "place"))
    assert remarks(done) == []


@pytest.mark.parametrize(
    ("option", "target", "request_"),
    [
        ("--mem=1G", "torque", "-l nodes=1:ppn=1\n#PBS -l mem=1gb"),
        ("--mem=1G", "pbspro", "-l select=1:mem=1gb\n#PBS -l place=scatter"),
        ("--exclusive", "pbspro", "-l select=1\n#PBS -l place=scatter:excl"),
        ("-N 1", "torque", "-l nodes=1:ppn=1"),
    ],
)
def test_a_script_that_requests_something(option: str, target: str, request_: str) -> None:
    text = convert(f"#SBATCH -t 10 {option}\n./a", target).text
    assert all(f"#PBS {one}\n" in text for one in request_.split("\n#PBS "))


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ("nodes=n3:ppn=4", "names a host"),
        ("nodes=n3:ppn=4:big", "names a host, and big has no counterpart"),
        ("nodes=1:ppn=4:gpus=2:shared", "shared has no counterpart"),
    ],
)
def test_a_host_of_a_request_is_named(request_: str, why: str) -> None:
    done = convert(f"#PBS -l {request_}\n./a", "slurm")
    assert [one.why for one in done.remarks if one.lost] == [f"{why} in Slurm"]


def test_a_license_is_a_resource_of_the_site() -> None:
    done = convert("#SBATCH -N 1 -L ansys:2\n./a", "pbspro")
    assert "#PBS -l ansys=2\n" in done.text
    assert remarks(done) == [(False, 2, "--licenses=ansys:2")]


@pytest.mark.parametrize("request_", ["nodes=1:ppn=8,mem=8", "select=1:ncpus=2:mem=512kb"])
def test_a_size_of_less_than_a_mebibyte_has_a_remark(request_: str) -> None:
    done = convert(f"#PBS -l {request_}\n./a", "slurm")
    assert "#SBATCH --mem=1M\n" in done.text
    assert [one.lost for one in done.remarks if "1 MiB is requested" in one.why] == [False]


_MAIL = [
    ("#PBS -t 1-4 -m ae\n#PBS -l nodes=1:ppn=2", "slurm", "#SBATCH --mail-type=END,FAIL,ARRAY_TASKS"),
    ("#PBS -t 1-4 -m ae\n#PBS -l nodes=1:ppn=2", "pbspro", "#PBS -m aej"),
    ("#PBS -t 1-4 -M me@x.org\n#PBS -l nodes=1:ppn=2", "slurm", "#SBATCH --mail-type=FAIL,ARRAY_TASKS"),
    ("#PBS -t 1-4 -M me@x.org\n#PBS -l nodes=1:ppn=2", "pbspro", "#PBS -m aj"),
    ("#PBS -t 1-4 -m n\n#PBS -l nodes=1:ppn=2", "slurm", "#SBATCH --mail-type=NONE"),
    ("#PBS -m ae\n#PBS -l nodes=1:ppn=2:gpus=1", "slurm", "#SBATCH --mail-type=END,FAIL"),
    ("#PBS -J 1-4 -m aej\n#PBS -l select=1", "slurm", "#SBATCH --mail-type=END,FAIL,ARRAY_TASKS"),
    ("#PBS -J 1-4 -m ae\n#PBS -l select=1", "slurm", "#SBATCH --mail-type=END,FAIL"),
    ("#PBS -J 1-4 -m aej\n#PBS -l select=1", "torque", "#PBS -m ae"),
    ("#SBATCH -a 1-4 --mail-type=END,FAIL,ARRAY_TASKS", "pbspro", "#PBS -m aej"),
    ("#SBATCH -a 1-4 --mail-type=END,FAIL,ARRAY_TASKS", "torque", "#PBS -m ae"),
    ("#SBATCH -a 1-4 --mail-type=END,FAIL", "pbspro", "#PBS -m ae"),
    ("#SBATCH -n 1 --mail-type=END,FAIL,ARRAY_TASKS", "pbspro", "#PBS -m ae"),
    ("#SBATCH -n 1 --mail-type=END,FAIL,ARRAY_TASKS", "torque", "#PBS -m ae"),
    ("#SBATCH -n 1 --mail-type=END,ARRAY_TASKS\n./a $SLURM_ARRAY_TASK_ID", "pbspro", "#PBS -m ej"),
    (
        "#PBS -m ae\n#PBS -l nodes=1:ppn=2\n./a $PBS_ARRAYID",
        "slurm",
        "#SBATCH --mail-type=END,FAIL,ARRAY_TASKS",
    ),
]


@pytest.mark.parametrize(("text", "target", "mail"), _MAIL)
def test_tasks_of_an_array_send_mail_as_before(text: str, target: str, mail: str) -> None:
    done = convert(text, target)
    mails = [line for line in done.text.split("\n") if " -m" in line.replace("--mail-type", "-m")]
    assert mails == [mail]
    assert not [one for one in done.remarks if "mail" in one.what or "-m" in one.what]


@pytest.mark.parametrize(
    "text", ["#SBATCH -a 1-4 --mail-type=END,FAIL", "#PBS -J 1-4\n#PBS -m ae\n#PBS -l select=1"]
)
def test_mail_of_a_whole_array_becomes_mail_of_each_task(text: str) -> None:
    done = convert(text, "torque")
    assert "#PBS -m ae\n" in done.text
    [remark] = [one for one in done.remarks if one.what == "-m ae"]
    assert not remark.lost
    assert "for each task of the array" in remark.why


_NO_NODES = ("--nodes=", "--ntasks-per-node=")


def test_processes_on_any_nodes_are_tasks_without_nodes() -> None:
    done = convert("#PBS -l procs=16,walltime=1:00:00,pmem=2gb\n./run $PBS_NP", "slurm")
    lines = [line.removeprefix("#SBATCH ") for line in done.text.split("\n")]
    assert {"--ntasks=16", "--mem-per-cpu=2G", "./run $SLURM_NTASKS"} <= {*lines}
    assert not [line for line in lines if line.startswith(_NO_NODES)]
    assert not [one for one in done.remarks if one.lost]
    total = convert("#PBS -l procs=4\n#PBS -l mem=8gb\n./run $PBS_NP", "slurm")
    assert "#SBATCH --mem-per-cpu=2G\n" in total.text
    assert "#PBS -l select=16\n" in convert("#PBS -l procs=16\n./run $PBS_NP", "pbspro").text


def test_processes_beside_nodes_are_lost() -> None:
    [lost] = [one for one in convert("#PBS -l nodes=2:ppn=8\n#PBS -l procs=4", "slurm").remarks if one.lost]
    assert (lost.line, lost.what) == (3, "-l procs=4")
    assert "license" not in lost.why


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("#PBS -l nodes=1:ppn=2\n#PBS -l feature=k20", "k20"),
        ("#PBS -l nodes=1:ppn=2,feature=k20:ib", "k20&ib"),
        ("#PBS -l nodes=1:ppn=2:ssd\n#PBS -l feature=k20", "ssd&k20"),
        ("#PBS -l procs=4\n#PBS -l feature=k20|k40", "k20|k40"),
    ],
)
def test_features_of_torque_are_a_constraint(text: str, constraint: str) -> None:
    done = convert(text, "slurm", "torque")
    assert f"#SBATCH --constraint={constraint}\n" in done.text
    assert not done.remarks or not [one for one in done.remarks if one.lost]


def test_a_directory_at_home_in_a_directive_is_one_that_the_scheduler_does_not_find() -> None:
    done = job_file("#!/bin/bash\n#SBATCH -N 1 --chdir=~/a\nsrun ./b\n")
    assert "workdir" not in done.text
    assert (True, 2, "workdir ~/a") in remarks(done)


def test_the_least_cores_of_a_node_are_those_of_its_task() -> None:
    """Measured on Slurm 22.05: the job has as many cores, and the memory of each."""
    done = convert("#SBATCH -n 1 --mincpus=24 --mem-per-cpu=2G\n./a", "pbspro", "slurm")
    assert "select=1:ncpus=24:mpiprocs=1:mem=48gb" in done.text
    assert not done.remarks
    done = convert("#SBATCH -N 1 -n 4 --mincpus=24\n./a", "pbspro", "slurm")
    assert [one.what for one in done.remarks if one.lost] == ["--mincpus=24"]


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_value_with_blanks_is_one_word(target: str) -> None:
    lines = convert('#SBATCH -o "my logs/a#1.out" -A "a b"\n./a', target).text.split("\n")
    assert {'#PBS -o "my logs/a#1.out"', '#PBS -A "a b"'} <= {*lines}


def test_a_value_with_blanks_or_a_comment_sign_is_one_word_for_sbatch() -> None:
    """Seen with Slurm 22.05: sbatch ends a word at #, and refuses the words behind a blank."""
    done = convert('#PBS -l select=1\n#PBS -o "my logs/a.out"\n#PBS -N a#b\n#PBS -q x#y\n./a', "slurm")
    assert {'#SBATCH --output="my logs/a.out"', '#SBATCH --job-name="a#b"'} <= {*done.text.split("\n")}
    request = Script(done.text.encode(), "slurm").request
    assert (request.output, request.name, request.queue) == ("my logs/a.out", "a#b", "x#y")


def test_a_directive_of_a_job_file_is_one_word() -> None:
    done = job_file('#!/bin/bash\n#SBATCH -N 1\n#SBATCH -o "my logs/a#1.out"\n#SBATCH -p "x#y"\n./a\n')
    script = rendered(done.text)
    assert {'#SBATCH --output="my logs/a#1.out"', '#SBATCH --partition="x#y"'} <= {*script.split("\n")}


@pytest.mark.parametrize(
    ("options", "target", "lost", "kept"),
    [
        ("--array=0-3 --no-requeue", "pbspro", True, False),
        ("--array=0-3 --no-requeue", "torque", False, True),
        ("--no-requeue", "pbspro", False, True),
    ],
)
def test_pbs_pro_takes_only_arrays_that_may_run_again(
    options: str, target: str, lost: bool, kept: bool
) -> None:
    done = convert(f"#SBATCH {options}\nhostname", target)
    assert ("whose tasks may run again" in str([one for one in done.remarks if one.lost])) == lost
    assert ("#PBS -r n\n" in done.text) == kept


@pytest.mark.parametrize(
    ("options", "cores", "mem"),
    [
        ("-n 16 --mincpus=32 --mem-per-cpu=2G", 32, "65536M"),
        ("-n 4 --mincpus=2 --mem-per-cpu=2G", 4, "8192M"),
    ],
)
def test_the_least_cores_of_the_node_of_several_tasks(options: str, cores: int, mem: str) -> None:
    found = values(job_file(f"#SBATCH {options}\n./a").text)
    assert (found["cpus_per_rank"], found["mem"], found.get("directive")) == (cores, mem, None)


def test_indices_in_brackets_are_an_array() -> None:
    found = values(job_file("#!/bin/bash\n#SBATCH --array=[1,2,5]%2\n./a $SLURM_ARRAY_TASK_ID\n").text)
    assert found["array"] == "1,2,5%2"


@pytest.mark.parametrize(("nodes", "gpus"), [("1", 4), ("2", None)])
def test_gpus_beside_the_nodes_of_torque(nodes: str, gpus: int | None) -> None:
    text = f"#!/bin/bash\n#PBS -l nodes={nodes}:ppn=4\n#PBS -l gpus=4\n./a\n"
    assert values(job_file(text, "torque").text).get("gpus_per_node") == gpus
    assert ("#SBATCH --gpus-per-node=4\n" in convert(text, "slurm", "torque").text) == (gpus is not None)


@pytest.mark.parametrize(("target", "memory"), [("slurm", "--mem=32G"), ("pbspro", ":mem=32gb")])
def test_the_memory_of_several_nodes_of_torque(target: str, memory: str) -> None:
    done = convert("#PBS -l nodes=2:ppn=4,mem=64gb\n./a", target, "torque")
    assert memory in done.text
    for one in (done, job_file("#PBS -l nodes=2:ppn=4,mem=64gb\n./a", "torque")):
        assert "is that of all 2 nodes: each gets 32768 MiB" in [it.why for it in one.remarks if not it.lost]
    back = convert("#SBATCH -N 2\n#SBATCH -n 4\n#SBATCH -c 8\n#SBATCH --mem=32G\n./a", "torque")
    assert "#PBS -l mem=64gb\n" in back.text


@pytest.mark.parametrize(
    "text", ["-W GRES:matlab", "-W x=GRES:matlab", "-l gres=matlab:1", "-l software=matlab", "-l matlab=1"]
)
@pytest.mark.parametrize("target", ["slurm", "pbspro"])
def test_a_resource_that_may_be_a_license(text: str, target: str) -> None:
    done = convert(f"#!/bin/bash\n#PBS -l nodes=1:ppn=4\n#PBS {text}\n./a\n", target, "torque")
    why = "may be a license or a resource of the site, which has another name"
    assert [one.line for one in done.remarks if one.why.startswith(why)] == [3]


def test_mail_of_tasks_without_an_array() -> None:
    """The qsub of PBS Pro refuses a j without an array."""
    assert "#PBS -m ae\n" in convert("#PBS -m aej\n#PBS -l nodes=1:ppn=2", "pbspro").text


@pytest.mark.parametrize(
    ("options", "target", "memory"),
    [
        ("-l select=2:ncpus=8:mpiprocs=8\n#PBS -l place=scatter:excl", "slurm", ["--mem=0"]),
        ("-l select=2:ncpus=8:mem=4gb\n#PBS -l place=scatter:excl", "slurm", ["--mem=4G"]),
        ("-l select=2:ncpus=8:mpiprocs=8\n#PBS -l place=scatter", "slurm", []),
        ("-l nodes=2:ppn=8\n#PBS -l naccesspolicy=singlejob", "slurm", ["--mem=0"]),
        ("-l nodes=2:ppn=8\n#PBS -l naccesspolicy=singlejob\n#PBS -l pmem=2gb", "slurm", ["--mem=16G"]),
    ],
)  # fmt: skip
def test_whole_nodes_have_all_their_memory(options: str, target: str, memory: list[str]) -> None:
    done = convert(f"#PBS {options}\nmpirun ./a", target)
    assert re.findall(r"--mem\S*", done.text) == memory
