# jobgen slurm --site ./site.toml --nodes 3 -- train.py
# jobgen: --nodes 3 (command line): queue gpu of qos-limits takes 1 to 2 nodes; short takes 1 to 4 nodes: use --queue short (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
