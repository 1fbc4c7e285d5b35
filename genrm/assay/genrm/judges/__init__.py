"""Judges: from an item to requests for a model, and from its answers to a judgement. Pure.

pointwise   one response: against a ground truth, an anchor or a rubric, or alone
pairwise    two responses, in both orders
groups      the samples of one prompt
consensus   critiques of each step, and what most of them say
critique    reads critiques, and takes their majority
scalar      reward heads
verdict     one prompt, one verdict: probabilities or votes
parsing     reads verdicts, strictly
numbers     log-probabilities and votes to scores and errors
modes       what a model can do against what was asked
together    several judges at work as one
"""

from __future__ import annotations

from assay.genrm.judges.groups import judge_group
from assay.genrm.judges.pairwise import judge_pair
from assay.genrm.judges.pointwise import judge_response

__all__ = ["judge_group", "judge_pair", "judge_response"]
