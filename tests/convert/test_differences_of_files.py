"""Files, directories and variables that a scheduler or a site has ready for a job, and others do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from convert.conversions import body, convert

from jobgen.convert.to_scheduler import conversion
from jobgen.script.script import Script

SLURM = "#!/bin/bash\n#SBATCH -t 10 {}\n{}\n"


def _whys(options: str, text: str, target: str = "pbspro") -> str:
    return "; ".join(f"{one.what}: {one.why}" for one in convert(SLURM.format(options, text), target).remarks)


@pytest.mark.parametrize(
    ("options", "text", "named"),
    [
        ("-o slurm-%j.out", "mv slurm-${SLURM_JOBID}.out logs", True),
        ("-o out_%j", "L=out_$SLURM_JOB_ID\ncp $L logs", True),
        ("-o out_%j", "D=$SLURM_SUBMIT_DIR\ncp $D/out_$SLURM_JOB_ID logs", True),
        ("-o out_%j", "cp other_$SLURM_JOB_ID logs", False),
    ],
)
def test_a_log_that_a_variable_names(options: str, text: str, named: bool) -> None:
    assert ("when the job has ended" in _whys(options, text, "torque")) == named


def test_the_name_of_a_log_of_torque_has_the_server() -> None:
    for target, named in (("torque", True), ("pbspro", False)):  # there the script opens it
        assert ("NUMBER.SERVER" in _whys("-o a_%j.log", "ln -s a_$SLURM_JOB_ID.log b", target)) == named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cd /scratch/$SLURM_JOBID", True),
        ("cp a /scratch/job_${SLURM_JOB_ID}/b", True),
        ("export TMPDIR=/scratch/$USER/$SLURM_JOB_ID\n./a", True),
        ("S=/scratch/$SLURM_JOB_ID\nrsync -a x/ $S", False),
        ("S=/scratch/$SLURM_JOB_ID\ncp x $S/", True),
        ("S=/scratch/$SLURM_JOB_ID\n./a\nS=/scratch/$SLURM_JOB_ID\ncd $S", True),
        ("S=/scratch/$SLURM_JOB_ID\n./a\nS=/data\ncd $S", False),
        ("cp -r x /scratch/$SLURM_JOB_ID/x", True),
        ("mkdir -p /scratch/$SLURM_JOB_ID\nexport TMPDIR=/scratch/$SLURM_JOB_ID", False),
        ("cp a b_$SLURM_JOB_ID", False),
        ("cp lightning_logs/version_$SLURM_JOB_ID/a b", False),
        ("mkdir /scratch/$SLURM_JOB_ID/a", True),
        ("mkdir -m 700 -p /scratch/$SLURM_JOB_ID/a", False),
        ("mkdir /scratch/$SLURM_JOB_ID\nmkdir /scratch/$SLURM_JOB_ID/a", False),
        ("./a --out /scratch/$SLURM_JOB_ID\ncp /scratch/$SLURM_JOB_ID/x .", False),  # it may make it
    ],
)
def test_a_directory_of_the_job(text: str, named: bool) -> None:
    assert ("the script does not make this directory" in _whys("-N 1", text)) == named


@pytest.mark.parametrize("first", ["", "export CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES\n"])
def test_devices_that_are_read_before_they_are_set(first: str) -> None:
    text = f"{first}python a.py --devices $CUDA_VISIBLE_DEVICES"
    assert "CUDA_VISIBLE_DEVICES: " in _whys("-N 1 --gres=gpu:1", text, "torque")


def test_devices_that_the_script_sets_are_its_own() -> None:
    text = "export CUDA_VISIBLE_DEVICES=0\npython a.py --devices $CUDA_VISIBLE_DEVICES"
    assert "CUDA_VISIBLE_DEVICES: " not in _whys("-N 1 --gres=gpu:1", text, "torque")


@pytest.mark.parametrize(
    ("command", "ends"),
    [
        ("cp *.in {}", True),
        ("cp -p a b {}/", True),
        ("mv $FILES {}", True),
        ("ln -s a b {}", True),
        ("rm -r {}", True),
        ("cp a {}", False),  # cp itself refuses one file without a second name
        ("cp -r {} a", False),
        ("ls a* {}", False),
    ],
)
def test_a_directory_of_an_empty_variable_is_not_filled(command: str, ends: bool) -> None:
    new = command.format("${TMPDIR:?}" if ends else "$TMPDIR")
    assert body("-l nodes=1", command.format("$TMPDIR"), "slurm")[0] == [new]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('printf "SLURM_ID: 3"', False),
        ("echo $SLURM_OTHER", True),
        ("echo ${SLURM_OTHER:-2}", True),
        ("python a.py SLURM_NNODES", True),
    ],
)
def test_names_in_texts_are_no_variables(text: str, named: bool) -> None:
    assert ("SLURM_" in _whys("-N 1", text)) == named


@pytest.mark.parametrize(
    ("read", "named"), [("\\$SLURM_ARRAY_TASK_ID", False), ("$SLURM_ARRAY_TASK_ID", True)]
)
def test_the_index_of_the_job_in_a_text(read: str, named: bool) -> None:
    text = f"cat > b.sh <<END\n#!/bin/bash\n#SBATCH -N 1\n./a {read}\nEND\nsbatch b.sh"
    assert ("array" in _whys("-N 1", text)) == named


def test_lines_behind_the_last_comment() -> None:
    done = convert("#!/bin/bash\n#SBATCH -N 1\n# the end", "pbspro")
    assert "# the end\ncd " in done.text


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (". /cluster/bin/jobsetup", True),
        ("source /opt/site/slurm.env", True),
        ("source /cluster/bin/colours", False),
        (". /etc/profile", False),
    ],
)
def test_a_file_of_a_site_for_jobs(command: str, named: bool, tmp_path: Path) -> None:
    script = Script(f"#!/bin/bash\n#SBATCH -N 1\n{command}\n./a\n".encode(), "slurm", str(tmp_path))
    assert ("not read" in str(conversion.convert(script, "pbspro").remarks)) == named


@pytest.mark.parametrize("before", ["", "time ", "nice -n 5 ", "nohup "])
def test_an_engine_behind_another_command(before: str) -> None:
    assert "snakemake: " in _whys("-N 1", f"{before}snakemake --profile slurm")


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("slurm-$SLURM_JOB_ID.out", True),
        ("slurm-*.out", True),
        ("slur*", True),
        ("slurm-12*.out", True),
        ("slurm-${SLURM_ARRAY_JOB_ID}_*.out", True),
        ("slurm-model-$SLURM_JOB_ID.out", False),
        ("slurm-Tf-$SLURM_JOB_ID.out", False),
        ("slurm-2b-$SLURM_JOB_ID.out", False),
        ("slurm-${B}-$SLURM_JOB_ID.out", False),
        ("slurm-Tf*.out", False),
        ("slurry*", False),
    ],
)
def test_the_default_log_of_slurm(name: str, named: bool) -> None:
    assert ("is a log of Slurm" in _whys("-N 1", f"cp {name} logs")) == named


@pytest.mark.parametrize(("code", "named"), [("J", False), ("j", False), ("3a", False), ("x", True)])
def test_a_log_of_each_task(code: str, named: bool) -> None:
    text = "./a $SLURM_ARRAY_TASK_ID"
    assert ("is one file for all tasks" in _whys(f"-a 1-3 -o log.%{code}", text)) == named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("unset SLURM_EXPORT_ENV", False),
        ("unset -v SLURM_NTASKS SLURM_OTHER", False),
        ("unset X; echo $SLURM_OTHER", True),
        ("env -i -u SLURM_MEM_PER_NODE --unset=SLURM_EXPORT_ENV ./a", False),
        ("env -u X ./a $SLURM_OTHER", True),
    ],
)
def test_variables_that_the_script_unsets(text: str, named: bool) -> None:
    assert ("SLURM_" in _whys("-N 1", text)) == named


@pytest.mark.parametrize(
    ("command", "named"), [("remora ./a.sh x", True), ("chmod +x ./a.sh", False), ("python ./a.sh", False)]
)
def test_a_script_that_another_command_starts(command: str, named: bool) -> None:
    assert ("a.sh: is not read" in _whys("-N 1", command)) == named


@pytest.mark.parametrize(
    ("options", "lines", "named"),
    [
        ("-N 2", "ulimit -s unlimited\nsrun ./a", True),
        ("-N 2", "if true; then ulimit -Ss 100; fi\nmpirun ./a", True),
        ("-n 80", "ulimit -s 100\nsrun ./a", True),
        ("-n 1", "ulimit -s 100\nsrun ./a", False),
        ("-N 2", "ulimit -a\nulimit -s\nsrun ./a", False),
        ("-N 2", "srun ./a\nulimit -s unlimited\n./b", False),
        ("-N 1", "ulimit -s unlimited\nsrun ./a", False),
    ],
)
def test_a_limit_that_srun_hands_on_to_all_nodes(options: str, lines: str, named: bool) -> None:
    assert ("for the ranks on all nodes, PBS Pro on the first node only" in _whys(options, lines)) == named
