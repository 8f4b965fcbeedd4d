"""Correctness and speed of the training module on one GPU, without a network: ``python -m benchmarks.gpu``.

It needs a checkout, torch and numpy; DeepSpeed's parts are left out if it cannot be imported. Each part of
parts.py runs in a process of its own and within its time, so that the whole takes less than eight minutes.
Figures are measured beside a loop by hand, on the same model and data. Results: a table in Markdown and a
JSON file.
"""
