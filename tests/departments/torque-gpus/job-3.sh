# jobgen pbs --site ./site.toml --queue physics -- train.py
# jobgen: --queue physics (command line): queue physics of tqsrv is not enabled (2026-01-31: it takes only the users marie, and you have ada); use --queue short, long or entry (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
