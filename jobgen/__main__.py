"""``python -m jobgen``, and the command ``jobgen``."""

import gc
import sys


def main() -> None:
    """Run the command line and end with its status."""
    # A process that lives a tenth of a second needs no collector; the imports make it run often.
    gc.disable()
    from jobgen.commands.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
