"""Files that a converted script starts or names, and that convert does not read."""

from __future__ import annotations

from pathlib import Path

import pytest
from convert.conversions import convert, job_file

from jobgen.convert.to_job_file import translation
from jobgen.convert.to_scheduler import conversion
from jobgen.script.beside import programs
from jobgen.script.script import Script

SLURM = "#!/bin/bash\n#SBATCH -N 1\n#SBATCH -t 10\n{}\n"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ('snakemake --jobs 9 --cluster "../submit.py"', [4]),
        ('snakemake --cluster="./submit.sh" -j 9', [4]),
        ('snakemake --cluster "python submit.py {threads}"', [4]),
        ("snakemake --cluster-generic-submit-cmd ./submit.sh", [4]),
        ("snakemake --slurm -j 9", [4]),
        ('snakemake --drmaa " -p long"', [4]),
        ("snakemake -e slurm", [4]),
        ("merlin -a a.json -k snakemake.json data", [4]),
        ("S='snakemake --cluster ./submit.sh'\n$S all", [5]),
        ('O="--cluster ./submit.sh"\nsnakemake $O', [5]),
        ('O=(--profile big)\nsnakemake "${O[@]}"', [5]),
        ("export SNAKEMAKE_PROFILE=big\nsnakemake -j 9", [5]),
        ('bash -c "snakemake --profile big"', [4]),
        ("conda run -n a snakemake --profile big", [4]),
        ("python -m snakemake --profile big", [4]),
        ('snakemake --profile big --cluster "sbatch -n 1"', [4]),
        ("srun nextflow run a.nf", [4]),
        ('snakemake --cluster "sbatch -n 1"', []),  # which has a remark of its own
        ('C="sbatch -n 1"\nsnakemake --cluster "$C"', []),
        ("snakemake --cluster \"ssh $USER@login 'module load a; sbatch -e {log.stderr} -n 1'\"", []),
        ("snakemake -j 9 --cluster-config a.json", []),
        ('snakemake -j 9 --jobname "s.{rulename}.{jobid}.sh"', []),
        ("snakemake --executor local -j 9", []),
        ("module load snakemake\nconda activate snakemake", []),
        ("nextflow -version", []),
        ("echo snakemake --profile big", []),
    ],
)
def test_the_jobs_of_a_workflow_are_for_the_scheduler_of_the_script(code: str, lines: list[int]) -> None:
    for done in (convert(SLURM.format(code), "pbspro"), job_file(SLURM.format(code))):
        assert [one.line for one in done.remarks if "not read" in one.why] == lines


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("singularity exec $O $IMG ./a.cmd", "a.cmd"),
        ("find . -name '*.sh' -exec bash a.sh {} \\;", "a.sh"),
        ("A=$(type -p a.sh)\n$A 1", "a.sh"),
        ("bash $(which a.sh)", "a.sh"),
        ("bash $(realpath a.sh)", "a.sh"),
        ("A=$(realpath a.sh)\nbash $A", "a.sh"),
        ('A=$(realpath "$B/a.sh")\nsrun "$A" "$(realpath $B)"', "a.sh"),
        ("A=`readlink -f $(dirname $0)/a.sh`\nsource $A", "a.sh"),
        ('parallel -j 4 "./a.sh {}" ::: 1 2', "a.sh"),
        ("ls | xargs -n1 sh a.sh", "a.sh"),
        ('bash -c "cd b; ./a.sh 3"', "a.sh"),
        ("bash <<END\nsource a.sh\nEND", "a.sh"),
        ('ssh n "bash a.sh"', "a.sh"),
        ('f() { bash "$1"; }\nf a.sh', "a.sh"),
        ("A='bash a.sh -x'\n$A", "a.sh"),
        ('eval "source a.sh"', "a.sh"),
        ("./a.sh b.sh 3", "a.sh, b.sh"),
        ("f=run${I}\nbash ${f}", "run${I}"),
        ("for f in b/*; do sh -e $f; done\nsource $X", "$f, $X"),
        ('bash $1\nf() { bash "$@"; }\nf $X\nbash -l\n./$X', "$X"),
        ("`pwd`/a.sh\nmpirun -n 1 `dirname $0`/b/b.sh", "a.sh, b.sh"),
        ("`conda info --base`/a.sh\nsource ~/.zshrc\nsource ~/.cshrc", ""),
        ("python run.py --script=a.sh -x b.slurm", "a.sh, b.slurm"),
        ("python ../submit_jobs.py", "submit_jobs.py"),
        ("python a.py sim.affinity=./b.sh c=d=e.sh", "b.sh"),
        ("conda activate /b/smartsim\npython c.py d.py\npython -m b", "c.py"),
        ("pip install submitit\nsrun python c.py", "c.py"),
        ("echo smartsim\n./c d.py", ""),
        ("balsam launcher --job-mode=mpi\nbalsam rm jobs", "the configuration of balsam"),
        ("cactus ./a b.txt --batchSystem slurm", "the configuration of cactus"),
        ("toil-wdl-runner --batchSystem single_machine a.wdl", ""),
        ("python -u a/b_experiment_launcher.py 3", "b_experiment_launcher.py"),
        ("source a.sh\nsnakemake --cluster 'python3 b.py {threads}' --cluster-status ./c", "b.py, c, a.sh"),
        ("snakemake --drmaa ' -p long'", "the configuration of snakemake"),
        ("java -Dconfig.file=a -jar ~/cromwell-47.jar run b.wdl", "the configuration of cromwell-47.jar"),
        ('canu -p b gridOptions="-p long" -pacbio c', "the configuration of canu"),
        ("canu -p b useGrid=false -pacbio c", ""),
        ("canu --version", ""),
        ("fsl_sub -q long ./b", "the configuration of fsl_sub"),
        ("time bedpostx b", "the configuration of bedpostx"),
        ("cd b && ./case.submit", "the configuration of case.submit"),
        ("ipcluster start -n 4 --profile=b", "the configuration of ipcluster"),
        ("ipcluster start -n 4", ""),
        ("make submit-run A=1\nmake all", "Makefile"),
        ("make all A=slurm", ""),
        ("./Allclean\n./Allrun.pre 4", "Allrun.pre"),
        ("HiC-Pro -i b -o c -p", "the configuration of HiC-Pro"),
        (
            "merlin run b.yaml\nmaestro run b.yaml",
            "the configuration of merlin, the configuration of maestro",
        ),
        ("$SCHRODINGER/glide -HOST batch:8 b.in", "the configuration of glide"),
        ("$SCHRODINGER/glide -HOST localhost:8 b.in", ""),
        ("masurca config.txt", "the configuration of masurca"),
        ("./a.sh\n./b.sh\n./c.sh\n./d.sh\n./e.sh\n./f.sh", "a.sh, b.sh, c.sh, d.sh and 2 more"),
        ("find . -name a.sh -delete\ncp a.sh b.sh\ndiff b.sh c.sh\nwhich d.sh\ntype -p e.sh", ""),
        ("python a.py\npython -m b\npython -c 'import a'\njulia c.jl\nRscript d.R\n./e", ""),
        ("snakemake --cluster 'mkdir -p a; sbatch'\nA=\n$A b", ""),
        ('S="sbatch -n 1"\nS+=" -t 3"\nsnakemake --cluster "$S"', ""),
        ('run() { ./b "$@"; }\nrun bash -c "export A=1; ./c"', ""),
        ('source "$(get_dir)"/../a.sh', "a.sh"),
        ("f() { echo /b; }\nbash `f`/a.sh", "a.sh"),
        (". /opt/shared/slurm/templates/a.sh", "a.sh"),
        (
            "./spack/configure_modules.sh\nsource spack/modules.sh\nbash ~/Miniconda3.sh",
            "configure_modules.sh",
        ),
        ("$HOME/bin/a.sh\n${HOME}/etc/b.sh\n$TOOL_HOME/bin/c.sh", "a.sh, b.sh"),
        ("srun bash `basename $1`", "`basename $1`"),
        ("source $(site-path)\n. $(brew --prefix)/etc/bash_completion", ""),
        ("source activate a\n. /etc/profile.d/modules.sh\necho 'run a.sh'", ""),
    ],
)
def test_files_that_are_not_read_have_one_remark(code: str, names: str) -> None:
    for done in (convert(SLURM.format(code), "torque"), job_file(SLURM.format(code))):
        assert [one.what for one in done.remarks if "not read" in one.why] == [names] * bool(names)


@pytest.mark.parametrize(
    ("text", "named"), [("echo $SLURM_JOB_ID", True), ("srun ./a", True), ("sort b", False)]
)
def test_a_job_file_names_a_file_beside_the_script_that_is_for_its_scheduler(
    text: str, named: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.sh").write_text(f"{text}\n")
    script = Script(SLURM.format("bash a.sh").encode(), "slurm", str(tmp_path), name="job.sh")
    found = [
        one.what for one in translation.convert(script).remarks if "another scheduler does not set" in one.why
    ]
    assert found == ["a.sh"] * named


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_node_file_is_on_the_first_node(nodes: int) -> None:
    body = 'cat "$PBS_NODEFILE"\nexport A=$(sort -u $PBS_NODEFILE | wc -l)\nmpiexec -n 2 ./wrap.sh ./a'
    done = convert(f"#!/bin/bash\n#PBS -l select={nodes}:ncpus=4:mpiprocs=4\n{body}\n", "slurm")
    why = next(one.why for one in done.remarks if one.what == "wrap.sh")
    assert ("PBS_NODEFILE" in why) == (nodes > 1)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('subprocess.run(["sbatch", "a.sh"])', "names sbatch, a command of Slurm"),
        ("os.system('/usr/bin/squeue -u me')", "names squeue, a command of Slurm"),
        ("i = int(os.environ['SLURM_PROCID'])", "reads SLURM_PROCID, which PBS Pro does not set"),
        ("# os.system('sbatch a.sh')", ""),
        ("print('no srun here')", ""),
        (
            "i = os.environ['SLURM_PROCID'], os.environ.get('SLURM_NTASKS')\nos.getenv('SLURM_JOB_USER')",
            "reads SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_USER, which PBS Pro does not set",
        ),
        ("os.system('srun a'); run('sbatch b')", "names srun, sbatch, commands of Slurm"),
        ("i = os.environ['PBS_JOBID']", ""),
    ],
)
def test_a_program_beside_the_script_has_words_of_its_scheduler(line: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "submit.py").write_text(f"import os\n{line}\n")
    script = Script(SLURM.format("srun python submit.py 1").encode(), "slurm", str(tmp_path))
    done = [conversion.convert(script, "pbspro"), translation.convert(script)]
    for one, other in zip(done, ("PBS Pro", "another scheduler"), strict=True):
        found = [(one.line, one.why) for one in one.remarks if one.what.startswith("submit.py")]
        assert found == [(4, why.replace("PBS Pro", other))] * bool(why)


@pytest.mark.parametrize(
    ("command", "file", "text", "named"),
    [
        ("julia a.jl", "a.jl", "run(`sbatch $f`)", True),
        ("Rscript a.R", "a.R", "system(paste0('sbatch ', f))", True),
        ("perl a.pl", "a.pl", "my $x = `sbatch $f`;", True),
        ("perl a.pl", "a.pl", "my $x = qx(sbatch $f);", True),
        ("perl a.pl", "a.pl", "open(P, 'squeue -u me|');", True),
        ("perl a.pl", "a.pl", "print $ENV{SLURM_JOB_ID};", True),
        ("R --no-save < a.R", "a.R", 'system("cd b && sbatch a.sh")', True),
        ("matlab -nodisplay -r 'a; exit'", "a.m", "system('sbatch a.sh')", True),
        ("matlab < a.m", "a.m", "!sbatch a.sh", True),
        ("matlab -batch a", "a.m", "% system('sbatch a.sh')", False),
        ("ruby a.rb", "a.rb", "%x(sbatch a.sh)", True),
        ("tclsh a.tcl", "a.tcl", "exec sbatch a.sh", True),
        ("gcc a.c -o a", "a.c", 'system("sbatch a.sh");', True),
        ("./a", "a", '#!/usr/bin/env perl\nsystem("sbatch b.sh")', True),
        ("./a", "a", "system('sbatch a.sh')", False),
        ("julia -e 'include(\"a.jl\")'", "a.jl", "run(`sbatch b`)", True),
        ("snakemake -j 4", "Snakefile", 'rule a:\n  shell: "srun x"', True),
        ("snakemake -s b.smk -j 4", "b.smk", 'rule a:\n  shell: "srun x"', True),
        ("expect a.exp", "a.exp", "spawn sbatch x", True),
        ("gcc a.c -o a", "a.c", '// system("sbatch a.sh");', False),
        ("make -j 4 all", "Makefile", "all:\n\t@sbatch a.sh", True),
        ("srun make -C b", "b/Makefile", "all:\n\tcd x && sbatch a.sh", True),
        ("make -f a.mk", "a.mk", "N = $(SLURM_NTASKS)", True),
        ("make", "makefile", "sbatch: a.o\n\tcc a.c", False),
        ("python a.py", "a.py", '"""Started with `sbatch a.sh`."""', False),
        ("python a.py", "a.py", 'os.system(f"cd {b}; sbatch a.sh")', True),
        ("python a.py", "a.py", 'os.system("ssh login sbatch a.sh")', True),
        ("python a.py", "a.py", 'print("sbatch: is not found")', False),
    ],
)
def test_a_program_in_another_language_has_words_of_the_scheduler(
    command: str, file: str, text: str, named: bool, tmp_path: Path
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(f"{text}\n")
    script = Script(SLURM.format(command).encode(), "slurm", str(tmp_path))
    for done in (conversion.convert(script, "pbspro"), translation.convert(script)):
        assert any(one.what.startswith(f"{file}:") for one in done.remarks) == named


@pytest.mark.parametrize(
    ("command", "file", "line"),
    [
        ("srun python -u -m pkg.run", "pkg/run.py", 4),
        ("python -m pkg", "pkg/__main__.py", 4),
        ("python3 -um pkg.run 1", "pkg/run.py", 4),
        ("python -m pdb run.py", "run.py", 4),
        ("python -m pkg.run other.py", "pkg/run.py", 4),
        ("./prog -maxh 2 run.py", "run.py", 4),
        ("torchrun --nproc-per-node=2 -m pkg.run", "pkg/run.py", 4),
        ("python -m torch.distributed.run -m pkg.run", "pkg/run.py", 4),
        ("deepspeed --module pkg.run", "pkg/run.py", 4),
        ("cd src\npython -m pkg.run", "src/pkg/run.py", 5),
        ("bash -c 'cd src && python -m pkg.run'", "src/pkg/run.py", 4),
        ('cd "$SLURM_SUBMIT_DIR/src"\npython run.py', "src/run.py", 5),
        ("cd /scratch\ncd $HOME\npython -m pkg.run", "pkg/run.py", 6),
        (":\n" * 30 + "python a.py\n" * 30 + "python run.py", "run.py", 64),
        ("python run.py 1\npython run.py 2", "run.py", 4),
        ("python other.py -m pkg.run", "pkg/run.py", 0),
        ("./prog -param pkg.run", "pkg/run.py", 0),
    ],
)
def test_a_module_beside_the_script_is_read(command: str, file: str, line: int, tmp_path: Path) -> None:
    """Files are counted, and not commands: the first ones hide no others."""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("i = os.environ['SLURM_JOB_ID']\n")
    (tmp_path / "a.py").write_text("pass\n")
    done = conversion.convert(Script(SLURM.format(command).encode(), "slurm", str(tmp_path)), "pbspro")
    found = [(one.line, one.what) for one in done.remarks if "reads SLURM_JOB_ID, which" in one.why]
    assert found == [(line, f"{file}:1")] * bool(line)


def test_the_calls_of_a_program_are_limited(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("pass\n")
    code = "cd src\n" + "python a.py\n" * 3000
    found = programs(Script(SLURM.format(code).encode(), "slurm", str(tmp_path)))
    assert [(one.path, len(one.calls)) for one in found] == [("a.py", 20)]


def test_an_engine_in_a_script_beside_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("#!/bin/bash\nnextflow run b\n")
    script = Script(SLURM.format("./a.sh").encode(), "slurm", str(tmp_path))
    found = [one.what for one in conversion.convert(script, "torque").remarks if "not read" in one.why]
    assert found == ["a.sh:2"]
    assert [one.what for one in translation.convert(script).remarks if "not read" in one.why] == ["a.sh"]


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("c = SLURMCluster()", "SLURMCluster"),
        ("addprocs(SlurmManager(4))", "SlurmManager"),
        ("Config(executors=[E(provider=SlurmProvider(q))])", "SlurmProvider"),
        ("plan(batchtools_slurm)", "batchtools_slurm"),
        ("from dask_jobqueue import SLURMCluster, PBSCluster", ""),
        ("c = PBSCluster()  # no SLURMCluster", ""),
    ],
)
def test_workers_that_a_program_starts_by_the_scheduler(code: str, named: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"import b\n{code}\n")
    script = Script(SLURM.format("python a.py").encode(), "slurm", str(tmp_path))
    for done in (conversion.convert(script, "torque"), translation.convert(script)):
        found = [one.why for one in done.remarks if one.what == "a.py:2"]
        assert found == [f"uses {named}, for Slurm"] * bool(named)
    done = convert(SLURM.format(f"python <<'E'\n{code}\nE"), "torque")
    assert [one.what for one in done.remarks if "names Slurm" in one.why] == [named] * bool(named)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("e = Experiment('a', launcher='slurm')", "launcher='slurm'"),
        ("s = SrunSettings('a')", "SrunSettings"),
        ("e = Experiment('a', launcher='pbs')", ""),
    ],
)
def test_ranks_that_a_program_starts_by_the_scheduler(code: str, named: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"import b\n{code}\n")
    script = Script(SLURM.format("python a.py").encode(), "slurm", str(tmp_path))
    for done in (conversion.convert(script, "torque"), translation.convert(script)):
        found = [one.why for one in done.remarks if one.what == "a.py:2"]
        assert found == [f"uses {named}, for Slurm"] * bool(named)
