"""Rubrics: each criterion a question of its own, and one score of them all. Pure."""

from __future__ import annotations

from assay.genrm.judges.rubrics.criteria import judge_criterion
from assay.genrm.judges.rubrics.judging import judge_rubric
from assay.genrm.judges.rubrics.layout import orders_of

__all__ = ["judge_criterion", "judge_rubric", "orders_of"]
