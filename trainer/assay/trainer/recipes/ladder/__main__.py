"""The command line as a module, for the runs of a ladder: see `processes`."""

from __future__ import annotations

import sys

from assay.clients.cli import run

if __name__ == "__main__":
    sys.exit(run())
