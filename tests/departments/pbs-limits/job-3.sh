# jobgen pbs --site ./site.toml --nodes 3 --queue large -- train.py
# jobgen: --nodes 3 (command line): queue large of pbssrv takes at most 128 cores a job, and this one has 192; no queue accepts it, but large would with 128 cores in all and 8 accelerators in all (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
