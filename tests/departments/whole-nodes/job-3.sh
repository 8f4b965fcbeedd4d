# jobgen slurm --site ./site.toml --nodes 5 -- train.py
# jobgen: --nodes 5 (command line): queue large of whole-nodes takes 2 to 4 nodes; no queue accepts it, but large would with --nodes 4 or small would with --nodes 1 (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
