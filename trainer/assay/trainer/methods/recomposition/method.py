"""RoRecomp's hook: a keeper of remainders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.recomposition.recomposition import Recomposition


class Recomposing(Hooks):
    """Parts of groups wait for a later batch (RoRecomp, arXiv 2509.25958)."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        prompts = self.config.rollout.prompts_per_step
        return {"keepers": (Recomposition(self.config.method.recomposition, prompts),)}
