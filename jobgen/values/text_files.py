"""Text that users give: the limit of a file, and that of a word; the names of scripts."""

from __future__ import annotations

import re

LARGEST_FILE = 1_000_000  # bytes
LARGEST_WORD = 100_000  # bytes; Linux starts no program with an argument or a variable beyond 131,071


class TooLong(ValueError):
    """A file is too long."""


def is_script_name(path: str) -> bool:
    """Return whether a file has the ending of a batch script or of a shell script."""
    return re.search(r"\.(?:sh|bash|sbatch|slurm|pbs|qsub|job)$", path) is not None


def is_job_file_name(path: str) -> bool:
    """Return whether a file has the ending of a job file."""
    return path.endswith(".toml")


def read_text(path: str, errors: str = "strict") -> str:
    """Return the text of a file, without a byte order mark.

    Raises:
        OSError: it cannot be read.
        TooLong: it is.
        ValueError: it is no text in UTF-8.
    """
    with open(path, "rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise TooLong("is longer than a megabyte, the limit of such a file")
    return content.decode("utf-8-sig", errors).replace("\r\n", "\n").replace("\r", "\n")


def check_word(text: str) -> None:
    """Refuse a text that can be no argument and no variable of a program.

    Raises:
        ValueError: it holds a NUL, or is too long.
    """
    if "\0" in text:
        raise ValueError("can hold no NUL")
    if len(text) > LARGEST_WORD or len(text.encode(errors="surrogateescape")) > LARGEST_WORD:
        raise ValueError(f"is longer than {LARGEST_WORD} bytes, the limit of a value")
