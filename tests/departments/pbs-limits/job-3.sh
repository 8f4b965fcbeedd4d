# jobgen pbs --site ./site.toml --nodes 3 --queue large -- train.py
# jobgen: --nodes 3 (command line): queue large of pbssrv takes at most 8 accelerators of a user at a time, and the job has 12; no queue accepts it, but large would with 8 accelerators in all (the scheduler of this machine of 2026-01-31; jobgen site refresh asks the scheduler)
