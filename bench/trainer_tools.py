"""A policy that learns to call Python (ReTool's and SimpleTIR's setting), in miniature.

    python -m bench trainer-tools --out DIR --seeds 0,1,2

The task is to multiply two numbers of two digits. A model of 0.1 M weights cannot: pretrained on
prompts and answers, it writes a number of the right length. Six times in a hundred it writes the
product as a program instead, and it was taught to read what a program printed. The contestants:

    tool       episodes of the environment `python`: real sessions in a real sandbox
    without    the same model and rewards, single responses

What this can show: that a policy finds the tool by its reward alone, and is right with it where it
cannot be without. At 40 steps `tool` should leave chance in every seed; an effect of less than half
of the held-out problems would say that something is broken.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from bench.miniature import (
    END,
    Item,
    Service,
    Shape,
    as_data,
    begin,
    finished,
    job_of,
    keep,
    options,
    over_seeds,
    pretrained,
    told,
    train,
    write_problems,
)

CONFIGS = Path(__file__).parents[1] / "configs"
