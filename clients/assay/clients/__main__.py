"""`python -m assay.clients ARGS`: the `assay` command, where its script is not on the path."""

from __future__ import annotations

from assay.clients.cli import main

if __name__ == "__main__":
    main()
