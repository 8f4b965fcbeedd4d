"""What is no code: environments, runs, checkpoints, secrets."""

from __future__ import annotations

import os
import re

# Folders that are made anew wherever they are needed; nobody has to be told that they stay here.
UNSAID = (".git", "__pycache__")
_SIGNS_OF_RUNS = (("job.sh", "plan.json"), ("status.json", "metrics.jsonl"))
_SIGNS_OF_CHECKPOINTS = ("checkpoint.json", "trainer_state.json")
_CHECKPOINT_FOLDER = re.compile(r"checkpoint-\d+|global_step\d+")
_CHECKPOINTS_FOLDER = re.compile(r"(checkpoint|ckpt)s?", re.IGNORECASE)
_CHECKPOINT = re.compile(
    r".+\.(ckpt|pt|pth|safetensors|distcp)|(pytorch_model|optimizer).*\.bin", re.IGNORECASE | re.DOTALL
)

_SECRET = re.compile(
    r"\.env(\.(?!example$|sample$|template$|dist$).+)?|.+\.(pem|p12|pfx|kdbx|keytab)|[._]netrc|\.pgpass|\.pypirc"
    r"|\.git-credentials|credentials.*|id_(?!.*\.(py|pyi|pyx|c|cc|cpp|cu|h|hpp|js|ts|rs|go|md|pub)$).*",
    re.IGNORECASE | re.DOTALL,
)
_KEY = re.compile(
    rb"\s*(-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY"
    rb"|PuTTY-User-Key-File-\d|AGE-SECRET-KEY-1)"
)
HEAD = 4096  # bytes of a file that `is_key` needs


def of_folder(path: str) -> str:
    """Return what a folder is that never travels, in the plural; empty if it is code."""
    names = frozenset(os.listdir(path))
    name = os.path.basename(path)
    if "pyvenv.cfg" in names or "conda-meta" in names:
        return "environments"
    if any(names.issuperset(signs) for signs in _SIGNS_OF_RUNS) or "attempt-1" in names:
        return "runs"
    own = _CHECKPOINTS_FOLDER.fullmatch(name) and not any(one.endswith(".py") for one in names)
    if own or _CHECKPOINT_FOLDER.fullmatch(name) or not names.isdisjoint(_SIGNS_OF_CHECKPOINTS):
        return "checkpoints"
    return ""


def is_checkpoint(name: str) -> bool:
    """Return whether a file with this name has the weights of a model."""
    return _CHECKPOINT.fullmatch(name) is not None


def is_secret(name: str) -> bool:
    """Return whether a file with this name usually holds a secret."""
    return _SECRET.fullmatch(name) is not None


def is_key(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a private key."""
    return _KEY.match(head.removeprefix(b"\xef\xbb\xbf")) is not None
