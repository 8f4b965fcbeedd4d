"""The server from which worker processes are forked. Importing this module is its preparation.

A batch system and a launcher send the signals that request a stop to all processes of a job. Only the ranks
answer them: the server and the workers, which inherit this from it, ignore them.
"""

import signal

from ..signals import SIGNALS
from . import processes

for number in SIGNALS:
    signal.signal(number, signal.SIG_IGN)

PREPARATION = (__name__, processes.__name__)  # torch is imported once for all workers
