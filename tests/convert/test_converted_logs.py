"""The log files of a job under another scheduler."""

from __future__ import annotations

import subprocess

import pytest
from convert.conversions import ONE, convert, job_file, remarks

from jobgen.convert.to_scheduler import conversion
from jobgen.script.script import Script


@pytest.mark.parametrize(
    ("text", "target", "expected", "remark"),
    [
        ("#SBATCH -o %x-%j.log", "pbspro", 'exec > "$PBS_JOBNAME-${PBS_JOBID%%[!0-9]*}.log" 2>&1', "--output=%x-%j.log"),
        (
            "#SBATCH -J n -o %x_%u_%j.log",
            "pbspro",
            'exec > "n_${PBS_O_LOGNAME}_${PBS_JOBID%%[!0-9]*}.log" 2>&1',
            "--output=%x_%u_%j.log",
        ),
        ("#SBATCH -o a-%n-%t-%s", "torque", "#PBS -o a-0-0-batch", ""),
        ("#SBATCH -o %x.log", "torque", 'exec > "$PBS_JOBNAME.log" 2>&1', "--output=%x.log"),
        ("#SBATCH -J n -o %x.log", "pbspro", "#PBS -o n.log", ""),
        ("#SBATCH -a 0-3 -o l/%A_%a.out", "torque", "#PBS -o l/${PBS_JOBID}_$PBS_ARRAYID.out", "the output file l/%A_%a.out"),
        ("#SBATCH -a 0-3 -o l/%j.out", "torque", "#PBS -o l/$PBS_JOBID.out", "the output file l/%j.out"),
        ("#SBATCH -a 0-3 -o l/a-%a", "torque", "#PBS -o l/a", ""),
        ("#SBATCH -J n -o %j-%x", "torque", "#PBS -o $PBS_JOBID-n", ""),
        ("#SBATCH -o '$A`b`%j'", "pbspro", 'exec > "\\$A\\`b\\`${PBS_JOBID%%[!0-9]*}" 2>&1', "--output=$A`b`%j"),
        ("#SBATCH -e e.%j -o o", "pbspro", 'exec 2> "e.${PBS_JOBID%%[!0-9]*}"', "--error=e.%j"),
        (
            "#SBATCH -o %N-%u.%J",
            "pbspro",
            'exec > "$(hostname -s)-$PBS_O_LOGNAME.${PBS_JOBID%%[!0-9]*}" 2>&1',
            "--output=%N-%u.%J",
        ),
        ("#SBATCH -a 5 -o a-%a", "pbspro", "export PBS_ARRAY_INDEX=5", "the array 5"),
        ("#SBATCH -a 5 -o a-%a", "pbspro", "#PBS -o a-5", "the array 5"),
        ("#SBATCH -a 5 -o a-%3a", "pbspro", "#PBS -o a-005", "the array 5"),
        (
            "#SBATCH -a 0-3 -o %J",
            "pbspro",
            'exec > "${PBS_JOBID%%[!0-9]*}${PBS_ARRAY_INDEX:+_$PBS_ARRAY_INDEX}" 2>&1',
            "--output=%J",
        ),
        ("#PBS -o out/\n#PBS -l select=1", "slurm", "#SBATCH --output=out/%j.OU", ""),
        ("#PBS -j eo\n#PBS -o a.o\n#PBS -e b.e\n#PBS -l select=1", "slurm", "#SBATCH --output=b.e", ""),
        ("#PBS -j eo\n#PBS -o a.o\n#PBS -l select=1", "slurm", "#SBATCH --output=%x.e%j", ""),
        ("#PBS -j eo\n#PBS -l select=1", "torque", "#PBS -j eo", ""),
        ("#PBS -j eo\n#PBS -l procs=1", "pbspro", "#PBS -j eo", ""),
        ("#PBS -j eo\n#PBS -e b.e\n#PBS -l select=1", "torque", "#PBS -o b.e", ""),
        ("#PBS -J 0-3\n#PBS -j oe\n#PBS -o logs\n#PBS -l select=1", "torque", "#PBS -o logs", "-o logs"),
        ("#PBS -J 0-3\n#PBS -j oe\n#PBS -o a.o\n#PBS -l select=1", "torque", "#PBS -o a.o", "-o a.o"),
        ("#PBS -o logs\n#PBS -l select=1", "slurm", "#SBATCH --output=logs", "-o logs"),
        ("#PBS -o a^array_index^\n#PBS -l select=1", "slurm", "#SBATCH --output=a^array_index^", ""),
        ("#SBATCH -N1\n#PBS -j oe", "pbspro", "##PBS -j oe", "#PBS -j oe"),
        ("#PBS -l select=1\n#PBS -q new\n#SBATCH -p old", "slurm", "##SBATCH -p old", "#SBATCH -p old"),
        ("#SBATCH -N1\n# SBATCH -p old", "pbspro", "# SBATCH -p old", "# SBATCH -p old"),
        ("#SBATCH -J 'a b'", "pbspro", "#PBS -N a_b", "a b"),
    ],
)  # fmt: skip
def test_names_and_other_directives(text: str, target: str, expected: str, remark: str) -> None:
    done = convert(f"#!/bin/bash\n{text}\nhostname\n", target)
    assert expected in done.text.splitlines()
    assert [one.what for one in done.remarks] == [remark] * bool(remark)
    assert not any(one.lost for one in done.remarks)


@pytest.mark.parametrize(
    ("start", "end"), [("cat > j.sh << EOF\n#!/bin/bash", "EOF"), ("cd x\nT='", "'"), ('cd x\nT="', '"')]
)
@pytest.mark.parametrize(("target", "own"), [("slurm", "#PBS -l select=1"), ("pbspro", "#SBATCH -N 1")])
def test_directives_of_another_script_stay(start: str, end: str, target: str, own: str) -> None:
    text = f"{start}\n#SBATCH -p x\n#PBS -j oe\n{end}\n"
    done = convert(f"#!/bin/bash\n{own}\n{text}hostname\n", target)
    assert text in done.text
    assert not [one for one in done.remarks if "no effect" in one.why]


@pytest.mark.parametrize(
    ("log", "target", "line"),
    [
        ("-o x.log", "slurm", "#SBATCH --output=x.log-%a"),
        ("-o x.log", "pbspro", "#PBS -o x.log-^array_index^"),
        ("-o x.$PBS_ARRAYID", "slurm", "#SBATCH --output=x.%a"),
        ("-N x", "slurm", "#SBATCH --output=%x.o%A-%a"),
    ],
)
def test_torque_adds_the_index_to_a_log(log: str, target: str, line: str) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=1\n#PBS -t 1-3\n#PBS -j oe\n#PBS {log}\n./a", target, "torque")
    assert line in done.text.splitlines()
    back = conversion.convert(Script(done.text.encode(), target), "torque")
    assert ("#PBS -o x.log\n" in back.text) == (log == "-o x.log")


def test_no_index_is_added_to_a_log_that_the_script_opens() -> None:
    done = convert("#SBATCH -N 1 -a 1-4 -o a/%x/%A_%a.out\n./a $SLURM_ARRAY_TASK_ID", "torque")
    assert "exec " in done.text
    assert not [one for one in done.remarks if "-INDEX" in one.why]


def test_a_log_in_the_directory_of_the_job() -> None:
    done = convert("#SBATCH -N 1 -D /w -o l/x.log -e /e.log\n./a", "pbspro")
    assert "#PBS -o /w/l/x.log\n#PBS -e /e.log\n" in done.text
    done = convert("#PBS -l nodes=1:ppn=1\n#PBS -d /w\n#PBS -o x.log\n#PBS -j oe\n./a", "slurm")
    assert remarks(done) == [(False, 4, "the output file x.log")]


def test_the_default_log_of_slurm_in_the_script() -> None:
    text = "mv slurm-$SLURM_JOB_ID.out slurm-*.out logs"
    assert (True, 3, "slurm-$SLURM_JOB_ID.out") in remarks(convert(ONE + text, "pbspro"))
    assert remarks(convert(f"#SBATCH -N 1 -o slurm_x.out\n{text}", "pbspro")) == []


def test_the_home_directory_in_a_log() -> None:
    done = convert("#PBS -l select=1:ncpus=1\n#PBS -o ~/x.out\n/opt/a", "slurm", "pbspro")
    assert remarks(done) == [(False, 3, "-o ~/x.out")]
    assert "does not expand ~" in done.remarks[0].why


@pytest.mark.parametrize(
    ("index", "output"),
    [("7", "12_7.out"), (None, "12_4294967294.out")],
)
def test_each_task_of_the_submission_has_its_log(index: str | None, output: str, tmp_path: object) -> None:
    done = convert("#SBATCH -N 1\n#SBATCH -o %A_%a.out\necho $SLURM_ARRAY_TASK_ID", "pbspro")
    variables = {"PATH": "/usr/bin:/bin", "PBS_JOBID": "12[7].server", "PBS_O_WORKDIR": str(tmp_path)}
    variables |= {"PBS_ARRAY_INDEX": index} if index else {}
    run = subprocess.run(["bash", "-c", done.text], env=variables, cwd="/", check=False)
    assert run.returncode == 0
    found = subprocess.run(["ls"], cwd=str(tmp_path), capture_output=True, text=True, check=True)
    assert found.stdout == f"{output}\n"


@pytest.mark.parametrize(
    ("directives", "target", "noted"),
    [
        ("#PBS -J 0-3\n#PBS -o all.log", "slurm", ["-o all.log"]),
        ("#PBS -J 0-3\n#PBS -o all.^array_index^", "slurm", []),
        ("#PBS -t 0-3\n#PBS -o all.log", "slurm", []),  # Torque adds the index, and so does the new script
        ("#SBATCH -a 1-3\n#SBATCH -o all.log", "pbspro", ["--output=all.log"]),
        ("#SBATCH -a 1-3\n#SBATCH -o all.%a", "pbspro", []),
        ("#SBATCH -a 1-3\n#SBATCH -o /dev/null", "pbspro", []),
        ("#SBATCH -N 1\n#SBATCH -o all.log", "pbspro", []),
    ],
)
def test_one_log_of_all_tasks_has_a_remark(directives: str, target: str, noted: list[str]) -> None:
    done = convert(f"{directives}\n./a", target)
    assert [one.what for one in done.remarks if "one file for all tasks" in one.why] == noted


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("#PBS -l nodes=1\n#PBS -o /x/%J.log", "slurm", "#SBATCH --output=/x/%%J.log"),
        ("#PBS -l nodes=1\n#PBS -o /x/%J.log", "pbspro", "#PBS -o /x/%J.log"),
        ("#SBATCH -N 1\n#SBATCH -o /x/%%J.log", "torque", "#PBS -o /x/%J.log"),
        ("#SBATCH -N 1\n#SBATCH -o l/%%log-file%%", "pbspro", "#PBS -o l/%%log-file%%"),
        ("#SBATCH -N 1\n#SBATCH -e %%err%%.e", "torque", "#PBS -e %%err%%.e"),
        ("#PBS -l nodes=1\n#PBS -o l/%%log%%", "slurm", "#SBATCH --output=l/%%log%%"),
        ("#SBATCH -N 1\n#SBATCH -o <log>", "pbspro", "#PBS -o <log>"),
        ("#SBATCH -N 1\n#SBATCH -o @log@", "pbspro", "#PBS -o @log@"),
    ],
)
def test_a_percent_sign_is_a_code_for_slurm_only(text: str, target: str, expected: str) -> None:
    assert f"{expected}\n" in convert(f"{text}\n./a", target).text


@pytest.mark.parametrize(
    ("log", "command", "noted"),
    [
        ("run.log", "grep -i error log.run run.log", True),
        ("run.log", "egrep error *.log > errors", True),
        ("run.log", 'mail -s x me < "$SLURM_SUBMIT_DIR/other.log"', False),
        ("run.log", "cp * /x", False),
        ("run.log", "echo the results are in run.log", False),
        ("run.log", "echo run.log | xargs tail", True),
        ("/logs/run", "./a --save-to=/results/run", False),
        ("/logs/run", "./a --log=/logs/run", True),
        ("run.%j", "tail run.*", False),
    ],
)
def test_a_log_that_the_script_reads_is_not_there_yet(log: str, command: str, noted: bool) -> None:
    done = convert(f"#SBATCH -N 1\n#SBATCH -o {log}\n./a\n{command}", "pbspro")
    assert [one.line for one in done.remarks if "when the job has ended" in one.why] == [5] * noted


@pytest.mark.parametrize(
    ("command", "noted"),
    [
        ("jupyter-lab --no-browser --port=$P", True),
        ("jupyter lab 2>&1", True),
        ("srun singularity exec a.sif bash -c 'source a; jupyter notebook'", True),
        ("venv/bin/python venv/bin/jupyter-lab", True),
        ("python -u -m notebook --no-browser", True),
        ("tensorboard --logdir=x --host 0.0.0.0 &", True),
        ("/usr/lib/rserver --www-port 1", True),
        ("code-server", True),
        ("marimo edit --headless", True),
        ("jupyter lab > x.log 2>&1 &", False),
        ("jupyter lab 2>&1 | tee x.log", False),
        ("{ jupyter lab; } &> x.log", False),
        ("exec > x.log 2>&1; jupyter lab", False),
        ("jupyter nbconvert --execute x.ipynb", False),
        ("T=$(jupyter notebook list)", False),
        ("code-server --install-extension x", False),
        ("python train.py --tensorboard x", False),
    ],
)
def test_a_server_whose_address_is_in_the_log(command: str, noted: bool) -> None:
    """PBS writes the log when the job has ended; one that the script opens with exec is in time."""
    logs = [
        ("a.%j", "torque", True),
        ("a.%j", "pbspro", False),
        ("a", "pbspro", True),
        ("/dev/null", "torque", False),
    ]
    for log, target, late in logs:
        done = convert(f"#SBATCH -N 1\n#SBATCH -o {log}\n./a\n{command}", target)
        found = [one.line for one in done.remarks if "when the job has ended, Slurm while it runs" in one.why]
        assert found == [5] * (noted and late)
    done = convert(f"#PBS -l select=1\n{command}", "slurm")
    assert "of its address" not in str(done.remarks)


@pytest.mark.parametrize(("events", "noted"), [("FAIL", True), ("FAIL,END", False), ("ALL", False)])
def test_mail_of_a_script_that_fails(events: str, noted: bool) -> None:
    done = convert(f"#SBATCH -N 1 --mail-type={events}\n./a", "pbspro")
    assert any(one.line == 2 and "not if the script fails" in one.why for one in done.remarks) == noted


@pytest.mark.parametrize(
    ("directives", "text", "expected"),
    [
        ("#PBS -N x", "mv $PBS_JOBNAME.o$ID logs", ["$PBS_JOBNAME.o$ID"]),
        ("#PBS -N x", "rm -f *.o*", ["*.o*"]),
        ("#PBS -N x\n#PBS -o x.log\n#PBS -j oe", "rm -f *.log", ["rm -f *.log"]),
        ("#PBS -N x", "gcc -o main.o main.c", []),
        ("#PBS -N x", "cd /data\nrm x.*", ["rm x.*"]),
        ("#PBS -N x", "cd /data\ncp x.* /y", []),
    ],
)
def test_a_log_of_pbs_that_the_script_uses(directives: str, text: str, expected: list[str]) -> None:
    """PBS writes it when the job has ended, and Slurm while it runs."""
    done = convert(f"{directives}\ncd /w\n{text}", "slurm")
    assert [what for lost, _, what in remarks(done) if not lost] == expected


def test_the_logs_of_a_directory_have_names_of_their_own() -> None:
    done = convert("#PBS -l select=1\n#PBS -o out\n#PBS -e err\n./a", "slurm")
    ends = [one.why.rpartition(" ")[2] for one in done.remarks if "takes a directory" in one.why]
    assert ends == ["out/%j.OU", "err/%j.ER"]
    done = convert("#PBS -l nodes=1:ppn=2 -t 1-2\n#PBS -o host:/out\n./a", "slurm")
    ends = [one.why.rpartition(" ")[2] for one in done.remarks if "takes a directory" in one.why]
    assert ends == ["/out/%x.o%A-%a"]


_SWEEPS = [
    ("deletes", "rm *"),
    ("deletes", "rm -rf *"),
    ("deletes", "rm -f ./*"),
    ("deletes", 'rm -f "$PBS_O_WORKDIR"/*'),
    ("deletes", "rm -f *.o*"),
    ("deletes", "rm -f ${PBS_JOBNAME}.o*"),
    ("deletes", "rm -rf {out,job.*}"),
    ("deletes", "find . -type f -exec rm {} +"),
    ("deletes", "find . -maxdepth 1 -type f ! -name '*.inp' -delete"),
    ("deletes", "find $PBS_O_WORKDIR \\( -name '*.e*' -o -name '*.o*' \\) -delete"),
    ("deletes", "find . -type f | xargs rm"),
    ("deletes", "ls | grep -v inp | xargs rm -f"),
    ("deletes", "rm -f $(ls | grep -v 'inp\\|dat')"),
    ("deletes", "rm -f `ls | egrep -v 'inp|dat'`"),
    ("moves", "mv * old/"),
    ("moves", "ls | xargs -I{} mv {} old"),
    ("packs", "tar czf all.tgz *"),
    ("packs", "tar -czf all.tgz ."),
    ("copies", "cp * /x"),
    ("copies", "rsync -a ./ /x/"),
    ("compresses", "gzip *"),
    ("compresses", "for f in *; do gzip $f; done"),
    ("deletes", "(cd out; rm *); rm *"),
    ("deletes", "cd out; ./b; cd ..; rm *"),
    ("", "rm *.tmp"),
    ("", "rm */"),
    ("", "rm -rf out/*"),
    ("", "cd out; rm *"),
    ("", "(cd $SCRATCH; rm *)"),
    ("", "find . -type f ! -name 'job.*' -delete"),
    ("", "find . -type d -exec rm -rf {} +"),
    ("", "find . -mtime +3 -delete"),
    ("", "find . -name '*.o*' | tail -1"),
    ("", "ls | grep -v job | xargs rm"),
    ("", "ls | head -3 | xargs rm"),
    ("", "tar xzf *"),
    ("", "tar czf all.tgz --exclude='job.*' *"),
    ("", "mv a *"),
    ("", "for f in *; do if [ -d $f ]; then rm -r $f; fi; done"),
]


@pytest.mark.parametrize(("verb", "command"), _SWEEPS)
def test_a_log_that_goes_with_all_files(verb: str, command: str) -> None:
    text = f"#PBS -N job\n#PBS -l select=1:ncpus=1\n#PBS -j oe\ncd $PBS_O_WORKDIR\n./a\n{command}"
    found = [one for one in convert(text, "slurm", "pbspro").remarks if "while" in one.why and one.line > 6]
    why = f"{verb} the log job.oID, too, which Slurm writes while the job runs"
    assert [one.why for one in found if "too" in one.why] == [why] * bool(verb)
    assert len(found) == bool(verb) or not verb
    assert not any("the log job" in one.why for one in convert(text, "torque", "pbspro").remarks)


@pytest.mark.parametrize(
    ("directives", "start", "command", "logs"),
    [
        ("", "", "rm *", ""),  # in the home directory
        ("#PBS -o x.log\n", "cd ${PBS_O_WORKDIR:-.}", "rm *", "logs x.log and NAME.eID"),
        ("#PBS -o logs/\n#PBS -j oe\n", "cd $PBS_O_WORKDIR", "rm logs/*", "log logs/ID.OU"),
        ("#PBS -o /w/x.log\n#PBS -j oe\n", "cd /w", "rm -f *.log", "log /w/x.log"),
        ("#PBS -o /w/x.log\n#PBS -j oe\n", "cd $PBS_O_WORKDIR", "rm *", ""),
        ("#PBS -o /dev/null\n#PBS -j oe\n", "cd $PBS_O_WORKDIR", "rm *", ""),
        ("#PBS -o x.log\n#PBS -j oe\n", "cd $PBS_O_WORKDIR", "cp x.log /x", ""),  # by its name
    ],
)
def test_the_place_of_a_log_that_goes_with_others(
    directives: str, start: str, command: str, logs: str
) -> None:
    done = convert(f"{directives}#PBS -l select=1:ncpus=1\n{start}\n./a\n{command}", "slurm", "pbspro")
    found = [one.why for one in done.remarks if ", too, which" in one.why]
    assert found == [f"deletes the {logs}, too, which Slurm writes while the job runs"] * bool(logs)


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("#PBS -N job\n#PBS -l select=1:ncpus=1\ncd $PBS_O_WORKDIR\n./a\nrm -rf *", True),
        ("#PBS -N job\n#PBS -l select=1:ncpus=1\ncd $PBS_O_WORKDIR\n./a\nrm *", False),  # no folders
        ("#PBS -N job\n#PBS -l select=1:ncpus=1\n./a\nrm -rf *", False),
        ("#SBATCH -J job\n#SBATCH -N 1\n./a\nfind . -type f | xargs rm", True),
        ("#SBATCH -J job\n#SBATCH -N 1\n./a\ncd out\nrm -rf *", False),
        ("#SBATCH -J job\n#SBATCH -N 1\ncd $HOME/data\nrm -rf *\n./a", True),
        ("#SBATCH -J job\n#SBATCH -N 1\ncd /data\n./a\nrm -rf /data/*", True),
        ("#SBATCH -J job\n#SBATCH -N 1\ncd /data\n./a\nrm -rf $SLURM_SUBMIT_DIR/*", False),
        ("#SBATCH -J job\n#SBATCH -N 1\ncd ~/data\n./a\nrm -rf $SLURM_SUBMIT_DIR/*", False),
        ("#SBATCH -J job\n#SBATCH -N 1\ncd ~/data\n./a\nrm -rf ~/data/*", True),
    ],
)
def test_the_run_directory_that_goes_with_all_files(text: str, noted: bool) -> None:
    found = [one.why for one in job_file(f"#!/bin/bash\n{text}\n").remarks if "runs/" in one.what + one.why]
    assert [one for one in found if one.startswith("deletes runs/job-ID, too")] == found
    assert len(found) == noted


@pytest.mark.parametrize("start", ["", "cd $HOME/data\n", "cd out\n"])
@pytest.mark.parametrize(
    ("command", "noted"),
    [
        ("for d in */; do (cd $d; ./b); done", True),
        ("for f in $(ls); do n=$(basename $f); ./b $n; done", True),
        ("for d in `ls -d */`; do ./b $d; done", True),
        ("ls | parallel -j 4 ./b {}", True),
        ("ls | while read f; do ./b $f; done", True),
        ("ls | xargs -n 1 ./b", True),
        ("./b *", True),
        ("git add *", True),
        ('./b "*"', False),
        ("./b *.txt", False),
        ("for f in *.txt; do ./b $f; done", False),
        ("for f in in/*; do ./b $f; done", False),
        ("for f in *; do echo $f; done", False),
        ("for f in *; do [ -f $f ] && ./b $f; done", False),
        ("for f in *; do if [ -f $f ]; then ./b $f; fi; done", False),
        ("for f in *; do [ -f $f ] || continue; ./b $f; done", False),
        ("ls | grep -v runs | parallel ./b", False),
        ("ls -d */ | grep -v runs | parallel ./b", False),
        ("find . -name '*.txt' | parallel ./b", False),
        ("ls | wc -l", False),
    ],
)
def test_the_run_directory_among_all_files(start: str, command: str, noted: bool) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -N 1\n{start}{command}\nsrun ./a\n")
    found = [one.line for one in done.remarks if one.why.startswith("takes runs, too")]
    assert found == [3 + bool(start)] * noted


@pytest.mark.parametrize(
    ("log", "commands", "noted"),
    [
        ("/data/logs/a.log", "rm -r /data/logs", "deletes the log"),
        ("/data/logs/a.log", "mv /data/logs /old", "moves the log"),
        ("/data/logs/a.log", "mkdir -p /data/logs", "before the script runs"),
        ("logs/a.log", "cd $PBS_O_WORKDIR\n[ -d logs ] || mkdir logs", "before the script runs"),
        ("logs/", "D=logs\nmkdir -p $D", "before the script runs"),
        ("logs/a.log", "cd $PBS_O_WORKDIR\nmkdir -p logs/data", "before the script runs"),
        ("/data/logs/", "for d in out logs; do mkdir -p /data/$d; done", "before the script runs"),
        ("/data/logs/", "for d in a b; do mkdir -p /data/$d/logs; done", ""),
        ("logs/a.log", ': ${D:="."}\nmkdir -p ${D}/logs/data', "before the script runs"),
        ("logs/a.log", "cd $PBS_O_WORKDIR\nmkdir logs/data", ""),
        ("/data/logs/a.log", "rm -r /data/log", ""),
        ("/data/logs/a.log", "mkdir /other/logs", ""),
        ("a.log", "mkdir -p out", ""),
    ],
)
def test_the_folder_of_a_log_that_the_script_makes_or_deletes(log: str, commands: str, noted: str) -> None:
    """PBS copies the log there when the job has ended; Slurm opens it before."""
    done = convert(f"#PBS -l select=1:ncpus=1\n#PBS -j oe\n#PBS -o {log}\n{commands}\n./a", "slurm")
    whys = [one.why for one in done.remarks if "log" in one.why]
    assert [noted in why for why in whys] == [True] * bool(noted)


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_a_log_with_the_index_of_an_array_that_only_the_submission_names(target: str) -> None:
    done = convert("#!/bin/bash\n#SBATCH -e l/%A_%a.err\njulia a.jl\n", target)
    index = {"pbspro": "PBS_ARRAY_INDEX", "torque": "PBS_ARRAYID"}[target]
    assert f'exec 2> "l/${{PBS_JOBID%%[!0-9]*}}_${{{index}:-4294967294}}.err"' in done.text.splitlines()
    whys = [one.why for one in done.remarks if one.what == "--error=l/%A_%a.err"]
    assert any("no directive has the range of the array" in why for why in whys)
    assert f"in an array, programs that read SLURM_ARRAY_TASK_ID find {index}" in whys


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("./a $PBS_ARRAY_INDEX", "%x.o%A.%a"),
        ("./a ${PBS_ARRAY_INDEX:-0}", "%x.o%j"),
        ("echo $PBS_ARRAY_INDEX\n./a", "%x.o%j"),
        ("./a", "%x.o%j"),
    ],
)
def test_the_log_of_a_task_of_an_array_that_the_submission_makes(code: str, name: str) -> None:
    done = convert(f"#PBS -l select=1:ncpus=1\n{code}", "slurm", "pbspro")
    assert f"#SBATCH --output={name}\n" in done.text


@pytest.mark.parametrize(
    ("log", "line"), [("-o x-$PBS_ARRAYID", "--output=x-%a"), ("-e x.${PBS_ARRAYID}.e", "--error=x.%a.e"), ("-o x", "")]
)  # fmt: skip
def test_the_index_in_the_name_of_a_log_is_that_of_the_submission(log: str, line: str) -> None:
    done = convert(f"#PBS -l nodes=1:ppn=1\n#PBS {log}\n./a", "slurm", "torque")
    assert not line or f"#SBATCH {line}" in done.text.splitlines()
    found = [one.what for one in done.remarks if "no directive has the range of the array" in one.why]
    assert found == [log] * bool(line)


@pytest.mark.parametrize("target", ["pbspro", "toml"])
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("python t.py --resume lightning_logs/version_$SLURM_JOB_ID/last.ckpt", True),
        ('python t.py --resume "$D/lightning_logs/version_${SLURM_ARRAY_JOB_ID}/last.ckpt"', True),
        ("python t.py --resume lightning_logs/version_0/last.ckpt", False),
        ("# lightning_logs/version_$SLURM_JOB_ID\npython t.py", False),
    ],
)
def test_the_folder_of_lightning(line: str, named: bool, target: str) -> None:
    text = f"#!/bin/bash\n#SBATCH -N 1\n{line}\n"
    done = job_file(text) if target == "toml" else convert(text, target)
    found = [one.line for one in done.remarks if "Lightning names this folder" in one.why]
    assert found == [3] * named


@pytest.mark.parametrize(("join", "log", "unused"), [("oe", "out", "-e err"), ("eo", "err", "-o out")])
def test_the_directive_of_a_log_that_is_joined_to_the_other(join: str, log: str, unused: str) -> None:
    text = f"#!/bin/bash\n#PBS -l select=1:ncpus=1\n#PBS -j {join}\n#PBS -o out\n#PBS -e err\n./a\n"
    done = convert(text, "slurm")
    assert f"--output={log}\n" in done.text
    assert [one.what for one in done.remarks if "takes a directory" in one.why] == [f"-{log[0]} {log}"]
    made = job_file(text)
    assert f'log = "{log}"' in made.text
    assert unused not in str([done.remarks, made.remarks])
    assert "the error file" not in str(made.remarks)
