# jobgen pbs --site ./site.toml --queue old -- train.py
# jobgen: --queue old (command line): pbssrv has no such queue: use entry or debug (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
