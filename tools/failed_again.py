"""Run the tests that failed in the last run of pytest with a cache (failed_again.py CACHE) once more, one at a time.

pytest's --last-failed leaves out tests of xdist's groups: their ids end with @GROUP only while xdist runs them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path


def main() -> None:
    cache = sys.argv[1]
    failed = json.loads(Path(cache, "v/cache/lastfailed").read_text())
    ids = [re.sub(r"@[\w-]+$", "", name) for name in failed]
    if not ids:  # pytest without words would run everything
        sys.exit("failed_again.py: the last run names no test that failed")
    print(f"{len(ids)} failed; once more, one at a time:", flush=True)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *ids])


if __name__ == "__main__":
    main()
