#!/bin/bash
# container.sh COMMAND...: run it in the container of the job, with the environment and directory of the caller.
set -euo pipefail
job_dir=${BASH_SOURCE[0]%/*}
JOBGEN_RUN_DIR=${JOBGEN_RUN_DIR:-$job_dir}  # used by the container function of the job
# shellcheck source=/dev/null
. "$job_dir/functions.sh"
export JOBGEN_INSIDE=yes PYTHONNOUSERSITE=1  # no packages in the home directory

job_leave_host() { # unset the variables that name files of the host
  local name
  # Some runtimes do not pass PATH and similar variables, except under another name.
  for name in ${job_container_variables[@]+"${job_container_variables[@]}"}; do
    [[ -z ${job_container_variable_prefix:-} ]] || export "$job_container_variable_prefix$name=${!name}"
  done
  for name in LD_LIBRARY_PATH LD_PRELOAD LIBRARY_PATH CPATH PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX CUDA_HOME \
    CUDA_PATH ROCM_PATH ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME; do
    [[ -z ${job_container_variable_prefix:-} && " ${job_container_variables[*]-} " == *" $name "* ]] || unset "$name"
  done
}

job_leave_host
job_binds=("$job_dir:$job_dir" "$PWD:$PWD" ${job_container_binds[@]+"${job_container_binds[@]}"})
if [[ $job_accelerator == npu ]]; then
  # The driver is that of the host. CANN is that of the image, whose script sets it up.
  for file in /usr/local/Ascend/driver /usr/local/dcmi /usr/local/bin/npu-smi /usr/local/sbin/npu-smi /etc/ascend_install.info /etc/hccn.conf; do
    [[ ! -e $file ]] || job_binds+=("$file:$file:ro")
  done
  # shellcheck disable=SC2016  # expanded in the container
  set -- bash -c 'for file in "${ASCEND_HOME_PATH:-/none}"{,/..}/set_env.sh /usr/local/Ascend/{ascend-toolkit,cann}/set_env.sh; do
    if [[ -r $file ]]; then . "$file"; break; fi
  done
  exec "$@"' bash "$@"
fi

pass_environment() { # EXCEPTION...: options that pass every variable of this process, by its name
  local name
  for name in $(compgen -e); do
    [[ " HOSTNAME PWD OLDPWD SHLVL _ $* " == *" $name "* ]] || job_options+=(--env="$name")
  done
}

docker_options() { # docker|podman: a separate file system, but the network, memory and processes of the host
  local file path=PATH
  job_options=(--rm --network=host --ipc=host --pid=host --entrypoint= --label=jobgen="${JOBGEN_JOB_ID:-}" --workdir="$PWD" "${job_binds[@]/#/--volume=}")
  if [[ $1 == docker ]]; then  # the daemon starts it, outside of the job: as this user, on the processors of the job
    job_options+=(--user="$(id -u):$(id -g)" --ulimit=memlock=-1 --cpuset-cpus="$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)")
  elif ((EUID)); then
    job_options+=(--userns=keep-id)
  fi
  [[ " ${job_container_variables[*]-} " != *' PATH '* ]] || path=
  pass_environment HOME TMPDIR $path
  for file in /dev/davinci[0-9]* /dev/davinci_manager /dev/devmm_svm /dev/hisi_hdc; do
    [[ $job_accelerator != npu || ! -e $file ]] || job_options+=(--device="$file")
  done
  [[ ! -d /dev/infiniband ]] || job_options+=(--device=/dev/infiniband)
  job_options+=(--env=HOME="$job_dir")
}

enroot_options() {
  local bind from to mode path=PATH
  job_options=()
  for bind in "${job_binds[@]}"; do
    IFS=: read -r from to mode <<< "$bind"
    job_options+=(--mount="$from:$to:none:x-create=auto,rbind${mode:+,$mode}")
  done
  [[ " ${job_container_variables[*]-} " != *' PATH '* ]] || path=
  pass_environment $path
}

container "$@"
