"""`python -m assay.trainer.recipes.reward_model CONFIG.toml`: `assay train-rm`, for launchers."""

from __future__ import annotations

import sys

from assay.trainer.launch import main
from assay.trainer.recipes.reward_model.config import RUNS

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], RUNS.command))
