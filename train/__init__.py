"""The training module that the generated scripts launch: python -m jobgen.train.

The order of a run is a good order for reading: __main__ (commands and exit statuses), running (one whole
run), config/ (options and DeepSpeed's config), ranks (rank discovery), device, data/, peers (process group),
models/, engines/, checkpoints/, loop, scoring, report (files of the run).
"""
