# The start: every function is known by now.

trap job_end EXIT
job_verify "$0"
job_main
