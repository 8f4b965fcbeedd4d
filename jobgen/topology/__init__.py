"""The topology of a node: which processors are next to which device.

``jobgen doctor`` and the preflight of the training module use it; it imports only the standard library.
"""
