"""What the prompts of a rubric begin with, by what it costs. Pure.

R responses by C criteria make R * C prompts, and what they begin with is read once: R responses and
then R * C criteria, or C criteria and then C * R responses. Lengths are in characters.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from assay.clients.judging.rubrics import CriterionOrder

OWN_CHARS = 120
"""Of each prompt, beside response and criterion: the words that ask."""
CLEARLY = 0.8
"""The criterion comes first only where it costs at most this share: short responses, long criteria.

Otherwise a response would be asked about in another way for a neighbour more or less.
"""

Key = TypeVar("Key", bound=Hashable)


def cost(order: CriterionOrder, responses: Sequence[int], criteria: Sequence[int]) -> int:
    """Characters to read for all responses by all criteria, of these lengths."""
    each = OWN_CHARS * len(responses) * len(criteria)
    if order == "criterion-first":
        return sum(criteria) + len(criteria) * sum(responses) + each
    return sum(responses) + len(responses) * sum(criteria) + each


def order_of(responses: Sequence[int], criteria: Sequence[int]) -> CriterionOrder:
    """What comes first: the response, unless the criterion costs clearly less."""
    response, criterion = (
        cost(order, responses, criteria) for order in ("response-first", "criterion-first")
    )
    return "criterion-first" if criterion <= CLEARLY * response else "response-first"


def orders_of(
    groups: Sequence[Key], responses: Sequence[int], criteria: Sequence[Sequence[int]]
) -> list[CriterionOrder]:
    """For each item what comes first, equal for those of one group (one prompt, one rubric).

    `responses` and `criteria` are lengths in characters.
    """
    lengths: dict[Key, list[int]] = {}
    for group, length in zip(groups, responses, strict=True):
        lengths.setdefault(group, []).append(length)
    found: dict[Key, CriterionOrder] = {}
    for group, texts in zip(groups, criteria, strict=True):
        if group not in found:
            found[group] = order_of(lengths[group], texts)
    return [found[group] for group in groups]
