"""The training module that the generated scripts launch: python -m jobgen.train.

Read it in the order of a run: __main__ (wiring), config (options), ranks (who am I), device,
data and models, sampling (which samples are mine), dsconfig and engine (DeepSpeed), loop, report.
"""
