# conda by its shell hook: conda init is for login shells and has no effect in a batch job.

job_conda() { # ENVIRONMENT
  local job_place job_command=${CONDA_EXE:-$(command -v conda)}
  for job_place in "$HOME"/{miniforge3,miniconda3,mambaforge,anaconda3}/bin/conda /opt/conda/bin/conda; do
    [[ -n $job_command || ! -x $job_place ]] || job_command=$job_place
  done
  [[ -n $job_command ]] || job_die 71 'cannot find conda: load its module with --module, or put it on PATH'
  job_hook=$("$job_command" shell.bash hook) || job_die 71 "$job_command shell.bash hook fails"
  job_file=$job_command job_conda_env=$1
  # shellcheck disable=SC2016  # job_eval expands it
  job_eval 'eval "$job_hook" && conda activate "$job_conda_env"'
  ((job_eval_status == 0)) || job_die 71 "cannot activate the conda environment $1: conda env list shows the names"
}
