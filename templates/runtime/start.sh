# The start: every function is known by now.

trap job_end EXIT
job_main
