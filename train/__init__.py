"""The training module that the generated scripts launch: python -m jobgen.train.

Read it in the order of a run: __main__ (wiring), config (options), dsconfig (DeepSpeed's config),
ranks (who am I), device, data, peers (the other ranks), models, engine, sampling (which samples are
mine), loop, report (what the run leaves).
"""
