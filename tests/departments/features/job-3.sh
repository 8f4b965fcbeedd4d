# jobgen slurm --site ./site.toml --nodes 2 --constraint rtx8000 -- train.py
# jobgen: --nodes 2 (command line): queue gpu of features takes at most 1 node with 2 accelerators, 32 cores, 125G, features rtx8000; no queue accepts it, but gpu would with --nodes 1 (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
