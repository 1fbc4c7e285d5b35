"""Steps of a response: where they are, what each is worth, and one score for all. Pure."""

from __future__ import annotations

from assay.genrm.steps.aggregation import aggregate
from assay.genrm.steps.code import last_block
from assay.genrm.steps.labels import label_lines, prefix_search, search_prefix
from assay.genrm.steps.scoring import score_steps
from assay.genrm.steps.splitting import StepSpan, spans_of, split

__all__ = [
    "StepSpan",
    "aggregate",
    "label_lines",
    "last_block",
    "prefix_search",
    "score_steps",
    "search_prefix",
    "spans_of",
    "split",
]
