"""Steps of a response: where they are, what each is worth, and how they come together. Pure.

splitting     cuts a response: lines, paragraphs, tags, lines of code
code          what of a program is code, and what is comment
languages     comments and strings of the languages that are known
aggregation   the scores of steps as one
scoring       asks a step head, or a judge that writes critiques
labels        labels of lines by binary search for the longest prefix that can still be completed
"""

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
