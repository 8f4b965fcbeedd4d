"""Commands by what they do in a script: print something, change the shell, or handle files."""

_PRINT = "echo date hostname nvidia-smi npu-smi printf pwd which whoami uptime"
_STATE = """
module ml source . cd pushd popd conda mamba micromamba eval set shopt ulimit umask unset exec trap alias
export declare typeset readonly read mapfile readarray let wait exit return shift ssh-agent pyenv deactivate
uenv spack nvm use soft workon
"""
_TOOLS = """
cp mv rm mkdir rmdir ln ls cat touch chmod tar gzip gunzip zip unzip rsync scp wget curl git pip pip3
sleep true false test [ head tail grep sed awk sort cut wc find xargs tee df du free top env id groups
seq kill ps nvcc sbatch qsub lscpu scontrol squeue sacct qstat seff
"""
PRINT = frozenset(_PRINT.split())
STATE = frozenset(_STATE.split())
TOOLS = PRINT | frozenset(_TOOLS.split())
