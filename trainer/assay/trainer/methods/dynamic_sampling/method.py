"""Dynamic sampling's hook: the collector draws on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.trainer.core.hooks import Hooks


class DynamicSampling(Hooks):
    """Draws on until the batch is whole (DAPO, arXiv 2503.14476)."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        return {"dynamic": self.config.method.dynamic_sampling}
