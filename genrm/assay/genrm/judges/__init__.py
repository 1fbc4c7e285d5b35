"""Judges: from an item to requests for a model, and from its answers to a judgement. Pure.

`pointwise`, `pairwise`, `groups` and `rubrics` judge items; `verdict` asks for one verdict,
`consensus` for critiques, `scalar` a reward head, `ensemble` several models.
"""

from __future__ import annotations

from assay.genrm.judges.ensemble import judge_by_ensemble
from assay.genrm.judges.groups import judge_group
from assay.genrm.judges.pairwise import judge_pair
from assay.genrm.judges.pointwise import judge_response
from assay.genrm.judges.rubrics import judge_rubric

__all__ = ["judge_by_ensemble", "judge_group", "judge_pair", "judge_response", "judge_rubric"]
