"""The filters' hook."""

from __future__ import annotations

from itertools import islice

from assay.trainer.core.batch import Scored
from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.filter.filters import filtered, without_void


class Filtering(Hooks):
    """Which judged responses train."""

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """See Hooks."""
        chosen = self.config.method.filter
        left = iter(without_void(filtered(groups, chosen), chosen))
        return [list(islice(left, len(group))) for group in groups]
