# The start: all functions are defined.

job_arguments=("$@")
trap job_end EXIT
job_main
