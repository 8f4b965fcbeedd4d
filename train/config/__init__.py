"""From the command line of python -m jobgen.train to a consistent plan of the training.

Does not import torch, so that an error in the options is reported at once.
"""

from .parsing import parse, restored
from .settings import MOE_OPTIONS, Settings, recorded

__all__ = ["MOE_OPTIONS", "Settings", "parse", "recorded", "restored"]
