"""Lines of a script that are options of a job file leave its blocks, and keep their place where the order matters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from convert.conversions import job_file, rendered, values
from convert.golden_cases import HERE

SLURM = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=2 --cpus-per-task=4 -t 10\nset -e\n"
PBS = "#!/bin/bash\n#PBS -l nodes=2:ppn=1:gpus=1\nset -e\n"
RUN = "\nsrun ./a\n"


def found(body: str, head: str = SLURM, run: str = RUN) -> dict[str, Any]:
    return values(job_file(f"{head}{body}{run}").text)


OPTIONS = {
    "module": ("module load b", {"module": ["b"]}),
    "module_use": ("module use /b", {"module_use": ["/b"]}),
    "module_purge": ("module purge", {"module_purge": True}),
    "source": ("source /b/x.sh", {"source": ["/b/x.sh"]}),
    "conda": ("conda activate b", {"conda": "b"}),
    "venv": (". /b/bin/activate", {"venv": "/b"}),
    "env": ("export B=1", {"env": {"B": "1"}}),
    "workdir": ("cd /b", {"workdir": "/b"}),
}
ALL = " ".join(OPTIONS)
MODULES = "module module_use module_purge"
# What a statement before an option does, and the options that it lets pass.
KINDS = {
    "a text": ("echo $SLURM_JOB_ID", ALL),
    "a text with a variable of modules": ("echo $CUDA_PATH", ALL),
    "a report of the state": ("which python", ALL),
    "the directory": ("pwd", ALL),
    "a list of files": ("ls -l x; df -h .", ALL),
    "the text of a file": ("cat x.json | head -3", ALL),
    "an option of the shell": ("ulimit -s unlimited", ALL),
    "a function": ("f() { cd /x; module load y; }", ALL),
    "a test": ('if [ -z "$1" ]; then echo none; fi', ALL),
    "a test of a file": ("if [ -f x ]; then echo x; fi", f"{MODULES} conda venv env"),
    "a variable": ("A=$(date)", f"{MODULES} conda venv env workdir"),
    "an exported variable": ("export A=$HOME/x", f"{MODULES} conda venv env workdir"),
    "a variable that a module may set": ("export A=$CUDA_PATH", "env workdir"),
    "the directory in a variable": ("export A=$PWD/x", f"{MODULES} conda venv env"),
    "a directory": ("cd $(hostname)", f"{MODULES} conda env"),
    "a file of conda": ("source $(hostname)/etc/profile.d/conda.sh", "env"),
    "a file": ("mkdir -p x", f"{MODULES} conda venv env"),
    "a value of a file": ("export A=$(jq .a x.json)", f"{MODULES} conda venv env"),
    "a folder elsewhere": ("mkdir -p /y/x", ALL.replace("source ", "")),
    "a folder of the user": ('rm -rf "$SCRATCH/y"', f"{MODULES} conda venv env"),
    "a file of the submission": ("chmod u+x $SLURM_SUBMIT_DIR/y", ALL.replace("source ", "")),
    "a text in a file elsewhere": ("date > $HOME/y", ALL.replace("source ", "")),
    "a test of a file elsewhere": ("if [ -f /y/x ]; then date; fi", ALL.replace("source ", "")),
    "a list of files elsewhere": ("ls /y > /y/x", ALL.replace("source ", "")),
    "a file elsewhere that becomes empty": ("truncate -s 0 /y/x", ALL.replace("source ", "")),
    "a file that becomes empty": ("truncate -s 0 x", f"{MODULES} conda venv env"),
    "a copy into the folder of the job": ("rsync -a /y/x $TMPDIR/", f"{MODULES} env workdir"),
    "a copy of a remote folder": ("rsync -a a:y /b", f"{MODULES} env"),
    "a copy that may make the folder": ("rsync -a /y /b", f"{MODULES} env"),
    "a text of Python": ("A=$(python3 -c 'import sys; sys.stdout.write(\"x\")')", "env workdir"),
    "a folder that is made": ("mkdir -p /b/x", f"{MODULES} conda venv env"),
    "a folder around it": ("D=/\nrm -rf $D", f"{MODULES} conda venv env"),
    "a file of another folder and one of the directory": ("touch /y/x z", f"{MODULES} conda venv env"),
    "a folder of the script": ("D=$(a)\ntouch $D/y", ""),
    "the same directory": ('cd "$PWD"', ALL),
    "a copy": ("cp -r x /tmp/x", f"{MODULES} env"),
    "a copy of folders elsewhere": ("cp /y/x /z", f"{MODULES} env workdir"),
    "a copy that makes the folder": ("cp -r /y /b", f"{MODULES} env"),
    "a folder that gets another name": ("mv /b /z", f"{MODULES} env"),
    "a sample of CUDA": ("/x/release/deviceQuery", ALL),
    "commands in front of others": ("export PATH=$HOME/bin:$PATH", "env workdir"),
    "commands behind others": ("export PATH=$PATH:$HOME/bin", f"{MODULES} env workdir"),
    "libraries": ("export LD_LIBRARY_PATH=$HOME/lib:$LD_LIBRARY_PATH", "venv env workdir"),
    "libraries of Python": ("export PYTHONPATH=$HOME/lib:$PYTHONPATH", "conda venv env workdir"),
    "a compiler": ("export CC=$HOME/gcc", "venv env workdir"),
    "libraries behind others": (
        "export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$HOME/lib", f"{MODULES} conda venv env workdir",
    ),
    "the nodes of the job": ("N=$(wc -l < $PBS_NODEFILE)", f"{MODULES} conda venv env workdir"),
    "a query of the scheduler": ("squeue -u $USER", ALL),
    "another module": ("module load $SLURM_JOB_PARTITION", "env workdir"),
    "another file of commands": ("source /b/$SLURM_JOB_PARTITION.sh", "workdir"),
    "a file of commands in the directory": ("source $(hostname).sh", ""),
    "a path of the submission": ("A=$data/x", f"{MODULES} conda venv env workdir"),
    "a number of let": ("let N=2\nA=$N", f"{MODULES} conda venv env workdir"),
    "the end of a list of folders": ("x/lib:/b/lib", ALL),
    "a variable of make": ("export A=$(HOME)/x", f"{MODULES} conda venv env workdir"),
    "a shell without a command": ("/bin/bash", ALL),
    "a text without a command": ("<<NOTE\nfor x\nNOTE", ALL),
    "a text of modulecmd": ("/m/bin/modulecmd bash load a", ALL),
    "a sum in a value": ("N=${1:-$((SLURM_NTASKS / 2))}", f"{MODULES} conda venv env workdir"),
    "a command in parentheses": ("N=$( (./prepare) )", ""),
    "two commands in parentheses": ("N=$((./prepare); (./b))", ""),
    "a random name": ("N=$(uuidgen)", f"{MODULES} conda venv env workdir"),
    "the processors of the node": ("grep -c processor /proc/cpuinfo", ALL),
    "a file system": ("lfs setstripe -c 1 x", f"{MODULES} conda venv env"),
    "a folder": ("/bin", ALL),
    "no alias": ("unalias pip", ALL),
    "a version in Python": ("python3 <<< 'import torch; print(torch.__version__)'", ALL),
    "a page of help": ("parallel --help", ALL),
    "hosts by a shell": ("srun -l bash -c 'hostname' > $HOME/y", ALL.replace("source ", "")),
    "a terminal": ("export GPG_TTY=$(tty)", f"{MODULES} conda venv env workdir"),
    "a file of hosts": ("export HOSTS=$(generate_pbs_nodefile)", f"{MODULES} conda venv env workdir"),
    "packages by their names": ("pip install -U --no-index 'a[b]>=1.2' c==2", "env workdir"),
    "a package": ("pip install a", "env workdir"),
    "a list of packages": ("pip freeze > /y/x", "env workdir"),
    "an environment elsewhere": ("virtualenv --no-download /y/x", "env workdir"),
    "an environment in the folder": ("virtualenv /b/x", "env"),
    "its file": ("A=$SLURM_TMPDIR/$RANDOM\nsource $A/bin/activate", "env workdir"),
    "packages of variables": ("export PIP_TARGET=$1\npip install a", "env"),
    "an installation": ("pip install -r a", "env"),
    "a package in a file": ("pip install a.whl", "env"),
    "a package in the directory": ("pip install .", "env"),
    "packages into a folder": ("pip install --target x a", "env"),
    "a package with the modules of the directory": ("python -m pip install a", "env"),
    "an environment": ("virtualenv x", "env"),
    "a build": ("make -j 4", ""),
    "a program": ("./prepare", ""),
    "a program in the background": ("sleep 9 &", ""),
    "a program in a condition": ("if true; then ./prepare; fi", ""),
    "a program in a function": ("f() { ./prepare; }\nf", ""),
}  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", KINDS)
def test_an_option_passes_a_statement_if_the_order_does_not_matter(name: str, option: str) -> None:
    before, passing = KINDS[name]
    line, expected = OPTIONS[option]
    got = found(f"{before}\n{line}\n./last")
    passes, at_once = option in passing.split(), option in ("env", "workdir")
    is_option = passes or not at_once
    assert {key: got.get(key) for key in expected} == (expected if is_option else dict.fromkeys(expected))
    assert (line in (got.get("setup") or "").split("\n")) != is_option
    early = "" if passes or at_once else f"set -e\n{before.replace(' &', '&')}\n"
    assert got.get("early_setup", "") == early


LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "modules": ("module -s load a b/1 > /dev/null 2>&1\nml c\nmodule add d", {"module": ["a", "b/1", "c", "d"]}),
    "modules in a variable": ('M="a b"\nmodule load $M', {"module": ["a", "b"]}),
    "a module with a variable of a file": (
        'source /v.sh\nmodule load a b/${B_VER} "c/$C"', {"module_init": ["/v.sh"], "module": ["a", "b/${B_VER}", "c/$C"]},
    ),
    "a folder of modules in a variable": (
        "module load a\nmodule use $SOFT/modules", {"module": ["a", "use $SOFT/modules"]},
    ),
    "a list of the modules": ("module load a\nmodule list 2>&1\nml", {"module": ["a", "list", "list"]}),
    "a list behind an environment": ("module load a\nconda activate b\nmodule list", {"module": ["a", "list"], "conda": "b"}),
    "a file of a variable": (
        "module load a\nsource $A_HOME/x.sh", {"module": ["a"], "source": ["$A_HOME/x.sh"]},
    ),
    "a whole path in a variable": ('source "$A_FILE"', {"source": ["$A_FILE"]}),
    "a virtual environment of a variable": ("cd /b\nsource $STORE/v/bin/activate", {"venv": "$STORE/v", "workdir": "/b"}),
    "a conda of a variable": (
        "source ${OPT}/bin/activate a", {"source": ["${OPT}/etc/profile.d/conda.sh"], "conda": "a"},
    ),
    "an environment of the user": ("conda activate /home/$USER/e", {"conda": "/home/$USER/e"}),
    "a virtual environment at home with a constant": ("V=e\nsource ~/v/$V/bin/activate", {"venv": "~/v/e"}),
    "a file of a part of a name": ("source ${PREFIX}-env.sh", {"source": ["${PREFIX}-env.sh"]}),
    "a short list of the modules": ("ml a\nml -t list\nmodule -t list", {"module": ["a", "list", "list"]}),
    "files of the directory by its variable": (
        'source $SLURM_SUBMIT_DIR/a.sh\n. "${PWD}/b.sh"\nsource $(pwd)/v/bin/activate', {"source": ["./a.sh", "./b.sh"], "venv": "./v"},
    ),
    "files of the directory": (
        "source ./a.sh\nmodule load b\nsource c/d\n. ../e.sh\n. f.sh",
        {"module_init": ["./a.sh"], "module": ["b"], "source": ["./c/d", "../e.sh", "./f.sh"]},
    ),
    "exports in a list": (
        "source ~/e/bin/activate && export A=1 && export B=2", {"venv": "~/e", "env": {"A": "1", "B": "2"}},
    ),
    "a list of commands": ("module purge && module load a || exit 1", {"module_purge": True, "module": ["a"]}),
    "all modules are unloaded": ("ml --force purge\nml a", {"module_purge": True, "module": ["a"]}),
    "modules in the order of the script": (
        "module reset\nml -a b\nmodule switch c d\nmodule purge\nmodule rm g h",
        {"module": ["reset", "unload a", "b", "swap c d", "purge", "unload g h"], "module_purge": None},
    ),
    "all modules are unloaded behind a folder of them": (
        "module use /a\nmodule purge\nmodule load b", {"module_use": ["/a"], "module": ["purge", "b"], "module_purge": None},
    ),
    "the command module if it is there": (
        "if [ -f /etc/bashrc ]; then\n  . /etc/bashrc\nfi\nmodule load a", {"module": ["a"], "source": None},
    ),
    "a folder of modules behind a module": (
        "module use /a\nmodule load b\nmodule use -a $HOME/c\nmodule load d",
        {"module_use": ["/a"], "module": ["b", "use -a ~/c", "d"]},
    ),
    "a folder of modules at home": ("module use ~/a\nmodule load b", {"module_use": ["~/a"], "module": ["b"]}),
    "a file before the modules": (
        "source /etc/profile\n. ~/a.sh\nmodule purge\nmodule load b\nsource /c.sh",
        {"module_init": ["/etc/profile", "~/a.sh"], "module_purge": True, "module": ["b"], "source": ["/c.sh"]},
    ),
    "a file with arguments": (
        "module load b\nsource ~/a.sh c\nsource /d/compilervars.sh -arch intel64",
        {"module": ["b"], "source": ["~/a.sh c", "/d/compilervars.sh -arch intel64"]},
    ),
    "a file of a product with arguments": (
        "source /d/compilervars.sh intel64\nmodule load c",
        {"module_init": ["/d/compilervars.sh intel64"], "module": ["c"]},
    ),
    "a file at home": ("module load a\nsource $HOME/x.sh", {"module": ["a"], "source": ["~/x.sh"]}),
    "a file of the shell alone": ("source ~/.bashrc", {"source": ["~/.bashrc"]}),
    "the module command of its folder": (". $MODULESHOME/init/bash\nmodule load a", {"module": ["a"], "source": None}),
    "the path of modules": ("export MODULEPATH=/a:$MODULEPATH\nmodule load b", {"module_use": ["/a"], "module": ["b"]}),
    "the command module": (". /etc/profile.d/modules.sh\nmodule load a", {"module": ["a"], "source": None}),
    "the hook of conda": ('eval "$(conda shell.bash hook)"\nconda activate a', {"conda": "a"}),
    "the hook of a conda": (
        'eval "$(/o/bin/conda shell.bash hook)"\nconda activate a',
        {"source": ["/o/etc/profile.d/conda.sh"], "conda": "a"},
    ),
    "the block of conda init": (
        "__conda_setup=\"$('/o/bin/conda' 'shell.bash' 'hook' 2> /dev/null)\"\n"
        'if [ $? -eq 0 ]; then\n  eval "$__conda_setup"\nelse\n  export PATH="/o/bin:$PATH"\nfi\nunset __conda_setup\n'
        "conda activate a",
        {"source": ["/o/etc/profile.d/conda.sh"], "conda": "a"},
    ),
    "conda of its folder": ('B=$(conda info --base)\nsource "$B/etc/profile.d/conda.sh"\nconda activate a', {"conda": "a"}),
    "conda at home": ("source ~/miniconda3/etc/profile.d/conda.sh\nconda activate a", {"conda": "a"}),
    "a file of the login by the name of the user": (
        "source /home/$USER/.bashrc\nconda activate b", {"source": None, "conda": "b"},
    ),
    "the command module if its file is there": (
        "if test -f /etc/profile.d/modules.sh ; then\n  . /etc/profile.d/modules.sh\nfi\nmodule load a",
        {"module": ["a"], "source": None},
    ),
    "modules without a cache": ("module --ignore-cache load a", {"module": ["a"]}),
    "a file of the login by a command": (
        "source /home/$(whoami)/.bashrc\nconda activate b", {"source": None, "conda": "b"},
    ),
    "a file of the login before the environment of conda itself": (
        "source /home/${USER}/.bashrc\nsource /o/miniconda3/bin/activate", {"source": None, "venv": "/o/miniconda3"},
    ),
    "a virtual environment at home": ("source ~/a/bin/activate", {"venv": "~/a"}),
    "a virtual environment at home behind a directory": (
        "cd /b\nsource $HOME/a/bin/activate", {"venv": "~/a", "workdir": "/b"},
    ),
    "an environment of conda at home": ("conda activate $HOME/a", {"conda": "~/a"}),
    "an environment of a conda at home": (
        "source ~/miniconda3/bin/activate ~/miniconda3/envs/a", {"conda": "~/miniconda3/envs/a"},
    ),
    "a directory at home": ("cd ~/a", {"workdir": "~/a"}),
    "the directory at home": ("cd", {"workdir": "~/.", "setup": None}),
    "the directory at home by its variable": ('cd "$HOME"\ncd a', {"workdir": "~/a"}),
    "a module of devices behind a virtual environment": (
        "module load python/3\nsource /v/bin/activate\nmodule load cuda/12 cudnn",
        {"module": ["python/3", "cuda/12", "cudnn"], "venv": "/v", "setup": None},
    ),
    "a tool behind a virtual environment": (
        "source /v/bin/activate\nmodule load git/2 cmake", {"module": ["git/2", "cmake"], "venv": "/v"},
    ),
    "a conda on the path of commands": (
        'module load a\nexport PATH="/o/miniconda3/bin:$PATH"\nsource activate b',
        {"module": ["a"], "source": ["/o/miniconda3/etc/profile.d/conda.sh"], "conda": "b"},
    ),
    "a conda at home on the path of commands": (
        "export PATH=$HOME/.conda/bin/:${PATH}\n. activate b", {"source": ["~/.conda/etc/profile.d/conda.sh"], "conda": "b"},
    ),
    "a root behind which an environment follows": (
        "export A_ROOT=/a\nsource activate b", {"env": {"A_ROOT": "/a"}, "conda": "b"},
    ),
    "a path of commands alone": ("export PATH=/a/bin:/usr/bin:/bin", {"env": {"PATH": "/a/bin:/usr/bin:/bin"}}),
    "a directory at home in quotes": ('cd "$HOME/a"\ncd b', {"workdir": "~/a/b"}),
    "a directory at home behind another one": ("cd /b\ncd ${HOME}/a", {"workdir": "~/a"}),
    "a directory at home in a variable": ('D="$HOME/a"\ncd $D/b', {"workdir": "~/a/b"}),
    "the directory of the submission in a variable": ('D="$SLURM_SUBMIT_DIR"\ncd $D', {"workdir": None}),
    "a directory below that of the submission in a variable": (
        "D=${SLURM_SUBMIT_DIR}/x\ncd $D/y", {"workdir": "x/y"},
    ),
    "a conda at home": (
        "source ~/.conda/bin/activate b", {"source": ["~/.conda/etc/profile.d/conda.sh"], "conda": "b"},
    ),
    "a script of conda": ("source /o/bin/activate a", {"source": ["/o/etc/profile.d/conda.sh"], "conda": "a"}),
    "the environment of conda itself": (
        "source /o/miniconda3/bin/activate\nconda activate a",
        {"source": ["/o/miniconda3/etc/profile.d/conda.sh"], "conda": "a", "venv": None},
    ),
    "an environment on top of base": ("conda activate\nconda activate a", {"conda": "a"}),
    "the environment base of a module": ("module load anaconda3\nsource activate", {"conda": "base"}),
    "the environment base of a folder": ("P=/o/conda\nexport PATH=$P/bin:$PATH\n. activate", {"conda": "base"}),
    "an environment on top of that of a file": ("source activate\nconda activate a", {"conda": "a"}),
    "an older conda": ("conda deactivate\nsource activate a", {"conda": "a"}),
    "a file of the shell": ("conda init\nsource ~/.bashrc\nconda activate a", {"conda": "a"}),
    "the number of threads": ("export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK", {"env": None}),
    "another number of threads": ("export OMP_NUM_THREADS=2", {"env": {"OMP_NUM_THREADS": "2"}}),
    "a variable that is exported later": ("A=1\nexport A", {"env": {"A": "1"}}),
    "a variable that is set to its value again": ("export A=1\nexport A=1", {"env": {"A": "1"}}),
    "a variable that gets another value": ("export A=1\nexport A=2", {"env": {"A": "2"}}),
    "a variable of the ranks behind an environment that is made": (
        "virtualenv x\nexport HF_DATASETS_OFFLINE=1", {"env": {"HF_DATASETS_OFFLINE": "1"}},
    ),
    "a setting of the module command": (
        "export MODULES_NO_OUTPUT=1\nmodule load b", {"env": {"MODULES_NO_OUTPUT": "1"}, "module": ["b"]},
    ),
    "a folder that a later command reads": ("export CUDA_HOME=/c\ncp $CUDA_HOME/x .", {"env": {"CUDA_HOME": "/c"}}),
    "a value of the program": ("a=1\nb=$a/x", {"env": None}),
    "the directory of the submission": ("cd $SLURM_SUBMIT_DIR", {"workdir": None}),
    "a directory below it": ('cd "${SLURM_SUBMIT_DIR}/x"', {"workdir": "x"}),
    "it with a default": ("cd ${SLURM_SUBMIT_DIR:-.}", {"workdir": None}),
    "it with another default": ('cd "${SLURM_SUBMIT_DIR:-${PBS_O_WORKDIR:-$(pwd)}}" || exit 1', {"workdir": None}),
    "a directory below it with a default": ('cd "${SLURM_SUBMIT_DIR:?}/x"', {"workdir": "x"}),
    "a file of it with a default": ("source ${SLURM_SUBMIT_DIR-$PWD}/a.sh", {"source": ["./a.sh"]}),
    "one directory after another": ("cd /a\nmodule load b\ncd c", {"workdir": "/a/c", "module": ["b"]}),
    "a directory in which the script does not go on": ("set +e\ncd /b || return 1", {"workdir": "/b"}),
    "a directory or a failure": ("cd /b || false", {"workdir": "/b"}),
    "modules or a text and the end": (
        "module load a &&\nmodule load b || \\\n{ echo 'no modules' >&2 ; exit 1;  }", {"module": ["a", "b"], "setup": None},
    ),
    "a directory or a text with a variable and the end": ('cd /b || { echo "no ${PWD}"; exit 2; }', {"workdir": "/b"}),
    "the directory of the submission if it is set": (
        'if [ -n "$SLURM_SUBMIT_DIR" ]; then cd $SLURM_SUBMIT_DIR; fi\ncd x', {"workdir": "x", "setup": None},
    ),
    "a directory below it if it is set": (
        "if [[ ! -z ${SLURM_SUBMIT_DIR} ]]\nthen\n  cd $SLURM_SUBMIT_DIR/y\nfi", {"workdir": "y", "setup": None},
    ),
    "a file of any name in the directory": ("source .env\nsource a.txt", {"source": ["./.env", "./a.txt"]}),
    "a variable that gets another value behind the number of threads": (
        "export A=1\nexport OMP_NUM_THREADS=4\nexport A=2", {"env": {"A": "2"}},
    ),
    "the function of the command module": (
        "module () {  eval $(/usr/bin/modulecmd bash $*); }\nmodule load a", {"module": ["a"], "setup": None},
    ),
    "a directory of a variable": ("cd $SCRATCH/x", {"workdir": "$SCRATCH/x"}),
    "a directory of a variable behind a module": ("module load a\ncd $WORK/x", {"module": ["a"], "workdir": "$WORK/x"}),
    "a directory of the job": (
        "D=$SLURM_SUBMIT_DIR/$SLURM_JOB_ID\ncd $D", {"workdir": "$SLURM_SUBMIT_DIR/$SLURM_JOB_ID"},
    ),
    "a directory below one of a variable": ('cd "$A/b" || exit 1\ncd c', {"workdir": "$A/b/c"}),
    "a compiler before a virtual environment": (
        "export CXX=g++\nsource /v/bin/activate", {"env": {"CXX": "g++"}, "venv": "/v"},
    ),
    "what only prints names": (
        "module avail 2>&1\nml av b\nmodule spider b/1\nconda info --envs\nconda env list\nmodule load a", {"module": ["a"]},
    ),
    "an environment in a variable": ("source ../.env\nconda activate ${E}", {"source": ["../.env"], "conda": "${E}"}),
    "a file in a variable": ("module load a\nsource $A_FILE", {"module": ["a"], "source": ["$A_FILE"]}),
    "a conda behind other commands": (
        "module load a\nexport PATH=$PATH:$HOME/anaconda3/bin\nsource activate b",
        {"module": ["a"], "source": ["~/anaconda3/etc/profile.d/conda.sh"], "conda": "b"},
    ),
    "a runtime of containers behind an environment": (
        "module load a\nconda activate b\nmodule load singularity/3", {"module": ["a", "singularity/3"], "conda": "b"},
    ),
    "a program without Python behind a virtual environment": (
        "source /v/bin/activate\nmodule load matlab/R2017b", {"module": ["matlab/R2017b"], "venv": "/v"},
    ),
    "a relative environment": ("cd /a\nsource .venv/bin/activate", {"workdir": "/a", "venv": ".venv"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_lines_that_are_options(name: str) -> None:
    body, expected = LINES[name]
    got = found(body)
    assert {key: got.get(key) for key in expected} == expected
    assert "setup" not in got


def test_a_variable_of_the_ranks_behind_a_build() -> None:
    got = found("make -j 4 all\nexport NCCL_DEBUG=INFO OMP_PROC_BIND=true")
    assert got["env"] == {"NCCL_DEBUG": "INFO", "OMP_PROC_BIND": "true"}
    assert got["before"] == "set +u +o pipefail\nmake -j 4 all\n"


STAY = {
    "a file of a quoted home": "source '~/a.sh'",
    "a file of an environment at a quoted home": "source '~/a/bin/activate'",
    "a directory of a quoted home": 'cd "~/a"',
    "a directory of a home that the script sets": "HOME=/x\ncd ~/a",
    "a directory with a variable that a file may set": "source /b.sh\ncd $CODE",
    "a directory with a variable that a file of setup may set": "shift\nsource $(hostname).sh\ncd $CODE",
    "a directory with a random name": "cd /b/$RANDOM",
    "a directory with a pattern": "cd /b/$A*",
    "a directory with a variable of another scheduler": "cd /b/$PBS_JOBID",
    "a second directory": "cd $A\nmkdir x\ncd $B",
    "a directory to which the script returns": "mkdir x\ncd $A\ncd -",
    "a directory behind a module whose variables are read": "module load a\ncp $A_DIR/x .\ncd $SCRATCH",
    "a directory behind the state of the modules": "module load a\nwhich b; mkdir c\ncd c",
    "a directory behind a program with modules": "module load a\n./b\ncd $SCRATCH",
    "a module at home": "module load ~/a",
    "modules of a variable, perhaps several": "module load $LIST",
    "a file in a folder of a random name": "A=/y/$RANDOM\nsource $A/x.sh",
    "a conda behind that of a module": "module load anaconda3\nexport PATH=$PATH:/o/conda/bin\nsource activate b",
    "a file with an argument that is set later": "source $A.sh\nA=$(b)",
    "a module with a variable that is read": "read V < a\nmodule load b/$V",
    "a module with a variable that is unset": "unset V\nmodule load b/$V",
    "a module with a variable that is set later": "module load b/$V\nV=2",
    "a module with a default": "module load b/${V:-1}",
    "a module with an argument": "module load b/$1",
    "a module with a dollar in quotes": "module load 'b/$V'",
    "a file of the scheduler": "source $SLURM_TMPDIR/a.sh",
    "a file of the submission behind a change of the directory": "cd x\nsource $SLURM_SUBMIT_DIR/a.sh",
    "a command of modules with an option that is not known": "ml -w a",
    "a file of a constant that is set later": "source $D/$E/a.sh\nD=/x",
    "a directory behind a file of another one": "source ./a.sh\ncd /b",
    "a directory behind a file before the modules": "source ./a.sh\nmodule load b\ncd /c",
    "a directory that is made in one of a variable": "mkdir -p $SCRATCH/x\ncd /b",
    "a command that a file on PATH has": "source a",
    "a directory in a variable that is set later": "cd $D\nD=$SLURM_SUBMIT_DIR/x",
    "a file with arguments and another name": "source ~/a b",
    "a file with an argument of two words": "source ~/a.sh 'b c'",
    "a file with an argument of the script": "source ~/a.sh $1",
    "a module behind an environment": "conda activate a\nmodule load b",
    "a module behind a file that modules precede": "module load a\nsource /b.sh\nmodule load c",
    "a purge behind an environment": "conda activate a\nmodule purge",
    "a variable with two values": "export A=1\n./b\nexport A=2",
    "a value behind a module that may read the first": "export A=1\nmodule load b\nexport A=2",
    "a value of the first one": "export A=1\nexport A=$A:2",
    "a compiler behind an installation": "pip install a\nexport CC=gcc",
    "a variable of the ranks behind a test": "make test\nexport NCCL_DEBUG=INFO",
    "a variable that a function sets": "f() { export A=2; }\nf\nexport A=1",
    "a variable that is added to": "A=1\nA+=2\nexport A",
    "a variable that is unset later": "export A=1\n./b\nunset A",
    "a variable that was read": "echo $A\nexport A=1",
    "a home": "export A=~/x",
    "a path before a module": "export LD_LIBRARY_PATH=/a\nmodule load $HOME/b",
    "a library of all programs behind an environment": "conda activate a\nexport LD_PRELOAD=/a/b.so",
    "a path without the commands of the system": "export PATH=/b/bin",
    "a path of commands behind a module": "module load a\nexport PATH=/b:/usr/bin:/bin",
    "a path of commands without an environment": "source activate a\nexport PATH=/o/miniconda3/bin:$PATH",
    "the file activate of a folder": "module load anaconda3\nexport PATH=/o/a/bin/:$PATH\nsource activate",
    "the file activate of a module": "module load tensorflow\nexport PATH=$PATH:/o/conda/bin\n. activate",
    "the file activate of an environment": "export PATH=/o/miniconda3/envs/a/bin:$PATH\nsource activate",
    "the file activate of the directory": "cd /o/a/bin\n. activate",
    "a directory in a variable without a value": 'D=""\ncd $D',
    "a directory that was left": "source .venv/bin/activate\ncd /a",
    "a second environment": "conda activate a\nconda activate b",
    "threads of a command before it": "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\necho $OMP_NUM_THREADS",
    "a module in the background": "sleep 1\nmodule load a &",
    "a value that another name reads": "A=1\nB=A\necho ${!B}",
    "a value in a sum": "N=$(hostname | wc -l)\n((N > 0))",
}


@pytest.mark.parametrize("name", STAY)
def test_lines_that_keep_their_place(name: str) -> None:
    body = STAY[name]
    assert body.split("\n")[-1].rstrip(" &") in found(body)["setup"]


@pytest.mark.parametrize(("first", "stays"), [("./b", True), ("echo a", False)])
def test_a_directory_whose_status_is_read_stays_behind_a_program(first: str, stays: bool) -> None:
    got = found(f"{first}\ncd /a\necho $?")
    assert ("cd /a" in (got.get("setup", "") + got.get("before", "")).split("\n")) == stays


# The last of these lines is an option that does not pass those before it: these are in early_setup.
FIRST_OPTIONS = {
    "a file of a home that the script sets": "HOME=/x\nsource $HOME/a.sh",
    "a module with a variable that is exported later": "module load b/$V\nexport V=2\nmodule load b/$V",
    "a file of the submission that the script sets": "SLURM_SUBMIT_DIR=/x\nsource $SLURM_SUBMIT_DIR/a.sh",
    "a module behind a path with its name": "export MATLABPATH=$HOME/x\nmodule load matlab",
    "a product behind a variable that it reads": "export SPACK_ROOT=$S\nsource /s/share/spack/setup-env.sh",
    "a product behind a change of its file": "sed -i s/a/b/ /s/GMXRC\nsource /s/GMXRC",
    "a product behind a variable of an unknown value": "export A\nsource /s/share/spack/setup-env.sh",
    "a file of the login behind an export": "export A=$HOME/b\nsource /home/b/.bashrc",
    "a swap behind a variable that it may set": "export CC=gcc\nmodule swap a b",
    "a module behind a proxy": "export A=$http_proxy\nmodule load b",
    "a conda on the path of a program": "export PATH=/o/miniconda3/bin:$PATH\n./b\nsource activate a",
    "a tool behind its root": "export GIT_ROOT=$PWD/x\nmodule load git",
    "a module behind a compiler": "export CC=/x/gcc\nmodule load a",
    "a file that is read if it is there": "if [ -f /a ]; then . /a; fi\nmodule load b",
    "a library before a module": "export PYTHONPATH=$HOME/b:$PYTHONPATH\nmodule load a",
    "no library before a module": "unset PYTHONPATH\nmodule purge",
    "a module behind the end of an environment": "conda deactivate\nmodule load a",
    "a module behind the end of an environment and a program": "./b\nsource deactivate\nmodule load a",
    "a module with the name of a variable in a variable": "CUDA_VERSION=cuda90\nmodule load $CUDA_VERSION/blas",
    "a module with the name of a variable": "export NETCDF=/a\nmodule load netcdf/4",
    "a file with other values": "N=6\nsource ./config.sh",
    "options of the shell": "set -x\nshopt -s nullglob\n./b\nmodule load a",
    "a directory with a file": "mkdir -p x\ncp a.sh x\nsource /b.sh",
    "a product behind a variable of its own": "unset SPACK_ROOT\nsource /s/share/spack/setup-env.sh",
    "a module with a variable of the script": "V=$(a)\nmodule load b/$V",
    "a file of a folder that a command prints": 'D=/y/$(whoami)\nE=$D/z\nsource "$E/a.sh"',
    "a file of a variable with a default": "C=${C:-intel}\n. ${B}/site/env.${C}.sh",
    "a conda of a user": "export U=$(whoami)\nsource /home/${U}/miniconda3/bin/activate b",
    "a module behind an alias": "alias a=b\nunset PYTHONPATH\nmodule load c",
    "an environment of a file whose variables are exported": "set -a\nsource .env\nset +a\nconda activate ${E}",
    "a module behind a trace": "if [ -n $D ]; then set -x; fi\nunset PYTHONPATH\nmodule load c",
    "a module behind a number in a comment": "# PID=$!\nunset PYTHONPATH\nmodule load a",
}


@pytest.mark.parametrize("name", FIRST_OPTIONS)
def test_lines_before_the_first_option_of_the_environment(name: str) -> None:
    body = FIRST_OPTIONS[name]
    before, _, line = body.rpartition("\n")
    got = found(body)
    assert got["early_setup"] == f"set -e\n{before}\n"
    assert line not in got.get("setup", "")
    assert {"module", "module_purge", "source", "module_init", "conda"} & got.keys()


@pytest.mark.parametrize(
    ("first", "options"),
    [
        ("module purge\nexport NETCDF=/a", "module load netcdf/4\nmodule load b"),
        ("module load a\nunset PYTHONPATH", "module load b\nsource activate c"),
        ("conda activate a", "module load b\nmodule load c"),
        ("source /v/bin/activate", "source /b.sh\nmodule load git"),
    ],
)
def test_the_first_options_are_early_if_more_are_behind_what_they_do_not_pass(
    first: str, options: str
) -> None:
    got = found(f"{first}\n{options}")
    assert got["early_setup"] == f"set -e\n{first}\n"
    assert got["module"][-1] in options
    assert not {"setup", "module_purge"} & got.keys()


# The last line is the working directory, which the job enters behind early_setup with the lines before it.
LATE_DIRECTORIES = {
    "a directory that is made": ("W=/b/$SLURM_JOB_ID\nmkdir -p $W\ncp x $W\ncd $W", "/b/$SLURM_JOB_ID"),
    "a directory of a quoted home in a variable": ('D="~/a"\ncd $D', "$D"),
    "a directory of a command": ("W=$(./b)\ncd $W/c", "$W/c"),
    "a directory of a file": (". $(hostname).sh\ncd $CODE", "$CODE"),
    "a directory that is made below the first one": ("mkdir -p x\ncd x", "$PWD/x"),
    "a directory behind a program": ("./a\ncd ~/b/c", "$HOME/b/c"),
    "a directory in a variable behind a program": ("W=/b\n./a $W\ncd $W", "$W"),
    "a directory below one that is set later": ("cd $D\nD=$SLURM_SUBMIT_DIR/x\ncd b", "$PWD/b"),
    "a directory behind one that is left": ("cd $(./b)\n./c\ncd ${D}", "${D}"),
}


@pytest.mark.parametrize("name", LATE_DIRECTORIES)
@pytest.mark.parametrize("later", ["", "module load b\n./c\nexport A=$(./d)"])
def test_directories_behind_the_lines_that_make_them(name: str, later: str) -> None:
    body, expected = LATE_DIRECTORIES[name]
    early, _, _ = body.rpartition("\n")
    got = found(f"{body}\n{later}")
    assert (got["early_setup"], got["workdir"]) == (f"set -e\n{early}\n", expected)
    assert ("setup" in got) is (got.get("module") == ["b"]) is bool(later)


def test_a_module_passes_the_lines_that_make_a_directory() -> None:
    got = found("module load a\nW=/b/$SLURM_JOB_ID\nmkdir -p $W\ncd $W\nsource ./c.sh")
    assert (got["module"], got["source"], got["workdir"]) == (
        ["a"],
        ["/b/$SLURM_JOB_ID/c.sh"],
        "/b/$SLURM_JOB_ID",
    )
    assert got["early_setup"] == "set -e\nW=/b/$SLURM_JOB_ID\nmkdir -p $W\n"


@pytest.mark.parametrize(
    "lines",
    [
        "module load matlab\nexport MATLABPATH=$HOME/x\nW=/b/$SLURM_JOB_ID\nmkdir -p $W\ncd $W",
        "module load a\nexport B=$HOME/x\nW=/b/$SLURM_JOB_ID\nmkdir -p $W\ncd $W",
        "module load wrf\nWRF_DIR=/b/$SLURM_JOB_ID\nmkdir -p $WRF_DIR\ncd $WRF_DIR",
        "module load git/2\ngit clone a b\ncd b",
    ],
)
def test_what_depends_on_a_module_does_not_pass_it_for_a_late_directory(lines: str) -> None:
    module, _, rest = lines.partition("\n")
    got = found(lines)
    assert (got["module"], got["setup"]) == ([module.split()[-1]], f"set -e\n{rest}\n")
    assert not {"workdir", "early_setup"} & got.keys()


@pytest.mark.parametrize(
    ("head", "change", "differs"),
    [
        ("#PBS -l select=1:ncpus=2\n", "cd $PBS_O_WORKDIR", True),
        ("#PBS -l select=1:ncpus=2\n", "mkdir /b/$PBS_JOBID\ncd /b/$PBS_JOBID", True),
        ("#PBS -l select=1:ncpus=2\n", "cd b", False),
        ("#SBATCH -n 2\n", "cd $SLURM_SUBMIT_DIR", False),
    ],
)
def test_a_print_of_the_home_directory(head: str, change: str, differs: bool) -> None:
    done = job_file(f"#!/bin/bash\n{head}pwd\nwhich a\nW=$(date)\n{change}\n./a\n")
    why = "is of the directory of the submission, and in the script of the home directory"
    assert [one.line for one in done.remarks if one.why == why] == [3] * differs


@pytest.mark.parametrize(
    "head", ["#PBS -l select=1:ncpus=2\n", "#PBS -l select=1:ncpus=2\ncd $PBS_O_WORKDIR\n"]
)
def test_a_late_directory_of_a_script_that_starts_at_home(head: str) -> None:
    """Its lines before the directory are in early_setup only if they do not work in the home directory."""
    of_submission = "WORKDIR" in head
    text = job_file(f"#!/bin/bash\n{head}cp a /b\nW=$(./c)\ncd $W\n./a > out.txt\n").text
    assert ('workdir = "$W"' in text) is of_submission


@pytest.mark.parametrize(
    ("body", "early", "options"),
    [
        (
            "export NETCDF=/a\nmodule purge\nmodule load b netcdf/4",
            "export NETCDF=/a",
            {"module_purge": True, "module": ["b", "netcdf/4"]},
        ),
        (
            "module purge\nexport A=1\nunset PYTHONPATH\nmodule load b",
            "unset PYTHONPATH",
            {"module_purge": True, "module": ["b"], "env": {"A": "1"}},
        ),
        ("module list\nN=$(date)\nsource ./b.sh", "N=$(date)", {"module": ["list"], "source": ["./b.sh"]}),
    ],
)
def test_only_what_an_option_does_not_pass_is_early(body: str, early: str, options: dict[str, Any]) -> None:
    got = found(body)
    assert got["early_setup"] == f"set -e\n{early}\n"
    assert {key: got.get(key) for key in ("setup", *options)} == {"setup": None, **options}


def test_the_list_of_modules_is_that_of_its_place() -> None:
    body = "module list\n. /b/$SLURM_JOB_PARTITION.sh\nmodule load a\nmodule load b"
    assert "module list" in found(body)["early_setup"]


def test_a_variable_that_a_module_sets_is_an_option_behind_it() -> None:
    got = found("module load openmpi\nexport OMPI_MCA_btl=self\nmodule list")
    assert (got["env"], "setup" in got) == ({"OMPI_MCA_btl": "self"}, False)


def test_a_variable_of_one_module_is_none_of_another() -> None:
    got = found("module load wrf\nexport WRF_X=$HOME/x\nmodule load a")
    assert (got["module"], got["setup"]) == (["wrf", "a"], "set -e\nexport WRF_X=$HOME/x\n")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("module avail", "is left out: it only prints names"),
        ("module purge.", "is left out: module has no such command, and only prints an error"),
        ("source $A", "if it is not set, or has several words, the job ends here, and the script goes on"),
        (
            "conda activate a\nmodule load apptainer",
            "is loaded before the environment: of a command in both, that of the environment runs",
        ),
    ],
)
def test_a_difference_of_an_option_has_a_remark(line: str, why: str) -> None:
    done = job_file(f"#!/bin/bash\n#SBATCH -n 2 -t 10\n{line}{RUN}")
    assert [(one.line, one.lost) for one in done.remarks if one.why == why] == [(3 + line.count("\n"), False)]
    assert "setup" not in values(done.text)


def test_a_mistake_that_ends_the_script_stays() -> None:
    assert "module purge." in found("module purge.")["setup"]


def test_options_of_the_shell_hold_in_both_blocks() -> None:
    got = found(
        "set -x\nunset PYTHONPATH\nmodule load a\nA=$(./b)\nexport A", head=SLURM.replace("set -e\n", "")
    )
    assert got["early_setup"] == "set +e\nset -x\nunset PYTHONPATH\n"
    assert got["setup"] == "set +e\nset -x\nA=$(./b)\nexport A\n"


@pytest.mark.parametrize(
    "before",
    [
        "trap 'echo a' EXIT\nunset A",
        "IFS=,",
        "f() { set +e; }\nf\nunset A",
        "shift\nunset A",
        "shopt -s expand_aliases\nalias a=b\nunset A",
        "set -- a\nunset A",
        "./server &\nPID=$!",
    ],
)
def test_what_ends_with_its_block_keeps_the_options_behind_it_in_setup(before: str) -> None:
    got = found(f"{before}\nexport CC=$(./b)\nmodule load a")
    assert "early_setup" not in got
    assert got["setup"].endswith("\nmodule load a\n")


INHERITED = {
    "a path of commands": "PATH=$HOME/bin:$PATH",
    "a path of libraries behind a module": "module load b\nLD_LIBRARY_PATH=/x/lib:$LD_LIBRARY_PATH",
    "a path of Python behind a module": "module load b\nPYTHONPATH=/x",
    "a directory for scratch files": "module load b\nTMPDIR=/x",
    "the devices": "CUDA_VISIBLE_DEVICES=0",
    "a locale": "LC_ALL=C",
    "options of Java": "NXF_OPTS=-Xmx4g",
    "a variable that only programs read": "THIS_ONE=x",
    "a variable with the value before": 'DATA=$DATA:/x\ncp "$DATA" /y',
    "a variable of the scheduler": "SLURM_CPUS_PER_TASK=2",
    "a variable of a module": "module load wrf/4.0\nWRF_DATA=/x",
    "a variable of a file": ". ./env.sh\nDATA=/x",
    "an export of all that follows": "set -a\nDATA=/x",
    "an export behind the value": "DATA=/x\ndeclare -x DATA",
}


@pytest.mark.parametrize("run", ["\nsrun ./a $DATA $TMPDIR\n", "\n./a $DATA $TMPDIR\n"])
@pytest.mark.parametrize("name", INHERITED)
def test_a_value_that_programs_may_get_without_an_export_stays(name: str, run: str) -> None:
    line = next(one for one in INHERITED[name].split("\n") if "=" in one)
    assert line in found(INHERITED[name], run=run)["setup"].split("\n")


def test_a_variable_of_a_directive_keeps_its_new_value() -> None:
    head = "#!/bin/bash\n#PBS -l nodes=1:ppn=1\n#PBS -v DATA=/x\n"
    assert "DATA=/y" in found("DATA=/y", head, "\n./a $DATA\n")["setup"]


@pytest.mark.parametrize("line", ["DATA=/x", "N=4", "data=/x\nunread=1", "L=(a b)"])
def test_a_value_that_only_the_words_of_the_program_have_leaves_the_blocks(line: str) -> None:
    assert "setup" not in found(f"module load b\n{line}", run="\nsrun ./a $DATA $N $data\n")


@pytest.mark.parametrize(
    ("before", "export", "stays"),
    [
        (". $(hostname)/env.sh", "export OUT=/x\nmkdir -p $OUT", True),
        (". $(hostname)/env.sh", "export OUT=/x\n./prepare\necho b > c", True),
        (". $(hostname)/env.sh", "export OUT=/x\nmkdir -p y", False),
        (". ./env.sh", "export OUT=/x\nmkdir -p $OUT", False),
        ("source /b/x.sh", "export OUT=/x\nmkdir -p $OUT", False),
        ("A=1\nsource /mnt/apps/pgi/env.sh", "export OUT=/x\nmkdir -p $OUT", False),
        (". $VERSION_FILE", "export OUT=/x\nmkdir -p $OUT", False),
        (". $(hostname)/run.ver", "export OUT_VER=1\nmkdir -p $OUT_VER", True),
        ("source /opt/intel/setvars.sh", "export OUT=/x\nmkdir -p $OUT", False),
        ("source /b/x.sh", "export OUT=/x\nmodule list", False),
        ("module load wrf", "export WRF_OUT=/x\nmkdir -p $WRF_OUT", False),
        ("module load wrf", "export OUT=/x\nmkdir -p $OUT", False),
        ("module load wrf", "export WRF_OUT=/x\nmkdir -p y", False),
    ],
)
def test_commands_read_the_value_of_the_script_and_not_that_of_a_file(
    before: str, export: str, *, stays: bool
) -> None:
    got = found(f"{before}\n{export}")
    assert ("export " in got.get("setup", "")) is stays
    assert ("env" in got) is not stays


@pytest.mark.parametrize("before", ["module load wrf", "source /b/x.sh", "conda activate a"])
def test_setup_reads_the_variables_of_the_job_file(before: str) -> None:
    body = f"{before}\nexport WRF_OUT=/x\nread -r N < $WRF_OUT/n\n"
    lines = [one.split("  #")[0].strip() for one in rendered(job_file(SLURM + body + RUN).text).split("\n")]
    assert lines[lines.index("job_setup") - 1] == "variables"


@pytest.mark.parametrize(
    "file", ["~/.bash_profile", "/etc/bash.bashrc", "/cvmfs/cms.cern.ch/cmsset_default.sh"]
)
def test_a_file_of_the_login_or_of_a_product_reads_no_variable_of_the_script(file: str) -> None:
    assert found(f"N=$(date)\nsource {file}", run="\nsrun ./a $N\n")["source"] == [file]


def test_a_name_in_a_sum_of_the_program_keeps_its_value() -> None:
    got = found("N=$(hostname | wc -l)", run="\nsrun ./a $((N * 2))\n")
    assert "N=$(hostname | wc -l)" in got["setup"]


def test_a_value_of_another_name_keeps_its_place() -> None:
    got = found("A=/x\nB=A", run='\nsrun ./a "${!B}"\n')
    assert "A=/x\nB=A" in got["setup"]


def test_a_program_without_a_launcher_has_the_address_of_the_script() -> None:
    assert "export MASTER_ADDR=n1" in found("export MASTER_ADDR=n1", run="\npython3 t.py\n")["setup"]


def test_a_job_leaves_the_home_for_the_directory_of_the_submission_if_it_is_set() -> None:
    body = 'if [ -n "$PBS_O_WORKDIR" ]; then cd $PBS_O_WORKDIR; fi\nsource x/y.source'
    got = found(body, "#!/bin/bash\n#PBS -l nodes=1:ppn=1\n", "\nmpirun ./a\n")
    assert (got["source"], got.get("workdir"), got.get("setup")) == (["./x/y.source"], None, None)


def test_a_job_at_home_stays_there() -> None:
    """PBS starts a script in the home directory; an environment below it is none of the submission."""
    assert found("module load a", PBS, "\nmpirun ./a\n")["workdir"] == "~/."
    got = found(". .venv/bin/activate", PBS, "\nmpirun ./a\n")
    assert (got["workdir"], got["setup"]) == ("~/.", "set -e\n. .venv/bin/activate\n")
    assert "venv" not in got


def test_an_environment_of_the_host_is_none_of_a_container() -> None:
    got = found("conda activate a", run="\nsrun --container-image=x ./a\n")
    assert "conda" not in got
    assert "conda activate a" in got["setup"]


def test_elements_of_a_list_that_the_program_reads_stay() -> None:
    body = 'module load b\nL[0]="c d"\nL[1]="e f"\nA=$(cat g)'
    assert "L[0]=" in found(body, run="\nsrun ./a ${L[$SLURM_ARRAY_TASK_ID]} $A\n")["setup"]


def test_a_value_behind_the_program_is_none_of_the_program() -> None:
    got = found("export A=1", run="\nsrun ./a\nexport A=2\n./b\n")
    assert got["env"] == {"A": "1"}
    assert "export A=2" in got["after"]


def test_a_variable_of_a_sourced_file_is_one_of_the_commands_behind_the_program() -> None:
    got = found("source /x/config.sh", run="\nsrun ./a $X\n./b $Y\n")
    assert got["source"] == ["/x/config.sh"]
    assert got["setup"] == "export X\nexport Y\n"


def test_a_function_of_a_sourced_file_is_called_in_its_shell() -> None:
    got = found("source /x/functions.sh\nprepare")
    assert got["source"] == ["/x/functions.sh"]
    assert "prepare" in got["setup"]
    assert "before" not in got


@pytest.mark.parametrize(
    ("file", "is_option"), [("setvars.sh", True), ("GMXRC", True), ("activate", False), ("config.sh", False)]
)
def test_a_file_of_a_product_reads_no_variables_of_the_script(file: str, *, is_option: bool) -> None:
    got = found(f"A=$(date)\nsource /c/{file}\n./d $A")
    assert got["source"] == [f"/c/{file}"]
    assert ("A=$(date)" in got.get("early_setup", "")) is not is_option


@pytest.mark.parametrize(
    "before", ['declare -xr A="$(date)"', "export SPACK_SPEC=$1", "mkdir -p x", "cd $(hostname)", "unset A"]
)
def test_a_file_of_a_product_reads_no_exported_variables_but_its_own(before: str) -> None:
    got = found(f"{before}\nsource /s/share/spack/setup-env.sh\nspack find")
    assert got["source"] == ["/s/share/spack/setup-env.sh"]
    assert before in got["setup"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("cd /p\nsource ./conf/a.sh", {"source": ["/p/conf/a.sh"], "workdir": "/p"}),
        ("cd ~/p\n. a.sh", {"source": ["~/p/a.sh"], "workdir": "~/p"}),
        ("pushd /p > /dev/null\nmodule load b", {"module": ["b"], "workdir": "/p"}),
        (
            "source /opt/conda/bin/activate\nconda activate a",
            {"source": ["/opt/conda/etc/profile.d/conda.sh"], "conda": "a"},
        ),
    ],
)
def test_other_forms_of_options(body: str, expected: dict[str, Any]) -> None:
    done = found(body)
    assert {key: done.get(key) for key in ("setup", *expected)} == {"setup": None, **expected}


def test_a_function_that_ends_the_shell_behind_an_option() -> None:
    die = 'die() {\n  echo "no $1" >&2\n  exit 1\n}'
    got = found(f"{die}\nmodule load a || die modules\ncd /b || die folder")
    assert (got["module"], got["workdir"], got["setup"]) == (["a"], "/b", f"set -e\n{die}\n")


@pytest.mark.parametrize("body", ["cd $(./d)\nsource ./a.sh", "pushd /p\n./b\npopd", "cd /p\nsource a"])
def test_other_forms_that_stay(body: str) -> None:
    assert "setup" in found(body)


DEEPSPEED = "\ndeepspeed --hostfile h t.py\n"


def test_the_variables_that_a_script_writes_for_deepspeed() -> None:
    """DeepSpeed reads them on other nodes; a job gives its environment to each rank."""
    body = (
        'echo "PATH=$PATH" > .deepspeed_env\necho NCCL_DEBUG=INFO >> .deepspeed_env\n'
        "env | grep HF_ >> ~/.deepspeed_env\nmodule load b\nsource /opt/c.sh"
    )
    done = found(body, PBS, DEEPSPEED)
    assert (done.get("setup"), done["env"], done["module"]) == (None, {"NCCL_DEBUG": "INFO"}, ["b"])


def test_a_file_is_read_in_the_directory_of_the_script() -> None:
    options = found("cd /b\nsource /b/x.sh\ncd /c")
    assert (options["workdir"], options["source"]) == ("/b", ["/b/x.sh"])
    assert options["setup"].endswith("\ncd /c\n")
    assert found("cd /b\nsource /b/etc/profile.d/conda.sh\ncd /c")["workdir"] == "/c"


@pytest.mark.parametrize(
    ("command", "source"),
    [
        ("conda", None),
        ("/opt/c/bin/conda", ["/opt/c/etc/profile.d/conda.sh"]),
        ("$HOME/c/bin/conda", ["~/c/etc/profile.d/conda.sh"]),
        ("~/c/bin/conda", ["~/c/etc/profile.d/conda.sh"]),
    ],
)
def test_the_conda_of_a_shell_hook(command: str, source: list[str] | None) -> None:
    options = found(f'eval "$({command} shell.bash hook)"\nconda activate b')
    assert (options.get("source"), options["conda"]) == (source, "b")


@pytest.mark.parametrize("command", ["/home/$(whoami)/c/bin/conda", "$A/bin/conda"])
def test_a_conda_that_only_the_job_knows_stays_in_its_block(command: str) -> None:
    line = f'eval "$({command} shell.bash hook)"'
    got = found(f"{line}\nconda activate b")
    assert (got["early_setup"], got["conda"]) == (f"set -e\n{line}\n", "b")


@pytest.mark.parametrize(
    "lines",
    [
        "which python\nmodule load a",
        "srun -l /bin/pwd\ncd /a/b",
        "/bin/pwd\ncd /a/b",
        "mpirun -np 1 pwd\ncd /a/b",
    ],
)
def test_a_text_that_is_printed_later_has_a_remark(lines: str) -> None:
    done = job_file(f"{SLURM}{lines}\n{RUN}")
    assert [(one.line, one.lost) for one in done.remarks if one.why.startswith("prints its text")] == [
        (4, False)
    ]


def test_a_base_environment_that_leaves_the_path_has_a_remark() -> None:
    done = job_file(f"{SLURM}export PATH=/o/miniconda3/bin:$PATH\nsource activate a{RUN}")
    assert [one.line for one in done.remarks if one.why.endswith("its base environment are not on PATH")] == [
        4
    ]


def test_a_file_of_a_product_with_arguments_reads_no_other_variables() -> None:
    got = found("export A=$HOME/b\nsource /d/compilervars.sh intel64")
    assert (got["source"], got["setup"]) == (["/d/compilervars.sh intel64"], "set -e\nexport A=$HOME/b\n")


def test_a_tool_sets_no_compilers_and_no_roots_of_others() -> None:
    got = found("export CC=/x/gcc A_ROOT=$PWD\nmodule load cuda git/2")
    assert (got["module"], got["setup"]) == (["cuda", "git/2"], "set -e\nexport CC=/x/gcc A_ROOT=$PWD\n")


@pytest.mark.parametrize(
    ("name", "passes"), [("TAG", True), ("CUDA_HOME", False), ("X_DIR", False), ("A_X", False)]
)
def test_a_variable_that_the_program_reads_too_is_that_of_the_submission(name: str, passes: bool) -> None:
    got = found(f"mkdir -p ${name}\nsource /etc/profile\nmodule load a", run=f"\nsrun ./a > ${name}/x\n")
    assert (got["module"], got["module_init"]) == (["a"], ["/etc/profile"])
    assert (f"mkdir -p ${name}" in got.get("early_setup", "")) is not passes


def test_all_modules_are_unloaded_first() -> None:
    text = rendered(job_file(f"{SLURM}module purge\nmodule use /a\nmodule load b{RUN}").text)
    assert "  job_module_purge\n  job_module_use /a\n  job_module b\n" in text


def test_a_module_with_a_variable_is_loaded_at_its_turn() -> None:
    text = rendered(job_file(f"{SLURM}source $A/v.sh\nmodule load b\nmodule load c/$C_VER d{RUN}").text)
    assert '  job_source "${A?}"/v.sh\n  job_module b\n  job_module c/"${C_VER?}" d\n' in text


def test_a_file_gets_its_arguments_in_the_script() -> None:
    text = rendered(job_file(f"{SLURM}source ~/a.sh c\nmodule load b\nsource '/my x/b.sh'{RUN}").text)
    assert "  job_source ~/a.sh c\n  job_module b\n  job_source '/my x/b.sh'\n" in text


def test_a_folder_of_modules_in_a_variable_has_a_remark_unless_the_script_ends_there_too() -> None:
    for before, lines in (("", [4, 6]), ("set -u\n", [])):
        done = job_file(f"{SLURM}{before}module use $A/m\nmodule load b\nmodule unload $A/c{RUN}")
        assert [one.line for one in done.remarks if one.why.startswith("if a variable")] == lines


def test_a_list_of_modules_before_a_file_has_a_remark() -> None:
    done = job_file(f"{SLURM}module load a\nsource /b.sh\nmodule list{RUN}")
    assert [one.line for one in done.remarks if one.why.startswith("lists the modules")] == [6]
    assert values(done.text)["module"] == ["a", "list"]


def test_a_comment_goes_with_its_line() -> None:
    assert found("# of b\nmodule load b\n# of c\n./c\n./d &\nwait")["setup"].count("#") == 1


LOOP = 'while read -r line; do\n  echo "$line slots=1" >> $H\ndone < $PBS_NODEFILE'
LOOPS = {
    "truncated": f"truncate -s 0 $H\n{LOOP}",
    "emptied by a colon": f": > $H\n{LOOP}",
    "emptied by cat": f"cat /dev/null > $H\n{LOOP}",
    "emptied by an echo": f'echo -n "" > $H\n{LOOP}',
    "removed": f"rm -f $H\n{LOOP}",
    "removed if it is there": f"[ -f $H ] && rm $H\n{LOOP}",
    "removed under a condition": f"if [ -e $H ]; then\n  rm $H\nfi\n{LOOP}",
    "a last line without an end": (
        '> $H\nwhile IFS= read -r line || [[ -n $line ]]; do\n  echo "$line slots=1" >> $H\ndone < "$PBS_NODEFILE"'
    ),
    "a pipe into a loop": 'rm -f $H\ncat $PBS_NODEFILE | while read h; do printf "%s slots=1\\n" "$h" >> $H; done',
    "hosts of a command": 'rm -f $H\nfor i in `cat $PBS_NODEFILE`\ndo\n  echo "$i slots=1" >> $H\ndone',
    "a loop with one output": "for n in $(sort -u $PBS_NODEFILE); do echo $n slots=1; done > $H",
    "a group with one output": "{\n  for n in $(sort -u $PBS_NODEFILE); do echo $n slots=1; done\n} > $H",
    "an array and its index": (
        'N=($(sort -u $PBS_NODEFILE))\n: > $H\nfor ((i = 0; i < ${#N[@]}; i++)); do\n  echo "${N[$i]} slots=1" >> $H\ndone'
    ),
    "an array and printf": 'mapfile -t h < <(sort -u $PBS_NODEFILE)\nprintf "%s slots=1\\n" "${h[@]}" > $H',
    "a counter": '> $H\nn=0\nwhile read h; do\n  echo "$h slots=1" >> $H\n  n=$((n + 1))\ndone < $PBS_NODEFILE',
    "awk": "uniq $PBS_NODEFILE | awk '{print $1\" slots=1\"}' > $H",
    "counted by uniq": "sort $PBS_NODEFILE | uniq -c | awk '{print $2 \" slots=\" $1}' > $H",
    "sed": 'sed "s/$/ slots=1/" $PBS_NODEFILE > $H',
    "tee": "sort -u $PBS_NODEFILE | sed 's/$/ slots=1/' | tee $H",
}  # fmt: skip


@pytest.mark.parametrize(
    "run", ["deepspeed --hostfile $H t.py", "mpirun -np 2 -hostfile $H -x A=1 python3 t.py"]
)
@pytest.mark.parametrize("name", LOOPS)
def test_a_file_of_hosts_needs_no_block(name: str, run: str) -> None:
    got = found(f"cd $PBS_O_WORKDIR\nH=hosts\n{LOOPS[name]}", PBS, f"\n{run}\n")
    assert not {"setup", "before"} & {*got}


@pytest.mark.parametrize("command", ["pbs --dialect torque", "pbs --dialect pbspro", "slurm"])
@pytest.mark.parametrize("name", ["torque_deepspeed", "torque_mpirun"])
def test_job_files_without_a_block_are_right_everywhere(tmp_path: Path, name: str, command: str) -> None:
    text = job_file((HERE / f"scripts/{name}.sh").read_text()).text
    assert "[blocks]" not in text
    (tmp_path / "jobgen.toml").write_text(text)
    jobgen = [sys.executable, "-m", "jobgen"]
    subprocess.run([*jobgen, *command.split(), "-o", "job.sh"], cwd=tmp_path, capture_output=True, check=True)
    done = subprocess.run(
        [*jobgen, "check", "job.sh"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("directive", "name"), [("#SBATCH -n 1", "PBS_O_WORKDIR"), ("#PBS -l ncpus=1", "SLURM_SUBMIT_DIR")]
)
def test_the_directory_of_the_other_scheduler_is_no_directory_of_the_submission(
    directive: str, name: str
) -> None:
    """The scheduler does not set it, and cd goes to the home directory."""
    text = f"#!/bin/bash\n{directive}\ncd ${name}\n./a > out.txt\n"
    assert f"cd ${name}" in job_file(text).text


CONDITIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "a directory": ("cd /b && srun ./a", {"workdir": "/b", "setup": None}),
    "several options": (
        "cd /b && module load x && source /y.sh && srun ./a",
        {"workdir": "/b", "module": ["x"], "source": ["/y.sh"], "setup": None},
    ),
    "a directory behind a test": (
        "[ -d x ] && cd x && srun ./a", {"workdir": None, "setup": "set -e\n[ -d x ] || exit\ncd x || exit\n"},
    ),
    "another sign": ("[ -d x ] || cd x && srun ./a", {"setup": "set -e\n[ -d x ] || cd x || exit\n"}),
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), CONDITIONS.values(), ids=CONDITIONS)
def test_conditions_of_the_program_that_are_options(line: str, expected: dict[str, Any]) -> None:
    got = found(line, run="\n")
    assert {key: got.get(key) for key in expected} == expected
    assert got["command"] == ["./a"]


def test_a_script_that_starts_at_home() -> None:
    got = found("[ -e x ] || ./make_it", "#!/bin/bash\n#PBS -l nodes=1:ppn=1\n", "\nmpirun ./a\n")
    assert got["workdir"] == "~/."
    assert "cd" not in str(got.get("setup"))


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ('cd "~"', 'cd "~"'),
        ("cd /b || true", "cd /b || true"),
        ("cd /b || { rm x; exit 1; }", "cd /b || { rm x; exit 1; }"),
        (body := "f() { exit 1; ./b; }\ncd /b || f", body),
        (body := 'if [ -n "$PBS_O_WORKDIR" ]; then cd $PBS_O_WORKDIR; fi', body),
        (body := 'if [ -n "$SLURM_SUBMIT_DIR" ]; then cd $A; fi', body),
        (body := 'if [ -n "$SLURM_SUBMIT_DIR" ]; then cd $SLURM_SUBMIT_DIR && ./b; fi', body),
        (body := "module() { ./b; }\nmodule load a", body),
        (body := "export TMPDIR=$(./b)\nmkdir -p $TMPDIR\ncd /b", body),
        ("source /v/bin/activate\nmodule load cuda\nsource /x.sh", "source /x.sh"),
        ("conda activate a\nmodule load cuda", "module load cuda"),
    ],
)
def test_lines_that_stay_where_they_are(lines: str, stays: str) -> None:
    assert found(lines)["setup"] == f"set -e\n{stays}\n"


@pytest.mark.parametrize(
    ("lines", "module_init", "module"),
    [
        ("source /v/bin/activate\nmodule load cuda-python/12", ["/v/bin/activate"], ["cuda-python/12"]),
        ("source /v/bin/activate\nmodule load git-python", ["/v/bin/activate"], ["git-python"]),
        ("source /o/miniconda3/bin/activate\nmodule load cuda", ["/o/miniconda3/bin/activate"], ["cuda"]),
        ("source /v/bin/activate\nmodule load gcc cuda", ["/v/bin/activate"], ["gcc", "cuda"]),
        ("source v/bin/activate\nml cuda\nml gcc", ["./v/bin/activate"], ["cuda", "gcc"]),
        ("source /b.sh\nsource /v/bin/activate\nml a", ["/b.sh", "/v/bin/activate"], ["a"]),
    ],
)
def test_a_virtual_environment_before_the_modules(
    lines: str, module_init: list[str], module: list[str]
) -> None:
    got = found(lines)
    assert (got["module_init"], got["module"]) == (module_init, module)
    assert not {"venv", "source", "setup"} & got.keys()


@pytest.mark.parametrize(
    ("lines", "workdir"), [("cd x", "~/x"), ("cd x/y\ncd ..", "~/x/y/.."), ("cd ../x", "~/../x")]
)
def test_a_directory_below_the_home_in_which_a_job_starts(lines: str, workdir: str) -> None:
    assert found(lines, head=PBS, run="\nmpirun ./a\n")["workdir"] == workdir
    other_home = found(f"HOME=/y\n{lines}", head=PBS, run="\nmpirun ./a\n")
    assert other_home["workdir"] == "~/."
    assert lines in other_home["setup"]


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("export A_VER=1\n. ./versions.ver", True),
        ("export A_VER=1\n. $VERSION_FILE", True),
        ("export LEVEL=1\nsource /home/me/config.sh", True),
        ("export LEVEL=1\nif [ -f b.sh ]; then . b.sh; fi", True),
        ("export LEVEL=1\n. ./versions.ver", False),  # which sets versions only
        (". b.sh\nexport LEVEL=1", False),
        ("export LEVEL=1\n. ~/.bashrc", False),
        ("export LEVEL=1\n. /etc/profile", False),
        ("export LEVEL=1\n. $MODULESHOME/init/bash", False),
        ("export LEVEL=1\n. b/bin/activate", False),
        ("export LEVEL=1\nsource /b/miniconda3/etc/profile.d/conda.sh\nconda activate b", False),
        ("export LEVEL=1\nmodule load b", False),
    ],
)
def test_a_file_behind_an_export_may_set_the_variable_again(body: str, stays: bool) -> None:
    """The variables of the job file are set again behind its files."""
    got = found(body)
    name = body.partition("export ")[2].partition("=")[0]
    assert (name in got.get("env", {})) is not stays
    setup = "".join(got.get(key, "") for key in ("early_setup", "setup")).splitlines()
    lines = body.splitlines()[: 1 if {"source", "module_init"} & got.keys() else None]
    assert not stays or setup[-len(lines) :] == lines


@pytest.mark.parametrize(
    ("name", "module", "stays"),
    [
        ("NETCDF", "netcdf/4", True),
        ("NETCDF_DIR", "netcdf4/4.6", True),
        ("NETCDF", "openmpi", False),
        ("NCCL_DEBUG", "nccl", False),
        ("CUDA_VISIBLE_DEVICES", "cuda", False),
        ("I_MPI_PIN", "intel/2021", True),
        ("I_MPI_FABRICS", "mpi/intelmpi/2018", True),
        ("MKLROOT", "intel-oneapi-mkl", True),
        ("MKL_NUM_THREADS", "mkl", False),
        ("OMPI_MCA_btl", "openmpi4/4.1", True),
        ("OMPI_MCA_btl", "gcc", False),
        ("MV2_SMP_USE_CMA", "mvapich2", True),
        ("MPICH_ENV_DISPLAY", "cray-mpich", True),
    ],
)
def test_a_module_with_the_name_of_a_variable_stays_behind_it(name: str, module: str, stays: bool) -> None:
    for export in ("export ", ""):
        found = values(job_file(f"#SBATCH -t 5\n{export}{name}=/a\nmodule load {module}\nsrun ./a\n").text)
        assert (f"{name}=/a\n" in found.get("early_setup", "")) is stays
        assert found["module"] == [module]
