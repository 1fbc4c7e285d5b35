"""Hints where nothing was right: GHPO (arXiv 2507.10628).

A problem without a correct response is answered again in the same step, with a share of its
solution in the prompt, then with larger shares. The last group replaces the first in training; all
judged responses count as judged. The hint is prompt, so in no loss.

Differences:

1. Shares are of the solution's words. The notice's wording is ours.
2. Difficulty is measured without hints: the selector does not learn from hinted draws.
3. A group with fewer than two judgements is not answered again. [derivation]
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assay.trainer.core.hooks import Hooks
from assay.trainer.data.problems import Problem
from assay.trainer.rollouts.dynamic import kind_of
from assay.trainer.rollouts.types import KnownGroup

NOTICE = "\n\nThe beginning of a correct solution is given here. Continue from it.\n\n"


class Hinting(Hooks):
    """Unsolved problems are answered again with the beginning of their solution (GHPO)."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        return {"again": failed}

    def variants(self) -> tuple[int, Callable[[Problem, int], Problem]]:
        """See Hooks."""
        shares = self.config.method.hints.shares
        return len(shares), lambda problem, form: with_hint(problem, shares[form - 1])


def failed(group: KnownGroup) -> bool:
    """Whether nobody was right, with at least two judgements."""
    return kind_of(group) == "all_wrong"


def with_hint(problem: Problem, share: float) -> Problem:
    """The problem with a share, 0 to 1, of its solution at the end of its last message.

    At least one word; the solution's spaces stay.
    """
    words = list(re.finditer(r"\S+", problem.solution))
    if not words:
        return problem
    end = words[max(1, math.floor(share * len(words) + 1e-9)) - 1].end()
    *before, (role, content) = problem.messages
    asked = (role, content + NOTICE + problem.solution[:end])
    return replace(problem, messages=(*before, asked))
