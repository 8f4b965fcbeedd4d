# jobgen pbs --site ./site.toml --nodes 2 --gpus-per-node 8 -- train.py
# jobgen: --nodes 2 (command line): queue gpu of pbssrv takes at most 1 node with 8 x 2080ti, 48 cores, 190G; no queue accepts it, but gpu would with --nodes 1 (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
