"""Judges: from an item to requests for a model, and from its answers to a judgement. Pure.

`pointwise`, `pairwise` and `groups` judge items; `verdict` asks for one verdict, `consensus` for
critiques, `scalar` a reward head.
"""

from __future__ import annotations

from assay.genrm.judges.groups import judge_group
from assay.genrm.judges.pairwise import judge_pair
from assay.genrm.judges.pointwise import judge_response

__all__ = ["judge_group", "judge_pair", "judge_response"]
