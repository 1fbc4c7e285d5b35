"""GHPO's hooks: problems in forms that show more of their solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.trainer.core.hooks import Hooks
from assay.trainer.data.problems import Problem
from assay.trainer.methods.hints.hints import failed, with_hint


class Hinting(Hooks):
    """What nobody solved is answered again with the beginning of its solution (GHPO)."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        return {"again": failed}

    def variants(self) -> tuple[int, Callable[[Problem, int], Problem]]:
        """See Hooks."""
        shares = self.config.method.hints.shares
        return len(shares), lambda problem, form: with_hint(problem, shares[form - 1])
