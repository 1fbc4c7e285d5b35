"""GHPO's hooks: problems in forms that show more of their solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.trainer.core.hooks import Hooks
from assay.trainer.data.problems import Problem
from assay.trainer.methods.hints.hints import Hinted, with_hint
from assay.trainer.selection.orders import Uniform
from assay.trainer.selection.types import Selector


class Hinting(Hooks):
    """What nobody solved comes again with the beginning of its solution (GHPO)."""

    def selector(self, inner: Selector | None, problems: Sequence[Problem]) -> Selector | None:
        """See Hooks."""
        if not problems:
            return inner
        plain = inner or Uniform(range(len(problems)), self.config.data.seed)
        levels = len(self.config.method.hints.shares)
        return Hinted(plain, [bool(problem.solution) for problem in problems], levels)

    def variants(self) -> tuple[int, Callable[[Problem, int], Problem]]:
        """See Hooks."""
        shares = self.config.method.hints.shares
        return len(shares), lambda problem, form: with_hint(problem, shares[form - 1])
