"""The pieces of the training module for a program of one's own: `from jobgen.train import init, ...`.

process.py finds the rank and connects the ranks; states.py saves and resumes; deadline.py leaves in time;
api.py trains from Python. transformers.py and lightning.py fit the pieces into these libraries.
"""
