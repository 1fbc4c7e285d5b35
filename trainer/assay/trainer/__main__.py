"""`python -m assay.trainer CONFIG.toml [KEY=VALUE]...`: `assay train`, for launchers."""

from __future__ import annotations

import sys

from assay.trainer.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
