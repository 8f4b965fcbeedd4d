# jobgen slurm --site ./site.toml --queue no-physics -- train.py
# jobgen: --queue no-physics (command line): queue no-physics of closed-to-the-user is not enabled (2026-01-31: it refuses the accounts chemistry, and you have chemistry); use --queue everyone (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
