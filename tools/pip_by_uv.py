"""pip install ARG..., by uv, which takes a quarter of the time; by pip if uv cannot.

uv does not read pip's settings: this passes on where pip looks for packages.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys

# The variable of uv for each setting of pip, and what separates its values.
SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "cert": ("SSL_CERT_FILE", " "),
}
SECTIONS = ("global", "install", ":env:")  # the last one wins
OPTIONS = ("--quiet", "--disable-pip-version-check", "--constraint", "constraints.txt")
PIP = (sys.executable, "-m", "pip")
UV = (sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable)


def main(words: list[str]) -> int:
    if not importlib.util.find_spec("uv"):
        subprocess.run([*PIP, "install", *OPTIONS, "uv"], check=False)
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True).stdout
    # pip takes the newest release of all indexes, uv by itself that of the first index that has the package.
    env = {"UV_INDEX_STRATEGY": "unsafe-best-match", **variables(listed), **os.environ}
    if not subprocess.run([*UV, *OPTIONS, *words], env=env, check=False).returncode:
        return 0
    return subprocess.run([*PIP, "install", *OPTIONS, "--no-compile", *words], check=False).returncode


def variables(listed: str) -> dict[str, str]:
    """Return the environment of uv for the output of `pip config list`."""
    found: dict[tuple[int, str], str] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.partition(".")
        if key in SETTINGS and section in SECTIONS:
            found[SECTIONS.index(section), key] = ast.literal_eval(value)
    made = {}
    for (_, key), value in sorted(found.items()):
        variable, between = SETTINGS[key]
        made[variable] = between.join(value.split())
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
