# The start: all functions are defined.

trap job_end EXIT
job_main
