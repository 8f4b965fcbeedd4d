"""Correctness and speed of the training module on one GPU: ``python -m benchmarks.gpu PROGRAM``.

It needs a checkout, torch and numpy, but no network; DeepSpeed's parts are left out if it cannot be imported.
Each of the two programs, `images` and `language`, takes less than four minutes on an H100. Figures are
measured beside a loop by hand, on the same model and data, and one Training serves all rounds. Both sides
take turns. Results: a table in Markdown and a JSON file, which are written after each row.
"""
