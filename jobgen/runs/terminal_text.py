"""Log text for a terminal. A program, or whoever writes to its log, must not set the title or the clipboard,
move the cursor or send answers: all control sequences but colours are left out."""

from __future__ import annotations

import codecs
import re

# OSC, DCS, SOS, PM and APC with their text, which ends at the latest with its line; CSI with its parameters;
# then the other escape sequences, and single control characters.
_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x9c\n]*"
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*"
_SEQUENCE = re.compile(
    rf"(\x1b\[[0-9;:]*m)|{_STRING}(?:\x07|\x9c|\x1b\\)?|{_CSI}[@-~]?|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_INCOMPLETE = re.compile(rf"(?:{_STRING}\x1b?|{_CSI}|\x1b[ -/]*)\Z")
_LONGEST = 4096  # characters of an incomplete sequence that wait for their end


class TerminalText:
    """The text of a log that arrives in pieces, which may end within a character or a sequence."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def shown(self, piece: bytes) -> str:
        """Return what a terminal shows of the next piece."""
        text = self._rest + self._decoder.decode(piece)
        found = _INCOMPLETE.search(text, max(0, len(text) - _LONGEST))
        begin = found.start() if found else len(text)
        text, self._rest = text[:begin], text[begin:]
        return _SEQUENCE.sub(lambda match: match[1] or "", text)
