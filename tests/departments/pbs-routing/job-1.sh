# jobgen pbs --site ./site.toml --nodes 2 --walltime 1h -- train.py
# jobgen: --nodes 2 (command line): queue debug of pbssrv takes 1 node; no queue accepts it, but debug would with --nodes 1 and --walltime 00:30:00 (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
