# jobgen pbs --site ./site.toml --nodes 3 --queue large -- train.py
# jobgen: --nodes 3 (command line): queue large of pbssrv takes at most 128 cores a job, and this one has 192; physics takes 1 to 3 nodes: use --queue physics (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
