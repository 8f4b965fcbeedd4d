"""``python -m jobgen``, and the command ``jobgen``."""

import sys

from jobgen.cli import run


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
