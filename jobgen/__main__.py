"""``python -m jobgen``, and the command ``jobgen``."""

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and end the process with its status."""
    if sys.getfilesystemencoding() != "utf-8":  # the same arguments give the same bytes in every locale
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    # A process that lives a tenth of a second needs no collector; the imports make it run often.
    gc.disable()
    from jobgen.commands.cli import run
    from jobgen.commands.streams import guarded

    status = guarded(lambda: run(sys.argv[1:]))
    sys.stderr.flush()
    os._exit(status)  # to free all modules and objects first would take half as long as their imports


if __name__ == "__main__":
    main()
