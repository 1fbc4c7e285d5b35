"""Hints where nothing was right: GHPO (arXiv 2507.10628).

A problem of which no judged response was correct is answered again in the same step, with the
beginning of its solution in the prompt: a first share of it, and if that does not help a larger
one, and so on. The last group takes the place of the first, which trains no more; all that was
judged counts as judged. What is given is prompt, not response: no token of it is in any loss.

Differences:

1. Shares are of the solution's words. The wording of the notice is ours.
2. Whether a problem is hard is asked without hints: what came of hinted draws is not told to the
   selector that chooses.
3. A group with fewer than two judgements says nothing, and is not answered again. [derivation]
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
    """What nobody solved is answered again with the beginning of its solution (GHPO)."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        return {"again": failed}

    def variants(self) -> tuple[int, Callable[[Problem, int], Problem]]:
        """See Hooks."""
        shares = self.config.method.hints.shares
        return len(shares), lambda problem, form: with_hint(problem, shares[form - 1])


def failed(group: KnownGroup) -> bool:
    """Whether nobody was right; fewer than two judgements say nothing."""
    return kind_of(group) == "all_wrong"


def with_hint(problem: Problem, share: float) -> Problem:
    """The problem with so much of its solution, 0 to 1, at the end of its last message.

    At least one word; the spaces of the solution stay.
    """
    words = list(re.finditer(r"\S+", problem.solution))
    if not words:
        return problem
    end = words[max(1, math.floor(share * len(words) + 1e-9)) - 1].end()
    *before, (role, content) = problem.messages
    asked = (role, content + NOTICE + problem.solution[:end])
    return replace(problem, messages=(*before, asked))
