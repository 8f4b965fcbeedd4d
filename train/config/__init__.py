"""From the command line of python -m jobgen.train to a consistent plan of the training.

Does not import torch, so that an error in the options is reported at once.
"""

from .parsing import from_record, parse
from .settings import MOE_OPTIONS, Settings, to_record

__all__ = ["MOE_OPTIONS", "Settings", "from_record", "parse", "to_record"]
