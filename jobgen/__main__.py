"""``python -m jobgen``, and the command ``jobgen``."""

import os
import sys
from _signal import (  # type: ignore[import-not-found]  # the module signal takes 2 ms to load
    SIGINT,
    default_int_handler,
    getsignal,
    signal,
)

TYPE_CHECKING = False  # without typing, which takes 5 ms to load
if TYPE_CHECKING:
    from typing import NoReturn

_INTERRUPTED = 130


class _Interrupts:
    """What Ctrl-C does: it stops the command, which cleans up, and at any other time it ends the process."""

    def __init__(self) -> None:
        self.in_command = self.came = False

    def listen(self) -> None:
        """Handle the signal, unless the parent of this process ignores it."""
        if getsignal(SIGINT) is default_int_handler:
            signal(SIGINT, self._take)
            sys.unraisablehook = self._unraisable

    def _take(self, *_: object) -> None:
        self.came = True
        if not self.in_command:
            self.end()
        self.in_command = False
        raise KeyboardInterrupt

    def _unraisable(self, about: "sys.UnraisableHookArgs") -> None:
        if self.came:  # in a destructor or in a callback, which Python does not leave by an exception
            self.end()
        sys.__unraisablehook__(about)

    def end(self) -> "NoReturn":
        try:
            os.write(2, b"jobgen: interrupted\n")
        finally:
            os._exit(_INTERRUPTED)


def main() -> "NoReturn":
    """Run the command line and end the process with its status."""
    if os.name == "nt":
        os.write(2, b"jobgen: Windows is not supported: use jobgen in WSL\n")
        os._exit(2)
    interrupts = _Interrupts()
    try:
        interrupts.listen()
        os._exit(_run(interrupts))  # to free all objects first would take half as long as their imports
    except KeyboardInterrupt:
        interrupts.end()
    except BaseException:
        if interrupts.came:  # the code of modules may turn KeyboardInterrupt into another error
            interrupts.end()
        raise


def _run(interrupts: _Interrupts) -> int:
    if sys.getfilesystemencoding() != "utf-8":  # the same arguments give the same bytes in every locale
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    # A process that lives a tenth of a second needs no collector; the imports make it run often.
    import gc

    gc.disable()
    from jobgen.commands.cli import run
    from jobgen.commands.streams import guarded

    def command() -> int:
        interrupts.in_command = True
        status = run(sys.argv[1:])
        interrupts.in_command = False
        return status

    status = guarded(command)
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    main()
