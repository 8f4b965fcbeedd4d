# jobgen slurm --site ./site.toml --queue physics -- train.py
# jobgen: --queue physics (command line): queue physics of closed-to-the-user is not enabled (2026-01-31: it takes only the accounts physics, and you have chemistry); no queue accepts it, but everyone would with --gpus-per-node 2 (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
