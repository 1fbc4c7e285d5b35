"""Runs a service that does not outlive its parent: `python -m assay.kit.child PACKAGE [ARGS]`.

The parent holds the other end of standard input. When the pipe ends, this process asks itself to
stop, then makes itself stop. PR_SET_PDEATHSIG would fire already when the parent's *thread* that
started the child ends.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

_GRACE_S = 15.0


def _stop_at_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Watches standard input, and runs the package."""
    package, *arguments = sys.argv[1:]
    sys.argv = [package, *arguments]
    threading.Thread(target=_stop_at_end_of_input, name="parent-watch", daemon=True).start()
    runpy.run_module(package, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
