"""The scores of a response's steps as one number."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.clients.judging.types import Aggregation


def aggregate(scores: Sequence[float | None], how: Aggregation) -> float:
    """One number in [0, 1] of the steps' scores; neutral steps (None) do not count.

    Raises:
        ValueError: no step has a score.
    """
    counted = [score for score in scores if score is not None]
    if not counted:
        raise ValueError("no step has a score")
    if how == "min":
        return min(counted)
    if how == "last":
        return counted[-1]
    if how == "product":
        return math.prod(counted)
    return min(max(counted), max(min(counted), math.fsum(counted) / len(counted)))
