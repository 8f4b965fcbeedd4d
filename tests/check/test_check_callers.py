"""Scripts that are not submitted as they stand: other files complete them, run them, or submit them with options."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.check.checker import check
from jobgen.script.callers import Callers, callers

JOB = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -p a\n"


def uses(folder: Path, text: str, other: str = "other", *, has_first_line: bool = True) -> Callers:
    (folder / other).write_text(f"{text}\n")
    return callers(str(folder), "job.sh", has_first_line=has_first_line)


def severities(folder: Path, script: str, name: str = "job.sh") -> dict[str, str]:
    found = check(script.encode(), str(folder / name), folder=str(folder))
    return {one.rule: one.severity for one in found}


@pytest.mark.parametrize(
    "text",
    [
        "cat head.txt job.sh > run.sh",
        "cat job.sh >> run.sh",
        "cat head.txt job.sh | sbatch",
        "sed 's/N/4/' job.sh | sbatch",
        "sed \\\n  's/N/4/' job.sh > run.sh",
        'sed -i "s/N/4/" $dir/job.sh\nsbatch $dir/job.sh',
        'sed "s/N/4/" -i job.sh',
        "sed_in_place '/N/d' \"${dir}/job.sh\"",
        "perl -pi -e 's/N/4/' job.sh",
        "cp job.sh run_$i.sh\nsed -i s/N/$i/ run_$i.sh",
        'template="/a/job.sh"\nsed "s/N/4/" $template > run.sh',
        'file="job.sh"\ncp $file $dir\nsed -i s/N/4/ $dir/${file}',
        "envsubst < job.sh > run.sh",
        "text=$(cat job.sh)",
        "if a; then . ./job.sh; fi",
        "source job.sh",
        "%include <job.sh>",
        "bash job.sh",
        "./job.sh &",
        "srun -n 1 ./job.sh a",
        "srun bash job.sh",
        "sbatch -t 1 --wrap 'bash job.sh'",
        "sbatch -t 1 --mem=4g --wrap='./job.sh '",
        "text = open('job.sh').read()",
        'with open(os.path.join(here, "job.sh")) as file:',
        "name = 'job.sh'\ntext = open(name).read()",
        "TEMPLATE = here / 'job.sh'",
        'environment.get_template("job.sh")',
        "parser.add_argument('-template', default='job.sh')",
    ],
)
def test_a_file_that_completes_the_script(tmp_path: Path, text: str) -> None:
    assert uses(tmp_path, text).completed


@pytest.mark.parametrize(
    "text",
    [
        "sbatch job.sh",
        "sbatch < job.sh",
        "sbatch job.sh\nbash job.sh",
        "# cat job.sh > run.sh",
        "cat job.sh",
        "cat my_job.sh > run.sh",
        "tail -f job.sh.o1 > log",
        "cat > job.sh <<END",
        "envsubst < template > job.sh",
        "cp job.sh $dir/ && cd $dir && sbatch job.sh",
        "cp job.sh $dir\nsed -i s/a/b/ $dir/input.txt\ncd $dir && sbatch job.sh",
        "chmod +x job.sh",
        "open('job.sh', 'w').write(text)",
        "os.chmod('job.sh', 0o755)",
        "for file in *.sh; do sbatch $file; done",
    ],
)
def test_a_file_that_leaves_the_script_as_it_is(tmp_path: Path, text: str) -> None:
    assert not uses(tmp_path, text).completed


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("sbatch --time=1 job.sh", ("--time=1",)),
        ("# submit it with: qsub -l walltime=1 job.sh", ("-l walltime=1",)),
        ("id=$(sbatch --parsable \\\n  -t 5 $dir/job.sh)", ("--parsable -t 5",)),
        ('subprocess.run(["sbatch", "--time=1", "job.sh"])', ("--time=1",)),
        ("job=/a/job.sh\nsbatch -t $t $job", ("-t $t",)),
        ("sbatch -n 1 other.sh job.sh", ()),
        ("O='-t 5'\nO+=' -n 2'\nsbatch $O job.sh", ("$O -t 5 -n 2",)),
        ("sqsub -b '--time=1 -n 2' job.sh", ("--time=1 -n 2",)),
        ("sbatch --time=1 -D $PWD/x.sh; ./y job.sh", ()),
        ("rsbatch -n 1 job.sh", ()),
    ],
)
def test_the_options_of_a_submission(tmp_path: Path, text: str, options: tuple[str, ...]) -> None:
    assert tuple(" ".join(one.split()) for one in uses(tmp_path, text).options) == options


@pytest.mark.parametrize(
    ("text", "completed", "count"),
    [
        ("with open(folder + '/' + name + '_large.sh') as file:", True, 0),
        ('sed "s/N/4/" ${n}_large.sh > run.sh', True, 0),
        ('text = open(f"{here}/job_{size}.sh").read()', True, 0),
        ("for n in small large; do sbatch -t 1 job_$n.sh; done", False, 1),
        ("for n in 1 2; do sbatch -t 1 $n.sh; done", False, 0),
        ("sbatch -t 1 run_$n.sh", False, 0),
    ],
)
def test_a_name_that_a_program_joins_of_parts(tmp_path: Path, text: str, completed: bool, count: int) -> None:
    (tmp_path / "other").write_text(f"{text}\n")
    found = callers(str(tmp_path), "job_large.sh", has_first_line=True)
    assert (found.completed, len(found.options)) == (completed, count)


def test_a_file_that_completes_the_script_fills_in_its_placeholders(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH --time=1:0:0 --cpus-per-task=\n#SBATCH --partition=\n./a\n"
    assert severities(tmp_path, script)["placeholder"] == "note"
    (tmp_path / "make.sh").write_text("sed s/task=/task=4/ job.sh > run.sh\n")
    assert "placeholder" not in severities(tmp_path, script)


@pytest.mark.parametrize(
    ("text", "count"),
    [("sbatch -t 1 jobs/job.sh", 1), ("sbatch -t 1 job.sh", 0), ("sbatch old_jobs/job.sh", 0)],
)
def test_a_document_above_the_folder_of_the_script(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "README.md").write_text(f"{text}\n")
    found = callers(str(tmp_path / "jobs"), "job.sh", has_first_line=True)
    assert len(found.options) == count


def test_documents_have_submissions_alone(tmp_path: Path) -> None:
    text = "sbatch -t 1 job.sh\nsed s/a/b/ job.sh > run.sh"
    found = uses(tmp_path, text, "README.md")
    assert (found.completed, len(found.options)) == (False, 1)


def test_a_document_that_runs_the_script_in_a_job_of_another_text(tmp_path: Path) -> None:
    text = "sbatch -t 1 --wrap='./job.sh '"
    assert uses(tmp_path, text, "README.md").completed


def test_a_program_that_writes_a_script_of_parts(tmp_path: Path) -> None:
    text = 'echo "#!/bin/bash" > run.sh\ncat $part >> run.sh\nsbatch run.sh'
    assert uses(tmp_path, text, has_first_line=False).completed
    assert not uses(tmp_path, text).completed
    (tmp_path / "other").unlink()
    part = "#SBATCH --time=1\nsrun ./a\n"
    assert severities(tmp_path, part)["no-shebang"] == "note"
    assert severities(tmp_path, f"#SBATCH -J a\n{part}")["no-shebang"] == "error"
    assert severities(tmp_path, f"# License\n#!/bin/bash\n{part}")["no-shebang"] == "error"


def test_few_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("bash job.sh\n")
    (tmp_path / "long.sh").write_text("#" * 100_000 + "\nbash job.sh\n")
    (tmp_path / "line.sh").write_text(f"bash job.sh # {'x' * 500}\n")
    (tmp_path / "folder.sh").mkdir()
    (tmp_path / "binary").write_bytes(b"\0\xff")
    assert callers(str(tmp_path), "job.sh", has_first_line=True) == Callers()
    assert callers(str(tmp_path / "absent"), "job.sh", has_first_line=True) == Callers()


def test_findings_about_directives_of_a_script_that_another_file_completes(tmp_path: Path) -> None:
    script = f"{JOB}#SBATCH --time=1 --ntask-per-node=4\nmodule load a\n#SBATCH --mem=1G\n./a"
    rules = ("unknown-option", "late-directive")
    assert [severities(tmp_path, script)[one] for one in rules] == ["error", "error"]
    (tmp_path / "make.sh").write_text("sed 's/a/b/' job.sh > run.sh\n")
    assert [severities(tmp_path, script)[one] for one in rules] == ["note", "note"]


def test_options_of_a_submission_replace_directives(tmp_path: Path) -> None:
    script = f"{JOB}#SBATCH --account=$NAME\nmodule load a\n#SBATCH --mem=1G\n./a"
    before = severities(tmp_path, script)
    assert [before[one] for one in ("no-walltime", "literal-variable", "late-directive")] == [
        *("warning", "warning", "error")
    ]
    (tmp_path / "submit.sh").write_text('sbatch --time=1:00 -A "$x" --mem=2G job.sh\n')
    after = severities(tmp_path, script)
    assert "no-walltime" not in after
    assert [after[one] for one in ("literal-variable", "late-directive")] == ["note", "note"]


def test_options_in_a_variable_may_have_the_time_limit(tmp_path: Path) -> None:
    (tmp_path / "submit.sh").write_text("sbatch $options job.sh\n")
    assert severities(tmp_path, f"{JOB}./a")["no-walltime"] == "note"


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        ("./a $SLURM_ARRAY_TASK_ID", "note"),
        ("./a ${SLURM_ARRAY_TASK_ID:-1}", "warning"),
        ("#SBATCH --array=1-4\n./a $SLURM_ARRAY_TASK_ID", "warning"),
        ("# This script is submitted by run.py to test a.\n./a", "note"),
        ("./a", "warning"),
    ],
)
def test_signs_of_options_in_the_script_itself(tmp_path: Path, body: str, severity: str) -> None:
    assert severities(tmp_path, f"{JOB}{body}")["no-walltime"] == severity


def test_one_directive_alone(tmp_path: Path) -> None:
    assert severities(tmp_path, "#!/bin/bash\n#SBATCH --nodes=1\n./a")["no-walltime"] == "note"


@pytest.mark.parametrize(
    ("text", "name", "severity"),
    [
        (f"{JOB}a=1\n#SBATCH --mem=1G\n./a", "job.sh", "error"),
        (f"{JOB}# Do not run this script directly.\na=1\n#SBATCH --mem=1G\n./a", "job.sh", "note"),
        (f"{JOB}<MODULES>\n#SBATCH --mem=1G\n./a", "job.sh", "note"),
        (f"{JOB}a=1\n#SBATCH --mem=1G\n./a", "job.inp", "note"),
        ('#!/bin/bash\ncd "$SLURM_SUBMIT_DIR"\n#PBS -N a\n./a', "job.sh", "note"),
        ('#!/bin/bash\ncd "$PBS_O_WORKDIR"\n#PBS -q a\n./a', "job.sh", "error"),
        ('#!/bin/bash\ncd "$PBS_O_WORKDIR"\n#PBS -N a\n./a', "job.sh", "note"),
        ("#!/bin/bash\n#PBS -N a\ncd b\n#PBS -o a.o$PBS_JOBID\n./a", "job.sh", "note"),
    ],
)
def test_late_directives_of_a_text_that_is_not_submitted(
    tmp_path: Path, text: str, name: str, severity: str
) -> None:
    assert severities(tmp_path, text, name)["late-directive"] == severity


def test_variables_as_the_values_of_several_directives_are_placeholders(tmp_path: Path) -> None:
    two = "#!/bin/bash\n#SBATCH --time=1\n#SBATCH -N $NODES\n#SBATCH -n {}\n./a"
    assert "bad-count" not in severities(tmp_path, two.format("${TASKS}"))
    assert "placeholder" not in severities(tmp_path, two.format("${TASKS}"))  # a program fills them in
    assert "placeholder" not in severities(tmp_path, two.format("4"))


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("#SBATCH --time=$T\n#SBATCH --nodes=$N", "literal-variable"),
        ("#PBS -l walltime=$T\n#PBS -l select=$N:ncpus=4", "literal-variable"),
        ("#PBS -l select=$N:ncpus=$C,walltime=1:00:00", "literal-variable"),
        ("#SBATCH --time=$T", "bad-walltime"),
        ("#PBS -l select=1:ncpus=4\n#PBS -l walltime=$T", "bad-walltime"),
    ],
)
def test_variables_in_the_resources_of_both_schedulers(tmp_path: Path, lines: str, found: str) -> None:
    rules = severities(tmp_path, f"#!/bin/bash\n{lines}\n./a")
    both = {"literal-variable": "note", "bad-walltime": "error"}
    assert {one: level for one, level in rules.items() if one in both} == {found: both[found]}


@pytest.mark.parametrize("name", ["job.sh.tmpl", "job.sh"])
def test_variables_of_a_template_are_filled_in(tmp_path: Path, name: str) -> None:
    script = "#!/bin/bash\n#PBS -l select=1:ncpus=2${more}:mem=$MEM\n#PBS -o $LOG.txt\n./a\n"
    if name == "job.sh":
        assert severities(tmp_path, script)["bad-select"] == "error"
        (tmp_path / "start.sh").write_text("envsubst < job.sh > run.sh\nqsub run.sh\n")
    assert {"bad-select", "memory-unit", "output-variable"}.isdisjoint(severities(tmp_path, script, name))


def test_late_directives_of_a_script_with_arguments_of_qsub(tmp_path: Path) -> None:
    script = "#!/bin/bash\necho {}\n#PBS -q long\n#PBS -l nodes=1\n./a"
    assert severities(tmp_path, script.format("a"))["late-directive"] == "error"
    assert severities(tmp_path, script.format('"$1"'))["late-directive"] == "note"


def test_repeated_directives_that_change_nothing(tmp_path: Path) -> None:
    for options, severity in (
        ("#SBATCH -w, --nodelist=a1", "note"),
        ("#SBATCH --mail-user=a\n#SBATCH --mail-user=b", "note"),
        ("#SBATCH -p b", "note"),
        ("#SBATCH --constraint=a\n#SBATCH --constraint=b", "note"),
        ("#SBATCH --nodes=2\n#SBATCH --nodes=1", "warning"),
        ("#SBATCH --nodes=2\n#SBATCH --nodes=3", "note"),
    ):
        assert severities(tmp_path, f"{JOB}{options}\n./a")["repeated-directive"] == severity


def test_words_too_many_that_change_nothing(tmp_path: Path) -> None:
    torque = "#!/bin/bash\n#PBS -l nodes=1:ppn=4,walltime=1:00:00\n#PBS -joe {}\n./a"
    assert severities(tmp_path, torque.format("word"))["unknown-option"] == "warning"
    assert "unknown-option" not in severities(tmp_path, torque.format("."))
    mail = severities(tmp_path, f"{JOB}#SBATCH --mail-user=a.b [-at-] example.org\n./a")
    assert ("unknown-option" in mail, mail["placeholder"]) == (False, "note")


def test_a_program_of_python_that_submits(tmp_path: Path) -> None:
    text = """
if parallel:
    options = " --ntasks=" + count
script = "job.sh"
command = "cd " + folder + "; sbatch -J a " + \\
    f" --time={time} " + options + " ../" + script
"""
    found = uses(tmp_path, text, "run.py")
    script = f"{JOB}module load a\n#SBATCH --time=1\n#SBATCH --ntasks=4\n#SBATCH --mem=1G\n./a"
    late = [
        one for one in check(script.encode(), str(tmp_path / "job.sh"), folder=str(tmp_path)) if one.line > 4
    ]
    assert (found.completed, len(found.options)) == (False, 1)
    assert [(one.line, one.severity) for one in late if one.rule == "late-directive"] == [
        *((5, "note"), (6, "note"), (7, "error"))
    ]


def test_options_of_a_submission_count_for_every_rule(tmp_path: Path) -> None:
    script = f"{JOB}#SBATCH --mem-per-gpu=4G\n#SBATCH --time=1:00:00\ntorchrun --nnodes=4 --nproc-per-node=1 t.py\n"
    rules = ("bad-value", "nodes-mismatch")
    before = severities(tmp_path, script)
    assert [before[one] for one in rules] == ["error", "error"]
    (tmp_path / "submit.sh").write_text("sbatch --gres=gpu:1 job.sh\n")
    assert [severities(tmp_path, script)[one] for one in rules] == ["note", "error"]
    (tmp_path / "submit.sh").write_text("sbatch --nodes=$N job.sh\n")
    assert [severities(tmp_path, script)[one] for one in rules] == ["error", "note"]


@pytest.mark.parametrize(
    "line",
    ["sbatch --gres=gpu:1 job.sh", "sbatch --gres=gpu:1 $0", "# Submit it with: sbatch --gres=gpu:1 job.sh"],
)
def test_a_script_that_submits_itself(tmp_path: Path, line: str) -> None:
    script = f"{JOB}#SBATCH --mem-per-gpu=4G\n./a\n{line}\n"
    assert severities(tmp_path, script)["bad-value"] == "note"
    assert severities(tmp_path, script.replace("gres", "mem"))["bad-value"] == "error"


def test_a_script_that_moab_submits(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#PBS -l nodes=1:ppn=4,walltime=1:00:00\n#PBS -N\n./a\n"
    (tmp_path / "run.sh").write_text("qsub job.sh\n")
    assert severities(tmp_path, script)["bad-value"] == "error"
    (tmp_path / "run.sh").write_text("msub -t 0-20 job.sh\n")
    assert severities(tmp_path, script)["bad-value"] == "note"


def test_a_script_that_is_copied_to_a_folder_of_its_job(tmp_path: Path) -> None:
    script = f"{JOB}scontrol show hostnames > hostfile\nmpirun -f hostfile ./a\n"
    (tmp_path / "submit.sh").write_text("sbatch job.sh\n")
    assert severities(tmp_path, script)["shared-hostfile"] == "warning"
    (tmp_path / "submit.sh").write_text('cp job.sh "run_$DATE/"\ncd "run_$DATE"\nsbatch job.sh\n')
    assert "shared-hostfile" not in severities(tmp_path, script)
    (tmp_path / "submit.sh").write_text("cd $RUN\ncp $HERE/scripts/* $HERE/*.py .\nsbatch job.sh\n")
    assert "shared-hostfile" not in severities(tmp_path, script)
    for name in ("D2024-04-18_15:54:02_R3", "D2024-04-18_15%3A54%3A02_R3"):
        folder = tmp_path / name
        folder.mkdir()
        assert "shared-hostfile" not in severities(folder, script)
