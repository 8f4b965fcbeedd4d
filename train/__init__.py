"""The training module that the generated scripts launch: python -m jobgen.train.

Read it in the order of a run: __main__ (commands and statuses), running (the wiring), config/ (options, and
DeepSpeed's config), ranks (who am I), device, data/, peers (the other ranks), models/, engines/,
checkpoints/, loop, scoring, report (what the run leaves).
"""
