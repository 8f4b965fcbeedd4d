"""Sets of processors, as the kernel and schedulers write them: lists such as ``0-7,64-71``, and masks."""

import re
from collections.abc import Iterable

Cpus = frozenset[int]
NONE: Cpus = frozenset()
_MOST = 8192  # processors of Linux (NR_CPUS of x86)
_PARTS = _MOST // 2  # ranges that a list of them can have


def read(text: str) -> Cpus:
    """Return the processors of a list such as ``0-7,64-71``; empty if the text is not such a list."""
    parts = text.strip().split(",")
    matches = [re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part, re.ASCII) for part in parts[:_PARTS]]
    ends = [(int(match[1]), int(match[2] or match[1])) for match in matches if match]
    if len(ends) < len(parts) or any(last < first or last >= _MOST for first, last in ends):
        return NONE
    return frozenset(cpu for first, last in ends for cpu in range(first, last + 1))


def read_mask(text: str) -> Cpus:
    """Return the processors of a mask such as ``0xff00``; empty if the text is not a mask."""
    if not re.fullmatch(rf"(0x)?[0-9a-fA-F]{{1,{_MOST // 4}}}", text, re.ASCII):
        return NONE
    bits = int(text, 16)
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def mask(text: str) -> str:
    """Return a list such as ``1-7,9`` as a mask, ``0x2fe``; empty if the text is not such a list."""
    cpus = read(text)
    return hex(sum(1 << cpu for cpu in cpus)) if cpus else ""


def write(cpus: Iterable[int]) -> str:
    """Return the processors as a list, the inverse of ``read``."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
