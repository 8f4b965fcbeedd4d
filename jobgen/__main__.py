"""``python -m jobgen``, and the command ``jobgen``."""

import gc
import os
import sys


def main() -> None:
    """Run the command line and end with its status."""
    if sys.getfilesystemencoding() != "utf-8":  # the same arguments give the same bytes in every locale
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    # A process that lives a tenth of a second needs no collector; the imports make it run often.
    gc.disable()
    from jobgen.commands.cli import run
    from jobgen.commands.streams import guarded

    sys.exit(guarded(lambda: run(sys.argv[1:])))


if __name__ == "__main__":
    main()
